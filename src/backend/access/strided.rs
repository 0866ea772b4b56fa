//! Affine accesses: lane `i` accesses `base + i * stride`.

use crate::ssa::remark::Way;
use crate::ssa::{Lane, MemAccess};

/// Longest range that one bounds test covers, in bytes.
pub(super) const MAX_SPAN: u64 = 1 << 24;

/// How the addresses of an access are spaced, as values of a code generator.
#[derive(Clone, Copy)]
pub(in crate::backend) struct Affine<V> {
    /// Address of lane 0.
    pub base: V,
    /// Condition under which it holds; always when there is none.
    pub guard: Option<V>,
}

/// What a stride makes of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend) enum StridedKind {
    /// All lanes at one address.
    Same,
    /// The components of one lane after those of the other.
    Packed,
    /// A few elements from lane to lane, also backwards: the bytes from the lowest to the highest are loaded as vectors, and the
    /// lanes taken out of them. Components of neighbours may be the same bytes. Only loads are of this kind.
    Run,
    /// Less than an element from lane to lane, so that neighbours share bytes: a vector for each such part of the elements. Only loads of
    /// single elements are of this kind.
    Overlap,
    /// With gaps, or backwards.
    Spread,
}

/// The bytes of an affine access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::backend) struct Strided {
    /// Its kind.
    pub kind: StridedKind,
    /// Bytes from lane to lane.
    pub stride: i64,
    /// Distance of the lowest byte from lane 0's address.
    pub lowest: i64,
    /// Bytes from the lowest to the highest.
    pub bytes: u64,
}

impl Strided {
    /// The bytes of an access of `count` lanes, if one test can cover them. With `whole_rows`, each lane reads as many bytes as
    /// [`row_bytes`] says where there are gaps.
    pub(super) fn new(
        access: MemAccess,
        count: u16,
        stride: i64,
        whole_rows: bool,
    ) -> Option<Strided> {
        let exact = u64::from(access.elem.bytes()) * u64::from(access.comps);
        let kind = match stride {
            0 => StridedKind::Same,
            s if s.cast_unsigned() == exact => StridedKind::Packed,
            _ => StridedKind::Spread,
        };
        let distance = stride.checked_mul(i64::from(count) - 1)?;
        let last = match kind {
            StridedKind::Spread if whole_rows => row_bytes(access.elem, access.comps).into(),
            _ => exact,
        };
        let bytes = distance.unsigned_abs().checked_add(last)?;
        (bytes <= MAX_SPAN).then_some(Strided {
            kind,
            stride,
            lowest: distance.min(0),
            bytes,
        })
    }

    /// The same as a [`StridedKind::Run`], where its lanes are at most as many elements apart as given.
    pub(super) fn as_run(self, access: MemAccess, count: u16, most: u32) -> Strided {
        let elem = access.elem.bytes();
        let exact = u64::from(elem) * u64::from(access.comps);
        let steps = self.stride.unsigned_abs() / u64::from(elem);
        let near = self.stride % i64::from(elem) == 0 && steps <= u64::from(most);
        // Vectors of as many elements as there are lanes, and of no fewer bytes than the shortest vector has.
        let whole = count.is_power_of_two() && u32::from(count) * elem >= 16;
        if self.kind != StridedKind::Spread || !near || !whole {
            return self;
        }
        let distance = self.stride.unsigned_abs() * (u64::from(count) - 1);
        Strided {
            kind: StridedKind::Run,
            bytes: distance + exact,
            ..self
        }
    }

    /// The same as a [`StridedKind::Overlap`], where an element is two or four times as wide as its lanes are apart.
    pub(super) fn as_overlap(self, access: MemAccess, count: u16) -> Strided {
        let elem = i64::from(access.elem.bytes());
        let parts = self.stride > 0 && [2, 4].contains(&(elem / self.stride));
        let whole = parts && elem % self.stride == 0 && access.comps == 1;
        // Shorter vectors of parts are none that both code generators have.
        let long = count.is_power_of_two() && i64::from(count) * self.stride >= 16;
        match self.kind == StridedKind::Spread && whole && long {
            true => Strided {
                kind: StridedKind::Overlap,
                ..self
            },
            false => self,
        }
    }

    /// Of a [`StridedKind::Run`] with elements of `elem` bytes: the number of the element, from the lowest on, that a component of a lane is.
    pub(in crate::backend) fn element(&self, elem: u32, lane: u16, comp: u16) -> u16 {
        let at = self.stride * i64::from(lane) - self.lowest;
        (at / i64::from(elem)) as u16 + comp // few, as lanes are near each other
    }

    /// Number of elements of `elem` bytes from the lowest to the highest.
    pub(in crate::backend) const fn elements(&self, elem: u32) -> u16 {
        (self.bytes / elem as u64) as u16
    }

