//! Typed surfaces and the sampler. What a texel is, where coordinates lead and how texels are mixed belongs to the runtime's
//! memory, which compiled code asks as well; operands, channels and faults are done here.

use visa_runtime::ImageLane;
use visa_runtime::abi::image as code;

use super::access::{Atomic, Memory, Space};
use super::error::Halt;
use super::float::{Env, Format};
use super::lanes::{Lanes, bits, up};
use super::lsc::bindless;
use super::machine::Machine;
use super::message::surface_index;
use super::number::mask;
use crate::isa::lsc::{AddrModel, DataSize, LscOp};
use crate::isa::sampler::{
    IGNORED_FLAGS, LOAD_MCS, LOD, OFFSET_SHIFTS, PIXEL_NULL_MASK, QUAD, SAMPLEINFO, read_params,
    refused,
};
use crate::isa::{AtomicOp, Opcode, Type};
use crate::module::*;

/// A message after its operands were read.
struct Message {
    op: u32,
    channels: Channels,
    memory: Memory,
    sampler: u32,
    enabled: u32,
    at: [Lanes; 3],
}

impl Message {
    fn at(&self, lane: usize) -> [u32; 3] {
        let [u, v, r] = &self.at;
        [u, v, r].map(|c| c.get(lane) as u32)
    }
}

