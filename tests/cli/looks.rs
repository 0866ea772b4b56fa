//! `list --json`, `asm` of a launch, time limits, pointers of vISA text.

use serde_json::Value;

use super::{SAXPY, command, finish, ok, saxpy, visa_jit};

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&ok(args).stdout).unwrap()
}

#[test]
fn list_is_json_too() {
    let listing = json(&["list", SAXPY, "--json"]);
    assert_eq!(listing["kind"], "zebin");
    assert_eq!(listing["device"], "skl");
    let kernel = &listing["kernels"][0];
    assert_eq!(kernel["name"], "saxpy");
    assert_eq!(kernel["local_bytes"], 0);
    assert_eq!(kernel["required_local_size"], Value::Null);
    let arguments = kernel["arguments"].as_array().unwrap();
    assert_eq!(arguments.len(), 3);
    assert_eq!(arguments[2]["index"], 2);
    assert_eq!(arguments[2]["type"], "float");
    assert_eq!(arguments[2]["passing"], "value, 4 bytes");
    let text = "tests/filetests/memory/scatter_edge.visaasm";
    let listing = json(&["list", text, "--platform", "skl", "--json"]);
    assert_eq!(listing["kind"], "visa");
}

#[test]
fn machine_code_of_a_launch() {
    let any = ok(&["asm", SAXPY, "--kernel", "saxpy"]).stdout;
    let rows = ok(&[
        "asm", SAXPY, "--kernel", "saxpy", "--global", "64", "--local", "64",
    ]);
    assert!(any.contains("made by cranelift"));
    assert_ne!(any, rows.stdout, "the code for full rows is another one");
    let interp = visa_jit(&["asm", SAXPY, "--kernel", "saxpy", "--backend", "interp"]);
    assert_eq!(interp.code, 2);
}

const HEAD: &str = ".version 4.1
.kernel \"k\"
.kernel_attr SimdSize=8
.decl V v_type=G type=ud num_elts=8 align=GRF
.decl A v_type=G type=uq num_elts=1 align=GRF
.input A offset=64 size=8
.function \"main\"
";

fn text(dir: &tempfile::TempDir, body: &str) -> String {
    let file = dir.path().join("k.visaasm");
    std::fs::write(&file, format!("{HEAD}{body}")).unwrap();
    file.to_str().unwrap().to_owned()
}

/// `run` of a text file for eight work-items, with more options.
fn run_text<'a>(file: &'a str, platform: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let run = ["run", file, "--platform", platform, "--global", "8"];
    [&run, more].concat()
}

#[test]
fn inputs_of_text_point_to_buffers() {
    let dir = tempfile::tempdir().unwrap();
    let file = text(
        &dir,
        "    svm_block_ld.unaligned (2) A(0,0)<0;1,0> V.0
    add (M1_NM, 8) V(0,0)<1> V(0,0)<1;1,0> 0x5:ud
    svm_block_st (2) A(0,0)<0;1,0> V.0
    ret (M1, 1)
",
    );
    for backend in ["interp", "cranelift"] {
        let out = ok(&run_text(
            &file,
            "skl",
            &[
                "--local",
                "8",
                "--backend",
                backend,
                "--input",
                "A=buffer:iota:u32:8",
                "--print",
                "A=u32:8",
            ],
        ));
        assert_eq!(
            out.stdout, "input A: u32[8] = 5 6 7 8 9 10 11 12\n",
            "{backend}"
        );
    }
    let out = visa_jit(&run_text(
        &file,
        "skl",
        &["--input", "A=u64:0", "--print", "A=u32:8"],
    ));
    assert_eq!(out.code, 2);
    assert!(
        out.stderr.contains("A is not a buffer of this launch"),
        "{}",
        out.stderr
    );
}

#[test]
fn a_kernel_that_never_ends_is_stopped() {
    let dir = tempfile::tempdir().unwrap();
    let file = text(&dir, "L:\n    goto (M1, 1) L\n");
    for backend in ["interp", "cranelift"] {
        let out = visa_jit(&run_text(
            &file,
            "pvc",
            &[
                "--input",
                "A=u64:0",
                "--timeout",
                "0.05",
                "--backend",
                backend,
            ],
        ));
        assert_eq!(out.code, 5, "{backend}: {}", out.stderr);
        assert!(out.stderr.contains("stopped by --timeout"));
    }
    ok(&saxpy(&["--timeout", "60"]));
    for wrong in ["0", "-1", "x", "nan"] {
        let option = format!("--timeout={wrong}");
        assert_eq!(visa_jit(&saxpy(&[&option])).code, 2, "{wrong}");
    }
}

/// A program in the place of the compiler's library: it gets files and the library's command line.
#[test]
#[cfg(unix)]
fn a_program_compiles() {
    use std::os::unix::fs::PermissionsExt;
    let dir = tempfile::tempdir().unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let path = |name: &str| dir.path().join(name);
    let script = format!(
        "#!/bin/sh\n[ \"$1 $4\" = \"compile saxpy.cl\" ] && [ -f saxpy.cl ] || exit 3\n\
         echo stray > kernel.visaasm\n\
         cp {root}/tests/kernels/bin/bmg-26/saxpy.zebin out/saxpy_bmg.bin\n"
    );
    std::fs::write(path("compiler"), script).unwrap();
    let runs = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(path("compiler"), runs).unwrap();
    std::fs::write(path("saxpy.cl"), "kernel void saxpy() {}").unwrap();
    let source = path("saxpy.cl");
    let source = source.to_str().unwrap();
    let with = |program: &str, args: &[&str]| {
        let mut command = command(args);
        command.env("VISA_JIT_OCLOC", path(program));
        finish(command)
    };
    let run = [
        "run",
        source,
        "--device",
        "bmg",
        "--kernel",
        "saxpy",
        "--global",
        "4",
        "--arg",
        "zero:16",
        "--arg",
        "iota:f32:4",
        "--arg",
        "f32:2",
        "--print",
        "0=f32:4",
    ];
    let output = with("compiler", &run);
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert!(output.stdout.contains("0 2 4 6"), "{}", output.stdout);
    std::fs::write(path("compiler"), "#!/bin/sh\necho no good; exit 7\n").unwrap();
    let output = with("compiler", &run);
    assert_eq!(output.code, 2, "{}", output.stderr);
    assert!(output.stderr.contains("no good"), "{}", output.stderr);
    assert_eq!(with("nothing", &run).code, 4);
}

/// `read_imagef` by a compiler for a device that it thinks has no images.
#[test]
fn dropped_image_reads_are_warned_of() {
    let output = ok(&[
        "run",
        "tests/cli/dropped_read.zebin",
        "--global",
        "4",
        "--arg",
        "zero:64",
        "--arg",
        "image2d:rgba32float:4x1",
    ]);
    let warning =
        "warning: kernel `lost` has an image, argument 1 (`image2d_t image`), and no instruction";
    assert!(output.stderr.contains(warning), "{}", output.stderr);
    assert!(!ok(&saxpy(&[])).stderr.contains("warning"));
}
