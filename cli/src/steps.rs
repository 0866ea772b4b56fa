//! `compile --time-passes`: how long the steps of compilation take.

use std::fmt::Write as _;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::compile::KernelTime;
use visa_jit::steps::Steps;

/// A step in JSON.
#[derive(Serialize)]
struct Row {
    part: &'static str,
    step: &'static str,
    ms: f64,
    runs: u32,
    changes: usize,
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// A time in JSON: milliseconds.
pub fn in_ms<S: Serializer>(time: &Duration, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_f64(ms(*time))
}

/// Steps in JSON: a list of rows.
pub fn in_rows<S: Serializer>(steps: &Option<Steps>, to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(steps.iter().flat_map(Steps::iter).map(|step| Row {
        part: step.part,
        step: step.name,
        ms: ms(step.time),
        runs: step.runs,
        changes: step.changes,
    }))
}

/// The steps of all kernels together. Times of kernels have more in them than their steps, such as reading the file's vISA.
pub fn table<'a>(times: impl IntoIterator<Item = &'a KernelTime>) -> String {
    let times: Vec<_> = times.into_iter().collect();
    let mut steps = Steps::default();
    for time in &times {
        if let Some(of_kernel) = &time.steps {
            steps.add(of_kernel);
        }
    }
    let kernels = times.len();
    let instructions: usize = times.iter().map(|time| time.instructions).sum();
    let all: Duration = times.iter().map(|time| time.time).sum();
    let mut text = format!(
        "{kernels} kernels, {instructions} vISA instructions, {:.1} ms",
        ms(all)
    );
    if instructions > 0 {
        let each = ms(all) * 1e3 / instructions as f64;
        let _ = write!(text, ": {each:.1} µs for each instruction");
    }
    text.push('\n');
    let total = steps.total().max(Duration::from_nanos(1));
    let _ = writeln!(
        text,
        "{:>10}  {:>5}  {:>6}  {:>8}  step",
        "ms", "%", "runs", "changes"
    );
    for step in steps.iter() {
        let share = step.time.as_secs_f64() / total.as_secs_f64() * 100.0;
        let _ = writeln!(
            text,
            "{:>10.2}  {share:>5.1}  {:>6}  {:>8}  {}: {}",
            ms(step.time),
            step.runs,
            step.changes,
            step.part,
            step.name
        );
    }
    text
}
