//! binary16 conversions as integer code on 32-bit lanes: exact, denormals kept, one rounding.

use cranelift_codegen::ir::condcodes::{FloatCC, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::CraneliftEmitter;
use crate::ssa::Lane;

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

impl CraneliftEmitter<'_> {
    /// Words with binary16 bits in their low half to `f32`.
    pub(super) fn half_to_float(&mut self, words: V) -> V {
        let low15 = self.vsplat(Lane::I32, 0x7FFF);
        let magnitude = self.ins().band(words, low15);
        let placed = self.shift_left_by(magnitude, 13);
        let as_float = self.cast(placed, types::F32X4);
        let scale = self.vsplat(Lane::F32, TWO_POW_112);
        let scaled = self.ins().fmul(as_float, scale);
        let scaled = self.cast(scaled, types::I32X4);
        let largest = self.vsplat(Lane::I32, 0x7BFF);
        let special = self
            .ins()
            .icmp(IntCC::SignedGreaterThan, magnitude, largest);
        let infinity = self.vsplat(Lane::I32, F32_INFINITY);
        let exponent = self.ins().band(special, infinity);
        let value = self.ins().bor(scaled, exponent);
        let sign = self.ins().bxor(words, magnitude);
        let sign = self.shift_left_by(sign, 16);
        let signed = self.ins().bor(value, sign);
        self.cast(signed, types::F32X4)
    }

    /// `f32` to words with binary16 bits in their low half.
    pub(super) fn float_to_half(&mut self, float: V) -> V {
        let bits = self.cast(float, types::I32X4);
        let low31 = self.vsplat(Lane::I32, 0x7FFF_FFFF);
        let a = self.ins().band(bits, low31);
        let sign = self.ins().bxor(bits, a);
        let sign = self.shift_right_by(sign, 16);

        let last = self.shift_right_by(a, 13);
        let one = self.vsplat(Lane::I32, 1);
        let odd = self.ins().band(last, one);
        let bias = self.vsplat(Lane::I32, 0xFFFu64.wrapping_sub(REBIAS));
        let rounded = self.ins().iadd(a, bias);
        let rounded = self.ins().iadd(rounded, odd);
        let normal = self.shift_right_by(rounded, 13);

        let as_float = self.cast(a, types::F32X4);
        let half = self.vsplat(Lane::F32, ONE_HALF);
        let aligned = self.ins().fadd(as_float, half);
        let aligned = self.cast(aligned, types::I32X4);
        let half_bits = self.vsplat(Lane::I32, ONE_HALF);
        let denormal = self.ins().isub(aligned, half_bits);

        let min_normal = self.vsplat(Lane::I32, MIN_NORMAL);
        let small = self.ins().icmp(IntCC::SignedLessThan, a, min_normal);
        let finite = self.blend(small, denormal, normal);

        let largest = self.vsplat(Lane::I32, TOO_LARGE - 1);
        let overflow = self.ins().icmp(IntCC::SignedGreaterThan, a, largest);
        let infinity = self.vsplat(Lane::I32, 0x7C00);
        let value = self.blend(overflow, infinity, finite);
        let f32_infinity = self.vsplat(Lane::I32, F32_INFINITY);
        let nan = self.ins().icmp(IntCC::SignedGreaterThan, a, f32_infinity);
        let quiet = self.vsplat(Lane::I32, 0x200);
        let quiet = self.ins().band(nan, quiet);
        let value = self.ins().bor(value, quiet);
        self.ins().bor(value, sign)
    }

    /// Two pieces of `f64` to one of `f32`, rounded to odd: a second rounding to binary16 then
    /// gives what one rounding from `f64` would.
    pub(super) fn doubles_to_odd_floats(&mut self, low: V, high: V) -> V {
        let nearest = self.demote_pair(low, high);
        let (back_low, back_high) = self.promote_piece(nearest);
        let inexact = self.compare_pair(FloatCC::NotEqual, [back_low, low], [back_high, high]);
        let magnitudes = [back_low, low, back_high, high].map(|v| self.ins().fabs(v));
        let [bl, l, bh, h] = magnitudes;
        let above = self.compare_pair(FloatCC::GreaterThan, [bl, l], [bh, h]);
        let bits = self.cast(nearest, types::I32X4);
        // `above` lanes are -1: one step toward zero.
        let truncated = self.ins().iadd(bits, above);
        let one = self.vsplat(Lane::I32, 1);
        let odd = self.ins().bor(truncated, one);
        let result = self.blend(inexact, odd, bits);
        self.cast(result, types::F32X4)
    }

    fn compare_pair(&mut self, cc: FloatCC, low: [V; 2], high: [V; 2]) -> V {
        let low = self.ins().fcmp(cc, low[0], low[1]);
        let high = self.ins().fcmp(cc, high[0], high[1]);
        let (low, high) = (self.cast(low, types::I32X4), self.cast(high, types::I32X4));
        self.shuffle_lanes(Lane::I32, low, high, &[0, 2, 4, 6])
    }

    /// Two pieces of `f64` as one of `f32`, nearest-even.
    pub(super) fn demote_pair(&mut self, low: V, high: V) -> V {
        let low = self.ins().fvdemote(low);
        let high = self.ins().fvdemote(high);
        self.shuffle_lanes(Lane::F32, low, high, &[0, 1, 4, 5])
    }

    /// A piece of `f32` as two of `f64`.
    pub(super) fn promote_piece(&mut self, v: V) -> (V, V) {
        let low = self.ins().fvpromote_low(v);
        let upper = self.shuffle_lanes(Lane::F32, v, v, &[2, 3, 2, 3]);
        (low, self.ins().fvpromote_low(upper))
    }
}
