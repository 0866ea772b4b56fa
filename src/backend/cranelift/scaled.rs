//! Addresses in device memory that are a scalar, a scaled 32-bit number in each lane, and a constant: `base + distance + (index << shift)`.
//!
//! The numbers that lie inside are a range, which scalar code finds once for all lanes. The lanes are then compared as 32-bit
//! numbers, four at a time. They are widened only where that is needed.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::CraneliftEmitter;
use super::lanes::{Offsets, Start};
use super::memory::{Lanes, Place, Region};
use crate::backend::access::{POINTER_SHIFT, Scaled};
use crate::ssa::Lane;

/// Bits of an address that do not count.
const TAG_BITS: i64 = 16;

/// How lanes are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    Exactly,
    /// With fewer instructions, for which some lanes that are inside are not.
    Roughly,
}

impl CraneliftEmitter<'_> {
    /// The addresses of an access as a scalar and scaled numbers.
    pub(super) fn scaled(&self, lanes: &Lanes) -> Option<Scaled> {
        Scaled::of(self.f, lanes.addresses?, POINTER_SHIFT, &|v| {
            self.is_at_hand(v)
        })
    }

    /// Offsets of such lanes from the first place that an index can be inside at, and masks of those that are not inside.
    ///
    /// An element is inside if `0 <= from + (index << shift) < limit`, `from` being the signed distance of the base from the
    /// start of memory in the 48 bits of an address that count, and the constant. Memory has at most 2^45 bytes; indices reach 2^35 bytes
    /// far and constants 2^31, so nothing comes round from the other end.
    pub(super) fn compare_scaled(
        &mut self,
        region: Region,
        bytes: u32,
        scaled: &Scaled,
        how: Compare,
    ) -> (Offsets, Vec<V>) {
        let first = self.base(Region::Known(Place::Flat));
        let limit = self.flat_limit(bytes);
        let base = self.scalar(scaled.base);
        let from = self.ins().isub(base, first);
        let from = self.ins().ishl_imm_u(from, TAG_BITS);
        let from = self.ins().sshr_imm_u(from, TAG_BITS);
        let from = match scaled.distance {
            0 => from,
            by => self.ins().iadd_imm_s(from, by),
        };
        let shift = i64::from(scaled.shift);
        let (least, past) = match (how, scaled.signed) {
            (Compare::Exactly, true) => (i64::from(i32::MIN), 1 << 31),
            (Compare::Exactly, false) => (0, 1 << 32),
            (Compare::Roughly, true) => (0, 1 << 31),
            (Compare::Roughly, false) => (0, (1 << 32) - 1),
        };
        let [least, past] = [least, past].map(|v| self.iconst(types::I64, v.cast_unsigned()));
        // The first index at which an offset from the base is at least `to`.
        let reaches = |e: &mut Self, to: V| {
            let up = e.ins().iadd_imm_s(to, (1 << shift) - 1);
            let index = e.ins().sshr_imm_u(up, shift);
            let index = e.ins().smax(index, least);
            e.ins().smin(index, past)
        };
        let (to, end) = (self.ins().ineg(from), self.ins().isub(limit, from));
        let (low, high) = (reaches(self, to), reaches(self, end));
        let pieces = self.parts(scaled.index);
        let (low, count) = match how {
            Compare::Exactly => (low, self.ins().isub(high, low)),
            Compare::Roughly => {
                // What starts in front of memory is not inside.
                let zero = self.iconst(types::I64, 0);
                let starts = self.ins().icmp(IntCC::Equal, low, zero);
                (zero, self.ins().select(starts, high, zero))
            }
        };
        let (pieces, outside) = match how {
            Compare::Exactly => self.outside_of_range(&pieces, low, count),
            Compare::Roughly => {
                let count = self.ins().ireduce(types::I32, count);
                let count = self.ins().splat(types::I32X4, count);
                let outside = pieces.iter().map(|&v| self.at_least(v, count)).collect();
                (pieces, outside)
            }
        };
        let skipped = self.ins().ishl_imm_u(low, shift);
        let start = self.ins().iadd(from, skipped);
        let region = self.base(region);
        let start = self.ins().iadd(region, start);
        let start = self.sink_unless(count, start);
        let offsets = Offsets {
            pieces,
            start: Start::Pointer(start, scaled.shift),
            lane: Lane::I32,
        };
        (offsets, outside)
    }

    /// A pointer at which something is inside, or where nothing is the sink: one that can be read at any rate.
    fn sink_unless(&mut self, count: V, pointer: V) -> V {
        let sink = self.sink();
        self.ins().select(count, pointer, sink)
    }

    /// Numbers less `low`, and which of these are not below a count, of which there can be 2^32.
    fn outside_of_range(&mut self, numbers: &[V], low: V, count: V) -> (Vec<V>, Vec<V>) {
        let narrow = |e: &mut Self, v: V| {
            let v = e.ins().ireduce(types::I32, v);
            e.ins().splat(types::I32X4, v)
        };
        // For a count that 32 bits do not hold, none is compared but 0.
        let most = self.iconst(types::I64, u64::from(u32::MAX));
        let every = self.ins().icmp(IntCC::UnsignedGreaterThan, count, most);
        let count = self.ins().umin(count, most);
        let every = self.ins().uextend(types::I64, every);
        let keep = self.ins().iadd_imm_s(every, -1);
        let [low, count, keep] = [low, count, keep].map(|v| narrow(self, v));
        let numbers = numbers.iter().map(|&v| self.ins().isub(v, low));
        let numbers: Vec<V> = numbers.collect();
        let outside = numbers.iter().map(|&v| {
            let compared = self.ins().band(v, keep);
            self.at_least(compared, count)
        });
        let outside = outside.collect();
        (numbers, outside)
    }

    /// Which lanes are at least as large as others, unsigned.
    fn at_least(&mut self, lanes: V, others: V) -> V {
        let most = self.ins().umax(lanes, others);
        self.ins().icmp(IntCC::Equal, most, lanes)
    }
}
