//! Command queues.
//!
//! Commands are carried out by whoever waits for them: `clFinish` and the like run them on the calling thread, since to hand
//! one to another thread takes longer than a small kernel. A thread of the queue's own does so after `clFlush`, and when
//! a command waits for something else. It is made when it is first needed.
//!
//! One command of a queue runs at a time, with all threads of the machine. In a queue that is out of order a command that waits
//! does not hold up others.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Thread;

use super::context::Context;
use super::device::Device;
use super::error::{Cl, ClError};
use super::event::Event;
use super::object::{Object, Ref, lock};
use super::report;
use crate::abi::fork::{self, Process};
use crate::abi::{
    CL_COMPLETE, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, CL_OUT_OF_RESOURCES,
    CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE, CL_QUEUE_PROFILING_ENABLE, CL_QUEUED, CL_SUBMITTED,
    cl_command_queue_properties, cl_command_type, cl_int,
};

/// What a command does.
pub type Work = Box<dyn FnOnce() -> Cl<()> + Send>;

/// Commands beyond these are begun without being asked for.
const MOST_PENDING: usize = 256;

/// Queues that wait for each other are followed this far.
const MOST_FOLLOWED: usize = 16;

/// When a command may run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// After its wait list.
    Usual,
    /// After all commands in front of it.
    AfterAll,
    /// After its wait list; later commands come after it.
    Barrier,
    /// After all commands before it, and before all after it.
    FullBarrier,
}

struct Command {
    event: Ref<Event>,
    waits: Vec<Ref<Event>>,
    order: Order,
    work: Work,
}

/// A command queue.
pub struct Queue {
    /// Whose it is.
    pub context: Ref<Context>,
    /// Where commands run.
    pub device: Ref<Device>,
    /// Out of order, profiling.
    pub properties: cl_command_queue_properties,
    /// The list of properties it was made with.
    pub given: Vec<u64>,
    /// Its commands.
    pub runner: Arc<Runner>,
}

/// The commands of a queue, and the thread that carries them out when no other waits for them.
pub struct Runner {
    in_order: bool,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    pending: VecDeque<Command>,
    /// The command that runs, and where: one that ran in a parent process never ends in its child.
    running: Option<(Process, Ref<Event>)>,
    /// Threads that sleep until a command has ended.
    sleepers: usize,
    /// The queue's own thread, and the process in which it exists: a child has none of its parent's threads.
    thread: Option<(Process, Thread)>,
    /// It has something to do.
    wake: bool,
    /// The queue is gone.
    closed: bool,
}

impl State {
    /// Whether a thread of this process runs a command.
    fn is_busy(&self) -> bool {
        let process = self.running.as_ref().map(|(process, _)| *process);
        process == Some(Process::current())
    }

    /// Whether the queue has a thread of its own in this process.
    fn is_served(&self) -> bool {
        let process = self.thread.as_ref().map(|(process, _)| *process);
        process == Some(Process::current())
    }

    /// Has the queue's own thread look at the state again.
    fn rouse(&self) {
        if self.is_served()
            && let Some((_, thread)) = &self.thread
        {
            thread.unpark();
        }
    }
}

/// What one attempt to run a command came to.
enum Step {
    Ran,
    Empty,
    /// Another thread runs one.
    Busy,
    /// Nothing can run before this event.
    Blocked(Ref<Event>),
}

impl Queue {
    /// A queue without commands.
    pub fn new(
        context: Ref<Context>,
        device: Ref<Device>,
        properties: cl_command_queue_properties,
        given: Vec<u64>,
    ) -> Queue {
        let out_of_order = u64::from(CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE);
        let runner = Arc::new(Runner {
            in_order: properties & out_of_order == 0,
            state: Mutex::default(),
            changed: Condvar::new(),
        });
        context.add(&runner);
        Queue {
            context,
            device,
            properties,
            given,
            runner,
        }
    }

    /// Whether times of commands are kept.
    pub fn profiles(&self) -> bool {
        self.properties & u64::from(CL_QUEUE_PROFILING_ENABLE) != 0
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // Commands refer to their queue: there are none.
        let mut state = lock(&self.runner.state);
        state.closed = true;
        state.rouse();
    }
}

/// Adds a command to a queue.
pub fn enqueue(
    queue: &Ref<Queue>,
    command: cl_command_type,
    waits: Vec<Ref<Event>>,
    order: Order,
    work: Work,
) -> Ref<Event> {
    let event = Object::hidden(Event::of_command(queue, command));
    event.stamp(CL_QUEUED as cl_int);
    let mut state = lock(&queue.runner.state);
    state.pending.push_back(Command {
        event: event.clone(),
        waits,
        order,
        work,
    });
    let many = state.pending.len() > MOST_PENDING;
    drop(state);
    if many {
        queue.runner.wake();
    }
    event
}

