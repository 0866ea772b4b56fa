//! Indirect loads and stores (`gather.cl`, `kept.cl`).

/// `gather`, `gather_wide`, and each half of `gather_narrow`.
pub fn gather<T: Copy>(table: &[T], index: &[u32]) -> Vec<T> {
    index.iter().map(|&k| table[k as usize]).collect()
}

pub fn scatter(values: &[u32], permutation: &[u32]) -> Vec<u32> {
    let mut out = vec![0; values.len()];
    for (&v, &at) in values.iter().zip(permutation) {
        out[at as usize] = v;
    }
    out
}

/// `gather4`: the table and the result are float4.
pub fn gather4(table: &[f32], index: &[u32]) -> Vec<f32> {
    index
        .iter()
        .flat_map(|&k| table[k as usize * 4..][..4].iter().copied())
        .collect()
}

pub fn chase(next: &[u32], items: usize, steps: u32) -> Vec<u32> {
    (0..items as u32)
        .map(|i| (0..steps).fold(i, |at, _| next[at as usize]))
        .collect()
}

/// Odd items keep what `out` held.
pub fn gather_odd_masked(out: &[f32], table: &[f32], index: &[u32]) -> Vec<f32> {
    let item = |i: usize| {
        if i.is_multiple_of(2) {
            table[index[i] as usize]
        } else {
            out[i]
        }
    };
    (0..out.len()).map(item).collect()
}

/// Items that are not kept leave `out` alone.
pub fn gather_kept(out: &[f32], table: &[f32], index: &[u32], keep: &[u32]) -> Vec<f32> {
    let item = |i: usize| match keep[i] {
        0 => out[i],
        _ => table[index[i] as usize],
    };
    (0..out.len()).map(item).collect()
}

/// Items that are not kept write nothing.
pub fn scatter_kept(out: &[u32], values: &[u32], permutation: &[u32], keep: &[u32]) -> Vec<u32> {
    let mut out = out.to_vec();
    for i in (0..values.len()).filter(|&i| keep[i] != 0) {
        out[permutation[i] as usize] = values[i];
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases() {
        assert_eq!(gather(&[10u8, 20, 30], &[2, 0, 2]), [30, 10, 30]);
        assert_eq!(scatter(&[7, 8, 9], &[2, 0, 1]), [8, 9, 7]);
        assert_eq!(
            gather4(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], &[1]),
            [4.0, 5.0, 6.0, 7.0]
        );
        assert_eq!(chase(&[1, 2, 0], 3, 4), [1, 2, 0]);
        assert_eq!(gather_odd_masked(&[9.0, 9.0], &[5.0], &[0, 0]), [5.0, 9.0]);
        assert_eq!(
            gather_kept(&[9.0, 9.0], &[5.0], &[0, 0], &[0, 4]),
            [9.0, 5.0]
        );
        assert_eq!(scatter_kept(&[9, 9], &[5, 6], &[1, 0], &[1, 0]), [9, 5]);
    }
}
