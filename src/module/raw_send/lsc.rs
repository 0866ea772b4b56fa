//! Messages of the LSC ports.
//!
//! Of a descriptor, bits 5:0 say the operation, 8:7 the width of addresses, 11:9 of data, 14:12 elements and 15 that they are
//! transposed (15:12 channels for operations on four), 30:29 how the surface is named, which is in the extended descriptor.
//! No device here adds a number in a descriptor to addresses.

use super::cache_1::four;
use super::payload::further;
use super::{Decoded, Refusal, Sent, constant};
use crate::isa::lsc::{AddrModel, AddrSize, DataSize, LscOp, Scope, Sfid, VECTOR_LENGTHS};
use crate::isa::send::{LSC_FENCE, function};
use crate::isa::{Exec, Opcode, Type};
use crate::module::{
    BlockAddress, Body, Caching, Channels, Lsc, LscBlock2d, LscScalar, LscSurface, LscTyped,
    Origin, Raw,
};

/// Caches are not modelled.
const CACHING: Caching = Caching { l1: 0, l3: 0 };

/// How the elements of a message lie.
struct ElementShape {
    addr_size: AddrSize,
    data_size: DataSize,
    elems: u8,
    transposed: bool,
    channels: Channels,
}

/// What an operation reads and writes beside addresses.
struct Data {
    /// Destination of loads and atomics, source of stores.
    data: Raw,
    src1: Raw,
    src2: Raw,
}

