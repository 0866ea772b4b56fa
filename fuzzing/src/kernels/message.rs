//! Random messages, after the rows of the opcode table.
//!
//! Lanes that store or return old values have a place each. Lanes that load may go anywhere in a surface and
//! past its end; flat addresses stay inside the buffer, since what lies around it is not defined.

use visa_jit::isa::lsc::CACHE_CONTROLS;
use visa_jit::isa::{Form, Opcode, OpcodeInfo, Platform, Status, Type};

use super::generate::Generator;
use super::{FLOATS, MEMORY, MEMORY_BYTES, image, send};
use crate::sweep::inst::{Registers, Shape};

/// Forms that have a generator here.
pub(super) fn generated(form: Form) -> bool {
    matches!(
        form,
        Form::Oword
            | Form::Gather
            | Form::GatherScaled
            | Form::Gather4Scaled
            | Form::DwordAtomic
            | Form::SvmBlock
            | Form::SvmGather
            | Form::SvmGather4Scaled
            | Form::SvmAtomic
            | Form::Qword
            | Form::Lsc
            | Form::Dpas
            | Form::RawSend
            | Form::RawSends
            | Form::LscFence
            | Form::Fence
    )
}

/// True for messages by their descriptors.
pub(super) fn sends(form: Form) -> bool {
    matches!(form, Form::RawSend | Form::RawSends)
}

/// Rows of messages that run on a platform, with images or without; those of forms without a generator are left out.
pub(super) fn rows(platform: Platform, images: bool) -> Vec<&'static OpcodeInfo> {
    let runs = |row: &&OpcodeInfo| {
        row.platforms.contains(platform)
            && matches!(row.status, Status::Full | Status::Partial)
            && (generated(row.form) || row.accesses_images())
            && (images || !row.accesses_images())
            // Matrices for 16 lanes are larger than the variables here.
            && (row.form != Form::Dpas || platform == Platform::Dg2)
            && super::generate::exception(row).is_none()
    };
    Opcode::ALL
        .iter()
        .map(|op| op.info())
        .filter(runs)
        .collect()
}

/// What a message works on.
struct Target {
    surface: String,
    /// Variable of the payload.
    data: String,
}

impl Generator<'_> {
    /// A surface, and a variable of numbers that belong there.
    fn target(&mut self) -> Option<Target> {
        let floats = self.rng.chance(20);
        let ty = if floats { Type::F } else { Type::Ud };
        let surface = match (floats, self.rng.below(6)) {
            (true, _) => format!("T{}", 6 + FLOATS),
            (false, 0) => "%slm".into(),
            (false, 1) => "%scratch".into(),
            (false, _) => format!("T{}", 6 + MEMORY),
        };
        Some(Target {
            surface,
            data: self.variable(ty)?,
        })
    }

    /// A variable with storage of its own: payloads start at its first byte.
    pub(super) fn variable(&mut self, ty: Type) -> Option<String> {
        let all: Vec<&str> = self
            .kernel
            .variables
            .iter()
            .filter(|v| v.ty == ty)
            .map(|v| v.name.as_str())
            .collect();
        if all.is_empty() {
            None
        } else {
            Some((*self.rng.pick(&all)).to_owned())
        }
    }

    pub(super) fn lanes(&mut self, sizes: &[u32]) -> Shape {
        let fit: Vec<u32> = sizes
            .iter()
            .copied()
            .filter(|n| *n <= self.kernel.simd)
            .collect();
        let lanes = *self.rng.pick(&fit);
        let first = lanes * self.rng.below((self.kernel.simd / lanes) as usize) as u32;
        Shape {
            first,
            lanes,
            no_mask: self.rng.chance(10),
        }
    }

    /// Puts an offset of its own for each lane into `OFF`, `unit` bytes or more apart.
    fn apart(&mut self, shape: Shape, unit: u32, room: u32, lines: &mut Vec<String>) {
        let n = shape.lanes;
        let most = room / unit / n;
        let stride = unit * (1 + self.rng.below(most.clamp(1, 3) as usize) as u32);
        let base = unit * self.rng.below(8) as u32;
        lines.push(format!(
            "and (M1_NM, {n}) OFF(0,0)<1> LANE(0,0)<1;1,0> 0x1f:ud"
        ));
        lines.push(format!(
            "mul (M1_NM, {n}) OFF(0,0)<1> OFF(0,0)<1;1,0> {stride:#x}:ud"
        ));
        lines.push(format!(
            "add (M1_NM, {n}) OFF(0,0)<1> OFF(0,0)<1;1,0> {base:#x}:ud"
        ));
    }

    /// Puts any offsets into `OFF`: multiples of `unit` up to `limit`, a power of two.
    fn anywhere(&mut self, shape: Shape, unit: u32, limit: u32, lines: &mut Vec<String>) {
        let n = shape.lanes;
        let (name, _) = self
            .kernel
            .source(&mut self.rng, Type::Ud)
            .unwrap_or_default();
        let mask = (limit - 1) & !(unit - 1);
        lines.push(format!(
            "and (M1_NM, {n}) OFF(0,0)<1> {name}(0,0)<1;1,0> {mask:#x}:ud"
        ));
    }

    pub(super) fn guard(&mut self) -> String {
        let not = if self.rng.chance(40) { "!" } else { "" };
        match self.rng.below(6) {
            0 | 1 => format!("({not}{}) ", self.rng.pick(&["P1", "P2", "P3", "P4"])),
            2 => format!("({not}P1{}) ", self.rng.pick(&[".any", ".all"])),
            _ => String::new(),
        }
    }

    /// Offsets for a load or a store in bytes; loads pass the end of a surface now and then.
    pub(super) fn offsets(
        &mut self,
        store: bool,
        shape: Shape,
        unit: u32,
        lines: &mut Vec<String>,
    ) {
        if store {
            self.apart(shape, unit, MEMORY_BYTES / 2, lines);
        } else {
            let limit = if self.rng.chance(25) {
                2 * MEMORY_BYTES
            } else {
                MEMORY_BYTES
            };
            self.anywhere(shape, unit.min(4), limit, lines);
        }
    }

    /// Turns `OFF` into flat addresses in `ADDR`.
    fn addresses(&mut self, shape: Shape, lines: &mut Vec<String>) {
        let n = shape.lanes;
        lines.push(format!(
            "add (M1_NM, {n}) ADDR(0,0)<1> OFF(0,0)<1;1,0> BASE(0,0)<0;1,0>"
        ));
    }
}

