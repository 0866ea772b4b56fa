//! What processors with AVX-512 enter at once: words of consecutive lanes, lines of lanes at equal distances, and eight lanes anywhere.

use std::arch::x86_64::*;

use super::super::cell::{self, Now, lane_bits};
use super::super::line;
use super::super::run::ones;
use super::super::x86;
use super::{LINE_WORDS, Shadow, WORD};

impl Shadow {
    /// See [`super::Races::words`].
    #[inline(always)]
    pub(in crate::race) fn words_of_lanes(
        &mut self,
        now: &Now,
        offset: u64,
        (count, accessed): (u64, u64),
        lane: u32,
    ) -> bool {
        let (first, words) = (offset / WORD, self.words as u64);
        if !offset.is_multiple_of(WORD) || first + count > words {
            return false;
        }
        let slot = now.base | u64::from(lane) << cell::LANE;
        let step = line::WORDS << cell::LANE;
        let mut done = 0;
        if (first | count).is_multiple_of(line::WORDS) && accessed == ones(count) {
            let lines = (count / line::WORDS) as usize;
            // SAFETY: the lines are there; the caller says that the processor has AVX-512.
            let entered = unsafe { x86::lines(self.line_at(first), lines, now, slot, step) };
            done = entered as u64 * line::WORDS;
        }
        done == count || self.words_left(now, (first, count), (done, accessed), slot)
    }

    /// The same but for the first `done` of the words, with those of lines that are not accessed as a whole, are in parts, or have cells in use.
    #[inline(never)]
    fn words_left(
        &mut self,
        now: &Now,
        (first, count): (u64, u64),
        (done, accessed): (u64, u64),
        slot: u64,
    ) -> bool {
        // From where the first word's line begins.
        let within = first % line::WORDS;
        let (first, accessed) = (first - within, accessed << within);
        let is_below = slot - now.base < within << cell::LANE;
        let slot = slot.wrapping_sub(within << cell::LANE);
        let lines = (within + count).div_ceil(line::WORDS);
        let mut done = done / line::WORDS;
        while done < lines {
            let (word, left) = (first + done * line::WORDS, accessed >> (done * line::WORDS));
            let slot = slot.wrapping_add((done * line::WORDS) << cell::LANE);
            let words = left & ones(line::WORDS);
            if words == 0 {
                done += 1;
                continue;
            }
            if words == ones(line::WORDS) && self.is_line(now, word) {
                let whole = u64::from((!left).trailing_zeros()) / line::WORDS;
                match self.lines_from(now, word, whole.min(lines - done) as usize, slot) {
                    0 => return false,
                    lines => done += lines,
                }
                continue;
            }
            if self.is_in_parts(now, word) {
                // Words before the first one may have lanes below 0, which count modulo 32 in a line's slot.
                let (slot, lines) = match done == 0 && is_below {
                    true => (now.base | slot & line::LANES, 1),
                    false => (slot, lines - done),
                };
                let entered = self.parts_from(now, word, (lines, left), slot);
                done += entered;
                if entered != 0 {
                    continue;
                }
            }
            done += 1;
            self.open(now, word + u64::from(words.trailing_zeros()));
            // What the first word of the line would have, accessed or not.
            let (cells, slot) = (self.all_at(word), slot | cell::WHOLE);
            // SAFETY: these are the cells of a line, and the processor has AVX-512.
            if !unsafe { x86::cells_of_lanes(cells, now, slot, words as u8) } {
                return false;
            }
        }
        true
    }

    /// Whether a line that begins with a word is in parts. It is from now on if nothing is known of it that parts cannot say.
    #[inline(always)]
    fn is_in_parts(&mut self, now: &Now, word: u64) -> bool {
        let Some(line) = self.line(word) else {
            return false;
        };
        if line.is_in_parts() {
            return true;
        }
        if line.is_in_cells() && !self.is_closed(now, word) {
            return false;
        }
        self.line(word).is_some_and(|line| line.is_parted(now))
    }

    /// Enters an access to words of lines that are there, those whose bits are set, until one races or is not in parts. How many lines were entered.
    #[inline(always)]
    fn parts_from(&mut self, now: &Now, word: u64, (lines, words): (u64, u64), slot: u64) -> u64 {
        let at = self.line_at(word);
        // SAFETY: as promised, and the caller says that the processor has AVX-512.
        let entered = unsafe {
            match x86::parts(at, lines as usize, now, slot, words) {
                // Of two lines the second one may not be in parts.
                0 => x86::parts(at, 1, now, slot, words),
                entered => entered,
            }
        };
        entered as u64
    }

