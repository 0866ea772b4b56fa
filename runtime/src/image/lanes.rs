//! Samples for all lanes of a message at once.
//!
//! [`super::sample`] is the definition, lane by lane, and the interpreter uses nothing else. This does the same operations in the same
//! order, so that the bits are the same, for what programs do most: images without layers, whose channels are in
//! the order RGBA or BGRA, with coordinates that are clamped or have a border. For all else it returns false and does nothing.
//!
//! Processors with AVX2 have `eights` for it. The loops here become vector code on others; texels are [`super::fetch`]'s part.

use super::fetch::{Row, Source, Texels, WIDE};
use super::sample::{NAN, View};
use super::{Addressing, Channel, Order};
use crate::abi::{Image, Sampler};

/// Neighbours along a coordinate, as [`super::sample`] has them of one lane.
#[derive(Clone, Copy)]
struct Steps {
    /// Bytes from the first texel along this coordinate to both neighbours.
    offset: [Row<u64>; 2],
    /// All bits set where there is no such texel.
    outside: [Row<u32>; 2],
    weight: Row<f32>,
}

impl Steps {
    const NONE: Steps = Steps {
        offset: [[0; WIDE]; 2],
        outside: [[0; WIDE]; 2],
        weight: [0.0; WIDE],
    };

    /// Whether a second neighbour counts for any lane.
    #[inline(always)]
    fn mixes(&self) -> bool {
        let any = |any, &weight: &f32| any | (weight != 0.0);
        self.weight.iter().fold(false, any)
    }
}

/// All lanes of a row.
const ALL: u32 = u32::MAX >> (32 - WIDE);

/// An image and how it is sampled.
pub(super) struct Sampled<'a> {
    pub(super) image: &'a Image,
    pub(super) source: Source<'a>,
    pub(super) axes: usize,
    /// Whether there are no texels: nothing is in such an image, not even at its edges.
    pub(super) empty: bool,
    /// Whether coordinates beyond the edges are those at the edges.
    pub(super) clamped: bool,
    /// Whether coordinates run from 0 to 1.
    pub(super) normalized: bool,
    /// Whether neighbours are mixed.
    pub(super) mixes: bool,
    /// True if 32 bits are enough for the offsets of all texels.
    small: bool,
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

/// Whether the processor has what `eights` needs.
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
    let axes = image.axes as usize;
    let sampled = Sampled {
        image,
        source: Source { image, format },
        axes,
        empty: image.extent.iter().take(axes).any(|&n| n == 0),
        clamped: sampler.address == Addressing::Edge as u32,
        normalized: sampler.normalized != 0,
        mixes: sampler.linear != 0 && !format.channel().is_integer(),
        small: is_small(image),
    };
    // SAFETY: as promised.
    unsafe {
        #[cfg(target_arch = "x86_64")]
        if vectors && sampled.small {
            super::eights::all_lanes(&sampled, (lanes, enabled), block);
            return true;
        }
        let _ = vectors;
        all_lanes(&sampled, lanes, enabled, block);
    }
    true
}

/// True if 32 bits are enough for the offsets of all texels.
pub(super) fn is_small(image: &Image) -> bool {
    let last = (0..image.axes as usize).try_fold(0u64, |sum, k| {
        let span = u64::from(image.extent[k]).checked_mul(image.pitch[k])?;
        sum.checked_add(span)
    });
    last.is_some_and(|last| last <= u64::from(u32::MAX))
}

/// # Safety
/// As [`sample`].
unsafe fn all_lanes(sampled: &Sampled<'_>, lanes: usize, enabled: u32, block: *mut u32) {
    let row = lanes.next_multiple_of(4);
    let mut steps = [Steps::NONE; 3];
    for first in (0..lanes).step_by(WIDE) {
        let count = (lanes - first).min(WIDE);
        let enabled = enabled >> first & ALL;
        let mut texels = [[0; WIDE]; 4];
        if enabled != 0 {
            for (k, steps) in steps.iter_mut().enumerate().take(sampled.axes) {
                let mut x = [0; WIDE];
                // SAFETY: a row of the block has as many lanes.
                unsafe { copy(block.add(k * row + first), x.as_mut_ptr(), count) };
                sampled.along(k, &x, steps);
            }
            // SAFETY: as promised; these are neighbours in the image.
            unsafe { sampled.mixed(&steps, &mut texels) };
        }
        if enabled != ALL >> (WIDE - count) {
            for component in &mut texels {
                for (lane, value) in component.iter_mut().enumerate() {
                    // All bits set for a lane that is enabled.
                    *value &= 0u32.wrapping_sub(enabled >> lane & 1);
                }
            }
        }
        for (c, component) in texels.iter().enumerate() {
            // SAFETY: a row of the block has as many lanes.
            unsafe { copy(component.as_ptr(), block.add((3 + c) * row + first), count) };
        }
    }
}

/// Copies the numbers of a few lanes, at most [`WIDE`].
///
/// # Safety
/// As many must be readable and writable.
#[inline(always)]
unsafe fn copy(from: *const u32, to: *mut u32, count: usize) {
    // SAFETY: as promised.
    unsafe {
        match count {
            // Without a call, and all at once.
            WIDE => to
                .cast::<Row<u32>>()
                .write_unaligned(from.cast::<Row<u32>>().read_unaligned()),
            8 => to
                .cast::<[u32; 8]>()
                .write_unaligned(from.cast::<[u32; 8]>().read_unaligned()),
            _ => copy_some(from, to, count),
        }
    }
}

