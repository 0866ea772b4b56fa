//! Arithmetic on every scalar type (`arith.cl`, `double.cl`).

use super::convert::{Rounding, encode};
use super::float::{Exact, HALF};
use super::half;
use super::integer::Integer;

/// `arith_T`: 17 results an item.
pub fn arith_integer<T: Integer>(x: &[T], y: &[T]) -> Vec<T> {
    x.iter()
        .zip(y)
        .flat_map(|(&a, &b)| integer_item(a, b))
        .collect()
}

fn integer_item<T: Integer>(a: T, b: T) -> [T; 17] {
    let (p, q) = (a.wide(), b.wide());
    let shift = (q & i128::from(T::BITS - 1)) as u32;
    [
        T::wrap(p + q),
        T::wrap(p - q),
        T::wrap(p.wrapping_mul(q)),
        T::wrap(-p),
        T::wrap(p.min(q)),
        T::wrap(p.max(q)),
        T::wrap((p - q).abs()),
        T::saturate(p + q),
        T::saturate(p - q),
        T::wrap(p & q),
        T::wrap(p | q),
        T::wrap(p ^ q),
        T::wrap(!p),
        T::wrap(p << shift),
        T::wrap(p >> shift),
        T::wrap(i128::from(p < q)),
        T::wrap(i128::from(p == q)),
    ]
}

/// `fmin` of OpenCL: a NaN loses against a number.
macro_rules! float_item {
    ($name:ident, $type:ty) => {
        fn $name(a: $type, b: $type, c: $type) -> [$type; 12] {
            let choose = |yes: bool| if yes { 1.0 } else { 0.0 };
            [
                a + b,
                a - b,
                a * b,
                -a,
                a.mul_add(b, c),
                a.min(b),
                a.max(b),
                a.abs(),
                choose(a < b),
                choose(a == b),
                if a > b { a } else { c },
                a.max(b.min(c)).min(b.max(c)),
            ]
        }
    };
}

float_item!(float_item, f32);
float_item!(double_item, f64);

/// `arith_float`: 12 results an item.
pub fn arith_float(x: &[f32], y: &[f32], z: &[f32]) -> Vec<f32> {
    (0..x.len())
        .flat_map(|i| float_item(x[i], y[i], z[i]))
        .collect()
}

/// `arith_double`: 12 results an item.
pub fn arith_double(x: &[f64], y: &[f64], z: &[f64]) -> Vec<f64> {
    (0..x.len())
        .flat_map(|i| double_item(x[i], y[i], z[i]))
        .collect()
}

/// `arith_half`: 12 results an item. Sums, differences and products of halves are exact in
/// double, so they are rounded once; only the fused operation needs more.
pub fn arith_half(x: &[u16], y: &[u16], z: &[u16]) -> Vec<u16> {
    let item = |i: usize| {
        let wide = double_item(half::to_f64(x[i]), half::to_f64(y[i]), half::to_f64(z[i]));
        let mut item = wide.map(half::from_f64);
        item[4] = fma_half(x[i], y[i], z[i]);
        item
    };
    (0..x.len()).flat_map(item).collect()
}

/// `a * b + c` with one rounding: all halves are multiples of 2^-24, so the exact result is a
/// whole multiple of 2^-48 of at most 81 bits.
pub fn fma_half(a: u16, b: u16, c: u16) -> u16 {
    let (p, q, r) = (half::to_f64(a), half::to_f64(b), half::to_f64(c));
    let special = p * q + r;
    if !special.is_finite() || special == 0.0 && p * q == 0.0 {
        return half::from_f64(special);
    }
    let scaled = |v: f64| (v * 2f64.powi(24)) as i128;
    let sum = scaled(p) * scaled(q) + (scaled(r) << 24);
    let exact = Exact {
        negative: sum < 0,
        magnitude: sum.unsigned_abs(),
        exponent: -48,
    };
    encode(exact, HALF, Rounding::NearestEven) as u16
}

/// `arith_char4`: `add_sat(x, y) ^ (x * y).wzyx`.
pub fn arith_char4(x: &[i8], y: &[i8]) -> Vec<i8> {
    let item = |i: usize| x[i].saturating_add(y[i]) ^ x[i ^ 3].wrapping_mul(y[i ^ 3]);
    (0..x.len()).map(item).collect()
}

/// `arith_half4`: `fma(x, y, y.yxwz)`.
pub fn arith_half4(x: &[u16], y: &[u16]) -> Vec<u16> {
    (0..x.len())
        .map(|i| fma_half(x[i], y[i], y[i ^ 1]))
        .collect()
}

/// `double_divide`: quotients and square roots.
pub fn double_divide(x: &[f64], y: &[f64]) -> (Vec<f64>, Vec<f64>) {
    let quotient = x.iter().zip(y).map(|(a, b)| a / b).collect();
    (quotient, x.iter().map(|a| a.abs().sqrt()).collect())
}

/// `double_round`: floor, ceil, rint, trunc.
pub fn double_round(x: &[f64]) -> Vec<f64> {
    x.iter()
        .flat_map(|v| [v.floor(), v.ceil(), v.round_ties_even(), v.trunc()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integer_edges() {
        let r = arith_integer(&[-128i8], &[-1]);
        assert_eq!(
            r,
            [
                127, -127, -128, -128, -128, -1, 127, -128, -127, -128, -1, 127, 127, 0, -1, 1, 0
            ]
        );
        let r = arith_integer(&[u64::MAX], &[u64::MAX]);
        assert_eq!(r[..3], [u64::MAX - 1, 0, 1]);
        assert_eq!(r[7], u64::MAX);
        assert_eq!(r[13..15], [1 << 63, 1]);
    }

    #[test]
    fn half_fused_rounds_once() {
        // (1 + 2^-10)^2 - 1 = 2^-9 + 2^-20, which a rounded product would lose.
        assert_eq!(
            half::to_f64(fma_half(0x3c01, 0x3c01, 0xbc00)),
            2f64.powi(-9) + 2f64.powi(-20) - 2f64.powi(-20)
        );
        assert_eq!(fma_half(0x0001, 0x0001, 0x3c00), 0x3c00);
        assert_eq!(fma_half(0x8000, 0x3c00, 0x8000), 0x8000);
        assert_eq!(fma_half(0x3c00, 0x3c00, 0xbc00), 0);
        assert_eq!(fma_half(0x7c00, 0x3c00, 0xfc00) & 0x7e00, 0x7e00);
        assert_eq!(fma_half(0x7bff, 0x4000, 0), 0x7c00);
    }

    #[test]
    fn float_minimum_prefers_numbers() {
        let r = arith_float(&[f32::NAN], &[2.0], &[3.0]);
        assert_eq!((r[5], r[6], r[8], r[10]), (2.0, 2.0, 0.0, 3.0));
    }
}
