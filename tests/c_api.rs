//! The runtime's C library: its header, and C programs that link kernels compiled ahead of time.

use std::fs;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use visa_jit::artifact::object::records;
use visa_runtime::abi::Helpers;
use visa_runtime::linked::SlotSource;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[track_caller]
fn succeed(command: &mut Command) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = command
        .output()
        .unwrap_or_else(|e| panic!("{command:?}: {e}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, errors) = (text(&stdout), text(&stderr));
    assert!(status.success(), "{command:?}: {status}\n{out}\n{errors}");
    out + &errors
}

fn installed(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        println!("skipped: {program} is not installed");
    }
    found
}

/// Digest of all that the header is made from.
fn sources() -> String {
    let capi = root().join("runtime/capi");
    let mut files: Vec<PathBuf> = fs::read_dir(capi.join("src"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files.push(capi.join("cbindgen.toml"));
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(file.file_name().unwrap().as_encoded_bytes());
        hasher.update(&fs::read(file).unwrap());
    }
    hasher.finalize().to_hex()[..16].to_owned()
}

/// The checked-in header is what cbindgen makes of the sources: by their digest always, by cbindgen where it is installed.
#[test]
fn the_header_is_fresh() {
    let path = root().join("runtime/capi/include/visa_jit.h");
    let last_line = format!("/* Sources: {} */\n", sources());
    let made = installed("cbindgen").then(|| {
        let capi = root().join("runtime/capi");
        let output = Command::new("cbindgen")
            .arg("--quiet")
            .arg(&capi)
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).unwrap() + &last_line
    });
    if std::env::var_os("BLESS").is_some() {
        fs::write(
            &path,
            made.expect("cbindgen makes the header: cargo install cbindgen"),
        )
        .unwrap();
        return;
    }
    let header = fs::read_to_string(path).unwrap();
    let stale = "the C header is stale: BLESS=1 cargo test --test c_api header";
    assert!(header.ends_with(&last_line), "{stale}");
    if let Some(made) = made {
        assert_eq!(header, made, "{stale}");
    }
}

/// What a C program links: library, kernel, header.
struct Kit {
    dir: tempfile::TempDir,
    library: PathBuf,
}

impl Kit {
    fn new() -> Kit {
        let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
        // The directory of this program's own build, so that what both need is there.
        let program = Path::new(env!("CARGO_BIN_EXE_visa-jit"));
        let target = program.parent().and_then(Path::parent).unwrap();
        succeed(
            Command::new(cargo)
                .args(["build", "--quiet", "-p", "visa-runtime-c", "--target-dir"])
                .arg(target)
                .current_dir(root()),
        );
        Kit {
            dir: tempfile::tempdir().unwrap(),
            library: target.join("debug/libvisa_jit_runtime.a"),
        }
    }

    /// Compiles the kernels of a zebin to an object and a header of this name.
    fn kernels(&self, zebin: &str, name: &str, options: &[&str]) {
        for ending in ["o", "h"] {
            succeed(
                Command::new(env!("CARGO_BIN_EXE_visa-jit"))
                    .args(["compile", &format!("tests/kernels/bin/skl/{zebin}.zebin")])
                    .args(options)
                    .arg("-o")
                    .arg(self.dir.path().join(name).with_extension(ending))
                    .current_dir(root()),
            );
        }
    }

    /// Compiles saxpy and a C program, links them, and returns the program.
    fn build(&self, example: &str, options: &[&str]) -> PathBuf {
        self.kernels("saxpy", "saxpy", options);
        self.link(&format!("examples/c/{example}.c"), &["saxpy"])
    }

    /// Compiles a C program and links it with objects, and with nothing else of ours but the library.
    fn link(&self, source: &str, objects: &[&str]) -> PathBuf {
        let dir = self.dir.path();
        let source = root().join(source);
        let program = dir.join(source.file_stem().unwrap());
        let objects = objects.iter().map(|name| dir.join(format!("{name}.o")));
        succeed(
            Command::new("cc")
                // No Rust toolchain is in sight.
                .env_clear()
                .env("PATH", "/usr/bin:/bin")
                .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-g", "-I"])
                .arg(root().join("runtime/capi/include"))
                .arg("-I")
                .arg(dir)
                .arg(&source)
                .args(objects)
                .arg(&self.library)
                .args(["-lpthread", "-ldl", "-lm", "-o"])
                .arg(&program),
        );
        program
    }
}

/// Valgrind finds nothing wrong in a program, if it is here.
fn valgrind(program: &Path, arguments: &[&str]) {
    if !installed("valgrind") {
        return;
    }
    let said = succeed(
        Command::new("valgrind")
            .args([
                "--error-exitcode=9",
                "--leak-check=full",
                "--errors-for-leak-kinds=definite",
            ])
            .arg(program)
            .args(arguments),
    );
    assert!(said.contains("ERROR SUMMARY: 0 errors"), "{said}");
}

