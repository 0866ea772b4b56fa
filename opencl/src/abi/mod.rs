//! C types, constants and the dispatch table of OpenCL, as Debian's `opencl-c-headers` have them.
//!
//! `bindings.rs` is made from `headers.h`, which has the command, and not edited.

#[expect(
    non_camel_case_types,
    non_upper_case_globals,
    non_snake_case,
    missing_docs,
    clippy::approx_constant,
    reason = "generated from C headers"
)]
mod bindings;

pub mod fork;
pub mod host;

pub use bindings::*;

/// Queries of `cl_ext_float_atomics`, which Debian's headers do not have yet.
pub const CL_DEVICE_SINGLE_FP_ATOMIC_CAPABILITIES_EXT: u32 = 0x4231;
/// As above.
pub const CL_DEVICE_DOUBLE_FP_ATOMIC_CAPABILITIES_EXT: u32 = 0x4232;
/// As above.
pub const CL_DEVICE_HALF_FP_ATOMIC_CAPABILITIES_EXT: u32 = 0x4233;
