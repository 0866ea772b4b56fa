//! Engines: device memory, a code generator and what launches share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rustc_hash::FxHashMap;
use visa_runtime::{DeviceMemory, WorkerPool};

use super::background::Background;
use super::cache::{CacheStats, CodeCache, Key};
use super::disk::Disk;
use super::error::Error;
use super::options::{EngineOptions, INTERPRETER};
use super::tools::Observers;
use super::upgrade::Upgrade;
use crate::backend::{Backend, BackendError, Check, Checks, Identity, Masks, OobPolicy};

/// What the handles of an engine share.
pub(crate) struct Inner {
    pub memory: DeviceMemory,
    pub backend: Box<dyn Backend>,
    pub identity: Identity,
    pub disk: Option<Disk>,
    pub observers: Option<Observers>,
    pub options: EngineOptions,
    pub cache: CodeCache,
    pub(super) tier: Option<Tier>,
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
        match options.strategy.tuning.masks {
            Masks::Auto => {}
            Masks::Select => options.passes.if_convert = true,
            Masks::Branch => drop(options.passes.disabled.insert("short-branches")),
        }
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

/// The better code generator of an engine.
pub(super) struct Tier {
    pub engine: Engine,
    /// The process that it was made in.
    process: u32,
    upgrades: Mutex<FxHashMap<Key, Arc<Upgrade>>>,
    pub background: Arc<Background>,
}

impl Tier {
    /// The tier above an engine that has these options.
    fn new(options: EngineOptions, memory: &DeviceMemory) -> Result<Tier, Error> {
        if options.interpret.is_some() {
            let what = "--tier begins with cranelift's code: use the backend cranelift, or leave out --tier";
            return Err(Error::from(BackendError::Strategy {
                backend: INTERPRETER,
                what: what.to_owned(),
            }));
        }
        let better = EngineOptions {
            strategy: options.strategy.upgraded()?,
            tier: false,
            ..options
        };
        Ok(Tier {
            engine: Engine::with_memory(better, memory.clone())?,
            process: std::process::id(),
            upgrades: Mutex::default(),
            background: Arc::default(),
        })
    }

    /// The disk cache, as the better code generator uses it.
    fn disk(&self) -> Option<&Disk> {
        self.engine.0.disk.as_ref()
    }

    /// Whether this is the process with the background thread.
    pub(super) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Better code of a specialisation.
    pub(super) fn upgrade(&self, key: Key) -> Arc<Upgrade> {
        let mut upgrades = self.upgrades.lock().unwrap_or_else(PoisonError::into_inner);
        upgrades.entry(key).or_default().clone()
    }

    /// Waits for the background; true if it has nothing to do.
    fn wait(&self, limit: Duration) -> bool {
        !self.is_here() || self.background.wait(limit)
    }
}

impl Drop for Tier {
    /// The thread ends after its present job. No thread waits for that.
    fn drop(&mut self) {
        if self.is_here() {
            self.background.close();
        }
    }
}
