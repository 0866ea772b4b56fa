//! Packages of PyPI with their own tests, in an environment below `target/clients`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::bench::{Bench, Case};

/// What the tests need besides the package; the last five are for its source, whose tests run.
const TOOLS: [&str; 10] = [
    "pytest",
    "pytest-timeout",
    "numpy",
    "mako",
    "setuptools",
    "scikit-build-core",
    "nanobind",
    "cmake",
    "ninja",
    "hatchling",
];

/// What a package needs in a version that it does not ask for itself.
const PINS: [(&str, &str); 1] = [
    // loopy 2025.2 uses methods that later versions of islpy have under other names.
    ("loopy", "islpy==2025.2.5"),
];

/// A package with its tests.
struct Suite {
    package: &'static str,
    folder: &'static str,
    /// Files of a short run.
    short: &'static [&'static str],
    /// Files that are left out.
    without: &'static [&'static str],
    /// Tests that are left out.
    deselected: &'static [&'static str],
    /// Time limit of one test.
    test_seconds: u32,
    /// For all.
    seconds: u32,
}

/// The environment's Python, which may not be there.
pub fn interpreter(bench: &Bench) -> PathBuf {
    bench.folder.join("python/bin/python")
}

/// Makes the environment, with the package and its source.
pub fn install(bench: &Bench, package: &'static str) -> Result<(), String> {
    let python = interpreter(bench);
    if !python.is_file() {
        let environment = bench.folder.join("python");
        command(
            Command::new("python3")
                .args(["-m", "venv"])
                .arg(environment),
        )?;
    }
    let pip = || {
        let mut pip = Command::new(&python);
        pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]);
        pip
    };
    let pins = PINS.iter().filter(|(of, _)| *of == package);
    command(
        pip()
            .arg("install")
            .args(TOOLS)
            .arg(package)
            .args(pins.map(|(_, version)| version)),
    )?;
    let version = bench.version(super::Package::Python(package));
    let version = version.ok_or("it is not there after it was installed")?;
    if source(bench, package).is_some() {
        return Ok(());
    }
    // Pip asks the source for its version, which takes what builds it.
    let bin = bench.folder.join("python/bin");
    let path = std::env::var("PATH").unwrap_or_default();
    command(
        pip()
            .args([
                "download",
                "--no-deps",
                "--no-build-isolation",
                "--no-binary",
                ":all:",
            ])
            .arg(format!("{package}=={version}"))
            .current_dir(&bench.folder)
            .env("PATH", format!("{}:{path}", bin.display())),
    )?;
    let archive = bench.folder.join(format!("{package}-{version}.tar.gz"));
    command(
        Command::new("tar")
            .arg("xf")
            .arg(archive)
            .current_dir(&bench.folder),
    )
}

fn command(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|e| format!("{command:?}: {e}"))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    Err(format!("{command:?}: {said}"))
}

/// The unpacked source of the version that is installed.
fn source(bench: &Bench, package: &str) -> Option<PathBuf> {
    let entries = fs::read_dir(&bench.folder).ok()?;
    let mut paths = entries.filter_map(|e| Some(e.ok()?.path()));
    paths.find(|p| {
        let name = p.file_name().and_then(|n| n.to_str()).unwrap_or_default();
        p.is_dir() && name.starts_with(&format!("{package}-"))
    })
}

pub fn pyopencl(bench: &Bench) -> Result<Vec<Case>, String> {
    let suite = Suite {
        package: "pyopencl",
        folder: "test",
        short: &["test_wrapper.py"],
        without: &[],
        deselected: &[],
        test_seconds: 120,
        seconds: 2 * 3600,
    };
    suite.run(bench)
}

pub fn loopy(bench: &Bench) -> Result<Vec<Case>, String> {
    let suite = Suite {
        package: "loopy",
        folder: "test",
        short: &[],
        // The parser of Fortran is a package of its own.
        without: &["test_fortran.py", "test_numa_diff.py", "test_sem_reagan.py"],
        // loopy computes the reference by one work-item: for a GPU's sizes of matrices 8.2 billion reads of images, one after the other.
        deselected: &[
            "test/test_linalg.py::test_magma_fermi_matrix_mul",
            "test/test_linalg.py::test_image_matrix_mul",
        ],
        // Tests of its target for processors compile with `gcc -O3` for minutes.
        test_seconds: 600,
        seconds: 3 * 3600,
    };
    suite.run(bench)
}

impl Suite {
    fn run(&self, bench: &Bench) -> Result<Vec<Case>, String> {
        let source = source(bench, self.package)
            .ok_or_else(|| format!("no source of {}; run with --install", self.package))?;
        let files = self.files(&source, bench.short)?;
        let python = interpreter(bench).display().to_string();
        let limit = format!("--timeout={}", self.test_seconds);
        let mut command = vec![
            python.as_str(),
            "-m",
            "pytest",
            "-q",
            "-rfE",
            "-p",
            "no:cacheprovider",
            "--tb=short",
            &limit,
        ];
        command.extend(self.deselected.iter().flat_map(|&t| ["--deselect", t]));
        command.extend(files.iter().map(String::as_str));
        let said = bench.run(
            self.package,
            self.seconds,
            true,
            &source.join(self.folder),
            &command,
        )?;
        let cases = cases(&said.out);
        if cases.is_empty() {
            return Err(format!(
                "{} did not come to its end: {}",
                self.package,
                said.err.trim()
            ));
        }
        Ok(cases)
    }

    fn files(&self, source: &Path, short: bool) -> Result<Vec<String>, String> {
        if short {
            return Ok(self.short.iter().map(|&f| f.to_owned()).collect());
        }
        let folder = source.join(self.folder);
        let entries = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let names = entries.filter_map(|e| e.ok()?.file_name().into_string().ok());
        let mut names: Vec<String> = names
            .filter(|n| {
                n.starts_with("test_") && n.ends_with(".py") && !self.without.contains(&n.as_str())
            })
            .collect();
        names.sort();
        Ok(names)
    }
}

/// Reads pytest's summary: lines `FAILED file::test - why`, and at the end `2 failed, 5 passed, 1 skipped in 3s`.
fn cases(said: &str) -> Vec<Case> {
    let Some(last) = said
        .lines()
        .rev()
        .find(|l| l.contains(" in ") && (l.contains("passed") || l.contains("failed")))
    else {
        return Vec::new();
    };
    let words: Vec<&str> = last
        .split([' ', ',', '='])
        .filter(|w| !w.is_empty())
        .collect();
    let count = |what: &str| -> usize {
        let mut pairs = words.windows(2).filter(|w| w[1] == what);
        pairs.next().and_then(|w| w[0].parse().ok()).unwrap_or(0)
    };
    let failed = said.lines().filter_map(|line| {
        let rest = line
            .strip_prefix("FAILED ")
            .or_else(|| line.strip_prefix("ERROR "))?;
        // Parameters, which come in brackets, have the device in them.
        Some(Case::one(rest.split([' ', '[']).next()?, false))
    });
    let mut cases: Vec<Case> = failed.collect();
    cases.push(Case {
        name: "the others".to_owned(),
        passed: count("passed"),
        failed: 0,
        skipped: count("skipped"),
    });
    cases
}
