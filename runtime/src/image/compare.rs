//! Comparing samples: texels become 1 or 0 before they are filtered.

use super::Comparison;
use super::ImageFormat;
use super::format::{Texel, decode, encode, missing};
use crate::abi::Sampler;

/// The question that each texel answers.
///
/// The order is Direct3D's and Vulkan's, reference first. Intel's sampler asks `texel OP reference` and answers 0 for yes; its
/// drivers turn the operation of the interface round. Numbers compare as IEEE 754 says, so that only
/// [`Comparison::NotEqual`] and [`Comparison::Always`] holds of NaN in `r32float`; NaN counts as 0 in `r16unorm`, which has none.
#[derive(Clone, Copy)]
pub(super) struct Test {
    comparison: u32,
    reference: f32,
    format: ImageFormat,
}

impl Test {
    /// Compares with `reference`, rounded to the texel's format as a depth is that is written to one: Direct3D has it so for
    /// `sample_c`, the clamp of a normalised format included.
    pub(super) fn new(sampler: Sampler, format: ImageFormat, reference: u32) -> Test {
        Test {
            comparison: sampler.comparison,
            reference: f32::from_bits(decode(format, encode(format, reference))),
            format,
        }
    }

    /// 1 or 0 instead of the red channel; the others are those that a format of one channel lacks.
    pub(super) fn answer(self, texel: Texel) -> Texel {
        let [red, ..] = texel.map(f32::from_bits);
        let reference = self.reference;
        let known = Comparison::ALL.get(self.comparison as usize);
        let holds = match known.map_or(Comparison::Never, |(c, _)| *c) {
            Comparison::Never => false,
            Comparison::Less => reference < red,
            Comparison::Equal => reference == red,
            Comparison::LessEqual => reference <= red,
            Comparison::Greater => reference > red,
            Comparison::NotEqual => reference != red,
            Comparison::GreaterEqual => reference >= red,
            Comparison::Always => true,
        };
        let mut out = missing(self.format);
        out[0] = f32::from(u8::from(holds)).to_bits();
        out
    }
}
