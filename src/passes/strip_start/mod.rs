//! The start of a function, up to its first store, runs strip by strip: some lanes at a time instead of sixteen or thirty-two.
//!
//! Code generators with few or narrow registers spill when many wide vectors are alive, and need several instructions for each operation on
//! them. Large kernels do not fit into the processor's first-level cache of instructions then. Most kernels load, compute, and store what they found at
//! the end. What stands before that, be it straight or full of loops, becomes the body of a loop over strips.
//!
//! ```text
//!  gate ─► strip ─► start … ─► done ─► rest …
//!            ▲                  │
//!            └──────────────────┘
//! ```
//!
//! The gate stores the vectors that the start reads to the storage of registers, each strip takes its part from there, and puts what the rest reads
//! there as well.
//!
//! Guarantees: what the rest sees is the same in every lane, for any input. For that, the start has one entry and one end, nothing in
//! it stores or waits, and every operation is lane-wise ([`region`]). Branches are on scalars, or jump over code where a mask has no lane; strips
//! take different ways there, of which nothing may be seen ([`agree`]). Addresses that the rest computes from what stands in front of the start are
//! computed there again.
//!
//! Not done: loops that go on while a mask has lanes; where faults are recorded, as the lanes of an access are not known by number then; threads
//! of several rows, for which `split-rows` does the same.

mod agree;
mod copy;
mod cost;
mod differ;
mod region;

use region::Region;

use super::edit::registers_may_grow;
use super::strip_mine::line;
use crate::ssa::dom::DomTree;
use crate::ssa::remark::Decision;
use crate::ssa::{Function, Remark};

/// Runs the pass; with `always` also where it does not pay.
pub(super) fn run(f: &mut Function, always: bool) -> usize {
    if !registers_may_grow(f) || f.row.is_some_and(|row| row < f.simd) {
        return 0;
    }
    let dom = DomTree::new(f);
    let Some(region) = Region::find(f, &dom, always) else {
        return 0;
    };
    let strips = f.simd / region.strip;
    let blocks = region.blocks.iter().chain([&region.end]).copied();
    let line = line(f, &blocks.collect::<Vec<_>>());
    copy::strips(f, &region);
    f.remarks.push(Remark {
        line,
        inst: None,
        decision: Decision::StartInStrips { strips },
    });
    1
}
