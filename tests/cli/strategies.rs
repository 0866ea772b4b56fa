//! The axes of a strategy: each value runs right or is refused.

use super::*;

const LOOPS: &str = "tests/kernels/bin/skl/loops.zebin";

/// Compares strategies on loops in divergent branches.
fn nested(more: &[&str]) -> Output {
    let args = [
        "compare",
        LOOPS,
        "--kernel",
        "nested",
        "--global",
        // The interpreter, which all results are compared with, takes most of the time.
        if full() { "64" } else { "16" },
        "--local",
        if full() { "32" } else { "16" },
        "--arg",
        "zero:1024",
        "--arg",
        "rand:u32:256:7",
        "--repeat",
        "1",
    ];
    visa_jit(&[&args[..], more].concat())
}

fn rows(output: &Output) -> (Vec<Value>, Vec<String>) {
    assert_eq!(output.code, 0, "{}", output.stderr);
    let json: Value = serde_json::from_str(&output.stdout).unwrap();
    let rows = json["strategies"].as_array().unwrap().clone();
    for row in &rows {
        assert_eq!(row["same"], Value::Bool(true), "{row}");
    }
    let refused = json["refused"].as_array().unwrap().iter();
    let refused = refused.map(|pair| format!("{}: {}", pair[0].as_str().unwrap(), pair[1]));
    (rows, refused.collect())
}

fn row<'a>(rows: &'a [Value], name: &str) -> &'a Value {
    let found = rows.iter().find(|row| row["strategy"] == name);
    found.unwrap_or_else(|| panic!("no {name}: {rows:?}"))
}

#[test]
fn every_value_of_an_axis_runs_right_or_is_refused() {
    let sweep = |axes: &[&str]| {
        let axes = axes.iter().flat_map(|axis| ["--sweep", axis]);
        rows(&nested(&axes.chain(["--json"]).collect::<Vec<_>>()))
    };
    let (made, refused) = sweep(&["regalloc=full,fast", "masks=branch,select"]);
    assert_eq!((made.len(), refused.len()), (4, 0));
    let count = |name: &str, key: &str| row(&made, name)[key].as_u64().unwrap();
    let spills = |regalloc: &str| count(&format!("regalloc={regalloc} masks=branch"), "spills");
    assert!(spills("fast") > spills("full"), "{made:?}");
    let ssa = |masks: &str| count(&format!("regalloc=full masks={masks}"), "ssa");
    assert!(ssa("select") < ssa("branch"), "{made:?}");

    let (made, refused) = sweep(&["bounds=hoisted,separate,inline"]);
    assert_eq!((made.len(), refused.len()), (3, 0));
    let (made, refused) = sweep(&["vector-width=auto,128,256,512"]);
    assert_eq!((made.len(), refused.len()), (2, 2));
    for (refused, bits) in refused.iter().zip(["256", "512"]) {
        assert!(
            refused.contains(&format!("vectors of 128 bits, not {bits}")),
            "{refused}"
        );
    }
    let cpus = ["cpu=native,x86-64-v2,x86-64-v3", ",x86-64-v4"];
    let cpus = &cpus[..if full() { 2 } else { 1 }];
    let (made, refused) = sweep(&[&cpus.concat()]);
    assert_eq!(made.len() + refused.len(), 2 + cpus.len());
    // Without AVX, other instructions.
    let bytes = |cpu: &str| row(&made, cpu)["bytes"].as_u64();
    if cfg!(target_arch = "x86_64") && std::arch::is_x86_feature_detected!("avx2") {
        assert_ne!(bytes("cpu=native"), bytes("cpu=x86-64-v2"));
        // A level with AVX2 has AVX, too.
        assert!(bytes("cpu=x86-64-v3") < bytes("cpu=x86-64-v2"), "{made:?}");
    }
    assert!(
        refused.iter().all(|why| why.contains("does not run here")),
        "{refused:?}"
    );
}

#[test]
fn what_no_code_generator_honours_is_an_error() {
    for (wrong, code, says) in [
        (["--vector-width", "256"], 3, "vectors of 128 bits, not 256"),
        (["--sweep", "dispatch=wave"], 2, "auto, thread, group"),
        (["--vector-width", "64"], 2, "auto, 128, 256, 512"),
        (
            ["--cpu", "pentium"],
            2,
            "native, x86-64-v2, x86-64-v3, x86-64-v4",
        ),
        (["--sweep", "masks=maybe"], 2, "auto, select, branch"),
        (["--sweep", "regalloc=slow"], 2, "auto, fast, full"),
    ] {
        let output = nested(&wrong);
        assert_eq!(output.code, code, "{wrong:?}: {}", output.stderr);
        assert!(output.stderr.contains(says), "{wrong:?}: {}", output.stderr);
    }
}

