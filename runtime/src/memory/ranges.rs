//! Free ranges of an address space, first fit, neighbours merged.

use std::collections::BTreeMap;

/// Free list over offsets.
#[derive(Debug)]
pub(crate) struct Ranges {
    /// Start to length; disjoint and never adjacent.
    free: BTreeMap<u64, u64>,
}

impl Ranges {
    /// All of `start … end` is free.
    pub(crate) fn new(start: u64, end: u64) -> Ranges {
        let mut ranges = Ranges {
            free: BTreeMap::new(),
        };
        ranges.insert(start, end.saturating_sub(start));
        ranges
    }

    /// Takes `len` bytes at the lowest offset where `base + offset` is a multiple of `align` (a
    /// power of two). `None` when nothing fits.
    pub(crate) fn take_low(&mut self, len: u64, align: u64, base: u64) -> Option<u64> {
        let (start, offset) = self.free.iter().find_map(|(&start, &size)| {
            let aligned = base.checked_add(start)?.checked_next_multiple_of(align)?;
            let offset = aligned - base;
            let end = offset.checked_add(len)?;
            (end <= start + size).then_some((start, offset))
        })?;
        self.cut(start, offset, len);
        Some(offset)
    }

    /// Takes exactly `offset … offset + len`; false when a part of it is in use.
    pub(crate) fn take_at(&mut self, offset: u64, len: u64) -> bool {
        let Some(end) = offset.checked_add(len) else {
            return false;
        };
        let Some((&start, &size)) = self.free.range(..=offset).next_back() else {
            return false;
        };
        if end > start + size {
            return false;
        }
        self.cut(start, offset, len);
        true
    }

    /// Returns a range that was taken.
    pub(crate) fn give(&mut self, offset: u64, len: u64) {
        let mut start = offset;
        let mut size = len;
        if let Some((&s, &l)) = self.free.range(..offset).next_back()
            && s + l == offset
        {
            self.free.remove(&s);
            start = s;
            size += l;
        }
        if let Some(l) = self.free.remove(&(offset + len)) {
            size += l;
        }
        self.insert(start, size);
    }

    fn insert(&mut self, start: u64, len: u64) {
        if len != 0 {
            self.free.insert(start, len);
        }
    }

    /// Removes `offset … offset + len` from the free range that begins at `start`.
    fn cut(&mut self, start: u64, offset: u64, len: u64) {
        if let Some(size) = self.free.remove(&start) {
            self.insert(start, offset - start);
            self.insert(offset + len, start + size - offset - len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_fit_aligned_and_merged() {
        let mut r = Ranges::new(0, 1000);
        assert_eq!(r.take_low(10, 1, 0), Some(0));
        assert_eq!(r.take_low(100, 64, 0), Some(64));
        assert_eq!(r.take_low(20, 1, 0), Some(10), "the gap left by alignment");
        assert_eq!(r.take_low(900, 1, 0), None);
        r.give(64, 100);
        r.give(0, 10);
        r.give(10, 20);
        assert_eq!(r.free.iter().collect::<Vec<_>>(), [(&0, &1000)]);
        assert_eq!(r.take_low(1000, 1, 0), Some(0));
        assert!(r.free.is_empty());
    }

    #[test]
    fn alignment_counts_from_the_base() {
        let mut r = Ranges::new(0, 1000);
        assert_eq!(r.take_low(8, 64, 100), Some(28));
        assert!(r.take_at(990, 10));
        assert!(!r.take_at(985, 6));
        assert!(!r.take_at(u64::MAX, 2));
        assert!(r.take_at(985, 5));
    }
}
