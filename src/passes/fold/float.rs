//! Float rules. Only those that are exact for every operand, infinities and zeros included.

use super::super::edit::{Rewriter, unary as un, uniform_const};
use super::{Action, Subject};
use crate::ssa::{BinOp, Conv, FpEnvOp, Lane, Op, UnOp, fp_env};
use Action::{Become, Same};

/// [`fp_env::CR0_PLAIN`].
const CR0_PLAIN: u64 = fp_env::CR0_PLAIN as u64;
/// Rounding and denormal bits of `%cr0`.
const CR0_FLOAT: u64 = CR0_PLAIN | fp_env::CR0_ROUNDING as u64;

fn one(lane: Lane) -> u64 {
    match lane {
        Lane::F32 => u64::from(1f32.to_bits()),
        _ => 1f64.to_bits(),
    }
}

fn two(lane: Lane) -> u64 {
    match lane {
        Lane::F32 => u64::from(2f32.to_bits()),
        _ => 2f64.to_bits(),
    }
}

pub(super) fn binary(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let Op::Binary(op) = s.op else {
        return None;
    };
    let lane = s.ty.lane;
    if !lane.is_float() {
        return None;
    }
    let (a, b) = (s.args[0], s.args[1]);
    if op.commutes() && uniform_const(r.f, a).is_some() && uniform_const(r.f, b).is_none() {
        return Some(Become(s.op.clone(), vec![b, a]));
    }
    let negated = |v| un(r.f, v, UnOp::FNeg);
    match op {
        BinOp::FAdd | BinOp::FSub if negated(b).is_some() => {
            let turned = if op == BinOp::FAdd {
                BinOp::FSub
            } else {
                BinOp::FAdd
            };
            return negated(b).map(|y| Become(Op::Binary(turned), vec![a, y]));
        }
        BinOp::FAdd if negated(a).is_some() => {
            return negated(a).map(|x| Become(Op::Binary(BinOp::FSub), vec![b, x]));
        }
        _ => {}
    }
    let c = uniform_const(r.f, b)?;
    let minus_zero = 1 << (lane.bits() - 1);
    match op {
        BinOp::FMul | BinOp::FDiv if c == one(lane) => Some(Same(a)),
        // The same bits in every rounding of either, and no constant to keep in a register.
        BinOp::FMul if c == two(lane) => Some(Become(Op::Binary(BinOp::FAdd), vec![a, a])),
        BinOp::FAdd if c == minus_zero => Some(Same(a)),
        BinOp::FSub if c == 0 => Some(Same(a)),
        _ => None,
    }
}

pub(super) fn unary(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let x = s.args[0];
    match s.op {
        Op::Unary(UnOp::FNeg) => un(r.f, x, UnOp::FNeg).map(Same),
        Op::Unary(UnOp::FAbs) if un(r.f, x, UnOp::FAbs).is_some() => Some(Same(x)),
        Op::Unary(UnOp::FAbs) => un(r.f, x, UnOp::FNeg).map(|y| Become(s.op.clone(), vec![y])),
        _ => None,
    }
}

/// Under a constant register that rounds to nearest and keeps denormals these are the plain operations.
pub(super) fn fp_env(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let Op::FpEnv(op) = s.op else {
        return None;
    };
    let control = uniform_const(r.f, s.args[0])?;
    let plain = control & CR0_FLOAT == CR0_PLAIN;
    // Whatever the rounding, where nothing is flushed.
    if op == FpEnvOp::Flush && control & CR0_PLAIN == CR0_PLAIN {
        return Some(Same(s.args[1]));
    }
    let (from, to) = (r.f.ty(s.args[1]).lane, s.ty.lane);
    if !plain || op != FpEnvOp::FToF && !to.is_float() {
        return None;
    }
    let args = s.args[1..].to_vec();
    let op = match op {
        FpEnvOp::Add => Op::Binary(BinOp::FAdd),
        FpEnvOp::Mul => Op::Binary(BinOp::FMul),
        FpEnvOp::Div => Op::Binary(BinOp::FDiv),
        FpEnvOp::Fma => Op::Fma,
        FpEnvOp::Sqrt => Op::Unary(UnOp::FSqrt),
        FpEnvOp::SIToF => Op::Convert(Conv::SIToF),
        FpEnvOp::UIToF => Op::Convert(Conv::UIToF),
        FpEnvOp::Flush => return None,
        FpEnvOp::FToF => Op::Convert(match (from, to) {
            (Lane::I16, Lane::F32 | Lane::F64) => Conv::F16ToF,
            (Lane::F32 | Lane::F64, Lane::I16) => Conv::FToF16,
            (Lane::F32, Lane::F64) => Conv::FPromote,
            (Lane::F64, Lane::F32) => Conv::FDemote,
            _ => return Some(Same(s.args[1])),
        }),
    };
    Some(Become(op, args))
}
