//! Checks of device memory against its buffers; [`crate::backend::shadow`] has what code generators share of it.
//!
//! The usual path compares lanes with the bounds of the buffer that their pointer points into, if the pointer is among the
//! arguments. Else it reads the shadow of all bytes that the lanes reach. Zeros there mean that all of these bytes are a
//! buffer's. Lanes at a constant distance take one test, whether they are enabled or not. Others take one for each enabled lane,
//! or none in a function with many of them.
//!
//! Where there is no test, or it fails, the code calls the runtime, which looks at enabled lanes exactly and records what is
//! wrong.

use std::mem::offset_of;

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{InstructionOpcode as I, PointerValue};
use visa_runtime::abi::{Helpers, Pointee};

use super::context::{Field, Key};
use super::emit::{EmitResult, LlvmEmitter, V};
use super::memory::{Lanes, Place, Region};
use crate::backend::access::{CheckHow, CheckSpan, FLAT_OFFSET, Spacing};
use crate::backend::fault_records::FaultRecords;
use crate::backend::shadow::{
    self, GRANULE, LEAD, LaneShadow, Pieces, PointeeOf, lane_bytes, shape,
};
use crate::ssa::{BufferCheck, Inst, Lane, Op, Space, Ty};

/// Widest piece of the shadow that is read, in bytes.
const WIDEST: u64 = 16;

