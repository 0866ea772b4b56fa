//! Buffers that a launch does not write. Checks of races need not record reads of them, as long as no write leaves the buffer of its pointer.

use std::ops::Range;

use crate::abi::{FLAT_OFFSET, Pointee};

/// The buffers that the pointers of a payload point into: those that the launch does not write, and those that it may write.
#[derive(Clone, Debug)]
pub struct Invariant {
    /// [`crate::abi::LaunchCtx::invariant_pointees`].
    pub(super) buffers: Vec<Pointee>,
    /// [`crate::abi::LaunchCtx::confined_pointees`].
    pub(super) confined: Vec<Pointee>,
}

impl Invariant {
    /// For a launch that only writes through the pointers at the offsets `written` of its payload. `buffers` are the addresses of the buffers among
    /// its arguments. `None` if one of these pointers points into none of them, or if all buffers may be written.
    pub fn new(payload: &[u8], buffers: &[Range<u64>], written: &[u32]) -> Option<Invariant> {
        let numbers = payload.chunks_exact(8).map(|bytes| {
            let bytes = bytes.iter().rev();
            bytes.fold(0, |number, &byte| number << 8 | u64::from(byte)) & FLAT_OFFSET
        });
        // Of a buffer that is part of another one, the larger one.
        let around = |number| {
            let all = buffers.iter().filter(|range| range.contains(&number));
            let whole = all.max_by_key(|range| range.end - range.start);
            whole.map_or(Pointee::default(), |range| Pointee {
                start: range.start,
                bytes: range.end - range.start,
            })
        };
        let found: Vec<Pointee> = numbers.map(around).collect();
        let of = |&at: &u32| found.get(at as usize / 8).filter(|p| p.bytes != 0);
        let written: Option<Vec<(u32, Pointee)>> =
            written.iter().map(|at| Some((*at, *of(at)?))).collect();
        let written = written?;
        let mut confined = vec![Pointee::default(); found.len()];
        for (at, pointee) in &written {
            confined[*at as usize / 8] = *pointee;
        }
        let apart =
            |a: &Pointee, b: &Pointee| a.start + a.bytes <= b.start || b.start + b.bytes <= a.start;
        let buffers: Vec<Pointee> = found
            .into_iter()
            .map(|p| match written.iter().all(|(_, of)| apart(&p, of)) {
                true => p,
                false => Pointee::default(),
            })
            .collect();
        let any = buffers.iter().any(|p| p.bytes != 0);
        any.then_some(Invariant { buffers, confined })
    }

    /// Whether the launch may write a byte of some addresses.
    pub fn may_write(&self, addresses: &Range<u64>) -> bool {
        let overlaps = |p: &Pointee| p.start < addresses.end && addresses.start < p.start + p.bytes;
        self.confined.iter().any(|p| p.bytes != 0 && overlaps(p))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn payload(words: &[u64]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn starts(of: &[Pointee]) -> Vec<u64> {
        of.iter().map(|p| p.start).collect()
    }

    #[test]
    fn buffers_that_no_written_pointer_points_into_are_invariant() {
        let buffers = [1000..1100, 2000..2100, 3000..3100];
        // A value, pointers into all buffers, one with a tag, and one past an end.
        let payload = payload(&[7, 1000, 2050, 1 << 48 | 3000, 3100]);
        let all = |written: &[u32]| Invariant::new(&payload, &buffers, written);
        let found = all(&[8]).unwrap();
        assert_eq!(starts(&found.buffers), [0, 0, 2000, 3000, 0]);
        assert_eq!(starts(&found.confined), [0, 1000, 0, 0, 0]);
        assert!(found.may_write(&(1099..1200)) && !found.may_write(&(1100..1200)));
        let nothing = all(&[]).unwrap();
        assert_eq!(starts(&nothing.buffers), [0, 1000, 2000, 3000, 0]);
        // All are written; a pointer points into no buffer; one lies beyond the payload.
        assert!(all(&[8, 16, 24]).is_none());
        assert!([0, 32, 40].iter().all(|&at| all(&[8, at]).is_none()));
    }

    #[test]
    fn parts_of_a_buffer_are_written_with_it() {
        let buffers = [1000..1100, 1000..1050, 1050..1100, 2000..2100];
        let payload = payload(&[1000, 1050, 2000]);
        let found = Invariant::new(&payload, &buffers, &[8]).unwrap();
        assert_eq!(starts(&found.buffers), [0, 0, 2000]);
        assert_eq!(found.confined[1].bytes, 100);
        // Neighbours that are not parts of one buffer.
        let found = Invariant::new(&payload, &buffers[1..], &[8]).unwrap();
        assert_eq!(starts(&found.buffers), [1000, 0, 2000]);
    }
}
