//! Launches: choose the code, and turn arguments into payload and surfaces.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::cache::{Compiled, Origin};
use super::error::Error;
use super::fault::FaultRecord;
use super::kernel::Kernel;
use super::prepared::{Code, Prepared, Ready};
use super::reach::Reach;
use super::repeat::Repeat;
use crate::backend::{Check, OobPolicy};
use crate::lower::LocalIdShape;
use visa_runtime::linked::{ArgKind, ArgValue as Arg, Bindings, LaunchMemory, PlanError};
use visa_runtime::{
    Arguments, Buffer, ImageShape, Interrupter, LaunchShape, LaunchStatus, SamplerState, Schedule,
};

/// What to run a kernel on.
#[derive(Clone, Debug)]
pub struct Launch {
    pub(crate) global: [u32; 3],
    local: Option<[u32; 3]>,
    offset: [u32; 3],
    dimensions: Option<u8>,
    pub(super) args: BTreeMap<u32, Arg>,
    pub(super) bound: Bindings,
    pub(super) inputs: BTreeMap<String, Vec<u8>>,
    threads: Option<usize>,
    oob: OobPolicy,
    interrupter: Option<Interrupter>,
    deadline: Option<Duration>,
    schedule: Option<Schedule>,
    pub(super) context: Option<u64>,
}

impl Launch {
    /// A launch of `global` work-items in x, y and z.
    pub fn new(global: [u32; 3]) -> Launch {
        Launch {
            global,
            local: None,
            offset: [0; 3],
            dimensions: None,
            args: BTreeMap::new(),
            bound: Bindings::default(),
            inputs: BTreeMap::new(),
            threads: Some(1),
            oob: OobPolicy::default(),
            interrupter: None,
            deadline: None,
            schedule: None,
            context: None,
        }
    }

    /// Work-group size; chosen by the engine when not given.
    #[must_use]
    pub fn local(mut self, local: [u32; 3]) -> Launch {
        self.local = Some(local);
        self
    }

    /// First global id.
    #[must_use]
    pub fn offset(mut self, offset: [u32; 3]) -> Launch {
        self.offset = offset;
        self
    }

    /// Dimensions that the program names, 1 to 3: what `get_work_dim` gives. If left out, or too few, as many as have a size
    /// above 1.
    #[must_use]
    pub fn dimensions(mut self, dimensions: u8) -> Launch {
        self.dimensions = Some(dimensions);
        self
    }

    /// Sets an argument.
    #[must_use]
    pub fn arg(mut self, index: u32, arg: impl Into<Arg>) -> Launch {
        self.args.insert(index, arg.into());
        self
    }

    /// Binds a surface of a kernel from text.
    #[must_use]
    pub fn surface(mut self, bti: u32, buffer: Buffer) -> Launch {
        self.bound.surfaces.insert(bti, buffer);
        self
    }

    /// Binds a typed surface of a kernel from text.
    #[must_use]
    pub fn image(mut self, bti: u32, buffer: Buffer, shape: ImageShape) -> Launch {
        self.bound.images.insert(bti, (buffer, shape));
        self
    }

    /// Sets a sampler of a kernel from text.
    #[must_use]
    pub fn sampler(mut self, index: u32, state: SamplerState) -> Launch {
        self.bound.samplers.insert(index, state);
        self
    }

    /// Sets an `.input` variable of a kernel from text.
    #[must_use]
    pub fn input(mut self, name: impl Into<String>, bytes: Vec<u8>) -> Launch {
        self.inputs.insert(name.into(), bytes);
        self
    }

    /// OS threads to spread work-groups over.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Launch {
        self.threads = Some(threads);
        self
    }

    /// One OS thread for each processor.
    #[must_use]
    pub fn threads_of_machine(mut self) -> Launch {
        self.threads = None;
        self
    }

    /// What out-of-bounds accesses do.
    #[must_use]
    pub fn oob(mut self, oob: OobPolicy) -> Launch {
        self.oob = oob;
        self
    }

    /// What out-of-bounds accesses do.
    pub(super) fn policy(&self) -> OobPolicy {
        self.oob
    }

    /// The context that it belongs to, as OpenCL has them: engines that check memory report accesses to buffers of others
    /// ([`Buffer::set_context`]). Without one, it may access all.
    #[must_use]
    pub fn context(mut self, context: u64) -> Launch {
        self.context = Some(context);
        self
    }

    /// Lets another thread stop the launch.
    #[must_use]
    pub fn interrupter(mut self, interrupter: Interrupter) -> Launch {
        self.interrupter = Some(interrupter);
        self
    }

    /// Stops the launch after this long, compilation included.
    #[must_use]
    pub fn deadline(mut self, after: Duration) -> Launch {
        self.deadline = Some(after);
        self
    }

    /// Runs work-groups, and the threads of each between its barriers, in an order that is drawn from `seed`, on one thread of the
    /// host: a kernel whose result changes with it depends on an order that no GPU promises.
    #[must_use]
    pub fn schedule(mut self, seed: u64) -> Launch {
        self.schedule = Some(Schedule { seed });
        self
    }
}

