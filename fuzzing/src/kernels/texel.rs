//! Random messages to images by their descriptors: typed ones of data cache 1 and of the LSC port for texels, and blocks of rows.
//!
//! Of the data cache, bits 18:14 say the type, 7:0 the surface; of LSC, 5:0 the operation, 30:29 how the surface is named. In
//! front are coordinates, a register or two each, and after them what is written, in one payload or two.

use visa_jit::isa::Type;

use super::generate::Generator;
use super::image::{CELLS, FIRST, IMAGES, LAYERS, SHORTS, anywhere, apart, level, target};
use super::message::lsc_lanes;
use super::port::{CACHE_1, IN_HEAP, INTEGERS};
use super::send::{ATOMICS, FLOAT_ATOMICS, Payload, Sent, text};
use crate::sweep::inst::Shape;

/// Typed messages of LSC.
const TYPED: u32 = 13;

/// Channels of a message.
const SETS: [u32; 6] = [0x1, 0x4, 0x3, 0xa, 0x7, 0xf];

/// A message of a descriptor's fields, before its payload is put together.
struct Fields {
    port: u32,
    desc: u32,
    image: usize,
    shape: Shape,
    /// Lanes may share texels.
    reads: bool,
}

/// What a message carries after its coordinates: a variable, with a given number of parts, and what it returns goes to another.
#[derive(Default)]
struct Carried {
    data: Option<(String, u32)>,
    result: Option<String>,
}

impl Carried {
    /// The variable of texels' channels, those of a set, which is stored or loaded.
    fn channels(variable: String, set: u32, store: bool) -> Carried {
        let count = set.count_ones();
        match store {
            true => Carried {
                data: Some((variable, count)),
                result: None,
            },
            false => Carried {
                data: None,
                result: Some(variable),
            },
        }
    }
}

/// A message to texels or of rows of an image.
pub(super) fn texel(g: &mut Generator<'_>, split: bool, lines: &mut Vec<String>) -> Option<String> {
    let lsc = g.kernel.platform.has_lsc();
    match g.rng.below(if lsc { 10 } else { 6 }) {
        0 => typed(g, split, false, lines),
        1 => typed(g, split, true, lines),
        2 | 3 => atomic(g, split, lines),
        4 | 5 => rows(g, split, lines),
        6 | 7 => quad(g, split, lines),
        _ => lsc_atomic(g, split, lines),
    }
}

/// Lanes of the data cache: those of a register of dwords.
fn register_lanes(g: &mut Generator<'_>) -> Shape {
    let wide = g.kernel.platform.has_wide_registers();
    g.lanes(if wide { &[8, 16] } else { &[8] })
}

/// Bits 11:8 leave out channels, 13:12 say the first slots.
fn typed(
    g: &mut Generator<'_>,
    split: bool,
    store: bool,
    lines: &mut Vec<String>,
) -> Option<String> {
    let (image, data) = target(g, &[0, 1, 2, 3, 4])?;
    let shape = register_lanes(g);
    let set = *g.rng.pick(&SETS);
    let kind = if store { 0xd } else { 5 };
    let fields = Fields {
        port: CACHE_1,
        desc: kind << 14 | 1 << 12 | (0xf ^ set) << 8,
        image,
        shape,
        reads: !store,
    };
    let carried = Carried::channels(data, set, store);
    message(g, split, fields, carried, lines)
}

/// Operands of an atomic, which follow each other in one variable, and where the old value goes.
fn operands(g: &mut Generator<'_>, ty: Type, n: usize, returns: bool) -> Option<Carried> {
    let data = match n {
        0 => None,
        _ => Some((g.variable(ty)?, n as u32)),
    };
    let result = if returns { Some(g.variable(ty)?) } else { None };
    Some(Carried { data, result })
}

/// Bit 13 asks for the old value, 11:8 say the operation.
fn atomic(g: &mut Generator<'_>, split: bool, lines: &mut Vec<String>) -> Option<String> {
    let image = *g.rng.pick(&[CELLS, SHORTS]);
    let (operation, n) = *g.rng.pick(&INTEGERS);
    let returns = g.rng.chance(70);
    let kind = if image == SHORTS { 7 } else { 6 };
    let fields = Fields {
        port: CACHE_1,
        desc: kind << 14 | u32::from(returns) << 13 | operation << 8,
        image,
        shape: register_lanes(g),
        reads: false,
    };
    let carried = operands(g, Type::Ud, n, returns)?;
    message(g, split, fields, carried, lines)
}

