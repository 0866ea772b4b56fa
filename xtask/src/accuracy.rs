//! Measures the math instructions and writes the tables of `docs/accuracy.md`.
//!
//! All 2^32 arguments of `f`, all 2^16 of `hf`, and 2^27 pairs for `pow`. Lines of functions that are not asked for
//! stay as they are.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use visa_fuzzing::accuracy::{
    BATCH, FUNCTIONS, Format, Function, Rig, Worst, measure, pairs, ranges, within,
};
use visa_jit::EngineOptions;
use visa_test_common::Rng;

/// Pairs for `pow`.
const PAIRS: u64 = 1 << 27;
/// Lines of the document between which the tables are.
const MARKS: [&str; 2] = [
    "<!-- written by `cargo run --release -p xtask -- accuracy` -->",
    "<!-- end -->",
];

/// Arguments of a batch by its number, as bits: all first ones, all second ones.
type Batch = Box<dyn Fn(u64) -> Vec<Vec<u32>> + Sync>;

/// Number of arguments, and those of a batch.
fn arguments(f: &Function, format: Format) -> (u64, Batch) {
    let first = |batch: u64| batch * BATCH as u64;
    match (f.arguments, format) {
        (1, _) => (
            if format == Format::Half {
                1 << 16
            } else {
                1 << 32
            },
            Box::new(move |b| vec![(first(b)..).take(BATCH).map(|x| x as u32).collect()]),
        ),
        // An odd factor spreads the pairs over all of them, each taken once at most.
        (_, Format::Half) => (
            PAIRS,
            Box::new(move |b| {
                let pairs = (first(b)..).take(BATCH);
                let pairs = pairs.map(|p| (p as u32).wrapping_mul(0x9e37_79b1));
                let (x, y) = pairs.map(|p| (p >> 16, p & 0xffff)).unzip();
                vec![x, y]
            }),
        ),
        _ => (PAIRS, Box::new(|b| pairs(&mut Rng::new(b), BATCH))),
    }
}

/// Measures a function on all processors.
fn sweep(f: &Function, format: Format) -> Result<Vec<Worst>, String> {
    let (count, batch) = arguments(f, format);
    let batches = count / BATCH as u64;
    let next = AtomicU64::new(0);
    let sum = Mutex::new(Ok(vec![Worst::default(); ranges(f, format).len()]));
    let work = || -> Result<Vec<Worst>, visa_jit::Error> {
        let rig = Rig::new(EngineOptions::default(), f, format)?;
        let mut mine = vec![Worst::default(); ranges(f, format).len()];
        loop {
            let b = next.fetch_add(1, Ordering::Relaxed);
            if b >= batches {
                return Ok(mine);
            }
            let seen = measure(&rig, f, &batch(b))?;
            mine.iter_mut().zip(&seen).for_each(|(m, s)| m.add(s));
        }
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|s| {
        for _ in 0..threads {
            s.spawn(|| {
                let mine = work();
                let mut sum = sum.lock().expect("no panic");
                match (&mut *sum, mine) {
                    (Ok(all), Ok(mine)) => all.iter_mut().zip(&mine).for_each(|(a, m)| a.add(m)),
                    (sum, Err(e)) => *sum = Err(e.to_string()),
                    _ => {}
                }
            });
        }
    });
    sum.into_inner().expect("no panic")
}

/// One line of a table.
fn row(f: &Function, format: Format, i: usize, w: &Worst) -> String {
    let range = &ranges(f, format)[i];
    let number = |bits: u32| format!("{:e} (`{bits:#x}`)", format.number(bits));
    let at: Vec<String> = w.at[..f.arguments].iter().map(|&b| number(b)).collect();
    let (ulp, at, absolute, bound) = if range.bound.is_finite() {
        let at = if w.ulp > 0.0 {
            at.join(", ")
        } else {
            "-".into()
        };
        // Of results of any size it says nothing.
        let absolute = if w.magnitude < 200.0 {
            format!("{:.1e}", w.absolute)
        } else {
            "-".into()
        };
        (
            format!("{:.4}", w.ulp),
            at,
            absolute,
            format!("{}", range.bound),
        )
    } else {
        (
            format!("results within ±{}", w.magnitude),
            "-".into(),
            "-".into(),
            "±1".into(),
        )
    };
    let name = range.name.replace("abs", "\\|x\\|");
    format!(
        "| `{}` | {name} | {} | {ulp} | {at} | {absolute} | {bound} |\n",
        f.name, w.count
    )
}

/// Titles of the tables.
const TABLES: [(&str, Format); 2] = [("f", Format::Single), ("hf", Format::Half)];

const HEAD: &str = "| function | arguments | tried | worst, ulp | at | largest absolute error | promised |\n\
                    |---|---|---|---|---|---|---|\n";

/// Measures what is asked for, as `exp` or `hf:exp`, or everything; writes the document after each function.
pub fn run(wanted: &[String]) -> Result<(), String> {
    let asked = |title: &str, name: &str| {
        let full = format!("{title}:{name}");
        wanted.is_empty() || wanted.iter().any(|w| *w == name || *w == full)
    };
    let mut broken = Vec::new();
    for (title, format) in TABLES {
        for f in FUNCTIONS.iter().filter(|f| asked(title, f.name)) {
            let mut rows = String::new();
            for (i, w) in sweep(f, format)?.iter().enumerate() {
                let row = row(f, format, i, w);
                eprint!("{title} {row}");
                if !within(w, &ranges(f, format)[i]) {
                    broken.push(row.clone());
                }
                rows += &row;
            }
            write(title, f.name, &rows).map_err(|e| e.to_string())?;
        }
    }
    if broken.is_empty() {
        Ok(())
    } else {
        Err(format!("bounds do not hold:\n{}", broken.concat()))
    }
}

/// The tables with other lines for one function.
fn replaced(tables: &str, title: &str, name: &str, rows: &str) -> String {
    let mut out = String::new();
    for (t, _) in TABLES {
        let old = tables
            .split("### `")
            .find_map(|s| s.strip_prefix(&format!("{t}`")));
        out += &format!("\n### `{t}`\n\n{HEAD}");
        for f in FUNCTIONS {
            if (t, f.name) == (title, name) {
                out += rows;
                continue;
            }
            let start = format!("| `{}` |", f.name);
            let lines = old.unwrap_or("").lines().filter(|l| l.starts_with(&start));
            lines.for_each(|l| out = format!("{out}{l}\n"));
        }
    }
    out
}

/// Puts lines of a function between the document's marks.
fn write(title: &str, name: &str, rows: &str) -> std::io::Result<()> {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/accuracy.md"));
    let text = std::fs::read_to_string(path)?;
    let [start, end] = MARKS;
    let parts = text.split_once(start).and_then(|(before, rest)| {
        let (tables, after) = rest.split_once(end)?;
        Some((before, tables, after))
    });
    let Some((before, tables, after)) = parts else {
        return Err(std::io::Error::other("docs/accuracy.md lost its marks"));
    };
    let tables = replaced(tables, title, name, rows);
    std::fs::write(path, format!("{before}{start}\n{tables}\n{end}{after}"))
}
