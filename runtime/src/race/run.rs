//! Consecutive words, how lanes access them, and the slots of these accesses.

#[cfg(target_arch = "x86_64")]
use super::cell::LANE;
use super::cell::{Now, lane_bits, narrow_bits};
use super::line;

/// Consecutive words, and how lanes access them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Run {
    pub words: u64,
    /// Lane of the first word, or of its first bytes.
    pub lane: u32,
    /// Logarithm of the number of words of each lane, one lane after the other, at most 63. Negative where several lanes share a word: of
    /// the number of them.
    pub shift: i32,
}

impl Run {
    /// All words are of one lane.
    pub(crate) const ONE_LANE: i32 = 63;

    /// What an access to a word, counted from the first, adds to the slot of an access.
    #[inline(always)]
    fn bits(&self, at: u64) -> u64 {
        match u32::try_from(self.shift) {
            Ok(shift) => lane_bits(self.lane.wrapping_add((at >> shift) as u32)),
            Err(_) => {
                let lanes = self.shift.unsigned_abs();
                narrow_bits(self.lane.wrapping_add((at as u32) << lanes), lanes)
            }
        }
    }

    /// How lanes access the line that begins with a word, if they are affine. `at` counts the word from the first.
    #[inline(always)]
    pub(super) fn line(&self, at: u64) -> Option<line::LineLanes> {
        let Ok(shift) = u32::try_from(self.shift) else {
            let lanes = self.shift.unsigned_abs();
            return Some(line::LineLanes {
                first: self.lane + ((at as u32) << lanes),
                run: line::LineLanes::NARROW + lanes,
            });
        };
        let of_lane = 1 << shift;
        let within = at & (of_lane - 1);
        let run = match shift {
            0..=1 if within == 0 => shift,
            _ if within + line::WORDS <= of_lane => line::WORDS.ilog2(),
            _ => return None,
        };
        Some(line::LineLanes {
            first: self.lane + (at >> shift) as u32,
            run,
        })
    }

    /// What the slot of a line has to be increased by for that of the next one.
    #[cfg(target_arch = "x86_64")]
    #[inline(always)]
    pub(super) fn step(&self) -> Option<u64> {
        let lanes = match self.shift {
            shift @ ..=2 => line::WORDS << 2 >> (shift + 2),
            Run::ONE_LANE => 0,
            _ => return None,
        };
        Some(lanes << LANE)
    }
}

/// Some words of a [`Run`], which are accessed if their bit is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub run: Run,
    /// The first of the words.
    pub at: u64,
    /// How many, up to 64.
    pub len: u64,
    pub accessed: u64,
}

impl Part {
    /// All words of a run of at most 64.
    pub(crate) fn all(run: Run) -> Part {
        Part {
            run,
            at: 0,
            len: run.words,
            accessed: ones(run.words),
        }
    }
}

/// The lowest bits, up to 64.
#[inline(always)]
pub(crate) fn ones(count: u64) -> u64 {
    match 64u64.checked_sub(count) {
        Some(64) => 0,
        Some(other) => u64::MAX >> other,
        None => u64::MAX,
    }
}

/// Slots of words of a line.
#[derive(Clone, Copy)]
pub(super) struct Slots {
    base: u64,
    run: Run,
    /// Which word of the run the first one of the line is. It may be in front of the run, then it is not accessed.
    at: u64,
}

impl Slots {
    /// Those of an access to a line that begins with a word of a run.
    pub(super) fn new(now: &Now, run: Run, at: u64) -> Slots {
        let base = now.base;
        Slots { base, run, at }
    }

    #[inline(always)]
    pub(super) fn slot_of(&self, word: u32) -> u64 {
        self.base | self.run.bits(self.at.wrapping_add(word.into()))
    }
}
