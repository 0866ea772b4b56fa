//! Runs kernels with planted errors on all engines, under the checks that find them.

use std::time::Instant;

use visa_fuzzing::planted::{Bench, Counts, Error, Planted, Verdict};

/// Kernels of each kind of error, if no other number is given.
const COUNT: u64 = 500;

/// Numbers `FROM..TO` of the kernels of each kind, or as many as a single number says; of those kinds only that further words name.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let is_name = |word: &String| Error::ALL.iter().any(|error| word == error.name());
    let (names, numbers): (Vec<_>, Vec<_>) = arguments.iter().cloned().partition(is_name);
    let seeds = crate::seeds(&numbers, COUNT)?;
    let is_wanted =
        |error: &Error| names.is_empty() || names.iter().any(|name| name == error.name());
    let start = Instant::now();
    let mut bench = Bench::new(true);
    let mut differ = 0;
    for error in Error::ALL.into_iter().filter(is_wanted) {
        let mut counts = Counts::default();
        for seed in seeds.clone() {
            let verdict = bench.run(&Planted::new(error, seed));
            counts.add(&verdict);
            if let Verdict::Differs(why) = verdict {
                eprintln!("{} {seed}: {why}", error.name());
            }
        }
        differ += counts.differ;
        println!("{}: {counts}", error.name());
    }
    println!("{:.0} s", start.elapsed().as_secs_f64());
    match differ {
        0 => Ok(()),
        n => Err(format!("{n} kernels differ")),
    }
}
