//! One hardware thread with everything an instruction may touch, and its operands.

use visa_runtime::GroupView;

use super::Program;
use super::error::Halt;
use super::float::{Env, Format};
use super::init::Unset;
use super::lanes::{ChannelBits, bit, bits, down, first, up};
use super::number;
use super::state::Thread;
use super::trace::Written;
use crate::isa::{DstRegion, SrcModifier, Type};
use crate::module::*;

/// A source as read: one number a channel.
#[derive(Clone, Copy, Debug)]
pub(super) struct Operand {
    /// Bits.
    pub lanes: ChannelBits,
    /// Type of the bits.
    pub ty: Type,
    /// Not applied yet.
    pub modifier: SrcModifier,
    /// Every channel reads the same element.
    pub scalar: bool,
}

impl Operand {
    fn plain(lanes: ChannelBits, ty: Type, scalar: bool) -> Operand {
        Operand {
            lanes,
            ty,
            modifier: SrcModifier::None,
            scalar,
        }
    }

    /// A channel as an integer, modifier applied.
    pub(super) fn int(&self, i: usize) -> Result<i128, Halt> {
        if !self.ty.is_int() {
            return Halt::unsupported(format!("integer use of a `{}` operand", self.ty));
        }
        Ok(number::integer(self.ty, self.lanes.get(i), self.modifier))
    }

    /// Format of a float operand.
    pub(super) fn format(&self) -> Result<Format, Halt> {
        match Format::of(self.ty) {
            Some(f) => Ok(f),
            None => Halt::unsupported(format!("float use of a `{}` operand", self.ty)),
        }
    }

    /// A channel's bits in its own format, modifier applied.
    pub(super) fn own_float(&self, i: usize) -> Result<(Format, u64), Halt> {
        if self.modifier == SrcModifier::Not {
            return Halt::malformed("`(~)` on a float operand");
        }
        let format = self.format()?;
        let bits = number::modified_float(format, self.lanes.get(i), self.modifier);
        Ok((format, bits))
    }

    /// A channel in a format that holds it exactly.
    pub(super) fn float(&self, i: usize, env: Env, to: Format) -> Result<u64, Halt> {
        let (own, bits) = self.own_float(i)?;
        Ok(env.convert(own, to, bits))
    }
}

/// Decodes one 8-bit restricted float of a `:vf` immediate: sign, 3-bit exponent with bias 3, 4-bit mantissa.
pub(super) fn restricted_float(byte: u8) -> f32 {
    let magnitude = byte & 0x7F;
    let value = if magnitude == 0 {
        0.0
    } else {
        let exponent = i32::from(magnitude / 16).wrapping_sub(3);
        (1.0 + f32::from(magnitude % 16) / 16.0) * 2f32.powi(exponent)
    };
    if byte & 0x80 != 0 { -value } else { value }
}

/// A hardware thread while it executes.
pub(super) struct Machine<'p, 'g, 'v> {
    pub program: &'p Program,
    pub group: &'g mut GroupView<'v>,
    /// Number in the group.
    pub number: u32,
    pub t: &'g mut Thread,
    /// Index of the instruction.
    pub at: usize,
    /// What it wrote, if there is a trace.
    pub written: Option<Written>,
}

