//! Functions that are not inlined (`call.cl`, also built with stack calls): exact.

fn step_once(v: i32, k: i32) -> i32 {
    let round = |r: i32, _| r.wrapping_mul(3).wrapping_add(k);
    (0..(v & 3) + 1).fold(v, round) ^ v >> 3
}

fn blend(a: f32, b: f32, t: f32) -> f32 {
    if t < 0.5 {
        (b - a).mul_add(t, a)
    } else {
        (a - b).mul_add(1.0 - t, b)
    }
}

pub fn call_simple(input: &[i32]) -> Vec<i32> {
    let item = |&v: &i32| {
        let v = step_once(v, 5);
        if v & 1 == 1 { step_once(v, 11) } else { v }
    };
    input.iter().map(item).collect()
}

/// Two words an item.
pub fn call_nested(input: &[i32]) -> Vec<i32> {
    let item = |(i, &v): (usize, &i32)| {
        let v = (0..(i & 3) as i32).fold(v, step_once);
        [v, step_once(v, 7)]
    };
    input.iter().enumerate().flat_map(item).collect()
}

pub fn call_float(x: &[f32], y: &[f32]) -> Vec<f32> {
    let item = |i: usize| {
        let v = blend(x[i], y[i], (i & 15) as f32 / 16.0);
        if v > 0.0 { blend(v, x[i], 0.25) } else { v }
    };
    (0..x.len()).map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases() {
        assert_eq!(step_once(1, 5), (3 + 5) * 3 + 5);
        assert_eq!(call_simple(&[0]), [step_once(5, 11)]);
        assert_eq!(call_nested(&[8, 8]), [8, 30, 25, 254]);
        assert_eq!(call_float(&[-4.0], &[8.0]), [-4.0]);
    }
}
