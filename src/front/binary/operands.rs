//! Operands with regions: sources and destinations.

use super::codec::{Codec, LANES, code_of, decoded};
use super::error::{Fault, Problem, Walk};
use crate::isa::{DstRegion, SrcModifier, SrcRegion, Type};
use crate::module::*;

/// Classes of operands, by their code.
const GENERAL: u8 = 0;
const ADDRESS: u8 = 1;
const PREDICATE: u8 = 2;
const INDIRECT: u8 = 3;
const IMMEDIATE: u8 = 5;
const STATE: u8 = 6;

/// Modifiers of sources, by their code; the fifth one is saturation, which only destinations have.
const MODIFIERS: [Option<SrcModifier>; 6] = [
    Some(SrcModifier::None),
    Some(SrcModifier::Abs),
    Some(SrcModifier::Neg),
    Some(SrcModifier::NegAbs),
    None,
    Some(SrcModifier::Not),
];

/// Modifier of a destination that saturates.
const SATURATE: u8 = 4;

/// Strides and widths, by their code. The first one says that there is none.
const STRIDES: [Option<u8>; 8] = [
    None,
    Some(0),
    Some(1),
    Some(2),
    Some(4),
    Some(8),
    Some(16),
    Some(32),
];

/// What an operand's first byte says.
#[derive(Clone, Copy)]
struct Tag {
    class: u8,
    modifier: u8,
}

impl Tag {
    fn walk<C: Codec>(&mut self, io: &mut C) -> Walk {
        let mut byte = self.modifier << 3 | self.class;
        io.u8(&mut byte)?;
        self.class = byte & 7;
        self.modifier = byte >> 3 & 7;
        match byte >> 6 {
            0 => Ok(()),
            _ => Err(Problem::malformed(format!(
                "an operand that starts with {byte:#04x}, which no operand does"
            ))),
        }
    }

    fn no_operand(self, what: &str) -> Problem {
        Problem::malformed(format!(
            "{what} of class {} with modifier {}, which does not exist",
            self.class, self.modifier
        ))
    }
}

/// A source.
pub(super) fn src<C: Codec>(io: &mut C, src: &mut Src) -> Walk {
    let mut tag = Tag {
        class: GENERAL,
        modifier: 0,
    };
    if !io.reading() {
        tag = src_tag(src)?;
    }
    tag.walk(io)?;
    if io.reading() {
        *src = blank_src(tag)?;
    }
    match src {
        Src::General { origin, region, .. } => {
            register_and_column(io, origin)?;
            src_region(io, region)
        }
        Src::Indirect {
            indirect, region, ..
        } => {
            indirection(io, indirect)?;
            indirect_region(io, region)
        }
        Src::Imm { bits, ty } => immediate(io, bits, ty),
        Src::Pred(id) => predicate(io, id),
        Src::Address { addr, index, width } => address(io, addr, index, width),
        Src::Surface(..) | Src::Sampler(..) => {
            let mut handle = match src {
                Src::Sampler(id, index) => Handle::Sampler(*id, *index),
                Src::Surface(id, index) => Handle::Surface(*id, *index),
                _ => return Ok(()),
            };
            handle.walk(io)?;
            *src = match handle {
                Handle::Surface(id, index) => Src::Surface(id, index),
                Handle::Sampler(id, index) => Src::Sampler(id, index),
            };
            Ok(())
        }
        Src::AddressOf { .. } | Src::AddressOfSurface { .. } => Err(Problem::unwritable(
            "an address of a variable, which only the first source of `addr_add` can be,",
        )),
    }
}

