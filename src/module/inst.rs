//! Instructions. The shape of an instruction is its [`Body`]; which opcodes share a shape is said
//! by `isa::table` (column `form`).

use super::Pos;
use super::operand::*;
use super::vars::*;
use crate::isa::lsc::{AddrModel, AddrSize, DataSize, LscOp, Scope, Sfid};
use crate::isa::sampler::SamplerOp;
use crate::isa::{AtomicOp, CmpCond, Effect, Exec, Opcode};

/// One instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Inst {
    /// Opcode; decides the variant of `body` (`isa::table`).
    pub op: Opcode,
    /// Guard, or selector of `sel`, or overflow output of `add3.o`.
    pub pred: Option<Predicate>,
    /// Execution size and mask; `Exec::SCALAR` for instructions that are written without.
    pub exec: Exec,
    /// Operands.
    pub body: Body,
    /// Opcode of the text, where validation has read a hardware message as the instruction that it is.
    pub written: Option<Opcode>,
    /// Source position.
    pub pos: Pos,
}

impl Inst {
    /// Mnemonic as written, without suffixes. LSC messages share a row of the table, but not their names.
    pub fn mnemonic(&self) -> &'static str {
        if let Some(op) = self.written {
            return op.mnemonic();
        }
        let op = match &self.body {
            Body::Sample(s) => {
                let message = SamplerOp::from_code(self.op, s.variant);
                return message.map_or(self.op.mnemonic(), |m| m.mnemonic);
            }
            Body::Lsc(l) => l.op,
            Body::LscTyped(t) => t.op,
            Body::LscBlock2d(b) => b.op,
            _ => return self.op.mnemonic(),
        };
        op.spelling().map_or(self.op.mnemonic(), |s| s.0)
    }

    /// What it does to memory, as its row of the opcode table (or of the table of LSC operations) says.
    pub fn effect(&self) -> Effect {
        match &self.body {
            Body::Lsc(l) => l.op.effect(),
            Body::LscTyped(t) => t.op.effect(),
            Body::LscBlock2d(b) => b.op.effect(),
            _ => self.op.info().effect,
        }
    }

    /// True for stores; atomics are none.
    pub fn stores(&self) -> bool {
        self.effect() == Effect::Store
    }

    /// Bytes that the address of each element has to be a multiple of; 1 if every address will do, also where the message itself makes
    /// addresses out of numbers of elements (docs/visa.md, "Memory").
    pub fn alignment(&self) -> u32 {
        match &self.body {
            Body::Mem(m) => m.kind.alignment(self.op),
            Body::Svm(s) => s.alignment(self.stores()),
            Body::Lsc(l) => l.alignment(),
            Body::LscBlock2d(_) => 64,
            _ => 1,
        }
    }
}

/// What `nbarrier` does at its barrier.
#[derive(Clone, Debug, PartialEq)]
pub enum NamedBarrier {
    /// `.wait`.
    Wait,
    /// `.signal` by one of a given number of threads, each of which may wait.
    Signal {
        /// Threads.
        threads: Src,
    },
    /// `.signal` by a thread that produces, consumes or does both.
    SignalAs {
        /// 0 both, 1 a producer, 2 a consumer.
        role: Src,
        /// Producers of this round.
        producers: Src,
        /// Consumers of this round.
        consumers: Src,
    },
}

impl NamedBarrier {
    /// In the order of the text.
    pub fn operands(&self) -> Vec<&Src> {
        match self {
            NamedBarrier::Wait => vec![],
            NamedBarrier::Signal { threads } => vec![threads],
            NamedBarrier::SignalAs {
                role,
                producers,
                consumers,
            } => vec![role, producers, consumers],
        }
    }
}

