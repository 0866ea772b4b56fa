//! Random messages by their descriptors, and fences between messages.
//!
//! Descriptors are put together here from what the hardware's documentation says of their fields, not by the code that reads them.

use visa_jit::isa::{Form, Opcode, OpcodeInfo, Type};

use super::generate::Generator;
use super::message::{ROOM, elements, flat, lsc_lanes};
use super::port::port;
use super::texel::texel;
use super::{FLOATS, MEMORY};
use crate::sweep::inst::Shape;

/// Elements of LSC messages: code in a descriptor, and bytes in memory. All are dwords in registers.
const ELEMENTS: [(u32, u32); 5] = [(2, 4), (2, 4), (4, 1), (5, 2), (6, 2)];

/// Lengths of vectors in the order of their codes, as far as they fit.
const LENGTHS: [u32; 4] = [1, 2, 3, 4];

/// Atomics: operation, and number of operands, which follow each other in one payload.
pub(super) const ATOMICS: [(u32, usize); 14] = [
    (0x08, 0),
    (0x09, 0),
    (0x0A, 0),
    (0x0B, 1),
    (0x0C, 1),
    (0x0D, 1),
    (0x0E, 1),
    (0x0F, 1),
    (0x10, 1),
    (0x11, 1),
    (0x12, 2),
    (0x18, 1),
    (0x19, 1),
    (0x1A, 1),
];

/// The same of floats.
pub(super) const FLOAT_ATOMICS: [(u32, usize); 5] =
    [(0x13, 1), (0x14, 1), (0x15, 1), (0x16, 1), (0x17, 2)];

/// What a send carries.
pub(super) enum Payload {
    Load(String),
    Store(String),
    /// What goes after addresses, and where the result goes.
    Atomic(Option<String>, String),
}

/// A message's port, descriptors, and registers of its first source and of its data.
pub(super) struct Sent {
    pub port: u32,
    pub desc: u32,
    pub ex: u32,
    /// The surface is in the heap, at `HEAP`.
    pub heap: bool,
    pub registers: [u32; 2],
}

/// A message of a row of sends.
pub(super) fn send(
    g: &mut Generator<'_>,
    row: &OpcodeInfo,
    lines: &mut Vec<String>,
) -> Option<String> {
    let split = row.form == Form::RawSends;
    if g.kernel.images && g.rng.chance(60) {
        return texel(g, split, lines);
    }
    match g.kernel.platform {
        _ if g.kernel.platform.has_lsc() && g.rng.chance(45) => lsc(g, split, lines),
        _ if g.kernel.platform.has_lsc() && g.rng.chance(45) => {
            match g.rng.below(if g.kernel.platform.has_wide_registers() {
                4
            } else {
                3
            }) {
                0 => strided(g, split, lines),
                1 => run(g, split, lines),
                2 => fenced(g, split, lines),
                _ => rectangle(g, split, lines),
            }
        }
        _ => port(g, split, lines),
    }
}

