//! Lane-wise loads, stores and atomics for addresses of any shape.
//!
//! Scalars are inline. Vectors of 4- and 8-byte elements are gathers and scatters with a mask where the processor has
//! them and faults are not recorded; everything else, and all atomics, is one call of the runtime a message.

use std::mem::offset_of;

use inkwell::IntPredicate;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{InstructionOpcode as I, PointerValue};
use visa_runtime::abi::{Helpers, message};

use super::context::Key;
use super::emit::{Emit, EmitResult, InternalError, V};
use super::image::image_bytes;
use super::memory::{Lanes, Region};
use super::race;
use super::rectangle::rectangle_bytes;
use super::types::{lanes_of, padded_lanes};
use crate::backend::access::{Any, How};
use crate::ssa::{Function, Inst, Lane, MemAccess, Op, Space, Ty, Value};

/// Lanes that are gathered at a time: twice as many take a little more than twice as long.
const GATHERED: u16 = 8;

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
pub(super) struct Call<'c> {
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

impl<'c> Emit<'c, '_> {
    /// A load or store that shares no test with others.
    pub fn access_alone(&mut self, inst: Inst, how: &How) -> EmitResult<()> {
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
                self.load_speculative(access, &lanes, alone.other)?
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
                self.store_speculative(access, &lanes, &data, alone.other)
            }
            How::Affine(alone) => self.store_strided(access, &lanes, &data, (inst, alone)),
        }
    }

    /// Load from addresses of unknown shape.
    pub fn load_any(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        any: Any,
    ) -> EmitResult<Vec<V<'c>>> {
        match any {
            Any::Scalar => return self.load_scalar(access, lanes),
            Any::Gather => {
                let offsets = self.offsets(lanes)?;
                return self.gather_each(access, lanes, offsets);
            }
            Any::GatherPairs => return self.gather_pairs(access, lanes),
            Any::Inline { .. } => return Ok(vec![self.load_inline(access, lanes)?]),
            Any::Vec4 | Any::Message | Any::RareMessage => {}
        }
        let (elem, comps) = (access.elem, u32::from(access.comps));
        let helper = offset_of!(Helpers, load);
        let call = self.message(helper, lanes, elem, comps, &[])?;
        let faulting = self.send(call)?;
        if self.records_faults(access.space) {
            let place = (lanes.addr, lanes.count, lanes.surface);
            self.report(place, faulting, access.site, |_| Ok(()))?;
        }
        (0..comps).map(|row| self.message_row(call, row)).collect()
    }

    /// Store to addresses of unknown shape.
    pub fn store_any(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        data: &[V<'c>],
        any: Any,
    ) -> EmitResult<()> {
        match (any, data) {
            (Any::Scalar, data) => return self.store_scalar(access, lanes, data),
            (Any::Gather, &[v]) => return self.scatter(access, lanes, v),
            (Any::Inline { .. }, &[v]) => return self.store_inline(access, lanes, v),
            _ => {}
        }
        let helper = offset_of!(Helpers, store);
        let rows = data.len() as u32;
        let call = self.message(helper, lanes, access.elem, rows, data)?;
        self.send_or_report(call, lanes, access.space, access.site)
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

    /// Pointers to offsets in a region. Those of 32 bits stay so wide, which is twice as many at a time: processors take them for
    /// signed, so they count from the middle of what they reach.
    fn pointers(&mut self, region: Region<'c>, offsets: V<'c>) -> EmitResult<V<'c>> {
        let base = self.base(region)?;
        let index = self.as_vector(offsets)?;
        let lanes = index.get_type().get_size() as u16; // a power of two
        if index.get_type() == self.int(64).vec_type(u32::from(lanes)) {
            return Ok(self.offsets_from(base, index));
        }
        let middle = self.middle(region, base)?;
        let half = self.splat(self.i32(1 << 31).into(), lanes)?;
        let index = self.op2(I::Xor, index, half)?;
        Ok(self.offsets_from(middle, self.as_vector(index)?))
    }

    /// What is 2 GiB after the base.
    fn middle(
        &mut self,
        region: Region<'c>,
        base: PointerValue<'c>,
    ) -> EmitResult<PointerValue<'c>> {
        let make = |e: &mut Self| e.offset_const(base, 1 << 31).map(V::from);
        let middle = self.placed(region, Key::Middle, make)?;
        self.as_ptr(middle)
    }

    /// Gathers components one after the other.
    fn gather_each(
        &mut self,
        access: MemAccess,
        lanes: &Lanes<'c>,
        offsets: V<'c>,
    ) -> EmitResult<Vec<V<'c>>> {
        (0..u32::from(access.comps))
            .map(|c| {
                let (at, inside) = self.component_at(lanes, offsets, access.elem, c)?;
                let mask = self.guard(lanes, inside)?;
                self.gather_lanes(access.elem, lanes, at, mask)
            })
            .collect()
    }

    /// Gathers components of 4 bytes, two at a time, but for when the end of the region is between two of them.
    fn gather_pairs(&mut self, access: MemAccess, lanes: &Lanes<'c>) -> EmitResult<Vec<V<'c>>> {
        let offsets = self.offsets(lanes)?;
        let (mut places, mut cut): (Vec<(V<'c>, V<'c>)>, Option<V<'c>>) = (Vec::new(), None);
        for c in (0..u32::from(access.comps)).step_by(2) {
            let (at, first) = self.component_at(lanes, offsets, access.elem, c)?;
            let (_, second) = self.component_at(lanes, offsets, access.elem, c + 1)?;
            let both = self.op2(I::And, first, second)?;
            places.push((at, self.guard(lanes, both)?));
            let one = self.op2(I::Xor, first, second)?;
            let one = self.guard(lanes, one)?;
            cut = Some(match cut {
                Some(cut) => self.op2(I::Or, cut, one)?,
                None => one,
            });
        }
        let cut = cut.ok_or("a gather of nothing")?;
        let cut = self.mask_bits(cut, lanes.count)?;
        let whole = self.icmp(IntPredicate::EQ, cut, self.i32(0))?;
        let (fast, other, done) = self.two_ways(whole)?;
        self.at(fast);
        let mut a = Vec::new();
        for (at, mask) in places {
            let pairs = self.gather_one(Lane::I64, (lanes.region, lanes.count), at, mask)?;
            let words = 2 * u32::from(padded_lanes(lanes.count));
            let all = self.cast_bits(pairs, self.int(32).vec_type(words).into())?;
            for half in 0..2 {
                let of: Vec<_> = (half..words).step_by(2).map(Some).collect();
                a.push(self.shuffle(all, None, &of)?);
            }
        }
        let fast = self.here()?;
        self.jump(done)?;
        self.at(other);
        let b = self.gather_each(access, lanes, offsets)?;
        let other = self.here()?;
        self.jump(done)?;
        self.at(done);
        let ways = a.into_iter().zip(b);
        ways.map(|(a, b)| {
            let phi = self.b.build_phi(a.get_type(), "\0")?;
            phi.add_incoming(&[(&a, fast), (&b, other)]);
            Ok(phi.as_basic_value())
        })
        .collect()
    }

    /// Gathers one component, in steps of the number of lanes that is fastest.
    pub fn gather_lanes(
        &mut self,
        elem: Lane,
        lanes: &Lanes<'c>,
        at: V<'c>,
        mask: V<'c>,
    ) -> EmitResult<V<'c>> {
        let count = lanes.count;
        if elem.bytes() < 4 {
            return self.gather_narrow(elem, lanes, at, mask);
        }
        if count <= GATHERED || elem.bytes() > 4 {
            return self.gather_one(elem, (lanes.region, count), at, mask);
        }
        let mut parts = Vec::new();
        for first in (0..count).step_by(usize::from(GATHERED)) {
            let part: Vec<_> = (first..first + GATHERED)
                .map(|i| Some(u32::from(i)))
                .collect();
            let (at, mask) = (
                self.shuffle(at, None, &part)?,
                self.shuffle(mask, None, &part)?,
            );
            parts.push(self.gather_one(elem, (lanes.region, GATHERED), at, mask)?);
        }
        self.end_to_end(parts, GATHERED)
    }

    /// Gathers elements of one or two bytes: words of 4 bytes that have them. A word that begins at a multiple of 4 can be read
    /// wherever one of its bytes can, whatever region the others belong to, as no page ends inside of it. An element of two bytes may
    /// belong to two words. The word that begins a byte before it ends inside of the second.
    fn gather_narrow(
        &mut self,
        elem: Lane,
        lanes: &Lanes<'c>,
        at: V<'c>,
        mask: V<'c>,
    ) -> EmitResult<V<'c>> {
        let count = lanes.count;
        let base = self.base(lanes.region)?;
        let base = self.cast(I::PtrToInt, base, self.int(64).into())?;
        let base = self.splat(base, count)?;
        let at = self.op2(I::Add, self.resize(at, 64)?, base)?;
        let three = self.konst(Ty::vector(Lane::I64, count), 3)?;
        let mut before = self.op2(I::And, at, three)?;
        if elem.bytes() == 2 {
            let split = self.icmp(IntPredicate::EQ, before, three)?;
            let one = self.konst(Ty::vector(Lane::I64, count), 1)?;
            before = self.select(split, one, before)?;
        }
        let from = self.op2(I::Sub, at, before)?;
        let words = self.gather_words(count, from, mask)?;
        let bits = self.op2(I::Shl, before, three)?;
        let words = self.op2(I::LShr, words, self.resize(bits, 32)?)?;
        self.resize(words, elem.bits())
    }

    /// Gathers words of 4 bytes from addresses of the process.
    fn gather_words(&mut self, count: u16, from: V<'c>, mask: V<'c>) -> EmitResult<V<'c>> {
        let step = GATHERED.min(count);
        let ty = self.type_of(Ty::vector(Lane::I32, step));
        let pointers = lanes_of(self.ptr_type(), step);
        let mut parts = Vec::new();
        for first in (0..count).step_by(usize::from(step)) {
            let part: Vec<_> = (first..first + step).map(|i| Some(u32::from(i))).collect();
            let from = self.shuffle(from, None, &part)?;
            let from = self.cast(I::IntToPtr, from, pointers)?;
            let mask = self.shuffle(mask, None, &part)?;
            let callee = self.declare("llvm.masked.gather", &[ty, pointers])?;
            let v = self.call_masked(callee, &[from], &[mask, ty.const_zero()])?;
            parts.push(v.ok_or_else(|| InternalError::from("a gather without a result"))?);
        }
        self.end_to_end(parts, step)
    }

    fn gather_one(
        &mut self,
        elem: Lane,
        (region, lanes): (Region<'c>, u16),
        at: V<'c>,
        mask: V<'c>,
    ) -> EmitResult<V<'c>> {
        let ty = self.type_of(Ty::vector(elem, lanes));
        let from = self.pointers(region, at)?;
        let callee = self.declare("llvm.masked.gather", &[ty, from.get_type()])?;
        let v = self.call_masked(callee, &[from], &[mask, ty.const_zero()])?;
        v.ok_or_else(|| InternalError::from("a gather without a result"))
    }

    fn scatter(&mut self, access: MemAccess, lanes: &Lanes<'c>, data: V<'c>) -> EmitResult<()> {
        let offsets = self.offsets(lanes)?;
        let (at, inside) = self.component_at(lanes, offsets, access.elem, 0)?;
        let mask = self.guard(lanes, inside)?;
        let to = self.pointers(lanes.region, at)?;
        let types: [BasicTypeEnum; 2] = [data.get_type(), to.get_type()];
        let callee = self.declare("llvm.masked.scatter", &types)?;
        self.call_masked(callee, &[data, to], &[mask])?;
        Ok(())
    }

    /// Writes a message's addresses and data, `rows` vectors of which `data` are the first.
    pub fn message(
        &mut self,
        helper: usize,
        lanes: &Lanes<'c>,
        elem: Lane,
        rows: u32,
        data: &[V<'c>],
    ) -> EmitResult<Call<'c>> {
        let row = Ty::vector(elem, lanes.count);
        let addresses = Ty::vector(lanes.addr_lane(), lanes.count);
        let start = padded(addresses);
        let block = self.message_block()?;
        self.store_value(lanes.addr, addresses, block)?;
        for (i, &v) in data.iter().enumerate() {
            let at = start + padded(row) * i as u32;
            let at = self.offset_const(block, i64::from(at))?;
            self.store_value(v, row, at)?;
        }
        let mask = self.get(lanes.mask)?;
        let count = u32::from(lanes.count);
        Ok(Call {
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
    pub fn message_block(&mut self) -> EmitResult<PointerValue<'c>> {
        let block = self.hoisted(Key::Message, |e| Ok(e.slot(message_bytes(e.f))?.into()))?;
        self.as_ptr(block)
    }

    /// Calls the runtime; returns the lanes that fault.
    fn send(&mut self, call: Call<'c>) -> EmitResult<V<'c>> {
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
    pub fn send_or_report(
        &mut self,
        mut call: Call<'c>,
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
        let place = (lanes.addr, lanes.count, lanes.surface);
        self.report(place, faulting, site, |e| e.send(call).map(|_| ()))
    }

    /// A vector of a message that the runtime has answered.
    pub fn message_row(&mut self, call: Call<'c>, row: u32) -> EmitResult<V<'c>> {
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
        let place = (lanes.addr, lanes.count, lanes.surface);
        self.report(place, faulting, access.site, |_| Ok(()))
    }
}
