//! Coordinates to texels, and filters.
//!
//! Arithmetic is single precision, one operation after the other as written, so that every engine gives the same bits.

use super::compare::Test;
use super::format::{Texel, border, decode, encode, missing, ordered};
use super::lod::level;
use super::{Addressing, ImageFormat};
use crate::abi::{Image, ImageTable, SURFACES, Sampler, image as op};
use crate::element::{load, store};
use crate::helpers::swap;

/// What filters make of texels, or of coordinates, that are not numbers. Which of two such is the result of an operation is up to the compiler.
pub(super) const NAN: u32 = f32::NAN.to_bits();

/// A bound image.
#[derive(Clone, Copy)]
pub(crate) struct View<'a> {
    image: &'a Image,
    format: ImageFormat,
    /// What filters take of texels instead of their colours.
    test: Option<Test>,
}

/// What one lane asks of an image.
#[derive(Clone, Copy, Debug)]
pub struct ImageLane {
    /// One of [`crate::abi::image`].
    pub op: u32,
    /// Channels that are written, a bit each.
    pub channels: u32,
    /// Coordinates as the message has them.
    pub at: [u32; 3],
    /// Operands.
    pub data: [u32; 4],
}

/// The image and the sampler of two indices, of which the low bytes count.
pub(crate) fn bound(table: &ImageTable, surface: u32, sampler: u32) -> (Option<View<'_>>, Sampler) {
    let image = &table.images[surface as usize % SURFACES];
    let view = ImageFormat::from_code(image.format).map(|format| View {
        image,
        format,
        test: None,
    });
    (view, table.samplers[sampler as usize % SURFACES])
}

/// Along one coordinate: two neighbours, of which `None` is the border, and the second one's weight.
#[derive(Clone, Copy)]
struct Step {
    at: [Option<u64>; 2],
    weight: f32,
}

impl<'a> View<'a> {
    /// The image and the format of its texels.
    pub(super) fn parts(self) -> (&'a Image, ImageFormat) {
        (self.image, self.format)
    }
}

