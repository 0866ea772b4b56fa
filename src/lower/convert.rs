//! Values between element types: modifiers, widening for computing, narrowing and saturation of results.

use super::Lowerer;
use super::error::Fail;
use super::fpmode::Cr0;
use super::operand::{Operand, lane_of};
use crate::isa::{SrcModifier, Type};
use crate::ssa::*;

/// What float operations are computed in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FloatKind {
    /// binary16, carried as bits.
    Hf,
    /// bfloat16, carried as bits.
    Bf,
    /// binary32.
    F,
    /// binary64.
    Df,
}

impl FloatKind {
    /// Kind of a float type.
    pub(crate) fn of(ty: Type) -> Option<FloatKind> {
        match ty {
            Type::Hf => Some(FloatKind::Hf),
            Type::Bf => Some(FloatKind::Bf),
            Type::F | Type::Vf => Some(FloatKind::F),
            Type::Df => Some(FloatKind::Df),
            _ => None,
        }
    }

    /// The type.
    pub(crate) fn ty(self) -> Type {
        match self {
            FloatKind::Hf => Type::Hf,
            FloatKind::Bf => Type::Bf,
            FloatKind::F => Type::F,
            FloatKind::Df => Type::Df,
        }
    }
}

fn int_range(ty: Type) -> (i128, i128) {
    let bits = ty.bytes() * 8;
    if ty.is_signed() {
        (-(1 << (bits - 1)), (1 << (bits - 1)) - 1)
    } else {
        (0, (1 << bits) - 1)
    }
}

