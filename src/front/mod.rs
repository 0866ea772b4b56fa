//! Front ends: from a file to a [`crate::module::Module`].
//!
//! Input is untrusted. Nothing here panics, indexes without a check or computes with unchecked
//! arithmetic; every loop is bounded by the length of the input or by a constant of [`crate::limits`].
#![cfg_attr(
    not(test),
    deny(
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic,
        clippy::indexing_slicing,
        clippy::arithmetic_side_effects
    )
)]

pub mod binary;
pub mod text;
