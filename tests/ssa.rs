//! The SSA IR: text form, verifier, evaluator and passes.

#[path = "ssa/eval.rs"]
mod eval;
#[path = "ssa/gen.rs"]
mod generate;
#[path = "ssa/golden.rs"]
mod golden;
#[path = "ssa/merge_splits.rs"]
mod merge_splits;
#[path = "ssa/observe.rs"]
mod observe;
#[path = "ssa/pairs.rs"]
mod pairs;
#[path = "ssa/random.rs"]
mod random;
#[path = "ssa/strip_mine.rs"]
mod strip_mine;
#[path = "ssa/text.rs"]
mod text;
#[path = "ssa/vector_combine.rs"]
mod vector_combine;
#[path = "ssa/verify.rs"]
mod verify;
