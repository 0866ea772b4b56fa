//! Checks: kernels with one planted error and the same kernels without it, on compiled code and on the interpreter, which defines what is
//! found.

mod alignment;
mod barriers;
mod inits;
mod invariant;
mod limits;
mod memory;
mod races;
mod read_only;
mod schedules;
mod views;

use std::collections::BTreeMap;
use std::sync::Mutex;

use visa_jit::backend::{BackendKind, Checks, Strategy};
use visa_jit::engine::Suppressions;
use visa_jit::{Engine, EngineOptions, FaultRecord, Kernel, Program, Report};

/// Devices that the sources are compiled for, and today's compiler (`-26`).
const FILES: [&str; 5] = ["skl", "bmg-26", "acm-g10", "pvc", "pvc-26"];

/// All, or one in a plain run: what the OpenCL driver takes by itself.
fn files() -> &'static [&'static str] {
    if visa_test_common::full() {
        &FILES
    } else {
        &FILES[1..2]
    }
}

/// All, or one for each compiler in a plain run: for cases that [take turns](has_turn).
fn files_in_turn() -> &'static [&'static str] {
    if visa_test_common::full() {
        &FILES
    } else {
        &FILES[..2]
    }
}

/// Whether case `n` runs on a file: a plain run takes every third case, and the files take turns.
fn has_turn(n: usize, file: &str) -> bool {
    let turn = || n.is_multiple_of(3) && files_in_turn()[n / 3 % files_in_turn().len()] == file;
    visa_test_common::full() || turn()
}

/// The code generator: `VISA_JIT_TEST_BACKEND=llvm` is LLVM, in builds that have it.
fn strategy() -> Strategy {
    match std::env::var("VISA_JIT_TEST_BACKEND").as_deref() {
        Ok("llvm") => BackendKind::Llvm.into(),
        _ => Strategy::default(),
    }
}

/// An engine that checks, or does not; the interpreter's or the compiler's.
fn engine(check: impl Into<Checks>, interpret: bool) -> Engine {
    engine_without(check, interpret, "")
}

/// An engine that leaves out what rules say.
fn engine_without(check: impl Into<Checks>, interpret: bool, rules: &str) -> Engine {
    let options = EngineOptions {
        interpret: interpret.then(Default::default),
        strategy: strategy(),
        memory_bytes: 1 << 30,
        suppress: Suppressions::parse(rules).unwrap(),
        ..EngineOptions::default()
    };
    Engine::with_options(options.check(check)).unwrap()
}

fn bytes_of(file: &str) -> Vec<u8> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/checks");
    std::fs::read(format!("{path}/{file}.zebin")).unwrap()
}

/// Every test has several engines with the same few files, and to read one takes longer than most launches.
fn program_of(engine: &Engine, file: &str) -> Program {
    static READ: Mutex<BTreeMap<String, Program>> = Mutex::new(BTreeMap::new());
    let mut read = READ.lock().unwrap();
    let first = read.entry(file.to_owned()).or_insert_with(|| {
        let memory_bytes = 1 << 20;
        let options = EngineOptions {
            memory_bytes,
            ..EngineOptions::default()
        };
        let engine = Engine::with_options(options).unwrap();
        engine.program_from_zebin(&bytes_of(file), None).unwrap()
    });
    first.on(engine).unwrap()
}

fn kernel(engine: &Engine, file: &str, name: &str) -> Kernel {
    program_of(engine, file).kernel(name).unwrap().clone()
}

/// An engine with the kernels of a file.
struct On {
    engine: Engine,
    program: Program,
}

impl On {
    fn new(engine: Engine, file: &str) -> On {
        let program = program_of(&engine, file);
        On { engine, program }
    }
}

/// What all records stand for: one instruction of the source may be two of the kernel.
fn counted(report: &Report) -> u64 {
    let of = |f: &FaultRecord| ((f.site, f.kind), f.count.unwrap());
    let sites: BTreeMap<_, u64> = report.faults.iter().map(of).collect();
    sites.into_values().sum()
}
