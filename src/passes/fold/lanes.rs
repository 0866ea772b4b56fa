//! Splats, lanes, shuffles and bitcasts.

use super::super::edit::{Rewriter, const_lanes, const_op, lanes_op, uniform_const};
use super::{Action, Subject, bytes};
use crate::ssa::{BinOp, Conv, Function, Input, Lane, Op, Ty, Value};
use Action::{Become, Same, Uniform};

/// Depth to which lanes are followed through shuffles.
const DEPTH: usize = 8;

pub(super) fn lanes(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let x = s.args[0];
    match &s.op {
        Op::Bitcast if r.f.ty(x) == s.ty => Some(Same(x)),
        Op::Bitcast => match operand(r.f, x, &Op::Bitcast) {
            Some(inner) => Some(Become(Op::Bitcast, vec![inner])),
            None => bytes::permuted(r, x),
        },
        Op::Splat if s.ty.is_scalar() => Some(Same(x)),
        Op::Splat => {
            let bits = uniform_const(r.f, x)?;
            Some(Become(const_op(s.ty, bits), Vec::new()))
        }
        Op::ExtractLane(k) => extract(r, s, *k),
        Op::InsertLane(k) => insert(r.f, s, *k),
        Op::Shuffle(indices) => shuffle(r, s, indices),
        _ => None,
    }
}

fn operand(f: &Function, v: Value, op: &Op) -> Option<Value> {
    let data = f.def_inst(v).filter(|d| d.op == *op)?;
    data.args.first().copied()
}

fn extract(r: &mut Rewriter, s: &Subject, k: u16) -> Option<Action> {
    let x = s.args[0];
    if r.f.ty(x).is_scalar() {
        return Some(Same(x));
    }
    let data = r.f.def_inst(x)?;
    match &data.op {
        Op::Splat => Some(Same(data.args[0])),
        Op::Bitcast => part(r, data.args[0], s.ty, k),
        Op::VecConst(bits) => bits.get(usize::from(k)).map(|&b| Uniform(b)),
        Op::InsertLane(at) if *at == k => Some(Same(data.args[1])),
        Op::InsertLane(_) => Some(Become(s.op.clone(), vec![data.args[0]])),
        Op::Input(Input::LocalIds { dim, first }) => {
            let lane = u8::try_from(k).ok()?.checked_add(*first)?;
            let input = Input::LocalId { dim: *dim, lane };
            Some(Become(Op::Input(input), Vec::new()))
        }
        Op::Shuffle(indices) => {
            let (from, lane) = source(r.f, &data.args, *indices.get(usize::from(k))?)?;
            Some(if r.f.ty(from).is_scalar() {
                Same(from)
            } else {
                Become(Op::ExtractLane(lane), vec![from])
            })
        }
        _ => None,
    }
}

/// Lane `k` of an integer that is seen as a vector: its bits as a number, like those that a mask leaves. Both forms stand beside each
/// other where an unsigned short is divided.
fn part(r: &mut Rewriter, whole: Value, ty: Ty, k: u16) -> Option<Action> {
    let from = r.f.ty(whole);
    if !from.is_scalar() || from.lane.is_float() || ty.lane.is_float() {
        return None;
    }
    let mut at = whole;
    if k != 0 {
        let count = r.constant(from, u64::from(k) * u64::from(ty.lane.bits()));
        at = r.emit(Op::Binary(BinOp::LShr), vec![whole, count], from);
    }
    Some(Become(Op::Convert(Conv::Trunc), vec![at]))
}

fn insert(f: &Function, s: &Subject, k: u16) -> Option<Action> {
    if s.ty.is_scalar() {
        return Some(Same(s.args[1]));
    }
    // Putting back what is there already.
    let data = f.def_inst(s.args[1])?;
    let same = data.op == Op::ExtractLane(k) && data.args[0] == s.args[0];
    same.then(|| Same(s.args[0]))
}

/// The operand and its lane that lane `i` of the concatenation is.
fn source(f: &Function, args: &[Value], i: u16) -> Option<(Value, u16)> {
    let mut i = i;
    for &a in args {
        let lanes = f.ty(a).lanes;
        if i < lanes {
            return Some((a, i));
        }
        i -= lanes;
    }
    None
}

