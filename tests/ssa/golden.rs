//! Pass tests in files: `passes/<name>.ssa` holds cases, each a line `; case <title>: <passes>`, a
//! function, a line `; gives`, and the function that comes out. `BLESS=1` rewrites the results.

use crate::observe::observe;
use std::path::{Path, PathBuf};
use visa_jit::passes::run_pass;
use visa_jit::ssa::{Function, parse, verify};

fn files() -> Vec<PathBuf> {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ssa/passes");
    let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    files
}

/// The file as it should be.
fn expected(path: &Path, text: &str) -> String {
    let mut out = String::new();
    for case in text.split("; case ").skip(1) {
        let (title, rest) = case.split_once('\n').unwrap();
        let (_, passes) = title.split_once(':').expect("title: passes");
        let input = rest.split("; gives").next().unwrap();
        let place = format!("{}: {title}", path.display());
        let before = parse(input).unwrap_or_else(|e| panic!("{place}: {e}"));
        verify(&before).unwrap_or_else(|e| panic!("{place}: {}", e[0]));
        let after = run(&before, passes, &place);
        for seed in 0..20 {
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
