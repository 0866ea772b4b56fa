//! Fault records under the `Trap` and `Report` policies.

use std::mem::offset_of;

use inkwell::IntPredicate;
use inkwell::values::InstructionOpcode as I;
use visa_runtime::abi::Helpers;

use super::emit::{EmitResult, InternalError, LlvmEmitter, V};
use crate::backend::fault_records::FaultRecords;
use crate::ssa::{AlignCheck, Lane, Space, Ty, Value};

impl<'c> LlvmEmitter<'c, '_> {
    /// True when an access of a space that faults must be reported.
    pub(super) fn records_faults(&self, space: Space) -> bool {
        self.access_plan.limits.records_faults(space)
    }

    /// Calls the fault helper when any bit of `faulting` is set, with the addresses (`i32` or `i64`) of a given number of lanes
    /// and the surface; under `Trap` leaves the function. When it goes on, `then` comes next.
    pub(super) fn report(
        &mut self,
        (addr, lanes, surface): (V<'c>, u16, V<'c>),
        faulting: V<'c>,
        site: u32,
        then: impl FnOnce(&mut Self) -> EmitResult<()>,
    ) -> EmitResult<()> {
        let helper = offset_of!(Helpers, fault);
        self.report_by(helper, (addr, lanes, surface), faulting, site, then)
    }

    /// Lanes of an atomic whose addresses are rounded down.
    pub(super) fn check_aligned(&mut self, check: AlignCheck, args: &[Value]) -> EmitResult<()> {
        let lanes = self.lanes(check.space, args)?;
        let odd = self.enabled_lanes(&lanes)?;
        let at = (self.addresses(&lanes)?, lanes.count, lanes.surface);
        let helper = offset_of!(Helpers, misaligned);
        self.report_by(helper, at, odd, check.site, |_| Ok(()))
    }

    fn report_by(
        &mut self,
        helper: usize,
        (addr, lanes, surface): (V<'c>, u16, V<'c>),
        faulting: V<'c>,
        site: u32,
        then: impl FnOnce(&mut Self) -> EmitResult<()>,
    ) -> EmitResult<()> {
        let (cold, go_on) = (self.new_block(), self.new_block());
        let any = self.icmp(IntPredicate::NE, faulting, self.i32(0))?;
        self.branch_likely(any, cold, go_on, false)?;
        self.at(cold);
        let wide = self.resize(addr, 64)?;
        let ty = Ty::vector(Lane::I64, lanes);
        let slot = self.slot(ty.bytes())?;
        self.store_value(wide, ty, slot)?;
        let records = FaultRecords::new(self.f, site, lanes);
        let mut stop = None;
        for &part in &records.parts {
            let ours = self.lanes_of_part(faulting, part)?;
            let args = [
                self.group().into(),
                self.thread_index()?.into(),
                self.i32(part.site).into(),
                self.op2(I::Shl, ours, self.i32(records.first_lane))?,
                self.offset_const(slot, records.addresses())?.into(),
                surface,
            ];
            stop = self.call_helper(helper, Some(32), &args)?;
        }
        let stop = stop.ok_or_else(|| InternalError::from("no answer to a fault"))?;
        self.stop_on_fault(stop)?;
        then(self)?;
        self.jump(go_on)?;
        self.at(go_on);
        Ok(())
    }
}
