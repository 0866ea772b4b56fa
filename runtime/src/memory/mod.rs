//! Device memory: every buffer lives in one reserved range of addresses, so that a flat access of a
//! kernel is checked with one subtract and one compare.
//!
//! A [`DeviceMemory`] reserves its whole range unreadable and opens it as buffers need it. What
//! kernels may reach by address is `base … base + size`; that range is always readable and
//! writable as a whole, also where no buffer lives (any more). Buffers read zero when they are
//! allocated. An unreadable page precedes and follows everything.
//!
//! Contents are reached by copying only ([`Buffer::read`], [`Buffer::write`]): kernels on other
//! threads may write at the same moment, and a copy then sees old or new bytes, never undefined
//! behaviour. Handles are cheap to clone; memory is unmapped with the last handle of any kind.
//!
//! What it does not do, unless it is [`DeviceMemory::checked`]: tell a kernel's accesses to one buffer from those to another.
//! Flat addresses are checked against the whole memory, as a GPU does.

mod buffer;
pub(crate) mod checks;
mod copy;
pub(crate) mod map;
mod ranges;
mod unwritten;
mod view;

pub use buffer::{Buffer, Element, Saved};
pub use checks::Neighbour;
pub use view::Entered;

use crate::abi::{FLAT_OFFSET, Pointee};
use crate::limits::{ADDRESS_END, DEFAULT_MEMORY_BYTES, GUARDED_BYTES, MAX_MEMORY_BYTES};
use crate::race::Races;
use checks::Checks;
use map::{Mapping, page_size, round_page};
use ranges::Ranges;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use unwritten::Unwritten;

/// Default alignment of buffers, in bytes.
const BUFFER_ALIGN: u64 = 64;

/// Buffers of at least this many bytes get pages of their own.
const LARGE: u64 = 1 << 16;

/// Buffers of at least this many bytes start at multiples of it, so that the system can use large pages for them. Otherwise what
/// comes from many pages may wait for their addresses.
const HUGE: u64 = 1 << 21;

/// Memory is opened in steps of this many bytes.
const STEP: u64 = 1 << 20;

/// Why device memory could not be had or reached.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// No room for a buffer.
    #[error("device memory is full: {wanted} bytes wanted, capacity is {capacity} bytes")]
    Full {
        /// Bytes wanted.
        wanted: u64,
        /// Bytes of the whole memory.
        capacity: u64,
    },
    /// A size over the limit.
    #[error("device memory of {wanted} bytes is over the limit of {limit} bytes")]
    TooLarge {
        /// Bytes wanted.
        wanted: u64,
        /// Limit in bytes.
        limit: u64,
    },
    /// A range outside a buffer or the memory.
    #[error("bytes {offset}..{offset}+{len} are outside a range of {size} bytes")]
    OutOfRange {
        /// First byte.
        offset: u64,
        /// Bytes.
        len: u64,
        /// Bytes there are.
        size: u64,
    },
    /// An alignment that is not a power of two, or over a page.
    #[error("alignment {0} is not a power of two up to the page size")]
    Alignment(u64),
    /// This memory has no unreadable page flush against the wanted place, or it is in use.
    #[error("no place flush against an unreadable page")]
    NotFlush,
    /// The operating system refused.
    #[error("the operating system refused memory: {0}")]
    System(#[from] io::Error),
}

/// Where a buffer's bytes were taken from.
#[derive(Clone, Copy, Debug)]
enum Origin {
    /// The flat range: offset and length of the taken range.
    Flat(u64, u64),
    /// The guarded area: offset and length of the taken pages, guards included.
    Guarded(u64, u64),
}

#[derive(Debug)]
struct Space {
    flat: Ranges,
    guarded: Ranges,
    /// Bytes of the flat range that are open, a multiple of the page size after `base`.
    open: u64,
}

/// Most bytes of room that is kept for launches that save memory.
const MAX_SPARE: usize = 256 << 20;

