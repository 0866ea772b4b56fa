//! What the environment changes in the engines of the tests, for a search by hand.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use visa_jit::backend::{BackendKind, Check, Checks, CodegenEffort, Dispatch, OobPolicy};
use visa_jit::interp::InterpOptions;
use visa_jit::passes::PassOptions;
use visa_jit::passes::pipeline::PASSES;
use visa_jit::{Engine, EngineOptions, Program};

use super::{STATEFUL, Slot, Target, first_difference, is_nan};

/// To find who is to blame for a mismatch, the environment may leave out parts of the compiler:
/// `VISA_JIT_TEST_WITHOUT` is `all` or names passes, separated by commas; `opt` lowers the effort of the code generator.
///
/// `interp` leaves out the comparison with the interpreter.
/// `VISA_JIT_TEST_BACKEND=llvm` compiles with LLVM, in builds that have it; `tier` with Cranelift first and LLVM then; `library` compiles ahead of time, with one policy.
/// `VISA_JIT_TEST_STRIPS=always` runs the pass `strip-start` where it does not pay, too.
/// `VISA_JIT_TEST_DISPATCH=thread` runs a thread to its next barrier a call. `VISA_JIT_TEST_CHECK=memory` checks accesses,
/// `barrier` barriers, `race` accesses that nothing orders, `init` uses of what was never written.
pub(super) fn narrowed() -> EngineOptions {
    let mut options = EngineOptions::default();
    if std::env::var("VISA_JIT_TEST_BACKEND").as_deref() == Ok("llvm") {
        options.strategy = BackendKind::Llvm.into();
    }
    options.tier = tiered();
    options.passes.always_strip = std::env::var("VISA_JIT_TEST_STRIPS").as_deref() == Ok("always");
    if let Ok(name) = std::env::var("VISA_JIT_TEST_CHECK") {
        options = options.check(Checks::parse(&name).unwrap());
    }
    if std::env::var("VISA_JIT_TEST_DISPATCH").as_deref() == Ok("thread") {
        options.strategy.tuning.dispatch = Dispatch::Thread;
    }
    let without = std::env::var("VISA_JIT_TEST_WITHOUT").unwrap_or_default();
    let names = without.split(',');
    for name in names.filter(|name| !name.is_empty() && *name != "interp") {
        match PASSES.iter().find(|pass| pass.0 == name) {
            Some(pass) => drop(options.passes.disabled.insert(pass.0)),
            None if name == "all" => options.passes = PassOptions::none(),
            None if name == "opt" => options.strategy.tuning.codegen = CodegenEffort::None,
            None => panic!("no pass `{name}` to leave out"),
        }
    }
    options
}

fn tiered() -> bool {
    std::env::var("VISA_JIT_TEST_BACKEND").as_deref() == Ok("tier")
}

/// More runs of a launch: once more with the code of the better tier, where there is one. Kernels that keep state are not run again, nor
/// those whose results depend on the order of several workers.
pub(super) fn more_runs(t: &Target, workers: usize) -> Vec<(&'static str, OobPolicy, usize)> {
    if !tiered() || [STATEFUL, "tables"].contains(&t.file) || workers != 1 {
        return Vec::new();
    }
    assert!(t.engine.wait_for_tier(Duration::from_secs(600)));
    vec![("better tier", OobPolicy::ReadZeroSkipWrite, 1)]
}

/// The first byte that another run of a launch left otherwise. Code generators compute different NaNs.
pub(super) fn first_change(a: &[u8], b: &[u8], slot: &Slot) -> Option<usize> {
    let at = first_difference(a, b)?;
    let Slot::Buffer { element, .. } = slot else {
        return Some(at);
    };
    let mut pairs = a.chunks(*element).zip(b.chunks(*element));
    let differ = |(a, b): (&[u8], &[u8])| a != b && !(tiered() && is_nan(a) && is_nan(b));
    pairs.position(differ).map(|index| index * element)
}

/// How the interpreter runs beside compiled code.
pub(super) fn interpreted() -> EngineOptions {
    let options = EngineOptions {
        interpret: Some(InterpOptions::default()),
        ..EngineOptions::default()
    };
    match checks_init() {
        true => options.check(Check::Init),
        false => options,
    }
}

fn checks_init() -> bool {
    std::env::var("VISA_JIT_TEST_CHECK").as_deref() == Ok("init")
}

/// Whether accesses are checked.
pub(super) fn checks() -> bool {
    std::env::var("VISA_JIT_TEST_CHECK").as_deref() == Ok("memory")
}

pub(super) fn from_libraries() -> bool {
    std::env::var("VISA_JIT_TEST_BACKEND").as_deref() == Ok("library")
}

/// The kernels of a zebin, compiled to a shared library and loaded from it.
pub(super) fn library(engine: &Engine, zebin: &Path) -> Program {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("kernels.so");
    let compiled = Command::new(env!("CARGO_BIN_EXE_visa-jit"))
        .arg("compile")
        .args([zebin, Path::new("-o"), &library])
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{}: {errors}", zebin.display());
    Program::open_library(engine, &library).unwrap()
}

pub(super) fn left_out(name: &str) -> bool {
    let without = std::env::var("VISA_JIT_TEST_WITHOUT").unwrap_or_default();
    without.split(',').any(|n| n == name)
}
