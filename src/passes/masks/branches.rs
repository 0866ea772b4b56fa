//! Branches that a dominating branch decides.
//!
//! Below the taken side of `branch maskany m` the mask `m` has a lane, and so has every mask that
//! contains it; below the other side it has none, nor has any part of it.

use super::facts::{Facts, Part};
use crate::ssa::dom::DomTree;
use crate::ssa::remark::Decision;
use crate::ssa::{Block, Function, Op, Term, Ty, Value};

/// Dominating branches that are looked back at.
const DEPTH: usize = 8;

/// What a dominating branch says: its condition is `value`.
#[derive(Clone, Copy)]
struct Known {
    cond: Value,
    value: bool,
}

/// Decides branches.
pub(super) fn run(f: &mut Function, dom: &DomTree, facts: &mut Facts) -> usize {
    let mut changes = 0;
    for &b in dom.rpo() {
        let Term::Branch { cond, .. } = f.block(b).term else {
            continue;
        };
        let cond = f.resolve(cond);
        let Some(value) = decide(f, dom, facts, b, cond) else {
            continue;
        };
        let constant = f.push1(b, Op::Const(value.into()), Vec::new(), Ty::BOOL, 0);
        if let Term::Branch { cond, .. } = &mut f.block_mut(b).term {
            *cond = constant;
            changes += 1;
        }
        let what = "a branch on whether a mask has lanes is decided by one before it";
        f.remark_value(cond, Decision::MaskUsed(what));
    }
    changes
}

fn decide(f: &Function, dom: &DomTree, facts: &mut Facts, b: Block, cond: Value) -> Option<bool> {
    let mask = any_of(f, cond);
    let mut at = b;
    for _ in 0..DEPTH {
        if let [p] = dom.preds(at)
            && let Some(known) = on_edge(f, *p, at)
        {
            if known.cond == cond {
                return Some(known.value);
            }
            if let (Some(m), Some(n)) = (mask, any_of(f, known.cond))
                && f.ty(m) == f.ty(n)
            {
                let part = |mask| Part { mask, first: 0 };
                let (inner, outer) = if known.value { (n, m) } else { (m, n) };
                if facts.subset(f, part(inner), part(outer), f.ty(m).lanes) {
                    return Some(known.value);
                }
            }
        }
        at = dom.idom(at)?;
    }
    None
}

fn any_of(f: &Function, cond: Value) -> Option<Value> {
    let data = f.def_inst(cond).filter(|d| d.op == Op::MaskAny)?;
    Some(f.resolve(data.args[0]))
}

fn on_edge(f: &Function, p: Block, b: Block) -> Option<Known> {
    match &f.block(p).term {
        Term::Branch { cond, then, other } if then.block != other.block => Some(Known {
            cond: f.resolve(*cond),
            value: then.block == b,
        }),
        _ => None,
    }
}