#[derive(Debug)]
struct Inner {
    mapping: Mapping,
    /// Address of flat offset 0.
    base: u64,
    /// Bytes that the flat range may grow to.
    capacity: u64,
    /// Bytes of the flat range now.
    size: AtomicU64,
    /// Made whole, with an unreadable page after its last byte or before its first.
    exact: bool,
    space: Mutex<Space>,
    /// Of memory that tells its buffers apart.
    checks: Option<Checks>,
    /// Of memory that tells what was never written.
    unwritten: Option<Unwritten>,
    /// For launches that look for races and do not run now.
    races: Mutex<Vec<Races>>,
    /// Held by a launch that may restore what memory held.
    alone: Mutex<()>,
    /// Room that such launches saved it in, by size: getting new pages from the system takes longer than copying.
    spare: Mutex<Vec<Vec<u8>>>,
}

/// A range of addresses that buffers are allocated from. Cloning gives another handle.
///
/// ```
/// # fn main() -> Result<(), visa_runtime::MemoryError> {
/// let memory = visa_runtime::DeviceMemory::new()?;
/// let buffer = memory.alloc_from(&[1.0f32, 2.0])?;
/// assert_eq!(buffer.to_vec_of::<f32>(), [1.0, 2.0]);
/// # Ok(()) }
/// ```
#[derive(Clone, Debug)]
pub struct DeviceMemory(Arc<Inner>);

impl DeviceMemory {
    /// Reserves [`DEFAULT_MEMORY_BYTES`] of addresses; memory is used as buffers are written.
    ///
    /// # Errors
    /// [`MemoryError::System`] when the addresses cannot be reserved.
    pub fn new() -> Result<DeviceMemory, MemoryError> {
        DeviceMemory::with_capacity(DEFAULT_MEMORY_BYTES)
    }

    /// Reserves `capacity` bytes (rounded up to pages) of addresses.
    ///
    /// # Errors
    /// [`MemoryError::TooLarge`] over [`MAX_MEMORY_BYTES`], [`MemoryError::System`] when refused.
    pub fn with_capacity(capacity: u64) -> Result<DeviceMemory, MemoryError> {
        let capacity = checked_pages(capacity)?;
        let page = page_size() as u64;
        let guarded = page + capacity + page;
        let total = guarded + GUARDED_BYTES;
        DeviceMemory::build(total, page, capacity, 0, (guarded, total))
    }

    /// As [`DeviceMemory::with_capacity`], and it keeps account of which bytes belong to a buffer, for code that checks its accesses:
    /// buffers are kept apart, and addresses of freed ones are not given out again soon.
    ///
    /// # Errors
    /// As [`DeviceMemory::with_capacity`].
    pub fn checked(capacity: u64) -> Result<DeviceMemory, MemoryError> {
        let mut memory = DeviceMemory::with_capacity(capacity)?;
        // No other thread has a handle yet.
        if let Some(inner) = Arc::get_mut(&mut memory.0) {
            let front = Checks::front().min(inner.capacity);
            inner.lock().flat.take_at(0, front);
            inner.checks = Some(Checks::new(inner.capacity)?);
        }
        Ok(memory)
    }

    /// The same memory, which keeps account of which bits are not initialised. New buffers are: they hold zeros, unless
    /// [`Buffer::mark_uninitialised`] says otherwise. Memory that has other handles stays as it is: ask for this before cloning one.
    ///
    /// # Errors
    /// [`MemoryError::System`] when the addresses cannot be reserved.
    pub fn tracked(mut self) -> Result<DeviceMemory, MemoryError> {
        if let Some(inner) = Arc::get_mut(&mut self.0) {
            inner.unwritten = Some(Unwritten::new(inner.capacity)?);
        }
        Ok(self)
    }

    /// True for memory made by [`DeviceMemory::tracked`].
    pub fn is_tracked(&self) -> bool {
        self.0.unwritten.is_some()
    }

    /// Whether anything in it may be not initialised. Buffers know it more exactly.
    pub fn has_uninitialised(&self) -> bool {
        let unwritten = self.0.unwritten.as_ref();
        unwritten.is_some_and(|unwritten| unwritten.any(0, self.size()))
    }

