//! The operations that the expansions consist of. Each method is one lane-wise SSA operation.

/// Types of values: conditions, `f32`, `f64` and `i32` lanes.
pub(crate) trait Types {
    /// Condition.
    type Mask: Copy;
    /// `f32` lanes.
    type F: Copy;
    /// `f64` lanes.
    type D: Copy;
    /// `i32` lanes.
    type I: Copy;
}

/// Arithmetic on float lanes of type `T`.
pub(crate) trait Arith<T: Copy>: Types {
    /// A constant, rounded to the lane's type.
    fn num(&mut self, v: f64) -> T;
    /// `a + b`.
    fn add(&mut self, a: T, b: T) -> T;
    /// `a - b`.
    fn sub(&mut self, a: T, b: T) -> T;
    /// `a * b`.
    fn mul(&mut self, a: T, b: T) -> T;
    /// `a / b`.
    fn div(&mut self, a: T, b: T) -> T;
    /// `a * b + c`, rounded once.
    fn fma(&mut self, a: T, b: T, c: T) -> T;
    /// Square root.
    fn sqrt(&mut self, a: T) -> T;
    /// Sign clear.
    fn abs(&mut self, a: T) -> T;
    /// `a < b`.
    fn lt(&mut self, a: T, b: T) -> Self::Mask;
    /// `a == b`.
    fn eq(&mut self, a: T, b: T) -> Self::Mask;
    /// `m ? a : b`.
    fn select(&mut self, m: Self::Mask, a: T, b: T) -> T;
}

/// Everything the expansions use.
pub(crate) trait Ops: Arith<<Self as Types>::F> + Arith<<Self as Types>::D> {
    /// Either condition.
    fn or(&mut self, a: Self::Mask, b: Self::Mask) -> Self::Mask;
    /// An integer constant.
    fn int(&mut self, v: u32) -> Self::I;
    /// Wrapping add.
    fn iadd(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Wrapping subtract.
    fn isub(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise and.
    fn iand(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Bitwise exclusive or.
    fn ixor(&mut self, a: Self::I, b: Self::I) -> Self::I;
    /// Shift left.
    fn shl(&mut self, a: Self::I, n: u32) -> Self::I;
    /// Arithmetic shift right.
    fn ashr(&mut self, a: Self::I, n: u32) -> Self::I;
    /// The nearest integer, that of two which is even.
    fn nearest(&mut self, a: Self::F) -> Self::F;
    /// `a * 2^n`, rounded once; see [`BinOp::FScale`](crate::ssa::BinOp::FScale).
    fn scale(&mut self, a: Self::F, n: Self::F) -> Self::F;
    /// Bits of a float.
    fn bits(&mut self, a: Self::F) -> Self::I;
    /// Float with these bits.
    fn of_bits(&mut self, a: Self::I) -> Self::F;
    /// Signed integer to float.
    fn to_float(&mut self, a: Self::I) -> Self::F;
    /// `f32` to `f64`.
    fn promote(&mut self, a: Self::F) -> Self::D;
    /// `f64` to `f32`, to nearest.
    fn demote(&mut self, a: Self::D) -> Self::F;
}
