//! `compile`: writes kernels as object files, libraries, or the texts of intermediate steps.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;
use target_lexicon::{Architecture, BinaryFormat, OperatingSystem, Triple};

use super::exit::{Exit, Failure};
use super::generator::{self, Generator};
use super::images::{Choice, ReadArgs};
use super::load::load;
use super::run::{Oob, pick};
use super::spec::Seconds;
use super::{asm, batch, steps};
use visa_jit::artifact::object::{self, ObjectError, ObjectKernel};
use visa_jit::artifact::{c_header, closing};
use visa_jit::backend::{CodeObject, CodegenOptions};
use visa_jit::engine::{Engine, EngineOptions, Kernel};
use visa_jit::isa::DeviceName;
use visa_jit::lines::Text;
use visa_jit::steps::{Steps, measured};

/// The C compiler that links, if not the usual one.
const CC_VARIABLE: &str = "CC";
/// Address space of engines that only compile.
const MEMORY_BYTES: u64 = 1 << 30;

/// Arguments of `compile`.
#[derive(Args, Debug)]
pub struct CompileArgs {
    /// Zebins, .cl or .spv sources, .visaasm texts, ocloc archives, SYCL programs or libraries; or a directory of them
    #[arg(required = true)]
    pub files: Vec<PathBuf>,
    /// The file to write; for a directory or several files with `-j`, the directory to write to
    #[arg(short, long, value_name = "OUT")]
    pub output: PathBuf,
    /// What to write; if left out, the ending of OUT decides
    #[arg(long, value_enum)]
    pub emit: Option<OutputKind>,
    /// The kernel to compile; if left out, all kernels of the files
    #[arg(long, value_name = "NAME")]
    pub kernel: Option<String>,
    #[command(flatten)]
    pub read: ReadArgs,
    /// The machine to compile for, such as aarch64-unknown-linux-gnu; if left out, this machine
    #[arg(long, value_name = "TRIPLE")]
    pub target: Option<String>,
    /// The processor: `native`, or a name such as x86-64-v3, haswell or znver4; if left out, code for any processor of the
    /// target
    #[arg(long, value_name = "NAME")]
    pub cpu: Option<String>,
    /// The code generator: cranelift, or llvm (in builds with the cargo feature `llvm`); if left out, cranelift, or what --emit
    /// implies
    #[arg(long, value_name = "NAME")]
    pub backend: Option<String>,
    /// Which lines the debug information of ELF files refers to: those of the vISA, in KERNEL.visaasm, or of the source if the
    /// kernel was compiled with -g
    #[arg(long, value_name = "TEXT", default_value = "visa", value_parser = ["visa", "source"])]
    pub lines: String,
    /// What an access out of bounds does; fixed in the code
    #[arg(long, value_enum, default_value = "zero")]
    pub oob: Oob,
    /// The device to compile sources for, or what a zebin or .visaasm was compiled for
    #[arg(
        long,
        value_name = "skl|tgllp|acm-g10|pvc|bmg|ptl-h|…",
        visible_alias = "platform"
    )]
    pub device: Option<DeviceName>,
    /// With a directory: number of files to compile at a time; if left out, one for each processor
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    pub jobs: Option<u16>,
    /// Seconds that compiling one kernel may take; a kernel that takes longer is reported, and the others are compiled
    #[arg(long, value_name = "SECONDS")]
    pub time_limit: Option<Seconds>,
    /// Print the time of each step of compilation, over all kernels; with --json, of each kernel
    #[arg(long)]
    pub time_passes: bool,
    /// Print what happened, with the time of each kernel, as JSON: one object at the end, or a line for each file as it is done and
    /// one at the end
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "object"
    )]
    pub json: Option<JsonForm>,
}

/// `--json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JsonForm {
    /// One object
    Object,
    /// A line for each file, and one at the end
    Lines,
}

/// `--emit`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum OutputKind {
    /// Object file
    Obj,
    /// Shared library, linked with the system's C compiler
    Shared,
    /// Static library
    Static,
    /// Listing of the machine code
    Asm,
    /// The vISA of one kernel that debug information refers to
    Visaasm,
    /// Intermediate representation
    Ssa,
    /// Intermediate representation of LLVM
    LlvmIr,
    /// Intermediate representation of Cranelift
    Clif,
    /// C header
    Header,
}

impl OutputKind {
    /// By the ending of the output's name.
    pub fn of(path: &Path) -> OutputKind {
        match path.extension().and_then(|e| e.to_str()) {
            Some("so" | "dylib") => OutputKind::Shared,
            Some("a") => OutputKind::Static,
            Some("s" | "asm") => OutputKind::Asm,
            Some("visaasm") => OutputKind::Visaasm,
            Some("ssa") => OutputKind::Ssa,
            Some("ll") => OutputKind::LlvmIr,
            Some("clif") => OutputKind::Clif,
            Some("h") => OutputKind::Header,
            _ => OutputKind::Obj,
        }
    }

