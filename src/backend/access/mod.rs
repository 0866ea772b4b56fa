//! The access plan: how the memory accesses of a function are done, decided once for all code generators.
//!
//! [`AccessPlan::new`] reads the IR and [`Limits`], which is what a code generator can do. The plan says how each lane-wise
//! access is done ([`How`]). It also says which parts of blocks exist in two versions ([`Versions`]): one test in front decides
//! for all accesses of the first version. A code generator goes through the [`Step`]s of a block and emits them. It chooses
//! instructions, and nothing else.
//!
//! ```text
//!  shapes of addresses ─► Access: kind, distance from a root ─► AccessGroup: one bounds test, one pointer
//!                                                                    │
//!                    How: an access by itself                   Versions: fast, and for when the test fails
//! ```
//!
//! `explain` prints a plan ([`AccessPlan::lines`]).

mod atomic;
mod candidate;
mod check;
pub(super) mod consts;
mod copies;
mod group;
mod how;
mod limits;
mod local_shape;
mod place;
mod plan;
mod rare;
mod scaled;
mod strided;
mod text;
mod versions;

#[cfg(test)]
mod check_tests;
#[cfg(test)]
mod copies_tests;
#[cfg(test)]
mod scaled_tests;
#[cfg(test)]
mod tests;

pub(super) use atomic::{AtomicHow, AtomicWay, asks_first};
pub(super) use candidate::Access;
pub(super) use check::{AffineRace, CheckHow, CheckInFront, CheckSpan, RaceReads, Spacing};
#[cfg(feature = "llvm-codegen")]
pub(super) use copies::{Apart, Copied, CopyId, VEC4_BYTES};
pub(super) use group::{AccessGroup, Root};
pub(super) use how::{AffineAccess, Any, By, How, Stored, auto_gather};
pub(super) use limits::{Limits, MaskedStores, Scope, Speculation};
pub(super) use local_shape::{Ids, Sum};
pub(super) use place::{FLAT_OFFSET, Lanes, Marked, Place, Region, message_place, pointer_of};
pub use plan::AccessPlan;
pub(super) use plan::{Segment, Step, Versions};
pub(super) use scaled::{POINTER_SHIFT, Scaled};
pub(super) use strided::{Affine, Strided, StridedKind, row_bytes};
pub use text::PlanLine;
pub(super) use text::{AFTER, Called};

#[cfg(test)]
pub(super) use tests::PARTS;

/// Whether code can use a value at some place: what only versions of an earlier part made cannot be used, as nothing there said that it
/// is needed. Whoever finds a value through the definition of another has to ask.
type AtHand<'a> = &'a dyn Fn(crate::ssa::Value) -> bool;
