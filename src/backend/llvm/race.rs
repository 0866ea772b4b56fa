//! Checks of races: one call of the runtime for each access, which compares the access with earlier ones and enters it.

use std::mem::offset_of;

use inkwell::IntPredicate;
use inkwell::values::{InstructionOpcode as I, PointerValue};
use visa_runtime::abi::{Helpers, Status};

use super::access::padded;
use super::emit::{EmitResult, LlvmEmitter, V};
use super::memory::Lanes;
use crate::backend::access::{AffineRace, RaceReads};
use crate::backend::fault_records::{FaultPart, FaultRecords};
use crate::backend::race;
use crate::backend::shadow::PointeeOf;
use crate::ssa::{Function, Inst, Op, RaceAccess, RaceCheck, Ty, Value};

/// Types of a check's addresses and of each of its rows of data.
fn types(f: &Function, check: RaceCheck, args: &[Value]) -> (Ty, Ty) {
    let lanes = args.get(1).map_or(1, |&v| f.ty(v).lanes);
    let row = match check.block {
        true => check.count,
        false => lanes,
    };
    (
        Ty::vector(check.space.addr(), lanes),
        Ty::vector(check.elem, row),
    )
}

/// Bytes of the block of a check.
pub(super) fn block_bytes(f: &Function, check: RaceCheck, args: &[Value]) -> u32 {
    let (addresses, row) = types(f, check, args);
    let head = 2 + usize::from(check.space.has_surface());
    let rows = args.len().saturating_sub(head) as u32;
    padded(addresses) + rows * padded(row)
}

/// What the calls for a check have in common.
pub(super) struct RaceCall<'c> {
    records: FaultRecords,
    shape: u32,
    lanes: Lanes<'c>,
    enabled: V<'c>,
    /// Addresses of lanes, if they are handed on, and values after them.
    block: PointerValue<'c>,
    values: PointerValue<'c>,
}

