//! THE opcode table: one row an opcode.
//!
//! Every consumer (parser, printer, reader and writer of binaries, validation, documentation, generators of tests) reads
//! these rows; nothing else in the project lists opcodes, or says which of them load and store. The vocabulary of the columns is in
//! [`super::columns`]. Columns, in order:
//!
//! `Variant number/sub [mnemonics] Family Form sources : dst-classes dst-types <- src-classes src-types ;`
//! `saturation modifiers predicate platforms status "semantics"`
//!
//! `_` means "not allowed" in the saturation, modifier and predicate columns. Where sources differ, their classes or
//! types are listed in brackets. After the semantics may follow `, on [types platforms, …]`, types that fewer
//! platforms have than the opcode, `, pairs [dst src, …]`, the only conversions that exist, `, payloads [types …]`, types
//! of a message's or a matrix's variables as they are written, where not all are legal, `, does effect`, of messages to memory,
//! and `, llvm status`, where the LLVM backend compiles less than the default one.
//! Where the specification and the vendor's assembler differ, a row allows what the assembler takes, unless
//! the specification gives it no meaning.

use super::columns::*;
use super::lsc::LSC_MNEMONICS;
use super::sampler::{GATHER4_MNEMONICS, INFO_MNEMONICS, LOAD_MNEMONICS, SAMPLE_MNEMONICS};
use super::types::Type;
use std::collections::HashMap;
use std::sync::LazyLock;

macro_rules! flag {
    (_) => {
        false
    };
    (Sat) => {
        true
    };
}

macro_rules! mods {
    (_) => {
        Modifiers::None
    };
    ($m:ident) => {
        Modifiers::$m
    };
}

macro_rules! pred {
    (_) => {
        PredKind::None
    };
    ($p:ident) => {
        PredKind::$p
    };
}

/// `["a", "b"]` is a list of mnemonics; `(NAME)` is a slice that another table provides.
macro_rules! mnemonics {
    ([$($m:literal),*]) => {
        &[$($m),*]
    };
    (($list:ident)) => {
        $list
    };
}

/// What the LLVM backend compiles: as much as the default one, unless a row says otherwise.
macro_rules! on_llvm {
    ($status:ident) => {
        Status::$status
    };
    ($status:ident $llvm:ident) => {
        Status::$llvm
    };
}

macro_rules! effect {
    () => {
        Effect::None
    };
    ($effect:ident) => {
        Effect::$effect
    };
}

/// One name for all sources, or one for each in brackets.
macro_rules! each {
    ($kind:ident [$($x:ident)*]) => {
        &[$($kind::$x),*]
    };
    ($kind:ident $x:ident) => {
        &[$kind::$x]
    };
}

macro_rules! opcodes {
    ($($variant:ident $number:literal / $sub:literal $text:tt $family:ident $form:ident $n:literal :
       $dst:ident $dst_ty:ident <- $src:tt $src_ty:tt ;
       $sat:tt $mods:tt $pred:tt $platforms:ident $status:ident $doc:literal
       $(, on [$($on_ty:ident $on:ident),*])? $(, pairs [$($to:ident $from:ident),*])? $(, payloads [$($payload:ident)*])?
       $(, does $effect:ident)? $(, llvm $llvm:ident)?)*) => {
        /// An instruction of the ISA. Messages with a sub-opcode that changes the operands have one variant each.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Opcode {
            $(#[doc = concat!("`", $doc, "`")] $variant,)*
        }

        /// The rows, indexed by discriminant.
        static ROWS: &[OpcodeInfo] = &[$(OpcodeInfo {
            opcode: Opcode::$variant,
            name: stringify!($variant),
            number: $number,
            sub: $sub,
            mnemonics: mnemonics!($text),
            family: Family::$family,
            form: Form::$form,
            sources: $n,
            dst: Classes::$dst,
            dst_types: TypeClass::$dst_ty,
            src_classes: each!(Classes $src),
            src_types: each!(TypeClass $src_ty),
            saturation: flag!($sat),
            modifiers: mods!($mods),
            predicate: pred!($pred),
            platforms: Platforms::$platforms,
            status: Status::$status,
            llvm: on_llvm!($status $($llvm)?),
            semantics: $doc,
            limited: &[$($((TypeClass::$on_ty, Platforms::$on)),*)?],
            pairs: &[$($((Type::$to, Type::$from)),*)?],
            payloads: &[$($(TypeClass::$payload),*)?],
            effect: effect!($($effect)?),
        },)*];

        impl Opcode {
            /// Every opcode in table order.
            pub const ALL: &'static [Opcode] = &[$(Opcode::$variant,)*];
        }
    };
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct OpcodeInfo {
    /// Which opcode the row describes.
    pub opcode: Opcode,
    /// Name of the variant.
    pub name: &'static str,
    /// Opcode byte of the binary format.
    pub number: u8,
    /// Sub-opcode where several rows share a number (`svm_*`, `min`/`max`), else 0.
    pub sub: u8,
    /// Text mnemonics, the usual one first; suffixes that start with a dot are part of it only when they
    /// select the row (`add3.o`).
    pub mnemonics: &'static [&'static str],
    /// Family.
    pub family: Family,
    /// Operand shape; chooses the variant of `module::Body` and the parsing routine.
    pub form: Form,
    /// Number of vector source operands of `Body::Alu` forms, 0 for others.
    pub sources: u8,
    /// What a destination may be.
    pub dst: Classes,
    /// Element types of the destination.
    pub dst_types: TypeClass,
    /// What sources may be; the last entry stands for the rest. See [`OpcodeInfo::src`].
    src_classes: &'static [Classes],
    /// Element types of the sources; the last entry stands for the rest. See [`OpcodeInfo::src_type`].
    src_types: &'static [TypeClass],
    /// `.sat` allowed.
    pub saturation: bool,
    /// Source modifiers allowed.
    pub modifiers: Modifiers,
    /// What a predicate in front means.
    pub predicate: PredKind,
    /// Where it exists.
    pub platforms: Platforms,
    /// How much of it this project runs.
    pub status: Status,
    /// How much of it the LLVM backend compiles.
    pub llvm: Status,
    /// One line for people.
    pub semantics: &'static str,
    /// Operand types that fewer platforms have than the opcode.
    pub limited: &'static [(TypeClass, Platforms)],
    /// Types of destination and first source that go together; empty when all do that the columns allow.
    pub pairs: &'static [(Type, Type)],
    /// Element types of the payloads in the order they are written in; those not listed have any. See [`OpcodeInfo::payload`].
    pub payloads: &'static [TypeClass],
    /// What it does to memory.
    pub effect: Effect,
}

