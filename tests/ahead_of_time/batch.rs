//! Many files at once.

use super::*;

/// A directory of two kernels, a text with an instruction that is not supported, a damaged file, and a file that is no kernel.
fn mixture(dir: &Path) -> PathBuf {
    let input = dir.join("in");
    fs::create_dir_all(input.join("deep")).unwrap();
    let root = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    for (from, to) in [
        (SAXPY, "deep/saxpy.zebin"),
        (
            "tests/filetests/lsc/transposed_store.visaasm",
            "store.visaasm",
        ),
        (
            "tests/filetests/errors/unsupported_line.visaasm",
            "send.visaasm",
        ),
    ] {
        fs::copy(root.join(from), input.join(to)).unwrap();
    }
    fs::write(input.join("damaged.zebin"), b"\x7fELF and nothing else").unwrap();
    fs::write(input.join("notes.txt"), "not a kernel").unwrap();
    input
}

/// Files that cannot be compiled are reported, and the others are compiled.
#[test]
fn many_files_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (mixture(dir.path()), dir.path().join("out"));
    let paths = [input.to_str().unwrap(), out.to_str().unwrap()];
    let args = [
        "compile", paths[0], "-o", paths[1], "-j", "2", "--device", "acm-g10",
    ];
    let (code, text, _) = output(command(&[&args[..], &["--json"]].concat()));
    assert_eq!(code, 2, "{text}");
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["files"].as_array().unwrap().len(), 4, "{text}");
    let failed = json["failed"].as_array().unwrap();
    let of = |name: &str| {
        let named = |f: &&Value| f["file"].as_str().unwrap().ends_with(name);
        failed
            .iter()
            .find(named)
            .unwrap_or_else(|| panic!("{text}"))
    };
    assert_eq!(failed.len(), 2, "{text}");
    assert_eq!(of("damaged.zebin")["code"], 2);
    assert_eq!(of("damaged.zebin")["kernel"], "");
    assert_eq!(of("send.visaasm")["code"], 3);
    let said = of("send.visaasm")["error"].as_str().unwrap();
    assert!(said.contains("raw_sends"), "{said}");
    let kernel = of("send.visaasm")["kernel"].as_str().unwrap();
    assert!(!kernel.is_empty(), "{text}");
    assert!(out.join("store.visaasm.o").exists());
    assert!(out.join("deep/saxpy.o").exists());
    let (code, text, errors) = output(command(&args));
    assert_eq!(code, 2);
    assert!(
        text.contains("4 files in ") && text.contains("; 2 failed\n"),
        "{text}"
    );
    let lines: Vec<_> = text.lines().skip(1).collect();
    assert!(lines[0].contains("damaged.zebin"), "{text}");
    assert!(
        lines[1].contains(kernel) && lines[1].contains("raw_sends"),
        "{text}"
    );
    // No one looks at a progress bar in a pipe.
    assert_eq!(errors, "");
    let (code, _, errors) = output(command(&["compile", "examples/c", "-o", paths[1]]));
    assert_eq!(code, 2, "{errors}");
}

/// On a terminal a bar shows how far it is, and goes away.
#[test]
fn progress_is_for_terminals() {
    let dir = tempfile::tempdir().unwrap();
    let (input, out) = (mixture(dir.path()), dir.path().join("out"));
    let mut line = format!("{} compile", env!("CARGO_BIN_EXE_visa-jit"));
    for part in [
        &input,
        Path::new("-o"),
        &out,
        Path::new("-j1 --device acm-g10"),
    ] {
        line.push_str(&format!(" {}", part.display()));
    }
    let mut script = Command::new("script");
    script
        .args(["-qec", &line, "/dev/null"])
        .env("TERM", "xterm");
    if script.output().is_err() {
        println!("skipped: script (of bsdutils) is not installed");
        return;
    }
    let (code, seen, _) = output(script);
    assert_eq!(code, 2, "{seen}");
    assert!(
        seen.contains("/4 files, ") && seen.contains(" left"),
        "{seen:?}"
    );
    assert!(seen.contains('█') || seen.contains('░'), "{seen:?}");
    let (_, last) = seen.rsplit_once(" left").unwrap();
    assert!(
        last.contains("\x1b[2K") && last.contains("; 2 failed"),
        "{seen:?}"
    );
}

fn batch(out: &Path, more: &[&str]) -> (i32, String) {
    let args = [
        &[
            "compile",
            "tests/kernels/bin/skl",
            "-o",
            out.to_str().unwrap(),
        ],
        more,
    ]
    .concat();
    let (code, text, _) = output(command(&args));
    (code, text)
}

/// The whole corpus; how much faster two jobs are than one is printed.
#[test]
#[ignore = "compiles every kernel of a device twice"]
fn the_corpus_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let mut seconds = Vec::new();
    for jobs in ["1", "2"] {
        let (code, text) = batch(&dir.path().join(jobs), &["-j", jobs, "--json"]);
        let json: Value = serde_json::from_str(&text).unwrap();
        assert!(matches!(code, 0 | 3), "{text}");
        seconds.push(json["seconds"].as_f64().unwrap());
        println!(
            "{jobs} jobs: {} kernels, {:.2} s",
            json["kernels"],
            seconds.last().unwrap()
        );
        for failed in json["failed"].as_array().unwrap() {
            println!(
                "  {} {}: {}",
                failed["file"], failed["kernel"], failed["error"]
            );
            assert_eq!(failed["code"], 3, "refused for want of something: {failed}");
        }
    }
    println!("two jobs -> {:.2} times one", seconds[0] / seconds[1]);
}

