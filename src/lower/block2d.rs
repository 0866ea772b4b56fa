//! Two-dimensional blocks, `lsc_load_block2d` and `lsc_store_block2d` (docs/visa.md, "Memory").

use super::Lowerer;
use super::error::Fail;
use super::operand::ChannelMask;
use crate::isa::lsc::{DataSize, Sfid};
use crate::module::Inst;
use crate::module::*;
use crate::ssa::*;

impl Lowerer<'_> {
    /// Lowers a block message.
    pub(super) fn lsc_block2d(&mut self, inst: &Inst, b: &LscBlock2d) -> Result<(), Fail> {
        if !matches!(b.sfid, Sfid::Ugm | Sfid::Ugml) {
            return Fail::unsupported(format!("2D blocks of {}", b.sfid.name()));
        }
        if inst.stores() && (b.blocks != 1 || b.transpose || b.vnni) {
            return Fail::malformed("a store has one block, neither transposed nor packed");
        }
        let mut access = self.rectangle(b)?;
        // A load whose result nothing gets only warms caches.
        if !inst.stores() && b.data.is_null() {
            return Ok(());
        }
        // One message for all channels, sent when any of them is enabled.
        let mask = match self.channel_mask(inst)? {
            ChannelMask::Lanes(v) if inst.exec.lanes() > 1 => {
                let any = self.b.op(Op::MaskAny, vec![v], Ty::scalar(Lane::I1));
                ChannelMask::Uniform(any)
            }
            mask => mask,
        };
        let mut args = vec![mask.lanes(&mut self.b, 1)];
        self.block_address(&b.address, &mut args)?;
        if args.len() != 7 {
            return Fail::malformed("a 2D block has six parameters");
        }
        let kind = if inst.stores() {
            AccessKind::Write
        } else {
            AccessKind::Read
        };
        access.site = self.site(inst, Space::Flat, kind, access.elem.bytes());
        if inst.stores() {
            for r in 0..access.registers() {
                let data = raw_at(b.data, r * self.grf);
                args.push(self.block_payload(data, access.lanes(), access.elem)?);
            }
            self.b.effect(Op::Store2d(access), args);
            return Ok(());
        }
        let register = Ty::vector(access.elem, access.lanes() as u16);
        let tys = vec![register; access.registers() as usize];
        let line = self.b.line;
        let i = self
            .b
            .f
            .push(self.b.cur, Op::Load2d(access), args, &tys, line);
        let results = self.b.f.inst(i).results.clone();
        for (r, v) in results.into_iter().enumerate() {
            self.set_payload(b.data, r as u32 * self.grf, v, mask.value(), true)?;
        }
        Ok(())
    }

    /// Base, width - 1, height - 1, pitch - 1, column and row.
    fn block_address(&mut self, a: &BlockAddress, args: &mut Vec<Value>) -> Result<(), Fail> {
        match a {
            BlockAddress::Operands(params) => {
                for (i, p) in params.iter().enumerate() {
                    let lane = if i == 0 { Lane::I64 } else { Lane::I32 };
                    args.push(match p {
                        LscScalar::Imm(n) => {
                            self.b.bits(lane, *n & (u64::MAX >> (64 - lane.bits())))
                        }
                        LscScalar::Var(o) => self.lsc_scalar(*o, lane)?,
                    });
                }
            }
            BlockAddress::Payload { payload, x, y } => {
                let base = self.block_payload(*payload, 1, Lane::I64)?;
                args.push(self.b.lane(base, 0));
                for (dword, more) in [(2, 0), (3, 0), (4, 0), (5, *x), (6, *y)] {
                    let v = self.block_payload(raw_at(*payload, 4 * dword), 1, Lane::I32)?;
                    let v = self.b.lane(v, 0);
                    args.push(match more {
                        0 => v,
                        more => self.b.bin_imm(BinOp::Add, v, more.into()),
                    });
                }
            }
        }
        Ok(())
    }

    fn rectangle(&self, b: &LscBlock2d) -> Result<Access2d, Fail> {
        let elem = match b.data_size {
            DataSize::D8 => Lane::I8,
            DataSize::D16 => Lane::I16,
            DataSize::D32 => Lane::I32,
            DataSize::D64 => Lane::I64,
            other => return Fail::malformed(format!("2D blocks of {}", other.name())),
        };
        let small = |n: u16| u8::try_from(n).unwrap_or(0);
        let access = Access2d {
            elem,
            blocks: b.blocks,
            width: small(b.width),
            height: small(b.height),
            transpose: b.transpose,
            packed: b.vnni,
            register: self.grf as u8,
            site: 0,
        };
        if access.is_possible() {
            Ok(access)
        } else {
            Fail::malformed("a block that fills no dwords, or more than 32 registers")
        }
    }
}

/// A payload `bytes` further.
fn raw_at(raw: Raw, bytes: u32) -> Raw {
    Raw {
        offset: raw.offset + bytes,
        ..raw
    }
}
