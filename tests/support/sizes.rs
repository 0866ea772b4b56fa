//! Sizes of launches: all in full runs, few in plain ones.

use visa_test_common::full;

/// Global and local sizes of one-dimensional launches for kernels that take any: nothing, one item,
/// odd sizes, whole and partial hardware threads and groups, many groups.
pub const SIZES: [(u32, u32); 8] = [
    (0, 1),
    (1, 1),
    (7, 7),
    (33, 33),
    (64, 16),
    (61, 20),
    (1000, 125),
    (4096, 256),
];

/// [`SIZES`]; none in a plain run, as each means that a kernel is compiled for it.
pub fn sizes() -> impl Iterator<Item = (u32, u32)> {
    SIZES.into_iter().take(if full() { 8 } else { 0 })
}

/// For kernels that are cheap to compute: many groups, the last one partial.
pub fn large() -> (u32, u32) {
    if full() { (100_003, 192) } else { (5_003, 192) }
}

/// The size for sweeps: several groups, the last one partial. Every [`Job`](super::Job) of this size also runs on two threads,
/// and with all policies if it says [`Job::policies`](super::Job::policies).
pub fn sweep() -> (u32, u32) {
    // The interpreter runs the smaller one, too.
    if full() { (333, 32) } else { (40, 32) }
}
