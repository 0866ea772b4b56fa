//! Texels of sixteen lanes: from memory to a row of lanes for each component.

use super::format::{border, missing};
use super::{Channel, ImageFormat};
use crate::abi::Image;
use crate::element::load;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;
#[cfg(target_arch = "x86_64")]
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, Ordering};

/// Lanes at a time. Loops over fewer are unrolled before the compiler looks for vectors, and then it finds none.
pub(super) const WIDE: usize = 16;

/// A number for each lane.
pub(super) type Row<T> = [T; WIDE];

/// Components of the lanes' texels.
pub(super) type Texels = [Row<u32>; 4];

/// An image as texels are read from it.
pub(super) struct Source<'a> {
    image: &'a Image,
    format: ImageFormat,
    /// Whether all texels are aligned to what is read of them at once: four bytes, or less if texels are smaller.
    aligned: bool,
}

impl<'a> Source<'a> {
    pub(super) fn new(image: &'a Image, format: ImageFormat) -> Source<'a> {
        let pitches = image.pitch.iter().take(image.axes as usize);
        let places = pitches.fold(image.base.addr() as u64, |all, pitch| all | pitch);
        let aligned = places.is_multiple_of(format.texel_bytes().min(4).into());
        Source {
            image,
            format,
            aligned,
        }
    }

    /// Replaces the texels of lanes, for which all bits of `outside` are set, by the border.
    #[inline(always)]
    pub(super) fn border(&self, outside: &Row<u32>, texels: &mut Texels) {
        for (component, border) in texels.iter_mut().zip(border(self.format)) {
            for lane in 0..WIDE {
                component[lane] = component[lane] & !outside[lane] | border & outside[lane];
            }
        }
    }

    /// The texels at offsets. Those of lanes that are not enabled are read as well: nothing comes of it. Vectors are made of the
    /// first `eights` times eight lanes only, as short messages have no more.
    ///
    /// # Safety
    /// Each offset must be that of a texel of the image, which must be bound as [`crate::abi`] says. With `AVX2`, the processor must
    /// have it.
    #[inline(always)]
    pub(super) unsafe fn fetch<const AVX2: bool>(
        &self,
        eights: usize,
        offset: &Row<u64>,
        out: &mut Texels,
    ) {
        if self.format.channels() < 4 {
            for (component, missing) in out.iter_mut().zip(missing(self.format)) {
                *component = [missing; WIDE];
            }
        }
        // SAFETY: as promised.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            if AVX2 {
                return self.read_vectors(eights, offset, out);
            }
            let _ = eights;
            self.read(offset, out);
        }
    }

    /// Where the channels of a texel are: word, bit of the word, and component.
    #[inline(always)]
    fn channels(&self) -> impl Iterator<Item = (usize, u32, usize)> {
        let (bits, order) = (self.format.channel_bytes() * 8, self.format.order());
        (0..self.format.channels()).map(move |c| {
            let at = c * bits;
            ((at / 32) as usize, at % 32, order.component(c as usize) & 3)
        })
    }

    /// The components that texels have in memory.
    ///
    /// # Safety
    /// As [`Source::fetch`].
    unsafe fn read(&self, offset: &Row<u64>, out: &mut Texels) {
        let bytes = self.format.texel_bytes().min(4);
        for (word, at, component) in self.channels() {
            let mut raw = [0; WIDE];
            for (raw, offset) in raw.iter_mut().zip(offset) {
                let from = self.image.base.wrapping_add(*offset as usize + 4 * word);
                // SAFETY: in a texel of the image.
                *raw = unsafe { load(from, bytes) } as u32;
            }
            channel(self.format, &raw, at, &mut out[component]);
        }
    }

    /// [`Source::read`] in vectors. It is called, so that offsets are in memory: there are more than registers for them.
    ///
    /// # Safety
    /// As [`Source::fetch`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    #[inline(never)]
    unsafe fn read_vectors(&self, eights: usize, offset: &Row<u64>, out: &mut Texels) {
        for (eight, offset) in offset.as_chunks().0.iter().enumerate().take(eights) {
            // SAFETY: as promised.
            let raw = unsafe { self.words(offset) };
            for (word, at, component) in self.channels() {
                // Not an index: the compiler would write a vector in two halves, and reading it would wait for them.
                let raw = match word {
                    0 => raw[0],
                    1 => raw[1],
                    2 => raw[2],
                    _ => raw[3],
                };
                let to = &mut out[component].as_chunks_mut::<8>().0[eight];
                let values = channel_vector(self.format, raw, at);
                // SAFETY: eight numbers are 32 bytes.
                unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), values) };
            }
        }
    }

    /// Up to four words of eight texels.
    ///
    /// # Safety
    /// As [`Source::fetch`].
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn words(&self, offset: &[u64; 8]) -> [__m256i; 4] {
        let none = _mm256_setzero_si256();
        // SAFETY: as promised, these are parts of texels.
        unsafe {
            match self.format.texel_bytes() {
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
    /// As [`Source::fetch`]. Each texel must have `first + BYTES` bytes at least.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn word<const BYTES: u32>(&self, offset: &[u64; 8], first: usize) -> __m256i {
        let place = |lane: usize| self.image.base.wrapping_add(offset[lane] as usize + first);
        if self.format.texel_bytes() == BYTES && are_neighbours(offset, BYTES.into()) {
            // SAFETY: all bytes are those of the lanes' texels.
            return unsafe { neighbours::<BYTES>(place(0)) };
        }
        let [a, b, c, d, e, f, g, h] = if self.aligned {
            // SAFETY: in a texel of the image, and aligned.
            [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| unsafe { load_aligned::<BYTES>(place(lane)) })
        } else {
            // SAFETY: in a texel of the image.
            [0, 1, 2, 3, 4, 5, 6, 7].map(|lane| unsafe { load(place(lane), BYTES) } as u32)
        }
        .map(u32::cast_signed);
        // An array of elements may be written one by one; a vector is not.
        _mm256_set_epi32(h, g, f, e, d, c, b, a)
    }
}

/// Whether texels of that many bytes follow each other in memory.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn are_neighbours(offset: &[u64; 8], bytes: i64) -> bool {
    let first = _mm256_set1_epi64x(offset[0].cast_signed());
    let steps = _mm256_set_epi64x(3 * bytes, 2 * bytes, bytes, 0);
    let low = _mm256_add_epi64(first, steps);
    let high = _mm256_add_epi64(low, _mm256_set1_epi64x(4 * bytes));
    // SAFETY: eight numbers are 64 bytes.
    let [a, b] = [0, 4].map(|k| unsafe { _mm256_loadu_si256(offset.as_ptr().add(k).cast()) });
    let same = _mm256_and_si256(_mm256_cmpeq_epi64(a, low), _mm256_cmpeq_epi64(b, high));
    _mm256_movemask_epi8(same) == -1
}

