//! An owned range of addresses: reserved unreadable, opened in parts, unmapped on drop. Never executable.

use rustix::mm::{
    Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap_anonymous, mprotect, munmap,
};
use std::io;
use std::ops::Range;
use std::ptr::{NonNull, null_mut};

/// Bytes of a page.
pub(crate) fn page_size() -> usize {
    rustix::param::page_size()
}

/// `bytes` rounded up to whole pages.
pub(crate) fn round_page(bytes: u64) -> Option<u64> {
    bytes.checked_next_multiple_of(page_size() as u64)
}

/// A reserved range of addresses.
#[derive(Debug)]
pub(crate) struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: the range is owned and has no thread affinity.
unsafe impl Send for Mapping {}
// SAFETY: `&Mapping` changes protections through the kernel, which is synchronised there.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves `len` bytes (whole pages) that cannot be accessed and cost no memory.
    pub(crate) fn reserve(len: usize) -> io::Result<Mapping> {
        // SAFETY: a new anonymous mapping at an address of the system's choice touches no other memory.
        let start = unsafe {
            mmap_anonymous(
                null_mut(),
                len,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }?;
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::AddrNotAvailable)?;
        Ok(Mapping { start, len })
    }

    /// First address.
    pub(crate) fn start(&self) -> *mut u8 {
        self.start.as_ptr()
    }

    /// Bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Makes the pages of `range` (page-aligned offsets) readable and writable.
    pub(crate) fn open(&self, range: Range<usize>) -> io::Result<()> {
        self.protect(range, MprotectFlags::READ | MprotectFlags::WRITE)
    }

    /// Makes the pages of `range` unreadable and drops their contents.
    pub(crate) fn close(&self, range: Range<usize>) -> io::Result<()> {
        self.protect(range.clone(), MprotectFlags::empty())?;
        self.discard(range)
    }

    /// Gives the pages of `range` back; they read zero afterwards.
    pub(crate) fn discard(&self, range: Range<usize>) -> io::Result<()> {
        let (at, len) = self.part(range)?;
        // SAFETY: the pages belong to this mapping, whose contents are only reached by raw copies.
        unsafe { madvise(at.cast(), len, Advice::LinuxDontNeed) }?;
        Ok(())
    }

    /// Asks the system to use large pages for `range`. It may have none, which is no error.
    pub(crate) fn large_pages(&self, range: Range<usize>) {
        #[cfg(target_os = "linux")]
        if let Ok((at, len)) = self.part(range) {
            // SAFETY: the pages belong to this mapping, and their contents stay.
            let _ = unsafe { madvise(at.cast(), len, Advice::LinuxHugepage) };
        }
        #[cfg(not(target_os = "linux"))]
        let _ = range;
    }

    fn protect(&self, range: Range<usize>, flags: MprotectFlags) -> io::Result<()> {
        let (at, len) = self.part(range)?;
        // SAFETY: the pages belong to this mapping; no Rust reference points into it.
        unsafe { mprotect(at.cast(), len, flags) }?;
        Ok(())
    }

    fn part(&self, range: Range<usize>) -> io::Result<(*mut u8, usize)> {
        if range.start > range.end || range.end > self.len {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        Ok((self.start().wrapping_add(range.start), range.len()))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped in `reserve` with this length, unmapped once; handles that point into it
        // keep it alive.
        let result = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
        debug_assert!(result.is_ok(), "munmap of an owned range");
    }
}
