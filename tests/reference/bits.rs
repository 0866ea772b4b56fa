//! Bit operations (`bits.cl`).

use super::integer::Integer;

/// `bits_T`: 10 results an item.
pub fn bits<T: Integer>(x: &[T], y: &[T], z: &[T]) -> Vec<T> {
    (0..x.len()).flat_map(|i| item(x[i], y[i], z[i])).collect()
}

fn item<T: Integer>(a: T, b: T, c: T) -> [T; 10] {
    let (p, q) = (a.wide(), b.wide());
    let raw = a.raw();
    let high = multiply_high(a, b);
    let turn = (b.raw() as u32) & (T::BITS - 1);
    let turned = raw << turn | raw >> (T::BITS - turn);
    [
        T::wrap(i128::from(raw.count_ones())),
        T::wrap(i128::from(raw.leading_zeros() - (128 - T::BITS))),
        T::wrap(turned as i128),
        T::wrap((p & !c.wide()) | (q & c.wide())),
        T::wrap((p + q) >> 1),
        T::wrap((p + q + 1) >> 1),
        T::wrap(high),
        T::wrap(high + c.wide()),
        T::wrap(p & (p - 1)),
        T::wrap(p & -p),
    ]
}

fn multiply_high<T: Integer>(a: T, b: T) -> i128 {
    if T::SIGNED {
        (a.wide() * b.wide()) >> T::BITS
    } else {
        ((a.raw() * b.raw()) >> T::BITS) as i128
    }
}

/// `bits_upsample`: 8, 16 and 32 bits unsigned, then signed (sign-extended to 64 bits).
pub fn bits_upsample(x: &[u64], y: &[u64]) -> Vec<u64> {
    let item = |i: usize| {
        let (a, b) = (x[i], y[i]);
        let join = |n: u32| {
            let mask = (1u64 << n) - 1;
            (a & mask) << n | b & mask
        };
        let extend = |n: u32| ((join(n) << (64 - 2 * n)) as i64 >> (64 - 2 * n)) as u64;
        [
            join(8),
            join(16),
            join(32),
            extend(8),
            extend(16),
            extend(32),
        ]
    };
    (0..x.len()).flat_map(item).collect()
}

/// `bits_multiply`: mul24, mad24, mad_sat, reversed bits.
pub fn bits_multiply(x: &[i32], y: &[i32], z: &[i32]) -> Vec<i32> {
    let item = |i: usize| {
        let (a, b) = (x[i] << 8 >> 8, y[i] << 8 >> 8);
        let product = a.wrapping_mul(b);
        let exact = i128::from(x[i]) * i128::from(y[i]) + i128::from(z[i]);
        [
            product,
            product.wrapping_add(z[i]),
            i32::saturate(exact),
            x[i].reverse_bits(),
        ]
    };
    (0..x.len()).flat_map(item).collect()
}

/// `bits_reinterpret`: bytes reversed, 16-bit halves swapped, biased exponent.
pub fn bits_reinterpret(input: &[f32]) -> Vec<u32> {
    let item = |v: &f32| {
        let u = v.to_bits();
        [u.swap_bytes(), u.rotate_left(16), u >> 23 & 0xff]
    };
    input.iter().flat_map(item).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_by_hand() {
        assert_eq!(
            bits(&[0x91u8], &[4], &[0x0f]),
            [3, 0, 0x19, 0x94, 0x4a, 0x4b, 2, 0x11, 0x90, 1]
        );
        assert_eq!(
            bits(&[-2i8], &[127], &[1]),
            [7, 0, 127, -1, 62, 63, -1, 0, -4, 2]
        );
        assert_eq!(bits(&[0i8], &[-1], &[0])[1], 8);
    }

    #[test]
    fn wide_products() {
        assert_eq!(
            bits(&[u64::MAX], &[u64::MAX], &[5])[6..8],
            [u64::MAX - 1, 3]
        );
        assert_eq!(bits(&[i64::MIN], &[i64::MIN], &[0])[6], 1 << 62);
    }

    #[test]
    fn upsample_and_multiply() {
        assert_eq!(
            bits_upsample(&[0x81], &[0x02])[..4],
            [0x8102, 0x0081_0002, 0x81_0000_0002, 0xffff_ffff_ffff_8102]
        );
        assert_eq!(
            bits_multiply(&[0x7fff_ffff], &[2], &[1]),
            [-2, -1, i32::MAX, -2]
        );
        assert_eq!(bits_reinterpret(&[1.0]), [0x803f, 0x3f80, 127]);
    }
}
