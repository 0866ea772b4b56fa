//! Named barriers: count the threads that arrive, and release those that wait.

use crate::abi::{GroupCtx, THREAD_DONE, named_barrier as abi};
use crate::fault::{FaultKind, FaultSink, report};
use crate::race::Races;

/// Barriers with a number, and the group's.
const BARRIERS: usize = 33;

/// What came since the barrier started anew.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Come {
    producers: u32,
    consumers: u32,
}

/// A signal that is checked.
#[derive(Clone, Copy, Debug)]
struct Signal {
    thread: u32,
    site: u32,
    /// The threads that it is for.
    wanted: Come,
}

/// Signals since a barrier started anew.
#[derive(Clone, Copy, Debug)]
struct Signals {
    first: Signal,
    last: Signal,
}

/// Bits of barriers.
#[derive(Clone, Copy, Debug, Default)]
struct Thread {
    /// It signalled as a consumer, and others have not come yet.
    waits: u64,
    /// All came; it has not passed yet.
    passes: u64,
}

/// The named barriers of a group.
#[derive(Debug)]
pub(crate) struct NamedBarriers {
    /// The group.
    group: [u32; 3],
    come: [Come; BARRIERS],
    /// Where signals are checked.
    signals: [Option<Signals>; BARRIERS],
    /// A signal of the group was for other threads than the first one there.
    wrong: bool,
    threads: Box<[Thread]>,
    /// Signals, and threads that passed.
    steps: u64,
    /// Threads that could not pass.
    refused: u64,
    /// A group has come here since the last reset.
    used: bool,
    /// Barriers that were complete.
    complete: u64,
}

impl NamedBarriers {
    /// For groups of up to `threads` threads.
    pub(crate) fn new(threads: u32) -> NamedBarriers {
        NamedBarriers {
            group: [0; 3],
            come: [Come::default(); BARRIERS],
            signals: [None; BARRIERS],
            wrong: false,
            threads: vec![Thread::default(); threads as usize].into(),
            steps: 0,
            refused: 0,
            used: false,
            complete: 0,
        }
    }

    /// Before a group; its id comes in registers, as that of [`super::arrive::Meetings::reset`].
    #[inline(never)]
    pub(crate) fn reset(&mut self, x: u32, y: u32, z: u32) {
        self.group = [x, y, z];
        self.wrong = false;
        if std::mem::take(&mut self.used) {
            self.forget();
        }
    }

    fn forget(&mut self) {
        self.come = [Come::default(); BARRIERS];
        self.signals = [None; BARRIERS];
        self.threads.fill(Thread::default());
        (self.steps, self.refused) = (0, 0);
    }

    /// A call of code that never waits runs several groups: the one before this has ended.
    fn go_on(&mut self, group: [u32; 3], faults: Option<&mut FaultSink>) {
        if group != self.group {
            if let Some(faults) = faults {
                self.end(faults);
            }
            self.forget();
            self.group = group;
        }
    }

    /// True when threads were refused and nothing else happened since the last call: no thread is left that could release them.
    pub(crate) fn stuck(&mut self) -> bool {
        let (steps, refused) = (self.steps, self.refused);
        (self.steps, self.refused) = (0, 0);
        refused != 0 && steps == 0
    }

    fn signal(&mut self, thread: usize, id: usize, role: u32, wanted: Come) {
        let (Some(come), Some(t)) = (self.come.get_mut(id), self.threads.get_mut(thread)) else {
            return;
        };
        self.steps += 1;
        let role = role & 3;
        come.producers += u32::from(role != abi::CONSUMER);
        come.consumers += u32::from(role != abi::PRODUCER);
        if role != abi::PRODUCER {
            t.waits |= 1 << id;
        }
        if come.producers >= wanted.producers && come.consumers >= wanted.consumers {
            self.release(id);
        }
    }

    /// Notes where a signal is, before it counts. Returns what there is to say of it if the first one there is for other numbers of threads.
    fn check(&mut self, id: usize, signal: Signal) -> Option<u64> {
        let signals = self.signals.get_mut(id)?;
        let first = signals.map_or(signal, |signals| signals.first);
        *signals = Some(Signals {
            first,
            last: signal,
        });
        if first.wanted == signal.wanted {
            return None;
        }
        self.wrong = true;
        let counts = [signal.wanted, first.wanted];
        let counts = counts.map(|c| c.producers & 0xFF | (c.consumers & 0xFF) << 8);
        Some(u64::from(first.site) | u64::from(counts[0] | counts[1] << 16) << 32)
    }

    /// At the end of a group, records barriers that are not complete. True when the launch has to stop for these or earlier errors.
    pub(crate) fn end(&mut self, faults: &mut FaultSink) -> bool {
        if !self.used {
            return false;
        }
        for (come, signals) in self.come.iter().zip(&self.signals) {
            let Some(Signals { last, .. }) = signals else {
                continue;
            };
            let words = |c: Come| c.producers & 0xFFFF | c.consumers << 16;
            let said = u64::from(words(*come)) | u64::from(words(last.wanted)) << 32;
            let place = (last.thread, last.site);
            faults.barrier(FaultKind::BarrierLeft, self.group, place, 1, said);
            self.wrong = true;
        }
        self.wrong && faults.stop
    }

    /// True when the group that runs has come to such a barrier.
    pub(crate) fn used(&self) -> bool {
        self.used
    }

    fn release(&mut self, id: usize) {
        self.complete += 1;
        self.come[id] = Come::default();
        self.signals[id] = None;
        for t in &mut self.threads {
            t.passes |= t.waits & 1 << id;
            t.waits &= !(1 << id);
        }
    }

