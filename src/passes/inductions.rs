//! Vectors that grow by the same amount in all lanes around a loop with a barrier: the loop carries a scalar instead.
//!
//! Pointers are moved along so: `p += 4 * width`. What is carried across a barrier is saved to the frame, and nothing is known about what comes
//! back from there. With `p = first + splat(offset)`, only the offset is saved. The first vector is computed again, so its addresses stay
//! affine.
//!
//! Guarantees: sums wrap in the width of a lane, so the order of terms does not matter.
//!
//! Not done: loops without a barrier, in which addresses are followed anyway; vectors that grow under a mask, or differently on two paths through the loop that meet again before its end.

use rustc_hash::FxHashSet;

use super::edit::binary;
use crate::ssa::dom::DomTree;
use crate::ssa::{BinOp, Block, Function, Lane, Op, Term, Ty, Value, ValueDef};

/// Terms of one iteration that are followed.
const MOST_TERMS: usize = 64;

/// A term of a sum, the same in all lanes; true if it is subtracted.
type Step = (Value, bool);

/// A parameter of a loop's first block that grows by scalars.
struct Induction {
    header: Block,
    number: usize,
    /// What it is in front of the loop.
    first: Value,
    /// For each edge into the header, in order of [`edges`]: what is added, or nothing from outside.
    steps: Vec<Option<Vec<Step>>>,
}

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let dom = DomTree::new(f);
    let mut changes = 0;
    // Inner loops first: what they add is a step of the outer loop then.
    for &header in dom.rpo().iter().rev() {
        if !waits(f, &dom, header) {
            continue;
        }
        while let Some(found) =
            (0..f.block(header).params.len()).find_map(|number| induction(f, &dom, header, number))
        {
            carry_scalar(f, &dom, &found);
            f.resolve_aliases();
            changes += 1;
        }
    }
    changes
}

/// True for the first block of a loop in which threads wait.
fn waits(f: &Function, dom: &DomTree, header: Block) -> bool {
    let back = |&&b: &&Block| dom.dominates(header, b);
    let mut work: Vec<Block> = dom.preds(header).iter().filter(back).copied().collect();
    if work.is_empty() {
        return false;
    }
    let mut seen = FxHashSet::from_iter([header]);
    while let Some(b) = work.pop() {
        if seen.insert(b) {
            work.extend(dom.preds(b));
        }
    }
    let mut insts = seen.iter().flat_map(|&b| &f.block(b).insts);
    insts.any(|&i| f.inst(i).op.waits())
}

/// Edges to a block: where they start, and their place among the targets there.
fn edges(f: &Function, dom: &DomTree, to: Block) -> Vec<(Block, usize)> {
    let mut edges = Vec::new();
    // A block that branches to it on both sides may be there twice.
    let mut from = dom.preds(to).to_vec();
    from.sort_unstable();
    from.dedup();
    for from in from {
        for (n, call) in f.block(from).term.targets().into_iter().enumerate() {
            if call.block == to {
                edges.push((from, n));
            }
        }
    }
    edges
}

fn argument(f: &Function, (from, target): (Block, usize), number: usize) -> Option<Value> {
    let targets = f.block(from).term.targets();
    targets.get(target)?.args.get(number).copied()
}

fn induction(f: &Function, dom: &DomTree, header: Block, number: usize) -> Option<Induction> {
    let p = *f.block(header).params.get(number)?;
    let ty = f.ty(p);
    if ty.is_scalar() || !matches!(ty.lane, Lane::I32 | Lane::I64) {
        return None;
    }
    let (mut first, mut steps, mut grows) = (None, Vec::new(), false);
    for edge in edges(f, dom, header) {
        let arg = argument(f, edge, number)?;
        if !dom.dominates(header, edge.0) {
            if first.is_some_and(|first| first != arg) {
                return None;
            }
            first = Some(arg);
            steps.push(None);
            continue;
        }
        let added = steps_from(f, p, arg)?;
        grows |= !added.is_empty();
        steps.push(Some(added));
    }
    Some(Induction {
        header,
        number,
        first: first.filter(|_| grows)?,
        steps,
    })
}

/// The terms of a sum that starts with `p`.
fn steps_from(f: &Function, p: Value, mut v: Value) -> Option<Vec<Step>> {
    let scalar = |v: Value| {
        let data = f.def_inst(v)?;
        (data.op == Op::Splat).then(|| data.args[0])
    };
    let mut steps = Vec::new();
    while v != p {
        if steps.len() == MOST_TERMS {
            return None;
        }
        if let Some((a, b)) = binary(f, v, BinOp::Add) {
            let (rest, step) = match (scalar(a), scalar(b)) {
                (_, Some(step)) => (a, step),
                (Some(step), _) => (b, step),
                _ => return None,
            };
            steps.push((step, false));
            v = rest;
        } else {
            let (a, b) = binary(f, v, BinOp::Sub)?;
            steps.push((scalar(b)?, true));
            v = a;
        }
    }
    Some(steps)
}

fn carry_scalar(f: &mut Function, dom: &DomTree, found: &Induction) {
    let (header, number) = (found.header, found.number);
    let p = f.block(header).params[number];
    let ty = f.ty(p);
    let scalar = Ty::scalar(ty.lane);
    let offset = f.add_param(header, scalar);
    let splat = f.make(Op::Splat, vec![offset], &[ty], 0);
    let spread = f.inst(splat).results[0];
    let sum = f.make(Op::Binary(BinOp::Add), vec![found.first, spread], &[ty], 0);
    let sum_value = f.inst(sum).results[0];
    for ((from, target), steps) in edges(f, dom, header).into_iter().zip(&found.steps) {
        let new = match steps {
            None => f.push1(from, Op::Const(0), vec![], scalar, 0),
            Some(steps) => steps.iter().rev().fold(offset, |sum, &(step, subtracted)| {
                let op = if subtracted { BinOp::Sub } else { BinOp::Add };
                f.push1(from, Op::Binary(op), vec![sum, step], scalar, 0)
            }),
        };
        let mut term = std::mem::replace(&mut f.block_mut(from).term, Term::None);
        if let Some(call) = term.targets_mut().into_iter().nth(target) {
            call.args.remove(number);
            call.args.push(new);
        }
        f.block_mut(from).term = term;
    }
    f.replace(p, sum_value);
    let block = f.block_mut(header);
    block.params.remove(number);
    block.insts.splice(0..0, [splat, sum]);
    for (n, p) in f.block(header).params.clone().into_iter().enumerate() {
        f.values[p.0 as usize].def = ValueDef::Param(header, n as u32);
    }
}
