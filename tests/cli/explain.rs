//! Why code is as it is, as `explain` says.

use super::*;

/// Counts of `way` by shape and bounds, for a kernel of a launch of 64 x 16 in groups of 16.
struct Explained(Value);

impl Explained {
    fn new(file: &str, kernel: &str, more: &[&str]) -> Explained {
        let file = format!("tests/kernels/bin/skl/{file}.zebin");
        let args = ["explain", &file, "--kernel", kernel, "--json"];
        let output = ok(&[&args[..], more].concat());
        Explained(serde_json::from_str(&output.stdout).unwrap())
    }

    fn of_launch(file: &str, kernel: &str, more: &[&str]) -> Explained {
        let launch = ["--global", "64,16", "--local", "16"];
        Explained::new(file, kernel, &[&launch[..], more].concat())
    }

    /// Accesses of this shape that are done this way, under these bounds.
    fn count(&self, shape: &str, way: &str, bounds: &str) -> usize {
        let accesses = self.0["accesses"].as_array().unwrap().iter();
        let wanted = accesses.filter(|a| {
            (&a["shape"], &a["way"], &a["bounds"]) == (&shape.into(), &way.into(), &bounds.into())
        });
        wanted.count()
    }

    fn says(&self, list: &str, key: &str, what: &str) -> bool {
        let items = self.0[list].as_array().unwrap().iter();
        items
            .filter_map(|item| item[key].as_str())
            .any(|text| text.contains(what))
    }
}

#[test]
fn shapes_of_addresses_and_why() {
    let gather = Explained::of_launch("gather", "gather", &[]);
    // Threads are half full; under masks all lanes are asked for at once.
    assert_eq!(gather.count("arbitrary", "lanes", "all-lanes"), 2);
    let full = Explained::new("gather", "gather", &["--global", "64", "--local", "64"]);
    assert_eq!(full.count("arbitrary", "lanes", "lanes"), 2);
    assert!(gather.says("accesses", "why", "comes from memory, line 105"));
    let tiled = Explained::of_launch("sgemm", "sgemm_tiled", &[]);
    assert!(tiled.count("uniform", "broadcast", "shared") > 1);
    assert!(tiled.says("split", "what", "cut at 2 barriers"));
    let long = Explained::of_launch("atomics", "atomics_own_long", &[]);
    assert!(long.count("strided", "lanes", "tested") > 10);
    let chosen = Explained::of_launch("convert", "convert_float_long", &[]);
    assert!(chosen.says("accesses", "why", "chosen by a mask"));
    // Without a launch, the layout of local ids is for the code to find out.
    let general = Explained::new("gather", "gather", &[]);
    assert!(general.says("accesses", "why", "once a thread, finds local ids in rows"));
    assert_eq!(general.0["launches"], "other launches");
}

#[test]
fn bounds_are_what_the_code_generator_says() {
    let saxpy = Explained::of_launch("saxpy", "saxpy", &[]);
    assert_eq!(saxpy.count("contiguous", "vector", "tested"), 2);
    assert_eq!(saxpy.count("contiguous", "vector", "shared"), 4);
    assert!(saxpy.says("split", "what", "one test holds for 6 accesses"));
    assert_eq!(saxpy.0["bounds"]["shared"], 4);
    let spilled = saxpy.0["spills"].as_u64().unwrap();
    assert!(spilled > 0 && spilled < saxpy.0["stack"].as_u64().unwrap());
}

#[test]
fn passes_that_are_left_out_decide_nothing() {
    let mask = "a select is dropped";
    let mandelbrot = |more: &[&str]| Explained::of_launch("mandelbrot", "mandelbrot", more);
    let all = mandelbrot(&[]);
    assert!(all.says("masks", "what", mask));
    assert!(all.says("split", "what", "runs in 2 strips"));
    let without = mandelbrot(&["--no-pass", "masks", "--no-pass", "strip-mine"]);
    assert!(!without.says("masks", "what", mask));
    assert_eq!(without.0["split"].as_array().unwrap().len(), 0);
    let naive = Explained::of_launch("sgemm", "sgemm_naive", &[]);
    assert!(naive.says(
        "split",
        "what",
        "at once: an operation of the loop accesses memory"
    ));
}

#[test]
fn last_lanes_run_one_by_one_where_no_lane_is_reported() {
    let tail = |more: &[&str]| {
        let explained = Explained::new("pointers", "chase_sum", more);
        explained.says(
            "split",
            "what",
            "8 lanes are left in the loop, they run one",
        )
    };
    assert!(tail(&[]));
    for more in [
        ["--check", "memory"],
        ["--check", "race"],
        ["--check", "init"],
        ["--no-pass", "scalar-tails"],
    ] {
        assert!(!tail(&more), "{more:?}");
    }
}

