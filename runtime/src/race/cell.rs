//! What is known of the accesses to an aligned word of four bytes, packed into numbers of 64 bits.
//!
//! A *slot* is one past access. Zero means none, as a launch counts its epochs from 1. Fields, from bit 0 on:
//!
//! | bits | field | meaning |
//! |---|---|---|
//! | 4 | bytes | of the word, those that were accessed |
//! | 3 | form | which lane accessed which byte, see [`FORMS`] |
//! | 5 | lane | of the lowest of the bytes, as the thread numbers it |
//! | 1 | atomic | |
//! | 12 | site | [`MAX_SITE`] stands for all greater numbers |
//! | 10 | thread | of its group |
//! | 28 | epoch | runs on from group to group and from launch to launch |
//!
//! The epoch is the highest field, so slots compare as their epochs do.

use crate::abi::race::Step;

/// Position of the lane.
pub(super) const LANE: u32 = 7;
const FORM: u32 = 4;
pub(super) const ATOMIC: u64 = 1 << 12;
const SITE: u32 = 13;
/// Position of the thread, above which a slot says who made the access and between which barriers.
pub(super) const THREAD: u32 = 25;
/// Position of the epoch.
pub(super) const EPOCH: u32 = 35;
/// Greatest epoch.
pub(super) const MAX_EPOCH: u64 = (1 << 28) - 1;
/// Site of a slot that stands for all that have no number of their own.
pub(super) const MAX_SITE: u32 = (1 << 12) - 1;
/// All bytes of a word.
pub(super) const WHOLE: u64 = 15;

/// Bits of the thread, above [`THREAD`].
pub(super) const THREADS: u64 = (1 << (EPOCH - THREAD)) - 1;
const _: () = assert!(crate::limits::MAX_GROUP_LANES as u64 <= THREADS + 1);

/// Which lane accessed which byte: the lane changes by `.1` after each `1 << .0` bytes. The first form is one lane.
const FORMS: [(u32, i32); 5] = [(2, 0), (0, 1), (0, -1), (1, 1), (1, -1)];

/// Lane of byte `byte` of a word in which `lane` accessed byte `lowest`.
fn lane_of(form: (u32, i32), lane: u32, lowest: u32, byte: u32) -> Option<u32> {
    let steps = (byte >> form.0).checked_sub(lowest >> form.0)? as i32;
    lane.checked_add_signed(steps * form.1)
}

/// A slot without lane and bytes.
pub(super) fn base(epoch: u64, thread: u32, site: u32, atomic: bool) -> u64 {
    let atomic = if atomic { ATOMIC } else { 0 };
    let site = u64::from(site.min(MAX_SITE));
    epoch << EPOCH | (u64::from(thread) & THREADS) << THREAD | site << SITE | atomic
}

/// What is added to the slot of a read for the next one of several; `None` where a site has no number of its own. Lanes of all of them are those of
/// a thread.
#[inline(always)]
pub(super) fn next(base: u64, step: Step, count: u8) -> Option<u64> {
    let (first, site) = (low_site(base) as i64, i64::from(step.site));
    let last = first + site * (i64::from(count) - 1);
    let sites = 0..i64::from(MAX_SITE);
    let known = sites.contains(&first) && sites.contains(&last);
    let next = (site << SITE) + (i64::from(step.lane) << LANE);
    known.then_some(next.cast_unsigned())
}

/// What an access of a lane to all bytes of a word adds to [`base`].
#[inline(always)]
pub(crate) const fn lane_bits(lane: u32) -> u64 {
    (lane as u64) << LANE | WHOLE
}

/// The same of lanes that access a half of the word each, or a byte, from `lane` on; `lanes` is the logarithm of their number.
#[inline(always)]
pub(crate) const fn narrow_bits(lane: u32, lanes: u32) -> u64 {
    const _: () = assert!(FORMS[1].0 == 0 && FORMS[3].0 == 1 && FORMS[1].1 == 1 && FORMS[3].1 == 1);
    let form = if lanes == 1 { 3 } else { 1 };
    (lane as u64) << LANE | form << FORM | WHOLE
}

pub(super) fn epoch(slot: u64) -> u64 {
    slot >> EPOCH
}

pub(super) fn thread(slot: u64) -> u32 {
    (slot >> THREAD & THREADS) as u32
}

/// Number of the site; none where it has no number of its own.
pub(super) fn site(slot: u64) -> Option<u32> {
    let site = (slot >> SITE) as u32 & MAX_SITE;
    (site != MAX_SITE).then_some(site)
}

/// Low bits of the number of a site, which other sites may share.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn low_site(slot: u64) -> usize {
    (slot >> SITE) as usize & MAX_SITE as usize
}

