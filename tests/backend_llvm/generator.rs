//! The code generator that these tests are about.

use std::cell::Cell;

use visa_jit::backend::llvm::LlvmBackend;
use visa_jit::backend::{Backend, CodegenOptions, Gather, OobPolicy};
use visa_jit::ssa::Function;

pub type Generator = LlvmBackend;

/// For this machine.
pub fn host() -> Generator {
    LlvmBackend::host().unwrap()
}

/// For any x86-64 that we support, so that what is emulated there runs too.
pub fn base() -> Generator {
    LlvmBackend::for_cpu("x86-64-v2", "").unwrap()
}

/// Ways to gather other than the usual one.
pub const WAYS: [Gather; 2] = [Gather::Select, Gather::Call];

/// Compiles a function for another processor of this architecture: code is generated, not run.
pub fn compiles_elsewhere(f: &Function) {
    thread_local! {
        static CALLS: Cell<u32> = const { Cell::new(0) };
        static AVX2: LlvmBackend = LlvmBackend::for_cpu("x86-64-v3", "").unwrap();
    }
    // Compiling takes most of these tests' time.
    let calls = CALLS.replace(CALLS.get() + 1);
    if !calls.is_multiple_of(8) {
        return;
    }
    let options = CodegenOptions {
        oob: OobPolicy::Trap,
        ..CodegenOptions::default()
    };
    AVX2.with(|backend| {
        let made = backend.compile(f, &options);
        let object = made.unwrap_or_else(|e| panic!("{e}\n{f}"));
        assert!(!object.code.is_empty());
    });
}
