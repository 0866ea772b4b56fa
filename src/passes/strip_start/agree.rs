//! Whether a start with branches on masks means the same strip by strip.
//!
//! A strip without lanes in a mask jumps over what the thread runs for lanes of other strips. What the thread makes there is seen in parameters
//! alone, where the ways meet. Such a parameter is the same in all lanes if the code that is jumped over leaves what was there before in lanes outside
//! of the mask; if it may not, it may *differ* in these lanes. From there on, a value differs where its operands do, except for lanes in
//! which a select or a load does not look at them. IGC leaves values of one branch to a later one under the same mask, scalars as well: these
//! differ in strips that have no lane in the mask.
//!
//! A start may run in strips if the masks of its branches do not differ in any lane, nor does what stores and branches behind it look at.

use std::cell::RefCell;

use rustc_hash::{FxHashMap, FxHashSet};

use super::differ::{Differ, Lanes};
use super::region::Region;
use crate::passes::masks::{Fact, Facts, facts};
use crate::ssa::dom::DomTree;
use crate::ssa::{
    BinOp, Block, BlockCall, Function, Inst, InstData, Op, Term, Ty, Value, ValueDef,
};

/// Most masks that are looked at on the way from one to another.
const CHAIN: usize = 64;
/// How many selects and parameters are followed back to the value that they leave.
const DEPTH: usize = 64;
/// How often all values are looked at.
const ROUNDS: usize = 32;

/// A branch that jumps to `join` if there are none of some lanes.
#[derive(Clone, Copy)]
struct Skip {
    lanes: Lanes,
    from: Block,
    join: Block,
    /// Which target of the branch that is.
    jump: usize,
    /// The first block of what is jumped over; none if the other way leads to the join as well.
    over: Option<Block>,
}

impl Skip {
    fn is_jump(&self, edge: &Edge) -> bool {
        edge.from == self.from && edge.target == self.jump
    }
}

/// A way into a block.
#[derive(Clone, Copy)]
struct Edge<'a> {
    from: Block,
    /// Which target of the branch it is.
    target: usize,
    call: &'a BlockCall,
}

/// A block, or of the region's end the part that belongs to the region, or the other one.
#[derive(Clone, Copy)]
struct Piece<'a> {
    block: Block,
    params: &'a [Value],
    insts: &'a [Inst],
    /// Part of the region.
    in_strips: bool,
}

/// The question whether code that a branch jumps over leaves a value in lanes besides those it looks for.
struct Kept {
    before: Value,
    skip: Skip,
    /// What was looked at, and equals the value if the rest does.
    seen: FxHashSet<Value>,
}

/// The scalars that are not the same in all strips, if a region may run in strips.
///
/// # Errors
/// The `maskany` and `maskall` because of which it may not.
pub(super) fn check(
    f: &Function,
    dom: &DomTree,
    region: &Region,
) -> Result<FxHashSet<Value>, FxHashSet<Inst>> {
    let insts = region.insts(f).flatten().map(|&i| (i, f.inst(i)));
    let any = insts.filter(|(_, data)| matches!(data.op, Op::MaskAny | Op::MaskAll));
    let any: FxHashMap<Value, Inst> = any.map(|(i, data)| (data.results[0], i)).collect();
    if any.is_empty() {
        return Ok(FxHashSet::default());
    }
    let mut proof = Proof::new(f, dom, region, any);
    proof.add_parts();
    let obstacles = match proof.spread() {
        true => proof.obstacles(),
        false => proof.any.values().copied().collect(),
    };
    match obstacles.is_empty() {
        true => Ok(proof.differing()),
        false => Err(obstacles),
    }
}

struct Proof<'a> {
    f: &'a Function,
    dom: &'a DomTree,
    region: &'a Region,
    /// The function's instructions, in reverse post order.
    pieces: Vec<Piece<'a>>,
    /// The region's `maskany` and `maskall`, by their results.
    any: FxHashMap<Value, Inst>,
    skips: Vec<Skip>,
    facts: Facts,
    differ: Vec<Differ>,
    /// Blocks of definitions.
    place: Vec<Option<Block>>,
    /// What was asked before.
    apart: RefCell<FxHashMap<Vec<Lanes>, bool>>,
}

