//! Pointers of every kind (`pointers.cl`).

/// `generic_both` in groups of `local`: the output and what becomes of the input.
pub fn generic_both(input: &[i32], local: usize) -> (Vec<i32>, Vec<i32>) {
    let mut after = input.to_vec();
    let item = |(i, v): (usize, &mut i32)| {
        let cell = 1000 + (i % local) as i32;
        if *v & 1 != 0 {
            return [cell, cell + 7];
        }
        let old = *v;
        *v = old.wrapping_add(7);
        [old, cell]
    };
    let out = after.iter_mut().enumerate().flat_map(item).collect();
    (out, after)
}

/// `chase_sum` after `chase_link`.
pub fn chase_sum(next: &[u32], steps: &[u32]) -> Vec<i32> {
    let walk = |i: usize| {
        let mut at = i;
        (0..steps[i]).fold(0_i32, |sum, _| {
            let value = 3 * at as i32 + 1;
            at = next[at] as usize;
            sum.wrapping_add(value)
        })
    };
    (0..next.len()).map(walk).collect()
}

/// `arrays`: bytes and words.
pub fn arrays(a: &[i8], b: &[i16], permutation: &[u32]) -> (Vec<u8>, Vec<u16>) {
    let (mut bytes, mut words) = (vec![0; a.len()], vec![0; a.len()]);
    for (i, &to) in permutation.iter().enumerate() {
        let word = b[i].wrapping_mul(3).cast_unsigned();
        let byte = a[i].cast_unsigned() ^ 0x55;
        let more = if i % 3 == 0 { word as u8 } else { 0 };
        bytes[to as usize] = byte.wrapping_add(more);
        words[to as usize] = word;
    }
    (bytes, words)
}

/// `group_copy` in groups of `local`.
pub fn group_copy(input: &[f32], local: usize) -> Vec<f32> {
    let group = |g: &[f32]| g.iter().rev().map(|v| 2.0 * v).collect::<Vec<_>>();
    input.chunks(local).flat_map(group).collect()
}

/// `group_copy_strided` on `items` items.
pub fn group_copy_strided(input: &[u32], stride: usize, items: usize) -> Vec<u32> {
    (0..items).map(|i| input[i * stride] + 1).collect()
}
