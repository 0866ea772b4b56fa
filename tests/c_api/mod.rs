//! The runtime's C library: its header, and C programs that link kernels compiled ahead of time.

use std::fs;
use std::mem::{offset_of, size_of};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use visa_jit::artifact::object::records;
use visa_jit::interp::InterpOptions;
use visa_jit::{ArgKind, Engine, EngineOptions, Launch};
use visa_runtime::abi::Helpers;
use visa_runtime::linked::{Argument, KernelRecord, SlotSource};

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
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
    let stale = "the C header is stale: BLESS=1 cargo test --test cli c_api::header";
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
        let file = format!("tests/kernels/bin/skl/{zebin}.zebin");
        self.compile(&file, name, options);
    }

    fn compile(&self, file: &str, name: &str, options: &[&str]) {
        for ending in ["o", "h"] {
            succeed(
                Command::new(env!("CARGO_BIN_EXE_visa-jit"))
                    .args(["compile", file])
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
    kit.compile("tests/kernels/bin/bmg-26/assert.zebin", "assertions", &[]);
    kit.kernels("image_filter", "image_filter", &[]);
    let text = "tests/filetests/images/sample_compare.visaasm";
    kit.compile(text, "sample_compare", &["--platform", "skl"]);
    let objects = [
        "state",
        "texts",
        "assertions",
        "image_filter",
        "sample_compare",
    ];
    let program = kit.link("tests/c_api/program.c", &objects);
    let expected = "counters 12 22 32 42, 7 times the scale is 17.5\n\
        counters 16 26 36 46, 7 times the scale is 17.5\n\
        counters 12 22 32 42, 7 times the scale is 17.5\n\
        lane 0 of 7\nlane 3 of 7\nlane 6 of 7\n\
        limit 5: faulted, the last result is 12\n\
        assert.cl:34: assert_range: global id: [6,0,0], local id: [6,0,0] Assertion `in[i] <= limit` failed.\n\
        limit 6: not faulted, the last result is 12\n\
        there is no format of 4 channels of 7 bits of this kind\n\
        kernel `blur`: argument 1 (`image2d_t to`) is missing\n\
        the picture is the same\n\
        9 is no comparison\n\
        less: 0 0 0 0 1 1 1 1, greater: 1 1 0 0 0 0 0 0\n";
    assert_eq!(succeed(&mut Command::new(&program)), expected);
    valgrind(&program, &[]);
    let program = kit.build("faults", &["--oob", "report"]);
    let said = succeed(&mut Command::new(&program));
    assert!(said.starts_with("8 faults\n"), "{said}");
    valgrind(&program, &[]);
}

/// Items of a foreign launch, all in one group.
const ITEMS: u32 = 64;
/// Bytes of each of its arguments.
const BYTES: usize = 1 << 15;

/// The launch plan of an object's kernel as C tables; none if it needs more than the C program does.
fn plan(record: &KernelRecord) -> Option<String> {
    let meta = &record.variants[0].meta;
    let at = |offset: usize| offset / size_of::<usize>();
    let variants = record.variants.iter().map(|v| format!(" X({})", v.symbol));
    let mut text = format!(
        "#define PAYLOAD {}\n#define SIMD {}\n#define BYTES {BYTES}\n#define ARGUMENTS {}\n#define VARIANTS{}\n\
         #define LOAD {}\n#define STORE {}\n#define LOAD_QUIET {}\n#define STORE_QUIET {}\n\
         enum {{ VALUE, ADDRESS, SIZE, ZERO }};\n\
         static const struct {{ int kind; unsigned offset, size, argument, from; }} slots[] = {{\n",
        meta.payload_bytes,
        meta.simd,
        record.plan.arguments.len(),
        variants.collect::<String>(),
        at(offset_of!(Helpers, load)),
        at(offset_of!(Helpers, store)),
        at(offset_of!(Helpers, load_preserve_all)),
        at(offset_of!(Helpers, store_preserve_all)),
    );
    for slot in &record.plan.slots {
        let (kind, argument, from) = match slot.source {
            SlotSource::Value { argument, from } => ("VALUE", argument, from),
            SlotSource::Address { argument } => ("ADDRESS", argument, 0),
            SlotSource::LocalSize | SlotSource::EnqueuedLocalSize | SlotSource::GlobalSize => {
                ("SIZE", 0, 0)
            }
            SlotSource::GlobalOffset => ("ZERO", 0, 0),
            _ => return None,
        };
        let (offset, size) = (slot.offset, slot.size);
        text.push_str(&format!(
            "    {{{kind}, {offset}, {size}, {argument}, {from}}},\n"
        ));
    }
    text.push_str("};\nstatic const unsigned bindings[][2] = {\n");
    for (surface, argument) in &record.plan.bindings {
        text.push_str(&format!("    {{{surface}, {argument}}},\n"));
    }
    let largest = record.variants.iter().map(|v| v.meta.frame_bytes).max();
    let alone = meta.slm_bytes == 0 && meta.states == 0 && meta.required_local_size.is_none();
    let local = |a: &Argument| matches!(a.kind, ArgKind::Local { .. });
    let plain = record.data_digest.is_none() && !record.plan.arguments.iter().any(local);
    (alone && plain && largest <= Some(65536)).then(|| text + "};\n")
}

/// An argument's bytes: small numbers of its type, none of them zero.
fn contents(index: u32, type_name: &str) -> Vec<u8> {
    let number = |i: u32| (i.wrapping_mul(2_654_435_761).rotate_left(8) ^ index) % 61 + 1;
    let scale = |i: u32| f64::from(number(i)) / 8.0;
    let mut bytes: Vec<u8> = match type_name.trim_end_matches('*') {
        "float" => (0..BYTES as u32 / 4)
            .flat_map(|i| (scale(i) as f32).to_le_bytes())
            .collect(),
        "double" => (0..BYTES as u32 / 8)
            .flat_map(|i| scale(i).to_le_bytes())
            .collect(),
        // 1.0 to 1.9
        "half" => (0..BYTES as u32 / 2)
            .flat_map(|i| (0x3C00 | (number(i) as u16 * 15)).to_le_bytes())
            .collect(),
        "char" | "uchar" => (0..BYTES as u32).map(|i| number(i) as u8).collect(),
        "short" | "ushort" => (0..BYTES as u32 / 2)
            .flat_map(|i| (number(i) as u16).to_le_bytes())
            .collect(),
        "long" | "ulong" => (0..BYTES as u32 / 8)
            .flat_map(|i| u64::from(number(i)).to_le_bytes())
            .collect(),
        _ => (0..BYTES as u32 / 4)
            .flat_map(|i| number(i).to_le_bytes())
            .collect(),
    };
    bytes.resize(BYTES, 0);
    bytes
}

/// What the interpreter leaves of the same arguments.
fn interpreted(zebin: &str, record: &KernelRecord, inputs: &[Vec<u8>]) -> Vec<u8> {
    let options = EngineOptions {
        interpret: Some(InterpOptions::default()),
        memory_bytes: 1 << 30,
        ..EngineOptions::default()
    };
    let engine = Engine::with_options(options).unwrap();
    let zebin = fs::read(root().join(zebin)).unwrap();
    let program = engine.program_from_zebin(&zebin, None).unwrap();
    let mut launch = Launch::new([ITEMS, 1, 1]).local([ITEMS, 1, 1]);
    let mut left = Vec::new();
    for (argument, input) in record.plan.arguments.iter().zip(inputs) {
        let buffer = engine.memory().alloc_from(input).unwrap();
        launch = match argument.kind {
            ArgKind::Value { size } => launch.arg(argument.index, input[..size as usize].to_vec()),
            _ => launch.arg(argument.index, &buffer),
        };
        left.push(buffer);
    }
    let kernel = program.kernel(&record.name).unwrap();
    kernel.launch(&launch).unwrap();
    left.iter().flat_map(|buffer| buffer.to_vec()).collect()
}

/// Kernels of one zebin, all that a program of the C harness can launch: compiled for another processor, called by a C program
/// that hands them the ABI's structures itself, in an emulator. Returns how many.
fn foreign(name: &str, backend: &str, (target, gcc, emulator): Machine) -> usize {
    let zebin = format!("tests/kernels/bin/skl/{name}.zebin");
    let dir = tempfile::tempdir().unwrap();
    let object = dir.path().join(format!("{name}.o"));
    let out = dir.path().to_str().unwrap();
    let compiled = Command::new(env!("CARGO_BIN_EXE_visa-jit"))
        .args(["compile", &zebin, "-j1", "--backend", backend])
        .args(["--target", target, "-o", out])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{compiled:?}");
    let mut count = 0;
    for record in records(&fs::read(&object).unwrap()).unwrap() {
        let Some(plan) = plan(&record) else {
            continue;
        };
        fs::write(dir.path().join("plan.h"), plan).unwrap();
        let program = dir.path().join(&record.name);
        succeed(
            Command::new(gcc)
                .args(["-std=c11", "-Wall", "-Werror", "-static", "-I"])
                .arg(dir.path())
                .arg("-o")
                .arg(&program)
                .arg(root().join("tests/c_api/foreign.c"))
                .arg(&object),
        );
        let arguments = record.plan.arguments.iter();
        let inputs: Vec<_> = arguments.map(|a| contents(a.index, &a.type_name)).collect();
        let input = dir.path().join("input");
        fs::write(&input, inputs.concat()).unwrap();
        let run = Command::new(emulator[0])
            .args(&emulator[1..])
            .arg(&program)
            .stdin(fs::File::open(&input).unwrap())
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&run.stderr);
        // A fault of the emulator's own, in QEMU 7.2 for RISC-V.
        let broken = said.contains("Assertion `ctx->insn_start != NULL' failed");
        if broken || said.contains("another helper") {
            println!("{target} {backend}: {} skipped: {said}", record.name);
            continue;
        }
        assert!(run.status.success(), "{}: {said}", record.name);
        let expected = interpreted(&zebin, &record, &inputs);
        assert_ne!(
            expected,
            inputs.concat(),
            "{}: nothing written",
            record.name
        );
        assert_eq!(run.stdout.len(), expected.len() * record.variants.len());
        for (variant, left) in record
            .variants
            .iter()
            .zip(run.stdout.chunks(expected.len()))
        {
            let wrong = left.iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(wrong, None, "{target} {backend}: {}", variant.symbol);
        }
        count += 1;
    }
    println!("{target} {backend}: {name} -> {count}");
    count
}

/// Every family of instructions that needs no more than loads and stores of the runtime.
fn foreign_kernels(backend: &str, machine: Machine) {
    if !installed(machine.1) || !installed(machine.2[0]) {
        return;
    }
    let all = FOREIGN.map(|name| foreign(name, backend, machine));
    assert!(all.iter().sum::<usize>() >= 100, "{all:?}");
}

const FOREIGN: [&str; 13] = [
    "saxpy",
    "arith",
    "bits",
    "switch",
    "divide",
    "double",
    "call",
    "convert",
    "convert_double",
    "math",
    "math_half",
    "gather",
    "pointers",
];

/// Triple, compiler and emulator.
type Machine = (&'static str, &'static str, &'static [&'static str]);

const AARCH64: Machine = (
    "aarch64-unknown-linux-gnu",
    "aarch64-linux-gnu-gcc",
    &["qemu-aarch64-static"],
);

#[cfg(any(feature = "riscv64", feature = "llvm-codegen"))]
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
    foreign_kernels("cranelift", AARCH64);
}

#[test]
#[cfg(feature = "llvm-codegen")]
#[ignore = "needs aarch64-linux-gnu-gcc and qemu-aarch64-static"]
fn llvm_aarch64_objects_run() {
    foreign_kernels("llvm", AARCH64);
}

#[test]
#[cfg(feature = "riscv64")]
#[ignore = "needs riscv64-linux-gnu-gcc and qemu-riscv64-static"]
fn riscv64_objects_run() {
    if installed(RISCV64.1) && installed(RISCV64.2[0]) {
        assert_eq!(foreign("saxpy", "cranelift", RISCV64), 3);
    }
}

#[test]
#[cfg(feature = "llvm-codegen")]
#[ignore = "needs riscv64-linux-gnu-gcc and qemu-riscv64-static"]
fn llvm_riscv64_objects_run() {
    foreign_kernels("llvm", RISCV64);
}
