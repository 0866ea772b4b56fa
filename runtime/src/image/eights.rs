//! What [`super::lanes`] does, for eight lanes at a time in vectors of AVX2. All that is known of the lanes stays in registers.

use super::fetch::fraction;
use super::format::{Texel, border, missing};
use super::lanes::Sampled;
use super::sample::NAN;
use super::{Channel, Order};
use crate::element::load;
use std::arch::x86_64::*;
use std::ops::Deref;
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

/// Lanes of a vector.
const EIGHT: usize = 8;

/// Components of eight texels.
type Texels = [__m256i; 4];

/// Neighbours along a coordinate, as [`super::sample`] has them of one lane.
#[derive(Clone, Copy)]
struct Steps {
    /// Both places.
    at: [Place; 2],
    weight: __m256,
}

/// Where texels are along a coordinate, or in the image.
#[derive(Clone, Copy)]
struct Place {
    /// Bytes from the first texel. Those that do not exist have the place of one that does.
    offset: __m256i,
    /// All bits set where there is no such texel.
    outside: __m256i,
}

impl Place {
    /// The first one, of which all are.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn first() -> Place {
        let none = _mm256_setzero_si256();
        Place {
            offset: none,
            outside: none,
        }
    }

    /// As far from the first as both together.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn and(self, other: Place) -> Place {
        Place {
            offset: _mm256_add_epi32(self.offset, other.offset),
            outside: _mm256_or_si256(self.outside, other.outside),
        }
    }
}

/// Samples for the enabled ones of a number of lanes.
///
/// # Safety
/// As [`super::lanes::sample`]. 32 bits must be enough for all offsets, and the processor must have the feature.
#[target_feature(enable = "avx2")]
pub(super) unsafe fn all_lanes(
    sampled: &Sampled<'_>,
    (lanes, enabled): (usize, u32),
    block: *mut u32,
) {
    let eights = Eights::new(sampled);
    let row = lanes.next_multiple_of(4);
    let enabled = enabled & u32::MAX.checked_shr(32 - lanes as u32).unwrap_or(0);
    for first in (0..row).step_by(EIGHT) {
        let on = enabled >> first & 0xFF;
        let half = row - first < EIGHT;
        let mut texels = [_mm256_setzero_si256(); 4];
        if on != 0 {
            let mut at = [_mm256_setzero_ps(); 3];
            for (k, at) in at.iter_mut().enumerate().take(sampled.axes) {
                // SAFETY: a row has a multiple of four lanes.
                *at = _mm256_castsi256_ps(unsafe { numbers(block.add(k * row + first), half) });
            }
            // SAFETY: as promised.
            texels = unsafe { eights.sample(&at) };
            if on != 0xFF {
                let bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
                let all = _mm256_set1_epi32(on.cast_signed());
                let mask = _mm256_cmpeq_epi32(_mm256_and_si256(all, bits), bits);
                for component in &mut texels {
                    *component = _mm256_and_si256(*component, mask);
                }
            }
        }
        for (c, component) in texels.iter().enumerate() {
            // SAFETY: as above.
            unsafe { set_numbers(block.add((3 + c) * row + first), half, *component) };
        }
    }
}

/// Eight numbers, or four.
///
/// # Safety
/// As many must be readable.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn numbers(from: *const u32, half: bool) -> __m256i {
    // SAFETY: as promised.
    unsafe {
        if half {
            _mm256_zextsi128_si256(_mm_loadu_si128(from.cast()))
        } else {
            _mm256_loadu_si256(from.cast())
        }
    }
}

/// Writes eight numbers, or the first four.
///
/// # Safety
/// As many must be writable.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn set_numbers(to: *mut u32, half: bool, numbers: __m256i) {
    // SAFETY: as promised.
    unsafe {
        if half {
            _mm_storeu_si128(to.cast(), _mm256_castsi256_si128(numbers));
        } else {
            _mm256_storeu_si256(to.cast(), numbers);
        }
    }
}

/// The same texel for each lane.
#[target_feature(enable = "avx2")]
#[inline]
fn same(texel: Texel) -> Texels {
    let [r, g, b, a] = texel.map(u32::cast_signed);
    [
        _mm256_set1_epi32(r),
        _mm256_set1_epi32(g),
        _mm256_set1_epi32(b),
        _mm256_set1_epi32(a),
    ]
}

