//! Checks of device memory: in front of each access to it stands an operation that records lanes which miss their buffers.
//!
//! Runs where [`super::PassOptions::check_buffers`] asks for it, and last, so that no other pass sees these operations and code without
//! them is what it was. Rectangles ([`Op::Load2d`]) have none: the runtime carries them out and checks them itself.

use crate::ssa::{BufferCheck, Function, Op, Space};

/// Runs the pass. What is known of an access's addresses is known of its check's.
pub fn run(f: &mut Function) -> usize {
    let mut made = 0;
    for b in f.order.clone() {
        let mut insts = Vec::new();
        for i in std::mem::take(&mut f.block_mut(b).insts) {
            let data = f.inst(i);
            let line = data.line;
            if let Some(check) = check_of(&data.op) {
                let args = data.args.iter().take(2).copied().collect();
                let inst = f.make(Op::CheckBuffer(check), args, &[], line);
                if let Some(&shape) = f.shapes.get(&i) {
                    f.shapes.insert(inst, shape);
                }
                insts.push(inst);
                made += 1;
            }
            insts.push(i);
        }
        f.block_mut(b).insts = insts;
    }
    made
}

/// What to look at before an operation.
fn check_of(op: &Op) -> Option<BufferCheck> {
    let (space, elem, count, site) = match op {
        Op::Load(m) | Op::Store(m) => (m.space, m.elem, m.comps.into(), m.site),
        Op::BlockLoad(m) | Op::BlockStore(m) => (m.space, m.elem, m.n, m.site),
        Op::Atomic(m) => (m.space, m.elem, 1, m.site),
        _ => return None,
    };
    let aligned = matches!(op, Op::Atomic(_));
    (space == Space::Flat).then_some(BufferCheck {
        elem,
        count,
        aligned,
        site,
    })
}