impl View<'_> {
    fn axes(&self) -> usize {
        (self.image.axes as usize).min(3)
    }

    /// Where a texel is, if it is inside.
    fn texel(&self, at: [u64; 3]) -> Option<*mut u8> {
        let mut offset = 0;
        for (k, &c) in at.iter().enumerate().take(self.axes()) {
            if c >= u64::from(self.image.extent[k]) {
                return None;
            }
            offset += c * self.image.pitch[k];
        }
        Some(self.image.base.wrapping_add(offset as usize))
    }

    /// The texel at integer coordinates; what is beyond the edges is not.
    pub(crate) fn inside(&self, at: [u32; 3]) -> Option<*mut u8> {
        self.texel(at.map(u64::from))
    }

    /// # Safety
    /// `from` must be a texel of the image.
    unsafe fn read(&self, from: *mut u8) -> Texel {
        let bytes = self.format.channel_bytes();
        let mut channels = [0; 4];
        let count = self.format.channels();
        for (c, value) in (0..count).zip(&mut channels) {
            // SAFETY: the texel has that many channels.
            let raw = unsafe { load(from.wrapping_add((c * bytes) as usize), bytes) };
            *value = decode(self.format, raw as u32);
        }
        ordered(self.format, channels.get(..count as usize).unwrap_or(&[]))
    }

    /// # Safety
    /// `to` must be a texel of the image.
    unsafe fn write(&self, to: *mut u8, value: Texel, channels: u32) {
        let bytes = self.format.channel_bytes();
        let all = (1 << self.format.channels()) - 1;
        let order = self.format.order();
        let channels = (0..4).fold(0, |in_memory, c| {
            in_memory | (channels >> order.component(c) & 1) << c
        });
        let whole = self.format.texel_bytes();
        let raw = (0..self.format.channels()).rev().fold(0, |raw, c| {
            raw << (8 * bytes) | u128::from(encode(self.format, value[order.component(c as usize)]))
        });
        // SAFETY: the texel has that many bytes. In as few pieces as can be, so that texels that two lanes write are one's.
        unsafe {
            if channels & all == all && whole <= 8 {
                return store(to, whole, raw as u64);
            }
            for c in (0..self.format.channels()).filter(|c| channels >> c & 1 != 0) {
                let part = (raw >> (8 * bytes * c)) as u64;
                store(to.wrapping_add((c * bytes) as usize), bytes, part);
            }
        }
    }

    /// True where comparing samples have a meaning: of no other formats, and not of volumes, for which Direct3D leaves them
    /// undefined.
    fn compares(&self) -> bool {
        let volume = self.image.axes == 3 && self.image.layer_axis == 3;
        self.format.compares() && !volume
    }

    /// The same image, of whose texels filters get answers.
    fn compared(self, sampler: Sampler, reference: u32) -> Self {
        let test = Some(Test::new(sampler, self.format, reference));
        View { test, ..self }
    }

    /// The level of detail: of the one there is, 0, and as neighbours' coordinates have it.
    fn level(&self, gradients: [[u32; 3]; 2], sampler: Sampler) -> Texel {
        let texels = |k: usize, d: u32| match k {
            _ if k >= self.axes() || self.image.layer_axis as usize == k => 0.0,
            _ if sampler.normalized != 0 => {
                f64::from(f32::from_bits(d)) * f64::from(self.image.extent[k])
            }
            _ => f64::from(f32::from_bits(d)),
        };
        let level = level(gradients.map(|g| std::array::from_fn(|k| texels(k, g[k]))));
        [0, level.to_bits(), 0, 0]
    }

    /// The cell that atomics change, if the format is one of a single channel of a given number of bytes.
    pub(crate) fn cell(&self, at: [u32; 3], bytes: u32) -> Option<*mut u8> {
        let single = self.format.texel_bytes() == bytes && self.format.channels() == 1;
        self.inside(at).filter(|_| single)
    }

    /// Coordinates a given number of texels away. Layers stay.
    fn moved(&self, at: [u32; 3], by: [u32; 3]) -> [u32; 3] {
        std::array::from_fn(|k| match self.image.layer_axis as usize {
            layer if layer == k => at[k],
            _ => at[k].wrapping_add(by[k]),
        })
    }

    fn size(&self, level: u32) -> Texel {
        let [x, y, z] = self.image.extent;
        match (level, self.axes()) {
            (0, 1) => [x, 0, 0, 1],
            (0, 2) => [x, y, 0, 1],
            (0, _) => [x, y, z, 1],
            _ => [0, 0, 0, 1],
        }
    }

    /// `pair` asks for two neighbours, `by` moves a given number of texels away.
    fn step(&self, k: usize, x: f32, sampler: Sampler, pair: bool, by: u32) -> Step {
        let size = self.image.extent[k];
        let by = i64::from(by.cast_signed());
        let edge = |i: i64| Some(i.clamp(0, i64::from(size) - 1) as u64);
        if self.image.layer_axis as usize == k {
            let layer = edge(x.round_ties_even() as i64);
            return Step {
                at: [layer; 2],
                weight: 0.0,
            };
        }
        let plain = |i: i64| match sampler.address {
            a if a == Addressing::Edge as u32 || a == Addressing::Mirror as u32 => edge(i),
            _ => u64::try_from(i).ok().filter(|&i| i < u64::from(size)),
        };
        // A reflected coordinate would reflect the offset too.
        let mirror = sampler.address == Addressing::Mirror as u32;
        let unfolded = mirror && by != 0 && sampler.normalized != 0;
        let index = |i: i64| match sampler.address {
            a if a == Addressing::Repeat as u32 => {
                Some(i.saturating_add(by).rem_euclid(size.into()) as u64)
            }
            _ if unfolded => {
                let last = 2 * i64::from(size) - 1;
                let i = i.saturating_add(by).rem_euclid(last + 1);
                edge(i.min(last - i))
            }
            _ => plain(i.saturating_add(by)),
        };
        let x = if sampler.normalized != 0 {
            let folded = match sampler.address {
                a if a == Addressing::Repeat as u32 => x - x.floor(),
                _ if mirror && !unfolded => (x - 2.0 * (0.5 * x).round_ties_even()).abs(),
                _ => x,
            };
            folded * size as f32
        } else {
            x
        };
        if !pair {
            let i = index(x.floor() as i64);
            return Step {
                at: [i; 2],
                weight: 0.0,
            };
        }
        let x = x - 0.5;
        let first = x.floor();
        let i = first as i64;
        Step {
            at: [index(i), index(i.saturating_add(1))],
            weight: x - first,
        }
    }

    /// Neighbours along all coordinates, two of them along the first `pairs`.
    fn steps(&self, at: [u32; 3], sampler: Sampler, pairs: usize, by: [u32; 3]) -> [Step; 3] {
        std::array::from_fn(|k| {
            if k < self.axes() {
                self.step(k, f32::from_bits(at[k]), sampler, k < pairs, by[k])
            } else {
                Step {
                    at: [Some(0); 2],
                    weight: 0.0,
                }
            }
        })
    }

    /// # Safety
    /// The image must be bound as [`crate::abi`] says.
    unsafe fn sample(&self, at: [u32; 3], sampler: Sampler, by: [u32; 3]) -> Texel {
        let mixes = sampler.linear != 0 && !self.format.channel().is_integer();
        let steps = self.steps(at, sampler, if mixes { 3 } else { 0 }, by);
        // SAFETY: as promised.
        unsafe { self.mixed(&steps, 3, [Some(0); 3]) }
    }

    /// One channel of four texels. Of a third coordinate, the nearest.
    ///
    /// # Safety
    /// As [`View::sample`].
    unsafe fn gather(&self, at: [u32; 3], sampler: Sampler, by: [u32; 3], channels: u32) -> Texel {
        let [x, y, z] = self.steps(at, sampler, 2, by);
        let channel = (channels.trailing_zeros() & 3) as usize;
        [(0, 1), (1, 1), (1, 0), (0, 0)].map(|(i, k)| {
            // SAFETY: as promised.
            let texel = unsafe { self.mixed(&[x, y, z], 0, [x.at[i], y.at[k], z.at[0]]) };
            texel[channel]
        })
    }

    /// Mixes along the coordinates below `axes`, x first; `at` has the others.
    ///
    /// # Safety
    /// As [`View::sample`].
    unsafe fn mixed(&self, steps: &[Step; 3], axes: usize, mut at: [Option<u64>; 3]) -> Texel {
        let Some(k) = axes.checked_sub(1) else {
            let place = match at {
                [Some(x), Some(y), Some(z)] => self.texel([x, y, z]),
                _ => None,
            };
            let texel = match place {
                // SAFETY: inside.
                Some(from) => unsafe { self.read(from) },
                None => border(self.format),
            };
            return self.test.map_or(texel, |test| test.answer(texel));
        };
        let Step { at: [a, b], weight } = steps[k];
        at[k] = a;
        // SAFETY: as promised.
        let first = unsafe { self.mixed(steps, k, at) };
        if weight == 0.0 {
            return first;
        }
        at[k] = b;
        // SAFETY: as promised.
        let second = unsafe { self.mixed(steps, k, at) };
        std::array::from_fn(|c| {
            let (a, b) = (f32::from_bits(first[c]), f32::from_bits(second[c]));
            let mixed = a + (b - a) * weight;
            if mixed.is_nan() { NAN } else { mixed.to_bits() }
        })
    }

    /// Replaces a cell by what `new` makes of it; the old one.
    ///
    /// # Safety
    /// The image must be bound as [`crate::abi`] says.
    pub(crate) unsafe fn update(
        &self,
        at: [u32; 3],
        bytes: u32,
        mut new: impl FnMut(u32) -> u32,
    ) -> Option<u32> {
        let cell = self.cell(at, bytes)?;
        // SAFETY: the cell is inside.
        let mut old = unsafe { load(cell, bytes) };
        loop {
            // SAFETY: as above.
            match unsafe { swap(bytes, cell, old, new(old as u32).into()) } {
                Ok(()) => return Some(old as u32),
                Err(seen) => old = seen,
            }
        }
    }

    /// Four bytes of a row, of which `data[0]` count, from byte `at[0]` of row `at[1]` on, among the rows that `at[2]` says.
    /// Beyond the edges the nearest texel is read again and nothing is written.
    ///
    /// # Safety
    /// As [`View::update`].
    unsafe fn block(&self, access: &ImageLane) -> Texel {
        let texel = i64::from(self.format.texel_bytes());
        let width = i64::from(self.image.extent[0]) * texel;
        let height = match self.axes() {
            1 => 1,
            _ => i64::from(self.image.extent[1]),
        };
        // A field is half of the rows, of which hardware wants an even number: an odd one out belongs to neither.
        let (height, step, first) = match access.at[2] {
            op::TOP_ROWS => (height / 2, 2, 0),
            op::BOTTOM_ROWS => (height / 2, 2, 1),
            _ => (height, 1, 0),
        };
        if width < texel || height == 0 {
            return [0; 4];
        }
        let (x, y) = (access.at[0].cast_signed(), access.at[1].cast_signed());
        let mut out = 0;
        for k in 0..access.data[0].min(4) {
            let byte = i64::from(x) + i64::from(k);
            let inside = (0..width).contains(&byte) && (0..height).contains(&y.into());
            if access.op == op::BLOCK_WRITE && !inside {
                continue;
            }
            // The byte of that rank of the texel at the edge.
            let within = byte.rem_euclid(texel);
            let column = byte.div_euclid(texel).clamp(0, width / texel - 1);
            let row = i64::from(y).clamp(0, height - 1) * step + first;
            let from = self.texel([column as u64, row as u64, 0]);
            let Some(from) = from.map(|at| at.wrapping_add(within as usize)) else {
                continue;
            };
            // SAFETY: a byte of a texel that is inside.
            unsafe {
                if access.op == op::BLOCK_WRITE {
                    store(from, 1, u64::from(access.data[1] >> (8 * k)));
                } else {
                    out |= (load(from, 1) as u32) << (8 * k);
                }
            }
        }
        [out, 0, 0, 0]
    }
}

