//! Switches (`switch.cl`): exact.

fn zip(a: &[i32], b: &[i32], f: impl Fn(i32, i32) -> i32) -> Vec<i32> {
    a.iter().zip(b).map(|(&a, &b)| f(a, b)).collect()
}

pub fn switch_dense(selector: &[i32], input: &[i32]) -> Vec<i32> {
    zip(selector, input, |s, v| match s {
        0 => v.wrapping_add(1),
        1 => v.wrapping_mul(3),
        2 => v.wrapping_sub(7),
        3 => v ^ 0x55,
        4 => v << 2,
        5 => v >> 1,
        6 => v.wrapping_neg(),
        7 => !v,
        8 => v.wrapping_mul(v),
        9 => v % 10,
        _ => 0,
    })
}

pub fn switch_sparse(selector: &[i32], input: &[i32]) -> Vec<i32> {
    let add = |s| match s {
        -1_000_000 => 1,
        -3 => 20,
        17 => 300,
        4096 => 4000,
        i32::MAX => 50000,
        _ => 0,
    };
    zip(selector, input, |s, v| v.wrapping_add(add(s)))
}

pub fn switch_fallthrough(selector: &[i32]) -> Vec<i32> {
    let value = |s: &i32| match s & 7 {
        0 => 111,
        1 => 110,
        2 => 100,
        3 => 100_000,
        5 => 111_000,
        _ => 110_000,
    };
    selector.iter().map(value).collect()
}

/// `out` is what the buffer held before.
pub fn switch_uniform(out: &[i32], input: &[i32], selector: i32) -> Vec<i32> {
    let item = |i: usize| {
        let (v, old) = (input[i], out[i]);
        match selector {
            0 => v.wrapping_add(1),
            1 => (0..v & 7).fold(old, i32::wrapping_add),
            2 => v.wrapping_abs(),
            3 if v & 1 == 1 => 3,
            3 | 6 => old,
            4 => v / 3,
            5 => v.wrapping_mul(v) ^ i as i32,
            _ => selector,
        }
    };
    (0..out.len()).map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases() {
        assert_eq!(switch_dense(&[6, 9, 42], &[5, -13, 1]), [-5, -3, 0]);
        assert_eq!(switch_sparse(&[17, 18], &[1, 1]), [301, 1]);
        assert_eq!(switch_fallthrough(&[0, 5, 4]), [111, 111_000, 110_000]);
        assert_eq!(switch_uniform(&[10, 10], &[3, 8], 1), [13, 10]);
        assert_eq!(switch_uniform(&[10, 10], &[3, 8], 3), [3, 10]);
    }
}
