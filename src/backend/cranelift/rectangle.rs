//! Two-dimensional blocks: one call of the runtime for each message.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, StackSlot, types};
use visa_runtime::abi::{Helpers, Rectangle, rectangle};

use super::emit::{CraneliftEmitter, DATA};
use crate::backend::descriptors::rectangle_descriptor;
use crate::backend::fault_records::first_lane;
use crate::ssa::{Access2d, Space, Ty, Value};

/// Operands before a store's data.
const HEAD: usize = 7;

impl CraneliftEmitter<'_> {
    /// A load; one result a register.
    pub(super) fn load2d(&mut self, access: Access2d, args: &[Value], out: &[Value]) {
        let block = self.rectangle_operands(access, args);
        self.send_rectangle(access, block, false);
        let from = self.slot_addr(block, 0);
        for (i, &v) in out.iter().enumerate() {
            let at = rectangle::DATA + i as u32 * u32::from(access.register);
            let ty = Ty::vector(access.elem, access.lanes() as u16);
            let parts = self.load_value(from, at.cast_signed(), ty, DATA);
            self.bind(v, parts);
        }
    }

    /// A store.
    pub(super) fn store2d(&mut self, access: Access2d, args: &[Value]) {
        let block = self.rectangle_operands(access, args);
        let to = self.slot_addr(block, 0);
        for (i, &v) in args.iter().skip(HEAD).enumerate() {
            let at = rectangle::DATA + i as u32 * u32::from(access.register);
            let ty = Ty::vector(access.elem, access.lanes() as u16);
            let parts = self.parts(v);
            self.store_value(to, at.cast_signed(), ty, &parts);
        }
        self.send_rectangle(access, block, true);
    }

    /// Writes the operands where the runtime reads them.
    fn rectangle_operands(&mut self, access: Access2d, args: &[Value]) -> StackSlot {
        let bytes = access.registers() * u32::from(access.register);
        let block = self.message_block(rectangle::DATA + bytes);
        let to = self.slot_addr(block, 0);
        let enabled = self.scalar(args[0]);
        let enabled = self.resize(enabled, types::I32);
        let site = self.iconst(types::I32, u64::from(access.site));
        let fields = [
            offset_of!(Rectangle, base),
            offset_of!(Rectangle, width),
            offset_of!(Rectangle, height),
            offset_of!(Rectangle, pitch),
            offset_of!(Rectangle, x),
            offset_of!(Rectangle, y),
        ];
        for (field, &v) in fields.into_iter().zip(&args[1..HEAD]) {
            let v = self.scalar(v);
            self.ins().store(DATA, v, to, field as i32);
        }
        let at = offset_of!(Rectangle, site) as i32;
        self.ins().store(DATA, site, to, at);
        let at = offset_of!(Rectangle, enabled) as i32;
        self.ins().store(DATA, enabled, to, at);
        block
    }

    /// Calls the runtime; under `Trap` leaves the function when it says so.
    fn send_rectangle(&mut self, access: Access2d, block: StackSlot, store: bool) {
        let lane = first_lane(self.f, access.site);
        let reports = self.records_faults(Space::Flat);
        let shape = rectangle_descriptor(access, store, lane, reports);
        let args = [
            self.group(),
            self.thread_index(),
            self.iconst(types::I32, u64::from(shape)),
            self.slot_addr(block, 0),
        ];
        let stop = self.call_helper(offset_of!(Helpers, rectangle), Some(types::I32), &args);
        self.stop_on_fault(stop);
    }
}
