//! Errors of binary vISA.

use std::fmt;

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The bytes are no binary vISA.
    Malformed,
    /// Valid vISA that this project does not model, or a version that it does not know.
    Unsupported,
    /// A bound of [`crate::limits`] is exceeded.
    Limit,
    /// What is to be written has no place in the format.
    Unwritable,
    /// It depends on the device, which was not given.
    Device,
}

/// Why a file was not read, or not written.
#[derive(Clone, Debug, PartialEq)]
pub struct BinaryError {
    /// Class of the error.
    pub fault: Fault,
    /// Byte of the file at which it was found; `None` for what was to be written.
    pub offset: Option<usize>,
    /// In what it was found, such as a kernel and an instruction; empty for the file itself.
    pub place: String,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for BinaryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(offset) = self.offset {
            write!(f, "byte {offset:#x}: ")?;
        }
        if !self.place.is_empty() {
            write!(f, "{}: ", self.place)?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for BinaryError {}

/// An error before it is known where.
#[derive(Debug)]
pub(super) struct Problem {
    pub fault: Fault,
    pub message: String,
}

impl Problem {
    pub(super) fn malformed(message: impl Into<String>) -> Problem {
        Problem {
            fault: Fault::Malformed,
            message: message.into(),
        }
    }

    pub(super) fn unsupported(message: impl Into<String>) -> Problem {
        Problem {
            fault: Fault::Unsupported,
            message: message.into(),
        }
    }

    pub(super) fn limit(message: impl Into<String>) -> Problem {
        Problem {
            fault: Fault::Limit,
            message: message.into(),
        }
    }

    pub(super) fn unwritable(message: impl Into<String>) -> Problem {
        Problem {
            fault: Fault::Unwritable,
            message: message.into(),
        }
    }

    pub(super) fn at(self, offset: Option<usize>, place: impl Into<String>) -> BinaryError {
        BinaryError {
            fault: self.fault,
            offset,
            place: place.into(),
            message: self.message,
        }
    }
}

/// Result of a step.
pub(super) type Walk<T = ()> = Result<T, Problem>;
