//! The result of a comparison, as a table for people, JSON, or comma-separated values.

use std::fmt::Write as _;
use std::time::Duration;

use serde::Serialize;

use super::Candidate;
use super::axes::Refused;
use super::machine::Machine;
use crate::cli::exit::{Exit, Failure};

/// One strategy. Scripts rely on the keys.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    strategy: String,
    /// Its results are those of the reference.
    same: bool,
    compile_ms: f64,
    /// Instructions of the IR after the passes, in the code for launches of any shape.
    ssa: usize,
    #[serde(flatten)]
    machine: Machine,
    run_ms: f64,
    least_ms: f64,
    /// Distance of the slowest from the fastest run, of the median.
    spread: f64,
    /// Median of the baseline's runs in the same rounds, by this one's: above 1 is faster than it.
    speed: f64,
}

impl Row {
    /// Without the comparison to the baseline.
    pub fn new(candidate: &Candidate, same: bool) -> Row {
        let times: Vec<f64> = candidate.times.iter().map(milliseconds).collect();
        let run_ms = median(&times);
        let least = times.iter().copied().fold(f64::INFINITY, f64::min);
        let most = times.iter().copied().fold(0.0, f64::max);
        Row {
            strategy: candidate.choice.name.clone(),
            same,
            compile_ms: milliseconds(&candidate.compile),
            ssa: candidate.ssa,
            machine: candidate.machine,
            run_ms,
            least_ms: if times.is_empty() { 0.0 } else { least },
            spread: if run_ms > 0.0 {
                (most - least) / run_ms
            } else {
                0.0
            },
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
    kernel: String,
    baseline: String,
    strategies: Vec<Row>,
    refused: Vec<(String, String)>,
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
        let mut text =
            "strategy,same,compile_ms,ssa,bytes,instructions,stack,vector_loads,gathers,calls,\
                        run_ms,least_ms,spread,speed\n"
                .to_owned();
        for row in &self.strategies {
            let m = row.machine;
            let _ = writeln!(
                text,
                "{},{},{:.4},{},{},{},{},{},{},{},{:.6},{:.6},{:.4},{:.4}",
                row.strategy,
                row.same,
                row.compile_ms,
                row.ssa,
                m.bytes,
                m.instructions,
                m.stack,
                m.vector_loads,
                m.gathers,
                m.calls,
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
        let mut text = format!(
            "{}: results compared with {reference}; speed relative to `{}`\n\n\
             {:width$}  {:>10} {:>6} {:>7} {:>6} {:>6} {:>6} {:>7} {:>6}  {:>10} {:>10} {:>7} {:>6}\n",
            self.kernel,
            self.baseline,
            "strategy",
            "compile ms",
            "SSA",
            "bytes",
            "instr",
            "stack",
            "vloads",
            "gathers",
            "calls",
            "median ms",
            "least ms",
            "spread",
            "speed"
        );
        for row in &self.strategies {
            let m = row.machine;
            let _ = writeln!(
                text,
                "{:width$}  {:>10.3} {:>6} {:>7} {:>6} {:>6} {:>6} {:>7} {:>6}  {:>10.4} {:>10.4} {:>6.0}% {:>6.2}{}",
                row.strategy,
                row.compile_ms,
                row.ssa,
                m.bytes,
                m.instructions,
                m.stack,
                m.vector_loads,
                m.gathers,
                m.calls,
                row.run_ms,
                row.least_ms,
                row.spread * 100.0,
                row.speed,
                if row.same { "" } else { "  WRONG RESULT" }
            );
        }
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
