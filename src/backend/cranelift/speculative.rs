//! Speculative contiguity checks, for accesses whose enabled lanes probably lie side by side, though nothing proves it: masks
//! choose their addresses, or the addresses come on different ways.
//!
//! The first lane says where the others would be. If the enabled ones are there, the access is an affine one. The test costs
//! little beside a message for each lane.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::affine::Affine;
use super::emit::CraneliftEmitter;
use super::memory::Lanes;
use super::value::{piece_type, splat_step};
use crate::backend::access::Scaled;
use crate::ssa::Lane;

impl CraneliftEmitter<'_> {
    /// Lanes that are probably side by side, with the test of it as the condition.
    pub(super) fn speculate(
        &mut self,
        bytes: u32,
        lanes: &Lanes,
        scaled: Option<&Scaled>,
    ) -> Affine {
        let (base, guard) = match scaled {
            Some(scaled) => self.scaled_beside(lanes, scaled),
            None => {
                let first = self.lane_of(Lane::I32, &lanes.addr, 0);
                (first, self.are_beside(lanes, &lanes.addr, first, bytes))
            }
        };
        Affine {
            base,
            guard: Some(guard),
        }
    }

    /// Whether enabled lanes of 32 bits are a step apart from the first one on.
    fn are_beside(&mut self, lanes: &Lanes, numbers: &[V], first: V, step: u32) -> V {
        let (ty, lane) = (piece_type(Lane::I32), Lane::I32);
        let first = self.ins().splat(ty, first);
        let there = numbers.iter().enumerate().map(|(p, &at)| {
            let steps = self.vconst(ty, splat_step(lane, p, step.into()));
            let expected = self.ins().iadd(first, steps);
            self.ins().icmp(IntCC::Equal, at, expected)
        });
        let there: Vec<V> = there.collect();
        if self.is_const_full(lanes.mask) {
            return self.pieces_test(&there, true);
        }
        let enabled = self.mask_vec(lanes.mask, lane.bytes());
        let elsewhere = there.iter().zip(enabled);
        let elsewhere = elsewhere.map(|(&there, enabled)| self.ins().band_not(enabled, there));
        let elsewhere: Vec<V> = elsewhere.collect();
        let any = self.pieces_test(&elsewhere, false);
        self.ins().bxor_imm_u(any, 1)
    }

    /// The same of addresses in device memory, by the numbers that they are made of, and the first address. None of the
    /// numbers may wrap before it is extended.
    pub(super) fn scaled_beside(&mut self, lanes: &Lanes, scaled: &Scaled) -> (V, V) {
        let numbers = self.parts(scaled.index);
        let first = self.lane_of(Lane::I32, &numbers, 0);
        let beside = self.are_beside(lanes, &numbers, first, 1);
        let (most, compare) = match scaled.signed {
            true => (i32::MAX as u32, IntCC::SignedLessThanOrEqual),
            false => (u32::MAX, IntCC::UnsignedLessThanOrEqual),
        };
        let last = self.iconst(types::I32, (most - u32::from(lanes.count - 1)).into());
        let near = self.ins().icmp(compare, first, last);
        let wide = match scaled.signed {
            true => self.ins().sextend(types::I64, first),
            false => self.ins().uextend(types::I64, first),
        };
        let distance = self.ins().ishl_imm_u(wide, i64::from(scaled.shift));
        let base = self.scalar(scaled.base);
        let base = self.ins().iadd(base, distance);
        let base = match scaled.distance {
            0 => base,
            by => self.ins().iadd_imm_s(base, by),
        };
        (base, self.ins().band(beside, near))
    }
}
