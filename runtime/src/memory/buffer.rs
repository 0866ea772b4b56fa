//! Handles to allocated device memory.

use super::{DeviceMemory, MemoryError, Origin, copy};
use std::sync::Arc;

#[derive(Debug)]
struct Allocation {
    memory: DeviceMemory,
    start: *mut u8,
    len: u64,
    origin: Origin,
    /// The buffer whose bytes these are, if they are part of one.
    whole: Option<Buffer>,
    /// It is a sub-buffer, or a part of one, and whether kernels may write it.
    sub_buffer: Option<bool>,
}

// SAFETY: the pointer is into memory that `memory` keeps mapped; all accesses are raw copies.
unsafe impl Send for Allocation {}
// SAFETY: as above; concurrent copies are defined byte by byte.
unsafe impl Sync for Allocation {}

impl Drop for Allocation {
    fn drop(&mut self) {
        if self.whole.is_none() {
            self.memory.0.free(self.origin);
        }
    }
}

/// An allocated range of device memory, freed with its last handle. Cloning gives another handle.
///
/// A kernel still running with the address of a freed buffer reaches whatever is allocated there
/// next, as on a GPU; it cannot reach anything else.
#[derive(Clone, Debug)]
pub struct Buffer(Arc<Allocation>);

/// What a part of device memory held.
#[derive(Debug)]
pub struct Saved {
    memory: DeviceMemory,
    /// Whose bytes these are, if they are one buffer's.
    _buffer: Option<Buffer>,
    start: *mut u8,
    /// What the first `len` bytes of this hold; the rest is unused room.
    bytes: Vec<u8>,
    len: usize,
    marks: Option<Vec<u8>>,
}

impl Drop for Saved {
    fn drop(&mut self) {
        self.memory.keep_spare(std::mem::take(&mut self.bytes));
    }
}

impl Saved {
    /// Of bytes that stay open.
    pub(super) fn new(memory: &DeviceMemory, start: *mut u8, len: u64) -> Option<Saved> {
        let len = usize::try_from(len).ok()?;
        let mut bytes = memory.take_spare(len);
        if bytes.is_empty() {
            bytes.try_reserve_exact(len).ok()?;
            bytes.resize(len, 0);
        }
        // SAFETY: open for as long as the memory and the buffer live; no Rust reference covers device memory.
        unsafe { copy::copy_out(&mut bytes[..len], start) };
        let unwritten = memory.0.unwritten.as_ref();
        let offset = (start as u64).wrapping_sub(memory.0.base);
        Some(Saved {
            memory: memory.clone(),
            _buffer: None,
            start,
            bytes,
            len,
            marks: unwritten.and_then(|unwritten| unwritten.saved(offset, len as u64)),
        })
    }

    /// Makes memory hold that again.
    pub fn restore(&self) {
        // SAFETY: as when it was saved.
        unsafe { copy::copy_in(self.start, &self.bytes[..self.len]) };
        if let Some(unwritten) = &self.memory.0.unwritten {
            let offset = (self.start as u64).wrapping_sub(self.memory.0.base);
            unwritten.restore(offset, self.len as u64, self.marks.as_deref());
        }
    }
}

mod sealed {
    pub trait Sealed {}
}

/// A number that a buffer can hold: every bit pattern is a value and there is no padding.
pub trait Element: sealed::Sealed + Copy + Default + 'static {}

macro_rules! elements {
    ($($t:ty)*) => { $(impl sealed::Sealed for $t {} impl Element for $t {})* };
}
elements!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

fn bytes_of<T: Element>(items: &[T]) -> &[u8] {
    // SAFETY: `Element` is sealed; its types have no padding, so all bytes are initialised.
    unsafe { std::slice::from_raw_parts(items.as_ptr().cast(), size_of_val(items)) }
}

fn bytes_of_mut<T: Element>(items: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and every bit pattern is a value.
    unsafe { std::slice::from_raw_parts_mut(items.as_mut_ptr().cast(), size_of_val(items)) }
}

impl Buffer {
    pub(super) fn new(memory: DeviceMemory, start: *mut u8, len: u64, origin: Origin) -> Buffer {
        Buffer(Arc::new(Allocation {
            memory,
            start,
            len,
            origin,
            whole: None,
            sub_buffer: None,
        }))
    }

    /// `len` bytes from byte `offset` on, as a buffer of their own: kernels see no others through it. The whole buffer stays for
    /// as long as the part.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`] when a byte is outside.
    pub fn part(&self, offset: u64, len: u64) -> Result<Buffer, MemoryError> {
        self.slice(offset, len, self.0.sub_buffer)
    }

    fn slice(
        &self,
        offset: u64,
        len: u64,
        sub_buffer: Option<bool>,
    ) -> Result<Buffer, MemoryError> {
        let start = self.checked(offset, len)?;
        Ok(Buffer(Arc::new(Allocation {
            memory: self.0.memory.clone(),
            start,
            len,
            origin: self.0.origin,
            whole: Some(self.clone()),
            sub_buffer,
        })))
    }

    /// A [`Buffer::part`] through which a launch means to access nothing else of the buffer, as those of OpenCL: if a launch only has such parts
    /// of a buffer, code with checks of memory reports accesses to the rest ([`DeviceMemory::enter`]). If it is `read_only`, writes are
    /// reported, too. Every access is carried out.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`] when a byte is outside.
    pub fn sub_buffer(
        &self,
        offset: u64,
        len: u64,
        read_only: bool,
    ) -> Result<Buffer, MemoryError> {
        self.slice(offset, len, Some(!read_only))
    }

