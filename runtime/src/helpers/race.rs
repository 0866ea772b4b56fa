//! What code with checks of races calls before each access to memory that other threads reach.

use super::message::{FLAT_OFFSET, Region};
use crate::abi::{GroupCtx, message, race as code};
use crate::fault::{FaultKind, FaultSink, OtherAccess};
use crate::group;
use crate::race::{Does, Memory, Now, Races, Run, lane_bits};
use std::collections::HashMap;
use std::ops::Range;

/// Most words that are entered at once.
const ROW: usize = 64;

/// Most words of one lane that are entered at once.
const LANE_ROW: usize = 16;

/// Operands of a call, decoded.
#[derive(Clone, Copy)]
pub(super) struct Access {
    group: *mut GroupCtx,
    region: Region,
    memory: Memory,
    flat: bool,
    thread: u32,
    site: u32,
    does: Does,
    /// Stores of the value that is there already are accesses, too.
    same_value: bool,
    /// The elements of a lane lie one after the other in the block, as there is one lane.
    is_block: bool,
    bytes: u32,
    count: usize,
    comps: usize,
    /// Number in the thread of lane 0.
    first_lane: u32,
    surface: u32,
    enabled: u32,
    addresses: *const u8,
    data: *const u8,
}

/// Elements of enabled lanes at even distances.
struct Even {
    /// From lane to lane: the size of a lane's elements, or 0.
    stride: u64,
    /// Of the enabled lanes.
    first: usize,
    last: usize,
}

impl Access {
    /// # Safety
    /// As [`race`].
    unsafe fn new(
        group: *mut GroupCtx,
        (thread, site): (u32, u32),
        (shape, same_value): (u32, bool),
        surface: u32,
        enabled: u32,
        block: *const u8,
    ) -> Access {
        let place = shape >> 2 & 7;
        let flat = place == message::FLAT;
        let count = (shape >> 8 & 63) as usize;
        let address_bytes = count << if flat { 3 } else { 2 };
        // SAFETY: as promised; only scratch memory and register storage are a thread's.
        let (region, local) = unsafe {
            (
                Region::new(group, std::ptr::null(), place, surface),
                (*group).slm,
            )
        };
        Access {
            group,
            region,
            memory: match place {
                message::SLM => Memory::Local(local as u64),
                _ => Memory::Shared,
            },
            flat,
            thread,
            site,
            does: Does {
                writes: shape & code::WRITES != 0,
                atomic: shape & code::ATOMIC != 0,
            },
            same_value,
            is_block: shape & code::BLOCK != 0,
            bytes: 1 << (shape & 3),
            count,
            comps: (shape >> 16 & 0x7FF) as usize,
            first_lane: shape >> 27,
            surface: if place == message::SURFACE {
                surface
            } else {
                0
            },
            enabled,
            addresses: block,
            data: block.wrapping_add(address_bytes.next_multiple_of(16)),
        }
    }

    /// Address of a lane as the program gave it, and its offset in the region.
    #[inline(always)]
    fn at(&self, lane: usize) -> (u64, u64) {
        if self.flat {
            return self.flat_at(lane);
        }
        let offset = self.offset_at(lane);
        (offset, offset)
    }

    #[inline(always)]
    fn flat_at(&self, lane: usize) -> (u64, u64) {
        // SAFETY: the block has an address for each lane.
        let address = unsafe { self.addresses.cast::<u64>().add(lane).read() };
        let offset = address.wrapping_sub(self.region.first) & FLAT_OFFSET;
        (address, offset)
    }

    #[inline(always)]
    fn offset_at(&self, lane: usize) -> u64 {
        // SAFETY: the block has an offset for each lane.
        unsafe { self.addresses.cast::<u32>().add(lane).read() }.into()
    }

    /// Where an element is in the host's memory, if it is inside of its region, and the address for records.
    fn element(&self, lane: usize, k: usize) -> Option<(*mut u8, u64)> {
        let distance = k as u64 * u64::from(self.bytes);
        let (address, offset) = self.at(lane);
        let mut offset = offset + distance;
        if self.flat {
            offset &= FLAT_OFFSET;
        }
        if self.does.atomic {
            offset &= !(u64::from(self.bytes) - 1);
        }
        let inside = offset < (self.region.size + 1).saturating_sub(self.bytes.into());
        let place = self.region.base.wrapping_add(offset as usize);
        inside.then(|| (place, address.wrapping_add(distance)))
    }

