//! The top error: one variant a layer.

use crate::backend::BackendError;
use crate::container::{Blame, ContainerError};
use crate::front::text::{Diagnostics, ErrorKind};
use crate::interp::InterpError;
use crate::lower::LowerError;
use crate::valid::ValidErrors;
use visa_runtime::{LaunchError, LaunchStatus, MemoryError};

/// Whose turn it is to act on an error; decides the exit code of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// The input or the call is wrong.
    Input,
    /// Right, but not implemented.
    Unsupported,
    /// Something on the machine is missing.
    Environment,
    /// Our bug.
    Internal,
    /// It was stopped, as asked for.
    Stopped,
}

/// Any error of the library.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A container could not be read, or a source not compiled to one.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// vISA text is malformed.
    #[error("{0}")]
    Text(Diagnostics),
    /// A kernel breaks rules of the ISA.
    #[error("kernel `{kernel}` is not valid:\n{errors}")]
    Valid {
        /// Kernel.
        kernel: String,
        /// Broken rules.
        errors: ValidErrors,
    },
    /// A kernel could not be lowered.
    #[error("kernel `{kernel}`: {error}")]
    Lower {
        /// Kernel.
        kernel: String,
        /// Why.
        error: LowerError,
    },
    /// A kernel could not be interpreted, or not to its end.
    #[error("kernel `{kernel}`: {error}")]
    Interp {
        /// Kernel.
        kernel: String,
        /// Why.
        error: InterpError,
    },
    /// A kernel needs something of its environment that is not implemented.
    #[error("kernel `{kernel}`: unsupported: {what}")]
    Unsupported {
        /// Kernel.
        kernel: String,
        /// What.
        what: String,
    },
    /// Code generation failed.
    #[error("{0}")]
    Backend(std::sync::Arc<BackendError>),
    /// A bug: a pass or lowering made malformed SSA.
    #[error("internal error: kernel `{kernel}`: {what}")]
    Internal {
        /// Kernel.
        kernel: String,
        /// Details.
        what: String,
    },
    /// A launch does not fit its kernel.
    #[error("{0}")]
    Launch(std::sync::Arc<LaunchError>),
    /// Arguments do not fit the kernel; all problems in one message.
    #[error("kernel `{kernel}`: {what}")]
    Arguments {
        /// Kernel.
        kernel: String,
        /// What is wrong.
        what: String,
    },
    /// The file has no such kernel.
    #[error("no kernel `{name}`; the file has {}", known.join(", "))]
    NoKernel {
        /// Asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// The platform is not known.
    #[error("cannot tell which device the file was compiled for ({reason}); name it with --device")]
    UnknownPlatform {
        /// Why not.
        reason: String,
    },
    /// A library of compiled kernels cannot be used.
    #[error("{file}: {what}")]
    Library {
        /// The file.
        file: String,
        /// Why not.
        what: String,
        /// The file may be fine, but not on this machine.
        unusable: bool,
    },
    /// A launch ended before its code was there.
    #[error("kernel `{kernel}` was stopped while it was compiled: {}", match status {
        LaunchStatus::DeadlineExceeded => "its deadline passed",
        _ => "it was interrupted",
    })]
    Stopped {
        /// Kernel.
        kernel: String,
        /// By what: a deadline or an interrupter.
        status: LaunchStatus,
    },
    /// Device memory or executable memory.
    #[error("{0}")]
    Memory(String),
    /// Profilers and debuggers cannot be told of code.
    #[error("{what}")]
    Tools {
        /// What failed.
        what: String,
    },
}

impl Error {
    /// Whose turn it is.
    pub fn exit_class(&self) -> Class {
        match self {
            Error::Container(e) => match e.blame() {
                Blame::Input | Blame::Limit => Class::Input,
                Blame::Unsupported => Class::Unsupported,
                Blame::Environment => Class::Environment,
            },
            Error::Text(d) if d.errors.iter().all(|e| e.kind == ErrorKind::Unsupported) => {
                Class::Unsupported
            }
            Error::Lower {
                error: LowerError::Unsupported { .. } | LowerError::TooLarge { .. },
                ..
            }
            | Error::Interp {
                error: InterpError::Unsupported { .. },
                ..
            }
            | Error::Unsupported { .. } => Class::Unsupported,
            Error::Interp {
                error: InterpError::Trace { .. },
                ..
            } => Class::Environment,
            Error::Backend(e) => match **e {
                BackendError::TooLarge { .. } | BackendError::Strategy { .. } => Class::Unsupported,
                BackendError::Environment { .. } => Class::Environment,
                BackendError::Internal { .. } => Class::Internal,
            },
            Error::Internal { .. } => Class::Internal,
            Error::Stopped { .. } => Class::Stopped,
            Error::Memory(_) | Error::Tools { .. } | Error::Library { unusable: true, .. } => {
                Class::Environment
            }
            _ => Class::Input,
        }
    }
}

impl From<Diagnostics> for Error {
    fn from(e: Diagnostics) -> Error {
        Error::Text(e)
    }
}

impl From<BackendError> for Error {
    fn from(e: BackendError) -> Error {
        Error::Backend(std::sync::Arc::new(e))
    }
}

impl From<LaunchError> for Error {
    fn from(e: LaunchError) -> Error {
        let interp = match &e {
            LaunchError::Program { kernel, error } => {
                let error = error.downcast_ref::<InterpError>();
                error.map(|error| (kernel.clone(), error.clone()))
            }
            _ => None,
        };
        match interp {
            // As compiled code ends then.
            Some((kernel, InterpError::Alone { pos })) => {
                let line = pos.line;
                Error::Launch(std::sync::Arc::new(LaunchError::Alone { kernel, line }))
            }
            Some((kernel, InterpError::Deadlock)) => {
                Error::Launch(std::sync::Arc::new(LaunchError::Deadlock { kernel }))
            }
            Some((kernel, error)) => Error::Interp { kernel, error },
            None => Error::Launch(std::sync::Arc::new(e)),
        }
    }
}

impl From<MemoryError> for Error {
    fn from(e: MemoryError) -> Error {
        Error::Memory(e.to_string())
    }
}

impl From<visa_runtime::PoolError> for Error {
    fn from(e: visa_runtime::PoolError) -> Error {
        Error::Memory(e.to_string())
    }
}

impl From<crate::backend::InstallError> for Error {
    fn from(e: crate::backend::InstallError) -> Error {
        Error::Memory(e.to_string())
    }
}
