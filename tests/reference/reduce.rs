//! Work-group reductions (`reduction.cl`).

/// Sums of each group, halving the active items each step as the kernels do: exact for floats.
pub fn tree_sums<T: Copy + std::ops::Add<Output = T>>(input: &[T], group: usize) -> Vec<T> {
    let sum = |slice: &[T]| {
        let mut tile = slice.to_vec();
        while tile.len() > 1 {
            let half = tile.len() / 2;
            tile = (0..half).map(|i| tile[i] + tile[i + half]).collect();
        }
        tile[0]
    };
    input.chunks_exact(group).map(sum).collect()
}

pub fn reduce_sum(input: &[f32], group: usize) -> Vec<f32> {
    tree_sums(input, group)
}

/// `reduce_sum_fixed`: groups of 64 stride over the first `n` values.
pub fn reduce_sum_fixed(input: &[i32], groups: usize, n: usize) -> Vec<i32> {
    let mut sums = vec![0i32; groups];
    for (i, v) in input[..n].iter().enumerate() {
        let sum = &mut sums[i / 64 % groups];
        *sum = sum.wrapping_add(*v);
    }
    sums
}

/// `reduce_argmax`: global index and value of each group's first largest element.
pub fn reduce_argmax(input: &[i32], group: usize) -> (Vec<u32>, Vec<i32>) {
    let best = |(g, slice): (usize, &[i32])| {
        let value = *slice.iter().max().unwrap();
        let at = slice.iter().position(|&v| v == value).unwrap();
        ((g * group + at) as u32, value)
    };
    input.chunks_exact(group).enumerate().map(best).unzip()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases() {
        assert_eq!(reduce_sum(&[1.0, 2.0, 3.0, 4.0], 2), [3.0, 7.0]);
        assert_eq!(reduce_sum_fixed(&[1; 200], 2, 193), [128, 65]);
        assert_eq!(
            reduce_argmax(&[1, 5, 5, 2, -3, -4, -3, -9], 4),
            (vec![1, 4], vec![5, -3])
        );
    }
}
