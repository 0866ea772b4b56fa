//! What a compiled vISA kernel needs at run time: memory, surfaces, launch, barriers.
//!
//! This crate knows no compiler; it is all that a program linking ahead-of-time kernels needs.

pub mod abi;
