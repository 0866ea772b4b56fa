//! Single LLVM instructions.

use inkwell::llvm_sys::core::LLVMBuildGEP2;
use inkwell::types::{AsTypeRef, BasicTypeEnum};
use inkwell::values::{
    AsValueRef, BasicValue, InstructionOpcode, IntValue, PointerValue, VectorValue,
};
use inkwell::{FloatPredicate, IntPredicate};

use super::emit::{EmitResult, InternalError, LlvmEmitter, V};

impl<'c> LlvmEmitter<'c, '_> {
    /// An instruction of two operands of one type.
    pub(super) fn op2(
        &self,
        op: InstructionOpcode,
        a: impl Into<V<'c>>,
        b: impl Into<V<'c>>,
    ) -> EmitResult<V<'c>> {
        Ok(self.b.build_binop(op, a.into(), b.into(), "\0")?)
    }

    /// A conversion.
    pub(super) fn cast(
        &self,
        op: InstructionOpcode,
        v: impl Into<V<'c>>,
        to: BasicTypeEnum<'c>,
    ) -> EmitResult<V<'c>> {
        let v = v.into();
        if v.get_type() == to {
            return Ok(v);
        }
        Ok(self.b.build_cast(op, v, to, "\0")?)
    }

    /// The same bits as another type.
    pub(super) fn cast_bits(&self, v: V<'c>, to: BasicTypeEnum<'c>) -> EmitResult<V<'c>> {
        if v.get_type() == to {
            return Ok(v);
        }
        Ok(self.b.build_bit_cast(v, to, "\0")?)
    }

    /// Integer comparison, scalar or lane-wise.
    pub(super) fn icmp(
        &self,
        cc: IntPredicate,
        a: impl Into<V<'c>>,
        b: impl Into<V<'c>>,
    ) -> EmitResult<V<'c>> {
        Ok(match (a.into(), b.into()) {
            (V::IntValue(a), V::IntValue(b)) => self.b.build_int_compare(cc, a, b, "\0")?.into(),
            (V::VectorValue(a), V::VectorValue(b)) => {
                self.b.build_int_compare(cc, a, b, "\0")?.into()
            }
            _ => return Err("comparison of other things than integers".into()),
        })
    }

    /// Float comparison, scalar or lane-wise.
    pub(super) fn fcmp(&self, cc: FloatPredicate, a: V<'c>, b: V<'c>) -> EmitResult<V<'c>> {
        Ok(match (a, b) {
            (V::FloatValue(a), V::FloatValue(b)) => {
                self.b.build_float_compare(cc, a, b, "\0")?.into()
            }
            (V::VectorValue(a), V::VectorValue(b)) => {
                self.b.build_float_compare(cc, a, b, "\0")?.into()
            }
            _ => return Err("comparison of other things than floats".into()),
        })
    }

    /// `cond ? a : b`; the condition is scalar or a mask.
    pub(super) fn select(
        &self,
        cond: V<'c>,
        a: impl Into<V<'c>>,
        b: impl Into<V<'c>>,
    ) -> EmitResult<V<'c>> {
        let (a, b) = (a.into(), b.into());
        Ok(match cond {
            V::IntValue(c) => self.b.build_select(c, a, b, "\0")?,
            V::VectorValue(c) => self.b.build_select(c, a, b, "\0")?,
            _ => return Err("selection by neither condition nor mask".into()),
        })
    }

    /// Zero-extends or truncates integers to lanes of a given number of bits.
    pub(super) fn resize(&self, v: impl Into<V<'c>>, bits: u32) -> EmitResult<V<'c>> {
        let v = v.into();
        let (have, to): (u32, BasicTypeEnum) = match v {
            V::IntValue(i) => (i.get_type().get_bit_width(), self.int(bits).into()),
            V::VectorValue(x) => {
                let lane = x.get_type().get_element_type();
                let BasicTypeEnum::IntType(lane) = lane else {
                    return Err("resizes other lanes than integers".into());
                };
                let to = self.int(bits).vec_type(x.get_type().get_size());
                (lane.get_bit_width(), to.into())
            }
            _ => return Err("resizes other things than integers".into()),
        };
        let op = if have < bits {
            InstructionOpcode::ZExt
        } else {
            InstructionOpcode::Trunc
        };
        self.cast(op, v, to)
    }

    /// `a + constant`.
    pub(super) fn add_const(&self, a: IntValue<'c>, constant: i64) -> EmitResult<IntValue<'c>> {
        if constant == 0 {
            return Ok(a);
        }
        let by = a.get_type().const_int(constant.cast_unsigned(), false);
        self.as_int(self.op2(InstructionOpcode::Add, a, by)?)
    }

    /// A pointer moved by bytes.
    pub(super) fn offset(
        &self,
        ptr: PointerValue<'c>,
        bytes: IntValue<'c>,
    ) -> EmitResult<PointerValue<'c>> {
        // SAFETY: this only builds the instruction, which does not claim to stay inside an object; whoever
        // accesses memory through the result has tested the offset.
        let moved = unsafe { self.b.build_gep(self.cx.i8_type(), ptr, &[bytes], "\0") };
        Ok(moved?)
    }

    /// A pointer moved by each lane's signed index, in elements of `unit` bytes.
    pub(super) fn units_from(
        &self,
        ptr: PointerValue<'c>,
        units: VectorValue<'c>,
        bytes: u32,
    ) -> V<'c> {
        let mut index = units.as_value_ref();
        let unit = self.int(8 * bytes).as_type_ref();
        // SAFETY: the builder is at the end of a block, and everything is of one context. The instruction does not claim to
        // stay inside an object, and its result is a vector, as the index is one.
        unsafe {
            let from = ptr.as_value_ref();
            let moved = LLVMBuildGEP2(self.b.as_mut_ptr(), unit, from, &mut index, 1, c"".as_ptr());
            VectorValue::new(moved).into()
        }
    }

    /// A pointer moved by a constant.
    pub(super) fn offset_const(
        &self,
        ptr: PointerValue<'c>,
        bytes: i64,
    ) -> EmitResult<PointerValue<'c>> {
        if bytes == 0 {
            return Ok(ptr);
        }
        self.offset(ptr, self.i64(bytes.cast_unsigned()))
    }

    /// Reads memory, at any alignment.
    pub(super) fn load(&self, to: BasicTypeEnum<'c>, ptr: PointerValue<'c>) -> EmitResult<V<'c>> {
        let v = self.b.build_load(to, ptr, "\0")?;
        let inst = v
            .as_instruction_value()
            .ok_or("a load that is no instruction")?;
        inst.set_alignment(1)
            .map_err(|e| InternalError(e.to_string()))?;
        Ok(v)
    }

    /// Writes memory, at any alignment.
    pub(super) fn store(&self, v: impl Into<V<'c>>, ptr: PointerValue<'c>) -> EmitResult<()> {
        let inst = self.b.build_store(ptr, v.into())?;
        inst.set_alignment(1)
            .map_err(|e| InternalError(e.to_string()))
    }

    /// Room on the stack, allocated when the function is entered.
    pub(super) fn slot(&mut self, bytes: u32) -> EmitResult<PointerValue<'c>> {
        let ty = self.cx.i8_type().array_type(bytes.max(1));
        let entry = self.ctx.entry;
        let slot = self.aside(entry, |e| Ok(e.b.build_alloca(ty, "\0")?))?;
        let inst = slot
            .as_instruction()
            .ok_or("a slot that is no instruction")?;
        inst.set_alignment(64)
            .map_err(|e| InternalError(e.to_string()))?;
        Ok(slot)
    }
}
