//! Arithmetic: each channel's result from its sources (docs/visa.md, "Types and conversions" and "Arithmetic").
//!
//! Integers are computed exactly and then cut to the destination, or clamped with `.sat`. Floats are computed in the
//! type of the sources, or a wider one (`Channel::format`), rounded once to that type,
//! and converted to the destination.

use super::error::Halt;
use super::float::{Env, FloatOp, Format, canonical};
use super::machine::Operand;
use super::math;
use super::number::{Number, range, wrap};
use crate::isa::{Opcode, SrcModifier, Type};

/// A channel of an arithmetic instruction.
pub(super) struct Channel<'a> {
    /// Operation.
    pub op: Opcode,
    /// Sources.
    pub s: &'a [Operand],
    /// Type of the destination.
    pub dst: Type,
    /// Channel.
    pub i: usize,
    /// Rounding and denormals.
    pub env: Env,
    /// The result is clamped.
    pub sat: bool,
}

impl Channel<'_> {
    /// The result.
    pub(super) fn result(&self) -> Result<Number, Halt> {
        if self.s.iter().any(|o| o.ty.is_float()) {
            self.float()
        } else {
            self.integer().map(Number::Int)
        }
    }

    fn integer(&self) -> Result<i128, Halt> {
        use Opcode as O;
        let ints: Vec<i128> = self
            .s
            .iter()
            .map(|o| o.int(self.i))
            .collect::<Result<_, _>>()?;
        Ok(match (self.op, ints.as_slice()) {
            (O::Add, [x, y]) => x.wrapping_add(*y),
            (O::Mul, [x, y]) => self.product(*x, *y),
            (O::Add3, [x, y, z]) => x.wrapping_add(*y).wrapping_add(*z),
            // The product is cut to the destination before the sum (docs/visa.md, "Arithmetic").
            (O::Mad, [x, y, z]) => self.cut(x.wrapping_mul(*y)).wrapping_add(*z),
            (O::Mulh, [x, y]) => self.mulh(*x, *y),
            (O::Avg, [x, y]) => x.wrapping_add(*y).wrapping_add(1).wrapping_shr(1),
            (O::Div | O::Mod, [x, y]) => self.divide(*x, *y),
            (O::Dp4a, [x, y, z]) => dp4a(*x, *y, *z, self.signs()),
            (O::Lzd, [x]) => i128::from((*x as u32).leading_zeros()),
            _ => return self.unsupported("integer operands"),
        })
    }

    fn unsupported<T>(&self, what: &str) -> Result<T, Halt> {
        Halt::unsupported(format!("{what} (destination `{}`)", self.dst))
    }

    fn cut(&self, value: i128) -> i128 {
        if self.dst.is_int() {
            wrap(self.dst, value)
        } else {
            value
        }
    }

    /// High half of the exact product: of 64 bits, or of 128 with a quadword among the sources.
    fn mulh(&self, x: i128, y: i128) -> i128 {
        if self.widest() < 8 {
            return x.wrapping_mul(y).wrapping_shr(32);
        }
        // By halves, as the exact product may need more than 128 bits.
        let low = |v: i128| v & i128::from(u32::MAX);
        let high = |v: i128| v.wrapping_shr(32);
        let middle = high(low(x).wrapping_mul(low(y))).wrapping_add(high(x).wrapping_mul(low(y)));
        let other = low(middle).wrapping_add(low(x).wrapping_mul(high(y)));
        high(x)
            .wrapping_mul(high(y))
            .wrapping_add(high(middle))
            .wrapping_add(high(other))
    }

    /// The product. Only that of two huge unsigned quadwords needs more bits; its low ones are right, and with `.sat`
    /// it lies beyond any number on its side.
    fn product(&self, x: i128, y: i128) -> i128 {
        match x.checked_mul(y) {
            None if self.sat && (x < 0) != (y < 0) => i128::MIN,
            None if self.sat => i128::MAX,
            _ => x.wrapping_mul(y),
        }
    }

    /// Bytes of the widest source.
    fn widest(&self) -> u32 {
        self.s.iter().map(|o| o.ty.bytes()).max().unwrap_or(4)
    }

    /// True when a source may be below zero, by its type or by its modifier.
    fn may_be_negative(&self) -> bool {
        let negates = |m| matches!(m, SrcModifier::Neg | SrcModifier::NegAbs);
        self.s
            .iter()
            .any(|o| o.ty.is_signed() || negates(o.modifier))
    }

    fn signs(&self) -> [bool; 2] {
        match self.s {
            [_, x, y] => [x.ty.is_signed(), y.ty.is_signed()],
            _ => [false; 2],
        }
    }

    /// Quotient toward zero and remainder with the sign of the dividend, of exact values.
    ///
    /// The specification leaves division by zero open. Here the remainder is the dividend, and the quotient the number
    /// furthest from zero on the dividend's side in the execution type: a dword, or a quadword if a source is one;
    /// signed if a source may be negative.
    fn divide(&self, x: i128, y: i128) -> i128 {
        let ty = match (self.widest() == 8, self.may_be_negative()) {
            (false, true) => Type::D,
            (false, false) => Type::Ud,
            (true, true) => Type::Q,
            (true, false) => Type::Uq,
        };
        let (least, most) = range(ty);
        match (self.op, y) {
            (Opcode::Mod, 0) => x,
            (Opcode::Mod, _) => x.checked_rem(y).unwrap_or(0),
            (_, 0) if x < 0 => least,
            (_, 0) => most,
            _ => x.checked_div(y).unwrap_or(0),
        }
    }

    /// Format in which float sources are computed: `df` if there is one, `hf` if all sources are and the destination is
    /// no `f`, else `f`. There is no arithmetic on `bf` by itself: it is a narrow form of `f`.
    fn format(&self) -> Result<Format, Halt> {
        if self.s.iter().any(|o| o.ty.is_int()) {
            return Halt::malformed("integer and float sources in one instruction");
        }
        let half = self.s.iter().all(|o| o.ty == Type::Hf);
        Ok(if self.s.iter().any(|o| o.ty == Type::Df) {
            Format::Df
        } else if half && self.dst != Type::F {
            Format::Hf
        } else {
            Format::F
        })
    }

    fn float(&self) -> Result<Number, Halt> {
        use Opcode as O;
        let format = self.format()?;
        let mut v = [0; 3];
        for (to, o) in v.iter_mut().zip(self.s) {
            *to = o.float(self.i, self.env, format)?;
        }
        let op = match (self.op, self.s.len()) {
            (O::Add, 2) => FloatOp::Add,
            (O::Mul, 2) => FloatOp::Mul,
            (O::Mad, 3) => FloatOp::Fma,
            // The hardware's quotient and root are approximate; these are correctly rounded.
            (O::Div | O::Divm, 2) => FloatOp::Div,
            (O::Sqrt | O::Sqrtm, 1) => FloatOp::Sqrt,
            (O::Frc, 1) => return self.fraction(format, v).map(|r| Number::Float(format, r)),
            _ => return self.function(format, v).map(|r| Number::Float(format, r)),
        };
        Ok(Number::Float(format, self.env.compute(op, format, v)))
    }

    /// `x - floor(x)`; the difference rounds for numbers just below zero.
    fn fraction(&self, format: Format, [x, ..]: [u64; 3]) -> Result<u64, Halt> {
        let x = self.env.flush(format, x);
        let floor = format.value(x).floor().to_bits();
        let floor = Env::PLAIN.convert(Format::Df, format, floor);
        Ok(self.env.compute(FloatOp::Sub, format, [x, floor, 0]))
    }

    /// Functions that do not depend on the rounding mode: denormals are flushed around them; `hf` and `bf` are computed
    /// in binary32 and rounded to nearest.
    fn function(&self, format: Format, v: [u64; 3]) -> Result<u64, Halt> {
        let v = v.map(|x| self.env.flush(format, x));
        let result = match format {
            Format::Df => {
                let [x, ..] = v.map(f64::from_bits);
                self.double(x)?.to_bits()
            }
            _ => {
                let single = v.map(|x| format.value(x) as f32);
                let [x, y, _] = single;
                let r = self.single(x, y)?;
                Env::PLAIN.convert(Format::F, format, u64::from(r.to_bits()))
            }
        };
        Ok(self.env.flush(format, canonical(format, result)))
    }

    fn single(&self, x: f32, y: f32) -> Result<f32, Halt> {
        use Opcode as O;
        Ok(match (self.op, self.s.len()) {
            (O::Rndd, 1) => x.floor(),
            (O::Rndu, 1) => x.ceil(),
            (O::Rnde, 1) => x.round_ties_even(),
            (O::Rndz, 1) => x.trunc(),
            (O::Exp, 1) => math::exp2(x),
            (O::Log, 1) => math::log2(x),
            (O::Sin, 1) => math::sin(x),
            (O::Cos, 1) => math::cos(x),
            (O::Pow, 2) => math::pow(x, y),
            (O::Inv, 1) => 1.0 / x,
            (O::Rsqrt, 1) => math::rsqrt(x),
            _ => return self.unsupported("float operands"),
        })
    }

    fn double(&self, x: f64) -> Result<f64, Halt> {
        use Opcode as O;
        Ok(match (self.op, self.s.len()) {
            (O::Rndd, 1) => x.floor(),
            (O::Rndu, 1) => x.ceil(),
            (O::Rnde, 1) => x.round_ties_even(),
            (O::Rndz, 1) => x.trunc(),
            (O::Inv, 1) => 1.0 / x,
            (O::Rsqrt, 1) => math::rsqrt_double(x),
            _ => return self.unsupported("double-precision operands"),
        })
    }
}

/// `acc` plus the products of four pairs of bytes.
fn dp4a(acc: i128, x: i128, y: i128, signed: [bool; 2]) -> i128 {
    let byte = |v: i128, k: u32, signed: bool| {
        let ty = if signed { Type::B } else { Type::Ub };
        wrap(ty, v.wrapping_shr(k.wrapping_mul(8)))
    };
    let [sx, sy] = signed;
    (0..4).fold(acc, |sum, k| {
        sum.wrapping_add(byte(x, k, sx).wrapping_mul(byte(y, k, sy)))
    })
}
