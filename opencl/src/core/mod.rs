//! The objects of OpenCL, in safe Rust. Pointers of the program appear only as [`HostMemory`](crate::abi::host::HostMemory), which
//! the entry points make.

pub mod compiler;
pub mod context;
pub mod copy;
pub mod device;
pub mod engine;
pub mod error;
pub mod event;
pub mod image;
pub mod kernel;
pub mod mem;
pub mod modules;
pub mod object;
pub mod options;
pub mod platform;
pub mod program;
pub mod queue;
pub mod ranges;
pub mod report;
pub mod sampler;
pub mod spirv;
pub mod svm;
pub mod trace;
pub mod version;

pub use error::{Cl, ClError, ensure, err};
pub use object::{Object, Ref, find, lock};
