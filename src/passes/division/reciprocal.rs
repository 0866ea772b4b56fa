//! Quotients of unsigned 32-bit integers that are made with a reciprocal in floats.
//!
//! Two sequences are known, by the devices that they are for. Both work under rounding toward zero, `Z` below; `N` rounds to
//! nearest, `[v]` is the whole part of a number as an integer. Write `Q` for the whole part of `x / y`, `y` not zero.
//!
//! # With doubles
//! `r = N(1 / N(y))` as a float; in doubles `e = Z(1 + 2^-38 - y * r)`, `q = Z(r * x)`, and the quotient is `[Z(q * e + q)]`.
//!
//! Proof. `r = (1 / y)(1 + d)` with `|d| < 1.01 * 2^-23`, so `e` is `2^-38 - d` but for less than 2^-74. The result before its
//! fraction goes is `(x / y)(1 + d)(1 - d + 2^-38)` but for two roundings down of 2^-52 each, that is `(x / y)(1 + s)` with
//! `2^-39 < s < 2^-37`, as `d * d` is below 2^-45.9. It is not below `x / y`, and above by less than `2^32 * 2^-37 / y`, which is less
//! than the `1 / y` that `x / y` is away from the next whole number. So its whole part is `Q`. A zero divisor makes `r`
//! infinite and `e` NaN, and the result is 0.
//!
//! # With floats
//! `yf = Z(y)`, `xf = Z(x)`, `r = N(1 / yf)`, `s = Z(r - 1.5 * 2^-22 * r)`, `a = [Z(xf * s)]`. What is left is
//! `t = Z(Z(xf - yf * a) + Z((x - xf) - (y - yf) * a))`, and `c = a + [Z(s * t)]` is `Q` or `Q - 1`; it is one too small
//! when `x - c * y >= y`.
//!
//! Proof. Let `u = 2^-23`. `Z` takes less than `u` of a number, relatively, so `s` lies between `(1 - 4.6u) / y` and
//! `(1 - 1.4u) / y`, and `a` is at most `(x / y)(1 - 1.4u)` and above `(x / y)(1 - 6.7u) - 1`. `a`, `yf` and `xf`, and the rests `y - yf` and
//! `x - xf`, are whole numbers that floats hold exactly. So `E = x - y * a` is between 0 and `6.7u * x + y`, and `t` is `E` but for
//! roundings. The first part of the sum is not below `xf - yf * a >= (1 - u) x - (1 - 1.4u) x > 0` and is only made
//! smaller; the other is at most `u * x` in magnitude, so that `t` is above `E` by at most `u * u * x <= 2^-14`, and below it by at
//! most `2u * y + 16 u * u * x`.
//!
//! Not too large: `s * t < (E + 2^-14) / y`, and `E / y` is at least `1 / y` below the next whole number. Not too small by two:
//! `s * t` is above `(1 - 5.6u) E / y - 2u - 2^-10`, and `E / y` is below 3,433, so that this is above `E / y - 0.01`. With `E`, which
//! is `x - a * y`, the quotient `Q` is `a` plus the whole part of `E / y`.
//!
//! A zero divisor makes `r` infinite and `s` NaN. Then `a` and `c` are 0, `x - c * y >= y` holds, and the corrected
//! quotient is 1, the remainder `x`.
//!
//! Products and sums of integers above are in 32 bits, where what is not negative and fits is right. No operation underflows:
//! whole numbers and reciprocals of numbers below 2^32 are normal, and so are their products.

use crate::passes::edit::{self, Rewriter, replace_results, uniform_const};
use crate::ssa::{BinOp, Conv, FpEnvOp, Function, ICond, Lane, Op, Ty, UnOp, Value};

/// Rounding and denormal bits of `%cr0`, and their value for "toward zero, all denormals kept".
const CR0_FLOAT: u64 = 0x4f0;
const CR0_TOWARD_ZERO: u64 = 0x4f0;

/// 1 + 2^-38.
const ABOVE_ONE: u64 = 0x3ff0_0000_0000_4000;
/// -1.5 * 2^-22.
const MINUS: u64 = 0xb4c0_0000;

/// Terms of a sum that are looked at.
const TERMS: usize = 6;

