//! Load/store cache messages.

use super::codec::Codec;
use super::error::{Problem, Walk};
use super::operands::src;
use crate::isa::lsc::{
    AddrModel, AddrSize, DataSize, FENCE_OPS, LscOp, Scope, Sfid, VECTOR_LENGTHS,
};
use crate::isa::{Opcode, SrcModifier, SrcRegion, Type};
use crate::module::*;

/// The last version has these many cache controls; later ones exist in text only.
const CONTROLS: u8 = 7;

/// And these shared functions.
const FUNCTIONS: u8 = 4;

/// Orders of elements in registers, by their code: as they come, and transposed.
const ORDERS: [Option<bool>; 3] = [None, Some(false), Some(true)];

/// A blank of an operation.
pub(super) fn blank(opcode: Opcode, op: LscOp) -> Body {
    const R: Raw = Raw::NULL;
    let (caching, surface) = (Caching::default(), LscSurface::None);
    match op {
        _ if opcode == Opcode::LscTyped => Body::LscTyped(LscTyped {
            op,
            caching,
            model: AddrModel::Flat,
            surface,
            addr_size: AddrSize::A32,
            data_size: DataSize::D32,
            channels: Channels(0),
            coords: [R; 4],
            data: R,
            src1: R,
            src2: R,
        }),
        LscOp::LoadBlock2d | LscOp::StoreBlock2d => Body::LscBlock2d(LscBlock2d {
            op,
            sfid: Sfid::Ugm,
            caching,
            data_size: DataSize::D32,
            blocks: 1,
            width: 0,
            height: 0,
            transpose: false,
            vnni: false,
            address: BlockAddress::Operands(Vec::new()),
            data: R,
        }),
        _ => Body::Lsc(Lsc {
            op,
            sfid: Sfid::Ugm,
            caching,
            model: AddrModel::Flat,
            surface,
            scale: 1,
            offset: 0,
            addr_size: AddrSize::A32,
            data_size: DataSize::D32,
            transposed: false,
            elems: 1,
            channels: Channels(0),
            addr: R,
            stride: None,
            data: R,
            src1: R,
            src2: R,
        }),
    }
}

/// The operation of a message.
pub(super) fn operation(body: &Body) -> Option<LscOp> {
    match body {
        Body::Lsc(l) => Some(l.op),
        Body::LscTyped(t) => Some(t.op),
        Body::LscBlock2d(b) => Some(b.op),
        _ => None,
    }
}

/// A byte that stands for a value with a code of its own.
fn spelled<C: Codec, T: Copy>(
    io: &mut C,
    what: &str,
    value: &mut T,
    code: fn(T) -> u8,
    from: fn(u8) -> Option<T>,
) -> Walk {
    let mut byte = code(*value);
    io.u8(&mut byte)?;
    *value = from(byte).ok_or_else(|| {
        Problem::malformed(format!("{what} of code {byte}, which does not exist"))
    })?;
    Ok(())
}

fn sfid<C: Codec>(io: &mut C, sfid: &mut Sfid) -> Walk {
    let mut code = sfid.code();
    io.below("a shared function", FUNCTIONS, &mut code)?;
    *sfid = Sfid::from_code(code).unwrap_or(Sfid::Ugm);
    Ok(())
}

fn caching<C: Codec>(io: &mut C, caching: &mut Caching) -> Walk {
    io.below("a cache control", CONTROLS, &mut caching.l1)?;
    io.below("a cache control", CONTROLS, &mut caching.l3)
}

fn model<C: Codec>(io: &mut C, model: &mut AddrModel) -> Walk {
    let (code, from) = (AddrModel::code, AddrModel::from_code);
    spelled(io, "an address model", model, code, from)
}

fn addr_size<C: Codec>(io: &mut C, size: &mut AddrSize) -> Walk {
    let (code, from) = (AddrSize::code, AddrSize::from_code);
    spelled(io, "an address size", size, code, from)
}

fn data_size<C: Codec>(io: &mut C, size: &mut DataSize) -> Walk {
    let (code, from) = (DataSize::code, DataSize::from_code);
    spelled(io, "a data size", size, code, from)
}