fn src_tag(src: &Src) -> Walk<Tag> {
    let class = match src {
        Src::General { .. } | Src::AddressOf { .. } => GENERAL,
        Src::Indirect { .. } => INDIRECT,
        Src::Imm { .. } => IMMEDIATE,
        Src::Pred(_) => PREDICATE,
        Src::Address { .. } => ADDRESS,
        Src::Surface(..) | Src::Sampler(..) | Src::AddressOfSurface { .. } => STATE,
    };
    let modifier = match src {
        Src::General { modifier, .. } | Src::Indirect { modifier, .. } => *modifier,
        _ => SrcModifier::None,
    };
    Ok(Tag {
        class,
        modifier: code_of("a modifier", &MODIFIERS, Some(modifier))?,
    })
}

/// What the rest of a source is read into.
fn blank_src(tag: Tag) -> Walk<Src> {
    let modifier = decoded("a modifier", &MODIFIERS, tag.modifier)?;
    let Some(modifier) = modifier else {
        return Err(tag.no_operand("a source"));
    };
    let plain = modifier == SrcModifier::None;
    Ok(match tag.class {
        GENERAL => Src::General {
            origin: ORIGIN,
            region: SrcRegion::SCALAR,
            modifier,
        },
        INDIRECT => Src::Indirect {
            indirect: INDIRECTION,
            region: IndirectRegion::Single(SrcRegion::SCALAR),
            modifier,
        },
        IMMEDIATE if plain => Src::Imm {
            bits: 0,
            ty: Type::Ud,
        },
        PREDICATE if plain => Src::Pred(PredId(0)),
        ADDRESS if plain => Src::Address {
            addr: AddrId(0),
            index: 0,
            width: 1,
        },
        STATE if plain => Src::Surface(SurfaceId(0), 0),
        _ => return Err(tag.no_operand("a source")),
    })
}

/// What is filled when an operand is read.
pub(super) const BLANK: Src = Src::Pred(PredId(0));

/// What is filled when a destination is read.
pub(super) const BLANK_DST: Dst = Dst::Pred(PredId(0));

const ORIGIN: Origin = Origin {
    var: VarId::NULL,
    row: 0,
    col: 0,
};

const INDIRECTION: Indirect = Indirect {
    addr: AddrId(0),
    index: 0,
    offset: 0,
    ty: Type::Ud,
};

/// A destination, and whether it saturates.
pub(super) fn dst<C: Codec>(io: &mut C, dst: &mut Dst, sat: &mut bool) -> Walk {
    let class = match dst {
        Dst::General { .. } => GENERAL,
        Dst::Indirect { .. } => INDIRECT,
        Dst::Pred(_) => PREDICATE,
        Dst::Address { .. } => ADDRESS,
        Dst::Surface(..) | Dst::Sampler(..) => STATE,
    };
    let mut tag = Tag {
        class,
        modifier: if *sat { SATURATE } else { 0 },
    };
    tag.walk(io)?;
    *sat = match tag.modifier {
        0 => false,
        SATURATE => true,
        _ => return Err(tag.no_operand("a destination")),
    };
    if io.reading() {
        *dst = blank_dst(tag)?;
    }
    match dst {
        Dst::General { origin, region } => {
            register_and_column(io, origin)?;
            dst_region(io, region)
        }
        Dst::Indirect { indirect, region } => {
            indirection(io, indirect)?;
            dst_region(io, region)
        }
        Dst::Pred(id) => predicate(io, id),
        Dst::Address { addr, index, width } => address(io, addr, index, width),
        Dst::Surface(..) | Dst::Sampler(..) => {
            let mut handle = match dst {
                Dst::Sampler(id, index) => Handle::Sampler(*id, *index),
                Dst::Surface(id, index) => Handle::Surface(*id, *index),
                _ => return Ok(()),
            };
            handle.walk(io)?;
            *dst = match handle {
                Handle::Surface(id, index) => Dst::Surface(id, index),
                Handle::Sampler(id, index) => Dst::Sampler(id, index),
            };
            Ok(())
        }
    }
}

