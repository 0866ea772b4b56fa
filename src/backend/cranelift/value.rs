//! How SSA values are held: scalars, pieces, masks.

use cranelift_codegen::ir::{InstBuilder, Type, Value as V, types};

use super::emit::CraneliftEmitter;
use super::mask::MaskRepr;
use crate::backend::access::consts;
use crate::ssa::{self, Lane, Op, Ty, ValueDef};

/// Translation of an SSA value.
#[derive(Clone, Debug)]
pub(super) enum Val {
    /// Not reached yet, or a constant, which is made anew where it is used.
    None,
    /// A scalar (one value; `i1` is an `i8` of 0 or 1) or the pieces of a vector.
    Parts(Vec<V>),
    /// A lane mask.
    Mask(MaskRepr),
}

/// Type of a scalar.
pub(super) const fn scalar_type(lane: Lane) -> Type {
    match lane {
        Lane::I1 | Lane::I8 => types::I8,
        Lane::I16 => types::I16,
        Lane::I32 => types::I32,
        Lane::I64 => types::I64,
        Lane::F32 => types::F32,
        Lane::F64 => types::F64,
    }
}

/// Type of a piece.
pub(super) const fn piece_type(lane: Lane) -> Type {
    match lane {
        Lane::I1 | Lane::I8 => types::I8X16,
        Lane::I16 => types::I16X8,
        Lane::I32 => types::I32X4,
        Lane::I64 => types::I64X2,
        Lane::F32 => types::F32X4,
        Lane::F64 => types::F64X2,
    }
}

/// Integer lane of a width in bytes.
pub(super) fn int_lane(bytes: u32) -> Lane {
    Lane::int(bytes).unwrap_or(Lane::I64)
}

/// Lanes in a piece.
pub(super) const fn per_piece(lane: Lane) -> usize {
    (16 / lane.bytes()) as usize
}

/// Pieces of a vector type.
pub(super) const fn piece_count(ty: Ty) -> usize {
    (ty.lanes as usize).div_ceil(per_piece(ty.lane))
}

/// True when the last piece has lanes beyond the value's.
pub(super) const fn is_padded(ty: Ty) -> bool {
    !ty.bytes().is_multiple_of(16)
}

