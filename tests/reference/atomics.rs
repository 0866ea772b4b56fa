//! Atomic operations (`atomics.cl`).

use super::integer::Integer;

/// `atomics_shared`: final cells, from their values before.
pub fn atomics_shared(cells: &[u32; 8], input: &[u32]) -> [u32; 8] {
    let mut c = *cells;
    for &v in input {
        c[0] = c[0].wrapping_add(v);
        c[1] = c[1].wrapping_sub(v);
        c[2] = c[2].wrapping_add(1);
        c[3] = c[3].wrapping_sub(1);
        c[4] &= v | 0xffff_0000;
        c[5] |= v & 0xffff;
        c[6] ^= v;
        c[7] = c[7].wrapping_add(v & 15);
    }
    c
}

/// `atomics_shared_signed`: min and max, signed, then of the same bits unsigned.
pub fn atomics_shared_signed(cells: &[i32; 4], input: &[i32]) -> [i32; 4] {
    let mut c = *cells;
    for &v in input {
        c[0] = c[0].min(v);
        c[1] = c[1].max(v);
        c[2] = (c[2] as u32).min(v as u32) as i32;
        c[3] = (c[3] as u32).max(v as u32) as i32;
    }
    c
}

/// `atomics_shared_long`: add, min, max, xor.
pub fn atomics_shared_long(cells: &[u64; 4], input: &[u64]) -> [u64; 4] {
    let mut c = *cells;
    for &v in input {
        c = [c[0].wrapping_add(v), c[1].min(v), c[2].max(v), c[3] ^ v];
    }
    c
}

/// `atomics_exchange`: whether every ticket, and every cell's first value, is found exactly once
/// among what items got and what the cells hold in the end.
pub fn exchange_conserves(
    before: &[u32; 4],
    after: &[u32; 4],
    got: &[u32],
    tickets: &[u32],
) -> bool {
    let of_cell = |cell: usize, all: &[u32], extra: u32| {
        let mut values: Vec<u32> = all.iter().copied().skip(cell).step_by(4).collect();
        values.push(extra);
        values.sort_unstable();
        values
    };
    (0..4).all(|cell| of_cell(cell, tickets, before[cell]) == of_cell(cell, got, after[cell]))
}

/// `atomics_own` and `atomics_own_long`: cells afterwards and old values, 12 an item. An old value
/// is what the cell held before.
pub fn atomics_own<T: Integer>(cells: &[T], input: &[T]) -> (Vec<T>, Vec<T>) {
    let item = |i: usize| own_item(&cells[i * 12..][..12], i as i128, input[i].wide());
    ((0..input.len()).flat_map(item).collect(), cells.to_vec())
}

fn own_item<T: Integer>(cells: &[T], i: i128, v: i128) -> [T; 12] {
    let c = |k: usize| cells[k].wide();
    let exchanged = |k: usize, expected: i128| if c(k) == expected { v } else { c(k) };
    let after = [
        c(0) + v,
        c(1) - v,
        v,
        c(3) + 1,
        c(4) - 1,
        exchanged(5, i),
        exchanged(6, !i),
        c(7) & v,
        c(8) | v,
        c(9) ^ v,
        c(10).min(v),
        c(11).max(v),
    ];
    after.map(T::wrap)
}

/// `atomics_local`: ten words a group.
pub fn atomics_local(input: &[i32], group: usize) -> Vec<i32> {
    let start = [0, 0, 0, 0, -1, 0, 0, i32::MAX, i32::MIN, 0];
    let cells = |slice: &[i32]| slice.iter().fold(start, |c, &v| local_step(c, v));
    input.chunks(group).flat_map(cells).collect()
}

fn local_step(c: [i32; 10], v: i32) -> [i32; 10] {
    [
        c[0].wrapping_add(v),
        c[1].wrapping_sub(v),
        c[2] + 1,
        c[3] - 1,
        c[4] & v,
        c[5] | v,
        c[6] ^ v,
        c[7].min(v),
        c[8].max(v),
        c[9].wrapping_add(v & 15),
    ]
}

/// `atomics_local_own`: three old values and the last one.
pub fn atomics_local_own(input: &[u32], group: usize) -> Vec<u32> {
    let item = |(i, &v): (usize, &u32)| {
        let lid = (i % group) as u32;
        [lid, lid.wrapping_add(v), v ^ 0x1234, v.wrapping_add(9)]
    };
    input.iter().enumerate().flat_map(item).collect()
}