fn blank_dst(tag: Tag) -> Walk<Dst> {
    Ok(match tag.class {
        GENERAL => Dst::General {
            origin: ORIGIN,
            region: DstRegion::PACKED,
        },
        INDIRECT => Dst::Indirect {
            indirect: INDIRECTION,
            region: DstRegion::PACKED,
        },
        PREDICATE => BLANK_DST,
        ADDRESS => Dst::Address {
            addr: AddrId(0),
            index: 0,
            width: 1,
        },
        STATE => Dst::Surface(SurfaceId(0), 0),
        _ => return Err(tag.no_operand("a destination")),
    })
}

/// Variable, row and column.
fn register_and_column<C: Codec>(io: &mut C, origin: &mut Origin) -> Walk {
    io.general(&mut origin.var)?;
    for (what, value) in [("a row", &mut origin.row), ("a column", &mut origin.col)] {
        let mut number = u32::from(*value);
        io.small(what, &mut number)?;
        *value = u16::try_from(number).unwrap_or(u16::MAX);
    }
    Ok(())
}

/// The codes of a region: vertical stride, width, horizontal stride.
fn region_codes<C: Codec>(io: &mut C, parts: &mut [Option<u8>; 3]) -> Walk {
    let mut word = 0u16;
    if !io.reading() {
        for (shift, part) in [0u16, 4, 8].into_iter().zip(*parts) {
            word |= u16::from(code_of("a region", &STRIDES, part)?) << shift;
        }
    }
    io.u16(&mut word)?;
    if word >> 12 != 0 {
        return Err(no_region(word));
    }
    for (shift, part) in [0u16, 4, 8].into_iter().zip(parts.iter_mut()) {
        let code = u8::try_from(word >> shift & 15).unwrap_or(u8::MAX);
        *part = decoded("a region", &STRIDES, code)?;
    }
    Ok(())
}

fn no_region(word: u16) -> Problem {
    Problem::malformed(format!("region {word:#06x}, which does not exist"))
}

fn src_region<C: Codec>(io: &mut C, region: &mut SrcRegion) -> Walk {
    let mut parts = [
        Some(region.vstride),
        Some(region.width),
        Some(region.hstride),
    ];
    region_codes(io, &mut parts)?;
    match parts {
        [Some(vstride), Some(width @ 1..=16), Some(hstride @ 0..=4)] => {
            *region = SrcRegion {
                vstride,
                width,
                hstride,
            };
            Ok(())
        }
        _ => Err(Problem::malformed("a source region that does not exist")),
    }
}

fn indirect_region<C: Codec>(io: &mut C, region: &mut IndirectRegion) -> Walk {
    let mut parts = match *region {
        IndirectRegion::Single(r) => [Some(r.vstride), Some(r.width), Some(r.hstride)],
        IndirectRegion::VxH { width, hstride } => [None, Some(width), Some(hstride)],
    };
    region_codes(io, &mut parts)?;
    *region = match parts {
        [Some(vstride), Some(width @ 1..=16), Some(hstride @ 0..=4)] => {
            IndirectRegion::Single(SrcRegion {
                vstride,
                width,
                hstride,
            })
        }
        [None, Some(width @ 1..=16), Some(hstride @ 0..=4)] => {
            IndirectRegion::VxH { width, hstride }
        }
        _ => return Err(Problem::malformed("a source region that does not exist")),
    };
    Ok(())
}

fn dst_region<C: Codec>(io: &mut C, region: &mut DstRegion) -> Walk {
    let mut parts = [None, None, Some(region.hstride)];
    region_codes(io, &mut parts)?;
    match parts {
        [None, None, Some(hstride @ 1..=4)] => {
            *region = DstRegion { hstride };
            Ok(())
        }
        _ => Err(Problem::malformed(
            "a destination region that does not exist",
        )),
    }
}

fn indirection<C: Codec>(io: &mut C, indirect: &mut Indirect) -> Walk {
    io.address(&mut indirect.addr)?;
    io.u8(&mut indirect.index)?;
    io.i16(&mut indirect.offset)?;
    io.ty(&mut indirect.ty)
}

