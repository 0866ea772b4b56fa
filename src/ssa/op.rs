//! Operations. Each variant's doc gives operand and result types; `N` is the lane count and lane
//! counts of all operands agree unless said otherwise.

pub use super::space::Space;
use super::types::{Lane, Ty};
use crate::isa::AtomicOp;

/// Lane-wise, one operand, result of the same type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnOp {
    /// Two's-complement negation.
    Neg,
    /// Bitwise complement; on `i1` logical not.
    Not,
    /// Leading zeros; of zero, the width.
    Clz,
    /// Trailing zeros; of zero, the width.
    Ctz,
    /// Population count.
    Popcnt,
    /// Bit reversal.
    BitRev,
    /// Float sign flip (exact, also for NaN).
    FNeg,
    /// Float sign clear.
    FAbs,
    /// Correctly rounded square root.
    FSqrt,
    /// Round down to an integer.
    FFloor,
    /// Round up.
    FCeil,
    /// Round toward zero.
    FTrunc,
    /// Round to nearest, ties to even.
    FNearest,
}

/// Lane-wise, two operands of the result's type.
///
/// Shift and rotate counts are taken modulo the lane width. Shift counts may also be a scalar of
/// the same lane type applied to all lanes. Integer division never traps: see each variant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// Wrapping add.
    Add,
    /// Wrapping subtract.
    Sub,
    /// Low half of the product.
    Mul,
    /// High half of the signed product.
    MulHiS,
    /// High half of the unsigned product.
    MulHiU,
    /// Signed quotient; `x/0` is `MAX` for `x >= 0` and `MIN` otherwise, `MIN/-1` is `MIN`.
    SDiv,
    /// Unsigned quotient; `x/0` is all ones.
    UDiv,
    /// Signed remainder with the sign of the dividend; `x%0` is `x`, `MIN%-1` is 0.
    SRem,
    /// Unsigned remainder; `x%0` is `x`.
    URem,
    /// Bitwise and; also on `i1`.
    And,
    /// Bitwise or; also on `i1`.
    Or,
    /// Bitwise exclusive or; also on `i1`.
    Xor,
    /// Shift left.
    Shl,
    /// Logical shift right.
    LShr,
    /// Arithmetic shift right.
    AShr,
    /// Rotate left.
    Rotl,
    /// Rotate right.
    Rotr,
    /// Signed minimum.
    SMin,
    /// Signed maximum.
    SMax,
    /// Unsigned minimum.
    UMin,
    /// Unsigned maximum.
    UMax,
    /// Signed sum, at most `MAX` and at least `MIN`.
    SAddSat,
    /// Signed difference, at most `MAX` and at least `MIN`.
    SSubSat,
    /// Unsigned sum, at most all ones.
    UAddSat,
    /// Unsigned difference, at least zero.
    USubSat,
    /// Float add, nearest-even, denormals kept (as all plain float operations).
    FAdd,
    /// Float subtract.
    FSub,
    /// Float multiply.
    FMul,
    /// Correctly rounded float divide.
    FDiv,
    /// `a * 2^b` of `f32`, rounded once, for `a` of magnitude 1/2 to 2 and integers `b` from -152 to 130. NaN where `a` is NaN. Any value for
    /// other operands, which lowering does not make.
    ///
    /// The pass `exponents` makes other operands for code generators whose instruction takes them ([`Backend::scales_by_any`]): all finite
    /// `b`, which are rounded down, infinite `b`, of which -inf gives 0 and +inf gives infinity even if `a` is NaN, and NaN, which gives NaN.
    ///
    /// [`Backend::scales_by_any`]: crate::backend::Backend::scales_by_any
    FScale,
}

impl BinOp {
    /// True for shifts and rotates, whose count may be a scalar.
    pub const fn is_shift(self) -> bool {
        matches!(
            self,
            BinOp::Shl | BinOp::LShr | BinOp::AShr | BinOp::Rotl | BinOp::Rotr
        )
    }

