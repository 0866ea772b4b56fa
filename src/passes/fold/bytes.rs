//! Bytes of words in another order, from how compilers write it: each byte is cut out by a shift, and all are put together again.
//!
//! That is a shuffle of the bytes as they lie in the words, which processors have an instruction for.

use super::super::edit::{Rewriter, binary as bin, uniform_const};
use super::Action;
use super::lanes::through;
use crate::ssa::{BinOp, Conv, Function, Lane, Op, Ty, Value};

/// Shuffles that a byte is followed through.
const DEPTH: usize = 6;
/// Fewest bytes that are worth it.
const FEWEST: usize = 8;

/// A view of bytes that are all of the same vector of words.
pub(super) fn permuted(r: &mut Rewriter, v: Value) -> Option<Action> {
    let (from, data) = (r.f.ty(v), r.f.def_inst(v)?);
    if from.lane != Lane::I8 || usize::from(from.lanes) < FEWEST {
        return None;
    }
    // It may be done already.
    let is_view = |&x: &Value| r.f.def_inst(x).is_some_and(|d| d.op == Op::Bitcast);
    if !matches!(data.op, Op::Shuffle(_)) || data.args.iter().all(is_view) {
        return None;
    }
    let bytes: Vec<(Value, u16)> = (0..from.lanes)
        .map(|k| byte_of_word(r.f, (v, k)))
        .collect::<Option<_>>()?;
    let (words, _) = *bytes.first()?;
    if bytes.iter().any(|&(x, _)| x != words) {
        return None;
    }
    let ty = r.f.ty(words);
    let view = Ty::vector(Lane::I8, ty.lane.bytes() as u16 * ty.lanes);
    let indices = bytes.iter().map(|&(_, k)| k).collect();
    let view = r.emit(Op::Bitcast, vec![words], view);
    let bytes = r.emit(Op::Shuffle(indices), vec![view], from);
    Some(Action::Become(Op::Bitcast, vec![bytes]))
}

/// The vector of words that a byte is cut out of, and which of their bytes it is.
fn byte_of_word(f: &Function, mut at: (Value, u16)) -> Option<(Value, u16)> {
    for _ in 0..DEPTH {
        let next = through(f, at);
        if next == at {
            break;
        }
        at = next;
    }
    let data = f.def_inst(at.0)?;
    let x = f.resolve(*data.args.first()?);
    let ty = f.ty(x);
    let each = ty.lane.bytes() as u16;
    let is_word = !ty.is_scalar() && !ty.lane.is_float() && each > 1;
    match data.op {
        Op::Bitcast if is_word => Some((x, at.1)),
        Op::Convert(Conv::Trunc) if is_word && ty.lanes == f.ty(at.0).lanes => {
            let shifted = bin(f, x, BinOp::LShr).and_then(|(x, by)| {
                let by = uniform_const(f, by)?;
                let whole = by.is_multiple_of(8) && by < u64::from(ty.lane.bits());
                whole.then_some((f.resolve(x), (by / 8) as u16))
            });
            let (x, byte) = shifted.unwrap_or((x, 0));
            Some((x, each * at.1 + byte))
        }
        _ => None,
    }
}
