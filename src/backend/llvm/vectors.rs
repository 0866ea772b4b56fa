//! Lanes of vectors and masks. Values of the SSA have a power of two of them, see [`padded_lanes`].

use inkwell::types::VectorType;
use inkwell::values::{InstructionOpcode, IntValue, PointerValue};

use super::emit::{EmitResult, LlvmEmitter, V};
use super::types::{padded_lanes, vector_of};
use crate::ssa::{Lane, Ty};

/// A bit for each of a given number of lanes, of which there are 1 to 32.
pub(super) const fn low_bits(lanes: u16) -> u32 {
    u32::MAX >> (32 - lanes as u32)
}

impl<'c> LlvmEmitter<'c, '_> {
    /// A lane of a vector.
    pub(super) fn lane(&self, v: V<'c>, lane: u32) -> EmitResult<V<'c>> {
        match v {
            V::VectorValue(v) => Ok(self.b.build_extract_element(v, self.i32(lane), "\0")?),
            scalar => Ok(scalar),
        }
    }

    /// A vector with one lane replaced.
    pub(super) fn with_lane(&self, v: V<'c>, one: V<'c>, lane: u32) -> EmitResult<V<'c>> {
        match v {
            V::VectorValue(v) => {
                let index = self.i32(lane);
                Ok(self.b.build_insert_element(v, one, index, "\0")?.into())
            }
            _ => Ok(one),
        }
    }

    /// Vectors of one element type and length put end to end, and lanes taken from that. `None` is any value.
    pub(super) fn shuffle(
        &self,
        a: V<'c>,
        b: Option<V<'c>>,
        indices: &[Option<u32>],
    ) -> EmitResult<V<'c>> {
        let a = self.as_vector(a)?;
        let b = match b {
            Some(b) => self.as_vector(b)?,
            None => a.get_type().get_poison(),
        };
        let i32_type = self.cx.i32_type();
        let lanes: Vec<IntValue> = indices
            .iter()
            .map(|i| i.map_or(i32_type.get_poison(), |i| self.i32(i)))
            .collect();
        let mask = VectorType::const_vector(&lanes);
        Ok(self.b.build_shuffle_vector(a, b, mask, "\0")?.into())
    }

    /// Reads a value from memory, exactly its bytes.
    pub(super) fn load_value(&self, ty: Ty, ptr: PointerValue<'c>) -> EmitResult<V<'c>> {
        let v = self.load(self.exact(ty), ptr)?;
        self.widen(v, ty.lanes, padded_lanes(ty.lanes))
    }

    /// Writes a value to memory, exactly its bytes.
    pub(super) fn store_value(&self, v: V<'c>, ty: Ty, ptr: PointerValue<'c>) -> EmitResult<()> {
        let v = self.narrow(v, ty.lanes)?;
        self.store(v, ptr)
    }

    /// The first lanes of a vector.
    pub(super) fn narrow(&self, v: V<'c>, lanes: u16) -> EmitResult<V<'c>> {
        match v {
            V::VectorValue(x) if x.get_type().get_size() != u32::from(lanes) => {
                let first = (0..u32::from(lanes)).map(Some);
                self.shuffle(v, None, &first.collect::<Vec<_>>())
            }
            _ => Ok(v),
        }
    }

    /// A vector of `from` lanes (or a scalar) with lanes of zero after it.
    pub(super) fn widen(&self, v: V<'c>, from: u16, to: u16) -> EmitResult<V<'c>> {
        if from == to {
            return Ok(v);
        }
        if from == 1 {
            let zero = vector_of(v.get_type(), u32::from(to)).const_zero();
            return self.with_lane(zero.into(), v, 0);
        }
        let zero = v.get_type().const_zero();
        let lanes = (0..u32::from(to)).map(|i| Some(i.min(u32::from(from))));
        self.shuffle(v, Some(zero), &lanes.collect::<Vec<_>>())
    }

    /// A scalar in every lane.
    pub(super) fn splat(&self, v: V<'c>, lanes: u16) -> EmitResult<V<'c>> {
        let lanes = padded_lanes(lanes);
        if lanes == 1 {
            return Ok(v);
        }
        let ty = vector_of(v.get_type(), u32::from(lanes));
        let first = self.with_lane(ty.get_poison().into(), v, 0)?;
        self.shuffle(first, None, &vec![Some(0); usize::from(lanes)])
    }

    /// An operation on vectors of some lanes, or scalars, done by one on vectors of `piece` lanes, at least four.
    pub(super) fn in_pieces(
        &mut self,
        piece: u32,
        lanes: u16,
        operands: &[V<'c>],
        each: impl Fn(&mut Self, &[V<'c>]) -> EmitResult<V<'c>>,
    ) -> EmitResult<V<'c>> {
        let lanes = padded_lanes(lanes);
        let width = lanes.max(4);
        let widened = operands.iter().map(|&v| self.widen(v, lanes, width));
        let operands = widened.collect::<EmitResult<Vec<_>>>()?;
        let mut pieces = Vec::new();
        for start in (0..u32::from(width)).step_by(piece as usize) {
            let of_piece: Vec<_> = (start..start + piece).map(Some).collect();
            let parts = operands.iter().map(|&v| self.shuffle(v, None, &of_piece));
            let parts = parts.collect::<EmitResult<Vec<_>>>()?;
            pieces.push(each(self, &parts)?);
        }
        while pieces.len() > 1 {
            let both = 2 * u32::from(width) / pieces.len() as u32;
            let ends: Vec<_> = (0..both).map(Some).collect();
            let pairs = pieces.chunks(2);
            let joined = pairs.map(|p| self.shuffle(p[0], Some(p[1]), &ends));
            pieces = joined.collect::<EmitResult<_>>()?;
        }
        match lanes {
            1 => self.lane(pieces[0], 0),
            lanes => self.narrow(pieces[0], lanes),
        }
    }

    /// Bits of a mask of a given number of lanes as `i32`, lane 0 lowest.
    pub(super) fn mask_bits(&self, mask: V<'c>, lanes: u16) -> EmitResult<V<'c>> {
        let word = self.int(u32::from(padded_lanes(lanes)));
        let bits = self.cast_bits(mask, word.into())?;
        let bits = self.resize(bits, 32)?;
        if padded_lanes(lanes) == lanes {
            return Ok(bits);
        }
        self.op2(InstructionOpcode::And, bits, self.i32(low_bits(lanes)))
    }

    /// A mask from the low bits of an `i32`.
    pub(super) fn bits_mask(&self, bits: V<'c>, lanes: u16) -> EmitResult<V<'c>> {
        let low = self.resize(bits, u32::from(padded_lanes(lanes)))?;
        self.cast_bits(low, self.type_of(Ty::vector(Lane::I1, lanes)))
    }
}
