//! Samples for all lanes of a message at once, in loops that become vector code.
//!
//! [`super::sample`] is the definition, lane by lane, and the interpreter uses nothing else. This does the same operations in the same
//! order, so that the bits are the same, for what programs do most: images without layers, whose channels are in
//! the order RGBA or BGRA, with coordinates that are clamped or have a border. For all else it returns false and does nothing.

use super::format::{Texel, border, missing};
use super::sample::View;
use super::{Addressing, Channel, ImageFormat, Order};
use crate::abi::{Image, Sampler};
use crate::element::load;

/// Components of the texels of a number of lanes.
type Texels<const N: usize> = [[u32; N]; 4];

/// Neighbours along a coordinate, as [`super::sample`] has them of one lane.
#[derive(Clone, Copy)]
struct Steps<const N: usize> {
    at: [[i32; N]; 2],
    weight: [f32; N],
}

impl<const N: usize> Steps<N> {
    /// Whether a second neighbour counts for any lane.
    #[inline(always)]
    fn mixes(&self) -> bool {
        self.weight.iter().any(|&w| w != 0.0)
    }
}

/// An image and how it is sampled.
struct Sampled<'a> {
    image: &'a Image,
    format: ImageFormat,
    axes: usize,
    /// Whether coordinates beyond the edges are those at the edges.
    clamped: bool,
    enabled: u32,
}

/// With this many enabled lanes or fewer, it is faster to sample them one by one.
const FEW: u32 = 2;

/// Samples for the enabled ones of a number of lanes. The block has the coordinates in its first three rows, and takes the texels in the four
/// rows that follow. False where nothing was done.
///
/// # Safety
/// The image must be bound as [`crate::abi`] says. The block must have seven rows of `lanes`, rounded up to a multiple of four.
pub(crate) unsafe fn sample(
    view: View<'_>,
    sampler: Sampler,
    lanes: (usize, u32),
    block: *mut u32,
) -> bool {
    // SAFETY: as promised.
    lanes.1.count_ones() > FEW && unsafe { sample_in(vectors(), view, sampler, lanes, block) }
}

/// Whether the processor has what [`in_vectors`] needs.
pub(super) fn vectors() -> bool {
    #[cfg(target_arch = "x86_64")]
    let there = std::is_x86_feature_detected!("avx2");
    #[cfg(not(target_arch = "x86_64"))]
    let there = false;
    there
}

/// [`sample`], in vectors if the processor has them, or as any processor can.
///
/// # Safety
/// As [`sample`], and `vectors` must not be more than [`vectors`] says.
pub(super) unsafe fn sample_in(
    vectors: bool,
    view: View<'_>,
    sampler: Sampler,
    (lanes, enabled): (usize, u32),
    block: *mut u32,
) -> bool {
    let (image, format) = view.parts();
    let able = matches!(format.order(), Order::Rgba | Order::Bgra)
        && !(format.channel() == Channel::Float && format.channel_bytes() != 4)
        && (0..=Addressing::Edge as u32).contains(&sampler.address)
        && (1..=3).contains(&image.axes)
        && image.layer_axis >= 3
        && image.extent.iter().all(|&n| n < i32::MAX as u32)
        && lanes <= 32;
    if !able {
        return false;
    }
    let sampled = Sampled {
        image,
        format,
        axes: image.axes as usize,
        clamped: sampler.address == Addressing::Edge as u32,
        enabled,
    };
    // SAFETY: as promised.
    unsafe {
        match lanes {
            0..=16 => lanes_in::<16>(vectors, &sampled, sampler, lanes, block),
            _ => lanes_in::<32>(vectors, &sampled, sampler, lanes, block),
        }
    }
    true
}

