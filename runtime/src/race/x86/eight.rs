//! Up to eight words or lines anywhere, two at a time: a gather or scatter of their slots takes longer.

use std::arch::x86_64::*;

use super::super::cell::{self, Cell, Now};
use super::super::line::{self, IN_CELLS};
use super::{LineVectors, Vectors, both_slots, two_cells, two_lines};

/// The last slot of a line or a cell.
const LAST: usize = 3;
const _: () = assert!(cell::OTHER == LAST);

/// Up to eight lines or cells, each by the number of its first slot.
#[derive(Clone, Copy)]
struct Eight {
    at: *mut i64,
    first: __m512i,
    of: u8,
}

impl Eight {
    /// # Safety
    /// They are there. The processor has AVX-512.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn slots(&self, column: usize) -> __m512i {
        let none = _mm512_setzero_si512();
        let at = self.at.wrapping_add(column);
        // SAFETY: as promised.
        unsafe { _mm512_mask_i64gather_epi64::<8>(none, self.of, self.first, at) }
    }

    /// Of lanes that have one place the last one's slot stays.
    ///
    /// # Safety
    /// As [`Eight::slots`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn set(&self, column: usize, of: u8, slots: __m512i) {
        let at = self.at.wrapping_add(column);
        // SAFETY: as promised.
        unsafe { _mm512_mask_i64scatter_epi64::<8>(at, of, self.first, slots) }
    }
}

/// Where the cells of up to eight words begin in a [`Shadow`](super::shadow::Shadow) of `all` words, in slots from its start.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::race) fn places(words: __m512i, all: u64) -> __m512i {
    let low = _mm512_set1_epi64((line::WORDS - 1).cast_signed());
    let others = _mm512_set1_epi64(all.wrapping_sub(line::WORDS).cast_signed());
    // Where a word has number w, and w % 4 = k is not 0: 3 * (w - k) + 4 * (k - 1) of the other cells.
    let behind = _mm512_add_epi64(_mm512_slli_epi64::<1>(words), _mm512_and_si512(words, low));
    let behind = _mm512_add_epi64(behind, others);
    _mm512_mask_add_epi64(words, _mm512_test_epi64_mask(words, low), words, behind)
}

/// The last slots of up to eight cells or lines, by the numbers of their first ones.
///
/// # Safety
/// Those of which `of` has bits are there. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::race) unsafe fn last(at: *mut i64, first: __m512i, of: u8) -> __m512i {
    let eight = Eight { at, first, of };
    // SAFETY: as promised.
    unsafe { eight.slots(LAST) }
}

/// Of up to eight cells or lines, those of which the last slots say that no cells are in use.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::race) fn closed(last: __m512i, of: u8) -> u8 {
    _mm512_mask_testn_epi64_mask(of, last, _mm512_set1_epi64(IN_CELLS.cast_signed()))
}

/// Of up to eight lines, those of which the last slots say that all slots are for all words.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::race) fn whole(last: __m512i, of: u8) -> u8 {
    _mm512_mask_testn_epi64_mask(of, last, last)
}

/// Enters accesses to up to eight words, of one lane each, by the numbers of the first slots of their cells, see [`places`]. False where one races or
/// has no cell in use: words before it are entered then. Of lanes that have one place the last one's slot stays.
///
/// # Safety
/// Cells of which `of` has bits are there. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::race) unsafe fn eight_cells(
    at: *mut i64,
    now: &Now,
    first: __m512i,
    of: u8,
    slots: __m512i,
) -> bool {
    let v = Vectors::new(now);
    let (first, slots) = (numbers(first), numbers(slots));
    for lane in (0..8).step_by(2) {
        let words = of >> lane & 3;
        if words == 0 {
            continue;
        }
        let (cells, slots) = two_of(at, &first, &slots, (lane, words));
        // As all lanes are of one thread, it does not matter that the second one does not see what the first one enters.
        // SAFETY: as promised.
        if !unsafe { two_cells::<true>(cells, &v, now, slots, words) } {
            return false;
        }
    }
    true
}

