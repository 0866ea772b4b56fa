//! Lane-wise stores.
//!
//! A lane that is disabled or out of bounds stores to the sink. Memory is never read and written
//! back, because another thread may be writing the bytes in between.

use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::{DATA, Emit};
use super::memory::Lanes;
use crate::ssa::{Inst, Lane, MemAccess, Value};

impl Emit<'_> {
    /// A lane-wise store.
    pub fn store(&mut self, access: MemAccess, args: &[Value], inst: Inst) {
        if !self.known_access(access) {
            return;
        }
        let lanes = self.lanes(access.space, args);
        let data: Vec<Vec<V>> = Self::data_args(access.space, args)
            .iter()
            .map(|&v| self.parts(v))
            .collect();
        if !self.store_affine(access, &lanes, args[1], &data, inst) {
            self.store_any(access, &lanes, &data);
        }
    }

    /// Store to addresses of unknown shape.
    pub fn store_any(&mut self, access: MemAccess, lanes: &Lanes, data: &[Vec<V>]) {
        if !self.store_records(access, lanes, data) {
            self.check_lanes(lanes, access.elem, access.comps, access.site, access.space);
            self.store_general(lanes, access.elem, data);
        }
    }

    /// Every component by itself, for any addresses and mask. Lanes store one after the other, so
    /// that of lanes that overlap the highest wins.
    pub fn store_general(&mut self, lanes: &Lanes, elem: Lane, data: &[Vec<V>]) {
        let mut pointers: Vec<Vec<V>> = Vec::new();
        for (c, parts) in data.iter().enumerate() {
            let offset = self.component(lanes, elem, c as u8);
            let (from, bytes) = self.extent(lanes, elem, c as u8, &offset);
            let guards = self.guards(lanes, &from, bytes);
            if lanes.count == 1 {
                self.store_one(lanes, offset[0], guards[0], parts[0]);
            } else {
                pointers.push(self.sink_pointers(lanes, &offset, &guards));
            }
        }
        for i in 0..usize::from(lanes.count) {
            for (safe, parts) in pointers.iter().zip(data) {
                let pointer = self.lane_of(Lane::I64, safe, i);
                let v = self.lane_of(elem, parts, i);
                self.ins().store(DATA, v, pointer, 0);
            }
        }
    }

    fn store_one(&mut self, lanes: &Lanes, offset: V, guard: V, v: V) {
        let sink = self.sink();
        let base = self.base(lanes.region);
        let wide = self.resize(offset, types::I64);
        let pointer = self.ins().iadd(base, wide);
        let pointer = self.ins().select(guard, pointer, sink);
        self.ins().store(DATA, v, pointer, 0);
    }

    /// Pieces of pointers: the element where the guard is set, else the sink.
    pub fn sink_pointers(&mut self, lanes: &Lanes, offset: &[V], guards: &[V]) -> Vec<V> {
        let base = self.base(lanes.region);
        let base = self.splat_pointer(lanes.region, base);
        let sink = self.sink_splat();
        let mut out = Vec::new();
        for (&offsets, &guard) in offset.iter().zip(guards) {
            let halves = if lanes.flat {
                vec![(offsets, guard)]
            } else {
                let (low, high) = self.widen_piece(offsets, false);
                let (guard_low, guard_high) = self.widen_piece(guard, true);
                vec![(low, guard_low), (high, guard_high)]
            };
            for (offset, guard) in halves {
                if 2 * out.len() < usize::from(lanes.count) {
                    let pointer = self.ins().iadd(base, offset);
                    out.push(self.blend(guard, pointer, sink));
                }
            }
        }
        out
    }
}
