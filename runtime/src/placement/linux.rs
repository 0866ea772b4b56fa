//! Linux wakes a thread on the processor where it ran last or on that of the thread that wakes it. It looks for an idle one,
//! but not where it takes the processors that share a cache for busy, as it does on small machines after work on all of them.
//! A worker that wakes on the launching thread's processor shares it for the whole launch, or for milliseconds of it: an idle
//! processor is given work at the scheduler's next tick at the earliest. So a worker that sleeps is kept off the launching
//! thread's processor until it has started.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::thread::{CpuSet, Pid, gettid, sched_getaffinity, sched_getcpu, sched_setaffinity};

/// The threads of a pool.
#[derive(Debug)]
pub(crate) struct Placement {
    threads: Box<[Mutex<State>]>,
}

#[derive(Debug, Default)]
enum State {
    /// It works, or has not worked yet.
    #[default]
    Working,
    Sleeping(Sleeper),
    /// It sleeps and may use fewer processors than these.
    KeptOff(CpuSet),
}

/// A thread that sleeps.
#[derive(Clone, Copy, Debug)]
struct Sleeper {
    thread: Pid,
    /// Where it ran last.
    processor: usize,
    /// Processors that it may use.
    allowed: CpuSet,
}

impl Placement {
    /// For this number of threads.
    pub(crate) fn new(threads: usize) -> Placement {
        Placement {
            threads: (0..threads).map(|_| Mutex::default()).collect(),
        }
    }

    fn lock(&self, thread: usize) -> Option<MutexGuard<'_, State>> {
        let state = self.threads.get(thread)?.lock();
        Some(state.unwrap_or_else(PoisonError::into_inner))
    }

    /// As a thread that takes note of its state holds it.
    #[cfg(test)]
    pub(crate) fn held(&self, thread: usize) -> Option<impl Sized> {
        self.lock(thread)
    }

    /// The calling thread, which has this number in the pool, works until what this returns is dropped.
    pub(crate) fn work(&self, thread: usize) -> Working<'_> {
        if let Some(mut state) = self.lock(thread)
            && let State::KeptOff(allowed) = std::mem::take(&mut *state)
        {
            // Fails only if those processors are gone, and then the smaller set holds.
            let _ = sched_setaffinity(None, &allowed);
        }
        Working {
            placement: self,
            thread,
        }
    }

    /// Before threads are woken: keeps those that sleep off the calling thread's processor, and where several ran last on
    /// one processor, all but one of them off it.
    pub(crate) fn spread(&self) {
        let mut taken = CpuSet::new();
        add(&mut taken, sched_getcpu());
        for thread in 0..self.threads.len() {
            let Some(mut state) = self.lock(thread) else {
                continue;
            };
            if let State::Sleeping(sleeper) = *state {
                if keep_off(&sleeper, &taken) {
                    *state = State::KeptOff(sleeper.allowed);
                }
                add(&mut taken, sleeper.processor);
            }
        }
    }
}

/// A thread that works.
pub(crate) struct Working<'a> {
    placement: &'a Placement,
    thread: usize,
}

impl Drop for Working<'_> {
    fn drop(&mut self) {
        if let (Some(mut state), Ok(allowed)) =
            (self.placement.lock(self.thread), sched_getaffinity(None))
        {
            *state = State::Sleeping(Sleeper {
                thread: gettid(),
                processor: sched_getcpu(),
                allowed,
            });
        }
    }
}

/// Adds a processor. One whose number no set can hold cannot be named to the system.
fn add(set: &mut CpuSet, processor: usize) {
    if processor < CpuSet::MAX_CPU {
        set.set(processor);
    }
}

/// Keeps a thread off processors, if it may use others. Returns whether it is kept off.
fn keep_off(sleeper: &Sleeper, taken: &CpuSet) -> bool {
    let mut left = sleeper.allowed;
    for processor in 0..CpuSet::MAX_CPU {
        if taken.is_set(processor) {
            left.unset(processor);
        }
    }
    left.count() != 0 && sched_setaffinity(Some(sleeper.thread), &left).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    fn of(thread: Option<Pid>) -> CpuSet {
        sched_getaffinity(thread).unwrap()
    }

    /// A thread that may use `allowed` sleeps; the calling thread is kept on `processor`.
    fn with_sleeper(processor: usize, allowed: CpuSet) {
        let placement = Placement::new(1);
        let (asleep, when_asleep) = channel();
        let (wake, when_woken) = channel();
        std::thread::scope(|s| {
            let placement = &placement;
            s.spawn(move || {
                sched_setaffinity(None, &allowed).unwrap();
                drop(placement.work(0));
                asleep.send(gettid()).unwrap();
                when_woken.recv().unwrap();
                let _working = placement.work(0);
                assert_eq!(of(None), allowed);
            });
            let thread = when_asleep.recv().unwrap();
            placement.spread();
            let mut left = allowed;
            left.unset(processor);
            let wanted = if left.count() == 0 { allowed } else { left };
            assert_eq!(of(Some(thread)), wanted);
            // Once more, nothing changes.
            placement.spread();
            assert_eq!(of(Some(thread)), wanted);
            wake.send(()).unwrap();
        });
    }

    #[test]
    fn sleepers_are_kept_off_until_they_work() {
        let all = of(None);
        let here = (0..CpuSet::MAX_CPU).find(|&n| all.is_set(n)).unwrap();
        let mut one = CpuSet::new();
        one.set(here);
        // On a thread of its own, which ends with the test.
        let test = std::thread::spawn(move || {
            sched_setaffinity(None, &one).unwrap();
            with_sleeper(here, all);
            with_sleeper(here, one);
        });
        test.join().unwrap();
    }
}