fn pieces<'a>(f: &'a Function, dom: &DomTree, region: &Region) -> Vec<Piece<'a>> {
    let mut pieces = Vec::new();
    for &block in dom.rpo() {
        let data = f.block(block);
        let piece = Piece {
            block,
            params: &data.params,
            insts: &data.insts,
            in_strips: block == region.end || region.blocks.contains(&block),
        };
        if block != region.end {
            pieces.push(piece);
            continue;
        }
        let (insts, rest) = data.insts.split_at(region.prefix);
        pieces.push(Piece { insts, ..piece });
        pieces.push(Piece {
            params: &[],
            insts: rest,
            in_strips: false,
            ..piece
        });
    }
    pieces
}

impl<'a> Proof<'a> {
    fn new(
        f: &'a Function,
        dom: &'a DomTree,
        region: &'a Region,
        any: FxHashMap<Value, Inst>,
    ) -> Proof<'a> {
        let mut place = vec![None; f.values.len()];
        for &b in dom.rpo() {
            let results = f.block(b).insts.iter().flat_map(|&i| &f.inst(i).results);
            for v in f.block(b).params.iter().chain(results) {
                place[v.0 as usize] = Some(b);
            }
        }
        let mut proof = Proof {
            f,
            dom,
            region,
            pieces: pieces(f, dom, region),
            any,
            skips: Vec::new(),
            facts: facts(f, dom),
            differ: vec![Differ::NOWHERE; f.values.len()],
            place,
            apart: RefCell::default(),
        };
        let skips = region.blocks.iter().filter_map(|&b| proof.skip(b));
        proof.skips = skips.collect();
        // Inner joins first, so that what is known about their masks helps at the outer ones.
        proof.skips.sort_by_key(|skip| dom.position(skip.join));
        proof
    }

    /// The branch of a block, if it jumps over code without other entries and exits.
    fn skip(&self, from: Block) -> Option<Skip> {
        let Term::Branch { cond, then, other } = &self.f.block(from).term else {
            return None;
        };
        let any = self.f.inst(*self.any.get(cond)?);
        let (jump, join, then) = match any.op {
            Op::MaskAny => (1, other.block, then.block),
            _ => (0, then.block, other.block),
        };
        let lanes = Lanes {
            mask: any.args[0],
            outside: any.op == Op::MaskAll,
        };
        let over = (then != join).then_some(then);
        let mut entries = self.dom.preds(then).iter();
        if over.is_some_and(|over| entries.any(|&p| p != from && !self.dom.dominates(over, p))) {
            return None;
        }
        let mut seen = FxHashSet::from_iter([join]);
        let mut work: Vec<Block> = over.into_iter().filter(|&b| seen.insert(b)).collect();
        while let Some(b) = work.pop() {
            if b == from || !self.region.blocks.contains(&b) || !self.dom.dominates(then, b) {
                return None;
            }
            let targets = self.f.block(b).term.targets().into_iter();
            work.extend(targets.map(|call| call.block).filter(|&t| seen.insert(t)));
        }
        Some(Skip {
            lanes,
            from,
            join,
            jump,
            over,
        })
    }

    fn edges(&self, to: Block) -> Vec<Edge<'a>> {
        let mut preds = self.dom.preds(to).to_vec();
        preds.dedup();
        let mut edges = Vec::new();
        for from in preds {
            let calls = self.f.block(from).term.targets().into_iter().enumerate();
            let calls = calls.filter(|(_, call)| call.block == to);
            edges.extend(calls.map(|(target, call)| Edge { from, target, call }));
        }
        edges
    }

    fn is_mask(&self, v: Value) -> bool {
        self.f.ty(v) == Ty::mask(self.f.simd)
    }

    /// Notes which masks are parts of what a branch looks for where they meet behind it, whichever way they came.
    fn add_parts(&mut self) {
        let f = self.f;
        for Skip { lanes, join, .. } in self.skips.clone() {
            if !self.is_above(lanes, join) {
                continue;
            }
            let edges = self.edges(join);
            for (k, &p) in f.block(join).params.iter().enumerate() {
                let mut args = edges.iter().map(|e| e.call.args[k]);
                if self.is_mask(p) && args.all(|a| self.is_part(Lanes::of(a), lanes)) {
                    self.apart.borrow_mut().clear();
                    self.facts.add(match lanes.outside {
                        true => Fact::Disjoint(p, lanes.mask),
                        false => Fact::Subset(p, lanes.mask),
                    });
                }
            }
        }
    }

    /// True if no lane of some is outside of others.
    fn is_part(&self, lanes: Lanes, of: Lanes) -> bool {
        self.are_apart(&[lanes, of.others()])
    }

    /// True if there is no lane in all of some.
    fn are_apart(&self, lanes: &[Lanes]) -> bool {
        if let Some(&known) = self.apart.borrow().get(lanes) {
            return known;
        }
        let apart = self.find_apart(lanes);
        self.apart.borrow_mut().insert(lanes.to_vec(), apart);
        apart
    }

    fn find_apart(&self, lanes: &[Lanes]) -> bool {
        let pair =
            |a: &Lanes, b: &Lanes| !a.outside && b.outside && self.is_narrowed(a.mask, b.mask);
        let masks: Vec<_> = lanes.iter().map(|l| (l.mask, l.outside)).collect();
        lanes.iter().all(|l| self.is_mask(l.mask))
            && (lanes.iter().any(|a| lanes.iter().any(|b| pair(a, b)))
                || self.facts.nowhere(self.f, &masks))
    }

    /// True if a mask was made from another by conjunctions, through any number of them.
    fn is_narrowed(&self, mask: Value, from: Value) -> bool {
        let mut masks = vec![mask];
        let mut at = 0;
        while let Some(&mask) = masks.get(at).filter(|_| at < CHAIN) {
            if mask == from {
                return true;
            }
            let both = self.f.def_inst(mask);
            let both = both.filter(|data| data.op == Op::Binary(BinOp::And));
            masks.extend(both.into_iter().flat_map(|data| &data.args));
            masks.extend(self.facts.supersets(mask));
            at += 1;
        }
        false
    }

    /// Takes every value to be the same in all lanes until an operand says otherwise; false if that takes too long.
    fn spread(&mut self) -> bool {
        for _ in 0..ROUNDS {
            let mut changed = false;
            for piece in self.pieces.clone() {
                for (k, &p) in piece.params.iter().enumerate() {
                    let now = self.parameter(&piece, k);
                    changed |= self.set(p, &now);
                }
                for data in piece.insts.iter().map(|&i| self.f.inst(i)) {
                    let now = self.result(&piece, data);
                    for &r in &data.results {
                        changed |= self.set(r, &now);
                    }
                }
            }
            if !changed {
                return true;
            }
        }
        false
    }

    fn set(&mut self, v: Value, now: &Differ) -> bool {
        let old = &mut self.differ[v.0 as usize];
        // It may only grow, or this might not end.
        let now = old.clone().or(now);
        let changed = now != *old;
        *old = now;
        changed
    }

    /// Where a value differs for those who read it. Behind the region, a scalar is that of the last strip.
    fn read(&self, piece: &Piece, v: Value) -> Differ {
        let differ = &self.differ[v.0 as usize];
        let here = piece.in_strips || !self.f.ty(v).is_scalar() || self.is_same(v);
        if here {
            differ.clone()
        } else {
            Differ::anywhere()
        }
    }

    /// True if a value does not differ in any lane.
    fn is_same(&self, v: Value) -> bool {
        self.differ[v.0 as usize] == Differ::NOWHERE
    }

    /// Where any of some values differs.
    fn any(&self, piece: &Piece, values: &[Value]) -> Differ {
        let read = values.iter().map(|&v| self.read(piece, v));
        read.fold(Differ::NOWHERE, |all, v| all.or(&v))
    }

    /// Where a parameter differs: where an argument does, or where a branch that leads here finds no lanes, if what it jumps over matters.
    fn parameter(&self, piece: &Piece, k: usize) -> Differ {
        let b = piece.block;
        if Some(&b) == self.region.blocks.first() || self.region.blocks.is_empty() {
            return Differ::NOWHERE;
        }
        let edges = self.edges(b);
        let lost = self.lost(b, k, &edges);
        let mut sets: Vec<(Vec<Lanes>, &[Edge])> = Vec::new();
        for edge in &edges {
            let mut here = self.read(piece, edge.call.args[k]);
            // Strips that come by a jump have other lanes only than those that the branch looks for.
            if let Some(skip) = self.skips.iter().find(|skip| skip.is_jump(edge)) {
                here = self.where_read(&here, skip.lanes.others());
            }
            let here = here.sets().iter().cloned();
            sets.extend(here.map(|set| (set, std::slice::from_ref(edge))));
        }
        let own = lost
            .iter()
            .map(|(skip, ran)| (vec![skip.lanes.others()], &ran[..]));
        // A strip may have some lanes that the outermost of these branches looks for, and others, so this says nothing of scalars.
        let outermost = match self.f.ty(piece.params[k]).is_scalar() {
            true => None,
            false => lost
                .iter()
                .map(|(skip, _)| skip.lanes)
                .find(|&l| self.is_above(l, b)),
        };
        let (mut differ, mut outside) = (Differ::NOWHERE, false);
        for (mut set, ways) in own.chain(sets) {
            let mut seen = self.seen_from(b, &set, ways);
            if seen.as_ref().is_some_and(Vec::is_empty)
                && let Some(lanes) = outermost
            {
                // The rest is where the value differs because of that branch alone.
                set.push(lanes);
                seen = self.seen_from(b, &set, ways);
                outside = true;
            }
            seen.into_iter().for_each(|set| differ.add(set));
        }
        if let Some(lanes) = outermost.filter(|_| outside) {
            differ.add(vec![lanes.others()]);
        }
        differ
    }

    /// Branches that jump to a block over code that may change one of its parameters in lanes that they do not look for, and the ways from there.
    fn lost(&self, b: Block, k: usize, edges: &[Edge<'a>]) -> Vec<(Skip, Vec<Edge<'a>>)> {
        let mut lost = Vec::new();
        for &skip in self.skips.iter().filter(|skip| skip.join == b) {
            let Some(jump) = edges.iter().find(|e| skip.is_jump(e)) else {
                continue;
            };
            let ran = edges.iter().copied().filter(|e| match skip.over {
                Some(over) => self.dom.dominates(over, e.from),
                None => e.from == skip.from && !skip.is_jump(e),
            });
            let ran: Vec<Edge> = ran.collect();
            let mut kept = Kept {
                before: jump.call.args[k],
                skip,
                seen: FxHashSet::default(),
            };
            if !ran.iter().all(|e| self.keeps(e.call.args[k], &mut kept)) {
                lost.push((skip, ran));
            }
        }
        lost
    }

    /// A set of lanes in masks that are known in a block, for what comes by some edges; none if it is empty. Parameters that are masks, as of the lanes that
    /// are done, tell what masks of the code in front cannot any more.
    fn seen_from(&self, b: Block, set: &[Lanes], edges: &[Edge]) -> Option<Vec<Lanes>> {
        if self.are_apart(set) {
            return None;
        }
        let params = self.f.block(b).params.iter().enumerate();
        let mut known = Vec::new();
        for (n, &mask) in params.filter(|&(_, &p)| self.is_mask(p) && self.is_same(p)) {
            for outside in [false, true] {
                let holds = |e: &Edge| {
                    let mask = e.call.args[n];
                    self.has_none(set, Lanes { mask, outside }.others())
                };
                if edges.iter().all(holds) {
                    known.push(Lanes { mask, outside });
                }
            }
        }
        known.extend(set.iter().filter(|&&l| self.is_above(l, b)));
        Some(known)
    }

    /// True if the mask is still the same at the start of a block: the one of an iteration of a loop is another one in the next.
    fn is_above(&self, lanes: Lanes, b: Block) -> bool {
        let place = self.place[lanes.mask.0 as usize];
        place.is_some_and(|at| at != b && self.dom.dominates(at, b))
    }

    /// True if a value equals the one before in all other lanes.
    fn keeps(&self, v: Value, kept: &mut Kept) -> bool {
        let f = self.f;
        let v = self.bits_of(v);
        // A value that is looked at already: around a loop, it keeps what it kept in the iteration before.
        if v == self.bits_of(kept.before) || !kept.seen.insert(v) {
            return true;
        }
        if kept.seen.len() > DEPTH {
            return false;
        }
        let (over, others) = (kept.skip.over, kept.skip.lanes.others());
        if let ValueDef::Param(b, k) = f.def(v)
            && over.is_some_and(|over| self.dom.dominates(over, b))
        {
            let edges = self.edges(b);
            let mut args = edges.iter().map(|e| e.call.args[k as usize]);
            return args.all(|a| self.keeps(a, kept));
        }
        match self.chosen(v, others) {
            Some(same) => self.keeps(same, kept),
            None => {
                let unlike = |a, b| [Lanes::of(a), Lanes::of(b).others(), others];
                let pairs = [unlike(v, kept.before), unlike(kept.before, v)];
                pairs.iter().all(|lanes| self.are_apart(lanes))
            }
        }
    }

    /// The operand that a value equals in some lanes.
    fn chosen(&self, v: Value, lanes: Lanes) -> Option<Value> {
        let data = self.f.def_inst(v)?;
        let is_in = |mask, outside| self.is_part(lanes, Lanes { mask, outside });
        match (&data.op, data.args.as_slice()) {
            (Op::Select, &[m, a, _]) if is_in(m, false) => Some(a),
            (Op::Select, &[m, _, b]) if is_in(m, true) => Some(b),
            (Op::Binary(op @ (BinOp::And | BinOp::Or)), &[a, b]) => {
                let neutral = |mask| is_in(mask, *op == BinOp::Or);
                match (neutral(a), neutral(b)) {
                    (true, _) => Some(b),
                    (_, true) => Some(a),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The value with the same bits in each lane that another one is a view of.
    fn bits_of(&self, mut v: Value) -> Value {
        while let Some(data) = self.f.def_inst(v).filter(|data| data.op == Op::Bitcast)
            && self.f.ty(data.args[0]).lanes == self.f.ty(v).lanes
        {
            v = data.args[0];
        }
        v
    }

    fn result(&self, piece: &Piece, data: &InstData) -> Differ {
        let differ = match (&data.op, data.args.as_slice()) {
            // Strips differ in it. Branches are looked at as a whole.
            (Op::MaskAny | Op::MaskAll, _) if piece.in_strips => Differ::anywhere(),
            (Op::Select, &[mask, a, b]) => {
                let lanes = Lanes::of(mask);
                let first = self.where_read(&self.read(piece, a), lanes);
                let second = self.where_read(&self.read(piece, b), lanes.others());
                first.or(&second).or(&self.read(piece, mask))
            }
            (Op::Load(_), _) => self.accessed(piece, &data.args),
            (op, args) if piece.in_strips || op.is_lane_wise() || *op == Op::Splat => {
                self.any(piece, args)
            }
            (Op::Bitcast, &[a]) if self.f.ty(a).lanes == self.f.simd => self.any(piece, &[a]),
            (_, args) => match self.any(piece, args) == Differ::NOWHERE {
                true => Differ::NOWHERE,
                false => Differ::anywhere(),
            },
        };
        match data.results.as_slice() {
            // A lane outside of a mask that it is part of is not set, in strips or without.
            &[v] if self.is_mask(v) && differ != Differ::NOWHERE => {
                let sets = differ.sets().iter();
                let left = sets.filter(|set| !self.has_none(set, Lanes::of(v)));
                left.fold(Differ::NOWHERE, |mut all, set| {
                    all.add(set.clone());
                    all
                })
            }
            _ => differ,
        }
    }

    /// True if a set has none of some lanes.
    fn has_none(&self, set: &[Lanes], of: Lanes) -> bool {
        self.are_apart(&[set, &[of]].concat())
    }

    /// Where anything differs that an access to memory looks at, of which the mask comes first.
    fn accessed(&self, piece: &Piece, args: &[Value]) -> Differ {
        let Some((&mask, others)) = args.split_first() else {
            return Differ::NOWHERE;
        };
        let others = self.where_read(&self.any(piece, others), Lanes::of(mask));
        others.or(&self.read(piece, mask))
    }

    /// Where something differs of which some lanes are looked at.
    fn where_read(&self, differ: &Differ, lanes: Lanes) -> Differ {
        let mut left = Differ::NOWHERE;
        if !self.is_mask(lanes.mask) {
            return differ.clone();
        }
        for set in differ.sets() {
            let mut set = set.clone();
            if !set.contains(&lanes) {
                set.insert(0, lanes);
            }
            if !self.are_apart(&set) {
                left.add(set);
            }
        }
        left
    }

    /// The branches because of which strips would take another way, or something else would be stored.
    fn obstacles(&self) -> FxHashSet<Inst> {
        let mut found = FxHashSet::default();
        for piece in &self.pieces {
            for data in piece.insts.iter().map(|&i| self.f.inst(i)) {
                let differ = match data.op {
                    Op::Load(_) => Differ::NOWHERE,
                    Op::Store(_) | Op::Atomic(_) | Op::Image(_) => self.accessed(piece, &data.args),
                    ref op if op.has_effect() => self.any(piece, &data.args),
                    _ => Differ::NOWHERE,
                };
                self.blame(&differ, &mut found);
            }
            let is_last = !piece.in_strips || piece.block != self.region.end;
            let cond = self.f.block(piece.block).term.condition();
            if let Some(cond) = cond.filter(|_| is_last) {
                self.check_way(piece, cond, &mut found);
            }
        }
        found
    }

    /// Scalars that are not the same in all strips.
    fn differing(&self) -> FxHashSet<Value> {
        let values = (0..self.differ.len() as u32).map(Value);
        let differing = |&v: &Value| self.f.ty(v).is_scalar() && !self.is_same(v);
        values.filter(differing).collect()
    }

    /// The condition of a branch has to be the same for the thread and the strips that get there, or to jump over what may be jumped over.
    fn check_way(&self, piece: &Piece, cond: Value, found: &mut FxHashSet<Inst>) {
        match self.any.get(&cond).copied() {
            Some(any) if piece.in_strips => {
                let known = self.skips.iter().any(|skip| skip.from == piece.block);
                if !known || !self.is_same(self.f.inst(any).args[0]) {
                    found.insert(any);
                }
            }
            Some(any) => drop(found.insert(any)),
            None if piece.in_strips && self.is_same_way(piece.block, cond) => {}
            None => self.blame(&self.read(piece, cond), found),
        }
    }

    /// True if a condition is the same for the thread and for the strips that get to it, as these have lanes that branches before looked for.
    fn is_same_way(&self, b: Block, cond: Value) -> bool {
        let taken = |skip: &&Skip| skip.over.is_some_and(|over| self.dom.dominates(over, b));
        let taken = self.skips.iter().filter(taken);
        let taken: Vec<Lanes> = taken.map(|skip| skip.lanes).collect();
        let mut sets = self.differ[cond.0 as usize].sets().iter();
        sets.all(|set| taken.iter().any(|&lanes| self.has_none(set, lanes)))
    }

    /// The branches because of which something differs.
    fn blame(&self, differ: &Differ, found: &mut FxHashSet<Inst>) {
        for set in differ.sets() {
            let masks = self.any.values().copied();
            let named = |&any: &Inst| set.iter().any(|l| l.mask == self.f.inst(any).args[0]);
            let named: Vec<Inst> = masks.clone().filter(named).collect();
            match named.is_empty() {
                true => found.extend(masks),
                false => found.extend(named),
            }
        }
    }
}
