//! Integer and bitwise rules; `and`, `or`, `xor` and `not` are also mask algebra.

use super::super::edit::{
    Rewriter, binary as bin, const_lanes, spread_mask, unary as un, uniform_const,
};
use super::{Action, Subject, clamps, counts, fields, masks, narrow, offsets, range, rotates};
use crate::ssa::{BinOp, Conv, Function, ICond, Lane, Op, Ty, UnOp, Value};
use Action::{Become, Same, Uniform};

pub(super) fn binary(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let Op::Binary(op) = s.op else {
        return None;
    };
    if s.ty.lane.is_float() {
        return None;
    }
    let (a, b) = (s.args[0], s.args[1]);
    if op.commutes() && uniform_const(r.f, a).is_some() && uniform_const(r.f, b).is_none() {
        return Some(Become(s.op.clone(), vec![b, a]));
    }
    if a == b
        && let Some(action) = same_operands(op, a)
    {
        return Some(action);
    }
    if let Some(c) = uniform_const(r.f, b) {
        let action = with_constant(r, s, op, c).or_else(|| chain(r, s, op, c));
        if action.is_some() {
            return action;
        }
    }
    if op == BinOp::UMin
        && let Some(action) = clamps::bounded(r, s)
    {
        return Some(action);
    }
    if let Some(action) = counts::binary(r.f, s, op) {
        return Some(action);
    }
    if let Some(action) = fields::binary(r, s, op) {
        return Some(action);
    }
    if op == BinOp::Or
        && let Some(x) = put_together(r.f, a, b).or_else(|| put_together(r.f, b, a))
    {
        return Some(Same(x));
    }
    if let Some(action) = rotates::binary(r.f, s, op) {
        return Some(action);
    }
    if op == BinOp::Or && adds(r.f, s) {
        return Some(Become(Op::Binary(BinOp::Add), vec![a, b]));
    }
    if let Some(action) = offsets::binary(r, s, op) {
        return Some(action);
    }
    match op {
        BinOp::And | BinOp::Or => logic(r.f, s, op, a, b)
            .or_else(|| logic(r.f, s, op, b, a))
            .or_else(|| without(r, s, op, a, b))
            .or_else(|| without(r, s, op, b, a))
            .or_else(|| chosen(r.f, op, a, b))
            .or_else(|| where_set(r, s, op, a, b))
            .or_else(|| where_set(r, s, op, b, a)),
        BinOp::Xor => xor(r, s, a, b),
        BinOp::Add => bin(r.f, a, BinOp::Sub)
            .filter(|&(_, y)| y == b)
            .map(|(x, _)| Same(x)),
        BinOp::Sub => match bin(r.f, a, BinOp::Add) {
            Some((x, y)) if y == b => Some(Same(x)),
            Some((x, y)) if x == b => Some(Same(y)),
            _ => None,
        },
        _ => None,
    }
}

/// The value whose low bits and whose high bits, shifted down and up again, these are.
fn put_together(f: &Function, low: Value, high: Value) -> Option<Value> {
    let (x, kept) = bin(f, low, BinOp::And)?;
    let (down, up) = bin(f, high, BinOp::Shl)?;
    let (y, count) = bin(f, down, BinOp::LShr)?;
    let (kept, up) = (uniform_const(f, kept)?, uniform_const(f, up)?);
    let count = uniform_const(f, count)?;
    let lane = f.ty(x).lane;
    let shifted = count == up && count < u64::from(lane.bits());
    (x == y && shifted && kept == (1 << count) - 1).then_some(x)
}

/// True for `x | c` where x has none of the constant's bits: that is a sum, and sums are seen through.
fn adds(f: &Function, s: &Subject) -> bool {
    let Some(lanes) = const_lanes(f, s.args[1]).filter(|_| s.ty.lane != Lane::I1) else {
        return false;
    };
    let zeros = range::low_zeros(f, s.args[0]);
    lanes.iter().all(|c| u64::BITS - c.leading_zeros() <= zeros)
}

fn same_operands(op: BinOp, a: Value) -> Option<Action> {
    match op {
        BinOp::Sub | BinOp::USubSat | BinOp::Xor => Some(Uniform(0)),
        BinOp::And | BinOp::Or => Some(Same(a)),
        _ if op.is_bound() => Some(Same(a)),
        _ => None,
    }
}

