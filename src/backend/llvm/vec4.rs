//! Accesses that are known to be inside, and vec4 accesses: the components of a lane, one after the other in memory, as one
//! vector.
//!
//! Lanes that load several components get a vector each. Transposing these gives a vector for each component, and stores go the
//! other way. Lanes that are only copied from memory to memory stay as they were read, and vectors that stand side by side are
//! one.

use inkwell::values::{InstructionOpcode as I, IntValue, PointerValue};

use super::emit::{EmitResult, LlvmEmitter, V};
use super::versioning::InsideAddresses;
use crate::backend::access::{Access, Copied, CopyId, StridedKind, VEC4_BYTES};
use crate::ssa::{Lane, Ty, Value};

/// Vectors of 16 bytes in a line of the cache.
const LINE: u16 = 4;

impl<'c, 'f> LlvmEmitter<'c, 'f> {
    /// A load that is inside.
    pub(super) fn load_inside(
        &mut self,
        a: &Access,
        at: InsideAddresses<'c>,
        args: &[Value],
        out: &[Value],
    ) -> EmitResult<()> {
        let masked = !self.is_full(args[0]);
        let zeros = masked && !self.f.inactive_undef.contains(&a.inst);
        let mut parts = if let Some(kept) = self.version.kept(a.inst) {
            kept.to_vec()
        } else {
            if let InsideAddresses::Strided(from) = at
                && masked
            {
                self.fetch_first((a.inst, zeros), a.access, a.lanes, a.kind, from)?;
            }
            self.read_inside(a, at)?
        };
        if zeros {
            let mask = self.get(args[0])?;
            for part in &mut parts {
                *part = self.select(mask, *part, part.get_type().const_zero())?;
            }
        }
        for (&v, part) in out.iter().zip(parts) {
            self.bind(v, part);
        }
        Ok(())
    }

