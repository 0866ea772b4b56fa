//! Events: the state of a command, who waits for it, and its times.

use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, OnceLock, PoisonError, Weak};
use std::time::Instant;

use super::context::Context;
use super::error::{Cl, ensure};
use super::object::{Ref, lock};
use super::queue::{Queue, Runner};
use crate::abi::fork;
use crate::abi::{
    CL_COMMAND_USER, CL_COMPLETE, CL_INVALID_OPERATION, CL_INVALID_VALUE, CL_QUEUED, CL_RUNNING,
    CL_SUBMITTED, cl_command_type, cl_int,
};

/// Called once with the status that was reached.
pub type Callback = Box<dyn FnOnce(cl_int) + Send>;

/// The state of a command, or of what the program does by itself.
pub struct Event {
    /// Whose it is.
    pub context: Ref<Context>,
    /// Where the command was enqueued; none of a user event.
    pub queue: Option<Ref<Queue>>,
    /// What the command is.
    pub command: AtomicI32,
    status: AtomicI32,
    inner: Mutex<Inner>,
    changed: Condvar,
    /// Nanoseconds at which the command was queued, submitted, started and ended; kept of queues that profile.
    times: [AtomicU64; 4],
}

#[derive(Default)]
struct Inner {
    callbacks: Vec<(cl_int, Callback)>,
    /// Queues with commands that wait for this one.
    blocked: Vec<Weak<Runner>>,
    /// Threads that sleep until it is done.
    sleepers: usize,
    /// The program has set the status of a user event.
    set: bool,
}

/// Nanoseconds of the device's clock, which is the host's.
pub fn now() -> u64 {
    static START: OnceLock<Instant> = OnceLock::new();
    // Not zero: programs take that for no time at all.
    1 + START.get_or_init(Instant::now).elapsed().as_nanos() as u64
}

impl Event {
    /// Of a command that is being enqueued.
    pub fn of_command(queue: &Ref<Queue>, command: cl_command_type) -> Event {
        Event::new(
            queue.context.clone(),
            Some(queue.clone()),
            command,
            CL_QUEUED as cl_int,
        )
    }

    /// Of what the program does.
    pub fn of_user(context: &Ref<Context>) -> Event {
        let command = CL_COMMAND_USER as cl_command_type;
        Event::new(context.clone(), None, command, CL_SUBMITTED as cl_int)
    }

    fn new(
        context: Ref<Context>,
        queue: Option<Ref<Queue>>,
        command: cl_command_type,
        status: cl_int,
    ) -> Event {
        Event {
            context,
            queue,
            command: AtomicI32::new(command.cast_signed()),
            status: AtomicI32::new(status),
            inner: Mutex::default(),
            changed: Condvar::new(),
            times: Default::default(),
        }
    }

    /// `CL_QUEUED` down to `CL_COMPLETE`, or negative.
    pub fn status(&self) -> cl_int {
        self.status.load(Ordering::Acquire)
    }

    /// Complete, or ended by an error.
    pub fn is_done(&self) -> bool {
        self.status() <= CL_COMPLETE as cl_int
    }

    /// Notes the time of a status.
    pub fn stamp(&self, status: cl_int) {
        let profiled = self.queue.as_ref().is_some_and(|q| q.profiles());
        if profiled && let Some(time) = self.times.get(3 - status.clamp(0, 3) as usize) {
            time.store(now(), Ordering::Relaxed);
        }
    }

    /// The time of a status, `CL_QUEUED` to `CL_COMPLETE`.
    pub fn time(&self, status: cl_int) -> u64 {
        let time = self.times.get(3 - status.clamp(0, 3) as usize);
        time.map_or(0, |time| time.load(Ordering::Relaxed))
    }

    /// Goes on to a status, and tells all who want to know.
    pub fn reach(&self, status: cl_int) {
        self.stamp(status);
        let mut inner = lock(&self.inner);
        self.status.store(status, Ordering::Release);
        let mut due = Vec::new();
        if !inner.callbacks.is_empty() {
            let all = std::mem::take(&mut inner.callbacks);
            let (now, later) = all.into_iter().partition(|(wanted, _)| *wanted >= status);
            (due, inner.callbacks) = (now, later);
        }
        let done = status <= CL_COMPLETE as cl_int;
        let blocked = if done {
            std::mem::take(&mut inner.blocked)
        } else {
            Vec::new()
        };
        if done && inner.sleepers > 0 {
            self.changed.notify_all();
        }
        drop(inner);
        for runner in blocked.iter().filter_map(Weak::upgrade) {
            runner.wake();
        }
        for (wanted, callback) in due {
            fork::without_locks(|| callback(if status < 0 { status } else { wanted }));
        }
    }

    /// Sets the status of a user event.
    ///
    /// # Errors
    /// `CL_INVALID_VALUE` for a status that is neither complete nor an error, `CL_INVALID_OPERATION` if it was set before.
    pub fn set_by_user(&self, status: cl_int) -> Cl<()> {
        ensure(status <= CL_COMPLETE as cl_int, CL_INVALID_VALUE)?;
        let mut inner = lock(&self.inner);
        ensure(!inner.set, CL_INVALID_OPERATION)?;
        inner.set = true;
        drop(inner);
        self.reach(status);
        Ok(())
    }

    /// Has `callback` called when the command reaches a status, at once if it has.
    pub fn when(&self, status: cl_int, callback: Callback) {
        let mut inner = lock(&self.inner);
        let reached = self.status();
        if reached > status {
            inner.callbacks.push((status, callback));
            return;
        }
        drop(inner);
        fork::without_locks(|| callback(if reached < 0 { reached } else { status }));
    }

    /// Has a queue woken when this is done. False if it is.
    pub fn blocks(&self, runner: &Weak<Runner>) -> bool {
        let mut inner = lock(&self.inner);
        if self.is_done() {
            return false;
        }
        if !inner.blocked.iter().any(|other| other.ptr_eq(runner)) {
            inner.blocked.push(runner.clone());
        }
        true
    }

    /// Sleeps until it is done.
    pub fn sleep(&self) {
        let mut inner = lock(&self.inner);
        inner.sleepers += 1;
        while !self.is_done() {
            inner = self
                .changed
                .wait(inner)
                .unwrap_or_else(PoisonError::into_inner);
        }
        inner.sleepers -= 1;
    }

    /// Carries out commands until it is done, and sleeps where others do.
    pub fn wait(&self) {
        while !self.is_done() {
            let Some(queue) = &self.queue else {
                return self.sleep();
            };
            if !queue.runner.help() {
                queue.runner.wake();
                self.sleep();
            }
        }
    }

    /// Is told that the command runs.
    pub fn start(&self) {
        self.reach(CL_RUNNING as cl_int);
    }
}
