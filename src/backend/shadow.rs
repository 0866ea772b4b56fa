//! What checks of device memory read of its shadow, for every code generator.
//!
//! A byte of the shadow stands for eight bytes of device memory. It is zero where all of them are a buffer's
//! ([`visa_runtime::abi::LaunchCtx::shadow`]). A test may read a few bytes more than an access has, and so may fail at the end of
//! a buffer where nothing is wrong. The runtime then looks exactly.

use std::mem::offset_of;

pub(super) use visa_runtime::abi::check::GRANULE;
use visa_runtime::abi::{FLAT_OFFSET, LaunchCtx, Pointee, check};

use crate::ssa::{BufferCheck, Function, Op, RaceAccess, RaceCheck};

/// Longest range that one test covers, in bytes of memory; the shadow can be read as far from its start.
const MAX_SPAN: u64 = 4096;

/// Distance of offset 0 from the zeros in front of the shadow that stand for lanes that are not enabled, in bytes of memory.
pub(super) const LEAD: i64 = 128;

/// Checks of lanes at arbitrary addresses that are inline in a function.
const FEW: usize = 48;

/// True where checks of lanes at arbitrary addresses are few, so that they may take more code.
pub(super) fn few(f: &Function) -> bool {
    let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
    let any = insts
        .filter(|&&i| matches!(f.inst(i).op, Op::CheckBuffer(_)) && !f.shapes.contains_key(&i));
    any.count() <= FEW
}

/// Bytes that each lane of a check reaches.
pub(super) fn lane_bytes(check: BufferCheck) -> u64 {
    u64::from(check.elem.bytes()) * u64::from(check.count)
}

/// What the helper that looks exactly is told of a check's lanes.
pub(super) fn shape(of: BufferCheck) -> u32 {
    let aligned = if of.aligned { check::ALIGNED } else { 0 };
    let writes = if of.writes { check::WRITES } else { 0 };
    check::shape(of.elem.bytes(), of.count.into()) | aligned | writes
}

/// Where in [`LaunchCtx`] the shadow of a check's access is.
pub(super) fn shadow(of: BufferCheck) -> usize {
    match of.writes {
        true => offset_of!(LaunchCtx, write_shadow),
        false => offset_of!(LaunchCtx, shadow),
    }
}

/// Where in [`LaunchCtx`] the buffers are that the payload points into and that a check's access may reach.
fn pointees(of: BufferCheck) -> usize {
    match of.writes {
        true => offset_of!(LaunchCtx, write_pointees),
        false => offset_of!(LaunchCtx, pointees),
    }
}

/// The buffer that a pointer in the payload points into, for accesses of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PointeeOf {
    /// Where in [`LaunchCtx`] the pointer to all of them is.
    pub all: usize,
    /// Where its [`Pointee`] is from there.
    pub at: usize,
    /// Bits 63:48 of an address do not count, as for the access itself. Else an address that has some is in no buffer.
    pub ignores_tags: bool,
}

impl PointeeOf {
    /// That of a check whose pointer is at an offset of the payload, a multiple of eight.
    pub(super) fn new(check: BufferCheck, pointer: u32) -> PointeeOf {
        PointeeOf {
            all: pointees(check),
            at: pointer as usize / 8 * size_of::<Pointee>(),
            ignores_tags: false,
        }
    }

    /// That which a check of races asks for: one that the launch does not write, of a read, else one that its writes do not leave. `None` where the
    /// check does not say through which pointer the access goes.
    pub(super) fn of_race(check: RaceCheck) -> Option<PointeeOf> {
        let all = match check.access {
            RaceAccess::Read => offset_of!(LaunchCtx, invariant_pointees),
            _ => offset_of!(LaunchCtx, confined_pointees),
        };
        let at = check.pointer? as usize / 8 * size_of::<Pointee>();
        Some(PointeeOf {
            all,
            at,
            ignores_tags: true,
        })
    }
}

/// Distance of the lowest byte of lanes at a constant distance from lane 0's address, and bytes from there to the highest; `None` where
/// one test does not cover them.
pub(super) fn span(stride: i64, count: u16, lane_bytes: u64) -> Option<(i64, u64)> {
    reach(stride, count, lane_bytes).filter(|&(_, bytes)| bytes <= MAX_SPAN)
}

/// The same of lanes that may be far apart; `None` where they are farther apart than addresses are.
pub(super) fn reach(stride: i64, count: u16, lane_bytes: u64) -> Option<(i64, u64)> {
    let distance = stride.checked_mul(i64::from(count) - 1)?;
    let bytes = distance.unsigned_abs().checked_add(lane_bytes)?;
    (bytes <= FLAT_OFFSET).then_some((distance.min(0), bytes))
}

