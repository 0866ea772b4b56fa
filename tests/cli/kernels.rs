//! What kernels print, and pictures that they are given.

use visa_jit::module::ModuleKind;

use super::*;

/// With a cache of the test's own: all but the first run of a kernel find its code there.
fn cached(cache: &TempDir, args: &[&str]) -> Output {
    let mut command = command(args);
    command.env("VISA_JIT_CACHE_DIR", cache.path());
    finish(command)
}

#[test]
fn kernels_print_to_standard_output() {
    let file = "tests/kernels/bin/skl/printf.zebin";
    let args = ["run", file, "--kernel", "print_strings", "--global", "1"];
    let value = ["--arg", "i8:122", "--threads", "2"];
    let text = "az constant      right|left  |cu % table text\nanother item, (nil)\nno arguments\n";
    for backend in ["cranelift", "interp"] {
        let engine = ["--backend", backend];
        let output = ok(&[&args[..], &value, &engine].concat());
        assert_eq!(output.stdout, text);
        let output = ok(&[&args[..], &value, &engine, &["--json", "--repeat", "2"]].concat());
        let json: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(json["printf"], text);
    }
}

#[test]
fn a_failed_assertion_is_a_fault() {
    let file = "tests/kernels/bin/bmg-26/assert.zebin";
    let args = ["run", file, "--kernel", "assert_range", "--global", "7"];
    let buffers = ["--arg", "zero:28", "--arg", "iota:i32:7"];
    let text = "assert.cl:34: assert_range: global id: [6,0,0], local id: [6,0,0] Assertion `in[i] <= limit` failed.\n";
    let cache = tempfile::tempdir().unwrap();
    for backend in ["cranelift", "interp"] {
        let engine = ["--backend", backend];
        let run = |rest: &[&str]| cached(&cache, &[&args[..], &buffers, &engine, rest].concat());
        let output = run(&["--arg", "i32:5", "--print", "0=i32:7"]);
        assert_eq!(output.code, 1, "{}", output.stderr);
        // Results are shown all the same: they may tell why.
        assert_eq!(output.stdout, "arg 0: i32[7] = 0 2 4 6 8 10 12\n");
        let said = format!("error: an assertion of kernel `assert_range` failed\n{text}");
        assert!(output.stderr.ends_with(&said), "{}", output.stderr);
        let output = run(&["--arg", "i32:5", "--json"]);
        let json: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!((output.code, &json["failed_assertions"]), (1, &text.into()));
        let output = run(&["--arg", "i32:6", "--json"]);
        let json: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!((output.code, json.get("failed_assertions")), (0, None));
    }
    let zeros = ["compare", file, "--kernel", "assert_range", "--global", "7"];
    let output = visa_jit(&[&zeros[..], &buffers, &["--arg", "i32:5"]].concat());
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("an assertion of the kernel fails"));
}

