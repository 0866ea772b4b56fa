//! Lane-wise accesses of single 4- and 8-byte elements with AVX-512, sixteen lanes at a time.
//!
//! If lanes are contiguous, and all or some of them are enabled, they are one masked access, which touches nothing of the disabled lanes.
//! Otherwise, if sixteen lanes are enabled and inside, they are accessed one by one, which is no slower than hardware gathers and scatters.
//! Under a mask, gathers and scatters save the tests of single lanes.

use super::message::{self, FLAT_OFFSET, MessageCall};
use crate::abi::{GroupCtx, ThreadCtx};
use std::arch::x86_64::*;

/// True when this processor can run [`load`] and [`store`], and the checks of races by vectors.
pub(super) fn available() -> bool {
    std::is_x86_feature_detected!("avx512f")
        && std::is_x86_feature_detected!("avx512vl")
        && std::is_x86_feature_detected!("avx512cd")
        && std::is_x86_feature_detected!("bmi1")
}

/// Eight or sixteen lanes of an access.
struct Chunk {
    /// 32-bit offsets of the lanes that are inside.
    offsets: __m512i,
    /// Lanes that are enabled and inside.
    inside: __mmask16,
    /// Lanes that are enabled and not inside.
    outside: __mmask16,
}

/// True for accesses whose offsets this file can compare.
#[inline(always)]
fn compares(a: &MessageCall) -> bool {
    a.count.is_multiple_of(8) && a.region.size <= u32::MAX.into()
}

/// True for accesses that this file has code for.
#[inline(always)]
fn handles(a: &MessageCall) -> bool {
    a.comps == 1 && a.bytes_log2 >= 2 && compares(a)
}

