//! Images: typed surfaces, what a texel is, how coordinates find it, filters.
//!
//! A texel is read as four 32-bit channels: floats for normalised and float formats, else integers. Channels that a format
//! lacks read 0, alpha 1. This file names formats, shapes and samplers; [`format`] converts texels, [`sample`] finds and
//! filters them, [`compare`] is about comparing samples, [`lod`] about levels of detail. Both engines call these functions, as
//! they do the rest of memory: there is one definition of what is in an image. Compiled code takes the common samples from [`lanes`],
//! which does the same for all lanes at once.
//!
//! Layout in memory is linear: texels of a row, rows of a slice, slices or layers, without gaps.

mod compare;
#[cfg(target_arch = "x86_64")]
mod eights;
mod fetch;
pub(crate) mod format;
pub(crate) mod lanes;
mod lod;
pub(crate) mod sample;
#[cfg(test)]
mod tests;
pub(crate) mod write;

use std::fmt;
use std::str::FromStr;

/// What the bits of a channel mean.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Channel {
    /// 0 to 1.
    Unorm = 0,
    /// -1 to 1.
    Snorm = 1,
    /// Signed integer.
    Int = 2,
    /// Unsigned integer.
    Uint = 3,
    /// Binary16 or binary32.
    Float = 4,
}

impl Channel {
    const ALL: [(Channel, &'static str); 5] = [
        (Channel::Unorm, "unorm"),
        (Channel::Snorm, "snorm"),
        (Channel::Int, "int"),
        (Channel::Uint, "uint"),
        (Channel::Float, "float"),
    ];

    /// True where a texel is read as integers.
    pub const fn is_integer(self) -> bool {
        matches!(self, Channel::Int | Channel::Uint)
    }
}

/// Which of a texel's four components the channels in memory are. OpenCL's names of orders, with `CL_` before them, are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u32)]
pub enum Order {
    /// `R`, `RG`, `RGBA`, and `DEPTH`, which is red.
    #[default]
    Rgba = 0,
    /// `BGRA`: four channels.
    Bgra = 1,
    /// `A`: one channel, alpha; the others are 0.
    Alpha = 2,
    /// `LUMINANCE`: one channel, that is red, green and blue.
    Luminance = 3,
    /// `INTENSITY`: one channel, that is all components.
    Intensity = 4,
    /// `sRGBA`: four channels; red, green and blue in memory are not linear.
    Srgba = 5,
    /// `sBGRA`: the same in the order of `BGRA`.
    Sbgra = 6,
}

impl Order {
    const ALL: [(Order, &'static str); 7] = [
        (Order::Rgba, "rgba"),
        (Order::Bgra, "bgra"),
        (Order::Alpha, "a"),
        (Order::Luminance, "luminance"),
        (Order::Intensity, "intensity"),
        (Order::Srgba, "srgba"),
        (Order::Sbgra, "sbgra"),
    ];

    /// The component that a channel is; the first one, for channels that are several.
    pub const fn component(self, channel: usize) -> usize {
        match (self, channel) {
            (Order::Bgra | Order::Sbgra, 0) => 2,
            (Order::Bgra | Order::Sbgra, 2) => 0,
            (Order::Alpha, _) => 3,
            _ => channel,
        }
    }

    /// Whether colours in memory are those of sRGB.
    pub const fn is_srgb(self) -> bool {
        matches!(self, Order::Srgba | Order::Sbgra)
    }
}

/// Format of a texel: channels without padding.
///
/// ```
/// use visa_runtime::ImageFormat;
/// let format: ImageFormat = "rgba8unorm".parse().unwrap();
/// assert_eq!(format.texel_bytes(), 4);
/// assert_eq!(format.to_string(), "rgba8unorm");
/// assert!("rgb8unorm".parse::<ImageFormat>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageFormat {
    channels: u8,
    bits: u8,
    channel: Channel,
    order: Order,
}

/// A format that does not exist.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no image format; write r, rg or rgba, then 8, 16 or 32, then unorm, snorm, int, uint or float (normalised \
     ones have 8 or 16 bits, floats 16 or 32)"
)]
pub struct FormatError(String);

