//! What kernels are told of images and samplers besides their contents.

use crate::image::{Addressing, Channel, ImageFormat, ImageShape, SamplerState};
use serde::{Deserialize, Serialize};

/// A property of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ImageFact {
    /// Texels along x.
    Width,
    /// Texels along y.
    Height,
    /// Texels along z.
    Depth,
    /// Layers; 1 where there are none.
    Layers,
    /// OpenCL's number of a channel's type.
    ChannelType,
    /// OpenCL's number of the channels' order.
    ChannelOrder,
    /// Samples and levels of detail: always 1.
    One,
}

/// A property of a sampler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum SamplerFact {
    /// What coordinates beyond the edges mean.
    Address,
    /// Whether coordinates are normalised.
    Normalized,
    /// Asks for coordinates below 0 to be moved out of the image, which the border does by itself.
    SnapBelowZero,
}

impl ImageFact {
    /// Its value of an image.
    pub(super) fn of(self, shape: &ImageShape) -> u32 {
        let [width, height, depth] = shape.extents();
        match self {
            ImageFact::Width => width,
            ImageFact::Height => height,
            ImageFact::Depth => depth,
            ImageFact::Layers => match shape.kind.layer_axis() {
                Some(axis) => shape.extents()[axis as usize],
                None => 1,
            },
            ImageFact::ChannelType => channel_type(shape.format),
            ImageFact::ChannelOrder => match shape.format.channels() {
                1 => 0x10B0,
                2 => 0x10B2,
                _ => 0x10B5,
            },
            ImageFact::One => 1,
        }
    }
}

/// OpenCL's number of a channel type, `CL_SNORM_INT8` and the like.
fn channel_type(format: ImageFormat) -> u32 {
    let wide = format.channel_bytes().trailing_zeros();
    match format.channel() {
        Channel::Snorm => 0x10D0 + wide,
        Channel::Unorm => 0x10D2 + wide,
        Channel::Int => 0x10D7 + wide,
        Channel::Uint => 0x10DA + wide,
        Channel::Float => 0x10DD + wide - 1,
    }
}

impl SamplerFact {
    /// Its value of a sampler.
    pub(super) fn of(self, sampler: SamplerState) -> u32 {
        match self {
            SamplerFact::Address => sampler.addressing as u32,
            SamplerFact::Normalized => 8 * u32::from(sampler.normalized),
            SamplerFact::SnapBelowZero
                if sampler.addressing == Addressing::Border && !sampler.linear =>
            {
                u32::MAX
            }
            SamplerFact::SnapBelowZero => 0,
        }
    }
}
