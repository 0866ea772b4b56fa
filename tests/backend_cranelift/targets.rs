//! Targets other than the host: code is generated, not run.

use visa_jit::backend::cranelift::CraneliftBackend;
use visa_jit::backend::{Backend, BackendError, CodegenOptions, OobPolicy, OptLevel};
use visa_jit::ssa::Function;

/// Compiles a function for AArch64.
pub fn compiles_elsewhere(f: &Function) {
    thread_local! {
        static AARCH64: CraneliftBackend =
            CraneliftBackend::for_triple("aarch64-unknown-linux-gnu".parse().unwrap(), &[]).unwrap();
    }
    let options = CodegenOptions {
        oob: OobPolicy::Trap,
        opt: OptLevel::Speed,
    };
    AARCH64.with(|backend| {
        let made = backend.compile(f, &options);
        let object = made.unwrap_or_else(|e| panic!("{e}\n{f}"));
        assert!(!object.code.is_empty());
        assert_eq!(&object.triple, backend.triple());
    });
}

#[test]
fn unknown_targets_are_environment_errors() {
    for (triple, features) in [
        ("s390x-unknown-linux-gnu", &[][..]),
        ("x86_64-unknown-linux-gnu", &["has_wings"][..]),
    ] {
        let made = CraneliftBackend::for_triple(triple.parse().unwrap(), features);
        assert!(matches!(made, Err(BackendError::Environment { .. })));
    }
}
