//! The table: a line a kernel, then the means.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::support::median;

/// What one contender did with one case.
#[derive(Clone, Debug, Serialize)]
pub struct Outcome {
    /// Microseconds to runnable code.
    pub build: f64,
    /// Microseconds of a launch, in each round.
    pub times: Vec<f64>,
}

impl Outcome {
    fn time(&self) -> f64 {
        median(self.times.clone())
    }
}

/// One kernel.
#[derive(Serialize)]
pub struct Row {
    name: &'static str,
    /// By contender.
    outcomes: BTreeMap<&'static str, Outcome>,
    /// Why others are not there.
    absent: BTreeMap<&'static str, String>,
    /// The best contender of each column.
    #[serde(skip)]
    best: BTreeMap<&'static str, &'static str>,
}

/// What is there instead of us.
const PEERS: [&str; 2] = ["PoCL", "Intel"];
const COLUMNS: [&str; 6] = ["C", "ISPC", "PoCL", "Intel", "Cranelift", "LLVM"];
/// Ratios: what is divided by what.
const RATIOS: [(&str, &[&str], &str); 3] = [
    ("peer/LLVM", &PEERS, "LLVM"),
    ("peer/Cranelift", &PEERS, "Cranelift"),
    ("Cranelift/LLVM", &["Cranelift"], "LLVM"),
];

impl Row {
    pub fn new(name: &'static str) -> Row {
        Row {
            name,
            outcomes: BTreeMap::new(),
            absent: BTreeMap::new(),
            best: BTreeMap::new(),
        }
    }

    pub fn absent(&mut self, _column: &'static str, name: &'static str, why: String) {
        self.absent.insert(name, why);
    }

    pub fn add(&mut self, column: &'static str, name: &'static str, outcome: Outcome) {
        if outcome.times.is_empty() {
            self.absent
                .insert(name, "stopped while it was measured".to_owned());
            return;
        }
        let better = self
            .of(column)
            .is_none_or(|other| outcome.time() < other.time());
        if better {
            self.best.insert(column, name);
        }
        self.outcomes.insert(name, outcome);
    }

    fn of(&self, column: &str) -> Option<&Outcome> {
        self.outcomes.get(self.best.get(column)?)
    }

    /// Median of what the better of `over` takes for each unit of what `under` takes in the same round.
    fn ratio(&self, over: &[&str], under: &str) -> Option<f64> {
        let over = over.iter().filter_map(|column| self.of(column));
        let over = over.min_by(|a, b| a.time().total_cmp(&b.time()))?;
        let pairs = over.times.iter().zip(&self.of(under)?.times);
        Some(median(pairs.map(|(a, b)| a / b).collect()))
    }

    /// The same of the time to runnable code, with the quicker of both index types.
    fn build_ratio(&self, over: &str, under: &str) -> Option<f64> {
        let least = |column: &str| {
            let all = self
                .outcomes
                .iter()
                .filter(|(name, _)| name.starts_with(column));
            all.map(|(_, outcome)| outcome.build).min_by(f64::total_cmp)
        };
        Some(least(over)? / least(under)?)
    }

    pub fn print(&self) {
        print!("{:<32}", self.name);
        for column in COLUMNS {
            match self.of(column) {
                Some(outcome) => print!("{:>11.1}", outcome.time()),
                None => print!("{:>11}", "-"),
            }
        }
        for (_, over, under) in RATIOS {
            match self.ratio(over, under) {
                Some(ratio) => print!("{ratio:>16.2}"),
                None => print!("{:>16}", "-"),
            }
        }
        println!();
        for (name, why) in &self.absent {
            println!("    {name}: {why}");
        }
    }
}

pub fn head() {
    print!("{:<32}", "");
    COLUMNS.iter().for_each(|column| print!("{column:>11}"));
    RATIOS.iter().for_each(|(name, ..)| print!("{name:>16}"));
    println!();
}

fn geometric(values: &[f64]) -> f64 {
    let logs: f64 = values.iter().map(|v| v.ln()).sum();
    (logs / values.len() as f64).exp()
}

/// Means over all kernels.
pub fn summary(rows: &[Row]) {
    for (name, over, under) in RATIOS {
        let found: Vec<f64> = rows
            .iter()
            .filter_map(|row| row.ratio(over, under))
            .collect();
        if !found.is_empty() {
            let least = found.iter().filter(|r| **r >= 1.0).count();
            let (mean, all) = (geometric(&found), found.len());
            println!("{name}: geometric mean {mean:.2}, at least 1 on {least} of {all}");
        }
    }
    for (over, under) in [
        ("PoCL", "LLVM"),
        ("PoCL", "Cranelift"),
        ("Intel", "LLVM"),
        ("LLVM", "Cranelift"),
    ] {
        let found: Vec<f64> = rows
            .iter()
            .filter_map(|row| row.build_ratio(over, under))
            .collect();
        if !found.is_empty() {
            let (mean, all) = (geometric(&found), found.len());
            println!("time to runnable code, {over}/{under}: geometric mean {mean:.1} of {all}");
        }
    }
}
