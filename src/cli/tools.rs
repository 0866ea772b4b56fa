//! `--perf` and `--gdb`: profilers and debuggers.

use std::path::PathBuf;

use clap::Args;

use super::exit::Failure;
use crate::engine::{EngineOptions, Tools};
use crate::lines::Text;

/// Arguments of commands that run kernels once.
#[derive(Args, Debug, Default)]
pub struct ToolArgs {
    /// Tell perf of compiled code: by /tmp/perf-PID.map, which `perf report` reads; by a jitdump with code and lines, for
    /// `perf record -k mono` and `perf inject --jit`; by both
    #[arg(long, value_name = "WAY", num_args = 0..=1, require_equals = true, default_missing_value = "both",
          value_parser = ["both", "map", "jitdump"])]
    perf: Option<String>,
    /// Tell GDB of compiled code, so that it can stop in kernels and show their lines
    #[arg(long)]
    gdb: bool,
    /// The lines that --perf and --gdb show: of vISA, or of the source if the vISA was compiled with -g
    #[arg(long, value_name = "TEXT", default_value = "visa", value_parser = ["visa", "source"])]
    lines: String,
    /// Where --perf and --gdb put jit-PID.dump and the vISA texts that they show; else $JITDUMPDIR, else the directory for
    /// temporary files. They stay there
    #[arg(long, value_name = "DIR")]
    tools_dir: Option<PathBuf>,
}

impl ToolArgs {
    /// An option that asks for one of them, if one is given.
    pub fn given(&self) -> Option<&'static str> {
        let perf = self.perf.is_some().then_some("--perf");
        perf.or(self.gdb.then_some("--gdb"))
    }

    /// Adds them to the options of an engine.
    pub fn apply(&self, options: &mut EngineOptions) -> Result<(), Failure> {
        if let (Some(option), true) = (self.given(), options.interpret.is_some()) {
            return Err(Failure::usage(format!(
                "{option} is about machine code: leave out --backend interp"
            )));
        }
        let perf = self.perf.as_deref();
        options.tools = Tools {
            perf_map: matches!(perf, Some("both" | "map")),
            jitdump: matches!(perf, Some("both" | "jitdump")),
            gdb: self.gdb,
            text: match self.lines.as_str() {
                "source" => Text::Source,
                _ => Text::Visa,
            },
            dir: self.tools_dir.clone(),
        };
        Ok(())
    }
}
