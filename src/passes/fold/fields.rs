//! Fields of words: bytes and shorts that were put together to a word, by shifts or by a shuffle, and are taken out again.
//!
//! Compilers do that for instructions that work on the parts of words, such as sums of products of four bytes. A field that is extracted is
//! replaced by the value that was put there.

use super::super::edit::{Rewriter, binary as bin, uniform_const};
use super::{Action, Subject};
use crate::ssa::{BinOp, Conv, Function, Lane, Op, Ty, Value};

/// How many operations a field is followed through.
const DEPTH: usize = 12;

/// Some bits of each lane.
#[derive(Clone, Copy)]
struct Field {
    of: Value,
    /// The lowest bit.
    at: u32,
    /// Bits.
    bits: u32,
}

/// Rules for shifts and masks that leave one field: it is extended from where it was.
pub(super) fn binary(r: &mut Rewriter, s: &Subject, op: BinOp) -> Option<Action> {
    let (field, conv) = taken_out(r.f, s, op)?;
    let narrow = source(r.f, field)?;
    Some(Action::Become(Op::Convert(conv), vec![narrow]))
}

/// A field, if that is what an operation leaves, and how it is extended.
fn taken_out(f: &Function, s: &Subject, op: BinOp) -> Option<(Field, Conv)> {
    let width = s.ty.lane.bits();
    let x = s.args[0];
    if s.ty.lane == Lane::I1 {
        return None;
    }
    let c = uniform_const(f, s.args[1])?;
    let (of, at, bits, conv) = match op {
        BinOp::AShr | BinOp::LShr => {
            let down = u32::try_from(c).ok().filter(|&c| c < width)?;
            let (of, up) = shifted(f, x, BinOp::Shl, width).unwrap_or((x, 0));
            let conv = if op == BinOp::AShr {
                Conv::SExt
            } else {
                Conv::ZExt
            };
            (of, down.checked_sub(up)?, width - down, conv)
        }
        BinOp::And if c & c.wrapping_add(1) == 0 => {
            let (of, down) = shifted(f, x, BinOp::LShr, width).unwrap_or((x, 0));
            (of, down, c.count_ones(), Conv::ZExt)
        }
        _ => return None,
    };
    let short = matches!(bits, 8 | 16) && bits < width && at + bits <= width;
    short.then_some((Field { of, at, bits }, conv))
}

/// Operand and count of a shift by a constant.
fn shifted(f: &Function, v: Value, op: BinOp, width: u32) -> Option<(Value, u32)> {
    let (x, by) = bin(f, v, op)?;
    let by = u32::try_from(uniform_const(f, by)?).ok()?;
    (by < width).then_some((x, by))
}

/// The value whose lanes are a field.
fn source(f: &Function, mut field: Field) -> Option<Value> {
    for _ in 0..DEPTH {
        let ty = f.ty(field.of);
        if field.at == 0 && ty.lane.bits() == field.bits {
            return Some(field.of);
        }
        let data = f.def_inst(field.of)?;
        let args = data.args.as_slice();
        let from = f.ty(*args.first()?).lane;
        match &data.op {
            Op::Bitcast => return shuffled(f, args[0], field, ty),
            Op::Convert(Conv::Trunc) => {}
            Op::Convert(Conv::ZExt) if from != Lane::I1 && field.at + field.bits <= from.bits() => {
            }
            Op::Binary(BinOp::Or) if is_zero(f, field_of(field, args[1]), DEPTH / 2) => {}
            Op::Binary(BinOp::Or) if is_zero(f, field_of(field, args[0]), DEPTH / 2) => {
                field.of = args[1];
                continue;
            }
            Op::Binary(BinOp::And) => {
                let kept = uniform_const(f, args[1])? >> field.at;
                let all = (1 << field.bits) - 1;
                if kept & all != all {
                    return None;
                }
            }
            Op::Binary(BinOp::Shl) => {
                let (_, by) = shifted(f, field.of, BinOp::Shl, ty.lane.bits())?;
                field.at = field.at.checked_sub(by)?;
            }
            Op::Binary(BinOp::LShr) => {
                let (_, by) = shifted(f, field.of, BinOp::LShr, ty.lane.bits())?;
                field.at += by;
                if field.at + field.bits > ty.lane.bits() {
                    return None;
                }
            }
            _ => return None,
        }
        field.of = args[0];
    }
    None
}

const fn field_of(field: Field, of: Value) -> Field {
    Field { of, ..field }
}

