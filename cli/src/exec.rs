//! `exec`: runs a program with the OpenCL driver, and prints at the end what the driver reported.
//!
//! The driver is a library that the program's OpenCL loader loads, so it is controlled by environment variables. It writes what happened as
//! lines to a file in a temporary directory of this command.

mod happened;
mod sycl;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::SystemTime;

use clap::{Args, ValueEnum};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::{Handle, Signals};

use crate::colour::Colours;
use crate::exit::{Failure, tell};
use crate::findings::FindingArgs;
use crate::run::Oob;
use crate::spec::Seconds;
use crate::suppress::SuppressArgs;
use happened::Happened;
use visa_jit::backend::Checks;
use visa_jit::isa::DeviceName;

/// The driver's file.
const LIBRARY: &str = "libvisa_jit_opencl.so";
/// What `--install` writes.
const ICD: &str = "visa-jit.icd";
/// A program that cannot be run, and one that there is not: as shells have it.
const CANNOT_RUN: u8 = 126;
const NOT_FOUND: u8 = 127;
/// `--check` found something.
const FOUND: u8 = 1;

/// How `exec` ends, beside the program's own codes.
pub const HELP: &str = "\
Exit codes:
  those of the program; 128 and the signal's number if a signal ended it
  1    also: --check found something
  2    bad usage
  4    environment: the driver or a file is missing
  126  the program cannot be run
  127  there is no such program";

/// Arguments of `exec`.
#[derive(Args, Debug)]
pub struct ExecArgs {
    /// The virtual device, by the names that `ocloc -device` takes; several with commas between [default: bmg, or skl if the
    /// compiler does not know it]
    #[arg(long, value_name = "DEVICE[,…]", value_delimiter = ',')]
    device: Vec<DeviceName>,
    /// What accesses out of bounds do. With `report`, they are listed at the end, by kernel and line
    #[arg(long, value_enum, value_name = "POLICY")]
    oob: Option<Oob>,
    /// Which errors of kernels to look for, one or several (`memory,barrier`); they are listed at the end. If one is found, the exit code is 1
    /// instead of 0. See docs/checking.md
    #[arg(long, value_name = "WHAT", value_parser = check)]
    check: Option<Checks>,
    #[command(flatten)]
    suppress: SuppressArgs,
    /// Report the functions of the program that allocated and freed the memory of a wrong access. Source lines need a program that was
    /// compiled with -g
    #[arg(long)]
    backtrace: bool,
    /// Threads to spread work-groups over [default: one for each processor]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    threads: Option<u32>,
    /// Run the work-groups of each launch, and their threads between barriers, in a random order that SEED decides. Results that depend
    /// on SEED depend on an order that no GPU promises
    #[arg(long, value_name = "SEED")]
    schedule: Option<u64>,
    /// What executes kernels
    #[arg(long, value_name = "NAME", value_parser = ["cranelift", "llvm", "interp"])]
    backend: Option<String>,
    /// Run Cranelift's code at once, and LLVM's as soon as a thread in the background has compiled it
    #[arg(long)]
    tier: bool,
    /// Stop each launch after this time
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<Seconds>,
    /// Write what happened to a file, as one JSON object
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    #[command(flatten)]
    findings: FindingArgs,
    /// The driver [default: beside this command, in `../lib`, or where cargo builds it]
    #[arg(long, value_name = "FILE")]
    library: Option<PathBuf>,
    /// The program uses SYCL: its runtime takes this device (`ONEAPI_DEVICE_SELECTOR=opencl:gpu`), and finds the libraries of the
    /// environment that the program lies in
    #[arg(long)]
    sycl: bool,
    /// Print the variables instead of running a program: for `eval` in a shell, or as plain lines for files of CI systems
    #[arg(
        long,
        value_enum,
        value_name = "FORM",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "shell",
        conflicts_with_all = ["command", "report", "sarif", "html", "install"]
    )]
    print_env: Option<Form>,
    /// Write `visa-jit.icd` to a directory, such as /etc/OpenCL/vendors: every OpenCL program finds the driver then
    #[arg(long, value_name = "DIR", conflicts_with_all = ["command", "report", "sarif", "html"])]
    install: Option<PathBuf>,
    /// The program and its arguments
    #[arg(
        value_name = "CMD",
        last = true,
        required_unless_present_any = ["print_env", "install"]
    )]
    command: Vec<OsString>,
}

/// How `--print-env` writes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Form {
    /// `export NAME='VALUE'`
    Shell,
    /// `NAME=VALUE`
    Plain,
}

