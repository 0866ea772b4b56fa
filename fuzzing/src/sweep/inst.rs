//! One random instruction from registers to registers, after its row of the opcode table.

use visa_jit::isa::{
    CmpCond, Form, Modifiers, Opcode, OpcodeInfo, Platform, PredKind, Type, TypeClass,
};

use super::values::{TYPES, immediate};
use visa_test_common::Rng;

/// Registers that an instruction may use.
pub trait Registers {
    /// A variable to read, and its elements. `None` if there is none of the type.
    fn source(&self, rng: &mut Rng, ty: Type) -> Option<(String, u32)>;
    /// A predicate with a bit for each lane below `lanes`.
    fn predicate(&self, rng: &mut Rng, lanes: u32) -> String;
    /// Prepares an address register for a type and names an indirect operand up to its region.
    fn indirect(&self, rng: &mut Rng, ty: Type, lines: &mut Vec<String>) -> Option<Indirect>;
}

/// An indirect operand.
pub struct Indirect {
    /// `r[…]`.
    pub text: String,
    /// One address for each lane.
    pub vector: bool,
    /// Elements after the address.
    pub elements: u32,
}

/// Lanes of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// First lane of the thread.
    pub first: u32,
    /// Number of lanes.
    pub lanes: u32,
    /// Lanes that are switched off take part.
    pub no_mask: bool,
}

impl Shape {
    /// Any shape in a thread of `simd` lanes; first lanes are multiples of `step`.
    pub fn any(rng: &mut Rng, simd: u32, step: u32) -> Shape {
        let sizes: Vec<u32> = [1, 2, 4, 8, 16, 16, 32]
            .into_iter()
            .filter(|n| *n <= simd)
            .collect();
        let lanes = *rng.pick(&sizes);
        let first = step * rng.below(((simd - lanes) / step + 1) as usize) as u32;
        let first = if rng.chance(50) { 0 } else { first };
        Shape {
            first,
            lanes,
            no_mask: rng.chance(25),
        }
    }

    /// `(Mk, N)`.
    pub fn text(self) -> String {
        let nm = if self.no_mask { "_NM" } else { "" };
        format!("(M{}{nm}, {})", self.first / 4 + 1, self.lanes)
    }
}

/// Types of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Types {
    /// Destination.
    pub dst: Type,
    /// Sources.
    pub srcs: Vec<Type>,
}

fn members(class: TypeClass) -> Vec<Type> {
    TYPES.into_iter().filter(|t| class.contains(*t)).collect()
}

/// Every combination of types that a row allows, on some platform.
pub fn types(row: &OpcodeInfo) -> Vec<Types> {
    let dsts = members(row.dst_types);
    let dsts = if dsts.is_empty() {
        vec![Type::Ud]
    } else {
        dsts
    };
    let mut tuples: Vec<Vec<Type>> = vec![Vec::new()];
    for i in 0..usize::from(row.sources) {
        let sources = members(row.src_type(i));
        let longer = |t: &Vec<Type>| {
            sources
                .iter()
                .map(|s| [t.clone(), vec![*s]].concat())
                .collect::<Vec<_>>()
        };
        tuples = tuples.iter().flat_map(longer).collect();
    }
    let mut out = Vec::new();
    for srcs in tuples {
        let known: Vec<Option<Type>> = srcs.iter().copied().map(Some).collect();
        for &dst in &dsts {
            // Predicates have no type.
            let to = Some(dst).filter(|_| row.dst_types != TypeClass::Predicate);
            if row.type_rule(to, &known).is_none() && defined(row.opcode, &srcs) {
                out.push(Types {
                    dst,
                    srcs: srcs.clone(),
                });
            }
        }
    }
    out
}

/// True where the instruction exists with these types.
pub fn exists(row: &OpcodeInfo, platform: Platform, types: &Types) -> bool {
    let all = [types.srcs.clone(), vec![types.dst]].concat();
    row.platform_rule(platform, &all).is_none()
}

/// Takes away combinations that the table's columns allow but the ISA does not define.
fn defined(op: Opcode, srcs: &[Type]) -> bool {
    match (op, srcs) {
        // Random bits are a number.
        (Opcode::Srnd, [_, random]) => random.is_int() && !random.is_signed(),
        _ => true,
    }
}

/// Lanes that a source must have elements for: instructions that look at neighbours read past their own.
fn reach(op: Opcode, lanes: u32) -> u32 {
    match op {
        Opcode::Plane => 16 * lanes.div_ceil(8),
        Opcode::Dp2 | Opcode::Dp3 | Opcode::Dp4 | Opcode::Dph | Opcode::Line => lanes.max(4),
        Opcode::Sad2 | Opcode::Sad2add => lanes.max(2),
        _ => lanes,
    }
}

/// Source regions; the most usual ones more often.
const REGIONS: [(u32, u32, u32); 16] = [
    (1, 1, 0),
    (1, 1, 0),
    (1, 1, 0),
    (1, 1, 0),
    (0, 1, 0),
    (0, 1, 0),
    (2, 1, 0),
    (4, 4, 1),
    (8, 8, 1),
    (16, 8, 2),
    (0, 4, 1),
    (4, 1, 0),
    (0, 2, 1),
    (2, 2, 1),
    (1, 4, 2),
    (8, 4, 2),
];

/// Index of the last element that a region touches.
fn extent((v, w, h): (u32, u32, u32), lanes: u32) -> u32 {
    (0..lanes).map(|i| i / w * v + i % w * h).max().unwrap_or(0)
}

