//! The runtime with hand-written kernels. What looks at all mappings of the process is in `mappings.rs`.

#[cfg(all(feature = "jit", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod code;
#[path = "../common/mod.rs"]
mod common;

mod abi;
mod launch;
mod memory;
mod rows;
mod together;
#[cfg(all(target_os = "linux", feature = "jit"))]
mod tools;
