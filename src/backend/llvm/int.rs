//! Integer division and high halves of products.
//!
//! Vectors are divided as doubles, which hold quotients of up to 32 bits exactly. There is no vector instruction for integer
//! division, and LLVM would divide lane by lane. Quotients of 64 bits are put together from two estimates, where there are instructions between
//! doubles and integers of 64 bits.

use inkwell::IntPredicate;
use inkwell::values::InstructionOpcode as I;

use super::emit::{EmitResult, LlvmEmitter, V};
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
            self.quotient_by_doubles(ty, signed, a, b)?
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
    fn quotient_by_doubles(
        &mut self,
        ty: Ty,
        signed: bool,
        a: V<'c>,
        b: V<'c>,
    ) -> EmitResult<V<'c>> {
        let doubles = ty.with_lane(Lane::F64);
        let to_double = if signed { I::SIToFP } else { I::UIToFP };
        let a = self.cast(to_double, a, self.type_of(doubles))?;
        let b = self.cast(to_double, b, self.type_of(doubles))?;
        let ratio = self.op2(I::FDiv, a, b)?;
        let whole = self.intrinsic("llvm.trunc", &[doubles], &[ratio])?;
        let move_by = self.konst(doubles, TO_LOW_BITS)?;
        let moved = self.op2(I::FAdd, whole, move_by)?;
        let bits = self.cast_bits(moved, self.type_of(ty.with_lane(Lane::I64)))?;
        self.cast(I::Trunc, bits, self.type_of(ty))
    }
}
