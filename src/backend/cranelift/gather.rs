//! Lane-wise loads.
//!
//! Disabled and out-of-bounds lanes read offset 0 of the safe base (or the sink) and are cleared
//! afterwards, so that the code has no branch and touches nothing outside.

use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::{DATA, Emit};
use super::memory::Lanes;
use super::value::{per_piece, piece_type, scalar_type};
use crate::ssa::{Inst, Lane, MemAccess, Value};

impl Emit<'_> {
    /// A lane-wise load.
    pub fn load(&mut self, access: MemAccess, args: &[Value], out: &[Value], inst: Inst) {
        if !self.known_access(access) {
            return;
        }
        let lanes = self.lanes(access.space, args);
        let results = match self.load_affine(access, &lanes, args[1], inst) {
            Some(results) => results,
            None => self.load_any(access, &lanes),
        };
        for (&v, parts) in out.iter().zip(results) {
            self.bind(v, parts);
        }
    }

    /// Load from addresses of unknown shape.
    pub fn load_any(&mut self, access: MemAccess, lanes: &Lanes) -> Vec<Vec<V>> {
        if let Some(results) = self.load_records(access, lanes) {
            return results;
        }
        self.check_lanes(lanes, access.elem, access.comps, access.site, access.space);
        self.load_general(lanes, access.elem, access.comps)
    }

    /// Every component by itself, for any addresses and mask.
    pub fn load_general(&mut self, lanes: &Lanes, elem: Lane, comps: u8) -> Vec<Vec<V>> {
        (0..comps)
            .map(|c| {
                let offset = self.component(lanes, elem, c);
                let (from, bytes) = self.extent(lanes, elem, c, &offset);
                let guards = self.guards(lanes, &from, bytes);
                if lanes.count == 1 {
                    vec![self.load_one(lanes, elem, offset[0], guards[0])]
                } else {
                    self.gather(lanes, elem, &offset, guards)
                }
            })
            .collect()
    }

    fn load_one(&mut self, lanes: &Lanes, elem: Lane, offset: V, guard: V) -> V {
        let base = self.safe_base(lanes.region, elem.bytes());
        let zero = self.iconst(scalar_type(lanes.addr_lane()), 0);
        let safe = self.ins().select(guard, offset, zero);
        let wide = self.resize(safe, types::I64);
        let pointer = self.ins().iadd(base, wide);
        let ty = scalar_type(elem);
        let v = self.ins().load(ty, DATA, pointer, 0);
        let zero = self.iconst(ty, 0);
        self.ins().select(guard, v, zero)
    }

    fn gather(&mut self, lanes: &Lanes, elem: Lane, offset: &[V], guards: Vec<V>) -> Vec<V> {
        let pointers = self.safe_pointers(lanes, elem.bytes(), offset, &guards);
        let loaded: Vec<V> = pointers
            .chunks(per_piece(elem))
            .map(|chunk| self.load_piece(elem, chunk, 0))
            .collect();
        let mask = self.guard_mask(lanes, guards);
        let mask = self.repr_vec(&mask, lanes.count, elem.bytes());
        self.mask_pieces(&mask, loaded)
    }

    /// One pointer a lane: the element where the guard is set, else the safe base.
    pub fn safe_pointers(
        &mut self,
        lanes: &Lanes,
        bytes: u32,
        offset: &[V],
        guards: &[V],
    ) -> Vec<V> {
        let base = self.safe_base(lanes.region, bytes);
        let safe = self.lanewise(&[guards.to_vec(), offset.to_vec()], |e, v| {
            e.ins().band(v[1], v[0])
        });
        (0..usize::from(lanes.count))
            .map(|i| {
                let offset = self.lane_of(lanes.addr_lane(), &safe, i);
                let wide = self.resize(offset, types::I64);
                self.ins().iadd(base, wide)
            })
            .collect()
    }

    /// One element from each of as many pointers as a piece has lanes, or fewer.
    pub fn load_piece(&mut self, elem: Lane, pointers: &[V], at: i32) -> V {
        let (ty, scalar) = (piece_type(elem), scalar_type(elem));
        let mut piece: Option<V> = None;
        for (i, &pointer) in pointers.iter().enumerate() {
            let v = self.ins().load(scalar, DATA, pointer, at);
            piece = Some(match piece {
                None if elem.bytes() >= 4 => self.ins().scalar_to_vector(ty, v),
                None => {
                    let zero = self.vconst(ty, 0);
                    self.ins().insertlane(zero, v, 0)
                }
                Some(p) => self.ins().insertlane(p, v, i as u8),
            });
        }
        piece.unwrap_or_else(|| self.vconst(ty, 0))
    }
}
