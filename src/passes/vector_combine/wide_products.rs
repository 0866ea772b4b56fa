//! Products of 64-bit lanes, of which only the low 64 bits are kept, from products of their halves.
//!
//! Of `x * y` with halves `a`, `b` of `x` and `c`, `d` of `y`, the low half is `a * c` and the high half `mulhi(a, c) + a * d + b * c`. Where a
//! half is zero, its products are not there. What both halves are computed from is one product then.
//!
//! Not done: products of which one half is not computed in the block, and those that would leave the others where they are, as these
//! have other uses. Parts of products of more than two words have: they are compared for carries.

use rustc_hash::FxHashMap;

use super::halves::{extended, half, together};
use super::words::{LOW, half_of, users};
use crate::passes::dce;
use crate::passes::edit::{Rewriter, binary, replace_by_block, uniform_const};
use crate::ssa::dom::use_counts;
use crate::ssa::{BinOp, Conv, Function, Inst, Lane, Op, Ty, Value};

/// Lanes of 32 bits that are multiplied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Factor {
    /// A vector.
    Lanes(Value),
    /// The low (false) or high halves of a vector.
    Half(Value, bool),
    /// A scalar for all lanes.
    Same(Value),
    /// A constant for all lanes.
    Const(u64),
}

type Factors = (Factor, Factor);

/// What high halves are the sum of.
struct Parts {
    /// Low halves of the factors.
    low: Factors,
    /// High halves of the factors, unless they are zero.
    high: (Option<Factor>, Option<Factor>),
    /// The high half of the low halves' product, and sums that are part of the whole one.
    carried: Vec<Value>,
    /// Products of a high and a low half.
    crossed: Vec<Value>,
}

/// What is known in a block.
#[derive(Default)]
struct Known {
    /// Products of 32-bit lanes, by the factors, the lesser first.
    low: FxHashMap<Factors, Inst>,
}

/// Replaces both halves of such products.
pub(super) fn run(f: &mut Function) -> usize {
    dce::run(f);
    let users = users(f);
    let uses = uses(f);
    replace_by_block(f, |r, known: &mut Known, i| {
        let result = *r.f.inst(i).results.first()?;
        let low = factors(r.f, result, BinOp::Mul).or_else(|| half_of_product(r.f, result, false));
        if let Some((a, b)) = low {
            known.low.insert((a.min(b), a.max(b)), i);
        }
        let parts = parts(r.f, result)?;
        // A product of more parts is made of them in a moment.
        if let Some(&Some(sum)) = users.get(&result)
            && let Some(all) = self::parts(r.f, sum)
            && all.low == parts.low
        {
            return None;
        }
        // What is made in this run is no part.
        let times = |v: &Value| uses.get(v.0 as usize).map_or(0, |&n| n as usize);
        let all = || parts.carried.iter().chain(&parts.crossed);
        let within = |v: &Value| all().filter(|w| *w == v).count();
        let stays = |v: &Value| times(v) != within(v);
        // Two sums and the low product go away even if both crossed products stay.
        let few = parts.crossed.len() < 2;
        if parts.carried.iter().any(stays) || few && parts.crossed.iter().any(stays) {
            return None;
        }
        let (a, b) = parts.low;
        let low = known.low.remove(&(a.min(b), a.max(b)))?;
        let old = r.f.inst(low).results[0];
        let ty = r.f.ty(old);
        (ty == r.f.ty(result)).then_some(())?;
        let [new, high] = r.instead_of(low, |r| product(r, ty, &parts))?;
        r.f.replace(old, new);
        Some(high)
    })
}

/// How often values are used, but for shuffles: beside the low half of the same product, [`super::products`] finds the high one.
fn uses(f: &Function) -> Vec<u32> {
    let mut uses = use_counts(f);
    for i in f.order.iter().flat_map(|&b| &f.block(b).insts) {
        let data = f.inst(*i);
        if matches!(data.op, Op::Shuffle(_)) {
            data.args.iter().for_each(|v| uses[v.0 as usize] -= 1);
        }
    }
    uses
}

/// What a vector of 32-bit lanes is this product of.
fn factors(f: &Function, v: Value, op: BinOp) -> Option<Factors> {
    let ty = f.ty(v);
    let (a, b) = binary(f, v, op).filter(|_| ty.lane == Lane::I32 && !ty.is_scalar())?;
    Some((factor(f, a), factor(f, b)))
}

fn factor(f: &Function, v: Value) -> Factor {
    let v = f.resolve(v);
    if let Some(bits) = uniform_const(f, v) {
        return Factor::Const(bits);
    }
    if let Some((x, high)) = half_of(f, v) {
        return Factor::Half(x, high);
    }
    match f.def_inst(v) {
        Some(d) if d.op == Op::Splat => Factor::Same(f.resolve(d.args[0])),
        _ => Factor::Lanes(v),
    }
}

