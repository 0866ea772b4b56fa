//! Comparisons of a magnitude with a number, in the width of the numbers.
//!
//! The magnitude of the least integer is one more than the largest integer, so lowering computes it in twice the width. As an unsigned number
//! it fits into the width of its operand, and so does the number that it is compared with, if that is limited from below:
//! `|x| < y` where `|x|` is below `max(y, 0)`, and `|x| <= y` where it is below `max(y, -1) + 1`.

use super::super::edit::{Rewriter, binary as bin, const_lanes, lanes_op, unary as un};
use super::bits::swapped;
use super::{Action, Subject};
use crate::ssa::{BinOp, Conv, Function, ICond, Lane, Op, UnOp, Value};

/// `|x| < y` and its likes, of numbers that were extended.
pub(super) fn icmp(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let (Op::ICmp(cond), &[a, b]) = (&s.op, s.args.as_slice()) else {
        return None;
    };
    let (x, other, cond) = match magnitude(r.f, a) {
        Some(x) => (x, b, *cond),
        None => (magnitude(r.f, b)?, a, swapped(*cond)),
    };
    let (with_equal, cond) = match cond {
        ICond::Slt => (false, ICond::Ult),
        ICond::Sge => (false, ICond::Uge),
        ICond::Sle => (true, ICond::Ult),
        ICond::Sgt => (true, ICond::Uge),
        _ => return None,
    };
    let ty = r.f.ty(x);
    let y = narrow(r, other, ty.lane)?;
    let negated = r.emit(Op::Unary(UnOp::Neg), vec![x], ty);
    let magnitude = r.emit(Op::Binary(BinOp::SMax), vec![x, negated], ty);
    let least = r.constant(ty, if with_equal { ty.lane.mask() } else { 0 });
    let mut bound = r.emit(Op::Binary(BinOp::SMax), vec![y, least], ty);
    if with_equal {
        let one = r.constant(ty, 1);
        bound = r.emit(Op::Binary(BinOp::Add), vec![bound, one], ty);
    }
    Some(Action::Become(Op::ICmp(cond), vec![magnitude, bound]))
}

/// The number that was extended, if this is its magnitude.
fn magnitude(f: &Function, v: Value) -> Option<Value> {
    let (a, b) = bin(f, v, BinOp::SMax)?;
    let of =
        |wide, negated| un(f, negated, UnOp::Neg).is_some_and(|x| f.resolve(x) == f.resolve(wide));
    let wide = if of(a, b) { a } else { b };
    if !of(a, b) && !of(b, a) {
        return None;
    }
    extended(f, wide)
}

fn extended(f: &Function, v: Value) -> Option<Value> {
    let data = f.def_inst(v);
    let data = data.filter(|data| data.op == Op::Convert(Conv::SExt));
    let x = f.resolve(data?.args[0]);
    (f.ty(x).lane != Lane::I1).then_some(x)
}

/// A number in fewer bits, if it was extended from these or is a constant that fits.
fn narrow(r: &mut Rewriter, v: Value, lane: Lane) -> Option<Value> {
    if let Some(y) = extended(r.f, v) {
        return (r.f.ty(y).lane == lane).then_some(y);
    }
    let (wide, unused) = (r.f.ty(v).lane.bits(), 64 - lane.bits());
    let lanes = const_lanes(r.f, v)?.to_vec();
    let signed = |bits: u64, unused: u32| (bits << unused) as i64 >> unused;
    let fits = |&bits: &u64| signed(bits, unused) == signed(bits, 64 - wide);
    if !lanes.iter().all(fits) {
        return None;
    }
    let lanes = lanes.into_iter().map(|bits| bits & lane.mask()).collect();
    Some(r.emit(lanes_op(lanes), Vec::new(), r.f.ty(v).with_lane(lane)))
}

#[cfg(test)]
mod tests {
    #[test]
    fn magnitudes_compare_in_the_width_of_numbers() {
        for x in i8::MIN..=i8::MAX {
            for y in i8::MIN..=i8::MAX {
                let magnitude = x.max(x.wrapping_neg()) as u8;
                let (wide, less) = (i16::from(x).abs(), magnitude < y.max(0) as u8);
                let at_most = magnitude < (y.max(-1) as u8).wrapping_add(1);
                assert_eq!(
                    [wide < y.into(), wide <= y.into()],
                    [less, at_most],
                    "{x} {y}"
                );
            }
        }
    }
}
