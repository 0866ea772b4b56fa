//! Barriers: the barrier of all threads, and named barriers, at which some of them meet.
//!
//! A thread that signals leaves a note. The notes are read when no thread can go on, and threads that wait for a barrier which the notes
//! complete go on. Of a barrier's number the low five bits count, of a count the low eight, of a role the low two.

use super::access::site_of_barrier;
use super::error::Halt;
use super::machine::Machine;
use super::state::{Thread, Wait};
use crate::module::*;
use visa_runtime::FaultKind;

/// The barrier of all threads of a group.
pub(super) const GROUP: u8 = 32;

/// A thread at the barriers.
#[derive(Clone, Debug, Default)]
pub(super) struct Barriers {
    /// Signals that have not been looked at.
    signals: Vec<Signal>,
    /// Barriers whose round it has joined as one that will wait.
    joined: Vec<u8>,
    /// Barriers whose round is complete, and after which it has not gone on yet.
    open: Vec<u8>,
    /// Where it joined the barrier of all threads.
    arrival: Arrival,
}

/// How a thread came to the barrier of all threads.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Arrival {
    /// The instruction.
    pub at: usize,
    /// Lanes that were enabled.
    pub lanes: u32,
}

/// One `nbarrier.signal`.
#[derive(Clone, Copy, Debug)]
struct Signal {
    id: u8,
    produces: bool,
    consumes: bool,
    producers: u64,
    consumers: u64,
    /// The instruction.
    at: usize,
}

impl Signal {
    fn counts(&self) -> [u64; 2] {
        [self.producers, self.consumers]
    }
}

/// Who came to a named barrier in this round.
#[derive(Clone, Copy, Debug, Default)]
struct Round {
    producers: u64,
    consumers: u64,
    /// The first signal, and the last with its thread.
    first: Option<Signal>,
    last: Option<(u32, Signal)>,
}

/// A signal that is wrong, or the last one at a barrier that is not complete.
#[derive(Clone, Copy, Debug)]
pub(super) struct Miscount {
    pub kind: FaultKind,
    pub thread: u32,
    pub at: usize,
    /// What [`visa_runtime::Fault::address`] says of it.
    pub said: u64,
}

/// The named barriers of a group.
#[derive(Clone, Debug, Default)]
pub(super) struct Named {
    rounds: [Round; 32],
    /// What is wrong with signals that were looked at.
    pub wrong: Vec<Miscount>,
}

impl Barriers {
    /// Comes to the barrier of all threads; again only after it went on.
    fn join_group(&mut self, arrival: Arrival) {
        if !self.joined.contains(&GROUP) && !self.open.contains(&GROUP) {
            self.joined.push(GROUP);
            self.arrival = arrival;
        }
    }

    /// How it joined the round of the barrier of all threads, if it did.
    pub(super) fn arrival(&self) -> Option<Arrival> {
        self.joined.contains(&GROUP).then_some(self.arrival)
    }

    fn open(&mut self, id: u8) {
        if self.joined.contains(&id) {
            self.joined.retain(|&other| other != id);
            self.open.push(id);
        }
    }
}

/// True when all threads of a group that are not at their end have come to the barrier of all threads.
pub(super) fn all_joined(threads: &[Thread]) -> bool {
    let joined = |t: &Thread| t.done || t.barriers.arrival().is_some();
    threads.iter().all(joined)
}

impl Named {
    /// Lets threads go on, once no thread can by itself; true when there are any.
    pub(super) fn meet(&mut self, threads: &mut [Thread]) -> bool {
        for n in 0..threads.len() {
            let signals = threads
                .get_mut(n)
                .map(|t| std::mem::take(&mut t.barriers.signals));
            for signal in signals.unwrap_or_default() {
                self.signal(threads, n, signal);
            }
        }
        if all_joined(threads) {
            threads.iter_mut().for_each(|t| t.barriers.open(GROUP));
        }
        let mut any = false;
        for t in threads {
            if let Wait::Barrier(id) = t.wait
                && t.barriers.open.contains(&id)
            {
                t.barriers.open.retain(|&other| other != id);
                t.wait = Wait::Nothing;
                any = true;
            }
        }
        any
    }

    fn signal(&mut self, threads: &mut [Thread], by: usize, s: Signal) {
        let Some(round) = self.rounds.get_mut(usize::from(s.id)) else {
            return;
        };
        let thread = by as u32;
        let first = *round.first.get_or_insert(s);
        round.last = Some((thread, s));
        if first.counts() != s.counts() {
            let [p, c, q, d] = [s.producers, s.consumers, first.producers, first.consumers];
            let counts = p | c << 8 | q << 16 | d << 24;
            self.wrong.push(Miscount {
                kind: FaultKind::BarrierCounts,
                thread,
                at: s.at,
                said: u64::from(site_of_barrier(first.at)) | counts << 32,
            });
        }
        round.producers = round.producers.saturating_add(s.produces.into());
        round.consumers = round.consumers.saturating_add(s.consumes.into());
        let complete = round.producers >= s.producers && round.consumers >= s.consumers;
        if let Some(t) = threads.get_mut(by)
            && s.consumes
            && !t.barriers.joined.contains(&s.id)
        {
            t.barriers.joined.push(s.id);
        }
        if complete {
            *round = Round::default();
            threads.iter_mut().for_each(|t| t.barriers.open(s.id));
        }
    }
}

impl Named {
    /// Barriers that are not complete, at the end of a group.
    pub(super) fn left(&self) -> impl Iterator<Item = Miscount> {
        let left = |round: &Round| {
            let (thread, last) = round.last?;
            let words = |[producers, consumers]: [u64; 2]| producers | consumers << 16;
            let came = words([round.producers, round.consumers]);
            Some(Miscount {
                kind: FaultKind::BarrierLeft,
                thread,
                at: last.at,
                said: came | words(last.counts()) << 32,
            })
        };
        self.rounds.iter().filter_map(left)
    }
}

impl Machine<'_, '_, '_> {
    /// `barrier`, or a half of `sbarrier`: comes to the barrier of all threads, and may wait there.
    pub(super) fn barrier(&mut self, wait: bool) -> Result<(), Halt> {
        self.check_barrier()?;
        self.group.fence();
        self.t.barriers.join_group(Arrival {
            at: self.at,
            lanes: self.t.control.active,
        });
        if wait {
            self.t.wait = Wait::Barrier(GROUP);
        }
        Ok(())
    }

    /// `nbarrier`, without the waiting.
    pub(super) fn nbarrier(&mut self, id: &Src, step: &NamedBarrier) -> Result<(), Halt> {
        let id = (self.scalar(id)? & 31) as u8;
        let signal = match step {
            NamedBarrier::Wait => {
                self.t.wait = Wait::Barrier(id);
                return Ok(());
            }
            NamedBarrier::Signal { threads } => {
                let all = self.scalar(threads)? & 0xFF;
                Signal {
                    id,
                    produces: true,
                    consumes: true,
                    producers: all,
                    consumers: all,
                    at: self.at,
                }
            }
            NamedBarrier::SignalAs {
                role,
                producers,
                consumers,
            } => {
                let role = self.scalar(role)? & 3;
                Signal {
                    id,
                    produces: role != 2,
                    consumes: role != 1,
                    producers: self.scalar(producers)? & 0xFF,
                    consumers: self.scalar(consumers)? & 0xFF,
                    at: self.at,
                }
            }
        };
        self.group.fence();
        self.t.barriers.signals.push(signal);
        Ok(())
    }
}
