//! Passes over the SSA IR, run in the order of [`pipeline::PASSES`].
//!
//! Each pass is a file whose head says what it guarantees and what it does not do. A pass takes a
//! verified function and leaves a verified one that computes the same on every input; it can be
//! switched off by name, so that a wrong answer can be traced to it. Only `suspend`, which makes the form
//! that backends expect, always runs. All are near-linear in the size of the function.

mod accumulators;
mod cfg;
mod check_aligned;
mod check_buffers;
mod check_init;
mod check_races;
mod correlated;
mod dce;
mod division;
mod divisors;
mod dot_products;
mod edit;
mod exponents;
mod fold;
mod gvn;
mod half_calls;
mod if_convert;
mod inductions;
mod interleave;
mod join_stores;
mod logarithms;
mod masks;
mod merge_splits;
mod one_lane;
mod params;
pub mod pipeline;
mod registers;
mod row_split;
mod shape;
mod strip_mine;
mod strip_start;
mod suspend;
mod uniform;
mod vector_combine;

pub use merge_splits::MergeSplits;
pub use pipeline::{PassError, PassOptions, PassStats, optimize, run_pass};