/// `x as i32`.
#[target_feature(enable = "avx2")]
#[inline]
fn saturating(x: __m256) -> __m256i {
    let limit = _mm256_set1_ps(2147483648.0);
    let number = _mm256_and_ps(x, _mm256_cmp_ps::<_CMP_ORD_Q>(x, x));
    let raised = _mm256_max_ps(number, _mm256_set1_ps(-2147483648.0));
    // The largest number below the limit.
    let inside = _mm256_min_ps(raised, _mm256_set1_ps(2147483520.0));
    let above = _mm256_castps_si256(_mm256_cmp_ps::<_CMP_GE_OQ>(x, limit));
    let most = _mm256_set1_epi32(i32::MAX);
    _mm256_blendv_epi8(_mm256_cvttps_epi32(inside), most, above)
}

/// What samples eight lanes at a time.
struct Eights<'a> {
    sampled: &'a Sampled<'a>,
    /// Whether all texels are aligned to what is read of them at once: four bytes, or less if texels are smaller.
    aligned: bool,
}

impl<'a> Deref for Eights<'a> {
    type Target = Sampled<'a>;

    fn deref(&self) -> &Sampled<'a> {
        self.sampled
    }
}

impl<'a> Eights<'a> {
    fn new(sampled: &'a Sampled<'a>) -> Eights<'a> {
        let pitches = sampled.image.pitch.iter().take(sampled.axes);
        let places = pitches.fold(sampled.image.base.addr() as u64, |all, pitch| all | pitch);
        let bytes = sampled.source.format.texel_bytes().min(4);
        Eights {
            sampled,
            aligned: places.is_multiple_of(bytes.into()),
        }
    }

    /// The texels at coordinates.
    ///
    /// # Safety
    /// As [`all_lanes`].
    #[target_feature(enable = "avx2")]
    unsafe fn sample(&self, at: &[__m256; 3]) -> Texels {
        if self.mixes {
            // SAFETY: as promised.
            return unsafe { self.mixed(at) };
        }
        let mut place = Place::first();
        for (k, &x) in at.iter().enumerate().take(self.axes) {
            let first = _mm256_floor_ps(self.scaled(k, x));
            place = place.and(self.place(k, saturating(first)));
        }
        // SAFETY: as promised; these are texels of the image.
        unsafe { self.texels(place) }
    }

    /// A coordinate in texels.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn scaled(&self, k: usize, x: __m256) -> __m256 {
        let size = _mm256_set1_ps(self.image.extent[k] as f32);
        if self.normalized {
            _mm256_mul_ps(x, size)
        } else {
            x
        }
    }

    /// Where texels of such numbers are along a coordinate.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn place(&self, k: usize, at: __m256i) -> Place {
        let last = _mm256_set1_epi32((self.image.extent[k] as i32).wrapping_sub(1));
        let pitch = _mm256_set1_epi32((self.image.pitch[k] as u32).cast_signed());
        let none = _mm256_setzero_si256();
        let nearest = _mm256_max_epi32(_mm256_min_epi32(at, last), none);
        let all = _mm256_set1_epi32(-1);
        let outside = _mm256_andnot_si256(_mm256_cmpeq_epi32(nearest, at), all);
        Place {
            offset: _mm256_mullo_epi32(nearest, pitch),
            outside: if self.clamped { none } else { outside },
        }
    }

    /// Two neighbours along a coordinate, which are mixed.
    #[target_feature(enable = "avx2")]
    #[inline]
    fn steps(&self, k: usize, x: __m256) -> Steps {
        let x = _mm256_sub_ps(self.scaled(k, x), _mm256_set1_ps(0.5));
        let first = _mm256_floor_ps(x);
        let at = saturating(first);
        // The last number has no next one.
        let is_last = _mm256_cmpeq_epi32(at, _mm256_set1_epi32(i32::MAX));
        let next = _mm256_add_epi32(_mm256_add_epi32(at, _mm256_set1_epi32(1)), is_last);
        Steps {
            at: [self.place(k, at), self.place(k, next)],
            weight: _mm256_sub_ps(x, first),
        }
    }

    /// Texels, mixed along all coordinates, x first.
    ///
    /// # Safety
    /// As [`all_lanes`].
    #[target_feature(enable = "avx2")]
    unsafe fn mixed(&self, at: &[__m256; 3]) -> Texels {
        let none = Steps {
            at: [Place::first(); 2],
            weight: _mm256_setzero_ps(),
        };
        let mut steps = [none; 3];
        let mut mixes = [false; 3];
        for k in 0..self.axes.min(3) {
            steps[k] = self.steps(k, at[k]);
            let counts = _mm256_cmp_ps::<_CMP_NEQ_UQ>(steps[k].weight, none.weight);
            mixes[k] = _mm256_movemask_ps(counts) != 0;
        }
        // What waits for its second neighbour along each coordinate.
        let mut first = [[_mm256_setzero_si256(); 4]; 3];
        let mut texels = first[0];
        // A bit of a corner's number says which neighbour it is along a coordinate.
        for corner in 0..8 {
            if (0..3).any(|k| corner >> k & 1 != 0 && !mixes[k]) {
                continue;
            }
            let [x, y, z] = [0, 1, 2].map(|k| steps[k].at[corner >> k & 1]);
            // SAFETY: as promised; these are neighbours in the image.
            texels = unsafe { self.texels(x.and(y).and(z)) };
            for k in (0..3).filter(|&k| mixes[k]) {
                if corner >> k & 1 == 0 {
                    first[k] = texels;
                    break;
                }
                for (texel, first) in texels.iter_mut().zip(&first[k]) {
                    *texel = mix(*first, *texel, steps[k].weight);
                }
            }
        }
        texels
    }

    /// The texels at a place; the border, where there is none.
    ///
    /// # Safety
    /// They must be texels of the image, which must be bound as [`crate::abi`] says, unless it has none.
    #[target_feature(enable = "avx2")]
    unsafe fn texels(&self, place: Place) -> Texels {
        if self.empty {
            return same(border(self.source.format));
        }
        // SAFETY: as promised.
        let mut texels = unsafe { self.fetch(place.offset) };
        if !self.clamped {
            for (texel, border) in texels.iter_mut().zip(same(border(self.source.format))) {
                *texel = _mm256_blendv_epi8(*texel, border, place.outside);
            }
        }
        texels
    }

    /// The texels at offsets. Those of lanes that are not enabled are read as well: nothing comes of it.
    ///
    /// # Safety
    /// As [`Eights::texels`].
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn fetch(&self, offset: __m256i) -> Texels {
        let format = self.source.format;
        // SAFETY: as promised.
        let [a, b, c, d] = unsafe { self.words(offset) };
        let raw = match format.channel_bytes() {
            1 => [
                a,
                _mm256_srli_epi32::<8>(a),
                _mm256_srli_epi32::<16>(a),
                _mm256_srli_epi32::<24>(a),
            ],
            2 => [a, _mm256_srli_epi32::<16>(a), b, _mm256_srli_epi32::<16>(b)],
            _ => [a, b, c, d],
        };
        let [r, g, b, a] = values(format.channel(), format.channel_bytes() * 8, raw);
        let [_, green, blue, alpha] = same(missing(format));
        match (format.channels(), format.order()) {
            (1, _) => [r, green, blue, alpha],
            (2, _) => [r, g, blue, alpha],
            (_, Order::Bgra) => [b, g, r, a],
            _ => [r, g, b, a],
        }
    }

    /// Up to four words of eight texels.
    ///
    /// # Safety
    /// As [`Eights::texels`].
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn words(&self, offset: __m256i) -> [__m256i; 4] {
        let none = _mm256_setzero_si256();
        // SAFETY: as promised, these are parts of texels.
        unsafe {
            match self.source.format.texel_bytes() {
                1 => [self.word::<1>(offset, 0), none, none, none],
                2 => [self.word::<2>(offset, 0), none, none, none],
                4 => [self.word::<4>(offset, 0), none, none, none],
                8 => {
                    let (low, high) = (self.word::<4>(offset, 0), self.word::<4>(offset, 4));
                    [low, high, none, none]
                }
                _ => transposed(self.image.base, offset),
            }
        }
    }

    /// A number of bytes of texels, from a byte of each on.
    ///
    /// # Safety
    /// As [`Eights::texels`]. Each texel must have `first + BYTES` bytes at least.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn word<const BYTES: u32>(&self, offset: __m256i, first: usize) -> __m256i {
        if self.source.format.texel_bytes() == BYTES && are_neighbours(offset, BYTES) {
            let at = _mm_cvtsi128_si32(_mm256_castsi256_si128(offset)).cast_unsigned();
            // SAFETY: all bytes are those of the lanes' texels.
            return unsafe { neighbours::<BYTES>(self.image.base.wrapping_add(at as usize)) };
        }
        let offset = each(offset);
        let place = |lane: usize| {
            let at = offset[lane] as usize;
            self.image.base.wrapping_add(at + first)
        };
        let [a, b, c, d, e, f, g, h] = if self.aligned {
            // SAFETY: in a texel of the image, and aligned.
            [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| unsafe { load_aligned::<BYTES>(place(lane)) })
        } else {
            // SAFETY: in a texel of the image.
            [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| unsafe { load(place(lane), BYTES) } as u32)
        }
        .map(u32::cast_signed);
        // An array of elements may be written one by one; a vector is not.
        _mm256_setr_epi32(a, b, c, d, e, f, g, h)
    }
}

