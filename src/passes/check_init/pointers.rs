//! Whether a function may reach device memory by addresses that come from memory, and not by its arguments only.
//!
//! An index of 32 bits that is extended is no such address. Whatever else of an address comes from memory counts, unless it is a distance from
//! an address in the payload.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;

use crate::ssa::{Conv, Function, Inst, InstData, Op, Space, Value};

/// What addresses that come from memory are.
pub(super) struct Pointers {
    /// Some are pointers, as far as is known.
    pub followed: bool,
    /// Offsets in the payload of 64-bit values that other addresses are computed from. Where such a value is an address, what is added to it from
    /// memory is a distance, and no pointer.
    pub bases: BTreeSet<u32>,
}

/// Looks at a function in which no thread has been suspended yet.
pub(super) fn pointers(f: &Function) -> Pointers {
    let insts: Vec<Inst> = f
        .order
        .iter()
        .flat_map(|&b| f.block(b).insts.clone())
        .collect();
    let mut loaded: FxHashSet<Value> = FxHashSet::default();
    loop {
        let before = loaded.len();
        for &i in &insts {
            let data = f.inst(i);
            if brings(data) || passes_on(f, data) && data.args.iter().any(|a| loaded.contains(a)) {
                loaded.extend(&data.results);
            }
        }
        for &b in &f.order {
            for call in f.block(b).term.targets() {
                for (&p, a) in f.block(call.block).params.iter().zip(&call.args) {
                    if loaded.contains(a) {
                        loaded.insert(p);
                    }
                }
            }
        }
        if loaded.len() == before {
            break;
        }
    }
    let mut found = Pointers {
        followed: false,
        bases: BTreeSet::new(),
    };
    for &i in &insts {
        let data = f.inst(i);
        let flat = match data.op {
            Op::Load2d(_) | Op::Store2d(_) => true,
            ref op => matches!(op.elements(), Some((Space::Flat, ..))),
        };
        if let Some(&at) = data.args.get(1).filter(|at| flat && loaded.contains(*at)) {
            match f.pointer_in_payload(at) {
                Some(offset) => drop(found.bases.insert(offset)),
                None => found.followed = true,
            }
        }
    }
    found
}

/// True for what gives values that come from memory.
fn brings(data: &InstData) -> bool {
    matches!(
        data.op,
        Op::Load(_)
            | Op::BlockLoad(_)
            | Op::Load2d(_)
            | Op::Atomic(_)
            | Op::Image(_)
            | Op::Exchange
    )
}

/// True for what may give a part of an address if an operand is one.
fn passes_on(f: &Function, data: &InstData) -> bool {
    let small = |v: &Value| f.ty(*v).lane.bits() <= 32;
    match data.op {
        Op::Convert(Conv::SExt | Conv::ZExt) => !data.args.iter().all(small),
        Op::Convert(Conv::Trunc) | Op::Bitcast => true,
        Op::ICmp(_) | Op::FCmp(_) | Op::Convert(_) | Op::FpEnv(_) => false,
        Op::MaskAny | Op::MaskAll | Op::MaskToBits | Op::BitsToMask => false,
        ref op => !op.has_effect(),
    }
}
