//! Splats, lanes, shuffles and bitcasts.

use super::super::edit::{Rewriter, const_op, uniform_const};
use super::{Action, Subject};
use crate::ssa::{BinOp, Conv, Function, Input, Lane, Op, Ty, Value};
use Action::{Become, Same, Uniform};

pub(super) fn lanes(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let x = s.args[0];
    match &s.op {
        Op::Bitcast if r.f.ty(x) == s.ty => Some(Same(x)),
        Op::Bitcast => {
            let inner = operand(r.f, x, &Op::Bitcast)?;
            Some(Become(Op::Bitcast, vec![inner]))
        }
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
    if let Some(action) = half_mask(r, s, indices) {
        return Some(action);
    }
    let traced: Vec<(Value, u16)> = direct.iter().map(|&at| through(r.f, at)).collect();
    if let Some(action) = whole(r, s, &traced) {
        return Some(action);
    }
    // Through other shuffles if no more than two vectors come out of it; else only drop what is unused.
    for lanes in [&traced, &direct] {
        if let Some((args, new)) = two_sources(r.f, lanes)
            && (args != s.args || *new != *indices)
        {
            return Some(Become(Op::Shuffle(new), args));
        }
    }
    None
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
fn through(f: &Function, (v, lane): (Value, u16)) -> (Value, u16) {
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
