//! Device memory and buffers.

use std::ffi::c_void;

use crate::error::{done, free, made, object, visa_jit_status};
use visa_runtime::linked::LoadedPrograms;
use visa_runtime::{Buffer, DeviceMemory};

/// Device memory: an address range that kernels can reach. Memory is used as buffers are made. A program whose kernels are
/// launched in it has its variables there, once, from the first such launch on.
pub struct visa_jit_memory {
    pub(crate) memory: DeviceMemory,
    /// Those whose kernels were launched in it.
    pub(crate) programs: LoadedPrograms,
}

/// A buffer in device memory.
pub struct visa_jit_buffer(pub(crate) Buffer);

/// Device memory for at most `bytes` bytes of buffers; 0 for 64 GiB of addresses. Null on failure.
#[unsafe(no_mangle)]
pub extern "C" fn visa_jit_memory_new(bytes: u64) -> *mut visa_jit_memory {
    made(|| {
        let memory = match bytes {
            0 => DeviceMemory::new(),
            bytes => DeviceMemory::with_capacity(bytes),
        };
        let programs = LoadedPrograms::default();
        memory
            .map(|memory| visa_jit_memory { memory, programs })
            .map_err(|e| e.to_string())
    })
}

/// Frees a memory. Buffers in it live on until they are freed themselves. Null is allowed.
///
/// # Safety
/// `memory` is null or from `visa_jit_memory_new`, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_memory_free(memory: *mut visa_jit_memory) {
    // SAFETY: as promised.
    unsafe { free(memory) }
}

/// A buffer of `bytes` zero bytes. Null on failure.
///
/// # Safety
/// `memory` is live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_buffer_new(
    memory: *const visa_jit_memory,
    bytes: u64,
) -> *mut visa_jit_buffer {
    made(|| {
        // SAFETY: as promised.
        let memory = unsafe { object(memory, "memory") }?;
        memory
            .memory
            .alloc(bytes)
            .map(visa_jit_buffer)
            .map_err(|e| e.to_string())
    })
}

/// Frees a buffer. Launches that were given it keep its memory. Null is allowed.
///
/// # Safety
/// `buffer` is null or from `visa_jit_buffer_new`, and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_buffer_free(buffer: *mut visa_jit_buffer) {
    // SAFETY: as promised.
    unsafe { free(buffer) }
}

/// Bytes of a buffer; 0 for null.
///
/// # Safety
/// `buffer` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_buffer_size(buffer: *const visa_jit_buffer) -> u64 {
    // SAFETY: as promised.
    unsafe { object(buffer, "buffer") }.map_or(0, |b| b.0.len())
}

/// Address of a buffer as kernels see it; 0 for null.
///
/// # Safety
/// `buffer` is null or live.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_buffer_address(buffer: *const visa_jit_buffer) -> u64 {
    // SAFETY: as promised.
    unsafe { object(buffer, "buffer") }.map_or(0, |b| b.0.address())
}

/// Writes `bytes` bytes to a buffer from byte `offset` on.
///
/// # Safety
/// `buffer` is live, and `from` has a given number of bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_buffer_write(
    buffer: *const visa_jit_buffer,
    offset: u64,
    from: *const c_void,
    bytes: usize,
) -> visa_jit_status {
    done(|| {
        // SAFETY: as promised.
        let buffer = unsafe { object(buffer, "buffer") }?;
        if from.is_null() && bytes != 0 {
            return Err("the source is null".to_owned());
        }
        let from = match bytes {
            0 => &[],
            // SAFETY: as promised.
            _ => unsafe { std::slice::from_raw_parts(from.cast::<u8>(), bytes) },
        };
        buffer.0.write(offset, from).map_err(|e| e.to_string())
    })
}

/// Reads `bytes` bytes of a buffer from byte `offset` on.
///
/// # Safety
/// `buffer` is live, and `to` has room for a given number of bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn visa_jit_buffer_read(
    buffer: *const visa_jit_buffer,
    offset: u64,
    to: *mut c_void,
    bytes: usize,
) -> visa_jit_status {
    done(|| {
        // SAFETY: as promised.
        let buffer = unsafe { object(buffer, "buffer") }?;
        if to.is_null() && bytes != 0 {
            return Err("the destination is null".to_owned());
        }
        let size = buffer.0.len();
        if offset > size || bytes as u64 > size - offset {
            return Err(format!(
                "{bytes} bytes at {offset} are not in a buffer of {size}"
            ));
        }
        if bytes == 0 {
            return Ok(());
        }
        // SAFETY: as promised; it need not be initialised, so it is before it is a slice.
        let to = unsafe {
            let to = to.cast::<u8>();
            to.write_bytes(0, bytes);
            std::slice::from_raw_parts_mut(to, bytes)
        };
        buffer.0.read(offset, to).map_err(|e| e.to_string())
    })
}
