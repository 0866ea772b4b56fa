//! Functions that are too large or that no verifier would let through.

use visa_jit::backend::cranelift::CraneliftBackend;
use visa_jit::backend::{Backend, BackendError};
use visa_jit::ssa::eval::{self, Bytes, Inputs, Thread};
use visa_jit::ssa::{BinOp, Function, Lane, Op, Term, Ty, Value};

use crate::cases::payload;
use crate::rig::{NONE, Rig, SPEED, install};
use visa_test_common::Rng;

/// A chain of divisions, each some four hundred Cranelift instructions.
fn divisions(count: usize) -> Function {
    let mut f = Function::new("divisions", 32);
    let entry = Function::ENTRY;
    let ty = Ty::vector(Lane::I64, 32);
    let mut values: Vec<Value> = (0..2).map(|i| payload(&mut f, 256 * i, ty)).collect();
    for i in 0..count {
        let op = Op::Binary([BinOp::SRem, BinOp::Add, BinOp::UDiv][i % 3]);
        let args = values[values.len() - 2..].to_vec();
        values.push(f.push1(entry, op, args, ty, 0));
    }
    let last = values[values.len() - 1];
    f.push(entry, Op::FrameStore(0), vec![last], &[], 0);
    f.frame_bytes = 256;
    f.block_mut(entry).term = Term::Return;
    f
}

#[test]
fn large_functions_are_compiled_in_a_single_pass() {
    let f = divisions(600);
    let code = install(&f, &SPEED);
    let mut rng = Rng::new(41);
    let bytes: Vec<u8> = (0..512).map(|_| rng.bits() as u8).collect();
    let mut rig = Rig::new(1, 256);
    rig.payload.write(&bytes);
    assert_eq!(rig.run(code.entry()), 0);
    let inputs = Inputs {
        payload: bytes,
        ..Inputs::default()
    };
    let mut thread = Thread::new(&f);
    eval::run(&f, &inputs, &mut thread, &mut Bytes::default(), 10_000);
    assert_eq!(rig.frames[0].read(), thread.frame);
}

#[test]
fn larger_functions_are_refused() {
    let made = CraneliftBackend::host()
        .unwrap()
        .compile(&divisions(9000), &NONE);
    assert!(matches!(made, Err(BackendError::TooLarge { .. })));
}

#[test]
fn what_the_verifier_rejects_is_an_internal_error() {
    let backend = CraneliftBackend::host().unwrap();
    let mut open = Function::new("open", 8);
    let mut short = Function::new("short", 8);
    short.push1(Function::ENTRY, Op::Binary(BinOp::Add), vec![], Ty::I32, 0);
    short.block_mut(Function::ENTRY).term = Term::Return;
    let mut early = Function::new("early", 8);
    let v = early.make(Op::Fence, vec![], &[Ty::I32], 0);
    let v = early.inst(v).results[0];
    early.push(Function::ENTRY, Op::FrameStore(0), vec![v], &[], 0);
    early.block_mut(Function::ENTRY).term = Term::Return;
    let mut wide = Function::new("wide", 8);
    wide.push1(
        Function::ENTRY,
        Op::VecConst(vec![1; 40].into()),
        vec![],
        Ty::mask(40),
        0,
    );
    wide.block_mut(Function::ENTRY).term = Term::Return;
    open.push1(Function::ENTRY, Op::Const(1), vec![], Ty::I32, 0);
    for f in [open, short, early, wide] {
        let made = backend.compile(&f, &SPEED);
        assert!(matches!(made, Err(BackendError::Internal { .. })), "{f}");
    }
}
