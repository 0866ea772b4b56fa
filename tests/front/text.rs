//! The text front end as its users see it: real files, every construct, every error.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use visa_jit::front::text::{parse, print};

use crate::program::program;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The instruction a program consists of, as printed.
fn first_instruction(text: &str) -> &str {
    let line = text
        .lines()
        .find(|l| l.contains("/// $1"))
        .expect("an instruction");
    line.split("///").next().unwrap_or_default().trim()
}

#[test]
fn every_construct() {
    let lines = include_str!("lines.txt");
    let mut failures = String::new();
    let mut count = 0;
    for line in lines
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with('#'))
    {
        let (input, expected) = line.split_once(" => ").unwrap_or((line, line));
        count += 1;
        match parse("line", &program(input)) {
            Err(e) => {
                let _ = writeln!(failures, "{e}");
            }
            Ok(module) => {
                let text = print(&module);
                let printed = first_instruction(&text);
                if printed != expected {
                    let _ = writeln!(failures, "expected {expected}\nprinted  {printed}");
                }
                let again = parse("printed", &text);
                assert_eq!(again.as_ref(), Ok(&module), "{line}");
            }
        }
    }
    assert!(failures.is_empty(), "{failures}");
    assert!(count > 150);
}

/// Every `.visaasm*` section of a zebin.
fn visaasm_sections(file: &Path) -> Vec<(String, String)> {
    use object::{Object, ObjectSection};
    let bytes = std::fs::read(file).expect("readable");
    let elf = object::File::parse(bytes.as_slice()).expect("an ELF file");
    elf.sections()
        .filter_map(|s| {
            let name = s.name().ok()?;
            name.starts_with(".visaasm").then(|| {
                let data = s.data().expect("section data");
                let text = String::from_utf8(data.to_vec()).expect("UTF-8");
                (
                    format!("{}:{name}", file.display()),
                    text.trim_end_matches('\0').to_string(),
                )
            })
        })
        .collect()
}

fn zebins() -> Vec<PathBuf> {
    let mut files = Vec::new();
    for device in std::fs::read_dir(root().join("tests/kernels/bin")).expect("kernels") {
        let device = device.expect("entry").path();
        if device.is_dir() {
            for file in std::fs::read_dir(device).expect("device") {
                files.push(file.expect("entry").path());
            }
        }
    }
    files.retain(|f| f.extension().is_some_and(|e| e == "zebin"));
    files.sort();
    files
}

/// What the vendor's compiler prints is printed back byte for byte, and survives another reading.
#[test]
fn real_kernels_round_trip() {
    let mut sections = 0;
    // Other files of each device, in a plain run.
    let every = if visa_test_common::full() { 1 } else { 13 };
    for file in zebins().into_iter().step_by(every) {
        for (name, source) in visaasm_sections(&file) {
            sections += 1;
            let module = parse(&name, &source).unwrap_or_else(|e| panic!("{e}"));
            let text = print(&module);
            assert_eq!(parse("printed", &text).as_ref(), Ok(&module), "{name}");
            // Today's compiler has several spellings of its own.
            if module.version >= (4, 2) {
                continue;
            }
            let difference = source
                .trim_end()
                .lines()
                .zip(text.trim_end().lines())
                .find(|(a, b)| a != b);
            assert_eq!(difference, None, "{name}");
            assert_eq!(source.trim_end().len(), text.trim_end().len(), "{name}");
        }
    }
    assert!(sections > 100, "{sections}");
}

#[test]
fn directives_round_trip() {
    let source = include_str!("directives.visaasm");
    let module = parse("directives.visaasm", source).unwrap_or_else(|e| panic!("{e}"));
    let text = print(&module);
    assert_eq!(parse("printed", &text), Ok(module));
    bless_or_compare(&root().join("tests/front/directives.printed"), &text);
}

#[test]
fn carriage_returns_are_white_space() {
    let source = include_str!("directives.visaasm");
    assert_eq!(
        parse("a", &source.replace('\n', "\r\n")),
        parse("b", source)
    );
}

fn bless_or_compare(path: &Path, actual: &str) {
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(path, actual).expect("writable");
        return;
    }
    let expected = std::fs::read_to_string(path).unwrap_or_default();
    assert_eq!(
        actual,
        expected,
        "{} differs; BLESS=1 accepts it",
        path.display()
    );
}

/// Each file of `tests/front/errors` is wrong in one way, and its rendered error is checked in.
#[test]
fn errors_are_rendered_as_blessed() {
    let mut files: Vec<PathBuf> = std::fs::read_dir(root().join("tests/front/errors"))
        .expect("directory")
        .map(|e| e.expect("entry").path())
        .filter(|p| p.extension().is_some_and(|e| e == "visaasm"))
        .collect();
    files.sort();
    assert!(files.len() >= 40, "{}", files.len());
    for file in files {
        let source = std::fs::read_to_string(&file).expect("readable");
        let name = file
            .file_name()
            .map(|n| n.to_string_lossy().into_owned())
            .unwrap_or_default();
        let Err(errors) = parse(&name, &source) else {
            panic!("{name} is accepted");
        };
        bless_or_compare(&file.with_extension("stderr"), &format!("{errors}\n"));
    }
}