/// Lane that accessed a byte of the word.
pub(super) fn lane(slot: u64, byte: u32) -> u32 {
    let form = FORMS.get((slot >> FORM & 7) as usize);
    let lane = (slot >> LANE & 31) as u32;
    let lowest = (slot & WHOLE).trailing_zeros();
    let of_byte = form.and_then(|&form| lane_of(form, lane, lowest, byte));
    of_byte.unwrap_or(lane)
}

/// An access that is being made, and which slots count as old for it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// Slot without lane and bytes.
    pub base: u64,
    /// First slot of the launch, or of the group if its local memory is accessed.
    pub floor: u64,
    /// First slot of the group.
    pub group: u64,
    /// First slot of the epoch.
    pub epoch: u64,
    pub writes: bool,
}

impl Now {
    pub(crate) fn is_atomic(&self) -> bool {
        self.base & ATOMIC != 0
    }

    /// Whether nothing orders this access after one in the past.
    #[inline(always)]
    pub(crate) fn unordered(&self, past: u64) -> bool {
        // Without branches, for vectors.
        (past >= self.floor)
            & ((past < self.group) | ((past >= self.epoch) & ((past ^ self.base) >> THREAD != 0)))
    }

    /// Whether an access in the past is another thread's, of this launch.
    #[inline(always)]
    pub(crate) fn is_other(&self, past: u64) -> bool {
        let thread = (past ^ self.base) >> THREAD & THREADS;
        (past >= self.floor) & ((past < self.group) | (thread != 0))
    }
}

/// What is known of a word: its last plain write, its last atomic, its last read, and the last read by another thread than that one.
pub(super) type Cell = [u64; 4];

pub(super) const PLAIN: usize = 0;
pub(super) const ATOMICS: usize = 1;
pub(super) const READ: usize = 2;
pub(super) const OTHER: usize = 3;

/// Enters an access of a lane to bytes of a word. Returns the slot of an access that it races with, and the lowest byte of the word at
/// which it does.
pub(super) fn access(cell: &mut Cell, now: &Now, lane: u32, bytes: u64) -> Option<(u64, u32)> {
    let race = conflict(cell, now, bytes);
    let slot = now.base | u64::from(lane) << LANE | bytes;
    if now.writes {
        let at = if now.is_atomic() { ATOMICS } else { PLAIN };
        cell[at] = joined(now, cell[at], slot);
    } else {
        if now.is_other(cell[READ]) {
            cell[OTHER] = cell[READ];
        }
        cell[READ] = joined(now, cell[READ], slot);
    }
    race
}

/// The first access, in the order of bytes and of a cell, that an access to bytes races with.
pub(super) fn conflict(cell: &Cell, now: &Now, bytes: u64) -> Option<(u64, u32)> {
    let mut first: Option<(u64, u32)> = None;
    for (place, &past) in cell.iter().enumerate() {
        let matters = now.writes || place < READ;
        let both_atomic = now.is_atomic() && past & ATOMIC != 0;
        let shared = past & bytes & WHOLE;
        if !matters || both_atomic || shared == 0 || !now.unordered(past) {
            continue;
        }
        let byte = shared.trailing_zeros();
        if first.is_none_or(|(_, least)| byte < least) {
            first = Some((past, byte));
        }
    }
    first
}

