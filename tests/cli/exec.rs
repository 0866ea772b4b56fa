//! `exec`: a program's environment, its end, and what is told of it. What the driver does is tested with the driver.

use std::fs;
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use super::{Output, command, finish, visa_jit};

/// Any file may stand in for the driver as long as no loader loads it.
const LIBRARY: [&str; 3] = ["exec", "--library", "/bin/sh"];

fn exec(args: &[&str]) -> Output {
    visa_jit(&[&LIBRARY[..], args].concat())
}

/// What a program does by way of the driver: it tells a line.
fn telling(line: &str, args: &[&str]) -> Output {
    let script = format!("echo '{line}' >> \"$VISA_JIT_REPORT\"; exit 3");
    exec(&[args, &["--", "sh", "-c", &script]].concat())
}

#[test]
fn ends_are_passed_on() {
    for (script, code) in [
        ("exit 0", 0),
        ("exit 5", 5),
        ("exit 255", 255),
        ("kill -9 $$", 137),
        ("kill -TERM $$", 143),
    ] {
        let output = exec(&["--", "sh", "-c", script]);
        let said = (output.code, output.stdout.as_str(), output.stderr.as_str());
        assert_eq!(said, (code, "", ""), "{script}");
    }
}

#[test]
fn programs_that_cannot_be_run_are_named() {
    let output = exec(&["--", "/nowhere/program", "x"]);
    assert_eq!(output.code, 127);
    let message = "error: cannot run /nowhere/program: No such file";
    assert!(output.stderr.starts_with(message), "{}", output.stderr);
    let output = exec(&["--", "/etc/passwd"]);
    assert_eq!(output.code, 126);
    assert!(output.stderr.contains("/etc/passwd"), "{}", output.stderr);
    let output = exec(&[]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("CMD"), "{}", output.stderr);
}

