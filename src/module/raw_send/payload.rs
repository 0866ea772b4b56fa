//! Where the parts of a message lie: one after the other from whole registers on, in one payload or two.

use super::{Refusal, Sent};
use crate::isa::{SrcModifier, SrcRegion, Type};
use crate::limits::MAX_VARS;
use crate::module::{Align, GeneralVar, Origin, Raw, Src, VarId};

/// A place some bytes further.
pub(super) fn further(raw: Raw, bytes: u32) -> Result<Raw, Refusal> {
    let offset = raw.offset.checked_add(bytes);
    offset
        .map(|offset| Raw { offset, ..raw })
        .ok_or("its payload is too far in its variable")
}

impl Sent<'_> {
    /// Registers of the first payload: bits 28:25 of the descriptor.
    pub(super) fn first_registers(&self) -> u32 {
        self.bits(28, 25)
    }

    /// Registers of both payloads.
    pub(super) fn registers(&self) -> u32 {
        let second = match self.send.split {
            true => u32::from(self.send.sizes[1]),
            false => 0,
        };
        self.first_registers().saturating_add(second)
    }

    /// Places of parts of so many bytes.
    pub(super) fn parts<const N: usize>(&self, bytes: [u32; N]) -> Result<[Raw; N], Refusal> {
        let all = self.all_parts(&bytes)?;
        all.try_into().map_err(|_| "its payload ends early")
    }

    /// The same of any number of parts.
    pub(super) fn all_parts(&self, bytes: &[u32]) -> Result<Vec<Raw>, Refusal> {
        let grf = self.platform.grf_bytes();
        let first = self.first_registers().saturating_mul(grf);
        let all = self.registers().saturating_mul(grf);
        let mut start: u32 = 0;
        let mut out = Vec::new();
        for bytes in bytes {
            let end = start.saturating_add(bytes.next_multiple_of(grf));
            let place = match start.checked_sub(first) {
                None if end > first => return Err("a part of its payload lies in both sources"),
                None => further(self.send.src0, start)?,
                Some(at) if end <= all => further(self.send.src1, at)?,
                Some(_) => return Err("its payload ends early"),
            };
            if place.is_null() {
                return Err("a part of its payload is missing");
            }
            out.push(place);
            start = end;
        }
        Ok(out)
    }

    /// Bytes that lanes have in registers.
    pub(super) fn lane_bytes(&self, lanes: u32, bytes: u32) -> u32 {
        let grf = self.platform.grf_bytes();
        lanes.saturating_mul(bytes).next_multiple_of(grf)
    }

    /// Where results go; `None` where there is no such register.
    pub(super) fn result(&self) -> Result<Raw, Refusal> {
        match self.send.dst.is_null() {
            true => Err("its result goes nowhere"),
            false => Ok(self.send.dst),
        }
    }

    /// A variable of a part of a payload.
    pub(super) fn variable(&mut self, at: Raw, ty: Type, elements: u32) -> Result<VarId, Refusal> {
        if at.is_null() {
            return Err("a part of its payload is missing");
        }
        let made = self
            .module
            .vars
            .general
            .len()
            .saturating_add(self.made.len());
        let id = u32::try_from(made)
            .ok()
            .filter(|_| made < MAX_VARS)
            .and_then(|n| n.checked_add(VarId::FIRST_USER))
            .ok_or("there are too many variables")?;
        self.made.push(GeneralVar {
            name: format!("payload of line {}", self.inst.pos.line),
            ty,
            elements,
            align: Align::Byte,
            alias: Some((at.var, at.offset)),
            attrs: Vec::new(),
            pos: self.inst.pos,
        });
        Ok(VarId(id))
    }

    /// One element at some byte of a part.
    pub(super) fn element(&mut self, at: Raw, byte: u32, ty: Type) -> Result<Origin, Refusal> {
        let var = self.variable(further(at, byte)?, ty, 1)?;
        let (row, col) = (0, 0);
        Ok(Origin { var, row, col })
    }

    /// The same as an operand.
    pub(super) fn operand(&mut self, at: Raw, byte: u32, ty: Type) -> Result<Src, Refusal> {
        Ok(Src::General {
            origin: self.element(at, byte, ty)?,
            region: SrcRegion::SCALAR,
            modifier: SrcModifier::None,
        })
    }
}
