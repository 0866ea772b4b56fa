//! The command line, from outside: what it prints, what it writes, how it exits.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;
use tempfile::TempDir;
use visa_test_common::full;

#[path = "../ahead_of_time/mod.rs"]
mod ahead_of_time;
mod binary;
#[path = "../c_api/mod.rs"]
mod c_api;
#[path = "../cache/mod.rs"]
mod cache;
mod colours;
mod compare;
mod exec;
mod explain;
mod images;
mod kernels;
mod looks;
mod ocloc;
mod readme;
mod strategies;
#[path = "../tools/mod.rs"]
mod tools;
mod versions;

const SAXPY: &str = "tests/kernels/bin/skl/saxpy.zebin";
/// y = 0 … 7, x = 10, a = 2.
const SAXPY_ARGS: [&str; 10] = [
    "--kernel",
    "saxpy",
    "--global",
    "8",
    "--arg",
    "iota:f32:8",
    "--arg",
    "fill:f32:10:8",
    "--arg",
    "f32:2",
];
/// Runs `saxpy` on eight work-items; the arguments come after.
const SAXPY_OF_8: [&str; 6] = ["run", SAXPY, "--kernel", "saxpy", "--global", "8"];
const SAXPY_RESULT: &str = "arg 0: f32[8] = 20 21 22 23 24 25 26 27\n";

/// A file of the repository, for this process: its working directory is that of the package.
fn repository(path: impl AsRef<Path>) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

struct Output {
    code: i32,
    stdout: String,
    stderr: String,
}

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_visa-jit"));
    command
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    // Results must not depend on what earlier runs left.
    command.env("VISA_JIT_CACHE_DIR", "/dev/null/none");
    command
}

fn finish(mut command: Command) -> Output {
    let output = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    let code = output
        .status
        .code()
        .expect("the program was killed by a signal");
    Output {
        code,
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

fn visa_jit(args: &[&str]) -> Output {
    finish(command(args))
}

fn ok(args: &[&str]) -> Output {
    let output = visa_jit(args);
    assert_eq!(output.code, 0, "{args:?}: {}", output.stderr);
    output
}

fn saxpy(more: &[&str]) -> Vec<&'static str> {
    let more = more.iter().map(|arg| &*String::leak((*arg).to_owned()));
    ["run", SAXPY]
        .into_iter()
        .chain(SAXPY_ARGS)
        .chain(more)
        .collect()
}

#[test]
fn the_interpreter_is_a_backend() {
    let output = ok(&saxpy(&["--backend", "interp", "--print", "0=f32:8"]));
    assert_eq!(output.stdout, SAXPY_RESULT);
    let output = visa_jit(&saxpy(&["--backend", "interp", "--fuel", "3"]));
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("out of fuel"), "{}", output.stderr);
    let output = visa_jit(&saxpy(&["--fuel", "3"]));
    assert_eq!(output.code, 2);
    assert!(output.stderr.contains("add --backend interp"));
}

#[test]
fn traces_go_where_they_are_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let files = ["first", "second"].map(|name| {
        let path = dir.path().join(name);
        let trace = format!("--trace={}", path.display());
        ok(&saxpy(&["--backend", "interp", "--threads", "2", &trace]));
        std::fs::read_to_string(path).unwrap()
    });
    assert!(files[0].starts_with("group 0,0,0 thread 0 line "));
    assert_eq!(files[0], files[1]);
    let output = ok(&saxpy(&[
        "--backend",
        "interp",
        "--trace",
        "--print",
        "0=f32:8",
    ]));
    assert_eq!(output.stdout, SAXPY_RESULT);
    assert!(output.stderr.contains(&files[0]), "{}", output.stderr);
}

#[test]
fn saxpy_on_every_device() {
    for device in ["skl", "tgllp", "acm-g10", "pvc"] {
        let file = format!("tests/kernels/bin/{device}/saxpy.zebin");
        let mut args = vec!["run", &file];
        args.extend(SAXPY_ARGS);
        args.extend(["--print", "0=f32:8"]);
        assert_eq!(ok(&args).stdout, SAXPY_RESULT, "{device}");
    }
}

