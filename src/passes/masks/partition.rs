//! Masks that are split and rejoined: facts about the mask parameters of loops and joins, and the
//! unions that they decide.
//!
//! A divergent loop moves lanes from its live mask `em` to waiting masks, so that `em | wait` stays
//! what `em` was at the start. Such relations are proven by induction over the edges of the loop.

use std::collections::BTreeSet;

use super::facts::{Fact, Facts};
use crate::passes::edit::{const_op, uniform_const};
use crate::ssa::dom::DomTree;
use crate::ssa::remark::Decision;
use crate::ssa::{BinOp, Block, BlockCall, Function, Lane, Op, Term, Ty, Value, ValueDef};

/// Most mask parameters of a loop that are looked at.
const PARAMS: usize = 16;

/// Most masks of a union at a join.
const PARTS: usize = 6;

/// Most mask parameters of a join of which pairs are looked at.
const PAIRED: usize = 4;

/// Finds facts about block parameters, and replaces unions that are some other mask.
pub(super) fn run(f: &mut Function, dom: &DomTree, facts: &mut Facts) -> usize {
    super::ceilings::run(f, dom, facts);
    facts.set_full(full_masks(f));
    let headers: Vec<Loop> = loops(f, dom);
    // Inner loops first: what they guarantee is part of the proof for the outer ones.
    for l in headers.iter().rev() {
        subsets(f, l, facts);
    }
    for l in headers.iter().rev() {
        unions(f, l, facts);
    }
    let changes = rejoin(f, dom, facts);
    if changes > 0 {
        // Joins that became plain may carry the proof of the loops around them.
        f.resolve_aliases();
        for l in headers.iter().rev() {
            unions(f, l, facts);
        }
    }
    changes + rejoin(f, dom, facts)
}

/// Mask parameters of a loop header.
struct Loop {
    params: Vec<Value>,
    /// Value of each on entry.
    start: Vec<Value>,
    /// Values of each on the back edges.
    again: Vec<Vec<Value>>,
}

/// Loops with one entry edge, outer ones first.
fn loops(f: &Function, dom: &DomTree) -> Vec<Loop> {
    let mut out = Vec::new();
    for &b in dom.rpo() {
        let masks = |p: &&Value| f.ty(**p).lane == Lane::I1 && !f.ty(**p).is_scalar();
        let params: Vec<Value> = f.block(b).params.iter().filter(masks).copied().collect();
        if params.is_empty() || params.len() > PARAMS {
            continue;
        }
        let back = |p: &Block| dom.is_back_edge(*p, b);
        if dom.preds(b).iter().filter(|p| !back(p)).count() != 1 || !dom.preds(b).iter().any(back) {
            continue;
        }
        let (mut start, mut again) = (Vec::new(), Vec::new());
        for &p in dom.preds(b) {
            for call in edges(f, p, b) {
                let args = params.iter().map(|&v| argument(f, v, call)).collect();
                if back(&p) {
                    again.push(args);
                } else {
                    start = args;
                }
            }
        }
        out.push(Loop {
            params,
            start,
            again,
        });
    }
    out
}

/// Edges from `p` to `b`; both sides of a branch may be one, and then each predecessor entry sees both,
/// which repeats a proof but does not weaken it.
fn edges(f: &Function, p: Block, b: Block) -> impl Iterator<Item = &BlockCall> {
    let targets = f.block(p).term.targets();
    targets.into_iter().filter(move |c| c.block == b)
}

fn argument(f: &Function, param: Value, call: &BlockCall) -> Value {
    match f.def(param) {
        ValueDef::Param(_, n) => f.resolve(call.args[n as usize]),
        _ => param,
    }
}

/// `p ⊆ start` where every iteration keeps it.
fn subsets(f: &Function, l: &Loop, facts: &mut Facts) {
    for (n, &p) in l.params.iter().enumerate() {
        let start = l.start[n];
        if uniform_const(f, start).is_some() {
            continue;
        }
        let fact = Fact::Subset(p, start);
        facts.add(fact.clone());
        let kept = l
            .again
            .iter()
            .all(|args| facts.covered(f, args[n], &[start]));
        if !kept {
            facts.remove_last(&fact);
        }
    }
}

