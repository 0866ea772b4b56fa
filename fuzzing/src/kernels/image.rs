//! Random messages to images: typed surfaces, the sampler, two-dimensional blocks.
//!
//! Each image has numbers of one kind, integers or floats, and variables of that kind get what is read. Lanes that write have a texel
//! each.

use visa_jit::isa::sampler::{SAMPLER_OPS, read_params};
use visa_jit::isa::{Form, Opcode, OpcodeInfo, Type};
use visa_runtime::{
    Addressing, Channel, Comparison, ImageFormat, ImageKind, ImageShape, SamplerState,
};

use super::generate::Generator;
use super::message::caching;
use crate::sweep::inst::{Registers, Shape};

/// Surface of the first image.
pub const FIRST: usize = 4;

/// An image of every kernel that has images.
pub struct Image {
    kind: ImageKind,
    channels: u32,
    bits: u32,
    channel: Channel,
    extent: [u32; 3],
    /// Variables that texels are read to.
    pub(super) data: Type,
    /// What its contents are compared as.
    pub region: Type,
}

const fn image(
    kind: ImageKind,
    (channels, bits, channel): (u32, u32, Channel),
    extent: [u32; 3],
    data: Type,
    region: Type,
) -> Image {
    Image {
        kind,
        channels,
        bits,
        channel,
        extent,
        data,
        region,
    }
}

/// Images that atomics change: of 32 bits, of 16, of floats.
pub(super) const CELLS: usize = 0;
pub(super) const SHORTS: usize = 2;
pub(super) const LAYERS: usize = 3;
/// The image of normalised numbers that can be compared; [`LAYERS`] are the other one.
const DEPTHS: usize = 5;

/// All of them; the first is at surface [`FIRST`].
pub const IMAGES: [Image; 6] = [
    image(
        ImageKind::D2,
        (1, 32, Channel::Uint),
        [16, 8, 1],
        Type::Ud,
        Type::Ud,
    ),
    image(
        ImageKind::D2,
        (4, 8, Channel::Unorm),
        [8, 8, 1],
        Type::F,
        Type::Ud,
    ),
    image(
        ImageKind::D1,
        (1, 16, Channel::Uint),
        [64, 1, 1],
        Type::Ud,
        Type::Ud,
    ),
    image(
        ImageKind::D2Array,
        (1, 32, Channel::Float),
        [8, 4, 3],
        Type::F,
        Type::F,
    ),
    image(
        ImageKind::D3,
        (2, 16, Channel::Int),
        [4, 4, 4],
        Type::Ud,
        Type::Ud,
    ),
    image(
        ImageKind::D2,
        (1, 16, Channel::Unorm),
        [8, 8, 1],
        Type::F,
        Type::Ud,
    ),
];

impl Image {
    /// Kind, format and size.
    ///
    /// # Panics
    /// When the table above is wrong.
    pub fn shape(&self) -> ImageShape {
        ImageShape {
            kind: self.kind,
            format: ImageFormat::new(self.channels, self.bits, self.channel).expect("a format"),
            extent: self.extent,
        }
    }

    /// Dwords of its contents.
    pub fn dwords(&self) -> u32 {
        self.extent.iter().product::<u32>() * self.channels * self.bits / 32
    }

    /// Coordinates that say a texel.
    pub(super) fn axes(&self) -> usize {
        match self.kind {
            ImageKind::D1 | ImageKind::Buffer => 1,
            ImageKind::D2 | ImageKind::D1Array => 2,
            ImageKind::D3 | ImageKind::D2Array => 3,
        }
    }

    /// Texels along a coordinate.
    fn size(&self, axis: usize) -> u32 {
        self.extent[axis]
    }
}

/// Samplers of every kernel that has images.
pub const SAMPLERS: [SamplerState; 8] = [
    sampler(Addressing::Edge, false, false, Comparison::Less),
    sampler(Addressing::Border, true, false, Comparison::GreaterEqual),
    sampler(Addressing::Repeat, true, true, Comparison::LessEqual),
    sampler(Addressing::Mirror, true, true, Comparison::Equal),
    sampler(Addressing::Edge, true, true, Comparison::Greater),
    sampler(Addressing::None, false, false, Comparison::NotEqual),
    sampler(Addressing::Edge, true, false, Comparison::Always),
    sampler(Addressing::Border, true, true, Comparison::Never),
];

