//! Atomics of integers without a call: a loop over the lanes that are enabled and inside.
//!
//! The code first stores offsets and operands in the slot for messages, where the loop reads them by lane number. Old values come
//! back the same way, if an instruction reads them.

use std::mem::offset_of;

use inkwell::values::{BasicValue, InstructionOpcode as I, IntValue, PointerValue};
use inkwell::{AtomicOrdering, AtomicRMWBinOp, IntPredicate};
use visa_runtime::abi::{Helpers, message};

use super::access::padded;
use super::emit::{EmitResult, InternalError, LlvmEmitter, V};
use super::gather::LaneAddresses;
use super::memory::Lanes;
use super::vectors::low_bits;
use crate::backend::access::{AtomicHow, AtomicWay, asks_first};
use crate::isa::AtomicOp;
use crate::ssa::{AtomicAccess, Inst, Lane, Op, Ty, Value};

/// Where a lane's operand is.
#[derive(Clone, Copy)]
enum Operand<'c> {
    /// The same for all.
    Uniform(V<'c>),
    /// In a row of the slot.
    Row(PointerValue<'c>),
}

/// How an element is changed.
struct Change<'c> {
    op: AtomicOp,
    locked: bool,
    elem: Lane,
    pointer: PointerValue<'c>,
    operands: [Option<IntValue<'c>>; 2],
}

/// What holds of an operand and an element that a minimum or maximum changes.
const fn changes_if(op: AtomicOp) -> IntPredicate {
    match op {
        AtomicOp::Umin => IntPredicate::ULT,
        AtomicOp::Umax => IntPredicate::UGT,
        AtomicOp::Smin => IntPredicate::SLT,
        _ => IntPredicate::SGT,
    }
}

impl<'c> LlvmEmitter<'c, '_> {
    /// A lane-wise atomic.
    pub(super) fn atomic(&mut self, inst: Inst, how: AtomicHow) -> EmitResult<()> {
        let f = self.f;
        let data = f.inst(inst);
        let (Op::Atomic(access), [out]) = (&data.op, data.results.as_slice()) else {
            return Err("no atomic with one result".into());
        };
        let lanes = self.lanes(access.space, &data.args)?;
        let operands = Self::data_args(access.space, &data.args);
        let old = match how.way {
            AtomicWay::Message => self.atomic_by_message(*access, &lanes, operands)?,
            AtomicWay::Scalar => {
                let tested = self.atomic_offsets(*access, &lanes)?;
                self.atomic_scalar(*access, &lanes, operands, tested, how.locked)?
            }
            AtomicWay::Loop | AtomicWay::Straight => {
                let tested = self.atomic_offsets(*access, &lanes)?;
                self.atomic_each(*access, &lanes, operands, tested, how)?
            }
        };
        self.bind(*out, old);
        Ok(())
    }

    fn atomic_by_message(
        &mut self,
        access: AtomicAccess,
        lanes: &Lanes<'c>,
        data: &[Value],
    ) -> EmitResult<V<'c>> {
        let data = self.get_all(data)?;
        let rows = data.len().max(1) as u32;
        let helper = offset_of!(Helpers, atomic);
        let mut call = self.message(helper, lanes, access.elem, rows, &data)?;
        call.shape |= (access.op as u32) << message::ATOMIC_SHIFT;
        self.send_or_report(call, lanes, access.space, access.site)?;
        self.message_row(call, 0)
    }

    /// Offsets, and which lanes are enabled and inside; others are reported.
    fn atomic_offsets(
        &mut self,
        access: AtomicAccess,
        lanes: &Lanes<'c>,
    ) -> EmitResult<(V<'c>, V<'c>)> {
        let bytes = access.elem.bytes();
        let low = !(u64::from(bytes) - 1);
        let low: V = match lanes.flat {
            true => self.i64(low).into(),
            false => self.i32(low as u32).into(),
        };
        let low = self.splat(low, lanes.count)?;
        let offsets = self.offsets(lanes)?;
        let offsets = self.op2(I::And, offsets, low)?;
        let limit = self.limit(lanes.region, bytes)?;
        let limit = self.splat(limit.into(), lanes.count)?;
        let inside = self.icmp(IntPredicate::ULT, offsets, limit)?;
        if self.records_faults(access.space) {
            let mask = self.get(lanes.mask)?;
            let outside = self.icmp(IntPredicate::UGE, offsets, limit)?;
            let faulting = self.op2(I::And, mask, outside)?;
            let faulting = self.mask_bits(faulting, lanes.count)?;
            let place = (self.addresses(lanes)?, lanes.count, lanes.surface);
            self.report(place, faulting, access.site, |_| Ok(()))?;
        }
        Ok((offsets, self.guard(lanes, inside)?))
    }

    fn atomic_scalar(
        &mut self,
        access: AtomicAccess,
        lanes: &Lanes<'c>,
        data: &[Value],
        (offset, guard): (V<'c>, V<'c>),
        locked: bool,
    ) -> EmitResult<V<'c>> {
        let mut operands = [None; 2];
        for (operand, &v) in operands.iter_mut().zip(data) {
            *operand = Some(self.get_int(v)?);
        }
        let base = self.base(lanes.region)?;
        let wide = self.resize(offset, 64)?;
        let pointer = self.offset(base, self.as_int(wide)?)?;
        let zero = self.int(access.elem.bits()).const_zero();
        let (one, done) = (self.new_block(), self.new_block());
        let before = self.here()?;
        self.branch(guard, one, done)?;
        self.at(one);
        let old = self.change(&Change {
            op: access.op,
            locked,
            elem: access.elem,
            pointer,
            operands,
        })?;
        let after = self.here()?;
        self.jump(done)?;
        self.at(done);
        let result = self.b.build_phi(zero.get_type(), "\0")?;
        result.add_incoming(&[(&zero, before), (&old, after)]);
        Ok(result.as_basic_value())
    }

    fn atomic_each(
        &mut self,
        access: AtomicAccess,
        lanes: &Lanes<'c>,
        data: &[Value],
        (offsets, mut guard): (V<'c>, V<'c>),
        AtomicHow {
            way,
            locked,
            read,
            gathered,
        }: AtomicHow,
    ) -> EmitResult<V<'c>> {
        if gathered {
            guard = self.changing(access, lanes, data, (offsets, guard))?;
        }
        let bits = self.mask_bits(guard, lanes.count)?;
        if way != AtomicWay::Straight {
            return self.atomic_loop(access, lanes, data, (offsets, bits), (locked, read));
        }
        let full = self.icmp(IntPredicate::EQ, bits, self.i32(low_bits(lanes.count)))?;
        let (every, some, done) = self.two_ways(full)?;
        self.at(every);
        let a = self.atomic_straight(access, lanes, data, offsets, (locked, read))?;
        let every = self.here()?;
        self.jump(done)?;
        self.at(some);
        let b = self.atomic_loop(access, lanes, data, (offsets, bits), (locked, read))?;
        let some = self.here()?;
        self.jump(done)?;
        self.at(done);
        let old = self.b.build_phi(a.get_type(), "\0")?;
        old.add_incoming(&[(&a, every), (&b, some)]);
        Ok(old.as_basic_value())
    }

    /// The enabled lanes of a minimum or maximum that change what a gather sees. The others change nothing, whatever lanes before them do. The
    /// processor reads each element of a gather at once, so that what is seen is what was there at some time, as with a relaxed load.
    fn changing(
        &mut self,
        access: AtomicAccess,
        lanes: &Lanes<'c>,
        data: &[Value],
        (offsets, guard): (V<'c>, V<'c>),
    ) -> EmitResult<V<'c>> {
        let &[operand] = data else {
            return Err("a minimum or maximum of other operands than one".into());
        };
        let at = LaneAddresses::Offsets(offsets);
        let seen = self.gather_lanes(access.elem, lanes, at, guard)?;
        let operand = self.get(operand)?;
        let changes = self.icmp(changes_if(access.op), operand, seen)?;
        self.op2(I::And, guard, changes)
    }

    /// All lanes, one after the other in straight code.
    fn atomic_straight(
        &mut self,
        access: AtomicAccess,
        lanes: &Lanes<'c>,
        data: &[Value],
        offsets: V<'c>,
        (locked, read): (bool, bool),
    ) -> EmitResult<V<'c>> {
        let mut all: V = self
            .type_of(Ty::vector(access.elem, lanes.count))
            .const_zero();
        let base = self.base(lanes.region)?;
        let words = self.lane_words(offsets, Ty::vector(lanes.addr_lane(), lanes.count))?;
        for lane in 0..lanes.count {
            let mut operands = [None; 2];
            for (operand, &v) in operands.iter_mut().zip(data) {
                let one = match self.same_in_all(v)? {
                    Some(one) => one,
                    None => {
                        let v = self.get(v)?;
                        self.lane(v, u32::from(lane))?
                    }
                };
                *operand = Some(self.as_int(one)?);
            }
            let offset = self.lane_offset(words, lanes.count, lane)?;
            let old = self.change(&Change {
                op: access.op,
                locked,
                elem: access.elem,
                pointer: self.offset(base, offset)?,
                operands,
            })?;
            if read {
                all = self.with_lane(all, old, u32::from(lane))?;
            }
        }
        Ok(all)
    }

    fn atomic_loop(
        &mut self,
        access: AtomicAccess,
        lanes: &Lanes<'c>,
        data: &[Value],
        (offsets, bits): (V<'c>, V<'c>),
        (locked, read): (bool, bool),
    ) -> EmitResult<V<'c>> {
        let ty = Ty::vector(access.elem, lanes.count);
        let addresses = Ty::vector(lanes.addr_lane(), lanes.count);
        let block = self.message_block()?;
        self.store_value(offsets, addresses, block)?;
        let mut at = padded(addresses);
        let mut operands = [None; 2];
        for (operand, &v) in operands.iter_mut().zip(data) {
            *operand = Some(match self.same_in_all(v)? {
                Some(v) => Operand::Uniform(v),
                None => {
                    let row = self.offset_const(block, i64::from(at))?;
                    let v = self.get(v)?;
                    self.store_value(v, ty, row)?;
                    at += padded(ty);
                    Operand::Row(row)
                }
            });
        }
        let zero = self.type_of(ty).const_zero();
        let results = self.offset_const(block, i64::from(at))?;
        if read {
            self.store_value(zero, ty, results)?;
        }
        let base = self.base(lanes.region)?;
        self.each_lane(
            bits,
            |_| Ok(()),
            |e, lane| {
                let offset = e.load_element(lanes.addr_lane(), block, lane)?;
                let wide = e.as_int(e.resize(offset, 64)?)?;
                let mut values = [None; 2];
                for (value, operand) in values.iter_mut().zip(operands) {
                    let v = match operand {
                        None => continue,
                        Some(Operand::Uniform(v)) => v,
                        Some(Operand::Row(row)) => e.load_element(access.elem, row, lane)?,
                    };
                    *value = Some(e.as_int(v)?);
                }
                let old = e.change(&Change {
                    op: access.op,
                    locked,
                    elem: access.elem,
                    pointer: e.offset(base, wide)?,
                    operands: values,
                })?;
                if read {
                    let to = e.element_at(access.elem, results, lane)?;
                    e.store(old, to)?;
                }
                Ok(())
            },
        )?;
        match read {
            true => self.load_value(ty, results),
            false => Ok(zero),
        }
    }

    /// The scalar that all lanes of a value have, where its definition says so.
    fn same_in_all(&mut self, v: Value) -> EmitResult<Option<V<'c>>> {
        let f = self.f;
        if let Some(bits) = self.uniform_const(v) {
            return self.scalar_bits(f.ty(v).lane, bits).map(Some);
        }
        match f.def_inst(v) {
            Some(def) if def.op == Op::Splat && self.is_at_hand(def.args[0]) => {
                self.get(def.args[0]).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn element_at(
        &self,
        elem: Lane,
        row: PointerValue<'c>,
        lane: IntValue<'c>,
    ) -> EmitResult<PointerValue<'c>> {
        let bytes = self.i64(u64::from(elem.bytes()));
        let distance = self.op2(I::Mul, lane, bytes)?;
        self.offset(row, self.as_int(distance)?)
    }

    pub(super) fn load_element(
        &self,
        elem: Lane,
        row: PointerValue<'c>,
        lane: IntValue<'c>,
    ) -> EmitResult<V<'c>> {
        let from = self.element_at(elem, row, lane)?;
        self.load(self.int(elem.bits()).into(), from)
    }

    /// Changes an element; gives its old value, or after `PreDec` the new.
    fn change(&self, change: &Change<'c>) -> EmitResult<V<'c>> {
        let one = self.int(change.elem.bits()).const_int(1, false);
        let a = change.operands[0].unwrap_or(one);
        let b = change.operands[1].unwrap_or(a);
        if change.locked && asks_first(change.op) {
            return self.change_if_needed(change, a);
        }
        if change.locked {
            return self.change_locked(change, a, b);
        }
        let old = self.load(self.int(change.elem.bits()).into(), change.pointer)?;
        let pick = |cc| self.select(self.icmp(cc, old, a)?, old, a);
        let new = match change.op {
            AtomicOp::Add | AtomicOp::Inc => self.op2(I::Add, old, a)?,
            AtomicOp::Sub | AtomicOp::Dec | AtomicOp::PreDec => self.op2(I::Sub, old, a)?,
            AtomicOp::Umin => pick(IntPredicate::ULT)?,
            AtomicOp::Umax => pick(IntPredicate::UGT)?,
            AtomicOp::Smin => pick(IntPredicate::SLT)?,
            AtomicOp::Smax => pick(IntPredicate::SGT)?,
            AtomicOp::Xchg => a.into(),
            AtomicOp::CmpXchg => self.select(self.icmp(IntPredicate::EQ, old, a)?, b, old)?,
            AtomicOp::And => self.op2(I::And, old, a)?,
            AtomicOp::Or => self.op2(I::Or, old, a)?,
            AtomicOp::Xor => self.op2(I::Xor, old, a)?,
            _ => return Err("an atomic that needs a call".into()),
        };
        self.store(new, change.pointer)?;
        Ok(match change.op {
            AtomicOp::PreDec => new,
            _ => old,
        })
    }

    /// A minimum or maximum that is locked only if it changes the element.
    fn change_if_needed(&self, change: &Change<'c>, a: IntValue<'c>) -> EmitResult<V<'c>> {
        let seen = self
            .b
            .build_load(self.int(change.elem.bits()), change.pointer, "\0")?;
        let load = seen
            .as_instruction_value()
            .ok_or("a load that is no instruction")?;
        load.set_atomic_ordering(AtomicOrdering::Monotonic)
            .map_err(|e| InternalError(e.to_string()))?;
        let changes = self.icmp(changes_if(change.op), a, seen)?;
        let (locked, done) = (self.new_block(), self.new_block());
        let before = self.here()?;
        self.branch_likely(changes, locked, done, false)?;
        self.at(locked);
        let old = self.change_locked(change, a, a)?;
        let after = self.here()?;
        self.jump(done)?;
        self.at(done);
        let result = self.b.build_phi(old.get_type(), "\0")?;
        result.add_incoming(&[(&seen, before), (&old, after)]);
        Ok(result.as_basic_value())
    }

    /// LLVM takes the element to be aligned, which it may not be; the instruction that it makes does not mind.
    fn change_locked(
        &self,
        change: &Change<'c>,
        a: IntValue<'c>,
        b: IntValue<'c>,
    ) -> EmitResult<V<'c>> {
        let order = AtomicOrdering::SequentiallyConsistent;
        let op = match change.op {
            AtomicOp::Add | AtomicOp::Inc => AtomicRMWBinOp::Add,
            AtomicOp::Sub | AtomicOp::Dec | AtomicOp::PreDec => AtomicRMWBinOp::Sub,
            AtomicOp::Umin => AtomicRMWBinOp::UMin,
            AtomicOp::Umax => AtomicRMWBinOp::UMax,
            AtomicOp::Smin => AtomicRMWBinOp::Min,
            AtomicOp::Smax => AtomicRMWBinOp::Max,
            AtomicOp::Xchg => AtomicRMWBinOp::Xchg,
            AtomicOp::And => AtomicRMWBinOp::And,
            AtomicOp::Or => AtomicRMWBinOp::Or,
            AtomicOp::Xor => AtomicRMWBinOp::Xor,
            AtomicOp::CmpXchg => {
                let pair = self.b.build_cmpxchg(change.pointer, a, b, order, order)?;
                return Ok(self.b.build_extract_value(pair, 0, "\0")?);
            }
            _ => return Err("an atomic that needs a call".into()),
        };
        let old = self.b.build_atomicrmw(op, change.pointer, a, order)?;
        match change.op {
            AtomicOp::PreDec => self.op2(I::Sub, old, a),
            _ => Ok(old.as_basic_value_enum()),
        }
    }
}