    /// Waits until no other caller has what this returns. A launch that may restore what memory held has it for as long as it runs, so that
    /// no other launch's results are lost.
    pub fn alone(&self) -> MutexGuard<'_, ()> {
        self.0.alone.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Room for at least `bytes` bytes in which an earlier launch saved memory: the smallest that is large enough. Empty if there is none.
    fn take_spare(&self, wanted: usize) -> Vec<u8> {
        let mut spare = self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let at = spare.partition_point(|bytes| bytes.len() < wanted);
        match at < spare.len() {
            true => spare.remove(at),
            false => Vec::new(),
        }
    }

    /// Keeps such room for later launches, unless there is much already.
    fn keep_spare(&self, bytes: Vec<u8>) {
        let mut spare = self.0.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let kept: usize = spare.iter().map(Vec::len).sum();
        if !bytes.is_empty() && kept.saturating_add(bytes.len()) <= MAX_SPARE {
            let at = spare.partition_point(|other| other.len() < bytes.len());
            spare.insert(at, bytes);
        }
    }

    /// Bytes from an address of a tracked memory to its mark; 0 of other memory.
    pub(crate) fn marks(&self) -> u64 {
        let first = self.0.unwritten.as_ref().map(|u| u.start() as u64);
        first.map_or(0, |first| first.wrapping_sub(self.0.base))
    }

    /// Whether `len` bytes at an address have marks of their own: they lie in the flat range of tracked memory.
    pub(crate) fn has_marks(&self, address: u64, len: u64) -> bool {
        let offset = address.wrapping_sub(self.0.base);
        self.is_tracked() && offset <= self.0.capacity && len <= self.0.capacity - offset
    }

    /// Bits of up to eight bytes at an address that are not initialised. Of memory that keeps no account, and outside of it, none.
    pub fn uninitialised(&self, address: u64, bytes: u32) -> u64 {
        let unwritten = self.0.unwritten.as_ref();
        unwritten.map_or(0, |u| u.get(address.wrapping_sub(self.0.base), bytes))
    }

    /// Says which bits of up to eight bytes at an address are not initialised.
    pub fn set_uninitialised(&self, address: u64, bytes: u32, bits: u64) {
        if let Some(unwritten) = &self.0.unwritten {
            unwritten.set(address.wrapping_sub(self.0.base), bytes, bits);
        }
    }

    /// Notes that the host has written `len` bytes at an address, in other ways than [`Buffer::write`] and the like.
    pub fn written(&self, address: u64, len: u64) {
        if let Some(unwritten) = &self.0.unwritten {
            unwritten.clear(address.wrapping_sub(self.0.base), len);
        }
    }

    /// Notes that the host has copied `len` bytes from one address to another. What was not initialised is not after the copy; addresses
    /// outside of this memory are initialised.
    pub fn copied(&self, to: u64, from: u64, len: u64) {
        let Some(unwritten) = &self.0.unwritten else {
            return;
        };
        let [to, from] = [to, from].map(|at| at.wrapping_sub(self.0.base));
        let inside = |at: u64| at < self.0.capacity && len <= self.0.capacity - at;
        match (inside(to), inside(from)) {
            (true, true) => unwritten.copy(to, from, len),
            (true, false) => unwritten.clear(to, len),
            (false, _) => {}
        }
    }

    /// True for memory made by [`DeviceMemory::checked`].
    pub fn is_checked(&self) -> bool {
        self.0.checks.is_some()
    }

    /// Counts a launch, by which reports say when a buffer was allocated and freed.
    pub fn count_launch(&self) {
        if let Some(checks) = &self.0.checks {
            checks.launch();
        }
    }

    /// What a launch needs that looks for races: that of an earlier launch which has ended, where there is one.
    pub(crate) fn take_races(&self) -> Result<Box<Races>, MemoryError> {
        let idle = self.0.races.lock();
        let found = idle.unwrap_or_else(PoisonError::into_inner).pop();
        match found {
            Some(races) => Ok(Box::new(races)),
            None => Ok(Box::new(Races::new(Some(self))?)),
        }
    }

    /// The launch has ended.
    pub(crate) fn give_races(&self, races: Races) {
        let idle = self.0.races.lock();
        idle.unwrap_or_else(PoisonError::into_inner).push(races);
    }