const fn sampler(
    addressing: Addressing,
    linear: bool,
    normalized: bool,
    comparison: Comparison,
) -> SamplerState {
    SamplerState {
        addressing,
        linear,
        normalized,
        comparison,
    }
}

/// Declarations: surfaces, samplers, payloads of coordinates.
pub fn declarations() -> Vec<String> {
    let mut out = Vec::new();
    for i in 0..IMAGES.len() {
        out.push(format!(".decl T{} v_type=T num_elts=1", 6 + FIRST + i));
    }
    for i in 0..SAMPLERS.len() {
        out.push(format!(".decl S{i} v_type=S num_elts=1"));
    }
    let coordinates = [
        (["IU", "IV", "IR", "IL", "IC"], "ud"),
        (["FU", "FV", "FR", "FL", "FC"], "f"),
        (["WU", "WV", "WR", "WL", "WC"], "uw"),
        (["HU", "HV", "HR", "HL", "HC"], "hf"),
    ];
    for (names, ty) in coordinates {
        let decl = |n| format!(".decl {n} v_type=G type={ty} num_elts=32 align=GRF");
        out.extend(names.map(decl));
    }
    // Their low halves.
    let half = |n| format!(".decl {n}_uw v_type=G type=uw num_elts=64 alias=<{n}, 0>");
    out.extend(["IU", "IV", "IR", "IL", "IC"].map(half));
    // Payloads of messages by their descriptors: coordinates, and data after them.
    for p in ["P", "Q"] {
        out.push(format!(
            ".decl I{p} v_type=G type=ud num_elts=160 align=GRF"
        ));
        out.push(format!(
            ".decl F{p} v_type=G type=f num_elts=160 alias=<I{p}, 0>"
        ));
    }
    out
}

/// Handles of surfaces and samplers.
pub fn handles() -> Vec<String> {
    let surface = |i| format!("movs (M1_NM, 1) T{}(0) {:#x}:ud", 6 + FIRST + i, FIRST + i);
    let sampler = |i| format!("movs (M1_NM, 1) S{i}(0) {i:#x}:ud");
    (0..IMAGES.len())
        .map(surface)
        .chain((0..SAMPLERS.len()).map(sampler))
        .collect()
}

/// Letters of channels, and how many they are.
const CHANNELS: [&str; 7] = ["R", "G", "RG", "GA", "RGB", "RGBA", "B"];

/// A message of a row that accesses images; what prepares it goes to `lines`.
pub(super) fn message(
    g: &mut Generator<'_>,
    row: &OpcodeInfo,
    lines: &mut Vec<String>,
) -> Option<String> {
    match row.form {
        _ if row.opcode == Opcode::LscTyped => lsc(g, lines),
        Form::Typed => typed(g, row, lines),
        Form::TypedAtomic => atomic(g, lines),
        Form::Media => media(g, row, lines),
        _ => sampled(g, row, lines),
    }
}

/// An image, its variable, and its surface in text.
pub(super) fn target(g: &mut Generator<'_>, among: &[usize]) -> Option<(usize, String)> {
    let i = *g.rng.pick(among);
    Some((i, g.variable(IMAGES[i].data)?))
}

fn any(g: &mut Generator<'_>) -> Option<(usize, String)> {
    target(g, &[0, 1, 2, 3, 4, 5])
}

fn surface(i: usize) -> String {
    format!("T{}", 6 + FIRST + i)
}

/// Integer coordinates of any texel, and some beside the image.
pub(super) fn anywhere(g: &mut Generator<'_>, i: usize, shape: Shape, lines: &mut Vec<String>) {
    let n = shape.lanes;
    for (axis, name) in ["IU", "IV", "IR"].into_iter().enumerate() {
        let (from, _) = g.kernel.source(&mut g.rng, Type::Ud).unwrap_or_default();
        // A power of two above the size.
        let mask = 2 * IMAGES[i].size(axis).next_power_of_two() - 1;
        lines.push(format!(
            "and (M1_NM, {n}) {name}(0,0)<1> {from}(0,0)<1;1,0> {mask:#x}:ud"
        ));
        if g.rng.chance(15) {
            lines.push(format!(
                "add (M1_NM, {n}) {name}(0,0)<1> {name}(0,0)<1;1,0> -2:d"
            ));
        }
    }
}

