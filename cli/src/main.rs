//! The command line.
//!
//! Each subcommand is one module; this one holds their arguments, decides which runs, and turns what
//! happened into an exit code. Results go to standard output, everything else to standard error.
//! It is no error if the reader of standard output closes it early.

#![deny(
    unsafe_code,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]
#![cfg_attr(
    test,
    allow(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects,
        reason = "a test that meets the unexpected should stop"
    )
)]

mod argument;
mod asm;
mod backend;
mod batch;
mod binary;
mod cache;
mod colour;
mod compare;
mod compile;
mod content;
mod exec;
mod exit;
mod explain;
mod findings;
mod generator;
mod html;
mod image;
mod images;
mod list;
mod load;
mod npy;
mod ocloc;
mod report;
mod run;
mod spec;
mod steps;
mod suppress;
mod tools;
mod tuning;
mod values;

use std::env;
use std::ffi::OsString;
use std::io::{self, Write};
use std::panic::{self, AssertUnwindSafe};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use exit::{Exit, Failure, tell};
use images::{Choice, ReadArgs};
use load::{Loaded, load};
use visa_jit::backend::becomes_error;
use visa_jit::container;
use visa_jit::engine::{Engine, EngineOptions, Kernel};
use visa_jit::isa::{DeviceName, doc};

/// What SPECs are, for `run --help`.
const SPEC_HELP: &str = "\
SPEC:
  TYPE:V[,V…]            a value, or a vector of values
  file:PATH              a buffer: the bytes of a file, or the elements of a .npy
  zero:BYTES             a buffer of zeros
  uninit:BYTES           a buffer that nothing was written to, for --check init
  fill:TYPE:VALUE:COUNT  a buffer of one value
  iota:TYPE:COUNT        a buffer of 0, 1, 2, …
  rand:TYPE:COUNT:SEED   a buffer of random numbers: integers of the whole range, floats in [0, 1)
  read-only:SPEC         any of these buffers, marked read-only: --check memory reports kernels that write to it
  local:BYTES            local memory
  image2d:FORMAT:WxH[:PATH]
                         an image, also image1d image1d_array image1d_buffer image2d_array image3d; FORMAT is r, rg or
                         rgba, then 8, 16 or 32, then unorm, snorm, int, uint or float; PATH is raw, .npy or .png
  sampler:ADDRESS[,linear][,normalized][,COMPARISON]
                         ADDRESS is none clamp clamp_to_edge repeat mirrored_repeat; COMPARISON, of reference and texel by
                         sample_c and the like, is never (as without) less equal lequal greater notequal gequal always
  null                   a null pointer
  TYPE is i8, u8, i16, u16, i32, u32, i64, u64, f16, f32 or f64

INDEX is an argument's index as `list` shows it; for .visaasm it is the BTI of a --surface.
After a fault under --oob trap, --print and --save show how far the kernel came.";

/// Runs Intel vISA kernels on this machine's CPU
#[derive(Parser, Debug)]
#[command(name = "visa-jit", version, after_help = exit::HELP)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

/// The same without all subcommands but one. To describe the others takes longer than a launch of code from the cache.
#[derive(Parser, Debug)]
#[command(name = "visa-jit", version)]
struct CliOfRun {
    #[command(subcommand)]
    command: RunCommand,
}

#[derive(Subcommand, Debug)]
enum RunCommand {
    /// Run a kernel
    #[command(after_help = run_help())]
    Run(Box<run::RunOneArgs>),
}

