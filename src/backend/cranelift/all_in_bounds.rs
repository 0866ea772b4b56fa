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
use crate::ssa::{Lane, MemAccess, Space, Value};

impl CraneliftEmitter<'_> {
    /// A load of which all lanes are inside, or else one in another way.
    pub(super) fn load_all_in_bounds(&mut self, access: MemAccess, lanes: &Lanes) -> Vec<V> {
        let elem = access.elem;
        let (fast, other, done) = self.in_bounds_blocks(access.space);
        let offsets = self.branch_if_inside((elem.bytes(), None), lanes, fast, other);
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

    /// A store of which all lanes are inside, or else one in another way.
    pub(super) fn store_all_in_bounds(&mut self, access: MemAccess, lanes: &Lanes, data: &[V]) {
        let elem = access.elem;
        self.compute_here(data.iter().copied());
        let (fast, other, done) = self.in_bounds_blocks(access.space);
        let offsets = self.branch_if_inside((elem.bytes(), None), lanes, fast, other);
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

    /// Goes to `fast` if a given number of bytes of all lanes are inside, or of those of a mask. The offsets that it gives are good there,
    /// of these lanes.
    pub(super) fn branch_if_inside(
        &mut self,
        (bytes, enabled): (u32, Option<Value>),
        lanes: &Lanes,
        fast: ir::Block,
        other: ir::Block,
    ) -> Offsets {
        let scaled = self.scaled(lanes).filter(|_| lanes.flat);
        if !lanes.flat || scaled.is_some() {
            let (offsets, mut outside) = match scaled {
                Some(scaled) => self.compare_scaled(lanes.region, bytes, &scaled, Compare::Roughly),
                None => {
                    let offsets = Offsets {
                        pieces: lanes.addr.clone(),
                        start: Start::Region,
                        lane: lanes.addr_lane(),
                    };
                    let outside = self.outside_limit(bytes, lanes, &offsets.pieces);
                    (offsets, outside)
                }
            };
            if let Some(mask) = enabled {
                let enabled = self.mask_vec(mask, offsets.lane.bytes());
                outside = self.mask_pieces(&enabled, outside);
            }
            let any = self.pieces_test(&outside, false);
            self.branch(any, other, fast);
            return offsets;
        }
        let inside = self.roughly_inside(bytes, lanes);
        match enabled {
            None => {
                let all = self.pieces_test(&inside, true);
                self.branch(all, fast, other);
            }
            Some(mask) => {
                let enabled = self.mask_vec(mask, Lane::I64.bytes());
                let outside = enabled.iter().zip(&inside);
                let outside =
                    outside.map(|(&enabled, &inside)| self.ins().band_not(enabled, inside));
                let outside: Vec<V> = outside.collect();
                let any = self.pieces_test(&outside, false);
                self.branch(any, other, fast);
            }
        }
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

    /// Masks of the lanes in device memory that are inside, of addresses without a tag: their distance from the base is below the
    /// limit; as signed numbers, moved by the sign bit.
    fn roughly_inside(&mut self, bytes: u32, lanes: &Lanes) -> Vec<V> {
        let base = self.base(Region::Known(Place::Flat));
        let limit = self.flat_limit(bytes);
        let [base, limit] = [base, limit].map(|v| {
            let moved = self.ins().iadd_imm_s(v, i64::MIN);
            self.ins().splat(types::I64X2, moved)
        });
        let inside = lanes.addr.iter().map(|&a| {
            let distance = self.ins().isub(a, base);
            self.ins().icmp(IntCC::SignedGreaterThan, limit, distance)
        });
        inside.collect()
    }
}