fn order<C: Codec>(io: &mut C, transposed: &mut bool) -> Walk {
    let mut order = Some(*transposed);
    io.coded("an order of elements", &ORDERS, &mut order)?;
    *transposed = order.ok_or_else(|| Problem::malformed("no order of elements"))?;
    Ok(())
}

/// Vector length and channels. There are two bytes, of which the other one means nothing.
fn shape<C: Codec>(io: &mut C, quad: bool, elems: &mut u8, channels: &mut Channels) -> Walk {
    let mut length = 0;
    if !io.reading() {
        let code = super::codec::code_of("a vector length", &VECTOR_LENGTHS, *elems)?;
        length = code.saturating_add(1);
        if quad && *elems != 1 {
            return Err(Problem::unwritable("a vector length beside channels"));
        }
        if quad {
            length = channels.0;
        }
    }
    io.u8(&mut length)?;
    let mut mask = channels.0;
    io.u8(&mut mask)?;
    if quad {
        *elems = 1;
        *channels = Channels(mask);
        return match mask {
            1..=15 => Ok(()),
            _ => Err(Problem::malformed(format!(
                "channels {mask:#04x}, which do not exist"
            ))),
        };
    }
    let code = length.checked_sub(1);
    let code = code.ok_or_else(|| Problem::malformed("no vector length"))?;
    *elems = super::codec::decoded("a vector length", &VECTOR_LENGTHS, code)?;
    *channels = Channels(0);
    Ok(())
}

/// A number, or the first element of a region.
fn scalar<C: Codec>(io: &mut C, scalar: &mut LscScalar) -> Walk {
    let mut operand = match *scalar {
        LscScalar::Imm(bits) => Src::Imm {
            bits,
            ty: match u32::try_from(bits) {
                Ok(_) => Type::Ud,
                Err(_) => Type::Uq,
            },
        },
        LscScalar::Var(origin) => Src::General {
            origin,
            region: SrcRegion::SCALAR,
            modifier: SrcModifier::None,
        },
    };
    src(io, &mut operand)?;
    *scalar = match operand {
        Src::Imm { bits, ty } if ty.is_int() && !ty.is_packed() => LscScalar::Imm(bits),
        Src::General {
            origin,
            modifier: SrcModifier::None,
            ..
        } => LscScalar::Var(origin),
        _ => {
            return Err(Problem::malformed(
                "an operand of an LSC message that is neither a number nor an element",
            ));
        }
    };
    Ok(())
}

/// Models without a surface have an operand that means nothing.
fn surface<C: Codec>(io: &mut C, model: AddrModel, surface: &mut LscSurface) -> Walk {
    let mut operand = match surface {
        LscSurface::None => LscScalar::Imm(0),
        LscSurface::Imm(bits) => LscScalar::Imm(*bits),
        LscSurface::Var(origin) => LscScalar::Var(*origin),
    };
    scalar(io, &mut operand)?;
    *surface = match (model, operand) {
        (AddrModel::Flat | AddrModel::Arg, _) => LscSurface::None,
        (_, LscScalar::Imm(bits)) => LscSurface::Imm(bits),
        (_, LscScalar::Var(origin)) => LscSurface::Var(origin),
    };
    Ok(())
}

/// What follows execution size and predicate of an untyped message.
pub(super) fn untyped<C: Codec>(io: &mut C, l: &mut Lsc) -> Walk {
    let quad = matches!(l.op, LscOp::LoadQuad | LscOp::StoreQuad);
    let strided = matches!(l.op, LscOp::LoadStrided | LscOp::StoreStrided);
    let store = l.op.stores();
    sfid(io, &mut l.sfid)?;
    caching(io, &mut l.caching)?;
    model(io, &mut l.model)?;
    io.u16(&mut l.scale)?;
    io.i32(&mut l.offset)?;
    addr_size(io, &mut l.addr_size)?;
    data_size(io, &mut l.data_size)?;
    order(io, &mut l.transposed)?;
    shape(io, quad, &mut l.elems, &mut l.channels)?;
    surface(io, l.model, &mut l.surface)?;
    let mut nothing = Raw::NULL;
    if store {
        io.raw(&mut nothing)?;
    } else {
        io.raw(&mut l.data)?;
    }
    io.raw(&mut l.addr)?;
    if strided {
        stride(io, l)?;
    }
    if store {
        io.raw(&mut l.data)?;
        if !strided {
            io.raw(&mut nothing)?;
        }
    } else {
        io.raw(&mut l.src1)?;
        if !strided {
            io.raw(&mut l.src2)?;
        }
    }
    match nothing.is_null() {
        true => Ok(()),
        false => Err(Problem::malformed("a store with a result")),
    }
}

