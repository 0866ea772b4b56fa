//! Checks of device memory: puts an operation before each access to it, which records lanes that miss their buffers.
//!
//! Runs where [`super::PassOptions::check_buffers`] asks for it, and last, so that no other pass sees these operations, and the other
//! code is what it is without them. Rectangles ([`Op::Load2d`]) have none: the runtime accesses and checks them itself.

use super::edit::insert_before;
use crate::ssa::{BufferCheck, Function, Op, Space};

/// Runs the pass. What is known of an access's addresses is known of its check's.
pub(super) fn run(f: &mut Function) -> usize {
    insert_before(f, |f, i| {
        let data = f.inst(i);
        let (check, line) = (check_of(&data.op)?, data.line);
        let args = data.args.iter().take(2).copied().collect();
        let inst = f.make(Op::CheckBuffer(check), args, &[], line);
        if let Some(&shape) = f.shapes.get(&i) {
            f.shapes.insert(inst, shape);
        }
        Some(inst)
    })
}

/// What to look at before an operation.
fn check_of(op: &Op) -> Option<BufferCheck> {
    let (space, elem, count, site) = op.elements()?;
    let aligned = matches!(op, Op::Atomic(_));
    let writes = match op {
        Op::Atomic(m) => m.writes(),
        _ => matches!(op, Op::Store(_) | Op::BlockStore(_)),
    };
    (space == Space::Flat).then_some(BufferCheck {
        elem,
        count,
        aligned,
        writes,
        site,
    })
}
