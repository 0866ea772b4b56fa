//! Binary16 sums and products, eight lanes at a time, on processors with conversions for it (F16C and AVX2).
//!
//! A product of halves is exact in binary32. A sum with it is rounded to odd, so that rounding again to binary16 is rounding once.

use std::arch::x86_64::{
    __m256, _CMP_NEQ_OQ, _MM_FROUND_TO_NEAREST_INT, _mm_loadu_si128, _mm_storeu_si128,
    _mm256_add_epi32, _mm256_add_ps, _mm256_and_si256, _mm256_andnot_si256, _mm256_castps_si256,
    _mm256_castsi256_ps, _mm256_cmp_ps, _mm256_cmpeq_epi32, _mm256_cvtph_ps, _mm256_cvtps_ph,
    _mm256_mul_ps, _mm256_or_si256, _mm256_set1_epi32, _mm256_setzero_ps, _mm256_setzero_si256,
    _mm256_srai_epi32, _mm256_sub_ps, _mm256_xor_ps,
};

use super::fp_env::{Call, Round};
use crate::abi::fp_env as op;

/// Lanes of a step.
const STEP: usize = 8;

/// Runs a call on halves; false when this is not the place for it.
///
/// # Safety
/// As [`Call::each`].
pub(super) unsafe fn run(call: &Call) -> bool {
    let plain = call.env.round == Round::Nearest && call.env.keeps(2);
    let here = matches!(call.op, op::ADD | op::MUL | op::FMA);
    let able = is_x86_feature_detected!("avx2") && is_x86_feature_detected!("f16c");
    if !(plain && here && able) {
        return false;
    }
    // SAFETY: the processor can, and the operands are as promised.
    unsafe { steps(call) };
    true
}

/// # Safety
/// As [`Call::each`].
#[target_feature(enable = "avx2,f16c")]
unsafe fn steps(call: &Call) {
    for start in (0..call.lanes).step_by(STEP) {
        let lanes = STEP.min(call.lanes - start);
        let bytes = 2 * lanes;
        let operands = call.operands.map(|p| p.wrapping_add(2 * start));
        let out = call.out.wrapping_add(2 * start);
        if lanes == STEP {
            // SAFETY: eight lanes are left.
            unsafe { step(call.op, operands, out) };
            continue;
        }
        let mut copies = [[0u8; 2 * STEP]; 3];
        let mut result = [0u8; 2 * STEP];
        for (copy, operand) in copies.iter_mut().zip(operands) {
            // SAFETY: the operand has that many bytes left, the copy more.
            unsafe { operand.copy_to_nonoverlapping(copy.as_mut_ptr(), bytes) };
        }
        // SAFETY: the copies have eight lanes; the result has as many bytes left as are copied.
        unsafe {
            step(
                call.op,
                copies.each_ref().map(|c| c.as_ptr()),
                result.as_mut_ptr(),
            );
            result.as_ptr().copy_to_nonoverlapping(out, bytes);
        }
    }
}

/// # Safety
/// Eight lanes at each of the pointers.
#[target_feature(enable = "avx2,f16c")]
unsafe fn step(code: u32, operands: [*const u8; 3], out: *mut u8) {
    // SAFETY: as promised; the loads need no alignment.
    let [a, b, c] = operands.map(|p| unsafe { _mm256_cvtph_ps(_mm_loadu_si128(p.cast())) });
    let wide = match code {
        op::ADD => _mm256_add_ps(a, b),
        op::MUL => _mm256_mul_ps(a, b),
        _ => sum_to_odd(_mm256_mul_ps(a, b), c),
    };
    let halves = _mm256_cvtps_ph::<_MM_FROUND_TO_NEAREST_INT>(wide);
    // SAFETY: as promised.
    unsafe { _mm_storeu_si128(out.cast(), halves) };
}

/// `p + c`; where it is not exact, of the two floats next to it the one whose last bit is set.
#[target_feature(enable = "avx2")]
fn sum_to_odd(p: __m256, c: __m256) -> __m256 {
    let sum = _mm256_add_ps(p, c);
    // What the sum lacks, exactly (Knuth's two-sum); NaN where an operand is no number.
    let from_c = _mm256_sub_ps(sum, p);
    let from_p = _mm256_sub_ps(sum, from_c);
    let lack = _mm256_add_ps(_mm256_sub_ps(p, from_p), _mm256_sub_ps(c, from_c));
    let inexact = _mm256_cmp_ps::<_CMP_NEQ_OQ>(lack, _mm256_setzero_ps());
    let bits = _mm256_castps_si256(sum);
    let one = _mm256_set1_epi32(1);
    let even = _mm256_cmpeq_epi32(_mm256_and_si256(bits, one), _mm256_setzero_si256());
    let moves = _mm256_and_si256(_mm256_castps_si256(inexact), even);
    // One step away from zero where the lack has the sum's sign, one toward zero where it has the other.
    let toward = _mm256_srai_epi32::<31>(_mm256_castps_si256(_mm256_xor_ps(sum, lack)));
    let step = _mm256_or_si256(_mm256_andnot_si256(toward, one), toward);
    _mm256_castsi256_ps(_mm256_add_epi32(bits, _mm256_and_si256(moves, step)))
}
