//! What the tests of several packages share: random numbers, the checked-in kernels, files with several images, times of benchmarks.
//!
//! It depends on no other package, so that unit tests of the compiler can use it too.

pub mod bench;
pub mod images;
pub mod rng;

use std::path::{Path, PathBuf};

pub use rng::Rng;

/// True where the environment variable `VISA_JIT_TEST_FULL` is set, as `.ci/run` does: tests of generated cases run all of them. A
/// plain run takes the first of them, so that it is short.
pub fn full() -> bool {
    std::env::var_os("VISA_JIT_TEST_FULL").is_some()
}

/// How many of `all` generated cases a test runs: all in a [`full`] run, else one in `part`, rounded up.
pub fn share(all: u64, part: u64) -> u64 {
    if full() { all } else { all.div_ceil(part) }
}

/// A number for a name. In a plain run, tests with names take turns by it: each does another part of what a full run does for all.
pub fn turn(name: &str) -> usize {
    name.bytes().map(usize::from).sum()
}

/// The repository.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.ancestors().nth(2).unwrap_or(here)
}

/// A checked-in zebin: `tests/kernels/bin/DEVICE/NAME.zebin`.
pub fn zebin_path(device: &str, name: &str) -> PathBuf {
    root().join(format!("tests/kernels/bin/{device}/{name}.zebin"))
}

/// Its bytes.
///
/// # Panics
/// When there is no such file.
pub fn zebin(device: &str, name: &str) -> Vec<u8> {
    let path = zebin_path(device, name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}
