//! Random kernels on engines that must agree.
//!
//! `SEED=n` runs one kernel and prints it, `SEEDS=a..b` those on every engine. A failing kernel is reduced and written as a file test to the
//! directory `REPRO` (default: the system's temporary directory).

#[allow(dead_code, reason = "the driver of the file tests, used in part")]
#[path = "../../../tests/filetests/driver/data.rs"]
mod data;
#[allow(dead_code, reason = "the driver of the file tests, used in part")]
#[path = "../../../tests/filetests/driver/run.rs"]
mod run;
#[allow(dead_code, reason = "the driver of the file tests, used in part")]
#[path = "../../../tests/filetests/driver/spec.rs"]
mod spec;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use visa_fuzzing::engines::{
    ENGINES, Engine, Launch, Loaded, Machine, Outcome, Stop, difference, from_axes, named,
};
use visa_fuzzing::kernels::generate::{exception, kernel};
use visa_fuzzing::kernels::reduce::reduce;
use visa_fuzzing::kernels::{Kernel, filetest, mnemonics};
use visa_fuzzing::sweep::running;
use visa_jit::backend::BackendKind;
use visa_jit::isa::{Family, Platform};
use visa_test_common::share;

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

/// Where file tests are written.
fn repro_dir() -> PathBuf {
    std::env::var_os("REPRO").map_or_else(std::env::temp_dir, Into::into)
}

