//! Which bits of a result depend on bits that are not initialised.
//!
//! A result does not depend on a bit if no value of that bit would change it. Moves, bitwise logic, shifts and comparisons of integers
//! are judged in this way, bit by bit; of sums and products the bits from the lowest one on that is not initialised depend on it, but for products with zero. Everything
//! else depends as a whole on all that it reads.

use super::shadow::Unset;
use crate::interp::error::Halt;
use crate::interp::machine::Operand;
use crate::interp::number::mask;
use crate::isa::{CmpCond, Opcode, SrcModifier, Type};

/// Sources of an instruction in one channel.
pub(super) struct Sources<'a> {
    pub operands: &'a [Operand],
    pub unset: &'a [Unset],
    pub i: usize,
}

/// Bits from the lowest set one on.
fn upward(bits: u64) -> u64 {
    match bits {
        0 => 0,
        bits => u64::MAX.wrapping_shl(bits.trailing_zeros()),
    }
}

/// Bits of a number of a type, extended to 64.
fn extended(ty: Type, unset: u64) -> u64 {
    let own = unset & mask(ty.bytes());
    let sign = own.wrapping_shr(ty.bytes().wrapping_mul(8).wrapping_sub(1)) & 1;
    match ty.is_signed() && sign != 0 {
        true => own | !mask(ty.bytes()),
        false => own,
    }
}

