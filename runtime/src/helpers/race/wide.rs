//! Checks of races with the vectors of AVX-512. The usual accesses take a short way: lanes that access words side by side, or whole lines,
//! and lanes that access a few whole words each. What is entered, and in which order, is what the way of every processor enters; all else goes there.

mod changed;

use std::arch::x86_64::*;

use super::at_once;
use super::{Addresses, HALF, OfReads, RaceCall, block_of, check, code, lanes_of};
use crate::abi::race::Step;
use crate::abi::{GroupCtx, message};
use crate::helpers::message::{FLAT_OFFSET, MemorySpan};
use crate::race::{Does, Memory, Now, Part, Races, Run, ones};
use changed::{changed_lines, changed_of_eight, words_changed};

/// Elements of a word, in a shape.
const WORDS: u32 = 2;

/// One access, as operand `reads`.
const ONE: u64 = code::reads(
    1,
    Step {
        site: 0,
        lane: 0,
        distance: 0,
    },
);

/// Lanes of a read of a tile, and the shapes of one of a row and of one of a line.
const TILE_LANES: u32 = 16;
const TILE_ROW: u32 = code::shape(message::SLM, 4, 1, TILE_LANES, 0);
const TILE_LINE: u32 = code::shape(message::SLM, 4, 4, TILE_LANES, 0);

/// Most lanes of a call.
const LANES: usize = 32;

/// [`super::race`] with these vectors.
///
/// # Safety
/// As there, on a processor that has them.
#[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
pub(in crate::helpers) unsafe extern "C" fn race(
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    shape: u32,
    surface: u32,
    enabled: u32,
    block: *const u8,
) -> u32 {
    let call = Call {
        group,
        by: (thread, site),
        shape,
        of: (surface, enabled),
        at: block_of(shape, block),
    };
    // SAFETY: as promised.
    unsafe { call.by_lanes() }
}

/// [`super::race_affine`] with these vectors.
///
/// # Safety
/// As there, on a processor that has them.
#[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
pub(in crate::helpers) unsafe extern "C" fn race_affine(
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
    let call = Call {
        group,
        by: (thread, site),
        shape,
        of: (surface, enabled),
        at: (Addresses::Affine(first, stride), values),
    };
    let size = u64::from(shape >> 16 & 0x7FF) << (shape & 3);
    // SAFETY: as promised.
    unsafe {
        if call.is_of_tile(stride) && call.are_of_tile(first, ONE) || call.is_packed(first, stride)
        {
            0
        } else if shape & code::ATTEMPT != 0 {
            call.any()
        } else if lanes_of(shape) == 1
            || (stride != size && stride != 0)
            || (size == 16 && shape & (code::WRITES | code::BLOCK) == code::WRITES)
        {
            call.by_lanes()
        } else {
            call.any()
        }
    }
}

/// [`super::race_reads`] with these vectors.
///
/// # Safety
/// As there, on a processor that has them.
#[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
pub(in crate::helpers) unsafe extern "C" fn race_reads(
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
    let call = Call {
        group,
        by: (thread, site),
        shape,
        of: (surface, enabled),
        at: (Addresses::Affine(first, stride), std::ptr::null()),
    };
    // SAFETY: as promised; reads have no values.
    unsafe {
        if call.is_of_tile(stride) && call.are_of_tile(first, reads) {
            return 0;
        }
        call.each_of_reads((first, stride), reads)
    }
}

/// Operands of a call.
#[derive(Clone, Copy)]
struct Call {
    group: *mut GroupCtx,
    by: (u32, u32),
    shape: u32,
    of: (u32, u32),
    at: (Addresses, *const u8),
}

impl Call {
    /// The way of every processor.
    ///
    /// # Safety
    /// As [`race`].
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
    unsafe fn any(self) -> u32 {
        // SAFETY: as promised.
        unsafe { check::<true>(self.group, self.by, self.shape, self.of, self.at) }
    }

    /// Several reads, each by itself; not 0 where one is not entered.
    ///
    /// # Safety
    /// As [`race`].
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
    unsafe fn each_of_reads(&self, (first, stride): (u64, u64), reads: u64) -> u32 {
        let shape = self.shape | code::ATTEMPT;
        for read in OfReads::all(self.by.1, shape, first, reads) {
            let (by, of) = ((self.by.0, read.site), self.of);
            let none = std::ptr::null();
            // SAFETY: as promised.
            let left = unsafe {
                race_affine(
                    self.group, by.0, by.1, read.shape, of.0, of.1, read.first, stride, none,
                )
            };
            if left != 0 {
                return left;
            }
        }
        0
    }

