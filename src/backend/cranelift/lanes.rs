//! Lane-wise loads and stores of one element a lane without a call, for addresses of any shape: see
//! [`crate::backend::Gather`].
//!
//! Offsets are compared with the limit in vectors. `select` then reads every lane, those that are not inside from offset 0 of
//! a base where that is harmless, and clears them; it writes those to the sink. `branch` jumps around them.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{BlockArg, InstBuilder, Value as V, types};

use super::emit::{DATA, Emit};
use super::mask::full;
use super::memory::{Lanes, Place, Region};
use super::value::{per_piece, piece_type, scalar_type};
use crate::backend::Gather;
use crate::ssa::{Function, Inst, Lane, MemAccess, Op};

/// Most accesses of a function that go inline when nothing is said. Such code is several times as long as a call.
const MOST_INLINE: usize = 8;

/// What [`Gather::Auto`] is for a function.
pub(super) fn gather(f: &Function, wanted: Gather) -> Gather {
    if wanted != Gather::Auto {
        return wanted;
    }
    let arbitrary = |&&i: &&Inst| match &f.inst(i).op {
        Op::Load(access) | Op::Store(access) => {
            let shaped = f.shapes.get(&i).is_some_and(|s| s.addr.is_some());
            access.comps == 1 && !shaped && !f.ty(f.inst(i).args[1]).is_scalar()
        }
        _ => false,
    };
    let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
    match insts.filter(arbitrary).take(MOST_INLINE + 1).count() <= MOST_INLINE {
        true => Gather::Select,
        false => Gather::Call,
    }
}

/// Offsets of the lanes of an access, and which of them are enabled and inside.
struct Tested {
    /// Pieces of offsets in the region.
    offsets: Vec<V>,
    /// Pieces of masks as wide as the offsets.
    inside: Vec<V>,
    lane: Lane,
}