#[derive(Subcommand, Debug)]
enum Command {
    #[command(flatten)]
    Run(RunCommand),
    /// Compile kernels ahead of time, to object files and libraries
    #[command(after_help = exit::HELP)]
    Compile(Box<compile::CompileArgs>),
    /// Run a kernel under several code-generation strategies, and compare results and times
    #[command(after_help = run_help())]
    Compare(Box<compare::CompareArgs>),
    /// List the kernels of a file with their arguments
    #[command(after_help = exit::HELP)]
    List(ListArgs),
    /// Print the vISA text of a file's kernels
    #[command(after_help = exit::HELP)]
    Disasm {
        #[command(flatten)]
        kernel: KernelArgs,
        /// Write binary vISA, for the vendor's tools, to a file instead
        #[arg(long, value_name = "FILE.isa")]
        isa: Option<PathBuf>,
    },
    /// Print the intermediate representation of a kernel
    #[command(after_help = exit::HELP)]
    Ssa {
        #[command(flatten)]
        kernel: KernelArgs,
        /// Print it as lowering made it, before any pass
        #[arg(long)]
        raw: bool,
    },
    /// Print the machine code of a kernel
    #[command(after_help = exit::HELP)]
    Asm(Box<explain::CodeArgs>),
    /// Explain the code of a kernel: addresses, masks, bounds tests, splits, spills
    #[command(after_help = exit::HELP)]
    Explain(Box<explain::ExplainArgs>),
    /// Inspect and clean the cache of compiled kernels
    #[command(subcommand, after_help = exit::HELP)]
    Cache(cache::CacheCommand),
    /// Run a program with the OpenCL driver, on a virtual Intel GPU
    #[command(after_help = exec::HELP)]
    Exec(Box<exec::ExecArgs>),
    /// Say which compiler of OpenCL C is used, how it was found, and what devices it offers
    #[command(after_help = exit::HELP)]
    Ocloc(ocloc::OclocArgs),
    /// Print the table of instructions
    #[command(after_help = exit::HELP)]
    Isa,
    /// Compile one source for the parent process
    #[command(name = load::WORKER, hide = true)]
    Worker,
}

fn run_help() -> String {
    format!("{SPEC_HELP}\n\n{}", exit::HELP)
}

#[derive(Args, Debug)]
struct FileArgs {
    /// A zebin, a .cl or .spv source, .visaasm text, binary vISA (.isa), an ocloc archive, or a SYCL program or library
    file: PathBuf,
    /// The device to compile sources for, or what a zebin or .visaasm was compiled for
    #[arg(
        long,
        value_name = "skl|tgllp|acm-g10|pvc|bmg|ptl-h|…",
        visible_alias = "platform"
    )]
    device: Option<DeviceName>,
    #[command(flatten)]
    read: ReadArgs,
}

#[derive(Args, Debug)]
struct ListArgs {
    #[command(flatten)]
    file: FileArgs,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

#[derive(Args, Debug)]
struct KernelArgs {
    #[command(flatten)]
    file: FileArgs,
    /// One kernel of the file
    #[arg(long, value_name = "NAME")]
    kernel: Option<String>,
}

/// Runs the program with this process's arguments.
pub fn main() -> ExitCode {
    panic::set_hook(Box::new(|info| {
        if !becomes_error(info) {
            tell(&format!("internal error, please report: {info}"));
        }
    }));
    let exit = panic::catch_unwind(AssertUnwindSafe(parse_and_run)).unwrap_or(Exit::Internal as u8);
    ExitCode::from(exit)
}

fn parse(args: Vec<OsString>) -> Result<Command, clap::Error> {
    if args.get(1).is_some_and(|name| name == "run") {
        return Ok(Command::Run(CliOfRun::try_parse_from(args)?.command));
    }
    Ok(Cli::try_parse_from(args)?.command)
}

fn parse_and_run() -> u8 {
    let command = match parse(env::args_os().collect()) {
        Ok(command) => command,
        Err(error) => {
            // Help and version come this way too; a reader that went away is no error.
            let _ = error.print();
            return match error.exit_code() {
                0 => Exit::Fine as u8,
                _ => Exit::Usage as u8,
            };
        }
    };
    let mut out = io::BufWriter::new(io::stdout().lock());
    let result = match &command {
        Command::Exec(args) => exec::exec(args, &mut out),
        command => dispatch(command, &mut out).map(|exit| exit as u8),
    };
    let result = result.and_then(|exit| out.flush().map(|()| exit).map_err(Failure::output));
    // What a broken pipe left in the buffer must not be written again on drop.
    let _ = out.into_parts();
    match result {
        Ok(exit) => exit,
        Err(failure) => {
            if !failure.message.is_empty() {
                let title = match failure.exit {
                    Exit::Internal => "internal error, please report: ",
                    _ if failure.message.starts_with("error: ") => "",
                    _ => "error: ",
                };
                tell(&format!("{title}{}", failure.message));
            }
            failure.exit as u8
        }
    }
}

fn dispatch(command: &Command, out: &mut dyn Write) -> Result<Exit, Failure> {
    let text = match command {
        Command::Run(RunCommand::Run(args)) => return run::run(args, out),
        Command::Compare(args) => return compare::compare(args, out),
        Command::Worker => {
            container::serve_ocloc_worker().map_err(Failure::output)?;
            String::new()
        }
        Command::List(args) => args.list()?,
        Command::Disasm { kernel, isa: None } => {
            list::disasm(&kernel.load()?, kernel.kernel.as_deref())?
        }
        Command::Disasm {
            kernel,
            isa: Some(path),
        } => {
            binary::save(&kernel.load()?, kernel.kernel.as_deref(), path)?;
            String::new()
        }
        Command::Ssa { kernel, raw } => {
            kernel.look(|kernel| Ok(format!("{}\n", kernel.ssa(!raw)?)))?
        }
        Command::Asm(args) => {
            args.look(|kernel, _, made| asm::listing(kernel.name(), made.object(), kernel.text()))?
        }
        Command::Explain(args) => explain::explain(args)?,
        Command::Compile(_) | Command::Cache(_) | Command::Ocloc(_) => {
            let (text, exit) = match command {
                Command::Compile(args) => compile::compile(args)?,
                Command::Ocloc(args) => ocloc::ocloc(args)?,
                Command::Cache(command) => cache::cache(command)?,
                _ => (String::new(), Exit::Fine),
            };
            out.write_all(text.as_bytes()).map_err(Failure::output)?;
            return Ok(exit);
        }
        // It has exit codes of its own.
        Command::Exec(_) => String::new(),
        Command::Isa => doc::markdown(),
    };
    out.write_all(text.as_bytes()).map_err(Failure::output)?;
    Ok(Exit::Fine)
}

impl FileArgs {
    fn load(&self) -> Result<Loaded, Failure> {
        load(&self.file, self.choice())
    }

