//! Integers of 128 bits as pairs of 64-bit lanes, for results that must be exact before they are saturated
//! or divided: sums and products of quadwords, and operands whose modifier takes them out of 64 bits.

use super::Lowerer;
use super::alu::int_cond;
use super::error::Fail;
use super::operand::{Operand, lane_of};
use crate::isa::{CmpCond, SrcModifier, Type};
use crate::ssa::*;

/// A signed 128-bit number in two's complement.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wide {
    pub lo: Value,
    hi: Value,
}

/// Sign and magnitude; the magnitude of any operand fits 64 bits.
#[derive(Clone, Copy, Debug)]
pub(super) struct Magnitude {
    /// Below zero.
    pub negative: Value,
    pub bits: Value,
}

impl Lowerer<'_> {
    /// The exact value of an integer operand, modifier applied.
    pub(super) fn wide(&mut self, o: Operand) -> Result<Wide, Fail> {
        let plain = Operand {
            modifier: SrcModifier::None,
            ..o
        };
        let lo = self.int(plain, Lane::I64)?;
        let hi = if o.ty.is_signed() {
            self.b.bin_imm(BinOp::AShr, lo, 63)
        } else {
            self.b.int_like(lo, 0)
        };
        let w = Wide { lo, hi };
        Ok(match o.modifier {
            SrcModifier::None => w,
            SrcModifier::Not => return Fail::malformed("`(~)` on an arithmetic operand"),
            SrcModifier::Neg => self.wide_neg(w),
            SrcModifier::Abs | SrcModifier::NegAbs => {
                let m = self.magnitude(w);
                let hi = self.b.int_like(m.bits, 0);
                let w = Wide { lo: m.bits, hi };
                if o.modifier == SrcModifier::Abs {
                    w
                } else {
                    self.wide_neg(w)
                }
            }
        })
    }

    fn wide_neg(&mut self, w: Wide) -> Wide {
        let lo = self.b.un(UnOp::Neg, w.lo);
        let zero = self.b.int_like(lo, 0);
        let carry = self.b.icmp(ICond::Eq, lo, zero);
        let carry = self.b.conv(Conv::ZExt, carry, Lane::I64);
        let hi = self.b.un(UnOp::Not, w.hi);
        let hi = self.b.bin(BinOp::Add, hi, carry);
        Wide { lo, hi }
    }

    /// Sum; the operands are far from the ends of the 128-bit range.
    pub(super) fn wide_add(&mut self, x: Wide, y: Wide) -> Wide {
        let lo = self.b.bin(BinOp::Add, x.lo, y.lo);
        let carry = self.b.icmp(ICond::Ult, lo, x.lo);
        let carry = self.b.conv(Conv::ZExt, carry, Lane::I64);
        let hi = self.b.bin(BinOp::Add, x.hi, y.hi);
        let hi = self.b.bin(BinOp::Add, hi, carry);
        Wide { lo, hi }
    }

    /// `x << n` for `n` from 0 to 63.
    pub(super) fn wide_shl(&mut self, x: Wide, n: Value) -> Wide {
        let lo = self.b.bin(BinOp::Shl, x.lo, n);
        let hi = self.b.bin(BinOp::Shl, x.hi, n);
        // What leaves the low half: shifted by 64 - n in two steps, so that n = 0 leaves nothing.
        let out = self.b.bin_imm(BinOp::LShr, x.lo, 1);
        let rest = self.b.un(UnOp::Not, n);
        let out = self.b.bin(BinOp::LShr, out, rest);
        let hi = self.b.bin(BinOp::Or, hi, out);
        Wide { lo, hi }
    }

    /// The low 64 bits of `x >> n` for `n` from 0 to 63.
    pub(super) fn wide_shr(&mut self, x: Wide, n: Value) -> Value {
        let low = self.b.bin(BinOp::LShr, x.lo, n);
        // What comes down from the high half: shifted by 64 - n in two steps, as above.
        let down = self.b.bin_imm(BinOp::Shl, x.hi, 1);
        let rest = self.b.un(UnOp::Not, n);
        let down = self.b.bin(BinOp::Shl, down, rest);
        self.b.bin(BinOp::Or, low, down)
    }

    /// Sign and magnitude of a number between -2^64 and 2^64.
    pub(super) fn magnitude(&mut self, w: Wide) -> Magnitude {
        let zero = self.b.int_like(w.hi, 0);
        let negative = self.b.icmp(ICond::Slt, w.hi, zero);
        let minus = self.b.un(UnOp::Neg, w.lo);
        Magnitude {
            negative,
            bits: self.b.select(negative, minus, w.lo),
        }
    }

    /// The 64-bit magnitude with a sign as a number.
    pub(super) fn signed(&mut self, m: Magnitude) -> Wide {
        let hi = self.b.int_like(m.bits, 0);
        self.signed_pair(m, hi)
    }

    fn signed_pair(&mut self, m: Magnitude, hi: Value) -> Wide {
        let plus = Wide { lo: m.bits, hi };
        let minus = self.wide_neg(plus);
        Wide {
            lo: self.b.select(m.negative, minus.lo, plus.lo),
            hi: self.b.select(m.negative, minus.hi, plus.hi),
        }
    }

    /// Product, clamped to what 64 bits can tell apart: the high half is saturated to 63 bits.
    pub(super) fn wide_mul(&mut self, x: Wide, y: Wide) -> Wide {
        let (x, y) = (self.magnitude(x), self.magnitude(y));
        let hi = self.b.bin(BinOp::MulHiU, x.bits, y.bits);
        let hi = self.b.bin_imm(BinOp::UMin, hi, i64::MAX);
        let product = Magnitude {
            negative: self.xor_masks(x.negative, y.negative),
            bits: self.b.bin(BinOp::Mul, x.bits, y.bits),
        };
        self.signed_pair(product, hi)
    }

    /// Exclusive or of two conditions, either of which may be one for all lanes.
    pub(super) fn xor_masks(&mut self, x: Value, y: Value) -> Value {
        let [x, y] = self.b.level([x, y]);
        self.b.bin(BinOp::Xor, x, y)
    }

    /// Comparison: the high halves decide, where they are equal the low ones.
    pub(super) fn wide_compare(&mut self, cond: CmpCond, x: Wide, y: Wide) -> Value {
        let [xh, yh, xl, yl] = self.b.level([x.hi, y.hi, x.lo, y.lo]);
        let same = self.b.icmp(ICond::Eq, xh, yh);
        let high = self.b.icmp(int_cond(cond, true), xh, yh);
        let low = self.b.icmp(int_cond(cond, false), xl, yl);
        self.b.select(same, low, high)
    }

    /// Clamps to the range of an integer type.
    pub(super) fn saturate_wide(&mut self, w: Wide, to: Type) -> Result<Value, Fail> {
        if !to.is_int() {
            return Fail::malformed(format!("integer result in a `{to}` destination"));
        }
        let zero = self.b.int_like(w.hi, 0);
        let negative = self.b.icmp(ICond::Slt, w.hi, zero);
        let (own, fits, least, most) = if to.is_signed() {
            let sign = self.b.bin_imm(BinOp::AShr, w.lo, 63);
            let fits = self.b.icmp(ICond::Eq, sign, w.hi);
            (Type::Q, fits, i64::MIN, i64::MAX)
        } else {
            (Type::Uq, self.b.icmp(ICond::Eq, w.hi, zero), 0, -1)
        };
        let least = self.b.int_like(w.lo, least);
        let most = self.b.int_like(w.lo, most);
        let bound = self.b.select(negative, least, most);
        let v = self.b.select(fits, w.lo, bound);
        let v = self.convert(v, own, to, true)?;
        debug_assert_eq!(self.b.ty(v).lane, lane_of(to));
        Ok(v)
    }
}
