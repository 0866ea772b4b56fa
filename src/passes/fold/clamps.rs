//! Saturating sums and differences, from how compilers write them where there is no instruction.
//!
//! An unsigned sum wrapped exactly if it is less than either operand, which is if one operand is above the complement of the other; a difference,
//! if the first operand is below the second. Where neither is chosen by that, bytes and shorts are extended first, so that nothing wraps, and the
//! result is clamped.
//!
//! Saturating sums of signed numbers that wrap are in [`super::saturated`].

use super::super::edit::{Rewriter, binary as bin, unary as un, uniform_const};
use super::{Action, Subject, narrow, range};
use crate::ssa::{BinOp, Conv, Function, ICond, Lane, Op, Ty, UnOp, Value};

/// A saturating operation and its operands.
type Found = (BinOp, Value, By);

/// A second operand.
#[derive(Clone, Copy)]
enum By {
    Value(Value),
    /// What was added instead.
    Minus(Value),
    Const(u64),
}

/// Bounds of a clamp that are looked through.
const BOUNDS: usize = 4;

/// `wrapped ? bound : sum`.
pub(super) fn select(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let &[mask, set, clear] = s.args.as_slice() else {
        return None;
    };
    if s.ty.lane.is_float() || s.ty.lane == Lane::I1 || s.ty.is_scalar() {
        return None;
    }
    let ones = s.ty.lane.mask();
    for (bound, result, wraps) in [(set, clear, true), (clear, set, false)] {
        let found = match uniform_const(r.f, bound) {
            Some(0) => difference(r.f, mask, result, wraps),
            Some(c) if c == ones => sum(r.f, mask, result, wraps),
            _ => None,
        };
        if let Some(found) = found {
            return Some(made(r, s, found));
        }
    }
    None
}

fn made(r: &mut Rewriter, s: &Subject, (op, a, b): Found) -> Action {
    let b = match b {
        By::Value(b) => b,
        By::Minus(b) => r.emit(Op::Unary(UnOp::Neg), vec![b], s.ty),
        By::Const(bits) => r.constant(s.ty, bits),
    };
    Action::Become(Op::Binary(op), vec![a, b])
}

/// The operands, if `mask` is set exactly where this sum wraps, or exactly where it does not.
fn sum(f: &Function, mask: Value, sum: Value, wraps: bool) -> Option<Found> {
    let (a, b) = bin(f, sum, BinOp::Add)?;
    let (a, b) = (f.resolve(a), f.resolve(b));
    let mask = match wraps {
        true => mask,
        false => without_bound(f, mask, sum),
    };
    let says = above(f, mask, wraps).is_some_and(|(x, y)| {
        let operand = |v| v == a || v == b;
        operand(x) && y == sum || complement_of(f, y, x, (a, b))
    });
    (says || carried(f, mask, (a, b), wraps)).then_some((BinOp::UAddSat, a, By::Value(b)))
}

/// `mask` without `sum < ones`, as it is the same which of the two is chosen where they are equal.
fn without_bound(f: &Function, mask: Value, sum: Value) -> Value {
    let ones = f.ty(sum).lane.mask();
    let is_less = |v: Value| {
        let data = f.def_inst(v);
        data.is_some_and(|d| {
            matches!(d.op, Op::ICmp(ICond::Ult | ICond::Ne))
                && d.args[0] == sum
                && uniform_const(f, d.args[1]) == Some(ones)
        })
    };
    match bin(f, mask, BinOp::And) {
        Some((a, b)) if is_less(a) => b,
        Some((a, b)) if is_less(b) => a,
        _ => mask,
    }
}

/// True if one operand is `x`, and `y` is the complement of the other.
fn complement_of(f: &Function, y: Value, x: Value, (a, b): (Value, Value)) -> bool {
    let ones = f.ty(x).lane.mask();
    let complement = |b: Value| match (uniform_const(f, y), uniform_const(f, b)) {
        (Some(y), Some(b)) => y ^ b == ones,
        _ => un(f, y, UnOp::Not) == Some(b) || un(f, b, UnOp::Not) == Some(y),
    };
    x == a && complement(b) || x == b && complement(a)
}

/// True if the mask says whether the sum of extended operands has a carry.
fn carried(f: &Function, mask: Value, (a, b): (Value, Value), wraps: bool) -> bool {
    let cond = if wraps { ICond::Ne } else { ICond::Eq };
    let carry = || {
        let test = f.def_inst(mask).filter(|d| d.op == Op::ICmp(cond))?;
        let none = uniform_const(f, test.args[1]) == Some(0);
        let cut = f.def_inst(test.args[0]).filter(|_| none)?;
        let shifted = match cut.op {
            Op::Convert(Conv::Trunc) => cut.args[0],
            _ => test.args[0],
        };
        let (wide, by) = bin(f, shifted, BinOp::LShr)?;
        let width = f.ty(a).lane.bits();
        // The carry is the lowest bit of what is tested.
        (uniform_const(f, by) == Some(width.into())).then_some(())?;
        let (x, y) = bin(f, wide, BinOp::Add)?;
        let extended = |v: Value| {
            let data = f.def_inst(v)?;
            (data.op == Op::Convert(Conv::ZExt)).then(|| f.resolve(data.args[0]))
        };
        Some((extended(x)?, extended(y)?))
    };
    carry().is_some_and(|found| found == (a, b) || found == (b, a))
}