/// Bits 15:12 say the channels.
fn quad(g: &mut Generator<'_>, split: bool, lines: &mut Vec<String>) -> Option<String> {
    let (image, data) = target(g, &[0, 1, 2, 3, 4])?;
    let store = split && g.rng.chance(50);
    let set = *g.rng.pick(&SETS);
    let operation = if store { 6 } else { 2 };
    let fields = Fields {
        port: TYPED,
        desc: operation | 2 << 7 | 2 << 9 | set << 12,
        image,
        shape: texel_lanes(g),
        reads: !store,
    };
    let carried = Carried::channels(data, set, store);
    message(g, split, fields, carried, lines)
}

/// Lanes of LSC, of which typed messages have sixteen at most.
fn texel_lanes(g: &mut Generator<'_>) -> Shape {
    loop {
        let shape = lsc_lanes(g);
        if shape.lanes <= 16 {
            return shape;
        }
    }
}

fn lsc_atomic(g: &mut Generator<'_>, split: bool, lines: &mut Vec<String>) -> Option<String> {
    let floats = split && g.rng.chance(30);
    let image = match floats {
        true => LAYERS,
        false => *g.rng.pick(&[CELLS, SHORTS]),
    };
    let all: &[_] = if floats { &FLOAT_ATOMICS } else { &ATOMICS };
    let all: Vec<_> = all.iter().filter(|(_, n)| split || *n == 0).collect();
    let &&(operation, n) = g.rng.pick(&all);
    let element = if image == SHORTS { 5 } else { 2 };
    let fields = Fields {
        port: TYPED,
        desc: operation | 2 << 7 | element << 9,
        image,
        shape: texel_lanes(g),
        reads: false,
    };
    let returns = g.rng.chance(70);
    let carried = operands(g, IMAGES[image].data, n, returns)?;
    message(g, split, fields, carried, lines)
}

/// Bytes of a coordinate, and of an operand of one dword a lane.
fn part(g: &Generator<'_>, shape: Shape) -> u32 {
    (4 * shape.lanes).next_multiple_of(g.kernel.platform.grf_bytes())
}

/// How the parts of a message lie, each of a given number of registers: coordinates, then data.
struct Layout {
    coordinates: u32,
    parts: u32,
    /// Parts of the first source; the others are in the second.
    first: u32,
    /// Registers in front of them.
    header: u32,
    one: u32,
}

impl Layout {
    /// Whether data lies in a source of its own, and need not be copied.
    fn apart(&self) -> bool {
        self.first == self.coordinates
    }
}

/// A message with coordinates for its lanes.
fn message(
    g: &mut Generator<'_>,
    split: bool,
    mut f: Fields,
    carried: Carried,
    lines: &mut Vec<String>,
) -> Option<String> {
    let fewest = if f.reads { 1 } else { IMAGES[f.image].axes() };
    let count = fewest + g.rng.below(5 - fewest);
    if f.reads {
        anywhere(g, f.image, f.shape, lines);
    } else {
        apart(g, f.image, f.shape, lines);
    }
    if count == 4 {
        level(g, f.shape, 100, lines);
    }
    let coordinates = count as u32;
    let parts = coordinates + carried.data.as_ref().map_or(0, |d| d.1);
    let l = Layout {
        coordinates,
        parts,
        // LSC has coordinates in its first source, and nothing else. Data lies in one of both.
        first: match (split, f.port) {
            (false, _) => parts,
            (true, TYPED) => coordinates,
            (true, _) if g.rng.chance(20) => parts,
            (true, _) => 1 + g.rng.below(count) as u32,
        },
        header: u32::from(f.port == CACHE_1 && g.rng.chance(20)),
        one: part(g, f.shape) / g.kernel.platform.grf_bytes(),
    };
    if l.header != 0 {
        f.desc |= 1 << 19;
        // It is for all lanes.
        lines.push("mov (M1_NM, 8) IP(0,0)<1> 0x0:ud".into());
        lines.push("mov (M1_NM, 1) IP(0,7)<1> 0xffff:ud".into());
    }
    copies(&f, &carried, &l, lines);
    let second = match carried.data {
        _ if l.first == parts => None,
        Some((data, _)) if l.apart() => Some(data),
        _ => Some("IQ".to_owned()),
    };
    let registers = [l.header + l.first * l.one, (parts - l.first) * l.one];
    let sent = surface(g, split, &f, registers, lines);
    let result = carried.result.unwrap_or("%null".into());
    let payload = Payload::Atomic(second, result);
    Some(text(g, split, sent, &f.shape.text(), "IP.0", payload))
}

