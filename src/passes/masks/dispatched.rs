//! Masks that have only dispatched lanes: all execution masks do, but each join and loop hides it in a parameter.
//!
//! An optimistic fixed point: every mask as wide as the dispatch mask is taken to be part of it until an operation or an
//! argument says otherwise.

use super::facts::Facts;
use crate::passes::edit::uniform_const;
use crate::ssa::dom::DomTree;
use crate::ssa::{BinOp, Function, Input, InstData, Op, Value};

/// Adds a fact for each block parameter that is part of the dispatch mask, and keeps which values are.
pub(super) fn run(f: &Function, dom: &DomTree, facts: &mut Facts) {
    // The entry dominates all parameters, so the fact speaks of values that are defined.
    let entry = &f.block(Function::ENTRY).insts;
    let input = |&&i: &&_| f.inst(i).op == Op::Input(Input::DispatchMask);
    let Some(&input) = entry.iter().find(input) else {
        return;
    };
    let whole = f.inst(input).results[0];
    let mut part: Vec<bool> = f.values.iter().map(|v| v.ty == f.ty(whole)).collect();
    loop {
        let mut changed = false;
        for &b in dom.rpo() {
            for &i in &f.block(b).insts {
                let data = f.inst(i);
                for r in &data.results {
                    let n = r.0 as usize;
                    if part[n] && !is_part(f, data, *r, &part) {
                        (part[n], changed) = (false, true);
                    }
                }
            }
            for call in f.block(b).term.targets() {
                for (p, &a) in f.block(call.block).params.iter().zip(&call.args) {
                    let n = p.0 as usize;
                    if part[n] && !part[f.resolve(a).0 as usize] {
                        (part[n], changed) = (false, true);
                    }
                }
            }
        }
        if !changed {
            break;
        }
    }
    for &b in dom.rpo() {
        for &p in &f.block(b).params {
            if part[p.0 as usize] {
                facts.add_part(p, whole);
            }
        }
    }
    facts.set_dispatched(whole, part);
}

fn is_part(f: &Function, data: &InstData, result: Value, part: &[bool]) -> bool {
    let arg = |n: usize| part[f.resolve(data.args[n]).0 as usize];
    match &data.op {
        Op::Input(Input::DispatchMask) => true,
        Op::Const(_) | Op::VecConst(_) => uniform_const(f, result) == Some(0),
        Op::Binary(BinOp::And) => arg(0) || arg(1),
        Op::Binary(BinOp::Or | BinOp::Xor) => arg(0) && arg(1),
        // Scalar conditions choose one, masks a part of each.
        Op::Select => arg(1) && arg(2),
        _ => false,
    }
}
