//! Conversions between lane types.

use inkwell::FloatPredicate;
use inkwell::values::InstructionOpcode as I;
use target_lexicon::Architecture;

use super::emit::{EmitResult, LlvmEmitter, V};
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

/// Bits of a number in a format that has it.
fn float_bits(lane: Lane, x: f64) -> u64 {
    match lane {
        Lane::F32 => u64::from((x as f32).to_bits()),
        _ => x.to_bits(),
    }
}

/// The numbers of a float format that an integer format holds.
struct IntRange {
    /// The lowest.
    lowest: f64,
    /// The highest.
    highest: f64,
    /// The first number above the integers, where the float format does not have the largest integer.
    limit: Option<f64>,
    /// The largest integer.
    most: u64,
}

impl IntRange {
    fn new(signed: bool, to: Lane, from: Lane) -> IntRange {
        let bits = to.bits() - u32::from(signed);
        let limit = 2f64.powi(bits as i32);
        let mantissa = if from == Lane::F32 { 24 } else { 53 };
        let exact = bits <= mantissa;
        IntRange {
            lowest: if signed { -limit } else { 0.0 },
            highest: if exact {
                limit - 1.0
            } else {
                limit - 2f64.powi((bits - mantissa) as i32)
            },
            limit: (!exact).then_some(limit),
            most: u64::MAX >> (64 - bits),
        }
    }
}

impl<'c> LlvmEmitter<'c, '_> {
    /// A conversion instruction.
    pub(super) fn convert(&mut self, conv: Conv, to: Ty, a: Value) -> EmitResult<V<'c>> {
        let from = self.ty(a);
        let v = self.get(a)?;
        let ty = self.type_of(to);
        match conv {
            Conv::SExt => self.cast(I::SExt, v, ty),
            Conv::ZExt => self.cast(I::ZExt, v, ty),
            Conv::Trunc => self.cast(I::Trunc, v, ty),
            Conv::SIToF => self.cast(I::SIToFP, v, ty),
            Conv::UIToF => self.cast(I::UIToFP, v, ty),
            Conv::FToSI => self.float_to_int(true, to, (from, v)),
            Conv::FToUI => self.float_to_int(false, to, (from, v)),
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

    /// Towards zero, saturating; zero for NaN.
    ///
    /// LLVM has an intrinsic, which it carries out lane by lane on x86 whatever the vectors. Clamping first takes a few instructions for
    /// all lanes.
    fn float_to_int(&mut self, signed: bool, to: Ty, (from, v): (Ty, V<'c>)) -> EmitResult<V<'c>> {
        if to.is_scalar() || self.cpu.target.architecture != Architecture::X86_64 {
            let name = if signed {
                "llvm.fptosi.sat"
            } else {
                "llvm.fptoui.sat"
            };
            return self.intrinsic(name, &[to, from], &[v]);
        }
        let range = IntRange::new(signed, to.lane, from.lane);
        let k = |e: &Self, x: f64| e.konst(from, float_bits(from.lane, x));
        let number = if signed {
            let ordered = self.fcmp(FloatPredicate::ORD, v, v)?;
            self.select(ordered, v, k(self, 0.0)?)?
        } else {
            // The comparison below makes zero of NaN.
            v
        };
        let lowest = k(self, range.lowest)?;
        let above = self.fcmp(FloatPredicate::OGT, number, lowest)?;
        let raised = self.select(above, number, lowest)?;
        let highest = k(self, range.highest)?;
        let below = self.fcmp(FloatPredicate::OLT, raised, highest)?;
        let clamped = self.select(below, raised, highest)?;
        // Vectors of smaller integers are not converted to in one instruction. Theirs are not negative as numbers of 32 bits.
        let (wide, signed) = match to.lane.bits() {
            ..32 => (to.with_lane(Lane::I32), true),
            _ => (to, signed),
        };
        let op = if signed { I::FPToSI } else { I::FPToUI };
        let converted = self.cast(op, clamped, self.type_of(wide))?;
        if wide != to {
            return self.cast(I::Trunc, converted, self.type_of(to));
        }
        let Some(limit) = range.limit else {
            return Ok(converted);
        };
        let over = self.fcmp(FloatPredicate::OGE, v, k(self, limit)?)?;
        let most = self.konst(to, range.most)?;
        self.select(over, most, converted)
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