/// [`copy`] of any number.
///
/// # Safety
/// As there.
#[cold]
#[inline(never)]
unsafe fn copy_some(from: *const u32, to: *mut u32, count: usize) {
    // SAFETY: as promised.
    unsafe { to.copy_from_nonoverlapping(from, count) };
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
    /// Neighbours along a coordinate; without a filter only the first ones.
    #[inline(always)]
    fn along(&self, k: usize, x: &Row<u32>, out: &mut Steps) {
        let size = self.image.extent[k];
        let scale = size as f32;
        let mut at = [[0; WIDE]; 2];
        for lane in 0..WIDE {
            let x = f32::from_bits(x[lane]);
            let x = if self.normalized { x * scale } else { x };
            let x = if self.mixes { x - 0.5 } else { x };
            let first = x.floor();
            // Beyond 32 bits is as far outside as the farthest number of 32 bits.
            let i = saturating(first);
            at[0][lane] = i;
            at[1][lane] = i.saturating_add(1);
            out.weight[lane] = x - first;
        }
        if !self.mixes {
            out.weight = [0.0; WIDE];
            return self.offsets(k, &at[0], &mut out.offset[0], &mut out.outside[0]);
        }
        for (n, at) in at.iter().enumerate() {
            self.offsets(k, at, &mut out.offset[n], &mut out.outside[n]);
        }
    }

    /// Where texels are along a coordinate. Those that do not exist have the place of one that does.
    #[inline(always)]
    fn offsets(&self, k: usize, at: &Row<i32>, offset: &mut Row<u64>, outside: &mut Row<u32>) {
        let last = self.image.extent[k] as i32 - 1;
        let pitch = self.image.pitch[k];
        let mut nearest = [0u32; WIDE];
        for lane in 0..WIDE {
            nearest[lane] = at[lane].min(last).max(0).cast_unsigned();
        }
        if !self.clamped {
            for lane in 0..WIDE {
                let beyond = nearest[lane] != at[lane].cast_unsigned();
                outside[lane] = 0u32.wrapping_sub(beyond.into());
            }
        }
        if self.small {
            // Products of 32 bits are one instruction.
            for lane in 0..WIDE {
                offset[lane] = nearest[lane].wrapping_mul(pitch as u32).into();
            }
        } else {
            for lane in 0..WIDE {
                offset[lane] = u64::from(nearest[lane]) * pitch;
            }
        }
    }

    /// Texels, mixed along all coordinates, x first.
    ///
    /// # Safety
    /// As [`all_lanes`].
    #[inline(always)]
    unsafe fn mixed(&self, steps: &[Steps; 3], out: &mut Texels) {
        let mixes: [bool; 3] = std::array::from_fn(|k| self.mixes && steps[k].mixes());
        if mixes == [false; 3] {
            // SAFETY: as promised.
            return unsafe { self.texels(steps, 0, out) };
        }
        // What waits for its second neighbour along each coordinate.
        let mut first = [[[0; WIDE]; 4]; 3];
        // A bit of a corner's number says which neighbour it is along a coordinate.
        let counts = |corner: usize| (0..3).all(|k| corner >> k & 1 == 0 || mixes[k]);
        for corner in (0..8).filter(|&corner| counts(corner)) {
            // SAFETY: as promised.
            unsafe { self.texels(steps, corner, out) };
            for k in (0..3).filter(|&k| mixes[k]) {
                if corner >> k & 1 == 0 {
                    first[k] = *out;
                    break;
                }
                mix(&first[k], out, &steps[k].weight);
            }
        }
    }

    /// The texels of a corner; the border, where there is none.
    ///
    /// # Safety
    /// As [`all_lanes`].
    #[inline(always)]
    unsafe fn texels(&self, steps: &[Steps; 3], corner: usize, out: &mut Texels) {
        let mut offset = [0; WIDE];
        for (k, steps) in steps.iter().enumerate().take(self.axes) {
            let along = &steps.offset[corner >> k & 1];
            for lane in 0..WIDE {
                offset[lane] += along[lane];
            }
        }
        if self.empty {
            return self.source.border(&[u32::MAX; WIDE], out);
        }
        // SAFETY: as promised; these are texels of the image.
        unsafe { self.source.fetch(&offset, out) };
        if self.clamped {
            return;
        }
        let mut outside = [0; WIDE];
        for (k, steps) in steps.iter().enumerate().take(self.axes) {
            let along = &steps.outside[corner >> k & 1];
            for lane in 0..WIDE {
                outside[lane] |= along[lane];
            }
        }
        self.source.border(&outside, out);
    }
}

/// Mixes texels with the second ones, in whose place the result is. A weight of zero leaves the first as it is.
#[inline(always)]
fn mix(first: &Texels, second: &mut Texels, weight: &Row<f32>) {
    for (first, second) in first.iter().zip(second) {
        for lane in 0..WIDE {
            let (a, b) = (f32::from_bits(first[lane]), f32::from_bits(second[lane]));
            let mixed = a + (b - a) * weight[lane];
            second[lane] = if weight[lane] == 0.0 {
                first[lane]
            } else if mixed.is_nan() {
                NAN
            } else {
                mixed.to_bits()
            };
        }
    }
}
