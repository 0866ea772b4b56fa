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

/// Legacy spelling and binary code of every operation that `dword_atomic`, `svm_atomic` and
/// `typed_atomic` have.
pub const LEGACY_ATOMICS: &[(&str, u8, AtomicOp)] = &[
    ("add", 0, AtomicOp::Add),
    ("sub", 1, AtomicOp::Sub),
    ("inc", 2, AtomicOp::Inc),
    ("dec", 3, AtomicOp::Dec),
    ("min", 4, AtomicOp::Umin),
    ("max", 5, AtomicOp::Umax),
    ("xchg", 6, AtomicOp::Xchg),
    ("cmpxchg", 7, AtomicOp::CmpXchg),
    ("and", 8, AtomicOp::And),
    ("or", 9, AtomicOp::Or),
    ("xor", 10, AtomicOp::Xor),
    ("minsint", 11, AtomicOp::Smin),
    ("maxsint", 12, AtomicOp::Smax),
    ("predec", 13, AtomicOp::PreDec),
    ("fmax", 16, AtomicOp::Fmax),
    ("fmin", 17, AtomicOp::Fmin),
    ("fcmpwr", 18, AtomicOp::FcmpXchg),
    ("fadd", 19, AtomicOp::Fadd),
    ("fsub", 20, AtomicOp::Fsub),
];

impl AtomicOp {
    /// Spelling and binary code in legacy messages; `None` for the LSC-only atomic read.
    pub fn legacy(self) -> Option<(&'static str, u8)> {
        LEGACY_ATOMICS
            .iter()
            .find(|(.., op)| *op == self)
            .map(|(name, code, _)| (*name, *code))
    }

    /// The operation of a legacy spelling.
    pub fn from_legacy_name(name: &str) -> Option<AtomicOp> {
        LEGACY_ATOMICS
            .iter()
            .find(|(n, ..)| *n == name)
            .map(|(.., op)| *op)
    }

    /// The operation of a legacy binary code.
    pub fn from_legacy_code(code: u8) -> Option<AtomicOp> {
        LEGACY_ATOMICS
            .iter()
            .find(|(_, c, _)| *c == code)
            .map(|(.., op)| *op)
    }
}
