//! Runs damaged kernels on all engines.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use visa_fuzzing::files::{Bench, Mutants, Verdict};

/// Damaged kernels, if no other number is given.
const COUNT: u64 = 200_000;
/// Every tenth kernel runs on LLVM too, in builds with the feature `llvm`.
const LLVM_EVERY: u64 = 10;
/// Most memory that the process may have taken, in KiB.
const MEMORY_KIB: u64 = 2 << 20;
/// Differences after which there is no more to learn.
const ENOUGH: usize = 50;

/// Numbers `FROM..TO` of the damaged kernels, or as many as a single number says.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let seeds = crate::seeds(arguments, COUNT)?;
    let start = Instant::now();
    let mutants = Mutants::new();
    let next = AtomicU64::new(seeds.start);
    let counts = [const { AtomicU64::new(0) }; 3];
    let differences: Mutex<Vec<String>> = Mutex::default();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|s| {
        for _ in 0..workers {
            s.spawn(|| {
                let mut benches = [false, true].map(Bench::new);
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let found = || differences.lock().map_or(ENOUGH, |d| d.len());
                    if seed >= seeds.end || found() >= ENOUGH {
                        return;
                    }
                    let llvm = seed.is_multiple_of(LLVM_EVERY);
                    let count = match mutants.run(&mut benches[usize::from(llvm)], seed) {
                        Verdict::Same { .. } => 0,
                        Verdict::Refused(_) | Verdict::Unreadable(_) | Verdict::Absent => 1,
                        Verdict::Skipped => 2,
                        Verdict::Differs(what) => {
                            eprintln!("{seed}: {what}");
                            if let Ok(mut differences) = differences.lock() {
                                differences.push(what);
                            }
                            continue;
                        }
                    };
                    counts[count].fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let [same, refused, skipped] = counts.map(AtomicU64::into_inner);
    let differences = differences.into_inner().unwrap_or_default().len();
    let memory = peak_kib().unwrap_or(0);
    println!(
        "{} damaged kernels in {:.0} s: {same} did the same on all engines, {refused} were refused, {skipped} did not end or need \
         too much, {differences} differ; at most {} MiB of memory",
        seeds.end - seeds.start,
        start.elapsed().as_secs_f64(),
        memory >> 10
    );
    match (differences, memory) {
        (0, ..=MEMORY_KIB) => Ok(()),
        (0, _) => Err(format!("more than {} MiB of memory", MEMORY_KIB >> 10)),
        _ => Err(format!("{differences} differences")),
    }
}

/// The most memory that this process has had, as Linux counts it.
fn peak_kib() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}
