//! Messages to typed surfaces and the sampler: one call of the runtime for each.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, types};
use visa_runtime::abi::{Helpers, image as code};

use super::emit::{CraneliftEmitter, DATA};
use super::value::piece_count;
use crate::backend::descriptors::{image_descriptor, image_faults};
use crate::ssa::{ImageAccess, Lane, Space, Ty, Value};

/// Rows of a message's block: three coordinates, four channels.
const ROWS: u32 = 7;

impl CraneliftEmitter<'_> {
    /// An image message.
    pub(super) fn image(&mut self, access: ImageAccess, args: &[Value], out: &[Value]) {
        let lanes = self.lanes(Space::Surface, args);
        let sampler = self.scalar(args[3]);
        let ty = Ty::vector(Lane::I32, lanes.count);
        let row = 16 * piece_count(ty) as u32;
        let block = self.message_block(row * ROWS);
        let to = self.slot_addr(block, 0);
        let rows = [args[1]].into_iter().chain(args[4..].iter().copied());
        for (k, v) in rows.enumerate() {
            for (i, part) in self.parts(v).into_iter().enumerate() {
                let at = row * k as u32 + 16 * i as u32;
                self.ins().store(DATA, part, to, at.cast_signed());
            }
        }
        let enabled = if lanes.count == 1 {
            let bit = self.scalar(lanes.mask);
            self.resize(bit, types::I32)
        } else {
            self.mask_bits(lanes.mask)
        };
        let shape = image_descriptor(access, lanes.count);
        let send = |e: &mut Self, shape: u32| {
            let args = [
                e.group(),
                e.iconst(types::I32, u64::from(shape)),
                lanes.surface,
                sampler,
                enabled,
                e.slot_addr(block, 0),
            ];
            e.call_helper(offset_of!(Helpers, image), Some(types::I32), &args)
        };
        if image_faults(access.op)
            && self.records_faults(Space::Surface)
            && let Some(faulting) = send(self, shape | code::CHECK)
        {
            self.report(&lanes, faulting, access.site, |_| ());
        }
        send(self, shape);
        let from = self.slot_addr(block, 0);
        let padded = match lanes.count {
            1 => ty,
            n => Ty::vector(Lane::I32, n.next_multiple_of(4)),
        };
        for (k, &v) in out.iter().enumerate() {
            let at = row * (3 + k as u32);
            let parts = self.load_value(from, at.cast_signed(), padded, DATA);
            self.bind(v, parts);
        }
    }
}
