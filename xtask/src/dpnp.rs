//! Runs the tests of `dpctl` and `dpnp`, as PyPI's packages carry them, on the virtual GPU, file by file, and prints a table.
//!
//! Each test may take [`LIMIT`] seconds. One that takes longer, or ends the process, is a hang: the file runs again without it. What
//! is compiled is kept by the driver, so that a second run is fast.
//!
//! Does not compare with other devices, and does not tell why a test fails: the output of each file is kept in `target/dpnp`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::current_ocloc;

/// Seconds that a test may take.
const LIMIT: u32 = 60;
/// Seconds that a file may take, for tests that cannot even be stopped.
const FILE_LIMIT: u32 = 7200;
/// Tests of a file that are left out one after the other.
const MOST_HANGS: usize = 8;

/// Names a Python that has the packages; otherwise there is one in `target/sycl`, and made if need be.
const PYTHON_ENV: &str = "VISA_JIT_SYCL_PYTHON";
/// What is installed there. A test of dpctl builds an extension with the last two.
const INSTALLED: [&str; 5] = ["dpnp", "pytest", "pytest-timeout", "Cython", "setuptools"];

/// A few files for a quick look: programs and kernels, memory, queues, NumPy's functions.
const SAMPLE: [&str; 5] = [
    "dpctl/tests/test_sycl_kernel_submit.py",
    "dpctl/tests/test_sycl_program.py",
    "dpctl/tests/test_sycl_queue.py",
    "dpctl/tests/test_sycl_usm.py",
    "dpnp/tests/test_sort.py",
];

/// How tests ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Counts {
    passed: u64,
    failed: u64,
    skipped: u64,
    hangs: Vec<String>,
}

/// Runs all files, those of the sample with `--sample`, or those with one of the arguments in their path.
///
/// # Errors
/// When something is missing, and when a test failed or hung.
pub fn run(arguments: &[String]) -> Result<(), String> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let root = root.canonicalize().map_err(|e| e.to_string())?;
    let tests = Tests {
        command: command()?,
        compiler: match std::env::var_os("VISA_JIT_OCLOC") {
            Some(named) => named.into(),
            None => current_ocloc::program()?,
        },
        python: python(&root)?,
        output: root.join("target/dpnp"),
    };
    std::fs::create_dir_all(&tests.output).map_err(|e| e.to_string())?;
    let packages = tests.packages()?;
    let mut all = Counts::default();
    println!(
        "{:>7} {:>7} {:>7} {:>6} {:>7}  file",
        "passed", "failed", "skipped", "hangs", "s"
    );
    for file in chosen(&packages, arguments)? {
        let from = Instant::now();
        let counts = tests.file(&packages, &file)?;
        let seconds = from.elapsed().as_secs_f64();
        row(&counts, Some(seconds), &file);
        counts
            .hangs
            .iter()
            .for_each(|test| println!("    hangs: {test}"));
        all.add(counts);
    }
    row(&all, None, "in all");
    match all.failed == 0 && all.hangs.is_empty() {
        true => Ok(()),
        false => Err(format!("see {}", tests.output.display())),
    }
}

fn row(counts: &Counts, seconds: Option<f64>, name: &str) {
    let Counts {
        passed,
        failed,
        skipped,
        hangs,
    } = counts;
    let seconds = seconds.map_or_else(String::new, |s| format!("{s:.1}"));
    let hangs = hangs.len();
    println!("{passed:>7} {failed:>7} {skipped:>7} {hangs:>6} {seconds:>7}  {name}");
}

/// The `visa-jit` command of the same profile as this program.
fn command() -> Result<PathBuf, String> {
    let me = std::env::current_exe().map_err(|e| e.to_string())?;
    let command = me.with_file_name("visa-jit");
    match command.is_file() {
        true => Ok(command),
        false => Err(format!(
            "there is no {}: `cargo build -p visa-jit-cli -p visa-jit-opencl` makes it, with `--release` if this program was",
            command.display()
        )),
    }
}

/// The Python of an environment, which is made if there is none.
fn python(root: &Path) -> Result<PathBuf, String> {
    if let Some(named) = std::env::var_os(PYTHON_ENV) {
        return Ok(named.into());
    }
    let environment = root.join("target/sycl");
    let python = environment.join("bin/python");
    if !python.is_file() {
        let mut make = Command::new("python3");
        done(make.args(["-m", "venv"]).arg(&environment))?;
    }
    let mut install = Command::new(&python);
    install.args(["-m", "pip", "install", "--quiet"]);
    done(install.args(INSTALLED))?;
    Ok(python)
}

