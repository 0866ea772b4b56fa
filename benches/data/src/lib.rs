//! Cases of `benches/peers` as data: an OpenCL C file and a TOML file of the same name, which says what to launch on what.
//!
//! [`Case::read`] reads and checks one, [`Case::contents`] makes its buffers, [`client`] runs it on a driver, and [`Tolerance`]
//! compares results. `benches/cases/README.md` describes the files. Every error of a file names file, line, and what is wrong.

pub mod client;
mod compare;
mod content;
mod format;

pub use compare::Tolerance;
pub use content::{Fill, Type};
pub use format::{Argument, Buffer, Case, Launch, Need, Step, cases_in};
