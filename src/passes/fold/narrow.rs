//! Operations on lanes that are wider than what is kept of them. Compilers extend bytes and shorts before they compute, and cut off the result.

use super::super::edit::{Rewriter, binary as bin, const_lanes, lanes_op, uniform_const};
use super::{Action, Subject, fields};
use crate::ssa::{BinOp, Conv, Function, ICond, Lane, Op, Ty, UnOp, Value};
use Action::{Become, Uniform};

/// How far operations are followed that are computed in short lanes.
const DEPTH: usize = 4;

/// What was extended only to be computed with and cut off again is computed as it was: low bits depend on low bits.
pub(super) fn binary(r: &mut Rewriter, s: &Subject, op: BinOp) -> Option<Action> {
    use BinOp::{Add, And, Mul, Or, Shl, Sub, Xor};
    if s.ty.is_scalar() || s.ty.lane == Lane::I1 {
        // Of a scalar there may be an extension to come.
        return None;
    }
    let args = r.f.def_inst(s.args[0])?.args.clone();
    if matches!(op, BinOp::LShr | BinOp::AShr) {
        return shifted_down(r, s, op, (args[0], args[1]));
    }
    let before = |r: &mut Rewriter, v: Value| {
        let data = r.f.def_inst(v)?;
        let extends = matches!(data.op, Op::Convert(Conv::SExt | Conv::ZExt));
        let x = *data.args.first()?;
        match extends && r.f.ty(x) == s.ty {
            true => Some(x),
            false => fields::cut_off(r, v, s.ty),
        }
    };
    let (a, b) = (args[0], args[1]);
    let x = before(r, a)?;
    let y = match op {
        Shl => {
            let by = uniform_const(r.f, b)? % u64::from(r.f.ty(a).lane.bits());
            if by >= u64::from(s.ty.lane.bits()) {
                return Some(Uniform(0));
            }
            r.constant(s.ty, by)
        }
        Add | Sub | Mul | And | Or | Xor => match before(r, b) {
            Some(y) => y,
            None => {
                const_lanes(r.f, b)?;
                cut(r, b, s.ty)
            }
        },
        _ => return None,
    };
    Some(Become(Op::Binary(op), vec![x, y]))
}

/// A complement or negative of what was extended: as for [`binary`].
pub(super) fn unary(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    if s.ty.is_scalar() || !fits(r.f, s.args[0], s.ty, DEPTH) {
        return None;
    }
    let data = r.f.def_inst(s.args[0])?;
    let (op, x) = (data.op.clone(), data.args[0]);
    let x = cut(r, x, s.ty);
    Some(Become(op, vec![x]))
}

/// An extended number whose bits are moved down has the bits of the number moved down, below those of its extension.
fn shifted_down(
    r: &mut Rewriter,
    s: &Subject,
    op: BinOp,
    (wide, by): (Value, Value),
) -> Option<Action> {
    let data = r.f.def_inst(wide)?;
    let x = *data.args.first()?;
    let (from, bits) = (r.f.ty(x), u64::from(r.f.ty(wide).lane.bits()));
    let by = uniform_const(r.f, by)? % bits;
    let width = u64::from(from.lane.bits());
    let (op, by) = match (&data.op, op) {
        _ if from.lane == Lane::I1 => return None,
        (Op::Convert(Conv::ZExt), _) if by >= width => return Some(Uniform(0)),
        (Op::Convert(Conv::ZExt), _) => (BinOp::LShr, by),
        (Op::Convert(Conv::SExt), BinOp::AShr) => (op, by.min(width - 1)),
        // Copies of the sign come down, and are cut off.
        (Op::Convert(Conv::SExt), _) if by + u64::from(s.ty.lane.bits()) <= width => (op, by),
        _ => return None,
    };
    let by = r.constant(from, by);
    if from == s.ty {
        return Some(Become(Op::Binary(op), vec![x, by]));
    }
    let moved = r.emit(Op::Binary(op), vec![x, by], from);
    let conv = match (from.lane.bits() > s.ty.lane.bits(), op) {
        (true, _) => Conv::Trunc,
        (false, BinOp::LShr) => Conv::ZExt,
        (false, _) => Conv::SExt,
    };
    Some(Become(Op::Convert(conv), vec![moved]))
}

/// True where the low bits of `v` are made of the low bits of what was extended from `ty`, by as many operations as `v` is.
fn fits(f: &Function, v: Value, ty: Ty, depth: usize) -> bool {
    if const_lanes(f, v).is_some() {
        return true;
    }
    let (Some(data), Some(depth)) = (f.def_inst(v), depth.checked_sub(1)) else {
        return false;
    };
    let of = |n: usize| fits(f, data.args[n], ty, depth);
    match data.op {
        Op::Convert(Conv::SExt | Conv::ZExt) => f.ty(data.args[0]) == ty,
        Op::Splat => true,
        Op::Unary(UnOp::Not | UnOp::Neg) => of(0),
        Op::Binary(BinOp::Add | BinOp::Sub | BinOp::And | BinOp::Or | BinOp::Xor) => of(0) && of(1),
        Op::Select => of(1) && of(2),
        _ => false,
    }
}

