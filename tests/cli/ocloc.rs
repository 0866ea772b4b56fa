//! `ocloc`, names of devices, and how the compiler is called.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;
use tempfile::TempDir;
use visa_test_common::full;

use super::{Output, SAXPY, SAXPY_ARGS, SAXPY_RESULT, command, finish, visa_jit};

const VARIABLE: &str = "VISA_JIT_OCLOC";
/// A program that stands in for the compiler.
const FAKE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..", "/tests/cli/fake-ocloc");
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

fn with(compiler: &str, args: &[&str]) -> Output {
    let mut command = command(args);
    command.env(VARIABLE, compiler);
    finish(command)
}

/// The compiler of this machine, as `ocloc --json` tells it; none, with a word about it, if there is none.
fn installed(test: &str) -> Option<Value> {
    let output = visa_jit(&["ocloc", "--json"]);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    if report["found"] == false {
        assert_eq!(output.code, 4);
        eprintln!(
            "skipped: {test}, because libocloc is not installed (apt-get install intel-opencl-icd)"
        );
        return None;
    }
    assert_eq!(output.code, 0, "{}", output.stderr);
    Some(report)
}

fn names(report: &Value) -> Vec<&str> {
    let devices = report["devices"].as_array().unwrap();
    devices
        .iter()
        .map(|device| device["name"].as_str().unwrap())
        .collect()
}

/// `run` of a source, in a directory of its own; what it leaves there is returned too.
fn run_source(device: &str, set: impl FnOnce(&mut Command)) -> (Output, Vec<String>) {
    let dir = TempDir::new().unwrap();
    let source = format!("{ROOT}/tests/kernels/saxpy.cl");
    let mut args = vec!["run", &source, "--device", device];
    args.extend(SAXPY_ARGS);
    args.extend(["--print", "0=f32:8"]);
    let mut command = command(&args);
    command.current_dir(dir.path());
    set(&mut command);
    let output = finish(command);
    let left = fs::read_dir(dir.path()).unwrap();
    let left = left.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    (output, left.collect())
}

#[test]
fn a_compiler_that_is_missing_is_named() {
    for missing in ["/nowhere/libocloc.so", "/nowhere/ocloc"] {
        let output = with(missing, &["ocloc"]);
        assert_eq!(output.code, 4);
        assert_eq!(output.stdout, "");
        for part in [
            &format!("\n  {missing}: "),
            "No such file",
            "apt install intel-opencl-icd",
            "current-ocloc",
        ] {
            assert!(output.stderr.contains(part), "{part}: {}", output.stderr);
        }
        let output = with(missing, &["ocloc", "--json"]);
        assert_eq!(output.code, 4);
        let report: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(report["found"], false);
        assert_eq!(report["tried"][0]["name"], missing);
        assert_eq!(report["path"], Value::Null);
    }
}

