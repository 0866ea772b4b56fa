//! Powers of two without limits of the exponent, for code generators with an instruction that takes every exponent.
//!
//! The expansion of `exp` (`lower/math/formula.rs`) is `scale(p, n)`: `p` is a polynomial in `c - n`, `n` the integer nearest to `c`, and `c`
//! the exponent `x` between limits. The limits are there because most processors multiply by two factors instead ([`BinOp::FScale`]).
//!
//! Guarantees: every result is the same. Proof. Between the limits, `c` is `x`. Beyond them, if `x` is finite, `c` is a limit, and the
//! result 0 or infinity. So it is without limits: the difference to the nearest integer is in the range of the polynomial, which is
//! from 1/2 to 2 there, and `n` is at least as far out as the limit. If `x` is infinite, its difference to itself is NaN and so is `p`, but
//! [`BinOp::FScale`] gives 0 or infinity for an infinite `n`. If `x` is NaN, so are `n` and both results.
//!
//! Where `c` is an integer, the pass `fold` has made `p` one more than `c - c`. Then `p` becomes 1.
//!
//! The kernel's compiler writes `e^x` as a product of two such powers. [`joined`] makes one of them.

mod joined;

use rustc_hash::FxHashMap;

use super::edit::{Rewriter, binary, float_const, replace_results, uniform_const};
use super::fold::powers::{POLYNOMIAL_DEPTH, at_zero};
use crate::ssa::{BinOp, FCond, Function, Inst, InstData, Op, UnOp, Value};

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let unlimited = replace_results(f, unlimited_scale);
    unlimited + replace_results(f, joined::powers)
}

fn unlimited_scale(r: &mut Rewriter, i: Inst) -> Option<Value> {
    let data = r.f.inst(i);
    let (Op::Binary(BinOp::FScale), &[p, n]) = (&data.op, data.args.as_slice()) else {
        return None;
    };
    let ty = r.f.ty(data.results[0]);
    if let Some(x) = integral(r.f, p, n) {
        let one = r.constant(ty, 1f32.to_bits().into());
        return Some(r.emit(Op::Binary(BinOp::FScale), vec![one, x], ty));
    }
    let nearest = r.f.def_inst(n)?;
    let c = *nearest.args.first()?;
    let exp = Exponential { c, n };
    if nearest.op != Op::Unary(UnOp::FNearest)
        || at_zero(r.f, p, &|v| exp.is_difference(r.f, v), POLYNOMIAL_DEPTH)? != 1.0
    {
        return None;
    }
    let x = unlimited(r.f, c)?;
    let n = r.emit(Op::Unary(UnOp::FNearest), vec![x], ty);
    let difference = r.emit(Op::Binary(BinOp::FSub), vec![x, n], ty);
    let mut made = FxHashMap::default();
    let p = exp.of_other(r, p, difference, &mut made);
    Some(r.emit(Op::Binary(BinOp::FScale), vec![p, n], ty))
}

/// The exponent of an integral power, in which `p` is one more than the difference of `n` to itself.
fn integral(f: &Function, p: Value, n: Value) -> Option<Value> {
    let (difference, one) = binary(f, p, BinOp::FAdd)?;
    let is_zero = binary(f, difference, BinOp::FSub) == Some((n, n));
    (is_zero && float_const(f, one) == Some(1.0))
        .then(|| unlimited(f, n))
        .flatten()
}

/// A power of two whose exponent is no integer.
struct Exponential {
    /// The exponent, between limits or not.
    c: Value,
    /// The integer nearest to it.
    n: Value,
}

impl Exponential {
    fn is_difference(&self, f: &Function, v: Value) -> bool {
        binary(f, v, BinOp::FSub) == Some((self.c, self.n))
    }

    /// The same polynomial in another difference. Adds what it is made of, each operation once.
    fn of_other(
        &self,
        r: &mut Rewriter,
        p: Value,
        difference: Value,
        made: &mut FxHashMap<Value, Value>,
    ) -> Value {
        if uniform_const(r.f, p).is_some() {
            return p;
        }
        if self.is_difference(r.f, p) {
            return difference;
        }
        if let Some(&known) = made.get(&p) {
            return known;
        }
        let Some(InstData { op, args, .. }) = r.f.def_inst(p).cloned() else {
            return p;
        };
        let args = args
            .into_iter()
            .map(|a| self.of_other(r, a, difference, made));
        let args = args.collect();
        let ty = r.f.ty(p);
        let new = r.emit(op, args, ty);
        made.insert(p, new);
        new
    }
}

/// Products with smaller powers of two are 0: half of the smallest number is 2^-150.
const LEAST: f32 = -152.0;

/// Products with larger powers of two are infinite: 2^128 is.
const MOST: f32 = 129.0;

/// What is kept between limits that make no difference to products; NaN stays.
fn unlimited(f: &Function, v: Value) -> Option<Value> {
    let (below, most) = limit(f, v, |x, most| [most, x])?;
    let (x, least) = limit(f, below, |x, least| [x, least])?;
    (most >= MOST && least <= LEAST).then_some(x)
}

/// `(x, limit)` of `select(less, limit, x)`, `less` being a comparison of the two in an order.
fn limit(
    f: &Function,
    v: Value,
    order: impl Fn(Value, Value) -> [Value; 2],
) -> Option<(Value, f32)> {
    let data = f.def_inst(v).filter(|d| d.op == Op::Select)?;
    let &[beyond, limit, x] = data.args.as_slice() else {
        return None;
    };
    let compared = f.def_inst(beyond)?;
    let fits = compared.op == Op::FCmp(FCond::Lt) && *compared.args == order(x, limit);
    Some((x, float_const(f, limit).filter(|_| fits)?))
}
