//! Checks of races in compiled code: what is known of past accesses, beside the memory that was accessed (`docs/checking.md` has the rules).
//!
//! Each aligned word of device memory and of local memory has a [`Cell`] of four numbers, which lie in four planes of reserved addresses:
//! memory is used only for those that were written. *Epochs* number the times between two barriers, over all groups and launches, so that
//! nothing has to be cleared: a greater epoch than that at which a launch began belongs to it. The interpreter does not use this.

mod cell;
mod row;

use crate::fault::OtherAccess;
use crate::limits::MAX_SLM_BYTES;
use crate::memory::DeviceMemory;
use crate::memory::map::{Mapping, round_page};
use cell::{Cell, EPOCH, MAX_EPOCH};
pub(crate) use cell::{Now, lane_bits};
use std::collections::HashMap;
use std::io;
use std::ops::Range;

/// Bytes of a word.
const WORD: u64 = 4;

/// Numbers of a cell.
const SLOTS: usize = 4;

/// Cells of consecutive words.
#[derive(Debug)]
struct Planes {
    mapping: Mapping,
    /// Words, which is the distance from plane to plane.
    words: usize,
}

impl Planes {
    /// For `bytes` bytes of memory.
    fn new(bytes: u64) -> io::Result<Planes> {
        let words = bytes.div_ceil(WORD).next_multiple_of(512);
        let len = words.checked_mul(SLOTS as u64 * 8).and_then(round_page);
        let len = len.and_then(|len| usize::try_from(len).ok());
        let len = len.ok_or(io::ErrorKind::OutOfMemory)?;
        let mapping = Mapping::reserve(len.max(1))?;
        mapping.open(0..len)?;
        Ok(Planes {
            mapping,
            words: words as usize,
        })
    }

    /// A number of the cell of a word.
    fn slot(&self, word: u64, slot: usize) -> Option<*mut u64> {
        let at = slot * self.words + word as usize;
        let start = self.mapping.start().cast::<u64>();
        (word < self.words as u64).then(|| start.wrapping_add(at))
    }

    /// The numbers of consecutive words, a slice for each plane.
    fn rows(&mut self, word: u64, words: usize) -> Option<[&mut [u64]; SLOTS]> {
        let end = word.checked_add(words as u64)?;
        let first = self.slot(word, 0).filter(|_| end <= self.words as u64)?;
        let row = |slot: usize| {
            let start = first.wrapping_add(slot * self.words);
            // SAFETY: the words have a number in each plane, which is open; planes do not overlap, and `self` is borrowed as long as they are.
            unsafe { std::slice::from_raw_parts_mut(start, words) }
        };
        Some(std::array::from_fn(row))
    }

    fn forget(&self) {
        let len = self.words * SLOTS * 8;
        // Epochs tell old from new where this fails, except after a whole round of them.
        let _ = self.mapping.discard(0..len);
    }
}

/// What is known of accesses to the memory of a launch that runs.
#[derive(Debug)]
pub(crate) struct Races {
    flat: Planes,
    /// First address of device memory.
    base: u64,
    local: Planes,
    /// Cells of other memory that surfaces reach, by the address of the word.
    far: HashMap<u64, Cell>,
    /// Epochs: the current one, and the first ones of the launch and the group.
    epoch: u64,
    launch: u64,
    group: u64,
    /// First epoch of each group, and the number of the first of them.
    starts: Vec<u32>,
    first: u64,
    /// Groups in each dimension.
    groups: [u32; 3],
    /// Addresses of memory that belongs to single threads.
    private: Range<u64>,
}

/// Which cells an access goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Memory {
    /// Those of the group's local memory, which begins at this address.
    Local(u64),
    /// Those of memory that all groups share.
    Shared,
}

/// What an access does to an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Does {
    pub writes: bool,
    pub atomic: bool,
}

impl Races {
    /// Nothing is known yet.
    ///
    /// # Errors
    /// When addresses cannot be reserved: eight bytes for each byte of device memory.
    pub fn new(memory: Option<&DeviceMemory>) -> io::Result<Races> {
        let (base, capacity) = memory.map_or((0, 0), |m| (m.base(), m.capacity()));
        Ok(Races {
            flat: Planes::new(capacity)?,
            base,
            local: Planes::new(MAX_SLM_BYTES.into())?,
            far: HashMap::new(),
            epoch: 1,
            launch: 1,
            group: 1,
            starts: Vec::new(),
            first: 0,
            groups: [1; 3],
            private: 0..0,
        })
    }

    /// Before a launch.
    pub fn start_launch(&mut self, groups: [u32; 3], private: Range<u64>) {
        self.starts.clear();
        self.first = 0;
        self.groups = groups;
        self.private = private;
        self.far.clear();
        self.next_epoch();
        self.launch = self.epoch;
    }

    /// Before a group, which is the next one of the launch.
    pub fn start_group(&mut self) {
        self.next_epoch();
        self.group = self.epoch;
        self.starts.push(self.epoch as u32);
    }

