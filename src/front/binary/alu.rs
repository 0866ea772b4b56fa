//! Instructions from registers to registers.

use super::codec::{Codec, each};
use super::error::{Problem, Walk};
use super::operands::{BLANK, BLANK_DST, address_src, dst, src};
use crate::isa::{CmpCond, Form, Opcode, OpcodeInfo};
use crate::module::*;

/// A blank of the row.
pub(super) fn blank(row: &OpcodeInfo) -> Body {
    Body::Alu(Alu {
        sat: false,
        cond: (row.form == Form::Cmp).then_some(CmpCond::Eq),
        bfn: 0,
        dst: BLANK_DST,
        dst2: (row.form == Form::AluPair).then_some(BLANK_DST),
        srcs: Vec::new(),
    })
}

/// What follows execution size and predicate.
pub(super) fn walk<C: Codec>(io: &mut C, op: &mut Opcode, alu: &mut Alu) -> Walk {
    let row = op.info();
    choice(io, op)?;
    if let Some(cond) = &mut alu.cond {
        io.coded("a condition", &CmpCond::ALL, cond)?;
    }
    dst(io, &mut alu.dst, &mut alu.sat)?;
    if let Some(second) = &mut alu.dst2 {
        dst(io, second, &mut false)?;
    }
    if !io.reading() && alu.srcs.len() != usize::from(row.sources) {
        return Err(Problem::unwritable("a wrong number of sources"));
    }
    let address = *op == Opcode::AddrAdd;
    each(
        io,
        &mut alu.srcs,
        usize::from(row.sources),
        || BLANK,
        |io, index, source| match index {
            0 if address => address_src(io, source),
            _ => src(io, source),
        },
    )?;
    match row.form {
        Form::Bfn => io.u8(&mut alu.bfn),
        _ => Ok(()),
    }
}

/// Rows that share a number are told apart by a byte after the execution size.
fn choice<C: Codec>(io: &mut C, op: &mut Opcode) -> Walk {
    let row = op.info();
    let shared = row.sub != 0 || Opcode::from_number(row.number, 1).is_some();
    if !shared {
        return Ok(());
    }
    let mut sub = row.sub;
    io.u8(&mut sub)?;
    *op = Opcode::from_number(row.number, sub).ok_or_else(|| {
        Problem::malformed(format!(
            "kind {sub} of `{}`, which does not exist",
            op.mnemonic()
        ))
    })?;
    Ok(())
}
