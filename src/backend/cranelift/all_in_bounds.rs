//! Lane-wise accesses that first ask whether all lanes are inside, enabled or not.
//!
//! That pays in three places. Where a lane outside is a fault, which is rare, the code for the other case need not be fast. Under
//! a mask, the mask need not be combined with the test. In device memory, the exact test of a lane is longer.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{self, InstBuilder, Value as V, types};

use super::emit::CraneliftEmitter;
use super::lanes::{Offsets, Start};
use super::memory::{Lanes, Place, Region};
use super::scaled::Compare;
use super::value::{per_piece, piece_type};
use crate::backend::access::Any;
use crate::ssa::{Lane, MemAccess, Space};

impl CraneliftEmitter<'_> {
    /// A load of which all lanes are inside, or else one in another way.
    pub(super) fn load_all_in_bounds(&mut self, access: MemAccess, lanes: &Lanes) -> Vec<V> {
        let elem = access.elem;
        let (fast, other, done) = self.in_bounds_blocks(access.space);
        let offsets = self.branch_if_inside(elem, lanes, fast, other);
        let ty = piece_type(elem);
        let pieces = usize::from(lanes.count).div_ceil(per_piece(elem));
        let results = (0..pieces).map(|_| self.func.dfg.append_block_param(done, ty));
        let results: Vec<V> = results.collect();
        self.side(fast, |e| {
            let mut parts = e.load_pieces(elem, lanes, &offsets, None);
            if !e.is_const_full(lanes.mask) {
                let mask = e.mask_vec(lanes.mask, elem.bytes());
                parts = e.mask_pieces(&mask, parts);
            }
            e.jump(done, &parts);
        });
        self.side(other, |e| {
            let parts = match e.records_faults(access.space) {
                true => e.load_any(access, lanes, Any::RareMessage).concat(),
                false => e.load_each(access, lanes),
            };
            e.jump(done, &parts);
        });
        self.block = done;
        results
    }

    /// An array-of-structs load whose lanes are all inside, each as a vector, or else one by the runtime.
    pub(super) fn load_vec4(&mut self, access: MemAccess, lanes: &Lanes) -> Vec<Vec<V>> {
        let (elem, comps) = (access.elem, access.comps);
        let (fast, other, done) = self.in_bounds_blocks(access.space);
        let bytes = elem.bytes() * u32::from(comps);
        let outside = self.outside_limit(bytes, lanes, &lanes.addr);
        let any = self.pieces_test(&outside, false);
        self.branch(any, other, fast);
        let rows = self.side(fast, |e| {
            let start = Some((e.base(lanes.region), 0));
            let count = usize::from(lanes.count);
            let pointers: Vec<V> = (0..count)
                .map(|i| e.pointer_to_lane(start, lanes.addr_lane(), &lanes.addr, i))
                .collect();
            let mut rows = e.load_from(elem, comps, &pointers);
            if !e.is_const_full(lanes.mask) {
                let mask = e.mask_vec(lanes.mask, elem.bytes());
                for parts in &mut rows {
                    *parts = e.mask_pieces(&mask, std::mem::take(parts));
                }
            }
            e.jump(done, &rows.concat());
            rows
        });
        self.side(other, |e| {
            let others = e.load_any(access, lanes, Any::RareMessage);
            e.jump(done, &others.concat());
        });
        self.block = done;
        let ty = piece_type(elem);
        let param = |_: &V| self.func.dfg.append_block_param(done, ty);
        let all: Vec<V> = rows.concat().iter().map(param).collect();
        all.chunks(rows[0].len()).map(<[V]>::to_vec).collect()
    }

    /// A store of which all lanes are inside, or else one in another way.
    pub(super) fn store_all_in_bounds(&mut self, access: MemAccess, lanes: &Lanes, data: &[V]) {
        let elem = access.elem;
        self.compute_here(data.iter().copied());
        let (fast, other, done) = self.in_bounds_blocks(access.space);
        let offsets = self.branch_if_inside(elem, lanes, fast, other);
        self.side(fast, |e| {
            if !e.is_const_full(lanes.mask) {
                let all = e.mask_test(lanes.mask, true);
                let bits = e.mask_bits(lanes.mask);
                let (every, some) = (e.new_block(), e.new_block());
                e.branch(all, every, some);
                e.block = some;
                e.store_lanes(elem, lanes, &offsets, Some(bits), data);
                e.jump(done, &[]);
                e.block = every;
            }
            e.store_lanes(elem, lanes, &offsets, None, data);
            e.jump(done, &[]);
        });
        self.side(other, |e| {
            if e.records_faults(access.space) {
                e.store_any(access, lanes, &[data.to_vec()], Any::RareMessage);
            } else {
                let tested = e.test_lanes(access, lanes);
                e.store_inside(elem, lanes, &tested, data);
            }
            e.jump(done, &[]);
        });
        self.block = done;
    }

    /// Blocks for when all lanes are inside, for when not, and for what comes after both.
    fn in_bounds_blocks(&mut self, space: Space) -> (ir::Block, ir::Block, ir::Block) {
        let fast = self.new_block();
        let other = match self.records_faults(space) {
            true => self.new_cold_block(),
            false => self.new_block(),
        };
        (fast, other, self.new_block())
    }

    /// Goes to `fast` if all lanes, enabled or not, are inside. The offsets that it gives are good there.
    fn branch_if_inside(
        &mut self,
        elem: Lane,
        lanes: &Lanes,
        fast: ir::Block,
        other: ir::Block,
    ) -> Offsets {
        let scaled = self.scaled(lanes).filter(|_| lanes.flat);
        if !lanes.flat || scaled.is_some() {
            let (offsets, outside) = match scaled {
                Some(scaled) => {
                    let bytes = elem.bytes();
                    self.compare_scaled(lanes.region, bytes, &scaled, Compare::Roughly)
                }
                None => self.compare_lanes(elem, lanes),
            };
            let any = self.pieces_test(&outside, false);
            self.branch(any, other, fast);
            return offsets;
        }
        // Without a tag, the distance from the base is below the limit; as signed numbers, moved by the sign bit.
        let base = self.base(Region::Known(Place::Flat));
        let limit = self.flat_limit(elem.bytes());
        let [base, limit] = [base, limit].map(|v| {
            let moved = self.ins().iadd_imm_s(v, i64::MIN);
            self.ins().splat(types::I64X2, moved)
        });
        let inside = lanes.addr.iter().map(|&a| {
            let distance = self.ins().isub(a, base);
            self.ins().icmp(IntCC::SignedGreaterThan, limit, distance)
        });
        let inside: Vec<V> = inside.collect();
        let all = self.pieces_test(&inside, true);
        self.branch(all, fast, other);
        Offsets {
            pieces: lanes.addr.clone(),
            start: match lanes.region {
                Region::Known(Place::Marks(marked)) => {
                    Start::Pointer(self.distance_of_marks(marked), 0)
                }
                _ => Start::Nowhere,
            },
            lane: Lane::I64,
        }
    }
}
