//! Loads libraries of kernels that were compiled ahead of time.
#![allow(
    unsafe_code,
    reason = "calls the system's loader, and vouches for what it finds"
)]

use std::path::Path;

use visa_runtime::linked::{Descriptor, LinkError, LinkedKernel};

/// Why a library cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    /// The system's loader refuses it, or it lacks a symbol.
    #[error("{0}")]
    Loader(String),
    /// A kernel in it is not for this machine or this runtime, or damaged.
    #[error(transparent)]
    Kernel(#[from] LinkError),
}

/// Loads a library and checks the kernels with these descriptors. It stays loaded until the process ends.
///
/// Loading runs the library's initialisers, as a program's own libraries do: name only files whose code may run.
///
/// # Errors
/// [`LibraryError`].
pub fn load_library(path: &Path, symbols: &[&str]) -> Result<Vec<LinkedKernel>, LibraryError> {
    let loader = |error: libloading::Error| LibraryError::Loader(error.to_string());
    // SAFETY: the caller means this file's code to run; what we write ourselves has no initialisers.
    let library = unsafe { libloading::Library::new(path) }.map_err(loader)?;
    let mut kernels = Vec::new();
    for symbol in symbols {
        // SAFETY: the type is that of an address; nothing is called.
        let found = unsafe { library.get::<*const Descriptor>(symbol.as_bytes()) };
        let descriptor = *found.map_err(loader)?;
        // SAFETY: the file has a record of a kernel with this symbol, so it is a descriptor, which an object file of
        // ours brought; the library is never unloaded.
        kernels.push(unsafe { LinkedKernel::new(&*descriptor) }?);
    }
    std::mem::forget(library);
    Ok(kernels)
}
