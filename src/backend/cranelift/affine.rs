//! Fast paths of affine accesses: lane `i` accesses `base + i * stride`.
//!
//! Shapes come from the function's table, or from `local_shape` where it has none.
//! One test decides for all lanes: the shape holds, and all bytes between the lowest and the highest
//! lane are inside. Packed lanes are then a few vector loads or stores, a stride of zero is one scalar
//! load. Stores need a full mask. Loads do not: reading disabled lanes that are inside has no effect.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Value as V, types};
use visa_runtime::abi::Helpers;

use super::emit::{DATA, Emit};
use super::memory::{Lanes, Place, Region};
use super::message::Way;
use super::value::{piece_count, piece_type, scalar_type};
use crate::backend::access::{self, Kind, Strided};
use crate::ssa::remark::{Bounds, Decision, Why};
use crate::ssa::{Inst, Lane, MemAccess, Op, Space, Ty, Value};

/// Addresses of lanes as Cranelift values.
pub(super) type Affine = access::Affine<V>;

impl Affine {
    /// How an access is done where the condition does not hold.
    fn other_way(&self) -> Way {
        match self.speculative {
            true => Way::Only,
            false => Way::Other,
        }
    }
}

impl Emit<'_> {
    /// Shape of a vector of addresses.
    fn affine(&mut self, addr: Value, inst: Inst) -> Option<Affine> {
        if self.ty(addr).is_scalar() {
            return None;
        }
        if let Some(shape) = self.shape_of(inst) {
            return Some(shape);
        }
        let shape = self.f.shapes.get(&inst).copied().unwrap_or_default();
        let mask_all = shape.mask_all.map(|v| self.scalar(v));
        let found = self.local_shape(addr, mask_all)?;
        let decision = Decision::Addresses {
            stride: Some(found.stride),
            why: found.guard.map_or(Why::Proven, |_| Why::TestedIds),
        };
        self.remark(inst, decision);
        Some(found)
    }

    /// Shape of an access in the function's table.
    pub fn shape_of(&mut self, inst: Inst) -> Option<Affine> {
        let shape = self.f.shapes.get(&inst)?;
        let addr = shape.addr?;
        // Only stores ask whether all lanes are enabled; for a load the condition may not be there yet.
        let store = matches!(self.f.inst(inst).op, Op::Store(_));
        Some(Affine {
            base: self.scalar(addr.base),
            known: self.scalar_const(addr.base),
            stride: addr.stride,
            guard: addr.guard.map(|v| self.scalar(v)),
            mask_all: shape.mask_all.filter(|_| store).map(|v| self.scalar(v)),
            speculative: false,
        })
    }

    fn remark_strided(&mut self, inst: Inst, lanes: u16, strided: Strided, inside: bool) {
        let bounds = if inside {
            Bounds::Removed
        } else {
            Bounds::Tested
        };
        self.remark_access(inst, strided.way(lanes), bounds);
    }

    /// Load through one address; `None` where no shape is known that helps.
    pub fn load_affine(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        addr: Value,
        inst: Inst,
    ) -> Option<Vec<Vec<V>>> {
        let shape = self.affine(addr, inst);
        let shape = shape.or_else(|| self.speculate(access, lanes, inst))?;
        let strided = Strided::new(access, lanes.count, shape.stride, true)?;
        let inside = self.strided_is_inside(access.space, shape, strided);
        self.remark_strided(inst, lanes.count, strided, inside);
        if inside {
            return Some(self.load_strided(access, lanes, shape, strided, inst));
        }
        let ok = self.strided_inside((lanes.flat, lanes.region), shape, strided);
        let (fast, other, done) = self.two_ways(ok, shape.guard.is_none());
        let ty = Ty::vector(access.elem, lanes.count);
        let results: Vec<Vec<V>> = (0..access.comps)
            .map(|_| {
                (0..piece_count(ty))
                    .map(|_| self.func.dfg.append_block_param(done, piece_type(ty.lane)))
                    .collect()
            })
            .collect();
        let off = std::mem::replace(&mut self.cache.off, true);
        self.block = fast;
        let parts = self.load_strided(access, lanes, shape, strided, inst);
        self.jump(done, &parts.concat());
        self.block = other;
        let parts = self.load_any(access, lanes, shape.other_way());
        self.jump(done, &parts.concat());
        self.cache.off = off;
        self.block = done;
        Some(results)
    }

    /// A load whose bytes are known to be inside.
    fn load_strided(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        shape: Affine,
        strided: Strided,
        inst: Inst,
    ) -> Vec<Vec<V>> {
        let pointer = self.pointer_of_run(lanes, shape.base, inst);
        let parts = match strided.kind {
            Kind::Same => self.load_broadcast(access, lanes.count, pointer),
            Kind::Packed => self.load_packed(access, lanes.count, pointer),
            Kind::Spread => {
                let pointers = self.spread_pointers(lanes.count, pointer, strided.stride);
                self.load_from(access.elem, access.comps, &pointers)
            }
        };
        if self.f.inactive_undef.contains(&inst) || self.is_full(lanes.mask) {
            parts
        } else {
            self.clear_disabled(access, lanes, parts)
        }
    }

    /// Store through one address; false where no shape is known that helps.
    pub fn store_affine(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        addr: Value,
        data: &[Vec<V>],
        inst: Inst,
    ) -> bool {
        let shape = self.affine(addr, inst);
        let Some(shape) = shape.or_else(|| self.speculate(access, lanes, inst)) else {
            return false;
        };
        let strided = Strided::new(access, lanes.count, shape.stride, false);
        let Some(strided) = strided.filter(|strided| strided.kind != Kind::Same) else {
            return false;
        };
        let every = self.is_const_full(lanes.mask);
        let inside = every && self.strided_is_inside(access.space, shape, strided);
        self.remark_strided(inst, lanes.count, strided, inside);
        if inside {
            self.store_strided(access, lanes, (shape, strided), data, inst);
            return true;
        }
        let mut ok = self.strided_inside((lanes.flat, lanes.region), shape, strided);
        if let (false, Some(all)) = (every, shape.mask_all) {
            ok = self.ins().band(ok, all);
        }
        self.compute_here(data.iter().flatten().copied());
        let usual = every || shape.mask_all.is_none();
        let (fast, other, done) = self.two_ways(ok, usual && shape.guard.is_none());
        let off = std::mem::replace(&mut self.cache.off, true);
        self.block = fast;
        if usual && !every {
            self.store_enabled(access, lanes, (shape, strided), data, inst);
        } else {
            self.store_strided(access, lanes, (shape, strided), data, inst);
        }
        self.jump(done, &[]);
        self.block = other;
        self.store_any(access, lanes, data, shape.other_way());
        self.jump(done, &[]);
        self.cache.off = off;
        self.block = done;
        true
    }

    /// A store of all lanes whose bytes are known to be inside.
    fn store_strided(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        (shape, strided): (Affine, Strided),
        data: &[Vec<V>],
        inst: Inst,
    ) {
        let pointer = self.pointer_of_run(lanes, shape.base, inst);
        if strided.kind == Kind::Packed {
            return self.store_packed(access, lanes.count, pointer, data);
        }
        let pointers = self.spread_pointers(lanes.count, pointer, strided.stride);
        self.store_to(access, lanes.count, data, |_, i| pointers[i]);
    }

    /// Uses values. The code generator puts computations where they are used, and where that is several blocks of which none
    /// comes before the others, in each of them: all that leads to a store would be there once for every way to store.
    pub fn compute_here(&mut self, pieces: impl Iterator<Item = V>) {
        let dfg = &self.func.dfg;
        let computed = |v: &V| match dfg.value_def(*v) {
            ir::ValueDef::Result(inst, _) => !dfg.insts[inst].opcode().can_load(),
            _ => false,
        };
        let pieces: Vec<V> = pieces.filter(computed).collect();
        if pieces.is_empty() {
            return;
        }
        let block = self.message_block(16 * pieces.len() as u32);
        let to = self.slot_addr(block, 0);
        for (i, v) in pieces.into_iter().enumerate() {
            self.ins().store(DATA, v, to, 16 * i as i32);
        }
    }

    /// A store whose bytes are known to be inside, of lanes that may be any: what is not enabled goes to the sink.
    fn store_enabled(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        (shape, strided): (Affine, Strided),
        data: &[Vec<V>],
        inst: Inst,
    ) {
        let all = self.mask_test(lanes.mask, true);
        let bits = self.mask_bits(lanes.mask);
        let pointer = self.pointer_of_run(lanes, shape.base, inst);
        let (fast, other, done) = self.two_ways(all, false);
        let off = std::mem::replace(&mut self.cache.off, true);
        self.block = fast;
        self.store_strided(access, lanes, (shape, strided), data, inst);
        self.jump(done, &[]);
        self.block = other;
        match data {
            [data] if self.stores_masked(access, strided) => self.store_masked(pointer, bits, data),
            _ => {
                let sink = self.sink();
                self.store_to(access, lanes.count, data, |e, i| {
                    let enabled = e.ins().band_imm_u(bits, 1 << i);
                    let to = e.ins().iadd_imm_s(pointer, i as i64 * strided.stride);
                    e.ins().select(enabled, to, sink)
                });
            }
        }
        self.jump(done, &[]);
        self.cache.off = off;
        self.block = done;
    }

    /// True where the runtime has an instruction for a store of some lanes.
    fn stores_masked(&self, access: MemAccess, strided: Strided) -> bool {
        let there = self.target.masked_stores && self.keeps_registers();
        there && strided.kind == Kind::Packed && access.elem == Lane::I32
    }

    /// Dwords one after the other, those whose bits are set.
    fn store_masked(&mut self, pointer: V, bits: V, data: &[V]) {
        for (k, pieces) in data.chunks(4).enumerate() {
            let (mut to, mut enabled) = (pointer, bits);
            if k > 0 {
                to = self.ins().iadd_imm_s(pointer, 64 * k as i64);
                enabled = self.ins().ushr_imm_u(bits, 16 * k as i64);
            }
            let mut args = vec![to, enabled];
            // What is missing has no bits.
            args.extend((0..4).map(|i| pieces[i.min(pieces.len() - 1)]));
            self.call_preserve_all(offset_of!(Helpers, store_enabled), &args);
        }
    }

    /// True for stores of which nothing but the mask itself says whether all lanes are enabled: if all are is then no
    /// condition of the usual path.
    pub fn stores_any_lanes(&self, inst: Inst) -> bool {
        let (data, shape) = (self.f.inst(inst), self.f.shapes.get(&inst));
        matches!(data.op, Op::Store(_))
            && shape.is_some_and(|s| s.mask_all.is_none())
            && !self.is_const_full(data.args[0])
    }

    /// True for accesses that one test can decide, by what the function's table says of them.
    pub fn has_run(&self, inst: Inst) -> bool {
        let (data, shape) = (self.f.inst(inst), self.f.shapes.get(&inst));
        let Some(addr) = shape.and_then(|s| s.addr) else {
            return false;
        };
        let strided =
            |access, load| Strided::new(access, self.ty(data.args[1]).lanes, addr.stride, load);
        match &data.op {
            Op::Load(access) => strided(*access, true).is_some(),
            Op::Store(access) => strided(*access, false).is_some_and(|r| r.kind != Kind::Same),
            _ => false,
        }
    }

    /// Conditions, apart from the bounds, under which a fast version may do the access: its lanes are even, and of a
    /// store all are enabled, where that is known without the mask. What they are made of must have been translated.
    pub fn run_conditions(&mut self, inst: Inst) -> [Option<V>; 2] {
        let data = self.f.inst(inst);
        let Some(shape) = self.shape_of(inst) else {
            return [None, None];
        };
        let every = self.is_const_full(data.args[0]);
        [shape.guard, shape.mask_all.filter(|_| !every)]
    }

    /// Does an access in the fast version.
    pub fn run_access(&mut self, inst: Inst) {
        let f = self.f;
        let data = f.inst(inst);
        self.set_line(data.line);
        let Some(shape) = self.shape_of(inst) else {
            return self.bug("an access without a shape in a fast version");
        };
        match &data.op {
            Op::Load(access) => {
                let lanes = self.lanes_of_run(access.space, &data.args);
                if let Some(strided) = Strided::new(*access, lanes.count, shape.stride, true) {
                    let results = self.load_strided(*access, &lanes, shape, strided, inst);
                    for (&v, parts) in data.results.iter().zip(results) {
                        self.bind(v, parts);
                    }
                }
            }
            Op::Store(access) => {
                let lanes = self.lanes_of_run(access.space, &data.args);
                let values = Self::data_args(access.space, &data.args).iter();
                let values: Vec<Vec<V>> = values.map(|&v| self.parts(v)).collect();
                match Strided::new(*access, lanes.count, shape.stride, false) {
                    Some(strided) if self.stores_any_lanes(inst) => {
                        self.store_enabled(*access, &lanes, (shape, strided), &values, inst);
                    }
                    Some(strided) => {
                        self.store_strided(*access, &lanes, (shape, strided), &values, inst)
                    }
                    None => {}
                }
            }
            _ => self.bug("no access"),
        }
    }

    /// A block for when `ok`, one for when not, which is cold if that is rare, and one that comes after both.
    fn two_ways(&mut self, ok: V, rarely: bool) -> (ir::Block, ir::Block, ir::Block) {
        let fast = self.new_block();
        let other = if rarely {
            self.new_cold_block()
        } else {
            self.new_block()
        };
        let done = self.new_block();
        self.branch(ok, fast, other);
        (fast, other, done)
    }

    /// A run whose place is known while compiling.
    fn strided_is_inside(&self, space: Space, shape: Affine, strided: Strided) -> bool {
        space == Space::Regs && shape.guard.is_none() && self.in_registers(shape.known, strided)
    }

    /// The same for a run by its address in the function.
    pub fn surely_inside(
        &self,
        space: Space,
        guarded: bool,
        base: Value,
        strided: Strided,
    ) -> bool {
        space == Space::Regs && !guarded && self.in_registers(self.scalar_const(base), strided)
    }

    fn in_registers(&self, known: Option<u64>, strided: Strided) -> bool {
        known.is_some_and(|at| strided.lies_in(at, self.f.regs_bytes))
    }

    fn strided_inside(
        &mut self,
        (flat, region): (bool, Region),
        shape: Affine,
        strided: Strided,
    ) -> V {
        let bytes = strided.bytes as u32;
        let mut base = shape.base;
        if strided.lowest != 0 {
            base = self.ins().iadd_imm_s(base, strided.lowest);
        }
        let (offset, limit) = if flat {
            (self.flat_offset(base), self.flat_limit(bytes))
        } else {
            (base, self.limit(region, bytes))
        };
        let inside = self.ins().icmp(IntCC::UnsignedLessThan, offset, limit);
        match shape.guard {
            Some(guard) => self.ins().band(inside, guard),
            None => inside,
        }
    }

    /// Pointers of all lanes, as offsets that addressing modes take.
    fn spread_pointers(&mut self, count: u16, pointer: V, stride: i64) -> Vec<V> {
        (0..i64::from(count))
            .map(|i| match i * stride {
                0 => pointer,
                distance => self.ins().iadd_imm_s(pointer, distance),
            })
            .collect()
    }

    /// Pointer to lane 0, which accesses that share a test have in common.
    fn pointer_of_run(&mut self, lanes: &Lanes, base: V, inst: Inst) -> V {
        let mut shared = self.lane0_pointers.iter();
        match shared.find(|(i, _)| *i == inst) {
            Some(&(_, pointer)) => pointer,
            None => self.run_pointer(lanes, base),
        }
    }

    fn run_pointer(&mut self, lanes: &Lanes, base: V) -> V {
        let region = if lanes.flat {
            Region::Known(Place::Flat)
        } else {
            lanes.region
        };
        let start = self.base(region);
        let offset = if lanes.flat {
            self.flat_offset(base)
        } else {
            self.ins().uextend(types::I64, base)
        };
        self.ins().iadd(start, offset)
    }

    fn load_broadcast(&mut self, access: MemAccess, count: u16, pointer: V) -> Vec<Vec<V>> {
        let ty = Ty::vector(access.elem, count);
        (0..i32::from(access.comps))
            .map(|c| {
                let at = c * access.elem.bytes().cast_signed();
                let v = self.ins().load(scalar_type(access.elem), DATA, pointer, at);
                let piece = self.ins().splat(piece_type(access.elem), v);
                vec![piece; piece_count(ty)]
            })
            .collect()
    }

    fn load_packed(&mut self, access: MemAccess, count: u16, pointer: V) -> Vec<Vec<V>> {
        let comps = u16::from(access.comps);
        let all = Ty::vector(access.elem, count * comps);
        let parts = self.load_value(pointer, 0, all, DATA);
        let ty = Ty::vector(access.elem, count);
        (0..comps)
            .map(|c| {
                let indices: Vec<u16> = (0..count).map(|i| i * comps + c).collect();
                self.take_lanes(ty, &parts, &indices)
            })
            .collect()
    }

    fn store_packed(&mut self, access: MemAccess, count: u16, pointer: V, data: &[Vec<V>]) {
        let comps = u16::from(access.comps);
        let all = Ty::vector(access.elem, count * comps);
        let padded = data[0].len() as u16 * super::value::per_piece(access.elem) as u16;
        let indices: Vec<u16> = (0..all.lanes)
            .map(|i| i % comps * padded + i / comps)
            .collect();
        let parts = self.take_lanes(all, &data.concat(), &indices);
        self.store_value(pointer, 0, all, &parts);
    }

    /// Zeroes the lanes of loaded components that are disabled.
    fn clear_disabled(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        parts: Vec<Vec<V>>,
    ) -> Vec<Vec<V>> {
        if self.is_const_full(lanes.mask) {
            return parts;
        }
        let mask = self.mask_vec(lanes.mask, access.elem.bytes());
        parts
            .into_iter()
            .map(|pieces| self.mask_pieces(&mask, pieces))
            .collect()
    }

    /// Lanes of pieces put end to end, by their numbers.
    fn take_lanes(&mut self, ty: Ty, pieces: &[V], indices: &[u16]) -> Vec<V> {
        let per = super::value::per_piece(ty.lane) as u16;
        let sources: Vec<(usize, u8)> = indices
            .iter()
            .map(|&i| (usize::from(i / per), (i % per) as u8))
            .collect();
        self.pieces_from(ty, pieces, &sources)
    }
}
