//! Vocabulary of the opcode table's columns.

use super::{Platform, Type};

/// Groups opcodes as the ISA does; decides the file that lowers them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Family {
    /// Arithmetic.
    Arith,
    /// Bitwise logic, shifts, bit fields.
    Logic,
    /// Moves, selects, minimum and maximum.
    Move,
    /// `cmp`.
    Compare,
    /// Address registers.
    Address,
    /// Control flow.
    Flow,
    /// Messages on surfaces, legacy spelling.
    Memory,
    /// Messages on 64-bit addresses.
    Svm,
    /// Load/store cache messages.
    Lsc,
    /// Barriers and fences.
    Sync,
    /// Images through the sampler.
    Sampler,
    /// Everything else.
    Misc,
}

impl Family {
    /// Every family in the order of the documentation.
    pub const ALL: [Family; 12] = [
        Family::Arith,
        Family::Logic,
        Family::Move,
        Family::Compare,
        Family::Address,
        Family::Flow,
        Family::Memory,
        Family::Svm,
        Family::Lsc,
        Family::Sync,
        Family::Sampler,
        Family::Misc,
    ];

    /// Heading in the documentation.
    pub const fn title(self) -> &'static str {
        match self {
            Family::Arith => "Arithmetic",
            Family::Logic => "Logic and bit fields",
            Family::Move => "Moves",
            Family::Compare => "Comparison",
            Family::Address => "Address registers",
            Family::Flow => "Control flow",
            Family::Memory => "Surface messages",
            Family::Svm => "64-bit address messages",
            Family::Lsc => "Load/store cache messages",
            Family::Sync => "Synchronisation",
            Family::Sampler => "Sampler messages",
            Family::Misc => "Other",
        }
    }
}

/// Operand shape. Each names the `module::Body` (or `MemKind`, `Svm`) that holds the operands and the
/// routine that parses and prints them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// `Body::Alu`: one destination, `sources` sources.
    Alu,
    /// `Body::Alu` with a second destination.
    AluPair,
    /// `Body::Alu` with a condition suffix.
    Cmp,
    /// `Body::Alu` with a truth-table suffix.
    Bfn,
    /// `Body::Label`.
    Label,
    /// `Body::Branch`.
    Branch,
    /// `Body::Ret`.
    Ret,
    /// `Body::SwitchJmp`.
    SwitchJmp,
    /// `Body::Fcall`.
    Fcall,
    /// `Body::Ifcall`.
    Ifcall,
    /// `Body::Faddr`.
    Faddr,
    /// `MemKind::Oword`.
    Oword,
    /// `MemKind::Media`.
    Media,
    /// `MemKind::Gather`.
    Gather,
    /// `MemKind::Gather4Scaled`.
    Gather4Scaled,
    /// `MemKind::GatherScaled`.
    GatherScaled,
    /// `MemKind::Typed`.
    Typed,
    /// `MemKind::DwordAtomic`.
    DwordAtomic,
    /// `MemKind::TypedAtomic`.
    TypedAtomic,
    /// `MemKind::Qword`.
    Qword,
    /// `Svm::Block`.
    SvmBlock,
    /// `Svm::Gather`.
    SvmGather,
    /// `Svm::Gather4Scaled`.
    SvmGather4Scaled,
    /// `Svm::Atomic`.
    SvmAtomic,
    /// `Body::Lsc`, `Body::LscBlock2d` or `Body::LscTyped`.
    Lsc,
    /// `Body::LscFence`.
    LscFence,
    /// `Body::Sample` with a sampler.
    Sample3d,
    /// `Body::Sample` without a sampler.
    Load3d,
    /// `Body::Sample` of `resinfo` and `sampleinfo`.
    Info3d,
    /// `Body::Sample` of media kernels: destination last.
    SampleLegacy,
    /// `Body::RawSend`, one payload.
    RawSend,
    /// `Body::RawSend`, two payloads.
    RawSends,
    /// `Body::Dpas`.
    Dpas,
    /// `Body::Fence`.
    Fence,
    /// `Body::Nullary`.
    Nullary,
    /// `Body::Wait`.
    Wait,
    /// `Body::Sbarrier`.
    Sbarrier,
    /// `Body::Nbarrier`.
    Nbarrier,
    /// `Body::File`.
    File,
    /// `Body::Loc`.
    Loc,
    /// `Body::Lifetime`.
    Lifetime,
    /// Recognised by name only.
    Unparsed,
}

/// How much of an opcode this project runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// Every form the ISA allows is compiled.
    Full,
    /// Compiled; forms that are not are refused by name.
    Partial,
    /// Read, written and validated, not executed.
    DecodeOnly,
    /// Known by name; a typed error says that it is not supported.
    Rejected,
}

/// Which source modifiers an opcode takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Modifiers {
    /// None.
    None,
    /// `(-) (abs) (-abs)`.
    Arith,
    /// `(~)`.
    Logic,
}

