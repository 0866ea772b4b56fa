//! Checks of initialisation: what happens where marks are set.

use std::mem::offset_of;

use inkwell::IntPredicate;
use inkwell::values::InstructionOpcode as I;
use visa_runtime::abi::{Helpers, Status};

use super::emit::{EmitResult, LlvmEmitter, V};
use crate::ssa::{RaceCheck, Value};

impl<'c> LlvmEmitter<'c, '_> {
    /// Leaves the function if a mark is set, or a condition.
    pub(super) fn suspect(&mut self, args: &[Value]) -> EmitResult<()> {
        let set = self.any_set(args)?;
        let leave = self.exit(Status::Suspect)?;
        let go_on = self.new_block();
        self.branch_likely(set, leave, go_on, false)?;
        self.at(go_on);
        Ok(())
    }

    /// Clears the marks of the lanes of a store if any is set.
    pub(super) fn initialise(&mut self, check: RaceCheck, args: &[Value]) -> EmitResult<()> {
        let (operands, marks) = args.split_at(2 + usize::from(check.space.has_surface()));
        let set = self.any_set(marks)?;
        let (cold, go_on) = (self.new_block(), self.new_block());
        self.branch_likely(set, cold, go_on, false)?;
        self.at(cold);
        let call = self.race_call(check, operands)?;
        let helper = offset_of!(Helpers, initialise);
        self.race_of_lanes(check, &call, operands, helper)?;
        self.jump(go_on)?;
        self.at(go_on);
        Ok(())
    }

    /// Whether any bit of the values is set.
    fn any_set(&mut self, args: &[Value]) -> EmitResult<V<'c>> {
        let mut any: Option<V<'c>> = None;
        for &arg in args {
            let (v, ty) = (self.get(arg)?, self.ty(arg));
            let zero = v.get_type().const_zero();
            let mut set = self.icmp(IntPredicate::NE, v, zero)?;
            if !ty.is_scalar() {
                // What is after the last lane may hold anything.
                let lanes = self.narrow(set, ty.lanes)?;
                let word = self.int(u32::from(ty.lanes));
                let bits = self.cast_bits(lanes, word.into())?;
                set = self.icmp(IntPredicate::NE, bits, word.const_zero())?;
            }
            any = Some(match any {
                Some(any) => self.op2(I::Or, any, set)?,
                None => set,
            });
        }
        any.ok_or_else(|| "no marks".into())
    }
}
