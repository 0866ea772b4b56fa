//! Texels of all lanes of a message written at once.
//!
//! [`super::sample`] says what a write is, lane after lane, and the interpreter uses nothing else. This stores the same bits, in the same
//! order of lanes, for what programs do most: all channels of images in the order RGBA or BGRA. For all else it returns nothing
//! and does nothing.

use super::lanes::{is_small, vectors};
use super::sample::View;
use super::{Channel, ImageFormat, Order};
use crate::abi::Image;
use crate::element::store;
#[cfg(target_arch = "x86_64")]
use std::arch::x86_64::*;

/// Lanes of a message, at most.
const LANES: usize = 32;

/// A number for each lane.
type Row = [u32; LANES];

/// Writes the texels of the enabled ones of a number of lanes, and returns those of them that are outside of the image. The block has the
/// coordinates in its first three rows and the texels in the four that follow. `None` where nothing was done.
///
/// # Safety
/// The image must be bound as [`crate::abi`] says. The block must have seven rows of `lanes`, rounded up to a multiple of four.
pub(crate) unsafe fn write(
    view: View<'_>,
    channels: u32,
    (lanes, enabled): (usize, u32),
    block: *const u32,
) -> Option<u32> {
    let (image, format) = view.parts();
    let all = (1 << format.channels()) - 1;
    let able = matches!(format.order(), Order::Rgba | Order::Bgra)
        && channels & all == all
        && format.channels() != 3
        && (1..=3).contains(&image.axes)
        && is_small(image)
        && lanes <= LANES
        && vectors();
    #[cfg(target_arch = "x86_64")]
    if able {
        // SAFETY: as promised; the processor has the feature.
        return Some(unsafe { in_vectors(image, format, (lanes, enabled), block) });
    }
    let _ = (able, enabled, block);
    None
}

/// # Safety
/// As [`write`]. The processor must have the feature.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn in_vectors(
    image: &Image,
    format: ImageFormat,
    (lanes, enabled): (usize, u32),
    block: *const u32,
) -> u32 {
    let row = lanes.next_multiple_of(4);
    let enabled = enabled & u32::MAX.checked_shr(32 - lanes as u32).unwrap_or(0);
    let mut offset = [0; LANES];
    // SAFETY: the block has three rows of coordinates.
    let outside = unsafe { offsets(image, block, row, &mut offset) };
    let mut words = [[0; LANES]; 4];
    let bits = format.channel_bytes() * 8;
    for c in 0..format.channels() {
        let component = format.order().component(c as usize) & 3;
        // SAFETY: the block has four rows of components behind those.
        let from = unsafe { block.add((3 + component) * row) };
        let (word, at) = ((c * bits / 32) as usize & 3, c * bits % 32);
        // SAFETY: as many lanes as a row has.
        unsafe { channel(format, from, row, at, &mut words[word]) };
    }
    let places = Places {
        base: image.base,
        offset: &offset,
        lanes: enabled & !outside,
    };
    // SAFETY: these are texels of the image.
    unsafe {
        match format.texel_bytes() {
            1 => places.store::<1>(&words),
            2 => places.store::<2>(&words),
            4 => places.store::<4>(&words),
            8 => places.store::<8>(&words),
            _ => places.store_vectors(&words),
        }
    }
    enabled & outside
}

/// Where the texels of lanes are, and which lanes have one that is outside.
///
/// # Safety
/// The block must have three rows. The processor must have the feature.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn offsets(image: &Image, block: *const u32, row: usize, offset: &mut Row) -> u32 {
    let mut outside = 0;
    for first in (0..row).step_by(4) {
        let (mut sum, mut inside) = (_mm_setzero_si128(), _mm_set1_epi32(-1));
        for k in 0..image.axes as usize & 3 {
            // SAFETY: a row has a multiple of four lanes.
            let at = unsafe { _mm_loadu_si128(block.add(k * row + first).cast()) };
            let extent = image.extent[k];
            let last = _mm_set1_epi32(extent.wrapping_sub(1).cast_signed());
            let below = match extent {
                0 => _mm_setzero_si128(),
                _ => _mm_cmpeq_epi32(_mm_min_epu32(at, last), at),
            };
            inside = _mm_and_si128(inside, below);
            let pitch = _mm_set1_epi32((image.pitch[k] as u32).cast_signed());
            sum = _mm_add_epi32(sum, _mm_mullo_epi32(at, pitch));
        }
        let beyond = !_mm_movemask_ps(_mm_castsi128_ps(inside)) & 0xF;
        outside |= beyond.cast_unsigned() << first;
        // SAFETY: four numbers are 16 bytes.
        unsafe { _mm_storeu_si128(offset.as_mut_ptr().add(first).cast(), sum) };
    }
    outside
}