    /// Whether it is a read as kernels with tiles in local memory make them: sixteen words by as many lanes, or four words by all lanes that are
    /// enabled.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
    fn is_of_tile(&self, stride: u64) -> bool {
        let kind = self.shape & !(code::ATTEMPT | 31 << code::LANE_SHIFT);
        let enabled = self.of.1;
        kind == TILE_ROW && stride == 4 && enabled == ones(TILE_LANES.into()) as u32
            || kind == TILE_LINE && stride == 0 && enabled != 0
    }

    /// Enters such reads, of which this is the first. Of the lanes that read one place the last one stays known. False where something has to be
    /// looked at.
    ///
    /// # Safety
    /// As [`race`].
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
    unsafe fn are_of_tile(&self, first: u64, reads: u64) -> bool {
        // In a register up to here: fields that were stored one by one would not be there yet when they are loaded as one word.
        let (count, step) = code::count_and_step(reads);
        let is_row = self.shape >> 16 & code::MAX_COUNT == 1;
        let enabled = self.of.1;
        // SAFETY: as in `is_packed`.
        let (races, local, size) = unsafe {
            let group = &*self.group;
            (
                group.races.cast::<Races>().as_mut(),
                group.slm,
                group.slm_size,
            )
        };
        let Some(races) = races else {
            return true;
        };
        let does = Does {
            writes: false,
            atomic: false,
        };
        let now = races.now(Memory::Local(local as u64), self.by.0, self.by.1, does);
        let (offset, lane) = (u64::from(first as u32), self.shape >> code::LANE_SHIFT);
        let last = i64::from(step.distance) * (i64::from(count) - 1);
        let highest = offset.saturating_add_signed(last.max(0));
        match is_row {
            true => {
                highest + 64 <= size
                    && races.local_reads::<4, false>(&now, (offset, lane), (count, step))
            }
            false => {
                let last = lane + 31 - enabled.leading_zeros();
                highest + 16 <= size
                    && races.local_reads::<1, true>(&now, (offset, last), (count, step))
            }
        }
    }

    /// Enters an access of enabled lanes to a word each, side by side; of all lanes to a line each, at equal distances, if a store changes all or none of
    /// each line; of a single lane to a word; or a read of one place by all enabled lanes, of which the last one stays known. False where it is
    /// another one, or something has to be looked at.
    ///
    /// # Safety
    /// As [`race`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
    unsafe fn is_packed(&self, first: u64, stride: u64) -> bool {
        const KIND: u32 = 3 | code::ATOMIC | code::BLOCK;
        if self.shape & KIND != WORDS {
            return false;
        }
        let (writes, enabled) = (self.shape & code::WRITES != 0, self.of.1);
        let words = self.shape >> 16 & 0x7FF;
        let count = lanes_of(self.shape);
        let apart = words == 4 && stride.is_multiple_of(16) && (16..=256).contains(&stride);
        let (lanes, lane) = match (count, words, stride) {
            (2.., 1, 4) if enabled != 0 => (count, 0),
            (1, 1, _) if enabled == 1 => (1, 0),
            (4.., 4, _)
                if apart && count.is_multiple_of(4) && enabled == ones(count as u64) as u32 =>
            {
                (count, 0)
            }
            (_, 1 | 2 | 4, 0) if !writes && enabled != 0 => (1, 31 - enabled.leading_zeros()),
            _ => return false,
        };
        // SAFETY: valid by the caller's promise; only the worker that runs the group uses what is known of its launch.
        let Some(races) = (unsafe { (*self.group).races.cast::<Races>().as_mut() }) else {
            return true;
        };
        let place = self.shape >> 2 & 7;
        // SAFETY: as promised; only scratch memory and register storage are a thread's.
        let (region, local) = unsafe {
            (
                MemorySpan::new(self.group, std::ptr::null(), place, self.of.0),
                (*self.group).slm as u64,
            )
        };
        let memory = match place {
            message::SLM => Memory::Local(local),
            _ => Memory::Shared,
        };
        let offset = match place {
            message::FLAT => first.wrapping_sub(region.first) & FLAT_OFFSET,
            _ => u64::from(first as u32),
        };
        let bytes = match apart {
            true => stride * (lanes as u64 - 1) + 16,
            false => u64::from(4 * words) * lanes as u64,
        };
        let start = region.base.wrapping_add(offset as usize);
        let at = start as u64;
        // Local memory belongs to groups.
        let shared = memory == Memory::Shared;
        if offset + bytes > region.size
            || (shared && races.touches_private(at..at.wrapping_add(bytes)))
        {
            return false;
        }
        let mut accessed = enabled & ones(lanes as u64) as u32;
        if writes && !races.same_value {
            let values = self.at.1;
            // SAFETY: the words are inside of their region, and a store's block has their values.
            let changed = unsafe {
                match apart {
                    true => changed_lines(start, stride as usize, values, lanes),
                    false => Some(at_once::changed::<true>(start, values, 0..lanes) as u32),
                }
            };
            let Some(changed) = changed else {
                return false;
            };
            accessed &= changed;
            if accessed == 0 {
                return true;
            }
        }
        let does = Does {
            writes,
            atomic: false,
        };
        let now = races.now(memory, self.by.0, self.by.1, does);
        let lane = lane + (self.shape >> code::LANE_SHIFT);
        let count = lanes as u64;
        match (lanes, words) {
            (1, 1) => races.one::<true>(memory, &now, at, lane),
            (1, _) => races.few(memory, &now, at, (words.into(), ones(words.into())), lane),
            (_, 1) => races.words(memory, &now, at, (count, accessed.into()), lane),
            _ => races.lines_apart(memory, &now, (at, stride, count), accessed, lane),
        }
    }

