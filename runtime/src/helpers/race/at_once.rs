//! Accesses that are entered in a few steps: those of lanes side by side, and those of a lane to whole words. What races is left to
//! `Access::lane_alone`, which reports it.

use super::{Addresses, RaceCall};
use crate::element;
use crate::race::{Now, Part, Races, Run, ones};
use std::ops::Range;

/// Most words that are entered at once.
const ROW: usize = 64;

/// Elements of enabled lanes at affine distances.
pub(super) struct AffineLanes {
    /// From lane to lane: the size of a lane's elements, or 0.
    pub stride: u64,
    /// Of the enabled lanes.
    pub first: usize,
    pub last: usize,
}

impl RaceCall {
    /// How the elements of some lanes lie, where those of all enabled ones lie one after the other, or all at one place.
    #[inline(always)]
    pub(super) fn affine(&self, of: Range<usize>) -> Option<AffineLanes> {
        let size = self.comps as u64 * u64::from(self.bytes);
        let enabled = self.enabled & ones(of.end as u64) as u32 & !(ones(of.start as u64) as u32);
        if enabled == 0 {
            return None;
        }
        let first = enabled.trailing_zeros() as usize;
        let last = 31 - enabled.leading_zeros() as usize;
        if let Addresses::Affine(_, stride) = self.addresses {
            let known = stride == size || stride == 0 || first == last;
            let stride = if stride == 0 { 0 } else { size };
            return known.then_some(AffineLanes {
                stride,
                first,
                last,
            });
        }
        let start = self.lane_address(first).1;
        let rest = enabled & (enabled - 1);
        let stride = match rest != 0 && self.lane_address(rest.trailing_zeros() as usize).1 == start
        {
            true => 0,
            false => size,
        };
        // Without branches, for vectors.
        let differs = |differs: u64, lane: usize, offset: u64| {
            let expected = start.wrapping_add(stride.wrapping_mul(lane.wrapping_sub(first) as u64));
            let enabled = u64::from(enabled >> lane & 1).wrapping_neg();
            differs | (offset ^ expected) & enabled
        };
        let differs = match self.flat {
            true => of.fold(0, |d, lane| differs(d, lane, self.flat_at(lane).1)),
            false => of.fold(0, |d, lane| differs(d, lane, self.offset_at(lane))),
        };
        (differs == 0).then_some(AffineLanes {
            stride,
            first,
            last,
        })
    }

    /// Enters an access to whole words that lie side by side, if it races with none; true if nothing is left to do.
    #[inline(always)]
    pub(super) fn is_entered_at_once<const WIDE: bool>(
        &self,
        races: &mut Races,
        now: &Now,
        affine: &AffineLanes,
    ) -> bool {
        let size = self.comps * self.bytes as usize;
        if self.does.atomic {
            return false;
        }
        let &AffineLanes {
            stride,
            first,
            last,
        } = affine;
        if stride == 0 && (self.does.writes && first != last) {
            return false;
        }
        // Where lanes read one place, the last of them stays known.
        let lanes = if stride == 0 {
            last..last + 1
        } else {
            first..last + 1
        };
        let (_, offset) = self.lane_address(lanes.start);
        let bytes = size * lanes.len();
        let inside = offset.checked_add(bytes as u64);
        if inside.is_none_or(|end| end > self.region.size) {
            return false;
        }
        let start = self.region.base.wrapping_add(offset as usize);
        if races.touches_private(start as u64..start as u64 + bytes as u64) {
            return false;
        }
        let Some(run) = self.run(&lanes, size, start) else {
            return false;
        };
        let words = bytes / 4;
        for at in (0..words).step_by(ROW) {
            let len = ROW.min(words - at);
            let accessed = self.accessed_words::<WIDE>(&lanes, at..at + len, start);
            let part = Part {
                run,
                at: at as u64,
                len: len as u64,
                accessed,
            };
            let from = start as u64 + 4 * at as u64;
            if accessed != 0 && !races.part::<WIDE>(self.memory, now, from, part) {
                return false;
            }
        }
        true
    }

    /// How these lanes access words, one lane after the other, if each word is accessed as a whole.
    #[inline(always)]
    fn run(&self, lanes: &Range<usize>, size: usize, start: *mut u8) -> Option<Run> {
        let lane = lanes.start as u32 + self.first_lane;
        let words = (size * lanes.len() / 4) as u64;
        let shift = if self.bytes >= 4 || (self.is_block && size.is_multiple_of(4)) {
            // A store of narrow elements may change only some of a word.
            if self.bytes < 4 && self.does.writes {
                return None;
            }
            let of_lane = (size / 4) as u32;
            match (lanes.len(), of_lane.is_power_of_two()) {
                (1, _) => Run::ONE_LANE,
                (_, true) => of_lane.ilog2().cast_signed(),
                (_, false) => return None,
            }
        } else {
            let all = self.enabled >> lanes.start & ones(lanes.len() as u64) as u32;
            let whole = all == ones(lanes.len() as u64) as u32 && self.comps == 1;
            let whole = whole && (size * lanes.len()).is_multiple_of(4);
            if !whole || (self.does.writes && !self.changes_each(lanes, start)) {
                return None;
            }
            self.bytes.ilog2().cast_signed() - 2
        };
        Some(Run { words, lane, shift })
    }

    /// Whether a store changes each of its narrow elements. The first is at `start`, and the others follow it.
    fn changes_each(&self, lanes: &Range<usize>, start: *mut u8) -> bool {
        let size = self.bytes as usize;
        let changes = |lane: usize| {
            let place = start.wrapping_add((lane - lanes.start) * size);
            // SAFETY: the element is inside of its region.
            unsafe { element::load(place, self.bytes) != self.left(lane, 0) }
        };
        self.same_value || lanes.clone().all(changes)
    }

