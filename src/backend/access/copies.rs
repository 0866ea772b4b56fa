//! Copies from memory to memory: lanes of 16 bytes that are loaded, stored, and used for nothing else.
//!
//! Such lanes are not transposed; they stay as they were read. Lanes side by side are one copy.

use rustc_hash::FxHashSet;

use super::candidate::Access;
use super::consts;
use super::place::Place;
use super::plan::Planner;
use super::strided::StridedKind;
use crate::ssa::{Function, Inst, MemAccess, Op, Space, Value, ValueDef};

/// Bytes of a lane, which is one vector.
pub(in crate::backend) const VEC4_BYTES: i64 = 16;

/// Vectors side by side that are copied as one, most of them first.
const SIDE_BY_SIDE: [usize; 2] = [4, 2];

/// Number of a copy in its plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(in crate::backend) struct CopyId(pub(super) usize);

/// A copy from memory to memory.
#[derive(Clone, Debug)]
pub(in crate::backend) struct Copied {
    /// By address.
    pub loads: Vec<Access>,
    /// In the same order.
    pub stores: Vec<Access>,
    /// The last store of the program.
    pub last: Inst,
}

impl Copied {
    /// Bytes of each lane.
    pub(in crate::backend) const fn bytes(&self) -> i64 {
        self.loads.len() as i64 * VEC4_BYTES
    }
}

/// What must have no byte in common for copies to be loaded where they are stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::backend) enum Apart {
    /// The surfaces of each pair.
    Surfaces(Vec<(Place, Place)>),
    /// What a load of lanes of [`VEC4_BYTES`] reads in device memory, at any addresses, and what the store of its copy writes.
    Lanes {
        /// The load.
        load: Inst,
        /// The store, to lanes side by side.
        store: Inst,
    },
}