impl OpcodeInfo {
    /// Whether its messages read, write or ask about images.
    pub fn accesses_images(&self) -> bool {
        matches!(
            self.form,
            Form::Typed
                | Form::TypedAtomic
                | Form::Media
                | Form::Sample3d
                | Form::Load3d
                | Form::Info3d
        ) || self.opcode == Opcode::LscTyped
    }

    /// What source `i` may be.
    pub fn src(&self, i: usize) -> Classes {
        let last = self.src_classes.last();
        let entry = self.src_classes.get(i).or(last);
        entry.copied().unwrap_or(Classes::NONE)
    }

    /// Element types of source `i`.
    pub fn src_type(&self, i: usize) -> TypeClass {
        let last = self.src_types.last();
        let entry = self.src_types.get(i).or(last);
        entry.copied().unwrap_or(TypeClass::None)
    }

    /// Element types of payload `i`.
    pub fn payload(&self, i: usize) -> TypeClass {
        self.payloads.get(i).copied().unwrap_or(TypeClass::Any)
    }

    /// True when the sources differ in class or type.
    pub fn sources_differ(&self) -> bool {
        self.src_classes.len() > 1 || self.src_types.len() > 1
    }
}

impl Opcode {
    /// The table row.
    pub fn info(self) -> &'static OpcodeInfo {
        &ROWS[self as usize]
    }

    /// Usual text mnemonic.
    pub fn mnemonic(self) -> &'static str {
        self.info().mnemonics.first().copied().unwrap_or("")
    }

    /// True for stores; atomics are none. Operations of LSC messages say it themselves ([`super::lsc::LscOp::stores`]).
    pub fn stores(self) -> bool {
        self.info().effect == Effect::Store
    }

    /// The table's copy of a mnemonic, if it is one.
    pub fn known_mnemonic(text: &str) -> Option<&'static str> {
        let row = Opcode::from_mnemonic(text)?.info();
        row.mnemonics.iter().copied().find(|m| *m == text)
    }

    /// The opcode a mnemonic selects (exact, lower case, without suffixes other than those that select a row).
    ///
    /// `lsc_*` mnemonics give [`Opcode::Lsc`]; the shared function in the suffix tells typed ones apart.
    pub fn from_mnemonic(text: &str) -> Option<Opcode> {
        static INDEX: LazyLock<HashMap<&'static str, Opcode>> = LazyLock::new(|| {
            let mut index = HashMap::new();
            for row in ROWS {
                for m in row.mnemonics {
                    index.entry(*m).or_insert(row.opcode);
                }
            }
            index
        });
        INDEX.get(text).copied()
    }

    /// The opcode with this binary number and sub-number.
    pub fn from_number(number: u8, sub: u8) -> Option<Opcode> {
        ROWS.iter()
            .find(|r| r.number == number && r.sub == sub)
            .map(|r| r.opcode)
    }
}

