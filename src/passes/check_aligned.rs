//! Checks of atomics: in front of each stands an operation that records lanes whose address is no multiple of the element, unless it is known that
//! there are none.
//!
//! Runs where [`super::PassOptions::check_buffers`] asks for it, right before `check-buffers`, so that no optimisation sees these operations
//! and code without them is what it was. Hardware needs such addresses; the atomic itself rounds them down.

use super::edit::Rewriter;
use super::fold::low_zeros;
use crate::ssa::{AlignCheck, BinOp, Function, ICond, Inst, Lane, Op, Ty};

/// Runs the pass.
pub fn run(f: &mut Function) -> usize {
    let order = f.order.clone();
    let mut rewriter = Rewriter::new(f);
    for b in order {
        rewriter.block(b, |r, i| {
            check(r, i);
            true
        });
    }
    rewriter.changes
}

/// Puts a check in front of an instruction, if it is an atomic.
fn check(r: &mut Rewriter, i: Inst) {
    let data = r.f.inst(i);
    let Op::Atomic(access) = data.op else {
        return;
    };
    let count = 2 + usize::from(access.space.has_surface());
    let mut args: Vec<_> = data.args.iter().take(count).copied().collect();
    let &[mask, addr, ..] = args.as_slice() else {
        return;
    };
    if low_zeros(r.f, addr) >= access.elem.bytes().trailing_zeros() {
        return;
    }
    let ty = r.f.ty(addr);
    let bits = Ty::vector(Lane::I1, ty.lanes);
    let low = r.constant(ty, u64::from(access.elem.bytes()) - 1);
    let low = r.emit(Op::Binary(BinOp::And), vec![addr, low], ty);
    let zero = r.constant(ty, 0);
    let odd = r.emit(Op::ICmp(ICond::Ne), vec![low, zero], bits);
    args[0] = r.emit(Op::Binary(BinOp::And), vec![mask, odd], bits);
    let (space, site) = (access.space, access.site);
    r.effect(Op::CheckAligned(AlignCheck { space, site }), args);
    r.changes += 1;
}