#[test]
fn what_is_not_the_compiler_is_refused() {
    // Every Linux process can load the first, and the second does nothing.
    for (other, part) in [
        ("libc.so.6", "libc.so.6: "),
        ("/bin/true", "names no devices"),
    ] {
        let output = with(other, &["ocloc"]);
        assert_eq!(output.code, 4, "{other}: {}", output.stdout);
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
}

#[test]
fn a_program_says_what_it_offers() {
    let output = with(FAKE, &["ocloc"]);
    let found = std::fs::canonicalize(FAKE).unwrap();
    assert_eq!(output.code, 0, "{}", output.stderr);
    for line in [
        &*format!("{}: a program, named by VISA_JIT_OCLOC", found.display()),
        "version: 99.1.2",
        "  skl      skl",
        "  acm-g10  mtl-h",
        "  pvc      none; this compiler does not know them",
    ] {
        assert!(
            output.stdout.lines().any(|l| l == line),
            "{}",
            output.stdout
        );
    }
    let output = with(FAKE, &["ocloc", "--json"]);
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(report["found"], true);
    assert_eq!(report["path"].as_str(), found.to_str());
    assert_eq!(report["by"], "variable");
    assert_eq!(report["kind"], "program");
    assert_eq!(report["version"], "99.1.2");
    assert_eq!(names(&report), ["skl", "mtl-h"]);
    assert_eq!(report["devices"][1]["class"], "acm-g10");
}

/// The compiler gets the name, not the class; its result is found under any name; what else it makes does not stay.
#[test]
fn names_go_to_the_compiler_as_they_are() {
    let dir = TempDir::new().unwrap();
    let log = dir.path().join("log");
    for (device, passed) in [("mtl-h", "mtl-h"), ("lnl", "lnl-m"), ("acm-g10", "acm-g10")] {
        let (output, left) = run_source(device, |command| {
            command.env(VARIABLE, FAKE).env("FAKE_LOG", &log);
            command.env(
                "FAKE_ZEBIN",
                Path::new(ROOT).join("tests/kernels/bin/acm-g10/saxpy.zebin"),
            );
        });
        let arguments = fs::read_to_string(&log).unwrap();
        let expected = format!(" -device {passed} --format zebin ");
        assert!(arguments.contains(&expected), "{arguments}");
        assert!(left.is_empty(), "{left:?}");
        if device != "lnl" {
            assert_eq!(output.stdout, SAXPY_RESULT, "{}", output.stderr);
        }
    }
}

#[test]
fn unknown_devices_are_refused_by_name() {
    for (device, parts) in [
        (
            "gen13",
            &[
                "unknown device `gen13`",
                "expected skl, tgllp, acm-g10, pvc, bmg or ptl-h",
                "`visa-jit ocloc`",
            ][..],
        ),
        (
            "arl",
            &["unknown device `arl` (there are arl-s, arl-u, arl-h"],
        ),
        ("cri", &["`cri` is for Xe3P, which is not supported"]),
        ("nvl-p", &["`nvl-p` is for Xe3P"]),
        ("xe-hpg", &["`xe-hpg` is several devices"]),
    ] {
        for option in ["--device", "--platform"] {
            let output = visa_jit(&["list", SAXPY, option, device]);
            assert_eq!(output.code, 2, "{device}");
            for part in parts {
                assert!(output.stderr.contains(part), "{}", output.stderr);
            }
        }
    }
}

/// vISA text and zebins take the names too.
#[test]
fn names_stand_for_their_class() {
    let text = "tests/filetests/memory/scatter_edge.visaasm";
    for (device, class) in [
        ("kbl", "skl"),
        ("adl-s", "tgllp"),
        ("arl-h", "acm-g10"),
        ("wcl", "ptl-h"),
    ] {
        let output = visa_jit(&["list", text, "--device", device, "--json"]);
        let listing: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(listing["device"], class, "{device}");
    }
}

#[test]
fn the_installed_compiler_says_what_it_is() {
    let Some(report) = installed("what the installed compiler says") else {
        return;
    };
    let path = report["path"].as_str().unwrap();
    assert!(Path::new(path).is_file(), "{path}");
    let version = report["version"].as_str().unwrap();
    assert!(version.split('.').count() >= 2, "{version}");
    assert!(!names(&report).is_empty());
    let output = visa_jit(&["ocloc"]);
    assert_eq!(output.code, 0);
    assert!(output.stdout.starts_with(path), "{}", output.stdout);
}

/// For one device of each class that is not the class's own.
#[test]
fn the_installed_compiler_compiles_for_other_devices() {
    let Some(report) = installed("sources for devices of a class") else {
        return;
    };
    let offered = names(&report);
    let wanted = [
        "kbl", "glk", "adl-s", "dg1", "acm-g11", "mtl-h", "arl-h", "lnl-m", "wcl",
    ];
    // Of different classes, in a plain run.
    let every = if full() { 1 } else { 4 };
    let known = wanted.into_iter().filter(|name| offered.contains(name));
    for device in known.step_by(every) {
        let (output, left) = run_source(device, |_| {});
        assert_eq!(output.stdout, SAXPY_RESULT, "{device}: {}", output.stderr);
        assert!(left.is_empty(), "{left:?}");
    }
    let others = ["bmg", "skl"]
        .into_iter()
        .filter(|name| !offered.contains(name));
    for device in others {
        let (output, _) = run_source(device, |_| {});
        assert_eq!(output.code, 2, "{}", output.stderr);
        let part = "`visa-jit ocloc` lists the devices that this compiler offers";
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
}
