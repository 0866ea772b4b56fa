//! The runtime as a C library.
//!
//! `include/visa_jit.h` is made from these files by cbindgen: `BLESS=1 cargo test --test cli c_api::header`. Functions do not panic into C; those that can
//! fail return null or a [`visa_jit_status`], and [`visa_jit_last_error`] has the message. Handles belong to the caller, who frees
//! each once; a handle keeps alive what it needs, so the order does not matter.

#![allow(
    non_camel_case_types,
    reason = "the names are those that C programs see"
)]

mod error;
mod fault;
mod image;
mod kernel;
mod launch;
mod memory;

pub use error::*;
pub use fault::*;
pub use image::*;
pub use kernel::*;
pub use launch::*;
pub use memory::*;

/// Version of the ABI between kernels and this library; kernels that were compiled for another one are refused.
#[unsafe(no_mangle)]
pub extern "C" fn visa_jit_abi_version() -> u32 {
    visa_runtime::abi::ABI_VERSION
}
