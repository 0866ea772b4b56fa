//! visa-jit.
#![deny(unsafe_code)]

pub mod backend;
pub mod cli;
pub mod container;
pub mod engine;
pub mod front;
pub mod isa;
pub mod limits;
pub mod lower;
pub mod module;
pub mod passes;
pub mod ssa;
pub mod valid;

pub use engine::{
    Arg, ArgKind, Argument, CacheStats, Class, Compiled, Engine, EngineOptions, Error, FaultRecord,
    Kernel, Launch, Prepared, Program, Report,
};
