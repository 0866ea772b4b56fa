//! Messages in legacy spelling, hardware messages and matrices.

use super::codec::Codec;
use super::error::{Problem, Walk};
use super::operands::{BLANK, src};
use crate::isa::dpas::precision_name;
use crate::isa::{AtomicOp, Exec, ExecMask, ExecSize, Form, Opcode, OpcodeInfo, SrcModifier};
use crate::isa::{SrcRegion, Type};
use crate::module::*;

/// Values by their code.
const OWORDS: [u8; 5] = [1, 2, 4, 8, 16];
const ELEMENT_BYTES: [u8; 3] = [1, 2, 4];
const BLOCKS: [u8; 4] = [1, 2, 4, 8];
const BLOCK_BYTES: [u8; 3] = [1, 4, 8];
/// Lanes of `gather` and `scatter`.
const GATHER_LANES: [u32; 3] = [8, 16, 1];
/// Modifiers of `media_ld` and `media_st`.
const MEDIA_MODIFIERS: u8 = 6;

/// A blank of the row, of forms of this file.
pub(super) fn blank(row: &OpcodeInfo) -> Option<Body> {
    if let Some(kind) = blank_kind(row.form) {
        let surface = SurfaceId(0);
        return Some(Body::Mem(Mem { surface, kind }));
    }
    Some(match row.form {
        Form::RawSend | Form::RawSends => Body::RawSend(RawSend {
            split: row.form == Form::RawSends,
            conditional: false,
            eot: false,
            sfid: 0,
            sizes: [0; 3],
            ex_desc: BLANK,
            desc: BLANK,
            src0: Raw::NULL,
            src1: Raw::NULL,
            dst: Raw::NULL,
            refused: None,
        }),
        Form::Dpas => Body::Dpas(Dpas {
            precision1: 0,
            precision2: 0,
            depth: 0,
            repeat: 0,
            dst: Raw::NULL,
            src0: Raw::NULL,
            src1: Raw::NULL,
            src2: Origin {
                var: VarId::NULL,
                row: 0,
                col: 0,
            },
        }),
        _ => return blank_svm(row).map(Body::Svm),
    })
}

fn blank_kind(form: Form) -> Option<MemKind> {
    const R: Raw = Raw::NULL;
    Some(match form {
        Form::Oword => MemKind::Oword {
            owords: 1,
            offset: BLANK,
            data: R,
        },
        Form::Media => MemKind::Media {
            modifier: 0,
            plane: 0,
            width: 0,
            height: 0,
            x: BLANK,
            y: BLANK,
            data: R,
        },
        Form::Gather => MemKind::Gather {
            bytes: 1,
            modifier: 0,
            global: BLANK,
            offsets: R,
            data: R,
        },
        Form::Gather4Scaled => MemKind::Gather4Scaled {
            channels: Channels(0),
            global: BLANK,
            offsets: R,
            data: R,
        },
        Form::GatherScaled => MemKind::GatherScaled {
            bytes: 1,
            global: BLANK,
            offsets: R,
            data: R,
        },
        Form::Typed => MemKind::Typed {
            channels: Channels(0),
            coords: [R; 4],
            data: R,
        },
        Form::DwordAtomic => MemKind::DwordAtomic {
            op: AtomicOp::Add,
            width: AtomicWidth::W32,
            offsets: R,
            src0: R,
            src1: R,
            dst: R,
        },
        Form::TypedAtomic => MemKind::TypedAtomic {
            op: AtomicOp::Add,
            width: AtomicWidth::W32,
            coords: [R; 4],
            src0: R,
            src1: R,
            dst: R,
        },
        Form::Qword => MemKind::Qword {
            blocks: 1,
            offsets: R,
            data: R,
        },
        _ => return None,
    })
}

fn blank_svm(row: &OpcodeInfo) -> Option<Svm> {
    const R: Raw = Raw::NULL;
    Some(match row.form {
        Form::SvmBlock => Svm::Block {
            owords: 1,
            unaligned: false,
            addr: BLANK,
            data: R,
        },
        Form::SvmGather => Svm::Gather {
            bytes: 1,
            blocks: 1,
            addrs: R,
            data: R,
        },
        Form::SvmGather4Scaled => Svm::Gather4Scaled {
            channels: Channels(0),
            base: BLANK,
            offsets: R,
            data: R,
        },
        Form::SvmAtomic => Svm::Atomic {
            op: AtomicOp::Add,
            width: AtomicWidth::W32,
            addrs: R,
            src0: R,
            src1: R,
            dst: R,
        },
        _ => return None,
    })
}

/// Atomics have their operation in front of the execution size.
pub(super) fn leading<C: Codec>(io: &mut C, body: &mut Body) -> Walk {
    match body {
        Body::Mem(Mem {
            kind: MemKind::DwordAtomic { op, width, .. } | MemKind::TypedAtomic { op, width, .. },
            ..
        }) => atomic(io, op, width),
        Body::RawSend(send) => {
            let mut byte = u8::from(send.conditional) | u8::from(send.eot) << 1;
            io.below("a modifier of a message", 4, &mut byte)?;
            send.conditional = byte & 1 != 0;
            send.eot = byte & 2 != 0;
            if send.eot && !send.split {
                return Err(Problem::malformed("an end of thread in `raw_send`"));
            }
            Ok(())
        }
        _ => Ok(()),
    }
}

