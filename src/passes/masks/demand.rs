//! Demanded lanes: under which mask the lanes of each vector are observed.
//!
//! A backward fixed point from effects and branches. The demand of a value is nothing, the lanes of one
//! mask, or all lanes; it starts at nothing and only grows, so that values carried around a loop
//! are demanded no further than what is outside reads them. A mask that is not defined at a block's
//! start is replaced by one that contains it, or by all lanes, when demand crosses an edge.
//!
//! Shuffles that pick every n-th lane or interleave vectors, and views of a vector in other lanes, pass demand on: a lane of
//! the mask then stands for several elements. Compilers of kernels treat 64-bit lanes as pairs of 32-bit ones so.
//!
//! Of the second side of a select, lanes outside its mask are observed: the demand leaves these masks out. So registers that
//! both sides of a branch write are not carried past it. On an edge where the mask has no lane, nothing is observed
//! ([`edges`]).
//!
//! Afterwards `select(m, a, b)` whose demanded lanes all lie in `m` is `a`, and `x & m` as well is `x`; loads of which
//! nothing observes disabled lanes are noted in [`Function::inactive_undef`].

mod edges;

use rustc_hash::{FxHashMap, FxHashSet};

use super::facts::{Facts, Part, Without, window};
use crate::passes::edit::uniform_const;
use crate::ssa::dom::DomTree;
use crate::ssa::remark::Decision;
use crate::ssa::{BinOp, Block, Function, Inst, InstData, Lane, Op, Space, UnOp, Value, ValueDef};

/// Observed lanes of a vector; of a scalar, nothing or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Demand {
    Nothing,
    Under(Seen),
    All,
}

/// Elements that are observed at most where lanes of a mask are enabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Seen {
    /// The lane of element 0, and those after it.
    part: Part,
    /// The same lanes of masks whose lanes are not observed.
    without: Without,
    /// Elements that a lane stands for: element `e` is that of lane `part.first + e / per`.
    per: u16,
}

impl Seen {
    /// One element for each lane.
    fn lanes(part: Part) -> Seen {
        Seen {
            part,
            without: [None; 2],
            per: 1,
        }
    }

    /// The mask alone.
    fn whole(self) -> Seen {
        Seen {
            without: [None; 2],
            ..self
        }
    }

    /// The mask, if each lane stands for one element.
    fn one_each(self) -> Option<Part> {
        (self.per == 1).then_some(self.part)
    }
}

/// Numbers of elements that a lane may stand for.
const PER: [u16; 4] = [1, 2, 4, 8];

/// Masks that contain another one, of those that are compared where two demands meet.
const NEAREST: usize = 8;
/// Times that the demand of a value may grow before it is taken to be all lanes.
const GROWTH: u8 = 6;

/// Drops selects and conjunctions that nothing can observe.
pub(super) fn run(f: &mut Function, dom: &DomTree, facts: &mut Facts) -> usize {
    let mut pass = Pass {
        demand: vec![Demand::Nothing; f.values.len()],
        grown: vec![0; f.values.len()],
        place: places(f),
        complement: complements(f, dom),
        tested: tested(f, dom),
        args: vec![Vec::new(); f.values.len()],
        work: Vec::new(),
        f,
        dom,
        facts,
    };
    pass.roots();
    while let Some(v) = pass.work.pop() {
        match pass.f.def(v) {
            ValueDef::Result(i, _) => pass.operands(i, pass.demand[v.0 as usize]),
            ValueDef::Param(..) => pass.edges(v),
            ValueDef::Alias(to) => pass.raise(to, pass.demand[v.0 as usize]),
        }
    }
    let replacements = pass.replacements();
    let (undef, merged) = pass.undef_loads();
    let kept = pass.kept_selects(&replacements);
    let unobserved = pass.unobserved_arguments();
    remark(f, &replacements, &kept, (&undef, &merged));
    f.inactive_undef.extend(undef);
    for &(from, to) in &replacements {
        f.replace(from, to);
    }
    unobserved.iter().for_each(|argument| argument.clear(f));
    replacements.len() + unobserved.len()
}