    /// Enters an access to lines that are there until one races or is in parts or cells. How many were entered.
    #[inline(always)]
    fn lines_from(&mut self, now: &Now, word: u64, lines: usize, slot: u64) -> u64 {
        let (at, step) = (self.line_at(word), line::WORDS << cell::LANE);
        // SAFETY: as promised, and the caller says that the processor has AVX-512.
        let entered = unsafe {
            match x86::lines(at, lines, now, slot, step) {
                // Of two lines the second one may be in parts or cells.
                0 => x86::lines(at, 1, now, slot, step),
                entered => entered,
            }
        };
        entered as u64
    }

    /// See [`super::Races::lines_apart`].
    #[inline(always)]
    pub(in crate::race) fn lines_apart(
        &mut self,
        now: &Now,
        (offset, stride, count): (u64, u64, u64),
        of: u32,
        lane: u32,
    ) -> bool {
        const BYTES: u64 = WORD * line::WORDS;
        let last = offset.saturating_add(stride.saturating_mul(count.saturating_sub(1)));
        let end = last.saturating_add(BYTES);
        if !(offset | stride).is_multiple_of(BYTES) || end > WORD * self.words as u64 {
            return false;
        }
        let lanes = line::LineLanes {
            first: lane,
            run: line::WORDS.ilog2(),
        };
        let (at, slot) = (self.line_at(offset / WORD), now.base | lanes.bits());
        // SAFETY: the lines are there; the caller says that the processor has AVX-512.
        unsafe { x86::lines_apart(at, (stride / BYTES) as usize, now, slot, of) }
    }

    /// Enters an access to lines that are there, of which the first begins with a word, if no cells of them are in use, and none races. The slot of
    /// the first line increased by `step` is that of the next one.
    #[inline(always)]
    fn are_entered(
        &mut self,
        now: &Now,
        (word, lines): (u64, usize),
        slot: u64,
        step: u64,
    ) -> bool {
        let at = self.line_at(word);
        // SAFETY: the caller says that the lines are there, and that the processor has AVX-512.
        let entered = unsafe { x86::lines(at, lines, now, slot, step) };
        entered == lines || self.are_entered_again(now, (word, lines), slot, step)
    }

    /// The same, with those that have cells in use which know only what is old.
    #[cold]
    fn are_entered_again(
        &mut self,
        now: &Now,
        (word, lines): (u64, usize),
        slot: u64,
        step: u64,
    ) -> bool {
        let at = self.line_at(word);
        let mut words = (word..).step_by(LINE_WORDS).take(lines);
        if !words.all(|word| self.is_line(now, word)) {
            return false;
        }
        // SAFETY: as in `are_entered`.
        unsafe { x86::lines(at, lines, now, slot, step) == lines }
    }

    /// See [`super::Races::local_reads`]. `slots` are that of the first line, what the next line adds, and the next read.
    #[inline(always)]
    pub(in crate::race) fn are_read<const LINES: usize>(
        &mut self,
        now: &Now,
        (offset, distance): (u64, i32),
        count: u8,
        (slot, step, next): (u64, u64, u64),
    ) -> bool {
        const BYTES: u64 = WORD * line::WORDS;
        let apart = i64::from(distance);
        let Some(last) = offset.checked_add_signed(apart * (i64::from(count) - 1)) else {
            return false;
        };
        let end = offset.max(last).saturating_add(BYTES * LINES as u64);
        if !offset.is_multiple_of(BYTES)
            || !u64::from(distance.cast_unsigned()).is_multiple_of(BYTES)
            || end > WORD * self.words as u64
        {
            return false;
        }
        let reads = x86::Reads {
            count,
            lines: (apart / BYTES as i64) as isize,
            step,
            next,
        };
        // SAFETY: the lines are there; the caller says that the processor has AVX-512.
        unsafe { x86::are_read::<LINES>(self.line_at(offset / WORD), now, slot, reads) }
    }