/// Reduces a failing kernel and writes the file test to `dir`; its path and what is left.
fn report(
    dir: &Path,
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
    let path = dir.join(format!("random_{seed}.visaasm"));
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

fn check(dir: &Path, seed: u64, launches: u64, machines: &mut Machines, s: &Mutex<Statistics>) {
    let kernel = kernel(seed);
    let text = kernel.text();
    let mut loaded = Vec::new();
    for (_, machine) in machines.iter_mut() {
        let takes = machine.images() || !kernel.images;
        loaded.push(takes.then(|| machine.load(&text, kernel.platform)));
    }
    let (mut invalid, mut timeout, mut runs) = (None, false, 0);
    let mut failure = None;
    'launches: for n in 0..launches {
        let launch = kernel.launch(seed * 64 + n);
        let run = |l: &Result<Box<dyn visa_fuzzing::engines::Loaded>, Stop>| match l {
            Ok(program) => program.run(&launch),
            Err(stop) => Err(stop.clone()),
        };
        let Some(reference) = &loaded[0] else {
            return;
        };
        let expected = run(reference);
        runs += 1;
        match &expected {
            Err(Stop::Refused(why)) => invalid = Some(why.clone()),
            Err(Stop::Timeout) => timeout = true,
            _ => {}
        }
        for (i, l) in loaded.iter().enumerate().skip(1) {
            let Some(l) = l else { continue };
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
    let failure = failure.map(|(i, l, why)| report(dir, seed, &kernel, l, machines, i, &why));
    let mut s = s.lock().unwrap();
    s.kernels += 1;
    s.launches += runs;
    s.invalid += u64::from(invalid.is_some());
    s.timeouts += u64::from(timeout);
    s.instructions += kernel.size() as u64;
    if let Some(why) = invalid {
        let why = why.split_once("line ").map_or(why.as_str(), |(_, w)| w);
        let why = why.split_once(": ").map_or(why, |(_, w)| w);
        // The first error alone; numbers in it (places, sizes) make kinds of what is one kind.
        let first = why.lines().next().unwrap_or("");
        let kind = first.replace(|c: char| c.is_ascii_digit(), "");
        *s.reasons.entry(kind).or_default() += 1;
    }
    for name in mnemonics(&text) {
        *s.mnemonics.entry(name).or_default() += 1;
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
                let mut machines: Machines = engines.iter().map(|e| (e.name, e.make())).collect();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || s.lock().unwrap().failures.len() >= 10 {
                        return;
                    }
                    check(&repro_dir(), seed, launches, &mut machines, &s);
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
    let [plain, rows] = [250, 50].map(|all| share(all, 24));
    sweep(&named(&["interp", "cranelift"]), 0..plain, 4);
    sweep(&named(&["interp", "cranelift-rows"]), 400..400 + rows, 4);
}

#[test]
#[cfg(feature = "llvm-codegen")]
fn llvm_agrees_on_random_kernels() {
    let engines = ["interp", "llvm", "llvm-unoptimised"];
    sweep(&named(&engines), 0..20, 4);
}

/// Kernels on every value of every axis, some for each engine.
fn sweep_axes(backend: BackendKind, each: u64) {
    for (n, engine) in (0..).zip(from_axes(backend)) {
        let first = 400 + n * each;
        sweep(&[named(&["interp"])[0], engine], first..first + each, 4);
    }
}

#[test]
fn strategies_agree() {
    sweep_axes(BackendKind::Cranelift, share(30, 30));
}

#[test]
#[cfg(feature = "llvm-codegen")]
fn llvms_strategies_agree() {
    // Few, as LLVM's own passes take seconds.
    sweep_axes(BackendKind::Llvm, 4);
}

#[test]
#[ignore = "long: 20,000 kernels"]
fn engines_agree_on_many_random_kernels() {
    sweep(&every(), 0..20_000, 8);
}

/// An engine that spoils a word of memory in programs with an `xor`.
struct Spoiler(Box<dyn Machine>);

struct Spoilt(Box<dyn Loaded>);

impl Machine for Spoiler {
    fn load(&mut self, text: &str, platform: Platform) -> Result<Box<dyn Loaded>, Stop> {
        let loaded = self.0.load(text, platform)?;
        Ok(if text.contains("xor (") {
            Box::new(Spoilt(loaded))
        } else {
            loaded
        })
    }
}

impl Loaded for Spoilt {
    fn run(&self, launch: &Launch) -> Outcome {
        let mut surfaces = self.0.run(launch)?;
        surfaces[visa_fuzzing::kernels::MEMORY][40] ^= 1;
        Ok(surfaces)
    }
}

/// What a mismatch leads to: one instruction is left, in a file that the file tests' driver takes and that holds on
/// sound engines.
#[test]
fn a_failing_kernel_becomes_a_small_file_test() {
    let interp = named(&["interp"])[0];
    let mut machines: Machines = vec![
        ("interp", interp.make()),
        ("spoiler", Box::new(Spoiler(interp.make()))),
    ];
    let (sound, _) = machines.split_at_mut(1);
    let runs = |seed: &u64| {
        let k = kernel(*seed);
        let text = k.text();
        text.contains("xor (")
            && text.contains("goto")
            && outcome(&mut *sound[0].1, &k, &k.launch(seed * 64)).is_ok()
    };
    let seed = (0..).find(runs).unwrap();
    let s = Mutex::new(Statistics::default());
    let dir = tempfile::tempdir().unwrap();
    check(dir.path(), seed, 1, &mut machines, &s);
    let found = s.into_inner().unwrap().failures;
    assert!(
        found.len() == 1 && found[0].contains("spoiler"),
        "{found:?}"
    );

    let path = dir.path().join(format!("random_{seed}.visaasm"));
    let text = std::fs::read_to_string(path).unwrap();
    let set_up = ["oword_", "movs ", "setp ", "%cr0", "ret "];
    let left = text
        .lines()
        .filter(|l| l.starts_with("    ") && !set_up.iter().any(|s| l.contains(s)))
        .count();
    assert!(text.contains("xor (") && left <= 2, "{text}");
    assert!(kernel(seed).size() > 10 * left);

    let spec = spec::parse(&text).unwrap();
    let mut failures = Vec::new();
    let assertions = run::file(
        "reduced",
        &text,
        &spec,
        &run::Engines::default(),
        &mut failures,
    );
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(assertions >= 2);
}

/// What a kernel's text has of a row: its mnemonic without suffixes.
fn stem(mnemonic: &'static str) -> &'static str {
    match mnemonic.starts_with('.') {
        true => mnemonic,
        false => mnemonic.split('.').next().unwrap_or(""),
    }
}

/// A row that runs takes part by itself, unless it is an exception.
#[test]
fn every_row_that_runs_is_generated() {
    let mut seen = BTreeSet::new();
    let expected = running().filter(|row| exception(row).is_none());
    let expected: BTreeSet<_> = expected.map(|row| stem(row.opcode.mnemonic())).collect();
    for seed in 0..1_500 {
        if expected.iter().all(|name| seen.contains(*name)) {
            break;
        }
        let text = kernel(seed).text();
        seen.extend(mnemonics(&text));
        seen.extend(text.contains(".function").then(|| ".function".to_owned()));
        seen.extend(text.contains("else_0:").then(|| "label:".to_owned()));
    }
    let mut exceptions = BTreeMap::<_, Vec<&str>>::new();
    for row in running() {
        let name = row.opcode.mnemonic();
        match exception(row) {
            None => assert!(seen.contains(stem(name)), "no kernel has a `{name}`"),
            Some(why) => {
                let memory = matches!(
                    row.family,
                    Family::Memory | Family::Svm | Family::Lsc | Family::Sampler
                );
                assert!(!memory, "no kernel has a `{name}`: {why}");
                exceptions.entry(why).or_default().push(name);
            }
        }
    }
    for (why, names) in exceptions {
        println!("not in random kernels, {why}: {}", names.join(" "));
    }
}

fn every() -> Vec<Engine> {
    let mut engines = named(&["interp"]);
    engines.extend(ENGINES.iter().filter(|e| e.name != "interp"));
    engines
}
