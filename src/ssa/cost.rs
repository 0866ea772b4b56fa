//! How long operations take.

use super::op::{BinOp, Op, UnOp};

impl Op {
    /// Half cycles from float arithmetic to the first operation that can use its result, on today's processors; 0 for all other operations.
    pub const fn float_latency(&self) -> u32 {
        use BinOp::{FAdd, FDiv, FMul, FScale, FSub};
        use UnOp::{FCeil, FFloor, FNearest, FSqrt, FTrunc};
        match self {
            Op::Binary(FDiv) => 28,
            Op::Unary(FSqrt) => 36,
            Op::Fma
            | Op::Binary(FAdd | FSub | FMul | FScale)
            | Op::Unary(FNearest | FTrunc | FFloor | FCeil) => 8,
            _ => 0,
        }
    }
}