impl Machine<'_, '_, '_> {
    /// Bytes of a general register.
    pub(super) fn grf(&self) -> usize {
        self.program.kernel.target().grf() as usize
    }

    /// Rounding and denormals.
    pub(super) fn env(&self) -> Env {
        let root = self.program.kernel.root_offset(VarId::CR0);
        match self
            .program
            .layout
            .byte_offset(root.root, root.offset as usize, 4)
        {
            Ok(at) => Env(self.t.get(at, 4) as u32),
            Err(_) => Env(0),
        }
    }

    /// Channels that the execution mask enables.
    pub(super) fn exec_mask(&self, inst: &Inst) -> u32 {
        let all = first(inst.exec.lanes());
        if inst.exec.mask.no_mask {
            all
        } else {
            down(self.t.control.active, inst.exec.mask.first_lane()) & all
        }
    }

    /// Channels that execution mask and guard enable.
    pub(super) fn enabled(&self, inst: &Inst) -> Result<u32, Halt> {
        let exec = self.exec_mask(inst);
        match inst.pred {
            Some(p) => Ok(exec & self.guard(inst, p)?),
            None => Ok(exec),
        }
    }

    /// A predicate as channels of the instruction.
    pub(super) fn guard(&self, inst: &Inst, p: Predicate) -> Result<u32, Halt> {
        let (value, width) = self.pred(p.var)?;
        let whole = first(width);
        let truth = |yes: bool| if yes { u32::MAX } else { 0 };
        let channels = match p.control {
            PredControl::Any => truth(value != 0),
            PredControl::All => truth(value == whole),
            PredControl::Lanes if width == 1 => truth(value != 0),
            PredControl::Lanes => down(value, inst.exec.mask.first_lane()),
        };
        let channels = if p.inverted { !channels } else { channels };
        Ok(channels & first(inst.exec.lanes()))
    }

    /// Bits of a predicate variable, and how many it has.
    pub(super) fn pred(&self, p: PredId) -> Result<(u32, u32), Halt> {
        let index = (p.0 as usize).wrapping_sub(1);
        let width = self.program.kernel.module().vars.pred_bits(p);
        match (self.t.preds.get(index), width) {
            (Some(&bits), Some(width)) => Ok((bits & first(width), width)),
            _ => Halt::malformed("unknown predicate"),
        }
    }

    /// Writes those bits of a predicate that `mask` has; bits past the variable do not exist.
    pub(super) fn set_pred(&mut self, p: PredId, value: u32, mask: u32) -> Result<(), Halt> {
        let (old, width) = self.pred(p)?;
        let mask = mask & first(width);
        let new = (old & !mask) | (value & mask);
        if let Some(bits) = self.t.preds.get_mut((p.0 as usize).wrapping_sub(1)) {
            *bits = new;
        }
        if let Some(init) = &mut self.t.init {
            init.set_pred(p, Unset::NONE, mask);
        }
        if let Some(w) = &mut self.written {
            w.pred(p, new, mask);
        }
        Ok(())
    }

    /// Element type of a general variable.
    pub(super) fn var_type(&self, v: VarId) -> Result<Type, Halt> {
        match self.program.kernel.module().vars.ty(v) {
            Some(ty) => Ok(ty),
            None => Halt::malformed("unknown variable"),
        }
    }

    /// Byte of a variable's root at which an origin lies.
    fn start(&self, o: Origin, ty: Type) -> usize {
        let place = self.program.kernel.root_offset(o.var);
        let row = usize::from(o.row).saturating_mul(self.grf());
        let col = usize::from(o.col).saturating_mul(ty.bytes() as usize);
        (place.offset as usize)
            .saturating_add(row)
            .saturating_add(col)
    }

    /// Position in the file of an element `element` elements past an origin.
    pub(super) fn element(&self, o: Origin, ty: Type, element: usize) -> Result<usize, Halt> {
        let size = ty.bytes() as usize;
        self.bytes_past(o, ty, element.saturating_mul(size), size)
    }

    /// Position in the file of `size` bytes, `bytes` past an origin.
    pub(super) fn bytes_past(
        &self,
        o: Origin,
        ty: Type,
        bytes: usize,
        size: usize,
    ) -> Result<usize, Halt> {
        let at = self.start(o, ty).saturating_add(bytes);
        let root = self.program.kernel.root_offset(o.var).root;
        self.program.layout.byte_offset(root, at, size)
    }

    /// Reads a source for `n` channels.
    pub(super) fn read(&mut self, s: &Src, n: u32) -> Result<Operand, Halt> {
        let n = n as usize;
        match s {
            Src::General {
                origin,
                region,
                modifier,
            } => {
                let ty = self.var_type(origin.var)?;
                let mut lanes = ChannelBits::default();
                for i in 0..n {
                    let element = region.element(i as u32) as usize;
                    lanes.set(i, self.read_element(*origin, ty, element)?);
                }
                let still = n == 1 || (region.vstride == 0 && region.hstride == 0);
                Ok(Operand {
                    lanes,
                    ty,
                    modifier: *modifier,
                    scalar: still,
                })
            }
            Src::Indirect {
                indirect,
                region,
                modifier,
            } => {
                let mut lanes = ChannelBits::default();
                for i in 0..n {
                    lanes.set(i, self.read_indirect(indirect, *region, i)?);
                }
                let still = match region {
                    IndirectRegion::Single(r) => r.vstride == 0 && r.hstride == 0,
                    IndirectRegion::VxH { .. } => false,
                };
                Ok(Operand {
                    modifier: *modifier,
                    ..Operand::plain(lanes, indirect.ty, n == 1 || still)
                })
            }
            Src::Imm { bits, ty } => Ok(immediate(*bits, *ty)),
            Src::Pred(p) => {
                let (value, _) = self.pred(*p)?;
                Ok(Operand::plain(
                    ChannelBits::all(value.into()),
                    Type::Ud,
                    true,
                ))
            }
            Src::Address { addr, index, .. } => {
                let mut lanes = ChannelBits::default();
                for i in 0..n {
                    let k = usize::from(*index).saturating_add(i);
                    lanes.set(i, u64::from(self.address(*addr, k)?));
                }
                Ok(Operand::plain(lanes, Type::Uw, n == 1))
            }
            Src::AddressOf { var, offset } => {
                let place = self.program.kernel.root_offset(*var);
                let at = self
                    .program
                    .layout
                    .address(place.root)
                    .wrapping_add(place.offset as usize)
                    .wrapping_add(*offset as usize);
                Ok(Operand::plain(
                    ChannelBits::all(u64::from(at as u16)),
                    Type::Uw,
                    true,
                ))
            }
            Src::AddressOfSurface { .. } | Src::Surface(..) | Src::Sampler(..) => {
                Halt::unsupported("state operand")
            }
        }
    }

    fn read_element(&self, o: Origin, ty: Type, element: usize) -> Result<u64, Halt> {
        let k = usize::from(o.col).saturating_add(element);
        match o.var {
            VarId::CE0 => Ok(self.t.control.active.into()),
            VarId::TSC => Ok(match k {
                0 => self.group.tsc() & 0xFFFF_FFFF,
                1 => self.group.tsc().wrapping_shr(32),
                _ => 0,
            }),
            _ => Ok(self
                .t
                .get(self.element(o, ty, element)?, ty.bytes() as usize)),
        }
    }

    fn address(&self, a: AddrId, k: usize) -> Result<u16, Halt> {
        match self.t.addrs.get(a.0 as usize).and_then(|a| a.get(k)) {
            Some(&element) => Ok(element),
            None => Halt::malformed("address element out of range"),
        }
    }

    /// Where an indirect access of one channel lies, if inside what addresses reach. Addresses have 16 bits, and so
    /// has every sum with them.
    pub(super) fn indirect_at(
        &self,
        i: &Indirect,
        k: usize,
        elements: usize,
    ) -> Result<Option<usize>, Halt> {
        let size = i.ty.bytes() as usize;
        let base = self.address(i.addr, usize::from(i.index).saturating_add(k))?;
        let at = base
            .wrapping_add(i.offset as u16)
            .wrapping_add(elements.wrapping_mul(size) as u16);
        let at = usize::from(at);
        Ok((at.saturating_add(size) <= self.program.layout.addressable).then_some(at))
    }

    fn read_indirect(
        &self,
        indirect: &Indirect,
        region: IndirectRegion,
        i: usize,
    ) -> Result<u64, Halt> {
        let (k, elements) = region.address_and_element(i);
        let at = self.indirect_at(indirect, k, elements)?;
        Ok(at.map_or(0, |at| self.t.get(at, indirect.ty.bytes() as usize)))
    }

    /// Element type of a destination that holds numbers.
    pub(super) fn dst_type(&self, d: &Dst) -> Result<Type, Halt> {
        match d {
            Dst::General { origin, .. } => self.var_type(origin.var),
            Dst::Indirect { indirect, .. } => Ok(indirect.ty),
            Dst::Address { .. } => Ok(Type::Uw),
            Dst::Surface(..) | Dst::Sampler(..) => Ok(Type::Ud),
            Dst::Pred(_) => Halt::malformed("predicate destination"),
        }
    }

    /// Writes the enabled channels, in ascending order, as bits of the destination's type.
    pub(super) fn write(
        &mut self,
        d: &Dst,
        values: &ChannelBits,
        enabled: u32,
    ) -> Result<(), Halt> {
        for i in bits(enabled) {
            let v = values.get(i);
            match d {
                Dst::General { origin, .. } if origin.var == VarId::NULL => {}
                Dst::General { origin, region } => {
                    let ty = self.var_type(origin.var)?;
                    let at = self.element(*origin, ty, stride(*region, i))?;
                    self.store(at, ty, v);
                }
                Dst::Indirect { indirect, region } => {
                    let at = self.indirect_at(indirect, 0, stride(*region, i))?;
                    if let Some(at) = at {
                        self.store(at, indirect.ty, v);
                    }
                }
                Dst::Address { addr, index, .. } => {
                    let k = usize::from(*index).saturating_add(i);
                    let a = self.t.addrs.get_mut(addr.0 as usize);
                    let Some(element) = a.and_then(|a| a.get_mut(k)) else {
                        return Halt::malformed(
                            "address destination is shorter than the execution size",
                        );
                    };
                    *element = v as u16;
                    if let Some(init) = &mut self.t.init {
                        init.set_address(*addr, k, Unset::NONE);
                    }
                    if let Some(w) = &mut self.written {
                        w.address(*addr, k, v as u16);
                    }
                }
                Dst::Pred(p) => self.set_pred(*p, up(v as u32 & 1, i as u32), up(1, i as u32))?,
                Dst::Surface(..) | Dst::Sampler(..) => return Halt::unsupported("state operand"),
            }
        }
        Ok(())
    }

    /// Stores one element in the file.
    pub(super) fn store(&mut self, at: usize, ty: Type, v: u64) {
        self.store_bytes(at, ty.bytes() as usize, v);
    }

    /// Stores up to 8 bytes in the file.
    pub(super) fn store_bytes(&mut self, at: usize, bytes: usize, v: u64) {
        self.t.set(at, bytes, v);
        if let Some(init) = &mut self.t.init {
            init.clear(at, bytes);
        }
        if let Some(w) = &mut self.written {
            w.register(&self.program.layout, at, bytes, self.t.get(at, bytes));
        }
    }

    /// A scalar integer operand, as bits of 64.
    pub(super) fn scalar(&mut self, s: &Src) -> Result<u64, Halt> {
        Ok(self.read(s, 1)?.int(0)? as u64)
    }

    /// A scalar integer at an origin.
    pub(super) fn scalar_at(&mut self, o: Origin) -> Result<u64, Halt> {
        let ty = self.var_type(o.var)?;
        let bits = self.read_element(o, ty, 0)?;
        if !ty.is_int() {
            return Halt::unsupported(format!("integer use of a `{ty}` operand"));
        }
        Ok(number::integer(ty, bits, SrcModifier::None) as u64)
    }

    /// Element `i` of `bytes` bytes of a message payload; `%null` reads as zero.
    pub(super) fn payload(&self, raw: Raw, at: usize, i: usize, bytes: usize) -> Result<u64, Halt> {
        if raw.is_null() {
            return Ok(0);
        }
        let at = self.raw(raw, at, i, bytes)?;
        Ok(self.t.get(at, bytes))
    }

    /// Position of element `i` of a payload component at byte `at`.
    pub(super) fn raw(&self, raw: Raw, at: usize, i: usize, bytes: usize) -> Result<usize, Halt> {
        let place = self.program.kernel.root_offset(raw.var);
        let offset = (place.offset as usize)
            .saturating_add(raw.offset as usize)
            .saturating_add(at)
            .saturating_add(i.saturating_mul(bytes));
        self.program.layout.byte_offset(place.root, offset, bytes)
    }

    /// Writes element `i` of a message payload; nothing for `%null`.
    pub(super) fn set_payload(
        &mut self,
        raw: Raw,
        at: usize,
        i: usize,
        bytes: usize,
        v: u64,
    ) -> Result<(), Halt> {
        if raw.is_null() {
            return Ok(());
        }
        let at = self.raw(raw, at, i, bytes)?;
        self.store_bytes(at, bytes, v);
        Ok(())
    }

    /// Writes the enabled channels of a payload component at byte `at`.
    pub(super) fn set_payload_lanes(
        &mut self,
        raw: Raw,
        at: usize,
        bytes: usize,
        values: &ChannelBits,
        enabled: u32,
    ) -> Result<(), Halt> {
        for i in bits(enabled) {
            self.set_payload(raw, at, i, bytes, values.get(i))?;
        }
        Ok(())
    }
}