/// True if two stores of affine addresses do not write one byte both: they are apart as a whole, or in every stride.
fn apart(a: &Access, b: &Access) -> bool {
    let (Some(s), Some(t)) = (a.stride(), b.stride()) else {
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

/// Operands of a store after mask, address and surface.
fn data_args(f: &Function, inst: Inst, space: Space) -> &[Value] {
    &f.inst(inst).args[2 + usize::from(space.has_surface())..]
}

impl Planner<'_> {
    /// Finds copies; all accesses in question are inside.
    pub(super) fn plan_copies(&mut self, insts: &[Inst]) {
        if !self.limits.vec4_versions {
            return;
        }
        let mut pairs: Vec<(Access, Access)> = insts
            .iter()
            .filter_map(|&i| self.copied(i, insts))
            .collect();
        pairs.sort_by_key(|(load, _)| (load.reach.root, load.reach.at));
        let mut left = pairs.as_slice();
        while !left.is_empty() {
            let mut lengths = SIDE_BY_SIDE.into_iter();
            let whole = lengths.find(|&n| left.get(..n).is_some_and(|p| self.one_copy(p, insts)));
            let (pairs, others) = left.split_at(whole.unwrap_or(1));
            left = others;
            let (loads, stores): (Vec<Access>, Vec<Access>) = pairs.iter().copied().unzip();
            let id = CopyId(self.copies.len());
            let written = |i: &&Inst| stores.iter().any(|s| s.inst == **i);
            let Some(&last) = insts.iter().rev().find(written) else {
                continue;
            };
            let members = loads.iter().chain(&stores).map(|a| (a.inst, id));
            self.known.copies.extend(members);
            self.copies.push(Copied {
                loads,
                stores,
                last,
            });
        }
    }

    /// What must be apart for no store of these instructions to write where their scattered copies come from; `None` where there are no
    /// such copies, or no test can tell.
    pub(super) fn copies_apart(&self, insts: &[Inst]) -> Option<Apart> {
        let (mut loads, mut stores) = (Vec::new(), Vec::new());
        for &i in insts {
            match self.f.inst(i).op {
                Op::Load(access) if self.scattered_copy(i).is_some() => loads.push((i, access)),
                Op::Store(access) => stores.push((i, access)),
                ref op if op.has_effect() && !matches!(op, Op::Load(_)) => return None,
                _ => {}
            }
        }
        if let (&[(load, from)], &[(store, to)]) = (loads.as_slice(), stores.as_slice())
            && from.space.is_flat()
            && to.space.is_flat()
        {
            let copied = self.copies.get(self.scattered_copy(load)?.0)?;
            let alone = copied.loads.len() == 1 && copied.last == store;
            return alone.then_some(Apart::Lanes { load, store });
        }
        let surfaces = |accesses: &[(Inst, MemAccess)]| -> Option<Vec<Place>> {
            let place = |&(i, access): &(Inst, MemAccess)| match access.space {
                Space::Surface => {
                    let index = consts::scalar(self.f, self.f.inst(i).args[2])?;
                    Some(Place::Surface(index as u8))
                }
                _ => None,
            };
            let mut places: Vec<Place> = accesses.iter().map(place).collect::<Option<_>>()?;
            let mut seen = FxHashSet::default();
            places.retain(|&place| seen.insert(place));
            Some(places)
        };
        let (from, to) = (surfaces(&loads)?, surfaces(&stores)?);
        let pairs = from
            .iter()
            .flat_map(|&a| to.iter().map(move |&b| (a, b)))
            .collect::<Vec<_>>();
        let known = !pairs.is_empty() && pairs.iter().all(|(a, b)| a != b);
        known.then_some(Apart::Surfaces(pairs))
    }

    /// Gives up copies that are loaded in these instructions, of which there will be versions, and stored after them: only
    /// components are handed on.
    pub(super) fn part_copies(&mut self, insts: &[Inst]) {
        let (known, copies) = (&mut self.known, &self.copies);
        if known.copies.is_empty() {
            return;
        }
        let here: FxHashSet<Inst> = insts.iter().copied().collect();
        let (late, loaded) = (&known.late, &known.loaded);
        let parted = |id: CopyId| {
            let done = late.contains(&id) || loaded.contains(&id);
            let is_here = |a: &Access| here.contains(&a.inst);
            let copied = &copies[id.0];
            !done && copied.loads.iter().any(is_here) && !copied.stores.iter().all(is_here)
        };
        known.copies.retain(|_, id| !parted(*id));
    }

    /// Has the scattered copies of these instructions loaded when they are stored.
    pub(super) fn load_late(&mut self, insts: &[Inst]) {
        for &i in insts {
            self.known.late.extend(self.scattered_copy(i));
        }
    }

    /// The copy that a load belongs to, if it is loaded there, from any addresses, to lines of the cache. Many loads and then many
    /// stores take longer than a line after the other.
    fn scattered_copy(&self, load: Inst) -> Option<CopyId> {
        let id = *self.known.copies.get(&load)?;
        let copied = self.copies.get(id.0)?;
        let early = !self.known.late.contains(&id) && !self.known.loaded.contains(&id);
        let lines =
            copied.stores[0].kind == StridedKind::Packed && copied.loads[0].strided.is_none();
        (early && lines && copied.loads[0].inst == load).then_some(id)
    }

    /// Lanes of 16 bytes that are inside.
    fn vec4(&self, inst: Inst) -> Option<Access> {
        let access = self.known.inside.get(&inst)?;
        let vec4 = self.limits.is_vec4(access.access, access.lanes);
        (vec4 && access.kind != StridedKind::Same).then_some(*access)
    }

    /// The load and the store, if that is what the store writes and nothing else reads it.
    fn copied(&self, inst: Inst, insts: &[Inst]) -> Option<(Access, Access)> {
        let f = self.f;
        let store = self.vec4(inst).filter(|a| !a.load)?;
        let data = data_args(f, inst, store.access.space);
        let ValueDef::Result(from, 0) = f.def(*data.first()?) else {
            return None;
        };
        let load = self
            .vec4(from)
            .filter(|a| a.load && a.lanes == store.lanes)?;
        let once = |v: &Value| self.uses.get(v.0 as usize) == Some(&1);
        let undef = f.inactive_undef.contains(&from) || self.is_full(f.inst(from).args[0]);
        let free = ![from, inst]
            .iter()
            .any(|i| self.known.copies.contains_key(i));
        let all = f.inst(from).results.as_slice() == data && data.iter().all(once);
        (all && undef && free && insts.contains(&from)).then_some((load, store))
    }

    /// True if copies can be one, of longer lanes: they are side by side, nothing happens between the loads, and between the
    /// stores only what writes elsewhere.
    fn one_copy(&self, pairs: &[(Access, Access)], insts: &[Inst]) -> bool {
        let (load, store) = pairs[0];
        let bytes = pairs.len() as i64 * VEC4_BYTES;
        let far = |a: &Access| a.stride().is_some_and(|s| s.saturating_abs() >= bytes);
        let in_line = |first: &Access, a: &Access, n: i64| {
            first.reach.is_beside(&a.reach)
                && first.stride() == a.stride()
                && first.reach.at.checked_add(n * VEC4_BYTES) == Some(a.reach.at)
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
            let known = self.known.inside.get(i).filter(|a| !a.load);
            !op(i).has_effect()
                || stores.contains(i)
                || known.is_some_and(|a| pairs.iter().all(|(_, s)| apart(a, s)))
        };
        between(insts, &loads).iter().all(harmless) && between(insts, &stores).iter().all(elsewhere)
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
