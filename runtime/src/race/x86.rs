//! Lines, and the cells of words, by vectors of AVX-512: two of them at a time. What is entered is what `line` and `row` enter. Cells are in use: what is loaded and stored has [`IN_CELLS`].

mod eight;
mod parts;

use std::arch::x86_64::*;

use super::cell::{self, ATOMIC, Cell, EPOCH, Now, THREAD, THREADS};
use super::line::{self, IN_CELLS, Line};
use super::run::Slots;
pub(super) use eight::{closed, eight_cells, eight_lines, last, open_eight, places, whole};
pub(super) use parts::parts;

const _: () = assert!(size_of::<Cell>() == 32 && size_of::<Line>() == 32);

/// Slots of two cells, a bit for each: the plain write, the write by an atomic, the read and the other read of each. Reads race with writes
/// only.
const CELL_READS: u8 = 0b0011_0011;
const CELL_WRITES: u8 = 0b1111_1111;
const CELL_READ: u8 = 0b0100_0100;
const CELL_PLAIN: u8 = 0b0001_0001;
const CELL_ATOMICS: u8 = 0b0010_0010;

/// The same of two lines: the plain write, the read and the other read.
const LINE_WRITES: u8 = 0b0111_0111;
const LINE_READ: u8 = 0b0010_0010;
const LINE_PLAIN: u8 = 0b0001_0001;

/// The last slots of two cells, which say whether they are in use.
const LASTS: u8 = 0b1000_1000;

/// Moves the last read of a line, or of a cell, to the place of the other one.
const LINE_READ_TO_OTHER: i32 = 0b11_01_01_00;
const CELL_READ_TO_OTHER: i32 = 0b10_10_01_00;

/// An access that is being made, in each part of a vector.
struct Vectors {
    floor: __m512i,
    /// Epochs of other groups, from `floor` on.
    others: __m512i,
    epoch: __m512i,
    base: __m512i,
}

impl Vectors {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(now: &Now) -> Vectors {
        let all = |v: u64| _mm512_set1_epi64(v.cast_signed());
        Vectors {
            floor: all(now.floor),
            others: all(now.group - now.floor),
            epoch: all(now.epoch),
            base: all(now.base),
        }
    }

    /// Accesses of other groups of the launch.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn elsewhere(&self, past: __m512i) -> u8 {
        let age = _mm512_sub_epi64(past, self.floor);
        _mm512_cmplt_epu64_mask(age, self.others)
    }

    /// Accesses of threads with another number.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn differs(&self, past: __m512i) -> u8 {
        let threads = _mm512_set1_epi64((THREADS << THREAD).cast_signed());
        _mm512_test_epi64_mask(_mm512_xor_si512(past, self.base), threads)
    }

    /// See [`Now::unordered`]. No epoch is later than the current one.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn unordered(&self, past: __m512i, of: u8) -> u8 {
        let current = _mm512_cmpge_epu64_mask(past, self.epoch);
        of & (self.elsewhere(past) | (current & self.differs(past)))
    }

    /// See [`Now::is_other`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn is_other(&self, past: __m512i, of: u8) -> u8 {
        let new = _mm512_cmpge_epu64_mask(past, self.floor);
        of & (self.elsewhere(past) | (new & self.differs(past)))
    }
}

const _: () = assert!(THREADS << THREAD < 1 << EPOCH);

/// Enters an access to whole lines, which is not atomic, until one of two lines races or has cells in use. Returns how many lines were
/// entered. `first` is the slot of the first line; those of the others follow by `step`.
///
/// # Safety
/// There are `count` lines. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn lines(at: *mut Line, count: usize, now: &Now, first: u64, step: u64) -> usize {
    // SAFETY: as promised.
    unsafe {
        match (now.writes, now.floor == now.group) {
            (true, true) => lines_of::<true, true>(at, count, now, first, step),
            (true, false) => lines_of::<true, false>(at, count, now, first, step),
            (false, true) => lines_of::<false, true>(at, count, now, first, step),
            (false, false) => lines_of::<false, false>(at, count, now, first, step),
        }
    }
}

