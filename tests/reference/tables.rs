//! Tables at program scope (`tables.cl`).

/// `table_read`.
pub fn table_read(input: &[u32]) -> Vec<u32> {
    let item = |&v: &u32| {
        let half = (v % 4) as f32 + 0.5;
        let letter = b"program scope"[(v % 13) as usize];
        [
            (v % 16).pow(2),
            2 * (v % 8) + 1,
            half.to_bits(),
            u32::from(letter),
        ]
    };
    input.iter().flat_map(item).collect()
}

/// `table_walk`.
pub fn table_walk(steps: &[i32]) -> Vec<i32> {
    let item = |&n: &i32| {
        let cell = [33, 200, 11][n as usize % 3];
        let place = [36, 4][n as usize % 2];
        [100 * (n.min(2) + 1), cell, place]
    };
    steps.iter().flat_map(item).collect()
}

/// `table_sums` after `table_count` on each of `counted`, with `base` at that time.
pub fn table_sums(counted: &[(u32, &[u32])]) -> Vec<u32> {
    let mut sums = vec![0_u32; 4];
    for (base, values) in counted {
        for v in *values {
            let cell = &mut sums[(v & 3) as usize];
            *cell = cell.wrapping_add(v.wrapping_add(*base));
        }
    }
    sums
}
