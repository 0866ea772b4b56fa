//! Untyped LSC loads, stores and atomics.

use super::Lowerer;
use super::error::Fail;
use super::mem::{AtomicOperands, Message, SurfaceRef};
use super::operand::ChannelMask;
use crate::isa::Opcode;
use crate::isa::lsc::{ARG_WRITTEN, AddrModel, AddrSize, DataSize, LscOp, Sfid};
use crate::module::Inst;
use crate::module::*;
use crate::ssa::*;

fn element(size: DataSize) -> Lane {
    match size {
        DataSize::D8 | DataSize::D8c32 => Lane::I8,
        DataSize::D16 | DataSize::D16c32 | DataSize::D16c32h => Lane::I16,
        DataSize::D32 => Lane::I32,
        DataSize::D64 => Lane::I64,
    }
}

/// True when an operation on `r0.5` takes away the number of the thread, its low ten bits, or leaves them below an
/// entry of the surface-state heap.
fn drops_number(op: BinOp, constant: u64) -> bool {
    match op {
        BinOp::LShr => (4..32).contains(&constant),
        BinOp::And => constant & 0x3FF == 0,
        _ => false,
    }
}

/// Most elements a lane of one access; longer vectors are several.
const RUN: u32 = 8;

/// Index of the binding table, or the thread's scratch space, that an entry of the surface-state heap stands for
/// under a condition.
struct Alternative {
    surface: SurfaceRef,
    when: Option<Value>,
}

const SCRATCH: SurfaceRef = SurfaceRef {
    space: Space::Scratch,
    index: None,
};

