//! Low and high halves of 64-bit lanes, and the lanes that two of them make.

use super::carry::{subtracted, with_carry};
use super::words::{HALF, LOW, half_of, is_low_half, scalar_half, shift, shifted};
use crate::passes::edit::{
    Rewriter, binary, const_lanes, lanes_op, replace_results, spread_mask, uniform_const,
};
use crate::ssa::{BinOp, Conv, Function, Inst, Lane, Op, Ty, Value};

/// Operations on halves that are looked through for lanes that they make together.
const DEPTH: usize = 3;
/// Operations that a part of a word is followed through.
const FOLLOWED: usize = 6;
/// Lanes of a vector of 64-bit ones.
const MOST: u16 = 32;

/// The 64-bit lanes with these halves: lanes that are there, constants, or the operation that made both halves, on such lanes.
pub(super) fn together(r: &mut Rewriter, low: Value, high: Value) -> Option<Value> {
    both(r, low, high, DEPTH)
}

fn both(r: &mut Rewriter, low: Value, high: Value, depth: usize) -> Option<Value> {
    let (low, high) = (r.f.resolve(low), r.f.resolve(high));
    if let (Some((x, false)), Some((y, true))) = (half_of(r.f, low), half_of(r.f, high))
        && let Some(whole) = with_halves(r.f, x, y)
    {
        return Some(whole);
    }
    if let Some((x, true)) = half_of(r.f, high)
        && is_low_half(r.f, low, x, DEPTH)
    {
        return Some(x);
    }
    let ty = r.f.ty(low);
    if ty.lane != Lane::I32 || ty.is_scalar() || ty.lanes > MOST || r.f.ty(high) != ty {
        return None;
    }
    let wide = Ty::vector(Lane::I64, ty.lanes);
    if let (Some(l), Some(h)) = (const_lanes(r.f, low), const_lanes(r.f, high)) {
        let lanes = l.iter().zip(h).map(|(l, h)| l | h << 32).collect();
        return Some(r.emit(lanes_op(lanes), Vec::new(), wide));
    }
    if let Some(whole) = changed(r, low, high, false).or_else(|| changed(r, high, low, true)) {
        return Some(whole);
    }
    if let Some(whole) = beside(r, low, high, false).or_else(|| beside(r, high, low, true)) {
        return Some(whole);
    }
    if let Some(whole) = of_extended(r, low, high) {
        return Some(whole);
    }
    if low == high
        && let Some((mask, is_clear)) = spread_mask(r.f, low)
    {
        if matches!(r.f.def_inst(low), Some(d) if d.op != Op::Select) {
            return Some(r.emit(Op::Convert(Conv::SExt), vec![mask], wide));
        }
        let [ones, zero] = [u64::MAX, 0].map(|bits| r.constant(wide, bits));
        let [set, clear] = if is_clear { [zero, ones] } else { [ones, zero] };
        return Some(r.emit(Op::Select, vec![mask, set, clear], wide));
    }
    let signs = binary(r.f, high, BinOp::AShr).filter(|&(x, _)| r.f.resolve(x) == low);
    if signs.is_some_and(|(_, by)| uniform_const(r.f, r.f.resolve(by)) == Some(31)) {
        return Some(r.emit(Op::Convert(Conv::SExt), vec![low], wide));
    }
    if let Some(scalar) = both_scalars(r, low, high) {
        return Some(r.emit(Op::Splat, vec![scalar], wide));
    }
    let (l, h) = (r.f.def_inst(low)?, r.f.def_inst(high)?);
    let bitwise = matches!(l.op, Op::Binary(BinOp::And | BinOp::Or | BinOp::Xor));
    let takes = matches!(l.op, Op::Select | Op::Shuffle(_));
    if l.op != h.op || !bitwise && !takes || depth == 0 {
        return None;
    }
    let op = l.op.clone();
    let pairs: Vec<(Value, Value)> = l.args.iter().copied().zip(h.args.iter().copied()).collect();
    let mut args = Vec::with_capacity(pairs.len());
    for (l, h) in pairs {
        let (l, h) = (r.f.resolve(l), r.f.resolve(h));
        args.push(match r.f.ty(l).lane {
            Lane::I1 if l == h => l,
            Lane::I1 => return None,
            _ => both(r, l, h, depth - 1)?,
        });
    }
    Some(r.emit(op, args, wide))
}