/// Operation in bits 0 to 4, width in bits 5 and 6.
fn atomic<C: Codec>(io: &mut C, op: &mut AtomicOp, width: &mut AtomicWidth) -> Walk {
    let mut byte = 0;
    if !io.reading() {
        let Some((_, code)) = op.legacy() else {
            return Err(Problem::unwritable("an atomic operation of LSC messages"));
        };
        byte = code
            | match width {
                AtomicWidth::W16 => 1 << 5,
                AtomicWidth::W32 => 0,
                AtomicWidth::W64 => 1 << 6,
            };
    }
    io.u8(&mut byte)?;
    let none = || {
        Problem::malformed(format!(
            "an atomic operation of code {byte:#04x}, which does not exist"
        ))
    };
    *op = AtomicOp::from_legacy_code(byte & 31).ok_or_else(none)?;
    *width = match byte >> 5 {
        0 => AtomicWidth::W32,
        1 => AtomicWidth::W16,
        2 => AtomicWidth::W64,
        _ => return Err(none()),
    };
    Ok(())
}

fn channels<C: Codec>(io: &mut C, channels: &mut Channels) -> Walk {
    io.u8(&mut channels.0)?;
    match channels.0 {
        1..=15 => Ok(()),
        mask => Err(Problem::malformed(format!(
            "channels {mask:#04x}, which do not exist"
        ))),
    }
}

fn raws<C: Codec, const N: usize>(io: &mut C, raws: [&mut Raw; N]) -> Walk {
    raws.into_iter().try_for_each(|raw| io.raw(raw))
}

/// What follows execution size and predicate of a message on a surface.
pub(super) fn mem<C: Codec>(io: &mut C, op: Opcode, exec: &mut Exec, mem: &mut Mem) -> Walk {
    let surface = &mut mem.surface;
    match &mut mem.kind {
        MemKind::Oword {
            owords,
            offset,
            data,
        } => {
            io.coded("a number of owords", &OWORDS, owords)?;
            if op != Opcode::OwordSt {
                io.ignored()?;
            }
            io.surface(surface)?;
            src(io, offset)?;
            io.raw(data)
        }
        MemKind::Media {
            modifier,
            plane,
            width,
            height,
            x,
            y,
            data,
        } => {
            io.below("a modifier", MEDIA_MODIFIERS, modifier)?;
            io.surface(surface)?;
            io.u8(plane)?;
            io.u8(width)?;
            io.u8(height)?;
            src(io, x)?;
            src(io, y)?;
            io.raw(data)
        }
        MemKind::Gather {
            bytes,
            modifier,
            global,
            offsets,
            data,
        } => {
            io.coded("an element size", &ELEMENT_BYTES, bytes)?;
            if op == Opcode::Gather {
                io.below("a modifier", 1, modifier)?;
            }
            gather_exec(io, exec)?;
            io.surface(surface)?;
            src(io, global)?;
            raws(io, [offsets, data])
        }
        kind => lanes(io, surface, kind),
    }
}

/// Messages with an address a lane, whose execution size and predicate stand where those of other instructions do.
fn lanes<C: Codec>(io: &mut C, surface: &mut SurfaceId, kind: &mut MemKind) -> Walk {
    match kind {
        MemKind::Gather4Scaled {
            channels: mask,
            global,
            offsets,
            data,
        } => {
            channels(io, mask)?;
            scale(io)?;
            io.surface(surface)?;
            src(io, global)?;
            raws(io, [offsets, data])
        }
        MemKind::GatherScaled {
            bytes,
            global,
            offsets,
            data,
        } => {
            io.ignored()?;
            io.coded("a number of bytes", &ELEMENT_BYTES, bytes)?;
            scale(io)?;
            io.surface(surface)?;
            src(io, global)?;
            raws(io, [offsets, data])
        }
        MemKind::Typed {
            channels: mask,
            coords: [u, v, r, lod],
            data,
        } => {
            channels(io, mask)?;
            io.surface(surface)?;
            raws(io, [u, v, r, lod, data])
        }
        MemKind::DwordAtomic {
            offsets,
            src0,
            src1,
            dst,
            ..
        } => {
            io.surface(surface)?;
            raws(io, [offsets, src0, src1, dst])
        }
        MemKind::TypedAtomic {
            coords: [u, v, r, lod],
            src0,
            src1,
            dst,
            ..
        } => {
            io.surface(surface)?;
            raws(io, [u, v, r, lod, src0, src1, dst])
        }
        MemKind::Qword {
            blocks,
            offsets,
            data,
        } => {
            io.coded("a number of qwords", &BLOCKS, blocks)?;
            io.surface(surface)?;
            raws(io, [offsets, data])
        }
        _ => Err(Problem::unwritable("an instruction of another form")),
    }
}

