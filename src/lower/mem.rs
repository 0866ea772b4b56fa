//! Legacy surface messages: what is read and written where, and how payloads lie in registers
//! (docs/visa.md, "Memory").

use super::Lowerer;
use super::error::Fail;
use super::operand::ChannelMask;
use super::regs::Pattern;
use crate::isa::{AtomicOp, Opcode};
use crate::module::Inst;
use crate::module::*;
use crate::ssa::*;

/// SLM addresses may carry bit 28; only the low 28 bits count (docs/visa.md, "Memory").
const SLM_MASK: i64 = 0x0FFF_FFFF;

/// A resolved surface.
#[derive(Clone, Copy, Debug)]
pub(super) struct SurfaceRef {
    /// Memory.
    pub space: Space,
    /// Binding-table index, for [`Space::Surface`].
    pub index: Option<Value>,
}

/// One lane-wise message after address calculation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// Memory.
    pub surface: SurfaceRef,
    /// Element in memory.
    pub elem: Lane,
    /// Addresses, one a lane.
    pub addr: Value,
    /// Lanes.
    pub lanes: u32,
    /// Enabled channels.
    pub mask: ChannelMask,
}

/// Operands of an atomic, in the order of the SSA operation (compare before new).
#[derive(Clone, Copy, Debug)]
pub(super) struct AtomicOperands {
    /// Operation.
    pub op: AtomicOp,
    /// First operand.
    pub first: Raw,
    /// Second operand.
    pub second: Raw,
    /// Old value.
    pub dst: Raw,
    /// Lane type of the operands in registers.
    pub reg: Lane,
}