/// The numbers of a vector.
#[target_feature(enable = "avx2")]
#[inline]
fn each(vector: __m256i) -> [u32; EIGHT] {
    let mut numbers = [0; EIGHT];
    // SAFETY: eight numbers are 32 bytes.
    unsafe { _mm256_storeu_si256(numbers.as_mut_ptr().cast(), vector) };
    numbers
}

/// Whether texels of that many bytes follow each other in memory.
#[target_feature(enable = "avx2")]
#[inline]
fn are_neighbours(offset: __m256i, bytes: u32) -> bool {
    let b = bytes.cast_signed();
    let steps = _mm256_setr_epi32(0, b, 2 * b, 3 * b, 4 * b, 5 * b, 6 * b, 7 * b);
    let first = _mm256_broadcastd_epi32(_mm256_castsi256_si128(offset));
    let equal = _mm256_cmpeq_epi32(_mm256_sub_epi32(offset, first), steps);
    _mm256_movemask_epi8(equal) == -1
}

/// Eight texels that follow each other.
///
/// # Safety
/// They must be readable. The processor must have the feature.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn neighbours<const BYTES: u32>(from: *mut u8) -> __m256i {
    // Vectors, of which other threads may write parts meanwhile, as with other loads of the lanes.
    // SAFETY: as promised.
    unsafe {
        match BYTES {
            1 => _mm256_cvtepu8_epi32(_mm_loadl_epi64(from.cast())),
            2 => _mm256_cvtepu16_epi32(_mm_loadu_si128(from.cast())),
            _ => _mm256_loadu_si256(from.cast()),
        }
    }
}