    /// True when `len` bytes at an address lie in one live buffer; of memory that is not checked, when they lie in it at all. Bits
    /// 63:48 of the address do not count.
    pub fn is_live(&self, address: u64, len: u64) -> bool {
        let offset = self.position(address);
        match &self.0.checks {
            Some(checks) => checks.is_live(offset, len),
            None => self.checked_range(offset, len).is_ok(),
        }
    }

    /// True when one of `len` bytes at an address is in a live buffer that kernels only read, of checked memory. Bits 63:48 of the address
    /// do not count.
    pub fn is_read_only(&self, address: u64, len: u64) -> bool {
        let checks = self.0.checks.as_ref();
        checks.is_some_and(|checks| checks.is_read_only(self.position(address), len))
    }

    /// The buffers of a checked memory that the numbers of a payload point into, or those that kernels may write; nothing of memory that is not
    /// checked.
    pub(crate) fn pointees(&self, payload: &[u8], writes: bool) -> Vec<Pointee> {
        let Some(checks) = &self.0.checks else {
            return Vec::new();
        };
        let numbers = payload.chunks(8).map(|bytes| {
            let number = bytes.iter().rev();
            number.fold(0, |number, &byte| number << 8 | u64::from(byte))
        });
        let numbers = numbers.map(|number| number.wrapping_sub(self.0.base));
        let found = checks.around(numbers, writes);
        let pointee = |found: Option<(u64, u64)>| match found {
            Some((offset, bytes)) => Pointee {
                start: self.0.base + offset,
                bytes,
            },
            None => Pointee::default(),
        };
        found.into_iter().map(pointee).collect()
    }

    /// The buffer of a checked memory that an access of `bytes` bytes at an address misses: a freed one if it lay there, else the
    /// nearest.
    pub fn neighbour(&self, address: u64, bytes: u64) -> Option<Neighbour> {
        let found = self
            .0
            .checks
            .as_ref()?
            .neighbour(self.position(address), bytes)?;
        Some(Neighbour {
            start: self.0.base + found.start,
            ..found
        })
    }

    /// Shadow of the first byte; [`checks::closed`] where there is none.
    pub(crate) fn shadow(&self) -> *const u8 {
        self.0
            .checks
            .as_ref()
            .map_or(checks::closed(), Checks::shadow)
    }

    /// As [`DeviceMemory::shadow`], of what kernels may write.
    pub(crate) fn write_shadow(&self) -> *const u8 {
        self.0
            .checks
            .as_ref()
            .map_or(checks::closed(), Checks::write_shadow)
    }

    /// Offset of an address, of which bits 63:48 do not count.
    fn position(&self, address: u64) -> u64 {
        address.wrapping_sub(self.0.base) & FLAT_OFFSET
    }

    /// A memory of exactly `bytes` bytes, all open at once: the last byte is flush against an
    /// unreadable page. Its base has no alignment unless `bytes` has.
    ///
    /// # Errors
    /// As [`DeviceMemory::with_capacity`].
    pub fn exact(bytes: u64) -> Result<DeviceMemory, MemoryError> {
        let pages = checked_pages(bytes)?;
        let page = page_size() as u64;
        DeviceMemory::build(
            pages + 2 * page,
            page + (pages - bytes),
            bytes,
            bytes,
            (0, 0),
        )
    }

    /// As [`DeviceMemory::exact`], but the *first* byte is flush against an unreadable page.
    ///
    /// # Errors
    /// As [`DeviceMemory::with_capacity`].
    pub fn exact_start(bytes: u64) -> Result<DeviceMemory, MemoryError> {
        let pages = checked_pages(bytes)?;
        let page = page_size() as u64;
        DeviceMemory::build(pages + 2 * page, page, bytes, bytes, (0, 0))
    }

