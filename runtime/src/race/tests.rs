//! What is entered at once, in lines and by vectors, is what is entered one by one.

#[cfg(target_arch = "x86_64")]
mod parts;

use super::*;
use visa_test_common::{Rng, share};

/// One access of lanes to consecutive words.
struct Made {
    thread: u32,
    site: u32,
    does: Does,
    /// Of the first word.
    address: u64,
    run: Run,
}

impl Made {
    fn new(rng: &mut Rng) -> Made {
        let shift = [0, 0, 0, 1, 2, 3, 4, -1, -2][rng.below(9)];
        let least = if shift < 0 { -shift } else { 0 } as usize;
        let lanes: u32 = 1 << (least + rng.below(if shift < 3 { 6 - least } else { 4 }));
        Made {
            thread: rng.below(3) as u32,
            // Of bytes that an instruction accesses again, one by one, not all stay known.
            site: match shift {
                0.. => rng.below(5) as u32,
                _ => 5 + rng.below(4000) as u32,
            },
            does: Does {
                writes: rng.below(3) == 0,
                atomic: false,
            },
            // Mostly where lines begin.
            address: 4 * [0, 8, 16, 32, rng.below(40) as u64][rng.below(5)],
            run: Run {
                words: match shift {
                    0.. => u64::from(lanes) << shift,
                    _ => u64::from(lanes) >> -shift,
                },
                lane: rng.below(33 - lanes as usize) as u32,
                shift,
            },
        }
    }

    /// What each lane's elements race with, one after the other.
    fn one_by_one(&self, races: &mut Races, memory: Memory, start: u64) -> Vec<Option<(u64, u32)>> {
        let now = races.now(memory, self.thread, self.site, self.does);
        let bytes = if self.run.shift < 0 {
            4 >> -self.run.shift
        } else {
            4
        };
        let elements = 0..self.run.words * 4 / bytes;
        let element = |at: u64| {
            let lane = self.run.lane + (at >> self.run.shift.max(0)) as u32;
            let place = start + self.address + bytes * at;
            races.element(memory, &now, (place, bytes as u32), lane)
        };
        elements.map(element).collect()
    }

    /// All of them at once; true if there is no race.
    fn at_once<const WIDE: bool>(&self, races: &mut Races, memory: Memory, start: u64) -> bool {
        let now = races.now(memory, self.thread, self.site, self.does);
        let words = self.run.words;
        (0..words).step_by(64).all(|at| {
            let len = (words - at).min(64);
            let part = Part {
                run: self.run,
                at,
                len,
                accessed: ones(len),
            };
            let address = start + self.address + 4 * at;
            races.part::<WIDE>(memory, &now, address, part)
        })
    }
}

/// What was known of a buffer is given up with it, by words and by lines.
#[test]
fn freed_memory_is_forgotten() {
    let memory = DeviceMemory::with_capacity(1 << 24).unwrap();
    let mut races = Races::new(Some(&memory)).unwrap();
    races.start_launch([1; 3], 0..0);
    races.start_group();
    let does = |writes| Does {
        writes,
        atomic: false,
    };
    let base = memory.base();
    let now = races.now(Memory::Shared, 1, 2, does(true));
    let run = Run {
        words: 8,
        lane: 0,
        shift: 0,
    };
    let (kept, freed) = (base + 4096, base + (1 << 20));
    for start in [kept, freed] {
        assert!(races.part::<false>(Memory::Shared, &now, start, Part::all(run)));
        let word = races.element(Memory::Shared, &now, (start + 64, 4), 3);
        assert_eq!(word, None);
    }
    races.freed(1 << 18, 1 << 22);
    let later = races.now(Memory::Shared, 2, 2, does(false));
    let mut ask = |at| races.conflict(Memory::Shared, &later, (at, 4)).is_some();
    assert_eq!(
        [kept, kept + 64, freed, freed + 64].map(&mut ask),
        [true, true, false, false]
    );
}