fn is_registers_load(op: &Op) -> bool {
    matches!(op, Op::Load(access) if access.space == Space::Regs)
}

/// Lanes that a memory access sees.
fn enabled(access: &InstData) -> Demand {
    Demand::Under(Seen::lanes(Part {
        mask: access.args[0],
        first: 0,
    }))
}

/// Demand of a vector by that of a view of it in other lanes.
fn viewed(d: Demand, [from, to]: [u16; 2]) -> Demand {
    let Demand::Under(seen) = d else {
        return d;
    };
    let per = match from < to {
        // An element of the vector is several of the view.
        true if seen.per.is_multiple_of(to / from) => seen.per / (to / from),
        true => return Demand::All,
        false => seen.per * (from / to),
    };
    match PER.contains(&per) {
        true => Demand::Under(Seen { per, ..seen }),
        false => Demand::All,
    }
}

/// Notes what was dropped and what was not.
fn remark(
    f: &mut Function,
    dropped: &[(Value, Value)],
    kept: &[Value],
    (undef, merged): (&[Inst], &[Inst]),
) {
    for &(v, _) in dropped {
        let select = f.def_inst(v).is_some_and(|data| data.op == Op::Select);
        let what = if select {
            "a select is dropped: its other side is not observable"
        } else {
            "a mask is not narrowed: the lanes that it would lose are not observable"
        };
        f.remark_value(v, Decision::MaskUsed(what));
    }
    for &v in kept {
        let what = "a select under an execution mask stays: its other side may be seen";
        f.remark_value(v, Decision::MaskMissed(what));
    }
    for &i in undef {
        if uniform_const(f, f.resolve(f.inst(i).args[0])) == Some(1) {
            continue;
        }
        let what = "disabled lanes of the load may hold anything";
        f.remark(i, Decision::MaskUsed(what));
    }
    for &i in merged {
        let what = "disabled lanes of the load may be seen, and are set to zero";
        f.remark(i, Decision::MaskMissed(what));
    }
}

struct Pass<'a> {
    f: &'a Function,
    dom: &'a DomTree,
    facts: &'a mut Facts,
    demand: Vec<Demand>,
    grown: Vec<u8>,
    /// Block and position of definitions.
    place: Vec<Option<(Block, u32)>>,
    /// Masks whose complement is computed, and that.
    complement: FxHashMap<Value, Value>,
    /// Masks that a branch tests for lanes, whole or as two halves.
    tested: FxHashSet<Value>,
    /// Arguments of each parameter, with the whole argument list they come from.
    args: Vec<Vec<(Block, usize)>>,
    work: Vec<Value>,
}

fn places(f: &Function) -> Vec<Option<(Block, u32)>> {
    let mut places = vec![None; f.values.len()];
    for &b in &f.order {
        for p in &f.block(b).params {
            places[p.0 as usize] = Some((b, 0));
        }
        for (n, &i) in f.block(b).insts.iter().enumerate() {
            for r in &f.inst(i).results {
                places[r.0 as usize] = Some((b, n as u32 + 1));
            }
        }
    }
    places
}

/// Masks whose complement is computed, each with the first in the order of blocks.
fn complements(f: &Function, dom: &DomTree) -> FxHashMap<Value, Value> {
    let mut out = FxHashMap::default();
    for &i in dom.rpo().iter().flat_map(|&b| &f.block(b).insts) {
        let data = f.inst(i);
        if data.op == Op::Unary(UnOp::Not) && f.ty(data.results[0]).lane == Lane::I1 {
            out.entry(f.resolve(data.args[0]))
                .or_insert(data.results[0]);
        }
    }
    out
}

