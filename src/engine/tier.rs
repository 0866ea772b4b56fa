//! Tiering: launches run Cranelift's code at once, and LLVM's as soon as a thread in the background has compiled it.
//!
//! Both compute the same bits, except those of NaNs. An engine with tiers has a second engine on the same memory, whose code generator is LLVM.
//! It compiles each specialisation once. If the disk has LLVM's code, that is used at once, and Cranelift does not compile. A launch runs code of
//! one of them from start to end. Everything that belongs to code, such as sites of faults and sizes of frames, comes from the code that runs.
//!
//! If LLVM fails, Cranelift's code stays, and reports of launches have a note. The same holds if LLVM compiled with less effort than asked for,
//! as it does for large kernels, because such code need not be faster.
//!
//! A child process that `fork` made has no background thread, and its parent's thread may have held locks at the fork. So a child waits for
//! nothing here: launches prepared in the child run Cranelift's code, and launches prepared before the fork keep the code that they have.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use super::cache::{Compiled, Key, Origin};
use super::disk::Disk;
use super::error::Error;
use super::kernel::{Kernel, KernelParts};
use super::{Engine, EngineOptions, INTERPRETER};
use crate::backend::{BackendError, OobPolicy};
use crate::lower::LocalIdShape;
use visa_runtime::DeviceMemory;

/// The better code generator of an engine.
pub(crate) struct Tier {
    engine: Engine,
    /// The process that it was made in.
    process: u32,
    upgrades: Mutex<HashMap<Key, Arc<Upgrade>>>,
    background: Arc<Background>,
}

/// The better code of a specialisation, now or later.
#[derive(Default)]
pub(super) struct Upgrade {
    code: OnceLock<Result<Arc<Compiled>, String>>,
    /// The disk was looked at.
    looked: OnceLock<()>,
    /// The background was asked.
    asked: AtomicBool,
}

/// The thread that compiles, and what it has to do.
#[derive(Default)]
struct Background {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    jobs: VecDeque<Job>,
    /// A job is being done.
    busy: bool,
    /// There is a thread.
    started: bool,
    /// The engine is gone.
    closed: bool,
}

