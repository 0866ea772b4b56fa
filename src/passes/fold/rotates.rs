//! Rotations by a constant, from how compilers write them for devices without the instruction: two shifts whose counts add up to the width,
//! and the bits of both together.

use super::super::edit::{binary as bin, uniform_const};
use super::{Action, Subject};
use crate::ssa::{BinOp, Function, Op, Value};

/// `x << c | x >> (width - c)`. No bit is in both, so `+` and `^` put them together as well.
pub(super) fn binary(f: &Function, s: &Subject, op: BinOp) -> Option<Action> {
    let (true, &[a, b]) = (
        matches!(op, BinOp::Or | BinOp::Xor | BinOp::Add),
        s.args.as_slice(),
    ) else {
        return None;
    };
    let (x, by) = rotated(f, (a, b), s).or_else(|| rotated(f, (b, a), s))?;
    Some(Action::Become(Op::Binary(BinOp::Rotl), vec![x, by]))
}

/// What is rotated to the left, and by how much.
fn rotated(f: &Function, (left, right): (Value, Value), s: &Subject) -> Option<(Value, Value)> {
    let (x, by) = bin(f, left, BinOp::Shl)?;
    let (same, back) = bin(f, right, BinOp::LShr)?;
    let (left, right) = (uniform_const(f, by)?, uniform_const(f, back)?);
    let width = u64::from(s.ty.lane.bits());
    (f.resolve(x) == f.resolve(same)
        && left.checked_add(right) == Some(width)
        && left != 0
        && right != 0)
        .then_some((x, by))
}
