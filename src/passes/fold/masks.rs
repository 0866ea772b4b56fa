//! Selects, comparisons of what masks select, and reductions of masks.

use super::super::edit::{Rewriter, unary as un, uniform_const};
use super::{Action, Subject};
use crate::ssa::{BinOp, Function, ICond, Op, Ty, UnOp, Value, eval};
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

/// Selects, one in another, that a comparison is looked for behind.
const CHOICES: usize = 4;

/// A comparison with a constant of what a mask chooses, where that is another constant for some lanes, is mask algebra. Compilers keep
/// conditions in registers so: `or` of two is a select of 1 under one where the other has chosen 1 or 0. What is compared in another way
/// with a value that is not known may be a part of a minimum or a maximum.
pub(super) fn compared(r: &mut Rewriter, s: &Subject, with: (ICond, Value)) -> Option<Action> {
    let (_, a, b) = choice(r.f, s.args[0], s.ty)?;
    let both = [a, b].iter().all(|&v| uniform_const(r.f, v).is_some());
    if !both && !matches!(with.0, ICond::Eq | ICond::Ne) {
        return None;
    }
    Some(Same(holds(r, s.args[0], s.ty, with, CHOICES)))
}

/// Mask and sides of a select of which one is a constant.
fn choice(f: &Function, v: Value, masks: Ty) -> Option<(Value, Value, Value)> {
    let data = f.def_inst(v).filter(|d| d.op == Op::Select)?;
    let [m, a, b] = *data.args.as_slice() else {
        return None;
    };
    let known = [a, b].into_iter().any(|v| uniform_const(f, v).is_some());
    (known && f.ty(m) == masks).then_some((m, a, b))
}

/// The mask of lanes for which `v` compares so.
fn holds(r: &mut Rewriter, v: Value, ty: Ty, with: (ICond, Value), depth: usize) -> Value {
    if let Some(known) = known(r.f, v, with) {
        return r.constant(ty, known.into());
    }
    let Some((m, a, b)) = choice(r.f, v, ty).filter(|_| depth > 0) else {
        return r.emit(Op::ICmp(with.0), vec![v, with.1], ty);
    };
    let not = |r: &mut Rewriter| r.emit(Op::Unary(UnOp::Not), vec![m], ty);
    let (op, under, other) = match (known(r.f, a, with), known(r.f, b, with)) {
        (Some(x), Some(y)) if x == y => return r.constant(ty, x.into()),
        (Some(true), Some(false)) => return m,
        (Some(false), Some(true)) => return not(r),
        (Some(true), _) => (BinOp::Or, m, b),
        (Some(false), _) => (BinOp::And, not(r), b),
        (_, Some(true)) => (BinOp::Or, not(r), a),
        _ => (BinOp::And, m, a),
    };
    let other = holds(r, other, ty, with, depth - 1);
    r.emit(Op::Binary(op), vec![under, other], ty)
}

/// How a constant compares.
fn known(f: &Function, v: Value, (cond, with): (ICond, Value)) -> Option<bool> {
    let scalar = Ty::scalar(f.ty(v).lane);
    let (x, y) = (uniform_const(f, v)?, uniform_const(f, with)?);
    let holds = eval::pure_op(&Op::ICmp(cond), &[(scalar, &[x]), (scalar, &[y])], Ty::BOOL);
    Some(holds == [1])
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
