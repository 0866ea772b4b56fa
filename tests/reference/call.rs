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

/// Of a launch in two dimensions whose groups are all of one size, x fastest.
pub fn call_ids(input: &[i32], global: [u32; 2], local: [u32; 2], offset: [u32; 2]) -> Vec<i32> {
    let weigh = |a: i32, b: i32| a.wrapping_mul(31).wrapping_add(b);
    let dimensions = if global[1] > 1 { 2 } else { 1 };
    let here = |x: u32, y: u32| {
        let facts = [
            x + offset[0],
            y + offset[1],
            x % local[0],
            y % local[1],
            x / local[0],
            y / local[1],
            global[0],
            local[0],
            local[0],
            global[1] / local[1],
            offset[0],
            dimensions,
        ];
        let facts = facts.map(|fact| fact as i32);
        facts.into_iter().reduce(weigh).unwrap_or(0)
    };
    let item = |(i, &v): (usize, &i32)| {
        let (x, y) = (i as u32 % global[0], i as u32 / global[0]);
        (1..=v & 3).fold(here(x, y), weigh)
    };
    input.iter().enumerate().map(item).collect()
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