#[test]
fn barriers_that_are_missed_are_errors() {
    let file = "tests/checks/barrier-pvc.zebin";
    let args = ["run", file, "--kernel", "early", "--global", "64"];
    let buffers = ["--local", "64", "--arg", "zero:256"];
    let missing = "`barrier` reached by 30 of 32 work-items of thread 0, group (0, 0, 0): local id (0, 0, 0) is missing, lane 0; 1 more like it\n";
    let cache = tempfile::tempdir().unwrap();
    for backend in ["cranelift", "interp"] {
        let engine = ["--check", "barrier", "--backend", backend];
        let run = |rest: &[&str]| cached(&cache, &[&args[..], &buffers, &engine, rest].concat());
        let output = run(&["--arg", "i32:2"]);
        assert_eq!(output.code, 1, "{}", output.stderr);
        assert!(output.stderr.ends_with(missing), "{}", output.stderr);
        let output = run(&["--arg", "i32:2", "--json"]);
        let json: Value = serde_json::from_str(&output.stdout).unwrap();
        let faults = json["faults"].as_array().unwrap();
        assert_eq!((output.code, faults.len()), (1, 2));
        for (lane, fault) in faults.iter().enumerate() {
            let said = [&fault["kind"], &fault["access"], &fault["space"]];
            assert_eq!(said, ["barrier", "barrier", "work-group"]);
            assert_eq!((&fault["lane"], &fault["count"]), (&lane.into(), &2.into()));
            assert_eq!(fault["about"], "reached by 30 of 32 work-items of thread 0");
        }
        // What is made of findings does not depend on the engine.
        if !full() && backend == "interp" {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let [sarif, page] = ["found.sarif", "found.html"].map(|name| folder.path().join(name));
        let [to_sarif, to_page] = [&sarif, &page].map(|path| path.to_str().unwrap());
        let output = run(&["--arg", "i32:2", "--sarif", to_sarif, "--html", to_page]);
        assert_eq!(output.code, 1, "{}", output.stderr);
        let page = std::fs::read_to_string(page).unwrap();
        assert!(page.contains("<td>barrier<td><code>early</code>"), "{page}");
        let log = std::fs::read_to_string(sarif).unwrap();
        let log: Value = serde_json::from_str(&log).unwrap();
        let [found] = log["runs"][0]["results"].as_array().unwrap().as_slice() else {
            panic!("{log}");
        };
        assert_eq!(
            (&found["ruleId"], &found["occurrenceCount"]),
            (&"barrier".into(), &2.into())
        );
        let place = &found["locations"][0]["physicalLocation"];
        let uri = place["artifactLocation"]["uri"].as_str().unwrap();
        assert!(uri.ends_with("/barrier.cl"), "{uri}");
        let rules = folder.path().join("known.txt");
        std::fs::write(&rules, "# known\nbarrier:early\n").unwrap();
        let rules = format!("@{}", rules.display());
        for (rule, code) in [
            (rules.as_str(), 0),
            ("barrier:barrier.cl", 0),
            ("race", 1),
            // Barriers are no accesses to a buffer.
            ("barrier@o", 1),
        ] {
            let output = run(&["--arg", "i32:2", "--suppress", rule]);
            assert_eq!(output.code, code, "{rule}: {}", output.stderr);
        }
        let output = run(&["--arg", "i32:2", "--suppress", "barriers"]);
        assert_eq!(output.code, 2, "{}", output.stderr);
        assert!(
            output
                .stderr
                .contains("`barriers` is not a suppression rule"),
            "{}",
            output.stderr
        );
        let fine = run(&["--arg", "i32:0"]);
        assert_eq!(fine.code, 0, "{}", fine.stderr);
        assert!(!fine.stderr.contains("fault"), "{}", fine.stderr);
    }
    let compare = ["compare", file, "--kernel", "early", "--global", "64"];
    let sweep = ["--sweep", "check=none,barrier", "--arg", "i32:2"];
    let output = visa_jit(&[&compare[..], &buffers, &sweep].concat());
    assert_eq!(output.code, 1);
    let says = "--check barrier finds 2 error(s)";
    assert!(output.stderr.contains(says), "{}", output.stderr);
}

#[test]
fn a_schedule_is_another_order() {
    let file = "tests/checks/race-pvc.zebin";
    let args = ["run", file, "--kernel", "local_read", "--global", "128"];
    let given = [
        "--local",
        "128",
        "--arg",
        "zero:512",
        "--print",
        "0=i32:128",
    ];
    let cache = tempfile::tempdir().unwrap();
    let run = |far: &str, rest: &[&str]| {
        let args = [&args[..], &given, &["--arg", far], rest].concat();
        let output = cached(&cache, &args);
        assert_eq!(output.code, 0, "{}", output.stderr);
        output.stdout
    };
    let seeds = ["1", "2", "3", "4", "5", "6"];
    let of = |far: &str| seeds.map(|seed| run(far, &["--schedule", seed]));
    let right = run("i32:0", &[]);
    assert!(of("i32:0").iter().all(|result| *result == right));
    let raced = of("i32:1");
    assert!(raced.iter().any(|result| *result != raced[0]));
    assert_eq!(of("i32:1"), raced);
}

#[test]
fn uses_of_what_was_never_written_are_errors() {
    let file = "tests/checks/init-pvc.zebin";
    let args = ["run", file, "--kernel", "buffer_index", "--global", "64"];
    let given = ["--local", "64", "--arg", "zero:256", "--arg", "zero:1024"];
    let check = ["--check", "init", "--backend", "interp"];
    let run = |b: &str, rest: &[&str]| {
        let buffer = ["--arg", b, "--arg", "i32:0"];
        visa_jit(&[&args[..], &given, &buffer, &check, rest].concat())
    };
    let about = "address depends on uninitialised memory at byte 0 of `b` (256 bytes, argument 2)";
    let output = run("uninit:256", &[]);
    assert_eq!(output.code, 1, "{}", output.stderr);
    assert!(output.stderr.contains(about), "{}", output.stderr);
    let output = run("uninit:256", &["--json", "--repeat", "2"]);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let fault = &json["faults"][0];
    let said = [&fault["kind"], &fault["access"], &fault["space"]];
    assert_eq!(said, ["init", "use", "device memory"]);
    let wanted = (&about.into(), &64.into());
    assert_eq!((&fault["about"], &fault["count"]), wanted);
    let fine = run("zero:256", &[]);
    assert_eq!(fine.code, 0, "{}", fine.stderr);
}

#[test]
fn writes_to_what_is_read_only_are_errors() {
    let args = ["run", "tests/checks/pvc.zebin", "--kernel", "store_int"];
    let given = ["--global", "64", "--arg", "i32:0", "--check", "memory"];
    let cache = tempfile::tempdir().unwrap();
    let run = |o: &str, rest: &[&str]| {
        let args = [&args[..], &["--arg", o], &given, rest].concat();
        cached(&cache, &args)
    };
    let about = "byte 0 of read-only `o` (256 bytes, argument 0)";
    let print = ["--print", "0=i32:3"];
    for backend in ["cranelift", "interp"] {
        let rest = [&print[..], &["--backend", backend]].concat();
        let output = run("read-only:zero:256", &rest);
        assert_eq!(output.code, 1, "{}", output.stderr);
        let says = format!("`lsc_store` write of 4 bytes to {about}: device memory at ");
        assert!(output.stderr.contains(&says), "{}", output.stderr);
        // It is written all the same, and a second time.
        let fine = run("zero:256", &rest);
        assert_eq!((fine.code, &fine.stdout), (0, &output.stdout));
    }
    let output = run("read-only:iota:i32:64", &["--json", "--repeat", "2"]);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let fault = &json["faults"][0];
    let wanted = (&about.into(), &64.into(), &"read-only".into());
    assert_eq!((&fault["about"], &fault["count"], &fault["kind"]), wanted);
    let output = run("read-only:zero:256", &["--suppress", "read-only"]);
    assert_eq!(output.code, 0, "{}", output.stderr);
}

/// Version 22.43 does not know the function of assertions, and leaves a call of it through an address that the launcher would have to
/// fill in. `assert_range` of tests/kernels/assert.cl by itself, for pvc.
#[test]
fn assertions_of_the_old_compiler_are_refused() {
    let file = "tests/cli/assert_22.zebin";
    let args = ["run", file, "--kernel", "assert_range", "--global", "7"];
    let buffers = ["--arg", "zero:28", "--arg", "iota:i32:7", "--arg", "i32:6"];
    for backend in ["cranelift", "interp"] {
        let output = visa_jit(&[&args[..], &buffers, &["--backend", backend]].concat());
        assert_eq!(output.code, 3, "{}", output.stderr);
        let why = "address of `__devicelib_assert_fail`, which is neither a function nor a program-scope variable of the file";
        assert!(output.stderr.contains(why), "{}", output.stderr);
    }
}

/// A zebin for a device that is later than this program: named, with what is known and the option that decides.
#[test]
fn an_unknown_device_needs_the_option() {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(repository("tests/kernels/bin/bmg-26/empty.zebin")).unwrap();
    // The note of type 2, which holds the number of bmg's core family.
    let note = [
        &b"\x08\0\0\0\x04\0\0\0\x02\0\0\0IntelGT\0"[..],
        &[0x09, 0x0c],
    ]
    .concat();
    let at = bytes.windows(note.len()).position(|w| w == note).unwrap();
    bytes[at + note.len() - 2..][..2].copy_from_slice(&[0x00, 0x1f]);
    let path = dir.path().join("later.zebin");
    fs::write(&path, bytes).unwrap();
    let args = [
        "run",
        path.to_str().unwrap(),
        "--kernel",
        "empty",
        "--global",
        "1",
    ];
    let output = visa_jit(&args);
    assert_eq!(output.code, 2, "{}", output.stderr);
    for part in [
        "core family 0x1f00",
        "skl, tgllp, acm-g10, pvc, bmg, ptl-h",
        "--device",
    ] {
        assert!(output.stderr.contains(part), "{}", output.stderr);
    }
    ok(&[&args[..], &["--device", "bmg"]].concat());
}

#[test]
fn pictures_go_in_and_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name).display().to_string();
    let texels: Vec<u8> = (0..32).map(|i| i * 7).collect();
    let file = fs::File::create(path("in.png")).unwrap();
    let mut encoder = png::Encoder::new(file, 4, 2);
    encoder.set_color(png::ColorType::Rgba);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&texels).unwrap();
    writer.finish().unwrap();
    // To the same size, texels stay as they are.
    let run = |from: &str, to: &str, save: &str| {
        let file = "tests/kernels/bin/skl/image_filter.zebin";
        visa_jit(&[
            "run", file, "--kernel", "resize", "--global", "4,2", "--arg", from, "--arg", to,
            "--save", save,
        ])
    };
    let picture = format!("image2d:rgba8unorm:4x2:{}", path("in.png"));
    let empty = "image2d:rgba8unorm:4x2";
    for name in ["out.png", "out.bin"] {
        let output = run(&picture, empty, &format!("1={}", path(name)));
        assert_eq!(output.code, 0, "{}", output.stderr);
    }
    assert_eq!(fs::read(path("out.bin")).unwrap(), texels);
    let again = format!("image2d:rgba8unorm:4x2:{}", path("out.png"));
    let output = run(&again, empty, &format!("1={}", path("again.bin")));
    assert_eq!(output.code, 0, "{}", output.stderr);
    assert_eq!(fs::read(path("again.bin")).unwrap(), texels);
    let wrong = |from: &str, to: &str, save: &str, part: &str| {
        let output = run(from, to, save);
        assert_eq!(output.code, 2, "{}", output.stderr);
        assert!(output.stderr.contains(part), "{}", output.stderr);
    };
    let save = format!("1={}", path("out.png"));
    let small = picture.replace("4x2", "4x3");
    wrong(&small, empty, &save, "4x2 texels, not 4x3");
    wrong(&picture, "image2d:r32float:4x2", &save, "not r32float");
    wrong(&picture, "zero:32", &save, "image2d:rgba8unorm:WxH:PATH");
    wrong(
        &picture,
        "image1d:rgba8unorm:4",
        &save,
        "an image of type image2d_t",
    );
}