/// What a predicate in front of the mnemonic means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PredKind {
    /// Not allowed.
    None,
    /// Switches lanes off.
    Guard,
    /// Chooses between the sources, switches nothing off.
    Selector,
    /// Receives a result.
    Output,
    /// Accepted and dropped, as the vendor's assembler does.
    Ignored,
}

/// Set of operand classes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Classes(u8);

impl Classes {
    const G: u8 = 1;
    const I: u8 = 2;
    const P: u8 = 4;
    const A: u8 = 8;
    const S: u8 = 16;
    const R: u8 = 32;
    /// No operand.
    pub const NONE: Classes = Classes(0);
    /// General variable, direct or indirect.
    pub const GEN: Classes = Classes(Self::G);
    /// General or immediate.
    pub const GEN_IMM: Classes = Classes(Self::G | Self::I);
    /// General or predicate.
    pub const GEN_PRED: Classes = Classes(Self::G | Self::P);
    /// General, immediate or predicate.
    pub const GEN_IMM_PRED: Classes = Classes(Self::G | Self::I | Self::P);
    /// Predicate.
    pub const PRED: Classes = Classes(Self::P);
    /// Address register.
    pub const ADDR: Classes = Classes(Self::A);
    /// General or address register.
    pub const GEN_ADDR: Classes = Classes(Self::G | Self::A);
    /// General, surface or sampler.
    pub const GEN_STATE: Classes = Classes(Self::G | Self::S);
    /// General, immediate, surface or sampler.
    pub const GEN_IMM_STATE: Classes = Classes(Self::G | Self::I | Self::S);
    /// Immediate.
    pub const IMM: Classes = Classes(Self::I);
    /// Surface or sampler.
    pub const STATE: Classes = Classes(Self::S);
    /// Message payload.
    pub const RAW: Classes = Classes(Self::R);

    /// True when all members of `other` belong to the set.
    pub const fn has(self, other: Classes) -> bool {
        self.0 & other.0 == other.0
    }

    /// General variables, direct or indirect.
    pub const fn general(self) -> bool {
        self.0 & Self::G != 0
    }

    /// Immediates.
    pub const fn immediate(self) -> bool {
        self.0 & Self::I != 0
    }

    /// Predicate variables as data.
    pub const fn predicate(self) -> bool {
        self.0 & Self::P != 0
    }

    /// Address registers and addresses of variables.
    pub const fn address(self) -> bool {
        self.0 & Self::A != 0
    }

    /// Surfaces and samplers as data.
    pub const fn state(self) -> bool {
        self.0 & Self::S != 0
    }

    /// Message payloads.
    pub const fn raw(self) -> bool {
        self.0 & Self::R != 0
    }

    /// Names of the members, for documentation and errors.
    pub fn names(self) -> Vec<&'static str> {
        [
            (self.general(), "general"),
            (self.immediate(), "immediate"),
            (self.predicate(), "predicate"),
            (self.address(), "address"),
            (self.state(), "surface or sampler"),
            (self.raw(), "payload"),
        ]
        .into_iter()
        .filter_map(|(on, name)| on.then_some(name))
        .collect()
    }
}

/// What an instruction does to memory outside the register file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Effect {
    /// Nothing; or a row for several operations, each of which says it ([`super::lsc::LscOp::effect`]).
    #[default]
    None,
    /// Reads it.
    Load,
    /// Writes it.
    Store,
    /// Reads and writes one element in one step.
    Atomic,
}

/// Element types an operand may have. The packed immediates `v`, `uv` and `vf` go with words, words and `f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeClass {
    /// No element type.
    None,
    /// Every type but `bool`.
    Any,
    /// Every integer type.
    Int,
    /// Integers up to 32 bits.
    Int32,
    /// `uq`, `q`.
    Int64,
    /// `w`, `uw`, `d`, `ud`; no packed immediates.
    WordD32,
    /// `w`, `uw`, `d`, `ud`, `q`, `uq`.
    NoByte,
    /// `b`, `ub`, `w`, `uw`.
    ByteWord,
    /// `b`, `ub`.
    Byte,
    /// `w`, `uw`.
    Word,
    /// `d`, `ud`.
    D32,
    /// `d`, `ud`, `f`; no packed immediates.
    Dword,
    /// `ud`.
    Ud,
    /// `ud` and the packed `uv`.
    UdUv,
    /// Integers or floats; which go together is said by [`disagreement`].
    Numeric,
    /// `f`, `hf`, `df` and the packed `vf`.
    Float,
    /// `f`, `hf` and the packed `vf`.
    FloatHf,
    /// `f`, `df` and the packed `vf`.
    FloatDf,
    /// `df`.
    Df,
    /// `f` and the packed `vf`.
    F,
    /// Address element.
    Address,
    /// Predicate bits.
    Predicate,
}