/// True where a message of this kind has nothing to do at these coordinates, which counts as out of bounds.
pub(crate) fn outside(view: Option<View<'_>>, op: u32, at: [u32; 3]) -> bool {
    let place = match (op, view) {
        (_, None) => {
            return matches!(op, op::READ | op::WRITE | op::ATOMIC | op::ATOMIC_SHORT);
        }
        (op::READ | op::WRITE, Some(view)) => view.inside(at),
        (op::ATOMIC, Some(view)) => view.cell(at, 4),
        (op::ATOMIC_SHORT, Some(view)) => view.cell(at, 2),
        (op::COMPARE | op::GATHER_COMPARE, Some(view)) => return !view.compares(),
        _ => return false,
    };
    place.is_none()
}

/// Carries out what one lane asks for, atomics excepted.
///
/// # Safety
/// The image must be bound as [`crate::abi`] says.
pub(crate) unsafe fn access(view: Option<View<'_>>, sampler: Sampler, access: &ImageLane) -> Texel {
    let Some(view) = view else {
        return [0; 4];
    };
    let [u, v, r, reference] = access.data;
    let (at, by) = (access.at, [u, v, r]);
    let compares = matches!(access.op, op::COMPARE | op::GATHER_COMPARE);
    if compares && !view.compares() {
        return [0; 4];
    }
    // SAFETY: as promised.
    unsafe {
        match access.op {
            op::WRITE => {
                if let Some(to) = view.inside(access.at) {
                    view.write(to, access.data, access.channels);
                }
                [0; 4]
            }
            op::SAMPLE => view.sample(at, sampler, [0; 3]),
            op::SAMPLE_OFFSET => view.sample(at, sampler, by),
            op::GATHER => view.gather(at, sampler, by, access.channels),
            op::COMPARE => view.compared(sampler, reference).sample(at, sampler, by),
            op::GATHER_COMPARE => {
                let view = view.compared(sampler, reference);
                view.gather(at, sampler, by, access.channels)
            }
            op::LOD => view.level([at, by], sampler),
            op::SAMPLES => [1, 0, 0, 0],
            op::FETCH_OFFSET => match view.inside(view.moved(at, by)) {
                Some(from) => view.read(from),
                None => border(view.format),
            },
            op::INFO => view.size(access.at[0]),
            op::BLOCK_READ | op::BLOCK_WRITE => view.block(access),
            _ => match (view.inside(access.at), access.op) {
                (Some(from), _) => view.read(from),
                (None, op::FETCH) => border(view.format),
                (None, _) => missing(view.format),
            },
        }
    }
}