    /// The same for an element that other threads reach.
    fn shared_element(&self, races: &Races, lane: usize, k: usize) -> Option<(*mut u8, u64)> {
        let found = self.element(lane, k);
        found.filter(|&(place, _)| !races.is_private(place as u64))
    }

    /// What a store leaves at an element.
    fn left(&self, lane: usize, k: usize) -> u64 {
        let bytes = self.bytes as usize;
        let at = if self.is_block {
            k * bytes
        } else {
            k * (self.count * bytes).next_multiple_of(16) + lane * bytes
        };
        // SAFETY: a store's block has its values there.
        unsafe { group::load(self.data.wrapping_add(at).cast_mut(), self.bytes) }
    }

    fn lanes(&self) -> impl Iterator<Item = usize> + use<> {
        let (count, enabled) = (self.count, self.enabled);
        (0..count).filter(move |lane| enabled >> lane & 1 != 0)
    }

    fn by(&self, lane: usize) -> OtherAccess {
        // SAFETY: the group is the one that runs.
        let r0 = unsafe { (*self.group).r0 };
        OtherAccess {
            group: [r0[1], r0[6], r0[7]],
            thread: self.thread,
            lane: lane as u32 + self.first_lane,
            site: self.site,
        }
    }

    /// Records a race; true when the launch has to stop.
    fn report(&self, kind: FaultKind, lane: usize, address: u64, other: OtherAccess) -> bool {
        // SAFETY: the sink belongs to the worker that runs this group, and only this call uses it now.
        let sink = unsafe { (*self.group).faults.cast::<FaultSink>().as_mut() };
        sink.is_none_or(|sink| sink.race(kind, self.by(lane), (address, self.surface), other))
    }

    /// How the elements of enabled lanes lie, where those of all lie one after the other, or all at one place.
    #[inline(always)]
    fn even(&self) -> Option<Even> {
        let size = self.comps as u64 * u64::from(self.bytes);
        let mut lanes = self.lanes();
        let first = lanes.next()?;
        let last = 31 - self.enabled.leading_zeros() as usize;
        if last >= self.count {
            return None;
        }
        let start = self.at(first).1;
        let stride = match lanes.next() {
            Some(second) if self.at(second).1 == start => 0,
            _ => size,
        };
        // Without branches, for vectors.
        let differs = |differs: u64, lane: usize, offset: u64| {
            let expected = start.wrapping_add(stride * (lane - first) as u64);
            let enabled = u64::from(self.enabled >> lane & 1).wrapping_neg();
            differs | (offset ^ expected) & enabled
        };
        let lanes = first..last + 1;
        let differs = match self.flat {
            true => lanes.fold(0, |d, lane| differs(d, lane, self.flat_at(lane).1)),
            false => lanes.fold(0, |d, lane| differs(d, lane, self.offset_at(lane))),
        };
        (differs == 0).then_some(Even {
            stride,
            first,
            last,
        })
    }

    /// Enters an access to whole words that lie side by side, if it races with none; true if nothing is left to do.
    #[inline(always)]
    fn is_entered_at_once(&self, races: &mut Races, now: &Now, even: &Even) -> bool {
        let size = self.comps * self.bytes as usize;
        // A store of narrow elements may change only some of a word.
        let whole = self.bytes >= 4 || (self.is_block && !self.does.writes);
        if self.does.atomic || !whole || !size.is_multiple_of(4) {
            return false;
        }
        let &Even {
            stride,
            first,
            last,
        } = even;
        if stride == 0 && (self.does.writes && first != last) {
            return false;
        }
        // Where lanes read one place, the last of them stays known.
        let lanes = if stride == 0 {
            last..last + 1
        } else {
            first..last + 1
        };
        let (_, offset) = self.at(lanes.start);
        let bytes = size * lanes.len();
        let inside = offset.checked_add(bytes as u64);
        if inside.is_none_or(|end| end > self.region.size) {
            return false;
        }
        let start = self.region.base.wrapping_add(offset as usize);
        if races.touches_private(start as u64..start as u64 + bytes as u64) {
            return false;
        }
        let words = size / 4;
        let all = words * lanes.len();
        if let Some(run) = self.run(&lanes, words)
            && (!self.does.writes || self.changes_all(&lanes, start))
        {
            return races.run(self.memory, now, start as u64, run);
        }
        let mut row = [0; ROW];
        for at in (0..all).step_by(ROW) {
            let row = &mut row[..ROW.min(all - at)];
            for (word, bits) in (at..).zip(row.iter_mut()) {
                let lane = lanes.start + word / words;
                let enabled = self.enabled >> lane & 1 != 0;
                let place = start.wrapping_add(4 * word);
                let accessed =
                    enabled && (!self.does.writes || self.changes(lane, word % words, place));
                *bits = if accessed {
                    lane_bits(lane as u32 + self.first_lane)
                } else {
                    0
                };
            }
            if !races.words(self.memory, now, start as u64 + 4 * at as u64, row) {
                return false;
            }
        }
        true
    }

