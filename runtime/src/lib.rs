//! What a compiled vISA kernel needs at run time: memory, surfaces, launch, barriers.
//!
//! This crate knows no compiler; it is all that a program linking ahead-of-time kernels needs.
//! A kernel is one function of type [`abi::Entry`] and a [`KernelMeta`]:
//!
//! 1. [`DeviceMemory`] holds the buffers, a [`SurfaceTable`] binds them.
//! 2. [`Kernel`] joins the function with its metadata. Finished bytes become a function through
//!    [`CodeHandle`] (feature `jit`); a linked function is used as it is.
//! 3. [`PreparedLaunch`] fixes the launch shape and builds everything that does not depend on arguments.
//! 4. [`PreparedLaunch::run`] runs all work-groups, on the calling thread or a [`WorkerPool`], and
//!    returns a [`LaunchReport`]: faults are values in it, never signals.
//!
//! Nothing here panics on what a caller passes; sizes are checked against [`limits`].

#![deny(unsafe_op_in_unsafe_fn)]
#![warn(unreachable_pub)]

pub mod abi;
mod bytes;
#[cfg(feature = "jit")]
mod code;
mod element;
mod enter;
mod error;
mod fault;
mod group;
mod helpers;
mod image;
mod interrupt;
mod kernel;
mod launch;
pub mod limits;
pub mod linked;
mod memory;
mod meta;
mod payload;
mod placement;
mod pool;
pub mod printf;
mod race;
mod stack;
mod surface;
#[cfg(feature = "jit")]
pub mod tools;

#[cfg(feature = "jit")]
pub use code::{CodeError, CodeHandle};
pub use enter::enter;
pub use error::{LaunchError, ProgramError};
pub use fault::{Fault, FaultKind, OtherAccess, Uninit};
pub use group::{GroupProgram, GroupView, ImageLane, MemoryRef};
pub use helpers::helpers;
pub use image::{
    Addressing, Channel, Comparison, FormatError, ImageFormat, ImageKind, ImageShape, Order,
    SamplerState, format::encode_texel,
};
pub use interrupt::Interrupter;
pub use kernel::{Kernel, KernelCode};
pub use launch::{
    Arguments, FaultAction, Invariant, LaunchOptions, LaunchReport, LaunchShape, LaunchStatus,
    LocalIdLayout, LocalIdTable, PreparedLaunch, Schedule,
};
pub use memory::{Buffer, DeviceMemory, Element, Entered, MemoryError, Neighbour, Saved};
pub use meta::{Exchange, KernelMeta};
pub use payload::{Payload, PayloadPatch};
pub use pool::{PoolError, WorkerPool};
pub use surface::SurfaceTable;
