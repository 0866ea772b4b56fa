//! The expansions themselves, branch-free. Errors are measured over all of `f32` in `docs/accuracy.md`.
//!
//! The polynomials are minimax fits (Remez exchange), rounded to the lane's type; those of `f32` were
//! then moved by single units in the last place for as long as the largest error fell.

use super::ops::{Arith, Ops};

/// `1.5 * 2^23`: added to a number below `2^22`, it leaves the nearest integer in the low bits.
const ROUND: f64 = 12_582_912.0;

/// `(2^r - 1) / r` on [-1/2, 1/2].
const EXP2: [f64; 6] = [
    0.693147182,
    0.240226477,
    0.0555034131,
    0.00961838197,
    0.00133989018,
    0.000153533692,
];

/// `log2(1 + f) / f` on [sqrt(1/2) - 1, sqrt(2) - 1], in `f32`.
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

/// The same in `f64`, to 33 bits.
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

/// `(sin(r) / r - 1) / r^2` as a polynomial in `r^2`, on [-pi/2, pi/2].
const SIN: [f64; 4] = [-0.166666597, 0.00833306648, -0.000198095484, 2.60564252e-06];

/// Pi in three parts of 24 bits, each cut off, so that all have one sign.
const PI: [f64; 3] = [
    3.141592502593994,
    1.5099578831723193e-07,
    1.078060505991553e-14,
];

/// Polynomial with coefficients in ascending order.
fn poly<T: Copy, O: Arith<T>>(o: &mut O, x: T, c: &[f64]) -> T {
    let (last, rest) = c.split_last().expect("coefficients");
    let mut sum = o.num(*last);
    for &c in rest.iter().rev() {
        let c = o.num(c);
        sum = o.fma(sum, x, c);
    }
    sum
}

/// `x` kept within limits; NaN stays.
fn clamp<T: Copy, O: Arith<T>>(o: &mut O, x: T, least: f64, most: f64) -> T {
    let least = o.num(least);
    let below = o.lt(x, least);
    let x = o.select(below, least, x);
    let most = o.num(most);
    let above = o.lt(most, x);
    o.select(above, most, x)
}

/// `2^(n + r)`, -152 <= n <= 130. The only rounding of the scaling is the last, be the result denormal or infinite.
fn scaled_exp2<O: Ops>(o: &mut O, r: O::F, n: O::F) -> O::F {
    let q = poly(o, r, &EXP2);
    let one = o.num(1.0);
    let p = o.fma(q, r, one);
    o.scale(p, n)
}

/// `2^x`.
pub(crate) fn exp2<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let x = clamp(o, x, -152.0, 130.0);
    let n = o.nearest(x);
    let r = o.sub(x, n);
    scaled_exp2(o, r, n)
}

/// `(e, f)` with `x = 2^e * (1 + f)`, `1 + f` between the square roots of 1/2 and 2.
///
/// `e` stands for the special results: infinite or NaN where the logarithm is, while `f` stays
/// finite. `signed` says whether `x` may be negative.
fn split<O: Ops>(o: &mut O, x: O::F, signed: bool) -> (O::F, O::F) {
    let zero = o.num(0.0);
    let smallest = o.num(f64::from(f32::MIN_POSITIVE));
    let denormal = o.lt(x, smallest);
    let up = o.num(8_388_608.0);
    let scaled = o.mul(x, up);
    let normal = o.select(denormal, scaled, x);
    let down = o.num(-23.0);
    let correction = o.select(denormal, down, zero);

    let bits = o.bits(normal);
    let root = o.int(std::f32::consts::FRAC_1_SQRT_2.to_bits());
    let above = o.isub(bits, root);
    let e = o.ashr(above, 23);
    let e = o.to_float(e);
    let e = o.add(e, correction);
    let mantissa = o.int(0x007f_ffff);
    let m = o.iand(above, mantissa);
    let m = o.iadd(m, root);
    let m = o.of_bits(m);
    let one = o.num(1.0);
    let f = o.sub(m, one);

    let mut pole = o.num(f64::NEG_INFINITY);
    if signed {
        let nan = o.num(f64::NAN);
        let is_zero = o.eq(x, zero);
        pole = o.select(is_zero, pole, nan);
    }
    let positive = o.lt(zero, x);
    let e = o.select(positive, e, pole);
    let infinity = o.num(f64::INFINITY);
    let finite = o.lt(x, infinity);
    (o.select(finite, e, x), f)
}

