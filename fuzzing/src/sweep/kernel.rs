//! Many single instructions in one kernel: sources come from one surface, each destination is loaded from its
//! own place in another and stored there afterwards, so that what must stay as it was is compared too.

use std::fmt::Write;

use visa_jit::isa::{Form, Opcode, OpcodeInfo, Platform, PredKind, Type, TypeClass};

use super::inst::{Indirect, Registers, Shape, Types, exists, instruction};
use super::values::{TYPES, value};
use crate::engines::{Launch, Region};
use visa_test_common::Rng;

/// Elements of a source variable, at least.
const ELEMENTS: u32 = 96;
/// Bytes of a destination.
const SLOT: u32 = 256;
/// Dwords that predicates are made of, at the start of the surface with the sources.
const PREDICATES: u32 = 8;
/// First byte of the offsets for indirect operands; they leave room for the rest of an element's region.
const OFFSETS: u32 = 64;
/// First byte of the source variables.
const SOURCES: u32 = 128;

/// An instruction to try.
#[derive(Clone, Debug)]
pub struct Case {
    /// Row.
    pub row: &'static OpcodeInfo,
    /// Lines that prepare it, and itself last.
    pub lines: Vec<String>,
    /// Destinations: variable and type.
    pub dsts: Vec<(String, Type)>,
    /// Receives bits of this predicate.
    pub predicate: bool,
}

impl Case {
    /// The instruction.
    pub fn text(&self) -> &str {
        self.lines.last().map_or("", String::as_str)
    }
}

/// What kernels have in common.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// Device.
    pub platform: Platform,
    /// Lanes of a thread.
    pub simd: u32,
    /// `%cr0` that the kernel sets.
    pub mode: u32,
}

impl Setting {
    /// The setting of a seed: usually the one that compilers set up.
    pub fn any(rng: &mut Rng, row: &OpcodeInfo) -> Setting {
        let all = Platform::ALL
            .into_iter()
            .filter(|p| row.platforms.contains(*p));
        let all: Vec<Platform> = all.collect();
        let modes = [0x4c0, 0x4c0, 0x4c0, 0x4f0, 0x4d0, 0x4e0, 0, 0x440, 0x80];
        Setting {
            platform: *rng.pick(&all),
            simd: *rng.pick(&[32, 32, 16, 8]),
            mode: *rng.pick(&modes),
        }
    }

    /// Distance of first lanes: masks of four lanes are not legal on the last platform.
    fn step(self) -> u32 {
        if self.platform.has_wide_registers() {
            8
        } else {
            4
        }
    }
}

struct Bank {
    simd: u32,
}

fn source_bytes(ty: Type) -> u32 {
    (ELEMENTS * ty.bytes()).next_multiple_of(128)
}

fn source_at(ty: Type) -> u32 {
    let before = TYPES.into_iter().take_while(|t| *t != ty);
    SOURCES + before.map(source_bytes).sum::<u32>()
}

fn source_name(ty: Type) -> String {
    format!("S_{}", ty.name())
}

impl Registers for Bank {
    fn source(&self, _: &mut Rng, ty: Type) -> Option<(String, u32)> {
        Some((source_name(ty), ELEMENTS))
    }

    fn predicate(&self, rng: &mut Rng, _: u32) -> String {
        // Of one bit, of the thread's width, of the largest.
        rng.pick(&["P1", "P2", "P3", "P4", "P5", "P6"]).to_string()
    }

    fn indirect(&self, rng: &mut Rng, ty: Type, lines: &mut Vec<String>) -> Option<Indirect> {
        let name = source_name(ty);
        if rng.chance(50) && self.simd >= 16 {
            lines.push(format!(
                "addr_add (M1_NM, 16) A1(0)<1> &{name} OFFSETS(0,0)<1;1,0>"
            ));
            return Some(Indirect {
                text: "r[A1(0),0]".into(),
                vector: true,
                elements: 1,
            });
        }
        let skipped = rng.below(8) as u32;
        let at = skipped * ty.bytes();
        lines.push(format!("addr_add (M1_NM, 1) A0(0)<1> &{name} {at:#x}:uw"));
        let elements = ELEMENTS - 16;
        Some(Indirect {
            text: format!("r[A0(0),{}]", ty.bytes()),
            vector: false,
            elements,
        })
    }
}

