//! Vectors that were put together from pieces are made as whole vectors again.
//!
//! Compilers of kernels treat a 64-bit lane as two 32-bit ones where the device has no wide operation, and write instructions of
//! 32 lanes as two of sixteen. What comes of it is arithmetic on pieces, with shuffles between.
//!
//! Guarantees: every value has the same lanes as before.
//! - A shuffle that joins pieces made by the same lane-wise operation becomes that operation on joined operands, where these are
//!   there already ([`whole`]).
//! - The low and the high halves of 64-bit lanes that the same bitwise operation or select is applied to become one
//!   operation on 64-bit lanes, and so do the pieces of a product, also of lanes that were extended with their sign ([`pairs`]).
//! - Masks that say how halves compare become comparisons of 64-bit lanes ([`order`]).
//! - Lanes that are put together half by half are made in one go ([`halves`]).
//! - Sums of halves with a carry become sums of 64-bit lanes ([`carries`]), and shifts across halves shifts of these ([`shifts`]).
//! - Products of halves that are the halves of a 64-bit product become that ([`wide_products`]).
//! - 64-bit lanes that are put together from both halves of products of 32-bit lanes become products of 64-bit lanes ([`products`]).
//!
//! Not done: shifts across the halves by counts that differ from lane to lane, which have branches.

mod carries;
mod carry;
mod halves;
mod order;
mod pairs;
mod products;
mod shifts;
mod whole;
mod wide_products;
mod words;

use super::gvn;
use crate::ssa::Function;

/// Each round may enable another: an operation on whole lanes is an operand of the next.
const ROUNDS: usize = 6;

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let mut changes = 0;
    for _ in 0..ROUNDS {
        let mut joined = whole::run(f) + halves::run(f) + wide_products::run(f);
        joined += carries::run(f) + shifts::run(f);
        if joined != 0 {
            // Pairs are told by their operands: what was made twice has to be one value.
            gvn::run(f);
        }
        let done = joined + pairs::run(f) + order::run(f);
        if done == 0 {
            break;
        }
        changes += done;
    }
    changes + products::run(f)
}
