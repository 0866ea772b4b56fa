//! The façade: programs in, launches out.
//!
//! [`Engine`] owns device memory, the code generator and the in-memory code cache; a [`Program`] is a
//! loaded file; a [`Kernel`] is launched with a [`Launch`]. All are cheap handles that may be used
//! from several threads. Each specialisation of a kernel is compiled once, however many threads ask, and not even once if
//! an earlier process left it in the [`DiskCache`].
//!
//! ```
//! use visa_jit::{Arg, Engine, Launch};
//! # fn main() -> Result<(), visa_jit::Error> {
//! let engine = Engine::new()?;
//! let zebin = include_bytes!("../../tests/kernels/bin/skl/saxpy.zebin");
//! let program = engine.program_from_zebin(zebin, None)?;
//! let x = engine.memory().alloc_from(&[1.0f32, 2.0, 3.0, 4.0])?;
//! let y = engine.memory().alloc_from(&[10.0f32; 4])?;
//! // kernel void saxpy(global float *y, global const float *x, float a)
//! let launch = Launch::new([4, 1, 1])
//!     .arg(0, Arg::Buffer(y.clone()))
//!     .arg(1, Arg::Buffer(x))
//!     .arg(2, 2.0f32.to_le_bytes().to_vec());
//! program.kernel("saxpy")?.launch(&launch)?;
//! assert_eq!(y.to_vec_of::<f32>(), [12.0, 14.0, 16.0, 18.0]);
//! # Ok(())
//! # }
//! ```

mod abi;
mod aot;
mod background;
mod cache;
mod disk;
mod error;
mod fault;
mod kernel;
mod key;
mod launch;
mod library;
mod linked;
mod load;
mod manifest;
mod names;
mod options;
mod plan;
mod prepare;
mod prepared;
mod program;
mod ran;
mod reach;
mod repeat;
mod report;
mod setup;
mod shapes;
mod source;
mod specialised;
mod state;
mod suppress;
mod tier;
mod tools;
mod upgrade;
mod variables;

pub use crate::backend::{PlanLine, RuntimeCall};
pub use crate::ssa::remark::{BoundsTest, Decision, Remark, Way, Why};
pub use cache::{CacheStats, Compiled, Origin};
pub use disk::DiskCache;
pub use error::{Class, Error};
pub use fault::{FaultArgument, FaultRecord};
pub use kernel::Kernel;
pub use launch::Launch;
pub use load::FileContents;
pub use options::EngineOptions;
pub use prepared::Prepared;
pub use program::Program;
pub use report::Report;
pub use specialised::{AccessReport, AddressShape, Specialised};
pub use state::Engine;
pub use suppress::{SuppressionError, Suppressions};
pub use tools::{DUMP_DIR_ENV, Tools};
pub use visa_runtime::linked::{ArgKind, ArgValue as Arg, Argument};
