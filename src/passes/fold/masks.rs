//! Selects and reductions of masks.

use super::super::edit::{Rewriter, unary as un, uniform_const};
use super::{Action, Subject};
use crate::ssa::{BinOp, Function, Op, UnOp, Value};
use Action::{Become, Same};

pub(super) fn select(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let (m, a, b) = (s.args[0], s.args[1], s.args[2]);
    if a == b {
        return Some(Same(a));
    }
    match uniform_const(r.f, m) {
        Some(0) => return Some(Same(b)),
        Some(_) => return Some(Same(a)),
        None => {}
    }
    if let Some(not) = un(r.f, m, UnOp::Not) {
        return Some(Become(Op::Select, vec![not, b, a]));
    }
    if let Some((set, _)) = select_under(r.f, a, m) {
        return Some(Become(Op::Select, vec![m, set, b]));
    }
    if let Some((_, clear)) = select_under(r.f, b, m) {
        return Some(Become(Op::Select, vec![m, a, clear]));
    }
    if s.ty != r.f.ty(m) {
        return None;
    }
    of_masks(r, s, m, a, b)
}

/// The two sides of `v` if it selects by the same mask.
fn select_under(f: &Function, v: Value, m: Value) -> Option<(Value, Value)> {
    let data = f.def_inst(v).filter(|d| d.op == Op::Select)?;
    (data.args[0] == m).then(|| (data.args[1], data.args[2]))
}

/// Selects between masks are mask algebra when one side is constant or the condition.
fn of_masks(r: &mut Rewriter, s: &Subject, m: Value, a: Value, b: Value) -> Option<Action> {
    let and = |x, y| Some(Become(Op::Binary(BinOp::And), vec![x, y]));
    let or = |x, y| Some(Become(Op::Binary(BinOp::Or), vec![x, y]));
    match (uniform_const(r.f, a), uniform_const(r.f, b)) {
        (Some(1), Some(0)) => return Some(Same(m)),
        (Some(0), Some(1)) => return Some(Become(Op::Unary(UnOp::Not), vec![m])),
        (_, Some(0)) => return and(m, a),
        (Some(1), _) => return or(m, b),
        (Some(0), _) => {
            let not = r.emit(Op::Unary(UnOp::Not), vec![m], s.ty);
            return and(b, not);
        }
        (_, Some(1)) => {
            let not = r.emit(Op::Unary(UnOp::Not), vec![m], s.ty);
            return or(a, not);
        }
        _ => {}
    }
    if a == m {
        return or(m, b);
    }
    if b == m {
        return and(m, a);
    }
    None
}

pub(super) fn reduce(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let x = s.args[0];
    let data = r.f.def_inst(x)?;
    let inner = data.args.first().copied();
    match (&s.op, &data.op) {
        (Op::MaskAny | Op::MaskAll, _) if r.f.ty(x).is_scalar() => Some(Same(x)),
        (Op::MaskAny | Op::MaskAll, Op::Splat) => inner.map(Same),
        (Op::MaskAny, Op::Unary(UnOp::Not)) => {
            let all = r.emit(Op::MaskAll, vec![inner?], s.ty);
            Some(Become(Op::Unary(UnOp::Not), vec![all]))
        }
        (Op::BitsToMask, Op::MaskToBits) if r.f.ty(inner?) == s.ty => inner.map(Same),
        (Op::MaskToBits, Op::BitsToMask) => {
            let lanes = r.f.ty(x).lanes;
            let low = r.constant(s.ty, u64::MAX >> (64 - lanes));
            Some(Become(Op::Binary(BinOp::And), vec![inner?, low]))
        }
        _ => None,
    }
}
