//! Lane-wise loads.
//!
//! Disabled and out-of-bounds lanes read offset 0 of the safe base (or the sink) and are cleared
//! afterwards, so that the code has no branch and touches nothing outside.

use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::{DATA, Emit};
use super::memory::Lanes;
use super::value::{per_piece, piece_type, scalar_type};
use crate::ssa::{Inst, Lane, MemAccess, Ty, Value};

impl Emit<'_> {
    /// A lane-wise load.
    pub fn load(&mut self, access: MemAccess, args: &[Value], out: &[Value], inst: Inst) {
        if !self.known_access(access) {
            return;
        }
        let lanes = self.lanes(access.space, args);
        self.check_lanes(&lanes, access.elem, access.comps, access.site, access.space);
        let general = |e: &mut Self| e.load_general(&lanes, access.elem, access.comps);
        let results = match self.load_affine(access, &lanes, inst) {
            Some(results) => results,
            None => match self.load_records(access, &lanes) {
                Some(results) => results,
                None => general(self),
            },
        };
        for (&v, parts) in out.iter().zip(results) {
            self.bind(v, parts);
        }
    }

    /// Every component by itself, for any addresses and mask.
    pub fn load_general(&mut self, lanes: &Lanes, elem: Lane, comps: u8) -> Vec<Vec<V>> {
        (0..comps)
            .map(|c| {
                let addr = self.component_addr(lanes, elem, c);
                let guards = self.guards(lanes, &addr, elem.bytes());
                if lanes.count == 1 {
                    vec![self.load_one(lanes, elem, addr[0], guards[0])]
                } else {
                    self.gather(lanes, elem, &addr, guards)
                }
            })
            .collect()
    }

    fn load_one(&mut self, lanes: &Lanes, elem: Lane, addr: V, guard: V) -> V {
        let pointer = self.scalar_pointer(lanes, addr, guard, elem.bytes());
        let ty = scalar_type(elem);
        let v = self.ins().load(ty, DATA, pointer, 0);
        let zero = self.iconst(ty, 0);
        self.ins().select(guard, v, zero)
    }

    /// Pointer of a scalar access, to harmless memory when the guard is clear.
    pub fn scalar_pointer(&mut self, lanes: &Lanes, addr: V, guard: V, bytes: u32) -> V {
        if lanes.flat {
            let sink = self.sink();
            return self.ins().select(guard, addr, sink);
        }
        let base = self.safe_base(lanes.region, bytes);
        let zero = self.iconst(types::I32, 0);
        let offset = self.ins().select(guard, addr, zero);
        let wide = self.ins().uextend(types::I64, offset);
        self.ins().iadd(base, wide)
    }

    fn gather(&mut self, lanes: &Lanes, elem: Lane, addr: &[V], guards: Vec<V>) -> Vec<V> {
        let pointers = self.safe_pointers(lanes, elem.bytes(), addr, &guards);
        let ty = Ty::vector(elem, lanes.count);
        let loaded: Vec<V> = pointers
            .chunks(per_piece(elem))
            .map(|chunk| self.load_piece(elem, chunk))
            .collect();
        let mask = self.guard_mask(lanes, guards);
        let mask = self.repr_vec(&mask, ty.lanes, elem.bytes());
        self.mask_pieces(&mask, loaded)
    }

    /// One pointer a lane: the element where the guard is set, else harmless memory.
    pub fn safe_pointers(
        &mut self,
        lanes: &Lanes,
        bytes: u32,
        addr: &[V],
        guards: &[V],
    ) -> Vec<V> {
        let count = usize::from(lanes.count);
        if lanes.flat {
            let sink = self.sink_splat();
            let safe = self.lanewise(&[guards.to_vec(), addr.to_vec()], |e, v| {
                e.blend(v[0], v[1], sink)
            });
            return (0..count)
                .map(|i| self.lane_of(Lane::I64, &safe, i))
                .collect();
        }
        let base = self.safe_base(lanes.region, bytes);
        let safe = self.lanewise(&[guards.to_vec(), addr.to_vec()], |e, v| {
            e.ins().band(v[1], v[0])
        });
        (0..count)
            .map(|i| {
                let offset = self.lane_of(Lane::I32, &safe, i);
                let wide = self.ins().uextend(types::I64, offset);
                self.ins().iadd(base, wide)
            })
            .collect()
    }

    fn load_piece(&mut self, elem: Lane, pointers: &[V]) -> V {
        let (ty, scalar) = (piece_type(elem), scalar_type(elem));
        let mut piece: Option<V> = None;
        for (i, &pointer) in pointers.iter().enumerate() {
            let v = self.ins().load(scalar, DATA, pointer, 0);
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

    /// Loads of several consecutive components, a record a lane. Not yet special.
    fn load_records(&mut self, _access: MemAccess, _lanes: &Lanes) -> Option<Vec<Vec<V>>> {
        None
    }
}
