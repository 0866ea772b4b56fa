//! The ordered list of passes and its driver.

use std::collections::BTreeSet;

use super::merge_splits::{self, MergeSplits};
use super::{
    accumulators, cfg, check_aligned, check_buffers, check_init, check_races, correlated, dce,
    division, divisors, dot_products, exponents, fold, gvn, half_calls, if_convert, inductions,
    interleave, join_stores, logarithms, masks, one_lane, registers, row_split, shape, strip_mine,
    strip_start, suspend, uniform, vector_combine,
};
use crate::schedule::Vectors;
use crate::ssa::{Function, VerifyError, verify};
use crate::steps::step;

/// A pass: changes the function and returns how many changes it made.
pub type Pass = fn(&mut Function, &PassOptions) -> usize;

/// Passes by name.
pub const PASSES: &[(&str, Pass)] = &[
    ("fold", |f, _| fold::run(f)),
    ("cfg", |f, _| cfg::run(f)),
    ("gvn", |f, _| gvn::run(f)),
    ("uniform", |f, _| uniform::run(f)),
    ("correlated-values", |f, _| correlated::run(f)),
    ("short-branches", |f, _| if_convert::run_short(f)),
    ("masks", |f, _| masks::run(f)),
    ("dce", |f, _| dce::run(f)),
    ("division", |f, _| division::run(f)),
    ("half-calls", |f, _| half_calls::run(f)),
    ("one-lane-stores", |f, _| one_lane::run(f)),
    ("join-stores", |f, _| join_stores::run(f)),
    ("registers", |f, _| registers::run(f)),
    ("vector-combine", |f, _| vector_combine::run(f)),
    ("accumulators", |f, _| accumulators::run(f)),
    ("dot-products", |f, _| dot_products::run(f)),
    ("inductions", |f, _| inductions::run(f)),
    ("scalar-tails", |f, options| match options.checks() {
        true => 0,
        false => strip_mine::tails::run(f),
    }),
    ("strip-mine", |f, _| strip_mine::run(f)),
    ("merge-splits", |f, options| {
        merge_splits::run(f, options.merge_splits)
    }),
    ("usual-divisors", |f, _| divisors::run(f)),
    ("usual-logarithms", |f, _| logarithms::run(f)),
    ("strip-start", |f, options| match options.checks() {
        true => 0,
        false => strip_start::run(f, options.always_strip),
    }),
    ("split-rows", |f, _| row_split::run(f)),
    ("exponents", |f, _| exponents::run(f)),
    ("shape", |f, _| shape::run(f)),
    ("interleave", |f, options| {
        interleave::run(f, options.interleave.unwrap_or(WIDE))
    }),
];

/// Vectors of AVX-512.
const WIDE: Vectors = Vectors {
    bits: 512,
    registers: 32,
    all: false,
};

/// Passes that make the form that backends expect, which cannot be switched off. They leave functions alone that have it.
pub const MANDATORY: &[(&str, Pass)] = &[("suspend", |f, _| suspend::run(f))];

/// Passes that run where they are asked for.
pub const OPTIONAL: &[(&str, Pass)] = &[
    ("if-convert", |f, _| if_convert::run(f)),
    ("check-init", |f, _| check_init::run(f)),
    ("check-aligned", |f, _| check_aligned::run(f)),
    ("check-buffers", |f, _| check_buffers::run(f)),
    ("check-races", |f, _| check_races::run(f)),
];

