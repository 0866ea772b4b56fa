//! Functions that are large, or that no verifier would let through.

use visa_jit::backend::llvm::LlvmBackend;
use visa_jit::backend::{Backend, BackendError};
use visa_jit::ssa::eval::{self, Bytes, Inputs, Thread};
use visa_jit::ssa::{BinOp, Function, Input, Lane, Op, Term, Ty};
use visa_runtime::CodeHandle;

use crate::rig::{NONE, Rig, SPEED};

#[test]
fn what_the_verifier_rejects_is_an_internal_error() {
    let backend = LlvmBackend::host().unwrap();
    let mut open = Function::new("open", 8);
    open.push1(Function::ENTRY, Op::Const(1), vec![], Ty::I32, 0);
    let mut short = Function::new("short", 8);
    short.push1(Function::ENTRY, Op::Binary(BinOp::Add), vec![], Ty::I32, 0);
    short.block_mut(Function::ENTRY).term = Term::Return;
    let mut early = Function::new("early", 8);
    let v = early.make(Op::Fence, vec![], &[Ty::I32], 0);
    let v = early.inst(v).results[0];
    early.push(Function::ENTRY, Op::FrameStore(0), vec![v], &[], 0);
    early.block_mut(Function::ENTRY).term = Term::Return;
    for f in [open, short, early] {
        let made = backend.compile(&f, &SPEED);
        assert!(matches!(made, Err(BackendError::Internal { .. })), "{f}");
    }
}

/// A chain of additions and rotations, of a given number of vectors.
fn chain(count: usize) -> Function {
    let mut f = Function::new("chain", 16);
    let entry = Function::ENTRY;
    let ty = Ty::vector(Lane::I32, 16);
    let mut values: Vec<_> = (0..8)
        .map(|i| f.push1(entry, Op::Input(Input::Payload(64 * i)), vec![], ty, 0))
        .collect();
    for i in 0..count {
        let op = Op::Binary([BinOp::Add, BinOp::Rotl, BinOp::Xor][i % 3]);
        let args = vec![values[values.len() - 1], values[values.len() - 8]];
        values.push(f.push1(entry, op, args, ty, 0));
    }
    let last = values[values.len() - 1];
    f.push(entry, Op::FrameStore(0), vec![last], &[], 0);
    f.frame_bytes = 64;
    f.block_mut(entry).term = Term::Return;
    f
}

#[test]
fn large_functions_are_compiled_with_less_effort_and_say_so() {
    let backend = LlvmBackend::host().unwrap();
    let small = backend.compile(&chain(300), &SPEED).unwrap();
    assert_eq!(small.note, None);
    let f = chain(6000);
    let large = backend.compile(&f, &SPEED).unwrap();
    let note = large.note.clone().unwrap();
    assert!(note.contains("in a block"), "{note}");
    let code = CodeHandle::install(&large.code, large.align).unwrap();
    let mut rig = Rig::new(1, 64);
    let bytes: Vec<u8> = (0..512u32).map(|i| (i * 37) as u8).collect();
    rig.payload.write(&bytes);
    assert_eq!(rig.run(code.entry()), 0);
    let inputs = Inputs {
        payload: bytes,
        ..Inputs::default()
    };
    let mut thread = Thread::new(&f);
    eval::run(&f, &inputs, &mut thread, &mut Bytes::default(), 100_000);
    assert_eq!(rig.frames[0].read(), thread.frame);
}

#[test]
#[ignore = "prints the times that the limits are chosen by"]
fn time_by_length_of_block() {
    let backend = LlvmBackend::host().unwrap();
    for count in [300, 1000, 2000, 4000, 4900, 6000, 20_000] {
        let f = chain(count);
        for (level, options) in [("none", NONE), ("speed", SPEED)] {
            let start = std::time::Instant::now();
            let object = backend.compile(&f, &options).unwrap();
            let time = start.elapsed().as_secs_f64() * 1e3;
            let each = time * 1e3 / count as f64;
            let bytes = object.code.len();
            println!("{count:>6} {level:>6} {time:>9.1} ms {each:>7.1} us each {bytes:>8} bytes");
        }
    }
}
