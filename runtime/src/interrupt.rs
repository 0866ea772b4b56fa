//! Stopping launches: from another thread, or at a deadline.
//!
//! Each launch has a word that compiled code polls at back edges. The first reason stored there
//! wins. Whoever may store keeps the word registered under a lock and the launch unregisters
//! before it returns, so that no late store reaches the next launch.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Instant;

/// Goes on.
pub(crate) const RUN: u32 = 0;
/// Stopped by an [`Interrupter`].
pub(crate) const STOP_USER: u32 = 1;
/// Stopped at its deadline.
pub(crate) const STOP_DEADLINE: u32 = 2;
/// Stopped by a fault.
pub(crate) const STOP_FAULT: u32 = 3;
/// Stopped by an internal error.
pub(crate) const STOP_ERROR: u32 = 4;

/// The word that a launch polls.
pub(crate) type StopWord = Arc<AtomicU32>;

/// Asks a launch to stop, unless it was asked before.
pub(crate) fn stop(word: &AtomicU32, reason: u32) {
    let _ = word.compare_exchange(RUN, reason, Ordering::Relaxed, Ordering::Relaxed);
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Stops the launches it was given to, from any thread. Cloning gives another handle.
#[derive(Clone, Debug, Default)]
pub struct Interrupter(Arc<Mutex<Running>>);

#[derive(Debug, Default)]
struct Running {
    interrupted: bool,
    words: Vec<StopWord>,
}

impl Interrupter {
    /// A new one, not interrupted.
    pub fn new() -> Interrupter {
        Interrupter::default()
    }

    /// Stops all launches that run with this handle; later ones end at once until [`Interrupter::reset`].
    pub fn interrupt(&self) {
        let mut running = lock(&self.0);
        running.interrupted = true;
        for word in &running.words {
            stop(word, STOP_USER);
        }
    }

    /// True after [`Interrupter::interrupt`].
    pub fn is_interrupted(&self) -> bool {
        lock(&self.0).interrupted
    }

    /// Lets launches run again.
    pub fn reset(&self) {
        lock(&self.0).interrupted = false;
    }

    pub(crate) fn watch(&self, word: &StopWord) -> Watched<'_> {
        let mut running = lock(&self.0);
        if running.interrupted {
            stop(word, STOP_USER);
        }
        running.words.push(word.clone());
        Watched {
            interrupter: self,
            word: word.clone(),
        }
    }
}

/// A launch registered with an [`Interrupter`] until this is dropped.
pub(crate) struct Watched<'a> {
    interrupter: &'a Interrupter,
    word: StopWord,
}

impl Drop for Watched<'_> {
    fn drop(&mut self) {
        let mut running = lock(&self.interrupter.0);
        if let Some(at) = running
            .words
            .iter()
            .position(|w| Arc::ptr_eq(w, &self.word))
        {
            running.words.swap_remove(at);
        }
    }
}

/// One thread for all deadlines of the process; started with the first.
#[derive(Default)]
struct Watchdog {
    state: Mutex<Deadlines>,
    changed: Condvar,
}

#[derive(Default)]
struct Deadlines {
    /// Launches by deadline; the number tells equal deadlines apart.
    launches: BTreeMap<(Instant, u64), StopWord>,
    next: u64,
    /// When the thread wakes by itself; `None` when it waits for news or does not run.
    wakes: Option<Instant>,
    /// The process in which the thread runs: a child after `fork` has none of its parent's threads.
    started: Option<u32>,
}

fn watchdog() -> &'static Watchdog {
    static WATCHDOG: OnceLock<Watchdog> = OnceLock::new();
    WATCHDOG.get_or_init(Watchdog::default)
}

impl Watchdog {
    fn run(&self) {
        let mut state = lock(&self.state);
        loop {
            let now = Instant::now();
            while let Some(first) = state.launches.first_entry()
                && first.key().0 <= now
            {
                stop(&first.remove(), STOP_DEADLINE);
            }
            let next = state.launches.keys().next().map(|&(at, _)| at);
            state.wakes = next;
            state = match next {
                Some(at) => {
                    let wait = at.saturating_duration_since(now);
                    let result = self.changed.wait_timeout(state, wait);
                    result.unwrap_or_else(PoisonError::into_inner).0
                }
                None => {
                    let result = self.changed.wait(state);
                    result.unwrap_or_else(PoisonError::into_inner)
                }
            };
        }
    }
}

/// A launch with a deadline until this is dropped.
pub(crate) struct Deadline {
    key: (Instant, u64),
}

impl Deadline {
    /// Stops the launch at `at`. Fails when the process may not have another thread.
    pub(crate) fn watch(at: Instant, word: &StopWord) -> std::io::Result<Deadline> {
        let dog = watchdog();
        let mut state = lock(&dog.state);
        let process = std::process::id();
        if state.started != Some(process) {
            std::thread::Builder::new()
                .name("visa-watchdog".to_owned())
                .spawn(|| watchdog().run())?;
            *state = Deadlines {
                next: state.next,
                started: Some(process),
                ..Deadlines::default()
            };
        }
        if at <= Instant::now() {
            stop(word, STOP_DEADLINE);
        }
        let key = (at, state.next);
        state.next += 1;
        state.launches.insert(key, word.clone());
        // A thread that wakes early enough anyway is left asleep: most launches end long before
        // their deadline, and a wake-up costs more than they do.
        if state.wakes.is_none_or(|wakes| wakes > at) {
            dog.changed.notify_one();
        }
        Ok(Deadline { key })
    }
}

impl Drop for Deadline {
    fn drop(&mut self) {
        lock(&watchdog().state).launches.remove(&self.key);
    }
}