/// [`crate::abi::Helpers::load`].
///
/// # Safety
/// As [`message::load`], on a processor for which [`available`] is true.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
pub(super) unsafe extern "C" fn load(
    group: *mut GroupCtx,
    thread: *const ThreadCtx,
    shape: u32,
    index: u32,
    enabled: u32,
    block: *mut u8,
) -> u32 {
    // SAFETY: as promised.
    unsafe {
        let a = MessageCall::new(group, thread, shape, index, enabled, block);
        if !handles(&a) {
            if compares(&a) {
                return message::load_known(&a, outside(&a));
            }
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
    group: *mut GroupCtx,
    thread: *const ThreadCtx,
    shape: u32,
    index: u32,
    enabled: u32,
    block: *mut u8,
) -> u32 {
    // SAFETY: as promised.
    unsafe {
        let a = MessageCall::new(group, thread, shape, index, enabled, block);
        if !handles(&a) {
            return message::store_access(&a);
        }
        if a.all_or_none {
            let faulting = outside(&a);
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

/// Reads 32 bytes in pieces of 16, as they were written.
///
/// # Safety
/// `from` must be readable for 32 bytes.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
#[inline]
unsafe fn two_pieces(from: *const u8) -> __m256i {
    let from = from.cast::<__m128i>();
    // Volatile, since the compiler makes one read of two that it may merge.
    // SAFETY: as promised; the block is aligned to 16 bytes.
    unsafe {
        let (low, high) = (from.read_volatile(), from.add(1).read_volatile());
        _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(low), high)
    }
}

/// Reads 64 bytes, or the first half of them, in pieces of 16.
///
/// # Safety
/// `from` must be readable for a given number of bytes.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
#[inline]
unsafe fn four_pieces(from: *const u8, half: bool) -> __m512i {
    // SAFETY: as promised.
    unsafe {
        let low = _mm512_zextsi256_si512(two_pieces(from));
        if half {
            return low;
        }
        _mm512_inserti64x4::<1>(low, two_pieces(from.wrapping_add(32)))
    }
}

/// Writes 64 bytes, or the first half of them.
///
/// # Safety
/// `to` must be writable for a given number of bytes.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
#[inline]
unsafe fn write(to: *mut u8, half: bool, v: __m512i) {
    // SAFETY: as promised.
    unsafe {
        if half {
            _mm256_storeu_si256(to.cast(), _mm512_castsi512_si256(v));
        } else {
            _mm512_storeu_si512(to.cast(), v);
        }
    }
}

/// Offsets of eight lanes in device memory.
///
/// # Safety
/// `from` must be readable for 64 bytes.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
#[inline]
unsafe fn flat_offsets(a: &MessageCall, from: *const u8) -> __m512i {
    // SAFETY: as promised.
    let addresses = unsafe { four_pieces(from, false) };
    let first = _mm512_set1_epi64(a.region.first as i64);
    let keep = _mm512_set1_epi64(FLAT_OFFSET as i64);
    _mm512_and_si512(_mm512_sub_epi64(addresses, first), keep)
}

impl Chunk {
    /// # Safety
    /// The access must be of the group that runs and have the lanes: sixteen, or eight when `half`.
    /// Those with offsets below `limit` are inside.
    #[target_feature(enable = "avx512f,avx512vl,bmi1")]
    #[inline]
    unsafe fn new<const FLAT: bool>(
        a: &MessageCall,
        limit: u64,
        first: usize,
        half: bool,
    ) -> Chunk {
        let enabled = (a.enabled >> first) as __mmask16;
        // SAFETY: the block has an address for each lane.
        let (offsets, inside) = unsafe {
            if FLAT {
                let from = a.addresses.add(8 * first);
                let limit = _mm512_set1_epi64(limit as i64);
                let low = flat_offsets(a, from);
                let inside = _mm512_mask_cmplt_epu64_mask(enabled as __mmask8, low, limit);
                let low = _mm512_zextsi256_si512(_mm512_cvtepi64_epi32(low));
                if half {
                    (low, inside.into())
                } else {
                    let high = flat_offsets(a, from.add(64));
                    let k = _mm512_mask_cmplt_epu64_mask((enabled >> 8) as __mmask8, high, limit);
                    let high = _mm512_cvtepi64_epi32(high);
                    let inside = __mmask16::from(inside) | __mmask16::from(k) << 8;
                    (_mm512_inserti64x4::<1>(low, high), inside)
                }
            } else {
                let offsets = four_pieces(a.addresses.add(4 * first), half);
                let limit = _mm512_set1_epi32(limit as i32);
                let inside = _mm512_mask_cmplt_epu32_mask(enabled, offsets, limit);
                (offsets, inside)
            }
        };
        Chunk {
            offsets,
            inside,
            outside: enabled & !inside,
        }
    }

    /// Offset of lane 0 when those inside lie one after the other.
    #[target_feature(enable = "avx512f,avx512vl,bmi1")]
    #[inline]
    fn run<const BYTES: u64>(&self) -> Option<usize> {
        // Where an affine run would have lane 0, seen from each lane.
        let steps = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        let steps = match BYTES {
            4 => _mm512_slli_epi32::<2>(steps),
            _ => _mm512_slli_epi32::<3>(steps),
        };
        let starts = _mm512_sub_epi32(self.offsets, steps);
        let start = _mm512_maskz_compress_epi32(self.inside, starts);
        let start = _mm_cvtsi128_si32(_mm512_castsi512_si128(start));
        let other = _mm512_mask_cmpneq_epi32_mask(self.inside, starts, _mm512_set1_epi32(start));
        // The last lane's offset must not have wrapped.
        let start = start.cast_unsigned();
        (other == 0 && u64::from(start) + 15 * BYTES <= u32::MAX.into()).then_some(start as usize)
    }
}

/// Enabled lanes of which some component is not inside.
///
/// # Safety
/// The access must be of the group that runs, one that [`compares`] accepts.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
unsafe fn outside(a: &MessageCall) -> u32 {
    let limit = a.limit(a.comps as u64 * (1 << a.bytes_log2));
    (0..a.count).step_by(16).fold(0, |bits, first| {
        let half = first + 16 > a.count;
        // SAFETY: the lanes exist.
        let lanes = unsafe {
            match a.flat {
                true => Chunk::new::<true>(a, limit, first, half),
                false => Chunk::new::<false>(a, limit, first, half),
            }
        };
        bits | u32::from(lanes.outside) << first
    })
}

/// Element of a lane that is inside. Its address is read again, as it was written.
///
/// # Safety
/// The lane must exist.
#[inline(always)]
unsafe fn lane_pointer<const FLAT: bool>(a: &MessageCall, lane: usize) -> *mut u8 {
    // SAFETY: as promised.
    let offset = unsafe { a.offset::<FLAT>(lane) };
    a.region.base.wrapping_add(offset as usize)
}

/// # Safety
/// The access must be of the group that runs, with offsets and elements as the parameters say.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
unsafe fn load_lanes<const FLAT: bool, const BYTES: u64>(a: &MessageCall) -> u32 {
    let mut faulting = 0;
    let limit = a.limit(BYTES);
    for first in (0..a.count).step_by(16) {
        let half = first + 16 > a.count;
        // SAFETY: the lanes exist; lanes inside are read, the others are not touched. The block has
        // room for the results.
        unsafe {
            let lanes = Chunk::new::<FLAT>(a, limit, first, half);
            faulting |= u32::from(lanes.outside) << first;
            let to = a.data.add(BYTES as usize * first);
            let k = lanes.inside;
            if let Some(start) = lanes.run::<BYTES>() {
                let from = a.region.base.wrapping_add(start);
                if BYTES == 4 {
                    write(to, half, _mm512_maskz_loadu_epi32(k, from.cast()));
                    continue;
                }
                let v = _mm512_maskz_loadu_epi64(k as __mmask8, from.cast());
                write(to, false, v);
                if !half {
                    let k = (k >> 8) as __mmask8;
                    let v = _mm512_maskz_loadu_epi64(k, from.wrapping_add(64).cast());
                    write(to.add(64), false, v);
                }
            } else if k == __mmask16::MAX {
                load_sixteen::<FLAT, BYTES>(a, first, to);
            } else {
                gather::<BYTES>(a.region.base, &lanes, to, half);
            }
        }
    }
    faulting
}

/// Loads sixteen lanes.
///
/// # Safety
/// They must be inside, `to` writable for as many elements.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
#[inline]
unsafe fn load_sixteen<const FLAT: bool, const BYTES: u64>(
    a: &MessageCall,
    first: usize,
    to: *mut u8,
) {
    let to = to.cast::<__m128i>();
    // SAFETY: as promised.
    unsafe {
        let at = |lane: usize| lane_pointer::<FLAT>(a, first + lane);
        if BYTES == 4 {
            let one = |lane| at(lane).cast::<i32>().read_unaligned();
            for q in 0..4 {
                let [a, b, c, d] = [0, 1, 2, 3].map(|i| one(4 * q + i));
                to.add(q).write(_mm_setr_epi32(a, b, c, d));
            }
        } else {
            let one = |lane| at(lane).cast::<i64>().read_unaligned();
            for q in 0..8 {
                to.add(q).write(_mm_set_epi64x(one(2 * q + 1), one(2 * q)));
            }
        }
    }
}

/// Loads the lanes that are inside; the others read zero.
///
/// # Safety
/// `to` must be writable for all lanes.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
#[inline]
unsafe fn gather<const BYTES: u64>(base: *const u8, lanes: &Chunk, to: *mut u8, half: bool) {
    let [low, high] = wide(lanes.offsets);
    let (k, k_high) = (lanes.inside as __mmask8, (lanes.inside >> 8) as __mmask8);
    // SAFETY: lanes inside are readable, no other is touched.
    unsafe {
        if BYTES == 4 {
            let zero = _mm256_setzero_si256();
            let v = _mm512_mask_i64gather_epi32::<1>(zero, k, low, base.cast());
            _mm256_storeu_si256(to.cast(), v);
            if !half {
                let v = _mm512_mask_i64gather_epi32::<1>(zero, k_high, high, base.cast());
                _mm256_storeu_si256(to.add(32).cast(), v);
            }
            return;
        }
        let zero = _mm512_setzero_si512();
        let v = _mm512_mask_i64gather_epi64::<1>(zero, k, low, base.cast());
        write(to, false, v);
        if !half {
            let v = _mm512_mask_i64gather_epi64::<1>(zero, k_high, high, base.cast());
            write(to.add(64), false, v);
        }
    }
}

/// Offsets in 64 bits: instructions take those of 32 as signed.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
#[inline]
fn wide(offsets: __m512i) -> [__m512i; 2] {
    let high = _mm512_extracti64x4_epi64::<1>(offsets);
    [_mm512_castsi512_si256(offsets), high].map(|v| _mm512_cvtepu32_epi64(v))
}

/// # Safety
/// As [`load_lanes`].
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
unsafe fn store_lanes<const FLAT: bool, const BYTES: u64>(a: &MessageCall) -> u32 {
    let mut faulting = 0;
    let limit = a.limit(BYTES);
    for first in (0..a.count).step_by(16) {
        let half = first + 16 > a.count;
        // SAFETY: the lanes exist and the block has their data; lanes inside are written, no byte
        // of another is.
        unsafe {
            let lanes = Chunk::new::<FLAT>(a, limit, first, half);
            faulting |= u32::from(lanes.outside) << first;
            let from = a.data.add(BYTES as usize * first);
            let k = lanes.inside;
            if let Some(start) = lanes.run::<BYTES>() {
                let to = a.region.base.wrapping_add(start);
                if BYTES == 4 {
                    _mm512_mask_storeu_epi32(to.cast(), k, four_pieces(from, half));
                    continue;
                }
                let v = four_pieces(from, false);
                _mm512_mask_storeu_epi64(to.cast(), k as __mmask8, v);
                if !half {
                    let v = four_pieces(from.add(64), false);
                    _mm512_mask_storeu_epi64(to.wrapping_add(64).cast(), (k >> 8) as __mmask8, v);
                }
                continue;
            }
            let one = |lane: usize| {
                let to = lane_pointer::<FLAT>(a, first + lane);
                if BYTES == 4 {
                    let v = from.cast::<u32>().add(lane).read();
                    to.cast::<u32>().write_unaligned(v);
                } else {
                    let v = from.cast::<u64>().add(lane).read();
                    to.cast::<u64>().write_unaligned(v);
                }
            };
            if k == __mmask16::MAX {
                (0..16).for_each(one);
                continue;
            }
            // Lanes store in order here too.
            let [low, high] = wide(lanes.offsets);
            let (k, k_high) = (k as __mmask8, (k >> 8) as __mmask8);
            let base = a.region.base;
            if BYTES == 4 {
                let v = two_pieces(from);
                _mm512_mask_i64scatter_epi32::<1>(base.cast(), k, low, v);
                if !half {
                    let v = two_pieces(from.add(32));
                    _mm512_mask_i64scatter_epi32::<1>(base.cast(), k_high, high, v);
                }
                continue;
            }
            let v = four_pieces(from, false);
            _mm512_mask_i64scatter_epi64::<1>(base.cast(), k, low, v);
            if !half {
                let v = four_pieces(from.add(64), false);
                _mm512_mask_i64scatter_epi64::<1>(base.cast(), k_high, high, v);
            }
        }
    }
    faulting
}
