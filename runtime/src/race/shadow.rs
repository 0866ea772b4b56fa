//! Cells and lines of consecutive words, in reserved addresses: eight bytes for each byte of memory.
//!
//! First come the [`Line`]s, one for each four words, and after them three [`Cell`]s for each line. While the cells of a line are in use, the
//! line itself is the cell of its first word. So memory that is only accessed by whole lines takes two bytes for each byte.
//!
//! A line may be in parts, see `line`, as long as no cells of its words are in use.
//!
//! [`IN_CELLS`] is set in all four cells of a line or in none, so that an access looks only at what it needs. It stays set when the launch ends:
//! if the cells hold only old accesses, the next access to the whole line makes them a line again.

#[cfg(target_arch = "x86_64")]
mod wide;

use std::io;
use std::ops::Range;

use super::cell::{self, Cell, Now, OTHER, lane_bits};
use super::line::{self, Entered, IN_CELLS, Line};
use super::run::{Part, Slots, ones};
#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{prefetch, row};
use crate::memory::map::{Mapping, page_size};

/// Bytes of a word.
pub(super) const WORD: u64 = 4;

/// A race: the slot of the other access, and the lowest byte of the word.
type Race = Option<(u64, u32)>;

/// Words of a line, to count them in memory.
const LINE_WORDS: usize = line::WORDS as usize;

/// Numbers of 64 bits of a cell, and of a line.
const SLOTS: u64 = (size_of::<Cell>() / size_of::<u64>()) as u64;
const _: () = assert!(size_of::<Line>() == size_of::<Cell>() && SLOTS == line::WORDS);

/// A cell as it is stored while it is in use.
#[inline(always)]
fn in_use(mut cell: Cell) -> Cell {
    cell[OTHER] |= IN_CELLS;
    cell
}

/// What a stored cell knows.
#[inline(always)]
fn known(mut cell: Cell) -> Cell {
    cell[OTHER] &= !IN_CELLS;
    cell
}

/// Cells and lines of consecutive words.
#[derive(Debug)]
pub(super) struct Shadow {
    /// Lines, then cells.
    slots: Mapping,
    words: usize,
}

impl Shadow {
    /// For `bytes` bytes of memory.
    pub(super) fn new(bytes: u64) -> io::Result<Shadow> {
        let words = bytes.div_ceil(WORD).next_multiple_of(Shadow::unit() / WORD);
        let len = words.checked_mul(size_of::<Cell>() as u64);
        let len = len.and_then(|len| usize::try_from(len).ok());
        let len = len.ok_or(io::ErrorKind::OutOfMemory)?;
        let slots = Mapping::reserve(len.max(page_size()))?;
        slots.open(0..len)?;
        // Lanes at arbitrary addresses are as far apart as these are wide.
        slots.large_pages(0..len);
        Ok(Shadow {
            slots,
            words: words as usize,
        })
    }

    /// Bytes of memory whose lines fill a page. Their other cells fill pages, too.
    fn unit() -> u64 {
        page_size() as u64 / size_of::<Line>() as u64 * line::WORDS * WORD
    }

    /// Number of the first slot of a word's cell.
    #[inline(always)]
    fn slot_index(&self, word: u64) -> usize {
        let within = word % line::WORDS;
        // 3 * (word - within) + 4 * (within - 1) of the others. Without branches, as words may come in any order.
        let others = (self.words as u64).wrapping_add(2 * word + within);
        let from_line = u64::from(within != 0).wrapping_neg() & others.wrapping_sub(SLOTS);
        word.wrapping_add(from_line) as usize
    }

    /// The place of a word's cell. It is there if the word is.
    #[inline(always)]
    fn cell_at(&self, word: u64) -> *mut Cell {
        let start = self.slots.start().cast::<u64>();
        start.wrapping_add(self.slot_index(word)).cast()
    }

    /// The place of the line of a word. It is there if the word is.
    #[inline(always)]
    fn line_at(&self, word: u64) -> *mut Line {
        let start = self.slots.start().cast::<Line>();
        start.wrapping_add((word / line::WORDS) as usize)
    }

