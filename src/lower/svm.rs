//! Messages on 64-bit addresses, `svm_*`.

use super::Lowerer;
use super::error::Fail;
use super::mem::{Message, SurfaceRef, atomic_lanes, legacy_operands};
use super::operand::ChannelMask;
use crate::module::Inst;
use crate::module::*;
use crate::ssa::*;

/// Device memory.
const FLAT: SurfaceRef = SurfaceRef {
    space: Space::Flat,
    index: None,
};

impl Lowerer<'_> {
    /// Lowers an `svm_*` message.
    pub(super) fn svm(&mut self, inst: &Inst, svm: &Svm) -> Result<(), Fail> {
        let lanes = inst.exec.lanes();
        match svm {
            Svm::Block {
                owords, addr, data, ..
            } => {
                let addr = self.scalar_int(addr, Lane::I64)?;
                let m = Message {
                    surface: FLAT,
                    elem: Lane::I32,
                    addr,
                    lanes: 1,
                    mask: ChannelMask::All,
                };
                let n = u32::from(*owords) * 4;
                if inst.stores() {
                    self.block_store(inst, &m, n, *data)
                } else {
                    self.block_load(inst, &m, n, *data)
                }
            }
            Svm::Gather {
                bytes,
                blocks,
                addrs,
                data,
            } => {
                let addr = self.payload(*addrs, 0, lanes, Lane::I64)?;
                let mask = self.channel_mask(inst)?;
                if *bytes == 1 {
                    return self.svm_bytes(
                        inst,
                        addr,
                        mask,
                        u32::from(*blocks),
                        *data,
                        inst.stores(),
                    );
                }
                let Some(elem) = Lane::int(u32::from(*bytes)) else {
                    return Fail::malformed(format!("block of {bytes} bytes"));
                };
                let m = Message {
                    surface: FLAT,
                    elem,
                    addr,
                    lanes,
                    mask,
                };
                let stride = (lanes * u32::from(*bytes)).next_multiple_of(self.grf);
                self.components(inst, &m, u32::from(*blocks), stride, *data, inst.stores())
            }
            Svm::Gather4Scaled {
                channels,
                base,
                offsets,
                data,
            } => {
                let base = self.scalar_int(base, Lane::I64)?;
                // The compiler passes whole addresses as 64-bit offsets from base 0.
                let wide = self
                    .kernel
                    .module()
                    .vars
                    .ty(offsets.var)
                    .is_some_and(|t| t.bytes() == 8);
                let o = if wide {
                    self.payload(*offsets, 0, lanes, Lane::I64)?
                } else {
                    let o = self.payload(*offsets, 0, lanes, Lane::I32)?;
                    self.b.conv(Conv::ZExt, o, Lane::I64)
                };
                let addr = self.b.bin(BinOp::Add, o, base);
                let mask = self.channel_mask(inst)?;
                let m = Message {
                    surface: FLAT,
                    elem: Lane::I32,
                    addr,
                    lanes,
                    mask,
                };
                self.channels(inst, &m, *channels, *data, inst.stores())
            }
            Svm::Atomic {
                op,
                width,
                addrs,
                src0,
                src1,
                dst,
            } => {
                let addr = self.payload(*addrs, 0, lanes, Lane::I64)?;
                let mask = self.channel_mask(inst)?;
                let (elem, reg) = atomic_lanes(*width);
                let m = Message {
                    surface: FLAT,
                    elem,
                    addr,
                    lanes,
                    mask,
                };
                self.atomic(inst, &m, &legacy_operands(*op, *src0, *src1, *dst, reg))
            }
        }
    }

    /// 1, 2 or 4 bytes sit in the lane's dword, 8 in its qword.
    fn svm_bytes(
        &mut self,
        inst: &Inst,
        addr: Value,
        mask: ChannelMask,
        bytes: u32,
        data: Raw,
        store: bool,
    ) -> Result<(), Fail> {
        let lanes = inst.exec.lanes();
        let Some(elem) = Lane::int(bytes) else {
            return Fail::malformed(format!("{bytes} byte blocks"));
        };
        let reg = if bytes == 8 { Lane::I64 } else { Lane::I32 };
        let m = Message {
            surface: FLAT,
            elem,
            addr,
            lanes,
            mask,
        };
        if store {
            let v = self.payload(data, 0, lanes, reg)?;
            let v = self.b.resize(v, elem, false);
            self.store(inst, &m, &[v]);
            return Ok(());
        }
        let v = self.load(inst, &m, 1);
        let v = self.b.resize(v[0], reg, false);
        self.set_payload(data, 0, v, mask.value(), false)
    }

    /// `n` consecutive elements a lane, component `c` at byte `c * stride` of the payload.
    pub(super) fn components(
        &mut self,
        inst: &Inst,
        m: &Message,
        n: u32,
        stride: u32,
        data: Raw,
        store: bool,
    ) -> Result<(), Fail> {
        if n > 8 {
            return Fail::unsupported(format!("{n} elements a lane"));
        }
        if store {
            let mut values = Vec::new();
            for c in 0..n {
                values.push(self.payload(data, c * stride, m.lanes, m.elem)?);
            }
            self.store(inst, m, &values);
            return Ok(());
        }
        for (c, v) in self.load(inst, m, n).into_iter().enumerate() {
            self.set_payload(data, c as u32 * stride, v, m.mask.value(), false)?;
        }
        Ok(())
    }
}
