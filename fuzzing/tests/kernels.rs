//! Random kernels on engines that must agree.
//!
//! `SEED=n` runs one kernel and prints it, `SEEDS=a..b` those on every engine. A failing kernel is reduced and written as a file test to the
//! directory `REPRO` (default: the system's temporary directory).

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use visa_fuzzing::engines::{ENGINES, Engine, Launch, Machine, Outcome, Stop, difference, named};
use visa_fuzzing::kernels::generate::kernel;
use visa_fuzzing::kernels::reduce::reduce;
use visa_fuzzing::kernels::{Kernel, filetest};

/// How far kernels got.
#[derive(Default)]
struct Statistics {
    kernels: u64,
    invalid: u64,
    timeouts: u64,
    instructions: u64,
    launches: u64,
    mnemonics: BTreeMap<String, u64>,
    reasons: BTreeMap<String, u64>,
    failures: Vec<String>,
}

type Machines = Vec<(&'static str, Box<dyn Machine>)>;

fn outcome(machine: &mut dyn Machine, kernel: &Kernel, launch: &Launch) -> Outcome {
    machine.load(&kernel.text(), kernel.platform)?.run(launch)
}

/// What two engines disagree about, for a launch.
fn disagreement(kernel: &Kernel, launch: &Launch, a: &Outcome, b: &Outcome) -> Option<String> {
    match (a, b) {
        (Ok(x), Ok(y)) => {
            let regions = kernel.regions();
            let (r, i, x, y) = difference(x, y, &regions)?;
            let r = regions[r];
            let name = kernel
                .variables
                .iter()
                .find(|v| r.surface == 2 && v.at as usize == r.at);
            let name = name.map_or_else(|| format!("surface {}", r.surface), |v| v.name.clone());
            Some(format!(
                "{name}[{i}]: {x:#x} or {y:#x} ({} lanes)",
                launch.lanes
            ))
        }
        (Err(a), Err(b)) if std::mem::discriminant(a) == std::mem::discriminant(b) => None,
        (Err(e), _) | (_, Err(e)) => Some(e.to_string()),
    }
}

/// Reduces a failing kernel and writes the file test; its path and what is left.
fn report(
    seed: u64,
    kernel: &Kernel,
    launch_seed: u64,
    machines: &mut Machines,
    bad: usize,
    why: &str,
) -> String {
    let (first, rest) = machines.split_at_mut(bad);
    let (reference, other) = (&mut first[0].1, &mut rest[0]);
    let small = reduce(kernel, |k| {
        let launch = k.launch(launch_seed);
        let (a, b) = (
            outcome(&mut **reference, k, &launch),
            outcome(&mut *other.1, k, &launch),
        );
        a.is_ok() && disagreement(k, &launch, &a, &b).is_some()
    });
    let launch = small.launch(launch_seed);
    let mut path = std::env::var_os("REPRO").map_or_else(std::env::temp_dir, Into::into);
    path.push(format!("random_{seed}.visaasm"));
    if let Ok(expected) = outcome(&mut **reference, &small, &launch) {
        let what = format!("Random kernel {seed}, reduced; {} differed.", other.0);
        let written = std::fs::write(&path, filetest::text(&small, &launch, &expected, &what));
        if let Err(e) = written {
            return format!(
                "seed {seed}, {}: {why}; cannot write {}: {e}",
                other.0,
                path.display()
            );
        }
    }
    let body: Vec<String> = small
        .text()
        .lines()
        .filter(|l| !l.starts_with('.'))
        .map(str::to_owned)
        .collect();
    format!(
        "seed {seed}, {}: {why}\n  {}\n{}",
        other.0,
        path.display(),
        body.join("\n")
    )
}

fn check(seed: u64, launches: u64, machines: &mut Machines, s: &Mutex<Statistics>) {
    let kernel = kernel(seed);
    let text = kernel.text();
    let mut loaded = Vec::new();
    for (_, machine) in machines.iter_mut() {
        loaded.push(machine.load(&text, kernel.platform));
    }
    let (mut invalid, mut timeout, mut runs) = (None, false, 0);
    let mut failure = None;
    'launches: for n in 0..launches {
        let launch = kernel.launch(seed * 64 + n);
        let run = |l: &Result<Box<dyn visa_fuzzing::engines::Loaded>, Stop>| match l {
            Ok(program) => program.run(&launch),
            Err(stop) => Err(stop.clone()),
        };
        let expected = run(&loaded[0]);
        runs += 1;
        match &expected {
            Err(Stop::Refused(why)) => invalid = Some(why.clone()),
            Err(Stop::Timeout) => timeout = true,
            _ => {}
        }
        for (i, l) in loaded.iter().enumerate().skip(1) {
            if let Some(why) = disagreement(&kernel, &launch, &expected, &run(l)) {
                failure = Some((i, seed * 64 + n, why));
                break 'launches;
            }
        }
        if expected.is_err() {
            break;
        }
    }
    drop(loaded);
    let failure = failure.map(|(i, l, why)| report(seed, &kernel, l, machines, i, &why));
    let mut s = s.lock().unwrap();
    s.kernels += 1;
    s.launches += runs;
    s.invalid += u64::from(invalid.is_some());
    s.timeouts += u64::from(timeout);
    s.instructions += kernel.size() as u64;
    if let Some(why) = invalid {
        let why = why.split_once("line ").map_or(why.as_str(), |(_, w)| w);
        let why = why.split_once(": ").map_or(why, |(_, w)| w);
        *s.reasons.entry(why.to_owned()).or_default() += 1;
    }
    for line in text.lines().filter(|l| l.starts_with("    ")) {
        let line = line
            .trim()
            .split_once(") ")
            .filter(|_| line.trim().starts_with('('))
            .map_or(line.trim(), |(_, r)| r);
        let name = line.split([' ', '.']).next().unwrap_or("");
        *s.mnemonics.entry(name.to_owned()).or_default() += 1;
    }
    s.failures.extend(failure);
}