impl<'c> LlvmEmitter<'c, '_> {
    /// A check.
    pub(super) fn check_buffer(&mut self, inst: Inst, how: &CheckHow) -> EmitResult<()> {
        let data = self.f.inst(inst);
        let Op::CheckBuffer(check) = data.op else {
            return Err("no check of a buffer".into());
        };
        let (cold, go_on) = (self.new_block(), self.new_block());
        let lanes = self.lanes(Space::Flat, &data.args)?;
        if let Some(at) = how.pointer {
            let other = self.new_block();
            let pointee = PointeeOf::new(check, at);
            let within = self.are_within(pointee, lane_bytes(check), &lanes)?;
            self.branch_likely(within, go_on, other, true)?;
            self.at(other);
        }
        match (&how.span, how.each) {
            (Some(span), _) => self.check_span(inst, check, span, (go_on, cold))?,
            (None, Some(each)) => self.scattered(check, &lanes, each, (go_on, cold))?,
            (None, None) => self.jump(cold)?,
        }
        self.at(cold);
        self.look(check, &lanes)?;
        self.jump(go_on)?;
        self.at(go_on);
        Ok(())
    }

    /// Branches to `clear` if all lanes of a check are surely in buffers, else to `other`.
    fn check_span(
        &mut self,
        inst: Inst,
        check: BufferCheck,
        span: &CheckSpan,
        (clear, other): (BasicBlock<'c>, BasicBlock<'c>),
    ) -> EmitResult<()> {
        let (base, guard) = self.spacing_of(inst, &span.spacing)?;
        let lowest = self.add_const(self.as_int(base)?, span.lowest)?.into();
        let branch = |e: &mut Self, ok: V<'c>, to| {
            let ok = e.with_guard(ok, guard)?;
            e.branch_likely(ok, clear, to, true)
        };
        if let Some(pointer) = span.pointer {
            let by_shadow = self.new_block();
            let ok = self.is_within(PointeeOf::new(check, pointer), (lowest, span.bytes))?;
            branch(self, ok, by_shadow)?;
            self.at(by_shadow);
        }
        let ok = self.shadow_is_clear(check, lowest, span.bytes)?;
        branch(self, ok, other)
    }

    /// Address of lane 0, and the condition under which the lanes are spaced from there as planned.
    pub(super) fn spacing_of(
        &mut self,
        inst: Inst,
        spacing: &Spacing,
    ) -> EmitResult<(V<'c>, Option<V<'c>>)> {
        match spacing {
            Spacing::One => Ok((self.get(self.f.inst(inst).args[1])?, None)),
            Spacing::Table => {
                let shape = self.affine(inst)?;
                Ok((shape.base, shape.guard))
            }
            Spacing::Local(_) | Spacing::Beside(_) => {
                Err("a check for another code generator".into())
            }
        }
    }

    /// Whether `bytes` bytes are in device memory and their shadow is zero.
    fn shadow_is_clear(
        &mut self,
        check: BufferCheck,
        address: V<'c>,
        bytes: u64,
    ) -> EmitResult<V<'c>> {
        let offset = self.flat_offset(address)?;
        let limit = self.limit(Region::Known(Place::Flat), bytes as u32)?;
        let inside = self.icmp(IntPredicate::ULT, offset, limit)?;
        let first = self.select(inside, offset, self.i64(0))?;
        let last = self.add_const(self.as_int(first)?, bytes as i64 - 1)?;
        let shadow = self.shadow(check)?;
        let first = self.granule(shadow, first)?;
        let last = self.granule(shadow, last.into())?;
        let pieces = Pieces::new(bytes, WIDEST);
        let piece = self.int(pieces.width as u32 * 8);
        let end = self.offset_const(last, 1 - pieces.width as i64)?;
        let mut all = self.load(piece.into(), end)?;
        if bytes > 1 {
            for start in pieces.starts() {
                let at = self.offset_const(first, start as i64)?;
                let v = self.load(piece.into(), at)?;
                all = self.op2(I::Or, all, v)?;
            }
        }
        let clear = self.icmp(IntPredicate::EQ, all, piece.const_zero())?;
        self.op2(I::And, clear, inside)
    }

    fn shadow(&mut self, check: BufferCheck) -> EmitResult<PointerValue<'c>> {
        let shadow = self.launch_field(shadow::shadow(check), Field::Ptr)?;
        self.as_ptr(shadow)
    }

    /// Pointer to the shadow of an offset in device memory.
    fn granule(&self, shadow: PointerValue<'c>, offset: V<'c>) -> EmitResult<PointerValue<'c>> {
        let by = self.i64(u64::from(GRANULE.trailing_zeros()));
        let at = self.op2(I::LShr, offset, by)?;
        self.offset(shadow, self.as_int(at)?)
    }

    /// Whether bytes from an address on are in the buffer that a pointer in the payload points into.
    pub(super) fn is_within(
        &mut self,
        pointee: PointeeOf,
        (address, bytes): (V<'c>, u64),
    ) -> EmitResult<V<'c>> {
        let start = self.pointee_start(pointee)?;
        let limit = self.pointee_limit(pointee, bytes)?;
        let distance = self.distance(pointee, (address, 1), start)?;
        self.icmp(IntPredicate::ULT, distance, limit)
    }

    /// Whether all enabled lanes are in the buffer that a pointer in the payload points into.
    pub(super) fn are_within(
        &mut self,
        pointee: PointeeOf,
        bytes: u64,
        lanes: &Lanes<'c>,
    ) -> EmitResult<V<'c>> {
        let (n, mask) = (lanes.count, self.get(lanes.mask)?);
        let start = self.pointee_start(pointee)?;
        let limit = self.pointee_limit(pointee, bytes)?;
        let each = self.addresses(lanes)?;
        let distance = self.distance(pointee, (each, n), start)?;
        let outside = self.icmp(IntPredicate::UGE, distance, self.splat(limit, n)?)?;
        let outside = self.op2(I::And, outside, mask)?;
        let outside = self.mask_bits(outside, n)?;
        self.icmp(IntPredicate::EQ, outside, self.i32(0))
    }

    /// Distance of addresses from the start of a buffer.
    fn distance(
        &mut self,
        pointee: PointeeOf,
        (addresses, lanes): (V<'c>, u16),
        start: V<'c>,
    ) -> EmitResult<V<'c>> {
        let start = self.splat(start, lanes)?;
        let distance = self.op2(I::Sub, addresses, start)?;
        if !pointee.ignores_tags {
            return Ok(distance);
        }
        let low = self.splat(self.i64(FLAT_OFFSET).into(), lanes)?;
        self.op2(I::And, distance, low)
    }

    /// First address of the buffer that a pointer in the payload points into.
    fn pointee_start(&mut self, pointee: PointeeOf) -> EmitResult<V<'c>> {
        let all = self.launch_field(pointee.all, Field::Ptr)?;
        let at = pointee.at + offset_of!(Pointee, start);
        self.hoisted(Key::PointeeStart(pointee), |e| {
            e.load_constant(e.int(64).into(), all, at)
        })
    }

    /// First offset in the buffer that is out of bounds for an access of a given number of bytes; 0 if the buffer is smaller.
    fn pointee_limit(&mut self, pointee: PointeeOf, bytes: u64) -> EmitResult<V<'c>> {
        let all = self.launch_field(pointee.all, Field::Ptr)?;
        let at = pointee.at + offset_of!(Pointee, bytes);
        self.hoisted(Key::PointeeLimit(pointee, bytes), |e| {
            let size = e.load_constant(e.int(64).into(), all, at)?;
            let most = e.i64(bytes - 1);
            let limit = e.op2(I::Sub, size, most)?;
            let fits = e.icmp(IntPredicate::UGT, size, most)?;
            e.select(fits, limit, e.i64(0))
        })
    }

    /// Branches to `clear` if all enabled lanes are surely in buffers, by the shadow of each, else to `other`.
    fn scattered(
        &mut self,
        check: BufferCheck,
        lanes: &Lanes<'c>,
        of_lane: LaneShadow,
        (clear, other): (BasicBlock<'c>, BasicBlock<'c>),
    ) -> EmitResult<()> {
        let (n, mask) = (lanes.count, self.get(lanes.mask)?);
        let offsets = self.offsets(lanes)?;
        let limit = self.limit(Region::Known(Place::Flat), lane_bytes(check) as u32)?;
        let limit = self.splat(limit.into(), n)?;
        let mut odd = self.icmp(IntPredicate::UGE, offsets, limit)?;
        if of_lane.low != 0 {
            let ty = Ty::vector(Lane::I64, n);
            let low = self.op2(I::And, offsets, self.konst(ty, of_lane.low)?)?;
            let unaligned = self.icmp(IntPredicate::NE, low, self.konst(ty, 0)?)?;
            odd = self.op2(I::Or, odd, unaligned)?;
        }
        let odd = self.op2(I::And, odd, mask)?;
        let odd = self.mask_bits(odd, n)?;
        let good = self.icmp(IntPredicate::EQ, odd, self.i32(0))?;
        let there = self.new_block();
        self.branch_likely(good, there, other, true)?;
        self.at(there);
        // Lanes that are not enabled read the zeros in front of the shadow.
        let ty = Ty::vector(Lane::I64, n);
        let moved = self.op2(I::Add, offsets, self.konst(ty, LEAD.cast_unsigned())?)?;
        let places = self.select(mask, moved, self.konst(ty, 0)?)?;
        let shadow = self.shadow(check)?;
        let shadow = self.offset_const(shadow, -LEAD / GRANULE as i64)?;
        let piece = self.int(of_lane.bytes as u32 * 8);
        let mut all: V = piece.const_zero().into();
        for lane in 0..u32::from(n) {
            let at = self.granule(shadow, self.lane(places, lane)?)?;
            let v = self.load(piece.into(), at)?;
            all = self.op2(I::Or, all, v)?;
        }
        let zero = self.icmp(IntPredicate::EQ, all, piece.const_zero())?;
        self.branch_likely(zero, clear, other, true)
    }

    /// Asks the runtime about each enabled lane.
    fn look(&mut self, check: BufferCheck, lanes: &Lanes<'c>) -> EmitResult<()> {
        let enabled = self.enabled_lanes(lanes)?;
        let wide = Ty::vector(Lane::I64, lanes.count);
        let slot = self.slot(wide.bytes())?;
        let each = self.addresses(lanes)?;
        self.store_value(each, wide, slot)?;
        let records = FaultRecords::new(self.f, check.site, lanes.count);
        let addresses = self.offset_const(slot, records.addresses())?;
        let shape = shape(check);
        for &part in &records.parts {
            let ours = self.lanes_of_part(enabled, part)?;
            let args = [
                self.group().into(),
                self.thread_index()?.into(),
                self.i32(part.site).into(),
                self.i32(shape).into(),
                self.op2(I::Shl, ours, self.i32(records.first_lane))?,
                addresses.into(),
            ];
            let stop = self.call_helper(offset_of!(Helpers, check), Some(32), &args)?;
            self.stop_on_fault(stop.ok_or("no answer to a check")?)?;
        }
        Ok(())
    }
}
