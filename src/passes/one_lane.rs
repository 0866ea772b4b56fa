//! A store that enables at most one lane becomes a scalar store.
//!
//! The kernel's compiler writes an array in registers lane by lane: `(P) mov (M1, 16) r[A0(k),0]<1> V(k)<0;1,0>`, where `P` is a
//! constant with bit `k` alone. Each is a masked store of 16 lanes, 15 of which are never enabled.
//!
//! Guarantees: the lane writes the same element under the same condition; no other lane could be enabled.
//!
//! Not done: other memory than registers. An access out of bounds there is reported with its lane, which a scalar store does not have.

use super::edit::{Rewriter, binary, const_lanes};
use crate::ssa::dom::reverse_post_order;
use crate::ssa::{BinOp, BlockAccess, Conv, Function, Inst, Op, Space, Ty, Value};

/// Depth to which the operands of masks and addresses are followed.
const DEPTH: usize = 4;

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let order = reverse_post_order(f);
    let mut rewriter = Rewriter::new(f);
    for b in order {
        rewriter.block(b, |r, i| {
            let Some((access, lane)) = one_lane(r.f, i) else {
                return true;
            };
            let args = r.f.inst(i).args.clone();
            let args = args.into_iter().map(|v| pick(r, v, lane, DEPTH)).collect();
            r.effect(Op::BlockStore(access), args);
            r.changes += 1;
            false
        });
    }
    rewriter.changes
}

/// The scalar store that this store of several lanes is, and the lane that can be enabled.
fn one_lane(f: &Function, i: Inst) -> Option<(BlockAccess, u16)> {
    let data = f.inst(i);
    let Op::Store(access) = data.op else {
        return None;
    };
    let mask = data.args[0];
    if access.space != Space::Regs || access.comps != 1 || f.ty(mask).is_scalar() {
        return None;
    }
    let lanes = possible(f, mask, DEPTH);
    (lanes.count_ones() == 1).then(|| {
        let block = BlockAccess {
            space: access.space,
            elem: access.elem,
            n: 1,
            site: access.site,
        };
        (block, lanes.trailing_zeros() as u16)
    })
}

/// Lanes of a mask that can be enabled, a bit each.
fn possible(f: &Function, mask: Value, depth: usize) -> u64 {
    let lanes = f.ty(mask).lanes;
    let all = u64::MAX >> (64 - lanes.clamp(1, 64));
    if let Some(bits) = const_lanes(f, mask) {
        let bits = bits.iter().enumerate().map(|(i, bit)| (bit & 1) << i);
        return bits.fold(0, |all, bit| all | bit);
    }
    match (binary(f, mask, BinOp::And), depth) {
        (Some((a, b)), 1..) => possible(f, a, depth - 1) & possible(f, b, depth - 1),
        _ => all,
    }
}

/// One lane of a value.
fn pick(r: &mut Rewriter, v: Value, lane: u16, depth: usize) -> Value {
    let ty = r.f.ty(v);
    if ty.is_scalar() {
        return v;
    }
    let scalar = Ty::scalar(ty.lane);
    if let Some(lanes) = const_lanes(r.f, v) {
        let bits = lanes[usize::from(lane)];
        return r.constant(scalar, bits);
    }
    let known = r.f.def_inst(v).map(|d| (d.op.clone(), d.args.clone()));
    match known {
        Some((Op::Splat, args)) => args[0],
        // Addresses are a base and a constant for each lane; masks are the execution mask and a constant. An execution mask that is an
        // `and` itself stays one vector, so that `join-stores` finds the lanes of the same mask.
        Some((Op::Binary(op @ (BinOp::Add | BinOp::And)), args))
            if depth > 0 && args.iter().any(|&a| has_known_lane(r.f, a, depth - 1)) =>
        {
            let args = args.iter().map(|&a| pick(r, a, lane, depth - 1)).collect();
            r.emit(Op::Binary(op), args, scalar)
        }
        // They are added in 16 bits, where they wrap, and extended.
        Some((Op::Convert(Conv::ZExt), args)) if depth > 0 => {
            let narrow = pick(r, args[0], lane, depth - 1);
            r.emit(Op::Convert(Conv::ZExt), vec![narrow], scalar)
        }
        _ => r.emit(Op::ExtractLane(lane), vec![v], scalar),
    }
}

/// True for a value of which a lane is another scalar than an element of the whole vector.
fn has_known_lane(f: &Function, v: Value, depth: usize) -> bool {
    if f.ty(v).is_scalar() || const_lanes(f, v).is_some() {
        return true;
    }
    let Some(data) = f.def_inst(v) else {
        return false;
    };
    match data.op {
        Op::Splat => true,
        Op::Binary(BinOp::Add | BinOp::And) | Op::Convert(Conv::ZExt) if depth > 0 => {
            data.args.iter().any(|&a| has_known_lane(f, a, depth - 1))
        }
        _ => false,
    }
}