pub(super) fn run(f: &mut Function) -> usize {
    let rounds = f.order.iter().flat_map(|&b| &f.block(b).insts);
    if !rounds
        .clone()
        .any(|&i| matches!(f.inst(i).op, Op::FpEnv(_)))
    {
        return 0;
    }
    replace_results(f, |r, i| {
        let [result] = r.f.inst(i).results[..] else {
            return None;
        };
        if r.f.ty(result).lane != Lane::I32 {
            return None;
        }
        by_doubles(r, result).or_else(|| by_floats(r, result))
    })
}

/// The scalar that all lanes are, where a value is made of one. A divisor is often the same for all lanes, and so is its reciprocal;
/// all that follows looks at values in this way.
fn unsplat(f: &Function, v: Value) -> Value {
    match f.def_inst(v).map(|d| (&d.op, d.args.as_slice())) {
        Some((Op::Splat, &[scalar])) => scalar,
        _ => v,
    }
}

fn binary(f: &Function, v: Value, op: BinOp) -> Option<(Value, Value)> {
    let (a, b) = edit::binary(f, unsplat(f, v), op)?;
    Some((unsplat(f, a), unsplat(f, b)))
}

fn unary(f: &Function, v: Value, op: UnOp) -> Option<Value> {
    edit::unary(f, unsplat(f, v), op).map(|a| unsplat(f, a))
}

/// Operands of an operation that rounds toward zero.
fn toward_zero(f: &Function, v: Value, op: FpEnvOp) -> Option<Vec<Value>> {
    let data = f
        .def_inst(unsplat(f, v))
        .filter(|d| d.op == Op::FpEnv(op))?;
    let (control, args) = data.args.split_first()?;
    let here = uniform_const(f, *control)? & CR0_FLOAT == CR0_TOWARD_ZERO;
    here.then(|| args.iter().map(|&a| unsplat(f, a)).collect())
}

fn converted(f: &Function, v: Value, conv: Conv) -> Option<Value> {
    let data = f
        .def_inst(unsplat(f, v))
        .filter(|d| d.op == Op::Convert(conv))?;
    data.args.first().map(|&a| unsplat(f, a))
}

/// The operand of 1 / v.
fn reciprocal_of(f: &Function, v: Value) -> Option<Value> {
    let (one, y) = binary(f, v, BinOp::FDiv)?;
    (uniform_const(f, one)? == u64::from(1f32.to_bits())).then_some(y)
}

/// The other operand, where one of them is `v`.
fn other(args: &[Value], v: Value) -> Option<Value> {
    match *args {
        [a, b, ..] if a == v => Some(b),
        [a, b, ..] if b == v => Some(a),
        _ => None,
    }
}

/// The quotient that goes by doubles.
fn by_doubles(r: &mut Rewriter, v: Value) -> Option<Value> {
    let f = &*r.f;
    let (ty, last) = (f.ty(v), converted(f, v, Conv::FToUI)?);
    let [p, q, added] = toward_zero(f, last, FpEnvOp::Fma)?[..] else {
        return None;
    };
    let (q, e) = match added == p {
        true => (p, q),
        false => (added == q).then_some((q, p))?,
    };
    let [p, one, above] = toward_zero(f, e, FpEnvOp::Fma)?[..] else {
        return None;
    };
    let (minus, recip) = match unary(f, p, UnOp::FNeg) {
        Some(minus) => (minus, one),
        None => (unary(f, one, UnOp::FNeg)?, p),
    };
    let y = converted(f, minus, Conv::UIToF)?;
    let narrow = reciprocal_of(f, converted(f, recip, Conv::FPromote)?)?;
    let x = converted(
        f,
        other(&toward_zero(f, q, FpEnvOp::Mul)?, recip)?,
        Conv::UIToF,
    )?;
    let same = converted(f, narrow, Conv::UIToF)? == y;
    let lanes =
        f.ty(x).lane != Lane::I64 && f.ty(y).lane != Lane::I64 && f.ty(minus).lane == Lane::F64;
    if uniform_const(f, above)? != ABOVE_ONE || !same || !lanes {
        return None;
    }
    Some(quotient(r, (x, y), ty, 0))
}

