//! Contiguous copies (`block_copy.cl`). The plain `copy*` kernels reproduce their input.

/// `copy_unaligned`: bytes from `shift` on, as many as the output has.
pub fn copy_unaligned(input: &[u8], shift: usize, length: usize) -> Vec<u8> {
    input[shift..shift + length].to_vec()
}

/// `copy_struct` on 32-byte records. Byte 1 of a record is padding and not compared.
pub fn copy_struct(input: &[u8], bump: u32) -> Vec<u8> {
    let mut out = input.to_vec();
    for record in out.chunks_exact_mut(32) {
        let word = u32::from_le_bytes(record[4..8].try_into().unwrap());
        record[4..8].copy_from_slice(&word.wrapping_add(bump).to_le_bytes());
        let vector = record[16..32].to_vec();
        for (i, lane) in vector.chunks_exact(4).rev().enumerate() {
            record[16 + i * 4..][..4].copy_from_slice(lane);
        }
    }
    out
}

/// `transpose4`: 4x4 blocks.
pub fn transpose4(input: &[f32]) -> Vec<f32> {
    let block = |b: &[f32]| -> [f32; 16] { std::array::from_fn(|i| b[i % 4 * 4 + i / 4]) };
    input.chunks_exact(16).flat_map(block).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_cases() {
        let bytes: Vec<u8> = (0..32).collect();
        let copied = copy_struct(&bytes, 1);
        assert_eq!(copied[4..8], [5, 5, 6, 7]);
        assert_eq!(copied[16..20], [28, 29, 30, 31]);
        assert_eq!(copied[28..], [16, 17, 18, 19]);
        let cells: Vec<f32> = (0..16).map(|v| v as f32).collect();
        assert_eq!(transpose4(&cells)[..5], [0.0, 4.0, 8.0, 12.0, 1.0]);
        assert_eq!(transpose4(&transpose4(&cells)), cells);
        assert_eq!(copy_unaligned(&bytes, 3, 2), [3, 4]);
    }
}