/// # Safety
/// `from` must be readable for 1, 2 or 4 bytes and aligned to them.
#[inline(always)]
unsafe fn load_aligned<const BYTES: u32>(from: *mut u8) -> u32 {
    // SAFETY: as promised. Atomic, as other threads may write them.
    unsafe {
        match BYTES {
            1 => AtomicU8::from_ptr(from).load(Ordering::Relaxed).into(),
            2 => AtomicU16::from_ptr(from.cast())
                .load(Ordering::Relaxed)
                .into(),
            _ => AtomicU32::from_ptr(from.cast()).load(Ordering::Relaxed),
        }
    }
}

/// Texels of 16 bytes for eight lanes, with one load for each: a vector for each of their words.
///
/// # Safety
/// There must be a texel at each offset from `base`.
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn transposed(base: *const u8, offset: __m256i) -> [__m256i; 4] {
    let offset = each(offset);
    let texel = |lane: usize| {
        // A vector, of which other threads may write parts meanwhile, as with other loads of the lanes.
        // SAFETY: as promised.
        unsafe { _mm_loadu_si128(base.wrapping_add(offset[lane] as usize).cast()) }
    };
    // Shuffles stay within halves, so one half has lanes 0 to 3 and the other one 4 to 7.
    let two = |lane: usize| _mm256_set_m128i(texel(lane + 4), texel(lane));
    let (a, b, c, d) = (two(0), two(1), two(2), two(3));
    let (ab, cd) = (_mm256_unpacklo_epi32(a, b), _mm256_unpacklo_epi32(c, d));
    let (high_ab, high_cd) = (_mm256_unpackhi_epi32(a, b), _mm256_unpackhi_epi32(c, d));
    [
        _mm256_unpacklo_epi64(ab, cd),
        _mm256_unpackhi_epi64(ab, cd),
        _mm256_unpacklo_epi64(high_ab, high_cd),
        _mm256_unpackhi_epi64(high_ab, high_cd),
    ]
}

