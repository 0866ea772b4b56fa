//! What is known of a line of four consecutive words. If each access was to the whole line, one slot stands for all four words. That is how
//! most messages access memory, and takes a quarter of the memory of the words' cells.
//!
//! A slot of a line is like one of `cell`, with two differences: its lane is that of the first word, and in place of the bytes of a word it says
//! which lane accessed which word ([`LineLanes::run`]).
//!
//! A line *in parts* is for words that different instructions access, as is often so with the even and the odd ones. Each of its slots says which
//! words it is not for ([`left_out`]). It has two plain writes and two reads, for different words, and no reads by another thread.

use super::cell::{Cell, LANE, Now, OTHER, PLAIN, READ, WHOLE, lane_bits, narrow_bits};

/// Set in the last slot of a line whose words have cells in use, and in that of each of the cells, the first of which is in the line's
/// place. No slot has this bit.
pub(super) const IN_CELLS: u64 = 1 << 63;

/// Words of a line.
pub(super) const WORDS: u64 = 4;

/// The lane of a slot.
pub(super) const LANES: u64 = 31 << LANE;

/// Position of the words that a slot is not for.
const LEFT_OUT: u32 = 3;
const ALL_WORDS: u64 = (1 << WORDS) - 1;
const _: () = assert!(LEFT_OUT + WORDS as u32 == LANE && LineLanes::MASK < 1 << LEFT_OUT);

/// What a slot has that is for some words only: bits of those that it is not for.
#[inline(always)]
pub(super) const fn left_out(words: u64) -> u64 {
    (words & ALL_WORDS) << LEFT_OUT
}

/// A slot that is for no word.
const NO_WORDS: u64 = left_out(ALL_WORDS);

/// What is known of a line. Where cells of its words are in use, it is another name of the first word's.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(super) struct Line {
    plain: u64,
    read: u64,
    /// The other read, or a read of other words.
    other: u64,
    /// 0, or a plain write of other words, or of a cell with [`IN_CELLS`]. Of a line in parts it is not 0.
    last: u64,
}

/// What entering an access gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entered {
    /// It is known now.
    Yes,
    /// It races with another one. Nothing is entered.
    Races,
    /// The caller has to look at the cells, or at the line's parts.
    InCells,
}

/// How the words of a line are accessed by lanes.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineLanes {
    /// Lane of the first word, or of its first bytes.
    pub first: u32,
    /// The logarithm of the number of words of each lane, or [`LineLanes::NARROW`] and the logarithm of the number of lanes of each word.
    pub run: u32,
}

impl LineLanes {
    /// Several lanes share a word.
    pub(super) const NARROW: u32 = 3;
    const MASK: u64 = 7;

    /// What this adds to a slot.
    #[inline(always)]
    pub(super) fn bits(self) -> u64 {
        u64::from(self.first) << LANE | u64::from(self.run) & LineLanes::MASK
    }
}

/// The slot of a word.
fn of_word(slot: u64, word: u64) -> u64 {
    let (lane, run) = ((slot >> LANE & 31) as u32, (slot & LineLanes::MASK) as u32);
    let bits = match run.checked_sub(LineLanes::NARROW) {
        Some(lanes @ 1..) => narrow_bits(lane + ((word as u32) << lanes), lanes),
        // The first word's lane may be below 0.
        _ => lane_bits(lane + (word as u32 >> run)) & (LANES | WHOLE),
    };
    slot >> (LANE + 5) << (LANE + 5) | bits
}

impl Line {
    /// Whether the cells of the words say what is known.
    #[inline(always)]
    pub(super) fn is_in_cells(&self) -> bool {
        self.last & IN_CELLS != 0
    }

    /// Whether each slot is for all words.
    #[inline(always)]
    pub(super) fn is_whole(&self) -> bool {
        self.last == 0
    }

    /// Whether slots are for some words each.
    #[cfg(any(target_arch = "x86_64", test))]
    #[inline(always)]
    pub(super) fn is_in_parts(&self) -> bool {
        self.last.cast_signed() > 0
    }

    /// Makes a line whose slots are for all words one in parts, unless it knows an other read. What slots are for stays.
    #[cfg(any(target_arch = "x86_64", test))]
    #[inline(always)]
    pub(super) fn is_parted(&mut self, now: &Now) -> bool {
        let parted = self.is_whole() && self.other < now.floor;
        if parted {
            self.last = NO_WORDS;
        }
        parted
    }

    /// Whether it knows only what is old. Cells of its words are not in use.
    #[inline(always)]
    pub(super) fn is_old(&self, now: &Now) -> bool {
        let slots = [self.plain, self.read, self.other, self.last];
        slots.iter().all(|&slot| slot < now.floor)
    }

    /// Enters an access, which is not atomic, to all words.
    #[inline(always)]
    pub(super) fn enter(&mut self, now: &Now, lanes: LineLanes) -> Entered {
        if !self.is_whole() {
            return Entered::InCells;
        }
        let reads = now.unordered(self.read) | now.unordered(self.other);
        if now.unordered(self.plain) | (now.writes & reads) {
            return Entered::Races;
        }
        let slot = now.base | lanes.bits();
        if now.writes {
            self.plain = slot;
        } else {
            if now.is_other(self.read) {
                self.other = self.read;
            }
            self.read = slot;
        }
        Entered::Yes
    }

    /// The cells of the words that know the same. Cells are not in use yet.
    pub(super) fn cells(&self, now: &Now) -> [Cell; WORDS as usize] {
        let mut cells = [Cell::default(); WORDS as usize];
        let other = if self.is_whole() { OTHER } else { READ };
        let slots = [
            (self.plain, PLAIN),
            (self.read, READ),
            (self.other, other),
            (self.last, PLAIN),
        ];
        for (slot, place) in slots {
            // What is older matters no more, and neither does it in cells.
            if slot >= now.floor {
                for (word, cell) in (0..WORDS).zip(cells.iter_mut()) {
                    if slot & left_out(1 << word) == 0 {
                        cell[place] = of_word(slot, word);
                    }
                }
            }
        }
        cells
    }
}

#[cfg(test)]
mod tests {
    use super::super::cell::{lane, lane_bits};
    use super::*;

    #[test]
    fn words_have_the_lanes_of_their_line() {
        let base = 77 << 35 | 5 << 13;
        for (run, lanes) in [(0, [8, 9, 10, 11]), (1, [8, 8, 9, 9]), (2, [8; 4])] {
            for (word, of) in (0..).zip(lanes) {
                let slot = of_word(base | 8 << LANE | run, word);
                assert_eq!((slot, lane(slot, 0)), (base | lane_bits(of), of));
            }
        }
    }

    #[test]
    fn bytes_of_words_have_the_lanes_of_their_line() {
        let base = 77 << 35 | 5 << 13;
        for (run, lanes) in [(4, [8, 8, 9, 9]), (5, [8, 9, 10, 11])] {
            let per_word = lanes[3] - 7;
            for word in 0..4 {
                let slot = of_word(base | 8 << LANE | run, word);
                let found = [0, 1, 2, 3].map(|byte| lane(slot, byte));
                assert_eq!(found, lanes.map(|l| l + per_word * word as u32));
            }
        }
    }
}
