//! Sampler messages.

use super::codec::{Codec, each, length};
use super::error::{Problem, Walk};
use super::operands::{BLANK, src};
use crate::isa::sampler::SamplerOp;
use crate::isa::{Exec, Form, Opcode, OpcodeInfo};
use crate::module::*;

/// Sub-opcode of `resinfo`, the only question about a surface that has a parameter.
const RESINFO: u8 = 10;

/// A blank of the row, of forms of this file.
pub(super) fn blank(row: &OpcodeInfo) -> Option<Body> {
    let info = row.form == Form::Info3d;
    let samples = row.form == Form::Sample3d;
    if !info && !samples && row.form != Form::Load3d {
        return None;
    }
    Some(Body::Sample(Sample {
        variant: 0,
        flags: 0,
        channels: Channels(0),
        aoffimmi: (!info).then_some(BLANK),
        sampler: samples.then_some(SamplerId(0)),
        surface: SurfaceId(0),
        dst: Raw::NULL,
        params: Vec::new(),
    }))
}

/// A whole message: operation, execution size, predicate and operands.
pub(super) fn walk<C: Codec>(io: &mut C, inst: &mut Inst) -> Walk {
    let row = inst.op.info();
    let Body::Sample(s) = &mut inst.body else {
        return Err(Problem::unwritable("an instruction of another form"));
    };
    if row.form == Form::Info3d {
        return info(io, row, &mut inst.exec, s);
    }
    operation(io, s)?;
    known(row, s.variant)?;
    io.exec(&mut inst.exec)?;
    super::operands::guard_word(io, &mut inst.pred)?;
    match row.opcode {
        Opcode::Gather43d => single_channel(io, &mut s.channels)?,
        _ => channels(io, &mut s.channels)?,
    }
    if let Some(offsets) = &mut s.aoffimmi {
        src(io, offsets)?;
    }
    if let Some(sampler) = &mut s.sampler {
        io.sampler(sampler)?;
    }
    io.surface(&mut s.surface)?;
    io.raw(&mut s.dst)?;
    params(io, &mut s.params)
}

fn params<C: Codec>(io: &mut C, params: &mut Vec<Raw>) -> Walk {
    /// As many as the vendor's tools take.
    const PARAMS: u32 = 15;
    let mut count = length("parameters", params.len())?;
    io.small("the number of parameters", &mut count)?;
    if count > PARAMS {
        let message = format!("{count} parameters; there are at most {PARAMS}");
        return Err(match io.reading() {
            true => Problem::malformed(message),
            false => Problem::unwritable(message),
        });
    }
    each(
        io,
        params,
        count as usize,
        || Raw::NULL,
        |io, _, p| io.raw(p),
    )
}

/// Operation and flags: in 5 and 3 bits, later in 8 bits each.
fn operation<C: Codec>(io: &mut C, s: &mut Sample) -> Walk {
    let shift = if io.format().wide_samples() { 8 } else { 5 };
    let mut word = u16::from(s.flags) << shift | u16::from(s.variant);
    if io.format().wide_samples() {
        io.u16(&mut word)?;
    } else {
        let mut byte = u8::try_from(word)
            .map_err(|_| Problem::unwritable("a sampler message of later versions"))?;
        io.u8(&mut byte)?;
        word = u16::from(byte);
    }
    let mask = (1u16 << shift).wrapping_sub(1);
    s.variant = u8::try_from(word & mask).unwrap_or(u8::MAX);
    s.flags = u8::try_from(word >> shift).unwrap_or(u8::MAX);
    match s.flags {
        0..=7 => Ok(()),
        flags => Err(Problem::malformed(format!(
            "flags {flags:#04x} of a sampler message, which do not exist"
        ))),
    }
}

fn known(row: &OpcodeInfo, variant: u8) -> Walk {
    match SamplerOp::from_code(row.opcode, variant) {
        Some(_) => Ok(()),
        None => Err(Problem::unsupported(format!(
            "operation {variant} of `{}` is not supported",
            row.opcode.mnemonic()
        ))),
    }
}

/// Questions about a surface. The vendor's writer has their operation in 16 bits, its reader in 8. The byte after the first one tells:
/// 0 is the second byte of an operation, as no sampler message has one lane. What is written is what the vendor's reader takes.
fn info<C: Codec>(io: &mut C, row: &OpcodeInfo, exec: &mut Exec, s: &mut Sample) -> Walk {
    io.u8(&mut s.variant)?;
    known(row, s.variant)?;
    io.exec(exec)?;
    if exec.lanes() == 1 {
        if !io.reading() {
            return Err(Problem::unwritable("a sampler message of one lane"));
        }
        io.exec(exec)?;
    }
    channels(io, &mut s.channels)?;
    io.surface(&mut s.surface)?;
    let count = usize::from(s.variant == RESINFO);
    if s.params.len() != count && !io.reading() {
        return Err(Problem::unwritable("a wrong number of parameters"));
    }
    each(io, &mut s.params, count, || Raw::NULL, |io, _, p| io.raw(p))?;
    io.raw(&mut s.dst)
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

/// The number of one channel.
fn single_channel<C: Codec>(io: &mut C, channels: &mut Channels) -> Walk {
    io.coded(
        "a channel",
        &[Channels(1), Channels(2), Channels(4), Channels(8)],
        channels,
    )
}