/// `em | wait… == start of em`, where `em` shrinks and the others start empty and grow.
fn unions(f: &Function, l: &Loop, facts: &mut Facts) {
    let empty: Vec<usize> = (0..l.params.len())
        .filter(|&n| uniform_const(f, l.start[n]) == Some(0))
        .collect();
    for (n, &em) in l.params.iter().enumerate() {
        let start = l.start[n];
        if uniform_const(f, start) == Some(0) || facts.is_union_known(em) {
            continue;
        }
        let shrinks = l.again.iter().all(|args| facts.covered(f, args[n], &[em]));
        if !shrinks {
            continue;
        }
        let grows = |k: &usize| {
            let q = l.params[*k];
            l.again.iter().all(|args| {
                facts.covered(f, q, &[args[*k]]) && facts.covered(f, args[*k], &[q, start])
            })
        };
        let members: Vec<usize> = [n]
            .into_iter()
            .chain(empty.iter().copied().filter(grows))
            .collect();
        let parts: Vec<Value> = members.iter().map(|&k| l.params[k]).collect();
        let fact = Fact::Union(parts, start);
        facts.add(fact.clone());
        let kept = members.len() > 1
            && l.again.iter().all(|args| {
                let union: Vec<Value> = members.iter().map(|&k| args[k]).collect();
                facts.is_union(f, &union, start)
            });
        if !kept {
            facts.remove_last(&fact);
        }
    }
}

/// Replaces unions of masks by a mask that they equal.
fn rejoin(f: &mut Function, dom: &DomTree, facts: &mut Facts) -> usize {
    let mut changes = 0;
    let home = homes(f);
    for &b in dom.rpo() {
        split(f, dom, &home, facts, b);
        let empty = empty_masks(f, dom, b);
        for n in 0..f.block(b).insts.len() {
            let data = f.inst(f.block(b).insts[n]);
            if data.op != Op::Binary(BinOp::Or) {
                continue;
            }
            let result = data.results[0];
            if f.ty(result).lane != Lane::I1 || f.ty(result).is_scalar() {
                continue;
            }
            let parts = [f.resolve(data.args[0]), f.resolve(data.args[1])];
            let before = &f.block(b).insts[..n];
            let here = |w: Value| match f.def(w) {
                ValueDef::Param(home, _) => home == b,
                ValueDef::Result(i, _) => before.contains(&i),
                ValueDef::Alias(_) => false,
            };
            let whole = facts
                .unions(f, &parts, &empty)
                .into_iter()
                .find(|&w| available(dom, &home, w, b) || here(w))
                .or_else(|| joined(f, dom, &home, facts, parts));
            if let Some(whole) = whole {
                let what = "lanes that come together again are a mask that is there already";
                f.remark_value(result, Decision::MaskUsed(what));
                f.replace(result, whole);
                changes += 1;
            }
        }
    }
    changes
}

/// A constant with all lanes at the start of the function for each width of masks that come together.
fn full_masks(f: &mut Function) -> Vec<Value> {
    let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
    let unions = insts.filter(|&&i| f.inst(i).op == Op::Binary(BinOp::Or));
    let types = unions.map(|&i| f.ty(f.inst(i).results[0]));
    let masks: BTreeSet<u16> = types
        .filter(|ty| ty.lane == Lane::I1 && !ty.is_scalar())
        .map(|ty| ty.lanes)
        .collect();
    let new = masks.into_iter().map(|lanes| {
        let ty = Ty::vector(Lane::I1, lanes);
        let full = f.make(const_op(ty, 1), Vec::new(), &[ty], 0);
        f.block_mut(Function::ENTRY).insts.insert(0, full);
        f.inst(full).results[0]
    });
    new.collect()
}

/// Block of each value's definition.
fn homes(f: &Function) -> Vec<Option<Block>> {
    let mut homes = vec![None; f.values.len()];
    for &b in &f.order {
        let block = f.block(b);
        let results = block.insts.iter().flat_map(|&i| &f.inst(i).results);
        for v in block.params.iter().chain(results) {
            homes[v.0 as usize] = Some(b);
        }
    }
    homes
}

