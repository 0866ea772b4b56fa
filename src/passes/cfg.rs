//! Control flow: constant branches, joins that are none, empty and straight-line blocks.
//!
//! Guarantees: no unreachable block is left in the layout; a branch does not test a constant or a
//! complement, and has two targets; a parameter does not receive one value (or one constant) on
//! every edge; no block jumps to one that only it reaches. Does not move instructions across
//! branches or turn branches into selects.

use super::edit::{const_lanes, lanes_op, unary, uniform_const};
use super::params;
use crate::ssa::dom::{drop_unreachable, reverse_post_order};
use crate::ssa::{Block, BlockCall, Function, Term, UnOp, Value, ValueDef};

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let mut changes = branches(f);
    changes += unreachable(f);
    let together = params::replace_redundant(f);
    if together > 0 {
        drop_params(f);
        f.resolve_aliases();
    }
    changes += together;
    changes += redundant_params(f);
    changes += thread(f);
    changes += branches(f);
    changes += unreachable(f);
    changes += merge(f);
    f.resolve_aliases();
    changes
}

/// Branches on constants and complements, and those with one target.
fn branches(f: &mut Function) -> usize {
    let mut changes = 0;
    for n in 0..f.order.len() {
        let b = f.order[n];
        while let Some(term) = simpler(f, &f.block(b).term) {
            f.block_mut(b).term = term;
            changes += 1;
        }
    }
    changes
}

fn simpler(f: &Function, term: &Term) -> Option<Term> {
    match term {
        Term::Branch { cond, then, other } => {
            if let Some(bit) = uniform_const(f, *cond) {
                let taken = if bit != 0 { then } else { other };
                return Some(Term::Jump(taken.clone()));
            }
            if then == other {
                return Some(Term::Jump(then.clone()));
            }
            unary(f, *cond, UnOp::Not).map(|cond| Term::Branch {
                cond,
                then: other.clone(),
                other: then.clone(),
            })
        }
        Term::Switch {
            index,
            targets,
            default,
        } => {
            if let Some(n) = uniform_const(f, *index) {
                let taken = targets.get(n as usize).unwrap_or(default);
                return Some(Term::Jump(taken.clone()));
            }
            let same = targets.iter().all(|t| t == default);
            same.then(|| Term::Jump(default.clone()))
        }
        _ => None,
    }
}

fn unreachable(f: &mut Function) -> usize {
    let before = f.order.len();
    let order = reverse_post_order(f);
    drop_unreachable(f, &order);
    before - f.order.len()
}

/// Removes parameters that receive, apart from themselves, one value or one constant.
fn redundant_params(f: &mut Function) -> usize {
    let mut incoming: Vec<Vec<Value>> = vec![Vec::new(); f.values.len()];
    let mut flows_to: Vec<Vec<Value>> = vec![Vec::new(); f.values.len()];
    let mut work = Vec::new();
    for &b in &f.order {
        work.extend(f.block(b).params.iter().copied());
        for call in f.block(b).term.targets() {
            for (&p, &a) in f.block(call.block).params.iter().zip(&call.args) {
                incoming[p.0 as usize].push(a);
                flows_to[a.0 as usize].push(p);
            }
        }
    }
    work.reverse();
    let mut removed = 0;
    while let Some(p) = work.pop() {
        if matches!(f.def(p), ValueDef::Alias(_)) {
            continue;
        }
        let Some(v) = only_value(f, p, &incoming[p.0 as usize]) else {
            continue;
        };
        f.replace(p, v);
        removed += 1;
        // What p flowed to now receives v; a parameter that merges both may have become redundant.
        let moved = std::mem::take(&mut flows_to[p.0 as usize]);
        flows_to.resize(f.values.len(), Vec::new());
        work.extend(&moved);
        flows_to[v.0 as usize].extend(moved);
    }
    if removed > 0 {
        drop_params(f);
    }
    removed
}