/// The low bits of what [`fits`].
fn cut(r: &mut Rewriter, v: Value, ty: Ty) -> Value {
    let trunc = Op::Convert(Conv::Trunc);
    if let Some(lanes) = const_lanes(r.f, v) {
        let low = lanes.iter().map(|bits| bits & ty.lane.mask()).collect();
        return r.emit(lanes_op(low), Vec::new(), ty);
    }
    let Some((op, args)) = r.f.def_inst(v).map(|d| (d.op.clone(), d.args.clone())) else {
        return r.emit(trunc, vec![v], ty);
    };
    match op {
        Op::Convert(_) => args[0],
        Op::Splat => {
            let scalar = r.emit(trunc, args, Ty::scalar(ty.lane));
            r.emit(Op::Splat, vec![scalar], ty)
        }
        Op::Select => {
            let [a, b] = [1, 2].map(|n| cut(r, args[n], ty));
            r.emit(op, vec![args[0], a, b], ty)
        }
        _ => {
            let args = args.iter().map(|&a| cut(r, a, ty)).collect();
            r.emit(op, args, ty)
        }
    }
}

/// A select of which only low bits are kept.
pub(super) fn select(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    if s.ty.is_scalar() || s.ty.lane == Lane::I1 || !fits(r.f, s.args[0], s.ty, DEPTH) {
        return None;
    }
    let args = r.f.def_inst(s.args[0])?.args.clone();
    let [a, b] = [1, 2].map(|n| cut(r, args[n], s.ty));
    // The rules for selects look at it next, which they do not at what is emitted.
    Some(Become(Op::Select, vec![args[0], a, b]))
}

/// The integer lane whose bits are all set in this number, and no others.
pub(super) fn lane_of(ones: u64) -> Option<Lane> {
    let lanes = [Lane::I8, Lane::I16, Lane::I32];
    lanes.into_iter().find(|lane| lane.mask() == ones)
}

/// A select, or the complement of a value, with a mask that keeps the bits of a shorter lane.
pub(super) fn kept(r: &mut Rewriter, s: &Subject, low: u64) -> Option<Action> {
    let (v, ty) = (s.args[0], s.ty.with_lane(lane_of(low)?));
    let data = r.f.def_inst(v)?;
    let saves = matches!(data.op, Op::Select | Op::Unary(UnOp::Not));
    if s.ty.is_scalar() || s.ty.lane == Lane::I1 || !saves || !fits(r.f, v, ty, DEPTH) {
        return None;
    }
    let v = cut(r, v, ty);
    Some(Become(Op::Convert(Conv::ZExt), vec![v]))
}

/// A comparison of two numbers that were extended in the same way, or of the low bits of a number with one that was extended from as many bits.
pub(super) fn compared(r: &mut Rewriter, s: &Subject, cond: ICond) -> Option<Action> {
    let (a, b) = (s.args[0], s.args[1]);
    let extended = |r: &Rewriter, v: Value| {
        let data = r.f.def_inst(v)?;
        let ty = r.f.ty(*data.args.first()?);
        let short = !ty.is_scalar() && ty.lane != Lane::I1;
        match data.op {
            Op::Convert(conv @ (Conv::ZExt | Conv::SExt)) if short => {
                Some((conv, data.args[0], ty))
            }
            _ => None,
        }
    };
    if let (Some((conv, x, ty)), Some((other, y, same))) = (extended(r, a), extended(r, b))
        && (conv, ty) == (other, same)
    {
        // What zeros extend is not negative, and a sign's copies keep either order.
        let cond = if conv == Conv::ZExt {
            unsigned(cond)
        } else {
            cond
        };
        return Some(Become(Op::ICmp(cond), vec![x, y]));
    }
    if cond != unsigned(cond) {
        return None;
    }
    for (low_first, low, whole) in [(true, a, b), (false, b, a)] {
        let Some((Conv::ZExt, x, ty)) = extended(r, whole) else {
            continue;
        };
        let Some((low, mask)) = bin(r.f, low, BinOp::And) else {
            continue;
        };
        let same = uniform_const(r.f, mask) == Some(ty.lane.mask());
        if same && fits(r.f, low, ty, DEPTH) {
            let low = cut(r, low, ty);
            let args = if low_first {
                vec![low, x]
            } else {
                vec![x, low]
            };
            return Some(Become(Op::ICmp(cond), args));
        }
    }
    None
}

/// The same order of numbers that are not negative.
const fn unsigned(cond: ICond) -> ICond {
    match cond {
        ICond::Slt => ICond::Ult,
        ICond::Sle => ICond::Ule,
        ICond::Sgt => ICond::Ugt,
        ICond::Sge => ICond::Uge,
        other => other,
    }
}
