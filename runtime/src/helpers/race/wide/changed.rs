//! Which lanes of a store change what is there.

use std::arch::x86_64::*;

use super::RaceCall;
use crate::race::ones;

/// Which of eight lanes from `first` on a store of words changes; `None` where one changes only some of its words.
///
/// # Safety
/// The elements of lanes whose bits are set are inside of their region.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) unsafe fn changed_of_eight(
    access: &RaceCall,
    offset: __m512i,
    (first, of): (usize, u8),
) -> Option<u8> {
    let row = (access.count * 4).next_multiple_of(16);
    let (mut any, mut each) = (0, of);
    for k in 0..access.comps {
        let place = access.region.base.wrapping_add(4 * k);
        let values = access.data.wrapping_add(row * k + 4 * first);
        // SAFETY: as promised, and a store's block has its values.
        let differ = unsafe {
            let none = _mm256_setzero_si256();
            let old = _mm512_mask_i64gather_epi32::<1>(none, of, offset, place.cast());
            let new = _mm256_maskz_loadu_epi32(of, values.cast());
            _mm256_mask_cmpneq_epi32_mask(of, old, new)
        };
        any |= differ;
        each &= differ;
    }
    (any == each).then_some(each)
}

/// Which of some lanes, a multiple of four, change the four words that each of them stores; `None` where one changes only some of its words.
///
/// # Safety
/// The words are there, the first lane's at `start`, and so are the values: those of the first words of all lanes, then the others.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) unsafe fn changed_lines(
    start: *mut u8,
    stride: usize,
    values: *const u8,
    lanes: usize,
) -> Option<u32> {
    let row = 4 * lanes;
    let mut all = 0;
    for lane in (0..lanes).step_by(4) {
        let value = values.wrapping_add(4 * lane);
        let place = start.wrapping_add(stride * lane);
        // SAFETY: as promised.
        let (rows, old) = unsafe {
            (
                [
                    _mm_loadu_epi32(value.cast()),
                    _mm_loadu_epi32(value.wrapping_add(row).cast()),
                    _mm_loadu_epi32(value.wrapping_add(2 * row).cast()),
                    _mm_loadu_epi32(value.wrapping_add(3 * row).cast()),
                ],
                [
                    _mm_loadu_epi32(place.cast()),
                    _mm_loadu_epi32(place.wrapping_add(stride).cast()),
                    _mm_loadu_epi32(place.wrapping_add(2 * stride).cast()),
                    _mm_loadu_epi32(place.wrapping_add(3 * stride).cast()),
                ],
            )
        };
        let [a, b, c, d] = rows;
        let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
        let (ab_high, cd_high) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
        let new = [
            _mm_unpacklo_epi64(ab, cd),
            _mm_unpackhi_epi64(ab, cd),
            _mm_unpacklo_epi64(ab_high, cd_high),
            _mm_unpackhi_epi64(ab_high, cd_high),
        ];
        for k in 0..4 {
            match _mm_cmpneq_epi32_mask(old[k], new[k]) {
                0 => {}
                15 => all |= 1 << (lane + k),
                _ => return None,
            }
        }
    }
    Some(all)
}

/// Which words of a lane a store changes; all of an element, if any.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn words_changed(access: &RaceCall, lane: usize, place: *mut u8) -> u64 {
    let row = (access.count * access.bytes as usize).next_multiple_of(16);
    let value = access.data.wrapping_add(lane * access.bytes as usize);
    let mut changed = 0;
    for k in 0..access.comps {
        let (old, new) = (
            place.wrapping_add(k * access.bytes as usize),
            value.wrapping_add(k * row),
        );
        // SAFETY: the element is inside of its region, and a store's block has its value.
        let differs = unsafe {
            match access.bytes {
                4 => old.cast::<u32>().read_unaligned() != new.cast::<u32>().read_unaligned(),
                _ => old.cast::<u64>().read_unaligned() != new.cast::<u64>().read_unaligned(),
            }
        };
        let words = access.bytes as usize / 4;
        changed |= (u64::from(differs) * ones(words as u64)) << (words * k);
    }
    changed
}
