//! Checks of device memory, `--check memory`: the definition of what an error is (docs/checking.md).
//!
//! An element that an enabled lane reads or writes by a 64-bit address is an error unless all its bytes lie in one live buffer. An
//! access is at most one error for each lane, at its first such element; a block message or a rectangle is at most one. Elements that
//! are not even in device memory are out of bounds, whatever is checked; an access of a lane with one of those is that error and not this.
//!
//! An element that an enabled lane writes to a live buffer that kernels only read is such an error too, of a kind of its own.
//!
//! Apart from these, an access of an enabled lane is an error if its address is no multiple of what the hardware needs ([`Inst::alignment`]),
//! whatever memory it goes to; a block message or a rectangle is at most one.

use visa_runtime::{FaultKind, MemoryRef};

use super::access::{LaneAccess, Memory, Space, site};
use super::error::Halt;
use super::lanes::{ChannelBits, MAX, bits, up};
use super::machine::Machine;
use crate::isa::Effect;
use crate::module::Inst;

/// What an access does to memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessMode {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic that only loads.
    AtomicRead,
    /// Another atomic.
    AtomicWrite,
}

impl AccessMode {
    pub(super) const fn is_atomic(self) -> bool {
        matches!(self, AccessMode::AtomicRead | AccessMode::AtomicWrite)
    }

    pub(super) const fn writes(self) -> bool {
        matches!(self, AccessMode::Write | AccessMode::AtomicWrite)
    }
}

impl Machine<'_, '_, '_> {
    /// Checks the enabled lanes of an access; addresses of atomics are rounded down to multiples of the element.
    pub(super) fn check_buffers(
        &mut self,
        inst: &Inst,
        a: &LaneAccess,
        does: AccessMode,
    ) -> Result<(), Halt> {
        if a.memory.space != Space::Device {
            return Ok(());
        }
        let aligned = does.is_atomic();
        let (mut missed, mut read_only, mut at) = (0, 0, ChannelBits::default());
        for lane in bits(a.enabled) {
            let element = |k: &usize| a.element_address(lane, *k);
            let outside = |k: usize| {
                let address = element(&k);
                !self
                    .group
                    .inside(MemoryRef::Device, address, a.bytes, aligned)
            };
            if (0..a.count).any(outside) {
                continue;
            }
            let wrong = |k: usize| {
                let kind = self.wrong(element(&k), a.bytes, does)?;
                Some((k, kind))
            };
            if let Some((k, kind)) = (0..a.count).find_map(wrong) {
                let address = element(&k);
                let down = match aligned {
                    true => self.group.position(address) & u64::from(a.bytes.wrapping_sub(1)),
                    false => 0,
                };
                at.set(lane, address.wrapping_sub(down));
                match kind {
                    FaultKind::ReadOnly => read_only |= up(1, lane as u32),
                    _ => missed |= up(1, lane as u32),
                }
            }
        }
        let at = (a.memory, &at);
        self.report_memory(inst, FaultKind::Allocation, a.part, missed, at)?;
        self.report_memory(inst, FaultKind::ReadOnly, a.part, read_only, at)
    }

    /// What is wrong with an element in device memory, if anything.
    pub(super) fn wrong(&self, address: u64, bytes: u32, does: AccessMode) -> Option<FaultKind> {
        let aligned = does.is_atomic();
        if !self.group.is_live(address, bytes, aligned) {
            return Some(FaultKind::Allocation);
        }
        let read_only = does.writes() && self.group.is_read_only(address, bytes, aligned);
        read_only.then_some(FaultKind::ReadOnly)
    }

    /// Checks that the enabled lanes have addresses that the hardware takes. Scratch and arguments are where the compiler puts them.
    pub(super) fn check_aligned(&mut self, inst: &Inst, a: &LaneAccess) -> Result<(), Halt> {
        let own = matches!(a.memory.space, Space::Scratch | Space::Args);
        if !self.group.checks_memory() || own && inst.effect() != Effect::Atomic {
            return Ok(());
        }
        let low = u64::from(inst.alignment().wrapping_sub(1));
        let odd = bits(a.enabled).filter(|&lane| a.element_address(lane, 0) & low != 0);
        let odd = odd.fold(0, |all, lane| all | up(1, lane as u32));
        let at = (a.memory, &a.address);
        self.report_memory(inst, FaultKind::Misaligned, a.part, odd, at)
    }

    /// Records channels of which something is wrong, each at an address.
    pub(super) fn report_memory(
        &mut self,
        inst: &Inst,
        kind: FaultKind,
        part: u32,
        channels: u32,
        (memory, address): (Memory, &ChannelBits),
    ) -> Result<(), Halt> {
        if channels == 0 {
            return Ok(());
        }
        // Records number lanes as the thread does.
        let first = inst.exec.mask.first_lane();
        let mut addresses = [0; MAX];
        for (lane, to) in addresses.iter_mut().enumerate() {
            *to = address.get(lane.saturating_sub(first as usize));
        }
        let by = (self.number, site(self.at, part, memory.space));
        let lanes = up(channels, first);
        let stop = self
            .group
            .fault_of_memory(kind, by, lanes, &addresses, memory.surface);
        if stop { Err(Halt::Fault) } else { Ok(()) }
    }
}
