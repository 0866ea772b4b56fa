//! The SSA IR: text form, verifier, evaluator and passes.

mod eval;
#[path = "gen.rs"]
mod generate;
mod golden;
mod halves;
mod observe;
mod random;
mod strips;
mod text;
mod twins;
mod verify;
