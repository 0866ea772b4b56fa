//! Powers of two whose exponents are integers.
//!
//! A kernel's compiler writes `e^x` as the product of `2^n`, with an integer `n`, and `2^r`. The expansion of `2^x` scales a polynomial
//! of what `x` is more than the nearest integer. Of an integer that is nothing, and the polynomial is 1.

use super::super::edit::{Rewriter, binary, const_lanes, uniform_const};
use super::{Action, Subject};
use crate::ssa::{BinOp, Conv, Function, Lane, Op, UnOp, Value};

/// Operations on the way to a value that are looked at.
const DEPTH: u32 = 12;

/// Rounding an integer changes nothing.
pub(super) fn rounding(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let (Op::Unary(op), &[x]) = (&s.op, s.args.as_slice()) else {
        return None;
    };
    (rounds(*op) && is_integer(r.f, x, DEPTH)).then_some(Action::Same(x))
}

/// A scaled polynomial of `n - n`, which is 0, or NaN where `n` is not finite.
pub(super) fn scaled(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let (Op::Binary(BinOp::FScale), &[p, n]) = (&s.op, s.args.as_slice()) else {
        return None;
    };
    let nothing = Polynomial::of(n).variable(r.f, p)?;
    if binary(r.f, p, BinOp::FAdd).is_some() || Polynomial::of(n).at_zero(r.f, p, DEPTH)? != 1.0 {
        return None;
    }
    let one = r.constant(s.ty, u64::from(1f32.to_bits()));
    let one = r.emit(Op::Binary(BinOp::FAdd), vec![nothing, one], s.ty);
    Some(Action::Become(s.op.clone(), vec![one, n]))
}

const fn rounds(op: UnOp) -> bool {
    matches!(
        op,
        UnOp::FTrunc | UnOp::FFloor | UnOp::FCeil | UnOp::FNearest
    )
}

/// Whether each lane of a float is an integer, infinite or NaN.
fn is_integer(f: &Function, v: Value, depth: u32) -> bool {
    if let Some(lanes) = const_lanes(f, v) {
        return f.ty(v).lane == Lane::F32
            && lanes
                .iter()
                .all(|&bits| f32::from_bits(bits as u32).fract() == 0.0);
    }
    let Some(data) = f.def_inst(v).filter(|_| depth > 0) else {
        return false;
    };
    match &data.op {
        Op::Unary(op) if rounds(*op) => true,
        Op::Convert(Conv::SIToF | Conv::UIToF) => true,
        Op::Unary(UnOp::FNeg | UnOp::FAbs) => is_integer(f, data.args[0], depth - 1),
        Op::Select => data.args[1..].iter().all(|&a| is_integer(f, a, depth - 1)),
        _ => false,
    }
}

/// A polynomial of `n - n`.
struct Polynomial {
    n: Value,
}

impl Polynomial {
    fn of(n: Value) -> Polynomial {
        Polynomial { n }
    }

    /// The difference that `p` is a polynomial of, if its last step is `q * (n - n) + c`.
    fn variable(&self, f: &Function, p: Value) -> Option<Value> {
        let data = f.def_inst(p).filter(|d| d.op == Op::Fma)?;
        let is_difference = |v: &&Value| self.is_nothing(f, **v);
        data.args[..2].iter().find(is_difference).copied()
    }

    fn is_nothing(&self, f: &Function, v: Value) -> bool {
        let is_n = |x| f.resolve(x) == f.resolve(self.n);
        binary(f, v, BinOp::FSub).is_some_and(|(a, b)| is_n(a) && is_n(b))
    }

    /// What `p` is where the difference is 0; `None` if that is not known, or if a step is not finite.
    fn at_zero(&self, f: &Function, p: Value, depth: u32) -> Option<f32> {
        if let Some(bits) = uniform_const(f, p) {
            return Some(f32::from_bits(bits as u32)).filter(|c| c.is_finite());
        }
        if self.is_nothing(f, p) {
            return Some(0.0);
        }
        let data = f.def_inst(p).filter(|d| d.op == Op::Fma && depth > 0)?;
        let mut operands = data.args.iter().map(|&a| self.at_zero(f, a, depth - 1));
        let (a, b, c) = (operands.next()??, operands.next()??, operands.next()??);
        Some(a.mul_add(b, c)).filter(|sum| sum.is_finite())
    }
}
