//! The SSA IR: text form, verifier, evaluator and passes.

mod accumulators;
mod bits;
mod clamps;
mod division;
mod divisors;
mod dot_products;
mod eval;
mod exponents;
mod generate;
mod golden;
mod half_calls;
mod logarithms;
mod merge_splits;
mod observe;
mod pairs;
mod random;
mod strip_mine;
mod strip_start;
mod text;
mod vector_combine;
mod verify;
mod wide_sums;
mod writer;
