//! What reads the values of a function, and how often: for what code generators leave out, keep in registers or pass on.

use crate::ssa::{Block, Function, Inst, Value};

/// What an instruction reads, with the scalars that say how its addresses are spaced.
pub(super) fn read(f: &Function, i: Inst) -> impl Iterator<Item = Value> {
    let shape = f.shapes.get(&i).copied().unwrap_or_default();
    let addr = shape.addr.map(|a| [Some(a.base), a.guard]);
    let scalars = addr.into_iter().flatten().chain([shape.mask_all]).flatten();
    f.inst(i).args.iter().copied().chain(scalars)
}

/// What the end of a block reads.
pub(super) fn ending(f: &Function, b: Block) -> impl Iterator<Item = Value> {
    let term = &f.block(b).term;
    let calls = term.targets().into_iter();
    calls
        .flat_map(|call| call.args.iter().copied())
        .chain(term.condition())
}

/// How often each value is read; scalars that only say how addresses are spaced do not count.
pub(super) fn counts(f: &Function) -> Vec<u32> {
    let mut counts = vec![0; f.values.len()];
    for &b in &f.order {
        let insts = f.block(b).insts.iter();
        let args = insts.flat_map(|&i| &f.inst(i).args).copied();
        for v in args.chain(ending(f, b)) {
            counts[v.0 as usize] += 1;
        }
    }
    counts
}

/// Values that other blocks use than the one they are made in.
pub(super) fn escapes(f: &Function) -> Vec<bool> {
    let mut home: Vec<Option<Block>> = vec![None; f.values.len()];
    for &b in &f.order {
        let results = f.block(b).insts.iter().flat_map(|&i| &f.inst(i).results);
        for v in f.block(b).params.iter().chain(results) {
            home[v.0 as usize] = Some(b);
        }
    }
    let mut escapes = vec![false; f.values.len()];
    for &b in &f.order {
        let insts = f.block(b).insts.iter().flat_map(|&i| read(f, i));
        for v in insts.chain(ending(f, b)) {
            escapes[v.0 as usize] |= home[v.0 as usize] != Some(b);
        }
    }
    escapes
}
