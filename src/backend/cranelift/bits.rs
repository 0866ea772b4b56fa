//! Bit counts and bit reversal.

use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::{CraneliftEmitter, splat_bits};
use super::value::piece_type;
use crate::ssa::{Lane, UnOp};

/// Bit-reversed nibbles, by nibble.
const REVERSED_NIBBLES: u128 = 0x0F07_0B03_0D05_0901_0E06_0A02_0C04_0800;

impl CraneliftEmitter<'_> {
    /// `Clz`, `Ctz`, `Popcnt` or `BitRev` of a scalar or piece.
    pub(super) fn bit_count(&mut self, op: UnOp, lane: Lane, vector: bool, v: V) -> V {
        if !vector {
            return match op {
                UnOp::Clz => self.ins().clz(v),
                UnOp::Ctz => self.ins().ctz(v),
                UnOp::Popcnt => self.ins().popcnt(v),
                _ => self.ins().bitrev(v),
            };
        }
        match op {
            UnOp::Clz => {
                let smeared = self.smear_down(lane, v);
                let above = self.ins().bnot(smeared);
                self.popcnt_piece(lane, above)
            }
            UnOp::Ctz => {
                let one = self.vsplat(lane, 1);
                let less = self.ins().isub(v, one);
                let below = self.ins().band_not(less, v);
                self.popcnt_piece(lane, below)
            }
            UnOp::Popcnt => self.popcnt_piece(lane, v),
            _ => self.bitrev_piece(lane, v),
        }
    }

    /// Sets all bits below the highest one.
    fn smear_down(&mut self, lane: Lane, v: V) -> V {
        let mut v = v;
        let mut by = 1;
        while by < lane.bits() {
            let down = self.shift_right_by(v, u64::from(by));
            v = self.ins().bor(v, down);
            by *= 2;
        }
        v
    }

    fn popcnt_piece(&mut self, lane: Lane, v: V) -> V {
        let bytes = self.cast(v, types::I8X16);
        let counts = self.ins().popcnt(bytes);
        let mut sums = self.cast(counts, piece_type(lane));
        let mut by = 8;
        while by < lane.bits() {
            let up = self.shift_right_by(sums, u64::from(by));
            sums = self.ins().iadd(sums, up);
            by *= 2;
        }
        if lane == Lane::I8 {
            return sums;
        }
        let low = self.vsplat(lane, 0xFF);
        self.ins().band(sums, low)
    }

    fn bitrev_piece(&mut self, lane: Lane, v: V) -> V {
        let width = lane.bytes() as u8;
        let order: [u8; 16] = std::array::from_fn(|i| {
            let i = i as u8;
            i / width * width + (width - 1 - i % width)
        });
        let swapped = self.shuffle_bytes(v, v, order);
        let bytes = self.cast(swapped, types::I8X16);
        let table = self.vconst(types::I8X16, REVERSED_NIBBLES);
        let nibble = self.vconst(types::I8X16, splat_bits(Lane::I8, 0x0F));
        let low = self.ins().band(bytes, nibble);
        let high = self.shift_right_by(bytes, 4);
        let low = self.ins().swizzle(table, low);
        let high = self.ins().swizzle(table, high);
        let low = self.shift_left_by(low, 4);
        let reversed = self.ins().bor(low, high);
        self.cast(reversed, piece_type(lane))
    }
}
