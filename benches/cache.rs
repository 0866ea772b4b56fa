//! The code caches: finding code in memory, loading it from disk, compiling it; and whole runs of the command.
//!
//! `cargo bench --bench cache`

use std::hint::black_box;
use std::process::Command;

use divan::Bencher;
use visa_jit::backend::OobPolicy;
use visa_jit::{DiskCache, Engine, EngineOptions, Program};

const SAXPY: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/tests/kernels/bin/skl/saxpy.zebin"
);

fn main() {
    divan::main();
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
#[divan::bench]
fn in_memory(bencher: Bencher<'_, '_>) {
    let engine = engine(None);
    let program = program(&engine);
    let kernel = program.kernel("saxpy").expect("saxpy");
    bencher.bench_local(|| black_box(kernel.code(OobPolicy::default()).is_ok()));
}

/// Key, file, checks, installation, by an engine that has not seen the kernel.
#[divan::bench]
fn from_disk(bencher: Bencher<'_, '_>) {
    let dir = tempfile::tempdir().expect("a directory");
    let cache = || Some(DiskCache::at(dir.path().join("cache")));
    let first = engine(cache());
    let code = program(&first)
        .kernel("saxpy")
        .map(|k| k.code(OobPolicy::default()));
    assert!(code.is_ok_and(|code| code.is_ok()));
    bencher
        .with_inputs(|| {
            let engine = engine(cache());
            let program = program(&engine);
            (engine, program)
        })
        .bench_local_values(|(engine, program)| {
            let kernel = program.kernel("saxpy").expect("saxpy");
            let found = kernel.code(OobPolicy::default()).is_ok();
            assert_eq!(engine.cache_stats().disk_hits, 1);
            (found, engine, program)
        });
}

/// The same without a cache.
#[divan::bench]
fn compiled(bencher: Bencher<'_, '_>) {
    bencher
        .with_inputs(|| {
            let engine = engine(None);
            let program = program(&engine);
            (engine, program)
        })
        .bench_local_values(|(engine, program)| {
            let kernel = program.kernel("saxpy").expect("saxpy");
            let found = kernel.code(OobPolicy::default()).is_ok();
            (found, engine, program)
        });
}

/// A process that runs saxpy over eight items, from its start to its end.
#[divan::bench(args = ["cold", "warm", "nothing"])]
fn process(bencher: Bencher<'_, '_>, kind: &str) {
    let dir = tempfile::tempdir().expect("a directory");
    let cache = dir.path().join("cache");
    let command = || {
        let mut command = Command::new(env!("CARGO_BIN_EXE_visa-jit"));
        match kind {
            "nothing" => command.arg("--version"),
            _ => command.args([
                "run",
                SAXPY,
                "--kernel",
                "saxpy",
                "--global",
                "8",
                "--arg",
                "zero:32",
                "--arg",
                "zero:32",
                "--arg",
                "f32:2",
                "--threads",
                "1",
            ]),
        };
        match kind {
            "cold" => command.arg("--no-cache"),
            "warm" => command.arg("--cache-dir").arg(&cache),
            _ => &mut command,
        };
        command
    };
    assert!(command().output().is_ok_and(|o| o.status.success()));
    bencher.bench_local(|| command().output().is_ok());
}
