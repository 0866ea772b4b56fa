//! Messages of the data caches by their descriptors: the same accesses as those of the instructions that the vendor's assembler
//! makes them of.

use visa_jit::isa::Platform;

use super::atomics;
use super::kernel::{Guard, Scalar, Shape};
use super::legacy::{self, ALL, Lanes};
use super::machine::Space;
use super::raw::{Sent, sent};
use super::rig::{Effort, Rig};
use super::svm;

const CACHE_0: u32 = 10;
const CACHE_1: u32 = 12;

const LESS: Effort = Effort {
    policies: false,
    cases: 24,
    ..ALL
};

/// The entry of the binding table that a memory has; without a surface there are two, for caches that agree with those of other
/// devices or not.
fn entry(space: Space, coherent: bool) -> u32 {
    match space {
        Space::Slm => 254,
        Space::Scratch | Space::Flat if coherent => 255,
        Space::Scratch | Space::Flat => 253,
        _ => 0,
    }
}

/// A message with these numbers of bytes in its first source and in its result: bits 28:25 say the registers of the first.
fn message(p: Platform, port: u32, desc: u32, bytes: [u32; 2]) -> Sent {
    let registers = bytes.map(|b| b.div_ceil(p.grf_bytes()));
    (port, desc | registers[0] << 25, port, registers)
}

/// Messages name no offset for all lanes.
fn plain(mut shape: Shape) -> Shape {
    shape.reach.scalar = Scalar::None;
    shape
}

/// A header that counts from the thread's scratch memory, and has an offset.
const HEADER: &str =
    "mov (M1_NM, 8) SRC0(0,0)<1> %r0(0,0)<1;1,0>\n    mov (M1_NM, 1) SRC0(0,2)<1> HEAD(0,1)<0;1,0>";

/// Dwords with an offset of all lanes in a header, which is a source of its own.
fn together(p: Platform, l: Lanes, space: Space) -> Shape {
    let sixteen = u32::from(l.lanes > 8);
    let desc = 1 << 25 | 1 << 19 | 3 << 14 | (2 | sixteen) << 8 | entry(space, l.lanes > 8);
    let registers = (32u32 << sixteen).div_ceil(p.grf_bytes());
    let mut shape = legacy::gather(p, l, space, 4, false);
    shape.opcode = "raw_sends".into();
    shape.text = format!(
        "{HEADER}\n    raw_sends.{CACHE_0}.1.{registers}.1 {{x}} 0xa:ud {desc:#x}:ud SRC0.0 OFF.0 DATA.0"
    );
    shape
}

/// Bytes, words and dwords at offsets in bytes, and dwords at offsets in dwords.
fn scattered(p: Platform, l: Lanes, space: Space, size: u32, store: bool) -> [Shape; 2] {
    let grf = p.grf_bytes();
    let data = if store {
        (4 * l.lanes).next_multiple_of(grf)
    } else {
        0
    };
    let sixteen = u32::from(l.lanes > 8);
    let kind = if store { 0xc } else { 4 };
    let desc = kind << 14 | size.ilog2() << 10 | sixteen << 8 | entry(space, store);
    let shape = plain(legacy::gather_scaled(p, l, space, size, store));
    let lanes = 8 << sixteen;
    let bytes = sent(
        shape,
        true,
        store,
        message(p, CACHE_0, desc, [4 * lanes, data]),
    );
    let space = if space == Space::Slm {
        Space::Surface
    } else {
        space
    };
    let kind = if store { 0xb } else { 3 };
    let desc = kind << 14 | (2 | sixteen) << 8 | entry(space, store);
    let shape = plain(legacy::gather(p, l, space, 4, store));
    let dwords = sent(
        shape,
        true,
        store,
        message(p, CACHE_0, desc, [4 * lanes, data]),
    );
    [bytes, dwords]
}

/// Channels of dwords: bits 13:12 lanes, 11:8 those that are left out.
fn untyped(p: Platform, l: Lanes, space: Space, set: u32, store: bool) -> Shape {
    let grf = p.grf_bytes();
    let data = match store {
        true => (4 * l.lanes).next_multiple_of(grf) * set.count_ones(),
        false => 0,
    };
    let lanes = if l.lanes == 8 { 2 } else { 1 };
    let fields = lanes << 12 | (15 ^ set) << 8 | entry(space, store);
    if space == Space::Flat {
        let kind = if store { 0x19 } else { 0x11 };
        let shape = svm::channels_at(p, l, set, store);
        let m = message(p, CACHE_1, kind << 14 | fields, [8 * l.lanes, data]);
        return sent(shape, true, store, m);
    }
    let kind = if store { 9 } else { 1 };
    let shape = plain(legacy::gather4(p, l, space, set, store));
    let m = message(p, CACHE_1, kind << 14 | fields, [4 * l.lanes, data]);
    sent(shape, true, store, m)
}