impl Machine<'_, '_, '_> {
    /// The memory of a surface variable that has texels.
    pub fn image_memory(&mut self, s: SurfaceId) -> Result<Memory, Halt> {
        let memory = self.surface(s)?;
        Self::with_texels(memory)
    }

    fn with_texels(memory: Memory) -> Result<Memory, Halt> {
        if memory.space != Space::Surface {
            return Halt::malformed("an image message to memory without texels");
        }
        Ok(memory)
    }

    fn full_width(&self, raw: Raw) -> Result<(), Halt> {
        if !raw.is_null() && self.var_type(raw.var)?.bytes() == 2 {
            return Halt::unsupported("16-bit payloads of image messages");
        }
        Ok(())
    }

    /// A parameter of a sampler message: dwords, half floats, or words of fetches.
    fn parameter(&self, op: Opcode, raw: Raw, lanes: u32) -> Result<Lanes, Halt> {
        if raw.is_null() {
            return Ok(Lanes::default());
        }
        match (self.var_type(raw.var)?, op) {
            (Type::Hf, Opcode::Sample3d | Opcode::Gather43d) => {
                let half = self.payload_lanes(raw, 0, lanes, 2)?;
                let float = |i: usize| Env::PLAIN.convert(Format::Hf, Format::F, half.get(i));
                Ok(Lanes::each(float))
            }
            (Type::Uw | Type::W, Opcode::Load3d) => self.payload_lanes(raw, 0, lanes, 2),
            _ => self.coordinate(raw, lanes),
        }
    }

    /// Results of a sampler message, in dwords or words; the distance of channels in bytes.
    fn set_sampled(
        &mut self,
        inst: &Inst,
        m: &Message,
        dst: Raw,
        values: &[Lanes; 4],
    ) -> Result<usize, Halt> {
        let ty = match dst.is_null() {
            true => Type::Ud,
            false => self.var_type(dst.var)?,
        };
        let narrow = matches!(ty, Type::Hf | Type::Uw | Type::W) && inst.op != Opcode::Info3d;
        if !narrow {
            self.set_texels(inst, m, dst, values)?;
            return Ok(self.channel_stride(inst));
        }
        let stride = (inst.exec.lanes() as usize)
            .saturating_mul(2)
            .max(self.grf());
        for (position, channel) in m.channels.iter().enumerate() {
            let Some(v) = values.get(channel as usize) else {
                return Halt::malformed("more than four channels");
            };
            let v = Lanes::each(|i| match ty {
                Type::Hf => Env::PLAIN.convert(Format::F, Format::Hf, v.get(i)),
                _ => v.get(i) & mask(2),
            });
            self.set_payload_lanes(dst, position.saturating_mul(stride), 2, &v, m.enabled)?;
        }
        Ok(stride)
    }

    /// There is one level: coordinates of lanes that ask for another are outside, further than an offset reaches.
    fn at_level(u: Lanes, level: Lanes) -> Lanes {
        let nowhere = u64::from(u32::MAX.wrapping_sub(8));
        Lanes::each(|i| if level.get(i) == 0 { u.get(i) } else { nowhere })
    }

    fn coordinate(&self, raw: Raw, lanes: u32) -> Result<Lanes, Halt> {
        self.full_width(raw)?;
        self.payload_lanes(raw, 0, lanes, 4)
    }

    /// Reports lanes whose coordinates are outside, for messages that may not go there.
    fn check_image(&mut self, inst: &Inst, m: &Message) -> Result<(), Halt> {
        let mut outside = 0;
        for lane in bits(m.enabled) {
            if self.group.image_outside(m.op, m.memory.surface, m.at(lane)) {
                outside |= up(1, lane as u32);
            }
        }
        let [u, ..] = &m.at;
        self.report(inst, m.memory, 0, outside, u)
    }

    /// Reads and writes; four channels a lane.
    fn texels(&mut self, m: &Message, data: &[Lanes; 4]) -> [Lanes; 4] {
        let mut out = [Lanes::default(); 4];
        for lane in bits(m.enabled) {
            let asked = ImageLane {
                op: m.op,
                channels: u32::from(m.channels.0),
                at: m.at(lane),
                data: data.map(|d| d.get(lane) as u32),
            };
            let texel = self.group.image(m.memory.surface, m.sampler, &asked);
            for (to, v) in out.iter_mut().zip(texel) {
                to.set(lane, v.into());
            }
        }
        out
    }

    fn channel_stride(&self, inst: &Inst) -> usize {
        (inst.exec.lanes() as usize)
            .saturating_mul(4)
            .max(self.grf())
    }

    fn set_texels(
        &mut self,
        inst: &Inst,
        m: &Message,
        dst: Raw,
        values: &[Lanes; 4],
    ) -> Result<(), Halt> {
        self.full_width(dst)?;
        let stride = self.channel_stride(inst);
        for (position, channel) in m.channels.iter().enumerate() {
            let at = position.saturating_mul(stride);
            let Some(v) = values.get(channel as usize) else {
                return Halt::malformed("more than four channels");
            };
            self.set_payload_lanes(dst, at, 4, v, m.enabled)?;
        }
        Ok(())
    }

    fn typed_message(
        &mut self,
        inst: &Inst,
        memory: Memory,
        op: u32,
        channels: Channels,
        coords: &[Raw; 4],
    ) -> Result<Message, Halt> {
        let [u, v, r, level] = *coords;
        let lanes = inst.exec.lanes();
        // A missing level is the first.
        let level = self.coordinate(level, lanes)?;
        let u = Self::at_level(self.coordinate(u, lanes)?, level);
        Ok(Message {
            op,
            channels,
            memory,
            sampler: 0,
            enabled: self.enabled(inst)?,
            at: [u, self.coordinate(v, lanes)?, self.coordinate(r, lanes)?],
        })
    }

    /// `gather4_typed`, `scatter4_typed`.
    pub fn typed(
        &mut self,
        inst: &Inst,
        surface: SurfaceId,
        channels: Channels,
        coords: &[Raw; 4],
        data: Raw,
    ) -> Result<(), Halt> {
        let store = inst.op == Opcode::Scatter4Typed;
        let memory = self.image_memory(surface)?;
        self.texel_access(inst, memory, channels, coords, (data, store))
    }

    fn texel_access(
        &mut self,
        inst: &Inst,
        memory: Memory,
        channels: Channels,
        coords: &[Raw; 4],
        (data, store): (Raw, bool),
    ) -> Result<(), Halt> {
        let op = if store { code::WRITE } else { code::READ };
        let m = self.typed_message(inst, memory, op, channels, coords)?;
        if channels.count() == 0 {
            return Halt::malformed("no channel is enabled");
        }
        let mut values = [Lanes::default(); 4];
        if store {
            self.full_width(data)?;
            let stride = self.channel_stride(inst);
            for (position, channel) in channels.iter().enumerate() {
                let at = position.saturating_mul(stride);
                let v = self.payload_lanes(data, at, inst.exec.lanes(), 4)?;
                if let Some(to) = values.get_mut(channel as usize) {
                    *to = v;
                }
            }
        }
        self.check_image(inst, &m)?;
        let texels = self.texels(&m, &values);
        if store {
            return Ok(());
        }
        self.set_texels(inst, &m, data, &texels)
    }

    /// Atomics on texels of `bytes` bytes, lane after lane.
    pub fn texel_atomic(
        &mut self,
        inst: &Inst,
        memory: Memory,
        coords: &[Raw; 4],
        atomic: &Atomic,
        bytes: u32,
    ) -> Result<(), Halt> {
        let op = atomic.op;
        let message = match bytes {
            2 => code::ATOMIC_SHORT,
            _ => code::ATOMIC,
        };
        let m = self.typed_message(inst, memory, message, Channels(1), coords)?;
        let lanes = inst.exec.lanes();
        let mut operands = [Lanes::default(); 2];
        let sources = [atomic.first, atomic.second];
        for (to, raw) in operands.iter_mut().zip(sources).take(op.sources()) {
            if raw.is_null() {
                return Halt::malformed("an atomic operand is missing");
            }
            let v = self.coordinate(raw, lanes)?;
            *to = Lanes::each(|i| v.get(i) & mask(bytes));
        }
        self.check_image(inst, &m)?;
        let [first, second] = operands;
        let mut out = [Lanes::default(); 4];
        for lane in bits(m.enabled) {
            let (x, y) = (first.get(lane), second.get(lane));
            let new = |old: u64| super::atomic::result(op, bytes, old, x, y);
            let change = |old: u32| new(old.into()) as u32;
            let old = self
                .group
                .image_update(m.memory.surface, m.at(lane), bytes, change);
            if let (Some(old), Some(to)) = (old, out.first_mut()) {
                let back = if op == AtomicOp::PreDec {
                    change(old)
                } else {
                    old
                };
                to.set(lane, back.into());
            }
        }
        self.set_texels(inst, &m, atomic.dst, &out)
    }

    /// `lsc_*.tgm`.
    pub fn lsc_typed(&mut self, inst: &Inst, t: &LscTyped) -> Result<(), Halt> {
        let index = match &t.surface {
            LscSurface::Imm(n) => *n as u32,
            LscSurface::Var(o) => self.scalar_at(*o)? as u32,
            LscSurface::None => return Halt::malformed("no surface"),
        };
        // It may bring something to a cache, which nobody can see, and cannot fault.
        if t.op == LscOp::LoadQuad && t.data.is_null() {
            return Ok(());
        }
        let memory = match t.model {
            AddrModel::Bti => surface_index(index)?,
            // Scratch has no texels; its entry comes before those of the binding table, where no image is.
            _ => bindless(index),
        };
        let memory = Self::with_texels(memory)?;
        match t.op {
            LscOp::Atomic(op) => {
                let atomic = Atomic {
                    op,
                    first: t.src1,
                    second: t.src2,
                    dst: t.data,
                    register: 4,
                };
                let bytes = if t.data_size == DataSize::D16c32 {
                    2
                } else {
                    4
                };
                self.texel_atomic(inst, memory, &t.coords, &atomic, bytes)
            }
            _ => {
                let data = (t.data, t.op == LscOp::StoreQuad);
                self.texel_access(inst, memory, t.channels, &t.coords, data)
            }
        }
    }

    /// Texels to move along u, v and r, and whether there may be any.
    fn texel_offsets(
        &mut self,
        s: &Sample,
        each: Option<[Raw; 2]>,
        lanes: u32,
    ) -> Result<Option<[Lanes; 3]>, Halt> {
        let all = match &s.aoffimmi {
            Some(src) => self.scalar(src)? & 0xFFF,
            None => 0,
        };
        let immediate = matches!(s.aoffimmi, None | Some(Src::Imm { .. })) && all == 0;
        match each {
            None if immediate => Ok(None),
            None => Ok(Some(OFFSET_SHIFTS.map(|at| {
                let four = all.wrapping_shr(at) & 0xF;
                // Bit 3 is the sign.
                let offset = if four < 8 {
                    four
                } else {
                    four.wrapping_sub(16) & mask(4)
                };
                Lanes::all(offset)
            }))),
            Some([u, v]) if immediate => Ok(Some([
                self.coordinate(u, lanes)?,
                self.coordinate(v, lanes)?,
                Lanes::default(),
            ])),
            Some(_) => Halt::unsupported("texel offsets of both kinds"),
        }
    }

    /// How far the lane of such a rank in each four is from their first one, for all four. Lanes count that no mask enables.
    fn gradient(c: &Lanes, rank: usize) -> Lanes {
        let float = |i: usize| f32::from_bits(c.get(i) as u32);
        Lanes::each(|i| {
            let first = i & !(QUAD as usize).wrapping_sub(1);
            (float(first.wrapping_add(rank)) - float(first))
                .to_bits()
                .into()
        })
    }

    /// `sample_*`, `sample4*`, `lod`, `load_*`, `resinfo`, `sampleinfo`.
    pub fn sample(&mut self, inst: &Inst, s: &Sample) -> Result<(), Halt> {
        let words = match s.params.first() {
            Some(raw) if !raw.is_null() => self.var_type(raw.var)?.bytes() == 2,
            _ => false,
        };
        let Some(params) = read_params(inst.op, s.variant, words) else {
            return Halt::malformed("an unknown sampler message");
        };
        if let Some(why) = refused(inst.op, s.variant, s.channels.0, inst.exec.lanes()) {
            return Halt::unsupported(why);
        }
        if s.flags & !(IGNORED_FLAGS | PIXEL_NULL_MASK) != 0 {
            return Halt::malformed("an unknown suffix of a sampler message");
        }
        let lanes = inst.exec.lanes();
        let sampler = match s.sampler {
            Some(id) => match self.t.samplers.get(id.0 as usize).and_then(|v| v.first()) {
                Some(&index) => index,
                None => return Halt::malformed("unknown sampler"),
            },
            None => 0,
        };
        let param = |k: usize| s.params.get(k).copied().unwrap_or(Raw::NULL);
        let [u, v, r] = params.coords.map(param);
        let mut at = [
            self.parameter(inst.op, u, lanes)?,
            self.parameter(inst.op, v, lanes)?,
            self.parameter(inst.op, r, lanes)?,
        ];
        if let Some(level) = params.level {
            let level = self.parameter(inst.op, param(level), lanes)?;
            let [u, ..] = &mut at;
            *u = Self::at_level(*u, level);
        }
        let reference = match params.reference {
            Some(k) => self.parameter(inst.op, param(k), lanes)?,
            None => Lanes::default(),
        };
        let mut offsets = self.texel_offsets(s, params.offsets.map(|o| o.map(param)), lanes)?;
        if inst.op == Opcode::Sample3d && s.variant == LOD {
            // Texels may be moved, distances stay.
            offsets = Some(at.map(|c| Self::gradient(&c, 2)));
            at = at.map(|c| Self::gradient(&c, 1));
        }
        let m = Message {
            op: match (inst.op, &offsets) {
                (Opcode::Sample3d, _) if s.variant == LOD => code::LOD,
                (Opcode::Sample3d, _) if params.reference.is_some() => code::COMPARE,
                (Opcode::Gather43d, _) if params.reference.is_some() => code::GATHER_COMPARE,
                (Opcode::Sample3d, None) => code::SAMPLE,
                (Opcode::Sample3d, Some(_)) => code::SAMPLE_OFFSET,
                (Opcode::Load3d, None) => code::FETCH,
                (Opcode::Load3d, Some(_)) => code::FETCH_OFFSET,
                (Opcode::Gather43d, _) => code::GATHER,
                _ if s.variant == SAMPLEINFO => code::SAMPLES,
                _ => code::INFO,
            },
            channels: s.channels,
            memory: self.image_memory(s.surface)?,
            sampler,
            enabled: self.enabled(inst)?,
            at,
        };
        if params.reference.is_some() {
            self.check_image(inst, &m)?;
        }
        let [u, v, r] = offsets.unwrap_or_default();
        // Without samples there is no data that says where they are.
        let texels = match (inst.op, s.variant) {
            (Opcode::Load3d, LOAD_MCS) => [Lanes::default(); 4],
            _ => self.texels(&m, &[u, v, r, reference]),
        };
        let m = match inst.op {
            Opcode::Gather43d if m.channels.count() != 1 => {
                return Halt::malformed("four texels of other than one channel");
            }
            Opcode::Gather43d => Message {
                channels: Channels(0xF),
                ..m
            },
            _ => m,
        };
        let stride = self.set_sampled(inst, &m, s.dst, &texels)?;
        // No page does not exist: every lane has its bit.
        if s.flags & PIXEL_NULL_MASK != 0 && m.enabled != 0 && !s.dst.is_null() {
            let at = (m.channels.count() as usize).saturating_mul(stride);
            let all = up(1, lanes).wrapping_sub(1);
            self.set_payload(s.dst, at, 0, 4, all.into())?;
        }
        Ok(())
    }

    /// `media_ld`, `media_st`: rows of a block, each padded to a power of two of at least four bytes; no mask has a say. Rows of a
    /// field are counted as if there were no others.
    pub fn media(&mut self, inst: &Inst, mem: &Mem) -> Result<(), Halt> {
        let MemKind::Media {
            modifier,
            plane,
            width,
            height,
            x,
            y,
            data,
        } = &mem.kind
        else {
            return Halt::malformed("no 2D block");
        };
        let memory = match *plane {
            0 => self.image_memory(mem.surface)?,
            // A surface that many entries of the binding table further, as the vendor's assembler has it.
            n => match self.t.surface(mem.surface) {
                Some(index) => Self::with_texels(surface_index(index.wrapping_add(n.into()))?)?,
                None => return Halt::malformed("a plane of no entry of the binding table"),
            },
        };
        let rows = match modifier {
            2 | 4 => code::TOP_ROWS,
            3 | 5 => code::BOTTOM_ROWS,
            _ => code::ALL_ROWS,
        };
        let (x, y) = (self.scalar(x)? as u32, self.scalar(y)? as u32);
        let width = u32::from(*width);
        let pitch = width.next_power_of_two().max(4);
        let store = inst.op == Opcode::MediaSt;
        for row in 0..u32::from(*height) {
            for column in (0..pitch).step_by(4) {
                let place = row.wrapping_mul(pitch).wrapping_add(column) as usize;
                let value = if store {
                    self.payload(*data, place, 0, 4)? as u32
                } else {
                    0
                };
                let asked = ImageLane {
                    op: if store {
                        code::BLOCK_WRITE
                    } else {
                        code::BLOCK_READ
                    },
                    channels: 1,
                    at: [x.wrapping_add(column), y.wrapping_add(row), rows],
                    data: [width.saturating_sub(column).min(4), value, 0, 0],
                };
                let [read, ..] = self.group.image(memory.surface, 0, &asked);
                if !store {
                    self.set_payload(*data, place, 0, 4, read.into())?;
                }
            }
        }
        Ok(())
    }
}
