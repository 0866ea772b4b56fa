//! The one error type of this layer.

use std::path::PathBuf;

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blame {
    /// The file or the source is wrong.
    Input,
    /// The input may be right, but is larger than a fixed limit.
    Limit,
    /// The input is right, but this is not implemented.
    Unsupported,
    /// Something on this machine is missing or misbehaves.
    Environment,
}

/// Why a container could not be read, or a source not compiled.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The bytes are another kind of file.
    #[error("not a zebin: {found}{}{hint}", if hint.is_empty() { "" } else { "; " })]
    NotZebin {
        /// What the file looks like.
        found: String,
        /// What to do about it; may be empty.
        hint: String,
    },
    /// The ELF structure is broken.
    #[error("malformed zebin at byte {offset:#x}: {message}")]
    Malformed {
        /// Offset in the file of the broken structure.
        offset: u64,
        /// What is wrong.
        message: String,
    },
    /// Text that must be UTF-8 is not.
    #[error("section {section} is not UTF-8 text (first bad byte at {offset:#x} of the file)")]
    NotText {
        /// Section name.
        section: String,
        /// Offset in the file of the first bad byte.
        offset: u64,
    },
    /// `.ze_info` is not valid YAML or not of the expected shape.
    #[error(".ze_info line {line}, column {column}: {message}")]
    ZeInfo {
        /// One-based line inside `.ze_info`; 0 when unknown.
        line: u64,
        /// One-based column; 0 when unknown.
        column: u64,
        /// What is wrong.
        message: String,
    },
    /// `.ze_info` is well-formed, but a kernel's entry makes no sense.
    #[error(".ze_info, kernel `{kernel}`: {message}")]
    KernelInfo {
        /// Kernel name.
        kernel: String,
        /// What is wrong.
        message: String,
    },
    /// Parts of the file contradict each other.
    #[error("inconsistent zebin: {0}")]
    Inconsistent(String),
    /// The zebin holds native code only.
    #[error(
        "the zebin holds {kernels} kernel(s) but no vISA text: compile it with \
         `ocloc … --format zebin -internal_options \"-ze-emit-zebin-visa-sections\"`"
    )]
    MissingVisa {
        /// Kernels in `.ze_info` (or native text sections, when there is no `.ze_info`).
        kernels: usize,
    },
    /// A version or feature this reader does not implement.
    #[error("unsupported: {0}")]
    Unsupported(String),
    /// A fixed limit is exceeded.
    #[error("{what}: {found} exceeds the limit of {limit}")]
    Limit {
        /// What is too large.
        what: &'static str,
        /// Its size.
        found: u64,
        /// The bound, from [`limits`](super::limits).
        limit: u64,
    },
    /// `libocloc` cannot be loaded.
    #[error(
        "the OpenCL compiler library libocloc cannot be loaded ({detail}): install it with \
         `apt-get install intel-opencl-icd`, or set VISA_JIT_OCLOC to its path"
    )]
    OclocMissing {
        /// What was tried and what the loader said.
        detail: String,
    },
    /// `libocloc` was found but does not behave as its interface says.
    #[error("libocloc ({path}) misbehaves: {message}", path = path.display())]
    OclocBroken {
        /// The library.
        path: PathBuf,
        /// What it did.
        message: String,
    },
    /// The process that runs the compiler cannot be started or talked to.
    #[error("the compiler's worker process: {0}")]
    Worker(String),
    /// A compilation request that cannot be handed to `ocloc`.
    #[error("bad compilation request: {0}")]
    BadRequest(String),
    /// The compiler rejected the source.
    #[error("ocloc failed on `{name}` for {device} (code {code}):\n{log}")]
    CompileFailed {
        /// Source name.
        name: String,
        /// Device it was compiled for.
        device: String,
        /// Return code of `oclocInvoke`.
        code: i32,
        /// The build log.
        log: String,
    },
}

impl ContainerError {
    /// Whose fault this is.
    pub fn blame(&self) -> Blame {
        match self {
            Self::NotZebin { .. }
            | Self::Malformed { .. }
            | Self::NotText { .. }
            | Self::ZeInfo { .. }
            | Self::KernelInfo { .. }
            | Self::Inconsistent(_)
            | Self::MissingVisa { .. }
            | Self::BadRequest(_)
            | Self::CompileFailed { .. } => Blame::Input,
            Self::Limit { .. } => Blame::Limit,
            Self::Unsupported(_) => Blame::Unsupported,
            Self::OclocMissing { .. } | Self::OclocBroken { .. } | Self::Worker(_) => {
                Blame::Environment
            }
        }
    }

    /// A broken structure at a file offset.
    pub(super) fn malformed(offset: u64, message: impl Into<String>) -> Self {
        Self::Malformed {
            offset,
            message: message.into(),
        }
    }

    /// `Ok` while `found` is within `limit`.
    pub(super) fn check_limit(what: &'static str, found: u64, limit: u64) -> Result<(), Self> {
        if found <= limit {
            Ok(())
        } else {
            Err(Self::Limit { what, found, limit })
        }
    }
}