/// True when `v` is defined above block `b` or is a parameter of it.
fn available(dom: &DomTree, homes: &[Option<Block>], v: Value, b: Block) -> bool {
    homes[v.0 as usize].is_some_and(|home| home != b && dom.dominates(home, b))
}

/// Masks that have no lane in `b` because a branch on `maskany` leads here.
fn empty_masks(f: &Function, dom: &DomTree, b: Block) -> Vec<Value> {
    let mut out = Vec::new();
    let mut at = b;
    for _ in 0..4 {
        if let [p] = dom.preds(at)
            && let Some(m) = empty_on_edge(f, *p, at)
        {
            out.push(m);
        }
        match dom.idom(at) {
            Some(up) => at = up,
            None => break,
        }
    }
    out
}

/// The mask that is empty when `p` goes on to `b`.
pub(super) fn empty_on_edge(f: &Function, p: Block, b: Block) -> Option<Value> {
    match &f.block(p).term {
        Term::Branch { cond, then, other } if other.block == b && then.block != b => {
            let data = f.def_inst(*cond).filter(|d| d.op == Op::MaskAny)?;
            Some(f.resolve(data.args[0]))
        }
        _ => None,
    }
}

/// The masks of a union, with those of unions that the join itself makes in their place.
fn flattened(f: &Function, homes: &[Option<Block>], join: Block, parts: [Value; 2]) -> Vec<Value> {
    let mut out = parts.to_vec();
    let mut n = 0;
    while let Some(&part) = out.get(n) {
        let inner = f.def_inst(part).filter(|data| {
            data.op == Op::Binary(BinOp::Or) && homes[part.0 as usize] == Some(join)
        });
        match inner {
            Some(data) if out.len() < PARTS => {
                out[n] = f.resolve(data.args[0]);
                out.push(f.resolve(data.args[1]));
            }
            _ => n += 1,
        }
    }
    out
}

/// Adds which mask the lanes were that come to a join apart, as two of its parameters.
fn split(f: &Function, dom: &DomTree, homes: &[Option<Block>], facts: &mut Facts, join: Block) {
    let is_mask = |p: &&Value| f.ty(**p).lane == Lane::I1 && !f.ty(**p).is_scalar();
    let params = f.block(join).params.iter();
    let masks: Vec<Value> = params.filter(is_mask).copied().collect();
    let header = dom.preds(join).iter().any(|&p| dom.is_back_edge(p, join));
    if header || masks.len() > PAIRED {
        return;
    }
    for (n, &p) in masks.iter().enumerate() {
        for &q in &masks[n + 1..] {
            if f.ty(p) != f.ty(q) || facts.is_union_known(p) {
                continue;
            }
            if let Some(whole) = joined(f, dom, homes, facts, [p, q]) {
                facts.add_split([p, q], whole);
            }
        }
    }
}

/// A union of parameters of a join that is the same mask on every edge.
fn joined(
    f: &Function,
    dom: &DomTree,
    homes: &[Option<Block>],
    facts: &Facts,
    parts: [Value; 2],
) -> Option<Value> {
    let params = |v: Value| match f.def(v) {
        ValueDef::Param(b, _) => Some(b),
        _ => None,
    };
    let join = params(parts[0]).or(params(parts[1]))?;
    let parts = flattened(f, homes, join, parts);
    let mut wholes: Option<Vec<Value>> = None;
    for &p in dom.preds(join) {
        for call in edges(f, p, join) {
            let mut args = parts.clone();
            for a in &mut args {
                if params(*a) == Some(join) {
                    *a = argument(f, *a, call);
                } else if !available(dom, homes, *a, join) {
                    return None;
                }
            }
            let empty: Vec<Value> = empty_on_edge(f, p, join).into_iter().collect();
            let mut masks = facts.unions(f, &args, &empty);
            if args.iter().all(|a| *a == args[0]) {
                masks.push(args[0]);
            }
            masks.retain(|mask| wholes.as_ref().is_none_or(|all| all.contains(mask)));
            if masks.is_empty() {
                return None;
            }
            wholes = Some(masks);
        }
    }
    let wholes = wholes.unwrap_or_default();
    wholes.into_iter().find(|&w| available(dom, homes, w, join))
}
