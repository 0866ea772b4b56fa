//! Float arithmetic on bit patterns under a control register.
//!
//! `%cr0` bits 5:4 give the rounding (0 nearest even, 1 up, 2 down, 3 toward zero); bits 6, 7 and 10 keep the
//! denormals of `df`, of `f` and `bf`, and of `hf`; where they are not kept, denormal operands and results
//! become zeros of their sign (docs/visa.md, "Types and conversions"). That bit 7 also governs `bf` is decided here, as `bf` has the
//! exponents of `f`. Each operation rounds once. A computed NaN is the quiet one without payload.

use std::cell::Cell;

use rustc_apfloat::ieee::{BFloat, Double, Half, Quad, Single};
use rustc_apfloat::{Float, FloatConvert, Round};

use crate::isa::Type;

/// Float formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Format {
    /// binary16.
    Hf,
    /// bfloat16.
    Bf,
    /// binary32.
    F,
    /// binary64.
    Df,
}

impl Format {
    /// Format of a float type.
    pub(super) fn of(ty: Type) -> Option<Format> {
        match ty {
            Type::Hf => Some(Format::Hf),
            Type::Bf => Some(Format::Bf),
            Type::F | Type::Vf => Some(Format::F),
            Type::Df => Some(Format::Df),
            _ => None,
        }
    }

    /// Mask of the sign bit.
    pub(super) const fn sign(self) -> u64 {
        match self {
            Format::Hf | Format::Bf => 1 << 15,
            Format::F => 1 << 31,
            Format::Df => 1 << 63,
        }
    }

    const fn exponent(self) -> u64 {
        match self {
            Format::Hf => 0x1F << 10,
            Format::Bf => 0xFF << 7,
            Format::F => 0xFF << 23,
            Format::Df => 0x7FF << 52,
        }
    }

    /// The quiet NaN without payload.
    pub(super) const fn nan(self) -> u64 {
        match self {
            Format::Hf => 0x7E00,
            Format::Bf => 0x7FC0,
            Format::F => 0x7FC0_0000,
            Format::Df => 0x7FF8 << 48,
        }
    }

    /// True for NaNs.
    pub(super) const fn is_nan(self, bits: u64) -> bool {
        bits & (self.sign().wrapping_sub(1)) > self.exponent()
    }

    /// The number, exactly.
    pub(super) fn value(self, bits: u64) -> f64 {
        match self {
            Format::F => f64::from(f32::from_bits(bits as u32)),
            Format::Df => f64::from_bits(bits),
            Format::Bf => f64::from(f32::from_bits((bits as u32).wrapping_shl(16))),
            Format::Hf => {
                let wide: Double = Half::from_bits(u128::from(bits)).convert(&mut false).value;
                f64::from_bits(wide.to_bits() as u64)
            }
        }
    }
}

/// An operation that rounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FloatOp {
    /// `a + b`.
    Add,
    /// `a - b`.
    Sub,
    /// `a * b`.
    Mul,
    /// `a / b`.
    Div,
    /// `a * b + c`, rounded once.
    Fma,
    /// Square root.
    Sqrt,
}

/// The part of `%cr0` that matters to floats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Env(pub u32);

impl Env {
    /// To nearest, all denormals kept.
    pub(super) const PLAIN: Env = Env(0x4C0);

    /// Rounding mode.
    pub(super) fn round(self) -> Round {
        match self.0.wrapping_shr(4) & 3 {
            0 => Round::NearestTiesToEven,
            1 => Round::TowardPositive,
            2 => Round::TowardNegative,
            _ => Round::TowardZero,
        }
    }

    fn keeps(self, format: Format) -> bool {
        let bit = match format {
            Format::Df => 0x40,
            Format::F | Format::Bf => 0x80,
            Format::Hf => 0x400,
        };
        self.0 & bit != 0
    }

    /// True when operations in this format round to nearest and keep denormals, as the host does.
    fn is_plain(self, format: Format) -> bool {
        self.keeps(format) && self.0 & 0x30 == 0
    }

    /// A denormal replaced by zero of its sign, unless kept.
    pub(super) fn flush(self, format: Format, bits: u64) -> u64 {
        if bits & format.exponent() == 0 && !self.keeps(format) {
            bits & format.sign()
        } else {
            bits
        }
    }