#[test]
fn text_names_lines_and_instructions() {
    let file = "tests/kernels/bin/skl/gather.zebin";
    let text = ok(&["explain", file, "--kernel", "gather"]).stdout;
    for part in [
        "gather: code of cranelift for other launches",
        "  line 111   gather4_scaled.R (M1, 16) T6 0x0:ud V0060.0 V0062.0\n    load.surface.i32x1, 16 lanes\n    arbitrary: ",
        "16 scalars; one bounds test for all lanes; where it fails, one for each",
        "bounds tests: 2 all-lanes, 4 tested",
        "loads and stores of spilled values",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    for (wrong, says) in [
        (
            &["--backend", "interp"][..],
            "the interpreter makes no code",
        ),
        (&["--no-pass", "x"], "fold, cfg, gvn"),
        (&["--local", "8"], "--global"),
    ] {
        let args = ["explain", file, "--kernel", "gather"];
        let output = visa_jit(&[&args[..], wrong].concat());
        assert_eq!(output.code, 2, "{}", output.stderr);
        assert!(output.stderr.contains(says), "{}", output.stderr);
    }
}

/// A line for each load and store of lanes, in the order of the code; those of a part of a block with two versions come after its line.
#[test]
fn the_access_plan_has_a_line_for_each_access() {
    let saxpy = Explained::of_launch("saxpy", "saxpy", &[]);
    assert!(saxpy.says("plan", "how", "two; a test in front is about 6 accesses"));
    let plan = saxpy.0["plan"].as_array().unwrap();
    let inside: Vec<_> = plan.iter().filter(|line| line["depth"] == 1).collect();
    assert_eq!(inside.len(), 6);
    for line in inside {
        let reason = line["reason"].as_str().unwrap();
        assert!(
            reason.starts_with("affine, 4 bytes from lane to lane; "),
            "{reason}"
        );
        assert!(reason.ends_with("; else a call of the runtime, 16 lanes one by one"));
        assert_eq!(line["how"], "whole vectors");
    }
    let gather = Explained::of_launch("gather", "gather", &[]);
    let accesses = gather.0["accesses"].as_array().unwrap();
    let plan = gather.0["plan"].as_array().unwrap();
    let planned = |access: &Value| {
        let ours = plan.iter().filter(|line| line["line"] == access["line"]);
        ours.filter(|line| line["kind"] != "versions").count()
    };
    assert!(!accesses.is_empty());
    for access in accesses {
        assert_eq!(planned(access), 1, "{access}");
    }
    let file = "tests/kernels/bin/skl/gather.zebin";
    let text = ok(&["explain", file, "--kernel", "gather"]).stdout;
    let line = "\naccess plan\n";
    assert!(text.contains(line), "{text}");
    let line = "  line 111   load.surface.i32x1, 16 lanes: 16 scalars (any addresses: few such accesses; one test whether all lanes are inside)\n";
    assert!(text.contains(line), "{text}");
}

/// Halves of one instruction, a constant distance apart, share a test in front of their block, unless they are told not to.
#[test]
fn halves_share_tests_of_bounds_or_not() {
    let tests = |bounds| {
        let explained = Explained::of_launch("saxpy", "saxpy", &["--bounds", bounds]);
        let run = |how| explained.count("contiguous", "vector", how);
        (run("tested"), run("shared"))
    };
    let (tested, shared) = tests("hoisted");
    assert!(tested > 0 && shared > 0, "{tested} {shared}");
    assert_eq!(tests("separate"), (tested + shared, 0));
}

#[test]
fn halves_that_are_one_name_both_lines() {
    let merged = Explained::of_launch("gather", "gather", &["--split-accesses", "merge"]);
    let accesses = merged.0["accesses"].as_array().unwrap();
    let lines: Vec<_> = accesses
        .iter()
        .map(|a| (&a["line"], &a["upper_lines"]))
        .collect();
    assert!(
        lines
            .iter()
            .all(|(line, upper)| upper[0].as_u64() > line.as_u64() && upper[1].is_null()),
        "{lines:?}"
    );
    let apart = Explained::of_launch("gather", "gather", &["--split-accesses", "keep"]);
    let accesses = apart.0["accesses"].as_array().unwrap();
    assert_eq!((accesses.len(), lines.len()), (6, 3));
    assert!(accesses.iter().all(|a| a["upper_lines"][0].is_null()));
    let file = "tests/kernels/bin/skl/gather.zebin";
    let text = ok(&["explain", file, "--kernel", "gather_wide"]).stdout;
    assert!(
        text.contains("load.surface.i32x2, 32 lanes, with those of line 113"),
        "{text}"
    );
}

/// Where the table of the runtime has its functions, of those that these kernels call.
#[cfg(target_arch = "x86_64")]
fn functions() -> Vec<(usize, &'static str)> {
    use std::mem::offset_of;
    use visa_runtime::abi::Helpers;
    macro_rules! named {
        ($($name:ident)*) => { vec![$((offset_of!(Helpers, $name), stringify!($name))),*] };
    }
    named! {
        fp_env fault tsc atomic load store load_preserve_all store_preserve_all image fault_preserve_all store_enabled check
        check_preserve_all arrive race race_affine race_reads initialise misaligned
    }
}

/// Calls in machine code through the runtime's table, by line of vISA and function, sorted. Constants behind the code look like calls now
/// and then, but not of registers that were just read from a table.
#[cfg(target_arch = "x86_64")]
fn calls_in_code(text: &str) -> Vec<(u64, &'static str)> {
    let functions = functions();
    let (mut line, mut calls, mut read) = (0, Vec::new(), Vec::new());
    for (n, text) in text.lines().enumerate() {
        if let Some(source) = text.strip_prefix("; ") {
            let number = source.split(':').next().and_then(|n| n.parse().ok());
            line = number.unwrap_or(line);
            continue;
        }
        let words: Vec<&str> = text.split_whitespace().collect();
        match words[..] {
            // `mov rcx,[rcx+28h]`
            [.., "mov", operands] => {
                let Some((register, from)) = operands.split_once(",[") else {
                    continue;
                };
                let at = from.trim_end_matches(']').split_once('+');
                let at = at.map_or("0", |(_, at)| at.trim_end_matches('h'));
                if let Ok(at) = usize::from_str_radix(at, 16) {
                    read.push((n, register.to_owned(), at));
                }
            }
            [.., "call", register] => {
                let last = read.iter().rev().find(|(_, to, _)| to == register);
                let near = last.filter(|(from, ..)| n - from < 200);
                let called = near.and_then(|(.., at)| functions.iter().find(|(f, _)| f == at));
                calls.extend(called.map(|(_, name)| (line, *name)));
            }
            _ => {}
        }
    }
    calls.sort_unstable();
    calls
}

/// Whatever the code calls is explained, and nothing else.
#[cfg(target_arch = "x86_64")]
#[test]
fn calls_of_the_runtime_are_those_of_the_code() {
    let kernels = [
        ("arith", "arith_half"),
        ("convert", "convert_int_float"),
        ("convert", "convert_long_half"),
        ("gather", "gather"),
        ("gather", "gather_odd_masked"),
        ("image_access", "brighten"),
        ("loops", "divergent_barrier"),
        ("private", "private_sort"),
        ("saxpy", "saxpy_guarded"),
    ];
    let options: [&[&str]; 3] = [&[], &["--gather", "call"], &["--check", "all"]];
    let mut reasons = std::collections::BTreeSet::new();
    for (n, (file, kernel)) in kernels.into_iter().enumerate() {
        for more in [options[0], options[1 + n % 2]] {
            let explained = Explained::new(file, kernel, more);
            let mut said = Vec::new();
            for call in explained.0["calls"].as_array().unwrap() {
                let (line, function) = (call["line"].as_u64().unwrap(), &call["function"]);
                let name = functions().into_iter().find(|(_, name)| function == name);
                let (_, name) = name.unwrap_or_else(|| panic!("{call}"));
                let times = call["calls"].as_u64().unwrap();
                said.extend((0..times).map(|_| (line, name)));
                let reason = call["reason"].as_str().unwrap();
                assert!(!reason.is_empty(), "{file} {kernel}: {call}");
                reasons.insert(reason.to_owned());
            }
            said.sort_unstable();
            let path = format!("tests/kernels/bin/skl/{file}.zebin");
            let asm = ["asm", &path, "--kernel", kernel];
            let code = ok(&[&asm[..], more].concat()).stdout;
            assert_eq!(calls_in_code(&code), said, "{file} {kernel} {more:?}");
        }
    }
    for reason in [
        "a sum of binary16, for which the code generator has no instruction",
        "a conversion from integers that is not rounded to the nearest",
        "no instruction does this",
        "the time stamp counter is read",
        "any addresses: calls are asked for",
        "a check that `--check` asks for",
        "after a test that failed",
    ] {
        assert!(reasons.contains(reason), "{reason}: {reasons:?}");
    }
    let fma = ["--cpu", "x86-64-v2"];
    let fma = Explained::new("mandelbrot", "mandelbrot", &fma);
    assert!(fma.says("calls", "reason", "a fused product and sum"));
}
