//! What code with checks of races calls before each access to memory that other threads reach.

mod at_once;
#[cfg(target_arch = "x86_64")]
pub(super) mod wide;

use super::message::{FLAT_OFFSET, MemorySpan};
use crate::abi::{GroupCtx, message, race as code};
use crate::element;
use crate::fault::{FaultKind, FaultSink, OtherAccess};
use crate::race::{Does, Memory, Now, Races};
use at_once::AffineLanes;
use std::collections::HashMap;
use std::ops::Range;

/// Lanes that are looked at together where addresses are not affine over all lanes: rows of a tile often have this length.
const HALF: usize = 16;

/// Where the lanes' addresses are.
#[derive(Clone, Copy)]
enum Addresses {
    /// There.
    Block(*const u8),
    /// At equal distances, from that of lane 0 on.
    Affine(u64, u64),
}

/// Operands of a call, decoded.
#[derive(Clone, Copy)]
pub(super) struct RaceCall {
    group: *mut GroupCtx,
    region: MemorySpan,
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
    addresses: Addresses,
    data: *const u8,
}

impl RaceCall {
    /// # Safety
    /// As [`race`].
    #[inline(always)]
    unsafe fn new(
        group: *mut GroupCtx,
        (thread, site): (u32, u32),
        (shape, same_value): (u32, bool),
        (surface, enabled): (u32, u32),
        (addresses, data): (Addresses, *const u8),
    ) -> RaceCall {
        let place = shape >> 2 & 7;
        let flat = place == message::FLAT;
        // SAFETY: as promised; only scratch memory and register storage are a thread's.
        let (region, local) = unsafe {
            (
                MemorySpan::new(group, std::ptr::null(), place, surface),
                (*group).slm,
            )
        };
        RaceCall {
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
            count: lanes_of(shape),
            comps: (shape >> 16 & 0x7FF) as usize,
            first_lane: shape >> code::LANE_SHIFT,
            surface: if place == message::SURFACE {
                surface
            } else {
                0
            },
            enabled,
            addresses,
            data,
        }
    }

    /// Whether lanes are known to be so near to each other that the processor prefetches the next ones.
    #[cfg(target_arch = "x86_64")]
    fn is_dense(&self) -> bool {
        matches!(self.addresses, Addresses::Affine(_, stride) if stride.cast_signed().unsigned_abs() <= 16)
    }

    /// Address of a lane as the program gave it, and its offset in the region.
    #[inline(always)]
    fn lane_address(&self, lane: usize) -> (u64, u64) {
        if self.flat {
            return self.flat_at(lane);
        }
        let offset = self.offset_at(lane);
        (offset, offset)
    }

    #[inline(always)]
    fn flat_at(&self, lane: usize) -> (u64, u64) {
        let address = match self.addresses {
            // SAFETY: the block has an address for each lane.
            Addresses::Block(block) => unsafe { block.cast::<u64>().add(lane).read() },
            Addresses::Affine(first, stride) => {
                first.wrapping_add(stride.wrapping_mul(lane as u64))
            }
        };
        let offset = address.wrapping_sub(self.region.first) & FLAT_OFFSET;
        (address, offset)
    }

    #[inline(always)]
    fn offset_at(&self, lane: usize) -> u64 {
        match self.addresses {
            // SAFETY: the block has an offset for each lane.
            Addresses::Block(block) => unsafe { block.cast::<u32>().add(lane).read() }.into(),
            Addresses::Affine(first, stride) => {
                let offset = first.wrapping_add(stride.wrapping_mul(lane as u64));
                u64::from(offset as u32)
            }
        }
    }

    /// Where an element is in the host's memory, if it is inside of its region, and the address for records.
    fn element(&self, lane: usize, k: usize) -> Option<(*mut u8, u64)> {
        let distance = k as u64 * u64::from(self.bytes);
        let (address, offset) = self.lane_address(lane);
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
        unsafe { element::load(self.data.wrapping_add(at).cast_mut(), self.bytes) }
    }

    fn lanes(&self) -> impl Iterator<Item = usize> + use<> {
        self.lanes_in(0..self.count)
    }

