//! Atomic operations, shared by the legacy and the LSC spelling.

/// What an atomic message does to the memory element `old`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AtomicOp {
    /// `old + src0`.
    Add,
    /// `old - src0`.
    Sub,
    /// `old + 1`.
    Inc,
    /// `old - 1`.
    Dec,
    /// `old - 1`, returning the new value.
    PreDec,
    /// Unsigned minimum.
    Umin,
    /// Unsigned maximum.
    Umax,
    /// Signed minimum.
    Smin,
    /// Signed maximum.
    Smax,
    /// Exchange with `src0`.
    Xchg,
    /// If `old == compare`, store `new`. Which source is which depends on the spelling (VISA.md 2.6).
    CmpXchg,
    /// `old & src0`.
    And,
    /// `old | src0`.
    Or,
    /// `old ^ src0`.
    Xor,
    /// Float maximum.
    Fmax,
    /// Float minimum.
    Fmin,
    /// Float compare and write.
    FcmpXchg,
    /// Float add.
    Fadd,
    /// Float subtract.
    Fsub,
    /// Atomic read.
    Load,
}

impl AtomicOp {
    /// Number of data operands beside the address: 0, 1 or 2.
    pub const fn sources(self) -> usize {
        match self {
            AtomicOp::Inc | AtomicOp::Dec | AtomicOp::PreDec | AtomicOp::Load => 0,
            AtomicOp::CmpXchg | AtomicOp::FcmpXchg => 2,
            _ => 1,
        }
    }

    /// True when the element is a float.
    pub const fn is_float(self) -> bool {
        matches!(
            self,
            AtomicOp::Fmax | AtomicOp::Fmin | AtomicOp::FcmpXchg | AtomicOp::Fadd | AtomicOp::Fsub
        )
    }
}