#[test]
fn repeats_start_from_the_same_contents() {
    let output = ok(&saxpy(&["--print", "0=f32:8", "--repeat", "3"]));
    assert_eq!(output.stdout, SAXPY_RESULT);
    assert!(output.stderr.contains("median of 3"), "{}", output.stderr);
}

#[test]
fn prints_of_every_kind() {
    let output = ok(&saxpy(&[
        "--print", "1=u8:4", "--print", "0=i32:1", "--print", "1=f32:0",
    ]));
    assert_eq!(
        output.stdout,
        "arg 1: u8[4] = 0 0 32 65\narg 0: i32[1] = 1101004800\narg 1: f32[0] =\n"
    );
}

#[test]
fn groups_local_memory_and_threads() {
    let output = ok(&[
        "run",
        "tests/kernels/bin/pvc/reduction.zebin",
        "--kernel",
        "reduce_sum",
        "--global",
        "256",
        "--local",
        "64",
        "--arg",
        "zero:16",
        "--arg",
        "fill:f32:1:256",
        "--arg",
        "local:256",
        "--threads",
        "2",
        "--print",
        "0=f32:4",
    ]);
    assert_eq!(output.stdout, "arg 0: f32[4] = 64 64 64 64\n");
}

#[test]
fn values_of_every_width() {
    for device in ["skl", "tgllp", "acm-g10", "pvc"] {
        let file = format!("tests/kernels/bin/{device}/block_copy.zebin");
        let args = [
            "run", &file, "--kernel", "fill", "--global", "2", "--arg", "zero:2", "--arg",
            "zero:4", "--arg", "zero:8", "--arg", "zero:16", "--arg", "u8:1", "--arg", "u16:2",
            "--arg", "u32:3", "--arg", "u64:4", "--print", "0=u8:2", "--print", "1=u16:2",
            "--print", "2=u32:2", "--print", "3=u64:2",
        ];
        assert_eq!(
            ok(&args).stdout,
            "arg 0: u8[2] = 1 1\narg 1: u16[2] = 2 2\narg 2: u32[2] = 3 3\narg 3: u64[2] = 4 4\n",
            "{device}"
        );
    }
}

#[test]
fn an_empty_range_runs_nothing() {
    let output = ok(&[
        "run", SAXPY, "--kernel", "saxpy", "--global", "0", "--arg", "zero:0", "--arg", "null",
        "--arg", "f32:1", "--json",
    ]);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    assert_eq!(json["groups"], 0);
}

#[test]
fn npy_files_go_out_and_in() {
    let dir = TempDir::new().unwrap();
    let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (npy, raw) = (path("y.npy"), path("y.bin"));
    ok(&saxpy(&[
        "--save",
        &format!("0={npy}"),
        "--save",
        &format!("0={raw}"),
    ]));
    let bytes = fs::read(&npy).unwrap();
    assert!(bytes.starts_with(b"\x93NUMPY"));
    let header = String::from_utf8_lossy(&bytes[..128]).into_owned();
    assert!(
        header.contains("'<f4'") && header.contains("(8,)"),
        "{header}"
    );
    assert_eq!(bytes[bytes.len() - 32..], fs::read(&raw).unwrap());

    for file in [npy, raw] {
        let x = format!("1=file:{file}");
        let args = [
            "run", SAXPY, "--kernel", "saxpy", "--global", "8", "--arg", &x, "--arg", "2=f32:1",
            "--arg", "zero:32", "--print", "0=f32:8",
        ];
        assert_eq!(ok(&args).stdout, SAXPY_RESULT);
    }
}

