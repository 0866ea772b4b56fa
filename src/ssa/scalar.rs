//! What each lane-wise operation computes in one lane, on bit patterns: the definition that the
//! evaluator and constant folding share.
//!
//! Operands hold no bits above their lane, nor do results. A float operation that computes gives
//! one NaN, the quiet one without payload, so that results do not depend on operand order.

use super::op::{BinOp, ByteSigns, Conv, FCond, ICond, UnOp};
use super::types::Lane;
use rustc_apfloat::ieee::{Double, Half, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

/// `op a`.
pub fn unary(op: UnOp, lane: Lane, a: u64) -> u64 {
    let (mask, width) = (lane.mask(), lane.bits());
    match op {
        UnOp::Neg => a.wrapping_neg() & mask,
        UnOp::Not => !a & mask,
        UnOp::Clz => u64::from(a.leading_zeros() - (64 - width)),
        UnOp::Ctz => u64::from(a.trailing_zeros().min(width)),
        UnOp::Popcnt => u64::from(a.count_ones()),
        UnOp::BitRev => a.reverse_bits() >> (64 - width),
        UnOp::FNeg => a ^ 1 << (width - 1),
        UnOp::FAbs => a & mask >> 1,
        UnOp::FSqrt => float1(lane, a, f32::sqrt, f64::sqrt),
        UnOp::FFloor => float1(lane, a, f32::floor, f64::floor),
        UnOp::FCeil => float1(lane, a, f32::ceil, f64::ceil),
        UnOp::FTrunc => float1(lane, a, f32::trunc, f64::trunc),
        UnOp::FNearest => float1(lane, a, f32::round_ties_even, f64::round_ties_even),
    }
}

/// `a op b`.
pub fn binary(op: BinOp, lane: Lane, a: u64, b: u64) -> u64 {
    let (mask, width) = (lane.mask(), lane.bits());
    let (sa, sb) = (lane.sign_extend(a), lane.sign_extend(b));
    let count = (b % u64::from(width)) as u32;
    let bits = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::MulHiS => ((i128::from(sa) * i128::from(sb)) >> width) as u64,
        BinOp::MulHiU => ((u128::from(a) * u128::from(b)) >> width) as u64,
        BinOp::SDiv | BinOp::UDiv | BinOp::SRem | BinOp::URem => divide(op, lane, a, b),
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Shl => a << count,
        BinOp::LShr => a >> count,
        BinOp::AShr => (sa >> count) as u64,
        BinOp::Rotl => rotate(a, width, count),
        BinOp::Rotr => rotate(a, width, (width - count) % width),
        BinOp::SMin => sa.min(sb) as u64,
        BinOp::SMax => sa.max(sb) as u64,
        BinOp::UMin => a.min(b),
        BinOp::UMax => a.max(b),
        BinOp::SAddSat => saturate(lane, i128::from(sa) + i128::from(sb)),
        BinOp::SSubSat => saturate(lane, i128::from(sa) - i128::from(sb)),
        BinOp::UAddSat => a.saturating_add(b).min(mask),
        BinOp::USubSat => a.saturating_sub(b),
        BinOp::FAdd => float2(lane, a, b, |x, y| x + y, |x, y| x + y),
        BinOp::FSub => float2(lane, a, b, |x, y| x - y, |x, y| x - y),
        BinOp::FMul => float2(lane, a, b, |x, y| x * y, |x, y| x * y),
        BinOp::FDiv => float2(lane, a, b, |x, y| x / y, |x, y| x / y),
        BinOp::FScale => float2(lane, a, b, scale, |x, _| x),
    };
    bits & mask
}

/// [`BinOp::FScale`] of one lane. A double holds the product, so that it is rounded once.
pub(crate) fn scale(a: f32, n: f32) -> f32 {
    match n {
        f32::INFINITY if a.is_nan() => return n,
        f32::NEG_INFINITY if a.is_nan() => return 0.0,
        n if n.is_nan() && !a.is_nan() => return n + n,
        _ => {}
    }
    let exponent = (n.clamp(-300.0, 300.0).floor() as i64 + 1023) as u64;
    (f64::from(a) * f64::from_bits(exponent << 52)) as f32
}