    /// True when the operands may change places.
    pub const fn commutes(self) -> bool {
        use BinOp::{Add, And, FAdd, FMul, Mul, MulHiS, MulHiU, Or, SAddSat, UAddSat, Xor};
        let integers = matches!(self, Add | Mul | MulHiS | MulHiU | And | Or | Xor);
        integers || self.is_bound() || matches!(self, SAddSat | UAddSat | FAdd | FMul)
    }

    /// True for the smaller or the larger of two integers.
    pub const fn is_bound(self) -> bool {
        matches!(self, BinOp::SMin | BinOp::SMax | BinOp::UMin | BinOp::UMax)
    }
}

/// Integer comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ICond {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Signed less.
    Slt,
    /// Signed less or equal.
    Sle,
    /// Signed greater.
    Sgt,
    /// Signed greater or equal.
    Sge,
    /// Unsigned less.
    Ult,
    /// Unsigned less or equal.
    Ule,
    /// Unsigned greater.
    Ugt,
    /// Unsigned greater or equal.
    Uge,
}

/// Float comparison; every condition but `Ne` is false when an operand is NaN, `Ne` is true then.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FCond {
    /// Equal.
    Eq,
    /// Not equal or unordered.
    Ne,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
}

/// Lane-wise conversion; the result type says the target lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conv {
    /// Sign-extend an integer (`i1`: 0 or all ones).
    SExt,
    /// Zero-extend an integer (`i1`: 0 or 1).
    ZExt,
    /// Keep the low bits of an integer (to `i1`: bit 0).
    Trunc,
    /// Signed integer to float, nearest-even.
    SIToF,
    /// Unsigned integer to float, nearest-even.
    UIToF,
    /// Float to signed integer: truncate, saturate, NaN gives 0.
    FToSI,
    /// Float to unsigned integer: truncate, saturate, NaN gives 0.
    FToUI,
    /// `f32` to `f64`.
    FPromote,
    /// `f64` to `f32`, nearest-even.
    FDemote,
    /// Binary16 bits in `i16` to `f32` or `f64`, exact, denormals kept.
    F16ToF,
    /// `f32` or `f64` to binary16 bits in `i16`, nearest-even, one rounding, denormals kept.
    FToF16,
}

/// Float operations under a run-time `%cr0` (docs/visa.md, "Types and conversions").
///
/// Used only where `%cr0` is not known to be "nearest-even, denormals kept".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum FpEnvOp {
    /// `a + b`.
    Add,
    /// `a * b`.
    Mul,
    /// `a / b`.
    Div,
    /// `a * b + c`, fused.
    Fma,
    /// Square root.
    Sqrt,
    /// Signed integer to float.
    SIToF,
    /// Unsigned integer to float.
    UIToF,
    /// Float to another float width (`f16` as `i16` lanes on either side).
    FToF,
    /// Identity apart from denormal flushing.
    Flush,
}

/// Lane-wise memory access.
///
/// Lane `i` accesses `comps` elements at `addr[i] + c * elem.bytes()`. 32-bit offsets are added in
/// 64 bits, so that an element beyond the last offset is outside and not back at the start. Each element is checked by
/// itself: one that is not wholly inside memory reads zero and is not written. Lanes whose mask bit is clear touch nothing and read zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MemAccess {
    /// Which memory.
    pub space: Space,
    /// Integer element.
    pub elem: Lane,
    /// Elements a lane, 1 … 8; a load has as many results.
    pub comps: u8,
    /// Index into [`super::Function::sites`].
    pub site: u32,
}

/// Uniform access to `n` consecutive elements at one scalar address; elements are checked one by one,
/// and 32-bit offsets do not wrap, as in [`MemAccess`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BlockAccess {
    /// Which memory.
    pub space: Space,
    /// Integer element.
    pub elem: Lane,
    /// Element count.
    pub n: u16,
    /// Index into [`super::Function::sites`].
    pub site: u32,
}

