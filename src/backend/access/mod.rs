//! What code generators have in common about memory accesses, as pure functions over the IR: what a stride makes of an access and
//! which bytes one bounds test covers, which accesses share a test, where an access goes, and which constants it has.

pub(super) mod consts;
mod group;
mod place;
mod strided;

pub(super) use group::{AccessGroup, Reach, access_groups};
pub(super) use place::{FLAT_OFFSET, Lanes, Place, Region, message_place};
#[cfg(test)]
pub(super) use strided::row_bytes;
pub(super) use strided::{Affine, Kind, Strided};