impl TypeClass {
    /// True when an operand of type `ty` belongs to the class.
    pub const fn contains(self, ty: Type) -> bool {
        match self {
            TypeClass::None | TypeClass::Predicate => false,
            TypeClass::Any | TypeClass::Numeric => !matches!(ty, Type::Bool),
            TypeClass::Int => ty.is_int(),
            TypeClass::Int32 => ty.is_int() && ty.bytes() <= 4,
            TypeClass::Int64 => matches!(ty, Type::Uq | Type::Q),
            TypeClass::WordD32 => matches!(ty, Type::W | Type::Uw | Type::D | Type::Ud),
            TypeClass::NoByte => ty.is_int() && ty.bytes() > 1,
            TypeClass::ByteWord => ty.is_int() && ty.bytes() <= 2,
            TypeClass::Byte => matches!(ty, Type::B | Type::Ub),
            TypeClass::Word | TypeClass::Address => {
                matches!(ty, Type::W | Type::Uw | Type::V | Type::Uv)
            }
            TypeClass::D32 => matches!(ty, Type::D | Type::Ud),
            TypeClass::Dword => matches!(ty, Type::D | Type::Ud | Type::F),
            TypeClass::Ud => matches!(ty, Type::Ud),
            TypeClass::UdUv => matches!(ty, Type::Ud | Type::Uv),
            TypeClass::Float => ty.is_float() && !matches!(ty, Type::Bf),
            TypeClass::FloatDf => matches!(ty, Type::F | Type::Df | Type::Vf),
            TypeClass::Df => matches!(ty, Type::Df),
            TypeClass::FloatHf => matches!(ty, Type::F | Type::Hf | Type::Vf),
            TypeClass::F => matches!(ty, Type::F | Type::Vf),
        }
    }

    /// Words for documentation and errors.
    pub const fn describe(self) -> &'static str {
        match self {
            TypeClass::None => "-",
            TypeClass::Any => "any",
            TypeClass::Int => "integer",
            TypeClass::Int32 => "integer up to 32 bits",
            TypeClass::Int64 => "q, uq",
            TypeClass::WordD32 => "w, uw, d, ud",
            TypeClass::NoByte => "integer of at least 16 bits",
            TypeClass::ByteWord => "b, ub, w, uw",
            TypeClass::Byte => "b, ub",
            TypeClass::Word => "w, uw",
            TypeClass::D32 => "d, ud",
            TypeClass::Dword => "d, ud, f",
            TypeClass::Ud => "ud",
            TypeClass::UdUv => "ud, uv",
            TypeClass::Numeric => "all integer or all float",
            TypeClass::Float => "f, hf, df",
            TypeClass::FloatHf => "f, hf",
            TypeClass::FloatDf => "f, df",
            TypeClass::Df => "df",
            TypeClass::F => "f",
            TypeClass::Address => "address",
            TypeClass::Predicate => "predicate",
        }
    }
}

/// Why operand types do not go together, as a rule.
///
/// Integers mix with integers, `hf` and `bf` with `f`, `df` with nothing.
pub fn disagreement(types: &[Type]) -> Option<&'static str> {
    let any = |test: fn(Type) -> bool| types.iter().any(|t| test(*t));
    let is_df = |t| matches!(t, Type::Df);
    if any(Type::is_float) && any(Type::is_int) {
        Some("the operands are all integers or all floats")
    } else if any(is_df) && !types.iter().all(|t| is_df(*t)) {
        Some("`df` goes with `df` only")
    } else if any(|t| t == Type::Bf) && any(|t| t == Type::Hf) {
        Some("`bf` goes with `bf` and `f` only")
    } else {
        None
    }
}

/// Set of platforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Platforms(u8);

impl Platforms {
    /// None of those that this project knows (later hardware, or no hardware).
    pub const NONE: Platforms = Platforms(0);
    /// All.
    pub const ALL: Platforms = Platforms(0b11_1111);
    /// `skl`.
    pub const SKL_ONLY: Platforms = Platforms(0b00_0001);
    /// `skl`, and `pvc` and later: those with doubles.
    pub const SKL_FROM_PVC: Platforms = Platforms(0b11_1001);
    /// `skl`, `tgllp`.
    pub const UPTO_TGLLP: Platforms = Platforms(0b00_0011);
    /// `tgllp` and later.
    pub const FROM_TGLLP: Platforms = Platforms(0b11_1110);
    /// `acm-g10` and later.
    pub const FROM_DG2: Platforms = Platforms(0b11_1100);
    /// `acm-g10`.
    pub const DG2_ONLY: Platforms = Platforms(0b00_0100);
    /// `pvc` and later.
    pub const FROM_PVC: Platforms = Platforms(0b11_1000);
    /// All but `pvc`.
    pub const NO_PVC: Platforms = Platforms(0b11_0111);

    /// Membership.
    pub const fn contains(self, platform: Platform) -> bool {
        self.0 & (1 << platform as u8) != 0
    }

    /// `all`, names of devices, or `later`.
    pub fn names(self) -> String {
        if self == Platforms::ALL {
            return "all".into();
        }
        let names: Vec<&str> = Platform::ALL
            .into_iter()
            .filter(|p| self.contains(*p))
            .map(Platform::device)
            .collect();
        if names.is_empty() {
            "later".into()
        } else {
            names.join(" ")
        }
    }
}
