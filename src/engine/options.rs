//! How an engine is set up.

use super::disk::DiskCache;
use super::suppress::Suppressions;
use super::tools::Tools;
use crate::backend::{Checks, Strategy};
use crate::interp::InterpOptions;
use crate::isa::Versions;
use crate::passes::PassOptions;

/// Name of the interpreter where code generators have theirs.
pub(crate) const INTERPRETER: &str = "interp";

/// How an engine is set up.
#[derive(Clone, Debug)]
pub struct EngineOptions {
    /// Bytes of address space reserved for device memory.
    pub memory_bytes: u64,
    /// Which code generator, and how hard it works.
    pub strategy: Strategy,
    /// Which passes run.
    pub passes: PassOptions,
    /// Kernels are not compiled but interpreted, in this way: slow, and the definition of what they mean. The
    /// policy for accesses out of bounds is the launch's.
    pub interpret: Option<InterpOptions>,
    /// Launches run code of the strategy's code generator, Cranelift, at once. A thread in the background compiles LLVM's, which later
    /// launches take, with the same results but for bits of NaNs ([`wait_for_tier`](crate::Engine::wait_for_tier)). For builds with the cargo feature `llvm`.
    /// Kernels from libraries have the code that they came with.
    pub tier: bool,
    /// Compiled code is kept there for the next process; `None` (the default) for none.
    pub disk: Option<DiskCache>,
    /// Profilers and debuggers that are told of compiled code.
    pub tools: Tools,
    /// Versions of vISA and of `.ze_info` that are read.
    pub versions: Versions,
    /// Findings that reports of launches leave out.
    pub suppress: Suppressions,
    /// Checks of races count a write of the value that is there already as an access. Without it they do not: many such races are harmless.
    pub race_same_value: bool,
}

impl EngineOptions {
    /// The same with checks of what kernels do, which are part of the strategy: `strategy.tuning.check`.
    #[must_use]
    pub fn check(mut self, checks: impl Into<Checks>) -> EngineOptions {
        self.strategy.tuning.check = checks.into();
        self
    }
}

impl Default for EngineOptions {
    fn default() -> Self {
        EngineOptions {
            memory_bytes: 64 << 30,
            strategy: Strategy::default(),
            passes: PassOptions::default(),
            interpret: None,
            tier: false,
            disk: None,
            tools: Tools::default(),
            versions: Versions::default(),
            suppress: Suppressions::default(),
            race_same_value: false,
        }
    }
}