/// How the shadow of `bytes` consecutive bytes is read: pieces of `width` bytes from the first granule on, and one that ends with
/// the last granule.
pub(super) struct Pieces {
    /// Bytes of a piece, a power of two.
    pub width: u64,
    /// Granules that the bytes have at least. Where they do not begin with a granule, there is one more.
    least: u64,
}

impl Pieces {
    /// Pieces of at most `widest` bytes.
    pub(super) fn new(bytes: u64, widest: u64) -> Pieces {
        let least = bytes.div_ceil(GRANULE).max(1);
        let width = (1 << least.ilog2()).min(widest);
        Pieces { width, least }
    }

    /// Where pieces begin, counted from the first granule.
    pub(super) fn starts(&self) -> impl Iterator<Item = u64> {
        (0..=self.least - self.width).step_by(self.width as usize)
    }
}

/// How the shadow of one lane is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LaneShadow {
    /// Bytes that are read as one integer: 1, 2, 4 or 8.
    pub bytes: u64,
    /// Bits of an offset that have to be zero, or the lane has more granules.
    pub low: u64,
}

impl LaneShadow {
    /// That of a check's lanes; `None` where they have too many granules for one integer.
    pub(super) fn new(check: BufferCheck) -> Option<LaneShadow> {
        let (granules, low) = match lane_bytes(check) {
            n @ (1 | 2 | 4 | 8) => (1, n - 1),
            n if n % GRANULE == 0 => (n / GRANULE, GRANULE - 1),
            // Wherever it begins.
            n => ((n + GRANULE - 1).div_ceil(GRANULE), 0),
        };
        let bytes = granules.next_power_of_two();
        // Atomics round addresses down.
        let low = if check.aligned { 0 } else { low };
        (bytes <= 8).then_some(LaneShadow { bytes, low })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::Lane;

    fn lane(elem: Lane, count: u16, aligned: bool) -> Option<LaneShadow> {
        LaneShadow::new(BufferCheck {
            elem,
            count,
            aligned,
            writes: false,
            site: 0,
        })
    }

    /// Every granule that a lane's bytes touch is read, wherever they begin.
    #[test]
    fn lanes_have_no_more_granules_than_are_read() {
        for elem in [Lane::I8, Lane::I16, Lane::I32, Lane::I64] {
            for count in 1..=8 {
                let bytes = u64::from(elem.bytes()) * u64::from(count);
                let Some(shadow) = lane(elem, count, false) else {
                    assert!(bytes > 56);
                    continue;
                };
                for start in (0..64).filter(|start| start & shadow.low == 0) {
                    let granules = (start + bytes - 1) / GRANULE - start / GRANULE + 1;
                    assert!(granules <= shadow.bytes, "{elem:?} {count} at {start}");
                }
            }
        }
        let atomic = lane(Lane::I64, 1, true);
        assert_eq!(atomic, Some(LaneShadow { bytes: 1, low: 0 }));
    }

    /// Pieces and the last one cover every granule, and none of another one, but where they are wider than the bytes.
    #[test]
    fn pieces_cover_every_granule() {
        for widest in [8, 16] {
            for bytes in 1..=600 {
                for start in 0..GRANULE {
                    let pieces = Pieces::new(bytes, widest);
                    let last = (start + bytes - 1) / GRANULE;
                    let end = last + 1 - pieces.width.min(last + 1);
                    let covered = |g: u64| {
                        pieces
                            .starts()
                            .chain([end])
                            .any(|at| (at..at + pieces.width).contains(&g))
                    };
                    assert!((0..=last).all(covered), "{bytes} at {start}");
                    let most = pieces.starts().last().unwrap() + pieces.width;
                    assert!(most <= last + 1, "{bytes} at {start}");
                }
            }
        }
    }

    #[test]
    fn spans_are_bounded() {
        assert_eq!(span(4, 16, 4), Some((0, 64)));
        assert_eq!(span(-4, 16, 4), Some((-60, 64)));
        assert_eq!(span(0, 16, 8), Some((0, 8)));
        assert_eq!(span(4096, 2, 4), None);
        assert_eq!(span(i64::MAX, 32, 4), None);
        assert_eq!(reach(-4096, 2, 4), Some((-4096, 4100)));
        for far in [1 << 48, i64::MIN, i64::MAX] {
            assert_eq!(reach(far, 2, 4), None);
        }
    }
}
