//! Loops over the lanes of an access, for paths that are rarely taken: little code, any lane count.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, StackSlot, Value as V, types};

use super::emit::{DATA, Emit};
use super::memory::Lanes;
use super::value::{piece_count, scalar_type};
use crate::ssa::{Lane, Ty};

impl Emit<'_> {
    /// Loads component by component of every enabled lane; the others read zero.
    pub fn slow_load(&mut self, lanes: &Lanes, elem: Lane, comps: u8) -> Vec<Vec<V>> {
        let ty = Ty::vector(elem, lanes.count);
        let bytes = 16 * piece_count(ty) as u32;
        let slots: Vec<StackSlot> = (0..comps)
            .map(|_| {
                let slot = self.slot(bytes);
                self.clear_slot(slot, bytes);
                slot
            })
            .collect();
        self.each_enabled_lane(lanes, |e, lane, offset| {
            for (c, &slot) in slots.iter().enumerate() {
                let (inside, pointer) = e.lane_component(lanes, elem, offset, c as u8);
                let v = e.ins().load(scalar_type(elem), DATA, pointer, 0);
                let zero = e.iconst(scalar_type(elem), 0);
                let v = e.ins().select(inside, v, zero);
                let at = e.slot_lane_addr(slot, elem, lane);
                e.ins().store(DATA, v, at, 0);
            }
        });
        slots
            .into_iter()
            .map(|slot| self.unspill(slot, ty))
            .collect()
    }

    /// Stores component by component of every enabled lane.
    pub fn slow_store(&mut self, lanes: &Lanes, elem: Lane, data: &[Vec<V>]) {
        let slots: Vec<StackSlot> = data
            .iter()
            .map(|parts| {
                let slot = self.slot(16 * parts.len() as u32);
                self.spill(slot, parts);
                slot
            })
            .collect();
        self.each_enabled_lane(lanes, |e, lane, offset| {
            for (c, &slot) in slots.iter().enumerate() {
                let (_, pointer) = e.lane_component(lanes, elem, offset, c as u8);
                let v = e.slot_lane(slot, elem, lane);
                e.ins().store(DATA, v, pointer, 0);
            }
        });
    }

    /// Runs `each` with number and offset of every enabled lane.
    fn each_enabled_lane(&mut self, lanes: &Lanes, each: impl FnOnce(&mut Self, V, V)) {
        let offsets = self.slot(16 * lanes.offset.len() as u32);
        self.spill(offsets, &lanes.offset);
        let bits = self.mask_bits(lanes.mask);
        self.set_bits_loop(bits, |e, lane| {
            let offset = e.slot_lane(offsets, lanes.addr_lane(), lane);
            each(e, lane, offset);
        });
    }

    /// Whether a component is inside, and its pointer, which is the sink's when it is not.
    fn lane_component(&mut self, lanes: &Lanes, elem: Lane, offset: V, c: u8) -> (V, V) {
        let from = offset;
        let mut offset = offset;
        if c > 0 {
            let distance = i64::from(elem.bytes()) * i64::from(c);
            offset = self.ins().iadd_imm_u(offset, distance);
            if lanes.flat {
                let keep = self.iconst(types::I64, super::memory::FLAT_OFFSET);
                offset = self.ins().band(offset, keep);
            }
        }
        let (from, limit) = if lanes.flat {
            (offset, self.flat_limit(elem.bytes()))
        } else {
            let (_, bytes) = self.extent(lanes, elem, c, &[]);
            (from, self.limit(lanes.region, bytes))
        };
        let inside = self.ins().icmp(IntCC::UnsignedLessThan, from, limit);
        let pointer = self.lane_pointer(lanes, offset);
        let sink = self.sink();
        (inside, self.ins().select(inside, pointer, sink))
    }
}