    /// The components of a load that is inside, for all lanes.
    pub(super) fn read_inside(
        &mut self,
        a: &Access,
        at: InsideAddresses<'c>,
    ) -> EmitResult<Vec<V<'c>>> {
        Ok(match (at, a.kind) {
            (InsideAddresses::Strided(from), StridedKind::Same) => {
                self.read_same(a.access, a.lanes, from)?
            }
            (InsideAddresses::Strided(from), StridedKind::Packed) => {
                self.read_packed(a.inst, a.access, a.lanes, from)?
            }
            (InsideAddresses::Strided(from), StridedKind::Run) => {
                let strided = a.strided.ok_or("no distance between lanes")?;
                self.read_run(a.access, a.lanes, from, strided)?
            }
            (InsideAddresses::Strided(from), StridedKind::Overlap) => {
                self.read_overlap(a.access, a.lanes, from, a.stride().unwrap_or(1))?
            }
            _ if a.vec4 => self.read_vec4(a, at)?,
            (InsideAddresses::Strided(from), _) => {
                self.read_spread(a.access, a.lanes, from, a.stride().unwrap_or(0))?
            }
            (InsideAddresses::Lanes(..), _) => vec![self.read_lanes(a, at)?],
        })
    }

    /// A store that is inside.
    pub(super) fn store_inside(
        &mut self,
        a: &Access,
        at: InsideAddresses<'c>,
        args: &[Value],
    ) -> EmitResult<()> {
        let data = self.get_all(Self::data_args(a.access.space, args))?;
        match (at, data.as_slice()) {
            (InsideAddresses::Strided(to), data) if a.enabled && !self.is_full(args[0]) => {
                let mask = self.get(args[0])?;
                self.store_some(a.access, (a.lanes, mask), data, to)
            }
            _ if a.vec4 => self.write_vec4(a, at, &data),
            (InsideAddresses::Strided(to), data) => {
                let stride = (a.kind == StridedKind::Spread).then_some(a.stride().unwrap_or(0));
                self.write_at(a.access, a.lanes, stride, data, to)
            }
            _ => Err("a store to any addresses whose lanes are not vectors".into()),
        }
    }

    /// Where the bytes of a lane are.
    fn lane_pointer(
        &self,
        a: &Access,
        at: InsideAddresses<'c>,
        lane: u16,
    ) -> EmitResult<PointerValue<'c>> {
        match at {
            InsideAddresses::Strided(first) => {
                let stride = a.stride().ok_or("no distance between lanes")?;
                self.offset_const(first, i64::from(lane) * stride)
            }
            InsideAddresses::Lanes(offsets) => {
                let mut offset = self.lane_offset(offsets.words, a.lanes, lane)?;
                if offsets.shift > 0 {
                    let by = self.i64(offsets.shift.into());
                    offset = self.as_int(self.op2(I::Shl, offset, by)?)?;
                }
                let lane_start = self.offset(offsets.start, offset)?;
                self.offset_const(lane_start, offsets.distance)
            }
        }
    }

    /// Offsets of an even number of lanes as words of 64 bits. Two of 32 bits leave a vector together, which is half as many
    /// moves between register files, of which there is one at a time.
    pub(super) fn lane_words(&self, offsets: V<'c>, ty: Ty) -> EmitResult<V<'c>> {
        let words = u32::from(ty.lanes) * ty.lane.bytes() / 8;
        self.cast_bits(offsets, self.int(64).vec_type(words).into())
    }

    /// The offset of a lane from words of them.
    pub(super) fn lane_offset(
        &self,
        words: V<'c>,
        lanes: u16,
        lane: u16,
    ) -> EmitResult<IntValue<'c>> {
        let count = self.as_vector(words)?.get_type().get_size();
        let each = lanes / count as u16; // at most as many words as lanes
        let word = self.lane(words, u32::from(lane / each))?;
        let offset = match (each, lane % each) {
            (1, _) => word,
            (_, 0) => self.op2(I::And, word, self.i64(u64::from(u32::MAX)))?,
            _ => self.op2(I::LShr, word, self.i64(32))?,
        };
        self.as_int(offset)
    }

    /// Loads of one element a lane, at any addresses.
    fn read_lanes(&mut self, a: &Access, at: InsideAddresses<'c>) -> EmitResult<V<'c>> {
        let elem = self.type_of(Ty::scalar(a.access.elem));
        let mut all: V = self
            .type_of(Ty::vector(a.access.elem, a.lanes))
            .const_zero();
        for lane in 0..a.lanes {
            let from = self.lane_pointer(a, at, lane)?;
            let one = self.load(elem, from)?;
            all = self.with_lane(all, one, u32::from(lane))?;
        }
        Ok(all)
    }

    fn copy(&self, id: CopyId) -> EmitResult<&'f Copied> {
        let copied = self.access_plan.copy(id);
        copied.ok_or_else(|| "a copy that is not planned".into())
    }

    /// Loads all vectors of a copy.
    pub(super) fn load_copy(&mut self, id: CopyId) -> EmitResult<()> {
        let copied = self.copy(id)?;
        let lanes = 0..copied.loads[0].lanes;
        let rows = lanes.map(|lane| self.load_row(copied, lane));
        let rows = rows.collect::<EmitResult<_>>()?;
        self.version.keep_rows(id, rows);
        Ok(())
    }

    /// Loads the vector of a copy's lane.
    fn load_row(&self, copied: &Copied, lane: u16) -> EmitResult<V<'c>> {
        let first = copied.loads[0];
        let ty = self.exact(Ty::vector(Lane::I32, copied.bytes() as u16 / 4));
        let from = self.lane_pointer(&first, self.version.inside(first.inst)?, lane)?;
        self.load(ty, from)
    }

    /// Stores all vectors of a copy, loading them here if they are `late`.
    pub(super) fn store_copy(&mut self, id: CopyId, late: bool) -> EmitResult<()> {
        let copied = self.copy(id)?;
        let first = copied.stores[0];
        let rows = match self.version.rows(id) {
            Some(rows) if !late => rows.to_vec(),
            _ => Vec::new(),
        };
        let at = self.version.inside(first.inst)?;
        // Vectors that fill lines of the cache are written a line at a time.
        let together = if first.kind == StridedKind::Packed {
            LINE
        } else {
            1
        };
        for lane in (0..first.lanes).step_by(usize::from(together)) {
            let row = |lane: u16| match rows.get(usize::from(lane)) {
                Some(&row) => Ok(row),
                None => self.load_row(copied, lane),
            };
            let rows = (lane..lane + together)
                .map(row)
                .collect::<EmitResult<_>>()?;
            let line = self.end_to_end(rows, VEC4_BYTES as u16 / 4)?;
            let to = self.lane_pointer(&first, at, lane)?;
            self.store(line, to)?;
        }
        Ok(())
    }

    /// Components of vectors, one a lane.
    fn read_vec4(&mut self, a: &Access, at: InsideAddresses<'c>) -> EmitResult<Vec<V<'c>>> {
        let comps = u16::from(a.access.comps);
        let ty = self.exact(Ty::vector(a.access.elem, comps));
        let mut columns = Vec::with_capacity(usize::from(comps));
        for column in 0..comps {
            let mut rows = Vec::new();
            for lane in (column..a.lanes).step_by(usize::from(comps)) {
                let from = self.lane_pointer(a, at, lane)?;
                rows.push(self.load(ty, from)?);
            }
            columns.push(self.end_to_end(rows, comps)?);
        }
        self.transposed(&columns, a.lanes)
    }

    /// Vectors of components, one a lane, each stored by itself, in the order of the lanes.
    fn write_vec4(
        &mut self,
        a: &Access,
        at: InsideAddresses<'c>,
        data: &[V<'c>],
    ) -> EmitResult<()> {
        let comps = data.len() as u16;
        let columns = self.transposed(data, a.lanes)?;
        for lane in 0..a.lanes {
            let column = columns[usize::from(lane % comps)];
            let first = u32::from(lane / comps * comps);
            let row: Vec<_> = (first..first + u32::from(comps)).map(Some).collect();
            let row = self.shuffle(column, None, &row)?;
            let to = self.lane_pointer(a, at, lane)?;
            self.store(row, to)?;
        }
        Ok(())
    }

    /// Vectors of `width` lanes, a power of two of them, as one.
    pub(super) fn end_to_end(&self, mut parts: Vec<V<'c>>, mut width: u16) -> EmitResult<V<'c>> {
        while parts.len() > 1 {
            let ends: Vec<_> = (0..u32::from(2 * width)).map(Some).collect();
            let pairs = parts.chunks(2);
            parts = pairs
                .map(|pair| self.shuffle(pair[0], pair.get(1).copied(), &ends))
                .collect::<EmitResult<_>>()?;
            width *= 2;
        }
        parts.pop().ok_or_else(|| "no vectors".into())
    }

    /// Every square of as many lanes as there are vectors, with rows and columns exchanged; there are two or four.
    fn transposed(&mut self, v: &[V<'c>], lanes: u16) -> EmitResult<Vec<V<'c>>> {
        match *v {
            [a, b] => Ok(vec![
                self.zip(a, b, (2, 0), lanes)?,
                self.zip(a, b, (2, 1), lanes)?,
            ]),
            [a, b, c, d] => {
                let mut even = Vec::new();
                let mut odd = Vec::new();
                for half in 0..2 {
                    even.push(self.zip(a, c, (4, half), lanes)?);
                    odd.push(self.zip(b, d, (4, half), lanes)?);
                }
                let mut all = Vec::with_capacity(4);
                for (&e, &o) in even.iter().zip(&odd) {
                    for half in 0..2 {
                        all.push(self.zip(e, o, (4, half), lanes)?);
                    }
                }
                Ok(all)
            }
            _ => Err("vectors of another size".into()),
        }
    }

    /// Lanes of two vectors in turn, of one half of each block of lanes.
    fn zip(&self, a: V<'c>, b: V<'c>, (block, half): (u16, u16), lanes: u16) -> EmitResult<V<'c>> {
        let lane = |i: u16| {
            let (start, within) = (i / block * block, i % block);
            let from = start + half * block / 2 + within / 2;
            Some(u32::from(from + within % 2 * lanes))
        };
        self.shuffle(a, Some(b), &(0..lanes).map(lane).collect::<Vec<_>>())
    }

    /// Stores the enabled lanes of a vector.
    pub(super) fn store_masked(
        &mut self,
        mask: V<'c>,
        v: V<'c>,
        to: PointerValue<'c>,
    ) -> EmitResult<()> {
        let callee = self.declare("llvm.masked.store", &[v.get_type(), self.ptr_type()])?;
        self.call_masked(callee, &[v, to.into()], &[mask])?;
        Ok(())
    }
}
