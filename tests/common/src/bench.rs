//! Times of short pieces of code, for benchmarks.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// What a sample takes at least.
const SAMPLE: Duration = Duration::from_millis(1);
/// Samples of each piece.
const SAMPLES: usize = 100;

/// Prints the least and the median time of a piece of code. A sample is as many runs as take a millisecond.
pub fn measure<R>(name: &str, mut run: impl FnMut() -> R) {
    let start = Instant::now();
    black_box(run());
    let one = start.elapsed().as_nanos().max(1);
    let runs = (SAMPLE.as_nanos() / one).clamp(1, 1_000_000) as u32;
    let sample = || {
        let start = Instant::now();
        for _ in 0..runs {
            black_box(run());
        }
        start.elapsed() / runs
    };
    print(name, std::iter::repeat_with(sample).take(SAMPLES).collect());
}

/// The same of code that needs something made anew for each run, the time of which does not count.
pub fn measure_with<S, R>(name: &str, mut make: impl FnMut() -> S, mut run: impl FnMut(S) -> R) {
    let sample = || {
        let made = make();
        let start = Instant::now();
        let result = black_box(run(made));
        let time = start.elapsed();
        drop(result);
        time
    };
    print(name, std::iter::repeat_with(sample).take(SAMPLES).collect());
}

fn print(name: &str, mut times: Vec<Duration>) {
    times.sort();
    let (least, median) = (times[0], times[times.len() / 2]);
    println!("{name:50} least {least:>12.2?}, median {median:>12.2?}");
}
