//! Messages of what failed, one for each thread.

use std::cell::RefCell;
use std::ffi::{CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static LAST: RefCell<CString> = RefCell::default();
}

/// How a call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub enum visa_jit_status {
    /// It did what it should.
    VISA_JIT_OK = 0,
    /// It did not; `visa_jit_last_error` says why.
    VISA_JIT_FAILED = 1,
}

/// What failed last in this thread, as text; empty if nothing did. Valid until the thread's next call of this library.
#[unsafe(no_mangle)]
pub extern "C" fn visa_jit_last_error() -> *const c_char {
    LAST.with_borrow(|message| message.as_ptr())
}

fn set(message: &str) {
    let text: Vec<u8> = message.bytes().filter(|byte| *byte != 0).collect();
    LAST.set(CString::new(text).unwrap_or_default());
}

/// Runs `body`; a failure, or a panic, is kept as the last error.
fn guarded<T>(body: impl FnOnce() -> Result<T, String>) -> Option<T> {
    let result = catch_unwind(AssertUnwindSafe(body));
    let message = match result {
        Ok(Ok(value)) => return Some(value),
        Ok(Err(message)) => message,
        Err(_) => "internal error: the runtime panicked, please report".to_owned(),
    };
    set(&message);
    None
}

/// For functions that make something.
pub(crate) fn made<T>(body: impl FnOnce() -> Result<T, String>) -> *mut T {
    guarded(body).map_or(std::ptr::null_mut(), |value| Box::into_raw(Box::new(value)))
}

/// For functions that do something.
pub(crate) fn done(body: impl FnOnce() -> Result<(), String>) -> visa_jit_status {
    match guarded(body) {
        Some(()) => visa_jit_status::VISA_JIT_OK,
        None => visa_jit_status::VISA_JIT_FAILED,
    }
}

/// The object behind a handle.
///
/// # Safety
/// `handle` must be null or a live handle of this type, which is not freed as long as the reference lives.
pub(crate) unsafe fn object<'a, T>(handle: *const T, what: &str) -> Result<&'a T, String> {
    // SAFETY: as promised.
    unsafe { handle.as_ref() }.ok_or_else(|| format!("the {what} is null"))
}

/// The object behind a handle, to be changed.
///
/// # Safety
/// As [`object`], and nothing else may use the handle meanwhile.
pub(crate) unsafe fn object_mut<'a, T>(handle: *mut T, what: &str) -> Result<&'a mut T, String> {
    // SAFETY: as promised.
    unsafe { handle.as_mut() }.ok_or_else(|| format!("the {what} is null"))
}

/// Frees what [`made`] made.
///
/// # Safety
/// `handle` must be null or come from [`made`], and not be used again.
pub(crate) unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: as promised.
        let value = unsafe { Box::from_raw(handle) };
        guarded(|| {
            drop(value);
            Ok(())
        });
    }
}
