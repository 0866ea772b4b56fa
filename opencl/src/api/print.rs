//! Standard output, as C sees it.

use std::ffi::{c_char, c_int};

unsafe extern "C" {
    fn printf(format: *const c_char, ...) -> c_int;
}

/// Prints what a kernel printed, in order with what the program prints itself, which may be waiting in C's buffer.
pub fn standard_output(text: &[u8]) {
    // What `%.*s` takes ends at NUL.
    for part in text.split(|byte| *byte == 0) {
        let len = c_int::try_from(part.len()).unwrap_or(c_int::MAX);
        // SAFETY: the format takes a length and a text, which has as many bytes.
        unsafe { printf(c"%.*s".as_ptr(), len, part.as_ptr().cast::<c_char>()) };
    }
}
