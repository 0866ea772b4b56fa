//! Calls of functions that LLVM knows; `helper.rs` has those of the runtime.

use rustc_hash::FxHashMap;

use inkwell::intrinsics::Intrinsic;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicMetadataValueEnum, FunctionValue, ValueKind};

use super::emit::{EmitResult, InternalError, LlvmEmitter, V};
use crate::ssa::Ty;

/// Intrinsics that were declared, by their names and the types that they are overloaded by.
#[derive(Default)]
pub(super) struct Intrinsics<'c>(FxHashMap<(&'static str, Vec<Ty>), FunctionValue<'c>>);

impl<'c> LlvmEmitter<'c, '_> {
    /// Calls an LLVM intrinsic overloaded by `types`.
    pub(super) fn intrinsic(
        &mut self,
        name: &'static str,
        types: &[Ty],
        args: &[V<'c>],
    ) -> EmitResult<V<'c>> {
        let key = (name, types.to_vec());
        let callee = match self.intrinsics.0.get(&key) {
            Some(&known) => known,
            None => {
                let types: Vec<BasicTypeEnum> = types.iter().map(|&t| self.type_of(t)).collect();
                let callee = self.declare(name, &types)?;
                self.intrinsics.0.insert(key, callee);
                callee
            }
        };
        self.call(callee, args)?
            .ok_or_else(|| InternalError(format!("{name} without a result")))
    }

    /// Declares an LLVM intrinsic.
    pub(super) fn declare(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'c>],
    ) -> EmitResult<FunctionValue<'c>> {
        Intrinsic::find(name)
            .and_then(|i| i.get_declaration(self.module, types))
            .ok_or_else(|| InternalError(format!("LLVM has no {name}")))
    }

    /// Calls one of `llvm.masked.*`, for elements at any address: before LLVM 22 that is said in an operand after the pointer.
    pub(super) fn call_masked(
        &self,
        callee: FunctionValue<'c>,
        up_to_pointer: &[V<'c>],
        others: &[V<'c>],
    ) -> EmitResult<Option<V<'c>>> {
        let align = cfg!(not(feature = "llvm22")).then(|| self.i32(1).into());
        let args = up_to_pointer.iter().copied().chain(align);
        let args: Vec<V> = args.chain(others.iter().copied()).collect();
        self.call(callee, &args)
    }

    /// Calls a function of the module.
    pub(super) fn call(
        &self,
        callee: FunctionValue<'c>,
        args: &[V<'c>],
    ) -> EmitResult<Option<V<'c>>> {
        let args: Vec<BasicMetadataValueEnum> = args.iter().map(|&a| a.into()).collect();
        let call = self.b.build_direct_call(callee, &args, "\0")?;
        Ok(match call.try_as_basic_value() {
            ValueKind::Basic(v) => Some(v),
            ValueKind::Instruction(_) => None,
        })
    }
}