/// Rectangle of elements in device memory: `blocks` of `width` x `height` elements side by side, taken out of a surface
/// that the operands describe.
///
/// Operands are base address (`i64`), bytes of a row less one, rows less one, bytes from row to row less one, and the
/// first column (in elements) and row of the rectangle (each `i32`, the last two signed). An element outside the surface
/// reads zero and is not written, without a fault; one inside is checked as in [`MemAccess`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Access2d {
    /// Integer element.
    pub elem: Lane,
    /// Blocks.
    pub blocks: u8,
    /// Elements of a row of a block.
    pub width: u8,
    /// Rows of a block.
    pub height: u8,
    /// Columns follow each other in registers, not rows.
    pub transpose: bool,
    /// Elements of a dword come from neighbouring rows (of transposed blocks: columns).
    pub packed: bool,
    /// Bytes of a register.
    pub register: u8,
    /// Index into [`super::Function::sites`].
    pub site: u32,
}

impl Access2d {
    /// Most registers of a payload.
    pub const MAX_REGISTERS: u32 = 32;

    /// Elements packed into a dword.
    pub const fn per_dword(self) -> u32 {
        if self.packed {
            4 / self.elem.bytes()
        } else {
            1
        }
    }

    /// Rows or columns as they lie in registers, and elements of each.
    const fn runs(self) -> (u32, u32) {
        if self.transpose {
            (self.width as u32, self.height as u32)
        } else {
            (self.height as u32, self.width as u32)
        }
    }

    /// Elements from one block to the next in registers: whole registers.
    pub const fn block_pitch(self) -> u32 {
        let (count, length) = self.runs();
        (count * length.next_power_of_two()).next_multiple_of(self.lanes())
    }

    /// Place of an element in the payload.
    pub const fn position(self, block: u32, y: u32, x: u32) -> u32 {
        let (run, along) = if self.transpose { (x, y) } else { (y, x) };
        let pitch = self.runs().1.next_power_of_two();
        let k = self.per_dword();
        block * self.block_pitch() + run / k * k * pitch + along * k + run % k
    }

    /// Elements of a register.
    pub const fn lanes(self) -> u32 {
        self.register as u32 / self.elem.bytes()
    }

    /// Registers of the payload.
    pub const fn registers(self) -> u32 {
        self.blocks as u32 * self.block_pitch() / self.lanes()
    }

    /// True when the payload has a size that messages have, and dwords are whole.
    pub const fn is_possible(self) -> bool {
        let sizes = self.blocks > 0 && self.width > 0 && self.height > 0;
        let elem = matches!(self.elem, Lane::I8 | Lane::I16 | Lane::I32 | Lane::I64);
        if !sizes || !elem || !matches!(self.register, 32 | 64) {
            return false;
        }
        let packs = !self.packed
            || self.elem.bytes() <= 2 && self.runs().0.is_multiple_of(self.per_dword());
        packs && self.registers() <= Self::MAX_REGISTERS
    }
}

/// What of device memory an access is about to reach.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BufferCheck {
    /// Integer element.
    pub elem: Lane,
    /// Consecutive elements a lane.
    pub count: u16,
    /// Addresses are rounded down to multiples of the element first, as those of atomics.
    pub aligned: bool,
    /// The access writes, which buffers that kernels only read do not take.
    pub writes: bool,
    /// Index into [`super::Function::sites`].
    pub site: u32,
}

/// Lanes at addresses that the hardware does not take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AlignCheck {
    /// Kind of memory.
    pub space: Space,
    /// Index into [`super::Function::sites`].
    pub site: u32,
}

/// What an access is to checks of races.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RaceAccess {
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic that only loads.
    AtomicRead,
    /// Another atomic.
    AtomicWrite,
}

/// An access to memory that other threads reach, which is about to be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RaceCheck {
    /// Which memory: surface, local or flat.
    pub space: Space,
    /// Integer element.
    pub elem: Lane,
    /// Consecutive elements a lane.
    pub count: u16,
    /// What it does.
    pub access: RaceAccess,
    /// It is a [`BlockAccess`]: one lane, whose elements are one vector.
    pub block: bool,
    /// Index into [`super::Function::sites`].
    pub site: u32,
    /// Offset in the payload of the pointer that addresses are computed from. A read is not recorded where the launch does not write its buffer
    /// ([`super::Function::written`]), and a write that leaves its buffer is left to the interpreter.
    pub pointer: Option<u32>,
}

