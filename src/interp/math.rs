//! The definition of `exp log sin cos pow inv rsqrt`: which bits an approximate function gives.
//!
//! The formulas are part of this project's definition of the ISA, as the specification only bounds their
//! errors: range reduction and polynomial in binary32 (`pow` takes its logarithm in binary64), every step
//! rounded to nearest, `fma` fused. The compilers expand the same formulas out of vector operations; nothing is
//! shared but the numbers, so that a slip on either side shows. Errors are in `docs/accuracy.md`.

/// `1.5 * 2^23`: added to a number below `2^22`, it leaves the nearest integer in the low bits.
const ROUND: f32 = 12_582_912.0;
/// [`ROUND`] plus twice the exponent bias.
const ROUND_BIASED: f32 = ROUND + 254.0;

/// `(2^r - 1) / r` on [-1/2, 1/2], ascending.
const EXP2: [f64; 6] = [
    0.693147182,
    0.240226477,
    0.0555034131,
    0.00961838197,
    0.00133989018,
    0.000153533692,
];

/// `log2(1 + f) / f` on [sqrt(1/2) - 1, sqrt(2) - 1].
const LOG2: [f64; 10] = [
    1.44269502,
    -0.721347332,
    0.480898499,
    -0.360697538,
    0.288568556,
    -0.239617392,
    0.204600736,
    -0.191063046,
    0.186174497,
    -0.10994935,
];

/// The same for binary64.
const LOG2_LONG: [f64; 12] = [
    1.4426950409393422,
    -0.7213475252130654,
    0.4808983207305888,
    -0.36067280055686096,
    0.28854064345854635,
    -0.24050417391095438,
    0.20609625919730065,
    -0.1790469550594418,
    0.15900146049991665,
    -0.15698222412339424,
    0.1548576999415856,
    -0.08634624094534506,
];

/// `(sin(r) / r - 1) / r^2` in `r^2`, on [-pi/2, pi/2].
const SIN: [f64; 4] = [-0.166666597, 0.00833306648, -0.000198095484, 2.60564252e-06];

/// Pi in three parts of 24 bits.
const PI: [f64; 3] = [
    3.141592502593994,
    1.5099578831723193e-07,
    1.078060505991553e-14,
];

/// Horner's scheme from the last coefficient, fused, the coefficients rounded to binary32.
fn poly(x: f32, c: &[f64]) -> f32 {
    c.iter()
        .rev()
        .map(|&c| c as f32)
        .reduce(|sum, c| sum.mul_add(x, c))
        .unwrap_or(0.0)
}

fn poly_long(x: f64, c: &[f64]) -> f64 {
    c.iter()
        .rev()
        .copied()
        .reduce(|sum, c| sum.mul_add(x, c))
        .unwrap_or(0.0)
}

/// Between -152 and 130, where powers of two are 0 and infinite; NaN stays.
fn clamp(x: f64) -> f64 {
    x.clamp(-152.0, 130.0)
}

/// `2^(n + r)`, the integer `n + 254` in the low bits of `t`: as two factors, so that only the last product rounds.
fn scaled(r: f32, t: f32) -> f32 {
    let p = poly(r, &EXP2).mul_add(r, 1.0);
    let first = t.to_bits().wrapping_shr(1).wrapping_shl(23);
    let second = t.to_bits().wrapping_shl(23).wrapping_sub(first);
    p * f32::from_bits(first) * f32::from_bits(second)
}

/// `2^x`.
pub(super) fn exp2(x: f32) -> f32 {
    let x = clamp(f64::from(x)) as f32;
    let t = x + ROUND_BIASED;
    let n = t - ROUND_BIASED;
    scaled(x - n, t)
}

