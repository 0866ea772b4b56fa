//! What kernels are told of images and samplers besides their contents.

use super::error::Error;
use super::kernel::Kernel;
use super::launch::Arg;
use crate::container::{ArgType, FilterMode, InlineSampler, SamplerAddressing};
use visa_runtime::{Addressing, Channel, ImageFormat, ImageShape, SamplerState};

/// The value of an implicit argument that belongs to an image or a sampler; `None` where there is no such value.
pub(super) fn property(ty: &ArgType, arg: &Arg) -> Option<u32> {
    match arg {
        Arg::Image(_, shape) => image(ty, shape),
        Arg::Sampler(state) => sampler(ty, *state),
        _ => None,
    }
}

fn image(ty: &ArgType, shape: &ImageShape) -> Option<u32> {
    let [width, height, depth] = shape.extents();
    Some(match ty {
        ArgType::ImageWidth => width,
        ArgType::ImageHeight => height,
        ArgType::ImageDepth => depth,
        ArgType::ImageArraySize => match shape.kind.layer_axis() {
            Some(axis) => shape.extents()[axis as usize],
            None => 1,
        },
        ArgType::ImageChannelDataType => data_type(shape.format),
        ArgType::ImageChannelOrder => match shape.format.channels() {
            1 => 0x10B0,
            2 => 0x10B2,
            _ => 0x10B5,
        },
        ArgType::ImageNumSamples | ArgType::ImageNumMipLevels => 1,
        _ => return None,
    })
}

/// OpenCL's number of a channel type, `CL_SNORM_INT8` and the like.
fn data_type(format: ImageFormat) -> u32 {
    let wide = format.channel_bytes().trailing_zeros();
    match format.channel() {
        Channel::Snorm => 0x10D0 + wide,
        Channel::Unorm => 0x10D2 + wide,
        Channel::Int => 0x10D7 + wide,
        Channel::Uint => 0x10DA + wide,
        Channel::Float => 0x10DD + wide - 1,
    }
}

fn sampler(ty: &ArgType, state: SamplerState) -> Option<u32> {
    Some(match ty {
        ArgType::SamplerAddress => state.addressing as u32,
        ArgType::SamplerNormalized => 8 * u32::from(state.normalized),
        // Asks for coordinates below 0 to be moved out of the image, which the border does by itself.
        ArgType::SamplerSnapWa if state.addressing == Addressing::Border && !state.linear => {
            u32::MAX
        }
        ArgType::SamplerSnapWa => 0,
        _ => return None,
    })
}

impl Kernel {
    /// A sampler that is written in the source.
    pub(super) fn inline_sampler(&self, s: &InlineSampler) -> Result<SamplerState, Error> {
        let unsupported = |what: String| Error::Unsupported {
            kernel: self.name().into(),
            what,
        };
        let addressing = match &s.addrmode {
            SamplerAddressing::None => Addressing::None,
            SamplerAddressing::Repeat => Addressing::Repeat,
            SamplerAddressing::ClampEdge => Addressing::Edge,
            SamplerAddressing::ClampBorder => Addressing::Border,
            SamplerAddressing::Mirror => Addressing::Mirror,
            other => return Err(unsupported(format!("sampler address mode `{other}`"))),
        };
        let linear = match &s.filtermode {
            FilterMode::Nearest => false,
            FilterMode::Linear => true,
            other => return Err(unsupported(format!("sampler filter `{other}`"))),
        };
        Ok(SamplerState {
            addressing,
            linear,
            normalized: s.normalized,
        })
    }
}
