//! Checked-in kernels launched in shapes and on arguments chosen at random, and damaged ones: Cranelift, and LLVM where it is
//! built in, do what the interpreter does.
//!
//! `SEEDS=100..200 cargo test -p visa-fuzzing files::` runs other cases; `cargo run --release -p xtask -- mutants` many.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use visa_fuzzing::files::{Bench, File, Mutants, Source, Verdict, checked_in};
use visa_test_common::{Rng, full, share};

/// Launches of each kernel on one device in a full run.
const LAUNCHES: u64 = 2;
/// Damaged programs of a full run.
const MUTANTS: u64 = 1_200;

/// Each kernel on one of its devices; in a plain run one of forty-eight.
#[test]
fn kernels_in_random_shapes() {
    let mut devices: BTreeMap<String, Vec<File>> = BTreeMap::new();
    for file in checked_in() {
        let stem = file.name.rsplit('/').next().unwrap_or_default().to_owned();
        devices.entry(stem).or_default().push(file);
    }
    let every = if full() { 1 } else { 48 };
    let kernels = devices.into_values().enumerate().step_by(every);
    let files: Vec<File> = kernels
        .map(|(n, mut files)| files.swap_remove(n % files.len()))
        .collect();
    in_random_shapes(&files, share(LAUNCHES, 2) as usize, || Bench::new(true));
}

/// With barriers, local memory, images, calls and loops: whichever code a launch of an engine with tiers runs, it does the same.
#[test]
#[cfg(feature = "llvm-codegen")]
fn tiers_in_random_shapes() {
    let some = [
        "reduction",
        "histogram",
        "image_filter",
        "private",
        "loops",
        "subgroup",
        "call_stack",
        "printf",
    ];
    let named = |file: &File| {
        let (device, name) = file.name.split_once('/').unwrap_or_default();
        device == "bmg-26" && (full() || some.contains(&name))
    };
    let files: Vec<File> = checked_in().into_iter().filter(named).collect();
    assert!(files.len() >= some.len());
    in_random_shapes(&files, 1, Bench::tiered);
}

#[test]
#[ignore = "a minute or two: every kernel of every device"]
fn all_kernels_in_random_shapes() {
    in_random_shapes(&checked_in(), 1, || Bench::new(true));
}

fn in_random_shapes(files: &[File], launches: usize, bench: fn() -> Bench) {
    let next = AtomicUsize::new(0);
    let failures: Mutex<Vec<String>> = Mutex::default();
    let launched = AtomicUsize::new(0);
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let mut bench = bench();
                while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let source = Source::Container(file.bytes.clone());
                    let mut kernel = 0;
                    loop {
                        let mut rng = Rng::new(kernel as u64);
                        match bench.compare(&source, kernel, launches, &mut rng) {
                            Verdict::Differs(what) => failures
                                .lock()
                                .unwrap()
                                .push(format!("{} kernel {kernel}: {what}", file.name)),
                            Verdict::Same { .. } => drop(launched.fetch_add(1, Ordering::Relaxed)),
                            Verdict::Skipped => {}
                            Verdict::Refused(_) | Verdict::Unreadable(_) | Verdict::Absent => break,
                        }
                        kernel += 1;
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let launched = launched.into_inner();
    println!("{launched} kernels of {} files", files.len());
    assert!(launched >= files.len(), "only {launched} kernels ran");
}

#[test]
fn damaged_kernels() {
    let seeds = visa_fuzzing::seeds().unwrap_or(0..share(MUTANTS, 120));
    // To read all files takes longer than a plain run's cases.
    let some = checked_in()
        .into_iter()
        .step_by(if full() { 1 } else { 16 });
    let mutants = Mutants::of(some.collect());
    let next = AtomicU64::new(seeds.start);
    let failures: Mutex<Vec<String>> = Mutex::default();
    let same = AtomicUsize::new(0);
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let mut bench = Bench::new(false);
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end {
                        return;
                    }
                    match mutants.run(&mut bench, seed) {
                        Verdict::Differs(what) => {
                            let saved = mutants.save(seed, Path::new(env!("CARGO_TARGET_TMPDIR")));
                            let line = format!("seed {seed}, {saved:?}: {what}");
                            failures.lock().unwrap().push(line);
                        }
                        Verdict::Same { .. } => drop(same.fetch_add(1, Ordering::Relaxed)),
                        _ => {}
                    }
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    let same = same.into_inner();
    println!(
        "{same} of {} damaged kernels ran on all engines",
        seeds.end - seeds.start
    );
    let enough = (seeds.end - seeds.start) as usize / 5;
    assert!(same >= enough, "only {same} ran");
}
