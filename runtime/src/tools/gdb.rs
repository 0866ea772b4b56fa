//! GDB's interface for generated code: a list of ELF images in memory, and a function that debuggers stop at when it changes.
//! LLDB reads the same list.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::{Mutex, PoisonError};

const VERSION: u32 = 1;
const NOTHING: u32 = 0;
const REGISTER: u32 = 1;
const UNREGISTER: u32 = 2;

/// One image, as the debugger reads it.
#[repr(C)]
struct Entry {
    next: *mut Entry,
    previous: *mut Entry,
    image: *const c_void,
    image_bytes: u64,
}

/// The list, as the debugger reads it.
#[repr(C)]
pub(super) struct Descriptor {
    version: u32,
    action: u32,
    relevant: *mut Entry,
    first: *mut Entry,
}

/// Debuggers find the list by this name. It is changed under [`LOCK`] only.
#[unsafe(no_mangle)]
static mut __jit_debug_descriptor: Descriptor = Descriptor {
    version: VERSION,
    action: NOTHING,
    relevant: null_mut(),
    first: null_mut(),
};

/// Debuggers stop here, by this name, to look at the list.
#[unsafe(no_mangle)]
#[inline(never)]
extern "C" fn __jit_debug_register_code() {
    // Something that the compiler cannot see through, so that calls stay.
    std::hint::black_box(&raw const __jit_debug_descriptor);
}

static LOCK: Mutex<()> = Mutex::new(());

/// An ELF image that debuggers know of until it is dropped.
#[derive(Debug)]
pub struct DebugImage {
    entry: *mut Entry,
    /// Read by the debugger through `entry`.
    image: Box<[u8]>,
}

// SAFETY: the entry is owned, and it is only touched under the lock.
unsafe impl Send for DebugImage {}
// SAFETY: as above.
unsafe impl Sync for DebugImage {}

impl DebugImage {
    /// Tells debuggers of an image, whose sections say at which addresses they are.
    pub fn register(image: Vec<u8>) -> DebugImage {
        let image = image.into_boxed_slice();
        let entry = Box::into_raw(Box::new(Entry {
            next: null_mut(),
            previous: null_mut(),
            image: image.as_ptr().cast(),
            image_bytes: image.len() as u64,
        }));
        let _lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the descriptor and the entries in the list, which live until they are taken out, are only touched under
        // the lock; debuggers look while the process stands still.
        unsafe {
            let list = &raw mut __jit_debug_descriptor;
            (*entry).next = (*list).first;
            if !(*list).first.is_null() {
                (*(*list).first).previous = entry;
            }
            (*list).first = entry;
            announce(REGISTER, entry);
        }
        DebugImage { entry, image }
    }

    /// The image.
    pub fn image(&self) -> &[u8] {
        &self.image
    }
}

/// # Safety
/// The lock is held, and `entry` lives until the next announcement.
unsafe fn announce(action: u32, entry: *mut Entry) {
    // SAFETY: the lock is held.
    unsafe {
        let list = &raw mut __jit_debug_descriptor;
        (*list).relevant = entry;
        (*list).action = action;
        __jit_debug_register_code();
        (*list).action = NOTHING;
        (*list).relevant = null_mut();
    }
}

impl Drop for DebugImage {
    fn drop(&mut self) {
        let _lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the entry is in the list since it was registered, its neighbours live as long as they are in the list, and
        // all of it is only touched under the lock. Nothing refers to the entry once it is out.
        unsafe {
            let list = &raw mut __jit_debug_descriptor;
            let (next, previous) = ((*self.entry).next, (*self.entry).previous);
            match previous.is_null() {
                true => (*list).first = next,
                false => (*previous).next = next,
            }
            if !next.is_null() {
                (*next).previous = previous;
            }
            announce(UNREGISTER, self.entry);
            drop(Box::from_raw(self.entry));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a debugger would read.
    fn listed() -> Vec<Vec<u8>> {
        let _lock = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
        let mut found = Vec::new();
        // SAFETY: entries in the list are alive, and nothing changes it under the lock.
        unsafe {
            let list = &raw const __jit_debug_descriptor;
            assert_eq!((*list).version, 1);
            let (mut at, mut before) = ((*list).first, null_mut());
            while !at.is_null() {
                assert_eq!((*at).previous, before);
                let bytes = (*at).image.cast::<u8>();
                found.push(std::slice::from_raw_parts(bytes, (*at).image_bytes as usize).to_vec());
                (before, at) = (at, (*at).next);
            }
        }
        found
    }

    #[test]
    fn the_list_has_what_is_registered() {
        let images: Vec<DebugImage> = (0..3).map(|n| DebugImage::register(vec![n; 4])).collect();
        let expected = |ns: &[u8]| ns.iter().map(|n| vec![*n; 4]).collect::<Vec<_>>();
        assert_eq!(listed(), expected(&[2, 1, 0]));
        let mut images = images.into_iter();
        let first = images.next();
        drop(images.next());
        assert_eq!(listed(), expected(&[2, 0]));
        drop(images);
        drop(first);
        assert!(listed().is_empty());
    }
}
