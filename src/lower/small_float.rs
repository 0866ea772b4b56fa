//! `fcvt` and `srnd`: conversions of the float formats that have no type of their own, tf32 (in ud) and bf8
//! (E5M2, in ub); and `invm`, `rsqtm`, `add3.o`, whose second result is a predicate.
//!
//! A NaN result is the quiet one of its format without sign or payload, as everywhere.

use super::Lowerer;
use super::error::Fail;
use super::operand::Operand;
use crate::isa::{Opcode, Type};
use crate::module::{Alu, Dst, Inst};
use crate::ssa::*;

const HF_INFINITY: i64 = 0x7c00;
const HF_NAN: i64 = 0x7e00;
const BF8_NAN: i64 = 0x7e;
const F_INFINITY: i64 = 0x7f80_0000;
const F_NAN: i64 = 0x7fc0_0000;
/// Bits of 2^-14, the smallest normal hf, as f.
const F_HF_NORMAL: i64 = 0x3880_0000;
/// Bits of 2^16, beyond every finite hf, as f.
const F_HF_LIMIT: i64 = 0x4780_0000;

impl Lowerer<'_> {
    /// `fcvt`.
    pub(super) fn lower_fcvt(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let [src] = a.srcs.as_slice() else {
            return Fail::malformed("fcvt takes one source");
        };
        let n = inst.exec.lanes();
        let mask = self.channel_mask(inst)?;
        let o = self.read(src, n)?;
        let dst = self.dst_type(&a.dst)?;
        let v = match (dst, o.ty) {
            (Type::Ud, Type::F) => self.f_to_tf32(o.value),
            // A tf32 is an f.
            (Type::F, Type::Ud) => self.b.recast(o.value, Lane::F32),
            (Type::Ub, Type::Hf) => self.hf_to_bf8(o.value, None),
            (Type::Hf, Type::Ub) => {
                let wide = self.b.conv(Conv::ZExt, o.value, Lane::I16);
                self.b.bin_imm(BinOp::Shl, wide, 8)
            }
            (Type::B, Type::Hf) | (Type::Hf, Type::B) => {
                return Fail::unsupported("the hf8 format, which no platform here has");
            }
            (to, from) => return Fail::malformed(format!("conversion of `{from}` to `{to}`")),
        };
        self.write(&a.dst, n, v, mask)
    }

    /// Ten mantissa bits, nearest-even; denormals become zeros (of the same sign).
    fn f_to_tf32(&mut self, v: Value) -> Value {
        let bits = self.b.recast(v, Lane::I32);
        let sign = self.b.bin_imm(BinOp::And, bits, 1 << 31);
        let size = self.b.bin_imm(BinOp::And, bits, 0x7fff_ffff);
        let odd = self.b.bin_imm(BinOp::LShr, size, 13);
        let odd = self.b.bin_imm(BinOp::And, odd, 1);
        let bias = self.b.bin_imm(BinOp::Add, odd, 0xfff);
        let rounded = self.b.bin(BinOp::Add, size, bias);
        let rounded = self.b.bin_imm(BinOp::And, rounded, !0x1fff);
        let tiny = self.less(0x0080_0000, size);
        let zero = self.b.int_like(size, 0);
        let rounded = self.b.select(tiny, zero, rounded);
        let r = self.b.bin(BinOp::Or, rounded, sign);
        let nan = self.more(F_INFINITY, size);
        let quiet = self.b.int_like(size, F_NAN);
        self.b.select(nan, quiet, r)
    }

    /// `size < bound`, unsigned.
    fn less(&mut self, bound: i64, size: Value) -> Value {
        let bound = self.b.int_like(size, bound);
        self.b.icmp(ICond::Ult, size, bound)
    }

    /// `size > bound`, unsigned.
    fn more(&mut self, bound: i64, size: Value) -> Value {
        let bound = self.b.int_like(size, bound);
        self.b.icmp(ICond::Ugt, size, bound)
    }

    /// The upper byte of an hf, rounded to nearest even, or by eight random bits that are added below it.
    fn hf_to_bf8(&mut self, v: Value, random: Option<Value>) -> Value {
        let sign = self.b.bin_imm(BinOp::And, v, 0x8000);
        let size = self.b.bin_imm(BinOp::And, v, 0x7fff);
        let bias = match random {
            Some(r) => self.b.bin_imm(BinOp::And, r, 0xff),
            None => {
                let odd = self.b.bin_imm(BinOp::LShr, size, 8);
                let odd = self.b.bin_imm(BinOp::And, odd, 1);
                self.b.bin_imm(BinOp::Add, odd, 0x7f)
            }
        };
        // The exponents of both formats agree, so a carry out of the mantissa and denormals need no care;
        // infinity must stay what it is.
        let finite = self.less(HF_INFINITY, size);
        let rounded = self.b.bin(BinOp::Add, size, bias);
        let r = self.b.select(finite, rounded, size);
        let r = self.b.bin(BinOp::Or, r, sign);
        let r = self.b.bin_imm(BinOp::LShr, r, 8);
        let nan = self.more(HF_INFINITY, size);
        let quiet = self.b.int_like(r, BF8_NAN);
        let r = self.b.select(nan, quiet, r);
        self.b.conv(Conv::Trunc, r, Lane::I8)
    }

    /// `srnd`: random bits are added below the kept ones, and the rest is cut off.
    pub(super) fn lower_srnd(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let [src, random] = a.srcs.as_slice() else {
            return Fail::malformed("srnd takes two sources");
        };
        let n = inst.exec.lanes();
        let mask = self.channel_mask(inst)?;
        let (o, random) = (self.read(src, n)?, self.read(random, n)?);
        let dst = self.dst_type(&a.dst)?;
        let lane = self.b.ty(random.value).lane.as_int();
        let bits = self.b.recast(random.value, lane);
        let v = match (dst, o.ty) {
            (Type::Hf, Type::F) => {
                let r = self.b.resize(bits, Lane::I32, false);
                self.f_to_hf_random(o.value, r)
            }
            (Type::Ub, Type::Hf) => {
                let r = self.b.resize(bits, Lane::I16, false);
                self.hf_to_bf8(o.value, Some(r))
            }
            (Type::B, _) | (_, Type::B) => {
                return Fail::unsupported("the hf8 format, which no platform here has");
            }
            (to, from) => return Fail::malformed(format!("rounding of `{from}` to `{to}`")),
        };
        self.write(&a.dst, n, v, mask)
    }

    /// Thirteen random bits are added at the end of the f mantissa. What reaches 2^16 is infinite; denormal
    /// results are cut to the steps of denormals and kept.
    fn f_to_hf_random(&mut self, v: Value, random: Value) -> Value {
        let bits = self.b.recast(v, Lane::I32);
        let size = self.b.bin_imm(BinOp::And, bits, 0x7fff_ffff);
        let random = self.b.bin_imm(BinOp::And, random, 0x1fff);
        let sum = self.b.bin(BinOp::Add, size, random);
        let normal = self.b.bin_imm(BinOp::Sub, sum, 112 << 23);
        let normal = self.b.bin_imm(BinOp::LShr, normal, 13);
        let float = self.b.recast(sum, Lane::F32);
        let steps = self.b.f32(16_777_216.0);
        let steps = self.b.bin(BinOp::FMul, float, steps);
        let denormal = self.b.conv(Conv::FToUI, steps, Lane::I32);
        let small = self.less(F_HF_NORMAL, sum);
        let r = self.b.select(small, denormal, normal);
        let large = self.more(F_HF_LIMIT - 1, sum);
        let infinity = self.b.int_like(r, HF_INFINITY);
        let r = self.b.select(large, infinity, r);
        let sign = self.b.bin_imm(BinOp::LShr, bits, 16);
        let sign = self.b.bin_imm(BinOp::And, sign, 0x8000);
        let r = self.b.bin(BinOp::Or, r, sign);
        let nan = self.more(F_INFINITY, size);
        let quiet = self.b.int_like(r, HF_NAN);
        let r = self.b.select(nan, quiet, r);
        self.b.conv(Conv::Trunc, r, Lane::I16)
    }

    /// `add3.o`: the predicate in front receives, for enabled channels, whether the exact sum is outside the
    /// destination's type.
    pub(super) fn lower_add3o(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let n = inst.exec.lanes();
        let mask = self.exec_mask(inst);
        let dst = self.dst_type(&a.dst)?;
        let mut sum: Option<Value> = None;
        for s in &a.srcs {
            let o = self.read(s, n)?;
            let v = self.int(o, Lane::I64)?;
            sum = Some(match sum {
                Some(sum) => self.b.bin(BinOp::Add, sum, v),
                None => v,
            });
        }
        let Some(sum) = sum else {
            return Fail::malformed("add3.o takes three sources");
        };
        if !dst.is_int() || dst.bytes() > 4 {
            return Fail::malformed(format!("add3.o into a `{dst}`"));
        }
        let kept = self.convert(sum, Type::Q, dst, false)?;
        let back = self.b.resize(kept, Lane::I64, dst.is_signed());
        let overflow = self.b.icmp(ICond::Ne, back, sum);
        self.write(&a.dst, n, kept, mask)?;
        match inst.pred {
            Some(p) => {
                let first = inst.exec.mask.first_lane() as u16;
                self.write_pred(p.var, n, overflow, mask, first)
            }
            None => Ok(()),
        }
    }

    /// `invm` and `rsqtm`: the start of an iteration, and a predicate that says where it must not be run.
    ///
    /// The ISA asks for an approximation only. Here the seed is the IEEE quotient, and one over the IEEE root,
    /// each operation rounded to nearest; the predicate is set where that is zero, infinite or NaN.
    pub(super) fn lower_seed(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let Some(Dst::Pred(p)) = a.dst2 else {
            return Fail::malformed("the second destination is a predicate");
        };
        let n = inst.exec.lanes();
        let mask = self.channel_mask(inst)?;
        let s = a
            .srcs
            .iter()
            .map(|s| self.read(s, n))
            .collect::<Result<Vec<Operand>, _>>()?;
        let kind = self.kind(&s)?;
        let lane = super::operand::lane_of(kind.ty());
        if !lane.is_float() {
            return Fail::malformed(format!("`{}` operands", kind.ty()));
        }
        let v = s
            .iter()
            .map(|o| self.float(*o, kind))
            .collect::<Result<Vec<_>, _>>()?;
        let number = |l: &mut Self, v: f64| {
            if lane == Lane::F64 {
                l.b.f64(v)
            } else {
                l.b.f32(v as f32)
            }
        };
        let seed = match (inst.op, v.as_slice()) {
            (Opcode::Invm, [x, y]) => self.b.bin(BinOp::FDiv, *x, *y),
            (_, [x]) => {
                let root = self.b.un(UnOp::FSqrt, *x);
                let one = number(self, 1.0);
                self.b.bin(BinOp::FDiv, one, root)
            }
            _ => return Fail::malformed("wrong number of sources"),
        };
        // Only of finite numbers is the product with zero a zero.
        let zero = number(self, 0.0);
        let rest = self.b.bin(BinOp::FMul, seed, zero);
        let finite = self.b.fcmp(FCond::Eq, rest, zero);
        let nonzero = self.b.fcmp(FCond::Ne, seed, zero);
        let go_on = self.b.bin(BinOp::And, finite, nonzero);
        let done = self.b.un(UnOp::Not, go_on);
        let dst = self.dst_type(&a.dst)?;
        let v = self.convert(seed, kind.ty(), dst, false)?;
        self.write(&a.dst, n, v, mask)?;
        self.write_pred(p, n, done, mask, inst.exec.mask.first_lane() as u16)
    }
}