    /// The ending of files with it.
    pub const fn ending(self) -> &'static str {
        match self {
            OutputKind::Obj => "o",
            OutputKind::Shared => "so",
            OutputKind::Static => "a",
            OutputKind::Asm => "s",
            OutputKind::Visaasm => "visaasm",
            OutputKind::Ssa => "ssa",
            OutputKind::LlvmIr => "ll",
            OutputKind::Clif => "clif",
            OutputKind::Header => "h",
        }
    }
}

/// The code generator for a target, and an engine to load files with.
pub struct Compiler {
    generator: Arc<Generator>,
    triple: Triple,
    engine: Engine,
    emit: OutputKind,
    args: Options,
}

/// What of the arguments each file needs.
struct Options {
    read: ReadArgs,
    kernel: Option<String>,
    codegen: CodegenOptions,
    device: Option<DeviceName>,
    time_limit: Option<Duration>,
    time_passes: bool,
}

/// What came of one file.
#[derive(Default)]
pub struct Compiled {
    /// Kernels that were compiled.
    pub kernels: Vec<ObjectKernel>,
    /// The text, for those kinds of output that are text.
    text: String,
    /// Kernels that were not, and why.
    pub failed: Vec<(String, Failure)>,
    /// What each kernel took.
    pub times: Vec<KernelTime>,
}

/// What a kernel took to be compiled; also one that failed.
#[derive(Serialize)]
pub struct KernelTime {
    /// Its name.
    pub kernel: String,
    /// All of it.
    #[serde(rename = "ms", serialize_with = "steps::in_ms")]
    pub time: Duration,
    /// vISA instructions, with those of functions that it calls.
    pub instructions: usize,
    /// The steps, if they were asked for.
    #[serde(
        skip_serializing_if = "Option::is_none",
        serialize_with = "steps::in_rows"
    )]
    pub steps: Option<Steps>,
}

/// Carries `compile` out; the text is for standard output.
pub fn compile(args: &CompileArgs) -> Result<(String, Exit), Failure> {
    let directory = args.files.iter().any(|file| file.is_dir());
    if directory || args.jobs.is_some() {
        return batch::compile(args);
    }
    if let Some(form) = args.json {
        return match args.files.as_slice() {
            [file] => batch::compile_one(args, file, form),
            _ => Err(Failure::usage(
                "--json is for one file or a directory, or with --jobs",
            )),
        };
    }
    let compiler = Compiler::new(args, OutputKind::of(&args.output))?;
    let mut all = Compiled::default();
    for file in &args.files {
        let mut one = compiler.file(file)?;
        if let Some((_, failure)) = one.failed.pop() {
            return Err(failure);
        }
        all.kernels.append(&mut one.kernels);
        all.text.push_str(&one.text);
        all.times.append(&mut one.times);
    }
    compiler.write(&args.output, &all)?;
    let text = match args.time_passes {
        true => steps::table(&all.times),
        false => String::new(),
    };
    Ok((text, Exit::Fine))
}

impl Compiled {
    /// Whether there is nothing to write.
    pub fn is_empty(&self) -> bool {
        self.kernels.is_empty() && self.text.is_empty()
    }
}

impl Compiler {
    /// `emit` is what is written if the arguments do not say.
    pub fn new(args: &CompileArgs, emit: OutputKind) -> Result<Compiler, Failure> {
        let emit = args.emit.unwrap_or(emit);
        let kind = generator::kind(args.backend.as_deref(), emit)?;
        let generator = Generator::new(kind, args.target.as_deref(), args.cpu.as_deref())?;
        let mut options = EngineOptions {
            memory_bytes: MEMORY_BYTES,
            versions: args.read.versions(),
            ..EngineOptions::default()
        };
        // The engine's own code generator is for this machine, and is not asked.
        options.passes.disabled.extend(kind.unwanted_passes());
        if args.lines == "source" {
            options.tools.text = Text::Source;
        }
        let codegen = CodegenOptions {
            oob: args.oob.into(),
            ..CodegenOptions::default()
        };
        Ok(Compiler {
            triple: generator.backend().identity().triple,
            generator: Arc::new(generator),
            engine: Engine::with_options(options)?,
            emit,
            args: Options {
                read: args.read.clone(),
                kernel: args.kernel.clone(),
                codegen,
                device: args.device,
                time_limit: args.time_limit.map(|Seconds(limit)| limit),
                time_passes: args.time_passes,
            },
        })
    }

    /// The kind of output.
    pub fn emit(&self) -> OutputKind {
        self.emit
    }

