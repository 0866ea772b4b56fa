//! `run --perf` under `perf record`; skipped where there is no perf or it may not record.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::OnceLock;

use object::read::{File, Object as _, ObjectSection as _, ObjectSymbol as _};

use super::*;
use visa_test_common::full;

fn perf(dir: &Path, args: &[&str]) -> Option<Output> {
    // Its cache of files is in the home directory.
    let mut command = Command::new("perf");
    command.args(args).env("HOME", dir).current_dir(dir);
    command.output().ok()
}

fn text(output: &Output) -> String {
    let all = [&output.stdout[..], &output.stderr].concat();
    String::from_utf8_lossy(&all).into_owned()
}

/// Why perf cannot record here; tried once for all tests.
fn refused() -> Option<&'static str> {
    static REFUSED: OnceLock<Option<String>> = OnceLock::new();
    let refused = REFUSED.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let args = "record --no-bpf-event -e cpu-clock:u -o try.data true";
        let args: Vec<_> = args.split(' ').collect();
        match perf(dir.path(), &args) {
            None => Some("perf is not installed".to_owned()),
            Some(output) if !output.status.success() => Some(text(&output)),
            Some(_) => None,
        }
    });
    refused.as_deref()
}

/// Records a run; gives what was recorded as `perf report` shows it, a line a function.
fn recorded(dir: &Path, backend: BackendKind, way: &str) -> String {
    let zebin = concat!(
        concat!(env!("CARGO_MANIFEST_DIR"), "/.."),
        "/tests/kernels/bin/skl/mandelbrot.zebin"
    );
    let way = format!("--perf={way}");
    let mut args = vec!["record", "-k", "mono", "-o", "perf.data"];
    // Not the system's part, whose symbols perf would read.
    args.extend(["-e", "cpu-clock:u"]);
    // No copies of the program and its libraries, which are not asked for later; and not a second of waiting at the end.
    args.extend(["--no-buildid-cache", "--no-bpf-event"]);
    args.extend(["--", env!("CARGO_BIN_EXE_visa-jit"), "run", zebin]);
    args.extend([
        "--kernel",
        "mandelbrot",
        "--global",
        "256,256",
        "--local",
        "16",
    ]);
    args.extend(["--arg", "zero:262144", "--arg", "f32:-2", "--arg", "f32:-1"]);
    args.extend([
        "--arg",
        "f32:0.01",
        "--arg",
        "f32:0.008",
        "--arg",
        "i32:256",
    ]);
    args.extend([
        "--arg",
        "i32:1000",
        "--threads",
        "1",
        "--repeat",
        if full() { "15" } else { "8" },
        "--no-cache",
    ]);
    args.extend(["--backend", backend.name(), &way, "--tools-dir", "."]);
    let output = perf(dir, &args).unwrap();
    assert!(output.status.success(), "{}", text(&output));
    report(dir, "perf.data")
}

fn report(dir: &Path, data: &str) -> String {
    let args = "report --stdio --no-demangle --sort dso,symbol -i";
    let args: Vec<_> = args.split(' ').chain([data]).collect();
    text(&perf(dir, &args).unwrap())
}

/// The share of a function in percent, and the first word of the file that it is in. Columns after the symbol differ.
fn share(report: &str, symbol: &str) -> Option<(f64, String)> {
    let line = report
        .lines()
        .map(|l| l.split_whitespace().collect::<Vec<_>>())
        .find(|words| words.windows(2).any(|pair| pair == ["[.]", symbol]))?;
    let share = line[0].strip_suffix('%')?.parse().ok()?;
    Some((share, line[1].to_owned()))
}

#[test]
fn perf_sees_kernels() {
    let dir = tempfile::tempdir().unwrap();
    if let Some(why) = refused() {
        eprintln!("skipped: {why}");
        return;
    }
    for backend in backends() {
        let report = recorded(dir.path(), backend, "map");
        let (share, _) = share(&report, "mandelbrot").unwrap_or_else(|| panic!("{report}"));
        assert!(share > 30.0, "{backend:?}\n{report}");
    }
}

#[test]
fn perf_takes_jitdumps() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    if let Some(why) = refused() {
        eprintln!("skipped: {why}");
        return;
    }
    for backend in backends() {
        recorded(dir, backend, "jitdump");
        let output = perf(
            dir,
            &["inject", "--jit", "-i", "perf.data", "-o", "jit.data"],
        )
        .unwrap();
        assert!(output.status.success(), "{}", text(&output));
        let report = report(dir, "jit.data");
        let (share, file) = share(&report, "mandelbrot").unwrap_or_else(|| panic!("{report}"));
        assert!(share > 30.0, "{backend:?}\n{report}");
        // The file that perf made of the dump has code, symbol and lines.
        let bytes = fs::read(dir.join(file)).unwrap();
        let elf = File::parse(&*bytes).unwrap();
        assert!(elf.symbols().any(|s| s.name() == Ok("mandelbrot")));
        let lines = elf.section_by_name(".debug_line").unwrap();
        let name = b"mandelbrot.visaasm\0";
        let lines = lines.data().unwrap();
        assert!(lines.windows(name.len()).any(|w| w == name));
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|e| e == "dump" || e == "so") {
                fs::remove_file(path).unwrap();
            }
        }
    }
}

#[test]
fn the_interpreter_has_no_code_to_profile() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_visa-jit"));
    command.args([
        "run",
        "x.zebin",
        "--global",
        "1",
        "--perf",
        "--backend",
        "interp",
    ]);
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output);
    assert!(
        message.contains("--perf is about machine code"),
        "{message}"
    );
}