#[test]
fn contents_come_from_regular_files() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    for file in ["/dev/zero", pipe.to_str().unwrap()] {
        let y = format!("0=file:{file}");
        let arguments = ["--arg", &y, "--arg", "1=iota:f32:8", "--arg", "2=f32:2"];
        let out = visa_jit(&[&SAXPY_OF_8, arguments.as_slice()].concat());
        assert_eq!(out.code, 2, "{file}: {}", out.stderr);
        let says = format!("{file}: not a regular file");
        assert!(out.stderr.contains(&says), "{}", out.stderr);
    }
}

#[test]
fn npy_types_come_from_the_spec_or_the_kernel() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("out.npy");
    let save = format!("0={}", path.display());
    for (spec, dtype) in [
        ("zero:32", "'<f4'"),
        ("iota:u16:16", "'<u2'"),
        ("fill:i8:1:32", "'|i1'"),
    ] {
        let args = [
            "run", SAXPY, "--kernel", "saxpy", "--global", "8", "--arg", spec, "--arg", "zero:32",
            "--arg", "f32:1", "--save", &save,
        ];
        ok(&args);
        let header = fs::read(&path).unwrap();
        let header = String::from_utf8_lossy(&header[..128]).into_owned();
        assert!(header.contains(dtype), "{spec}: {header}");
    }
}

