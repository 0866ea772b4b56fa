//! Unions of two parameters that are the same on each edge: lanes that come to a join and lanes that wait there are all lanes, whichever way
//! they went together.

use super::{Pass, Seen};
use crate::passes::edit::uniform_const;
use crate::ssa::dom::DomTree;
use crate::ssa::{BinOp, Block, Function, Lane, Op, Value, ValueDef};

impl Pass {
    /// Replaces such unions by a constant, or by a mask that dominates the join.
    pub(super) fn unions(&mut self, f: &mut Function, dom: &DomTree) {
        let joins = dom.rpo().iter().filter(|&&b| dom.preds(b).len() > 1);
        let unions: Vec<(Value, Seen)> = joins
            .flat_map(|&b| f.block(b).insts.iter().map(move |&i| (b, i)))
            .filter_map(|(b, i)| {
                let data = f.inst(i);
                let (Op::Binary(BinOp::Or), &[union]) = (&data.op, data.results.as_slice()) else {
                    return None;
                };
                let x = param_of(f, b, data.args[0])?;
                let y = param_of(f, b, data.args[1])?;
                let is_bit = f.ty(union).lane == Lane::I1;
                let same = is_bit.then(|| same_on_edges(f, dom, b, [x, y]))?;
                Some((union, same?))
            })
            .collect();
        for (union, same) in unions {
            let same = match same {
                Seen::Bit(bit) => self.constant(f, f.ty(union), bit),
                Seen::Same(v) => v,
            };
            f.replace(union, same);
            self.changes += 1;
        }
        f.resolve_aliases();
    }
}

/// Number of the parameter of a block that a value is.
fn param_of(f: &Function, b: Block, v: Value) -> Option<usize> {
    match f.def(f.resolve(v)) {
        ValueDef::Param(home, n) if home == b => Some(n as usize),
        _ => None,
    }
}

/// What the union of two parameters is on all edges into their block.
fn same_on_edges(f: &Function, dom: &DomTree, b: Block, params: [usize; 2]) -> Option<Seen> {
    let mut found: Option<Seen> = None;
    for &p in dom.preds(b) {
        let targets = f.block(p).term.targets();
        for call in targets.into_iter().filter(|call| call.block == b) {
            let args = params.map(|n| f.resolve(call.args[n]));
            let bits = args.map(|v| uniform_const(f, v).map(|bits| bits != 0));
            let here = match (bits, args) {
                ([Some(true), _] | [_, Some(true)], _) => Seen::Bit(true),
                ([Some(false), Some(false)], _) => Seen::Bit(false),
                ([Some(false), _], [_, v]) | ([_, Some(false)], [v, _]) => Seen::Same(v),
                _ => return None,
            };
            if found.is_some_and(|other| other != here) {
                return None;
            }
            found = Some(here);
        }
    }
    // What all edges pass is made in a block that dominates them all, so also this one.
    found
}