impl Lowerer<'_> {
    /// Reads `n` consecutive lanes of a payload.
    pub(super) fn payload(&mut self, raw: Raw, at: u32, n: u32, lane: Lane) -> Result<Value, Fail> {
        if raw.is_null() {
            let zero = self.b.bits(lane, 0);
            return Ok(self.b.splat(zero, n as u16));
        }
        let place = self.kernel.root_offset(raw.var);
        let p = Pattern::packed(place.root, place.offset + raw.offset + at, n, lane);
        let v = self.regs.read(&mut self.b, &p)?;
        Ok(self.b.splat(v, n as u16))
    }

    /// Writes consecutive lanes of a payload; `soft` for block messages.
    pub(super) fn set_payload(
        &mut self,
        raw: Raw,
        at: u32,
        value: Value,
        mask: Option<Value>,
        soft: bool,
    ) -> Result<(), Fail> {
        if raw.is_null() {
            return Ok(());
        }
        let place = self.kernel.root_offset(raw.var);
        let ty = self.b.ty(value);
        let mut p = Pattern::packed(
            place.root,
            place.offset + raw.offset + at,
            u32::from(ty.lanes),
            ty.lane,
        );
        p.soft = soft;
        self.regs.write(&mut self.b, &p, value, mask)
    }

    /// Reads a block payload.
    pub(super) fn block_payload(&mut self, raw: Raw, n: u32, lane: Lane) -> Result<Value, Fail> {
        let place = self.kernel.root_offset(raw.var);
        let mut p = Pattern::packed(place.root, place.offset + raw.offset, n, lane);
        p.soft = true;
        let v = self.regs.read(&mut self.b, &p)?;
        Ok(self.b.splat(v, n as u16))
    }

    /// Registers one memory instruction for fault records.
    pub(super) fn site(&mut self, inst: &Inst, space: Space, kind: AccessKind, bytes: u32) -> u32 {
        let sites = &mut self.b.f.sites;
        sites.push(Site {
            line: inst.pos.line,
            opcode: inst.mnemonic(),
            space,
            kind,
            bytes,
            alignment: inst.alignment(),
            first_lane: inst.exec.mask.first_lane() as u8,
            parts: Vec::new(),
        });
        sites.len() as u32 - 1
    }

    /// What a surface variable stands for here.
    pub(super) fn resolve_surface(&mut self, s: SurfaceId) -> Result<SurfaceRef, Fail> {
        if s == SurfaceId::SLM {
            return Ok(SurfaceRef {
                space: Space::Slm,
                index: None,
            });
        }
        if s == SurfaceId::SCRATCH {
            // Offsets are relative to the thread's own scratch: `r0.5` gives a scratch base of 0.
            return Ok(SurfaceRef {
                space: Space::Scratch,
                index: None,
            });
        }
        if let Some(entry) = s.as_entry() {
            let index = self.b.i32(entry);
            return self.surface_index(index);
        }
        if let Some(var) = s.as_word() {
            let (row, col) = (0, 0);
            let word = self.lsc_scalar(Origin { var, row, col }, Lane::I32)?;
            return Ok(self.bindless(word));
        }
        let Some(var) = self.surface_var(s) else {
            return Fail::unsupported(format!(
                "surface {}",
                PREDEFINED_SURFACES.get(s.0 as usize).unwrap_or(&"T?")
            ));
        };
        let index = self.b.read(var);
        if s == SurfaceId::BSS {
            return Ok(self.bindless(index));
        }
        self.surface_index(index)
    }

    /// Entries of the heap are what LSC messages find there, except that scratch is none of them.
    fn bindless(&mut self, word: Value) -> SurfaceRef {
        let shift = self.kernel.target().platform.bindless_shift();
        let entry = self.b.bin_imm(BinOp::LShr, word, i64::from(shift));
        let index = Some(self.b.bin_imm(BinOp::Sub, entry, 1));
        let space = Space::Surface;
        SurfaceRef { space, index }
    }

    /// A binding-table index, with the reserved ones resolved (docs/visa.md, "Memory").
    pub(super) fn surface_index(&mut self, index: Value) -> Result<SurfaceRef, Fail> {
        match self.b.f.def_inst(index).map(|d| &d.op) {
            Some(Op::Const(254)) => Ok(SurfaceRef {
                space: Space::Slm,
                index: None,
            }),
            Some(Op::Const(n @ (252 | 253 | 255))) => {
                Fail::unsupported(format!("reserved surface index {n}"))
            }
            _ => Ok(SurfaceRef {
                space: Space::Surface,
                index: Some(index),
            }),
        }
    }

    fn offsets(&mut self, surface: SurfaceRef, addr: Value) -> Value {
        if surface.space == Space::Slm {
            self.b.bin_imm(BinOp::And, addr, SLM_MASK)
        } else {
            addr
        }
    }

    /// `addr + bytes`; an offset beyond 32 bits becomes the last one, which is outside of any region.
    pub(super) fn beyond(&mut self, surface: SurfaceRef, addr: Value, bytes: u32) -> Value {
        if bytes == 0 {
            return addr;
        }
        let addr = match surface.space {
            Space::Flat | Space::Slm => addr,
            _ => self
                .b
                .bin_imm(BinOp::UMin, addr, i64::from(u32::MAX - bytes)),
        };
        self.b.bin_imm(BinOp::Add, addr, i64::from(bytes))
    }

    /// `index << shift`; an offset beyond 32 bits becomes the last one, which is outside of any region.
    /// Local memory wraps, since only the low bits of its offsets count.
    fn scaled(&mut self, surface: SurfaceRef, index: Value, shift: u32) -> Value {
        if shift == 0 {
            return index;
        }
        let addr = self.b.bin_imm(BinOp::Shl, index, i64::from(shift));
        if surface.space == Space::Slm {
            return addr;
        }
        let most = self.b.int_like(index, i64::from(u32::MAX >> shift));
        let over = self.b.icmp(ICond::Ugt, index, most);
        let last = self.b.int_like(index, i64::from(u32::MAX));
        self.b.select(over, last, addr)
    }

    /// `(global + offset[i]) * scale`: added in 32 bits, scaled without wrapping.
    fn element_addresses(
        &mut self,
        surface: SurfaceRef,
        global: &Src,
        offsets: Raw,
        lanes: u32,
        scale: u32,
    ) -> Result<Value, Fail> {
        let g = self.scalar_int(global, Lane::I32)?;
        let o = self.payload(offsets, 0, lanes, Lane::I32)?;
        let sum = self.b.bin(BinOp::Add, o, g);
        let addr = self.scaled(surface, sum, scale.trailing_zeros());
        Ok(self.offsets(surface, addr))
    }

    fn access_args(&mut self, m: &Message) -> Vec<Value> {
        let mask = m.mask.lanes(&mut self.b, m.lanes as u16);
        let addr = self.b.splat(m.addr, m.lanes as u16);
        let mut args = vec![mask, addr];
        args.extend(m.surface.index);
        args
    }

    /// Lane-wise load of `comps` elements a lane.
    pub(super) fn load(&mut self, inst: &Inst, m: &Message, comps: u32) -> Vec<Value> {
        let site = self.site(inst, m.surface.space, AccessKind::Read, m.elem.bytes());
        let access = MemAccess {
            space: m.surface.space,
            elem: m.elem,
            comps: comps as u8,
            site,
        };
        let args = self.access_args(m);
        let tys = vec![Ty::vector(m.elem, m.lanes as u16); comps as usize];
        let i = self
            .b
            .f
            .push(self.b.cur, Op::Load(access), args, &tys, self.b.line);
        self.b.f.inst(i).results.clone()
    }

    /// Lane-wise store.
    pub(super) fn store(&mut self, inst: &Inst, m: &Message, values: &[Value]) {
        let site = self.site(inst, m.surface.space, AccessKind::Write, m.elem.bytes());
        let access = MemAccess {
            space: m.surface.space,
            elem: m.elem,
            comps: values.len() as u8,
            site,
        };
        let mut args = self.access_args(m);
        for &v in values {
            args.push(self.b.splat(v, m.lanes as u16));
        }
        self.b.effect(Op::Store(access), args);
    }

    /// Uniform load of `n` consecutive elements.
    pub(super) fn load_run(&mut self, inst: &Inst, m: &Message, n: u32) -> Value {
        let access = self.run(inst, m, AccessKind::Read, n);
        let args = self.access_args(m);
        self.b
            .op(Op::BlockLoad(access), args, Ty::vector(m.elem, n as u16))
    }

    /// Uniform store of `n` consecutive elements.
    pub(super) fn store_run(&mut self, inst: &Inst, m: &Message, n: u32, v: Value) {
        let access = self.run(inst, m, AccessKind::Write, n);
        let mut args = self.access_args(m);
        args.push(v);
        self.b.effect(Op::BlockStore(access), args);
    }

    fn run(&mut self, inst: &Inst, m: &Message, kind: AccessKind, n: u32) -> BlockAccess {
        BlockAccess {
            space: m.surface.space,
            elem: m.elem,
            n: n as u16,
            site: self.site(inst, m.surface.space, kind, m.elem.bytes()),
        }
    }

    /// [`Lowerer::load_run`] into a payload.
    pub(super) fn block_load(
        &mut self,
        inst: &Inst,
        m: &Message,
        n: u32,
        data: Raw,
    ) -> Result<(), Fail> {
        let v = self.load_run(inst, m, n);
        self.set_payload(data, 0, v, m.mask.value(), true)
    }

    /// [`Lowerer::store_run`] out of a payload.
    pub(super) fn block_store(
        &mut self,
        inst: &Inst,
        m: &Message,
        n: u32,
        data: Raw,
    ) -> Result<(), Fail> {
        let v = self.block_payload(data, n, m.elem)?;
        self.store_run(inst, m, n, v);
        Ok(())
    }

    /// Lane-wise atomic with its payloads.
    pub(super) fn atomic(
        &mut self,
        inst: &Inst,
        m: &Message,
        a: &AtomicOperands,
    ) -> Result<(), Fail> {
        let n = a.op.sources();
        if (n >= 1 && a.first.is_null()) || (n == 2 && a.second.is_null()) {
            return Fail::malformed("an atomic operand is missing");
        }
        let mut values = Vec::new();
        for raw in [a.first, a.second].into_iter().take(n) {
            let v = self.payload(raw, 0, m.lanes, a.reg)?;
            values.push(self.b.resize(v, m.elem, false));
        }
        let site = self.site(inst, m.surface.space, AccessKind::Atomic, m.elem.bytes());
        let access = AtomicAccess {
            space: m.surface.space,
            op: a.op,
            elem: m.elem,
            site,
        };
        let mut args = self.access_args(m);
        args.extend(values);
        let old = self
            .b
            .op(Op::Atomic(access), args, Ty::vector(m.elem, m.lanes as u16));
        let old = self.b.resize(old, a.reg, false);
        self.set_payload(a.dst, 0, old, m.mask.value(), false)
    }

    /// Lowers a legacy surface message.
    pub(super) fn mem(&mut self, inst: &Inst, mem: &Mem) -> Result<(), Fail> {
        use Opcode as O;
        let lanes = inst.exec.lanes();
        match &mem.kind {
            MemKind::Oword {
                owords,
                offset,
                data,
            } => {
                let surface = self.resolve_surface(mem.surface)?;
                let o = self.scalar_int(offset, Lane::I32)?;
                let addr = if inst.op == O::OwordLdUnaligned {
                    o
                } else {
                    self.scaled(surface, o, 4)
                };
                let addr = self.offsets(surface, addr);
                let m = Message {
                    surface,
                    elem: Lane::I32,
                    addr,
                    lanes: 1,
                    mask: ChannelMask::All,
                };
                let n = u32::from(*owords) * 4;
                if inst.stores() {
                    self.block_store(inst, &m, n, *data)
                } else {
                    self.block_load(inst, &m, n, *data)
                }
            }
            MemKind::Gather {
                bytes,
                global,
                offsets,
                data,
                ..
            } => {
                let surface = self.resolve_surface(mem.surface)?;
                let addr =
                    self.element_addresses(surface, global, *offsets, lanes, u32::from(*bytes))?;
                self.dword_lanes(inst, surface, addr, u32::from(*bytes), *data, inst.stores())
            }
            MemKind::GatherScaled {
                bytes,
                global,
                offsets,
                data,
            } => {
                let surface = self.resolve_surface(mem.surface)?;
                let addr = self.element_addresses(surface, global, *offsets, lanes, 1)?;
                self.dword_lanes(inst, surface, addr, u32::from(*bytes), *data, inst.stores())
            }
            MemKind::Gather4Scaled {
                channels,
                global,
                offsets,
                data,
            } => {
                let surface = self.resolve_surface(mem.surface)?;
                let addr = self.element_addresses(surface, global, *offsets, lanes, 1)?;
                let mask = self.channel_mask(inst)?;
                let m = Message {
                    surface,
                    elem: Lane::I32,
                    addr,
                    lanes,
                    mask,
                };
                self.channels(inst, &m, *channels, *data, inst.stores())
            }
            MemKind::DwordAtomic {
                op,
                width,
                offsets,
                src0,
                src1,
                dst,
            } => {
                let surface = self.resolve_surface(mem.surface)?;
                let o = self.payload(*offsets, 0, lanes, Lane::I32)?;
                let addr = self.offsets(surface, o);
                let mask = self.channel_mask(inst)?;
                let (elem, reg) = atomic_lanes(*width);
                let m = Message {
                    surface,
                    elem,
                    addr,
                    lanes,
                    mask,
                };
                self.atomic(inst, &m, &legacy_operands(*op, *src0, *src1, *dst, reg))
            }
            MemKind::Qword {
                blocks,
                offsets,
                data,
            } => {
                let surface = self.resolve_surface(mem.surface)?;
                let o = self.payload(*offsets, 0, lanes, Lane::I32)?;
                let m = Message {
                    surface,
                    elem: Lane::I64,
                    addr: self.offsets(surface, o),
                    lanes,
                    mask: self.channel_mask(inst)?,
                };
                let stride = (lanes * 8).next_multiple_of(self.grf);
                let store = inst.stores();
                self.components(inst, &m, u32::from(*blocks), stride, *data, store)
            }
            MemKind::Typed {
                channels,
                coords,
                data,
            } => self.typed(inst, mem.surface, *channels, coords, *data),
            MemKind::TypedAtomic {
                op,
                width,
                coords,
                src0,
                src1,
                dst,
            } => {
                let (elem, reg) = atomic_lanes(*width);
                let a = legacy_operands(*op, *src0, *src1, *dst, reg);
                self.typed_atomic(inst, mem.surface, coords, &a, elem)
            }
            MemKind::Media { .. } => self.media(inst, mem),
        }
    }

    /// One element a lane, one dword a lane in the register; upper bits of narrow loads are zero.
    fn dword_lanes(
        &mut self,
        inst: &Inst,
        surface: SurfaceRef,
        addr: Value,
        bytes: u32,
        data: Raw,
        store: bool,
    ) -> Result<(), Fail> {
        let lanes = inst.exec.lanes();
        let mask = self.channel_mask(inst)?;
        let Some(elem) = Lane::int(bytes) else {
            return Fail::malformed(format!("element of {bytes} bytes"));
        };
        let m = Message {
            surface,
            elem,
            addr,
            lanes,
            mask,
        };
        if store {
            let v = self.payload(data, 0, lanes, Lane::I32)?;
            let v = self.b.resize(v, elem, false);
            self.store(inst, &m, &[v]);
            return Ok(());
        }
        let v = self.load(inst, &m, 1);
        let v = self.b.resize(v[0], Lane::I32, false);
        self.set_payload(data, 0, v, mask.value(), false)
    }

    /// Dword channels: enabled ones follow each other in the register, each from a new register on.
    ///
    /// A gap in the channel mask leaves a gap in memory, not in the register.
    pub(super) fn channels(
        &mut self,
        inst: &Inst,
        m: &Message,
        channels: Channels,
        data: Raw,
        store: bool,
    ) -> Result<(), Fail> {
        let stride = (m.lanes * 4).max(self.grf);
        let enabled: Vec<u32> = channels.iter().collect();
        if enabled.is_empty() {
            return Fail::malformed("no channel is enabled");
        }
        // Runs of adjacent channels are one access of several components.
        let mut position = 0;
        let mut at = 0;
        while at < enabled.len() {
            let mut n = 1;
            while at + n < enabled.len() && enabled[at + n] == enabled[at] + n as u32 {
                n += 1;
            }
            let addr = self.beyond(m.surface, m.addr, enabled[at] * 4);
            let part = Message { addr, ..*m };
            if store {
                let mut values = Vec::new();
                for k in 0..n as u32 {
                    values.push(self.payload(data, (position + k) * stride, m.lanes, Lane::I32)?);
                }
                self.store(inst, &part, &values);
            } else {
                for (k, v) in self.load(inst, &part, n as u32).into_iter().enumerate() {
                    self.set_payload(
                        data,
                        (position + k as u32) * stride,
                        v,
                        m.mask.value(),
                        false,
                    )?;
                }
            }
            position += n as u32;
            at += n;
        }
        Ok(())
    }
}

/// Memory element and register lane of a legacy atomic.
pub(super) fn atomic_lanes(width: AtomicWidth) -> (Lane, Lane) {
    match width {
        AtomicWidth::W16 => (Lane::I16, Lane::I32),
        AtomicWidth::W32 => (Lane::I32, Lane::I32),
        AtomicWidth::W64 => (Lane::I64, Lane::I64),
    }
}

/// Legacy messages name the new value of `cmpxchg` first, but the compare value of `fcmpwr` first (docs/visa.md, "Memory").
pub(super) fn legacy_operands(
    op: AtomicOp,
    src0: Raw,
    src1: Raw,
    dst: Raw,
    reg: Lane,
) -> AtomicOperands {
    let (first, second) = if op == AtomicOp::CmpXchg {
        (src1, src0)
    } else {
        (src0, src1)
    };
    AtomicOperands {
        op,
        first,
        second,
        dst,
        reg,
    }
}
