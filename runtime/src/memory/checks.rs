//! Checked device memory: which bytes belong to a live buffer, and where freed ones were.
//!
//! The facts are kept in two forms, for two readers. The *shadow* has a byte for each [`GRANULE`] bytes of the flat range:
//! 0 where all of them may be accessed, 1 to 7 where only that many of the first ones may, else [`POISON`] or more. It lies in a reserved range of
//! its own, so that generated code finds a byte with a shift and an add, and it uses memory only where buffers end or ended:
//! fresh pages read zero. The *list* has the buffers by their offsets; the interpreter and reports read it.
//!
//! As soon as there is a buffer that kernels may only read, writes have a shadow of their own, in which such buffers are closed. Until then,
//! one shadow serves both.
//!
//! Buffers are [`red_zone`] bytes apart, so that an access a little beyond one does not meet another. Freed ones wait in a
//! quarantine before their addresses are given out again. An access far enough beyond a buffer to meet another live one is not found.

use super::map::{Mapping, page_size, round_page};
use super::view::{Gate, View};
use super::{MemoryError, copy};
use crate::abi::check::GRANULE;
use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

/// Shadow of granules of which no byte may be accessed. Values from it up to 255 mean the same.
const POISON: u8 = 0xFF;

/// Least and greatest distance between buffers, in bytes.
const RED_ZONE: (u64, u64) = (4 << 10, 1 << 20);

/// Zeros in front of the shadow: what code may read for lanes that are not enabled.
const LEAD: u64 = 64;

/// Bytes of shadow that code may read at the start, however little memory is open, and beyond the last granule.
const SLACK: u64 = 1024;

/// Freed buffers that are remembered and whose addresses are not given out again.
const QUARANTINE: usize = 4096;

/// The same as a part of the capacity.
const QUARANTINE_PART: u64 = 4;

/// What code sees as shadow where there is none: nothing may be accessed.
static CLOSED: Closed = Closed {
    _zeros: [0; LEAD as usize],
    shadow: [POISON; SLACK as usize],
};

#[repr(C)]
struct Closed {
    _zeros: [u8; LEAD as usize],
    shadow: [u8; SLACK as usize],
}

/// Shadow of memory that is not checked; no part of it is addressable.
pub(crate) fn closed() -> *const u8 {
    (&raw const CLOSED.shadow).cast()
}

/// Distance to the next buffer after one of `len` bytes.
fn red_zone(len: u64) -> u64 {
    (len / 4).clamp(RED_ZONE.0, RED_ZONE.1) / GRANULE * GRANULE
}

/// A buffer of the list.
#[derive(Clone, Copy, Debug)]
pub(super) struct Block {
    pub len: u64,
    /// With its red zone.
    taken: u64,
    /// Launches that had begun before it was allocated.
    made: u64,
    /// Kernels only read it.
    pub read_only: bool,
    /// Whose launches may access it; none where all may.
    pub context: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
struct Freed {
    offset: u64,
    block: Block,
    /// Launches that had begun before it was freed.
    at: u64,
}

#[derive(Debug, Default)]
pub(super) struct List {
    pub live: BTreeMap<u64, Block>,
    /// What launches may access.
    pub view: View,
    freed: VecDeque<Freed>,
    /// Bytes of the freed ones, red zones included.
    freed_bytes: u64,
    /// Offset from which on the shadow was never written.
    marked: u64,
    /// Bytes of shadow that are open.
    open: u64,
}

/// Checks of one device memory.
#[derive(Debug)]
pub(super) struct Checks {
    shadow: Mapping,
    /// The shadow that writes read, if there was a buffer that kernels only read.
    write_shadow: OnceLock<Mapping>,
    capacity: u64,
    list: Mutex<List>,
    launches: AtomicU64,
    pub gate: Gate,
}

/// Where an address lies beside the buffers of a checked memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbour {
    /// First address of the buffer.
    pub start: u64,
    /// Its bytes.
    pub len: u64,
    /// Launches that had begun before it was allocated.
    pub made: u64,
    /// Launches that had begun before it was freed; none while it lives.
    pub freed: Option<u64>,
    /// It belongs to another context than the launches that run.
    pub hidden: bool,
}

impl Checks {
    /// For a flat range of `capacity` bytes.
    pub(super) fn new(capacity: u64) -> io::Result<Checks> {
        let open = round_page(LEAD + SLACK).unwrap_or(0);
        Ok(Checks {
            shadow: reserve(capacity, open)?,
            write_shadow: OnceLock::new(),
            capacity,
            list: Mutex::new(List {
                open,
                ..List::default()
            }),
            launches: AtomicU64::new(0),
            gate: Gate::default(),
        })
    }

