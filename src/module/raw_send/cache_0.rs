//! Data cache 0: blocks of owords, scattered elements, fences.
//!
//! Of a descriptor, bits 18:14 say the type, 19 that there is a header, 7:0 the entry of the binding table.

use super::{Decoded, Refusal, Sent};
use crate::isa::send::{cache_0, reserved};
use crate::isa::{Exec, Opcode, Platform, Type};
use crate::module::{Body, Mem, MemKind, Raw, Src, SurfaceId};

/// Number of owords by code; one oword may also be the high half of a register, where the vendor's assembler takes no operand.
const OWORDS: [Result<u8, Refusal>; 8] = [
    Ok(1),
    Err("one oword in the high half of a register, which is no operand of an instruction"),
    Ok(2),
    Ok(4),
    Ok(8),
    Ok(16),
    Err(OTHER_BLOCK),
    Err(OTHER_BLOCK),
];

pub(super) const OTHER_BLOCK: Refusal = "blocks of this kind are no instruction";
const OTHER_SCRATCH: Refusal = "its header may count from other memory than the thread's scratch";

/// Mask bits of a fence: it is waited for, and it is about local memory.
const COMMIT: u8 = 1;
const LOCAL: u8 = 1 << 5;

pub(super) const ZERO: Src = Src::Imm {
    bits: 0,
    ty: Type::Ud,
};

