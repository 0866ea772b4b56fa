//! An OpenCL 3.0 driver whose device is a virtual Intel GPU: the vendor's compiler makes kernels of sources, `visa-jit` runs
//! them on the processor.
//!
//! [`abi`] has C's types, [`api`] the entry points, [`core`] the objects. Loaders find everything through the table
//! [`api::DISPATCH`], to which the first word of each object points.

#![warn(unreachable_pub)]

pub mod abi;
pub mod api;
pub mod core;
