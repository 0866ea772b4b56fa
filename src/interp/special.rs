//! Small float formats (`fcvt`, `srnd`), the sum with overflow bit (`add3.o`), and the seeds `invm` and `rsqtm`.

use super::error::Halt;
use super::float::{Env, FloatOp, Format};
use super::lanes::{ChannelBits, bits, up};
use super::machine::Machine;
use super::number::{Number, convert, range};
use crate::isa::{Opcode, Type};
use crate::module::{Alu, Dst, Inst};

/// Rounding toward zero, denormals kept.
const CUT: Env = Env(0x4F0);

impl Machine<'_, '_, '_> {
    /// `fcvt`: formats that vISA has no types for are integers of their size. tf32 is in `ud`, bf8 in `ub`.
    pub(super) fn fcvt(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let [src] = a.srcs.as_slice() else {
            return Halt::malformed("fcvt takes one source");
        };
        let enabled = self.enabled(inst)?;
        let o = self.read(src, inst.exec.lanes())?;
        let step: fn(u64) -> u64 = match (self.dst_type(&a.dst)?, o.ty) {
            (Type::Ud, Type::F) => tf32,
            // Each tf32 is an f, and a bf8 the upper byte of an hf.
            (Type::F, Type::Ud) => |x| x,
            (Type::Ub, Type::Hf) => |x| bf8(x, None),
            (Type::Hf, Type::Ub) => |x| x.wrapping_shl(8),
            (Type::B, Type::Hf) | (Type::Hf, Type::B) => {
                return Halt::unsupported("the hf8 format, which no platform here has");
            }
            (to, from) => return Halt::malformed(format!("conversion of `{from}` to `{to}`")),
        };
        let out = ChannelBits::each(|i| step(o.lanes.get(i)));
        self.write(&a.dst, &out, enabled)
    }

    /// `srnd`: random bits are added below the bits that are kept, then the rest is cut off.
    pub(super) fn srnd(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let [x, random] = a.srcs.as_slice() else {
            return Halt::malformed("srnd takes two sources");
        };
        let n = inst.exec.lanes();
        let enabled = self.enabled(inst)?;
        let (x, random) = (self.read(x, n)?, self.read(random, n)?);
        let to_half = match (self.dst_type(&a.dst)?, x.ty) {
            (Type::Hf, Type::F) => true,
            (Type::Ub, Type::Hf) => false,
            (Type::B, Type::Hf) => {
                return Halt::unsupported("the hf8 format, which no platform here has");
            }
            (to, from) => return Halt::malformed(format!("rounding of `{from}` to `{to}`")),
        };
        let out = ChannelBits::each(|i| {
            let (x, r) = (x.lanes.get(i), random.lanes.get(i));
            if to_half {
                random_half(x, r & 0x1FFF)
            } else {
                bf8(x, Some(r & 0xFF))
            }
        });
        self.write(&a.dst, &out, enabled)
    }

    /// `add3.o`: the predicate in front receives whether the exact sum is outside the destination's type; it guards
    /// nothing.
    pub(super) fn add3o(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let n = inst.exec.lanes();
        let enabled = self.exec_mask(inst);
        let ty = self.dst_type(&a.dst)?;
        if !ty.is_int() || ty.bytes() > 4 {
            return Halt::malformed(format!("add3.o into a `{ty}`"));
        }
        let srcs = a
            .srcs
            .iter()
            .map(|s| self.read(s, n))
            .collect::<Result<Vec<_>, _>>()?;
        let (least, most) = range(ty);
        let (mut out, mut overflow) = (ChannelBits::default(), 0);
        for i in bits(enabled) {
            let mut sum = 0i128;
            for s in &srcs {
                sum = sum.wrapping_add(s.int(i)?);
            }
            out.set(i, convert(self.env(), Number::Int(sum), ty, false));
            if !(least..=most).contains(&sum) {
                overflow |= up(1, i as u32);
            }
        }
        self.write(&a.dst, &out, enabled)?;
        let lane = inst.exec.mask.first_lane();
        match inst.pred {
            Some(p) => self.set_pred(p.var, up(overflow, lane), up(enabled, lane)),
            None => Ok(()),
        }
    }

    /// `invm` and `rsqtm`. The specification asks for an approximation; here it is the correctly rounded quotient, and
    /// one over the correctly rounded root, to nearest with denormals kept whatever `%cr0` says. The predicate says
    /// where it is zero, infinite or NaN, and no iteration must follow.
    pub(super) fn seed(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let Some(Dst::Pred(p)) = a.dst2 else {
            return Halt::malformed("the second destination is a predicate");
        };
        let n = inst.exec.lanes();
        let enabled = self.enabled(inst)?;
        let srcs = a
            .srcs
            .iter()
            .map(|s| self.read(s, n))
            .collect::<Result<Vec<_>, _>>()?;
        let double = srcs.iter().any(|s| s.ty == Type::Df);
        let format = if double { Format::Df } else { Format::F };
        let ty = self.dst_type(&a.dst)?;
        let one = Env::PLAIN.of_int(format, 1);
        let (mut out, mut special) = (ChannelBits::default(), 0);
        for i in bits(enabled) {
            let v = srcs
                .iter()
                .map(|s| s.float(i, self.env(), format))
                .collect::<Result<Vec<_>, _>>()?;
            let compute = |op, x, y| Env::PLAIN.compute(op, format, [x, y, 0]);
            let seed = match (inst.op, v.as_slice()) {
                (Opcode::Invm, [x, y]) => compute(FloatOp::Div, *x, *y),
                (Opcode::Rsqtm, [x]) => compute(FloatOp::Div, one, compute(FloatOp::Sqrt, *x, 0)),
                _ => return Halt::malformed("wrong number of sources"),
            };
            let value = format.value(seed);
            if value == 0.0 || !value.is_finite() {
                special |= up(1, i as u32);
            }
            out.set(
                i,
                convert(self.env(), Number::Float(format, seed), ty, false),
            );
        }
        self.write(&a.dst, &out, enabled)?;
        let lane = inst.exec.mask.first_lane();
        self.set_pred(p, up(special, lane), up(enabled, lane))
    }
}