impl Sent<'_> {
    pub(super) fn lsc(&mut self) -> Result<Decoded, Refusal> {
        let sfid = match self.send.function() {
            function::SHARED_LOCAL => Sfid::Slm,
            function::TYPED_GLOBAL => Sfid::Tgm,
            _ => Sfid::Ugm,
        };
        if self.bits(5, 0) == LSC_FENCE {
            return self.lsc_fence(sfid);
        }
        let op =
            LscOp::from_code(self.bits(5, 0) as u8).ok_or("no instruction is such a message")?;
        match (sfid, op) {
            (Sfid::Tgm, _) => self.lsc_typed(op),
            (_, LscOp::LoadBlock2d | LscOp::StoreBlock2d) => self.lsc_block2d(sfid, op),
            _ => self.lsc_untyped(sfid, op),
        }
    }

    /// Bits 11:9 say the scope, 14:12 what becomes of caches.
    fn lsc_fence(&self, sfid: Sfid) -> Result<Decoded, Refusal> {
        let scope = Scope::from_code(self.bits(11, 9) as u8).ok_or("a fence of no known scope")?;
        let op = self.bits(14, 12) as u8;
        if usize::from(op) >= crate::isa::lsc::FENCE_OPS.len() {
            return Err("a fence of no known kind");
        }
        Ok(Decoded {
            op: Opcode::LscFence,
            exec: Exec::SCALAR,
            body: Body::LscFence { sfid, op, scope },
        })
    }

    /// The surface: an entry of the binding table in bits 31:24 of the extended descriptor, or of the heap of surface states
    /// in bits 31:11, or in all of a register.
    fn lsc_surface(&mut self) -> Result<(AddrModel, LscSurface), Refusal> {
        match self.bits(30, 29) {
            // The vendor's reader finds nothing else there on these devices.
            0 if self.extended()? >> 12 == 0 => Ok((AddrModel::Flat, LscSurface::None)),
            0 => Err("its extended descriptor has what these devices do not know"),
            1 => Ok((AddrModel::Bss, self.in_heap()?)),
            2 => Ok((AddrModel::Ss, self.in_heap()?)),
            _ => {
                let entry = u64::from(self.extended()? >> 24);
                Ok((AddrModel::Bti, LscSurface::Imm(entry)))
            }
        }
    }

    fn in_heap(&mut self) -> Result<LscSurface, Refusal> {
        if let Some(ex) = constant(&self.send.ex_desc) {
            return Ok(LscSurface::Imm(u64::from(ex & !0x7FF)));
        }
        let (var, row, col) = (self.word()?, 0, 0);
        Ok(LscSurface::Var(Origin { var, row, col }))
    }

    fn lsc_shape(&self, op: LscOp) -> Result<ElementShape, Refusal> {
        let addr_size =
            AddrSize::from_code(self.bits(8, 7) as u8).ok_or("addresses of no known width")?;
        let code = self.bits(11, 9) as u8;
        let data_size = code
            .checked_add(1)
            .and_then(DataSize::from_code)
            .ok_or("elements of no known width")?;
        let (elems, transposed, channels) = match op {
            LscOp::LoadQuad | LscOp::StoreQuad => (1, false, self.bits(15, 12) as u8),
            _ => {
                let elems = VECTOR_LENGTHS.get(self.bits(14, 12) as usize);
                let elems = elems.ok_or("vectors of no known length")?;
                (*elems, self.bits(15, 15) != 0, 0)
            }
        };
        if matches!(op, LscOp::LoadQuad | LscOp::StoreQuad) && channels == 0 {
            return Err("it has no channels");
        }
        if transposed && self.inst.exec.lanes() != 1 {
            return Err("it is transposed, and of several lanes");
        }
        Ok(ElementShape {
            addr_size,
            data_size,
            elems,
            transposed,
            channels: Channels(channels),
        })
    }

    /// The second source, which has what is written.
    fn second(&self) -> Result<Raw, Refusal> {
        match self.send.split && !self.send.src1.is_null() {
            true => Ok(self.send.src1),
            false => Err("what it writes is not in a source of its own"),
        }
    }

    /// Data of an operation; operands of atomics follow each other, a given number of bytes each.
    fn lsc_data(&self, op: LscOp, bytes: u32) -> Result<Data, Refusal> {
        let (data, [src1, src2]) = match op {
            LscOp::Load | LscOp::LoadQuad | LscOp::LoadStrided | LscOp::LoadStatus => {
                (self.send.dst, [Raw::NULL; 2])
            }
            LscOp::Store | LscOp::StoreQuad | LscOp::StoreStrided => {
                (self.second()?, [Raw::NULL; 2])
            }
            LscOp::Atomic(op) => {
                let operands = match op.sources() {
                    0 => [Raw::NULL; 2],
                    1 => [self.second()?, Raw::NULL],
                    _ => [self.second()?, further(self.second()?, bytes)?],
                };
                (self.send.dst, operands)
            }
            LscOp::LoadBlock2d | LscOp::StoreBlock2d => return Err("a block has other operands"),
        };
        Ok(Data { data, src1, src2 })
    }

    fn lsc_untyped(&mut self, sfid: Sfid, op: LscOp) -> Result<Decoded, Refusal> {
        let shape = self.lsc_shape(op)?;
        let (model, surface) = self.lsc_surface()?;
        if sfid == Sfid::Slm && model != AddrModel::Flat {
            return Err("local memory has no surface");
        }
        if matches!(op, LscOp::Atomic(_)) && (shape.elems != 1 || shape.transposed) {
            return Err("an atomic on vectors");
        }
        if self.send.src0.is_null() {
            return Err("its addresses are missing");
        }
        let lanes = self.inst.exec.lanes().max(self.platform.lsc_min_lanes());
        let operand = self.lane_bytes(lanes, shape.data_size.register_bytes());
        let d = self.lsc_data(op, operand)?;
        // The distance of lanes is the third dword, after the first address.
        let stride = match op {
            LscOp::LoadStrided | LscOp::StoreStrided => {
                Some(LscScalar::Var(self.element(self.send.src0, 8, Type::Ud)?))
            }
            _ => None,
        };
        Ok(self.lanewise(
            Opcode::Lsc,
            Body::Lsc(Lsc {
                op,
                sfid,
                caching: CACHING,
                model,
                surface,
                scale: 1,
                offset: 0,
                addr_size: shape.addr_size,
                data_size: shape.data_size,
                transposed: shape.transposed,
                elems: shape.elems,
                channels: shape.channels,
                addr: self.send.src0,
                stride,
                data: d.data,
                src1: d.src1,
                src2: d.src2,
            }),
        ))
    }

    /// Texels: one register or two for each coordinate, as many as bits 28:25 say in all.
    fn lsc_typed(&mut self, op: LscOp) -> Result<Decoded, Refusal> {
        if !matches!(op, LscOp::LoadQuad | LscOp::StoreQuad | LscOp::Atomic(_)) {
            return Err("no instruction is such a message to texels");
        }
        let shape = self.lsc_shape(op)?;
        let (model, surface) = self.lsc_surface()?;
        if model == AddrModel::Flat || shape.addr_size != AddrSize::A32 {
            return Err("texels are those of a surface, at coordinates of 32 bits");
        }
        if shape.elems != 1 || shape.transposed {
            return Err("texels are no vectors");
        }
        let bytes = self.lane_bytes(self.inst.exec.lanes(), 4);
        let all = self
            .first_registers()
            .saturating_mul(self.platform.grf_bytes());
        let count = all / bytes;
        if !(1..=4).contains(&count) || !all.is_multiple_of(bytes) {
            return Err("its first source is not one to four coordinates");
        }
        let coords = vec![bytes; count as usize];
        let coords = four(&self.parts_of(&coords, self.first_registers())?);
        let d = self.lsc_data(op, bytes)?;
        // Atomics have no channels, and vISA says the first.
        let channels = match op {
            LscOp::Atomic(_) => Channels(0),
            _ => shape.channels,
        };
        Ok(self.lanewise(
            Opcode::LscTyped,
            Body::LscTyped(LscTyped {
                op,
                caching: CACHING,
                model,
                surface,
                addr_size: shape.addr_size,
                data_size: shape.data_size,
                channels,
                coords,
                data: d.data,
                src1: d.src1,
                src2: d.src2,
            }),
        ))
    }

    /// Blocks in two dimensions: bit 7 packs, 15 transposes. The first source has the address, width, height and pitch of the
    /// memory, the corner of the block, and its size: bits 7:0 the width, 15:8 the height, 23:16 the number, all less one.
    fn lsc_block2d(&mut self, sfid: Sfid, op: LscOp) -> Result<Decoded, Refusal> {
        if sfid != Sfid::Ugm || self.lsc_surface()?.0 != AddrModel::Flat {
            return Err("blocks are those of flat memory");
        }
        let store = op == LscOp::StoreBlock2d;
        let code = self.bits(11, 9) as u8;
        let data_size = match code {
            0..=3 => DataSize::from_code(code.saturating_add(1)),
            _ => None,
        };
        let data_size = data_size.ok_or("elements of no known width")?;
        if self.bits(8, 8) != 0 || self.bits(14, 12) != 0 {
            return Err("no instruction is such a block");
        }
        let header = self.send.src0;
        let size = self
            .known(header, 28)
            .ok_or("the size in its first source is not known to be the same each time")?;
        if size >> 24 != 0 {
            return Err("no instruction has a block like that in its first source");
        }
        let [width, height, number, _] = size.to_le_bytes();
        let mut params = vec![LscScalar::Var(self.element(header, 0, Type::Uq)?)];
        for byte in [8, 12, 16, 20, 24] {
            params.push(LscScalar::Var(self.element(header, byte, Type::Ud)?));
        }
        let data = if store { self.second()? } else { self.send.dst };
        Ok(self.lanewise(
            Opcode::Lsc,
            Body::LscBlock2d(LscBlock2d {
                op,
                sfid,
                caching: CACHING,
                data_size,
                blocks: number.checked_add(1).ok_or("too many blocks")?,
                width: u16::from(width).saturating_add(1),
                height: u16::from(height).saturating_add(1),
                transpose: self.bits(15, 15) != 0,
                vnni: self.bits(7, 7) != 0,
                address: BlockAddress::Operands(params),
                data,
            }),
        ))
    }
}
