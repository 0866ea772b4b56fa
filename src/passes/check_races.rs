//! Checks of races: in front of each access to memory that other threads reach stands an operation that compares it with earlier ones.
//!
//! Runs where [`super::PassOptions::check_races`] asks for it, after all passes but `check-aligned` and `check-buffers`, so that no optimisation sees these
//! operations and code without them is what it was. Rectangles ([`Op::Load2d`]) have none: the runtime carries them out and checks them itself.

use super::edit::insert_before;
use crate::ssa::shape::Shape;
use crate::ssa::{Function, Op, RaceAccess, RaceCheck, Space};

/// Runs the pass. How the addresses of an access run is known of its check's.
pub fn run(f: &mut Function) -> usize {
    insert_before(f, |f, i| {
        let data = f.inst(i);
        let (check, line) = (check_of(&data.op)?, data.line);
        // Values are those that a plain store leaves.
        let count = match check.access {
            RaceAccess::Write => data.args.len(),
            _ => 2 + usize::from(check.space.has_surface()),
        };
        let args = data.args.iter().take(count).copied().collect();
        let inst = f.make(Op::CheckRace(check), args, &[], line);
        if let Some(addr) = f.shapes.get(&i).and_then(|shape| shape.addr) {
            let shape = Shape {
                addr: Some(addr),
                ..Shape::default()
            };
            f.shapes.insert(inst, shape);
        }
        Some(inst)
    })
}

/// What to look at before an operation.
fn check_of(op: &Op) -> Option<RaceCheck> {
    let (space, elem, count, site) = op.elements()?;
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