/// Lines are a shorter way to know what cells know: a launch in local memory, whose words have cells and lines, against the same launch in
/// memory that has cells only.
fn lines_are_cells<const WIDE: bool>() {
    const LOCAL: u64 = 0x1000;
    let memory = Memory::Local(LOCAL);
    let mut rng = Rng::new(11);
    let [mut lines, mut cells] = [(); 2].map(|()| Races::new(None).unwrap());
    let (mut raced, mut clean) = (0, 0);
    for _ in 0..6000 {
        match rng.below(12) {
            // A launch of one group: what was before the group was before the launch.
            0 => [&mut lines, &mut cells].map(|races| {
                races.start_launch([1; 3], 0..0);
                races.start_group();
                races.launch = races.group;
            }),
            1..4 => [&mut lines, &mut cells].map(Races::next_epoch),
            _ => [(); 2],
        };
        let made = Made::new(&mut rng);
        let narrow = made.run.shift < 0;
        // To enter bytes one by one makes what was known of others forgotten, so that races are asked for first.
        let free = !narrow || {
            let now = cells.now(Memory::Shared, made.thread, made.site, made.does);
            (0..made.run.words).all(|at| {
                let word = (LOCAL + made.address + 4 * at, 4);
                cells.conflict(Memory::Shared, &now, word).is_none()
            })
        };
        if narrow && !free {
            continue;
        }
        let wanted = made.one_by_one(&mut cells, Memory::Shared, LOCAL);
        let whole = rng.below(6) != 0 && {
            let entered = made.at_once::<WIDE>(&mut lines, memory, LOCAL);
            assert_eq!(entered, wanted.iter().all(Option::is_none));
            entered
        };
        match whole {
            true => clean += 1,
            false => {
                assert_eq!(made.one_by_one(&mut lines, memory, LOCAL), wanted);
                raced += 1;
            }
        }
    }
    assert!(clean > 1000 && raced > 1000, "{clean} {raced}");
}

#[test]
fn lines_are_cells_one_by_one() {
    lines_are_cells::<false>();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn lines_are_cells_by_vectors() {
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
        lines_are_cells::<true>();
    }
}

/// Eight lanes at any places, some at the same one, are what they are one after the other, those of words and those of whole lines.
#[test]
#[cfg(target_arch = "x86_64")]
fn eight_lanes_are_entered_at_once() {
    if !is_x86_feature_detected!("avx512f") || !is_x86_feature_detected!("avx512vl") {
        return;
    }
    const LOCAL: u64 = 0x1000;
    let memory = Memory::Local(LOCAL);
    let mut rng = Rng::new(5);
    let [mut eight, mut cells] = [(); 2].map(|()| Races::new(None).unwrap());
    let (mut raced, mut clean) = ([0; 2], [0; 2]);
    for _ in 0..20_000 {
        match rng.below(20) {
            0 => [&mut eight, &mut cells].map(|races| {
                races.start_launch([1; 3], 0..0);
                races.start_group();
                races.launch = races.group;
            }),
            1..3 => [&mut eight, &mut cells].map(Races::next_epoch),
            _ => [(); 2],
        };
        let whole = rng.below(2) == 0;
        let does = Does {
            writes: rng.below(4) == 0,
            atomic: !whole && rng.below(4) == 0,
        };
        let (thread, site) = (rng.below(3) as u32, rng.below(5) as u32);
        let [now, wanted] = [&eight, &cells].map(|races| races.now(memory, thread, site, does));
        let unit = if whole { 16 } else { 4 };
        // Few places, so that several threads read and write each.
        let around = 1 + rng.below(12);
        let places: [u64; 8] = std::array::from_fn(|_| LOCAL + unit * (rng.below(around) as u64));
        let lanes: [u64; 8] = std::array::from_fn(|at| 3 * at as u64 + 2);
        let of = rng.below(256) as u8;
        // SAFETY: both are vectors, and the processor has them.
        let entered = unsafe {
            use std::arch::x86_64::_mm512_loadu_epi64;
            let [at, by] = [&places, &lanes].map(|v| _mm512_loadu_epi64(v.as_ptr().cast()));
            eight.eight(memory, &now, (at, by), of, whole)
        };
        let one_by_one = |races: &mut Races, now: &Now| -> Vec<_> {
            let enabled = (0..8).filter(|lane| of >> lane & 1 != 0);
            let words = enabled.flat_map(|lane| (0..unit / 4).map(move |k| (lane, k)));
            let enter = |(lane, k): (usize, u64)| {
                let place = (places[lane] + 4 * k, 4);
                races.element(memory, now, place, lanes[lane] as u32)
            };
            words.map(enter).collect()
        };
        let found = one_by_one(&mut cells, &wanted);
        if entered {
            assert!(found.iter().all(Option::is_none));
            clean[usize::from(whole)] += 1;
        } else {
            assert_eq!(one_by_one(&mut eight, &now), found);
            raced[usize::from(whole)] += 1;
        }
    }
    assert!(
        clean.iter().chain(&raced).all(|&n| n > 1000),
        "{clean:?} {raced:?}"
    );
}

