//! `--backend` and what goes with it: how kernels are executed.

use std::fs::File;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use clap::Args;

use super::exit::Failure;
use crate::engine::EngineOptions;
use crate::interp::{InterpOptions, Trace};

/// Arguments of commands that execute kernels.
#[derive(Args, Debug)]
pub struct BackendArgs {
    /// The code generator, or the reference interpreter: cranelift or interp
    #[arg(long, value_name = "NAME", default_value = "cranelift")]
    backend: String,
    /// interp only: stop with an error when a hardware thread has executed so many instructions
    #[arg(long, value_name = "INSTRUCTIONS")]
    fuel: Option<u64>,
    /// interp only, on one OS thread: a line for each executed instruction, on standard error or in a file
    #[arg(
        long,
        value_name = "FILE",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "-"
    )]
    trace: Option<PathBuf>,
}

impl BackendArgs {
    /// Options of the engine.
    pub fn options(&self) -> Result<EngineOptions, Failure> {
        let mut options = EngineOptions::default();
        match self.backend.as_str() {
            "interp" => options.interpret = Some(self.interpreter()?),
            other => check(other)?,
        }
        if options.interpret.is_none() && (self.fuel.is_some() || self.trace.is_some()) {
            return Err(Failure::usage(
                "--fuel and --trace are for the interpreter: add --backend interp",
            ));
        }
        Ok(options)
    }

    /// True when the lines of a trace have to keep their order.
    pub fn traces(&self) -> bool {
        self.trace.is_some()
    }

    fn interpreter(&self) -> Result<InterpOptions, Failure> {
        Ok(InterpOptions {
            fuel: self.fuel,
            trace: self.trace.as_deref().map(trace).transpose()?,
            ..InterpOptions::default()
        })
    }
}

fn trace(path: &Path) -> Result<Trace, Failure> {
    if path == Path::new("-") {
        return Ok(Trace::new(io::stderr()));
    }
    let file = File::create(path).map_err(|error| Failure::file("write", path, error))?;
    Ok(Trace::new(BufWriter::new(file)))
}

/// Refuses code generators that this program does not have.
fn check(name: &str) -> Result<(), Failure> {
    match name {
        "cranelift" => Ok(()),
        "llvm" if cfg!(feature = "llvm") => Err(Failure::unsupported(
            "the llvm backend is not built yet; use --backend cranelift",
        )),
        "llvm" => Err(Failure::unsupported(
            "this program was built without the llvm backend: install llvm-19-dev and build with \
             `cargo build --features llvm`, or use --backend cranelift",
        )),
        other => Err(Failure::usage(format!(
            "unknown backend `{other}`: expected cranelift, interp (the reference interpreter), or llvm \
             (cargo feature `llvm`, package llvm-19-dev)"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::super::exit::Exit;
    use super::*;

    fn args(backend: &str) -> BackendArgs {
        BackendArgs {
            backend: backend.to_owned(),
            fuel: Some(3),
            trace: None,
        }
    }

    #[test]
    fn backends() {
        assert!(check("cranelift").is_ok());
        assert_eq!(check("llvm").unwrap_err().exit, Exit::Unsupported);
        let other = check("gcc").unwrap_err();
        assert_eq!(other.exit, Exit::Usage);
        for name in ["cranelift", "interp", "llvm-19-dev"] {
            assert!(other.message.contains(name), "{}", other.message);
        }
    }

    #[test]
    fn fuel_is_the_interpreters() {
        let options = args("interp").options().unwrap();
        assert_eq!(options.interpret.unwrap().fuel, Some(3));
        assert_eq!(args("cranelift").options().unwrap_err().exit, Exit::Usage);
    }
}
