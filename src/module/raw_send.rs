//! Messages of `raw_send` and `raw_sends` that are memory messages: read from their descriptors, as the same messages in
//! LSC spelling.
//!
//! Known are loads, stores and atomics of the LSC ports, and untyped surface reads, writes and atomics of data cache 1, which
//! devices before LSC have. Everything else is refused by the name of its message. Caching and lengths are not looked at.

use super::{Caching, Channels, Inst, Lsc, LscSurface, Raw, RawSend, Src};
use crate::isa::lsc::{AddrModel, AddrSize, DataSize, LscOp, Sfid, VECTOR_LENGTHS};
use crate::isa::send;
use crate::isa::{AtomicOp, Platform};

/// Shared functions that have decodable messages.
const DATA_CACHE_1: u8 = 0xC;
const SHARED_LOCAL: u8 = 0xE;
const UNTYPED_GLOBAL: u8 = 0xF;

/// Type of the messages of data cache 1 that are atomics on surfaces.
const UNTYPED_ATOMIC: u32 = 2;

/// Their operations, but for compare-and-exchange, which has two operands in one payload.
const SURFACE_ATOMICS: [(u32, AtomicOp); 12] = [
    (0x1, AtomicOp::And),
    (0x2, AtomicOp::Or),
    (0x3, AtomicOp::Xor),
    (0x4, AtomicOp::Xchg),
    (0x5, AtomicOp::Inc),
    (0x6, AtomicOp::Dec),
    (0x7, AtomicOp::Add),
    (0x8, AtomicOp::Sub),
    (0xA, AtomicOp::Smax),
    (0xB, AtomicOp::Smin),
    (0xC, AtomicOp::Umax),
    (0xD, AtomicOp::Umin),
];

/// Operands of a message, before its operation is known.
const PLAIN: Lsc = Lsc {
    op: LscOp::Load,
    sfid: Sfid::Ugm,
    caching: Caching { l1: 0, l3: 0 },
    model: AddrModel::Flat,
    surface: LscSurface::None,
    scale: 1,
    offset: 0,
    addr_size: AddrSize::A32,
    data_size: DataSize::D32,
    transposed: false,
    elems: 1,
    channels: Channels(0),
    addr: Raw::NULL,
    stride: None,
    data: Raw::NULL,
    src1: Raw::NULL,
    src2: Raw::NULL,
};

fn constant(s: &Src) -> Option<u32> {
    match s {
        Src::Imm { bits, .. } => Some(*bits as u32),
        _ => None,
    }
}

impl RawSend {
    /// The shared function; where the text does not say it, it is in the extended descriptor.
    fn function(&self) -> u8 {
        match (self.sfid, constant(&self.ex_desc)) {
            (0, Some(ex)) => (ex & 0xF) as u8,
            (sfid, _) => sfid,
        }
    }

    /// The message in words, for errors that name it.
    pub fn describe(&self) -> String {
        send::describe(self.function(), constant(&self.desc))
    }

    /// The memory message that it is.
    ///
    /// # Errors
    /// What it is instead.
    pub fn decode(&self, inst: &Inst, platform: Platform) -> Result<Lsc, String> {
        let refused = |why: &str| Err(format!("{}: {why}", self.describe()));
        let (Some(desc), Some(ex)) = (constant(&self.desc), constant(&self.ex_desc)) else {
            return refused("the descriptors are not constants");
        };
        if self.eot {
            return refused("it ends the thread");
        }
        let has_lsc = matches!(platform, Platform::Dg2 | Platform::Pvc);
        let made = match self.function() {
            DATA_CACHE_1 if !has_lsc && desc >> 14 & 0x1F == UNTYPED_ATOMIC => {
                self.untyped_atomic(inst, desc)
            }
            DATA_CACHE_1 if !has_lsc => self.untyped_surface(inst, desc),
            SHARED_LOCAL if has_lsc => self.lsc(inst, platform, desc, ex, Sfid::Slm),
            UNTYPED_GLOBAL if has_lsc => self.lsc(inst, platform, desc, ex, Sfid::Ugm),
            _ => None,
        };
        made.ok_or_else(|| self.describe())
    }

