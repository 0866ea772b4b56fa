//! Accesses to consecutive words at once, with the widest vectors of the processor.

use super::cell::{ATOMICS, Now, OTHER, PLAIN, READ};

/// Cells of consecutive words, a slice for each number.
type Rows<'a> = [&'a mut [u64]; 4];

/// Enters an access that is not atomic to whole words, if it races with none. `lanes` has the lane of each word, or 0 where a word is not
/// accessed. False, and nothing is entered, if there is a race.
pub(super) fn enter(rows: Rows<'_>, now: &Now, lanes: &[u64]) -> bool {
    if now.is_atomic() {
        return false;
    }
    #[cfg(target_arch = "x86_64")]
    {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has it.
            return unsafe { enter_avx512(rows, now, lanes) };
        }
        if std::arch::is_x86_feature_detected!("avx2") {
            // SAFETY: the processor has it.
            return unsafe { enter_avx2(rows, now, lanes) };
        }
    }
    enter_any(rows, now, lanes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f")]
fn enter_avx512(rows: Rows<'_>, now: &Now, lanes: &[u64]) -> bool {
    enter_any(rows, now, lanes)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn enter_avx2(rows: Rows<'_>, now: &Now, lanes: &[u64]) -> bool {
    enter_any(rows, now, lanes)
}

#[inline(always)]
fn enter_any(rows: Rows<'_>, now: &Now, lanes: &[u64]) -> bool {
    let n = lanes.len();
    let [plain, atomics, read, other] = rows;
    // One length for all, so that no access in the loops is checked.
    let (plain, atomics) = (&mut plain[..n], &mut atomics[..n]);
    let (read, other) = (&mut read[..n], &mut other[..n]);
    let mut races = false;
    for i in 0..n {
        let mut unordered = now.unordered(plain[i]) | now.unordered(atomics[i]);
        if now.writes {
            unordered |= now.unordered(read[i]) | now.unordered(other[i]);
        }
        races |= unordered & (lanes[i] != 0);
    }
    if races {
        return false;
    }
    let entered = |past: u64, lane: u64| if lane != 0 { now.base | lane } else { past };
    if now.writes {
        for i in 0..n {
            plain[i] = entered(plain[i], lanes[i]);
        }
        return true;
    }
    let moves = |past: u64, lane: u64| (lane != 0) & now.is_other(past);
    let mut moved = false;
    for i in 0..n {
        moved |= moves(read[i], lanes[i]);
    }
    // Memory that is not written takes no room in caches: mostly there is no other reader.
    if moved {
        for i in 0..n {
            other[i] = if moves(read[i], lanes[i]) {
                read[i]
            } else {
                other[i]
            };
        }
    }
    for i in 0..n {
        read[i] = entered(read[i], lanes[i]);
    }
    true
}

// The order of a cell's numbers, which the code above relies on.
const _: () = assert!(PLAIN == 0 && ATOMICS == 1 && READ == 2 && OTHER == 3);

#[cfg(test)]
mod tests {
    use super::super::cell::{Cell, EPOCH, WHOLE, access, base, lane_bits};
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
            let mut planes: [Vec<u64>; 4] =
                std::array::from_fn(|slot| cells.iter().map(|c| c[slot]).collect());
            let before = planes.clone();
            let rows = planes.each_mut().map(Vec::as_mut_slice);
            assert_eq!(enter(rows, &now, &lanes), !race);
            let wanted: [Vec<u64>; 4] =
                std::array::from_fn(|slot| wanted.iter().map(|c| c[slot]).collect());
            assert_eq!(planes, if race { before } else { wanted });
            if race {
                raced += 1;
            } else {
                clean += 1;
            }
        }
        assert!(clean > 300 && raced > 300, "{clean} {raced}");
    }
}
