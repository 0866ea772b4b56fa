//! The result of a comparison, as a table for people, JSON, or comma-separated values.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::Candidate;
use super::axes::Refused;
use super::machine::Machine;
use crate::exit::{Exit, Failure};

/// One strategy. Scripts rely on the keys.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its values on the axes.
    pub strategy: String,
    /// Its results are those of the reference.
    pub same: bool,
    /// From module to installed code.
    pub compile_ms: f64,
    /// The launches that this code is for; there is other code for others.
    pub launches: &'static str,
    /// Instructions of the IR after the passes.
    pub ssa: usize,
    /// What the code is made of.
    #[serde(flatten)]
    pub machine: Machine,
    /// Lanes of accesses that are done lane by lane, in the code or in the runtime.
    pub one_by_one: usize,
    /// Accesses that test bounds.
    pub tests: usize,
    /// Accesses whose test is another one's, or not needed.
    pub tests_saved: usize,
    /// Median of the runs.
    pub run_ms: f64,
    /// Fastest run.
    pub least_ms: f64,
    /// Slowest run.
    #[serde(skip)]
    pub most_ms: f64,
    /// All runs.
    #[serde(skip)]
    pub times: Vec<f64>,
    /// Distance of the slowest from the fastest run, of the median.
    pub spread: f64,
    /// Median of the baseline's runs in the same rounds, by this one's: above 1 is faster than it.
    pub speed: f64,
}

/// What the heads of the table mean.
pub const LEGEND: &str = "\
stack: instructions that access it; vloads: of whole vectors; lanes: accessed one by one, here or by the runtime;
tests: accesses that test bounds; saved: accesses that need no test of their own; `explain` says more
";

/// A count of a strategy's code.
pub struct Count {
    /// Name for scripts.
    pub key: &'static str,
    /// Name for people.
    pub name: &'static str,
    /// The count.
    pub of: fn(&Row) -> usize,
}

impl Row {
    /// Counts in the order of their columns.
    pub const COUNTS: [Count; 11] = [
        Count {
            key: "ssa",
            name: "SSA",
            of: |row| row.ssa,
        },
        Count {
            key: "bytes",
            name: "bytes",
            of: |row| row.machine.bytes,
        },
        Count {
            key: "instructions",
            name: "instr",
            of: |row| row.machine.instructions,
        },
        Count {
            key: "stack",
            name: "stack",
            of: |row| row.machine.stack,
        },
        Count {
            key: "spills",
            name: "spills",
            of: |row| row.machine.spills,
        },
        Count {
            key: "vector_loads",
            name: "vloads",
            of: |row| row.machine.vector_loads,
        },
        Count {
            key: "gathers",
            name: "gathers",
            of: |row| row.machine.gathers,
        },
        Count {
            key: "one_by_one",
            name: "lanes",
            of: |row| row.one_by_one,
        },
        Count {
            key: "tests",
            name: "tests",
            of: |row| row.tests,
        },
        Count {
            key: "tests_saved",
            name: "saved",
            of: |row| row.tests_saved,
        },
        Count {
            key: "calls",
            name: "calls",
            of: |row| row.machine.calls,
        },
    ];

    /// Without the comparison to the baseline.
    pub fn new(candidate: &Candidate, same: bool) -> Row {
        let times: Vec<f64> = candidate.times.iter().map(milliseconds).collect();
        let run_ms = median(&times);
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times.iter().copied().fold(0.0, f64::max);
        let least = if times.is_empty() { 0.0 } else { least };
        let made = &candidate.made;
        let accesses = made.accesses();
        let lanes = accesses.iter().map(|a| usize::from(a.way.one_by_one()));
        let saved = accesses.iter().filter(|a| a.bounds.is_saved()).count();
        Row {
            strategy: candidate.choice.name.clone(),
            same,
            compile_ms: milliseconds(&candidate.compile),
            launches: made.launches(),
            ssa: made.instructions(),
            machine: Machine::of(made.object(), made.stack()),
            one_by_one: lanes.sum(),
            tests: accesses.len().saturating_sub(saved),
            tests_saved: saved,
            run_ms,
            least_ms: least,
            most_ms: most,
            spread: if run_ms > 0.0 {
                (most - least) / run_ms
            } else {
                0.0
            },
            times,
            speed: 1.0,
        }
    }
}