/// A message of a row, with what prepares it.
pub(super) fn lines(g: &mut Generator<'_>, row: &'static OpcodeInfo) -> Option<Vec<String>> {
    let mut lines = Vec::new();
    let name = row.opcode.mnemonic();
    let text = match row.form {
        _ if row.accesses_images() => image::message(g, row, &mut lines)?,
        Form::Oword => {
            let t = g.target()?;
            let n = *g.rng.pick(&[1, 2, 4, 8]);
            let limit = if name == "oword_ld_unaligned" {
                0x800
            } else {
                0x80
            };
            let at = if g.rng.chance(10) {
                limit - 2
            } else {
                g.rng.below(limit / 2)
            } & !3;
            format!("{name} ({n}) {} {at:#x}:ud {}.0", t.surface, t.data)
        }
        Form::Gather | Form::GatherScaled => elements(g, row, &mut lines)?,
        Form::Gather4Scaled => {
            let t = g.target()?;
            let shape = g.lanes(&[8, 16]);
            let channels = *g.rng.pick(&["R", "RG", "RGB", "RGBA", "GA", "B"]);
            g.offsets(name.starts_with("scatter"), shape, 16, &mut lines);
            format!(
                "{}{name}.{channels} {} {} 0x0:ud OFF.0 {}.0",
                g.guard(),
                shape.text(),
                t.surface,
                t.data
            )
        }
        Form::DwordAtomic => {
            let surface = match g.rng.below(6) {
                0 => "%slm".into(),
                1 => "%scratch".into(),
                _ => format!("T{}", 6 + MEMORY),
            };
            let shape = g.lanes(&[8, 16]);
            let (op, sources, dst) = atomic(g, shape, &mut lines)?;
            format!(
                "{}{name}.{op} {} {surface} OFF.0 {sources} {dst}",
                g.guard(),
                shape.text()
            )
        }
        Form::SvmAtomic => {
            let shape = g.lanes(&[8]);
            let (op, sources, dst) = atomic(g, shape, &mut lines)?;
            g.addresses(shape, &mut lines);
            format!(
                "{}{name}.{op} {} ADDR.0 {dst} {sources}",
                g.guard(),
                shape.text()
            )
        }
        Form::Qword => {
            let t = g.target()?;
            let shape = g.lanes(&[8, 16]);
            let n = if shape.lanes == 8 {
                1 + g.rng.below(2) as u32
            } else {
                1
            };
            g.offsets(name == "qw_scatter", shape, 8 * n, &mut lines);
            let (guard, exec) = (g.guard(), shape.text());
            format!("{guard}{name}.{n} {exec} {} OFF.0 {}.0", t.surface, t.data)
        }
        Form::SvmBlock => {
            let data = g.variable(Type::Ud)?;
            let n = *g.rng.pick(&[1, 2, 4, 8]);
            let at = 16 * g.rng.below(100);
            lines.push(format!(
                "add (M1_NM, 1) ADDR(0,0)<1> BASE(0,0)<0;1,0> {at:#x}:ud"
            ));
            format!("{name} ({n}) ADDR(0,0)<0;1,0> {data}.0")
        }
        Form::SvmGather => {
            let data = g.variable(Type::Ud)?;
            let shape = g.lanes(&[8, 16]);
            let (block, count) = *g.rng.pick(&[(4, 1), (4, 2), (1, 1), (1, 4), (1, 2)]);
            flat(g, name, shape, 4 * count, &mut lines);
            format!(
                "{}{name}.{block}.{count} {} ADDR.0 {data}.0",
                g.guard(),
                shape.text()
            )
        }
        Form::SvmGather4Scaled => {
            let data = g.variable(Type::Ud)?;
            let shape = g.lanes(&[8, 16]);
            let channels = *g.rng.pick(&["R", "RG", "RGBA"]);
            flat(g, name, shape, 16, &mut lines);
            format!(
                "{}{name}.{channels} {} BASE(0,0)<0;1,0> OFF.0 {data}.0",
                g.guard(),
                shape.text()
            )
        }
        Form::Lsc => lsc(g, &mut lines)?,
        Form::Dpas => matrices(g, name)?,
        Form::RawSend | Form::RawSends => send::send(g, row, &mut lines)?,
        Form::LscFence | Form::Fence => send::fence(g, row, &mut lines)?,
        _ => return None,
    };
    lines.push(text);
    Some(lines)
}

