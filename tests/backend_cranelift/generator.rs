//! The code generator that these tests are about.

use target_lexicon::Triple;
use visa_jit::backend::cranelift::CraneliftBackend;
use visa_jit::backend::{Backend, CodegenOptions, Gather, OobPolicy};
use visa_jit::ssa::Function;

pub type Generator = CraneliftBackend;

/// For this machine.
pub fn host() -> Generator {
    CraneliftBackend::host().unwrap()
}

/// For this machine's architecture without the features beyond our base, so that what is emulated there runs too.
pub fn base() -> Generator {
    CraneliftBackend::for_triple(Triple::host(), &[]).unwrap()
}

/// Ways to gather other than the usual one.
pub const WAYS: [Gather; 2] = [Gather::Call, Gather::Branch];

/// Compiles a function for AArch64.
pub fn compiles_elsewhere(f: &Function) {
    thread_local! {
        static AARCH64: CraneliftBackend =
            CraneliftBackend::for_triple("aarch64-unknown-linux-gnu".parse().unwrap(), &[]).unwrap();
    }
    let options = CodegenOptions {
        oob: OobPolicy::Trap,
        ..CodegenOptions::default()
    };
    AARCH64.with(|backend| {
        let made = backend.compile(f, &options);
        let object = made.unwrap_or_else(|e| panic!("{e}\n{f}"));
        assert!(!object.code.is_empty());
        assert_eq!(&object.triple, backend.triple());
    });
}