    /// Reserves `total` bytes; flat offset 0 is `start` bytes into them, and the first `size`
    /// bytes of the flat range are open.
    fn build(
        total: u64,
        start: u64,
        capacity: u64,
        size: u64,
        guarded: (u64, u64),
    ) -> Result<DeviceMemory, MemoryError> {
        let too_large = MemoryError::TooLarge {
            wanted: total,
            limit: MAX_MEMORY_BYTES,
        };
        let Ok(len) = usize::try_from(total) else {
            return Err(too_large);
        };
        let mapping = Mapping::reserve(len)?;
        let first = mapping.start() as u64;
        if first.checked_add(total).is_none_or(|end| end > ADDRESS_END) {
            return Err(too_large);
        }
        if size != 0 {
            let page = page_size() as u64;
            let (from, to) = (start - start % page, start + size);
            mapping.open(from as usize..to.next_multiple_of(page) as usize)?;
        }
        Ok(DeviceMemory(Arc::new(Inner {
            mapping,
            base: first + start,
            capacity,
            size: AtomicU64::new(size),
            exact: size != 0,
            space: Mutex::new(Space {
                flat: Ranges::new(0, capacity),
                guarded: Ranges::new(guarded.0, guarded.1),
                open: size,
            }),
            checks: None,
            unwritten: None,
            races: Mutex::default(),
            alone: Mutex::default(),
            spare: Mutex::default(),
        })))
    }

    /// First address of the flat range.
    pub fn base(&self) -> u64 {
        self.0.base
    }

    /// Bytes of the flat range now: up to the end of the highest buffer so far.
    pub fn size(&self) -> u64 {
        self.0.size.load(Ordering::Acquire)
    }

    /// Bytes that the flat range may grow to.
    pub fn capacity(&self) -> u64 {
        self.0.capacity
    }

    /// Allocates a zeroed buffer of `len` bytes, aligned to a cache line, or to a page when large.
    ///
    /// # Errors
    /// [`MemoryError::Full`], [`MemoryError::System`].
    pub fn alloc(&self, len: u64) -> Result<Buffer, MemoryError> {
        let align = if len >= LARGE {
            page_size() as u64
        } else {
            BUFFER_ALIGN
        };
        self.alloc_aligned(len, align)
    }

    /// Allocates a zeroed buffer whose address is a multiple of `align`.
    ///
    /// # Errors
    /// [`MemoryError::Alignment`], [`MemoryError::Full`], [`MemoryError::System`].
    pub fn alloc_aligned(&self, len: u64, align: u64) -> Result<Buffer, MemoryError> {
        if !align.is_power_of_two() || align > page_size() as u64 {
            return Err(MemoryError::Alignment(align));
        }
        let wanted = if len >= HUGE { HUGE } else { align };
        let full = MemoryError::Full {
            wanted: len,
            capacity: self.0.capacity,
        };
        // Distinct buffers get distinct addresses, also empty ones.
        let (taken, align) = match self.is_checked() {
            true => (Checks::taken(len), align.max(BUFFER_ALIGN)),
            false => (Some(len.max(1)), align),
        };
        let Some(taken) = taken else {
            return Err(full);
        };
        let mut space = self.0.lock();
        let place = |space: &mut Space| {
            let mut at = |align| space.flat.take_low(taken, align, self.0.base);
            at(wanted).or_else(|| at(align))
        };
        let place = place(&mut space).or_else(|| {
            let checks = self.0.checks.as_ref()?;
            for (offset, taken) in checks.give_all() {
                space.flat.give(offset, taken);
            }
            place(&mut space)
        });
        let Some(offset) = place else {
            return Err(full);
        };
        self.flat_buffer(&mut space, offset, taken, len)
    }

    /// Allocates a buffer that holds a copy of `items`.
    ///
    /// # Errors
    /// As [`DeviceMemory::alloc`].
    pub fn alloc_from<T: Element>(&self, items: &[T]) -> Result<Buffer, MemoryError> {
        let buffer = self.alloc(size_of_val(items) as u64)?;
        buffer.write_slice(0, items)?;
        Ok(buffer)
    }

    /// Allocates a zeroed buffer whose last byte is flush against an unreadable page.
    ///
    /// In a memory made by [`DeviceMemory::exact`] it is the end of the flat range. Elsewhere it
    /// is *outside* the flat range: kernels reach it through a surface only.
    ///
    /// # Errors
    /// [`MemoryError::NotFlush`] when the place is in use, [`MemoryError::Full`], [`MemoryError::System`].
    pub fn alloc_flush_end(&self, len: u64) -> Result<Buffer, MemoryError> {
        self.alloc_flush(len, true)
    }