/// Rules for `x op c`.
fn with_constant(r: &mut Rewriter, s: &Subject, op: BinOp, c: u64) -> Option<Action> {
    let (x, lane) = (s.args[0], s.ty.lane);
    let (ones, width) = (lane.mask(), u64::from(lane.bits()));
    match op {
        BinOp::Add | BinOp::Or | BinOp::Xor if c == 0 => Some(Same(x)),
        BinOp::Sub => {
            let minus = r.constant(s.ty, c.wrapping_neg() & ones);
            Some(Become(Op::Binary(BinOp::Add), vec![x, minus]))
        }
        BinOp::And if c == ones => Some(Same(x)),
        BinOp::And | BinOp::Mul if c == 0 => Some(Uniform(0)),
        BinOp::Or if c == ones => Some(Uniform(ones)),
        BinOp::Xor if c == ones => Some(Become(Op::Unary(UnOp::Not), vec![x])),
        // Every bit that x can have stays.
        BinOp::And if range::ones(range::most(r.f, x)) & !c == 0 => Some(Same(x)),
        BinOp::And => low_bits(r, s, c).or_else(|| narrow::kept(r, s, c)),
        BinOp::Mul | BinOp::UDiv | BinOp::SDiv if c == 1 => Some(Same(x)),
        BinOp::Mul | BinOp::UDiv if c.is_power_of_two() => {
            let shift = if op == BinOp::Mul {
                BinOp::Shl
            } else {
                BinOp::LShr
            };
            let count = r.constant(s.ty, u64::from(c.trailing_zeros()));
            Some(Become(Op::Binary(shift), vec![x, count]))
        }
        BinOp::URem if c.is_power_of_two() => {
            let low = r.constant(s.ty, c - 1);
            Some(Become(Op::Binary(BinOp::And), vec![x, low]))
        }
        _ if op.is_shift() && c.is_multiple_of(width) => Some(Same(x)),
        BinOp::UAddSat | BinOp::USubSat if c == 0 => Some(Same(x)),
        BinOp::UMin if c == 0 => Some(Uniform(0)),
        BinOp::UMin if c == ones => Some(Same(x)),
        BinOp::UMax if c == 0 => Some(Same(x)),
        BinOp::UMax if c == ones => Some(Uniform(ones)),
        _ => None,
    }
}

/// `(x + d) & c` and `(x | d) & c`, where `c` keeps low bits: the bits of `d` above them go.
///
/// The compiler marks pointers to local memory above the 28 bits that are an offset. Without the mark they are small numbers, as `shape`
/// expects of offsets. Of a sum the constant next to zero is taken, so that a negative distance stays one.
fn low_bits(r: &mut Rewriter, s: &Subject, c: u64) -> Option<Action> {
    let (inner, x, d) = [BinOp::Add, BinOp::Or].into_iter().find_map(|op| {
        let (x, d) = bin(r.f, s.args[0], op)?;
        Some((op, x, uniform_const(r.f, d)?))
    })?;
    let kept = c.trailing_ones();
    if kept != u64::BITS - c.leading_zeros() {
        return None;
    }
    let above = u64::BITS - kept;
    let low = match inner {
        BinOp::Add => ((d << above).cast_signed() >> above).cast_unsigned() & s.ty.lane.mask(),
        _ => d & c,
    };
    if low == d {
        return None;
    }
    let x = if low == 0 {
        x
    } else {
        let low = r.constant(s.ty, low);
        r.emit(Op::Binary(inner), vec![x, low], s.ty)
    };
    Some(Become(s.op.clone(), vec![x, s.args[1]]))
}

/// `(x op d) op c` with both constant.
fn chain(r: &mut Rewriter, s: &Subject, op: BinOp, c: u64) -> Option<Action> {
    let (x, d) = bin(r.f, s.args[0], op)?;
    let d = uniform_const(r.f, d)?;
    let (ones, width) = (s.ty.lane.mask(), u64::from(s.ty.lane.bits()));
    // `vector-combine` looks for the high halves of what was shifted.
    let high_half = op == BinOp::LShr && c % width == 32 && width == 64 && !s.ty.is_scalar();
    let joined = match op {
        BinOp::Add => c.wrapping_add(d) & ones,
        BinOp::Mul => c.wrapping_mul(d) & ones,
        BinOp::And => c & d,
        BinOp::Or => c | d,
        BinOp::Xor => c ^ d,
        BinOp::Shl | BinOp::LShr if c % width + d % width >= width => return Some(Uniform(0)),
        _ if high_half => return None,
        BinOp::AShr => (c % width + d % width).min(width - 1),
        BinOp::Shl | BinOp::LShr => c % width + d % width,
        BinOp::UMin => c.min(d),
        BinOp::UMax => c.max(d),
        _ => return None,
    };
    let joined = r.constant(s.ty, joined);
    Some(Become(Op::Binary(op), vec![x, joined]))
}