    /// The code for it.
    pub(super) const fn way(&self, lanes: u16) -> Way {
        match self.kind {
            StridedKind::Same => Way::Broadcast,
            StridedKind::Packed | StridedKind::Run | StridedKind::Overlap => Way::Vector,
            StridedKind::Spread => Way::Lanes(lanes),
        }
    }

    /// True if all its bytes lie below `size` when lane 0 is at `known`.
    pub(super) fn lies_in(&self, known: u64, size: u32) -> bool {
        let low = known.checked_add_signed(self.lowest);
        let end = low.and_then(|low| low.checked_add(self.bytes));
        end.is_some_and(|end| end <= u64::from(size))
    }
}

/// Bytes that loading the components of a lane in rows of 16 reads: three words are read as four.
pub(in crate::backend) const fn row_bytes(elem: Lane, comps: u8) -> u32 {
    let bytes = elem.bytes() * comps as u32;
    if comps > 1 && elem.bytes() >= 4 && bytes % 16 == 12 {
        bytes + 4
    } else {
        bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::Space;

    const fn access(elem: Lane, comps: u8) -> MemAccess {
        MemAccess {
            space: Space::Flat,
            elem,
            comps,
            site: 0,
        }
    }

    fn strided(comps: u8, stride: i64, whole_rows: bool) -> Option<(StridedKind, i64, u64)> {
        let s = Strided::new(access(Lane::I32, comps), 16, stride, whole_rows)?;
        Some((s.kind, s.lowest, s.bytes))
    }

    #[test]
    fn a_stride_says_what_an_access_is() {
        assert_eq!(strided(1, 0, false), Some((StridedKind::Same, 0, 4)));
        assert_eq!(strided(1, 4, false), Some((StridedKind::Packed, 0, 64)));
        assert_eq!(strided(3, 12, true), Some((StridedKind::Packed, 0, 192)));
        assert_eq!(strided(1, 8, false), Some((StridedKind::Spread, 0, 124)));
        assert_eq!(strided(1, -4, false), Some((StridedKind::Spread, -60, 64)));
    }

    #[test]
    fn neighbours_share_bytes() {
        let kind = |lane, comps, stride| {
            let access = access(lane, comps);
            let strided = Strided::new(access, 16, stride, false).unwrap();
            let overlap = strided.as_overlap(access, 16);
            assert_eq!(
                (overlap.lowest, overlap.bytes),
                (strided.lowest, strided.bytes)
            );
            overlap.kind
        };
        for (lane, stride) in [
            (Lane::I16, 1),
            (Lane::I32, 1),
            (Lane::F32, 2),
            (Lane::I64, 4),
        ] {
            assert_eq!(
                kind(lane, 1, stride),
                StridedKind::Overlap,
                "{lane:?} by {stride}"
            );
        }
        for (lane, comps, stride) in [
            (Lane::I16, 1, -1),
            (Lane::I16, 2, 1),
            (Lane::I32, 1, 3),
            (Lane::I64, 1, 1),
            (Lane::I32, 1, 8),
        ] {
            assert_eq!(
                kind(lane, comps, stride),
                StridedKind::Spread,
                "{lane:?} by {stride}"
            );
        }
        assert_eq!(kind(Lane::I32, 1, 4), StridedKind::Packed);
        assert_eq!(kind(Lane::I32, 1, 0), StridedKind::Same);
    }

    #[test]
    fn three_words_are_read_as_four() {
        assert_eq!(
            strided(3, 32, false),
            Some((StridedKind::Spread, 0, 480 + 12))
        );
        assert_eq!(
            strided(3, 32, true),
            Some((StridedKind::Spread, 0, 480 + 16))
        );
        for (elem, comps, bytes) in [
            (Lane::I8, 12, 12),
            (Lane::I32, 1, 4),
            (Lane::I32, 2, 8),
            (Lane::I32, 7, 32),
            (Lane::I64, 3, 24),
        ] {
            assert_eq!(row_bytes(elem, comps), bytes, "{elem:?} x {comps}");
        }
    }

    #[test]
    fn long_ranges_need_more_than_one_test() {
        assert!(strided(1, 1 << 20, false).is_some());
        assert_eq!(strided(1, 1 << 21, false), None);
        assert_eq!(strided(1, i64::MIN, false), None);
    }

    #[test]
    fn bytes_lie_in_storage_as_a_whole() {
        let up = Strided::new(access(Lane::I32, 1), 16, 4, false).unwrap();
        assert!(up.lies_in(64, 128) && !up.lies_in(65, 128));
        let down = Strided::new(access(Lane::I32, 1), 16, -4, false).unwrap();
        assert!(down.lies_in(60, 64) && !down.lies_in(59, 64));
        assert!(!up.lies_in(u64::MAX - 3, 128));
    }
}
