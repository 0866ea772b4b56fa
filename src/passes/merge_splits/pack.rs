//! Makes whole vectors of pairs of halves.
//!
//! First plans which vectors are needed, from the accesses back to where the halves come from. Then makes each where the later half is.

use std::collections::{BTreeMap, BTreeSet};

use rustc_hash::{FxHashMap, FxHashSet};

use super::pairs::{self, Pair, is_same};
use crate::passes::edit::{const_lanes, lanes_op};
use crate::ssa::dom::DomTree;
use crate::ssa::{Block, Function, Input, Inst, InstData, Op, Site, Term, Ty, Value, ValueDef};

/// Where a value is made: a block by its place in reverse post order, and 0 for its start or one more than the place of the
/// instruction after which it is.
type Position = (u32, u32);

/// How a whole is made of its halves.
#[derive(Clone, Debug)]
enum MergedFrom {
    /// By an operation that takes no halves.
    Alone(Op, Vec<Value>),
    /// It is a value that exists.
    Is(Value),
    /// By the operation of both halves, on wholes.
    Same,
    /// As a parameter of their block.
    Param(Block),
    /// By an access, once that is one.
    Accessed,
}

/// A whole that is wanted.
#[derive(Clone, Debug)]
struct Whole {
    low: Value,
    high: Value,
    way: MergedFrom,
    place: Position,
    value: Option<Value>,
}

impl Whole {
    /// True for halves that are put together.
    fn is_join(&self) -> bool {
        matches!(&self.way, MergedFrom::Alone(Op::Shuffle(_), args) if args.as_slice() == [self.low, self.high])
    }
}

struct Packer<'f> {
    f: &'f mut Function,
    dom: DomTree,
    /// Where each instruction is.
    places: Vec<Position>,
    wholes: Vec<Whole>,
    /// Number of the whole of two halves.
    of: FxHashMap<(Value, Value), usize>,
    /// Results of the pairs.
    accessed: FxHashSet<(Value, Value)>,
    /// New instructions by their places.
    new: BTreeMap<Position, Vec<Inst>>,
}

/// Makes each pair one access; the new ones, in the order of the pairs.
pub(super) fn run(f: &mut Function, pairs: &[Pair]) -> Vec<Inst> {
    let dom = DomTree::new(f);
    pairs::bring_together(f, pairs);
    let mut p = Packer {
        places: places(f, &dom),
        dom,
        f,
        wholes: Vec::new(),
        of: FxHashMap::default(),
        accessed: FxHashSet::default(),
        new: BTreeMap::new(),
    };
    p.plan(pairs);
    p.params();
    p.make(pairs)
}

/// Where each instruction is.
fn places(f: &Function, dom: &DomTree) -> Vec<Position> {
    let mut places = vec![(0, 0); f.insts.len()];
    for &b in dom.rpo() {
        for (n, i) in f.block(b).insts.iter().enumerate() {
            places[i.0 as usize] = (dom.position(b), n as u32 + 1);
        }
    }
    places
}

