//! The files of `benches/cases` are well-formed, and files that are not are errors that say where and what.

use std::path::{Path, PathBuf};

use visa_bench_cases::{Argument, Case, Step, cases_in};

fn dir() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../cases")
}

#[test]
fn all_cases_of_the_tree_are_well_formed() {
    let paths = cases_in(&dir()).unwrap();
    let cases: Vec<Case> = paths.iter().map(|path| Case::read(path).unwrap()).collect();
    assert!(cases.len() >= 90, "{} cases", cases.len());
    for case in &cases {
        assert!(
            !case.about.is_empty() && !case.kind.is_empty(),
            "{}",
            case.name
        );
    }
    let sources = std::fs::read_dir(dir())
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let sources = sources.filter(|path| path.extension().is_some_and(|e| e == "cl"));
    assert_eq!(sources.count(), cases.len(), "each source has its case");
}

const GOOD: &str = r#"about = "Doubles"
kind = "test"
[[buffer]]
name = "x"
type = "i32"
count = 64
fill = "ramp 0 1"
restore = true
output = true
[[launch]]
kernel = "twice"
global = [64]
local = [16]
args = ["x", "i32: from 5 by -1", "f32: 1, 2"]
repeat = 3
"#;
const SOURCE: &str =
    "kernel void twice(global int *x, int n, float f) { x[get_global_id(0)] *= 2; }";

fn parse(text: &str) -> Result<Case, String> {
    Case::parse(Path::new("cases/twice.toml"), text, SOURCE.to_owned())
}

#[test]
fn a_case_is_what_its_file_says() {
    let case = parse(GOOD).unwrap();
    assert_eq!(
        (case.name.as_str(), case.rounds, case.launches[0].repeat),
        ("twice", 1, 3)
    );
    let contents = case.contents();
    assert_eq!(contents[0].len(), 256);
    assert_eq!(contents[0][..8], [0, 0, 0, 0, 1, 0, 0, 0]);
    assert_eq!(contents, case.contents(), "the same each time");
    let [Argument::Buffer(_), counter, values] = &case.launches[0].args[..] else {
        panic!("{:?}", case.launches[0].args);
    };
    assert_eq!(
        counter.at(7),
        Step::Value((-2_i32).to_le_bytes().to_vec().into())
    );
    assert_eq!(
        values.at(3),
        Step::Value(2.0_f32.to_le_bytes().to_vec().into())
    );
}

#[test]
fn a_malformed_file_is_an_error_with_its_line() {
    for (old, new, line, what) in [
        ("count = 64", "count = 0", 6, "`count` should be above 0"),
        ("count = 64", "size = 64", 6, "unknown field `size`"),
        ("count = 64", "like = \"y\"", 6, "`y`"),
        ("\"i32\"", "\"int\"", 5, "no type `int`"),
        ("ramp 0 1", "slope 0 1", 7, "no fill `slope`"),
        ("\"twice\"", "\"thrice\"", 11, "no kernel `thrice`"),
        ("global = [64]", "global = []", 12, "one to three sizes"),
        ("local = [16]", "local = [12]", 13, "should divide"),
        ("[\"x\"", "[\"z\"", 14, "no buffer `z`"),
        ("f32: 1, 2", "f32: one", 14, "`one`"),
        ("repeat = 3", "repeat = ", 15, ""),
        (
            "output = true",
            "output = false",
            1,
            "no buffer is an `output`",
        ),
        ("repeat = 3", "setup = true", 1, "no launch would be timed"),
    ] {
        let text = GOOD.replacen(old, new, 1);
        assert_ne!(text, GOOD);
        let error = parse(&text).unwrap_err();
        let place = format!("cases/twice.toml:{line}: ");
        assert!(
            error.starts_with(&place) && error.contains(what),
            "{new}: {error}"
        );
    }
}
