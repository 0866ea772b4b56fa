//! What the backend makes of a function: bytes, lines, passes.

use visa_jit::backend::llvm::LlvmBackend;
use visa_jit::backend::{Backend, BackendError, Choice as _, CodegenOptions, OptLevel};

use crate::rig::{NONE, Rig, SPEED, function, install};

const ADD: &str = r#"function "add" simd 8 frame 64

bb0:
  %0: <8 x i32> = input.payload[0]
  %1: <8 x i32> = input.payload[32]
  %2: <8 x i32> = add %0, %1
  framestore[0] %2
  return
"#;

/// Every level of LLVM's passes and of its code generation.
fn levels() -> Vec<CodegenOptions> {
    let each = |options: &CodegenOptions| {
        let options = options.clone();
        let levels = OptLevel::ALL.iter();
        levels.map(move |&level| options.tuned(|t| t.opt = level))
    };
    [NONE, SPEED].iter().flat_map(each).collect()
}

#[test]
fn every_level_computes_the_same() {
    let f = function(ADD);
    for options in levels() {
        let code = install(&f, &options);
        let mut rig = Rig::new(3, 64);
        let words: Vec<u8> = (0..16u32).flat_map(|i| (i * i).to_le_bytes()).collect();
        rig.payload.write(&words);
        assert_eq!(rig.run(code.entry()), 0, "{options:?}");
        for frame in &rig.frames {
            let out = frame.read();
            for i in 0..8u32 {
                let at = 4 * i as usize;
                let got = u32::from_le_bytes(out[at..at + 4].try_into().unwrap());
                assert_eq!(got, i * i + (i + 8) * (i + 8), "{options:?}");
            }
        }
    }
}

#[test]
fn a_vector_is_one_value() {
    let ir = LlvmBackend::host().unwrap().ir(&function(ADD), &SPEED);
    let ir = ir.unwrap();
    assert!(ir.contains("add <8 x i32>"), "{ir}");
}

#[test]
fn unknown_processors_are_environment_errors() {
    let made = LlvmBackend::for_cpu("abacus", "-sse4.1");
    assert!(matches!(made, Err(BackendError::Environment { .. })));
}

#[test]
fn code_has_the_backends_name() {
    let object = LlvmBackend::host().unwrap().compile(&function(ADD), &SPEED);
    let object = object.unwrap();
    assert_eq!(object.backend, "llvm");
    assert!(object.align >= 16 && !object.code.is_empty());
}