/// Two of eight places and their slots. Where one of them is not accessed, it is the other one again.
#[inline(always)]
fn two_of<T>(
    at: *mut i64,
    first: &[u64; 8],
    slots: &[u64; 8],
    (lane, words): (usize, u8),
) -> ([*mut T; 2], [u64; 2]) {
    let [low, high] = match words {
        1 => [lane; 2],
        2 => [lane + 1; 2],
        _ => [lane, lane + 1],
    };
    let [first_low, first_high] = [first[low & 7], first[high & 7]];
    let places = [
        at.wrapping_add(first_low as usize).cast(),
        at.wrapping_add(first_high as usize).cast(),
    ];
    (places, [slots[low & 7], slots[high & 7]])
}

#[inline]
#[target_feature(enable = "avx512f")]
fn numbers(v: __m512i) -> [u64; 8] {
    let mut numbers = [0; 8];
    // SAFETY: there is room for eight.
    unsafe { _mm512_storeu_si512(numbers.as_mut_ptr().cast(), v) };
    numbers
}

/// Puts the cells of the lines of up to eight words in use, but for lines of which something is known that matters: returns their words.
/// There are `all` words.
///
/// # Safety
/// Words of which `of` has bits have lines, and these have cells. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::race) unsafe fn open_eight(
    at: *mut i64,
    all: u64,
    now: &Now,
    words: __m512i,
    of: u8,
) -> u8 {
    let low = _mm512_set1_epi64((line::WORDS - 1).cast_signed());
    let first = _mm512_andnot_si512(low, words);
    let eight = Eight { at, first, of };
    let floor = _mm512_set1_epi64(now.floor.cast_signed());
    let known = (0..=LAST).fold(0, |known, column| {
        // SAFETY: as promised.
        let slots = unsafe { eight.slots(column) };
        known | _mm512_mask_cmpge_epu64_mask(of, slots, floor)
    });
    let free = of & !known;
    let others = Eight {
        at: at.wrapping_add(all as usize),
        first: _mm512_add_epi64(first, _mm512_slli_epi64::<1>(first)),
        of,
    };
    let mark = _mm512_set1_epi64(IN_CELLS.cast_signed());
    // What is older matters in no cell, so that the other slots may stay as they are.
    // SAFETY: as promised.
    unsafe {
        eight.set(LAST, free, mark);
        for cell in 0..line::WORDS as usize - 1 {
            others.set(size_of::<Cell>() / 8 * cell + LAST, free, mark);
        }
    }
    known
}

/// The same for an access, which is not atomic, to all words of up to eight lines, by the numbers of their first slots. False where one races or has
/// cells in use.
///
/// # Safety
/// Lines of which `of` has bits are there. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::race) unsafe fn eight_lines(
    at: *mut i64,
    now: &Now,
    first: __m512i,
    of: u8,
    slots: __m512i,
) -> bool {
    // SAFETY: as promised.
    unsafe {
        match now.writes {
            true => eight_lines_of::<true>(at, now, first, of, slots),
            false => eight_lines_of::<false>(at, now, first, of, slots),
        }
    }
}

/// # Safety
/// As [`eight_lines`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn eight_lines_of<const WRITES: bool>(
    at: *mut i64,
    now: &Now,
    first: __m512i,
    of: u8,
    slots: __m512i,
) -> bool {
    let v = LineVectors::new::<WRITES>(now);
    let (first, slots) = (numbers(first), numbers(slots));
    for lane in (0..8).step_by(2) {
        let words = of >> lane & 3;
        if words == 0 {
            continue;
        }
        let (lines, slots) = two_of(at, &first, &slots, (lane, words));
        let slot = both_slots(slots);
        // SAFETY: as promised.
        if !unsafe { two_lines::<WRITES, false>(lines, &v, slot) } {
            return false;
        }
    }
    true
}