/// Messages of one element a lane.
pub(super) fn elements(
    g: &mut Generator<'_>,
    row: &OpcodeInfo,
    lines: &mut Vec<String>,
) -> Option<String> {
    let name = row.opcode.mnemonic();
    let mut t = g.target()?;
    let shape = g.lanes(&[8, 16]);
    let float = t.surface == format!("T{}", 6 + FLOATS);
    let bytes = if float { 4 } else { *g.rng.pick(&[1, 2, 4, 4]) };
    let store = name.starts_with("scatter");
    // Upper bits of short elements are not defined, so they go to a variable that is cut afterwards.
    if !float && !store && bytes < 4 {
        t.data = g.variable(Type::Ud)?;
    }
    g.offsets(store, shape, bytes, lines);
    if row.form == Form::Gather {
        lines.push(format!(
            "shr (M1_NM, {0}) OFF(0,0)<1> OFF(0,0)<1;1,0> {1:#x}:ud",
            shape.lanes,
            bytes.ilog2()
        ));
        return Some(format!(
            "{name}.{bytes} {} {} 0x0:ud OFF.0 {}.0",
            shape.text(),
            t.surface,
            t.data
        ));
    }
    Some(format!(
        "{}{name}.{bytes} {} {} 0x0:ud OFF.0 {}.0",
        g.guard(),
        shape.text(),
        t.surface,
        t.data
    ))
}

/// Offsets in `OFF` and addresses in `ADDR` for messages with flat addresses.
pub(super) fn flat(
    g: &mut Generator<'_>,
    name: &str,
    shape: Shape,
    bytes: u32,
    lines: &mut Vec<String>,
) {
    if name.contains("scatter") || name.contains("store") {
        g.apart(shape, bytes, MEMORY_BYTES / 2, lines);
    } else {
        // Half of the buffer, so that the last lane's last element is inside too.
        g.anywhere(shape, 4, MEMORY_BYTES / 2, lines);
    }
    g.addresses(shape, lines);
}