/// `x / y`, and something else with a zero divisor.
fn quotient(r: &mut Rewriter, (x, y): (Value, Value), ty: Ty, by_zero: u64) -> Value {
    let (x, y) = (extended(r, x, ty), extended(r, y, ty));
    let q = r.emit(Op::Binary(BinOp::UDiv), vec![x, y], ty);
    let zero = r.constant(ty, 0);
    let mask = r.emit(Op::ICmp(ICond::Eq), vec![y, zero], Ty::mask(ty.lanes));
    let special = r.constant(ty, by_zero);
    r.emit(Op::Select, vec![mask, special, q], ty)
}

/// A number as one of this type.
fn extended(r: &mut Rewriter, mut v: Value, ty: Ty) -> Value {
    let from = r.f.ty(v);
    if from.lane != ty.lane {
        v = r.emit(Op::Convert(Conv::ZExt), vec![v], from.with_lane(ty.lane));
    }
    spread(r, v, ty)
}

/// A number in all lanes.
fn spread(r: &mut Rewriter, v: Value, ty: Ty) -> Value {
    if r.f.ty(v) == ty {
        v
    } else {
        r.emit(Op::Splat, vec![v], ty)
    }
}

/// A sum with a quotient by floats, or with what is left of one, both corrected.
fn by_floats(r: &mut Rewriter, v: Value) -> Option<Value> {
    let sums = matches!(r.f.def_inst(v)?.op, Op::Binary(BinOp::Add | BinOp::Sub));
    let (x, y) = sums.then(|| estimated(r.f, v))??;
    let terms = terms(r.f, v, &[x, y])?;
    let ty = r.f.ty(v);
    for n in 0..terms.len() {
        let (negative, c) = terms[n];
        if negative {
            continue;
        }
        if estimate(r.f, c) == Some((x, y)) {
            let corrects = |&(negative, t): &Term| one_if_left(r.f, (negative, t), (c, x, y));
            let at = terms.iter().position(corrects)?;
            let q = quotient(r, (x, y), ty, 1);
            return Some(sum(r, ty, &terms, &[n, at], q));
        }
    }
    let (product, c) = terms.iter().enumerate().find_map(|(n, &t)| {
        let (a, b) = taken(r.f, t)?;
        let c = other(&[a, b], y).filter(|&c| estimate(r.f, c) == Some((x, y)))?;
        Some((n, c))
    })?;
    let dividend = terms.iter().position(|&t| t == (false, x))?;
    let at = terms
        .iter()
        .position(|&(negative, t)| negative && divisor_if_left(r.f, t, (c, x, y)))?;
    let (x, y) = (extended(r, x, ty), extended(r, y, ty));
    let rest = r.emit(Op::Binary(BinOp::URem), vec![x, y], ty);
    Some(sum(r, ty, &terms, &[product, dividend, at], rest))
}

/// A term, and whether it is subtracted.
type Term = (bool, Value);

/// Dividend and divisor of the first estimate that a sum is made of.
fn estimated(f: &Function, v: Value) -> Option<(Value, Value)> {
    terms(f, v, &[])?.into_iter().find_map(|t| {
        let factor = |(a, b)| estimate(f, a).or_else(|| estimate(f, b));
        estimate(f, t.1).or_else(|| taken(f, t).and_then(factor))
    })
}

/// What a sum is made of, down to these values.
fn terms(f: &Function, v: Value, whole: &[Value]) -> Option<Vec<Term>> {
    let mut work = vec![(false, v)];
    let mut terms = Vec::new();
    while let Some((negative, v)) = work.pop() {
        let known = whole.contains(&unsplat(f, v));
        let v = if known { unsplat(f, v) } else { v };
        let data = f.def_inst(v).filter(|_| !known);
        match data.map(|d| (&d.op, d.args.as_slice())) {
            Some((Op::Binary(BinOp::Add), &[a, b])) if !estimates(f, v) => {
                work.extend([(negative, a), (negative, b)]);
            }
            Some((Op::Binary(BinOp::Sub), &[a, b])) => {
                work.extend([(negative, a), (!negative, b)]);
            }
            Some((Op::Unary(UnOp::Neg), &[a])) => work.push((!negative, a)),
            _ => terms.push((negative, v)),
        }
        if work.len() + terms.len() > TERMS {
            return None;
        }
    }
    Some(terms)
}