/// [`all_lanes`], compiled for the processor.
///
/// # Safety
/// As [`sample_in`].
unsafe fn lanes_in<const N: usize>(
    vectors: bool,
    sampled: &Sampled<'_>,
    sampler: Sampler,
    lanes: usize,
    block: *mut u32,
) {
    // SAFETY: as promised.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if vectors {
            return in_vectors::<N>(sampled, sampler, lanes, block);
        }
        let _ = vectors;
        all_lanes::<N>(sampled, sampler, lanes, block);
    }
}

/// [`all_lanes`] in wide vectors, and with instructions that round.
///
/// # Safety
/// As [`sample`]. The processor must have the feature.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn in_vectors<const N: usize>(
    sampled: &Sampled<'_>,
    sampler: Sampler,
    lanes: usize,
    block: *mut u32,
) {
    // SAFETY: as promised.
    unsafe { all_lanes::<N>(sampled, sampler, lanes, block) }
}

/// # Safety
/// As [`sample`].
#[inline(always)]
unsafe fn all_lanes<const N: usize>(
    sampled: &Sampled<'_>,
    sampler: Sampler,
    lanes: usize,
    block: *mut u32,
) {
    let row = lanes.next_multiple_of(4);
    let mixes = sampler.linear != 0 && !sampled.format.channel().is_integer();
    let mut steps = [Steps {
        at: [[0; N]; 2],
        weight: [0.0; N],
    }; 3];
    for (k, steps) in steps.iter_mut().enumerate().take(sampled.axes) {
        let mut x = [0; N];
        // SAFETY: a row of the block, and N is not less.
        unsafe { std::ptr::copy_nonoverlapping(block.add(k * row), x.as_mut_ptr(), lanes) };
        let x = x.map(f32::from_bits);
        let size = sampled.image.extent[k] as f32;
        *steps = along(&x, (sampler.normalized != 0).then_some(size), mixes);
    }
    // SAFETY: as promised.
    let texels = unsafe {
        if mixes {
            sampled.mixed(&steps)
        } else {
            sampled.texels(&steps, 0)
        }
    };
    for (c, component) in texels.iter().enumerate() {
        let mut component: [u32; N] = *component;
        if sampled.enabled != u32::MAX >> (32 - lanes.clamp(1, 32)) {
            for (lane, value) in component.iter_mut().enumerate() {
                *value = if sampled.enabled >> lane & 1 != 0 {
                    *value
                } else {
                    0
                };
            }
        }
        // SAFETY: a row of the block, and N is not less.
        unsafe {
            std::ptr::copy_nonoverlapping(component.as_ptr(), block.add((3 + c) * row), lanes);
        }
    }
}

/// Along a coordinate, which may be of a size that is one: two neighbours for a filter, else one.
#[inline(always)]
fn along<const N: usize>(x: &[f32; N], size: Option<f32>, pair: bool) -> Steps<N> {
    let mut out = Steps {
        at: [[0; N]; 2],
        weight: [0.0; N],
    };
    for lane in 0..N {
        let x = x[lane];
        let x = size.map_or(x, |size| x * size);
        let x = if pair { x - 0.5 } else { x };
        let first = x.floor();
        // Beyond 32 bits is as far outside as the farthest number of 32 bits.
        let i = saturating(first);
        out.at[0][lane] = i;
        out.at[1][lane] = i.saturating_add(1);
        out.weight[lane] = if pair { x - first } else { 0.0 };
    }
    out
}

/// `x as i32`, in a form that becomes vector code: the cast itself is done lane by lane.
#[inline(always)]
fn saturating(x: f32) -> i32 {
    const LIMIT: f32 = 2147483648.0;
    // The largest number below the limit.
    const MOST: f32 = 2147483520.0;
    let number = if x.is_nan() { 0.0 } else { x };
    let raised = if number > -LIMIT { number } else { -LIMIT };
    let inside = if raised < MOST { raised } else { MOST };
    // SAFETY: a number from -2^31 to the largest one below 2^31.
    let converted = unsafe { inside.to_int_unchecked::<i32>() };
    if x >= LIMIT { i32::MAX } else { converted }
}

