//! Loads whose marks are tracked through copies, instead of being tested at the load: copying uninitialised values is no error, and compilers copy
//! whole arrays of which only a part was written.
//!
//! These are all loads from storage of registers. They are also loads from local memory and scratch whose results are only moved, and only stored
//! where marks are stored as well. Tracking marks through arithmetic costs more than one test, and kernels that compute with uninitialised
//! values are rarely correct.

use rustc_hash::FxHashSet;

use crate::ssa::{Conv, Function, Inst, Op, Space, Value};

/// Looks at a function.
pub(super) fn followed(f: &Function) -> FxHashSet<Inst> {
    let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
    let loads = insts.copied().filter_map(|i| match f.inst(i).op {
        Op::Load(m) => Some((i, m.space)),
        Op::BlockLoad(m) => Some((i, m.space)),
        _ => None,
    });
    let own = loads.filter(|(_, space)| has_marks_of_stores(*space));
    let own: Vec<(Inst, Space)> = own.collect();
    if own.is_empty() {
        return FxHashSet::default();
    }
    let used = used(f);
    let wanted = |&(i, space): &(Inst, Space)| {
        space == Space::Regs || f.inst(i).results.iter().all(|r| !used.contains(r))
    };
    own.into_iter().filter(wanted).map(|(i, _)| i).collect()
}

/// Whether stores to such memory store marks.
pub(super) fn has_marks_of_stores(space: Space) -> bool {
    matches!(space, Space::Slm | Space::Scratch | Space::Regs)
}

/// Values of which more is done than to move them.
fn used(f: &Function) -> FxHashSet<Value> {
    let mut used = FxHashSet::default();
    loop {
        let before = used.len();
        for &b in f.order.iter().rev() {
            let term = &f.block(b).term;
            used.extend(term.condition());
            for call in term.targets() {
                let params = &f.block(call.block).params;
                let wanted = params.iter().zip(&call.args);
                let wanted: Vec<Value> = wanted
                    .filter(|(p, _)| used.contains(*p))
                    .map(|(_, a)| *a)
                    .collect();
                used.extend(wanted);
            }
            for &i in f.block(b).insts.iter().rev() {
                let data = f.inst(i);
                let decides = match data.op {
                    Op::Store(m) if has_marks_of_stores(m.space) => 2,
                    Op::BlockStore(m) if has_marks_of_stores(m.space) => 2,
                    Op::Select => 1,
                    ref op if moves(op) => 0,
                    _ => data.args.len(),
                };
                let whole = data.results.iter().any(|r| used.contains(r));
                let decides = if whole { data.args.len() } else { decides };
                used.extend(data.args.iter().take(decides));
            }
        }
        if used.len() == before {
            return used;
        }
    }
}

/// True for what only moves bits of all its operands.
fn moves(op: &Op) -> bool {
    matches!(
        op,
        Op::Bitcast
            | Op::Splat
            | Op::ExtractLane(_)
            | Op::InsertLane(_)
            | Op::Shuffle(_)
            | Op::Convert(Conv::Trunc | Conv::ZExt)
    )
}
