//! Accesses that are known to be inside, and records: the components of a lane, one after the other in memory, as one vector.
//!
//! Lanes that load several components get a vector each, and transposing makes vectors of components of them; stores go the
//! other way. What is only copied from memory to memory stays as it was read, and records that stand side by side are one.

use std::collections::{HashMap, HashSet};

use inkwell::values::{InstructionOpcode as I, IntValue, PointerValue};

use super::emit::{Emit, EmitResult, V};
use super::memory::Place;
use super::versioning::{Access, At};
use crate::backend::access::Kind;
use crate::backend::{Gather, uses};
use crate::ssa::remark::Way;
use crate::ssa::{Function, Inst, Lane, MemAccess, Op, Space, Ty, Value, ValueDef};

/// Bytes of a record.
const RECORD: i64 = 16;

/// Records of a line of the cache.
const LINE: u16 = 4;

/// Records side by side that are copied as one, most of them first.
const SIDE_BY_SIDE: [usize; 2] = [4, 2];

/// Most loads in a function that are a load for each lane, which is several times as much code.
const MOST_SPREAD: usize = 16;

/// Copies from memory to memory.
#[derive(Clone, Default)]
pub(super) struct Copies<'c> {
    all: Vec<Copied<'c>>,
    of: HashMap<Inst, usize>,
}

/// Records that are loaded and stored, and nothing else.
#[derive(Clone)]
struct Copied<'c> {
    /// By address.
    loads: Vec<Access>,
    stores: Vec<Access>,
    /// The last store of the program.
    last: Inst,
    /// What was loaded for each lane.
    rows: Vec<V<'c>>,
    /// Nothing that is written lies where they come from, so they are loaded when they are stored.
    late: bool,
}

/// True if a function has few loads of lanes that are not side by side, so that they may take more code.
pub(super) fn few_gathers(f: &Function) -> bool {
    let gather = |i: &&Inst| match &f.inst(**i).op {
        Op::Load(access) => {
            let stride = f.shapes.get(i).and_then(|s| s.addr).map(|a| a.stride);
            let strided = stride.is_some_and(|s| s == 0 || s == i64::from(access.elem.bytes()));
            access.comps == 1 && !strided && !f.ty(f.inst(**i).args[1]).is_scalar()
        }
        _ => false,
    };
    let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
    insts.filter(gather).take(MOST_SPREAD + 1).count() <= MOST_SPREAD
}

/// True if two stores of even distances do not write one byte both: they are apart as a whole, or in every stride.
fn apart(a: &Access, b: &Access) -> bool {
    let (Some(s), Some(t)) = (a.stride, b.stride) else {
        return false;
    };
    if a.reach.is_apart(&b.reach) {
        return true;
    }
    let length = |a: &Access| i64::from(a.access.elem.bytes()) * i64::from(a.access.comps);
    let step = s.saturating_abs();
    a.reach.is_near(&b.reach)
        && step > 0
        && s == t
        && (b.reach.at - a.reach.at).rem_euclid(step) >= length(a)
        && (a.reach.at - b.reach.at).rem_euclid(step) >= length(b)
}

