//! Joined pieces: the operation that made each of them, done once on joined operands.

use rustc_hash::FxHashMap;

use super::halves::together;
use crate::passes::edit::{Rewriter, const_lanes, lanes_op, replace_by_block};
use crate::ssa::{BinOp, Conv, Function, Inst, Lane, Op, Ty, Value};

/// A lane of a vector, or a scalar.
type Source = (Value, u16);

/// Operations that are looked through from a shuffle.
const DEPTH: usize = 8;
/// Shuffles that a lane is followed through.
const FOLLOWED: usize = 16;
/// Fewest lanes that are worth it.
const FEWEST: usize = 4;
/// Lanes of a hardware thread: code generators have masks of no more.
const MOST: u16 = 32;

/// Replaces what shuffles join.
pub(super) fn run(f: &mut Function) -> usize {
    replace_by_block(f, |r, made, i| Joiner { r, made }.combined(i))
}

/// Joins pieces in a block.
struct Joiner<'r, 'f> {
    r: &'r mut Rewriter<'f>,
    /// Operations of the block on joined operands, by the pieces that they are instead of. A long chain of operations is joined link by
    /// link this way.
    made: &'r mut FxHashMap<Vec<Value>, Value>,
}

impl Joiner<'_, '_> {
    /// What a shuffle becomes, if it is another value.
    fn combined(&mut self, i: Inst) -> Option<Value> {
        let data = self.r.f.inst(i);
        let Op::Shuffle(indices) = &data.op else {
            return None;
        };
        let result = data.results[0];
        let ty = self.r.f.ty(result);
        if indices.len() < FEWEST || ty.lane == Lane::I1 {
            return None;
        }
        let lanes = (0..ty.lanes).map(|k| origin(self.r.f, (result, k)));
        let lanes: Vec<Source> = lanes.collect();
        if let Some(v) = halves_of_wide(self.r, &lanes, ty) {
            return Some(v);
        }
        if let Some(v) = self.interleaved(i, &lanes, ty) {
            return Some(v);
        }
        self.operation(&lanes, ty, DEPTH)
    }

    /// Low and high halves of 64-bit lanes that pieces make, side by side.
    fn interleaved(&mut self, i: Inst, lanes: &[Source], ty: Ty) -> Option<Value> {
        if ty.lane != Lane::I32 || !lanes.len().is_multiple_of(2) {
            return None;
        }
        let half = ty.with_lanes(ty.lanes / 2);
        let every_other = |first: usize| -> Vec<Source> {
            lanes.iter().copied().skip(first).step_by(2).collect()
        };
        let low = self.joined(&every_other(0), half, DEPTH)?;
        let high = self.joined(&every_other(1), half, DEPTH)?;
        if let Some(whole) = together(self.r, low, high) {
            return Some(self.r.emit(Op::Bitcast, vec![whole], ty));
        }
        let n = half.lanes;
        let indices: Box<[u16]> = (0..n).flat_map(|k| [k, n + k]).collect();
        let op = Op::Shuffle(indices);
        let data = self.r.f.inst(i);
        if data.op == op && data.args == [low, high] {
            return None;
        }
        Some(self.r.emit(op, vec![low, high], ty))
    }

    /// A vector of these lanes: one that is there, a constant, a splat, halves of wide lanes, or an operation on such.
    fn joined(&mut self, lanes: &[Source], ty: Ty, depth: usize) -> Option<Value> {
        let &(v, first) = lanes.first()?;
        let from = self.r.f.ty(v);
        if lanes.iter().all(|&(w, _)| w == v) {
            if from == ty && lanes.iter().zip(0..).all(|(&(_, k), n)| k == n) {
                return Some(v);
            }
            if from.is_scalar() && from.lane == ty.lane && first == 0 {
                return Some(self.r.emit(Op::Splat, vec![v], ty));
            }
        }
        let bits = |&(v, k): &Source| const_lanes(self.r.f, v)?.get(usize::from(k)).copied();
        if from.lane == ty.lane
            && let Some(all) = lanes.iter().map(bits).collect::<Option<Vec<u64>>>()
        {
            return Some(self.r.emit(lanes_op(all), Vec::new(), ty));
        }
        if let Some(v) = halves_of_wide(self.r, lanes, ty) {
            return Some(v);
        }
        self.operation(lanes, ty, depth)
    }