#[test]
#[ignore = "builds the runtime as a C library: half a minute"]
fn c_programs_run_kernels() {
    let kit = Kit::new();
    let program = kit.build("saxpy", &[]);
    let expected = "saxpy: 4 groups, 0 faults, y[999] = 20979, 0 wrong\n\
        argument 7: there is no argument 7; the kernel has 3\n";
    for threads in ["1", "2", "5"] {
        assert_eq!(succeed(Command::new(&program).arg(threads)), expected);
    }
    valgrind(&program, &["1"]);
    valgrind(&program, &["2"]);
    kit.kernels("global_state", "state", &[]);
    kit.kernels("printf", "texts", &[]);
    kit.kernels("image_filter", "image_filter", &[]);
    let program = kit.link("tests/c_api/program.c", &["state", "texts", "image_filter"]);
    let expected = "counters 12 22 32 42, 7 times the scale is 17.5\n\
        counters 16 26 36 46, 7 times the scale is 17.5\n\
        counters 12 22 32 42, 7 times the scale is 17.5\n\
        lane 0 of 7\nlane 3 of 7\nlane 6 of 7\n\
        there is no format of 4 channels of 7 bits of this kind\n\
        kernel `blur`: argument 1 (`image2d_t to`) is missing\n\
        the picture is the same\n";
    assert_eq!(succeed(&mut Command::new(&program)), expected);
    valgrind(&program, &[]);
    let program = kit.build("faults", &["--oob", "report"]);
    let said = succeed(&mut Command::new(&program));
    assert!(said.starts_with("8 faults\n"), "{said}");
    valgrind(&program, &[]);
}

/// The launch plan of the first kernel of an object as C tables.
fn plan(object: &Path) -> String {
    let record = records(&fs::read(object).unwrap()).unwrap().remove(0);
    let meta = &record.variants[0].meta;
    let at = |offset: usize| offset / size_of::<usize>();
    let mut text = format!(
        "#define PAYLOAD {}\n#define SIMD {}\n\
         #define LOAD {}\n#define STORE {}\n#define LOAD_QUIET {}\n#define STORE_QUIET {}\n\
         enum {{ VALUE, ADDRESS, SIZE, ZERO }};\n\
         static const struct {{ int kind; unsigned offset, size, argument; }} slots[] = {{\n",
        meta.payload_bytes,
        meta.simd,
        at(offset_of!(Helpers, load)),
        at(offset_of!(Helpers, store)),
        at(offset_of!(Helpers, load_quiet)),
        at(offset_of!(Helpers, store_quiet)),
    );
    for slot in &record.plan.slots {
        let (kind, argument) = match slot.source {
            SlotSource::Value { argument, .. } => ("VALUE", argument),
            SlotSource::Address { argument } => ("ADDRESS", argument),
            SlotSource::LocalSize | SlotSource::EnqueuedLocalSize | SlotSource::GlobalSize => {
                ("SIZE", 0)
            }
            SlotSource::GlobalOffset => ("ZERO", 0),
            other => panic!("saxpy does not need {other:?}"),
        };
        let (offset, size) = (slot.offset, slot.size);
        text.push_str(&format!("    {{{kind}, {offset}, {size}, {argument}}},\n"));
    }
    text.push_str("};\nstatic const unsigned bindings[][2] = {\n");
    for (surface, argument) in &record.plan.bindings {
        text.push_str(&format!("    {{{surface}, {argument}}},\n"));
    }
    text + "};\n"
}

/// Code for another processor, called by a C program that hands it the ABI's structures itself, in an emulator.
fn foreign(backend: &str, (target, gcc, emulator): Machine) {
    if !installed(gcc) || !installed(emulator[0]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let object = dir.path().join("saxpy.o");
    succeed(
        Command::new(env!("CARGO_BIN_EXE_visa-jit"))
            .args([
                "compile",
                "tests/kernels/bin/skl/saxpy.zebin",
                "--kernel",
                "saxpy",
            ])
            .args(["--backend", backend, "--target", target, "-o"])
            .arg(&object)
            .current_dir(root()),
    );
    fs::write(dir.path().join("plan.h"), plan(&object)).unwrap();
    let program = dir.path().join("saxpy");
    succeed(
        Command::new(gcc)
            .args(["-std=c11", "-Wall", "-Werror", "-static", "-I"])
            .arg(dir.path())
            .arg("-o")
            .arg(&program)
            .arg(root().join("tests/c_api/foreign.c"))
            .arg(&object),
    );
    let mut command = Command::new(emulator[0]);
    let said = succeed(command.args(&emulator[1..]).arg(&program));
    assert_eq!(said, "64 items, 0 wrong\n");
}

/// Triple, compiler and emulator.
type Machine = (&'static str, &'static str, &'static [&'static str]);

const AARCH64: Machine = (
    "aarch64-unknown-linux-gnu",
    "aarch64-linux-gnu-gcc",
    &["qemu-aarch64-static"],
);

#[cfg(any(feature = "riscv64", feature = "llvm"))]
const RISCV64: Machine = (
    "riscv64gc-unknown-linux-gnu",
    "riscv64-linux-gnu-gcc",
    &[
        "qemu-riscv64-static",
        "-cpu",
        "rv64,v=true,vlen=128,vext_spec=v1.0",
    ],
);

#[test]
#[ignore = "needs aarch64-linux-gnu-gcc and qemu-aarch64-static"]
fn aarch64_objects_run() {
    foreign("cranelift", AARCH64);
}

#[test]
#[cfg(feature = "llvm")]
#[ignore = "needs aarch64-linux-gnu-gcc and qemu-aarch64-static"]
fn llvm_aarch64_objects_run() {
    foreign("llvm", AARCH64);
}

#[test]
#[cfg(feature = "riscv64")]
#[ignore = "needs riscv64-linux-gnu-gcc and qemu-riscv64-static"]
fn riscv64_objects_run() {
    foreign("cranelift", RISCV64);
}

#[test]
#[cfg(feature = "llvm")]
#[ignore = "needs riscv64-linux-gnu-gcc and qemu-riscv64-static"]
fn llvm_riscv64_objects_run() {
    foreign("llvm", RISCV64);
}
