//! Checks of races: in front of each access to memory that other threads reach stands an operation that compares it with earlier ones.
//!
//! Runs where [`super::PassOptions::check_races`] asks for it, and when all others are done, so that none sees these operations and code without
//! them is what it was. Rectangles ([`Op::Load2d`]) have none: the runtime carries them out and checks them itself.

use crate::ssa::{Function, Op, RaceAccess, RaceCheck, Space};

/// Runs the pass.
pub fn run(f: &mut Function) -> usize {
    let mut made = 0;
    for b in f.order.clone() {
        let mut insts = Vec::new();
        for i in std::mem::take(&mut f.block_mut(b).insts) {
            let data = f.inst(i);
            let line = data.line;
            if let Some(check) = check_of(&data.op) {
                let head = 2 + usize::from(check.space.has_surface());
                let stores = check.access == RaceAccess::Write;
                let count = if stores { data.args.len() } else { head };
                let args = data.args.iter().take(count).copied().collect();
                insts.push(f.make(Op::CheckRace(check), args, &[], line));
                made += 1;
            }
            insts.push(i);
        }
        f.block_mut(b).insts = insts;
    }
    made
}

/// What to look at before an operation.
fn check_of(op: &Op) -> Option<RaceCheck> {
    let (space, elem, count, site) = match op {
        Op::Load(m) | Op::Store(m) => (m.space, m.elem, m.comps.into(), m.site),
        Op::BlockLoad(m) | Op::BlockStore(m) => (m.space, m.elem, m.n, m.site),
        Op::Atomic(m) => (m.space, m.elem, 1, m.site),
        _ => return None,
    };
    let access = match op {
        Op::Load(_) | Op::BlockLoad(_) => RaceAccess::Read,
        Op::Atomic(m) if m.writes() => RaceAccess::AtomicWrite,
        Op::Atomic(_) => RaceAccess::AtomicRead,
        _ => RaceAccess::Write,
    };
    let shared = matches!(space, Space::Surface | Space::Slm | Space::Flat);
    shared.then_some(RaceCheck {
        space,
        elem,
        count,
        access,
        block: matches!(op, Op::BlockLoad(_) | Op::BlockStore(_)),
        site,
    })
}