/// The instruction of a row with these types; `None` where no operands fit.
pub fn case(
    rng: &mut Rng,
    row: &'static OpcodeInfo,
    types: &Types,
    setting: Setting,
) -> Option<Case> {
    if !exists(row, setting.platform, types) {
        return None;
    }
    let mut shape = Shape::any(rng, setting.simd, setting.step());
    // Planes are for 8 or 16 channels.
    if row.opcode == Opcode::Plane {
        shape.lanes = if setting.simd == 8 {
            8
        } else {
            *rng.pick(&[8, 16])
        };
        shape.first = shape.first / shape.lanes * shape.lanes % setting.simd;
    }
    if row.dst.address() && shape.first == 0 && rng.chance(8) {
        return address_case(rng, row, types, shape);
    }
    let mut lines = Vec::new();
    let logic = row.dst.predicate() && row.src(0).predicate();
    if row.dst_types == TypeClass::Predicate || (logic && rng.chance(25)) {
        return predicate_case(rng, row, types, shape, setting);
    }
    let masks = row.form == Form::Cmp && rng.chance(60);
    let mut dsts = Vec::new();
    let mut operands = Vec::new();
    let pairs = row.form == Form::AluPair;
    if !masks {
        // The high halves follow in whole registers.
        if row.opcode == Opcode::Madw {
            shape.lanes = shape.lanes.min(16);
        }
        let (operand, name) = destination(rng, row, types.dst, shape, "D", &mut lines)?;
        operands.push(operand);
        dsts.push((name, types.dst));
    }
    if pairs && !row.dst.predicate() {
        let (operand, name) = destination(rng, row, types.dst, shape, "E", &mut lines)?;
        operands.push(operand);
        dsts.push((name, types.dst));
    }
    let predicate = masks || (pairs && row.dst.predicate());
    if predicate {
        operands.push("P7".into());
    }
    let bank = Bank { simd: setting.simd };
    instruction(rng, row, types, shape, &operands, &bank, &mut lines)?;
    let mut case = Case {
        row,
        lines,
        dsts,
        predicate,
    };
    if row.predicate == PredKind::Output {
        case.output();
    }
    Some(case)
}

/// Numbers that become addresses, which show in what is read there. The first variable with an address is `BITS`.
fn address_case(
    rng: &mut Rng,
    row: &'static OpcodeInfo,
    types: &Types,
    mut shape: Shape,
) -> Option<Case> {
    let from = *rng.pick(&[Type::Uw, Type::W, Type::Ud, Type::D]);
    shape.lanes = shape.lanes.min(16);
    let (name, exec) = (row.opcode.mnemonic(), shape.text());
    let source = match rng.chance(30) {
        true => format!("{:#x}:{}", 8 * rng.below(11), from.name()),
        false => format!("E_{}(0,0)<1;1,0>", from.name()),
    };
    let lines = vec![
        "addr_add (M1_NM, 1) A3(0)<1> &BITS 0x0:uw".into(),
        "mov (M1_NM, 16) A3(0)<1> 0x8:uw".into(),
        format!(
            "mov (M1_NM, 32) E_{}(0,0)<1> OFFSETS(0,0)<1;1,0>",
            from.name()
        ),
        format!("{name} {exec} A3(0)<1> {source}"),
        format!(
            "mov {0} D_{1}(0,0)<1> r[A3(0),0]<1,0>:{1}",
            exec,
            types.dst.name()
        ),
    ];
    let dsts = vec![(format!("D_{}", types.dst.name()), types.dst)];
    Some(Case {
        row,
        lines,
        dsts,
        predicate: false,
    })
}

/// A destination operand in a variable of its type, and the variable.
fn destination(
    rng: &mut Rng,
    row: &OpcodeInfo,
    ty: Type,
    shape: Shape,
    bank: &str,
    lines: &mut Vec<String>,
) -> Option<(String, String)> {
    let name = format!("{bank}_{}", ty.name());
    let room = SLOT / ty.bytes();
    if row.opcode == Opcode::Madw {
        return Some((format!("{name}(0,0)<1>"), name));
    }
    let strides: Vec<u32> = [1, 1, 1, 2, 4]
        .into_iter()
        .filter(|h| (shape.lanes - 1) * h < room)
        .collect();
    if strides.is_empty() {
        return None;
    }
    let stride = *rng.pick(&strides);
    let free = room - (shape.lanes - 1) * stride;
    let at = if rng.chance(50) {
        0
    } else {
        rng.below(free as usize) as u32
    };
    if rng.chance(4) {
        lines.push(format!(
            "addr_add (M1_NM, 1) A2(0)<1> &{name} {:#x}:uw",
            at * ty.bytes()
        ));
        return Some((format!("r[A2(0),0]<{stride}>:{}", ty.name()), name));
    }
    Some((format!("{name}(0,{at})<{stride}>"), name))
}