/// One call through all barriers gives what many do; where single threads wait for each other, it is refused.
#[test]
fn groups_go_through_barriers_in_one_call() {
    let barriers = [
        (
            "reduction.zebin",
            "reduce_sum",
            &["zero:64", "rand:f32:4096:1", "local:1024"][..],
        ),
        (
            "histogram.zebin",
            "histogram_local_array",
            &["zero:1024", "rand:u8:4096:1", "u32:4000"],
        ),
    ];
    let backends: &[&str] = if cfg!(feature = "llvm-codegen") {
        &["cranelift", "llvm"]
    } else {
        &["cranelift"]
    };
    for (file, kernel, arguments) in barriers {
        for backend in backends {
            let file = format!("tests/kernels/bin/skl/{file}");
            let mut command = vec!["compare", &file, "--kernel", kernel, "--backend", backend];
            let global = if full() { "4096" } else { "512" };
            command.extend([
                "--global", global, "--local", "256", "--repeat", "1", "--json",
            ]);
            command.extend(arguments.iter().flat_map(|a| ["--arg", a]));
            command.extend(["--sweep", "dispatch=thread,group"]);
            let (made, refused) = rows(&visa_jit(&command));
            assert_eq!((made.len(), refused.len()), (2, 0), "{refused:?}");
            // Other code: it need not be longer.
            let size = |dispatch: &str| {
                let row = row(&made, dispatch);
                ["bytes", "instructions"].map(|name| row[name].as_u64().unwrap())
            };
            assert_ne!(size("dispatch=group"), size("dispatch=thread"));
        }
    }
    let waits = "tests/filetests/barriers/named_pairs.visaasm";
    let refused = visa_jit(&[
        "run",
        waits,
        "--device",
        "pvc",
        "--global",
        "64",
        "--local",
        "64",
        "--dispatch",
        "group",
    ]);
    assert_eq!(refused.code, 3, "{}", refused.stderr);
    assert!(
        refused.stderr.contains("named barriers"),
        "{}",
        refused.stderr
    );
}

/// LLVM's vectors are as wide as asked for, in registers too.
#[test]
#[cfg(feature = "llvm-codegen")]
fn llvm_keeps_to_the_width() {
    let dir = tempfile::tempdir().unwrap();
    let page = dir.path().join("page.html");
    let widths = ["128", "256", "512"];
    let made = nested(&[
        "--backend",
        "llvm",
        "--sweep",
        "vector-width=128,256,512",
        "--html",
        page.to_str().unwrap(),
        "--json",
    ]);
    let (made, refused) = rows(&made);
    assert_eq!(made.len() + refused.len(), widths.len());
    let page = fs::read_to_string(page).unwrap();
    let (_, data) = page.split_once("id=\"data\">").unwrap();
    let data: Value = serde_json::from_str(data.split("</script>").next().unwrap()).unwrap();
    for strategy in data["strategies"].as_array().unwrap() {
        let listing = &data["listings"][strategy["machine"].as_u64().unwrap() as usize];
        let text = listing["rows"].to_string();
        let name = strategy["name"].as_str().unwrap();
        let used = ["xmm", "ymm", "zmm"].map(|register| text.contains(register));
        let wanted = match name {
            "vector-width=128" => [true, false, false],
            "vector-width=256" => [used[0], true, false],
            _ => [used[0], used[1], true],
        };
        assert_eq!(used, wanted, "{name}");
    }
}

/// `run --tier` refuses what it cannot do. What it does, it says: the code generator of each run, and in the next run the cache has LLVM's code.
#[test]
fn runs_are_tiered() {
    for other in ["--backend=interp", "--backend=llvm"] {
        let output = visa_jit(&saxpy(&["--tier", other]));
        assert_eq!(output.code, 3, "{}", output.stderr);
        let why = if other.ends_with("llvm") && !cfg!(feature = "llvm-codegen") {
            "--features llvm"
        } else {
            "--tier begins with cranelift's code"
        };
        assert!(output.stderr.contains(why), "{}", output.stderr);
    }
    if !cfg!(feature = "llvm-codegen") {
        let output = visa_jit(&saxpy(&["--tier"]));
        assert_eq!(output.code, 3, "{}", output.stderr);
        for part in ["llvm: ", "--features llvm", "; --tier compiles with it"] {
            assert!(output.stderr.contains(part), "{}", output.stderr);
        }
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let cached = |more: &[&str]| {
        let mut command = command(&saxpy(&["--tier", "--print", "0=f32:8"]));
        command.args(more).arg("--cache-dir").arg(dir.path());
        let output = finish(command);
        assert_eq!(output.code, 0, "{}", output.stderr);
        output
    };
    // The command waits for the background for a while only.
    let mut found = String::new();
    for _ in 0..100 {
        let output = cached(&["--json"]);
        assert_eq!(output.stderr, SAXPY_RESULT);
        let json: Value = serde_json::from_str(&output.stdout).unwrap();
        assert_eq!(json["run_backends"][0], json["backend"]);
        found = format!("{} {}", json["backend"], json["cache"]);
        if found == "\"llvm\" \"disk\"" {
            break;
        }
    }
    assert_eq!(found, "\"llvm\" \"disk\"");
    let output = cached(&["--repeat", "3"]);
    assert_eq!(output.stdout, SAXPY_RESULT);
    assert!(
        output.stderr.contains("\ntiers: llvm 3\n"),
        "{}",
        output.stderr
    );
    // Without a cache the first run is Cranelift's, however fast the background is.
    let output = ok(&saxpy(&["--tier", "--no-cache", "--repeat", "100000"]));
    let tiers = output
        .stderr
        .lines()
        .find(|line| line.starts_with("tiers: "));
    let tiers = tiers.unwrap_or_else(|| panic!("{}", output.stderr));
    assert!(tiers.contains(", llvm "), "{tiers}");
}