/// An access to lines that is being made, slot by slot, so that one comparison and one test find what races, what has cells in use or is in parts,
/// and what a read moves.
struct LineVectors {
    /// Slots from these on matter.
    from: __m512i,
    /// Whether a slot that matters is another thread's, or the line's slots are not for all words: some of these bits differ from `base`.
    base: __m512i,
    bits: __m512i,
    /// The first epoch of the launch, and those of other groups from there on.
    floor: __m512i,
    others: __m512i,
}

impl LineVectors {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new<const WRITES: bool>(now: &Now) -> LineVectors {
        let slots = |of: u8, v: u64| _mm512_maskz_set1_epi64(of, v.cast_signed());
        let any = -1;
        let threads = (THREADS << THREAD).cast_signed();
        let (from, bits) = match WRITES {
            true => (
                slots(LINE_WRITES, now.epoch),
                [threads, threads, threads, any],
            ),
            false => {
                // Which read is moved does not depend on barriers, and the other read is not looked at.
                let reads = slots(LINE_READ, now.floor);
                let from = _mm512_mask_set1_epi64(reads, LINE_PLAIN, now.epoch.cast_signed());
                (from, [threads, threads, 0, any])
            }
        };
        let [plain, read, other, last] = bits;
        LineVectors {
            from,
            base: slots(!LASTS, now.base),
            bits: _mm512_setr_epi64(plain, read, other, last, plain, read, other, last),
            floor: _mm512_set1_epi64(now.floor.cast_signed()),
            others: _mm512_set1_epi64((now.group - now.floor).cast_signed()),
        }
    }

    /// What is known of two lines, or of one of them, after the access; `None` where it races or one has cells in use.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn entered<const WRITES: bool, const ALONE: bool>(
        &self,
        past: __m512i,
        slot: __m512i,
        of: u8,
    ) -> Option<__m512i> {
        let found = self.found::<WRITES, ALONE>(past) & of;
        let moved = if WRITES { 0 } else { found & LINE_READ };
        if found != moved {
            return None;
        }
        if WRITES {
            return Some(_mm512_mask_mov_epi64(past, LINE_PLAIN, slot));
        }
        let past = _mm512_mask_permutex_epi64::<LINE_READ_TO_OTHER>(past, moved << 1, past);
        Some(_mm512_mask_mov_epi64(past, LINE_READ, slot))
    }

    /// Slots that race with the access or have cells in use, and the last read if it has to be moved.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn found<const WRITES: bool, const ALONE: bool>(&self, past: __m512i) -> u8 {
        let matter = _mm512_cmpge_epu64_mask(past, self.from);
        let differ = _mm512_xor_si512(past, self.base);
        let found = _mm512_mask_test_epi64_mask(matter, differ, self.bits);
        if ALONE {
            return found;
        }
        let looked_at = match WRITES {
            true => LINE_WRITES,
            false => LINE_PLAIN | LINE_READ,
        };
        let age = _mm512_sub_epi64(past, self.floor);
        found | _mm512_mask_cmplt_epu64_mask(looked_at, age, self.others)
    }
}

/// Enters an access to two lines, which may be one, if none races or has cells in use.
///
/// # Safety
/// As [`lines`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn two_lines<const WRITES: bool, const ALONE: bool>(
    at: [*mut Line; 2],
    v: &LineVectors,
    slot: __m512i,
) -> bool {
    // SAFETY: as promised.
    let past = unsafe { loaded(at) };
    let Some(new) = v.entered::<WRITES, ALONE>(past, slot, 0xFF) else {
        return false;
    };
    // SAFETY: as promised.
    unsafe {
        _mm256_storeu_si256(at[0].cast(), _mm512_castsi512_si256(new));
        _mm256_storeu_si256(at[1].cast(), _mm512_extracti64x4_epi64::<1>(new));
    }
    true
}

/// Slots of two lines, of which the first has slot `first`, and what is added for the next two.
#[inline]
#[target_feature(enable = "avx512f")]
fn of_two(first: u64, step: u64) -> (__m512i, __m512i) {
    let second = _mm512_set1_epi64(first.wrapping_add(step).cast_signed());
    let slots = _mm512_mask_set1_epi64(second, 0x0F, first.cast_signed());
    (slots, _mm512_set1_epi64((2 * step).cast_signed()))
}

