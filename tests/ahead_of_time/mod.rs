//! `compile`, and what is done with its output: libraries that are loaded, objects for other machines, many files at once.

mod batch;
mod llvm;
mod macho;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use visa_jit::artifact::object::{ObjectKernel, records};
use visa_jit::backend::OobPolicy;
use visa_jit::backend::cranelift::CraneliftBackend;
use visa_jit::{Arg, Engine, EngineOptions, Launch, Origin, Program};
use visa_test_common::{full, share};

const SAXPY: &str = "tests/kernels/bin/skl/saxpy.zebin";
/// One of its kernels: plain runs of some tests compile no other.
const ONE: &[&str] = &["--kernel", "saxpy"];

fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_visa-jit"));
    command
        .args(args)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    command.env("VISA_JIT_CACHE_DIR", "/dev/null/none");
    command
}

#[track_caller]
fn output(mut command: Command) -> (i32, String, String) {
    let Output {
        status,
        stdout,
        stderr,
    } = command.output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().expect("killed"), text(stdout), text(stderr))
}

/// Runs `compile` on saxpy with further arguments.
#[track_caller]
fn compile(to: &Path, more: &[&str]) {
    let args = [&["compile", SAXPY, "-o", to.to_str().unwrap()], more].concat();
    let (code, _, errors) = output(command(&args));
    assert_eq!(code, 0, "{args:?}: {errors}");
}

