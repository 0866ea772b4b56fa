//! Legacy surface messages and `svm_*`: addresses, and how payloads lie in registers (docs/visa.md, "Memory").

use super::access::{Atomic, LaneAccess, Memory, Slot};
use super::error::Halt;
use super::lanes::ChannelBits;
use super::machine::Machine;
use super::number::mask;
use crate::isa::{AtomicOp, Opcode};
use crate::module::*;

/// Reserved binding-table index of shared local memory.
const LOCAL_INDEX: u32 = 254;

/// Memory that a binding-table index names, the reserved ones included.
pub(super) fn surface_index(index: u32) -> Result<Memory, Halt> {
    match index {
        LOCAL_INDEX => Ok(Memory::LOCAL),
        252 | 253 | 255 => Halt::unsupported(format!("reserved surface index {index}")),
        _ => Ok(Memory {
            space: super::access::Space::Surface,
            surface: index,
        }),
    }
}

/// Legacy messages name the new value of `cmpxchg` first, but the compare value of `fcmpwr` first.
fn legacy_atomic(op: AtomicOp, src0: Raw, src1: Raw, dst: Raw, register: usize) -> Atomic {
    let (first, second) = if op == AtomicOp::CmpXchg {
        (src1, src0)
    } else {
        (src0, src1)
    };
    Atomic {
        op,
        first,
        second,
        dst,
        register,
    }
}

/// Bytes of an atomic's element in memory and in a register.
fn atomic_bytes(width: AtomicWidth) -> (u32, usize) {
    match width {
        AtomicWidth::W16 => (2, 4),
        AtomicWidth::W32 => (4, 4),
        AtomicWidth::W64 => (8, 8),
    }
}

