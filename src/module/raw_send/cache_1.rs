//! Data cache 1: dwords of surfaces and of 64-bit addresses, atomics, texels, two-dimensional blocks.
//!
//! Of a descriptor, bits 18:14 say the type, 19 that there is a header, 7:0 the entry of the binding table.

use super::cache_0::{OTHER_BLOCK, ZERO};
use super::{Decoded, Refusal, Sent};
use crate::isa::send::{cache_1, reserved};
use crate::isa::{AtomicOp, Opcode, Type};
use crate::module::{AtomicWidth, Body, Channels, Mem, MemKind, Raw, Src, SurfaceId, Svm};

/// What offsets of 64 bits count from.
const NO_BASE: Src = Src::Imm {
    bits: 0,
    ty: Type::Uq,
};

/// What an atomic message works on.
#[derive(Clone, Copy)]
struct Atomic {
    op: AtomicOp,
    width: AtomicWidth,
    /// Lanes of the message.
    lanes: u32,
}

impl Atomic {
    /// Bytes of an operand of a lane.
    fn bytes(self) -> u32 {
        match self.width {
            AtomicWidth::W16 | AtomicWidth::W32 => 4,
            AtomicWidth::W64 => 8,
        }
    }
}

/// Operands of an atomic as rows of the table name them.
struct Operands {
    src0: Raw,
    src1: Raw,
    dst: Raw,
}