/// An f rounded to nearest even at ten bits of mantissa; denormals become zeros of their sign.
fn tf32(x: u64) -> u64 {
    let (sign, size) = (x & 1 << 31, x & 0x7FFF_FFFF);
    if Format::F.is_nan(x) {
        // The one NaN, as of every operation: integers hold the format, so that its bits are seen.
        return Format::F.nan();
    }
    if size < 0x0080_0000 {
        return sign;
    }
    let odd = size.wrapping_shr(13) & 1;
    sign | (size.wrapping_add(0x0FFF).wrapping_add(odd) & !0x1FFF)
}

/// The upper byte of an hf, rounded to nearest even, or by random bits that are added below it.
fn bf8(x: u64, random: Option<u64>) -> u64 {
    let (sign, size) = (x & 0x8000, x & 0x7FFF);
    if Format::Hf.is_nan(x) {
        return Format::Hf.nan().wrapping_shr(8);
    }
    let size = if size == 0x7C00 {
        size
    } else {
        let odd = size.wrapping_shr(8) & 1;
        size.wrapping_add(random.unwrap_or(odd.wrapping_add(0x7F)))
    };
    (sign | size).wrapping_shr(8)
}

/// An f with 13 random bits added to the end of its mantissa, cut to an hf. What reaches 2^16 is infinite.
fn random_half(x: u64, random: u64) -> u64 {
    let (sign, size) = (x & 1 << 31, x & 0x7FFF_FFFF);
    if size >= 0x7F80_0000 {
        return Env::PLAIN.convert(Format::F, Format::Hf, x);
    }
    let sum = size.wrapping_add(random);
    let half = if sum >= 0x4780_0000 {
        0x7C00
    } else {
        CUT.convert(Format::F, Format::Hf, sum)
    };
    sign.wrapping_shr(16) | half
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_formats() {
        assert_eq!(tf32(0x3F80_1000), 0x3F80_0000);
        assert_eq!(tf32(0x3F80_3000), 0x3F80_4000);
        assert_eq!(tf32(0x8000_0001), 0x8000_0000);
        assert_eq!(bf8(0x3C80, None), 0x3C);
        assert_eq!(bf8(0x3D80, None), 0x3E);
        assert_eq!(bf8(0x7BFF, None), 0x7C);
        assert_eq!(bf8(0x3C01, Some(0xFF)), 0x3D);
        assert_eq!(random_half(0x3F80_0001, 0x1FFF), 0x3C01);
        assert_eq!(random_half(0x3F80_0001, 0), 0x3C00);
        assert_eq!(random_half(0xC77F_FFFF, 1), 0xFC00);
    }
}