/// Puts coordinates into payloads, and data after them.
fn copies(f: &Fields, carried: &Carried, l: &Layout, lines: &mut Vec<String>) {
    let n = f.shape.lanes;
    for k in 0..l.parts {
        let (to, row) = match k.checked_sub(l.first) {
            None => ("P", l.header + k * l.one),
            Some(_) if l.apart() => return,
            Some(behind) => ("Q", behind * l.one),
        };
        let (from, at) = match (&carried.data, k.checked_sub(l.coordinates)) {
            (Some((data, _)), Some(behind)) => (data.as_str(), behind * l.one),
            _ => (["IU", "IV", "IR", "IL"][k as usize], 0),
        };
        // Floats are copied as such.
        let floats = k >= l.coordinates && IMAGES[f.image].data == Type::F;
        let ty = if floats { 'F' } else { 'I' };
        lines.push(format!(
            "mov (M1_NM, {n}) {ty}{to}({row},0)<1> {from}({at},0)<1;1,0>"
        ));
    }
}

/// The message with an image, by its index or its place in the heap.
fn surface(
    g: &mut Generator<'_>,
    split: bool,
    f: &Fields,
    registers: [u32; 2],
    lines: &mut Vec<String>,
) -> Sent {
    let index = (FIRST + f.image) as u32;
    let heap = split && g.rng.chance(30);
    let lsc = f.port == TYPED;
    let shift = match lsc {
        true => 6,
        false => g.kernel.platform.bindless_shift(),
    };
    if heap {
        let entry = (index + 1) << shift;
        lines.push(format!("mov (M1_NM, 1) HEAP(0,0)<1> {entry:#x}:ud"));
    }
    let (named, ex) = match (lsc, heap) {
        (true, true) => ((1 + g.rng.below(2) as u32) << 29, f.port),
        (true, false) => (3 << 29, index << 24 | f.port),
        (false, true) => (IN_HEAP, f.port),
        (false, false) => (index, f.port),
    };
    Sent {
        port: f.port,
        desc: f.desc | named,
        ex,
        heap,
        registers,
    }
}

/// A block of rows, of which bits 10:8 may choose every other one: its corner and its size are the first three dwords of the header.
fn rows(g: &mut Generator<'_>, split: bool, lines: &mut Vec<String>) -> Option<String> {
    let (image, data) = target(g, &[CELLS, SHORTS])?;
    let width = 1 + g.rng.below(32) as u32;
    let pitch = width.next_power_of_two().max(4);
    let height = 1 + g.rng.below((256 / pitch) as usize) as u32;
    let corner = [g.rng.below(80) as i32 - 8, g.rng.below(12) as i32 - 2];
    let size = (width - 1) | (height - 1) << 16;
    for (n, v) in [corner[0] as u32, corner[1] as u32, size]
        .into_iter()
        .enumerate()
    {
        lines.push(format!("mov (M1_NM, 1) IP(0,{n})<1> {v:#x}:ud"));
    }
    let store = g.rng.chance(50);
    let grf = g.kernel.platform.grf_bytes();
    let behind = if store {
        (height * pitch).div_ceil(grf)
    } else {
        0
    };
    // In one payload, data is after the header.
    if store && !split {
        for row in 0..behind {
            let n = grf / 4;
            lines.push(format!(
                "mov (M1_NM, {n}) IP({},0)<1> {data}({row},0)<1;1,0>",
                row + 1
            ));
        }
    }
    let kind = if store { 0xa } else { 4 };
    let shape = Shape {
        first: 0,
        lanes: 8,
        no_mask: true,
    };
    let fields = Fields {
        port: CACHE_1,
        desc: 1 << 19 | kind << 14 | g.rng.pick(&[0, 0, 4, 6, 7]) << 8,
        image,
        shape,
        reads: !store,
    };
    let registers = match split {
        true => [1, behind],
        false => [1 + behind, 0],
    };
    let sent = surface(g, split, &fields, registers, lines);
    let payload = match store {
        true => Payload::Store(data),
        false => Payload::Load(data),
    };
    Some(text(g, split, sent, &shape.text(), "IP.0", payload))
}
