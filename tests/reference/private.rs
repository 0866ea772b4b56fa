//! Private arrays, constant tables, generic pointers (`private.cl`): exact.

pub fn private_small(input: &[i32], index: &[i32]) -> Vec<i32> {
    let item = |(&v, &index): (&i32, &i32)| {
        let mut table: [i32; 8] =
            std::array::from_fn(|k| v.wrapping_mul(k as i32 + 1).wrapping_add(k as i32));
        let mut sum = 0i32;
        for k in 0..4 {
            let at = (index >> (3 * k) & 7) as usize;
            sum = sum.wrapping_mul(5).wrapping_add(table[at]);
            table[at] = sum;
        }
        sum
    };
    input.iter().zip(index).map(item).collect()
}

/// `private_large` for the given number of items; `n` is the length of the input.
pub fn private_large(items: usize, input: &[u32]) -> Vec<u32> {
    let n = input.len() as u32;
    let item = |i: u32| {
        let mut table: Vec<u32> = (0..256).map(|k| k ^ i).collect();
        for k in 0..n {
            let a = (input[((i + k) % n) as usize] & 255) as usize;
            let b = (input[((i * 7 + k) % n) as usize] & 255) as usize;
            let old = table[a];
            table[a] = table[b].wrapping_add(1);
            table[b] = old;
        }
        table
            .iter()
            .fold(0u32, |sum, t| sum.wrapping_mul(31).wrapping_add(*t))
    };
    (0..items as u32).map(item).collect()
}

/// `private_bytes`: 64 bytes an item, in and out.
pub fn private_bytes(input: &[u8]) -> Vec<u8> {
    let item = |bytes: &[u8]| -> [u8; 64] {
        let of = |k: usize| bytes.iter().map(move |b| usize::from(b & 63) == k);
        std::array::from_fn(|k| {
            let seen = of(k).filter(|hit| *hit).count() as u8;
            let first = of(k).position(|hit| hit).map_or(0xff, |at| at as u8);
            seen.wrapping_mul(3).wrapping_add(first)
        })
    };
    input.chunks_exact(64).flat_map(item).collect()
}

pub fn constant_table(input: &[u32]) -> Vec<u32> {
    let prime = |n: &u32| (2..*n).all(|d| !n.is_multiple_of(d));
    let primes: Vec<u32> = (2..).filter(prime).take(32).collect();
    let item = |v: &u32| primes[(v & 31) as usize] * primes[(v >> 5 & 31) as usize];
    input.iter().map(item).collect()
}

/// `generic_pointer`: the output, and the input afterwards.
pub fn generic_pointer(input: &[i32]) -> (Vec<i32>, Vec<i32>) {
    let mut after = input.to_vec();
    let mut item = |i: usize| {
        let v = input[i];
        let value = match i % 3 {
            0 => i as i32 * (2 * (v & 3) + 1) + 1,
            1 => v + 1001,
            _ => {
                after[i] += 1;
                after[i]
            }
        };
        value * 2
    };
    let out = (0..input.len()).map(&mut item).collect();
    (out, after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases() {
        assert_eq!(constant_table(&[0, 31, 33]), [4, 262, 9]);
        assert_eq!(
            generic_pointer(&[2, 5, 7, 1]),
            (vec![2, 2012, 16, 20], vec![2, 5, 8, 1])
        );
        let mut bytes = [1u8; 64];
        bytes[0] = 64;
        let out = private_bytes(&bytes);
        assert_eq!(out[..3], [3, 190, 255]);
        // table is 1, 3, 5..; entry 0 is read twice: 1, then 5 * 1 + 1, then entry 1 twice.
        assert_eq!(private_small(&[1], &[0o1100]), [((5 + 1) * 5 + 3) * 5 + 33]);
    }

    #[test]
    fn large_table_by_hand() {
        // One item, indices all 5: entry 5 is read as both, raised, then overwritten by its old value.
        let identity = private_large(1, &[]);
        assert_eq!(private_large(1, &[5]), identity);
    }
}
