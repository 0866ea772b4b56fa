//! Typed surfaces: coordinates and channels in registers (docs/visa.md, "Images"); [`sampler`] has the messages of the sampler. What a
//! texel is and how it is found is the runtime's business.

mod sampler;

use super::Lowerer;
use super::error::Fail;
use super::mem::{AtomicOperands, SurfaceRef};
use super::operand::ChannelMask;
use crate::isa::lsc::{AddrModel, DataSize, LscOp};
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

    /// The surface of plane `n`: `n` entries further in the binding table, as the vendor's assembler has it. A word for the heap
    /// names one surface, of which no plane has a say.
    fn plane_surface(&mut self, s: SurfaceId, plane: u8) -> Result<Value, Fail> {
        if plane == 0 || s.in_heap() {
            return self.image_surface(s);
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
        let store = inst.stores();
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
        let store = inst.stores();
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