    /// Those of some lanes that are enabled.
    #[inline(always)]
    fn lanes_in(&self, of: Range<usize>) -> impl Iterator<Item = usize> + use<> {
        let enabled = self.enabled;
        of.filter(move |lane| enabled >> lane & 1 != 0)
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

    /// Checks each element; true when the launch has to stop.
    #[inline(always)]
    fn elements<const WIDE: bool>(&self, races: &mut Races, affine: Option<&AffineLanes>) -> bool {
        let now = races.now(self.memory, self.thread, self.site, self.does);
        if affine.is_some_and(|affine| self.is_entered_at_once::<WIDE>(races, &now, affine)) {
            return false;
        }
        let shares = self.shares_words();
        let halves = self.count == 2 * HALF && matches!(self.addresses, Addresses::Block(_));
        if affine.is_some() || shares || !halves {
            let early = match shares && !self.does.atomic {
                true => self.early_conflicts(races, &now),
                false => Vec::new(),
            };
            return self.lanes_alone::<WIDE>(races, &now, 0..self.count, &early);
        }
        for half in [0..HALF, HALF..self.count] {
            let affine = self.affine(half.clone());
            let entered =
                affine.is_some_and(|affine| self.is_entered_at_once::<WIDE>(races, &now, &affine));
            if !entered && self.lanes_alone::<WIDE>(races, &now, half, &[]) {
                return true;
            }
        }
        false
    }

    /// The same for some lanes, one after the other.
    #[inline(always)]
    fn lanes_alone<const WIDE: bool>(
        &self,
        races: &mut Races,
        now: &Now,
        lanes: Range<usize>,
        early: &[Option<(u64, u32)>],
    ) -> bool {
        // Lanes at arbitrary addresses wait for memory together.
        for lane in self.lanes_in(lanes.clone()) {
            let place = self
                .region
                .base
                .wrapping_add(self.lane_address(lane).1 as usize);
            races.prefetch(self.memory, place, self.does.writes, false);
        }
        for lane in self.lanes_in(lanes) {
            if !self.is_lane_entered_at_once::<WIDE>(races, now, lane)
                && self.lane_alone(races, now, lane, early)
            {
                return true;
            }
        }
        false
    }

    /// The same for the elements of a lane, one by one.
    #[cold]
    fn lane_alone(
        &self,
        races: &mut Races,
        now: &Now,
        lane: usize,
        early: &[Option<(u64, u32)>],
    ) -> bool {
        let nth = self.lanes_in(0..lane).count();
        for k in 0..self.comps {
            let early = early.get(nth * self.comps + k).copied().flatten();
            let Some((place, address)) = self.accessed(races, lane, k) else {
                continue;
            };
            let number = lane as u32 + self.first_lane;
            let at = (place as u64, self.bytes);
            let found = races.element(self.memory, now, at, number);
            if let Some(found) = early.or(found) {
                let other = races.who(found, self.by(lane).group);
                if self.report(FaultKind::Race, lane, address, other) {
                    return true;
                }
            }
        }
        false
    }

    /// Whether lanes may reach bytes of one word.
    #[inline(always)]
    fn shares_words(&self) -> bool {
        // Without branches, for vectors.
        let low = (0..self.count).fold(0, |low, lane| {
            let enabled = u64::from(self.enabled >> lane & 1).wrapping_neg();
            low | self.lane_address(lane).1 & enabled
        });
        self.bytes < 4 || !low.is_multiple_of(4)
    }

    /// What each element of each lane races with, where lanes share words and one races: to enter the access of one lane to some bytes of a
    /// word makes what was known of the others forgotten.
    #[cold]
    fn early_conflicts(&self, races: &mut Races, now: &Now) -> Vec<Option<(u64, u32)>> {
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
            let old = unsafe { element::load(place, self.bytes) };
            if old == self.left(lane, k) {
                return None;
            }
        }
        Some((place, address))
    }

    /// Whether no two lanes of a store surely reach the same byte.
    #[inline(always)]
    fn are_apart(&self) -> bool {
        let size = self.comps as u64 * u64::from(self.bytes);
        if size.is_power_of_two() {
            // Numbers of aligned elements, without branches, for vectors.
            let mut numbers = [0u32; 32];
            let shift = size.trailing_zeros();
            let (mut low, mut high) = (0, 0);
            for (lane, number) in numbers.iter_mut().enumerate().take(self.count) {
                let enabled = u64::from(self.enabled >> lane & 1).wrapping_neg();
                let offset = self.lane_address(lane).1;
                low |= offset & enabled & (size - 1);
                high |= (offset & enabled) >> shift >> 31;
                // Lanes that are not enabled have numbers that no other one has.
                let other = u64::from(u32::MAX) - lane as u64;
                *number = ((offset >> shift) & enabled | other & !enabled) as u32;
            }
            if low | high == 0 {
                return differ(&numbers, self.count.min(32));
            }
        }
        let mut ends = None;
        let ascends = self.lanes().all(|lane| {
            let (_, offset) = self.lane_address(lane);
            let after = ends.is_none_or(|end| offset >= end);
            ends = Some(offset + size);
            after
        });
        ascends || {
            let others = |lane| self.lanes().filter(move |&l| l < lane);
            let mut lanes = self.lanes();
            lanes.all(|lane| {
                others(lane).all(|other| {
                    self.lane_address(lane)
                        .1
                        .abs_diff(self.lane_address(other).1)
                        >= size
                })
            })
        }
    }