    /// Whether kernels may write it, if it is a sub-buffer.
    pub(super) fn of_sub_buffer(&self) -> Option<bool> {
        self.0.sub_buffer
    }

    /// Where its bytes were taken from.
    pub(super) fn origin(&self) -> Origin {
        self.0.origin
    }

    /// Says whose launches may access it: in memory that tells its buffers apart, code with checks of memory reports accesses of launches of
    /// other contexts. Of a part of a buffer this changes nothing.
    pub fn set_context(&self, context: u64) {
        if let (Some(checks), Origin::Flat(offset, _), None) =
            (&self.0.memory.0.checks, self.0.origin, &self.0.whole)
        {
            checks.set_context(offset, context);
        }
    }

    /// Address that kernels see.
    pub fn address(&self) -> u64 {
        self.0.start as u64
    }

    /// Bytes.
    pub fn len(&self) -> u64 {
        self.0.len
    }

    /// True when there are no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }

    /// The memory it was allocated from.
    pub fn memory(&self) -> &DeviceMemory {
        &self.0.memory
    }

    /// First byte, for surface tables; valid as long as a handle lives.
    pub(crate) fn start(&self) -> *mut u8 {
        self.0.start
    }

    /// Copies bytes from `offset` (in bytes) to `to`.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`]; nothing is copied then.
    pub fn read(&self, offset: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        let at = self.checked(offset, to.len() as u64)?;
        // SAFETY: in range and open while the handle lives; no Rust reference covers device memory.
        unsafe { copy::copy_out(to, at) };
        Ok(())
    }

    /// Copies bytes to `offset` (in bytes).
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`]; nothing is copied then.
    pub fn write(&self, offset: u64, from: &[u8]) -> Result<(), MemoryError> {
        let at = self.checked(offset, from.len() as u64)?;
        // SAFETY: as in `read`.
        unsafe { copy::copy_in(at, from) };
        self.0.memory.written(at as u64, from.len() as u64);
        Ok(())
    }

    /// Sets every byte.
    pub fn fill(&self, byte: u8) {
        // SAFETY: the whole buffer, as in `read`.
        unsafe { copy::fill(self.0.start, self.0.len as usize, byte) };
        self.0.memory.written(self.address(), self.0.len);
    }

    /// Counts all bytes as not initialised, in memory that keeps account of that ([`DeviceMemory::tracked`]). They keep what they hold.
    pub fn mark_uninitialised(&self) {
        let memory = &self.0.memory.0;
        if let Some(unwritten) = &memory.unwritten {
            unwritten.mark(self.address().wrapping_sub(memory.base), self.0.len);
        }
    }

    /// Has kernels only read it: in memory that tells its buffers apart ([`DeviceMemory::checked`]), code with checks of memory reports what
    /// writes there, and writes it all the same. The host may write as before. Of a part of a buffer nothing is marked.
    ///
    /// # Errors
    /// [`MemoryError::System`] when there is no room for the marks.
    pub fn mark_read_only(&self) -> Result<(), MemoryError> {
        match (&self.0.memory.0.checks, self.0.origin, &self.0.whole) {
            (Some(checks), Origin::Flat(offset, _), None) => checks.mark_read_only(offset),
            _ => Ok(()),
        }
    }

    /// Whether a byte may be not initialised.
    pub fn has_uninitialised(&self) -> bool {
        let memory = &self.0.memory.0;
        let unwritten = memory.unwritten.as_ref();
        let offset = self.address().wrapping_sub(memory.base);
        unwritten.is_some_and(|unwritten| unwritten.any(offset, self.0.len))
    }

    /// A copy of what it holds, and of what of it is not initialised; `None` if there is no room for one.
    pub fn save(&self) -> Option<Saved> {
        let mut saved = Saved::new(&self.0.memory, self.0.start, self.0.len)?;
        saved._buffer = Some(self.clone());
        Some(saved)
    }

    /// Copies numbers from `offset` (in bytes, any alignment) to `to`.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`]; nothing is copied then.
    pub fn read_slice<T: Element>(&self, offset: u64, to: &mut [T]) -> Result<(), MemoryError> {
        self.read(offset, bytes_of_mut(to))
    }

    /// Copies numbers to `offset` (in bytes, any alignment).
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`]; nothing is copied then.
    pub fn write_slice<T: Element>(&self, offset: u64, from: &[T]) -> Result<(), MemoryError> {
        self.write(offset, bytes_of(from))
    }

    /// All bytes.
    pub fn to_vec(&self) -> Vec<u8> {
        self.to_vec_of()
    }

    /// All whole numbers; bytes after the last one are left out.
    pub fn to_vec_of<T: Element>(&self) -> Vec<T> {
        let mut items = vec![T::default(); self.0.len as usize / size_of::<T>()];
        // SAFETY: no longer than the buffer; as in `read`.
        unsafe { copy::copy_out(bytes_of_mut(&mut items), self.0.start) };
        items
    }

    fn checked(&self, offset: u64, len: u64) -> Result<*mut u8, MemoryError> {
        let size = self.0.len;
        if offset > size || len > size - offset {
            return Err(MemoryError::OutOfRange { offset, len, size });
        }
        Ok(self.0.start.wrapping_add(offset as usize))
    }
}