    /// Shadow of flat offset 0; readable up to the shadow of the open range and a little beyond.
    pub(super) fn shadow(&self) -> *const u8 {
        self.shadow.start().wrapping_add(LEAD as usize)
    }

    /// The same for writes.
    pub(super) fn write_shadow(&self) -> *const u8 {
        let shadow = self.write_shadow.get().unwrap_or(&self.shadow);
        shadow.start().wrapping_add(LEAD as usize)
    }

    /// Bytes to take for a buffer of `len`.
    pub(super) fn taken(len: u64) -> Option<u64> {
        len.max(1)
            .checked_next_multiple_of(GRANULE)?
            .checked_add(red_zone(len))
    }

    /// Bytes at the start of the flat range that belong to no buffer.
    pub(super) const fn front() -> u64 {
        RED_ZONE.0
    }

    /// Counts a launch.
    pub(super) fn launch(&self) {
        self.launches.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes the shadow of the first `end` bytes readable.
    pub(super) fn open_to(&self, end: u64) -> Result<(), MemoryError> {
        let mut list = self.lock();
        let wanted = round_page(LEAD + end / GRANULE + SLACK).unwrap_or(u64::MAX);
        if wanted > list.open {
            for shadow in self.shadows() {
                shadow.open(list.open as usize..wanted as usize)?;
            }
            list.open = wanted;
        }
        Ok(())
    }

    /// A buffer was placed; its shadow is open.
    pub(super) fn add(&self, offset: u64, len: u64, taken: u64) {
        let mut list = self.lock();
        let marked = list.marked;
        if marked < offset {
            self.fill(marked, offset, POISON);
        }
        let block = Block {
            len,
            taken,
            made: self.launches.load(Ordering::Relaxed),
            read_only: false,
            context: None,
        };
        // What was never marked reads zero.
        self.fill(offset, whole(offset, len).min(marked).max(offset), 0);
        for shadow in self.shadows() {
            close_end(shadow, offset, block);
        }
        list.marked = marked.max(offset + taken);
        list.live.insert(offset, block);
    }

    /// Kernels only read a live buffer.
    pub(super) fn mark_read_only(&self, offset: u64) -> Result<(), MemoryError> {
        let mut list = self.lock();
        self.separate_writes(&list)?;
        self.change(&mut list, offset, |block| block.read_only = true);
        Ok(())
    }

    /// Only launches of a context may access a live buffer.
    pub(super) fn set_context(&self, offset: u64, context: u64) {
        self.change(&mut self.lock(), offset, |block| {
            block.context = Some(context)
        });
    }

    fn change(&self, list: &mut List, offset: u64, change: impl FnOnce(&mut Block)) {
        let Some(block) = list.live.get_mut(&offset) else {
            return;
        };
        change(block);
        let block = *block;
        self.paint(list, offset, &block);
    }

    /// Gives writes a shadow of their own, if they have none.
    pub(super) fn separate_writes(&self, list: &List) -> Result<(), MemoryError> {
        if self.write_shadow.get().is_some() {
            return Ok(());
        }
        let shadow = reserve(self.capacity, list.open)?;
        fill(&shadow, 0, list.marked, POISON);
        for (&offset, block) in &list.live {
            open(&shadow, &list.view.ranges(offset, block, true));
        }
        // Only a holder of the lock sets it, and it was not set above.
        let _ = self.write_shadow.set(shadow);
        Ok(())
    }

    /// Makes the shadows of a live buffer what the list says.
    pub(super) fn paint(&self, list: &List, offset: u64, block: &Block) {
        for (writes, shadow) in [(false, Some(&self.shadow)), (true, self.write_shadow.get())] {
            if let Some(shadow) = shadow {
                // Never closes what stays open: launches of this view may run.
                let ranges = list.view.ranges(offset, block, writes);
                let mut end = offset;
                for range in &ranges {
                    fill(shadow, end.next_multiple_of(GRANULE), range.start, POISON);
                    end = range.end;
                }
                open(shadow, &ranges);
                fill(
                    shadow,
                    end.next_multiple_of(GRANULE),
                    offset + block.taken,
                    POISON,
                );
            }
        }
    }

    /// The shadows that there are.
    fn shadows(&self) -> impl Iterator<Item = &Mapping> {
        [&self.shadow].into_iter().chain(self.write_shadow.get())
    }

    /// A buffer was freed. Returns ranges whose addresses may be given out again.
    pub(super) fn remove(&self, offset: u64) -> Vec<(u64, u64)> {
        let mut list = self.lock();
        let Some(block) = list.live.remove(&offset) else {
            return Vec::new();
        };
        list.view.forget(offset);
        self.fill(offset, offset + block.taken, POISON);
        let at = self.launches.load(Ordering::Relaxed);
        list.freed.push_back(Freed { offset, block, at });
        list.freed_bytes += block.taken;
        let mut given = Vec::new();
        while list.freed.len() > QUARANTINE || list.freed_bytes > self.capacity / QUARANTINE_PART {
            match list.freed.pop_front() {
                Some(old) => {
                    list.freed_bytes -= old.block.taken;
                    given.push((old.offset, old.block.taken));
                }
                None => break,
            }
        }
        given
    }

    /// Empties the quarantine: there is no room otherwise.
    pub(super) fn give_all(&self) -> Vec<(u64, u64)> {
        let mut list = self.lock();
        list.freed_bytes = 0;
        list.freed
            .drain(..)
            .map(|f| (f.offset, f.block.taken))
            .collect()
    }

    /// The live buffer that each of these offsets lies in, as offset and length, if there is one; of those for writes, if kernels may
    /// write it. Of a buffer of which launches have only parts it is the part.
    pub(super) fn around(
        &self,
        offsets: impl Iterator<Item = u64>,
        writes: bool,
    ) -> Vec<Option<(u64, u64)>> {
        let list = self.lock();
        let around = |offset: u64| {
            let (&start, block) = list.live.range(..=offset).next_back()?;
            let found = list.view.around((start, block), writes, offset)?;
            Some((found.start, found.end - found.start))
        };
        offsets.map(around).collect()
    }

    /// First byte of the live buffer that an offset lies in.
    pub(super) fn start_of(&self, offset: u64) -> Option<u64> {
        let list = self.lock();
        let (&start, block) = list.live.range(..=offset).next_back()?;
        (offset - start < block.len).then_some(start)
    }

    /// True when `len` bytes from an offset on lie in one live buffer, or in the part of it that launches may access.
    pub(super) fn is_live(&self, offset: u64, len: u64) -> bool {
        let list = self.lock();
        let below = list.live.range(..=offset).next_back();
        below.is_some_and(|(&start, block)| match len {
            0 => offset - start <= block.len,
            _ => {
                let found = list.view.around((start, block), false, offset);
                found.is_some_and(|range| len <= range.end - offset)
            }
        })
    }

    /// True when one of `len` bytes from an offset on is in a live buffer that kernels only read.
    pub(super) fn is_read_only(&self, offset: u64, len: u64) -> bool {
        let list = self.lock();
        let mut from = list.live.range(..offset.saturating_add(len)).rev();
        from.next().is_some_and(|(&start, block)| {
            let seen = |at, writes| list.view.around((start, block), writes, at).is_some();
            (offset.max(start)..offset.saturating_add(len))
                .any(|at| seen(at, false) && !seen(at, true))
        })
    }

    /// The buffer that an access of `bytes` bytes at an offset misses, with offsets in place of addresses: a freed one that had the byte,
    /// else the live one at the least distance.
    pub(super) fn neighbour(&self, offset: u64, bytes: u64) -> Option<Neighbour> {
        let list = self.lock();
        let overlaps = |start: u64, len: u64| {
            start < offset.saturating_add(bytes) && offset < start.saturating_add(len)
        };
        let freed = list.freed.iter().rev();
        let mut freed = freed.filter(|f| overlaps(f.offset, f.block.len));
        let of = |start: u64, block: &Block, freed: Option<u64>| Neighbour {
            start,
            len: block.len,
            made: block.made,
            freed,
            hidden: freed.is_none() && list.view.hides(block),
        };
        let (below, above) = (
            list.live.range(..=offset).next_back(),
            list.live.range(offset.saturating_add(1)..).next(),
        );
        let under_foot = below.is_some_and(|(&start, block)| overlaps(start, block.len));
        if !under_foot && let Some(f) = freed.next() {
            return Some(of(f.offset, &f.block, Some(f.at)));
        }
        let behind =
            below.map(|(&start, block)| (offset.saturating_sub(start + block.len), start, block));
        let before = above.map(|(&start, block)| (start - offset, start, block));
        let nearest = behind.into_iter().chain(before).min_by_key(|n| n.0);
        nearest.map(|(_, start, block)| of(start, block, None))
    }

    /// Fills every shadow.
    fn fill(&self, from: u64, to: u64, byte: u8) {
        for shadow in self.shadows() {
            fill(shadow, from, to, byte);
        }
    }
}

/// A shadow of a flat range of `capacity` bytes, of which the first `open` bytes of shadow are open.
fn reserve(capacity: u64, open: u64) -> io::Result<Mapping> {
    let bytes = LEAD + capacity / GRANULE + SLACK + page_size() as u64;
    let len = round_page(bytes).and_then(|b| usize::try_from(b).ok());
    let shadow = Mapping::reserve(len.ok_or(io::ErrorKind::OutOfMemory)?)?;
    shadow.open(0..open as usize)?;
    Ok(shadow)
}

/// Where the last granule of a buffer ends of which all bytes are its own.
fn whole(offset: u64, len: u64) -> u64 {
    offset + len / GRANULE * GRANULE
}

/// Closes what lies beyond the bytes of a buffer.
fn close_end(shadow: &Mapping, offset: u64, block: Block) {
    let end = offset + block.len;
    fill_rest(shadow, end);
    fill(
        shadow,
        end.next_multiple_of(GRANULE),
        offset + block.taken,
        POISON,
    );
}

/// Opens ranges that begin where granules do.
fn open(shadow: &Mapping, ranges: &[Range<u64>]) {
    for range in ranges {
        fill(shadow, range.start, range.end / GRANULE * GRANULE, 0);
        fill_rest(shadow, range.end);
    }
}

/// Opens the first bytes of a granule, as many as there are before an offset.
fn fill_rest(shadow: &Mapping, end: u64) {
    let (granule, rest) = (end / GRANULE * GRANULE, end % GRANULE);
    if rest != 0 {
        fill(shadow, granule, granule + GRANULE, rest as u8);
    }
}

/// Fills the shadow of a range of offsets, which is open.
fn fill(shadow: &Mapping, from: u64, to: u64, byte: u8) {
    let (from, to) = ((from / GRANULE) as usize, (to / GRANULE) as usize);
    if from < to {
        let at = shadow.start().wrapping_add(LEAD as usize + from);
        // SAFETY: all shadows are open as far as `open_to` was called, which it was for all that is marked; code that reads them at the
        // same moment sees old or new bytes.
        unsafe { copy::fill(at, to - from, byte) }
    }
}

/// The first of `count` elements of `bytes` bytes each, from a flat offset on, that is not wholly addressable by a shadow.
///
/// # Safety
/// The shadow must be readable for all these bytes.
pub(crate) unsafe fn first_closed(
    shadow: *const u8,
    offset: u64,
    bytes: u64,
    count: u64,
) -> Option<u64> {
    (0..count).find(|k| {
        let start = offset + k * bytes;
        let last = start + bytes - 1;
        (start / GRANULE..=last / GRANULE).any(|granule| {
            // SAFETY: as promised. Host threads may change the byte at the same moment.
            let open = unsafe { shadow.wrapping_add(granule as usize).read_volatile() };
            let end = (last - granule * GRANULE).min(GRANULE - 1);
            open != 0 && u64::from(open) <= end || open > GRANULE as u8
        })
    })
}

#[cfg(test)]
mod tests {
    use crate::memory::DeviceMemory;
    use visa_test_common::full;