impl ImageFormat {
    /// A format of 1, 2 or 4 channels of 8, 16 or 32 bits; `None` for what does not exist.
    pub fn new(channels: u32, bits: u32, channel: Channel) -> Option<ImageFormat> {
        let width = match channel {
            Channel::Unorm | Channel::Snorm => matches!(bits, 8 | 16),
            Channel::Int | Channel::Uint => matches!(bits, 8 | 16 | 32),
            Channel::Float => matches!(bits, 16 | 32),
        };
        let exists = width && matches!(channels, 1 | 2 | 4);
        exists.then_some(ImageFormat {
            channels: channels as u8,
            bits: bits as u8,
            channel,
            order: Order::Rgba,
        })
    }

    /// The same with its channels in another order; `None` if that has another number of channels, or other bits: colours of
    /// sRGB have 8, normalised.
    pub fn ordered(self, order: Order) -> Option<ImageFormat> {
        let exists = match order {
            Order::Rgba => true,
            Order::Bgra => self.channels == 4,
            Order::Alpha | Order::Luminance | Order::Intensity => self.channels == 1,
            Order::Srgba | Order::Sbgra => {
                matches!(
                    (self.channels, self.bits, self.channel),
                    (4, 8, Channel::Unorm)
                )
            }
        };
        exists.then_some(ImageFormat { order, ..self })
    }

    /// Which components its channels are.
    pub const fn order(self) -> Order {
        self.order
    }

    /// Channels.
    pub const fn channels(self) -> u32 {
        self.channels as u32
    }

    /// Bytes of a channel.
    pub const fn channel_bytes(self) -> u32 {
        self.bits as u32 / 8
    }

    /// True for formats that comparing samples take. Intel's tables of surface formats have shadow maps of these two and of
    /// depth formats, which do not exist here; Direct3D names the same.
    pub const fn compares(self) -> bool {
        matches!(
            (self.channels, self.bits, self.channel, self.order),
            (1, 16, Channel::Unorm, Order::Rgba) | (1, 32, Channel::Float, Order::Rgba)
        )
    }

    /// What a channel means.
    pub const fn channel(self) -> Channel {
        self.channel
    }

    /// Bytes of a texel.
    pub const fn texel_bytes(self) -> u32 {
        self.channels() * self.channel_bytes()
    }

    /// The number for [`crate::abi::Image::format`].
    pub(crate) const fn code(self) -> u32 {
        self.channels()
            | (self.bits as u32) << 8
            | (self.channel as u32) << 16
            | (self.order as u32) << 24
    }

    /// The format of a number.
    pub(crate) fn from_code(code: u32) -> Option<ImageFormat> {
        let (channel, _) = *Channel::ALL.get((code >> 16 & 0xFF) as usize)?;
        let (order, _) = *Order::ALL.get((code >> 24) as usize)?;
        ImageFormat::new(code & 0xFF, code >> 8 & 0xFF, channel)?.ordered(order)
    }
}

impl fmt::Display for ImageFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let order = match self.order {
            Order::Rgba => &"rgba"[..usize::from(self.channels)],
            order => Order::ALL[order as usize].1,
        };
        let name = Channel::ALL[self.channel as usize].1;
        write!(f, "{order}{}{name}", self.bits)
    }
}

impl FromStr for ImageFormat {
    type Err = FormatError;

    fn from_str(text: &str) -> Result<ImageFormat, FormatError> {
        let parsed = || {
            let digits = text.find(|c: char| c.is_ascii_digit())?;
            let (order, rest) = text.split_at(digits);
            let word = rest.find(|c: char| !c.is_ascii_digit())?;
            let (bits, name) = rest.split_at(word);
            let channels = match order {
                "r" => 1,
                "rg" => 2,
                "rgba" => 4,
                _ => return None,
            };
            let (channel, _) = Channel::ALL.into_iter().find(|(_, n)| *n == name)?;
            ImageFormat::new(channels, bits.parse().ok()?, channel)
        };
        parsed().ok_or_else(|| FormatError(text.to_owned()))
    }
}

/// How the coordinates of an image count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub enum ImageKind {
    /// x.
    D1,
    /// x, layer.
    D1Array,
    /// x; never filtered.
    Buffer,
    /// x, y.
    D2,
    /// x, y, layer.
    D2Array,
    /// x, y, z.
    D3,
}

impl ImageKind {
    /// Coordinates in use.
    pub const fn axes(self) -> u32 {
        match self {
            ImageKind::D1 | ImageKind::Buffer => 1,
            ImageKind::D2 | ImageKind::D1Array => 2,
            ImageKind::D3 | ImageKind::D2Array => 3,
        }
    }