fn run(file: &Path, more: &[&str]) -> (i32, String, String) {
    let file = file.to_str().unwrap();
    let args = [
        "run",
        file,
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
    output(command(&[&args, more].concat()))
}

fn engine() -> Engine {
    let options = EngineOptions {
        memory_bytes: 1 << 30,
        ..EngineOptions::default()
    };
    Engine::with_options(options).unwrap()
}

#[test]
fn libraries_run() {
    saxpy_runs("cranelift", &[]);
    // Whatever this processor has, the runtime finds it again.
    saxpy_runs("cranelift", &["--cpu", "native"]);
}

/// Compiles saxpy to a library, which computes what the zebin does.
#[track_caller]
fn saxpy_runs(backend: &str, options: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("saxpy.so");
    compile(&library, options);
    assert_eq!(
        fs::read_dir(dir.path()).unwrap().count(),
        1,
        "nothing else is left"
    );
    let (code, out, errors) = run(&library, &["--json"]);
    assert_eq!(code, 0, "{errors}");
    assert!(errors.contains("= 20 21 22 23 24 25 26 27"), "{errors}");
    let json: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(json["cache"], "library");
    assert_eq!(json["backend"], backend);

    // The same results as the zebin's, at sizes with whole and partial groups.
    let engine = engine();
    let from_library = Program::open_library(&engine, &library).unwrap();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let zebin = fs::read(format!("{root}/{SAXPY}")).unwrap();
    let from_zebin = engine.program_from_zebin(&zebin, None).unwrap();
    for (size, local) in [
        (1u32, [1, 1, 1]),
        (33, [33, 1, 1]),
        (100, [16, 1, 1]),
        (4096, [64, 2, 1]),
    ] {
        let mut results = Vec::new();
        for program in [&from_library, &from_zebin] {
            let values: Vec<f32> = (0..size).map(|i| i as f32 * 0.37).collect();
            let y = engine.memory().alloc_from(&values).unwrap();
            let x = engine.memory().alloc_from(&values).unwrap();
            let launch = Launch::new([size, 1, 1])
                .local(local)
                .threads(2)
                .arg(0, &y)
                .arg(1, Arg::Buffer(x))
                .arg(2, 1.7f32);
            let report = program.kernel("saxpy").unwrap().launch(&launch).unwrap();
            results.push((y.to_vec(), report.groups, report.threads));
        }
        assert_eq!(results[0], results[1], "{size}");
    }
    let kernel = from_library.kernel("saxpy").unwrap();
    let zebins = from_zebin.kernel("saxpy").unwrap();
    assert_eq!(kernel.arguments(), zebins.arguments());
    assert_eq!(
        (kernel.simd(), kernel.slm_bytes()),
        (zebins.simd(), zebins.slm_bytes())
    );
}

/// Every kernel of the corpus that can be compiled ahead of time gives a library; a few of each kind are run elsewhere.
#[test]
fn kernels_with_local_memory_and_barriers_run() {
    reduction_runs(&[]);
}

#[track_caller]
fn reduction_runs(options: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("r.so");
    let zebin = "tests/kernels/bin/pvc/reduction.zebin";
    let args = ["compile", zebin, "-o", library.to_str().unwrap()];
    let (code, _, errors) = output(command(&[&args, options].concat()));
    assert_eq!(code, 0, "{errors}");
    let (_, kernels, _) = output(command(&["list", zebin]));
    let (code, listed, errors) = output(command(&["list", library.to_str().unwrap()]));
    assert_eq!(code, 0, "{errors}");
    assert!(listed.contains("barrier"), "{listed}");
    for line in kernels.lines().filter(|l| l.starts_with("reduce_")) {
        let name = line.split(':').next().unwrap();
        assert!(listed.contains(&format!("\n{name}: ")), "{name}: {listed}");
    }
    let engine = engine();
    let program = Program::open_library(&engine, &library).unwrap();
    let bytes = fs::read(format!(
        "{}/{zebin}",
        concat!(env!("CARGO_MANIFEST_DIR"), "/..")
    ))
    .unwrap();
    let zebin = engine.program_from_zebin(&bytes, None).unwrap();
    let kernel = zebin.kernel("reduce_sum").unwrap();
    let mut results = Vec::new();
    for program in [&program, &zebin] {
        let mut launch = Launch::new([256, 1, 1]).local([64, 1, 1]);
        let mut buffers = Vec::new();
        for a in kernel.arguments() {
            launch = match a.kind {
                visa_jit::ArgKind::Buffer { .. } => {
                    let values: Vec<u32> = (0..4096u32).collect();
                    buffers.push(engine.memory().alloc_from(&values).unwrap());
                    launch.arg(a.index, buffers.last().unwrap())
                }
                visa_jit::ArgKind::Local { .. } => launch.arg(a.index, Arg::Local(1024)),
                visa_jit::ArgKind::Value { size } => launch.arg(a.index, vec![1; size as usize]),
                _ => launch,
            };
        }
        let report = program
            .kernel("reduce_sum")
            .unwrap()
            .launch(&launch)
            .unwrap();
        assert_eq!(report.fault_count, 0);
        let origin = (report.origin == Origin::Library) == results.is_empty();
        assert!(origin, "{:?}", report.origin);
        results.push(buffers.iter().map(|b| b.to_vec()).collect::<Vec<_>>());
    }
    assert_eq!(results[0], results[1]);
}

/// Compiles a zebin of `skl` to a library.
fn library(dir: &Path, name: &str) -> PathBuf {
    library_of(dir, name, &[])
}

fn library_of(dir: &Path, name: &str, options: &[&str]) -> PathBuf {
    let library = dir.join(format!("{name}.so"));
    let zebin = format!("tests/kernels/bin/skl/{name}.zebin");
    let args = ["compile", &zebin, "-o", library.to_str().unwrap()];
    let (code, _, errors) = output(command(&[&args, options].concat()));
    assert_eq!(code, 0, "{errors}");
    library
}

/// Variables live as long as the program, and its kernels share them; programs do not.
#[test]
fn kernels_of_a_library_share_variables() {
    let dir = tempfile::tempdir().unwrap();
    let library = library(dir.path(), "global_state");
    let engine = engine();
    let open = || Program::open_library(&engine, &library).unwrap();
    let input = engine.memory().alloc_from(&[2f32; 8]).unwrap();
    let count = |program: &Program| {
        let out = engine.memory().alloc_from(&[0f32; 8]).unwrap();
        let launch = Launch::new([8, 1, 1]).arg(0, &out).arg(1, &input);
        let kernel = program.kernel("global_count").unwrap();
        kernel.launch(&launch).unwrap();
        assert_eq!(
            out.to_vec_of::<f32>(),
            [5f32; 8],
            "a constant of the program"
        );
    };
    let read = |program: &Program| {
        let out = engine.memory().alloc_from(&[0i32; 4]).unwrap();
        let launch = Launch::new([4, 1, 1]).arg(0, &out);
        program
            .kernel("global_read")
            .unwrap()
            .launch(&launch)
            .unwrap();
        out.to_vec_of::<i32>()
    };
    let (program, other) = (open(), open());
    assert_eq!(read(&program), [10, 20, 30, 40]);
    count(&program);
    count(&program);
    assert_eq!(read(&program), [14, 24, 34, 44]);
    assert_eq!(read(&other), [10, 20, 30, 40]);
}

/// What is printed and drawn by kernels of a library is what those of the zebin print and draw.
#[test]
fn libraries_print_and_draw() {
    let dir = tempfile::tempdir().unwrap();
    let launches: [(&str, &[&str]); 3] = [
        (
            "printf",
            &["print_hello", "--global", "7", "--arg", "zero:28"],
        ),
        (
            "printf",
            &["print_strings", "--global", "3", "--arg", "i8:65"],
        ),
        (
            "image_filter",
            &[
                "blur",
                "--global",
                "4,2",
                "--arg",
                "image2d:rgba8unorm:4x2:PIXELS",
                "--arg",
                "image2d:rgba8unorm:4x2",
                "--print",
                "1=u8:32",
            ],
        ),
    ];
    // A plain run prints once.
    for (name, args) in launches.into_iter().skip(usize::from(!full())) {
        let library = library_of(dir.path(), name, &["--kernel", args[0]]);
        let zebin = format!("tests/kernels/bin/skl/{name}.zebin");
        let image = dir.path().join("pixels");
        fs::write(&image, [7, 80, 90, 200].repeat(8)).unwrap();
        let args: Vec<String> = args
            .iter()
            .map(|a| a.replace("PIXELS", image.to_str().unwrap()))
            .collect();
        let said = [library.to_str().unwrap(), &zebin].map(|file| {
            let mut run = command(&["run", file, "--kernel"]);
            run.args(&args);
            let (code, out, errors) = output(run);
            assert_eq!(code, 0, "{errors}");
            out
        });
        assert_eq!(said[0], said[1], "{name}");
        assert!(
            said[0].len() > 20 && said[0].bytes().any(|b| b > b'0'),
            "{said:?}"
        );
    }
}

/// Assertions of a library's kernels fail as those of the zebin do.
#[test]
fn libraries_assert() {
    let dir = tempfile::tempdir().unwrap();
    let zebin = "tests/kernels/bin/bmg-26/assert.zebin";
    let library = dir.path().join("assert.so");
    let library = library.to_str().unwrap();
    let compile = ["compile", zebin, "-o", library];
    let kernels = ["--kernel", "assert_range"];
    let kernels = if full() { &[][..] } else { &kernels };
    assert_eq!(output(command(&[&compile[..], kernels].concat())).0, 0);
    let buffers = ["--arg", "zero:28", "--arg", "iota:i32:7"];
    let said = [library, zebin].map(|file| {
        let args = ["run", file, "--kernel", "assert_range", "--global", "7"];
        let mut run = command(&[&args[..], &buffers, &["--arg", "i32:5"]].concat());
        run.arg("--no-cache");
        let (code, _, errors) = output(run);
        let from = errors.find("error: an assertion").unwrap_or(0);
        (code, errors[from..].to_owned())
    });
    assert_eq!(said[0], said[1]);
    assert!(said[0].0 == 1 && said[0].1.contains("[6,0,0]"), "{said:?}");
}

#[test]
fn libraries_have_one_policy() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("saxpy.so");
    compile(&library, &["--oob", "trap"]);
    let (code, _, errors) = run(&library, &[]);
    assert_eq!(code, 3);
    assert!(errors.contains("compiled for `trap`"), "{errors}");
    let (code, _, errors) = run(&library, &["--oob", "trap", "--global", "9"]);
    assert_ne!(code, 0, "{errors}");
    // The record says where.
    let engine = engine();
    let program = Program::open_library(&engine, &library).unwrap();
    let y = engine.memory().alloc_from(&[0f32; 4]).unwrap();
    let launch = Launch::new([8, 1, 1])
        .oob(OobPolicy::Trap)
        .arg(0, &y)
        .arg(1, &y)
        .arg(2, 1f32);
    let report = program.kernel("saxpy").unwrap().launch(&launch).unwrap();
    assert!(
        report.faults[0].line > 0 && report.faults[0].opcode != "?",
        "{report:?}"
    );
    let (code, _, errors) = run(&library, &["--backend", "interp"]);
    assert_eq!(code, 3, "{errors}");
}

