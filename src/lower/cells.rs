//! Which byte ranges of a register variable become one SSA value.
//!
//! A first run of lowering over the program only records accesses ([`Recorder`]); [`partition`]
//! then cuts each storage root into *cells* so that an access normally is one whole cell or a few
//! lanes of one. Any partition is correct, the choice decides how much shuffling is left.

use std::collections::BTreeMap;

use crate::ssa::{Lane, Ty};
use crate::valid::RootId;

/// Cells larger than this are cut: 32 lanes of 8 bytes.
const MAX_CELL_BYTES: u32 = 256;

/// A run of bytes of one root with the lane type they are seen as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Cell {
    /// First byte in the root.
    pub lo: u32,
    /// One past the last byte.
    pub hi: u32,
    /// Lane type.
    pub lane: Lane,
}

impl Cell {
    /// Type of the SSA value.
    pub(super) fn ty(&self) -> Ty {
        Ty::vector(self.lane, ((self.hi - self.lo) / self.lane.bytes()) as u16)
    }
}

/// One recorded access pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Touch {
    lo: u32,
    hi: u32,
    lane: Lane,
    /// Block messages do not care how their bytes are cut.
    soft: bool,
}

/// Accesses seen in the first run.
#[derive(Debug, Default)]
pub(super) struct Recorder {
    touches: BTreeMap<RootId, BTreeMap<Touch, u32>>,
    /// Roots whose address is taken: they live in memory.
    pub indirect: std::collections::BTreeSet<RootId>,
}

impl Recorder {
    /// Notes an access to bytes `lo..hi`.
    pub(super) fn touch(
        &mut self,
        root: RootId,
        lo: u32,
        hi: u32,
        lane: Lane,
        lanes: u32,
        soft: bool,
    ) {
        *self
            .touches
            .entry(root)
            .or_default()
            .entry(Touch { lo, hi, lane, soft })
            .or_insert(0) += lanes;
    }

    /// Cuts every touched root into cells, in ascending order and without overlap.
    pub(super) fn partition(&self) -> BTreeMap<RootId, Vec<Cell>> {
        self.touches
            .iter()
            .map(|(&root, touches)| (root, partition(touches)))
            .collect()
    }
}

fn partition(touches: &BTreeMap<Touch, u32>) -> Vec<Cell> {
    // Runs of overlapping hard accesses.
    let mut runs: Vec<(u32, u32)> = Vec::new();
    for t in touches.keys().filter(|t| !t.soft) {
        match runs.last_mut() {
            Some(last) if t.lo < last.1 => last.1 = last.1.max(t.hi),
            _ => runs.push((t.lo, t.hi)),
        }
    }
    let mut pieces: Vec<(u32, u32)> = runs.iter().flat_map(|&r| cut(r, touches)).collect();
    // What only block messages touch.
    for t in touches.keys().filter(|t| t.soft) {
        let mut at = t.lo;
        let gaps: Vec<(u32, u32)> = {
            let mut gaps = Vec::new();
            for &(lo, hi) in pieces.iter().filter(|&&(lo, hi)| lo < t.hi && hi > t.lo) {
                if lo > at {
                    gaps.push((at, lo));
                }
                at = at.max(hi);
            }
            if at < t.hi {
                gaps.push((at, t.hi));
            }
            gaps
        };
        for (lo, hi) in gaps {
            let mut lo = lo;
            while lo < hi {
                let end = hi.min(lo + 64);
                pieces.push((lo, end));
                lo = end;
            }
        }
        pieces.sort_unstable();
    }
    pieces
        .into_iter()
        .map(|(lo, hi)| Cell {
            lo,
            hi,
            lane: lane_of(lo, hi, touches),
        })
        .collect()
}

/// Cuts an overlong run where the fewest accesses are split, at register-sized steps.
fn cut(run: (u32, u32), touches: &BTreeMap<Touch, u32>) -> Vec<(u32, u32)> {
    let mut out = Vec::new();
    let (mut lo, hi) = run;
    while hi - lo > MAX_CELL_BYTES {
        let best = (1..=MAX_CELL_BYTES / 32)
            .map(|k| lo + 32 * k)
            .min_by_key(|&at| {
                let split: u32 = touches
                    .iter()
                    .filter(|(t, _)| !t.soft && t.lo < at && t.hi > at)
                    .map(|(_, n)| n)
                    .sum();
                (split, std::cmp::Reverse(at))
            })
            .unwrap_or(lo + MAX_CELL_BYTES);
        out.push((lo, best));
        lo = best;
    }
    out.push((lo, hi));
    out
}

/// The lane type most lanes are accessed as, as far as the cell's bounds are multiples of it.
fn lane_of(lo: u32, hi: u32, touches: &BTreeMap<Touch, u32>) -> Lane {
    let mut votes: BTreeMap<Lane, u64> = BTreeMap::new();
    for (t, &n) in touches.iter().filter(|(t, _)| t.lo < hi && t.hi > lo) {
        // A block message is happy with any cut, so its vote only breaks ties.
        *votes.entry(t.lane).or_default() += if t.soft { 1 } else { u64::from(n) * 64 };
    }
    let bytes = hi - lo;
    let fits = |l: Lane| {
        let e = l.bytes();
        bytes.is_multiple_of(e)
            && touches
                .keys()
                .filter(|t| !t.soft && t.lo < hi && t.hi > lo && t.lo >= lo)
                .all(|t| {
                    // Lanes of accesses that start inside must not straddle ours more than their own size allows.
                    l.bytes() <= t.lane.bytes() || (t.lo - lo).is_multiple_of(t.lane.bytes())
                })
    };
    votes
        .into_iter()
        .filter(|&(l, _)| fits(l))
        .max_by_key(|&(_, n)| n)
        .map(|(l, _)| l)
        .or_else(|| {
            [8, 4, 2, 1]
                .into_iter()
                .filter(|e| bytes.is_multiple_of(*e))
                .find_map(Lane::int)
        })
        .unwrap_or(Lane::I8)
}
