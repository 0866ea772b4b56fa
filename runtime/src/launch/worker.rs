//! One worker of a launch: memory for one group at a time, and the loop that runs groups in it.

use super::float_mode::FloatMode;
use super::fused::{self, Next};
use super::schedule::{GroupSchedule, Schedule};
use super::shape::{GroupShape, KINDS};
use super::{Arguments, LaunchOptions, LaunchShape};
use crate::abi::{
    FLAT_OFFSET, GroupCtx, LaunchCtx, Pointee, SINK_BYTES, Status, THREAD_DONE, ThreadCtx,
};
use crate::bytes::{AlignedBytes, round_line};
use crate::enter::enter;
use crate::error::ProgramError;
use crate::fault::{FaultSink, SiteCounts};
use crate::group::GroupView;
use crate::helpers::arrive::Meetings;
use crate::helpers::helpers;
use crate::helpers::named_barrier::NamedBarriers;
use crate::interrupt::{RUN, STOP_ERROR, STOP_FAULT, stop};
use crate::kernel::KernelCode;
use crate::limits::{MAX_HOST_STACK_BYTES, MAX_PAYLOAD_BYTES};
use crate::memory::{DeviceMemory, checks};
use crate::meta::KernelMeta;
use crate::payload::Payload;
use crate::race::Races;
use crate::stack::Stack;
use crate::surface::nothing;
use std::ops::Range;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Instant;

/// Groups that one call runs at most, so that a launch can be stopped between them.
const MOST_GROUPS: u64 = 64;

/// Parts of what is left to do that a worker takes at a time, for each worker.
const SHARES: u64 = 8;

/// A worker that looks at the time does so after its first group and after each further step. A step has this many times the groups that ran before
/// it: 3, 12, 48, and so on.
const GROWTH: u64 = 3;

/// Which groups a worker runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turns {
    /// All of them.
    All,
    /// Those that it begins before a time.
    Until(Instant),
    /// A share of what is left, again and again. Shares get smaller: a worker that starts late and groups of unequal cost are evened out, and
    /// at the end no worker waits for long.
    Shared,
}

/// What the workers of one launch share.
pub(super) struct Job<'a> {
    pub code: &'a KernelCode,
    pub meta: &'a KernelMeta,
    pub shape: LaunchShape,
    /// Groups in each dimension.
    pub groups: [u32; 3],
    /// Whether the last group of a dimension is smaller than others.
    smaller: [bool; 3],
    pub kinds: &'a [Option<GroupShape>; KINDS],
    /// One for each kind, as payloads may differ.
    contexts: [LaunchCtx; KINDS],
    pub stop: &'a AtomicU32,
    /// Next group that no worker has taken.
    next: AtomicU64,
    total: u64,
    workers: u64,
    stop_on_fault: bool,
    zero_scratch: bool,
    check_init: bool,
    schedule: Option<Schedule>,
    /// Memory that tells its buffers apart, or what was written.
    checked: Option<&'a DeviceMemory>,
    /// Memory of single threads.
    private: Range<u64>,
    /// What [`LaunchCtx::pointees`] and [`LaunchCtx::write_pointees`] point to, if memory is checked.
    _pointees: [Vec<Pointee>; 2],
}

/// [`LaunchCtx::pointees`] of memory that is not checked.
static NOWHERE: [Pointee; MAX_PAYLOAD_BYTES / 8] =
    [Pointee { start: 0, bytes: 0 }; MAX_PAYLOAD_BYTES / 8];

/// [`LaunchCtx::confined_pointees`] of writes that may go anywhere: more than all addresses, as no access to the last one may leave it.
static ANYWHERE: [Pointee; MAX_PAYLOAD_BYTES / 8] = [Pointee {
    start: 0,
    bytes: 2 * (FLAT_OFFSET + 1),
}; MAX_PAYLOAD_BYTES / 8];

// SAFETY: the pointers in the contexts are into the arguments, which the launch borrows for its
// whole time, and into what the job owns; workers only read the contexts.
unsafe impl Sync for Job<'_> {}

