//! How long kernels take to compile, for each code generator: the table in `docs/performance.md`.
//!
//! Each kernel is compiled alone, on one thread and without a cache, for launches of full rows of local ids.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use visa_jit::backend::{BackendKind, Choice as _};
use visa_jit::{Engine, EngineOptions, Kernel, Launch};

use crate::agree::containers;

/// Times that a kernel is compiled; the shortest counts.
const ROUNDS: usize = 3;

/// A kernel's instructions of vISA, and the time that it takes.
type Sample = (usize, Duration);

/// Every kernel of every container below the folders.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let mut files = Vec::new();
    for folder in arguments {
        containers(PathBuf::from(folder), &mut files)?;
    }
    files.sort();
    if files.is_empty() {
        return Err("no containers (*.zebin, *.bin) there".to_owned());
    }
    let title =
        "| code generator | kernels | median | p90 | p99 | worst | per instruction, median | p90 |";
    println!("{title}\n|{}", "---|".repeat(8));
    for &backend in BackendKind::ALL {
        if let Err(why) = Engine::with_options(options(backend)) {
            eprintln!("{} is left out: {why}", backend.name());
            continue;
        }
        let mut samples = Vec::new();
        for file in &files {
            match compiled(backend, file) {
                Ok(found) => samples.extend(found),
                Err(why) => eprintln!("{}: {why}", file.display()),
            }
        }
        if !samples.is_empty() {
            println!("{}", row(backend.name(), &samples));
        }
    }
    Ok(())
}

fn options(backend: BackendKind) -> EngineOptions {
    let mut options = EngineOptions::default();
    options.strategy.backend = backend;
    options
}

fn compiled(backend: BackendKind, file: &Path) -> Result<Vec<Sample>, String> {
    let said = |e: visa_jit::Error| e.to_string();
    let mut best: Vec<Option<Sample>> = Vec::new();
    for _ in 0..ROUNDS {
        // A new engine each time, because an engine keeps what it has compiled.
        let engine = Engine::with_options(options(backend)).map_err(said)?;
        let bytes = std::fs::read(file).map_err(|e| e.to_string())?;
        let program = engine.program_from_zebin(&bytes, None).map_err(said)?;
        best.resize(program.kernels().len(), None);
        for (kernel, best) in program.kernels().iter().zip(&mut best) {
            let new = sample(kernel);
            *best = match (*best, new) {
                (Some(old), Some(new)) => Some(if new.1 < old.1 { new } else { old }),
                (old, new) => old.or(new),
            };
        }
    }
    Ok(best.into_iter().flatten().collect())
}

/// None where the kernel is not compiled.
fn sample(kernel: &Kernel) -> Option<Sample> {
    let instructions = kernel.valid()?.module().insts.len();
    let row = match kernel.required_local_size() {
        Some(local) => local,
        None => [kernel.simd().max(1) * 2, 1, 1],
    };
    let launch = Launch::new(row.map(|n| 4 * n)).local(row);
    let start = Instant::now();
    match kernel.compile_for(&launch) {
        Ok(()) => Some((instructions.max(1), start.elapsed())),
        Err(e) => {
            eprintln!("{}: {e}", kernel.name());
            None
        }
    }
}

fn row(name: &str, samples: &[Sample]) -> String {
    let mut times: Vec<f64> = samples.iter().map(|s| s.1.as_secs_f64() * 1e3).collect();
    let mut each: Vec<f64> = samples
        .iter()
        .map(|s| s.1.as_secs_f64() * 1e6 / s.0 as f64)
        .collect();
    times.sort_by(f64::total_cmp);
    each.sort_by(f64::total_cmp);
    let of = |sorted: &[f64], percent: usize| sorted[(sorted.len() - 1) * percent / 100];
    format!(
        "| {name} | {} | {:.1} ms | {:.1} ms | {:.1} ms | {:.0} ms | {:.0} µs | {:.0} µs |",
        samples.len(),
        of(&times, 50),
        of(&times, 90),
        of(&times, 99),
        of(&times, 100),
        of(&each, 50),
        of(&each, 90),
    )
}