/// Integer coordinates of a texel for each lane, the last ones beside the image now and then.
pub(super) fn apart(g: &mut Generator<'_>, i: usize, shape: Shape, lines: &mut Vec<String>) {
    let n = shape.lanes;
    let mut shift = 0;
    let mut left = 5u32;
    for (axis, name) in ["IU", "IV", "IR"].into_iter().enumerate() {
        let size = IMAGES[i].size(axis);
        let bits = left.min(size.ilog2());
        let mask = (1u32 << bits) - 1;
        lines.push(format!(
            "shr (M1_NM, {n}) {name}(0,0)<1> LANE(0,0)<1;1,0> {shift:#x}:ud"
        ));
        lines.push(format!(
            "and (M1_NM, {n}) {name}(0,0)<1> {name}(0,0)<1;1,0> {mask:#x}:ud"
        ));
        let base = g
            .rng
            .below((size + 2).saturating_sub(1 << bits).max(1) as usize);
        lines.push(format!(
            "add (M1_NM, {n}) {name}(0,0)<1> {name}(0,0)<1;1,0> {base:#x}:ud"
        ));
        shift += bits;
        left -= bits;
    }
}

/// A payload of levels, most of them the first.
pub(super) fn level(
    g: &mut Generator<'_>,
    shape: Shape,
    percent: usize,
    lines: &mut Vec<String>,
) -> String {
    if !g.rng.chance(percent) {
        return "%null".into();
    }
    let (from, _) = g.kernel.source(&mut g.rng, Type::Ud).unwrap_or_default();
    lines.push(format!(
        "and (M1_NM, {}) IL(0,0)<1> {from}(0,0)<1;1,0> 0x2:ud",
        shape.lanes
    ));
    "IL".into()
}

fn typed(g: &mut Generator<'_>, row: &OpcodeInfo, lines: &mut Vec<String>) -> Option<String> {
    let (i, data) = any(g)?;
    let shape = g.lanes(&[8, 16]);
    let store = row.opcode == Opcode::Scatter4Typed;
    if store {
        apart(g, i, shape, lines);
    } else {
        anywhere(g, i, shape, lines);
    }
    let level = level(g, shape, 15, lines);
    let channels = *g.rng.pick(&CHANNELS);
    Some(format!(
        "{}{}.{channels} {} {} IU.0 IV.0 IR.0 {level}.0 {data}.0",
        g.guard(),
        row.opcode.mnemonic(),
        shape.text(),
        surface(i)
    ))
}

/// Operations by legacy and LSC name, and the number of operands; the last five are of floats.
const ATOMICS: [(&str, &str, usize); 19] = [
    ("add", "iadd", 1),
    ("sub", "isub", 1),
    ("inc", "iinc", 0),
    ("dec", "idec", 0),
    ("min", "umin", 1),
    ("max", "umax", 1),
    ("xchg", "store", 1),
    ("cmpxchg", "icas", 2),
    ("and", "and", 1),
    ("or", "or", 1),
    ("xor", "xor", 1),
    ("minsint", "smin", 1),
    ("maxsint", "smax", 1),
    ("predec", "load", 0),
    ("fmax", "fmax", 1),
    ("fmin", "fmin", 1),
    ("fcmpwr", "fcas", 2),
    ("fadd", "fadd", 1),
    ("fsub", "fsub", 1),
];

/// The last operation on integers: one that LSC lacks, and one that only LSC has.
const LAST: usize = 13;

/// An operation, its image, and its operands.
struct Atomic {
    names: (&'static str, &'static str),
    image: usize,
    operands: [String; 2],
    dst: String,
}

fn operation(g: &mut Generator<'_>) -> Option<Atomic> {
    let k = g.rng.below(ATOMICS.len());
    let (legacy, name, n) = ATOMICS[k];
    let image = match k > LAST {
        true => LAYERS,
        false => *g.rng.pick(&[CELLS, SHORTS]),
    };
    let ty = IMAGES[image].data;
    let mut operands = ["%null".to_owned(), "%null".to_owned()];
    for o in operands.iter_mut().take(n) {
        *o = g.variable(ty)?;
    }
    let dst = g.variable(ty)?;
    Some(Atomic {
        names: (legacy, name),
        image,
        operands,
        dst: if g.rng.chance(25) {
            "%null".into()
        } else {
            dst
        },
    })
}

fn atomic(g: &mut Generator<'_>, lines: &mut Vec<String>) -> Option<String> {
    let a = operation(g)?;
    let shape = g.lanes(&[8, 16]);
    apart(g, a.image, shape, lines);
    let level = level(g, shape, 15, lines);
    let width = if a.image == SHORTS { ".16" } else { "" };
    let [first, second] = &a.operands;
    Some(format!(
        "{}typed_atomic.{}{width} {} {} IU.0 IV.0 IR.0 {level}.0 {first}.0 {second}.0 {}.0",
        g.guard(),
        a.names.0,
        shape.text(),
        surface(a.image),
        a.dst
    ))
}

