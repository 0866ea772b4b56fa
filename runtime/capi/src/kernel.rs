//! Kernels that are linked into the program.

use std::ffi::{CString, c_char};

use crate::error::{free, made, object};
use visa_runtime::linked::{Descriptor, LinkedKernel};

/// What an object file exports for each kernel: `visa_jit_kernel_NAME`, declared in the kernel's header. Opaque.
#[repr(C, align(8))]
pub struct visa_jit_descriptor {
    /// Not for use.
    pub opaque: [u64; 9],
}

const _: () = assert!(size_of::<visa_jit_descriptor>() == size_of::<Descriptor>());
const _: () = assert!(align_of::<visa_jit_descriptor>() == align_of::<Descriptor>());

/// A kernel.
pub struct visa_jit_kernel {
    pub(crate) kernel: LinkedKernel,
    name: CString,
}

/// Checks a linked kernel: that it was compiled for this library and for this processor, and is as it was compiled. Null if not.
///
/// # Safety
/// `descriptor` is one that an object file of visa-jit defines, and stays mapped as long as the kernel and its launches are used.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_kernel_new(
    descriptor: *const visa_jit_descriptor,
) -> *mut visa_jit_kernel {
    made(|| {
        // SAFETY: as promised; both types have the same size and alignment.
        let descriptor = unsafe { object(descriptor.cast::<Descriptor>(), "descriptor") }?;
        // SAFETY: as promised.
        let kernel = unsafe { LinkedKernel::new(descriptor) }.map_err(|e| e.to_string())?;
        let name = kernel.record().name.clone();
        Ok(visa_jit_kernel {
            kernel,
            name: CString::new(name).unwrap_or_default(),
        })
    })
}

/// Frees a kernel. Launches of it live on until they are freed themselves. Null is allowed.
///
/// # Safety
/// `kernel` is null or from `visa_jit_kernel_new`, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_kernel_free(kernel: *mut visa_jit_kernel) {
    // SAFETY: as promised.
    unsafe { free(kernel) }
}

/// Name of a kernel, valid until it is freed; null for null.
///
/// # Safety
/// `kernel` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_kernel_name(kernel: *const visa_jit_kernel) -> *const c_char {
    // SAFETY: as promised.
    unsafe { object(kernel, "kernel") }.map_or(std::ptr::null(), |k| k.name.as_ptr())
}

/// Arguments of a kernel; 0 for null.
///
/// # Safety
/// `kernel` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_kernel_argument_count(kernel: *const visa_jit_kernel) -> usize {
    // SAFETY: as promised.
    unsafe { object(kernel, "kernel") }.map_or(0, |k| k.kernel.record().plan.arguments.len())
}
