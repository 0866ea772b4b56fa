//! Integer division (`divide.cl`): truncating, the remainder has the sign of the dividend.

use super::integer::Integer;

/// `divide_T`: quotients and remainders.
pub fn divide<T: Integer>(x: &[T], y: &[T]) -> (Vec<T>, Vec<T>) {
    let pairs = || x.iter().zip(y).map(|(a, b)| (a.wide(), b.wide()));
    (
        pairs().map(|(a, b)| T::wrap(a / b)).collect(),
        pairs().map(|(a, b)| T::wrap(a % b)).collect(),
    )
}

/// `divide_constant_T`: quotient and remainder by 7, 10 and 64.
pub fn divide_constant<T: Integer>(input: &[T]) -> Vec<T> {
    let item = |v: &T| [7, 10, 64].map(|d| [T::wrap(v.wide() / d), T::wrap(v.wide() % d)]);
    input.iter().flat_map(item).flatten().collect()
}

pub fn divide_uniform(input: &[i32], divisor: i32, unsigned: u32) -> Vec<i32> {
    input
        .iter()
        .flat_map(|&v| [v.wrapping_div(divisor), (v as u32 % unsigned) as i32])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn truncates_towards_zero() {
        assert_eq!(
            divide(&[-7i8, 7, -128], &[2, -2, 3]),
            (vec![-3, -3, -42], vec![-1, 1, -2])
        );
        assert_eq!(
            divide_constant(&[u64::MAX])[..2],
            [u64::MAX / 7, u64::MAX % 7]
        );
        assert_eq!(
            divide_uniform(&[-10], 3, 7),
            [-3, ((-10i32) as u32 % 7) as i32]
        );
    }
}
