//! Lane-wise accesses of single 4- and 8-byte elements with AVX-512, eight lanes at a time.
//!
//! Lanes that lie one after the other, all or some of them enabled, are one masked access, which
//! touches nothing of the other lanes. The others go one by one: hardware gathers and scatters are
//! no faster.

use super::message::{self, Access, FLAT_OFFSET};
use crate::abi::{GroupCtx, ThreadCtx};
use std::arch::x86_64::*;

/// True when this processor can run [`load`] and [`store`].
pub(super) fn available() -> bool {
    std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512vl")
        && std::is_x86_feature_detected!("bmi1")
}

/// Eight lanes of an access.
struct Octet {
    /// Offsets in the region.
    offsets: __m512i,
    /// Lanes that are enabled and inside.
    inside: __mmask8,
    /// Lanes that are enabled and not inside.
    outside: __mmask8,
}

/// True for accesses that this file has code for.
#[inline(always)]
fn handles(a: &Access) -> bool {
    a.comps == 1 && a.bytes_log2 >= 2 && a.count.is_multiple_of(8)
}

/// [`crate::abi::Helpers::load`].
///
/// # Safety
/// As [`message::load`], on a processor for which [`available`] is true.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
pub(super) unsafe extern "C" fn load(
    group: *const GroupCtx,
    thread: *const ThreadCtx,
    shape: u32,
    index: u32,
    enabled: u32,
    block: *mut u8,
) -> u32 {
    // SAFETY: as promised.
    unsafe {
        let a = Access::new(group, thread, shape, index, enabled, block);
        if !handles(&a) {
            return message::load_access(&a);
        }
        match (a.flat, a.bytes_log2) {
            (false, 2) => load_lanes::<false, 4>(&a),
            (false, _) => load_lanes::<false, 8>(&a),
            (true, 2) => load_lanes::<true, 4>(&a),
            (true, _) => load_lanes::<true, 8>(&a),
        }
    }
}

/// [`crate::abi::Helpers::store`].
///
/// # Safety
/// As [`message::store`], on a processor for which [`available`] is true.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
pub(super) unsafe extern "C" fn store(
    group: *const GroupCtx,
    thread: *const ThreadCtx,
    shape: u32,
    index: u32,
    enabled: u32,
    block: *mut u8,
) -> u32 {
    // SAFETY: as promised.
    unsafe {
        let a = Access::new(group, thread, shape, index, enabled, block);
        if !handles(&a) {
            return message::store_access(&a);
        }
        if a.all_or_none {
            let faulting = message::outside(&a, a.limit(1 << a.bytes_log2));
            if faulting != 0 {
                return faulting;
            }
        }
        match (a.flat, a.bytes_log2) {
            (false, 2) => store_lanes::<false, 4>(&a),
            (false, _) => store_lanes::<false, 8>(&a),
            (true, 2) => store_lanes::<true, 4>(&a),
            (true, _) => store_lanes::<true, 8>(&a),
        }
    }
}

/// Reads as many bytes in pieces of 16, as they were written.
///
/// # Safety
/// `from` must be readable for 32 bytes.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
#[inline]
unsafe fn two_pieces(from: *const u8) -> __m256i {
    let from = from.cast::<__m128i>();
    // SAFETY: as promised.
    unsafe { _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(from.read()), from.add(1).read()) }
}

/// # Safety
/// `from` must be readable for 64 bytes.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
#[inline]
unsafe fn four_pieces(from: *const u8) -> __m512i {
    // SAFETY: as promised.
    unsafe {
        let low = _mm512_castsi256_si512(two_pieces(from));
        _mm512_inserti64x4::<1>(low, two_pieces(from.wrapping_add(32)))
    }
}

/// # Safety
/// The access must be of the group that runs and have lanes `first … first + 8`.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
#[inline]
unsafe fn octet<const FLAT: bool, const BYTES: usize>(a: &Access, first: usize) -> Octet {
    // SAFETY: the block has an address for each lane.
    let offsets = unsafe {
        if FLAT {
            let addresses = four_pieces(a.addresses.add(8 * first));
            let base = _mm512_set1_epi64(a.region.first as i64);
            let offset = _mm512_sub_epi64(addresses, base);
            _mm512_and_si512(offset, _mm512_set1_epi64(FLAT_OFFSET as i64))
        } else {
            _mm512_cvtepu32_epi64(two_pieces(a.addresses.add(4 * first)))
        }
    };
    let enabled = (a.enabled >> first) as __mmask8;
    let limit = _mm512_set1_epi64(a.limit(BYTES as u64) as i64);
    let inside = _mm512_mask_cmplt_epu64_mask(enabled, offsets, limit);
    Octet {
        offsets,
        inside,
        outside: enabled & !inside,
    }
}

