//! Memory at its edges: every memory instruction on surfaces, local memory, scratch and device memory that
//! end (or start) at unreadable pages, with offsets inside, across and outside, under every mask and
//! out-of-bounds policy, against models on plain bytes.
//!
//! One compiled kernel serves all cases of an instruction: offsets, mask and data come from a surface.

mod affine;
mod atomics;
mod block2d;
mod cases;
mod contention;
mod coverage;
mod duplicates;
mod images;
mod kernel;
mod layout;
mod legacy;
mod lsc;
mod machine;
mod masks;
mod media;
mod order;
mod ports;
mod raw;
mod records;
mod rig;
mod seeds;
mod svm;
