//! Pass tests in files: `passes/<name>.ssa` holds cases, each a line `; case <title>: <passes>`, a
//! function, a line `; gives`, and the function that comes out. `BLESS=1` rewrites the results.

use crate::observe::observe;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use visa_jit::passes::pipeline::{MANDATORY, OPTIONAL, PASSES};
use visa_jit::passes::run_pass;
use visa_jit::ssa::{Function, parse, verify};
use visa_test_common::share;

fn files() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ssa/passes");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    files
}

/// The functions of all cases, before the passes.
pub fn inputs() -> Vec<Function> {
    let texts = files()
        .into_iter()
        .map(|path| std::fs::read_to_string(path).unwrap());
    texts
        .flat_map(|text| {
            let cases = text.split("; case ").skip(1);
            let inputs = cases.map(|case| parse(input(case).1).unwrap());
            inputs.collect::<Vec<_>>()
        })
        .collect()
}

/// Title of a case, and the text of its function.
fn input(case: &str) -> (&str, &str) {
    let (title, rest) = case.split_once('\n').unwrap();
    (title, rest.split("; gives").next().unwrap())
}

/// The file as it should be.
fn expected(path: &Path, text: &str) -> String {
    let mut out = String::new();
    for case in text.split("; case ").skip(1) {
        let (title, input) = input(case);
        let (_, passes) = title.split_once(':').expect("title: passes");
        let place = format!("{}: {title}", path.display());
        let before = parse(input).unwrap_or_else(|e| panic!("{place}: {e}"));
        verify(&before).unwrap_or_else(|e| panic!("{place}: {}", e[0]));
        let after = run(&before, passes, &place);
        for seed in 0..share(20, 4) {
            assert!(
                observe(&before, seed) == observe(&after, seed),
                "{place}\n{after}"
            );
        }
        out += &format!("; case {title}\n{}\n\n; gives\n{after}\n", input.trim_end());
    }
    out
}

fn run(f: &Function, passes: &str, place: &str) -> Function {
    let mut f = f.clone();
    for name in passes.split_whitespace() {
        assert!(run_pass(&mut f, name), "{place}: no pass {name}");
        verify(&f).unwrap_or_else(|e| panic!("{place}: {name}: {}\n{f}", e[0]));
    }
    f
}

/// A pass without cases would only be tested by what happens to be in random functions.
#[test]
fn every_pass_has_a_file_of_cases() {
    let all = PASSES.iter().chain(OPTIONAL).chain(MANDATORY);
    let mut idle: BTreeSet<_> = all.map(|&(name, _)| name).collect();
    for path in files() {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_str().unwrap();
        for (title, before) in text.split("; case ").skip(1).map(input) {
            let (_, passes) = title.split_once(':').expect("title: passes");
            let before = parse(before).unwrap();
            let first: Vec<_> = passes
                .split_whitespace()
                .take_while(|p| *p != name)
                .collect();
            if first.len() == passes.split_whitespace().count() {
                continue;
            }
            let before = run(&before, &first.join(" "), title);
            if run(&before, name, title) != before {
                idle.remove(name);
            }
        }
    }
    assert!(idle.is_empty(), "no case that these change: {idle:?}");
}

#[test]
fn passes_give_what_the_files_say() {
    for path in files() {
        let text = std::fs::read_to_string(&path).unwrap();
        let new = expected(&path, &text);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, new).unwrap();
        } else {
            assert_eq!(text, new, "{} differs; BLESS=1 rewrites it", path.display());
        }
    }
}

/// The text does not say which loads may leave their disabled lanes open: not this one, as all lanes outside a select's mask are seen.
#[test]
fn loads_with_disabled_lanes_that_are_seen_clear_them() {
    let text = "function \"f\" simd 8 frame 64
site 0 = read slm 4 \"dword_atomic\" line 1

bb0:
  %0: <8 x i1> = input.dispatchmask
  %1: <8 x i32> = vconst [0, 4, 8, 12, 16, 20, 24, 28]
  %2: <8 x i32> = input.payload[0]
  %3: <8 x i1> = icmp.ult %2, %1
  %4: <8 x i1> = and %0, %3
  %5: <8 x i1> = icmp.ugt %2, %1
  %6: <8 x i1> = and %0, %5
  %7: <8 x i32> = load.slm.i32x1[0] %6, %1
  %8: <8 x i32> = select %MASK, %2, %7
  store.slm.i32x1[0] %0, %1, %8
  return
";
    // Under a mask that holds every lane that is seen, the load is not.
    for (mask, open) in [("4", 0), ("0", 1)] {
        let mut f = parse(&text.replace("MASK", mask)).unwrap();
        run_pass(&mut f, "masks");
        assert_eq!(f.inactive_undef.len(), open, "%{mask}");
    }
}