    /// The line of a word, if the word has one.
    #[inline(always)]
    fn line(&mut self, word: u64) -> Option<&mut Line> {
        let line = self.line_at(word);
        // SAFETY: each word has a line; `self` is borrowed as long as it is.
        (word < self.words as u64).then(|| unsafe { &mut *line })
    }

    /// The cell of a word, as it is stored, if the word has one.
    #[inline(always)]
    fn cell(&mut self, word: u64) -> Option<&mut Cell> {
        let cell = self.cell_at(word);
        // SAFETY: each word has a cell; `self` is borrowed as long as it is.
        (word < self.words as u64).then(|| unsafe { &mut *cell })
    }

    /// The places of the cells of a line that begins with a word.
    #[inline(always)]
    fn all_at(&self, line: u64) -> [*mut Cell; LINE_WORDS] {
        let start = self.slots.start().cast::<u64>();
        let at = |place| start.wrapping_add(place as usize).cast();
        let others = self.words as u64 + (line::WORDS - 1) * line;
        [line, others, others + SLOTS, others + 2 * SLOTS].map(at)
    }

    /// What the cells of a line that begins with a word know, if the line is there.
    #[inline(always)]
    fn cells(&self, line: u64) -> Option<[Cell; LINE_WORDS]> {
        let all = self.all_at(line);
        // SAFETY: each line of words has cells.
        (line < self.words as u64).then(|| all.map(|cell| known(unsafe { *cell })))
    }

    /// Makes this what the cells of a line know, which are in use from now on. The line is there.
    #[inline(always)]
    fn set_cells(&mut self, line: u64, cells: [Cell; LINE_WORDS]) {
        for (to, cell) in self.all_at(line).into_iter().zip(cells) {
            // SAFETY: as the caller says.
            unsafe { *to = in_use(cell) };
        }
    }

    /// Makes sure that what is known of the line of a word is in its cells, if it has some.
    #[inline(always)]
    fn open(&mut self, now: &Now, word: u64) {
        if let Some(cell) = self.cell(word)
            && cell[OTHER] & IN_CELLS == 0
        {
            self.open_line(now, word / line::WORDS * line::WORDS);
        }
    }

    #[cold]
    fn open_line(&mut self, now: &Now, first: u64) {
        let Some(line) = self.line(first) else {
            return;
        };
        let cells = match line.is_in_cells() {
            false => Some(line.cells(now)),
            // Memory of the others was given back, but not that of the first one.
            true => self.cells(first),
        };
        if let Some(cells) = cells {
            self.set_cells(first, cells);
        }
    }

    /// Whether a line that begins with a word says what is known of all of its words. It does from now on if its cells or its parts know only what is
    /// old.
    #[inline(always)]
    fn is_line(&mut self, now: &Now, first: u64) -> bool {
        match self.line(first) {
            Some(line) => line.is_whole() || self.is_closed(now, first),
            None => false,
        }
    }

    /// Makes cells in use, or parts, a line again if they know only what is old.
    #[inline(never)]
    fn is_closed(&mut self, now: &Now, first: u64) -> bool {
        if let Some(line) = self.line(first)
            && !line.is_in_cells()
        {
            let is_old = line.is_old(now);
            if is_old {
                *line = Line::default();
            }
            return is_old;
        }
        let is_old = |cell: &Cell| known(*cell).iter().all(|&slot| slot < now.floor);
        // Mostly the first one knows something new, if any does.
        let first_is_old = self.cell(first).is_some_and(|cell| is_old(cell));
        let all = self.cells(first).filter(|_| first_is_old);
        if !all.is_some_and(|cells| cells.iter().all(is_old)) {
            return false;
        }
        for at in self.all_at(first) {
            // SAFETY: the line is there, and so are its cells.
            unsafe { *at = Cell::default() };
        }
        true
    }

    /// Fetches what is known of a word into the processor's caches; of its whole line, if that is accessed.
    #[inline(always)]
    pub(super) fn prefetch(&self, word: u64, line: bool) {
        match line {
            true => prefetch(self.line_at(word)),
            false => prefetch(self.cell_at(word)),
        }
    }