/// Operation, sources and destination of an atomic; `OFF` is set.
fn atomic(
    g: &mut Generator<'_>,
    shape: Shape,
    lines: &mut Vec<String>,
) -> Option<(&'static str, String, String)> {
    let ops = [
        "add", "sub", "inc", "dec", "predec", "min", "max", "xchg", "cmpxchg", "and", "or", "xor",
        "minsint", "maxsint",
    ];
    let op = *g.rng.pick(&ops);
    let ty = match op {
        "minsint" | "maxsint" => Type::D,
        _ => Type::Ud,
    };
    let (a, b) = (g.variable(ty)?, g.variable(ty)?);
    let sources = match op {
        "inc" | "dec" | "predec" => "%null.0 %null.0".into(),
        "cmpxchg" => format!("{a}.0 {b}.0"),
        _ => format!("{a}.0 %null.0"),
    };
    g.apart(shape, 4, MEMORY_BYTES / 2, lines);
    let dst = g.variable(ty)?;
    let dst = if g.rng.chance(30) {
        "%null.0".into()
    } else {
        format!("{dst}.0")
    };
    Some((op, sources, dst))
}

/// A product of matrices on eight lanes; floats have a destination of their own type.
fn matrices(g: &mut Generator<'_>, name: &str) -> Option<String> {
    let floats = g.rng.chance(30);
    let (a, b, ty) = if floats {
        let p = *g.rng.pick(&["hf", "bf"]);
        (p, p, Type::F)
    } else {
        let all = ["s8", "u8", "s4", "u4", "s2", "u2"];
        (*g.rng.pick(&all), *g.rng.pick(&all), Type::Ud)
    };
    let (dst, acc) = (g.variable(ty)?, g.variable(ty)?);
    let acc = if g.rng.chance(25) {
        "%null".into()
    } else {
        acc
    };
    let (x, y) = (g.variable(Type::Ud)?, g.variable(Type::Ud)?);
    let repeat = 1 + g.rng.below(8);
    Some(format!(
        "{name}.{a}.{b}.8.{repeat} (M1, 8) {dst}.0 {acc}.0 {x}.0 {y}(0,0)"
    ))
}

/// Bytes of a variable.
pub(super) const ROOM: u32 = 4 * super::ELEMENTS;

/// Where loads of indirect data begin, which has the inputs after r0: in front of the first one. With what they reach
/// behind, none comes to the last one.
const ARGUMENTS: u32 = 0x1A0;

/// Element of an LSC message: name, and bytes in memory.
const SIZES: [(&str, u32); 6] = [
    ("d32", 4),
    ("d32", 4),
    ("d32", 4),
    ("d8c32", 1),
    ("d16c32", 2),
    ("d16c32h", 2),
];

fn lsc(g: &mut Generator<'_>, lines: &mut Vec<String>) -> Option<String> {
    match g.rng.below(12) {
        0 if g.kernel.platform.has_wide_registers() => return rectangle(g, lines),
        1 | 2 => return block(g, lines),
        3..=5 => return lsc_atomic(g, lines),
        _ => {}
    }
    let data = g.variable(Type::Ud)?;
    let shape = lsc_lanes(g);
    let form = *g.rng.pick(&["", "", "", "_quad", "_strided", "_status"]);
    let store = form != "_status" && g.rng.chance(50);
    let (size, bytes) = *g.rng.pick(&SIZES);
    // Components are padded to a register, and to sixteen lanes on some devices.
    let stride = (4 * shape.lanes).max(64);
    let most = ROOM / stride;
    let count = if form == "_status" {
        1
    } else {
        1 + g.rng.below(most.min(4) as usize) as u32
    };
    let name = match (form, store) {
        ("_status", _) => "lsc_load_status".to_owned(),
        (_, true) => format!("lsc_store{form}"),
        _ => format!("lsc_load{form}"),
    };
    let reach = if form == "_quad" { 4 } else { count } * bytes;
    flat(g, &name, shape, reach.max(4), lines);
    let mut distance = reach + g.rng.below(9) as u32;
    let arguments = !store && g.rng.chance(15);
    let (sfid, mut address) = match arguments {
        true => ("ugm", indirect(g, shape, lines)),
        false => place(g, lines),
    };
    if arguments {
        distance = distance.min(2);
    }
    if form == "_strided" {
        address = address.replace("]:", &format!(", {distance:#x}]:"));
    } else if arguments {
        let offset = *g.rng.pick(&["[OFF", "[OFF+0x4"]);
        address = address.replace("[OFF", offset);
    } else if !address.starts_with("flat[ADDR") && g.rng.chance(20) {
        address = address.replace("[OFF", "[0x2*OFF+0x4");
    }
    let elements = match form {
        "_quad" => {
            let letters = ["x", "y", "z", "w"];
            let set = [0b1, 0b101, 0b1110, 0b1111][count as usize - 1];
            let chosen = letters
                .iter()
                .enumerate()
                .filter(|(i, _)| set >> i & 1 != 0);
            format!(".{}", chosen.map(|(_, l)| *l).collect::<String>())
        }
        _ if count == 1 => String::new(),
        _ => format!("x{count}"),
    };
    let payload = format!("{data}:{size}{elements}");
    let (guard, exec, cc) = (g.guard(), shape.text(), caching(g));
    Some(if store {
        format!("{guard}{name}.{sfid}{cc} {exec} {address} {payload}")
    } else {
        format!("{guard}{name}.{sfid}{cc} {exec} {payload} {address}")
    })
}