    /// Allocates a zeroed buffer whose first byte is flush against an unreadable page.
    ///
    /// In a memory made by [`DeviceMemory::exact_start`] (or of whole pages) it is the start of
    /// the flat range. Elsewhere it is *outside* the flat range: kernels reach it through a
    /// surface only.
    ///
    /// # Errors
    /// As [`DeviceMemory::alloc_flush_end`].
    pub fn alloc_flush_start(&self, len: u64) -> Result<Buffer, MemoryError> {
        self.alloc_flush(len, false)
    }

    /// Copies bytes at an address of the flat range to `to`.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`] when a byte is outside.
    pub fn read_at(&self, address: u64, to: &mut [u8]) -> Result<(), MemoryError> {
        let at = self.checked_address(address, to.len() as u64)?;
        // SAFETY: the whole flat range is open for as long as `self` lives.
        unsafe { copy::copy_out(to, at) };
        Ok(())
    }

    /// Copies bytes to an address of the flat range.
    ///
    /// # Errors
    /// [`MemoryError::OutOfRange`] when a byte is outside.
    pub fn write_at(&self, address: u64, from: &[u8]) -> Result<(), MemoryError> {
        let at = self.checked_address(address, from.len() as u64)?;
        // SAFETY: the whole flat range is open for as long as `self` lives.
        unsafe { copy::copy_in(at, from) };
        self.written(address, from.len() as u64);
        Ok(())
    }

    fn checked_address(&self, address: u64, len: u64) -> Result<*mut u8, MemoryError> {
        self.checked_range(address.wrapping_sub(self.0.base), len)?;
        Ok(self.0.pointer(address))
    }

    fn checked_range(&self, offset: u64, len: u64) -> Result<(), MemoryError> {
        let size = self.size();
        if offset > size || len > size - offset {
            return Err(MemoryError::OutOfRange { offset, len, size });
        }
        Ok(())
    }

    fn alloc_flush(&self, len: u64, end: bool) -> Result<Buffer, MemoryError> {
        let page = page_size() as u64;
        let taken = len.max(1);
        let mut space = self.0.lock();
        if self.0.exact {
            let flush = self.0.base + if end { self.0.capacity } else { 0 };
            let offset = if end {
                self.0.capacity.wrapping_sub(len)
            } else {
                0
            };
            let fits = flush.is_multiple_of(page) && len <= self.0.capacity;
            if !fits || !space.flat.take_at(offset, len) {
                return Err(MemoryError::NotFlush);
            }
            return self.flat_buffer(&mut space, offset, len, len);
        }
        let full = || MemoryError::Full {
            wanted: len,
            capacity: GUARDED_BYTES,
        };
        let pages = round_page(taken).ok_or_else(full)?;
        let whole = pages.checked_add(2 * page).ok_or_else(full)?;
        // Reserved addresses are page-aligned, so offsets may be aligned as they are.
        let offset = space.guarded.take_low(whole, page, 0).ok_or_else(full)?;
        let inside = offset + page;
        let origin = Origin::Guarded(offset, whole);
        if let Err(error) = self
            .0
            .mapping
            .open(inside as usize..(inside + pages) as usize)
        {
            space.guarded.give(offset, whole);
            return Err(error.into());
        }
        let start = self.0.mapping.start() as u64 + inside + if end { pages - len } else { 0 };
        Ok(self.buffer(start, len, origin))
    }

    /// Opens and zeroes a range taken from the flat range.
    fn flat_buffer(
        &self,
        space: &mut Space,
        offset: u64,
        taken: u64,
        len: u64,
    ) -> Result<Buffer, MemoryError> {
        if let Err(error) = self.0.open_to(space, offset + taken) {
            space.flat.give(offset, taken);
            return Err(error);
        }
        let address = self.0.base + offset;
        // Bytes beyond the size were never within anyone's reach.
        let used = self.size().saturating_sub(offset).min(taken);
        self.0.zero(address, used);
        self.0.advise(address, len);
        let mut end = offset + len;
        if let Some(checks) = &self.0.checks {
            checks.add(offset, len, taken);
            end = offset + taken;
        }
        if let Some(unwritten) = &self.0.unwritten {
            unwritten.clear(offset, taken);
        }
        // Growth is published after the pages are open; `size` never shrinks.
        self.0.size.fetch_max(end, Ordering::Release);
        Ok(self.buffer(address, len, Origin::Flat(offset, taken)))
    }

