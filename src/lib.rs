//! visa-jit.
#![deny(unsafe_code)]

pub mod isa;
pub mod module;