/// The code of a library keeps the order of a launch, as it is called for one thread at a time.
#[test]
fn libraries_take_schedules() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("race.so");
    let file = "tests/checks/race-pvc.zebin";
    let name = library.to_str().unwrap();
    let (code, _, errors) = output(command(&["compile", file, "-o", name]));
    assert_eq!(code, 0, "{errors}");
    let shape = ["--global", "128", "--local", "128", "--arg", "zero:512"];
    let left = |path: &str, seed: &str| {
        let kernel = ["run", path, "--kernel", "local_read", "--schedule", seed];
        let rest = ["--arg", "i32:1", "--print", "0=i32:128"];
        let (code, text, errors) = output(command(&[&kernel[..], &shape, &rest].concat()));
        assert_eq!(code, 0, "{errors}");
        text
    };
    let results: Vec<String> = ["1", "2", "3", "4"].map(|seed| left(name, seed)).into();
    for (seed, result) in ["1", "2", "3", "4"].into_iter().zip(&results) {
        assert_eq!(left(file, seed), *result);
    }
    assert!(results.iter().any(|result| *result != results[0]));
}

#[test]
fn visa_text_is_compiled_too() {
    let dir = tempfile::tempdir().unwrap();
    let text = "tests/filetests/lsc/transposed_store.visaasm";
    let library = dir.path().join("t.so");
    let library = library.to_str().unwrap();
    let (code, _, errors) = output(command(&[
        "compile", text, "-o", library, "--device", "pvc",
    ]));
    assert_eq!(code, 0, "{errors}");
    let args = [
        "run",
        library,
        "--global",
        "1",
        "--surface",
        "0=fill:u32:9:6",
        "--print",
        "0=u32:6",
    ];
    let (code, out, errors) = output(command(&args));
    assert_eq!(
        (code, &*out),
        (0, "surface 0: u32[6] = 9 9 4 4 4 4\n"),
        "{errors}"
    );
}

