//! Runs every `filetests/**/*.visaasm`: on each platform and under each out-of-bounds policy that the
//! file names, through the library, against what its directives expect (`filetests/README.md`).
//!
//! `FILETEST=part-of-a-path` restricts the run to some files.

#[path = "filetests/driver/data.rs"]
mod data;
#[path = "filetests/driver/run.rs"]
mod run;
#[path = "filetests/driver/spec.rs"]
mod spec;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use visa_jit::front::text::parse_all;
use visa_jit::isa::{Opcode, Status};

fn files(dir: &Path, out: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files(&path, out);
        } else if path.extension().is_some_and(|e| e == "visaasm") {
            out.push(path);
        }
    }
}

const WORKERS: usize = 2;

fn every_nth<'a>(
    root: &Path,
    paths: impl Iterator<Item = &'a PathBuf>,
) -> (run::Tally, Vec<String>) {
    let engines = run::Engines::default();
    let mut total = run::Tally::default();
    let mut failures = Vec::new();
    for path in paths {
        let name = path.strip_prefix(root).unwrap().display().to_string();
        let text = std::fs::read_to_string(path).unwrap();
        match spec::parse(&text) {
            Ok(spec) => {
                let tally = run::file(&name, &text, &spec, &engines, &mut failures);
                total.add(tally);
            }
            Err(e) => failures.push(format!("{name}: {e}")),
        }
    }
    (total, failures)
}

#[test]
fn filetests() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests");
    let filter = std::env::var("FILETEST").unwrap_or_default();
    let mut all = Vec::new();
    files(&root, &mut all);
    all.sort();
    all.retain(|f| f.to_string_lossy().contains(&filter));
    let (total, failures) = std::thread::scope(|s| {
        let (all, root) = (&all, &root);
        let workers: Vec<_> = (0..WORKERS)
            .map(|n| s.spawn(move || every_nth(root, all.iter().skip(n).step_by(WORKERS))))
            .collect();
        let mut total = run::Tally::default();
        let mut failures = Vec::new();
        for worker in workers {
            let (tally, failed) = worker.join().unwrap();
            total.add(tally);
            failures.extend(failed);
        }
        failures.sort();
        (total, failures)
    });
    println!(
        "{} files, {} file x platform, {} launches, {} assertions, {} failures",
        all.len(),
        total.platforms,
        total.launches,
        total.assertions,
        failures.len()
    );
    assert!(!all.is_empty(), "no file matches `{filter}`");
    assert!(
        failures.is_empty(),
        "{} failures:\n{}",
        failures.len(),
        failures.join("\n")
    );
}

/// Run lines that every opcode of status `full` has on every engine.
const RUN_LINES: usize = 10;

/// How many run lines each opcode has in a file: expectations, but no more than there are such instructions.
fn run_lines(path: &Path, engine: &str, lines: &mut BTreeMap<Opcode, usize>) {
    let text = std::fs::read_to_string(path).unwrap();
    let spec = spec::parse(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let runs = spec.errors.is_empty();
    if !runs || !(spec.engines.is_empty() || spec.engines.iter().any(|e| e == engine)) {
        return;
    }
    let mut held: BTreeMap<Opcode, usize> = BTreeMap::new();
    let modules = parse_all("file", &text, visa_jit::Versions::Known)
        .unwrap_or_else(|e| panic!("{}: {e:?}", path.display()));
    for inst in modules.iter().flat_map(|m| &m.insts) {
        *held.entry(inst.op).or_default() += 1;
    }
    let faults = usize::from(spec.faults.is_some_and(|f| f.count > 0));
    for (op, count) in held {
        *lines.entry(op).or_default() += count.min(spec.expects.len() + faults);
    }
}

#[test]
fn every_full_opcode_has_run_lines() {
    let mut all = Vec::new();
    files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/filetests"),
        &mut all,
    );
    let mut missing = Vec::new();
    for engine in run::Engines::default().names() {
        let mut lines = BTreeMap::new();
        for path in &all {
            run_lines(path, engine, &mut lines);
        }
        for op in Opcode::ALL {
            let n = lines.get(op).copied().unwrap_or(0);
            if op.info().status == Status::Full && n < RUN_LINES {
                missing.push(format!("{engine}: `{}` has {n}", op.mnemonic()));
            }
        }
    }
    assert!(
        missing.is_empty(),
        "fewer than {RUN_LINES} run lines:\n{}",
        missing.join("\n")
    );
}
