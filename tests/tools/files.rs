//! Debug information in object files and libraries, through the linker and binutils.

use std::fs;
use std::path::Path;
use std::process::Command;

use object::read::{File, Object as _, ObjectSymbol as _};

use super::*;

fn compile(output: &Path, more: &[&str]) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_visa-jit"));
    command.args([
        "compile",
        concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/..",
            "/tests/tools/lines.zebin"
        ),
    ]);
    let output = command.arg("-o").arg(output).args(more).output().unwrap();
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{message}");
}

/// Files that lines belong to, as `addr2line` says for each of the first bytes of a symbol of a linked library.
fn places(library: &Path, symbol: &str) -> Option<Vec<String>> {
    let bytes = fs::read(library).unwrap();
    let file = File::parse(&*bytes).unwrap();
    let found = file.symbols().find(|s| s.name() == Ok(symbol)).unwrap();
    let mut command = Command::new("addr2line");
    command.args(["-f", "-e"]).arg(library);
    for at in 0..found.size() {
        command.arg(format!("{:#x}", found.address() + at));
    }
    let output = command.output().ok()?;
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.len() as u64, 2 * found.size());
    let (names, places): (Vec<&str>, Vec<&str>) = lines.chunks(2).map(|c| (c[0], c[1])).unzip();
    assert!(names.iter().all(|n| *n == symbol), "{names:?}");
    Some(places.into_iter().map(str::to_owned).collect())
}

#[test]
fn libraries_say_their_lines() {
    let dir = tempfile::tempdir().unwrap();
    let symbol = "visa_jit_code_lines_any";
    let text = dir.path().join("lines.visaasm");
    compile(&text, &["--kernel", "lines"]);
    let text = fs::read_to_string(text).unwrap();
    let engine = Engine::with_options(options(BackendKind::Cranelift)).unwrap();
    assert_eq!(text, kernel(&engine).text());
    let visa = text.lines().position(|l| l.contains("xor (")).unwrap() as u32 + 1;
    for (lines, file, line) in [
        ("visa", "./lines.visaasm", visa),
        ("source", "/src/lines.cl", super::lines::line("return r ^")),
    ] {
        let library = dir.path().join(format!("{lines}.so"));
        compile(&library, &["--lines", lines]);
        let Some(places) = places(&library, symbol) else {
            eprintln!("skipped: addr2line is not installed");
            return;
        };
        let wanted = format!("{file}:{line}");
        assert!(places.contains(&wanted), "{wanted} is not in {places:?}");
        let known = |place: &String| {
            place.starts_with(file) || place.ends_with(":?") || place.ends_with(":0")
        };
        assert!(places.iter().all(known), "{places:?}");
    }
}

/// Bytes do not depend on where a file is made, nor on the names of the files.
#[test]
fn objects_are_the_same_everywhere() {
    let (one, two) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let zebin = two.path().join("other.zebin");
    fs::write(&zebin, ZEBIN).unwrap();
    compile(&one.path().join("a.o"), &[]);
    let mut command = Command::new(env!("CARGO_BIN_EXE_visa-jit"));
    command
        .args(["compile", "other.zebin", "-o", "b.o"])
        .current_dir(two.path());
    assert!(command.status().unwrap().success());
    let a = fs::read(one.path().join("a.o")).unwrap();
    assert!(a == fs::read(two.path().join("b.o")).unwrap());
    // Other machines' objects have lines too.
    let arm = one.path().join("arm.o");
    compile(&arm, &["--target", "aarch64-unknown-linux-gnu"]);
    let arm = fs::read(arm).unwrap();
    let arm = File::parse(&*arm).unwrap();
    assert!(arm.section_by_name(".debug_line").is_some());
}
