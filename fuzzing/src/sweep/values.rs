//! Numbers worth trying.

use visa_jit::isa::Type;

use visa_test_common::Rng;

/// Types that variables can have.
pub const TYPES: [Type; 12] = [
    Type::Ub,
    Type::B,
    Type::Uw,
    Type::W,
    Type::Ud,
    Type::D,
    Type::Uq,
    Type::Q,
    Type::Hf,
    Type::Bf,
    Type::F,
    Type::Df,
];

/// Exponent and mantissa bits of a float type.
fn format(ty: Type) -> Option<(u32, u32)> {
    match ty {
        Type::Hf => Some((5, 10)),
        Type::Bf => Some((8, 7)),
        Type::F | Type::Vf => Some((8, 23)),
        Type::Df => Some((11, 52)),
        _ => None,
    }
}

/// Bits of a number of a type: an edge, or a random one.
pub fn value(rng: &mut Rng, ty: Type) -> u64 {
    let size = 8 * ty.bytes();
    let all = u64::MAX >> (64 - size);
    match format(ty) {
        Some((exponent, mantissa)) => float(rng, exponent, mantissa) & all,
        None => integer(rng, size) & all,
    }
}

fn integer(rng: &mut Rng, size: u32) -> u64 {
    let top = 1u64 << (size - 1);
    let near = |rng: &mut Rng, x: u64| x.wrapping_add(rng.below(5) as u64).wrapping_sub(2);
    match rng.below(10) {
        0 => 0,
        1 => near(rng, 0),
        2 => near(rng, top),
        3 => {
            let power = 1 << rng.below(size as usize);
            near(rng, power)
        }
        // Ends of narrower types, of either sign.
        4 => {
            let end = near(
                rng,
                *rng.clone()
                    .pick(&[1 << 7, 1 << 8, 1 << 15, 1 << 16, 1 << 31]),
            );
            if rng.chance(50) {
                end.wrapping_neg()
            } else {
                end
            }
        }
        5 => rng.below(70) as u64,
        6 => (rng.below(70) as u64).wrapping_neg(),
        7 => rng.bits() >> rng.below(64),
        _ => rng.bits(),
    }
}

fn float(rng: &mut Rng, exponent: u32, mantissa: u32) -> u64 {
    let bias = (1u64 << (exponent - 1)) - 1;
    let infinity = ((1u64 << exponent) - 1) << mantissa;
    let one = bias << mantissa;
    let fraction = rng.bits() & ((1 << mantissa) - 1);
    let size = match rng.below(18) {
        0 => 0,
        1 => one,
        2 => infinity,
        3 => infinity | fraction | 1,
        // Denormals: the smallest, the largest, any.
        4 => 1,
        5 => (1 << mantissa) - 1,
        6 => fraction,
        // The smallest and the largest normal number.
        7 => 1 << mantissa,
        8 => infinity - 1,
        // Powers of two, halves, small integers and their neighbours.
        9 => (rng.bits() % (infinity >> mantissa)) << mantissa,
        10 => one - (1 << mantissa),
        11 | 12 => {
            let near = one + ((rng.below(9) as u64) << mantissa);
            let k = rng.below(4).min(mantissa as usize) as u32;
            near + (fraction >> (mantissa - k) << (mantissa - k)) + rng.below(3) as u64 - 1
        }
        // Ordinary magnitudes.
        13..=15 => {
            one.wrapping_add((rng.below(24) as u64) << mantissa)
                .wrapping_sub(12 << mantissa)
                % infinity
                + fraction
        }
        _ => rng.bits() % infinity,
    };
    size | u64::from(rng.chance(50)) << (exponent + mantissa)
}

/// An immediate operand of a type; `None` for types without a spelling.
pub fn immediate(rng: &mut Rng, ty: Type) -> Option<String> {
    let packed = match ty {
        Type::W | Type::D | Type::Q | Type::B => Some("v"),
        Type::Uw | Type::Ud | Type::Uq | Type::Ub => Some("uv"),
        Type::F => Some("vf"),
        _ => None,
    };
    match packed {
        Some(name) if matches!(ty, Type::W | Type::Uw | Type::F) && rng.chance(30) => {
            Some(format!("{:#x}:{name}", rng.bits() as u32))
        }
        _ if ty == Type::Bf => None,
        _ => Some(format!("{:#x}:{}", value(rng, ty), ty.name())),
    }
}
