//! Masks whose lanes are all lanes of another one: of the dispatch mask, which every execution mask is a part of, and in a loop, of the
//! execution mask that its iteration began with. Each join and loop hides that in a parameter.
//!
//! An optimistic fixed point for each of these *ceilings*: every mask as wide as the ceiling is taken to be part of it until an operation or an
//! argument says otherwise.

use super::facts::Facts;
use crate::passes::edit::uniform_const;
use crate::ssa::dom::DomTree;
use crate::ssa::{BinOp, Block, Function, Input, InstData, Op, Ty, Value};

/// Masks of loops that are looked into, the first ones in reverse post order.
const LOOP_MASKS: usize = 32;

/// Adds a fact for each block parameter that is part of a ceiling, and keeps which values are.
pub(super) fn run(f: &Function, dom: &DomTree, facts: &mut Facts) {
    // The entry dominates all parameters, so the fact speaks of values that are defined. Where all lanes are known to be there,
    // nothing reads the dispatch mask.
    let entry = &f.block(Function::ENTRY).insts;
    let input = |&&i: &&_| f.inst(i).op == Op::Input(Input::DispatchMask);
    let input = entry.iter().find(input).map(|&i| f.inst(i).results[0]);
    let dispatched = input.map(|whole| parts(f, dom, whole, Function::ENTRY));
    let mask = Ty::mask(f.simd);
    let narrow = |&(p, _): &(Value, Block)| match &dispatched {
        Some(part) => part[p.0 as usize],
        None => f.ty(p) == mask,
    };
    let headers = dom.rpo().iter().copied().filter(|&b| is_header(dom, b));
    let loops: Vec<(Value, Block)> = headers
        .flat_map(|b| f.block(b).params.iter().map(move |&p| (p, b)))
        .filter(narrow)
        .take(LOOP_MASKS)
        .collect();
    if let (Some(whole), Some(part)) = (input, dispatched) {
        add(f, dom, facts, (whole, part));
        facts.set_dispatched(whole);
    }
    for (mask, header) in loops {
        let part = parts(f, dom, mask, header);
        if part.iter().filter(|&&p| p).count() > 1 {
            add(f, dom, facts, (mask, part));
        }
    }
}

fn is_header(dom: &DomTree, b: Block) -> bool {
    dom.preds(b).iter().any(|&p| dom.is_back_edge(p, b))
}

fn add(f: &Function, dom: &DomTree, facts: &mut Facts, (whole, part): (Value, Vec<bool>)) {
    for &p in dom.rpo().iter().flat_map(|&b| &f.block(b).params) {
        if part[p.0 as usize] && p != whole {
            facts.add_part(p, whole);
        }
    }
    facts.add_ceiling(whole, part);
}

/// Which values are masks with lanes of `whole` only, among those made in `home` or in blocks that it dominates.
fn parts(f: &Function, dom: &DomTree, whole: Value, home: Block) -> Vec<bool> {
    let blocks = dom.rpo().iter().copied();
    let blocks: Vec<Block> = blocks.filter(|&b| dom.dominates(home, b)).collect();
    let mut part = vec![false; f.values.len()];
    for &b in &blocks {
        let results = f.block(b).insts.iter().flat_map(|&i| &f.inst(i).results);
        let params = f.block(b).params.iter().filter(|_| b != home);
        for v in params.chain(results) {
            part[v.0 as usize] = f.ty(*v) == f.ty(whole);
        }
    }
    part[whole.0 as usize] = true;
    loop {
        let mut changed = false;
        for &b in &blocks {
            for &i in &f.block(b).insts {
                let data = f.inst(i);
                for &r in data.results.iter().filter(|&&r| r != whole) {
                    let n = r.0 as usize;
                    if part[n] && !is_part(f, data, r, &part) {
                        (part[n], changed) = (false, true);
                    }
                }
            }
            for call in f.block(b).term.targets() {
                for (p, &a) in f.block(call.block).params.iter().zip(&call.args) {
                    let n = p.0 as usize;
                    if *p != whole && part[n] && !is_part_of(f, a, &part) {
                        (part[n], changed) = (false, true);
                    }
                }
            }
        }
        if !changed {
            return part;
        }
    }
}

/// True for parts, and for a mask without lanes wherever it is made.
fn is_part_of(f: &Function, v: Value, part: &[bool]) -> bool {
    let v = f.resolve(v);
    part[v.0 as usize] || uniform_const(f, v) == Some(0)
}

fn is_part(f: &Function, data: &InstData, result: Value, part: &[bool]) -> bool {
    let arg = |n: usize| is_part_of(f, data.args[n], part);
    match &data.op {
        Op::Const(_) | Op::VecConst(_) => uniform_const(f, result) == Some(0),
        Op::Binary(BinOp::And) => arg(0) || arg(1),
        Op::Binary(BinOp::Or | BinOp::Xor) => arg(0) && arg(1),
        // Scalar conditions choose one, masks a part of each.
        Op::Select => arg(1) && arg(2),
        _ => false,
    }
}
