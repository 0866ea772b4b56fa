//! Messages to typed surfaces and the sampler: one call of the runtime for each.

use std::mem::offset_of;

use visa_runtime::abi::{Helpers, image as code};

use super::access::padded;
use super::emit::{EmitResult, InternalError, LlvmEmitter, V};
use crate::backend::descriptors::{image_descriptor, image_faults};
use crate::ssa::{ImageAccess, Lane, Space, Ty, Value};

/// Rows of a message's block: three coordinates, four channels.
const ROWS: u32 = 7;

/// Bytes of a message to a given number of lanes.
pub(super) const fn image_bytes(lanes: u16) -> u32 {
    ROWS * padded(Ty::vector(Lane::I32, lanes))
}

impl<'c> LlvmEmitter<'c, '_> {
    /// An image message.
    pub(super) fn image(
        &mut self,
        access: ImageAccess,
        args: &[Value],
        out: &[Value],
    ) -> EmitResult<()> {
        let (mask, u) = (args[0], args[1]);
        let (surface, sampler) = (self.get(args[2])?, self.get(args[3])?);
        let ty = self.ty(u);
        let row = padded(ty);
        let block = self.message_block()?;
        let rows = [u].into_iter().chain(args[4..].iter().copied());
        for (k, v) in rows.enumerate() {
            let at = self.offset_const(block, i64::from(row) * k as i64)?;
            let v = self.get(v)?;
            self.store_value(v, ty, at)?;
        }
        let enabled = self.get(mask)?;
        let enabled = self.mask_bits(enabled, ty.lanes)?;
        let shape = image_descriptor(access, ty.lanes);
        let send = |e: &mut Self, shape: u32| -> EmitResult<V<'c>> {
            let args = [
                e.group().into(),
                e.i32(shape).into(),
                surface,
                sampler,
                enabled,
                block.into(),
            ];
            e.call_helper(offset_of!(Helpers, image), Some(32), &args)?
                .ok_or_else(|| InternalError::from("no answer to an image message"))
        };
        if image_faults(access.op) && self.records_faults(Space::Surface) {
            let faulting = send(self, shape | code::CHECK)?;
            let place = (self.get(u)?, ty.lanes, surface);
            self.report(place, faulting, access.site, |_| Ok(()))?;
        }
        send(self, shape)?;
        for (k, &v) in out.iter().enumerate() {
            let at = self.offset_const(block, i64::from(row) * (3 + k as i64))?;
            let result = self.load_value(ty, at)?;
            self.bind(v, result);
        }
        Ok(())
    }
}
