//! Runs Intel vISA kernels, as `ocloc` puts them into zebins, natively on the CPU.
//!
//! Most programs need four types: [`Engine`] loads files and owns device memory, a [`Program`] holds
//! [`Kernel`]s, a [`Launch`] says what to run them on. The example in [`engine`] shows all of them.
//!
//! The other modules are the stages a kernel goes through. Each can be used by itself:
//!
//! | module | from | to |
//! |---|---|---|
//! | [`container`] | zebin files; `.cl` and `.spv` sources | vISA text, launch information |
//! | [`front`] | vISA text | [`module::Module`] |
//! | [`valid`] | a decoded module | [`valid::ValidKernel`] |
//! | [`lower`] | a valid kernel | [`ssa::Function`] |
//! | [`passes`] | a function | a faster function |
//! | [`backend`] | a function | machine code |
//!
//! [`isa`] has the table of instructions, [`limits`] every bound on input, [`lines`] the tables from machine code to lines of
//! vISA and of its source, [`schedule`] the order of straight-line code, [`steps`] how long compilation takes. Running compiled code is the
//! crate `visa_runtime`, which knows no compiler.
//!
//! Kernels are untrusted input: they end in a result, a typed [`Error`] or a [`FaultRecord`].
//! `ARCHITECTURE.md` and `SECURITY.md` say how that is kept.

#![deny(unsafe_code)]
#![warn(unreachable_pub)]

pub mod artifact;
pub mod backend;
pub mod container;
pub mod engine;
pub mod front;
pub mod interp;
pub mod isa;
pub mod limits;
pub mod lines;
pub mod lower;
pub mod module;
pub mod passes;
pub mod schedule;
pub mod ssa;
pub mod steps;
pub mod valid;

pub use engine::{
    Arg, ArgKind, Argument, CacheStats, Class, Compiled, DiskCache, Engine, EngineOptions, Error,
    FaultRecord, Kernel, Launch, Origin, Prepared, Program, Report, Specialised, Tools,
};
pub use isa::Versions;
