//! Constant distances go outward: `(x + c) + y` becomes `(x + y) + c`, and so through shifts, constant factors and
//! conversions.
//!
//! An address of a lane is mostly one number (group, local id of lane 0, pointer) plus the lane's constant distance. With
//! the distance outermost all before it is scalar arithmetic, and two addresses at a constant distance from each
//! other are seen to have the same scalar. Vectors are rewritten only where what is left is a splat, so that no
//! operation on vectors is added.

use super::super::edit::{Rewriter, binary as bin, const_lanes, lanes_op, uniform_const};
use super::{Action, Subject, range};
use crate::ssa::{BinOp, Conv, Function, Lane, Op, Ty, Value, eval};

/// `number + distances`.
struct Sum {
    /// The scalar that all lanes have in common.
    number: Value,
    /// The constant of each lane.
    distances: Vec<u64>,
}

/// The scalar that all lanes of a value are.
fn number(f: &Function, v: Value) -> Option<Value> {
    if f.ty(v).is_scalar() {
        return Some(v);
    }
    let data = f.def_inst(v).filter(|d| d.op == Op::Splat)?;
    data.args.first().copied()
}

/// `v` as a sum whose number is not constant.
fn split(f: &Function, v: Value) -> Option<Sum> {
    let (x, c) = bin(f, v, BinOp::Add)?;
    let (x, c) = if const_lanes(f, x).is_some() {
        (c, x)
    } else {
        (x, c)
    };
    Some(Sum {
        number: number(f, x).filter(|&n| const_lanes(f, n).is_none())?,
        distances: const_lanes(f, c)?.to_vec(),
    })
}

/// The number that comes out of an operation on scalars, plus distances.
fn rebuilt(
    r: &mut Rewriter,
    s: &Subject,
    op: Op,
    args: Vec<Value>,
    distances: Vec<u64>,
) -> Option<Action> {
    let scalar = r.emit(op, args, Ty::scalar(s.ty.lane));
    let number = if s.ty.is_scalar() {
        scalar
    } else {
        r.emit(Op::Splat, vec![scalar], s.ty)
    };
    let c = r.emit(lanes_op(distances), Vec::new(), s.ty);
    Some(Action::Become(Op::Binary(BinOp::Add), vec![number, c]))
}

/// Rules for sums, differences, shifts and products.
pub(super) fn binary(r: &mut Rewriter, s: &Subject, op: BinOp) -> Option<Action> {
    if s.ty.lane == Lane::I1 {
        return None;
    }
    let (a, b) = (s.args[0], s.args[1]);
    let constant = const_lanes(r.f, b).is_some();
    match op {
        BinOp::Add if !constant && const_lanes(r.f, a).is_none() => {
            let (numbers, distances) = match (split(r.f, a), split(r.f, b)) {
                (Some(x), Some(y)) => {
                    let both = x.distances.iter().zip(&y.distances);
                    let sums = both.map(|(c, d)| c.wrapping_add(*d) & s.ty.lane.mask());
                    (vec![x.number, y.number], sums.collect())
                }
                (Some(x), None) => (vec![x.number, number(r.f, b)?], x.distances),
                (None, Some(y)) => (vec![number(r.f, a)?, y.number], y.distances),
                (None, None) => return None,
            };
            rebuilt(r, s, s.op.clone(), numbers, distances)
        }
        BinOp::Sub if !constant => {
            let x = split(r.f, a)?;
            let args = vec![x.number, number(r.f, b)?];
            rebuilt(r, s, s.op.clone(), args, x.distances)
        }
        BinOp::Mul | BinOp::Shl => {
            let factor = uniform_const(r.f, b)?;
            let x = split(r.f, a)?;
            let distances = mapped(&s.op, s.ty, s.ty, &x.distances, Some(factor));
            let factor = r.constant(Ty::scalar(s.ty.lane), factor);
            rebuilt(r, s, s.op.clone(), vec![x.number, factor], distances)
        }
        _ => None,
    }
}

/// Rules for conversions: truncations always, extensions where no lane wraps before.
pub(super) fn convert(r: &mut Rewriter, s: &Subject, conv: Conv) -> Option<Action> {
    let from = r.f.ty(s.args[0]);
    if from.lane == Lane::I1 || s.ty.lane == Lane::I1 {
        return None;
    }
    let limit = match conv {
        // Of a scalar there may be an extension to come, and the two are an `and`.
        Conv::Trunc if s.ty.is_scalar() => return None,
        Conv::Trunc => None,
        Conv::ZExt => Some(from.lane.mask()),
        Conv::SExt => Some(from.lane.mask() >> 1),
        _ => return None,
    };
    let x = split(r.f, s.args[0])?;
    if let Some(limit) = limit {
        let farthest = x.distances.iter().copied().max()?;
        let highest = range::most(r.f, x.number).checked_add(farthest)?;
        if highest > limit {
            return None;
        }
    }
    let distances = mapped(&s.op, from, s.ty, &x.distances, None);
    rebuilt(r, s, s.op.clone(), vec![x.number], distances)
}

/// An operation on constants.
fn mapped(op: &Op, from: Ty, to: Ty, lanes: &[u64], second: Option<u64>) -> Vec<u64> {
    let second = second.map(|bits| vec![bits; lanes.len()]);
    let mut args: Vec<(Ty, &[u64])> = vec![(from, lanes)];
    args.extend(second.as_deref().map(|bits| (from, bits)));
    eval::pure_op(op, &args, to)
}
