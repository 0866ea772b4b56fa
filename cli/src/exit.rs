//! How the program ends: one exit code a kind of failure, and the message that goes with it.

use std::fmt::Display;
use std::io::{self, Write};
use std::path::Path;

use visa_jit::container::{Blame, ContainerError};
use visa_jit::engine::{Class, Error};
use visa_jit::front::text::ErrorKind;

/// Exit codes; scripts rely on the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Exit {
    /// All went well.
    Fine = 0,
    /// The kernel accessed memory out of bounds under `--oob trap`, or an assertion of it failed.
    Faulted = 1,
    /// The command line or an input file is wrong.
    Usage = 2,
    /// The input is right, but asks for something that is not implemented.
    Unsupported = 3,
    /// A file, the compiler or memory is missing.
    Environment = 4,
    /// `--timeout` or `--time-limit` ended the work.
    Stopped = 5,
    /// A bug of this program.
    Internal = 70,
}

/// The codes as `--help` shows them.
pub const HELP: &str = "\
Exit codes:
  0   fine
  1   the kernel accessed memory out of bounds under --oob trap, or an assertion of it failed
  2   bad usage, or malformed input
  3   unsupported instruction or feature
  4   environment: a file, ocloc or memory is missing
  5   the time given by --timeout or --time-limit was over
  70  a bug in visa-jit";

/// Why the program ends early.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Exit code.
    pub exit: Exit,
    /// For people; nothing is printed when it is empty.
    pub message: String,
}

impl Failure {
    /// The command line or the input is wrong.
    pub fn usage(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::Usage,
            message: message.into(),
        }
    }

    /// Not implemented.
    pub fn unsupported(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::Unsupported,
            message: message.into(),
        }
    }

    /// Something on this machine is missing.
    pub fn environment(message: impl Into<String>) -> Failure {
        Failure {
            exit: Exit::Environment,
            message: message.into(),
        }
    }

    /// A file that cannot be read or written.
    pub fn file(verb: &str, path: &Path, error: impl Display) -> Failure {
        Failure::environment(format!("cannot {verb} {}: {error}", path.display()))
    }

    /// Standard output that cannot be written. A reader that went away is no failure.
    pub fn output(error: io::Error) -> Failure {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Failure {
                exit: Exit::Fine,
                message: String::new(),
            };
        }
        Failure::environment(format!("cannot write to standard output: {error}"))
    }
}

/// Tells people something on standard error; a standard error that is closed is no reason to stop.
pub fn tell(message: &str) {
    let _ = writeln!(io::stderr(), "{}", message.trim_end());
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let exit = match error.exit_class() {
            // Text whose only fault is that it needs what is not modelled is not malformed.
            _ if is_unsupported_text(&error) => Exit::Unsupported,
            Class::Input => Exit::Usage,
            Class::Unsupported => Exit::Unsupported,
            Class::Environment => Exit::Environment,
            Class::Internal => Exit::Internal,
            Class::Stopped => Exit::Stopped,
        };
        Failure {
            exit,
            message: error.to_string(),
        }
    }
}

fn is_unsupported_text(error: &Error) -> bool {
    match error {
        Error::Text(found) => found
            .errors
            .iter()
            .all(|error| error.kind == ErrorKind::Unsupported),
        _ => false,
    }
}

impl From<ContainerError> for Failure {
    fn from(error: ContainerError) -> Failure {
        let exit = match error.blame() {
            Blame::Input | Blame::Limit => Exit::Usage,
            Blame::Unsupported => Exit::Unsupported,
            Blame::Environment => Exit::Environment,
        };
        Failure {
            exit,
            message: error.to_string(),
        }
    }
}

impl From<visa_runtime::MemoryError> for Failure {
    fn from(error: visa_runtime::MemoryError) -> Failure {
        Failure::environment(error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_errors_have_their_codes() {
        let kernel = || "k".to_owned();
        let what = || "w".to_owned();
        let code = |error: Error| Failure::from(error).exit;
        let internal = Error::Internal {
            kernel: kernel(),
            what: what(),
        };
        assert_eq!(code(internal), Exit::Internal);
        let unsupported = Error::Unsupported {
            kernel: kernel(),
            what: what(),
        };
        assert_eq!(code(unsupported), Exit::Unsupported);
        assert_eq!(code(Error::Memory(what())), Exit::Environment);
        let missing = ContainerError::OclocMissing { detail: what() };
        assert_eq!(Failure::from(missing).exit, Exit::Environment);
        let broken = ContainerError::Inconsistent(what());
        assert_eq!(code(Error::Container(broken)), Exit::Usage);
    }

    #[test]
    fn a_broken_pipe_is_silent() {
        let failure = Failure::output(io::ErrorKind::BrokenPipe.into());
        assert_eq!((failure.exit, failure.message.as_str()), (Exit::Fine, ""));
        let failure = Failure::output(io::ErrorKind::StorageFull.into());
        assert_eq!(failure.exit, Exit::Environment);
    }
}
