//! Typed surfaces and the sampler: coordinates and channels in registers (VISA.md 1.8, 2.6). What a texel is and how it is found
//! is the runtime's business.

use super::Lowerer;
use super::error::Fail;
use super::mem::{AtomicOperands, SurfaceRef};
use super::operand::ChannelMask;
use crate::isa::lsc::{AddrModel, DataSize, LscOp};
use crate::isa::sampler::{
    IGNORED_FLAGS, LOAD_MCS, LOD, OFFSET_SHIFTS, PIXEL_NULL_MASK, QUAD, ReadParams, SAMPLEINFO,
    read_params, refused,
};
use crate::isa::{Opcode, Type};
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

/// Coordinate of lanes that ask for a level which is not there: outside of every image, by more than an offset is long.
const NOWHERE: i64 = -9;

/// Where a 2D block lies: dwords of a row, rows, bytes that count.
#[derive(Clone, Copy)]
struct Block {
    pitch: u32,
    rows: u32,
    width: u32,
    field: u32,
}

/// The rows that modifiers of media blocks mean, as the third coordinate of [`ImageOp::BlockRead`]; some modifiers only say that
/// the surface may have been written.
const ROWS: [u32; 6] = [0, 0, 2, 3, 2, 3];

impl Lowerer<'_> {
    fn image_surface(&mut self, s: SurfaceId) -> Result<Value, Fail> {
        let surface = self.resolve_surface(s)?;
        Self::image_index(surface)
    }

    /// A surface of a plane: so many entries of the binding table further, as the vendor's assembler has it.
    fn plane_surface(&mut self, s: SurfaceId, plane: u8) -> Result<Value, Fail> {
        if plane == 0 {
            return self.image_surface(s);
        }
        if s.in_heap() {
            return Fail::unsupported("planes of a surface in the heap");
        }
        let Some(var) = self.surface_var(s) else {
            return Fail::malformed("a plane of no entry of the binding table");
        };
        let first = self.b.read(var);
        // What is known stays known: some entries are reserved.
        let index = match self.b.f.def_inst(first).map(|d| &d.op) {
            Some(Op::Const(n)) => {
                let n = *n as u32;
                self.b.i32(n.wrapping_add(plane.into()))
            }
            _ => self.b.bin_imm(BinOp::Add, first, plane.into()),
        };
        Self::image_index(self.surface_index(index)?)
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

    fn send_image(&mut self, inst: &Inst, m: &ImageMessage, data: &[Value]) -> Vec<Value> {
        let kind = match m.op {
            ImageOp::Write | ImageOp::BlockWrite => AccessKind::Write,
            ImageOp::Atomic(_) | ImageOp::AtomicShort(_) => AccessKind::Atomic,
            _ => AccessKind::Read,
        };
        let bytes = match m.op {
            ImageOp::AtomicShort(_) => 2,
            _ => 4 * m.channels.count().max(1),
        };
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
        let lanes = inst.exec.lanes();
        let mut u = self.dwords(u, lanes)?;
        if !level.is_null() {
            let level = self.dwords(level, lanes)?;
            u = self.at_level(u, level);
        }
        Ok(ImageMessage {
            op,
            channels,
            surface,
            sampler: self.b.i32(0),
            lanes,
            mask: self.channel_mask(inst)?,
            at: [u, self.dwords(v, lanes)?, self.dwords(r, lanes)?],
        })
    }

    /// There is one level: the coordinate of lanes that ask for another is outside.
    fn at_level(&mut self, u: Value, level: Value) -> Value {
        let zero = self.b.int_like(level, 0);
        let other = self.b.icmp(ICond::Ne, level, zero);
        let nowhere = self.b.int_like(u, NOWHERE);
        self.b.select(other, nowhere, u)
    }

    /// `typed_atomic`.
    pub(super) fn typed_atomic(
        &mut self,
        inst: &Inst,
        surface: SurfaceId,
        coords: &[Raw; 4],
        a: &AtomicOperands,
        texel: Lane,
    ) -> Result<(), Fail> {
        let surface = self.image_surface(surface)?;
        self.texel_atomic(inst, surface, coords, a, texel)
    }

    fn texel_atomic(
        &mut self,
        inst: &Inst,
        surface: Value,
        coords: &[Raw; 4],
        a: &AtomicOperands,
        texel: Lane,
    ) -> Result<(), Fail> {
        let op = a.op;
        let message = match texel {
            Lane::I16 => ImageOp::AtomicShort(op),
            _ => ImageOp::Atomic(op),
        };
        let m = self.typed_message(inst, surface, message, Channels(1), coords)?;
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
        let texel = match (t.op, t.data_size) {
            (_, DataSize::D32) => Lane::I32,
            (LscOp::Atomic(_), DataSize::D16c32) => Lane::I16,
            (_, size) => return Fail::unsupported(format!("typed elements of {}", size.name())),
        };
        // A prefetch cannot fault.
        if t.op == LscOp::LoadQuad && t.data.is_null() {
            return Ok(());
        }
        let index = match &t.surface {
            LscSurface::Imm(n) => self.b.i32(*n as u32),
            LscSurface::Var(o) => self.lsc_scalar(*o, Lane::I32)?,
            LscSurface::None => return Fail::malformed("no surface"),
        };
        let surface = match t.model {
            AddrModel::Bti => self.surface_index(index)?,
            // Scratch has no texels; its entry comes before those of the binding table, where no image is.
            _ => self.heap_surface(index).0,
        };
        let surface = Self::image_index(surface)?;
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
                self.texel_atomic(inst, surface, &t.coords, &a, texel)
            }
            _ => Fail::unsupported("this typed message"),
        }
    }

    /// `sample_*`, `sample4*`, `lod`, `load_*`, `resinfo`, `sampleinfo`.
    pub(super) fn sample(&mut self, inst: &Inst, s: &Sample) -> Result<(), Fail> {
        let Some(params) = self.sample_params(inst.op, s) else {
            return Fail::malformed("an unknown sampler message");
        };
        if let Some(why) = refused(inst.op, s.variant, s.channels.0, inst.exec.lanes()) {
            return Fail::unsupported(why);
        }
        if s.flags & !(IGNORED_FLAGS | PIXEL_NULL_MASK) != 0 {
            return Fail::malformed("an unknown suffix of a sampler message");
        }
        let lanes = inst.exec.lanes();
        let sampler = match s.sampler {
            Some(id) => self.sampler_index(id)?,
            None => self.b.i32(0),
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
            at[0] = self.at_level(at[0], level);
        }
        let reference = match params.reference {
            Some(k) => Some(self.parameter(inst.op, param(k), lanes)?),
            None => None,
        };
        let mut offsets = self.texel_offsets(s, &params, lanes)?;
        let level = (inst.op, s.variant) == (Opcode::Sample3d, LOD);
        if level {
            offsets = Some(at.map(|c| self.gradient(c, 2)));
            at = at.map(|c| self.gradient(c, 1));
        }
        let mut m = ImageMessage {
            op: match (inst.op, &offsets) {
                (Opcode::Sample3d, _) if level => ImageOp::Lod,
                (Opcode::Sample3d, _) if reference.is_some() => ImageOp::Compare,
                (Opcode::Gather43d, _) if reference.is_some() => ImageOp::GatherCompare,
                (Opcode::Sample3d, None) => ImageOp::Sample,
                (Opcode::Sample3d, _) => ImageOp::SampleOffset,
                (Opcode::Load3d, None) => ImageOp::Fetch,
                (Opcode::Load3d, _) => ImageOp::FetchOffset,
                (Opcode::Gather43d, _) => ImageOp::Gather,
                _ if s.variant == SAMPLEINFO => ImageOp::Samples,
                _ => ImageOp::Info,
            },
            channels: s.channels,
            surface: self.image_surface(s.surface)?,
            sampler,
            lanes,
            mask: self.channel_mask(inst)?,
            at,
        };
        let mut operands = match offsets {
            None if inst.op == Opcode::Gather43d || reference.is_some() => vec![self.b.i32(0); 3],
            None => Vec::new(),
            Some(offsets) => offsets.to_vec(),
        };
        operands.extend(reference);
        let values = match (inst.op, s.variant) {
            // Without samples there is no data that says where they are.
            (Opcode::Load3d, LOAD_MCS) => {
                let zero = self.b.i32(0);
                vec![self.b.splat(zero, lanes as u16); 4]
            }
            _ => self.send_image(inst, &m, &operands),
        };
        if inst.op == Opcode::Gather43d {
            if m.channels.count() != 1 {
                return Fail::malformed("four texels of other than one channel");
            }
            m.channels = Channels(0xF);
        }
        let stride = self.set_sampled(&m, inst.op, s.dst, &values)?;
        if s.flags & PIXEL_NULL_MASK != 0 {
            self.no_null_pages(&m, s.dst, stride)?;
        }
        Ok(())
    }

    /// Where the parameters of a message stand.
    fn sample_params(&self, op: Opcode, s: &Sample) -> Option<ReadParams> {
        let first = s.params.first().filter(|raw| !raw.is_null());
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
            (Some(_), Some(_)) => Fail::unsupported("texel offsets of both kinds"),
        }
    }

    /// The register behind the channels: a bit a lane, as no texel comes from a page that does not exist.
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
        match var.copied() {
            Some(var) => Ok(self.b.read(var)),
            None => Fail::malformed("unknown sampler"),
        }
    }

    /// `media_ld`, `media_st`: a block of rows, in dwords; no mask has a say.
    pub(super) fn media(&mut self, inst: &Inst, mem: &Mem) -> Result<(), Fail> {
        let MemKind::Media {
            modifier,
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
        let rows = ROWS.get(usize::from(*modifier));
        let Some(&field) = rows else {
            return Fail::malformed("a block of no known rows");
        };
        let width = u32::from(*width);
        let block = Block {
            pitch: width.next_power_of_two().max(4) / 4,
            rows: u32::from(*height),
            width,
            field,
        };
        let surface = self.plane_surface(mem.surface, *plane)?;
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
        let (zero, field) = (self.b.i32(0), self.b.i32(block.field));
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
                field,
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
