//! Images as OpenCL C 6.12.14 and the specification's section 8 describe them, in double precision. Only names of formats and
//! shapes are the project's.

use std::cmp::Ordering;

use half::f16;
use visa_runtime::{Addressing, Channel, Comparison, ImageFormat, ImageShape, SamplerState};

use visa_test_common::Rng;

/// Four channels; integers are exact in a double.
pub type Texel = [f64; 4];

/// An image and its bytes.
#[derive(Clone, Debug)]
pub struct Picture {
    pub shape: ImageShape,
    pub bytes: Vec<u8>,
}

fn whole(format: ImageFormat) -> bool {
    matches!(format.channel(), Channel::Int | Channel::Uint)
}

fn greatest(bits: u32) -> f64 {
    2_f64.powi(bits as i32) - 1.0
}

fn from_bytes(format: ImageFormat, bytes: &[u8]) -> f64 {
    let mut wide = [0; 8];
    wide[..bytes.len()].copy_from_slice(bytes);
    let raw = u64::from_le_bytes(wide);
    let bits = 8 * bytes.len() as u32;
    let signed = if raw >> (bits - 1) != 0 {
        raw as i64 - (1 << bits)
    } else {
        raw as i64
    };
    match format.channel() {
        Channel::Uint => raw as f64,
        Channel::Int => signed as f64,
        Channel::Unorm => raw as f64 / greatest(bits),
        Channel::Snorm => (signed as f64 / greatest(bits - 1)).max(-1.0),
        Channel::Float if bits == 16 => f16::from_bits(raw as u16).to_f64(),
        Channel::Float => f32::from_bits(raw as u32).into(),
    }
}

fn to_bytes(format: ImageFormat, value: f64) -> Vec<u8> {
    let bytes = format.channel_bytes() as usize;
    let bits = 8 * bytes as u32;
    let raw = match format.channel() {
        Channel::Uint => value.clamp(0.0, greatest(bits)) as u64,
        Channel::Int => value.clamp(-greatest(bits - 1) - 1.0, greatest(bits - 1)) as i64 as u64,
        Channel::Unorm => (value.clamp(0.0, 1.0) * greatest(bits)).round_ties_even() as u64,
        Channel::Snorm => {
            (value.clamp(-1.0, 1.0) * greatest(bits - 1)).round_ties_even() as i64 as u64
        }
        Channel::Float if bits == 16 => f16::from_f64(value).to_bits().into(),
        Channel::Float => (value as f32).to_bits().into(),
    };
    raw.to_le_bytes()[..bytes].to_vec()
}

impl Picture {
    /// An image full of random texels, floats between -4 and 4.
    pub fn random(shape: ImageShape, rng: &mut Rng) -> Picture {
        let count = shape.bytes().unwrap() as usize;
        let mut bytes = rng.bytes(count);
        if shape.format.channel() == Channel::Float {
            let size = shape.format.channel_bytes() as usize;
            bytes = (0..count / size)
                .flat_map(|_| to_bytes(shape.format, rng.float(-4.0, 4.0).into()))
                .collect();
        }
        Picture { shape, bytes }
    }

    fn place(&self, at: [i64; 3]) -> Option<usize> {
        let [x, y, z] = self.shape.extents().map(i64::from);
        let inside = [(at[0], x), (at[1], y), (at[2], z)];
        if inside.iter().any(|&(c, n)| c < 0 || c >= n) {
            return None;
        }
        let texel = self.shape.format.texel_bytes() as usize;
        Some(((at[2] * y + at[1]) * x + at[0]) as usize * texel)
    }

    fn used(&self, at: [i64; 3]) -> [i64; 3] {
        let axes = self.shape.kind.axes() as usize;
        std::array::from_fn(|k| if k < axes { at[k] } else { 0 })
    }

    fn border(&self) -> Texel {
        let alpha = if self.shape.format.channels() == 4 {
            0.0
        } else {
            1.0
        };
        [0.0, 0.0, 0.0, alpha]
    }

    /// The texel at integer coordinates, the border outside.
    pub fn texel(&self, at: [i64; 3]) -> Texel {
        let format = self.shape.format;
        let Some(place) = self.place(self.used(at)) else {
            return self.border();
        };
        let mut out = [0.0, 0.0, 0.0, 1.0];
        let size = format.channel_bytes() as usize;
        for (c, to) in out.iter_mut().enumerate().take(format.channels() as usize) {
            let from = place + c * size;
            *to = from_bytes(format, &self.bytes[from..from + size]);
        }
        out
    }

    /// Writes a texel, if it is inside.
    pub fn write(&mut self, at: [i64; 3], value: Texel) {
        let format = self.shape.format;
        let Some(place) = self.place(self.used(at)) else {
            return;
        };
        let channels = value.iter().take(format.channels() as usize);
        let bytes: Vec<u8> = channels.flat_map(|&v| to_bytes(format, v)).collect();
        self.bytes[place..place + bytes.len()].copy_from_slice(&bytes);
    }

    /// What a sampler gives.
    pub fn sample(&self, state: SamplerState, at: [f64; 3]) -> Texel {
        self.filtered(state, at, |index| self.texel(index))
    }

