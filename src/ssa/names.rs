//! Spellings of operations in the text form, one row a variant, shared by the printer and the parser.

use super::op::{AccessKind, BinOp, Conv, FCond, FpEnvOp, ICond, Space, UnOp};
use super::types::Lane;
use crate::isa::AtomicOp;

/// Rows of variant and spelling.
pub(super) type Table<T> = &'static [(T, &'static str)];

/// Spelling of `value`; every variant has a row (tested).
pub(super) fn spell<T: PartialEq>(table: Table<T>, value: &T) -> &'static str {
    table
        .iter()
        .find(|(v, _)| v == value)
        .map_or("?", |&(_, name)| name)
}

/// Variant spelt `name`.
pub(super) fn find<T: Copy>(table: Table<T>, name: &str) -> Option<T> {
    table.iter().find(|(_, n)| *n == name).map(|&(v, _)| v)
}

macro_rules! table {
    ($name:ident: $ty:ident { $($variant:ident $text:literal)* }) => {
        pub(super) const $name: Table<$ty> = &[$(($ty::$variant, $text)),*];
        const _: fn($ty) = |v| match v { $($ty::$variant => ()),* };
    };
}

table!(UNARY: UnOp {
    Neg "neg" Not "not" Clz "clz" Ctz "ctz" Popcnt "popcnt" BitRev "bitrev" FNeg "fneg" FAbs "fabs"
    FSqrt "fsqrt" FFloor "ffloor" FCeil "fceil" FTrunc "ftrunc" FNearest "fnearest"
});

table!(BINARY: BinOp {
    Add "add" Sub "sub" Mul "mul" MulHiS "mulhis" MulHiU "mulhiu" SDiv "sdiv" UDiv "udiv"
    SRem "srem" URem "urem" And "and" Or "or" Xor "xor" Shl "shl" LShr "lshr" AShr "ashr"
    Rotl "rotl" Rotr "rotr" SMin "smin" SMax "smax" UMin "umin" UMax "umax"
    FAdd "fadd" FSub "fsub" FMul "fmul" FDiv "fdiv"
});

table!(CONVERT: Conv {
    SExt "sext" ZExt "zext" Trunc "trunc" SIToF "sitof" UIToF "uitof" FToSI "ftosi" FToUI "ftoui"
    FPromote "fpromote" FDemote "fdemote" F16ToF "f16tof" FToF16 "ftof16"
});

table!(ICOND: ICond {
    Eq "eq" Ne "ne" Slt "slt" Sle "sle" Sgt "sgt" Sge "sge" Ult "ult" Ule "ule" Ugt "ugt" Uge "uge"
});

table!(FCOND: FCond { Eq "eq" Ne "ne" Lt "lt" Le "le" Gt "gt" Ge "ge" });

table!(FPENV: FpEnvOp {
    Add "add" Mul "mul" Div "div" Fma "fma" Sqrt "sqrt" SIToF "sitof" UIToF "uitof" FToF "ftof"
    Flush "flush"
});

table!(SPACE: Space {
    Surface "surface" Slm "slm" Flat "flat" Scratch "scratch" Regs "regs"
});

table!(LANE: Lane {
    I1 "i1" I8 "i8" I16 "i16" I32 "i32" I64 "i64" F32 "f32" F64 "f64"
});

table!(KIND: AccessKind { Read "read" Write "write" Atomic "atomic" });

table!(ATOMIC: AtomicOp {
    Add "add" Sub "sub" Inc "inc" Dec "dec" PreDec "predec" Umin "umin" Umax "umax" Smin "smin"
    Smax "smax" Xchg "xchg" CmpXchg "cmpxchg" And "and" Or "or" Xor "xor" Fmax "fmax" Fmin "fmin"
    FcmpXchg "fcmpxchg" Fadd "fadd" Fsub "fsub" Load "load"
});

/// Dimensions of local ids.
pub(super) const DIMS: [&str; 3] = ["x", "y", "z"];

/// Opcodes a site may come from; the parser accepts these alone, because [`super::Site::opcode`] is
/// a static string.
pub(super) const SITE_OPCODES: &[&str] = &[
    "gather",
    "gather_scaled",
    "gather4_scaled",
    "gather4_typed",
    "scatter",
    "scatter_scaled",
    "scatter4_scaled",
    "scatter4_typed",
    "dword_atomic",
    "typed_atomic",
    "svm_gather",
    "svm_scatter",
    "svm_gather4scaled",
    "svm_scatter4scaled",
    "svm_block_ld",
    "svm_block_st",
    "svm_atomic",
    "oword_ld",
    "oword_ld_unaligned",
    "oword_st",
    "media_ld",
    "media_st",
    "lsc_load",
    "lsc_load_strided",
    "lsc_load_quad",
    "lsc_load_block2d",
    "lsc_store",
    "lsc_store_strided",
    "lsc_store_quad",
    "lsc_store_block2d",
    "lsc_atomic",
    "lsc_fence",
    "svm_gather4",
    "svm_scatter4",
    "raw_send",
    "raw_sends",
    "indirect",
    "spill",
];

#[cfg(test)]
mod tests {
    use super::*;

    fn unique<T: Copy>(table: Table<T>) {
        for (i, (_, a)) in table.iter().enumerate() {
            assert!(table[i + 1..].iter().all(|(_, b)| a != b), "{a} twice");
        }
    }

    #[test]
    fn spellings_are_unique() {
        unique(UNARY);
        unique(BINARY);
        unique(CONVERT);
        unique(ICOND);
        unique(FCOND);
        unique(FPENV);
        unique(SPACE);
        unique(LANE);
        unique(KIND);
        unique(ATOMIC);
    }
}