fn estimates(f: &Function, v: Value) -> bool {
    estimate(f, v).is_some()
}

/// The sum of all terms but those of these numbers, and of `with`.
fn sum(r: &mut Rewriter, ty: Ty, terms: &[Term], without: &[usize], with: Value) -> Value {
    let mut sum = with;
    for (n, &(negative, t)) in terms.iter().enumerate() {
        if !without.contains(&n) {
            let op = if negative { BinOp::Sub } else { BinOp::Add };
            let t = spread(r, t, ty);
            sum = r.emit(Op::Binary(op), vec![sum, t], ty);
        }
    }
    sum
}

/// Dividend and divisor of a quotient that may be one too small.
fn estimate(f: &Function, c: Value) -> Option<(Value, Value)> {
    let (a, b) = binary(f, c, BinOp::Add)?;
    refined(f, a, b).or_else(|| refined(f, b, a))
}

/// `first + [Z(s * t)]`.
fn refined(f: &Function, first: Value, second: Value) -> Option<(Value, Value)> {
    let product = |v| {
        let args = toward_zero(f, converted(f, v, Conv::FToUI)?, FpEnvOp::Mul)?;
        Some((args[0], args[1]))
    };
    let (a, b) = product(second)?;
    let (xf, s) = product(first)?;
    let (xf, s) = if s == a || s == b { (xf, s) } else { (s, xf) };
    let t = other(&[a, b], s)?;
    let yf = inverted(f, s)?;
    let (x, y) = (rounded(f, xf)?, rounded(f, yf)?);
    // Both parts of what is left, in either order.
    let [p, q] = toward_zero(f, t, FpEnvOp::Add)?[..] else {
        return None;
    };
    let part = |v: Value, minus: Value, from: Value| {
        let [a, b, added] = toward_zero(f, v, FpEnvOp::Fma)?[..] else {
            return None;
        };
        let (n, times) = match unary(f, a, UnOp::FNeg) {
            Some(n) => (n, b),
            None => (unary(f, b, UnOp::FNeg)?, a),
        };
        let taken = rounded(f, times)? == first;
        (taken && n == minus && added == from).then_some(())
    };
    let rests = |v: Value| {
        let [a, b, added] = toward_zero(f, v, FpEnvOp::Fma)?[..] else {
            return None;
        };
        let n = unary(f, a, UnOp::FNeg).or_else(|| unary(f, b, UnOp::FNeg))?;
        let left = rest(f, rounded(f, n)?, y, yf)? && rest(f, rounded(f, added)?, x, xf)?;
        left.then_some(())?;
        part(v, n, added)
    };
    let both = |p, q| part(p, yf, xf).and_then(|()| rests(q));
    both(p, q).or_else(|| both(q, p))?;
    let lane = |v| f.ty(v).lane;
    let words = [first, x, y].iter().all(|&v| lane(v) == Lane::I32);
    (words && lane(s) == Lane::F32).then_some((x, y))
}

/// The integer whose value cut to a float this is.
fn rounded(f: &Function, v: Value) -> Option<Value> {
    toward_zero(f, v, FpEnvOp::UIToF)?.first().copied()
}

/// `yf` of `s = Z(r - 1.5 * 2^-22 * r)`.
fn inverted(f: &Function, s: Value) -> Option<Value> {
    let [a, b, r] = toward_zero(f, s, FpEnvOp::Fma)?[..] else {
        return None;
    };
    let c = other(&[a, b], r)?;
    (uniform_const(f, c)? == MINUS).then(|| reciprocal_of(f, r))?
}

/// True for `v - [vf]`.
fn rest(f: &Function, difference: Value, v: Value, vf: Value) -> Option<bool> {
    let terms = terms(f, difference, &[v])?;
    let whole = |t| converted(f, t, Conv::FToUI) == Some(vf);
    let [(m, a), (n, b)] = terms[..] else {
        return None;
    };
    Some(
        m != n
            && if m {
                b == v && whole(a)
            } else {
                a == v && whole(b)
            },
    )
}