fn sweep(engines: &[Engine], seeds: std::ops::Range<u64>, launches: u64) {
    let start = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let s = Mutex::new(Statistics::default());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut machines: Machines = engines.iter().map(|e| (e.name, (e.make)())).collect();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || s.lock().unwrap().failures.len() >= 10 {
                        return;
                    }
                    check(seed, launches, &mut machines, &s);
                }
            });
        }
    });
    let s = s.into_inner().unwrap();
    let names: Vec<&str> = engines.iter().map(|e| e.name).collect();
    println!(
        "{} kernels x {launches} inputs on {}: {:.1} % valid, {:.2} % time-outs, {:.1} instructions a kernel, \
         {} launches, {} mnemonics, {:.1} s",
        s.kernels,
        names.join(", "),
        100.0 - 100.0 * s.invalid as f64 / s.kernels as f64,
        100.0 * s.timeouts as f64 / s.kernels as f64,
        s.instructions as f64 / s.kernels as f64,
        s.launches,
        s.mnemonics.len(),
        start.elapsed().as_secs_f64()
    );
    for (why, n) in &s.reasons {
        println!("  {n} x {why}");
    }
    assert!(s.failures.is_empty(), "{}", s.failures.join("\n\n"));
    if s.kernels > 100 {
        assert!(s.invalid * 20 <= s.kernels && s.timeouts * 100 < s.kernels);
    }
}

#[test]
fn engines_agree_on_random_kernels() {
    if let Some(seed) = std::env::var("SEED").ok().and_then(|s| s.parse().ok()) {
        println!("{}", kernel(seed).text());
        return sweep(&every(), seed..seed + 1, 8);
    }
    if let Some(seeds) = visa_fuzzing::seeds() {
        return sweep(&every(), seeds, 8);
    }
    sweep(&named(&["interp", "cranelift"]), 0..400, 4);
}

#[test]
#[cfg(feature = "llvm")]
fn llvm_agrees_on_random_kernels() {
    let engines = ["interp", "llvm", "llvm-o2", "llvm-unoptimised"];
    sweep(&named(&engines), 0..20, 4);
}

#[test]
#[ignore = "long: 20,000 kernels"]
fn engines_agree_on_many_random_kernels() {
    sweep(&every(), 0..20_000, 8);
}

fn every() -> Vec<Engine> {
    let mut engines = named(&["interp"]);
    engines.extend(ENGINES.iter().filter(|e| e.name != "interp"));
    engines
}