    /// Carries an operation out; unused operands are ignored.
    pub(super) fn compute(self, op: FloatOp, format: Format, args: [u64; 3]) -> u64 {
        match format {
            Format::F if self.is_plain(format) => {
                let [a, b, c] = args.map(|x| f32::from_bits(x as u32));
                let r = match op {
                    FloatOp::Add => a + b,
                    FloatOp::Sub => a - b,
                    FloatOp::Mul => a * b,
                    FloatOp::Div => a / b,
                    FloatOp::Fma => a.mul_add(b, c),
                    FloatOp::Sqrt => a.sqrt(),
                };
                canonical(format, u64::from(r.to_bits()))
            }
            Format::Df if self.is_plain(format) => {
                let [a, b, c] = args.map(f64::from_bits);
                let r = match op {
                    FloatOp::Add => a + b,
                    FloatOp::Sub => a - b,
                    FloatOp::Mul => a * b,
                    FloatOp::Div => a / b,
                    FloatOp::Fma => a.mul_add(b, c),
                    FloatOp::Sqrt => a.sqrt(),
                };
                canonical(format, r.to_bits())
            }
            Format::F => self.exact::<Single>(op, format, args),
            Format::Df => self.exact::<Double>(op, format, args),
            Format::Hf => self.exact::<Half>(op, format, args),
            Format::Bf => self.exact::<BFloat>(op, format, args),
        }
    }

    fn exact<F: Float + FloatConvert<Quad>>(
        self,
        op: FloatOp,
        format: Format,
        args: [u64; 3],
    ) -> u64
    where
        Quad: FloatConvert<F>,
        Double: FloatConvert<F>,
    {
        let round = self.round();
        let [a, b, c] = args.map(|x| F::from_bits(self.flush(format, x).into()));
        let r = match op {
            FloatOp::Add => a.add_r(b, round).value,
            FloatOp::Sub => a.sub_r(b, round).value,
            FloatOp::Mul => a.mul_r(b, round).value,
            FloatOp::Div => a.div_r(b, round).value,
            FloatOp::Fma => a.mul_add_r(b, c, round).value,
            FloatOp::Sqrt => sqrt(a, round),
        };
        self.flush(format, canonical(format, r.to_bits() as u64))
    }

    /// From one format to another. The same format is a copy. To `bf` it is to nearest, whatever the mode: that is the
    /// only rounding the hardware's conversion has (docs/visa.md, "Types and conversions").
    pub(super) fn convert(self, from: Format, to: Format, bits: u64) -> u64 {
        if from == to {
            return bits;
        }
        // A shift, which the mode has no say in (docs/visa.md, "Types and conversions").
        if (from, to) == (Format::Bf, Format::F) {
            return canonical(to, bits << 16);
        }
        let bits = u128::from(self.flush(from, bits));
        let r = match from {
            Format::Hf => self.narrow(Half::from_bits(bits), to),
            Format::Bf => self.narrow(BFloat::from_bits(bits), to),
            Format::F => self.narrow(Single::from_bits(bits), to),
            Format::Df => self.narrow(Double::from_bits(bits), to),
        };
        self.flush(to, canonical(to, r))
    }

    fn narrow<F>(self, x: F, to: Format) -> u64
    where
        F: FloatConvert<Quad>,
    {
        // Every format fits binary128, so only the second conversion rounds.
        let (round, lossy) = (self.round(), &mut false);
        let wide: Quad = x.convert(lossy).value;
        let bits = match to {
            Format::Hf => FloatConvert::<Half>::convert_r(wide, round, lossy)
                .value
                .to_bits(),
            Format::Bf => FloatConvert::<BFloat>::convert(wide, lossy).value.to_bits(),
            Format::F => FloatConvert::<Single>::convert_r(wide, round, lossy)
                .value
                .to_bits(),
            Format::Df => FloatConvert::<Double>::convert_r(wide, round, lossy)
                .value
                .to_bits(),
        };
        bits as u64
    }

    /// An integer as a float.
    pub(super) fn of_int(self, to: Format, value: i128) -> u64 {
        let round = self.round();
        let bits = match to {
            Format::Hf => Half::from_i128_r(value, round).value.to_bits(),
            Format::Bf => BFloat::from_i128(value).value.to_bits(),
            Format::F => Single::from_i128_r(value, round).value.to_bits(),
            Format::Df => Double::from_i128_r(value, round).value.to_bits(),
        };
        bits as u64
    }
}