impl Sent<'_> {
    pub(super) fn cache_1(&mut self) -> Result<Decoded, Refusal> {
        use Opcode as O;
        match self.bits(18, 14) {
            cache_1::READ => self.untyped(O::Gather4Scaled),
            cache_1::WRITE => self.untyped(O::Scatter4Scaled),
            cache_1::A64_READ => self.untyped_a64(false),
            cache_1::A64_WRITE => self.untyped_a64(true),
            cache_1::ATOMIC => self.atomic(AtomicWidth::W32, false),
            cache_1::ATOMIC_16 => self.atomic(AtomicWidth::W16, false),
            cache_1::FLOAT_ATOMIC => self.atomic(AtomicWidth::W32, true),
            cache_1::HALF_ATOMIC => self.atomic(AtomicWidth::W16, true),
            cache_1::A64_ATOMIC => {
                let wide = self.bits(12, 12) != 0;
                let width = if wide {
                    AtomicWidth::W64
                } else {
                    AtomicWidth::W32
                };
                self.atomic_a64(width, false)
            }
            cache_1::A64_ATOMIC_16 => self.atomic_a64_narrow(AtomicWidth::W16, false),
            cache_1::A64_FLOAT_ATOMIC => self.atomic_a64_narrow(AtomicWidth::W32, true),
            cache_1::A64_HALF_ATOMIC => self.atomic_a64_narrow(AtomicWidth::W16, true),
            cache_1::A64_SCATTERED_READ => self.scattered_a64(false),
            cache_1::A64_SCATTERED_WRITE => self.scattered_a64(true),
            cache_1::A64_BLOCK_READ => self.block_a64(false),
            cache_1::A64_BLOCK_WRITE => self.block_a64(true),
            cache_1::TYPED_READ => self.typed(O::Gather4Typed),
            cache_1::TYPED_WRITE => self.typed(O::Scatter4Typed),
            cache_1::TYPED_ATOMIC => self.typed_atomic(AtomicWidth::W32),
            cache_1::TYPED_ATOMIC_16 => self.typed_atomic(AtomicWidth::W16),
            cache_1::MEDIA_READ => self.media(O::MediaLd),
            cache_1::MEDIA_WRITE => self.media(O::MediaSt),
            _ => Err("no instruction is such a message"),
        }
    }

    /// Channels that bits 11:8 do not leave out.
    fn channels(&self) -> Result<Channels, Refusal> {
        let channels = Channels((!self.bits(11, 8) & 0xF) as u8);
        match channels.count() {
            0 => Err("it leaves out every channel"),
            _ => Ok(channels),
        }
    }

    /// Bits 13:12 of untyped messages.
    fn untyped_lanes(&self) -> Result<u32, Refusal> {
        match self.bits(13, 12) {
            1 => Ok(16),
            2 => Ok(8),
            _ => Err("no instruction has such lanes"),
        }
    }

    /// Refuses what is not about 64-bit addresses.
    fn stateless(&self) -> Result<(), Refusal> {
        match self.bits(7, 0) as u8 {
            reserved::STATELESS | reserved::STATELESS_NONCOHERENT => Ok(()),
            _ => Err("64-bit addresses have no surface"),
        }
    }

    /// Channels of dwords at offsets in bytes.
    fn untyped(&mut self, op: Opcode) -> Result<Decoded, Refusal> {
        self.for_all_lanes()?;
        let channels = self.channels()?;
        let lanes = self.untyped_lanes()?;
        self.for_lanes(lanes, 4)?;
        let bytes = self.lane_bytes(lanes, 4);
        let store = op.stores();
        let data = bytes.saturating_mul(channels.count());
        let (offsets, data) = self.lanes_and_data(bytes, data, store)?;
        let kind = MemKind::Gather4Scaled {
            channels,
            global: ZERO,
            offsets,
            data,
        };
        let surface = self.surface()?;
        Ok(self.lanewise(op, Body::Mem(Mem { surface, kind })))
    }

    /// The same at 64-bit addresses: offsets of 64 bits from nothing.
    fn untyped_a64(&mut self, store: bool) -> Result<Decoded, Refusal> {
        self.without_header()?;
        self.stateless()?;
        let channels = self.channels()?;
        let lanes = self.untyped_lanes()?;
        self.for_lanes(lanes, 4)?;
        let data = self.lane_bytes(lanes, 4).saturating_mul(channels.count());
        let (addresses, data) = self.lanes_and_data(self.lane_bytes(lanes, 8), data, store)?;
        let var = self.variable(addresses, Type::Uq, lanes)?;
        let op = if store {
            Opcode::SvmScatter4scaled
        } else {
            Opcode::SvmGather4scaled
        };
        Ok(self.lanewise(
            op,
            Body::Svm(Svm::Gather4Scaled {
                channels,
                base: NO_BASE,
                offsets: Raw { var, offset: 0 },
                data,
            }),
        ))
    }

    /// Bits 11:8 say the operation, of floats or of integers.
    fn operation(&self, floats: bool) -> Result<AtomicOp, Refusal> {
        AtomicOp::from_port_code(self.bits(11, 8) as u8, floats)
            .ok_or("no instruction has the operation")
    }

    /// Places of parts in front of an atomic's operands, its operands, and where the old value goes, which bit 13 asks for.
    /// Messages have what is compared with in front of what is stored.
    fn operands(&self, a: Atomic, front: &[u32]) -> Result<(Vec<Raw>, Operands), Refusal> {
        let mut bytes = front.to_vec();
        bytes.extend(vec![self.lane_bytes(a.lanes, a.bytes()); a.op.sources()]);
        let mut front_places = self.all_behind(&bytes)?;
        let (src0, src1) = match (front_places.split_off(front.len()).as_slice(), a.op) {
            (&[compare, new], AtomicOp::CmpXchg) => (new, compare),
            (&[first, second], _) => (first, second),
            (&[only], _) => (only, Raw::NULL),
            _ => (Raw::NULL, Raw::NULL),
        };
        let dst = match self.bits(13, 13) {
            0 => Raw::NULL,
            _ => self.result()?,
        };
        Ok((front_places, Operands { src0, src1, dst }))
    }

    /// Atomic at offsets in bytes; bit 12 says eight lanes instead of sixteen.
    fn atomic(&mut self, width: AtomicWidth, floats: bool) -> Result<Decoded, Refusal> {
        self.for_all_lanes()?;
        let op = self.operation(floats)?;
        let lanes = 16 >> self.bits(12, 12);
        self.for_lanes(lanes, 4)?;
        let a = Atomic { op, width, lanes };
        let (front, o) = self.operands(a, &[self.lane_bytes(lanes, 4)])?;
        let offsets = first(&front);
        let kind = MemKind::DwordAtomic {
            op,
            width,
            offsets,
            src0: o.src0,
            src1: o.src1,
            dst: o.dst,
        };
        let surface = self.surface()?;
        Ok(self.lanewise(Opcode::DwordAtomic, Body::Mem(Mem { surface, kind })))
    }

    fn atomic_a64_narrow(&mut self, width: AtomicWidth, floats: bool) -> Result<Decoded, Refusal> {
        match self.bits(12, 12) {
            0 => self.atomic_a64(width, floats),
            _ => Err("no instruction has the operation on 64 bits"),
        }
    }

    /// Atomic at 64-bit addresses of eight lanes, or sixteen where registers are twice as long.
    fn atomic_a64(&mut self, width: AtomicWidth, floats: bool) -> Result<Decoded, Refusal> {
        self.without_header()?;
        self.stateless()?;
        let op = self.operation(floats)?;
        let lanes = self.platform.grf_bytes() / 4;
        let a = Atomic { op, width, lanes };
        self.for_lanes(lanes, 4)?;
        let (front, o) = self.operands(a, &[self.lane_bytes(lanes, 8)])?;
        let addrs = first(&front);
        Ok(self.lanewise(
            Opcode::SvmAtomic,
            Body::Svm(Svm::Atomic {
                op,
                width,
                addrs,
                src0: o.src0,
                src1: o.src1,
                dst: o.dst,
            }),
        ))
    }

    /// Blocks of 1, 4 or 8 bytes, bits 9:8, as many for a lane as bits 11:10 say; bit 12 says sixteen lanes.
    fn scattered_a64(&mut self, store: bool) -> Result<Decoded, Refusal> {
        self.without_header()?;
        self.stateless()?;
        let bytes: u8 = match self.bits(9, 8) {
            0 => 1,
            1 => 4,
            2 => 8,
            _ => return Err("no instruction says which lanes have pages"),
        };
        if store && self.bits(13, 13) != 0 {
            return Err("no instruction is such a message");
        }
        let blocks = 1u8 << self.bits(11, 10);
        let lanes = 8 << self.bits(12, 12);
        // Bytes of a lane are in one element of its register.
        let (element, count) = match (bytes, blocks) {
            (1, 8) => (8, 1),
            (1, _) => (4, 1),
            (bytes, blocks) => (u32::from(bytes), u32::from(blocks)),
        };
        self.for_lanes(lanes, element)?;
        let data = self.lane_bytes(lanes, element).saturating_mul(count);
        let (addrs, data) = self.lanes_and_data(self.lane_bytes(lanes, 8), data, store)?;
        let op = if store {
            Opcode::SvmScatter
        } else {
            Opcode::SvmGather
        };
        Ok(self.lanewise(
            op,
            Body::Svm(Svm::Gather {
                bytes,
                blocks,
                addrs,
                data,
            }),
        ))
    }

    /// Owords at the address in the first two dwords of the header.
    fn block_a64(&mut self, store: bool) -> Result<Decoded, Refusal> {
        self.stateless()?;
        // The vendor's compiler knows two kinds, one of them of loads alone.
        let unaligned = match self.bits(12, 11) {
            0 => false,
            1 if !store => true,
            _ => return Err(OTHER_BLOCK),
        };
        let owords = self.owords()?;
        let (header, data) = self.header_and_data(owords, store)?;
        let addr = self.operand(header, 0, Type::Uq)?;
        let op = if store {
            Opcode::SvmBlockSt
        } else {
            Opcode::SvmBlockLd
        };
        self.whole(
            op,
            Body::Svm(Svm::Block {
                owords,
                unaligned,
                addr,
                data,
            }),
        )
    }

    /// An entry of the binding table with texels.
    fn texels(&mut self) -> Result<SurfaceId, Refusal> {
        match self.surface()? {
            SurfaceId::SLM | SurfaceId::SCRATCH => Err("local memory and scratch have no texels"),
            surface => Ok(surface),
        }
    }

    /// Lanes of a message to texels: as many as fill a register, of which there are eight at most before PVC.
    fn texel_lanes(&self) -> Result<u32, Refusal> {
        let lanes = self.platform.grf_bytes() / 4;
        self.for_lanes(lanes, 4)?;
        Ok(lanes)
    }

    /// Coordinates u, v, r and the level, as many as there are registers before the given number of others.
    fn coordinates(&self, behind: u32) -> Result<Vec<u32>, Refusal> {
        let front = u32::from(self.has_header());
        match self
            .registers()
            .saturating_sub(front.saturating_add(behind))
        {
            count @ 1..=4 => Ok(vec![self.platform.grf_bytes(); count as usize]),
            _ => Err("its payload is not one to four coordinates and data"),
        }
    }

    /// Texels; bits 13:12 say the first eight lanes of sixteen or the others, which is for messages with a mask in a header.
    fn typed(&mut self, op: Opcode) -> Result<Decoded, Refusal> {
        self.for_all_lanes()?;
        if self.bits(13, 12) != 1 {
            return Err("no instruction has such lanes");
        }
        let channels = self.channels()?;
        let lanes = self.texel_lanes()?;
        let store = op.stores();
        let behind = if store { channels.count() } else { 0 };
        let mut bytes = self.coordinates(behind)?;
        let count = bytes.len();
        if store {
            bytes.push(self.lane_bytes(lanes, 4).saturating_mul(behind));
        }
        let mut places = self.all_behind(&bytes)?;
        let data = match store {
            true => first(&places.split_off(count)),
            false => self.result()?,
        };
        let coords = four(&places);
        let kind = MemKind::Typed {
            channels,
            coords,
            data,
        };
        let surface = self.texels()?;
        Ok(self.lanewise(op, Body::Mem(Mem { surface, kind })))
    }

    /// Atomic on texels; bit 12 as bits 13:12 above.
    fn typed_atomic(&mut self, width: AtomicWidth) -> Result<Decoded, Refusal> {
        self.for_all_lanes()?;
        if self.bits(12, 12) != 0 {
            return Err("no instruction has such lanes");
        }
        let op = self.operation(false)?;
        let lanes = self.texel_lanes()?;
        let a = Atomic { op, width, lanes };
        let (front, o) = self.operands(a, &self.coordinates(op.sources() as u32)?)?;
        let coords = four(&front);
        let kind = MemKind::TypedAtomic {
            op,
            width,
            coords,
            src0: o.src0,
            src1: o.src1,
            dst: o.dst,
        };
        let surface = self.texels()?;
        Ok(self.lanewise(Opcode::TypedAtomic, Body::Mem(Mem { surface, kind })))
    }

    /// The rows of a block by bits 10:8, as the modifier that instructions have: bit 10 goes before what the surface says of
    /// them, 9 says every other row, 8 from the second on. Surfaces here have all rows.
    fn rows(&self) -> Result<u8, Refusal> {
        match self.bits(13, 8) {
            0 | 4 => Ok(0),
            6 => Ok(2),
            7 => Ok(3),
            _ => Err("it has rows that no instruction asks for"),
        }
    }

    /// A block of rows. Its corner is in the first two dwords of the header, its size in the third: bits 5:0 the width in bytes,
    /// 21:16 the height, both less one.
    fn media(&mut self, op: Opcode) -> Result<Decoded, Refusal> {
        if !self.has_header() {
            return Err("it has no header, which says where the block is");
        }
        let modifier = self.rows()?;
        let grf = self.platform.grf_bytes();
        let header = self.header()?;
        let Some(size) = self.known(header, 8) else {
            return Err("the size in its header is not known to be the same each time");
        };
        if size & !0x003F_003F != 0 {
            return Err("no instruction has a block like that in its header");
        }
        let (width, height) = ((size & 0x3F) as u8 + 1, (size >> 16) as u8 + 1);
        let row = u32::from(width).next_power_of_two().max(4);
        let data = match op {
            Opcode::MediaSt => {
                let bytes = row.saturating_mul(u32::from(height));
                self.parts([grf, bytes])?[1]
            }
            _ => {
                self.parts([grf])?;
                self.result()?
            }
        };
        let x = self.operand(header, 0, Type::D)?;
        let y = self.operand(header, 4, Type::D)?;
        let kind = MemKind::Media {
            modifier,
            plane: 0,
            width,
            height,
            x,
            y,
            data,
        };
        let surface = self.texels()?;
        self.whole(op, Body::Mem(Mem { surface, kind }))
    }
}

/// The first of some places.
fn first(places: &[Raw]) -> Raw {
    places.first().copied().unwrap_or(Raw::NULL)
}

/// Up to four coordinates; what is not there is null.
pub(super) fn four(places: &[Raw]) -> [Raw; 4] {
    let mut out = [Raw::NULL; 4];
    out.iter_mut()
        .zip(places)
        .for_each(|(to, from)| *to = *from);
    out
}