    fn choice(&self) -> Choice<'_> {
        Choice {
            image: self.read.image.as_deref(),
            kernel: None,
            device: self.device,
            versions: self.read.versions(),
            ..Choice::default()
        }
    }
}

impl ListArgs {
    fn list(&self) -> Result<String, Failure> {
        let file = &self.file;
        let bytes = load::read(&file.file)?;
        let name = file.file.display().to_string();
        if file.read.image.is_none()
            && let Some(images) = load::find_images(&name, &bytes)?
        {
            return images::list(&name, &images, self.json);
        }
        let loaded = load::load_bytes(&file.file, bytes, file.choice())?;
        list::list(&loaded, self.json)
    }
}

impl KernelArgs {
    fn load(&self) -> Result<Loaded, Failure> {
        let choice = Choice {
            kernel: self.kernel.as_deref(),
            ..self.file.choice()
        };
        load(&self.file.file, choice)
    }

    /// Loads the file and looks at one of its kernels.
    fn look(
        &self,
        look: impl FnOnce(&Kernel) -> Result<String, Failure>,
    ) -> Result<String, Failure> {
        let file = self.load()?;
        let options = EngineOptions {
            versions: file.versions,
            ..EngineOptions::default()
        };
        let program = file.program(&Engine::with_options(options)?)?;
        look(run::pick(&file.name, &program, self.kernel.as_deref())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
        CliOfRun::command().debug_assert();
    }

    /// What `run` says of itself does not depend on which of the two describes it.
    #[test]
    fn run_is_the_same_by_itself() {
        let help = |error: clap::Error| error.to_string();
        for more in [&["--help"][..], &["x", "--what"], &[]] {
            let args = [&["visa-jit", "run"], more].concat();
            let alone = parse(args.iter().map(OsString::from).collect()).map_err(help);
            let among = Cli::try_parse_from(&args).map(|cli| cli.command);
            assert_eq!(alone.unwrap_err(), help(among.unwrap_err()));
        }
    }

    #[test]
    fn exit_codes_are_documented() {
        for code in [
            Exit::Fine,
            Exit::Faulted,
            Exit::Usage,
            Exit::Unsupported,
            Exit::Environment,
            Exit::Stopped,
            Exit::Internal,
        ] {
            let line = format!("\n  {:<4}", code as u8);
            assert!(exit::HELP.contains(&line), "{code:?}");
        }
    }
}