#[test]
fn json_has_exactly_its_keys() {
    let output = ok(&saxpy(&["--json", "--repeat", "4", "--print", "0=f32:1"]));
    assert_eq!(output.stdout.lines().count(), 1);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let mut keys: Vec<_> = json
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect();
    keys.sort_unstable();
    assert_eq!(
        keys,
        [
            "backend",
            "cache",
            "compile_ms",
            "device",
            "faults",
            "groups",
            "kernel",
            "printf",
            "run_ms",
            "simd",
            "threads",
        ]
    );
    assert_eq!(json["kernel"], "saxpy");
    assert_eq!(json["backend"], "cranelift");
    assert_eq!(json["device"], "skl");
    assert_eq!(json["simd"], 32);
    assert_eq!(json["groups"], 1);
    assert_eq!(json["threads"], 1);
    assert_eq!(json["cache"], "miss");
    assert!(json["compile_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(json["run_ms"].as_array().unwrap().len(), 4);
    assert_eq!(json["faults"], Value::Array(Vec::new()));
    assert!(
        output.stderr.contains("arg 0: f32[1] = 20"),
        "{}",
        output.stderr
    );
}

/// Sixteen items on buffers of eight elements.
fn overrun(policy: &str) -> Vec<&str> {
    vec![
        "run",
        SAXPY,
        "--kernel",
        "saxpy",
        "--global",
        "16",
        "--arg",
        "zero:32",
        "--arg",
        "fill:f32:1:16",
        "--arg",
        "f32:1",
        "--print",
        "0=f32:8",
        "--json",
        "--oob",
        policy,
    ]
}

#[test]
fn out_of_bounds_policies() {
    let faults = |output: &Output| {
        let json: Value = serde_json::from_str(&output.stdout).unwrap();
        json["faults"].as_array().unwrap().clone()
    };
    let zero = visa_jit(&overrun("zero"));
    assert_eq!((zero.code, faults(&zero).len()), (0, 0), "{}", zero.stderr);
    assert!(zero.stderr.contains("= 1 1 1 1 1 1 1 1"));

    let report = visa_jit(&overrun("report"));
    assert_eq!((report.code, faults(&report).len()), (0, 16));
    assert!(
        report.stderr.contains("fault: saxpy line "),
        "{}",
        report.stderr
    );
    assert!(report.stderr.contains("= 1 1 1 1 1 1 1 1"));

    let trap = visa_jit(&overrun("trap"));
    assert_eq!(trap.code, 1);
    let first = &faults(&trap)[0];
    assert_eq!(first["access"], "read");
    assert_eq!(first["surface"], 0);
    assert_eq!(first["address"], 32);
    assert_eq!(first["global_id"], serde_json::json!([8, 0, 0]));
    assert!(trap.stderr.contains("fault: saxpy line "));
}

#[test]
fn list_of_one_file() {
    let golden = include_str!("saxpy.list");
    assert_eq!(ok(&["list", SAXPY]).stdout, golden);
}

#[test]
fn list_of_every_file() {
    for device in ["skl", "tgllp", "acm-g10", "pvc"] {
        let files = fs::read_dir(repository("tests/kernels/bin").join(device)).unwrap();
        let mut files: Vec<PathBuf> = files.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        for path in files.iter().step_by(if full() { 1 } else { 9 }) {
            let output = ok(&["list", path.to_str().unwrap()]);
            assert!(
                output.stdout.contains(&format!(" for {device} (")),
                "{}",
                output.stdout
            );
        }
    }
}

#[test]
fn disassembled_text_runs() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("saxpy.visaasm");
    let file = file.to_str().unwrap();
    let text = ok(&["disasm", SAXPY, "--kernel", "saxpy"]).stdout;
    assert!(text.starts_with("// kernel saxpy\n.version "));
    fs::write(file, text).unwrap();

    let listed = ok(&["list", file]).stdout;
    assert!(listed.contains("V0034"), "{listed}");
    let printed = ok(&["disasm", file]).stdout;
    assert!(printed.contains("gather4_scaled.R (M1, 16)"));

    let args = [
        "run",
        file,
        "--platform",
        "skl",
        "--global",
        "8",
        "--local",
        "32",
        "--surface",
        "0=iota:f32:8",
        "--surface",
        "1=fill:f32:10:8",
        "--input",
        "V0034=f32:2",
        "--input",
        "V0038=u32:32,1,1",
        "--print",
        "0=f32:8",
    ];
    assert_eq!(ok(&args).stdout, SAXPY_RESULT.replace("arg", "surface"));
}

/// A comparing sample of an image of zeros with 1/2; samplers that are not given compare nothing.
#[test]
fn samplers_have_comparisons() {
    let first = |sampler: &str| {
        let args = [
            "run",
            "tests/filetests/images/sample_compare.visaasm",
            "--platform",
            "skl",
            "--global",
            "8",
            "--surface",
            "0=image1d:r32float:4",
            "--surface",
            "1=zero:640",
            "--sampler",
            sampler,
            "--print",
            "1=f32:8",
        ];
        ok(&args).stdout
    };
    let greater = first("0=sampler:clamp_to_edge,greater");
    assert!(greater.contains("1 1 1 1 1 1 1 1"), "{greater}");
    let other = first("0=sampler:clamp_to_edge");
    assert!(other.contains("0 0 0 0 0 0 0 0"), "{other}");
}

#[test]
fn ssa_and_machine_code() {
    let ssa = ok(&["ssa", SAXPY, "--kernel", "saxpy"]).stdout;
    let raw = ok(&["ssa", SAXPY, "--kernel", "saxpy", "--raw"]).stdout;
    assert!(ssa.starts_with("function \"saxpy\" simd 32"), "{ssa}");
    assert!(raw.lines().count() > ssa.lines().count());
    if cfg!(target_arch = "x86_64") {
        let asm = ok(&["asm", SAXPY, "--kernel", "saxpy"]).stdout;
        assert!(asm.contains("gather4_scaled.R (M1, 16)"), "{asm}");
        assert!(asm.contains("  ret\n"), "{asm}");
        assert!(!asm.contains("(bad)\n; "), "{asm}");
    }
}

#[test]
fn the_table_of_instructions() {
    let table = ok(&["isa"]).stdout;
    assert!(table.contains("`gather4_scaled`"));
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    for args in [
        &["isa"][..],
        &["disasm", "tests/kernels/bin/skl/arith.zebin"],
        &["--help"],
    ] {
        let mut child = command(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{args:?}");
    }
}

#[test]
fn help_names_the_exit_codes() {
    for args in [&["--help"][..], &["run", "--help"], &["list", "--help"]] {
        let help = ok(args).stdout;
        assert!(help.contains("Exit codes:"), "{help}");
        assert!(help.contains("  70  a bug in visa-jit"), "{help}");
    }
}

/// Exit code, part of the message, arguments.
type Refusal<'a> = (i32, &'a str, &'a [&'a str]);

