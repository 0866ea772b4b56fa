//! Divergent control flow (`loops.cl`): exact.

pub fn collatz(input: &[u32], limit: u32) -> Vec<u32> {
    let steps = |start: u32| {
        let (mut v, mut steps) = (u64::from(start), 0);
        while v > 1 && steps < limit {
            v = if v % 2 == 1 {
                v.wrapping_mul(3).wrapping_add(1)
            } else {
                v / 2
            };
            steps += 1;
        }
        steps
    };
    input.iter().map(|&v| steps(v)).collect()
}

pub fn nested(input: &[u32]) -> Vec<u32> {
    input
        .iter()
        .map(|&v| (0..v & 15).fold(0, |sum, a| nested_outer(v, a, sum)))
        .collect()
}

/// One round of the outer loop.
fn nested_outer(v: u32, a: u32, mut sum: u32) -> u32 {
    if v >> a & 3 == 3 {
        return sum;
    }
    for b in a..20 {
        if (a * b).wrapping_add(v).is_multiple_of(7) {
            break;
        }
        if b % 2 == 1 {
            continue;
        }
        sum = sum.wrapping_add(a * 31 + b);
        let mut c = v >> (b & 7);
        loop {
            c /= 3;
            sum ^= c;
            if c == 5 {
                return sum.wrapping_add(1);
            }
            if c <= 2 {
                break;
            }
        }
    }
    sum.wrapping_add(1)
}

/// Items from `n` on keep what `out` held.
pub fn early_return(out: &[i32], input: &[i32], n: usize) -> Vec<i32> {
    let item = |mut v: i32| {
        if v < 0 {
            return -1;
        }
        for k in 0..100 {
            v -= k;
            if v == 0 {
                return 1000 + k;
            }
            if v < 0 {
                break;
            }
        }
        v
    };
    (0..out.len())
        .map(|i| if i < n { item(input[i]) } else { out[i] })
        .collect()
}

pub fn gcd(x: &[u32], y: &[u32]) -> Vec<u32> {
    let one = |(&a, &b): (&u32, &u32)| {
        let (mut a, mut b) = (a, b);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        a
    };
    x.iter().zip(y).map(one).collect()
}

/// `machine`: accumulator and step count of each item.
pub fn machine(items: usize, code: &[u8]) -> Vec<u32> {
    (0..items as u32).flat_map(|i| run(i, code)).collect()
}

fn run(item: u32, code: &[u8]) -> [u32; 2] {
    let (mut acc, mut pc, mut steps) = (item, 0u32, 0u32);
    while (pc as usize) < code.len() && steps < 200 {
        steps += 1;
        let op = u32::from(code[pc as usize]);
        match op / 64 {
            0 => {
                acc = acc.wrapping_add(op);
                pc += 1;
            }
            1 => {
                acc = acc.wrapping_mul(3).wrapping_add(op & 7);
                pc += 1 + (acc & 1);
            }
            2 => pc += 1 + if acc % 3 == 0 { op & 7 } else { 0 },
            _ => {
                pc = if acc & 4 != 0 {
                    pc.saturating_sub(op & 15)
                } else {
                    pc + 1
                };
                acc ^= steps;
            }
        }
    }
    [acc, steps]
}

pub fn divergent_barrier(input: &[u32], group: usize, rounds: u32) -> Vec<u32> {
    input
        .chunks_exact(group)
        .flat_map(|slice| exchange(slice, rounds))
        .collect()
}

fn exchange(slice: &[u32], rounds: u32) -> Vec<u32> {
    let mut values = slice.to_vec();
    for r in 0..rounds {
        let tile: Vec<u32> = values.iter().map(|&v| shrink(v, r)).collect();
        for (lid, v) in values.iter_mut().enumerate() {
            *v = tile[(lid + 1) % tile.len()].wrapping_add(*v & 3);
        }
        if tile[0] == 77 {
            break;
        }
    }
    values
}

/// Halves while odd, at most nine times.
fn shrink(v: u32, r: u32) -> u32 {
    (0..9).fold(v, |w, _| {
        if w & 1 == 1 {
            (w >> 1).wrapping_add(r)
        } else {
            w
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases() {
        assert_eq!(collatz(&[0, 1, 6, 27], 1000), [0, 0, 8, 111]);
        assert_eq!(gcd(&[48, 7, 0], &[36, 0, 5]), [12, 7, 5]);
        assert_eq!(
            early_return(&[7, 7, 7, 7], &[-5, 3, 5, 0], 3),
            [-1, 1002, -1, 7]
        );
        assert_eq!(machine(2, &[1, 65, 130]), [4, 3, 7, 2]);
        assert_eq!(divergent_barrier(&[2, 4], 2, 1), [6, 2]);
        assert_eq!(nested(&[16]), [0]);
    }
}