/// Names of [`PASSES`], [`OPTIONAL`] and [`MANDATORY`] ones in the order they run; a name may occur several times.
///
/// Before `suspend`, barriers are instructions and all passes see through them. Dead code goes before, so
/// that it is not saved, and after: originals of what is computed again.
pub const ORDER: &[&str] = &[
    "fold",
    "cfg",
    "gvn",
    "uniform",
    "fold",
    "cfg",
    "gvn",
    "if-convert",
    "dce",
    "short-branches",
    "masks",
    "fold",
    "cfg",
    "gvn",
    "correlated-values",
    "dce",
    // Branches that these passes removed kept others from being short.
    "short-branches",
    "division",
    "half-calls",
    "one-lane-stores",
    "join-stores",
    "registers",
    "vector-combine",
    "accumulators",
    "dot-products",
    "inductions",
    "scalar-tails",
    "strip-mine",
    "cfg",
    "merge-splits",
    "usual-divisors",
    "usual-logarithms",
    "strip-start",
    "split-rows",
    "exponents",
    // What it looks for, `suspend` saves across barriers.
    "check-init",
    "suspend",
    "dce",
    "shape",
    // Before the others, so that a check of buffers stands right before its access.
    "check-races",
    "check-aligned",
    "check-buffers",
    "interleave",
];

/// What runs again after a pass that changed something. A value that differs between the lanes of a thread may be the same in
/// all lanes of a row.
const FOLLOW_UPS: &[(&str, &[&str])] = &[
    // Under a mask that turns out to be full, more is the same in all lanes.
    (
        "correlated-values",
        &["cfg", "uniform", "fold", "cfg", "gvn"],
    ),
    // A mask that is found to be another one takes the masks with it that only it was made of, so `masks` runs twice.
    (
        "short-branches",
        &[
            "fold", "gvn", "masks", "fold", "cfg", "gvn", "dce", "masks", "cfg", "fold", "gvn",
        ],
    ),
    ("division", &["fold", "gvn", "dce"]),
    ("half-calls", &["dce"]),
    ("one-lane-stores", &["fold", "gvn", "dce"]),
    // Lanes of an address that a scalar store read by themselves are now read under its mask.
    ("join-stores", &["fold", "gvn", "masks", "dce"]),
    ("registers", &["fold", "gvn", "dce"]),
    // What it finds to be constants may have been carried around loops.
    (
        "vector-combine",
        &["fold", "gvn", "cfg", "masks", "fold", "dce"],
    ),
    ("accumulators", &["fold", "gvn", "cfg", "dce"]),
    ("dot-products", &["gvn", "dce"]),
    ("inductions", &["fold", "gvn", "dce"]),
    ("scalar-tails", &["fold", "cfg", "gvn", "fold", "dce"]),
    ("usual-divisors", &["dce", "gvn"]),
    ("usual-logarithms", &["fold", "dce", "gvn"]),
    ("strip-start", &["fold", "cfg", "gvn", "dce"]),
    ("split-rows", &["uniform", "fold", "gvn"]),
];

/// Passes that run again, with what follows them, while they change something; and how often at most. Each test of a coordinate that is the
/// same in all lanes decides the next one.
const REPEATED: &[(&str, usize)] = &[("correlated-values", 8)];

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PassOptions {
    /// Names of passes that are left out.
    pub disabled: BTreeSet<&'static str>,
    /// Verify after each pass that changes something, and in the end.
    pub verify: bool,
    /// If-conversion: code under a mask is executed even if the mask is empty, instead of being jumped over. The pass `if-convert` runs.
    pub if_convert: bool,
    /// Which accesses the pass `merge-splits` merges; engines choose it by their strategies.
    pub merge_splits: MergeSplits,
    /// The pass `exponents` runs: the code generator has an instruction for [`FScale`](crate::ssa::BinOp::FScale) that takes every exponent.
    pub any_exponent: bool,
    /// The pass `interleave` runs, for these registers; none where the code generator orders operations itself.
    pub interleave: Option<Vectors>,
    /// The pass `strip-start` changes functions that do not gain by it, too: for tests, as those that gain are large.
    pub always_strip: bool,
    /// Accesses to device memory are checked against its buffers, and addresses for the alignment that the hardware needs. The passes
    /// `check-aligned` and `check-buffers` run.
    pub check_buffers: bool,
    /// Accesses to memory that other threads reach are checked against theirs. The pass `check-races` runs.
    pub check_races: bool,
    /// Loads of what is not initialised are looked for. The pass `check-init` runs.
    pub check_init: bool,
}