/// The nearest signed number that fits.
fn saturate(lane: Lane, v: i128) -> u64 {
    let most = i128::from(lane.mask() >> 1);
    v.clamp(-most - 1, most) as u64
}

fn rotate(a: u64, width: u32, left: u32) -> u64 {
    if left == 0 {
        a
    } else {
        a << left | a >> (width - left)
    }
}

/// Division that never traps; results may have bits above the lane.
fn divide(op: BinOp, lane: Lane, a: u64, b: u64) -> u64 {
    let (sa, sb) = (lane.sign_extend(a), lane.sign_extend(b));
    match (op, b) {
        (BinOp::UDiv, 0) => u64::MAX,
        (BinOp::SDiv, 0) if sa >= 0 => lane.mask() >> 1,
        (BinOp::SDiv, 0) => 1 << (lane.bits() - 1),
        (_, 0) => a,
        (BinOp::UDiv, _) => a / b,
        (BinOp::SDiv, _) => sa.wrapping_div(sb) as u64,
        (BinOp::SRem, _) => sa.wrapping_rem(sb) as u64,
        _ => a % b,
    }
}

/// `a * b + c` with one rounding.
pub fn fma(lane: Lane, a: u64, b: u64, c: u64) -> u64 {
    match lane {
        Lane::F32 => of_f32(f32_of(a).mul_add(f32_of(b), f32_of(c))),
        _ => of_f64(f64_of(a).mul_add(f64_of(b), f64_of(c))),
    }
}

/// `sum` and the products of four bytes each.
pub fn dot4(signs: ByteSigns, sum: u64, a: u64, b: u64) -> u64 {
    let byte = |x: u64, k: u32, signed: bool| {
        let byte = (x >> (8 * k)) as u8;
        if signed {
            i32::from(byte.cast_signed())
        } else {
            i32::from(byte)
        }
    };
    let products = (0..4).map(|k| byte(a, k, signs.a) * byte(b, k, signs.b));
    let sum = products.fold(sum as u32 as i32, i32::wrapping_add);
    u64::from(sum.cast_unsigned())
}

/// Integer comparison.
pub fn icmp(cond: ICond, lane: Lane, a: u64, b: u64) -> bool {
    let (sa, sb) = (lane.sign_extend(a), lane.sign_extend(b));
    match cond {
        ICond::Eq => a == b,
        ICond::Ne => a != b,
        ICond::Slt => sa < sb,
        ICond::Sle => sa <= sb,
        ICond::Sgt => sa > sb,
        ICond::Sge => sa >= sb,
        ICond::Ult => a < b,
        ICond::Ule => a <= b,
        ICond::Ugt => a > b,
        ICond::Uge => a >= b,
    }
}

/// Float comparison.
pub fn fcmp(cond: FCond, lane: Lane, a: u64, b: u64) -> bool {
    let (a, b) = (to_f64(lane, a), to_f64(lane, b));
    match cond {
        FCond::Eq => a == b,
        FCond::Ne => a != b,
        FCond::Lt => a < b,
        FCond::Le => a <= b,
        FCond::Gt => a > b,
        FCond::Ge => a >= b,
    }
}

/// Conversion of `a` from one lane to another.
pub fn convert(conv: Conv, from: Lane, to: Lane, a: u64) -> u64 {
    let signed = from.sign_extend(a);
    match conv {
        Conv::SExt => signed as u64 & to.mask(),
        Conv::ZExt => a,
        Conv::Trunc => a & to.mask(),
        Conv::SIToF if to == Lane::F32 => of_f32(signed as f32),
        Conv::SIToF => of_f64(signed as f64),
        Conv::UIToF if to == Lane::F32 => of_f32(a as f32),
        Conv::UIToF => of_f64(a as f64),
        Conv::FToSI => to_signed(to_f64(from, a), to),
        Conv::FToUI => (to_f64(from, a) as u64).min(to.mask()),
        Conv::FPromote => of_f64(f64::from(f32_of(a))),
        Conv::FDemote => of_f32(f64_of(a) as f32),
        Conv::F16ToF => f16_to_float(a, to),
        Conv::FToF16 => float_to_f16(a, from),
    }
}

