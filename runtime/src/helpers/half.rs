//! Binary16 in integer code: exact widening to `f64`, and narrowing with one rounding in any mode.

use super::fp_env::Round;

/// `f64` bits of a binary16 number; exact. NaNs stay NaNs.
pub(crate) fn widen(bits: u16) -> u64 {
    let sign = u64::from(bits >> 15) << 63;
    let exponent = u64::from(bits >> 10 & 31);
    let fraction = u64::from(bits & 0x3FF);
    sign | match (exponent, fraction) {
        (0, 0) => 0,
        (0, _) => {
            // The leading bit becomes the implicit one.
            let shift = u64::from(fraction.leading_zeros()) - 53;
            (1009 - shift) << 52 | (fraction << (42 + shift) & ((1 << 52) - 1))
        }
        (31, _) => 0x7FF << 52 | fraction << 42,
        _ => (exponent + 1008) << 52 | fraction << 42,
    }
}

/// Binary16 bits of an `f64`, rounded once. NaNs give a quiet NaN.
pub(crate) fn narrow(bits: u64, round: Round) -> u16 {
    let sign = ((bits >> 63) as u16) << 15;
    let exponent = (bits >> 52 & 0x7FF) as i32 - 1023;
    let fraction = bits & ((1 << 52) - 1);
    if exponent == 1024 {
        return sign | if fraction == 0 { 0x7C00 } else { 0x7E00 };
    }
    if bits << 1 == 0 {
        return sign;
    }
    let up = match round {
        Round::Up => sign == 0,
        Round::Down => sign != 0,
        Round::Nearest | Round::Zero => false,
    };
    if exponent > 15 {
        let infinite = up || round == Round::Nearest;
        return sign | if infinite { 0x7C00 } else { 0x7BFF };
    }
    // Significand with the leading one (denormal f64 have none and are tiny anyway); `drop` low
    // bits of it are below the last place of the result.
    let significand = fraction | u64::from(exponent != -1023) << 52;
    let drop = (42 + (-14 - exponent).max(0)).min(63) as u32;
    let kept = significand >> drop;
    let rest = significand & ((1 << drop) - 1);
    let half = 1u64 << (drop - 1);
    let increment = match round {
        Round::Nearest => rest > half || rest == half && kept & 1 != 0,
        Round::Zero => false,
        Round::Up | Round::Down => up && rest != 0,
    };
    // The leading one of a normal result is added to an exponent field one too small; a carry out
    // of the fraction moves into the exponent, up to infinity.
    let base = (exponent.max(-14) + 14) as u64;
    sign | ((base << 10) + kept + u64::from(increment)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_the_round_trip() {
        for bits in 0..=u16::MAX {
            let wide = f64::from_bits(widen(bits));
            if wide.is_nan() {
                assert!(bits & 0x7C00 == 0x7C00 && bits & 0x3FF != 0);
                continue;
            }
            for round in [Round::Nearest, Round::Up, Round::Down, Round::Zero] {
                assert_eq!(narrow(widen(bits), round), bits, "{bits:#x} {round:?}");
            }
        }
        assert_eq!(f64::from_bits(widen(1)), 2f64.powi(-24));
        assert_eq!(f64::from_bits(widen(0x3FF)), 1023.0 * 2f64.powi(-24));
        assert_eq!(f64::from_bits(widen(0x7BFF)), 65504.0);
    }
}