    /// Fetches the lines of some words, up to 32, from one on, into the processor's caches.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn prefetch_lines(&self, word: u64, count: u64) {
        const AT_ONCE: u64 = 2 * line::WORDS;
        let line = self.line_at(word);
        prefetch(line);
        prefetch(line.wrapping_add(2));
        if count > 2 * AT_ONCE {
            prefetch(line.wrapping_add(4));
            prefetch(line.wrapping_add(6));
        }
    }

    /// Enters an access of a lane to bytes of a word, and says what it races with; `None` where the word has no cell.
    pub(super) fn word(&mut self, now: &Now, word: u64, lane: u32, bytes: u64) -> Option<Race> {
        self.open(now, word);
        let stored = self.cell(word)?;
        let mut cell = known(*stored);
        let race = cell::access(&mut cell, now, lane, bytes);
        *stored = in_use(cell);
        Some(race)
    }

    /// What an access to bytes of a word would race with; `None` where the word has no cell.
    pub(super) fn conflict(&mut self, now: &Now, word: u64, bytes: u64) -> Option<Race> {
        self.open(now, word);
        let cell = known(*self.cell(word)?);
        Some(cell::conflict(&cell, now, bytes))
    }

    /// See [`super::Races::part`].
    #[inline(always)]
    pub(super) fn part<const WIDE: bool>(&mut self, now: &Now, first: u64, part: Part) -> bool {
        let end = first.saturating_add(part.len);
        if end > self.words as u64 {
            return false;
        }
        let mut word = first;
        while word < end {
            let line = word / line::WORDS * line::WORDS;
            let next = end.min(line + line::WORDS);
            let at = word - first;
            let words = part.accessed >> at & ones(next - word);
            if words == ones(line::WORDS)
                && !now.is_atomic()
                && let Some(lanes) = part.run.line(part.at + at)
            {
                match self.whole_lines::<WIDE>(now, (word, end), &part, at, lanes) {
                    (Entered::Yes, lines) => {
                        word += lines * line::WORDS;
                        continue;
                    }
                    (Entered::Races, _) => return false,
                    (Entered::InCells, _) => {}
                }
            }
            if words != 0 {
                let slots = Slots::new(now, part.run, (part.at + at).wrapping_sub(word - line));
                if !self.words_of_line::<WIDE>(now, line, slots, words << (word - line)) {
                    return false;
                }
            }
            word = next;
        }
        true
    }

    /// Enters an access to the line that begins with a word, and maybe to lines after it. Returns how many were entered.
    #[inline(always)]
    fn whole_lines<const WIDE: bool>(
        &mut self,
        now: &Now,
        (word, end): (u64, u64),
        part: &Part,
        at: u64,
        lanes: line::LineLanes,
    ) -> (Entered, u64) {
        if !self.is_line(now, word) {
            return (Entered::InCells, 0);
        }
        let Some(line) = self.line(word) else {
            return (Entered::InCells, 0);
        };
        #[cfg(target_arch = "x86_64")]
        if WIDE && let Some(step) = part.run.step() {
            let all = (!(part.accessed >> at)).trailing_zeros();
            let count = (end - word).min(all.into()) / line::WORDS;
            let slot = now.base | lanes.bits();
            // SAFETY: each line is that of a word that has one, and wide code runs only on processors that have AVX-512.
            let done = unsafe { x86::lines(line, count as usize, now, slot, step) };
            if done != 0 {
                return (Entered::Yes, done as u64);
            }
        }
        #[cfg(not(target_arch = "x86_64"))]
        let _ = (end, part, at);
        (line.enter(now, lanes), 1)
    }

    /// Enters an access to those words of a line whose bits are set.
    #[inline(always)]
    fn words_of_line<const WIDE: bool>(
        &mut self,
        now: &Now,
        line: u64,
        slots: Slots,
        words: u64,
    ) -> bool {
        if line >= self.words as u64 {
            return false;
        }
        self.open(now, line + u64::from(words.trailing_zeros()));
        #[cfg(target_arch = "x86_64")]
        if WIDE {
            // SAFETY: these are the cells of a line; wide code runs only on processors that have AVX-512.
            return unsafe { x86::cells(self.all_at(line), now, slots, words as u8) };
        }
        let Some(mut cells) = self.cells(line) else {
            return false;
        };
        let free = row::enter(&mut cells, now, slots, words as u8);
        if free {
            self.set_cells(line, cells);
        }
        free
    }

    /// See [`super::Races::one`].
    #[inline(always)]
    pub(super) fn one<const WIDE: bool>(&mut self, now: &Now, word: u64, lane: u32) -> bool {
        self.open(now, word);
        let Some(stored) = self.cell(word) else {
            return false;
        };
        #[cfg(target_arch = "x86_64")]
        if WIDE {
            // SAFETY: this is the cell; wide code runs only on processors that have AVX-512.
            return unsafe { x86::cell(stored, now, now.base | lane_bits(lane)) };
        }
        let mut cell = known(*stored);
        let free = cell::conflict(&cell, now, cell::WHOLE).is_none();
        if free {
            cell::access(&mut cell, now, lane, cell::WHOLE);
            *stored = in_use(cell);
        }
        free
    }

    /// Gives back the memory of the shadow of these bytes. Nothing is known of them then, except at the ends.
    pub(super) fn discard(&self, bytes: Range<u64>) {
        let unit = Shadow::unit();
        let all = self.words as u64 * WORD;
        let from = bytes.start.min(all).next_multiple_of(unit);
        let to = bytes.end.min(all) / unit * unit;
        if from >= to {
            return;
        }
        let lines = all / (line::WORDS * WORD) * size_of::<Line>() as u64;
        let [line, others] = [1, line::WORDS - 1].map(|cells| {
            let of = |at: u64| (at / (line::WORDS * WORD) * cells) as usize * size_of::<Cell>();
            of(from)..of(to)
        });
        let lines = lines as usize;
        // Only saves memory. Lines stay where this fails: those with cells in use say so, and that nothing is known of the others does no harm.
        let others = self.slots.discard(lines + others.start..lines + others.end);
        let _ = others.and_then(|()| self.slots.discard(line));
    }

    /// Which lines of some words have cells in use. All four cells of each say the same.
    #[cfg(test)]
    pub(super) fn in_cells(&self, words: Range<u64>) -> Vec<bool> {
        let line = |line| {
            // SAFETY: tests ask for words that are there.
            let marked = |at: *mut Cell| unsafe { (*at)[OTHER] } & IN_CELLS != 0;
            let [first, others @ ..] = self.all_at(line).map(marked);
            assert_eq!(others, [first; LINE_WORDS - 1]);
            first
        };
        let from = words.start / line::WORDS * line::WORDS;
        (from..words.end).step_by(LINE_WORDS).map(line).collect()
    }

    /// How many lines of some words are in parts.
    #[cfg(test)]
    pub(super) fn in_parts(&self, words: Range<u64>) -> usize {
        let from = words.start / line::WORDS * line::WORDS;
        let lines = (from..words.end).step_by(LINE_WORDS);
        // SAFETY: tests ask for words that are there.
        let in_parts = |&line: &u64| unsafe { (*self.line_at(line)).is_in_parts() };
        lines.filter(in_parts).count()
    }

    pub(super) fn forget(&self) {
        // Epochs tell old from new where this fails, except after a whole round of them.
        self.discard(0..u64::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::{EPOCH, base};
    use super::super::run::Run;
    use super::*;
    use visa_test_common::Rng;

    fn now(epoch: u64) -> Now {
        by(1, epoch)
    }

    fn by(thread: u32, epoch: u64) -> Now {
        Now {
            base: base(epoch, thread, 2, false),
            floor: epoch << EPOCH,
            group: epoch << EPOCH,
            epoch: epoch << EPOCH,
            writes: true,
        }
    }

    fn bytes(shadow: &Shadow, of: Range<usize>) -> &[u8] {
        // SAFETY: all of it is open, and no other thread has it.
        unsafe { std::slice::from_raw_parts(shadow.slots.start().add(of.start), of.len()) }
    }

    /// Each word has a place of its own, and all places are eight bytes for each byte of memory.
    #[test]
    fn eight_bytes_for_each_byte() {
        for units in [0, 1, 5] {
            let memory = units * Shadow::unit();
            let shadow = Shadow::new(memory).unwrap();
            let slots = 8 * memory / size_of::<u64>() as u64;
            let mut used = vec![false; slots as usize];
            for word in 0..memory / WORD {
                let at = shadow.slot_index(word);
                for slot in &mut used[at..at + SLOTS as usize] {
                    assert!(!std::mem::replace(slot, true));
                }
            }
            assert!(used.iter().all(|&used| used));
            assert_eq!(
                shadow.slots.len() as u64,
                (8 * memory).max(page_size() as u64)
            );
        }
    }

    /// Memory of which only lines are known takes two bytes for each byte.
    #[test]
    fn lines_take_two_bytes_for_each_byte() {
        let memory = 16 * Shadow::unit();
        let mut shadow = Shadow::new(memory).unwrap();
        let words = memory / WORD;
        for word in (0..words).step_by(64) {
            let run = Run {
                words: 64,
                lane: 0,
                shift: 1,
            };
            assert!(shadow.part::<false>(&now(5), word, Part::all(run)));
        }
        let lines = 2 * memory as usize;
        assert!(
            bytes(&shadow, 0..lines)
                .chunks(32)
                .all(|line| line.iter().any(|&b| b != 0))
        );
        let others = lines..8 * memory as usize;
        assert!(bytes(&shadow, others).iter().all(|&byte| byte == 0));
    }

    /// A line whose cells were in use is a line again for a launch that accesses it as a whole, and not before.
    #[test]
    fn old_cells_become_lines() {
        let mut shadow = Shadow::new(4096).unwrap();
        let mut rng = Rng::new(1);
        let whole = Part::all(Run {
            words: 4,
            lane: 0,
            shift: 0,
        });
        for launch in (10..2000).step_by(2) {
            let old = now(launch);
            let word = 4 + rng.below(4) as u64;
            assert_eq!(shadow.word(&old, word, 3, cell::WHOLE), Some(None));
            assert!(shadow.part::<false>(&old, 4, whole));
            assert_eq!(shadow.in_cells(0..12), [false, true, false]);
            if rng.below(2) == 0 {
                shadow.word(&now(launch + 1), word, 3, cell::WHOLE);
                assert_eq!(shadow.in_cells(4..8), [true]);
                continue;
            }
            assert!(shadow.part::<false>(&now(launch + 1), 4, whole));
            assert_eq!(shadow.in_cells(4..8), [false]);
        }
    }

    /// What is given back are whole lines, with their cells.
    #[test]
    fn given_back_lines_lose_their_cells() {
        let unit = Shadow::unit();
        let words = 4 * unit / WORD;
        for (from, to, kept) in [
            (0, u64::MAX, [false; 4]),
            (1, 3 * unit - 1, [true, false, true, true]),
            (unit, 2 * unit, [true, false, true, true]),
            (unit + 4, 2 * unit + 4, [true; 4]),
            (9 * unit, u64::MAX, [true; 4]),
        ] {
            let mut shadow = Shadow::new(4 * unit).unwrap();
            for word in 0..words {
                shadow.word(&now(5), word, 3, cell::WHOLE);
            }
            shadow.discard(from..to);
            let wanted = kept
                .iter()
                .flat_map(|&kept| vec![kept; (unit / 16) as usize]);
            assert_eq!(shadow.in_cells(0..words), wanted.collect::<Vec<_>>());
        }
    }

    /// Where the system gives back memory of cells only, those of lines that have them in use know nothing.
    #[test]
    fn cells_come_back_into_use() {
        let mut shadow = Shadow::new(4096).unwrap();
        for word in 0..4 {
            shadow.word(&now(5), word, 3, cell::WHOLE);
        }
        let lines = 2 * (shadow.words * 4);
        shadow.slots.discard(lines..shadow.slots.len()).unwrap();
        // Not that of the first word, which is in the line's place.
        for word in [1, 2, 3, 0] {
            let race = shadow.conflict(&by(2, 5), word, cell::WHOLE).unwrap();
            assert_eq!(race.is_some(), word == 0);
        }
        assert_eq!(shadow.in_cells(0..4), [true]);
    }
}