/// Carries `exec` out; the exit code.
pub fn exec(args: &ExecArgs, out: &mut dyn Write) -> Result<u8, Failure> {
    let library = match &args.library {
        Some(named) => absolute(named)?,
        None => find_library()?,
    };
    if let Some(folder) = &args.install {
        let path = install(folder, &library)?;
        writeln!(out, "{}", path.display()).map_err(Failure::output)?;
        return Ok(0);
    }
    let variables = args.variables(&library)?;
    if let Some(form) = args.print_env {
        out.write_all(printed(&variables, form)?.as_bytes())
            .map_err(Failure::output)?;
        return Ok(0);
    }
    let folder = tempfile::tempdir()
        .map_err(|error| Failure::environment(format!("cannot make a directory: {error}")))?;
    let told = folder.path().join("report");
    let Some((program, rest)) = args.command.split_first() else {
        return Err(Failure::usage("no program is given"));
    };
    let mut command = Command::new(program);
    command.args(rest).envs(variables);
    command.env("VISA_JIT_REPORT", &told);
    let (code, signal) = match run(command) {
        Ok(status) => ending(status),
        Err(error) => {
            tell(&format!(
                "error: cannot run {}: {error}",
                program.to_string_lossy()
            ));
            return Ok(match error.kind() {
                io::ErrorKind::NotFound => NOT_FOUND,
                _ => CANNOT_RUN,
            });
        }
    };
    let happened = Happened::read(&told).map_err(|e| Failure::file("read", &told, e))?;
    let text = happened.text(Colours::of_errors());
    if !text.is_empty() {
        tell(&text);
    }
    let code = match (args.check, code) {
        (Some(_), 0) if happened.has_faults() => FOUND,
        _ => code,
    };
    if let Some(path) = &args.report {
        let json = happened.json(&args.command, code, signal)?;
        fs::write(path, json).map_err(|error| Failure::file("write", path, error))?;
    }
    let words = args.command.iter().map(|word| word.to_string_lossy());
    let about = format!("exec -- {}", words.collect::<Vec<_>>().join(" "));
    args.findings.write(&happened.findings(), &about)?;
    Ok(code)
}

impl ExecArgs {
    /// What the loader and the driver are told.
    fn variables(&self, library: &Path) -> Result<Vec<(&'static str, OsString)>, Failure> {
        let me = std::env::current_exe()
            .map_err(|error| Failure::environment(format!("this command's own file: {error}")))?;
        let mut all: Vec<(&'static str, OsString)> = vec![
            // ocl-icd's, which takes the library itself, and that of Khronos' loader.
            ("OCL_ICD_VENDORS", library.into()),
            ("OCL_ICD_FILENAMES", library.into()),
            ("VISA_JIT_COMMAND", me.into()),
        ];
        if !self.device.is_empty() {
            let names: Vec<&str> = self.device.iter().map(|d| d.as_str()).collect();
            all.push(("VISA_JIT_DEVICE", names.join(",").into()));
        }
        if let Some(name) = self.oob.and_then(|oob| oob.to_possible_value()) {
            all.push(("VISA_JIT_OOB", name.get_name().into()));
        }
        if let Some(check) = self.check {
            all.push(("VISA_JIT_CHECK", check.name().into()));
        }
        let rules = self.suppress.rules()?;
        if !rules.is_empty() {
            all.push(("VISA_JIT_SUPPRESS", rules.to_string().into()));
        }
        if self.suppress.race_same_value {
            all.push(("VISA_JIT_RACE_SAME_VALUE", "1".into()));
        }
        if self.backtrace {
            all.push(("VISA_JIT_BACKTRACE", "1".into()));
        }
        if let Some(threads) = self.threads {
            all.push(("VISA_JIT_THREADS", threads.to_string().into()));
        }
        if let Some(seed) = self.schedule {
            all.push(("VISA_JIT_SCHEDULE", seed.to_string().into()));
        }
        if let Some(backend) = &self.backend {
            all.push(("VISA_JIT_BACKEND", backend.into()));
        }
        if self.tier {
            all.push(("VISA_JIT_TIER", "1".into()));
        }
        if let Some(Seconds(time)) = self.timeout {
            all.push(("VISA_JIT_TIMEOUT", time.as_secs_f64().to_string().into()));
        }
        if self.sycl {
            let program = self.command.first();
            all.extend(sycl::variables(program.map(OsString::as_os_str)));
        }
        Ok(all)
    }
}

/// `--check`.
fn check(names: &str) -> Result<Checks, String> {
    Checks::parse(names)
}

fn absolute(path: &Path) -> Result<PathBuf, Failure> {
    path.canonicalize()
        .map_err(|error| Failure::file("read", path, error))
}