/// True for the condition `x - c * y >= y`, or, of `less`, its contrary.
fn left(f: &Function, mask: Value, less: bool, (c, x, y): (Value, Value, Value)) -> bool {
    let Some(data) = f.def_inst(mask) else {
        return false;
    };
    let (rest, divisor) = match (&data.op, less) {
        (Op::ICmp(ICond::Uge), false) | (Op::ICmp(ICond::Ult), true) => {
            (data.args[0], data.args[1])
        }
        (Op::ICmp(ICond::Ule), false) | (Op::ICmp(ICond::Ugt), true) => {
            (data.args[1], data.args[0])
        }
        _ => return false,
    };
    let product = |t| taken(f, t).is_some_and(|p| p == (c, y) || p == (y, c));
    let Some([s, t]) = terms(f, rest, &[x]).and_then(|t| <[Term; 2]>::try_from(t).ok()) else {
        return false;
    };
    let is_rest = s == (false, x) && product(t) || t == (false, x) && product(s);
    unsplat(f, divisor) == y && is_rest
}

/// True for a term that adds 1 where the estimate is too small.
fn one_if_left(f: &Function, (negative, v): Term, of: (Value, Value, Value)) -> bool {
    let Some(data) = f.def_inst(v) else {
        return false;
    };
    let constant = |n: usize| uniform_const(f, data.args[n]);
    match data.op {
        Op::Convert(Conv::SExt) => negative && left(f, data.args[0], false, of),
        Op::Convert(Conv::ZExt) => !negative && left(f, data.args[0], false, of),
        Op::Select => {
            let unit = if negative { Lane::I32.mask() } else { 1 };
            match (constant(1), constant(2)) {
                (Some(0), Some(c)) => c == unit && left(f, data.args[0], true, of),
                (Some(c), Some(0)) => c == unit && left(f, data.args[0], false, of),
                _ => false,
            }
        }
        _ => false,
    }
}

/// True for a term that is the divisor where it still fits, else zero.
fn divisor_if_left(f: &Function, v: Value, of: (Value, Value, Value)) -> bool {
    let (_, _, y) = of;
    let (inner, bits) = low_bits(f, v, f.ty(v).lane.bits());
    let Some(data) = f.def_inst(inner) else {
        return false;
    };
    let is_y = |part: Value| low_bits(f, part, bits) == low_bits(f, y, f.ty(y).lane.bits());
    match (&data.op, data.args.as_slice()) {
        (Op::Binary(BinOp::And), &[a, b]) => {
            let sign = |v| {
                let mask = converted(f, v, Conv::SExt);
                mask.is_some_and(|mask| left(f, mask, false, of))
            };
            is_y(a) && sign(b) || is_y(b) && sign(a)
        }
        (Op::Select, &[mask, a, b]) => {
            let zero = |v| uniform_const(f, v) == Some(0);
            zero(a) && is_y(b) && left(f, mask, true, of)
                || zero(b) && is_y(a) && left(f, mask, false, of)
        }
        _ => false,
    }
}

/// What an unsigned number is the low bits of, through extensions and cuts, and how many; only this many are looked at.
fn low_bits(f: &Function, v: Value, bits: u32) -> (Value, u32) {
    let mut v = unsplat(f, v);
    let mut bits = bits.min(f.ty(v).lane.bits());
    loop {
        let same = converted(f, v, Conv::ZExt).or_else(|| converted(f, v, Conv::Trunc));
        // An extended sign is not looked at.
        let signed = || converted(f, v, Conv::SExt).filter(|&w| f.ty(w).lane.bits() >= bits);
        let Some(inner) = same.or_else(signed) else {
            return (v, bits);
        };
        v = inner;
        bits = bits.min(f.ty(v).lane.bits());
    }
}

/// The factors of a product that is subtracted.
fn taken(f: &Function, (negative, v): Term) -> Option<(Value, Value)> {
    let (a, b) = binary(f, v, BinOp::Mul)?;
    match (negative, unary(f, a, UnOp::Neg), unary(f, b, UnOp::Neg)) {
        (true, ..) => Some((a, b)),
        (_, Some(a), _) => Some((a, b)),
        (_, _, Some(b)) => Some((a, b)),
        _ => None,
    }
}