/// The scalar of 64 bits of which all lanes have the halves.
fn both_scalars(r: &mut Rewriter, low: Value, high: Value) -> Option<Value> {
    let scalar = |v| {
        let data = r.f.def_inst(v).filter(|d| d.op == Op::Splat)?;
        Some(r.f.resolve(data.args[0]))
    };
    let halves = [scalar(low)?, scalar(high)?];
    if let [Some((x, false)), Some((y, true))] = halves.map(|v| scalar_half(r.f, v))
        && x == y
    {
        return Some(x);
    }
    let ty = Ty::scalar(Lane::I64);
    let [low, high] = halves.map(|half| r.emit(Op::Convert(Conv::ZExt), vec![half], ty));
    let count = r.constant(ty, 32);
    let high = r.emit(Op::Binary(BinOp::Shl), vec![high, count], ty);
    Some(r.emit(Op::Binary(BinOp::Or), vec![low, high], ty))
}

/// The one of two 64-bit vectors that has the low halves of the first and the high halves of the second.
fn with_halves(f: &Function, low: Value, high: Value) -> Option<Value> {
    let changes_only = |v: Value, of: Value, bits: u64| {
        let Some((op, x, c)) = with_constant(f, v) else {
            return false;
        };
        let lanes = const_lanes(f, c).unwrap_or_default();
        let unchanged = if op == BinOp::And { u64::MAX } else { 0 };
        x == of && lanes.iter().all(|c| (c ^ unchanged) & !bits == 0)
    };
    if low == high || changes_only(low, high, LOW) {
        return Some(low);
    }
    changes_only(high, low, !LOW).then_some(high)
}

/// A bitwise operation of a value and a constant.
fn with_constant(f: &Function, v: Value) -> Option<(BinOp, Value, Value)> {
    let data = f.def_inst(v)?;
    let Op::Binary(op @ (BinOp::And | BinOp::Or | BinOp::Xor)) = data.op else {
        return None;
    };
    let [a, b] = [0, 1].map(|n| f.resolve(data.args[n]));
    if const_lanes(f, b).is_some() {
        return Some((op, a, b));
    }
    const_lanes(f, a).map(|_| (op, b, a))
}

/// A 64-bit vector of which one half is another one's, and the other half was changed by a bitwise operation with a constant.
fn changed(r: &mut Rewriter, changed: Value, other: Value, is_high: bool) -> Option<Value> {
    let (x, half) = half_of(r.f, other)?;
    let (op, old, c) = with_constant(r.f, changed)?;
    if half == is_high || half_of(r.f, old) != Some((x, is_high)) {
        return None;
    }
    let unchanged = if op == BinOp::And { LOW } else { 0 };
    let lanes = const_lanes(r.f, c)?.iter().map(|bits| match is_high {
        true => bits << 32 | unchanged,
        false => bits | unchanged << 32,
    });
    let lanes = lanes.collect();
    let ty = r.f.ty(x);
    let c = r.emit(lanes_op(lanes), Vec::new(), ty);
    Some(r.emit(Op::Binary(op), vec![x, c], ty))
}

/// 64-bit lanes of which one half is another one's, and something was put to the other half by a bitwise operation; or is zero.
fn beside(r: &mut Rewriter, changed: Value, other: Value, is_high: bool) -> Option<Value> {
    if uniform_const(r.f, other) == Some(0) {
        return beside_zero(r, changed, is_high);
    }
    let (x, half) = half_of(r.f, other)?;
    if half == is_high {
        return None;
    }
    for op in [BinOp::Or, BinOp::Xor] {
        let Some((a, b)) = binary(r.f, changed, op) else {
            continue;
        };
        let (a, b) = (r.f.resolve(a), r.f.resolve(b));
        let is_old = |v| half_of(r.f, v) == Some((x, is_high));
        let put = match (is_old(a), is_old(b)) {
            (true, _) => b,
            (_, true) => a,
            _ => return None,
        };
        let ty = r.f.ty(x);
        let put = match beside_zero(r, put, is_high) {
            Some(put) => put,
            None if is_high => {
                let put = extended(r, put);
                let count = r.constant(ty, 32);
                r.emit(Op::Binary(BinOp::Shl), vec![put, count], ty)
            }
            None => extended(r, put),
        };
        return Some(r.emit(Op::Binary(op), vec![x, put], ty));
    }
    None
}

