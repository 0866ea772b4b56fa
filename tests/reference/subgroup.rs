//! Sub-group functions (`subgroup.cl`). Sub-groups are 16 consecutive items of a work-group; the
//! local size is a multiple of 16, so chunks of the whole input are the sub-groups.

use super::integer::Integer;

const WIDTH: usize = 16;

/// `subgroup_ids`, for one-dimensional groups: `simd` is the kernel's width from its `.ze_info`.
pub fn subgroup_ids(items: usize, local: usize, simd: usize) -> Vec<u32> {
    let item = |i: usize| {
        let lid = i % local;
        let size = simd.min(local - lid / simd * simd);
        let count = local.div_ceil(simd);
        [size, simd, count, lid / simd, lid % simd, count].map(|v| v as u32)
    };
    (0..items).flat_map(item).collect()
}

/// `subgroup_reduce`: sum, min, max, inclusive and exclusive sum, running max, running min.
pub fn subgroup_reduce(input: &[i32]) -> Vec<i32> {
    let sum = |s: &[i32]| s.iter().fold(0i32, |a, v| a.wrapping_add(*v));
    let item = |s: &[i32], i: usize| {
        let (all, upto) = (s.iter(), s[..=i].iter());
        [
            sum(s),
            *all.clone().min().unwrap(),
            *all.max().unwrap(),
            sum(&s[..=i]),
            sum(&s[..i]),
            *upto.clone().max().unwrap(),
            *upto.min().unwrap(),
        ]
    };
    input
        .chunks(WIDTH)
        .flat_map(|s| (0..s.len()).flat_map(move |i| item(s, i)))
        .collect()
}

fn spread<T: Copy, U: Copy>(input: &[T], reduce: impl Fn(&[T]) -> U) -> Vec<U> {
    input
        .chunks(WIDTH)
        .flat_map(|s| vec![reduce(s); s.len()])
        .collect()
}

/// `subgroup_reduce_float`: sums, minima, maxima; inputs are small whole numbers.
pub fn subgroup_reduce_float(input: &[f32]) -> [Vec<f32>; 3] {
    [
        spread(input, |s| s.iter().sum()),
        spread(input, |s| s.iter().copied().fold(f32::INFINITY, f32::min)),
        spread(input, |s| {
            s.iter().copied().fold(f32::NEG_INFINITY, f32::max)
        }),
    ]
}

/// `subgroup_reduce_long`: sums, and maxima of the values taken as unsigned.
pub fn subgroup_reduce_long(input: &[i64]) -> (Vec<i64>, Vec<u64>) {
    let sums = spread(input, |s| i64::wrap(s.iter().map(|v| v.wide()).sum()));
    (
        sums,
        spread(input, |s| s.iter().map(|v| *v as u64).max().unwrap()),
    )
}

/// `subgroup_shuffle`: five words an item.
pub fn subgroup_shuffle(input: &[u32], index: &[u32], lane: usize) -> Vec<u32> {
    let item = |i: usize| {
        let (base, l) = (i / WIDTH * WIDTH, i % WIDTH);
        let at = |l: usize| input[base + l % WIDTH];
        let down = at(l + 3).wrapping_add(u32::from(l + 3 >= WIDTH));
        let up = at(l + WIDTH - 3).wrapping_add(if l < 3 { 2 } else { 0 });
        [
            at(index[i] as usize & 15),
            at(l ^ 5),
            down,
            up,
            at(lane & 15),
        ]
    };
    (0..input.len()).flat_map(item).collect()
}

pub fn subgroup_shuffle_wide(input: &[u64], index: &[u32]) -> Vec<u64> {
    (0..input.len())
        .map(|i| input[i / WIDTH * WIDTH + (index[i] as usize & 15)])
        .collect()
}

/// `subgroup_vote`: any, all.
pub fn subgroup_vote(input: &[i32]) -> [Vec<i32>; 2] {
    [
        spread(input, |s| i32::from(s.iter().any(|&v| v > 0))),
        spread(input, |s| i32::from(s.iter().all(|&v| v > 0))),
    ]
}

/// `subgroup_block`: blocks of 32 reversed; the input has two words an item.
pub fn subgroup_block(input: &[u32]) -> Vec<u32> {
    input
        .chunks(2 * WIDTH)
        .flat_map(|b| b.iter().rev().copied())
        .collect()
}

/// `subgroup_divergent`: positive items get the sum of the positive items.
pub fn subgroup_divergent(input: &[i32]) -> Vec<i32> {
    let sums = spread(input, |s| {
        s.iter()
            .filter(|v| **v > 0)
            .fold(0i32, |a, v| a.wrapping_add(*v))
    });
    input
        .iter()
        .zip(sums)
        .map(|(&v, sum)| if v > 0 { sum } else { -1 })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_move_lanes() {
        let input: Vec<u32> = (100..116).collect();
        let out = subgroup_shuffle(&input, &[2; 16], 7);
        assert_eq!(out[..5], [102, 105, 103, 115, 107]);
        assert_eq!(out[15 * 5..], [102, 110, 103, 112, 107]);
        assert_eq!(subgroup_block(&(0..32).collect::<Vec<_>>())[0], 31);
    }

    #[test]
    fn reductions() {
        let input: Vec<i32> = (0..16).collect();
        assert_eq!(subgroup_reduce(&input)[7..14], [120, 0, 15, 1, 0, 1, 0]);
        assert_eq!(subgroup_divergent(&input)[..2], [-1, 120]);
        assert_eq!(subgroup_ids(40, 40, 16)[32 * 6..][..6], [8, 16, 3, 2, 0, 3]);
    }
}