impl<'a> Job<'a> {
    pub(super) fn new(
        launch: &'a super::PreparedLaunch,
        arguments: &'a Arguments,
        partial: &[Option<Payload>; KINDS],
        options: &LaunchOptions<'_>,
        (stop, workers): (&'a AtomicU32, u64),
    ) -> Job<'a> {
        let (flat_base, flat_size) = match &arguments.memory {
            Some(memory) => (memory.base(), memory.size()),
            None => (nothing() as u64, 0),
        };
        let memory = arguments.memory.as_ref();
        let shadow = memory.map_or(checks::closed(), DeviceMemory::shadow);
        let marks = memory.filter(|_| options.check_init);
        let marks = marks.map_or(0, DeviceMemory::marks);
        // Pointers are the same in all payloads of a launch.
        let payload = arguments.payload.as_slice();
        let pointees =
            [false, true].map(|writes| memory.map_or(Vec::new(), |m| m.pointees(payload, writes)));
        let all = pointees.each_ref().map(|found| match found.is_empty() {
            true => NOWHERE.as_ptr(),
            false => found.as_ptr(),
        });
        let invariant = match options.invariant {
            Some(invariant) => [&invariant.buffers, &invariant.confined].map(Vec::as_slice),
            None => [&NOWHERE[..], &ANYWHERE],
        };
        let meta = launch.kernel.meta();
        let contexts = std::array::from_fn(|kind| {
            let payload = partial[kind].as_ref().unwrap_or(&arguments.payload);
            LaunchCtx {
                surfaces: arguments.surfaces.as_ptr(),
                payload: payload.as_ptr(),
                flat_base,
                flat_size,
                interrupt: stop,
                helpers: helpers(),
                images: arguments.surfaces.images(),
                // Metadata is checked: this is inside the payload.
                args: payload.as_ptr().wrapping_add(meta.args_offset as usize),
                args_size: meta.args_bytes.into(),
                shadow,
                marks,
                pointees: all[0],
                write_shadow: memory.map_or(checks::closed(), DeviceMemory::write_shadow),
                write_pointees: all[1],
                invariant_pointees: invariant[0].as_ptr(),
                confined_pointees: invariant[1].as_ptr(),
            }
        });
        let groups = &launch.shared.groups;
        let LaunchShape { global, local, .. } = groups.shape;
        Job {
            code: launch.kernel.code(),
            meta,
            shape: groups.shape,
            groups: groups.shape.groups(),
            smaller: std::array::from_fn(|d| !global[d].is_multiple_of(local[d])),
            kinds: &groups.kinds,
            contexts,
            stop,
            next: AtomicU64::new(0),
            total: groups.total,
            workers,
            stop_on_fault: options.on_fault == super::FaultAction::Stop,
            zero_scratch: options.zero_scratch,
            check_init: options.check_init,
            schedule: options.schedule,
            checked: memory.filter(|memory| memory.is_checked() || memory.is_tracked()),
            private: arguments.private.clone(),
            _pointees: pointees,
        }
    }

    /// Takes the next groups that no worker has.
    fn take(&self, turns: Turns) -> Range<u64> {
        let end = |start: u64| {
            let left = self.total - start;
            let wanted = match turns {
                Turns::All => left,
                Turns::Until(_) => start.saturating_mul(GROWTH),
                Turns::Shared => left / (self.workers * SHARES),
            };
            start + wanted.clamp(1, left)
        };
        let next = |start| (start < self.total).then(|| end(start));
        let relaxed = Ordering::Relaxed;
        let taken = self.next.fetch_update(relaxed, relaxed, next);
        taken.map_or(0..0, |start| start..end(start))
    }

    /// Whether there are groups that no worker has, in a launch that goes on.
    pub(super) fn has_more(&self) -> bool {
        let is_running = self.stop.load(Ordering::Relaxed) == RUN;
        is_running && self.next.load(Ordering::Relaxed) < self.total
    }