    /// OpenCL's name without `_t`.
    pub const fn name(self) -> &'static str {
        match self {
            ImageKind::D1 => "image1d",
            ImageKind::D1Array => "image1d_array",
            ImageKind::Buffer => "image1d_buffer",
            ImageKind::D2 => "image2d",
            ImageKind::D2Array => "image2d_array",
            ImageKind::D3 => "image3d",
        }
    }

    /// The coordinate that counts layers.
    pub const fn layer_axis(self) -> Option<u32> {
        match self {
            ImageKind::D1Array => Some(1),
            ImageKind::D2Array => Some(2),
            _ => None,
        }
    }
}

/// Kind, format and size of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageShape {
    /// How coordinates count.
    pub kind: ImageKind,
    /// What a texel is.
    pub format: ImageFormat,
    /// Texels, or layers, along each coordinate in use; the others do not count.
    pub extent: [u32; 3],
}

impl ImageShape {
    /// The extent, 1 along coordinates that are not in use.
    pub fn extents(&self) -> [u32; 3] {
        let axes = self.kind.axes() as usize;
        std::array::from_fn(|k| if k < axes { self.extent[k] } else { 1 })
    }

    /// Bytes of the image; `None` when there is no such size.
    pub fn bytes(&self) -> Option<u64> {
        let texel = u64::from(self.format.texel_bytes());
        self.extents()
            .iter()
            .try_fold(texel, |bytes, &n| bytes.checked_mul(n.into()))
    }

    /// Distances in bytes of neighbours along each coordinate; `None` when there is no such size.
    pub(crate) fn pitches(&self) -> Option<[u64; 3]> {
        self.bytes()?;
        let [x, y, _] = self.extents().map(u64::from);
        let texel = u64::from(self.format.texel_bytes());
        let row = texel.checked_mul(x)?;
        Some([texel, row, row.checked_mul(y)?])
    }
}

/// What coordinates beyond the edges mean.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[repr(u32)]
pub enum Addressing {
    /// The program promises that there are none; they read the border.
    #[default]
    None = 0,
    /// The border: zeros, alpha 1 if the format has no alpha.
    Border = 1,
    /// The texel at the edge.
    Edge = 2,
    /// The image again, for normalised coordinates.
    Repeat = 3,
    /// The image again, every other time reversed, for normalised coordinates.
    Mirror = 4,
}

/// What comparing samples (`sample_c` and the like) ask of each texel: `reference OP texel`.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
#[repr(u32)]
pub enum Comparison {
    /// False. What the sampler states of OpenCL's driver say, which know no comparison and leave the field 0.
    #[default]
    Never = 0,
    /// `<`.
    Less = 1,
    /// `==`.
    Equal = 2,
    /// `<=`.
    LessEqual = 3,
    /// `>`.
    Greater = 4,
    /// `!=`.
    NotEqual = 5,
    /// `>=`.
    GreaterEqual = 6,
    /// True.
    Always = 7,
}

impl Comparison {
    /// All of them and their names.
    pub const ALL: [(Comparison, &'static str); 8] = [
        (Comparison::Never, "never"),
        (Comparison::Less, "less"),
        (Comparison::Equal, "equal"),
        (Comparison::LessEqual, "lequal"),
        (Comparison::Greater, "greater"),
        (Comparison::NotEqual, "notequal"),
        (Comparison::GreaterEqual, "gequal"),
        (Comparison::Always, "always"),
    ];

    /// The comparison of a name.
    pub fn from_name(name: &str) -> Option<Comparison> {
        let known = Comparison::ALL.into_iter().find(|(_, n)| *n == name);
        known.map(|(comparison, _)| comparison)
    }

    /// Its name.
    pub const fn name(self) -> &'static str {
        Comparison::ALL[self as usize].1
    }
}

/// How an image is sampled.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct SamplerState {
    /// Coordinates beyond the edges.
    pub addressing: Addressing,
    /// Whether neighbours are mixed, else the nearest is taken. Integer formats are never mixed.
    pub linear: bool,
    /// Whether coordinates run from 0 to 1, else to the number of texels.
    pub normalized: bool,
    /// What messages that compare ask of texels; others do not.
    pub comparison: Comparison,
}
