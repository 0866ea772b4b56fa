//! Prepared launches, and their runs.

use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::cache::{Compiled, Origin};
use super::error::Error;
use super::options::INTERPRETER;
use super::ran::Ran;
use super::reach::Reach;
use super::repeat::{Before, Repeat};
use super::report::Report;
use super::setup::{Code, Ready, Setup};
use super::upgrade::Upgrade;
use crate::backend::{Check, OobPolicy};
use visa_runtime::printf::{Output, PrintBuffer, Printing};
use visa_runtime::{
    FaultAction, Interrupter, Invariant, LaunchOptions, LaunchReport, LaunchStatus, Schedule,
    WorkerPool,
};

/// What a run did, what it printed, and what its failed assertions say.
type Attempt = (LaunchReport, Output, Option<Vec<u8>>);

/// A launch with everything ready; may be run again and again, also from several threads.
pub struct Prepared {
    pub(super) setup: Setup,
    pub(super) first: Ready,
    /// What tells when there is better code than the first, where launches are tiered and that was not there yet.
    pub(super) upgrade: Option<Arc<Upgrade>>,
    /// The better code.
    pub(super) better: OnceLock<Ready>,
    pub(super) pool: Option<Arc<WorkerPool>>,
    pub(super) interrupter: Option<Interrupter>,
    pub(super) deadline: Option<Duration>,
    pub(super) schedule: Option<Schedule>,
    /// What it may access, where that is checked.
    pub(super) reach: Option<Reach>,
    /// How the interpreter carries the launch out where compiled code cannot judge it.
    pub(super) repeat: Option<Repeat>,
}

impl Prepared {
    /// The best code that there is now.
    fn ready(&self) -> &Ready {
        let Some(upgrade) = &self.upgrade else {
            return &self.first;
        };
        if let Some(better) = self.better.get() {
            return better;
        }
        let Some(code) = upgrade.code() else {
            return &self.first;
        };
        let code = Code::Compiled {
            code: code.clone(),
            origin: Origin::Memory,
        };
        // Without room for it, the first goes on.
        if let Ok(ready) = Ready::new(code, self.setup.shape) {
            // Another thread may have been here before.
            let _ = self.better.set(ready);
        }
        self.better.get().unwrap_or(&self.first)
    }

    /// Runs.
    ///
    /// # Errors
    /// When memory for the workers cannot be had. Faults are part of the report.
    pub fn run(&self) -> Result<Report, Error> {
        let memory = self.setup.kernel.parts().engine.memory();
        let reach = self.reach.as_ref().map(|reach| reach.enter(memory));
        let _entered = reach.transpose()?;
        // A launch that waits for others does not run yet.
        let start = Instant::now();
        if let Some(memory) = self.setup.arguments.memory.as_ref() {
            memory.count_launch();
        }
        if let Some(private) = self.setup.own.private() {
            private.mark_uninitialised();
        }
        let ready = self.ready();
        let Some(repeat) = &self.repeat else {
            let all = self.attempt(ready, None, start)?;
            return Ok(self.report(ready, &ready.code, all, start));
        };
        let _alone = memory.alone();
        let (before, invariant) = repeat.before(&self.setup, ready.launch.kernel().meta());
        if !matches!(before, Before::Unknown) {
            let all = self.attempt(ready, invariant.as_ref(), start)?;
            if !all.0.suspect {
                return Ok(self.report(ready, &ready.code, all, start));
            }
            before.restore();
            if invariant.is_some() {
                self.setup
                    .kernel
                    .0
                    .unconfined
                    .store(true, Ordering::Relaxed);
            }
        }
        let interpreted = repeat.interpreted(&self.setup)?;
        let all = self.attempt(interpreted, None, start)?;
        Ok(self.report(ready, &interpreted.code, all, start))
    }

    /// Runs some code.
    fn attempt(
        &self,
        ready: &Ready,
        invariant: Option<&Invariant>,
        start: Instant,
    ) -> Result<Attempt, Error> {
        let engine = &self.setup.kernel.parts().engine.0;
        let init = self.repeat.as_ref();
        let init = init.is_some_and(Repeat::looks_for_uninitialised);
        let options = LaunchOptions {
            pool: self.pool.as_deref(),
            interrupter: self.interrupter.as_ref(),
            deadline: self.deadline.map(|d| start + d),
            on_fault: if self.setup.oob == OobPolicy::Trap {
                FaultAction::Stop
            } else {
                FaultAction::Record
            },
            check_races: engine.checks(Check::Race),
            race_same_value: engine.options.race_same_value,
            invariant,
            check_init: init && matches!(ready.code, Code::Compiled { .. }),
            schedule: self.schedule,
            ..LaunchOptions::default()
        };
        let printing = self
            .setup
            .own
            .printing()
            .map(PrintBuffer::start)
            .transpose()?;
        let asserting = self
            .setup
            .own
            .asserting()
            .map(PrintBuffer::start)
            .transpose()?;
        let r = ready.launch.run(&self.setup.arguments, &options);
        // Also after an error, so that the next launch finds the buffer empty.
        let printed = match printing {
            Some(printing) => printing.finish()?,
            None => Output::default(),
        };
        let failed = asserting.map(Printing::failed).transpose()?.flatten();
        Ok((r?, printed, failed))
    }

    /// What a run of some code did: that which was ready, or the interpreter in its place.
    fn report(
        &self,
        ready: &Ready,
        code: &Code,
        (r, printed, failed): Attempt,
        start: Instant,
    ) -> Report {
        let ran = Ran {
            launch: &self.setup,
            code,
        };
        Report {
            status: match r.status {
                LaunchStatus::Completed if failed.is_some() => LaunchStatus::Faulted,
                status => status,
            },
            groups: r.groups,
            threads: r.threads,
            fault_count: r.fault_count.saturating_sub(ran.suppressed(&r)),
            faults: ran.unsuppressed(&r).collect(),
            compile: match &ready.code {
                Code::Compiled { code, .. } => code.time,
                Code::Interpreted(code) => code.time,
            },
            origin: match ready.code {
                Code::Compiled { origin, .. } => origin,
                Code::Interpreted(_) => Origin::Compiled,
            },
            run: start.elapsed(),
            backend: match &ready.code {
                Code::Compiled { code, .. } => code.object.backend,
                Code::Interpreted(_) => INTERPRETER,
            },
            note: match (&ready.code, code) {
                (Code::Compiled { .. }, Code::Interpreted(_)) => {
                    self.repeat.as_ref().map(Repeat::note)
                }
                (Code::Compiled { code, .. }, _) => self.note(code),
                (Code::Interpreted(_), _) => None,
            },
            printed: printed.text,
            print_problem: printed.problem,
            failed_assertions: failed,
        }
    }

    /// What was done other than asked for: when code was made, and when better code could not be.
    fn note(&self, code: &Compiled) -> Option<String> {
        let failed = self.upgrade.as_ref().and_then(|upgrade| {
            let why = upgrade.failure()?;
            let kept = code.object.backend;
            Some(format!("--tier: code by {kept} stays: {why}"))
        });
        let notes = code.object.note.iter().cloned().chain(failed);
        notes.reduce(|all, note| format!("{all}; {note}"))
    }

    /// The code that the next run takes; `None` when the kernel is interpreted.
    pub fn code(&self) -> Option<&Compiled> {
        match &self.ready().code {
            Code::Compiled { code, .. } => Some(code),
            Code::Interpreted(_) => None,
        }
    }
}
