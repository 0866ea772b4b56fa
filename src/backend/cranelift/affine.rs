//! Fast paths of affine accesses: lane `i` accesses `base + i * stride`.
//!
//! One test decides for all lanes: it holds if the addresses are affine and all bytes between the lowest and the highest lane are
//! inside. Packed lanes are then a few vector loads or stores, and a stride of zero is one scalar load. Stores need a full mask.
//! Loads do not, because reading disabled lanes that are inside has no effect.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Value as V, types};
use visa_runtime::abi::Helpers;

use super::emit::{CraneliftEmitter, DATA};
use super::memory::{Lanes, Region};
use super::value::{piece_count, piece_type, scalar_type};
use crate::backend::access::{self, Access, AffineAccess, By, Stored, Strided, StridedKind};
use crate::ssa::{Inst, Lane, MemAccess, Ty};

/// Addresses of lanes as Cranelift values.
pub(super) type Affine = access::Affine<V>;

impl CraneliftEmitter<'_> {
    /// Addresses of an access that the plan says are affine, or are tested for it.
    fn affine(
        &mut self,
        alone: &AffineAccess,
        access: MemAccess,
        lanes: &Lanes,
        inst: Inst,
    ) -> Affine {
        match &alone.by {
            By::Table => self.shape_of(inst),
            By::Local(sum) => self.local_shape(self.f.inst(inst).args[1], sum),
            By::Speculation(scaled) => self.speculate(access.elem.bytes(), lanes, scaled.as_ref()),
        }
    }

    /// How addresses are spaced that the function's table knows.
    pub(super) fn shape_of(&mut self, inst: Inst) -> Affine {
        let Some(addr) = self.f.shapes.get(&inst).and_then(|shape| shape.addr) else {
            self.bug("an access without a shape");
            return Affine {
                base: self.iconst(types::I32, 0),
                guard: None,
            };
        };
        Affine {
            base: self.scalar(addr.base),
            guard: addr.guard.map(|v| self.scalar(v)),
        }
    }

    /// Load through one address.
    pub(super) fn load_affine(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        inst: Inst,
        alone: &AffineAccess,
    ) -> Vec<Vec<V>> {
        let shape = self.affine(alone, access, lanes, inst);
        let strided = alone.strided;
        if alone.is_certain() {
            return self.load_strided(access, lanes, shape.base, strided, inst);
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
        self.side(fast, |e| {
            let parts = e.load_strided(access, lanes, shape.base, strided, inst);
            e.jump(done, &parts.concat());
        });
        self.side(other, |e| {
            let parts = e.load_any(access, lanes, alone.other);
            e.jump(done, &parts.concat());
        });
        self.block = done;
        results
    }

    /// A load whose bytes are known to be inside.
    fn load_strided(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        base: V,
        strided: Strided,
        inst: Inst,
    ) -> Vec<Vec<V>> {
        let pointer = self.pointer_of_run(lanes, base, inst);
        let parts = match strided.kind {
            StridedKind::Same => self.load_broadcast(access, lanes.count, pointer),
            StridedKind::Packed => self.load_packed(access, lanes.count, pointer),
            StridedKind::Run => self.load_run(access, lanes.count, pointer, strided),
            StridedKind::Overlap => {
                let step = strided.stride as u32; // less than an element
                vec![self.load_overlapping((access.elem, lanes.count), pointer, 0, step)]
            }
            StridedKind::Spread => {
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

    /// Store through one address.
    pub(super) fn store_affine(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        data: &[Vec<V>],
        (inst, alone): (Inst, &AffineAccess),
    ) {
        let shape = self.affine(alone, access, lanes, inst);
        let to = (shape.base, alone.strided);
        if alone.is_certain() {
            return self.store_strided(access, lanes, to, data, inst);
        }
        let mut ok = self.strided_inside((lanes.flat, lanes.region), shape, alone.strided);
        if let Stored::Tested(all) = alone.stored {
            let all = self.scalar(all);
            ok = self.ins().band(ok, all);
        }
        self.compute_here(data.iter().flatten().copied());
        let usual = !matches!(alone.stored, Stored::Tested(_));
        let (fast, other, done) = self.two_ways(ok, usual && shape.guard.is_none());
        self.side(fast, |e| {
            match alone.stored {
                Stored::Enabled => e.store_enabled(access, lanes, to, data, inst),
                Stored::All | Stored::Tested(_) => e.store_strided(access, lanes, to, data, inst),
            }
            e.jump(done, &[]);
        });
        self.side(other, |e| {
            e.store_any(access, lanes, data, alone.other);
            e.jump(done, &[]);
        });
        self.block = done;
    }

    /// A store of all lanes whose bytes are known to be inside.
    fn store_strided(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        (base, strided): (V, Strided),
        data: &[Vec<V>],
        inst: Inst,
    ) {
        let pointer = self.pointer_of_run(lanes, base, inst);
        if strided.kind == StridedKind::Packed {
            return self.store_packed(access, lanes.count, pointer, data);
        }
        let pointers = self.spread_pointers(lanes.count, pointer, strided.stride);
        self.store_to(access, lanes.count, data, |_, i| pointers[i]);
    }

    /// Uses values. The code generator puts computations where they are used, and where that is several blocks of which none
    /// comes before the others, in each of them: all that leads to a store would be there once for every way to store.
    pub(super) fn compute_here(&mut self, pieces: impl Iterator<Item = V>) {
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
        (base, strided): (V, Strided),
        data: &[Vec<V>],
        inst: Inst,
    ) {
        let all = self.mask_test(lanes.mask, true);
        let bits = self.mask_bits(lanes.mask);
        let pointer = self.pointer_of_run(lanes, base, inst);
        let (fast, other, done) = self.two_ways(all, false);
        self.side(fast, |e| {
            e.store_strided(access, lanes, (base, strided), data, inst);
            e.jump(done, &[]);
        });
        self.side(other, |e| {
            match data {
                [data] if e.stores_masked(access, strided) => e.store_masked(pointer, bits, data),
                _ => {
                    let sink = e.sink();
                    e.store_to(access, lanes.count, data, |e, i| {
                        let enabled = e.ins().band_imm_u(bits, 1 << i);
                        let to = e.ins().iadd_imm_s(pointer, i as i64 * strided.stride);
                        e.ins().select(enabled, to, sink)
                    });
                }
            }
            e.jump(done, &[]);
        });
        self.block = done;
    }

    /// True where the runtime has an instruction for a store of some lanes.
    fn stores_masked(&self, access: MemAccess, strided: Strided) -> bool {
        let there = self.target.masked_stores && self.keeps_registers();
        there && strided.kind == StridedKind::Packed && access.elem == Lane::I32
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

    /// Does an access in the fast version.
    pub(super) fn access_inside(&mut self, a: &Access) {
        let f = self.f;
        let data = f.inst(a.inst);
        self.set_line(data.line);
        let (Some(strided), Some(addr)) = (a.strided, a.affine) else {
            return self.bug("an access without a shape in a fast version");
        };
        let base = self.scalar(addr.base);
        let lanes = self.affine_lanes(a.access.space, &data.args);
        if a.load {
            let results = self.load_strided(a.access, &lanes, base, strided, a.inst);
            for (&v, parts) in data.results.iter().zip(results) {
                self.bind(v, parts);
            }
            return;
        }
        let values = Self::data_args(a.access.space, &data.args).iter();
        let values: Vec<Vec<V>> = values.map(|&v| self.parts(v)).collect();
        let to = (base, strided);
        match a.enabled {
            true => self.store_enabled(a.access, &lanes, to, &values, a.inst),
            false => self.store_strided(a.access, &lanes, to, &values, a.inst),
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
        self.with_guard(inside, shape.guard)
    }

    /// A condition, and that under which addresses are affine, if there is one.
    pub(super) fn with_guard(&mut self, ok: V, guard: Option<V>) -> V {
        match guard {
            Some(guard) => self.ins().band(ok, guard),
            None => ok,
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
        match self.version.lane0(inst) {
            Some(pointer) => pointer,
            None => self.affine_pointer(lanes, base),
        }
    }

    fn affine_pointer(&mut self, lanes: &Lanes, base: V) -> V {
        let start = self.base(lanes.region);
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

    /// Lanes that are few elements from each other: vectors of all that lies between them, the last of which ends where they do.
    fn load_run(
        &mut self,
        access: MemAccess,
        count: u16,
        pointer: V,
        strided: Strided,
    ) -> Vec<Vec<V>> {
        let (elem, ty) = (access.elem, Ty::vector(access.elem, count));
        let bytes = elem.bytes();
        let comps = 0..u16::from(access.comps);
        let offset = |element: u16| strided.lowest as i32 + i32::from(element) * bytes as i32;
        if strided.stride == i64::from(bytes) {
            let one = |c| self.load_value(pointer, offset(c), ty, DATA);
            return comps.map(one).collect();
        }
        let per = super::value::per_piece(elem) as u16;
        let elements = strided.elements(bytes);
        let last = elements - per;
        let starts = (0..last).step_by(usize::from(per)).chain([last]);
        let pieces: Vec<V> = starts
            .map(|at| self.ins().load(piece_type(elem), DATA, pointer, offset(at)))
            .collect();
        comps
            .map(|c| {
                let source = |i| {
                    let at = strided.element(bytes, i, c);
                    match at / per {
                        n if usize::from(n) + 1 < pieces.len() => {
                            (usize::from(n), (at % per) as u8)
                        }
                        _ => (pieces.len() - 1, (at - last) as u8),
                    }
                };
                let sources: Vec<(usize, u8)> = (0..count).map(source).collect();
                self.pieces_from(ty, &pieces, &sources)
            })
            .collect()
    }

    /// Elements that share bytes, `step` bytes from each other: vectors of their first halves and of their second halves, which then
    /// alternate.
    fn load_overlapping(
        &mut self,
        (elem, count): (Lane, u16),
        pointer: V,
        at: u32,
        step: u32,
    ) -> Vec<V> {
        let bytes = elem.bytes();
        if bytes <= step {
            return self.load_value(pointer, at as i32, Ty::vector(elem, count), DATA);
        }
        let half = super::value::int_lane(bytes / 2);
        let mut pieces = self.load_overlapping((half, count), pointer, at, step);
        let second = pieces.len();
        pieces.extend(self.load_overlapping((half, count), pointer, at + bytes / 2, step));
        let per = super::value::per_piece(half);
        let source = |n: usize| {
            let (lane, part) = (n / 2, n % 2);
            (part * second + lane / per, (lane % per) as u8)
        };
        let sources: Vec<(usize, u8)> = (0..2 * usize::from(count)).map(source).collect();
        let halves = self.pieces_from(Ty::vector(half, 2 * count), &pieces, &sources);
        halves
            .into_iter()
            .map(|v| self.cast_piece(v, elem))
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
