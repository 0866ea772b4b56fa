//! One contender in a process of its own, which does what it is told through pipes: so contenders have their own numbers of
//! threads and their own versions of LLVM, and a crash of one leaves the others alone.
//!
//! It reads a line and answers with one: `load K` (case number), `check PATH` (run once from fresh inputs, write the results
//! there), `time N` (run N times). Answers are `ok MICROSECONDS`, of `load` the time to runnable code, or `no REASON`.

use std::io::{BufRead, Write};
use std::process::Command;
use std::time::Instant;

use libloading::Library;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use visa_jit::backend::BackendKind;
use visa_jit::{Arg, Engine, EngineOptions, Launch, Prepared};
use visa_runtime::Buffer;

use crate::cases::{Argument, CASES, Case};
use crate::opencl;
use crate::support::{c_library, root};

/// A contender with one case loaded.
pub trait Loaded {
    /// Fresh inputs.
    fn reset(&mut self) -> Result<(), String>;
    /// Runs so often.
    fn run(&mut self, times: u32) -> Result<(), String>;
    /// Contents of a buffer.
    fn result(&self, argument: usize) -> Result<Vec<u8>, String>;
}

/// What loads cases.
enum Contender {
    Ours {
        kind: BackendKind,
        device: String,
        threads: usize,
    },
    OpenCl {
        platform: opencl::Platform,
        long: bool,
    },
    C(Library),
}

/// Serves a contender until its input ends.
pub fn serve(name: &str, threads: usize, device: &str) {
    if threads == 1 {
        pin();
    }
    let contender = Contender::new(name, threads, device);
    let mut loaded: Option<(usize, Box<dyn Loaded>)> = None;
    for line in std::io::stdin().lock().lines().map_while(Result::ok) {
        let answer = contender
            .as_ref()
            .map_err(Clone::clone)
            .and_then(|contender| obey(contender, &mut loaded, &line));
        let text = match answer {
            Ok(time) => format!("ok {time}"),
            Err(why) => format!("no {}", why.lines().next().unwrap_or("")),
        };
        println!("{text}");
        let _ = std::io::stdout().flush();
    }
}

/// Keeps this process, and the threads that it will start, on the last processor that it may use.
pub fn pin() {
    let last = |all: CpuSet| (0..CpuSet::MAX_CPU).rfind(|n| all.is_set(*n));
    let Some(processor) = sched_getaffinity(None).ok().and_then(last) else {
        return;
    };
    let mut only = CpuSet::new();
    only.set(processor);
    // If that fails, the measurement is only less exact.
    let _ = sched_setaffinity(None, &only);
}

fn obey(
    contender: &Contender,
    loaded: &mut Option<(usize, Box<dyn Loaded>)>,
    line: &str,
) -> Result<f64, String> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    if word == "load" {
        *loaded = None;
        let number: usize = rest.parse().map_err(|_| "which case?")?;
        let case = CASES.get(number).ok_or("no such case")?;
        let (made, time) = contender.load(case)?;
        *loaded = Some((number, made));
        return Ok(time);
    }
    let (number, loaded) = loaded.as_mut().ok_or("nothing is loaded")?;
    match word {
        "check" => {
            loaded.reset()?;
            loaded.run(1)?;
            let mut all = Vec::new();
            for result in CASES[*number].results {
                all.extend(loaded.result(*result)?);
            }
            std::fs::write(rest, all).map_err(|e| e.to_string())?;
            Ok(0.0)
        }
        "time" => {
            let times = rest.parse().map_err(|_| "how often?")?;
            let start = Instant::now();
            loaded.run(times)?;
            Ok(microseconds(start))
        }
        _ => Err(format!("{word}?")),
    }
}

/// Since then.
pub fn microseconds(start: Instant) -> f64 {
    start.elapsed().as_secs_f64() * 1e6
}

