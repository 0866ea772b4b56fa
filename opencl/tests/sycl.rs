//! The programs of `examples/sycl`, with SYCL's runtime in between. They need Python with `dpnp`, Intel's compiler and the `visa-jit`
//! command, and say which is missing when they are skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

use visa_jit::container::OCLOC_ENV;

/// Names a Python that has `dpnp`; otherwise that in `target/sycl`, as the examples' README makes it.
const PYTHON_ENV: &str = "VISA_JIT_SYCL_PYTHON";

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn python() -> PathBuf {
    let usual = || Path::new(ROOT).join("target/sycl/bin/python");
    std::env::var_os(PYTHON_ENV).map_or_else(usual, PathBuf::from)
}

/// The command, which starts the compiler for the driver; and the driver.
fn built() -> (PathBuf, PathBuf) {
    let tests = std::env::current_exe().expect("this test's own file");
    let library = tests.with_file_name("libvisa_jit_opencl.so");
    assert!(library.is_file(), "cargo builds {}", library.display());
    let folder = tests.parent().and_then(Path::parent);
    let command = folder.expect("tests are in `deps`").join("visa-jit");
    (command, library)
}

/// Runs an example; none if something it needs is missing.
fn run(name: &str) -> Option<String> {
    let skipped = |what: &str| {
        eprintln!("{name} skipped: {what}");
        None
    };
    let python = python();
    if !python.is_file() {
        let file = python.display();
        return skipped(&format!(
            "there is no {file}; {PYTHON_ENV} names a Python with dpnp"
        ));
    }
    let (command, library) = built();
    if !command.is_file() {
        let file = command.display();
        return skipped(&format!("`cargo build -p visa-jit-cli` makes {file}"));
    }
    if std::env::var_os(OCLOC_ENV).is_none() {
        return skipped(&format!("{OCLOC_ENV} names no compiler"));
    }
    let mut exec = Command::new(command);
    exec.args(["exec", "--sycl", "--device", "bmg", "--library"]);
    exec.arg(library).arg("--").arg(python);
    let import = |mut exec: Command| {
        let output = exec.args(["-c", "import dpnp"]).output();
        output.is_ok_and(|output| output.status.success())
    };
    let script = Path::new(ROOT).join("examples/sycl").join(name);
    let mut probe = Command::new(exec.get_program());
    probe.args(exec.get_args());
    if !import(probe) {
        return skipped("this Python has no dpnp");
    }
    let output = exec.arg(script).output().expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {text}{said}");
    Some(text)
}

#[test]
fn numpy_runs_on_the_device() {
    if let Some(text) = run("dpnp_tour.py") {
        assert!(text.contains("[visa-jit]"), "{text}");
        assert!(text.contains("linalg.solve: as NumPy"), "{text}");
        assert!(
            text.contains("random.normal: mean and spread fit"),
            "{text}"
        );
    }
}

#[test]
fn a_kernel_of_the_program_runs_through_sycl() {
    if let Some(text) = run("dpctl_kernel.py") {
        assert!(text.contains("65536 of 65536 values are exact"), "{text}");
    }
}
