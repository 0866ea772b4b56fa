//! Shifts of 64-bit lanes by a constant, from those of their halves.
//!
//! `low >> c | high << (32 - c)` are the low halves of whole lanes that are shifted down by `c`, beside `high >> c`, and the high halves of lanes that
//! are shifted up by `32 - c`, beside `low << (32 - c)`. Shifts by more than the half leave a shifted half and zeros. A rotation is a shift of which
//! the other half is put to it by `|`, and folding knows it.
//!
//! Not done: shifts of which only one half is computed.

use rustc_hash::FxHashMap;

use super::halves::{half, shift_by, together};
use super::words::{HALF, shift};
use crate::passes::edit::{Rewriter, binary, replace_by_block};
use crate::ssa::{BinOp, Function, Inst, Value};

/// Bits that go from one half to the other: those of `low` above the lowest `down` ones, beside the lowest ones of `high`.
#[derive(Clone, Copy)]
struct Crossing {
    low: Value,
    high: Value,
    down: u64,
}

/// What is known in a block.
#[derive(Default)]
struct Known {
    /// Shifts of 32-bit lanes.
    shifts: FxHashMap<(BinOp, Value, u64), Inst>,
    /// Crossing bits, by the shift that is the other half.
    crossings: FxHashMap<(BinOp, Value, u64), (Inst, Crossing)>,
}

/// Replaces both halves of such shifts.
pub(super) fn run(f: &mut Function) -> usize {
    replace_by_block(f, |r, known: &mut Known, i| {
        let result = *r.f.inst(i).results.first()?;
        if let Some((op, x, by)) = shift(r.f, result) {
            known.shifts.insert((op, x, by), i);
            let &(other, crossing) = known.crossings.get(&(op, x, by))?;
            let [crossed, rest] = r.instead_of(other, |r| halves(r, crossing, op))?;
            let old = r.f.inst(other).results[0];
            r.f.replace(old, crossed);
            known.crossings.retain(|_, (i, _)| *i != other);
            return Some(rest);
        }
        let crossing = crossing(r.f, result)?;
        for key in others(crossing) {
            let made = match known.shifts.get(&key) {
                Some(&other) => r
                    .instead_of(other, |r| halves(r, crossing, key.0))
                    .map(|made| (other, made)),
                None => None,
            };
            if let Some((other, [crossed, rest])) = made {
                let old = r.f.inst(other).results[0];
                r.f.replace(old, rest);
                known.shifts.retain(|_, i| *i != other);
                return Some(crossed);
            }
            known.crossings.insert(key, (i, crossing));
        }
        None
    })
}

/// The shifts that may be the other half.
const fn others(crossing: Crossing) -> [(BinOp, Value, u64); 3] {
    let Crossing { low, high, down } = crossing;
    [
        (BinOp::LShr, high, down),
        (BinOp::AShr, high, down),
        (BinOp::Shl, low, HALF - down),
    ]
}

/// The half that bits cross to, and the other one.
fn halves(r: &mut Rewriter, crossing: Crossing, op: BinOp) -> Option<[Value; 2]> {
    let x = together(r, crossing.low, crossing.high)?;
    let by = match op {
        BinOp::Shl => HALF - crossing.down,
        _ => crossing.down,
    };
    let whole = shift_by(r, op, x, by);
    let [low, high] = [false, true].map(|high| half(r, whole, high));
    Some(match op {
        BinOp::Shl => [high, low],
        _ => [low, high],
    })
}

fn crossing(f: &Function, v: Value) -> Option<Crossing> {
    // No bit is in both.
    let ops = [BinOp::Or, BinOp::Xor, BinOp::Add];
    let (a, b) = ops.into_iter().find_map(|op| binary(f, v, op))?;
    let of = |a, b| match (shift(f, a)?, shift(f, b)?) {
        ((BinOp::LShr, low, down), (BinOp::Shl, high, up)) if down + up == HALF && low != high => {
            Some(Crossing { low, high, down })
        }
        _ => None,
    };
    of(a, b).or_else(|| of(b, a))
}