/// A barrier of the group that a thread is about to come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct BarrierCheck {
    /// It waits there; else it is the signal of a split barrier.
    pub waits: bool,
    /// Index into [`super::Function::sites`].
    pub site: u32,
}

/// Lane-wise atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AtomicAccess {
    /// Which memory: surface, local, flat or scratch.
    pub space: Space,
    /// Operation. For `CmpXchg`/`FcmpXchg` the operands are compare, then new.
    pub op: AtomicOp,
    /// Integer lane of the memory element, 16, 32 or 64 bits (floats as bits).
    pub elem: Lane,
    /// Index into [`super::Function::sites`].
    pub site: u32,
}

impl AtomicAccess {
    /// Whether it changes memory: all but loads may.
    pub fn writes(&self) -> bool {
        self.op != AtomicOp::Load
    }
}

/// Greatest local id: groups are no larger (`visa_runtime::limits`).
pub const MAX_LOCAL_ID: u64 = 1023;

/// What is done to an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImageOp {
    /// Texels at integer coordinates.
    Read,
    /// Writes texels at integer coordinates.
    Write,
    /// As `Read`, but coordinates outside are no fault and give the border.
    Fetch,
    /// Filtered, at float coordinates.
    Sample,
    /// Size of the image; the first coordinate is the level.
    Info,
    /// Up to four bytes of a row, from a byte of it; the operand is their number. The third coordinate says among which rows:
    /// 0 all, 2 and 3 every other one, from the first or the second on.
    BlockRead,
    /// The same written; the second operand has the bytes.
    BlockWrite,
    /// Atomic on texels of one 32-bit channel. For `CmpXchg`/`FcmpXchg` the operands are compare, then new.
    Atomic(AtomicOp),
    /// The same on texels of one 16-bit channel.
    AtomicShort(AtomicOp),
    /// As `Fetch`, the operands u, v, r texels away; layers stay.
    FetchOffset,
    /// As `Sample`, the operands u, v, r texels away; layers stay.
    SampleOffset,
    /// The named channel of the four texels that a filter of two dimensions would read, as many texels away: lower left, lower
    /// right, upper right, upper left.
    Gather,
    /// Number of samples of a texel.
    Samples,
    /// As `SampleOffset`, of texels that are 1 where the sampler's comparison holds between the fourth operand and their red
    /// channel, else 0. Images of which nothing can be compared are as coordinates outside of `Read`.
    Compare,
    /// As `Gather`, of such texels.
    GatherCompare,
    /// Level of detail, clamped and not, of gradients: one instead of the coordinates, the other as operands.
    Lod,
}

impl ImageOp {
    /// Operands after the coordinates.
    pub const fn operands(self) -> usize {
        match self {
            ImageOp::Read | ImageOp::Fetch | ImageOp::Sample | ImageOp::Info | ImageOp::Samples => {
                0
            }
            ImageOp::Write | ImageOp::Compare | ImageOp::GatherCompare => 4,
            ImageOp::FetchOffset | ImageOp::SampleOffset | ImageOp::Gather | ImageOp::Lod => 3,
            ImageOp::BlockRead => 1,
            ImageOp::BlockWrite => 2,
            ImageOp::Atomic(op) | ImageOp::AtomicShort(op) => op.sources(),
        }
    }

    /// Results.
    pub const fn results(self) -> usize {
        match self {
            ImageOp::Read
            | ImageOp::Fetch
            | ImageOp::Sample
            | ImageOp::Info
            | ImageOp::Samples
            | ImageOp::FetchOffset
            | ImageOp::SampleOffset
            | ImageOp::Gather
            | ImageOp::Compare
            | ImageOp::GatherCompare
            | ImageOp::Lod => 4,
            ImageOp::Write | ImageOp::BlockWrite => 0,
            ImageOp::BlockRead | ImageOp::Atomic(_) | ImageOp::AtomicShort(_) => 1,
        }
    }
}

