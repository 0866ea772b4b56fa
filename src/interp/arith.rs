//! Arithmetic: each channel's result from its sources (VISA.md 2.4, 2.5).
//!
//! Integers are computed exactly and then cut to the destination, or clamped with `.sat`. Floats are computed in the
//! type of the sources (binary32 for a mixture of narrow ones, binary64 with any `df`), rounded once to that type,
//! and converted to the destination.

use super::error::Halt;
use super::float::{Env, FloatOp, Format, canonical};
use super::machine::Operand;
use super::math;
use super::number::{Number, mask, wrap};
use crate::isa::{Opcode, Type};

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
}

impl Channel<'_> {
    /// The result.
    pub fn result(&self) -> Result<Number, Halt> {
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
            (O::Mul, [x, y]) => product(*x, *y),
            (O::Add3, [x, y, z]) => x.wrapping_add(*y).wrapping_add(*z),
            // The product is cut to the destination before the sum (VISA.md 2.5).
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

    /// High half of the product of 32-bit numbers; a modifier's result is cut to the source's type first, as there is
    /// no 33rd bit to multiply.
    fn mulh(&self, x: i128, y: i128) -> i128 {
        let [a, b] = self.s else { return 0 };
        wrap(a.ty, x).wrapping_mul(wrap(b.ty, y)).wrapping_shr(32)
    }

    fn signs(&self) -> [bool; 2] {
        match self.s {
            [_, x, y] => [x.ty.is_signed(), y.ty.is_signed()],
            _ => [false; 2],
        }
    }

    /// Truncating quotient, remainder with the sign of the dividend. VISA.md 2.5 leaves open what a division by zero
    /// gives. Here: the quotient is the greatest number (the least for a negative dividend), the remainder
    /// the dividend. The greatest is that of the width in which division is done: 32 bits, or 64 where a source
    /// has 64 or only that holds sources of 32 bits and different signs.
    fn divide(&self, x: i128, y: i128) -> i128 {
        let widest = self.s.iter().map(|o| o.ty.bytes()).max().unwrap_or(4);
        let mixed =
            self.s.iter().any(|o| o.ty.is_signed()) && !self.s.iter().all(|o| o.ty.is_signed());
        let signed = self.s.iter().any(|o| o.ty.is_signed());
        let wide = widest == 8 || (widest == 4 && mixed);
        let ty = match (wide, signed) {
            (false, true) => Type::D,
            (false, false) => Type::Ud,
            (true, true) => Type::Q,
            (true, false) => Type::Uq,
        };
        let (x, y) = (wrap(ty, x), wrap(ty, y));
        let all = i128::from(mask(ty.bytes()));
        match (self.op, y) {
            (Opcode::Mod, 0) => x,
            (Opcode::Mod, _) => x.wrapping_rem(y),
            (_, 0) if !signed => all,
            (_, 0) if x < 0 => wrap(ty, all.wrapping_shr(1).wrapping_add(1)),
            (_, 0) => all.wrapping_shr(1),
            _ => wrap(ty, x.wrapping_div(y)),
        }
    }

    /// Format in which float sources are computed.
    fn format(&self) -> Result<Format, Halt> {
        let mut format = None;
        for o in self.s {
            let Some(own) = Format::of(o.ty) else {
                return Halt::unsupported("integer and float sources in one instruction");
            };
            format = Some(match format {
                None => own,
                Some(old) if old == own => own,
                Some(old) if old == Format::Df || own == Format::Df => Format::Df,
                Some(_) => Format::F,
            });
        }
        format.map_or_else(|| Halt::malformed("no float source"), Ok)
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
            _ => return self.function(format, v).map(|r| Number::Float(format, r)),
        };
        Ok(Number::Float(format, self.env.compute(op, format, v)))
    }

    /// Functions that do not depend on the rounding mode: denormals are flushed around them; `hf` and `bf` are computed
    /// in binary32 and rounded to nearest.
    fn function(&self, format: Format, v: [u64; 3]) -> Result<u64, Halt> {
        let v = v.map(|x| self.env.flush(format, x));
        let result = match format {
            Format::Df => {
                let [x, y, z] = v.map(f64::from_bits);
                self.double(x, y, z)?.to_bits()
            }
            _ => {
                let single = v.map(|x| format.value(x) as f32);
                let [x, y, z] = single;
                let r = self.single(x, y, z)?;
                Env::PLAIN.convert(Format::F, format, u64::from(r.to_bits()))
            }
        };
        Ok(self.env.flush(format, canonical(format, result)))
    }

    fn single(&self, x: f32, y: f32, z: f32) -> Result<f32, Halt> {
        use Opcode as O;
        Ok(match (self.op, self.s.len()) {
            (O::Rndd, 1) => x.floor(),
            (O::Rndu, 1) => x.ceil(),
            (O::Rnde, 1) => x.round_ties_even(),
            (O::Rndz, 1) => x.trunc(),
            (O::Frc, 1) => x - x.floor(),
            (O::Lrp, 3) => x.mul_add(y, (1.0 - x) * z),
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

    fn double(&self, x: f64, y: f64, z: f64) -> Result<f64, Halt> {
        use Opcode as O;
        Ok(match (self.op, self.s.len()) {
            (O::Rndd, 1) => x.floor(),
            (O::Rndu, 1) => x.ceil(),
            (O::Rnde, 1) => x.round_ties_even(),
            (O::Rndz, 1) => x.trunc(),
            (O::Frc, 1) => x - x.floor(),
            (O::Lrp, 3) => x.mul_add(y, (1.0 - x) * z),
            (O::Inv, 1) => 1.0 / x,
            (O::Rsqrt, 1) => math::rsqrt_double(x),
            _ => return self.unsupported("double-precision operands"),
        })
    }
}

/// Exact where it fits 127 bits, which every product but those of two huge unsigned quadwords does; of these the low
/// bits are right, and nothing else is visible, as integer products do not saturate.
fn product(x: i128, y: i128) -> i128 {
    x.wrapping_mul(y)
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
