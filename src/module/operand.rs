//! Operands of instructions.

use super::vars::*;
use crate::isa::{DstRegion, SrcModifier, SrcRegion, Type};

/// `[!]P[.any|.all]` in front of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// Variable.
    pub var: PredId,
    /// `!`.
    pub inverted: bool,
    /// Reduction over the whole variable.
    pub control: PredControl,
}

/// How predicate bits become a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PredControl {
    /// Lane by lane.
    Lanes,
    /// True when any bit of the variable is set.
    Any,
    /// True when all bits of the variable are set.
    All,
}

/// Start of a region: row in registers of the target, column in elements of the variable's type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin {
    /// General variable.
    pub var: VarId,
    /// Row: multiples of the GRF size.
    pub row: u16,
    /// Column: multiples of the element size; may exceed a register.
    pub col: u16,
}

/// `r[A(k), imm]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Indirect {
    /// Address variable.
    pub addr: AddrId,
    /// First element of it.
    pub index: u8,
    /// Signed byte offset added.
    pub offset: i16,
    /// Element type accessed.
    pub ty: Type,
}

/// Region of an indirect source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IndirectRegion {
    /// One address and a normal region.
    Single(SrcRegion),
    /// VxH: a new address element every `width` channels, `hstride` elements between channels.
    VxH {
        /// Channels per address element.
        width: u8,
        /// Element stride among them.
        hstride: u8,
    },
}

/// A source operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Src {
    /// `mod V(r,c)<v;w,h>`; the type is the variable's.
    General {
        /// Start.
        origin: Origin,
        /// Shape.
        region: SrcRegion,
        /// Modifier.
        modifier: SrcModifier,
    },
    /// `mod r[A(k),imm]<…>:T`.
    Indirect {
        /// Address.
        indirect: Indirect,
        /// Shape.
        region: IndirectRegion,
        /// Modifier.
        modifier: SrcModifier,
    },
    /// Immediate: raw bits, truncated to the width of the type (packed types: 32 bits).
    Imm {
        /// Bits.
        bits: u64,
        /// Type.
        ty: Type,
    },
    /// A predicate variable as data.
    Pred(PredId),
    /// `A0(k)<n>`.
    Address {
        /// Variable.
        addr: AddrId,
        /// First element.
        index: u8,
        /// Elements.
        width: u8,
    },
    /// `&V[offset]`.
    AddressOf {
        /// Variable.
        var: VarId,
        /// Byte offset.
        offset: u32,
    },
    /// `&T6[offset]`, address of a surface variable.
    AddressOfSurface {
        /// Surface.
        surface: SurfaceId,
        /// Byte offset.
        offset: u32,
    },
    /// `T6(k)` in `movs`.
    Surface(SurfaceId, u8),
    /// `S0(k)` in `movs`.
    Sampler(SamplerId, u8),
}

/// A destination operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Dst {
    /// `V(r,c)<h>`.
    General {
        /// Start.
        origin: Origin,
        /// Stride.
        region: DstRegion,
    },
    /// `r[A(k),imm]<h>:T`.
    Indirect {
        /// Address.
        indirect: Indirect,
        /// Stride.
        region: DstRegion,
    },
    /// Predicate variable.
    Pred(PredId),
    /// `A0(k)<n>`.
    Address {
        /// Variable.
        addr: AddrId,
        /// First element.
        index: u8,
        /// Elements.
        width: u8,
    },
    /// `T6(k)` in `movs`.
    Surface(SurfaceId, u8),
    /// `S0(k)` in `movs`.
    Sampler(SamplerId, u8),
}

/// Message payload operand `V.byteoffset`: no type, no region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Raw {
    /// Variable; `VarId::NULL` for `%null`.
    pub var: VarId,
    /// Byte offset into it.
    pub offset: u32,
}

impl Raw {
    /// `%null.0`.
    pub const NULL: Raw = Raw {
        var: VarId::NULL,
        offset: 0,
    };

    /// True for `%null`.
    pub const fn is_null(self) -> bool {
        self.var.0 == 0
    }
}
