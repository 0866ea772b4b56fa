//! Accesses to some of the words of lines, which are in parts, two lines at a time.

use std::arch::x86_64::*;

use super::super::cell::{LANE, Now};
use super::super::line::{self, Line, left_out};
use super::{LASTS, Vectors, of_two};

/// Slots of two lines in parts, a bit for each: the plain write, the read, the read of other words and the plain write of other words of each.
const FIRST_PLAINS: u8 = 0b0001_0001;
const FIRST_READS: u8 = 0b0010_0010;
const SECOND_READS: u8 = 0b0100_0100;
const SECOND_PLAINS: u8 = 0b1000_1000;
const READS: u8 = FIRST_READS | SECOND_READS;
const PLAINS: u8 = FIRST_PLAINS | SECOND_PLAINS;

/// Enters an access, which is not atomic, of consecutive lanes to words of lines, those whose bits are set, until one of two lines is not in parts,
/// races, or has no slot free for it. Returns how many lines were entered, and those between of which no word is accessed. `first` is the slot of the
/// first line.
///
/// # Safety
/// There are `count` lines. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
pub(in crate::race) unsafe fn parts(
    at: *mut Line,
    count: usize,
    now: &Now,
    first: u64,
    words: u64,
) -> usize {
    // SAFETY: as promised.
    unsafe {
        match now.writes {
            true => parts_of::<true>(at, count, now, first, words),
            false => parts_of::<false>(at, count, now, first, words),
        }
    }
}

/// # Safety
/// As [`parts`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn parts_of<const WRITES: bool>(
    at: *mut Line,
    count: usize,
    now: &Now,
    first: u64,
    words: u64,
) -> usize {
    const ALL: u64 = left_out(u64::MAX);
    let v = Vectors::new(now);
    let (mut slot, both) = of_two(first, line::WORDS << LANE);
    let mut words = words;
    let mut done = 0;
    while done < count {
        let two = count - done > 1;
        let low = left_out(words);
        let high = if two {
            left_out(words >> line::WORDS)
        } else {
            0
        };
        let some = _mm512_mask_set1_epi64(
            _mm512_set1_epi64(high.cast_signed()),
            0x0F,
            low.cast_signed(),
        );
        let rest = _mm512_xor_si512(some, _mm512_set1_epi64(ALL.cast_signed()));
        let of = if low != 0 { 0x0F } else { 0 } | if high != 0 { 0xF0 } else { 0 };
        let line = at.wrapping_add(done);
        // Whole registers, so that the next access can read at once what this one has written.
        // SAFETY: as promised.
        let past = unsafe {
            match two {
                true => _mm512_loadu_si512(line.cast()),
                false => _mm512_castsi256_si512(_mm256_loadu_si256(line.cast())),
            }
        };
        let Some(place) = free_slot::<WRITES>(past, &v, (some, rest), of) else {
            break;
        };
        let new = _mm512_mask_mov_epi64(past, place, _mm512_or_si512(slot, rest));
        // SAFETY: as promised.
        unsafe {
            match two {
                true => _mm512_storeu_si512(line.cast(), new),
                false => _mm256_storeu_si256(line.cast(), _mm512_castsi512_si256(new)),
            }
        }
        slot = _mm512_add_epi64(slot, both);
        words >>= 2 * line::WORDS;
        done += 2;
    }
    done.min(count)
}

/// Where the slot of an access to `some` words of two lines goes, which is not for the `rest` of them: to a slot that is old, or for no other words.
/// `None` where there is no such slot, and where the access races, reads what another thread has read, or a line is not in parts.
#[inline]
#[target_feature(enable = "avx512f")]
fn free_slot<const WRITES: bool>(
    past: __m512i,
    v: &Vectors,
    (some, rest): (__m512i, __m512i),
    of: u8,
) -> Option<u8> {
    let in_parts = _mm512_cmpgt_epi64_mask(past, _mm512_setzero_si512());
    let new = _mm512_cmpge_epu64_mask(past, v.floor);
    let reached = of & new & _mm512_test_epi64_mask(_mm512_andnot_si512(past, some), some);
    let for_others = _mm512_test_epi64_mask(_mm512_andnot_si512(past, rest), rest);
    let free = !(new & for_others);
    let (first, second) = match WRITES {
        true => (free & FIRST_PLAINS, free & SECOND_PLAINS & !(free << 3)),
        false => (free & FIRST_READS, free & SECOND_READS & !(free << 1)),
    };
    let place = of & (first | second);
    let (kind, races) = match WRITES {
        true => (PLAINS, v.unordered(past, reached)),
        false => (
            READS,
            v.unordered(past, reached & PLAINS) | v.is_other(past, reached & READS),
        ),
    };
    // A place in each line that is accessed, and no other slot for words that are.
    let placed = place.count_ones() * 4 == of.count_ones();
    let fits = placed && (!in_parts & of & LASTS) | races | (reached & kind & !place) == 0;
    fits.then_some(place)
}