/// Operands by shape.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// Anything that computes registers from registers: arithmetic, logic, moves, `setp`, `cmp`, `movs`, `addr_add`.
    Alu(Alu),
    /// `label:` and `.function`.
    Label(LabelId),
    /// `jmp goto call`.
    Branch(LabelId),
    /// `ret fret`.
    Ret,
    /// `switchjmp`.
    SwitchJmp {
        /// Selector.
        index: Src,
        /// Targets.
        targets: Vec<LabelId>,
    },
    /// `fcall name args rets`.
    Fcall {
        /// Function name.
        name: String,
        /// Argument registers.
        args: u8,
        /// Return registers.
        rets: u8,
    },
    /// `ifcall addr args rets`.
    Ifcall {
        /// Address of the function.
        addr: Src,
        /// Argument registers.
        args: u8,
        /// Return registers.
        rets: u8,
    },
    /// `faddr name dst`.
    Faddr {
        /// Symbol.
        name: String,
        /// Receives its address.
        dst: Dst,
    },
    /// Memory message on a surface, legacy spelling.
    Mem(Mem),
    /// `svm_*`.
    Svm(Svm),
    /// Untyped LSC message.
    Lsc(Lsc),
    /// `lsc_*_block2d`.
    LscBlock2d(LscBlock2d),
    /// Typed LSC message (`.tgm`).
    LscTyped(LscTyped),
    /// `lsc_fence`.
    LscFence {
        /// Which memory.
        sfid: Sfid,
        /// Cache operation: 0 none, 1 evict, 2 invalidate, 3 discard, 4 clean, 5 flushl3, 6 type6.
        op: u8,
        /// Scope.
        scope: Scope,
    },
    /// Sampler messages.
    Sample(Sample),
    /// `raw_send*`.
    RawSend(RawSend),
    /// `dpas`, `dpasw`.
    Dpas(Dpas),
    /// `fence_*`: mask byte (bit 0 commit, 1 I$, 2 sampler, 3 const, 4 RO, 5 local, 6 L1, 7 software only).
    Fence(u8),
    /// `barrier yield sampler_cache_flush`.
    Nullary,
    /// `wait mask`.
    Wait(Src),
    /// `sbarrier.signal` (true) or `.wait`.
    Sbarrier(bool),
    /// `nbarrier`.
    Nbarrier {
        /// Barrier id.
        id: Src,
        /// What it does there.
        step: NamedBarrier,
    },
    /// `FILE "name"`.
    File(String),
    /// `LOC line`.
    Loc(u32),
    /// `lifetime.start` (true) or `.end`.
    Lifetime {
        /// Start or end.
        start: bool,
        /// Which variable.
        var: LifetimeVar,
    },
}

/// Variable named by `lifetime`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LifetimeVar {
    /// General.
    General(VarId),
    /// Address.
    Address(AddrId),
    /// Predicate.
    Pred(PredId),
}

/// Register-to-register instruction.
#[derive(Clone, Debug, PartialEq)]
pub struct Alu {
    /// `.sat`.
    pub sat: bool,
    /// Condition of `cmp`.
    pub cond: Option<CmpCond>,
    /// Function byte of `bfn`.
    pub bfn: u8,
    /// Destination.
    pub dst: Dst,
    /// Second destination: carry of `addc`, borrow of `subb`, predicate of `invm`/`rsqtm`.
    pub dst2: Option<Dst>,
    /// Sources in textual order.
    pub srcs: Vec<Src>,
}

/// Channel mask: bit 0 R, 1 G, 2 B, 3 A.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channels(pub u8);

impl Channels {
    /// Enabled channels in RGBA order, as indices 0 … 3.
    pub fn iter(self) -> impl Iterator<Item = u32> {
        (0..4u32).filter(move |c| self.0 & (1 << c) != 0)
    }

    /// Number of enabled channels.
    pub const fn count(self) -> u32 {
        (self.0 & 15).count_ones()
    }
}

/// Width of an atomic's memory element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AtomicWidth {
    /// `.16`.
    W16,
    /// default.
    W32,
    /// `.64`.
    W64,
}

impl AtomicWidth {
    /// Bytes of the element.
    pub const fn bytes(self) -> u32 {
        match self {
            AtomicWidth::W16 => 2,
            AtomicWidth::W32 => 4,
            AtomicWidth::W64 => 8,
        }
    }
}

/// Legacy memory message.
#[derive(Clone, Debug, PartialEq)]
pub struct Mem {
    /// Surface.
    pub surface: SurfaceId,
    /// What is done.
    pub kind: MemKind,
}