/// `as` truncates, saturates to 64 bits and gives 0 for NaN; the clamp saturates to the lane.
fn to_signed(x: f64, to: Lane) -> u64 {
    let max = (to.mask() >> 1) as i64;
    (x as i64).clamp(-max - 1, max) as u64 & to.mask()
}

fn f16_to_float(a: u64, to: Lane) -> u64 {
    let half = Half::from_bits(u128::from(a));
    let mut inexact = false;
    match to {
        Lane::F32 => {
            let wide: Single = half.convert_r(Round::NearestTiesToEven, &mut inexact).value;
            of_f32(f32_of(wide.to_bits() as u64))
        }
        _ => {
            let wide: Double = half.convert_r(Round::NearestTiesToEven, &mut inexact).value;
            of_f64(f64_of(wide.to_bits() as u64))
        }
    }
}

fn float_to_f16(a: u64, from: Lane) -> u64 {
    let x = to_f64(from, a);
    if x.is_nan() {
        return 0x7e00;
    }
    // f32 to f64 is exact, so this is the only rounding.
    let wide = Double::from_bits(u128::from(x.to_bits()));
    let half: Half = wide.convert_r(Round::NearestTiesToEven, &mut false).value;
    half.to_bits() as u64
}

fn f32_of(bits: u64) -> f32 {
    f32::from_bits(bits as u32)
}

fn f64_of(bits: u64) -> f64 {
    f64::from_bits(bits)
}

/// Value of a float lane; `f32` to `f64` is exact.
pub(super) fn to_f64(lane: Lane, bits: u64) -> f64 {
    match lane {
        Lane::F32 => f64::from(f32_of(bits)),
        _ => f64_of(bits),
    }
}

fn of_f32(x: f32) -> u64 {
    let x = if x.is_nan() {
        f32::from_bits(0x7fc0_0000)
    } else {
        x
    };
    u64::from(x.to_bits())
}

fn of_f64(x: f64) -> u64 {
    let x = if x.is_nan() {
        f64::from_bits(0x7ff8 << 48)
    } else {
        x
    };
    x.to_bits()
}

fn float1(lane: Lane, a: u64, single: fn(f32) -> f32, double: fn(f64) -> f64) -> u64 {
    match lane {
        Lane::F32 => of_f32(single(f32_of(a))),
        _ => of_f64(double(f64_of(a))),
    }
}

