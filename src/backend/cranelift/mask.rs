//! Lane masks: two forms, conversions between them, and the operations on them.
//!
//! *Bits* is one `i32`: bit `i` is lane `i`, and bits beyond the lanes are zero. *Vec(w)* is pieces of `w`-byte lanes, all ones
//! or all zeros; lanes beyond the mask's are unspecified.

use cranelift_codegen::ir::condcodes::IntCC;
use cranelift_codegen::ir::{InstBuilder, Opcode, Type, Value as V, types};

use super::emit::CraneliftEmitter;
use super::mask_plan::Form;
use super::value::{Val, int_lane, per_piece, piece_count, piece_type, scalar_type};
use crate::backend::access::consts;
pub(super) use crate::backend::access::consts::full;
use crate::ssa::{self, BinOp, Lane, Ty};

/// A mask in one of its forms.
#[derive(Clone, Debug)]
pub(super) enum MaskRepr {
    /// A constant.
    Const(u64),
    /// The same `i8`, 0 or 1, in every lane.
    Same(V),
    /// `i32` bits.
    Bits(V),
    /// Lane width in bytes and the pieces.
    Vec(u32, Vec<V>),
}

/// Pieces of a mask in vector form.
fn pieces_for(lanes: u16, width: u32) -> usize {
    piece_count(Ty::vector(int_lane(width), lanes))
}