/// The same where `WRITES` is [`Now::writes`], and `ALONE` says that no other group can have accessed the memory.
///
/// # Safety
/// As [`lines`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn lines_of<const WRITES: bool, const ALONE: bool>(
    at: *mut Line,
    count: usize,
    now: &Now,
    first: u64,
    step: u64,
) -> usize {
    let v = LineVectors::new::<WRITES>(now);
    let (mut slot, both) = of_two(first, step);
    let mut done = 0;
    while count - done > 1 {
        // SAFETY: as promised.
        if !unsafe { some_lines::<true, WRITES, ALONE>(at.wrapping_add(done), &v, slot) } {
            return done;
        }
        slot = _mm512_add_epi64(slot, both);
        done += 2;
    }
    // SAFETY: as promised.
    let last = done < count
        && unsafe { some_lines::<false, WRITES, ALONE>(at.wrapping_add(done), &v, slot) };
    done + usize::from(last)
}

/// Lines that several reads of a thread access, one line or an even number each.
#[derive(Clone, Copy)]
pub(super) struct Reads {
    pub count: u8,
    /// Lines from the first line of each to that of the next one.
    pub lines: isize,
    /// What is added to the slot of a line for the next one.
    pub step: u64,
    /// The same for the next read.
    pub next: u64,
}

/// Enters reads of as many lines, which no other group can have accessed. `slot` is that of the first line. False where one races or has cells in
/// use: lines before it are entered then.
///
/// # Safety
/// As [`lines`]. Each line is there.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn are_read<const LINES: usize>(
    first: *mut Line,
    now: &Now,
    slot: u64,
    reads: Reads,
) -> bool {
    const { assert!(LINES == 1 || LINES.is_multiple_of(2)) };
    let v = LineVectors::new::<false>(now);
    let (mut slots, both) = match LINES {
        1 => (
            _mm512_set1_epi64(slot.cast_signed()),
            _mm512_setzero_si512(),
        ),
        _ => of_two(slot, reads.step),
    };
    let next = _mm512_set1_epi64(reads.next.cast_signed());
    let (mut at, mut all) = (first, true);
    for _ in 0..reads.count {
        let mut slot = slots;
        for pair in (0..LINES).step_by(2) {
            let line = at.wrapping_add(pair);
            // SAFETY: as promised.
            all &= unsafe {
                match LINES {
                    1 => some_lines::<false, false, true>(line, &v, slot),
                    _ => some_lines::<true, false, true>(line, &v, slot),
                }
            };
            slot = _mm512_add_epi64(slot, both);
        }
        at = at.wrapping_offset(reads.lines);
        slots = _mm512_add_epi64(slots, next);
    }
    all
}

/// Enters an access to a line, or to `TWO`, if none races or has cells in use.
///
/// # Safety
/// As [`lines`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn some_lines<const TWO: bool, const WRITES: bool, const ALONE: bool>(
    at: *mut Line,
    v: &LineVectors,
    slot: __m512i,
) -> bool {
    // Without masks, as the next access can read at once what a whole register has written.
    // SAFETY: as promised.
    let past = unsafe {
        match TWO {
            true => _mm512_loadu_si512(at.cast()),
            false => _mm512_castsi256_si512(_mm256_loadu_si256(at.cast())),
        }
    };
    let of = if TWO { 0xFF } else { 0x0F };
    let Some(new) = v.entered::<WRITES, ALONE>(past, slot, of) else {
        return false;
    };
    // SAFETY: as promised.
    unsafe {
        match TWO {
            true => _mm512_storeu_si512(at.cast(), new),
            false => _mm256_storeu_si256(at.cast(), _mm512_castsi512_si256(new)),
        }
    }
    true
}

/// Enters an access to the words of a line whose bits are set in `words`, if it races with none. False if there is a race: only words that do
/// not race may be entered then.
///
/// # Safety
/// These are the cells of a line. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn cells(at: [*mut Cell; 4], now: &Now, slots: Slots, words: u8) -> bool {
    // SAFETY: as promised.
    unsafe {
        each_two(at, now, words, |word| {
            [slots.slot_of(word), slots.slot_of(word + 1)]
        })
    }
}

