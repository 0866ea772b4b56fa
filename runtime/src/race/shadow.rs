//! Cells and lines of consecutive words, in reserved addresses.

#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
use std::io;
use std::ops::Range;

use super::cell::{self, Cell, Now, lane_bits, narrow_bits};
use super::line::{self, Entered, Line};
#[cfg(target_arch = "x86_64")]
use super::x86;
use super::{prefetch, row};
use crate::memory::map::{Mapping, page_size, round_page};

/// Bytes of a word.
pub(super) const WORD: u64 = 4;

/// A race: the slot of the other access, and the lowest byte of the word.
type Race = Option<(u64, u32)>;

/// Consecutive words, and how lanes access them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub words: u64,
    /// Lane of the first word, or of its first bytes.
    pub lane: u32,
    /// Logarithm of the number of words of each lane, one lane after the other, at most 63. Negative where several lanes share a word: of
    /// the number of them.
    pub shift: i32,
}

impl Run {
    /// All words are of one lane.
    pub const ONE_LANE: i32 = 63;

    /// What an access to a word, counted from the first, adds to the slot of an access.
    #[inline(always)]
    fn bits(&self, at: u64) -> u64 {
        match u32::try_from(self.shift) {
            Ok(shift) => lane_bits(self.lane.wrapping_add((at >> shift) as u32)),
            Err(_) => {
                let lanes = self.shift.unsigned_abs();
                narrow_bits(self.lane.wrapping_add((at as u32) << lanes), lanes)
            }
        }
    }

    /// How lanes access the line that begins with a word, if they access it evenly. `at` counts the word from the first.
    #[inline(always)]
    fn line(&self, at: u64) -> Option<line::Lanes> {
        let Ok(shift) = u32::try_from(self.shift) else {
            let lanes = self.shift.unsigned_abs();
            return Some(line::Lanes {
                first: self.lane + ((at as u32) << lanes),
                run: line::Lanes::NARROW + lanes,
            });
        };
        let of_lane = 1 << shift;
        let within = at & (of_lane - 1);
        let run = match shift {
            0..=1 if within == 0 => shift,
            _ if within + line::WORDS <= of_lane => line::WORDS.ilog2(),
            _ => return None,
        };
        Some(line::Lanes {
            first: self.lane + (at >> shift) as u32,
            run,
        })
    }

    /// What the slot of a line has to be increased by for that of the next one.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn step(&self) -> Option<u64> {
        let lanes = match self.shift {
            shift @ ..=2 => line::WORDS << 2 >> (shift + 2),
            Run::ONE_LANE => 0,
            _ => return None,
        };
        Some(lanes << cell::LANE)
    }
}

/// Some words of a [`Run`], which are accessed if their bit is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub run: Run,
    /// The first of the words.
    pub at: u64,
    /// How many, up to 64.
    pub len: u64,
    pub accessed: u64,
}

impl Part {
    /// All words of a run of at most 64.
    pub fn all(run: Run) -> Part {
        Part {
            run,
            at: 0,
            len: run.words,
            accessed: ones(run.words),
        }
    }
}

/// The lowest bits, up to 64.
#[inline(always)]
pub(crate) fn ones(count: u64) -> u64 {
    match 64u64.checked_sub(count) {
        Some(64) => 0,
        Some(other) => u64::MAX >> other,
        None => u64::MAX,
    }
}

/// Slots of words of a line.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    base: u64,
    run: Run,
    /// Which word of the run the first one of the line is. It may be in front of the run, then it is not accessed.
    at: u64,
}

impl Slots {
    /// Those of an access to a line that begins with a word of a run.
    pub fn new(now: &Now, run: Run, at: u64) -> Slots {
        let base = now.base;
        Slots { base, run, at }
    }

    #[inline(always)]
    pub fn of(&self, word: u32) -> u64 {
        self.base | self.run.bits(self.at.wrapping_add(word.into()))
    }
}