    /// The same for the elements of one lane.
    #[inline(always)]
    fn is_lane_entered_at_once(&self, races: &mut Races, now: &Now, lane: usize) -> bool {
        let size = self.comps * self.bytes as usize;
        let words = size / 4;
        if self.does.atomic || self.bytes < 4 || words > LANE_ROW {
            return false;
        }
        let (_, offset) = self.at(lane);
        let inside = offset.checked_add(size as u64);
        if inside.is_none_or(|end| end > self.region.size) {
            return false;
        }
        let start = self.region.base.wrapping_add(offset as usize);
        if races.touches_private(start as u64..start as u64 + size as u64) {
            return false;
        }
        let bits = lane_bits(lane as u32 + self.first_lane);
        if words == 1 {
            let nothing = self.does.writes && !self.changes(lane, 0, start);
            return nothing || races.words(self.memory, now, start as u64, &[bits]);
        }
        let mut row = [bits; LANE_ROW];
        let row = &mut row[..words];
        if self.does.writes {
            for (word, bits) in row.iter_mut().enumerate() {
                if !self.changes(lane, word, start.wrapping_add(4 * word)) {
                    *bits = 0;
                }
            }
        }
        races.words(self.memory, now, start as u64, row)
    }

    /// All of these lanes, if all are enabled and each has a number of words that is a power of two.
    fn run(&self, lanes: &Range<usize>, words: usize) -> Option<Run> {
        let bits = (u32::MAX >> (32 - lanes.len())) << lanes.start;
        let enabled = self.enabled & bits == bits;
        (enabled && words.is_power_of_two()).then(|| Run {
            words: (words * lanes.len()) as u64,
            lane: lanes.start as u32 + self.first_lane,
            shift: if lanes.len() == 1 {
                Run::ONE_LANE
            } else {
                words.ilog2()
            },
        })
    }

    /// Whether a store changes every element of these lanes. The first is at `start`, and the others follow it.
    #[inline(always)]
    fn changes_all(&self, lanes: &Range<usize>, start: *mut u8) -> bool {
        if self.same_value {
            return true;
        }
        let size = self.bytes as usize;
        if self.comps == 1 || self.is_block {
            // The values lie one after the other, as the elements do.
            let from = if self.is_block { 0 } else { lanes.start };
            let left = self.data.wrapping_add(from * size);
            let count = self.comps * lanes.len();
            // SAFETY: the elements are inside of their region, and a store's block has their values.
            unsafe {
                match self.bytes {
                    4 => return all_differ::<u32>(start.cast(), left.cast(), count),
                    8 => return all_differ::<u64>(start.cast(), left.cast(), count),
                    _ => {}
                }
            }
        }
        let lane = |n: usize| start.wrapping_add(n * self.comps * size);
        (0..lanes.len()).all(|n| {
            (0..self.comps).all(|k| {
                let place = lane(n).wrapping_add(k * size);
                // SAFETY: the element is inside of its region.
                unsafe { group::load(place, self.bytes) != self.left(lanes.start + n, k) }
            })
        })
    }

