//! Memory of the program, as commands use it.

use visa_runtime::Buffer;

use super::CL_INVALID_VALUE;
use crate::core::engine::engine;
use crate::core::{Cl, ensure};

/// Bytes of the program's own memory. Only the entry points make one; they pass on the program's promise that the bytes are
/// there until the command is done.
#[derive(Clone, Copy, Debug)]
pub struct HostMemory {
    address: usize,
    len: usize,
}

/// One of the two sides of a copy: memory of the program or of the device, and the bytes that may be used.
#[derive(Clone, Debug)]
pub enum CopySide {
    /// The program's.
    Host(HostMemory),
    /// A buffer's.
    Device(Buffer),
}

impl HostMemory {
    /// `len` bytes from `address` on.
    ///
    /// # Safety
    /// They may be read, and written if a command writes there, until the last copy of this value is gone.
    pub unsafe fn new(address: *const u8, len: usize) -> HostMemory {
        HostMemory {
            address: address.expose_provenance(),
            len,
        }
    }

    /// Some of the bytes; none if one is outside.
    pub fn part(self, offset: usize, len: usize) -> Option<HostMemory> {
        let fits = offset.checked_add(len).is_some_and(|end| end <= self.len);
        fits.then_some(HostMemory {
            address: self.address + offset,
            len,
        })
    }

    /// The first byte's address.
    pub fn address(self) -> usize {
        self.address
    }
}

impl CopySide {
    fn address(&self) -> usize {
        match self {
            CopySide::Host(memory) => memory.address,
            CopySide::Device(buffer) => buffer.address() as usize,
        }
    }

    fn len(&self) -> usize {
        match self {
            CopySide::Host(memory) => memory.len,
            CopySide::Device(buffer) => buffer.len() as usize,
        }
    }

    /// Copies bytes of another place here. The two may overlap.
    ///
    /// # Errors
    /// `CL_INVALID_VALUE` when a byte is outside; nothing is copied then.
    pub fn copy_from(&self, offset: usize, from: &CopySide, at: usize, len: usize) -> Cl<()> {
        let inside = |place: &CopySide, start: usize| {
            start.checked_add(len).is_some_and(|end| end <= place.len())
        };
        ensure(inside(self, offset) && inside(from, at), CL_INVALID_VALUE)?;
        let from = std::ptr::with_exposed_provenance::<u8>(from.address() + at);
        let to = std::ptr::with_exposed_provenance_mut::<u8>(self.address() + offset);
        // SAFETY: both ranges are inside their places. Those of devices are open while the buffer lives; for those of the program,
        // whoever made them promised so.
        unsafe {
            std::ptr::copy(from, to, len);
        }
        // The program's memory may be that of the device, by its address.
        if let Ok(engine) = engine() {
            let (to, from) = (to.addr() as u64, from.addr() as u64);
            engine.memory().copied(to, from, len as u64);
        }
        Ok(())
    }

    /// Repeats a pattern over a range.
    ///
    /// # Errors
    /// `CL_INVALID_VALUE` when a byte is outside.
    pub fn fill(&self, offset: usize, len: usize, pattern: &[u8]) -> Cl<()> {
        let fits = offset.checked_add(len).is_some_and(|end| end <= self.len());
        ensure(fits && !pattern.is_empty(), CL_INVALID_VALUE)?;
        // Large enough that copying is what takes time.
        let times = (4096 / pattern.len()).clamp(1, len.div_ceil(pattern.len()).max(1));
        let block = pattern.repeat(times);
        let mut at = 0;
        while at < len {
            let part = block.len().min(len - at);
            // SAFETY: the block outlives the copy.
            let from = CopySide::Host(unsafe { HostMemory::new(block.as_ptr(), part) });
            self.copy_from(offset + at, &from, 0, part)?;
            at += part;
        }
        Ok(())
    }
}
