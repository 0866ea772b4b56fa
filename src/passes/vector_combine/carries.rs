//! Sums and differences of 64-bit lanes, from those of their halves.
//!
//! `low = a + b`, `high = c + d + carry` is one sum. The carry is one where `low` is less than a term; of a difference, `high` is less by one where
//! `a` is less than `b`. A half beside zeros is an extension.
//!
//! Not done: sums of which no term is whole already, such as those of numbers of more than two words that were loaded word by word.

use rustc_hash::FxHashMap;

use super::halves::{extended, together};
use super::wide_products::users;
use crate::passes::edit::{Rewriter, binary, replace_by_block, unary, uniform_const};
use crate::ssa::{BinOp, Conv, Function, ICond, Inst, Lane, Op, Ty, UnOp, Value};

/// Operations from a sum of high halves to the carry.
const DEPTH: usize = 3;

/// What a carry is of.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Carry {
    /// The low halves, if the test of the carry reads them.
    low: Option<Value>,
    /// What they are the sum of. Of a difference, what is subtracted is the second; nothing stands for zero.
    of: (Option<Value>, Value),
}

/// A term of a sum; true if it is subtracted.
type Term = (Value, bool);

/// What is known in a block.
#[derive(Default)]
struct Known {
    /// Differences of 32-bit lanes, by what is subtracted from what.
    differences: FxHashMap<(Option<Value>, Value), Inst>,
    /// Sums of low halves.
    sums: FxHashMap<Value, Inst>,
}

/// Replaces both halves of such sums.
pub(super) fn run(f: &mut Function) -> usize {
    let users = users(f);
    replace_by_block(f, |r, known: &mut Known, i| {
        let result = *r.f.inst(i).results.first()?;
        if !is_half(r.f, result) {
            return None;
        }
        if let Some(of) = subtracted(r.f, result) {
            known.differences.insert(of, i);
        }
        if binary(r.f, result, BinOp::Add).is_some() {
            known.sums.insert(result, i);
        }
        [false, true].into_iter().find_map(|borrows| {
            let found = with_carry(r.f, result, (borrows, false), DEPTH);
            found.into_iter().find_map(|(carry, terms)| {
                let user = users.get(&result).copied().flatten();
                let part = user.is_some_and(|sum| is_part(r.f, borrows, carry, sum));
                let whole = !terms.is_empty() && !part;
                whole.then(|| sum(r, known, borrows, carry, &terms))?
            })
        })
    })
}

/// True if a sum of more terms is the one with this carry, and what was added no carry: then that sum is made of all of them in a moment.
fn is_part(f: &Function, borrows: bool, of: Carry, sum: Value) -> bool {
    let is_carry = |&term: &Term| one_where(f, positive(f, term).0).is_some();
    let all = with_carry(f, sum, (borrows, false), DEPTH);
    let same = |(carry, terms): &(Carry, Vec<Term>)| *carry == of && !terms.iter().any(is_carry);
    all.iter().any(same)
}

fn is_half(f: &Function, v: Value) -> bool {
    let ty = f.ty(v);
    ty.lane == Lane::I32 && !ty.is_scalar()
}

/// Replaces the low halves, if they are found, and gives the high ones.
fn sum(
    r: &mut Rewriter,
    known: &mut Known,
    borrows: bool,
    carry: Carry,
    terms: &[Term],
) -> Option<Value> {
    let low = match borrows {
        true => known.differences.get(&carry.of),
        false => carry.low.and_then(|low| known.sums.get(&low)),
    };
    let make = |r: &mut Rewriter| {
        let highs = highs(r, borrows, terms)?;
        let wide = highs.into_iter().find_map(|(p, q)| {
            let (x, y) = carry.of;
            let ty = r.f.ty(y);
            Some((whole(r, ty, x, p)?, whole(r, ty, Some(y), q)?))
        })?;
        Some(halves_of_sum(r, borrows, wide))
    };
    if let Some(&low) = low
        && let Some([new, high]) = r.instead_of(low, make)
    {
        let old = r.f.inst(low).results[0];
        r.f.replace(old, new);
        known.sums.remove(&old);
        known.differences.retain(|_, i| *i != low);
        return Some(high);
    }
    make(r).map(|[_, high]| high)
}

