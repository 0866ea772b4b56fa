//! Lane-wise loads, stores and atomics for addresses of any shape.
//!
//! Scalars are inline. Vectors are gathers and scatters where the processor has them (`gather.rs`, `narrow.rs`). Other stores of
//! single elements are loops (`each.rs`). Everything else is one call of the runtime for each message.

use std::mem::offset_of;

use inkwell::values::{InstructionOpcode as I, PointerValue};
use visa_runtime::abi::{Helpers, message};

use super::context::Key;
use super::emit::{EmitResult, InternalError, LlvmEmitter, V};
use super::image::image_bytes;
use super::memory::Lanes;
use super::race;
use super::rectangle::rectangle_bytes;
use crate::backend::access::{Any, How};
use crate::ssa::{Function, Inst, Lane, MemAccess, Op, Space, Ty, Value};

/// Bytes of a vector in a message.
pub(super) const fn padded(ty: Ty) -> u32 {
    ty.bytes().next_multiple_of(16)
}

/// Bytes of the largest message of a function.
fn message_bytes(f: &Function) -> u32 {
    let bytes = |i: &Inst| {
        let data = f.inst(*i);
        let (space, elem, rows) = match &data.op {
            Op::Load(m) | Op::Store(m) => (m.space, m.elem, u32::from(m.comps)),
            // Old values have a row of their own where no call is made.
            Op::Atomic(m) => (m.space, m.elem, m.op.sources() as u32 + 1),
            Op::Load2d(m) | Op::Store2d(m) => return rectangle_bytes(*m),
            Op::CheckRace(m) => return race::block_bytes(f, *m, &data.args),
            Op::Initialise(m) => {
                let lanes = data.args.get(1).map_or(1, |&v| f.ty(v).lanes);
                return padded(Ty::vector(m.space.addr(), lanes));
            }
            Op::Image(_) => return image_bytes(data.args.get(1).map_or(1, |&v| f.ty(v).lanes)),
            _ => return 0,
        };
        let lanes = data.args.get(1).map_or(1, |&v| f.ty(v).lanes);
        padded(Ty::vector(space.addr(), lanes)) + rows * padded(Ty::vector(elem, lanes))
    };
    let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
    insts.map(bytes).max().unwrap_or(0)
}

/// A call of a [`visa_runtime::abi::Message`].
#[derive(Clone, Copy)]
pub(super) struct MessageCall<'c> {
    /// Offset in the table.
    helper: usize,
    pub shape: u32,
    /// Surface index, or size of register storage.
    index: V<'c>,
    enabled: V<'c>,
    /// Addresses and data.
    block: PointerValue<'c>,
    /// Byte of the block where data starts.
    data: u32,
    /// Type of a row of data.
    row: Ty,
}