/// The steps of compilation, with their times: for all kernels as a table, for each one in JSON.
#[test]
fn steps_of_compilation() {
    let dir = tempfile::tempdir().unwrap();
    let object = dir.path().join("saxpy.o");
    let args = [
        "compile",
        SAXPY,
        "-o",
        object.to_str().unwrap(),
        "--time-passes",
    ];
    let args = [&args[..], if full() { &[] } else { ONE }].concat();
    let (code, text, _) = output(command(&args));
    assert_eq!(code, 0, "{text}");
    let table: Vec<&str> = text.lines().collect();
    assert!(
        table[0].contains(" vISA instructions, ") && table[0].ends_with("for each instruction")
    );
    for step in [
        "lowering: lower",
        "passes: gvn",
        "cranelift: Register allocation",
    ] {
        assert_eq!(
            table.iter().filter(|row| row.ends_with(step)).count(),
            1,
            "{text}"
        );
    }

    // With a time limit another thread compiles.
    for more in [&["--json"][..], &["--json", "--time-limit", "60"]] {
        let (code, text, _) = output(command(&[&args[..], more].concat()));
        let json: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(code, 0, "{text}");
        let times = json["files"][0]["times"].as_array().unwrap();
        assert!(!times.is_empty());
        for time in times {
            assert!(time["instructions"].as_u64().unwrap() > 10, "{text}");
            let steps = time["steps"].as_array().unwrap();
            let named = |name: &str| steps.iter().find(|step| step["step"] == name);
            // Three specialisations.
            for name in ["lower", "build Cranelift IR", "Register allocation"] {
                assert_eq!(named(name).unwrap()["runs"], 3, "{text}");
                assert!(named(name).unwrap()["ms"].as_f64().unwrap() > 0.0, "{text}");
            }
            assert!(named("dce").unwrap()["changes"].as_u64().unwrap() > 0);
            let sum: f64 = steps.iter().map(|step| step["ms"].as_f64().unwrap()).sum();
            let all = time["ms"].as_f64().unwrap();
            // How much more a kernel takes than its steps depends on what else runs.
            assert!(sum <= all, "{sum} of {all} ms");
        }
    }
    let plain = ["compile", SAXPY, "-o", object.to_str().unwrap(), "--json"];
    assert!(!output(command(&plain)).1.contains("steps"));
}

/// One file says what its kernels took, and many files what came of each as soon as it is known.
#[test]
fn times_and_lines() {
    let dir = tempfile::tempdir().unwrap();
    let object = dir.path().join("saxpy.o");
    let one = ["compile", SAXPY, "-o", object.to_str().unwrap(), "--json"];
    let (code, text, _) = output(command(&one));
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 0, "{text}");
    let times = json["files"][0]["times"].as_array().unwrap();
    assert_eq!(times.len() as u64, json["kernels"].as_u64().unwrap());
    assert!(times.iter().all(|t| t["ms"].as_f64().unwrap() > 0.0));
    assert!(object.exists());

    let (input, out) = (mixture(dir.path()), dir.path().join("out"));
    let left_over = input.join("deep/saxpy.zebin.spv");
    fs::write(left_over, "what ocloc leaves").unwrap();
    let paths = [input.to_str().unwrap(), out.to_str().unwrap()];
    let args = ["compile", paths[0], "-o", paths[1], "--json=lines"];
    let (_, text, _) = output(command(&[&args[..], &["--device", "acm-g10"]].concat()));
    let lines: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let (last, files) = lines.split_last().unwrap();
    assert_eq!(files.len(), 4, "{text}");
    assert!(files.iter().all(|f| f["file"].is_string()), "{text}");
    let failed = files.iter().map(|f| f["failed"].as_array().unwrap().len());
    assert_eq!(failed.sum::<usize>(), 2, "{text}");
    assert_eq!(last["failed"].as_array().unwrap().len(), 2);
    assert!(last["files"].is_null() && last["seconds"].is_number());
}

/// A kernel that takes too long is given up, and the others are compiled.
#[test]
fn a_kernel_that_takes_too_long() {
    let dir = tempfile::tempdir().unwrap();
    let line = "    pow (M1, 16) V(0,0)<1> V(0,0)<1;1,0> V(0,0)<1;1,0>\n";
    let text = format!(
        ".version 4.1\n.kernel \"slow\"\n.kernel_attr SimdSize=16\n.decl V v_type=G type=f num_elts=16 align=GRF\n\
         .function \"main\"\n{}    ret (M1, 1)\n",
        line.repeat(if full() { 150 } else { 40 })
    );
    let slow = dir.path().join("slow.visaasm");
    fs::write(&slow, text).unwrap();
    let (slow, out) = (slow.to_str().unwrap(), dir.path().join("out"));
    let args = [
        "compile",
        slow,
        SAXPY,
        "-o",
        out.to_str().unwrap(),
        "--device",
        "skl",
        "-j",
        "1",
        "--time-limit",
    ];
    let (code, text, _) = output(command(&[&args[..], &["0.005", "--json"]].concat()));
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(code, 5, "{text}");
    let failed = json["failed"].as_array().unwrap();
    assert!(
        failed
            .iter()
            .any(|f| f["kernel"] == "slow" && f["code"] == 5),
        "{text}"
    );
    let (code, text, _) = output(command(&[&args[..], &["100"]].concat()));
    assert_eq!(code, 0, "{text}");
}