    /// How many groups workers have taken.
    pub(super) fn taken(&self) -> u64 {
        self.next.load(Ordering::Relaxed).min(self.total)
    }

    /// Number of the group that has a turn.
    fn group_at(&self, turn: u64) -> u64 {
        match self.schedule {
            Some(schedule) => schedule.group(turn, self.total),
            None => turn,
        }
    }

    /// Id of the group with a linear number, x fastest.
    fn group_id(&self, linear: u64) -> [u32; 3] {
        let (width, height) = (u64::from(self.groups[0]), u64::from(self.groups[1]));
        let row = linear / width;
        [
            (linear % width) as u32,
            (row % height) as u32,
            (row / height) as u32,
        ]
    }

    /// Number of the group with an id.
    fn linear(&self, id: [u32; 3]) -> u64 {
        let [width, height, _] = self.groups;
        let row = u64::from(id[2]) * u64::from(height) + u64::from(id[1]);
        row * u64::from(width) + u64::from(id[0])
    }

    /// Whether one call may run several groups: they leave nothing that has to be cleared, and have no order of their own.
    fn runs_following(&self, slm_size: u32) -> bool {
        let meta = self.meta;
        let clears = slm_size != 0 || meta.regs_bytes != 0 || meta.scratch_bytes != 0;
        meta.runs_following && meta.states == 0 && !clears && self.schedule.is_none()
    }

    /// How many groups after `id` in its row one call may run as well, out of `left` with it, and how many whole rows after that:
    /// groups that differ only in their number.
    fn following(&self, id: [u32; 3], left: u64) -> (u32, u32) {
        let alike = |d: usize| {
            let after = self.groups[d] - 1 - id[d];
            after - u32::from(after != 0 && self.smaller[d])
        };
        let all_alike = |d: usize| self.groups[d] == 1 || !self.smaller[d];
        let more = left.min(MOST_GROUPS) as u32 - 1;
        let following = alike(0).min(more);
        if following == more || !all_alike(0) {
            return (following, 0);
        }
        let mut rows = u64::from(alike(1));
        if all_alike(1) {
            rows += u64::from(self.groups[1]) * u64::from(alike(2));
        }
        let most = (more - following) / self.groups[0];
        (following, rows.min(most.into()) as u32)
    }

    /// Kind of a group: bit `d` set where it is the last and smaller one.
    fn kind(&self, id: [u32; 3]) -> usize {
        let smaller = |d: usize| usize::from(self.smaller[d] && id[d] + 1 == self.groups[d]) << d;
        smaller(0) | smaller(1) | smaller(2)
    }
}

/// What a worker did.
#[derive(Clone, Debug, Default)]
pub(super) struct Tally {
    /// Groups that ran to their end.
    pub groups: u64,
    /// Their hardware threads.
    pub threads: u64,
    /// Line where a thread waited for the one that it is fused with, which did not come there.
    pub alone: Option<u32>,
    /// A status that is none, returned by the code.
    pub bad_status: Option<u32>,
    /// Threads did not wait.
    pub deadlock: bool,
    /// Why a program gave up.
    pub error: Option<ProgramError>,
}

/// Memory for one group at a time; reused by all groups and launches that a worker runs.
#[derive(Debug)]
pub(super) struct Worker {
    threads: Box<[ThreadCtx]>,
    /// Owns what the frame pointers in `threads` point at.
    frames: AlignedBytes,
    scratch: AlignedBytes,
    slm: AlignedBytes,
    /// Marks of local memory and after them of scratch, of a launch that keeps account of what is initialised.
    marks: AlignedBytes,
    sink: AlignedBytes,
    barriers: NamedBarriers,
    /// Where code with a large frame runs.
    stack: Option<Stack>,
    /// Kind of group that `threads` is laid out for.
    kind: Option<usize>,
    /// Order of the threads of the group that runs; `None` for the usual one.
    order: Option<GroupSchedule>,
    /// How often its threads have gone on together.
    round: u32,
    pub faults: FaultSink,
    pub tally: Tally,
    /// Of a launch of machine code that looks for races.
    pub races: Option<Box<Races>>,
}

