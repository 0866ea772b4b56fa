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
    /// If `old == compare`, store `new`. Which source is which depends on the spelling (docs/visa.md, "Memory").
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

/// A legacy atomic: spelling, code in the binary format, and code in the descriptor of a data port's message, where
/// operations on integers and on floats are counted apart.
pub type LegacyAtomic = (&'static str, u8, u8, AtomicOp);

/// Every operation that `dword_atomic`, `svm_atomic` and `typed_atomic` have.
pub const LEGACY_ATOMICS: &[LegacyAtomic] = &[
    ("add", 0, 0x7, AtomicOp::Add),
    ("sub", 1, 0x8, AtomicOp::Sub),
    ("inc", 2, 0x5, AtomicOp::Inc),
    ("dec", 3, 0x6, AtomicOp::Dec),
    ("min", 4, 0xD, AtomicOp::Umin),
    ("max", 5, 0xC, AtomicOp::Umax),
    ("xchg", 6, 0x4, AtomicOp::Xchg),
    ("cmpxchg", 7, 0xE, AtomicOp::CmpXchg),
    ("and", 8, 0x1, AtomicOp::And),
    ("or", 9, 0x2, AtomicOp::Or),
    ("xor", 10, 0x3, AtomicOp::Xor),
    ("minsint", 11, 0xB, AtomicOp::Smin),
    ("maxsint", 12, 0xA, AtomicOp::Smax),
    ("predec", 13, 0xF, AtomicOp::PreDec),
    ("fmax", 16, 0x1, AtomicOp::Fmax),
    ("fmin", 17, 0x2, AtomicOp::Fmin),
    ("fcmpwr", 18, 0x3, AtomicOp::FcmpXchg),
    ("fadd", 19, 0x4, AtomicOp::Fadd),
    ("fsub", 20, 0x5, AtomicOp::Fsub),
];

impl AtomicOp {
    /// Spelling and binary code in legacy messages; `None` for the LSC-only atomic read.
    pub fn legacy(self) -> Option<(&'static str, u8)> {
        let row = |&&(.., op): &&LegacyAtomic| op == self;
        let (name, code, ..) = LEGACY_ATOMICS.iter().find(row)?;
        Some((name, *code))
    }

    /// The operation of a legacy spelling.
    pub fn from_legacy_name(name: &str) -> Option<AtomicOp> {
        let row = |(n, ..): &&LegacyAtomic| *n == name;
        LEGACY_ATOMICS.iter().find(row).map(|(.., op)| *op)
    }

    /// The operation of a legacy binary code.
    pub fn from_legacy_code(code: u8) -> Option<AtomicOp> {
        let row = |(_, c, ..): &&LegacyAtomic| *c == code;
        LEGACY_ATOMICS.iter().find(row).map(|(.., op)| *op)
    }

    /// The operation of a data port's message, on floats or on integers.
    pub fn from_port_code(code: u8, floats: bool) -> Option<AtomicOp> {
        let row = |(_, _, c, op): &&LegacyAtomic| *c == code && op.is_float() == floats;
        LEGACY_ATOMICS.iter().find(row).map(|(.., op)| *op)
    }
}