/// What a launch did.
#[derive(Clone, Debug)]
pub struct Report {
    /// How it ended. [`LaunchStatus::Faulted`], too, if an assertion of the kernel failed.
    pub status: LaunchStatus,
    /// Work-groups that ran to their end.
    pub groups: u64,
    /// Hardware threads of those.
    pub threads: u64,
    /// First faults.
    pub faults: Vec<FaultRecord>,
    /// All faults.
    pub fault_count: u64,
    /// Time to make the code, whenever that was.
    pub compile: Duration,
    /// Where the code was.
    pub origin: Origin,
    /// Run time.
    pub run: Duration,
    /// Code generator.
    pub backend: &'static str,
    /// What the code generator did other than asked for, and why; or why the interpreter carried the launch out.
    pub note: Option<String>,
    /// What the kernel printed.
    pub printed: Vec<u8>,
    /// Why that is not all, or not what the kernel meant.
    pub print_problem: Option<String>,
    /// What the kernel's failed assertions say, a line each; `None` when none failed.
    pub failed_assertions: Option<Vec<u8>>,
}

impl Report {
    /// Of a launch that was stopped while its code was compiled.
    fn without_code(status: LaunchStatus, backend: &'static str, compile: Duration) -> Report {
        Report {
            status,
            groups: 0,
            threads: 0,
            faults: Vec::new(),
            fault_count: 0,
            compile,
            origin: Origin::Compiled,
            run: Duration::ZERO,
            backend,
            note: None,
            printed: Vec::new(),
            print_problem: None,
            failed_assertions: None,
        }
    }
}

/// How often a launch that waits for its code looks whether it was interrupted.
const ASKS_EVERY: Duration = Duration::from_millis(10);

impl Kernel {
    /// Compiles (or finds) the code and lays out the arguments. The deadline holds for this, and again for each run.
    ///
    /// # Errors
    /// For arguments and shapes that do not fit, kernels that cannot be compiled, and [`Error::Stopped`].
    pub fn prepare(&self, launch: &Launch) -> Result<Prepared, Error> {
        self.check_arguments(launch)?;
        self.parts().manifest.key.meta.check()?;
        let (local, ids) = self.groups_of(launch);
        let shape = LaunchShape {
            offset: launch.offset,
            dimensions: launch.dimensions,
            ..LaunchShape::new(launch.global, local)
        };
        let first = match &self.parts().engine.0.options.interpret {
            Some(options) => Ready::new(
                Code::Interpreted(self.interpreted(options, launch.oob)?),
                shape,
            )?,
            None => self.ready(ids, launch, shape)?,
        };
        let upgrade = match self.is_own(&first.code) {
            true => self.upgrade(ids, launch.oob),
            false => None,
        };
        if let Some(upgrade) = &upgrade {
            self.ask_for(upgrade, ids, launch.oob);
        }
        let engine = &self.parts().engine;
        let memory = engine.memory();
        let prints = self.plan().prints();
        // What is printed has an order only if groups run one after the other, and so have accesses that may race.
        let alone = prints || engine.0.checks(Check::Race) || launch.schedule.is_some();
        let most = if alone { 1 } else { first.launch.groups() };
        let pool = engine.pool(launch.threads, most)?;
        let own = LaunchMemory::new(self.plan(), &first.launch, memory, pool.as_deref())?;
        let arguments = self.layout(launch, &shape, &own)?;
        let repeat = match first.code {
            Code::Compiled { .. } => Repeat::new(self, launch),
            Code::Interpreted(_) => None,
        };
        Ok(Prepared {
            kernel: self.clone(),
            first,
            upgrade,
            better: OnceLock::new(),
            arguments,
            pool,
            oob: launch.oob,
            interrupter: launch.interrupter.clone(),
            deadline: launch.deadline,
            schedule: launch.schedule,
            own,
            names: self.names(launch),
            reach: engine.0.checks(Check::Memory).then(|| Reach::of(launch)),
            repeat,
        })
    }