/// A region of `lanes` elements that fits, and its text; rows have at most `widest` elements, and `least` elements are read in any
/// case.
fn region(
    rng: &mut Rng,
    lanes: u32,
    elements: u32,
    (widest, least): (u32, u32),
) -> Option<(u32, String)> {
    for _ in 0..20 {
        let r = *rng.pick(&REGIONS);
        let last = extent(r, lanes).max(least.saturating_sub(1));
        if last < elements && r.1 <= widest {
            let room = elements - last;
            let at = if rng.chance(40) {
                0
            } else {
                rng.below(room as usize) as u32
            };
            return Some((at, format!("<{};{},{}>", r.0, r.1, r.2)));
        }
    }
    None
}

fn modifier(rng: &mut Rng, row: &OpcodeInfo) -> &'static str {
    match row.modifiers {
        Modifiers::Arith if rng.chance(35) => rng.pick::<&str>(&["(-)", "(abs)", "(-abs)"]),
        Modifiers::Logic if rng.chance(35) => "(~)",
        _ => "",
    }
}

/// Type of an immediate that packs a number for each channel.
fn packed(imm: &str) -> Option<Type> {
    let (_, name) = imm.rsplit_once(':')?;
    Type::from_name(name).filter(|t| t.is_packed())
}

/// A source operand.
fn source(
    rng: &mut Rng,
    row: &OpcodeInfo,
    (index, ty): (usize, Type),
    lanes: u32,
    regs: &dyn Registers,
    lines: &mut Vec<String>,
) -> Option<String> {
    if row.src(index).immediate()
        && rng.chance(18)
        && let Some(imm) = immediate(rng, ty)
        && packed(&imm).is_none_or(|t| row.src_type(index).contains(t))
        // A vector of numbers is no bit mask.
        && (row.opcode != Opcode::Setp || !imm.ends_with('v'))
    {
        return Some(imm);
    }
    let wide = reach(row.opcode, lanes);
    let modifier = modifier(rng, row);
    if rng.chance(6)
        && let Some(i) = regs.indirect(rng, ty, lines)
    {
        if i.vector && wide == lanes && lanes <= 16 {
            return Some(format!("{modifier}{}<1,0>:{}", i.text, ty.name()));
        }
        if !i.vector {
            for r in [(1, 1, 0), (0, 1, 0)] {
                if extent(r, wide) < i.elements {
                    return Some(format!(
                        "{modifier}{}<{};{},{}>:{}",
                        i.text,
                        r.0,
                        r.1,
                        r.2,
                        ty.name()
                    ));
                }
            }
        }
    }
    let (name, elements) = regs.source(rng, ty)?;
    // A row has at most as many elements as are read. Coefficients are read one after the other.
    let bounds = match (row.opcode, index) {
        (Opcode::Line, 0) => (4, 0),
        (Opcode::Line, _) => (lanes, 0),
        (Opcode::Plane, 1) => (wide, wide),
        _ => (wide, 0),
    };
    let (at, region) = region(rng, wide, elements, bounds)?;
    Some(format!("{modifier}{name}(0,{at}){region}"))
}

/// A predicate in front, as the row allows one.
fn guard(rng: &mut Rng, row: &OpcodeInfo, shape: Shape, regs: &dyn Registers) -> String {
    let odds = if row.predicate == PredKind::Selector {
        90
    } else {
        50
    };
    match row.predicate {
        PredKind::None | PredKind::Output => String::new(),
        PredKind::Guard | PredKind::Selector | PredKind::Ignored => {
            if !rng.chance(odds) {
                return String::new();
            }
            let p = regs.predicate(rng, shape.first + shape.lanes);
            let not = if rng.chance(40) { "!" } else { "" };
            let group = rng.pick(&["", "", "", ".any", ".all"]);
            format!("({not}{p}{group}) ")
        }
    }
}

/// Mnemonic with its suffixes.
fn mnemonic(rng: &mut Rng, row: &OpcodeInfo) -> String {
    let name = row.opcode.mnemonic();
    let mut out = match row.form {
        Form::Cmp => format!("{name}.{}", rng.pick(&CmpCond::ALL).name()),
        Form::Bfn => format!("{name}.x{:02x}", rng.bits() as u8),
        _ => name.to_owned(),
    };
    if row.saturation && rng.chance(35) {
        out += ".sat";
    }
    out
}

/// An instruction with its destinations as given; lines that prepare it are added to `lines` before it.
///
/// `None` when a source cannot be had.
pub fn instruction(
    rng: &mut Rng,
    row: &OpcodeInfo,
    types: &Types,
    shape: Shape,
    dsts: &[String],
    regs: &dyn Registers,
    lines: &mut Vec<String>,
) -> Option<()> {
    let mut prepared = Vec::new();
    let mut operands: Vec<String> = dsts.to_vec();
    for (i, &ty) in types.srcs.iter().enumerate() {
        operands.push(source(rng, row, (i, ty), shape.lanes, regs, &mut prepared)?);
    }
    let guard = match row.predicate {
        PredKind::Output => {
            let p = regs.predicate(rng, shape.first + shape.lanes);
            format!("({p}) ")
        }
        _ => guard(rng, row, shape, regs),
    };
    let name = mnemonic(rng, row);
    lines.append(&mut prepared);
    lines.push(format!(
        "{guard}{name} {} {}",
        shape.text(),
        operands.join(" ")
    ));
    Some(())
}