/// `(e, f)` with `x = 2^e * (1 + f)` and `1 + f` between the square roots of 1/2 and 2; where the logarithm is
/// infinite or NaN, so is `e`, with a finite `f`.
fn split(x: f32, pole: f32) -> (f32, f32) {
    let denormal = x < f32::MIN_POSITIVE;
    let (normal, correction) = if denormal {
        (x * 8_388_608.0, -23.0)
    } else {
        (x, 0.0)
    };
    let root = std::f32::consts::FRAC_1_SQRT_2.to_bits();
    let above = normal.to_bits().wrapping_sub(root);
    let e = (above as i32).wrapping_shr(23) as f32 + correction;
    let f = f32::from_bits((above & 0x007F_FFFF).wrapping_add(root)) - 1.0;
    let e = if x > 0.0 { e } else { pole };
    let e = if x < f32::INFINITY { e } else { x };
    (e, f)
}

/// Base-2 logarithm.
pub(super) fn log2(x: f32) -> f32 {
    let pole = if x == 0.0 {
        f32::NEG_INFINITY
    } else {
        f32::NAN
    };
    let (e, f) = split(x, pole);
    poly(f, &LOG2).mul_add(f, e)
}

/// `sin(x - n * pi)`, negated if the integer in the low bits of `t` is odd.
fn sine(x: f32, n: f32, t: f32) -> f32 {
    let r = PI.iter().fold(x, |r, &part| n.mul_add(-(part as f32), r));
    let z = r * r;
    // Adding zero makes a product of -0 into +0, so that the sign of a zero `r` survives.
    let p = poly(z, &SIN).mul_add(z, 0.0);
    let s = p.mul_add(r, r);
    let s = if s < -1.0 { -1.0 } else { s };
    let s = if s > 1.0 { 1.0 } else { s };
    f32::from_bits(s.to_bits() ^ t.to_bits().wrapping_shl(31))
}

/// Sine of an angle in radians.
pub(super) fn sin(x: f32) -> f32 {
    let t = x.mul_add(std::f32::consts::FRAC_1_PI, ROUND);
    sine(x, t - ROUND, t)
}

/// Cosine of an angle in radians: the sine of `x + pi / 2`.
pub(super) fn cos(x: f32) -> f32 {
    let t = x.mul_add(std::f32::consts::FRAC_1_PI, 0.5) + ROUND;
    sine(x, t - ROUND - 0.5, t)
}

/// `|x|^y`; one where `y` is 0 or `|x|` is 1, whatever the other operand is.
pub(super) fn pow(x: f32, y: f32) -> f32 {
    let x = x.abs();
    if x == 1.0 || y == 0.0 {
        return 1.0;
    }
    let (e, f) = split(x, f32::NEG_INFINITY);
    let log = poly_long(f.into(), &LOG2_LONG).mul_add(f.into(), e.into());
    let z = clamp(log * f64::from(y));
    let t = z as f32 + ROUND_BIASED;
    let n = t - ROUND_BIASED;
    scaled((z - f64::from(n)) as f32, t)
}

macro_rules! rsqrt {
    ($name:ident, $t:ty) => {
        /// `1 / sqrt(x)`: the quotient, then one Newton step where its residual is a number.
        pub(super) fn $name(x: $t) -> $t {
            let y = 1.0 / x.sqrt();
            let e = (x * y).mul_add(y, -1.0);
            if e.is_nan() {
                y
            } else {
                (y * -0.5).mul_add(e, y)
            }
        }
    };
}
rsqrt!(rsqrt, f32);
rsqrt!(rsqrt_double, f64);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_points() {
        assert_eq!(exp2(3.0), 8.0);
        assert_eq!(exp2(-150.0), 0.0);
        assert_eq!(exp2(-149.0), f32::from_bits(1));
        assert_eq!(exp2(200.0), f32::INFINITY);
        assert!(exp2(f32::NAN).is_nan());
        assert_eq!(log2(8.0), 3.0);
        assert_eq!(log2(0.0), f32::NEG_INFINITY);
        assert_eq!(log2(f32::INFINITY), f32::INFINITY);
        assert!(log2(-1.0).is_nan());
        assert_eq!(sin(-0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(cos(0.0), 1.0);
        assert_eq!(pow(f32::NAN, 0.0), 1.0);
        assert_eq!(pow(-2.0, 3.0), 8.0);
        assert_eq!(rsqrt(4.0), 0.5);
        assert_eq!(rsqrt(0.0), f32::INFINITY);
        assert_eq!(rsqrt_double(0.25), 2.0);
    }
}
