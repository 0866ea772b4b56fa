//! Checks of races in compiled code: what is known of past accesses, beside the memory that was accessed (`docs/checking.md` has the rules).
//!
//! Each aligned word of device memory and of local memory has a [`Cell`] of four numbers, at reserved addresses: memory is used only for those
//! that were written. Where messages access whole lines of words, one number of a [`line::Line`] stands for those of its words.
//!
//! *Epochs* number the times between two barriers, over all groups and launches, so that nothing has to be cleared: a greater epoch than that at which a launch began belongs to it. The interpreter does not use this.

mod cell;
mod line;
mod row;
mod shadow;
#[cfg(target_arch = "x86_64")]
mod x86;

use crate::fault::OtherAccess;
use crate::limits::MAX_SLM_BYTES;
use crate::memory::DeviceMemory;
pub(crate) use cell::Now;
use cell::{Cell, EPOCH, MAX_EPOCH};
pub(crate) use shadow::{Part, Run, ones};
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
}

/// Fetches memory into the processor's caches, if there is some.
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
    /// When addresses cannot be reserved: eleven bytes for each byte of device memory.
    pub fn new(memory: Option<&DeviceMemory>) -> io::Result<Races> {
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

    /// The program has freed a buffer at an offset in device memory. No launch runs that uses this.
    pub fn freed(&self, offset: u64, len: u64) {
        self.flat.discard(offset..offset.saturating_add(len));
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

    /// True if some memory belongs to one thread.
    pub fn has_private(&self) -> bool {
        !self.private.is_empty()
    }

    /// True where some of these addresses belong to one thread.
    pub fn touches_private(&self, addresses: Range<u64>) -> bool {
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

    /// Enters an access to consecutive whole words, the first of which is at `address`, if it races with none. False, and nothing is entered
    /// of words that race, where [`Races::element`] has to look at it. To enter words again that were entered does no harm. `WIDE` code
    /// runs on processors that have AVX-512 only.
    #[inline(always)]
    pub fn part<const WIDE: bool>(
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

    /// The same for `count` words that are whole lines, of consecutive lanes from `lane` on, if none of the lines has cells in use. False also
    /// where they are not. The processor has AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn lines(
        &mut self,
        memory: Memory,
        now: &Now,
        address: u64,
        count: u64,
        lane: u32,
    ) -> bool {
        let (shadow, first) = self.shadow(memory);
        shadow.lines(now, address.wrapping_sub(first), count, lane)
    }

    /// The same for those of a few words of one lane whose bits are set, if all are of one line. False also where they are not. The
    /// processor has AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn few(
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
    pub fn eight(
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
    pub fn one<const WIDE: bool>(
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
    pub fn prefetch(&self, memory: Memory, place: *const u8, value: bool, line: bool) {
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
    pub fn element(
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
    pub fn conflict(
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

#[cfg(test)]
mod tests {
    use super::*;
    use visa_test_common::Rng;

    /// One access of lanes to consecutive words.
    struct Made {
        thread: u32,
        site: u32,
        does: Does,
        /// Of the first word.
        address: u64,
        run: Run,
    }

    impl Made {
        fn new(rng: &mut Rng) -> Made {
            let shift = [0, 0, 0, 1, 2, 3, 4, -1, -2][rng.below(9)];
            let least = if shift < 0 { -shift } else { 0 } as usize;
            let lanes: u32 = 1 << (least + rng.below(if shift < 3 { 6 - least } else { 4 }));
            Made {
                thread: rng.below(3) as u32,
                // Of bytes that an instruction accesses again, one by one, not all stay known.
                site: match shift {
                    0.. => rng.below(5) as u32,
                    _ => 5 + rng.below(4000) as u32,
                },
                does: Does {
                    writes: rng.below(3) == 0,
                    atomic: false,
                },
                // Mostly where lines begin.
                address: 4 * [0, 8, 16, 32, rng.below(40) as u64][rng.below(5)],
                run: Run {
                    words: match shift {
                        0.. => u64::from(lanes) << shift,
                        _ => u64::from(lanes) >> -shift,
                    },
                    lane: rng.below(33 - lanes as usize) as u32,
                    shift,
                },
            }
        }

        /// What each lane's elements race with, one after the other.
        fn one_by_one(
            &self,
            races: &mut Races,
            memory: Memory,
            start: u64,
        ) -> Vec<Option<(u64, u32)>> {
            let now = races.now(memory, self.thread, self.site, self.does);
            let bytes = if self.run.shift < 0 {
                4 >> -self.run.shift
            } else {
                4
            };
            let elements = 0..self.run.words * 4 / bytes;
            let element = |at: u64| {
                let lane = self.run.lane + (at >> self.run.shift.max(0)) as u32;
                let place = start + self.address + bytes * at;
                races.element(memory, &now, (place, bytes as u32), lane)
            };
            elements.map(element).collect()
        }

        /// All of them at once; true if there is no race.
        fn at_once<const WIDE: bool>(&self, races: &mut Races, memory: Memory, start: u64) -> bool {
            let now = races.now(memory, self.thread, self.site, self.does);
            let words = self.run.words;
            (0..words).step_by(64).all(|at| {
                let len = (words - at).min(64);
                let part = Part {
                    run: self.run,
                    at,
                    len,
                    accessed: ones(len),
                };
                let address = start + self.address + 4 * at;
                races.part::<WIDE>(memory, &now, address, part)
            })
        }
    }

    /// What was known of a buffer is given up with it, by words and by lines.
    #[test]
    fn freed_memory_is_forgotten() {
        let memory = DeviceMemory::with_capacity(1 << 24).unwrap();
        let mut races = Races::new(Some(&memory)).unwrap();
        races.start_launch([1; 3], 0..0);
        races.start_group();
        let does = |writes| Does {
            writes,
            atomic: false,
        };
        let base = memory.base();
        let now = races.now(Memory::Shared, 1, 2, does(true));
        let run = Run {
            words: 8,
            lane: 0,
            shift: 0,
        };
        let (kept, freed) = (base + 4096, base + (1 << 20));
        for start in [kept, freed] {
            assert!(races.part::<false>(Memory::Shared, &now, start, Part::all(run)));
            let word = races.element(Memory::Shared, &now, (start + 64, 4), 3);
            assert_eq!(word, None);
        }
        races.freed(1 << 18, 1 << 22);
        let later = races.now(Memory::Shared, 2, 2, does(false));
        let mut ask = |at| races.conflict(Memory::Shared, &later, (at, 4)).is_some();
        assert_eq!(
            [kept, kept + 64, freed, freed + 64].map(&mut ask),
            [true, true, false, false]
        );
    }

    /// Lines are a shorter way to know what cells know: a launch in local memory, whose words have cells and lines, against the same launch in
    /// memory that has cells only.
    fn lines_are_cells<const WIDE: bool>() {
        const LOCAL: u64 = 0x1000;
        let memory = Memory::Local(LOCAL);
        let mut rng = Rng::new(11);
        let [mut lines, mut cells] = [(); 2].map(|()| Races::new(None).unwrap());
        let (mut raced, mut clean) = (0, 0);
        for _ in 0..6000 {
            match rng.below(12) {
                // A launch of one group: what was before the group was before the launch.
                0 => [&mut lines, &mut cells].map(|races| {
                    races.start_launch([1; 3], 0..0);
                    races.start_group();
                    races.launch = races.group;
                }),
                1..4 => [&mut lines, &mut cells].map(Races::next_epoch),
                _ => [(); 2],
            };
            let made = Made::new(&mut rng);
            let narrow = made.run.shift < 0;
            // To enter bytes one by one makes what was known of others forgotten, so that races are asked for first.
            let free = !narrow || {
                let now = cells.now(Memory::Shared, made.thread, made.site, made.does);
                (0..made.run.words).all(|at| {
                    let word = (LOCAL + made.address + 4 * at, 4);
                    cells.conflict(Memory::Shared, &now, word).is_none()
                })
            };
            if narrow && !free {
                continue;
            }
            let wanted = made.one_by_one(&mut cells, Memory::Shared, LOCAL);
            let whole = rng.below(6) != 0 && {
                let entered = made.at_once::<WIDE>(&mut lines, memory, LOCAL);
                assert_eq!(entered, wanted.iter().all(Option::is_none));
                entered
            };
            match whole {
                true => clean += 1,
                false => {
                    assert_eq!(made.one_by_one(&mut lines, memory, LOCAL), wanted);
                    raced += 1;
                }
            }
        }
        assert!(clean > 1000 && raced > 1000, "{clean} {raced}");
    }

    #[test]
    fn lines_are_cells_one_by_one() {
        lines_are_cells::<false>();
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn lines_are_cells_by_vectors() {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
            lines_are_cells::<true>();
        }
    }

    /// Eight lanes at any places, some at the same one, are what they are one after the other, those of words and those of whole lines.
    #[test]
    #[cfg(target_arch = "x86_64")]
    fn eight_lanes_are_entered_at_once() {
        if !is_x86_feature_detected!("avx512f") || !is_x86_feature_detected!("avx512vl") {
            return;
        }
        const LOCAL: u64 = 0x1000;
        let memory = Memory::Local(LOCAL);
        let mut rng = Rng::new(5);
        let [mut eight, mut cells] = [(); 2].map(|()| Races::new(None).unwrap());
        let (mut raced, mut clean) = ([0; 2], [0; 2]);
        for _ in 0..20_000 {
            match rng.below(20) {
                0 => [&mut eight, &mut cells].map(|races| {
                    races.start_launch([1; 3], 0..0);
                    races.start_group();
                    races.launch = races.group;
                }),
                1..3 => [&mut eight, &mut cells].map(Races::next_epoch),
                _ => [(); 2],
            };
            let whole = rng.below(2) == 0;
            let does = Does {
                writes: rng.below(4) == 0,
                atomic: !whole && rng.below(4) == 0,
            };
            let (thread, site) = (rng.below(3) as u32, rng.below(5) as u32);
            let [now, wanted] = [&eight, &cells].map(|races| races.now(memory, thread, site, does));
            let unit = if whole { 16 } else { 4 };
            // Few places, so that several threads read and write each.
            let around = 1 + rng.below(12);
            let places: [u64; 8] =
                std::array::from_fn(|_| LOCAL + unit * (rng.below(around) as u64));
            let lanes: [u64; 8] = std::array::from_fn(|at| 3 * at as u64 + 2);
            let of = rng.below(256) as u8;
            // SAFETY: both are vectors, and the processor has them.
            let entered = unsafe {
                use std::arch::x86_64::_mm512_loadu_epi64;
                let [at, by] = [&places, &lanes].map(|v| _mm512_loadu_epi64(v.as_ptr().cast()));
                eight.eight(memory, &now, (at, by), of, whole)
            };
            let one_by_one = |races: &mut Races, now: &Now| -> Vec<_> {
                let enabled = (0..8).filter(|lane| of >> lane & 1 != 0);
                let words = enabled.flat_map(|lane| (0..unit / 4).map(move |k| (lane, k)));
                let enter = |(lane, k): (usize, u64)| {
                    let place = (places[lane] + 4 * k, 4);
                    races.element(memory, now, place, lanes[lane] as u32)
                };
                words.map(enter).collect()
            };
            let found = one_by_one(&mut cells, &wanted);
            if entered {
                assert!(found.iter().all(Option::is_none));
                clean[usize::from(whole)] += 1;
            } else {
                assert_eq!(one_by_one(&mut eight, &now), found);
                raced[usize::from(whole)] += 1;
            }
        }
        assert!(
            clean.iter().chain(&raced).all(|&n| n > 1000),
            "{clean:?} {raced:?}"
        );
    }
}