/// Lane-wise access to an image. What a texel is depends on the image, so all values are dwords.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImageAccess {
    /// Operation.
    pub op: ImageOp,
    /// Channels that a write changes, or the one that a gather reads, a bit each.
    pub channels: u8,
    /// Index into [`super::Function::sites`].
    pub site: u32,
}

/// Value that the launch provides. Types are given by [`Input::ty`] where they are fixed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Input {
    /// Scalar `i16` local id in dimension `dim` of the thread's lane `lane`.
    LocalId {
        /// 0 x, 1 y, 2 z.
        dim: u8,
        /// Lane of the thread.
        lane: u8,
    },
    /// `<N x i16>` local ids in dimension `dim` of lanes `first … first+N`.
    LocalIds {
        /// 0 x, 1 y, 2 z.
        dim: u8,
        /// First lane.
        first: u8,
    },
    /// Scalar `i32`: number of the thread in its group.
    Thread,
    /// `<simd x i1>` lanes that exist.
    DispatchMask,
    /// Any type: bytes of the cross-thread payload at this offset (same for all threads of a launch).
    Payload(u32),
    /// Scalar `i32`: dword of `r0` (dwords 2 and 5 are per thread, the others per group).
    R0(u8),
    /// Scalar `i32`: dword of `%sr0`.
    Sr0(u8),
    /// Scalar `i32`: `%hw_id`.
    HwId,
    /// Scalar `i64`: time stamp; two reads may differ.
    Tsc,
    /// Scalar `i32`: which barrier or exchange the thread resumes from, 0 at the start.
    State,
    /// Any type: zeros, which stand for a register that was not written. Only functions that are checked for it have this, and none after the pass
    /// `check-init`, which looks for what depends on it.
    Unset,
}

/// Whose bytes are signed at [`Op::Dot4`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ByteSigns {
    /// Those of the second operand.
    pub a: bool,
    /// Those of the third.
    pub b: bool,
}

