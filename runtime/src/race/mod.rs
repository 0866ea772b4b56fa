//! Checks of races in compiled code: a shadow of memory that records past accesses (`docs/checking.md` has the rules).
//!
//! Each aligned word of device memory and of local memory has a [`Cell`] of four numbers. Where messages access whole lines of four words, a
//! [`line::Line`] of four numbers stands for the cells of its words. The [`shadow`] takes eight bytes of reserved addresses for each byte of
//! memory; pages that were never written take no memory.
//!
//! An *epoch* is the time between two barriers. Epochs are numbered over all groups and launches, so that nothing has to be cleared: an epoch
//! belongs to a launch if its number is at least that of the launch's first epoch. The interpreter does not use this module.

mod cell;
mod line;
mod row;
mod run;
mod shadow;
#[cfg(test)]
mod tests;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::abi::race::Step;
use crate::fault::OtherAccess;
use crate::limits::MAX_SLM_BYTES;
use crate::memory::DeviceMemory;
pub(crate) use cell::Now;
use cell::{Cell, EPOCH, MAX_EPOCH};
pub(crate) use run::{Part, Run, ones};
use shadow::{Shadow, WORD};
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::{__m512i, _mm512_set1_epi64, _mm512_sub_epi64};
use std::collections::HashMap;
use std::io;
use std::ops::Range;

/// What is known of accesses to the memory of a launch that runs.
#[derive(Debug)]
pub(crate) struct Races {
    flat: Shadow,
    /// First address of device memory.
    base: u64,
    local: Shadow,
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
    /// A write of the value that is there already is an access like others.
    pub same_value: bool,
    /// Where instructions access device memory, by the low bits of their sites.
    #[cfg(target_arch = "x86_64")]
    ahead: [Ahead; SITES],
}

/// Instructions whose next access is predicted.
#[cfg(target_arch = "x86_64")]
const SITES: usize = 256;

/// Where an instruction accessed memory last, the distance from the access before, and the distance that occurred twice in a row. The threads of
/// a group run one after the other, so the same is kept of the first access of each such series.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, Default)]
struct Ahead {
    last: u64,
    distance: u64,
    stride: u64,
    first: u64,
    between: u64,
}

/// Where an instruction is likely to access memory. In a series this is the access after the next one, because the next one comes before memory
/// could answer. At the start of a series it is the first two accesses of the next series.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Foreseen {
    after_next: u64,
    series: Option<[u64; 2]>,
}

#[cfg(target_arch = "x86_64")]
impl Ahead {
    /// Where accesses are likely to be. A distance that occurs once, as from the last thread of a group to the first one, changes
    /// nothing.
    #[inline(always)]
    fn next(&mut self, address: u64) -> Foreseen {
        let distance = address.wrapping_sub(self.last);
        let mut series = None;
        if distance == self.distance {
            self.stride = distance;
        } else if distance != self.stride {
            let between = address.wrapping_sub(self.first);
            let next = address.wrapping_add(between);
            series = (between == self.between).then(|| [next, next.wrapping_add(self.stride)]);
            self.between = between;
            self.first = address;
        }
        self.distance = distance;
        self.last = address;
        Foreseen {
            after_next: address.wrapping_add(self.stride.wrapping_mul(2)),
            series,
        }
    }
}

