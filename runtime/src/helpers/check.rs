//! Called by generated code where the shadow of an access is not all zeros: decides whether it is an error, and of which lanes.

use super::message::FLAT_OFFSET;
use crate::abi::{GroupCtx, LaunchCtx, check as code};
use crate::fault::{FaultKind, report};
use crate::memory::checks::first_closed;

/// [`crate::abi::Helpers::check`]. The shadow decides here; the interpreter asks the list of buffers instead.
///
/// # Safety
/// `group` must be the group that runs, `addresses` valid at each lane of `lanes`.
pub(crate) unsafe extern "C" fn check(
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    shape: u32,
    lanes: u32,
    addresses: *const u64,
) -> u32 {
    let (bytes, count) = (1 << (shape & 3), u64::from(shape >> code::COUNT_SHIFT));
    // SAFETY: group and launch are valid by the caller's promise, and so is the shadow of all of device memory.
    let launch = unsafe { &*(*group).launch };
    let shadow = match shape & code::WRITES {
        0 => launch.shadow,
        _ => launch.write_shadow,
    };
    let mut wrong = [0; 32];
    let (mut missed, mut read_only) = (0, 0);
    for lane in (0..32).filter(|lane| lanes >> lane & 1 != 0) {
        // SAFETY: as promised.
        let mut address = unsafe { addresses.wrapping_add(lane).read_unaligned() };
        let mut offset = address.wrapping_sub(launch.flat_base) & FLAT_OFFSET;
        if shape & code::ALIGNED != 0 {
            address -= offset & (bytes - 1);
            offset &= !(bytes - 1);
        }
        let whole = count * bytes;
        if whole > launch.flat_size || offset > launch.flat_size - whole {
            // Not in device memory: the access itself records that.
            continue;
        }
        // SAFETY: the bytes are in device memory, whose shadow is open.
        if let Some(k) = unsafe { first_closed(shadow, offset, bytes, count) } {
            wrong[lane] = address.wrapping_add(k * bytes);
            // SAFETY: as above.
            match unsafe { kind_of(launch, offset + k * bytes, bytes) } {
                FaultKind::ReadOnly => read_only |= 1 << lane,
                _ => missed |= 1 << lane,
            }
        }
    }
    for (lanes, kind) in [
        (missed, FaultKind::Allocation),
        (read_only, FaultKind::ReadOnly),
    ] {
        // SAFETY: the group is the one that runs; there is an address for each lane.
        if unsafe { report(group, thread, site, lanes, wrong.as_ptr(), 0, kind) } != 0 {
            return 1;
        }
    }
    0
}

/// What is wrong with an element that must not be accessed: it is in no buffer, or it may only be read.
///
/// # Safety
/// The element must be in the device memory of the launch.
pub(super) unsafe fn kind_of(launch: &LaunchCtx, offset: u64, bytes: u64) -> FaultKind {
    // SAFETY: the shadow of all of device memory is open.
    match unsafe { first_closed(launch.shadow, offset, bytes, 1) } {
        Some(_) => FaultKind::Allocation,
        None => FaultKind::ReadOnly,
    }
}
