//! Messages of the sampler: `sample_*`, `sample4*`, `lod`, `load_*`, `resinfo`, `sampleinfo`.

use super::ImageMessage;
use crate::isa::sampler::{
    IGNORED_FLAGS, LOAD_MCS, LOD, OFFSET_SHIFTS, PIXEL_NULL_MASK, QUAD, ReadParams, SAMPLEINFO,
    SAMPLER_STATE_SHIFT, read_params,
};
use crate::isa::{Opcode, Type};
use crate::lower::Lowerer;
use crate::lower::error::Fail;
use crate::module::Inst;
use crate::module::*;
use crate::ssa::*;

/// Payloads of a message after they were read.
struct Operands {
    /// u, v, r.
    at: [Value; 3],
    /// Texels to move along them, or their other gradient.
    offsets: Option<[Value; 3]>,
    /// What texels are compared with.
    reference: Option<Value>,
}

impl Lowerer<'_> {
    /// A message of the sampler.
    pub(in crate::lower) fn sample(&mut self, inst: &Inst, s: &Sample) -> Result<(), Fail> {
        let Some(params) = self.sample_params(inst.op, s) else {
            return Fail::malformed("an unknown sampler message");
        };
        if s.flags & !(IGNORED_FLAGS | PIXEL_NULL_MASK) != 0 {
            return Fail::malformed("an unknown suffix of a sampler message");
        }
        let gathers = inst.op == Opcode::Gather43d;
        if gathers && s.channels.count() != 1 {
            return Fail::malformed("four texels of other than one channel");
        }
        let lanes = inst.exec.lanes();
        let sampler = match s.sampler {
            Some(id) => self.sampler_index(id)?,
            None => self.b.i32(0),
        };
        let operands = self.sample_operands(inst, s, &params)?;
        let mut m = ImageMessage {
            op: operation(inst.op, s.variant, &operands),
            channels: s.channels,
            surface: self.image_surface(s.surface)?,
            sampler,
            lanes,
            mask: self.channel_mask(inst)?,
            at: operands.at,
        };
        let mut data = match operands.offsets {
            None if gathers || operands.reference.is_some() => vec![self.b.i32(0); 3],
            None => Vec::new(),
            Some(offsets) => offsets.to_vec(),
        };
        data.extend(operands.reference);
        let values = match (inst.op, s.variant) {
            // Without samples there is no data that says where they are.
            (Opcode::Load3d, LOAD_MCS) => {
                let zero = self.b.i32(0);
                vec![self.b.splat(zero, lanes as u16); 4]
            }
            _ => self.send_image(inst, &m, &data),
        };
        if gathers {
            m.channels = Channels(0xF);
        }
        let stride = self.set_sampled(&m, inst.op, s.dst, &values)?;
        if s.flags & PIXEL_NULL_MASK != 0 {
            self.no_null_pages(&m, s.dst, stride)?;
        }
        Ok(())
    }

    fn sample_operands(
        &mut self,
        inst: &Inst,
        s: &Sample,
        params: &ReadParams,
    ) -> Result<Operands, Fail> {
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
            at[0] = self.at_level(at[0], level);
        }
        let reference = match params.reference {
            Some(k) => Some(self.parameter(inst.op, param(k), lanes)?),
            None => None,
        };
        let mut offsets = self.texel_offsets(s, params, lanes)?;
        if (inst.op, s.variant) == (Opcode::Sample3d, LOD) {
            // Texels may be moved, distances stay.
            offsets = Some(at.map(|c| self.gradient(c, 2)));
            at = at.map(|c| self.gradient(c, 1));
        }
        Ok(Operands {
            at,
            offsets,
            reference,
        })
    }

    /// Where the parameters of a message stand.
    fn sample_params(&self, op: Opcode, s: &Sample) -> Option<ReadParams> {
        let first = s.params.iter().find(|raw| !raw.is_null());
        let ty = first.and_then(|raw| self.kernel.module().vars.ty(raw.var));
        read_params(op, s.variant, ty.is_some_and(|ty| ty.bytes() == 2))
    }

    /// How far the lane of such a rank in each four is from their first one, for all four.
    fn gradient(&mut self, c: Value, rank: u32) -> Value {
        let ty = self.b.ty(c);
        let lanes = u32::from(ty.lanes);
        let of = |rank: u32| {
            (0..lanes)
                .map(|i| ((i & !(QUAD - 1)) + rank) as u16)
                .collect()
        };
        let float = self.b.bitcast(c, Ty::vector(Lane::F32, ty.lanes));
        let near = self.b.shuffle(float, of(0));
        let far = self.b.shuffle(float, of(rank));
        let distance = self.b.bin(BinOp::FSub, far, near);
        self.b.bitcast(distance, ty)
    }

    /// A parameter of a sampler message as dwords: also halves of floats, and of the integers that fetches have.
    fn parameter(&mut self, op: Opcode, raw: Raw, lanes: u32) -> Result<Value, Fail> {
        let ty = match raw.is_null() {
            true => None,
            false => self.kernel.module().vars.ty(raw.var),
        };
        match (ty, op) {
            (Some(Type::Hf), Opcode::Sample3d | Opcode::Gather43d) => {
                let half = self.payload(raw, 0, lanes, Lane::I16)?;
                let float = self.b.conv(Conv::F16ToF, half, Lane::F32);
                Ok(self.b.bitcast(float, Ty::vector(Lane::I32, lanes as u16)))
            }
            (Some(Type::Uw | Type::W), Opcode::Load3d) => {
                let half = self.payload(raw, 0, lanes, Lane::I16)?;
                Ok(self.b.resize(half, Lane::I32, false))
            }
            _ => self.dwords(raw, lanes),
        }
    }

    /// Results of a sampler message, and how many bytes lie between channels: floats are rounded to halves, of integers the low
    /// halves are left.
    fn set_sampled(
        &mut self,
        m: &ImageMessage,
        op: Opcode,
        dst: Raw,
        values: &[Value],
    ) -> Result<u32, Fail> {
        let ty = self.kernel.module().vars.ty(dst.var);
        let narrow = matches!(ty, Some(Type::Hf | Type::Uw | Type::W));
        if dst.is_null() || !narrow || op == Opcode::Info3d {
            self.set_texels(m, dst, values)?;
            return Ok(self.channel_stride(m.lanes));
        }
        let stride = (m.lanes * 2).max(self.grf);
        for (position, channel) in m.channels.iter().enumerate() {
            let Some(&v) = values.get(channel as usize) else {
                return Fail::malformed("more than four channels");
            };
            let v = if ty == Some(Type::Hf) {
                let float = self.b.bitcast(v, Ty::vector(Lane::F32, m.lanes as u16));
                self.b.conv(Conv::FToF16, float, Lane::I16)
            } else {
                self.b.resize(v, Lane::I16, false)
            };
            self.set_payload(dst, position as u32 * stride, v, m.mask.value(), false)?;
        }
        Ok(stride)
    }

    /// Texels to move along u, v and r; `None` where the message says that there are none.
    fn texel_offsets(
        &mut self,
        s: &Sample,
        params: &ReadParams,
        lanes: u32,
    ) -> Result<Option<[Value; 3]>, Fail> {
        let all = match &s.aoffimmi {
            None => None,
            Some(Src::Imm { bits, .. }) if bits & 0xFFF == 0 => None,
            Some(src) => Some(self.scalar_int(src, Lane::I32)?),
        };
        match (all, params.offsets) {
            (None, None) => Ok(None),
            (Some(all), None) => Ok(Some(OFFSET_SHIFTS.map(|at| {
                let high = self.b.bin_imm(BinOp::Shl, all, i64::from(28 - at));
                self.b.bin_imm(BinOp::AShr, high, 28)
            }))),
            (None, Some([u, v])) => {
                let param = |k: usize| s.params.get(k).copied().unwrap_or(Raw::NULL);
                let u = self.dwords(param(u), lanes)?;
                let v = self.dwords(param(v), lanes)?;
                Ok(Some([u, v, self.b.i32(0)]))
            }
            (Some(_), Some(_)) => Fail::malformed("texel offsets of both kinds"),
        }
    }

    /// The register after the channels: a bit a lane, as no texel comes from a page that does not exist.
    fn no_null_pages(&mut self, m: &ImageMessage, dst: Raw, stride: u32) -> Result<(), Fail> {
        let at = m.channels.count() * stride;
        let on = m.mask.lanes(&mut self.b, m.lanes as u16);
        let any = match m.lanes {
            1 => on,
            _ => self.b.op(Op::MaskAny, vec![on], Ty::scalar(Lane::I1)),
        };
        let all = self.b.i32(u32::MAX >> (32 - m.lanes.clamp(1, 32)));
        self.set_payload(dst, at, all, Some(any), false)
    }

    fn sampler_index(&mut self, id: SamplerId) -> Result<Value, Fail> {
        let var = self.samplers.get(id.0 as usize).and_then(|v| v.first());
        let declared = self.kernel.module().vars.sampler.get(id.0 as usize);
        match var.copied() {
            Some(var) if declared.is_some_and(|s| s.predefined) => {
                let offset = self.b.read(var);
                let shift = i64::from(SAMPLER_STATE_SHIFT);
                Ok(self.b.bin_imm(BinOp::LShr, offset, shift))
            }
            Some(var) => Ok(self.b.read(var)),
            None => Fail::malformed("unknown sampler"),
        }
    }
}

/// What the runtime is asked for.
fn operation(op: Opcode, variant: u8, operands: &Operands) -> ImageOp {
    let (moved, compares) = (operands.offsets.is_some(), operands.reference.is_some());
    match (op, moved) {
        (Opcode::Sample3d, _) if variant == LOD => ImageOp::Lod,
        (Opcode::Sample3d, _) if compares => ImageOp::Compare,
        (Opcode::Sample3d, false) => ImageOp::Sample,
        (Opcode::Sample3d, true) => ImageOp::SampleOffset,
        (Opcode::Load3d, false) => ImageOp::Fetch,
        (Opcode::Load3d, true) => ImageOp::FetchOffset,
        (Opcode::Gather43d, _) if compares => ImageOp::GatherCompare,
        (Opcode::Gather43d, _) => ImageOp::Gather,
        _ if variant == SAMPLEINFO => ImageOp::Samples,
        _ => ImageOp::Info,
    }
}
