//! Fault records under the `Trap` and `Report` policies.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as V, types};
use visa_runtime::abi::Helpers;

use super::emit::CraneliftEmitter;
use super::memory::Lanes;
use crate::backend::OobPolicy;
use crate::backend::fault_records::FaultRecords;
use crate::ssa::{AlignCheck, Value};

impl CraneliftEmitter<'_> {
    /// Calls the fault helper when any bit is set; under `Trap` leaves the function. When it goes on,
    /// `then` comes next.
    pub(super) fn report(
        &mut self,
        lanes: &Lanes,
        faulting: V,
        site: u32,
        then: impl FnOnce(&mut Self),
    ) {
        let cold = self.new_cold_block();
        let go_on = self.new_block();
        self.branch(faulting, cold, go_on);
        let helpers = [
            offset_of!(Helpers, fault),
            offset_of!(Helpers, fault_preserve_all),
        ];
        self.side(cold, |e| {
            e.report_lanes(lanes, faulting, site, helpers);
            then(e);
            e.jump(go_on, &[]);
        });
        self.block = go_on;
    }

    /// Lanes of an atomic whose addresses are rounded down.
    pub(super) fn check_aligned(&mut self, check: AlignCheck, args: &[Value]) {
        let lanes = self.lanes(check.space, args);
        let odd = self.enabled_lanes(&lanes);
        let (cold, go_on) = (self.new_cold_block(), self.new_block());
        self.branch(odd, cold, go_on);
        self.side(cold, |e| {
            e.report_lanes(
                &lanes,
                odd,
                check.site,
                [offset_of!(Helpers, misaligned); 2],
            );
            e.jump(go_on, &[]);
        });
        self.block = go_on;
    }

    /// Calls a helper, or the one that keeps all registers where that is called.
    fn report_lanes(&mut self, lanes: &Lanes, faulting: V, site: u32, helpers: [usize; 2]) {
        let [plain, preserving] = helpers;
        let addresses = self.wide_addresses(lanes);
        let records = FaultRecords::new(self.f, site, lanes.count);
        let addresses = self.ins().iadd_imm_s(addresses, records.addresses());
        let mut stop = None;
        for &part in &records.parts {
            let ours = self.lanes_of_part(faulting, part);
            let args = [
                self.group(),
                self.thread_index(),
                self.iconst(types::I32, u64::from(part.site)),
                self.ins().ishl_imm_u(ours, i64::from(records.first_lane)),
                addresses,
                lanes.surface,
            ];
            stop = if preserving != plain && self.keeps_registers() {
                self.call_preserve_all(preserving, &args);
                Some(self.answer())
            } else {
                self.call_helper(plain, Some(types::I32), &args)
            };
        }
        if let (OobPolicy::Trap, Some(stop)) = (self.options.oob, stop) {
            let leave = self.fault_exit();
            let ignored = self.new_cold_block();
            let stop = self.ins().icmp_imm_u(IntCC::NotEqual, stop, 0);
            self.branch(stop, leave, ignored);
            self.block = ignored;
        }
    }

    /// Address of an array of the lanes' addresses, 64 bits each.
    pub(super) fn wide_addresses(&mut self, lanes: &Lanes) -> V {
        let mut wide = Vec::new();
        for &part in &lanes.addr {
            if lanes.count == 1 {
                wide.push(self.resize(part, types::I64));
            } else if lanes.flat {
                wide.push(part);
            } else {
                let (low, high) = self.widen_piece(part, false);
                wide.extend([low, high]);
            }
        }
        let slot = self.slot(16 * wide.len() as u32);
        self.spill(slot, 0, &wide);
        self.slot_addr(slot, 0)
    }
}