impl Sampled<'_> {
    /// Mixes along all coordinates, x first.
    ///
    /// # Safety
    /// As [`sample`].
    #[inline(always)]
    unsafe fn mixed<const N: usize>(&self, steps: &[Steps<N>; 3]) -> Texels<N> {
        let mixes = [steps[0].mixes(), steps[1].mixes(), steps[2].mixes()];
        if mixes == [false; 3] {
            // SAFETY: as promised.
            return unsafe { self.texels(steps, 0) };
        }
        // A bit of a corner's number says which neighbour it is along a coordinate.
        let counts = |corner: usize| (0..3).all(|k| corner >> k & 1 == 0 || mixes[k]);
        let mut corners = [[[0; N]; 4]; 8];
        for corner in (0..8).filter(|&corner| counts(corner)) {
            // SAFETY: as promised.
            corners[corner] = unsafe { self.texels(steps, corner) };
        }
        for k in (0..3).filter(|&k| mixes[k]) {
            let first = |corner: &usize| corner & ((2 << k) - 1) == 0 && counts(*corner);
            for corner in (0..8).filter(first) {
                let second = corners[corner | 1 << k];
                mix(&mut corners[corner], &second, &steps[k].weight);
            }
        }
        corners[0]
    }

    /// The texels of a corner; the border, where there is none.
    ///
    /// # Safety
    /// As [`sample`].
    #[inline(always)]
    unsafe fn texels<const N: usize>(&self, steps: &[Steps<N>; 3], corner: usize) -> Texels<N> {
        let mut raw = [[0; N]; 4];
        // Nothing is in an image of no texels, not even at its edges.
        if (0..self.axes).any(|k| self.image.extent[k] == 0) {
            return self.decoded(&raw, &[false; N]);
        }
        let mut inside = [true; N];
        let mut nearest = [[0; N]; 3];
        for (k, steps) in steps.iter().enumerate().take(self.axes) {
            let last = self.image.extent[k] as i32 - 1;
            for lane in 0..N {
                let i = steps.at[corner >> k & 1][lane];
                nearest[k][lane] = i.min(last).max(0).cast_unsigned();
                inside[lane] &= self.clamped || nearest[k][lane].cast_signed() == i;
            }
        }
        // SAFETY: as promised; these are texels of the image.
        unsafe {
            match self.is_small() {
                true => self.load_all::<N, true>(&nearest, &mut raw),
                false => self.load_all::<N, false>(&nearest, &mut raw),
            }
        }
        self.decoded(&raw, &inside)
    }

    /// True if 32 bits are enough for the offsets of all texels.
    fn is_small(&self) -> bool {
        let last = (0..self.axes).try_fold(0u64, |sum, k| {
            let span = u64::from(self.image.extent[k]).checked_mul(self.image.pitch[k])?;
            sum.checked_add(span)
        });
        last.is_some_and(|last| last <= u64::from(u32::MAX))
    }

    /// Words of the texels at coordinates that are inside of an image. Lanes that are not enabled are read as well: nothing comes of it.
    ///
    /// # Safety
    /// As [`sample`]. If the image is said to be small, it must be.
    #[inline(always)]
    unsafe fn load_all<const N: usize, const SMALL: bool>(
        &self,
        at: &[[u32; N]; 3],
        raw: &mut [[u32; N]; 4],
    ) {
        let mut offset = [0u64; N];
        if SMALL {
            // Products of 32 bits are vector code.
            let mut short = [0u32; N];
            for (k, at) in at.iter().enumerate().take(self.axes) {
                let pitch = self.image.pitch[k] as u32;
                for lane in 0..N {
                    short[lane] = short[lane].wrapping_add(at[lane].wrapping_mul(pitch));
                }
            }
            offset = short.map(u64::from);
        } else {
            for (k, at) in at.iter().enumerate().take(self.axes) {
                for lane in 0..N {
                    offset[lane] += u64::from(at[lane]) * self.image.pitch[k];
                }
            }
        }
        // A constant number of bytes is one load.
        // SAFETY: as promised.
        unsafe {
            match self.format.texel_bytes() {
                1 => self.load::<N, 1>(&offset, 0, &mut raw[0]),
                2 => self.load::<N, 2>(&offset, 0, &mut raw[0]),
                bytes => {
                    let words = raw.iter_mut().take(bytes as usize / 4);
                    for (word, raw) in words.enumerate() {
                        self.load::<N, 4>(&offset, 4 * word, raw);
                    }
                }
            }
        }
    }

    /// Bytes of texels, from a byte of each on.
    ///
    /// # Safety
    /// As [`sample`]. Each offset must be that of a texel, which must have `first + BYTES` bytes at least.
    #[inline(always)]
    unsafe fn load<const N: usize, const BYTES: u32>(
        &self,
        offset: &[u64; N],
        first: usize,
        raw: &mut [u32; N],
    ) {
        for lane in 0..N {
            let from = self.image.base.wrapping_add(offset[lane] as usize + first);
            // SAFETY: in a texel of the image.
            raw[lane] = unsafe { load(from, BYTES) } as u32;
        }
    }

    #[inline(always)]
    fn decoded<const N: usize>(&self, raw: &[[u32; N]; 4], inside: &[bool; N]) -> Texels<N> {
        let bits = self.format.channel_bytes() * 8;
        let mut out: Texels<N> = missing(self.format).map(|value| [value; N]);
        for c in 0..self.format.channels() {
            let at = c * bits;
            let word = &raw[(at / 32) as usize & 3];
            let component = &mut out[self.format.order().component(c as usize) & 3];
            channel(self.format, word, at % 32, component);
        }
        if inside.iter().all(|&inside| inside) {
            return out;
        }
        let outside: Texel = border(self.format);
        for (component, border) in out.iter_mut().zip(outside) {
            for lane in 0..N {
                component[lane] = if inside[lane] {
                    component[lane]
                } else {
                    border
                };
            }
        }
        out
    }
}