/// `atomics_ordered`: the counters afterwards, and the filled slots in ascending order.
pub fn atomics_ordered(counters: [i32; 2], input: &[i32]) -> ([i32; 2], Vec<i32>) {
    let mut slots: Vec<i32> = input.iter().copied().filter(|&v| v > 0).collect();
    slots.sort_unstable();
    let largest = input.iter().copied().fold(counters[1], i32::max);
    ([counters[0] + slots.len() as i32, largest], slots)
}

/// `atomics_float`: sum and maximum; exact for small whole numbers.
pub fn atomics_float(cells: [f32; 2], input: &[f32]) -> [f32; 2] {
    input.iter().fold(cells, |c, &v| [c[0] + v, c[1].max(v)])
}

/// `add_shared_*`, and each group of `add_local_*`: sum, difference, least, greatest; exact for small whole numbers.
pub fn add_shared(cells: [f64; 4], input: &[f64]) -> [f64; 4] {
    let step = |[sum, difference, least, greatest]: [f64; 4], &v: &f64| {
        [sum + v, difference - v, least.min(v), greatest.max(v)]
    };
    input.iter().fold(cells, step)
}

/// `add_local_*`.
pub fn add_local(input: &[f64], group: usize) -> Vec<f64> {
    let groups = input.chunks(group);
    groups
        .flat_map(|chunk| add_shared([0.0, 3.0, 6.0, 9.0], chunk))
        .collect()
}

/// `add_own_*`: the cells afterwards.
pub fn add_own(cells: &[f64], input: &[f64]) -> Vec<f64> {
    let pairs = cells.chunks(2).zip(input);
    pairs.flat_map(|(c, v)| [c[0] + v, c[1] - v]).collect()
}

/// `min_max_shared_*`, and each group of `min_max_local_*`: least and greatest.
pub fn min_max_shared(cells: [f64; 2], input: &[f64]) -> [f64; 2] {
    input.iter().fold(cells, |c, &v| [c[0].min(v), c[1].max(v)])
}

/// `min_max_local_*`.
pub fn min_max_local(input: &[f64], group: usize) -> Vec<f64> {
    let groups = input.chunks(group);
    groups
        .flat_map(|chunk| min_max_shared([0.0, 3.0], chunk))
        .collect()
}

/// `min_max_own_*`: the cells afterwards.
pub fn min_max_own(cells: &[f64], input: &[f64]) -> Vec<f64> {
    let fours = cells.chunks(4).zip(input);
    fours
        .flat_map(|(c, &v)| [v, v, c[2].min(v), c[3].max(v)])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_cells() {
        let c = atomics_shared(&[0, 0, 0, 0, u32::MAX, 0, 0, 0], &[3, 0x1_0011]);
        assert_eq!(
            c,
            [
                0x1_0014,
                0xfffe_ffec,
                2,
                0xffff_fffe,
                0xffff_0001,
                0x13,
                0x1_0012,
                4
            ]
        );
        assert_eq!(atomics_shared_signed(&[0; 4], &[-1, 5]), [-1, 5, 0, -1]);
        assert_eq!(atomics_shared_long(&[1, 9, 1, 0], &[5, 6]), [12, 5, 6, 3]);
    }

    #[test]
    fn own_cells() {
        let cells = [0i32; 12];
        let (after, old) = atomics_own(&cells, &[-7]);
        assert_eq!(after, [-7, 7, -7, 1, -1, -7, 0, 0, -7, -7, -7, 0]);
        assert_eq!(old, cells);
        assert_eq!(atomics_local_own(&[5, 6], 2)[4..], [1, 7, 6 ^ 0x1234, 15]);
        assert_eq!(atomics_local(&[1, 2], 2), [3, -3, 2, -2, 0, 3, 3, 1, 2, 3]);
    }

    #[test]
    fn exchange_is_checked() {
        let tickets = [10, 11, 12, 13, 20];
        assert!(exchange_conserves(
            &[0, 1, 2, 3],
            &[20, 11, 12, 13],
            &[0, 1, 2, 3, 10],
            &tickets
        ));
        assert!(exchange_conserves(
            &[0, 1, 2, 3],
            &[10, 11, 12, 13],
            &[20, 1, 2, 3, 0],
            &tickets
        ));
        assert!(!exchange_conserves(
            &[0, 1, 2, 3],
            &[20, 11, 12, 13],
            &[0, 1, 2, 3, 0],
            &tickets
        ));
        assert_eq!(atomics_ordered([5, 0], &[3, -1, 2]), ([7, 3], vec![2, 3]));
        assert_eq!(atomics_float([1.0, 1.0], &[2.0, -3.0]), [0.0, 2.0]);
    }
}
