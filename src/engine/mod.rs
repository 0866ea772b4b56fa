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
mod cache;
mod disk;
mod error;
mod fault;
mod kernel;
mod key;
mod launch;
mod library;
mod manifest;
mod plan;
mod prepared;
mod program;
mod ran;
mod reach;
mod repeat;
mod specialised;
mod suppress;
mod tier;
mod tools;
mod variables;

pub use crate::backend::PlanLine;
pub use crate::ssa::remark::{Bounds, Decision, Remark, Way, Why};
pub use cache::{CacheStats, Compiled, Origin};
pub use disk::DiskCache;
pub use error::{Class, Error};
pub use fault::{FaultArgument, FaultRecord};
pub use kernel::Kernel;
pub use launch::{Launch, Report};
pub use prepared::Prepared;
pub use program::Program;
pub use specialised::{AccessReport, AddressShape, Specialised};
pub use suppress::{SuppressionError, Suppressions};
pub use tools::{DUMP_DIR_ENV, Tools};
pub use visa_runtime::linked::{ArgKind, ArgValue as Arg, Argument};

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use visa_runtime::{DeviceMemory, WorkerPool};

use crate::backend::{Backend, Check, Checks, Identity, Masks, OobPolicy, Strategy};
use crate::container::Zebin;
use crate::interp::InterpOptions;
use crate::isa::{Platform, Versions};
use crate::passes::PassOptions;
use cache::CodeCache;
use disk::Disk;
use key::{FileFormat, FileKey};
use program::ProgramFile;
use tier::Tier;
use tools::Observers;

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
    /// launches take, with the same results but for bits of NaNs ([`Engine::wait_for_tier`]). For builds with the cargo feature `llvm`.
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

pub(crate) struct Inner {
    pub memory: DeviceMemory,
    pub backend: Box<dyn Backend>,
    pub identity: Identity,
    pub disk: Option<Disk>,
    pub observers: Option<Observers>,
    pub options: EngineOptions,
    pub cache: CodeCache,
    pub tier: Option<Tier>,
    pools: Mutex<HashMap<usize, Arc<WorkerPool>>>,
}

impl Inner {
    /// What accesses out of bounds do in launches that ask for `oob`: checks of memory record them at least.
    pub(crate) fn policy(&self, oob: OobPolicy) -> OobPolicy {
        match oob {
            OobPolicy::ReadZeroSkipWrite if self.checks(Check::Memory) => OobPolicy::Report,
            _ => oob,
        }
    }

    /// Whether kernels are checked for such errors.
    pub(crate) fn checks(&self, check: Check) -> bool {
        self.options.strategy.tuning.check.contains(check)
    }
}

/// Loads and runs programs. Cloning gives another handle.
#[derive(Clone)]
pub struct Engine(pub(crate) Arc<Inner>);

impl Engine {
    /// An engine for this machine.
    ///
    /// # Errors
    /// When the machine cannot run generated code or address space cannot be reserved.
    pub fn new() -> Result<Engine, Error> {
        Engine::with_options(EngineOptions::default())
    }

    /// An engine with chosen options.
    ///
    /// # Errors
    /// As [`Engine::new`].
    pub fn with_options(options: EngineOptions) -> Result<Engine, Error> {
        let check = options.strategy.tuning.check;
        let memory = match check.contains(Check::Memory) {
            true => DeviceMemory::checked(options.memory_bytes)?,
            false => DeviceMemory::with_capacity(options.memory_bytes)?,
        };
        let memory = match check.contains(Check::Init) {
            true => memory.tracked()?,
            false => memory,
        };
        Engine::with_memory(options, memory)
    }

    /// An engine on existing device memory.
    ///
    /// # Errors
    /// When the machine cannot run generated code, when files for profilers cannot be made, and when launches cannot be tiered as asked for.
    pub fn with_memory(mut options: EngineOptions, memory: DeviceMemory) -> Result<Engine, Error> {
        let given = options.clone();
        let unwanted = options.strategy.backend.unwanted_passes();
        options.passes.disabled.extend(unwanted);
        options.passes.if_convert |= options.strategy.tuning.masks == Masks::Select;
        let check = options.strategy.tuning.check;
        options.passes.check_buffers |= check.contains(Check::Memory);
        options.passes.check_races |= check.contains(Check::Race);
        options.passes.check_init |= check.contains(Check::Init);
        let mut host = options.strategy;
        if options.interpret.is_some() {
            host.tuning.check = Checks::NONE;
        }
        let backend = host.host()?;
        if check.contains(Check::Memory) && !memory.is_checked() {
            return Err(Error::Memory(format!(
                "--check {} needs memory made by DeviceMemory::checked",
                check.name()
            )));
        }
        if check.contains(Check::Init) && !memory.is_tracked() {
            return Err(Error::Memory(format!(
                "--check {} needs memory made by DeviceMemory::tracked",
                check.name()
            )));
        }
        let tier = given.tier.then(|| Tier::new(given, &memory)).transpose()?;
        Ok(Engine(Arc::new(Inner {
            memory,
            identity: backend.identity(),
            backend,
            disk: options.disk.as_ref().map(Disk::new),
            observers: Observers::new(&options.tools)?,
            options,
            cache: CodeCache::default(),
            tier,
            pools: Mutex::default(),
        })))
    }