impl CraneliftEmitter<'_> {
    /// Type of an SSA value.
    pub(super) fn ty(&self, v: ssa::Value) -> Ty {
        self.f.ty(v)
    }

    /// Operation that defines a value.
    pub(super) fn def_op(&self, v: ssa::Value) -> Option<&ssa::InstData> {
        match self.f.def(v) {
            ValueDef::Result(i, _) => Some(self.f.inst(i)),
            _ => None,
        }
    }

    /// Bits of a scalar constant.
    pub(super) fn scalar_const(&self, v: ssa::Value) -> Option<u64> {
        consts::scalar(self.f, v)
    }

    /// Bits that all lanes of a constant vector (or a scalar constant) have.
    pub(super) fn uniform_const(&self, v: ssa::Value) -> Option<u64> {
        consts::uniform(self.f, v)
    }

    /// True for values that can be used here. What only versions of an earlier block made cannot, as nothing there said that
    /// it is used: whoever finds a value through the definition of another has to ask.
    pub(super) fn is_at_hand(&self, v: ssa::Value) -> bool {
        let constant =
            || matches!(self.def_op(v)?.op, Op::Const(_) | Op::VecConst(_)).then_some(());
        !matches!(self.vals[v.0 as usize], Val::None) || constant().is_some()
    }

    /// The scalar that all lanes equal, when that is plain from the definition and at hand.
    pub(super) fn splat_of(&self, v: ssa::Value) -> Option<ssa::Value> {
        if self.ty(v).is_scalar() {
            return Some(v);
        }
        let def = self.def_op(v).filter(|def| def.op == Op::Splat)?;
        let scalar = *def.args.first()?;
        self.is_at_hand(scalar).then_some(scalar)
    }

    /// A scalar value.
    pub(super) fn scalar(&mut self, v: ssa::Value) -> V {
        let parts = self.parts(v);
        match parts.first() {
            Some(&v) => v,
            None => {
                self.bug(format!("v{} has no translation", v.0));
                self.iconst(types::I8, 0)
            }
        }
    }

    /// Scalar or pieces of a value that is no mask.
    pub(super) fn parts(&mut self, v: ssa::Value) -> Vec<V> {
        match &self.vals[v.0 as usize] {
            Val::Parts(parts) => parts.clone(),
            Val::Mask(_) => {
                self.bug(format!("mask v{} used as a vector", v.0));
                Vec::new()
            }
            Val::None => self.constant_parts(v),
        }
    }

    fn constant_parts(&mut self, v: ssa::Value) -> Vec<V> {
        let ty = self.ty(v);
        let f = self.f;
        let lanes: &[u64] = match f.def_inst(v).map(|d| &d.op) {
            Some(Op::Const(bits)) if ty.is_scalar() => {
                return vec![self.sconst(ty.lane, *bits & low_bits(ty.lane))];
            }
            Some(Op::Const(bits)) => &vec![*bits; usize::from(ty.lanes)],
            Some(Op::VecConst(lanes)) => lanes,
            _ => {
                self.bug(format!("v{} used before its definition", v.0));
                &[0]
            }
        };
        if ty.is_scalar() {
            return vec![self.sconst(ty.lane, lanes[0] & low_bits(ty.lane))];
        }
        (0..piece_count(ty))
            .map(|p| {
                let bytes = constant_piece(ty.lane, lanes, p);
                self.vconst(piece_type(ty.lane), bytes)
            })
            .collect()
    }

    /// Binds a scalar or vector value.
    pub(super) fn bind(&mut self, v: ssa::Value, parts: Vec<V>) {
        self.vals[v.0 as usize] = Val::Parts(parts);
    }

    /// Binds a mask (or a scalar `i1`, given as bits or as lanes).
    pub(super) fn bind_mask(&mut self, v: ssa::Value, mask: MaskRepr) {
        if self.ty(v).is_scalar() {
            let bits = self.repr_bits(&mask, 1);
            let bit = self.resize(bits, types::I8);
            self.bind(v, vec![bit]);
        } else {
            self.vals[v.0 as usize] = Val::Mask(mask);
        }
    }

    /// Applies `each` to the corresponding parts of the operands; equal inputs give one output.
    pub(super) fn lanewise(
        &mut self,
        operands: &[Vec<V>],
        mut each: impl FnMut(&mut Self, &[V]) -> V,
    ) -> Vec<V> {
        let count = operands.first().map_or(0, Vec::len);
        let mut last: Option<(Vec<V>, V)> = None;
        let mut out = Vec::with_capacity(count);
        for i in 0..count {
            let inputs: Vec<V> = operands.iter().map(|o| o[i]).collect();
            let v = match &last {
                Some((before, v)) if *before == inputs => *v,
                _ => each(self, &inputs),
            };
            last = Some((inputs, v));
            out.push(v);
        }
        out
    }

    /// One lane of a vector held as pieces.
    pub(super) fn lane_of(&mut self, lane: Lane, parts: &[V], index: usize) -> V {
        let per = per_piece(lane);
        self.ins()
            .extractlane(parts[index / per], (index % per) as u8)
    }

    /// Replaces one lane of a vector held as pieces.
    pub(super) fn set_lane(&mut self, lane: Lane, parts: &mut [V], index: usize, value: V) {
        let per = per_piece(lane);
        let at = index / per;
        parts[at] = self.ins().insertlane(parts[at], value, (index % per) as u8);
    }

    /// Pieces made of scalars, in lane order.
    pub(super) fn from_lanes(&mut self, lane: Lane, scalars: &[V]) -> Vec<V> {
        scalars
            .chunks(per_piece(lane))
            .map(|chunk| self.piece_from(lane, chunk))
            .collect()
    }

    fn piece_from(&mut self, lane: Lane, scalars: &[V]) -> V {
        let ty = piece_type(lane);
        let mut piece = if lane.bytes() >= 4 {
            self.ins().scalar_to_vector(ty, scalars[0])
        } else {
            let zero = self.vconst(ty, 0);
            self.ins().insertlane(zero, scalars[0], 0)
        };
        for (i, &s) in scalars.iter().enumerate().skip(1) {
            piece = self.ins().insertlane(piece, s, i as u8);
        }
        piece
    }

    /// Runs a scalar computation on every lane of the operands.
    pub(super) fn per_lane(
        &mut self,
        ty: Ty,
        operands: &[Vec<V>],
        result: Lane,
        mut each: impl FnMut(&mut Self, &[V]) -> V,
    ) -> Vec<V> {
        let scalars: Vec<V> = (0..usize::from(ty.lanes))
            .map(|i| {
                let inputs: Vec<V> = operands
                    .iter()
                    .map(|o| self.lane_of(ty.lane, o, i))
                    .collect();
                each(self, &inputs)
            })
            .collect();
        self.from_lanes(result, &scalars)
    }
}

/// Mask of the bits of one lane.
pub(super) const fn low_bits(lane: Lane) -> u64 {
    u64::MAX >> (64 - lane.bits())
}

/// Piece `p` of the vector whose lane `i` is `i * step`.
pub(super) fn splat_step(lane: Lane, p: usize, step: u64) -> u128 {
    let per = per_piece(lane);
    let lanes: Vec<u64> = (0..(p + 1) * per).map(|i| i as u64 * step).collect();
    constant_piece(lane, &lanes, p)
}

/// Bytes of piece `p` of a constant vector, zero beyond its end.
fn constant_piece(lane: Lane, lanes: &[u64], p: usize) -> u128 {
    let per = per_piece(lane);
    let width = lane.bytes() * 8;
    lanes
        .iter()
        .skip(p * per)
        .take(per)
        .enumerate()
        .fold(0, |all, (i, &bits)| {
            all | u128::from(bits & low_bits(lane)) << (i as u32 * width)
        })
}
