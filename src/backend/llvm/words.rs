//! Words of 64-bit lanes by a permutation of two vectors.
//!
//! Where AVX-512 registers have eight of these lanes, LLVM cuts sixteen low words out by two conversions and an insertion. High words are
//! moved down before. One permutation of both registers does the same.
//!
//! LLVM calculates what is cut off in 32-bit lanes where it sees how. So truncations of what was extended, and of products, stay. So do those
//! whose only readers store both halves of a lane, as these are stored as a whole (`affine.rs`).

use rustc_hash::FxHashSet;

use super::emit::{EmitResult, LlvmEmitter, V};
use super::types::padded_lanes;
use crate::backend::access::consts;
use crate::ssa::{BinOp, Conv, Function, Lane, Op, UnOp, Value};

/// Lanes of 64 bits in two AVX-512 registers.
const TWO_REGISTERS: u16 = 16;

/// Truncations that are done by permutations.
pub(super) struct Words(FxHashSet<Value>);

impl Words {
    /// Those of a function.
    pub(super) fn new(f: &Function) -> Words {
        let mut found = FxHashSet::default();
        let blocks = f.order.iter().map(|&b| f.block(b));
        for block in blocks.clone() {
            for data in block.insts.iter().map(|&i| f.inst(i)) {
                if let (Op::Convert(Conv::Trunc), &[out]) = (&data.op, data.results.as_slice()) {
                    let (from, to) = (f.ty(data.args[0]), f.ty(out));
                    let words = from.lane == Lane::I64 && to.lane == Lane::I32;
                    if words && to.lanes >= TWO_REGISTERS && is_wide(f, source(f, data.args[0]).0) {
                        found.insert(out);
                    }
                }
            }
        }
        let mut read = FxHashSet::default();
        for block in blocks {
            let insts = block.insts.iter().map(|&i| f.inst(i));
            let computes = insts.filter(|d| !matches!(d.op, Op::Store(m) if m.comps > 1));
            let targets = block.term.targets();
            let passed = targets.iter().flat_map(|call| &call.args);
            read.extend(computes.flat_map(|d| &d.args).chain(passed).copied());
        }
        found.retain(|v| read.contains(v));
        Words(found)
    }

    /// Whether the value is a truncation of this kind.
    pub(super) fn contains(&self, v: Value) -> bool {
        self.0.contains(&v)
    }
}

/// What words are cut out of, and whether they are the high ones.
fn source(f: &Function, v: Value) -> (Value, bool) {
    let shift = f.def_inst(v).filter(|d| d.op == Op::Binary(BinOp::LShr));
    let high = shift.filter(|d| consts::uniform(f, d.args[1]) == Some(32));
    high.map_or((v, false), |d| (d.args[0], true))
}

/// Whether LLVM has no narrower way to the words.
fn is_wide(f: &Function, v: Value) -> bool {
    let op = f.def_inst(v).map(|d| &d.op);
    !matches!(
        op,
        Some(
            Op::Binary(BinOp::Mul)
                | Op::Convert(_)
                | Op::Unary(UnOp::Neg)
                | Op::Splat
                | Op::VecConst(_)
        )
    )
}

impl<'c> LlvmEmitter<'c, '_> {
    /// The words that a truncation of `v` leaves, or those of what `v` moves down.
    pub(super) fn words_of(&mut self, v: Value) -> EmitResult<V<'c>> {
        let (wide, high) = source(self.f, v);
        let lanes = padded_lanes(self.ty(wide).lanes);
        let both = self.ty(wide).with_lane(Lane::I32).with_lanes(2 * lanes);
        let wide = self.get(wide)?;
        let both = self.cast_bits(wide, self.type_of(both))?;
        let places = (0..lanes).map(|n| Some(u32::from(2 * n) + u32::from(high)));
        self.shuffle(both, None, &places.collect::<Vec<_>>())
    }
}