    /// Checks that no two lanes of a store leave different values at one byte; true when the launch has to stop.
    #[cold]
    fn lanes_differ(&self, races: &Races) -> bool {
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

/// Whether the first `count` numbers are all different.
#[inline(always)]
fn differ(numbers: &[u32; 32], count: usize) -> bool {
    (1..count).all(|at| {
        // Without branches, for vectors.
        let this = numbers[at];
        let same =
            |any: bool, (before, &number): (usize, &u32)| any | ((number == this) & (before < at));
        !numbers.iter().enumerate().fold(false, same)
    })
}

/// Lanes of a shape.
#[inline(always)]
fn lanes_of(shape: u32) -> usize {
    (shape >> 8 & 63) as usize
}

/// The addresses of a block, and the values after them.
#[inline(always)]
fn block_of(shape: u32, block: *const u8) -> (Addresses, *const u8) {
    let flat = shape >> 2 & 7 == message::FLAT;
    let bytes = lanes_of(shape) << if flat { 3 } else { 2 };
    let values = block.wrapping_add(bytes.next_multiple_of(16));
    (Addresses::Block(block), values)
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
    let of = (surface, enabled);
    // SAFETY: as promised.
    unsafe { check::<false>(group, (thread, site), shape, of, block_of(shape, block)) }
}

/// [`crate::abi::Helpers::race_affine`].
///
/// # Safety
/// `group` must be the group that runs, and the values as [`crate::abi::AffineRaceCheck`] says.
pub(super) unsafe extern "C" fn race_affine(
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    shape: u32,
    surface: u32,
    enabled: u32,
    first: u64,
    stride: u64,
    values: *const u8,
) -> u32 {
    let at = (Addresses::Affine(first, stride), values);
    // SAFETY: as promised.
    unsafe { check::<false>(group, (thread, site), shape, (surface, enabled), at) }
}

/// One of several reads.
struct OfReads {
    site: u32,
    shape: u32,
    first: u64,
}

impl OfReads {
    /// All of them, from the operands of [`crate::abi::RaceReads`].
    #[inline(always)]
    fn all(site: u32, shape: u32, first: u64, reads: u64) -> impl Iterator<Item = OfReads> {
        let (count, step) = code::count_and_step(reads);
        let lane = i32::from(step.lane).cast_unsigned() << code::LANE_SHIFT;
        (0..u32::from(count)).map(move |n| OfReads {
            site: site.wrapping_add(n.wrapping_mul(i32::from(step.site).cast_unsigned())),
            shape: shape.wrapping_add(n.wrapping_mul(lane)),
            first: first.wrapping_add_signed(i64::from(step.distance).wrapping_mul(i64::from(n))),
        })
    }
}

/// [`crate::abi::Helpers::race_reads`].
///
/// # Safety
/// `group` must be the group that runs.
pub(super) unsafe extern "C" fn race_reads(
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    shape: u32,
    surface: u32,
    enabled: u32,
    first: u64,
    stride: u64,
    reads: u64,
) -> u32 {
    let mut all = OfReads::all(site, shape | code::ATTEMPT, first, reads);
    let entered = all.all(|read| {
        let at = (Addresses::Affine(read.first, stride), std::ptr::null());
        let by = (thread, read.site);
        // SAFETY: as promised; reads have no values.
        unsafe { check::<false>(group, by, read.shape, (surface, enabled), at) == 0 }
    });
    u32::from(!entered)
}

/// # Safety
/// As [`race`].
#[inline(always)]
unsafe fn check<const WIDE: bool>(
    group: *mut GroupCtx,
    by: (u32, u32),
    shape: u32,
    of: (u32, u32),
    at: (Addresses, *const u8),
) -> u32 {
    // SAFETY: valid by the caller's promise; only the worker that runs the group uses what is known of its launch.
    let Some(races) = (unsafe { (*group).races.cast::<Races>().as_mut() }) else {
        return 0;
    };
    let shape = (shape, races.same_value);
    // SAFETY: as promised.
    let access = unsafe { RaceCall::new(group, by, shape, of, at) };
    let affine = access.affine(0..access.count);
    let apart = affine
        .as_ref()
        .is_some_and(|affine| affine.stride != 0 || affine.first == affine.last);
    let stores = access.does.writes && !access.does.atomic && !access.is_block;
    if shape.0 & code::ATTEMPT != 0 {
        let now = races.now(access.memory, access.thread, access.site, access.does);
        let entered = (apart || !stores)
            && affine.is_some_and(|affine| access.is_entered_at_once::<WIDE>(races, &now, &affine));
        return u32::from(!entered);
    }
    let stop = stores && !apart && !access.are_apart() && access.lanes_differ(races);
    u32::from(stop || access.elements::<WIDE>(races, affine.as_ref()))
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
    let old = unsafe { element::load(place, bytes) };
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