/// Types of 64 bits take 8 bytes, all others 4; those of less than 32 bits are extended.
fn immediate<C: Codec>(io: &mut C, bits: &mut u64, ty: &mut Type) -> Walk {
    io.ty(ty)?;
    if ty.bytes() == 8 {
        return io.u64(bits);
    }
    let width = if ty.is_packed() {
        32
    } else {
        ty.bytes().saturating_mul(8)
    };
    let mask = u64::MAX >> 64u32.saturating_sub(width).min(63);
    let mut value = u32::try_from(*bits & mask).unwrap_or(u32::MAX);
    let shift = 32u32.saturating_sub(width).min(31);
    if ty.is_signed() {
        value = ((value << shift).cast_signed() >> shift).cast_unsigned();
    }
    io.u32(&mut value)?;
    *bits = u64::from(value) & mask;
    Ok(())
}

/// A predicate as an operand: number and nothing else.
fn predicate<C: Codec>(io: &mut C, id: &mut PredId) -> Walk {
    let mut guard = Some(Predicate {
        var: *id,
        inverted: false,
        control: PredControl::Lanes,
    });
    guard_word(io, &mut guard)?;
    match guard {
        Some(Predicate {
            var,
            inverted: false,
            control: PredControl::Lanes,
        }) => {
            *id = var;
            Ok(())
        }
        _ => Err(Problem::malformed(
            "a predicate as an operand, which is none or has a control",
        )),
    }
}

/// Controls of predicates, by their code.
const CONTROLS: [PredControl; 3] = [PredControl::Lanes, PredControl::Any, PredControl::All];

/// A predicate in front of an instruction; 0 for none.
pub(super) fn guard_word<C: Codec>(io: &mut C, guard: &mut Option<Predicate>) -> Walk {
    let mut word = 0u16;
    if let Some(p) = guard.filter(|_| !io.reading()) {
        let number: u16 = super::codec::narrow("the number of a predicate", p.var.0)?;
        if number >> 12 != 0 {
            return Err(Problem::unwritable(format!(
                "predicate {number}; the format has room for 4095"
            )));
        }
        let control = code_of("a predicate control", &CONTROLS, p.control)?;
        word = number | u16::from(control) << 13 | u16::from(p.inverted) << 15;
    }
    io.u16(&mut word)?;
    if word == 0 {
        *guard = None;
        return Ok(());
    }
    if word >> 12 & 1 != 0 {
        return Err(Problem::malformed(format!(
            "predicate {word:#06x}, which does not exist"
        )));
    }
    let control = u8::try_from(word >> 13 & 3).unwrap_or(u8::MAX);
    let var = PredId(u32::from(word & 0xFFF));
    io.known_predicate(var)?;
    *guard = Some(Predicate {
        var,
        inverted: word >> 15 != 0,
        control: decoded("a predicate control", &CONTROLS, control)?,
    });
    Ok(())
}

fn address<C: Codec>(io: &mut C, addr: &mut AddrId, index: &mut u8, width: &mut u8) -> Walk {
    io.address(addr)?;
    io.u8(index)?;
    let mut lanes = u32::from(*width);
    io.coded("a number of address elements", &LANES, &mut lanes)?;
    *width = u8::try_from(lanes).unwrap_or(u8::MAX);
    Ok(())
}

/// A surface or a sampler as data.
enum Handle {
    Surface(SurfaceId, u8),
    Sampler(SamplerId, u8),
}