impl Lowerer<'_> {
    /// An integer operand in `lane`, extended by its own signedness, modifier applied.
    ///
    /// The modifier acts on the exact value; where `lane` is narrower the result is truncated (docs/visa.md, "Types and conversions").
    pub(crate) fn int(&mut self, o: Operand, lane: Lane) -> Result<Value, Fail> {
        if !o.ty.is_int() {
            return Fail::unsupported(format!("integer use of a `{}` operand", o.ty));
        }
        let own = lane_of(o.ty);
        let wide = if own.bits() > lane.bits() { own } else { lane };
        let v = self.b.resize(o.value, wide, o.ty.is_signed());
        let v = match o.modifier {
            SrcModifier::None => v,
            SrcModifier::Not => self.b.un(UnOp::Not, v),
            SrcModifier::Neg => self.b.un(UnOp::Neg, v),
            SrcModifier::Abs | SrcModifier::NegAbs => {
                let neg = self.b.un(UnOp::Neg, v);
                let abs = if o.ty.is_signed() {
                    self.b.bin(BinOp::SMax, v, neg)
                } else {
                    v
                };
                if o.modifier == SrcModifier::Abs {
                    abs
                } else {
                    self.b.un(UnOp::Neg, abs)
                }
            }
        };
        Ok(self.b.resize(v, lane, o.ty.is_signed()))
    }

    /// Applies a modifier to a float operand in its own type.
    pub(crate) fn modified_float(&mut self, o: Operand) -> Result<Value, Fail> {
        let half = matches!(o.ty, Type::Hf | Type::Bf);
        let v = o.value;
        Ok(match (o.modifier, half) {
            (SrcModifier::None, _) => v,
            (SrcModifier::Not, _) => return Fail::malformed("`(~)` on a float operand"),
            (SrcModifier::Neg, true) => self.b.bin_imm(BinOp::Xor, v, 0x8000),
            (SrcModifier::Abs, true) => self.b.bin_imm(BinOp::And, v, 0x7fff),
            (SrcModifier::NegAbs, true) => self.b.bin_imm(BinOp::Or, v, 0x8000),
            (SrcModifier::Neg, false) => self.b.un(UnOp::FNeg, v),
            (SrcModifier::Abs, false) => self.b.un(UnOp::FAbs, v),
            (SrcModifier::NegAbs, false) => {
                let a = self.b.un(UnOp::FAbs, v);
                self.b.un(UnOp::FNeg, a)
            }
        })
    }

    /// A float operand widened (exactly) to `kind`, modifier applied.
    pub(crate) fn float(&mut self, o: Operand, kind: FloatKind) -> Result<Value, Fail> {
        if !o.ty.is_float() {
            return Fail::unsupported(format!("float use of a `{}` operand", o.ty));
        }
        let v = self.modified_float(o)?;
        self.float_to_float(v, o.ty, kind.ty())
    }

    /// Lowers something under another mode than the program's, which comes back after it.
    pub(crate) fn under<T>(&mut self, mode: Cr0, lower: impl FnOnce(&mut Self) -> T) -> T {
        let around = std::mem::replace(&mut self.cr0, mode);
        let made = lower(self);
        self.cr0 = around;
        made
    }

    /// The control register as an operand for operations under a run-time mode.
    pub(crate) fn cr0_value(&mut self) -> Result<Value, Fail> {
        match self.cr0 {
            Cr0::Known(v) => Ok(self.b.i32(v)),
            Cr0::Unknown | Cr0::Mirrored => {
                let root = self.kernel.root_offset(crate::module::VarId::CR0).root;
                let p = super::regs::Pattern::packed(root, 0, 1, Lane::I32);
                let live = self.regs.read(&mut self.b, &p)?;
                if self.cr0 == Cr0::Unknown {
                    return Ok(live);
                }
                // Bits 5 and 4 differ in the two directed modes.
                let other = self.b.bin_imm(BinOp::LShr, live, 1);
                let differ = self.b.bin(BinOp::Xor, live, other);
                let differ = self.b.bin_imm(BinOp::And, differ, 0x10);
                let both = self.b.bin_imm(BinOp::Mul, differ, 3);
                Ok(self.b.bin(BinOp::Xor, live, both))
            }
        }
    }

    /// An operation on floats (or from integers) under the control register.
    pub(crate) fn fp_env(
        &mut self,
        op: FpEnvOp,
        args: &[Value],
        result: Lane,
    ) -> Result<Value, Fail> {
        let cr0 = self.cr0_value()?;
        let lanes = args.iter().map(|&a| self.b.ty(a).lanes).max().unwrap_or(1);
        let mut all = vec![cr0];
        for &a in args {
            all.push(self.b.splat(a, lanes));
        }
        Ok(self.b.op(Op::FpEnv(op), all, Ty::vector(result, lanes)))
    }

    fn float_to_float(&mut self, v: Value, from: Type, to: Type) -> Result<Value, Fail> {
        if from == to || (from == Type::Vf && to == Type::F) {
            return Ok(v);
        }
        let plain = self.cr0.plain(&[from, to]);
        match (from, to) {
            (Type::Bf, _) => {
                let wide = self.b.conv(Conv::ZExt, v, Lane::I32);
                let wide = self.b.bin_imm(BinOp::Shl, wide, 16);
                let f = self.b.recast(wide, Lane::F32);
                self.float_to_float(f, Type::F, to)
            }
            (_, Type::Bf) => self.float_to_bf(v, from),
            (Type::Hf, Type::F | Type::Df) if plain => {
                Ok(self.b.conv(Conv::F16ToF, v, lane_of(to)))
            }
            (Type::F | Type::Df, Type::Hf) if plain => Ok(self.b.conv(Conv::FToF16, v, Lane::I16)),
            (Type::F, Type::Df) if plain => Ok(self.b.conv(Conv::FPromote, v, Lane::F64)),
            (Type::Df, Type::F) if plain => Ok(self.b.conv(Conv::FDemote, v, Lane::F32)),
            _ => self.fp_env(FpEnvOp::FToF, &[v], lane_of(to)),
        }
    }

    /// Conversion to bf rounds to nearest even whatever `%cr0` says: that is the only rounding the hardware's
    /// conversion has (docs/visa.md, "Types and conversions").
    fn float_to_bf(&mut self, v: Value, from: Type) -> Result<Value, Fail> {
        let plain = self.cr0.plain(&[from]);
        let v = if plain {
            v
        } else {
            self.fp_env(FpEnvOp::Flush, &[v], lane_of(from))?
        };
        let f = match from {
            Type::Df => self.df_to_odd_f(v),
            Type::Hf => self.b.conv(Conv::F16ToF, v, Lane::F32),
            _ => v,
        };
        let bf = self.f_to_bf(f);
        // Of these only a df can be smaller than the normal numbers of bf without being a denormal itself.
        if from != Type::Df || self.cr0.plain(&[Type::Bf]) {
            return Ok(bf);
        }
        let wide = self.b.conv(Conv::ZExt, bf, Lane::I32);
        let wide = self.b.bin_imm(BinOp::Shl, wide, 16);
        let f = self.b.recast(wide, Lane::F32);
        let f = self.fp_env(FpEnvOp::Flush, &[f], Lane::F32)?;
        let bits = self.b.recast(f, Lane::I32);
        let bits = self.b.bin_imm(BinOp::LShr, bits, 16);
        Ok(self.b.conv(Conv::Trunc, bits, Lane::I16))
    }

    /// binary64 to binary32, rounded to odd: a second rounding then gives what one rounding would.
    fn df_to_odd_f(&mut self, d: Value) -> Value {
        let near = self.b.conv(Conv::FDemote, d, Lane::F32);
        let back = self.b.conv(Conv::FPromote, near, Lane::F64);
        let inexact = self.b.fcmp(FCond::Ne, back, d);
        let (far, own) = (self.b.un(UnOp::FAbs, back), self.b.un(UnOp::FAbs, d));
        let above = self.b.fcmp(FCond::Gt, far, own);
        let step = self.b.conv(Conv::SExt, above, Lane::I32);
        let bits = self.b.recast(near, Lane::I32);
        let below = self.b.bin(BinOp::Add, bits, step);
        let odd = self.b.bin_imm(BinOp::Or, below, 1);
        let bits = self.b.select(inexact, odd, bits);
        self.b.recast(bits, Lane::F32)
    }

    /// Nearest-even with quiet NaNs.
    pub(super) fn f_to_bf(&mut self, f: Value) -> Value {
        let bits = self.b.recast(f, Lane::I32);
        let lsb = self.b.bin_imm(BinOp::LShr, bits, 16);
        let lsb = self.b.bin_imm(BinOp::And, lsb, 1);
        let bias = self.b.bin_imm(BinOp::Add, lsb, 0x7fff);
        let rounded = self.b.bin(BinOp::Add, bits, bias);
        let nan = self.b.fcmp(FCond::Ne, f, f);
        let quiet = self.b.bin_imm(BinOp::Or, bits, 0x0040_0000);
        let v = self.b.select(nan, quiet, rounded);
        let v = self.b.bin_imm(BinOp::LShr, v, 16);
        self.b.conv(Conv::Trunc, v, Lane::I16)
    }

    fn int_to_float(&mut self, v: Value, from: Type, to: Type) -> Result<Value, Fail> {
        let signed = from.is_signed();
        if to == Type::Bf {
            let v = if from.bytes() == 8 {
                self.sticky_quadword(v)
            } else {
                v
            };
            let conv = if signed { Conv::SIToF } else { Conv::UIToF };
            let d = self.b.conv(conv, v, Lane::F64);
            let f = self.df_to_odd_f(d);
            return Ok(self.f_to_bf(f));
        }
        if !self.cr0.plain(&[to]) {
            let op = if signed {
                FpEnvOp::SIToF
            } else {
                FpEnvOp::UIToF
            };
            return self.fp_env(op, &[v], lane_of(to));
        }
        let conv = if signed { Conv::SIToF } else { Conv::UIToF };
        if to == Type::Hf {
            // Every integer below the overflow threshold of binary16 is exact in binary64: one rounding.
            let d = self.b.conv(conv, v, Lane::F64);
            return Ok(self.b.conv(Conv::FToF16, d, Lane::I16));
        }
        Ok(self.b.conv(conv, v, lane_of(to)))
    }

    /// A quadword that binary64 holds exactly and that rounds to few bits as `v` does: beyond 2^53 the low
    /// bits are gathered into one.
    fn sticky_quadword(&mut self, v: Value) -> Value {
        let low = self.b.bin_imm(BinOp::And, v, 0x7ff);
        let zero = self.b.int_like(v, 0);
        let some = self.b.icmp(ICond::Ne, low, zero);
        let some = self.b.conv(Conv::ZExt, some, Lane::I64);
        let some = self.b.bin_imm(BinOp::Shl, some, 11);
        let high = self.b.bin(BinOp::Sub, v, low);
        let gathered = self.b.bin(BinOp::Or, high, some);
        let top = self.b.bin_imm(BinOp::AShr, v, 52);
        let top = self.b.bin_imm(BinOp::Add, top, 1);
        let two = self.b.int_like(v, 2);
        let large = self.b.icmp(ICond::Uge, top, two);
        self.b.select(large, gathered, v)
    }

    fn float_to_int(&mut self, v: Value, from: Type, to: Type) -> Result<Value, Fail> {
        let (v, _) = match from {
            Type::Hf => (self.b.conv(Conv::F16ToF, v, Lane::F32), Type::F),
            Type::Bf => (self.float_to_float(v, Type::Bf, Type::F)?, Type::F),
            _ => (v, from),
        };
        let conv = if to.is_signed() {
            Conv::FToSI
        } else {
            Conv::FToUI
        };
        Ok(self.b.conv(conv, v, lane_of(to)))
    }

    /// Clamps an integer to the range of `to`; the result has `to`'s lane.
    fn saturate_int(&mut self, v: Value, from: Type, to: Type) -> Value {
        let signed = from.is_signed();
        let (own, target) = (lane_of(from), lane_of(to));
        let lane = if own.bits() > target.bits() {
            own
        } else {
            target
        };
        let mut v = self.b.resize(v, lane, signed);
        let (from_lo, from_hi) = int_range(from);
        let (to_lo, to_hi) = int_range(to);
        // A clamp is needed only where the source can be outside; its bound then fits the lane.
        if from_hi > to_hi {
            let op = if signed { BinOp::SMin } else { BinOp::UMin };
            v = self.b.bin_imm(op, v, to_hi as i64);
        }
        if from_lo < to_lo {
            v = self.b.bin_imm(BinOp::SMax, v, to_lo as i64);
        }
        self.b.resize(v, target, signed)
    }

    /// Clamps a float to 0 … 1 with NaN giving 0, in `F32` or `F64` lanes.
    fn saturate_float(&mut self, v: Value) -> Value {
        let lane = self.b.ty(v).lane;
        let (zero, one) = match lane {
            Lane::F64 => (self.b.f64(0.0), self.b.f64(1.0)),
            _ => (self.b.f32(0.0), self.b.f32(1.0)),
        };
        let below = self.b.fcmp(FCond::Lt, v, one);
        let top = self.b.select(below, v, one);
        let positive = self.b.fcmp(FCond::Gt, v, zero);
        self.b.select(positive, top, zero)
    }

    /// Clamps a 16-bit float. On the way through f its bits do not change, so that no mode has a say.
    fn saturate_half(&mut self, v: Value, ty: Type) -> Value {
        if ty == Type::Hf {
            let f = self.b.conv(Conv::F16ToF, v, Lane::F32);
            let f = self.saturate_float(f);
            return self.b.conv(Conv::FToF16, f, Lane::I16);
        }
        let wide = self.b.conv(Conv::ZExt, v, Lane::I32);
        let wide = self.b.bin_imm(BinOp::Shl, wide, 16);
        let f = self.b.recast(wide, Lane::F32);
        let f = self.saturate_float(f);
        let bits = self.b.recast(f, Lane::I32);
        let high = self.b.bin_imm(BinOp::LShr, bits, 16);
        self.b.conv(Conv::Trunc, high, Lane::I16)
    }

    /// Converts a result from `from` to `to`, saturating if asked (docs/visa.md, "Types and conversions").
    pub(crate) fn convert(
        &mut self,
        v: Value,
        from: Type,
        to: Type,
        sat: bool,
    ) -> Result<Value, Fail> {
        match (from.is_float(), to.is_float()) {
            (false, false) if sat => Ok(self.saturate_int(v, from, to)),
            (false, false) => Ok(self.b.resize(v, lane_of(to), from.is_signed())),
            (true, false) => self.float_to_int(v, from, to),
            (true, true) if sat && from == to && matches!(from, Type::Hf | Type::Bf) => {
                Ok(self.saturate_half(v, from))
            }
            (_, true) => {
                let (v, from) = if !sat {
                    (v, from)
                } else if from.is_float() {
                    match from {
                        Type::Hf | Type::Bf => {
                            let f = self.float_to_float(v, from, Type::F)?;
                            (self.saturate_float(f), Type::F)
                        }
                        _ => (self.saturate_float(v), from),
                    }
                } else {
                    let kind = if to == Type::Df { Type::Df } else { Type::F };
                    let f = self.int_to_float(v, from, kind)?;
                    (self.saturate_float(f), kind)
                };
                if from.is_float() {
                    self.float_to_float(v, from, to)
                } else {
                    self.int_to_float(v, from, to)
                }
            }
        }
    }
}