/// Loads, stores and atomics of the LSC ports: bits 5:0 the operation, 8:7 the width of addresses, 11:9 the element, 14:12 the
/// length of vectors (15:12 channels of four-channel operations), 30:29 how memory is named; a surface's index in bits 31:24 of
/// the extended descriptor.
fn lsc(g: &mut Generator<'_>, split: bool, lines: &mut Vec<String>) -> Option<String> {
    if split && g.rng.chance(10) {
        return float_atomic(g, lines);
    }
    let shape = lsc_lanes(g);
    let (element, bytes) = *g.rng.pick(&ELEMENTS);
    let stride = (4 * shape.lanes).max(64);
    let most = (ROOM / stride).min(4) as usize;
    let length = g.rng.below(most);
    let data = g.variable(Type::Ud)?;
    let kind = g.rng.below(if split { 4 } else { 3 });
    let (operation, arrangement, payload, name, reach) = match kind {
        // Which lanes have pages.
        0 if g.rng.chance(15) => (0x1b, 0, Payload::Load(data), "load", bytes),
        0 => {
            let n = LENGTHS[length];
            (0x00, length as u32, Payload::Load(data), "load", n * bytes)
        }
        1 => {
            let set = [0b1, 0b101, 0b1110, 0b1111][length];
            (0x02, set, Payload::Load(data), "load", 4 * bytes)
        }
        2 => {
            let all = ATOMICS.iter().filter(|(_, n)| split || *n == 0);
            let all: Vec<_> = all.collect();
            let &&(operation, n) = g.rng.pick(&all);
            let first = if n > 0 { g.variable(Type::Ud) } else { None };
            let payload = Payload::Atomic(first, data);
            (operation, 0, payload, "store", 4)
        }
        _ if g.rng.chance(50) => {
            let n = LENGTHS[length];
            let payload = Payload::Store(data);
            (0x04, length as u32, payload, "store", n * bytes)
        }
        _ => {
            let set = [0b1, 0b101, 0b1110, 0b1111][length];
            (0x06, set, Payload::Store(data), "store", 4 * bytes)
        }
    };
    // Atomics on words are on the low halves of dwords.
    let element = match payload {
        Payload::Atomic(..) => *g.rng.pick(&[2, 5]),
        _ => element,
    };
    flat(g, name, shape, reach.max(4), lines);
    let (mut sent, address) = place(g, split, lines);
    sent.desc |= operation | element << 9 | arrangement << 12;
    Some(text(g, split, sent, &shape.text(), address, payload))
}

/// An atomic of floats of their surface, or of any bits in local memory, which a comparison leaves what they are.
fn float_atomic(g: &mut Generator<'_>, lines: &mut Vec<String>) -> Option<String> {
    let shape = lsc_lanes(g);
    let local = g.rng.chance(20);
    let (port, ty, named, ex) = match local {
        true => (14, Type::Ud, 0, 14),
        false => (15, Type::F, 3 << 29, (FLOATS as u32) << 24 | 15),
    };
    let (operation, n) = match local {
        true => (0x17, 2),
        false => *g.rng.pick(&FLOAT_ATOMICS),
    };
    let (first, old) = (g.variable(ty)?, g.variable(ty)?);
    flat(g, "store", shape, 4, lines);
    let operand = (4 * shape.lanes).div_ceil(g.kernel.platform.grf_bytes());
    let sent = Sent {
        port,
        desc: operation | 2 << 7 | 2 << 9 | named,
        ex,
        heap: false,
        registers: [1, operand * n as u32],
    };
    let payload = Payload::Atomic(Some(first), old);
    Some(text(g, true, sent, &shape.text(), "OFF.0", payload))
}

/// A memory, and what has the addresses: local, a surface by its index or its place in the heap, scratch, or all.
fn place(g: &mut Generator<'_>, split: bool, lines: &mut Vec<String>) -> (Sent, &'static str) {
    let sent = |port: u32, wide: u32, model: u32, surface: u32, heap: bool| Sent {
        port,
        desc: wide << 7 | model << 29,
        ex: surface << 24 | port,
        heap,
        registers: [1; 2],
    };
    match g.rng.below(if split { 5 } else { 3 }) {
        0 => (sent(14, 2, 0, 0, false), "OFF.0"),
        1 => (sent(15, 2, 3, MEMORY as u32, false), "OFF.0"),
        2 => (sent(15, 3, 0, 0, false), "ADDR.0"),
        n => {
            let entry = 0x40 * (MEMORY + 1);
            lines.push(format!("mov (M1_NM, 1) HEAP(0,0)<1> {entry:#x}:ud"));
            (sent(15, 2, n as u32 - 2, 0, true), "OFF.0")
        }
    }
}