/// Base-2 logarithm.
pub(crate) fn log2<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let (e, f) = split(o, x, true);
    let q = poly(o, f, &LOG2);
    o.fma(q, f, e)
}

/// `sin(x - n * pi)` with the sign flipped if the integer in the low bits of `t` is odd.
fn sine<O: Ops>(o: &mut O, x: O::F, n: O::F, t: O::F) -> O::F {
    let mut r = x;
    for part in PI {
        let part = o.num(-part);
        r = o.fma(n, part, r);
    }
    let z = o.mul(r, r);
    let p = poly(o, z, &SIN);
    // Adding zero makes a product of -0 into +0, so that the sign of a zero `r` survives.
    let zero = o.num(0.0);
    let p = o.fma(p, z, zero);
    let s = o.fma(p, r, r);
    // Rounding may exceed 1, and so do arguments so large that `n` is not exact.
    let s = clamp(o, s, -1.0, 1.0);
    let t = o.bits(t);
    let sign = o.shl(t, 31);
    let s = o.bits(s);
    let s = o.ixor(s, sign);
    o.of_bits(s)
}

/// Sine of an angle in radians.
pub(crate) fn sin<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let inverse = o.num(std::f64::consts::FRAC_1_PI);
    let round = o.num(ROUND);
    let t = o.fma(x, inverse, round);
    let n = o.sub(t, round);
    sine(o, x, n, t)
}

/// Cosine of an angle in radians: the sine of `x + pi / 2`.
pub(crate) fn cos<O: Ops>(o: &mut O, x: O::F) -> O::F {
    let inverse = o.num(std::f64::consts::FRAC_1_PI);
    let round = o.num(ROUND);
    let half = o.num(0.5);
    let turns = o.fma(x, inverse, half);
    let t = o.add(turns, round);
    let n = o.sub(t, round);
    let n = o.sub(n, half);
    sine(o, x, n, t)
}

/// `|x|^y`. One where `y` is 0 or `|x|` is 1, whatever the other operand is.
pub(crate) fn pow<O: Ops>(o: &mut O, x: O::F, y: O::F) -> O::F {
    let x = o.abs(x);
    let (e, f) = split(o, x, false);
    let e = o.promote(e);
    let f = o.promote(f);
    let q = poly(o, f, &LOG2_LONG);
    let log = o.fma(q, f, e);
    let wide = o.promote(y);
    let z = o.mul(log, wide);
    let z = clamp(o, z, -152.0, 130.0);

    let short = o.demote(z);
    let n = o.nearest(short);
    let wide = o.promote(n);
    let r = o.sub(z, wide);
    let r = o.demote(r);
    let power = scaled_exp2(o, r, n);

    let one = o.num(1.0);
    let zero = o.num(0.0);
    let unit = o.eq(x, one);
    let flat = o.eq(y, zero);
    let is_one = o.or(unit, flat);
    o.select(is_one, one, power)
}

/// `1 / x`.
pub(crate) fn inv<T: Copy, O: Arith<T>>(o: &mut O, x: T) -> T {
    let one = o.num(1.0);
    o.div(one, x)
}

/// `1 / sqrt(x)`: the quotient is up to 1.5 ulp off, so one Newton step follows.
pub(crate) fn rsqrt<T: Copy, O: Arith<T>>(o: &mut O, x: T) -> T {
    let root = o.sqrt(x);
    let y = inv(o, root);
    let p = o.mul(x, y);
    let minus_one = o.num(-1.0);
    let e = o.fma(p, y, minus_one);
    let half = o.num(-0.5);
    let half = o.mul(y, half);
    let better = o.fma(half, e, y);
    // Of 0, infinity and NaN the quotient is right and the residual is NaN.
    let valid = o.eq(e, e);
    o.select(valid, better, y)
}