/// The operands, if `mask` is set exactly where this difference wraps, or exactly where it does not. Where they are equal, it may be either.
fn difference(f: &Function, mask: Value, v: Value, wraps: bool) -> Option<Found> {
    if let Some((a, b)) = bin(f, v, BinOp::Sub) {
        return is_below(f, mask, (a, b), v, wraps).then_some((BinOp::USubSat, a, By::Value(b)));
    }
    let (a, b) = bin(f, v, BinOp::Add)?;
    if let Some(minus) = uniform_const(f, b) {
        let by = minus.wrapping_neg() & f.ty(v).lane.mask();
        let least = least_above(f, mask, a, wraps);
        let below = above(f, mask, wraps) == Some((v, a))
            || least == Some(u128::from(by))
            || least == Some(u128::from(by) + 1);
        return (below && by != 0).then_some((BinOp::USubSat, a, By::Const(by)));
    }
    let orders = [(a, b), (b, a)];
    let negated = orders.into_iter().find_map(|(a, b)| {
        let b = un(f, b, UnOp::Neg)?;
        is_below(f, mask, (a, b), v, wraps).then_some((BinOp::USubSat, a, By::Value(b)))
    });
    // A sum with what is not zero is above the other operand exactly if it does not wrap: then the difference does.
    let above = above(f, mask, wraps);
    let summed = |(a, b)| {
        (above == Some((f.resolve(v), f.resolve(a)))).then_some((BinOp::USubSat, a, By::Minus(b)))
    };
    negated.or_else(|| orders.into_iter().find_map(summed))
}

/// An unsigned minimum of a constant, all of whose low bits are set, and a sum of two numbers that are not above it: a saturating sum.
pub(super) fn bounded(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let most = uniform_const(r.f, s.args[1])?;
    // Processors have no saturating sums of wider lanes.
    let short = narrow::lane_of(most).filter(|&lane| lane != Lane::I32)?;
    if s.ty.is_scalar() || short.bits() >= s.ty.lane.bits() {
        return None;
    }
    let (a, b) = bin(r.f, s.args[0], BinOp::Add)?;
    let ty = s.ty.with_lane(short);
    let extended = |v: Value| {
        let data = r.f.def_inst(v);
        data.is_some_and(|d| d.op == Op::Convert(Conv::ZExt) && r.f.ty(d.args[0]) == ty)
    };
    let fits = |v: Value| range::most(r.f, v) <= most;
    // Cutting off one of them takes an operation, which is saved again.
    if !(extended(a) || extended(b)) || !fits(a) || !fits(b) {
        return None;
    }
    let cut = |r: &mut Rewriter, v| r.emit(Op::Convert(Conv::Trunc), vec![v], ty);
    let args = vec![cut(r, a), cut(r, b)];
    let sum = r.emit(Op::Binary(BinOp::UAddSat), args, ty);
    Some(Action::Become(Op::Convert(Conv::ZExt), vec![sum]))
}

/// True if a mask says that `a` is below `b`, or not: by comparing them, or their difference `v` with `a`.
fn is_below(f: &Function, mask: Value, (a, b): (Value, Value), v: Value, wraps: bool) -> bool {
    let (a, b) = (f.resolve(a), f.resolve(b));
    let compared = above(f, mask, wraps);
    let or_equal = above(f, mask, !wraps);
    compared == Some((b, a)) || compared == Some((v, a)) || or_equal == Some((a, b))
}

/// The least number that `a` is where a mask of its comparison with a constant is clear, if that is so for all greater ones; or where it is set.
fn least_above(f: &Function, mask: Value, a: Value, clear: bool) -> Option<u128> {
    let data = f.def_inst(mask)?;
    let (Op::ICmp(cond), &[x, y]) = (&data.op, data.args.as_slice()) else {
        return None;
    };
    let c = u128::from(uniform_const(f, y).filter(|_| f.resolve(x) == f.resolve(a))?);
    match (cond, clear) {
        (ICond::Ult, true) | (ICond::Uge, false) => Some(c),
        (ICond::Ule, true) | (ICond::Ugt, false) => Some(c + 1),
        (ICond::Eq, true) | (ICond::Ne, false) if c == 0 => Some(1),
        _ => None,
    }
}

/// `x` and `y` if the mask is set exactly where `x` is above `y`, or exactly where it is not.
fn above(f: &Function, mask: Value, set: bool) -> Option<(Value, Value)> {
    let data = f.def_inst(mask)?;
    let (Op::ICmp(cond), &[x, y]) = (&data.op, data.args.as_slice()) else {
        return None;
    };
    let (x, y) = (f.resolve(x), f.resolve(y));
    match (cond, set) {
        (ICond::Ugt, true) | (ICond::Ule, false) => Some((x, y)),
        (ICond::Ult, true) | (ICond::Uge, false) => Some((y, x)),
        _ => None,
    }
}