/// Element that a channel writes.
fn stride(region: DstRegion, i: usize) -> usize {
    usize::from(region.hstride).saturating_mul(i)
}

/// An immediate; packed ones repeat after 8 or 4 channels.
fn immediate(bits: u64, ty: Type) -> Operand {
    let part = |i: usize, width: usize, parts: usize| {
        let at = i.checked_rem(parts).unwrap_or(0).wrapping_mul(width);
        bits.wrapping_shr(at as u32)
    };
    match ty {
        Type::V => {
            let lanes = ChannelBits::each(|i| {
                let nibble = part(i, 4, 8) & 15;
                if bit(nibble as u32, 3) {
                    nibble | 0xFFF0
                } else {
                    nibble
                }
            });
            Operand::plain(lanes, Type::W, false)
        }
        Type::Uv => Operand::plain(ChannelBits::each(|i| part(i, 4, 8) & 15), Type::Uw, false),
        Type::Vf => {
            let lane = |i| u64::from(restricted_float(part(i, 8, 4) as u8).to_bits());
            Operand::plain(ChannelBits::each(lane), Type::F, false)
        }
        _ => Operand::plain(ChannelBits::all(bits & number::mask(ty.bytes())), ty, true),
    }
}

impl IndirectRegion {
    /// Which address element a channel uses, counted from the first, and how many elements beyond it.
    pub(super) fn address_and_element(self, i: usize) -> (usize, usize) {
        match self {
            IndirectRegion::Single(r) => (0, r.element(i as u32) as usize),
            IndirectRegion::VxH { width, hstride } => {
                let width = usize::from(width.max(1));
                let within = i.checked_rem(width).unwrap_or(0);
                let k = i.checked_div(width).unwrap_or(0);
                (k, within.saturating_mul(usize::from(hstride)))
            }
        }
    }
}
