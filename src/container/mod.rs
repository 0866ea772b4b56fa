//! Containers: the files that vISA kernels arrive in, and what they say about launching them.
//!
//! * [`Zebin`] — the ELF file `ocloc --format zebin` writes: vISA text, `.ze_info`, data sections, symbols.
//! * [`ZeInfo`] — the typed `.ze_info`: arguments, execution environment, binding tables.
//! * [`infer_device`] — which GPU the file was compiled for, with the reason, or why that cannot be told.
//! * [`PayloadLayout`] — where each launch argument and local id sits in the registers a kernel starts with.
//! * [`Ocloc`] — compiles OpenCL C and SPIR-V by calling the installed `libocloc`;
//!   [`compile_in_worker`] does so in a process of its own, which is the way for input one does not trust.
//!   [`survey_in_worker`] says which library that is.
//!
//! # Guarantees
//!
//! * Reading takes any bytes: it ends in a value or a [`ContainerError`], never in a panic, in time and
//!   memory bounded by the file's size and the constants in [`limits`].
//! * Kernels, their text and their `.ze_info` entries are paired only where the file leaves no doubt;
//!   otherwise reading fails with [`ContainerError::Inconsistent`].
//! * The device is never guessed silently: see [`Inference`].
//! * Every error says whose fault it is ([`ContainerError::blame`]) and where in the file.
//!
//! # What it does not do
//!
//! * It does not parse vISA; that is the front end's work.
//! * It does not read native code (`.text.*`), patch-token binaries or fat binaries.
//! * It does not apply relocations; it lists them.
//! * [`Ocloc::compile`] does not protect the process from `libocloc`, which may exit, crash, print and leave
//!   files; [`compile_in_worker`] does.

#![deny(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "a test that meets the unexpected should stop"
    )
)]

mod device;
mod elf;
mod error;
mod images;
mod layout;
pub mod limits;
mod names;
mod ocloc;
mod sections;
mod worker;
mod ze_info;
mod zebin;

#[cfg(test)]
mod tests;

pub use crate::isa::Platform as Device;
pub use device::{Inference, infer_device};
pub use error::{Blame, ContainerError};
pub use images::{Image, ImageFormat, images};
pub use layout::{LocalIds, PayloadLayout, PayloadSource};
pub use names::{
    AccessType, ArgType, BufferType, BufferUsage, FilterMode, ImageType, MemoryAddressing,
    MemorySpace, PerThreadArgType, SamplerAddressing, SamplerType,
};
pub use ocloc::{
    About, Attempt, CompileRequest, Compiled, FoundBy, Interface, OCLOC_ENV, Ocloc, Product,
    SourceKind, Survey,
};
pub use worker::{compile_in_worker, serve_ocloc_worker, survey_in_worker};
pub use ze_info::{
    ArgInfo, BindingTableEntry, ExecutionEnv, FunctionInfo, HostAccess, InlineSampler, KernelInfo,
    MiscInfo, PayloadArgument, PerThreadArgument, PerThreadBuffer, UserAttributes, ZeInfo,
};
pub use zebin::{
    DataKind, DataSection, Relocation, RelocationKind, RelocationPlace, Symbol, SymbolKind,
    SymbolPlace, Target, VisaText, Zebin, ZebinFunction, ZebinKernel,
};
