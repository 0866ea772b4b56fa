//! Untyped LSC loads, stores and atomics (VISA.md 2.6).

use super::access::{Access, Atomic, Memory};
use super::error::Halt;
use super::lanes::Lanes;
use super::machine::Machine;
use super::message::{one, surface_index};
use super::number::mask;
use crate::isa::lsc::{AddrModel, AddrSize, DataSize, LscOp, Sfid};
use crate::module::*;

impl Machine<'_, '_, '_> {
    /// An untyped message.
    pub fn lsc(&mut self, inst: &Inst, l: &Lsc) -> Result<(), Halt> {
        if l.scale != 1 {
            return Halt::unsupported("an address scale other than 1");
        }
        let memory = self.lsc_memory(l)?;
        let address = self.lsc_addresses(inst, l, memory)?;
        let enabled = self.enabled(inst)?;
        let a = one(memory, address, l.data_size.memory_bytes(), enabled);
        let store = matches!(l.op, LscOp::Store | LscOp::StoreQuad | LscOp::StoreStrided);
        match l.op {
            LscOp::Load | LscOp::Store | LscOp::LoadStrided | LscOp::StoreStrided
                if l.transposed =>
            {
                self.lsc_block(inst, l, &a, store)
            }
            LscOp::Load | LscOp::Store | LscOp::LoadStrided | LscOp::StoreStrided => {
                let a = Access {
                    count: usize::from(l.elems),
                    ..a
                };
                self.lsc_vector(inst, l, &a, store)
            }
            LscOp::LoadQuad | LscOp::StoreQuad if l.data_size == DataSize::D32 => {
                self.lsc_quad(inst, l, &a, store)
            }
            LscOp::Atomic(op) => {
                let register = if l.data_size == DataSize::D64 { 8 } else { 4 };
                let atomic = Atomic {
                    op,
                    first: l.src1,
                    second: l.src2,
                    dst: l.data,
                    register,
                };
                self.atomic(inst, &a, &atomic)
            }
            _ => Halt::unsupported(super::NOT_YET),
        }
    }

    fn lsc_memory(&mut self, l: &Lsc) -> Result<Memory, Halt> {
        if l.sfid == Sfid::Slm {
            return Ok(Memory::LOCAL);
        }
        match (l.model, &l.surface) {
            (AddrModel::Flat, _) => Ok(Memory::DEVICE),
            (AddrModel::Bti, LscSurface::Imm(n)) => surface_index(*n as u32),
            (AddrModel::Bti, LscSurface::Var(o)) => surface_index(self.scalar_at(*o)? as u32),
            // The only surface in the state heap is the thread's scratch space, whose offset there is `r0.5 >> 4`
            // (VISA.md 4.2).
            (AddrModel::Ss, LscSurface::Var(o)) => {
                let [.., r0_5] = self
                    .group
                    .r0(self.number)
                    .first_chunk::<6>()
                    .copied()
                    .unwrap_or([0; 6]);
                let offset = self.scalar_at(*o)? as u32;
                if [r0_5.wrapping_shr(4), r0_5 & !0x3FF, r0_5].contains(&offset) {
                    Ok(Memory::SCRATCH)
                } else {
                    Halt::unsupported("`ss` surface that is not the thread's scratch space")
                }
            }
            (model, _) => Halt::unsupported(format!("address model {model:?}").to_lowercase()),
        }
    }

    fn lsc_addresses(&mut self, inst: &Inst, l: &Lsc, memory: Memory) -> Result<Lanes, Halt> {
        let strided = matches!(l.op, LscOp::LoadStrided | LscOp::StoreStrided);
        let bytes = match l.addr_size {
            AddrSize::A16 => 2,
            AddrSize::A32 => 4,
            AddrSize::A64 => 8,
        };
        // Sums have as many bits as the memory's addresses.
        let keep = if memory.space == super::access::Space::Device {
            u64::MAX
        } else {
            mask(4)
        };
        let step = match &l.stride {
            _ if !strided => 0,
            None => l.data_size.memory_bytes().into(),
            Some(LscScalar::Imm(n)) => *n,
            Some(LscScalar::Var(o)) => self.scalar_at(*o)?,
        };
        let single = strided || l.transposed;
        let mut out = Lanes::default();
        for i in 0..inst.exec.lanes() as usize {
            let from = if single { 0 } else { i };
            let address = self
                .payload(l.addr, 0, from, bytes)?
                .wrapping_add(i64::from(l.offset) as u64)
                .wrapping_add(step.wrapping_mul(i as u64));
            out.set(i, memory.masked(address & keep));
        }
        Ok(out)
    }

    /// Transposed: one address, elements one after the other.
    fn lsc_block(&mut self, inst: &Inst, l: &Lsc, a: &Access, store: bool) -> Result<(), Halt> {
        if inst.exec.lanes() != 1 {
            return Halt::malformed("a transposed message has execution size 1");
        }
        if !matches!(l.data_size, DataSize::D32 | DataSize::D64) {
            return Halt::unsupported("transposed elements other than d32 and d64");
        }
        let a = Access {
            count: usize::from(l.elems),
            ..*a
        };
        if store {
            self.store_block(inst, &a, l.data)
        } else {
            self.load_block(inst, &a, l.data)
        }
    }

    /// Bytes from one component to the next: lanes are padded to the message's minimum.
    fn component_stride(&self, l: &Lsc, lanes: u32) -> usize {
        let lanes = lanes.max(self.program.kernel.target().platform.lsc_min_lanes());
        (lanes as usize)
            .saturating_mul(l.data_size.register_bytes() as usize)
            .max(self.grf())
    }

    fn lsc_vector(&mut self, inst: &Inst, l: &Lsc, a: &Access, store: bool) -> Result<(), Halt> {
        if a.count > 8 {
            return Halt::unsupported(format!("{} elements a lane", a.count));
        }
        let lanes = inst.exec.lanes();
        let stride = self.component_stride(l, lanes);
        let register = l.data_size.register_bytes() as usize;
        // Of `d16c32h` the element is the high half of the register's dword.
        let high = if l.data_size == DataSize::D16c32h {
            16
        } else {
            0
        };
        if store {
            let mut values = Vec::new();
            for c in 0..a.count {
                let v = self.payload_lanes(l.data, c.saturating_mul(stride), lanes, register)?;
                values.push(Lanes::each(|i| v.get(i).wrapping_shr(high)));
            }
            return self.store_lanes(inst, a, &values);
        }
        for (c, v) in self.load(inst, a)?.iter().enumerate() {
            let v = Lanes::each(|i| v.get(i).wrapping_shl(high));
            self.set_payload_lanes(l.data, c.saturating_mul(stride), register, &v, a.enabled)?;
        }
        Ok(())
    }

    /// Channels as in the legacy messages, with LSC padding; each is an access of its own.
    fn lsc_quad(&mut self, inst: &Inst, l: &Lsc, a: &Access, store: bool) -> Result<(), Halt> {
        let lanes = inst.exec.lanes();
        let stride = self.component_stride(l, lanes);
        for (position, c) in l.channels.iter().enumerate() {
            let distance = u64::from(c).wrapping_mul(4);
            let part = Access {
                address: Lanes::each(|i| a.memory.beyond(a.address.get(i), distance)),
                part: position as u32,
                ..*a
            };
            let at = position.saturating_mul(stride);
            if store {
                let v = self.payload_lanes(l.data, at, lanes, 4)?;
                self.store_lanes(inst, &part, &[v])?;
            } else {
                for v in self.load(inst, &part)? {
                    self.set_payload_lanes(l.data, at, 4, &v, a.enabled)?;
                }
            }
        }
        Ok(())
    }
}