    /// Data cache 1: bits 18:14 type, 13:12 lanes, 11:8 channels that are left out, 7:0 binding-table index; 19 header.
    fn untyped_surface(&self, inst: &Inst, desc: u32) -> Option<Lsc> {
        let lanes = match desc >> 12 & 3 {
            1 => 16,
            2 => 8,
            _ => return None,
        };
        let channels = Channels((!(desc >> 8) & 0xF) as u8);
        if desc >> 19 & 1 != 0 || inst.exec.lanes() != lanes || channels.0 == 0 {
            return None;
        }
        let (op, data) = match desc >> 14 & 0x1F {
            1 => (LscOp::LoadQuad, self.dst),
            9 if self.split => (LscOp::StoreQuad, self.src1),
            _ => return None,
        };
        Some(Lsc {
            op,
            model: AddrModel::Bti,
            surface: LscSurface::Imm(u64::from(desc & 0xFF)),
            channels,
            addr: self.src0,
            data,
            ..PLAIN
        })
    }

    /// Untyped atomic of data cache 1 on dwords: bit 13 a result comes back, 12 eight lanes instead of sixteen, 11:8 the operation.
    fn untyped_atomic(&self, inst: &Inst, desc: u32) -> Option<Lsc> {
        let lanes = if desc >> 12 & 1 != 0 { 8 } else { 16 };
        let code = desc >> 8 & 0xF;
        let (_, op) = SURFACE_ATOMICS.iter().find(|(c, _)| *c == code)?;
        let src1 = match op.sources() {
            0 => Raw::NULL,
            _ if self.split => self.src1,
            _ => return None,
        };
        if desc >> 19 & 1 != 0 || inst.exec.lanes() != lanes {
            return None;
        }
        let returns = desc >> 13 & 1 != 0;
        Some(Lsc {
            op: LscOp::Atomic(*op),
            model: AddrModel::Bti,
            surface: LscSurface::Imm(u64::from(desc & 0xFF)),
            addr: self.src0,
            data: if returns { self.dst } else { Raw::NULL },
            src1,
            ..PLAIN
        })
    }

