//! Integer division: turns what a kernel's compiler wrote instead of one back into a division, and makes one division serve a quotient and its
//! remainder.
//!
//! GPUs have no instruction for it, so their compiler writes a loop over the bits of 64-bit numbers ([`bit_by_bit`]), or
//! products with a reciprocal of floats ([`reciprocal`]). A processor divides faster, and so do vectors of floats.
//!
//! Guarantees: each value has the same bits as before, for every operand, zero divisors included; the proofs are in the files.
//! - The loop over the bits starts at its last step, with quotient and remainder of what comes before.
//! - Quotients by reciprocals, and the remainders made of them, become [`BinOp::UDiv`](crate::ssa::BinOp::UDiv) and
//!   [`BinOp::URem`](crate::ssa::BinOp::URem).
//! - Quotients and remainders of the same operands take one division ([`pairs`]).
//! - Vectors of numbers of up to 16 bits divide in floats of 32 bits ([`small`]); code generators do it in 64 otherwise.
//!
//! Not done: 64-bit quotients by reciprocals, whose pieces are vectors of floats already.

mod bit_by_bit;
mod lanes;
mod late_start;
mod pairs;
mod reciprocal;
mod small;

use super::gvn;
use crate::ssa::Function;

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let raised = bit_by_bit::run(f) + reciprocal::run(f);
    if raised != 0 {
        // Pairs are told by their operands: what was made twice has to be one value.
        gvn::run(f);
    }
    raised + pairs::run(f) + small::run(f)
}