/// Rules for `a & b` and, with both operations exchanged, for `a | b`.
fn logic(f: &Function, s: &Subject, op: BinOp, a: Value, b: Value) -> Option<Action> {
    let (dual, zero) = match op {
        BinOp::And => (BinOp::Or, 0),
        _ => (BinOp::And, s.ty.lane.mask()),
    };
    // a & !a = 0
    if un(f, a, UnOp::Not) == Some(b) {
        return Some(Uniform(zero));
    }
    // a & (a | y) = a
    if let Some((x, y)) = bin(f, b, dual) {
        if x == a || y == a {
            return Some(Same(a));
        }
        // a & (!a | y) = a & y
        for (x, y) in [(x, y), (y, x)] {
            if complements(f, x, a) {
                return Some(Become(s.op.clone(), vec![a, y]));
            }
        }
        // (x | y) & (x | !y) = x
        if let Some((p, q)) = bin(f, a, dual) {
            for (x, y) in [(x, y), (y, x)] {
                for (p, q) in [(p, q), (q, p)] {
                    if x == p && complements(f, y, q) {
                        return Some(Same(x));
                    }
                }
            }
        }
    }
    // a & (a & y) = a & y, a & (!a & y) = 0
    if let Some((x, y)) = bin(f, b, op) {
        if x == a || y == a {
            return Some(Same(b));
        }
        if complements(f, x, a) || complements(f, y, a) {
            return Some(Uniform(zero));
        }
    }
    None
}

/// `a & !(a & y)` is `a & !y`, and `a & !(a | y)` is 0; dually for `|`.
fn without(r: &mut Rewriter, s: &Subject, op: BinOp, a: Value, b: Value) -> Option<Action> {
    let (dual, zero) = match op {
        BinOp::And => (BinOp::Or, 0),
        _ => (BinOp::And, s.ty.lane.mask()),
    };
    let inner = un(r.f, b, UnOp::Not)?;
    if let Some((x, y)) = bin(r.f, inner, dual)
        && (x == a || y == a)
    {
        return Some(Uniform(zero));
    }
    let (x, y) = bin(r.f, inner, op)?;
    let other = match (x == a, y == a) {
        (true, _) => y,
        (_, true) => x,
        _ => return None,
    };
    let not = match un(r.f, other, UnOp::Not) {
        Some(z) => z,
        None => r.emit(Op::Unary(UnOp::Not), vec![other], s.ty),
    };
    Some(Become(s.op.clone(), vec![a, not]))
}

/// Rules for `a ^ b`.
fn xor(r: &mut Rewriter, s: &Subject, a: Value, b: Value) -> Option<Action> {
    if complements(r.f, a, b) {
        return Some(Uniform(s.ty.lane.mask()));
    }
    for (a, b) in [(a, b), (b, a)] {
        // a ^ (a ^ y) = y
        match bin(r.f, b, BinOp::Xor) {
            Some((x, y)) if x == a => return Some(Same(y)),
            Some((x, y)) if y == a => return Some(Same(x)),
            _ if s.ty.lane == Lane::I1 => continue,
            _ => {}
        }
        // a ^ (a & y) = a & !y
        let other = match bin(r.f, b, BinOp::And) {
            Some((x, y)) if x == a => y,
            Some((x, y)) if y == a => x,
            _ => continue,
        };
        let not = r.emit(Op::Unary(UnOp::Not), vec![other], s.ty);
        return Some(Become(Op::Binary(BinOp::And), vec![a, not]));
    }
    if s.ty.lane == Lane::I1 {
        return None;
    }
    if let Some(action) = without_common(r, s, a, b).or_else(|| without_common(r, s, b, a)) {
        return Some(action);
    }
    // (a & y) ^ (a & !y) = a
    if let (Some((x, y)), Some((p, q))) = (bin(r.f, a, BinOp::And), bin(r.f, b, BinOp::And)) {
        for (x, y, p, q) in [(x, y, p, q), (x, y, q, p), (y, x, p, q), (y, x, q, p)] {
            if x == p && complements(r.f, y, q) {
                return Some(Same(x));
            }
        }
    }
    if let Some(action) = chosen(r.f, BinOp::Xor, a, b) {
        return Some(action);
    }
    let (x, y) = match (un(r.f, a, UnOp::Not), un(r.f, b, UnOp::Not)) {
        (Some(x), _) => (x, b),
        (_, Some(y)) => (a, y),
        _ => return None,
    };
    // What is made here is not looked at again.
    let other = |a, b| match bin(r.f, b, BinOp::Xor) {
        Some((p, q)) if p == a => Some(q),
        Some((p, q)) if q == a => Some(p),
        _ => None,
    };
    let differ = match other(x, y).or_else(|| other(y, x)) {
        Some(differ) => differ,
        None => r.emit(s.op.clone(), vec![x, y], s.ty),
    };
    Some(Become(Op::Unary(UnOp::Not), vec![differ]))
}