thread_local! {
    static OTHER_NANS: Cell<bool> = const { Cell::new(false) };
}

/// Which NaNs this thread computes from now on, see [`super::InterpOptions::other_nans`].
pub(super) fn use_other_nans(other: bool) {
    OTHER_NANS.set(other);
}

/// Any NaN made the quiet one without payload, or one that differs from it in every byte.
pub(super) fn canonical(format: Format, bits: u64) -> u64 {
    match (format.is_nan(bits), OTHER_NANS.get()) {
        (false, _) => bits,
        (true, false) => format.nan(),
        (true, true) => match format {
            Format::Hf => 0xFF45,
            Format::Bf => 0xFFE1,
            Format::F => 0xFFE1_2345,
            Format::Df => 0xFFF9_2345_6789_ABCD,
        },
    }
}

/// Clamps to 0 … 1; NaN gives 0, and so does −0.
pub(super) fn saturate(format: Format, bits: u64) -> u64 {
    let x = format.value(bits);
    if x >= 1.0 {
        Env::PLAIN.of_int(format, 1)
    } else if x > 0.0 {
        bits
    } else {
        0
    }
}

/// The host's root in double precision, rounded to nearest, is off by less than a unit in the last place of the
/// format; its exact square, which fits binary128, says on which side.
fn sqrt<F: Float + FloatConvert<Quad>>(x: F, round: Round) -> F
where
    Quad: FloatConvert<F>,
    Double: FloatConvert<F>,
{
    if x.is_nan() || (x.is_negative() && !x.is_zero()) {
        return F::qnan(None);
    }
    if x.is_zero() || x.is_infinite() {
        return x;
    }
    let lossy = &mut false;
    let wide: Quad = x.convert(lossy).value;
    let double = FloatConvert::<Double>::convert(wide, lossy).value;
    let host = f64::from_bits(double.to_bits() as u64).sqrt();
    // Every format has less than half the digits of binary64, or is binary64: rounding again does no harm.
    let root: F = Double::from_bits(u128::from(host.to_bits()))
        .convert(lossy)
        .value;
    let back: Quad = root.convert(lossy).value;
    let square = back.mul_r(back, Round::NearestTiesToEven).value;
    match round {
        Round::TowardPositive if square < wide => root.next_up().value,
        Round::TowardNegative | Round::TowardZero if square > wide => root.next_down().value,
        _ => root,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn f(x: f32) -> u64 {
        u64::from(x.to_bits())
    }

    #[test]
    fn modes_bracket_the_exact_value() {
        let third = |mode: u32| {
            let env = Env(0x4C0 | mode << 4);
            f32::from_bits(env.compute(FloatOp::Div, Format::F, [f(1.0), f(3.0), 0]) as u32)
        };
        assert_eq!(third(0), 1.0 / 3.0);
        assert_eq!(third(1), third(2).next_up());
        assert_eq!(third(3), third(2));
        let root = |mode: u32| {
            let env = Env(0x4C0 | mode << 4);
            f32::from_bits(env.compute(FloatOp::Sqrt, Format::F, [f(2.0), 0, 0]) as u32)
        };
        assert_eq!(root(1), root(3).next_up());
    }

    #[test]
    fn denormals() {
        let tiny = 1 | 1 << 31;
        assert_eq!(Env(0).flush(Format::F, tiny), 1 << 31);
        assert_eq!(Env(0x80).flush(Format::F, tiny), tiny);
        assert_eq!(Env(0x80).convert(Format::F, Format::Hf, 0x3380_0000), 0);
        assert_eq!(Env::PLAIN.convert(Format::F, Format::Hf, 0x3380_0000), 1);
        assert_eq!(Env(0).convert(Format::F, Format::F, tiny), tiny);
    }

    #[test]
    fn saturation() {
        for (x, want) in [
            (f32::NAN, 0.0),
            (-0.0, 0.0),
            (0.5, 0.5),
            (2.0, 1.0),
            (-3.0, 0.0),
        ] {
            assert_eq!(saturate(Format::F, f(x)), f(want), "{x}");
        }
        assert_eq!(saturate(Format::Hf, 0x7C00), 0x3C00);
        assert_eq!(saturate(Format::Bf, 0x7F80), 0x3F80);
    }
}
