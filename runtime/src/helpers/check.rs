//! What generated code asks of the runtime where the shadow of an access is not all zeros: is it an error, and of which lanes?

use super::message::FLAT_OFFSET;
use crate::abi::{GroupCtx, check as code};
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
    let mut wrong = [0; 32];
    let mut found = 0;
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
        if let Some(k) = unsafe { first_closed(launch.shadow, offset, bytes, count) } {
            wrong[lane] = address.wrapping_add(k * bytes);
            found |= 1 << lane;
        }
    }
    // SAFETY: the group is the one that runs; there is an address for each lane.
    unsafe {
        report(
            group,
            thread,
            site,
            found,
            wrong.as_ptr(),
            0,
            FaultKind::Allocation,
        )
    }
}
