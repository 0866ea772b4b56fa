//! Conversions between lane types.
//!
//! Vector conversions go step by step through neighbouring widths. The number of lanes stays, so the number of pieces changes
//! with the width. Surplus pieces made from padding are dropped.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Value as V, types};

use super::emit::CraneliftEmitter;
use super::mask::MaskRepr;
use super::value::{int_lane, low_bits, piece_count, piece_type, scalar_type};
use crate::ssa::{Conv, Lane, Ty, Value};

impl CraneliftEmitter<'_> {
    /// A conversion instruction.
    pub(super) fn convert(&mut self, conv: Conv, out: Value, a: Value) {
        let (from, to) = (self.ty(a), self.ty(out));
        if to.lane == Lane::I1 {
            return self.to_condition(out, a);
        }
        if from.lane == Lane::I1 {
            return self.from_condition(conv, out, a);
        }
        let parts = self.parts(a);
        let half = matches!(conv, Conv::F16ToF | Conv::FToF16);
        let result = match (from.is_scalar(), half) {
            (false, _) => self.convert_pieces(conv, from, to, parts),
            (true, false) => vec![self.convert_scalar(conv, from.lane, to.lane, parts[0])],
            (true, true) => {
                let pieces = self.from_lanes(from.lane, &parts);
                let pieces = self.convert_pieces(conv, from, to, pieces);
                vec![self.lane_of(to.lane, &pieces, 0)]
            }
        };
        self.bind(out, result);
    }

    /// Bit 0 of an integer.
    fn to_condition(&mut self, out: Value, a: Value) {
        let from = self.ty(a);
        if from.lane == Lane::I1 {
            let mask = self.mask(a);
            return self.bind_mask(out, mask);
        }
        let parts = self.parts(a);
        if from.is_scalar() {
            let low = self.resize(parts[0], types::I8);
            let bit = self.ins().band_imm_u(low, 1);
            return self.bind(out, vec![bit]);
        }
        let one = self.vsplat(from.lane, 1);
        let lanes = self.lanewise(&[parts], |e, v| {
            let bit = e.ins().band(v[0], one);
            e.ins().icmp(IntCC::Equal, bit, one)
        });
        self.bind_mask(out, MaskRepr::Vec(from.lane.bytes(), lanes));
    }

    /// 0 and 1, or 0 and all ones.
    fn from_condition(&mut self, conv: Conv, out: Value, a: Value) {
        let to = self.ty(out);
        let signed = conv == Conv::SExt;
        if to.is_scalar() {
            let bit = self.scalar(a);
            let wide = self.resize(bit, scalar_type(to.lane));
            let v = if signed { self.ins().ineg(wide) } else { wide };
            return self.bind(out, vec![v]);
        }
        let lanes = self.mask_vec(a, to.lane.bytes());
        let result = if signed {
            lanes
        } else {
            let one = self.vsplat(to.lane, 1);
            self.lanewise(&[lanes], |e, v| e.ins().band(v[0], one))
        };
        self.bind(out, result);
    }

    fn convert_scalar(&mut self, conv: Conv, from: Lane, to: Lane, v: V) -> V {
        let ty = scalar_type(to);
        match conv {
            Conv::SExt if from.bits() < to.bits() => self.ins().sextend(ty, v),
            Conv::ZExt if from.bits() < to.bits() => self.ins().uextend(ty, v),
            Conv::Trunc if from.bits() > to.bits() => self.ins().ireduce(ty, v),
            Conv::SIToF => {
                let wide = if from.bits() < 32 {
                    self.ins().sextend(types::I32, v)
                } else {
                    v
                };
                self.ins().fcvt_from_sint(ty, wide)
            }
            Conv::UIToF => {
                let wide = if from.bits() < 32 {
                    self.ins().uextend(types::I32, v)
                } else {
                    v
                };
                self.ins().fcvt_from_uint(ty, wide)
            }
            Conv::FToSI | Conv::FToUI => self.float_to_int(conv == Conv::FToSI, to, v),
            Conv::FPromote if from != to => self.ins().fpromote(ty, v),
            Conv::FDemote if from != to => self.ins().fdemote(ty, v),
            _ => v,
        }
    }

    /// Saturating; widths below 32 saturate again as 32-bit integers.
    fn float_to_int(&mut self, signed: bool, to: Lane, v: V) -> V {
        let wide = if to.bits() < 32 {
            types::I32
        } else {
            scalar_type(to)
        };
        if to.bits() >= 32 {
            return if signed {
                self.ins().fcvt_to_sint_sat(wide, v)
            } else {
                self.ins().fcvt_to_uint_sat(wide, v)
            };
        }
        let word = self.ins().fcvt_to_sint_sat(wide, v);
        let (min, max) = if signed {
            let max = (low_bits(to) >> 1).cast_signed();
            (-max - 1, max)
        } else {
            (0, low_bits(to).cast_signed())
        };
        let low = self.ins().iconst(wide, min & 0xFFFF_FFFF);
        let high = self.ins().iconst(wide, max);
        let below = self.ins().icmp(IntCC::SignedLessThan, word, low);
        let word = self.ins().select(below, low, word);
        let above = self.ins().icmp(IntCC::SignedGreaterThan, word, high);
        let word = self.ins().select(above, high, word);
        self.ins().ireduce(scalar_type(to), word)
    }

    fn convert_pieces(&mut self, conv: Conv, from: Ty, to: Ty, parts: Vec<V>) -> Vec<V> {
        match conv {
            Conv::SExt => self.extend_pieces(from, to, parts, true),
            Conv::ZExt => self.extend_pieces(from, to, parts, false),
            Conv::Trunc => self.truncate_pieces(from, to, parts),
            Conv::SIToF => self.ints_to_floats(from, to, parts, true),
            Conv::UIToF => self.ints_to_floats(from, to, parts, false),
            Conv::FToSI => self.floats_to_ints(from, to, parts, true),
            Conv::FToUI => self.floats_to_ints(from, to, parts, false),
            Conv::FPromote => self.promote_pieces(from, to, parts),
            Conv::FDemote => self.demote_pieces(from, to, parts, false),
            Conv::F16ToF => {
                let floats = from.with_lane(Lane::F32);
                let words = self.extend_pieces(from, from.with_lane(Lane::I32), parts, false);
                let result = self.lanewise(&[words], |e, v| e.half_to_float(v[0]));
                self.promote_pieces(floats, to, result)
            }
            Conv::FToF16 => {
                let floats = from.with_lane(Lane::F32);
                let singles = self.demote_pieces(from, floats, parts, true);
                let words = self.lanewise(&[singles], |e, v| e.float_to_half(v[0]));
                self.truncate_pieces(from.with_lane(Lane::I32), to, words)
            }
        }
    }

    /// Sign- or zero-extends integer pieces.
    fn extend_pieces(&mut self, from: Ty, to: Ty, parts: Vec<V>, signed: bool) -> Vec<V> {
        if from.lane.bytes() >= to.lane.bytes() {
            return parts;
        }
        let next = from.with_lane(int_lane(from.lane.bytes() * 2));
        let wide = (0..piece_count(next))
            .map(|p| {
                let v = parts[p / 2];
                match (p % 2 == 0, signed) {
                    (true, true) => self.ins().swiden_low(v),
                    (true, false) => self.ins().uwiden_low(v),
                    (false, true) => self.ins().swiden_high(v),
                    (false, false) => self.ins().uwiden_high(v),
                }
            })
            .collect();
        self.extend_pieces(next, to, wide, signed)
    }

    /// Keeps the low bits of integer lanes.
    fn truncate_pieces(&mut self, from: Ty, to: Ty, parts: Vec<V>) -> Vec<V> {
        if from.lane.bytes() <= to.lane.bytes() {
            return parts;
        }
        let next = from.with_lane(int_lane(from.lane.bytes() / 2));
        let half = parts
            .chunks(2)
            .map(|pair| self.truncate_pair(from.lane, pair[0], pair[pair.len() - 1]))
            .collect();
        self.truncate_pieces(next, to, half)
    }

    fn promote_pieces(&mut self, from: Ty, to: Ty, parts: Vec<V>) -> Vec<V> {
        if from.lane == to.lane {
            return parts;
        }
        let mut out = Vec::new();
        for v in parts {
            let (low, high) = self.promote_piece(v);
            out.extend([low, high]);
        }
        out.truncate(piece_count(to));
        out
    }

    fn demote_pieces(&mut self, from: Ty, to: Ty, parts: Vec<V>, to_odd: bool) -> Vec<V> {
        if from.lane == to.lane {
            return parts;
        }
        parts
            .chunks(2)
            .map(|pair| {
                let (low, high) = (pair[0], pair[pair.len() - 1]);
                if to_odd {
                    self.doubles_to_odd_floats(low, high)
                } else {
                    self.demote_pair(low, high)
                }
            })
            .collect()
    }

    fn ints_to_floats(&mut self, from: Ty, to: Ty, parts: Vec<V>, signed: bool) -> Vec<V> {
        if from.lane == Lane::I64 {
            if to.lane == Lane::F32 {
                return self.per_lane(from, &[parts], Lane::F32, |e, v| {
                    if signed {
                        e.ins().fcvt_from_sint(types::F32, v[0])
                    } else {
                        e.ins().fcvt_from_uint(types::F32, v[0])
                    }
                });
            }
            return self.lanewise(&[parts], |e, v| {
                if signed {
                    e.ins().fcvt_from_sint(types::F64X2, v[0])
                } else {
                    e.ins().fcvt_from_uint(types::F64X2, v[0])
                }
            });
        }
        let signed_words = signed || from.lane != Lane::I32;
        let words = self.extend_pieces(from, from.with_lane(Lane::I32), parts, signed);
        if to.lane == Lane::F32 {
            return self.lanewise(&[words], |e, v| {
                if signed_words {
                    e.ins().fcvt_from_sint(types::F32X4, v[0])
                } else {
                    e.ins().fcvt_from_uint(types::F32X4, v[0])
                }
            });
        }
        let mut out = Vec::new();
        for v in words {
            let (low, high) = self.words_to_doubles(v, signed_words);
            out.extend([low, high]);
        }
        out.truncate(piece_count(to));
        out
    }

    fn floats_to_ints(&mut self, from: Ty, to: Ty, parts: Vec<V>, signed: bool) -> Vec<V> {
        if to.lane == Lane::I64 {
            return self.per_lane(from, &[parts], Lane::I64, |e, v| {
                e.float_to_int(signed, Lane::I64, v[0])
            });
        }
        // Narrow targets saturate from signed words, whatever their own sign.
        let signed_words = signed || to.lane != Lane::I32;
        let words = if from.lane == Lane::F32 {
            self.lanewise(&[parts], |e, v| {
                if signed_words {
                    e.ins().fcvt_to_sint_sat(types::I32X4, v[0])
                } else {
                    e.ins().fcvt_to_uint_sat(types::I32X4, v[0])
                }
            })
        } else {
            parts
                .chunks(2)
                .map(|pair| self.doubles_to_words(pair, signed_words))
                .collect()
        };
        self.saturate_words(to.lane, words, signed)
    }

    fn doubles_to_words(&mut self, pair: &[V], signed: bool) -> V {
        let zero = self.vconst(types::I64X2, 0);
        let mut one = |v: V| {
            if signed {
                let wide = self.ins().fcvt_to_sint_sat(types::I64X2, v);
                self.ins().snarrow(wide, zero)
            } else {
                let wide = self.ins().fcvt_to_uint_sat(types::I64X2, v);
                self.ins().uunarrow(wide, zero)
            }
        };
        let low = one(pair[0]);
        let high = if pair.len() > 1 { one(pair[1]) } else { low };
        self.shuffle_lanes(Lane::I32, low, high, &[0, 1, 4, 5])
    }

    /// Signed words to narrower lanes with saturation.
    fn saturate_words(&mut self, to: Lane, words: Vec<V>, signed: bool) -> Vec<V> {
        if to == Lane::I32 {
            return words;
        }
        let last = |pair: &[V]| pair[pair.len() - 1];
        let halves: Vec<V> = words
            .chunks(2)
            .map(|pair| {
                if signed || to == Lane::I8 {
                    self.ins().snarrow(pair[0], last(pair))
                } else {
                    self.ins().unarrow(pair[0], last(pair))
                }
            })
            .collect();
        if to == Lane::I16 {
            return halves;
        }
        debug_assert_eq!(piece_type(to), types::I8X16);
        halves
            .chunks(2)
            .map(|pair| {
                if signed {
                    self.ins().snarrow(pair[0], last(pair))
                } else {
                    self.ins().unarrow(pair[0], last(pair))
                }
            })
            .collect()
    }
}
