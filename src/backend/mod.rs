//! Code generators, which implement one trait: SSA in, position-independent bytes out.

pub mod cranelift;
#[cfg(feature = "llvm-codegen")]
pub mod llvm;

mod access;
mod axes;
mod barrier_loop;
mod calls;
mod checks;
mod descriptors;
mod fallback;
mod fault_records;
mod install;
mod library;
#[cfg(any(test, feature = "llvm-codegen"))]
mod prefetch;
mod race;
mod shadow;
mod states;
#[cfg(any(test, feature = "llvm-codegen"))]
mod straight;
mod strategy;
mod tuning;
mod uses;

pub use access::{AccessPlan, PlanLine};
pub use axes::{
    AXES, Axis, BackendKind, Bounds, Check, Choice, CodegenEffort, Cpu, Dispatch, Gather, Masks,
    OptLevel, Order, Prefetch, RegAlloc, SplitAccesses, Tuning, VectorWidth,
};
pub use calls::RuntimeCall;
pub(crate) use calls::{Call, explain as explain_calls};
pub use checks::Checks;
pub use fallback::becomes_error;
pub(crate) use fallback::{guarded, or_plainer};
pub use install::{InstallError, install};
pub use library::{LibraryError, load_library};
pub use strategy::{Strategy, without_llvm};

use std::collections::BTreeMap;
use std::ops::Range;

use crate::lines::LineTable;
use crate::schedule::Vectors;
use crate::ssa::{Function, Remark};

/// Added to the exponent of [`FScale`](crate::ssa::BinOp::FScale) by code generators without an instruction for it, it leaves the
/// exponent and 254, twice the bias, in the low bits: half of that and the rest are the biased exponents of two factors, so that only
/// the last product rounds.
const SCALE_BIAS: f32 = 12_582_912.0 + 254.0;

/// Bounds-check policy of memory accesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub enum OobPolicy {
    /// Out-of-bounds reads give zero, writes are dropped, silently.
    #[default]
    ReadZeroSkipWrite,
    /// The launch stops with a fault record.
    Trap,
    /// Like the default, and each access with faulting lanes is recorded.
    Report,
}

/// Choices a backend honours; part of the cache key.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
pub struct CodegenOptions {
    /// Out-of-bounds policy.
    pub oob: OobPolicy,
    /// How the code generator works.
    pub tuning: Tuning,
}

impl CodegenOptions {
    /// The same with another tuning.
    pub fn tuned(&self, change: impl FnOnce(&mut Tuning)) -> CodegenOptions {
        let mut options = self.clone();
        change(&mut options.tuning);
        options
    }
}

/// Compiled bytes of one kernel, self-contained and position-independent.
#[derive(Clone, Debug, PartialEq)]
pub struct CodeObject {
    /// Machine code; entry point at offset 0.
    pub code: Vec<u8>,
    /// Required alignment of the first byte.
    pub align: u64,
    /// Lines of vISA that the code came from; a backend knows nothing of their source.
    pub lines: LineTable,
    /// Target triple it was built for.
    pub triple: target_lexicon::Triple,
    /// Name of the backend that built it.
    pub backend: &'static str,
    /// Bytes of its frame on the stack; 0 where it is known to be at most [`visa_runtime::limits::MAX_HOST_STACK_BYTES`].
    pub stack_bytes: u32,
    /// What was done other than asked for, and why.
    pub note: Option<String>,
}

/// Code, with what was decided on the way to it.
#[derive(Clone, Debug)]
pub struct Explained {
    /// The code, as [`Backend::compile`] makes it.
    pub object: CodeObject,
    /// Decisions of the backend.
    pub remarks: Vec<Remark>,
    /// How memory accesses are done; none where something else than a code generator made the code.
    pub plan: Option<AccessPlan>,
    /// Calls of the runtime, as they were made.
    pub(crate) calls: Vec<Call>,
    /// How the stack is used.
    pub stack: StackUse,
}

