//! `saxpy.cl`, `sgemm.cl` and the linear algebra of `double.cl`: exact, every product is fused.

/// `saxpy`, and `saxpy_guarded` for the first `n` items.
pub fn saxpy(y: &[f32], x: &[f32], a: f32) -> Vec<f32> {
    y.iter().zip(x).map(|(&y, &x)| a.mul_add(x, y)).collect()
}

pub fn saxpy_guarded(y: &[f32], x: &[f32], a: f32, n: usize) -> Vec<f32> {
    let mut out = saxpy(&y[..n], &x[..n], a);
    out.extend_from_slice(&y[n..]);
    out
}

pub fn saxpy_scaled(y: &[f32], x: &[f32], a: f32, b: f32) -> Vec<f32> {
    y.iter()
        .zip(x)
        .map(|(&y, &x)| a.mul_add(x, b * y))
        .collect()
}

/// All three `sgemm_*` kernels: `a` is m x k, `b` is k x n.
pub fn sgemm(a: &[f32], b: &[f32], n: usize, k: usize) -> Vec<f32> {
    let cell = |row: usize, col: usize| {
        (0..k).fold(0.0f32, |sum, i| a[row * k + i].mul_add(b[i * n + col], sum))
    };
    let rows = a.len() / k;
    (0..rows * n).map(|at| cell(at / n, at % n)).collect()
}

/// Rows of `a` (`k` long) times columns of `b` (`n` of them), in the order in which `dpas` adds: one fused
/// multiply-add after the other.
pub fn gemm_bf16(a: &[u16], b: &[u16], n: usize, k: usize) -> Vec<f32> {
    let float = |bits: &[u16]| -> Vec<f32> {
        bits.iter()
            .map(|&b| f32::from_bits(u32::from(b) << 16))
            .collect()
    };
    sgemm(&float(a), &float(b), n, k)
}

/// The same of bytes, in 32 bits.
pub fn gemm_int8(a: &[i8], b: &[i8], n: usize, k: usize) -> Vec<i32> {
    let cell = |row: usize, col: usize| {
        (0..k)
            .map(|i| i32::from(a[row * k + i]) * i32::from(b[i * n + col]))
            .sum()
    };
    let rows = a.len() / k;
    (0..rows * n).map(|at| cell(at / n, at % n)).collect()
}

pub fn daxpy(y: &[f64], x: &[f64], a: f64) -> Vec<f64> {
    y.iter().zip(x).map(|(&y, &x)| a.mul_add(x, y)).collect()
}

/// `dot_double`: the partial sum of each group of 32, added as a tree.
pub fn dot_double(x: &[f64], y: &[f64]) -> Vec<f64> {
    let products: Vec<f64> = x.iter().zip(y).map(|(x, y)| x * y).collect();
    super::reduce::tree_sums(&products, 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases() {
        assert_eq!(saxpy_guarded(&[1.0, 2.0], &[3.0, 4.0], 2.0, 1), [7.0, 2.0]);
        assert_eq!(saxpy_scaled(&[1.0], &[3.0], 2.0, 10.0), [16.0]);
        let c = sgemm(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0], 2, 2);
        assert_eq!(c, [19.0, 22.0, 43.0, 50.0]);
        assert_eq!(dot_double(&[2.0; 64], &[3.0; 64]), [192.0; 2]);
    }
}
