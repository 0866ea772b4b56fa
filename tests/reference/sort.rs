//! Sorting (`bitonic.cl`, `private_sort`).

/// All steps of `bitonic_step` together.
pub fn sorted<T: Copy + Ord>(data: &[T]) -> Vec<T> {
    let mut data = data.to_vec();
    data.sort_unstable();
    data
}

/// One launch of `bitonic_step`.
pub fn bitonic_step(data: &[u32], j: usize, k: usize) -> Vec<u32> {
    let mut data = data.to_vec();
    for i in 0..data.len() {
        let partner = i ^ j;
        if partner > i && (data[i] > data[partner]) == (i & k == 0) {
            data.swap(i, partner);
        }
    }
    data
}

/// `bitonic_group` with slices of the local size, `private_sort` with slices of 32.
pub fn sorted_slices(data: &[i32], slice: usize) -> Vec<i32> {
    data.chunks(slice).flat_map(sorted).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use visa_test_common::Rng;

    #[test]
    fn all_steps_sort() {
        let data = Rng::new(5).words(256);
        let mut now = data.clone();
        let mut k = 2;
        while k <= data.len() {
            let mut j = k / 2;
            while j > 0 {
                now = bitonic_step(&now, j, k);
                j /= 2;
            }
            k *= 2;
        }
        assert_eq!(now, sorted(&data));
        assert_eq!(sorted_slices(&[3, 1, 2, 9, 8], 3), [1, 2, 3, 8, 9]);
    }
}
