//! Mathematical functions (`math.cl`, `math_half.cl`). Inexact ones are computed in double
//! precision and compared in ulp.

use super::convert::{Rounding, round_f64};
use super::float::HALF;
use super::half;

/// The functions of one argument, by the part of the kernel name after `math_` or `native_`.
pub fn unary(function: &str) -> Option<fn(f64) -> f64> {
    Some(match function {
        "exp" => f64::exp,
        "exp2" => f64::exp2,
        "log" => f64::ln,
        "log2" => f64::log2,
        "sin" => f64::sin,
        "cos" => f64::cos,
        "atan" => f64::atan,
        "sqrt" => f64::sqrt,
        "rsqrt" => |v| 1.0 / v.sqrt(),
        "recip" => |v| 1.0 / v,
        _ => return None,
    })
}

/// `math_F` and `native_F_`.
pub fn math_unary(function: fn(f64) -> f64, input: &[f32]) -> Vec<f64> {
    input.iter().map(|&v| function(f64::from(v))).collect()
}

/// `half_F_`.
pub fn half_unary(function: fn(f64) -> f64, input: &[u16]) -> Vec<f64> {
    input.iter().map(|&v| function(half::to_f64(v))).collect()
}

/// `math_pow`, `native_powr_` (for positive bases).
pub fn math_pow(x: &[f32], y: &[f32]) -> Vec<f64> {
    x.iter()
        .zip(y)
        .map(|(&x, &y)| f64::from(x).powf(f64::from(y)))
        .collect()
}

/// `math_divide`: both outputs.
pub fn math_divide(x: &[f32], y: &[f32]) -> Vec<f64> {
    x.iter()
        .zip(y)
        .map(|(&x, &y)| f64::from(x) / f64::from(y))
        .collect()
}

/// `math_exact`: 11 results an item.
pub fn math_exact(x: &[f32], y: &[f32], z: &[f32]) -> Vec<f32> {
    let sign = |v: f32| match v {
        v if v.is_nan() => 0.0,
        v if v == 0.0 => v,
        v => 1f32.copysign(v),
    };
    let item = |i: usize| {
        let (a, b, c) = (x[i], y[i], z[i]);
        [
            a.floor(),
            a.ceil(),
            a.round_ties_even(),
            a.trunc(),
            a.round(),
            a.min(b),
            a.max(b),
            a.abs(),
            a.mul_add(b, c),
            a.copysign(b),
            sign(a),
        ]
    };
    (0..x.len()).flat_map(item).collect()
}

/// The two values each result of `math_mad` may have: fused, and rounded in between.
pub fn math_mad(x: &[f32], y: &[f32], z: &[f32]) -> Vec<[f32; 2]> {
    let item = |i: usize| {
        let (a, b, c) = (x[i], y[i], z[i]);
        let sum = [a.mul_add(b, c), a * b + c];
        [sum, sum, [a.mul_add(b, -c), a * b - c]]
    };
    (0..x.len()).flat_map(item).collect()
}

/// `math_classify`: 8 words an item. The last three are meant for finite values other than 0.
pub fn math_classify(input: &[f32]) -> Vec<i32> {
    input.iter().flat_map(|&v| classify(v)).collect()
}

fn classify(v: f32) -> [i32; 8] {
    let (mantissa, exponent) = split(v);
    [
        i32::from(v.is_nan()),
        i32::from(v.is_infinite()),
        i32::from(v.is_finite()),
        i32::from(v.is_normal()),
        i32::from(v.is_sign_negative()),
        exponent - 1,
        exponent,
        mantissa.to_bits() as i32,
    ]
}

/// `frexp`: a mantissa of at least a half and less than one, and the exponent.
fn split(v: f32) -> (f32, i32) {
    if v == 0.0 || !v.is_finite() {
        return (v, 0);
    }
    let wide = f64::from(v);
    let exponent = ((wide.to_bits() >> 52) & 0x7ff) as i32 - 1022;
    ((wide * 2f64.powi(-exponent)) as f32, exponent)
}

/// `math_geometry`: dot, length, mix, smoothstep, step, fract of each float4.
pub fn math_geometry(input: &[f32]) -> Vec<f64> {
    let item = |v: &[f32]| {
        let [x, y, z, w] = [v[0], v[1], v[2], v[3]].map(f64::from);
        let t = ((x + 1.0) / 2.0).clamp(0.0, 1.0);
        [
            2.0 * (x * w + y * z),
            (x * x + y * y + z * z + w * w).sqrt(),
            x + (y - x) * 0.25,
            t * t * (3.0 - 2.0 * t),
            if y < x { 0.0 } else { 1.0 },
            (z - z.floor()).min(f64::from(1f32.next_down())),
        ]
    };
    input.chunks_exact(4).flat_map(item).collect()
}

/// `half_exact`: floor, ceil, rint, trunc, quotient. A double quotient is wide enough for its
/// second rounding to do no harm.
pub fn half_exact(x: &[u16], y: &[u16]) -> Vec<u16> {
    let item = |i: usize| {
        let (a, b) = (half::to_f64(x[i]), half::to_f64(y[i]));
        [a.floor(), a.ceil(), a.round_ties_even(), a.trunc(), a / b].map(half::from_f64)
    };
    (0..x.len()).flat_map(item).collect()
}

/// `half_store`: halves, and the same as floats.
pub fn half_store(input: &[f32]) -> (Vec<u16>, Vec<f32>) {
    let narrow = |&v: &f32| round_f64(f64::from(v), HALF, Rounding::NearestEven) as u16;
    let halves: Vec<u16> = input.iter().map(narrow).collect();
    let back = halves.iter().map(|&h| half::to_f32(h)).collect();
    (halves, back)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exact_functions() {
        let r = math_exact(&[-2.5], &[1.0], &[0.5]);
        assert_eq!(
            r,
            [
                -3.0, -2.0, -2.0, -2.0, -3.0, -2.5, 1.0, 2.5, -2.0, 2.5, -1.0
            ]
        );
        assert_eq!(half_store(&[0.1]).0, [0x2e66]);
        assert_eq!(
            half_exact(&[0x4100], &[0x4000])[2..],
            [0x4000, 0x4000, 0x3d00]
        );
    }

    #[test]
    fn classification() {
        assert_eq!(
            classify(-6.0),
            [0, 0, 1, 1, 1, 2, 3, (-0.75f32).to_bits() as i32]
        );
        assert_eq!(classify(f32::from_bits(1))[3..7], [0, 0, -149, -148]);
        assert_eq!(classify(f32::INFINITY)[..4], [0, 1, 0, 0]);
    }

    #[test]
    fn table_of_functions() {
        assert_eq!(unary("rsqrt").map(|f| f(4.0)), Some(0.5));
        assert!(unary("none").is_none());
        assert_eq!(
            math_geometry(&[1.0, 2.0, 3.25, 4.0])[..3],
            [21.0, (31.5625f64).sqrt(), 1.25]
        );
    }
}