/// Instructions between predicates, and those that make one.
fn predicate_case(
    rng: &mut Rng,
    row: &'static OpcodeInfo,
    types: &Types,
    mut shape: Shape,
    setting: Setting,
) -> Option<Case> {
    let mut lines = Vec::new();
    if row.dst_types == TypeClass::Predicate {
        instruction(
            rng,
            row,
            types,
            shape,
            &["P7".into()],
            &Bank { simd: setting.simd },
            &mut lines,
        )?;
    } else if row.form == Form::Alu && row.dst.predicate() {
        shape.first = shape.first / 16 * 16;
        let mut text = format!("{} {} P7", row.opcode.mnemonic(), shape.text());
        for _ in 0..row.sources {
            let _ = write!(text, " {}", rng.pick(&["P1", "P2", "P7"]));
        }
        lines.push(text);
    } else {
        return None;
    }
    Some(Case {
        row,
        lines,
        dsts: Vec::new(),
        predicate: true,
    })
}

impl Case {
    /// A predicate in front that is a result: it becomes the one that is looked at.
    fn output(&mut self) {
        if let Some(line) = self.lines.last_mut()
            && let Some((_, rest)) = line.split_once(") ")
        {
            *line = format!("(P7) {rest}");
        }
        self.predicate = true;
    }

    /// Slots of results.
    fn slots(&self) -> u32 {
        self.dsts.len() as u32 + u32::from(self.predicate)
    }
}

/// A kernel that tries some instructions.
pub struct Kernel {
    /// vISA text.
    pub text: String,
    /// What to compare: regions, and the instruction each belongs to.
    pub regions: Vec<Region>,
    /// Instruction of each region.
    pub owners: Vec<usize>,
    slots: u32,
}

/// Puts instructions into a kernel.
pub fn kernel(cases: &[Case], setting: Setting) -> Kernel {
    let mut k = Kernel {
        text: String::new(),
        regions: Vec::new(),
        owners: Vec::new(),
        slots: 0,
    };
    let body: String = cases
        .iter()
        .enumerate()
        .map(|(i, c)| k.case(i, c))
        .collect();
    k.text = head(&body, setting);
    k.text += &body;
    k.text += "skip:\n    ret (M1, 1)\n";
    k
}

fn head(body: &str, setting: Setting) -> String {
    let simd = setting.simd;
    let mut t = format!(
        ".version 4.1\n.kernel \"sweep\"\n.kernel_attr SimdSize={simd}\n\
         .decl BITS v_type=G type=ud num_elts=32 align=GRF\n\
         .decl OFFSETS v_type=G type=uw num_elts=32 align=GRF alias=<BITS, {OFFSETS}>\n\
         .decl PV v_type=G type=ud num_elts=4 align=GRF\n\
         .decl A0 v_type=A num_elts=1\n.decl A1 v_type=A num_elts=16\n.decl A2 v_type=A num_elts=1\n\
         .decl A3 v_type=A num_elts=16\n\
         .decl T6 v_type=T num_elts=1\n.decl T7 v_type=T num_elts=1\n"
    );
    let used = |name: &str| {
        body.contains(&format!("{name}("))
            || body.contains(&format!("&{name} "))
            || body.contains(&format!("{name}."))
    };
    for (i, bits) in [32, 32, simd, simd, 32, 1, 32, simd]
        .into_iter()
        .enumerate()
    {
        let _ = writeln!(t, ".decl P{} v_type=P num_elts={bits}", i + 1);
    }
    for ty in TYPES {
        for (bank, bytes) in [("S", source_bytes(ty)), ("D", SLOT), ("E", SLOT)] {
            let name = format!("{bank}_{}", ty.name());
            if used(&name) {
                let _ = writeln!(
                    t,
                    ".decl {name} v_type=G type={} num_elts={} align=GRF",
                    ty.name(),
                    bytes / ty.bytes()
                );
            }
        }
    }
    t += ".function \"main\"\n\nmain:\n    movs (M1_NM, 1) T6(0) 0x0:ud\n    movs (M1_NM, 1) T7(0) 0x1:ud\n    \
          oword_ld (8) T6 0x0:ud BITS.0\n";
    let _ = writeln!(
        t,
        "    and (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> 0xfffffb0f:ud"
    );
    let _ = writeln!(
        t,
        "    or (M1_NM, 1) %cr0(0,0)<1> %cr0(0,0)<0;1,0> {:#x}:ud",
        setting.mode
    );
    for p in 0..PREDICATES {
        let _ = writeln!(t, "    setp (M1_NM, 32) P{} BITS(0,{p})<0;1,0>", p + 1);
    }
    for ty in TYPES {
        if used(&source_name(ty)) {
            for b in (0..source_bytes(ty)).step_by(128) {
                let _ = writeln!(
                    t,
                    "    oword_ld (8) T6 {:#x}:ud {}.{b}",
                    (source_at(ty) + b) / 16,
                    source_name(ty)
                );
            }
        }
    }
    let _ = writeln!(t, "    (P8) goto (M1, {simd}) skip");
    t
}

