//! `--perf` and `--gdb`: profilers and debuggers.

use std::path::PathBuf;

use clap::Args;

use super::exit::Failure;
use visa_jit::engine::{EngineOptions, Tools};
use visa_jit::lines::Text;

/// Arguments of commands that run kernels once.
#[derive(Args, Debug, Default)]
pub struct ToolArgs {
    /// Register compiled code with Linux perf: `map` writes /tmp/perf-PID.map, which `perf report` reads; `jitdump` writes code
    /// and lines, for `perf record -k mono` and `perf inject --jit`; `both` is meant if left out
    #[arg(long, value_name = "WAY", num_args = 0..=1, require_equals = true, default_missing_value = "both",
          value_parser = ["both", "map", "jitdump"])]
    perf: Option<String>,
    /// Register compiled code with GDB, which can then stop in kernels and show their lines
    #[arg(long)]
    gdb: bool,
    /// Which lines --perf and --gdb show: those of the vISA, or of the source if the kernel was compiled with -g
    #[arg(long, value_name = "TEXT", default_value = "visa", value_parser = ["visa", "source"])]
    lines: String,
    /// Directory for jit-PID.dump and the vISA texts of --perf and --gdb, which are not deleted; if left out, $JITDUMPDIR, or
    /// the directory for temporary files
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
