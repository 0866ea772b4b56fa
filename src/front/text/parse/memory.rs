//! Messages in legacy spelling: surfaces and 64-bit addresses (docs/visa.md, "Text").

use super::super::error::ErrorKind;
use super::super::spelling::{MEDIA_MODIFIERS, RGBA};
use super::{PResult, Parser};
use crate::isa::atomic::LEGACY_ATOMICS;
use crate::isa::{AtomicOp, Exec};
use crate::module::*;

/// A message without execution size works on whole blocks.
const BLOCK: Exec = Exec::SCALAR;

impl<'s> Parser<'s> {
    fn mem(surface: SurfaceId, kind: MemKind) -> Body {
        Body::Mem(Mem { surface, kind })
    }

    /// `(n)`, a count of owords.
    fn owords(&mut self) -> PResult<u8> {
        self.expect(b'(', "`(owords)`")?;
        let n = self.int_of("the number of owords", &[1, 2, 4, 8, 16])?;
        self.expect(b')', "`)`")?;
        Ok(n)
    }

    /// `(owords) surface offset data`.
    pub(super) fn oword(&mut self) -> PResult<(Exec, Body)> {
        let owords = self.owords()?;
        let surface = self.surface()?;
        let offset = self.scalar()?;
        let data = self.raw()?;
        let kind = MemKind::Oword {
            owords,
            offset,
            data,
        };
        Ok((BLOCK, Self::mem(surface, kind)))
    }

    /// `.modifier (width,height) surface plane x y data`.
    pub(super) fn media(&mut self) -> PResult<(Exec, Body)> {
        let modifier = self.suffix_of("a modifier", &MEDIA_MODIFIERS, |s| {
            let code = MEDIA_MODIFIERS.iter().position(|m| *m == s)?;
            u8::try_from(code).ok()
        })?;
        self.expect(b'(', "`(width, height)`")?;
        let width = self.uint8("a width in bytes", 64)?;
        self.expect(b',', "`,`")?;
        let height = self.uint8("a height in rows", 64)?;
        self.expect(b')', "`)`")?;
        let surface = self.surface()?;
        let plane = self.uint8("a plane", u8::MAX)?;
        let x = self.scalar()?;
        let y = self.scalar()?;
        let data = self.raw()?;
        let kind = MemKind::Media {
            modifier,
            plane,
            width,
            height,
            x,
            y,
            data,
        };
        Ok((BLOCK, Self::mem(surface, kind)))
    }

    /// `.bytes (exec) surface global offsets data`.
    pub(super) fn gather(&mut self) -> PResult<(Exec, Body)> {
        let bytes = self.int_suffix("an element size", &[1, 2, 4])?;
        let exec = self.exec()?;
        let surface = self.surface()?;
        let (global, offsets, data) = self.scattered()?;
        let kind = MemKind::Gather {
            bytes,
            modifier: 0,
            global,
            offsets,
            data,
        };
        Ok((exec, Self::mem(surface, kind)))
    }

    fn scattered(&mut self) -> PResult<(Src, Raw, Raw)> {
        Ok((self.scalar()?, self.raw()?, self.raw()?))
    }

    /// `.channels (exec) surface global offsets data`.
    pub(super) fn gather4_scaled(&mut self) -> PResult<(Exec, Body)> {
        let channels = self.channels(RGBA)?;
        let exec = self.exec()?;
        let surface = self.surface()?;
        let (global, offsets, data) = self.scattered()?;
        let kind = MemKind::Gather4Scaled {
            channels,
            global,
            offsets,
            data,
        };
        Ok((exec, Self::mem(surface, kind)))
    }

    /// `.bytes (exec) surface global offsets data`.
    pub(super) fn gather_scaled(&mut self) -> PResult<(Exec, Body)> {
        let bytes = self.int_suffix("a number of bytes", &[1, 2, 4])?;
        let exec = self.exec()?;
        let surface = self.surface()?;
        let (global, offsets, data) = self.scattered()?;
        let kind = MemKind::GatherScaled {
            bytes,
            global,
            offsets,
            data,
        };
        Ok((exec, Self::mem(surface, kind)))
    }

    fn coords(&mut self) -> PResult<[Raw; 4]> {
        Ok([self.raw()?, self.raw()?, self.raw()?, self.raw()?])
    }

    /// `.channels (exec) surface u v r lod data`.
    pub(super) fn typed(&mut self) -> PResult<(Exec, Body)> {
        let channels = self.channels(RGBA)?;
        let exec = self.exec()?;
        let surface = self.surface()?;
        let coords = self.coords()?;
        let data = self.raw()?;
        let kind = MemKind::Typed {
            channels,
            coords,
            data,
        };
        Ok((exec, Self::mem(surface, kind)))
    }

    fn atomic_op(&mut self) -> PResult<AtomicOp> {
        let names: Vec<&str> = LEGACY_ATOMICS.iter().map(|(n, ..)| *n).collect();
        // The ISA's documentation has other names than its tools for these two.
        let documented = [("imin", "minsint"), ("imax", "maxsint")];
        if let Some((_, real)) = documented.into_iter().find(|(d, _)| self.suffix_is(d)) {
            let token = self.peek2();
            let message = format!("unknown atomic operation `{}`", self.text(token));
            let hint = format!("the signed operations are `minsint` and `maxsint`: write `{real}`");
            return Err(self.error_full(
                token,
                ErrorKind::Syntax,
                message,
                String::new(),
                Some(hint),
            ));
        }
        self.suffix_of("an atomic operation", &names, AtomicOp::from_legacy_name)
    }

