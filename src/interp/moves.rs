//! Moves, selections, comparisons, predicates, address registers, and instructions with two results.

use super::check::{function, unknown};
use super::error::Halt;
use super::float::Format;
use super::lanes::{ChannelBits, bit, down, first, up};
use super::machine::{Machine, Operand};
use super::number::{Number, convert, mask};
use crate::isa::{CmpCond, Opcode};
use crate::module::*;

impl Machine<'_, '_, '_> {
    /// A channel of a source as a number, modifier applied.
    fn moved(&self, o: &Operand, i: usize) -> Result<Number, Halt> {
        if o.ty.is_float() {
            let (format, bits) = o.own_float(i)?;
            Ok(Number::Float(format, bits))
        } else {
            o.int(i).map(Number::Int)
        }
    }

    /// Writes what `value` gives for each enabled channel. Values of all channels are computed first.
    fn put(
        &mut self,
        a: &Alu,
        enabled: u32,
        mut value: impl FnMut(&Self, usize) -> Result<Number, Halt>,
    ) -> Result<(), Halt> {
        let (env, ty) = (self.env(), self.dst_type(&a.dst)?);
        let mut out = ChannelBits::default();
        for i in super::lanes::bits(enabled) {
            let number = value(self, i)?;
            out.set(i, convert(env, number, ty, a.sat));
        }
        self.write(&a.dst, &out, enabled)
    }

    /// `mov`.
    pub(super) fn mov(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let [src] = a.srcs.as_slice() else {
            return Halt::malformed("mov takes one source");
        };
        let enabled = self.enabled(inst)?;
        let o = self.read(src, inst.exec.lanes())?;
        self.put(a, enabled, |m, i| m.moved(&o, i))
    }

    /// `movs`: an element for each enabled lane. Predefined surfaces stand for their fixed indices.
    pub(super) fn movs(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let [src] = a.srcs.as_slice() else {
            return Halt::malformed("movs takes one source");
        };
        let (n, enabled) = (inst.exec.lanes(), self.exec_mask(inst));
        let v = match src {
            Src::Surface(s, _) if s.0 < SurfaceId::FIRST_USER => {
                ChannelBits::all(u64::from(match *s {
                    SurfaceId::SLM => 254,
                    SurfaceId::BSS => 252,
                    SurfaceId::SCRATCH => 255,
                    other => other.0,
                }))
            }
            Src::Surface(s, first) => {
                let index = s.0.wrapping_sub(SurfaceId::FIRST_USER);
                state(self.t.surfaces.get(index as usize), *first, n)?
            }
            Src::Sampler(s, first) => state(self.t.samplers.get(s.0 as usize), *first, n)?,
            other => {
                // Shorter numbers become as long as a handle, as in any move.
                let o = self.read(other, n)?;
                let mut v = ChannelBits::default();
                for i in 0..n as usize {
                    v.set(i, o.int(i)? as u64 & mask(4));
                }
                v
            }
        };
        let (variable, first) = match &a.dst {
            Dst::Surface(SurfaceId::BSS, first) => (self.t.surfaces.last_mut(), *first),
            Dst::Surface(s, _) if s.0 < SurfaceId::FIRST_USER => {
                return Halt::malformed("write to a predefined surface");
            }
            Dst::Surface(s, first) => {
                let index = s.0.wrapping_sub(SurfaceId::FIRST_USER);
                (self.t.surfaces.get_mut(index as usize), *first)
            }
            Dst::Sampler(s, first) => (self.t.samplers.get_mut(s.0 as usize), *first),
            d => return self.write(d, &v, enabled),
        };
        let from = usize::from(first);
        let part = variable.and_then(|e| e.get_mut(from..from.saturating_add(n as usize)));
        let Some(part) = part else {
            return Halt::malformed(TOO_MANY);
        };
        for (i, element) in part.iter_mut().enumerate() {
            if bit(enabled, i) {
                *element = v.get(i) as u32;
            }
        }
        if let Some(w) = &mut self.written {
            w.state(matches!(a.dst, Dst::Sampler(..)), v.get(0));
        }
        Ok(())
    }

    /// `sel`: the predicate selects, the execution mask enables.
    pub(super) fn sel(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let [x, y] = a.srcs.as_slice() else {
            return Halt::malformed("sel takes two sources");
        };
        let n = inst.exec.lanes();
        let (x, y) = (self.read(x, n)?, self.read(y, n)?);
        let chosen = match inst.pred {
            Some(p) => self.guard(inst, p)?,
            None => u32::MAX,
        };
        let enabled = self.exec_mask(inst);
        self.put(a, enabled, |m, i| {
            m.moved(if bit(chosen, i) { &x } else { &y }, i)
        })
    }

    /// `min` and `max`: the first source where it is less (greater or equal), else the second; of one NaN and a
    /// number the number. The predicate is dropped, as the vendor's assembler does (docs/visa.md, "Text").
    pub(super) fn min_max(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let [x, y] = a.srcs.as_slice() else {
            return Halt::malformed("min/max take two sources");
        };
        let n = inst.exec.lanes();
        let (x, y) = (self.read(x, n)?, self.read(y, n)?);
        let cond = if inst.op == Opcode::Min {
            CmpCond::Lt
        } else {
            CmpCond::Ge
        };
        let enabled = self.exec_mask(inst);
        self.put(a, enabled, |m, i| {
            let second_is_nan = Format::of(y.ty).is_some_and(|f| f.is_nan(y.lanes.get(i)));
            let first = second_is_nan || m.compare(cond, &x, &y, i)?;
            m.moved(if first { &x } else { &y }, i)
        })
    }

    /// Compares exact values. Of float operands denormals are flushed, each in its own type.
    fn compare(&self, cond: CmpCond, x: &Operand, y: &Operand, i: usize) -> Result<bool, Halt> {
        use std::cmp::Ordering as Is;
        let order = if x.ty.is_float() || y.ty.is_float() {
            if x.ty.is_int() || y.ty.is_int() {
                return Halt::unsupported("integer and float sources in one instruction");
            }
            let env = self.env();
            let value = |o: &Operand| {
                let (format, bits) = o.own_float(i)?;
                Ok(format.value(env.flush(format, bits)))
            };
            value(x)?.partial_cmp(&value(y)?)
        } else {
            Some(x.int(i)?.cmp(&y.int(i)?))
        };
        // Without an order one is a NaN, and only "not equal" holds.
        Ok(match cond {
            CmpCond::Eq => order == Some(Is::Equal),
            CmpCond::Ne => order != Some(Is::Equal),
            CmpCond::Gt => order == Some(Is::Greater),
            CmpCond::Ge => matches!(order, Some(Is::Greater | Is::Equal)),
            CmpCond::Lt => order == Some(Is::Less),
            CmpCond::Le => matches!(order, Some(Is::Less | Is::Equal)),
        })
    }

    /// `cmp`: bits of a predicate, or all ones and zeros.
    pub(super) fn cmp(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let ([x, y], Some(cond)) = (a.srcs.as_slice(), a.cond) else {
            return Halt::malformed("cmp takes a condition and two sources");
        };
        let n = inst.exec.lanes();
        let (x, y) = (self.read(x, n)?, self.read(y, n)?);
        let enabled = self.enabled(inst)?;
        let mut truth = 0u32;
        for i in super::lanes::bits(enabled) {
            if self.compare(cond, &x, &y, i)? {
                truth |= up(1, i as u32);
            }
        }
        if let Dst::Pred(p) = a.dst {
            let lane = inst.exec.mask.first_lane();
            return self.set_pred(p, up(truth, lane), up(enabled, lane));
        }
        let ones = mask(self.dst_type(&a.dst)?.bytes());
        let out = ChannelBits::each(|i| if bit(truth, i) { ones } else { 0 });
        self.write(&a.dst, &out, enabled)
    }

    /// `setp`: a scalar fills a whole 16-bit flag half (32 bits for 32 channels) whatever the mask; a vector gives the
    /// enabled channels their bit 0.
    pub(super) fn setp(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let ([src], Dst::Pred(p)) = (a.srcs.as_slice(), &a.dst) else {
            return Halt::malformed("setp takes a predicate and one source");
        };
        let (n, lane) = (inst.exec.lanes(), inst.exec.mask.first_lane());
        let o = self.read(src, n)?;
        if !o.ty.is_int() {
            return Halt::unsupported("setp from a float");
        }
        if o.scalar {
            let half = lane & 16;
            let all = first(if n <= 16 { 16 } else { 32 });
            let value = o.lanes.get(0) as u32 & all;
            return self.set_pred(*p, up(value, half), up(all, half));
        }
        let mut value = 0;
        for i in 0..n {
            value |= up(o.lanes.get(i as usize) as u32 & 1, i);
        }
        let enabled = self.exec_mask(inst);
        self.set_pred(*p, up(value, lane), up(enabled, lane))
    }

    /// `and or xor not` of predicates: a bit for each enabled lane. The others keep theirs, as the specification has
    /// it and the vendor's assembler arranges it.
    pub(super) fn pred_logic(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let Dst::Pred(p) = a.dst else {
            return Halt::malformed("predicate destination expected");
        };
        let (n, lane) = (inst.exec.lanes(), inst.exec.mask.first_lane());
        let mut args = Vec::new();
        for s in &a.srcs {
            let Src::Pred(q) = s else {
                return Halt::unsupported("predicate and number in one logic instruction");
            };
            let (value, width) = self.pred(*q)?;
            if width == 1 {
                args.push(if value != 0 { first(n) } else { 0 });
            } else if lane.saturating_add(n) > width {
                return Halt::malformed("predicate operand is narrower than the execution size");
            } else {
                args.push(down(value, lane) & first(n));
            }
        }
        let value = match (inst.op, args.as_slice()) {
            (Opcode::Not, [x]) => !x,
            (Opcode::And, [x, y]) => x & y,
            (Opcode::Or, [x, y]) => x | y,
            (Opcode::Xor, [x, y]) => x ^ y,
            _ => return Halt::malformed("wrong number of predicate sources"),
        };
        let enabled = self.exec_mask(inst);
        self.set_pred(p, up(value, lane), up(enabled, lane))
    }

    /// `addr_add`: in 16 bits.
    pub(super) fn addr_add(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let [x, y] = a.srcs.as_slice() else {
            return Halt::malformed("addr_add takes two sources");
        };
        let n = inst.exec.lanes();
        let (x, y) = (self.read(x, n)?, self.read(y, n)?);
        let enabled = self.exec_mask(inst);
        let mut out = ChannelBits::default();
        for i in 0..n as usize {
            let sum = x.int(i)?.wrapping_add(y.int(i)?);
            out.set(i, sum as u64 & mask(2));
        }
        self.write(&a.dst, &out, enabled)
    }

    /// `addc` and `subb`: 32-bit result, then carry or borrow as a number.
    pub(super) fn carry(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let ([x, y], Some(second)) = (a.srcs.as_slice(), &a.dst2) else {
            return Halt::malformed("two destinations and two sources expected");
        };
        let n = inst.exec.lanes();
        let (x, y) = (self.read(x, n)?, self.read(y, n)?);
        let enabled = self.enabled(inst)?;
        let env = self.env();
        let (t, u) = (self.dst_type(&a.dst)?, self.dst_type(second)?);
        let (mut out, mut carries) = (ChannelBits::default(), ChannelBits::default());
        for i in super::lanes::bits(enabled) {
            let (x, y) = (x.int(i)? as u32, y.int(i)? as u32);
            let (v, c) = if inst.op == Opcode::Addc {
                x.overflowing_add(y)
            } else {
                x.overflowing_sub(y)
            };
            out.set(i, convert(env, Number::Int(v.into()), t, false));
            carries.set(i, convert(env, Number::Int(c.into()), u, false));
        }
        self.write(&a.dst, &out, enabled)?;
        self.write(second, &carries, enabled)
    }

    /// `madw`: low dwords of the 64-bit result, high dwords in the next whole registers.
    pub(super) fn madw(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let ([x, y, z], Dst::General { origin, region }) = (a.srcs.as_slice(), &a.dst) else {
            return Halt::malformed("madw takes three sources and a register");
        };
        let n = inst.exec.lanes();
        let (x, y, z) = (self.read(x, n)?, self.read(y, n)?, self.read(z, n)?);
        let enabled = self.enabled(inst)?;
        let (mut low, mut high) = (ChannelBits::default(), ChannelBits::default());
        for i in super::lanes::bits(enabled) {
            let v = x.int(i)?.wrapping_mul(y.int(i)?).wrapping_add(z.int(i)?) as u64;
            low.set(i, v & mask(4));
            high.set(i, v.wrapping_shr(32));
        }
        let rows = (n as usize).wrapping_mul(4).div_ceil(self.grf().max(1));
        let above = Dst::General {
            origin: Origin {
                row: origin.row.saturating_add(rows as u16),
                ..*origin
            },
            region: *region,
        };
        self.write(&a.dst, &low, enabled)?;
        self.write(&above, &high, enabled)
    }

    /// `faddr`: the address of a function, or of a program-scope variable, which the launch puts after the arguments.
    pub(super) fn faddr(&mut self, name: &str, dst: &Dst) -> Result<(), Halt> {
        let function = function(self.program.kernel.module(), name);
        let address = match (function, self.program.inputs.symbols.get(name)) {
            (Some(f), _) => f.address.into(),
            (None, Some(&at)) => {
                let mut bytes = [0; 8];
                for (k, byte) in bytes.iter_mut().enumerate() {
                    *byte = self.group.payload(at.saturating_add(k as u32));
                }
                u64::from_le_bytes(bytes)
            }
            (None, None) => return Halt::unsupported(unknown(name)),
        };
        let number = Number::Int(address.into());
        let v = convert(self.env(), number, self.dst_type(dst)?, false);
        self.write(dst, &ChannelBits::all(v), 1)
    }

    /// Any instruction whose channels are independent.
    pub(super) fn lanewise(&mut self, inst: &Inst, a: &Alu) -> Result<(), Halt> {
        let n = inst.exec.lanes();
        let enabled = self.enabled(inst)?;
        let srcs = a
            .srcs
            .iter()
            .map(|s| self.read(s, n))
            .collect::<Result<Vec<_>, _>>()?;
        let (env, dst) = (self.env(), self.dst_type(&a.dst)?);
        let logic = is_logic(inst.op);
        self.put(a, enabled, |_, i| {
            if logic {
                return super::logic::result(inst.op, a.bfn, &srcs, dst, i).map(Number::Int);
            }
            let channel = super::arith::Channel {
                op: inst.op,
                s: &srcs,
                dst,
                i,
                env,
                sat: a.sat,
            };
            channel.result()
        })
    }
}

const TOO_MANY: &str = "more elements than the state variable has";

/// Elements of a surface or sampler variable.
fn state(variable: Option<&Vec<u32>>, first: u8, n: u32) -> Result<ChannelBits, Halt> {
    let first = usize::from(first);
    match variable.and_then(|v| v.get(first..first.saturating_add(n as usize))) {
        Some(part) => Ok(ChannelBits::each(|i| {
            part.get(i).copied().unwrap_or(0).into()
        })),
        None => Halt::malformed(TOO_MANY),
    }
}

/// Computed bit by bit or on bits, never on floats.
fn is_logic(op: Opcode) -> bool {
    use Opcode as O;
    matches!(
        op,
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
            | O::Fbl
            | O::Fbh
            | O::Bfrev
            | O::Bfe
            | O::Bfi
            | O::Bfn
    )
}