impl Contender {
    fn new(name: &str, threads: usize, device: &str) -> Result<Contender, String> {
        let ours = |kind| {
            let device = device.to_owned();
            Ok(Contender::Ours {
                kind,
                device,
                threads,
            })
        };
        match name {
            "Cranelift" => ours(BackendKind::Cranelift),
            "LLVM" if cfg!(feature = "llvm-codegen") => ours(BackendKind::Llvm),
            "LLVM" => Err("build with --features llvm".to_owned()),
            "C" if threads > 1 => Err("the loops have one thread".to_owned()),
            "C" => {
                let flags = [
                    "-mprefer-vector-width=512",
                    "-ffast-math",
                    "-fveclib=libmvec",
                    "-lm",
                    "-lmvec",
                ];
                let library = c_library("benches/peers/loops.c", &flags);
                library
                    .map(Contender::C)
                    .ok_or_else(|| "apt-get install clang-19".to_owned())
            }
            "ISPC" if threads > 1 => Err("the loops have one thread".to_owned()),
            "ISPC" => ispc_library().map(Contender::C),
            _ => {
                let (platform, index) = name.split_once(' ').unwrap_or((name, "int"));
                let platform = opencl::Platform::named(platform)?;
                Ok(Contender::OpenCl {
                    platform,
                    long: index == "long",
                })
            }
        }
    }

    fn load(&self, case: &'static Case) -> Result<(Box<dyn Loaded>, f64), String> {
        let arguments = (case.arguments)();
        match self {
            Contender::Ours {
                kind,
                device,
                threads,
            } => {
                let (ours, time) = Ours::new(*kind, device, *threads, case, arguments)?;
                Ok((Box::new(ours), time))
            }
            Contender::OpenCl { platform, long } => {
                let path = root(&format!("tests/kernels/{}.cl", case.file));
                let source = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
                let mut source = alone(&source, case.kernel);
                if *long {
                    source = source.replace("int i = get_global_id", "long i = get_global_id");
                    for name in ["px", "py", "x", "y", "col", "row", "gid"] {
                        let of = |ty: &str| format!("int {name} = get_{ty}_id");
                        let to = |ty: &str| format!("long {name} = get_{ty}_id");
                        source = source.replace(&of("global"), &to("global"));
                        source = source.replace(&of("local"), &to("local"));
                    }
                }
                platform.load(case, &source, arguments)
            }
            // Symbols of a library stay with it, and it lives as long as the process.
            Contender::C(library) => {
                let mut fresh = arguments.clone();
                (case.c)(library, &mut fresh).ok_or("no such loop")?;
                let library = std::ptr::from_ref(library);
                // SAFETY: the contender is not moved or dropped while it serves, which is longer than cases are loaded.
                let library = unsafe { &*library };
                Ok((
                    Box::new(InC {
                        library,
                        case,
                        arguments,
                    }),
                    0.0,
                ))
            }
        }
    }
}

/// A source without its other kernels, which would be compiled too. Each ends at the first brace that starts a line; a line
/// with a size of groups is part of the kernel after it.
fn alone(source: &str, kernel: &str) -> String {
    let (mut found, mut size, mut skipping) = (Vec::new(), None, false);
    for line in source.lines() {
        if line.starts_with("__attribute__((reqd_work_group_size") {
            size = Some(line);
            continue;
        }
        if let Some((_, rest)) = line.split_once("kernel void ") {
            let size = size.take();
            skipping = !rest.starts_with(&format!("{kernel}("));
            found.extend(size.filter(|_| !skipping));
        }
        if !skipping {
            found.push(line);
        }
        skipping &= line != "}";
    }
    found.join("\n")
}

/// Our own engine.
struct Ours {
    prepared: Prepared,
    buffers: Vec<(usize, Buffer, Vec<u8>)>,
}