    /// Threads of the group go on from a barrier.
    pub fn next_epoch(&mut self) {
        if self.epoch < MAX_EPOCH {
            self.epoch += 1;
            return;
        }
        // What groups did before is forgotten, so that their numbers are free.
        self.flat.forget();
        self.local.forget();
        self.far.clear();
        self.first += self.starts.len().saturating_sub(1) as u64;
        self.starts.clear();
        self.starts.push(1);
        (self.epoch, self.launch, self.group) = (1, 1, 1);
    }

    /// An access that a thread makes now.
    pub fn now(&self, memory: Memory, thread: u32, site: u32, does: Does) -> Now {
        let floor = match memory {
            Memory::Local(_) => self.group,
            Memory::Shared => self.launch,
        };
        Now {
            base: cell::base(self.epoch, thread, site, does.atomic),
            floor: floor << EPOCH,
            group: self.group << EPOCH,
            epoch: self.epoch << EPOCH,
            writes: does.writes,
        }
    }

    /// Who made an access, at a byte of its word.
    pub fn who(&self, (slot, byte): (u64, u32), group: [u32; 3]) -> OtherAccess {
        let epoch = cell::epoch(slot);
        let group = if epoch >= self.group {
            group
        } else {
            let after = self.starts.partition_point(|&s| u64::from(s) <= epoch);
            let linear = self.first + after.saturating_sub(1) as u64;
            let [x, y, _] = self.groups.map(|n| u64::from(n.max(1)));
            [linear % x, linear / x % y, linear / x / y].map(|n| n as u32)
        };
        OtherAccess {
            group,
            thread: cell::thread(slot),
            lane: cell::lane(slot, byte),
            site: cell::site(slot).unwrap_or(OtherAccess::UNKNOWN),
        }
    }

    /// True where memory belongs to one thread.
    pub fn is_private(&self, address: u64) -> bool {
        self.private.contains(&address)
    }

    /// True where some of these addresses belong to one thread.
    pub fn touches_private(&self, addresses: Range<u64>) -> bool {
        self.private.start < addresses.end && addresses.start < self.private.end
    }

    /// Enters an access to the word that begins at an address.
    fn word(
        &mut self,
        memory: Memory,
        now: &Now,
        address: u64,
        lane: u32,
        bytes: u64,
    ) -> Option<(u64, u32)> {
        let (planes, first) = match memory {
            Memory::Local(first) => (&self.local, first),
            Memory::Shared => (&self.flat, self.base),
        };
        let word = address.wrapping_sub(first) / WORD;
        let Some(first) = planes.slot(word, 0) else {
            return cell::access(self.far.entry(address).or_default(), now, lane, bytes);
        };
        let at = |slot: usize| first.wrapping_add(slot * planes.words);
        // SAFETY: the word has a number in each plane, which is open; only the worker that runs the launch uses them.
        let mut cell: Cell = std::array::from_fn(|slot| unsafe { at(slot).read() });
        let before = cell;
        let race = cell::access(&mut cell, now, lane, bytes);
        for (slot, (new, old)) in cell.into_iter().zip(before).enumerate() {
            if new != old {
                // SAFETY: as above.
                unsafe { at(slot).write(new) }
            }
        }
        race
    }

    /// Enters an access to consecutive whole words, the first of which is at `address`, if it races with none. `lanes` has for each word
    /// [`lane_bits`] of the lane that accesses it, or 0. False, and nothing is entered, where [`Races::element`] has to look at it.
    pub fn words(&mut self, memory: Memory, now: &Now, address: u64, lanes: &[u64]) -> bool {
        let (planes, first) = match memory {
            Memory::Local(first) => (&mut self.local, first),
            Memory::Shared => (&mut self.flat, self.base),
        };
        let offset = address.wrapping_sub(first);
        let rows = planes.rows(offset / WORD, lanes.len());
        let rows = rows.filter(|_| offset.is_multiple_of(WORD));
        rows.is_some_and(|rows| row::enter(rows, now, lanes))
    }

    /// Enters an access of a lane to an element in memory; what it races with, at its first such byte.
    pub fn element(
        &mut self,
        memory: Memory,
        now: &Now,
        (address, bytes): (u64, u32),
        lane: u32,
    ) -> Option<(u64, u32)> {
        let end = address.wrapping_add(bytes.into());
        let mut race = None;
        let origin = match memory {
            Memory::Local(first) => first,
            Memory::Shared => self.base,
        };
        let low = address.wrapping_sub(origin) % WORD;
        let mut word = address.wrapping_sub(low);
        while word < end {
            let from = address.saturating_sub(word).min(WORD);
            let to = (end - word).min(WORD);
            let bytes = cell::WHOLE << from & ((1 << to) - 1);
            let found = self.word(memory, now, word, lane, bytes);
            race = race.or(found);
            word += WORD;
        }
        race
    }
}
