//! Images and samplers on the command line, and `.png` files.
//!
//! ```text
//! KIND ":" FORMAT ":" W ["x" H ["x" D]] [":" PATH]     an image: raw bytes, .npy or .png, zeros without a path
//! KIND   = image1d image1d_array image1d_buffer image2d image2d_array image3d
//! FORMAT = r rg rgba, then 8 16 32, then unorm snorm int uint float
//! "sampler:" ADDRESS {"," FLAG}
//! ADDRESS = none clamp clamp_to_edge repeat mirrored_repeat
//! FLAG    = linear normalized, or what comparing samples ask: never less equal lequal greater notequal gequal always
//! ```

use std::fmt;
use std::fs::File;
use std::io::{BufReader, BufWriter};
use std::path::{Path, PathBuf};

use visa_runtime::{
    Addressing, Channel, Comparison, ImageFormat, ImageKind, ImageShape, SamplerState,
};

use super::values::ElementType;

/// An image to make.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageSpec {
    /// Kind, format and size.
    pub shape: ImageShape,
    /// Contents; zeros without.
    pub path: Option<PathBuf>,
}

const KINDS: [ImageKind; 6] = [
    ImageKind::D1,
    ImageKind::D1Array,
    ImageKind::Buffer,
    ImageKind::D2,
    ImageKind::D2Array,
    ImageKind::D3,
];

const ADDRESSES: [(Addressing, &str); 5] = [
    (Addressing::None, "none"),
    (Addressing::Border, "clamp"),
    (Addressing::Edge, "clamp_to_edge"),
    (Addressing::Repeat, "repeat"),
    (Addressing::Mirror, "mirrored_repeat"),
];

impl ImageSpec {
    /// What follows `image2d` and its like; `None` when the word names no kind of image.
    pub fn parse(word: &str, rest: &str) -> Option<Result<ImageSpec, String>> {
        let kind = KINDS.into_iter().find(|kind| kind.name() == word)?;
        Some(ImageSpec::of_kind(kind, rest))
    }

    fn of_kind(kind: ImageKind, rest: &str) -> Result<ImageSpec, String> {
        let size = size_form(kind);
        let wrong = || {
            let name = kind.name();
            format!("`{name}:{rest}` is not of the form {name}:FORMAT:{size}[:PATH]")
        };
        let (format, rest_of_it) = rest.split_once(':').ok_or_else(wrong)?;
        let format: ImageFormat = format.parse().map_err(|error| format!("{error}"))?;
        let (sizes, path) = match rest_of_it.split_once(':') {
            Some((sizes, path)) => (sizes, Some(PathBuf::from(path))),
            None => (rest_of_it, None),
        };
        let mut extent = [1; 3];
        let given: Vec<u32> = sizes
            .split('x')
            .map(|part| part.parse().map_err(|_| wrong()))
            .collect::<Result<_, _>>()?;
        if given.len() != kind.axes() as usize
            || path.as_ref().is_some_and(|p| p.as_os_str().is_empty())
        {
            return Err(wrong());
        }
        for (to, from) in extent.iter_mut().zip(given) {
            *to = from;
        }
        let shape = ImageShape {
            kind,
            format,
            extent,
        };
        match shape.bytes() {
            Some(_) => Ok(ImageSpec { shape, path }),
            None => Err(format!(
                "an image of {sizes} texels is more than memory can hold"
            )),
        }
    }
}

impl fmt::Display for ImageSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ImageShape {
            kind,
            format,
            extent,
        } = &self.shape;
        write!(f, "{}:{format}:", kind.name())?;
        for (i, size) in extent.iter().enumerate().take(kind.axes() as usize) {
            let cross = if i == 0 { "" } else { "x" };
            write!(f, "{cross}{size}")?;
        }
        match &self.path {
            Some(path) => write!(f, ":{}", path.display()),
            None => Ok(()),
        }
    }
}

/// A SPEC of an image of this kind.
pub fn image_example(kind: Option<ImageKind>) -> String {
    let kind = kind.unwrap_or(ImageKind::D2);
    format!("{}:rgba8unorm:{}:PATH", kind.name(), size_form(kind))
}