impl CraneliftEmitter<'_> {
    /// The form a mask value is held in. A scalar `i1` counts as bits.
    pub(super) fn mask(&mut self, v: ssa::Value) -> MaskRepr {
        if let Some(bits) = self.mask_const(v) {
            return MaskRepr::Const(bits);
        }
        match &self.vals[v.0 as usize] {
            Val::Mask(m) => m.clone(),
            _ => {
                let bit = self.scalar(v);
                MaskRepr::Bits(self.resize(bit, types::I32))
            }
        }
    }

    /// True for masks that are constants of which every lane is enabled.
    pub(super) fn is_const_full(&self, v: ssa::Value) -> bool {
        consts::is_full(self.f, v)
    }

    /// Bits of a constant mask.
    pub(super) fn mask_const(&self, v: ssa::Value) -> Option<u64> {
        consts::mask(self.f, v)
    }

    /// Bits form of a mask value.
    pub(super) fn mask_bits(&mut self, v: ssa::Value) -> V {
        if let Some(bits) = self.cache.bits(v) {
            return bits;
        }
        let lanes = self.ty(v).lanes;
        let mask = self.mask(v);
        let bits = self.repr_bits(&mask, lanes);
        self.cache.keep_bits(v, bits);
        bits
    }

    /// Vector form of a mask value at a lane width in bytes.
    pub(super) fn mask_vec(&mut self, v: ssa::Value, width: u32) -> Vec<V> {
        if let Some(pieces) = self.cache.vector(v, width) {
            return pieces.to_vec();
        }
        let lanes = self.ty(v).lanes;
        let mask = self.mask(v);
        let pieces = self.repr_vec(&mask, lanes, width);
        self.cache.keep_vector(v, width, &pieces);
        pieces
    }

    /// Bits form of any mask.
    pub(super) fn repr_bits(&mut self, mask: &MaskRepr, lanes: u16) -> V {
        match mask {
            MaskRepr::Const(bits) => self.iconst(types::I32, *bits),
            MaskRepr::Same(bit) => self.same_bits(*bit, lanes),
            MaskRepr::Bits(v) => *v,
            MaskRepr::Vec(width, pieces) => self.vec_to_bits(*width, pieces, lanes),
        }
    }

    /// Vector form of any mask.
    pub(super) fn repr_vec(&mut self, mask: &MaskRepr, lanes: u16, width: u32) -> Vec<V> {
        match mask {
            MaskRepr::Const(bits) => self.const_vec(*bits, lanes, width),
            MaskRepr::Same(bit) => self.same_vec(*bit, lanes, width),
            MaskRepr::Bits(v) => self.bits_to_vec(*v, lanes, width),
            MaskRepr::Vec(have, pieces) => self.mask_rewidth(pieces.clone(), *have, width, lanes),
        }
    }

    fn same_bits(&mut self, bit: V, lanes: u16) -> V {
        let wide = self.ins().uextend(types::I32, bit);
        let spread = self.ins().ineg(wide);
        self.ins().band_imm_u(spread, full(lanes).cast_signed())
    }

    /// All pieces are one: lanes need not be told apart.
    fn same_vec(&mut self, bit: V, lanes: u16, width: u32) -> Vec<V> {
        let lane = int_lane(width);
        let wide = self.resize(bit, scalar_type(lane));
        let spread = self.ins().ineg(wide);
        let piece = self.ins().splat(piece_type(lane), spread);
        vec![piece; pieces_for(lanes, width)]
    }

    fn const_vec(&mut self, bits: u64, lanes: u16, width: u32) -> Vec<V> {
        let lane = int_lane(width);
        let per = per_piece(lane);
        (0..pieces_for(lanes, width))
            .map(|p| {
                let bytes = (0..16).fold(0u128, |all, byte| {
                    let set = bits >> (p * per + byte / width as usize) & 1 == 1;
                    all | u128::from(if set { 0xFFu8 } else { 0 }) << (8 * byte)
                });
                self.vconst(piece_type(lane), bytes)
            })
            .collect()
    }

    /// Spreads bits over lanes: broadcast, keep each lane's own bit, compare with it.
    fn bits_to_vec(&mut self, bits: V, lanes: u16, width: u32) -> Vec<V> {
        let lane = int_lane(width);
        let ty = piece_type(lane);
        (0..pieces_for(lanes, width))
            .map(|p| {
                let first = p * per_piece(lane);
                let (spread, base) = self.broadcast_bits(bits, width, first);
                let own = (0..per_piece(lane)).fold(0u128, |all, i| {
                    let bit = if width == 1 { i % 8 } else { first - base + i };
                    all | 1u128 << (i as u32 * width * 8 + bit as u32)
                });
                let own = self.vconst(ty, own);
                let kept = self.ins().band(spread, own);
                self.ins().icmp(IntCC::Equal, kept, own)
            })
            .collect()
    }

    /// The bits in every lane of a piece of `width`-byte lanes that starts at lane `first`; also
    /// the lane whose bit then stands lowest.
    fn broadcast_bits(&mut self, bits: V, width: u32, first: usize) -> (V, usize) {
        match width {
            8 => {
                let wide = self.ins().uextend(types::I64, bits);
                (self.ins().splat(types::I64X2, wide), 0)
            }
            4 => (self.ins().splat(types::I32X4, bits), 0),
            _ => {
                let base = first & !15;
                let half = if base == 0 {
                    bits
                } else {
                    self.ins().ushr_imm_u(bits, 16)
                };
                let half = self.ins().ireduce(types::I16, half);
                let spread = self.ins().splat(types::I16X8, half);
                if width == 2 {
                    return (spread, base);
                }
                let order = std::array::from_fn(|i| u8::from(i >= 8));
                let bytes = self.shuffle_bytes(spread, spread, order);
                (self.cast(bytes, types::I8X16), base)
            }
        }
    }

    /// Gathers one bit a lane, narrowing to bytes first when there are several pieces.
    pub(super) fn vec_to_bits(&mut self, width: u32, pieces: &[V], lanes: u16) -> V {
        let mut width = width;
        let mut pieces = pieces.to_vec();
        while width > 1 && (pieces.len() > 1 || width == 2) {
            pieces = self.mask_rewidth(pieces, width, width / 2, lanes);
            width /= 2;
        }
        let mut bits: Option<V> = None;
        for (p, &piece) in pieces.iter().enumerate() {
            let high = self.ins().vhigh_bits(types::I32, piece);
            bits = Some(match bits {
                None => high,
                Some(low) => {
                    let up = self.ins().ishl_imm_u(high, 16 * p as i64);
                    self.ins().bor(low, up)
                }
            });
        }
        let bits = bits.unwrap_or_else(|| self.iconst(types::I32, 0));
        if usize::from(lanes) * width as usize == 16 * pieces.len() {
            return bits;
        }
        self.ins().band_imm_u(bits, full(lanes).cast_signed())
    }

    /// Same mask at another lane width.
    pub(super) fn mask_rewidth(
        &mut self,
        pieces: Vec<V>,
        have: u32,
        want: u32,
        lanes: u16,
    ) -> Vec<V> {
        match have.cmp(&want) {
            std::cmp::Ordering::Equal => pieces,
            std::cmp::Ordering::Greater => {
                let half: Vec<V> = pieces
                    .chunks(2)
                    .map(|pair| self.narrow_mask(pair[0], pair[pair.len() - 1], have))
                    .collect();
                self.mask_rewidth(half, have / 2, want, lanes)
            }
            std::cmp::Ordering::Less => {
                let mut wide = Vec::new();
                for p in 0..pieces_for(lanes, have * 2) {
                    let from = pieces[p / 2];
                    wide.push(if p % 2 == 0 {
                        self.ins().swiden_low(from)
                    } else {
                        self.ins().swiden_high(from)
                    });
                }
                self.mask_rewidth(wide, have * 2, want, lanes)
            }
        }
    }

    fn narrow_mask(&mut self, a: V, b: V, width: u32) -> V {
        if width == 8 {
            let a = self.cast(a, types::I32X4);
            let b = self.cast(b, types::I32X4);
            return self.shuffle_lanes(Lane::I32, a, b, &[0, 2, 4, 6]);
        }
        self.ins().snarrow(a, b)
    }

    /// `any` or `all` of a mask as `i8` 0 or 1.
    pub(super) fn mask_test(&mut self, v: ssa::Value, all: bool) -> V {
        let lanes = self.ty(v).lanes;
        let every = full(lanes);
        match self.mask(v) {
            MaskRepr::Const(bits) => {
                let yes = if all { bits == every } else { bits != 0 };
                self.iconst(types::I8, u64::from(yes))
            }
            MaskRepr::Vec(width, pieces)
                if u32::from(lanes) * width == 16 * pieces.len() as u32
                    && self.cache.bits(v).is_none() =>
            {
                self.pieces_test(&pieces, all)
            }
            _ => {
                let bits = self.mask_bits(v);
                let (cc, value) = if all {
                    (IntCC::Equal, every)
                } else {
                    (IntCC::NotEqual, 0)
                };
                self.ins().icmp_imm_u(cc, bits, value.cast_signed())
            }
        }
    }

    /// Any or all lanes of a mask in vector form without padding.
    pub(super) fn pieces_test(&mut self, pieces: &[V], all: bool) -> V {
        let mut level = pieces.to_vec();
        while level.len() > 1 {
            level = level
                .chunks(2)
                .map(|pair| match *pair {
                    [a, b] if all => self.ins().band(a, b),
                    [a, b] => self.ins().bor(a, b),
                    _ => pair[0],
                })
                .collect();
        }
        if all {
            self.ins().vall_true(level[0])
        } else {
            self.ins().vany_true(level[0])
        }
    }

    /// `and`, `or`, `xor` of two masks.
    pub(super) fn mask_binary(&mut self, op: BinOp, out: ssa::Value, a: ssa::Value, b: ssa::Value) {
        let lanes = self.ty(out).lanes;
        let logic = |e: &mut Self, x: V, y: V| match op {
            BinOp::And => e.ins().band(x, y),
            BinOp::Or => e.ins().bor(x, y),
            _ => e.ins().bxor(x, y),
        };
        let repr = match self.logic_form(out, &[a, b]) {
            Form::Bits => {
                let (x, y) = (self.mask_bits(a), self.mask_bits(b));
                MaskRepr::Bits(logic(self, x, y))
            }
            Form::Vec(width) => {
                let operands = [self.mask_vec(a, width), self.mask_vec(b, width)];
                MaskRepr::Vec(width, self.lanewise(&operands, |e, v| logic(e, v[0], v[1])))
            }
        };
        debug_assert!(lanes > 1, "scalar conditions are not masks");
        self.bind_mask(out, repr);
    }

    /// Complement of a mask.
    pub(super) fn mask_not(&mut self, out: ssa::Value, a: ssa::Value) {
        let lanes = self.ty(out).lanes;
        let repr = match self.logic_form(out, &[a]) {
            Form::Bits => {
                let bits = self.mask_bits(a);
                MaskRepr::Bits(self.ins().bxor_imm_u(bits, full(lanes).cast_signed()))
            }
            Form::Vec(width) => {
                let pieces = self.mask_vec(a, width);
                MaskRepr::Vec(width, self.lanewise(&[pieces], |e, v| e.ins().bnot(v[0])))
            }
        };
        self.bind_mask(out, repr);
    }

    /// Select between masks, under a mask or a scalar condition.
    pub(super) fn mask_select(
        &mut self,
        out: ssa::Value,
        c: ssa::Value,
        a: ssa::Value,
        b: ssa::Value,
    ) {
        let uniform = self.ty(c).is_scalar();
        let form = if uniform {
            self.logic_form(out, &[a, b])
        } else {
            self.logic_form(out, &[c, a, b])
        };
        let repr = match form {
            Form::Bits => {
                let (x, y) = (self.mask_bits(a), self.mask_bits(b));
                let v = if uniform {
                    let cond = self.scalar(c);
                    self.ins().select(cond, x, y)
                } else {
                    let m = self.mask_bits(c);
                    self.ins().bitselect(m, x, y)
                };
                MaskRepr::Bits(v)
            }
            Form::Vec(width) => {
                let (x, y) = (self.mask_vec(a, width), self.mask_vec(b, width));
                let pieces = if uniform {
                    let cond = self.scalar(c);
                    self.select_uniform(cond, x, y)
                } else {
                    let m = self.mask_vec(c, width);
                    self.lanewise(&[m, x, y], |e, v| e.blend(v[0], v[1], v[2]))
                };
                MaskRepr::Vec(width, pieces)
            }
        };
        self.bind_mask(out, repr);
    }

    /// True for masks that cost the same in every form.
    fn any_form(&self, v: ssa::Value) -> bool {
        let same = || matches!(self.vals[v.0 as usize], Val::Mask(MaskRepr::Same(_)));
        self.mask_const(v).is_some() || same()
    }

    /// Form to compute a logic operation in: what all operands have already, else the plan's.
    fn logic_form(&self, out: ssa::Value, operands: &[ssa::Value]) -> Form {
        let planned = self.plan.form(out);
        let has = |v: ssa::Value, form: Form| match (&self.vals[v.0 as usize], form) {
            (Val::Mask(MaskRepr::Vec(w, _)), Form::Vec(want)) if *w == want => true,
            (Val::Mask(MaskRepr::Bits(_)), Form::Bits) => true,
            (_, Form::Vec(want)) => self.cache.vector(v, want).is_some(),
            (_, Form::Bits) => self.cache.bits(v).is_some(),
        };
        let free = |form: Form| operands.iter().all(|&v| self.any_form(v) || has(v, form));
        let natural = operands
            .iter()
            .find_map(|v| match &self.vals[v.0 as usize] {
                Val::Mask(MaskRepr::Vec(w, _)) => Some(Form::Vec(*w)),
                Val::Mask(MaskRepr::Bits(_)) => Some(Form::Bits),
                _ => None,
            });
        match natural {
            Some(form) if !free(planned) && free(form) => form,
            _ => planned,
        }
    }

    /// Piece-wise choice: `a` where `mask` (lanes of ones or zeros, any width) is set, else `b`.
    pub(super) fn blend(&mut self, mask: V, a: V, b: V) -> V {
        let ty = self.type_of(a);
        let (mask, a, b) = match self.complemented(mask) {
            Some(opposite) => (opposite, b, a),
            None => (mask, a, b),
        };
        if !self.target.x64 {
            let m = self.cast(mask, ty);
            return self.ins().bitselect(m, a, b);
        }
        let work = match self.type_of(mask) {
            t if t.lane_bits() == 32 => types::I32X4,
            t if t.lane_bits() == 64 => types::I64X2,
            _ => types::I8X16,
        };
        let (m, x, y) = (
            self.cast(mask, work),
            self.cast(a, work),
            self.cast(b, work),
        );
        let v = self.ins().blendv(m, x, y);
        self.cast(v, ty)
    }

    /// Piece-wise choice: `a` where `mask` is set, else zero.
    pub(super) fn kept(&mut self, mask: V, a: V) -> V {
        let ty = self.type_of(a);
        match self.complemented(mask) {
            Some(opposite) => {
                let cleared = self.cast(opposite, ty);
                self.ins().band_not(a, cleared)
            }
            None => {
                let m = self.cast(mask, ty);
                self.ins().band(a, m)
            }
        }
    }

    /// What a piece is the complement of.
    fn complemented(&self, v: V) -> Option<V> {
        let inst = self.func.dfg.value_def(v).inst()?;
        let dfg = &self.func.dfg;
        (dfg.insts[inst].opcode() == Opcode::Bnot).then(|| dfg.inst_args(inst)[0])
    }

    /// Choice of whole vectors by an `i8` condition.
    pub(super) fn select_uniform(&mut self, cond: V, a: Vec<V>, b: Vec<V>) -> Vec<V> {
        if a.len() <= 2 {
            return self.lanewise(&[a, b], |e, v| e.ins().select(cond, v[0], v[1]));
        }
        let ones = self.spread_condition(cond, types::I32X4);
        self.lanewise(&[a, b], |e, v| e.blend(ones, v[0], v[1]))
    }

    /// A piece of all ones or all zeros.
    fn spread_condition(&mut self, cond: V, ty: Type) -> V {
        let wide = self.ins().uextend(types::I32, cond);
        let word = self.ins().ineg(wide);
        let piece = self.ins().splat(types::I32X4, word);
        self.cast(piece, ty)
    }

    /// `vector & mask`, the mask at the vector's lane width.
    pub(super) fn mask_pieces(&mut self, mask: &[V], pieces: Vec<V>) -> Vec<V> {
        self.lanewise(&[mask.to_vec(), pieces], |e, v| {
            let ty = e.type_of(v[1]);
            let m = e.cast(v[0], ty);
            e.ins().band(v[1], m)
        })
    }
}
