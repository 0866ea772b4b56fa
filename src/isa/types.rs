//! Element types of general variables and immediates, comparison conditions, source modifiers.

use super::Platforms;
use std::fmt;

/// An element type. Sizes in bytes are given by [`Type::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Type {
    /// Unsigned 32-bit integer.
    Ud,
    /// Signed 32-bit integer.
    D,
    /// Unsigned 16-bit integer.
    Uw,
    /// Signed 16-bit integer.
    W,
    /// Unsigned 8-bit integer.
    Ub,
    /// Signed 8-bit integer.
    B,
    /// IEEE binary64.
    Df,
    /// IEEE binary32.
    F,
    /// Packed immediate: eight signed 4-bit integers, used as words.
    V,
    /// Packed immediate: four 8-bit restricted floats, used as `f`.
    Vf,
    /// One bit; lexed, rejected by validation.
    Bool,
    /// Unsigned 64-bit integer.
    Uq,
    /// Packed immediate: eight unsigned 4-bit integers, used as words.
    Uv,
    /// Signed 64-bit integer.
    Q,
    /// IEEE binary16.
    Hf,
    /// bfloat16.
    Bf,
}

impl Type {
    /// Every type, in the order of their codes in the binary form: a type's code is its index.
    pub const ALL: [Type; 16] = [
        Type::Ud,
        Type::D,
        Type::Uw,
        Type::W,
        Type::Ub,
        Type::B,
        Type::Df,
        Type::F,
        Type::V,
        Type::Vf,
        Type::Bool,
        Type::Uq,
        Type::Uv,
        Type::Q,
        Type::Hf,
        Type::Bf,
    ];

    /// Size of one element in bytes. Packed immediates give the size of one unpacked element.
    pub const fn bytes(self) -> u32 {
        match self {
            Type::Ub | Type::B | Type::Bool => 1,
            Type::Uw | Type::W | Type::Hf | Type::Bf | Type::V | Type::Uv => 2,
            Type::Ud | Type::D | Type::F | Type::Vf => 4,
            Type::Uq | Type::Q | Type::Df => 8,
        }
    }

    /// True for `f`, `df`, `hf`, `bf` and `vf`.
    pub const fn is_float(self) -> bool {
        matches!(self, Type::F | Type::Df | Type::Hf | Type::Bf | Type::Vf)
    }

    /// True for integer types, packed ones included.
    pub const fn is_int(self) -> bool {
        !self.is_float() && !matches!(self, Type::Bool)
    }

    /// True for signed integers (`d w b q v`).
    pub const fn is_signed(self) -> bool {
        matches!(self, Type::D | Type::W | Type::B | Type::Q | Type::V)
    }

    /// Where variables and immediates of the type exist.
    pub const fn platforms(self) -> Platforms {
        match self {
            Type::Bool => Platforms::NONE,
            Type::Bf => Platforms::FROM_DG2,
            _ => Platforms::ALL,
        }
    }

    /// True for `v`, `uv` and `vf`, which are types of immediates only.
    pub const fn is_packed(self) -> bool {
        matches!(self, Type::V | Type::Uv | Type::Vf)
    }

    /// The lower-case spelling used in text.
    pub const fn name(self) -> &'static str {
        match self {
            Type::Ud => "ud",
            Type::D => "d",
            Type::Uw => "uw",
            Type::W => "w",
            Type::Ub => "ub",
            Type::B => "b",
            Type::Df => "df",
            Type::F => "f",
            Type::V => "v",
            Type::Vf => "vf",
            Type::Bool => "bool",
            Type::Uq => "uq",
            Type::Uv => "uv",
            Type::Q => "q",
            Type::Hf => "hf",
            Type::Bf => "bf",
        }
    }

    /// Parses the spelling of [`Type::name`], in lower or upper case.
    pub fn from_name(name: &str) -> Option<Type> {
        Type::ALL
            .into_iter()
            .find(|t| t.name().eq_ignore_ascii_case(name))
    }
}

impl fmt::Display for Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Condition of `cmp`. With a NaN operand only `Ne` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CmpCond {
    /// Equal.
    Eq,
    /// Not equal.
    Ne,
    /// Greater.
    Gt,
    /// Greater or equal.
    Ge,
    /// Less.
    Lt,
    /// Less or equal.
    Le,
}

impl CmpCond {
    /// Every condition in binary-code order.
    pub const ALL: [CmpCond; 6] = [
        CmpCond::Eq,
        CmpCond::Ne,
        CmpCond::Gt,
        CmpCond::Ge,
        CmpCond::Lt,
        CmpCond::Le,
    ];

    /// The suffix after `cmp.`.
    pub const fn name(self) -> &'static str {
        match self {
            CmpCond::Eq => "eq",
            CmpCond::Ne => "ne",
            CmpCond::Gt => "gt",
            CmpCond::Ge => "ge",
            CmpCond::Lt => "lt",
            CmpCond::Le => "le",
        }
    }
}

/// Modifier in front of a source operand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum SrcModifier {
    /// None.
    #[default]
    None,
    /// `(abs)`.
    Abs,
    /// `(-)`.
    Neg,
    /// `(-abs)`.
    NegAbs,
    /// `(~)`, logic operations only.
    Not,
}