    /// Checks lanes by their addresses; not 0 when the launch has to stop.
    ///
    /// # Safety
    /// As [`race`].
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
    unsafe fn by_lanes(self) -> u32 {
        // SAFETY: as in `is_packed`.
        let Some(races) = (unsafe { (*self.group).races.cast::<Races>().as_mut() }) else {
            return 0;
        };
        let shape = (self.shape, races.same_value);
        // SAFETY: as promised.
        let access = unsafe { RaceCall::new(self.group, self.by, shape, self.of, self.at) };
        let words = access.comps * access.bytes as usize / 4;
        let simple = access.bytes >= 4 && !access.is_block && matches!(words, 1 | 2 | 4);
        if !simple || access.count > LANES || (access.does.atomic && access.comps != 1) {
            // SAFETY: as promised.
            return unsafe { self.any() };
        }
        let mut offsets = [0; LANES];
        offsets_of(&access, &mut offsets);
        if !access.does.atomic && !are_aligned(&offsets, access.enabled) {
            // SAFETY: as promised.
            return unsafe { self.any() };
        }
        if words == 1 && !access.does.atomic && is_row_entered(&access, races, &offsets) {
            return 0;
        }
        if access.does.writes
            && !access.does.atomic
            && !ascend(&offsets, access.count, 4 * words as u64)
            && !are_other_words(&access, &offsets)
            && !access.are_apart()
            && access.lanes_differ(races)
        {
            return 1;
        }
        let now = races.now(access.memory, access.thread, access.site, access.does);
        let mut list = List {
            offsets: [0; LANES + 8],
            lanes: [0; LANES + 8],
            count: 0,
        };
        let mut start = 0;
        while start < access.count {
            let len = (access.count - start).min(HALF);
            let enabled = access.enabled & (ones(len as u64) as u32) << start;
            let alike = match enabled >> start == ones(len as u64) as u32 && !access.does.atomic {
                true => Alike::new(&offsets, start, len, 4 * words as u64),
                false => Alike::No,
            };
            let left = match alike {
                Alike::Packed if !access.does.writes => {
                    let run = (start, len, words);
                    match is_run_entered(&access, races, &now, offsets[start], run) {
                        true => 0,
                        false => enabled,
                    }
                }
                // The last lane stays known.
                Alike::Same if !access.does.writes => 1 << (start + len - 1),
                _ => enabled,
            };
            if each(&access, races, &now, &offsets, (left, words), &mut list) {
                return 1;
            }
            start += HALF;
        }
        0
    }
}