impl<'c> Emit<'c, '_> {
    /// True for accesses of a given number of lanes that are records.
    pub fn has_vec4(&self, access: MemAccess, lanes: u16) -> bool {
        let wide = matches!((access.elem.bytes(), access.comps), (4, 4) | (8, 2));
        wide && matches!(lanes, 8 | 16 | 32)
    }

    /// True for accesses that go by records.
    pub fn is_record(&self, a: &Access) -> bool {
        self.has_vec4(a.access, a.lanes) && a.kind == Kind::Spread
    }

    /// How an access that is inside is done.
    pub fn way(&self, a: &Access) -> Way {
        match a.kind {
            Kind::Same => Way::Broadcast,
            Kind::Packed => Way::Vector,
            Kind::Spread if self.is_record(a) => Way::Records(a.lanes),
            Kind::Spread => Way::Lanes(a.lanes),
        }
    }

    /// Finds records that are only copied; all accesses in question are inside.
    pub fn plan_copies(&mut self, insts: &[Inst]) {
        if self.uses.is_empty() {
            self.uses = uses::counts(self.f);
        }
        let mut pairs: Vec<(Access, Access)> = insts
            .iter()
            .filter_map(|&i| self.copied(i, insts))
            .collect();
        pairs.sort_by_key(|(load, _)| (load.reach.root.0, load.reach.at));
        let mut left = pairs.as_slice();
        while !left.is_empty() {
            let mut lengths = SIDE_BY_SIDE.into_iter();
            let whole = lengths.find(|&n| left.get(..n).is_some_and(|p| self.one_copy(p, insts)));
            let (pairs, others) = left.split_at(whole.unwrap_or(1));
            left = others;
            let (loads, stores): (Vec<Access>, Vec<Access>) = pairs.iter().copied().unzip();
            let n = self.versioning.copies.all.len();
            let members = loads.iter().chain(&stores).map(|a| (a.inst, n));
            self.versioning.copies.of.extend(members);
            let written = |i: &&Inst| stores.iter().any(|s| s.inst == **i);
            let Some(&last) = insts.iter().rev().find(written) else {
                continue;
            };
            self.versioning.copies.all.push(Copied {
                loads,
                stores,
                last,
                rows: Vec::new(),
                late: false,
            });
        }
    }

    /// Whether no store of these instructions writes where their scattered copies come from, as far as one test for all surfaces
    /// can tell.
    pub fn copies_apart(&mut self, insts: &[Inst]) -> EmitResult<Option<V<'c>>> {
        let f = self.f;
        let (mut from, mut to) = (Vec::new(), Vec::new());
        for &i in insts {
            let data = f.inst(i);
            let (list, access) = match data.op {
                Op::Load(access) if self.scattered_copy(i).is_some() => (&mut from, access),
                Op::Store(access) => (&mut to, access),
                ref op if op.has_effect() && !matches!(op, Op::Load(_)) => return Ok(None),
                _ => continue,
            };
            let index = match access.space {
                Space::Surface => self.scalar_const(data.args[2]),
                _ => None,
            };
            let Some(index) = index else {
                return Ok(None);
            };
            let place = Place::Surface(index as u8);
            if !list.contains(&place) {
                list.push(place);
            }
        }
        let mut apart = None;
        for (&a, &b) in from.iter().flat_map(|a| to.iter().map(move |b| (a, b))) {
            if a == b {
                return Ok(None);
            }
            let test = self.apart(a, b)?;
            apart = Some(match apart {
                Some(others) => self.op2(I::And, others, test)?,
                None => test,
            });
        }
        Ok(apart)
    }

    /// Gives up copies that are loaded in these instructions, of which there will be versions, and stored after them: only
    /// components are handed on.
    pub fn part_copies(&mut self, insts: &[Inst]) {
        let copies = &mut self.versioning.copies;
        if copies.of.is_empty() {
            return;
        }
        let here: HashSet<Inst> = insts.iter().copied().collect();
        let parted = |copied: &Copied| {
            let loaded = copied.late || !copied.rows.is_empty();
            let is_here = |a: &Access| here.contains(&a.inst);
            !loaded && copied.loads.iter().any(is_here) && !copied.stores.iter().all(is_here)
        };
        let all = &copies.all;
        copies.of.retain(|_, n| !parted(&all[*n]));
    }

    /// True for the accesses of a copy.
    pub fn is_copied(&self, inst: Inst) -> bool {
        self.versioning.copies.of.contains_key(&inst)
    }

    /// Has the scattered copies of these instructions loaded when they are stored.
    pub fn copy_late(&mut self, insts: &[Inst]) {
        for i in insts {
            if let Some(n) = self.scattered_copy(*i) {
                self.versioning.copies.all[n].late = true;
            }
        }
    }

    /// The copy that a load belongs to, if it is loaded there, from any addresses, to lines of the cache. Many loads and then many
    /// stores take longer than a line after the other.
    fn scattered_copy(&self, load: Inst) -> Option<usize> {
        let n = *self.versioning.copies.of.get(&load)?;
        let copied = &self.versioning.copies.all[n];
        let early = !copied.late && copied.rows.is_empty();
        let lines = copied.stores[0].kind == Kind::Packed && copied.loads[0].stride.is_none();
        (early && lines && copied.loads[0].inst == load).then_some(n)
    }

    /// A record that is inside.
    fn record(&self, inst: Inst) -> Option<Access> {
        let (access, _) = self.versioning.inside.get(&inst)?;
        let record = self.has_vec4(access.access, access.lanes) && access.kind != Kind::Same;
        record.then_some(*access)
    }

    /// The load and the store, if that is what the store writes and nothing else reads it.
    fn copied(&self, inst: Inst, insts: &[Inst]) -> Option<(Access, Access)> {
        let f = self.f;
        let store = self.record(inst).filter(|a| !a.load)?;
        let data = Self::data_args(store.access.space, &f.inst(inst).args);
        let ValueDef::Result(from, 0) = f.def(*data.first()?) else {
            return None;
        };
        let load = self
            .record(from)
            .filter(|a| a.load && a.lanes == store.lanes)?;
        let once = |v: &Value| self.uses.get(v.0 as usize) == Some(&1);
        let undef = f.inactive_undef.contains(&from) || self.is_full(f.inst(from).args[0]);
        let free = ![from, inst]
            .iter()
            .any(|i| self.versioning.copies.of.contains_key(i));
        let all = f.inst(from).results.as_slice() == data && data.iter().all(once);
        (all && undef && free && insts.contains(&from)).then_some((load, store))
    }

    /// True if copies can be one, of longer records: they are side by side, nothing happens between the loads, and between the
    /// stores only what writes elsewhere.
    fn one_copy(&self, pairs: &[(Access, Access)], insts: &[Inst]) -> bool {
        let (load, store) = pairs[0];
        let bytes = pairs.len() as i64 * RECORD;
        let far = |a: &Access| a.stride.is_some_and(|s| s.saturating_abs() >= bytes);
        let in_line = |first: &Access, a: &Access, n: i64| {
            first.reach.is_beside(&a.reach)
                && first.stride == a.stride
                && first.reach.at.checked_add(n * RECORD) == Some(a.reach.at)
        };
        let mut numbered = pairs.iter().zip(0..);
        if !far(&store)
            || !numbered.all(|((l, s), n)| in_line(&load, l, n) && in_line(&store, s, n))
        {
            return false;
        }
        let loads: Vec<Inst> = pairs.iter().map(|(l, _)| l.inst).collect();
        let stores: Vec<Inst> = pairs.iter().map(|(_, s)| s.inst).collect();
        let op = |i: &Inst| &self.f.inst(*i).op;
        let harmless = |i: &Inst| !op(i).has_effect() || matches!(op(i), Op::Load(_));
        let elsewhere = |i: &Inst| {
            let known = self.versioning.inside.get(i).filter(|(a, _)| !a.load);
            !op(i).has_effect()
                || stores.contains(i)
                || known.is_some_and(|(a, _)| pairs.iter().all(|(_, s)| apart(a, s)))
        };
        between(insts, &loads).iter().all(harmless) && between(insts, &stores).iter().all(elsewhere)
    }

    /// A load that is inside.
    pub fn load_inside(
        &mut self,
        a: &Access,
        at: At<'c>,
        args: &[Value],
        out: &[Value],
    ) -> EmitResult<()> {
        if let Some(&n) = self.versioning.copies.of.get(&a.inst) {
            return self.load_copy(n);
        }
        let mut parts = match (at, a.kind) {
            (At::Strided(from), Kind::Same) => self.read_same(a.access, a.lanes, from)?,
            (At::Strided(from), Kind::Packed) => self.read_packed(a.access, a.lanes, from)?,
            _ if self.is_record(a) => self.read_vec4(a, at)?,
            (At::Strided(from), _) => {
                self.read_spread(a.access, a.lanes, from, a.stride.unwrap_or(0))?
            }
            (At::Lanes(..), _) => vec![self.read_lanes(a, at)?],
        };
        if !self.f.inactive_undef.contains(&a.inst) && !self.is_full(args[0]) {
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

    /// A store that is inside.
    pub fn store_inside(&mut self, a: &Access, at: At<'c>, args: &[Value]) -> EmitResult<()> {
        if let Some(&n) = self.versioning.copies.of.get(&a.inst) {
            return self.store_copy(n, a.inst);
        }
        let data: Vec<V> = Self::data_args(a.access.space, args)
            .iter()
            .map(|&v| self.get(v))
            .collect::<EmitResult<_>>()?;
        match (at, data.as_slice()) {
            (At::Strided(to), &[v]) if a.kind == Kind::Packed && !self.is_full(args[0]) => {
                let mask = self.get(args[0])?;
                self.store_masked(mask, v, to)
            }
            _ if self.is_record(a) => self.write_vec4(a, at, &data),
            (At::Strided(to), data) => {
                let stride = (a.kind == Kind::Spread).then_some(a.stride.unwrap_or(0));
                self.write_at(a.access, a.lanes, stride, data, to)
            }
            _ => Err("a store to any addresses that is no record".into()),
        }
    }

    /// Where the record of a lane is.
    fn lane_pointer(&self, a: &Access, at: At<'c>, lane: u16) -> EmitResult<PointerValue<'c>> {
        match at {
            At::Strided(first) => {
                let stride = a.stride.ok_or("no distance between lanes")?;
                self.offset_const(first, i64::from(lane) * stride)
            }
            At::Lanes(base, words, distance) => {
                let offset = self.lane_offset(words, a.lanes, lane)?;
                let record = self.offset(base, offset)?;
                self.offset_const(record, distance)
            }
        }
    }

    /// Offsets of an even number of lanes as words of 64 bits. Two of 32 bits leave a vector together, which is half as many
    /// moves between register files, of which there is one at a time.
    pub fn lane_words(&self, offsets: V<'c>, ty: Ty) -> EmitResult<V<'c>> {
        let words = u32::from(ty.lanes) * ty.lane.bytes() / 8;
        self.cast_bits(offsets, self.int(64).vec_type(words).into())
    }

    /// The offset of a lane from words of them.
    pub fn lane_offset(&self, words: V<'c>, lanes: u16, lane: u16) -> EmitResult<IntValue<'c>> {
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
    fn read_lanes(&mut self, a: &Access, at: At<'c>) -> EmitResult<V<'c>> {
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

    /// True where a load for each lane is faster than a gather, once all are known to be inside.
    pub fn reads_lanes(&self, access: MemAccess, lanes: u16) -> bool {
        let gather = self.options.tuning.gather == Gather::Auto && self.gathers(access, lanes);
        gather && access.comps == 1 && self.cpu.slow_gathers && self.few_gathers
    }

    fn where_is(&self, inst: Inst) -> EmitResult<At<'c>> {
        let known = self.versioning.inside.get(&inst);
        Ok(known.ok_or("a copy that is not inside")?.1)
    }

    /// Loads all records of a copy, with its first load.
    fn load_copy(&mut self, n: usize) -> EmitResult<()> {
        let copied = &self.versioning.copies.all[n];
        if !copied.rows.is_empty() || copied.late {
            return Ok(());
        }
        let lanes = 0..copied.loads[0].lanes;
        let rows = lanes.map(|lane| self.load_row(n, lane));
        let rows = rows.collect::<EmitResult<_>>()?;
        self.versioning.copies.all[n].rows = rows;
        Ok(())
    }

    /// Loads the record of a copy's lane.
    fn load_row(&self, n: usize, lane: u16) -> EmitResult<V<'c>> {
        let copied = &self.versioning.copies.all[n];
        let (first, bytes) = (copied.loads[0], copied.loads.len() as i64 * RECORD);
        let ty = self.exact(Ty::vector(Lane::I32, bytes as u16 / 4));
        let from = self.lane_pointer(&first, self.where_is(first.inst)?, lane)?;
        self.load(ty, from)
    }

    /// Stores all records of a copy, with its last store.
    fn store_copy(&mut self, n: usize, inst: Inst) -> EmitResult<()> {
        let copied = &self.versioning.copies.all[n];
        if copied.last != inst {
            return Ok(());
        }
        let (first, rows) = (copied.stores[0], copied.rows.clone());
        let at = self.where_is(first.inst)?;
        // Records that fill lines of the cache are written a line at a time.
        let together = if first.kind == Kind::Packed { LINE } else { 1 };
        for lane in (0..first.lanes).step_by(usize::from(together)) {
            let row = |lane: u16| match rows.get(usize::from(lane)) {
                Some(&row) => Ok(row),
                None => self.load_row(n, lane),
            };
            let rows = (lane..lane + together)
                .map(row)
                .collect::<EmitResult<_>>()?;
            let line = self.end_to_end(rows, RECORD as u16 / 4)?;
            let to = self.lane_pointer(&first, at, lane)?;
            self.store(line, to)?;
        }
        Ok(())
    }

    /// Components of records.
    fn read_vec4(&mut self, a: &Access, at: At<'c>) -> EmitResult<Vec<V<'c>>> {
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

    /// Records of components, each stored by itself, in the order of the lanes.
    fn write_vec4(&mut self, a: &Access, at: At<'c>, data: &[V<'c>]) -> EmitResult<()> {
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
    pub fn end_to_end(&self, mut parts: Vec<V<'c>>, mut width: u16) -> EmitResult<V<'c>> {
        while parts.len() > 1 {
            let ends: Vec<_> = (0..u32::from(2 * width)).map(Some).collect();
            let pairs = parts.chunks(2);
            parts = pairs
                .map(|pair| self.shuffle(pair[0], pair.get(1).copied(), &ends))
                .collect::<EmitResult<_>>()?;
            width *= 2;
        }
        parts.pop().ok_or_else(|| "no records".into())
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
            _ => Err("records of another size".into()),
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

    /// True where the enabled lanes of a packed store can be stored as they are.
    pub fn stores_masked(&self, access: MemAccess, lanes: u16) -> bool {
        self.cpu.avx512 && access.comps == 1 && matches!(lanes, 8 | 16 | 32)
    }

    /// Stores the enabled lanes of a vector.
    pub fn store_masked(&mut self, mask: V<'c>, v: V<'c>, to: PointerValue<'c>) -> EmitResult<()> {
        let callee = self.declare("llvm.masked.store", &[v.get_type(), self.ptr_type()])?;
        self.call_masked(callee, &[v, to.into()], &[mask])?;
        Ok(())
    }
}

/// From the first to the last of some instructions.
fn between<'a>(insts: &'a [Inst], some: &[Inst]) -> &'a [Inst] {
    let member = |i: &Inst| some.contains(i);
    let first = insts.iter().position(member);
    let last = insts.iter().rposition(member);
    match (first, last) {
        (Some(first), Some(last)) => &insts[first..=last],
        _ => &[],
    }
}
