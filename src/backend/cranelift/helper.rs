//! Calls of the runtime's helpers, through the table in the launch context.

use std::mem::offset_of;

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{
    AbiParam, InstBuilder, MemFlagsData, Signature, Type, Value as V, types,
};
use cranelift_codegen::isa::CallConv;
use visa_runtime::abi::{GroupCtx, Helpers, LaunchCtx, named_barrier};

use super::emit::{CraneliftEmitter, DATA};
use super::value::piece_count;
use crate::backend::OobPolicy;
use crate::backend::calls::Call;
use crate::ssa::{BarrierCheck, BarrierStep, FpEnvOp, Ty, Value};

/// Signature of [`visa_runtime::abi::Entry`].
pub(super) fn entry_signature(call_conv: CallConv) -> Signature {
    signature(
        call_conv,
        &[types::I64, types::I32, types::I32],
        Some(types::I32),
    )
}

fn signature(call_conv: CallConv, params: &[Type], result: Option<Type>) -> Signature {
    let mut s = Signature::new(call_conv);
    s.params.extend(params.iter().map(|&t| AbiParam::new(t)));
    s.returns.extend(result.map(AbiParam::new));
    s
}

impl CraneliftEmitter<'_> {
    /// Calls the helper whose pointer is at `offset` in the table.
    pub(super) fn call_helper(
        &mut self,
        offset: usize,
        result: Option<Type>,
        args: &[V],
    ) -> Option<V> {
        self.call_table(self.target.call_conv, offset, result, args)
    }

    /// Calls a helper that keeps all registers, see [`Self::answer`].
    pub(super) fn call_preserve_all(&mut self, offset: usize, args: &[V]) {
        self.call_table(CallConv::PreserveAll, offset, None, args);
    }

    /// What the helper that keeps all registers and was called last has to say.
    pub(super) fn answer(&mut self) -> V {
        let group = self.group();
        let at = offset_of!(GroupCtx, answer) as i32;
        self.ins().load(types::I32, DATA, group, at)
    }

    fn call_table(
        &mut self,
        call_conv: CallConv,
        offset: usize,
        result: Option<Type>,
        args: &[V],
    ) -> Option<V> {
        self.calls.push(Call {
            line: self.line(),
            helper: offset,
        });
        let params: Vec<Type> = args.iter().map(|&a| self.type_of(a)).collect();
        let sig = signature(call_conv, &params, result);
        let known = self.func.dfg.signatures.iter().find(|(_, s)| **s == sig);
        let sig = match known.map(|(known, _)| known) {
            Some(known) => known,
            None => self.func.import_signature(sig),
        };
        // Loaded where it is used: hoisted, the pointers would occupy registers or the prologue.
        let group = self.group();
        let at = offset_of!(GroupCtx, launch) as i32;
        let launch = self.ins().load(types::I64, DATA, group, at);
        let at = offset_of!(LaunchCtx, helpers) as i32;
        let table = self.ins().load(types::I64, DATA, launch, at);
        let callee = self.ins().load(types::I64, DATA, table, offset as i32);
        let call = self.ins().call_indirect(sig, callee, args);
        result.and_then(|_| self.func.dfg.inst_results(call).first().copied())
    }

    /// Time stamp.
    pub(super) fn call_tsc(&mut self) -> V {
        let v = self.call_helper(offset_of!(Helpers, tsc), Some(types::I64), &[]);
        v.unwrap_or_else(|| self.iconst(types::I64, 0))
    }

    /// A step at a named barrier.
    pub(super) fn named_barrier(&mut self, step: BarrierStep, args: &[Value], out: Value) {
        let step = match step {
            BarrierStep::Signal => named_barrier::SIGNAL,
            BarrierStep::Pass => named_barrier::PASS,
        };
        let step = self.iconst(types::I32, u64::from(step));
        let mut operands = vec![self.group(), self.thread_index(), step];
        operands.extend(args.iter().map(|&a| self.scalar(a)));
        let at = offset_of!(Helpers, named_barrier);
        match self.call_helper(at, Some(types::I32), &operands) {
            Some(v) => self.bind(out, vec![v]),
            None => self.bug("a step at a barrier without a result"),
        }
    }

    /// A check of a barrier. The runtime decides what is wrong: a call more is little beside the wait.
    pub(super) fn check_barrier(&mut self, check: BarrierCheck, lanes: Value) {
        let args = [
            self.group(),
            self.thread_index(),
            self.iconst(types::I32, u64::from(check.site)),
            self.scalar(lanes),
            self.iconst(types::I32, u64::from(check.waits)),
        ];
        let stop = self.call_helper(offset_of!(Helpers, arrive), Some(types::I32), &args);
        self.stop_on_fault(stop);
    }

    /// Leaves the function where a helper that has found a fault says so, under the policy that stops.
    pub(super) fn stop_on_fault(&mut self, stop: Option<V>) {
        if let (OobPolicy::Trap, Some(stop)) = (self.options.oob, stop) {
            let leave = self.fault_exit();
            let ignored = self.new_block();
            let stop = self.ins().icmp_imm_u(IntCC::NotEqual, stop, 0);
            self.branch(stop, leave, ignored);
            self.block = ignored;
        }
    }

    /// A float operation under `cr0`.
    pub(super) fn fp_env(&mut self, op: FpEnvOp, out: Value, args: &[Value]) {
        let to = self.ty(out);
        let cr0 = self.scalar(args[0]);
        let from = args.get(1).map_or(to, |&a| self.ty(a));
        let operands: Vec<Vec<V>> = args[1..].iter().map(|&a| self.parts(a)).collect();
        let result = self.call_fp_env(op, cr0, from, &operands, to);
        self.bind(out, result);
    }

    /// Calls [`Helpers::fp_env`] with operands and result on the stack: pointers to the operands, the operands, the result.
    pub(super) fn call_fp_env(
        &mut self,
        op: FpEnvOp,
        cr0: V,
        from: Ty,
        operands: &[Vec<V>],
        to: Ty,
    ) -> Vec<V> {
        let mut result = 32;
        let sizes = operands.iter().map(|parts| 16 * parts.len() as u32);
        let total = result + sizes.sum::<u32>() + 16 * piece_count(to) as u32;
        let block = self.message_block(total);
        for (i, parts) in operands.iter().enumerate().take(3) {
            self.spill(block, result, parts);
            let data = self.slot_addr(block, result);
            let at = self.slot_addr(block, 8 * i as u32);
            self.ins().store(MemFlagsData::trusted(), data, at, 0);
            result += 16 * parts.len() as u32;
        }
        let code = op as u32 | from.lane.bytes() << 8 | to.lane.bytes() << 16;
        let args = [
            self.iconst(types::I32, u64::from(code)),
            cr0,
            self.iconst(types::I32, u64::from(to.lanes)),
            self.slot_addr(block, 0),
            self.slot_addr(block, result),
        ];
        self.call_helper(offset_of!(Helpers, fp_env), None, &args);
        self.unspill(block, result, to)
    }
}
