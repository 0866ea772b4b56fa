//! Shifts and rotates.
//!
//! Cranelift shifts all lanes of a piece by one scalar. Counts that differ between lanes become a multiplication by a power of
//! two. `x << c` is `x * 2^c`. `x >> c` is the product `x * 2^(31-c)` in 64 bits, shifted right by 31.

use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::CraneliftEmitter;
use super::value::{int_lane, scalar_type};
use crate::ssa::{BinOp, Lane, Value};

impl CraneliftEmitter<'_> {
    /// A shift or rotate instruction.
    pub(super) fn shift(&mut self, op: BinOp, out: Value, a: Value, b: Value) {
        let ty = self.ty(out);
        let parts = self.parts(a);
        let result = if ty.is_scalar() {
            let count = self.scalar(b);
            vec![self.shift_scalar(op, parts[0], count)]
        } else if let Some(count) = self.uniform_count(b) {
            self.lanewise(&[parts], |e, v| e.shift_uniform(op, ty.lane, v[0], count))
        } else {
            let counts = self.parts(b);
            self.lanewise(&[parts, counts], |e, v| {
                e.shift_piece(op, ty.lane, v[0], v[1])
            })
        };
        self.bind(out, result);
    }

    /// The one count of all lanes, and its number if it is a constant.
    fn uniform_count(&mut self, b: Value) -> Option<(V, Option<u64>)> {
        if let Some(bits) = self.uniform_const(b) {
            let count = bits & 63;
            return Some((self.iconst(types::I32, count), Some(count)));
        }
        self.splat_of(b).map(|s| (self.scalar(s), None))
    }

    fn shift_scalar(&mut self, op: BinOp, a: V, count: V) -> V {
        match op {
            BinOp::Shl => self.ins().ishl(a, count),
            BinOp::LShr => self.ins().ushr(a, count),
            BinOp::AShr => self.ins().sshr(a, count),
            BinOp::Rotl => self.ins().rotl(a, count),
            _ => self.ins().rotr(a, count),
        }
    }

    fn shift_uniform(
        &mut self,
        op: BinOp,
        lane: Lane,
        a: V,
        (count, known): (V, Option<u64>),
    ) -> V {
        let left = match op {
            BinOp::Rotl => true,
            BinOp::Rotr => false,
            _ => return self.shift_scalar(op, a, count),
        };
        debug_assert!(lane.bits() >= 8, "rotates are of integers");
        let back = match known {
            Some(count) => {
                let back = u64::from(lane.bits()).wrapping_sub(count) & u64::from(lane.bits() - 1);
                self.iconst(types::I32, back)
            }
            None => self.ins().ineg(count),
        };
        let (up, down) = if left { (count, back) } else { (back, count) };
        let high = self.ins().ishl(a, up);
        let low = self.ins().ushr(a, down);
        self.ins().bor(high, low)
    }

    fn shift_piece(&mut self, op: BinOp, lane: Lane, a: V, counts: V) -> V {
        match lane {
            Lane::I64 => {
                let scalars: Vec<V> = (0..2)
                    .map(|i| {
                        let x = self.ins().extractlane(a, i);
                        let c = self.ins().extractlane(counts, i);
                        self.shift_scalar(op, x, c)
                    })
                    .collect();
                self.from_lanes(lane, &scalars)[0]
            }
            Lane::I32 => self.shift_words(op, a, counts),
            _ => self.shift_narrow(op, lane, a, counts),
        }
    }

    /// 8- and 16-bit lanes, computed in 32 bits.
    fn shift_narrow(&mut self, op: BinOp, lane: Lane, a: V, counts: V) -> V {
        let low = self.vsplat(lane, u64::from(lane.bits() - 1));
        let mut counts = counts;
        if op == BinOp::Rotl {
            counts = self.ins().ineg(counts);
        }
        let counts = self.ins().band(counts, low);
        let values = self.to_words(lane, a, op == BinOp::AShr);
        let counts = self.to_words(lane, counts, false);
        let results: Vec<V> = values
            .iter()
            .zip(counts)
            .map(|(&v, c)| match op {
                BinOp::Shl | BinOp::LShr | BinOp::AShr => self.shift_words(op, v, c),
                _ => {
                    let twice = self.repeat_lane(lane, v);
                    self.shift_words(BinOp::LShr, twice, c)
                }
            })
            .collect();
        self.from_words(lane, &results)
    }

    /// The low `lane` bits of each word, twice in a row.
    fn repeat_lane(&mut self, lane: Lane, v: V) -> V {
        let count = self.iconst(types::I32, u64::from(lane.bits()));
        let up = self.ins().ishl(v, count);
        self.ins().bor(up, v)
    }

    fn shift_words(&mut self, op: BinOp, a: V, counts: V) -> V {
        match op {
            BinOp::Shl => {
                let power = self.power_of_two(counts, false);
                self.ins().imul(a, power)
            }
            BinOp::LShr => self.shift_words_right(a, counts),
            BinOp::AShr => {
                let by = self.iconst(types::I32, 31);
                let sign = self.ins().sshr(a, by);
                let flipped = self.ins().bxor(a, sign);
                let shifted = self.shift_words_right(flipped, counts);
                self.ins().bxor(shifted, sign)
            }
            BinOp::Rotl => self.rotate_words(a, counts),
            _ => {
                let back = self.ins().ineg(counts);
                self.rotate_words(a, back)
            }
        }
    }

    fn shift_words_right(&mut self, a: V, counts: V) -> V {
        let power = self.power_of_two(counts, true);
        let (low, high) = self.wide_products(a, power);
        let by = self.iconst(types::I32, 31);
        let low = self.ins().ushr(low, by);
        let high = self.ins().ushr(high, by);
        self.truncate_pair(Lane::I64, low, high)
    }

    fn rotate_words(&mut self, a: V, counts: V) -> V {
        let power = self.power_of_two(counts, false);
        let (low, high) = self.wide_products(a, power);
        let (low, high) = (self.cast(low, types::I32X4), self.cast(high, types::I32X4));
        let kept = self.shuffle_lanes(Lane::I32, low, high, &[0, 2, 4, 6]);
        let wrapped = self.shuffle_lanes(Lane::I32, low, high, &[1, 3, 5, 7]);
        self.ins().bor(kept, wrapped)
    }

    /// Unsigned 64-bit products of 32-bit lanes.
    fn wide_products(&mut self, a: V, b: V) -> (V, V) {
        let (al, ah) = self.widen_piece(a, false);
        let (bl, bh) = self.widen_piece(b, false);
        (self.ins().imul(al, bl), self.ins().imul(ah, bh))
    }

    /// `2^(c mod 32)`, or `2^(31 - c mod 32)`, by way of the exponent of a float.
    fn power_of_two(&mut self, counts: V, reversed: bool) -> V {
        let low = self.vsplat(Lane::I32, 31);
        let exponent = if reversed {
            self.ins().band_not(low, counts)
        } else {
            self.ins().band(counts, low)
        };
        let by = self.iconst(types::I32, 23);
        let placed = self.ins().ishl(exponent, by);
        let one = self.vsplat(Lane::I32, u64::from(1f32.to_bits()));
        let bits = self.ins().iadd(placed, one);
        let float = self.cast(bits, types::F32X4);
        if self.target.x64 {
            // 2^31 overflows to 0x8000_0000, which is the wanted unsigned value.
            self.ins().x86_cvtt2dq(types::I32X4, float)
        } else {
            self.ins().fcvt_to_uint_sat(types::I32X4, float)
        }
    }

    /// An 8- or 16-bit integer piece as 32-bit pieces.
    pub(super) fn to_words(&mut self, lane: Lane, v: V, signed: bool) -> Vec<V> {
        let mut pieces = vec![v];
        let mut bytes = lane.bytes();
        while bytes < 4 {
            pieces = pieces
                .into_iter()
                .flat_map(|p| {
                    let (low, high) = self.widen_piece(p, signed);
                    [low, high]
                })
                .collect();
            bytes *= 2;
        }
        pieces
    }

    /// Low bits of 32-bit pieces as one piece of `lane`.
    pub(super) fn from_words(&mut self, lane: Lane, words: &[V]) -> V {
        let mut pieces = words.to_vec();
        let mut bytes = 4;
        while bytes > lane.bytes() {
            pieces = pieces
                .chunks(2)
                .map(|pair| self.truncate_pair(int_lane(bytes), pair[0], pair[pair.len() - 1]))
                .collect();
            bytes /= 2;
        }
        pieces[0]
    }

    /// `v >> by` of a scalar or piece, keeping its type.
    pub(super) fn shift_right_by(&mut self, v: V, by: u64) -> V {
        let count = self.iconst(scalar_type(Lane::I32), by);
        self.ins().ushr(v, count)
    }

    /// `v << by` of a scalar or piece, keeping its type.
    pub(super) fn shift_left_by(&mut self, v: V, by: u64) -> V {
        let count = self.iconst(scalar_type(Lane::I32), by);
        self.ins().ishl(v, count)
    }
}
