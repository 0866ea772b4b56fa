//! Lane-wise loads and stores of one element a lane without a call, for addresses of any shape: see [`crate::backend::Gather`].
//!
//! Offsets are compared with the limit in vectors. `select` then accesses every lane. Loads read lanes that are not inside from
//! offset 0 of a base, where that is harmless, and clear them; stores write them to the sink. `branch` jumps around lanes that
//! are not inside.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value as V, types};

use super::emit::{CraneliftEmitter, DATA};
use super::memory::{Lanes, Place, Region};
use super::scaled::Compare;
use super::value::{per_piece, piece_type, scalar_type};
use crate::backend::Gather;
use crate::backend::access::FLAT_OFFSET;
use crate::ssa::{Lane, MemAccess};

/// Lanes that are loaded between two branches.
const AT_ONCE: usize = 4;

/// How a pointer is made of an offset.
#[derive(Clone, Copy)]
pub(super) enum Start {
    /// It counts from the start of the region.
    Region,
    /// It is one.
    Nowhere,
    /// From a pointer, in units of bytes of which this is the logarithm.
    Pointer(V, u8),
}

/// Where the lanes of an access go.
pub(super) struct Offsets {
    /// Vectors of offsets.
    pub pieces: Vec<V>,
    /// What they count from.
    pub start: Start,
    /// Their lane type.
    pub lane: Lane,
}

/// Offsets of the lanes of an access, and which lanes are enabled and inside, in masks as wide.
pub(super) struct Tested {
    pub offsets: Offsets,
    pub inside: Vec<V>,
}

