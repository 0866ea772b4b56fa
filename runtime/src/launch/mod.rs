//! Launching a kernel: all its work-groups, on one thread or several.
//!
//! [`PreparedLaunch`] holds what depends on the kernel and the launch shape only: sizes of groups,
//! tables of local ids, memory for the groups that run at one time. [`PreparedLaunch::run`] adds
//! arguments and runs. Launches of one kernel and shape share that memory (`spare`). Without a pool, a run neither allocates
//! nor waits for another thread, unless several of them run at the same time: then each needs memory of its own. With a pool, a
//! run begins on the calling thread as well where that is known to take less time (`pace`).
//! The same prepared launch may run on several threads at once.
//!
//! A group runs on one worker from start to end. At a barrier its threads are suspended in their
//! frames and the entry is called again, until all are finished; threads that exchange values (`fused`) do so
//! between two calls. Local memory, scratch and
//! register storage read zero when a group starts, so results do not depend on which worker ran it.

mod float_mode;
mod fused;
mod invariant;
mod pace;
pub(crate) mod schedule;
pub(crate) mod shape;
pub(crate) mod spare;
mod worker;

pub use invariant::Invariant;
pub use schedule::Schedule;
pub use shape::{LaunchShape, LocalIdLayout};

use crate::abi::SURFACES;
use crate::error::LaunchError;
use crate::fault::{Fault, FaultKind, SiteCounts};
use crate::interrupt::{Deadline, Interrupter, RUN, STOP_DEADLINE, STOP_FAULT, StopWord};
use crate::kernel::{Kernel, KernelCode};
use crate::limits::{MAX_FAULT_RECORDS, MAX_SITE_RECORDS, MAX_SLM_BYTES, MAX_WORKER_BYTES};
use crate::memory::{Buffer, DeviceMemory, MemoryError};
use crate::payload::Payload;
use crate::pool::WorkerPool;
use crate::race::Races;
use crate::surface::SurfaceTable;
use pace::{Begin, Did, Part};
use shape::{Groups, KINDS};
use spare::Shared;
use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;
use worker::{Job, Turns, Worker};

/// There is no room for a worker.
fn no_room() -> LaunchError {
    LaunchError::GroupMemory {
        what: "memory",
        wanted: u64::MAX,
        limit: MAX_WORKER_BYTES,
    }
}

/// With this many groups for each worker, one group is a small part of a launch.
const FINE: u64 = 16;

/// What a launch is given.
#[derive(Clone, Debug, Default)]
pub struct Arguments {
    /// Cross-thread payload.
    pub payload: Payload,
    /// Surface table.
    pub surfaces: SurfaceTable,
    /// Memory of flat addresses; without it every flat access is out of bounds.
    pub memory: Option<DeviceMemory>,
    /// Bytes of shared local memory beyond what the kernel itself declares.
    pub extra_slm: u32,
    /// Addresses of memory of which each part belongs to one thread, so that there is no race in it.
    pub private: Range<u64>,
}

/// What a fault that compiled code reports does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FaultAction {
    /// It is counted and recorded, and the kernel goes on.
    #[default]
    Record,
    /// It is counted and recorded, and the launch ends.
    Stop,
}

/// How to run.
#[derive(Clone, Copy, Debug)]
pub struct LaunchOptions<'a> {
    /// Workers; without a pool everything runs on the calling thread.
    pub pool: Option<&'a WorkerPool>,
    /// Can stop the launch from another thread.
    pub interrupter: Option<&'a Interrupter>,
    /// When the launch is stopped.
    pub deadline: Option<Instant>,
    /// What faults do.
    pub on_fault: FaultAction,
    /// Scratch memory reads zero at thread start; else it reads anything this kernel left there.
    pub zero_scratch: bool,
    /// Code with checks of races finds them. Everything runs on the calling thread then.
    pub check_races: bool,
    /// For these checks, a write of the value that is there already is an access like others.
    pub race_same_value: bool,
    /// Which buffers such code does not write, and those that its writes have to stay in.
    pub invariant: Option<&'a Invariant>,
    /// Code with checks of initialisation keeps account of what it writes, and stops where something that is not initialised may be used.
    pub check_init: bool,
    /// Another order of groups and threads than the usual one. Everything runs on the calling thread then, so that there is one order.
    /// Machine code is called for one thread at a time then.
    pub schedule: Option<Schedule>,
}