    /// Whether the sampler's comparison holds between a number, as a texel would hold it, and the first channel of a texel.
    fn holds(&self, state: SamplerState, number: f64, index: [i64; 3]) -> f64 {
        let number = from_bytes(self.shape.format, &to_bytes(self.shape.format, number));
        let order = number.partial_cmp(&self.texel(index)[0]);
        let orders: &[Ordering] = match state.comparison {
            Comparison::Never => &[],
            Comparison::Less => &[Ordering::Less],
            Comparison::Equal => &[Ordering::Equal],
            Comparison::LessEqual => &[Ordering::Less, Ordering::Equal],
            Comparison::Greater => &[Ordering::Greater],
            Comparison::NotEqual => &[Ordering::Less, Ordering::Greater],
            Comparison::GreaterEqual => &[Ordering::Greater, Ordering::Equal],
            Comparison::Always => &[Ordering::Less, Ordering::Greater, Ordering::Equal],
        };
        f64::from(u8::from(order.is_some_and(|o| orders.contains(&o))))
    }

    /// The part of the texels under the filter for which the comparison holds.
    pub fn compare(&self, state: SamplerState, at: [f64; 3], number: f64) -> f64 {
        self.filtered(state, at, |index| {
            [self.holds(state, number, index), 0.0, 0.0, 0.0]
        })[0]
    }

    /// For which of the four texels around a point it holds: lower left, lower right, upper right, upper left.
    pub fn compare_four(&self, state: SamplerState, at: [f64; 3], number: f64) -> [f64; 4] {
        [(false, true), (true, true), (true, false), (false, false)].map(|(right, low)| {
            let (x, _) = self.neighbour(state, true, 0, at[0], right);
            let (y, _) = self.neighbour(state, true, 1, at[1], low);
            let axes = self.shape.kind.axes();
            let z = match axes {
                3 => self.neighbour(state, false, 2, at[2], false).0,
                _ => 0,
            };
            self.holds(state, number, [x, y, z])
        })
    }

    /// Logarithm of the longer of two distances.
    pub fn level(&self, state: SamplerState, distances: [[f64; 3]; 2]) -> f64 {
        let axes = self.shape.kind.axes() as usize;
        let length = |d: [f64; 3]| {
            let mut sum = 0.0;
            for (k, &distance) in d.iter().enumerate().take(axes) {
                let texels = if state.normalized {
                    distance * f64::from(self.shape.extent[k])
                } else {
                    distance
                };
                if self.shape.kind.layer_axis() != Some(k as u32) {
                    sum += texels * texels;
                }
            }
            sum.sqrt()
        };
        length(distances[0]).max(length(distances[1])).log2()
    }

    fn filtered(
        &self,
        state: SamplerState,
        at: [f64; 3],
        texel: impl Fn([i64; 3]) -> Texel,
    ) -> Texel {
        let axes = self.shape.kind.axes() as usize;
        let linear = state.linear && !whole(self.shape.format);
        let mut sum = [0.0; 4];
        for corner in 0..8_usize {
            let (mut index, mut weight) = ([0; 3], 1.0);
            for k in 0..3 {
                let upper = corner >> k & 1 != 0;
                let (i, w) = if k < axes {
                    self.neighbour(state, linear, k, at[k], upper)
                } else if upper {
                    (0, 0.0)
                } else {
                    (0, 1.0)
                };
                index[k] = i;
                weight *= w;
            }
            if weight != 0.0 {
                let texel = texel(index);
                for (to, v) in sum.iter_mut().zip(texel) {
                    *to += weight * v;
                }
            }
        }
        sum
    }

    /// One of two neighbours along a coordinate, -1 for the border, and its weight.
    fn neighbour(
        &self,
        state: SamplerState,
        linear: bool,
        k: usize,
        s: f64,
        upper: bool,
    ) -> (i64, f64) {
        let size = i64::from(self.shape.extents()[k]);
        let only = |i: i64| if upper { (i, 0.0) } else { (i, 1.0) };
        if self.shape.kind.layer_axis() == Some(k as u32) {
            return only((s.round_ties_even() as i64).clamp(0, size - 1));
        }
        let w = size as f64;
        let u = match (state.normalized, state.addressing) {
            (true, Addressing::Repeat) => (s - s.floor()) * w,
            (true, Addressing::Mirror) => (s - 2.0 * (0.5 * s).round_ties_even()).abs() * w,
            (true, _) => s * w,
            (false, _) => s,
        };
        let wrapped = |i: i64| match state.addressing {
            Addressing::Repeat if i < 0 => i + size,
            Addressing::Repeat if i >= size => i - size,
            Addressing::Mirror | Addressing::Edge => i.clamp(0, size - 1),
            _ if i < 0 || i >= size => -1,
            _ => i,
        };
        if !linear {
            return only(wrapped(u.floor() as i64));
        }
        let first = (u - 0.5).floor();
        let fraction = u - 0.5 - first;
        if upper {
            (wrapped(first as i64 + 1), fraction)
        } else {
            (wrapped(first as i64), 1.0 - fraction)
        }
    }
}