/// What tells spilled values from other memory on the stack.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StackUse {
    /// Bytes from the stack pointer that are the program's; all else of the frame holds spilled and saved registers.
    Program(Vec<Range<u32>>),
    /// What the code generator says itself.
    Counted {
        /// Stores of spilled values.
        stores: usize,
        /// Loads of spilled values.
        loads: usize,
    },
}

/// What decides, beside function and options, which bytes a backend makes; part of the cache key.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Identity {
    /// Name of the backend.
    pub name: &'static str,
    /// Version of the code generator.
    pub version: String,
    /// Target.
    #[serde(serialize_with = "displayed")]
    pub triple: target_lexicon::Triple,
    /// Settings of the target and their values, CPU features among them.
    pub features: BTreeMap<String, String>,
}

fn displayed<S: serde::Serializer>(
    value: &impl std::fmt::Display,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_str(value)
}

/// Why code could not be generated.
#[derive(Debug, thiserror::Error)]
pub enum BackendError {
    /// The input exceeds a limit of the backend.
    #[error("{backend}: function `{function}` is too large: {what}")]
    TooLarge {
        /// Backend.
        backend: &'static str,
        /// Kernel.
        function: String,
        /// Which limit.
        what: String,
    },
    /// The host cannot run what the backend makes.
    #[error("{backend}: {what}")]
    Environment {
        /// Backend.
        backend: &'static str,
        /// What is missing.
        what: String,
    },
    /// The backend does not do what was asked for.
    #[error("{backend}: {what}")]
    Strategy {
        /// Backend.
        backend: &'static str,
        /// What, and what it does instead.
        what: String,
    },
    /// A bug of ours: the backend rejected or panicked on verified SSA.
    #[error("{backend}: internal error compiling `{function}`: {what}")]
    Internal {
        /// Backend.
        backend: &'static str,
        /// Kernel.
        function: String,
        /// Details.
        what: String,
    },
}

/// A code generator.
pub trait Backend: Send + Sync {
    /// Name used by `--backend`.
    fn name(&self) -> &'static str;

    /// What else the bytes depend on.
    fn identity(&self) -> Identity;

    /// Processor features that the code may use, by the names that the runtime knows
    /// ([`visa_runtime::linked::missing_features`]); none where it may use others, and so can run only where it was made.
    fn needs(&self) -> Option<Vec<String>>;

    /// Does what there is to do before a thread in the background compiles, so that the process may end or `fork` while it does.
    ///
    /// # Errors
    /// [`BackendError::Environment`] when nothing can be compiled.
    fn prepare(&self) -> Result<(), BackendError> {
        Ok(())
    }

    /// Whether [`FScale`](crate::ssa::BinOp::FScale) takes every exponent in code made with these options.
    fn scales_by_any(&self, options: &CodegenOptions) -> bool {
        let _ = options;
        false
    }

    /// Whether arithmetic of binary16 is better done as such than in wider formats: by instructions for it, or by calls of a helper where all
    /// of it is slow. The pass `half-calls` runs.
    fn joins_halves(&self, options: &CodegenOptions) -> bool {
        let _ = options;
        true
    }

    /// The vector registers of a code generator that keeps the order of operations, if they shall be put in order.
    fn interleaves(&self, options: &CodegenOptions) -> Option<Vectors> {
        let _ = options;
        None
    }

    /// What to try instead of options that code could not be generated with, each with its name, the best first.
    fn plainer(&self, options: &CodegenOptions) -> Vec<(CodegenOptions, &'static str)>;

    /// Compiles verified SSA into a function of type [`visa_runtime::abi::Entry`].
    ///
    /// # Errors
    /// See [`BackendError`]; never panics on verified input.
    fn compile(
        &self,
        function: &Function,
        options: &CodegenOptions,
    ) -> Result<CodeObject, BackendError> {
        self.explain(function, options).map(|made| made.object)
    }

    /// The same with what was decided on the way, which may take longer.
    ///
    /// # Errors
    /// As [`Backend::compile`].
    fn explain(
        &self,
        function: &Function,
        options: &CodegenOptions,
    ) -> Result<Explained, BackendError>;
}
