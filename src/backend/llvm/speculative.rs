//! Speculative contiguity checks, for accesses whose enabled lanes probably lie side by side, though nothing proves it: masks
//! choose their addresses, or the addresses come on different ways.
//!
//! One lane says where the others would be. A comparison tells whether those that are enabled and inside are there; if so, a
//! masked load or store does the access. The code tries the first lane of all, which is quick to find. If that fails because this
//! lane is disabled, it tries the first one that counts. If that fails, the access is a gather or a scatter.

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::values::{InstructionOpcode as I, PointerValue};

use super::emit::{EmitResult, LlvmEmitter, V};
use super::gather::{LaneAddresses, Lead};
use super::memory::Lanes;
use crate::backend::access::{AffineAccess, Any, By, StridedKind};
use crate::ssa::{Inst, Lane, MemAccess, Ty};

/// What is to be found out.
#[derive(Clone, Copy)]
struct Question<'c> {
    /// What the access knows of its addresses.
    lead: Lead<'c>,
    /// Where the lanes are: at offsets, or at numbers of elements.
    places: LaneAddresses<'c>,
    /// The same: offsets or numbers.
    at: V<'c>,
    /// Their lane type.
    lane: Lane,
    /// By how much they grow from lane to lane, if the lanes lie side by side.
    step: u64,
    /// Lanes that are enabled and inside.
    mask: V<'c>,
}

/// Whether lanes lie side by side, and where lane 0 is then, if it is anywhere.
type Answer<'c> = (V<'c>, PointerValue<'c>);