    /// Whether a store changes the element to which a word of its lane belongs. `place` is where the word is.
    fn changes(&self, lane: usize, word: usize, place: *mut u8) -> bool {
        let bytes = self.bytes as usize;
        let k = word * 4 / bytes;
        let place = place.wrapping_sub(word * 4 % bytes);
        // SAFETY: the element is inside of its region.
        self.same_value || unsafe { group::load(place, self.bytes) != self.left(lane, k) }
    }

    /// Checks each element; true when the launch has to stop.
    #[inline(always)]
    fn elements(&self, races: &mut Races, even: Option<&Even>) -> bool {
        let now = races.now(self.memory, self.thread, self.site, self.does);
        if even.is_some_and(|even| self.is_entered_at_once(races, &now, even)) {
            return false;
        }
        // Lanes at arbitrary addresses wait for memory together.
        for lane in self.lanes() {
            let place = self.region.base.wrapping_add(self.at(lane).1 as usize);
            races.prefetch(self.memory, place, self.does.writes);
        }
        let early = self.early_conflicts(races, &now);
        for (nth, lane) in self.lanes().enumerate() {
            if self.is_lane_entered_at_once(races, &now, lane) {
                continue;
            }
            for k in 0..self.comps {
                let early = early.get(nth * self.comps + k).copied().flatten();
                let Some((place, address)) = self.accessed(races, lane, k) else {
                    continue;
                };
                let number = lane as u32 + self.first_lane;
                let at = (place as u64, self.bytes);
                let found = races.element(self.memory, &now, at, number);
                if let Some(found) = early.or(found) {
                    let other = races.who(found, self.by(lane).group);
                    if self.report(FaultKind::Race, lane, address, other) {
                        return true;
                    }
                }
            }
        }
        false
    }

    /// What each element of each lane races with, if lanes share words and one races: to enter the access of one lane to some bytes of a
    /// word makes what was known of the others forgotten.
    fn early_conflicts(&self, races: &mut Races, now: &Now) -> Vec<Option<(u64, u32)>> {
        let share = self.bytes < 4 || self.lanes().any(|lane| !self.at(lane).1.is_multiple_of(4));
        if !share || self.does.atomic {
            return Vec::new();
        }
        let elements = || {
            let lanes = self.lanes();
            lanes.flat_map(|lane| (0..self.comps).map(move |k| (lane, k)))
        };
        let mut of = |(lane, k)| {
            let (place, _) = self.accessed(races, lane, k)?;
            races.conflict(self.memory, now, (place as u64, self.bytes))
        };
        if elements().all(|element| of(element).is_none()) {
            return Vec::new();
        }
        elements().map(of).collect()
    }

    /// An element that other threads reach, unless a store leaves what is there.
    fn accessed(&self, races: &Races, lane: usize, k: usize) -> Option<(*mut u8, u64)> {
        let (place, address) = self.shared_element(races, lane, k)?;
        if self.does.writes && !self.does.atomic && !self.same_value {
            // SAFETY: the element is inside of its region.
            let old = unsafe { group::load(place, self.bytes) };
            if old == self.left(lane, k) {
                return None;
            }
        }
        Some((place, address))
    }

    /// Whether no two lanes of a store surely reach the same byte.
    fn are_apart(&self) -> bool {
        let size = self.comps as u64 * u64::from(self.bytes);
        let mut ends = None;
        let ascends = self.lanes().all(|lane| {
            let (_, offset) = self.at(lane);
            let after = ends.is_none_or(|end| offset >= end);
            ends = Some(offset + size);
            after
        });
        ascends || {
            let others = |lane| self.lanes().filter(move |&l| l < lane);
            let mut lanes = self.lanes();
            lanes.all(|lane| {
                others(lane).all(|other| self.at(lane).1.abs_diff(self.at(other).1) >= size)
            })
        }
    }

    /// Checks that no two lanes of a store leave different values at one byte; true when the launch has to stop.
    fn lanes_differ(&self, races: &Races) -> bool {
        if self.are_apart() {
            return false;
        }
        let mut left: HashMap<u64, (usize, u8)> = HashMap::new();
        for lane in self.lanes() {
            for k in 0..self.comps {
                let Some((place, address)) = self.shared_element(races, lane, k) else {
                    continue;
                };
                let bytes = self.left(lane, k).to_le_bytes();
                let mut other = None;
                for (at, &byte) in (place as u64..).zip(bytes.iter().take(self.bytes as usize)) {
                    let before = left.insert(at, (lane, byte));
                    let differs = |&(l, b): &(usize, u8)| l != lane && b != byte;
                    other = other.or(before.filter(differs));
                }
                if let Some((first, _)) = other
                    && self.report(FaultKind::LaneRace, lane, address, self.by(first))
                {
                    return true;
                }
            }
        }
        false
    }
}