impl Emit<'_> {
    /// True for vectors of single elements, where the strategy wants them inline.
    pub fn goes_inline(&self, access: MemAccess, count: u16) -> bool {
        let wanted = matches!(self.gather, Gather::Select | Gather::Branch);
        wanted && access.comps == 1 && count > 1
    }

    /// A load of one element a lane.
    pub fn load_inline(&mut self, access: MemAccess, lanes: &Lanes) -> Vec<V> {
        let tested = self.test_lanes(access, lanes);
        let elem = access.elem;
        if self.gather == Gather::Branch {
            return self.load_branching(elem, lanes, &tested);
        }
        let parts = self.load_selecting(elem, lanes, &tested);
        let width = tested.lane.bytes();
        let inside = self.mask_rewidth(tested.inside, width, elem.bytes(), lanes.count);
        self.mask_pieces(&inside, parts)
    }

    /// As many lanes at a time as a piece of offsets has, unless none of them is inside. The jumps also keep the code
    /// generator from loading all lanes before it puts the first two together.
    fn load_selecting(&mut self, elem: Lane, lanes: &Lanes, tested: &Tested) -> Vec<V> {
        let base = self.safe_base(lanes.region, elem.bytes());
        let (per, at_once) = (per_piece(elem), per_piece(tested.lane));
        let ty = piece_type(elem);
        let zero = self.vconst(ty, 0);
        let count = usize::from(lanes.count);
        let mut parts: Vec<V> = vec![zero; count.div_ceil(per)];
        let pieces = tested.offsets.iter().zip(&tested.inside);
        for (p, (&offset, &inside)) in pieces.enumerate() {
            let range = p * at_once..count.min((p + 1) * at_once);
            let touched = range.start / per..(range.end - 1) / per + 1;
            let any = self.ins().vany_true(inside);
            let (load, skip, next) = (self.new_block(), self.new_block(), self.new_block());
            self.branch(any, load, skip);
            self.block = skip;
            let kept: Vec<BlockArg> = touched.clone().map(|k| parts[k].into()).collect();
            self.ins().jump(next, &kept);
            self.block = load;
            let safe = [self.ins().band(offset, inside)];
            for i in range.clone() {
                let from = self.pointer_to_lane(base, tested.lane, &safe, i - range.start);
                let v = self.ins().load(scalar_type(elem), DATA, from, 0);
                parts[i / per] = self.ins().insertlane(parts[i / per], v, (i % per) as u8);
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
    pub fn store_inline(&mut self, access: MemAccess, lanes: &Lanes, data: &[V]) {
        let tested = self.test_lanes(access, lanes);
        let base = self.base(lanes.region);
        let bits = self.vec_to_bits(tested.lane.bytes(), &tested.inside, lanes.count);
        let sink = self.sink();
        for i in 0..usize::from(lanes.count) {
            let inside = self.ins().band_imm_u(bits, 1 << i);
            if self.gather == Gather::Branch {
                let (store, next) = (self.new_block(), self.new_block());
                self.branch(inside, store, next);
                self.block = store;
                let to = self.pointer_to_lane(base, tested.lane, &tested.offsets, i);
                let v = self.lane_of(access.elem, data, i);
                self.ins().store(DATA, v, to, 0);
                self.jump(next, &[]);
                self.block = next;
            } else {
                let to = self.pointer_to_lane(base, tested.lane, &tested.offsets, i);
                let to = self.ins().select(inside, to, sink);
                let v = self.lane_of(access.elem, data, i);
                self.ins().store(DATA, v, to, 0);
            }
        }
    }

    /// Finds the lanes that are enabled and inside; reports those that are enabled and not.
    fn test_lanes(&mut self, access: MemAccess, lanes: &Lanes) -> Tested {
        let lane = lanes.addr_lane();
        let (width, bytes) = (lane.bytes(), access.elem.bytes());
        let ty = piece_type(lane);
        let offsets: Vec<V> = if lanes.flat {
            let first = self.base(Region::Known(Place::Flat));
            let first = self.ins().splat(ty, first);
            let keep = self.iconst(types::I64, super::memory::FLAT_OFFSET);
            let keep = self.ins().splat(ty, keep);
            let offset = |e: &mut Self, a: V| {
                let offset = e.ins().isub(a, first);
                e.ins().band(offset, keep)
            };
            lanes.addr.iter().map(|&a| offset(self, a)).collect()
        } else {
            lanes.addr.clone()
        };
        let limit = match lanes.flat {
            true => self.flat_limit(bytes),
            false => self.limit(lanes.region, bytes),
        };
        let limit = self.ins().splat(ty, limit);
        let outside: Vec<V> = offsets
            .iter()
            .map(|&offset| {
                if lanes.flat {
                    // Both have 48 bits.
                    let over = IntCC::SignedGreaterThanOrEqual;
                    return self.ins().icmp(over, offset, limit);
                }
                let most = self.ins().umax(offset, limit);
                self.ins().icmp(IntCC::Equal, most, offset)
            })
            .collect();
        let every = self.mask_const(lanes.mask) == Some(full(lanes.count));
        let enabled = (!every).then(|| self.mask_vec(lanes.mask, width));
        if self.records_faults(access.space) {
            let mut faulting = outside.clone();
            if let Some(enabled) = &enabled {
                faulting = self.mask_pieces(enabled, faulting);
            }
            let all = faulting.clone();
            let all = all.into_iter().reduce(|a, b| self.ins().bor(a, b));
            if let Some(all) = all {
                let any = self.ins().vany_true(all);
                let bits = |e: &mut Self| e.vec_to_bits(width, &faulting, lanes.count);
                self.report_when(any, lanes, bits, access.site, |_| ());
            }
        }
        let inside = outside.iter().enumerate().map(|(p, &out)| match &enabled {
            Some(enabled) => self.ins().band_not(enabled[p], out),
            None => self.ins().bnot(out),
        });
        Tested {
            inside: inside.collect(),
            offsets,
            lane,
        }
    }

    fn pointer_to_lane(&mut self, base: V, lane: Lane, offsets: &[V], i: usize) -> V {
        let offset = self.lane_of(lane, offsets, i);
        let wide = self.resize(offset, types::I64);
        self.ins().iadd(base, wide)
    }

    /// Each lane in a block of its own.
    fn load_branching(&mut self, elem: Lane, lanes: &Lanes, tested: &Tested) -> Vec<V> {
        let base = self.base(lanes.region);
        let bits = self.vec_to_bits(tested.lane.bytes(), &tested.inside, lanes.count);
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
            let from = self.pointer_to_lane(base, tested.lane, &tested.offsets, i);
            let v = self.ins().load(scalar_type(elem), DATA, from, 0);
            let piece = self.ins().insertlane(parts[part], v, (i % per) as u8);
            self.ins().jump(next, &[BlockArg::from(piece)]);
            self.block = next;
            parts[part] = param;
        }
        parts
    }
}