/// `|`, as compilers and lowering write it in functions of three operands: by `^` with what one operand does not have.
fn without_common(r: &mut Rewriter, s: &Subject, a: Value, b: Value) -> Option<Action> {
    let (p, q) = bin(r.f, b, BinOp::And)?;
    if let (Some(x), Some(y)) = (un(r.f, p, UnOp::Not), un(r.f, q, UnOp::Not)) {
        // (x | y) ^ (!x & !y) is all ones.
        let either = bin(r.f, a, BinOp::Or);
        let all = either == Some((x, y)) || either == Some((y, x));
        return all.then(|| Uniform(s.ty.lane.mask()));
    }
    let (x, y) = match (un(r.f, p, UnOp::Not), un(r.f, q, UnOp::Not)) {
        (_, Some(y)) => (p, y),
        (Some(y), _) => (q, y),
        _ => return None,
    };
    // y ^ (x & !y) = x | y
    let or = Op::Binary(BinOp::Or);
    if a == y {
        return Some(Become(or, vec![y, x]));
    }
    // (z ^ y) ^ (x & !y) = z ^ (x | y)
    let z = match bin(r.f, a, BinOp::Xor)? {
        (z, other) if other == y => z,
        (other, z) if other == y => z,
        _ => return None,
    };
    let either = r.emit(or, vec![y, x], s.ty);
    Some(Become(s.op.clone(), vec![z, either]))
}

/// What is kept where a mask is set or, if the bool says so, where it is not, with `|` or `^` of what is kept elsewhere is a choice.
fn chosen(f: &Function, op: BinOp, a: Value, b: Value) -> Option<Action> {
    if !matches!(op, BinOp::Or | BinOp::Xor) {
        return None;
    }
    let ((m, x, x_is_clear), (n, y, y_is_clear)) = (kept(f, a)?, kept(f, b)?);
    let [x, y] = if x_is_clear { [y, x] } else { [x, y] };
    (m == n && x_is_clear != y_is_clear).then(|| Become(Op::Select, vec![m, x, y]))
}

/// A mask, what is kept where it is set, and true if that is where it is clear; zeros stand elsewhere.
fn kept(f: &Function, v: Value) -> Option<(Value, Value, bool)> {
    let data = f.def_inst(v).filter(|d| d.op == Op::Select)?;
    let &[mask, set, clear] = data.args.as_slice() else {
        return None;
    };
    match [set, clear].map(|v| uniform_const(f, v)) {
        [_, Some(0)] => Some((mask, set, false)),
        [Some(0), _] => Some((mask, clear, true)),
        _ => None,
    }
}

/// `m & x` where all bits of a lane of `m` are the same is a choice between `x` and zero.
fn where_set(r: &mut Rewriter, s: &Subject, op: BinOp, m: Value, x: Value) -> Option<Action> {
    if op != BinOp::And || s.ty.lane == Lane::I1 {
        return None;
    }
    let (mask, is_clear) = match un(r.f, m, UnOp::Not) {
        Some(m) => spread_mask(r.f, m).map(|(mask, clear)| (mask, !clear))?,
        None => spread_mask(r.f, m)?,
    };
    let zero = r.constant(s.ty, 0);
    let [set, clear] = if is_clear { [zero, x] } else { [x, zero] };
    Some(Become(Op::Select, vec![mask, set, clear]))
}

