//! Which device memory programs have allocated, and with which function. Commands may use it by address, and reports of wrong accesses name
//! the nearest allocation.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use visa_jit::backend::Check;
use visa_runtime::abi::FLAT_OFFSET;

use super::engine::{Settings, engine};
use super::object::lock;
use super::trace::Trace;

/// Freed ranges that are remembered, where accesses are checked: as many as the engine keeps from being used again.
const MOST_FREED: usize = 4096;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Range {
    /// First address.
    pub start: u64,
    /// Bytes.
    pub len: u64,
    /// The function that the program has it from.
    pub made_by: &'static str,
}

impl Range {
    /// Bytes between the range and an address outside of it.
    fn distance(&self, address: u64) -> u64 {
        let behind = address.saturating_sub(self.start.saturating_add(self.len));
        behind.max(self.start.saturating_sub(address))
    }
}

/// A range, and where the program was when it came and went, if that is kept.
#[derive(Clone, Debug)]
pub struct Allocated {
    /// Its addresses.
    pub range: Range,
    /// Where it was allocated.
    pub made_at: Option<Trace>,
    /// Where it was freed.
    pub freed_at: Option<Trace>,
}

impl From<Range> for Allocated {
    /// Allocated here, by what the driver is called for.
    fn from(range: Range) -> Allocated {
        Allocated {
            range,
            made_at: Trace::here(),
            freed_at: None,
        }
    }
}

#[derive(Default)]
struct Ranges {
    live: BTreeMap<u64, Allocated>,
    /// The last ones, oldest first; none where accesses are not checked, since addresses are used again at once.
    freed: VecDeque<Allocated>,
}

static RANGES: Mutex<Ranges> = Mutex::new(Ranges {
    live: BTreeMap::new(),
    freed: VecDeque::new(),
});

/// A range of device memory that the program may use by address, while this is there.
pub struct Known(u64);

impl Known {
    /// Makes it known.
    pub fn new(range: Range) -> Known {
        let made = Allocated::from(range);
        lock(&RANGES).live.insert(range.start, made);
        Known(range.start)
    }
}

impl Drop for Known {
    fn drop(&mut self) {
        let keeps =
            (Settings::get().check.as_ref()).is_ok_and(|checks| checks.contains(Check::Memory));
        lock(&RANGES).free(self.0, keeps);
    }
}

impl Ranges {
    fn free(&mut self, start: u64, keeps: bool) {
        let Some(mut allocated) = self.live.remove(&start).filter(|_| keeps) else {
            return;
        };
        allocated.freed_at = Trace::here();
        if self.freed.len() >= MOST_FREED {
            self.freed.pop_front();
        }
        self.freed.push_back(allocated);
    }

    /// The live range at the least distance.
    fn nearest(&self, address: u64) -> Option<Allocated> {
        let below = self.live.range(..=address).next_back();
        let above = self.live.range(address.saturating_add(1)..).next();
        let both = below.into_iter().chain(above).map(|(_, found)| found);
        both.min_by_key(|found| found.range.distance(address))
            .cloned()
    }

    /// The range that begins at an address, or the last freed one.
    fn beginning_at(&self, start: u64, freed: bool) -> Option<Allocated> {
        if freed {
            let mut last = self.freed.iter().rev();
            return last.find(|found| found.range.start == start).cloned();
        }
        self.live.get(&start).cloned()
    }
}

/// Whether the program has this device memory: none if it is not the device's.
pub fn owned_by_device(address: u64, len: u64) -> Option<bool> {
    let memory = engine().ok()?.memory();
    let base = memory.base();
    // The range may end beyond, so that no byte is the device's own.
    let last = address.saturating_add(len.max(1) - 1);
    let outside = last < base || address >= base.saturating_add(memory.capacity());
    if outside {
        return None;
    }
    let ranges = lock(&RANGES);
    let found = ranges.live.range(..=address).next_back();
    Some(found.is_some_and(|(first, found)| {
        let (offset, all) = (address - first, found.range.len);
        offset < all && len <= all - offset
    }))
}

/// What an access of a kernel misses: where the engine checks its accesses, the range that it names, else the nearest one.
pub fn missed(address: u64, bytes: u32) -> Option<Allocated> {
    let memory = engine().ok()?.memory();
    let base = memory.base();
    let address = base.wrapping_add(address.wrapping_sub(base) & FLAT_OFFSET);
    let found = memory.neighbour(address, bytes.into());
    let ranges = lock(&RANGES);
    match found {
        Some(found) => ranges.beginning_at(found.start, found.freed.is_some()),
        None => ranges.nearest(address),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(start: u64, len: u64) -> Range {
        let made_by = "a test";
        Range {
            start,
            len,
            made_by,
        }
    }

    #[test]
    fn the_nearest_range_is_found_on_both_sides() {
        let mut all = Ranges::default();
        assert!(all.nearest(7).is_none());
        for (start, len) in [(100, 10), (200, 50)] {
            all.live.insert(start, range(start, len).into());
        }
        for (address, start) in [
            (0, 100),
            (99, 100),
            (105, 100),
            (110, 100),
            (154, 100),
            (156, 200),
            (249, 200),
            (u64::MAX, 200),
        ] {
            let found = all.nearest(address).map(|found| found.range.start);
            assert_eq!(found, Some(start), "{address}");
        }
    }

    #[test]
    fn freed_ranges_are_remembered_where_asked_for() {
        let mut all = Ranges::default();
        for (round, keeps) in [(0, false), (1, true), (2, true)] {
            all.live.insert(64, range(64, 8 + round).into());
            all.free(64, keeps);
            let found = all.beginning_at(64, true).map(|found| found.range);
            assert_eq!(found, keeps.then_some(range(64, 8 + round)));
            assert!(all.beginning_at(64, false).is_none());
        }
        for start in 0..=MOST_FREED as u64 {
            all.live.insert(start, range(start, 1).into());
            all.free(start, true);
        }
        assert_eq!(all.freed.len(), MOST_FREED);
        assert!(all.beginning_at(0, true).is_none());
    }
}