    /// Joins the barrier of all threads, once.
    fn join(&mut self, thread: usize) {
        let bit = 1 << abi::GROUP;
        if let Some(t) = self.threads.get_mut(thread)
            && (t.waits | t.passes) & bit == 0
        {
            t.waits |= bit;
            self.steps += 1;
        }
    }

    /// Lets all threads go, when those that are not `done` have joined.
    fn meet(&mut self, done: impl Fn(usize) -> bool, count: usize) {
        let mut threads = self.threads.iter().take(count).enumerate();
        if threads.all(|(n, t)| t.waits >> abi::GROUP & 1 != 0 || done(n)) {
            self.release(abi::GROUP as usize);
        }
    }

    fn pass(&mut self, thread: usize, id: usize) -> bool {
        let Some(t) = self.threads.get_mut(thread) else {
            return true;
        };
        let passes = t.passes >> id & 1 != 0;
        t.passes &= !(1 << id);
        self.steps += u64::from(passes);
        self.refused += u64::from(!passes);
        passes
    }
}

/// [`crate::abi::Helpers::named_barrier`].
///
/// # Safety
/// The group must be the one that runs, laid out as [`crate::abi`] says.
pub(super) unsafe extern "C" fn step(
    group: *mut GroupCtx,
    thread: u32,
    step: u32,
    id: u32,
    role: u32,
    producers: u32,
    consumers: u32,
) -> u32 {
    // SAFETY: the worker that runs the group owns the barriers, and waits for this call.
    let Some(barriers) = (unsafe { (*group).barriers.cast::<NamedBarriers>().as_mut() }) else {
        return 1;
    };
    // SAFETY: valid by the caller's promise; the sink belongs to the worker that runs this group, and only this call uses it now.
    let (r0, faults) = unsafe { ((*group).r0, (*group).faults.cast::<FaultSink>().as_mut()) };
    barriers.go_on([r0[1], r0[6], r0[7]], faults);
    barriers.used = true;
    let complete = barriers.complete;
    let thread = thread as usize;
    let id = if id == abi::GROUP { id } else { id & 31 } as usize;
    if id == abi::GROUP as usize {
        barriers.join(thread);
        // SAFETY: the group has that many threads.
        let state = |n| unsafe { (*(*group).threads.add(n)).state };
        // SAFETY: as above.
        let count = unsafe { (*group).thread_count } as usize;
        barriers.meet(|n| state(n) == THREAD_DONE, count);
    } else if step == abi::SIGNAL {
        let wanted = Come {
            producers: producers & 0xFF,
            consumers: consumers & 0xFF,
        };
        let checked = (role >> abi::SITE_SHIFT).checked_sub(1);
        if let Some(site) = checked {
            let number = thread as u32;
            let signal = Signal {
                thread: number,
                site,
                wanted,
            };
            if let Some(said) = barriers.check(id, signal) {
                let said = [said; 32];
                let kind = FaultKind::BarrierCounts;
                // The launch stops at the end of the group, if it does.
                // SAFETY: the group is the one that runs; there is a word for each of 32 lanes.
                unsafe { report(group, number, site, 1, said.as_ptr(), 0, kind) };
            }
        }
        barriers.signal(thread, id, role, wanted);
    }
    // SAFETY: as of the barriers.
    if let Some(races) = unsafe { (*group).races.cast::<Races>().as_mut() }
        && complete != barriers.complete
    {
        races.next_epoch();
    }
    match step {
        abi::SIGNAL => 0,
        _ => barriers.pass(thread, id).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: Come = Come {
        producers: 2,
        consumers: 2,
    };

    #[test]
    fn a_barrier_lets_go_those_that_came_and_starts_anew() {
        let mut b = NamedBarriers::new(3);
        for _ in 0..3 {
            b.signal(0, 5, abi::BOTH, TWO);
            assert!(!b.pass(0, 5));
            b.signal(2, 5, abi::BOTH, TWO);
            assert!(!b.pass(1, 5), "never signalled");
            assert!(!b.pass(0, 4), "another barrier");
            assert!(b.pass(0, 5) && b.pass(2, 5));
            assert!(!b.pass(0, 5) && !b.pass(2, 5), "once each");
        }
    }

    #[test]
    fn producers_do_not_wait_and_consumers_do_not_let_go() {
        let mut b = NamedBarriers::new(3);
        let wanted = Come {
            producers: 1,
            consumers: 2,
        };
        b.signal(1, 0, abi::CONSUMER, wanted);
        b.signal(2, 0, abi::CONSUMER, wanted);
        assert!(!b.pass(1, 0) && !b.pass(2, 0));
        b.signal(0, 0, abi::PRODUCER, wanted);
        assert!(b.pass(1, 0) && b.pass(2, 0) && !b.pass(0, 0));
    }

    #[test]
    fn all_threads_meet_but_those_that_are_done() {
        let mut b = NamedBarriers::new(4);
        let id = abi::GROUP as usize;
        for n in [0, 2, 2] {
            b.join(n);
            b.meet(|_| false, 3);
            assert!(!b.pass(n, id));
        }
        b.meet(|n| n == 1, 3);
        assert!(b.pass(0, id) && b.pass(2, id) && !b.pass(1, id));
    }

    #[test]
    fn no_thread_left_to_come() {
        let mut b = NamedBarriers::new(2);
        assert!(!b.stuck());
        b.signal(0, 1, abi::BOTH, TWO);
        assert!(!b.pass(0, 1) && !b.stuck(), "a signal was a step");
        assert!(!b.pass(0, 1) && b.stuck());
        b.used = true;
        b.reset(0, 0, 0);
        assert!(!b.pass(0, 1));
        b.signal(1, 1, abi::BOTH, TWO);
        assert!(
            !b.pass(1, 1) && !b.stuck(),
            "the signal before was forgotten"
        );
    }
}
