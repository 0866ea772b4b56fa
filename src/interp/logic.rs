//! Bitwise operations, shifts, bit counting and bit fields (docs/visa.md, "Arithmetic").

use super::error::Halt;
use super::machine::Operand;
use super::number::mask;
use crate::isa::{Opcode, Type};

/// The result of a logic instruction in one channel.
pub(super) fn result(
    op: Opcode,
    function: u8,
    s: &[Operand],
    dst: Type,
    i: usize,
) -> Result<i128, Halt> {
    use Opcode as O;
    if s.iter().any(|o| o.ty.is_float()) || dst.is_float() {
        return Halt::unsupported("logic on float operands");
    }
    let v: Vec<i128> = s.iter().map(|o| o.int(i)).collect::<Result<_, _>>()?;
    let word = |k: usize| v.get(k).map_or(0, |&x| x as u32);
    Ok(match (op, v.as_slice()) {
        (O::And, [x, y]) => x & y,
        (O::Or, [x, y]) => x | y,
        (O::Xor, [x, y]) => x ^ y,
        (O::Not, [x]) => !x,
        (O::Shl | O::Shr | O::Asr, [x, y]) => shift(op, s, dst, *x, *y),
        (O::Rol | O::Ror, [x, y]) => {
            let own = s.first().map_or(dst, |o| o.ty);
            rotate(op, own, dst, *x, *y)?
        }
        (O::Cbit, [x]) => {
            let own = s.first().map_or(8, |o| o.ty.bytes());
            i128::from((*x as u64 & mask(own)).count_ones())
        }
        (O::Fbl, [_]) => match word(0) {
            0 => u32::MAX.into(),
            x => x.trailing_zeros().into(),
        },
        (O::Fbh, [_]) => {
            // The first bit unlike the sign is the first one bit of the value or of its complement.
            let signed = s.first().is_some_and(|o| o.ty.is_signed());
            let x = word(0);
            let x = if signed && (x as i32) < 0 { !x } else { x };
            match x {
                0 => u32::MAX.into(),
                x => x.leading_zeros().into(),
            }
        }
        (O::Bfrev, [_]) => word(0).reverse_bits().into(),
        (O::Bfe, [..]) if v.len() == 3 => {
            let signed = s.get(2).is_some_and(|o| o.ty.is_signed());
            bfe(word(0), word(1), word(2), signed)
        }
        (O::Bfi, [..]) if v.len() == 4 => bfi(word(0), word(1), word(2), word(3)).into(),
        (O::Bfn, [x, y, z]) => bfn(function, *x as u64, *y as u64, *z as u64).into(),
        _ => return Halt::malformed("wrong number of sources"),
    })
}

/// 64 bits wide when the destination or the shifted value is, else 32; the count is taken modulo the width.
/// `shr` fills with zeros above the source's own width, `asr` with its sign if its type has one.
fn shift(op: Opcode, s: &[Operand], dst: Type, x: i128, count: i128) -> i128 {
    let own = s.first().map_or(Type::Ud, |o| o.ty);
    let wide = dst.bytes() == 8 || own.bytes() == 8;
    let count = (count & if wide { 63 } else { 31 }) as u32;
    let width = if wide { 8 } else { 4 };
    let unsigned = |bytes: u32| x & i128::from(mask(bytes));
    match op {
        Opcode::Shl => x.wrapping_shl(count),
        Opcode::Shr => unsigned(own.bytes()).wrapping_shr(count),
        _ if own.is_signed() => x.wrapping_shr(count),
        _ => unsigned(width).wrapping_shr(count),
    }
}

/// At the width of the wider of result and rotated value: a narrow value is extended by its sign, a wide result is cut.
/// The specification counts in the source's width alone; with mixed widths the vendor's assembler widens first.
fn rotate(op: Opcode, own: Type, dst: Type, x: i128, count: i128) -> Result<i128, Halt> {
    if own.bytes() < 2 || dst.bytes() < 2 {
        return Halt::malformed("rotation of bytes");
    }
    let bits = own.bytes().max(dst.bytes()).wrapping_mul(8);
    let x = x as u64 & mask(bits / 8);
    let turn = (count as u32) & bits.wrapping_sub(1);
    let left = if op == Opcode::Rol {
        turn
    } else {
        bits.wrapping_sub(turn) & bits.wrapping_sub(1)
    };
    if left == 0 {
        return Ok(x.into());
    }
    let turned = x.wrapping_shl(left) | x.wrapping_shr(bits.wrapping_sub(left));
    Ok((turned & mask(bits / 8)).into())
}

/// Width and offset count modulo 32; a field that reaches past bit 31 reads zeros there, a width of 0 gives 0.
fn bfe(width: u32, offset: u32, value: u32, signed: bool) -> i128 {
    let (width, offset) = (width & 31, offset & 31);
    if width == 0 {
        return 0;
    }
    let field = u64::from(value.wrapping_shr(offset));
    let field = field & 1u64.wrapping_shl(width).wrapping_sub(1);
    let top = 1u64.wrapping_shl(width.wrapping_sub(1));
    if signed && field & top != 0 {
        i128::from(field).wrapping_sub(i128::from(top).wrapping_mul(2))
    } else {
        field.into()
    }
}

fn bfi(width: u32, offset: u32, insert: u32, base: u32) -> u32 {
    let (width, offset) = (width & 31, offset & 31);
    let field = 1u32
        .wrapping_shl(width)
        .wrapping_sub(1)
        .wrapping_shl(offset);
    (base & !field) | (insert.wrapping_shl(offset) & field)
}

/// Each result bit is bit `x + 2y + 4z` of the function.
fn bfn(function: u8, x: u64, y: u64, z: u64) -> u64 {
    (0..64u32).fold(0, |result, bit| {
        let one = |v: u64| (v.wrapping_shr(bit) & 1) as u32;
        let index = one(x) | one(y).wrapping_shl(1) | one(z).wrapping_shl(2);
        let value = u64::from(u32::from(function).wrapping_shr(index) & 1);
        result | value.wrapping_shl(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields() {
        assert_eq!(bfe(4, 8, 0x0F00, false), 15);
        assert_eq!(bfe(4, 8, 0x0F00, true), -1);
        assert_eq!(bfe(8, 28, 0xF000_0000, false), 15);
        assert_eq!(bfe(32, 0, 5, false), 0);
        assert_eq!(bfi(4, 8, 0xFF, 0), 0xF00);
        assert_eq!(bfi(4, 30, 0xFF, 1), 0xC000_0001);
    }

    #[test]
    fn boolean_functions() {
        let (x, y, z) = (0b1100, 0b1010, 0b1111_0000);
        assert_eq!(bfn(0x96, x, y, z), x ^ y ^ z);
        assert_eq!(bfn(0xFE, x, y, z), x | y | z);
        assert_eq!(bfn(0xD8, x, y, z), (x & y) | (!x & z));
    }

    #[test]
    fn rotations() {
        assert_eq!(rotate(Opcode::Rol, Type::Uw, Type::Uw, 0x8001, 1), Ok(3));
        assert_eq!(rotate(Opcode::Ror, Type::Ud, Type::Ud, 1, 33), Ok(1 << 31));
        assert_eq!(rotate(Opcode::Rol, Type::Uq, Type::Uq, 5, 64), Ok(5));
        assert!(rotate(Opcode::Rol, Type::Ub, Type::Ub, 5, 1).is_err());
    }
}