/// Prefetches memory into the processor's caches, if there is an address.
#[inline(always)]
fn prefetch<T>(at: *const T) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: every processor of this architecture has it, and it is no access: no address is wrong.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = at;
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
    pub(crate) fn new(memory: Option<&DeviceMemory>) -> io::Result<Races> {
        let (base, capacity) = memory.map_or((0, 0), |m| (m.base(), m.capacity()));
        Ok(Races {
            flat: Shadow::new(capacity)?,
            base,
            local: Shadow::new(MAX_SLM_BYTES.into())?,
            far: HashMap::new(),
            epoch: 1,
            launch: 1,
            group: 1,
            starts: Vec::new(),
            first: 0,
            groups: [1; 3],
            private: 0..0,
            same_value: false,
            #[cfg(target_arch = "x86_64")]
            ahead: [Ahead::default(); SITES],
        })
    }

    /// Before a launch.
    pub(crate) fn start_launch(&mut self, groups: [u32; 3], private: Range<u64>) {
        self.starts.clear();
        self.first = 0;
        self.groups = groups;
        self.private = private;
        self.far.clear();
        self.next_epoch();
        self.launch = self.epoch;
    }

    /// The program has freed a buffer at an offset in device memory. No launch runs that uses this.
    pub(crate) fn freed(&self, offset: u64, len: u64) {
        self.flat.discard(offset..offset.saturating_add(len));
    }

    /// Before a group, which is the next one of the launch.
    pub(crate) fn start_group(&mut self) {
        self.next_epoch();
        self.group = self.epoch;
        self.starts.push(self.epoch as u32);
    }

    /// Threads of the group continue after a barrier.
    pub(crate) fn next_epoch(&mut self) {
        if self.epoch < MAX_EPOCH {
            self.epoch += 1;
            return;
        }
        // What earlier groups did is forgotten, so their numbers may be used again.
        self.flat.forget();
        self.local.forget();
        self.far.clear();
        self.first += self.starts.len().saturating_sub(1) as u64;
        self.starts.clear();
        self.starts.push(1);
        (self.epoch, self.launch, self.group) = (1, 1, 1);
    }

    /// An access that a thread makes now.
    pub(crate) fn now(&self, memory: Memory, thread: u32, site: u32, does: Does) -> Now {
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
    pub(crate) fn who(&self, (slot, byte): (u64, u32), group: [u32; 3]) -> OtherAccess {
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
    pub(crate) fn is_private(&self, address: u64) -> bool {
        self.private.contains(&address)
    }

    /// True if some memory belongs to one thread.
    pub(crate) fn has_private(&self) -> bool {
        !self.private.is_empty()
    }

    /// True where some of these addresses belong to one thread.
    pub(crate) fn touches_private(&self, addresses: Range<u64>) -> bool {
        self.private.start < addresses.end && addresses.start < self.private.end
    }

    /// The shadow of some memory, and the address that it begins at.
    #[inline(always)]
    fn shadow(&mut self, memory: Memory) -> (&mut Shadow, u64) {
        match memory {
            Memory::Local(first) => (&mut self.local, first),
            Memory::Shared => (&mut self.flat, self.base),
        }
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
        let (shadow, first) = self.shadow(memory);
        let word = address.wrapping_sub(first) / WORD;
        match shadow.word(now, word, lane, bytes) {
            Some(race) => race,
            None => cell::access(self.far.entry(address).or_default(), now, lane, bytes),
        }
    }

    /// Enters an access to consecutive whole words, the first of which is at `address`, if it races with none. Otherwise returns false, and the
    /// caller has to use [`Races::element`]; words that race were not entered. Entering a word twice does no harm. `WIDE` code only runs on
    /// processors that have AVX-512.
    #[inline(always)]
    pub(crate) fn part<const WIDE: bool>(
        &mut self,
        memory: Memory,
        now: &Now,
        address: u64,
        part: Part,
    ) -> bool {
        let (shadow, first) = self.shadow(memory);
        let offset = address.wrapping_sub(first);
        offset.is_multiple_of(WORD) && shadow.part::<WIDE>(now, offset / WORD, part)
    }

    /// The same for those of up to 32 words, one of each of consecutive lanes from `lane` on, whose bits are set. The access is not atomic. The
    /// processor has AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn words(
        &mut self,
        memory: Memory,
        now: &Now,
        address: u64,
        (count, accessed): (u64, u64),
        lane: u32,
    ) -> bool {
        if memory == Memory::Shared {
            self.fetch_next(now, address, count);
        }
        let (shadow, first) = self.shadow(memory);
        let offset = address.wrapping_sub(first);
        shadow.words_of_lanes(now, offset, (count, accessed), lane)
    }

    /// The same for lines of `count` lanes from `lane` on, each `stride` bytes from the one before, for those lanes whose bits are set. False also
    /// where they are no lines, or one has cells in use. The access is not atomic. The processor has AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn lines_apart(
        &mut self,
        memory: Memory,
        now: &Now,
        (address, stride, count): (u64, u64, u64),
        of: u32,
        lane: u32,
    ) -> bool {
        if memory == Memory::Shared {
            self.fetch_next(now, address, count * stride / WORD);
        }
        let (shadow, first) = self.shadow(memory);
        let place = (address.wrapping_sub(first), stride, count);
        shadow.lines_apart(now, place, of, lane)
    }

    /// The same for several reads of the group's local memory, the first at an offset in it: each of words of consecutive lanes from `lane` on, or,
    /// with `ONE_LANE`, of that lane. The processor has AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn local_reads<const LINES: usize, const ONE_LANE: bool>(
        &mut self,
        now: &Now,
        (offset, lane): (u64, u32),
        (count, step): (u8, Step),
    ) -> bool {
        let (run, line) = match ONE_LANE {
            true => (line::WORDS.ilog2(), 0),
            false => (0, line::WORDS << cell::LANE),
        };
        let Some(next) = cell::next(now.base, step, count) else {
            return false;
        };
        let slot = now.base | line::LineLanes { first: lane, run }.bits();
        let place = (offset, step.distance);
        self.local
            .are_read::<LINES>(now, place, count, (slot, line, next))
    }

    /// Prefetches the shadow of where an instruction will likely access device memory next. Processors predict that by the address of the
    /// code, but here one function accesses the shadow for all instructions of a program.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn fetch_next(&mut self, now: &Now, address: u64, count: u64) {
        let foreseen = self.ahead[cell::low_site(now.base) % SITES].next(address);
        let word = |address: u64| address.wrapping_sub(self.base) / WORD;
        self.flat.prefetch_lines(word(foreseen.after_next), count);
        if let Some(series) = foreseen.series {
            for address in series {
                self.flat.prefetch_lines(word(address), count);
            }
        }
    }

    /// The same for those of a few words of one lane whose bits are set, if all are of one line. False also where they are not. The
    /// processor has AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(crate) fn few(
        &mut self,
        memory: Memory,
        now: &Now,
        address: u64,
        words: (u64, u64),
        lane: u32,
    ) -> bool {
        let (shadow, first) = self.shadow(memory);
        let offset = address.wrapping_sub(first);
        offset.is_multiple_of(WORD) && shadow.few(now, offset / WORD, words, lane)
    }

    /// The same for up to eight lanes, those whose bits are set, each of which accesses the word at its address, or the `whole` line there. False
    /// also where not all of them are at such places.
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    pub(crate) fn eight(
        &mut self,
        memory: Memory,
        now: &Now,
        (addresses, lanes): (__m512i, __m512i),
        of: u8,
        whole: bool,
    ) -> bool {
        let (shadow, first) = self.shadow(memory);
        let first = _mm512_set1_epi64(first.cast_signed());
        shadow.eight(now, (_mm512_sub_epi64(addresses, first), lanes), of, whole)
    }

    /// The same for all of one word.
    #[inline(always)]
    pub(crate) fn one<const WIDE: bool>(
        &mut self,
        memory: Memory,
        now: &Now,
        address: u64,
        lane: u32,
    ) -> bool {
        let (shadow, first) = self.shadow(memory);
        let offset = address.wrapping_sub(first);
        offset.is_multiple_of(WORD) && shadow.one::<WIDE>(now, offset / WORD, lane)
    }

    /// Fetches what is known of a word into the processor's caches, or of its `line`; the word as well, if its `value` is needed.
    #[inline(always)]
    pub(crate) fn prefetch(&self, memory: Memory, place: *const u8, value: bool, line: bool) {
        let (shadow, first) = match memory {
            Memory::Local(first) => (&self.local, first),
            Memory::Shared => (&self.flat, self.base),
        };
        if value {
            prefetch(place);
        }
        shadow.prefetch((place as u64).wrapping_sub(first) / WORD, line);
    }

    /// Enters an access of a lane to an element in memory; what it races with, at its first such byte.
    pub(crate) fn element(
        &mut self,
        memory: Memory,
        now: &Now,
        element: (u64, u32),
        lane: u32,
    ) -> Option<(u64, u32)> {
        self.each_word(memory, element, |races, word, bytes| {
            races.word(memory, now, word, lane, bytes)
        })
    }

    /// What an access to an element would race with. Nothing is entered.
    pub(crate) fn conflict(
        &mut self,
        memory: Memory,
        now: &Now,
        element: (u64, u32),
    ) -> Option<(u64, u32)> {
        self.each_word(memory, element, |races, address, bytes| {
            let (shadow, first) = races.shadow(memory);
            let word = address.wrapping_sub(first) / WORD;
            shadow.conflict(now, word, bytes).unwrap_or_else(|| {
                let cell = races.far.get(&address)?;
                cell::conflict(cell, now, bytes)
            })
        })
    }

    /// What is found first in the words of an element, each of which is asked with its bytes that belong to the element.
    fn each_word(
        &mut self,
        memory: Memory,
        (address, bytes): (u64, u32),
        ask: impl Fn(&mut Races, u64, u64) -> Option<(u64, u32)>,
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
            let found = ask(self, word, cell::WHOLE << from & ((1 << to) - 1));
            race = race.or(found);
            word += WORD;
        }
        race
    }
}