impl Ours {
    fn new(
        kind: BackendKind,
        device: &str,
        threads: usize,
        case: &Case,
        arguments: Vec<Argument>,
    ) -> Result<(Ours, f64), String> {
        let options = EngineOptions {
            strategy: kind.into(),
            ..EngineOptions::default()
        };
        let engine = Engine::with_options(options).map_err(|e| e.to_string())?;
        let path = root(&format!("tests/kernels/bin/{device}/{}.zebin", case.file));
        let zebin = std::fs::read(path).map_err(|e| e.to_string())?;
        let start = Instant::now();
        let program = engine.program_from_zebin(&zebin, None);
        let program = program.map_err(|e| e.to_string())?;
        let kernel = program.kernel(case.kernel).map_err(|e| e.to_string())?;
        let read = microseconds(start);
        let size = |size: [usize; 3]| size.map(|n| n as u32);
        let mut launch = Launch::new(size(case.global))
            .local(size(case.local))
            .threads(threads);
        let mut buffers = Vec::new();
        for (i, argument) in arguments.into_iter().enumerate() {
            let arg = match argument {
                Argument::Buffer(bytes) => {
                    let bytes = bytes.as_slice().to_vec();
                    let buffer = engine
                        .memory()
                        .alloc_from(&bytes)
                        .map_err(|e| e.to_string())?;
                    buffers.push((i, buffer.clone(), bytes));
                    Arg::Buffer(buffer)
                }
                Argument::Value(bytes) => Arg::Bytes(bytes),
                Argument::Local(bytes) => Arg::Local(bytes as u32),
            };
            launch = launch.arg(i as u32, arg);
        }
        let start = Instant::now();
        let prepared = kernel.prepare(&launch).map_err(|e| e.to_string())?;
        let time = read + microseconds(start);
        Ok((Ours { prepared, buffers }, time))
    }
}

impl Loaded for Ours {
    fn reset(&mut self) -> Result<(), String> {
        let mut all = self.buffers.iter();
        all.try_for_each(|(_, buffer, bytes)| buffer.write(0, bytes))
            .map_err(|e| e.to_string())
    }

    fn run(&mut self, times: u32) -> Result<(), String> {
        let mut all = 0..times;
        all.try_for_each(|_| self.prepared.run().map(drop))
            .map_err(|e| e.to_string())
    }

    fn result(&self, argument: usize) -> Result<Vec<u8>, String> {
        let found = self.buffers.iter().find(|(i, ..)| *i == argument);
        found
            .map(|(_, buffer, _)| buffer.to_vec_of::<u8>())
            .ok_or_else(|| "no such buffer".to_owned())
    }
}

/// Plain loops.
struct InC {
    library: &'static Library,
    case: &'static Case,
    arguments: Vec<Argument>,
}

impl Loaded for InC {
    fn reset(&mut self) -> Result<(), String> {
        self.arguments = (self.case.arguments)();
        Ok(())
    }

    fn run(&mut self, times: u32) -> Result<(), String> {
        for _ in 0..times {
            (self.case.c)(self.library, &mut self.arguments).ok_or("no such loop")?;
        }
        Ok(())
    }

    fn result(&self, argument: usize) -> Result<Vec<u8>, String> {
        match self.arguments.get(argument) {
            Some(Argument::Buffer(bytes)) => Ok(bytes.as_slice().to_vec()),
            _ => Err("no such buffer".to_owned()),
        }
    }
}

/// The loops in ISPC as a library, if `ispc` is there to build them.
fn ispc_library() -> Result<Library, String> {
    let base = std::env::temp_dir().join(format!("visa-jit-ispc-{}", std::process::id()));
    let (object, library) = (base.with_extension("o"), base.with_extension("so"));
    let mut ispc = Command::new("ispc");
    ispc.args(["-O3", "--opt=fast-math", "--pic", "--target=host", "-o"]);
    let built = ispc
        .arg(&object)
        .arg(root("benches/peers/loops.ispc"))
        .output();
    let built = built.map_err(|_| "ispc is not installed (https://ispc.github.io)")?;
    if !built.status.success() {
        let said = String::from_utf8_lossy(&built.stderr).replace('\n', "; ");
        return Err(format!("ispc: {said}"));
    }
    let linked = Command::new("cc")
        .arg("-shared")
        .arg("-o")
        .arg(&library)
        .arg(&object)
        .status();
    let _ = std::fs::remove_file(&object);
    if !linked.is_ok_and(|status| status.success()) {
        return Err("cc does not link".to_owned());
    }
    // SAFETY: our own library, which runs no code when it is loaded.
    let loaded = unsafe { Library::new(&library) }.map_err(|e| e.to_string());
    let _ = std::fs::remove_file(&library);
    loaded
}

/// This program as a worker.
pub fn command(name: &str, threads: usize, device: &str) -> Option<Command> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    command.args([
        "--worker",
        name,
        "--threads",
        &threads.to_string(),
        "--device",
        device,
    ]);
    Some(command)
}