    /// What the shadow says of a byte.
    fn open(memory: &DeviceMemory, address: u64) -> bool {
        let offset = address - memory.base();
        // SAFETY: the tests ask about open memory only.
        unsafe { super::first_closed(memory.shadow(), offset, 1, 1).is_none() }
    }

    #[test]
    fn shadow_and_list_say_the_same() {
        let memory = DeviceMemory::checked(1 << 24).unwrap();
        let lens = [1u64, 7, 8, 9, 64, 100, 4096, 65_537, 0];
        let mut buffers: Vec<_> = lens.iter().map(|&l| memory.alloc(l).unwrap()).collect();
        let compare = |when: &str| {
            for offset in 0..memory.size() {
                let at = memory.base() + offset;
                assert_eq!(open(&memory, at), memory.is_live(at, 1), "{when} {offset}");
            }
        };
        compare("allocated");
        for b in &buffers {
            assert!(b.is_empty() || memory.is_live(b.address(), b.len()));
            assert!(!memory.is_live(b.address(), b.len() + 1));
            assert!(!memory.is_live(b.address() - 1, 2));
        }
        let gone = buffers.remove(3).address();
        compare("one freed");
        let found = memory.neighbour(gone + 3, 1).unwrap();
        assert_eq!((found.start, found.len, found.freed), (gone, 9, Some(0)));
        // Pointers to the first byte, to the last, and beyond; what was freed; no pointer.
        let last = buffers.last().unwrap();
        assert!(last.is_empty());
        let some = &buffers[2];
        let ends = [0, some.len() - 1, some.len()].map(|by| some.address() + by);
        let numbers = [ends[0], ends[1], ends[2], gone, last.address(), 7, 0];
        let payload: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let found = memory.pointees(&payload, false);
        let found: Vec<_> = found.iter().map(|p| (p.start, p.bytes)).collect();
        let wanted = (some.address(), some.len());
        let none = (0, 0);
        assert_eq!(found, [wanted, wanted, none, none, none, none, none]);
        let next = memory.alloc(9).unwrap();
        assert_ne!(next.address(), gone, "quarantine");
        compare("another");
    }

