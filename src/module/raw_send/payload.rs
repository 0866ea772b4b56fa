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

    /// Places of parts of a given number of bytes.
    pub(super) fn parts<const N: usize>(&self, bytes: [u32; N]) -> Result<[Raw; N], Refusal> {
        let all = self.all_parts(&bytes)?;
        all.try_into().map_err(|_| "its payload ends early")
    }

    /// The same of any number of parts, which are the whole message: its first source ends where one of them does.
    pub(super) fn all_parts(&self, bytes: &[u32]) -> Result<Vec<Raw>, Refusal> {
        self.parts_of(bytes, self.registers())
    }

    /// The same of parts after a header, if there is one.
    pub(super) fn behind<const N: usize>(&self, bytes: [u32; N]) -> Result<[Raw; N], Refusal> {
        let all = self.all_behind(&bytes)?;
        all.try_into().map_err(|_| "its payload ends early")
    }

    /// The same of any number of parts.
    pub(super) fn all_behind(&self, bytes: &[u32]) -> Result<Vec<Raw>, Refusal> {
        let mut all = vec![self.platform.grf_bytes(); usize::from(self.has_header())];
        all.extend(bytes);
        let mut places = self.all_parts(&all)?;
        Ok(places.split_off(usize::from(self.has_header())))
    }

    /// The same of parts that are a given number of registers.
    pub(super) fn parts_of(&self, bytes: &[u32], registers: u32) -> Result<Vec<Raw>, Refusal> {
        let grf = self.platform.grf_bytes();
        let first = self.first_registers().saturating_mul(grf);
        let all = registers.saturating_mul(grf);
        let mut start: u32 = 0;
        let mut out = Vec::new();
        for bytes in bytes {
            let end = start.saturating_add(bytes.next_multiple_of(grf));
            let place = match start.checked_sub(first) {
                None if end > first => return Err("a part of its payload lies in both sources"),
                None => further(self.send.src0, start)?,
                Some(_) if end > all => return Err("its payload ends early"),
                Some(at) => further(self.send.src1, at)?,
            };
            if place.is_null() {
                return Err("a part of its payload is missing");
            }
            out.push(place);
            start = end;
        }
        match start == all {
            true => Ok(out),
            false => Err("its payload is longer than the message"),
        }
    }

    /// Bit 19 says that there is a header.
    pub(super) fn has_header(&self) -> bool {
        self.bits(19, 19) != 0
    }

    /// The header, which is the first register.
    pub(super) fn header(&self) -> Result<Raw, Refusal> {
        match self.first_registers() > 0 && !self.send.src0.is_null() {
            true => Ok(self.send.src0),
            false => Err("its header is missing"),
        }
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

    /// The register of the extended descriptor.
    pub(super) fn word(&mut self) -> Result<VarId, Refusal> {
        let Src::General {
            origin,
            region: SrcRegion::SCALAR,
            modifier: SrcModifier::None,
        } = self.send.ex_desc
        else {
            return Err("its surface is in no register");
        };
        if !matches!(self.module.vars.ty(origin.var), Some(Type::D | Type::Ud)) {
            return Err("its surface is in no register of dwords");
        }
        let rows = u32::from(origin.row).saturating_mul(self.platform.grf_bytes());
        let offset = rows.saturating_add(u32::from(origin.col).saturating_mul(4));
        let var = origin.var;
        self.variable(Raw { var, offset }, Type::Ud, 1)
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
