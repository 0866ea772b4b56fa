//! Lane-wise accesses at any addresses in a loop over the lanes, a few of them at a time.
//!
//! That is nearly as fast as straight code and a fraction as long, which counts: compile time is proportional to what Cranelift is given.
//! Offsets and data lie in memory, where the runtime would have them, so that lanes are read by their number.
//!
//! One test asks whether all enabled lanes are wholly inside. If not, the runtime does the access.

use std::ops::Range;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, StackSlot, Value as V, types};

use super::emit::{CraneliftEmitter, DATA};
use super::lanes::{Offsets, Start};
use super::memory::{Lanes, Place, Region};
use super::value::{per_piece, piece_type, scalar_type};
use crate::backend::access::{Any, row_bytes};
use crate::ssa::{Lane, MemAccess, Ty};

/// Lanes at a time, at least.
const AT_ONCE: usize = 4;

/// Where the rows of a message are, one for each component.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub block: StackSlot,
    /// Byte of the block at which they start.
    pub first: u32,
}

/// Data of a store: a row for each component.
#[derive(Clone, Copy)]
struct DataRows {
    /// Byte at which the first one starts.
    first: u32,
    /// From row to row.
    bytes: u32,
}

/// Offsets of the lanes of a round, in memory.
struct RoundOffsets {
    /// Where that of the first lane lies.
    from: V,
    /// Their lane type.
    lane: Lane,
    /// What they count from, and how far they are shifted before.
    start: Option<(V, u8)>,
}

/// Lanes of an access that a loop goes through.
struct Round {
    /// Number of the first one, of 64 bits.
    lane: V,
    /// How many they are.
    count: usize,
}

