//! Compilers that crash, hang, refuse or answer, and what is kept of their answers. A script stands in for one, by way of the `visa-jit`
//! command, which has to be built.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use tempfile::TempDir;
use visa_jit::container::OCLOC_ENV;
use visa_jit_opencl::abi::*;
use visa_jit_opencl::core::compiler::{COMMAND_ENV, TIMEOUT_ENV};
use visa_test_common::zebin_path;

use super::builds::{build, log, source};
use super::{Rig, SUCCESS, set};

/// What building comes to in the child, and a part of the log.
const CHILD: &str = "VISA_JIT_TEST_COMPILER";

/// Knows one device. `$FAKE_DOES` says what it does with sources.
const SCRIPT: &str = r#"#!/bin/sh
echo "$$ $@" >>"$FAKE_CALLS"
case $1 in
query) printf '99.1.2' >"$2" ;;
compile)
    if [ "$2" = --help ]; then
        echo '  -device <device_type>    Target device.'
        echo '                           <device_type> can be: skl  or hexadecimal value with 0x prefix'
        exit 0
    fi
    case $FAKE_DOES in
    crash) kill -SEGV $$ ;;
    hang) exec sleep 1000 ;;
    lines)
        case "$*" in
        *' -g '*) kill -SEGV $$ ;;
        *) cp "$FAKE_ZEBIN" out/NAME.bin.bin ;;
        esac
        ;;
    refuse) echo '1:1: error: what is this?'; exit 245 ;;
    *) cp "$FAKE_ZEBIN" out/NAME.bin.bin ;;
    esac
    ;;
esac
"#;

/// The command; none, with a word about it, if it is not built.
fn command() -> Option<PathBuf> {
    let tests = std::env::current_exe().unwrap();
    let folder = tests.parent().and_then(Path::parent);
    let command = folder.expect("tests are in `deps`").join("visa-jit");
    if !command.is_file() {
        let file = command.display();
        eprintln!("skipped: `cargo build -p visa-jit-cli` makes {file}");
        return None;
    }
    Some(command)
}

struct Fake {
    folder: TempDir,
    command: PathBuf,
}

impl Fake {
    fn new() -> Option<Fake> {
        let command = command()?;
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("ocloc");
        fs::write(&script, SCRIPT).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        Some(Fake { folder, command })
    }

    /// Calls of the compiler so far: process and arguments.
    fn calls(&self) -> Vec<String> {
        let text = fs::read_to_string(self.folder.path().join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// Has a process build a program with the compiler, and expects a code and a log.
    fn builds(&self, does: &str, code: cl_int, part: &str) {
        let path = |name| self.folder.path().join(name);
        let output = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "compilers::child", "--quiet", "--nocapture"])
            .env(CHILD, format!("{code} {part}"))
            .env(COMMAND_ENV, &self.command)
            .env(OCLOC_ENV, path("ocloc"))
            .env("VISA_JIT_CACHE_DIR", path("cache"))
            .env("VISA_JIT_DEVICE", "skl")
            .env(TIMEOUT_ENV, if does == "hang" { "0.3" } else { "100" })
            .env(
                "VISA_JIT_CHECK",
                if does == "lines" { "memory" } else { "none" },
            )
            .env("FAKE_CALLS", path("calls"))
            .env("FAKE_DOES", does)
            .env("FAKE_ZEBIN", zebin_path("skl", "saxpy"))
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{does}: {}: {said}", output.status);
    }
}

/// Does what a child was started for. Nothing when the tests run as usual.
#[test]
fn child() {
    let Ok(expected) = std::env::var(CHILD) else {
        return;
    };
    let (code, part) = expected.split_once(' ').unwrap();
    let rig = Rig::of(0, 0);
    let text = CString::new("kernel void saxpy(global float *y) {}").unwrap();
    let program = source(&rig, &text);
    let built = build(program, c"-D A=1");
    let log = log(&rig, program);
    assert_eq!(built.to_string(), code, "{log}");
    assert!(log.contains(part), "{log}");
    // Whatever came of it, the process goes on.
    let program = if built == SUCCESS {
        program
    } else {
        rig.program("saxpy")
    };
    let kernel = rig.kernel(program, "saxpy");
    let (x, y) = (rig.buffer(&[3_f32; 64]), rig.buffer(&[1_f32; 64]));
    assert_eq!(
        [
            set(kernel, 0, &y),
            set(kernel, 1, &x),
            set(kernel, 2, &2_f32)
        ],
        [SUCCESS; 3]
    );
    assert_eq!(rig.launch(kernel, 64, None), SUCCESS);
    assert_eq!(rig.read::<f32>(y, 64), [7.0; 64]);
}

#[test]
fn a_compiler_that_fails_is_a_build_that_fails() {
    let Some(fake) = Fake::new() else { return };
    for (does, part) in [
        ("refuse", "what is this?"),
        ("crash", "signal: 11"),
        ("hang", "did not finish within 300ms"),
    ] {
        fake.builds(does, CL_BUILD_PROGRAM_FAILURE, part);
    }
    // The one that hung is gone as well.
    let last = fake.calls().pop().unwrap();
    let process = Path::new("/proc").join(last.split(' ').next().unwrap());
    // Whoever waits for orphans may be late: one that has ended is a zombie until then.
    let runs = || {
        let state = fs::read_to_string(process.join("stat"));
        state.is_ok_and(|state| !state.contains(") Z "))
    };
    let start = Instant::now();
    while runs() {
        assert!(
            start.elapsed() < Duration::from_secs(10),
            "{last} still runs"
        );
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Reports name lines of the source, for which it is compiled with `-g`. A program is built without them if that fails.
#[test]
fn a_compiler_that_fails_with_lines_is_asked_without() {
    let Some(fake) = Fake::new() else { return };
    fake.builds("lines", SUCCESS, "");
    let calls = fake.calls().into_iter();
    let asked: Vec<bool> = calls
        .filter(|call| call.contains(" compile ") && !call.contains("--help"))
        .map(|call| call.contains(" -g "))
        .collect();
    assert_eq!(asked, [true, false]);
}

/// A second process finds what the first had made, and does not start the compiler; what fails is tried again.
#[test]
fn what_was_compiled_is_kept() {
    let Some(fake) = Fake::new() else { return };
    fake.builds("refuse", CL_BUILD_PROGRAM_FAILURE, "");
    let failed = fake.calls().len();
    fake.builds("answer", SUCCESS, "");
    let calls = fake.calls();
    assert!(calls.len() > failed, "{calls:?}");
    for _ in 0..2 {
        // If it were started, it would crash.
        fake.builds("crash", SUCCESS, "");
    }
    assert_eq!(fake.calls(), calls);
}
