//! Generators of vISA programs and oracles for what they compute, for tests that compare engines.
//!
//! | module | programs | compared with |
//! |---|---|---|
//! | [`flow`] | random control-flow graphs | each lane alone, run as a scalar program |
//! | [`sweep`] | every form of every instruction that computes | other engines |
//! | [`kernels`] | random kernels over the opcode table | other engines |
//! | [`files`] | checked-in kernels, as they are and damaged, in random launches | other engines |
//! | [`planted`] | random kernels with one error each, under the check that finds it | other engines' reports |
//!
//! [`engines`] is the list of what can run a program. Everything is deterministic by seed, so that a failure
//! is reproduced by its number. Tests are in `fuzzing/tests`.

#![warn(unreachable_pub)]

pub mod accuracy;
pub mod engines;
mod evaluator;
pub mod files;
pub mod flow;
pub mod kernels;
mod native;
pub mod planted;
mod strategies;
pub mod sweep;

/// The range that the environment variable `SEEDS` asks for, as `100..200`.
pub fn seeds() -> Option<std::ops::Range<u64>> {
    let text = std::env::var("SEEDS").ok()?;
    let (from, to) = text.split_once("..")?;
    Some(from.parse().ok()?..to.parse().ok()?)
}