fn milliseconds(time: &Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn median(times: &[f64]) -> f64 {
    let mut sorted = times.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted.get(sorted.len() / 2).copied().unwrap_or_default()
}

/// All of them.
#[derive(Serialize)]
pub struct Table {
    /// Kernel.
    pub kernel: String,
    /// Name of the baseline.
    pub baseline: String,
    /// What ran.
    pub strategies: Vec<Row>,
    /// What could not, and why.
    pub refused: Vec<(String, String)>,
}

impl Table {
    /// Takes the row with number `baseline` as 1.
    pub fn new(kernel: &str, mut rows: Vec<Row>, baseline: usize, refused: Vec<Refused>) -> Table {
        let base = rows.get(baseline).map_or(0.0, |row| row.run_ms);
        for row in &mut rows {
            row.speed = if row.run_ms > 0.0 {
                base / row.run_ms
            } else {
                1.0
            };
        }
        Table {
            kernel: kernel.to_owned(),
            baseline: rows
                .get(baseline)
                .map_or_else(String::new, |row| row.strategy.clone()),
            strategies: rows,
            refused: refused.into_iter().map(|r| (r.name, r.why)).collect(),
        }
    }

    /// One JSON object on a line.
    pub fn json(&self) -> Result<String, Failure> {
        let text = serde_json::to_string(self).map_err(|error| Failure {
            exit: Exit::Internal,
            message: error.to_string(),
        })?;
        Ok(format!("{text}\n"))
    }

    /// A line for each strategy, with a head; names have neither commas nor quotes.
    pub fn csv(&self) -> String {
        let counts = Row::COUNTS.map(|c| c.key).join(",");
        let mut text = format!("strategy,same,compile_ms,{counts},run_ms,least_ms,spread,speed\n");
        for row in &self.strategies {
            let counts = Row::COUNTS.map(|c| (c.of)(row).to_string()).join(",");
            let _ = writeln!(
                text,
                "{},{},{:.4},{counts},{:.6},{:.6},{:.4},{:.4}",
                row.strategy,
                row.same,
                row.compile_ms,
                row.run_ms,
                row.least_ms,
                row.spread,
                row.speed
            );
        }
        text
    }

    /// For people.
    pub fn text(&self, reference: &str) -> String {
        let names = self.strategies.iter().map(|r| r.strategy.chars().count());
        let width = names.max().unwrap_or(0).max("strategy".len());
        let launches = self.strategies.first().map_or("", |row| row.launches);
        let mut text = format!(
            "{}: results compared with {reference}; speed relative to `{}`; code for {launches}\n\n\
             {:width$}  {:>10}",
            self.kernel, self.baseline, "strategy", "compile ms",
        );
        for count in Row::COUNTS {
            let _ = write!(text, " {:>7}", count.name);
        }
        let _ = writeln!(
            text,
            "  {:>10} {:>10} {:>7} {:>6}",
            "median ms", "least ms", "spread", "speed"
        );
        for row in &self.strategies {
            let _ = write!(text, "{:width$}  {:>10.3}", row.strategy, row.compile_ms);
            for count in Row::COUNTS {
                let _ = write!(text, " {:>7}", (count.of)(row));
            }
            let _ = writeln!(
                text,
                "  {:>10.4} {:>10.4} {:>6.0}% {:>6.2}{}",
                row.run_ms,
                row.least_ms,
                row.spread * 100.0,
                row.speed,
                if row.same { "" } else { "  WRONG RESULT" }
            );
        }
        text.push_str(LEGEND);
        for (name, why) in &self.refused {
            let _ = writeln!(text, "{name:width$}  not possible: {why}");
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert!((median(&[3.0, 1.0, 2.0]) - 2.0).abs() < f64::EPSILON);
        assert!(median(&[]).abs() < f64::EPSILON);
    }
}