impl Default for PassOptions {
    /// All passes; the verifier runs in builds with debug assertions.
    fn default() -> Self {
        PassOptions {
            disabled: BTreeSet::new(),
            verify: cfg!(debug_assertions),
            if_convert: false,
            merge_splits: MergeSplits::All,
            any_exponent: false,
            interleave: None,
            always_strip: false,
            check_buffers: false,
            check_races: false,
            check_init: false,
        }
    }
}

impl PassOptions {
    /// Whether accesses are checked, and what they do wrong is told of each lane.
    const fn checks(&self) -> bool {
        self.check_buffers || self.check_races || self.check_init
    }

    /// None but the [`MANDATORY`] ones.
    pub fn none() -> Self {
        PassOptions {
            disabled: PASSES.iter().map(|&(name, _)| name).collect(),
            ..PassOptions::default()
        }
    }
}

/// What one run of a pass did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassStats {
    /// Pass.
    pub name: &'static str,
    /// Changes it made.
    pub changes: usize,
    /// Instructions in live blocks afterwards.
    pub insts: usize,
}

/// A pass left an invalid function: a bug of ours.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("pass `{pass}` left an invalid function: {}", errors.first().map_or_else(String::new, ToString::to_string))]
pub struct PassError {
    /// Pass.
    pub pass: &'static str,
    /// What the verifier says.
    pub errors: Vec<VerifyError>,
}

/// Runs the enabled passes in order. Statistics leave out mandatory passes that had nothing to do.
///
/// # Errors
/// [`PassError`] when the verifier runs and rejects what a pass left.
pub fn optimize(f: &mut Function, options: &PassOptions) -> Result<Vec<PassStats>, PassError> {
    let mut stats = Vec::new();
    for name in ORDER {
        let repeated = REPEATED.iter().find(|(again, _)| again == name);
        for _ in 0..repeated.map_or(1, |&(_, most)| most) {
            if !run_wanted(f, options, name, &mut stats)? {
                break;
            }
            let follow_ups = FOLLOW_UPS.iter().filter(|(after, _)| after == name);
            for again in follow_ups.flat_map(|(_, names)| *names) {
                run_wanted(f, options, again, &mut stats)?;
            }
        }
    }
    // Once more, for a pass that changes what it does not count.
    if let (true, Some(last)) = (options.verify, stats.last()) {
        let pass = last.name;
        verify(f).map_err(|errors| PassError { pass, errors })?;
    }
    Ok(stats)
}

/// Runs a pass if it is enabled; true if it changed something.
fn run_wanted(
    f: &mut Function,
    options: &PassOptions,
    name: &str,
    stats: &mut Vec<PassStats>,
) -> Result<bool, PassError> {
    let wanted = |name: &str| {
        let asked = match name {
            "if-convert" => options.if_convert,
            "check-aligned" | "check-buffers" => options.check_buffers,
            "check-races" => options.check_races,
            "check-init" => options.check_init,
            "exponents" => options.any_exponent,
            "interleave" => options.interleave.is_some(),
            _ => true,
        };
        asked && !options.disabled.contains(name)
    };
    let Some((name, pass)) = find(name).filter(|(n, _)| wanted(n)) else {
        return Ok(false);
    };
    let mut step = step("passes", name);
    let changes = pass(f, options);
    step.changed(changes);
    drop(step);
    if changes == 0 && MANDATORY.iter().any(|&(n, _)| n == name) {
        return Ok(false);
    }
    if options.verify && changes > 0 {
        verify(f).map_err(|errors| PassError { pass: name, errors })?;
    }
    stats.push(PassStats {
        name,
        changes,
        insts: f.order.iter().map(|&b| f.block(b).insts.len()).sum(),
    });
    Ok(changes > 0)
}

fn find(name: &str) -> Option<(&'static str, Pass)> {
    let mut all = PASSES.iter().chain(OPTIONAL).chain(MANDATORY);
    all.find(|(n, _)| *n == name).copied()
}

/// Runs one pass by name; false when there is none.
pub fn run_pass(f: &mut Function, name: &str) -> bool {
    let pass = find(name);
    if let Some((_, pass)) = pass {
        pass(f, &PassOptions::default());
    }
    pass.is_some()
}