fn done(command: &mut Command) -> Result<String, String> {
    let called = format!("{command:?}");
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.map_err(|e| format!("{called}: {e}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        false => Err(format!("{called}: {}", output.status)),
    }
}

/// Files of tests below the packages' folder, as paths from there.
fn chosen(packages: &Path, arguments: &[String]) -> Result<Vec<String>, String> {
    if arguments.iter().any(|word| word == "--sample") {
        return Ok(SAMPLE.map(str::to_owned).to_vec());
    }
    let mut found = Vec::new();
    for package in ["dpctl", "dpnp"] {
        gather(packages, &packages.join(package).join("tests"), &mut found)
            .map_err(|e| format!("tests of {package}: {e}"))?;
    }
    let asked = |file: &String| arguments.is_empty() || arguments.iter().any(|a| file.contains(a));
    found.retain(asked);
    found.sort();
    match found.is_empty() {
        true => Err("no file of tests has one of these words in its path".to_owned()),
        false => Ok(found),
    }
}

fn gather(packages: &Path, folder: &Path, found: &mut Vec<String>) -> std::io::Result<()> {
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let name = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        if path.is_dir() {
            gather(packages, &path, found)?;
        } else if name.starts_with("test_") && name.ends_with(".py") {
            let inside = path.strip_prefix(packages).unwrap_or(&path);
            found.push(inside.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

/// What tests are run with.
struct Tests {
    command: PathBuf,
    compiler: PathBuf,
    python: PathBuf,
    output: PathBuf,
}

impl Tests {
    /// The folder that holds the packages.
    fn packages(&self) -> Result<PathBuf, String> {
        let script = "import importlib.util as u, os; print(os.path.dirname(os.path.dirname(u.find_spec('dpctl').origin)))";
        done(Command::new(&self.python).args(["-c", script])).map(PathBuf::from)
    }

    /// Runs a file until no test of it hangs.
    fn file(&self, packages: &Path, file: &str) -> Result<Counts, String> {
        let mut hangs = Vec::new();
        loop {
            let text = self.once(packages, file, &hangs)?;
            if let Some(counts) = summary(&text) {
                return Ok(Counts { hangs, ..counts });
            }
            let last =
                running(&text).ok_or_else(|| format!("{file}: pytest did not begin: {text}"))?;
            if hangs.len() == MOST_HANGS || hangs.iter().any(|test| test == last) {
                return Err(format!(
                    "{file}: too many tests do not end; the last is {last}"
                ));
            }
            hangs.push(last.to_owned());
        }
    }

    /// What pytest says of a file, without some of its tests.
    fn once(&self, packages: &Path, file: &str, without: &[String]) -> Result<String, String> {
        let package = file.split('/').next().unwrap_or_default();
        let mut command = Command::new("timeout");
        command.arg(FILE_LIMIT.to_string()).arg(&self.command);
        command.args(["exec", "--sycl", "--"]).arg(&self.python);
        command.args([
            "-m",
            "pytest",
            "-v",
            "-p",
            "no:cacheprovider",
            "-o",
            "addopts=",
        ]);
        command
            .arg(format!("--timeout={LIMIT}"))
            .arg("--timeout-method=thread");
        command.arg(format!("--confcutdir={package}/tests"));
        command.args(without.iter().map(|test| format!("--deselect={test}")));
        command.arg(file).current_dir(packages);
        command.env("VISA_JIT_OCLOC", &self.compiler);
        let output = command.output().map_err(|e| format!("timeout: {e}"))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let kept = self
            .output
            .join(file.replace('/', "."))
            .with_extension("log");
        let said = String::from_utf8_lossy(&output.stderr);
        std::fs::write(&kept, format!("{text}{said}"))
            .map_err(|e| format!("{}: {e}", kept.display()))?;
        Ok(text)
    }
}

impl Counts {
    fn add(&mut self, other: Counts) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.skipped += other.skipped;
        self.hangs.extend(other.hangs);
    }
}

/// The last line of pytest's output; none if it did not come to it.
fn summary(text: &str) -> Option<Counts> {
    let line = text.lines().rev().find(|line| line.starts_with("==="))?;
    let (all, _) = line.trim_matches(['=', ' ']).rsplit_once(" in ")?;
    let mut counts = Counts::default();
    for part in all.split(", ") {
        let (number, what) = part.split_once(' ')?;
        match (number.parse::<u64>(), what) {
            // Expected failures are what their tests want.
            (Ok(n), "passed" | "xfailed") => counts.passed += n,
            (Ok(n), "failed" | "error" | "errors") => counts.failed += n,
            (Ok(n), "skipped") => counts.skipped += n,
            (Ok(_), _) => {}
            // A file without tests.
            (Err(_), _) => return (all == "no tests ran").then(Counts::default),
        }
    }
    Some(counts)
}

/// The test that was running when the output ended.
fn running(text: &str) -> Option<&str> {
    let mut lines = text.lines().rev();
    let line = lines.find(|line| line.contains(".py::"))?;
    // Names of parameters may have blanks.
    Some(line.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn summaries_are_counted() {
        let text = "a.py::b PASSED\n==== 3 passed, 2 skipped, 1 deselected, 1 xfailed in 5.2s (0:00:05) ====\n";
        let counts = Counts {
            passed: 4,
            skipped: 2,
            ..Counts::default()
        };
        assert_eq!(summary(text), Some(counts));
        let failed = summary("=== 1 failed, 2 errors, 7 warnings in 1.0s ===").unwrap();
        assert_eq!((failed.failed, failed.passed), (3, 0));
        let none = summary("=== no tests ran in 0.1s ===");
        assert_eq!(none, Some(Counts::default()));
        assert_eq!(summary("=== test session starts ===\na.py::b "), None);
    }

    #[test]
    fn the_last_test_is_the_one_that_hangs() {
        let text = "=== test session starts ===\na.py::b[x y] PASSED [ 50%]\na.py::C::d[1 - 2] \n+++ Timeout +++\n";
        assert_eq!(running(text), Some("a.py::C::d[1 - 2]"));
        assert_eq!(running("nothing"), None);
    }
}
