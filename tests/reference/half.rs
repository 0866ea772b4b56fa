//! Half precision from its bits.

use super::convert::{Rounding, round_f64};
use super::float::HALF;

/// Exact: every half is a double.
pub fn to_f64(bits: u16) -> f64 {
    let exponent = i32::from(bits >> 10 & 31);
    let fraction = f64::from(bits & 0x3ff);
    let magnitude = match exponent {
        0 => fraction * 2f64.powi(-24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * 2f64.powi(exponent - 25),
    };
    if bits & 0x8000 != 0 {
        -magnitude
    } else {
        magnitude
    }
}

pub fn to_f32(bits: u16) -> f32 {
    to_f64(bits) as f32
}

/// To the nearest half, ties to even.
pub fn from_f32(value: f32) -> u16 {
    from_f64(f64::from(value))
}

pub fn from_f64(value: f64) -> u16 {
    round_f64(value, HALF, Rounding::NearestEven) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_survives_a_round_trip() {
        for bits in 0..=u16::MAX {
            let value = to_f32(bits);
            if value.is_nan() {
                assert!(bits & 0x7fff > 0x7c00);
            } else {
                assert_eq!(from_f32(value), bits, "{value}");
            }
        }
    }

    #[test]
    fn known_values() {
        assert_eq!(to_f32(0x3c00), 1.0);
        assert_eq!(to_f32(0xc000), -2.0);
        assert_eq!(to_f32(0x7bff), 65504.0);
        assert_eq!(to_f32(0x0001), 2f32.powi(-24));
        assert_eq!(from_f32(65519.9), 0x7bff);
        assert_eq!(from_f32(65520.0), 0x7c00);
        assert_eq!(from_f32(2f32.powi(-25)), 0);
        assert_eq!(from_f32(2f32.powi(-25).next_up()), 1);
        assert_eq!(from_f32(1.0 + 2f32.powi(-11)), 0x3c00);
        assert_eq!(from_f32(1.0 + 3.0 * 2f32.powi(-11)), 0x3c02);
        assert_eq!(from_f32(f32::NAN) & 0x7e00, 0x7e00);
    }
}
