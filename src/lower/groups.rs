//! Instructions whose channels look at their neighbours: `dp2 dp3 dp4 dph line plane sad2 sad2add`; and `lrp`,
//! which shares their chains of multiply-adds.
//!
//! The ISA does not say how the sums of products are rounded. Here each is a product followed by fused
//! multiply-adds, which is how the vendor's assembler writes `plane` where the hardware has none:
//! `mad t, s0[3], u, s0[0]` then `mad d, t, v, s0[1]`.

use super::Lowerer;
use super::convert::FloatKind;
use super::error::Fail;
use super::operand::{ChannelMask, Operand};
use crate::isa::{Opcode, SrcRegion, Type};
use crate::module::{Alu, IndirectRegion, Inst, Src};
use crate::ssa::*;

impl Lowerer<'_> {
    /// One of the instructions above.
    pub(super) fn lower_groups(&mut self, inst: &Inst, a: &Alu) -> Result<(), Fail> {
        use Opcode as O;
        let n = inst.exec.lanes();
        let mask = self.channel_mask(inst)?;
        let dst = self.dst_type(&a.dst)?;
        if matches!(inst.op, O::Sad2 | O::Sad2add) {
            return self.lower_sad(inst, a, mask, dst);
        }
        let v = match inst.op {
            O::Line => self.line(a, n)?,
            O::Plane => self.plane(a, n)?,
            O::Lrp => self.lrp(a, n)?,
            op => self.dot(op, a, n)?,
        };
        let v = self.convert(v, Type::F, dst, a.sat)?;
        self.write(&a.dst, n, v, mask)
    }

    /// `lanes` f lanes of a source.
    fn float_lanes(&mut self, a: &Alu, source: usize, lanes: u32) -> Result<Value, Fail> {
        let Some(src) = a.srcs.get(source) else {
            return Fail::malformed("wrong number of sources");
        };
        let o = self.read(src, lanes)?;
        let v = self.float(o, FloatKind::F)?;
        Ok(self.b.splat(v, lanes as u16))
    }

    /// Sum of products within groups of four channels; every channel of a group gets it. A group that the
    /// execution size cuts short still reads its four elements.
    fn dot(&mut self, op: Opcode, a: &Alu, n: u32) -> Result<Value, Fail> {
        let whole = n.max(4);
        let (x, y) = (
            self.float_lanes(a, 0, whole)?,
            self.float_lanes(a, 1, whole)?,
        );
        let part = |l: &mut Self, v: Value, k: u16| {
            let lanes = (0..n as u16).map(|i| i / 4 * 4 + k).collect();
            l.b.shuffle(v, lanes)
        };
        let products = match op {
            Opcode::Dp2 => 2,
            Opcode::Dp4 => 4,
            _ => 3,
        };
        let (x0, y0) = (part(self, x, 0), part(self, y, 0));
        let mut sum = self.f_step(FpEnvOp::Mul, &[x0, y0])?;
        for k in 1..products {
            let (xk, yk) = (part(self, x, k), part(self, y, k));
            sum = self.f_step(FpEnvOp::Fma, &[xk, yk, sum])?;
        }
        if op == Opcode::Dph {
            // The fourth element of the first source counts as 1.
            let y3 = part(self, y, 3);
            sum = self.f_step(FpEnvOp::Add, &[sum, y3])?;
        }
        Ok(sum)
    }

    /// `s0[0] * s1 + s0[3]`: elements of the first source's region, so that a scalar stands for both.
    fn line(&mut self, a: &Alu, n: u32) -> Result<Value, Fail> {
        let c = self.float_lanes(a, 0, 4)?;
        let x = self.float_lanes(a, 1, n)?;
        let (p, r) = (self.b.lane(c, 0), self.b.lane(c, 3));
        self.f_step(FpEnvOp::Fma, &[x, p, r])
    }

    /// `s0[0] * u + s0[1] * v + s0[3]`; for each eight channels the second source holds eight `u`, then eight `v`.
    /// Regions do not count: elements follow each other.
    fn plane(&mut self, a: &Alu, n: u32) -> Result<Value, Fail> {
        let groups = n.div_ceil(8);
        let packed = Alu {
            srcs: a.srcs.iter().map(without_region).collect(),
            ..a.clone()
        };
        let c = self.float_lanes(&packed, 0, 4)?;
        let uv = self.float_lanes(&packed, 1, 16 * groups)?;
        let part = |l: &mut Self, at: u16| {
            let lanes = (0..n as u16).map(|i| i / 8 * 16 + i % 8 + at).collect();
            l.b.shuffle(uv, lanes)
        };
        let (u, v) = (part(self, 0), part(self, 8));
        let [p, q, r] = [0, 1, 3].map(|k| self.b.lane(c, k));
        let t = self.f_step(FpEnvOp::Fma, &[u, p, r])?;
        self.f_step(FpEnvOp::Fma, &[v, q, t])
    }

    /// `s0 * s1 + (1 - s0) * s2`, the second product rounded, the first fused with the sum.
    fn lrp(&mut self, a: &Alu, n: u32) -> Result<Value, Fail> {
        let [x, y, z] = [0, 1, 2].map(|k| self.float_lanes(a, k, n));
        let (x, y, z) = (x?, y?, z?);
        let one = self.b.f32(1.0);
        let minus = self.b.un(UnOp::FNeg, x);
        let rest = self.f_step(FpEnvOp::Add, &[minus, one])?;
        let part = self.f_step(FpEnvOp::Mul, &[rest, z])?;
        self.f_step(FpEnvOp::Fma, &[x, y, part])
    }

    /// Sum of the absolute differences of a pair of channels, into the even one. The ISA leaves the odd one
    /// undefined; here it keeps its value.
    fn lower_sad(
        &mut self,
        inst: &Inst,
        a: &Alu,
        mask: ChannelMask,
        dst: Type,
    ) -> Result<(), Fail> {
        let [x, y, rest @ ..] = a.srcs.as_slice() else {
            return Fail::malformed("wrong number of sources");
        };
        let n = inst.exec.lanes();
        let pairs = n.max(2);
        let (x, y) = (self.read(x, pairs)?, self.read(y, pairs)?);
        let (x, y) = (self.int(x, Lane::I32)?, self.int(y, Lane::I32)?);
        let difference = self.b.bin(BinOp::Sub, x, y);
        let difference = self.b.splat(difference, pairs as u16);
        let minus = self.b.un(UnOp::Neg, difference);
        let distance = self.b.bin(BinOp::SMax, difference, minus);
        let pick = |odd: u16| (0..n as u16).map(|i| (i & !1) + odd).collect::<Vec<_>>();
        let even = self.b.shuffle(distance, pick(0));
        let odd = self.b.shuffle(distance, pick(1));
        let mut sum = self.b.bin(BinOp::Add, even, odd);
        if let [z] = rest {
            let z: Operand = self.read(z, n)?;
            let z = self.int(z, Lane::I32)?;
            sum = self.b.bin(BinOp::Add, sum, z);
        }
        let v = self.convert(sum, Type::D, dst, a.sat)?;
        let mask = if n == 1 {
            mask
        } else {
            let even = (0..n).map(|i| u64::from(i % 2 == 0)).collect();
            let even = self.b.vec_const(Lane::I1, even);
            let lanes = mask.lanes(&mut self.b, n as u16);
            ChannelMask::Lanes(self.b.bin(BinOp::And, lanes, even))
        };
        self.write(&a.dst, n, v, mask)
    }
}

/// A source whose elements follow each other, whatever its region says.
fn without_region(src: &Src) -> Src {
    match src.clone() {
        Src::General {
            origin, modifier, ..
        } => Src::General {
            origin,
            region: SrcRegion::PACKED,
            modifier,
        },
        Src::Indirect {
            indirect,
            region: IndirectRegion::Single(_),
            modifier,
        } => Src::Indirect {
            indirect,
            region: IndirectRegion::Single(SrcRegion::PACKED),
            modifier,
        },
        other => other,
    }
}