    /// The operation that made all pieces of a vector, on joined operands.
    fn operation(&mut self, lanes: &[Source], ty: Ty, depth: usize) -> Option<Value> {
        let pieces = pieces(self.r.f, lanes)?;
        if let Some(&v) = self.made.get(&pieces) {
            return Some(v);
        }
        let made = self.r.f.def_inst(*pieces.first()?)?.clone();
        let alike = |&v: &Value| {
            let data = self.r.f.def_inst(v);
            self.r.f.ty(v).lane == ty.lane
                && data.is_some_and(|d| d.op == made.op && d.args.len() == made.args.len())
        };
        if depth == 0
            || ty.lanes > MOST
            || pieces.len() < 2
            || !made.op.is_lane_wise()
            || !pieces.iter().all(alike)
        {
            return None;
        }
        // Value numbering may have exchanged the operands of some.
        let f = &*self.r.f;
        let arg = |v: Value, n: usize| f.def_inst(v).map(|data| f.resolve(data.args[n]));
        let exchanged = |v: Value| {
            let first = pieces[0];
            let crossed = |n: usize| arg(v, n) == arg(first, 1 - n);
            let straight = |n: usize| arg(v, n) == arg(first, n);
            made.op.commutes() && (crossed(0) || crossed(1)) && !(straight(0) || straight(1))
        };
        let turned: Vec<bool> = pieces.iter().map(|&v| exchanged(v)).collect();
        let mut args = Vec::new();
        for n in 0..made.args.len() {
            args.push(self.operand((&pieces, &turned), n, ty.lanes, depth - 1)?);
        }
        let whole = self.r.emit(made.op, args, ty);
        self.made.insert(pieces, whole);
        Some(whole)
    }

    /// Operand `n` of all pieces as one vector, or as the scalar that they share. Those of pieces that are turned are exchanged.
    fn operand(
        &mut self,
        (pieces, turned): (&[Value], &[bool]),
        n: usize,
        lanes: u16,
        depth: usize,
    ) -> Option<Value> {
        let arg = |f: &Function, v: Value, turned: bool| {
            let n = if turned { 1 - n } else { n };
            Some(f.resolve(*f.def_inst(v)?.args.get(n)?))
        };
        let first = arg(self.r.f, *pieces.first()?, false)?;
        let ty = self.r.f.ty(first);
        let mut all = Vec::new();
        for (&piece, &turned) in pieces.iter().zip(turned) {
            let v = arg(self.r.f, piece, turned)?;
            let here = self.r.f.ty(v);
            if ty.is_scalar() != here.is_scalar() || here.lane != ty.lane {
                return None;
            }
            if ty.is_scalar() && v != first {
                return None;
            }
            all.extend((0..here.lanes).map(|k| origin(self.r.f, (v, k))));
        }
        if ty.is_scalar() {
            return Some(first);
        }
        self.joined(&all, ty.with_lanes(lanes), depth)
    }
}

/// Where a lane comes from, through shuffles and splats.
fn origin(f: &Function, mut at: Source) -> Source {
    for _ in 0..FOLLOWED {
        let Some(data) = f.def_inst(f.resolve(at.0)) else {
            break;
        };
        match &data.op {
            Op::Splat => at = (data.args[0], 0),
            Op::Shuffle(indices) => {
                let Some(&index) = indices.get(usize::from(at.1)) else {
                    break;
                };
                let mut index = index;
                for &a in &data.args {
                    let lanes = f.ty(a).lanes;
                    if index < lanes {
                        at = (a, index);
                        break;
                    }
                    index -= lanes;
                }
            }
            _ => break,
        }
    }
    (f.resolve(at.0), at.1)
}

/// Every other 32-bit lane of a vector: halves of 64-bit lanes.
fn halves_of_wide(r: &mut Rewriter, lanes: &[Source], ty: Ty) -> Option<Value> {
    let &(v, first) = lanes.first()?;
    let from = r.f.ty(v);
    let wide = Ty::vector(Lane::I64, ty.lanes);
    let every_other = lanes
        .iter()
        .zip(0..)
        .all(|(&(w, k), n)| w == v && k == first + 2 * n);
    let fits = ty.lane == Lane::I32 && from == ty.with_lanes(2 * ty.lanes) && first < 2;
    if !fits || !every_other || lanes.len() < FEWEST {
        return None;
    }
    // Two values of the same lanes would not be seen to be halves of one.
    let same = r.f.def_inst(v).filter(|d| d.op == Op::Bitcast);
    let same = same
        .map(|d| r.f.resolve(d.args[0]))
        .filter(|&u| r.f.ty(u) == wide);
    let mut x = same.unwrap_or_else(|| r.emit(Op::Bitcast, vec![v], wide));
    if first == 1 {
        let count = r.constant(wide, 32);
        x = r.emit(Op::Binary(BinOp::LShr), vec![x, count], wide);
    }
    Some(r.emit(Op::Convert(Conv::Trunc), vec![x], ty))
}

/// The vectors that lanes are all of, one after the other.
fn pieces(f: &Function, lanes: &[Source]) -> Option<Vec<Value>> {
    let mut pieces = Vec::new();
    let mut rest = lanes;
    while let Some(&(v, _)) = rest.first() {
        let n = usize::from(f.ty(v).lanes);
        let piece = rest.get(..n)?;
        let in_order = piece.iter().zip(0..).all(|(&(w, k), m)| w == v && k == m);
        if f.ty(v).is_scalar() || !in_order {
            return None;
        }
        pieces.push(v);
        rest = rest.get(n..)?;
    }
    Some(pieces)
}
