//! Arithmetic, moves, comparisons: instructions from registers to registers.

use super::Lowerer;
use super::convert::FloatKind;
use super::error::Fail;
use super::operand::{ChannelMask, Operand, lane_of};
use crate::isa::{CmpCond, Opcode, SrcModifier, Type};
use crate::module::Inst;
use crate::module::*;
use crate::ssa::*;

impl Lowerer<'_> {
    /// Lowers any register-to-register instruction.
    pub(super) fn alu(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        use Opcode as O;
        match inst.op {
            O::Mov => self.lower_mov(inst, a),
            O::Movs => self.lower_movs(inst, a),
            O::Setp => self.lower_setp(inst, a),
            O::Cmp => self.lower_cmp(inst, a),
            O::Sel => self.lower_sel(inst, a),
            O::Min | O::Max => self.lower_minmax(inst, a),
            O::And | O::Or | O::Xor | O::Not if matches!(a.dst, Dst::Pred(_)) => {
                self.lower_pred_logic(inst, a)
            }
            O::AddrAdd => self.lower_addr_add(inst, a),
            O::Addc | O::Subb => self.lower_carry(inst, a),
            O::Madw => self.lower_madw(inst, a),
            O::Dp2
            | O::Dp3
            | O::Dp4
            | O::Dph
            | O::Line
            | O::Plane
            | O::Lrp
            | O::Sad2
            | O::Sad2add => self.lower_groups(inst, a),
            O::Fcvt => self.lower_fcvt(inst, a),
            O::Srnd => self.lower_srnd(inst, a),
            O::Add3o => self.lower_add3o(inst, a),
            O::Invm | O::Rsqtm => self.lower_seed(inst, a),
            _ => {
                let n = inst.exec.lanes();
                let mask = self.channel_mask(inst)?;
                let dst_ty = self.dst_type(&a.dst)?;
                let srcs = a
                    .srcs
                    .iter()
                    .map(|s| self.read(s, n))
                    .collect::<Result<Vec<_>, _>>()?;
                let (v, ty) = self.compute(inst.op, a, &srcs, dst_ty)?;
                let v = self.convert(v, ty, dst_ty, a.sat)?;
                self.write(&a.dst, n, v, mask)
            }
        }
    }

    /// The result of a computing instruction and its type, before conversion to the destination.
    fn compute(
        &mut self,
        op: Opcode,
        a: &Alu,
        s: &[Operand],
        dst: Type,
    ) -> Result<(Value, Type), Fail> {
        use Opcode as O;
        match op {
            O::And
            | O::Or
            | O::Xor
            | O::Not
            | O::Shl
            | O::Shr
            | O::Asr
            | O::Rol
            | O::Ror
            | O::Cbit
            | O::Lzd
            | O::Fbl
            | O::Fbh
            | O::Bfrev
            | O::Bfe
            | O::Bfi
            | O::Bfn => self.logic(op, a, s, dst),
            _ if s.iter().any(|o| o.ty.is_float()) => self.float_compute(op, s, dst),
            _ => self.int_compute(op, a.sat, s, dst),
        }
    }

    fn lower_mov(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let n = inst.exec.lanes();
        let [src] = a.srcs.as_slice() else {
            return Fail::malformed("mov takes one source");
        };
        let mask = self.channel_mask(inst)?;
        let o = self.read(src, n)?;
        let dst = self.dst_type(&a.dst)?;
        let v = self.moved(o, dst, a.sat)?;
        self.write(&a.dst, n, v, mask)
    }

    /// A source converted to `dst`, modifier applied.
    fn moved(&mut self, o: Operand, dst: Type, sat: bool) -> Result<Value, Fail> {
        if o.ty.is_float() {
            let v = self.modified_float(o)?;
            let from = if o.ty == Type::Vf { Type::F } else { o.ty };
            return self.convert(v, from, dst, sat);
        }
        if o.modifier == SrcModifier::None {
            return self.convert(o.value, o.ty, dst, sat);
        }
        // A modifier acts on the exact value.
        if o.ty.bytes() == 8 && (sat || dst.is_float()) {
            return self.moved_quadword(o, dst, sat);
        }
        let ty = if o.ty.bytes() == 8 { o.ty } else { Type::Q };
        let v = self.int(o, Lane::I64)?;
        self.convert(v, ty, dst, sat)
    }

    /// A quadword whose modifier may have taken it out of its type.
    fn moved_quadword(&mut self, o: Operand, dst: Type, sat: bool) -> Result<Value, Fail> {
        let w = self.wide(o)?;
        if dst.is_int() {
            return self.saturate_wide(w, dst);
        }
        // Rounded with the sign in place: the other way round where the mode has a direction.
        let m = self.magnitude(w);
        let plus = self.convert(m.bits, Type::Uq, dst, sat)?;
        let mirrored = self.cr0.mirrored();
        let minus = self.under(mirrored, |l| l.convert(m.bits, Type::Uq, dst, false));
        let minus = if sat {
            let lane = lane_of(dst);
            self.b.bits(lane, 0)
        } else {
            self.modified_float(Operand {
                value: minus?,
                ty: dst,
                modifier: SrcModifier::Neg,
            })?
        };
        Ok(self.b.select(m.negative, minus, plus))
    }

    /// Copies handles, an element for each enabled lane.
    fn lower_movs(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let [src] = a.srcs.as_slice() else {
            return Fail::malformed("movs takes one source");
        };
        let n = inst.exec.lanes();
        let o = self.read(src, n)?;
        let v = self.b.resize(o.value, Lane::I32, o.ty.is_signed());
        let dst = self.dst_type(&a.dst)?;
        let v = self.b.resize(v, lane_of(dst).as_int(), false);
        let mask = self.exec_mask(inst);
        self.write(&a.dst, n, v, mask)
    }

    fn lower_setp(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let ([src], Dst::Pred(p)) = (a.srcs.as_slice(), &a.dst) else {
            return Fail::malformed("setp takes a predicate and one source");
        };
        let (n, first) = (inst.exec.lanes(), inst.exec.mask.first_lane() as u16);
        let o = self.read(src, n)?;
        if !o.ty.is_int() {
            return Fail::unsupported("setp from a float");
        }
        let scalar = self.b.ty(o.value).is_scalar()
            && !matches!(src, Src::General { region, .. } if n > 1 && region.vstride + region.hstride > 0);
        if scalar {
            // The whole flag half is written, whatever the mask (docs/visa.md, "Lanes and masks").
            let bits = self.b.resize(o.value, Lane::I32, false);
            let count = if n <= 16 { 16 } else { 32 };
            let m = self.b.op(Op::BitsToMask, vec![bits], Ty::mask(count));
            return self.write_pred(*p, u32::from(count), m, ChannelMask::All, first & 16);
        }
        let mask = self.exec_mask(inst);
        let bit = self.b.conv(Conv::Trunc, o.value, Lane::I1);
        self.write_pred(*p, n, bit, mask, first)
    }

    fn lower_pred_logic(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let Dst::Pred(p) = a.dst else {
            return Fail::malformed("predicate destination expected");
        };
        let (n, first) = (inst.exec.lanes() as u16, inst.exec.mask.first_lane() as u16);
        let mut args = Vec::new();
        for s in &a.srcs {
            let Src::Pred(q) = s else {
                return Fail::unsupported("predicate and number in one logic instruction");
            };
            let whole = self.read_pred(*q)?;
            let bits = self.b.ty(whole).lanes;
            if first + n > bits && bits != 1 {
                return Fail::malformed("predicate operand is narrower than the execution size");
            }
            let v = if bits == 1 {
                self.b.splat(whole, n)
            } else {
                self.b.slice(whole, first, n)
            };
            args.push(v);
        }
        let v = match (inst.op, args.as_slice()) {
            (Opcode::Not, [x]) => self.b.un(UnOp::Not, *x),
            (Opcode::And, [x, y]) => self.b.bin(BinOp::And, *x, *y),
            (Opcode::Or, [x, y]) => self.b.bin(BinOp::Or, *x, *y),
            (Opcode::Xor, [x, y]) => self.b.bin(BinOp::Xor, *x, *y),
            _ => return Fail::malformed("wrong number of predicate sources"),
        };
        // Lanes that are switched off keep their bits; the vendor's assembler writes them one by one.
        let mask = self.exec_mask(inst);
        self.write_pred(p, u32::from(n), v, mask, first)
    }

    /// Lane-wise comparison of exact values.
    pub(super) fn compare(&mut self, cond: CmpCond, x: Operand, y: Operand) -> Result<Value, Fail> {
        if x.ty.is_float() || y.ty.is_float() {
            let kind = self.kind(&[x, y])?;
            let wide = if matches!(kind, FloatKind::Hf | FloatKind::Bf) {
                FloatKind::F
            } else {
                kind
            };
            let (mut a, mut b) = (self.float(x, wide)?, self.float(y, wide)?);
            if !self.cr0.plain(&[x.ty, y.ty]) && kind == wide {
                let lane = lane_of(kind.ty());
                a = self.fp_env(FpEnvOp::Flush, &[a], lane)?;
                b = self.fp_env(FpEnvOp::Flush, &[b], lane)?;
            }
            let cc = match cond {
                CmpCond::Eq => FCond::Eq,
                CmpCond::Ne => FCond::Ne,
                CmpCond::Gt => FCond::Gt,
                CmpCond::Ge => FCond::Ge,
                CmpCond::Lt => FCond::Lt,
                CmpCond::Le => FCond::Le,
            };
            return Ok(self.b.fcmp(cc, a, b));
        }
        // A modifier can leave the type's range, so such operands are compared wider.
        let plain = x.modifier == SrcModifier::None && y.modifier == SrcModifier::None;
        let same = x.ty.is_signed() == y.ty.is_signed();
        let wide = x.ty.bytes().max(y.ty.bytes());
        let (lane, signed) = match (plain && same, wide) {
            (true, 8) => (Lane::I64, x.ty.is_signed()),
            (true, 4) => (Lane::I32, x.ty.is_signed()),
            (true, w) => (if w == 1 { Lane::I8 } else { Lane::I16 }, x.ty.is_signed()),
            (false, 8) if plain => return self.compare_mixed64(cond, x, y),
            (false, 8) => {
                let (a, b) = (self.wide(x)?, self.wide(y)?);
                return Ok(self.wide_compare(cond, a, b));
            }
            (false, _) => (Lane::I64, true),
        };
        let (a, b) = (self.int(x, lane)?, self.int(y, lane)?);
        Ok(self.b.icmp(int_cond(cond, signed), a, b))
    }

    /// Signed against unsigned quadwords: a negative one is below every unsigned one.
    fn compare_mixed64(&mut self, cond: CmpCond, x: Operand, y: Operand) -> Result<Value, Fail> {
        let (a, b) = (self.int(x, Lane::I64)?, self.int(y, Lane::I64)?);
        let signed = if x.ty.is_signed() { a } else { b };
        let negative = {
            let zero = self.b.int_like(signed, 0);
            self.b.icmp(ICond::Slt, signed, zero)
        };
        let plain = self.b.icmp(int_cond(cond, false), a, b);
        let when_negative = match cond {
            CmpCond::Eq => false,
            CmpCond::Ne => true,
            CmpCond::Lt | CmpCond::Le => x.ty.is_signed(),
            CmpCond::Gt | CmpCond::Ge => y.ty.is_signed(),
        };
        let fixed = self.b.bool(when_negative);
        let lanes = self.b.ty(plain).lanes;
        let negative = self.b.splat(negative, lanes);
        Ok(self.b.select(negative, fixed, plain))
    }

    fn lower_cmp(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let ([x, y], Some(cond)) = (a.srcs.as_slice(), a.cond) else {
            return Fail::malformed("cmp takes a condition and two sources");
        };
        let n = inst.exec.lanes();
        let (x, y) = (self.read(x, n)?, self.read(y, n)?);
        let c = self.compare(cond, x, y)?;
        let mask = self.channel_mask(inst)?;
        if let Dst::Pred(p) = a.dst {
            return self.write_pred(p, n, c, mask, inst.exec.mask.first_lane() as u16);
        }
        let ty = self.dst_type(&a.dst)?;
        let ones = self.b.conv(Conv::SExt, c, lane_of(ty).as_int());
        let ones = self.b.recast(ones, lane_of(ty));
        self.write(&a.dst, n, ones, mask)
    }

    fn lower_sel(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let [x, y] = a.srcs.as_slice() else {
            return Fail::malformed("sel takes two sources");
        };
        let n = inst.exec.lanes();
        let dst = self.dst_type(&a.dst)?;
        let (x, y) = (self.read(x, n)?, self.read(y, n)?);
        let (x, y) = (self.moved(x, dst, a.sat)?, self.moved(y, dst, a.sat)?);
        let v = match inst.pred {
            None => x,
            Some(p) => match self.guard(inst, p)? {
                ChannelMask::All => x,
                ChannelMask::Uniform(m) | ChannelMask::Lanes(m) => self.b.select(m, x, y),
            },
        };
        let mask = self.exec_mask(inst);
        self.write(&a.dst, n, v, mask)
    }

    fn lower_minmax(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let [x, y] = a.srcs.as_slice() else {
            return Fail::malformed("min/max take two sources");
        };
        let n = inst.exec.lanes();
        let dst = self.dst_type(&a.dst)?;
        let (x, y) = (self.read(x, n)?, self.read(y, n)?);
        // `sel.lt` / `sel.ge`: the first source where the comparison holds, else the second.
        let cond = if inst.op == Opcode::Min {
            CmpCond::Lt
        } else {
            CmpCond::Ge
        };
        let c = self.compare(cond, x, y)?;
        let (a_v, b_v) = (self.moved(x, dst, a.sat)?, self.moved(y, dst, a.sat)?);
        // With one NaN the other operand is the result: a NaN first source already fails the comparison.
        let c = if y.ty.is_float() {
            let wide = if y.ty == Type::Df {
                FloatKind::Df
            } else {
                FloatKind::F
            };
            let f = self.float(y, wide)?;
            let nan = self.b.fcmp(FCond::Ne, f, f);
            let [c, nan] = self.b.level([c, nan]);
            self.b.bin(BinOp::Or, c, nan)
        } else {
            c
        };
        let v = self.b.select(c, a_v, b_v);
        let mask = self.exec_mask(inst);
        self.write(&a.dst, n, v, mask)
    }

    fn lower_addr_add(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let [x, y] = a.srcs.as_slice() else {
            return Fail::malformed("addr_add takes two sources");
        };
        let n = inst.exec.lanes();
        let mask = self.exec_mask(inst);
        let (x, y) = (self.read(x, n)?, self.read(y, n)?);
        let (x, y) = (self.int(x, Lane::I16)?, self.int(y, Lane::I16)?);
        let v = self.b.bin(BinOp::Add, x, y);
        self.write(&a.dst, n, v, mask)
    }

    fn lower_carry(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let ([x, y], Some(second)) = (a.srcs.as_slice(), &a.dst2) else {
            return Fail::malformed("two destinations and two sources expected");
        };
        let n = inst.exec.lanes();
        let mask = self.channel_mask(inst)?;
        let (x, y) = (self.read(x, n)?, self.read(y, n)?);
        let (x, y) = (self.int(x, Lane::I32)?, self.int(y, Lane::I32)?);
        let (v, c) = if inst.op == Opcode::Addc {
            let v = self.b.bin(BinOp::Add, x, y);
            (v, self.b.icmp(ICond::Ult, v, x))
        } else {
            (self.b.bin(BinOp::Sub, x, y), self.b.icmp(ICond::Ult, x, y))
        };
        let carry = self.b.conv(Conv::ZExt, c, Lane::I32);
        let (t, u) = (self.dst_type(&a.dst)?, self.dst_type(second)?);
        let v = self.convert(v, Type::Ud, t, false)?;
        let carry = self.convert(carry, Type::Ud, u, false)?;
        self.write(&a.dst, n, v, mask)?;
        self.write(second, n, carry, mask)
    }

    /// 32 x 32 + 32 to 64 bits: low dwords, then high dwords in the next whole registers.
    fn lower_madw(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        let ([x, y, z], Dst::General { origin, region }) = (a.srcs.as_slice(), &a.dst) else {
            return Fail::malformed("madw takes three sources and a register");
        };
        let n = inst.exec.lanes();
        let mask = self.channel_mask(inst)?;
        let (x, y, z) = (self.read(x, n)?, self.read(y, n)?, self.read(z, n)?);
        let (x, y, z) = (
            self.int(x, Lane::I64)?,
            self.int(y, Lane::I64)?,
            self.int(z, Lane::I64)?,
        );
        let p = self.b.bin(BinOp::Mul, x, y);
        let s = self.b.bin(BinOp::Add, p, z);
        let lo = self.b.conv(Conv::Trunc, s, Lane::I32);
        let hi = self.b.bin_imm(BinOp::LShr, s, 32);
        let hi = self.b.conv(Conv::Trunc, hi, Lane::I32);
        let rows = (n * 4).div_ceil(self.grf) as u16;
        let high = Dst::General {
            origin: Origin {
                row: origin.row + rows,
                ..*origin
            },
            region: *region,
        };
        self.write(&a.dst, n, lo, mask)?;
        self.write(&high, n, hi, mask)
    }
}

pub(super) fn int_cond(cond: CmpCond, signed: bool) -> ICond {
    match (cond, signed) {
        (CmpCond::Eq, _) => ICond::Eq,
        (CmpCond::Ne, _) => ICond::Ne,
        (CmpCond::Gt, true) => ICond::Sgt,
        (CmpCond::Gt, false) => ICond::Ugt,
        (CmpCond::Ge, true) => ICond::Sge,
        (CmpCond::Ge, false) => ICond::Uge,
        (CmpCond::Lt, true) => ICond::Slt,
        (CmpCond::Lt, false) => ICond::Ult,
        (CmpCond::Le, true) => ICond::Sle,
        (CmpCond::Le, false) => ICond::Ule,
    }
}
