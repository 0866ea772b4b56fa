//! Constant folding and algebraic simplification, instruction by instruction.
//!
//! Guarantees: each instruction is looked at once, after its operands; the result computes the same
//! bits (NaN payloads aside). Constants stand on the right of commutative operations, a splat of a
//! constant is a vector constant. Integer, mask, select, conversion and lane rules are in the files
//! of this directory. Does not change control flow (`cfg` does), and does not look for equal
//! expressions (`gvn` does), though rules see that operands are the same value.

mod bits;
mod bytes;
mod clamps;
mod counts;
mod fields;
mod float;
mod lanes;
mod magnitudes;
mod masks;
mod min_max;
mod narrow;
mod offsets;
pub(super) mod powers;
mod range;
mod rotates;
mod saturated;

pub(super) use range::{low_zeros, most};

use super::edit::{Rewriter, const_lanes, const_op, lanes_op};
use crate::ssa::dom::reverse_post_order;
use crate::ssa::{Function, Inst, Op, Ty, Value, eval};

/// What an instruction turns into.
#[derive(Debug)]
enum Action {
    /// Its result is this value.
    Same(Value),
    /// A constant with these bits in each lane.
    Uniform(u64),
    /// Another operation.
    Become(Op, Vec<Value>),
}

/// An instruction with one result, as the rules see it.
struct Subject {
    op: Op,
    args: Vec<Value>,
    ty: Ty,
}

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let order = reverse_post_order(f);
    let mut rewriter = Rewriter::new(f);
    for b in order {
        rewriter.block(b, |r, i| {
            if r.f.inst(i).op.has_effect() || r.f.inst(i).results.len() != 1 {
                return true;
            }
            // A rule may enable another at the same instruction; each makes it simpler.
            for _ in 0..8 {
                let Some(action) = simplify(r, i) else {
                    break;
                };
                r.changes += 1;
                if let Some(same) = apply(r.f, i, action) {
                    let result = r.f.inst(i).results[0];
                    r.f.replace(result, same);
                    return false;
                }
            }
            true
        });
    }
    let changes = rewriter.changes;
    f.resolve_aliases();
    changes
}

fn apply(f: &mut Function, i: Inst, action: Action) -> Option<Value> {
    let ty = f.ty(f.inst(i).results[0]);
    let (op, args) = match action {
        Action::Same(v) => return Some(v),
        Action::Uniform(bits) => (const_op(ty, bits), Vec::new()),
        Action::Become(op, args) => (op, args),
    };
    let data = f.inst_mut(i);
    data.op = op;
    data.args = args;
    None
}

fn simplify(r: &mut Rewriter, i: Inst) -> Option<Action> {
    let data = r.f.inst(i);
    if matches!(data.op, Op::Const(_) | Op::VecConst(_) | Op::Input(_)) {
        return None;
    }
    if let Some(lanes) = constant(r.f, i) {
        return Some(Action::Become(lanes_op(lanes), Vec::new()));
    }
    let s = Subject {
        op: data.op.clone(),
        args: data.args.clone(),
        ty: r.f.ty(data.results[0]),
    };
    match &s.op {
        Op::Binary(_) => bits::binary(r, &s)
            .or_else(|| float::binary(r, &s))
            .or_else(|| powers::scaled(r, &s)),
        Op::Unary(_) => bits::unary(r, &s)
            .or_else(|| float::unary(r, &s))
            .or_else(|| powers::rounding(r, &s)),
        Op::ICmp(_) => bits::icmp(r, &s).or_else(|| magnitudes::icmp(r, &s)),
        Op::Convert(_) => bits::convert(r, &s),
        Op::FpEnv(_) => float::fp_env(r, &s),
        Op::Select => masks::select(r, &s)
            .or_else(|| min_max::select(r.f, &s))
            .or_else(|| min_max::distance(r, &s))
            .or_else(|| saturated::select(r.f, &s))
            .or_else(|| clamps::select(r, &s)),
        Op::MaskAny | Op::MaskAll | Op::MaskToBits | Op::BitsToMask => masks::reduce(r, &s),
        Op::Bitcast | Op::Splat | Op::ExtractLane(_) | Op::InsertLane(_) | Op::Shuffle(_) => {
            lanes::lanes(r, &s)
        }
        _ => None,
    }
}

/// Lanes of the result when every operand is a constant.
fn constant(f: &Function, i: Inst) -> Option<Vec<u64>> {
    let data = f.inst(i);
    let operand = |&v: &Value| const_lanes(f, v).map(|lanes| (f.ty(v), lanes));
    let args: Vec<(Ty, &[u64])> = data.args.iter().map(operand).collect::<Option<_>>()?;
    Some(eval::pure_op(&data.op, &args, f.ty(data.results[0])))
}
