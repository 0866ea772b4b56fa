//! The ordered list of passes and its driver.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use super::halves::{self, Halves};
use super::{cfg, dce, flatten, fold, gvn, masks, rows, shape, strips, suspend, uniform};
use crate::ssa::{Function, VerifyError, verify};

/// A pass: changes the function and returns how many changes it made.
pub type Pass = fn(&mut Function, &PassOptions) -> usize;

/// Passes by name.
pub const PASSES: &[(&str, Pass)] = &[
    ("fold", |f, _| fold::run(f)),
    ("cfg", |f, _| cfg::run(f)),
    ("gvn", |f, _| gvn::run(f)),
    ("uniform", |f, _| uniform::run(f)),
    ("masks", |f, _| masks::run(f)),
    ("dce", |f, _| dce::run(f)),
    ("strips", |f, _| strips::run(f)),
    ("halves", |f, options| halves::run(f, options.halves)),
    ("rows", |f, _| rows::run(f)),
    ("shape", |f, _| shape::run(f)),
];

/// Passes that make the form that backends expect, which cannot be switched off. They leave functions alone that have it.
pub const MANDATORY: &[(&str, Pass)] = &[("suspend", |f, _| suspend::run(f))];

/// Passes that run where they are asked for.
pub const OPTIONAL: &[(&str, Pass)] = &[("flatten", |f, _| flatten::run(f))];

/// Names of [`PASSES`], [`OPTIONAL`] and [`MANDATORY`] ones in the order they run; a name may occur several times.
///
/// Before `suspend`, barriers are instructions and all passes see through them. Dead code goes before, so
/// that it is not saved, and after: originals of what is computed again.
pub const ORDER: &[&str] = &[
    "fold", "cfg", "gvn", "uniform", "fold", "cfg", "gvn", "flatten", "masks", "fold", "cfg",
    "gvn", "dce", "strips", "cfg", "halves", "rows", "suspend", "dce", "shape",
];

/// What runs again behind a pass that changed something: what was the same in all lanes of a thread no more than in some may be
/// the same in those of a row.
const BEHIND: &[(&str, &[&str])] = &[("rows", &["uniform", "fold", "gvn"])];

/// What runs.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct PassOptions {
    /// Names of passes that are left out.
    pub disabled: BTreeSet<&'static str>,
    /// Verify after each pass.
    pub verify: bool,
    /// Work under empty masks is done for nobody, not jumped over: the pass `flatten` runs.
    pub flatten: bool,
    /// What the pass `halves` is for; engines choose it by their strategies.
    pub halves: Halves,
}

impl Default for PassOptions {
    /// All passes; the verifier runs in builds with debug assertions.
    fn default() -> Self {
        PassOptions {
            disabled: BTreeSet::new(),
            verify: cfg!(debug_assertions),
            flatten: false,
            halves: Halves::All,
        }
    }
}

impl PassOptions {
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
    /// Time it took, without the verifier.
    pub time: Duration,
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
        if run_wanted(f, options, name, &mut stats)? {
            let behind = BEHIND.iter().filter(|(after, _)| after == name);
            for again in behind.flat_map(|(_, names)| *names) {
                run_wanted(f, options, again, &mut stats)?;
            }
        }
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
        let optional = OPTIONAL.iter().any(|&(n, _)| n == name);
        !options.disabled.contains(name) && (options.flatten || !optional)
    };
    let Some((name, pass)) = find(name).filter(|(n, _)| wanted(n)) else {
        return Ok(false);
    };
    let start = Instant::now();
    let changes = pass(f, options);
    let time = start.elapsed();
    if changes == 0 && MANDATORY.iter().any(|&(n, _)| n == name) {
        return Ok(false);
    }
    if options.verify {
        verify(f).map_err(|errors| PassError { pass: name, errors })?;
    }
    stats.push(PassStats {
        name,
        changes,
        insts: f.order.iter().map(|&b| f.block(b).insts.len()).sum(),
        time,
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
