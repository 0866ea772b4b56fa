//! Typed surfaces and the sampler. What a texel is, where coordinates lead and how texels are mixed belongs to the runtime's
//! memory, which compiled code asks as well; operands, channels and faults are done here.

use visa_runtime::ImageLane;
use visa_runtime::abi::image as code;

use super::access::{Memory, Space};
use super::error::Halt;
use super::lanes::{Lanes, bits, up};
use super::machine::Machine;
use super::message::surface_index;
use crate::isa::lsc::LscOp;
use crate::isa::sampler::read_params;
use crate::isa::{AtomicOp, Opcode};
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
    fn image_memory(&mut self, s: SurfaceId) -> Result<Memory, Halt> {
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
        if !level.is_null() {
            return Halt::unsupported("a level of detail");
        }
        let lanes = inst.exec.lanes();
        Ok(Message {
            op,
            channels,
            memory,
            sampler: 0,
            enabled: self.enabled(inst)?,
            at: [
                self.coordinate(u, lanes)?,
                self.coordinate(v, lanes)?,
                self.coordinate(r, lanes)?,
            ],
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

    /// `typed_atomic`, lane after lane.
    pub fn typed_atomic(
        &mut self,
        inst: &Inst,
        surface: SurfaceId,
        op: AtomicOp,
        coords: &[Raw; 4],
        [src0, src1, dst]: [Raw; 3],
    ) -> Result<(), Halt> {
        let memory = self.image_memory(surface)?;
        // The new value of `cmpxchg` comes first in the message, the compare value here.
        let sources = match op {
            AtomicOp::CmpXchg => [src1, src0],
            _ => [src0, src1],
        };
        self.texel_atomic(inst, memory, op, coords, (sources, dst))
    }

    /// Operands with the compare value before the new one.
    fn texel_atomic(
        &mut self,
        inst: &Inst,
        memory: Memory,
        op: AtomicOp,
        coords: &[Raw; 4],
        (sources, dst): ([Raw; 2], Raw),
    ) -> Result<(), Halt> {
        let m = self.typed_message(inst, memory, code::ATOMIC, Channels(1), coords)?;
        let lanes = inst.exec.lanes();
        let mut operands = [Lanes::default(); 2];
        for (to, raw) in operands.iter_mut().zip(sources).take(op.sources()) {
            if raw.is_null() {
                return Halt::malformed("an atomic operand is missing");
            }
            *to = self.coordinate(raw, lanes)?;
        }
        self.check_image(inst, &m)?;
        let [first, second] = operands;
        let mut out = [Lanes::default(); 4];
        for lane in bits(m.enabled) {
            let (x, y) = (first.get(lane), second.get(lane));
            let new = |old: u64| super::atomic::result(op, 4, old, x, y);
            let change = |old: u32| new(old.into()) as u32;
            let old = self
                .group
                .image_update(m.memory.surface, m.at(lane), change);
            if let (Some(old), Some(to)) = (old, out.first_mut()) {
                let back = if op == AtomicOp::PreDec {
                    change(old)
                } else {
                    old
                };
                to.set(lane, back.into());
            }
        }
        self.set_texels(inst, &m, dst, &out)
    }

    /// `lsc_*.tgm`.
    pub fn lsc_typed(&mut self, inst: &Inst, t: &LscTyped) -> Result<(), Halt> {
        let index = match &t.surface {
            LscSurface::Imm(n) => *n as u32,
            LscSurface::Var(o) => self.scalar_at(*o)? as u32,
            LscSurface::None => return Halt::malformed("no surface"),
        };
        let memory = Self::with_texels(surface_index(index)?)?;
        match t.op {
            LscOp::Atomic(op) => {
                let operands = ([t.src1, t.src2], t.data);
                self.texel_atomic(inst, memory, op, &t.coords, operands)
            }
            _ => {
                let data = (t.data, t.op == LscOp::StoreQuad);
                self.texel_access(inst, memory, t.channels, &t.coords, data)
            }
        }
    }

    /// `sample_*`, `load_*`, `resinfo`.
    pub fn sample(&mut self, inst: &Inst, s: &Sample) -> Result<(), Halt> {
        let Some(params) = read_params(inst.op, s.variant) else {
            return Halt::unsupported("this sampler message");
        };
        if s.flags != 0 {
            return Halt::unsupported("suffixes of sampler messages");
        }
        if !matches!(s.aoffimmi, None | Some(Src::Imm { bits: 0, .. })) {
            return Halt::unsupported("texel offsets");
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
            self.coordinate(u, lanes)?,
            self.coordinate(v, lanes)?,
            self.coordinate(r, lanes)?,
        ];
        if let Some(level) = params.level {
            // There is one level; coordinates of the others are outside.
            let level = self.coordinate(param(level), lanes)?;
            let [u, ..] = &mut at;
            let beyond = u64::from(u32::MAX);
            *u = Lanes::each(|i| if level.get(i) == 0 { u.get(i) } else { beyond });
        }
        let m = Message {
            op: match inst.op {
                Opcode::Sample3d => code::SAMPLE,
                Opcode::Load3d => code::FETCH,
                _ => code::INFO,
            },
            channels: s.channels,
            memory: self.image_memory(s.surface)?,
            sampler,
            enabled: self.enabled(inst)?,
            at,
        };
        let texels = self.texels(&m, &[Lanes::default(); 4]);
        self.set_texels(inst, &m, s.dst, &texels)
    }

    /// `media_ld`, `media_st`: rows of a block, each padded to a power of two of at least four bytes; no mask has a say.
    pub fn media(&mut self, inst: &Inst, mem: &Mem) -> Result<(), Halt> {
        let MemKind::Media {
            plane,
            width,
            height,
            x,
            y,
            data,
            ..
        } = &mem.kind
        else {
            return Halt::malformed("no 2D block");
        };
        if *plane != 0 {
            return Halt::unsupported("planes of video surfaces");
        }
        let memory = self.image_memory(mem.surface)?;
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
                    at: [x.wrapping_add(column), y.wrapping_add(row), 0],
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