    /// The best code that there is, with room to run it. Where there is none for better code, the engine's own may do with less.
    fn ready(
        &self,
        ids: LocalIdShape,
        launch: &Launch,
        shape: LaunchShape,
    ) -> Result<Ready, Error> {
        let (code, origin) = self.compiled_in_time(ids, launch)?;
        let code = Code::Compiled { code, origin };
        let is_own = self.is_own(&code);
        match Ready::new(code, shape) {
            Err(_) if !is_own => {
                let (code, origin) = self.own_code(ids, launch.oob)?;
                Ready::new(Code::Compiled { code, origin }, shape)
            }
            made => made,
        }
    }

    /// Whether code is by the engine's own code generator, and there may be better.
    fn is_own(&self, code: &Code) -> bool {
        match code {
            Code::Compiled { code, .. } => {
                code.object.backend == self.parts().engine.0.identity.name
            }
            Code::Interpreted(_) => false,
        }
    }

    /// Code of a specialisation, unless the launch is to end before it is there. It is compiled by a thread of its own then, which
    /// goes on: the next launch finds the code in the cache.
    fn compiled_in_time(
        &self,
        ids: LocalIdShape,
        launch: &Launch,
    ) -> Result<(Arc<Compiled>, Origin), Error> {
        let endless = launch.deadline.is_none() && launch.interrupter.is_none();
        if endless || self.is_compiled(ids, launch.oob) {
            return self.compiled(ids, launch.oob);
        }
        let start = Instant::now();
        self.parts().engine.0.backend.prepare()?;
        let (kernel, oob) = (self.clone(), launch.oob);
        let (sender, code) = mpsc::sync_channel(1);
        let compile = move || {
            // There is no receiver if the launch has ended.
            let _ = sender.send(kernel.compiled(ids, oob));
        };
        std::thread::Builder::new()
            .name("visa-jit compile".to_owned())
            .spawn(compile)
            .map_err(|e| Error::Memory(format!("no thread to compile with: {e}")))?;
        loop {
            let stopped = if launch
                .deadline
                .is_some_and(|limit| start.elapsed() >= limit)
            {
                Some(LaunchStatus::DeadlineExceeded)
            } else {
                let interrupter = launch.interrupter.as_ref();
                let interrupted = interrupter.is_some_and(Interrupter::is_interrupted);
                interrupted.then_some(LaunchStatus::Interrupted)
            };
            if let Some(status) = stopped {
                let kernel = self.name().to_owned();
                return Err(Error::Stopped { kernel, status });
            }
            let left = launch
                .deadline
                .map(|limit| limit.saturating_sub(start.elapsed()));
            match code.recv_timeout(left.map_or(ASKS_EVERY, |left| left.min(ASKS_EVERY))) {
                Ok(compiled) => return compiled,
                Err(RecvTimeoutError::Timeout) => {}
                // The compiling thread panicked: so does this one, where the panic is seen.
                Err(RecvTimeoutError::Disconnected) => return self.compiled(ids, launch.oob),
            }
        }
    }

    /// Compiles the code that a launch of this shape runs, or finds it, so that such launches do not wait for it. Arguments do not
    /// count.
    ///
    /// # Errors
    /// When the kernel cannot be compiled.
    pub fn compile_for(&self, launch: &Launch) -> Result<(), Error> {
        if self.parts().engine.0.options.interpret.is_some() {
            return Ok(());
        }
        let (_, ids) = self.groups_of(launch);
        self.compiled(ids, launch.oob).map(drop)
    }

    /// Size of a launch's groups, and which specialisation it runs.
    pub(super) fn groups_of(&self, launch: &Launch) -> ([u32; 3], LocalIdShape) {
        let local = launch
            .local
            .or(self.required_local_size())
            .unwrap_or_else(|| default_local(launch.global));
        // Partial groups keep one dimension, but in several they may break rows that whole groups keep.
        let whole_rows = local[0] != 0
            && local[0].is_multiple_of(self.simd())
            && launch.global[0].is_multiple_of(local[0]);
        let ids = if !self.walks_rows() {
            LocalIdShape::General
        } else if whole_rows {
            LocalIdShape::FullRow
        } else if local[1] == 1 && local[2] == 1 {
            LocalIdShape::Row
        } else if let Some(row) = self.short_row(launch, local) {
            LocalIdShape::ShortRows(row)
        } else {
            LocalIdShape::General
        };
        (local, ids)
    }

    /// Lengths of rows that there are specialisations for. A trap leaves an access undone, which cannot be said of one that is
    /// done row by row: there is none for it.
    pub(super) fn short_rows(&self, oob: OobPolicy) -> impl Iterator<Item = u8> {
        let simd = self.simd();
        let rows = [8, 16]
            .into_iter()
            .filter(move |&row| u32::from(row) < simd);
        rows.filter(move |_| oob != OobPolicy::Trap)
    }