/// Legacy memory messages by shape. Field order follows the text.
#[derive(Clone, Debug, PartialEq)]
pub enum MemKind {
    /// `oword_ld (owords) T offset dst` and `oword_ld_unaligned`, `oword_st`.
    Oword {
        /// 1, 2, 4, 8, 16.
        owords: u8,
        /// Offset: owords, or bytes for the unaligned form.
        offset: Src,
        /// Destination or source.
        data: Raw,
    },
    /// `media_ld.mod (w,h) T plane x y data`, `media_st`.
    Media {
        /// Modifier code (0 `nomod`, others as in the binary).
        modifier: u8,
        /// Plane.
        plane: u8,
        /// Block width in bytes.
        width: u8,
        /// Block height in rows.
        height: u8,
        /// Byte column.
        x: Src,
        /// Row.
        y: Src,
        /// Destination or source.
        data: Raw,
    },
    /// `gather.B (M,N) T global offsets dst`, `scatter`: offsets in elements.
    Gather {
        /// Element bytes: 1, 2 or 4.
        bytes: u8,
        /// Modifier code, 0 for none.
        modifier: u8,
        /// Global offset in elements.
        global: Src,
        /// Element offsets.
        offsets: Raw,
        /// Destination or source.
        data: Raw,
    },
    /// `gather4_scaled.CH (M,N) T global offsets dst`, `scatter4_scaled`: offsets in bytes.
    Gather4Scaled {
        /// Enabled channels.
        channels: Channels,
        /// Global byte offset.
        global: Src,
        /// Byte offsets.
        offsets: Raw,
        /// Destination or source.
        data: Raw,
    },
    /// `gather_scaled.B (M,N) T global offsets dst`, `scatter_scaled`: offsets in bytes.
    GatherScaled {
        /// Bytes per lane: 1, 2 or 4.
        bytes: u8,
        /// Global byte offset.
        global: Src,
        /// Byte offsets.
        offsets: Raw,
        /// Destination or source.
        data: Raw,
    },
    /// `gather4_typed.CH`, `scatter4_typed`.
    Typed {
        /// Enabled channels.
        channels: Channels,
        /// Coordinates `u v r lod`.
        coords: [Raw; 4],
        /// Destination or source.
        data: Raw,
    },
    /// `dword_atomic.op[.16]`.
    DwordAtomic {
        /// Operation.
        op: AtomicOp,
        /// Element width.
        width: AtomicWidth,
        /// Byte offsets.
        offsets: Raw,
        /// First source (the *new* value of `cmpxchg`).
        src0: Raw,
        /// Second source (the *compare* value of `cmpxchg`).
        src1: Raw,
        /// Old value, or `%null`.
        dst: Raw,
    },
    /// `typed_atomic.op[.16]`.
    TypedAtomic {
        /// Operation.
        op: AtomicOp,
        /// Width of the texel.
        width: AtomicWidth,
        /// Coordinates `u v r lod`.
        coords: [Raw; 4],
        /// First source.
        src0: Raw,
        /// Second source.
        src1: Raw,
        /// Old value, or `%null`.
        dst: Raw,
    },
    /// `qw_gather.n T offsets dst`, `qw_scatter`.
    Qword {
        /// Qwords per lane.
        blocks: u8,
        /// Byte offsets.
        offsets: Raw,
        /// Destination or source.
        data: Raw,
    },
}

impl MemKind {
    /// Bytes of an element, which is in bounds or not as a whole.
    pub(crate) fn element_bytes(&self) -> u32 {
        match self {
            MemKind::Gather { bytes, .. } | MemKind::GatherScaled { bytes, .. } => (*bytes).into(),
            MemKind::DwordAtomic { width, .. } | MemKind::TypedAtomic { width, .. } => {
                width.bytes()
            }
            MemKind::Qword { .. } => 8,
            MemKind::Typed { channels, .. } => channels.count().saturating_mul(4),
            MemKind::Oword { .. } | MemKind::Media { .. } | MemKind::Gather4Scaled { .. } => 4,
        }
    }

    /// [`Inst::alignment`].
    fn alignment(&self, op: Opcode) -> u32 {
        match self {
            MemKind::Oword { .. } if op == Opcode::OwordLdUnaligned => 4,
            MemKind::Gather4Scaled { .. } => 4,
            MemKind::Qword { .. } => 8,
            MemKind::DwordAtomic { width, .. } => width.bytes(),
            _ => 1,
        }
    }
}

