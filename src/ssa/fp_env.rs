//! Float operations under a control register: rounding modes and denormal flushing, in software.
//!
//! `%cr0` bits 5:4 give the rounding (0 nearest even, 1 up, 2 down, 3 toward zero); bits 6, 7 and 10
//! keep the denormals of `f64`, `f32` and binary16. Denormal operands and results that are not kept
//! become zeros of the same sign. Results that are NaN are the quiet one without payload.

use super::op::FpEnvOp;
use super::types::Lane;
use rustc_apfloat::ieee::{Double, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

/// `%cr0` that rounds to the nearest even and keeps the denormals of all three types.
pub(crate) const CR0_PLAIN: u32 = 0x4C0;
/// Bits of `%cr0` that say how results are rounded.
pub(crate) const CR0_ROUNDING: u32 = 0x30;

/// `op(args)` in one lane; `from` and `to` are the lanes of operands and result, `I16` is binary16
/// where a float stands.
pub fn fp_env(op: FpEnvOp, cr0: u32, from: Lane, to: Lane, args: &[u64]) -> u64 {
    match to {
        Lane::F32 => compute::<Single>(op, cr0, from, to, args),
        Lane::F64 => compute::<Double>(op, cr0, from, to, args),
        _ => compute::<Half>(op, cr0, from, to, args),
    }
}

trait Format: Float + FloatConvert<Quad> {}

impl Format for Half {}
impl Format for Single {}
impl Format for Double {}

fn rounding(cr0: u32) -> Round {
    match cr0 >> 4 & 3 {
        0 => Round::NearestTiesToEven,
        1 => Round::TowardPositive,
        2 => Round::TowardNegative,
        _ => Round::TowardZero,
    }
}

fn keeps_denormals(cr0: u32, lane: Lane) -> bool {
    let bit = match lane {
        Lane::F64 => 6,
        Lane::F32 => 7,
        _ => 10,
    };
    cr0 >> bit & 1 != 0
}

fn flush<F: Float>(x: F, cr0: u32, lane: Lane) -> F {
    if x.is_denormal() && !keeps_denormals(cr0, lane) {
        F::ZERO.copy_sign(x)
    } else {
        x
    }
}

fn compute<F: Format>(op: FpEnvOp, cr0: u32, from: Lane, to: Lane, args: &[u64]) -> u64
where
    Half: FloatConvert<F>,
    Single: FloatConvert<F>,
    Double: FloatConvert<F>,
    Quad: FloatConvert<F>,
{
    let round = rounding(cr0);
    let bits = |n: usize| args.get(n).copied().unwrap_or(0);
    let arg = |n| flush(F::from_bits(u128::from(bits(n))), cr0, to);
    let value = match op {
        FpEnvOp::Add => arg(0).add_r(arg(1), round).value,
        FpEnvOp::Mul => arg(0).mul_r(arg(1), round).value,
        FpEnvOp::Div => arg(0).div_r(arg(1), round).value,
        FpEnvOp::Fma => arg(0).mul_add_r(arg(1), arg(2), round).value,
        FpEnvOp::Sqrt => sqrt(arg(0), round),
        FpEnvOp::SIToF => F::from_i128_r(i128::from(from.sign_extend(bits(0))), round).value,
        FpEnvOp::UIToF => F::from_u128_r(u128::from(bits(0)), round).value,
        FpEnvOp::FToF => widen_or_narrow(bits(0), cr0, from, round),
        FpEnvOp::Flush => arg(0),
    };
    let value = flush(value, cr0, to);
    let value = if value.is_nan() { F::qnan(None) } else { value };
    value.to_bits() as u64
}

fn widen_or_narrow<F>(bits: u64, cr0: u32, from: Lane, round: Round) -> F
where
    Half: FloatConvert<F>,
    Single: FloatConvert<F>,
    Double: FloatConvert<F>,
    F: Float,
{
    let (bits, mut inexact) = (u128::from(bits), false);
    match from {
        Lane::F64 => flush(Double::from_bits(bits), cr0, from).convert_r(round, &mut inexact),
        Lane::F32 => flush(Single::from_bits(bits), cr0, from).convert_r(round, &mut inexact),
        _ => flush(Half::from_bits(bits), cr0, from).convert_r(round, &mut inexact),
    }
    .value
}

/// Rounds the root of the host to nearest, then steps by one where its exact square (which fits in
/// binary128) is on the wrong side.
fn sqrt<F: Format>(x: F, round: Round) -> F
where
    Double: FloatConvert<F>,
    Quad: FloatConvert<F>,
{
    if x.is_nan() || x.is_negative() && x.is_non_zero() {
        return F::qnan(None);
    }
    if x.is_zero() || x.is_infinite() {
        return x;
    }
    let (nearest, mut inexact) = (Round::NearestTiesToEven, false);
    let quad: Quad = x.convert_r(nearest, &mut inexact).value;
    // Every operand is exact as a double, and its root in double precision rounds once more without harm.
    let double: Double =
        rustc_apfloat::FloatConvert::<Double>::convert_r(quad, nearest, &mut inexact).value;
    let host = f64::from_bits(double.to_bits() as u64).sqrt();
    let root: F = Double::from_bits(u128::from(host.to_bits()))
        .convert_r(nearest, &mut inexact)
        .value;
    let wide: Quad = root.convert_r(nearest, &mut inexact).value;
    let square = wide.mul_r(wide, nearest).value;
    match round {
        Round::TowardPositive if square < quad => root.next_up().value,
        Round::TowardNegative | Round::TowardZero if square > quad => root.next_down().value,
        _ => root,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f32s(op: FpEnvOp, cr0: u32, args: &[f32]) -> f32 {
        let bits: Vec<u64> = args.iter().map(|x| u64::from(x.to_bits())).collect();
        f32::from_bits(fp_env(op, cr0, Lane::F32, Lane::F32, &bits) as u32)
    }

    #[test]
    fn directed_rounding_brackets_the_exact_value() {
        let args = [1.0, 3.0];
        let [near, up, down, zero] =
            [0, 1, 2, 3].map(|mode| f32s(FpEnvOp::Div, CR0_PLAIN | mode << 4, &args));
        assert_eq!(near, 1.0 / 3.0);
        assert_eq!(up, down.next_up());
        assert_eq!(zero, down);
        let minus = f32s(FpEnvOp::Div, CR0_PLAIN | 3 << 4, &[-1.0, 3.0]);
        assert_eq!(minus, -zero);
    }

    #[test]
    fn roots_in_every_mode() {
        for x in [2.0f32, 3.0, 0.1, 1e-40, 1e30, 4.0, 0.0] {
            let [near, up, down, zero] =
                [0, 1, 2, 3].map(|mode| f32s(FpEnvOp::Sqrt, CR0_PLAIN | mode << 4, &[x]));
            assert_eq!(near, x.sqrt());
            assert_eq!(down, zero);
            let exact = f64::from(x).sqrt();
            assert!(f64::from(down) <= exact && exact <= f64::from(up), "{x}");
            assert!(up == down || up == down.next_up(), "{x}");
        }
        assert!(f32s(FpEnvOp::Sqrt, CR0_PLAIN, &[-1.0]).is_nan());
    }

    #[test]
    fn nearest_agrees_with_the_host() {
        let values = [1.5f32, -0.1, 1e-39, 3e38, 0.0, f32::INFINITY, 7.25e-20];
        for a in values {
            for b in values {
                let same = |x: f32, y: f32| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
                assert!(same(f32s(FpEnvOp::Add, CR0_PLAIN, &[a, b]), a + b));
                assert!(same(f32s(FpEnvOp::Mul, CR0_PLAIN, &[a, b]), a * b));
                assert!(same(f32s(FpEnvOp::Div, CR0_PLAIN, &[a, b]), a / b));
                let fused = f32s(FpEnvOp::Fma, CR0_PLAIN, &[a, b, 1e-10]);
                assert!(same(fused, a.mul_add(b, 1e-10)));
            }
        }
    }

    #[test]
    fn denormals_are_flushed_unless_kept() {
        let tiny = f32::from_bits(1);
        assert_eq!(f32s(FpEnvOp::Flush, 0, &[-tiny]).to_bits(), 1 << 31);
        assert_eq!(f32s(FpEnvOp::Flush, CR0_PLAIN, &[tiny]), tiny);
        let half = fp_env(FpEnvOp::FToF, 0x80, Lane::F32, Lane::I16, &[0x3380_0000]);
        assert_eq!(half, 0);
        let half = fp_env(
            FpEnvOp::FToF,
            CR0_PLAIN,
            Lane::F32,
            Lane::I16,
            &[0x3380_0000],
        );
        assert_eq!(half, 1);
    }

    #[test]
    fn integers_round_by_the_mode() {
        let n = [0x0100_0001];
        let to = |mode: u32| {
            fp_env(
                FpEnvOp::UIToF,
                CR0_PLAIN | mode << 4,
                Lane::I32,
                Lane::F32,
                &n,
            )
        };
        assert_eq!(
            [to(0), to(1), to(3)],
            [0x4b80_0000, 0x4b80_0001, 0x4b80_0000]
        );
        let minus = fp_env(FpEnvOp::SIToF, CR0_PLAIN, Lane::I8, Lane::F64, &[0xff]);
        assert_eq!(f64::from_bits(minus), -1.0);
    }
}
