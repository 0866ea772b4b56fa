//! Messages of the sampler: `sample_*`, `sample4*`, `lod`, `load_*`, `resinfo`, `sampleinfo`.

use visa_runtime::abi::image as code;

use super::Message;
use crate::interp::error::Halt;
use crate::interp::float::{Env, Format};
use crate::interp::lanes::{ChannelBits, up};
use crate::interp::machine::Machine;
use crate::interp::number::mask;
use crate::isa::sampler::{
    IGNORED_FLAGS, LOAD_MCS, LOD, OFFSET_SHIFTS, PIXEL_NULL_MASK, QUAD, ReadParams, SAMPLEINFO,
    SAMPLER_STATE_SHIFT, read_params,
};
use crate::isa::{Opcode, Type};
use crate::module::*;

/// Payloads of a message after they were read.
struct Operands {
    /// u, v, r.
    at: [ChannelBits; 3],
    /// Texels to move along them, or their other gradient.
    offsets: Option<[ChannelBits; 3]>,
    /// What texels are compared with.
    reference: Option<ChannelBits>,
}

impl Machine<'_, '_, '_> {
    /// A message of the sampler.
    pub(crate) fn sample(&mut self, inst: &Inst, s: &Sample) -> Result<(), Halt> {
        let words = match s.params.iter().find(|raw| !raw.is_null()) {
            Some(raw) => self.var_type(raw.var)?.bytes() == 2,
            None => false,
        };
        let Some(params) = read_params(inst.op, s.variant, words) else {
            return Halt::malformed("an unknown sampler message");
        };
        if s.flags & !(IGNORED_FLAGS | PIXEL_NULL_MASK) != 0 {
            return Halt::malformed("an unknown suffix of a sampler message");
        }
        let gathers = inst.op == Opcode::Gather43d;
        if gathers && s.channels.count() != 1 {
            return Halt::malformed("four texels of other than one channel");
        }
        let operands = self.sample_operands(inst, s, &params)?;
        let mut m = Message {
            op: operation(inst.op, s.variant, &operands),
            channels: s.channels,
            memory: self.image_memory(s.surface)?,
            sampler: self.sampler_of(s)?,
            enabled: self.enabled(inst)?,
            at: operands.at,
        };
        if operands.reference.is_some() {
            self.check_image(inst, &m)?;
        }
        let [u, v, r] = operands.offsets.unwrap_or_default();
        let reference = operands.reference.unwrap_or_default();
        // Without samples there is no data that says where they are.
        let texels = match (inst.op, s.variant) {
            (Opcode::Load3d, LOAD_MCS) => [ChannelBits::default(); 4],
            _ => self.texels(&m, &[u, v, r, reference]),
        };
        if gathers {
            m.channels = Channels(0xF);
        }
        let stride = self.set_sampled(inst, &m, s.dst, &texels)?;
        // No page does not exist: every lane has its bit.
        if s.flags & PIXEL_NULL_MASK != 0 && m.enabled != 0 && !s.dst.is_null() {
            let at = (m.channels.count() as usize).saturating_mul(stride);
            let all = up(1, inst.exec.lanes()).wrapping_sub(1);
            self.set_payload(s.dst, at, 0, 4, all.into())?;
        }
        Ok(())
    }

    fn sampler_of(&self, s: &Sample) -> Result<u32, Halt> {
        let Some(id) = s.sampler else {
            return Ok(0);
        };
        match self.t.samplers.get(id.0 as usize).and_then(|v| v.first()) {
            // Entries of the heap of sampler states take 16 bytes.
            Some(&offset) if self.is_bindless_sampler(id) => {
                Ok(offset.wrapping_shr(SAMPLER_STATE_SHIFT))
            }
            Some(&index) => Ok(index),
            None => Halt::malformed("unknown sampler"),
        }
    }

    fn is_bindless_sampler(&self, id: SamplerId) -> bool {
        let vars = &self.program.kernel.module().vars;
        let sampler = vars.sampler.get(id.0 as usize);
        sampler.is_some_and(|s| s.predefined)
    }

    fn sample_operands(
        &mut self,
        inst: &Inst,
        s: &Sample,
        params: &ReadParams,
    ) -> Result<Operands, Halt> {
        let lanes = inst.exec.lanes();
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
            Some(k) => Some(self.parameter(inst.op, param(k), lanes)?),
            None => None,
        };
        let mut offsets = self.texel_offsets(s, params.offsets.map(|o| o.map(param)), lanes)?;
        if inst.op == Opcode::Sample3d && s.variant == LOD {
            // Texels may be moved, distances stay.
            offsets = Some(at.map(|c| Self::gradient(&c, 2)));
            at = at.map(|c| Self::gradient(&c, 1));
        }
        Ok(Operands {
            at,
            offsets,
            reference,
        })
    }

    /// How far the lane of such a rank in each four is from their first one, for all four. Lanes count that no mask enables.
    fn gradient(c: &ChannelBits, rank: usize) -> ChannelBits {
        let float = |i: usize| f32::from_bits(c.get(i) as u32);
        ChannelBits::each(|i| {
            let first = i & !(QUAD as usize).wrapping_sub(1);
            (float(first.wrapping_add(rank)) - float(first))
                .to_bits()
                .into()
        })
    }

    /// A parameter of a sampler message: dwords, half floats, or words of fetches.
    fn parameter(&self, op: Opcode, raw: Raw, lanes: u32) -> Result<ChannelBits, Halt> {
        if raw.is_null() {
            return Ok(ChannelBits::default());
        }
        match (self.var_type(raw.var)?, op) {
            (Type::Hf, Opcode::Sample3d | Opcode::Gather43d) => {
                let half = self.payload_lanes(raw, 0, lanes, 2)?;
                let float = |i: usize| Env::PLAIN.convert(Format::Hf, Format::F, half.get(i));
                Ok(ChannelBits::each(float))
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
        values: &[ChannelBits; 4],
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
            let v = ChannelBits::each(|i| match ty {
                Type::Hf => Env::PLAIN.convert(Format::F, Format::Hf, v.get(i)),
                _ => v.get(i) & mask(2),
            });
            self.set_payload_lanes(dst, position.saturating_mul(stride), 2, &v, m.enabled)?;
        }
        Ok(stride)
    }

    /// Texels to move along u, v and r, and whether there may be any.
    fn texel_offsets(
        &mut self,
        s: &Sample,
        each: Option<[Raw; 2]>,
        lanes: u32,
    ) -> Result<Option<[ChannelBits; 3]>, Halt> {
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
                ChannelBits::all(offset)
            }))),
            Some([u, v]) if immediate => Ok(Some([
                self.coordinate(u, lanes)?,
                self.coordinate(v, lanes)?,
                ChannelBits::default(),
            ])),
            Some(_) => Halt::malformed("texel offsets of both kinds"),
        }
    }
}

/// What the runtime's memory is asked for.
fn operation(op: Opcode, variant: u8, operands: &Operands) -> u32 {
    let compares = operands.reference.is_some();
    match (op, &operands.offsets) {
        (Opcode::Sample3d, _) if variant == LOD => code::LOD,
        (Opcode::Sample3d, _) if compares => code::COMPARE,
        (Opcode::Gather43d, _) if compares => code::GATHER_COMPARE,
        (Opcode::Sample3d, None) => code::SAMPLE,
        (Opcode::Sample3d, Some(_)) => code::SAMPLE_OFFSET,
        (Opcode::Load3d, None) => code::FETCH,
        (Opcode::Load3d, Some(_)) => code::FETCH_OFFSET,
        (Opcode::Gather43d, _) => code::GATHER,
        _ if variant == SAMPLEINFO => code::SAMPLES,
        _ => code::INFO,
    }
}
