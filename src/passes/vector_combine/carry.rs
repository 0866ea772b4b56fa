//! What says of sums of halves of 64-bit lanes that they have a carry.

use crate::passes::edit::{binary, unary, uniform_const};
use crate::ssa::{BinOp, Conv, Function, ICond, Lane, Op, UnOp, Value};

/// What a carry is of.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Carry {
    /// The low halves, if the test of the carry reads them.
    pub(super) low: Option<Value>,
    /// What they are the sum of. Of a difference, what is subtracted is the second; nothing stands for zero.
    pub(super) of: (Option<Value>, Value),
}

/// A term of a sum; true if it is subtracted.
pub(super) type Term = (Value, bool);

/// A sum that has a carry, as what the carry is of and the other terms, in all ways. The booleans say which kind of carry, and whether all is
/// subtracted.
pub(super) fn with_carry(
    f: &Function,
    v: Value,
    (borrows, negative): (bool, bool),
    depth: usize,
) -> Vec<(Carry, Vec<Term>)> {
    let v = f.resolve(v);
    if let Some((mask, minus)) = one_where(f, v) {
        let carry = carry(f, mask, borrows).filter(|_| (minus != negative) == borrows);
        return carry.map(|carry| (carry, Vec::new())).into_iter().collect();
    }
    let Some(depth) = depth.checked_sub(1) else {
        return Vec::new();
    };
    if let Some(inner) = unary(f, v, UnOp::Neg) {
        return with_carry(f, inner, (borrows, !negative), depth);
    }
    let sum = binary(f, v, BinOp::Add).map(|(a, b)| (a, b, false));
    let difference = || binary(f, v, BinOp::Sub).map(|(a, b)| (a, b, true));
    let Some((a, b, minus)) = sum.or_else(difference) else {
        return Vec::new();
    };
    let (a, b) = ((a, negative), (b, negative != minus));
    let mut all = Vec::new();
    for ((part, negative), other) in [(a, b), (b, a)] {
        let found = with_carry(f, part, (borrows, negative), depth);
        all.extend(found.into_iter().map(|(carry, mut terms)| {
            terms.push(other);
            (carry, terms)
        }));
    }
    all
}

/// The mask where `v` is one, or minus one if the bool says so, and else zero.
pub(super) fn one_where(f: &Function, v: Value) -> Option<(Value, bool)> {
    let data = f.def_inst(v)?;
    let mask = f.resolve(*data.args.first()?);
    let is_mask = f.ty(mask).lane == Lane::I1 && is_half(f, v);
    match data.op {
        Op::Convert(Conv::ZExt) if is_mask => Some((mask, false)),
        Op::Convert(Conv::SExt) if is_mask => Some((mask, true)),
        _ => None,
    }
}

/// The sum or difference that a mask says has a carry.
fn carry(f: &Function, mask: Value, borrows: bool) -> Option<Carry> {
    let data = f.def_inst(mask)?;
    let (Op::ICmp(cond), &[a, b]) = (&data.op, data.args.as_slice()) else {
        return None;
    };
    let (a, b) = (f.resolve(a), f.resolve(b));
    if !is_half(f, a) {
        return None;
    }
    let (more, less) = match cond {
        ICond::Ugt => (a, b),
        ICond::Ult => (b, a),
        ICond::Ne if borrows && uniform_const(f, b) == Some(0) => {
            let of = (None, a);
            return Some(Carry { low: None, of });
        }
        _ => return None,
    };
    if borrows {
        // The difference is above what it was subtracted from, or what is subtracted is.
        let of = subtracted(f, more).filter(|&(x, _)| x == Some(less));
        let of = of.unwrap_or((Some(less), more));
        return Some(Carry { low: None, of });
    }
    let (x, y) = binary(f, less, BinOp::Add)?;
    let (x, y) = (f.resolve(x), f.resolve(y));
    let low = Some(less);
    (more == x || more == y).then_some(Carry {
        low,
        of: (Some(x), y),
    })
}

/// What is subtracted from what, or from zero.
pub(super) fn subtracted(f: &Function, v: Value) -> Option<(Option<Value>, Value)> {
    let known = |x: Value| (uniform_const(f, x) != Some(0)).then(|| f.resolve(x));
    if let Some((x, y)) = binary(f, v, BinOp::Sub) {
        return Some((known(x), f.resolve(y)));
    }
    if let Some(y) = unary(f, v, UnOp::Neg) {
        return Some((None, f.resolve(y)));
    }
    let (a, b) = binary(f, v, BinOp::Add)?;
    match (unary(f, a, UnOp::Neg), unary(f, b, UnOp::Neg)) {
        (_, Some(y)) => Some((known(a), f.resolve(y))),
        (Some(y), _) => Some((known(b), f.resolve(y))),
        _ => None,
    }
}

/// The term without a negation.
pub(super) fn positive(f: &Function, (v, negative): Term) -> Term {
    match unary(f, v, UnOp::Neg) {
        Some(v) => (f.resolve(v), !negative),
        None => (f.resolve(v), negative),
    }
}

pub(super) fn is_half(f: &Function, v: Value) -> bool {
    let ty = f.ty(v);
    ty.lane == Lane::I32 && !ty.is_scalar()
}