/// How the size of a kind is written.
fn size_form(kind: ImageKind) -> &'static str {
    match kind.axes() {
        1 => "W",
        2 => "WxH",
        _ => "WxHxD",
    }
}

/// What follows `sampler:`.
pub fn sampler(text: &str) -> Result<SamplerState, String> {
    let mut words = text.split(',');
    let address = words.next().unwrap_or_default();
    let Some((addressing, _)) = ADDRESSES.into_iter().find(|(_, name)| *name == address) else {
        let names = ADDRESSES.map(|(_, name)| name).join(", ");
        return Err(format!(
            "unknown address mode `{address}`: expected {names}"
        ));
    };
    let mut state = SamplerState {
        addressing,
        ..SamplerState::default()
    };
    for word in words {
        match (word, Comparison::from_name(word)) {
            ("linear", _) => state.linear = true,
            ("normalized", _) => state.normalized = true,
            (_, Some(comparison)) => state.comparison = comparison,
            _ => {
                let names = Comparison::ALL.map(|(_, name)| name).join(", ");
                return Err(format!(
                    "unknown flag `{word}` of a sampler: expected linear or normalized, or a comparison: {names}"
                ));
            }
        }
    }
    Ok(state)
}

/// The text that [`sampler`] reads.
pub fn sampler_text(state: SamplerState) -> String {
    let known = ADDRESSES.iter().find(|(a, _)| *a == state.addressing);
    let mut text = known.map_or("none", |(_, name)| name).to_owned();
    for (flag, word) in [(state.linear, ",linear"), (state.normalized, ",normalized")] {
        if flag {
            text.push_str(word);
        }
    }
    if state.comparison != Comparison::default() {
        text.push(',');
        text.push_str(state.comparison.name());
    }
    text
}

/// The numbers that a channel is stored as.
pub fn element_type(format: ImageFormat) -> ElementType {
    match (format.channel(), format.channel_bytes()) {
        (Channel::Unorm | Channel::Uint, 1) => ElementType::U8,
        (Channel::Unorm | Channel::Uint, 2) => ElementType::U16,
        (Channel::Snorm | Channel::Int, 1) => ElementType::I8,
        (Channel::Snorm | Channel::Int, 2) => ElementType::I16,
        (Channel::Int, _) => ElementType::I32,
        (Channel::Float, 2) => ElementType::F16,
        (Channel::Float, _) => ElementType::F32,
        _ => ElementType::U32,
    }
}

/// Whether a path names a `.png` file.
pub fn is_png(path: &Path) -> bool {
    path.extension()
        .is_some_and(|extension| extension.eq_ignore_ascii_case("png"))
}

/// Bits and colour of the `.png` file that holds such an image.
fn png_type(shape: &ImageShape) -> Result<(png::BitDepth, png::ColorType), String> {
    let format = shape.format;
    let depth = match (format.channel(), format.channel_bytes()) {
        (Channel::Unorm | Channel::Uint, 1) => png::BitDepth::Eight,
        (Channel::Unorm | Channel::Uint, 2) => png::BitDepth::Sixteen,
        _ => {
            return Err(format!(
                "a .png holds unorm or uint of 8 or 16 bits, not {format}"
            ));
        }
    };
    if !matches!(shape.kind, ImageKind::D2 | ImageKind::D1) {
        return Err(format!("a .png holds no {}", shape.kind.name()));
    }
    let colour = match format.channels() {
        1 => png::ColorType::Grayscale,
        2 => png::ColorType::GrayscaleAlpha,
        _ => png::ColorType::Rgba,
    };
    Ok((depth, colour))
}

