//! Cells and lines of consecutive words, in reserved addresses.

use std::io;
use std::ops::Range;

use super::cell::{self, Cell, Now, lane_bits};
use super::line::{self, Entered, Line};
use super::{prefetch, row};
use crate::memory::map::{Mapping, page_size, round_page};

/// Bytes of a word.
pub(super) const WORD: u64 = 4;

/// Most words whose cells are looked at together.
const ROW: u64 = 64;

/// A race: the slot of the other access, and the lowest byte of the word.
type Race = Option<(u64, u32)>;

/// Consecutive words, and how lanes access them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub words: u64,
    /// Lane of the first word.
    pub lane: u32,
    /// Logarithm of the number of words of each lane, one lane after the other; at most 63.
    pub shift: u32,
}

impl Run {
    /// All words are of one lane.
    pub const ONE_LANE: u32 = 63;

    /// Lane of a word, counted from the first.
    #[inline(always)]
    fn lane_of(&self, at: u64) -> u32 {
        self.lane + (at >> self.shift) as u32
    }

    /// How lanes access the line that begins with a word, if one does, and they access all of it, and evenly. `at` counts the word from the
    /// first.
    #[inline(always)]
    fn line(&self, word: u64, at: u64) -> Option<line::Lanes> {
        let of_lane = 1 << self.shift;
        let within = at & (of_lane - 1);
        let shift = match self.shift {
            shift @ 0..=2 if within == 0 => shift,
            _ if within + line::WORDS <= of_lane => line::WORDS.ilog2(),
            _ => return None,
        };
        let whole = word.is_multiple_of(line::WORDS) && at + line::WORDS <= self.words;
        whole.then(|| line::Lanes {
            first: self.lane_of(at),
            shift,
        })
    }
}

/// Cells and lines of consecutive words.
#[derive(Debug)]
pub(super) struct Shadow {
    /// A [`Cell`] for each word.
    cells: Mapping,
    words: usize,
    /// A [`Line`] for each eight words.
    lines: Mapping,
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
            io::Result::Ok(mapping)
        };
        Ok(Shadow {
            cells: reserved(words, size_of::<Cell>())?,
            words: words as usize,
            lines: reserved(words / line::WORDS, size_of::<Line>())?,
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

    /// Sees to it that the cells of consecutive words say what is known of them, if they have some.
    #[inline(always)]
    fn open(&mut self, now: &Now, word: u64, words: usize) {
        let first = word / line::WORDS;
        let end = word.saturating_add(words as u64).div_ceil(line::WORDS);
        for number in first..end {
            let first = number * line::WORDS;
            let Some(mut line) = self.line(first).map(|line| *line) else {
                return;
            };
            if line.is_in_cells(now) {
                continue;
            }
            if let Some(cells) = self.cells(first, line::WORDS as usize) {
                line.open(now, cells);
            }
            if let Some(to) = self.line(first) {
                *to = line;
            }
        }
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

    /// Fetches the line and the cell of a word into the processor's caches, if it has them.
    #[inline(always)]
    pub fn prefetch(&self, word: u64) {
        let cells = self.cells.start().cast::<Cell>();
        prefetch(cells.wrapping_add(word as usize));
        let lines = self.lines.start().cast::<Line>();
        prefetch(lines.wrapping_add((word / line::WORDS) as usize));
    }

    /// Enters an access of a lane to bytes of a word, and says what it races with; `None` where the word has no cell.
    pub fn word(&mut self, now: &Now, word: u64, lane: u32, bytes: u64) -> Option<Race> {
        self.open(now, word, 1);
        let [cell] = self.cells(word, 1)? else {
            return None;
        };
        Some(cell::access(cell, now, lane, bytes))
    }

    /// What an access to bytes of a word would race with; `None` where the word has no cell.
    pub fn conflict(&mut self, now: &Now, word: u64, bytes: u64) -> Option<Race> {
        self.open(now, word, 1);
        let [cell] = self.cells(word, 1)? else {
            return None;
        };
        Some(cell::conflict(cell, now, bytes))
    }

    /// See [`super::Races::run`].
    #[inline(always)]
    pub fn run(&mut self, now: &Now, first: u64, run: Run) -> bool {
        let end = first.saturating_add(run.words);
        if end > self.words as u64 {
            return false;
        }
        let next = |word: u64| end.min((word / line::WORDS + 1) * line::WORDS);
        let mut word = first;
        while word < end {
            if let Some(lanes) = run.line(word, word - first)
                && let Some(line) = self.line(word)
            {
                match line.enter(now, lanes) {
                    Entered::Yes => {
                        word += line::WORDS;
                        continue;
                    }
                    Entered::Races => return false,
                    Entered::InCells => {}
                }
            }
            // Up to a line that may be entered as a whole.
            let mut stop = next(word);
            while stop < end && next(stop) - word <= ROW {
                let in_cells = self.line(stop).is_some_and(|line| line.is_in_cells(now));
                if run.line(stop, stop - first).is_some() && !in_cells {
                    break;
                }
                stop = next(stop);
            }
            let mut lanes = [0; ROW as usize];
            let lanes = &mut lanes[..(stop - word) as usize];
            for (at, bits) in (word - first..).zip(lanes.iter_mut()) {
                *bits = lane_bits(run.lane_of(at));
            }
            if !self.enter_words(now, word, lanes) {
                return false;
            }
            word = stop;
        }
        true
    }

    /// See [`super::Races::words`].
    #[inline(always)]
    pub fn enter_words(&mut self, now: &Now, word: u64, lanes: &[u64]) -> bool {
        self.open(now, word, lanes.len());
        let cells = self.cells(word, lanes.len());
        cells.is_some_and(|cells| row::enter(cells, now, lanes))
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
        for mapping in [&self.cells, &self.lines] {
            let _ = mapping.discard(0..mapping.len());
        }
    }
}
