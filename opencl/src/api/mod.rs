//! The entry points: thin functions that turn what C passes into calls of [`crate::core`], and results into codes.
//!
//! This is where `unsafe` is: each entry point takes its caller's promise once (`given.rs`), by way of the macros in `entry.rs`, which
//! also keep panics on this side.

pub mod context;
pub mod device;
pub mod enqueue;
pub mod entry;
pub mod event;
pub mod given;
pub mod image;
pub mod kernel;
pub mod mem;
pub mod platform;
pub mod print;
pub mod program;
pub mod queue;
pub mod rectangle;
pub mod svm;
mod table;
pub mod usm;
pub mod variable;

pub use table::{DISPATCH, Table};
