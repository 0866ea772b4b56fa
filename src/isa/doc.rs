//! Documentation of the opcode table as Markdown.

use super::{Classes, Family, Modifiers, Opcode, OpcodeInfo, PredKind, Status, TypeClass};
use std::fmt::Write as _;

/// The whole table, one section a family.
pub fn markdown() -> String {
    let mut out = String::from(
        "# Instructions\n\n\
         Generated from `src/isa/table.rs` by `cargo run -p xtask -- docs`; do not edit.\n\n\
         *Status*: `full`: every form is compiled; `partial`: forms that are not are refused by name; `decode`: read,\n\
         written and validated only; `rejected`: known by name and refused. *LLVM*: the same of the backend behind the cargo\n\
         feature `llvm`; the sweep of opcodes, the file tests and the memory edges run on both. *Operands* lists what a destination and the sources may be and\n\
         their element types. *Sat*: `.sat` is allowed. *Modifiers*: `arith` is `(-) (abs) (-abs)`, `logic` is `(~)`.\n\n",
    );
    out.push_str(&summary());
    for family in Family::ALL {
        out.push_str(&section(family));
    }
    out
}

/// Number of opcodes by status.
pub fn summary() -> String {
    let count = |s: Status| Opcode::ALL.iter().filter(|o| o.info().status == s).count();
    format!(
        "{} opcodes: {} full, {} partial, {} decode, {} rejected.\n",
        Opcode::ALL.len(),
        count(Status::Full),
        count(Status::Partial),
        count(Status::DecodeOnly),
        count(Status::Rejected)
    )
}

/// One family as a heading and a table.
pub fn section(family: Family) -> String {
    let mut out = format!(
        "\n## {}\n\n| number | text | operands | sat | modifiers | predicate | platforms | status | LLVM | semantics |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
        family.title()
    );
    for op in Opcode::ALL {
        let row = op.info();
        if row.family == family {
            let _ = writeln!(out, "{}", line(row));
        }
    }
    out
}

fn line(row: &OpcodeInfo) -> String {
    let number = match row.sub {
        0 => format!("0x{:02X}", row.number),
        sub => format!("0x{:02X}/{sub}", row.number),
    };
    let text: Vec<String> = row.mnemonics.iter().map(|m| format!("`{m}`")).collect();
    format!(
        "| {number} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
        text.join(" "),
        operands(row),
        if row.saturation { "yes" } else { "" },
        match row.modifiers {
            Modifiers::None => "",
            Modifiers::Arith => "arith",
            Modifiers::Logic => "logic",
        },
        match row.predicate {
            PredKind::None => "",
            PredKind::Guard => "guard",
            PredKind::Selector => "selector",
            PredKind::Output => "output",
            PredKind::Ignored => "ignored",
        },
        platforms(row),
        word(row.status),
        word(row.llvm),
        row.semantics.replace('|', "\\|")
    )
}

const fn word(status: Status) -> &'static str {
    match status {
        Status::Full => "full",
        Status::Partial => "partial",
        Status::DecodeOnly => "decode",
        Status::Rejected => "rejected",
    }
}

fn operands(row: &OpcodeInfo) -> String {
    let side = |classes: Classes, types: TypeClass| match (classes.names().join("/"), types) {
        (names, TypeClass::None) => names,
        (names, types) => format!("{names} ({})", types.describe()),
    };
    let source = |i: u8| side(row.src(usize::from(i)), row.src_type(usize::from(i)));
    let sources = match row.sources {
        0 => source(0),
        n if row.sources_differ() => (0..n).map(source).collect::<Vec<_>>().join(", "),
        n => format!("{n} × {}", source(0)),
    };
    let mut out = match (row.dst == Classes::NONE, row.src(0) == Classes::NONE) {
        (true, true) => String::new(),
        (true, false) => sources,
        (false, true) => format!("{} ←", side(row.dst, row.dst_types)),
        (false, false) => format!("{} ← {sources}", side(row.dst, row.dst_types)),
    };
    let payloads = row.payloads.iter().map(|types| types.describe());
    if !row.payloads.is_empty() {
        let list = payloads.collect::<Vec<_>>().join("; ");
        let _ = write!(out, ", payloads as written: {list}");
    }
    for (i, (to, from)) in row.pairs.iter().enumerate() {
        let _ = write!(out, "{} {to} ← {from}", if i == 0 { ";" } else { "," });
    }
    out
}

fn platforms(row: &OpcodeInfo) -> String {
    let mut out = row.platforms.names();
    for (types, set) in row.limited {
        let _ = write!(out, "; {}: {}", types.describe(), set.names());
    }
    out
}