    /// See [`super::Races::few`].
    #[inline(always)]
    pub(in crate::race) fn few(
        &mut self,
        now: &Now,
        word: u64,
        (count, words): (u64, u64),
        lane: u32,
    ) -> bool {
        let at = word % line::WORDS;
        let line = word - at;
        if at + count > line::WORDS || line + line::WORDS > self.words as u64 {
            return false;
        }
        if words == ones(line::WORDS) && !now.is_atomic() {
            let lanes = line::LineLanes {
                first: lane,
                run: line::WORDS.ilog2(),
            };
            let slot = now.base | lanes.bits();
            if self.are_entered(now, (word, 1), slot, 0) {
                return true;
            }
        }
        // SAFETY: the caller says that the processor has AVX-512.
        unsafe { self.few_of_cells(now, word, words << at, now.base | lane_bits(lane)) }
    }

    /// The same by cells, for those words of the line whose bits are set, which `word` is one of.
    #[inline(never)]
    #[target_feature(enable = "avx512f")]
    fn few_of_cells(&mut self, now: &Now, word: u64, words: u64, slot: u64) -> bool {
        self.open(now, word);
        let line = word / line::WORDS * line::WORDS;
        // SAFETY: these are the cells of a line.
        unsafe { x86::cells_of_lane(self.all_at(line), now, slot, words as u8) }
    }

    /// See [`super::Races::eight`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl")]
    pub(in crate::race) fn eight(
        &mut self,
        now: &Now,
        (offsets, lanes): (__m512i, __m512i),
        of: u8,
        whole: bool,
    ) -> bool {
        let unit = if whole { WORD * line::WORDS } else { WORD };
        let low = _mm512_set1_epi64((unit - 1).cast_signed());
        let words = _mm512_srli_epi64::<{ WORD.ilog2() }>(offsets);
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
        let at = self.slots.start().cast::<i64>();
        let all = self.words as u64;
        let places = if whole {
            words
        } else {
            x86::places(words, all)
        };
        // SAFETY: each of the words has a line and a cell.
        let entered = unsafe {
            match whole {
                true => x86::eight_lines(at, now, places, of, slots),
                false => x86::eight_cells(at, now, places, of, slots),
            }
        };
        entered || self.eight_again(now, (words, places), slots, (of, whole))
    }

    /// The same where one races, or lines have cells in use that should have none, or the other way.
    #[cold]
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn eight_again(
        &mut self,
        now: &Now,
        (words, places): (__m512i, __m512i),
        slots: __m512i,
        (of, whole): (u8, bool),
    ) -> bool {
        let at = self.slots.start().cast::<i64>();
        // SAFETY: each of the words has a line and a cell.
        let last = unsafe { x86::last(at, places, of) };
        if whole {
            let lines = x86::whole(last, of);
            // SAFETY: as before.
            return lines != of
                && self.are_lines(now, words, of & !lines)
                && unsafe { x86::eight_lines(at, now, places, of, slots) };
        }
        let closed = x86::closed(last, of);
        if closed == 0 {
            return false;
        }
        self.open_eight(now, words, closed);
        // SAFETY: as before.
        unsafe { x86::eight_cells(at, now, places, of, slots) }
    }

    /// Whether all of up to eight lines that begin with words, those whose bits are set, say what is known of their words.
    #[cold]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn are_lines(&mut self, now: &Now, words: __m512i, of: u8) -> bool {
        each(words, of).all(|word| self.is_line(now, word))
    }

    /// Puts the cells of the lines of up to eight words in use, those whose bits are set.
    #[cold]
    #[target_feature(enable = "avx512f,avx512vl")]
    fn open_eight(&mut self, now: &Now, words: __m512i, of: u8) {
        let at = self.slots.start().cast::<i64>();
        // SAFETY: each of the words has a line, which has cells.
        let closed = unsafe { x86::open_eight(at, self.words as u64, now, words, of) };
        each(words, closed).for_each(|word| self.open(now, word));
    }
}

/// Those of eight numbers whose bits are set.
#[inline]
#[target_feature(enable = "avx512f")]
fn each(numbers: __m512i, of: u8) -> impl Iterator<Item = u64> {
    let mut all = [0u64; 8];
    // SAFETY: there is room for all of them.
    unsafe { _mm512_storeu_epi64(all.as_mut_ptr().cast(), numbers) };
    let of = move |&(lane, _): &(usize, u64)| of >> lane & 1 != 0;
    all.into_iter()
        .enumerate()
        .filter(of)
        .map(|(_, number)| number)
}