    fn buffer(&self, address: u64, len: u64, origin: Origin) -> Buffer {
        Buffer::new(self.clone(), self.0.pointer(address), len, origin)
    }
}

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Space> {
        self.space.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Pointer with the mapping's provenance.
    fn pointer(&self, address: u64) -> *mut u8 {
        let start = self.mapping.start();
        start.wrapping_add((address - start as u64) as usize)
    }

    /// Opens the flat range up to offset `end`.
    fn open_to(&self, space: &mut Space, end: u64) -> Result<(), MemoryError> {
        if end <= space.open {
            return Ok(());
        }
        let open = end.next_multiple_of(STEP).min(self.capacity);
        if let Some(checks) = &self.checks {
            checks.open_to(open)?;
        }
        let start = self.base - self.mapping.start() as u64;
        self.mapping
            .open((start + space.open) as usize..(start + open) as usize)?;
        space.open = open;
        Ok(())
    }

    /// Makes an open range read zero, giving whole pages back where that is cheaper.
    fn zero(&self, address: u64, len: u64) {
        let page = page_size() as u64;
        let (start, end) = (address, address + len);
        let (first, last) = (start.next_multiple_of(page), end - end % page);
        let whole = len >= LARGE && first < last;
        let map = self.mapping.start() as u64;
        if whole
            && self
                .mapping
                .discard((first - map) as usize..(last - map) as usize)
                .is_ok()
        {
            self.fill_zero(start, first);
            self.fill_zero(last, end);
        } else {
            self.fill_zero(start, end);
        }
    }

    /// Asks for large pages where a buffer takes all of one.
    fn advise(&self, address: u64, len: u64) {
        let end = address + len;
        let (first, last) = (address.next_multiple_of(HUGE), end - end % HUGE);
        let map = self.mapping.start() as u64;
        if first < last {
            self.mapping
                .large_pages((first - map) as usize..(last - map) as usize);
        }
    }

    fn fill_zero(&self, start: u64, end: u64) {
        // SAFETY: the caller opened the range and owns it.
        unsafe { copy::fill(self.pointer(start), (end - start) as usize, 0) }
    }

    /// Takes a buffer's bytes back.
    fn free(&self, origin: Origin) {
        let page = page_size() as u64;
        let mut space = self.lock();
        match origin {
            Origin::Flat(offset, len) => {
                if len >= LARGE {
                    let (start, end) = (self.base + offset, self.base + offset + len);
                    let map = self.mapping.start() as u64;
                    let (first, last) =
                        (start.next_multiple_of(page) - map, end - end % page - map);
                    // Only saves memory; allocation zeroes again.
                    let _ = self.mapping.discard(first as usize..last as usize);
                    let races = self.races.lock();
                    let races = races.unwrap_or_else(PoisonError::into_inner);
                    races.iter().for_each(|known| known.freed(offset, len));
                }
                match &self.checks {
                    None => space.flat.give(offset, len),
                    Some(checks) => {
                        for (offset, len) in checks.remove(offset) {
                            space.flat.give(offset, len);
                        }
                    }
                }
            }
            Origin::Guarded(offset, len) => {
                let inside = (offset + page) as usize..(offset + len - page) as usize;
                // Pages that could not be closed are not handed out again.
                if self.mapping.close(inside).is_ok() {
                    space.guarded.give(offset, len);
                }
            }
        }
    }
}

/// Rounds up to at least one page, checked against the limit.
fn checked_pages(bytes: u64) -> Result<u64, MemoryError> {
    round_page(bytes.max(1))
        .filter(|&b| b <= MAX_MEMORY_BYTES)
        .ok_or(MemoryError::TooLarge {
            wanted: bytes,
            limit: MAX_MEMORY_BYTES,
        })
}
