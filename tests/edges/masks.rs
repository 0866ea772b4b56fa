//! Every message to lanes under every mask of eight lanes.

use visa_jit::isa::Platform;

use super::kernel::{Guard, Shape};
use super::legacy::{self, Lanes};
use super::lsc::{D16C32, D32, D64, Message};
use super::machine::Space;
use super::rig::{Effort, Rig};
use super::{atomics, raw, svm};

const EVERY: Effort = Effort {
    cases: 256,
    all_masks: true,
    policies: false,
    sizes: &[63, 4096],
};

fn shapes() -> Vec<Shape> {
    let mut out = Vec::new();
    let eight = |guard| Lanes::new(8, 0, 8, guard);
    let (flow, predicate) = (eight(Guard::Flow), eight(Guard::Predicate));
    let skl = Platform::Skl;
    for store in [false, true] {
        for space in [Space::Surface, Space::Slm, Space::Scratch] {
            for size in [1, 4] {
                out.push(legacy::gather(skl, flow, space, size, store));
                out.push(legacy::gather_scaled(skl, predicate, space, size, store));
            }
            out.push(legacy::gather4(skl, predicate, space, 0xb, store));
            out.push(legacy::qwords(Platform::Pvc, flow, space, 2, store));
        }
        for (bytes, blocks) in [(1, 2), (4, 2), (8, 1)] {
            out.push(svm::gather(skl, flow, bytes, blocks, store));
        }
        out.push(svm::gather4(skl, predicate, 0xd, store, false));
        for space in [Space::Flat, Space::Surface, Space::Slm, Space::Scratch] {
            let m = Message::new(Platform::Dg2, flow, space, store);
            out.push(m.vector(D16C32, 1));
            out.push(m.vector(D64, 2));
            out.push(m.quad(D32, 0xd));
            out.push(m.strided(D32, 1, Some(12)));
        }
    }
    out.extend(atomics::of_lanes(predicate));
    out.extend(raw::of_lanes(flow));
    out
}

#[test]
fn every_mask_of_eight_lanes() {
    let mut rig = Rig::new(13);
    for shape in shapes() {
        rig.run(&shape, EVERY);
    }
    rig.finish("every mask of eight lanes");
}