/// A specialisation to compile.
struct Job {
    /// On the engine with the better code generator.
    kernel: Kernel,
    shape: LocalIdShape,
    oob: OobPolicy,
    upgrade: Arc<Upgrade>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Tier {
    /// The tier above an engine that has these options.
    pub(crate) fn new(options: EngineOptions, memory: &DeviceMemory) -> Result<Tier, Error> {
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
    pub(crate) fn disk(&self) -> Option<&Disk> {
        self.engine.0.disk.as_ref()
    }

    /// Whether this is the process with the background thread.
    fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Waits for the background; true if it has nothing to do.
    pub(crate) fn wait(&self, limit: Duration) -> bool {
        if !self.is_here() {
            return true;
        }
        let at_work = |state: &mut State| state.busy || !state.jobs.is_empty();
        let state = lock(&self.background.state);
        let changed = &self.background.changed;
        let waited = changed.wait_timeout_while(state, limit, at_work);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }
}

impl Drop for Tier {
    /// The thread ends after its present job. No thread waits for that.
    fn drop(&mut self) {
        if !self.is_here() {
            return;
        }
        let mut state = lock(&self.background.state);
        state.closed = true;
        let left = std::mem::take(&mut state.jobs);
        drop(state);
        self.background.changed.notify_all();
        drop(left);
    }
}

impl Upgrade {
    /// The code, if it is there.
    pub(super) fn code(&self) -> Option<&Arc<Compiled>> {
        self.code.get()?.as_ref().ok()
    }

    /// Why there will be none.
    pub(super) fn failure(&self) -> Option<&str> {
        self.code.get()?.as_ref().err().map(String::as_str)
    }

    /// The code, if it is in memory or what `load` gives, which is asked once.
    fn found(&self, load: impl FnOnce() -> Option<Compiled>) -> Option<(Arc<Compiled>, Origin)> {
        let mut origin = Origin::Memory;
        self.looked.get_or_init(|| {
            if let Some(Ok(code)) = load().map(as_asked_for) {
                origin = Origin::Disk;
                self.put(Ok(code));
            }
        });
        self.code().map(|code| (code.clone(), origin))
    }

    fn put(&self, made: Result<Arc<Compiled>, String>) {
        // What is there already is as good.
        let _ = self.code.set(made);
    }
}

/// Code, or the note that it was not made as asked for.
fn as_asked_for(code: Compiled) -> Result<Arc<Compiled>, String> {
    match code.object.note {
        Some(note) => Err(note),
        None => Ok(Arc::new(code)),
    }
}

impl Kernel {
    /// The same kernel for the better code generator. Variables are the same memory.
    fn better(&self, tier: &Tier) -> &Kernel {
        self.0.better.get_or_init(|| {
            let parts = self.parts();
            Kernel::new(KernelParts {
                engine: tier.engine.clone(),
                manifest: parts.manifest.clone(),
                data: parts.data.clone(),
                source: parts.source.clone(),
            })
        })
    }

    /// The tier above this kernel's code, where there is one.
    fn tier(&self) -> Option<&Tier> {
        let tier = self.parts().engine.0.tier.as_ref()?;
        (self.linked().is_none() && tier.is_here()).then_some(tier)
    }

    /// What tells when there is better code of a specialisation; none where launches are not tiered.
    pub(super) fn upgrade(&self, shape: LocalIdShape, oob: OobPolicy) -> Option<Arc<Upgrade>> {
        let tier = self.tier()?;
        let key = self.better(tier).cache_key(shape, oob);
        Some(lock(&tier.upgrades).entry(key).or_default().clone())
    }

    /// Whether better code of a specialisation is in memory.
    pub(super) fn is_upgraded(&self, shape: LocalIdShape, oob: OobPolicy) -> bool {
        let upgrade = self.upgrade(shape, oob);
        upgrade.is_some_and(|upgrade| upgrade.code().is_some())
    }

    /// The best code of a specialisation that there is.
    pub(super) fn tiered(
        &self,
        shape: LocalIdShape,
        oob: OobPolicy,
    ) -> Result<(Arc<Compiled>, Origin), Error> {
        let (Some(tier), Some(upgrade)) = (self.tier(), self.upgrade(shape, oob)) else {
            return self.own_code(shape, oob);
        };
        let load = || self.better(tier).from_disk(shape, oob);
        let Some((code, origin)) = upgrade.found(load) else {
            return self.own_code(shape, oob);
        };
        self.parts().engine.0.cache.count(origin);
        Ok((code, origin))
    }

    /// Has the background compile better code of a specialisation, which a launch runs now without.
    pub(super) fn ask_for(&self, upgrade: &Arc<Upgrade>, shape: LocalIdShape, oob: OobPolicy) {
        let Some(tier) = self.tier() else { return };
        if upgrade.asked.swap(true, Ordering::Relaxed) {
            return;
        }
        match tier.engine.0.backend.prepare() {
            Ok(()) => tier.background.ask(Job {
                kernel: self.better(tier).clone(),
                shape,
                oob,
                upgrade: upgrade.clone(),
            }),
            Err(error) => upgrade.put(Err(error.to_string())),
        }
    }
}

impl Background {
    /// Adds a job.
    fn ask(self: &Arc<Background>, job: Job) {
        let mut state = lock(&self.state);
        if !state.started {
            let background = self.clone();
            let thread = std::thread::Builder::new().name("visa-jit tier".to_owned());
            match thread.spawn(move || background.serve()) {
                Ok(_) => state.started = true,
                Err(error) => {
                    job.upgrade
                        .put(Err(format!("no thread to compile with: {error}")));
                    return;
                }
            }
        }
        state.jobs.push_back(job);
        self.changed.notify_all();
    }

    /// The thread.
    fn serve(&self) {
        while let Some(job) = self.next() {
            job.run();
        }
    }

    /// The next job, when there is one; none when the engine is gone.
    fn next(&self) -> Option<Job> {
        let mut state = lock(&self.state);
        state.busy = false;
        self.changed.notify_all();
        loop {
            if state.closed {
                return None;
            }
            if let Some(job) = state.jobs.pop_front() {
                state.busy = true;
                return Some(job);
            }
            let woken = self.changed.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Job {
    fn run(self) {
        let codegen = self.kernel.codegen(self.oob);
        let compile = || self.kernel.compile(self.shape, &codegen);
        let made = catch_unwind(AssertUnwindSafe(compile));
        self.upgrade.put(match made {
            Ok(Ok(code)) => as_asked_for(code),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("a panic while it was compiled".to_owned()),
        });
    }
}
