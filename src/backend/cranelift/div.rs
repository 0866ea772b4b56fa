//! Integer division without traps.
//!
//! Lanes of 32 bits and narrower are divided in double precision. Operands below 2^32 are exact there, and the correctly rounded
//! quotient, truncated, is the integer quotient. 64-bit lanes and scalars use the divide instruction, with divisors that cannot
//! trap.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::CraneliftEmitter;
use super::value::{low_bits, per_piece, scalar_type};
use crate::ssa::{BinOp, Lane, Value};

/// Bits of 2^52 + 2^51: added to an integral double, leaves its low 32 bits in the low word.
const ROUNDING_OFFSET: u64 = 0x4338_0000_0000_0000;

impl CraneliftEmitter<'_> {
    /// A division or remainder.
    pub(super) fn divide(&mut self, op: BinOp, out: Value, a: Value, b: Value) {
        let ty = self.ty(out);
        let operands = [self.parts(a), self.parts(b)];
        let result = if ty.is_scalar() {
            vec![self.divide_scalar(op, ty.lane, operands[0][0], operands[1][0])]
        } else if ty.lane == Lane::I64 {
            self.per_lane(ty, &operands, ty.lane, |e, v| {
                e.divide_scalar(op, Lane::I64, v[0], v[1])
            })
        } else {
            self.lanewise(&operands, |e, v| e.divide_piece(op, ty.lane, v[0], v[1]))
        };
        self.bind(out, result);
    }

    /// Scalars of any width; narrow ones are computed in 64 bits, where nothing overflows.
    fn divide_scalar(&mut self, op: BinOp, lane: Lane, a: V, b: V) -> V {
        let signed = matches!(op, BinOp::SDiv | BinOp::SRem);
        let (x, y) = if lane == Lane::I64 {
            (a, b)
        } else if signed {
            (
                self.ins().sextend(types::I64, a),
                self.ins().sextend(types::I64, b),
            )
        } else {
            (
                self.ins().uextend(types::I64, a),
                self.ins().uextend(types::I64, b),
            )
        };
        let by_zero = self.ins().icmp_imm_u(IntCC::Equal, y, 0);
        let one = self.iconst(types::I64, 1);
        let safe = self.ins().select(by_zero, one, y);
        let wide = match op {
            BinOp::UDiv => self.ins().udiv(x, safe),
            BinOp::URem => self.ins().urem(x, safe),
            _ => self.signed_by(op, lane, x, safe),
        };
        let result = self.resize(wide, scalar_type(lane));
        let special = self.by_zero_result(op, lane, false, a);
        self.ins().select(by_zero, special, result)
    }

    /// Signed division by a divisor that is not zero.
    fn signed_by(&mut self, op: BinOp, lane: Lane, x: V, y: V) -> V {
        if lane != Lane::I64 {
            return if op == BinOp::SDiv {
                self.ins().sdiv(x, y)
            } else {
                self.ins().srem(x, y)
            };
        }
        let minus = self.ins().icmp_imm_s(IntCC::Equal, y, -1);
        let one = self.iconst(types::I64, 1);
        let safe = self.ins().select(minus, one, y);
        if op == BinOp::SDiv {
            let quotient = self.ins().sdiv(x, safe);
            let negated = self.ins().ineg(x);
            self.ins().select(minus, negated, quotient)
        } else {
            let zero = self.iconst(types::I64, 0);
            let rest = self.ins().srem(x, safe);
            self.ins().select(minus, zero, rest)
        }
    }

    /// What the operation gives for a zero divisor.
    fn by_zero_result(&mut self, op: BinOp, lane: Lane, vector: bool, a: V) -> V {
        match op {
            BinOp::UDiv => self.konst(lane, vector, low_bits(lane)),
            BinOp::SDiv => {
                let zero = self.konst(lane, vector, 0);
                let max = self.konst(lane, vector, low_bits(lane) >> 1);
                let negative = self.ins().icmp(IntCC::SignedLessThan, a, zero);
                let negative = if vector {
                    negative
                } else {
                    let wide = self.resize(negative, scalar_type(lane));
                    self.ins().ineg(wide)
                };
                self.ins().bxor(negative, max)
            }
            _ => a,
        }
    }

    fn divide_piece(&mut self, op: BinOp, lane: Lane, a: V, b: V) -> V {
        let signed = matches!(op, BinOp::SDiv | BinOp::SRem);
        let words_a = self.to_words(lane, a, signed);
        let words_b = self.to_words(lane, b, signed);
        let quotients: Vec<V> = words_a
            .iter()
            .zip(&words_b)
            .map(|(&x, &y)| self.word_quotients(signed, x, y))
            .collect();
        let quotient = self.from_words(lane, &quotients);
        if matches!(op, BinOp::SRem | BinOp::URem) {
            // With a zero divisor the product is zero, so that the dividend remains.
            let product = self.multiply(lane, true, quotient, b);
            return self.ins().isub(a, product);
        }
        let zero = self.vconst(super::value::piece_type(lane), 0);
        let by_zero = self.ins().icmp(IntCC::Equal, b, zero);
        let special = self.by_zero_result(op, lane, true, a);
        self.blend(by_zero, special, quotient)
    }

    fn word_quotients(&mut self, signed: bool, a: V, b: V) -> V {
        let (al, ah) = self.words_to_doubles(a, signed);
        let (bl, bh) = self.words_to_doubles(b, signed);
        let offset = self.vsplat(Lane::F64, ROUNDING_OFFSET);
        let half = |e: &mut Self, x: V, y: V| {
            let ratio = e.ins().fdiv(x, y);
            let whole = e.ins().trunc(ratio);
            let moved = e.ins().fadd(whole, offset);
            e.cast(moved, types::I32X4)
        };
        let low = half(self, al, bl);
        let high = half(self, ah, bh);
        self.shuffle_lanes(Lane::I32, low, high, &[0, 2, 4, 6])
    }

    /// Four 32-bit integers as doubles.
    pub(super) fn words_to_doubles(&mut self, words: V, signed: bool) -> (V, V) {
        debug_assert_eq!(per_piece(Lane::I32), 4);
        let upper = self.shuffle_lanes(Lane::I32, words, words, &[2, 3, 2, 3]);
        let one = |e: &mut Self, w: V| {
            if signed {
                let wide = e.ins().swiden_low(w);
                e.ins().fcvt_from_sint(types::F64X2, wide)
            } else {
                let wide = e.ins().uwiden_low(w);
                e.ins().fcvt_from_uint(types::F64X2, wide)
            }
        };
        (one(self, words), one(self, upper))
    }
}