/// How lanes that are all enabled lie.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Alike {
    Packed,
    Same,
    No,
}

impl Alike {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(offsets: &[u64; LANES], start: usize, len: usize, size: u64) -> Alike {
        let first = offsets[start];
        let stride = match offsets[start + len.min(2) - 1] == first {
            true => 0,
            false => size,
        };
        let mut differ = 0;
        for (at, offset) in offsets[start..start + len].iter().enumerate() {
            differ |= offset ^ (first + stride * at as u64);
        }
        match (differ, stride) {
            (0, 0) => Alike::Same,
            (0, _) => Alike::Packed,
            _ => Alike::No,
        }
    }
}

/// Offsets of all lanes in the region.
#[inline]
#[target_feature(enable = "avx512f")]
fn offsets_of(access: &RaceCall, offsets: &mut [u64; LANES]) {
    let lanes = offsets.iter_mut().take(access.count).enumerate();
    match (access.flat, access.addresses) {
        (true, Addresses::Block(block)) => {
            for (lane, offset) in lanes {
                // SAFETY: the block has an address for each lane.
                let address = unsafe { block.cast::<u64>().add(lane).read() };
                *offset = address.wrapping_sub(access.region.first) & FLAT_OFFSET;
            }
        }
        (false, Addresses::Block(block)) => {
            for (lane, offset) in lanes {
                // SAFETY: the block has an offset for each lane.
                *offset = unsafe { block.cast::<u32>().add(lane).read() }.into();
            }
        }
        _ => lanes.for_each(|(lane, offset)| *offset = access.lane_address(lane).1),
    }
}

/// Whether enabled lanes begin with words.
#[inline]
#[target_feature(enable = "avx512f")]
fn are_aligned(offsets: &[u64; LANES], enabled: u32) -> bool {
    let mut low = 0;
    for (lane, offset) in offsets.iter().enumerate() {
        low |= offset & u64::from(enabled >> lane & 1).wrapping_neg();
    }
    low.is_multiple_of(4)
}

/// Whether each lane lies after the one before it, enabled or not.
#[inline]
#[target_feature(enable = "avx512f")]
fn ascend(offsets: &[u64; LANES], count: usize, size: u64) -> bool {
    let mut falls = false;
    for lane in 1..LANES {
        falls |= (lane < count) & (offsets[lane] < offsets[lane - 1] + size);
    }
    !falls
}

/// Whether no two enabled lanes have the same word, if they have one each and lie in the first 8 GiB.
#[inline]
#[target_feature(enable = "avx512f,avx512cd")]
fn are_other_words(access: &RaceCall, offsets: &[u64; LANES]) -> bool {
    if access.bytes != 4 || access.comps != 1 {
        return false;
    }
    let mut numbers = [0; LANES];
    let mut high = 0;
    for (lane, (number, offset)) in numbers.iter_mut().zip(offsets).enumerate() {
        let enabled = u64::from(access.enabled >> lane & 1).wrapping_neg();
        high |= (offset & enabled) >> 33;
        // Lanes that are not enabled have numbers that no other one has.
        *number = ((offset >> 2) & enabled | !enabled & (u64::from(u32::MAX) - lane as u64)) as u32;
    }
    let (low, rest) = numbers.split_at(16);
    // SAFETY: there are sixteen numbers each.
    let (low, rest) = unsafe {
        (
            _mm512_loadu_epi32(low.as_ptr().cast()),
            _mm512_loadu_epi32(rest.as_ptr().cast()),
        )
    };
    let within = _mm512_or_si512(_mm512_conflict_epi32(low), _mm512_conflict_epi32(rest));
    if high != 0 || _mm512_test_epi32_mask(within, within) != 0 {
        return false;
    }
    let (mut turned, mut same) = (rest, 0);
    for _ in 0..16 {
        same |= _mm512_cmpeq_epi32_mask(low, turned);
        turned = _mm512_alignr_epi32::<1>(turned, turned);
    }
    same == 0
}