impl Handle {
    fn walk<C: Codec>(&mut self, io: &mut C) -> Walk {
        let mut is_sampler = matches!(self, Handle::Sampler(..));
        io.flag("a class of handles", &mut is_sampler)?;
        let (mut number, mut index) = (0, 0);
        if !io.reading() {
            (number, index) = match *self {
                Handle::Surface(id, index) => (id.0, index),
                Handle::Sampler(id, index) => {
                    let number = super::names::sampler_number(io.vars(), id)?;
                    (u32::from(number), index)
                }
            };
        }
        io.medium("the number of a surface", &mut number)?;
        io.u8(&mut index)?;
        if is_sampler {
            let mut id = SamplerId(0);
            let number = u8::try_from(number);
            let number = number.map_err(|_| Problem::malformed("a sampler that does not exist"))?;
            io.sampler_of(number, &mut id)?;
            *self = Handle::Sampler(id, index);
        } else {
            io.known_surface(SurfaceId(number))?;
            *self = Handle::Surface(SurfaceId(number), index);
        }
        Ok(())
    }
}

/// The first source of `addr_add`: a general variable there is its address, at a byte that is told by row and column.
pub(super) fn address_src<C: Codec>(io: &mut C, src: &mut Src) -> Walk {
    if let (false, Src::AddressOfSurface { surface, offset }) = (io.reading(), &*src) {
        // Those who write and those who read do not agree on the unit of offsets.
        if *offset != 0 {
            return Err(Problem::unwritable("an offset to the address of a surface"));
        }
        return self::src(io, &mut Src::Surface(*surface, 0));
    }
    let mut plain = src.clone();
    if let (false, Src::AddressOf { var, offset }) = (io.reading(), &*src) {
        plain = Src::General {
            origin: row_and_column(io, *var, *offset)?,
            region: SrcRegion::SCALAR,
            modifier: SrcModifier::None,
        };
    }
    self::src(io, &mut plain)?;
    if !io.reading() {
        return Ok(());
    }
    *src = match plain {
        Src::General { origin, .. } => Src::AddressOf {
            var: origin.var,
            offset: byte_offset(io, origin)?,
        },
        Src::Surface(surface, 0) => Src::AddressOfSurface { surface, offset: 0 },
        Src::Address { .. } => plain,
        _ => {
            return Err(Problem::malformed(
                "a source of `addr_add` that is no address",
            ));
        }
    };
    Ok(())
}

/// Row and column of a byte of a variable: as the vendor's tools have it where the device is known, else in the first row.
fn row_and_column<C: Codec>(io: &C, var: VarId, offset: u32) -> Walk<Origin> {
    let bytes = io.vars().ty(var).map_or(1, Type::bytes);
    let (row, rest) = match io.format().grf {
        Some(grf) => (offset.checked_div(grf), offset.checked_rem(grf)),
        None => (Some(0), Some(offset)),
    };
    let (row, rest) = (row.unwrap_or(0), rest.unwrap_or(0));
    let col = rest.checked_div(bytes).unwrap_or(0);
    if rest.checked_rem(bytes) != Some(0) {
        return Err(Problem::unwritable(format!(
            "the address of byte {offset} of a variable, which is inside an element"
        )));
    }
    match (u8::try_from(row), u8::try_from(col)) {
        (Ok(row), Ok(col)) => Ok(Origin {
            var,
            row: row.into(),
            col: col.into(),
        }),
        _ if io.format().grf.is_none() => Err(Problem {
            fault: Fault::Device,
            message: format!(
                "the address of byte {offset} of a variable is written in rows of registers, whose size depends on the \
                 device; say which"
            ),
        }),
        _ => Err(Problem::unwritable(format!(
            "the address of byte {offset} of a variable"
        ))),
    }
}

fn byte_offset<C: Codec>(io: &C, origin: Origin) -> Walk<u32> {
    let bytes = io.vars().ty(origin.var).map_or(1, Type::bytes);
    let column = u32::from(origin.col).saturating_mul(bytes);
    if origin.row == 0 {
        return Ok(column);
    }
    match io.format().grf {
        Some(grf) => Ok(u32::from(origin.row)
            .saturating_mul(grf)
            .saturating_add(column)),
        None => Err(Problem {
            fault: Fault::Device,
            message: "an address of a variable is given in rows of registers, whose size depends on the device that the file \
                      is for, and the file does not say which"
                .into(),
        }),
    }
}