/// Eight texels that follow each other.
///
/// # Safety
/// They must be readable. The processor must have the feature.
#[cfg(target_arch = "x86_64")]
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
#[cfg(target_arch = "x86_64")]
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
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
unsafe fn transposed(base: *const u8, offset: &[u64; 8]) -> [__m256i; 4] {
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

/// The values of a channel, whose bits begin at a bit of the raw ones: what [`super::format::decode`] makes of them.
fn channel(format: ImageFormat, raw: &Row<u32>, at: u32, out: &mut Row<u32>) {
    let bits = format.channel_bytes() * 8;
    let most = u32::MAX >> (32 - bits);
    let unsigned = |raw: u32| raw >> at & most;
    let signed = |raw: u32| (raw >> at << (32 - bits)).cast_signed() >> (32 - bits);
    for (out, &raw) in out.iter_mut().zip(raw) {
        *out = match format.channel() {
            Channel::Uint | Channel::Float => unsigned(raw),
            Channel::Int => signed(raw).cast_unsigned(),
            Channel::Unorm => {
                let (first, rest) = fraction(most);
                let value = unsigned(raw) as f32;
                (value * first + value * rest).to_bits()
            }
            Channel::Snorm => {
                let (first, rest) = fraction(most >> 1);
                let value = signed(raw) as f32;
                (value * first + value * rest).max(-1.0).to_bits()
            }
        };
    }
}

/// [`channel`] of eight lanes. From its loop the compiler makes vectors and then takes some of them apart.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn channel_vector(format: ImageFormat, raw: __m256i, at: u32) -> __m256i {
    let bits = format.channel_bytes() * 8;
    let most = u32::MAX >> (32 - bits);
    let raw = _mm256_srl_epi32(raw, _mm_cvtsi32_si128(at.cast_signed()));
    let unsigned = _mm256_and_si256(raw, _mm256_set1_epi32(most.cast_signed()));
    let above = _mm_cvtsi32_si128(32 - bits.cast_signed());
    let signed = _mm256_sra_epi32(_mm256_sll_epi32(raw, above), above);
    let quotient = |value, most| {
        let (first, rest) = fraction(most);
        let value = _mm256_cvtepi32_ps(value);
        let (first, rest) = (_mm256_set1_ps(first), _mm256_set1_ps(rest));
        _mm256_add_ps(_mm256_mul_ps(value, first), _mm256_mul_ps(value, rest))
    };
    match format.channel() {
        Channel::Uint | Channel::Float => unsigned,
        Channel::Int => signed,
        Channel::Unorm => _mm256_castps_si256(quotient(unsigned, most)),
        Channel::Snorm => {
            let value = quotient(signed, most >> 1);
            _mm256_castps_si256(_mm256_max_ps(value, _mm256_set1_ps(-1.0)))
        }
    }
}

