//! Fault records under the `Trap` and `Report` policies.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as V, types};
use visa_runtime::abi::Helpers;

use super::emit::Emit;
use super::memory::Lanes;
use crate::backend::OobPolicy;
use crate::ssa::{Lane, Space};

impl Emit<'_> {
    /// Reports enabled lanes of which any component is out of bounds.
    pub fn check_lanes(&mut self, lanes: &Lanes, elem: Lane, comps: u8, site: u32, space: Space) {
        if self.options.oob == OobPolicy::ReadZeroSkipWrite || space == Space::Regs {
            return;
        }
        let mut inside: Option<Vec<V>> = None;
        for c in 0..comps {
            let offset = self.component(lanes, elem, c);
            let (from, bytes) = self.extent(lanes, elem, c, &offset);
            let here = self.in_bounds(lanes, &from, bytes);
            inside = Some(match inside {
                None => here,
                Some(all) => self.lanewise(&[all, here], |e, v| e.ins().band(v[0], v[1])),
            });
        }
        let Some(inside) = inside else { return };
        let inside = self.guard_mask(lanes, inside);
        let inside = self.repr_bits(&inside, lanes.count);
        let enabled = if lanes.count == 1 {
            let bit = self.scalar(lanes.mask);
            self.resize(bit, types::I32)
        } else {
            self.mask_bits(lanes.mask)
        };
        let faulting = self.ins().band_not(enabled, inside);
        self.report(lanes, faulting, site);
    }

    /// Calls the fault helper when any bit is set; under `Trap` leaves the function.
    pub fn report(&mut self, lanes: &Lanes, faulting: V, site: u32) {
        let cold = self.new_cold_block();
        let go_on = self.new_block();
        self.branch(faulting, cold, go_on);
        self.block = cold;
        let off = std::mem::replace(&mut self.cache.off, true);
        let slot = self.slot(8 * u32::from(lanes.count));
        for i in 0..lanes.count {
            let addr = if lanes.count == 1 {
                lanes.addr[0]
            } else {
                self.lane_of(lanes.addr_lane(), &lanes.addr, usize::from(i))
            };
            let wide = self.resize(addr, types::I64);
            let at = self.slot_addr(slot, 8 * u32::from(i));
            self.ins().store(super::emit::DATA, wide, at, 0);
        }
        // Records number lanes as the thread does.
        let first = self.f.sites.get(site as usize).map_or(0, |s| s.first_lane);
        let addresses = self.slot_addr(slot, 0);
        let args = [
            self.group(),
            self.thread_index(),
            self.iconst(types::I32, u64::from(site)),
            self.ins().ishl_imm_u(faulting, i64::from(first)),
            self.ins().iadd_imm_s(addresses, -8 * i64::from(first)),
            lanes.surface,
        ];
        let stop = self.call_helper(offset_of!(Helpers, fault), Some(types::I32), &args);
        self.cache.off = off;
        if let (OobPolicy::Trap, Some(stop)) = (self.options.oob, stop) {
            let leave = self.fault_exit();
            let stop = self.ins().icmp_imm_u(IntCC::NotEqual, stop, 0);
            self.branch(stop, leave, go_on);
        } else {
            self.jump(go_on, &[]);
        }
        self.block = go_on;
    }
}
