//! Vectors that were put together from pieces are made as whole vectors again.
//!
//! Compilers of kernels treat a 64-bit lane as two 32-bit ones where the device has no wide operation, and write instructions of
//! 32 lanes as two of sixteen. What comes of it is arithmetic on pieces, with shuffles between.
//!
//! Guarantees: every value has the same lanes as before.
//! - A shuffle that joins pieces made by the same lane-wise operation becomes that operation on joined operands, where these are
//!   there already ([`whole`]).
//! - The low and the high halves of 64-bit lanes that the same bitwise operation, select or comparison is applied to become one
//!   operation on 64-bit lanes, and so do the pieces of a product, also of lanes that were extended with their sign ([`pairs`]).
//! - 64-bit lanes that are put together from both halves of products of 32-bit lanes become products of 64-bit lanes ([`products`]).
//!
//! Not done: sums with carry, shifts across the halves, ordered comparisons; devices that lack these in 64 bits are old.

mod pairs;
mod products;
mod whole;

use super::gvn;
use crate::ssa::Function;

/// Each round may enable another: an operation on whole lanes is an operand of the next.
const ROUNDS: usize = 6;

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let mut changes = 0;
    for _ in 0..ROUNDS {
        let joined = whole::run(f);
        if joined != 0 {
            // Pairs are told by their operands: what was made twice has to be one value.
            gvn::run(f);
        }
        let done = joined + pairs::run(f);
        if done == 0 {
            break;
        }
        changes += done;
    }
    changes + products::run(f)
}
