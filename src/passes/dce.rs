//! Dead code: removes instructions without effect and block parameters that nothing needs.
//!
//! Guarantees: what is left is an effect, a branch condition, or reaches one through operands;
//! parameters that only feed themselves around a loop go too. Does not remove memory accesses
//! (they may fault) or blocks.

use crate::ssa::{Function, Value, ValueDef};

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let live = live_values(f);
    let is_live = |v: &Value| live[v.0 as usize];
    let mut changes = 0;
    for &b in &f.order {
        let block = &mut f.blocks[b.0 as usize];
        let before = block.insts.len() + block.params.len();
        block.insts.retain(|i| {
            let data = &f.insts[i.0 as usize];
            data.op.has_effect() || data.results.iter().any(is_live)
        });
        block.params.retain(is_live);
        for (n, p) in block.params.iter().enumerate() {
            f.values[p.0 as usize].def = ValueDef::Param(b, n as u32);
        }
        changes += before - block.insts.len() - block.params.len();
    }
    changes
}

/// Marks what effects and branches need, and drops branch arguments of parameters that nothing needs.
fn live_values(f: &mut Function) -> Vec<bool> {
    let mut live = vec![false; f.values.len()];
    let mut work = Vec::new();
    // Arguments by parameter, so that they become live with it.
    let mut args_of: Vec<Vec<Value>> = vec![Vec::new(); f.values.len()];
    for &b in &f.order {
        let block = f.block(b);
        for &i in &block.insts {
            if f.inst(i).op.has_effect() {
                work.extend(&f.inst(i).args);
            }
        }
        work.extend(block.term.condition());
        for call in block.term.targets() {
            for (p, &a) in f.block(call.block).params.iter().zip(&call.args) {
                args_of[p.0 as usize].push(a);
            }
        }
    }
    while let Some(v) = work.pop() {
        if std::mem::replace(&mut live[v.0 as usize], true) {
            continue;
        }
        match f.def(v) {
            ValueDef::Result(i, _) => work.extend(&f.inst(i).args),
            ValueDef::Param(..) => work.append(&mut args_of[v.0 as usize]),
            ValueDef::Alias(to) => work.push(to),
        }
    }
    drop_arguments(f, &live);
    live
}

fn drop_arguments(f: &mut Function, live: &[bool]) {
    for n in 0..f.order.len() {
        let b = f.order[n];
        let mut term = std::mem::replace(&mut f.block_mut(b).term, crate::ssa::Term::None);
        for call in term.targets_mut() {
            let mut params = f.block(call.block).params.iter();
            call.args
                .retain(|_| params.next().is_some_and(|p| live[p.0 as usize]));
        }
        f.block_mut(b).term = term;
    }
}
