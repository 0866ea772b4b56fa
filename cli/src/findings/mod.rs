//! What was found wrong with kernels, and the files that it is written to: `--sarif` and `--html`.

mod page;
mod sarif;

pub use page::on_disk;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::Args;

use crate::exit::Failure;
use visa_jit::lines::SourceLine;

/// An error of a kernel, at one instruction.
#[derive(Clone, Debug)]
pub struct Finding {
    /// `bounds`, `buffer`, `read-only`, `alignment`, `barrier`, `race` or `init`.
    pub kind: String,
    /// Kernel.
    pub kernel: String,
    /// A sentence about it.
    pub text: String,
    /// Line of the source, where the compiler said so.
    pub source: Option<SourceLine>,
    /// The text of that source, where it is known. Else it may be on disk.
    pub source_text: Option<Arc<str>>,
    /// Line of the vISA text.
    pub line: u64,
    /// Lanes that it was seen in.
    pub count: u64,
}

/// What is reported: identifier and short description.
const RULES: [(&str, &str); 7] = [
    ("bounds", "An access out of bounds"),
    ("buffer", "An access that misses its buffer"),
    ("read-only", "A write to what kernels only read"),
    (
        "alignment",
        "An atomic at an address that is no multiple of its element",
    ),
    (
        "barrier",
        "A barrier that not all work-items of a work-group reach",
    ),
    ("race", "Accesses of the same bytes that no barrier orders"),
    ("init", "A use of a value that was never written"),
];

/// Files that findings go to.
#[derive(Args, Debug)]
pub struct FindingArgs {
    /// Write accesses out of bounds and what checks found to a file, as SARIF 2.1.0, which code review tools read
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write the same to a file, as a web page with the sources and marks at the lines
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

impl FindingArgs {
    /// Writes the files that were asked for. `about` says what ran.
    ///
    /// # Errors
    /// Where one cannot be written.
    pub fn write(&self, findings: &[Finding], about: &str) -> Result<(), Failure> {
        if let Some(path) = &self.sarif {
            put(path, &sarif::document(findings)?)?;
        }
        if let Some(path) = &self.html {
            put(path, &page::page(findings, about))?;
        }
        Ok(())
    }
}

fn put(path: &Path, text: &str) -> Result<(), Failure> {
    std::fs::write(path, text).map_err(|error| Failure::file("write", path, error))
}

#[cfg(test)]
fn finding(kind: &str, source: Option<(&str, u32)>) -> Finding {
    Finding {
        kind: kind.to_owned(),
        kernel: "k".to_owned(),
        text: "what is wrong".to_owned(),
        source: source.map(|(file, line)| SourceLine {
            file: file.to_owned(),
            line,
        }),
        source_text: None,
        line: 7,
        count: 3,
    }
}
