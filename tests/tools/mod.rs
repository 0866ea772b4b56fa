//! What profilers and debuggers are told about generated code: lines, symbols, files in their formats.

mod files;
mod gdb;
mod lines;
#[cfg(target_os = "linux")]
mod perf;

use visa_jit::backend::{BackendKind, Choice as _};
use visa_jit::{Engine, EngineOptions, Kernel};

/// Compiled from `tests/tools/lines.cl` with debug information.
const ZEBIN: &[u8] = include_bytes!("lines.zebin");

fn options(backend: BackendKind) -> EngineOptions {
    let mut options = EngineOptions {
        memory_bytes: 1 << 30,
        ..EngineOptions::default()
    };
    options.strategy.backend = backend;
    options
}

/// The code generators of this build.
fn backends() -> Vec<BackendKind> {
    let all = BackendKind::ALL.iter().copied();
    all.filter(|b| cfg!(feature = "llvm-codegen") || *b == BackendKind::Cranelift)
        .collect()
}

fn kernel(engine: &Engine) -> Kernel {
    let program = engine.program_from_zebin(ZEBIN, None).unwrap();
    program.kernel("lines").unwrap().clone()
}