impl Default for LaunchOptions<'_> {
    fn default() -> Self {
        LaunchOptions {
            pool: None,
            interrupter: None,
            deadline: None,
            on_fault: FaultAction::Record,
            zero_scratch: true,
            check_races: false,
            race_same_value: false,
            invariant: None,
            check_init: false,
            schedule: None,
        }
    }
}

/// How a launch ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchStatus {
    /// All groups ran to their end.
    Completed,
    /// A fault stopped it. The engine also says so when an assertion of the kernel failed.
    Faulted,
    /// An [`Interrupter`] stopped it.
    Interrupted,
    /// It was stopped at its deadline.
    DeadlineExceeded,
}

/// What a launch did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchReport {
    /// How it ended.
    pub status: LaunchStatus,
    /// Groups that ran to their end.
    pub groups: u64,
    /// Hardware threads of those groups.
    pub threads: u64,
    /// First faults, at most [`MAX_FAULT_RECORDS`], ordered by group, thread and lane. With
    /// several workers it is not fixed which are kept.
    pub faults: Vec<Fault>,
    /// All faults, one for each lane.
    pub fault_count: u64,
    /// The same for each memory instruction and kind; of launches on checked memory, else of barriers and races only.
    pub fault_sites: BTreeMap<(u32, FaultKind), u64>,
    /// Under [`LaunchOptions::check_init`], the launch may use what is not initialised. It was stopped, and all else that it did counts for nothing.
    pub suspect: bool,
}

impl LaunchReport {
    /// Of a launch of which nothing is known yet.
    fn empty() -> LaunchReport {
        LaunchReport {
            status: LaunchStatus::Completed,
            groups: 0,
            threads: 0,
            faults: Vec::new(),
            fault_count: 0,
            fault_sites: SiteCounts::new(),
            suspect: false,
        }
    }
}

impl Arguments {
    /// Whether all surfaces lie in memory that keeps account of what is not initialised.
    pub fn are_tracked(&self) -> bool {
        let memory = self.memory.as_ref();
        memory.is_some_and(|memory| {
            let mut bound = (0..SURFACES as u32).filter_map(|index| self.surfaces.get(index));
            memory.is_tracked() && bound.all(|(at, len)| memory.has_marks(at, len))
        })
    }
}

/// What functions find in memory of the groups they run in ([`crate::linked::SlotSource::ImplicitArgs`]), which are all of one size.
#[derive(Debug)]
pub struct LocalIdTable {
    /// Work-items of a group.
    pub local: [u32; 3],
    /// Local ids of all threads of a group.
    pub ids: Buffer,
}

/// A kernel with a launch shape, ready to run.
#[derive(Debug)]
pub struct PreparedLaunch {
    kernel: Kernel,
    /// With other launches of this kernel and shape.
    shared: Arc<Shared>,
}

/// What one run needs; kept for the next one.
#[derive(Debug, Default)]
struct RunState {
    stop: StopWord,
    workers: Vec<Worker>,
}

impl Drop for PreparedLaunch {
    fn drop(&mut self) {
        self.kernel.spare().keep(&self.shared);
    }
}