impl CraneliftEmitter<'_> {
    /// A load that asks of each lane whether it is enabled and inside.
    pub(super) fn load_each(&mut self, access: MemAccess, lanes: &Lanes) -> Vec<V> {
        let tested = self.test_lanes(access, lanes);
        let elem = access.elem;
        if self.access_plan.limits.gather == Gather::Branch {
            return self.load_branching(elem, lanes, &tested);
        }
        let parts = self.load_pieces(elem, lanes, &tested.offsets, Some(&tested.inside));
        let width = tested.offsets.lane.bytes();
        if width == elem.bytes() {
            return parts;
        }
        let inside = self.mask_rewidth(tested.inside, width, elem.bytes(), lanes.count);
        self.mask_pieces(&inside, parts)
    }

    /// Four lanes at a time. Those that are not `inside` come from a harmless place, and are cleared if elements are as wide as
    /// offsets; with `None` all are inside.
    ///
    /// Branches keep the code generator from loading all lanes before it puts the first two together. They ask for the base,
    /// which there always is.
    pub(super) fn load_pieces(
        &mut self,
        elem: Lane,
        lanes: &Lanes,
        offsets: &Offsets,
        inside: Option<&[V]>,
    ) -> Vec<V> {
        let base = match inside {
            None => self.base(lanes.region),
            Some(_) => self.safe_base(lanes.region, elem.bytes()),
        };
        let start_of = match offsets.start {
            Start::Region => Some((base, 0)),
            other => self.start_of(other, lanes),
        };
        let (per, wide) = (per_piece(elem), per_piece(offsets.lane));
        let ty = piece_type(elem);
        let zero = self.vconst(ty, 0);
        let count = usize::from(lanes.count);
        let mut parts: Vec<V> = vec![zero; count.div_ceil(per)];
        for start in (0..count).step_by(AT_ONCE) {
            let range = start..count.min(start + AT_ONCE);
            let touched = start / per..(range.end - 1) / per + 1;
            let pieces = start / wide..(range.end - 1) / wide + 1;
            let inside = inside.map(|all| &all[pieces.clone()]);
            let (load, skip, next) = (self.new_block(), self.new_cold_block(), self.new_block());
            self.branch(base, load, skip);
            self.block = skip;
            let kept: Vec<BlockArg> = touched.clone().map(|k| parts[k].into()).collect();
            self.ins().jump(next, &kept);
            self.block = load;
            let mut safe = offsets.pieces[pieces].to_vec();
            for (offset, &inside) in safe.iter_mut().zip(inside.unwrap_or_default()) {
                *offset = self.ins().band(*offset, inside);
            }
            for i in range {
                let from = self.pointer_to_lane(start_of, offsets.lane, &safe, i - start);
                let v = self.ins().load(scalar_type(elem), DATA, from, 0);
                parts[i / per] = self.ins().insertlane(parts[i / per], v, (i % per) as u8);
            }
            if let Some(inside) = inside.filter(|_| per == wide) {
                for (k, &inside) in touched.clone().zip(inside) {
                    parts[k] = self.ins().band(parts[k], inside);
                }
            }
            let loaded: Vec<BlockArg> = touched.clone().map(|k| parts[k].into()).collect();
            self.ins().jump(next, &loaded);
            self.block = next;
            for k in touched {
                parts[k] = self.func.dfg.append_block_param(next, ty);
            }
        }
        parts
    }

    /// A store of one element a lane, in the order of the lanes.
    pub(super) fn store_inline(&mut self, access: MemAccess, lanes: &Lanes, data: &[V]) {
        let elem = access.elem;
        let tested = self.test_lanes(access, lanes);
        if self.access_plan.limits.gather == Gather::Branch {
            return self.store_branching(elem, lanes, &tested, data);
        }
        self.compute_here(data.iter().copied());
        let all = self.pieces_test(&tested.inside, true);
        let (whole, some, done) = (self.new_block(), self.new_block(), self.new_block());
        self.branch(all, whole, some);
        self.side(whole, |e| {
            e.store_lanes(elem, lanes, &tested.offsets, None, data);
            e.jump(done, &[]);
        });
        self.side(some, |e| {
            e.store_inside(elem, lanes, &tested, data);
            e.jump(done, &[]);
        });
        self.block = done;
    }

    /// A store of the lanes that are enabled and inside.
    pub(super) fn store_inside(&mut self, elem: Lane, lanes: &Lanes, tested: &Tested, data: &[V]) {
        let bits = self.inside_bits(tested, lanes);
        self.store_lanes(elem, lanes, &tested.offsets, Some(bits), data);
    }

    /// A store of all lanes, or of those whose bits are set: others go to the sink.
    pub(super) fn store_lanes(
        &mut self,
        elem: Lane,
        lanes: &Lanes,
        offsets: &Offsets,
        bits: Option<V>,
        data: &[V],
    ) {
        let start = self.start_of(offsets.start, lanes);
        let sink = self.sink();
        for i in 0..usize::from(lanes.count) {
            let mut to = self.pointer_to_lane(start, offsets.lane, &offsets.pieces, i);
            if let Some(bits) = bits {
                let stored = self.ins().band_imm_u(bits, 1 << i);
                to = self.ins().select(stored, to, sink);
            }
            let v = self.lane_of(elem, data, i);
            self.ins().store(DATA, v, to, 0);
        }
    }

    /// Each lane in a block of its own.
    fn store_branching(&mut self, elem: Lane, lanes: &Lanes, tested: &Tested, data: &[V]) {
        let offsets = &tested.offsets;
        let start = self.start_of(offsets.start, lanes);
        let bits = self.inside_bits(tested, lanes);
        for i in 0..usize::from(lanes.count) {
            let inside = self.ins().band_imm_u(bits, 1 << i);
            let (store, next) = (self.new_block(), self.new_block());
            self.branch(inside, store, next);
            self.block = store;
            let to = self.pointer_to_lane(start, offsets.lane, &offsets.pieces, i);
            let v = self.lane_of(elem, data, i);
            self.ins().store(DATA, v, to, 0);
            self.jump(next, &[]);
            self.block = next;
        }
    }

    fn inside_bits(&mut self, tested: &Tested, lanes: &Lanes) -> V {
        self.vec_to_bits(tested.offsets.lane.bytes(), &tested.inside, lanes.count)
    }

    /// Finds the lanes that are enabled and inside; reports those that are enabled and not.
    pub(super) fn test_lanes(&mut self, access: MemAccess, lanes: &Lanes) -> Tested {
        let (offsets, outside) = self.compare_lanes(access.elem, lanes);
        let width = offsets.lane.bytes();
        let every = self.is_const_full(lanes.mask);
        let enabled = (!every).then(|| self.mask_vec(lanes.mask, width));
        if self.records_faults(access.space) {
            let faulting = match &enabled {
                Some(enabled) => self.mask_pieces(enabled, outside.clone()),
                None => outside.clone(),
            };
            // Of the lanes only, as vectors may be longer.
            let faulting = self.vec_to_bits(width, &faulting, lanes.count);
            self.report(lanes, faulting, access.site, |_| ());
        }
        let inside = outside.iter().enumerate().map(|(p, &out)| match &enabled {
            Some(enabled) => self.ins().band_not(enabled[p], out),
            None => self.ins().bnot(out),
        });
        Tested {
            inside: inside.collect(),
            offsets,
        }
    }

    /// Offsets in the region, and masks of those that are not inside, whether enabled or not.
    pub(super) fn compare_lanes(&mut self, elem: Lane, lanes: &Lanes) -> (Offsets, Vec<V>) {
        if let Some(scaled) = self.scaled(lanes).filter(|_| lanes.flat) {
            return self.compare_scaled(lanes.region, elem.bytes(), &scaled, Compare::Exactly);
        }
        let pieces = self.lane_offsets(lanes);
        let outside = self.outside_limit(elem.bytes(), lanes, &pieces);
        let offsets = Offsets {
            pieces,
            start: Start::Region,
            lane: lanes.addr_lane(),
        };
        (offsets, outside)
    }

    /// Offsets in the region.
    pub(super) fn lane_offsets(&mut self, lanes: &Lanes) -> Vec<V> {
        if !lanes.flat {
            return lanes.addr.clone();
        }
        let ty = piece_type(lanes.addr_lane());
        let first = self.base(Region::Known(Place::Flat));
        let first = self.ins().splat(ty, first);
        let keep = self.iconst(types::I64, FLAT_OFFSET);
        let keep = self.ins().splat(ty, keep);
        let offset = |e: &mut Self, a: V| {
            let offset = e.ins().isub(a, first);
            e.ins().band(offset, keep)
        };
        lanes.addr.iter().map(|&a| offset(self, a)).collect()
    }

    /// Masks of offsets at which a given number of bytes are not inside.
    pub(super) fn outside_limit(&mut self, bytes: u32, lanes: &Lanes, offsets: &[V]) -> Vec<V> {
        let limit = match lanes.flat {
            true => self.flat_limit(bytes),
            false => self.limit(lanes.region, bytes),
        };
        let limit = self.ins().splat(piece_type(lanes.addr_lane()), limit);
        let compare = |&offset: &V| {
            if lanes.flat {
                // Both have 48 bits.
                let over = IntCC::SignedGreaterThanOrEqual;
                return self.ins().icmp(over, offset, limit);
            }
            let most = self.ins().umax(offset, limit);
            self.ins().icmp(IntCC::Equal, most, offset)
        };
        offsets.iter().map(compare).collect()
    }

    /// What is added to offsets of an access, and how far they are shifted before.
    pub(super) fn start_of(&mut self, start: Start, lanes: &Lanes) -> Option<(V, u8)> {
        match start {
            Start::Region => Some((self.base(lanes.region), 0)),
            Start::Nowhere => None,
            Start::Pointer(pointer, shift) => Some((pointer, shift)),
        }
    }

    pub(super) fn pointer_to_lane(
        &mut self,
        start: Option<(V, u8)>,
        lane: Lane,
        offsets: &[V],
        i: usize,
    ) -> V {
        let mut wide = match lane {
            Lane::I64 => self.lane_of(lane, offsets, i),
            _ => self.widened(offsets, i),
        };
        let Some((start, shift)) = start else {
            return wide;
        };
        if shift > 0 {
            wide = self.ins().ishl_imm_u(wide, i64::from(shift));
        }
        self.ins().iadd(start, wide)
    }

    /// A lane of 32 bits as a number of 64. Leaving a vector register is dear, so two lanes go together.
    fn widened(&mut self, numbers: &[V], i: usize) -> V {
        let both = self.cast(numbers[i / 4], types::I64X2);
        let both = self.ins().extractlane(both, (i % 4 / 2) as u8);
        match i % 2 {
            0 => {
                let low = self.ins().ireduce(types::I32, both);
                self.ins().uextend(types::I64, low)
            }
            _ => self.ins().ushr_imm_u(both, 32),
        }
    }

    /// Each lane in a block of its own.
    fn load_branching(&mut self, elem: Lane, lanes: &Lanes, tested: &Tested) -> Vec<V> {
        let offsets = &tested.offsets;
        let start = self.start_of(offsets.start, lanes);
        let bits = self.inside_bits(tested, lanes);
        let per = per_piece(elem);
        let pieces = usize::from(lanes.count).div_ceil(per);
        let mut parts: Vec<V> = (0..pieces)
            .map(|_| self.vconst(piece_type(elem), 0))
            .collect();
        for i in 0..usize::from(lanes.count) {
            let inside = self.ins().band_imm_u(bits, 1 << i);
            let (load, other, next) = (self.new_block(), self.new_block(), self.new_block());
            let param = self.func.dfg.append_block_param(next, piece_type(elem));
            let part = i / per;
            self.branch(inside, load, other);
            self.block = other;
            self.ins().jump(next, &[BlockArg::from(parts[part])]);
            self.block = load;
            let from = self.pointer_to_lane(start, offsets.lane, &offsets.pieces, i);
            let v = self.ins().load(scalar_type(elem), DATA, from, 0);
            let piece = self.ins().insertlane(parts[part], v, (i % per) as u8);
            self.ins().jump(next, &[BlockArg::from(piece)]);
            self.block = next;
            parts[part] = param;
        }
        parts
    }
}
