//! Standard output, as C sees it.

use std::ffi::c_void;

unsafe extern "C" {
    /// C's standard output: the system's library sets it before any program begins.
    static mut stdout: *mut c_void;

    fn fwrite(from: *const c_void, size: usize, count: usize, to: *mut c_void) -> usize;
}

/// Prints what a kernel printed, at once, and in order with what the program prints itself, which may be waiting in C's buffer.
pub fn standard_output(text: &[u8]) {
    // SAFETY: the text has as many bytes, and standard output is there as long as the process. What cannot be written is lost, as
    // that of `printf` is.
    unsafe {
        fwrite(text.as_ptr().cast(), 1, text.len(), stdout);
    }
}
