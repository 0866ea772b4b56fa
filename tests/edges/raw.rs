//! `raw_send` and `raw_sends` that are memory messages: the same accesses as those of the messages that their descriptors say.

use visa_jit::isa::Platform;

use super::kernel::{Guard, Shape};
use super::legacy::{ALL, Lanes};
use super::lsc::{D16C32, D32, D64, Message, Size};
use super::machine::Space;
use super::rig::{Effort, Rig};

/// Lengths of vectors in the order of their codes.
const LENGTHS: [u32; 8] = [1, 2, 3, 4, 8, 16, 32, 64];

/// Port, descriptor, extended descriptor, and registers of both sources.
pub type Sent = (u32, u32, u32, [u32; 2]);

/// Descriptor and extended descriptor of an LSC message, and the port that serves it: bits 5:0 the operation, 8:7 the width
/// of addresses, 11:9 of data, 15:12 a vector's length or the channels, 30:29 how the surface is named, here by its index in
/// bits 31:24 of the extended one.
fn lsc(space: Space, operation: u32, size: Size, arrangement: u32) -> Sent {
    let (port, wide, model) = match space {
        Space::Flat => (15, 3, 0),
        Space::Slm => (14, 2, 0),
        _ => (15, 2, 3),
    };
    let data = match size.0 {
        "d32" => 2,
        "d64" => 3,
        _ => 5,
    };
    let desc = operation | wide << 7 | data << 9 | arrangement << 12 | model << 29;
    (port, desc, port, [1, 1])
}

/// The text of a load or store; what is not split has one payload, and is a load.
fn text(split: bool, store: bool, sent: Sent) -> (&'static str, String) {
    let (port, desc, ex, [first, second]) = sent;
    match (split, store) {
        (false, _) => (
            "raw_send",
            format!("raw_send {{x}} {ex:#x} {first} 1 {desc:#x}:ud OFF.0 DATA.0"),
        ),
        (true, false) => (
            "raw_sends",
            format!(
                "raw_sends.{port}.{first}.0.1 {{x}} {ex:#x}:ud {desc:#x}:ud OFF.0 %null.0 DATA.0"
            ),
        ),
        (true, true) => (
            "raw_sends",
            format!(
                "raw_sends.{port}.{first}.{second}.0 {{x}} {ex:#x}:ud {desc:#x}:ud OFF.0 DATA.0 %null.0"
            ),
        ),
    }
}

/// A shape whose instruction is a message.
pub fn sent(shape: Shape, split: bool, store: bool, message: Sent) -> Shape {
    let (opcode, text) = text(split, store, message);
    Shape {
        text,
        opcode: opcode.into(),
        ..shape
    }
}

/// One of each kind.
pub fn of_lanes(l: Lanes) -> Vec<Shape> {
    let mut out = Vec::new();
    for store in [false, true] {
        for space in [Space::Surface, Space::Slm, Space::Flat] {
            let m = Message::new(Platform::Dg2, l, space, store);
            let operation = if store { 4 } else { 0 };
            let message = lsc(space, operation, D32, 1);
            out.push(sent(m.vector(D32, 2), true, store, message));
            if !store {
                let message = lsc(space, 2, D64, 0xd);
                out.push(sent(m.quad(D64, 0xd), false, store, message));
            }
        }
    }
    out
}

/// All of them.
pub fn sends(rig: &mut Rig) {
    let mut n = 0;
    for store in [false, true] {
        for space in [Space::Surface, Space::Slm, Space::Flat] {
            for size in [D16C32, D32, D64] {
                for split in [true, false] {
                    if store && !split {
                        continue;
                    }
                    n += 1;
                    let guard = [Guard::Predicate, Guard::Flow, Guard::Inverted][n % 3];
                    let l = Lanes::new(16, 0, [8, 16][n % 2], guard);
                    let platform = [Platform::Dg2, Platform::Pvc][n / 2 % 2];
                    let m = Message::new(platform, l, space, store);
                    let code = n % 4;
                    let operation = if store { 4 } else { 0 };
                    let effort = Effort {
                        policies: n % 3 == 0,
                        ..ALL
                    };
                    let message = lsc(space, operation, size, code as u32);
                    let shape = m.vector(size, LENGTHS[code]);
                    rig.run(&sent(shape, split, store, message), effort);
                    let set = [1, 5, 10, 15][n % 4];
                    let message = lsc(space, operation + 2, size, set);
                    rig.run(&sent(m.quad(size, set), split, store, message), effort);
                }
            }
        }
    }
}

#[test]
fn raw_sends() {
    let mut rig = Rig::new(17);
    sends(&mut rig);
    rig.finish("raw sends");
}
