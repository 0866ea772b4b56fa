//! Texels: channels from memory and to memory.

use super::{Channel, ImageFormat, Order};
use crate::helpers::Round;
use crate::helpers::half::{narrow, widen};

/// A texel: four channels of 32 bits.
pub(crate) type Texel = [u32; 4];

/// What channels read that a format lacks; also the border.
pub(crate) fn missing(format: ImageFormat) -> Texel {
    let one = if format.channel().is_integer() {
        1
    } else {
        1_f32.to_bits()
    };
    [0, 0, 0, one]
}

/// The border: as [`missing`], but alpha is 0 where the format has alpha.
pub(crate) fn border(format: ImageFormat) -> Texel {
    let mut texel = missing(format);
    let alpha = matches!(format.order(), Order::Alpha | Order::Intensity);
    if format.channels() == 4 || alpha {
        texel[3] = 0;
    }
    texel
}

/// A texel of its channels' values.
pub(crate) fn ordered(format: ImageFormat, channels: &[u32]) -> Texel {
    let mut texel = missing(format);
    match (format.order(), channels) {
        (Order::Luminance, [one]) => texel[..3].fill(*one),
        (Order::Intensity, [one]) => texel.fill(*one),
        (order, all) => {
            for (c, value) in all.iter().enumerate() {
                texel[order.component(c)] = *value;
            }
            if order.is_srgb() {
                for value in &mut texel[..3] {
                    *value = linear(f32::from_bits(*value)).to_bits();
                }
            }
        }
    }
    texel
}

/// The bits of each of a format's channels for the components of a texel, which are integers for formats of integers, else floats.
pub fn encode_texel(format: ImageFormat, texel: [u32; 4]) -> Vec<u32> {
    let component = |c: u32| format.order().component(c as usize);
    let bits = |at: usize| {
        let value = texel[at];
        if format.order().is_srgb() && at < 3 {
            encode(format, from_linear(f32::from_bits(value)).to_bits())
        } else {
            encode(format, value)
        }
    };
    (0..format.channels()).map(|c| bits(component(c))).collect()
}

/// A colour of sRGB, from 0 to 1, as OpenCL's section 5.3.1.1 has it of IEC 61966-2-1.
fn linear(colour: f32) -> f32 {
    let colour = f64::from(colour);
    let linear = if colour <= 0.04045 {
        colour / 12.92
    } else {
        ((colour + 0.055) / 1.055).powf(2.4)
    };
    linear as f32
}

/// The same back.
fn from_linear(linear: f32) -> f32 {
    let linear = f64::from(linear);
    let colour = if linear <= 0.0031308 {
        linear * 12.92
    } else {
        1.055 * linear.powf(1.0 / 2.4) - 0.055
    };
    colour as f32
}

/// The value of a channel's bits.
pub(crate) fn decode(format: ImageFormat, raw: u32) -> u32 {
    let bits = format.channel_bytes() * 8;
    let signed = (raw << (32 - bits)).cast_signed() >> (32 - bits);
    match format.channel() {
        Channel::Uint => raw,
        Channel::Int => signed.cast_unsigned(),
        Channel::Float if bits == 16 => from_half(raw),
        Channel::Float => raw,
        Channel::Unorm => (raw as f32 / most(bits) as f32).to_bits(),
        Channel::Snorm => (signed as f32 / most(bits - 1) as f32).max(-1.0).to_bits(),
    }
}

/// The bits of a channel's value, which is an integer for formats of integers, else a float. Integers are clamped, floats rounded to nearest, ties to even; NaN is 0 in a
/// normalised format.
pub(crate) fn encode(format: ImageFormat, value: u32) -> u32 {
    let bits = format.channel_bytes() * 8;
    let scaled = |low: f64, most: u32| {
        let v = f64::from(f32::from_bits(value));
        let v = if v.is_nan() { 0.0 } else { v.clamp(low, 1.0) };
        (v * f64::from(most)).round_ties_even()
    };
    match format.channel() {
        Channel::Uint => value.min(most(bits)),
        Channel::Int => {
            let high = most(bits - 1).cast_signed();
            value.cast_signed().clamp(-high - 1, high).cast_unsigned() & most(bits)
        }
        Channel::Float if bits == 16 => to_half(value),
        Channel::Float => value,
        Channel::Unorm => scaled(0.0, most(bits)) as u32,
        Channel::Snorm => (scaled(-1.0, most(bits - 1)) as i32).cast_unsigned() & most(bits),
    }
}

/// The greatest number of a given number of bits.
fn most(bits: u32) -> u32 {
    u32::MAX >> (32 - bits)
}

fn from_half(raw: u32) -> u32 {
    (f64::from_bits(widen(raw as u16)) as f32).to_bits()
}

fn to_half(value: u32) -> u32 {
    let wide = f64::from(f32::from_bits(value));
    narrow(wide.to_bits(), Round::Nearest).into()
}