/// What caches are told, which nothing here depends on: any of the table for each level, or none. Of these pairs 22.43's assembler
/// takes 17, with `cc` as `cc.ca` of loads; each is read here.
pub(super) fn caching(g: &mut Generator<'_>) -> String {
    if g.rng.chance(50) {
        return String::new();
    }
    let [l1, l3] = [(); 2].map(|()| *g.rng.pick(&CACHE_CONTROLS));
    format!(".{l1}.{l3}")
}

pub(super) fn lsc_lanes(g: &mut Generator<'_>) -> Shape {
    g.lanes(if g.kernel.platform.has_wide_registers() {
        &[8, 16, 32]
    } else {
        &[8, 16]
    })
}

/// Unit and address of a message whose lanes are at `OFF` or `ADDR`.
fn place(g: &mut Generator<'_>, lines: &mut Vec<String>) -> (&'static str, String) {
    match g.rng.below(6) {
        0 => ("slm", "flat[OFF]:a32".to_owned()),
        1 => ("ugm", format!("bti({MEMORY:#x})[OFF]:a32")),
        2 => {
            let model = *g.rng.pick(&["bss", "ss"]);
            ("ugm", format!("{model}({:#x})[OFF]:a32", 64 * (MEMORY + 1)))
        }
        3 => {
            // Scratch, known or not, or the surface.
            let entry = 64 * (MEMORY + 1);
            lines.push(match g.rng.below(3) {
                0 => "shr (M1_NM, 1) HEAP(0,0)<1> %r0(0,5)<0;1,0> 0x4:ud".to_owned(),
                _ => format!(
                    "and (M1_NM, 1) HEAP(0,0)<1> LANE(0,{})<0;1,0> {entry:#x}:ud",
                    g.rng.below(32)
                ),
            });
            ("ugm", "ss(HEAP)[OFF]:a32".to_owned())
        }
        _ => ("ugm", "flat[ADDR]:a64".to_owned()),
    }
}

/// Address of a load of indirect data: of the inputs in front of the buffer's address, which is another for each engine, or
/// past the end.
fn indirect(g: &mut Generator<'_>, shape: Shape, lines: &mut Vec<String>) -> String {
    g.anywhere(shape, 1, 0x80, lines);
    let past = if g.rng.chance(20) { 0x400 } else { 0 };
    lines.push(format!(
        "add (M1_NM, {}) OFF(0,0)<1> OFF(0,0)<1;1,0> {:#x}:ud",
        shape.lanes,
        ARGUMENTS + past
    ));
    "arg[OFF]:a32".to_owned()
}

/// Operations of atomics, and the number of operands; the last ones are of floats.
const ATOMICS: [(&str, usize); 19] = [
    ("iinc", 0),
    ("idec", 0),
    ("load", 0),
    ("store", 1),
    ("iadd", 1),
    ("isub", 1),
    ("smin", 1),
    ("smax", 1),
    ("umin", 1),
    ("umax", 1),
    ("icas", 2),
    ("and", 1),
    ("or", 1),
    ("xor", 1),
    ("fadd", 1),
    ("fsub", 1),
    ("fmin", 1),
    ("fmax", 1),
    ("fcas", 2),
];

/// First operation on floats.
const OF_FLOATS: usize = 14;

