//! Compares what two versions of Intel's compiler make of the same kernels: both are launched at random on the same arguments.
//!
//! Does not compare engines; `agree` does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use visa_fuzzing::files::{Pair, compare_pair};

/// Launches of each kernel, of random shapes and on random arguments.
const LAUNCHES: u64 = 6;
/// Time that a launch may take, since random arguments make loops that hardly end.
const LIMIT: Duration = Duration::from_secs(3);

/// Kernels whose results may differ, and why.
const EXPLAINED: [(&str, &str); 2] = [
    (
        "chase_link",
        "version 22.43 multiplies indices in 32 bits where the buffer cannot be larger; random indices lead outside of it",
    ),
    (
        "vote_builtin",
        "version 22.43 has no barrier between `work_group_all` and `work_group_broadcast`, which use the same local memory",
    ),
];

/// What came of the kernels of all pairs of files.
#[derive(Default)]
struct Tally {
    equal: usize,
    /// Those of them that changed no buffer.
    idle: usize,
    near: usize,
    /// Kernels that only one of the files has, or whose launches did not end, with the reason.
    left_out: BTreeMap<String, usize>,
    differ: Vec<String>,
}

impl Tally {
    fn add(&mut self, file: &Path, kernel: &str, pair: Pair) {
        match pair {
            Pair::Equal { changed } => {
                self.equal += 1;
                self.idle += usize::from(!changed);
            }
            Pair::Near => self.near += 1,
            Pair::LeftOut(why) => *self.left_out.entry(why).or_default() += 1,
            Pair::Differs(what) => match explained(kernel) {
                Some(why) => *self.left_out.entry(why.to_owned()).or_default() += 1,
                None => {
                    eprintln!("{} `{kernel}`: {what}", file.display());
                    self.differ.push(kernel.to_owned());
                }
            },
        }
    }
}

fn explained(kernel: &str) -> Option<&'static str> {
    let row = EXPLAINED.iter().find(|(name, _)| *name == kernel);
    row.map(|(_, why)| *why)
}

/// Every pair of files of one name in two folders.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let bin = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/kernels/bin");
    let pairs: Vec<(PathBuf, PathBuf)> = match arguments {
        [] => ["acm-g10", "pvc"]
            .map(|device| (bin.join(device), bin.join(format!("{device}-26"))))
            .into(),
        [old, new] => vec![(old.into(), new.into())],
        _ => return Err("two folders, or none".to_owned()),
    };
    let mut both = Vec::new();
    for (old, new) in &pairs {
        let entries = std::fs::read_dir(old).map_err(|e| format!("{}: {e}", old.display()))?;
        let names = entries.filter_map(|e| Some(e.ok()?.file_name()));
        let mut names: Vec<_> = names.filter(|name| new.join(name).is_file()).collect();
        names.sort();
        both.extend(names.iter().map(|name| (old.join(name), new.join(name))));
    }
    let tally = all(&both)?;
    for (why, count) in &tally.left_out {
        println!("left out {count}: {why}");
    }
    let (equal, near, differ) = (tally.equal, tally.near, tally.differ.len());
    println!(
        "{equal} kernels left the same bytes by both compilers, of which {} changed no buffer; {near} have numbers within the tolerance, \
         {differ} differ",
        tally.idle
    );
    match differ {
        0 => Ok(()),
        n => Err(format!("{n} differences")),
    }
}

/// Launches the kernels of all files, on all processors.
fn all(both: &[(PathBuf, PathBuf)]) -> Result<Tally, String> {
    let next = AtomicUsize::new(0);
    let tally: Mutex<Tally> = Mutex::default();
    let worker = || -> Result<(), String> {
        while let Some((old, new)) = both.get(next.fetch_add(1, Ordering::Relaxed)) {
            files(old, new, &tally)?;
        }
        Ok(())
    };
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|s| {
        let workers: Vec<_> = (0..workers).map(|_| s.spawn(worker)).collect();
        let mut ended = workers.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended.try_for_each(|end| end.unwrap_or_else(|_| Err("a panic".to_owned())))
    })?;
    tally.into_inner().map_err(|e| e.to_string())
}

fn files(old: &Path, new: &Path, tally: &Mutex<Tally>) -> Result<(), String> {
    let read = |path: &Path| std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()));
    let pairs = compare_pair(&read(old)?, &read(new)?, LAUNCHES, LIMIT);
    let pairs = pairs.map_err(|e| format!("{}: {e}", old.display()))?;
    let mut tally = tally.lock().map_err(|e| e.to_string())?;
    for (kernel, pair) in pairs {
        tally.add(old, &kernel, pair);
    }
    Ok(())
}
