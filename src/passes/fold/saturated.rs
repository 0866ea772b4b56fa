//! Saturating sums and differences, from how compilers write them where there is no instruction: a sum that wraps, a test whether it
//! did, and a choice of the bound.
//!
//! A sum wrapped exactly if its sign is neither that of the one operand nor that of the other; a difference, if the signs of its operands
//! differ and its own is not that of the first. Then the sign of the second operand says on which side.

use super::super::edit::{binary as bin, unary as un, uniform_const};
use super::{Action, Subject};
use crate::ssa::{BinOp, Function, ICond, Op, UnOp, Value};

/// `wrapped ? (b > 0 ? bound : other bound) : sum`
pub(super) fn select(f: &Function, s: &Subject) -> Option<Action> {
    let &[wrapped, bound, sum] = s.args.as_slice() else {
        return None;
    };
    if s.ty.lane.is_float() || s.ty.is_scalar() {
        return None;
    }
    let (signs, zero) = compared(f, wrapped, ICond::Slt)?;
    if uniform_const(f, zero) != Some(0) {
        return None;
    }
    let signs = bin(f, signs, BinOp::And)?;
    let (a, b, op) = operands(f, sum)?;
    let orders = [(a, b), (b, a)];
    let found = |&&(a, b): &&(Value, Value)| {
        wraps(f, (a, b), sum, signs, op) && bounds(f, b, bound, s.ty.lane.mask(), op)
    };
    let tried = match op {
        BinOp::SAddSat => &orders[..],
        _ => &orders[..1],
    };
    let &(a, b) = tried.iter().find(found)?;
    Some(Action::Become(Op::Binary(op), vec![a, b]))
}

/// What is added or subtracted.
fn operands(f: &Function, sum: Value) -> Option<(Value, Value, BinOp)> {
    if let Some((a, b)) = bin(f, sum, BinOp::Sub) {
        return Some((a, b, BinOp::SSubSat));
    }
    let (a, b) = bin(f, sum, BinOp::Add)?;
    Some(match (un(f, a, UnOp::Neg), un(f, b, UnOp::Neg)) {
        (_, Some(b)) => (a, b, BinOp::SSubSat),
        (Some(a), None) => (b, a, BinOp::SSubSat),
        _ => (a, b, BinOp::SAddSat),
    })
}

/// True if the sign of `x & y` says whether the sum wrapped.
fn wraps(
    f: &Function,
    (a, b): (Value, Value),
    sum: Value,
    signs: (Value, Value),
    op: BinOp,
) -> bool {
    let of = |v, x, y| {
        let operands = bin(f, v, BinOp::Xor);
        operands == Some((x, y)) || operands == Some((y, x))
    };
    let apart = |v| match op {
        BinOp::SAddSat => un(f, v, UnOp::Not).is_some_and(|same| of(same, a, b)),
        _ => of(v, a, b),
    };
    let (x, y) = signs;
    of(x, a, sum) && apart(y) || of(y, a, sum) && apart(x)
}

/// True for the bound on the side that `b` says.
fn bounds(f: &Function, b: Value, bound: Value, ones: u64, op: BinOp) -> bool {
    let data = f.def_inst(bound).filter(|data| data.op == Op::Select);
    let Some(&[above, x, y]) = data.map(|data| data.args.as_slice()) else {
        return false;
    };
    let Some((tested, zero)) = compared(f, above, ICond::Sgt) else {
        return false;
    };
    let (most, least) = (Some(ones >> 1), Some((ones >> 1) + 1));
    let wanted = match op {
        BinOp::SAddSat => (most, least),
        _ => (least, most),
    };
    let is = (uniform_const(f, x), uniform_const(f, y));
    tested == b && uniform_const(f, zero) == Some(0) && is == wanted
}

fn compared(f: &Function, v: Value, cond: ICond) -> Option<(Value, Value)> {
    let data = f.def_inst(v).filter(|data| data.op == Op::ICmp(cond))?;
    Some((data.args[0], data.args[1]))
}
