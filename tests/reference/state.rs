//! Variables at program scope (`global_state.cl`).

/// `global_count`: the output.
pub fn global_count(input: &[f32]) -> Vec<f32> {
    input.iter().map(|v| v * 2.5).collect()
}

/// `global_read` after `global_count` has run once for each of `counted`, on `items` items.
pub fn global_read(items: usize, counted: &[usize]) -> Vec<i32> {
    let raised = |cell: usize| counted.iter().map(|n| (n + 3 - cell) / 4).sum::<usize>();
    let cells: [i32; 4] = std::array::from_fn(|k| (10 * (k + 1) + raised(k)) as i32);
    (0..items).map(|i| cells[i % 4]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts() {
        assert_eq!(global_count(&[2.0]), [5.0]);
        assert_eq!(global_read(5, &[]), [10, 20, 30, 40, 10]);
        assert_eq!(global_read(4, &[6, 1]), [13, 22, 31, 41]);
    }
}
