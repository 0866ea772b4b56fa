//! How a code generator does atomics.

use crate::isa::AtomicOp;
use crate::ssa::{AtomicAccess, Function, Op, Space};

/// How an atomic is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atomics {
    /// By the runtime.
    Call,
    /// As a load and a store: nothing else reaches the memory before this thread waits or ends. Threads of a group take turns on
    /// one thread of the host.
    Plain,
    /// By an instruction that is atomic between threads of the host.
    Locked,
}

impl Atomics {
    /// The way of an access. `any_alignment` says that the processor's atomic instructions take it: regions may start anywhere.
    pub(super) const fn of(access: AtomicAccess, any_alignment: bool) -> Atomics {
        match access.space {
            _ if access.op.is_float() || matches!(access.op, AtomicOp::Load) => Atomics::Call,
            Space::Slm | Space::Scratch | Space::Regs => Atomics::Plain,
            Space::Surface | Space::Flat if any_alignment => Atomics::Locked,
            Space::Surface | Space::Flat | Space::Args => Atomics::Call,
        }
    }
}

/// Most atomics of vectors in a function that have straight code for all lanes beside their loop.
const MOST_STRAIGHT: usize = 8;

/// True if a function has so few atomics that they may take more code.
pub(super) fn few(f: &Function) -> bool {
    let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
    let atomics = insts.filter(|&&i| matches!(f.inst(i).op, Op::Atomic(_)));
    let vectors = atomics.filter(|&&i| !f.ty(f.inst(i).args[1]).is_scalar());
    vectors.take(MOST_STRAIGHT + 1).count() <= MOST_STRAIGHT
}