/// What 64-bit lanes, of which this is the low or the high half, are the product of if it was made of 32-bit lanes.
fn half_of_product(f: &Function, v: Value, high: bool) -> Option<Factors> {
    let (product, _) = half_of(f, v).filter(|&(_, half)| half == high)?;
    let (x, y) = binary(f, product, BinOp::Mul)?;
    Some((narrow(f, x)?, narrow(f, y)?))
}

/// The 32-bit lanes that were extended. Of halves of other lanes, folding leaves a mask or a shift.
fn narrow(f: &Function, wide: Value) -> Option<Factor> {
    let wide = f.resolve(wide);
    let with = |op| {
        let (x, c) = binary(f, wide, op)?;
        Some((f.resolve(x), uniform_const(f, f.resolve(c))?))
    };
    match (with(BinOp::And), with(BinOp::LShr), uniform_const(f, wide)) {
        (Some((x, LOW)), ..) => return Some(Factor::Half(x, false)),
        (_, Some((x, 32)), _) => return Some(Factor::Half(x, true)),
        (.., Some(bits)) => return (bits <= LOW).then_some(Factor::Const(bits)),
        _ => {}
    }
    let data = f.def_inst(wide)?;
    let of = f.resolve(*data.args.first()?);
    match (&data.op, f.ty(of).lane) {
        (Op::Convert(Conv::ZExt), Lane::I32) => Some(factor(f, of)),
        (Op::Splat, _) => {
            let scalar = f.def_inst(of).filter(|d| d.op == Op::Convert(Conv::ZExt))?;
            let x = f.resolve(scalar.args[0]);
            (f.ty(x).lane == Lane::I32).then_some(Factor::Same(x))
        }
        _ => None,
    }
}

/// The parts, if these are high halves of a product.
fn parts(f: &Function, v: Value) -> Option<Parts> {
    let sum = |v: Value| {
        let (a, b) = binary(f, v, BinOp::Add)?;
        Some([f.resolve(a), f.resolve(b)])
    };
    let [a, b] = sum(v)?;
    let (terms, inner) = match (sum(a), sum(b)) {
        (Some([x, y]), _) => (vec![x, y, b], Some(a)),
        (_, Some([x, y])) => (vec![x, y, a], Some(b)),
        _ => (vec![a, b], None),
    };
    let carry = |&v: &Value| factors(f, v, BinOp::MulHiU).or_else(|| half_of_product(f, v, true));
    let (carried, crossed): (Vec<Value>, Vec<Value>) =
        terms.iter().partition(|v| carry(v).is_some());
    let (a, b) = carried.first().and_then(carry)?;
    let (mut of_a, mut of_b) = (None, None);
    for &term in &crossed {
        let (x, y) = factors(f, term, BinOp::Mul)?;
        let times = |v: Factor| match (x == v, y == v) {
            (true, _) => Some(y),
            (_, true) => Some(x),
            _ => None,
        };
        // The high half of one factor multiplies the low half of the other.
        match (times(b), times(a)) {
            (Some(high), _) if of_a.is_none() => of_a = Some(high),
            (_, Some(high)) if of_b.is_none() => of_b = Some(high),
            _ => return None,
        }
    }
    let products = 1 + usize::from(of_a.is_some()) + usize::from(of_b.is_some());
    (products == terms.len()).then_some(Parts {
        low: (a, b),
        high: (of_a, of_b),
        carried: carried.into_iter().chain(inner).collect(),
        crossed,
    })
}

/// Low and high halves of the product.
fn product(r: &mut Rewriter, narrow: Ty, parts: &Parts) -> Option<[Value; 2]> {
    let wide = narrow.with_lane(Lane::I64);
    let x = whole(r, narrow, parts.low.0, parts.high.0)?;
    let y = whole(r, narrow, parts.low.1, parts.high.1)?;
    let whole = r.emit(Op::Binary(BinOp::Mul), vec![x, y], wide);
    let low = r.emit(Op::Convert(Conv::Trunc), vec![whole], narrow);
    let count = r.constant(wide, 32);
    let upper = r.emit(Op::Binary(BinOp::LShr), vec![whole, count], wide);
    let high = r.emit(Op::Convert(Conv::Trunc), vec![upper], narrow);
    Some([low, high])
}

/// A factor of 64-bit lanes.
fn whole(r: &mut Rewriter, narrow: Ty, low: Factor, high: Option<Factor>) -> Option<Value> {
    let mut vector = |factor| match factor {
        Factor::Lanes(v) => v,
        Factor::Half(x, high) => half(r, x, high),
        Factor::Same(v) => r.emit(Op::Splat, vec![v], narrow),
        Factor::Const(bits) => r.constant(narrow, bits),
    };
    let (low, high) = (vector(low), high.map(vector));
    match high {
        Some(high) => together(r, low, high),
        None => Some(extended(r, low)),
    }
}
