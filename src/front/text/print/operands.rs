//! Operands.

use super::Printer;
use crate::isa::{DstRegion, SrcModifier, SrcRegion, Type};
use crate::module::*;
use std::borrow::Cow;
use std::fmt::{self, Write};

/// Name of a variable in one of the lists that number from zero.
fn other(list: &[OtherVar], index: Option<u32>) -> Cow<'_, str> {
    let found = index.and_then(|i| list.get(i as usize));
    match found {
        Some(v) => Cow::Borrowed(v.name.as_str()),
        None => Cow::Owned(format!("?{}", index.unwrap_or(0))),
    }
}

impl<'m> Printer<'m> {
    pub(super) fn var_name(&self, id: VarId) -> Cow<'m, str> {
        if let Some(p) = PREDEFINED.get(id.0 as usize) {
            return Cow::Borrowed(p.name);
        }
        match self.module.vars.general(id) {
            Some(v) => Cow::Borrowed(v.name.as_str()),
            None => Cow::Owned(format!("?{}", id.0)),
        }
    }

    pub(super) fn addr_name(&self, id: AddrId) -> Cow<'m, str> {
        other(&self.module.vars.address, Some(id.0))
    }

    pub(super) fn pred_name(&self, id: PredId) -> Cow<'m, str> {
        other(&self.module.vars.predicate, id.0.checked_sub(1))
    }

    pub(super) fn sampler_name(&self, id: SamplerId) -> Cow<'m, str> {
        other(&self.module.vars.sampler, Some(id.0))
    }

    pub(super) fn surface_name(&self, id: SurfaceId) -> Cow<'m, str> {
        match PREDEFINED_SURFACES.get(id.0 as usize) {
            Some(name) => Cow::Borrowed(name),
            None => other(
                &self.module.vars.surface,
                id.0.checked_sub(SurfaceId::FIRST_USER),
            ),
        }
    }

    /// `V(r,c)`.
    pub(super) fn origin(&mut self, o: Origin) -> fmt::Result {
        let name = self.var_name(o.var);
        write!(self.out, "{name}({},{})", o.row, o.col)
    }

    /// `V.offset`.
    pub(super) fn raw(&mut self, raw: Raw) -> fmt::Result {
        let name = self.var_name(raw.var);
        write!(self.out, "{name}.{}", raw.offset)
    }

    /// A blank and `V.offset`.
    pub(super) fn spaced_raw(&mut self, raw: Raw) -> fmt::Result {
        self.out.push(' ');
        self.raw(raw)
    }

    pub(super) fn src(&mut self, src: &Src) -> fmt::Result {
        match src {
            Src::General {
                origin,
                region,
                modifier,
            } => {
                self.modifier(*modifier);
                self.origin(*origin)?;
                self.src_region(*region)
            }
            Src::Indirect {
                indirect,
                region,
                modifier,
            } => {
                self.modifier(*modifier);
                self.indirect(*indirect)?;
                match region {
                    IndirectRegion::Single(region) => self.src_region(*region)?,
                    IndirectRegion::VxH { width, hstride } => {
                        write!(self.out, "<{width},{hstride}>")?
                    }
                }
                write!(self.out, ":{}", indirect.ty)
            }
            Src::Imm { bits, ty } => {
                let shown = shown_bits(*bits, *ty);
                write!(self.out, "0x{shown:x}:{ty}")
            }
            Src::Pred(p) => {
                let name = self.pred_name(*p);
                self.out.write_str(&name)
            }
            Src::Address { addr, index, width } => self.address(*addr, *index, *width),
            Src::AddressOf { var, offset } => {
                let name = self.var_name(*var);
                self.address_of(&name, *offset)
            }
            Src::AddressOfSurface { surface, offset } => {
                let name = self.surface_name(*surface);
                self.address_of(&name, *offset)
            }
            Src::Surface(s, index) => {
                let name = self.surface_name(*s);
                write!(self.out, "{name}({index})")
            }
            Src::Sampler(s, index) => {
                let name = self.sampler_name(*s);
                write!(self.out, "{name}({index})")
            }
        }
    }

    pub(super) fn dst(&mut self, dst: &Dst) -> fmt::Result {
        match dst {
            Dst::General { origin, region } => {
                self.origin(*origin)?;
                self.dst_region(*region)
            }
            Dst::Indirect { indirect, region } => {
                self.indirect(*indirect)?;
                self.dst_region(*region)?;
                write!(self.out, ":{}", indirect.ty)
            }
            Dst::Pred(p) => {
                let name = self.pred_name(*p);
                self.out.write_str(&name)
            }
            Dst::Address { addr, index, width } => self.address(*addr, *index, *width),
            Dst::Surface(s, index) => {
                let name = self.surface_name(*s);
                write!(self.out, "{name}({index})")
            }
            Dst::Sampler(s, index) => {
                let name = self.sampler_name(*s);
                write!(self.out, "{name}({index})")
            }
        }
    }

    fn address(&mut self, addr: AddrId, index: u8, width: u8) -> fmt::Result {
        let name = self.addr_name(addr);
        write!(self.out, "{name}({index})<{width}>")
    }

    fn address_of(&mut self, name: &str, offset: u32) -> fmt::Result {
        write!(self.out, "&{name}")?;
        if offset == 0 {
            Ok(())
        } else {
            write!(self.out, "[{offset}]")
        }
    }

    fn indirect(&mut self, i: Indirect) -> fmt::Result {
        let name = self.addr_name(i.addr);
        write!(self.out, "r[{name}({}),{}]", i.index, i.offset)
    }

    fn modifier(&mut self, modifier: SrcModifier) {
        self.out.push_str(match modifier {
            SrcModifier::None => "",
            SrcModifier::Abs => "(abs)",
            SrcModifier::Neg => "(-)",
            SrcModifier::NegAbs => "(-abs)",
            SrcModifier::Not => "(~)",
        });
    }

    fn src_region(&mut self, r: SrcRegion) -> fmt::Result {
        write!(self.out, "<{};{},{}>", r.vstride, r.width, r.hstride)
    }

    fn dst_region(&mut self, r: DstRegion) -> fmt::Result {
        write!(self.out, "<{}>", r.hstride)
    }
}

/// The vendor's tools keep small immediates in 32 bits and show the signed ones extended.
fn shown_bits(bits: u64, ty: Type) -> u64 {
    match ty {
        Type::W => u64::from(i32::from(bits as u16 as i16).cast_unsigned()),
        Type::B => u64::from(i32::from(bits as u8 as i8).cast_unsigned()),
        _ => bits,
    }
}