impl Octet {
    /// Offset of lane 0 when those inside lie one after the other.
    #[target_feature(enable = "avx512f,avx512vl,bmi1")]
    #[inline]
    fn run<const BYTES: usize>(&self) -> Option<u64> {
        // Where an even run would have lane 0, seen from each lane.
        let bytes = BYTES as i64;
        let steps = _mm512_setr_epi64(
            0,
            bytes,
            2 * bytes,
            3 * bytes,
            4 * bytes,
            5 * bytes,
            6 * bytes,
            7 * bytes,
        );
        let starts = _mm512_sub_epi64(self.offsets, steps);
        let start = _mm512_maskz_compress_epi64(self.inside, starts);
        let start = _mm_cvtsi128_si64(_mm512_castsi512_si128(start));
        let other = _mm512_mask_cmpneq_epi64_mask(self.inside, starts, _mm512_set1_epi64(start));
        (other == 0).then_some(start as u64)
    }
}

/// # Safety
/// The access must be of the group that runs, with offsets and elements as the parameters say.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
unsafe fn load_lanes<const FLAT: bool, const BYTES: usize>(a: &Access) -> u32 {
    let mut faulting = 0;
    for first in (0..a.count).step_by(8) {
        // SAFETY: the lanes exist; lanes inside are read, the others are not touched. The block has
        // room for the results.
        unsafe {
            let lanes = octet::<FLAT, BYTES>(a, first);
            faulting |= u32::from(lanes.outside) << first;
            let to = a.data.add(BYTES * first);
            let base = a.region.base;
            let inside = lanes.inside;
            match lanes.run::<BYTES>() {
                Some(start) if BYTES == 4 => {
                    let from = base.wrapping_add(start as usize);
                    let v = _mm256_maskz_loadu_epi32(inside, from.cast());
                    _mm256_storeu_si256(to.cast(), v);
                }
                Some(start) => {
                    let from = base.wrapping_add(start as usize);
                    let v = _mm512_maskz_loadu_epi64(inside, from.cast());
                    _mm512_storeu_si512(to.cast(), v);
                }
                None if BYTES == 4 => {
                    let zero = _mm256_setzero_si256();
                    let v = _mm512_mask_i64gather_epi32::<1>(
                        zero,
                        inside,
                        lanes.offsets,
                        base.cast(),
                    );
                    _mm256_storeu_si256(to.cast(), v);
                }
                None => {
                    let zero = _mm512_setzero_si512();
                    let v = _mm512_mask_i64gather_epi64::<1>(
                        zero,
                        inside,
                        lanes.offsets,
                        base.cast(),
                    );
                    _mm512_storeu_si512(to.cast(), v);
                }
            }
        }
    }
    faulting
}

/// # Safety
/// As [`load_lanes`].
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
unsafe fn store_lanes<const FLAT: bool, const BYTES: usize>(a: &Access) -> u32 {
    let mut faulting = 0;
    for first in (0..a.count).step_by(8) {
        // SAFETY: the lanes exist and the block has their data; lanes inside are written, no byte
        // of another is.
        unsafe {
            let lanes = octet::<FLAT, BYTES>(a, first);
            faulting |= u32::from(lanes.outside) << first;
            let from = a.data.add(BYTES * first);
            let base = a.region.base;
            match lanes.run::<BYTES>() {
                Some(start) if BYTES == 4 => {
                    let to = base.wrapping_add(start as usize);
                    _mm256_mask_storeu_epi32(to.cast(), lanes.inside, two_pieces(from));
                }
                Some(start) => {
                    let to = base.wrapping_add(start as usize);
                    _mm512_mask_storeu_epi64(to.cast(), lanes.inside, four_pieces(from));
                }
                None => {
                    let mut left = u32::from(lanes.inside);
                    while left != 0 {
                        let lane = left.trailing_zeros() as usize;
                        left &= left - 1;
                        let to = base.add(a.offset(first + lane) as usize);
                        if BYTES == 4 {
                            let v = from.cast::<u32>().add(lane).read();
                            to.cast::<u32>().write_unaligned(v);
                        } else {
                            let v = from.cast::<u64>().add(lane).read();
                            to.cast::<u64>().write_unaligned(v);
                        }
                    }
                }
            }
        }
    }
    faulting
}