/// The 64-bit sum or difference in two halves.
fn halves_of_sum(r: &mut Rewriter, borrows: bool, (x, y): (Value, Value)) -> [Value; 2] {
    let wide = r.f.ty(x);
    let narrow = wide.with_lane(Lane::I32);
    let op = if borrows { BinOp::Sub } else { BinOp::Add };
    let sum = r.emit(Op::Binary(op), vec![x, y], wide);
    let low = r.emit(Op::Convert(Conv::Trunc), vec![sum], narrow);
    let count = r.constant(wide, 32);
    let upper = r.emit(Op::Binary(BinOp::LShr), vec![sum, count], wide);
    let high = r.emit(Op::Convert(Conv::Trunc), vec![upper], narrow);
    [low, high]
}

/// What the high halves of both operands may be, from the terms of the sum without the carry; nothing for zero.
fn highs(
    r: &mut Rewriter,
    borrows: bool,
    terms: &[Term],
) -> Option<Vec<(Option<Value>, Option<Value>)>> {
    let terms: Vec<Term> = terms.iter().map(|&t| positive(r.f, t)).collect();
    match (borrows, terms.as_slice()) {
        (false, &[(p, false)]) => {
            let mut all = vec![(Some(p), None), (None, Some(p))];
            if let Some((a, b)) = binary(r.f, p, BinOp::Add) {
                all.extend([(Some(a), Some(b)), (Some(b), Some(a))]);
            }
            Some(all)
        }
        (false, &[(p, false), (q, false)]) => Some(vec![(Some(p), Some(q)), (Some(q), Some(p))]),
        (true, &[(p, false)]) => {
            let mut all = vec![(Some(p), None)];
            all.extend(subtracted(r.f, p).map(|(a, b)| (a, Some(b))));
            Some(all)
        }
        (true, &[(q, true)]) => Some(vec![(None, Some(q))]),
        (true, &[(p, false), (q, true)] | &[(q, true), (p, false)]) => {
            Some(vec![(Some(p), Some(q))])
        }
        // A constant was subtracted.
        (true, &[(p, false), (k, false)]) => {
            let (p, k) = if uniform_const(r.f, k).is_some() {
                (p, k)
            } else {
                (k, p)
            };
            let minus = uniform_const(r.f, k)?.wrapping_neg() & Lane::I32.mask();
            let ty = r.f.ty(p);
            let minus = r.constant(ty, minus);
            Some(vec![(Some(p), Some(minus))])
        }
        _ => None,
    }
}

/// The term without a negation.
fn positive(f: &Function, (v, negative): Term) -> Term {
    match unary(f, v, UnOp::Neg) {
        Some(v) => (f.resolve(v), !negative),
        None => (f.resolve(v), negative),
    }
}

/// 64-bit lanes of these halves.
fn whole(r: &mut Rewriter, ty: Ty, low: Option<Value>, high: Option<Value>) -> Option<Value> {
    let high = high.filter(|&high| uniform_const(r.f, high) != Some(0));
    match (low, high) {
        (Some(low), Some(high)) => together(r, low, high),
        (Some(low), None) => Some(extended(r, low)),
        (None, None) => Some(r.constant(ty.with_lane(Lane::I64), 0)),
        (None, Some(_)) => None,
    }
}

/// A sum that has a carry, as what the carry is of and the other terms, in all ways. The booleans say which kind of carry, and whether all is
/// subtracted.
fn with_carry(
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
fn one_where(f: &Function, v: Value) -> Option<(Value, bool)> {
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
fn subtracted(f: &Function, v: Value) -> Option<(Option<Value>, Value)> {
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

/// The sum of extended lanes, of which these are the low halves, and the carry is all of the high ones.
pub(super) fn of_extended(r: &mut Rewriter, low: Value, high: Value) -> Option<Value> {
    for borrows in [false, true] {
        let mut found = with_carry(r.f, high, (borrows, false), 1).into_iter();
        let Some((carry, _)) = found.find(|(_, terms)| terms.is_empty()) else {
            continue;
        };
        let same = match borrows {
            true => subtracted(r.f, low) == Some(carry.of),
            false => carry.low == Some(low),
        };
        let (Some(x), true) = (carry.of.0, same) else {
            continue;
        };
        let (x, y) = (extended(r, x), extended(r, carry.of.1));
        let op = if borrows { BinOp::Sub } else { BinOp::Add };
        let wide = r.f.ty(x);
        return Some(r.emit(Op::Binary(op), vec![x, y], wide));
    }
    None
}