/// The texels of a `.png` file, which must have the image's size and bits. Grey becomes equal colours, missing alpha the most there
/// is; colours do not become grey.
pub fn read_png(file: File, shape: &ImageShape) -> Result<Vec<u8>, String> {
    let (depth, _) = png_type(shape)?;
    let mut decoder = png::Decoder::new(BufReader::new(file));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().map_err(|error| error.to_string())?;
    let (width, height) = reader.info().size();
    let [w, h, _] = shape.extents();
    if (width, height) != (w, h) {
        return Err(format!(
            "the picture has {width}x{height} texels, not {w}x{h}"
        ));
    }
    let size = reader
        .output_buffer_size()
        .ok_or("the picture is too large")?;
    let mut data = vec![0; size];
    let info = reader
        .next_frame(&mut data)
        .map_err(|error| error.to_string())?;
    if info.bit_depth != depth {
        return Err(format!(
            "the picture has {} bits a channel, not {}",
            info.bit_depth as u8, depth as u8
        ));
    }
    let bytes = shape.format.channel_bytes() as usize;
    let texel = info.color_type.samples().saturating_mul(bytes).max(1);
    let mut out = Vec::new();
    for from in data
        .get(..info.buffer_size())
        .unwrap_or(&data)
        .chunks_exact(texel)
    {
        // Samples are big-endian.
        let samples: Vec<Vec<u8>> = from
            .chunks_exact(bytes)
            .map(|sample| sample.iter().rev().copied().collect())
            .collect();
        let most = vec![0xff; bytes];
        let order: Vec<&Vec<u8>> = match (samples.as_slice(), shape.format.channels()) {
            ([grey], 1) => vec![grey],
            ([grey], 2) => vec![grey, &most],
            ([grey], _) => vec![grey, grey, grey, &most],
            ([grey, alpha], 2) => vec![grey, alpha],
            ([grey, alpha], 4) => vec![grey, grey, grey, alpha],
            ([r, g, b], 4) => vec![r, g, b, &most],
            ([r, g, b, a], 4) => vec![r, g, b, a],
            (_, channels) => {
                return Err(format!(
                    "the picture has {} channels, the format {channels}",
                    samples.len()
                ));
            }
        };
        out.extend(order.into_iter().flatten());
    }
    Ok(out)
}

/// Whether an image can be written as a `.png` file; why not.
pub fn check_png(shape: Option<&ImageShape>) -> Result<(), String> {
    match shape {
        Some(shape) => png_type(shape).map(|_| ()),
        None => Err("a .png holds an image, and this is a buffer".to_owned()),
    }
}

/// Writes an image as a `.png` file.
pub fn write_png(file: File, shape: &ImageShape, data: &[u8]) -> std::io::Result<()> {
    let (depth, colour) = png_type(shape).map_err(std::io::Error::other)?;
    let [width, height, _] = shape.extents();
    let mut encoder = png::Encoder::new(BufWriter::new(file), width, height);
    encoder.set_depth(depth);
    encoder.set_color(colour);
    let bytes = shape.format.channel_bytes() as usize;
    let swapped: Vec<u8> = data
        .chunks_exact(bytes.max(1))
        .flat_map(|sample| sample.iter().rev().copied())
        .collect();
    encoder
        .write_header()
        .and_then(|mut writer| writer.write_image_data(&swapped))
        .map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use crate::spec::Spec;

    #[test]
    fn specs_read_back() {
        for text in [
            "image2d:rgba8unorm:64x32",
            "image2d:r32float:3x2:a:b.npy",
            "image1d:rg16int:5",
            "image1d_buffer:r8uint:5:x",
            "image2d_array:rgba16float:4x3x2:x.bin",
            "image1d_array:r8snorm:4x3",
            "image3d:r32uint:4x3x2",
            "sampler:clamp_to_edge",
            "sampler:mirrored_repeat,linear,normalized",
            "sampler:clamp,linear,lequal",
            "sampler:none,always",
        ] {
            let spec: Spec = text.parse().unwrap();
            assert_eq!(spec.to_string(), text);
        }
        for (text, part) in [
            ("image2d:rgba8unorm:64", "image2d:FORMAT:WxH[:PATH]"),
            ("image1d:rgba8unorm:64x2", "image1d:FORMAT:W[:PATH]"),
            ("image2d:rgba8unorm:4x4:", "image2d:FORMAT:WxH[:PATH]"),
            ("image2d:bgra8unorm:4x4", "`bgra8unorm` is no image format"),
            (
                "image3d:rgba32float:4294967295x4294967295x9",
                "more than memory",
            ),
            ("sampler:edge", "expected none, clamp,"),
            ("sampler:none,cubic", "expected linear or normalized"),
            ("sampler:none,le", "or a comparison: never, less,"),
        ] {
            let error = text.parse::<Spec>().unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