impl Sources<'_> {
    /// Everything that is read, together.
    fn together(&self) -> Unset {
        self.unset.iter().fold(Unset::NONE, |all, one| all.or(*one))
    }

    /// Source `k` after its modifier, as an integer of 64 bits: bits that are not initialised, and its value.
    fn integer(&self, k: usize) -> Result<(u64, u64), Halt> {
        let Some(o) = self.operands.get(k) else {
            return Ok((0, 0));
        };
        let own = self.unset.get(k).map_or(0, |u| u.bits);
        let unset = extended(o.ty, own);
        let unset = match o.modifier {
            SrcModifier::None | SrcModifier::Not => unset,
            _ => upward(unset),
        };
        Ok((unset, o.int(self.i)? as u64))
    }

    /// Whether a factor is initialised, and zero.
    fn is_times_zero(&self) -> Result<bool, Halt> {
        for k in 0..self.operands.len() {
            if self.integer(k)? == (0, 0) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn are_integers(&self) -> bool {
        self.operands.iter().all(|o| o.ty.is_int())
    }

    /// Source `k` as the result of a move to a type.
    pub(super) fn moved(&self, k: usize, dst: Type, sat: bool) -> Result<u64, Halt> {
        let (Some(o), Some(unset)) = (self.operands.get(k), self.unset.get(k)) else {
            return Ok(0);
        };
        let whole = if unset.any() { mask(dst.bytes()) } else { 0 };
        Ok(match (o.ty.is_int(), dst.is_int()) {
            _ if sat => whole,
            (true, true) => self.integer(k)?.0 & mask(dst.bytes()),
            (false, false) if o.ty == dst && o.modifier == SrcModifier::None => unset.bits,
            _ => whole,
        })
    }

    /// Bits of the result of an instruction whose channels are independent.
    pub(super) fn result(
        &self,
        op: Opcode,
        function: u8,
        dst: Type,
        sat: bool,
    ) -> Result<Unset, Halt> {
        let all = self.together();
        let whole = if all.any() { u64::MAX } else { 0 };
        let bits = match op {
            Opcode::Mov => self.moved(0, dst, sat)?,
            _ if sat || !self.are_integers() || !dst.is_int() => whole,
            Opcode::Mul if self.is_times_zero()? => 0,
            Opcode::Add | Opcode::Mul | Opcode::Mad | Opcode::Add3 | Opcode::AddrAdd => {
                let each = (0..self.operands.len()).map(|k| self.integer(k));
                let each: Vec<_> = each.collect::<Result<_, _>>()?;
                upward(each.iter().fold(0, |all, (unset, _)| all | unset))
            }
            _ => self.logic(op, function, dst)?.unwrap_or(whole),
        };
        Ok(all.with(bits & mask(dst.bytes())))
    }

    /// Bits of the result of bitwise operations; `None` for others.
    fn logic(&self, op: Opcode, function: u8, dst: Type) -> Result<Option<u64>, Halt> {
        let [(a, x), (b, y), (c, z)] = [self.integer(0)?, self.integer(1)?, self.integer(2)?];
        let own = self.operands.first().map_or(dst, |o| o.ty);
        let wide = dst.bytes() == 8 || own.bytes() == 8;
        let count = y as u32 & if wide { 63 } else { 31 };
        Ok(Some(match op {
            Opcode::Not => a,
            Opcode::And => a & b | a & y | x & b,
            Opcode::Or => a & b | a & !y | !x & b,
            Opcode::Xor => a | b,
            Opcode::Bfn => bfn(function, [(a, x), (b, y), (c, z)]),
            Opcode::Shl | Opcode::Shr | Opcode::Asr if b != 0 => u64::MAX,
            Opcode::Shl => a.wrapping_shl(count),
            Opcode::Shr => (a & mask(own.bytes())).wrapping_shr(count),
            Opcode::Asr if own.is_signed() => (a as i64).wrapping_shr(count) as u64,
            Opcode::Asr => (a & mask(if wide { 8 } else { 4 })).wrapping_shr(count),
            Opcode::Rol | Opcode::Ror if b != 0 => u64::MAX,
            Opcode::Rol | Opcode::Ror => rotated(op, a, y, own.bytes().max(dst.bytes())),
            Opcode::Bfe if a | b != 0 => u64::MAX,
            Opcode::Bfe => field(
                x,
                y,
                c,
                self.operands.get(2).is_some_and(|o| o.ty.is_signed()),
            ),
            Opcode::Bfi if a | b != 0 => u64::MAX,
            Opcode::Bfi => {
                let base = self.integer(3)?.0;
                let (width, at) = (x as u32 & 31, y as u32 & 31);
                let part = 1u64.wrapping_shl(width).wrapping_sub(1).wrapping_shl(at);
                base & !part | c.wrapping_shl(at) & part
            }
            Opcode::Bfrev => u64::from((a as u32).reverse_bits()),
            _ => return Ok(None),
        }))
    }

    /// Whether a comparison of integers depends on bits that are not initialised: whether it holds for some of their values only.
    pub(super) fn compares(&self, cond: CmpCond) -> Result<Unset, Halt> {
        let all = self.together();
        if !all.any() || !self.are_integers() {
            return Ok(all.with(u64::from(all.any())));
        }
        let [(a, x), (b, y)] = [self.integer(0)?, self.integer(1)?];
        let differ = (x ^ y) & !(a | b) != 0;
        let (low, high) = (self.range(0)?, self.range(1)?);
        let known = match cond {
            CmpCond::Eq | CmpCond::Ne => differ,
            CmpCond::Lt | CmpCond::Ge => low.1 < high.0 || low.0 >= high.1,
            CmpCond::Gt | CmpCond::Le => low.0 > high.1 || low.1 <= high.0,
        };
        Ok(all.with(u64::from(!known)))
    }

    /// Least and greatest number that source `k` may be.
    fn range(&self, k: usize) -> Result<(i128, i128), Halt> {
        let Some(o) = self.operands.get(k) else {
            return Ok((0, 0));
        };
        let value = o.int(self.i)?;
        let (unset, _) = self.integer(k)?;
        if o.modifier != SrcModifier::None && unset != 0 {
            return Ok((i128::MIN, i128::MAX));
        }
        // A sign that may be either makes the least number negative and the greatest one positive.
        let own = unset & mask(o.ty.bytes());
        let sign = match o.ty.is_signed() {
            true => own & 1u64.wrapping_shl(o.ty.bytes().wrapping_mul(8).wrapping_sub(1)),
            false => 0,
        };
        let rest = i128::from(own & !sign);
        let known = (value & !i128::from(own)) as u64 & mask(o.ty.bytes());
        let number = |bits: u64| crate::interp::number::integer(o.ty, bits, SrcModifier::None);
        let least = number(known | sign);
        let greatest = number(known).wrapping_add(rest);
        Ok((least, greatest))
    }
}

/// A boolean function: a bit depends on those of its three bits that can change it.
fn bfn(function: u8, sources: [(u64, u64); 3]) -> u64 {
    (0..64u32).fold(0, |result, bit| {
        let one = |v: u64| (v.wrapping_shr(bit) & 1) as u8;
        let [x, y, z] = sources.map(|(unset, value)| (one(unset), one(value)));
        let fits = |(unset, value): (u8, u8), v: u8| unset != 0 || v & 1 == value;
        let mut seen = 0u8;
        for index in 0..8u8 {
            if fits(x, index) && fits(y, index.wrapping_shr(1)) && fits(z, index.wrapping_shr(2)) {
                let outcome = function.wrapping_shr(index.into()) & 1;
                seen |= 1u8.wrapping_shl(outcome.into());
            }
        }
        result | u64::from(seen == 3).wrapping_shl(bit)
    })
}

fn rotated(op: Opcode, unset: u64, count: u64, bytes: u32) -> u64 {
    let bits = bytes.wrapping_mul(8);
    let turn = count as u32 & bits.wrapping_sub(1);
    let left = match op {
        Opcode::Rol => turn,
        _ => bits.wrapping_sub(turn) & bits.wrapping_sub(1),
    };
    let own = unset & mask(bytes);
    match left {
        0 => own,
        left => own.wrapping_shl(left) | own.wrapping_shr(bits.wrapping_sub(left)),
    }
}

/// Bits of a field of a dword.
fn field(width: u64, offset: u64, unset: u64, signed: bool) -> u64 {
    let (width, offset) = (width as u32 & 31, offset as u32 & 31);
    if width == 0 {
        return 0;
    }
    let all = 1u64.wrapping_shl(width).wrapping_sub(1);
    let own = (unset & mask(4)).wrapping_shr(offset) & all;
    let top = own.wrapping_shr(width.wrapping_sub(1)) & 1;
    match signed && top != 0 {
        true => own | !all,
        false => own,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interp::lanes::ChannelBits;
    use visa_runtime::Uninit;
    use visa_test_common::Rng;

    fn operand(ty: Type, v: u64) -> Operand {
        Operand {
            lanes: ChannelBits::all(v),
            ty,
            modifier: SrcModifier::None,
            scalar: false,
        }
    }

    fn sources<T>(all: &[(Type, u64, u64)], f: impl FnOnce(&Sources<'_>) -> T) -> T {
        let operands: Vec<_> = all.iter().map(|&(ty, v, _)| operand(ty, v)).collect();
        let from = Uninit::Register(0);
        let unset: Vec<_> = all.iter().map(|s| Unset::new(s.2, from)).collect();
        f(&Sources {
            operands: &operands,
            unset: &unset,
            i: 0,
        })
    }

    /// Of all bits that a rule calls independent, no change of the sources changes one.
    #[test]
    fn results_do_not_depend_on_what_is_initialised() {
        let ops = [
            Opcode::And,
            Opcode::Or,
            Opcode::Xor,
            Opcode::Shl,
            Opcode::Shr,
            Opcode::Asr,
            Opcode::Rol,
            Opcode::Bfn,
            Opcode::Not,
            Opcode::Bfrev,
        ];
        let mut rng = Rng::new(1);
        let mut random = || rng.bits();
        for _ in 0..4000 {
            for op in ops {
                let ty = [Type::Ud, Type::D, Type::Uw, Type::W][random() as usize % 4];
                let n = match op {
                    Opcode::Bfn => 3,
                    Opcode::Not | Opcode::Bfrev => 1,
                    _ => 2,
                };
                let ty = if op == Opcode::Bfrev { Type::Ud } else { ty };
                let sparse = random() & random() & random();
                let all: Vec<_> = (0..n)
                    .map(|k| {
                        (
                            ty,
                            random() & mask(ty.bytes()),
                            (sparse >> k) & mask(ty.bytes()),
                        )
                    })
                    .collect();
                let unset = sources(&all, |s| s.result(op, 0xD8, ty, false))
                    .unwrap()
                    .bits;
                let value = |all: &[(Type, u64, u64)]| {
                    let operands: Vec<_> = all.iter().map(|s| operand(s.0, s.1)).collect();
                    let v = crate::interp::logic::result(op, 0xD8, &operands, ty, 0).unwrap();
                    v as u64 & mask(ty.bytes())
                };
                let other: Vec<_> = all.iter().map(|s| (s.0, s.1 ^ random() & s.2, 0)).collect();
                let changed = value(&all) ^ value(&other);
                assert_eq!(changed & !unset, 0, "{op:?} {all:x?} {unset:x}");
            }
        }
    }

    #[test]
    fn comparisons_may_be_decided_by_what_is_initialised() {
        let depends = |cond, x: (u64, u64), y: u64| {
            let all = [(Type::D, x.0, x.1), (Type::D, y, 0)];
            sources(&all, |s| s.compares(cond)).unwrap().any()
        };
        let low = 0xFF;
        assert!(!depends(CmpCond::Eq, (0x100, low), 0x200));
        assert!(depends(CmpCond::Eq, (0x100, low), 0x1AB));
        assert!(!depends(CmpCond::Lt, (0x100, low), 0x200));
        assert!(depends(CmpCond::Lt, (0x100, low), 0x1FF));
        assert!(!depends(CmpCond::Le, (0x100, low), 0x1FF));
        assert!(!depends(CmpCond::Ge, (0x100, low), 0x100));
        assert!(depends(CmpCond::Gt, (0x100, low), 0x100));
        assert!(depends(CmpCond::Lt, (0, 1 << 31), 0));
        assert!(!depends(CmpCond::Gt, (0, 1 << 31), 5));
    }

    #[test]
    fn moves_keep_bits() {
        let moved = |from, to, unset| {
            sources(&[(from, 0, unset)], |s| s.result(Opcode::Mov, 0, to, false))
                .unwrap()
                .bits
        };
        assert_eq!(moved(Type::Ub, Type::Ud, 0x80), 0x80);
        assert_eq!(moved(Type::B, Type::Ud, 0x80), 0xFFFF_FF80);
        assert_eq!(moved(Type::Ud, Type::Uw, 0x00F0_0F00), 0x0F00);
        assert_eq!(moved(Type::F, Type::F, 1), 1);
        assert_eq!(moved(Type::F, Type::D, 1), 0xFFFF_FFFF);
    }
}