/// What a slot becomes after a later access to the word. Bytes that only the earlier access has stay known if both are of one instruction, and
/// the lanes fit one of the [`FORMS`].
fn joined(now: &Now, past: u64, slot: u64) -> u64 {
    let (old, new) = (past & WHOLE, slot & WHOLE);
    let same = past >> (LANE + 5) == slot >> (LANE + 5);
    if old & !new == 0 || past < now.floor || !same {
        return slot;
    }
    let all = old | new;
    let lowest = all.trailing_zeros();
    let of = |byte: u32| {
        let from = if new >> byte & 1 != 0 { slot } else { past };
        lane(from, byte)
    };
    let first = of(lowest);
    let mut bytes = (0..4).filter(|byte| all >> byte & 1 != 0);
    let fits = |form: &(u32, i32)| {
        let mut bytes = bytes.clone();
        bytes.all(|byte| lane_of(*form, first, lowest, byte) == Some(of(byte)))
    };
    let form = FORMS.iter().position(fits);
    bytes.next();
    match form {
        Some(form) => {
            let common = slot >> (LANE + 5) << (LANE + 5);
            common | u64::from(first) << LANE | (form as u64) << FORM | all
        }
        None => slot,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An access of a thread in an epoch of one group that began with epoch 8; the launch began with epoch 5.
    fn now(epoch: u64, thread: u32, writes: bool, atomic: bool) -> Now {
        Now {
            base: base(epoch, thread, 7, atomic),
            floor: 5 << EPOCH,
            group: 8 << EPOCH,
            epoch: epoch << EPOCH,
            writes,
        }
    }

    #[test]
    fn fields_come_back() {
        for byte in 0..4 {
            let slot = base(MAX_EPOCH, 1023, 99, true) | 31 << LANE | 1 << byte;
            assert_eq!((epoch(slot), thread(slot)), (MAX_EPOCH, 1023));
            assert_eq!((site(slot), lane(slot, byte)), (Some(99), 31));
            assert!(slot >> 63 == 0, "signed comparisons");
        }
        assert_eq!(site(base(1, 0, 5000, false)), None);
    }

    /// The rules: who made the earlier access, when, and how.
    #[test]
    fn order_and_conflicts() {
        for (early, late, races) in [
            // Another thread of the group, before and after a barrier.
            (now(9, 1, true, false), now(9, 2, false, false), true),
            (now(8, 1, true, false), now(9, 2, false, false), false),
            // The same thread.
            (now(9, 2, true, false), now(9, 2, true, false), false),
            // Another group of the launch, whatever the thread.
            (now(6, 2, true, false), now(9, 2, false, false), true),
            (now(6, 2, false, false), now(9, 2, true, false), true),
            (now(6, 2, false, false), now(9, 2, false, false), false),
            // Another launch.
            (now(4, 2, true, false), now(9, 2, true, false), false),
            // Atomics.
            (now(6, 2, true, true), now(9, 2, true, true), false),
            (now(6, 2, true, true), now(9, 2, false, true), false),
            (now(6, 2, false, true), now(9, 2, true, true), false),
            (now(6, 2, true, true), now(9, 2, false, false), true),
            (now(6, 2, true, false), now(9, 2, true, true), true),
            (now(6, 2, false, true), now(9, 2, true, false), true),
        ] {
            let mut cell = Cell::default();
            assert_eq!(access(&mut cell, &early, 3, WHOLE), None);
            let found = access(&mut cell, &late, 4, WHOLE);
            assert_eq!(found.is_some(), races, "{early:?} {late:?}");
            // Other bytes of the word do not race.
            let mut cell = Cell::default();
            access(&mut cell, &early, 3, 3);
            assert_eq!(access(&mut cell, &late, 4, 12), None);
        }
    }

    #[test]
    fn a_plain_write_stays_known_beside_atomics() {
        let mut cell = Cell::default();
        access(&mut cell, &now(9, 1, true, false), 3, WHOLE);
        access(&mut cell, &now(9, 1, true, true), 3, WHOLE);
        assert!(access(&mut cell, &now(9, 2, true, true), 3, WHOLE).is_some());
    }

    #[test]
    fn two_readers_are_known() {
        let mut cell = Cell::default();
        for thread in [1, 2, 2] {
            access(&mut cell, &now(9, thread, false, false), thread, WHOLE);
        }
        let (found, _) = access(&mut cell, &now(9, 2, true, false), 0, WHOLE).unwrap();
        assert_eq!((thread(found), lane(found, 0)), (1, 1));
    }

    /// Bytes and halves of a word by neighbouring lanes, up and down, are all known.
    #[test]
    fn lanes_of_narrow_elements_are_told_apart() {
        for (size, lanes) in [
            (1, [4, 5, 6, 7]),
            (1, [7, 6, 5, 4]),
            (2, [4, 5, 0, 0]),
            (2, [5, 4, 0, 0]),
        ] {
            let mut cell = Cell::default();
            let early = now(9, 1, true, false);
            let elements = || (0..4 / size).map(|k| (lanes[k], k * size));
            for (lane, at) in elements() {
                let bytes = ((1 << size) - 1) << at;
                assert_eq!(access(&mut cell, &early, lane, bytes), None);
            }
            for (of, at) in elements() {
                let bytes = 1 << (at + size - 1);
                let late = now(9, 2, false, false);
                let (found, byte) = access(&mut cell, &late, 0, bytes).unwrap();
                assert_eq!((lane(found, byte), byte as usize), (of, at + size - 1));
            }
        }
    }

    /// Of lanes that fit no form, only the last one is known.
    #[test]
    fn uneven_lanes_are_forgotten() {
        let mut cell = Cell::default();
        for (lane, byte) in [(9, 0), (3, 1), (20, 2)] {
            access(&mut cell, &now(9, 1, true, false), lane, 1 << byte);
        }
        let late = now(9, 2, false, false);
        assert_eq!(access(&mut cell, &late, 0, 1), None);
        let (found, byte) = access(&mut cell, &late, 0, 4).unwrap();
        assert_eq!(lane(found, byte), 20);
    }
}
