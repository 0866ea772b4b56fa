//! Counting (`histogram.cl`).

/// Counts of the first `n` values added to `bins`; values beyond the last bin are not counted.
/// Covers `histogram_global`, `histogram_local_array` and `histogram_local_pointer`.
pub fn histogram(bins: &[u32], input: &[u8], n: usize) -> Vec<u32> {
    let mut bins = bins.to_vec();
    for &v in &input[..n] {
        if let Some(bin) = bins.get_mut(usize::from(v)) {
            *bin += 1;
        }
    }
    bins
}

/// The sums of `histogram_local_mixed`: what each group's items read, striding over the input.
pub fn histogram_sums(input: &[u8], n: usize, group: usize, groups: usize) -> Vec<u32> {
    let mut sums = vec![0; groups];
    for (i, &v) in input[..n].iter().enumerate() {
        sums[i / group % groups] += u32::from(v);
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases() {
        assert_eq!(histogram(&[1, 0, 0], &[0, 2, 2, 9, 1], 4), [2, 0, 2]);
        assert_eq!(histogram_sums(&[1, 2, 3, 4, 5], 5, 2, 2), [8, 7]);
    }
}
