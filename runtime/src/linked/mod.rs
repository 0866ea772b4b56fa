//! Kernels that were compiled ahead of time and linked into this program, or into a library it has loaded.
//!
//! An object file holds for each kernel its code, a record ([`KernelRecord`]) that says what the code needs, and a
//! [`Descriptor`] that ties them together. [`LinkedKernel::new`] checks all of it before any code is called: ABI, digests of
//! record and code, processor features.

mod argument;
mod data;
mod facts;
mod features;
mod implicit;
mod own;
mod plan;
mod record;

pub use argument::{ArgKind, ArgValue, Argument};
pub use data::{
    DataError, DataImage, DataPatch, DataSection, LoadedPrograms, PatchPart, ProgramData,
};
pub use facts::{ImageFact, SamplerFact};
pub use features::missing_features;
pub use implicit::IMPLICIT_ARGS_BYTES;
pub use own::LaunchMemory;
pub use plan::{Bindings, LaunchPlan, PlanError, Slot, SlotSource};
pub use record::{KernelRecord, RecordError, Records, SiteRecord, Variant, digest, encode};

use crate::abi::{ABI_VERSION, Entry};
use crate::error::LaunchError;
use crate::kernel::{Kernel, KernelCode};
use crate::launch::{LaunchShape, LocalIdLayout};
use std::sync::Arc;

/// First word of a descriptor.
pub const DESCRIPTOR_MAGIC: u64 = u64::from_le_bytes(*b"VISAJITd");

/// Most bytes of a program's variables.
const MAX_DATA: u64 = crate::limits::MAX_MEMORY_BYTES;
/// Most code of a variant whose digest is looked at.
const MAX_CODE: u64 = crate::limits::MAX_CODE_BYTES as u64;

/// What an object file exports for each kernel.
#[derive(Debug)]
#[repr(C)]
pub struct Descriptor {
    /// [`DESCRIPTOR_MAGIC`].
    pub magic: u64,
    /// [`ABI_VERSION`] of the code.
    pub abi: u32,
    /// Zero.
    pub reserved: u32,
    /// The record.
    pub record: *const u8,
    /// Bytes of it.
    pub record_bytes: u64,
    /// Code of the record's variants; null where there is none.
    pub entries: [*const u8; 3],
    /// The program's variables, a [`DataImage`] as bytes; null where the kernel uses none.
    pub data: *const u8,
    /// Bytes of it.
    pub data_bytes: u64,
}

// SAFETY: a descriptor is read-only data with pointers to read-only data.
unsafe impl Sync for Descriptor {}

/// Why a linked kernel cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LinkError {
    /// The descriptor is something else.
    #[error("not a kernel that visa-jit compiled")]
    NotAKernel,
    /// Compiled for another version of the runtime.
    #[error(
        "compiled for version {found} of the runtime's ABI; this runtime has version {ABI_VERSION}"
    )]
    Abi {
        /// Its version.
        found: u32,
    },
    /// The record is damaged.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// The code is not what was compiled.
    #[error("kernel `{kernel}`: the code does not match its digest")]
    Code {
        /// Kernel.
        kernel: String,
    },
    /// The program's variables are not what was compiled.
    #[error("kernel `{kernel}`: the program's variables do not match their digest")]
    Data {
        /// Kernel.
        kernel: String,
    },
    /// The processor lacks what the code uses.
    #[error("kernel `{kernel}` was compiled for a processor with {}, which this one does not have", missing.join(", "))]
    Features {
        /// Kernel.
        kernel: String,
        /// What is missing.
        missing: Vec<String>,
    },
    /// Compiled for another kind of processor.
    #[error("kernel `{kernel}` was compiled for {triple}")]
    Architecture {
        /// Kernel.
        kernel: String,
        /// For what.
        triple: String,
    },
    /// Metadata out of range.
    #[error(transparent)]
    Launch(#[from] LaunchError),
}

/// A kernel that was compiled ahead of time. Cloning gives another handle.
#[derive(Clone, Debug)]
pub struct LinkedKernel {
    record: Arc<KernelRecord>,
    kernels: Vec<Kernel>,
    data: Option<Arc<DataImage>>,
}

