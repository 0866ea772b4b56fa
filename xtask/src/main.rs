//! Project chores: regenerates checked-in files.
//!
//! `cargo run -p xtask -- docs` writes `docs/isa.md` from the opcode table;
//! `cargo run --release -p xtask -- accuracy` measures the math instructions over all arguments (half an hour of
//! processor time) and writes the tables of `docs/accuracy.md`; names such as `exp` or `hf:exp` restrict it.
//! `cargo run -p xtask -- mappings` runs all tests under `strace` and fails if memory was writable and executable; arguments
//! go to `cargo test --workspace`;
//! `cargo run --release -p xtask -- mutants` runs 200,000 damaged kernels on the interpreter and Cranelift, with `--features llvm` a
//! tenth of them on LLVM too, and fails where engines differ; a number, or numbers `FROM..TO`, say which;
//! `cargo run --release -p xtask --features llvm -- agree [--launches N] DIR...` launches every kernel of the containers below folders at random
//! and compares the engines; for kernels that are not checked in;
//! `cargo run --release -p xtask --features llvm -- compile-times DIR...` compiles every kernel of the containers below folders by itself,
//! and prints how long each code generator takes;
//! `cargo run --release -p xtask -- compilers OLD NEW` launches kernels of the same name, as two versions of the compiler made them, on
//! the same arguments and compares what they compute; without folders those that are checked in for `acm-g10` and `pvc`;
//! `cargo run --release -p xtask -- clients [--short] [--install] [NAME]...` runs OpenCL programs that are installed on the virtual GPU,
//! and writes the table of `docs/clients.md`; it fails if something does that is not in `clients/known.txt`;
//! `cargo run -p xtask -- current-ocloc` unpacks the compiler of Debian's development branch under `target/ocloc` and prints the
//! program that runs it, for `VISA_JIT_OCLOC`;
//! `cargo run -p xtask -- current-kernels [DEVICE]...` compiles the kernels of the tests with it, for devices of which no zebins
//! are checked in too, and runs their tests;
//! `cargo run -p xtask -- dpnp [--sample | WORD...]` runs the tests of `dpctl` and `dpnp` on the virtual GPU, all of them, a sample, or
//! the files with a word in their path, and prints a table;
//! `cargo run --release -p xtask -- planted` runs 2,000 random kernels with one planted error each under the check that finds it, on the
//! interpreter and Cranelift, with `--features llvm` on LLVM too, prints a table, and fails where engines differ; a number, or numbers
//! `FROM..TO`, say which of each kind, and names of checks which kinds;
//! `cargo run -p xtask -- opencl-bindings` makes the OpenCL driver's bindings of Debian's `opencl-c-headers`, with `bindgen`.

mod accuracy;
mod agree;
mod clients;
mod compile_times;
mod compilers;
mod current_kernels;
mod current_ocloc;
mod dpnp;
mod mappings;
mod mutants;
mod opencl_bindings;
mod planted;

use std::path::PathBuf;
use std::process::ExitCode;

/// Numbers `FROM..TO` of generated cases, or the first ones: as many as a single number says, or else `count`.
fn seeds(arguments: &[String], count: u64) -> Result<std::ops::Range<u64>, String> {
    let Some(text) = arguments.first() else {
        return Ok(0..count);
    };
    let (from, to) = text.split_once("..").unwrap_or(("0", text));
    let number = |text: &str| text.parse().map_err(|_| format!("`{text}` is no number"));
    Ok(number(from)?..number(to)?)
}

fn main() -> ExitCode {
    let task = std::env::args().nth(1).unwrap_or_default();
    let arguments: Vec<_> = std::env::args().skip(2).collect();
    let done = match task.as_str() {
        "docs" => docs().map_err(|e| e.to_string()),
        "accuracy" => accuracy::run(&arguments),
        "agree" => agree::run(&arguments),
        "clients" => clients::run(&arguments),
        "compile-times" => compile_times::run(&arguments),
        "compilers" => compilers::run(&arguments),
        "current-kernels" => current_kernels::run(&arguments),
        "current-ocloc" => current_ocloc::run(),
        "dpnp" => dpnp::run(&arguments),
        "mappings" => mappings::run(&arguments),
        "mutants" => mutants::run(&arguments),
        "opencl-bindings" => opencl_bindings::run(),
        "planted" => planted::run(&arguments),
        "traced" => mappings::traced(&arguments),
        _ => {
            eprintln!(
                "usage: cargo run -p xtask -- docs | accuracy [FUNCTION]... | agree [--launches N] DIR... | clients [--short] [--install] [NAME]... | compile-times DIR... | compilers [OLD NEW] | current-kernels [DEVICE]... | current-ocloc | dpnp [--sample | WORD...] | mappings [ARGUMENT]... | \
                 mutants [COUNT | FROM..TO] | opencl-bindings | planted [COUNT | FROM..TO] [CHECK…]"
            );
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
