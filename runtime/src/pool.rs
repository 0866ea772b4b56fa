//! Worker threads that work-groups are spread over.

use crate::limits::MAX_WORKERS;

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
#[derive(Debug)]
pub struct WorkerPool {
    threads: Option<rayon::ThreadPool>,
    workers: usize,
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
        Ok(WorkerPool { threads, workers })
    }

    /// Workers, the launching thread included.
    pub fn workers(&self) -> usize {
        self.workers
    }

    /// Runs `work` once for each item, the first on this thread; returns when all are done.
    pub(crate) fn each<T: Send>(&self, items: &mut [T], work: impl Fn(&mut T) + Sync) {
        let Some(threads) = &self.threads else {
            items.iter_mut().for_each(work);
            return;
        };
        let Some((first, others)) = items.split_first_mut() else {
            return;
        };
        let work = &work;
        threads.in_place_scope(|scope| {
            for item in others {
                scope.spawn(move |_| work(item));
            }
            work(first);
        });
    }
}
