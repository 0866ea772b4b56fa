//! Products of 32-bit lanes as 64-bit lanes.
//!
//! Compilers make the product of two 64-bit numbers of products of their halves, each a low and a high half in registers of their own,
//! which are put side by side for the sums. `low = a * b`, `high = mulhi(a, b) + rest` is one product of extended lanes, which processors
//! have an instruction for, plus `rest << 32`. A half beside zeros is an extension.
//!
//! Not done: products whose halves are used by themselves only.

use rustc_hash::{FxHashMap, FxHashSet};

use super::halves::put_together;
use super::words::half_of;
use crate::passes::edit::{Rewriter, binary, replace_by_block, uniform_const};
use crate::ssa::{BinOp, Conv, Function, Lane, Op, Ty, Value};

/// Sums that the high half of a product is looked for in.
const DEPTH: usize = 4;

/// Factors, the lesser value first.
type Factors = (Value, Value);

/// What is known in a block.
#[derive(Default)]
struct Known {
    /// Products that are there as 64-bit lanes.
    wide: FxHashMap<Factors, Value>,
    /// Factors of which there is a high half.
    high: FxHashSet<Factors>,
}

/// Replaces 64-bit lanes that were put together from halves.
pub(super) fn run(f: &mut Function) -> usize {
    replace_by_block(f, |r, known: &mut Known, i| {
        if let Some(factors) = factors(r.f, r.f.inst(i).results.first(), BinOp::MulHiU) {
            known.high.insert(factors);
        }
        let whole = *r.f.inst(i).results.first()?;
        let ty = r.f.ty(whole);
        let (low, high) = put_together(r.f, whole)?;
        let factors = factors(r.f, Some(&low), BinOp::Mul);
        if uniform_const(r.f, high) == Some(0) {
            return Some(match factors.filter(|f| known.high.contains(f)) {
                Some(factors) => {
                    let product = wide(r, known, factors, ty);
                    let halves = r.constant(ty, u64::from(u32::MAX));
                    r.emit(Op::Binary(BinOp::And), vec![product, halves], ty)
                }
                None => r.emit(Op::Convert(Conv::ZExt), vec![low], ty),
            });
        }
        let factors = factors.or_else(|| low_factors(r.f, known, low))?;
        let rest = without(r, high, factors, DEPTH)?;
        let product = wide(r, known, factors, ty);
        let Some(rest) = rest else {
            return Some(product);
        };
        let rest = r.emit(Op::Convert(Conv::ZExt), vec![rest], ty);
        let count = r.constant(ty, 32);
        let rest = r.emit(Op::Binary(BinOp::Shl), vec![rest, count], ty);
        Some(r.emit(Op::Binary(BinOp::Add), vec![product, rest], ty))
    })
}

/// What a vector of 32-bit lanes is this product of.
fn factors(f: &Function, v: Option<&Value>, op: BinOp) -> Option<Factors> {
    let &v = v?;
    let (a, b) = binary(f, v, op)?;
    let (a, b) = (f.resolve(a), f.resolve(b));
    let ty = f.ty(v);
    (ty.lane == Lane::I32 && !ty.is_scalar()).then(|| (a.min(b), a.max(b)))
}

/// Factors of low halves that are taken from a product of 64-bit lanes: those of a high half whose factors are the low halves of its.
fn low_factors(f: &Function, known: &Known, low: Value) -> Option<Factors> {
    let (product, false) = half_of(f, low)? else {
        return None;
    };
    let (x, y) = binary(f, product, BinOp::Mul)?;
    let (x, y) = (f.resolve(x), f.resolve(y));
    let is_low = |a: Value, x: Value| {
        let extended = f.def_inst(x).filter(|d| d.op == Op::Convert(Conv::ZExt));
        half_of(f, a) == Some((x, false)) || extended.is_some_and(|d| f.resolve(d.args[0]) == a)
    };
    let of = |&(a, b): &Factors| is_low(a, x) && is_low(b, y) || is_low(a, y) && is_low(b, x);
    known.high.iter().copied().find(of)
}

/// The 64-bit product of extended lanes.
fn wide(r: &mut Rewriter, known: &mut Known, factors: Factors, ty: Ty) -> Value {
    if let Some(&product) = known.wide.get(&factors) {
        return product;
    }
    let [a, b] = [factors.0, factors.1].map(|v| r.emit(Op::Convert(Conv::ZExt), vec![v], ty));
    let product = r.emit(Op::Binary(BinOp::Mul), vec![a, b], ty);
    known.wide.insert(factors, product);
    product
}

/// What is left of a sum without the high half of a product: nothing, or another sum.
fn without(r: &mut Rewriter, sum: Value, of: Factors, depth: usize) -> Option<Option<Value>> {
    if factors(r.f, Some(&sum), BinOp::MulHiU) == Some(of) {
        return Some(None);
    }
    let (a, b) = binary(r.f, sum, BinOp::Add).filter(|_| depth > 0)?;
    for (part, other) in [(a, b), (b, a)] {
        let part = r.f.resolve(part);
        match without(r, part, of, depth - 1) {
            Some(Some(rest)) => {
                let ty = r.f.ty(sum);
                let sum = r.emit(Op::Binary(BinOp::Add), vec![rest, other], ty);
                return Some(Some(sum));
            }
            Some(None) => return Some(Some(other)),
            None => {}
        }
    }
    None
}
