//! What code with checks of initialisation calls in front of a store of which a mark is set.

use super::message::{FLAT_OFFSET, MemorySpan};
use crate::abi::{GroupCtx, message};
use crate::element;

/// [`crate::abi::Helpers::initialise`].
///
/// # Safety
/// The arguments must be as [`crate::abi::RaceCheck`] says, from the group that runs, in a launch on tracked memory and for a place that has
/// the marks of this memory.
pub(super) unsafe extern "C" fn initialise(
    group: *mut GroupCtx,
    _thread: u32,
    _site: u32,
    shape: u32,
    surface: u32,
    enabled: u32,
    addresses: *const u8,
) -> u32 {
    let (place, bytes) = (shape >> 2 & 7, 1u32 << (shape & 3));
    let count = shape >> 8 & 63;
    let comps = u64::from(shape >> 16 & 0x7FF);
    // SAFETY: as promised; no place is a thread's.
    let (region, marks) = unsafe {
        (
            MemorySpan::new(group, std::ptr::null(), place, surface),
            (*(*group).launch).marks,
        )
    };
    let limit = (region.size + 1).saturating_sub(bytes.into());
    for lane in (0..count as usize).filter(|lane| enabled >> lane & 1 != 0) {
        // SAFETY: the block has an address for each lane.
        let first = unsafe {
            match place {
                message::FLAT => {
                    let address = addresses.cast::<u64>().add(lane).read();
                    address.wrapping_sub(region.first)
                }
                _ => addresses.cast::<u32>().add(lane).read().into(),
            }
        };
        for k in 0..comps {
            let mut at = first.wrapping_add(k * u64::from(bytes));
            if place == message::FLAT {
                at &= FLAT_OFFSET;
            }
            if at < limit {
                let mark = region.base.wrapping_add(at.wrapping_add(marks) as usize);
                // SAFETY: the element is inside of its region, and so are its marks.
                unsafe { element::store(mark, bytes, 0) }
            }
        }
    }
    0
}