/// A kernel and the functions that it calls are one file with one version, as the vendor's assembler wants it.
#[test]
fn disassembly_of_functions_is_one_file() {
    let file = "tests/kernels/bin/skl/call_stack.zebin";
    let text = ok(&["disasm", file]).stdout;
    let versions = text.lines().filter(|line| line.starts_with(".version"));
    assert_eq!(versions.count(), 1);
    let modules =
        visa_jit::front::text::parse_all("text", &text, visa_jit::Versions::Known).unwrap();
    let kinds = |kind| modules.iter().filter(|m| m.kind == kind).count();
    assert!(kinds(ModuleKind::Kernel) > 1 && kinds(ModuleKind::Function) > 1);
    assert!(modules.iter().all(|m| m.version == modules[0].version));
    // Lines are those of the whole file.
    let last = modules.last().unwrap().insts.last().unwrap().pos.line as usize;
    assert!(text.lines().count() - last < 5, "{last}");
}

/// What compiler 22.43 makes of 64-bit divisions is found among all that passes do before: a loop over bits for a quotient and one for a remainder.
#[test]
fn long_divisions_of_kernels_are_found() {
    for device in ["skl", "pvc"] {
        let file = format!("tests/kernels/bin/{device}/divide.zebin");
        for kernel in ["divide_long", "divide_ulong"] {
            let ssa = ok(&["ssa", &file, "--kernel", kernel]).stdout;
            for op in ["udiv", "urem"] {
                let wide = ssa
                    .lines()
                    .filter(|line| line.contains(&format!("i64> = {op} ")));
                assert_eq!(wide.count(), 1, "{device}: {kernel}, {op}");
            }
        }
    }
}