/// Cells and lines of consecutive words.
#[derive(Debug)]
pub(super) struct Shadow {
    /// A [`Cell`] for each word.
    cells: Mapping,
    words: usize,
    /// A [`Line`] for each four words.
    lines: Mapping,
    /// An epoch for each line, that of [`Line::cells`]: all that accesses to single words need of it.
    opened: Mapping,
}

impl Shadow {
    /// For `bytes` bytes of memory.
    pub fn new(bytes: u64) -> io::Result<Shadow> {
        let words = bytes.div_ceil(WORD).next_multiple_of(512);
        let reserved = |count: u64, size: usize| {
            let len = count.checked_mul(size as u64).and_then(round_page);
            let len = len.and_then(|len| usize::try_from(len).ok());
            let len = len.ok_or(io::ErrorKind::OutOfMemory)?;
            let mapping = Mapping::reserve(len.max(1))?;
            mapping.open(0..len)?;
            // Lanes at arbitrary addresses are as far apart as these are wide.
            mapping.large_pages(0..len);
            io::Result::Ok(mapping)
        };
        Ok(Shadow {
            cells: reserved(words, size_of::<Cell>())?,
            words: words as usize,
            lines: reserved(words / line::WORDS, size_of::<Line>())?,
            opened: reserved(words / line::WORDS, size_of::<u32>())?,
        })
    }

    /// The line of a word, if the word has a cell.
    #[inline(always)]
    fn line(&mut self, word: u64) -> Option<&mut Line> {
        let start = self.lines.start().cast::<Line>();
        let line = start.wrapping_add((word / line::WORDS) as usize);
        // SAFETY: each eight words have a line; `self` is borrowed as long as it is.
        (word < self.words as u64).then(|| unsafe { &mut *line })
    }

    /// Sees to it that the cells of the line of a word say what is known of them, if it has some.
    #[inline(always)]
    fn open(&mut self, now: &Now, word: u64) {
        if self
            .opened(word)
            .is_some_and(|&mut epoch| u64::from(epoch) < cell::epoch(now.floor))
        {
            self.open_line(now, word / line::WORDS * line::WORDS);
        }
    }

    #[cold]
    fn open_line(&mut self, now: &Now, first: u64) {
        let Some(mut line) = self.line(first).map(|line| *line) else {
            return;
        };
        if let Some(cells) = self.cells(first, line::WORDS as usize) {
            line.open(now, cells);
        }
        if let Some(to) = self.line(first) {
            *to = line;
        }
        if let Some(opened) = self.opened(first) {
            *opened = cell::epoch(now.epoch) as u32;
        }
    }

    /// When the cells of the line of a word came to be used.
    #[inline(always)]
    fn opened(&mut self, word: u64) -> Option<&mut u32> {
        let start = self.opened.start().cast::<u32>();
        let epoch = start.wrapping_add((word / line::WORDS) as usize);
        // SAFETY: as in `line`.
        (word < self.words as u64).then(|| unsafe { &mut *epoch })
    }

    /// The cells of consecutive words, if they have some.
    #[inline(always)]
    fn cells(&mut self, word: u64, words: usize) -> Option<&mut [Cell]> {
        let end = word.checked_add(words as u64)?;
        let start = self.cells.start().cast::<Cell>();
        let there = end <= self.words as u64;
        // SAFETY: the words have cells, which are open; `self` is borrowed as long as they are.
        there.then(|| unsafe {
            std::slice::from_raw_parts_mut(start.wrapping_add(word as usize), words)
        })
    }

    /// Fetches what is known of a word into the processor's caches; of its whole line, if that is accessed.
    #[inline(always)]
    pub fn prefetch(&self, word: u64, line: bool) {
        let number = (word / line::WORDS) as usize;
        if line {
            return prefetch(self.lines.start().cast::<Line>().wrapping_add(number));
        }
        let cells = self.cells.start().cast::<Cell>();
        prefetch(cells.wrapping_add(word as usize));
        prefetch(self.opened.start().cast::<u32>().wrapping_add(number));
    }

