//! The tests at the edges of memory are about every message of the opcode table that reaches memory: a row without a case fails.

use visa_jit::isa::{Family, Form, Opcode, OpcodeInfo, Status};

use super::rig::Rig;
use super::{atomics, block2d, images, legacy, lsc, media, ports, raw, svm};

/// Spellings of such rows without cases of their own, and why.
const LEFT_OUT: [(&str, &str); 8] = [
    ("lsc_load_status", "tells which lanes have pages"),
    ("lsc_fence", "orders"),
    ("lod", "reads coordinates"),
    ("load_mcs", "tells where samples are, of which there is one"),
    (
        "raw_sendc",
        "as `raw_send`: it waits for threads of graphics",
    ),
    ("raw_sendsc", "as `raw_sends`"),
    ("raw_sends_eot", "ends the thread"),
    ("raw_sendsc_eot", "ends the thread"),
];

fn reaches_memory(row: &OpcodeInfo) -> bool {
    let runs = matches!(row.status, Status::Full | Status::Partial);
    let memory = matches!(
        row.family,
        Family::Memory | Family::Svm | Family::Lsc | Family::Sampler
    );
    let sends = matches!(row.form, Form::RawSend | Form::RawSends);
    // What they tell is in no memory that has edges.
    runs && (memory || sends) && row.opcode != Opcode::Info3d
}

/// Spellings that run.
fn spellings(row: &OpcodeInfo) -> impl Iterator<Item = &'static str> {
    let runs = |m: &&str| LEFT_OUT.iter().all(|(name, _)| name != m);
    row.mnemonics.iter().copied().filter(runs)
}

/// Spellings of an image message, whose text starts with it and the channels.
fn image_message(text: &str) -> String {
    let name = text.split([' ', '.']).next().unwrap_or("");
    if text.contains(".tgm") {
        format!("{name}.tgm")
    } else {
        name.to_owned()
    }
}

#[test]
fn every_message_to_memory_has_edges() {
    let mut rig = Rig::dry();
    for shapes in [
        legacy::surfaces,
        svm::flat,
        lsc::vectors,
        lsc::blocks,
        lsc::others,
        atomics::all,
        block2d::rectangles,
        raw::sends,
        ports::ports,
    ] {
        shapes(&mut rig);
    }
    let mut tested = rig.opcodes;
    tested.extend(images::MESSAGES.iter().map(|m| image_message(m.text)));
    tested.extend(media::OPCODES.map(str::to_owned));
    let covers = |spelling: &str| match spelling.strip_suffix("*.tgm") {
        Some(stem) => tested
            .iter()
            .any(|t| t.starts_with(stem) && t.ends_with(".tgm")),
        None => tested.contains(spelling),
    };
    let rows = Opcode::ALL.iter().map(|op| op.info());
    let rows: Vec<_> = rows.filter(|row| reaches_memory(row)).collect();
    let missing: Vec<&str> = rows
        .iter()
        .flat_map(|row| spellings(row))
        .filter(|spelling| !covers(spelling))
        .collect();
    println!("{} rows, {} messages", rows.len(), tested.len());
    assert!(
        missing.is_empty(),
        "no case at the edges of memory: {missing:?}"
    );
}
