//! How a code generator does atomics, and which of their results anybody reads.

use crate::isa::AtomicOp;
use crate::ssa::{AtomicAccess, Function, Op, Space, Value};

/// How an atomic is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Atomics {
    /// By the runtime.
    Call,
    /// As a load and a store: nobody else reaches the memory before this thread waits or ends. Threads of a group take turns on
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

/// Whether each value is read anywhere; nothing in functions without atomics.
pub(super) fn read_values(f: &Function) -> Vec<bool> {
    let insts = || f.order.iter().flat_map(|&b| &f.block(b).insts);
    if !insts().any(|&i| matches!(f.inst(i).op, Op::Atomic(_))) {
        return Vec::new();
    }
    let mut read = vec![false; f.values.len()];
    let mut see = |v: Value| read[v.0 as usize] = true;
    for &i in insts() {
        f.inst(i).args.iter().copied().for_each(&mut see);
    }
    for &b in &f.order {
        let term = &f.block(b).term;
        term.condition().into_iter().for_each(&mut see);
        for call in term.targets() {
            call.args.iter().copied().for_each(&mut see);
        }
    }
    read
}
