//! Numbers: what the bits of an element stand for, and conversion between element types (docs/visa.md, "Types and conversions").

use super::float::{Env, Format, saturate};
use crate::isa::{SrcModifier, Type};

/// A result before it is converted to the type of its destination.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// Exact.
    Int(i128),
    /// Bits in a format.
    Float(Format, u64),
}

/// Low bits that an element of `bytes` bytes keeps.
pub(super) const fn mask(bytes: u32) -> u64 {
    if bytes >= 8 {
        u64::MAX
    } else {
        1u64.wrapping_shl(bytes.wrapping_mul(8)).wrapping_sub(1)
    }
}

/// Least and greatest number of an integer type.
pub(super) fn range(ty: Type) -> (i128, i128) {
    let all = i128::from(mask(ty.bytes()));
    if ty.is_signed() {
        let most = all.wrapping_shr(1);
        (!most, most)
    } else {
        (0, all)
    }
}

/// The low bits of `value` as a number of an integer type.
pub(super) fn wrap(ty: Type, value: i128) -> i128 {
    let bits = value & i128::from(mask(ty.bytes()));
    let (_, most) = range(ty);
    if bits > most {
        // Only signed types have numbers above their greatest one in this reading.
        bits.wrapping_sub(i128::from(mask(ty.bytes())))
            .wrapping_sub(1)
    } else {
        bits
    }
}

/// An integer operand with its modifier, which acts on the exact value.
pub(super) fn integer(ty: Type, bits: u64, modifier: SrcModifier) -> i128 {
    let value = wrap(ty, bits.into());
    match modifier {
        SrcModifier::None => value,
        SrcModifier::Neg => value.wrapping_neg(),
        SrcModifier::Abs => value.wrapping_abs(),
        SrcModifier::NegAbs => value.wrapping_abs().wrapping_neg(),
        SrcModifier::Not => !value,
    }
}

/// A float operand with its modifier, which acts on the sign bit alone.
pub(super) fn modified_float(format: Format, bits: u64, modifier: SrcModifier) -> u64 {
    match modifier {
        SrcModifier::None | SrcModifier::Not => bits,
        SrcModifier::Neg => bits ^ format.sign(),
        SrcModifier::Abs => bits & !format.sign(),
        SrcModifier::NegAbs => bits | format.sign(),
    }
}

/// Bits of a number in a type; with `sat` clamped to the range of an integer type, or to 0 … 1.
pub(super) fn convert(env: Env, number: Number, to: Type, sat: bool) -> u64 {
    match (number, Format::of(to)) {
        (Number::Int(value), None) => {
            let (least, most) = range(to);
            let value = if sat { value.clamp(least, most) } else { value };
            value as u64 & mask(to.bytes())
        }
        (Number::Int(value), Some(format)) => {
            let bits = env.of_int(format, value);
            if sat { saturate(format, bits) } else { bits }
        }
        (Number::Float(from, bits), None) => {
            // Truncates, saturates to 128 bits and makes NaN 0; what is out of range becomes the nearest number.
            let (least, most) = range(to);
            (from.value(bits) as i128).clamp(least, most) as u64 & mask(to.bytes())
        }
        (Number::Float(from, bits), Some(format)) => {
            let bits = env.convert(from, format, bits);
            if sat { saturate(format, bits) } else { bits }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        assert_eq!(integer(Type::B, 0x80, SrcModifier::Neg), 128);
        assert_eq!(integer(Type::Ub, 0x80, SrcModifier::Neg), -128);
        assert_eq!(integer(Type::Ud, 5, SrcModifier::Neg), -5);
        assert_eq!(integer(Type::Q, 1 << 63, SrcModifier::Abs), 1 << 63);
        assert_eq!(integer(Type::W, 0xFFFF, SrcModifier::Not), 0);
    }

    #[test]
    fn saturation_follows_the_destination() {
        let to = |v, ty| convert(Env::PLAIN, Number::Int(v), ty, true);
        assert_eq!(to(300, Type::Ub), 255);
        assert_eq!(to(-300, Type::B), 0x80);
        assert_eq!(to(-1, Type::Uq), 0);
        assert_eq!(to(1 << 70, Type::Q), i64::MAX as u64);
        assert_eq!(to(7, Type::F), 0x3F80_0000);
    }

    #[test]
    fn floats_to_integers_clamp_without_saturation() {
        let to = |x: f32, ty| {
            let number = Number::Float(Format::F, x.to_bits().into());
            convert(Env::PLAIN, number, ty, false)
        };
        assert_eq!(to(-1.9, Type::D), 0xFFFF_FFFF);
        assert_eq!(to(-1.9, Type::Ud), 0);
        assert_eq!(to(300.0, Type::B), 127);
        assert_eq!(to(f32::NAN, Type::Q), 0);
        assert_eq!(to(f32::INFINITY, Type::Uq), u64::MAX);
    }
}