impl PreparedLaunch {
    /// Checks the shape and builds everything that does not depend on arguments, memory for the
    /// first worker included; what the last launch of this shape has left need not be built.
    ///
    /// # Errors
    /// [`LaunchError`] for shapes that the kernel or the limits forbid.
    pub fn new(kernel: &Kernel, shape: LaunchShape) -> Result<PreparedLaunch, LaunchError> {
        let meta = kernel.meta();
        let shared = match kernel.spare().take(&shape) {
            Some(shared) => shared,
            None => Arc::new(Shared::new(Groups::new(shape, meta)?)),
        };
        kernel.spare().made(&shared);
        let groups = &shared.groups;
        let wanted = (meta.frame_stride() + meta.scratch_stride()) * u64::from(groups.threads);
        if wanted > MAX_WORKER_BYTES {
            return Err(LaunchError::GroupMemory {
                what: "frames and scratch",
                wanted,
                limit: MAX_WORKER_BYTES,
            });
        }
        let launch = PreparedLaunch {
            kernel: kernel.clone(),
            shared,
        };
        if launch.groups() != 0 {
            let mut state = launch.shared.check_out().unwrap_or_default();
            launch.grow(&mut state.workers, 1, meta.slm_bytes)?;
            launch.shared.put_back(state);
        }
        Ok(launch)
    }

    /// The kernel.
    pub fn kernel(&self) -> &Kernel {
        &self.kernel
    }

    /// The shape.
    pub fn shape(&self) -> LaunchShape {
        self.shared.groups.shape
    }

    /// Work-groups of a run.
    pub fn groups(&self) -> u64 {
        self.shared.groups.total
    }

    /// Hardware threads that exist at one time when running on this pool: `%sr0` (compacted) is
    /// below it. Kernels with stack calls need private memory for all of them.
    pub fn hw_threads(&self, pool: Option<&WorkerPool>) -> u64 {
        self.workers(pool) as u64 * u64::from(self.shared.groups.threads)
    }

    /// Writes the local ids of a group to memory; `None` when there are no groups.
    ///
    /// # Errors
    /// [`LaunchError::Memory`] when there is not enough, [`LaunchError::MixedGroups`] when groups differ in size.
    pub fn local_id_table(
        &self,
        memory: &DeviceMemory,
    ) -> Result<Option<LocalIdTable>, LaunchError> {
        let mut kinds = self.shared.groups.kinds.iter().flatten();
        let table = kinds.next().map(|kind| {
            Ok::<_, MemoryError>(LocalIdTable {
                local: kind.local,
                ids: memory.alloc_from(&kind.id_rows())?,
            })
        });
        if kinds.next().is_some() {
            let kernel = self.kernel.meta().name.clone();
            return Err(LaunchError::MixedGroups { kernel });
        }
        Ok(table.transpose()?)
    }

    /// Runs all groups.
    ///
    /// # Errors
    /// [`LaunchError`] for arguments that do not fit the kernel; nothing ran then. Faults and
    /// interruption are no errors but part of the report.
    pub fn run(
        &self,
        arguments: &Arguments,
        options: &LaunchOptions<'_>,
    ) -> Result<LaunchReport, LaunchError> {
        let slm = self.check(arguments)?;
        if self.groups() == 0 {
            return Ok(LaunchReport::empty());
        }
        if options.check_init && !arguments.are_tracked() {
            return Ok(LaunchReport {
                suspect: true,
                ..LaunchReport::empty()
            });
        }
        let partial = self.partial_payloads(&arguments.payload)?;
        let most = match options.check_races || options.schedule.is_some() {
            true => 1,
            false => self.workers(options.pool),
        };
        self.check_numbers(most)?;
        let mut races = self.races(arguments, options)?;
        let begin = match most {
            1 => Begin::Shared,
            _ => self.shared.begin(),
        };
        let mut count = match begin {
            Begin::Alone(_) => 1,
            Begin::Shared => most,
        };
        let mut state = self.shared.check_out().unwrap_or_default();
        self.ready(&mut state.workers, count, slm, options)?;
        state.stop.store(RUN, Ordering::Relaxed);
        let watched = options.interrupter.map(|i| i.watch(&state.stop));
        let deadline = options.deadline.map(|at| Deadline::watch(at, &state.stop));
        let deadline = deadline.transpose().map_err(MemoryError::System)?;
        let RunState { stop, workers } = &mut state;
        let job = Job::new(self, arguments, &partial, options, (stop, most as u64));
        workers[..count].iter_mut().for_each(|w| w.reset(&job));
        if let Some(races) = &mut races {
            races.start_launch(job.groups, arguments.private.clone());
            races.same_value = options.race_same_value;
        }
        match (options.pool, &mut workers[..]) {
            (Some(pool), _) if most > 1 => {
                count = self.share(&job, workers, (slm, options), (begin, most), pool);
            }
            (_, [first, ..]) => {
                first.races = races.take();
                first.run(&job, slm, Turns::All);
                if let (Some(races), Some(memory)) = (first.races.take(), &arguments.memory) {
                    memory.give_races(*races);
                }
            }
            (_, []) => {}
        }
        drop((watched, deadline));
        let report = self.report(&mut state, count);
        self.shared.put_back(state);
        report
    }

