//! What is initialised in memory, and how it comes to registers and back.

use visa_runtime::{FaultKind, GroupView, MemoryRef, Uninit};

use super::Unset;
use super::shadow::Row;
use crate::interp::Program;
use crate::interp::access::{Atomic, LaneAccess, Slot, Space};
use crate::interp::error::Halt;
use crate::interp::lanes::{bits, up};
use crate::interp::machine::Machine;
use crate::interp::number::mask;
use crate::interp::race::Kept;
use crate::isa::AtomicOp;
use crate::module::{AddrId, Inst, Origin, PredControl, PredId, Predicate, Raw};

/// Bits of each byte of a group's local memory that are not initialised, as far as any were written.
pub(in crate::interp) type Local = Vec<u8>;

/// Bits of bytes; those beyond the list were never written.
fn get(shadow: &[u8], at: u64, bytes: u32) -> u64 {
    (0..bytes.min(8)).fold(0, |bits, k| {
        let place = usize::try_from(at.wrapping_add(k.into()));
        let byte = place.ok().and_then(|at| shadow.get(at));
        bits | u64::from(byte.copied().unwrap_or(0xFF)).wrapping_shl(k.wrapping_mul(8))
    })
}

/// Says it of bytes that are inside of their memory.
fn set(shadow: &mut Vec<u8>, at: u64, bytes: u32, unset: u64) {
    let end = at.saturating_add(bytes.into()) as usize;
    if shadow.len() < end {
        shadow.resize(end, 0xFF);
    }
    let to = shadow.get_mut(at as usize..end).unwrap_or_default();
    for (to, b) in to.iter_mut().zip(unset.to_le_bytes()) {
        *to = b;
    }
}

impl Program {
    /// Before a group: its local memory is new.
    pub(in crate::interp) fn start_of_init(&self, group: &mut GroupView<'_>) {
        if self.options.check_init
            && let Some(kept) = group.kept::<Kept>()
        {
            kept.local_unset.clear();
        }
    }
}

