//! Distances between floating-point numbers. All NaNs are equal; +0 and -0 are equal.

/// Number of representable values between two floats; `u32::MAX` if exactly one is NaN.
pub fn distance_f32(a: f32, b: f32) -> u32 {
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() && b.is_nan() {
            0
        } else {
            u32::MAX
        };
    }
    let line = |v: f32| {
        let magnitude = i64::from(v.to_bits() & 0x7fff_ffff);
        if v.is_sign_negative() {
            -magnitude
        } else {
            magnitude
        }
    };
    line(a).abs_diff(line(b)) as u32
}

/// Number of representable values between two doubles; `u64::MAX` if exactly one is NaN.
pub fn distance_f64(a: f64, b: f64) -> u64 {
    if a.is_nan() || b.is_nan() {
        return if a.is_nan() && b.is_nan() {
            0
        } else {
            u64::MAX
        };
    }
    let line = |v: f64| {
        let magnitude = i128::from(v.to_bits() & (u64::MAX >> 1));
        if v.is_sign_negative() {
            -magnitude
        } else {
            magnitude
        }
    };
    line(a).abs_diff(line(b)) as u64
}

/// Number of representable values between two halves; `u16::MAX` if exactly one is NaN.
pub fn distance_half(a: u16, b: u16) -> u16 {
    let nan = |v: u16| v & 0x7fff > 0x7c00;
    if nan(a) || nan(b) {
        return if nan(a) && nan(b) { 0 } else { u16::MAX };
    }
    let line = |v: u16| {
        let magnitude = i32::from(v & 0x7fff);
        if v & 0x8000 != 0 {
            -magnitude
        } else {
            magnitude
        }
    };
    line(a).abs_diff(line(b)) as u16
}

/// Error of `got` in units of the last place of a `precision`-bit float whose smallest normal
/// exponent is `least`; infinite where only one side is NaN or infinite.
fn error(got: f64, want: f64, precision: i32, least: i32, largest: f64) -> f64 {
    if got.is_nan() || want.is_nan() {
        return if got.is_nan() && want.is_nan() {
            0.0
        } else {
            f64::INFINITY
        };
    }
    if got == want || (got.is_infinite() && want.abs() > largest && (got > 0.0) == (want > 0.0)) {
        return 0.0;
    }
    if got.is_infinite() || want.is_infinite() {
        return f64::INFINITY;
    }
    let exponent = ((want.to_bits() >> 52) & 0x7ff) as i32 - 1023;
    let unit = 2f64.powi(exponent.max(least) - precision + 1);
    (got - want).abs() / unit
}

/// Error of a float in ulp of the exact result.
pub fn error_f32(got: f32, want: f64) -> f64 {
    error(f64::from(got), want, 24, -126, f64::from(f32::MAX))
}

/// Error of a half, given as a double, in ulp of the exact result.
pub fn error_half(got: f64, want: f64) -> f64 {
    error(got, want, 11, -14, 65504.0)
}

/// Largest error over two slices, and where it is.
pub fn worst_f32(got: &[f32], want: &[f64]) -> (f64, usize) {
    assert_eq!(got.len(), want.len());
    let errors = got.iter().zip(want).map(|(&g, &w)| error_f32(g, w));
    errors.enumerate().fold(
        (0.0, 0),
        |worst, (i, e)| if e > worst.0 { (e, i) } else { worst },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_are_one_apart() {
        assert_eq!(distance_f32(1.0, 1.0f32.next_up()), 1);
        assert_eq!(distance_f32(-0.0, 0.0), 0);
        assert_eq!(distance_f32(f32::from_bits(1), -f32::from_bits(1)), 2);
        assert_eq!(distance_f32(f32::MAX, f32::INFINITY), 1);
        assert_eq!(distance_f32(f32::NAN, -f32::NAN), 0);
        assert_eq!(distance_f32(f32::NAN, 0.0), u32::MAX);
        assert_eq!(distance_f64(1.0, 1.0f64.next_down()), 1);
        assert_eq!(distance_half(0x3c00, 0x3c02), 2);
        assert_eq!(distance_half(0x8000, 0), 0);
    }

    #[test]
    fn error_is_in_units_of_the_wanted_value() {
        assert_eq!(error_f32(1.0f32.next_up(), 1.0), 1.0);
        assert_eq!(error_f32(1.0, 1.0 + 2f64.powi(-25)), 0.25);
        assert_eq!(error_f32(f32::INFINITY, 1e39), 0.0);
        assert_eq!(error_f32(f32::INFINITY, 1e30), f64::INFINITY);
        assert_eq!(error_f32(0.0, 2f64.powi(-149)), 1.0);
        assert_eq!(
            worst_f32(&[1.0, 2.5], &[1.0, 2.0]),
            (0.5 / 2f64.powi(-22), 1)
        );
    }
}