    /// Which of some words enabled lanes access. Word 0 is the first one's of `lanes`, at `start`.
    #[inline(always)]
    fn accessed_words<const WIDE: bool>(
        &self,
        lanes: &Range<usize>,
        words: Range<usize>,
        start: *mut u8,
    ) -> u64 {
        let len = words.len() as u64;
        let all = ones(lanes.len() as u64) as u32;
        let enabled = self.enabled >> lanes.start & all;
        let mut accessed = ones(len);
        if self.bytes < 4 {
            return accessed;
        }
        let of_lane = self.comps * self.bytes as usize / 4;
        if enabled != all {
            accessed = match of_lane {
                1 => u64::from(enabled) >> words.start & ones(len),
                _ => bits(words.clone(), |word| enabled >> (word / of_lane) & 1 != 0),
            };
        }
        if !self.does.writes || self.same_value {
            return accessed;
        }
        // The values lie one after the other, as the elements do.
        let beside = self.comps == 1 || self.is_block;
        let from = if self.is_block { 0 } else { lanes.start };
        let values = self.data.wrapping_add(from * self.bytes as usize);
        accessed
            & match self.bytes {
                // SAFETY: the elements are inside of their region, and a store's block has their values.
                4 if beside => unsafe { changed::<WIDE>(start, values, words) },
                _ => bits(words, |word| {
                    let lane = lanes.start + word / of_lane;
                    self.changes(lane, word % of_lane, start.wrapping_add(4 * word))
                }),
            }
    }

    /// Enters the access of one lane, if it is one to whole words and races with none; true if nothing is left to do.
    #[inline(always)]
    pub(super) fn is_lane_entered_at_once<const WIDE: bool>(
        &self,
        races: &mut Races,
        now: &Now,
        lane: usize,
    ) -> bool {
        let size = self.comps * self.bytes as usize;
        let words = size / 4;
        if self.bytes < 4 || words > ROW || (self.does.atomic && self.comps != 1) {
            return false;
        }
        let (_, mut offset) = self.lane_address(lane);
        if self.does.atomic {
            offset &= !(u64::from(self.bytes) - 1);
        }
        let inside = offset.checked_add(size as u64);
        if inside.is_none_or(|end| end > self.region.size) {
            return false;
        }
        let start = self.region.base.wrapping_add(offset as usize);
        if races.touches_private(start as u64..start as u64 + size as u64) {
            return false;
        }
        let number = lane as u32 + self.first_lane;
        let compares = self.does.writes && !self.does.atomic && !self.same_value;
        if words == 1 {
            let nothing = compares && !self.changes(lane, 0, start);
            return nothing || races.one::<WIDE>(self.memory, now, start as u64, number);
        }
        let mut part = Part::all(Run {
            words: words as u64,
            lane: number,
            shift: Run::ONE_LANE,
        });
        if compares {
            part.accessed = bits(0..words, |word| {
                self.changes(lane, word, start.wrapping_add(4 * word))
            });
        }
        part.accessed == 0 || races.part::<WIDE>(self.memory, now, start as u64, part)
    }

    /// Whether a store changes the element to which a word of its lane belongs. `place` is where the word is.
    #[inline(always)]
    fn changes(&self, lane: usize, word: usize, place: *mut u8) -> bool {
        let bytes = self.bytes as usize;
        let k = word * 4 / bytes;
        let place = place.wrapping_sub(word * 4 % bytes);
        // SAFETY: the element is inside of its region.
        self.same_value || unsafe { element::load(place, self.bytes) != self.left(lane, k) }
    }
}

/// A bit for each of up to 64 numbers.
#[inline(always)]
fn bits(of: Range<usize>, is_set: impl Fn(usize) -> bool) -> u64 {
    let bit = |(at, number)| u64::from(is_set(number)) << at;
    of.enumerate().map(bit).fold(0, |all, bit| all | bit)
}

/// Which of up to 64 words differ from their values; both are counted from the first.
///
/// # Safety
/// The words and the values are there. Other threads may write them: they are only compared. `WIDE` needs AVX-512.
#[inline(always)]
pub(super) unsafe fn changed<const WIDE: bool>(
    start: *mut u8,
    values: *const u8,
    words: Range<usize>,
) -> u64 {
    let (old, new) = (start.cast::<u32>(), values.cast::<u32>());
    #[cfg(target_arch = "x86_64")]
    if WIDE {
        // SAFETY: as promised.
        return unsafe {
            x86::changed(
                old.wrapping_add(words.start),
                new.wrapping_add(words.start),
                words.len(),
            )
        };
    }
    bits(words, |word| {
        // SAFETY: as promised.
        unsafe { old.add(word).read_unaligned() != new.add(word).read_unaligned() }
    })
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// # Safety
    /// See [`super::changed`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) unsafe fn changed(old: *const u32, new: *const u32, count: usize) -> u64 {
        let mut all = 0;
        for at in (0..count).step_by(16) {
            let some = (u32::MAX >> (32 - (count - at).min(16))) as u16;
            // SAFETY: as promised.
            let differ = unsafe {
                let old = _mm512_maskz_loadu_epi32(some, old.wrapping_add(at).cast());
                let new = _mm512_maskz_loadu_epi32(some, new.wrapping_add(at).cast());
                _mm512_cmpneq_epi32_mask(old, new)
            };
            all |= u64::from(differ) << at;
        }
        all
    }
}