/// Blocks of bytes, dwords or qwords at 64-bit addresses.
fn scattered_64(p: Platform, l: Lanes, bytes: u32, blocks: u32, store: bool) -> Shape {
    let shape = svm::gather(p, l, bytes, blocks, store);
    let kind = if store { 0x1a } else { 0x10 };
    let sixteen = u32::from(l.lanes > 8);
    let of = [0, 0, 1, 2][bytes.ilog2() as usize];
    let desc = kind << 14 | sixteen << 12 | blocks.ilog2() << 10 | of << 8 | 255;
    let (element, count) = match (bytes, blocks) {
        (1, 8) => (8, 1),
        (1, _) => (4, 1),
        (bytes, blocks) => (bytes, blocks),
    };
    let data = (element * l.lanes).next_multiple_of(p.grf_bytes()) * count;
    let data = if store { data } else { 0 };
    sent(
        shape,
        true,
        store,
        message(p, CACHE_1, desc, [8 * l.lanes, data]),
    )
}

/// Qwords at offsets in bytes.
fn qwords(p: Platform, l: Lanes, space: Space, n: u32, store: bool) -> Shape {
    let kind = if store { 0xd } else { 5 };
    let sixteen = u32::from(l.lanes > 8);
    let desc = kind << 14 | n.ilog2() << 10 | 1 << 9 | sixteen << 8 | entry(space, store);
    let data = (8 * l.lanes).next_multiple_of(p.grf_bytes()) * n;
    let data = if store { data } else { 0 };
    let shape = legacy::qwords(p, l, space, n, store);
    sent(
        shape,
        true,
        store,
        message(p, CACHE_0, desc, [4 * l.lanes, data]),
    )
}

/// A block whose place is in a header.
fn block(shape: Shape, store: bool, m: Sent, header: &str) -> Shape {
    let mut shape = sent(shape, true, store, m);
    shape.text = shape.text.replace("OFF.0", "SRC0.0");
    shape.text = format!("{header}\n    {}", shape.text.replace("{x}", "(M1_NM, 8)"));
    shape
}

fn owords(p: Platform, space: Space, opcode: &'static str, owords: u32) -> Shape {
    let store = opcode == "oword_st";
    let kind = match opcode {
        "oword_ld" => 0,
        "oword_ld_unaligned" => 1,
        _ => 8,
    };
    let size = if owords == 1 { 0 } else { owords.ilog2() + 1 };
    let desc = 1 << 19 | kind << 14 | size << 8 | entry(space, store);
    let data = if store { 16 * owords } else { 0 };
    let m = message(p, CACHE_0, desc, [p.grf_bytes(), data]);
    let shape = legacy::oword(p, space, opcode, owords);
    block(shape, store, m, HEADER)
}

fn block_64(p: Platform, owords: u32, store: bool) -> Shape {
    let kind = if store { 0x15 } else { 0x14 };
    let size = if owords == 1 { 0 } else { owords.ilog2() + 1 };
    let desc = 1 << 19 | kind << 14 | size << 8 | 255;
    let data = if store { 16 * owords } else { 0 };
    let m = message(p, CACHE_1, desc, [p.grf_bytes(), data]);
    let header = "mov (M1_NM, 2) SRC0(0,0)<1> HEAD(0,4)<1;1,0>";
    block(svm::block(p, owords, store), store, m, header)
}

/// Atomics: operands follow each other, what is compared with first.
fn atomics(rig: &mut Rig) {
    for (n, o) in atomics::OPERATIONS.iter().enumerate() {
        let Some(code) = code(o.legacy) else { continue };
        let floats = o.legacy.starts_with('f');
        for bytes in [2, 4, 8] {
            for space in [Space::Surface, Space::Slm, Space::Scratch, Space::Flat] {
                let wide = space == Space::Flat;
                if bytes == 8 && (!wide || floats) {
                    continue;
                }
                let p = [Platform::Skl, Platform::Tgllp, Platform::Dg2][n % 3];
                let lanes = if wide || n % 2 == 0 { 8 } else { 16 };
                let l = Lanes::new(16, 0, lanes, Guard::Flow);
                let kind = match (wide, floats, bytes) {
                    (false, false, 2) => 3,
                    (false, false, _) => 2,
                    (false, true, 2) => 0x1c,
                    (false, true, _) => 0x1b,
                    (true, false, 2) => 0x13,
                    (true, false, _) => 0x12,
                    (true, true, 2) => 0x1e,
                    (true, true, _) => 0x1d,
                };
                let bit = match wide {
                    true => bytes == 8,
                    false => lanes == 8,
                };
                let desc = kind << 14
                    | 1 << 13
                    | u32::from(bit) << 12
                    | code << 8
                    | entry(space, n % 2 == 0);
                let slot = bytes.max(4) * lanes;
                let m = message(
                    p,
                    CACHE_1,
                    desc,
                    [[4, 8][usize::from(wide)] * lanes, slot * o.sources as u32],
                );
                let text = exchange(o.legacy, o.sources, slot, m);
                let shape = atomics::atomic(p, l, space, text, "raw_sends", o, bytes, 0);
                rig.run(&shape, LESS);
            }
        }
    }
}