/// Random accesses of all kinds to a few lines, to races that are asked and to others, which have a cell for each word.
struct Mixed {
    asked: Races,
    model: Races,
    memory: Memory,
    /// Address of the first word.
    start: u64,
    rng: Rng,
    /// Accesses that were entered at once, and those that were not, by kind.
    entered: [u32; KINDS],
    left: [u32; KINDS],
    /// Lines that came to have cells in use, and the other way.
    opened: u64,
    closed: u64,
    /// Lines in parts that were seen, after all accesses.
    parted: u64,
}

/// Kinds of accesses: the last two are to local memory only, by vectors.
const KINDS: usize = 9;

const READS: Does = Does {
    writes: false,
    atomic: false,
};

/// A plain run makes a sixth of the accesses.
const PART: u64 = 6;

/// Words that random accesses go to, and those that are looked at.
const AROUND: usize = 40;
const REACHED: u64 = 256;

impl Mixed {
    fn new(memory: Memory, asked: Races, start: u64) -> Mixed {
        Mixed {
            asked,
            model: Races::new(None).unwrap(),
            memory,
            start,
            rng: Rng::new(3),
            entered: [0; KINDS],
            left: [0; KINDS],
            opened: 0,
            closed: 0,
            parted: 0,
        }
    }

    fn both(&mut self, what: impl Fn(&mut Races)) {
        [&mut self.asked, &mut self.model]
            .into_iter()
            .for_each(what);
    }

    fn start_launch(&mut self) {
        self.both(|races| {
            races.start_launch([1; 3], 0..0);
            races.start_group();
        });
    }

    fn is_local(&self) -> bool {
        matches!(self.memory, Memory::Local(_))
    }

    /// Time goes on, to each floor that there is.
    fn go_on(&mut self) {
        let is_local = self.is_local();
        match self.rng.below(60) {
            0..2 => self.start_launch(),
            2 => {
                let from = self.rng.below(3 * 4096) as u64;
                self.asked.freed(from, self.rng.below(4 * 4096) as u64);
                self.start_launch();
            }
            3..5 => self.both(Races::start_group),
            5..10 => self.both(Races::next_epoch),
            _ => {}
        }
        if is_local {
            // What the model knows is shared memory to it.
            self.model.launch = self.model.group;
        }
    }

    fn now(&self, thread: u32, site: u32, does: Does) -> Now {
        let now = self.model.now(Memory::Shared, thread, site, does);
        let asked = self.asked.now(self.memory, thread, site, does);
        assert_eq!(format!("{now:?}"), format!("{asked:?}"));
        now
    }

    /// Accesses elements by lanes, first at once, then as the model does.
    fn access(
        &mut self,
        kind: usize,
        now: &Now,
        elements: &[(u64, u32, u32)],
        at_once: impl FnOnce(&mut Races) -> bool,
    ) {
        let memory = self.memory;
        let one_by_one = |races: &mut Races, memory| -> Vec<_> {
            let each = elements.iter();
            let each = each.map(|&(at, bytes, lane)| races.element(memory, now, (at, bytes), lane));
            each.collect()
        };
        let wanted = one_by_one(&mut self.model, Memory::Shared);
        if at_once(&mut self.asked) {
            self.entered[kind] += 1;
            assert!(wanted.iter().all(Option::is_none), "{kind} {wanted:?}");
        } else {
            self.left[kind] += 1;
            assert_eq!(one_by_one(&mut self.asked, memory), wanted, "{kind}");
        }
    }

    /// A message of lanes side by side.
    fn side_by_side<const WIDE: bool>(&mut self) {
        let mut made = Made::new(&mut self.rng);
        made.address += self.start;
        let now = self.now(made.thread, made.site, made.does);
        let run = made.run;
        let narrow = run.shift < 0;
        let words = (0..run.words).map(|word| (made.address + 4 * word, 4));
        let mut asked = words.map(|at| self.model.conflict(Memory::Shared, &now, at));
        // As in `lines_are_cells`.
        if narrow && !asked.all(|race| race.is_none()) {
            return;
        }
        let bytes = if narrow { 4 >> -run.shift } else { 4 };
        let elements: Vec<_> = (0..run.words * 4 / bytes)
            .map(|at| {
                let lane = run.lane + (at >> run.shift.max(0)) as u32;
                (made.address + bytes * at, bytes as u32, lane)
            })
            .collect();
        let memory = self.memory;
        self.access(0, &now, &elements, |races| {
            made.at_once::<WIDE>(races, memory, 0)
        });
    }