impl Runner {
    /// Has the queue's own thread carry out commands.
    pub fn wake(self: &Arc<Runner>) {
        let mut state = lock(&self.state);
        let served = state.is_served();
        if state.pending.is_empty() || (served && state.wake) {
            return;
        }
        state.wake = true;
        if served {
            state.rouse();
            return;
        }
        let runner = self.clone();
        let thread = std::thread::Builder::new().name("visa-jit queue".to_owned());
        // Without a thread, commands are carried out where they are waited for.
        let spawned = thread.spawn(move || fork::with_locks(|| runner.serve()));
        let made = spawned.ok().map(|handle| handle.thread().clone());
        state.thread = made.map(|thread| (Process::current(), thread));
    }

    /// Waits until there are no commands.
    pub fn finish(self: &Arc<Runner>) {
        loop {
            if self.help() {
                continue;
            }
            let mut state = lock(&self.state);
            if state.pending.is_empty() && state.running.is_none() {
                return;
            }
            drop(state);
            self.wake();
            state = lock(&self.state);
            if !state.pending.is_empty() || state.running.is_some() {
                drop(self.sleep(state));
            }
        }
    }

    /// Runs one command of this queue, or of one that it waits for. False if none can run on this thread now.
    pub fn help(self: &Arc<Runner>) -> bool {
        let mut runner = self.clone();
        for _ in 0..MOST_FOLLOWED {
            match runner.step() {
                Step::Ran => return true,
                Step::Empty | Step::Busy => return false,
                Step::Blocked(event) => match &event.queue {
                    Some(queue) if !Arc::ptr_eq(&queue.runner, &runner) => {
                        runner.wake();
                        runner = queue.runner.clone();
                    }
                    _ => return false,
                },
            }
        }
        false
    }

    fn sleep<'s>(&self, mut state: MutexGuard<'s, State>) -> MutexGuard<'s, State> {
        state.sleepers += 1;
        let woken = self.changed.wait(state);
        let mut state = woken.unwrap_or_else(PoisonError::into_inner);
        state.sleepers -= 1;
        state
    }

    /// The queue's own thread. It sleeps without the lock, so that `fork` never finds it with one.
    fn serve(self: &Arc<Runner>) {
        loop {
            let mut state = lock(&self.state);
            if !state.wake || state.is_busy() {
                let closed = state.closed;
                drop(state);
                if closed {
                    return;
                }
                fork::without_locks(std::thread::park);
                continue;
            }
            state.wake = false;
            drop(state);
            loop {
                match self.step() {
                    Step::Ran => {}
                    Step::Empty => break,
                    Step::Busy => {
                        lock(&self.state).wake = true;
                        break;
                    }
                    Step::Blocked(event) => {
                        if let Some(queue) = &event.queue
                            && !Arc::ptr_eq(&queue.runner, self)
                        {
                            queue.runner.wake();
                        }
                        break;
                    }
                }
            }
        }
    }

    /// Runs the next command that can run.
    fn step(self: &Arc<Runner>) -> Step {
        let mut state = lock(&self.state);
        if state.is_busy() {
            return Step::Busy;
        }
        if state.running.is_some() {
            return Self::abandon(state);
        }
        let weak = Arc::downgrade(self);
        let mut blocked = None;
        let mut next = None;
        for (at, command) in state.pending.iter().enumerate() {
            let alone = matches!(command.order, Order::AfterAll | Order::FullBarrier);
            let waits_for = command.waits.iter().find(|event| event.blocks(&weak));
            match waits_for {
                Some(event) => blocked = blocked.or_else(|| Some(event.clone())),
                None if !alone || at == 0 => {
                    next = Some(at);
                    break;
                }
                None => {}
            }
            if self.in_order || matches!(command.order, Order::Barrier | Order::FullBarrier) {
                break;
            }
        }
        let Some(command) = next.and_then(|at| state.pending.remove(at)) else {
            return blocked.map_or(Step::Empty, Step::Blocked);
        };
        state.running = Some((Process::current(), command.event.clone()));
        drop(state);
        let done = command.run();
        let mut state = lock(&self.state);
        let running = state.running.take();
        if state.sleepers > 0 {
            self.changed.notify_all();
        }
        if state.wake {
            state.rouse();
        }
        drop(state);
        // Last: from here on the queue itself may go.
        drop((running, done));
        Step::Ran
    }

    /// Ends a command that ran in the parent process when this one was made.
    fn abandon(mut state: MutexGuard<'_, State>) -> Step {
        let running = state.running.take();
        drop(state);
        if let Some((_, event)) = running {
            report::problem(
                "fork",
                "a command that was running is not carried out in the child",
            );
            event.reach(CL_OUT_OF_RESOURCES);
        }
        Step::Ran
    }
}

impl Command {
    fn run(self) -> Ref<Event> {
        let failed = self.waits.iter().any(|event| event.status() < 0);
        self.event.reach(CL_SUBMITTED as cl_int);
        let status = if failed {
            CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST
        } else {
            self.event.start();
            let work = std::panic::AssertUnwindSafe(self.work);
            match std::panic::catch_unwind(|| fork::without_locks({ work }.0)) {
                Ok(Ok(())) => CL_COMPLETE as cl_int,
                Ok(Err(ClError(code))) => code,
                Err(_) => CL_OUT_OF_RESOURCES,
            }
        };
        self.event.reach(status);
        self.event
    }
}
