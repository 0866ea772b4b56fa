//! Minimum, maximum and the distance of two numbers, from how the hardware's `sel` and compilers write them: a comparison, and a choice between what was compared.
//!
//! Code generators have an instruction for most of them, where a comparison and a choice are three to five. They also see that an address
//! that was limited so is still one. Of integers only: a choice between floats says which of two zeros, and what of a NaN.

use super::super::edit::{Rewriter, binary as bin, unary as un};
use super::{Action, Subject};
use crate::ssa::{BinOp, Function, ICond, Lane, Op, UnOp, Value};

/// `a < b ? a : b`, in each of its spellings. Where both are equal it does not matter which is chosen, so that `<` and `<=` are the same.
pub(super) fn select(f: &Function, s: &Subject) -> Option<Action> {
    let &[mask, set, clear] = s.args.as_slice() else {
        return None;
    };
    if s.ty.lane.is_float() || s.ty.lane == Lane::I1 {
        return None;
    }
    let equal = |mask: Value| {
        let data = f.def_inst(mask).filter(|d| d.op == Op::ICmp(ICond::Eq));
        data.is_some_and(|d| [[set, clear], [clear, set]].contains(&[d.args[0], d.args[1]]))
    };
    // Chosen only where both are the same.
    if bin(f, mask, BinOp::And).is_some_and(|(a, b)| equal(a) || equal(b)) {
        return Some(Action::Same(clear));
    }
    let data = f.def_inst(mask)?;
    let (Op::ICmp(cond), &[a, b]) = (&data.op, data.args.as_slice()) else {
        return None;
    };
    let [a, b] = [a, b].map(|v| f.resolve(v));
    let in_order = (a, b) == (set, clear);
    if !in_order && (b, a) != (set, clear) {
        return None;
    }
    let (of_less, of_more) = match cond {
        ICond::Eq => return Some(Action::Same(clear)),
        ICond::Ne => return Some(Action::Same(set)),
        ICond::Slt | ICond::Sle => (BinOp::SMin, BinOp::SMax),
        ICond::Sgt | ICond::Sge => (BinOp::SMax, BinOp::SMin),
        ICond::Ult | ICond::Ule => (BinOp::UMin, BinOp::UMax),
        ICond::Ugt | ICond::Uge => (BinOp::UMax, BinOp::UMin),
    };
    let op = if in_order { of_less } else { of_more };
    Some(Action::Become(Op::Binary(op), vec![a, b]))
}

/// `a < b ? b - a : a - b`, in each of its spellings: the difference of the larger and the smaller one.
pub(super) fn distance(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let &[mask, set, clear] = s.args.as_slice() else {
        return None;
    };
    if s.ty.lane.is_float() || s.ty.lane == Lane::I1 {
        return None;
    }
    let data = r.f.def_inst(mask)?;
    let (Op::ICmp(cond), &[a, b]) = (&data.op, data.args.as_slice()) else {
        return None;
    };
    let [a, b] = [a, b].map(|v| r.f.resolve(v));
    let difference = |v| difference(r.f, v);
    // If `a` is the larger one, `a - b` is chosen.
    let larger_first = match (difference(set)?, difference(clear)?) {
        (x, y) if x == (a, b) && y == (b, a) => true,
        (x, y) if x == (b, a) && y == (a, b) => false,
        _ => return None,
    };
    let (max, min, more) = match cond {
        ICond::Eq | ICond::Ne => return None,
        ICond::Sgt | ICond::Sge => (BinOp::SMax, BinOp::SMin, true),
        ICond::Slt | ICond::Sle => (BinOp::SMax, BinOp::SMin, false),
        ICond::Ugt | ICond::Uge => (BinOp::UMax, BinOp::UMin, true),
        ICond::Ult | ICond::Ule => (BinOp::UMax, BinOp::UMin, false),
    };
    if more != larger_first {
        return None;
    }
    let larger = r.emit(Op::Binary(max), vec![a, b], s.ty);
    let smaller = r.emit(Op::Binary(min), vec![a, b], s.ty);
    Some(Action::Become(
        Op::Binary(BinOp::Sub),
        vec![larger, smaller],
    ))
}

/// The numbers of which a value is the difference.
fn difference(f: &Function, v: Value) -> Option<(Value, Value)> {
    let of = |(x, y)| (f.resolve(x), f.resolve(y));
    if let Some(pair) = bin(f, v, BinOp::Sub) {
        return Some(of(pair));
    }
    let (x, y) = bin(f, v, BinOp::Add)?;
    let pair = match (un(f, x, UnOp::Neg), un(f, y, UnOp::Neg)) {
        (_, Some(y)) => (x, y),
        (Some(x), None) => (y, x),
        _ => return None,
    };
    Some(of(pair))
}
