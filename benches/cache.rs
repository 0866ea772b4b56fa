//! The code caches: finding code in memory, loading it from disk, compiling it; and whole runs of the command.
//!
//! `cargo bench --bench cache`

use std::hint::black_box;
use std::io::Read;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use visa_jit::backend::OobPolicy;
use visa_jit::{DiskCache, Engine, EngineOptions, Program};
use visa_test_common::bench::{measure, measure_with};

const SAXPY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../tests/kernels/bin/skl/saxpy.zebin"
);

fn main() {
    // `cargo test --benches` only looks whether it starts.
    if std::env::args().any(|arg| arg == "--bench") {
        starts();
        in_memory("in_memory");
        from_disk("from_disk");
        compiled("compiled");
    }
}

fn engine(disk: Option<DiskCache>) -> Engine {
    let options = EngineOptions {
        disk,
        ..EngineOptions::default()
    };
    Engine::with_options(options).expect("an engine")
}

fn program(engine: &Engine) -> Program {
    let bytes = std::fs::read(SAXPY).expect("the kernel is checked in");
    engine.program_from_zebin(&bytes, None).expect("valid")
}

/// A look-up of code that is in memory.
fn in_memory(name: &str) {
    let engine = engine(None);
    let program = program(&engine);
    let kernel = program.kernel("saxpy").expect("saxpy");
    measure(name, || {
        black_box(kernel.code(OobPolicy::default()).is_ok())
    });
}

/// Key, file, checks, installation, by an engine that has not seen the kernel.
fn from_disk(name: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let cache = || Some(DiskCache::at(dir.path().join("cache")));
    let first = engine(cache());
    let code = program(&first)
        .kernel("saxpy")
        .map(|k| k.code(OobPolicy::default()));
    assert!(code.is_ok_and(|code| code.is_ok()));
    measure_with(
        name,
        || {
            let engine = engine(cache());
            let program = program(&engine);
            (engine, program)
        },
        |(engine, program)| {
            let kernel = program.kernel("saxpy").expect("saxpy");
            let found = kernel.code(OobPolicy::default()).is_ok();
            assert_eq!(engine.cache_stats().disk_hits, 1);
            (found, engine, program)
        },
    );
}

/// The same without a cache.
fn compiled(name: &str) {
    measure_with(
        name,
        || {
            let engine = engine(None);
            let program = program(&engine);
            (engine, program)
        },
        |(engine, program)| {
            let kernel = program.kernel("saxpy").expect("saxpy");
            let found = kernel.code(OobPolicy::default()).is_ok();
            (found, engine, program)
        },
    );
}

/// Rounds of [`starts`]; each starts every kind of process once, so that all meet the same noise.
const ROUNDS: usize = 300;

/// Time from starting a process that runs saxpy over eight items to the first byte that it prints: with the code compiled, with
/// the code from the cache, and of a process that only says its version. The time to the launch is that less what the launch
/// itself took, as the program says; printing still counts.
fn starts() {
    let dir = tempfile::tempdir().expect("a directory");
    let cache = dir.path().join("cache");
    let command = |kind: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_visa-jit"));
        if kind == "version" {
            command.arg("--version");
        } else {
            command.args(["run", SAXPY, "--kernel", "saxpy", "--global", "8"]);
            command.args(["--arg", "zero:32", "--arg", "zero:32", "--arg", "f32:2"]);
            command.args(["--print", "0=f32:8"]);
        }
        match kind {
            "cold" => command.arg("--no-cache"),
            "warm" => command.arg("--cache-dir").arg(&cache),
            _ => &mut command,
        };
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let first_byte = |kind: &str| {
        let mut command = command(kind);
        let start = Instant::now();
        let mut child = command.spawn().expect("the command starts");
        let mut byte = [0];
        let read = child.stdout.as_mut().expect("piped").read_exact(&mut byte);
        let time = start.elapsed();
        read.expect("it prints something");
        let output = child.wait_with_output().expect("the command ends");
        assert!(output.status.success(), "{kind}");
        let said = String::from_utf8_lossy(&output.stderr);
        let launch = said.split_once("ran in ").map_or(0.0, |(_, rest)| {
            let number = rest.split_once(" ms").and_then(|(n, _)| n.parse().ok());
            number.expect("milliseconds")
        });
        (time, time - Duration::from_secs_f64(launch / 1000.0))
    };
    let kinds = ["cold", "warm", "version"];
    for kind in kinds {
        first_byte(kind);
    }
    let mut times = kinds.map(|_| Vec::new());
    for _ in 0..ROUNDS {
        for (kind, times) in kinds.iter().zip(&mut times) {
            times.push(first_byte(kind));
        }
    }
    let median = |times: &[(Duration, Duration)], to_launch: bool| {
        let pick = |&(byte, launch)| if to_launch { launch } else { byte };
        let mut times: Vec<Duration> = times.iter().map(pick).collect();
        times.sort();
        times[times.len() / 2]
    };
    for (what, to_launch) in [("first byte", false), ("launch", true)] {
        let medians = times.each_ref().map(|times| median(times, to_launch));
        for (kind, median) in kinds.iter().zip(medians) {
            println!("start to {what}, {kind:8} median of {ROUNDS}: {median:?}");
        }
        let ratio = medians[1].as_secs_f64() / medians[0].as_secs_f64();
        println!("warm start / cold start, to {what}: {ratio:.3}");
    }
}
