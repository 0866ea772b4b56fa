//! A kernel that can be launched: code and metadata together.

#[cfg(feature = "jit")]
use crate::CodeHandle;
use crate::abi::Entry;
use crate::error::LaunchError;
use crate::group::GroupProgram;
use crate::launch::spare::Spare;
use crate::meta::KernelMeta;
use std::sync::Arc;

/// Code of a kernel.
#[derive(Clone, Debug)]
pub enum KernelCode {
    /// Installed at run time; kept alive by the kernel.
    #[cfg(feature = "jit")]
    Installed(CodeHandle),
    /// Part of the program, or of a library that is never unloaded.
    Linked(Entry),
    /// No machine code: a program in the host's language.
    Program(Arc<dyn GroupProgram>),
}

impl KernelCode {
    /// The function, unless it is a program.
    pub fn entry(&self) -> Option<Entry> {
        match self {
            #[cfg(feature = "jit")]
            KernelCode::Installed(code) => Some(code.entry()),
            KernelCode::Linked(entry) => Some(*entry),
            KernelCode::Program(_) => None,
        }
    }
}

#[derive(Debug)]
struct Inner {
    meta: KernelMeta,
    code: KernelCode,
    spare: Spare,
}

/// A kernel. Cloning gives another handle.
#[derive(Clone, Debug)]
pub struct Kernel(Arc<Inner>);

impl Kernel {
    /// Joins code and metadata.
    ///
    /// # Errors
    /// [`LaunchError::Meta`] when a field is out of range.
    ///
    /// # Safety
    /// `code` must be a function of type [`Entry`] for this processor and this
    /// [`crate::abi::ABI_VERSION`] that, given a group laid out by `meta`, touches nothing but the
    /// memory the [`crate::abi`] hands it: what a code generator makes of verified input.
    pub unsafe fn new(meta: KernelMeta, code: KernelCode) -> Result<Kernel, LaunchError> {
        Kernel::of(meta, code)
    }

    /// A kernel that a program runs.
    ///
    /// # Errors
    /// [`LaunchError::Meta`] when a field is out of range.
    pub fn from_program(
        meta: KernelMeta,
        program: Arc<dyn GroupProgram>,
    ) -> Result<Kernel, LaunchError> {
        Kernel::of(meta, KernelCode::Program(program))
    }

    fn of(meta: KernelMeta, code: KernelCode) -> Result<Kernel, LaunchError> {
        meta.check()?;
        let spare = Spare::default();
        Ok(Kernel(Arc::new(Inner { meta, code, spare })))
    }

    /// Metadata.
    pub fn meta(&self) -> &KernelMeta {
        &self.0.meta
    }

    /// First address of the code; of a program there is none.
    pub fn address(&self) -> Option<u64> {
        let entry = self.0.code.entry()?;
        Some(entry as usize as u64)
    }

    /// What the last launch has left.
    pub(crate) fn spare(&self) -> &Spare {
        &self.0.spare
    }

    /// The code.
    pub fn code(&self) -> &KernelCode {
        &self.0.code
    }
}