impl Sent<'_> {
    /// Number of owords of a block, bits 10:8.
    pub(super) fn owords(&self) -> Result<u8, Refusal> {
        let known = OWORDS.get(self.bits(10, 8) as usize);
        known.copied().unwrap_or(Err(OTHER_BLOCK))
    }

    /// The surface that bits 7:0 name.
    pub(super) fn surface(&mut self) -> Result<SurfaceId, Refusal> {
        match self.bits(7, 0) as u8 {
            reserved::LOCAL => Ok(SurfaceId::SLM),
            // The same memory: whether caches agree with other devices is not seen here.
            reserved::STATELESS | reserved::STATELESS_NONCOHERENT => {
                if self.has_header() && !self.own_scratch(self.header()?) {
                    return Err(OTHER_SCRATCH);
                }
                Ok(SurfaceId::SCRATCH)
            }
            reserved::BINDLESS => self.word().map(SurfaceId::word),
            entry => Ok(SurfaceId::entry(entry)),
        }
    }

    /// Eight lanes, or sixteen with bit 8.
    fn scattered_lanes(&self) -> u32 {
        8 << self.bits(8, 8)
    }

    pub(super) fn cache_0(&mut self) -> Result<Decoded, Refusal> {
        use Opcode as O;
        match self.bits(18, 14) {
            cache_0::SCRATCH.. => self.scratch_block(),
            cache_0::OWORD_READ => self.oword_block(O::OwordLd),
            cache_0::OWORD_READ_UNALIGNED => self.oword_block(O::OwordLdUnaligned),
            cache_0::OWORD_WRITE => self.oword_block(O::OwordSt),
            cache_0::DWORD_READ => self.dwords(O::Gather),
            cache_0::DWORD_WRITE => self.dwords(O::Scatter),
            cache_0::BYTE_READ => self.bytes(O::GatherScaled),
            cache_0::BYTE_WRITE => self.bytes(O::ScatterScaled),
            cache_0::QWORD_READ => self.qwords(O::QwGather),
            cache_0::QWORD_WRITE => self.qwords(O::QwScatter),
            cache_0::FENCE => Ok(self.fence()),
            _ => Err("no instruction is such a message"),
        }
    }

    /// A block whose offset is the third dword of the header.
    fn oword_block(&mut self, op: Opcode) -> Result<Decoded, Refusal> {
        // Bit 13 is a hint for caches.
        if self.bits(12, 11) != 0 {
            return Err(OTHER_BLOCK);
        }
        let owords = self.owords()?;
        let (header, data) = self.header_and_data(owords, op.stores())?;
        let surface = self.surface()?;
        if surface == SurfaceId::SLM && self.platform == Platform::Skl {
            return Err("there are no blocks of local memory on this device");
        }
        let offset = self.operand(header, 8, Type::Ud)?;
        let kind = MemKind::Oword {
            owords,
            offset,
            data,
        };
        self.whole(op, Body::Mem(Mem { surface, kind }))
    }

    /// A header, and a block after it or in the result.
    pub(super) fn header_and_data(&self, owords: u8, store: bool) -> Result<(Raw, Raw), Refusal> {
        if !self.has_header() {
            return Err("it has no header, which says where the block is");
        }
        let bytes = u32::from(owords).saturating_mul(16);
        match store {
            true => {
                let [data] = self.behind([bytes])?;
                Ok((self.header()?, data))
            }
            false => {
                let [] = self.behind([])?;
                Ok((self.header()?, self.result()?))
            }
        }
    }

    /// A block of the thread's scratch memory: bits 13:12 say one, two or four registers of 32 bytes, 11:0 the first, and 17 that
    /// they are written. Bit 16 is about masks of older devices, and there is none. The vendor's assembler spills so.
    fn scratch_block(&mut self) -> Result<Decoded, Refusal> {
        if self.platform.has_wide_registers() {
            return Err("no instruction is such a message on this device");
        }
        // Its own bits are where others have the surface, so that none is in a register.
        self.extended()?;
        if self.bits(15, 14) != 0 || self.bits(13, 12) == 3 {
            return Err(OTHER_BLOCK);
        }
        let owords = 2 << self.bits(13, 12);
        let op = match self.bits(17, 17) {
            0 => Opcode::OwordLd,
            _ => Opcode::OwordSt,
        };
        let (header, data) = self.header_and_data(owords, op.stores())?;
        if !self.own_scratch(header) {
            return Err(OTHER_SCRATCH);
        }
        let offset = Src::Imm {
            bits: u64::from(self.bits(11, 0)) * 2,
            ty: Type::Ud,
        };
        let kind = MemKind::Oword {
            owords,
            offset,
            data,
        };
        let surface = SurfaceId::SCRATCH;
        self.whole(op, Body::Mem(Mem { surface, kind }))
    }

    /// Offsets of lanes, and data after them or in the result.
    pub(super) fn lanes_and_data(
        &self,
        addresses: u32,
        data: u32,
        store: bool,
    ) -> Result<(Raw, Raw), Refusal> {
        if store {
            let [addresses, data] = self.behind([addresses, data])?;
            return Ok((addresses, data));
        }
        let [addresses] = self.behind([addresses])?;
        Ok((addresses, self.result()?))
    }

    /// Dwords at offsets in dwords: bits 9:8 say eight or sixteen lanes. A header has an offset of all of them in its third dword.
    fn dwords(&mut self, op: Opcode) -> Result<Decoded, Refusal> {
        let store = op.stores();
        if self.bits(9, 9) == 0 || self.bits(12, 10) != 0 || (store && self.bits(13, 13) != 0) {
            return Err("no instruction is such a message");
        }
        let lanes = self.scattered_lanes();
        self.for_lanes(lanes, 4)?;
        let bytes = self.lane_bytes(lanes, 4);
        let (offsets, data) = self.lanes_and_data(bytes, bytes, store)?;
        let global = match self.has_header() {
            true => self.operand(self.header()?, 8, Type::Ud)?,
            false => ZERO,
        };
        let surface = self.surface()?;
        if surface == SurfaceId::SLM {
            return Err("no instruction reaches local memory so");
        }
        let kind = MemKind::Gather {
            bytes: 4,
            modifier: 0,
            global,
            offsets,
            data,
        };
        Ok(self.lanewise(op, Body::Mem(Mem { surface, kind })))
    }

    /// One, two or four bytes, bits 11:10, at offsets in bytes; bit 8 says sixteen lanes. A header may have an offset of all of
    /// them in its third dword, which the vendor's assembler leaves zero.
    fn bytes(&mut self, op: Opcode) -> Result<Decoded, Refusal> {
        let store = op.stores();
        let size = self.bits(11, 10);
        let others = self.bits(9, 9) | self.bits(12, 12);
        if size == 3 || others != 0 || (store && self.bits(13, 13) != 0) {
            return Err("no instruction is such a message");
        }
        if self.has_header() && self.known(self.header()?, 8) != Some(0) {
            return Err("its header may have an offset of all lanes");
        }
        let lanes = self.scattered_lanes();
        self.for_lanes(lanes, 4)?;
        let bytes = self.lane_bytes(lanes, 4);
        let (offsets, data) = self.lanes_and_data(bytes, bytes, store)?;
        let kind = MemKind::GatherScaled {
            bytes: 1 << size,
            global: ZERO,
            offsets,
            data,
        };
        let surface = self.surface()?;
        Ok(self.lanewise(op, Body::Mem(Mem { surface, kind })))
    }

    /// One, two or four qwords a lane, bits 11:10; bit 8 says sixteen lanes.
    fn qwords(&mut self, op: Opcode) -> Result<Decoded, Refusal> {
        let size = self.bits(11, 10);
        if !op.info().platforms.contains(self.platform) {
            return Err("no instruction is such a message on this device");
        }
        if size == 3 || self.bits(9, 9) == 0 || self.bits(13, 12) != 0 {
            return Err("no instruction is such a message");
        }
        self.without_header()?;
        let lanes = self.scattered_lanes();
        self.for_lanes(lanes, 4)?;
        self.for_lanes(lanes, 8)?;
        let data = self.lane_bytes(lanes, 8) << size;
        let store = op.stores();
        let (offsets, data) = self.lanes_and_data(self.lane_bytes(lanes, 4), data, store)?;
        let kind = MemKind::Qword {
            blocks: 1 << size,
            offsets,
            data,
        };
        let surface = self.surface()?;
        Ok(self.lanewise(op, Body::Mem(Mem { surface, kind })))
    }

    /// What comes back says only that it is done. A fence under a mask is one for all.
    fn fence(&self) -> Decoded {
        let local = self.bits(7, 0) as u8 == reserved::LOCAL;
        let mask = if local { COMMIT | LOCAL } else { COMMIT };
        Decoded {
            op: Opcode::Fence,
            exec: Exec::SCALAR,
            body: Body::Fence(mask),
        }
    }
}
