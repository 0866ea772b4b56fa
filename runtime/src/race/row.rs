//! Enters an access to several words of a line together.

use super::cell::{ATOMIC, ATOMICS, Cell, Now, OTHER, PLAIN, READ};
use super::run::Slots;

/// Enters an access to the words whose bits are set, all of each, if it races with none. False, and nothing is entered, if there is a race.
#[inline(always)]
pub(super) fn enter(cells: &mut [Cell], now: &Now, slots: Slots, words: u8) -> bool {
    let accessed = |word: usize| words >> word & 1 != 0;
    let unordered = |past: u64| {
        let both_atomic = now.is_atomic() & (past & ATOMIC != 0);
        now.unordered(past) & !both_atomic
    };
    // Without branches, for vectors.
    let mut races = false;
    for (word, cell) in cells.iter().enumerate() {
        let reads = unordered(cell[READ]) | unordered(cell[OTHER]);
        let writes = unordered(cell[PLAIN]) | unordered(cell[ATOMICS]);
        races |= accessed(word) & (writes | (now.writes & reads));
    }
    if races {
        return false;
    }
    for (word, cell) in cells.iter_mut().enumerate() {
        if !accessed(word) {
            continue;
        }
        let slot = slots.slot_of(word as u32);
        if now.writes {
            let at = if now.is_atomic() { ATOMICS } else { PLAIN };
            cell[at] = slot;
            continue;
        }
        if now.is_other(cell[READ]) {
            cell[OTHER] = cell[READ];
        }
        cell[READ] = slot;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::super::cell::{EPOCH, WHOLE, access, base, lane_bits};
    use super::super::run::Run;
    use super::*;
    use visa_test_common::Rng;

    /// Entering words at once is entering them one by one, from whatever is known before.
    fn rows_are_cells(enter: impl Fn(&mut [Cell], &Now, Run, u8) -> bool) {
        let mut rng = Rng::new(7);
        let (mut clean, mut raced) = (0, 0);
        for _ in 0..6000 {
            let atomic = rng.below(4) == 0;
            let now = Now {
                base: base(9, 2, 5, atomic),
                floor: [5, 8][rng.below(2)] << EPOCH,
                group: 8 << EPOCH,
                epoch: 9 << EPOCH,
                writes: rng.below(2) == 1,
            };
            let mut past = |of_atomic: bool| match rng.below(3) {
                0 => 0,
                _ => {
                    let slot = base(
                        [3, 4, 8, 8, 9, 9, 6][rng.below(7)],
                        rng.below(3) as u32 + 1,
                        6,
                        of_atomic && rng.below(2) == 0,
                    );
                    // Mostly nothing that races.
                    let old = base(4, 1, 6, of_atomic);
                    (if rng.below(12) == 0 { slot } else { old }) | lane_bits(rng.below(32) as u32)
                }
            };
            let cells: Vec<Cell> = (0..8)
                .map(|_| [past(false), past(true), past(true), past(true)])
                .collect();
            let words = rng.below(256) as u8;
            let run = Run {
                words: 8,
                lane: rng.below(24) as u32,
                shift: [0, 1, 2, Run::ONE_LANE][rng.below(4)],
            };
            let mut wanted = cells.clone();
            let mut race = false;
            for (i, cell) in (0..).zip(wanted.iter_mut()) {
                if words >> i & 1 != 0 {
                    let lane = run.lane + (i as u64 >> run.shift) as u32;
                    race |= access(cell, &now, lane, WHOLE).is_some();
                }
            }
            let mut entered = cells.clone();
            let free = enter(&mut entered, &now, run, words);
            assert_eq!(free, !race);
            if race {
                // Words that do not race may be entered.
                let same = |i: usize| entered[i] == cells[i] || entered[i] == wanted[i];
                assert!((0..8).all(same));
                raced += 1;
            } else {
                assert_eq!(entered, wanted);
                clean += 1;
            }
        }
        assert!(clean > 300 && raced > 300, "{clean} {raced}");
    }

    #[test]
    fn rows_are_cells_one_by_one() {
        rows_are_cells(|cells, now, run, words| enter(cells, now, Slots::new(now, run, 0), words));
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn rows_are_cells_by_vectors() {
        use super::super::{line::IN_CELLS, x86};
        if !is_x86_feature_detected!("avx512f") || !is_x86_feature_detected!("avx512vl") {
            return;
        }
        // Cells are in use when these get them, and stay so.
        let stored = |cells: &mut [Cell], enter: &dyn Fn([*mut Cell; 8]) -> bool| {
            cells.iter_mut().for_each(|cell| cell[OTHER] |= IN_CELLS);
            let at = cells.as_mut_ptr();
            let free = enter(std::array::from_fn(|word| at.wrapping_add(word)));
            for cell in cells {
                assert!(cell[OTHER] & IN_CELLS != 0);
                cell[OTHER] &= !IN_CELLS;
            }
            free
        };
        rows_are_cells(|cells, now, run, words| {
            stored(cells, &|[a, b, c, d, e, f, g, h]| {
                let lines = [[a, b, c, d], [e, f, g, h]];
                let mut parts = lines.into_iter().zip([0, 4]);
                parts.all(|(at, from)| {
                    let slots = Slots::new(now, run, from);
                    // SAFETY: these are four cells, and the processor has AVX-512.
                    unsafe { x86::cells(at, now, slots, words >> from & 15) }
                })
            })
        });
        rows_are_cells(|cells, now, run, words| {
            stored(cells, &|at| {
                let slots = Slots::new(now, run, 0);
                let mut words = (0..8).filter(|word| words >> word & 1 != 0);
                // SAFETY: as above.
                words.all(|word| unsafe { x86::cell(at[word as usize], now, slots.slot_of(word)) })
            })
        });
    }
}
