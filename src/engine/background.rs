//! A thread that does jobs in the background, one after the other. It is started for the first of them.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// What there is to do. A job does not panic.
pub(super) type Job = Box<dyn FnOnce() + Send>;

/// The thread, and what it has to do.
#[derive(Default)]
pub(super) struct Background {
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
    /// No more jobs are done.
    closed: bool,
}

impl Background {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a job.
    ///
    /// # Errors
    /// When there is no thread and none can be started.
    pub(super) fn ask(self: &Arc<Background>, job: Job) -> io::Result<()> {
        let mut state = self.lock();
        if !state.started {
            let background = self.clone();
            let thread = std::thread::Builder::new().name("visa-jit tier".to_owned());
            thread.spawn(move || background.serve())?;
            state.started = true;
        }
        state.jobs.push_back(job);
        self.changed.notify_all();
        Ok(())
    }

    /// Waits until nothing is left to do, or for `limit`; true if nothing is.
    pub(super) fn wait(&self, limit: Duration) -> bool {
        let at_work = |state: &mut State| state.busy || !state.jobs.is_empty();
        let waited = self.changed.wait_timeout_while(self.lock(), limit, at_work);
        !waited.unwrap_or_else(PoisonError::into_inner).1.timed_out()
    }

    /// Drops the jobs that are left. The thread ends after its present job; this does not wait for that.
    pub(super) fn close(&self) {
        let mut state = self.lock();
        state.closed = true;
        let left = std::mem::take(&mut state.jobs);
        drop(state);
        self.changed.notify_all();
        // What jobs own may lock too when it is dropped.
        drop(left);
    }

    /// The thread.
    fn serve(&self) {
        while let Some(job) = self.next() {
            job();
        }
    }

    /// The next job, when there is one; none when the queue is closed.
    fn next(&self) -> Option<Job> {
        let mut state = self.lock();
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
