//! Checks of races with the vectors of AVX-512. The usual accesses take a short way: lanes side by side that access whole lines, and lanes that
//! access a few whole words each. What is entered, and in which order, is what the way of every processor enters; all else goes there.

use std::arch::x86_64::*;

use super::{Access, Addresses, HALF, block_of, check, code, lanes_of};
use crate::abi::{GroupCtx, message};
use crate::helpers::message::{FLAT_OFFSET, Region};
use crate::race::{Does, Memory, Now, Part, Races, Run, ones};

/// Elements of a word, in a shape.
const WORDS: u32 = 2;

/// Most lanes of a call.
const LANES: usize = 32;

/// [`super::race`] with these vectors.
///
/// # Safety
/// As there, on a processor that has them.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
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

/// [`super::race_even`] with these vectors.
///
/// # Safety
/// As there, on a processor that has them.
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
pub(in crate::helpers) unsafe extern "C" fn race_even(
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
        at: (Addresses::Even(first, stride), values),
    };
    let size = u64::from(shape >> 16 & 0x7FF) << (shape & 3);
    // SAFETY: as promised.
    unsafe {
        if call.is_of_tile(first, stride) || call.is_packed(first, stride) {
            0
        } else if shape & code::ATTEMPT != 0 {
            call.any()
        } else if lanes_of(shape) == 1
            || (stride != size && stride != 0)
            || (size == 4 && stride == 4 && !is_row(enabled))
            || (size == 16 && shape & (code::WRITES | code::BLOCK) == code::WRITES)
        {
            call.by_lanes()
        } else {
            call.any()
        }
    }
}