/// Messages on 64-bit addresses, `svm_*`.
#[derive(Clone, Debug, PartialEq)]
pub enum Svm {
    /// `svm_block_ld (owords) address data` / `svm_block_st`.
    Block {
        /// Owords.
        owords: u8,
        /// `.unaligned`.
        unaligned: bool,
        /// Byte address.
        addr: Src,
        /// Destination or source.
        data: Raw,
    },
    /// `svm_gather.B.N addresses dst` / `svm_scatter`.
    Gather {
        /// Block bytes: 1, 4 or 8.
        bytes: u8,
        /// Blocks per lane: 1, 2, 4 or 8.
        blocks: u8,
        /// Byte addresses.
        addrs: Raw,
        /// Destination or source.
        data: Raw,
    },
    /// `svm_gather4scaled.CH base offsets dst` / `svm_scatter4scaled`.
    Gather4Scaled {
        /// Enabled channels.
        channels: Channels,
        /// Scalar base address.
        base: Src,
        /// Byte offsets.
        offsets: Raw,
        /// Destination or source.
        data: Raw,
    },
    /// `svm_atomic.op[.16|.64]`; text order is addresses, dst, src0, src1.
    Atomic {
        /// Operation.
        op: AtomicOp,
        /// Element width.
        width: AtomicWidth,
        /// Byte addresses.
        addrs: Raw,
        /// First source (the *new* value of `cmpxchg`).
        src0: Raw,
        /// Second source (the *compare* value of `cmpxchg`).
        src1: Raw,
        /// Old value, or `%null`.
        dst: Raw,
    },
}

impl Svm {
    /// Bytes of an element, which is in bounds or not as a whole.
    pub(crate) fn element_bytes(&self) -> u32 {
        match self {
            Svm::Block { .. } | Svm::Gather4Scaled { .. } => 4,
            Svm::Gather {
                bytes: 1, blocks, ..
            } => (*blocks).into(),
            Svm::Gather { bytes, .. } => (*bytes).into(),
            Svm::Atomic { width, .. } => width.bytes(),
        }
    }

    /// [`Inst::alignment`].
    fn alignment(&self, stores: bool) -> u32 {
        match self {
            Svm::Block { .. } if stores => 16,
            Svm::Block { .. } | Svm::Gather4Scaled { .. } => 4,
            Svm::Gather { bytes, .. } => (*bytes).into(),
            Svm::Atomic { width, .. } => width.bytes(),
        }
    }
}

/// Surface operand of an LSC message.
#[derive(Clone, Debug, PartialEq)]
pub enum LscSurface {
    /// `flat`, `arg`.
    None,
    /// `bti(3)`, `ss(0x10)`.
    Imm(u64),
    /// `ss(V0366)`, `bss(UD1(0,1))`: first element at the origin.
    Var(Origin),
}

/// Stride or block2d operand: an untyped integer or one register element.
#[derive(Clone, Debug, PartialEq)]
pub enum LscScalar {
    /// Integer.
    Imm(u64),
    /// Element at the origin.
    Var(Origin),
}

/// Cache controls; accepted and ignored. With the codes of the binary form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Caching {
    /// L1 control.
    pub l1: u8,
    /// L3 control.
    pub l3: u8,
}

/// Untyped LSC load, store or atomic.
#[derive(Clone, Debug, PartialEq)]
pub struct Lsc {
    /// Operation.
    pub op: LscOp,
    /// Shared function.
    pub sfid: Sfid,
    /// Cache controls.
    pub caching: Caching,
    /// Address model.
    pub model: AddrModel,
    /// Surface, by model.
    pub surface: LscSurface,
    /// Address scale; 1 unless written.
    pub scale: u16,
    /// Byte offset added to every address.
    pub offset: i32,
    /// Address width.
    pub addr_size: AddrSize,
    /// Element.
    pub data_size: DataSize,
    /// `t`: transposed.
    pub transposed: bool,
    /// Vector length 1, 2, 3, 4, 8, 16, 32, 64.
    pub elems: u8,
    /// Channels of the quad forms, else 0.
    pub channels: Channels,
    /// Addresses (the scalar base of strided forms).
    pub addr: Raw,
    /// Byte stride of strided forms; `None` means the element size.
    pub stride: Option<LscScalar>,
    /// Destination of loads and atomics, source of stores.
    pub data: Raw,
    /// First atomic operand (the *compare* value of `icas`).
    pub src1: Raw,
    /// Second atomic operand (the *new* value of `icas`).
    pub src2: Raw,
}

impl Lsc {
    /// A load whose result nothing gets only warms caches, and reaches no memory.
    pub fn prefetches(&self) -> bool {
        self.op.effect() == Effect::Load && self.op != LscOp::LoadStatus && self.data.is_null()
    }

    /// A store or an atomic.
    pub fn writes(&self) -> bool {
        self.op.effect() != Effect::Load
    }

    /// See [`Inst::alignment`]: lanes with one element each may be anywhere.
    fn alignment(&self) -> u32 {
        match self.op {
            LscOp::LoadStatus => 1,
            LscOp::Load | LscOp::Store | LscOp::LoadStrided | LscOp::StoreStrided
                if self.elems == 1 && !self.transposed =>
            {
                1
            }
            _ => self.data_size.memory_bytes(),
        }
    }