/// Surface and coordinates of a typed LSC message.
fn place(g: &mut Generator<'_>, i: usize, level: &str) -> String {
    let index = FIRST + i;
    let surface = match g.rng.below(4) {
        0 => format!("bss({:#x})", 64 * (index + 1)),
        1 => format!("ss({:#x})", 64 * (index + 1)),
        _ => format!("bti({index:#x})"),
    };
    format!("{surface}[IU, IV, IR, {level}]:a32")
}

fn lsc(g: &mut Generator<'_>, lines: &mut Vec<String>) -> Option<String> {
    let shape = g.lanes(&[8, 16]);
    if g.rng.chance(70) {
        let a = operation(g)?;
        apart(g, a.image, shape, lines);
        let level = level(g, shape, 15, lines);
        let size = if a.image == SHORTS { "d16c32" } else { "d32" };
        let at = place(g, a.image, &level);
        let [first, second] = &a.operands;
        return Some(format!(
            "{}lsc_atomic_{}.tgm{} {} {}:{size} {at} {first} {second}",
            g.guard(),
            a.names.1,
            caching(g),
            shape.text(),
            a.dst
        ));
    }
    let (i, data) = any(g)?;
    let store = g.rng.chance(50);
    if store {
        apart(g, i, shape, lines);
    } else {
        anywhere(g, i, shape, lines);
    }
    let level = level(g, shape, 15, lines);
    let channels = *g.rng.pick(&["x", "y", "xy", "xw", "xyz", "xyzw", "z"]);
    let at = place(g, i, &level);
    let (guard, exec, cc) = (g.guard(), shape.text(), caching(g));
    Some(match store {
        true => format!("{guard}lsc_store_quad.tgm{cc} {exec} {at} {data}:d32.{channels}"),
        false => format!("{guard}lsc_load_quad.tgm{cc} {exec} {data}:d32.{channels} {at}"),
    })
}

/// A block of rows, up to the size of a variable.
fn media(g: &mut Generator<'_>, row: &OpcodeInfo, lines: &mut Vec<String>) -> Option<String> {
    let (i, data) = target(g, &[CELLS, SHORTS])?;
    let width = 1 + g.rng.below(32) as u32;
    let height = 1 + g
        .rng
        .below((256 / width.next_power_of_two().max(4)) as usize) as u32;
    let (x, y) = (g.rng.below(80) as i32 - 8, g.rng.below(12) as i32 - 2);
    let modifiers = [
        "nomod",
        "nomod",
        "top",
        "bottom",
        "modified",
        "top_mod",
        "bottom_mod",
    ];
    // Those that say that a read is of what was written are of reads.
    let known = if row.opcode == Opcode::MediaLd { 7 } else { 5 };
    let modifier = modifiers[g.rng.below(known)];
    let (surface, plane) = if g.rng.chance(25) {
        let word = (FIRST + i + 1) << g.kernel.platform.bindless_shift();
        lines.push(format!("movs (M1_NM, 1) %bss(0) {word:#x}:ud"));
        ("%bss".to_owned(), g.rng.below(4))
    } else {
        // An image is a plane of those in front of it.
        let plane = g.rng.below(i + 1);
        (surface(i - plane), plane)
    };
    Some(format!(
        "{}.{modifier} ({width},{height}) {surface} {plane} {x}:d {y}:d {data}.0",
        row.opcode.mnemonic()
    ))
}

/// Float coordinates: texels and between them, or any numbers.
fn spots(g: &mut Generator<'_>, i: usize, shape: Shape, lines: &mut Vec<String>) {
    anywhere(g, i, shape, lines);
    let n = shape.lanes;
    // Quarters of texels, or of images.
    let scale = *g.rng.pick(&[
        "0x3e800000:f",
        "0x3f000000:f",
        "0x3f800000:f",
        "0x3d800000:f",
    ]);
    for (from, to) in [("IU", "FU"), ("IV", "FV"), ("IR", "FR")] {
        let any = g
            .kernel
            .source(&mut g.rng, Type::F)
            .filter(|_| g.rng.chance(20));
        match any {
            Some((name, _)) => {
                lines.push(format!("mov (M1_NM, {n}) {to}(0,0)<1> {name}(0,0)<1;1,0>"))
            }
            None => {
                lines.push(format!("mov (M1_NM, {n}) {to}(0,0)<1> {from}(0,0)<1;1,0>"));
                lines.push(format!(
                    "mul (M1_NM, {n}) {to}(0,0)<1> {to}(0,0)<1;1,0> {scale}"
                ));
            }
        }
    }
}