impl<'c> LlvmEmitter<'c, '_> {
    /// A load or store that shares no test with others.
    pub(super) fn access_alone(&mut self, inst: Inst, how: &How) -> EmitResult<()> {
        let f = self.f;
        let data = f.inst(inst);
        let args = data.args.as_slice();
        match &data.op {
            Op::Load(access) => self.load_alone(*access, args, &data.results, (inst, how)),
            Op::Store(access) => self.store_alone(*access, args, (inst, how)),
            _ => Err("no access".into()),
        }
    }

    fn load_alone(
        &mut self,
        access: MemAccess,
        args: &[Value],
        out: &[Value],
        (inst, how): (Inst, &How),
    ) -> EmitResult<()> {
        let lanes = self.lanes(access.space, args)?;
        let results = match how {
            How::Any(any) => self.load_any(access, &lanes, *any)?,
            How::Affine(alone) if alone.is_speculative() => {
                self.load_speculative((inst, access), &lanes, alone)?
            }
            How::Affine(alone) => self.load_strided(access, &lanes, inst, alone)?,
        };
        for (&v, result) in out.iter().zip(results) {
            self.bind(v, result);
        }
        Ok(())
    }

    fn store_alone(
        &mut self,
        access: MemAccess,
        args: &[Value],
        (inst, how): (Inst, &How),
    ) -> EmitResult<()> {
        let lanes = self.lanes(access.space, args)?;
        let data = self.get_all(Self::data_args(access.space, args))?;
        match how {
            How::Any(any) => self.store_any(access, &lanes, &data, *any),
            How::Affine(alone) if alone.is_speculative() => {
                self.store_speculative(access, &lanes, &data, alone)
            }
            How::Affine(alone) => self.store_strided(access, &lanes, &data, (inst, alone)),
        }
    }

    /// Load from addresses of unknown shape.
    pub(super) fn load_any(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        any: Any,
    ) -> EmitResult<Vec<V<'c>>> {
        match any {
            Any::Scalar => return self.load_scalar(access, lanes),
            Any::Gather => {
                let lead = self.lead(lanes, None)?;
                return self.gather_each(access, lanes, lead);
            }
            Any::GatherPairs => {
                let lead = self.lead(lanes, None)?;
                return self.gather_pairs(access, lanes, lead);
            }
            Any::GatherScaled { scaled, pairs } => {
                let lead = self.lead(lanes, Some(scaled))?;
                return match pairs {
                    true => self.gather_pairs(access, lanes, lead),
                    false => self.gather_each(access, lanes, lead),
                };
            }
            Any::Inline { .. } => return Ok(vec![self.load_inline(access, lanes)?]),
            Any::Loop(_) | Any::Rolled | Any::Message | Any::RareMessage => {}
        }
        let (elem, comps) = (access.elem, u32::from(access.comps));
        let helper = offset_of!(Helpers, load);
        let call = self.message(helper, lanes, elem, comps, &[])?;
        let faulting = self.send(call)?;
        if self.records_faults(access.space) {
            let place = (self.addresses(lanes)?, lanes.count, lanes.surface);
            self.report(place, faulting, access.site, |_| Ok(()))?;
        }
        (0..comps).map(|row| self.message_row(call, row)).collect()
    }

    /// Store to addresses of unknown shape.
    pub(super) fn store_any(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        data: &[V<'c>],
        any: Any,
    ) -> EmitResult<()> {
        match (any, data) {
            (Any::Scalar, data) => return self.store_scalar(access, lanes, data),
            (Any::Gather, &[v]) => {
                let lead = self.lead(lanes, None)?;
                return self.scatter(access, lanes, lead, v);
            }
            (Any::GatherScaled { scaled, .. }, &[v]) => {
                let lead = self.lead(lanes, Some(scaled))?;
                return self.scatter(access, lanes, lead, v);
            }
            (Any::GatherPairs, &[a, b]) => {
                let lead = self.lead(lanes, None)?;
                return self.scatter_pairs(access, lanes, lead, [a, b]);
            }
            (
                Any::GatherScaled {
                    scaled,
                    pairs: true,
                },
                &[a, b],
            ) => {
                let lead = self.lead(lanes, Some(scaled))?;
                return self.scatter_pairs(access, lanes, lead, [a, b]);
            }
            (Any::Inline { .. }, &[v]) => return self.store_inline(access, lanes, v),
            (Any::Loop(scaled), &[v]) => {
                let lead = self.lead(lanes, scaled)?;
                let (at, inside) = self.led(lanes, lead, (access.elem, 0))?;
                self.report_outside(access, lanes, [inside].into_iter())?;
                let mask = self.guard(lanes, inside)?;
                return self.store_each(access.elem, lanes, (at, mask), v);
            }
            _ => {}
        }
        let helper = offset_of!(Helpers, store);
        let rows = data.len() as u32;
        let call = self.message(helper, lanes, access.elem, rows, data)?;
        self.send_or_report(call, lanes, access.space, access.site)
    }

    /// The same where lanes that are not inside have been reported, if they are recorded.
    pub(super) fn store_reported(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        data: &[V<'c>],
        any: Any,
    ) -> EmitResult<()> {
        if !self.records_faults(access.space) {
            return self.store_any(access, lanes, data, any);
        }
        self.store_message(access, lanes, data)
    }

    /// The same by a call of the runtime.
    pub(super) fn store_message(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        data: &[V<'c>],
    ) -> EmitResult<()> {
        let helper = offset_of!(Helpers, store);
        let call = self.message(helper, lanes, access.elem, data.len() as u32, data)?;
        self.send(call).map(|_| ())
    }

    /// Reads each lane, those that are not inside from where that is harmless.
    fn load_inline(&mut self, access: MemAccess, lanes: &Lanes<'c>) -> EmitResult<V<'c>> {
        let offsets = self.offsets(lanes)?;
        let (at, inside) = self.component(lanes, offsets, access.elem, 0)?;
        let guard = self.guard(lanes, inside)?;
        let base = self.safe_base(lanes.region, access.elem.bytes())?;
        let safe = self.select(guard, at, at.get_type().const_zero())?;
        let ty = self.type_of(Ty::vector(access.elem, lanes.count));
        let one = self.type_of(Ty::scalar(access.elem));
        let mut all: V = ty.const_zero();
        for k in 0..u32::from(lanes.count) {
            let offset = self.lane(safe, k)?;
            let from = self.offset(base, self.as_int(offset)?)?;
            let v = self.load(one, from)?;
            all = self.with_lane(all, v, k)?;
        }
        self.select(guard, all, ty.const_zero())
    }

    /// Writes each lane in order, those that are not inside to the sink.
    fn store_inline(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        data: V<'c>,
    ) -> EmitResult<()> {
        let offsets = self.offsets(lanes)?;
        let (at, inside) = self.component(lanes, offsets, access.elem, 0)?;
        let guard = self.guard(lanes, inside)?;
        let (base, sink) = (self.base(lanes.region)?, self.sink()?);
        for k in 0..u32::from(lanes.count) {
            let offset = self.lane(at, k)?;
            let to = self.offset(base, self.as_int(offset)?)?;
            let to = self.select(self.lane(guard, k)?, to, sink)?;
            let to = self.as_ptr(to)?;
            self.store(self.lane(data, k)?, to)?;
        }
        Ok(())
    }

    /// Writes a message's addresses and data, `rows` vectors of which `data` are the first.
    pub(super) fn message(
        &mut self,
        helper: usize,
        lanes: &Lanes<'c>,
        elem: Lane,
        rows: u32,
        data: &[V<'c>],
    ) -> EmitResult<MessageCall<'c>> {
        let row = Ty::vector(elem, lanes.count);
        let addresses = Ty::vector(lanes.addr_lane(), lanes.count);
        let start = padded(addresses);
        let block = self.message_block()?;
        let lane_addresses = self.addresses(lanes)?;
        self.store_value(lane_addresses, addresses, block)?;
        for (i, &v) in data.iter().enumerate() {
            let at = start + padded(row) * i as u32;
            let at = self.offset_const(block, i64::from(at))?;
            self.store_value(v, row, at)?;
        }
        let mask = self.get(lanes.mask)?;
        let count = u32::from(lanes.count);
        Ok(MessageCall {
            helper,
            shape: message::shape(lanes.place, elem.bytes(), rows, count),
            index: match lanes.place & !message::MARKS {
                message::REGS => self.i32(self.f.regs_bytes).into(),
                _ => lanes.surface,
            },
            enabled: self.mask_bits(mask, lanes.count)?,
            block,
            data: start,
            row,
        })
    }

    /// The function's slot for messages, as large as the largest.
    pub(super) fn message_block(&mut self) -> EmitResult<PointerValue<'c>> {
        let block = self.hoisted(Key::Message, |e| Ok(e.slot(message_bytes(e.f))?.into()))?;
        self.as_ptr(block)
    }

    /// Calls the runtime; returns the lanes that fault.
    fn send(&mut self, call: MessageCall<'c>) -> EmitResult<V<'c>> {
        let args = [
            self.group().into(),
            self.thread()?.into(),
            self.i32(call.shape).into(),
            call.index,
            call.enabled,
            call.block.into(),
        ];
        self.call_helper(call.helper, Some(32), &args)?
            .ok_or_else(|| InternalError::from("no answer to a message"))
    }

    /// Calls the runtime for something that changes memory: after faults were reported, when it goes on then.
    pub(super) fn send_or_report(
        &mut self,
        mut call: MessageCall<'c>,
        lanes: &Lanes<'c>,
        space: Space,
        site: u32,
    ) -> EmitResult<()> {
        if !self.records_faults(space) {
            return self.send(call).map(|_| ());
        }
        call.shape |= message::ALL_OR_NONE;
        let faulting = self.send(call)?;
        call.shape &= !message::ALL_OR_NONE;
        let place = (self.addresses(lanes)?, lanes.count, lanes.surface);
        self.report(place, faulting, site, |e| e.send(call).map(|_| ()))
    }

    /// A vector of a message that the runtime has answered.
    pub(super) fn message_row(&mut self, call: MessageCall<'c>, row: u32) -> EmitResult<V<'c>> {
        let at = i64::from(call.data + row * padded(call.row));
        let from = self.offset_const(call.block, at)?;
        self.load_value(call.row, from)
    }

    fn load_scalar(&mut self, access: MemAccess, lanes: &Lanes<'c>) -> EmitResult<Vec<V<'c>>> {
        let elem = access.elem;
        let offset = self.offsets(lanes)?;
        self.check_scalar(access, lanes, offset)?;
        (0..u32::from(access.comps))
            .map(|c| {
                let (at, inside) = self.component(lanes, offset, elem, c)?;
                let guard = self.guard(lanes, inside)?;
                let base = self.safe_base(lanes.region, elem.bytes())?;
                let safe = self.select(guard, at, self.i64(0))?;
                let pointer = self.offset(base, self.as_int(safe)?)?;
                let ty = self.type_of(Ty::scalar(elem));
                let v = self.load(ty, pointer)?;
                self.select(guard, v, ty.const_zero())
            })
            .collect()
    }

    fn store_scalar(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        data: &[V<'c>],
    ) -> EmitResult<()> {
        let offset = self.offsets(lanes)?;
        self.check_scalar(access, lanes, offset)?;
        for (c, &v) in data.iter().enumerate() {
            let (at, inside) = self.component(lanes, offset, access.elem, c as u32)?;
            let guard = self.guard(lanes, inside)?;
            let sink = self.sink()?;
            let base = self.base(lanes.region)?;
            let pointer = self.offset(base, self.as_int(at)?)?;
            let pointer = self.select(guard, pointer, sink)?;
            let pointer = self.as_ptr(pointer)?;
            self.store(v, pointer)?;
        }
        Ok(())
    }

    /// Reports a scalar access of which any component is outside.
    fn check_scalar(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        offset: V<'c>,
    ) -> EmitResult<()> {
        if !self.records_faults(access.space) {
            return Ok(());
        }
        let mut every: V = self.cx.bool_type().const_all_ones().into();
        for c in 0..u32::from(access.comps) {
            let (_, inside) = self.component(lanes, offset, access.elem, c)?;
            every = self.op2(I::And, every, inside)?;
        }
        let outside = self.op2(I::Xor, every, self.cx.bool_type().const_all_ones())?;
        let enabled = self.get(lanes.mask)?;
        let faulting = self.op2(I::And, outside, enabled)?;
        let faulting = self.resize(faulting, 32)?;
        let place = (self.addresses(lanes)?, lanes.count, lanes.surface);
        self.report(place, faulting, access.site, |_| Ok(()))
    }
}