    /// Compiles the kernels of a file; those that cannot be are listed with the reason.
    pub fn file(&self, path: &Path) -> Result<Compiled, Failure> {
        let choice = Choice {
            image: self.args.read.image.as_deref(),
            kernel: self.args.kernel.as_deref(),
            device: self.args.device,
            versions: self.args.read.versions(),
            ..Choice::default()
        };
        let file = load(path, choice)?;
        let program = file.program(&self.engine)?;
        let mut done = Compiled::default();
        let kernels = match &self.args.kernel {
            Some(name) => vec![pick(&file.name, &program, Some(name))?],
            None => {
                for (name, error) in program.broken() {
                    done.failed.push((name.clone(), error.clone().into()));
                }
                program.kernels().iter().collect()
            }
        };
        for kernel in kernels {
            let start = Instant::now();
            let mut compile = || self.kernel(kernel, &mut done);
            let (compiled, mut steps) = match self.args.time_passes {
                true => {
                    let (compiled, steps) = measured(compile);
                    (compiled, Some(steps))
                }
                false => (compile(), None),
            };
            match (compiled, &mut steps) {
                (Ok(others), Some(steps)) => steps.add(&others),
                (Ok(_), None) => {}
                (Err(failure), _) => done.failed.push((kernel.name().to_owned(), failure)),
            }
            let valid = kernel.valid();
            done.times.push(KernelTime {
                kernel: kernel.name().to_owned(),
                time: start.elapsed(),
                instructions: valid.map_or(0, |valid| valid.module().insts.len()),
                steps,
            });
        }
        Ok(done)
    }

    /// Compiles a kernel. Returns the steps of another thread, if one had to do it.
    fn kernel(&self, kernel: &Kernel, done: &mut Compiled) -> Result<Steps, Failure> {
        match self.emit {
            OutputKind::Visaasm if !done.text.is_empty() => {
                return Err(Failure::usage(
                    "lines would not be right in a file with the text of several kernels: choose one with --kernel",
                ));
            }
            OutputKind::Visaasm => done.text.push_str(kernel.text()),
            OutputKind::Ssa => {
                let _ = writeln!(done.text, "{}", kernel.ssa(true)?);
            }
            OutputKind::Clif | OutputKind::LlvmIr => {
                let ir = self.generator.ir(kernel, &self.args.codegen)?;
                done.text.push_str(&ir);
            }
            _ => {
                let (compiled, steps) = self.machine_code(kernel)?;
                if self.emit == OutputKind::Asm {
                    self.listing(kernel, &compiled, &mut done.text)?;
                }
                done.kernels.push(compiled);
                return Ok(steps);
            }
        }
        Ok(Steps::default())
    }

    /// Code of a kernel, unless it takes too long: what compiles it then goes on by itself until the program ends.
    fn machine_code(&self, kernel: &Kernel) -> Result<(ObjectKernel, Steps), Failure> {
        let oob = self.args.codegen.oob;
        let Some(limit) = self.args.time_limit else {
            let made = kernel.ahead_of_time(self.generator.backend(), oob)?;
            return Ok((made, Steps::default()));
        };
        let (sender, made) = mpsc::sync_channel(1);
        let (generator, compiled) = (self.generator.clone(), kernel.clone());
        thread::spawn(move || {
            // There is no receiver if it took too long.
            let _ = sender.send(measured(|| {
                compiled.ahead_of_time(generator.backend(), oob)
            }));
        });
        match made.recv_timeout(limit) {
            Ok((made, steps)) => Ok((made?, steps)),
            Err(RecvTimeoutError::Timeout) => Err(Failure {
                exit: Exit::Stopped,
                message: format!("kernel `{}` took longer than --time-limit", kernel.name()),
            }),
            Err(RecvTimeoutError::Disconnected) => Err(Failure {
                exit: Exit::Internal,
                message: "the compiler panicked".to_owned(),
            }),
        }
    }

    fn listing(
        &self,
        kernel: &Kernel,
        compiled: &ObjectKernel,
        out: &mut String,
    ) -> Result<(), Failure> {
        let variants = compiled.record.variants.iter().zip(&compiled.codes);
        for ((variant, (code, align)), lines) in variants.zip(&compiled.lines) {
            let object = CodeObject {
                code: code.clone(),
                align: *align,
                lines: lines.clone(),
                triple: self.triple.clone(),
                backend: self.generator.backend().name(),
                stack_bytes: 0,
                note: None,
            };
            let _ = writeln!(out, "{}:", variant.symbol);
            out.push_str(&asm::listing(kernel.name(), &object, kernel.text())?);
        }
        Ok(())
    }

