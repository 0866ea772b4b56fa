//! Powers of two with integral exponents.
//!
//! The kernel's compiler writes `e^x` as `2^n * 2^r` with an integer `n`. The expansion of `2^x` (`lower/math/formula.rs`) scales a polynomial
//! in `x - nearest(x)`. For an integer that difference is 0, and the polynomial is 1.

use super::super::edit::{Rewriter, binary, const_lanes, uniform_const};
use super::{Action, Subject};
use crate::ssa::{BinOp, Conv, Function, Lane, Op, UnOp, Value};

/// Operations between a rounding and the operand that is asked about: a clamp is two selects.
const INTEGER_DEPTH: u32 = 4;

/// Multiplications of a polynomial.
const POLYNOMIAL_DEPTH: u32 = 8;

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
    if at_zero(r.f, p, n, POLYNOMIAL_DEPTH)? != 1.0 {
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
        let integral = |&bits: &u64| f32::from_bits(bits as u32).fract() == 0.0;
        return f.ty(v).lane == Lane::F32 && lanes.iter().all(integral);
    }
    let Some(data) = f.def_inst(v).filter(|_| depth > 0) else {
        return false;
    };
    match &data.op {
        Op::Unary(op) if rounds(*op) => true,
        Op::Convert(Conv::SIToF | Conv::UIToF) => true,
        Op::Unary(UnOp::FNeg | UnOp::FAbs) => is_integral(f, data.args[0], depth - 1),
        Op::Select => data.args[1..].iter().all(|&a| is_integral(f, a, depth - 1)),
        _ => false,
    }
}

/// Whether this is `n - n`.
fn is_difference(f: &Function, v: Value, n: Value) -> bool {
    let is_n = |x| f.resolve(x) == f.resolve(n);
    binary(f, v, BinOp::FSub).is_some_and(|(a, b)| is_n(a) && is_n(b))
}

/// The value of a polynomial in `n - n` where that is 0; `None` if it is no polynomial, or if a step is not finite.
fn at_zero(f: &Function, p: Value, n: Value, depth: u32) -> Option<f32> {
    if let Some(bits) = uniform_const(f, p) {
        return Some(f32::from_bits(bits as u32)).filter(|c| c.is_finite());
    }
    if is_difference(f, p, n) {
        return Some(0.0);
    }
    let data = f.def_inst(p).filter(|d| d.op == Op::Fma && depth > 0)?;
    let mut operands = data.args.iter().map(|&a| at_zero(f, a, n, depth - 1));
    let (a, b, c) = (operands.next()??, operands.next()??, operands.next()??);
    Some(a.mul_add(b, c)).filter(|sum| sum.is_finite())
}
