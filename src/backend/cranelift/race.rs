//! Checks of races: one call of the runtime for each access, which compares the access with earlier ones and enters it.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, StackSlot, Value as V, types};
use visa_runtime::abi::Helpers;

use super::affine::Affine;
use super::emit::{CraneliftEmitter, DATA};
use super::memory::Lanes;
use super::value::piece_count;
use crate::backend::access::{AffineRace, RaceReads};
use crate::backend::fault_records::{FaultPart, FaultRecords};
use crate::backend::race;
use crate::backend::shadow::PointeeOf;
use crate::ssa::{Inst, Op, RaceAccess, RaceCheck, Ty, Value};

/// What the calls for a check have in common.
pub(super) struct RaceCall {
    records: FaultRecords,
    shape: u32,
    lanes: Lanes,
    enabled: V,
    /// Addresses of lanes, if they are handed on, and values at this offset.
    block: StackSlot,
    values: u32,
}

impl CraneliftEmitter<'_> {
    /// A check.
    pub(super) fn check_race(&mut self, check: RaceCheck, args: &[Value]) {
        self.unless_invariant(check, args, None, |e| {
            if let Some(call) = e.race_call(check, args) {
                e.race_of_lanes(&call, args, offset_of!(Helpers, race));
            }
        });
    }

    /// Does something about a check, but not about a read of a buffer that the launch does not write. Leaves before a write that leaves its
    /// buffer. `reach` is the lowest address, with the condition under which lanes are affine, and all bytes that they reach.
    fn unless_invariant(
        &mut self,
        check: RaceCheck,
        args: &[Value],
        reach: Option<(Affine, u64)>,
        then: impl FnOnce(&mut Self),
    ) {
        let Some(pointee) = PointeeOf::of_race(check) else {
            return then(self);
        };
        let within = reach.map(|(lowest, bytes)| {
            let within = self.is_within(pointee, (lowest.base, bytes));
            self.with_guard(within, lowest.guard)
        });
        let go_on = self.new_block();
        if check.access == RaceAccess::Read {
            let within = within.unwrap_or_else(|| self.lanes_are_within(pointee, check, args));
            let look = self.new_block();
            self.branch(within, go_on, look);
            self.side(look, |e| {
                then(e);
                e.jump(go_on, &[]);
            });
            self.block = go_on;
            return;
        }
        let by_lanes = match within {
            Some(within) => {
                let by_lanes = self.new_cold_block();
                self.branch(within, go_on, by_lanes);
                by_lanes
            }
            None => self.block,
        };
        let leave = self.suspect_block();
        self.side(by_lanes, |e| {
            let within = e.lanes_are_within(pointee, check, args);
            e.branch(within, go_on, leave);
        });
        self.block = go_on;
        then(self);
    }

    /// Whether all enabled lanes of a check are in a buffer.
    fn lanes_are_within(&mut self, pointee: PointeeOf, check: RaceCheck, args: &[Value]) -> V {
        let bytes = race::lane_bytes(check);
        if self.f.ty(args[1]).is_scalar() {
            let address = self.scalar(args[1]);
            let within = self.is_within(pointee, (address, bytes));
            let enabled = self.scalar(args[0]);
            let disabled = self.ins().icmp_imm_u(IntCC::Equal, enabled, 0);
            return self.ins().bor(within, disabled);
        }
        let lanes = self.lanes(check.space, args);
        self.are_within(pointee, bytes, &lanes, args)
    }

    /// A check of lanes that are known to be affine, maybe under a condition.
    pub(super) fn check_affine_race(&mut self, inst: Inst, race: &AffineRace) {
        let data = self.f.inst(inst);
        self.set_line(data.line);
        let Op::CheckRace(check) = data.op else {
            return self.bug("no check of races");
        };
        let args = data.args.as_slice();
        let shape = self.spacing_of(inst, &race.spacing);
        let reach = race.reach(check, self.f.ty(args[1]).lanes);
        // Lanes of the other reads are not at hand.
        if check.pointer.is_none() || (reach.is_none() && race.reads.is_some()) {
            return self.affine_race((check, race), shape, args);
        }
        let reach = reach.map(|(lowest, bytes)| {
            let base = self.ins().iadd_imm_s(shape.base, lowest);
            (Affine { base, ..shape }, bytes)
        });
        self.unless_invariant(check, args, reach, |e| {
            e.affine_race((check, race), shape, args);
        });
    }

    fn affine_race(
        &mut self,
        (check, race): (RaceCheck, &AffineRace),
        shape: Affine,
        args: &[Value],
    ) {
        let Some(first) = self.race_read(check, race.twin, args) else {
            return;
        };
        if let Some(reads) = &race.reads {
            return self.race_of_reads(&first, reads, shape.base, (race.stride, args));
        }
        let Some(guard) = shape.guard else {
            return self.race_of_affine(&first, shape.base, race.stride);
        };
        let (affine, other, done) = (self.new_block(), self.new_cold_block(), self.new_block());
        self.branch(guard, affine, other);
        self.side(affine, |e| {
            e.race_of_affine(&first, shape.base, race.stride);
            e.jump(done, &[]);
        });
        self.side(other, |e| {
            for call in [Some(&first.0), first.1.as_ref()].into_iter().flatten() {
                e.race_of_lanes(call, args, offset_of!(Helpers, race));
            }
            e.jump(done, &[]);
        });
        self.block = done;
    }

    /// Operands of the calls for an access and its twin.
    fn race_read(
        &mut self,
        check: RaceCheck,
        twin: Option<RaceCheck>,
        args: &[Value],
    ) -> Option<(RaceCall, Option<RaceCall>)> {
        let call = self.race_call(check, args)?;
        Some((call, twin.and_then(|twin| self.race_call(twin, args))))
    }

    /// One call of the runtime for several reads, and calls for each where that leaves something to do.
    fn race_of_reads(
        &mut self,
        first: &(RaceCall, Option<RaceCall>),
        reads: &RaceReads,
        base: V,
        (stride, args): (i64, &[Value]),
    ) {
        let entered = first.1.as_ref().unwrap_or(&first.0);
        let &[part] = entered.records.parts.as_slice() else {
            return self.bug("a check of a merged access among several");
        };
        let base = self.resize(base, types::I64);
        let operands = [
            base,
            self.iconst(types::I64, stride.cast_unsigned()),
            self.iconst(types::I64, reads.operand()),
        ];
        let helper = offset_of!(Helpers, race_reads);
        let Some(left) = self.race_part(entered, (part, entered.shape), helper, &operands) else {
            return;
        };
        let (each, done) = (self.new_cold_block(), self.new_block());
        self.branch(left, each, done);
        self.side(each, |e| {
            e.race_of_affine(first, base, stride);
            for (&(check, twin), n) in reads.others.iter().zip(1..) {
                let at = e.ins().iadd_imm_s(base, reads.distance(n));
                if let Some(read) = e.race_read(check, twin, args) {
                    e.race_of_affine(&read, at, stride);
                }
            }
            e.jump(done, &[]);
        });
        self.block = done;
    }

    /// Operands of the calls for an access.
    pub(super) fn race_call(&mut self, check: RaceCheck, args: &[Value]) -> Option<RaceCall> {
        let lanes = self.affine_lanes(check.space, args);
        let records = FaultRecords::new(self.f, check.site, lanes.count);
        let shape = race::shape(check, lanes.place, lanes.count, records.first_lane);
        let Some(shape) = shape else {
            self.bug(race::TOO_MANY);
            return None;
        };
        let data: Vec<Vec<V>> = Self::data_args(check.space, args)
            .iter()
            .map(|&v| self.parts(v))
            .collect();
        let values = 16 * piece_count(Ty::vector(lanes.addr_lane(), lanes.count)) as u32;
        let row = 16 * data.first().map_or(0, |parts| parts.len() as u32);
        let block = self.message_block(values + row * data.len() as u32);
        for (k, parts) in data.iter().enumerate() {
            self.spill(block, values + row * k as u32, parts);
        }
        Some(RaceCall {
            records,
            shape,
            enabled: self.enabled_lanes(&lanes),
            lanes,
            block,
            values,
        })
    }

    /// Calls of the runtime with the address of each lane.
    pub(super) fn race_of_lanes(&mut self, call: &RaceCall, args: &[Value], helper: usize) {
        let to = self.slot_addr(call.block, 0);
        for (i, v) in self.parts(args[1]).into_iter().enumerate() {
            self.ins().store(DATA, v, to, 16 * i as i32);
        }
        self.race_calls(call, helper, &[to]);
    }

    /// Calls of the runtime with the address of lane 0. A read by other lanes at the same addresses is tried first: where that races with
    /// nothing, this one does not, and what is known afterwards is what is known of the other one.
    fn race_of_affine(
        &mut self,
        (call, twin): &(RaceCall, Option<RaceCall>),
        first: V,
        stride: i64,
    ) {
        let first = self.resize(first, types::I64);
        let stride = self.iconst(types::I64, stride.cast_unsigned());
        let values = self.slot_addr(call.block, call.values);
        let last = [first, stride, values];
        let helper = offset_of!(Helpers, race_affine);
        let Some(twin) = twin else {
            return self.race_calls(call, helper, &last);
        };
        let &[part] = twin.records.parts.as_slice() else {
            return self.bug("a check of a merged access as a twin");
        };
        let shape = twin.shape | race::ATTEMPT;
        let Some(left) = self.race_part(twin, (part, shape), helper, &last) else {
            return;
        };
        let (each, done) = (self.new_cold_block(), self.new_block());
        self.branch(left, each, done);
        self.side(each, |e| {
            e.race_calls(call, helper, &last);
            e.race_calls(twin, helper, &last);
            e.jump(done, &[]);
        });
        self.block = done;
    }

    fn race_calls(&mut self, call: &RaceCall, helper: usize, last: &[V]) {
        for &part in &call.records.parts {
            let stop = self.race_part(call, (part, call.shape), helper, last);
            self.stop_on_fault(stop);
        }
    }

    fn race_part(
        &mut self,
        call: &RaceCall,
        (part, shape): (FaultPart, u32),
        helper: usize,
        last: &[V],
    ) -> Option<V> {
        let mut args = vec![
            self.group(),
            self.thread_index(),
            self.iconst(types::I32, u64::from(part.site)),
            self.iconst(types::I32, u64::from(shape)),
            call.lanes.surface,
            self.lanes_of_part(call.enabled, part),
        ];
        args.extend(last);
        self.call_helper(helper, Some(types::I32), &args)
    }
}