    /// Writes the output. What is there is replaced when all of it is ready.
    pub fn write(&self, output: &Path, done: &Compiled) -> Result<u64, Failure> {
        let records = || -> Vec<_> { done.kernels.iter().map(|k| k.record.clone()).collect() };
        let stem = output
            .file_stem()
            .map_or_else(String::new, |s| s.to_string_lossy().into_owned());
        let bytes = match self.emit {
            OutputKind::Asm
            | OutputKind::Visaasm
            | OutputKind::Ssa
            | OutputKind::Clif
            | OutputKind::LlvmIr => done.text.clone().into_bytes(),
            OutputKind::Header => c_header(&stem, &records()).into_bytes(),
            OutputKind::Obj => self.object(done)?,
            OutputKind::Shared | OutputKind::Static => {
                let object = self.object(done)?;
                self.link(output, &stem, &object)?;
                let size = fs::metadata(output).map_err(|e| Failure::file("write", output, e))?;
                return Ok(size.len());
            }
        };
        fs::write(output, &bytes).map_err(|error| Failure::file("write", output, error))?;
        Ok(bytes.len() as u64)
    }

    fn object(&self, done: &Compiled) -> Result<Vec<u8>, Failure> {
        object::write(&self.triple, &done.kernels).map_err(|error| match error {
            ObjectError::Target(_) => Failure::unsupported(error.to_string()),
            other => Failure::usage(other.to_string()),
        })
    }

    /// Links with the system's tools, in a directory beside the output. Names in it do not depend on where it is.
    fn link(&self, output: &Path, stem: &str, object: &[u8]) -> Result<(), Failure> {
        let mut work = output.as_os_str().to_owned();
        work.push(format!(".tmp{}", std::process::id()));
        let work = PathBuf::from(work);
        let made = |error| Failure::file("write", &work, error);
        let mut tool = self.tool(stem)?;
        fs::create_dir(&work).map_err(made)?;
        let linked = fs::write(work.join(format!("{stem}.o")), object)
            .map_err(made)
            .and_then(|()| {
                tool.current_dir(&work).output().map_err(|error| {
                    let name = tool.get_program().display();
                    Failure::environment(format!("cannot start `{name}`, which links: {error}"))
                })
            })
            .and_then(|out| {
                if out.status.success() {
                    self.close(&work.join("out"))?;
                    return fs::rename(work.join("out"), output)
                        .map_err(|error| Failure::file("write", output, error));
                }
                let log = String::from_utf8_lossy(&out.stderr).into_owned();
                Err(Failure::environment(format!("linking failed:\n{log}")))
            });
        let _ = fs::remove_dir_all(&work);
        linked
    }

    /// Appends the digest of a library that `Program::open_library` can load: ELF, as bytes after a Mach-O file would not
    /// fit its signature.
    fn close(&self, library: &Path) -> Result<(), Failure> {
        if self.emit != OutputKind::Shared || self.triple.binary_format != BinaryFormat::Elf {
            return Ok(());
        }
        let failed = |error| Failure::file("write", library, error);
        let mut bytes = fs::read(library).map_err(failed)?;
        closing::close(&mut bytes);
        fs::write(library, bytes).map_err(failed)
    }

    /// What links, or makes an archive.
    fn tool(&self, stem: &str) -> Result<Command, Failure> {
        let object = format!("{stem}.o");
        if self.emit == OutputKind::Static {
            let mut ar = Command::new("ar");
            // D: no times, no owners.
            ar.args(["rcsD", "out", &object]);
            return Ok(ar);
        }
        let triple = &self.triple;
        let mut cc = Command::new(match std::env::var_os(CC_VARIABLE) {
            Some(cc) => cc,
            None => linker(triple)?.into(),
        });
        if matches!(
            triple.operating_system,
            OperatingSystem::Darwin(_) | OperatingSystem::MacOSX(_)
        ) {
            cc.args(["-dynamiclib", "-undefined", "dynamic_lookup"]);
        } else {
            cc.args(["-shared", "-nostdlib", "-Wl,--build-id=none"]);
        }
        cc.args(["-o", "out", &object]);
        Ok(cc)
    }
}

/// The C compiler that usually links for a machine.
fn linker(triple: &Triple) -> Result<String, Failure> {
    let host = Triple::host();
    if triple.architecture == host.architecture && triple.operating_system == host.operating_system
    {
        return Ok("cc".to_owned());
    }
    let architecture = match triple.architecture {
        Architecture::Riscv64(_) => "riscv64".to_owned(),
        other => other.to_string(),
    };
    if triple.operating_system == OperatingSystem::Linux {
        return Ok(format!("{architecture}-linux-gnu-gcc"));
    }
    Err(Failure::environment(format!(
        "nothing here links libraries for {triple}: name a C compiler that does in ${CC_VARIABLE}, or write an object file and \
         link it there"
    )))
}
