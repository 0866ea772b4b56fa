//! Compares what two versions of Intel's compiler make of the same kernels: both are launched at random on the same arguments.
//!
//! Integers must be equal. Floating-point numbers may differ as far as OpenCL lets its functions differ, since the compilers expand
//! them in different ways. Does not compare engines; `agree` does.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use visa_fuzzing::files::{Place, Recipe};
use visa_jit::{ArgKind, Class, Engine, EngineOptions, Kernel, Program};
use visa_runtime::{DeviceMemory, LaunchStatus};
use visa_test_common::Rng;

/// Launches of each kernel, of random shapes and on random arguments.
const LAUNCHES: u64 = 6;
/// Time that a launch may take, since random arguments make loops that hardly end.
const LIMIT: Duration = Duration::from_secs(3);
/// Bytes of device memory, most of which is never touched.
const MEMORY: u64 = 1 << 32;
/// How far two results may be apart, relative to the larger: a function of single precision may be wrong by 16 units in the last
/// place (OpenCL C 3.0, section 7.4), and kernels use several of them, one after the other.
const RELATIVE: f64 = 1e-5;
/// How far results near zero may be apart, which come of subtractions.
const ABSOLUTE: f64 = 1e-5;

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
    near: usize,
    /// Kernels of both kinds that changed no buffer.
    idle: usize,
    /// Kernels that only one of the files has, or whose launches did not end, with the reason.
    left_out: BTreeMap<String, usize>,
    differ: Vec<String>,
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
        "{equal} kernels left the same bytes by both compilers, {near} numbers within the tolerance, {differ} differ; {} of all \
         changed no buffer",
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
    let memory = DeviceMemory::with_capacity(MEMORY).map_err(|e| e.to_string())?;
    let load = |path: &Path| -> Result<Program, String> {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let engine = Engine::with_memory(EngineOptions::default(), memory.clone());
        let program = engine.and_then(|engine| engine.program_from_zebin(&bytes, None));
        program.map_err(|e| format!("{}: {e}", path.display()))
    };
    let (first, second) = (load(old)?, load(new)?);
    for kernel in first.kernels() {
        let name = format!("{} `{}`", old.display(), kernel.name());
        let Ok(other) = second.kernel(kernel.name()) else {
            let why = "the second compiler's file has no such kernel";
            let mut tally = tally.lock().map_err(|e| e.to_string())?;
            *tally.left_out.entry(why.to_owned()).or_default() += 1;
            continue;
        };
        let (mut near, mut wrote) = (false, false);
        let mut problem = None;
        for seed in 0..LAUNCHES {
            match launches(kernel, other, &memory, seed) {
                Ok(Match::Equal { changed }) => wrote |= changed,
                Ok(Match::Near) => (near, wrote) = (true, true),
                Ok(Match::Differs(what)) => {
                    problem = Some(Ok(what));
                    break;
                }
                Err(why) => {
                    problem = Some(Err(why));
                    break;
                }
            }
        }
        let mut tally = tally.lock().map_err(|e| e.to_string())?;
        match problem {
            Some(Ok(_)) if let Some(why) = explained(kernel) => {
                *tally.left_out.entry(why.to_owned()).or_default() += 1;
            }
            Some(Ok(what)) => {
                eprintln!("{name}: {what}");
                tally.differ.push(name);
            }
            Some(Err(why)) => *tally.left_out.entry(why).or_default() += 1,
            None if near => tally.near += 1,
            None => tally.equal += 1,
        }
        tally.idle += usize::from(!wrote);
    }
    Ok(())
}

fn explained(kernel: &Kernel) -> Option<&'static str> {
    let row = EXPLAINED.iter().find(|(name, _)| *name == kernel.name());
    row.map(|(_, why)| *why)
}

/// How results of a launch by both compilers compare.
enum Match {
    Equal {
        /// Whether a buffer was changed.
        changed: bool,
    },
    Near,
    Differs(String),
}

