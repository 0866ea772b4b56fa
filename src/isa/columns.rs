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
    /// Address register, address of a variable, general or immediate.
    pub const ADDR_GEN_IMM: Classes = Classes(Self::A | Self::G | Self::I);
    /// General, surface or sampler.
    pub const GEN_STATE: Classes = Classes(Self::G | Self::S);
    /// General, immediate, surface or sampler.
    pub const GEN_IMM_STATE: Classes = Classes(Self::G | Self::I | Self::S);
    /// Message payload.
    pub const RAW: Classes = Classes(Self::R);

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

/// Element types an operand may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TypeClass {
    /// No element type.
    None,
    /// Every type.
    Any,
    /// Every integer type.
    Int,
    /// Integers up to 32 bits.
    Int32,
    /// `b`, `ub`.
    Byte,
    /// `w`, `uw`.
    Word,
    /// `d`, `ud`.
    D32,
    /// `ud`; `d` immediates and variables are tolerated by the vendor's tools.
    Ud,
    /// `uq`, `q`.
    Uq,
    /// Integers or floats; the operands of one instruction are all integers or all floats.
    Numeric,
    /// Every float type.
    Float,
    /// `f`, `hf` and the packed `vf`.
    FloatHf,
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
            TypeClass::Any => true,
            TypeClass::Numeric => !matches!(ty, Type::Bool),
            TypeClass::Int => ty.is_int(),
            TypeClass::Int32 => ty.is_int() && ty.bytes() <= 4,
            TypeClass::Byte => matches!(ty, Type::B | Type::Ub),
            TypeClass::Word | TypeClass::Address => {
                matches!(ty, Type::W | Type::Uw | Type::V | Type::Uv)
            }
            TypeClass::D32 | TypeClass::Ud => matches!(ty, Type::D | Type::Ud),
            TypeClass::Uq => matches!(ty, Type::Uq | Type::Q),
            TypeClass::Float => ty.is_float(),
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
            TypeClass::Byte => "b, ub",
            TypeClass::Word => "w, uw",
            TypeClass::D32 => "d, ud",
            TypeClass::Ud => "ud",
            TypeClass::Uq => "uq",
            TypeClass::Numeric => "all integer or all float",
            TypeClass::Float => "float",
            TypeClass::FloatHf => "f, hf",
            TypeClass::F => "f",
            TypeClass::Address => "address",
            TypeClass::Predicate => "predicate",
        }
    }
}

/// Set of platforms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Platforms(u8);

impl Platforms {
    /// None of the four that this project knows (later hardware, or no hardware).
    pub const NONE: Platforms = Platforms(0);
    /// All.
    pub const ALL: Platforms = Platforms(0b1111);
    /// `skl`.
    pub const SKL_ONLY: Platforms = Platforms(0b0001);
    /// `skl` and `pvc`.
    pub const SKL_PVC: Platforms = Platforms(0b1001);
    /// `skl`, `tgllp`.
    pub const UPTO_TGLLP: Platforms = Platforms(0b0011);
    /// `tgllp` and later.
    pub const FROM_TGLLP: Platforms = Platforms(0b1110);
    /// `acm-g10` and later.
    pub const FROM_DG2: Platforms = Platforms(0b1100);
    /// `acm-g10`.
    pub const DG2_ONLY: Platforms = Platforms(0b0100);
    /// `pvc`.
    pub const PVC_ONLY: Platforms = Platforms(0b1000);
    /// All but `pvc`.
    pub const NO_PVC: Platforms = Platforms(0b0111);

    /// Membership.
    pub const fn contains(self, platform: Platform) -> bool {
        self.0 & (1 << platform as u8) != 0
    }
}