/// The same where all words have one slot.
///
/// # Safety
/// As [`cells`].
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn cells_of_lane(at: [*mut Cell; 4], now: &Now, slot: u64, words: u8) -> bool {
    // SAFETY: as promised.
    unsafe { each_two(at, now, words, |_| [slot; 2]) }
}

/// The same where words have consecutive lanes. `slot` is that of the first word, or would be.
///
/// # Safety
/// As [`cells`].
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn cells_of_lanes(at: [*mut Cell; 4], now: &Now, slot: u64, words: u8) -> bool {
    const _: () = assert!(line::WORDS == 4);
    let v = Vectors::new(now);
    let mut left = u32::from(words & 0xF);
    while left != 0 {
        let (low, high, two) = next_two(&mut left);
        let cells = [at[low & 3], at[high & 3]];
        let slots = [of_lane(slot, low), of_lane(slot, high)];
        // SAFETY: as promised.
        if !unsafe { two_cells::<false>(cells, &v, now, slots, two) } {
            return false;
        }
    }
    true
}

/// The slot of a lane, by that of the first one.
#[inline(always)]
fn of_lane(slot: u64, lane: usize) -> u64 {
    slot.wrapping_add((lane as u64) << cell::LANE)
}

/// Takes the lowest two bits out of some. Where there is one, it is both, and the last number has one bit.
#[inline(always)]
fn next_two(left: &mut u32) -> (usize, usize, u8) {
    let bits = *left;
    let rest = bits & bits.wrapping_sub(1);
    let low = bits.trailing_zeros() as usize;
    let (high, two) = match rest {
        0 => (low, 1),
        _ => (rest.trailing_zeros() as usize, 3),
    };
    *left = rest & rest.wrapping_sub(1);
    (low, high, two)
}

/// Enters an access, which is not atomic, of lanes to a line each, `apart` lines from one lane to the next, for those lanes whose bits are set.
/// False where one races or has cells in use: others may be entered then.
///
/// # Safety
/// The lines of all lanes up to the last of these are there. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn lines_apart(
    at: *mut Line,
    apart: usize,
    now: &Now,
    slot: u64,
    of: u32,
) -> bool {
    // SAFETY: as promised.
    unsafe {
        match now.writes {
            true => lines_apart_of::<true>(at, apart, now, slot, of),
            false => lines_apart_of::<false>(at, apart, now, slot, of),
        }
    }
}

/// # Safety
/// As [`lines_apart`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn lines_apart_of<const WRITES: bool>(
    at: *mut Line,
    apart: usize,
    now: &Now,
    slot: u64,
    of: u32,
) -> bool {
    let v = LineVectors::new::<WRITES>(now);
    let mut left = of;
    while left != 0 {
        let (low, high, _) = next_two(&mut left);
        let lines = [at.wrapping_add(apart * low), at.wrapping_add(apart * high)];
        let slots = both_slots([of_lane(slot, low), of_lane(slot, high)]);
        // SAFETY: as promised.
        if !unsafe { two_lines::<WRITES, false>(lines, &v, slots) } {
            return false;
        }
    }
    true
}

/// # Safety
/// As [`cells`].
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn each_two(
    at: [*mut Cell; 4],
    now: &Now,
    words: u8,
    slots: impl Fn(u32) -> [u64; 2],
) -> bool {
    const _: () = assert!(line::WORDS == 4);
    let v = Vectors::new(now);
    let [first, second, third, fourth] = at;
    // SAFETY: as promised.
    unsafe {
        (words & 3 == 0 || two_cells::<false>([first, second], &v, now, slots(0), words & 3))
            && (words >> 2 == 0
                || two_cells::<false>([third, fourth], &v, now, slots(2), words >> 2))
    }
}

