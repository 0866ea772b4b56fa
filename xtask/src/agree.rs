//! Launches kernels of containers outside of the repository on all engines.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use visa_fuzzing::files::{Bench, Source, Verdict};
use visa_test_common::Rng;

/// Launches of each kernel, of random shapes and on random arguments, if `--launches` does not say another number.
const LAUNCHES: usize = 2;
/// Instructions that a hardware thread of the interpreter may execute.
const FUEL: u64 = 1_000_000;
/// A kernel that takes longer on all engines together is named.
const SLOW: Duration = Duration::from_secs(10);

#[derive(Default)]
struct Tally {
    same: usize,
    /// Those of them that changed a buffer.
    wrote: usize,
    skipped: usize,
    refused: BTreeMap<String, Vec<String>>,
    differ: Vec<String>,
    slow: Vec<String>,
}

/// Every kernel of every container below the folders: `[--launches N] DIR...`.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let (launches, folders) = match arguments {
        [option, n, folders @ ..] if option == "--launches" => (
            n.parse().map_err(|e| format!("--launches {n}: {e}"))?,
            folders,
        ),
        folders => (LAUNCHES, folders),
    };
    let mut files = Vec::new();
    for folder in folders {
        containers(PathBuf::from(folder), &mut files)?;
    }
    files.sort();
    if files.is_empty() {
        return Err("no containers (*.zebin, *.bin) there".to_owned());
    }
    let next = AtomicUsize::new(0);
    let tally: Mutex<Tally> = Mutex::default();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|s| {
        for _ in 0..workers {
            s.spawn(|| {
                let mut bench = Bench::with_fuel(true, FUEL).with_addresses();
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Ok(bytes) = std::fs::read(file) {
                        let name = file.display().to_string();
                        kernels(&mut bench, &name, bytes, launches, &tally);
                    }
                }
            });
        }
    });
    let tally = tally.into_inner().map_err(|e| e.to_string())?;
    report(&tally, files.len())
}

pub(crate) fn containers(path: PathBuf, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let said = |e: std::io::Error| format!("{}: {e}", path.display());
    if !path.is_dir() {
        found.push(path);
        return Ok(());
    }
    for entry in std::fs::read_dir(&path).map_err(said)? {
        let path = entry.map_err(said)?.path();
        let container = path.extension().is_some_and(|e| e == "zebin" || e == "bin");
        if path.is_dir() || container {
            containers(path, found)?;
        }
    }
    Ok(())
}

fn kernels(bench: &mut Bench, name: &str, bytes: Vec<u8>, launches: usize, tally: &Mutex<Tally>) {
    let source = Source::Container(bytes);
    for kernel in 0.. {
        let start = Instant::now();
        let mut rng = Rng::new(kernel as u64);
        let verdict = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            bench.compare(&source, kernel, launches, &mut rng)
        }));
        let verdict = verdict.unwrap_or_else(|_| Verdict::Differs("panic".to_owned()));
        let which = format!("{name} kernel {kernel}");
        let Ok(mut tally) = tally.lock() else { return };
        if start.elapsed() > SLOW {
            let took = start.elapsed().as_secs_f64();
            tally.slow.push(format!("{which}: {took:.1} s"));
        }
        match verdict {
            Verdict::Same { wrote } => {
                tally.same += 1;
                tally.wrote += usize::from(wrote);
            }
            Verdict::Skipped => tally.skipped += 1,
            Verdict::Differs(what) => {
                eprintln!("{which}: {what}");
                tally.differ.push(which);
            }
            Verdict::Absent => return,
            Verdict::Refused(why) => tally.refused.entry(why).or_default().push(which),
            Verdict::Unreadable(why) => {
                tally.refused.entry(why).or_default().push(which);
                return;
            }
        }
    }
}

fn report(tally: &Tally, files: usize) -> Result<(), String> {
    for (why, which) in &tally.refused {
        println!("refused {} ({}, ...): {why}", which.len(), which[0]);
    }
    for slow in &tally.slow {
        println!("slow {slow}");
    }
    let refused: usize = tally.refused.values().map(Vec::len).sum();
    println!(
        "{files} containers: {} kernels did the same on all engines ({} of them changed memory), {refused} were refused, {} did \
         not end or need too much, {} differ",
        tally.same,
        tally.wrote,
        tally.skipped,
        tally.differ.len()
    );
    match tally.differ.len() {
        0 => Ok(()),
        n => Err(format!("{n} differences")),
    }
}
