//! Instructions whose channels look at their neighbours: `dp2 dp3 dp4 dph line plane sad2 sad2add`; and `lrp`, which
//! has the same chains of multiply-adds.
//!
//! The specification does not say how sums of products are rounded. Decided here: first term rounded, each further
//! one fused with the sum, as the vendor's own expansion of `plane` does, all under `%cr0`.

use super::error::Halt;
use super::float::{Env, FloatOp, Format};
use super::lanes::{ChannelBits, bits};
use super::machine::{Machine, Operand};
use super::number::{Number, convert};
use crate::isa::{Opcode, SrcRegion, Type};
use crate::module::{Alu, IndirectRegion, Inst, Src};

/// Binary32 steps under a control register.
struct Steps(Env);

impl Steps {
    fn mul(&self, x: u64, y: u64) -> u64 {
        self.0.compute(FloatOp::Mul, Format::F, [x, y, 0])
    }

    fn add(&self, x: u64, y: u64) -> u64 {
        self.0.compute(FloatOp::Add, Format::F, [x, y, 0])
    }

    fn fma(&self, x: u64, y: u64, z: u64) -> u64 {
        self.0.compute(FloatOp::Fma, Format::F, [x, y, z])
    }
}

/// True for the instructions of this file.
pub(super) fn is_group(op: Opcode) -> bool {
    use Opcode as O;
    matches!(
        op,
        O::Dp2 | O::Dp3 | O::Dp4 | O::Dph | O::Line | O::Plane | O::Sad2 | O::Sad2add | O::Lrp
    )
}

/// Elements of a source's region that an instruction of `n` channels reads, where these are more or fewer than its channels. `plane`, which
/// reads no region, is not among them.
pub(super) fn elements(op: Opcode, source: usize, n: u32) -> u32 {
    use Opcode as O;
    match (op, source) {
        (O::Dp2 | O::Dp3 | O::Dp4 | O::Dph, _) => n.max(4),
        (O::Sad2 | O::Sad2add, 0 | 1) => n.max(2),
        (O::Line, 0) => 4,
        _ => n,
    }
}

/// The source with consecutive elements from where it starts.
fn consecutive(s: &Src) -> Src {
    let mut s = s.clone();
    match &mut s {
        Src::General { region, .. } => *region = SrcRegion::PACKED,
        Src::Indirect {
            region: IndirectRegion::Single(region),
            ..
        } => *region = SrcRegion::PACKED,
        _ => {}
    }
    s
}

