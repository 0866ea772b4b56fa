//! Minimum and maximum, from how the hardware's `sel` and compilers write them: a comparison, and a choice between what was compared.
//!
//! Code generators have an instruction for most of them, where a comparison and a choice are three to five. They also see that an address
//! that was limited so is still one. Of integers only: a choice between floats says which of two zeros, and what of a NaN.

use super::{Action, Subject};
use crate::ssa::{BinOp, Function, ICond, Lane, Op};

/// `a < b ? a : b`, in each of its spellings. Where both are equal it does not matter which is chosen, so that `<` and `<=` are the same.
pub(super) fn select(f: &Function, s: &Subject) -> Option<Action> {
    let &[mask, set, clear] = s.args.as_slice() else {
        return None;
    };
    if s.ty.lane.is_float() || s.ty.lane == Lane::I1 {
        return None;
    }
    let data = f.def_inst(mask)?;
    let (Op::ICmp(cond), &[a, b]) = (&data.op, data.args.as_slice()) else {
        return None;
    };
    let [a, b] = [a, b].map(|v| f.resolve(v));
    let in_order = (a, b) == (set, clear);
    if !in_order && (b, a) != (set, clear) {
        return None;
    }
    let (of_less, of_more) = match cond {
        ICond::Eq => return Some(Action::Same(clear)),
        ICond::Ne => return Some(Action::Same(set)),
        ICond::Slt | ICond::Sle => (BinOp::SMin, BinOp::SMax),
        ICond::Sgt | ICond::Sge => (BinOp::SMax, BinOp::SMin),
        ICond::Ult | ICond::Ule => (BinOp::UMin, BinOp::UMax),
        ICond::Ugt | ICond::Uge => (BinOp::UMax, BinOp::UMin),
    };
    let op = if in_order { of_less } else { of_more };
    Some(Action::Become(Op::Binary(op), vec![a, b]))
}
