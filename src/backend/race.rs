//! What code generators share of checks of races. The runtime decides what is wrong.

use visa_runtime::abi::race;
pub(super) use visa_runtime::abi::race::ATTEMPT;

use crate::ssa::{Function, Op, RaceAccess, RaceCheck};

/// Why there is no check of an access.
pub(super) const TOO_MANY: &str = "a check of races of a block of more than 2047 elements";

/// Operand `shape` of [`visa_runtime::abi::RaceCheck`] for lanes of which the first is the thread's lane `first`; `None` where a lane has too
/// many elements.
pub(super) fn shape(check: RaceCheck, place: u32, lanes: u16, first: u32) -> Option<u32> {
    let count = u32::from(check.count);
    let access = match check.access {
        RaceAccess::Read => 0,
        RaceAccess::Write => race::WRITES,
        RaceAccess::AtomicRead => race::ATOMIC,
        RaceAccess::AtomicWrite => race::ATOMIC | race::WRITES,
    };
    let block = if check.block { race::BLOCK } else { 0 };
    let shape = race::shape(place, check.elem.bytes(), count, lanes.into(), first);
    (count <= race::MAX_COUNT).then_some(shape | access | block)
}

/// Bytes that each lane of a check reaches.
pub(super) fn lane_bytes(check: RaceCheck) -> u64 {
    u64::from(check.elem.bytes()) * u64::from(check.count)
}

/// Whether a function has checks of races. The runtime counts its barriers then.
pub(super) fn is_checked(f: &Function) -> bool {
    let mut insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
    insts.any(|&i| matches!(f.inst(i).op, Op::CheckRace(_)))
}
