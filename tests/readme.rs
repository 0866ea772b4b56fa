//! What `README.md` shows is true: the command it opens with prints what it says, and its table of
//! instructions counts what the instruction table holds. `BLESS=1` rewrites the table.

use std::fmt::Write as _;
use std::fs;
use std::process::Command;

use visa_jit::isa::{Family, Opcode, Status};

const PATH: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");

/// The text between two markers, markers excluded.
fn between<'a>(text: &'a str, from: &str, to: &str) -> &'a str {
    let (_, rest) = text.split_once(from).unwrap_or_else(|| panic!("no {from}"));
    rest.split_once(to).unwrap_or_else(|| panic!("no {to}")).0
}

#[test]
fn the_first_command_prints_what_the_readme_says() {
    let text = fs::read_to_string(PATH).unwrap();
    let shown = between(&text, "<!-- runs -->\n```console\n$ ", "```");
    let (line, output) = shown.split_once('\n').unwrap();
    let args = line.strip_prefix("cargo run --release -- ").unwrap();
    let ran = Command::new(env!("CARGO_BIN_EXE_visa-jit"))
        .args(args.split(' '))
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(ran.status.success(), "{ran:?}");
    assert_eq!(String::from_utf8(ran.stdout).unwrap(), output);
}

/// Instructions of each family by status, and the names of those that are not wholly compiled.
fn table() -> String {
    let mut out = String::from(
        "\n| family | compiled | partly | read | rejected | partly or only read |\n|---|---|---|---|---|---|\n",
    );
    for family in Family::ALL {
        let rows = || {
            Opcode::ALL
                .iter()
                .map(|op| op.info())
                .filter(|row| row.family == family)
        };
        let count = |status| match rows().filter(|row| row.status == status).count() {
            0 => String::new(),
            n => n.to_string(),
        };
        let names: Vec<String> = rows()
            .filter(|row| matches!(row.status, Status::Partial | Status::DecodeOnly))
            .map(|row| {
                format!(
                    "`{}`",
                    if row.mnemonics.len() > 8 {
                        short(row.name)
                    } else {
                        row.mnemonics[0].to_owned()
                    }
                )
            })
            .collect();
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} | {} |",
            family.title(),
            count(Status::Full),
            count(Status::Partial),
            count(Status::DecodeOnly),
            count(Status::Rejected),
            names.join(" ")
        );
    }
    out.push('\n');
    out
}

/// Rows with many mnemonics go by their family name.
fn short(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars() {
        if c.is_uppercase() && !out.is_empty() {
            out.push('_');
        }
        out.extend(c.to_lowercase());
    }
    out
}

#[test]
fn the_table_of_instructions_is_fresh() {
    let text = fs::read_to_string(PATH).unwrap();
    let old = between(&text, "<!-- opcodes -->\n", "<!-- /opcodes -->");
    let new = table();
    if std::env::var_os("BLESS").is_some() {
        fs::write(PATH, text.replacen(old, &new, 1)).unwrap();
    } else {
        assert!(old == new, "README.md is stale; BLESS=1 rewrites its table");
    }
}