/// The distance of lanes is always there; the one that text need not say is left away when read.
fn stride<C: Codec>(io: &mut C, l: &mut Lsc) -> Walk {
    let packed = LscScalar::Imm(u64::from(l.packed_bytes()));
    let mut stride = l.stride.clone().unwrap_or_else(|| packed.clone());
    scalar(io, &mut stride)?;
    if io.reading() {
        l.stride = (stride != packed).then_some(stride);
    }
    Ok(())
}

/// What follows execution size and predicate of a 2D block message.
pub(super) fn block2d<C: Codec>(io: &mut C, b: &mut LscBlock2d) -> Walk {
    /// Base, width, height, pitch, x, y.
    const OPERANDS: usize = 6;
    sfid(io, &mut b.sfid)?;
    caching(io, &mut b.caching)?;
    data_size(io, &mut b.data_size)?;
    order(io, &mut b.transpose)?;
    io.u8(&mut b.blocks)?;
    io.u16(&mut b.width)?;
    io.u16(&mut b.height)?;
    io.flag("a packing", &mut b.vnni)?;
    let mut nothing = Raw::NULL;
    io.raw(if b.op.stores() {
        &mut nothing
    } else {
        &mut b.data
    })?;
    let BlockAddress::Operands(operands) = &mut b.address else {
        return Err(Problem::unwritable(
            "a 2D block with its address in one register",
        ));
    };
    if operands.len() != OPERANDS && !io.reading() {
        return Err(Problem::unwritable(
            "a 2D block with a wrong number of operands",
        ));
    }
    let blank = || LscScalar::Imm(0);
    super::codec::each(io, operands, OPERANDS, blank, |io, _, o| scalar(io, o))?;
    io.raw(if b.op.stores() {
        &mut b.data
    } else {
        &mut nothing
    })?;
    match nothing.is_null() {
        true => Ok(()),
        false => Err(Problem::malformed("a 2D block with two payloads")),
    }
}

/// What follows execution size and predicate of a typed message.
pub(super) fn typed<C: Codec>(io: &mut C, t: &mut LscTyped) -> Walk {
    let quad = matches!(t.op, LscOp::LoadQuad | LscOp::StoreQuad);
    caching(io, &mut t.caching)?;
    model(io, &mut t.model)?;
    addr_size(io, &mut t.addr_size)?;
    data_size(io, &mut t.data_size)?;
    let (mut transposed, mut elems) = (false, 1);
    order(io, &mut transposed)?;
    shape(io, quad, &mut elems, &mut t.channels)?;
    if transposed || elems != 1 {
        return Err(Problem::unsupported(
            "a typed message of vectors is not supported",
        ));
    }
    surface(io, t.model, &mut t.surface)?;
    let store = t.op.stores();
    let mut nothing = Raw::NULL;
    io.raw(if store { &mut nothing } else { &mut t.data })?;
    for coord in &mut t.coords {
        io.raw(coord)?;
    }
    io.raw(if store { &mut t.data } else { &mut t.src1 })?;
    io.raw(if store { &mut nothing } else { &mut t.src2 })?;
    match nothing.is_null() {
        true => Ok(()),
        false => Err(Problem::malformed("a store with a result")),
    }
}

/// A fence, whose execution size and predicate say nothing.
pub(super) fn fence<C: Codec>(io: &mut C, to: &mut Sfid, op: &mut u8, scope: &mut Scope) -> Walk {
    let kinds = u8::try_from(FENCE_OPS.len()).unwrap_or(u8::MAX);
    sfid(io, to)?;
    io.below("a cache operation", kinds, op)?;
    spelled(io, "a scope", scope, Scope::code, Scope::from_code)
}
