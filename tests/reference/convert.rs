//! Conversions between number types (`convert.cl`, `convert_double.cl`), from first principles:
//! a source becomes an exact value, which is then rounded once.

use super::float::{DOUBLE, Exact, Format, Value, decode};
use super::integer::Integer;

/// The four rounding modes, in the order in which the kernels write their results.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rounding {
    NearestEven,
    Zero,
    Up,
    Down,
}

pub const ROUNDINGS: [Rounding; 4] = [
    Rounding::NearestEven,
    Rounding::Zero,
    Rounding::Up,
    Rounding::Down,
];

/// Drops `shift` low bits of a magnitude, rounding by the sign and mode.
fn shift_right(value: u128, shift: u32, negative: bool, mode: Rounding) -> u128 {
    if shift == 0 {
        return value;
    }
    let (kept, lost, half) = if shift >= 128 {
        (0, value, None)
    } else {
        (
            value >> shift,
            value & ((1 << shift) - 1),
            Some(1u128 << (shift - 1)),
        )
    };
    let up = match mode {
        Rounding::Zero => false,
        Rounding::Up => lost != 0 && !negative,
        Rounding::Down => lost != 0 && negative,
        // Beyond 128 bits what is lost is less than a half.
        Rounding::NearestEven => half.is_some_and(|h| lost > h || (lost == h && kept & 1 == 1)),
    };
    kept + u128::from(up)
}

/// The nearest number of a format in the direction of the mode, as bits.
pub fn encode(value: Exact, format: Format, mode: Rounding) -> u64 {
    let sign = if value.negative { format.sign_bit() } else { 0 };
    if value.magnitude == 0 {
        return sign;
    }
    let precision = format.precision as i32;
    let width = 128 - value.magnitude.leading_zeros() as i32;
    let last_place = (value.exponent + width - precision).max(format.least_exponent());
    let shift = last_place - value.exponent;
    let mut significand = if shift >= 0 {
        shift_right(value.magnitude, shift as u32, value.negative, mode)
    } else {
        value.magnitude << -shift
    };
    let mut last_place = last_place;
    if significand >> precision != 0 {
        significand >>= 1;
        last_place += 1;
    }
    let hidden = 1u128 << (precision - 1);
    if significand < hidden {
        return sign | significand as u64;
    }
    let biased = (last_place - format.least_exponent() + 1) as u64;
    if biased >= (1 << format.exponent_bits) - 1 {
        return sign | overflow(value.negative, format, mode);
    }
    sign | biased << (precision - 1) | (significand - hidden) as u64
}

/// Infinity, or the largest finite number where the mode points back towards zero.
fn overflow(negative: bool, format: Format, mode: Rounding) -> u64 {
    let infinite = match mode {
        Rounding::NearestEven => true,
        Rounding::Zero => false,
        Rounding::Up => !negative,
        Rounding::Down => negative,
    };
    if infinite {
        format.infinity()
    } else {
        format.infinity() - 1
    }
}

/// From one float format to another.
pub fn float_to_float(bits: u64, from: Format, to: Format, mode: Rounding) -> u64 {
    match decode(bits, from) {
        Value::Finite(exact) => encode(exact, to, mode),
        Value::Infinite { negative } => to.infinity() | if negative { to.sign_bit() } else { 0 },
        Value::NotANumber => to.nan(),
    }
}

pub fn round_f64(value: f64, to: Format, mode: Rounding) -> u64 {
    float_to_float(value.to_bits(), DOUBLE, to, mode)
}

pub fn integer_to_float<T: Integer>(value: T, to: Format, mode: Rounding) -> u64 {
    let wide = value.wide();
    encode(
        Exact {
            negative: wide < 0,
            magnitude: wide.unsigned_abs(),
            exponent: 0,
        },
        to,
        mode,
    )
}

/// Saturating; NaN becomes 0.
pub fn float_to_integer<T: Integer>(bits: u64, from: Format, mode: Rounding) -> T {
    let exact = match decode(bits, from) {
        Value::Finite(exact) => exact,
        Value::Infinite { negative } => {
            return T::wrap(if negative { T::least() } else { T::greatest() });
        }
        Value::NotANumber => return T::wrap(0),
    };
    let magnitude = if exact.exponent < 0 {
        shift_right(
            exact.magnitude,
            exact.exponent.unsigned_abs(),
            exact.negative,
            mode,
        )
    } else if exact.exponent < 70 {
        exact.magnitude << exact.exponent
    } else if exact.magnitude == 0 {
        0
    } else {
        1 << 120
    };
    T::saturate(if exact.negative {
        -(magnitude as i128)
    } else {
        magnitude as i128
    })
}

/// `convert_FROM_integers`, one of its outputs: wrapping, saturating.
pub fn integers<F: Integer, T: Integer>(input: &[F]) -> Vec<T> {
    input
        .iter()
        .flat_map(|v| [T::wrap(v.wide()), T::saturate(v.wide())])
        .collect()
}

/// `convert_INTEGER_FLOAT`: rte, rtz, rtp, rtn, as bits.
pub fn integers_to_floats<F: Integer>(input: &[F], to: Format) -> Vec<u64> {
    input
        .iter()
        .flat_map(|&v| ROUNDINGS.map(|mode| integer_to_float(v, to, mode)))
        .collect()
}