    /// What the shadow of writes says of a byte.
    fn writable(memory: &DeviceMemory, address: u64) -> bool {
        let offset = address - memory.base();
        // SAFETY: as above.
        unsafe { super::first_closed(memory.write_shadow(), offset, 1, 1).is_none() }
    }

    #[test]
    fn what_is_read_only_is_closed_to_writes() {
        let memory = DeviceMemory::checked(1 << 24).unwrap();
        let lens = [1u64, 7, 8, 9, 64, 100, 4096, 65_537];
        let mut buffers: Vec<_> = lens.iter().map(|&l| memory.alloc(l).unwrap()).collect();
        buffers.remove(2);
        assert_eq!(memory.shadow(), memory.write_shadow());
        let compare = |when: &str| {
            // Far from the first buffers, not each byte; a plain run leaves the largest buffer sooner.
            let far = if full() { 1 << 18 } else { 1 << 14 };
            let near = 0..memory.size().min(far);
            for offset in near.chain((far..memory.size()).step_by(997)) {
                let at = memory.base() + offset;
                let wanted = memory.is_live(at, 1) && !memory.is_read_only(at, 1);
                assert_eq!(writable(&memory, at), wanted, "{when} {offset}");
                assert_eq!(open(&memory, at), memory.is_live(at, 1), "{when} {offset}");
            }
        };
        buffers[1].mark_read_only().unwrap();
        buffers[4].mark_read_only().unwrap();
        // A part is not marked, nor is what has no place among the others.
        buffers[3].part(8, 8).unwrap().mark_read_only().unwrap();
        assert_ne!(memory.shadow(), memory.write_shadow());
        compare("marked");
        let (marked, free) = (&buffers[4], &buffers[3]);
        assert!(memory.is_read_only(marked.address(), marked.len()));
        assert!(memory.is_read_only(marked.address() - 3, 4));
        assert!(!memory.is_read_only(marked.address() - 3, 3));
        assert!(memory.is_read_only(marked.address() + marked.len() - 1, 4));
        assert!(!memory.is_read_only(marked.address() + marked.len(), 4));
        assert!(!memory.is_read_only(free.address(), free.len()));
        let payload: Vec<u8> = [marked, free]
            .iter()
            .flat_map(|b| b.address().to_le_bytes())
            .collect();
        let found = [false, true].map(|writes| {
            let found = memory.pointees(&payload, writes);
            found.iter().map(|p| p.bytes).collect::<Vec<_>>()
        });
        assert_eq!(found, [[100, 64], [0, 64]]);
        // Another buffer at the place of one that was read-only may be written.
        drop(buffers.remove(4));
        compare("freed");
        let more = memory.alloc(3 << 20).unwrap();
        compare("grown");
        assert!(!memory.is_read_only(more.address(), more.len()));
    }