/// An operation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// `() -> T` scalar with these bits.
    Const(u64),
    /// `() -> <N x T>` lanes with these bits.
    VecConst(Box<[u64]>),
    /// `() -> T`.
    Input(Input),
    /// `(T) -> T`.
    Unary(UnOp),
    /// `(T, T) -> T`.
    Binary(BinOp),
    /// `(F, F, F) -> F`: `a * b + c` with one rounding.
    Fma,
    /// `(i32, i32, i32) -> i32`, or vectors of these: the first, plus the sum of the products of the second's and the third's four bytes.
    Dot4(ByteSigns),
    /// `(T, T) -> <N x i1>`.
    ICmp(ICond),
    /// `(F, F) -> <N x i1>`.
    FCmp(FCond),
    /// `(<N x i1> or i1, T, T) -> T`: second operand where the mask is set, else third.
    Select,
    /// `(A) -> B`.
    Convert(Conv),
    /// `(A) -> B` of the same total bits; lane 0 is the low end.
    Bitcast,
    /// `(scalar) -> <N x T>`.
    Splat,
    /// `(<N x T>) -> T` lane `k`.
    ExtractLane(u16),
    /// `(<N x T>, T) -> <N x T>`.
    InsertLane(u16),
    /// `(<A x T>) -> <N x T>` or `(<A x T>, <B x T>) -> <N x T>`: result lane `i` is lane `indices[i]`
    /// of the operands put end to end. Operands may be scalars (one lane).
    Shuffle(Box<[u16]>),
    /// `(<N x i1>) -> i1`: any lane set.
    MaskAny,
    /// `(<N x i1>) -> i1`: every lane set.
    MaskAll,
    /// `(<N x i1>) -> i32`: bit `i` is lane `i` (N <= 32).
    MaskToBits,
    /// `(i32) -> <N x i1>`.
    BitsToMask,
    /// `(i32 cr0, operands…) -> T`.
    FpEnv(FpEnvOp),
    /// `(mask, addr[, surface]) -> T…`: `comps` results of `<N x elem>`.
    Load(MemAccess),
    /// `(mask, addr[, surface], values…) -> ()`.
    Store(MemAccess),
    /// `(i1, addr[, surface]) -> <n x elem>`; a false condition reads zeros.
    BlockLoad(BlockAccess),
    /// `(i1, addr[, surface], <n x elem>) -> ()`.
    BlockStore(BlockAccess),
    /// `(i1, base, width, height, pitch, x, y) -> <L x elem>…`: one result a register, zero where nothing was read; a
    /// false condition reads zeros.
    Load2d(Access2d),
    /// `(i1, base, width, height, pitch, x, y, values…) -> ()`: one value a register.
    Store2d(Access2d),
    /// `(mask, addr[, surface], sources…) -> <N x elem>`: old values; zero where masked off or out of bounds.
    Atomic(AtomicAccess),
    /// `(mask, addr) -> ()`, both with `N` lanes or scalars: records enabled lanes that have an element in device memory which does not
    /// lie wholly in a buffer, or that must not be written.
    CheckBuffer(BufferCheck),
    /// `(mask, addr[, surface]) -> ()`, as the atomic that follows, but the mask has those of its lanes whose address is no multiple of the
    /// element. Records them.
    CheckAligned(AlignCheck),
    /// `(mask, addr[, surface], values…) -> ()`, as the access that follows; values of plain stores only. Records enabled lanes that have an
    /// element which an access of another thread reached before, if nothing orders the two.
    CheckRace(RaceCheck),
    /// `(<N x i1> or i1) -> ()`: a branch of the kernel depends on this, whatever passes make of the branch. Only functions that are checked for
    /// registers which were not written have this, and none after the pass `check-init`.
    Decide,
    /// `(T…) -> ()`: leaves the function if any bit of an operand is set: what is not initialised may be used from here on, which only the
    /// interpreter can judge. Operands are marks, or one condition.
    Suspect,
    /// `(mask, addr[, surface], marks…) -> ()`: if any of the marks is set, which were loaded for the same lanes, the elements of all enabled
    /// lanes are initialised now.
    Initialise(RaceCheck),
    /// `(i32) -> ()`: the thread comes to a barrier with these lanes enabled, a bit each. Records lanes that there are and that are not
    /// among them, and threads that did not come to the barrier before. Stands before the barrier itself.
    CheckBarrier(BarrierCheck),
    /// `(mask, u, surface, sampler, v, r, operands…) -> T…`: surface and sampler are scalar `i32` indices, all else `<N x i32>`.
    Image(ImageAccess),
    /// `() -> ()`: memory fence between this thread and those of other groups. Those of its own run when it waits.
    Fence,
    /// `() -> ()`: waits until every thread of the group that is not finished has come here. Values stay, memory may be
    /// another afterwards. The pass `suspend` makes a [`super::Term::Suspend`] and a resume block of it, so backends
    /// do not see it.
    Barrier,
    /// `(<N x i32>) -> <N x i32>`: gives a value to the thread that this one is fused with, and gets that thread's. Waits until
    /// it has come to the same instruction; where it does not, the launch ends. Threads 2k and 2k + 1 of a group are
    /// fused. Memory and the pass `suspend` as with a barrier.
    Exchange,
    /// `(i32 id, i32 role, i32 producers, i32 consumers) -> i32`: announces the thread at one of the group's barriers or, of
    /// [`BarrierStep::Pass`], asks whether it may go on after it, which only reads the id. Never 0 when it may.
    NamedBarrier(BarrierStep),
    /// `(T) -> ()`: saves a value in the thread's frame at this byte offset (masks as 32-bit words).
    FrameStore(u32),
    /// `() -> T`.
    FrameLoad(u32),
    /// `() -> ()`: leaves the function when the launch was interrupted; stands on every back edge, at every call and at intervals in
    /// straight-line code.
    Poll,
}

impl Op {
    /// True when the two operands may change places.
    pub const fn commutes(&self) -> bool {
        match self {
            Op::Binary(op) => op.commutes(),
            Op::ICmp(c) => matches!(c, ICond::Eq | ICond::Ne),
            Op::FCmp(c) => matches!(c, FCond::Eq | FCond::Ne),
            _ => false,
        }
    }