// SAFETY: the pointers in `threads` and `faults` are into the worker's own memory or into the
// tables of the launch that the worker is of, which are kept as long; one thread uses a worker at a time.
unsafe impl Send for Worker {}

impl Worker {
    /// Memory for groups of up to `threads` hardware threads. `None` when there is no such size, or no room for a stack.
    pub(super) fn new(meta: &KernelMeta, threads: u32, index: u32, slm: u32) -> Option<Worker> {
        let large = meta.stack_bytes > MAX_HOST_STACK_BYTES;
        let stack = large.then(|| Stack::new(meta.stack_bytes)).transpose();
        let frames = AlignedBytes::zeroed(meta.frame_stride() * u64::from(threads))?;
        let scratch = AlignedBytes::zeroed(meta.scratch_stride() * u64::from(threads))?;
        let first_thread = index.checked_mul(threads)?;
        let contexts = (0..threads).map(|thread| {
            let at = |block: &AlignedBytes, stride: u64| {
                block
                    .as_ptr()
                    .wrapping_add(thread as usize * stride as usize)
            };
            let number = first_thread.wrapping_add(thread);
            ThreadCtx {
                local_ids: null(),
                frame: at(&frames, meta.frame_stride()),
                scratch: at(&scratch, meta.scratch_stride()),
                scratch_size: meta.scratch_bytes.into(),
                dispatch_mask: 0,
                state: THREAD_DONE,
                r0_2: thread & 0xFF,
                r0_5: number & 0x3FF,
                sr0: meta.sr0(number),
                hw_id: number,
            }
        });
        Some(Worker {
            threads: contexts.collect(),
            frames,
            scratch,
            slm: AlignedBytes::zeroed(round_line(slm.into()))?,
            marks: AlignedBytes::zeroed(0)?,
            sink: AlignedBytes::zeroed(SINK_BYTES as u64)?,
            barriers: NamedBarriers::new(threads),
            stack: stack.ok()?,
            kind: None,
            order: None,
            round: 0,
            faults: FaultSink {
                records: Vec::new(),
                count: 0,
                sites: SiteCounts::new(),
                memory: None,
                stop: false,
                shape: null(),
                offset: [0; 3],
                enqueued: [1; 3],
                meetings: Meetings::new(threads),
                private: 0..0,
                kept: None,
                suspect: false,
            },
            tally: Tally::default(),
            races: None,
        })
    }

    /// Makes room for `slm` bytes of shared local memory. `None` when there is no such size.
    pub(super) fn reserve_slm(&mut self, slm: u32) -> Option<()> {
        if self.slm.len() < slm as usize {
            self.slm = AlignedBytes::zeroed(round_line(slm.into()))?;
        }
        Some(())
    }

    /// Makes room for marks of `slm` bytes of local memory, and of scratch. `None` when there is no such size.
    pub(super) fn reserve_marks(&mut self, slm: u32) -> Option<()> {
        let wanted = round_line(slm.into()).checked_add(self.scratch.len() as u64)?;
        if (self.marks.len() as u64) < wanted {
            self.marks = AlignedBytes::zeroed(wanted)?;
        }
        Some(())
    }

    /// Lets go of what belongs to a launch, so that the next one of this shape may have the worker. Returns the bytes that the worker
    /// takes.
    pub(super) fn let_go(&mut self) -> usize {
        self.faults.records = Vec::new();
        self.faults.sites.clear();
        self.faults.memory = None;
        self.faults.kept = None;
        self.tally = Tally::default();
        self.races = None;
        let blocks = [&self.frames, &self.scratch, &self.slm, &self.marks];
        let blocks = blocks.into_iter().map(AlignedBytes::len).sum::<usize>();
        let stack = self.stack.as_ref().map_or(0, Stack::bytes);
        size_of::<Worker>() + size_of_val(&*self.threads) + blocks + stack
    }