    /// Bytes of a lane's elements in memory: the stride of strided forms that name none.
    pub fn packed_bytes(&self) -> u32 {
        self.data_size.memory_bytes() * u32::from(self.elems)
    }
}

/// The surface of a 2D block message, and the block's first column and row in it.
#[derive(Clone, Debug, PartialEq)]
pub enum BlockAddress {
    /// Base, width-1, height-1, pitch-1, x, y, each an operand of its own.
    Operands(Vec<LscScalar>),
    /// One register with the base in its first 8 bytes and the other five in the dwords after them.
    Payload {
        /// The register.
        payload: Raw,
        /// Elements added to the column.
        x: i32,
        /// Rows added to the row.
        y: i32,
    },
}

/// `lsc_load_block2d` / `lsc_store_block2d`.
#[derive(Clone, Debug, PartialEq)]
pub struct LscBlock2d {
    /// Operation: `LoadBlock2d` or `StoreBlock2d`.
    pub op: LscOp,
    /// Shared function.
    pub sfid: Sfid,
    /// Cache controls.
    pub caching: Caching,
    /// Element.
    pub data_size: DataSize,
    /// Blocks.
    pub blocks: u8,
    /// Width in elements.
    pub width: u16,
    /// Height in rows.
    pub height: u16,
    /// Transpose.
    pub transpose: bool,
    /// VNNI packing.
    pub vnni: bool,
    /// Where the surface is, and where in it the block begins.
    pub address: BlockAddress,
    /// Destination or source.
    pub data: Raw,
}

/// Typed LSC message.
#[derive(Clone, Debug, PartialEq)]
pub struct LscTyped {
    /// Operation: `LoadQuad`, `StoreQuad` or `Atomic`.
    pub op: LscOp,
    /// Cache controls.
    pub caching: Caching,
    /// Address model.
    pub model: AddrModel,
    /// Surface.
    pub surface: LscSurface,
    /// Address width.
    pub addr_size: AddrSize,
    /// Element.
    pub data_size: DataSize,
    /// Channels.
    pub channels: Channels,
    /// `u v r lod`.
    pub coords: [Raw; 4],
    /// Destination or source.
    pub data: Raw,
    /// First atomic operand.
    pub src1: Raw,
    /// Second atomic operand.
    pub src2: Raw,
}

/// Sampler message (3D forms); `variant` is the row's own sub-opcode.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// Sub-opcode.
    pub variant: u8,
    /// `.pixel_null_mask`, `.cps`, `.divS` as bits 0, 1, 2.
    pub flags: u8,
    /// Channels (one channel for gather4).
    pub channels: Channels,
    /// Texel offsets, for the forms that have one.
    pub aoffimmi: Option<Src>,
    /// Sampler, for sampling forms.
    pub sampler: Option<SamplerId>,
    /// Surface.
    pub surface: SurfaceId,
    /// Result.
    pub dst: Raw,
    /// Parameters in order.
    pub params: Vec<Raw>,
}

/// `raw_send` and relatives.
#[derive(Clone, Debug, PartialEq)]
pub struct RawSend {
    /// Split form (`raw_sends`).
    pub split: bool,
    /// `c` form.
    pub conditional: bool,
    /// `_eot` form.
    pub eot: bool,
    /// Shared function id of split forms.
    pub sfid: u8,
    /// Register counts: src0, src1, dst.
    pub sizes: [u8; 3],
    /// Extended descriptor.
    pub ex_desc: Src,
    /// Descriptor.
    pub desc: Src,
    /// First payload.
    pub src0: Raw,
    /// Second payload of split forms.
    pub src1: Raw,
    /// Result.
    pub dst: Raw,
    /// Why it is no instruction known here, after validation.
    pub refused: Option<&'static str>,
}

/// `dpas.P1.P2.depth.repeat dst src0 src1 src2`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dpas {
    /// Precision of src1, by its code in the binary form.
    pub precision1: u8,
    /// Precision code of src2.
    pub precision2: u8,
    /// Systolic depth.
    pub depth: u8,
    /// Repeat count.
    pub repeat: u8,
    /// Result.
    pub dst: Raw,
    /// Accumulator or `%null`.
    pub src0: Raw,
    /// B matrix.
    pub src1: Raw,
    /// A matrix.
    pub src2: Origin,
}
