//! Portable path of `fp_env`: exact arithmetic in software, one lane at a time.
//!
//! Used where the processor cannot be put into another rounding mode here, and as the oracle
//! that the processor's path is tested against.

use super::fp_env::{Call, Env, Round, sign_extend};
use crate::abi::fp_env as op;
use rustc_apfloat::ieee::{Double, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert};

/// Result bits of one lane from the bits of its operands.
pub(super) fn lane(call: &Call, sources: [u64; 3]) -> u64 {
    let Call {
        op: code,
        source,
        result,
        env,
        ..
    } = *call;
    match code {
        op::SI_TO_F => {
            let value = i128::from(sign_extend(sources[0], source));
            from_integer(value, result, env)
        }
        op::UI_TO_F => from_integer(sources[0].into(), result, env),
        _ => match source {
            2 => arithmetic::<Half>(call, sources, 2),
            4 => arithmetic::<Single>(call, sources, 4),
            _ => arithmetic::<Double>(call, sources, 8),
        },
    }
}

impl From<Round> for rustc_apfloat::Round {
    fn from(round: Round) -> Self {
        match round {
            Round::Nearest => Self::NearestTiesToEven,
            Round::Up => Self::TowardPositive,
            Round::Down => Self::TowardNegative,
            Round::Zero => Self::TowardZero,
        }
    }
}

fn from_integer(value: i128, bytes: u32, env: Env) -> u64 {
    let round = env.round.into();
    let bits = match bytes {
        2 => Half::from_i128_r(value, round).value.to_bits(),
        4 => Single::from_i128_r(value, round).value.to_bits(),
        _ => Double::from_i128_r(value, round).value.to_bits(),
    };
    bits as u64
}

fn arithmetic<F>(call: &Call, sources: [u64; 3], bytes: u32) -> u64
where
    F: Float + FloatConvert<Half> + FloatConvert<Single> + FloatConvert<Double>,
    Quad: FloatConvert<F>,
{
    let env = call.env;
    let round = env.round.into();
    let [a, b, c] = sources.map(|bits| F::from_bits(env.flush(bytes, bits).into()));
    let lossy = &mut false;
    let bits = match call.op {
        op::ADD => a.add_r(b, round).value.to_bits(),
        op::MUL => a.mul_r(b, round).value.to_bits(),
        op::DIV => a.div_r(b, round).value.to_bits(),
        op::FMA => a.mul_add_r(b, c, round).value.to_bits(),
        op::SQRT => sqrt(a, round).to_bits(),
        op::F_TO_F => match call.result {
            2 => FloatConvert::<Half>::convert_r(a, round, lossy)
                .value
                .to_bits(),
            4 => FloatConvert::<Single>::convert_r(a, round, lossy)
                .value
                .to_bits(),
            _ => FloatConvert::<Double>::convert_r(a, round, lossy)
                .value
                .to_bits(),
        },
        _ => a.to_bits(),
    };
    env.flush(call.result, bits as u64)
}

/// Square root: the integer root of the scaled significand with a sticky bit, rounded once.
fn sqrt<F: Float>(x: F, round: rustc_apfloat::Round) -> F
where
    Quad: FloatConvert<F>,
{
    if x.is_nan() || x.is_zero() {
        return x;
    }
    if x.is_negative() {
        return F::qnan(None);
    }
    if x.is_infinite() {
        return x;
    }
    // x = significand * 2^exponent with an even exponent and 120 or 121 significant bits; the root
    // has at least 60 bits, more than any format here needs for a single rounding.
    let mut exponent = x.ilogb() - 120;
    if exponent % 2 != 0 {
        exponent -= 1;
    }
    let scaled = x.scalbn(0);
    let significand = significand(scaled, exponent);
    let root = significand.isqrt();
    let sticky = u128::from(root * root != significand);
    let exact = Quad::from_u128(root << 1 | sticky)
        .value
        .scalbn(exponent / 2 - 1);
    exact.convert_r(round, &mut false).value
}

/// `x / 2^exponent`, an integer.
fn significand<F: Float>(x: F, exponent: i32) -> u128 {
    let fraction_bits = F::PRECISION - 1;
    let bits = x.to_bits();
    let fraction = bits & ((1 << fraction_bits) - 1);
    let field = (bits >> fraction_bits & ((1 << (F::BITS - F::PRECISION)) - 1)) as i32;
    // x = integer * 2^unit
    let (integer, unit) = match field {
        0 => (fraction, F::MIN_EXP - fraction_bits as i32),
        _ => (
            fraction | 1 << fraction_bits,
            field - F::MAX_EXP - fraction_bits as i32,
        ),
    };
    integer << (unit - exponent)
}
