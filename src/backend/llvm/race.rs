//! Checks of races: one call of the runtime for each access, which compares it with earlier ones and enters it.

use std::mem::offset_of;

use visa_runtime::abi::Helpers;

use super::access::padded;
use super::emit::{Emit, EmitResult};
use crate::backend::race;
use crate::backend::records::Records;
use crate::ssa::{Function, RaceCheck, Ty, Value};

/// Types of a check's addresses and of each of its rows of data.
fn types(f: &Function, check: RaceCheck, args: &[Value]) -> (Ty, Ty) {
    let lanes = args.get(1).map_or(1, |&v| f.ty(v).lanes);
    let row = match check.block {
        true => check.count,
        false => lanes,
    };
    (
        Ty::vector(check.space.addr(), lanes),
        Ty::vector(check.elem, row),
    )
}

/// Bytes of the block of a check.
pub(super) fn block_bytes(f: &Function, check: RaceCheck, args: &[Value]) -> u32 {
    let (addresses, row) = types(f, check, args);
    let head = 2 + usize::from(check.space.has_surface());
    let rows = args.len().saturating_sub(head) as u32;
    padded(addresses) + rows * padded(row)
}

impl<'c> Emit<'c, '_> {
    /// A check.
    pub fn check_race(&mut self, check: RaceCheck, args: &[Value]) -> EmitResult<()> {
        let lanes = self.lanes(check.space, args)?;
        let records = Records::new(self.f, check.site, lanes.count);
        let shape = race::shape(check, lanes.place, lanes.count, records.first_lane);
        let shape = shape.ok_or(race::TOO_MANY)?;
        let (addresses, row) = types(self.f, check, args);
        let block = self.message_block()?;
        self.store_value(lanes.addr, addresses, block)?;
        for (k, &v) in Self::data_args(check.space, args).iter().enumerate() {
            let at = padded(addresses) + padded(row) * k as u32;
            let at = self.offset_const(block, i64::from(at))?;
            let v = self.get(v)?;
            self.store_value(v, row, at)?;
        }
        let enabled = self.enabled_lanes(&lanes)?;
        for &part in &records.parts {
            let ours = self.lanes_of_part(enabled, part)?;
            let args = [
                self.group().into(),
                self.thread_index()?.into(),
                self.i32(part.site).into(),
                self.i32(shape).into(),
                lanes.surface,
                ours,
                block.into(),
            ];
            let stop = self.call_helper(offset_of!(Helpers, race), Some(32), &args)?;
            self.stop_on_fault(stop.ok_or("no answer to a check")?)?;
        }
        Ok(())
    }
}
