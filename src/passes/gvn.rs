//! Value numbering: an operation without effect that was computed before, in a dominating place
//! with the same operands, is replaced by the earlier result.
//!
//! Operands of commutative operations are put in order first. Does not look at memory, and does
//! not move anything: an expression computed on two sides of a branch stays twice.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};

use super::edit::{Rewriter, const_lanes};
use crate::ssa::dom::DomTree;
use crate::ssa::{Block, Function, Inst};

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let dom = DomTree::new(f);
    // The last instruction of each hash; equality and dominance are tested on use.
    let mut leaders: FxHashMap<u64, (Inst, Block)> = FxHashMap::default();
    let mut rewriter = Rewriter::new(f);
    for b in dom.preorder() {
        rewriter.block(b, |r, i| {
            if r.f.inst(i).op.has_effect() || r.f.inst(i).results.len() != 1 {
                return true;
            }
            order_operands(r.f, i);
            let key = hash(r.f, i);
            if let Some(&(leader, home)) = leaders.get(&key)
                && same(r.f, leader, i)
                && dom.dominates(home, b)
            {
                let (from, to) = (r.f.inst(i).results[0], r.f.inst(leader).results[0]);
                r.f.replace(from, to);
                r.changes += 1;
                return false;
            }
            leaders.insert(key, (i, b));
            true
        });
    }
    let changes = rewriter.changes;
    f.resolve_aliases();
    changes
}

/// Puts operands that may change places in order: by number, constants last as `fold` has them.
fn order_operands(f: &mut Function, i: Inst) {
    let data = f.inst(i);
    let rank = |v| (const_lanes(f, v).is_some(), v);
    if let [a, b] = data.args.as_slice()
        && rank(*a) > rank(*b)
        && data.op.commutes()
    {
        f.inst_mut(i).args.swap(0, 1);
    }
}

fn hash(f: &Function, i: Inst) -> u64 {
    let data = f.inst(i);
    let mut h = FxHasher::default();
    data.op.hash(&mut h);
    data.args.hash(&mut h);
    f.ty(data.results[0]).hash(&mut h);
    h.finish()
}

fn same(f: &Function, a: Inst, b: Inst) -> bool {
    let (x, y) = (f.inst(a), f.inst(b));
    x.op == y.op && x.args == y.args && f.ty(x.results[0]) == f.ty(y.results[0])
}