/// A scale of offsets that has no meaning.
fn scale<C: Codec>(io: &mut C) -> Walk {
    io.u16(&mut 0)
}

/// Lanes in bits 0 and 1, mask in bits 4 to 7.
fn gather_exec<C: Codec>(io: &mut C, exec: &mut Exec) -> Walk {
    let mut byte = 0;
    if !io.reading() {
        let code = super::codec::code_of("an execution size", &GATHER_LANES, exec.lanes())?;
        let no_mask = if exec.mask.no_mask { 8 } else { 0 };
        byte = code | (exec.mask.quarter & 7 | no_mask) << 4;
    }
    io.u8(&mut byte)?;
    let lanes = super::codec::decoded("an execution size", &GATHER_LANES, byte & 15)?;
    *exec = Exec {
        mask: ExecMask {
            quarter: byte >> 4 & 7,
            no_mask: byte >> 7 != 0,
        },
        size: ExecSize::new(lanes).unwrap_or(ExecSize::ONE),
    };
    Ok(())
}

/// What follows execution size and predicate of a message on 64-bit addresses.
pub(super) fn svm<C: Codec>(io: &mut C, svm: &mut Svm) -> Walk {
    match svm {
        Svm::Block {
            owords,
            unaligned,
            addr,
            data,
            ..
        } => {
            let mut byte = 0;
            if !io.reading() {
                let code = super::codec::code_of("a number of owords", &OWORDS, *owords)?;
                byte = code | u8::from(*unaligned) << 3;
            }
            io.below("a number of owords", 16, &mut byte)?;
            *owords = super::codec::decoded("a number of owords", &OWORDS, byte & 7)?;
            *unaligned = byte >> 3 != 0;
            src(io, addr)?;
            io.raw(data)
        }
        Svm::Gather {
            bytes,
            blocks,
            addrs,
            data,
            ..
        } => {
            io.coded("a block size", &BLOCK_BYTES, bytes)?;
            io.coded("a number of blocks", &BLOCKS, blocks)?;
            raws(io, [addrs, data])
        }
        Svm::Gather4Scaled {
            channels: mask,
            base,
            offsets,
            data,
            ..
        } => {
            channels(io, mask)?;
            scale(io)?;
            src(io, base)?;
            raws(io, [offsets, data])
        }
        Svm::Atomic {
            op,
            width,
            addrs,
            src0,
            src1,
            dst,
        } => {
            atomic(io, op, width)?;
            raws(io, [addrs, src0, src1, dst])
        }
    }
}

/// What follows execution size and predicate of a hardware message.
pub(super) fn raw_send<C: Codec>(io: &mut C, s: &mut RawSend) -> Walk {
    let [size0, size1, size] = &mut s.sizes;
    if s.split {
        for count in [size0, size1, size] {
            io.u8(count)?;
        }
        if io.format().names_functions() {
            io.u8(&mut s.sfid)?;
        }
        src(io, &mut s.ex_desc)?;
        src(io, &mut s.desc)?;
        return raws(io, [&mut s.src0, &mut s.src1, &mut s.dst]);
    }
    let mut word = match s.ex_desc {
        Src::Imm { bits, .. } => u32::try_from(bits).unwrap_or(u32::MAX),
        _ => 0,
    };
    io.u32(&mut word)?;
    s.ex_desc = Src::Imm {
        bits: u64::from(word),
        ty: Type::Ud,
    };
    io.u8(size0)?;
    io.u8(size)?;
    src(io, &mut s.desc)?;
    raws(io, [&mut s.src0, &mut s.dst])
}

/// What follows the execution size of a matrix instruction.
pub(super) fn dpas<C: Codec>(io: &mut C, d: &mut Dpas) -> Walk {
    /// Precisions from here on are of later versions.
    const PRECISIONS: u8 = 13;
    raws(io, [&mut d.dst, &mut d.src0, &mut d.src1])?;
    let mut matrix = Src::General {
        origin: d.src2,
        region: SrcRegion::PACKED,
        modifier: SrcModifier::None,
    };
    src(io, &mut matrix)?;
    match matrix {
        Src::General {
            origin,
            modifier: SrcModifier::None,
            ..
        } => d.src2 = origin,
        _ => {
            return Err(Problem::malformed(
                "a matrix that is not in registers, or modified",
            ));
        }
    }
    for precision in [&mut d.precision1, &mut d.precision2] {
        io.below("a precision", PRECISIONS, precision)?;
        if precision_name(*precision).is_none() {
            return Err(Problem::malformed(format!(
                "a precision of code {precision}, which does not exist"
            )));
        }
    }
    io.u8(&mut d.depth)?;
    io.u8(&mut d.repeat)?;
    match ([2, 4, 8].contains(&d.depth), d.repeat) {
        (true, 1..=8) => Ok(()),
        _ => Err(Problem::malformed(format!(
            "a systolic depth of {} with a repeat count of {}",
            d.depth, d.repeat
        ))),
    }
}