/// Time and place do not show in the output.
#[test]
fn output_is_the_same_everywhere() {
    every_output_is_the_same("clif", &[]);
}

#[track_caller]
fn every_output_is_the_same(ir: &str, options: &[&str]) {
    let dirs = [(); 2].map(|()| tempfile::tempdir().unwrap());
    for ending in ["o", "so", "a", "h", "s", "ssa", ir] {
        // Several kernels are in one of the outputs, at least.
        let all = full() || ending == "o";
        let options = &[options, if all { &[] } else { ONE }].concat();
        let name = &format!("saxpy.{ending}");
        let files = dirs.each_ref().map(|dir| {
            let path = dir.path().join(name);
            compile(&path, options);
            fs::read(path).unwrap()
        });
        assert!(!files[0].is_empty());
        assert!(files[0] == files[1], "{name} differs");
    }
}

#[test]
fn objects_for_other_machines() {
    objects_for_each_machine(&[]);
}

#[track_caller]
fn objects_for_each_machine(options: &[&str]) {
    let dir = tempfile::tempdir().unwrap();
    // In the objects; products are in another kernel.
    let kernels = if full() { &[] } else { ONE };
    for (target, start) in [
        ("x86_64-unknown-linux-gnu", &b"\x7fELF\x02\x01"[..]),
        ("aarch64-unknown-linux-gnu", b"\x7fELF\x02\x01"),
        ("x86_64-apple-darwin", b"\xcf\xfa\xed\xfe\x07\0\0\x01"),
        ("aarch64-apple-darwin", b"\xcf\xfa\xed\xfe\x0c\0\0\x01"),
    ] {
        let file = dir.path().join(format!("{target}.o"));
        compile(&file, &[&["--target", target], options, kernels].concat());
        let bytes = fs::read(&file).unwrap();
        assert!(bytes.starts_with(start), "{target}");
        let found = records(&bytes).unwrap();
        assert!(found.iter().all(|r| r.triple == target), "{target}");
        assert!(found.iter().any(|r| r.name == "saxpy"));
        let (code, listed, _) = output(command(&["list", file.to_str().unwrap()]));
        assert_eq!(code, 0);
        assert!(
            listed.contains(target) && listed.contains("  0  y  float*  global buffer"),
            "{listed}"
        );
        let file = dir.path().join(format!("{target}.s"));
        compile(&file, &[&["--target", target], options].concat());
        let listing = fs::read_to_string(&file).unwrap();
        assert!(listing.contains(&format!("for {target}")));
        let products = match target.starts_with("x86") {
            true => ["mulps ", "vfmadd"],
            false => ["fmul v", "fmla v"],
        };
        assert!(products.iter().any(|name| listing.contains(name)));
        assert!(listing.contains("ret\n"), "{listing}");
    }
}

