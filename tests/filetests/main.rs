//! Runs every `tests/filetests/**/*.visaasm`, each as a test of its own: on each platform and under each out-of-bounds policy that
//! the file names, through the library, against what its directives expect (`tests/filetests/README.md`).
//!
//! `cargo test --test filetests scatter_edge` runs those with such a name.

#[path = "driver/data.rs"]
mod data;
#[path = "driver/run.rs"]
mod run;
#[path = "driver/spec.rs"]
mod spec;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use libtest_mimic::{Arguments, Failed, Trial};
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

thread_local! {
    /// The engines of a thread that runs tests. A file does not see what others left in device memory.
    static ENGINES: run::Engines = run::Engines::default();
}

/// Runs one file.
fn file(name: &str, path: &Path) -> Result<(), Failed> {
    let text = std::fs::read_to_string(path)?;
    let spec = spec::parse(&text)?;
    let mut failures = Vec::new();
    let assertions = ENGINES.with(|engines| run::file(name, &text, &spec, engines, &mut failures));
    if !failures.is_empty() {
        return Err(failures.join("\n").into());
    }
    if assertions == 0 {
        return Err("it expects nothing".into());
    }
    Ok(())
}

fn main() -> ExitCode {
    let root = visa_test_common::root().join("tests/filetests");
    let mut all = Vec::new();
    files(&root, &mut all);
    all.sort();
    assert!(!all.is_empty(), "no files in {}", root.display());
    let mut trials = vec![Trial::test("every_full_opcode_has_run_lines", {
        let all = all.clone();
        move || every_full_opcode_has_run_lines(&all)
    })];
    trials.extend(all.into_iter().map(|path| {
        let name = path.strip_prefix(&root).unwrap_or(&path).with_extension("");
        let name = name.display().to_string();
        Trial::test(name.clone(), move || file(&name, &path))
    }));
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
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

fn every_full_opcode_has_run_lines(all: &[PathBuf]) -> Result<(), Failed> {
    let mut missing = Vec::new();
    for engine in run::Engines::default().names() {
        let mut lines = BTreeMap::new();
        for path in all {
            run_lines(path, engine, &mut lines);
        }
        for op in Opcode::ALL {
            let n = lines.get(op).copied().unwrap_or(0);
            if op.info().status == Status::Full && n < RUN_LINES {
                missing.push(format!("{engine}: `{}` has {n}", op.mnemonic()));
            }
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    Err(format!("fewer than {RUN_LINES} run lines:\n{}", missing.join("\n")).into())
}