    /// Lanes of a row, if every thread has several whole ones.
    fn short_row(&self, launch: &Launch, local: [u32; 3]) -> Option<u8> {
        let row = self
            .short_rows(launch.oob)
            .find(|&row| u32::from(row) == local[0])?;
        let whole = |n: usize| launch.global[n].is_multiple_of(local[n]);
        let rows = self.simd() / u32::from(row);
        (local[1].is_multiple_of(rows) && whole(0) && whole(1)).then_some(row)
    }

    /// Prepares and runs once. A launch that is stopped while its code is compiled reports so and that no group ran.
    ///
    /// # Errors
    /// As [`Kernel::prepare`]. Faults are part of the report.
    pub fn launch(&self, launch: &Launch) -> Result<Report, Error> {
        let start = Instant::now();
        let mut prepared = match self.prepare(launch) {
            Err(Error::Stopped { status, .. }) => {
                let backend = self.parts().engine.0.identity.name;
                return Ok(Report::without_code(status, backend, start.elapsed()));
            }
            other => other?,
        };
        let left = |limit: Duration| limit.saturating_sub(start.elapsed());
        prepared.deadline = prepared.deadline.map(left);
        prepared.run()
    }

    /// Lanes are numbered along x first; other walk orders take another dimension.
    pub(super) fn walks_rows(&self) -> bool {
        self.parts().manifest.key.meta.walk_order == [0, 1, 2]
    }

    /// Every argument given, of the right kind; all problems in one message.
    fn check_arguments(&self, launch: &Launch) -> Result<(), Error> {
        let given = self.given(launch)?;
        self.plan().check(&given).map_err(|e| self.plan_error(e))
    }

    /// Arguments by their positions; what a kernel from text is given by name as well.
    fn given<'l>(&self, launch: &'l Launch) -> Result<Cow<'l, BTreeMap<u32, Arg>>, Error> {
        let plan = self.plan();
        let bad = |what: String| Error::Arguments {
            kernel: self.name().into(),
            what,
        };
        if !plan.binds_surfaces {
            return match launch.inputs.keys().next() {
                Some(name) => Err(bad(format!("no .input `{name}`: it takes arguments"))),
                None => Ok(Cow::Borrowed(&launch.args)),
            };
        }
        let mut given = launch.args.clone();
        for (name, bytes) in &launch.inputs {
            let found = plan.arguments.iter().find(|a| a.name == *name);
            let found = found.ok_or_else(|| {
                bad(format!(
                    "no .input `{name}` that a launch sets (r0 and local ids are filled)"
                ))
            })?;
            match found.kind {
                ArgKind::Value { size } if bytes.len() != size as usize => {
                    let given = bytes.len();
                    let what = format!("input `{name}` takes {size} bytes, not {given}");
                    return Err(bad(what));
                }
                _ => given.insert(found.index, Arg::Bytes(bytes.clone())),
            };
        }
        // Inputs that are not given are zero.
        for a in &plan.arguments {
            if let ArgKind::Value { size } = a.kind {
                let zeros = || Arg::Bytes(vec![0; size as usize]);
                given.entry(a.index).or_insert_with(zeros);
            }
        }
        Ok(Cow::Owned(given))
    }

    /// Builds the payload and the surface table.
    fn layout(
        &self,
        launch: &Launch,
        shape: &LaunchShape,
        own: &LaunchMemory,
    ) -> Result<Arguments, Error> {
        let given = self.given(launch)?;
        let bytes = self.parts().manifest.key.meta.payload_bytes;
        let memory = self.parts().engine.memory();
        let own = (own, Some(self.parts().data.data.as_ref()));
        self.plan()
            .layout(bytes, &given, &launch.bound, shape, memory, own)
            .map_err(|e| self.plan_error(e))
    }

    fn plan_error(&self, error: PlanError) -> Error {
        let kernel = self.name().to_owned();
        match error {
            PlanError::Launch(error) => error.into(),
            PlanError::Unsupported(what) => Error::Unsupported { kernel, what },
            other => Error::Arguments {
                kernel,
                what: other.to_string(),
            },
        }
    }
}

/// The largest divisor of the x size up to 256, or 256 with a partial last group when that is small.
fn default_local(global: [u32; 3]) -> [u32; 3] {
    let x = global[0].max(1);
    let best = (1..=x.min(256))
        .rev()
        .find(|d| x.is_multiple_of(*d))
        .unwrap_or(1);
    [
        if best >= 32 || best == x {
            best
        } else {
            256.min(x)
        },
        1,
        1,
    ]
}