#[test]
fn other_machines_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("x.o");
    let refused = [
        // What a build with the feature compiles for it is run in `tests/c_api.rs`.
        #[cfg(not(feature = "riscv64"))]
        (
            "riscv64gc-unknown-linux-gnu",
            3,
            "built without its code generator: build with `cargo build --features riscv64`",
        ),
        ("s390x-unknown-linux-gnu", 3, "s390x"),
        ("z80-none", 2, "--target z80-none"),
    ];
    for (target, code, why) in refused {
        let args = [
            "compile",
            SAXPY,
            "-o",
            out.to_str().unwrap(),
            "--target",
            target,
        ];
        let (found, _, errors) = output(command(&args));
        assert_eq!(found, code, "{target}: {errors}");
        assert!(errors.contains(why), "{target}: {errors}");
        assert!(!out.exists());
    }
    // Objects can be written; what links them is not here.
    let library = dir.path().join("x.so");
    let args = [
        "compile",
        SAXPY,
        "-o",
        library.to_str().unwrap(),
        "--target",
    ];
    for (target, says) in [
        (
            "aarch64-apple-darwin",
            "links libraries for aarch64-apple-darwin",
        ),
        ("aarch64-unknown-linux-gnu", "`aarch64-linux-gnu-gcc`"),
    ] {
        let mut compile = command(&[&args[..], &[target]].concat());
        compile.env_remove("CC").env("PATH", dir.path());
        let (code, _, errors) = output(compile);
        assert_eq!(code, 4, "{target}: {errors}");
        assert!(errors.contains(says), "{target}: {errors}");
    }
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// A kernel of saxpy's as it goes into an object file.
fn object_kernel(name: &str) -> ObjectKernel {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let zebin = fs::read(format!("{root}/{SAXPY}")).unwrap();
    let program = engine().program_from_zebin(&zebin, None).unwrap();
    let host = CraneliftBackend::host().unwrap();
    let backend = CraneliftBackend::for_triple(host.triple().clone(), &[]).unwrap();
    let kernel = program.kernel(name).unwrap();
    kernel
        .ahead_of_time(&backend, OobPolicy::default())
        .unwrap()
}

/// What is not a library for this machine is refused before anything in it runs.
#[test]
fn wrong_libraries_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let object = dir.path().join("saxpy.o");
    compile(&object, &[]);
    let (code, _, errors) = run(&object, &[]);
    assert_eq!(code, 2);
    assert!(errors.contains("an object file; link it"), "{errors}");

    let library = dir.path().join("saxpy.so");
    compile(&library, &[]);
    let bytes = fs::read(&library).unwrap();
    let at = |needle: &[u8]| {
        bytes
            .windows(needle.len())
            .position(|w| w == needle)
            .unwrap()
    };
    let mut made = object_kernel(&records(&bytes).unwrap().remove(0).name);
    let code_at = at(&made.codes[0].0);
    let record_at = at(b"VISAJITr");
    let descriptor_at = at(b"VISAJITd");
    for (kind, place, says) in [
        ("code", code_at + 5, "the code does not match its digest"),
        ("record", record_at + 100, "the digest does not match"),
        ("record's format", record_at + 8, "format"),
        ("record's ABI", record_at + 12, "ABI"),
        ("record's magic", record_at, "no kernel record"),
        ("descriptor's ABI", descriptor_at + 8, "ABI"),
        ("descriptor's magic", descriptor_at, "not a kernel"),
    ] {
        // Without the digest at the end, as if linked elsewhere.
        let mut damaged = bytes[..bytes.len() - 40].to_vec();
        damaged[place] ^= 0x40;
        let file = dir.path().join("damaged.so");
        fs::write(&file, damaged).unwrap();
        let (code, _, errors) = run(&file, &[]);
        assert!(matches!(code, 2 | 4), "{kind}: {code} {errors}");
        assert!(errors.contains(says), "{kind}: {errors}");
        println!("damaged {kind} -> 1");
    }
    // For a processor with more than any has.
    made.record.features.push("has_another_idea".to_owned());
    let triple = made.record.triple.parse().unwrap();
    let object = visa_jit::artifact::object::write(&triple, &[made]).unwrap();
    let (other, foreign) = (dir.path().join("other.o"), dir.path().join("other.so"));
    fs::write(&other, object).unwrap();
    let mut link = Command::new("cc");
    link.args(["-shared", "-nostdlib", "-o"])
        .args([&foreign, &other]);
    assert_eq!(output(link).0, 0);
    let (code, _, errors) = run(&foreign, &[]);
    assert_eq!(code, 4, "{errors}");
    let says = "a processor with has_another_idea, which this one does not have";
    assert!(errors.contains(says), "{errors}");
    let zeros = dir.path().join("zeros.so");
    fs::write(&zeros, [0; 4096]).unwrap();
    assert!(Program::open_library(&engine(), &zeros).is_err());
}