/// One launch by both. Errors say why there is nothing to compare.
fn launches(old: &Kernel, new: &Kernel, memory: &DeviceMemory, seed: u64) -> Result<Match, String> {
    let recipe = Recipe::with_addresses(old, &mut Rng::new(seed));
    let mut recipe = recipe.ok_or("images that a random launch cannot be given")?;
    recipe.limit = LIMIT;
    let buffers = recipe.allocate(memory).map_err(|e| e.to_string())?;
    let mut results = Vec::new();
    for kernel in [old, new] {
        match recipe.run(kernel, &buffers) {
            Ok((LaunchStatus::Completed, bytes)) => results.push(bytes),
            Ok((status, _)) => return Err(format!("a launch ended as {status:?}")),
            Err(e) if results.is_empty() => return Err(e.to_string()),
            // Version 22.43 passes a `half` in four bytes.
            Err(e) if e.exit_class() == Class::Input => {
                return Err("the second compiler's kernel takes other arguments".to_owned());
            }
            Err(e) => {
                return Ok(Match::Differs(format!("only the second is refused: {e}")));
            }
        }
    }
    let mut found = Match::Equal {
        changed: results[0] != recipe.contents,
    };
    for (n, (a, b)) in results[0].iter().zip(&results[1]).enumerate() {
        if a == b {
            continue;
        }
        let element = element(old, &recipe, n);
        match apart(element, a, b) {
            None => found = Match::Near,
            Some(at) => {
                let size = element.map_or(4, Element::bytes);
                let at = at / size * size;
                let (a, b) = (&a[at..at + size], &b[at..at + size]);
                return Ok(Match::Differs(format!(
                    "seed {seed}, {recipe}: byte {at:#x} of buffer {n}: {a:02x?} and {b:02x?}"
                )));
            }
        }
    }
    Ok(found)
}

/// A type of floating-point numbers.
#[derive(Clone, Copy)]
enum Element {
    Half,
    Single,
    Double,
}

impl Element {
    fn bytes(self) -> usize {
        match self {
            Element::Half => 2,
            Element::Single => 4,
            Element::Double => 8,
        }
    }

    fn value(self, bytes: &[u8]) -> f64 {
        match (self, bytes) {
            (Element::Half, &[a, b]) => half(u16::from_le_bytes([a, b])),
            (Element::Single, &[a, b, c, d]) => f32::from_le_bytes([a, b, c, d]).into(),
            (Element::Double, bytes) => bytes.try_into().map_or(f64::NAN, f64::from_le_bytes),
            _ => f64::NAN,
        }
    }

    /// Precision relative to that of single precision.
    fn coarser(self) -> f64 {
        match self {
            Element::Half => f64::from(1 << 13),
            Element::Single | Element::Double => 1.0,
        }
    }
}

/// The value of a number of 16 bits.
fn half(bits: u16) -> f64 {
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
    let magnitude = match exponent {
        0 => fraction * f64::powi(2.0, -24),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1024.0 + fraction) * f64::powi(2.0, exponent - 25),
    };
    if bits >> 15 == 1 {
        -magnitude
    } else {
        magnitude
    }
}

/// What a buffer holds by the type of its argument; none for integers.
fn element(kernel: &Kernel, recipe: &Recipe, buffer: usize) -> Option<Element> {
    let place = recipe
        .given
        .iter()
        .find(|(_, given)| given.buffer() == Some(buffer));
    let Some((Place::Argument(index), _)) = place else {
        return None;
    };
    let argument = kernel.arguments().iter().find(|a| a.index == *index)?;
    match (argument.kind, argument.type_name.as_str()) {
        (ArgKind::Image { .. }, _) => None,
        (_, name) if name.contains("half") => Some(Element::Half),
        (_, name) if name.contains("float") => Some(Element::Single),
        (_, name) if name.contains("double") => Some(Element::Double),
        _ => None,
    }
}

/// The first byte of the first number that is not near the other, if there is one.
fn apart(element: Option<Element>, a: &[u8], b: &[u8]) -> Option<usize> {
    let Some(element) = element else {
        return (0..a.len()).find(|&at| a[at] != b[at]);
    };
    let size = element.bytes();
    let far = |(x, y): (&[u8], &[u8])| {
        let (p, q) = (element.value(x), element.value(y));
        let room = (RELATIVE * p.abs().max(q.abs())).max(ABSOLUTE) * element.coarser();
        x != y && !(p.is_nan() && q.is_nan()) && (p - q).abs().total_cmp(&room).is_gt()
    };
    let at = a.chunks_exact(size).zip(b.chunks_exact(size)).position(far);
    at.map(|n| n * size)
}