/// `convert_FLOAT_INTEGER`: sat (towards zero), sat_rte, sat_rtz, sat_rtp, sat_rtn.
pub fn floats_to_integers<T: Integer>(input: &[u64], from: Format) -> Vec<T> {
    let modes = [Rounding::Zero].into_iter().chain(ROUNDINGS);
    input
        .iter()
        .flat_map(|&v| {
            modes
                .clone()
                .map(move |mode| float_to_integer(v, from, mode))
        })
        .collect()
}

/// `convert_float_half`, `convert_double_float`, `convert_double_half`: rte, rtz, rtp, rtn.
pub fn narrow(input: &[u64], from: Format, to: Format) -> Vec<u64> {
    input
        .iter()
        .flat_map(|&v| ROUNDINGS.map(|mode| float_to_float(v, from, to, mode)))
        .collect()
}

/// `convert_half_float`, `convert_float_double`, `convert_half_double`: exact.
pub fn widen(input: &[u64], from: Format, to: Format) -> Vec<u64> {
    input
        .iter()
        .map(|&v| float_to_float(v, from, to, Rounding::NearestEven))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::float::{FLOAT, HALF};
    use super::*;
    use visa_test_common::Rng;

    fn float(bits: u64) -> f32 {
        f32::from_bits(bits as u32)
    }

    #[test]
    fn nearest_agrees_with_the_host() {
        let mut rng = Rng::new(1);
        for _ in 0..20_000 {
            let v = rng.bits() >> rng.word_below(64);
            let mode = Rounding::NearestEven;
            assert_eq!(float(integer_to_float(v, FLOAT, mode)), v as f32);
            assert_eq!(
                float(integer_to_float(v as i64, FLOAT, mode)),
                v as i64 as f32
            );
            assert_eq!(f64::from_bits(integer_to_float(v, DOUBLE, mode)), v as f64);
            let d = f64::from_bits(rng.bits());
            if d.is_nan() {
                continue;
            }
            assert_eq!(
                float(round_f64(d, FLOAT, mode)).to_bits(),
                (d as f32).to_bits(),
                "{d:e}"
            );
            assert_eq!(
                float_to_integer::<i32>(d.to_bits(), DOUBLE, Rounding::Zero),
                d as i32
            );
            let s = f32::from_bits(rng.word());
            assert_eq!(
                float_to_integer::<u64>(s.to_bits().into(), FLOAT, Rounding::Zero),
                s as u64
            );
            assert_eq!(
                float_to_integer::<i64>(s.to_bits().into(), FLOAT, Rounding::Zero),
                s as i64
            );
        }
    }

    #[test]
    fn directed_modes_enclose_the_value() {
        let mut rng = Rng::new(2);
        for _ in 0..20_000 {
            let d = rng.double(-1e5, 1e5) * 2f64.powi(rng.word_below(300) as i32 - 150);
            let up = float(round_f64(d, FLOAT, Rounding::Up));
            let down = float(round_f64(d, FLOAT, Rounding::Down));
            let zero = float(round_f64(d, FLOAT, Rounding::Zero));
            assert!(f64::from(down) <= d && d <= f64::from(up));
            assert!(up == down || up == down.next_up());
            assert_eq!(zero, if d < 0.0 { up } else { down });
        }
    }

    #[test]
    fn edges() {
        let half = |v: f64, mode| round_f64(v, HALF, mode);
        assert_eq!(half(1e6, Rounding::Zero), 0x7bff);
        assert_eq!(half(1e6, Rounding::Down), 0x7bff);
        assert_eq!(half(1e6, Rounding::Up), 0x7c00);
        assert_eq!(half(-1e6, Rounding::Up), 0xfbff);
        assert_eq!(half(1e-20, Rounding::Up), 1);
        assert_eq!(half(-1e-20, Rounding::Up), 0x8000);
        let to_char = |v: f32| floats_to_integers::<i8>(&[u64::from(v.to_bits())], FLOAT);
        assert_eq!(to_char(2.5), [2, 2, 2, 3, 2]);
        assert_eq!(to_char(-2.5), [-2, -2, -2, -2, -3]);
        assert_eq!(to_char(1e30), [127; 5]);
        assert_eq!(to_char(f32::NEG_INFINITY), [-128; 5]);
        assert_eq!(to_char(f32::NAN), [0; 5]);
        assert_eq!(to_char(1e-40), [0, 0, 0, 1, 0]);
        assert_eq!(integers::<i32, u8>(&[-1, 300]), [255, 0, 44, 255]);
        let wide = integers_to_floats(&[0x0100_0001i32], FLOAT);
        assert_eq!(
            wide.map_float(),
            [16777216.0, 16777216.0, 16777218.0, 16777216.0]
        );
    }

    trait MapFloat {
        fn map_float(&self) -> Vec<f32>;
    }

    impl MapFloat for Vec<u64> {
        fn map_float(&self) -> Vec<f32> {
            self.iter().map(|&b| float(b)).collect()
        }
    }
}
