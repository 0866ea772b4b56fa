//! Integer division and high halves of products.
//!
//! Vectors are divided as doubles, which hold quotients of up to 32 bits exactly, and those of up to 16 bits as floats. There is no vector
//! instruction for integer division, and LLVM would divide lane by lane. With AVX-512, reciprocals and products take the place of the division.
//! Quotients of 64 bits are put together from two estimates, where there are instructions between doubles and integers of 64 bits.

use inkwell::IntPredicate;
use inkwell::values::InstructionOpcode as I;

use super::emit::{EmitResult, LlvmEmitter, V};
use super::ops::ROUNDING_OF_MXCSR;
use super::types::{lanes_of, padded_lanes};
use crate::ssa::{BinOp, Lane, Ty};

/// 1.5 * 2^52: a whole number of at most 51 bits added to it stands in the low bits of the sum.
const TO_LOW_BITS: u64 = 0x4338_0000_0000_0000;

impl<'c> LlvmEmitter<'c, '_> {
    /// High half of a product.
    pub(super) fn multiply_high(
        &mut self,
        ty: Ty,
        signed: bool,
        a: V<'c>,
        b: V<'c>,
    ) -> EmitResult<V<'c>> {
        let bits = ty.lane.bits();
        let double = lanes_of(self.int(2 * bits).into(), padded_lanes(ty.lanes));
        let extend = if signed { I::SExt } else { I::ZExt };
        let (a, b) = (self.cast(extend, a, double)?, self.cast(extend, b, double)?);
        let product = self.op2(I::Mul, a, b)?;
        let by: V = self.int(2 * bits).const_int(u64::from(bits), false).into();
        let by = self.splat(by, ty.lanes)?;
        let high = self.op2(I::LShr, product, by)?;
        self.cast(I::Trunc, high, self.type_of(ty))
    }

    /// A division or remainder, defined for every operand.
    pub(super) fn divide(&mut self, op: BinOp, ty: Ty, a: V<'c>, b: V<'c>) -> EmitResult<V<'c>> {
        let zero = self.konst(ty, 0)?;
        let by_zero = self.icmp(IntPredicate::EQ, b, zero)?;
        let signed = matches!(op, BinOp::SDiv | BinOp::SRem);
        let rest = matches!(op, BinOp::SRem | BinOp::URem);
        let quotient = if ty.is_scalar() || ty.lane == Lane::I64 {
            let one = self.konst(ty, 1)?;
            let safe = self.select(by_zero, one, b)?;
            match ty.is_scalar() || !self.cpu.avx512 {
                true => self.quotient(ty, signed, a, safe)?,
                false => self.long_quotient(ty, signed, a, safe)?,
            }
        } else {
            self.quotient_by_floats(ty, signed, a, b)?
        };
        if rest {
            // The quotient of `MIN` and -1 wraps to `MIN`, so that nothing is left.
            let product = self.op2(I::Mul, quotient, b)?;
            let rest = self.op2(I::Sub, a, product)?;
            return self.select(by_zero, a, rest);
        }
        let special = if signed {
            let negative = self.icmp(IntPredicate::SLT, a, zero)?;
            let most = self.konst(ty, ty.lane.mask() >> 1)?;
            let least = self.konst(ty, (ty.lane.mask() >> 1) + 1)?;
            self.select(negative, least, most)?
        } else {
            self.konst(ty, u64::MAX)?
        };
        self.select(by_zero, special, quotient)
    }

    /// By division instructions, for a divisor that is not 0. `MIN / -1`, which would trap, is kept away from them.
    fn quotient(&mut self, ty: Ty, signed: bool, a: V<'c>, b: V<'c>) -> EmitResult<V<'c>> {
        if !signed {
            return self.op2(I::UDiv, a, b);
        }
        let (one, minus_one) = (self.konst(ty, 1)?, self.konst(ty, u64::MAX)?);
        let negates = self.icmp(IntPredicate::EQ, b, minus_one)?;
        let safe = self.select(negates, one, b)?;
        let quotient = self.op2(I::SDiv, a, safe)?;
        let zero = self.konst(ty, 0)?;
        let negated = self.op2(I::Sub, zero, a)?;
        self.select(negates, negated, quotient)
    }

    /// Of 64-bit lanes, for a divisor that is not 0, by two estimates of which neither is too large.
    ///
    /// Proof for unsigned numbers, with `u` for `2^-53`. Conversions, the division and both products are rounded by a factor between `1 - u` and `1 + u` each, five
    /// of them in an estimate. The reciprocal is multiplied by `1 - 8u`, which outweighs them: the product is less than `a / b`, and at least `a / b * (1 - 14u)`, so that it is below `2^64` and
    /// the remainder `r` is not negative. `r / b` is at most `a / b * 14u + 1`, below `2^15`, so that the second estimate is at most 1 too small: the last
    /// remainder is less than `2b`. Neither remainder is larger than `a`, so that nothing wraps.
    fn long_quotient(&mut self, ty: Ty, signed: bool, a: V<'c>, b: V<'c>) -> EmitResult<V<'c>> {
        if !signed {
            return self.unsigned_long_quotient(ty, a, b);
        }
        let zero = self.konst(ty, 0)?;
        let magnitude = |v| {
            let negative = self.icmp(IntPredicate::SLT, v, zero)?;
            let negated = self.op2(I::Sub, zero, v)?;
            self.select(negative, negated, v)
        };
        let (x, y) = (magnitude(a)?, magnitude(b)?);
        let quotient = self.unsigned_long_quotient(ty, x, y)?;
        let signs = self.op2(I::Xor, a, b)?;
        let negative = self.icmp(IntPredicate::SLT, signs, zero)?;
        let negated = self.op2(I::Sub, zero, quotient)?;
        self.select(negative, negated, quotient)
    }

    fn unsigned_long_quotient(&mut self, ty: Ty, a: V<'c>, b: V<'c>) -> EmitResult<V<'c>> {
        let doubles = ty.with_lane(Lane::F64);
        let divisor = self.cast(I::UIToFP, b, self.type_of(doubles))?;
        let dividend = self.konst(doubles, 1f64.to_bits())?;
        let below_one = self.konst(doubles, (1.0 - 4.0 * f64::EPSILON).to_bits())?;
        let reciprocal = self.op2(I::FDiv, dividend, divisor)?;
        let reciprocal = self.op2(I::FMul, reciprocal, below_one)?;
        let (zero, one) = (self.konst(ty, 0)?, self.konst(ty, 1)?);
        let (mut left, mut quotient) = (a, zero);
        for _ in 0..2 {
            let number = self.cast(I::UIToFP, left, self.type_of(doubles))?;
            let estimate = self.op2(I::FMul, number, reciprocal)?;
            let estimate = self.cast(I::FPToUI, estimate, self.type_of(ty))?;
            let product = self.op2(I::Mul, estimate, b)?;
            left = self.op2(I::Sub, left, product)?;
            quotient = self.op2(I::Add, quotient, estimate)?;
        }
        let once_more = self.icmp(IntPredicate::UGE, left, b)?;
        let once_more = self.select(once_more, one, zero)?;
        self.op2(I::Add, quotient, once_more)
    }

    /// Exact for lanes of up to 32 bits; of a zero divisor, something.
    ///
    /// The quotient of `a` by `b` is a whole number, or is below the next one by `1 / b` or more. That is `1 / a` of the quotient: at least
    /// `2^-16` of it for 16 bits, and `2^-32` for 32. Floats are rounded by `2^-24`, and doubles by `2^-53`, so that none becomes the next one.
    fn quotient_by_floats(
        &mut self,
        ty: Ty,
        signed: bool,
        a: V<'c>,
        b: V<'c>,
    ) -> EmitResult<V<'c>> {
        let short = ty.lane.bits() <= 16;
        let floats = ty.with_lane(if short { Lane::F32 } else { Lane::F64 });
        let to_float = if signed { I::SIToFP } else { I::UIToFP };
        let a = self.cast(to_float, a, self.type_of(floats))?;
        let b = self.cast(to_float, b, self.type_of(floats))?;
        let piece = 512 / floats.lane.bits();
        let words = self.type_of(ty.with_lane(Lane::I32));
        if self.cpu.avx512 && self.cpu.vectors == 512 && u32::from(padded_lanes(ty.lanes)) >= piece
        {
            let quotient = self.in_pieces(piece, ty.lanes, &[a, b], |e, v| {
                e.quotient_by_reciprocal(floats.lane, signed, v[0], v[1])
            })?;
            return match ty.lane {
                Lane::I32 => Ok(quotient),
                _ => self.cast(I::Trunc, quotient, self.type_of(ty)),
            };
        }
        let ratio = self.op2(I::FDiv, a, b)?;
        if short {
            let whole = self.cast(I::FPToSI, ratio, words)?;
            return self.cast(I::Trunc, whole, self.type_of(ty));
        }
        let whole = self.intrinsic("llvm.trunc", &[floats], &[ratio])?;
        let move_by = self.konst(floats, TO_LOW_BITS)?;
        let moved = self.op2(I::FAdd, whole, move_by)?;
        let bits = self.cast_bits(moved, self.type_of(ty.with_lane(Lane::I64)))?;
        self.cast(I::Trunc, bits, self.type_of(ty))
    }

    /// Of whole numbers in a register of floats, below `2^16`, or of doubles, below `2^32`, as lanes of 32 bits.
    ///
    /// Proof: the instruction's reciprocal is `(1 - d) / b` with `|d| <= 2^-14`. A step of Newton's iteration leaves `d^2`, and the last one
    /// aims at `1 + x` instead of 1. With doubles, `d^4 <= 2^-56`, the roundings are `2^-53` each, and `x` is `2^-40`, so that the product with
    /// `a` is `a / b * (1 + y)` with `2^-41 < y < 2^-39`. It is at least `a / b`, and larger than it by less than `2^-39 * a / b < 1 / b`, which is
    /// how far the next whole number is at least. With floats, `d^2 <= 2^-28`, the roundings are `2^-24`, `x` is `2^-19`, and `2^-20 < y < 2^-18`,
    /// so that the product is larger by less than `2^-18 * a / b < 1 / b`. Signs change nothing in this.
    fn quotient_by_reciprocal(
        &mut self,
        lane: Lane,
        signed: bool,
        a: V<'c>,
        b: V<'c>,
    ) -> EmitResult<V<'c>> {
        let double = lane == Lane::F64;
        let (reciprocal, lanes, aims): (_, _, &[u64]) = match double {
            true => (
                "llvm.x86.avx512.rcp14.pd.512",
                8,
                &[1f64.to_bits(), (1.0 + 2f64.powi(-40)).to_bits()],
            ),
            false => (
                "llvm.x86.avx512.rcp14.ps.512",
                16,
                &[u64::from((1.0 + 2f32.powi(-19)).to_bits())],
            ),
        };
        let ty = Ty::vector(lane, lanes);
        let all: V = self.int(u32::from(lanes)).const_all_ones().into();
        let mut inverse = self.intrinsic(reciprocal, &[], &[b, b, all])?;
        let minus_b = self.negated(b)?;
        for &aim in aims {
            let aim = self.konst(ty, aim)?;
            let error = self.intrinsic("llvm.fma", &[ty], &[minus_b, inverse, aim])?;
            inverse = self.intrinsic("llvm.fma", &[ty], &[inverse, error, inverse])?;
        }
        let ratio = self.op2(I::FMul, a, inverse)?;
        let words = self.type_of(Ty::vector(Lane::I32, lanes));
        match (double, signed) {
            (false, _) => self.cast(I::FPToSI, ratio, words),
            (true, false) => self.cast(I::FPToUI, ratio, words),
            // Of `MIN / -1` the instruction makes `MIN`; what LLVM's conversion makes of it is not defined.
            (true, true) => {
                let current = self.i32(ROUNDING_OF_MXCSR).into();
                let none = self.konst(Ty::vector(Lane::I32, lanes), 0)?;
                let args = [ratio, none, all, current];
                self.intrinsic("llvm.x86.avx512.mask.cvttpd2dq.512", &[], &args)
            }
        }
    }
}