fn check(cases: &[Refusal<'_>]) {
    for (code, message, args) in cases {
        let output = visa_jit(args);
        assert_eq!(output.code, *code, "{args:?}: {}", output.stderr);
        assert!(
            output.stderr.contains(message),
            "{args:?}: {}",
            output.stderr
        );
        assert_eq!(output.stdout, "", "{args:?}");
    }
}

#[test]
fn bad_usage_is_2() {
    check(&[
        (2, "Usage: visa-jit", &[]),
        (2, "unrecognized subcommand", &["walk"]),
        (2, "--global", &["run", SAXPY]),
        (
            2,
            "is not a SPEC",
            &["run", SAXPY, "--global", "1", "--arg", "7"],
        ),
        (
            2,
            "unknown device `gen12`",
            &["run", SAXPY, "--global", "1", "--device", "gen12"],
        ),
        (
            2,
            "has 3 kernels; choose one with --kernel: saxpy,",
            &["run", SAXPY, "--global", "1"],
        ),
        (
            2,
            "has no kernel `axpy`; it has: saxpy,",
            &["ssa", SAXPY, "--kernel", "axpy"],
        ),
        (
            2,
            "has no kernel `axpy`",
            &["disasm", SAXPY, "--kernel", "axpy"],
        ),
        (
            2,
            "unknown backend `gcc`",
            &["run", SAXPY, "--global", "1", "--backend", "gcc"],
        ),
        (2, "not a zebin", &["list", "Cargo.toml"]),
        (
            2,
            "malformed .npy file",
            &[
                "run",
                SAXPY,
                "--kernel",
                "saxpy",
                "--global",
                "1",
                "--arg",
                "file:tests/cli/not.npy",
            ],
        ),
        (
            2,
            "vISA text does not say which device it is for; add --platform",
            &["run", "tests/cli/wrong.visaasm", "--global", "1"],
        ),
    ]);
}

#[test]
fn arguments_that_do_not_fit_are_all_named() {
    let output = visa_jit(&[
        "run",
        SAXPY,
        "--kernel",
        "saxpy_guarded",
        "--global",
        "1",
        "--arg",
        "f32:1",
    ]);
    assert_eq!(output.code, 2);
    assert_eq!(
        output.stderr,
        "error: argument 0 `y` is a global buffer of type float*, but f32:1 is a value; write file:PATH, \
         zero:BYTES, uninit:BYTES, fill:TYPE:VALUE:COUNT, iota:TYPE:COUNT, rand:TYPE:COUNT:SEED or null\n\
         argument 1 `x` is missing: a global buffer of type float*, for example --arg 1=fill:f32:0:COUNT\n\
         argument 2 `a` is missing: a value of type float (4 bytes), for example --arg 2=f32:V\n\
         argument 3 `n` is missing: a value of type int (4 bytes), for example --arg 3=i32:V\n"
    );
}

#[test]
fn results_that_cannot_be_had_are_refused_before_the_run() {
    let cases = [
        ("--print=0=f32:9", "wants 36 bytes, but the buffer has 32"),
        (
            "--print=2=f32:1",
            "arg 2 is not a buffer of this launch; there is 0, 1",
        ),
        ("--save=7=x.bin", "arg 7 is not a buffer of this launch"),
        (
            "--surface=0=zero:4",
            "--surface, --sampler and --input are for vISA text",
        ),
        ("--arg=0=null", "argument 0 is given twice"),
        ("--arg=9=null", "there is no argument 9"),
    ];
    for (option, message) in cases {
        let arguments = [
            "--arg",
            "0=zero:32",
            "--arg",
            "1=zero:32",
            "--arg",
            "2=f32:1",
            option,
        ];
        check(&[(2, message, &[&SAXPY_OF_8, arguments.as_slice()].concat())]);
    }
}

#[test]
fn malformed_text_is_2_with_a_caret() {
    let output = visa_jit(&[
        "run",
        "tests/cli/wrong.visaasm",
        "--platform",
        "skl",
        "--global",
        "1",
    ]);
    assert_eq!(output.code, 2);
    assert!(output.stderr.starts_with("error: "), "{}", output.stderr);
    assert!(
        output.stderr.contains("--> tests/cli/wrong.visaasm:"),
        "{}",
        output.stderr
    );
    assert!(output.stderr.contains('^'), "{}", output.stderr);
}

#[test]
fn truncated_zebins_are_2() {
    let dir = TempDir::new().unwrap();
    let file = dir.path().join("cut.zebin");
    let whole = fs::read(repository(SAXPY)).unwrap();
    for part in 1..16 {
        fs::write(&file, &whole[..whole.len() * part / 16]).unwrap();
        let output = visa_jit(&["list", file.to_str().unwrap()]);
        assert_eq!(output.code, 2, "{part}: {}", output.stderr);
    }
}

#[test]
#[cfg(not(feature = "llvm-codegen"))]
fn a_missing_code_generator_is_3() {
    for part in ["llvm-19-dev", "libpolly-19-dev", "--features llvm"] {
        let args = &["run", SAXPY, "--global", "1", "--backend", "llvm"];
        check(&[(3, part, args)]);
    }
}

#[test]
fn what_is_not_implemented_is_3() {
    let text = |file| ["run", file, "--platform", "skl", "--global", "1"];
    check(&[
        (
            3,
            "unsupported: `raw_send`",
            &text("tests/cli/unsupported.visaasm"),
        ),
        (
            3,
            "`vme_ime` is not supported",
            &text("tests/cli/rejected.visaasm"),
        ),
    ]);
}

#[test]
fn the_environment_is_4() {
    let [run, file] = ["run", SAXPY];
    check(&[
        (4, "cannot read nowhere.zebin: ", &["list", "nowhere.zebin"]),
        (4, "cannot read tests: ", &["list", "tests"]),
        (
            4,
            "cannot read nowhere.bin: ",
            &[
                run,
                file,
                "--kernel",
                "saxpy",
                "--global",
                "1",
                "--arg",
                "file:nowhere.bin",
            ],
        ),
        (
            4,
            "device memory is full",
            &[
                run,
                file,
                "--kernel",
                "saxpy",
                "--global",
                "1",
                "--arg",
                "zero:0x1000000000000000",
            ],
        ),
    ]);
    let output = visa_jit(&saxpy(&["--save", "0=/nowhere/y.bin"]));
    assert_eq!(output.code, 4);
    assert!(output.stderr.contains("cannot write /nowhere/y.bin: "));
}

#[test]
fn sources_need_the_compiler() {
    let args = [
        "run",
        "tests/kernels/saxpy.cl",
        "--device",
        "tgllp",
        "--kernel",
        "saxpy",
        "--global",
        "8",
        "--arg",
        "iota:f32:8",
        "--arg",
        "fill:f32:10:8",
        "--arg",
        "f32:2",
        "--print",
        "0=f32:8",
    ];
    let mut without = command(&args);
    without.env("VISA_JIT_OCLOC", "/nowhere/libocloc.so");
    let output = finish(without);
    assert_eq!(output.code, 4, "{}", output.stderr);
    assert!(output.stderr.contains("libocloc"), "{}", output.stderr);

    let output = visa_jit(&args);
    if output.code == 4 && output.stderr.contains("cannot be loaded") {
        eprintln!(
            "skipped: compiling sources, because libocloc is not installed (apt-get install intel-opencl-icd)"
        );
        return;
    }
    assert_eq!(output.stdout, SAXPY_RESULT, "{}", output.stderr);

    let dir = TempDir::new().unwrap();
    let wrong = dir.path().join("wrong.cl");
    fs::write(&wrong, "kernel void k(global int *p) { *p = q; }\n").unwrap();
    let output = visa_jit(&["list", wrong.to_str().unwrap()]);
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(
        output.stderr.contains("undeclared identifier 'q'"),
        "{}",
        output.stderr
    );
}
