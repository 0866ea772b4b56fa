//! Functions that no verifier would let through.

use visa_jit::backend::llvm::LlvmBackend;
use visa_jit::backend::{Backend, BackendError};
use visa_jit::ssa::{BinOp, Function, Op, Term, Ty};

use crate::rig::SPEED;

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
