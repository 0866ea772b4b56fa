//! Texels of sixteen lanes: from memory to a row of lanes for each component.

use super::format::{border, missing};
use super::{Channel, ImageFormat};
use crate::abi::Image;
use crate::element::load;

/// Lanes at a time. Loops over fewer are unrolled before the compiler looks for vectors, and then it finds none.
pub(super) const WIDE: usize = 16;

/// A number for each lane.
pub(super) type Row<T> = [T; WIDE];

/// Components of the lanes' texels.
pub(super) type Texels = [Row<u32>; 4];

/// An image as texels are read from it.
pub(super) struct Source<'a> {
    pub(super) image: &'a Image,
    pub(super) format: ImageFormat,
}

impl Source<'_> {
    /// Replaces the texels of lanes, for which all bits of `outside` are set, by the border.
    #[inline(always)]
    pub(super) fn border(&self, outside: &Row<u32>, texels: &mut Texels) {
        for (component, border) in texels.iter_mut().zip(border(self.format)) {
            for lane in 0..WIDE {
                component[lane] = component[lane] & !outside[lane] | border & outside[lane];
            }
        }
    }

    /// The texels at offsets. Those of lanes that are not enabled are read as well: nothing comes of it.
    ///
    /// # Safety
    /// Each offset must be that of a texel of the image, which must be bound as [`crate::abi`] says.
    #[inline(always)]
    pub(super) unsafe fn fetch(&self, offset: &Row<u64>, out: &mut Texels) {
        if self.format.channels() < 4 {
            for (component, missing) in out.iter_mut().zip(missing(self.format)) {
                *component = [missing; WIDE];
            }
        }
        // SAFETY: as promised.
        unsafe { self.read(offset, out) };
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

/// What a whole number is multiplied with, to be divided by one that is below a power of two without the time of a division: the
/// sum of both products. The first is the quotient by the power and exact, and the second is so small that its rounding is lost
/// in the sum.
#[inline(always)]
pub(super) fn fraction(most: u32) -> (f32, f32) {
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
            }
        }
    }
}