impl Machine<'_, '_, '_> {
    /// An element of memory, at an address that is rounded down to its size if `aligned`.
    fn unset_memory(&mut self, a: &LaneAccess, address: u64, aligned: bool) -> Unset {
        let region = self.region(a.memory);
        let down = match (aligned, a.memory.space) {
            (true, Space::Local | Space::Scratch) => address & u64::from(a.bytes.wrapping_sub(1)),
            _ => 0,
        };
        let at = address.wrapping_sub(down);
        if !self.group.inside(region, at, a.bytes, aligned) {
            return Unset::NONE;
        }
        match region {
            MemoryRef::Local => {
                let kept = self.group.kept::<Kept>();
                let bits = kept.map_or(0, |kept| get(&kept.local_unset, at, a.bytes));
                Unset::new(bits, Uninit::Local(at))
            }
            MemoryRef::Scratch(_) => {
                let init = self.t.init.as_ref();
                let bits = init.map_or(0, |init| get(&init.scratch, at, a.bytes));
                Unset::new(bits, Uninit::Scratch(at))
            }
            MemoryRef::Surface(_) | MemoryRef::Device => {
                let found = self.group.uninitialised(region, at, a.bytes, aligned);
                let (bits, place) = found.unwrap_or_default();
                Unset::new(bits, Uninit::Memory(place))
            }
            MemoryRef::Args => Unset::NONE,
        }
    }

    /// Says which bits of an element of memory are not initialised.
    fn set_unset_memory(&mut self, a: &LaneAccess, address: u64, aligned: bool, unset: Unset) {
        let region = self.region(a.memory);
        let down = match (aligned, a.memory.space) {
            (true, Space::Local | Space::Scratch) => address & u64::from(a.bytes.wrapping_sub(1)),
            _ => 0,
        };
        let (at, unset) = (address.wrapping_sub(down), unset.bits & mask(a.bytes));
        if !self.group.inside(region, at, a.bytes, aligned) {
            return;
        }
        match region {
            MemoryRef::Local => {
                if let Some(kept) = self.group.kept::<Kept>() {
                    set(&mut kept.local_unset, at, a.bytes, unset);
                }
            }
            MemoryRef::Scratch(_) => {
                if let Some(init) = &mut self.t.init {
                    set(&mut init.scratch, at, a.bytes, unset);
                }
            }
            MemoryRef::Surface(_) | MemoryRef::Device => {
                let how = (a.bytes, aligned);
                self.group.set_uninitialised(region, at, how, unset);
            }
            MemoryRef::Args => {}
        }
    }

    /// A predicate variable.
    pub(super) fn unset_pred(&self, p: PredId) -> Unset {
        let init = self.t.init.as_ref();
        init.map_or(Unset::NONE, |init| init.pred(p, u32::MAX))
    }

    /// What the guard of a channel depends on.
    pub(super) fn unset_bit(&self, inst: &Inst, p: Predicate, i: usize) -> Unset {
        let lane = inst.exec.mask.first_lane().wrapping_add(i as u32);
        let own = match (p.control, &self.t.init) {
            (PredControl::Lanes, Some(init)) => init.pred(p.var, up(1, lane)),
            _ => Unset::NONE,
        };
        own.or(self.unset_pred(p.var))
    }

    /// An element of an address variable.
    pub(super) fn unset_address(&self, a: AddrId, k: usize) -> Unset {
        let init = self.t.init.as_ref();
        init.map_or(Unset::NONE, |init| init.address(a, k))
    }

    /// Element `i` of a payload, as [`Machine::payload`] reads it.
    pub(in crate::interp) fn unset_payload(
        &self,
        raw: Raw,
        at: usize,
        i: usize,
        bytes: usize,
    ) -> Result<Unset, Halt> {
        match &self.t.init {
            Some(init) if !raw.is_null() => Ok(init.get(self.raw(raw, at, i, bytes)?, bytes)),
            _ => Ok(Unset::NONE),
        }
    }

    /// Says it of element `i` of a payload.
    pub(in crate::interp) fn set_unset_payload(
        &mut self,
        raw: Raw,
        at: usize,
        (i, bytes): (usize, usize),
        unset: Unset,
    ) -> Result<(), Halt> {
        if raw.is_null() {
            return Ok(());
        }
        let at = self.raw(raw, at, i, bytes)?;
        if let Some(init) = &mut self.t.init {
            init.set(at, bytes, unset);
        }
        Ok(())
    }

    /// Up to eight bytes of the register file.
    pub(in crate::interp) fn unset_file(&self, at: usize, bytes: usize) -> Unset {
        let init = self.t.init.as_ref();
        init.map_or(Unset::NONE, |init| init.get(at, bytes))
    }

    /// The first element at an origin.
    pub(super) fn unset_at(&self, o: Origin) -> Result<Unset, Halt> {
        let ty = self.var_type(o.var)?;
        let at = self.element(o, ty, 0)?;
        Ok(self.unset_file(at, ty.bytes() as usize))
    }

    /// Element `k` of each lane was loaded into a slot.
    pub(in crate::interp) fn init_loaded(
        &mut self,
        a: &LaneAccess,
        k: usize,
        slot: &Slot,
    ) -> Result<(), Halt> {
        if self.t.init.is_none() {
            return Ok(());
        }
        for lane in bits(a.enabled) {
            let unset = self.unset_memory(a, a.element_address(lane, k), false);
            if unset.any() {
                let unset = unset.with(unset.bits.wrapping_shl(slot.high));
                self.set_unset_payload(slot.data, slot.at, (lane, slot.register), unset)?;
            }
        }
        Ok(())
    }

    /// Elements of all lanes were stored from slots.
    pub(in crate::interp) fn init_stored(
        &mut self,
        a: &LaneAccess,
        slots: &[Slot],
    ) -> Result<(), Halt> {
        if self.t.init.is_none() {
            return Ok(());
        }
        for lane in bits(a.enabled) {
            for (k, slot) in slots.iter().enumerate() {
                let unset = self.unset_payload(slot.data, slot.at, lane, slot.register)?;
                let unset = unset.with(unset.bits.wrapping_shr(slot.high));
                self.set_unset_memory(a, a.element_address(lane, k), false, unset);
            }
        }
        Ok(())
    }

    /// Element `k` of a block went between memory and element `i` of a payload.
    pub(in crate::interp) fn init_block(
        &mut self,
        a: &LaneAccess,
        (k, i): (usize, usize),
        slot: &Slot,
        store: bool,
    ) -> Result<(), Halt> {
        if self.t.init.is_none() {
            return Ok(());
        }
        let (data, register) = (slot.data, slot.register);
        if store {
            let unset = self.unset_payload(data, slot.at, i, register)?;
            let unset = unset.with(unset.bits.wrapping_shr(slot.high));
            self.set_unset_memory(a, a.element_address(0, k), false, unset);
            return Ok(());
        }
        let unset = self.unset_memory(a, a.element_address(0, k), false);
        if unset.any() {
            let unset = unset.with(unset.bits.wrapping_shl(slot.high));
            self.set_unset_payload(data, slot.at, (i, register), unset)?;
        }
        Ok(())
    }

    /// An atomic that is about to be made: reports what it uses, and gives what its lanes will get.
    pub(in crate::interp) fn init_atomic(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        atomic: &Atomic,
    ) -> Result<Row, Halt> {
        let mut out = Row::NONE;
        if self.t.init.is_none() {
            return Ok(out);
        }
        let first = inst.exec.mask.first_lane() as usize;
        for i in bits(a.enabled) {
            let mut operands = Unset::NONE;
            let sources = [atomic.first, atomic.second];
            for raw in sources.into_iter().take(atomic.op.sources()) {
                let unset = self.unset_payload(raw, 0, i, atomic.register)?;
                operands = operands.or(unset.with(unset.bits & mask(a.bytes)));
            }
            let address = a.element_address(i, 0);
            let old = self.unset_memory(a, address, true);
            match atomic.op {
                AtomicOp::Load => out.set(i, old),
                AtomicOp::Xchg => {
                    out.set(i, old);
                    self.set_unset_memory(a, address, true, operands);
                }
                _ => {
                    let lane = i.wrapping_add(first);
                    let used = operands.or(old);
                    self.report_init(FaultKind::UninitOperand, lane, &used)?;
                    self.set_unset_memory(a, address, true, Unset::NONE);
                }
            }
        }
        Ok(out)
    }

    /// What the lanes of an atomic got.
    pub(in crate::interp) fn init_got(
        &mut self,
        a: &LaneAccess,
        atomic: &Atomic,
        got: &Row,
    ) -> Result<(), Halt> {
        for i in bits(a.enabled) {
            let unset = got.get(i);
            if unset.any() {
                self.set_unset_payload(atomic.dst, 0, (i, atomic.register), unset)?;
            }
        }
        Ok(())
    }
}