/// 64-bit lanes with these low halves beside zeros.
pub(super) fn extended(r: &mut Rewriter, low: Value) -> Value {
    let wide = r.f.ty(low).with_lane(Lane::I64);
    if let Some(lanes) = const_lanes(r.f, low) {
        let op = lanes_op(lanes.to_vec());
        return r.emit(op, Vec::new(), wide);
    }
    if let Some(whole) = beside_zero(r, low, false) {
        return whole;
    }
    let extend = Op::Convert(Conv::ZExt);
    let splat = r.f.def_inst(low).filter(|d| d.op == Op::Splat);
    let Some(scalar) = splat.map(|d| d.args[0]) else {
        return r.emit(extend, vec![low], wide);
    };
    let scalar = r.emit(extend, vec![scalar], Ty::scalar(Lane::I64));
    r.emit(Op::Splat, vec![scalar], wide)
}

/// Low and high halves that words are put together from, by shifts or by a shuffle. Both are 32-bit lanes.
pub(super) fn put_together(f: &Function, v: Value) -> Option<(Value, Value)> {
    let data = f.def_inst(v)?;
    let ty = f.ty(v);
    if ty.lane != Lane::I64 || ty.is_scalar() {
        return None;
    }
    let half = Ty::vector(Lane::I32, ty.lanes);
    if data.op == Op::Bitcast {
        return side_by_side(f, f.resolve(data.args[0]), half);
    }
    let (a, b) = binary(f, v, BinOp::Or)?;
    let extended = |v: Value| {
        let data = f.def_inst(f.resolve(v))?;
        let x = f.resolve(*data.args.first()?);
        (data.op == Op::Convert(Conv::ZExt) && f.ty(x) == half).then_some(x)
    };
    let of = |low, high| Some((extended(low)?, extended(shifted(f, high, BinOp::Shl)?)?));
    of(a, b).or_else(|| of(b, a))
}

fn side_by_side(f: &Function, v: Value, half: Ty) -> Option<(Value, Value)> {
    let parts = f.def_inst(v)?;
    let (Op::Shuffle(indices), &[low, high]) = (&parts.op, parts.args.as_slice()) else {
        return None;
    };
    let (low, high) = (f.resolve(low), f.resolve(high));
    let places = (0..half.lanes).flat_map(|k| [k, half.lanes + k]);
    let fits = f.ty(low) == half && f.ty(high) == half;
    (fits && indices.iter().copied().eq(places)).then_some((low, high))
}

/// A half of 64-bit lanes.
#[derive(Clone, Copy)]
enum Part {
    Zero,
    /// A vector of 32-bit lanes.
    Narrow(Value),
    /// The low (false) or high half of a vector.
    Half(Value, bool),
}

/// What a half of `v` is.
fn part(f: &Function, v: Value, high: bool, depth: usize) -> Part {
    let v = f.resolve(v);
    let stays = Part::Half(v, high);
    let (Some(data), Some(depth)) = (f.def_inst(v), depth.checked_sub(1)) else {
        return stays;
    };
    if let Some((low, upper)) = put_together(f, v) {
        return Part::Narrow(if high { upper } else { low });
    }
    let of = |n: usize, high| part(f, data.args[n], high, depth);
    match data.op {
        Op::Convert(Conv::ZExt) if high => Part::Zero,
        Op::Convert(Conv::ZExt) if f.ty(data.args[0]).lane == Lane::I32 => {
            Part::Narrow(f.resolve(data.args[0]))
        }
        Op::Binary(BinOp::Shl) if shifted(f, v, BinOp::Shl).is_some() => match high {
            true => of(0, false),
            false => Part::Zero,
        },
        Op::Binary(BinOp::LShr) if shifted(f, v, BinOp::LShr).is_some() => match high {
            true => Part::Zero,
            false => of(0, true),
        },
        Op::Binary(BinOp::And) => {
            let c = uniform_const(f, f.resolve(data.args[1]));
            match c.map(|c| if high { c >> 32 } else { c & LOW }) {
                Some(0) => Part::Zero,
                Some(LOW) => of(0, high),
                _ => stays,
            }
        }
        Op::Binary(BinOp::Or) => match (of(0, high), of(1, high)) {
            (Part::Zero, x) | (x, Part::Zero) => x,
            _ => stays,
        },
        _ => stays,
    }
}

