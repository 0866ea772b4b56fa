//! Targets other than the host: code is generated, not run.

use visa_jit::backend::cranelift::CraneliftBackend;
use visa_jit::backend::{Backend, BackendError, CodegenOptions, OobPolicy, OptLevel};
use visa_jit::ssa::Function;

/// Compiles a function for AArch64 and for the smallest x86-64 we support.
pub fn compiles_elsewhere(f: &Function) {
    thread_local! {
        static OTHERS: [CraneliftBackend; 2] = ["aarch64-unknown-linux-gnu", "x86_64-unknown-linux-gnu"]
            .map(|t| CraneliftBackend::for_triple(t.parse().unwrap(), &[]).unwrap());
    }
    OTHERS.with(|all| {
        for (backend, opt) in all.iter().zip([OptLevel::Speed, OptLevel::None]) {
            let options = CodegenOptions {
                oob: OobPolicy::Trap,
                opt,
            };
            let made = backend.compile(f, &options);
            let object = made.unwrap_or_else(|e| panic!("{}: {e}\n{f}", backend.triple()));
            assert!(!object.code.is_empty());
            assert_eq!(&object.triple, backend.triple());
        }
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
