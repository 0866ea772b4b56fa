//! `--suppress`: findings that are known.

use std::path::Path;

use clap::Args;

use crate::exit::Failure;
use visa_jit::engine::Suppressions;

/// Findings that are left out of reports.
#[derive(Args, Clone, Debug, Default)]
pub struct SuppressArgs {
    /// Leave findings out of the report and the exit code: KIND or KIND:WHERE, where KIND is bounds, buffer, read-only, alignment, barrier, race, init or all, and
    /// WHERE a kernel, a source file, KERNEL:LINE or FILE:LINE, and @ARGUMENT may follow, by name or number; @FILE reads such rules from a file, one on a line. May be repeated
    #[arg(long, value_name = "RULE")]
    suppress: Vec<String>,
    /// With --check race, also report races of a write that leaves the value as it is
    #[arg(long)]
    pub race_same_value: bool,
}

impl SuppressArgs {
    /// The rules.
    pub fn rules(&self) -> Result<Suppressions, Failure> {
        let mut all = String::new();
        for rule in &self.suppress {
            let text = match rule.strip_prefix('@') {
                None => rule.clone(),
                Some(file) => {
                    let path = Path::new(file);
                    std::fs::read_to_string(path)
                        .map_err(|error| Failure::file("read", path, error))?
                }
            };
            let rules = Suppressions::parse(&text).map_err(|error| {
                let from = rule.strip_prefix('@').map_or("--suppress", |file| file);
                Failure::usage(format!("{from}: {error}"))
            })?;
            all.push_str(&rules.to_string());
        }
        Suppressions::parse(&all).map_err(|error| Failure::usage(error.to_string()))
    }
}