/// Code of an operation in descriptors.
fn code(name: &str) -> Option<u32> {
    let all = [
        ("and", 1),
        ("or", 2),
        ("xor", 3),
        ("xchg", 4),
        ("inc", 5),
        ("dec", 6),
        ("add", 7),
        ("sub", 8),
        ("maxsint", 10),
        ("minsint", 11),
        ("max", 12),
        ("min", 13),
        ("cmpxchg", 14),
        ("predec", 15),
        ("fmax", 1),
        ("fmin", 2),
        ("fcmpwr", 3),
        ("fadd", 4),
        ("fsub", 5),
    ];
    all.into_iter().find(|(n, _)| *n == name).map(|(_, c)| c)
}

fn exchange(name: &str, sources: usize, slot: u32, m: Sent) -> String {
    let (port, desc, ex, [first, second]) = m;
    let send = |source: &str| {
        format!(
            "raw_sends.{port}.{first}.{second}.1 {{x}} {ex:#x}:ud {desc:#x}:ud OFF.0 {source}.0 DATA.0"
        )
    };
    match sources {
        0 => send("%null"),
        1 => send("SRC0"),
        _ => {
            let [a, b] = match name {
                "cmpxchg" => ["SRC1", "SRC0"],
                _ => ["SRC0", "SRC1"],
            };
            let n = slot / 4;
            format!(
                "mov (M1_NM, {n}) TMP(0,0)<1> {a}(0,0)<1;1,0>\n    mov (M1_NM, {n}) TMP(0,{n})<1> {b}(0,0)<1;1,0>\n    {}",
                send("TMP")
            )
        }
    }
}

/// All of them.
pub fn ports(rig: &mut Rig) {
    let platforms = [Platform::Skl, Platform::Tgllp, Platform::Dg2, Platform::Pvc];
    let mut n = 0;
    for store in [false, true] {
        for space in [Space::Surface, Space::Slm, Space::Scratch] {
            for size in [1, 2, 4] {
                n += 1;
                let guard = [Guard::Predicate, Guard::Flow, Guard::Inverted][n % 3];
                let l = Lanes::new(16, 0, [8, 16][n % 2], guard);
                for shape in scattered(platforms[n % 4], l, space, size, store) {
                    rig.run(&shape, LESS);
                }
            }
            if !store && space != Space::Slm {
                let l = Lanes::new(16, 0, [8, 16][n % 2], Guard::Flow);
                rig.run(&together(platforms[n % 4], l, space), LESS);
            }
            let l = Lanes::new(16, 0, 8, Guard::Predicate);
            rig.run(&qwords(Platform::Dg2, l, space, [1, 2][n % 2], store), LESS);
        }
        for space in [Space::Surface, Space::Slm, Space::Scratch, Space::Flat] {
            for set in [1, 6, 13, 15] {
                n += 1;
                let l = Lanes::new(16, 0, [8, 16][n % 2], Guard::Predicate);
                rig.run(&untyped(platforms[n / 2 % 4], l, space, set, store), LESS);
            }
        }
        for bytes in [1, 4, 8] {
            for blocks in [1, 2, 4, 8] {
                n += 1;
                let l = Lanes::new(16, 0, 8, Guard::Predicate);
                rig.run(
                    &scattered_64(platforms[n % 3], l, bytes, blocks, store),
                    LESS,
                );
            }
        }
        for size in [1, 2, 4, 8] {
            rig.run(&block_64(platforms[n % 4], size, store), LESS);
        }
    }
    for opcode in ["oword_ld", "oword_ld_unaligned", "oword_st"] {
        for (size, space) in [
            (1, Space::Surface),
            (2, Space::Slm),
            (4, Space::Scratch),
            (8, Space::Surface),
        ] {
            n += 1;
            rig.run(
                &owords([Platform::Tgllp, Platform::Pvc][n % 2], space, opcode, size),
                LESS,
            );
        }
    }
    atomics(rig);
}

#[test]
fn messages_of_data_caches() {
    let mut rig = Rig::new(19);
    ports(&mut rig);
    rig.finish("messages of data caches");
}