fn complements(f: &Function, a: Value, b: Value) -> bool {
    let ones = f.ty(a).lane.mask();
    let constants = || match (const_lanes(f, a), const_lanes(f, b)) {
        (Some(a), Some(b)) => a.iter().zip(b).all(|(a, b)| a ^ b == ones),
        _ => false,
    };
    un(f, a, UnOp::Not) == Some(b) || un(f, b, UnOp::Not) == Some(a) || constants()
}

pub(super) fn unary(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let Op::Unary(op @ (UnOp::Not | UnOp::Neg | UnOp::BitRev)) = s.op else {
        return None;
    };
    let x = s.args[0];
    if let Some(inner) = un(r.f, x, op) {
        return Some(Same(inner));
    }
    if op == UnOp::Neg {
        let (a, b) = bin(r.f, x, BinOp::Sub)?;
        return Some(Become(Op::Binary(BinOp::Sub), vec![b, a]));
    }
    None
}

/// The condition with its operands exchanged.
pub(super) fn swapped(c: ICond) -> ICond {
    match c {
        ICond::Slt => ICond::Sgt,
        ICond::Sle => ICond::Sge,
        ICond::Sgt => ICond::Slt,
        ICond::Sge => ICond::Sle,
        ICond::Ult => ICond::Ugt,
        ICond::Ule => ICond::Uge,
        ICond::Ugt => ICond::Ult,
        ICond::Uge => ICond::Ule,
        ICond::Eq | ICond::Ne => c,
    }
}

pub(super) fn icmp(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let Op::ICmp(cond) = s.op else {
        return None;
    };
    let (a, b) = (s.args[0], s.args[1]);
    if a == b {
        use ICond::{Eq, Sge, Sle, Uge, Ule};
        return Some(Uniform(matches!(cond, Eq | Sle | Sge | Ule | Uge).into()));
    }
    if uniform_const(r.f, a).is_some() && uniform_const(r.f, b).is_none() {
        return Some(Become(Op::ICmp(swapped(cond)), vec![b, a]));
    }
    let Some(c) = uniform_const(r.f, b) else {
        return narrow::compared(r, s, cond);
    };
    let lane = r.f.ty(a).lane;
    match (cond, c) {
        (ICond::Ult, 0) => return Some(Uniform(0)),
        (ICond::Uge, 0) => return Some(Uniform(1)),
        (ICond::Ule, c) if c == lane.mask() => return Some(Uniform(1)),
        (ICond::Ugt, c) if c == lane.mask() => return Some(Uniform(0)),
        (ICond::Ugt, 0) => return Some(Become(Op::ICmp(ICond::Ne), vec![a, b])),
        (ICond::Ule, 0) => return Some(Become(Op::ICmp(ICond::Eq), vec![a, b])),
        _ => {}
    }
    if let Some(mask) = masks::compared(r, s, (cond, b)) {
        return Some(mask);
    }
    if !matches!(cond, ICond::Eq | ICond::Ne) {
        return None;
    }
    if lane == Lane::I1 {
        // m == 1, m != 0 are m; the others its complement.
        let keep = (cond == ICond::Eq) == (c == 1);
        return Some(if keep {
            Same(a)
        } else {
            Become(Op::Unary(UnOp::Not), vec![a])
        });
    }
    compare_mask(r, cond, c, a)
}

/// Comparison of an extended or packed mask with zero.
fn compare_mask(r: &mut Rewriter, cond: ICond, c: u64, a: Value) -> Option<Action> {
    let f = &*r.f;
    let data = f.def_inst(a)?;
    let mask = *data.args.first()?;
    let is_mask = f.ty(mask).lane == Lane::I1;
    let set = match data.op {
        Op::Convert(Conv::ZExt) if is_mask => 1,
        Op::Convert(Conv::SExt) if is_mask => f.ty(a).lane.mask(),
        Op::MaskToBits => return compare_bits(r, cond, c, mask),
        _ => return None,
    };
    match (c, cond) {
        (0, ICond::Ne) => Some(Same(mask)),
        (0, _) => Some(Become(Op::Unary(UnOp::Not), vec![mask])),
        (c, ICond::Eq) if c == set => Some(Same(mask)),
        (c, ICond::Ne) if c == set => Some(Become(Op::Unary(UnOp::Not), vec![mask])),
        (_, cond) => Some(Uniform((cond == ICond::Ne).into())),
    }
}

