//! visa-jit.
#![deny(unsafe_code)]

pub mod backend;
pub mod container;
pub mod front;
pub mod isa;
pub mod limits;
pub mod lower;
pub mod module;
pub mod passes;
pub mod ssa;
pub mod valid;
