//! Spellings of operations in the text form, one row a variant, shared by the printer and the parser.

use super::op::{BinOp, Conv, FCond, FpEnvOp, ICond, ImageOp, RaceAccess, Space, UnOp};
use super::site::AccessKind;
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
    Rotl "rotl" Rotr "rotr" SMin "smin" SMax "smax" UMin "umin" UMax "umax" SAddSat "saddsat" SSubSat "ssubsat"
    UAddSat "uaddsat" USubSat "usubsat"
    FAdd "fadd" FSub "fsub" FMul "fmul" FDiv "fdiv" FScale "fscale"
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

/// Image operations but the atomics, which are spelt `atomic` and their own name.
pub(super) const IMAGE: Table<ImageOp> = &[
    (ImageOp::Read, "read"),
    (ImageOp::Write, "write"),
    (ImageOp::Fetch, "fetch"),
    (ImageOp::Sample, "sample"),
    (ImageOp::Info, "info"),
    (ImageOp::BlockRead, "blockread"),
    (ImageOp::BlockWrite, "blockwrite"),
    (ImageOp::FetchOffset, "fetchoffset"),
    (ImageOp::SampleOffset, "sampleoffset"),
    (ImageOp::Gather, "gather"),
    (ImageOp::Samples, "samples"),
    (ImageOp::Compare, "compare"),
    (ImageOp::GatherCompare, "gathercompare"),
    (ImageOp::Lod, "lod"),
];

table!(SPACE: Space {
    Surface "surface" Slm "slm" Flat "flat" Scratch "scratch" Regs "regs" Args "args"
    SurfaceMarks "surface-marks" SlmMarks "slm-marks" FlatMarks "flat-marks" ScratchMarks "scratch-marks" RegsMarks "regs-marks"
});

table!(LANE: Lane {
    I1 "i1" I8 "i8" I16 "i16" I32 "i32" I64 "i64" F32 "f32" F64 "f64"
});

table!(RACE: RaceAccess {
    Read "read" Write "write" AtomicRead "aread" AtomicWrite "awrite"
});

table!(KIND: AccessKind { Read "read" Write "write" Atomic "atomic" Barrier "barrier" });

table!(ATOMIC: AtomicOp {
    Add "add" Sub "sub" Inc "inc" Dec "dec" PreDec "predec" Umin "umin" Umax "umax" Smin "smin"
    Smax "smax" Xchg "xchg" CmpXchg "cmpxchg" And "and" Or "or" Xor "xor" Fmax "fmax" Fmin "fmin"
    FcmpXchg "fcmpxchg" Fadd "fadd" Fsub "fsub" Load "load"
});

/// Dimensions of local ids.
pub(super) const DIMS: [&str; 3] = ["x", "y", "z"];

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
        unique(RACE);
        unique(ATOMIC);
    }
}
