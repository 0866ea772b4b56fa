//! One division for the quotients and remainders of the same operands.
//!
//! A remainder is `a - q * b` for every `a` and `b` that the operations are defined for, which is all: a zero divisor makes the product
//! zero and leaves the dividend, and `MIN / -1` is `MIN`, whose product with -1 is `MIN`, so that nothing is left.
//!
//! Where none of them comes before all others, the division goes to where their paths part. It has no effect, so that it
//! may be computed for nothing.

use std::collections::BTreeMap;

use crate::ssa::dom::DomTree;
use crate::ssa::{BinOp, Block, Function, Inst, Op, Value, ValueDef};

/// Signed or not, and the operands.
type Key = (bool, Value, Value);

/// Divisions with the same operands, in reverse post order of their blocks.
type Members = Vec<(Block, Inst)>;

pub(super) fn run(f: &mut Function) -> usize {
    let dom = DomTree::new(f);
    let mut groups: BTreeMap<Key, Members> = BTreeMap::new();
    for &b in dom.rpo() {
        for &i in &f.block(b).insts {
            if let Some((key, _)) = division(f, i) {
                groups.entry(key).or_default().push((b, i));
            }
        }
    }
    let mut changes = 0;
    for (key, members) in groups {
        let kinds = members.iter().filter_map(|&(_, i)| division(f, i));
        let quotients = kinds.filter(|&(_, rest)| !rest).count();
        // One quotient, or one remainder, is all that there is to do.
        if members.len() < 2 || members.len() == quotients && alone(&dom, &members) {
            continue;
        }
        if let Some(place) = block_for(f, &dom, key, &members) {
            join(f, key, &members, place);
            changes += members.len();
        }
    }
    f.resolve_aliases();
    changes
}

/// The operands of a division, and whether the remainder is wanted.
fn division(f: &Function, i: Inst) -> Option<(Key, bool)> {
    let data = f.inst(i);
    let (signed, rest) = match data.op {
        Op::Binary(BinOp::SDiv) => (true, false),
        Op::Binary(BinOp::UDiv) => (false, false),
        Op::Binary(BinOp::SRem) => (true, true),
        Op::Binary(BinOp::URem) => (false, true),
        _ => return None,
    };
    Some((
        (signed, f.resolve(data.args[0]), f.resolve(data.args[1])),
        rest,
    ))
}

/// True when value numbering joins quotients by itself: the first one comes before the others.
fn alone(dom: &DomTree, members: &Members) -> bool {
    let first = members[0].0;
    members.iter().all(|&(b, _)| dom.dominates(first, b))
}

/// The block in which one division serves all.
fn block_for(f: &Function, dom: &DomTree, (_, a, b): Key, members: &Members) -> Option<Block> {
    let mut at = members[0].0;
    while !members.iter().all(|&(m, _)| dom.dominates(at, m)) {
        at = dom.idom(at)?;
    }
    let known = |v: Value| match f.def(v) {
        ValueDef::Param(home, _) => dom.dominates(home, at),
        ValueDef::Result(..) => {
            // A member's own block has its operands in front of it.
            let inside = members.iter().any(|&(m, _)| m == at);
            inside || defined_in(f, dom, v).is_some_and(|home| dom.dominates(home, at))
        }
        ValueDef::Alias(_) => false,
    };
    (known(a) && known(b)).then_some(at)
}

fn defined_in(f: &Function, dom: &DomTree, v: Value) -> Option<Block> {
    let ValueDef::Result(i, _) = f.def(v) else {
        return None;
    };
    let holds = |b: &&Block| f.block(**b).insts.contains(&i);
    dom.rpo().iter().find(holds).copied()
}

/// Divides once in a block, in front of the first member there or at its end.
fn join(f: &mut Function, (signed, a, b): Key, members: &Members, at: Block) {
    let first = members.iter().find(|m| m.0 == at).unwrap_or(&members[0]).1;
    let (ty, line) = (f.ty(a), f.inst(first).line);
    let op = if signed { BinOp::SDiv } else { BinOp::UDiv };
    let new = f.make(Op::Binary(op), vec![a, b], &[ty], line);
    let quotient = f.inst(new).results[0];
    let insts = &mut f.block_mut(at).insts;
    let position = insts.iter().position(|&i| i == first);
    insts.insert(position.unwrap_or(insts.len()), new);
    for &(home, i) in members {
        let rest = division(f, i).is_some_and(|(_, rest)| rest);
        let (old, line) = (f.inst(i).results[0], f.inst(i).line);
        if !rest {
            f.replace(old, quotient);
            continue;
        }
        let product = f.make(Op::Binary(BinOp::Mul), vec![quotient, b], &[ty], line);
        let product_value = f.inst(product).results[0];
        let data = f.inst_mut(i);
        data.op = Op::Binary(BinOp::Sub);
        data.args = vec![a, product_value];
        let insts = &mut f.block_mut(home).insts;
        if let Some(position) = insts.iter().position(|&other| other == i) {
            insts.insert(position, product);
        }
    }
}
