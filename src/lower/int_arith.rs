//! Integer arithmetic: `add add3 mul mad mulh avg div mod dp4a`.
//!
//! Results are those of exact numbers, cut to the destination or clamped to it under `.sat`; so a
//! computation runs in the narrowest lanes whose low bits are right, and in pairs of lanes (`wide`) where
//! 64 bits do not hold the number that is to be clamped.

use super::Lowerer;
use super::error::Fail;
use super::operand::{Operand, lane_of};
use super::wide::Magnitude;
use crate::isa::{Opcode, SrcModifier, Type};
use crate::ssa::*;

/// Bytes of the widest source.
fn widest(s: &[Operand]) -> u32 {
    s.iter().map(|o| o.ty.bytes()).max().unwrap_or(4)
}

/// True when a source may be below zero: by its type, or by its modifier.
fn any_signed(s: &[Operand]) -> bool {
    s.iter()
        .any(|o| o.ty.is_signed() || matches!(o.modifier, SrcModifier::Neg | SrcModifier::NegAbs))
}

fn any_modified(s: &[Operand]) -> bool {
    s.iter().any(|o| o.modifier != SrcModifier::None)
}

impl Lowerer<'_> {
    /// The result of integer arithmetic and its type, before conversion to the destination.
    pub(super) fn int_compute(
        &mut self,
        op: Opcode,
        sat: bool,
        s: &[Operand],
        dst: Type,
    ) -> Result<(Value, Type), Fail> {
        use Opcode as O;
        match (op, s) {
            (O::Mulh, [x, y]) => return self.mulh(*x, *y),
            (O::Avg, [x, y]) => return self.avg(*x, *y),
            (O::Div | O::Mod, [x, y]) => return self.divide(op, sat, *x, *y, dst),
            (O::Dp4a, [x, y, z]) => return self.dp4a(*x, *y, *z, sat),
            _ => {}
        }
        if sat && self.needs_wide(op, s, dst) {
            return self.saturated_wide(op, s, dst);
        }
        // Without saturation only the bits that the destination keeps matter.
        let exact = sat || dst.is_float();
        let ty = if exact { Type::Q } else { dst };
        let lane = lane_of(ty);
        let v = s
            .iter()
            .map(|o| self.int(*o, lane))
            .collect::<Result<Vec<_>, _>>()?;
        let v = match (op, v.as_slice()) {
            (O::Add, [x, y]) => self.b.bin(BinOp::Add, *x, *y),
            (O::Mul, [x, y]) => self.b.bin(BinOp::Mul, *x, *y),
            (O::Add3, [x, y, z]) => {
                let v = self.b.bin(BinOp::Add, *x, *y);
                self.b.bin(BinOp::Add, v, *z)
            }
            (O::Mad, [x, y, z]) => {
                let v = self.b.bin(BinOp::Mul, *x, *y);
                let v = if sat { self.cut(v, dst) } else { v };
                self.b.bin(BinOp::Add, v, *z)
            }
            _ => return Fail::malformed(format!("integer operands (destination `{dst}`)")),
        };
        Ok((v, ty))
    }

    /// The product of an integer `mad` is cut to the destination's type before the addition (docs/visa.md, "Arithmetic").
    fn cut(&mut self, v: Value, dst: Type) -> Value {
        let lane = self.b.ty(v).lane;
        let low = self.b.resize(v, lane_of(dst), true);
        self.b.resize(low, lane, dst.is_signed())
    }

    /// True when the exact result, which saturation looks at, may not fit a signed 64-bit lane.
    fn needs_wide(&self, op: Opcode, s: &[Operand], dst: Type) -> bool {
        match op {
            Opcode::Mul => s.iter().map(|o| o.ty.bytes()).sum::<u32>() >= 8,
            Opcode::Mad => widest(&s[2..]).max(dst.bytes()) == 8,
            _ => widest(s) == 8,
        }
    }

    fn saturated_wide(
        &mut self,
        op: Opcode,
        s: &[Operand],
        dst: Type,
    ) -> Result<(Value, Type), Fail> {
        let w = match (op, s) {
            (Opcode::Mul, [x, y]) => {
                let (x, y) = (self.wide(*x)?, self.wide(*y)?);
                self.wide_mul(x, y)
            }
            (Opcode::Mad, [x, y, z]) => {
                let (x, y) = (self.int(*x, Lane::I64)?, self.int(*y, Lane::I64)?);
                let product = self.b.bin(BinOp::Mul, x, y);
                let value = self.cut(product, dst);
                let product = self.wide(Operand {
                    value,
                    ty: if dst.is_signed() { Type::Q } else { Type::Uq },
                    modifier: SrcModifier::None,
                })?;
                let z = self.wide(*z)?;
                self.wide_add(product, z)
            }
            (Opcode::Add | Opcode::Add3, [first, rest @ ..]) => {
                let mut sum = self.wide(*first)?;
                for o in rest {
                    let o = self.wide(*o)?;
                    sum = self.wide_add(sum, o);
                }
                sum
            }
            _ => return Fail::malformed("wrong number of sources"),
        };
        Ok((self.saturate_wide(w, dst)?, dst))
    }

    fn avg(&mut self, x: Operand, y: Operand) -> Result<(Value, Type), Fail> {
        let (x, y) = (self.int(x, Lane::I64)?, self.int(y, Lane::I64)?);
        let v = self.b.bin(BinOp::Add, x, y);
        let v = self.b.bin_imm(BinOp::Add, v, 1);
        Ok((self.b.bin_imm(BinOp::AShr, v, 1), Type::Q))
    }

    /// High half of the exact product: of 64 bits, or of 128 when an operand is a quadword.
    fn mulh(&mut self, x: Operand, y: Operand) -> Result<(Value, Type), Fail> {
        let s = [x, y];
        let signed = any_signed(&s);
        if widest(&s) == 8 {
            let (x, y) = (self.wide(x)?, self.wide(y)?);
            let v = self.high_quadword(x, y);
            return Ok((v, if signed { Type::Q } else { Type::Uq }));
        }
        let ty = if signed { Type::D } else { Type::Ud };
        if !any_modified(&s) && x.ty.is_signed() == y.ty.is_signed() {
            let (a, b) = (self.int(x, Lane::I32)?, self.int(y, Lane::I32)?);
            let op = if signed { BinOp::MulHiS } else { BinOp::MulHiU };
            return Ok((self.b.bin(op, a, b), ty));
        }
        let (a, b) = (self.int(x, Lane::I64)?, self.int(y, Lane::I64)?);
        let p = self.b.bin(BinOp::Mul, a, b);
        let p = self.b.bin_imm(BinOp::LShr, p, 32);
        Ok((self.b.conv(Conv::Trunc, p, Lane::I32), ty))
    }

    /// Bits 127:64 of a product.
    fn high_quadword(&mut self, x: super::wide::Wide, y: super::wide::Wide) -> Value {
        let (x, y) = (self.magnitude(x), self.magnitude(y));
        let hi = self.b.bin(BinOp::MulHiU, x.bits, y.bits);
        let lo = self.b.bin(BinOp::Mul, x.bits, y.bits);
        // -(hi:lo) has the high half !hi, plus one when the low half is zero.
        let zero = self.b.int_like(lo, 0);
        let carry = self.b.icmp(ICond::Eq, lo, zero);
        let carry = self.b.conv(Conv::ZExt, carry, Lane::I64);
        let minus = self.b.un(UnOp::Not, hi);
        let minus = self.b.bin(BinOp::Add, minus, carry);
        let negative = self.xor_masks(x.negative, y.negative);
        self.b.select(negative, minus, hi)
    }

    /// Quotient toward zero and remainder with the dividend's sign, of exact values.
    ///
    /// The ISA leaves division by zero open. Here the quotient is the number of the execution type (dword, or
    /// quadword when a source is one; signed when a source is) that is furthest from zero on the dividend's
    /// side, and the remainder is the dividend. `MIN / -1` is 2^31 or 2^63, cut to the destination.
    fn divide(
        &mut self,
        op: Opcode,
        sat: bool,
        x: Operand,
        y: Operand,
        dst: Type,
    ) -> Result<(Value, Type), Fail> {
        let s = [x, y];
        let (wide, signed) = (widest(&s) == 8, any_signed(&s));
        let same = x.ty.is_signed() == y.ty.is_signed() && !any_modified(&s);
        // Only a wider destination tells the exact 2^31 from what is left of it in a dword.
        let exact = sat || (op == Opcode::Div && signed && dst.bytes() == 8);
        let lane = match (wide, same) {
            (true, true) if !(sat && signed) => Lane::I64,
            (true, _) => return self.divide_wide(op, (sat, signed), x, y, dst),
            (false, true) if !exact => Lane::I32,
            _ => return self.divide_exact(op, x, y, signed),
        };
        let (a, b) = (self.int(x, lane)?, self.int(y, lane)?);
        let bin = match (op, signed) {
            (Opcode::Div, true) => BinOp::SDiv,
            (Opcode::Div, false) => BinOp::UDiv,
            (_, true) => BinOp::SRem,
            (_, false) => BinOp::URem,
        };
        let ty = match (lane, signed) {
            (Lane::I64, true) => Type::Q,
            (Lane::I64, false) => Type::Uq,
            (_, true) => Type::D,
            (_, false) => Type::Ud,
        };
        Ok((self.b.bin(bin, a, b), ty))
    }

    /// Division of operands up to 32 bits whose exact values need more than 32.
    fn divide_exact(
        &mut self,
        op: Opcode,
        x: Operand,
        y: Operand,
        signed: bool,
    ) -> Result<(Value, Type), Fail> {
        let (a, b) = (self.int(x, Lane::I64)?, self.int(y, Lane::I64)?);
        if op == Opcode::Mod {
            return Ok((self.b.bin(BinOp::SRem, a, b), Type::Q));
        }
        let quotient = self.b.bin(BinOp::SDiv, a, b);
        let execution = if signed { Type::D } else { Type::Ud };
        let bound = self.convert(quotient, Type::Q, execution, true)?;
        let bound = self.b.resize(bound, Lane::I64, signed);
        let zero = self.b.int_like(b, 0);
        let by_zero = self.b.icmp(ICond::Eq, b, zero);
        Ok((self.b.select(by_zero, bound, quotient), Type::Q))
    }

    /// Division of quadwords by sign and magnitude.
    fn divide_wide(
        &mut self,
        op: Opcode,
        (sat, signed): (bool, bool),
        x: Operand,
        y: Operand,
        dst: Type,
    ) -> Result<(Value, Type), Fail> {
        let (x, y) = (self.wide(x)?, self.wide(y)?);
        let (mx, my) = (self.magnitude(x), self.magnitude(y));
        let result = if op == Opcode::Mod {
            let m = Magnitude {
                negative: mx.negative,
                bits: self.b.bin(BinOp::URem, mx.bits, my.bits),
            };
            self.signed(m)
        } else {
            let quotient = self.b.bin(BinOp::UDiv, mx.bits, my.bits);
            let zero = self.b.int_like(my.bits, 0);
            let by_zero = self.b.icmp(ICond::Eq, my.bits, zero);
            let most = if signed {
                // MAX, or MIN as the magnitude above it.
                let below = self.b.conv(Conv::ZExt, mx.negative, Lane::I64);
                self.b.bin_imm(BinOp::Add, below, i64::MAX)
            } else {
                self.b.int_like(my.bits, -1)
            };
            let negative = self.xor_masks(mx.negative, my.negative);
            let m = Magnitude {
                negative,
                bits: self.b.select(by_zero, most, quotient),
            };
            self.signed(m)
        };
        if sat {
            return Ok((self.saturate_wide(result, dst)?, dst));
        }
        Ok((result.lo, Type::Q))
    }

    fn dp4a(
        &mut self,
        acc: Operand,
        x: Operand,
        y: Operand,
        sat: bool,
    ) -> Result<(Value, Type), Fail> {
        // Saturation looks at the exact sum, which needs three bits more than a dword.
        let lane = if sat { Lane::I64 } else { Lane::I32 };
        let mut sum = self.int(acc, lane)?;
        let (a, b) = (self.int(x, Lane::I32)?, self.int(y, Lane::I32)?);
        for k in 0..4 {
            let (p, q) = (self.byte_of(a, k, x.ty), self.byte_of(b, k, y.ty));
            let p = self.b.bin(BinOp::Mul, p, q);
            let p = self.b.resize(p, lane, true);
            sum = self.b.bin(BinOp::Add, sum, p);
        }
        let ty = match (sat, acc.ty.is_signed()) {
            (true, _) => Type::Q,
            (_, true) => Type::D,
            _ => Type::Ud,
        };
        Ok((sum, ty))
    }

    /// Byte `k` of dwords, extended by the signedness of the operand's type.
    fn byte_of(&mut self, v: Value, k: i64, ty: Type) -> Value {
        let v = self.b.bin_imm(BinOp::Shl, v, 24 - 8 * k);
        let op = if ty.is_signed() {
            BinOp::AShr
        } else {
            BinOp::LShr
        };
        self.b.bin_imm(op, v, 24)
    }
}