/// Enters an access of enabled lanes to a word each, as far from each other as they would be if all words lay side by side, if it races with none.
/// False where they do not lie so.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
fn is_row_entered(access: &RaceCall, races: &mut Races, offsets: &[u64; LANES]) -> bool {
    if access.bytes != 4 || access.enabled == 0 {
        return false;
    }
    let first = access.enabled.trailing_zeros() as usize;
    let count = (32 - access.enabled.leading_zeros()) as usize - first;
    let start = offsets[first & (LANES - 1)];
    let mut differ = 0;
    for (lane, offset) in offsets.iter().enumerate() {
        let distance = (lane as u64).wrapping_sub(first as u64).wrapping_mul(4);
        let there = start.wrapping_add(distance);
        differ |= (offset ^ there) & u64::from(access.enabled >> lane & 1).wrapping_neg();
    }
    let region = access.region;
    let bytes = 4 * count as u64;
    let place = region.base.wrapping_add(start as usize);
    let at = place as u64;
    let inside = start <= region.size && bytes <= region.size - start;
    if differ != 0 || !inside || races.touches_private(at..at.wrapping_add(bytes)) {
        return false;
    }
    let mut accessed = access.enabled >> first;
    if access.does.writes && !access.same_value {
        let values = access.data.wrapping_add(4 * first);
        // SAFETY: the words are inside of their region, and a store's block has their values.
        accessed &= unsafe { at_once::changed::<true>(place, values, 0..count) } as u32;
        if accessed == 0 {
            return true;
        }
    }
    let now = races.now(access.memory, access.thread, access.site, access.does);
    let lane = first as u32 + access.first_lane;
    let words = (count as u64, accessed.into());
    races.words(access.memory, &now, at, words, lane)
}

/// Enters an access of lanes that lie side by side, from `start` on, if it races with none.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn is_run_entered(
    access: &RaceCall,
    races: &mut Races,
    now: &Now,
    offset: u64,
    (start, len, words): (usize, usize, usize),
) -> bool {
    let count = (len * words) as u64;
    let place = access.region.base as u64 + offset;
    if offset + 4 * count > access.region.size || races.touches_private(place..place + 4 * count) {
        return false;
    }
    let lane = start as u32 + access.first_lane;
    if words == 1 {
        return races.words(access.memory, now, place, (count, ones(count)), lane);
    }
    let run = Run {
        words: count,
        lane,
        shift: words.ilog2().cast_signed(),
    };
    races.part::<true>(access.memory, now, place, Part::all(run))
}

/// How the places of lanes that are looked at by themselves are found.
#[derive(Clone, Copy)]
struct Places {
    /// Of each lane.
    words: usize,
    bytes: u64,
    /// Bits of an offset that do not count.
    round: u64,
    /// The greatest offset, and one more.
    limit: u64,
    /// A store is an access where it changes something.
    compares: bool,
}

/// Checks lanes that may be anywhere; true when the launch has to stop.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
fn each(
    access: &RaceCall,
    races: &mut Races,
    now: &Now,
    offsets: &[u64; LANES],
    (enabled, words): (u32, usize),
    list: &mut List,
) -> bool {
    if enabled == 0 {
        return false;
    }
    let (bytes, region) = (4 * words as u64, access.region);
    let places = Places {
        words,
        bytes,
        round: match access.does.atomic {
            true => bytes - 1,
            false => 0,
        },
        limit: (region.size + 1).saturating_sub(bytes),
        compares: access.does.writes && !access.does.atomic && !access.same_value,
    };
    if access.memory == Memory::Shared && !access.is_dense() {
        let mut left = enabled;
        while left != 0 {
            let lane = left.trailing_zeros() as usize;
            left &= left - 1;
            let place = region.base.wrapping_add(offsets[lane] as usize);
            races.prefetch(access.memory, place, places.compares, words == 4);
        }
    }
    let vectors = (words == 1 || words == 4) && access.bytes == 4 && !races.has_private();
    match vectors
        && enabled & (enabled - 1) != 0
        && list.is_filled(access, offsets, enabled, &places)
    {
        true => list.eight_by_eight(access, races, now, offsets, &places),
        false => one_by_one(access, races, now, (offsets, enabled), &places),
    }
}

/// Lanes that access something, one after the other, with room for a vector after them.
struct List {
    offsets: [u64; LANES + 8],
    lanes: [u64; LANES + 8],
    count: usize,
}

#[inline]
#[target_feature(enable = "avx512f")]
fn all(v: u64) -> __m512i {
    _mm512_set1_epi64(v.cast_signed())
}

