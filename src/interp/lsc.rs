//! Untyped LSC loads, stores and atomics (docs/visa.md, "Memory").

use super::access::{Atomic, LaneAccess, Memory, Slot};
use super::error::Halt;
use super::lanes::ChannelBits;
use super::machine::Machine;
use super::message::{one, surface_index};
use super::number::mask;
use crate::isa::lsc::{ARG_WRITTEN, AddrModel, AddrSize, DataSize, LscOp, Sfid};
use crate::module::*;

/// Most elements a lane of one access; longer vectors are several.
const RUN: usize = 8;

impl Machine<'_, '_, '_> {
    /// An untyped message.
    pub(super) fn lsc(&mut self, inst: &Inst, l: &Lsc) -> Result<(), Halt> {
        let enabled = self.enabled(inst)?;
        if l.op == LscOp::LoadStatus {
            return self.lsc_status(l, enabled);
        }
        // It may bring something to a cache, which nothing can see, and cannot fault.
        if l.prefetches() {
            return Ok(());
        }
        let memory = self.lsc_memory(l)?;
        let address = self.lsc_addresses(inst, l, memory)?;
        let a = one(memory, address, l.data_size.memory_bytes(), enabled);
        let store = inst.stores();
        match l.op {
            LscOp::Load | LscOp::Store | LscOp::LoadStrided | LscOp::StoreStrided
                if l.transposed =>
            {
                self.lsc_block(inst, l, &a, store)
            }
            LscOp::Load | LscOp::Store | LscOp::LoadStrided | LscOp::StoreStrided => {
                self.lsc_vector(inst, l, &a, store)
            }
            LscOp::LoadQuad | LscOp::StoreQuad => {
                if l.transposed || l.elems != 1 {
                    return Halt::malformed("channels of a vector or a transposed message");
                }
                self.lsc_quad(inst, l, &a, store)
            }
            LscOp::Atomic(op) => {
                if l.transposed || l.elems != 1 {
                    return Halt::malformed("an atomic on a vector or a transposed message");
                }
                let register = match l.data_size {
                    DataSize::D64 => 8,
                    DataSize::D32 | DataSize::D16c32 => 4,
                    other => return Halt::unsupported(format!("atomics on {}", other.name())),
                };
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

    /// One bit a channel in the first dword: enabled, and the page exists. The specification means pages of sparse
    /// resources; there are none here, so that every page exists, whether or not an access to it would be in bounds.
    /// A message without channels writes nothing.
    fn lsc_status(&mut self, l: &Lsc, enabled: u32) -> Result<(), Halt> {
        if enabled == 0 || l.data.is_null() {
            return Ok(());
        }
        self.set_payload(l.data, 0, 0, 4, enabled.into())
    }

    fn lsc_memory(&mut self, l: &Lsc) -> Result<Memory, Halt> {
        if l.sfid == Sfid::Slm {
            return Ok(Memory::LOCAL);
        }
        match (l.model, &l.surface) {
            (AddrModel::Flat, _) => Ok(Memory::DEVICE),
            (AddrModel::Bti, LscSurface::Imm(n)) => surface_index(*n as u32),
            (AddrModel::Bti, LscSurface::Var(o)) => surface_index(self.scalar_at(*o)? as u32),
            (AddrModel::Ss, LscSurface::Imm(n)) => Ok(heap_entry(*n as u32)),
            (AddrModel::Ss, LscSurface::Var(o)) => Ok(heap_entry(self.scalar_at(*o)? as u32)),
            (AddrModel::Bss, LscSurface::Imm(n)) => Ok(bindless(*n as u32)),
            (AddrModel::Bss, LscSurface::Var(o)) => Ok(bindless(self.scalar_at(*o)? as u32)),
            (AddrModel::Arg, _) if l.writes() => Halt::unsupported(ARG_WRITTEN),
            (AddrModel::Arg, _) => Ok(Memory::ARGS),
            _ => Halt::malformed("an address model without a surface"),
        }
    }

    fn lsc_addresses(&mut self, inst: &Inst, l: &Lsc, memory: Memory) -> Result<ChannelBits, Halt> {
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
            None => l.packed_bytes().into(),
            Some(LscScalar::Imm(n)) => *n,
            Some(LscScalar::Var(o)) => self.scalar_at(*o)?,
        };
        let single = strided || l.transposed;
        let mut out = ChannelBits::default();
        for i in 0..inst.exec.lanes() as usize {
            let from = if single { 0 } else { i };
            let address = self
                .payload(l.addr, 0, from, bytes)?
                .wrapping_mul(l.scale.into())
                .wrapping_add(i64::from(l.offset) as u64)
                .wrapping_add(step.wrapping_mul(i as u64));
            out.set(i, memory.masked(address & keep));
        }
        Ok(out)
    }

    /// Transposed: one address, elements one after the other.
    fn lsc_block(&mut self, inst: &Inst, l: &Lsc, a: &LaneAccess, store: bool) -> Result<(), Halt> {
        if inst.exec.lanes() != 1 {
            return Halt::malformed("a transposed message has execution size 1");
        }
        let a = LaneAccess {
            count: usize::from(l.elems),
            ..*a
        };
        let register = l.data_size.register_bytes() as usize;
        if store {
            self.store_block(inst, &a, l.data, register, high(l))
        } else {
            self.load_block(inst, &a, l.data, register, high(l))
        }
    }

    /// Bytes from one component to the next: lanes are padded to the message's minimum.
    fn component_stride(&self, l: &Lsc, lanes: u32) -> usize {
        let lanes = lanes.max(self.program.kernel.target().platform.lsc_min_lanes());
        (lanes as usize)
            .saturating_mul(l.data_size.register_bytes() as usize)
            .max(self.grf())
    }

    fn lsc_vector(
        &mut self,
        inst: &Inst,
        l: &Lsc,
        a: &LaneAccess,
        store: bool,
    ) -> Result<(), Halt> {
        let lanes = inst.exec.lanes();
        let stride = self.component_stride(l, lanes);
        let register = l.data_size.register_bytes() as usize;
        let all: Vec<usize> = (0..usize::from(l.elems)).collect();
        for (part, components) in all.chunks(RUN).enumerate() {
            let distance = (part as u64)
                .wrapping_mul(RUN as u64)
                .wrapping_mul(a.bytes.into());
            let access = LaneAccess {
                address: ChannelBits::each(|i| a.memory.beyond(a.address.get(i), distance)),
                count: components.len(),
                part: part as u32,
                ..*a
            };
            let slots: Vec<Slot> = components
                .iter()
                .map(|c| Slot {
                    at: c.saturating_mul(stride),
                    ..Slot::block(l.data, register, high(l))
                })
                .collect();
            match store {
                true => self.store_from(inst, &access, &slots)?,
                false => self.load_into(inst, &access, &slots)?,
            }
        }
        Ok(())
    }

    /// Channels as in the legacy messages, with LSC padding; each is an access of its own.
    fn lsc_quad(&mut self, inst: &Inst, l: &Lsc, a: &LaneAccess, store: bool) -> Result<(), Halt> {
        let lanes = inst.exec.lanes();
        let stride = self.component_stride(l, lanes);
        let register = l.data_size.register_bytes() as usize;
        for (position, c) in l.channels.iter().enumerate() {
            let distance = u64::from(c).wrapping_mul(a.bytes.into());
            let part = LaneAccess {
                address: ChannelBits::each(|i| a.memory.beyond(a.address.get(i), distance)),
                part: position as u32,
                ..*a
            };
            let slots = [Slot {
                at: position.saturating_mul(stride),
                ..Slot::block(l.data, register, high(l))
            }];
            match store {
                true => self.store_from(inst, &part, &slots)?,
                false => self.load_into(inst, &part, &slots)?,
            }
        }
        Ok(())
    }
}

/// Of `d16c32h` the element is the high half of the register's dword.
fn high(l: &Lsc) -> u32 {
    if l.data_size == DataSize::D16c32h {
        16
    } else {
        0
    }
}

/// Entries of the surface-state heap are 64 bytes apart. The specification leaves what is in it to the driver; here the
/// first is the thread's scratch space, where `r0.5 >> 4` points (docs/visa.md, "r0"), followed by the surfaces of the binding
/// table.
fn heap_entry(offset: u32) -> Memory {
    match offset.wrapping_shr(6) {
        0 => Memory::SCRATCH,
        _ => bindless(offset),
    }
}

/// Bindless surfaces are in the same heap, except that scratch is none of them.
pub(super) fn bindless(offset: u32) -> Memory {
    Memory {
        space: super::access::Space::Surface,
        surface: offset.wrapping_shr(6).wrapping_sub(1),
    }
}