    /// An access of a lane to some words, or to some bytes of one.
    fn of_lane<const WIDE: bool>(&mut self) {
        let does = Does {
            writes: self.rng.below(4) == 0,
            atomic: self.rng.below(4) == 0,
        };
        let (thread, lane) = (self.rng.below(3) as u32, self.rng.below(32) as u32);
        let site = 4010 + self.rng.below(60) as u32;
        let now = self.now(thread, site, does);
        let at = self.start + 4 * self.rng.below(AROUND) as u64;
        let memory = self.memory;
        match self.rng.below(3) {
            0 => self.access(1, &now, &[(at, 4, lane)], |races| {
                races.one::<WIDE>(memory, &now, at, lane)
            }),
            1 => {
                let bytes = 1 << self.rng.below(4);
                let at = at + self.rng.below(4) as u64;
                let found = [&mut self.asked, &mut self.model]
                    .into_iter()
                    .zip([memory, Memory::Shared])
                    .map(|(races, memory)| races.element(memory, &now, (at, bytes), lane));
                let found: Vec<_> = found.collect();
                assert_eq!(found[0], found[1]);
            }
            _ => {
                let count = 1 + self.rng.below(4) as u64;
                let changed = 1 + self.rng.below((1 << count) - 1) as u64;
                let words = (0..count).filter(|word| changed >> word & 1 != 0);
                let elements: Vec<_> = words.map(|word| (at + 4 * word, 4, lane)).collect();
                self.access(2, &now, &elements, |races| {
                    #[cfg(target_arch = "x86_64")]
                    if WIDE {
                        return races.few(memory, &now, at, (count, changed), lane);
                    }
                    let part = Part {
                        accessed: changed,
                        ..Part::all(Run {
                            words: count,
                            lane,
                            shift: Run::ONE_LANE,
                        })
                    };
                    races.part::<WIDE>(memory, &now, at, part)
                });
            }
        }
    }

