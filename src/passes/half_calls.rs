//! Arithmetic of binary16 vectors becomes one call of a helper for each operation.
//!
//! Code generators without instructions for binary16 take some twenty instructions of integer arithmetic to round four lanes of
//! it. One SIMD32 `mad` is 700 of them. The helper uses the processor's conversions where it has some.
//!
//! Guarantees: each value is the same; a NaN may have other bits. An operation between exact conversions is the operation of
//! binary16, rounded once:
//! - products have 22 bits, so they are exact in binary32 and wider;
//! - sums in binary32 or wider round to what rounding once gives, as 24 bits are at least twice 11 and two more;
//! - fused products need binary64. The product is exact there. Its sum with the addend is not exact in two cases only. Either the
//!   addend is more than 2^29 times as large as the product; it is a binary16 number itself, so the sum is far from every tie. Or
//!   the product is above 2^28, and the result is infinite however it is rounded.
//!
//! Not done: vectors of fewer than eight lanes, quotients, roots, saturation.

use super::edit::{Rewriter, const_lanes, lanes_op, replace_results};
use crate::ssa::fp_env::CR0_PLAIN;
use crate::ssa::{BinOp, Conv, Function, Lane, Op, Ty, UnOp, Value};
use crate::ssa::{FpEnvOp, scalar};

/// Fewer lanes are not worth a call.
const LANES: u16 = 8;

/// Bit of a binary16 number.
const SIGN: u64 = 0x8000;

/// Depth to which operands are followed.
const DEPTH: usize = 4;

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    replace_results(f, |r, i| {
        let data = r.f.inst(i);
        let Op::Convert(Conv::FToF16) = data.op else {
            return None;
        };
        let ty = r.f.ty(data.results[0]);
        let (op, sources) = operation(r.f, data.args[0]).filter(|_| ty.lanes >= LANES)?;
        let mut args = vec![r.constant(Ty::scalar(Lane::I32), CR0_PLAIN.into())];
        args.extend(sources.into_iter().map(|s| s.emit(r, ty)));
        Some(r.emit(Op::FpEnv(op), args, ty))
    })
}

/// An operation on halves that was done in a wider format, and its operands.
fn operation(f: &Function, wide: Value) -> Option<(FpEnvOp, Vec<Half>)> {
    let data = f.def_inst(wide)?;
    let op = match data.op {
        Op::Binary(BinOp::FAdd) => FpEnvOp::Add,
        Op::Binary(BinOp::FMul) => FpEnvOp::Mul,
        Op::Fma if f.ty(wide).lane == Lane::F64 => FpEnvOp::Fma,
        _ => return None,
    };
    let sources = data.args.iter().map(|&a| half(f, a, DEPTH));
    Some((op, sources.collect::<Option<Vec<_>>>()?))
}

/// A wide value that is a half, made wider.
enum Half {
    Vector(Value),
    /// The same in all lanes.
    Scalar(Value),
    Constant(Vec<u64>),
    /// Bits of `.0`, some cleared (`and`), others flipped (`xor`).
    Bits {
        of: Box<Half>,
        and: u64,
        xor: u64,
    },
}

fn half(f: &Function, v: Value, depth: usize) -> Option<Half> {
    if let Some(lanes) = const_lanes(f, v) {
        let lane = f.ty(v).lane;
        return lanes
            .iter()
            .map(|&bits| exact(lane, bits))
            .collect::<Option<_>>()
            .map(Half::Constant);
    }
    let (data, depth) = (f.def_inst(v)?, depth.checked_sub(1)?);
    let source = *data.args.first()?;
    let bits = |and, xor| {
        let of = Box::new(half(f, source, depth)?);
        Some(Half::Bits { of, and, xor })
    };
    match data.op {
        Op::Convert(Conv::F16ToF) if f.ty(v).is_scalar() => Some(Half::Scalar(source)),
        Op::Convert(Conv::F16ToF) => Some(Half::Vector(source)),
        Op::Convert(Conv::FPromote) | Op::Splat => half(f, source, depth),
        Op::Unary(UnOp::FNeg) => bits(!0, SIGN),
        Op::Unary(UnOp::FAbs) => bits(SIGN - 1, 0),
        _ => None,
    }
}

/// Bits of the half that a constant is, if it is one.
fn exact(lane: Lane, bits: u64) -> Option<u64> {
    let half = scalar::convert(Conv::FToF16, lane, Lane::I16, bits);
    (scalar::convert(Conv::F16ToF, Lane::I16, lane, half) == bits).then_some(half)
}

impl Half {
    fn emit(self, r: &mut Rewriter, ty: Ty) -> Value {
        match self {
            Half::Vector(v) => v,
            Half::Scalar(v) => r.emit(Op::Splat, vec![v], ty),
            Half::Constant(lanes) => {
                let lanes = match lanes.as_slice() {
                    [bits] => vec![*bits; usize::from(ty.lanes)],
                    _ => lanes,
                };
                r.emit(lanes_op(lanes), Vec::new(), ty)
            }
            Half::Bits { of, and, xor } => {
                let mut v = of.emit(r, ty);
                for (op, bits, nothing) in [(BinOp::And, and, !0), (BinOp::Xor, xor, 0)] {
                    if bits != nothing {
                        let bits = r.constant(ty, bits);
                        v = r.emit(Op::Binary(op), vec![v, bits], ty);
                    }
                }
                v
            }
        }
    }
}