impl<'c> LlvmEmitter<'c, '_> {
    /// Where lanes are, and which of them count. Those that are enabled and not inside are reported, if faults are recorded.
    fn question(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        by: &By,
    ) -> EmitResult<Question<'c>> {
        let By::Speculation(scaled) = *by else {
            return Err("no speculation".into());
        };
        let lead = self.lead(lanes, scaled)?;
        let (places, inside) = self.led(lanes, lead, (access.elem, 0))?;
        self.report_outside(access, lanes, [inside].into_iter())?;
        let (at, lane, step) = match places {
            LaneAddresses::Offsets(at) => (at, lanes.addr_lane(), access.elem.bytes().into()),
            LaneAddresses::Units(_, at, _) => (at, Lane::I32, 1),
            _ => return Err("speculation about neither offsets nor numbers".into()),
        };
        Ok(Question {
            lead,
            places,
            at,
            lane,
            step,
            mask: self.guard(lanes, inside)?,
        })
    }

    /// Distances of the lanes from the first one.
    fn steps(&mut self, lanes: &Lanes<'c>, q: Question<'c>) -> EmitResult<V<'c>> {
        let steps: Vec<u64> = (0..u64::from(lanes.count)).map(|i| i * q.step).collect();
        self.vector_bits(q.lane, &steps)
    }

    /// True if no lane that counts is anywhere else than expected.
    fn all_there(&mut self, q: Question<'c>, expected: V<'c>, lanes: u16) -> EmitResult<V<'c>> {
        let elsewhere = self.icmp(IntPredicate::NE, q.at, expected)?;
        let wrong = self.op2(I::And, q.mask, elsewhere)?;
        let wrong = self.mask_bits(wrong, lanes)?;
        self.icmp(IntPredicate::EQ, wrong, self.i32(0))
    }

    /// By the first lane, enabled or not.
    fn by_first(&mut self, lanes: &Lanes<'c>, q: Question<'c>) -> EmitResult<Answer<'c>> {
        let first = self.lane(q.at, 0)?;
        let steps = self.steps(lanes, q)?;
        let all = self.splat(first, lanes.count)?;
        let expected = self.op2(I::Add, all, steps)?;
        let holds = self.all_there(q, expected, lanes.count)?;
        self.answer(lanes, q, (holds, first, self.i64(0).into()))
    }

    /// By the first lane that counts; any one if there is none.
    fn by_enabled(&mut self, lanes: &Lanes<'c>, q: Question<'c>) -> EmitResult<Answer<'c>> {
        let n = lanes.count;
        let bits = self.mask_bits(q.mask, n)?;
        let never = self.cx.bool_type().const_zero().into();
        let first = self.intrinsic("llvm.cttz", &[Ty::I32], &[bits, never])?;
        let first = self.op2(I::And, first, self.i32(u32::from(n) - 1))?;
        let index = self.as_int(first)?;
        let steps = self.steps(lanes, q)?;
        let start = self.op2(I::Sub, q.at, steps)?;
        let from = self
            .b
            .build_extract_element(self.as_vector(start)?, index, "\0")?;
        let all = self.splat(from, n)?;
        let expected = self.op2(I::Add, all, steps)?;
        let holds = self.all_there(q, expected, n)?;
        let lead = self.resize(first, 64)?;
        let lead = self.op2(I::Mul, lead, self.i64(q.step))?;
        self.answer(lanes, q, (holds, from, lead))
    }

    /// The pointer for lane 0, whose offset or number is `from`; the lane that was looked at is `lead` further. In 64 bits, `from` may be
    /// below zero. Of lanes that count, none is before the one that was looked at, and none may be after the end of 32 bits.
    fn answer(
        &mut self,
        lanes: &Lanes<'c>,
        q: Question<'c>,
        (holds, from, lead): (V<'c>, V<'c>, V<'c>),
    ) -> EmitResult<Answer<'c>> {
        if q.lane == Lane::I64 {
            let base = self.base(lanes.region)?;
            return Ok((holds, self.offset(base, self.as_int(from)?)?));
        }
        let there = self.op2(I::Add, from, self.resize(lead, 32)?)?;
        let span = u64::from(lanes.count) * q.step;
        let (there, most, start, unit) = match q.places {
            // Numbers are signed.
            LaneAddresses::Units(start, _, unit) => {
                let there = self.cast(I::SExt, there, self.int(64).into())?;
                (there, (1 << 31) - span, start, unit)
            }
            _ => {
                let base = self.base(lanes.region)?;
                (self.resize(there, 64)?, (1 << 32) - span, base, 1)
            }
        };
        let near = self.icmp(IntPredicate::SLE, there, self.i64(most))?;
        let holds = self.op2(I::And, holds, near)?;
        let offset = self.op2(I::Sub, there, lead)?;
        let offset = self.op2(I::Mul, offset, self.i64(unit.into()))?;
        Ok((holds, self.offset(start, self.as_int(offset)?)?))
    }

    /// Has an access done both ways that need lanes side by side, and goes on where it has to be done otherwise.
    fn side_by_side(
        &mut self,
        lanes: &Lanes<'c>,
        q: Question<'c>,
        done: BasicBlock<'c>,
        mut access: impl FnMut(&mut Self, PointerValue<'c>) -> EmitResult<()>,
    ) -> EmitResult<()> {
        for first in [true, false] {
            let (holds, place) = match first {
                true => self.by_first(lanes, q)?,
                false => self.by_enabled(lanes, q)?,
            };
            let (beside, other) = (self.new_block(), self.new_block());
            self.branch_likely(holds, beside, other, true)?;
            self.at(beside);
            access(self, place)?;
            self.jump(done)?;
            self.at(other);
        }
        Ok(())
    }

    /// A load of which enabled lanes may lie side by side.
    pub(super) fn load_speculative(
        &mut self,
        (inst, access): (Inst, MemAccess),
        lanes: &Lanes<'c>,
        alone: &AffineAccess,
    ) -> EmitResult<Vec<V<'c>>> {
        let q = self.question(access, lanes, &alone.by)?;
        let done = self.new_block();
        let ty = self.type_of(Ty::vector(access.elem, lanes.count));
        let callee = self.declare("llvm.masked.load", &[ty, self.ptr_type()])?;
        let mut loaded = Vec::new();
        self.side_by_side(lanes, q, done, |e, place| {
            e.fetch_first(
                (inst, true),
                access,
                lanes.count,
                StridedKind::Packed,
                place,
            )?;
            let v = e.call_masked(callee, &[place.into()], &[q.mask, ty.const_zero()])?;
            loaded.push((v.ok_or("a load without a result")?, e.here()?));
            Ok(())
        })?;
        let v = match alone.other {
            Any::Gather => {
                let at = self.to_gather(lanes, q.lead, q.places, (access.elem, 0))?;
                self.gather_lanes(access.elem, lanes, at, q.mask)?
            }
            // It would report what is reported already.
            _ if self.records_faults(access.space) => return Err("a load that is no gather".into()),
            any => self.load_any(access, lanes, any)?[0],
        };
        loaded.push((v, self.here()?));
        self.jump(done)?;
        self.at(done);
        let phi = self.b.build_phi(ty, "\0")?;
        for (v, from) in loaded {
            phi.add_incoming(&[(&v, from)]);
        }
        Ok(vec![phi.as_basic_value()])
    }

    /// A store of which enabled lanes may lie side by side.
    pub(super) fn store_speculative(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        data: &[V<'c>],
        alone: &AffineAccess,
    ) -> EmitResult<()> {
        let &[v] = data else {
            return Err("speculation about several components".into());
        };
        let q = self.question(access, lanes, &alone.by)?;
        let done = self.new_block();
        self.side_by_side(lanes, q, done, |e, place| e.store_masked(q.mask, v, place))?;
        match alone.other {
            Any::Gather => self.scatter_lanes(lanes, q.places, q.mask, v)?,
            Any::Loop(_) => self.store_each(access.elem, lanes, (q.places, q.mask), v)?,
            any => self.store_reported(access, lanes, data, any)?,
        }
        self.jump(done)?;
        self.at(done);
        Ok(())
    }
}