    /// What only processors with AVX-512 do.
    #[cfg(target_arch = "x86_64")]
    fn by_vectors(&mut self) {
        let of_tiles = if self.is_local() { 2 } else { 0 };
        let kind = 3 + self.rng.below(4 + of_tiles);
        let unit = if kind == 3 { 4 } else { 16 };
        let does = Does {
            writes: self.rng.below(4) == 0,
            atomic: unit == 4 && self.rng.below(4) == 0,
        };
        let (thread, site) = (self.rng.below(3) as u32, self.rng.below(5) as u32);
        let now = self.now(thread, site, does);
        let around = [2, AROUND * 4 / unit][self.rng.below(2)];
        let place = |rng: &mut Rng| (unit * rng.below(around)) as u64;
        let memory = self.memory;
        if kind == 5 {
            let (mut at, mut count) = (self.start + place(&mut self.rng), 4 << self.rng.below(4));
            if self.rng.below(2) == 0 {
                (at, count) = (
                    at + 4 * self.rng.below(4) as u64,
                    1 + self.rng.below(32) as u64,
                );
            }
            let lane = self.rng.below(33 - count as usize) as u32;
            let accessed = match self.rng.below(4) {
                0 => ones(count),
                1 => self.rng.bits() & ones(count),
                // What lines in parts are for: the same words of each line, or some of these.
                _ => {
                    let even = [0x5555_5555_5555_5555, 0x3333_3333_3333_3333][self.rng.below(2)];
                    let some = [u64::MAX, self.rng.bits()][self.rng.below(2)];
                    ones(count) & some & [even, !even][self.rng.below(2)]
                }
            };
            let elements: Vec<_> = (0..count)
                .filter(|word| accessed >> word & 1 != 0)
                .map(|word| (at + 4 * word, 4, lane + word as u32))
                .collect();
            let run = |races: &mut Races| races.words(memory, &now, at, (count, accessed), lane);
            return self.access(kind, &now, &elements, run);
        }
        if kind == 6 {
            let at = self.start + place(&mut self.rng);
            let (count, stride) = (1 + self.rng.below(4) as u64, 16 * self.rng.below(4) as u64);
            let of = self.rng.bits() as u32 & ones(count) as u32;
            let lanes = (0..count).filter(|lane| of >> lane & 1 != 0);
            let each =
                |lane: u64| (0..4).map(move |k| (at + stride * lane + 4 * k, 4, lane as u32 + 5));
            let elements: Vec<_> = lanes.flat_map(each).collect();
            return self.access(kind, &now, &elements, |races| {
                races.lines_apart(memory, &now, (at, stride, count), of, 5)
            });
        }
        if let (7.., Memory::Local(first)) = (kind, memory) {
            let now = self.now(thread, site, READS);
            let at = self.start + place(&mut self.rng);
            let (words, by_word) = if kind == 7 { (16, 1) } else { (4, 0) };
            let count = 1 + self.rng.below(3) as u8;
            let step = Step {
                site: 0,
                lane: self.rng.below(3) as i8 - 1,
                distance: 16 * self.rng.below(5) as i32 - 32,
            };
            let at = at + if step.distance < 0 { 64 } else { 0 };
            let read = |n: i32| {
                let at = at.wrapping_add_signed((step.distance * n).into());
                let lane = (9 + i32::from(step.lane) * n).cast_unsigned();
                (0..words).map(move |word| (at + 4 * word, 4, lane + by_word * word as u32))
            };
            let elements: Vec<_> = (0..count.into()).flat_map(read).collect();
            return self.access(kind, &now, &elements, |races| match kind {
                7 => races.local_reads::<4, false>(&now, (at - first, 9), (count, step)),
                _ => races.local_reads::<1, true>(&now, (at - first, 9), (count, step)),
            });
        }
        let places: [u64; 8] = std::array::from_fn(|_| self.start + place(&mut self.rng));
        let lanes: [u64; 8] = std::array::from_fn(|at| 3 * at as u64 + 2);
        let of = self.rng.below(256) as u8;
        let enabled = (0..8).filter(|lane| of >> lane & 1 != 0);
        let each = |lane: usize| (0..unit as u64 / 4).map(move |k| (lane, k));
        let elements: Vec<_> = enabled
            .flat_map(each)
            .map(|(lane, k)| (places[lane] + 4 * k, 4, lanes[lane] as u32))
            .collect();
        self.access(kind, &now, &elements, |races| {
            use std::arch::x86_64::_mm512_loadu_epi64;
            // SAFETY: both are vectors, and the processor has them.
            unsafe {
                let [at, by] = [&places, &lanes].map(|v| _mm512_loadu_epi64(v.as_ptr().cast()));
                races.eight(memory, &now, (at, by), of, unit == 16)
            }
        });
    }

    fn in_cells(&mut self) -> Vec<bool> {
        let (shadow, first) = self.asked.shadow(self.memory);
        let word = (self.start - first) / WORD;
        shadow.in_cells(word..word + REACHED)
    }

    /// How many lines are in parts.
    fn in_parts(&mut self) -> usize {
        let (shadow, first) = self.asked.shadow(self.memory);
        let word = (self.start - first) / WORD;
        shadow.in_parts(word..word + REACHED)
    }

    /// All that is known of the words is what the model knows.
    fn look(&mut self) {
        let now = self.now(
            7,
            7,
            Does {
                writes: true,
                atomic: false,
            },
        );
        for at in (self.start..).step_by(4).take(REACHED as usize) {
            let found = self.asked.conflict(self.memory, &now, (at, 4));
            let wanted = self.model.conflict(Memory::Shared, &now, (at, 4));
            assert_eq!(found, wanted);
        }
    }

    fn run<const WIDE: bool>(mut self) {
        self.start_launch();
        let mut before = self.in_cells();
        for _ in 0..share(30_000, PART) {
            self.go_on();
            match self.rng.below(4) {
                0 => self.of_lane::<WIDE>(),
                #[cfg(target_arch = "x86_64")]
                1..3 if WIDE => self.by_vectors(),
                _ => self.side_by_side::<WIDE>(),
            }
            self.parted += self.in_parts() as u64;
            let after = self.in_cells();
            for (before, &after) in before.iter().zip(&after) {
                self.opened += u64::from(!before & after);
                self.closed += u64::from(before & !after);
            }
            before = after;
            if self.rng.below(300) == 0 {
                self.look();
                before = self.in_cells();
            }
        }
        let kinds = match (WIDE, self.is_local()) {
            (true, true) => KINDS,
            (true, false) => KINDS - 2,
            (false, _) => 3,
        };
        let counts = self.entered.iter().zip(&self.left).take(kinds);
        for (kind, (entered, left)) in counts.enumerate() {
            // Rows of sixteen words have often a word with a cell of its own.
            let least = share(if kind < 7 { 150 } else { 50 }, PART);
            let seen = u64::from(*entered.min(left));
            assert!(seen > least, "{kind} {entered} {left}");
        }
        assert!(
            self.opened > share(1000, PART) && self.closed > share(500, PART),
            "{} {}",
            self.opened,
            self.closed
        );
        assert_eq!(
            self.parted > share(10_000, 2 * PART),
            WIDE,
            "{}",
            self.parted
        );
    }
}

