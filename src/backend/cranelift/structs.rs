//! Lane-wise accesses of several components at any addresses, with the components of a lane moved together.
//!
//! One test asks whether all enabled lanes are wholly inside. If not, the runtime does the access. A load writes its results where the
//! runtime would, piece by piece: they would not fit into registers, and what follows reads them in one way.

use cranelift_codegen::ir::{InstBuilder, StackSlot, Value as V, types};

use super::emit::{CraneliftEmitter, DATA};
use super::lanes::{Offsets, Start};
use super::memory::{Lanes, Place, Region};
use super::value::per_piece;
use crate::backend::access::{Any, row_bytes};
use crate::ssa::{MemAccess, Ty};

/// Where the rows of a message are, one for each component.
#[derive(Clone, Copy)]
pub(super) struct Rows {
    pub block: StackSlot,
    /// Byte of the block at which they start.
    pub first: u32,
}

impl CraneliftEmitter<'_> {
    /// A load of structs that are all inside, or else one by the runtime.
    pub(super) fn load_structs(&mut self, access: MemAccess, lanes: &Lanes) -> Vec<Vec<V>> {
        let (elem, comps) = (access.elem, access.comps);
        let bytes = row_bytes(elem, comps);
        let rows = self.message_rows(lanes, elem, usize::from(comps));
        let (fast, other, done) = (self.new_block(), self.new_cold_block(), self.new_block());
        let enabled = (!self.is_const_full(lanes.mask)).then_some(lanes.mask);
        let offsets = self.branch_if_inside((bytes, enabled), lanes, fast, other);
        self.side(fast, |e| {
            let (start, offsets) = e.harmless(bytes, lanes, offsets);
            e.load_rows(access, lanes, (start, &offsets), rows);
            e.jump(done, &[]);
        });
        self.side(other, |e| {
            e.send_load(access, lanes, Any::RareMessage);
            e.jump(done, &[]);
        });
        self.block = done;
        self.message_results(rows, comps, Ty::vector(elem, lanes.count))
    }

    /// Loads as many lanes at a time as a piece has.
    fn load_rows(
        &mut self,
        access: MemAccess,
        lanes: &Lanes,
        (start, offsets): (Option<(V, u8)>, &Offsets),
        rows: Rows,
    ) {
        let (elem, comps) = (access.elem, access.comps);
        let row = u32::from(lanes.count) * elem.bytes();
        let mask = match self.is_const_full(lanes.mask) {
            true => None,
            false => Some(self.mask_vec(lanes.mask, elem.bytes())),
        };
        let (per, count) = (per_piece(elem), usize::from(lanes.count));
        let to = self.slot_addr(rows.block, rows.first);
        for first in (0..count).step_by(per) {
            let pointers: Vec<V> = (first..first + per)
                .map(|i| self.pointer_to_lane(start, offsets.lane, &offsets.pieces, i))
                .collect();
            let components = self.load_from(elem, comps, &pointers);
            for (c, mut pieces) in (0..).zip(components) {
                if let Some(mask) = &mask {
                    pieces = self.mask_pieces(&mask[first / per..=first / per], pieces);
                }
                let at = c * row + 16 * (first / per) as u32;
                self.ins().store(DATA, pieces[0], to, at.cast_signed());
            }
        }
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

    /// A store of structs that are all inside, or else one by the runtime.
    pub(super) fn store_structs(&mut self, access: MemAccess, lanes: &Lanes, data: &[Vec<V>]) {
        let bytes = access.elem.bytes() * u32::from(access.comps);
        self.compute_here(data.iter().flatten().copied());
        let (fast, other, done) = (self.new_block(), self.new_cold_block(), self.new_block());
        let enabled = (!self.is_const_full(lanes.mask)).then_some(lanes.mask);
        let offsets = self.branch_if_inside((bytes, enabled), lanes, fast, other);
        self.side(fast, |e| {
            let start = e.start_of(offsets.start, lanes);
            let others = enabled.map(|mask| (e.mask_bits(mask), e.sink()));
            e.store_to(access, lanes.count, data, |e, i| {
                let to = e.pointer_to_lane(start, offsets.lane, &offsets.pieces, i);
                let Some((bits, sink)) = others else {
                    return to;
                };
                let stored = e.ins().band_imm_u(bits, 1 << i);
                e.ins().select(stored, to, sink)
            });
            e.jump(done, &[]);
        });
        self.side(other, |e| {
            e.store_any(access, lanes, data, Any::RareMessage);
            e.jump(done, &[]);
        });
        self.block = done;
    }
}
