//! Typed surfaces; [`sampler`] has the messages of the sampler. What a texel is, where coordinates lead and how texels are mixed
//! belongs to the runtime's memory, which compiled code asks as well; operands, channels and faults are done here.

mod sampler;

use visa_runtime::ImageLane;
use visa_runtime::abi::image as code;

use super::access::{Atomic, Memory, Space};
use super::error::Halt;
use super::lanes::{ChannelBits, bits, up};
use super::lsc::bindless;
use super::machine::Machine;
use super::message::surface_index;
use super::number::mask;
use crate::isa::AtomicOp;
use crate::isa::lsc::{AddrModel, DataSize, LscOp};
use crate::module::*;

/// A message after its operands were read.
struct Message {
    op: u32,
    channels: Channels,
    memory: Memory,
    sampler: u32,
    enabled: u32,
    at: [ChannelBits; 3],
}

impl Message {
    fn coordinates(&self, lane: usize) -> [u32; 3] {
        let [u, v, r] = &self.at;
        [u, v, r].map(|c| c.get(lane) as u32)
    }
}

impl Machine<'_, '_, '_> {
    /// The memory of a surface variable that has texels.
    pub(super) fn image_memory(&mut self, s: SurfaceId) -> Result<Memory, Halt> {
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

    /// There is one level: coordinates of lanes that ask for another are outside, further than an offset reaches.
    fn at_level(u: ChannelBits, level: ChannelBits) -> ChannelBits {
        let nowhere = u64::from(u32::MAX.wrapping_sub(8));
        ChannelBits::each(|i| if level.get(i) == 0 { u.get(i) } else { nowhere })
    }

    fn coordinate(&self, raw: Raw, lanes: u32) -> Result<ChannelBits, Halt> {
        self.full_width(raw)?;
        self.payload_lanes(raw, 0, lanes, 4)
    }

    /// Reports lanes whose coordinates are outside, for messages that may not go there.
    fn check_image(&mut self, inst: &Inst, m: &Message) -> Result<(), Halt> {
        let mut outside = 0;
        for lane in bits(m.enabled) {
            if self
                .group
                .image_outside(m.op, m.memory.surface, m.coordinates(lane))
            {
                outside |= up(1, lane as u32);
            }
        }
        let [u, ..] = &m.at;
        self.report(inst, m.memory, 0, outside, u)
    }

    /// Reads and writes; four channels a lane.
    fn texels(&mut self, m: &Message, data: &[ChannelBits; 4]) -> [ChannelBits; 4] {
        let mut out = [ChannelBits::default(); 4];
        for lane in bits(m.enabled) {
            let asked = ImageLane {
                op: m.op,
                channels: u32::from(m.channels.0),
                at: m.coordinates(lane),
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
        values: &[ChannelBits; 4],
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
    pub(super) fn typed(
        &mut self,
        inst: &Inst,
        surface: SurfaceId,
        channels: Channels,
        coords: &[Raw; 4],
        data: Raw,
    ) -> Result<(), Halt> {
        let store = inst.stores();
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
        let mut values = [ChannelBits::default(); 4];
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
    pub(super) fn texel_atomic(
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
        let mut operands = [ChannelBits::default(); 2];
        let sources = [atomic.first, atomic.second];
        for (to, raw) in operands.iter_mut().zip(sources).take(op.sources()) {
            if raw.is_null() {
                return Halt::malformed("an atomic operand is missing");
            }
            let v = self.coordinate(raw, lanes)?;
            *to = ChannelBits::each(|i| v.get(i) & mask(bytes));
        }
        self.check_image(inst, &m)?;
        let [first, second] = operands;
        let mut out = [ChannelBits::default(); 4];
        for lane in bits(m.enabled) {
            let (x, y) = (first.get(lane), second.get(lane));
            let new = |old: u64| super::atomic::result(op, bytes, old, x, y);
            let change = |old: u32| new(old.into()) as u32;
            let old = self
                .group
                .image_update(m.memory.surface, m.coordinates(lane), bytes, change);
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
    pub(super) fn lsc_typed(&mut self, inst: &Inst, t: &LscTyped) -> Result<(), Halt> {
        let index = match &t.surface {
            LscSurface::Imm(n) => *n as u32,
            LscSurface::Var(o) => self.scalar_at(*o)? as u32,
            LscSurface::None => return Halt::malformed("no surface"),
        };
        // It may bring something to a cache, which nothing can see, and cannot fault.
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

    /// `media_ld`, `media_st`: rows of a block, each padded to a power of two of at least four bytes; no mask has a say. Rows of a
    /// field are counted as if there were no others.
    pub(super) fn media(&mut self, inst: &Inst, mem: &Mem) -> Result<(), Halt> {
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
            // The heap's surfaces are named by a word of their own: the message has nowhere to put a plane.
            _ if mem.surface.in_heap() => self.image_memory(mem.surface)?,
            // A surface that many entries of the binding table further, as the vendor's assembler has it.
            n => match self.t.surface(mem.surface) {
                Some(index) => Self::with_texels(surface_index(index.wrapping_add(n.into()))?)?,
                None => return Halt::malformed("a plane of no entry of the binding table"),
            },
        };
        let rows = match modifier {
            2 | 4 => code::TOP_ROWS,
            3 | 5 => code::BOTTOM_ROWS,
            0 | 1 => code::ALL_ROWS,
            _ => return Halt::malformed("a block of no known rows"),
        };
        let (x, y) = (self.scalar(x)? as u32, self.scalar(y)? as u32);
        let width = u32::from(*width);
        let pitch = width.next_power_of_two().max(4);
        let store = inst.stores();
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
