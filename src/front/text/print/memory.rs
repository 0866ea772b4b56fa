//! Messages in legacy spelling.

use super::super::spelling::{MEDIA_MODIFIERS, RGBA};
use super::{Printer, letters};
use crate::isa::AtomicOp;
use crate::module::*;
use std::fmt::{self, Write};

impl Printer<'_> {
    pub(super) fn mem(&mut self, inst: &Inst, mem: &Mem) -> fmt::Result {
        let name = inst.op.mnemonic();
        let exec = inst.exec;
        let t = self.surface_name(mem.surface);
        match &mem.kind {
            MemKind::Oword {
                owords,
                offset,
                data,
            } => {
                write!(self.out, "{name} ({owords}) {t} ")?;
                self.src(offset)?;
                self.spaced_raw(*data)
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
                let modifier = MEDIA_MODIFIERS
                    .get(usize::from(*modifier))
                    .unwrap_or(&"nomod");
                write!(
                    self.out,
                    "{name}.{modifier} ({width},{height}) {t} {plane} "
                )?;
                self.src(x)?;
                self.out.push(' ');
                self.src(y)?;
                self.spaced_raw(*data)
            }
            MemKind::Gather {
                bytes,
                global,
                offsets,
                data,
                ..
            }
            | MemKind::GatherScaled {
                bytes,
                global,
                offsets,
                data,
            } => {
                write!(self.out, "{name}.{bytes} {exec} {t} ")?;
                self.src(global)?;
                self.spaced_raw(*offsets)?;
                self.spaced_raw(*data)
            }
            MemKind::Gather4Scaled {
                channels,
                global,
                offsets,
                data,
            } => {
                write!(self.out, "{name}.{} {exec} {t} ", letters(*channels, RGBA))?;
                self.src(global)?;
                self.spaced_raw(*offsets)?;
                self.spaced_raw(*data)
            }
            kind => self.mem_payloads(inst, &t, kind),
        }
    }

    /// Messages whose operands are all payloads.
    fn mem_payloads(&mut self, inst: &Inst, t: &str, kind: &MemKind) -> fmt::Result {
        let name = inst.op.mnemonic();
        let exec = inst.exec;
        match kind {
            MemKind::Typed {
                channels,
                coords,
                data,
            } => {
                write!(self.out, "{name}.{} {exec} {t}", letters(*channels, RGBA))?;
                self.raws(coords)?;
                self.spaced_raw(*data)
            }
            MemKind::DwordAtomic {
                op,
                width,
                offsets,
                src0,
                src1,
                dst,
            } => {
                write!(
                    self.out,
                    "{name}.{}{} {exec} {t}",
                    atomic(*op),
                    suffix(*width)
                )?;
                self.raws(&[*offsets, *src0, *src1, *dst])
            }
            MemKind::TypedAtomic {
                op,
                width,
                coords,
                src0,
                src1,
                dst,
            } => {
                write!(
                    self.out,
                    "{name}.{}{} {exec} {t}",
                    atomic(*op),
                    suffix(*width)
                )?;
                self.raws(coords)?;
                self.raws(&[*src0, *src1, *dst])
            }
            MemKind::Qword {
                blocks,
                offsets,
                data,
            } => {
                write!(self.out, "{name}.{blocks} {exec} {t}")?;
                self.raws(&[*offsets, *data])
            }
            MemKind::Oword { .. }
            | MemKind::Media { .. }
            | MemKind::Gather { .. }
            | MemKind::GatherScaled { .. }
            | MemKind::Gather4Scaled { .. } => Ok(()),
        }
    }

    fn raws(&mut self, raws: &[Raw]) -> fmt::Result {
        raws.iter().try_for_each(|r| self.spaced_raw(*r))
    }

    pub(super) fn svm(&mut self, inst: &Inst, svm: &Svm) -> fmt::Result {
        let name = inst.op.mnemonic();
        let exec = inst.exec;
        match svm {
            Svm::Block {
                owords,
                unaligned,
                addr,
                data,
                ..
            } => {
                let suffix = if *unaligned { ".unaligned" } else { "" };
                write!(self.out, "{name}{suffix} ({owords}) ")?;
                self.src(addr)?;
                self.spaced_raw(*data)
            }
            Svm::Gather {
                bytes,
                blocks,
                addrs,
                data,
                ..
            } => {
                write!(self.out, "{name}.{bytes}.{blocks} {exec}")?;
                self.raws(&[*addrs, *data])
            }
            Svm::Gather4Scaled {
                channels,
                base,
                offsets,
                data,
                ..
            } => {
                write!(self.out, "{name}.{} {exec} ", letters(*channels, RGBA))?;
                self.src(base)?;
                self.raws(&[*offsets, *data])
            }
            Svm::Atomic {
                op,
                width,
                addrs,
                src0,
                src1,
                dst,
            } => {
                write!(self.out, "{name}.{}{} {exec}", atomic(*op), suffix(*width))?;
                self.raws(&[*addrs, *dst, *src0, *src1])
            }
        }
    }
}

fn atomic(op: AtomicOp) -> &'static str {
    op.legacy().map_or("?", |(name, _)| name)
}

fn suffix(width: AtomicWidth) -> &'static str {
    match width {
        AtomicWidth::W16 => ".16",
        AtomicWidth::W32 => "",
        AtomicWidth::W64 => ".64",
    }
}
