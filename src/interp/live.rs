//! Checks of device memory, `--check memory`: the definition of what an error is (docs/checking.md).
//!
//! An element that an enabled lane reads or writes by a 64-bit address is an error unless all its bytes lie in one live buffer. An
//! access is at most one error for each lane, at its first such element; a block message or a rectangle is at most one. Elements that
//! are not even in device memory are out of bounds, whatever is checked; an access of a lane with one of those is that error and not this.

use visa_runtime::Region;

use super::access::{Access, Memory, Space, site};
use super::error::Halt;
use super::lanes::{Lanes, MAX, bits, up};
use super::machine::Machine;
use crate::module::Inst;

impl Machine<'_, '_, '_> {
    /// Checks the enabled lanes of an access; `aligned` rounds addresses down to multiples of the element, as atomics do.
    pub fn check_buffers(&mut self, inst: &Inst, a: &Access, aligned: bool) -> Result<(), Halt> {
        if a.memory.space != Space::Device {
            return Ok(());
        }
        let (mut wrong, mut at) = (0, Lanes::default());
        for lane in bits(a.enabled) {
            let element = |k: &usize| a.at(lane, *k);
            let outside = |k: usize| {
                let address = element(&k);
                !self.group.inside(Region::Device, address, a.bytes, aligned)
            };
            if (0..a.count).any(outside) {
                continue;
            }
            let dead = |k: &usize| !self.group.is_live(element(k), a.bytes, aligned);
            if let Some(k) = (0..a.count).find(dead) {
                let address = element(&k);
                let down = match aligned {
                    true => self.group.position(address) & u64::from(a.bytes.wrapping_sub(1)),
                    false => 0,
                };
                at.set(lane, address.wrapping_sub(down));
                wrong |= up(1, lane as u32);
            }
        }
        self.report_buffers(inst, a.part, wrong, &at)
    }

    /// Records channels that miss their buffers, each at an address.
    pub fn report_buffers(
        &mut self,
        inst: &Inst,
        part: u32,
        channels: u32,
        address: &Lanes,
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
        let site = site(self.at, part, Memory::DEVICE.space);
        let lanes = up(channels, first);
        let stop = self
            .group
            .fault_of_buffers(self.number, site, lanes, &addresses);
        if stop { Err(Halt::Fault) } else { Ok(()) }
    }
}
