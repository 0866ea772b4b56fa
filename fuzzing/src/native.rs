//! Engines of the library: those that generate code, and the reference interpreter.

use std::cell::RefCell;
use std::time::Duration;

#[cfg(feature = "llvm-codegen")]
use visa_jit::backend::{BackendKind, OptLevel};
use visa_jit::backend::{
    Bounds, CodegenEffort, Dispatch, Gather, Masks, Order, RegAlloc, SplitAccesses, Strategy,
    Tuning,
};
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

/// All passes, and the code generator's optimiser.
pub(crate) fn optimised() -> EngineOptions {
    EngineOptions {
        memory_bytes: MEMORY,
        ..EngineOptions::default()
    }
}

/// All passes, with a tuning.
fn tuned(tuning: Tuning) -> EngineOptions {
    EngineOptions {
        strategy: Strategy {
            tuning,
            ..Strategy::default()
        },
        ..optimised()
    }
}

/// Code under empty masks executed without effect, all blocks put in order, registers allocated in one pass, and one thread to its next barrier a call.
pub(crate) fn if_converted() -> EngineOptions {
    let tuning = Tuning {
        masks: Masks::Select,
        dispatch: Dispatch::Thread,
        order: Order::Interleaved,
        regalloc: RegAlloc::Fast,
        ..Tuning::DEFAULT
    };
    tuned(tuning)
}

/// All passes, no optimiser.
pub(crate) fn plain() -> EngineOptions {
    tuned(Tuning {
        codegen: CodegenEffort::None,
        ..Tuning::DEFAULT
    })
}

/// All passes, another way of accesses that are not affine, each access with a test of its own, and split accesses merged.
pub(crate) fn gathering(gather: Gather) -> EngineOptions {
    tuned(Tuning {
        gather,
        bounds: Bounds::Inline,
        ..MERGED
    })
}

/// Split accesses are merged.
const MERGED: Tuning = Tuning {
    split_accesses: SplitAccesses::Merge,
    ..Tuning::DEFAULT
};

/// All passes, tests in front of blocks that accesses do not share, and all blocks put in order.
pub(crate) fn separate() -> EngineOptions {
    tuned(Tuning {
        bounds: Bounds::Separate,
        order: Order::Interleaved,
        ..Tuning::DEFAULT
    })
}

/// What lowering makes, as it is.
pub(crate) fn unoptimised() -> EngineOptions {
    EngineOptions {
        passes: PassOptions::none(),
        ..plain()
    }
}

/// All passes, split accesses merged, and LLVM with passes of its own.
#[cfg(feature = "llvm-codegen")]
pub(crate) fn llvm(opt: OptLevel) -> EngineOptions {
    EngineOptions {
        strategy: Strategy {
            backend: BackendKind::Llvm,
            tuning: Tuning { opt, ..MERGED },
        },
        ..optimised()
    }
}

/// What lowering makes, through LLVM with the least effort.
#[cfg(feature = "llvm-codegen")]
pub(crate) fn llvm_unoptimised() -> EngineOptions {
    EngineOptions {
        strategy: Strategy {
            backend: BackendKind::Llvm,
            tuning: plain().strategy.tuning,
        },
        ..unoptimised()
    }
}

/// The reference interpreter.
pub(crate) fn interpreted() -> EngineOptions {
    EngineOptions {
        interpret: Some(InterpOptions::default()),
        ..optimised()
    }
}

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

/// A machine with these options.
///
/// # Panics
/// When this computer cannot run generated code.
pub(crate) fn machine(options: EngineOptions) -> Box<dyn Machine> {
    native(options, false)
}

/// A machine with all passes whose threads, if they have all their lanes, lie in rows of eight work-items.
///
/// # Panics
/// When this computer cannot run generated code.
pub(crate) fn in_rows() -> Box<dyn Machine> {
    native(optimised(), true)
}

fn native(options: EngineOptions, rows: bool) -> Box<dyn Machine> {
    let memory = DeviceMemory::with_capacity(options.memory_bytes).expect("address space");
    let engine = fresh(&options, &memory);
    Box::new(Native {
        options,
        rows,
        memory,
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
