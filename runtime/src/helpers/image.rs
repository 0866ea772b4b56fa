//! Messages to typed surfaces and the sampler: lane after lane.

use super::atomic::one;
use crate::abi::{GroupCtx, ImageTable, image as code};
use crate::image::lanes::sample as in_lanes;
use crate::image::sample::{ImageLane, access, bound, outside};
use crate::image::write::write as write_lanes;

/// Lanes of a message, at most.
const LANES: usize = 32;

/// [`crate::abi::Helpers::image`].
///
/// # Safety
/// The arguments must be as [`crate::abi::ImageMessage`] says, from the group that runs.
pub(crate) unsafe extern "C" fn image(
    group: *const GroupCtx,
    shape: u32,
    surface: u32,
    sampler: u32,
    enabled: u32,
    block: *mut u32,
) -> u32 {
    // SAFETY: as promised, the launch outlives the group.
    let table: Option<&ImageTable> = unsafe { (*(*group).launch).images.as_ref() };
    let (view, sampler) = match table {
        Some(table) => bound(table, surface, sampler),
        None => (None, crate::abi::Sampler::default()),
    };
    let op = shape & 0xFF;
    let lanes = shape >> 8 & 0x3F;
    let row = (lanes as usize).next_multiple_of(4);
    if let (code::SAMPLE, 0, Some(view)) = (op, shape & code::CHECK, view) {
        // SAFETY: images are bound as the ABI says, and the block has seven rows.
        if unsafe { in_lanes(view, sampler, (lanes as usize, enabled), block) } {
            return 0;
        }
    }
    if let (code::WRITE, 0, Some(view)) = (op, shape & code::CHECK, view) {
        let channels = shape >> code::CHANNEL_SHIFT & 0xF;
        // SAFETY: as above.
        let beyond = unsafe { write_lanes(view, channels, (lanes as usize, enabled), block) };
        if let Some(beyond) = beyond {
            return beyond;
        }
    }
    let mut faulting = 0;
    let mut results = [[0u32; LANES]; 4];
    let mut rest = enabled & u32::MAX.checked_shr(32 - lanes.min(32)).unwrap_or(0);
    while rest != 0 {
        let lane = rest.trailing_zeros() as usize;
        rest &= rest - 1;
        // SAFETY: the block has seven rows.
        let read = |k: usize| unsafe { block.add(k * row + lane).read() };
        let at = [read(0), read(1), read(2)];
        let beyond = outside(view, op, at);
        faulting |= u32::from(beyond) << lane;
        if shape & code::CHECK != 0 {
            continue;
        }
        let data = [read(3), read(4), read(5), read(6)];
        let mut result = [0; 4];
        if matches!(op, code::ATOMIC | code::ATOMIC_SHORT) {
            let bytes = if op == code::ATOMIC { 4 } else { 2 };
            let cell = view.filter(|_| !beyond).and_then(|v| v.cell(at, bytes));
            if let Some(cell) = cell {
                let count = |v: u32| u64::from(v & u32::MAX >> (32 - 8 * bytes));
                let operands = [count(data[0]), count(data[1])];
                // SAFETY: a cell of that many bytes.
                let old = unsafe { one(shape >> code::ATOMIC_SHIFT, bytes, cell, operands) };
                result[0] = old as u32;
            }
        } else {
            let access_of_lane = ImageLane {
                op,
                channels: shape >> code::CHANNEL_SHIFT & 0xF,
                at,
                data,
            };
            // SAFETY: images are bound as the ABI says.
            result = unsafe { access(view, sampler, &access_of_lane) };
        }
        for (row, value) in results.iter_mut().zip(result) {
            row[lane] = value;
        }
    }
    if shape & code::CHECK == 0 {
        for (k, values) in results.iter().enumerate() {
            let count = (lanes as usize).min(LANES);
            // SAFETY: the block has seven rows of as many lanes.
            unsafe {
                block
                    .add((3 + k) * row)
                    .copy_from_nonoverlapping(values.as_ptr(), count)
            };
        }
    }
    faulting
}