    /// Forgets the launch before.
    pub(super) fn reset(&mut self, job: &Job<'_>) {
        self.tally = Tally::default();
        self.faults.records.clear();
        self.faults.count = 0;
        self.faults.sites.clear();
        self.faults.memory = job.checked.cloned();
        self.faults.stop = job.stop_on_fault;
        self.faults.private = job.private.clone();
        self.faults.kept = None;
        self.faults.suspect = false;
        self.faults.offset = job.shape.offset;
        self.faults.enqueued = job.shape.local;
    }

    /// Runs groups until all have run or the launch is stopped.
    pub(super) fn run(&mut self, job: &Job<'_>, slm_size: u32, turns: Turns) {
        match self.stack.take() {
            None => self.run_here(job, slm_size, turns),
            Some(mut stack) => {
                stack.run(|| self.run_here(job, slm_size, turns));
                self.stack = Some(stack);
            }
        }
    }

    fn run_here(&mut self, job: &Job<'_>, slm_size: u32, turns: Turns) {
        let _mode = FloatMode::set_default();
        let mut group = GroupCtx {
            launch: null(),
            slm: self.slm.as_ptr(),
            slm_size: slm_size.into(),
            threads: self.threads.as_mut_ptr(),
            sink: self.sink.as_ptr(),
            faults: null_mut(),
            r0: [0; 16],
            thread_count: 0,
            following: 0,
            barriers: null_mut(),
            answer: 0,
            rows: 0,
            races: null_mut(),
            slm_marks: distance(&self.slm, self.marks.as_ptr()),
            scratch_marks: distance(&self.scratch, self.scratch_marks(slm_size)),
            height: job.groups[1],
        };
        let several = self.races.is_none() && job.runs_following(slm_size);
        loop {
            let range = job.take(turns);
            if range.is_empty() {
                return;
            }
            let mut turn = range.start;
            while turn < range.end {
                if job.stop.load(Ordering::Relaxed) != RUN {
                    return;
                }
                let number = job.group_at(turn);
                let id = job.group_id(number);
                self.round = 0;
                self.order = job.schedule.map(|schedule| GroupSchedule {
                    schedule,
                    group: number,
                });
                let (following, rows) = match several {
                    true => job.following(id, range.end - turn),
                    false => (0, 0),
                };
                (group.following, group.rows) = (following, rows);
                if !self.run_groups(job, &mut group, id) {
                    return;
                }
                turn += 1 + u64::from(following) + u64::from(rows) * u64::from(job.groups[0]);
            }
            if matches!(turns, Turns::Until(end) if Instant::now() >= end) {
                return;
            }
        }
    }

    /// Marks of scratch, in a launch with so much local memory.
    fn scratch_marks(&self, slm_size: u32) -> *mut u8 {
        let first = self.marks.as_ptr();
        first.wrapping_add(round_line(slm_size.into()) as usize)
    }