/// Payloads of a message in their order.
fn parameters(name: &str) -> &'static [&'static str] {
    match name {
        "sample_3d" | "sample_lz" | "sample4" => &["FU", "FV", "FR"],
        "sample_b" | "sample_l" | "sample4_l" => &["FL", "FU", "FV", "FR"],
        "sample_d" => &["FU", "FL", "FL", "FV", "FL", "FL", "FR"],
        "sample_c" | "sample_c_lz" | "sample4_c" => &["FC", "FU", "FV", "FR"],
        "sample_b_c" | "sample_l_c" => &["FC", "FL", "FU", "FV", "FR"],
        "sample_d_c" => &["FC", "FU", "FL", "FL", "FV", "FL", "FL", "FR"],
        "lod" => &["FU", "FV", "FR"],
        "sample4_po" => &["FU", "FV", "IL", "IR", "FR"],
        "sample4_po_c" => &["FC", "FU", "FV", "IL", "IR", "FR"],
        "load_3d" => &["IU", "IV", "IL", "IR"],
        "load_lz" => &["IU", "IV", "IR"],
        "load_mcs" => &["IU", "IV", "IR", "IL"],
        "load_2dms_w" => &["IC", "IC", "IC", "IU", "IV", "IR", "IL"],
        _ => &[],
    }
}

/// Numbers to compare texels with: about those of the image, or any.
fn reference(g: &mut Generator<'_>, shape: Shape, lines: &mut Vec<String>) {
    let n = shape.lanes;
    let ty = if g.rng.chance(50) { Type::F } else { Type::Ud };
    let (from, _) = g.kernel.source(&mut g.rng, ty).unwrap_or_default();
    lines.push(format!("mov (M1_NM, {n}) FC(0,0)<1> {from}(0,0)<1;1,0>"));
    if ty == Type::Ud {
        // From 0 to 1.
        lines.push(format!(
            "mul (M1_NM, {n}) FC(0,0)<1> FC(0,0)<1;1,0> 0x2f800000:f"
        ));
    }
}

/// Messages of the sampler.
fn sampled(g: &mut Generator<'_>, row: &OpcodeInfo, lines: &mut Vec<String>) -> Option<String> {
    let all: Vec<_> = SAMPLER_OPS
        .iter()
        .filter_map(|op| Some((op, read_params(op.opcode, op.code, false)?)))
        .filter(|(op, _)| op.opcode == row.opcode)
        // Offsets of each lane.
        .filter(|(_, params)| params.offsets.is_none() || !g.kernel.platform.has_lsc())
        .map(|(op, params)| (op.mnemonic, params.reference.is_some()))
        .collect();
    let (name, compares) = *g.rng.pick(&all);
    let shape = g.lanes(&[8, 16]);
    let exec = shape.text();
    let n = shape.lanes;
    if row.form == Form::Info3d {
        return info(g, name, shape, lines);
    }
    // Of others, only faults can be compared.
    let (i, mut data) = match compares && g.rng.chance(90) {
        true => target(g, &[LAYERS, DEPTHS])?,
        false => any(g)?,
    };
    if compares {
        reference(g, shape, lines);
    }
    let fetches = row.form == Form::Load3d;
    // Results of 16 bits, of the image's kind.
    let mut bytes = 4;
    if g.rng.chance(20) {
        let narrow = if IMAGES[i].data == Type::F {
            Type::Hf
        } else {
            Type::Uw
        };
        if let Some(name) = g.variable(narrow) {
            (data, bytes) = (name, 2);
        }
    }
    if fetches {
        anywhere(g, i, shape, lines);
    } else {
        spots(g, i, shape, lines);
    }
    let moves = matches!(name, "sample4_po" | "sample4_po_c");
    if matches!(name, "load_3d" | "load_2dms_w") || moves {
        let mask = if fetches { 0x2 } else { 0x8000_0003_u32 };
        let (from, _) = g.kernel.source(&mut g.rng, Type::Ud).unwrap_or_default();
        lines.push(format!(
            "and (M1_NM, {n}) IL(0,0)<1> {from}(0,0)<1;1,0> {mask:#x}:ud"
        ));
    }
    let gathers = row.opcode == Opcode::Gather43d;
    let channels = match gathers {
        true if compares => "R",
        true => *g.rng.pick(&["R", "G", "B", "A"]),
        false => *g.rng.pick(&CHANNELS),
    };
    let registers = if gathers { 4 } else { channels.len() as u32 };
    // A register more has to fit.
    let unit = (bytes * n).max(g.kernel.platform.grf_bytes());
    if registers * unit > super::ELEMENTS * bytes {
        return None;
    }
    let masked = (registers + 1) * unit <= super::ELEMENTS * bytes;
    let suffix = match g.rng.below(8) {
        0 if masked => ".pixel_null_mask",
        1 if matches!(name, "sample_3d" | "sample_b") => ".cps",
        2 if !fetches => ".divS",
        _ => "",
    };
    let offset = if moves || g.rng.chance(60) {
        "0x0:uw".to_owned()
    } else {
        format!("{:#x}:uw", g.rng.below(0x1000))
    };
    let sampler = match fetches {
        true => String::new(),
        false => sampler_of(g, lines),
    };
    let (surface, pair) = (sampled_surface(g, i, lines), g.kernel.paired_surfaces());
    let pair = if pair { "%null.0 " } else { "" };
    let halves = g.rng.chance(20) && !moves;
    let parameters = payloads(name, fetches, halves, n, lines);
    Some(format!(
        "{}{name}{suffix}.{channels} {exec} {offset} {sampler}{surface} {data}.0 {pair}{parameters}",
        g.guard(),
    ))
}