impl<'c> LlvmEmitter<'c, '_> {
    /// A check.
    pub(super) fn check_race(&mut self, check: RaceCheck, args: &[Value]) -> EmitResult<()> {
        self.unless_invariant(check, args, None, |e| {
            let call = e.race_call(check, args)?;
            e.race_of_lanes(check, &call, args, offset_of!(Helpers, race))
        })
    }

    /// Does something about a check, but not about a read of a buffer that the launch does not write. Leaves before a write that leaves its
    /// buffer. `reach` is the lowest address, all bytes that lanes reach from there, and the condition under which they are affine.
    fn unless_invariant(
        &mut self,
        check: RaceCheck,
        args: &[Value],
        reach: Option<(V<'c>, u64, Option<V<'c>>)>,
        then: impl FnOnce(&mut Self) -> EmitResult<()>,
    ) -> EmitResult<()> {
        let Some(pointee) = PointeeOf::of_race(check) else {
            return then(self);
        };
        let within = match reach {
            Some((lowest, bytes, guard)) => {
                let within = self.is_within(pointee, (lowest, bytes))?;
                Some(self.with_guard(within, guard)?)
            }
            None => None,
        };
        let go_on = self.new_block();
        if check.access == RaceAccess::Read {
            let within = match within {
                Some(within) => within,
                None => self.lanes_are_within(pointee, check, args)?,
            };
            let look = self.new_block();
            self.branch_likely(within, go_on, look, true)?;
            self.at(look);
            then(self)?;
            self.jump(go_on)?;
            self.at(go_on);
            return Ok(());
        }
        if let Some(within) = within {
            let by_lanes = self.new_block();
            self.branch_likely(within, go_on, by_lanes, true)?;
            self.at(by_lanes);
        }
        let within = self.lanes_are_within(pointee, check, args)?;
        let leave = self.exit(Status::Suspect)?;
        self.branch_likely(within, go_on, leave, true)?;
        self.at(go_on);
        then(self)
    }

    /// Whether all enabled lanes of a check are in a buffer.
    fn lanes_are_within(
        &mut self,
        pointee: PointeeOf,
        check: RaceCheck,
        args: &[Value],
    ) -> EmitResult<V<'c>> {
        let bytes = race::lane_bytes(check);
        if self.f.ty(args[1]).is_scalar() {
            let address = self.get(args[1])?;
            let within = self.is_within(pointee, (address, bytes))?;
            let all = self.cx.bool_type().const_all_ones();
            let enabled = self.get(args[0])?;
            let disabled = self.op2(I::Xor, enabled, all)?;
            return self.op2(I::Or, within, disabled);
        }
        let lanes = self.lanes(check.space, args)?;
        self.are_within(pointee, bytes, &lanes)
    }

    /// A check of lanes that are known to be affine, maybe under a condition.
    pub(super) fn check_affine_race(&mut self, inst: Inst, race: &AffineRace) -> EmitResult<()> {
        let data = self.f.inst(inst);
        let Op::CheckRace(check) = data.op else {
            return Err("no check of races".into());
        };
        let (base, guard) = self.spacing_of(inst, &race.spacing)?;
        let reach = race.reach(check, self.f.ty(data.args[1]).lanes);
        // Lanes of the other reads are not at hand.
        if check.pointer.is_none() || (reach.is_none() && race.reads.is_some()) {
            return self.affine_race((check, race), (base, guard), &data.args);
        }
        let reach = match reach {
            Some((lowest, bytes)) => {
                let lowest = self.add_const(self.as_int(base)?, lowest)?;
                Some((lowest.into(), bytes, guard))
            }
            None => None,
        };
        self.unless_invariant(check, &data.args, reach, |e| {
            e.affine_race((check, race), (base, guard), &data.args)
        })
    }

    fn affine_race(
        &mut self,
        (check, race): (RaceCheck, &AffineRace),
        (base, guard): (V<'c>, Option<V<'c>>),
        args: &[Value],
    ) -> EmitResult<()> {
        let first = self.race_read(check, race.twin, args)?;
        if let Some(reads) = &race.reads {
            return self.race_of_reads(&first, reads, base, (race.stride, args));
        }
        let Some(guard) = guard else {
            return self.race_of_affine(&first, base, race.stride);
        };
        let (affine, other, done) = (self.new_block(), self.new_block(), self.new_block());
        self.branch_likely(guard, affine, other, true)?;
        self.at(affine);
        self.race_of_affine(&first, base, race.stride)?;
        self.jump(done)?;
        self.at(other);
        for call in [Some(&first.0), first.1.as_ref()].into_iter().flatten() {
            self.race_of_lanes(check, call, args, offset_of!(Helpers, race))?;
        }
        self.jump(done)?;
        self.at(done);
        Ok(())
    }

    /// Operands of the calls for an access and its twin.
    fn race_read(
        &mut self,
        check: RaceCheck,
        twin: Option<RaceCheck>,
        args: &[Value],
    ) -> EmitResult<(RaceCall<'c>, Option<RaceCall<'c>>)> {
        let call = self.race_call(check, args)?;
        let twin = twin.map(|twin| self.race_call(twin, args));
        Ok((call, twin.transpose()?))
    }

    /// One call of the runtime for several reads, and calls for each where that leaves something to do.
    fn race_of_reads(
        &mut self,
        first: &(RaceCall<'c>, Option<RaceCall<'c>>),
        reads: &RaceReads,
        base: V<'c>,
        (stride, args): (i64, &[Value]),
    ) -> EmitResult<()> {
        let entered = first.1.as_ref().unwrap_or(&first.0);
        let &[part] = entered.records.parts.as_slice() else {
            return Err("a check of a merged access among several".into());
        };
        let base = self.resize(base, 64)?;
        let operands = [
            base,
            self.i64(stride.cast_unsigned()).into(),
            self.i64(reads.operand()).into(),
        ];
        let helper = offset_of!(Helpers, race_reads);
        let left = self.race_part(entered, (part, entered.shape), helper, &operands)?;
        let left = self.icmp(IntPredicate::NE, left, self.i32(0))?;
        let (each, done) = (self.new_block(), self.new_block());
        self.branch_likely(left, each, done, false)?;
        self.at(each);
        self.race_of_affine(first, base, stride)?;
        for (&(check, twin), n) in reads.others.iter().zip(1..) {
            let read = self.race_read(check, twin, args)?;
            let at = self.add_const(self.as_int(base)?, reads.distance(n))?;
            self.race_of_affine(&read, at.into(), stride)?;
        }
        self.jump(done)?;
        self.at(done);
        Ok(())
    }

    /// Operands of the calls for an access.
    pub(super) fn race_call(
        &mut self,
        check: RaceCheck,
        args: &[Value],
    ) -> EmitResult<RaceCall<'c>> {
        let lanes = self.lanes(check.space, args)?;
        let records = FaultRecords::new(self.f, check.site, lanes.count);
        let shape = race::shape(check, lanes.place, lanes.count, records.first_lane);
        let shape = shape.ok_or(race::TOO_MANY)?;
        let (addresses, row) = types(self.f, check, args);
        let block = self.message_block()?;
        let values = self.offset_const(block, i64::from(padded(addresses)))?;
        for (k, &v) in Self::data_args(check.space, args).iter().enumerate() {
            let at = self.offset_const(values, i64::from(padded(row)) * k as i64)?;
            let v = self.get(v)?;
            self.store_value(v, row, at)?;
        }
        Ok(RaceCall {
            records,
            shape,
            enabled: self.enabled_lanes(&lanes)?,
            lanes,
            block,
            values,
        })
    }

    /// Calls of the runtime with the address of each lane.
    pub(super) fn race_of_lanes(
        &mut self,
        check: RaceCheck,
        call: &RaceCall<'c>,
        args: &[Value],
        helper: usize,
    ) -> EmitResult<()> {
        let (addresses, _) = types(self.f, check, args);
        let each = self.addresses(&call.lanes)?;
        self.store_value(each, addresses, call.block)?;
        self.race_calls(call, helper, &[call.block.into()])
    }

    /// Calls of the runtime with the address of lane 0. A read by other lanes at the same addresses is tried first: where that races with
    /// nothing, this one does not, and what is known afterwards is what is known of the other one.
    fn race_of_affine(
        &mut self,
        (call, twin): &(RaceCall<'c>, Option<RaceCall<'c>>),
        first: V<'c>,
        stride: i64,
    ) -> EmitResult<()> {
        let first = self.resize(first, 64)?;
        let last = [
            first,
            self.i64(stride.cast_unsigned()).into(),
            call.values.into(),
        ];
        let helper = offset_of!(Helpers, race_affine);
        let Some(twin) = twin else {
            return self.race_calls(call, helper, &last);
        };
        let &[part] = twin.records.parts.as_slice() else {
            return Err("a check of a merged access as a twin".into());
        };
        let shape = twin.shape | race::ATTEMPT;
        let left = self.race_part(twin, (part, shape), helper, &last)?;
        let left = self.icmp(IntPredicate::NE, left, self.i32(0))?;
        let (each, done) = (self.new_block(), self.new_block());
        self.branch_likely(left, each, done, false)?;
        self.at(each);
        self.race_calls(call, helper, &last)?;
        self.race_calls(twin, helper, &last)?;
        self.jump(done)?;
        self.at(done);
        Ok(())
    }

    fn race_calls(&mut self, call: &RaceCall<'c>, helper: usize, last: &[V<'c>]) -> EmitResult<()> {
        for &part in &call.records.parts {
            let stop = self.race_part(call, (part, call.shape), helper, last)?;
            self.stop_on_fault(stop)?;
        }
        Ok(())
    }

    fn race_part(
        &mut self,
        call: &RaceCall<'c>,
        (part, shape): (FaultPart, u32),
        helper: usize,
        last: &[V<'c>],
    ) -> EmitResult<V<'c>> {
        let ours = self.lanes_of_part(call.enabled, part)?;
        let mut args = vec![
            self.group().into(),
            self.thread_index()?.into(),
            self.i32(part.site).into(),
            self.i32(shape).into(),
            call.lanes.surface,
            ours,
        ];
        args.extend(last);
        let stop = self.call_helper(helper, Some(32), &args)?;
        Ok(stop.ok_or("no answer to a check")?)
    }
}