    /// Runs a group and those that follow it; false when the launch has to end.
    fn run_groups(&mut self, job: &Job<'_>, group: &mut GroupCtx, id: [u32; 3]) -> bool {
        let kind = job.kind(id);
        let Some(shape) = &job.kinds[kind] else {
            // Preparation made a shape of every kind that occurs.
            return self.fail(job, u32::MAX);
        };
        self.lay_out(kind, shape);
        self.clear(job, shape.threads, group.slm_size);
        group.launch = &raw const job.contexts[kind];
        group.thread_count = shape.threads;
        let [x, y, z] = id;
        [group.r0[1], group.r0[6], group.r0[7]] = id;
        self.faults.shape = shape;
        self.faults.meetings.reset(x, y, z);
        // Derived anew each time: the kernel's pointers must not outlive a use of what they point at.
        group.threads = self.threads.as_mut_ptr();
        group.faults = (&raw mut self.faults).cast();
        self.barriers.reset(x, y, z);
        group.barriers = (&raw mut self.barriers).cast();
        group.races = match &mut self.races {
            Some(races) => {
                races.start_group();
                (&raw mut **races).cast()
            }
            None => null_mut(),
        };
        let group: *mut GroupCtx = group;
        let mut status = self.call(job, group, 0..shape.threads);
        loop {
            match status {
                s if s == Status::Done as u32 => break,
                s if s == Status::Suspended as u32 => {
                    if job.stop.load(Ordering::Relaxed) != RUN {
                        return false;
                    }
                    // SAFETY: the group's pointer is into this worker; no code runs on the group now.
                    if unsafe { (*(*group).barriers.cast::<NamedBarriers>()).stuck() } {
                        self.tally.deadlock = true;
                        stop(job.stop, STOP_ERROR);
                        return false;
                    }
                    status = match self.resume(job, group, shape.threads) {
                        Some(status) => status,
                        None => return false,
                    };
                }
                s if s == Status::Suspect as u32 => {
                    self.faults.suspect = true;
                    stop(job.stop, STOP_FAULT);
                    return false;
                }
                s if s == Status::Fault as u32 => {
                    stop(job.stop, STOP_FAULT);
                    self.count(job, group, id, shape.threads);
                    return false;
                }
                s if s == Status::Interrupted as u32 => {
                    self.count(job, group, id, shape.threads);
                    return false;
                }
                other => return self.fail(job, other),
            }
        }
        let named = self.barriers.end(&mut self.faults);
        if self.faults.suspect || self.faults.end_meeting(shape.threads) || named {
            stop(job.stop, STOP_FAULT);
            return false;
        }
        self.tally.groups += 1;
        self.tally.threads += u64::from(shape.threads);
        self.count(job, group, id, shape.threads);
        true
    }

    /// Counts the groups from `first` up to the one that ran last.
    fn count(&mut self, job: &Job<'_>, group: *const GroupCtx, first: [u32; 3], threads: u32) {
        // SAFETY: the caller's group, which no code runs on now.
        let r0 = unsafe { (*group).r0 };
        let behind = job.linear([r0[1], r0[6], r0[7]]) - job.linear(first);
        self.tally.groups += behind;
        self.tally.threads += behind * u64::from(threads);
    }

    /// Lets threads that all wait or are finished go on, as far as they can; `None` when one waits for what does not come.
    fn resume(&mut self, job: &Job<'_>, group: *mut GroupCtx, threads: u32) -> Option<u32> {
        let Some(exchange) = &job.meta.exchange else {
            self.pass_barrier(group);
            return Some(self.call(job, group, 0..threads));
        };
        // SAFETY: the group's code has returned; its threads are laid out for this kernel.
        match unsafe { fused::meet(group, threads, job.meta, exchange) } {
            Next::All => {
                self.pass_barrier(group);
                Some(self.call(job, group, 0..threads))
            }
            Next::Pairs(pairs) => {
                for k in pairs {
                    let status = self.call(job, group, 2 * k..2 * k + 2);
                    if status != Status::Done as u32 && status != Status::Suspended as u32 {
                        return Some(status);
                    }
                }
                // SAFETY: as above.
                Some(unsafe { fused::status(group, threads) })
            }
            Next::Alone(line) => {
                self.tally.alone = Some(line);
                stop(job.stop, STOP_ERROR);
                None
            }
        }
    }

    /// For checks of races: threads go on from a barrier. Named ones count when they are complete.
    fn pass_barrier(&mut self, group: *const GroupCtx) {
        if self.barriers.used() {
            return;
        }
        // SAFETY: what the pointer is to belongs to this worker; no code runs on the group now.
        if let Some(races) = unsafe { (*group).races.cast::<Races>().as_mut() } {
            races.next_epoch();
        }
    }

