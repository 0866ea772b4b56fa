//! Zeroed host memory aligned to a cache line, reached by raw pointer only.
//!
//! Compiled code writes to it while the runtime holds it, so no reference to its contents is ever
//! made while a kernel runs.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::ptr::NonNull;

/// Alignment of every [`AlignedBytes`].
pub(crate) const LINE: usize = 64;

/// `bytes` rounded up to whole cache lines.
pub(crate) const fn round_line(bytes: u64) -> u64 {
    bytes.next_multiple_of(LINE as u64)
}

/// A block of bytes, aligned to [`LINE`], zero at first.
#[derive(Debug)]
pub(crate) struct AlignedBytes {
    start: NonNull<u8>,
    layout: Option<Layout>,
}

// SAFETY: the block is owned; whoever shares it among threads synchronises through the launch.
unsafe impl Send for AlignedBytes {}
// SAFETY: `&AlignedBytes` gives out a raw pointer only; accesses through it are the user's concern.
unsafe impl Sync for AlignedBytes {}

impl AlignedBytes {
    /// Allocates; `len` 0 allocates nothing. `None` when `len` is not a size.
    pub(crate) fn zeroed(len: u64) -> Option<AlignedBytes> {
        let len = usize::try_from(len).ok()?;
        if len == 0 {
            let layout = Layout::from_size_align(0, LINE).ok()?;
            return Some(AlignedBytes {
                start: layout.dangling_ptr(),
                layout: None,
            });
        }
        let layout = Layout::from_size_align(len, LINE).ok()?;
        // SAFETY: the layout is not empty.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else {
            handle_alloc_error(layout)
        };
        Some(AlignedBytes {
            start,
            layout: Some(layout),
        })
    }

    /// First byte.
    pub(crate) fn as_ptr(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.layout.map_or(0, |l| l.size())
    }
}

impl Drop for AlignedBytes {
    fn drop(&mut self) {
        if let Some(layout) = self.layout {
            // SAFETY: allocated in `zeroed` with this layout, freed once.
            unsafe { dealloc(self.start.as_ptr(), layout) }
        }
    }
}
