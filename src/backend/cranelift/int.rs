//! Integer arithmetic and comparisons.

use cranelift_codegen::ir::condcodes::{CondCode, IntCC};
use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::CraneliftEmitter;
use super::mask::MaskRepr;
use super::value::{int_lane, piece_type, scalar_type};
use crate::ssa::{BinOp, ICond, Lane, Value};

/// Cranelift's name of a condition.
pub(super) const fn int_cc(cond: ICond) -> IntCC {
    match cond {
        ICond::Eq => IntCC::Equal,
        ICond::Ne => IntCC::NotEqual,
        ICond::Slt => IntCC::SignedLessThan,
        ICond::Sle => IntCC::SignedLessThanOrEqual,
        ICond::Sgt => IntCC::SignedGreaterThan,
        ICond::Sge => IntCC::SignedGreaterThanOrEqual,
        ICond::Ult => IntCC::UnsignedLessThan,
        ICond::Ule => IntCC::UnsignedLessThanOrEqual,
        ICond::Ugt => IntCC::UnsignedGreaterThan,
        ICond::Uge => IntCC::UnsignedGreaterThanOrEqual,
    }
}

impl CraneliftEmitter<'_> {
    /// Integer comparison.
    pub(super) fn icmp(&mut self, cond: ICond, out: Value, a: Value, b: Value) {
        let ty = self.ty(a);
        if ty.lane == Lane::I1 {
            return self.icmp_conditions(cond, out, a, b);
        }
        let cc = int_cc(cond);
        let operands = [self.parts(a), self.parts(b)];
        let vector = !ty.is_scalar();
        let parts = self.lanewise(&operands, |e, v| {
            if vector && e.has_only_opposite(cc, ty.lane) {
                let opposite = e.ins().icmp(cc.complement(), v[0], v[1]);
                e.ins().bnot(opposite)
            } else {
                e.ins().icmp(cc, v[0], v[1])
            }
        });
        if !vector {
            return self.bind(out, parts);
        }
        self.bind_mask(out, MaskRepr::Vec(ty.lane.bytes(), parts));
    }

    /// True where x86 compares pieces the other way round and complements the result. Written as a complement, choices and `and` take
    /// what is complemented as it is.
    fn has_only_opposite(&self, cc: IntCC, lane: Lane) -> bool {
        use IntCC::{
            NotEqual, SignedGreaterThanOrEqual, SignedLessThanOrEqual, UnsignedGreaterThan,
            UnsignedGreaterThanOrEqual, UnsignedLessThan, UnsignedLessThanOrEqual,
        };
        let opposite = match cc {
            NotEqual => true,
            // By a minimum or maximum that equals one of the operands, which 64-bit lanes have none of.
            UnsignedLessThan | UnsignedGreaterThan => lane != Lane::I64,
            SignedLessThanOrEqual | SignedGreaterThanOrEqual => lane == Lane::I64,
            UnsignedLessThanOrEqual | UnsignedGreaterThanOrEqual => lane == Lane::I64,
            _ => false,
        };
        self.target.x64 && opposite
    }

    /// Equality of conditions.
    fn icmp_conditions(&mut self, cond: ICond, out: Value, a: Value, b: Value) {
        let lanes = self.ty(a).lanes;
        let (ma, mb) = (self.mask(a), self.mask(b));
        let (x, y) = (self.repr_bits(&ma, lanes), self.repr_bits(&mb, lanes));
        let mut bits = self.ins().bxor(x, y);
        match cond {
            ICond::Ne => {}
            ICond::Eq => {
                let every = super::mask::full(lanes).cast_signed();
                bits = self.ins().bxor_imm_u(bits, every);
            }
            _ => self.bug(format!("{cond:?} of conditions")),
        }
        self.bind_mask(out, MaskRepr::Bits(bits));
    }

    /// Low half of a product.
    pub(super) fn multiply(&mut self, lane: Lane, vector: bool, a: V, b: V) -> V {
        if !vector || lane != Lane::I8 {
            return self.ins().imul(a, b);
        }
        let (al, ah) = self.widen_piece(a, false);
        let (bl, bh) = self.widen_piece(b, false);
        let low = self.ins().imul(al, bl);
        let high = self.ins().imul(ah, bh);
        self.truncate_pair(Lane::I16, low, high)
    }

    /// High half of a product.
    pub(super) fn multiply_high(
        &mut self,
        lane: Lane,
        vector: bool,
        signed: bool,
        a: V,
        b: V,
    ) -> V {
        if vector {
            return self.multiply_high_piece(lane, signed, a, b);
        }
        if lane == Lane::I64 {
            return if signed {
                self.ins().smulhi(a, b)
            } else {
                self.ins().umulhi(a, b)
            };
        }
        let wide = scalar_type(int_lane(lane.bytes() * 2));
        let (x, y) = if signed {
            (self.ins().sextend(wide, a), self.ins().sextend(wide, b))
        } else {
            (self.ins().uextend(wide, a), self.ins().uextend(wide, b))
        };
        let product = self.ins().imul(x, y);
        let high = self.ins().ushr_imm_u(product, i64::from(lane.bits()));
        self.ins().ireduce(scalar_type(lane), high)
    }

    fn multiply_high_piece(&mut self, lane: Lane, signed: bool, a: V, b: V) -> V {
        if lane == Lane::I64 {
            let scalars: Vec<V> = (0..2)
                .map(|i| {
                    let x = self.ins().extractlane(a, i);
                    let y = self.ins().extractlane(b, i);
                    self.multiply_high(lane, false, signed, x, y)
                })
                .collect();
            return self.from_lanes(lane, &scalars)[0];
        }
        let (al, ah) = self.widen_piece(a, signed);
        let (bl, bh) = self.widen_piece(b, signed);
        let low = self.ins().imul(al, bl);
        let high = self.ins().imul(ah, bh);
        match lane {
            Lane::I32 => {
                let (low, high) = (self.cast(low, types::I32X4), self.cast(high, types::I32X4));
                self.shuffle_lanes(Lane::I32, low, high, &[1, 3, 5, 7])
            }
            _ => {
                let count = self.iconst(types::I32, u64::from(lane.bits()));
                let low = self.ins().ushr(low, count);
                let high = self.ins().ushr(high, count);
                self.truncate_pair(int_lane(lane.bytes() * 2), low, high)
            }
        }
    }

    /// Saturating sum or difference.
    pub(super) fn saturated(&mut self, op: BinOp, lane: Lane, vector: bool, a: V, b: V) -> V {
        let add = op == BinOp::SAddSat;
        if vector && matches!(lane, Lane::I8 | Lane::I16) {
            return match add {
                true => self.ins().sadd_sat(a, b),
                false => self.ins().ssub_sat(a, b),
            };
        }
        let sum = match add {
            true => self.ins().iadd(a, b),
            false => self.ins().isub(a, b),
        };
        // A sum has another sign than both operands where it wrapped, a difference another than the first, as has the second.
        let differs = self.ins().bxor(a, sum);
        let other = match add {
            true => self.ins().bxor(b, sum),
            false => self.ins().bxor(a, b),
        };
        let signs = self.ins().band(differs, other);
        let sign = i64::from(lane.bits()) - 1;
        let wrapped = self.ins().sshr_imm_u(signs, sign);
        let below = self.ins().sshr_imm_u(a, sign);
        let most = self.konst(lane, vector, lane.mask() >> 1);
        let bound = self.ins().bxor(below, most);
        let change = self.ins().bxor(sum, bound);
        let change = self.ins().band(wrapped, change);
        self.ins().bxor(sum, change)
    }

    /// Saturating sum or difference of unsigned numbers.
    pub(super) fn saturated_unsigned(
        &mut self,
        op: BinOp,
        lane: Lane,
        vector: bool,
        a: V,
        b: V,
    ) -> V {
        let narrow = vector && matches!(lane, Lane::I8 | Lane::I16);
        if op == BinOp::UAddSat {
            if narrow {
                return self.ins().uadd_sat(a, b);
            }
            // No more than what is left up to the bound.
            let left = self.ins().bnot(b);
            let added = self.min_max(BinOp::UMin, lane, vector, a, left);
            return self.ins().iadd(added, b);
        }
        if narrow {
            return self.ins().usub_sat(a, b);
        }
        let larger = self.min_max(BinOp::UMax, lane, vector, a, b);
        self.ins().isub(larger, b)
    }

    /// Minimum or maximum.
    pub(super) fn min_max(&mut self, op: BinOp, lane: Lane, vector: bool, a: V, b: V) -> V {
        if vector && lane != Lane::I64 {
            return match op {
                BinOp::SMin => self.ins().smin(a, b),
                BinOp::SMax => self.ins().smax(a, b),
                BinOp::UMin => self.ins().umin(a, b),
                _ => self.ins().umax(a, b),
            };
        }
        let cc = match op {
            BinOp::SMin => IntCC::SignedLessThan,
            BinOp::SMax => IntCC::SignedGreaterThan,
            BinOp::UMin => IntCC::UnsignedLessThan,
            _ => IntCC::UnsignedGreaterThan,
        };
        let first = self.ins().icmp(cc, a, b);
        if vector {
            self.blend(first, a, b)
        } else {
            self.ins().select(first, a, b)
        }
    }

    /// Both halves of an integer piece at twice the width.
    pub(super) fn widen_piece(&mut self, v: V, signed: bool) -> (V, V) {
        if signed {
            (self.ins().swiden_low(v), self.ins().swiden_high(v))
        } else {
            (self.ins().uwiden_low(v), self.ins().uwiden_high(v))
        }
    }

    /// Low halves of the lanes of two integer pieces of `wide` lanes, as one piece.
    pub(super) fn truncate_pair(&mut self, wide: Lane, low: V, high: V) -> V {
        let half = int_lane(wide.bytes() / 2);
        if self.target.x64 && wide != Lane::I64 {
            let keep = self.vsplat(wide, (1 << half.bits()) - 1);
            let low = self.ins().band(low, keep);
            let high = if self.func.dfg.value_def(high) == self.func.dfg.value_def(low) {
                low
            } else {
                self.ins().band(high, keep)
            };
            return self.ins().unarrow(low, high);
        }
        let (low, high) = (
            self.cast(low, piece_type(half)),
            self.cast(high, piece_type(half)),
        );
        let even: Vec<u8> = (0..16 / half.bytes() as u8).map(|i| 2 * i).collect();
        self.shuffle_lanes(half, low, high, &even)
    }
}
