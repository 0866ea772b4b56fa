//! Barriers and exchanges become points where the thread's function returns and is called again.
//!
//! Guarantees: no operation that waits ([`Op::waits`]) is left. The block ends there with `suspend N`; what followed is the
//! *resume block* `N`, which a switch on `input.state` in the entry block reaches. Of an exchange, the thread stores what it gives
//! before it ends, and loads what it gets first of all ([`Exchange`](crate::ssa::Exchange)). Values that were live across a barrier are computed
//! again from what the launch gives, or saved in the thread's frame; which, says [`plan`]. A function that never
//! waits is not touched. This is no optimisation: it runs when all passes are switched off.
//!
//! The split cuts the control flow: a definition dominates less than it did. What it still dominates keeps using it.
//! Every other use lies below another block that only the entry dominates (a resume block, or a join of what
//! several of these reach): the head of a *region*. A value is made again at most once a region, where all its uses there are below,
//! outside of loops. So no block parameters are needed, and constants stay constants.
//!
//! Why the value made there is the right one: let `D` be the definition, `A` the region's head, `U` the use. A path
//! from `A` to `U` without `D` exists, since `D` does not dominate `U` any more. Before the split `D` dominated `U`, so
//! it dominated `A`: the value exists at `A`. Were it defined anew between the place `P` below `A` where it is made
//! and `U`, some path would reach that `D` without passing `A` (it came to `A` through `D`), go on to `U` and miss
//! `P`, which dominates `U`. For the same reason operands of `D` are at `P` what they were at `D`.
//!
//! Not done: values that stay in their slot around a loop (a loop-carried vector is loaded once
//! and saved once a barrier, even if nothing changed it).

mod cost;
mod place;
mod plan;
mod regions;
mod slots;
mod split;

use crate::ssa::dom::{drop_unreachable, reverse_post_order};
use crate::ssa::remark::Decision;
use crate::ssa::{Function, Remark};

/// Runs the pass; the result is the number of places where threads wait.
pub(super) fn run(f: &mut Function) -> usize {
    let order = reverse_post_order(f);
    if !split::waits(f, &order) {
        return 0;
    }
    drop_unreachable(f, &order);
    // Accesses keep their instructions, but scalars of shapes would be lost across barriers.
    f.shapes.clear();
    let pieces = split::run(f, &order);
    let regions = regions::Regions::new(f, &pieces);
    let uses = place::far_uses(f, &regions);
    let plan = plan::Plan::new(f, &regions, &uses);
    let places = place::Places::new(f, &regions, &plan, uses);
    let frame = slots::Frame::new(f, &regions, &plan, &places);
    place::rewrite(f, &regions, &plan, &places, &frame);
    f.remarks.push(Remark {
        line: f.block(pieces.suspends[0].0).term_line,
        inst: None,
        decision: Decision::Barriers {
            count: pieces.suspends.len() as u32,
            saved: plan.saved(),
        },
    });
    pieces.suspends.len()
}