    /// Enters an access of a lane to bytes of a word, and says what it races with; `None` where the word has no cell.
    pub fn word(&mut self, now: &Now, word: u64, lane: u32, bytes: u64) -> Option<Race> {
        self.open(now, word);
        let [cell] = self.cells(word, 1)? else {
            return None;
        };
        Some(cell::access(cell, now, lane, bytes))
    }

    /// What an access to bytes of a word would race with; `None` where the word has no cell.
    pub fn conflict(&mut self, now: &Now, word: u64, bytes: u64) -> Option<Race> {
        self.open(now, word);
        let [cell] = self.cells(word, 1)? else {
            return None;
        };
        Some(cell::conflict(cell, now, bytes))
    }

    /// See [`super::Races::part`].
    #[inline(always)]
    pub fn part<const WIDE: bool>(&mut self, now: &Now, first: u64, part: Part) -> bool {
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
        lanes: line::Lanes,
    ) -> (Entered, u64) {
        let Some(line) = self.line(word) else {
            return (Entered::InCells, 0);
        };
        if line.is_in_cells(now) {
            return (Entered::InCells, 0);
        }
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
        self.open(now, line);
        let Some(cells) = self.cells(line, line::WORDS as usize) else {
            return false;
        };
        #[cfg(target_arch = "x86_64")]
        if WIDE {
            // SAFETY: these are the cells of a line; wide code runs only on processors that have AVX-512.
            return unsafe { x86::cells(cells.as_mut_ptr(), now, slots, words as u8) };
        }
        row::enter(cells, now, slots, words as u8)
    }

    /// See [`super::Races::lines`].
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn lines(&mut self, now: &Now, offset: u64, count: u64, lane: u32) -> bool {
        let (first, words) = (offset / WORD, self.words as u64);
        let whole = (first | count).is_multiple_of(line::WORDS);
        if !offset.is_multiple_of(WORD) || !whole || first + count > words {
            return false;
        }
        let Some(line) = self.line(first) else {
            return false;
        };
        let slot = now.base | u64::from(lane) << cell::LANE;
        let lines = (count / line::WORDS) as usize;
        // SAFETY: each line is that of a word that has one, and the caller says that the processor has AVX-512.
        let done = unsafe { x86::lines(line, lines, now, slot, line::WORDS << cell::LANE) };
        done == lines
    }

