//! Calls of the runtime's helpers, through the table in the launch context.

use std::mem::offset_of;

use inkwell::IntPredicate;
use inkwell::attributes::AttributeLoc;
use inkwell::types::{BasicMetadataTypeEnum, BasicType, BasicTypeEnum};
use inkwell::values::{BasicMetadataValueEnum, InstructionOpcode as I, ValueKind};
use visa_runtime::abi::{Helpers, LaunchCtx, named_barrier};

use super::context::Field;
use super::emit::{EmitResult, InternalError, LlvmEmitter, V};
use super::extended;
use super::types::{lanes_of, padded_lanes};
use crate::backend::OobPolicy;
use crate::backend::calls::Call;
use crate::ssa::fp_env::CR0_PLAIN;
use crate::ssa::{BarrierCheck, BarrierStep, FpEnvOp, Lane, Ty, Value};

impl<'c> LlvmEmitter<'c, '_> {
    /// Calls the helper whose pointer is at `offset` in the table. The result is an integer of a given number of bits, or nothing.
    pub(super) fn call_helper(
        &mut self,
        offset: usize,
        result: Option<u32>,
        args: &[V<'c>],
    ) -> EmitResult<Option<V<'c>>> {
        self.calls.push(Call {
            line: self.line.get(),
            helper: offset,
        });
        let params: Vec<BasicMetadataTypeEnum> = args.iter().map(|a| a.get_type().into()).collect();
        let ty = match result {
            Some(bits) => self.int(bits).as_basic_type_enum().fn_type(&params, false),
            None => self.cx.void_type().fn_type(&params, false),
        };
        let table = self.launch_field(offset_of!(LaunchCtx, helpers), Field::Ptr)?;
        let callee = self.load_constant(self.ptr_type(), table, offset)?;
        let args: Vec<BasicMetadataValueEnum> = args.iter().map(|&a| a.into()).collect();
        let callee = self.as_ptr(callee)?;
        let call = self.b.build_indirect_call(ty, callee, &args, "\0")?;
        if let Some(extended) = extended(self.cpu, self.cx) {
            let words = params
                .iter()
                .zip(0..)
                .filter(|(ty, _)| **ty == self.int(32).into());
            for (_, i) in words {
                call.add_attribute(AttributeLoc::Param(i), extended);
            }
            if result == Some(32) {
                call.add_attribute(AttributeLoc::Return, extended);
            }
        }
        Ok(match call.try_as_basic_value() {
            ValueKind::Basic(v) => Some(v),
            ValueKind::Instruction(_) => None,
        })
    }

    /// Time stamp.
    pub(super) fn call_tsc(&mut self) -> EmitResult<V<'c>> {
        let v = self.call_helper(offset_of!(Helpers, tsc), Some(64), &[])?;
        v.ok_or_else(|| InternalError::from("no time stamp"))
    }

    /// A step at a named barrier.
    pub(super) fn named_barrier(&mut self, step: BarrierStep, args: &[Value]) -> EmitResult<V<'c>> {
        let step = match step {
            BarrierStep::Signal => named_barrier::SIGNAL,
            BarrierStep::Pass => named_barrier::PASS,
        };
        let (group, thread) = (self.group(), self.thread_index()?);
        let mut operands = vec![group.into(), thread.into(), self.i32(step).into()];
        for &a in args {
            operands.push(self.get(a)?);
        }
        let v = self.call_helper(offset_of!(Helpers, named_barrier), Some(32), &operands)?;
        v.ok_or_else(|| InternalError::from("a step at a barrier without a result"))
    }

    /// A check of a barrier. The runtime decides what is wrong: a call more is little beside the wait.
    pub(super) fn check_barrier(&mut self, check: BarrierCheck, lanes: Value) -> EmitResult<()> {
        let args = [
            self.group().into(),
            self.thread_index()?.into(),
            self.i32(check.site).into(),
            self.get(lanes)?,
            self.i32(check.waits.into()).into(),
        ];
        let stop = self.call_helper(offset_of!(Helpers, arrive), Some(32), &args)?;
        self.stop_on_fault(stop.ok_or("no answer to a check of a barrier")?)
    }

    /// Leaves the function where a helper that has found a fault says so, under the policy that stops.
    pub(super) fn stop_on_fault(&mut self, stop: V<'c>) -> EmitResult<()> {
        if self.options.oob != OobPolicy::Trap {
            return Ok(());
        }
        let leave = self.fault_exit()?;
        let ignored = self.new_block();
        let stop = self.icmp(IntPredicate::NE, stop, self.i32(0))?;
        self.branch(stop, leave, ignored)?;
        self.at(ignored);
        Ok(())
    }

    /// A float operation under `cr0`.
    pub(super) fn fp_env(&mut self, op: FpEnvOp, to: Ty, args: &[Value]) -> EmitResult<V<'c>> {
        let cr0 = self.get(args[0])?;
        let from = args.get(1).map_or(to, |&a| self.ty(a));
        let operands = self.get_all(&args[1..])?;
        if self.is_plain_half(op, cr0, (from, to)) {
            return self.half(op, to, &operands);
        }
        self.call_fp_env(op, cr0, from, &operands, to)
    }

    /// True for arithmetic of binary16 with the usual rounding, if the processor has instructions for it. They heed denormals always.
    fn is_plain_half(&self, op: FpEnvOp, cr0: V<'c>, (from, to): (Ty, Ty)) -> bool {
        let plain = self.as_int(cr0).ok();
        let plain = plain.and_then(|cr0| cr0.get_zero_extended_constant());
        let there = matches!(op, FpEnvOp::Add | FpEnvOp::Mul | FpEnvOp::Fma);
        let halves = from.lane == Lane::I16 && to.lane == Lane::I16;
        self.cpu.halves && there && halves && plain == Some(CR0_PLAIN.into())
    }

    fn half(&mut self, op: FpEnvOp, ty: Ty, operands: &[V<'c>]) -> EmitResult<V<'c>> {
        let mut halves: BasicTypeEnum = self.cx.f16_type().into();
        if !ty.is_scalar() {
            halves = lanes_of(halves, padded_lanes(ty.lanes));
        }
        let args = operands.iter().map(|&v| self.cast_bits(v, halves));
        let args = args.collect::<EmitResult<Vec<_>>>()?;
        let result = match (op, args.as_slice()) {
            (FpEnvOp::Add, &[a, b]) => self.op2(I::FAdd, a, b)?,
            (FpEnvOp::Mul, &[a, b]) => self.op2(I::FMul, a, b)?,
            (FpEnvOp::Fma, &[_, _, _]) => {
                let fma = self.declare("llvm.fma", &[halves])?;
                self.call(fma, &args)?.ok_or("a sum without a result")?
            }
            _ => return Err(InternalError(format!("{op:?} of halves"))),
        };
        self.cast_bits(result, self.type_of(ty))
    }

    /// Calls [`Helpers::fp_env`] with operands and result in stack slots.
    pub(super) fn call_fp_env(
        &mut self,
        op: FpEnvOp,
        cr0: V<'c>,
        from: Ty,
        operands: &[V<'c>],
        to: Ty,
    ) -> EmitResult<V<'c>> {
        let pointers = self.slot(24)?;
        for (i, &v) in operands.iter().enumerate().take(3) {
            let data = self.slot(from.bytes())?;
            self.store_value(v, from, data)?;
            let at = self.offset_const(pointers, 8 * i as i64)?;
            self.store(data, at)?;
        }
        let result = self.slot(to.bytes())?;
        let code = op as u32 | from.lane.bytes() << 8 | to.lane.bytes() << 16;
        let args = [
            self.i32(code).into(),
            cr0,
            self.i32(u32::from(to.lanes)).into(),
            pointers.into(),
            result.into(),
        ];
        self.call_helper(offset_of!(Helpers, fp_env), None, &args)?;
        self.load_value(to, result)
    }
}
