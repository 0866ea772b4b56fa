//! Checks of barriers: which lanes of a thread arrive, and whether the threads of a group meet.
//!
//! All threads that are not finished meet at each barrier, and no thread arrives at the next one before all others have arrived at this one.
//! So a meeting is over when a thread arrives again, or at the end of the group. Threads that have not arrived by then are finished. The
//! interpreter does not use this; it looks at its threads when they stop.

use crate::abi::GroupCtx;
use crate::fault::{FaultKind, FaultSink};

/// A thread between meetings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// It has not arrived at the meeting.
    #[default]
    Free,
    /// It has signalled, and does not wait yet.
    Signalled,
    /// It waits, or has gone on.
    Waits,
    /// The meeting that it signalled for is over, and it has not waited.
    Open,
}

/// Where a thread arrived at a meeting.
#[derive(Clone, Copy, Debug, Default)]
struct Arrival {
    site: u32,
    lanes: u32,
}

/// Who came to the barriers of a group.
#[derive(Debug, Default)]
pub(crate) struct Meetings {
    /// The group.
    pub group: [u32; 3],
    threads: Box<[(State, Arrival)]>,
    /// A thread has come.
    used: bool,
}

impl Meetings {
    /// For groups of up to `threads` threads.
    pub(crate) fn new(threads: u32) -> Meetings {
        Meetings {
            threads: vec![Default::default(); threads as usize].into(),
            ..Meetings::default()
        }
    }

    /// Before a group.
    ///
    /// The id comes in registers. As an array it would come in memory, written in three pieces and read in two, and processors wait with such
    /// a load until all stores before it are done.
    #[inline(never)]
    pub(crate) fn reset(&mut self, x: u32, y: u32, z: u32) {
        self.group = [x, y, z];
        if std::mem::take(&mut self.used) {
            self.threads.fill(Default::default());
        }
    }

    /// True when a thread that comes now has been to the meeting, so that it is over.
    fn is_over(&self, thread: u32) -> bool {
        let known = self.threads.get(thread as usize);
        known.is_some_and(|&(state, _)| state == State::Waits)
    }

    fn come(&mut self, thread: u32, arrival: Arrival, waits: bool) {
        let Some((state, at)) = self.threads.get_mut(thread as usize) else {
            return;
        };
        self.used = true;
        if *state == State::Free {
            *at = arrival;
        }
        *state = match (*state, waits) {
            (State::Open, true) => State::Free,
            (State::Open, false) => State::Open,
            (_, true) => State::Waits,
            (_, false) => State::Signalled,
        };
    }

    /// What each thread did in the meeting, those of a group only.
    fn arrivals(&self, count: u32) -> impl Iterator<Item = (u32, Option<Arrival>)> + '_ {
        let come = |state| matches!(state, State::Signalled | State::Waits);
        let threads = (0..count).zip(&self.threads);
        threads.map(move |(n, &(state, arrival))| (n, come(state).then_some(arrival)))
    }

    fn next(&mut self) {
        for (state, _) in &mut self.threads {
            *state = match state {
                State::Signalled | State::Open => State::Open,
                State::Free | State::Waits => State::Free,
            };
        }
    }
}

impl FaultSink {
    /// Ends a meeting of a group of `count` threads: records threads that were not there, and those that were at another barrier than the
    /// first one of them. True when the launch has to stop.
    pub(crate) fn end_meeting(&mut self, count: u32) -> bool {
        if !self.meetings.used {
            return false;
        }
        let before = self.count;
        let mut meetings = std::mem::take(&mut self.meetings);
        let group = meetings.group;
        let first = meetings.arrivals(count).find_map(|(n, a)| Some((n, a?)));
        if let Some((host, first)) = first {
            for (n, arrival) in meetings.arrivals(count) {
                match arrival {
                    None => {
                        let (lanes, place) = (self.lanes(n), (n, first.site));
                        let there = u64::from(host) << 32;
                        self.barrier(FaultKind::MissedBarrier, group, place, lanes, there);
                    }
                    Some(at) if at.site != first.site => {
                        let other = u64::from(first.site) | u64::from(host) << 32;
                        self.barrier(
                            FaultKind::OtherBarrier,
                            group,
                            (n, at.site),
                            at.lanes,
                            other,
                        );
                    }
                    Some(_) => {}
                }
            }
        }
        meetings.next();
        self.meetings = meetings;
        self.stop && self.count != before
    }

    /// A thread of the group comes to a barrier; true when the launch has to stop.
    fn arrive(&mut self, thread: u32, count: u32, arrival: Arrival, waits: bool) -> bool {
        let stop = self.meetings.is_over(thread) && self.end_meeting(count);
        let all = self.lanes(thread);
        let missing = all & !arrival.lanes;
        if missing != 0 && !stop {
            let said = u64::from(arrival.lanes) | u64::from(all) << 32;
            self.barrier(
                FaultKind::Barrier,
                self.meetings.group,
                (thread, arrival.site),
                missing,
                said,
            );
        }
        self.meetings.come(thread, arrival, waits);
        stop || (self.stop && missing != 0)
    }
}

/// [`crate::abi::Helpers::arrive`].
///
/// # Safety
/// `group` must be the group that runs, laid out as [`crate::abi`] says.
pub(super) unsafe extern "C" fn arrive(
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    lanes: u32,
    waits: u32,
) -> u32 {
    // SAFETY: valid by the caller's promise.
    let (faults, count, r0) = unsafe { ((*group).faults, (*group).thread_count, (*group).r0) };
    // SAFETY: the sink belongs to the worker that runs this group, and only this call uses it now.
    let Some(sink) = (unsafe { faults.cast::<FaultSink>().as_mut() }) else {
        return 1;
    };
    // A call of code that never waits runs several groups.
    let id = [r0[1], r0[6], r0[7]];
    if id != sink.meetings.group {
        if sink.end_meeting(count) {
            return 1;
        }
        sink.meetings.reset(id[0], id[1], id[2]);
    }
    sink.arrive(thread, count, Arrival { site, lanes }, waits != 0)
        .into()
}
