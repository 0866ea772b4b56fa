//! Engines of the library: those that generate code, and the reference interpreter.

use std::cell::RefCell;
use std::time::Duration;

use visa_jit::backend::Strategy;
use visa_jit::interp::InterpOptions;
use visa_jit::isa::Platform;
use visa_jit::passes::PassOptions;
use visa_jit::{Class, EngineOptions, Error, Kernel};
use visa_runtime::{DeviceMemory, LaunchStatus};

use crate::engines::{Input, Launch, Loaded, Machine, Outcome, Stop, guarded};

/// Programs after which an engine is replaced: its cache keeps what it compiled.
const PROGRAMS: usize = 128;
/// A launch is given up after this long: on a busy machine, one that takes microseconds may wait for seconds.
const DEADLINE: Duration = Duration::from_secs(30);
/// Device memory of an engine.
const MEMORY: u64 = 1 << 26;

/// Length of the rows that work-items lie in, where they do.
const ROW: u32 = 8;

struct Native {
    options: EngineOptions,
    /// Full threads lie in rows that are shorter.
    rows: bool,
    memory: DeviceMemory,
    engine: visa_jit::Engine,
    programs: usize,
}

/// A machine whose programs are what a strategy makes of what lowering or all passes leave. `rows`: threads that have all their
/// lanes lie in rows of eight work-items.
///
/// # Panics
/// When this computer cannot run generated code.
pub(crate) fn generated(strategy: Strategy, passes: bool, rows: bool) -> Box<dyn Machine> {
    let mut options = EngineOptions {
        strategy,
        ..EngineOptions::default()
    };
    if !passes {
        options.passes = PassOptions::none();
    }
    native(options, rows)
}

/// The reference interpreter.
///
/// # Panics
/// When there is no address space.
pub(crate) fn interpreter() -> Box<dyn Machine> {
    let options = EngineOptions {
        interpret: Some(InterpOptions::default()),
        ..EngineOptions::default()
    };
    native(options, false)
}

fn native(mut options: EngineOptions, rows: bool) -> Box<dyn Machine> {
    options.memory_bytes = MEMORY;
    let engine = visa_jit::Engine::with_options(options.clone()).expect("an engine");
    Box::new(Native {
        options,
        rows,
        memory: engine.memory().clone(),
        engine,
        programs: 0,
    })
}

fn fresh(options: &EngineOptions, memory: &DeviceMemory) -> visa_jit::Engine {
    visa_jit::Engine::with_memory(options.clone(), memory.clone()).expect("an engine")
}

thread_local! {
    static LAST: RefCell<Option<(String, Platform, visa_jit::Program)>> = const { RefCell::new(None) };
}

/// A program of vISA text. All engines are given the same text, one after the other: the first one reads it.
///
/// # Errors
/// Those of the text.
pub(crate) fn read(
    engine: &visa_jit::Engine,
    text: &str,
    platform: Platform,
) -> Result<visa_jit::Program, Error> {
    LAST.with_borrow_mut(|last| {
        if let Some((of, on, program)) = last
            && of == text
            && *on == platform
        {
            return program.on(engine);
        }
        let program = engine.program_from_text("generated", text, platform)?;
        *last = Some((text.to_owned(), platform, program.clone()));
        Ok(program)
    })
}

/// An error as a reason to stop.
pub(crate) fn stop(e: &Error) -> Stop {
    if e.exit_class() == Class::Internal {
        Stop::Broken(e.to_string())
    } else {
        Stop::Refused(e.to_string())
    }
}

impl Machine for Native {
    fn load(&mut self, text: &str, platform: Platform) -> Result<Box<dyn Loaded>, Stop> {
        guarded(|| self.program(text, platform))
    }
}

impl Native {
    fn program(&mut self, text: &str, platform: Platform) -> Result<Box<dyn Loaded>, Stop> {
        self.programs += 1;
        if self.programs.is_multiple_of(PROGRAMS) {
            self.engine = fresh(&self.options, &self.memory);
        }
        let program = read(&self.engine, text, platform).map_err(|e| stop(&e))?;
        let kernel = program.kernels()[0].clone();
        Ok(Box::new(Program {
            kernel,
            rows: self.rows,
            memory: self.memory.clone(),
        }))
    }
}

struct Program {
    kernel: Kernel,
    rows: bool,
    memory: DeviceMemory,
}

impl Program {
    fn launch(&self, given: &Launch) -> Result<Outcome, Error> {
        let in_rows = self.rows && given.lanes > ROW && given.lanes == self.kernel.simd();
        let shape = match in_rows {
            true => [ROW, given.lanes / ROW, 1],
            false => [given.lanes, 1, 1],
        };
        let launch = visa_jit::Launch::new(shape).local(shape);
        let mut launch = launch.deadline(DEADLINE);
        let mut buffers = Vec::new();
        for (i, bytes) in given.surfaces.iter().enumerate() {
            let buffer = self.memory.alloc_from(bytes)?;
            let image = given.images.iter().find(|(at, _)| *at == i as u32);
            launch = match image {
                Some((at, shape)) => launch.image(*at, buffer.clone(), *shape),
                None => launch.surface(i as u32, buffer.clone()),
            };
            buffers.push(buffer);
        }
        for (i, state) in given.samplers.iter().enumerate() {
            launch = launch.sampler(i as u32, *state);
        }
        for (name, value) in &given.inputs {
            let bytes = match value {
                Input::Bytes(bytes) => bytes.clone(),
                Input::Address(s) => buffers[*s as usize].address().to_le_bytes().to_vec(),
            };
            launch = launch.input(name.clone(), bytes);
        }
        let report = self.kernel.launch(&launch)?;
        Ok(match report.status {
            LaunchStatus::Completed => {
                Ok(buffers.iter().map(visa_runtime::Buffer::to_vec).collect())
            }
            LaunchStatus::DeadlineExceeded | LaunchStatus::Interrupted => Err(Stop::Timeout),
            LaunchStatus::Faulted => Err(Stop::Faulted(
                report
                    .faults
                    .first()
                    .map_or_else(String::new, ToString::to_string),
            )),
        })
    }
}

impl Loaded for Program {
    fn run(&self, launch: &Launch) -> Outcome {
        guarded(|| self.launch(launch).unwrap_or_else(|e| Err(stop(&e))))
    }
}
