//! Lines, and the cells of words, by vectors of AVX-512: two of them at a time, or a slot of each of eight. What is entered is what `line` and
//! `row` enter. Cells are in use: what is loaded and stored has [`IN_CELLS`].

use std::arch::x86_64::*;

use super::cell::{self, ATOMIC, Cell, EPOCH, Now, THREAD, THREADS};
use super::line::{self, IN_CELLS, Line};
use super::run::Slots;

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

/// An access to lines that is being made, slot by slot, so that one comparison and one test find what races, what has cells in use, and what a
/// read moves.
struct LineVectors {
    /// Slots from these on matter.
    from: __m512i,
    /// Whether a slot that matters is another thread's, or has cells in use: some of these bits differ from `base`.
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
        let in_cells = IN_CELLS.cast_signed();
        let threads = (THREADS << THREAD).cast_signed();
        let (from, bits) = match WRITES {
            true => (
                slots(LINE_WRITES, now.epoch),
                [threads, threads, threads, in_cells],
            ),
            false => {
                // Which read is moved does not depend on barriers, and the other read is not looked at.
                let reads = slots(LINE_READ, now.floor);
                let from = _mm512_mask_set1_epi64(reads, LINE_PLAIN, now.epoch.cast_signed());
                (from, [threads, threads, 0, in_cells])
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

/// Enters a read of as many lines, one or an even number, that no other group can have accessed. False where one races or has cells in use:
/// lines before it are entered then.
///
/// # Safety
/// As [`lines`].
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn are_read<const LINES: usize>(
    at: *mut Line,
    now: &Now,
    first: u64,
    step: u64,
) -> bool {
    const { assert!(LINES == 1 || LINES.is_multiple_of(2)) };
    let v = LineVectors::new::<false>(now);
    if LINES == 1 {
        let slot = _mm512_set1_epi64(first.cast_signed());
        // SAFETY: as promised.
        return unsafe { some_lines::<false, false, true>(at, &v, slot) };
    }
    let (mut slot, both) = of_two(first, step);
    let mut all = true;
    for pair in (0..LINES).step_by(2) {
        // SAFETY: as promised.
        all &= unsafe { some_lines::<true, false, true>(at.wrapping_add(pair), &v, slot) };
        slot = _mm512_add_epi64(slot, both);
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
    let found = v.found::<WRITES, ALONE>(past) & if TWO { 0xFF } else { 0x0F };
    let moved = if WRITES { 0 } else { found & LINE_READ };
    if found != moved {
        return false;
    }
    let new = match WRITES {
        true => _mm512_mask_mov_epi64(past, LINE_PLAIN, slot),
        false => {
            let past = _mm512_mask_permutex_epi64::<LINE_READ_TO_OTHER>(past, moved << 1, past);
            _mm512_mask_mov_epi64(past, LINE_READ, slot)
        }
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
    unsafe { each_two(at, now, words, |word| [slots.of(word), slots.of(word + 1)]) }
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
        (words & 3 == 0 || two_cells([first, second], &v, now, slots(0), words & 3))
            && (words >> 2 == 0 || two_cells([third, fourth], &v, now, slots(2), words >> 2))
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

/// # Safety
/// Both cells are there. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
unsafe fn two_cells(
    at: [*mut Cell; 2],
    v: &Vectors,
    now: &Now,
    slots: [u64; 2],
    words: u8,
) -> bool {
    // Four bits for each of two words.
    let of = ((words & 1) * 0x0F) | ((words >> 1) * 0xF0);
    // SAFETY: as promised.
    let [low, high] = at.map(|at| unsafe { _mm256_loadu_si256(at.cast()) });
    let past = _mm512_inserti64x4::<1>(_mm512_castsi256_si512(low), high);
    let past = _mm512_andnot_si512(in_cells(), past);
    let mut matters = of & matters(now.writes);
    if now.is_atomic() {
        matters &= _mm512_testn_epi64_mask(past, _mm512_set1_epi64(ATOMIC.cast_signed()));
    }
    if v.unordered(past, matters) != 0 {
        return false;
    }
    let second = _mm512_set1_epi64(slots[1].cast_signed());
    let slot = _mm512_mask_set1_epi64(second, 0x0F, slots[0].cast_signed());
    let new = entered(past, v, (now.writes, now.is_atomic()), slot, of);
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

/// Slots of a line, or of a cell, by which eight of them are entered.
struct Columns {
    /// Those with which a read races, and the others with which a write races, too.
    writes: &'static [usize],
    reads: [usize; 2],
    plain: usize,
    /// Where there is none, no access is atomic.
    atomics: usize,
    /// What a second read has that no slot has.
    mark: u64,
}

const CELL_COLUMNS: Columns = Columns {
    writes: &[cell::PLAIN, cell::ATOMICS],
    reads: [cell::READ, cell::OTHER],
    plain: cell::PLAIN,
    atomics: cell::ATOMICS,
    mark: IN_CELLS,
};

const LINE_COLUMNS: Columns = Columns {
    writes: &[0],
    reads: [1, 2],
    plain: 0,
    atomics: 0,
    mark: 0,
};

/// The last slot of a line or a cell.
const LAST: usize = 3;
const _: () = assert!(cell::OTHER == LAST);

/// Up to eight lines or cells, each by the number of its first slot.
#[derive(Clone, Copy)]
struct Eight {
    at: *mut i64,
    first: __m512i,
    of: u8,
}

impl Eight {
    /// # Safety
    /// They are there. The processor has AVX-512.
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn slots(&self, column: usize) -> __m512i {
        let none = _mm512_setzero_si512();
        let at = self.at.wrapping_add(column);
        // SAFETY: as promised.
        unsafe { _mm512_mask_i64gather_epi64::<8>(none, self.of, self.first, at) }
    }

    /// Of lanes that have one place the last one's slot stays.
    ///
    /// # Safety
    /// As [`Eight::slots`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn set(&self, column: usize, of: u8, slots: __m512i) {
        let at = self.at.wrapping_add(column);
        // SAFETY: as promised.
        unsafe { _mm512_mask_i64scatter_epi64::<8>(at, of, self.first, slots) }
    }

    /// Enters an access, if none of them races. False, and nothing is entered, if there is a race. As all lanes are of one thread, it does not
    /// matter that none sees what another one enters. `others` are the second reads, where they are loaded.
    ///
    /// # Safety
    /// As [`Eight::slots`].
    #[inline]
    #[target_feature(enable = "avx512f")]
    unsafe fn enter(
        &self,
        now: &Now,
        slots: __m512i,
        columns: &Columns,
        others: Option<__m512i>,
    ) -> bool {
        let v = Vectors::new(now);
        let atomic = _mm512_set1_epi64(ATOMIC.cast_signed());
        let races = |past: __m512i| {
            let of = match now.is_atomic() {
                true => _mm512_mask_testn_epi64_mask(self.of, past, atomic),
                false => self.of,
            };
            v.unordered(past, of)
        };
        // SAFETY: as promised.
        unsafe {
            let mut any = 0;
            for &column in columns.writes {
                any |= races(self.slots(column));
            }
            let [read, other] = columns.reads;
            let last = self.slots(read);
            if now.writes {
                let others = others.unwrap_or_else(|| self.slots(other));
                any |= races(last) | races(others);
            }
            if any != 0 {
                return false;
            }
            if now.writes {
                let written = match now.is_atomic() {
                    true => columns.atomics,
                    false => columns.plain,
                };
                self.set(written, self.of, slots);
                return true;
            }
            let moved = v.is_other(last, self.of);
            if moved != 0 {
                let mark = _mm512_set1_epi64(columns.mark.cast_signed());
                self.set(other, moved, _mm512_or_si512(last, mark));
            }
            self.set(read, self.of, slots);
            true
        }
    }
}

/// Where the cells of up to eight words begin in a [`Shadow`](super::shadow::Shadow) of `all` words, in slots from its start.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn places(words: __m512i, all: u64) -> __m512i {
    let low = _mm512_set1_epi64((line::WORDS - 1).cast_signed());
    let others = _mm512_set1_epi64(all.wrapping_sub(line::WORDS).cast_signed());
    // Where a word has number w, and w % 4 = k is not 0: 3 * (w - k) + 4 * (k - 1) of the other cells.
    let behind = _mm512_add_epi64(_mm512_slli_epi64::<1>(words), _mm512_and_si512(words, low));
    let behind = _mm512_add_epi64(behind, others);
    _mm512_mask_add_epi64(words, _mm512_test_epi64_mask(words, low), words, behind)
}

/// The last slots of up to eight cells or lines, by the numbers of their first ones.
///
/// # Safety
/// Those of which `of` has bits are there. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn last(at: *mut i64, first: __m512i, of: u8) -> __m512i {
    let eight = Eight { at, first, of };
    // SAFETY: as promised.
    unsafe { eight.slots(LAST) }
}

/// Of up to eight cells or lines, those of which the last slots say that no cells are in use.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn closed(last: __m512i, of: u8) -> u8 {
    _mm512_mask_testn_epi64_mask(of, last, _mm512_set1_epi64(IN_CELLS.cast_signed()))
}

/// Enters accesses to up to eight words, of one lane each, if none races. False, and nothing is entered, if there is a race. Words are given by
/// the first and the last slots of their cells, see [`places`] and [`last`].
///
/// # Safety
/// Cells of which `of` has bits are there. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn eight_cells(
    at: *mut i64,
    now: &Now,
    (first, last): (__m512i, __m512i),
    of: u8,
    slots: __m512i,
) -> bool {
    let cells = Eight { at, first, of };
    let others = _mm512_andnot_si512(_mm512_set1_epi64(IN_CELLS.cast_signed()), last);
    // SAFETY: as promised.
    unsafe { cells.enter(now, slots, &CELL_COLUMNS, Some(others)) }
}

/// Puts the cells of the lines of up to eight words in use, but for lines of which something is known that matters: returns their words.
/// There are `all` words.
///
/// # Safety
/// Words of which `of` has bits have lines, and these have cells. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn open_eight(at: *mut i64, all: u64, now: &Now, words: __m512i, of: u8) -> u8 {
    let low = _mm512_set1_epi64((line::WORDS - 1).cast_signed());
    let first = _mm512_andnot_si512(low, words);
    let eight = Eight { at, first, of };
    let floor = _mm512_set1_epi64(now.floor.cast_signed());
    let known = (0..=LAST).fold(0, |known, column| {
        // SAFETY: as promised.
        let slots = unsafe { eight.slots(column) };
        known | _mm512_mask_cmpge_epu64_mask(of, slots, floor)
    });
    let free = of & !known;
    let others = Eight {
        at: at.wrapping_add(all as usize),
        first: _mm512_add_epi64(first, _mm512_slli_epi64::<1>(first)),
        of,
    };
    let mark = _mm512_set1_epi64(IN_CELLS.cast_signed());
    // What is older matters in no cell, so that the other slots may stay as they are.
    // SAFETY: as promised.
    unsafe {
        eight.set(LAST, free, mark);
        for cell in 0..line::WORDS as usize - 1 {
            others.set(size_of::<Cell>() / 8 * cell + LAST, free, mark);
        }
    }
    known
}

/// The same as [`eight_cells`] for an access, which is not atomic, to all words of up to eight lines that have no cells in use, by the numbers
/// of their first slots.
///
/// # Safety
/// Lines of which `of` has bits are there. The processor has AVX-512.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) unsafe fn eight_lines(
    at: *mut i64,
    now: &Now,
    first: __m512i,
    of: u8,
    slots: __m512i,
) -> bool {
    let lines = Eight { at, first, of };
    // SAFETY: as promised.
    unsafe { lines.enter(now, slots, &LINE_COLUMNS, None) }
}
