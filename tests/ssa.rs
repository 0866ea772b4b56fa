//! The SSA IR: text form, verifier, evaluator and passes.

#[path = "ssa/text.rs"]
mod text;
#[path = "ssa/verify.rs"]
mod verify;
