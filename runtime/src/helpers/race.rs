//! What code with checks of races calls before each access to memory that other threads reach.

use super::message::{FLAT_OFFSET, Region};
use crate::abi::{GroupCtx, message, race as code};
use crate::fault::{FaultKind, FaultSink, OtherAccess};
use crate::group;
use crate::race::{Does, Memory, Now, Races, lane_bits};
use std::collections::HashMap;

/// Most words that are entered at once.
const ROW: usize = 64;

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

impl Access {
    /// # Safety
    /// As [`race`].
    unsafe fn new(
        group: *mut GroupCtx,
        (thread, site): (u32, u32),
        shape: u32,
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
    fn at(&self, lane: usize) -> (u64, u64) {
        // SAFETY: the block has an address for each lane.
        unsafe {
            if self.flat {
                let address = self.addresses.cast::<u64>().add(lane).read();
                (
                    address,
                    address.wrapping_sub(self.region.first) & FLAT_OFFSET,
                )
            } else {
                let offset = self.addresses.cast::<u32>().add(lane).read().into();
                (offset, offset)
            }
        }
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

    /// Distance from lane to lane of enabled lanes, and the first and last of them, where the elements of all lie one after the other, or
    /// all at one place.
    fn stride(&self) -> Option<(u64, usize, usize)> {
        let size = self.comps as u64 * u64::from(self.bytes);
        let mut lanes = self.lanes();
        let first = lanes.next()?;
        let last = 31 - self.enabled.leading_zeros() as usize;
        let start = self.at(first).1;
        let stride = match lanes.next() {
            Some(second) if self.at(second).1 == start => 0,
            _ => size,
        };
        let even = |lane| self.at(lane).1 == start.wrapping_add(stride * (lane - first) as u64);
        (last < self.count && self.lanes().all(even)).then_some((stride, first, last))
    }

    /// Enters an access to whole words that lie side by side, if it races with none; true if nothing is left to do.
    fn is_entered_at_once(&self, races: &mut Races, now: &Now) -> bool {
        let size = self.comps * self.bytes as usize;
        // A store of narrow elements may change only some of a word.
        let whole = self.bytes >= 4 || (self.is_block && !self.does.writes);
        if self.does.atomic || !whole || !size.is_multiple_of(4) {
            return false;
        }
        let Some((stride, first, last)) = self.stride() else {
            return false;
        };
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
        let mut row = [0; ROW];
        let all = words * lanes.len();
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

    /// Whether a store changes the element to which a word of its lane belongs. `place` is where the word is.
    fn changes(&self, lane: usize, word: usize, place: *mut u8) -> bool {
        let bytes = self.bytes as usize;
        let k = word * 4 / bytes;
        let place = place.wrapping_sub(word * 4 % bytes);
        // SAFETY: the element is inside of its region.
        unsafe { group::load(place, self.bytes) != self.left(lane, k) }
    }

    /// Checks each element; true when the launch has to stop.
    fn elements(&self, races: &mut Races) -> bool {
        let now = races.now(self.memory, self.thread, self.site, self.does);
        if self.is_entered_at_once(races, &now) {
            return false;
        }
        for lane in self.lanes() {
            for k in 0..self.comps {
                let Some((place, address)) = self.shared_element(races, lane, k) else {
                    continue;
                };
                if self.does.writes && !self.does.atomic {
                    // SAFETY: the element is inside of its region.
                    let old = unsafe { group::load(place, self.bytes) };
                    if old == self.left(lane, k) {
                        continue;
                    }
                }
                let number = lane as u32 + self.first_lane;
                let at = (place as u64, self.bytes);
                if let Some(found) = races.element(self.memory, &now, at, number) {
                    let other = races.who(found, self.by(lane).group);
                    if self.report(FaultKind::Race, lane, address, other) {
                        return true;
                    }
                }
            }
        }
        false
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
    // SAFETY: valid by the caller's promise; only the worker that runs the group uses what is known of its launch.
    let Some(races) = (unsafe { (*group).races.cast::<Races>().as_mut() }) else {
        return 0;
    };
    // SAFETY: as promised.
    let access = unsafe { Access::new(group, (thread, site), shape, surface, enabled, block) };
    let stores = access.does.writes && !access.does.atomic && !access.is_block;
    let stop = stores && access.lanes_differ(races);
    u32::from(stop || access.elements(races))
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
    if races.is_private(place as u64) || left == Some(old) {
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
