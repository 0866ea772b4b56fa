//! Bitwise operations, shifts, bit counting and bit fields.

use super::Lowerer;
use super::error::Fail;
use super::operand::{Operand, lane_of};
use crate::isa::{Opcode, SrcModifier, Type};
use crate::module::Alu;
use crate::ssa::*;

fn unsigned(lane: Lane) -> Type {
    match lane {
        Lane::I64 => Type::Uq,
        Lane::I32 => Type::Ud,
        Lane::I16 => Type::Uw,
        _ => Type::Ub,
    }
}

fn signed(lane: Lane) -> Type {
    match lane {
        Lane::I64 => Type::Q,
        Lane::I32 => Type::D,
        Lane::I16 => Type::W,
        _ => Type::B,
    }
}

impl Lowerer<'_> {
    /// Logic instructions on numbers; float operands count as their bits.
    pub(super) fn logic(
        &mut self,
        op: Opcode,
        a: &Alu,
        s: &[Operand],
        dst: Type,
    ) -> Result<(Value, Type), Fail> {
        use Opcode as O;
        if s.iter().any(|o| o.ty.is_float()) || dst.is_float() {
            return Fail::unsupported("logic on float operands");
        }
        match (op, s) {
            (O::And | O::Or | O::Xor, [x, y]) => {
                let lane = lane_of(dst);
                let (x, y) = (self.int(*x, lane)?, self.int(*y, lane)?);
                let bin = match op {
                    O::And => BinOp::And,
                    O::Or => BinOp::Or,
                    _ => BinOp::Xor,
                };
                Ok((self.b.bin(bin, x, y), dst))
            }
            (O::Not, [x]) => {
                let x = self.int(*x, lane_of(dst))?;
                Ok((self.b.un(UnOp::Not, x), dst))
            }
            (O::Shl | O::Shr | O::Asr | O::Rol | O::Ror, [x, y]) => {
                self.shift(op, *x, *y, dst, a.sat)
            }
            (O::Cbit, [x]) => {
                let lane = lane_of(x.ty);
                let v = self.int(*x, lane)?;
                Ok((self.b.un(UnOp::Popcnt, v), unsigned(lane)))
            }
            (O::Lzd, [x]) => {
                let v = self.int(*x, Lane::I32)?;
                Ok((self.b.un(UnOp::Clz, v), Type::Ud))
            }
            (O::Fbl, [x]) => {
                let v = self.int(*x, Lane::I32)?;
                let n = self.b.un(UnOp::Ctz, v);
                Ok((self.or_ones_when_zero(v, n), Type::Ud))
            }
            (O::Fbh, [x]) => {
                let mut v = self.int(*x, Lane::I32)?;
                if x.ty.is_signed() {
                    // The first bit unlike the sign is the first one bit of the value xor its sign.
                    let sign = self.b.bin_imm(BinOp::AShr, v, 31);
                    v = self.b.bin(BinOp::Xor, v, sign);
                }
                let n = self.b.un(UnOp::Clz, v);
                Ok((self.or_ones_when_zero(v, n), Type::Ud))
            }
            (O::Bfrev, [x]) => {
                let v = self.int(*x, Lane::I32)?;
                Ok((self.b.un(UnOp::BitRev, v), Type::Ud))
            }
            (O::Bfe, [width, offset, value]) => self.bfe(*width, *offset, *value),
            (O::Bfi, [width, offset, insert, base]) => self.bfi(*width, *offset, *insert, *base),
            (O::Bfn, [x, y, z]) => {
                let lane = lane_of(dst);
                let (x, y, z) = (
                    self.int(*x, lane)?,
                    self.int(*y, lane)?,
                    self.int(*z, lane)?,
                );
                Ok((self.bfn(a.bfn, x, y, z), dst))
            }
            _ => Fail::malformed("wrong number of sources"),
        }
    }

    fn or_ones_when_zero(&mut self, v: Value, n: Value) -> Value {
        let zero = self.b.int_like(v, 0);
        let none = self.b.icmp(ICond::Eq, v, zero);
        let ones = self.b.int_like(n, -1);
        self.b.select(none, ones, n)
    }

    /// The operation is 64 bits wide when the destination or the shifted value is, else 32; the count is
    /// masked to 6 or 5 bits accordingly.
    fn shift(
        &mut self,
        op: Opcode,
        x: Operand,
        count: Operand,
        dst: Type,
        sat: bool,
    ) -> Result<(Value, Type), Fail> {
        use Opcode as O;
        if matches!(op, O::Rol | O::Ror) {
            return self.rotate(op, x, count, dst);
        }
        let wide = dst.bytes() == 8 || x.ty.bytes() == 8;
        let lane = if wide { Lane::I64 } else { Lane::I32 };
        let n = self.int(count, lane)?;
        match op {
            O::Shl if sat => {
                if wide {
                    let x = self.wide(x)?;
                    let n = self.b.bin_imm(BinOp::And, n, 63);
                    let shifted = self.wide_shl(x, n);
                    return Ok((self.saturate_wide(shifted, dst)?, dst));
                }
                // Computed exactly in 64 bits: a 32-bit value shifted by at most 31.
                let v = self.int(x, Lane::I64)?;
                let n = self.b.bin_imm(BinOp::And, n, 31);
                let n = self.b.resize(n, Lane::I64, false);
                Ok((self.b.bin(BinOp::Shl, v, n), Type::Q))
            }
            O::Shl => {
                let v = self.int(x, lane)?;
                Ok((self.b.bin(BinOp::Shl, v, n), unsigned(lane)))
            }
            O::Shr => {
                // Zero-filled from the source's own width.
                let v = self.int(x, lane_of(x.ty))?;
                let v = self.b.resize(v, lane, false);
                Ok((self.b.bin(BinOp::LShr, v, n), unsigned(lane)))
            }
            // A modifier takes the least number out of its type.
            _ if x.ty.is_signed() && x.ty.bytes() >= 4 && x.modifier != SrcModifier::None => {
                if wide {
                    let x = self.wide(x)?;
                    let n = self.b.bin_imm(BinOp::And, n, 63);
                    return Ok((self.wide_shr(x, n), Type::Q));
                }
                let v = self.int(x, Lane::I64)?;
                let n = self.b.bin_imm(BinOp::And, n, 31);
                let n = self.b.resize(n, Lane::I64, false);
                Ok((self.b.bin(BinOp::AShr, v, n), Type::Q))
            }
            _ => {
                let v = self.int(x, lane)?;
                let (bin, ty) = if x.ty.is_signed() {
                    (BinOp::AShr, signed(lane))
                } else {
                    (BinOp::LShr, unsigned(lane))
                };
                Ok((self.b.bin(bin, v, n), ty))
            }
        }
    }

    /// Rotation at the width of the wider of result and rotated value, as the vendor's assembler does it: it
    /// extends a narrow value by its sign, and cuts a wide result.
    fn rotate(
        &mut self,
        op: Opcode,
        x: Operand,
        count: Operand,
        dst: Type,
    ) -> Result<(Value, Type), Fail> {
        let (own, target) = (lane_of(x.ty), lane_of(dst));
        if own.bits() < 16 || target.bits() < 16 {
            return Fail::malformed("rotation of bytes");
        }
        let lane = if own.bits() > target.bits() {
            own
        } else {
            target
        };
        let v = self.int(x, own)?;
        let v = self.b.resize(v, lane, x.ty.is_signed());
        let n = self.int(count, lane)?;
        let rotate = if op == Opcode::Rol {
            BinOp::Rotl
        } else {
            BinOp::Rotr
        };
        Ok((self.b.bin(rotate, v, n), unsigned(lane)))
    }

    fn bfe(
        &mut self,
        width: Operand,
        offset: Operand,
        value: Operand,
    ) -> Result<(Value, Type), Fail> {
        let w = self.int(width, Lane::I32)?;
        let o = self.int(offset, Lane::I32)?;
        let v = self.int(value, Lane::I32)?;
        let w = self.b.bin_imm(BinOp::And, w, 31);
        let o = self.b.bin_imm(BinOp::And, o, 31);
        let sign = value.ty.is_signed();
        // Field at the top, then down again; a width of 0 gives 0. Fields that reach past bit 31 read zeros there.
        let low = self.b.bin(BinOp::LShr, v, o);
        let c32 = self.b.i32(32);
        let up = self.b.bin(BinOp::Sub, c32, w);
        let top = self.b.bin(BinOp::Shl, low, up);
        let down = self
            .b
            .bin(if sign { BinOp::AShr } else { BinOp::LShr }, top, up);
        let zero = self.b.i32(0);
        let none = self.b.icmp(ICond::Eq, w, zero);
        let r = self.b.select(none, zero, down);
        Ok((r, if sign { Type::D } else { Type::Ud }))
    }

    fn bfi(
        &mut self,
        width: Operand,
        offset: Operand,
        insert: Operand,
        base: Operand,
    ) -> Result<(Value, Type), Fail> {
        let w = self.int(width, Lane::I32)?;
        let o = self.int(offset, Lane::I32)?;
        let ins = self.int(insert, Lane::I32)?;
        let base = self.int(base, Lane::I32)?;
        let w = self.b.bin_imm(BinOp::And, w, 31);
        let o = self.b.bin_imm(BinOp::And, o, 31);
        let one = self.b.i32(1);
        let mask = self.b.bin(BinOp::Shl, one, w);
        let mask = self.b.bin_imm(BinOp::Sub, mask, 1);
        let mask = self.b.bin(BinOp::Shl, mask, o);
        let ins = self.b.bin(BinOp::Shl, ins, o);
        let ins = self.b.bin(BinOp::And, ins, mask);
        let hole = self.b.un(UnOp::Not, mask);
        let kept = self.b.bin(BinOp::And, base, hole);
        Ok((self.b.bin(BinOp::Or, kept, ins), Type::Ud))
    }

    /// Result bit = bit `s0 + 2*s1 + 4*s2` of the function byte, by splitting on `s2`, then on `s1`.
    fn bfn(&mut self, function: u8, x: Value, y: Value, z: Value) -> Value {
        let low = self.bool2(function & 15, x, y);
        let high = self.bool2(function >> 4, x, y);
        self.mux(z, high, low)
    }

    /// A function of two bits: bit `x + 2*y` of `f`.
    fn bool2(&mut self, f: u8, x: Value, y: Value) -> Value {
        let low = self.bool1(f & 3, x);
        let high = self.bool1(f >> 2, x);
        self.mux(y, high, low)
    }

    fn bool1(&mut self, f: u8, x: Value) -> Value {
        match f {
            0 => self.b.int_like(x, 0),
            1 => self.b.un(UnOp::Not, x),
            2 => x,
            _ => self.b.int_like(x, -1),
        }
    }

    /// `s ? high : low`, bit by bit; constant folding removes what is trivial.
    fn mux(&mut self, s: Value, high: Value, low: Value) -> Value {
        let differ = self.b.bin(BinOp::Xor, high, low);
        let picked = self.b.bin(BinOp::And, differ, s);
        self.b.bin(BinOp::Xor, picked, low)
    }
}