    /// LSC: bits 5:0 operation, 8:7 width of addresses, 11:9 of data, 14:12 elements, 15 transposed (15:12 channels for
    /// four-channel operations), 30:29 address model; its surface in the extended descriptor.
    fn lsc(&self, inst: &Inst, platform: Platform, desc: u32, ex: u32, sfid: Sfid) -> Option<Lsc> {
        let op = LscOp::from_code((desc & 0x3F) as u8)?;
        let addr_size = AddrSize::from_code((desc >> 7 & 3) as u8)?;
        let data_size = match desc >> 9 & 7 {
            code @ 0..=5 => DataSize::from_code(code as u8 + 1)?,
            6 => DataSize::D16c32h,
            _ => return None,
        };
        let (model, surface) = match desc >> 29 & 3 {
            // The rest of the extended descriptor would be added to the addresses.
            0 if ex >> 12 == 0 => (AddrModel::Flat, LscSurface::None),
            3 => (AddrModel::Bti, LscSurface::Imm(u64::from(ex >> 24))),
            _ => return None,
        };
        let quad = matches!(op, LscOp::LoadQuad | LscOp::StoreQuad);
        let (elems, transposed, channels) = match quad {
            true => (1, false, (desc >> 12 & 0xF) as u8),
            false => {
                let elems = VECTOR_LENGTHS.get((desc >> 12 & 7) as usize)?;
                (*elems, desc >> 15 & 1 != 0, 0)
            }
        };
        let none = Raw::NULL;
        let (data, src1, src2) = match op {
            LscOp::Load | LscOp::LoadQuad => (self.dst, none, none),
            LscOp::Store | LscOp::StoreQuad if self.split => (self.src1, none, none),
            LscOp::Atomic(op) if op.sources() == 0 => (self.dst, none, none),
            LscOp::Atomic(op) if op.sources() == 1 && self.split => (self.dst, self.src1, none),
            // One payload: what to compare with, and behind it what to store.
            LscOp::Atomic(_) if self.split => {
                let lanes = inst.exec.lanes().max(platform.lsc_min_lanes());
                let bytes = lanes.checked_mul(data_size.register_bytes())?;
                let offset = self
                    .src1
                    .offset
                    .checked_add(bytes.max(platform.grf_bytes()))?;
                let second = Raw {
                    offset,
                    ..self.src1
                };
                (self.dst, self.src1, second)
            }
            _ => return None,
        };
        Some(Lsc {
            op,
            sfid,
            model,
            surface,
            addr_size,
            data_size,
            transposed,
            elems,
            channels: Channels(channels),
            addr: self.src0,
            data,
            src1,
            src2,
            ..PLAIN
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::isa::{Exec, ExecSize, Type};
    use crate::module::{Body, Pos};

    fn send(sfid: u8, desc: u32, ex: u32) -> RawSend {
        let number = |bits: u32| Src::Imm {
            bits: bits.into(),
            ty: Type::Ud,
        };
        RawSend {
            split: true,
            conditional: false,
            eot: false,
            sfid,
            sizes: [1, 1, 1],
            ex_desc: number(ex),
            desc: number(desc),
            src0: Raw::NULL,
            src1: Raw::NULL,
            dst: Raw::NULL,
        }
    }

    fn nothing() -> Inst {
        Inst {
            op: crate::isa::Opcode::RawSends,
            pred: None,
            exec: Exec::SCALAR,
            body: Body::Ret,
            pos: Pos::default(),
        }
    }

    fn lsc(sfid: u8, desc: u32, ex: u32) -> Option<Lsc> {
        let inst = Inst {
            exec: Exec {
                size: ExecSize::new(8)?,
                ..Exec::SCALAR
            },
            ..nothing()
        };
        send(sfid, desc, ex).decode(&inst, Platform::Dg2).ok()
    }

    #[test]
    fn lsc_descriptors() {
        let store = lsc(UNTYPED_GLOBAL, 0x6410_0504, 0x0200_0000).unwrap();
        assert_eq!((store.op, store.addr_size), (LscOp::Store, AddrSize::A32));
        assert_eq!((store.data_size, store.elems), (DataSize::D32, 1));
        assert_eq!(
            (store.model, store.surface),
            (AddrModel::Bti, LscSurface::Imm(2))
        );
        let load = lsc(SHARED_LOCAL, 0x0410_3B00, 0).unwrap();
        assert_eq!((load.sfid, load.model), (Sfid::Slm, AddrModel::Flat));
        assert_eq!((load.data_size, load.elems), (DataSize::D16c32, 4));
        let quad = lsc(UNTYPED_GLOBAL, 0x0410_5582, 0).unwrap();
        assert_eq!((quad.channels, quad.elems), (Channels(5), 1));
        assert_eq!(quad.addr_size, AddrSize::A64);
        let add = lsc(UNTYPED_GLOBAL, 0x0410_058C, 0).unwrap();
        assert_eq!(add.op, LscOp::Atomic(AtomicOp::Add));
        let swap = lsc(UNTYPED_GLOBAL, 0x0410_0592, 0).unwrap();
        assert_eq!(swap.op, LscOp::Atomic(AtomicOp::CmpXchg));
        assert_eq!((swap.src1.offset, swap.src2.offset), (0, 32));
        for (desc, ex, why) in [
            (0x2410_0504, 0, "a bindless surface"),
            (0x0410_0580, 0x1000, "a constant to add"),
            (0x0410_0503, 0, "a block"),
            (0x0410_053F, 0, "no operation"),
        ] {
            assert!(lsc(UNTYPED_GLOBAL, desc, ex).is_none(), "{why}");
        }
    }

    /// Descriptors that the vendor's assembler makes of `dword_atomic` for skl.
    #[test]
    fn surface_atomics() {
        let atomic = |lanes, desc| {
            let inst = Inst {
                exec: Exec {
                    size: ExecSize::new(lanes)?,
                    ..Exec::SCALAR
                },
                ..nothing()
            };
            let mut sent = send(DATA_CACHE_1, desc, 0xC);
            sent.dst = Raw {
                var: crate::module::VarId::R0,
                offset: 0,
            };
            let message = sent.decode(&inst, Platform::Skl).ok()?;
            Some((message.op, message.surface, message.data.is_null()))
        };
        let of = |op, silent| Some((LscOp::Atomic(op), LscSurface::Imm(3), silent));
        assert_eq!(atomic(8, 0x0210_B703), of(AtomicOp::Add, false));
        assert_eq!(atomic(8, 0x0200_9703), of(AtomicOp::Add, true));
        assert_eq!(atomic(16, 0x0420_A503), of(AtomicOp::Inc, false));
        assert_eq!(atomic(8, 0x0210_B403), of(AtomicOp::Xchg, false));
        assert_eq!(atomic(16, 0x0420_AD03), of(AtomicOp::Umin, false));
        assert_eq!(atomic(8, 0x0210_BA03), of(AtomicOp::Smax, false));
        assert_eq!(atomic(16, 0x0210_B703), None, "eight lanes");
        assert_eq!(atomic(8, 0x0210_BE03), None, "two operands");
    }
}
