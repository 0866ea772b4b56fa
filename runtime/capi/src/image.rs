//! Images and samplers. Numbers come from C, so each is looked at before it means something.

use visa_runtime::{
    Addressing, Channel, Comparison, ImageFormat, ImageKind, ImageShape, SamplerState,
};

/// How the coordinates of an image count.
pub const VISA_JIT_IMAGE_1D: u32 = 0;
/// x, layer.
pub const VISA_JIT_IMAGE_1D_ARRAY: u32 = 1;
/// x; never filtered.
pub const VISA_JIT_IMAGE_1D_BUFFER: u32 = 2;
/// x, y.
pub const VISA_JIT_IMAGE_2D: u32 = 3;
/// x, y, layer.
pub const VISA_JIT_IMAGE_2D_ARRAY: u32 = 4;
/// x, y, z.
pub const VISA_JIT_IMAGE_3D: u32 = 5;

/// Channels run from 0 to 1.
pub const VISA_JIT_UNORM: u32 = 0;
/// Channels run from -1 to 1.
pub const VISA_JIT_SNORM: u32 = 1;
/// Channels are signed integers.
pub const VISA_JIT_INT: u32 = 2;
/// Channels are unsigned integers.
pub const VISA_JIT_UINT: u32 = 3;
/// Channels are floats.
pub const VISA_JIT_FLOAT: u32 = 4;

/// There are no coordinates beyond the edges.
pub const VISA_JIT_ADDRESS_NONE: u32 = 0;
/// Beyond the edges is the border.
pub const VISA_JIT_ADDRESS_BORDER: u32 = 1;
/// Beyond the edges is the texel at the edge.
pub const VISA_JIT_ADDRESS_EDGE: u32 = 2;
/// Beyond the edges is the image again.
pub const VISA_JIT_ADDRESS_REPEAT: u32 = 3;
/// Beyond the edges is the image again, every other time reversed.
pub const VISA_JIT_ADDRESS_MIRROR: u32 = 4;

/// Nothing compares.
pub const VISA_JIT_COMPARE_NEVER: u32 = 0;
/// The reference is less than the texel.
pub const VISA_JIT_COMPARE_LESS: u32 = 1;
/// They are equal.
pub const VISA_JIT_COMPARE_EQUAL: u32 = 2;
/// The reference is less, or they are equal.
pub const VISA_JIT_COMPARE_LEQUAL: u32 = 3;
/// The reference is greater than the texel.
pub const VISA_JIT_COMPARE_GREATER: u32 = 4;
/// They are not equal.
pub const VISA_JIT_COMPARE_NOTEQUAL: u32 = 5;
/// The reference is greater, or they are equal.
pub const VISA_JIT_COMPARE_GEQUAL: u32 = 6;
/// Everything compares.
pub const VISA_JIT_COMPARE_ALWAYS: u32 = 7;

/// Kind, format and size of an image.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct visa_jit_image {
    /// `VISA_JIT_IMAGE_2D` and the like.
    pub kind: u32,
    /// Channels of a texel: 1, 2 or 4.
    pub channels: u32,
    /// Bits of a channel: 8, 16 or 32.
    pub bits: u32,
    /// `VISA_JIT_UNORM` and the like.
    pub channel: u32,
    /// Texels, or layers, along each coordinate in use.
    pub extent: [u32; 3],
}

/// How an image is sampled. The library reads all of it, and `comparison` came with version 14 of the ABI: callers compare
/// `visa_jit_abi_version` with the version that they were written for before they pass one.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct visa_jit_sampler {
    /// `VISA_JIT_ADDRESS_EDGE` and the like.
    pub address: u32,
    /// 1 where neighbours are mixed, 0 where the nearest is taken.
    pub linear: u32,
    /// 1 where coordinates run from 0 to 1, 0 where they run to the number of texels.
    pub normalized: u32,
    /// `VISA_JIT_COMPARE_LESS` and the like: what comparing samples ask of texels.
    pub comparison: u32,
}

impl visa_jit_image {
    pub(crate) fn shape(&self) -> Result<ImageShape, String> {
        let kind = match self.kind {
            VISA_JIT_IMAGE_1D => ImageKind::D1,
            VISA_JIT_IMAGE_1D_ARRAY => ImageKind::D1Array,
            VISA_JIT_IMAGE_1D_BUFFER => ImageKind::Buffer,
            VISA_JIT_IMAGE_2D => ImageKind::D2,
            VISA_JIT_IMAGE_2D_ARRAY => ImageKind::D2Array,
            VISA_JIT_IMAGE_3D => ImageKind::D3,
            other => return Err(format!("{other} is no kind of image")),
        };
        let channel = match self.channel {
            VISA_JIT_UNORM => Channel::Unorm,
            VISA_JIT_SNORM => Channel::Snorm,
            VISA_JIT_INT => Channel::Int,
            VISA_JIT_UINT => Channel::Uint,
            VISA_JIT_FLOAT => Channel::Float,
            other => return Err(format!("{other} is no kind of channel")),
        };
        let format = ImageFormat::new(self.channels, self.bits, channel);
        let format = format.ok_or_else(|| {
            let (channels, bits) = (self.channels, self.bits);
            format!("there is no format of {channels} channels of {bits} bits of this kind")
        })?;
        Ok(ImageShape {
            kind,
            format,
            extent: self.extent,
        })
    }
}

impl visa_jit_sampler {
    pub(crate) fn state(&self) -> Result<SamplerState, String> {
        let addressing = match self.address {
            VISA_JIT_ADDRESS_NONE => Addressing::None,
            VISA_JIT_ADDRESS_BORDER => Addressing::Border,
            VISA_JIT_ADDRESS_EDGE => Addressing::Edge,
            VISA_JIT_ADDRESS_REPEAT => Addressing::Repeat,
            VISA_JIT_ADDRESS_MIRROR => Addressing::Mirror,
            other => return Err(format!("{other} is no address mode")),
        };
        let comparison = match self.comparison {
            VISA_JIT_COMPARE_NEVER => Comparison::Never,
            VISA_JIT_COMPARE_LESS => Comparison::Less,
            VISA_JIT_COMPARE_EQUAL => Comparison::Equal,
            VISA_JIT_COMPARE_LEQUAL => Comparison::LessEqual,
            VISA_JIT_COMPARE_GREATER => Comparison::Greater,
            VISA_JIT_COMPARE_NOTEQUAL => Comparison::NotEqual,
            VISA_JIT_COMPARE_GEQUAL => Comparison::GreaterEqual,
            VISA_JIT_COMPARE_ALWAYS => Comparison::Always,
            other => return Err(format!("{other} is no comparison")),
        };
        Ok(SamplerState {
            addressing,
            linear: self.linear != 0,
            normalized: self.normalized != 0,
            comparison,
        })
    }
}
