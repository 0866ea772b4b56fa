//! Upper bounds of unsigned integers, and low bits that are zero.

use super::super::edit::{const_lanes, uniform_const};
use crate::ssa::{BinOp, Conv, Function, Input, Lane, MAX_LOCAL_ID, Op, Value};

/// Depth to which expressions are followed.
const DEPTH: usize = 8;

/// No lane of an integer is above this, taken as unsigned.
pub(in crate::passes) fn most(f: &Function, v: Value) -> u64 {
    below(f, v, DEPTH)
}

fn below(f: &Function, v: Value, depth: usize) -> u64 {
    let lane = f.ty(v).lane;
    let all = lane.mask();
    let (Some(data), Some(depth)) = (f.def_inst(v), depth.checked_sub(1)) else {
        return all;
    };
    if let Some(lanes) = const_lanes(f, v) {
        return lanes.iter().copied().max().unwrap_or(all);
    }
    let arg = |n: usize| below(f, data.args[n], depth);
    let either = || arg(0).max(arg(1));
    match &data.op {
        Op::Binary(op) => {
            let constant = uniform_const(f, data.args[1]);
            match (op, constant) {
                (BinOp::Add, _) => arg(0).checked_add(arg(1)),
                (BinOp::Mul, _) => arg(0).checked_mul(arg(1)),
                (BinOp::UAddSat, _) => Some(arg(0).saturating_add(arg(1)).min(all)),
                (BinOp::USubSat, _) => Some(arg(0)),
                (BinOp::And | BinOp::UMin, _) => Some(arg(0).min(arg(1))),
                (BinOp::Or | BinOp::Xor, _) => Some(ones(either())),
                // One of the operands.
                (BinOp::UMax | BinOp::SMin | BinOp::SMax, _) => Some(either()),
                (BinOp::Shl, Some(c)) => shifted(arg(0), c % u64::from(lane.bits())),
                (BinOp::LShr, Some(c)) => Some(arg(0) >> (c % u64::from(lane.bits()))),
                (BinOp::UDiv, Some(c)) if c > 0 => Some(arg(0) / c),
                (BinOp::URem, Some(c)) if c > 0 => Some(arg(0).min(c - 1)),
                _ => None,
            }
        }
        Op::Convert(Conv::ZExt | Conv::Trunc) => Some(arg(0)),
        Op::Convert(Conv::SExt) => {
            let from = f.ty(data.args[0]).lane;
            Some(arg(0)).filter(|&m| m <= from.mask() >> 1 && from != Lane::I1)
        }
        // Lane 0 of a thread is a work-item of the group.
        Op::Input(Input::LocalId { lane: 0, .. }) => Some(MAX_LOCAL_ID),
        Op::Input(Input::Thread) => Some(MAX_LOCAL_ID / u64::from(f.simd.max(1))),
        Op::Select => Some(arg(1).max(arg(2))),
        Op::Splat | Op::ExtractLane(_) => Some(arg(0)),
        Op::Shuffle(_) => (0..data.args.len()).map(arg).max(),
        _ => None,
    }
    .filter(|&m| m <= all)
    .unwrap_or(all)
}

fn shifted(x: u64, by: u64) -> Option<u64> {
    (u64::from(x.leading_zeros()) >= by).then(|| x << by)
}

/// All bits up to the highest one of `x`.
pub(super) fn ones(x: u64) -> u64 {
    u64::MAX.checked_shr(x.leading_zeros()).unwrap_or(0)
}

/// This many low bits of an integer are zero in every lane.
pub(in crate::passes) fn low_zeros(f: &Function, v: Value) -> u32 {
    zeros(f, v, DEPTH)
}

fn zeros(f: &Function, v: Value, depth: usize) -> u32 {
    let bits = f.ty(v).lane.bits();
    let (Some(data), Some(depth)) = (f.def_inst(v), depth.checked_sub(1)) else {
        return 0;
    };
    if let Some(lanes) = const_lanes(f, v) {
        let zeros = lanes.iter().map(|bits| bits.trailing_zeros()).min();
        return zeros.unwrap_or(0).min(bits);
    }
    let arg = |n: usize| zeros(f, data.args[n], depth);
    match &data.op {
        Op::Binary(BinOp::Add | BinOp::Sub | BinOp::Or | BinOp::Xor) => arg(0).min(arg(1)),
        Op::Binary(op) if op.is_bound() => arg(0).min(arg(1)),
        Op::Binary(BinOp::And) => arg(0).max(arg(1)),
        Op::Binary(BinOp::Mul) => arg(0) + arg(1),
        Op::Binary(BinOp::Shl) => {
            let by = uniform_const(f, data.args[1]).unwrap_or(0) % u64::from(bits);
            arg(0) + by as u32
        }
        Op::Convert(Conv::ZExt | Conv::SExt | Conv::Trunc) | Op::Splat | Op::ExtractLane(_) => {
            arg(0)
        }
        Op::Select => arg(1).min(arg(2)),
        Op::Shuffle(_) => (0..data.args.len()).map(arg).min().unwrap_or(0),
        _ => 0,
    }
    .min(bits)
}
