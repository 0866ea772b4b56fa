//! Error codes of OpenCL as errors.

use crate::abi::cl_int;

/// A code that an entry point returns, always negative.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClError(pub cl_int);

/// What an entry point does, or the code that says why not.
pub type Cl<T> = Result<T, ClError>;

/// Fails with a code.
pub fn err<T>(code: cl_int) -> Cl<T> {
    Err(ClError(code))
}

/// Fails with a code unless a condition holds.
pub fn ensure(holds: bool, code: cl_int) -> Cl<()> {
    if holds { Ok(()) } else { err(code) }
}
