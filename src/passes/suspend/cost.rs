//! What it costs to compute a value again, in 16-byte pieces, the vectors that machines have.

use crate::ssa::{BinOp, Conv, Function, Input, InstData, Lane, Op, Ty, UnOp};

/// Pieces of a value; a scalar and a mask are one.
pub(super) fn pieces(ty: Ty) -> u32 {
    if ty.lane == Lane::I1 {
        return 1;
    }
    ty.bytes().div_ceil(16)
}

/// Bytes of a value in the frame, as much as its alignment needs.
pub(super) fn frame_bytes(ty: Ty) -> u32 {
    ty.frame_bytes().next_multiple_of(4)
}

/// True for what every resume point has for nothing: constants and what the launch gives.
pub(super) fn is_free(op: &Op) -> bool {
    match op {
        Op::Const(_) | Op::VecConst(_) => true,
        Op::Input(input) => !matches!(input, Input::Tsc | Input::State),
        _ => false,
    }
}

/// Cost of an operation that may be computed again; none for those that must not or had better not.
pub(super) fn inst_cost(f: &Function, data: &InstData) -> Option<u32> {
    let [result] = *data.results.as_slice() else {
        return None;
    };
    if is_free(&data.op) {
        return Some(0);
    }
    if data.op.has_effect() {
        return None;
    }
    let ty = f.ty(result);
    let operands = data.args.iter().map(|&a| pieces(f.ty(a)));
    let wide = operands.fold(pieces(ty), u32::max);
    let wide_lane = ty.lane == Lane::I64 && !ty.is_scalar();
    let each = match &data.op {
        Op::Binary(op) => match op {
            BinOp::SDiv | BinOp::UDiv | BinOp::SRem | BinOp::URem | BinOp::FDiv => return None,
            BinOp::MulHiS | BinOp::MulHiU => return None,
            BinOp::Mul if wide_lane || ty.lane == Lane::I8 => 4,
            BinOp::Mul | BinOp::FMul | BinOp::FAdd | BinOp::FSub => 2,
            BinOp::AShr if wide_lane => 3,
            BinOp::Rotl | BinOp::Rotr => 2,
            _ => 1,
        },
        Op::Unary(UnOp::FSqrt | UnOp::Clz | UnOp::Ctz | UnOp::Popcnt | UnOp::BitRev) => {
            return None;
        }
        Op::Convert(conv) => match conv {
            Conv::SExt | Conv::ZExt | Conv::Trunc => 1,
            Conv::SIToF | Conv::UIToF => 2,
            _ => return None,
        },
        Op::Fma => 2,
        Op::FpEnv(_) | Op::Dot4(_) => return None,
        _ => 1,
    };
    Some(each * wide)
}
