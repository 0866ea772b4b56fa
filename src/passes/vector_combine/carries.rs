//! Sums and differences of 64-bit lanes, from those of their halves.
//!
//! `low = a + b`, `high = c + d + carry` is one sum. The carry is one where `low` is less than a term; of a difference, `high` is less by one where
//! `a` is less than `b`. A half beside zeros is an extension.
//!
//! Not done: sums of which no term is whole already, such as those of numbers of more than two words that were loaded word by word.

use rustc_hash::FxHashMap;

use super::carry::{Carry, Term, is_half, one_where, positive, subtracted, with_carry};
use super::halves::{extended, together};
use super::words::users;
use crate::passes::edit::{Rewriter, binary, replace_by_block, uniform_const};
use crate::ssa::{BinOp, Conv, Function, Inst, Lane, Op, Ty, Value};

/// Operations from a sum of high halves to the carry.
const DEPTH: usize = 3;

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
