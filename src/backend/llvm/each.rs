//! Stores of lanes at any addresses, in a loop over those that are enabled and inside.
//!
//! The loop is short. Where no scatter takes the elements it is about as fast as anything else, because the processor writes one
//! lane at a time. The code first stores addresses and data in the slot for messages, where the loop reads them by lane number.

use inkwell::IntPredicate;
use inkwell::values::{InstructionOpcode as I, IntValue};

use super::access::padded;
use super::emit::{EmitResult, LlvmEmitter, V};
use super::gather::LaneAddresses;
use super::memory::Lanes;
use crate::ssa::{Lane, Ty};

impl<'c> LlvmEmitter<'c, '_> {
    /// Writes lanes of a mask, in order.
    pub(super) fn store_each(
        &mut self,
        elem: Lane,
        lanes: &Lanes<'c>,
        (at, mask): (LaneAddresses<'c>, V<'c>),
        data: V<'c>,
    ) -> EmitResult<()> {
        let (base, index, wide, unit) = match at {
            LaneAddresses::Offsets(offsets) => {
                (self.base(lanes.region)?, offsets, lanes.addr_lane(), None)
            }
            LaneAddresses::Units(start, index, unit) => (start, index, Lane::I32, Some(unit)),
            LaneAddresses::Addresses(_) | LaneAddresses::Words(_) => {
                return Err("a store at no offsets".into());
            }
        };
        let (places, row) = (Ty::vector(wide, lanes.count), Ty::vector(elem, lanes.count));
        let block = self.message_block()?;
        let values = self.offset_const(block, i64::from(padded(places)))?;
        let bits = self.mask_bits(mask, lanes.count)?;
        let fill = |e: &mut Self| {
            e.store_value(index, places, block)?;
            e.store_value(data, row, values)
        };
        self.each_lane(bits, fill, |e, lane| {
            let place = e.load_element(wide, block, lane)?;
            let place = match unit {
                None => e.resize(place, 64)?,
                Some(unit) => {
                    let place = e.cast(I::SExt, place, e.int(64).into())?;
                    e.op2(I::Mul, place, e.i64(unit.into()))?
                }
            };
            let to = e.offset(base, e.as_int(place)?)?;
            let v = e.load_element(elem, values, lane)?;
            e.store(v, to)
        })
    }

    /// Does something for each lane of a mask of bits, in order, with the lane's number in 64 bits. If there is a lane, `first` comes before.
    pub(super) fn each_lane(
        &mut self,
        bits: V<'c>,
        first: impl FnOnce(&mut Self) -> EmitResult<()>,
        body: impl FnOnce(&mut Self, IntValue<'c>) -> EmitResult<()>,
    ) -> EmitResult<()> {
        let none = self.i32(0);
        let any = self.icmp(IntPredicate::NE, bits, none)?;
        let (some, each, done) = (self.new_block(), self.new_block(), self.new_block());
        self.branch(any, some, done)?;
        self.at(some);
        first(self)?;
        let before = self.here()?;
        self.jump(each)?;
        self.at(each);
        let left = self.b.build_phi(self.int(32), "\0")?;
        let now = left.as_basic_value();
        // No bit is never asked for.
        let poison = self.cx.bool_type().const_all_ones().into();
        let lane = self.intrinsic("llvm.cttz", &[Ty::I32], &[now, poison])?;
        let lane = self.as_int(self.resize(lane, 64)?)?;
        body(self, lane)?;
        let less = self.add_const(self.as_int(now)?, -1)?;
        let rest = self.op2(I::And, now, less)?;
        let more = self.icmp(IntPredicate::NE, rest, none)?;
        let after = self.here()?;
        left.add_incoming(&[(&bits, before), (&rest, after)]);
        self.branch(more, each, done)?;
        self.at(done);
        Ok(())
    }
}
