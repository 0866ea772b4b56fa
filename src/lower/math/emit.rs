//! The expansions as SSA.

use super::ops::{Arith, Ops, Types};
use crate::lower::build::Builder;
use crate::ssa::*;

/// A value whose lane type is known here.
pub(super) trait Typed: Copy {
    /// The lane type.
    const LANE: Lane;
    /// Bits of a constant.
    fn constant(v: f64) -> u64;
    /// Takes a value that has these lanes.
    fn new(v: Value) -> Self;
    /// The value.
    fn value(self) -> Value;
}

macro_rules! typed {
    ($name:ident, $lane:ident, $v:ident => $bits:expr) => {
        /// A value of these lanes.
        #[derive(Clone, Copy)]
        pub(super) struct $name(pub Value);

        impl Typed for $name {
            const LANE: Lane = Lane::$lane;
            fn constant($v: f64) -> u64 {
                $bits
            }
            fn new(v: Value) -> Self {
                $name(v)
            }
            fn value(self) -> Value {
                self.0
            }
        }
    };
}

typed!(Single, F32, v => u64::from((v as f32).to_bits()));
typed!(Double, F64, v => v.to_bits());

/// Integer lanes.
#[derive(Clone, Copy)]
pub(super) struct Int(Value);

/// Condition lanes.
#[derive(Clone, Copy)]
pub(super) struct Mask(Value);

/// Appends operations to the block under construction.
pub(super) struct BuilderOps<'b>(pub &'b mut Builder);

impl Types for BuilderOps<'_> {
    type Mask = Mask;
    type F = Single;
    type D = Double;
    type I = Int;
}

impl<T: Typed> Arith<T> for BuilderOps<'_> {
    fn num(&mut self, v: f64) -> T {
        T::new(self.0.bits(T::LANE, T::constant(v)))
    }
    fn add(&mut self, a: T, b: T) -> T {
        T::new(self.0.bin(BinOp::FAdd, a.value(), b.value()))
    }
    fn sub(&mut self, a: T, b: T) -> T {
        T::new(self.0.bin(BinOp::FSub, a.value(), b.value()))
    }
    fn mul(&mut self, a: T, b: T) -> T {
        T::new(self.0.bin(BinOp::FMul, a.value(), b.value()))
    }
    fn div(&mut self, a: T, b: T) -> T {
        T::new(self.0.bin(BinOp::FDiv, a.value(), b.value()))
    }
    fn fma(&mut self, a: T, b: T, c: T) -> T {
        T::new(self.0.fma(a.value(), b.value(), c.value()))
    }
    fn sqrt(&mut self, a: T) -> T {
        T::new(self.0.un(UnOp::FSqrt, a.value()))
    }
    fn abs(&mut self, a: T) -> T {
        T::new(self.0.un(UnOp::FAbs, a.value()))
    }
    fn lt(&mut self, a: T, b: T) -> Mask {
        Mask(self.0.fcmp(FCond::Lt, a.value(), b.value()))
    }
    fn eq(&mut self, a: T, b: T) -> Mask {
        Mask(self.0.fcmp(FCond::Eq, a.value(), b.value()))
    }
    fn select(&mut self, m: Mask, a: T, b: T) -> T {
        T::new(self.0.select(m.0, a.value(), b.value()))
    }
}

impl BuilderOps<'_> {
    fn shift(&mut self, op: BinOp, a: Int, n: u32) -> Int {
        Int(self.0.bin_imm(op, a.0, i64::from(n)))
    }
}

impl Ops for BuilderOps<'_> {
    fn or(&mut self, a: Mask, b: Mask) -> Mask {
        Mask(self.0.bin(BinOp::Or, a.0, b.0))
    }
    fn int(&mut self, v: u32) -> Int {
        Int(self.0.i32(v))
    }
    fn iadd(&mut self, a: Int, b: Int) -> Int {
        Int(self.0.bin(BinOp::Add, a.0, b.0))
    }
    fn isub(&mut self, a: Int, b: Int) -> Int {
        Int(self.0.bin(BinOp::Sub, a.0, b.0))
    }
    fn iand(&mut self, a: Int, b: Int) -> Int {
        Int(self.0.bin(BinOp::And, a.0, b.0))
    }
    fn ixor(&mut self, a: Int, b: Int) -> Int {
        Int(self.0.bin(BinOp::Xor, a.0, b.0))
    }
    fn shl(&mut self, a: Int, n: u32) -> Int {
        self.shift(BinOp::Shl, a, n)
    }
    fn ashr(&mut self, a: Int, n: u32) -> Int {
        self.shift(BinOp::AShr, a, n)
    }
    fn nearest(&mut self, a: Single) -> Single {
        Single(self.0.un(UnOp::FNearest, a.0))
    }
    fn scale(&mut self, a: Single, n: Single) -> Single {
        Single(self.0.bin(BinOp::FScale, a.0, n.0))
    }
    fn bits(&mut self, a: Single) -> Int {
        Int(self.0.recast(a.0, Lane::I32))
    }
    fn of_bits(&mut self, a: Int) -> Single {
        Single(self.0.recast(a.0, Lane::F32))
    }
    fn to_float(&mut self, a: Int) -> Single {
        Single(self.0.conv(Conv::SIToF, a.0, Lane::F32))
    }
    fn promote(&mut self, a: Single) -> Double {
        Double(self.0.conv(Conv::FPromote, a.0, Lane::F64))
    }
    fn demote(&mut self, a: Double) -> Single {
        Single(self.0.conv(Conv::FDemote, a.0, Lane::F32))
    }
}