/// What a whole number is multiplied with, to be divided by one that is below a power of two without the time of a division: the
/// sum of both products. The first is the quotient by the power and exact, and the second is so small that its rounding is lost
/// in the sum.
#[inline(always)]
fn fraction(most: u32) -> (f32, f32) {
    const fn of(most: u32) -> (f32, f32) {
        let power = most as f32 + 1.0;
        (1.0 / power, 1.0 / (most as f32 * power))
    }
    match most {
        0x7F => const { of(0x7F) },
        0xFF => const { of(0xFF) },
        0x7FFF => const { of(0x7FFF) },
        _ => const { of(0xFFFF) },
    }
}

#[cfg(test)]
mod tests {
    use super::super::format::decode;
    use super::*;

    /// Of all numbers that normalised channels can have.
    #[test]
    fn fractions_are_quotients() {
        for name in ["r8unorm", "r8snorm", "r16unorm", "r16snorm"] {
            let format: ImageFormat = name.parse().unwrap();
            for first in (0..1_u32 << (8 * format.channel_bytes())).step_by(WIDE) {
                let raw = std::array::from_fn(|lane| first + lane as u32);
                let want = raw.map(|raw| decode(format, raw));
                let mut got = [0; WIDE];
                channel(format, &raw, 0, &mut got);
                assert_eq!(got, want, "{name} {first}");
                #[cfg(target_arch = "x86_64")]
                if std::arch::is_x86_feature_detected!("avx2") {
                    // SAFETY: the processor has AVX2.
                    let got = unsafe { in_vectors(format, &raw) };
                    assert_eq!(got, want, "{name} {first} in vectors");
                }
            }
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    fn in_vectors(format: ImageFormat, raw: &[u32; WIDE]) -> [u32; WIDE] {
        let mut out = [0; WIDE];
        for (raw, out) in raw.chunks_exact(8).zip(out.chunks_exact_mut(8)) {
            // SAFETY: each chunk has the eight numbers of a vector.
            unsafe {
                let raw = _mm256_loadu_si256(raw.as_ptr().cast());
                _mm256_storeu_si256(out.as_mut_ptr().cast(), channel_vector(format, raw, 0));
            }
        }
        out
    }
}