/// Loads and stores of lanes at equal distances: an address, and after two dwords the distance.
fn strided(g: &mut Generator<'_>, split: bool, lines: &mut Vec<String>) -> Option<String> {
    let shape = lsc_lanes(g);
    let store = split && g.rng.chance(50);
    let data = g.variable(Type::Ud)?;
    let (element, bytes) = *g.rng.pick(&ELEMENTS);
    let distance = bytes + g.rng.below(9) as u32;
    let at = 4 * g.rng.below(64);
    let (port, flat) = *g.rng.pick(&[(15, true), (15, false), (14, false)]);
    lines.push(match flat {
        true => format!("add (M1_NM, 1) OFF64(0,0)<1> BASE(0,0)<0;1,0> {at:#x}:ud"),
        false => format!("mov (M1_NM, 1) OFF(0,0)<1> {at:#x}:ud"),
    });
    lines.push(format!("mov (M1_NM, 1) OFF(0,2)<1> {distance:#x}:ud"));
    let (wide, model, surface) = match (port, flat) {
        (14, _) => (2, 0, 0),
        (_, true) => (3, 0, 0),
        (_, false) => (2, 3, MEMORY as u32),
    };
    let operation = if store { 5 } else { 1 };
    let sent = Sent {
        port,
        desc: operation | wide << 7 | element << 9 | model << 29,
        ex: surface << 24 | port,
        heap: false,
        registers: [1; 2],
    };
    let payload = match store {
        true => Payload::Store(data),
        false => Payload::Load(data),
    };
    Some(text(g, split, sent, &shape.text(), "OFF.0", payload))
}

/// One lane, elements one after the other: bit 15.
fn run(g: &mut Generator<'_>, split: bool, lines: &mut Vec<String>) -> Option<String> {
    let data = g.variable(Type::Ud)?;
    let store = split && g.rng.chance(50);
    let one = Shape {
        first: 0,
        lanes: 1,
        no_mask: true,
    };
    flat(g, "load", one, 4, lines);
    let (mut sent, address) = place(g, split, lines);
    let length = g.rng.below(8) as u32;
    let operation = if store { 4 } else { 0 };
    sent.desc |= operation | 2 << 9 | length << 12 | 1 << 15;
    let payload = match store {
        true => Payload::Store(data),
        false => Payload::Load(data),
    };
    Some(text(g, split, sent, &one.text(), address, payload))
}

/// A fence after a store: bits 11:9 the scope, 14:12 what becomes of caches.
fn fenced(g: &mut Generator<'_>, split: bool, lines: &mut Vec<String>) -> Option<String> {
    let store = elements(g, Opcode::ScatterScaled.info(), lines)?;
    lines.push(store);
    let (scope, kind) = (g.rng.below(7) as u32, g.rng.below(7) as u32);
    let port = *g.rng.pick(&[13, 14, 15]);
    let sent = Sent {
        port,
        desc: 0x1f | 2 << 7 | scope << 9 | kind << 12,
        ex: port,
        heap: false,
        registers: [1; 2],
    };
    // What comes back is not defined.
    let payload = Payload::Store("%null".into());
    let fence = text(g, split, sent, "(M1_NM, 1)", "OFF.0", payload);
    lines.push(fence);
    elements(g, Opcode::GatherScaled.info(), lines)
}