/// A sampler by its index, or by its place in the heap of sampler states.
fn sampler_of(g: &mut Generator<'_>, lines: &mut Vec<String>) -> String {
    let index = g.rng.below(SAMPLERS.len());
    if g.rng.chance(75) {
        return format!("S{index} ");
    }
    lines.push(format!("movs (M1_NM, 1) S31(0) {:#x}:ud", 16 * index));
    "S31 ".to_owned()
}

/// An image by its index, or by its place in the heap of surface states.
fn sampled_surface(g: &mut Generator<'_>, i: usize, lines: &mut Vec<String>) -> String {
    if g.rng.chance(75) {
        return surface(i);
    }
    let word = (FIRST + i + 1) << g.kernel.platform.bindless_shift();
    lines.push(format!("movs (M1_NM, 1) %bss(0) {word:#x}:ud"));
    "%bss".to_owned()
}

/// Questions about an image.
fn info(
    g: &mut Generator<'_>,
    name: &str,
    shape: Shape,
    lines: &mut Vec<String>,
) -> Option<String> {
    let (i, data) = (g.rng.below(IMAGES.len()), g.variable(Type::Ud)?);
    let channels = *g.rng.pick(&CHANNELS);
    let level = level(g, shape, 40, lines);
    let level = match name {
        "resinfo" => format!("{level}.0 "),
        _ => String::new(),
    };
    let (exec, surface) = (shape.text(), surface(i));
    Some(format!(
        "{name}.{channels} {exec} {surface} {level}{data}.0"
    ))
}

/// Parameters of a message of the sampler, or `halves` of them: half floats, and words of fetches.
fn payloads(name: &str, fetches: bool, halves: bool, n: u32, lines: &mut Vec<String>) -> String {
    let narrow = |p: &str| match fetches {
        true => p.replace('I', "W"),
        false => p.replace('F', "H"),
    };
    let names = match fetches {
        true => ["IU", "IV", "IR", "IL", "IC"],
        false => ["FU", "FV", "FR", "FL", "FC"],
    };
    for p in names.iter().filter(|_| halves) {
        let (to, low) = (
            narrow(p),
            if fetches {
                "_uw(0,0)<2;1,0>"
            } else {
                "(0,0)<1;1,0>"
            },
        );
        lines.push(format!("mov (M1_NM, {n}) {to}(0,0)<1> {p}{low}"));
    }
    let mut parameters: Vec<String> = parameters(name)
        .iter()
        .map(|p| if halves { narrow(p) } else { (*p).to_owned() })
        .map(|p| format!("{p}.0"))
        .collect();
    if halves && name == "load_2dms_w" {
        // Control data of 64 bits.
        parameters.splice(1..1, ["WC.0".to_owned(), "WC.0".to_owned()]);
    }
    parameters.join(" ")
}
