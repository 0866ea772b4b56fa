//! Accesses to consecutive words at once.

use super::cell::{ATOMICS, Cell, Now, OTHER, PLAIN, READ};

/// Enters an access that is not atomic to whole words, if it races with none. `lanes` has the lane of each word, or 0 where a word is not
/// accessed. False, and nothing is entered, if there is a race.
#[inline(always)]
pub(super) fn enter(cells: &mut [Cell], now: &Now, lanes: &[u64]) -> bool {
    if now.is_atomic() {
        return false;
    }
    // Without branches, for vectors.
    let mut races = false;
    for (cell, &lane) in cells.iter().zip(lanes) {
        let reads = now.unordered(cell[READ]) | now.unordered(cell[OTHER]);
        let writes = now.unordered(cell[PLAIN]) | now.unordered(cell[ATOMICS]);
        races |= (lane != 0) & (writes | (now.writes & reads));
    }
    if races {
        return false;
    }
    for (cell, &lane) in cells.iter_mut().zip(lanes) {
        if lane == 0 {
            continue;
        }
        let slot = now.base | lane;
        if now.writes {
            cell[PLAIN] = slot;
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
    use super::*;
    use visa_test_common::Rng;

    /// Entering words at once is entering them one by one, from whatever is known before.
    #[test]
    fn rows_are_cells() {
        let mut rng = Rng::new(7);
        let (mut clean, mut raced) = (0, 0);
        for _ in 0..3000 {
            let now = Now {
                base: base(9, 2, 5, false),
                floor: 5 << EPOCH,
                group: 8 << EPOCH,
                epoch: 9 << EPOCH,
                writes: rng.below(2) == 1,
            };
            let mut past = || match rng.below(3) {
                0 => 0,
                _ => {
                    let slot = base(
                        [3, 4, 8, 8, 9, 9, 6][rng.below(7)],
                        rng.below(3) as u32 + 1,
                        6,
                        false,
                    );
                    // Mostly nothing that races.
                    let old = base(4, 1, 6, false);
                    (if rng.below(12) == 0 { slot } else { old }) | lane_bits(rng.below(32) as u32)
                }
            };
            let cells: Vec<Cell> = (0..19).map(|_| std::array::from_fn(|_| past())).collect();
            let lanes: Vec<u64> = (0..19)
                .map(|i| if rng.below(4) == 0 { 0 } else { lane_bits(i) })
                .collect();
            let mut wanted = cells.clone();
            let mut race = false;
            for (i, cell) in wanted.iter_mut().enumerate() {
                if lanes[i] != 0 {
                    race |= access(cell, &now, i as u32, WHOLE).is_some();
                }
            }
            let mut entered = cells.clone();
            assert_eq!(enter(&mut entered, &now, &lanes), !race);
            assert_eq!(entered, if race { cells } else { wanted });
            if race {
                raced += 1;
            } else {
                clean += 1;
            }
        }
        assert!(clean > 300 && raced > 300, "{clean} {raced}");
    }
}