impl CraneliftEmitter<'_> {
    /// A load of lanes that are all inside, or else one by the runtime.
    pub(super) fn load_rolled(&mut self, access: MemAccess, lanes: &Lanes) -> Vec<Vec<V>> {
        let (elem, comps) = (access.elem, access.comps);
        let bytes = row_bytes(elem, comps);
        let rows = self.message_rows(lanes, elem, usize::from(comps));
        let (fast, other, done) = (self.new_block(), self.new_cold_block(), self.new_block());
        let enabled = (!self.is_const_full(lanes.mask)).then_some(lanes.mask);
        let offsets = self.branch_if_inside((bytes, enabled), lanes, fast, other);
        self.side(fast, |e| {
            let (start, offsets) = e.harmless(bytes, lanes, offsets);
            let at = e.slot_addr(rows.block, 0);
            e.store_pieces(at, 0, &offsets.pieces);
            e.each_round(elem, lanes.count, |e, round| {
                let offsets = RoundOffsets {
                    from: e.lane_at(offsets.lane, at, round.lane),
                    lane: offsets.lane,
                    start,
                };
                let to = e.lane_at(elem, at, round.lane);
                let row = Self::row(elem, lanes.count);
                for first in (0..round.count).step_by(per_piece(elem)) {
                    let count = per_piece(elem).min(round.count - first);
                    let pieces = e.load_round(access, &offsets, first..first + count);
                    for (c, piece) in (0..).zip(pieces) {
                        let at = rows.first + c * row + first as u32 * elem.bytes();
                        e.store_pieces(to, at, &[piece]);
                    }
                }
            });
            e.jump(done, &[]);
        });
        self.side(other, |e| {
            e.send_load(access, lanes, Any::RareMessage);
            e.jump(done, &[]);
        });
        self.block = done;
        let ty = Ty::vector(elem, lanes.count);
        let mut results = self.message_results(rows, comps, ty);
        if enabled.is_some() {
            let mask = self.mask_vec(lanes.mask, elem.bytes());
            for pieces in &mut results {
                *pieces = self.mask_pieces(&mask, std::mem::take(pieces));
            }
        }
        results
    }

    /// A store of lanes that are all inside, or else one by the runtime.
    pub(super) fn store_rolled(&mut self, access: MemAccess, lanes: &Lanes, data: &[Vec<V>]) {
        let (elem, comps) = (access.elem, access.comps);
        let rows = self.message_rows(lanes, elem, usize::from(comps));
        let data_rows = DataRows {
            first: rows.first,
            bytes: Self::row(elem, lanes.count),
        };
        let at = self.slot_addr(rows.block, 0);
        for (c, pieces) in (0..).zip(data) {
            self.store_pieces(at, rows.first + c * data_rows.bytes, pieces);
        }
        let (fast, other, done) = (self.new_block(), self.new_cold_block(), self.new_block());
        let enabled = (!self.is_const_full(lanes.mask)).then_some(lanes.mask);
        let bytes = elem.bytes() * u32::from(comps);
        let offsets = self.branch_if_inside((bytes, enabled), lanes, fast, other);
        self.side(fast, |e| {
            let start = e.start_of(offsets.start, lanes);
            let others = enabled.map(|mask| (e.mask_bits(mask), e.sink()));
            e.store_pieces(at, 0, &offsets.pieces);
            e.each_round(elem, lanes.count, |e, round| {
                let offsets = RoundOffsets {
                    from: e.lane_at(offsets.lane, at, round.lane),
                    lane: offsets.lane,
                    start,
                };
                let others = others.map(|(bits, sink)| (e.ins().ushr(bits, round.lane), sink));
                let from = e.lane_at(elem, at, round.lane);
                e.store_round(access, (from, data_rows), round.count, |e, i| {
                    let to = e.pointer(&offsets, i);
                    let Some((bits, sink)) = others else {
                        return to;
                    };
                    let stored = e.ins().band_imm_u(bits, 1 << i);
                    e.ins().select(stored, to, sink)
                });
            });
            e.jump(done, &[]);
        });
        self.side(other, |e| {
            // Its data is there already.
            e.send_store(access, lanes, &[], Any::RareMessage);
            e.jump(done, &[]);
        });
        self.block = done;
    }

    /// Loads as many lanes as a piece has: a piece for each component.
    fn load_round(
        &mut self,
        access: MemAccess,
        offsets: &RoundOffsets,
        lanes: Range<usize>,
    ) -> Vec<V> {
        let (elem, first) = (access.elem, lanes.start);
        // Loads keep their order. With each offset in front of its element, few offsets are in registers at a time. But then an insertion
        // does not read memory itself, which counts where a piece has many lanes.
        if access.comps == 1 && elem.bytes() >= 4 {
            let pointer = |e: &mut Self, i| e.pointer(offsets, first + i);
            return vec![self.load_piece_of(elem, lanes.len(), 0, pointer)];
        }
        let pointers: Vec<V> = lanes.map(|i| self.pointer(offsets, i)).collect();
        self.load_from(elem, access.comps, &pointers).concat()
    }

    /// Stores some lanes, whose data lies in rows from a place on.
    fn store_round(
        &mut self,
        access: MemAccess,
        (from, rows): (V, DataRows),
        count: usize,
        mut pointer: impl FnMut(&mut Self, usize) -> V,
    ) {
        let elem = access.elem;
        let at = |c: u32, byte: u32| (rows.first + c * rows.bytes + byte).cast_signed();
        if access.comps == 1 || elem.bytes() < 4 {
            for i in 0..count {
                let to = pointer(self, i);
                for c in 0..access.comps.into() {
                    let from_row = at(c, i as u32 * elem.bytes());
                    let v = self.ins().load(scalar_type(elem), DATA, from, from_row);
                    let to_row = (c * elem.bytes()).cast_signed();
                    self.ins().store(DATA, v, to, to_row);
                }
            }
            return;
        }
        let pieces = count.div_ceil(per_piece(elem)) as u32;
        let data: Vec<Vec<V>> = (0..access.comps.into())
            .map(|c| {
                let piece = |p| self.ins().load(piece_type(elem), DATA, from, at(c, 16 * p));
                (0..pieces).map(piece).collect()
            })
            .collect();
        self.store_to(access, count as u16, &data, pointer);
    }

    /// Code for some lanes at a time, until all have had theirs.
    fn each_round(&mut self, elem: Lane, lanes: u16, body: impl FnOnce(&mut Self, Round)) {
        let all = usize::from(lanes);
        let count = per_piece(elem).max(AT_ONCE).min(all);
        let lane = self.iconst(types::I64, 0);
        if count == all {
            return body(self, Round { lane, count });
        }
        let (each, done) = (self.new_block(), self.new_block());
        self.jump(each, &[lane]);
        let lane = self.func.dfg.append_block_param(each, types::I64);
        self.block = each;
        body(self, Round { lane, count });
        let next = self.ins().iadd_imm_s(lane, count as i64);
        let more = IntCC::UnsignedLessThan;
        let more = self.ins().icmp_imm_u(more, next, i64::from(lanes));
        self.ins()
            .brif(more, each, &[BlockArg::from(next)], done, &[]);
        self.block = done;
    }

    /// Pointer of a lane of a round.
    fn pointer(&mut self, offsets: &RoundOffsets, i: usize) -> V {
        let lane = offsets.lane;
        let at = (i as u32 * lane.bytes()).cast_signed();
        let offset = self.ins().load(scalar_type(lane), DATA, offsets.from, at);
        let offset = self.resize(offset, types::I64);
        match offsets.start {
            None => offset,
            Some((start, 0)) => self.ins().iadd(start, offset),
            Some((start, shift)) => {
                let offset = self.ins().ishl_imm_u(offset, i64::from(shift));
                self.ins().iadd(start, offset)
            }
        }
    }

    /// Bytes of a row.
    const fn row(elem: Lane, lanes: u16) -> u32 {
        (lanes as u32 * elem.bytes()).next_multiple_of(16)
    }

    /// Offsets of lanes of which all enabled ones are inside, with others at a harmless place, and what they count from.
    fn harmless(
        &mut self,
        bytes: u32,
        lanes: &Lanes,
        mut offsets: Offsets,
    ) -> (Option<(V, u8)>, Offsets) {
        if self.is_const_full(lanes.mask) {
            return (self.start_of(offsets.start, lanes), offsets);
        }
        let start = match offsets.start {
            Start::Region => (self.safe_base(lanes.region, bytes), 0),
            Start::Pointer(pointer, shift) => (pointer, shift),
            Start::Nowhere => {
                let safe = self.safe_base(Region::Known(Place::Flat), bytes);
                let from = self.ins().splat(types::I64X2, safe);
                for address in &mut offsets.pieces {
                    *address = self.ins().isub(*address, from);
                }
                (safe, 0)
            }
        };
        let enabled = self.mask_vec(lanes.mask, offsets.lane.bytes());
        offsets.pieces = self.mask_pieces(&enabled, offsets.pieces);
        (Some(start), offsets)
    }
}
