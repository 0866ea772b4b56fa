//! Checks of barriers, `--check barrier`: the definition of what an error is (docs/checking.md).
//!
//! It is about the barrier of all threads of a group: `barrier`, and both halves of a split one. Three things are errors:
//!
//! * A thread comes to the barrier with lanes that are not enabled, of those that it was started with. They are the error: some
//!   work-items are in other control flow, or have returned.
//! * A thread has ended when all others meet. All its lanes are the error, at the barrier of the first thread that is there.
//! * A thread meets others and has come by another instruction than the first of them. Its lanes are the error, there.
//!
//! At a named barrier, a signal for other numbers of threads than the first one of its round is an error, and the last signal of a barrier that is
//! not complete when the group ends. Lane 0 of the thread stands for it.
//!
//! A thread comes to a meeting once. If it has signalled, its wait is no second time, but the lanes are looked at again.

use visa_runtime::{FaultKind, GroupView};

use super::Program;
use super::access::site_of_barrier;
use super::barrier::{Miscount, all_joined};
use super::error::Halt;
use super::machine::Machine;
use super::state::Thread;

/// Two numbers in the halves of a word.
fn words(low: u32, high: u32) -> u64 {
    u64::from(low) | u64::from(high) << 32
}

impl Machine<'_, '_, '_> {
    /// Checks that all lanes of the thread come to a barrier.
    pub(super) fn check_barrier(&mut self) -> Result<(), Halt> {
        let (came, all) = (self.t.control.active, self.group.dispatch_mask(self.number));
        let missing = all & !came;
        if !self.program.options.check_barriers || missing == 0 {
            return Ok(());
        }
        let place = (self.number, site_of_barrier(self.at));
        let (kind, said) = (FaultKind::Barrier, words(came, all));
        match self.group.fault_of_barriers(kind, place, missing, said) {
            true => Err(Halt::Fault),
            false => Ok(()),
        }
    }
}

impl Program {
    /// Records what is wrong with signals at named barriers; true when the launch has to stop, which it does at the end of the group.
    pub(super) fn check_counts(
        &self,
        group: &mut GroupView<'_>,
        wrong: impl IntoIterator<Item = Miscount>,
    ) -> bool {
        let mut stop = false;
        for m in wrong.into_iter().filter(|_| self.options.check_barriers) {
            let place = (m.thread, site_of_barrier(m.at));
            stop |= group.fault_of_barriers(m.kind, place, 1, m.said);
        }
        stop
    }

    /// Checks a meeting of all threads that are not at their end, if it is one; true when the launch has to stop.
    pub(super) fn check_meeting(&self, group: &mut GroupView<'_>, threads: &[Thread]) -> bool {
        let mut stop = false;
        if !self.options.check_barriers || !all_joined(threads) {
            return stop;
        }
        let numbered = || (0..).zip(threads.iter().map(|t| t.barriers.arrival()));
        let Some((host, first)) = numbered().find_map(|(n, a)| Some((n, a?))) else {
            return stop;
        };
        let met = site_of_barrier(first.at);
        for (number, arrival) in numbered() {
            stop |= match arrival {
                None => {
                    let lanes = group.dispatch_mask(number);
                    let said = words(0, host);
                    group.fault_of_barriers(FaultKind::MissedBarrier, (number, met), lanes, said)
                }
                Some(a) if a.at != first.at => {
                    let place = (number, site_of_barrier(a.at));
                    let said = words(met, host);
                    group.fault_of_barriers(FaultKind::OtherBarrier, place, a.lanes, said)
                }
                Some(_) => false,
            };
        }
        stop
    }
}
