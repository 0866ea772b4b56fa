//! Typed surfaces and the sampler: coordinates and channels in registers (VISA.md 1.8, 2.6). What a texel is and how it is found
//! is the runtime's business.

use super::Lowerer;
use super::error::Fail;
use super::mem::{AtomicOperands, SurfaceRef, legacy_operands};
use super::operand::ChannelMask;
use crate::isa::Opcode;
use crate::isa::lsc::{AddrModel, DataSize, LscOp};
use crate::isa::sampler::{SamplerOp, read_params};
use crate::module::Inst;
use crate::module::*;
use crate::ssa::*;

/// An image message after its operands were read.
struct ImageMessage {
    op: ImageOp,
    channels: Channels,
    surface: Value,
    sampler: Value,
    lanes: u32,
    mask: ChannelMask,
    /// u, v, r.
    at: [Value; 3],
}

/// Where a 2D block lies: dwords of a row, rows, bytes that count.
#[derive(Clone, Copy)]
struct Block {
    pitch: u32,
    rows: u32,
    width: u32,
}

impl Lowerer<'_> {
    fn image_surface(&mut self, s: SurfaceId) -> Result<Value, Fail> {
        let surface = self.resolve_surface(s)?;
        Self::image_index(surface)
    }

    fn image_index(surface: SurfaceRef) -> Result<Value, Fail> {
        match surface {
            SurfaceRef {
                space: Space::Surface,
                index: Some(index),
            } => Ok(index),
            _ => Fail::malformed("an image message to memory without texels"),
        }
    }

    /// Dwords of the lanes of a payload whose variable does not hold narrower elements.
    fn dwords(&mut self, raw: Raw, lanes: u32) -> Result<Value, Fail> {
        self.full_width(raw)?;
        self.payload(raw, 0, lanes, Lane::I32)
    }

    fn full_width(&self, raw: Raw) -> Result<(), Fail> {
        let narrow = |ty: crate::isa::Type| ty.bytes() == 2;
        if !raw.is_null() && self.kernel.module().vars.ty(raw.var).is_some_and(narrow) {
            return Fail::unsupported("16-bit payloads of image messages");
        }
        Ok(())
    }

    fn send_image(&mut self, inst: &Inst, m: &ImageMessage, data: &[Value]) -> Vec<Value> {
        let kind = match m.op {
            ImageOp::Write | ImageOp::BlockWrite => AccessKind::Write,
            ImageOp::Atomic(_) => AccessKind::Atomic,
            _ => AccessKind::Read,
        };
        let bytes = 4 * m.channels.count().max(1);
        let site = self.site(inst, Space::Surface, kind, bytes);
        let access = ImageAccess {
            op: m.op,
            channels: m.channels.0,
            site,
        };
        let n = m.lanes as u16;
        let mask = m.mask.lanes(&mut self.b, n);
        let [u, v, r] = m.at.map(|c| self.b.splat(c, n));
        let mut args = vec![mask, u, m.surface, m.sampler, v, r];
        for &value in data {
            args.push(self.b.splat(value, n));
        }
        let tys = vec![Ty::vector(Lane::I32, n); m.op.results()];
        let (block, line) = (self.b.cur, self.b.line);
        let i = self.b.f.push(block, Op::Image(access), args, &tys, line);
        self.b.f.inst(i).results.clone()
    }

    /// Bytes from one channel of a payload to the next: each starts a register.
    fn channel_stride(&self, lanes: u32) -> u32 {
        (lanes * 4).max(self.grf)
    }

    /// Writes the enabled channels of a read.
    fn set_texels(&mut self, m: &ImageMessage, dst: Raw, values: &[Value]) -> Result<(), Fail> {
        self.full_width(dst)?;
        let stride = self.channel_stride(m.lanes);
        for (position, channel) in m.channels.iter().enumerate() {
            let Some(&v) = values.get(channel as usize) else {
                return Fail::malformed("more than four channels");
            };
            self.set_payload(dst, position as u32 * stride, v, m.mask.value(), false)?;
        }
        Ok(())
    }

    /// `gather4_typed`, `scatter4_typed`.
    pub(super) fn typed(
        &mut self,
        inst: &Inst,
        surface: SurfaceId,
        channels: Channels,
        coords: &[Raw; 4],
        data: Raw,
    ) -> Result<(), Fail> {
        let store = inst.op == Opcode::Scatter4Typed;
        let surface = self.image_surface(surface)?;
        self.texels(inst, surface, channels, coords, (data, store))
    }

    fn texels(
        &mut self,
        inst: &Inst,
        surface: Value,
        channels: Channels,
        coords: &[Raw; 4],
        (data, store): (Raw, bool),
    ) -> Result<(), Fail> {
        let op = if store { ImageOp::Write } else { ImageOp::Read };
        let m = self.typed_message(inst, surface, op, channels, coords)?;
        if channels.count() == 0 {
            return Fail::malformed("no channel is enabled");
        }
        if !store {
            let values = self.send_image(inst, &m, &[]);
            return self.set_texels(&m, data, &values);
        }
        let stride = self.channel_stride(m.lanes);
        self.full_width(data)?;
        let mut values = vec![self.b.i32(0); 4];
        for (position, channel) in channels.iter().enumerate() {
            let at = position as u32 * stride;
            values[channel as usize & 3] = self.payload(data, at, m.lanes, Lane::I32)?;
        }
        self.send_image(inst, &m, &values);
        Ok(())
    }

    fn typed_message(
        &mut self,
        inst: &Inst,
        surface: Value,
        op: ImageOp,
        channels: Channels,
        coords: &[Raw; 4],
    ) -> Result<ImageMessage, Fail> {
        let [u, v, r, level] = *coords;
        if !level.is_null() {
            return Fail::unsupported("a level of detail");
        }
        let lanes = inst.exec.lanes();
        Ok(ImageMessage {
            op,
            channels,
            surface,
            sampler: self.b.i32(0),
            lanes,
            mask: self.channel_mask(inst)?,
            at: [
                self.dwords(u, lanes)?,
                self.dwords(v, lanes)?,
                self.dwords(r, lanes)?,
            ],
        })
    }

    /// `typed_atomic`.
    pub(super) fn typed_atomic(
        &mut self,
        inst: &Inst,
        surface: SurfaceId,
        op: crate::isa::AtomicOp,
        coords: &[Raw; 4],
        [src0, src1, dst]: [Raw; 3],
    ) -> Result<(), Fail> {
        let surface = self.image_surface(surface)?;
        let a = legacy_operands(op, src0, src1, dst, Lane::I32);
        self.texel_atomic(inst, surface, coords, &a)
    }

    fn texel_atomic(
        &mut self,
        inst: &Inst,
        surface: Value,
        coords: &[Raw; 4],
        a: &AtomicOperands,
    ) -> Result<(), Fail> {
        let op = a.op;
        let m = self.typed_message(inst, surface, ImageOp::Atomic(op), Channels(1), coords)?;
        let mut values = Vec::new();
        for raw in [a.first, a.second].into_iter().take(op.sources()) {
            if raw.is_null() {
                return Fail::malformed("an atomic operand is missing");
            }
            values.push(self.dwords(raw, m.lanes)?);
        }
        let old = self.send_image(inst, &m, &values);
        self.set_texels(&m, a.dst, &old)
    }

    /// `lsc_*.tgm`.
    pub(super) fn lsc_typed(&mut self, inst: &Inst, t: &LscTyped) -> Result<(), Fail> {
        if t.data_size != DataSize::D32 {
            return Fail::unsupported("typed elements other than d32");
        }
        let index = match (t.model, &t.surface) {
            (AddrModel::Bti, LscSurface::Imm(n)) => self.b.i32(*n as u32),
            (AddrModel::Bti, LscSurface::Var(o)) => {
                let src = Src::General {
                    origin: *o,
                    region: crate::isa::SrcRegion::SCALAR,
                    modifier: crate::isa::SrcModifier::None,
                };
                self.scalar_int(&src, Lane::I32)?
            }
            (model, _) => {
                return Fail::unsupported(format!("address model {model:?}").to_lowercase());
            }
        };
        let surface = Self::image_index(self.surface_index(index)?)?;
        match t.op {
            LscOp::LoadQuad | LscOp::StoreQuad => {
                let data = (t.data, t.op == LscOp::StoreQuad);
                self.texels(inst, surface, t.channels, &t.coords, data)
            }
            LscOp::Atomic(op) => {
                let a = AtomicOperands {
                    op,
                    first: t.src1,
                    second: t.src2,
                    dst: t.data,
                    reg: Lane::I32,
                };
                self.texel_atomic(inst, surface, &t.coords, &a)
            }
            _ => Fail::unsupported("this typed message"),
        }
    }

    /// `sample_*`, `load_*`, `resinfo`.
    pub(super) fn sample(&mut self, inst: &Inst, s: &Sample) -> Result<(), Fail> {
        let Some(params) = read_params(inst.op, s.variant) else {
            let name = SamplerOp::from_code(inst.op, s.variant).map_or("?", |op| op.mnemonic);
            return Fail::unsupported(format!("the message `{name}`"));
        };
        if s.flags != 0 {
            return Fail::unsupported("suffixes of sampler messages");
        }
        if !matches!(s.aoffimmi, None | Some(Src::Imm { bits: 0, .. })) {
            return Fail::unsupported("texel offsets");
        }
        let lanes = inst.exec.lanes();
        let sampler = match s.sampler {
            Some(id) => self.sampler_index(id)?,
            None => self.b.i32(0),
        };
        let param = |k: usize| s.params.get(k).copied().unwrap_or(Raw::NULL);
        let [u, v, r] = params.coords.map(param);
        let mut at = [
            self.dwords(u, lanes)?,
            self.dwords(v, lanes)?,
            self.dwords(r, lanes)?,
        ];
        if let Some(level) = params.level {
            // There is one level; coordinates of the others are outside.
            let level = self.dwords(param(level), lanes)?;
            let zero = self.b.int_like(level, 0);
            let other = self.b.icmp(ICond::Ne, level, zero);
            let beyond = self.b.int_like(at[0], -1);
            at[0] = self.b.select(other, beyond, at[0]);
        }
        let m = ImageMessage {
            op: match inst.op {
                Opcode::Sample3d => ImageOp::Sample,
                Opcode::Load3d => ImageOp::Fetch,
                _ => ImageOp::Info,
            },
            channels: s.channels,
            surface: self.image_surface(s.surface)?,
            sampler,
            lanes,
            mask: self.channel_mask(inst)?,
            at,
        };
        let values = self.send_image(inst, &m, &[]);
        self.set_texels(&m, s.dst, &values)
    }

    fn sampler_index(&mut self, id: SamplerId) -> Result<Value, Fail> {
        let var = self.samplers.get(id.0 as usize).and_then(|v| v.first());
        match var.copied() {
            Some(var) => Ok(self.b.read(var)),
            None => Fail::malformed("unknown sampler"),
        }
    }

    /// `media_ld`, `media_st`: a block of rows, in dwords; no mask has a say.
    pub(super) fn media(&mut self, inst: &Inst, mem: &Mem) -> Result<(), Fail> {
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
            return Fail::malformed("no 2D block");
        };
        if *plane != 0 {
            return Fail::unsupported("planes of video surfaces");
        }
        let width = u32::from(*width);
        let block = Block {
            pitch: width.next_power_of_two().max(4) / 4,
            rows: u32::from(*height),
            width,
        };
        let surface = self.image_surface(mem.surface)?;
        let corner = [
            self.scalar_int(x, Lane::I32)?,
            self.scalar_int(y, Lane::I32)?,
        ];
        let total = block.pitch * block.rows;
        // All of a payload is read before anything is written, and no part of it twice.
        for first in (0..total).step_by(16) {
            self.media_part(inst, surface, corner, block, (first, total), *data)?;
        }
        Ok(())
    }

    /// Up to 16 dwords of a block.
    fn media_part(
        &mut self,
        inst: &Inst,
        surface: Value,
        [x, y]: [Value; 2],
        block: Block,
        (first, total): (u32, u32),
        data: Raw,
    ) -> Result<(), Fail> {
        let lanes = (total - first).min(16);
        let store = inst.op == Opcode::MediaSt;
        let constant = |s: &mut Self, f: &dyn Fn(u32) -> u32| {
            let lanes: Vec<u64> = (first..first + lanes).map(|k| f(k).into()).collect();
            match lanes.as_slice() {
                [only] => s.b.bits(Lane::I32, *only),
                _ => s.b.vec_const(Lane::I32, lanes),
            }
        };
        let column = constant(self, &|k| 4 * (k % block.pitch));
        let row = constant(self, &|k| k / block.pitch);
        let bytes = constant(self, &|k| {
            block.width.saturating_sub(4 * (k % block.pitch)).min(4)
        });
        let x = self.b.splat(x, lanes as u16);
        let y = self.b.splat(y, lanes as u16);
        let zero = self.b.i32(0);
        let m = ImageMessage {
            op: if store {
                ImageOp::BlockWrite
            } else {
                ImageOp::BlockRead
            },
            channels: Channels(1),
            surface,
            sampler: zero,
            lanes,
            mask: ChannelMask::All,
            at: [
                self.b.bin(BinOp::Add, x, column),
                self.b.bin(BinOp::Add, y, row),
                zero,
            ],
        };
        if store {
            let v = self.payload(data, 4 * first, lanes, Lane::I32)?;
            self.send_image(inst, &m, &[bytes, v]);
            return Ok(());
        }
        let values = self.send_image(inst, &m, &[bytes]);
        self.set_payload(data, 4 * first, values[0], None, false)
    }
}
