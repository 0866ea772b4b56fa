//! Raw messages, matrix multiplication, fences, debug information.

use super::super::error::ErrorKind;
use super::super::spelling::{FENCE_LETTERS, FENCE_LOCAL, FENCE_SOFTWARE};
use super::symbols::Sym;
use super::{Mnemonic, PResult, Parser};
use crate::isa::dpas::{PRECISIONS, precision_code};
use crate::isa::{Classes, Exec, Type};
use crate::module::*;

impl<'s> Parser<'s> {
    /// `(exec) exdesc #src #dst desc src dst`.
    pub(super) fn raw_send(&mut self, m: &Mnemonic<'s>) -> PResult<(Exec, Body)> {
        let exec = self.exec()?;
        let ex_desc = Src::Imm {
            bits: u64::from(self.uint32("the extended descriptor")?),
            ty: Type::Ud,
        };
        let src_regs = self.uint8("the number of source registers", u8::MAX)?;
        let dst_regs = self.uint8("the number of destination registers", u8::MAX)?;
        let desc = self.scalar()?;
        let (src0, dst) = (self.raw()?, self.raw()?);
        Ok((
            exec,
            Body::RawSend(RawSend {
                split: false,
                conditional: m.text == "raw_sendc",
                eot: false,
                sfid: 0,
                sizes: [src_regs, 0, dst_regs],
                ex_desc,
                desc,
                src0,
                src1: Raw::NULL,
                dst,
                refused: None,
            }),
        ))
    }

    /// `[.sfid].#src0.#src1.#dst (exec) exdesc desc src0 src1 dst`. The vendor's printer writes the sfid,
    /// its grammar reads it for some mnemonics only, so both are taken.
    pub(super) fn raw_sends(&mut self, m: &Mnemonic<'s>) -> PResult<(Exec, Body)> {
        let mut fields = Vec::new();
        while let Some((token, text)) = self.suffix() {
            match text.parse::<u8>() {
                Ok(v) if fields.len() < 4 => fields.push(v),
                _ => {
                    let message = format!("malformed field `.{text}` of `{}`", m.text);
                    let label = "expected `.sfid.#src0.#src1.#dst`".into();
                    return Err(self.error_full(token, ErrorKind::Syntax, message, label, None));
                }
            }
        }
        let (sfid, sizes) = match fields.as_slice() {
            [sfid, a, b, c] => (*sfid, [*a, *b, *c]),
            [a, b, c] => (0, [*a, *b, *c]),
            _ => return Err(self.unexpected(&["`.sfid.#src0.#src1.#dst`"])),
        };
        let exec = self.exec()?;
        let ex_desc = self.scalar()?;
        let desc = self.scalar()?;
        let (src0, src1, dst) = (self.raw()?, self.raw()?, self.raw()?);
        Ok((
            exec,
            Body::RawSend(RawSend {
                split: true,
                conditional: m.text.starts_with("raw_sendsc"),
                eot: m.text.ends_with("_eot"),
                sfid,
                sizes,
                ex_desc,
                desc,
                src0,
                src1,
                dst,
                refused: None,
            }),
        ))
    }

    /// `.precision1.precision2.depth.repeat (exec) dst src0 src1 src2`.
    pub(super) fn dpas(&mut self) -> PResult<(Exec, Body)> {
        let names: Vec<&str> = PRECISIONS.iter().map(|(n, _)| *n).collect();
        let precision1 = self.suffix_of("a precision", &names, precision_code)?;
        let precision2 = self.suffix_of("a precision", &names, precision_code)?;
        let depth = self.int_suffix("a systolic depth", &[2, 4, 8])?;
        let repeat = self.int_suffix("a repeat count", &[1, 2, 3, 4, 5, 6, 7, 8])?;
        let exec = self.exec()?;
        let (dst, src0, src1) = (self.raw()?, self.raw()?, self.raw()?);
        let src2 = self.origin("`V(row, column)` without region")?;
        Ok((
            exec,
            Body::Dpas(Dpas {
                precision1,
                precision2,
                depth,
                repeat,
                dst,
                src0,
                src1,
                src2,
            }),
        ))
    }

    /// `fence_global[.letters]`, `fence_local[.letters]`, `fence_sw`.
    pub(super) fn fence(&mut self, m: &Mnemonic<'s>) -> PResult<Body> {
        let mut mask = match m.text {
            "fence_local" => FENCE_LOCAL,
            "fence_sw" => return Ok(Body::Fence(FENCE_SOFTWARE)),
            _ => 0,
        };
        let Some((token, text)) = self.suffix() else {
            return Ok(Body::Fence(mask));
        };
        let mut rest = text;
        while !rest.is_empty() {
            let found = FENCE_LETTERS
                .iter()
                .find_map(|(name, bit)| Some((*bit, rest.strip_prefix(name)?)));
            let Some((bit, tail)) = found else {
                let message = format!("unknown fence options `{text}`");
                let label = "expected letters of `E`, `I`, `S`, `C`, `R`, `L1`".into();
                return Err(self.error_full(token, ErrorKind::Syntax, message, label, None));
            };
            mask |= bit;
            rest = tail;
        }
        Ok(Body::Fence(mask))
    }

    /// `FILE "name"`.
    pub(super) fn file(&mut self) -> PResult<Body> {
        Ok(Body::File(self.string("a file name in quotes")?))
    }

    /// `LOC line`.
    pub(super) fn loc(&mut self) -> PResult<Body> {
        Ok(Body::Loc(self.uint32("a line number")?))
    }

    /// `.start variable` or `.end variable`.
    pub(super) fn lifetime(&mut self) -> PResult<Body> {
        let start = self.suffix_of("an end of a lifetime", &["start", "end"], |s| match s {
            "start" => Some(true),
            "end" => Some(false),
            _ => None,
        })?;
        let (token, sym) = self.variable("a variable")?;
        let var = match sym {
            Sym::General(v) => LifetimeVar::General(v),
            Sym::Address(v) => LifetimeVar::Address(v),
            Sym::Pred(v) => LifetimeVar::Pred(v),
            _ => {
                let wanted = format!(
                    "a variable ({}, predicate or address)",
                    Classes::GEN.names().join(", ")
                );
                return Err(self.wrong_class(token, sym, &wanted));
            }
        };
        Ok(Body::Lifetime { start, var })
    }
}
