//! Launches: choose the code, and turn arguments into payload and surfaces.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::cache::{Compiled, Origin};
use super::error::Error;
use super::kernel::Kernel;
use super::launch::Launch;
use super::prepared::Prepared;
use super::reach::Reach;
use super::repeat::Repeat;
use super::report::Report;
use super::setup::{Code, Ready, Setup};
use crate::backend::Check;
use crate::lower::LocalIdShape;
use visa_runtime::linked::{ArgKind, ArgValue as Arg, LaunchMemory, PlanError};
use visa_runtime::{Arguments, Interrupter, LaunchShape, LaunchStatus};

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
            setup: Setup {
                kernel: self.clone(),
                arguments,
                own,
                names: self.names(launch),
                oob: launch.oob,
                shape,
            },
            first,
            upgrade,
            better: OnceLock::new(),
            pool,
            interrupter: launch.interrupter.clone(),
            deadline: launch.deadline,
            schedule: launch.schedule,
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