    /// Runs all groups on this many workers, or begins on the first one alone and goes on with the others if that takes long; returns how many
    /// worked.
    fn share(
        &self,
        job: &Job<'_>,
        workers: &mut Vec<Worker>,
        (slm, options): (u32, &LaunchOptions<'_>),
        (begin, most): (Begin, usize),
        pool: &WorkerPool,
    ) -> usize {
        let start = Instant::now();
        let (mut count, mut alone) = (most, None);
        if let (Begin::Alone(limit), [first, ..]) = (begin, &mut workers[..]) {
            let turns = limit.map_or(Turns::All, |limit| Turns::Until(start + limit));
            count = 1;
            first.run(job, slm, turns);
            alone = Some(Part {
                groups: job.taken(),
                time: start.elapsed(),
            });
            // Without memory for the others, the first one does what is left.
            if job.has_more() && self.ready(workers, most, slm, options).is_ok() {
                workers[1..most].iter_mut().for_each(|w| w.reset(job));
                count = most;
            }
        }
        if job.has_more() {
            pool.share(&mut workers[..count], |worker| {
                worker.run(job, slm, Turns::Shared);
            });
        }
        let time = start.elapsed();
        let did = match alone {
            None => Did::Share(time),
            Some(_) if count == 1 => Did::Stay(time),
            Some(alone) => Did::Spread([
                alone,
                Part {
                    groups: self.groups() - alone.groups,
                    time: time - alone.time,
                },
            ]),
        };
        if job.stop.load(Ordering::Relaxed) == RUN {
            self.shared.end(did, self.groups() >= FINE * most as u64);
        }
        count
    }

    /// What a run of machine code needs that looks for races.
    fn races(
        &self,
        arguments: &Arguments,
        options: &LaunchOptions<'_>,
    ) -> Result<Option<Box<Races>>, LaunchError> {
        let is_program = matches!(self.kernel.code(), KernelCode::Program(_));
        if is_program || !options.check_races {
            return Ok(None);
        }
        Ok(Some(match &arguments.memory {
            Some(memory) => memory.take_races()?,
            None => Box::new(Races::new(None).map_err(MemoryError::System)?),
        }))
    }

    /// Workers of a run on this pool.
    fn workers(&self, pool: Option<&WorkerPool>) -> usize {
        let workers = pool.map_or(1, WorkerPool::workers);
        workers.min(usize::try_from(self.groups()).unwrap_or(usize::MAX))
    }

    /// Checks arguments; returns the bytes of shared local memory.
    fn check(&self, arguments: &Arguments) -> Result<u32, LaunchError> {
        let meta = self.kernel.meta();
        let (given, wanted) = (arguments.payload.len(), meta.payload_bytes as usize);
        if given < wanted {
            return Err(LaunchError::Payload { given, wanted });
        }
        let slm = u64::from(meta.slm_bytes) + u64::from(arguments.extra_slm);
        match u32::try_from(slm) {
            Ok(slm) if slm <= MAX_SLM_BYTES => Ok(slm),
            _ => Err(LaunchError::GroupMemory {
                what: "shared local memory",
                wanted: slm,
                limit: MAX_SLM_BYTES.into(),
            }),
        }
    }

    /// `%sr0` must tell all hardware threads apart.
    fn check_numbers(&self, workers: usize) -> Result<(), LaunchError> {
        let wanted = workers as u64 * u64::from(self.shared.groups.threads);
        let limit = self.kernel.meta().thread_numbers();
        if wanted > limit {
            return Err(LaunchError::TooManyThreads { wanted, limit });
        }
        Ok(())
    }

    /// Payloads of partial groups, where they differ.
    fn partial_payloads(&self, full: &Payload) -> Result<[Option<Payload>; KINDS], LaunchError> {
        let mut payloads = [const { None }; KINDS];
        if full.varies() {
            for (payload, shape) in payloads.iter_mut().zip(&self.shared.groups.kinds).skip(1) {
                if let Some(shape) = shape {
                    *payload = Some(full.for_group(shape.local)?);
                }
            }
        }
        Ok(payloads)
    }

    /// Makes sure of `count` workers with what a run with these options needs.
    fn ready(
        &self,
        workers: &mut Vec<Worker>,
        count: usize,
        slm: u32,
        options: &LaunchOptions<'_>,
    ) -> Result<(), LaunchError> {
        self.grow(workers, count, slm)?;
        let tracked = workers
            .iter_mut()
            .take(count)
            .filter(|_| options.check_init);
        for worker in tracked {
            worker.reserve_marks(slm).ok_or_else(no_room)?;
        }
        Ok(())
    }

    /// Makes sure of `count` workers with `slm` bytes of shared local memory each.
    fn grow(&self, workers: &mut Vec<Worker>, count: usize, slm: u32) -> Result<(), LaunchError> {
        for worker in workers.iter_mut() {
            worker.reserve_slm(slm).ok_or_else(no_room)?;
        }
        while workers.len() < count {
            let index = workers.len() as u32;
            let worker = Worker::new(self.kernel.meta(), self.shared.groups.threads, index, slm);
            workers.push(worker.ok_or_else(no_room)?);
        }
        Ok(())
    }

    fn report(&self, state: &mut RunState, count: usize) -> Result<LaunchReport, LaunchError> {
        let mut report = LaunchReport::empty();
        let workers = &mut state.workers[..count];
        if workers.iter().any(|worker| worker.faults.suspect) {
            workers
                .iter_mut()
                .for_each(|worker| worker.tally.error = None);
            report.suspect = true;
            return Ok(report);
        }
        for worker in &mut state.workers[..count] {
            if let Some(error) = worker.tally.error.take() {
                let kernel = self.kernel.meta().name.clone();
                return Err(LaunchError::Program { kernel, error });
            }
            if let Some(line) = worker.tally.alone {
                let kernel = self.kernel.meta().name.clone();
                return Err(LaunchError::Alone { kernel, line });
            }
            if worker.tally.deadlock {
                let kernel = self.kernel.meta().name.clone();
                return Err(LaunchError::Deadlock { kernel });
            }
            if let Some(status) = worker.tally.bad_status {
                let kernel = self.kernel.meta().name.clone();
                return Err(LaunchError::Status { kernel, status });
            }
            report.groups += worker.tally.groups;
            report.threads += worker.tally.threads;
            report.fault_count += worker.faults.count;
            report.faults.append(&mut worker.faults.records);
            for (key, count) in std::mem::take(&mut worker.faults.sites) {
                *report.fault_sites.entry(key).or_default() += count;
            }
        }
        report.faults.sort_unstable();
        if report.fault_sites.is_empty() {
            report.faults.truncate(MAX_FAULT_RECORDS);
        } else {
            let mut kept = SiteCounts::new();
            report.faults.retain(|fault| {
                let kept = kept.entry((fault.site, fault.kind)).or_default();
                *kept += 1;
                *kept <= MAX_SITE_RECORDS as u64
            });
        }
        // A request that came after the last group changed nothing.
        if report.groups != self.groups() {
            report.status = match state.stop.load(Ordering::Relaxed) {
                STOP_FAULT => LaunchStatus::Faulted,
                STOP_DEADLINE => LaunchStatus::DeadlineExceeded,
                _ => LaunchStatus::Interrupted,
            };
        }
        Ok(report)
    }
}