/// Puts the bits of a channel, from bit `at` on, to the words of lanes: what [`super::format::encode`] makes of them.
///
/// # Safety
/// `from` must have a number for each of `row` lanes, a multiple of four and at most [`LANES`]. The processor must have the feature.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn channel(format: ImageFormat, from: *const u32, row: usize, at: u32, words: &mut Row) {
    let shift = _mm_cvtsi32_si128(at.cast_signed());
    for (word, first) in words
        .as_chunks_mut::<4>()
        .0
        .iter_mut()
        .zip((0..row).step_by(4))
    {
        // SAFETY: four numbers are 16 bytes.
        unsafe {
            let value = _mm_loadu_si128(from.add(first).cast());
            let bits = _mm_sll_epi32(encoded(format, value), shift);
            let word = word.as_mut_ptr().cast();
            _mm_storeu_si128(word, _mm_or_si128(_mm_loadu_si128(word), bits));
        }
    }
}

/// The bits of a channel's values.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
#[inline]
fn encoded(format: ImageFormat, value: __m128i) -> __m128i {
    let bits = format.channel_bytes() * 8;
    let most = u32::MAX >> (32 - bits);
    let mask = _mm_set1_epi32(most.cast_signed());
    // As there in double precision, in which products are exact: they are rounded once.
    let scaled = |value, most: u32, low: f64| {
        let value = _mm_castsi128_ps(value);
        let number = _mm_and_ps(value, _mm_cmpord_ps(value, value));
        let wide = _mm256_cvtps_pd(number);
        let raised = _mm256_max_pd(wide, _mm256_set1_pd(low));
        let clamped = _mm256_min_pd(raised, _mm256_set1_pd(1.0));
        let product = _mm256_mul_pd(clamped, _mm256_set1_pd(f64::from(most)));
        const NEAREST: i32 = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
        _mm256_cvttpd_epi32(_mm256_round_pd::<NEAREST>(product))
    };
    match format.channel() {
        Channel::Uint => _mm_min_epu32(value, mask),
        Channel::Int => {
            let high = _mm_set1_epi32((most >> 1).cast_signed());
            let low = _mm_xor_si128(high, _mm_set1_epi32(-1));
            _mm_and_si128(_mm_min_epi32(_mm_max_epi32(value, low), high), mask)
        }
        Channel::Float if bits == 16 => {
            let mut each = [0u32; 4];
            // SAFETY: four numbers are 16 bytes.
            unsafe { _mm_storeu_si128(each.as_mut_ptr().cast(), value) };
            let [a, b, c, d] = each.map(|v| super::format::encode(format, v).cast_signed());
            _mm_set_epi32(d, c, b, a)
        }
        Channel::Float => value,
        Channel::Unorm => scaled(value, most, 0.0),
        Channel::Snorm => _mm_and_si128(scaled(value, most >> 1, -1.0), mask),
    }
}

/// Where texels are written.
#[cfg(target_arch = "x86_64")]
struct Places<'a> {
    base: *mut u8,
    offset: &'a Row,
    /// A bit for each lane that writes.
    lanes: u32,
}

#[cfg(target_arch = "x86_64")]
impl Places<'_> {
    /// Stores texels of a number of bytes, up to 8. Lane after lane: the last of those that write the same texel counts.
    ///
    /// # Safety
    /// A texel of that many bytes must be writable for each lane.
    #[inline(always)]
    unsafe fn store<const BYTES: u32>(&self, words: &[Row; 4]) {
        let mut rest = self.lanes;
        while rest != 0 {
            let lane = rest.trailing_zeros() as usize;
            rest &= rest - 1;
            let to = self.base.wrapping_add(self.offset[lane] as usize);
            let high = if BYTES == 8 { words[1][lane] } else { 0 };
            let bits = u64::from(words[0][lane]) | u64::from(high) << 32;
            // SAFETY: as promised.
            unsafe { store(to, BYTES, bits) };
        }
    }

    /// Stores texels of 16 bytes.
    ///
    /// # Safety
    /// As [`Places::store`]. The processor must have the feature.
    #[target_feature(enable = "avx2")]
    #[inline]
    unsafe fn store_vectors(&self, words: &[Row; 4]) {
        for first in (0..LANES).step_by(4).take_while(|&k| self.lanes >> k != 0) {
            // SAFETY: four numbers are 16 bytes.
            let part = |k: usize| unsafe { _mm_loadu_si128(words[k].as_ptr().add(first).cast()) };
            let (a, b, c, d) = (part(0), part(1), part(2), part(3));
            let (ab, cd) = (_mm_unpacklo_epi32(a, b), _mm_unpacklo_epi32(c, d));
            let (high_ab, high_cd) = (_mm_unpackhi_epi32(a, b), _mm_unpackhi_epi32(c, d));
            let texels = [
                _mm_unpacklo_epi64(ab, cd),
                _mm_unpackhi_epi64(ab, cd),
                _mm_unpacklo_epi64(high_ab, high_cd),
                _mm_unpackhi_epi64(high_ab, high_cd),
            ];
            for (lane, texel) in (first..).zip(texels) {
                if self.lanes >> lane & 1 != 0 {
                    let to = self.base.wrapping_add(self.offset[lane] as usize);
                    // A vector, of which other threads may write parts meanwhile, as with channels by themselves.
                    // SAFETY: as promised.
                    unsafe { _mm_storeu_si128(to.cast(), texel) };
                }
            }
        }
    }
}
