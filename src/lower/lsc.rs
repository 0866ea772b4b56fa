//! Untyped LSC loads, stores and atomics.

use super::Lowerer;
use super::error::Fail;
use super::mem::{AtomicOperands, Message, SurfaceRef};
use crate::isa::Opcode;
use crate::isa::lsc::{AddrModel, AddrSize, DataSize, LscOp, Sfid};
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

impl Lowerer<'_> {
    /// Lowers an untyped LSC message.
    pub(super) fn lsc(&mut self, inst: &Inst, l: &Lsc) -> Result<(), Fail> {
        if l.scale != 1 {
            return Fail::unsupported("an address scale other than 1");
        }
        let surface = self.lsc_surface(l)?;
        let lanes = inst.exec.lanes();
        let mask = self.channel_mask(inst)?;
        let addr = self.lsc_address(inst, l, surface)?;
        let m = Message {
            surface,
            elem: element(l.data_size),
            addr,
            lanes,
            mask,
        };
        let store = matches!(l.op, LscOp::Store | LscOp::StoreQuad | LscOp::StoreStrided);
        match l.op {
            LscOp::Load | LscOp::Store | LscOp::LoadStrided | LscOp::StoreStrided
                if l.transposed =>
            {
                self.lsc_block(inst, l, &m, store)
            }
            LscOp::Load | LscOp::Store | LscOp::LoadStrided | LscOp::StoreStrided => {
                self.lsc_vector(inst, l, &m, u32::from(l.elems), store)
            }
            LscOp::LoadQuad | LscOp::StoreQuad if l.data_size == DataSize::D32 => {
                self.lsc_quad(inst, l, &m, store)
            }
            LscOp::Atomic(op) => {
                let reg = if l.data_size == DataSize::D64 {
                    Lane::I64
                } else {
                    Lane::I32
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

    fn lsc_surface(&mut self, l: &Lsc) -> Result<SurfaceRef, Fail> {
        if l.sfid == Sfid::Slm {
            return Ok(SurfaceRef {
                space: Space::Slm,
                index: None,
            });
        }
        match (l.model, &l.surface) {
            (AddrModel::Flat, _) => Ok(SurfaceRef {
                space: Space::Flat,
                index: None,
            }),
            (AddrModel::Bti, LscSurface::Imm(n)) => {
                let v = self.b.i32(*n as u32);
                self.surface_index(v)
            }
            (AddrModel::Bti, LscSurface::Var(o)) => {
                let src = Src::General {
                    origin: *o,
                    region: crate::isa::SrcRegion::SCALAR,
                    modifier: crate::isa::SrcModifier::None,
                };
                let v = self.scalar_int(&src, Lane::I32)?;
                self.surface_index(v)
            }
            // OpenCL code uses the surface-state heap for one thing, its scratch space (VISA.md 4.2).
            (AddrModel::Ss, LscSurface::Var(o)) => {
                let src = Src::General {
                    origin: *o,
                    region: crate::isa::SrcRegion::SCALAR,
                    modifier: crate::isa::SrcModifier::None,
                };
                let v = self.scalar_int(&src, Lane::I32)?;
                if self.regs.recorder.is_some()
                    || self.from_scratch_base(v)
                    || self.holds_scratch_base(o.var)
                {
                    Ok(SurfaceRef {
                        space: Space::Scratch,
                        index: None,
                    })
                } else {
                    Fail::unsupported("`ss` surface that is not the thread's scratch space")
                }
            }
            (model, _) => Fail::unsupported(format!("address model {model:?}").to_lowercase()),
        }
    }

    /// True when a value is computed from `r0.5` and constants only.
    fn from_scratch_base(&self, v: Value) -> bool {
        match self.b.f.def_inst(self.b.f.resolve(v)) {
            Some(d) => match d.op {
                Op::Input(crate::ssa::Input::R0(5)) => true,
                Op::Binary(BinOp::LShr | BinOp::And) => {
                    d.args.first().is_some_and(|&a| self.from_scratch_base(a))
                }
                _ => false,
            },
            None => false,
        }
    }

    /// True when everything that computes the variable computes it from `r0.5` and immediates: where control
    /// flow meets, its value says nothing.
    fn holds_scratch_base(&self, var: VarId) -> bool {
        let root = self.kernel.place(var).root;
        let is_r0_5 = |s: &Src| match s {
            Src::General { origin, .. } => {
                let place = self.kernel.place(origin.var);
                let r0 = self.kernel.place(VarId::R0);
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
            if self.kernel.place(origin.var).root != root {
                continue;
            }
            let computes = matches!(inst.op, Opcode::Shr | Opcode::And | Opcode::Mov);
            if !computes || !alu.srcs.first().is_some_and(is_r0_5) {
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
        let a = self.b.resize(a, surface.space.addr(), false);
        let mut a = if l.offset == 0 {
            a
        } else {
            self.b.bin_imm(BinOp::Add, a, i64::from(l.offset))
        };
        if strided {
            let step = match &l.stride {
                None => self.b.int_like(a, i64::from(l.data_size.memory_bytes())),
                Some(LscScalar::Imm(n)) => self.b.int_like(a, *n as i64),
                Some(LscScalar::Var(o)) => {
                    let src = Src::General {
                        origin: *o,
                        region: crate::isa::SrcRegion::SCALAR,
                        modifier: crate::isa::SrcModifier::None,
                    };
                    self.scalar_int(&src, surface.space.addr())?
                }
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
        if !matches!(l.data_size, DataSize::D32 | DataSize::D64) {
            return Fail::unsupported("transposed elements other than d32 and d64");
        }
        let n = u32::from(l.elems);
        if store {
            self.block_store(inst, m, n, l.data)
        } else {
            self.block_load(inst, m, n, l.data)
        }
    }

    /// Bytes from one component to the next: lanes are padded to the message's minimum (VISA.md 2.6).
    fn component_stride(&self, l: &Lsc, lanes: u32) -> u32 {
        let lanes = lanes.max(self.kernel.target().platform.lsc_min_lanes());
        (lanes * l.data_size.register_bytes()).max(self.grf)
    }

    fn lsc_vector(
        &mut self,
        inst: &Inst,
        l: &Lsc,
        m: &Message,
        n: u32,
        store: bool,
    ) -> Result<(), Fail> {
        if n > 8 {
            return Fail::unsupported(format!("{n} elements a lane"));
        }
        let stride = self.component_stride(l, m.lanes);
        if store {
            let mut values = Vec::new();
            for c in 0..n {
                values.push(self.lsc_source(l, c * stride, m)?);
            }
            self.store(inst, m, &values);
            return Ok(());
        }
        for (c, v) in self.load(inst, m, n).into_iter().enumerate() {
            let v = self.lsc_result(l, v);
            self.set_payload(l.data, c as u32 * stride, v, m.mask.value(), false)?;
        }
        Ok(())
    }

    fn lsc_source(&mut self, l: &Lsc, at: u32, m: &Message) -> Result<Value, Fail> {
        let reg = Lane::int(l.data_size.register_bytes()).unwrap_or(Lane::I32);
        let v = self.payload(l.data, at, m.lanes, reg)?;
        let v = if l.data_size == DataSize::D16c32h {
            self.b.bin_imm(BinOp::LShr, v, 16)
        } else {
            v
        };
        Ok(self.b.resize(v, m.elem, false))
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
            let addr = self.beyond(m.surface, m.addr, c * 4);
            let part = Message { addr, ..*m };
            let at = position as u32 * stride;
            if store {
                let v = self.payload(l.data, at, m.lanes, Lane::I32)?;
                self.store(inst, &part, &[v]);
            } else {
                let v = self.load(inst, &part, 1);
                self.set_payload(l.data, at, v[0], m.mask.value(), false)?;
            }
        }
        Ok(())
    }
}
