//! The SSA IR: text form, verifier, evaluator and passes.

#[path = "ssa/eval.rs"]
mod eval;
#[path = "ssa/gen.rs"]
mod generate;
#[path = "ssa/golden.rs"]
mod golden;
#[path = "ssa/halves.rs"]
mod halves;
#[path = "ssa/observe.rs"]
mod observe;
#[path = "ssa/random.rs"]
mod random;
#[path = "ssa/strips.rs"]
mod strips;
#[path = "ssa/text.rs"]
mod text;
#[path = "ssa/twins.rs"]
mod twins;
#[path = "ssa/verify.rs"]
mod verify;
