//! Two-dimensional blocks: one call of the runtime for each message.

use std::mem::offset_of;

use inkwell::values::PointerValue;
use visa_runtime::abi::{Helpers, Rectangle, rectangle};

use super::emit::{EmitResult, InternalError, LlvmEmitter, V};
use crate::backend::descriptors::rectangle_descriptor;
use crate::backend::fault_records::first_lane;
use crate::ssa::{Access2d, Space, Ty, Value};

/// Operands before a store's data.
const HEAD: usize = 7;

/// Bytes of a message.
pub(super) const fn rectangle_bytes(access: Access2d) -> u32 {
    rectangle::DATA + access.registers() * access.register as u32
}

impl<'c> LlvmEmitter<'c, '_> {
    /// A load; one result a register.
    pub(super) fn load2d(
        &mut self,
        access: Access2d,
        args: &[Value],
        out: &[Value],
    ) -> EmitResult<()> {
        let block = self.rectangle_operands(access, args)?;
        self.send_rectangle(access, block, false)?;
        for (i, &v) in out.iter().enumerate() {
            let from = self.register_of(access, block, i)?;
            let value = self.load_value(register(access), from)?;
            self.bind(v, value);
        }
        Ok(())
    }

    /// A store.
    pub(super) fn store2d(&mut self, access: Access2d, args: &[Value]) -> EmitResult<()> {
        let block = self.rectangle_operands(access, args)?;
        for (i, &v) in args.iter().skip(HEAD).enumerate() {
            let to = self.register_of(access, block, i)?;
            let value = self.get(v)?;
            self.store_value(value, register(access), to)?;
        }
        self.send_rectangle(access, block, true)
    }

    fn register_of(
        &mut self,
        access: Access2d,
        block: PointerValue<'c>,
        i: usize,
    ) -> EmitResult<PointerValue<'c>> {
        let at = rectangle::DATA + i as u32 * u32::from(access.register);
        self.offset_const(block, i64::from(at))
    }

    /// Writes the operands where the runtime reads them.
    fn rectangle_operands(
        &mut self,
        access: Access2d,
        args: &[Value],
    ) -> EmitResult<PointerValue<'c>> {
        let block = self.message_block()?;
        let enabled = self.get(args[0])?;
        let enabled = self.resize(enabled, 32)?;
        let site: V<'c> = self.i32(access.site).into();
        let mut fields = vec![
            (offset_of!(Rectangle, site), site),
            (offset_of!(Rectangle, enabled), enabled),
        ];
        let places = [
            offset_of!(Rectangle, base),
            offset_of!(Rectangle, width),
            offset_of!(Rectangle, height),
            offset_of!(Rectangle, pitch),
            offset_of!(Rectangle, x),
            offset_of!(Rectangle, y),
        ];
        for (at, &v) in places.into_iter().zip(&args[1..HEAD]) {
            fields.push((at, self.get(v)?));
        }
        for (at, v) in fields {
            let to = self.offset_const(block, at as i64)?;
            self.store(v, to)?;
        }
        Ok(block)
    }

    /// Calls the runtime; under `Trap` leaves the function when it says so.
    fn send_rectangle(
        &mut self,
        access: Access2d,
        block: PointerValue<'c>,
        store: bool,
    ) -> EmitResult<()> {
        let lane = first_lane(self.f, access.site);
        let reports = self.records_faults(Space::Flat);
        let shape = rectangle_descriptor(access, store, lane, reports);
        let args = [
            self.group().into(),
            self.thread_index()?.into(),
            self.i32(shape).into(),
            block.into(),
        ];
        let stop = self
            .call_helper(offset_of!(Helpers, rectangle), Some(32), &args)?
            .ok_or_else(|| InternalError::from("no answer to a block message"))?;
        self.stop_on_fault(stop)
    }
}

/// Type of a register of the payload.
fn register(access: Access2d) -> Ty {
    Ty::vector(access.elem, access.lanes() as u16)
}
