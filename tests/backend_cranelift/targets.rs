//! Targets that there is no code generator for.

use visa_jit::backend::BackendError;
use visa_jit::backend::cranelift::CraneliftBackend;

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