impl LinkedKernel {
    /// Checks a descriptor and what it points to.
    ///
    /// # Errors
    /// [`LinkError`] when anything is not as it was compiled, or not for this machine.
    ///
    /// # Safety
    /// `descriptor` must come from an object file that visa-jit wrote (any version of it), and what it points to must stay
    /// mapped as long as any handle to the kernel or to a launch of it lives.
    pub unsafe fn new(descriptor: &Descriptor) -> Result<LinkedKernel, LinkError> {
        if descriptor.magic != DESCRIPTOR_MAGIC || descriptor.record.is_null() {
            return Err(LinkError::NotAKernel);
        }
        if descriptor.abi != ABI_VERSION {
            return Err(LinkError::Abi {
                found: descriptor.abi,
            });
        }
        let length = usize::try_from(descriptor.record_bytes).unwrap_or(0);
        // SAFETY: descriptors of this ABI point to a given number of bytes, as the caller promises.
        let bytes = unsafe { std::slice::from_raw_parts(descriptor.record, length) };
        let record = KernelRecord::decode(bytes)?;
        record.check_machine()?;
        let mut kernels = Vec::new();
        for (variant, &entry) in record.variants.iter().zip(&descriptor.entries) {
            let damaged = || LinkError::Code {
                kernel: record.name.clone(),
            };
            if entry.is_null() || variant.code_bytes > MAX_CODE {
                return Err(damaged());
            }
            // SAFETY: the record says how long the code is that was put there.
            let code = unsafe { std::slice::from_raw_parts(entry, variant.code_bytes as usize) };
            if digest(code) != variant.code_digest {
                return Err(damaged());
            }
            // SAFETY: the bytes are those that a code generator made as a function of this type, by their digest.
            let entry = unsafe { std::mem::transmute::<*const u8, Entry>(entry) };
            // SAFETY: made for this ABI and this processor, and described by this metadata, as has been checked.
            kernels.push(unsafe { Kernel::new(variant.meta.clone(), KernelCode::Linked(entry)) }?);
        }
        let any = record
            .variants
            .last()
            .is_some_and(|v| v.lanes == LocalIdLayout::Any);
        if !any || kernels.len() != record.variants.len() {
            return Err(LinkError::NotAKernel);
        }
        // SAFETY: as above.
        let data = unsafe { data(descriptor, &record) }?.map(Arc::new);
        Ok(LinkedKernel {
            record: Arc::new(record),
            kernels,
            data,
        })
    }

    /// What the program's variables hold at first, if the kernel uses any.
    pub fn data(&self) -> Option<&DataImage> {
        self.data.as_deref()
    }

    /// What the object file says about it.
    pub fn record(&self) -> &KernelRecord {
        &self.record
    }

    /// The code of the record's variants, in their order.
    pub fn kernels(&self) -> &[Kernel] {
        &self.kernels
    }

    /// The code for a launch of this shape, and its place among the record's variants.
    pub fn variant(&self, shape: &LaunchShape) -> (usize, &Kernel) {
        let fits = |v: &Variant| v.lanes <= shape.lanes(v.meta.simd.into(), v.meta.walk_order);
        // The last one is for any launch.
        let last = self.kernels.len() - 1;
        let index = self.record.variants.iter().position(fits).unwrap_or(last);
        (index, &self.kernels[index])
    }
}

/// The checked contents of the program's variables.
///
/// # Safety
/// As [`LinkedKernel::new`].
unsafe fn data(
    descriptor: &Descriptor,
    record: &KernelRecord,
) -> Result<Option<DataImage>, LinkError> {
    let Some(wanted) = record.data_digest else {
        return Ok(None);
    };
    let damaged = || LinkError::Data {
        kernel: record.name.clone(),
    };
    if descriptor.data.is_null() || descriptor.data_bytes > MAX_DATA {
        return Err(damaged());
    }
    // SAFETY: descriptors of this ABI point to a given number of bytes, as the caller promises.
    let bytes =
        unsafe { std::slice::from_raw_parts(descriptor.data, descriptor.data_bytes as usize) };
    if digest(bytes) != wanted {
        return Err(damaged());
    }
    let image = postcard::from_bytes(bytes).map_err(|_| RecordError::Malformed)?;
    Ok(Some(image))
}

/// A program's variables as bytes.
///
/// # Errors
/// [`RecordError::Malformed`] when they cannot be encoded.
pub fn encode_data(image: &DataImage) -> Result<Vec<u8>, RecordError> {
    postcard::to_allocvec(image).map_err(|_| RecordError::Malformed)
}
