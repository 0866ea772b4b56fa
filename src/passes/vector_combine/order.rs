//! Comparisons of 64-bit lanes, from comparisons of their halves.
//!
//! `(h < g) | ((h == g) & (l < m))` is `x < y`, and there are many ways to write it: `<=` in places, a choice instead of the two operations, the
//! complement of another order. So it is not the form that is looked at. How the high and how the low halves of two lanes compare are nine cases
//! together; a mask that is set in the same cases as a comparison of the whole lanes is that comparison.

use super::halves::together;
use super::words::half_of;
use crate::passes::edit::{Rewriter, const_lanes, replace_results};
use crate::ssa::{BinOp, Function, ICond, Inst, Lane, Op, UnOp, Value};

/// Operations on masks that are looked through.
const DEPTH: usize = 4;

/// The cases in which a mask is set, a bit each: three times how the high halves compare, plus how the low halves do. 0 is less, 1 equal, 2 greater.
type Cases = u16;

const ALL: Cases = (1 << 9) - 1;

/// What is compared.
#[derive(Default)]
struct Sides {
    low: Option<(Value, Value)>,
    high: Option<(Value, Value)>,
    /// Whether the order of the high halves is one of signed numbers, if it matters.
    signed: Option<bool>,
}

/// Replaces masks that are such comparisons.
pub(super) fn run(f: &mut Function) -> usize {
    replace_results(f, comparison)
}

fn comparison(r: &mut Rewriter, i: Inst) -> Option<Value> {
    let data = r.f.inst(i);
    let mask = *data.results.first()?;
    let ty = r.f.ty(mask);
    let combines = matches!(
        data.op,
        Op::Binary(BinOp::And | BinOp::Or | BinOp::Xor) | Op::Select | Op::Unary(UnOp::Not)
    );
    if ty.lane != Lane::I1 || ty.is_scalar() || !combines {
        return None;
    }
    let mut sides = Sides::default();
    let cases = cases(r.f, mask, &mut sides, DEPTH)?;
    let ((a, b), (c, d)) = (sides.low?, sides.high?);
    // Which low halves belong to which high ones is not said yet.
    let straight = [(a, c), (b, d), (a, d), (b, c)];
    for (turned, [(l, h), (m, g)]) in [
        (false, [straight[0], straight[1]]),
        (true, [straight[2], straight[3]]),
    ] {
        let cases = if turned { exchanged(cases) } else { cases };
        let Some(cond) = whole(cases, sides.signed.unwrap_or(false)) else {
            continue;
        };
        if let Some(x) = together(r, l, h)
            && let Some(y) = together(r, m, g)
        {
            return Some(r.emit(Op::ICmp(cond), vec![x, y], ty));
        }
    }
    None
}

/// The cases with the sides of the high halves exchanged.
fn exchanged(cases: Cases) -> Cases {
    (cases & 0o070) | (cases & 0o007) << 6 | cases >> 6
}

/// The cases in which a mask is set.
fn cases(f: &Function, v: Value, sides: &mut Sides, depth: usize) -> Option<Cases> {
    let data = f.def_inst(f.resolve(v))?;
    if let Op::ICmp(cond) = data.op {
        let [a, b] = [0, 1].map(|n| f.resolve(data.args[n]));
        return compared(f, cond, (a, b), sides);
    }
    let depth = depth.checked_sub(1)?;
    let mut of = |n: usize| cases(f, data.args[n], sides, depth);
    Some(match data.op {
        Op::Unary(UnOp::Not) => ALL & !of(0)?,
        Op::Binary(BinOp::And) => of(0)? & of(1)?,
        Op::Binary(BinOp::Or) => of(0)? | of(1)?,
        Op::Binary(BinOp::Xor) => of(0)? ^ of(1)?,
        Op::Select if f.ty(data.args[0]) == f.ty(v) => {
            let chosen = of(0)?;
            chosen & of(1)? | ALL & !chosen & of(2)?
        }
        _ => return None,
    })
}

/// The cases of one comparison of halves.
fn compared(f: &Function, cond: ICond, (a, b): (Value, Value), sides: &mut Sides) -> Option<Cases> {
    let (_, high) = half_of(f, a).or_else(|| half_of(f, b))?;
    let known = if high {
        &mut sides.high
    } else {
        &mut sides.low
    };
    let same = |a: Value, b: Value| {
        let lanes = const_lanes(f, a);
        a == b || lanes.is_some() && lanes == const_lanes(f, b)
    };
    let (x, y) = *known.get_or_insert((a, b));
    let turned = !(same(x, a) && same(y, b));
    if turned && !(same(x, b) && same(y, a)) {
        return None;
    }
    let (signed, set) = meaning(cond);
    if let Some(signed) = signed
        && (!high && signed || high && *sides.signed.get_or_insert(signed) != signed)
    {
        return None;
    }
    let set = match turned {
        true => [set[2], set[1], set[0]],
        false => set,
    };
    let each = (0..9).filter(|case| set[if high { case / 3 } else { case % 3 }]);
    Some(each.map(|case| 1 << case).sum())
}

/// Whether an order is of signed numbers, and where a comparison holds: of less, equal and greater.
const fn meaning(cond: ICond) -> (Option<bool>, [bool; 3]) {
    let signed = match cond {
        ICond::Eq | ICond::Ne => None,
        ICond::Slt | ICond::Sle | ICond::Sgt | ICond::Sge => Some(true),
        ICond::Ult | ICond::Ule | ICond::Ugt | ICond::Uge => Some(false),
    };
    let set = match cond {
        ICond::Eq => [false, true, false],
        ICond::Ne => [true, false, true],
        ICond::Slt | ICond::Ult => [true, false, false],
        ICond::Sle | ICond::Ule => [true, true, false],
        ICond::Sgt | ICond::Ugt => [false, false, true],
        ICond::Sge | ICond::Uge => [false, true, true],
    };
    (signed, set)
}

/// The comparison of whole lanes that holds in these cases.
fn whole(cases: Cases, signed: bool) -> Option<ICond> {
    use ICond::{Eq, Ne, Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
    let orders = match signed {
        true => [Slt, Sle, Sgt, Sge],
        false => [Ult, Ule, Ugt, Uge],
    };
    let mut all = [Eq, Ne].into_iter().chain(orders);
    all.find(|&cond| {
        let (_, set) = meaning(cond);
        // High halves decide unless they are equal.
        let decides = |case: usize| if case / 3 == 1 { case % 3 } else { case / 3 };
        let each = (0..9).filter(|&case| set[decides(case)]);
        each.map(|case| 1 << case).sum::<Cases>() == cases
    })
}