fn lsc_atomic(g: &mut Generator<'_>, lines: &mut Vec<String>) -> Option<String> {
    let k = g.rng.below(ATOMICS.len());
    let (name, n) = ATOMICS[k];
    let floats = k >= OF_FLOATS;
    let ty = if floats { Type::F } else { Type::Ud };
    let shape = lsc_lanes(g);
    let (size, bytes) = match floats {
        true => ("d32", 4),
        false => *g
            .rng
            .pick(&[("d32", 4), ("d32", 4), ("d16c32", 2), ("d64", 8)]),
    };
    g.apart(shape, bytes, MEMORY_BYTES / 2, lines);
    g.addresses(shape, lines);
    let (sfid, address) = match floats {
        true => ("ugm", format!("bti({FLOATS:#x})[OFF]:a32")),
        false => place(g, lines),
    };
    let mut operands = ["%null".to_owned(), "%null".to_owned()];
    for o in operands.iter_mut().take(n) {
        *o = g.variable(ty)?;
    }
    let dst = g.variable(ty)?;
    let dst = if g.rng.chance(25) {
        "%null".into()
    } else {
        dst
    };
    let (guard, exec, cc) = (g.guard(), shape.text(), caching(g));
    let [first, second] = operands;
    Some(format!(
        "{guard}lsc_atomic_{name}.{sfid}{cc} {exec} {dst}:{size} {address} {first} {second}"
    ))
}

/// One lane, elements one after the other.
fn block(g: &mut Generator<'_>, lines: &mut Vec<String>) -> Option<String> {
    let data = g.variable(Type::Ud)?;
    let one = Shape {
        first: 0,
        lanes: 1,
        no_mask: true,
    };
    let size = *g.rng.pick(&["d32", "d8", "d16", "d8c32", "d16c32"]);
    let count = *g.rng.pick(&[1, 2, 3, 4, 8, 16, 32, 64]);
    let store = g.rng.chance(50);
    // Half of the buffer, so that flat addresses stay inside.
    g.anywhere(one, 4, MEMORY_BYTES / 2, lines);
    g.addresses(one, lines);
    let (sfid, address) = place(g, lines);
    let (guard, exec, cc) = (g.guard(), one.text(), caching(g));
    let payload = format!("{data}:{size}x{count}t");
    Some(if store {
        format!("{guard}lsc_store.{sfid}{cc} {exec} {address} {payload}")
    } else {
        format!("{guard}lsc_load.{sfid}{cc} {exec} {payload} {address}")
    })
}

/// A two-dimensional block of a surface of 16 rows of 64 bytes, 128 bytes apart.
fn rectangle(g: &mut Generator<'_>, lines: &mut Vec<String>) -> Option<String> {
    let data = g.variable(Type::Ud)?;
    let loads = [
        "d32.8x8nn",
        "d32.8x8tn",
        "d16.16x8nn",
        "d16.16x8nt",
        "d8.16x16nt",
        "d16.2x8x4nn",
        "d8.7x5nn",
        "d32.3x9tn",
        "d64.4x6nn",
    ];
    let stores = ["d32.8x8nn", "d16.16x8nn", "d8.32x8nn", "d16.5x3nn"];
    let (x, y) = (g.rng.below(70), g.rng.below(20));
    let at = match g.rng.chance(50) {
        true => described(g, [x as i32, y as i32], lines),
        false => format!("flat[BASE, 0x3f, 0xf, 0x7f, {x:#x}, {y:#x}]"),
    };
    let (guard, cc) = (g.guard(), caching(g));
    Some(if g.rng.chance(40) {
        let shape = g.rng.pick(&stores);
        format!("{guard}lsc_store_block2d.ugm{cc} (M1_NM, 1) {at} {data}:{shape}")
    } else {
        let shape = g.rng.pick(&loads);
        let exec = g.kernel.simd.min(16);
        format!("{guard}lsc_load_block2d.ugm{cc} (M1, {exec}) {data}:{shape} {at}")
    })
}

/// The same place by a payload that describes the surface, and what the operand adds to it.
fn described(g: &mut Generator<'_>, place: [i32; 2], lines: &mut Vec<String>) -> String {
    let add = [(); 2].map(|()| g.rng.below(9) as i32 - 4);
    let [x, y] = [0, 1].map(|axis| (place[axis] - add[axis]) as u32);
    lines.push("mov (M1_NM, 1) HEAD64(0,0)<1> BASE(0,0)<0;1,0>".into());
    // Width, height and pitch, the place, and the shape, which the message has too.
    for (n, v) in [0x3f, 0xf, 0x7f, x, y, 0].into_iter().enumerate() {
        lines.push(format!("mov (M1_NM, 1) HEAD(0,{})<1> {v:#x}:ud", n + 2));
    }
    format!("flat[HEAD + ({},{})]", add[0], add[1])
}