/// True if a field is zero in all lanes.
fn is_zero(f: &Function, field: Field, depth: usize) -> bool {
    let width = f.ty(field.of).lane.bits();
    let end = field.at + field.bits;
    if let Some(c) = uniform_const(f, field.of) {
        return (c >> field.at) & ((1 << field.bits) - 1) == 0;
    }
    let (Some(data), true) = (f.def_inst(field.of), depth > 0) else {
        return false;
    };
    let args = data.args.as_slice();
    match &data.op {
        Op::Convert(Conv::ZExt) => field.at >= f.ty(args[0]).lane.bits(),
        Op::Binary(BinOp::Shl) => shifted(f, field.of, BinOp::Shl, width).is_some_and(|(x, by)| {
            let below = field.at.checked_sub(by);
            let rest = below.is_some_and(|at| is_zero(f, Field { of: x, at, ..field }, depth - 1));
            end <= by || rest
        }),
        Op::Binary(BinOp::LShr) => {
            let by = shifted(f, field.of, BinOp::LShr, width).map(|(_, by)| by);
            by.is_some_and(|by| field.at >= width - by)
        }
        Op::Binary(BinOp::Or) => args
            .iter()
            .all(|&x| is_zero(f, field_of(field, x), depth - 1)),
        Op::Binary(BinOp::And) => args
            .iter()
            .any(|&x| is_zero(f, field_of(field, x), depth - 1)),
        _ => false,
    }
}

/// The vector whose lanes shuffles spread over another one at a fixed stride. The other one's lanes together are words of type `ty`.
fn shuffled(f: &Function, whole: Value, field: Field, ty: Ty) -> Option<Value> {
    let lane = f.ty(whole).lane;
    if lane.is_float() || lane.bits() != field.bits || !field.at.is_multiple_of(field.bits) {
        return None;
    }
    let each = (ty.lane.bits() / field.bits) as u16;
    let mut from = None;
    for i in 0..ty.lanes {
        let at = i * each + (field.at / field.bits) as u16;
        let (v, n) = lane_source(f, whole, at);
        if n != i || *from.get_or_insert(v) != v {
            return None;
        }
    }
    from.filter(|&v| f.ty(v).lanes == ty.lanes && f.ty(v).lane == lane)
}

/// Where shuffles take a lane from.
fn lane_source(f: &Function, mut v: Value, mut lane: u16) -> (Value, u16) {
    for _ in 0..DEPTH {
        let Some((Op::Shuffle(indices), args)) = f.def_inst(v).map(|d| (&d.op, &d.args)) else {
            break;
        };
        let Some(&index) = indices.get(usize::from(lane)) else {
            break;
        };
        let first = f.ty(args[0]).lanes;
        (v, lane) = match args.get(1) {
            Some(&second) if index >= first => (second, index - first),
            _ => (args[0], index),
        };
    }
    (v, lane)
}

/// The signed extension of the low bits of a word is two shifts: vectors of words have no instruction that goes through shorter ones.
pub(super) fn extended(r: &mut Rewriter, s: &Subject) -> Option<Action> {
    let data = r.f.def_inst(s.args[0])?;
    let x = *data.args.first()?;
    let short = r.f.ty(s.args[0]).lane;
    let words = !s.ty.is_scalar() && matches!(s.ty.lane, Lane::I16 | Lane::I32);
    if data.op != Op::Convert(Conv::Trunc) || r.f.ty(x) != s.ty || !words || short == Lane::I1 {
        return None;
    }
    let up = s.ty.lane.bits() - short.bits();
    let down = shifted(r.f, x, BinOp::LShr, s.ty.lane.bits());
    let (x, by) = match down {
        Some((x, down)) if down <= up => (x, up - down),
        _ => (x, up),
    };
    let mut high = x;
    if by > 0 {
        let by = r.constant(s.ty, by.into());
        high = r.emit(Op::Binary(BinOp::Shl), vec![x, by], s.ty);
    }
    let up = r.constant(s.ty, up.into());
    Some(Action::Become(Op::Binary(BinOp::AShr), vec![high, up]))
}

/// What was extended with a sign by two shifts from the type of narrow lanes, cut off again.
pub(super) fn cut_off(r: &mut Rewriter, v: Value, narrow: Ty) -> Option<Value> {
    let wide = r.f.ty(v);
    let width = wide.lane.bits();
    let (high, down) = shifted(r.f, v, BinOp::AShr, width)?;
    let (x, up) = shifted(r.f, high, BinOp::Shl, width)?;
    if width - down != narrow.lane.bits() || up > down {
        return None;
    }
    let mut low = x;
    if up < down {
        let by = r.constant(wide, (down - up).into());
        low = r.emit(Op::Binary(BinOp::LShr), vec![x, by], wide);
    }
    Some(r.emit(Op::Convert(Conv::Trunc), vec![low], narrow))
}