/// The driver that belongs to this command.
fn find_library() -> Result<PathBuf, Failure> {
    let me = std::env::current_exe().and_then(|path| path.canonicalize());
    let me = me.map_err(|error| {
        Failure::environment(format!("cannot tell where this command is: {error}"))
    })?;
    let folder = me.parent().unwrap_or(Path::new("/"));
    let above = folder.parent().unwrap_or(folder);
    let places = [
        folder.to_owned(),
        folder.join("deps"),
        above.join("lib"),
        above.join("lib").join("visa-jit"),
    ];
    let age = |file: &Path| fs::metadata(file).and_then(|data| data.modified()).ok();
    let mut found: Option<(PathBuf, SystemTime)> = None;
    for place in &places {
        let file = place.join(LIBRARY);
        // Tests of the driver build it only below the folder where other builds put it: the newest is meant.
        if let Some(age) = age(&file)
            && found.as_ref().is_none_or(|(_, other)| age > *other)
        {
            found = Some((file, age));
        }
    }
    match found {
        Some((file, _)) => absolute(&file),
        None => {
            let places: Vec<String> = places.iter().map(|p| p.display().to_string()).collect();
            Err(Failure::environment(format!(
                "the OpenCL driver {LIBRARY} is in none of {}: in the sources of visa-jit, \
                 `cargo build --release -p visa-jit-opencl` builds it; elsewhere, --library names it",
                places.join(", ")
            )))
        }
    }
}

/// Lets loaders find the library.
fn install(folder: &Path, library: &Path) -> Result<PathBuf, Failure> {
    fs::create_dir_all(folder).map_err(|error| Failure::file("make", folder, error))?;
    let path = folder.join(ICD);
    let mut text = library.as_os_str().to_owned();
    text.push("\n");
    fs::write(&path, text.as_encoded_bytes())
        .map_err(|error| Failure::file("write", &path, error))?;
    Ok(path)
}

fn printed(variables: &[(&str, OsString)], form: Form) -> Result<String, Failure> {
    let mut text = String::new();
    for (name, value) in variables {
        let value = value.to_str().filter(|value| !value.contains('\n'));
        let value = value.ok_or_else(|| {
            Failure::environment(format!("the value of {name} cannot be written as text"))
        })?;
        match form {
            Form::Shell => {
                let quoted = value.replace('\'', r"'\''");
                text.push_str(&format!("export {name}='{quoted}'\n"));
            }
            Form::Plain => text.push_str(&format!("{name}={value}\n")),
        }
    }
    Ok(text)
}

/// Runs a program to its end. Signals that are for the program do not end this command first.
fn run(mut command: Command) -> io::Result<ExitStatus> {
    // A terminal sends the first two to the program as well.
    let mut signals = Signals::new([SIGINT, SIGQUIT, SIGTERM, SIGHUP])?;
    let stop = Stop(signals.handle());
    let mut child = command.spawn()?;
    let pid = Pid::from_child(&child);
    let forward = move || {
        for signal in signals.forever() {
            let passed_on = match signal {
                SIGTERM => Signal::TERM,
                SIGHUP => Signal::HUP,
                _ => continue,
            };
            // A program that has ended needs no signal.
            let _ = kill_process(pid, passed_on);
        }
    };
    let forwarder = std::thread::Builder::new().spawn(forward)?;
    let status = wait(&mut child);
    drop(stop);
    // It does nothing that could fail.
    let _ = forwarder.join();
    status
}

/// Ends the forwarding of signals.
struct Stop(Handle);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.close();
    }
}

fn wait(child: &mut Child) -> io::Result<ExitStatus> {
    loop {
        match child.wait() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// The exit code for a program's end, and the signal that ended it.
fn ending(status: ExitStatus) -> (u8, Option<i32>) {
    let signal = status.signal();
    let code = match (status.code(), signal) {
        (Some(code), _) => code & 0xFF,
        (None, Some(signal)) => 128_i32.saturating_add(signal),
        (None, None) => 255,
    };
    (u8::try_from(code).unwrap_or(u8::MAX), signal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_quoted_for_shells() {
        let all = [("A", OsString::from("it's $x"))];
        let shell = printed(&all, Form::Shell).unwrap();
        assert_eq!(shell, "export A='it'\\''s $x'\n");
        assert_eq!(printed(&all, Form::Plain).unwrap(), "A=it's $x\n");
        let broken = [("A", OsString::from("a\nb"))];
        assert!(printed(&broken, Form::Plain).is_err());
    }

    #[test]
    fn ends_are_codes() {
        assert_eq!(ending(ExitStatus::from_raw(7 << 8)), (7, None));
        assert_eq!(ending(ExitStatus::from_raw(9)), (137, Some(9)));
    }
}
