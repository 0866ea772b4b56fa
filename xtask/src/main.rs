//! Project chores: regenerates checked-in files.
//!
//! `cargo run -p xtask -- docs` writes `docs/isa.md` from the opcode table.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let done = match task.as_str() {
        "docs" => docs(),
        _ => {
            eprintln!("usage: cargo run -p xtask -- docs");
            return ExitCode::from(2);
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{task}: {e}");
            ExitCode::FAILURE
        }
    }
}

/// Writes the generated documentation.
fn docs() -> std::io::Result<()> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/isa.md"));
    if let Some(dir) = path.parent() {
        std::fs::create_dir_all(dir)?;
    }
    std::fs::write(path, visa_jit::isa::doc::markdown())
}