/// A copy of the command, alone in a directory, has no driver.
#[test]
fn a_driver_that_is_missing_is_asked_for() {
    let dir = TempDir::new().unwrap();
    let alone = dir.path().join("bin");
    fs::create_dir(&alone).unwrap();
    let alone = alone.join("visa-jit");
    // By another program: no child of another test holds the copy open for writing.
    let mut copy = Command::new("cp");
    copy.arg(env!("CARGO_BIN_EXE_visa-jit")).arg(&alone);
    assert!(copy.status().unwrap().success());
    let ask = || {
        let mut command = Command::new(&alone);
        command.args(["exec", "--", "true"]);
        finish(command)
    };
    let output = ask();
    assert_eq!(output.code, 4);
    for part in [
        "libvisa_jit_opencl.so",
        "cargo build --release -p visa-jit-opencl",
        "--library",
    ] {
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
    // Where packages put it.
    let lib = dir.path().join("lib");
    fs::create_dir(&lib).unwrap();
    fs::write(lib.join("libvisa_jit_opencl.so"), "").unwrap();
    assert_eq!(ask().code, 0);
    let output = visa_jit(&["exec", "--library", "/nowhere/lib.so", "--", "true"]);
    assert_eq!(output.code, 4);
    assert!(output.stderr.contains("/nowhere/lib.so"));
}

#[test]
fn options_become_variables() {
    let args = [
        "--device=skl,pvc",
        "--check=memory",
        "--oob=report",
        "--threads=3",
        "--schedule=7",
        "--suppress=race:sum@bins",
        "--race-same-value",
        "--backtrace",
        "--backend=interp",
        "--tier",
        "--timeout=1.5",
    ];
    let output = exec(&[&args[..], &["--", "env"]].concat());
    assert_eq!(output.code, 0, "{}", output.stderr);
    let has = |line: &str| output.stdout.lines().any(|l| l == line);
    let me = fs::canonicalize(env!("CARGO_BIN_EXE_visa-jit")).unwrap();
    let library = fs::canonicalize("/bin/sh").unwrap();
    for line in [
        "VISA_JIT_DEVICE=skl,pvc".to_owned(),
        "VISA_JIT_OOB=report".to_owned(),
        "VISA_JIT_CHECK=memory".to_owned(),
        "VISA_JIT_THREADS=3".to_owned(),
        "VISA_JIT_SCHEDULE=7".to_owned(),
        "VISA_JIT_SUPPRESS=race:sum@bins".to_owned(),
        "VISA_JIT_RACE_SAME_VALUE=1".to_owned(),
        "VISA_JIT_BACKTRACE=1".to_owned(),
        "VISA_JIT_BACKEND=interp".to_owned(),
        "VISA_JIT_TIER=1".to_owned(),
        "VISA_JIT_TIMEOUT=1.5".to_owned(),
        format!("VISA_JIT_COMMAND={}", me.display()),
        format!("OCL_ICD_VENDORS={}", library.display()),
        format!("OCL_ICD_FILENAMES={}", library.display()),
    ] {
        assert!(has(&line), "{line}: {}", output.stdout);
    }
    for wrong in [
        "--device=voodoo",
        "--oob=maybe",
        "--check=maybe",
        "--threads=0",
        "--schedule=always",
        "--suppress=nothing",
        "--timeout=-1",
    ] {
        let output = exec(&[wrong, "--", "true"]);
        assert_eq!(output.code, 2, "{wrong}");
        let value = wrong.split('=').next_back().unwrap();
        assert!(output.stderr.contains(value), "{}", output.stderr);
    }
}

#[test]
fn variables_are_printed_for_shells() {
    let output = exec(&["--print-env", "--device", "skl"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let script = format!(
        "{}\necho $VISA_JIT_DEVICE $OCL_ICD_FILENAMES",
        output.stdout
    );
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]);
    let library = fs::canonicalize("/bin/sh").unwrap();
    let want = format!("skl {}\n", library.display());
    assert_eq!(finish(shell).stdout, want);
    let output = exec(&["--print-env=plain", "--device", "skl"]);
    assert!(output.stdout.lines().any(|l| l == "VISA_JIT_DEVICE=skl"));
    assert_eq!(exec(&["--print-env", "--", "true"]).code, 2);
}

#[test]
fn the_driver_is_installed() {
    let dir = TempDir::new().unwrap();
    let vendors = dir.path().join("new").join("vendors");
    let output = exec(&["--install", vendors.to_str().unwrap()]);
    assert_eq!(output.code, 0, "{}", output.stderr);
    let icd = vendors.join("visa-jit.icd");
    assert_eq!(output.stdout, format!("{}\n", icd.display()));
    let library = fs::canonicalize("/bin/sh").unwrap();
    let text = format!("{}\n", library.display());
    assert_eq!(fs::read_to_string(icd).unwrap(), text);
    let output = exec(&["--install", "/proc/none"]);
    assert_eq!(output.code, 4);
    assert!(output.stderr.contains("/proc/none"), "{}", output.stderr);
}

#[test]
fn what_happened_is_told_at_the_end() {
    let refused = r#"{"kind":"refused","kernel":"k","why":"no such instruction"}"#;
    let output = telling(refused, &[]);
    assert_eq!(output.code, 3);
    let message = "visa-jit: kernel `k` was refused: no such instruction\n";
    assert_eq!(output.stderr, message);
    let faults = r#"{"kind":"faults","kernel":"k","count":2,"first":[{"text":"there","lane":7}]}"#;
    let dir = TempDir::new().unwrap();
    let report = dir.path().join("report.json");
    let output = telling(faults, &["--report", report.to_str().unwrap()]);
    let message =
        "visa-jit: kernel `k`: 2 access(es) out of bounds in 1 launch(es)\n  there\n  and 1 more\n";
    assert_eq!((output.code, output.stderr.as_str()), (3, message));
    let report: Value = serde_json::from_slice(&fs::read(report).unwrap()).unwrap();
    assert_eq!(report["exit_code"], 3);
    assert_eq!(report["faults"]["k"]["first"][0]["lane"], 7);
    assert_eq!(report["command"][0], "sh");
    assert_eq!(telling("{}", &["--report", "/nowhere/report"]).code, 4);
}

/// A signal for the program goes to the program, whose end is then told.
#[test]
fn signals_reach_the_program() {
    let script = "trap 'exit 9' TERM; echo ready; while :; do sleep 0.01; done";
    let mut running = command(&[&LIBRARY[..], &["--", "sh", "-c", script]].concat());
    let mut child = running.stdout(Stdio::piped()).spawn().unwrap();
    let mut ready = String::new();
    let mut stdout = std::io::BufReader::new(child.stdout.take().unwrap());
    std::io::BufRead::read_line(&mut stdout, &mut ready).unwrap();
    let id = child.id().to_string();
    // A terminal sends this one to both: here the program goes on.
    for signal in ["-INT", "-TERM"] {
        let sent = Command::new("kill").args([signal, &id]).status().unwrap();
        assert!(sent.success());
    }
    assert_eq!(child.wait().unwrap().code(), Some(9));
}

/// The SYCL runtime is told which devices to take, unless somebody chose one, and where its libraries are.
#[test]
fn sycl_is_told_where_the_driver_is() {
    let dir = TempDir::new().unwrap();
    let (bin, lib) = (dir.path().join("bin"), dir.path().join("lib"));
    fs::create_dir(&bin).unwrap();
    fs::create_dir(&lib).unwrap();
    fs::write(lib.join("libsycl.so.9"), "").unwrap();
    let python = bin.join("python");
    std::os::unix::fs::symlink("/bin/sh", &python).unwrap();
    let told = |selector: Option<&str>| {
        let mut command = command(&[&LIBRARY[..], &["--sycl", "--"]].concat());
        command.arg(&python).arg("-c");
        command.arg("echo $ONEAPI_DEVICE_SELECTOR $LD_LIBRARY_PATH");
        command.env_remove("ONEAPI_DEVICE_SELECTOR");
        command.env("LD_LIBRARY_PATH", "/other");
        command.envs(selector.map(|text| ("ONEAPI_DEVICE_SELECTOR", text)));
        finish(command).stdout
    };
    let folders = format!("{}:/other", lib.display());
    assert_eq!(told(None), format!("opencl:gpu {folders}\n"));
    let chosen = Some("opencl:*");
    assert_eq!(told(chosen), format!("opencl:* {folders}\n"));
}

#[test]
fn what_checks_find_is_an_exit_code() {
    let line = r#"{"kind":"faults","kernel":"k","count":9,"first":[{"text":"here","line":3}]}"#;
    let script = |code: u8| format!("echo '{line}' >> \"$VISA_JIT_REPORT\"; exit {code}");
    for (check, program, code) in [(true, 0, 1), (true, 3, 3), (false, 0, 0)] {
        let check: &[&str] = if check { &["--check=barrier"] } else { &[] };
        let output = exec(&[check, &["--", "sh", "-c", &script(program)]].concat());
        assert_eq!(output.code, code, "{}", output.stderr);
    }
    let fine = exec(&["--check=memory", "--", "true"]);
    assert_eq!((fine.code, fine.stderr.as_str()), (0, ""));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("found.sarif");
    for (script, results) in [(script(0), 1), ("true".to_owned(), 0)] {
        let sarif = format!("--sarif={}", file.display());
        let output = exec(&["--check=barrier", &sarif, "--", "sh", "-c", &script]);
        assert_eq!(output.code == 1, results == 1, "{}", output.stderr);
        let text = fs::read_to_string(&file).unwrap();
        let log: serde_json::Value = serde_json::from_str(&text).unwrap();
        let found = log["runs"][0]["results"].as_array().unwrap();
        assert_eq!(found.len(), results);
    }
}

/// The driver tells the text of a program whose kernels have errors, and the page shows it.
#[test]
fn a_page_shows_lines_of_the_programs_source() {
    let lines = [
        r#"{"kind":"source","id":"7a","file":"program.cl","text":"first\n  if (a < b)\nlast"}"#,
        r#"{"kind":"faults","kernel":"k","source":"7a","count":9,"first":[{"text":"here","kind":"race","line":3,"count":9,"source":{"file":"program.cl","line":2}}]}"#,
    ];
    let folder = tempfile::tempdir().unwrap();
    let told = folder.path().join("told");
    fs::write(&told, lines.join("\n") + "\n").unwrap();
    let script = format!("cat '{}' >> \"$VISA_JIT_REPORT\"", told.display());
    let page = folder.path().join("found.html");
    let html = format!("--html={}", page.display());
    let output = exec(&["--check=race", &html, "--", "sh", "-c", &script]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    let page = fs::read_to_string(page).unwrap();
    let marked = "<div class=\"hot\" id=\"s0-2\"><b>2</b>  if (a &lt; b)</div>\n<div class=\"note\"><b>9×</b>race: here</div>";
    assert!(page.contains(marked), "{page}");
}

#[test]
fn all_checks_are_there() {
    for backend in ["interp", "cranelift"] {
        let backend = format!("--backend={backend}");
        let fine = exec(&["--check=barrier,init", &backend, "--", "true"]);
        assert_eq!((fine.code, fine.stderr.as_str()), (0, ""));
    }
}