impl Kernel {
    fn case(&mut self, index: usize, case: &Case) -> String {
        let mut t = String::new();
        let first = self.slots;
        self.slots += case.slots();
        let copy = |t: &mut String, op: &str| {
            for (i, (name, _)) in case.dsts.iter().enumerate() {
                for b in (0..SLOT).step_by(128) {
                    let at = ((first + i as u32) * SLOT + b) / 16;
                    let _ = writeln!(t, "    {op} (8) T7 {at:#x}:ud {name}.{b}");
                }
            }
        };
        copy(&mut t, "oword_ld");
        if case.predicate {
            t += "    setp (M1_NM, 32) P7 BITS(0,6)<0;1,0>\n";
        }
        for line in &case.lines {
            let _ = writeln!(t, "    {line}");
        }
        copy(&mut t, "oword_st");
        for (i, (_, ty)) in case.dsts.iter().enumerate() {
            self.region(index, first + i as u32, (SLOT / ty.bytes()) as usize, *ty);
        }
        if case.predicate {
            let slot = first + case.dsts.len() as u32;
            t += "    mov (M1_NM, 1) PV(0,0)<1> P7\n";
            let _ = writeln!(t, "    oword_st (1) T7 {:#x}:ud PV.0", slot * SLOT / 16);
            self.region(index, slot, 1, Type::Ud);
        }
        t
    }

    fn region(&mut self, owner: usize, slot: u32, count: usize, ty: Type) {
        self.regions.push(Region {
            surface: 1,
            at: (slot * SLOT) as usize,
            count,
            ty,
        });
        self.owners.push(owner);
    }

    /// A launch with random sources and destinations.
    pub fn launch(&self, rng: &mut Rng, setting: Setting) -> Launch {
        let mut sources = Vec::new();
        for p in 0..16 {
            let bits = rng.bits() as u32;
            // Predicates with all bits alike, for `.any` and `.all`; the one that ends lanes leaves some.
            let bits = match (p, rng.below(8)) {
                (7, _) => bits & (bits >> 7 | bits << 9),
                (_, 0) => 0,
                (_, 1) => u32::MAX,
                _ => bits,
            };
            sources.extend(bits.to_le_bytes());
        }
        for _ in 0..32 {
            sources.extend((8 * rng.below(11) as u16).to_le_bytes());
        }
        for ty in TYPES {
            let n = source_bytes(ty) / ty.bytes();
            for _ in 0..n {
                let v = value(rng, ty);
                sources.extend(&v.to_le_bytes()[..ty.bytes() as usize]);
            }
        }
        let results = (0..self.slots * SLOT)
            .map(|_| 0x30 | rng.below(16) as u8)
            .collect();
        let short = rng.below(setting.simd as usize) as u32;
        Launch {
            lanes: if rng.chance(60) {
                setting.simd
            } else {
                setting.simd - short
            },
            surfaces: vec![sources, results],
            inputs: Vec::new(),
            ..Launch::default()
        }
    }
}
