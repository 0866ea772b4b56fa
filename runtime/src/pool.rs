//! Worker threads that work-groups are spread over.

use crate::limits::MAX_WORKERS;
use crate::placement::Placement;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// How long the launching thread spins for the others' last groups before it sleeps. Another thread wakes up to this much later,
/// and ends that much later.
const SPIN: Duration = Duration::from_micros(100);

/// Why a pool could not be made.
#[derive(Debug, thiserror::Error)]
pub enum PoolError {
    /// Over the limit.
    #[error("{0} workers are over the limit of {MAX_WORKERS}")]
    TooMany(usize),
    /// Threads could not be started.
    #[error("worker threads could not be started: {0}")]
    Start(#[from] rayon::ThreadPoolBuildError),
}

/// Threads that stay alive between launches. The thread that launches works as well, so a pool of
/// `n` workers has `n - 1` threads. Launches from several threads may share a pool.
///
/// A child that `fork` made has none of the threads, and locks that they held stay locked there: it neither offers them work
/// nor ends them.
#[derive(Debug)]
pub struct WorkerPool {
    threads: Option<rayon::ThreadPool>,
    workers: usize,
    placement: Arc<Placement>,
    /// The process that has the threads.
    process: u32,
}

impl WorkerPool {
    /// A pool of `workers` workers; 0 means one for each processor.
    ///
    /// # Errors
    /// See [`PoolError`].
    pub fn new(workers: usize) -> Result<WorkerPool, PoolError> {
        let workers = match workers {
            0 => std::thread::available_parallelism().map_or(1, |n| n.get().min(MAX_WORKERS)),
            n => n,
        };
        if workers > MAX_WORKERS {
            return Err(PoolError::TooMany(workers));
        }
        let threads = match workers {
            1 => None,
            n => Some(
                rayon::ThreadPoolBuilder::new()
                    .num_threads(n - 1)
                    .thread_name(|i| format!("visa-worker-{}", i + 1))
                    .build()?,
            ),
        };
        Ok(WorkerPool {
            threads,
            workers,
            placement: Arc::new(Placement::new(workers - 1)),
            process: std::process::id(),
        })
    }

    /// The threads, in the process that has them.
    fn threads(&self) -> Option<&rayon::ThreadPool> {
        let threads = self.threads.as_ref()?;
        (self.process == std::process::id()).then_some(threads)
    }

    /// Workers, the launching thread included.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Runs `work` on the first item here and offers the others to the threads; returns when no
    /// thread works on an item any more.
    ///
    /// An item whose turn has not come when `work` on the first one returns is left alone: the
    /// threads may be busy with another launch for long. So `work` on one item must do what is
    /// left to do, whatever becomes of the others.
    pub(crate) fn share<T: Send>(&self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        let Some((first, others)) = items.split_first_mut() else {
            return;
        };
        let Some(threads) = self.threads() else {
            return work(first);
        };
        self.placement.spread();
        let offer = Arc::new(Offer::default());
        // Waits also when `work` unwinds: the threads must not outlive what they borrow.
        let _closed = Closed(&offer);
        for item in others {
            let task = Task::new(item, &work);
            let (offer, placement) = (offer.clone(), self.placement.clone());
            threads.spawn(move || {
                let _working = rayon::current_thread_index().map(|n| placement.work(n));
                if let Some(_started) = offer.start() {
                    // SAFETY: the offer was open when this started, so `share` has not returned
                    // and does not before this ends; each task has an item of its own.
                    unsafe { task.run() }
                }
            });
        }
        work(first);
    }
}

impl Drop for WorkerPool {
    fn drop(&mut self) {
        if self.threads().is_none() {
            std::mem::forget(self.threads.take());
        }
    }
}

/// One item and what to do with it, without their types and lifetimes.
struct Task {
    item: *mut (),
    work: *const (),
    call: unsafe fn(*const (), *mut ()),
}

// SAFETY: made only from a `T: Send`, of which it is the exclusive use, and an `F: Sync`.
unsafe impl Send for Task {}

impl Task {
    fn new<T: Send, F: Fn(&mut T) + Sync>(item: &mut T, work: &F) -> Task {
        /// # Safety
        /// The pointers must be a live `F` and a live `T` that nothing else uses.
        unsafe fn call<T, F: Fn(&mut T)>(work: *const (), item: *mut ()) {
            // SAFETY: as promised.
            unsafe { (*work.cast::<F>())(&mut *item.cast::<T>()) }
        }
        Task {
            item: (&raw mut *item).cast(),
            work: (&raw const *work).cast(),
            call: call::<T, F>,
        }
    }

    /// # Safety
    /// Item and function must be alive, and nothing else may use the item.
    unsafe fn run(&self) {
        // SAFETY: as promised; the pointers have the types that `call` was made for.
        unsafe { (self.call)(self.work, self.item) }
    }
}

/// Items that threads may still start on, and how many they work on.
#[derive(Default)]
struct Offer {
    state: Mutex<OfferState>,
    /// [`OfferState::running`], for a look without the lock.
    running: AtomicUsize,
    ended: Condvar,
}

#[derive(Default)]
struct OfferState {
    closed: bool,
    /// Items that threads work on.
    running: usize,
}

impl Offer {
    fn lock(&self) -> MutexGuard<'_, OfferState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins work on an item, unless the offer is closed.
    fn start(&self) -> Option<Started<'_>> {
        let mut state = self.lock();
        if state.closed {
            return None;
        }
        state.running += 1;
        self.running.store(state.running, Ordering::Relaxed);
        Some(Started(self))
    }
}

/// Work on an item until dropped.
struct Started<'a>(&'a Offer);

impl Drop for Started<'_> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.running -= 1;
        self.0.running.store(state.running, Ordering::Relaxed);
        drop(state);
        self.0.ended.notify_one();
    }
}

/// Closes the offer when dropped, and waits for the items that were started.
struct Closed<'a>(&'a Offer);

impl Drop for Closed<'_> {
    fn drop(&mut self) {
        self.0.lock().closed = true;
        let start = Instant::now();
        while self.0.running.load(Ordering::Relaxed) != 0 && start.elapsed() < SPIN {
            std::hint::spin_loop();
        }
        let mut state = self.0.lock();
        while state.running != 0 {
            let woken = self.0.ended.wait(state);
            state = woken.unwrap_or_else(PoisonError::into_inner);
        }
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    /// What a child finds when a thread of its parent went to sleep as `fork` was called.
    #[test]
    fn other_processes_do_without_the_threads() {
        let mut pool = WorkerPool::new(2).unwrap();
        pool.process = pool.process.wrapping_add(1);
        let placement = pool.placement.clone();
        let _held = placement.held(0);
        let mut done = [false; 2];
        pool.share(&mut done, |item| *item = true);
        assert_eq!(done, [true, false]);
        drop(pool);
    }
}