/// The system's loader trusts what it maps, so a damaged library is refused before it gets there.
#[test]
fn damaged_libraries_are_not_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let library = dir.path().join("saxpy.so");
    compile(&library, &["--kernel", "saxpy"]);
    let bytes = fs::read(&library).unwrap();
    let engine = engine();
    let file = dir.path().join("damaged.so");
    // Everything that the loader reads is in the first and last pages.
    let headers = (0..512).chain(bytes.len() - 2048..bytes.len() - 8);
    for at in headers.step_by(7) {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x81;
        fs::write(&file, damaged).unwrap();
        let error = Program::open_library(&engine, &file).err().unwrap();
        assert!(error.to_string().contains("damaged"), "{at}: {error}");
    }
    Program::open_library(&engine, &library).unwrap();
}

/// What an object file says of its kernels is read only as it was written.
#[test]
fn damaged_objects_say_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("saxpy.o");
    compile(&file, &["--kernel", "saxpy"]);
    let bytes = fs::read(&file).unwrap();
    let whole = records(&bytes).unwrap();
    for length in (0..bytes.len()).step_by(if full() { 1 } else { 3 }) {
        // What linkers append may be missing; the record may not.
        let found = records(&bytes[..length]);
        assert!(found.is_err() || found == Ok(whole.clone()), "{length}");
    }
    println!("object truncated -> {}", bytes.len());
    let record_at = bytes.windows(8).position(|w| w == b"VISAJITr").unwrap();
    let length = visa_runtime::linked::encode(&whole[0]).unwrap().len();
    for bit in record_at * 8..(record_at + length) * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let found = records(&damaged);
        // Records are filled up to multiples of eight bytes.
        let filling = bit / 8 > record_at + length - 8 && found == Ok(whole.clone());
        assert!(found.is_err() || filling, "{bit}");
    }
    println!("record bit flipped -> {}", length * 8);
    for i in 0..share(10_000, 4) as usize {
        let mut damaged = bytes.clone();
        let bit = i.wrapping_mul(7_919) % (bytes.len() * 8);
        damaged[bit / 8] ^= 1 << (bit % 8);
        let found = records(&damaged);
        assert!(found.is_err() || found == Ok(whole.clone()), "{bit}");
    }
    println!("object bit flipped -> {}", share(10_000, 4));
}

#[test]
fn headers_say_what_a_caller_needs() {
    let dir = tempfile::tempdir().unwrap();
    let header = dir.path().join("saxpy.h");
    compile(&header, &["--kernel", "saxpy"]);
    let text = fs::read_to_string(header).unwrap();
    for part in [
        "#ifndef VISA_JIT_SAXPY_H",
        "extern const visa_jit_descriptor visa_jit_kernel_saxpy;",
        "#define SAXPY_ARG_A 2",
        "Work-group size: any.",
        "Local memory: 0 bytes.",
        "Barriers: 0.",
        " *    0  float* y: global buffer",
    ] {
        assert!(text.contains(part), "{part}:\n{text}");
    }
    assert!(!text.contains("saxpy_guarded"), "one kernel was asked for");
}
