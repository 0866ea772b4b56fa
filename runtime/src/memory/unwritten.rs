//! Which bits of device memory are not initialised, for launches that look for reads of them (`docs/checking.md` has the rules).
//!
//! The shadow has a byte for each byte of the flat range, with a bit for each of its bits: 0 where it is initialised. Fresh pages read zero, so
//! the shadow takes memory only where something was not initialised.

use super::map::{Mapping, page_size, round_page};
use super::{MemoryError, copy};
use crate::element::{load, store};
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Bytes of the shadow that are looked at together.
const WORD: u64 = 8;

/// The shadow of one device memory.
#[derive(Debug)]
pub(super) struct Unwritten {
    shadow: Mapping,
    capacity: u64,
    /// Something was not initialised once.
    used: AtomicBool,
}

impl Unwritten {
    /// For a flat range of `capacity` bytes, all of which are initialised.
    ///
    /// # Errors
    /// When the addresses cannot be reserved.
    pub(super) fn new(capacity: u64) -> Result<Unwritten, MemoryError> {
        let len = round_page(capacity.max(1)).and_then(|b| usize::try_from(b).ok());
        let len = len.ok_or(io::Error::from(io::ErrorKind::OutOfMemory))?;
        let shadow = Mapping::reserve(len)?;
        shadow.open(0..len)?;
        Ok(Unwritten {
            shadow,
            capacity,
            used: AtomicBool::new(false),
        })
    }

    /// Mark of the first byte.
    pub(super) fn start(&self) -> *mut u8 {
        self.shadow.start()
    }

    /// Whether a byte of a range may be not initialised.
    pub(super) fn any(&self, offset: u64, len: u64) -> bool {
        if !self.used.load(Ordering::Relaxed) {
            return false;
        }
        let (mut at, end) = self.clip(offset, len);
        while at < end {
            let step = match at.is_multiple_of(WORD) && end - at >= WORD {
                true => WORD,
                false => 1,
            };
            // SAFETY: inside of the shadow, which is open as a whole.
            if unsafe { load(self.shadow_at(at), step as u32) } != 0 {
                return true;
            }
            at += step;
        }
        false
    }

    /// The marks of a range; none where all of it is initialised.
    pub(super) fn saved(&self, offset: u64, len: u64) -> Option<Vec<u8>> {
        if !self.any(offset, len) {
            return None;
        }
        let (start, end) = self.clip(offset, len);
        let mut marks = vec![0; (end - start) as usize];
        // SAFETY: as above.
        unsafe { copy::copy_out(&mut marks, self.shadow_at(start)) };
        Some(marks)
    }

    /// Brings marks back that were saved of a range.
    pub(super) fn restore(&self, offset: u64, len: u64, marks: Option<&[u8]>) {
        match marks {
            Some(marks) => {
                let (start, end) = self.clip(offset, marks.len() as u64);
                let marks = marks.get(..(end - start) as usize).unwrap_or_default();
                // SAFETY: as above.
                unsafe { copy::copy_in(self.shadow_at(start), marks) };
            }
            None => self.clear(offset, len),
        }
    }

    /// The part of a range that has a shadow.
    fn clip(&self, offset: u64, len: u64) -> (u64, u64) {
        let start = offset.min(self.capacity);
        (start, offset.saturating_add(len).min(self.capacity))
    }

    fn shadow_at(&self, offset: u64) -> *mut u8 {
        self.shadow.start().wrapping_add(offset as usize)
    }

    /// Bits of up to eight bytes from an offset on that are not initialised.
    pub(super) fn get(&self, offset: u64, len: u32) -> u64 {
        let (start, end) = self.clip(offset, len.min(8).into());
        (start..end).fold(0, |bits, at| {
            // SAFETY: inside of the shadow, which is open as a whole.
            let byte = unsafe { load(self.shadow_at(at), 1) };
            bits | byte << (8 * (at - start))
        })
    }

    /// Says which bits of up to eight bytes from an offset on are not initialised.
    pub(super) fn set(&self, offset: u64, len: u32, bits: u64) {
        let (start, end) = self.clip(offset, len.min(8).into());
        if bits != 0 {
            self.used.store(true, Ordering::Relaxed);
        }
        for at in start..end {
            // SAFETY: as above.
            unsafe {
                let (to, new) = (self.shadow_at(at), bits >> (8 * (at - start)) & 0xFF);
                if load(to, 1) != new {
                    store(to, 1, new);
                }
            }
        }
    }

    /// A range is not initialised.
    pub(super) fn mark(&self, offset: u64, len: u64) {
        let (start, end) = self.clip(offset, len);
        self.used.store(true, Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { copy::fill(self.shadow_at(start), (end - start) as usize, 0xFF) };
    }

    /// A range is initialised.
    pub(super) fn clear(&self, offset: u64, len: u64) {
        let (mut at, end) = self.clip(offset, len);
        let page = page_size() as u64;
        while at < end {
            if at.is_multiple_of(page) && end - at >= page {
                // Pages that were never written stay so.
                let words = (at..at + page).step_by(WORD as usize);
                // SAFETY: as above.
                let used = words
                    .into_iter()
                    .any(|at| unsafe { load(self.shadow_at(at), 8) } != 0);
                if used {
                    // SAFETY: as above.
                    unsafe { copy::fill(self.shadow_at(at), page as usize, 0) };
                }
                at += page;
                continue;
            }
            self.set(at, 1, 0);
            at += 1;
        }
    }

    /// Bytes were copied within the flat range.
    pub(super) fn copy(&self, to: u64, from: u64, len: u64) {
        let one = |k: u64| self.set(to + k, 1, self.get(from + k, 1));
        if to <= from {
            (0..len).for_each(one);
        } else {
            (0..len).rev().for_each(one);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::DeviceMemory;

    #[test]
    fn what_is_written_is_initialised() {
        let memory = DeviceMemory::with_capacity(1 << 20).unwrap();
        let memory = memory.tracked().unwrap();
        let unset = |b: &crate::Buffer, at: u64| memory.uninitialised(b.address() + at, 4);
        let buffer = memory.alloc(20_000).unwrap();
        assert_eq!(unset(&buffer, 0), 0, "zeros are content");
        buffer.mark_uninitialised();
        assert_eq!(unset(&buffer, 19_996), u32::MAX.into());
        buffer.write(1, &[7; 2]).unwrap();
        assert_eq!(unset(&buffer, 0), 0xFF00_00FF);
        buffer.part(4096, 8192).unwrap().fill(0);
        assert_eq!(unset(&buffer, 4094), 0xFFFF);
        assert_eq!(unset(&buffer, 4096 + 8190), 0xFFFF_0000);
        let address = buffer.address();
        memory.copied(address + 100, address, 4);
        assert_eq!(unset(&buffer, 100), 0xFF00_00FF);
        memory.copied(address + 100, 8, 4);
        assert_eq!(unset(&buffer, 100), 0, "from elsewhere");
        memory.set_uninitialised(address + 104, 2, 0x0180);
        assert_eq!(memory.uninitialised(address + 104, 2), 0x0180);
        drop(buffer);
        let again = memory.alloc(20_000).unwrap();
        assert!((0..20_000).all(|at| memory.uninitialised(again.address() + at, 1) == 0));
        let plain = DeviceMemory::with_capacity(1 << 20).unwrap();
        let buffer = plain.alloc(4).unwrap();
        buffer.mark_uninitialised();
        assert_eq!(plain.uninitialised(buffer.address(), 4), 0);
    }
}