/// Comparison of a packed mask with none or all of its bits.
fn compare_bits(r: &mut Rewriter, cond: ICond, c: u64, mask: Value) -> Option<Action> {
    let op = match c {
        0 => Op::MaskAny,
        c if c == u64::MAX >> (64 - r.f.ty(mask).lanes) => Op::MaskAll,
        _ => return None,
    };
    if (cond == ICond::Ne) == (c == 0) {
        return Some(Become(op, vec![mask]));
    }
    let set = r.emit(op, vec![mask], Ty::BOOL);
    Some(Become(Op::Unary(UnOp::Not), vec![set]))
}

pub(super) fn convert(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let Op::Convert(conv) = s.op else {
        return None;
    };
    if let Some(action) = offsets::convert(r, s, conv) {
        return Some(action);
    }
    let data = r.f.def_inst(s.args[0])?;
    let (x, inner) = (*data.args.first()?, data.op.clone());
    let from = r.f.ty(x).lane;
    match (conv, inner) {
        (Conv::Trunc, Op::Convert(ext @ (Conv::SExt | Conv::ZExt))) => {
            Some(match s.ty.lane.bits().cmp(&from.bits()) {
                std::cmp::Ordering::Equal => Same(x),
                std::cmp::Ordering::Less => Become(Op::Convert(Conv::Trunc), vec![x]),
                std::cmp::Ordering::Greater => Become(Op::Convert(ext), vec![x]),
            })
        }
        (Conv::Trunc, Op::Convert(Conv::Trunc)) => Some(Become(s.op.clone(), vec![x])),
        (Conv::Trunc, Op::Binary(BinOp::And)) => {
            let mask = uniform_const(r.f, data.args[1])?;
            (mask & s.ty.lane.mask() == s.ty.lane.mask()).then(|| Become(s.op.clone(), vec![x]))
        }
        (Conv::ZExt, Op::Convert(Conv::ZExt)) | (Conv::SExt, Op::Convert(Conv::SExt)) => {
            Some(Become(s.op.clone(), vec![x]))
        }
        (Conv::SExt, Op::Convert(Conv::ZExt)) => Some(Become(Op::Convert(Conv::ZExt), vec![x])),
        (Conv::ZExt, Op::Convert(Conv::Trunc)) if from == s.ty.lane => {
            let low = r.f.ty(s.args[0]).lane.mask();
            let low = r.constant(s.ty, low);
            Some(Become(Op::Binary(BinOp::And), vec![x, low]))
        }
        (Conv::SExt, Op::Convert(Conv::Trunc)) => fields::extended(r, s),
        (Conv::Trunc, Op::Binary(op)) if op.is_bound() => {
            clamps::cut_off(r, s).or_else(|| absolute(r, s))
        }
        (Conv::Trunc, Op::Binary(op)) => narrow::binary(r, s, op),
        (Conv::Trunc, Op::Unary(UnOp::Neg | UnOp::Not)) => narrow::unary(r, s),
        (Conv::Trunc, Op::Select) => narrow::select(r, s),
        (Conv::FDemote, Op::Convert(Conv::FPromote)) => Some(Same(x)),
        _ => None,
    }
}

/// The magnitude of an extended 32-bit number, cut off again, is that of the number; 2^31 is its own negative either way.
fn absolute(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let (a, b) = bin(r.f, s.args[0], BinOp::SMax)?;
    let wide = match (un(r.f, a, UnOp::Neg), un(r.f, b, UnOp::Neg)) {
        (_, Some(x)) if x == a => a,
        (Some(x), _) if x == b => b,
        _ => return None,
    };
    let data = r.f.def_inst(wide)?;
    let x = *data.args.first()?;
    if data.op != Op::Convert(Conv::SExt) || r.f.ty(x) != s.ty || s.ty.lane != Lane::I32 {
        return None;
    }
    let minus = r.emit(Op::Unary(UnOp::Neg), vec![x], s.ty);
    Some(Become(Op::Binary(BinOp::SMax), vec![x, minus]))
}
