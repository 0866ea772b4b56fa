//! Levels of detail: how far apart the coordinates of neighbours are.
//!
//! The logarithm to base 2 of the longer of two gradients, in texels: the scale factor of Vulkan's and Direct3D's specifications
//! before any of the approximations that they allow. The arithmetic is double precision, in operations of IEEE 754 only, so that
//! every machine gives the same bits.

/// The level of detail of two gradients in texels, rounded to single precision. Minus infinity where there is no distance, NaN
/// where one is none.
pub(super) fn level(gradients: [[f64; 3]; 2]) -> f32 {
    let [a, b] = gradients.map(|g| g.iter().map(|d| d * d).sum::<f64>());
    if a.is_nan() || b.is_nan() {
        return f32::NAN;
    }
    // Squares of single-precision numbers times sizes are normal numbers.
    (0.5 * log2(a.max(b))) as f32
}

/// The logarithm to base 2 of a number that is not negative nor subnormal, within 2^-48 of it.
fn log2(x: f64) -> f64 {
    if x == 0.0 {
        return f64::NEG_INFINITY;
    }
    if x.is_infinite() {
        return x;
    }
    let bits = x.to_bits();
    let mut exponent = (bits >> 52) as i32 - 1023;
    let mut fraction = f64::from_bits(bits & (u64::MAX >> 12) | 1023 << 52);
    if fraction > std::f64::consts::SQRT_2 {
        fraction *= 0.5;
        exponent += 1;
    }
    // 2 artanh((f - 1) / (f + 1)), of which the argument is at most 0.172.
    let s = (fraction - 1.0) / (fraction + 1.0);
    let series = (0..11)
        .rev()
        .fold(0.0, |sum, k| sum * (s * s) + 1.0 / f64::from(2 * k + 1));
    f64::from(exponent) + 2.0 * std::f64::consts::LOG2_E * s * series
}

#[cfg(test)]
mod tests {
    use super::{level, log2};

    /// The standard library's logarithm is another one.
    #[test]
    fn logarithms_are_close() {
        let mut x = 1e-90_f64;
        let mut worst: f64 = 0.0;
        while x < 1e97 {
            worst = worst.max((log2(x) - x.log2()).abs() / x.log2().abs().max(1e-3));
            x *= 1.000_37 + (x.to_bits() & 0xFF) as f64 * 1e-5;
        }
        assert!(worst < 2e-13, "{worst}");
        for k in -290..300 {
            assert_eq!(log2(2_f64.powi(k)), f64::from(k));
        }
    }

    #[test]
    fn the_longer_gradient_counts() {
        assert_eq!(level([[3.0, 4.0, 0.0], [0.0, 0.0, 4.0]]), 5_f32.log2());
        assert_eq!(level([[0.25, 0.0, 0.0], [0.0, -0.5, 0.0]]), -1.0);
        assert_eq!(level([[0.0; 3]; 2]), f32::NEG_INFINITY);
        assert_eq!(level([[f64::INFINITY, 0.0, 0.0], [0.0; 3]]), f32::INFINITY);
        for gradients in [[[f64::NAN, 9.0, 0.0], [1.0; 3]], [[1.0; 3], [f64::NAN; 3]]] {
            assert!(level(gradients).is_nan());
        }
    }
}