/// A sum of extended numbers, clamped to what fits before the extension and cut off.
pub(super) fn cut_off(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    if s.ty.is_scalar() || matches!(s.ty.lane, Lane::I1 | Lane::I64) {
        return None;
    }
    let (sum, least, most) = clamped(r.f, s.args[0])?;
    let wide = r.f.ty(sum).lane;
    for signed in [false, true] {
        let Some((op, a, b)) = sum_of_extended(r.f, sum, s.ty, signed) else {
            continue;
        };
        // What the sum can be, and what fits.
        let ones = i128::from(s.ty.lane.mask());
        let (low, high) = match signed {
            true => (-(ones >> 1) - 1, ones >> 1),
            false => (0, ones),
        };
        let (smallest, largest) = match op {
            BinOp::UAddSat => (0, 2 * ones),
            BinOp::USubSat => (-ones, ones),
            _ => (-ones - 1, ones),
        };
        let within = |bound: i128| bound.clamp(smallest, largest);
        debug_assert!(wide.bits() > s.ty.lane.bits(), "it was extended");
        if within(least) == within(low) && within(most) == within(high) {
            return Some(made(r, s, (op, a, b)));
        }
    }
    None
}

/// What is clamped, and the signed bounds.
fn clamped(f: &Function, v: Value) -> Option<(Value, i128, i128)> {
    let lane = f.ty(v).lane;
    let mut bounds = Vec::new();
    let mut inner = v;
    for _ in 0..BOUNDS {
        let Some(data) = f.def_inst(inner) else {
            break;
        };
        let (Op::Binary(op), &[x, c]) = (&data.op, data.args.as_slice()) else {
            break;
        };
        let Some(c) = uniform_const(f, c).filter(|_| op.is_bound()) else {
            break;
        };
        bounds.push((*op, i128::from(lane.sign_extend(c))));
        inner = f.resolve(x);
    }
    let (mut least, mut most) = (i128::MIN, i128::MAX);
    let never_negative = extends_positive(f, inner);
    for &(op, c) in bounds.iter().rev() {
        // Unsigned bounds are signed ones of numbers that are not negative. Numbers that a bound made negative are no clamp of such.
        let positive = c >= 0 && (least >= 0 || never_negative);
        match op {
            BinOp::SMin => (least, most) = (least.min(c), most.min(c)),
            BinOp::SMax => (least, most) = (least.max(c), most.max(c)),
            BinOp::UMin if positive => (least, most) = (least.min(c), most.min(c)),
            BinOp::UMax if positive => (least, most) = (least.max(c), most.max(c)),
            _ => return None,
        }
    }
    (!bounds.is_empty()).then_some((inner, least, most))
}

/// True for sums of numbers that were extended with zeros, so far that the sum is no negative number of the wider type.
fn extends_positive(f: &Function, sum: Value) -> bool {
    let wide = f.ty(sum).lane.bits();
    let is_short = |v: Value| match (uniform_const(f, v), f.def_inst(v)) {
        (Some(c), _) => c < 1 << (wide - 2),
        (None, Some(d)) if d.op == Op::Convert(Conv::ZExt) => {
            f.ty(d.args[0]).lane.bits() + 2 <= wide
        }
        _ => false,
    };
    bin(f, sum, BinOp::Add).is_some_and(|(a, b)| is_short(a) && is_short(b))
}

/// The operands before their extension, of a sum that is exact.
fn sum_of_extended(f: &Function, sum: Value, ty: Ty, signed: bool) -> Option<Found> {
    let (add, sub, extend) = match signed {
        true => (BinOp::SAddSat, BinOp::SSubSat, Conv::SExt),
        false => (BinOp::UAddSat, BinOp::USubSat, Conv::ZExt),
    };
    let extended = |v: Value| {
        let data = f.def_inst(v).filter(|d| d.op == Op::Convert(extend))?;
        let x = f.resolve(data.args[0]);
        (f.ty(x) == ty).then_some(x)
    };
    if let Some((a, b)) = bin(f, sum, BinOp::Sub) {
        return Some((sub, extended(a)?, By::Value(extended(b)?)));
    }
    let (a, b) = bin(f, sum, BinOp::Add)?;
    if let Some(c) = uniform_const(f, b) {
        let (c, ones) = (f.ty(sum).lane.sign_extend(c), ty.lane.mask() as i64);
        let (op, by, fits) = match signed {
            true => (
                add,
                c as u64 & ty.lane.mask(),
                ty.lane.sign_extend(c as u64) == c,
            ),
            false if c < 0 => (sub, c.wrapping_neg() as u64, c >= -ones),
            false => (add, c as u64, c <= ones),
        };
        return fits.then_some((op, extended(a)?, By::Const(by)));
    }
    match (un(f, a, UnOp::Neg), un(f, b, UnOp::Neg)) {
        (_, Some(b)) => Some((sub, extended(a)?, By::Value(extended(b)?))),
        (Some(a), _) => Some((sub, extended(b)?, By::Value(extended(a)?))),
        _ => Some((add, extended(a)?, By::Value(extended(b)?))),
    }
}
