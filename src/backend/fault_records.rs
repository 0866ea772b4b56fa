//! What the runtime's helpers are told of the lanes of an access that they may record, for every code generator.
//!
//! Fault records number lanes as the thread does: lane 0 of an access is the thread's lane [`FaultRecords::first_lane`]. If an
//! access was merged from several, each of these is recorded by itself, with a call of its own.

use crate::ssa::Function;

/// The records of an access.
pub(super) struct FaultRecords {
    /// The thread's number of lane 0.
    pub first_lane: u32,
    /// One call of the helper each.
    pub parts: Vec<FaultPart>,
}

/// Lanes that are recorded as one access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FaultPart {
    /// Number of the access.
    pub site: u32,
    /// Its lanes, a bit each by the numbers of the merged access; all where nothing was merged.
    pub lanes: Option<u32>,
}

impl FaultRecords {
    /// Those of an access of a given number of lanes.
    pub(super) fn new(f: &Function, site: u32, lanes: u16) -> FaultRecords {
        let parts = f.sites_of_lanes(site, lanes);
        let merged = parts.len() > 1;
        let part = |(site, bits)| FaultPart {
            site,
            lanes: merged.then_some(bits),
        };
        FaultRecords {
            first_lane: first_lane(f, site),
            parts: parts.into_iter().map(part).collect(),
        }
    }

    /// Distance of where a helper takes the addresses of the thread's lanes to be from those of an access, 64 bits each.
    pub(super) fn addresses(&self) -> i64 {
        -8 * i64::from(self.first_lane)
    }
}

/// The thread's number of lane 0 of an access.
pub(super) fn first_lane(f: &Function, site: u32) -> u32 {
    let site = f.sites.get(site as usize);
    site.map_or(0, |site| site.first_lane.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::{AccessKind, Site, Space};

    fn site(first_lane: u8, parts: Vec<u32>) -> Site {
        Site {
            line: 0,
            opcode: "lsc_load",
            space: Space::Flat,
            kind: AccessKind::Read,
            bytes: 4,
            alignment: 1,
            first_lane,
            parts,
        }
    }

    #[test]
    fn lanes_of_a_merged_access_are_recorded_apart() {
        let mut f = Function::new("merged", 32);
        f.sites = vec![site(0, vec![1, 2]), site(0, vec![]), site(16, vec![])];
        let part = |site, lanes| FaultPart { site, lanes };
        let whole = FaultRecords::new(&f, 0, 32);
        let both = [part(1, Some(0xFFFF)), part(2, Some(0xFFFF_0000))];
        assert_eq!((whole.first_lane, whole.parts), (0, both.to_vec()));
        let second = FaultRecords::new(&f, 2, 16);
        assert_eq!((second.first_lane, second.addresses()), (16, -128));
        assert_eq!(second.parts, [part(2, None)]);
    }
}
