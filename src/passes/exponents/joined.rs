//! `e^x` scales once.
//!
//! The kernel's compiler writes `e^x` as `2^k * 2^y`, with `k` the integral part of `x log2(e)`, and `y` what is left of `x`, divided by
//! `ln 2`. It puts 0 and infinity in place of the product where `x` is below a number near -105, or above one near 105:
//!
//! ```text
//! select(x > 105, inf, select(x < -105, 0, scale(1, k) * scale(p(y - n), n)))
//! ```
//!
//! Here one scaling does all of it: `scale(p(y - n), e + n)` with `e = k * SLOPE + SHIFT`. The instruction rounds exponents down.
//!
//! Guarantees: every result is the same. Proof. Let `q = scale(p, n)`. It is exact: `p` is from 1/2 to 2, and `n` is -1, 0 or 1.
//!
//! * For `k` from -149 to 127, `2^k` is a number, `e` rounded down is `k`, and the product was rounded once, as the scaling is.
//! * For `k` from 128 on, `2^k` is infinite, and so was the product. `e` rounded down is `k + 1` or more. `x` is positive, so `y` is below 0
//!   by rounding errors at most, and `n` is 0 or 1. Thus `q` is at least 1/2, and `q * 2^129` is infinite.
//! * For `k` up to -150, `2^k` is rounded to 0, and so was the product. `e` rounded down is `k - 1` or less. `x` is negative, so `n` is 0 or -1.
//!   Thus `q` is at most 2, and `q * 2^-151` is rounded to 0.
//! * The rounding errors of `y` grow with `x`. They are below 1/100 for `x` from -1000 to 1000, and the limits of `x` are in that range.
//!   For `x` beyond the limits, `k` is at least 128 or at most -150, so the selects gave what the last two points give.
//! * For larger `x`, `y` may be any number. It is kept between -2 and 2, and NaN becomes -2. `e` is beyond 1400 then, or infinite, so the result is
//!   infinite or 0.
//! * If `x` is NaN, so are `k` and the exponent, and no comparison holds.
//!
//! Factors between the product and the selects are positive numbers: they leave 0 and infinity as they are.

use rustc_hash::FxHashMap;

use super::Exponential;
use crate::passes::edit::{Rewriter, binary, float_const, unary};
use crate::passes::fold::powers::{POLYNOMIAL_DEPTH, at_zero};
use crate::ssa::{BinOp, FCond, Function, Inst, Lane, Op, UnOp, Value};

/// `k * SLOPE + SHIFT`, rounded down, is `k` from -149 to 127, and farther out beyond.
const SLOPE: f32 = 1.003_61;
const SHIFT: f32 = 0.539_7;

/// Factors behind a product that are looked through.
const FACTORS: usize = 2;

/// `e^x` that is written as a product.
struct Product {
    /// Exponent of the first power, an integer.
    k: Value,
    /// That of the second one.
    y: Value,
    /// The polynomial of the second one, and the integer next to `y`.
    p: Value,
    n: Value,
    /// Constants that the product is multiplied by.
    factors: Vec<Value>,
}

/// One power in place of two and of what is chosen instead of their product, for the outer one of the selects.
pub(super) fn powers(r: &mut Rewriter, i: Inst) -> Option<Value> {
    let root = *r.f.inst(i).results.first()?;
    let found = product(r.f, root)?;
    let ty = r.f.ty(root);
    let constant = |r: &mut Rewriter, x: f32| r.constant(ty, x.to_bits().into());

    let [slope, shift] = [SLOPE, SHIFT].map(|x| constant(r, x));
    let e = r.emit(Op::Fma, vec![found.k, slope, shift], ty);
    let [least, most] = [-2.0, 2.0].map(|x| constant(r, x));
    let mask = ty.with_lane(Lane::I1);
    let above = r.emit(Op::FCmp(FCond::Lt), vec![least, found.y], mask);
    let y = r.emit(Op::Select, vec![above, found.y, least], ty);
    let below = r.emit(Op::FCmp(FCond::Lt), vec![y, most], mask);
    let y = r.emit(Op::Select, vec![below, y, most], ty);
    let n = r.emit(Op::Unary(UnOp::FNearest), vec![y], ty);
    let difference = r.emit(Op::Binary(BinOp::FSub), vec![y, n], ty);
    let old = Exponential {
        c: found.y,
        n: found.n,
    };
    let p = old.of_other(r, found.p, difference, &mut FxHashMap::default());
    let exponent = r.emit(Op::Binary(BinOp::FAdd), vec![e, n], ty);
    let power = r.emit(Op::Binary(BinOp::FScale), vec![p, exponent], ty);
    let factors = found.factors.into_iter();
    Some(factors.fold(power, |v, factor| {
        r.emit(Op::Binary(BinOp::FMul), vec![v, factor], ty)
    }))
}