/// Enters an access to a word, if it races with none; false if there is a race.
///
/// # Safety
/// The word has a cell. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
pub(super) unsafe fn cell(at: *mut Cell, now: &Now, slot: u64) -> bool {
    let v = Vectors::new(now);
    // Whole registers, so that the next lane can read what this one has written.
    // SAFETY: as promised.
    let past = unsafe { _mm256_loadu_epi64(at.cast()) };
    let past = _mm512_andnot_si512(in_cells(), _mm512_castsi256_si512(past));
    let mut matters = 0x0F & matters(now.writes);
    if now.is_atomic() {
        matters &= _mm512_testn_epi64_mask(past, _mm512_set1_epi64(ATOMIC.cast_signed()));
    }
    if v.unordered(past, matters) != 0 {
        return false;
    }
    let slot = _mm512_set1_epi64(slot.cast_signed());
    let new = entered(past, &v, (now.writes, now.is_atomic()), slot, 0x0F);
    let new = _mm512_or_si512(in_cells(), new);
    // SAFETY: as promised.
    unsafe { _mm256_storeu_epi64(at.cast(), _mm512_castsi512_si256(new)) };
    true
}

/// What two cells in use have that no slot has.
#[inline]
#[target_feature(enable = "avx512f")]
fn in_cells() -> __m512i {
    _mm512_maskz_set1_epi64(LASTS, IN_CELLS.cast_signed())
}

/// Slots of cells that race with an access, if they are not ordered before it.
#[inline]
fn matters(writes: bool) -> u8 {
    if writes { CELL_WRITES } else { CELL_READS }
}

/// What is known after an access to those cells whose bits are set.
#[inline]
#[target_feature(enable = "avx512f")]
fn entered(
    past: __m512i,
    v: &Vectors,
    (writes, atomic): (bool, bool),
    slot: __m512i,
    of: u8,
) -> __m512i {
    if writes {
        let written = if atomic { CELL_ATOMICS } else { CELL_PLAIN };
        return _mm512_mask_mov_epi64(past, of & written, slot);
    }
    let moved = v.is_other(past, of & CELL_READ) << 1;
    let past = _mm512_mask_permutex_epi64::<CELL_READ_TO_OTHER>(past, moved, past);
    _mm512_mask_mov_epi64(past, of & CELL_READ, slot)
}

/// With `CLOSED`, a cell may not be in use, and then false.
///
/// # Safety
/// Both cells are there. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn two_cells<const CLOSED: bool>(
    at: [*mut Cell; 2],
    v: &Vectors,
    now: &Now,
    slots: [u64; 2],
    words: u8,
) -> bool {
    // Four bits for each of two words.
    let of = ((words & 1) * 0x0F) | ((words >> 1) * 0xF0);
    // SAFETY: as promised.
    let stored = unsafe { loaded(at) };
    if CLOSED && _mm512_mask_testn_epi64_mask(LASTS, stored, in_cells()) != 0 {
        return false;
    }
    let past = _mm512_andnot_si512(in_cells(), stored);
    let mut matters = of & matters(now.writes);
    if now.is_atomic() {
        matters &= _mm512_testn_epi64_mask(past, _mm512_set1_epi64(ATOMIC.cast_signed()));
    }
    if v.unordered(past, matters) != 0 {
        return false;
    }
    let new = entered(
        past,
        v,
        (now.writes, now.is_atomic()),
        both_slots(slots),
        of,
    );
    let new = _mm512_or_si512(in_cells(), new);
    // Whole registers, so that the next access can read what this one has written.
    // SAFETY: as promised.
    unsafe {
        if words & 1 != 0 {
            _mm256_storeu_si256(at[0].cast(), _mm512_castsi512_si256(new));
        }
        if words & 2 != 0 {
            _mm256_storeu_si256(at[1].cast(), _mm512_extracti64x4_epi64::<1>(new));
        }
    }
    true
}

/// Two lines or cells.
///
/// # Safety
/// Both are there. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn loaded<T>(at: [*mut T; 2]) -> __m512i {
    const { assert!(size_of::<T>() == 32) };
    let [low, high] = at;
    // Without closures, which would be calls.
    // SAFETY: as promised.
    let (low, high) = unsafe {
        (
            _mm256_loadu_si256(low.cast()),
            _mm256_loadu_si256(high.cast()),
        )
    };
    _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high)
}

/// Slots of two lines or cells, in all places of each.
#[inline]
#[target_feature(enable = "avx512f")]
fn both_slots([low, high]: [u64; 2]) -> __m512i {
    let high = _mm512_set1_epi64(high.cast_signed());
    _mm512_mask_set1_epi64(high, 0x0F, low.cast_signed())
}
