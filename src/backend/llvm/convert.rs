//! Conversions between lane types.

use inkwell::FloatPredicate;
use inkwell::values::InstructionOpcode as I;

use super::emit::{Emit, EmitResult, V};
use super::types::{lanes_of, padded_lanes};
use crate::ssa::{Conv, Lane, Ty, Value};

/// Bits of 2^112: moves a binary16 exponent, shifted into place, to binary32's bias.
const TWO_POW_112: u64 = 0x7780_0000;
/// Bits of 0.5: adding it leaves a value below 2^-14 in the low mantissa bits, rounded.
const ONE_HALF: u64 = 0x3F00_0000;
/// Bits of 2^-14, the smallest normal binary16.
const MIN_NORMAL: u64 = 0x3880_0000;
/// Bits of 2^16, beyond every binary16.
const TOO_LARGE: u64 = 0x4780_0000;
const F32_INFINITY: u64 = 0x7F80_0000;
/// Difference of the exponent biases, in place.
const REBIAS: u64 = 112 << 23;

impl<'c> Emit<'c, '_> {
    /// A conversion instruction.
    pub fn convert(&mut self, conv: Conv, to: Ty, a: Value) -> EmitResult<V<'c>> {
        let from = self.ty(a);
        let v = self.get(a)?;
        let ty = self.type_of(to);
        match conv {
            Conv::SExt => self.cast(I::SExt, v, ty),
            Conv::ZExt => self.cast(I::ZExt, v, ty),
            Conv::Trunc => self.cast(I::Trunc, v, ty),
            Conv::SIToF => self.cast(I::SIToFP, v, ty),
            Conv::UIToF => self.cast(I::UIToFP, v, ty),
            Conv::FToSI => self.intrinsic("llvm.fptosi.sat", &[to, from], &[v]),
            Conv::FToUI => self.intrinsic("llvm.fptoui.sat", &[to, from], &[v]),
            Conv::FPromote => self.cast(I::FPExt, v, ty),
            Conv::FDemote => self.cast(I::FPTrunc, v, ty),
            Conv::F16ToF => {
                let floats = from.with_lane(Lane::F32);
                let singles = self.half_to_float(from, v)?;
                if to == floats {
                    return Ok(singles);
                }
                self.cast(I::FPExt, singles, ty)
            }
            Conv::FToF16 => {
                let singles = match from.lane {
                    Lane::F64 => self.double_to_odd_float(from, v)?,
                    _ => v,
                };
                self.float_to_half(to, singles)
            }
        }
    }

    fn half_to_float(&mut self, from: Ty, v: V<'c>) -> EmitResult<V<'c>> {
        let floats = self.type_of(from.with_lane(Lane::F32));
        if self.cpu.f16c {
            let halves = lanes_of(self.cx.f16_type().into(), padded_lanes(from.lanes));
            let halves = self.cast_bits(v, halves)?;
            return self.cast(I::FPExt, halves, floats);
        }
        let words = from.with_lane(Lane::I32);
        let k = |e: &Self, bits: u64| e.konst(words, bits);
        let x = self.cast(I::ZExt, v, self.type_of(words))?;
        let magnitude = self.op2(I::And, x, k(self, 0x7FFF)?)?;
        let placed = self.op2(I::Shl, magnitude, k(self, 13)?)?;
        let placed = self.cast_bits(placed, floats)?;
        let scale = self.konst(from.with_lane(Lane::F32), TWO_POW_112)?;
        let scaled = self.op2(I::FMul, placed, scale)?;
        let scaled = self.cast_bits(scaled, self.type_of(words))?;
        let largest = k(self, 0x7BFF)?;
        let special = self.icmp(inkwell::IntPredicate::SGT, magnitude, largest)?;
        let exponent = self.select(special, k(self, F32_INFINITY)?, k(self, 0)?)?;
        let value = self.op2(I::Or, scaled, exponent)?;
        let sign = self.op2(I::Xor, x, magnitude)?;
        let sign = self.op2(I::Shl, sign, k(self, 16)?)?;
        let signed = self.op2(I::Or, value, sign)?;
        self.cast_bits(signed, floats)
    }

    fn float_to_half(&mut self, to: Ty, v: V<'c>) -> EmitResult<V<'c>> {
        if self.cpu.f16c {
            let halves = lanes_of(self.cx.f16_type().into(), padded_lanes(to.lanes));
            let halves = self.cast(I::FPTrunc, v, halves)?;
            return self.cast_bits(halves, self.type_of(to));
        }
        let (words, floats) = (to.with_lane(Lane::I32), to.with_lane(Lane::F32));
        let word_type = self.type_of(words);
        let k = |e: &Self, bits: u64| e.konst(words, bits);
        let bits = self.cast_bits(v, word_type)?;
        let a = self.op2(I::And, bits, k(self, 0x7FFF_FFFF)?)?;
        let sign = self.op2(I::Xor, bits, a)?;
        let sign = self.op2(I::LShr, sign, k(self, 16)?)?;

        let last = self.op2(I::LShr, a, k(self, 13)?)?;
        let odd = self.op2(I::And, last, k(self, 1)?)?;
        let rounded = self.op2(I::Add, a, k(self, 0xFFFu64.wrapping_sub(REBIAS))?)?;
        let rounded = self.op2(I::Add, rounded, odd)?;
        let normal = self.op2(I::LShr, rounded, k(self, 13)?)?;

        let magnitude = self.cast_bits(a, self.type_of(floats))?;
        let half = self.konst(floats, ONE_HALF)?;
        let aligned = self.op2(I::FAdd, magnitude, half)?;
        let aligned = self.cast_bits(aligned, word_type)?;
        let denormal = self.op2(I::Sub, aligned, k(self, ONE_HALF)?)?;

        let above = |e: &Self, limit: u64| {
            let limit = k(e, limit)?;
            e.icmp(inkwell::IntPredicate::SGT, a, limit)
        };
        let small = above(self, MIN_NORMAL - 1)?;
        let finite = self.select(small, normal, denormal)?;
        let overflow = above(self, TOO_LARGE - 1)?;
        let value = self.select(overflow, k(self, 0x7C00)?, finite)?;
        let nan = above(self, F32_INFINITY)?;
        let value = self.select(nan, k(self, 0x7E00)?, value)?;
        let value = self.op2(I::Or, value, sign)?;
        self.cast(I::Trunc, value, self.type_of(to))
    }

    /// `f64` to `f32` rounded to odd: a second rounding to binary16 then gives what one rounding would.
    fn double_to_odd_float(&mut self, from: Ty, v: V<'c>) -> EmitResult<V<'c>> {
        let (floats, words) = (from.with_lane(Lane::F32), from.with_lane(Lane::I32));
        let nearest = self.cast(I::FPTrunc, v, self.type_of(floats))?;
        let back = self.cast(I::FPExt, nearest, self.type_of(from))?;
        let inexact = self.fcmp(FloatPredicate::UNE, back, v)?;
        let magnitude = self.intrinsic("llvm.fabs", &[from], &[v])?;
        let back = self.intrinsic("llvm.fabs", &[from], &[back])?;
        let above = self.fcmp(FloatPredicate::OGT, back, magnitude)?;
        let bits = self.cast_bits(nearest, self.type_of(words))?;
        // One step toward zero where the nearest lies beyond.
        let step = self.cast(I::SExt, above, self.type_of(words))?;
        let truncated = self.op2(I::Add, bits, step)?;
        let one = self.konst(words, 1)?;
        let odd = self.op2(I::Or, truncated, one)?;
        let result = self.select(inexact, odd, bits)?;
        self.cast_bits(result, self.type_of(floats))
    }
}