    /// Index of the memory instruction that the operation belongs to.
    pub const fn site(&self) -> Option<u32> {
        match self {
            Op::Load(m) | Op::Store(m) => Some(m.site),
            Op::BlockLoad(m) | Op::BlockStore(m) => Some(m.site),
            Op::Load2d(m) | Op::Store2d(m) => Some(m.site),
            Op::Atomic(m) => Some(m.site),
            Op::CheckBuffer(m) => Some(m.site),
            Op::CheckAligned(m) => Some(m.site),
            Op::CheckRace(m) | Op::Initialise(m) => Some(m.site),
            Op::CheckBarrier(m) => Some(m.site),
            Op::Image(m) => Some(m.site),
            _ => None,
        }
    }

    /// True for operations that compute each lane from the same lane of their operands.
    pub const fn is_lane_wise(&self) -> bool {
        matches!(
            self,
            Op::Unary(_)
                | Op::Binary(_)
                | Op::Fma
                | Op::Dot4(_)
                | Op::ICmp(_)
                | Op::FCmp(_)
                | Op::Select
                | Op::Convert(_)
                | Op::FpEnv(_)
        )
    }

    /// True where a thread waits for others, and the pass `suspend` ends the block.
    pub const fn waits(&self) -> bool {
        matches!(self, Op::Barrier | Op::Exchange)
    }

    /// What each lane of a lane-wise, block or atomic access reaches: kind of memory, element, number of consecutive elements, and site.
    pub const fn elements(&self) -> Option<(Space, Lane, u16, u32)> {
        match self {
            Op::Load(m) | Op::Store(m) => Some((m.space, m.elem, m.comps as u16, m.site)),
            Op::BlockLoad(m) | Op::BlockStore(m) => Some((m.space, m.elem, m.n, m.site)),
            Op::Atomic(m) => Some((m.space, m.elem, 1, m.site)),
            _ => None,
        }
    }

    /// True when the operation must not be removed, duplicated or reordered with other such.
    pub const fn has_effect(&self) -> bool {
        matches!(
            self,
            Op::Load(_)
                | Op::Store(_)
                | Op::BlockLoad(_)
                | Op::BlockStore(_)
                | Op::Load2d(_)
                | Op::Store2d(_)
                | Op::Atomic(_)
                | Op::CheckBuffer(_)
                | Op::CheckAligned(_)
                | Op::CheckRace(_)
                | Op::Decide
                | Op::Suspect
                | Op::Initialise(_)
                | Op::CheckBarrier(_)
                | Op::Image(_)
                | Op::Fence
                | Op::Barrier
                | Op::Exchange
                | Op::NamedBarrier(_)
                | Op::FrameStore(_)
                | Op::FrameLoad(_)
                | Op::Poll
                | Op::Input(Input::Tsc)
        )
    }
}

/// Number of the barrier of all threads at [`Op::NamedBarrier`].
pub const GROUP_BARRIER: u32 = 32;

/// Where the role of a signal at [`Op::NamedBarrier`] has one more than the site, if it is checked.
pub const SITE_SHIFT: u32 = 2;

/// Role of a thread that signals and waits at [`Op::NamedBarrier`].
pub const BOTH_ROLES: u32 = 0;

/// What [`Op::NamedBarrier`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BarrierStep {
    /// Counts the thread.
    Signal,
    /// Asks whether all that the barrier waits for have come since the thread signalled. At barrier
    /// [`GROUP_BARRIER`] a thread that has not signalled does so.
    Pass,
}

impl Input {
    /// Type of the value, where the variant fixes it.
    pub const fn ty(self) -> Option<Ty> {
        match self {
            Input::LocalId { .. } => Some(Ty::scalar(Lane::I16)),
            Input::Thread | Input::R0(_) | Input::Sr0(_) | Input::HwId | Input::State => {
                Some(Ty::I32)
            }
            Input::Tsc => Some(Ty::I64),
            Input::LocalIds { .. } | Input::DispatchMask | Input::Payload(_) | Input::Unset => None,
        }
    }
}