    /// Runs threads of a group until each is finished or waits; a status of [`crate::abi::Status`]. A program runs all of them.
    fn call(&mut self, job: &Job<'_>, group: *mut GroupCtx, threads: Range<u32>) -> u32 {
        if let KernelCode::Program(program) = job.code {
            // SAFETY: the group is laid out for the launch, whose arguments have at least that much payload.
            let mut view = unsafe { GroupView::new(group, job.meta.payload_bytes, self.order) };
            return match program.run(&mut view) {
                Ok(status) => status as u32,
                Err(error) => {
                    self.tally_error(error);
                    u32::MAX
                }
            };
        }
        let Some(entry) = job.code.entry() else {
            return u32::MAX;
        };
        let Some(order) = self.order else {
            // SAFETY: `Kernel::new` was promised a function that keeps to this layout; everything
            // the contexts point at outlives the call and is used by this thread or shared raw.
            return unsafe { enter(entry, group, threads.start, threads.end) };
        };
        // SAFETY: the caller's group, which no code runs on now.
        let count = unsafe { (*group).thread_count };
        // SAFETY: as above.
        let one = |thread| unsafe { enter(entry, group, thread, thread + 1) };
        let order = order.threads(self.round, count);
        self.round = self.round.wrapping_add(1);
        let mut all = Status::Done as u32;
        for thread in order.into_iter().filter(|t| threads.contains(t)) {
            match one(thread) {
                s if s == Status::Done as u32 => {}
                s if s == Status::Suspended as u32 => all = s,
                other => return other,
            }
        }
        all
    }

    fn tally_error(&mut self, error: ProgramError) {
        self.tally.error = Some(error);
    }

    fn fail(&mut self, job: &Job<'_>, status: u32) -> bool {
        self.tally.bad_status = Some(status);
        stop(job.stop, STOP_ERROR);
        false
    }

    /// Sets what depends on the kind of group.
    fn lay_out(&mut self, kind: usize, shape: &GroupShape) {
        if self.kind == Some(kind) {
            return;
        }
        for (number, thread) in (0..shape.threads).zip(&mut self.threads) {
            thread.local_ids = shape.ids(number);
            thread.dispatch_mask = shape.mask(number);
        }
        self.kind = Some(kind);
    }

    /// Brings threads to their start, and memory to zero.
    fn clear(&mut self, job: &Job<'_>, threads: u32, slm_size: u64) {
        let threads = threads as usize;
        let meta = job.meta;
        if !meta.runs_following || meta.states != 0 || meta.regs_bytes != 0 {
            for thread in &mut self.threads[..threads] {
                thread.state = 0;
            }
        }
        // Frames of no bytes have a dangling pointer. Filling zero bytes there is no access, but may be a masked vector
        // store to an unmapped page, which costs a processor more than a hundred nanoseconds.
        if meta.regs_bytes != 0 {
            for thread in &mut self.threads[..threads] {
                // SAFETY: a frame is at least `regs_bytes` long (checked metadata), owned by this
                // worker, and no group runs in it now.
                unsafe { thread.frame.write_bytes(0, meta.regs_bytes as usize) }
            }
        }
        if slm_size != 0 {
            // SAFETY: the block has `slm_size` bytes, owned as above.
            unsafe { self.slm.as_ptr().write_bytes(0, slm_size as usize) }
        }
        if job.zero_scratch && meta.scratch_bytes != 0 {
            let bytes = threads * meta.scratch_stride() as usize;
            // SAFETY: `threads` strides were allocated, owned as above.
            unsafe { self.scratch.as_ptr().write_bytes(0, bytes) }
        }
        if job.check_init {
            let scratch = threads * meta.scratch_stride() as usize;
            let slm = round_line(slm_size) as usize;
            let bytes = if scratch == 0 {
                slm_size as usize
            } else {
                slm + scratch
            };
            if bytes != 0 {
                // SAFETY: `reserve_marks` made room for marks of the local memory and of all scratch of this launch, owned as above.
                unsafe { self.marks.as_ptr().write_bytes(0xFF, bytes) }
            }
        }
    }
}

/// Bytes from memory to its marks.
fn distance(memory: &AlignedBytes, marks: *mut u8) -> u64 {
    (marks as u64).wrapping_sub(memory.as_ptr() as u64)
}
