//! Kernels with one planted error each: engines report the same, and nothing that is known to be an error is missed.

use visa_fuzzing::planted::{Bench, Counts, Error, Planted};
use visa_fuzzing::seeds;
use visa_test_common::share;

/// Kernels of each kind of error; `cargo run --release -p xtask -- planted` runs more.
const KERNELS: u64 = 40;

#[test]
fn planted_errors_are_found_or_harmless() {
    let (mut found, mut dead) = (0, 0);
    let mut bench = Bench::new(cfg!(feature = "llvm-codegen"));
    for error in Error::ALL {
        let mut counts = Counts::default();
        let all = seeds().unwrap_or(0..share(KERNELS, 14));
        for seed in all.clone() {
            let verdict = bench.run(&Planted::new(error, seed));
            counts.add(&verdict);
            assert!(
                matches!(counts, Counts { differ: 0, .. }),
                "{error:?} {seed}: {verdict:?}"
            );
        }
        println!("{error:?}: {counts}");
        (found, dead) = (found + counts.found, dead + counts.dead);
        // A plain run has too few of a kind for both.
        if all.end - all.start >= KERNELS {
            assert!(counts.found > 0 && counts.dead > 0, "{error:?}: {counts}");
        }
    }
    if seeds().is_none() {
        assert!(found > 0 && dead > 0, "{found} found, {dead} dead");
    }
}
