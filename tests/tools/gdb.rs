//! What debuggers are told: read back as they would, and by GDB itself where it is installed.

use std::process::Command;

use object::read::{File, Object as _, ObjectSection as _, ObjectSymbol as _};

use super::*;
use visa_jit::Tools;
use visa_jit::backend::OobPolicy;
use visa_jit::lines::Text;

/// An image's rows: offset in the code, file and line.
fn rows(image: &[u8]) -> Vec<(u64, String, u64)> {
    let file = File::parse(image).unwrap();
    let start = file.section_by_name(".text").unwrap().address();
    let load = |id: gimli::SectionId| {
        let section = file.section_by_name(id.name());
        let data = section.map_or(Ok(&[][..]), |s| s.data()).unwrap();
        Ok::<_, gimli::Error>(gimli::EndianSlice::new(data, gimli::LittleEndian))
    };
    let dwarf = gimli::Dwarf::load(load).unwrap();
    let header = dwarf.units().next().unwrap().unwrap();
    let unit = dwarf.unit(header).unwrap();
    let mut program = unit.line_program.clone().unwrap().rows();
    let mut found = Vec::new();
    while let Some((header, row)) = program.next_row().unwrap() {
        if !row.end_sequence() {
            let name = row.file(header).unwrap().path_name();
            let name = dwarf.attr_string(&unit, name).unwrap();
            let name = name.to_string().unwrap().to_owned();
            let line = row.line().map_or(0, |l| l.get());
            found.push((row.address() - start, name, line));
        }
    }
    found
}

#[test]
fn images_have_symbol_and_lines() {
    let dir = tempfile::tempdir().unwrap();
    for backend in backends() {
        for text in [Text::Visa, Text::Source] {
            let engine = Engine::with_options(EngineOptions {
                tools: Tools {
                    gdb: true,
                    text,
                    dir: Some(dir.path().to_owned()),
                    ..Tools::default()
                },
                ..options(backend)
            });
            let engine = engine.unwrap();
            let kernel = kernel(&engine);
            let code = kernel.code(OobPolicy::default()).unwrap();
            let image = code.debug_image().unwrap();
            let file = File::parse(image).unwrap();
            let section = file.section_by_name(".text").unwrap();
            assert_eq!(section.data().unwrap(), code.object().code);
            let symbol = file.symbols().find(|s| s.name() == Ok("lines")).unwrap();
            assert_eq!(symbol.size(), section.size());
            for (offset, name, line) in rows(image) {
                let visa = code.object().lines.line_at(offset as u32);
                if offset == 0 {
                    continue; // The opening line.
                }
                match text {
                    Text::Visa => {
                        assert_eq!(u64::from(visa), line);
                        // The text is there to be shown.
                        assert_eq!(std::fs::read_to_string(name).unwrap(), kernel.text());
                    }
                    Text::Source => {
                        let source = code.object().lines.source().at(visa);
                        let expected = source.map_or(0, |(_, line)| line);
                        assert_eq!(u64::from(expected), line);
                        assert_eq!(name, "/src/lines.cl");
                    }
                }
            }
        }
    }
}

/// Two programs may have a kernel of one name, and one may come twice.
#[test]
fn texts_of_one_name_are_apart() {
    let dir = tempfile::tempdir().unwrap();
    let engine = Engine::with_options(EngineOptions {
        tools: Tools {
            gdb: true,
            dir: Some(dir.path().to_owned()),
            ..Tools::default()
        },
        ..options(BackendKind::Cranelift)
    });
    let engine = engine.unwrap();
    let mut names = Vec::new();
    for number in [1, 2, 1] {
        let text = format!(
            ".version 3.6\n.kernel \"k/é\"\n.kernel_attr SimdSize=8\n.decl V32 v_type=G type=d num_elts=8\n\
             .decl T6 v_type=T num_elts=1\n.function \"k\"\nk:\nmov (M1,8) V32(0,0)<1> {number}:d\n\
             oword_st (2) T6 0x0:ud V32.0\nret (M1,1)\n"
        );
        let program = engine.program_from_text("t", &text, visa_jit::isa::Platform::Skl);
        let program = program.unwrap();
        let code = program.kernels()[0].code(OobPolicy::default()).unwrap();
        let (_, name, _) = rows(code.debug_image().unwrap()).swap_remove(0);
        assert_eq!(std::fs::read_to_string(&name).unwrap(), text);
        names.push(name);
    }
    assert!(names[0] != names[1] && names[0] == names[2], "{names:?}");
}

/// Stops in the kernel `lines` only: modules of `visa-jit` and of the standard library have functions of that name.
const BREAK: &str = "break -qualified lines";

/// Runs a kernel under GDB, with commands for a run that shows lines of the vISA, and for one that shows those of the source. GDB reads the
/// program's symbols once for both. `None` where that cannot be done.
fn debugged(backend: BackendKind, visa: &[&str], source: &[&str]) -> Option<String> {
    let dir = tempfile::tempdir().unwrap();
    let zebin = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/..",
        "/tests/tools/lines.zebin"
    );
    let mut run = vec!["run", zebin];
    run.extend(["--global", "16", "--arg", "zero:64", "--arg", "zero:64"]);
    run.extend(["--threads", "1", "--no-cache", "--gdb"]);
    run.extend(["--backend", backend.name()]);
    run.extend(["--tools-dir", dir.path().to_str().unwrap()]);
    let arguments = format!("set args {} --lines source", run.join(" "));
    let before = [
        "set pagination off",
        "set breakpoint pending on",
        "set debuginfod enabled off",
        "set startup-with-shell off",
    ];
    let between = ["kill", "delete 1", &arguments];
    let mut command = Command::new("gdb");
    command.args(["-q", "-nx", "-batch"]);
    for each in [&before[..], visa, &between, source, &["kill"]].concat() {
        command.args(["-ex", each]);
    }
    command.args(["--args", env!("CARGO_BIN_EXE_visa-jit")]);
    let Ok(output) = command.args(run).output() else {
        eprintln!("skipped: gdb is not installed");
        return None;
    };
    let text = [&output.stdout[..], &output.stderr].concat();
    let text = String::from_utf8_lossy(&text).into_owned();
    if text.contains("Operation not permitted") {
        eprintln!("skipped: {text}");
        return None;
    }
    Some(text)
}

#[test]
fn gdb_stops_in_kernels_and_shows_lines() {
    for backend in backends() {
        let visa = [BREAK, "run", "backtrace", "next"];
        let source = [BREAK, "run", "info source"];
        let Some(text) = debugged(backend, &visa, &source) else {
            return;
        };
        assert!(
            text.contains("Breakpoint 1, lines () at "),
            "{backend:?}\n{text}"
        );
        // It shows lines of the vISA, from the file that was written for it.
        assert!(
            text.contains("lines.visaasm:") && text.contains("(M1"),
            "{text}"
        );
        assert!(text.contains("#0  lines () at "), "{text}");
        assert!(
            text.contains("Breakpoint 2, lines () at /src/lines.cl:"),
            "{text}"
        );
    }
}