fn product(f: &Function, root: Value) -> Option<Product> {
    let (x, high, inner) = replaced(f, root, FCond::Gt, f32::INFINITY)?;
    let (same, low, mut v) = replaced(f, inner, FCond::Lt, 0.0)?;
    if same != x || !(90.0..=1000.0).contains(&high) || !(-1000.0..=-104.5).contains(&low) {
        return None;
    }
    let mut factors = Vec::new();
    while let Some((all, factor)) = binary(f, v, BinOp::FMul)
        && let Some(c) = float_const(f, factor)
    {
        if !c.is_normal() || c < 0.0 || factors.len() == FACTORS {
            return None;
        }
        factors.insert(0, factor);
        v = all;
    }
    let (a, b) = binary(f, v, BinOp::FMul)?;
    let power = |v| binary(f, v, BinOp::FScale);
    let is_whole = |&(one, _): &(Value, Value)| float_const(f, one) == Some(1.0);
    let whole = |a, b| Some((power(a).filter(is_whole)?.1, power(b)?));
    let (k, (p, n)) = whole(a, b).or_else(|| whole(b, a))?;
    let y = unary(f, n, UnOp::FNearest)?;
    let exp = Exponential { c: y, n };
    let is_power = at_zero(f, p, &|v| exp.is_difference(f, v), POLYNOMIAL_DEPTH)? == 1.0;
    (is_power && is_rest(f, y, x, k)).then_some(Product {
        k,
        y,
        p,
        n,
        factors,
    })
}

/// Whether `k` is the integral part of `x log2(e)`, and `y` the rest.
fn is_rest(f: &Function, y: Value, x: Value, k: Value) -> bool {
    let by_log = |v: Value| {
        let (a, b) = binary(f, v, BinOp::FMul)?;
        let near = (float_const(f, b)? - std::f32::consts::LOG2_E).abs() < 1e-6;
        near.then_some(a)
    };
    let minus = |v: Value| {
        let data = f.def_inst(v).filter(|data| data.op == Op::Fma)?;
        let is_k = f.resolve(data.args[0]) == k;
        let c = float_const(f, data.args[1]).filter(|_| is_k)?;
        Some((f.resolve(data.args[2]), f64::from(c)))
    };
    let rest = || {
        let of_x = unary(f, k, UnOp::FTrunc).and_then(by_log)?;
        let (v, low) = minus(by_log(y)?)?;
        let (start, high) = minus(v)?;
        let small = low.abs() < 1e-3 && (low + high + std::f64::consts::LN_2).abs() < 1e-8;
        Some(of_x == x && start == x && small)
    };
    rest() == Some(true)
}

/// `(x, limit, v)` of `select(x compared with a number, chosen, v)`.
fn replaced(f: &Function, v: Value, cond: FCond, chosen: f32) -> Option<(Value, f32, Value)> {
    let data = f.def_inst(v).filter(|data| data.op == Op::Select)?;
    let &[beyond, special, v] = data.args.as_slice() else {
        return None;
    };
    let compared = f.def_inst(beyond).filter(|d| d.op == Op::FCmp(cond))?;
    let is_chosen = float_const(f, special)?.to_bits() == chosen.to_bits();
    let limit = float_const(f, *compared.args.get(1)?).filter(|_| is_chosen)?;
    Some((f.resolve(compared.args[0]), limit, v))
}

#[cfg(test)]
mod tests {
    use super::{SHIFT, SLOPE};

    #[test]
    fn exponents_stay_or_go_farther_out() {
        for k in -1000..=1000 {
            let e = (k as f32).mul_add(SLOPE, SHIFT);
            for n in [-1.0, 0.0, 1.0, 2.0] {
                let sum = (e + n).floor() as i32 - n as i32;
                match k {
                    -149..=127 => assert_eq!(sum, k),
                    128.. => assert!(sum > k, "{k}: {sum}"),
                    _ => assert!(sum < k, "{k}: {sum}"),
                }
            }
        }
    }
}
