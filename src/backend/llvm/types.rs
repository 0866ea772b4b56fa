//! LLVM types and constants of SSA values: a vector of `N` lanes is one `<N x T>`, a mask one `<N x i1>`.

use inkwell::AddressSpace;
use inkwell::context::Context;
use inkwell::types::{BasicTypeEnum, IntType, VectorType};
use inkwell::values::{BasicValueEnum, IntValue};

use super::emit::{EmitResult, LlvmEmitter, V};
use crate::backend::access::consts;
use crate::ssa::{Lane, Ty, Value};

/// Type of a scalar.
pub(super) fn scalar_type(cx: &Context, lane: Lane) -> BasicTypeEnum<'_> {
    match lane {
        Lane::F32 => cx.f32_type().into(),
        Lane::F64 => cx.f64_type().into(),
        _ => int_type(cx, lane.bits()).into(),
    }
}

/// Integers of this many bits, of which there are 1 to 512.
pub(super) fn int_type(cx: &Context, bits: u32) -> IntType<'_> {
    match bits {
        1 => cx.bool_type(),
        8 => cx.i8_type(),
        16 => cx.i16_type(),
        32 => cx.i32_type(),
        64 => cx.i64_type(),
        _ => std::num::NonZeroU32::new(bits)
            .and_then(|bits| cx.custom_width_int_type(bits).ok())
            .unwrap_or(cx.i64_type()),
    }
}

/// Vectors of any scalar type.
pub(super) fn vector_of(scalar: BasicTypeEnum<'_>, lanes: u32) -> VectorType<'_> {
    match scalar {
        BasicTypeEnum::FloatType(t) => t.vec_type(lanes),
        BasicTypeEnum::PointerType(t) => t.vec_type(lanes),
        BasicTypeEnum::IntType(t) => t.vec_type(lanes),
        other => other.into_vector_type(),
    }
}

/// A scalar type, or vectors of it.
pub(super) fn lanes_of(scalar: BasicTypeEnum<'_>, lanes: u16) -> BasicTypeEnum<'_> {
    if lanes == 1 {
        scalar
    } else {
        vector_of(scalar, u32::from(lanes)).into()
    }
}

/// Lanes of the LLVM value of an SSA value: the next power of two. LLVM does not get all operations right on other
/// counts. What the lanes beyond hold does not matter, but it is never undefined: they may end in a division.
pub(super) const fn padded_lanes(lanes: u16) -> u16 {
    lanes.next_power_of_two()
}

impl<'c> LlvmEmitter<'c, '_> {
    /// LLVM type of an SSA type in registers.
    pub(super) fn type_of(&self, ty: Ty) -> BasicTypeEnum<'c> {
        lanes_of(scalar_type(self.cx, ty.lane), padded_lanes(ty.lanes))
    }

    /// LLVM type of an SSA type in memory.
    pub(super) fn exact(&self, ty: Ty) -> BasicTypeEnum<'c> {
        lanes_of(scalar_type(self.cx, ty.lane), ty.lanes)
    }

    /// Integers of a given number of bits.
    pub(super) fn int(&self, bits: u32) -> IntType<'c> {
        int_type(self.cx, bits)
    }

    /// Pointers.
    pub(super) fn ptr_type(&self) -> BasicTypeEnum<'c> {
        self.cx.ptr_type(AddressSpace::default()).into()
    }

    /// SSA type of a value.
    pub(super) fn ty(&self, v: Value) -> Ty {
        self.f.ty(v)
    }

    /// A 32-bit constant.
    pub(super) fn i32(&self, value: u32) -> IntValue<'c> {
        self.cx.i32_type().const_int(u64::from(value), false)
    }

    /// A 64-bit constant.
    pub(super) fn i64(&self, value: u64) -> IntValue<'c> {
        self.cx.i64_type().const_int(value, false)
    }

    /// A scalar with these bits.
    pub(super) fn scalar_bits(&self, lane: Lane, bits: u64) -> EmitResult<V<'c>> {
        let int = self.int(lane.bits()).const_int(bits & lane.mask(), false);
        if lane.is_float() {
            return self.cast_bits(int.into(), scalar_type(self.cx, lane));
        }
        Ok(int.into())
    }

    /// `bits` in every lane of a type.
    pub(super) fn konst(&self, ty: Ty, bits: u64) -> EmitResult<V<'c>> {
        let one = self.scalar_bits(ty.lane, bits)?;
        if ty.is_scalar() {
            return Ok(one);
        }
        let lanes = usize::from(padded_lanes(ty.lanes));
        Ok(VectorType::const_vector(&vec![one; lanes]).into())
    }

    /// A constant of these lanes.
    pub(super) fn vector_bits(&self, lane: Lane, lanes: &[u64]) -> EmitResult<V<'c>> {
        let padding = usize::from(padded_lanes(lanes.len() as u16)) - lanes.len();
        let padding = std::iter::repeat_n(&0, padding);
        let lanes: Vec<BasicValueEnum> = lanes
            .iter()
            .chain(padding)
            .map(|&bits| self.scalar_bits(lane, bits))
            .collect::<EmitResult<_>>()?;
        Ok(VectorType::const_vector(&lanes).into())
    }

    /// Bits that all lanes of a constant have.
    pub(super) fn uniform_const(&self, v: Value) -> Option<u64> {
        consts::uniform(self.f, v)
    }

    /// True for a mask that is known to be full.
    pub(super) fn is_full(&self, mask: Value) -> bool {
        self.uniform_const(mask) == Some(1) || self.version.is_full(mask)
    }
}
