//! Vectors of numbers of up to 16 bits divide in floats of 32 bits.
//!
//! Proof. Let `|a|` and `|b|` be at most 2^16 and `b` not zero. Both are exact in a float. If `b` divides `a`, the quotient is a whole
//! number below 2^17 and exact. Otherwise `|a / b|` lies at least `1 / |b|` below the next whole number `n`, and `n` is at most
//! `|a / b| + 1`; the float next to `n` is within `n * 2^-24`, which is less than `1 / |b|` since
//! `|b| * n <= |a| + |b| <= 2^17`. So the rounded quotient does not reach `n`, and cutting its fraction off gives the integer
//! quotient. With a zero divisor the result is selected by itself.
//!
//! The whole number is taken from the bits of its sum with 3 * 2^22, which is exact up to 2^22 on either side.

use crate::passes::edit::{Rewriter, const_lanes, replace_results, uniform_const};
use crate::ssa::{BinOp, Conv, Function, ICond, Lane, Op, Ty, UnOp, Value};

/// Largest magnitude of operands.
const MOST: u64 = 1 << 16;

/// Depth to which operands are followed.
const DEPTH: usize = 6;

/// Bits of 3 * 2^22.
const WHOLE: u64 = 0x4b40_0000;

pub(super) fn run(f: &mut Function) -> usize {
    replace_results(f, |r, i| {
        let data = r.f.inst(i);
        let Op::Binary(op @ (BinOp::SDiv | BinOp::UDiv)) = data.op else {
            return None;
        };
        let (a, b, result) = (data.args[0], data.args[1], data.results[0]);
        let ty = r.f.ty(result);
        let fits = |v| magnitude(r.f, v, DEPTH).is_some_and(|m| m <= MOST);
        let small = match op {
            BinOp::SDiv => fits(a) && fits(b),
            // What is below zero is large without its sign.
            _ => fits(a) && fits(b) && positive(r.f, a, DEPTH) && positive(r.f, b, DEPTH),
        };
        // A constant is divided by with a shift or a product elsewhere.
        let left = ty.is_scalar() || ty.lane != Lane::I32 || uniform_const(r.f, b).is_some();
        (small && !left).then(|| divide(r, op, ty, a, b))
    })
}

fn divide(r: &mut Rewriter, op: BinOp, ty: Ty, a: Value, b: Value) -> Value {
    let floats = ty.with_lane(Lane::F32);
    let convert = Op::Convert(Conv::SIToF);
    let x = r.emit(convert.clone(), vec![a], floats);
    let y = r.emit(convert, vec![b], floats);
    let ratio = r.emit(Op::Binary(BinOp::FDiv), vec![x, y], floats);
    let whole = r.emit(Op::Unary(UnOp::FTrunc), vec![ratio], floats);
    let offset = r.constant(floats, WHOLE);
    let sum = r.emit(Op::Binary(BinOp::FAdd), vec![whole, offset], floats);
    let bits = r.emit(Op::Bitcast, vec![sum], ty);
    let offset = r.constant(ty, WHOLE.wrapping_neg() & ty.lane.mask());
    let quotient = r.emit(Op::Binary(BinOp::Add), vec![bits, offset], ty);
    let zero = r.constant(ty, 0);
    let mask = Ty::mask(ty.lanes);
    let by_zero = r.emit(Op::ICmp(ICond::Eq), vec![b, zero], mask);
    let special = if op == BinOp::UDiv {
        r.constant(ty, ty.lane.mask())
    } else {
        // MAX, or MIN of what is below zero.
        let most = r.constant(ty, ty.lane.mask() >> 1);
        let sign = r.constant(ty, u64::from(ty.lane.bits() - 1));
        let ones = r.emit(Op::Binary(BinOp::AShr), vec![a, sign], ty);
        r.emit(Op::Binary(BinOp::Xor), vec![ones, most], ty)
    };
    r.emit(Op::Select, vec![by_zero, special, quotient], ty)
}

/// No lane, taken as signed, is further from zero.
fn magnitude(f: &Function, v: Value, depth: usize) -> Option<u64> {
    if let Some(lanes) = const_lanes(f, v) {
        let lane = f.ty(v).lane;
        let most = lanes
            .iter()
            .map(|&bits| lane.sign_extend(bits).unsigned_abs());
        return most.max();
    }
    let (data, depth) = (f.def_inst(v)?, depth.checked_sub(1)?);
    let arg = |n: usize| magnitude(f, data.args[n], depth);
    match data.op {
        Op::Convert(Conv::SExt) => {
            let from = f.ty(data.args[0]).lane.bits();
            Some(arg(0).unwrap_or(u64::MAX).min(1 << (from - 1)))
        }
        Op::Convert(Conv::ZExt) => Some((1 << f.ty(data.args[0]).lane.bits()) - 1),
        Op::Binary(BinOp::And) => {
            let c = uniform_const(f, data.args[1])?;
            (c <= MOST).then_some(c)
        }
        Op::Unary(UnOp::Neg) => arg(0),
        Op::Binary(op) if op.is_bound() => Some(arg(0)?.max(arg(1)?)),
        Op::Select => Some(arg(1)?.max(arg(2)?)),
        Op::Splat | Op::Shuffle(_) if data.args.len() == 1 => arg(0),
        _ => None,
    }
}

/// No lane, taken as signed, is below zero.
fn positive(f: &Function, v: Value, depth: usize) -> bool {
    if let Some(lanes) = const_lanes(f, v) {
        let lane = f.ty(v).lane;
        return lanes.iter().all(|&bits| lane.sign_extend(bits) >= 0);
    }
    let (Some(data), Some(depth)) = (f.def_inst(v), depth.checked_sub(1)) else {
        return false;
    };
    match data.op {
        Op::Convert(Conv::ZExt) => true,
        Op::Binary(BinOp::And) => positive(f, data.args[1], depth),
        Op::Binary(BinOp::SMax | BinOp::UMin) => data.args.iter().any(|&a| positive(f, a, depth)),
        Op::Binary(BinOp::SMin | BinOp::UMax) => data.args.iter().all(|&a| positive(f, a, depth)),
        Op::Select => positive(f, data.args[1], depth) && positive(f, data.args[2], depth),
        Op::Splat | Op::Shuffle(_) if data.args.len() == 1 => positive(f, data.args[0], depth),
        _ => false,
    }
}