impl Packer<'_> {
    /// Plans what the accesses need, and what that needs.
    fn plan(&mut self, pairs: &[Pair]) {
        for pair in pairs {
            // Both come from where the upper half is.
            self.places[pair.low.0 as usize] = self.places[pair.high.0 as usize];
            let (low, high) = (self.f.inst(pair.low), self.f.inst(pair.high));
            let results = low
                .results
                .iter()
                .copied()
                .zip(high.results.iter().copied());
            self.accessed.extend(results);
        }
        let mut wanted = Vec::new();
        for pair in pairs {
            wanted.extend(self.operands(pair.low, pair.high));
        }
        while let Some((low, high)) = wanted.pop() {
            if self.of.contains_key(&(low, high)) {
                continue;
            }
            let way = self.way(low, high);
            match &way {
                MergedFrom::Same => {
                    if let (ValueDef::Result(a, _), ValueDef::Result(b, _)) =
                        (self.f.def(low), self.f.def(high))
                    {
                        wanted.extend(self.operands(a, b));
                    }
                }
                MergedFrom::Param(block) => wanted.extend(self.arguments(*block, low, high)),
                _ => {}
            }
            self.of.insert((low, high), self.wholes.len());
            self.wholes.push(Whole {
                low,
                high,
                way,
                place: self.position(low).max(self.position(high)),
                value: None,
            });
        }
    }

    /// Pairs of vector operands of two instructions of one kind.
    fn operands(&self, low: Inst, high: Inst) -> Vec<(Value, Value)> {
        let (a, b) = (&self.f.inst(low).args, &self.f.inst(high).args);
        let both = a.iter().copied().zip(b.iter().copied());
        both.filter(|&(x, _)| !self.f.ty(x).is_scalar()).collect()
    }

    /// Pairs of arguments for two parameters of a block.
    fn arguments(&self, block: Block, low: Value, high: Value) -> Vec<(Value, Value)> {
        let (a, b) = (self.number(low), self.number(high));
        let mut out = Vec::new();
        for pred in self.before(block) {
            for call in self.f.block(pred).term.targets() {
                if call.block == block {
                    out.push((call.args[a], call.args[b]));
                }
            }
        }
        out
    }

    /// Blocks that branch to a block, each once.
    fn before(&self, block: Block) -> BTreeSet<Block> {
        self.dom.preds(block).iter().copied().collect()
    }

    /// Number of a parameter.
    fn number(&self, v: Value) -> usize {
        match self.f.def(v) {
            ValueDef::Param(_, n) => n as usize,
            _ => 0,
        }
    }

    fn position(&self, v: Value) -> Position {
        match self.f.def(v) {
            ValueDef::Result(i, _) => self.places[i.0 as usize],
            ValueDef::Param(b, _) => (self.dom.position(b), 0),
            ValueDef::Alias(to) => self.position(to),
        }
    }

    fn way(&self, low: Value, high: Value) -> MergedFrom {
        if self.accessed.contains(&(low, high)) {
            return MergedFrom::Accessed;
        }
        let few = self.wholes.len() < self.f.insts.len();
        if let (ValueDef::Param(b, _), ValueDef::Param(c, _)) = (self.f.def(low), self.f.def(high))
            && b == c
            && low != high
            && few
        {
            return MergedFrom::Param(b);
        }
        if let (Some(a), Some(b)) = (const_lanes(self.f, low), const_lanes(self.f, high)) {
            return MergedFrom::Alone(lanes_op([a, b].concat()), Vec::new());
        }
        let found = match (self.f.def_inst(low), self.f.def_inst(high)) {
            (Some(a), Some(b)) => self
                .way_of(a, b)
                .filter(|way| low != high && few || !matches!(way, MergedFrom::Same)),
            _ => None,
        };
        found.unwrap_or_else(|| {
            let lanes = self.f.ty(low).lanes;
            MergedFrom::Alone(Op::Shuffle((0..2 * lanes).collect()), vec![low, high])
        })
    }

    /// The way for results of two instructions, if it is better than to put them together.
    fn way_of(&self, a: &InstData, b: &InstData) -> Option<MergedFrom> {
        match (&a.op, &b.op) {
            (Op::Splat, Op::Splat) if is_same(self.f, a.args[0], b.args[0]) => {
                Some(MergedFrom::Alone(Op::Splat, vec![a.args[0]]))
            }
            (Op::Shuffle(low), Op::Shuffle(high)) if a.args == b.args => {
                let indices: Vec<u16> = low.iter().chain(high.iter()).copied().collect();
                let from = self.f.ty(a.args[0]).lanes;
                Some(match a.args.as_slice() {
                    &[whole] if indices.iter().copied().eq(0..from) => MergedFrom::Is(whole),
                    _ => MergedFrom::Alone(Op::Shuffle(indices.into()), a.args.clone()),
                })
            }
            (
                &Op::Input(Input::LocalIds { dim, first }),
                &Op::Input(Input::LocalIds { dim: d, first: f }),
            ) if dim == d && u16::from(f) == u16::from(first) + self.f.ty(a.results[0]).lanes => {
                let input = Input::LocalIds { dim, first };
                Some(MergedFrom::Alone(Op::Input(input), Vec::new()))
            }
            (x, y) if x == y && self.is_lane_wise(a, b) => Some(MergedFrom::Same),
            _ => None,
        }
    }

    /// True if each lane of the results is made of the same lane of the operands, in the same way in both.
    fn is_lane_wise(&self, a: &InstData, b: &InstData) -> bool {
        let ty = |v: Value| self.f.ty(v);
        let (&[result], &[other]) = (a.results.as_slice(), b.results.as_slice()) else {
            return false;
        };
        let known = a.op.is_lane_wise() || a.op == Op::Bitcast;
        let fits = |(&x, &y): (&Value, &Value)| match ty(x).lanes {
            1 => is_same(self.f, x, y),
            lanes => ty(x) == ty(y) && lanes == ty(result).lanes,
        };
        let operands = a.args.len() == b.args.len() && a.args.iter().zip(&b.args).all(fits);
        known && ty(result) == ty(other) && ty(result).lanes > 1 && operands
    }

    /// Wholes that are parameters, without their arguments.
    fn params(&mut self) {
        for n in 0..self.wholes.len() {
            let Whole {
                low,
                way: MergedFrom::Param(b),
                ..
            } = self.wholes[n]
            else {
                continue;
            };
            let ty = doubled(self.f.ty(low));
            self.wholes[n].value = Some(self.f.add_param(b, ty));
        }
    }

    /// Makes everything in the order of its places.
    fn make(mut self, pairs: &[Pair]) -> Vec<Inst> {
        let mut order: Vec<usize> = (0..self.wholes.len()).collect();
        // Halves are put together after what gives halves of its own.
        order.sort_by_key(|&n| (self.wholes[n].place, self.wholes[n].is_join()));
        let mut accesses: Vec<Option<Inst>> = vec![None; pairs.len()];
        // An access is made before what is made of its results.
        let mut next = 0;
        let by_place = |p: &Self, n: usize| p.places[pairs[n].high.0 as usize];
        let mut in_order: Vec<usize> = (0..pairs.len()).collect();
        in_order.sort_by_key(|&n| by_place(&self, n));
        for n in order {
            while let Some(&access) = in_order.get(next)
                && by_place(&self, access) <= self.wholes[n].place
            {
                accesses[access] = Some(self.access(pairs[access]));
                next += 1;
            }
            self.whole(n);
        }
        for &access in &in_order[next..] {
            accesses[access] = Some(self.access(pairs[access]));
        }
        self.arguments_of_params();
        self.replace_halves();
        self.settle(pairs);
        accesses.into_iter().flatten().collect()
    }

    fn whole(&mut self, n: usize) {
        let Whole {
            low,
            high,
            way,
            place,
            value,
        } = self.wholes[n].clone();
        let made = match way {
            MergedFrom::Param(_) | MergedFrom::Accessed => value,
            MergedFrom::Is(v) => Some(v),
            MergedFrom::Alone(op, args) => Some(self.emit(place, op, args, low)),
            MergedFrom::Same => {
                let (ValueDef::Result(a, _), ValueDef::Result(b, _)) =
                    (self.f.def(low), self.f.def(high))
                else {
                    return;
                };
                let args = self.args(a, b);
                let op = self.f.inst(a).op.clone();
                Some(self.emit(place, op, args, low))
            }
        };
        self.wholes[n].value = made;
    }

    /// The whole of two halves that was made.
    fn made(&self, low: Value, high: Value) -> Option<Value> {
        let n = self.of.get(&(low, high))?;
        self.wholes[*n].value
    }

    /// Operands for both instructions: wholes of vectors, scalars as they are.
    fn args(&self, low: Inst, high: Inst) -> Vec<Value> {
        let (a, b) = (&self.f.inst(low).args, &self.f.inst(high).args);
        let both = a.iter().zip(b);
        both.map(|(&x, &y)| self.made(x, y).unwrap_or(x)).collect()
    }

    /// Adds an instruction in the line and with twice the lanes of the one that makes `low`.
    fn emit(&mut self, place: Position, op: Op, args: Vec<Value>, low: Value) -> Value {
        let line = self
            .f
            .def_inst(self.f.resolve(low))
            .map_or(0, |data| data.line);
        let i = self.f.make(op, args, &[doubled(self.f.ty(low))], line);
        self.new.entry(place).or_default().push(i);
        self.f.inst(i).results[0]
    }

    /// One access for a pair, and its halves for those who want them.
    fn access(&mut self, pair: Pair) -> Inst {
        let data = self.f.inst(pair.low).clone();
        let high = self.f.inst(pair.high).clone();
        let place = self.places[pair.high.0 as usize];
        let mut op = data.op.clone();
        if let (Some(s), Some(t)) = (op.site(), high.op.site()) {
            let lanes = self.f.ty(data.args[0]).lanes;
            let site = self.site(s, t, lanes);
            match &mut op {
                Op::Load(m) | Op::Store(m) => m.site = site,
                Op::Atomic(m) => m.site = site,
                _ => {}
            }
        }
        let args = self.args(pair.low, pair.high);
        let types: Vec<Ty> = data
            .results
            .iter()
            .map(|&r| doubled(self.f.ty(r)))
            .collect();
        let whole = self.f.make(op, args, &types, data.line);
        self.new.entry(place).or_default().push(whole);
        for (n, (&low, &upper)) in data.results.iter().zip(&high.results).enumerate() {
            let all = self.f.inst(whole).results[n];
            if let Some(&n) = self.of.get(&(low, upper)) {
                self.wholes[n].value = Some(all);
            }
            let ty = self.f.ty(low);
            for (half, first) in [(low, 0), (upper, ty.lanes)] {
                let indices = (first..first + ty.lanes).collect();
                let i = self
                    .f
                    .make(Op::Shuffle(indices), vec![all], &[ty], data.line);
                self.new.entry(place).or_default().push(i);
                let part = self.f.inst(i).results[0];
                self.f.replace(half, part);
            }
        }
        if self.f.inactive_undef.contains(&pair.low) {
            self.f.inactive_undef.insert(whole);
        }
        for remark in &mut self.f.remarks {
            if remark.inst == Some(pair.low) || remark.inst == Some(pair.high) {
                remark.inst = Some(whole);
            }
        }
        whole
    }

    /// The site of an access whose first `lanes` lanes come from one instruction, and the others from another.
    fn site(&mut self, low: u32, high: u32, lanes: u16) -> u32 {
        // A row of a whole names all parts of that.
        let parts_of = |site| self.f.sites_of_lanes(site, lanes).into_iter();
        let parts = parts_of(low).chain(parts_of(high));
        let mut parts: Vec<u32> = parts.map(|(part, _)| part).collect();
        // Halves of one instruction that a pass cut.
        parts.dedup();
        let sites = &mut self.f.sites;
        let whole = Site {
            parts,
            ..sites[low as usize].clone()
        };
        sites.push(whole);
        sites.len() as u32 - 1
    }

    /// Passes wholes to new parameters, in the order in which these were added.
    fn arguments_of_params(&mut self) {
        for n in 0..self.wholes.len() {
            let Whole {
                low,
                high,
                way: MergedFrom::Param(block),
                ..
            } = self.wholes[n]
            else {
                continue;
            };
            let (a, b) = (self.number(low), self.number(high));
            for pred in self.before(block) {
                let mut term = std::mem::replace(&mut self.f.block_mut(pred).term, Term::None);
                for call in term.targets_mut() {
                    if call.block == block
                        && let Some(whole) = self.made(call.args[a], call.args[b])
                    {
                        call.args.push(whole);
                    }
                }
                self.f.block_mut(pred).term = term;
            }
        }
    }

    /// Halves of wholes that are computed become parts of them, so that nothing is computed twice. Not where one half is
    /// read before the other is made.
    fn replace_halves(&mut self) {
        let users_of = self.users();
        let mut order: Vec<usize> = (0..self.wholes.len()).collect();
        order.sort_by_key(|&n| std::cmp::Reverse(self.wholes[n].place));
        let mut gone: FxHashSet<Inst> = FxHashSet::default();
        for n in order {
            let Whole {
                low,
                high,
                ref way,
                place,
                value: Some(whole),
            } = self.wholes[n]
            else {
                continue;
            };
            let computed = matches!(way, MergedFrom::Same | MergedFrom::Param(_));
            let is_there = |v: Value| !matches!(self.f.def(v), ValueDef::Alias(_));
            let counts = |&(at, i): &(Position, Option<Inst>)| {
                let before = match i {
                    Some(i) => at <= place && !gone.contains(&i),
                    // Halves are put together after what is made at one place.
                    None => at < place,
                };
                at.0 == place.0 && before
            };
            let users = [low, high]
                .into_iter()
                .filter_map(|half| users_of.get(&half));
            let read = users.flatten().any(counts);
            if !computed || !is_there(low) || !is_there(high) || read {
                continue;
            }
            if self.position(low).0 != self.position(high).0 {
                continue;
            }
            for half in [low, high] {
                if let ValueDef::Result(i, _) = self.f.def(half) {
                    gone.insert(i);
                }
            }
            let ty = self.f.ty(low);
            let parts = [(low, 0), (high, ty.lanes)].map(|(half, first)| {
                let indices = (first..first + ty.lanes).collect();
                let line = self.f.def_inst(half).map_or(0, |data| data.line);
                let i = self.f.make(Op::Shuffle(indices), vec![whole], &[ty], line);
                let part = self.f.inst(i).results[0];
                self.f.replace(half, part);
                i
            });
            let made_by = match self.f.def(whole) {
                ValueDef::Result(i, _) => Some(i),
                _ => None,
            };
            let new = self.new.entry(place).or_default();
            let at = new
                .iter()
                .position(|&i| Some(i) == made_by)
                .map_or(0, |at| at + 1);
            new.splice(at..at, parts);
        }
    }

    /// Users of halves of wholes by the halves; new instructions without a name.
    fn users(&self) -> FxHashMap<Value, Vec<(Position, Option<Inst>)>> {
        let mut users: FxHashMap<Value, Vec<(Position, Option<Inst>)>> = FxHashMap::default();
        let halves = self.wholes.iter().flat_map(|w| [w.low, w.high]);
        let halves: FxHashSet<Value> = halves.collect();
        for &b in self.dom.rpo() {
            for &i in &self.f.block(b).insts {
                for a in &self.f.inst(i).args {
                    if halves.contains(a) {
                        users
                            .entry(*a)
                            .or_default()
                            .push((self.places[i.0 as usize], Some(i)));
                    }
                }
            }
        }
        for whole in self.wholes.iter().filter(|w| w.is_join()) {
            for v in [whole.low, whole.high] {
                users.entry(v).or_default().push((whole.place, None));
            }
        }
        users
    }

    /// Puts new instructions into their blocks and takes the pairs out.
    fn settle(mut self, pairs: &[Pair]) {
        let gone: FxHashSet<Inst> = pairs.iter().flat_map(|p| [p.low, p.high]).collect();
        for &b in self.dom.rpo() {
            let position = self.dom.position(b);
            let mut out = self.new.remove(&(position, 0)).unwrap_or_default();
            for (n, i) in std::mem::take(&mut self.f.block_mut(b).insts)
                .into_iter()
                .enumerate()
            {
                if !gone.contains(&i) {
                    out.push(i);
                }
                out.extend(
                    self.new
                        .remove(&(position, n as u32 + 1))
                        .unwrap_or_default(),
                );
            }
            self.f.block_mut(b).insts = out;
        }
        self.put_together();
        self.f.resolve_aliases();
    }

    /// Halves that the program puts together itself are there as wholes.
    fn put_together(&mut self) {
        for n in 0..self.f.insts.len() {
            let data = &self.f.insts[n];
            let (Op::Shuffle(indices), &[low, high]) = (&data.op, data.args.as_slice()) else {
                continue;
            };
            let whole = self.of.get(&(low, high)).map(|&n| &self.wholes[n]);
            let Some(Whole {
                way,
                value: Some(v),
                ..
            }) = whole
            else {
                continue;
            };
            let result = data.results[0];
            let all = indices.iter().copied().eq(0..self.f.ty(result).lanes);
            if all
                && !matches!(way, MergedFrom::Alone(Op::Shuffle(_), _))
                && self.f.ty(*v) == self.f.ty(result)
            {
                let v = *v;
                self.f.replace(result, v);
            }
        }
    }
}

const fn doubled(ty: Ty) -> Ty {
    ty.with_lanes(2 * ty.lanes)
}