impl Machine<'_, '_, '_> {
    /// Entries of the heap, as LSC messages find them.
    fn in_heap(&self, word: u32) -> Memory {
        let shift = self.program.kernel.target().platform.bindless_shift();
        Memory {
            space: super::access::Space::Surface,
            surface: word.wrapping_shr(shift).wrapping_sub(1),
        }
    }

    /// What a surface variable stands for here.
    pub(super) fn surface(&mut self, s: SurfaceId) -> Result<Memory, Halt> {
        if let Some(var) = s.as_word() {
            let (row, col) = (0, 0);
            let word = self.scalar_at(Origin { var, row, col })? as u32;
            return Ok(self.in_heap(word));
        }
        match s {
            SurfaceId::SLM => Ok(Memory::LOCAL),
            // Offsets are relative to the thread's own scratch: `r0.5` gives a base of 0.
            SurfaceId::SCRATCH => Ok(Memory::SCRATCH),
            _ => match s.as_entry().or_else(|| self.t.surface(s)) {
                Some(word) if s == SurfaceId::BSS => Ok(self.in_heap(word)),
                Some(index) => surface_index(index),
                None => Halt::unsupported(format!(
                    "surface {}",
                    PREDEFINED_SURFACES.get(s.0 as usize).unwrap_or(&"T?")
                )),
            },
        }
    }

    /// `(global + offset[i]) * scale`: the sum has 32 bits, the product is not cut.
    fn element_addresses(
        &mut self,
        memory: Memory,
        global: &Src,
        offsets: Raw,
        lanes: u32,
        scale: u64,
    ) -> Result<ChannelBits, Halt> {
        let global = self.scalar(global)?;
        let mut out = ChannelBits::default();
        for i in 0..lanes as usize {
            let sum = self.payload(offsets, 0, i, 4)?.wrapping_add(global) & mask(4);
            out.set(i, memory.masked(memory.scaled(sum, scale)));
        }
        Ok(out)
    }

    /// Lanes of a payload.
    pub(super) fn payload_lanes(
        &self,
        raw: Raw,
        at: usize,
        lanes: u32,
        bytes: usize,
    ) -> Result<ChannelBits, Halt> {
        let mut out = ChannelBits::default();
        for i in 0..lanes as usize {
            out.set(i, self.payload(raw, at, i, bytes)?);
        }
        Ok(out)
    }

    /// A legacy surface message.
    pub(super) fn mem(&mut self, inst: &Inst, mem: &Mem) -> Result<(), Halt> {
        let lanes = inst.exec.lanes();
        if let MemKind::Oword {
            owords,
            offset,
            data,
        } = &mem.kind
        {
            return self.oword(inst, mem.surface, *owords, offset, *data);
        }
        match &mem.kind {
            MemKind::Typed {
                channels,
                coords,
                data,
            } => return self.typed(inst, mem.surface, *channels, coords, *data),
            MemKind::TypedAtomic {
                op,
                width,
                coords,
                src0,
                src1,
                dst,
            } => {
                let (bytes, register) = atomic_bytes(*width);
                let atomic = legacy_atomic(*op, *src0, *src1, *dst, register);
                let memory = self.image_memory(mem.surface)?;
                return self.texel_atomic(inst, memory, coords, &atomic, bytes);
            }
            MemKind::Media { .. } => return self.media(inst, mem),
            _ => {}
        }
        let memory = self.surface(mem.surface)?;
        let enabled = self.enabled(inst)?;
        match &mem.kind {
            MemKind::Gather {
                bytes,
                global,
                offsets,
                data,
                ..
            } => {
                let scale = u64::from(*bytes);
                let address = self.element_addresses(memory, global, *offsets, lanes, scale)?;
                let a = one(memory, address, u32::from(*bytes), enabled);
                self.dwords(inst, &a, *data, inst.stores())
            }
            MemKind::GatherScaled {
                bytes,
                global,
                offsets,
                data,
            } => {
                let address = self.element_addresses(memory, global, *offsets, lanes, 1)?;
                let a = one(memory, address, u32::from(*bytes), enabled);
                self.dwords(inst, &a, *data, inst.stores())
            }
            MemKind::Gather4Scaled {
                channels,
                global,
                offsets,
                data,
            } => {
                let address = self.element_addresses(memory, global, *offsets, lanes, 1)?;
                let a = one(memory, address, 4, enabled);
                self.channels(inst, &a, *channels, *data, inst.stores())
            }
            MemKind::DwordAtomic {
                op,
                width,
                offsets,
                src0,
                src1,
                dst,
            } => {
                let address = self.payload_lanes(*offsets, 0, lanes, 4)?;
                let address = ChannelBits::each(|i| memory.masked(address.get(i)));
                let (bytes, register) = atomic_bytes(*width);
                let atomic = legacy_atomic(*op, *src0, *src1, *dst, register);
                self.atomic(inst, &one(memory, address, bytes, enabled), &atomic)
            }
            MemKind::Qword {
                blocks,
                offsets,
                data,
            } => {
                let address = self.payload_lanes(*offsets, 0, lanes, 4)?;
                let address = ChannelBits::each(|i| memory.masked(address.get(i)));
                let a = LaneAccess {
                    count: usize::from(*blocks),
                    ..one(memory, address, 8, enabled)
                };
                let stride = (lanes as usize)
                    .saturating_mul(8)
                    .next_multiple_of(self.grf().max(1));
                let store = inst.stores();
                self.components(inst, &a, *data, 8, stride, store)
            }
            _ => Halt::unsupported(super::NOT_YET),
        }
    }

    /// Block of owords; no mask has a say.
    fn oword(
        &mut self,
        inst: &Inst,
        surface: SurfaceId,
        owords: u8,
        offset: &Src,
        data: Raw,
    ) -> Result<(), Halt> {
        let memory = self.surface(surface)?;
        let offset = self.scalar(offset)? & mask(4);
        let scale = if inst.op == Opcode::OwordLdUnaligned {
            1
        } else {
            16
        };
        let address = memory.masked(memory.scaled(offset, scale));
        let a = LaneAccess {
            count: usize::from(owords).saturating_mul(4),
            ..one(memory, ChannelBits::all(address), 4, 1)
        };
        if inst.stores() {
            self.store_block(inst, &a, data, 4, 0)
        } else {
            self.load_block(inst, &a, data, 4, 0)
        }
    }

    /// One element and one dword of registers a lane; what a narrow load leaves above its bits is zero here.
    fn dwords(&mut self, inst: &Inst, a: &LaneAccess, data: Raw, store: bool) -> Result<(), Halt> {
        self.packed(inst, a, data, 4, store)
    }

    /// One element a lane, each in `register` bytes.
    fn packed(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        data: Raw,
        register: usize,
        store: bool,
    ) -> Result<(), Halt> {
        let slots = [Slot::block(data, register, 0)];
        match store {
            true => self.store_from(inst, a, &slots),
            false => self.load_into(inst, a, &slots),
        }
    }

    /// Dword channels: enabled ones follow each other in the registers, each from a new register on. A gap in the
    /// channel mask is a gap in memory. Adjacent channels are one access.
    fn channels(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        channels: Channels,
        data: Raw,
        store: bool,
    ) -> Result<(), Halt> {
        let lanes = inst.exec.lanes();
        let stride = (lanes as usize).saturating_mul(4).max(self.grf());
        let mut runs: Vec<(u32, usize)> = Vec::new();
        for c in channels.iter() {
            match runs.last_mut() {
                Some((first, n)) if first.wrapping_add(*n as u32) == c => {
                    *n = n.saturating_add(1);
                }
                _ => runs.push((c, 1)),
            }
        }
        if runs.is_empty() {
            return Halt::malformed("no channel is enabled");
        }
        let mut position = 0usize;
        for (part, (first, n)) in runs.into_iter().enumerate() {
            let distance = u64::from(first).wrapping_mul(4);
            let part = LaneAccess {
                address: ChannelBits::each(|i| a.memory.beyond(a.address.get(i), distance)),
                count: n,
                part: part as u32,
                ..*a
            };
            let end = position.saturating_add(n);
            let slots: Vec<Slot> = (position..end)
                .map(|position| Slot {
                    at: position.saturating_mul(stride),
                    ..Slot::block(data, 4, 0)
                })
                .collect();
            match store {
                true => self.store_from(inst, &part, &slots)?,
                false => self.load_into(inst, &part, &slots)?,
            }
            position = end;
        }
        Ok(())
    }

    /// An `svm_*` message.
    pub(super) fn svm(&mut self, inst: &Inst, svm: &Svm) -> Result<(), Halt> {
        let lanes = inst.exec.lanes();
        match svm {
            Svm::Block {
                owords, addr, data, ..
            } => {
                let address = self.scalar(addr)?;
                let a = LaneAccess {
                    count: usize::from(*owords).saturating_mul(4),
                    ..one(Memory::DEVICE, ChannelBits::all(address), 4, 1)
                };
                if inst.stores() {
                    self.store_block(inst, &a, *data, 4, 0)
                } else {
                    self.load_block(inst, &a, *data, 4, 0)
                }
            }
            Svm::Gather {
                bytes,
                blocks,
                addrs,
                data,
            } => {
                let address = self.payload_lanes(*addrs, 0, lanes, 8)?;
                let enabled = self.enabled(inst)?;
                if *bytes == 1 {
                    // 1, 2 or 4 bytes are in the lane's dword, 8 in its qword.
                    let bytes = u32::from(*blocks);
                    let a = one(Memory::DEVICE, address, bytes, enabled);
                    return self.packed(
                        inst,
                        &a,
                        *data,
                        if bytes == 8 { 8 } else { 4 },
                        inst.stores(),
                    );
                }
                let a = LaneAccess {
                    count: usize::from(*blocks),
                    ..one(Memory::DEVICE, address, u32::from(*bytes), enabled)
                };
                let register = usize::from(*bytes);
                let stride = (lanes as usize)
                    .saturating_mul(register)
                    .next_multiple_of(self.grf().max(1));
                self.components(inst, &a, *data, register, stride, inst.stores())
            }
            Svm::Gather4Scaled {
                channels,
                base,
                offsets,
                data,
            } => {
                let base = self.scalar(base)?;
                // The compiler passes whole addresses as 64-bit offsets from base 0.
                let wide = self.var_type(offsets.var)?.bytes() == 8;
                let bytes = if wide { 8 } else { 4 };
                let offsets = self.payload_lanes(*offsets, 0, lanes, bytes)?;
                let address = ChannelBits::each(|i| offsets.get(i).wrapping_add(base));
                let enabled = self.enabled(inst)?;
                let a = one(Memory::DEVICE, address, 4, enabled);
                self.channels(inst, &a, *channels, *data, inst.stores())
            }
            Svm::Atomic {
                op,
                width,
                addrs,
                src0,
                src1,
                dst,
            } => {
                let address = self.payload_lanes(*addrs, 0, lanes, 8)?;
                let enabled = self.enabled(inst)?;
                let (bytes, register) = atomic_bytes(*width);
                let atomic = legacy_atomic(*op, *src0, *src1, *dst, register);
                self.atomic(inst, &one(Memory::DEVICE, address, bytes, enabled), &atomic)
            }
        }
    }

    /// Consecutive elements a lane; component `c` is at byte `c * stride` of the payload.
    pub(super) fn components(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        data: Raw,
        register: usize,
        stride: usize,
        store: bool,
    ) -> Result<(), Halt> {
        if a.count > 8 {
            return Halt::unsupported(format!("{} elements a lane", a.count));
        }
        let slots: Vec<Slot> = (0..a.count)
            .map(|c| Slot {
                at: c.saturating_mul(stride),
                ..Slot::block(data, register, 0)
            })
            .collect();
        match store {
            true => self.store_from(inst, a, &slots),
            false => self.load_into(inst, a, &slots),
        }
    }
}

/// An access of one element a lane.
pub(super) fn one(memory: Memory, address: ChannelBits, bytes: u32, enabled: u32) -> LaneAccess {
    LaneAccess {
        memory,
        address,
        bytes,
        count: 1,
        enabled,
        part: 0,
    }
}
