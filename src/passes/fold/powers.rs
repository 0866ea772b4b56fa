//! Powers of two with integral exponents.
//!
//! The kernel's compiler writes `e^x` as `2^n * 2^r` with an integer `n`. The expansion of `2^x` (`lower/math/formula.rs`) scales a polynomial
//! in `x - nearest(x)`. For an integer that difference is 0, and the polynomial is 1.
//!
//! Sums and products of integers stay integers in floats, whatever is rounded away. Proof. The exact result is an integer `s`. A float has
//! `p` bits of precision: every integer of magnitude up to `2^p` is a float, and every float of at least that magnitude is an integer. If
//! `|s| <= 2^p`, `s` is a float and nothing is rounded. Otherwise the result is not below `2^p` in magnitude, as rounding keeps the order of
//! numbers and `2^p` is a float: it is an integer, or infinite. With an infinite operand or NaN the result is the exact one, infinite, or
//! NaN, which rounding to an integer leaves as they are. A fused product and sum and a conversion to fewer bits are rounded once, too.

use super::super::edit::{Rewriter, binary, const_lanes, uniform_const};
use super::{Action, Subject};
use crate::ssa::{BinOp, Conv, Function, Lane, Op, UnOp, Value};

/// Operations between a rounding and the operand that is asked about: a clamp is two selects, and sums stand in front of it or behind.
const INTEGER_DEPTH: u32 = 6;

/// Multiplications of a polynomial.
pub(in crate::passes) const POLYNOMIAL_DEPTH: u32 = 8;

/// Rounding an integer changes nothing.
pub(super) fn rounding(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let (Op::Unary(op), &[x]) = (&s.op, s.args.as_slice()) else {
        return None;
    };
    (rounds(*op) && is_integral(r.f, x, INTEGER_DEPTH)).then_some(Action::Same(x))
}

/// `scale(p, n)` with a polynomial `p` in `n - n` that is 1 at 0 is `scale((n - n) + 1, n)`. The difference stays: it is NaN where `n` is
/// infinite or NaN.
pub(super) fn scaled(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let (Op::Binary(BinOp::FScale), &[p, n]) = (&s.op, s.args.as_slice()) else {
        return None;
    };
    let last = r.f.def_inst(p).filter(|d| d.op == Op::Fma)?;
    let difference = *last.args.iter().find(|&&v| is_difference(r.f, v, n))?;
    let is_variable = |v| is_difference(r.f, v, n);
    if at_zero(r.f, p, &is_variable, POLYNOMIAL_DEPTH)? != 1.0 {
        return None;
    }
    let one = r.constant(s.ty, u64::from(1f32.to_bits()));
    let p = r.emit(Op::Binary(BinOp::FAdd), vec![difference, one], s.ty);
    Some(Action::Become(s.op.clone(), vec![p, n]))
}

const fn rounds(op: UnOp) -> bool {
    matches!(
        op,
        UnOp::FTrunc | UnOp::FFloor | UnOp::FCeil | UnOp::FNearest
    )
}

/// Whether each lane of a float is an integer, infinite or NaN.
fn is_integral(f: &Function, v: Value, depth: u32) -> bool {
    if let Some(lanes) = const_lanes(f, v) {
        let integral = |&bits: &u64| match f.ty(v).lane {
            Lane::F32 => f32::from_bits(bits as u32).fract() == 0.0,
            Lane::F64 => f64::from_bits(bits).fract() == 0.0,
            _ => false,
        };
        return lanes.iter().all(integral);
    }
    let Some(data) = f.def_inst(v).filter(|_| depth > 0) else {
        return false;
    };
    let all = |args: &[Value]| args.iter().all(|&a| is_integral(f, a, depth - 1));
    match &data.op {
        Op::Unary(op) if rounds(*op) => true,
        Op::Convert(Conv::SIToF | Conv::UIToF) => true,
        Op::Unary(UnOp::FNeg | UnOp::FAbs) => all(&data.args),
        Op::Binary(BinOp::FAdd | BinOp::FSub | BinOp::FMul) | Op::Fma => all(&data.args),
        Op::Select => all(&data.args[1..]),
        Op::Convert(Conv::FPromote | Conv::FDemote) => all(&data.args),
        Op::Splat | Op::Shuffle(_) | Op::ExtractLane(_) => all(&data.args),
        _ => false,
    }
}

/// Whether this is `n - n`.
fn is_difference(f: &Function, v: Value, n: Value) -> bool {
    let is_n = |x| f.resolve(x) == f.resolve(n);
    binary(f, v, BinOp::FSub).is_some_and(|(a, b)| is_n(a) && is_n(b))
}

/// The value of a polynomial where what it is a polynomial in is 0; `None` if it is none, or if a step is not finite.
pub(in crate::passes) fn at_zero(
    f: &Function,
    p: Value,
    is_variable: &impl Fn(Value) -> bool,
    depth: u32,
) -> Option<f32> {
    if let Some(bits) = uniform_const(f, p) {
        return Some(f32::from_bits(bits as u32)).filter(|c| c.is_finite());
    }
    if is_variable(p) {
        return Some(0.0);
    }
    let data = f.def_inst(p).filter(|d| d.op == Op::Fma && depth > 0)?;
    let operand = |n: usize| at_zero(f, data.args[n], is_variable, depth - 1);
    let sum = operand(0)?.mul_add(operand(1)?, operand(2)?);
    Some(sum).filter(|sum| sum.is_finite())
}

#[cfg(test)]
mod tests {
    /// Integers around those where floats become sparse, and the largest.
    fn integers() -> Vec<f32> {
        let near = |exponent: i32| (-3..4).map(move |k| 2f32.powi(exponent) + k as f32);
        let positive = (0..=127).flat_map(near).chain([0.0, f32::MAX]);
        let all: Vec<f32> = positive.filter(|x| x.fract() == 0.0).collect();
        all.iter().flat_map(|&x| [x, -x]).collect()
    }

    #[test]
    fn rounded_sums_and_products_of_integers_are_integers() {
        let all = integers();
        assert!(all.len() > 1000);
        for &x in &all {
            for &y in &all {
                for rounded in [x + y, x - y, x * y, x.mul_add(y, 3.0 - x)] {
                    assert!(!rounded.is_finite() || rounded.fract() == 0.0, "{x} {y}");
                }
            }
        }
    }
}