/// Mixes the second texels into the first ones. A weight of zero leaves the first as it is.
#[inline(always)]
fn mix<const N: usize>(first: &mut Texels<N>, second: &Texels<N>, weight: &[f32; N]) {
    for (first, second) in first.iter_mut().zip(second) {
        for lane in 0..N {
            let (a, b) = (f32::from_bits(first[lane]), f32::from_bits(second[lane]));
            let mixed = (a + (b - a) * weight[lane]).to_bits();
            first[lane] = if weight[lane] == 0.0 {
                first[lane]
            } else {
                mixed
            };
        }
    }
}

/// The values of a channel, whose bits begin at a bit of the raw ones: what [`super::format::decode`] makes of them.
#[inline(always)]
fn channel<const N: usize>(format: ImageFormat, raw: &[u32; N], at: u32, out: &mut [u32; N]) {
    let bits = format.channel_bytes() * 8;
    let most = u32::MAX >> (32 - bits);
    let place = |raw: u32| raw >> at & most;
    // At most 16 bits where it becomes a float.
    let signed = |raw: u32| (raw << (32 - bits)).cast_signed() >> (32 - bits);
    match format.channel() {
        Channel::Uint | Channel::Float => {
            for lane in 0..N {
                out[lane] = place(raw[lane]);
            }
        }
        Channel::Int => {
            for lane in 0..N {
                out[lane] = signed(place(raw[lane])).cast_unsigned();
            }
        }
        Channel::Unorm => {
            for lane in 0..N {
                let value = place(raw[lane]).cast_signed();
                out[lane] = (value as f32 / most as f32).to_bits();
            }
        }
        Channel::Snorm => {
            for lane in 0..N {
                let value = signed(place(raw[lane]));
                out[lane] = (value as f32 / (most >> 1) as f32).max(-1.0).to_bits();
            }
        }
    }
}