/// Replaces words that were put together half by half, maybe over older ones, by words that are there or that are made in one go.
pub(super) fn run(f: &mut Function) -> usize {
    replace_results(f, |r, i| {
        let v = rewritten(r, i)?;
        (v != r.f.inst(i).results[0]).then_some(v)
    })
}

fn rewritten(r: &mut Rewriter, i: Inst) -> Option<Value> {
    let data = r.f.inst(i);
    let v = *data.results.first()?;
    let ty = r.f.ty(v);
    if data.op != Op::Binary(BinOp::Or) || ty.lane != Lane::I64 || ty.is_scalar() {
        return None;
    }
    let parts = [part(r.f, v, false, FOLLOWED), part(r.f, v, true, FOLLOWED)];
    match parts {
        [Part::Half(x, false), Part::Half(y, true)] if x == y => return (x != v).then_some(x),
        [Part::Half(x, false), _] | [_, Part::Half(x, true)] if x == v => return None,
        _ => {}
    }
    let [low, high] = parts.map(|part| narrow(r, part, ty));
    if let Some(whole) = together(r, low, high) {
        return Some(whole);
    }
    let narrow = parts.iter().all(|part| matches!(part, Part::Narrow(_)));
    if !narrow || put_together(r.f, v).is_some() {
        return None;
    }
    let [low, high] = [low, high].map(|half| r.emit(Op::Convert(Conv::ZExt), vec![half], ty));
    let count = r.constant(ty, 32);
    let high = r.emit(Op::Binary(BinOp::Shl), vec![high, count], ty);
    Some(r.emit(Op::Binary(BinOp::Or), vec![low, high], ty))
}

/// The half as a vector.
fn narrow(r: &mut Rewriter, part: Part, ty: Ty) -> Value {
    let half = Ty::vector(Lane::I32, ty.lanes);
    match part {
        Part::Zero => r.constant(half, 0),
        Part::Narrow(v) => v,
        Part::Half(x, high) => {
            let mut x = x;
            if high {
                let count = r.constant(ty, 32);
                x = r.emit(Op::Binary(BinOp::LShr), vec![x, count], ty);
            }
            r.emit(Op::Convert(Conv::Trunc), vec![x], half)
        }
    }
}

/// The sum of extended lanes, of which these are the low halves, and the carry is all of the high ones.
fn of_extended(r: &mut Rewriter, low: Value, high: Value) -> Option<Value> {
    for borrows in [false, true] {
        let mut found = with_carry(r.f, high, (borrows, false), 1).into_iter();
        let Some((carry, _)) = found.find(|(_, terms)| terms.is_empty()) else {
            continue;
        };
        let same = match borrows {
            true => subtracted(r.f, low) == Some(carry.of),
            false => carry.low == Some(low),
        };
        let (Some(x), true) = (carry.of.0, same) else {
            continue;
        };
        let (x, y) = (extended(r, x), extended(r, carry.of.1));
        let op = if borrows { BinOp::Sub } else { BinOp::Add };
        let wide = r.f.ty(x);
        return Some(r.emit(Op::Binary(op), vec![x, y], wide));
    }
    None
}

/// 64-bit lanes that were shifted by more than a half: one half is shifted, and the other one is zero.
fn beside_zero(r: &mut Rewriter, v: Value, high: bool) -> Option<Value> {
    let (op, x, by) = shift(r.f, v)?;
    let (whole, of_high) = half_of(r.f, x)?;
    let wanted = if high { BinOp::Shl } else { BinOp::LShr };
    (op == wanted && of_high != high).then(|| shift_by(r, op, whole, HALF + by))
}

/// A shift of all lanes by a constant.
pub(super) fn shift_by(r: &mut Rewriter, op: BinOp, x: Value, by: u64) -> Value {
    let ty = r.f.ty(x);
    let by = r.constant(ty, by);
    r.emit(Op::Binary(op), vec![x, by], ty)
}

/// The low or the high halves.
pub(super) fn half(r: &mut Rewriter, whole: Value, high: bool) -> Value {
    let narrow = r.f.ty(whole).with_lane(Lane::I32);
    let whole = match high {
        true => shift_by(r, BinOp::LShr, whole, HALF),
        false => whole,
    };
    r.emit(Op::Convert(Conv::Trunc), vec![whole], narrow)
}
