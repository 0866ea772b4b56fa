//! Memory at its edges: every memory instruction on surfaces, local memory, scratch and device memory that
//! end (or start) at unreadable pages, with offsets inside, across and outside, under every mask and
//! out-of-bounds policy, against models on plain bytes.
//!
//! One compiled kernel serves all cases of an instruction: offsets, mask and data come from a surface.

#[path = "edges/atomics.rs"]
mod atomics;
#[path = "edges/block2d.rs"]
mod block2d;
#[path = "edges/cases.rs"]
mod cases;
#[path = "edges/contention.rs"]
mod contention;
#[path = "edges/coverage.rs"]
mod coverage;
#[path = "edges/duplicates.rs"]
mod duplicates;
#[path = "edges/even.rs"]
mod even;
#[path = "edges/images.rs"]
mod images;
#[path = "edges/kernel.rs"]
mod kernel;
#[path = "edges/layout.rs"]
mod layout;
#[path = "edges/legacy.rs"]
mod legacy;
#[path = "edges/lsc.rs"]
mod lsc;
#[path = "edges/machine.rs"]
mod machine;
#[path = "edges/masks.rs"]
mod masks;
#[path = "edges/media.rs"]
mod media;
#[path = "edges/order.rs"]
mod order;
#[path = "edges/ports.rs"]
mod ports;
#[path = "edges/raw.rs"]
mod raw;
#[path = "edges/records.rs"]
mod records;
#[path = "edges/rig.rs"]
mod rig;
#[allow(dead_code, reason = "shared with other tests")]
#[path = "reference/rng.rs"]
mod rng;
#[path = "edges/seeds.rs"]
mod seeds;
#[path = "edges/svm.rs"]
mod svm;
