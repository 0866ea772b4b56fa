//! What the documentation shows is true: the command that `README.md` opens with prints what it says, and tables in
//! `docs` say what the instruction table and the table of strategies hold. `BLESS=1` rewrites these tables.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::Command;

use visa_jit::backend::AXES;
use visa_jit::isa::{Family, Opcode, OpcodeInfo, Status};

const README: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..", "/README.md");

/// The text between two markers, markers excluded.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("no {from}"));
    rest.split_once(to).unwrap_or_else(|| panic!("no {to}")).0
}

#[test]
fn the_first_command_prints_what_the_readme_says() {
    let text = fs::read_to_string(README).unwrap();
    let shown = between(&text, "<!-- runs -->\n```console\n$ ", "```");
    let (line, output) = shown.split_once('\n').unwrap();
    let args = line.strip_prefix("cargo run --release -- ").unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_visa-jit"))
        .args(args.split(' '))
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), output);
}

/// Instructions of each family by status: how many, and the names of those that are not wholly compiled.
fn table() -> String {
    let mut out =
        String::from("\n| family | compiled | partly | read | rejected |\n|---|---|---|---|---|\n");
    for family in Family::ALL {
        let cell = |status, named| {
            let rows: Vec<_> = Opcode::ALL
                .iter()
                .map(|op| op.info())
                .filter(|row| row.family == family && row.status == status)
                .collect();
            let names: String = rows.iter().map(|row| short(row)).collect();
            match (rows.len(), named) {
                (0, _) => String::new(),
                (n, true) => format!("{n}:{names}"),
                (n, false) => n.to_string(),
            }
        };
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            family.title(),
            cell(Status::Full, false),
            cell(Status::Partial, true),
            cell(Status::DecodeOnly, true),
            cell(Status::Rejected, false)
        );
    }
    out.push('\n');
    out
}

/// The first mnemonic, with dots where it stands for more than two.
fn short(row: &OpcodeInfo) -> String {
    let more = if row.mnemonics.len() > 2 { " …" } else { "" };
    format!(" `{}`{more}", row.mnemonics[0])
}

#[test]
fn the_table_of_instructions_is_fresh() {
    is_fresh("docs/support.md", "opcodes", &table());
}

/// Axes of strategies, as `compare --sweep` takes them.
fn axes() -> String {
    let mut out = String::from("\n| axis | what it is for | values |\n|---|---|---|\n");
    for axis in AXES {
        let values = axis.values.iter();
        let values: Vec<_> = values
            .map(|(name, does)| format!("`{name}`: {does}"))
            .collect();
        let (name, help, values) = (axis.name, axis.help, values.join("<br>"));
        let _ = writeln!(out, "| `{name}` | {help} | {values} |");
    }
    out + "| `no-pass` | Passes of visa-jit to leave out | `none`, or the name of a pass, such as `gvn` |\n\n"
}

#[test]
fn the_table_of_axes_is_fresh() {
    is_fresh("docs/performance.md", "axes", &axes());
}

/// The part of a document between `<!-- NAME -->` and `<!-- /NAME -->` is this; `BLESS=1` writes it there.
fn is_fresh(document: &str, name: &str, part: &str) {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(document);
    let text = fs::read_to_string(&path).unwrap();
    let (from, to) = (format!("<!-- {name} -->\n"), format!("<!-- /{name} -->"));
    if std::env::var_os("BLESS").is_some() {
        let (head, tail) = text.split_once(&from).unwrap();
        let tail = tail.split_once(&to).unwrap().1;
        fs::write(path, format!("{head}{from}{part}{to}{tail}")).unwrap();
    } else {
        let fresh = between(&text, &from, &to) == part;
        assert!(fresh, "{document} is stale; BLESS=1 rewrites its table");
    }
}

/// `docs/decisions.md` names code and tests; a test in a file is `path::function`.
#[test]
fn decisions_name_code_and_tests_that_exist() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let text = fs::read_to_string(root.join("docs/decisions.md")).unwrap();
    let mut missing = Vec::new();
    let mut rows = 0;
    for line in text.lines().filter(|l| l.starts_with("| ")) {
        let cells: Vec<&str> = line.split(" | ").collect();
        let [_, _, code, tests, _] = cells.as_slice() else {
            panic!("five cells expected: {line}");
        };
        if *code == "Code" {
            continue;
        }
        rows += 1;
        let named = |cell: &str| -> Vec<String> {
            let mut parts = cell.split('`').skip(1).step_by(2);
            parts.by_ref().map(str::to_owned).collect()
        };
        for names in [named(code), named(tests)] {
            assert!(!names.is_empty(), "{line}");
            for name in names {
                let (path, function) = name.split_once("::").unwrap_or((&name, ""));
                let source = fs::read_to_string(root.join(path)).unwrap_or_default();
                let found = function.is_empty() || source.contains(&format!("fn {function}()"));
                if source.is_empty() || !found {
                    missing.push(name);
                }
            }
        }
    }
    assert!(rows > 40, "{rows}");
    assert!(missing.is_empty(), "{missing:?}");
}

/// Comments and documents name sections of the guide to vISA as `docs/visa.md, "Section"`.
#[test]
fn sections_of_the_guide_exist() {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."));
    let guide = fs::read_to_string(root.join("docs/visa.md")).unwrap();
    let sections: Vec<&str> = guide
        .lines()
        .filter_map(|line| line.strip_prefix("## "))
        .collect();
    let mut named = 0;
    let mut folders = vec![
        root.join("src"),
        root.join("runtime/src"),
        root.join("tests/edges"),
    ];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                for rest in text.split("(docs/visa.md, ").skip(1) {
                    let section = between(rest, "\"", "\"");
                    assert!(
                        sections.contains(&section),
                        "{}: no section {section:?}",
                        path.display()
                    );
                    named += 1;
                }
            }
        }
    }
    assert!(named > 20, "{named} references found");
}