/// A block of a surface of 16 rows of 64 bytes, 128 bytes apart: bit 7 packs, 15 transposes; its size is in the eighth dword.
fn rectangle(g: &mut Generator<'_>, split: bool, lines: &mut Vec<String>) -> Option<String> {
    let data = g.variable(Type::Ud)?;
    // Element, width, height, number, packed, transposed.
    let loads = [
        (2, 8, 8, 1, 0, 0),
        (2, 8, 8, 1, 0, 1),
        (1, 16, 8, 1, 0, 0),
        (1, 16, 8, 1, 1, 0),
        (0, 16, 16, 1, 1, 0),
        (1, 2, 8, 4, 0, 0),
        (0, 7, 5, 1, 0, 0),
        (2, 3, 9, 1, 0, 1),
        (3, 4, 6, 1, 0, 0),
    ];
    let stores = [(2, 8, 8, 1, 0, 0), (1, 16, 8, 1, 0, 0), (1, 5, 3, 1, 0, 0)];
    let store = split && g.rng.chance(40);
    let all: &[_] = if store { &stores } else { &loads };
    let &(element, width, height, number, packed, transposed) = g.rng.pick(all);
    let size = (width - 1) | (height - 1) << 8 | (number - 1) << 16;
    let (x, y) = (g.rng.below(70) as u32, g.rng.below(20) as u32);
    lines.push("mov (M1_NM, 1) OFF64(0,0)<1> BASE(0,0)<0;1,0>".into());
    for (n, v) in [0x3f, 0xf, 0x7f, x, y, size].into_iter().enumerate() {
        lines.push(format!("mov (M1_NM, 1) OFF(0,{})<1> {v:#x}:ud", n + 2));
    }
    let operation = if store { 7 } else { 3 };
    let sent = Sent {
        port: 15,
        desc: operation | packed << 7 | element << 9 | transposed << 15,
        ex: 15,
        heap: false,
        registers: [1; 2],
    };
    let payload = match store {
        true => Payload::Store(data),
        false => Payload::Load(data),
    };
    Some(text(g, split, sent, "(M1_NM, 1)", "OFF.0", payload))
}

pub(super) fn text(
    g: &mut Generator<'_>,
    split: bool,
    sent: Sent,
    exec: &str,
    address: &str,
    payload: Payload,
) -> String {
    let Sent { port, ex, .. } = sent;
    let [first, second] = sent.registers;
    // Blocks of data caches have a header, and no mask.
    let block = port < 13 && sent.desc >> 19 & 1 != 0;
    let guard = if block { String::new() } else { g.guard() };
    // Whether threads of graphics have come so far is nothing here.
    let conditional = !sent.heap && g.rng.chance(20);
    let extended = match sent.heap {
        true => "HEAP(0,0)<0;1,0>".to_owned(),
        false => format!("{ex:#x}:ud"),
    };
    let (source, destination) = match payload {
        Payload::Load(data) => ("%null".to_owned(), data),
        Payload::Store(data) => (data, "%null".to_owned()),
        Payload::Atomic(first, old) => (first.unwrap_or("%null".to_owned()), old),
    };
    let written = if source == "%null" { 0 } else { second };
    let read = u32::from(destination != "%null");
    let desc = sent.desc | first << 25 | read << 20;
    match (split, conditional) {
        (false, _) => {
            let name = if conditional { "raw_sendc" } else { "raw_send" };
            format!(
                "{guard}{name} {exec} {ex:#x} {first} {read} {desc:#x}:ud {address} {destination}.0"
            )
        }
        (true, false) => format!(
            "{guard}raw_sends.{port}.{first}.{written}.{read} {exec} {extended} {desc:#x}:ud {address} {source}.0 {destination}.0"
        ),
        // The port is in the extended descriptor.
        (true, true) => format!(
            "{guard}raw_sendsc.{first}.{written}.{read} {exec} {extended} {desc:#x}:ud {address} {source}.0 {destination}.0"
        ),
    }
}

/// A store, a fence and a load.
pub(super) fn fence(
    g: &mut Generator<'_>,
    row: &OpcodeInfo,
    lines: &mut Vec<String>,
) -> Option<String> {
    let store = elements(g, Opcode::ScatterScaled.info(), lines)?;
    lines.push(store);
    lines.push(if row.form == Form::LscFence {
        let unit = *g.rng.pick(&["ugm", "slm", "tgm"]);
        let operation = *g
            .rng
            .pick(&["none", "evict", "invalidate", "discard", "clean"]);
        let scope = *g
            .rng
            .pick(&["group", "local", "tile", "gpu", "gpus", "sysrel", "sysacq"]);
        format!("lsc_fence.{unit}.{operation}.{scope}")
    } else {
        let name = *g.rng.pick(&["fence_global", "fence_local", "fence_sw"]);
        let options = *g.rng.pick(&["", ".E", ".EL1", ".EISCRL1"]);
        let options = if name == "fence_sw" { "" } else { options };
        format!("{name}{options}")
    });
    elements(g, Opcode::GatherScaled.info(), lines)
}