impl List {
    /// Takes those of some lanes that access something. False unless all are inside of their region and each changes all of its elements or
    /// none.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
    fn is_filled(
        &mut self,
        access: &RaceCall,
        offsets: &[u64; LANES],
        enabled: u32,
        places: &Places,
    ) -> bool {
        self.count = 0;
        let (round, limit) = (all(places.round), all(places.limit));
        for first in (0..LANES).step_by(8) {
            let of = (enabled >> first) as u8;
            if of == 0 {
                continue;
            }
            // SAFETY: there are eight offsets.
            let offset = unsafe { _mm512_loadu_epi64(offsets.as_ptr().wrapping_add(first).cast()) };
            let offset = _mm512_andnot_si512(round, offset);
            if _mm512_mask_cmplt_epu64_mask(of, offset, limit) != of {
                return false;
            }
            let changed = match places.compares {
                // SAFETY: the elements are inside of their region.
                true => unsafe { changed_of_eight(access, offset, (first, of)) },
                false => Some(of),
            };
            let Some(changed) = changed else {
                return false;
            };
            let lanes = _mm512_setr_epi64(0, 1, 2, 3, 4, 5, 6, 7);
            let lanes = _mm512_add_epi64(lanes, all(first as u64));
            for (to, v) in [(&mut self.offsets, offset), (&mut self.lanes, lanes)] {
                let v = _mm512_maskz_compress_epi64(changed, v);
                // SAFETY: there is room for eight after those of all lanes before.
                unsafe { _mm512_storeu_epi64(to.as_mut_ptr().wrapping_add(self.count).cast(), v) };
            }
            self.count += changed.count_ones() as usize;
        }
        true
    }

    /// Enters the accesses of these lanes, and looks at them one by one where one of eight races; true when the launch has to stop.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
    fn eight_by_eight(
        &self,
        access: &RaceCall,
        races: &mut Races,
        now: &Now,
        offsets: &[u64; LANES],
        places: &Places,
    ) -> bool {
        for at in (0..self.count).step_by(8) {
            let of = ones((self.count - at).min(8) as u64) as u8;
            // SAFETY: there is room for a vector after the last lane.
            let (offset, lanes) = unsafe {
                (
                    _mm512_loadu_epi64(self.offsets.as_ptr().wrapping_add(at).cast()),
                    _mm512_loadu_epi64(self.lanes.as_ptr().wrapping_add(at).cast()),
                )
            };
            let address = _mm512_add_epi64(offset, all(access.region.base as u64));
            let number = _mm512_add_epi64(lanes, all(access.first_lane.into()));
            if races.eight(access.memory, now, (address, number), of, places.words == 4) {
                continue;
            }
            let some = &self.lanes[at..at + of.count_ones() as usize];
            let enabled = some.iter().fold(0, |enabled, lane| enabled | 1 << lane);
            if one_by_one(access, races, now, (offsets, enabled), places) {
                return true;
            }
        }
        false
    }
}

/// Checks lanes one after the other; true when the launch has to stop.
#[inline]
#[target_feature(enable = "avx512f,avx512vl,avx512cd,bmi1")]
fn one_by_one(
    access: &RaceCall,
    races: &mut Races,
    now: &Now,
    (offsets, enabled): (&[u64; LANES], u32),
    places: &Places,
) -> bool {
    let (words, bytes) = (places.words, places.bytes);
    let has_private = races.has_private();
    let mut left = enabled;
    while left != 0 {
        let lane = left.trailing_zeros() as usize;
        left &= left - 1;
        let offset = offsets[lane] & !places.round;
        let place = access.region.base.wrapping_add(offset as usize);
        let at = place as u64;
        let inside = offset < places.limit;
        let usual = inside && !(has_private && races.touches_private(at..at + bytes)) && {
            let changed = match places.compares {
                true => words_changed(access, lane, place),
                false => ones(words as u64),
            };
            let number = lane as u32 + access.first_lane;
            changed == 0
                || match words {
                    1 => races.one::<true>(access.memory, now, at, number),
                    _ => races.few(access.memory, now, at, (words as u64, changed), number),
                }
        };
        if !usual && access.lane_alone(races, now, lane, &[]) {
            return true;
        }
    }
    false
}