opcodes! {
    // Arithmetic.
    Add 0x01/0 ["add"] Arith Alu 2 : GEN Numeric <- GEN_IMM Numeric; Sat Arith Guard ALL Full "dst = s0 + s1"
    Avg 0x02/0 ["avg"] Arith Alu 2 : GEN Int32 <- GEN_IMM Int32; Sat Arith Guard ALL Full "dst = (s0 + s1 + 1) >> 1 without overflow"
    Div 0x03/0 ["div"] Arith Alu 2 : GEN Numeric <- GEN_IMM Numeric; Sat Arith Guard ALL Full "dst = s0 / s1; integers truncate (not after tgllp), floats are approximate", on [Int UPTO_TGLLP, Df SKL_FROM_PVC]
    Dp2 0x04/0 ["dp2"] Arith Alu 2 : GEN F <- GEN_IMM F; Sat Arith Guard ALL Full "two-component dot product per group of four lanes, broadcast to the group"
    Dp3 0x05/0 ["dp3"] Arith Alu 2 : GEN F <- GEN_IMM F; Sat Arith Guard ALL Full "three-component dot product per group of four lanes"
    Dp4 0x06/0 ["dp4"] Arith Alu 2 : GEN F <- GEN_IMM F; Sat Arith Guard ALL Full "four-component dot product per group of four lanes"
    Dph 0x07/0 ["dph"] Arith Alu 2 : GEN F <- GEN_IMM F; Sat Arith Guard ALL Full "dp4 with the fourth element of s0 taken as 1"
    Exp 0x08/0 ["exp"] Arith Alu 1 : GEN FloatHf <- GEN_IMM FloatHf; Sat Arith Guard ALL Full "dst = 2 ^ s0, approximate"
    Frc 0x09/0 ["frc"] Arith Alu 1 : GEN F <- GEN_IMM F; _ Arith Guard ALL Full "dst = s0 - floor(s0)"
    Line 0x0A/0 ["line"] Arith Alu 2 : GEN F <- GEN_IMM F; Sat Arith Guard ALL Full "dst = s0[0] * s1 + s0[3]"
    Log 0x0B/0 ["log"] Arith Alu 1 : GEN FloatHf <- GEN_IMM FloatHf; Sat Arith Guard ALL Full "dst = log2(s0), approximate"
    Mad 0x0C/0 ["mad"] Arith Alu 3 : GEN Numeric <- GEN_IMM Numeric; Sat Arith Guard ALL Full "dst = s0 * s1 + s2; one rounding on floats"
    Mulh 0x0D/0 ["mulh"] Arith Alu 2 : GEN D32 <- GEN_IMM Int32; _ Arith Guard ALL Full "high 32 bits of the 64-bit product"
    Lrp 0x0E/0 ["lrp"] Arith Alu 3 : GEN F <- GEN_IMM F; Sat Arith Guard ALL Full "dst = s0 * s1 + (1 - s0) * s2"
    Mod 0x0F/0 ["mod"] Arith Alu 2 : GEN Int <- GEN_IMM Int; _ Arith Guard UPTO_TGLLP Full "integer remainder, sign of the dividend"
    Mul 0x10/0 ["mul"] Arith Alu 2 : GEN Numeric <- GEN_IMM Numeric; Sat Arith Guard ALL Full "product: low part for equal widths, full for q = d * d"
    Pow 0x11/0 ["pow"] Arith Alu 2 : GEN FloatHf <- GEN_IMM FloatHf; Sat Arith Guard ALL Full "dst = abs(s0) ^ s1, approximate"
    Rndd 0x12/0 ["rndd"] Arith Alu 1 : GEN F <- GEN_IMM F; Sat Arith Guard ALL Full "round towards minus infinity"
    Rndu 0x13/0 ["rndu"] Arith Alu 1 : GEN F <- GEN_IMM F; Sat Arith Guard ALL Full "round towards plus infinity"
    Rnde 0x14/0 ["rnde"] Arith Alu 1 : GEN F <- GEN_IMM F; Sat Arith Guard ALL Full "round to nearest, ties to even"
    Rndz 0x15/0 ["rndz"] Arith Alu 1 : GEN F <- GEN_IMM F; Sat Arith Guard ALL Full "round towards zero"
    Sad2 0x16/0 ["sad2"] Arith Alu 2 : GEN Word <- GEN_IMM Byte; Sat Arith Guard SKL_ONLY Full "sum of two absolute byte differences, into even lanes"
    Sin 0x17/0 ["sin"] Arith Alu 1 : GEN FloatHf <- GEN_IMM FloatHf; Sat Arith Guard ALL Full "sine of radians, approximate"
    Cos 0x18/0 ["cos"] Arith Alu 1 : GEN FloatHf <- GEN_IMM FloatHf; Sat Arith Guard ALL Full "cosine of radians, approximate"
    Sqrt 0x19/0 ["sqrt"] Arith Alu 1 : GEN Float <- GEN_IMM Float; Sat Arith Guard ALL Full "square root, approximate", on [Df SKL_FROM_PVC]
    Rsqrt 0x1A/0 ["rsqrt"] Arith Alu 1 : GEN FloatHf <- GEN_IMM FloatHf; Sat Arith Guard ALL Full "1 / sqrt(s0), approximate"
    Inv 0x1B/0 ["inv"] Arith Alu 1 : GEN Float <- GEN_IMM Float; Sat Arith Guard ALL Full "1 / s0, approximate", on [Df SKL_FROM_PVC]
    Srnd 0x1E/0 ["srnd"] Arith Alu 2 : GEN Any <- GEN_IMM [FloatHf Any]; _ _ _ FROM_PVC Full "stochastic rounding f to hf, hf to bf8 with random bits s1", pairs [Hf F, Ub Hf]
    Lzd 0x1F/0 ["lzd"] Arith Alu 1 : GEN D32 <- GEN_IMM Int32; _ Arith Guard ALL Full "leading zero count, 32 for zero"
    Addc 0x49/0 ["addc"] Arith AluPair 2 : GEN Ud <- GEN_IMM UdUv; _ Arith Guard ALL Full "dst = s0 + s1, second destination = carry (0 or 1)"
    Subb 0x4A/0 ["subb"] Arith AluPair 2 : GEN Ud <- GEN_IMM UdUv; _ Arith Guard ALL Full "dst = s0 - s1, second destination = borrow (0 or 1)"
    Sad2add 0x6A/0 ["sad2add"] Arith Alu 3 : GEN Word <- GEN_IMM [Byte Byte Word]; Sat Arith Guard SKL_ONLY Full "sad2 of s0 and s1 plus s2"
    Plane 0x6B/0 ["plane"] Arith Alu 2 : GEN F <- GEN_IMM F; Sat Arith Guard ALL Full "dst = s0[0] * u + s0[1] * v + s0[3]"
    Sqrtm 0x7E/0 ["sqrtm"] Arith Alu 1 : GEN FloatDf <- GEN_IMM FloatDf; Sat Arith Guard SKL_FROM_PVC Full "IEEE square root"
    Divm 0x7F/0 ["divm"] Arith Alu 2 : GEN FloatDf <- GEN_IMM FloatDf; Sat Arith Guard SKL_FROM_PVC Full "IEEE division"
    Dp4a 0x82/0 ["dp4a"] Arith Alu 3 : GEN D32 <- GEN_IMM D32; Sat _ Guard FROM_TGLLP Full "dst = s0 + sum of four byte products of s1 and s2"
    Add3 0x84/0 ["add3"] Arith Alu 3 : GEN WordD32 <- GEN_IMM WordD32; Sat Arith Guard ALL Full "dst = s0 + s1 + s2"
    Madw 0x91/0 ["madw"] Arith Alu 3 : GEN D32 <- GEN_IMM Int32; _ Arith Guard ALL Full "64-bit s0 * s1 + s2: low dwords, then high dwords in the following registers"
    Add3o 0x92/0 ["add3.o"] Arith Alu 3 : GEN WordD32 <- GEN_IMM WordD32; _ Arith Output FROM_PVC Full "add3; the predicate in front receives the overflow bit of each lane"
    Tanh 0x96/0 ["tanh"] Arith Alu 1 : GEN FloatHf <- GEN_IMM FloatHf; Sat Arith Guard NONE DecodeOnly "hyperbolic tangent, approximate"
    Sigm 0x97/0 ["sigm"] Arith Alu 1 : GEN FloatHf <- GEN_IMM FloatHf; Sat Arith Guard NONE DecodeOnly "logistic sigmoid, approximate"
    Invm 0x9B/0 ["invm"] Arith AluPair 2 : GEN_PRED FloatDf <- GEN_IMM FloatDf; _ Arith Guard SKL_FROM_PVC Full "seed of s0 / s1; second destination = early-out predicate"
    Rsqtm 0x9C/0 ["rsqtm"] Arith AluPair 1 : GEN_PRED FloatDf <- GEN_IMM FloatDf; _ Arith Guard SKL_FROM_PVC Full "seed of 1 / sqrt(s0); second destination = early-out predicate"

    // Logic and bit manipulation.
    And 0x20/0 ["and"] Logic Alu 2 : GEN_PRED Int <- GEN_IMM_PRED Int; _ Logic Guard ALL Full "bitwise and, also of predicates"
    Or 0x21/0 ["or"] Logic Alu 2 : GEN_PRED Int <- GEN_IMM_PRED Int; _ Logic Guard ALL Full "bitwise or, also of predicates"
    Xor 0x22/0 ["xor"] Logic Alu 2 : GEN_PRED Int <- GEN_IMM_PRED Int; _ Logic Guard ALL Full "bitwise exclusive or, also of predicates"
    Not 0x23/0 ["not"] Logic Alu 1 : GEN_PRED Int <- GEN_IMM_PRED Int; _ Logic Guard ALL Full "bitwise complement, also of predicates"
    Shl 0x24/0 ["shl"] Logic Alu 2 : GEN Int <- GEN_IMM Int; Sat Arith Guard ALL Full "shift left; count modulo the width (32 or 64)"
    Shr 0x25/0 ["shr"] Logic Alu 2 : GEN Int <- GEN_IMM Int; _ Arith Guard ALL Full "logical shift right"
    Asr 0x26/0 ["asr"] Logic Alu 2 : GEN Int <- GEN_IMM Int; _ Arith Guard ALL Full "arithmetic shift right"
    Cbit 0x27/0 ["cbit"] Logic Alu 1 : GEN Int32 <- GEN_IMM Int32; _ _ Guard ALL Full "population count"
    Fbl 0x2E/0 ["fbl"] Logic Alu 1 : GEN D32 <- GEN_IMM Int32; _ _ Guard ALL Full "index of the lowest set bit, 0xffffffff if none"
    Fbh 0x2F/0 ["fbh"] Logic Alu 1 : GEN D32 <- GEN_IMM D32; _ _ Guard ALL Full "distance from the top of the first bit that differs from the sign, 0xffffffff if none"
    Bfe 0x46/0 ["bfe"] Logic Alu 3 : GEN D32 <- GEN_IMM D32; _ _ Guard ALL Full "bit field extract: width, offset, value"
    Bfi 0x47/0 ["bfi"] Logic Alu 4 : GEN D32 <- GEN_IMM D32; _ _ Guard ALL Full "bit field insert: width, offset, insert, base"
    Bfrev 0x48/0 ["bfrev"] Logic Alu 1 : GEN D32 <- GEN_IMM D32; _ _ Guard ALL Full "reverse 32 bits"
    Rol 0x80/0 ["rol"] Logic Alu 2 : GEN NoByte <- GEN_IMM NoByte; _ _ Guard FROM_TGLLP Full "rotate left", on [Int64 FROM_PVC]
    Ror 0x81/0 ["ror"] Logic Alu 2 : GEN NoByte <- GEN_IMM NoByte; _ _ Guard FROM_TGLLP Full "rotate right", on [Int64 FROM_PVC]
    Bfn 0x85/0 ["bfn"] Logic Bfn 3 : GEN Int32 <- GEN_IMM Int32; _ Logic Guard ALL Full "any Boolean function of three inputs; its truth table is the suffix"
    Lfsr 0x98/0 ["lfsr"] Logic Unparsed 2 : GEN Ud <- GEN_IMM Ud; _ _ Guard NONE Rejected "pseudo-random number step"

    // Moves and comparison.
    Fcvt 0x1D/0 ["fcvt"] Move Alu 1 : GEN Any <- GEN_IMM Any; _ _ _ FROM_PVC Full "conversion to and from tf32 (in ud) and bf8 (in ub)", pairs [Ud F, F Ud, Ub Hf, Hf Ub]
    AddrAdd 0x28/0 ["addr_add"] Address Alu 2 : ADDR Address <- [ADDR GEN_IMM] [Address ByteWord]; _ _ _ ALL Full "address element = address of a variable, or address element, plus bytes"
    Mov 0x29/0 ["mov"] Move Alu 1 : GEN_ADDR Any <- GEN_IMM_PRED Any; Sat Arith Guard ALL Full "copy with conversion; also predicate to integer"
    Sel 0x2A/0 ["sel"] Move Alu 2 : GEN Numeric <- GEN_IMM Numeric; Sat Arith Selector ALL Full "dst = predicate ? s0 : s1 on every enabled lane"
    Setp 0x2B/0 ["setp"] Move Alu 1 : PRED Predicate <- GEN_IMM Int; _ _ _ ALL Full "predicate = bits of a scalar, or bit 0 of each lane"
    Cmp 0x2C/0 ["cmp"] Compare Cmp 2 : GEN_PRED Any <- GEN_IMM Numeric; _ Arith _ ALL Full "compare into a predicate, or all-ones / zero into a vector"
    Movs 0x2D/0 ["movs"] Move Alu 1 : GEN_STATE D32 <- GEN_IMM_STATE Int32; _ _ _ ALL Full "move a surface or sampler handle"
    Min 0x45/0 ["min"] Move Alu 2 : GEN Numeric <- GEN_IMM Numeric; Sat Arith Ignored ALL Full "minimum; the other operand if one is a NaN"
    Max 0x45/1 ["max"] Move Alu 2 : GEN Numeric <- GEN_IMM Numeric; Sat Arith Ignored ALL Full "maximum; the other operand if one is a NaN"
    ShflIdx4 0x95/0 ["shfl_idx4"] Move Alu 2 : GEN Any <- GEN_IMM Any; _ _ Guard NONE DecodeOnly "lane shuffle by index"
    Dnscl 0x9A/0 ["dnscl"] Move Unparsed 2 : GEN Any <- GEN_IMM Any; _ _ Guard NONE Rejected "down-scaling conversion"

    // Control flow.
    Subroutine 0x30/0 [".function"] Flow Label 0 : NONE None <- NONE None; _ _ _ ALL Full "start of a subroutine"
    Label 0x31/0 ["label:"] Flow Label 0 : NONE None <- NONE None; _ _ _ ALL Full "start of a block"
    Jmp 0x32/0 ["jmp"] Flow Branch 0 : NONE None <- NONE None; _ _ Guard ALL Full "uniform jump; the first bit of the predicate decides"
    Call 0x33/0 ["call"] Flow Branch 0 : NONE None <- NONE None; _ _ Guard ALL Full "subroutine call"
    Ret 0x34/0 ["ret"] Flow Ret 0 : NONE None <- NONE None; _ _ Guard ALL Full "return from a subroutine, or end of the kernel"
    Ifcall 0x4F/0 ["ifcall"] Flow Ifcall 0 : NONE None <- GEN_IMM Int; _ _ Guard ALL Full "indirect stack call: address, argument registers, return registers"
    Faddr 0x50/0 ["faddr"] Flow Faddr 0 : GEN Int <- NONE None; _ _ _ ALL Full "address of a symbol"
    Fcall 0x67/0 ["fcall"] Flow Fcall 0 : NONE None <- NONE None; _ _ Guard ALL Full "stack call by name"
    Fret 0x68/0 ["fret"] Flow Ret 0 : NONE None <- NONE None; _ _ Guard ALL Full "return from a stack-call function"
    SwitchJmp 0x69/0 ["switchjmp"] Flow SwitchJmp 0 : NONE None <- GEN_IMM Int; _ _ _ SKL_FROM_PVC Full "uniform jump to the label an index selects"
    Goto 0x6C/0 ["goto"] Flow Branch 0 : NONE None <- NONE None; _ _ Guard ALL Full "structured branch: lanes whose predicate holds continue at the label"

    // Messages on surfaces, legacy spelling.
    OwordLd 0x35/0 ["oword_ld"] Memory Oword 0 : RAW Any <- GEN_IMM Int32; _ _ _ ALL Full "block load of owords, offset in owords", does Load
    OwordSt 0x36/0 ["oword_st"] Memory Oword 0 : NONE None <- GEN_IMM Int32; _ _ _ ALL Full "block store of owords, offset in owords", does Store
    MediaLd 0x37/0 ["media_ld"] Memory Media 0 : RAW Any <- GEN_IMM D32; _ _ _ ALL Full "2D block load, of all rows or those of one field; plane `n` is `n` entries further in the binding table; surfaces of the heap have no planes", does Load
    MediaSt 0x38/0 ["media_st"] Memory Media 0 : NONE None <- GEN_IMM D32; _ _ _ ALL Full "2D block store, of all rows or those of one field; plane `n` is `n` entries further in the binding table; surfaces of the heap have no planes", does Store
    Gather 0x39/0 ["gather"] Memory Gather 0 : RAW Any <- GEN_IMM Int32; _ _ _ ALL Full "load of 1, 2 or 4 bytes a lane, offsets in elements", payloads [Any Dword], does Load
    Scatter 0x3A/0 ["scatter"] Memory Gather 0 : NONE None <- GEN_IMM Int32; _ _ _ ALL Full "store of 1, 2 or 4 bytes a lane, offsets in elements", payloads [Any Dword], does Store
    OwordLdUnaligned 0x3C/0 ["oword_ld_unaligned"] Memory Oword 0 : RAW Any <- GEN_IMM Int32; _ _ _ ALL Full "block load of owords, offset in bytes", does Load
    Gather4Typed 0x4B/0 ["gather4_typed"] Memory Typed 0 : RAW Any <- RAW Any; _ _ Guard ALL Full "typed surface read at u, v, r, lod", does Load
    Scatter4Typed 0x4C/0 ["scatter4_typed"] Memory Typed 0 : NONE None <- RAW Any; _ _ Guard ALL Full "typed surface write at u, v, r, lod", does Store
    TypedAtomic 0x73/0 ["typed_atomic"] Memory TypedAtomic 0 : RAW Any <- RAW Any; _ _ Guard ALL Full "atomic on a typed surface", does Atomic
    Gather4Scaled 0x74/0 ["gather4_scaled"] Memory Gather4Scaled 0 : RAW Any <- GEN_IMM Int32; _ _ Guard ALL Full "load of up to four dwords a lane at byte offsets", does Load
    Scatter4Scaled 0x75/0 ["scatter4_scaled"] Memory Gather4Scaled 0 : NONE None <- GEN_IMM Int32; _ _ Guard ALL Full "store of up to four dwords a lane at byte offsets", does Store
    GatherScaled 0x78/0 ["gather_scaled"] Memory GatherScaled 0 : RAW Any <- GEN_IMM Int32; _ _ Guard ALL Full "load of 1, 2 or 4 bytes a lane at byte offsets", does Load
    ScatterScaled 0x79/0 ["scatter_scaled"] Memory GatherScaled 0 : NONE None <- GEN_IMM Int32; _ _ Guard ALL Full "store of 1, 2 or 4 bytes a lane at byte offsets", does Store
    DwordAtomic 0x7D/0 ["dword_atomic"] Memory DwordAtomic 0 : RAW Any <- RAW Any; _ _ Guard ALL Full "atomic on a dword (or word) of a surface", payloads [Ud Dword Dword Dword], does Atomic
    QwGather 0x86/0 ["qw_gather"] Memory Qword 0 : RAW Any <- RAW Any; _ _ Guard FROM_DG2 Full "load of qwords a lane", does Load
    QwScatter 0x87/0 ["qw_scatter"] Memory Qword 0 : NONE None <- RAW Any; _ _ Guard FROM_DG2 Full "store of qwords a lane", does Store

    // Messages on 64-bit addresses.
    SvmBlockLd 0x4E/1 ["svm_block_ld"] Svm SvmBlock 0 : RAW Any <- GEN_IMM Int; _ _ _ ALL Full "block load of owords", does Load
    SvmBlockSt 0x4E/2 ["svm_block_st"] Svm SvmBlock 0 : NONE None <- GEN_IMM Int; _ _ _ ALL Full "block store of owords", does Store
    SvmGather 0x4E/3 ["svm_gather"] Svm SvmGather 0 : RAW Any <- RAW Any; _ _ Guard ALL Full "load of 1 to 8 blocks of 1, 4 or 8 bytes a lane", does Load
    SvmScatter 0x4E/4 ["svm_scatter"] Svm SvmGather 0 : NONE None <- RAW Any; _ _ Guard ALL Full "store of 1 to 8 blocks of 1, 4 or 8 bytes a lane", does Store
    SvmAtomic 0x4E/5 ["svm_atomic"] Svm SvmAtomic 0 : RAW Any <- RAW Any; _ _ Guard ALL Full "atomic on 16, 32 or 64 bits", does Atomic
    SvmGather4scaled 0x4E/6 ["svm_gather4scaled"] Svm SvmGather4Scaled 0 : RAW Any <- GEN_IMM Int; _ _ Guard ALL Full "load of up to four dwords a lane at base plus byte offsets", does Load
    SvmScatter4scaled 0x4E/7 ["svm_scatter4scaled"] Svm SvmGather4Scaled 0 : NONE None <- GEN_IMM Int; _ _ Guard ALL Full "store of up to four dwords a lane at base plus byte offsets", does Store

    // Load/store cache messages.
    Lsc 0x89/0 (LSC_MNEMONICS) Lsc Lsc 0 : RAW Any <- RAW Any; _ _ Guard FROM_DG2 Full "untyped load, store, atomic and 2D block messages; not writes by the address model `arg`, nor 2D blocks of local memory, which no device has"
    LscTyped 0x8A/0 ["lsc_load_quad.tgm", "lsc_store_quad.tgm", "lsc_atomic_*.tgm"] Lsc Lsc 0 : RAW Any <- RAW Any; _ _ Guard FROM_DG2 Full "typed load, store and atomic messages: channels of d32, atomics also of d16c32"
    LscFence 0x8B/0 ["lsc_fence"] Lsc LscFence 0 : NONE None <- NONE None; _ _ _ FROM_DG2 Full "memory fence with cache operation and scope"

    // Synchronisation.
    Barrier 0x59/0 ["barrier"] Sync Nullary 0 : NONE None <- NONE None; _ _ _ ALL Full "work-group barrier"
    SamplerCacheFlush 0x5A/0 ["sampler_cache_flush"] Sync Nullary 0 : NONE None <- NONE None; _ _ _ ALL Full "flush the sampler cache"
    Wait 0x5B/0 ["wait"] Sync Wait 0 : NONE None <- GEN_IMM Int; _ _ _ ALL Full "wait for threads of a thread space; nothing in a work-group"
    Fence 0x5C/0 ["fence_global", "fence_local", "fence_sw"] Sync Fence 0 : NONE None <- NONE None; _ _ _ ALL Full "memory fence with a mask of options"
    Yield 0x5F/0 ["yield"] Sync Nullary 0 : NONE None <- NONE None; _ _ _ ALL Full "thread switch hint"
    Nbarrier 0x60/0 ["nbarrier"] Sync Nbarrier 0 : NONE None <- GEN_IMM Int; _ _ _ FROM_PVC Full "named barrier, signal or wait"
    Sbarrier 0x7C/0 ["sbarrier"] Sync Sbarrier 0 : NONE None <- NONE None; _ _ _ ALL Full "split barrier, signal or wait"

    // Images through the sampler.
    Sample 0x40/0 ["sample"] Sampler SampleLegacy 0 : RAW Any <- RAW Any; _ _ _ NO_PVC Rejected "sampler message of media kernels, 8 or 16 lanes"
    SampleUnorm 0x41/0 ["sample_unorm"] Sampler Unparsed 0 : RAW Any <- GEN_IMM F; _ _ _ NO_PVC Rejected "2D block sample of media kernels"
    Load 0x42/0 ["load"] Sampler SampleLegacy 0 : RAW Any <- RAW Any; _ _ _ NO_PVC Rejected "texel fetch of media kernels, 8 or 16 lanes"
    Avs 0x43/0 ["avs"] Sampler Unparsed 0 : RAW Any <- GEN_IMM F; _ _ _ SKL_ONLY Rejected "adaptive video scaler"
    Va 0x44/0 ["va"] Sampler Unparsed 0 : RAW Any <- GEN_IMM F; _ _ _ SKL_ONLY Rejected "video analytics"
    VaSklPlus 0x4D/0 ["va_skl_plus"] Sampler Unparsed 0 : RAW Any <- GEN_IMM F; _ _ _ SKL_ONLY Rejected "video analytics of skl"
    Sample3d 0x6D/0 (SAMPLE_MNEMONICS) Sampler Sample3d 0 : RAW Any <- RAW Any; _ _ Guard NO_PVC Full "filtered image read, also of comparisons with a reference; `lod`: level of detail of four neighbouring lanes", does Load
    Load3d 0x6E/0 (LOAD_MNEMONICS) Sampler Load3d 0 : RAW Any <- RAW Any; _ _ Guard NO_PVC Full "texel fetch by integer coordinates, of textures with one sample", does Load
    Gather43d 0x6F/0 (GATHER4_MNEMONICS) Sampler Sample3d 0 : RAW Any <- RAW Any; _ _ Guard NO_PVC Full "one channel of the four texels that a filter would read, or comparisons of the red one with a reference; `sample4_po` and `sample4_po_c` not on acm-g10", does Load
    Info3d 0x70/0 (INFO_MNEMONICS) Sampler Info3d 0 : RAW Any <- RAW Any; _ _ _ NO_PVC Full "size and number of samples of a surface"
    RtWrite3d 0x71/0 ["rt_write_3d"] Sampler Unparsed 0 : NONE None <- RAW Any; _ _ Guard ALL Rejected "render target write"
    UrbWrite3d 0x72/0 ["urb_write_3d"] Sampler Unparsed 0 : NONE None <- RAW Any; _ _ Guard ALL Rejected "unified return buffer write"

    // Everything else.
    Dpasw 0x1C/0 ["dpasw"] Misc Dpas 0 : RAW Any <- RAW Any; _ _ _ DG2_ONLY Full "dpas whose A matrix is half and half in two fused threads", payloads [Any Any D32 D32]
    File 0x51/0 ["FILE"] Misc File 0 : NONE None <- NONE None; _ _ _ ALL Full "source file of what follows"
    Loc 0x52/0 ["LOC"] Misc Loc 0 : NONE None <- NONE None; _ _ _ ALL Full "source line of what follows"
    VmeIme 0x54/0 ["vme_ime"] Misc Unparsed 0 : RAW Any <- RAW Any; _ _ _ SKL_ONLY Rejected "integer motion estimation"
    VmeSic 0x55/0 ["vme_sic"] Misc Unparsed 0 : RAW Any <- RAW Any; _ _ _ SKL_ONLY Rejected "motion estimation, skip and intra check"
    VmeFbr 0x56/0 ["vme_fbr"] Misc Unparsed 0 : RAW Any <- RAW Any; _ _ _ SKL_ONLY Rejected "motion estimation, fractional refinement"
    VmeIdm 0x57/0 ["vme_idm"] Misc Unparsed 0 : RAW Any <- RAW Any; _ _ _ SKL_ONLY Rejected "motion estimation, distortion mesh"
    RawSend 0x5D/0 ["raw_send", "raw_sendc"] Misc RawSend 0 : RAW Any <- GEN_IMM D32; _ _ Guard ALL Partial "hardware message; what memory instructions and fences of this table are sent as is decoded into them, but for two-dimensional blocks whose size no constant says"
    RawSends 0x7A/0 ["raw_sends", "raw_sendsc", "raw_sends_eot", "raw_sendsc_eot"] Misc RawSends 0 : RAW Any <- GEN_IMM D32; _ _ Guard ALL Partial "hardware message with a split payload; decoded as `raw_send` is"
    RawSendg 0x93/0 ["raw_sendg", "raw_sendgc", "raw_sendg_eot", "raw_sendgc_eot"] Misc Unparsed 0 : RAW Any <- GEN_IMM Int64; _ _ Guard NONE Rejected "hardware message with a 64-bit descriptor"
    Lifetime 0x7B/0 ["lifetime"] Misc Lifetime 0 : NONE None <- NONE None; _ _ _ ALL Full "start or end of the life of a variable"
    Dpas 0x83/0 ["dpas"] Misc Dpas 0 : RAW Any <- RAW Any; _ _ _ FROM_DG2 Full "systolic matrix multiply and accumulate: dst = s0 + s2 * s1", payloads [Any Any D32 D32]
    Breakpoint 0x94/0 ["breakpoint"] Misc Nullary 0 : NONE None <- NONE None; _ _ _ NONE DecodeOnly "debug breakpoint"
    Bdpas 0x99/0 ["bdpas"] Misc Unparsed 0 : RAW Any <- RAW Any; _ _ _ NONE Rejected "dpas with block scaling"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_follow_the_enum() {
        for (i, op) in Opcode::ALL.iter().enumerate() {
            assert_eq!(*op as usize, i);
            assert_eq!(op.info().opcode, *op);
            assert!(!op.info().mnemonics.is_empty(), "{op:?}");
        }
    }

    #[test]
    fn numbers_and_mnemonics_are_unique() {
        let mut numbers = std::collections::HashSet::new();
        let mut names = std::collections::HashSet::new();
        for op in Opcode::ALL {
            let row = op.info();
            assert!(numbers.insert((row.number, row.sub)), "{op:?}");
            for m in row.mnemonics {
                assert!(names.insert(*m), "{m}");
                assert_eq!(Opcode::from_mnemonic(m), Some(*op));
            }
            assert_eq!(Opcode::from_number(row.number, row.sub), Some(*op));
        }
    }
}