/// The one value that `p` receives; a constant is made anew in the block of `p`.
fn only_value(f: &mut Function, p: Value, incoming: &[Value]) -> Option<Value> {
    let mut sources = incoming.iter().map(|&a| f.resolve(a)).filter(|&a| a != p);
    let first = sources.next()?;
    let lanes = const_lanes(f, first);
    let mut same = true;
    for a in sources {
        same &= a == first;
        if !same && (lanes.is_none() || const_lanes(f, a) != lanes) {
            return None;
        }
    }
    if same {
        return Some(first);
    }
    let op = lanes_op(lanes?.to_vec());
    let ValueDef::Param(b, _) = f.def(p) else {
        return None;
    };
    let i = f.make(op, Vec::new(), &[f.ty(p)], 0);
    f.block_mut(b).insts.insert(0, i);
    Some(f.inst(i).results[0])
}

/// Drops parameters that are aliases, and their arguments.
fn drop_params(f: &mut Function) {
    // Looked up once for all edges: a long kernel has hundreds of parameters at each of thousands of joins.
    let alias = |p: &Value| matches!(f.def(*p), ValueDef::Alias(_));
    let of_block = |b: &Block| f.block(*b).params.iter().map(alias).collect();
    let mut gone: Vec<Vec<bool>> = vec![Vec::new(); f.blocks.len()];
    for (b, aliases) in f.order.iter().map(|b| (b, of_block(b))) {
        gone[b.0 as usize] = aliases;
    }
    for n in 0..f.order.len() {
        let b = f.order[n];
        for call in f.block_mut(b).term.targets_mut() {
            let gone = &gone[call.block.0 as usize];
            if gone.contains(&true) {
                let mut gone = gone.iter();
                call.args.retain(|_| gone.next() == Some(&false));
            }
        }
        if !gone[b.0 as usize].contains(&true) {
            continue;
        }
        let mut params = std::mem::take(&mut f.block_mut(b).params);
        let mut gone = gone[b.0 as usize].iter();
        params.retain(|_| gone.next() == Some(&false));
        for (index, p) in params.iter().enumerate() {
            f.values[p.0 as usize].def = ValueDef::Param(b, index as u32);
        }
        f.block_mut(b).params = params;
    }
}

/// Lets branches to empty blocks go where those jump.
///
/// Operands of such a jump are defined above the empty block, hence above all its predecessors.
fn thread(f: &mut Function) -> usize {
    let mut changes = 0;
    for n in 0..f.order.len() {
        let b = f.order[n];
        let mut term = std::mem::replace(&mut f.block_mut(b).term, Term::None);
        for call in term.targets_mut() {
            // A cycle of empty blocks is cut off by the count.
            for _ in 0..16 {
                match empty_jump(f, call.block) {
                    Some(next) if next.block != call.block => *call = next.clone(),
                    _ => break,
                }
                changes += 1;
            }
        }
        f.block_mut(b).term = term;
    }
    changes
}

fn empty_jump(f: &Function, b: Block) -> Option<&BlockCall> {
    let data = f.block(b);
    match &data.term {
        Term::Jump(next) if data.insts.is_empty() && data.params.is_empty() => Some(next),
        _ => None,
    }
}

/// Appends a block to the only one that jumps to it.
fn merge(f: &mut Function) -> usize {
    let preds = f.predecessors();
    let mut gone = vec![false; f.blocks.len()];
    let mut changes = 0;
    for b in reverse_post_order(f) {
        if gone[b.0 as usize] {
            continue;
        }
        while let Term::Jump(call) = &f.block(b).term {
            let next = call.block;
            if next == b || preds[next.0 as usize].len() != 1 {
                break;
            }
            let args = call.args.clone();
            let params = std::mem::take(&mut f.block_mut(next).params);
            for (p, a) in params.into_iter().zip(args) {
                f.replace(p, a);
            }
            let data = f.block_mut(next);
            let mut insts = std::mem::take(&mut data.insts);
            let term = std::mem::replace(&mut data.term, Term::None);
            let line = data.term_line;
            let data = f.block_mut(b);
            data.insts.append(&mut insts);
            data.term = term;
            data.term_line = line;
            gone[next.0 as usize] = true;
            changes += 1;
        }
    }
    f.order.retain(|b| !gone[b.0 as usize]);
    changes
}
