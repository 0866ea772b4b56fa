//! Copies between host slices and memory that kernels may be writing at the same moment.
//!
//! Device memory is shared with compiled code, which is no part of the Rust program: another
//! thread may change a byte during a copy. Plain loads and stores would then be a data race in
//! the language's terms, so these copies are a string instruction on x86-64 (opaque to the
//! compiler, like the kernel itself) and relaxed byte atomics elsewhere. A racing copy gives for
//! each byte some value that was stored there.

/// Copies `to.len()` bytes out of shared memory.
///
/// # Safety
/// `from` must be readable for `to.len()` bytes and no Rust reference may cover those bytes.
pub(crate) unsafe fn copy_out(to: &mut [u8], from: *const u8) {
    // SAFETY: `to` is writable for its length; `from` by the caller's promise.
    unsafe { copy(to.as_mut_ptr(), from, to.len()) }
}

/// Copies `from` into shared memory.
///
/// # Safety
/// `to` must be writable for `from.len()` bytes and no Rust reference may cover those bytes.
pub(crate) unsafe fn copy_in(to: *mut u8, from: &[u8]) {
    // SAFETY: `from` is readable for its length; `to` by the caller's promise.
    unsafe { copy(to, from.as_ptr(), from.len()) }
}

#[cfg(target_arch = "x86_64")]
unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    // SAFETY: both ranges are valid by the caller's promise; the direction flag is clear by the ABI.
    unsafe {
        std::arch::asm!(
            "rep movsb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            inout("rsi") from => _,
            options(nostack, preserves_flags),
        );
    }
}

/// Fills shared memory.
///
/// # Safety
/// As [`copy_in`].
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn fill(to: *mut u8, len: usize, byte: u8) {
    // SAFETY: the range is valid by the caller's promise; the direction flag is clear by the ABI.
    unsafe {
        std::arch::asm!(
            "rep stosb",
            inout("rcx") len => _,
            inout("rdi") to => _,
            in("al") byte,
            options(nostack, preserves_flags),
        );
    }
}

#[cfg(not(target_arch = "x86_64"))]
unsafe fn copy(to: *mut u8, from: *const u8, len: usize) {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
    for i in 0..len {
        // SAFETY: in range by the caller's promise; bytes are always aligned. The side that is a
        // Rust slice is exclusively borrowed or only read.
        unsafe {
            let byte = AtomicU8::from_ptr(from.add(i).cast_mut()).load(Relaxed);
            AtomicU8::from_ptr(to.add(i)).store(byte, Relaxed);
        }
    }
}

/// Fills shared memory.
///
/// # Safety
/// As [`copy_in`].
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn fill(to: *mut u8, len: usize, byte: u8) {
    use std::sync::atomic::{AtomicU8, Ordering::Relaxed};
    for i in 0..len {
        // SAFETY: in range by the caller's promise; bytes are always aligned.
        unsafe { AtomicU8::from_ptr(to.add(i)).store(byte, Relaxed) }
    }
}