impl Machine<'_, '_, '_> {
    /// One of them.
    pub(super) fn group(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let n = inst.exec.lanes();
        let enabled = self.enabled(inst)?;
        let ty = self.dst_type(&a.dst)?;
        let env = self.env();
        if matches!(inst.op, Opcode::Sad2 | Opcode::Sad2add) {
            return self.sad(inst, a, enabled, ty);
        }
        let results = match inst.op {
            Opcode::Line => self.line(a, n)?,
            Opcode::Plane => self.plane(a, n)?,
            Opcode::Lrp => self.lrp(a, n)?,
            _ => self.dot(inst.op, a, n)?,
        };
        let mut out = ChannelBits::default();
        for i in bits(enabled) {
            let number = Number::Float(Format::F, results.get(i));
            out.set(i, convert(env, number, ty, a.sat));
        }
        self.write(&a.dst, &out, enabled)
    }

    /// Binary32 bits of `n` elements of a source.
    fn singles(&mut self, a: &Alu, source: usize, n: u32) -> Result<ChannelBits, Halt> {
        let Some(src) = a.srcs.get(source) else {
            return Halt::malformed("wrong number of sources");
        };
        let (o, env): (Operand, Env) = (self.read(src, n)?, self.env());
        let mut out = ChannelBits::default();
        for i in 0..n as usize {
            out.set(i, o.float(i, env, Format::F)?);
        }
        Ok(out)
    }

    /// The sum of a group of four channels goes to each of them. A group that the execution size cuts short still
    /// reads its four elements. Of `dph` the fourth element of the first source counts as 1.
    fn dot(&mut self, op: Opcode, a: &Alu, n: u32) -> Result<ChannelBits, Halt> {
        let all = n.max(4);
        let (x, y) = (self.singles(a, 0, all)?, self.singles(a, 1, all)?);
        let s = Steps(self.env());
        let terms = match op {
            Opcode::Dp2 => 2,
            Opcode::Dp4 => 4,
            _ => 3,
        };
        Ok(ChannelBits::each(|i| {
            let at = |k: usize| (i & !3).wrapping_add(k);
            let first = s.mul(x.get(at(0)), y.get(at(0)));
            let sum = (1..terms).fold(first, |sum, k| s.fma(x.get(at(k)), y.get(at(k)), sum));
            if op == Opcode::Dph {
                s.add(sum, y.get(at(3)))
            } else {
                sum
            }
        }))
    }

    /// `s0[0] * s1 + s0[3]`, elements of the first source's region: a scalar stands for both.
    fn line(&mut self, a: &Alu, n: u32) -> Result<ChannelBits, Halt> {
        let (c, x) = (self.singles(a, 0, 4)?, self.singles(a, 1, n)?);
        let s = Steps(self.env());
        Ok(ChannelBits::each(|i| s.fma(x.get(i), c.get(0), c.get(3))))
    }

    /// `s0[0] * u + s0[1] * v + s0[3]`: for each eight channels the second source has eight `u`, then eight `v`. Both
    /// sources are read as consecutive elements: the specification ignores their regions.
    fn plane(&mut self, a: &Alu, n: u32) -> Result<ChannelBits, Halt> {
        if n > 16 {
            return Halt::malformed("plane works on 8 or 16 channels");
        }
        let groups = n.div_ceil(8);
        let packed = Alu {
            srcs: a.srcs.iter().map(consecutive).collect(),
            ..a.clone()
        };
        let c = self.singles(&packed, 0, 4)?;
        let uv = self.singles(&packed, 1, groups.wrapping_mul(16))?;
        let s = Steps(self.env());
        Ok(ChannelBits::each(|i| {
            let u = (i & !7).wrapping_add(i);
            let t = s.fma(uv.get(u), c.get(0), c.get(3));
            s.fma(uv.get(u.wrapping_add(8)), c.get(1), t)
        }))
    }

    /// `s0 * s1 + (1 - s0) * s2`: the second product is rounded, the first is fused with the sum.
    fn lrp(&mut self, a: &Alu, n: u32) -> Result<ChannelBits, Halt> {
        let (x, y, z) = (
            self.singles(a, 0, n)?,
            self.singles(a, 1, n)?,
            self.singles(a, 2, n)?,
        );
        let (s, one) = (Steps(self.env()), u64::from(1f32.to_bits()));
        Ok(ChannelBits::each(|i| {
            let rest = s.add(x.get(i) ^ Format::F.sign(), one);
            s.fma(x.get(i), y.get(i), s.mul(rest, z.get(i)))
        }))
    }

    /// Sum of the absolute differences of two channels, plus the third source, into the even one of them. The odd one
    /// is undefined by the specification; here it keeps its value.
    fn sad(&mut self, inst: &Inst, a: &Alu, enabled: u32, ty: Type) -> Result<(), Halt> {
        let n = inst.exec.lanes();
        let [x, y, rest @ ..] = a.srcs.as_slice() else {
            return Halt::malformed("wrong number of sources");
        };
        let pairs = n.max(2);
        let (x, y) = (self.read(x, pairs)?, self.read(y, pairs)?);
        let z = match rest {
            [z] => Some(self.read(z as &Src, n)?),
            _ => None,
        };
        let even = enabled & 0x5555_5555;
        let env = self.env();
        let mut out = ChannelBits::default();
        for i in bits(even) {
            let mut sum = match &z {
                Some(z) => z.int(i)?,
                None => 0,
            };
            for k in [i, i.wrapping_add(1)] {
                let difference = x.int(k)?.wrapping_sub(y.int(k)?);
                sum = sum.wrapping_add(difference.wrapping_abs());
            }
            out.set(i, convert(env, Number::Int(sum), ty, a.sat));
        }
        self.write(&a.dst, &out, even)
    }
}
