//! Checks of races: puts an operation before each access to memory that other threads reach, which compares it with earlier accesses.
//!
//! Runs where [`super::PassOptions::check_races`] asks for it. Only `check-aligned` and `check-buffers` run later, so no optimisation sees these
//! operations, and the other code is what it is without them. Rectangles ([`Op::Load2d`]) have none: the runtime accesses and checks them itself.
//!
//! Most kernels read some buffers and write others. Nothing races with a read of a buffer that the launch does not write. So if all writes to
//! device memory go through pointers among the arguments, each check names its pointer ([`RaceCheck::pointer`]), and the launch knows the buffers.

use std::collections::BTreeSet;

use super::edit::insert_before;
use crate::ssa::shape::Shape;
use crate::ssa::{Function, ImageOp, Inst, Op, RaceAccess, RaceCheck, Space};

/// Runs the pass. A check gets the address shape of its access.
pub(super) fn run(f: &mut Function) -> usize {
    f.written = written(f);
    insert_before(f, |f, i| {
        let data = f.inst(i);
        let (check, line) = (check_of(&data.op)?, data.line);
        let check = RaceCheck {
            pointer: told_pointer(f, i, check),
            ..check
        };
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
        pointer: None,
    })
}

/// Offset in the payload of the pointer that an access to device memory goes through.
fn pointer(f: &Function, i: Inst) -> Option<u32> {
    let pointer = f.pointer_in_payload(*f.inst(i).args.get(1)?);
    pointer.filter(|at| at.is_multiple_of(8))
}

/// The pointer that a check names.
fn told_pointer(f: &Function, i: Inst, check: RaceCheck) -> Option<u32> {
    let written = f.written.as_ref().filter(|_| check.space.is_flat())?;
    let reads = check.access == RaceAccess::Read;
    pointer(f, i).filter(|at| reads != written.contains(at))
}

/// The pointers of all writes; `None` if one is not known, or if no read goes through another pointer. Atomics count as writes.
fn written(f: &Function) -> Option<BTreeSet<u32>> {
    let (mut written, mut read) = (BTreeSet::new(), BTreeSet::new());
    for &i in f.order.iter().flat_map(|&b| &f.block(b).insts) {
        let op = &f.inst(i).op;
        let elsewhere = match op {
            Op::Store2d(_) => true,
            Op::Image(m) => matches!(
                m.op,
                ImageOp::Write | ImageOp::BlockWrite | ImageOp::Atomic(_) | ImageOp::AtomicShort(_)
            ),
            _ => false,
        };
        if elsewhere {
            return None;
        }
        let Some(check) = check_of(op).filter(|check| check.space != Space::Slm) else {
            continue;
        };
        match (check.access, check.space.is_flat()) {
            (RaceAccess::Read, true) => read.extend(pointer(f, i)),
            (RaceAccess::Read, false) => {}
            (_, true) => drop(written.insert(pointer(f, i)?)),
            (_, false) => return None,
        }
    }
    (!read.is_subset(&written)).then_some(written)
}