    /// Device memory that kernels of this engine see.
    pub fn memory(&self) -> &DeviceMemory {
        &self.0.memory
    }

    /// Name of the code generator, or of the interpreter.
    pub fn backend(&self) -> &'static str {
        match self.0.options.interpret {
            Some(_) => INTERPRETER,
            None => self.0.backend.name(),
        }
    }

    /// How often launches found compiled code, and made it. What the background compiles is not counted.
    pub fn cache_stats(&self) -> CacheStats {
        let better = self.0.tier.as_ref().and_then(Tier::disk);
        self.0.cache.stats(self.0.disk.iter().chain(better))
    }

    /// Waits until the background has compiled all that it was asked to, or for `limit`. True if nothing is left to do, which is so
    /// from the start where launches are not tiered ([`EngineOptions::tier`]).
    pub fn wait_for_tier(&self, limit: Duration) -> bool {
        self.0.tier.as_ref().is_none_or(|tier| tier.wait(limit))
    }

    /// Loads a zebin with vISA sections. `platform` overrides what the file says it was built for.
    ///
    /// # Errors
    /// For malformed files, and when the platform can neither be read off the file nor was given.
    pub fn program_from_zebin(
        &self,
        bytes: &[u8],
        platform: Option<Platform>,
    ) -> Result<Program, Error> {
        let digest = *blake3::hash(bytes).as_bytes();
        let file = Unread {
            format: FileFormat::Zebin,
            name: "",
            bytes,
            platform,
        };
        self.with_manifest(&file, &digest, || {
            let zebin = Zebin::parse_with(bytes, self.0.options.versions)?;
            Program::from_zebin(self.clone(), zebin, digest, platform)
        })
    }

    /// Loads vISA text. `file` names it in messages.
    ///
    /// # Errors
    /// All syntax and validation errors of the text.
    pub fn program_from_text(
        &self,
        file: &str,
        text: &str,
        platform: Platform,
    ) -> Result<Program, Error> {
        let unread = Unread {
            format: FileFormat::Text,
            name: file,
            bytes: text.as_bytes(),
            platform: Some(platform),
        };
        let digest = *blake3::hash(text.as_bytes()).as_bytes();
        self.with_manifest(&unread, &digest, || {
            Program::from_text(self.clone(), file, text, platform)
        })
    }

    /// Key under which the disk cache keeps what a launch from the cache needs to know of a file: a zebin, or vISA text. `platform`
    /// is the device given with the file. `None` where the key cannot be formed.
    pub fn manifest_key(
        contents: FileContents<'_>,
        platform: Option<Platform>,
        versions: Versions,
    ) -> Option<crate::artifact::Key> {
        let (format, bytes) = match contents {
            FileContents::Zebin(bytes) => (FileFormat::Zebin, bytes),
            FileContents::Text(text) => (FileFormat::Text, text.as_bytes()),
        };
        FileKey::new(format, blake3::hash(bytes).as_bytes(), platform, versions).key()
    }

    /// The program of a file: from the manifest that was kept of it, else as `read` reads it.
    fn with_manifest(
        &self,
        file: &Unread<'_>,
        digest: &[u8; 32],
        read: impl FnOnce() -> Result<Program, Error>,
    ) -> Result<Program, Error> {
        let versions = self.0.options.versions;
        let key = || FileKey::new(file.format, digest, file.platform, versions).key();
        let place = self.0.disk.as_ref().and_then(|disk| Some((disk, key()?)));
        let Some((disk, key)) = place else {
            return read();
        };
        if let Some(manifest) = disk.load_manifest(&key) {
            let file = ProgramFile {
                format: file.format,
                name: file.name.to_owned(),
                bytes: file.bytes.to_vec(),
                platform: manifest.platform,
                versions,
            };
            return Program::from_manifest(self, manifest, file);
        }
        let program = read()?;
        if let Some(manifest) = program.manifest() {
            disk.save_manifest(&key, &manifest);
        }
        Ok(program)
    }

    /// A pool of `threads` workers (`None`: one for each processor), made once; of no more than have something to do.
    pub(crate) fn pool(
        &self,
        threads: Option<usize>,
        most: u64,
    ) -> Result<Option<Arc<WorkerPool>>, Error> {
        if most <= 1 || threads.is_some_and(|n| n <= 1) {
            return Ok(None);
        }
        let n =
            threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
        let n = n.min(usize::try_from(most).unwrap_or(usize::MAX));
        if n <= 1 {
            return Ok(None);
        }
        let mut pools = self.0.pools.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pool) = pools.get(&n) {
            return Ok(Some(pool.clone()));
        }
        let pool = Arc::new(WorkerPool::new(n)?);
        pools.insert(n, pool.clone());
        Ok(Some(pool))
    }
}

/// What is in a file.
#[derive(Clone, Copy, Debug)]
pub enum FileContents<'a> {
    /// A zebin.
    Zebin(&'a [u8]),
    /// vISA text.
    Text(&'a str),
}

/// A file as it was handed over.
struct Unread<'a> {
    format: FileFormat,
    name: &'a str,
    bytes: &'a [u8],
    platform: Option<Platform>,
}