impl Lowerer<'_> {
    /// Lowers an untyped LSC message.
    pub(super) fn lsc(&mut self, inst: &Inst, l: &Lsc) -> Result<(), Fail> {
        let mask = self.channel_mask(inst)?;
        if l.op == LscOp::LoadStatus {
            return self.lsc_status(inst, l, mask);
        }
        if l.prefetches() {
            return Ok(());
        }
        for a in self.lsc_surfaces(l)? {
            let mask = match a.when {
                None => mask,
                Some(when) => {
                    let lanes = inst.exec.lanes() as u16;
                    let on = mask.lanes(&mut self.b, lanes);
                    let when = self.b.splat(when, lanes);
                    let both = self.b.bin(BinOp::And, on, when);
                    if lanes == 1 {
                        ChannelMask::Uniform(both)
                    } else {
                        ChannelMask::Lanes(both)
                    }
                }
            };
            self.lsc_in(inst, l, a.surface, mask)?;
        }
        Ok(())
    }

    /// A message to one memory.
    fn lsc_in(
        &mut self,
        inst: &Inst,
        l: &Lsc,
        surface: SurfaceRef,
        mask: ChannelMask,
    ) -> Result<(), Fail> {
        let addr = self.lsc_address(inst, l, surface)?;
        let m = Message {
            surface,
            elem: element(l.data_size),
            addr,
            lanes: inst.exec.lanes(),
            mask,
        };
        let store = inst.stores();
        match l.op {
            LscOp::Load | LscOp::Store | LscOp::LoadStrided | LscOp::StoreStrided
                if l.transposed =>
            {
                self.lsc_block(inst, l, &m, store)
            }
            LscOp::Load | LscOp::Store | LscOp::LoadStrided | LscOp::StoreStrided => {
                self.lsc_vector(inst, l, &m, u32::from(l.elems), store)
            }
            LscOp::LoadQuad | LscOp::StoreQuad => {
                if l.transposed || l.elems != 1 {
                    return Fail::malformed("channels of a vector or a transposed message");
                }
                self.lsc_quad(inst, l, &m, store)
            }
            LscOp::Atomic(op) => {
                if l.transposed || l.elems != 1 {
                    return Fail::malformed("an atomic on a vector or a transposed message");
                }
                let reg = match l.data_size {
                    DataSize::D64 => Lane::I64,
                    DataSize::D32 | DataSize::D16c32 => Lane::I32,
                    other => return Fail::unsupported(format!("atomics on {}", other.name())),
                };
                let a = AtomicOperands {
                    op,
                    first: l.src1,
                    second: l.src2,
                    dst: l.data,
                    reg,
                };
                self.atomic(inst, &m, &a)
            }
            _ => Fail::unsupported("this LSC operation is not lowered yet"),
        }
    }

    /// One bit a channel: enabled, and its page exists. Each page here has memory, as there are no
    /// sparse resources.
    fn lsc_status(&mut self, inst: &Inst, l: &Lsc, mask: ChannelMask) -> Result<(), Fail> {
        let lanes = inst.exec.lanes() as u16;
        let on = mask.lanes(&mut self.b, lanes);
        let (bits, any) = if lanes == 1 {
            (self.b.conv(Conv::ZExt, on, Lane::I32), on)
        } else {
            let bits = self.b.op(Op::MaskToBits, vec![on], Ty::I32);
            (bits, self.b.op(Op::MaskAny, vec![on], Ty::scalar(Lane::I1)))
        };
        self.set_payload(l.data, 0, bits, Some(any), false)
    }

    fn lsc_surfaces(&mut self, l: &Lsc) -> Result<Vec<Alternative>, Fail> {
        let always = |surface| {
            Ok(vec![Alternative {
                surface,
                when: None,
            }])
        };
        if l.sfid == Sfid::Slm {
            return always(SurfaceRef {
                space: Space::Slm,
                index: None,
            });
        }
        match (l.model, &l.surface) {
            (AddrModel::Flat, _) => always(SurfaceRef {
                space: Space::Flat,
                index: None,
            }),
            (AddrModel::Bti, LscSurface::Imm(n)) => {
                let v = self.b.i32(*n as u32);
                always(self.surface_index(v)?)
            }
            (AddrModel::Bti, LscSurface::Var(o)) => {
                let v = self.lsc_scalar(*o, Lane::I32)?;
                always(self.surface_index(v)?)
            }
            (AddrModel::Ss, LscSurface::Imm(n)) if (*n as u32) >> 6 == 0 => always(SCRATCH),
            (AddrModel::Ss | AddrModel::Bss, LscSurface::Imm(n)) => {
                let index = ((*n as u32) >> 6).wrapping_sub(1);
                let index = Some(self.b.i32(index));
                always(SurfaceRef {
                    space: Space::Surface,
                    index,
                })
            }
            (AddrModel::Bss, LscSurface::Var(o)) => {
                let v = self.lsc_scalar(*o, Lane::I32)?;
                always(self.heap_surface(v).0)
            }
            (AddrModel::Ss, LscSurface::Var(o)) => {
                let v = self.lsc_scalar(*o, Lane::I32)?;
                if self.from_scratch_base(v) || self.holds_scratch_base(o.var) {
                    return always(SCRATCH);
                }
                self.either_surface(v)
            }
            (AddrModel::Arg, _) if l.writes() => Fail::unsupported(ARG_WRITTEN),
            (AddrModel::Arg, _) => always(SurfaceRef {
                space: Space::Args,
                index: None,
            }),
            (model, _) => {
                Fail::malformed(format!("address model {} without a surface", model.name()))
            }
        }
    }

    /// Entries of the surface-state heap are 64 bytes apart: the first is the thread's scratch space, the others are the
    /// surfaces of the binding table. Gives the surface and its entry.
    pub(super) fn heap_surface(&mut self, offset: Value) -> (SurfaceRef, Value) {
        let entry = self.b.bin_imm(BinOp::LShr, offset, 6);
        let index = Some(self.b.bin_imm(BinOp::Sub, entry, 1));
        let space = Space::Surface;
        (SurfaceRef { space, index }, entry)
    }

    /// The surface, and scratch in case that the entry is the first.
    fn either_surface(&mut self, offset: Value) -> Result<Vec<Alternative>, Fail> {
        let (surface, entry) = self.heap_surface(offset);
        let zero = self.b.int_like(entry, 0);
        let scratch = self.b.icmp(ICond::Eq, entry, zero);
        let other = self.b.icmp(ICond::Ne, entry, zero);
        let when = |surface, v| Alternative {
            surface,
            when: Some(v),
        };
        Ok(vec![when(surface, other), when(SCRATCH, scratch)])
    }

    /// One element of a register.
    pub(super) fn lsc_scalar(&mut self, origin: Origin, lane: Lane) -> Result<Value, Fail> {
        let src = Src::General {
            origin,
            region: crate::isa::SrcRegion::SCALAR,
            modifier: crate::isa::SrcModifier::None,
        };
        self.scalar_int(&src, lane)
    }

    /// True when a value is `r0.5` without the bits that number the thread, which is the first entry of the heap.
    fn from_scratch_base(&self, v: Value) -> bool {
        let f = &self.b.f;
        let constant = |v: Value| match f.def_inst(f.resolve(v)).map(|d| &d.op) {
            Some(Op::Const(n)) => Some(*n),
            _ => None,
        };
        let Some(d) = f.def_inst(f.resolve(v)) else {
            return false;
        };
        let (Op::Binary(op), &[a, b]) = (&d.op, d.args.as_slice()) else {
            return false;
        };
        let base = f.def_inst(f.resolve(a)).map(|d| &d.op);
        matches!(base, Some(Op::Input(crate::ssa::Input::R0(5))))
            && constant(b).is_some_and(|n| drops_number(*op, n))
    }

    /// True when everything that computes the variable makes it so: where control flow meets, its value says nothing.
    fn holds_scratch_base(&self, var: VarId) -> bool {
        let root = self.kernel.root_offset(var).root;
        let is_r0_5 = |s: &Src| match s {
            Src::General { origin, .. } => {
                let place = self.kernel.root_offset(origin.var);
                let r0 = self.kernel.root_offset(VarId::R0);
                let at = u32::from(origin.row) * self.grf + u32::from(origin.col) * 4;
                place.root == r0.root && place.offset + at == 20
            }
            _ => false,
        };
        let mut found = false;
        for inst in &self.kernel.module().insts {
            let Body::Alu(alu) = &inst.body else { continue };
            let Dst::General { origin, .. } = &alu.dst else {
                continue;
            };
            if self.kernel.root_offset(origin.var).root != root {
                continue;
            }
            let op = match inst.op {
                Opcode::Shr => BinOp::LShr,
                Opcode::And => BinOp::And,
                _ => return false,
            };
            let computes = match alu.srcs.as_slice() {
                [base, Src::Imm { bits, .. }] => is_r0_5(base) && drops_number(op, *bits),
                _ => false,
            };
            if !computes {
                return false;
            }
            found = true;
        }
        found
    }

    fn lsc_address(&mut self, inst: &Inst, l: &Lsc, surface: SurfaceRef) -> Result<Value, Fail> {
        let strided = matches!(l.op, LscOp::LoadStrided | LscOp::StoreStrided);
        let lanes = if l.transposed || strided {
            1
        } else {
            inst.exec.lanes()
        };
        let lane = match l.addr_size {
            AddrSize::A16 => Lane::I16,
            AddrSize::A32 => Lane::I32,
            AddrSize::A64 => Lane::I64,
        };
        let a = self.payload(l.addr, 0, lanes, lane)?;
        let mut a = self.b.resize(a, surface.space.addr(), false);
        if l.scale != 1 {
            a = self.b.bin_imm(BinOp::Mul, a, i64::from(l.scale));
        }
        if l.offset != 0 {
            a = self.b.bin_imm(BinOp::Add, a, i64::from(l.offset));
        }
        if strided {
            let step = match &l.stride {
                None => self.b.int_like(a, i64::from(l.packed_bytes())),
                Some(LscScalar::Imm(n)) => self.b.int_like(a, *n as i64),
                Some(LscScalar::Var(o)) => self.lsc_scalar(*o, surface.space.addr())?,
            };
            let n = inst.exec.lanes();
            let ids = self
                .b
                .vec_const(surface.space.addr(), (0..u64::from(n)).collect());
            let steps = self.b.bin(BinOp::Mul, ids, step);
            a = self.b.bin(BinOp::Add, a, steps);
        }
        Ok(if surface.space == Space::Slm {
            self.b.bin_imm(BinOp::And, a, 0x0FFF_FFFF)
        } else {
            a
        })
    }

    /// Transposed: one address, elements one after the other.
    fn lsc_block(&mut self, inst: &Inst, l: &Lsc, m: &Message, store: bool) -> Result<(), Fail> {
        if inst.exec.lanes() != 1 {
            return Fail::malformed("a transposed message has execution size 1");
        }
        let n = u32::from(l.elems);
        let reg = Lane::int(l.data_size.register_bytes()).unwrap_or(Lane::I32);
        if reg == m.elem {
            return if store {
                self.block_store(inst, m, n, l.data)
            } else {
                self.block_load(inst, m, n, l.data)
            };
        }
        if store {
            let v = self.block_payload(l.data, n, reg)?;
            let v = self.lsc_narrow(l, v);
            self.store_run(inst, m, n, v);
            return Ok(());
        }
        let v = self.load_run(inst, m, n);
        let v = self.lsc_result(l, v);
        self.set_payload(l.data, 0, v, m.mask.value(), true)
    }

    /// Bytes from one component to the next: lanes are padded to the message's minimum (docs/visa.md, "Memory").
    fn component_stride(&self, l: &Lsc, lanes: u32) -> u32 {
        let lanes = lanes.max(self.kernel.target().platform.lsc_min_lanes());
        (lanes * l.data_size.register_bytes()).max(self.grf)
    }

    /// Vectors of more elements than an access has are several accesses.
    fn lsc_vector(
        &mut self,
        inst: &Inst,
        l: &Lsc,
        m: &Message,
        n: u32,
        store: bool,
    ) -> Result<(), Fail> {
        let stride = self.component_stride(l, m.lanes);
        for first in (0..n).step_by(RUN as usize) {
            let addr = self.beyond(m.surface, m.addr, first * m.elem.bytes());
            let part = Message { addr, ..*m };
            let components = first..(first + RUN).min(n);
            if store {
                let mut values = Vec::new();
                for c in components {
                    values.push(self.lsc_source(l, c * stride, m)?);
                }
                self.store(inst, &part, &values);
                continue;
            }
            let values = self.load(inst, &part, components.len() as u32);
            for (c, v) in components.zip(values) {
                let v = self.lsc_result(l, v);
                self.set_payload(l.data, c * stride, v, m.mask.value(), false)?;
            }
        }
        Ok(())
    }

    fn lsc_source(&mut self, l: &Lsc, at: u32, m: &Message) -> Result<Value, Fail> {
        let reg = Lane::int(l.data_size.register_bytes()).unwrap_or(Lane::I32);
        let v = self.payload(l.data, at, m.lanes, reg)?;
        Ok(self.lsc_narrow(l, v))
    }

    /// Elements of registers as elements of memory.
    fn lsc_narrow(&mut self, l: &Lsc, v: Value) -> Value {
        let v = if l.data_size == DataSize::D16c32h {
            self.b.bin_imm(BinOp::LShr, v, 16)
        } else {
            v
        };
        self.b.resize(v, element(l.data_size), false)
    }

    fn lsc_result(&mut self, l: &Lsc, v: Value) -> Value {
        let reg = Lane::int(l.data_size.register_bytes()).unwrap_or(Lane::I32);
        let v = self.b.resize(v, reg, false);
        if l.data_size == DataSize::D16c32h {
            self.b.bin_imm(BinOp::Shl, v, 16)
        } else {
            v
        }
    }

    /// Channels as in the legacy quad messages, with LSC padding.
    fn lsc_quad(&mut self, inst: &Inst, l: &Lsc, m: &Message, store: bool) -> Result<(), Fail> {
        let stride = self.component_stride(l, m.lanes);
        for (position, c) in l.channels.iter().enumerate() {
            let addr = self.beyond(m.surface, m.addr, c * m.elem.bytes());
            let part = Message { addr, ..*m };
            let at = position as u32 * stride;
            if store {
                let v = self.lsc_source(l, at, m)?;
                self.store(inst, &part, &[v]);
            } else {
                let v = self.load(inst, &part, 1);
                let v = self.lsc_result(l, v[0]);
                self.set_payload(l.data, at, v, m.mask.value(), false)?;
            }
        }
        Ok(())
    }
}