/// What [`super::format::decode`] makes of the low bits of words.
#[target_feature(enable = "avx2")]
#[inline]
fn values(channel: Channel, bits: u32, raw: Texels) -> Texels {
    let most = u32::MAX >> (32 - bits);
    let mask = _mm256_set1_epi32(most.cast_signed());
    let unsigned = |raw| _mm256_and_si256(raw, mask);
    let above = _mm_cvtsi32_si128(32 - bits.cast_signed());
    let signed = |raw| _mm256_sra_epi32(_mm256_sll_epi32(raw, above), above);
    let [r, g, b, a] = match channel {
        Channel::Uint | Channel::Float if bits == 32 => return raw,
        Channel::Uint | Channel::Float | Channel::Unorm => [
            unsigned(raw[0]),
            unsigned(raw[1]),
            unsigned(raw[2]),
            unsigned(raw[3]),
        ],
        Channel::Int | Channel::Snorm => [
            signed(raw[0]),
            signed(raw[1]),
            signed(raw[2]),
            signed(raw[3]),
        ],
    };
    let (first, rest) = fraction(match channel {
        Channel::Snorm => most >> 1,
        _ => most,
    });
    let (first, rest) = (_mm256_set1_ps(first), _mm256_set1_ps(rest));
    let quotient = |whole| {
        let value = _mm256_cvtepi32_ps(whole);
        _mm256_add_ps(_mm256_mul_ps(value, first), _mm256_mul_ps(value, rest))
    };
    let clamped = |whole| {
        let value = _mm256_max_ps(quotient(whole), _mm256_set1_ps(-1.0));
        _mm256_castps_si256(value)
    };
    let plain = |whole| _mm256_castps_si256(quotient(whole));
    match channel {
        Channel::Uint | Channel::Float | Channel::Int => [r, g, b, a],
        Channel::Unorm => [plain(r), plain(g), plain(b), plain(a)],
        Channel::Snorm => [clamped(r), clamped(g), clamped(b), clamped(a)],
    }
}

/// Mixes components with the second ones. A weight of zero leaves the first as it is.
#[target_feature(enable = "avx2")]
#[inline]
fn mix(first: __m256i, second: __m256i, weight: __m256) -> __m256i {
    let (a, b) = (_mm256_castsi256_ps(first), _mm256_castsi256_ps(second));
    let mixed = _mm256_add_ps(a, _mm256_mul_ps(_mm256_sub_ps(b, a), weight));
    let odd = _mm256_cmp_ps::<_CMP_UNORD_Q>(mixed, mixed);
    let number = _mm256_blendv_ps(mixed, _mm256_set1_ps(f32::from_bits(NAN)), odd);
    let same = _mm256_cmp_ps::<_CMP_EQ_OQ>(weight, _mm256_setzero_ps());
    _mm256_castps_si256(_mm256_blendv_ps(number, a, same))
}

#[cfg(test)]
mod tests {
    use super::super::ImageFormat;
    use super::super::format::decode;
    use super::*;

    /// Of all numbers that normalised channels can have.
    #[test]
    fn fractions_are_quotients() {
        if !std::arch::is_x86_feature_detected!("avx2") {
            return;
        }
        for name in ["r8unorm", "r8snorm", "r16unorm", "r16snorm"] {
            let format: ImageFormat = name.parse().unwrap();
            for first in (0..1_u32 << (8 * format.channel_bytes())).step_by(EIGHT) {
                let raw: [u32; EIGHT] = std::array::from_fn(|lane| first + lane as u32);
                // SAFETY: the processor has AVX2.
                let got = unsafe { of(format, &raw) };
                assert_eq!(got, raw.map(|raw| decode(format, raw)), "{name} {first}");
            }
        }
    }

    #[target_feature(enable = "avx2")]
    fn of(format: ImageFormat, raw: &[u32; EIGHT]) -> [u32; EIGHT] {
        // SAFETY: eight numbers are 32 bytes.
        let raw = unsafe { _mm256_loadu_si256(raw.as_ptr().cast()) };
        each(values(format.channel(), format.channel_bytes() * 8, [raw; 4])[3])
    }
}