    /// Enters an access of a lane to a line, if the line's cells are not in use, and it races with nothing.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    fn is_line_entered(&mut self, now: &Now, word: u64, lane: u32) -> bool {
        let lanes = line::Lanes {
            first: lane,
            run: line::WORDS.ilog2(),
        };
        let Some(line) = self.line(word) else {
            return false;
        };
        // SAFETY: this is the line; the caller says that the processor has AVX-512.
        unsafe { x86::lines(line, 1, now, now.base | lanes.bits(), 0) == 1 }
    }

    /// See [`super::Races::few`].
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub fn few(&mut self, now: &Now, word: u64, (count, words): (u64, u64), lane: u32) -> bool {
        let at = word % line::WORDS;
        let line = word - at;
        if at + count > line::WORDS || line + line::WORDS > self.words as u64 {
            return false;
        }
        if words == ones(line::WORDS) && !now.is_atomic() && self.is_line_entered(now, word, lane) {
            return true;
        }
        self.open(now, word);
        let Some(cells) = self.cells(line, line::WORDS as usize) else {
            return false;
        };
        let slot = now.base | lane_bits(lane);
        // SAFETY: these are the cells of a line, and the caller says that the processor has AVX-512.
        unsafe { x86::cells_of_lane(cells.as_mut_ptr(), now, slot, (words << at) as u8) }
    }

    /// See [`super::Races::one`].
    #[inline(always)]
    pub fn one<const WIDE: bool>(&mut self, now: &Now, word: u64, lane: u32) -> bool {
        if word >= self.words as u64 {
            return false;
        }
        self.open(now, word);
        let Some([cell]) = self.cells(word, 1) else {
            return false;
        };
        #[cfg(target_arch = "x86_64")]
        if WIDE {
            // SAFETY: this is the cell; wide code runs only on processors that have AVX-512.
            return unsafe { x86::cell(cell, now, now.base | lane_bits(lane)) };
        }
        let free = cell::conflict(cell, now, cell::WHOLE).is_none();
        if free {
            cell::access(cell, now, lane, cell::WHOLE);
        }
        free
    }

    /// See [`super::Races::eight`].
    #[cfg(target_arch = "x86_64")]
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    pub fn eight(
        &mut self,
        now: &Now,
        (offsets, lanes): (__m512i, __m512i),
        of: u8,
        whole: bool,
    ) -> bool {
        let unit = if whole { WORD * line::WORDS } else { WORD };
        let low = _mm512_set1_epi64((unit - 1).cast_signed());
        let words = _mm512_srli_epi64::<{ WORD.ilog2() }>(offsets);
        let lines = _mm512_srli_epi64::<{ (WORD * line::WORDS).ilog2() }>(offsets);
        // Lines have cells for all of their words.
        let all = _mm512_set1_epi64((self.words as u64).cast_signed());
        let there = _mm512_mask_cmplt_epu64_mask(of, words, all);
        if _mm512_mask_testn_epi64_mask(there, offsets, low) != of {
            return false;
        }
        let form = match whole {
            true => u64::from(line::WORDS.ilog2()),
            false => lane_bits(0),
        };
        let common = _mm512_set1_epi64((now.base | form).cast_signed());
        let slots = _mm512_or_si512(common, _mm512_slli_epi64::<{ cell::LANE }>(lanes));
        if whole {
            let start = self.lines.start().cast::<Line>();
            // SAFETY: each of the words has a line.
            return unsafe { x86::eight_lines(start, now, lines, of, slots) };
        }
        let opened = self.opened.start().cast::<u32>();
        let floor = cell::epoch(now.floor) as u32;
        // SAFETY: each of the words has a line.
        let mut closed = unsafe { x86::eight_below(opened, lines, of, floor) };
        if closed != 0 {
            let start = self.lines.start().cast::<Line>();
            // SAFETY: as before, also for the list.
            closed = unsafe { x86::open_eight(start, opened, now, lines, closed) };
        }
        if closed != 0 {
            let mut numbers = [0u64; 8];
            // SAFETY: there is room for all of them.
            unsafe { _mm512_storeu_epi64(numbers.as_mut_ptr().cast(), words) };
            while closed != 0 {
                self.open(now, numbers[closed.trailing_zeros() as usize]);
                closed &= closed - 1;
            }
        }
        let start = self.cells.start().cast::<Cell>();
        // SAFETY: each of the words has a cell.
        unsafe { x86::eight_cells(start, now, words, of, slots) }
    }

    /// Gives memory back that these bytes are known by. Nothing is known of them then, except at the ends.
    pub fn discard(&self, bytes: Range<u64>) {
        let page = page_size();
        let per_byte = [
            (&self.cells, size_of::<Cell>() as u64 / WORD),
            (&self.lines, size_of::<Line>() as u64 / (WORD * line::WORDS)),
        ];
        for (mapping, factor) in per_byte {
            let [from, to] = [bytes.start, bytes.end].map(|at| {
                let at = at.saturating_mul(factor);
                usize::try_from(at).map_or(mapping.len(), |at| at.min(mapping.len()))
            });
            let (from, to) = (from.next_multiple_of(page), to - to % page);
            if from < to {
                // Only saves memory.
                let _ = mapping.discard(from..to);
            }
        }
    }

    pub fn forget(&self) {
        // Epochs tell old from new where this fails, except after a whole round of them.
        for mapping in [&self.cells, &self.lines, &self.opened] {
            let _ = mapping.discard(0..mapping.len());
        }
    }
}