/// Accesses of all kinds mixed, to device memory and local memory, over many groups and launches.
fn all_kinds_are_one_by_one<const WIDE: bool>() {
    let local = Mixed::new(Memory::Local(0x1000), Races::new(None).unwrap(), 0x1000);
    local.run::<WIDE>();
    let memory = DeviceMemory::with_capacity(1 << 24).unwrap();
    let races = Races::new(Some(&memory)).unwrap();
    // What is known of it lies in several pages.
    let start = memory.base() + 2 * 4096 - 64;
    Mixed::new(Memory::Shared, races, start).run::<WIDE>();
}

#[test]
fn all_kinds_are_one_by_one_without_vectors() {
    all_kinds_are_one_by_one::<false>();
}

#[test]
#[cfg(target_arch = "x86_64")]
fn all_kinds_are_one_by_one_by_vectors() {
    if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl") {
        all_kinds_are_one_by_one::<true>();
    }
}

/// Each of several reads has its own site and lanes, and sites without a number of their own are left.
#[test]
#[cfg(target_arch = "x86_64")]
fn reads_have_their_own_sites() {
    if !(is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl")) {
        return;
    }
    let memory = Memory::Local(0);
    let mut races = Races::new(None).unwrap();
    races.start_launch([1; 3], 0..0);
    races.start_group();
    let step = Step {
        site: -2,
        lane: 16,
        distance: 64,
    };
    let now = races.now(memory, 1, 9, READS);
    assert!(races.local_reads::<4, false>(&now, (128, 0), (2, step)));
    let writes = Does {
        writes: true,
        atomic: false,
    };
    let other = races.now(memory, 2, 1, writes);
    for (at, site, lane) in [(128, 9, 0), (188, 9, 15), (192, 7, 16), (252, 7, 31)] {
        let found = races.conflict(memory, &other, (at, 4)).unwrap();
        let who = races.who(found, [0; 3]);
        assert_eq!((who.thread, who.site, who.lane), (1, site, lane), "{at}");
    }
    for (site, step) in [(1, -1), (cell::MAX_SITE - 1, 1), (cell::MAX_SITE, 0)] {
        let step = Step {
            site: step,
            lane: 0,
            distance: 64,
        };
        let now = races.now(memory, 1, site, READS);
        let place = (128, 0);
        assert!(!races.local_reads::<4, false>(&now, place, (3, step)));
    }
}

/// A stride is what is seen twice in a row: one odd step between, as from the last thread to the first one, leaves it.
#[test]
#[cfg(target_arch = "x86_64")]
fn strides_are_foreseen() {
    let mut ahead = Ahead::default();
    let foreseen = [100, 164, 228, 292, 40, 104, 168].map(|at| ahead.next(at).after_next);
    assert_eq!(
        foreseen[2..],
        [228 + 128, 292 + 128, 40 + 128, 104 + 128, 168 + 128]
    );
    let backwards = [168 - 8, 168 - 16, 168 - 24].map(|at| ahead.next(at).after_next);
    assert_eq!(backwards[2], 168 - 40);
}

/// At the start of a series of affine accesses the first two places of the next one are foreseen, once two were as far from each other.
#[test]
#[cfg(target_arch = "x86_64")]
fn series_are_foreseen() {
    let mut ahead = Ahead::default();
    let of = |series: u64| (0..4).map(move |n| 10_000 + 1000 * series + 64 * n);
    for series in 0..6 {
        let found: Vec<_> = of(series).map(|at| ahead.next(at).series).collect();
        assert_eq!(found[1..], [None; 3]);
        if series == 5 {
            let next = 10_000 + 1000 * 6;
            assert_eq!(found[0], Some([next, next + 64]));
        }
    }
}
