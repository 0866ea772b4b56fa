//! Makes compiled bytes callable: the only caller of the runtime's unsafe kernel constructor.
#![allow(unsafe_code, reason = "vouches for the code generators' output")]

use super::CodeObject;
use visa_runtime::{CodeError, CodeHandle, Kernel, KernelCode, KernelMeta, LaunchError};

/// Why code could not be made callable.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// Executable memory.
    #[error(transparent)]
    Code(#[from] CodeError),
    /// Metadata out of range.
    #[error(transparent)]
    Meta(#[from] LaunchError),
}

/// Installs the code of `object` and joins it with its metadata.
///
/// # Errors
/// See [`InstallError`].
pub fn install(object: &CodeObject, meta: KernelMeta) -> Result<Kernel, InstallError> {
    let code = CodeHandle::install_named(&meta.name, &object.code, object.align)?;
    // SAFETY: code objects are made by the backends for this ABI from verified SSA, whose accesses are
    // all checked against the memory that the ABI hands over, and `meta` describes the same function.
    Ok(unsafe { Kernel::new(meta, KernelCode::Installed(code)) }?)
}
