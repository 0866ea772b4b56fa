//! Checks of races: one call of the runtime for each access, which compares it with earlier ones and enters it.

use std::mem::offset_of;

use cranelift_codegen::ir::{InstBuilder, Value as V, types};
use visa_runtime::abi::Helpers;

use super::emit::{DATA, Emit};
use super::value::piece_count;
use crate::backend::race;
use crate::backend::records::Records;
use crate::ssa::{RaceCheck, Ty, Value};

impl Emit<'_> {
    /// A check.
    pub fn check_race(&mut self, check: RaceCheck, args: &[Value]) {
        let lanes = self.lanes(check.space, args);
        let records = Records::new(self.f, check.site, lanes.count);
        let shape = race::shape(check, lanes.place, lanes.count, records.first_lane);
        let Some(shape) = shape else {
            return self.bug(race::TOO_MANY);
        };
        let data: Vec<Vec<V>> = Self::data_args(check.space, args)
            .iter()
            .map(|&v| self.parts(v))
            .collect();
        let start = 16 * piece_count(Ty::vector(lanes.addr_lane(), lanes.count)) as u32;
        let row = 16 * data.first().map_or(0, |parts| parts.len() as u32);
        let block = self.message_block(start + row * data.len() as u32);
        let to = self.slot_addr(block, 0);
        for (i, &v) in lanes.addr.iter().enumerate() {
            self.ins().store(DATA, v, to, 16 * i as i32);
        }
        for (k, parts) in data.iter().enumerate() {
            self.spill(block, start + row * k as u32, parts);
        }
        let enabled = self.enabled_lanes(&lanes);
        for &part in &records.parts {
            let ours = self.lanes_of_part(enabled, part);
            let args = [
                self.group(),
                self.thread_index(),
                self.iconst(types::I32, u64::from(part.site)),
                self.iconst(types::I32, u64::from(shape)),
                lanes.surface,
                ours,
                self.slot_addr(block, 0),
            ];
            let stop = self.call_helper(offset_of!(Helpers, race), Some(types::I32), &args);
            self.stop_on_fault(stop);
        }
    }
}