fn shuffle(r: &mut Rewriter, s: &Subject, indices: &[u16]) -> Option<Action> {
    if let (&[k], &[a]) = (indices, s.args.as_slice()) {
        return Some(Become(Op::ExtractLane(k), vec![a]));
    }
    let direct: Vec<(Value, u16)> = indices
        .iter()
        .map(|&i| source(r.f, &s.args, i))
        .collect::<Option<_>>()?;
    if let Some(lanes) = direct.iter().map(|&at| known(r.f, at)).collect() {
        return Some(Become(lanes_op(lanes), Vec::new()));
    }
    if let Some(action) = half_mask(r, s, indices) {
        return Some(action);
    }
    let traced: Vec<(Value, u16)> = direct.iter().map(|&at| through(r.f, at)).collect();
    if let Some(action) = whole(r, s, &traced) {
        return Some(action);
    }
    if let Some(part) = part_of_view(r.f, s, &traced) {
        return Some(Become(Op::Bitcast, vec![part]));
    }
    // Through other shuffles if no more than two vectors come out of it; else only drop what is unused.
    for lanes in [&traced, &direct] {
        if let Some((args, new)) = two_sources(r.f, lanes)
            && (args != s.args || *new != *indices)
        {
            return Some(Become(Op::Shuffle(new), args));
        }
    }
    overwritten(r, s, &direct)
}

/// One of the vectors that were put together, of which the lanes are a view: lanes of 64 bits are often made of two halves.
fn part_of_view(f: &Function, s: &Subject, lanes: &[(Value, u16)]) -> Option<Value> {
    let &(view, start) = lanes.first()?;
    let in_order = |(&at, i)| at == (view, i);
    if s.ty.lane == Lane::I1
        || f.ty(view).lane == Lane::I1
        || !lanes.iter().zip(start..).all(in_order)
    {
        return None;
    }
    let view = f.def_inst(view).filter(|data| data.op == Op::Bitcast)?;
    let whole = f.def_inst(view.args[0])?;
    let Op::Shuffle(indices) = &whole.op else {
        return None;
    };
    let count: u16 = whole.args.iter().map(|&v| f.ty(v).lanes).sum();
    if f.ty(whole.args[0]).lane == Lane::I1 || !indices.iter().copied().eq(0..count) {
        return None;
    }
    let mut at = u32::from(start) * s.ty.lane.bits();
    whole.args.iter().copied().find(|&part| {
        let bytes = f.ty(part).bytes();
        let found = at == 0 && bytes == s.ty.bytes();
        at = at.wrapping_sub(8 * bytes);
        found
    })
}

/// Lanes of up to four vectors that were put, one after the other, into one that nothing is left of. Compilers write 64-bit lanes in two
/// halves, and each in two parts. The older vector, maybe one of the last round of a loop, is not needed then.
fn overwritten(r: &mut Rewriter, s: &Subject, direct: &[(Value, u16)]) -> Option<Action> {
    let (mut passed, mut operands) = (Vec::new(), s.args.clone());
    let mut lanes = Vec::with_capacity(direct.len());
    for &(mut at) in direct {
        for _ in 0..DEPTH {
            let Some(data) = r.f.def_inst(at.0) else {
                break;
            };
            if !matches!(data.op, Op::Shuffle(_)) {
                break;
            }
            if !passed.contains(&at.0) {
                passed.push(at.0);
                operands.extend(&data.args);
            }
            at = through(r.f, at);
        }
        lanes.push(at);
    }
    let needed = |v: &Value| passed.contains(v) || lanes.iter().any(|(w, _)| w == v);
    if operands.iter().all(needed) {
        return None;
    }
    let (args, indices) = match two_sources(r.f, &lanes) {
        Some(found) => found,
        None => {
            let lanes = of_two(r, &lanes, s.ty)?;
            two_sources(r.f, &lanes)?
        }
    };
    Some(Become(Op::Shuffle(indices), args))
}

/// The same lanes from two vectors that are made of those at even and at odd places, or in the first and the second half.
fn of_two(r: &mut Rewriter, lanes: &[(Value, u16)], ty: Ty) -> Option<Vec<(Value, u16)>> {
    let half = lanes.len() / 2;
    if half < 2 || !lanes.len().is_multiple_of(2) {
        return None;
    }
    let splits: [fn(usize, usize) -> usize; 2] = [|n, _| n % 2, |n, half| usize::from(n >= half)];
    let (side, sides) = splits.into_iter().find_map(|side| {
        let of = |which: usize| -> Vec<(Value, u16)> {
            let lanes = lanes.iter().enumerate();
            let lanes = lanes.filter(|&(n, _)| side(n, half) == which);
            lanes.map(|(_, &at)| at).collect()
        };
        Some((side, [two_sources(r.f, &of(0))?, two_sources(r.f, &of(1))?]))
    })?;
    let ty = ty.with_lanes(half as u16); // at most those of the shuffle
    let sides = sides.map(|(args, indices)| r.emit(Op::Shuffle(indices), args, ty));
    let mut next = [0, 0];
    let lanes = (0..lanes.len()).map(|n| {
        let which = side(n, half);
        next[which] += 1;
        (sides[which], next[which] - 1)
    });
    Some(lanes.collect())
}

