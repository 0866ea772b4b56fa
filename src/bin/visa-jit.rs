//! The command line; see [`visa_jit::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    visa_jit::cli::main()
}