fn float2(
    lane: Lane,
    a: u64,
    b: u64,
    single: fn(f32, f32) -> f32,
    double: fn(f64, f64) -> f64,
) -> u64 {
    match lane {
        Lane::F32 => of_f32(single(f32_of(a), f32_of(b))),
        _ => of_f64(double(f64_of(a), f64_of(b))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const I32: Lane = Lane::I32;

    #[test]
    fn division_edges() {
        let min = 0x8000_0000;
        assert_eq!(binary(BinOp::SDiv, I32, 5, 0), 0x7fff_ffff);
        assert_eq!(binary(BinOp::SDiv, I32, min, 0), min);
        assert_eq!(binary(BinOp::SDiv, I32, min, 0xffff_ffff), min);
        assert_eq!(binary(BinOp::SRem, I32, min, 0xffff_ffff), 0);
        assert_eq!(binary(BinOp::SRem, I32, 0xffff_fff9, 4), 0xffff_fffd);
        assert_eq!(binary(BinOp::UDiv, I32, 5, 0), 0xffff_ffff);
        assert_eq!(binary(BinOp::URem, I32, 5, 0), 5);
        let min = 1 << 63;
        assert_eq!(binary(BinOp::SDiv, Lane::I64, min, u64::MAX), min);
        assert_eq!(binary(BinOp::SRem, Lane::I64, min, u64::MAX), 0);
        assert_eq!(binary(BinOp::SDiv, Lane::I8, 0x80, 0xff), 0x80);
    }

    #[test]
    fn shifts_take_the_count_modulo_the_width() {
        assert_eq!(binary(BinOp::Shl, I32, 1, 33), 2);
        assert_eq!(binary(BinOp::AShr, Lane::I8, 0x80, 9), 0xc0);
        assert_eq!(binary(BinOp::Rotr, Lane::I16, 1, 1), 0x8000);
        assert_eq!(binary(BinOp::Rotl, Lane::I64, 1 << 63, 1), 1);
        assert_eq!(binary(BinOp::Rotl, Lane::I8, 0x81, 8), 0x81);
    }

    #[test]
    fn high_products() {
        let all = u64::MAX;
        assert_eq!(binary(BinOp::MulHiU, Lane::I64, all, all), all - 1);
        assert_eq!(binary(BinOp::MulHiS, Lane::I64, all, all), 0);
        assert_eq!(binary(BinOp::MulHiS, Lane::I8, 0x80, 0x7f), 0xc0);
    }

    #[test]
    fn bit_counts() {
        assert_eq!(unary(UnOp::Clz, Lane::I8, 0), 8);
        assert_eq!(unary(UnOp::Clz, Lane::I16, 1), 15);
        assert_eq!(unary(UnOp::Ctz, Lane::I8, 0), 8);
        assert_eq!(unary(UnOp::BitRev, Lane::I8, 1), 0x80);
        assert_eq!(unary(UnOp::Not, Lane::I1, 1), 0);
    }

    #[test]
    fn float_to_integer_saturates() {
        let to = |x: f32, to, conv| convert(conv, Lane::F32, to, u64::from(x.to_bits()));
        assert_eq!(to(-1.5, I32, Conv::FToSI), 0xffff_ffff);
        assert_eq!(to(3e9, I32, Conv::FToSI), 0x7fff_ffff);
        assert_eq!(to(-300.0, Lane::I8, Conv::FToSI), 0x80);
        assert_eq!(to(-1.0, I32, Conv::FToUI), 0);
        assert_eq!(to(1e30, Lane::I64, Conv::FToUI), u64::MAX);
        assert_eq!(to(1e30, Lane::I64, Conv::FToSI), u64::MAX >> 1);
        assert_eq!(to(f32::NAN, I32, Conv::FToSI), 0);
        assert_eq!(to(256.0, Lane::I8, Conv::FToUI), 255);
    }

    #[test]
    fn halves() {
        let from_f64 = |x: f64| convert(Conv::FToF16, Lane::F64, Lane::I16, x.to_bits());
        assert_eq!(from_f64(1.0), 0x3c00);
        assert_eq!(from_f64(65520.0), 0x7c00);
        assert_eq!(from_f64(65519.999), 0x7bff);
        // Just above a tie: rounding to f32 first would land on the tie and then round down.
        assert_eq!(from_f64(1.0 + 2f64.powi(-11) + 2f64.powi(-40)), 0x3c01);
        assert_eq!(from_f64(2f64.powi(-24)), 1);
        assert_eq!(from_f64(2f64.powi(-25)), 0);
        for bits in 0..=0xffff_u64 {
            let wide = convert(Conv::F16ToF, Lane::I16, Lane::F32, bits);
            let back = convert(Conv::FToF16, Lane::F32, Lane::I16, wide);
            let nan = bits & 0x7fff > 0x7c00;
            assert_eq!(back, if nan { 0x7e00 } else { bits });
        }
    }

    #[test]
    fn booleans_extend() {
        assert_eq!(convert(Conv::SExt, Lane::I1, Lane::I16, 1), 0xffff);
        assert_eq!(convert(Conv::ZExt, Lane::I1, Lane::I16, 1), 1);
        assert_eq!(convert(Conv::Trunc, Lane::I32, Lane::I1, 2), 0);
    }
}