/// Masks that a branch tests for lanes, and the halves that such a mask is put together from.
fn tested(f: &Function, dom: &DomTree) -> FxHashSet<Value> {
    let conditions = dom
        .rpo()
        .iter()
        .filter_map(|&b| f.block(b).term.condition());
    let tests = conditions.filter_map(|v| f.def_inst(f.resolve(v)));
    let tests = tests.filter(|data| data.op == Op::MaskAny);
    let mut all: FxHashSet<Value> = tests.map(|data| f.resolve(data.args[0])).collect();
    let halves = all.iter().flat_map(|&mask| {
        let half = f.ty(mask).lanes / 2;
        let parts = [0, half].map(|first| window(f, Part { mask, first }, half));
        parts.map(|part| (half, f.resolve(part.mask)))
    });
    let halves = halves.filter(|&(half, mask)| f.ty(mask).lanes == half);
    let halves: Vec<Value> = halves.map(|(_, mask)| mask).collect();
    all.extend(halves);
    all
}

impl Pass<'_> {
    fn raise(&mut self, v: Value, by: Demand) {
        let v = self.f.resolve(v);
        let n = v.0 as usize;
        let by = match by {
            Demand::Under(_) if self.f.ty(v).is_scalar() => Demand::All,
            Demand::Under(seen) => self.narrowed(seen, self.f.ty(v).lanes),
            other => other,
        };
        let mut joined = self.join(self.demand[n], by, self.f.ty(v).lanes);
        if joined == self.demand[n] {
            return;
        }
        self.grown[n] += 1;
        if self.grown[n] > GROWTH {
            joined = self.widest(joined);
        }
        self.demand[n] = joined;
        self.work.push(v);
    }

    /// The dispatch mask, where a demand is a part of it and smaller; everything, where not.
    fn widest(&self, d: Demand) -> Demand {
        let Demand::Under(seen) = d else {
            return Demand::All;
        };
        let whole = self.facts.dispatched(seen.part);
        match whole.filter(|whole| self.above(*whole, seen.part)) {
            Some(part) => Demand::Under(Seen {
                part,
                ..seen.whole()
            }),
            None => Demand::All,
        }
    }

    /// The same demand by the mask that it is a part of; everything, if the mask has no lane for some element.
    fn narrowed(&self, seen: Seen, elements: u16) -> Demand {
        let lanes = elements.div_ceil(seen.per);
        let known = |part: Part| {
            let part = window(self.f, self.resolved(part), lanes);
            (part.first + lanes <= self.f.ty(part.mask).lanes).then_some(part)
        };
        match known(seen.part) {
            Some(part) => Demand::Under(Seen {
                part,
                without: seen.without.map(|but| but.and_then(known)),
                ..seen
            }),
            None => Demand::All,
        }
    }

    fn resolved(&self, part: Part) -> Part {
        Part {
            mask: self.f.resolve(part.mask),
            ..part
        }
    }

    fn join(&mut self, a: Demand, b: Demand, lanes: u16) -> Demand {
        match (a, b) {
            (Demand::Nothing, d) | (d, Demand::Nothing) => d,
            (Demand::All, _) | (_, Demand::All) => Demand::All,
            (Demand::Under(a), Demand::Under(b)) if a == b => Demand::Under(a),
            (Demand::Under(a), Demand::Under(b)) if a.per != b.per => Demand::All,
            (Demand::Under(seen), Demand::Under(other)) => {
                let lanes = lanes.div_ceil(seen.per);
                for (wide, narrow) in [(seen, other), (other, seen)] {
                    if self.covers(wide, narrow, lanes) {
                        return Demand::Under(wide);
                    }
                }
                let (a, b) = (seen.part, other.part);
                // A common superset: one of the two, or a mask that one was made from.
                let mut candidates = vec![a, b];
                self.supersets(a, lanes, NEAREST, &mut candidates);
                self.supersets(b, lanes, 2 * NEAREST, &mut candidates);
                // After many joins the way to it is longer than what is looked at.
                candidates.extend(self.facts.ceilings(a));
                // Execution masks first: a complement has lanes that were not dispatched.
                candidates.sort_by_key(|&c| self.facts.dispatched(c).is_none());
                let found = candidates.into_iter().find(|&c| {
                    self.above(c, a)
                        && self.above(c, b)
                        && self.facts.subset(self.f, a, c, lanes)
                        && self.facts.subset(self.f, b, c, lanes)
                });
                found.map_or(Demand::All, |part| {
                    Demand::Under(Seen {
                        part,
                        ..seen.whole()
                    })
                })
            }
        }
    }

    /// True when all that the narrow demand observes is observed by the wide one, too, whose masks are defined at that moment.
    fn covers(&mut self, wide: Seen, narrow: Seen, lanes: u16) -> bool {
        let left_out = wide.without.into_iter().flatten();
        let mut masks = left_out.chain([wide.part]);
        masks.all(|mask| self.above(mask, narrow.part))
            && self.is_within(narrow, wide.part, lanes)
            && wide.without.into_iter().flatten().all(|but| {
                let same = narrow.without.contains(&Some(but));
                same || self.facts.disjoint(self.f, narrow.part, but, lanes)
            })
    }

    /// True when all observed lanes are lanes of a mask.
    fn is_within(&mut self, seen: Seen, mask: Part, lanes: u16) -> bool {
        let (f, facts) = (self.f, &mut *self.facts);
        facts.subset(f, seen.part, mask, lanes)
            || seen.without != [None; 2]
                && facts.subset_without(f, seen.part, seen.without, mask, lanes)
    }

    /// True when `a` is defined wherever `b` is, so that both speak of the same moment.
    fn above(&self, a: Part, b: Part) -> bool {
        let place = |p: Part| self.place[p.mask.0 as usize];
        match (place(a), place(b)) {
            (Some((x, n)), Some((y, m))) if x == y => n <= m || n == 0,
            (Some((x, _)), Some((y, _))) => self.dom.dominates(x, y),
            _ => false,
        }
    }

    /// Adds masks that contain `part`, nearest first, until `out` has about `most`.
    fn supersets(&self, part: Part, lanes: u16, most: usize, out: &mut Vec<Part>) {
        let (mut at, mut of) = (out.len(), part);
        loop {
            let both = self.f.def_inst(of.mask);
            let both = both.filter(|data| data.op == Op::Binary(BinOp::And));
            let both = both.into_iter().flat_map(|data| &data.args);
            let wider = both.map(|&a| self.f.resolve(a));
            for mask in wider.chain(self.facts.supersets(of.mask)) {
                let wider = window(self.f, Part { mask, ..of }, lanes);
                if !out.contains(&wider) {
                    out.push(wider);
                }
            }
            match out.get(at) {
                Some(&next) if out.len() < most => of = next,
                _ => return,
            }
            at += 1;
        }
    }

    /// What effects and branches observe.
    fn roots(&mut self) {
        for &b in self.dom.rpo() {
            let block = self.f.block(b);
            for &i in &block.insts {
                if self.f.inst(i).op.has_effect() {
                    self.effect(i);
                }
            }
            if let Some(v) = block.term.condition() {
                self.raise(v, Demand::All);
            }
            for (n, call) in block.term.targets().into_iter().enumerate() {
                for &p in &self.f.block(call.block).params {
                    self.args[p.0 as usize].push((b, n));
                }
            }
        }
        // Edges were not all known when the first demands arrived.
        self.work
            .extend((0..self.demand.len() as u32).map(Value).filter(|v| {
                let param = matches!(self.f.def(*v), ValueDef::Param(..));
                param && self.demand[v.0 as usize] != Demand::Nothing
            }));
    }

    /// Memory accesses see addresses and data of their enabled lanes only.
    fn effect(&mut self, i: Inst) {
        let data = self.f.inst(i);
        let under = match data.op {
            // A load from registers reports nothing: of its addresses, lanes count whose result does.
            Op::Load(_) if is_registers_load(&data.op) => Demand::Nothing,
            Op::Load(_) | Op::Store(_) | Op::Atomic(_) | Op::Image(_) => enabled(data),
            _ => Demand::All,
        };
        for (n, &a) in data.args.iter().enumerate() {
            self.raise(a, if n == 0 { Demand::All } else { under });
        }
    }

    /// Passes the demand of a result on to the operands.
    fn operands(&mut self, i: Inst, d: Demand) {
        let data = self.f.inst(i);
        if is_registers_load(&data.op) {
            let seen = self.loaded(i, d);
            self.raise(data.args[1], seen);
        }
        if data.op.has_effect() {
            return;
        }
        let result = data.results[0];
        match &data.op {
            Op::Select if !self.f.ty(data.args[0]).is_scalar() => self.select(i, d),
            Op::Binary(BinOp::And) if self.f.ty(result).lane == Lane::I1 => self.and(i, d),
            op if op.is_lane_wise() => {
                for &a in &data.args {
                    self.raise(a, d);
                }
            }
            Op::Bitcast => {
                let lanes = [data.args[0], result].map(|v| self.f.ty(v).lanes);
                self.raise(data.args[0], viewed(d, lanes));
            }
            Op::Shuffle(indices) => self.shuffle(&data.args, indices, d),
            _ => {
                for &a in &data.args {
                    self.raise(a, Demand::All);
                }
            }
        }
    }

    /// Lanes of the addresses of a load that are observed: the enabled ones, or of these the ones of which the result is.
    fn loaded(&mut self, i: Inst, d: Demand) -> Demand {
        let data = self.f.inst(i);
        let mask = Part {
            mask: self.f.resolve(data.args[0]),
            first: 0,
        };
        let lanes = self.f.ty(mask.mask).lanes;
        match d {
            Demand::Nothing => Demand::Nothing,
            Demand::Under(seen) if seen.per == 1 && self.is_within(seen, mask, lanes) => d,
            _ => enabled(data),
        }
    }

    /// Of each operand, the lanes that are picked where the result is observed.
    fn shuffle(&mut self, args: &[Value], indices: &[u16], d: Demand) {
        let mut first = 0;
        for &a in args {
            let lanes = self.f.ty(a).lanes;
            let range = first..first + lanes;
            let picked = indices.iter().zip(0..).filter(|(i, _)| range.contains(i));
            let picked: Vec<(u16, u16)> = picked.map(|(i, n)| (i - first, n)).collect();
            first += lanes;
            if picked.is_empty() {
                continue;
            }
            let demand = match d {
                Demand::Under(seen) => self.picked(seen, &picked, lanes),
                other => other,
            };
            self.raise(a, demand);
        }
    }

    /// Demand of a vector of which elements were put somewhere: pairs of an element and its new place.
    fn picked(&self, seen: Seen, picked: &[(u16, u16)], elements: u16) -> Demand {
        let lane = |place: u16| seen.part.first + place / seen.per;
        let fits = |per: u16| {
            let &(element, place) = picked.first()?;
            let first = lane(place).checked_sub(element / per)?;
            let same = |&(element, place): &(u16, u16)| first + element / per == lane(place);
            let inside = first + elements.div_ceil(per) <= self.f.ty(seen.part.mask).lanes;
            (inside && picked.iter().all(same)).then_some(Seen {
                part: Part { first, ..seen.part },
                without: [None; 2],
                per,
            })
        };
        PER.into_iter()
            .find_map(fits)
            .map_or(Demand::All, Demand::Under)
    }

    fn select(&mut self, i: Inst, d: Demand) {
        let &[m, a, b] = self.f.inst(i).args.as_slice() else {
            return;
        };
        self.raise(m, d);
        let lanes = self.f.ty(a).lanes;
        let mask = window(
            self.f,
            Part {
                mask: self.f.resolve(m),
                first: 0,
            },
            lanes,
        );
        let seen = match d {
            Demand::Under(seen) => seen.one_each(),
            _ => None,
        };
        let hidden = match d {
            Demand::Under(seen) if seen.per == 1 => self.is_within(seen, mask, lanes),
            _ => false,
        };
        // Of the first side, lanes of both masks; either contains them. An execution mask says more of what it was computed from.
        let first = match (d, seen) {
            (Demand::All, _) => Demand::Under(Seen::lanes(mask)),
            (Demand::Under(all), Some(_)) if self.leaves_out(all, mask, lanes) => Demand::Nothing,
            (_, Some(seen)) if self.facts.subset(self.f, mask, seen, lanes) => {
                Demand::Under(Seen::lanes(mask))
            }
            (_, Some(_)) if !hidden && self.narrows(mask.mask, 4) => {
                Demand::Under(Seen::lanes(mask))
            }
            _ => d,
        };
        self.raise(a, first);
        let second = match hidden {
            true => Demand::Nothing,
            false => self.outside(mask, (i, lanes), d),
        };
        self.raise(b, second);
    }

    /// True when no lane of a mask is observed.
    fn leaves_out(&mut self, seen: Seen, mask: Part, lanes: u16) -> bool {
        let mut masks = seen.without.into_iter().flatten();
        masks.any(|but| self.facts.subset(self.f, mask, but, lanes))
    }

    /// Demand of the second side of a select: lanes outside its mask, where the complement is known by a name.
    fn outside(&mut self, mask: Part, (select, lanes): (Inst, u16), d: Demand) -> Demand {
        let result = self.f.inst(select).results[0];
        let rest = self.complement.get(&mask.mask).map(|&mask_of_rest| Part {
            mask: mask_of_rest,
            ..mask
        });
        let place = |v: Value| self.place[v.0 as usize];
        let before = |rest: &Part| match (place(rest.mask), place(result)) {
            (Some((x, n)), Some((y, m))) => x == y && n < m || x != y && self.dom.dominates(x, y),
            _ => false,
        };
        let within = |pass: &mut Self, rest: Part| match d {
            Demand::All => true,
            Demand::Under(seen) => seen
                .one_each()
                .is_some_and(|seen| pass.facts.subset(pass.f, rest, seen, lanes)),
            Demand::Nothing => false,
        };
        match (rest.filter(before), d) {
            (Some(rest), _) if within(self, rest) => Demand::Under(Seen::lanes(rest)),
            (_, Demand::Under(seen)) if seen.per == 1 => {
                // The first ones are those that were left out last: where lanes come from, they are the nearest.
                let without = match seen.without {
                    [Some(but), _] if but == mask => seen.without,
                    [first, _] => [Some(mask), first],
                };
                Demand::Under(Seen { without, ..seen })
            }
            _ => d,
        }
    }

    /// Of one operand, only lanes in the other are seen; not of both at once.
    fn and(&mut self, i: Inst, d: Demand) {
        let &[x, y] = self.f.inst(i).args.as_slice() else {
            return;
        };
        let (x, y) = (self.f.resolve(x), self.f.resolve(y));
        let (seen, mask) = match (self.narrows(x, 4), self.narrows(y, 4)) {
            (true, false) => (y, x),
            (false, true) => (x, y),
            // The later one was computed under the earlier.
            (true, true) => {
                let [first, second] = [x, y].map(|mask| Part { mask, first: 0 });
                if self.above(first, second) {
                    (y, x)
                } else {
                    (x, y)
                }
            }
            (false, false) => {
                self.raise(x, d);
                self.raise(y, d);
                return;
            }
        };
        self.raise(mask, d);
        let lanes = self.f.ty(x).lanes;
        let part = window(self.f, Part { mask, first: 0 }, lanes);
        // Lanes of both masks are seen; either contains them, and the nearer one goes on to say more.
        let d = match d {
            Demand::All => Demand::Under(Seen::lanes(part)),
            Demand::Under(by) if by.per == 1 && !self.is_within(by, part, lanes) => {
                Demand::Under(Seen::lanes(part))
            }
            other => other,
        };
        self.raise(seen, d);
    }

    /// True for execution masks: those that facts speak of or that a branch tests, dispatched lanes, and parts of these, also where several
    /// ways meet.
    fn narrows(&self, v: Value, depth: usize) -> bool {
        let part = window(self.f, Part { mask: v, first: 0 }, self.f.ty(v).lanes);
        if self.facts.known(part.mask)
            || self.tested.contains(&part.mask)
            || self.facts.dispatched(part).is_some()
        {
            return true;
        }
        self.f
            .def_inst(part.mask)
            .is_some_and(|data| match data.op {
                Op::Input(_) => true,
                Op::Binary(BinOp::And) if depth > 0 => data
                    .args
                    .iter()
                    .any(|&a| self.narrows(self.f.resolve(a), depth - 1)),
                _ => false,
            })
    }

    /// Selects under execution masks that stay.
    fn kept_selects(&self, dropped: &[(Value, Value)]) -> Vec<Value> {
        let insts = self.dom.rpo().iter().flat_map(|&b| &self.f.block(b).insts);
        let selects = insts.map(|&i| self.f.inst(i)).filter(|data| {
            data.op == Op::Select && !self.f.ty(data.args[0]).is_scalar() && {
                let mask = self.f.resolve(data.args[0]);
                uniform_const(self.f, mask).is_none() && self.narrows(mask, 4)
            }
        });
        let results = selects.map(|data| data.results[0]);
        results
            .filter(|v| self.demand[v.0 as usize] != Demand::Nothing)
            .filter(|v| !dropped.iter().any(|(from, _)| from == v))
            .collect()
    }

    /// Loads of which only enabled lanes are demanded, and others.
    fn undef_loads(&mut self) -> (Vec<Inst>, Vec<Inst>) {
        let (mut out, mut merged) = (Vec::new(), Vec::new());
        for &b in self.dom.rpo() {
            for &i in &self.f.block(b).insts {
                let data = self.f.inst(i);
                let (Op::Load(_), Some(&mask)) = (&data.op, data.args.first()) else {
                    continue;
                };
                let lanes = self.f.ty(mask).lanes;
                let mask = Part {
                    mask: self.f.resolve(mask),
                    first: 0,
                };
                let undef = data
                    .results
                    .iter()
                    .all(|r| match self.demand[r.0 as usize] {
                        Demand::Nothing => true,
                        Demand::Under(seen) => seen.per == 1 && self.is_within(seen, mask, lanes),
                        Demand::All => false,
                    });
                if undef && lanes > 1 {
                    out.push(i);
                } else if lanes > 1 && uniform_const(self.f, mask.mask) != Some(1) {
                    merged.push(i);
                }
            }
        }
        (out, merged)
    }

    /// Values that equal an operand in all lanes that are demanded.
    fn replacements(&mut self) -> Vec<(Value, Value)> {
        let mut out = Vec::new();
        for &b in self.dom.rpo() {
            for &i in &self.f.block(b).insts {
                let data = self.f.inst(i);
                let [result] = *data.results.as_slice() else {
                    continue;
                };
                let Demand::Under(seen) = self.demand[result.0 as usize] else {
                    continue;
                };
                if seen.per != 1 {
                    continue;
                }
                let lanes = self.f.ty(result).lanes;
                let part = |v| Part {
                    mask: self.f.resolve(v),
                    first: 0,
                };
                match (&data.op, data.args.as_slice()) {
                    (Op::Select, &[m, a, other]) if !self.f.ty(m).is_scalar() => {
                        if self.is_within(seen, part(m), lanes) {
                            out.push((result, a));
                        } else if self.leaves_out(seen, part(m), lanes)
                            || self.facts.disjoint(self.f, seen.part, part(m), lanes)
                        {
                            out.push((result, other));
                        }
                    }
                    (Op::Binary(BinOp::And), &[x, y]) if self.f.ty(x).lane == Lane::I1 => {
                        for (keep, drop) in [(x, y), (y, x)] {
                            if self.is_within(seen, part(drop), lanes) {
                                out.push((result, keep));
                                break;
                            }
                        }
                    }
                    _ => {}
                }
            }
        }
        out
    }
}