    #[test]
    fn quarantine_gives_way() {
        let memory = DeviceMemory::checked(1 << 20).unwrap();
        let mut last = 0;
        for round in 0..200 {
            memory.count_launch();
            let buffer = memory.alloc(100_000).unwrap();
            assert_eq!(buffer.to_vec(), vec![0; 100_000]);
            buffer.fill(round);
            assert!(memory.is_live(buffer.address(), 100_000));
            last = buffer.address();
        }
        let found = memory.neighbour(last + 50, 4).unwrap();
        assert_eq!((found.start, found.freed), (last, Some(200)));
    }

    #[test]
    fn the_nearest_buffer_is_named() {
        let memory = DeviceMemory::checked(1 << 20).unwrap();
        let (a, b) = (memory.alloc(256).unwrap(), memory.alloc(64).unwrap());
        let near = |at: u64| memory.neighbour(at, 4).unwrap().start;
        assert_eq!(near(a.address() + 256), a.address());
        assert_eq!(near(a.address() + 254), a.address());
        assert_eq!(near(b.address() - 4), b.address());
        assert_eq!(near(memory.base()), a.address());
        assert_eq!(near(u64::MAX), b.address());
        let unchecked = DeviceMemory::with_capacity(1 << 20).unwrap();
        assert!(unchecked.neighbour(unchecked.base(), 4).is_none());
    }
}