/// Whether lanes are enabled one after the other, with none between them that is not.
fn is_row(enabled: u32) -> bool {
    let from_first = enabled >> (enabled.trailing_zeros() & 31);
    from_first & from_first.wrapping_add(1) == 0
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
    #[target_feature(enable = "avx512f,avx512vl,bmi1")]
    unsafe fn any(self) -> u32 {
        // SAFETY: as promised.
        unsafe { check::<true>(self.group, self.by, self.shape, self.of, self.at) }
    }

    /// Enters a read as kernels with tiles in local memory make them: sixteen words by as many lanes, or four words by all lanes that are
    /// enabled, of which the last one stays known. False where it is another one, or something has to be looked at.
    ///
    /// # Safety
    /// As [`race`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,bmi1")]
    unsafe fn is_of_tile(&self, first: u64, stride: u64) -> bool {
        const LANES: u32 = 16;
        const ROW: u32 = code::shape(message::SLM, 4, 1, LANES, 0);
        const LINE: u32 = code::shape(message::SLM, 4, 4, LANES, 0);
        let (kind, enabled) = (self.shape & !(code::ATTEMPT | 31 << 27), self.of.1);
        let is_row = kind == ROW && stride == 4 && enabled == ones(LANES.into()) as u32;
        let is_line = kind == LINE && stride == 0 && enabled != 0;
        if !is_row && !is_line {
            return false;
        }
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
        let reads = Does {
            writes: false,
            atomic: false,
        };
        let now = races.now(Memory::Local(local as u64), self.by.0, self.by.1, reads);
        let (offset, lane) = (u64::from(first as u32), self.shape >> 27);
        match is_row {
            true => offset + 64 <= size && races.local_lines::<4, false>(&now, offset, lane),
            false => {
                let last = lane + 31 - enabled.leading_zeros();
                offset + 16 <= size && races.local_lines::<1, true>(&now, offset, last)
            }
        }
    }

    /// Enters an access whose lanes have a word each, side by side, if all are enabled, all words are those of whole lines, and a store
    /// changes all or none; or one of a single lane, or a read of one place by all enabled lanes, of which the last one stays known. False where
    /// something has to be looked at.
    ///
    /// # Safety
    /// As [`race`].
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,bmi1")]
    unsafe fn is_packed(&self, first: u64, stride: u64) -> bool {
        const KIND: u32 = 3 | code::ATOMIC | code::BLOCK;
        if self.shape & KIND != WORDS {
            return false;
        }
        let (writes, enabled) = (self.shape & code::WRITES != 0, self.of.1);
        let words = self.shape >> 16 & 0x7FF;
        let (lanes, lane) = match (lanes_of(self.shape), words, stride) {
            (lanes, 1, 4) | (lanes @ 1, 1, _) if enabled == ones(lanes as u64) as u32 => (lanes, 0),
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
                Region::new(self.group, std::ptr::null(), place, self.of.0),
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
        let bytes = u64::from(4 * words) * lanes as u64;
        let start = region.base.wrapping_add(offset as usize);
        let at = start as u64;
        // Local memory belongs to groups.
        let shared = memory == Memory::Shared;
        if offset + bytes > region.size
            || (shared && races.touches_private(at..at.wrapping_add(bytes)))
        {
            return false;
        }
        if writes && !races.same_value {
            let values = self.at.1;
            // SAFETY: the words are inside of their region, and a store's block has their values.
            let changed = unsafe { super::at_once::changed::<true>(start, values, 0..lanes) };
            if changed != ones(lanes as u64) {
                return changed == 0;
            }
        }
        let does = Does {
            writes,
            atomic: false,
        };
        let now = races.now(memory, self.by.0, self.by.1, does);
        let lane = lane + (self.shape >> 27);
        match (lanes, words) {
            (1, 1) => races.one::<true>(memory, &now, at, lane),
            (1, _) => races.few(memory, &now, at, (words.into(), ones(words.into())), lane),
            _ => races.lines(memory, &now, at, lanes as u64, lane),
        }
    }

    /// Checks lanes by their addresses; not 0 when the launch has to stop.
    ///
    /// # Safety
    /// As [`race`].
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512vl,bmi1")]
    unsafe fn by_lanes(self) -> u32 {
        // SAFETY: as in `is_packed`.
        let Some(races) = (unsafe { (*self.group).races.cast::<Races>().as_mut() }) else {
            return 0;
        };
        let shape = (self.shape, races.same_value);
        // SAFETY: as promised.
        let access = unsafe { Access::new(self.group, self.by, shape, self.of, self.at) };
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
        if access.does.writes
            && !access.does.atomic
            && !ascend(&offsets, access.count, 4 * words as u64)
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
fn offsets_of(access: &Access, offsets: &mut [u64; LANES]) {
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
        _ => lanes.for_each(|(lane, offset)| *offset = access.at(lane).1),
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

/// Enters an access of lanes that lie side by side, from `start` on, if it races with none.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn is_run_entered(
    access: &Access,
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
    if words == 1 && races.lines(access.memory, now, place, count, lane) {
        return true;
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
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
fn each(
    access: &Access,
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
    if access.memory == Memory::Shared {
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

/// Which of eight lanes from `first` on a store of words changes; `None` where one changes only some of its words.
///
/// # Safety
/// The elements of lanes whose bits are set are inside of their region.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
unsafe fn changed_of_eight(
    access: &Access,
    offset: __m512i,
    (first, of): (usize, u8),
) -> Option<u8> {
    let row = (access.count * 4).next_multiple_of(16);
    let (mut any, mut each) = (0, of);
    for k in 0..access.comps {
        let place = access.region.base.wrapping_add(4 * k);
        let values = access.data.wrapping_add(row * k + 4 * first);
        // SAFETY: as promised, and a store's block has its values.
        let differ = unsafe {
            let none = _mm256_setzero_si256();
            let old = _mm512_mask_i64gather_epi32::<1>(none, of, offset, place.cast());
            let new = _mm256_maskz_loadu_epi32(of, values.cast());
            _mm256_mask_cmpneq_epi32_mask(of, old, new)
        };
        any |= differ;
        each &= differ;
    }
    (any == each).then_some(each)
}

impl List {
    /// Takes those of some lanes that access something. False unless all are inside of their region and each changes all of its elements or
    /// none.
    #[inline]
    #[target_feature(enable = "avx512f,avx512vl,bmi1")]
    fn is_filled(
        &mut self,
        access: &Access,
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
    #[target_feature(enable = "avx512f,avx512vl,bmi1")]
    fn eight_by_eight(
        &self,
        access: &Access,
        races: &mut Races,
        now: &Now,
        offsets: &[u64; LANES],
        places: &Places,
    ) -> bool {
        for at in (0..self.count).step_by(8) {
            let of = ones((self.count - at).min(8) as u64) as u8;
            // SAFETY: there is room for a vector after the last lane.
            let [offset, lanes] = unsafe {
                [&self.offsets, &self.lanes]
                    .map(|from| _mm512_loadu_epi64(from.as_ptr().wrapping_add(at).cast()))
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
#[target_feature(enable = "avx512f,avx512vl,bmi1")]
fn one_by_one(
    access: &Access,
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
                true => changed(access, lane, place),
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

/// Which words of a lane a store changes; all of an element, if any.
#[inline]
#[target_feature(enable = "avx512f")]
fn changed(access: &Access, lane: usize, place: *mut u8) -> u64 {
    let row = (access.count * access.bytes as usize).next_multiple_of(16);
    let value = access.data.wrapping_add(lane * access.bytes as usize);
    let mut changed = 0;
    for k in 0..access.comps {
        let (old, new) = (
            place.wrapping_add(k * access.bytes as usize),
            value.wrapping_add(k * row),
        );
        // SAFETY: the element is inside of its region, and a store's block has its value.
        let differs = unsafe {
            match access.bytes {
                4 => old.cast::<u32>().read_unaligned() != new.cast::<u32>().read_unaligned(),
                _ => old.cast::<u64>().read_unaligned() != new.cast::<u64>().read_unaligned(),
            }
        };
        let words = access.bytes as usize / 4;
        changed |= (u64::from(differs) * ones(words as u64)) << (words * k);
    }
    changed
}
