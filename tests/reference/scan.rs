//! Work-group scans and votes (`scan.cl`); `group` is the local size.

fn each_group<T, U>(input: &[T], group: usize, scan: impl Fn(&[T]) -> Vec<U>) -> Vec<U> {
    input.chunks(group).flat_map(scan).collect()
}

pub fn scan_inclusive(input: &[i32], group: usize) -> Vec<i32> {
    each_group(input, group, |slice| {
        let mut sum = 0i32;
        let add = |v: &i32| {
            sum = sum.wrapping_add(*v);
            sum
        };
        slice.iter().map(add).collect()
    })
}

pub fn scan_exclusive(input: &[u32], group: usize) -> Vec<u32> {
    each_group(input, group, |slice| {
        let mut sum = 0u32;
        let add = |v: &u32| {
            let before = sum;
            sum = sum.wrapping_add(*v);
            before
        };
        slice.iter().map(add).collect()
    })
}

/// What `scan_builtin` writes, in the order of its arguments.
#[derive(Debug, PartialEq, Eq)]
pub struct Scans {
    pub inclusive: Vec<i32>,
    pub exclusive: Vec<i32>,
    pub total: Vec<i32>,
    pub largest: Vec<i32>,
}

pub fn scan_builtin(input: &[i32], group: usize) -> Scans {
    let inclusive = scan_inclusive(input, group);
    let exclusive = inclusive
        .iter()
        .zip(input)
        .map(|(s, v)| s.wrapping_sub(*v))
        .collect();
    let total = each_group(&inclusive, group, |s| vec![s[s.len() - 1]; s.len()]);
    let largest = each_group(input, group, |s| vec![*s.iter().max().unwrap(); s.len()]);
    Scans {
        inclusive,
        exclusive,
        total,
        largest,
    }
}

/// `vote_builtin`: any, all, and the value of the last item.
pub fn vote_builtin(input: &[i32], group: usize) -> [Vec<i32>; 3] {
    [
        each_group(input, group, |s| {
            vec![i32::from(s.iter().any(|&v| v > 0)); s.len()]
        }),
        each_group(input, group, |s| {
            vec![i32::from(s.iter().all(|&v| v > 0)); s.len()]
        }),
        each_group(input, group, |s| vec![s[s.len() - 1]; s.len()]),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases() {
        assert_eq!(scan_inclusive(&[1, 2, 3, 4], 2), [1, 3, 3, 7]);
        assert_eq!(scan_exclusive(&[1, 2, 3, 4], 4), [0, 1, 3, 6]);
        let scans = scan_builtin(&[3, 1, -1, -2], 2);
        assert_eq!(scans.exclusive, [0, 3, 0, -1]);
        assert_eq!(scans.total, [4, 4, -3, -3]);
        assert_eq!(scans.largest, [3, 3, -1, -1]);
        assert_eq!(
            vote_builtin(&[1, 0, 2, 3], 2),
            [vec![1; 4], vec![0, 0, 1, 1], vec![0, 0, 3, 3]]
        );
    }
}