/// Part of `a & b` where `a` or `b` was itself put together from parts: the parts are combined
/// instead. Code split into halves makes masks whole and cuts them up again.
fn half_mask(r: &mut Rewriter, s: &Subject, indices: &[u16]) -> Option<Action> {
    let &[v] = s.args.as_slice() else {
        return None;
    };
    let data = r.f.def_inst(v)?;
    let and = Op::Binary(BinOp::And);
    let &[a, b] = data.args.as_slice() else {
        return None;
    };
    let made = |v| matches!(r.f.def_inst(v), Some(d) if matches!(d.op, Op::Shuffle(_)));
    if s.ty.lane != Lane::I1 || data.op != and || !made(a) && !made(b) {
        return None;
    }
    let [a, b] = [a, b].map(|v| r.emit(Op::Shuffle(indices.into()), vec![v], s.ty));
    Some(Become(and, vec![a, b]))
}

/// Where a lane of a shuffle or splat comes from, one step back.
pub(super) fn through(f: &Function, (v, lane): (Value, u16)) -> (Value, u16) {
    let Some(data) = f.def_inst(v) else {
        return (v, lane);
    };
    match &data.op {
        Op::Splat => (data.args[0], 0),
        Op::Shuffle(indices) => indices
            .get(usize::from(lane))
            .and_then(|&i| source(f, &data.args, i))
            .unwrap_or((v, lane)),
        _ => (v, lane),
    }
}

/// A lane that is a constant, whatever the other lanes of the shuffles are that it comes through. Compilers write the numbers of all lanes
/// to registers part by part.
fn known(f: &Function, mut at: (Value, u16)) -> Option<u64> {
    for _ in 0..DEPTH {
        if let Some(lanes) = const_lanes(f, at.0) {
            return lanes.get(usize::from(at.1)).copied();
        }
        let from = through(f, at);
        if from == at {
            return None;
        }
        at = from;
    }
    None
}

/// Shuffles that are an operand, a splat, or narrower lanes of one.
fn whole(r: &mut Rewriter, s: &Subject, lanes: &[(Value, u16)]) -> Option<Action> {
    let (v, first) = *lanes.first()?;
    if lanes.iter().any(|&(w, _)| w != v) {
        return None;
    }
    let ty = r.f.ty(v);
    if lanes.iter().all(|&(_, k)| k == first) {
        let scalar = if ty.is_scalar() {
            v
        } else {
            r.emit(Op::ExtractLane(first), vec![v], Ty::scalar(ty.lane))
        };
        return Some(Become(Op::Splat, vec![scalar]));
    }
    let in_order = lanes.iter().zip(0..).all(|(&(_, k), n)| k == n);
    if in_order && ty == s.ty {
        return Some(Same(v));
    }
    narrow_lanes(r, s, v, lanes)
}

/// Every `k`-th part of wider lanes: a truncation of the vector that the parts are a view of.
fn narrow_lanes(r: &mut Rewriter, s: &Subject, v: Value, lanes: &[(Value, u16)]) -> Option<Action> {
    let wide = operand(r.f, v, &Op::Bitcast)?;
    let (from, part) = (r.f.ty(wide), s.ty.lane);
    if from.lane.is_float() || part.is_float() || from.lanes != s.ty.lanes {
        return None;
    }
    let parts = from.lane.bits() / part.bits();
    let first = lanes.first()?.1;
    let strided = |(&(_, k), n): (&(Value, u16), u32)| u32::from(k) == u32::from(first) + n * parts;
    if parts < 2 || u32::from(first) >= parts || !lanes.iter().zip(0..).all(strided) {
        return None;
    }
    let mut from_value = wide;
    if first != 0 {
        let count = r.constant(from, u64::from(u32::from(first) * part.bits()));
        from_value = r.emit(Op::Binary(BinOp::LShr), vec![wide, count], from);
    }
    debug_assert!(part != Lane::I1, "bitcasts do not make masks");
    Some(Become(Op::Convert(Conv::Trunc), vec![from_value]))
}

/// Operands and indices of the same lanes from at most two vectors.
fn two_sources(f: &Function, lanes: &[(Value, u16)]) -> Option<(Vec<Value>, Box<[u16]>)> {
    let mut args: Vec<Value> = Vec::new();
    for &(v, _) in lanes {
        if !args.contains(&v) {
            args.push(v);
        }
        if args.len() > 2 {
            return None;
        }
    }
    let first = f.ty(*args.first()?).lanes;
    let index = |&(v, k): &(Value, u16)| if v == args[0] { k } else { first + k };
    let indices = lanes.iter().map(index).collect();
    Some((args, indices))
}
