//! Load/store cache messages.

use super::super::spelling::XYZW;
use super::{Printer, letters};
use crate::isa::lsc::*;
use crate::module::*;
use std::fmt::{self, Write};

impl Printer<'_> {
    fn lsc_name(&mut self, op: LscOp, sfid: Sfid, c: Caching) -> fmt::Result {
        let name = op.spelling().map_or("lsc_?", |(name, _)| name);
        write!(self.out, "{name}.{}", sfid.name())?;
        if c == Caching::default() {
            return Ok(());
        }
        let control = |code: u8| CACHE_CONTROLS.get(usize::from(code)).unwrap_or(&"?");
        write!(self.out, ".{}.{}", control(c.l1), control(c.l3))
    }

    /// `V` or `V.offset`.
    fn payload(&mut self, raw: Raw) -> fmt::Result {
        let name = self.var_name(raw.var);
        self.out.write_str(&name)?;
        if raw.offset == 0 {
            Ok(())
        } else {
            write!(self.out, ".{}", raw.offset)
        }
    }

    fn space(&mut self, model: AddrModel, surface: &LscSurface) -> fmt::Result {
        self.out.write_str(model.name())?;
        match surface {
            LscSurface::None => Ok(()),
            LscSurface::Imm(v) => write!(self.out, "(0x{v:X})"),
            LscSurface::Var(o) => {
                self.out.push('(');
                self.element(*o)?;
                self.out.push(')');
                Ok(())
            }
        }
    }

    /// `V`, or `V(r,c)` where it is not the first element.
    fn element(&mut self, o: Origin) -> fmt::Result {
        if o.row == 0 && o.col == 0 {
            let name = self.var_name(o.var);
            self.out.write_str(&name)
        } else {
            self.origin(o)
        }
    }

    fn scalar(&mut self, s: &LscScalar) -> fmt::Result {
        match s {
            LscScalar::Imm(v) => write!(self.out, "0x{v:X}"),
            LscScalar::Var(o) => self.element(*o),
        }
    }

    fn shape(&mut self, size: DataSize, elems: u8, transposed: bool) -> fmt::Result {
        write!(self.out, ":{}", size.name())?;
        if elems > 1 {
            write!(self.out, "x{elems}")?;
        }
        if transposed {
            self.out.push('t');
        }
        Ok(())
    }

    fn channels(&mut self, op: LscOp, channels: Channels) -> fmt::Result {
        match op {
            LscOp::LoadQuad | LscOp::StoreQuad => write!(self.out, ".{}", letters(channels, XYZW)),
            _ => Ok(()),
        }
    }

    fn sources(&mut self, op: LscOp, src1: Raw, src2: Raw) -> fmt::Result {
        if let LscOp::Atomic(_) = op {
            self.out.push_str("  ");
            self.payload(src1)?;
            self.out.push_str("  ");
            self.payload(src2)?;
        }
        Ok(())
    }

    pub(super) fn lsc(&mut self, inst: &Inst, l: &Lsc) -> fmt::Result {
        self.lsc_name(l.op, l.sfid, l.caching)?;
        write!(self.out, " {}  ", inst.exec)?;
        let store = l.op.stores();
        if store {
            self.lsc_address(l)?;
            self.out.push_str("  ");
        }
        self.payload(l.data)?;
        self.shape(l.data_size, l.elems, l.transposed)?;
        self.channels(l.op, l.channels)?;
        if !store {
            self.out.push_str("  ");
            self.lsc_address(l)?;
        }
        self.sources(l.op, l.src1, l.src2)
    }

    fn lsc_address(&mut self, l: &Lsc) -> fmt::Result {
        self.space(l.model, &l.surface)?;
        self.out.push('[');
        if l.scale != 1 {
            write!(self.out, "{}*", l.scale)?;
        }
        self.payload(l.addr)?;
        match l.offset {
            0 => {}
            o if o < 0 => write!(self.out, "-0x{:x}", o.unsigned_abs())?,
            o => write!(self.out, "+0x{o:x}")?,
        }
        if let Some(stride) = &l.stride {
            self.out.push_str(", ");
            self.scalar(stride)?;
        }
        write!(self.out, "]:{}", l.addr_size.name())
    }

    pub(super) fn lsc_typed(&mut self, inst: &Inst, l: &LscTyped) -> fmt::Result {
        self.lsc_name(l.op, Sfid::Tgm, l.caching)?;
        write!(self.out, " {}  ", inst.exec)?;
        let store = l.op.stores();
        if store {
            self.typed_address(l)?;
            self.out.push_str("  ");
        }
        self.payload(l.data)?;
        self.shape(l.data_size, 1, false)?;
        self.channels(l.op, l.channels)?;
        if !store {
            self.out.push_str("  ");
            self.typed_address(l)?;
        }
        self.sources(l.op, l.src1, l.src2)
    }

    fn typed_address(&mut self, l: &LscTyped) -> fmt::Result {
        self.space(l.model, &l.surface)?;
        // The vendor's printer writes all four, its assembler takes no `%null` here; absent means null.
        let used = l
            .coords
            .iter()
            .rposition(|c| !c.is_null())
            .map_or(1, |last| last.saturating_add(1));
        for (i, coord) in l.coords.iter().take(used).enumerate() {
            self.out.push_str(if i == 0 { "[" } else { ", " });
            self.payload(*coord)?;
        }
        write!(self.out, "]:{}", l.addr_size.name())
    }

    pub(super) fn lsc_block2d(&mut self, inst: &Inst, b: &LscBlock2d) -> fmt::Result {
        self.lsc_name(b.op, b.sfid, b.caching)?;
        write!(self.out, " {}  ", inst.exec)?;
        if b.op.stores() {
            self.block_address(b)?;
            self.out.push_str("  ");
        }
        self.payload(b.data)?;
        write!(self.out, ":{}.", b.data_size.name())?;
        if b.blocks != 1 {
            write!(self.out, "{}x", b.blocks)?;
        }
        let letter = |on| if on { 't' } else { 'n' };
        let (transpose, vnni) = (letter(b.transpose), letter(b.vnni));
        write!(self.out, "{}x{}{transpose}{vnni}", b.width, b.height)?;
        if !b.op.stores() {
            self.out.push_str("  ");
            self.block_address(b)?;
        }
        Ok(())
    }

    fn block_address(&mut self, b: &LscBlock2d) -> fmt::Result {
        self.out.push_str("flat");
        let params = match &b.address {
            BlockAddress::Operands(params) => params,
            BlockAddress::Payload { payload, x, y } => {
                self.out.push('[');
                self.payload(*payload)?;
                return write!(self.out, " + ({x},{y})]");
            }
        };
        for (i, p) in params.iter().enumerate() {
            self.out.push_str(if i == 0 { "[" } else { ", " });
            self.scalar(p)?;
        }
        self.out.push(']');
        Ok(())
    }

    pub(super) fn lsc_fence(&mut self, sfid: Sfid, op: u8, scope: Scope) -> fmt::Result {
        let op = FENCE_OPS.get(usize::from(op)).unwrap_or(&"?");
        write!(self.out, "lsc_fence.{}.{op}.{}", sfid.name(), scope.name())
    }
}