/// Whether no element has the value that it has in another place.
///
/// # Safety
/// Both places have `count` elements. Other threads may write them: values are only compared.
#[inline(always)]
unsafe fn all_differ<T: Copy + PartialEq>(a: *const T, b: *const T, count: usize) -> bool {
    // Without branches, for vectors.
    let same = (0..count).fold(false, |same, i| {
        // SAFETY: as promised.
        same | unsafe { a.add(i).read_unaligned() == b.add(i).read_unaligned() }
    });
    !same
}

/// [`crate::abi::Helpers::race`].
///
/// # Safety
/// `group` must be the group that runs, and the block as [`crate::abi::RaceCheck`] says.
pub(super) unsafe extern "C" fn race(
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    shape: u32,
    surface: u32,
    enabled: u32,
    block: *const u8,
) -> u32 {
    // SAFETY: as promised.
    unsafe { check(group, (thread, site), shape, surface, enabled, block) }
}

/// The same with the vectors of AVX-512.
///
/// # Safety
/// As [`race`], on a processor that has them.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
pub(super) unsafe extern "C" fn wide_race(
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    shape: u32,
    surface: u32,
    enabled: u32,
    block: *const u8,
) -> u32 {
    // SAFETY: as promised.
    unsafe { check(group, (thread, site), shape, surface, enabled, block) }
}

/// # Safety
/// As [`race`].
#[inline(always)]
unsafe fn check(
    group: *mut GroupCtx,
    (thread, site): (u32, u32),
    shape: u32,
    surface: u32,
    enabled: u32,
    block: *const u8,
) -> u32 {
    // SAFETY: valid by the caller's promise; only the worker that runs the group uses what is known of its launch.
    let Some(races) = (unsafe { (*group).races.cast::<Races>().as_mut() }) else {
        return 0;
    };
    let shape = (shape, races.same_value);
    // SAFETY: as promised.
    let access = unsafe { Access::new(group, (thread, site), shape, surface, enabled, block) };
    let even = access.even();
    let apart = even
        .as_ref()
        .is_some_and(|even| even.stride != 0 || even.first == even.last);
    let stores = access.does.writes && !access.does.atomic && !access.is_block;
    let stop = stores && !apart && access.lanes_differ(races);
    u32::from(stop || access.elements(races, even.as_ref()))
}

/// Checks one element of a rectangle before it is moved; true when the launch has to stop. `left` is what a store leaves there.
///
/// # Safety
/// `group` must be the group that runs, and the element inside of device memory.
pub(super) unsafe fn texel(
    group: *mut GroupCtx,
    by: (u32, u32, u32),
    (place, bytes): (*mut u8, u32),
    left: Option<u64>,
) -> bool {
    // SAFETY: as in `race`.
    let (races, sink, r0) = unsafe {
        (
            (*group).races.cast::<Races>().as_mut(),
            (*group).faults.cast::<FaultSink>().as_mut(),
            (*group).r0,
        )
    };
    let (Some(races), Some(sink)) = (races, sink) else {
        return false;
    };
    // SAFETY: as promised.
    let old = unsafe { group::load(place, bytes) };
    if races.is_private(place as u64) || (left == Some(old) && !races.same_value) {
        return false;
    }
    let (thread, site, lane) = by;
    let does = Does {
        writes: left.is_some(),
        atomic: false,
    };
    let now = races.now(Memory::Shared, thread, site, does);
    let Some(found) = races.element(Memory::Shared, &now, (place as u64, bytes), lane) else {
        return false;
    };
    let by = OtherAccess {
        group: [r0[1], r0[6], r0[7]],
        thread,
        lane,
        site,
    };
    let other = races.who(found, by.group);
    sink.race(FaultKind::Race, by, (place as u64, 0), other)
}