    fn atomic_width(&mut self, allowed: &[u8]) -> PResult<AtomicWidth> {
        if !self.is(b'.') {
            return Ok(AtomicWidth::W32);
        }
        Ok(match self.int_suffix("an element width", allowed)? {
            16 => AtomicWidth::W16,
            64 => AtomicWidth::W64,
            _ => AtomicWidth::W32,
        })
    }

    /// `.op[.16] (exec) surface offsets src0 src1 dst`.
    pub(super) fn dword_atomic(&mut self) -> PResult<(Exec, Body)> {
        let op = self.atomic_op()?;
        let width = self.atomic_width(&[16, 32])?;
        let exec = self.exec()?;
        let surface = self.surface()?;
        let offsets = self.raw()?;
        let (src0, src1, dst) = (self.raw()?, self.raw()?, self.raw()?);
        let kind = MemKind::DwordAtomic {
            op,
            width,
            offsets,
            src0,
            src1,
            dst,
        };
        Ok((exec, Self::mem(surface, kind)))
    }

    /// `.op[.16] (exec) surface u v r lod src0 src1 dst`.
    pub(super) fn typed_atomic(&mut self) -> PResult<(Exec, Body)> {
        let op = self.atomic_op()?;
        let width = self.atomic_width(&[16, 32])?;
        let exec = self.exec()?;
        let surface = self.surface()?;
        let coords = self.coords()?;
        let (src0, src1, dst) = (self.raw()?, self.raw()?, self.raw()?);
        let kind = MemKind::TypedAtomic {
            op,
            width,
            coords,
            src0,
            src1,
            dst,
        };
        Ok((exec, Self::mem(surface, kind)))
    }

    /// `.blocks (exec) surface offsets data`.
    pub(super) fn qword(&mut self) -> PResult<(Exec, Body)> {
        let blocks = self.int_suffix("a number of qwords", &[1, 2, 4, 8])?;
        let exec = self.exec()?;
        let surface = self.surface()?;
        let (offsets, data) = (self.raw()?, self.raw()?);
        let kind = MemKind::Qword {
            blocks,
            offsets,
            data,
        };
        Ok((exec, Self::mem(surface, kind)))
    }

    /// `[.aligned|.unaligned] (owords) address data`.
    pub(super) fn svm_block(&mut self) -> PResult<(Exec, Body)> {
        let unaligned = self.is(b'.')
            && self.suffix_of("an alignment", &["aligned", "unaligned"], |s| match s {
                "aligned" => Some(false),
                "unaligned" => Some(true),
                _ => None,
            })?;
        let owords = self.owords()?;
        let addr = self.scalar()?;
        let data = self.raw()?;
        Ok((
            BLOCK,
            Body::Svm(Svm::Block {
                owords,
                unaligned,
                addr,
                data,
            }),
        ))
    }

    /// `.bytes.blocks (exec) addresses data`.
    pub(super) fn svm_gather(&mut self) -> PResult<(Exec, Body)> {
        let bytes = self.int_suffix("a block size in bytes", &[1, 4, 8])?;
        let blocks = self.int_suffix("a number of blocks", &[1, 2, 4, 8])?;
        let exec = self.exec()?;
        let (addrs, data) = (self.raw()?, self.raw()?);
        Ok((
            exec,
            Body::Svm(Svm::Gather {
                bytes,
                blocks,
                addrs,
                data,
            }),
        ))
    }

    /// `.channels (exec) base offsets data`.
    pub(super) fn svm_gather4_scaled(&mut self) -> PResult<(Exec, Body)> {
        let channels = self.channels(RGBA)?;
        let exec = self.exec()?;
        let (base, offsets, data) = self.scattered()?;
        Ok((
            exec,
            Body::Svm(Svm::Gather4Scaled {
                channels,
                base,
                offsets,
                data,
            }),
        ))
    }

    /// `.op[.16|.32|.64] (exec) addresses dst src0 src1`.
    pub(super) fn svm_atomic(&mut self) -> PResult<(Exec, Body)> {
        let op = self.atomic_op()?;
        let width = self.atomic_width(&[16, 32, 64])?;
        let exec = self.exec()?;
        let (addrs, dst) = (self.raw()?, self.raw()?);
        let (src0, src1) = (self.raw()?, self.raw()?);
        Ok((
            exec,
            Body::Svm(Svm::Atomic {
                op,
                width,
                addrs,
                src0,
                src1,
                dst,
            }),
        ))
    }

    /// `.signal` or `.wait`.
    pub(super) fn signal_or_wait(&mut self) -> PResult<bool> {
        self.suffix_of("an action", &["signal", "wait"], |s| match s {
            "signal" => Some(true),
            "wait" => Some(false),
            _ => None,
        })
    }

    /// `.signal id count` or `.wait id`; later tools write `.signal id type producers consumers`.
    pub(super) fn nbarrier(&mut self) -> PResult<Body> {
        let signal = self.signal_or_wait()?;
        let id = self.scalar()?;
        if !signal {
            let step = NamedBarrier::Wait;
            return Ok(Body::Nbarrier { id, step });
        }
        let first = self.scalar()?;
        let step = if self.peek().kind == super::TokenKind::End {
            NamedBarrier::Signal { threads: first }
        } else {
            NamedBarrier::SignalAs {
                role: first,
                producers: self.scalar()?,
                consumers: self.scalar()?,
            }
        };
        Ok(Body::Nbarrier { id, step })
    }
}
