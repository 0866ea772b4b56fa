//! Long division: a loop that makes quotient or remainder of unsigned 64-bit numbers bit by bit.
//!
//! ```text
//! r = 0, q = 0
//! for k = 63, 62 … 0, lanes of m:  s = r << 1 | (x >> k & 1)
//!                                  if s < y  { r = s }
//!                                  else      { r = s - y; q |= 1 << k }
//! ```
//!
//! Lanes that are not of `m` keep `r` and `q`. Or nothing reads them, and they take the bits of `x` without a comparison: `r = s`. Where all
//! lanes are of `m`, there may be no mask.
//!
//! The loop is left as it is, but for what enters it: where `m` has a lane, it starts at `k = 0`, with `r` and `q` as 63 steps leave
//! them. All that is computed in the last step is computed as before, so that nothing outside sees a difference. Where `m` has
//! none, what enters is as before.
//!
//! Proof. Before the step of `k`, `r = (x >> k + 1) mod y` and the bits of `q` above `k` are those of `x / y`, where `y` is not zero. It
//! holds at first, as `x >> 64` is 0. A step keeps it, as long division does, unless `r << 1` loses its top bit. If `y` is at
//! most 2^63, then `r` is below 2^63. If it is larger, `r` is `x >> k + 1` at every step, since that is below 2^63, and below
//! 2^63 too. So before the step of 0, `r = (x >> 1) mod y` and `q = (x >> 1) / y << 1`. With a zero divisor no `s` is below
//! `y`, so that `r` is all of `x >> 1` and all bits of `q` are set but the lowest; the same formulas say so, with this IR's
//! division by zero. Lanes that are not of `m` and take the bits have `r = x >> 1` and `q = 0` then.
//!
//! That a loop is of this kind is proven lane by lane: what one pass through it computes is written down as [`Exprs`], once for each
//! case of the lane's bit of `m` and of the comparison, and compared with the above. Two halves of sixteen lanes, numbers
//! as pairs of 32 bits, merges with masks and jumps around empty masks all come to the same expression.

use rustc_hash::{FxHashMap, FxHashSet};

use super::lanes::{Expr, Exprs, Facts, Node};
use super::late_start::start_late;
use crate::passes::edit::uniform_const;
use crate::ssa::dom::reverse_post_order;
use crate::ssa::{
    BinOp, Block, BlockCall, Conv, Function, ICond, Inst, InstData, Lane, Op, Term, Ty, Value,
    ValueDef,
};

/// Most blocks of a pass through the loop.
const BLOCKS: usize = 12;

/// Most expressions that are made for a loop.
const EXPRS: usize = 1 << 16;

/// The counter's first value: the number of the highest bit.
const TOP: u64 = 63;

pub(super) fn run(f: &mut Function) -> usize {
    let mut changes = 0;
    for from in reverse_post_order(f) {
        for n in 0..f.block(from).term.targets().len() {
            let Some((header, counter)) = entered(f, from, n) else {
                continue;
            };
            let Some(pass) = Pass::through(f, header) else {
                continue;
            };
            let found = Prover::new(f, &pass, counter).prove();
            if let Some(found) = found
                && start_late(f, (from, n), counter, &found)
            {
                changes += 1;
            }
        }
    }
    changes
}

/// Where an edge may enter such a loop, and which parameter counts.
fn entered(f: &Function, from: Block, n: usize) -> Option<(Block, usize)> {
    let targets = f.block(from).term.targets();
    let call = targets.get(n)?;
    let counts = |&v: &Value| f.ty(v) == Ty::I32 && uniform_const(f, v) == Some(TOP);
    Some((call.block, call.args.iter().position(counts)?))
}

/// What a block's parameters receive in a pass.
enum Incoming {
    /// From the only edge.
    One(Vec<Value>),
    /// The first where any lane of the mask is set, else the second.
    Either(Value, Vec<Value>, Vec<Value>),
}

/// What has to hold for the pass to end at the header again.
enum Condition {
    /// Any lane of a mask is set.
    Any(Value),
    /// A scalar is not zero.
    NotZero(Value),
}

/// One pass through a loop, from its header to its header.
struct Pass {
    header: Block,
    blocks: FxHashSet<Block>,
    insts: FxHashSet<Inst>,
    incoming: FxHashMap<Block, Incoming>,
    conditions: Vec<Condition>,
    /// What the header's parameters receive at the end.
    back: Vec<Value>,
}

impl Pass {
    fn through(f: &Function, header: Block) -> Option<Pass> {
        let mut pass = Pass {
            header,
            blocks: FxHashSet::default(),
            insts: FxHashSet::default(),
            incoming: FxHashMap::default(),
            conditions: Vec::new(),
            back: Vec::new(),
        };
        let mut at = header;
        loop {
            pass.enter(f, at)?;
            let next = match &f.block(at).term {
                Term::Jump(call) => call.clone(),
                Term::Branch { cond, then, other } => pass.branch(f, *cond, then, other)?,
                _ => return None,
            };
            if next.block == header {
                pass.back = next.args;
                return Some(pass);
            }
            at = next.block;
            let incoming = Incoming::One(next.args);
            pass.incoming.entry(at).or_insert(incoming);
        }
    }

    /// Values of a pass that decide where it goes on, that go over an edge, or that blocks elsewhere use.
    fn outputs(&self, f: &Function) -> Vec<Value> {
        let mut out = Vec::new();
        for &b in &f.order {
            let block = f.block(b);
            let calls = block.term.targets();
            out.extend(calls.iter().flat_map(|call| &call.args).copied());
            out.extend(block.term.condition());
            if !self.blocks.contains(&b) {
                out.extend(block.insts.iter().flat_map(|&i| &f.inst(i).args));
            }
        }
        out.sort_unstable();
        out.dedup();
        out.retain(|&v| match f.def(v) {
            ValueDef::Param(b, _) => self.blocks.contains(&b),
            ValueDef::Result(i, _) => self.insts.contains(&i),
            ValueDef::Alias(_) => true,
        });
        out
    }

    fn enter(&mut self, f: &Function, b: Block) -> Option<()> {
        let effects = |op: &Op| op.has_effect() && !matches!(op, Op::Poll);
        self.insts.extend(&f.block(b).insts);
        let quiet = f.block(b).insts.iter().all(|&i| !effects(&f.inst(i).op));
        (quiet && self.blocks.len() < BLOCKS && self.blocks.insert(b)).then_some(())
    }

    /// Where a branch goes on.
    fn branch(
        &mut self,
        f: &Function,
        cond: Value,
        then: &BlockCall,
        other: &BlockCall,
    ) -> Option<BlockCall> {
        let data = f.def_inst(cond)?;
        match (&data.op, data.args.as_slice()) {
            (Op::MaskAny, &[mask]) => {
                if let Term::Jump(join) = &f.block(then.block).term
                    && join.block == other.block
                    && join.block != self.header
                {
                    self.enter(f, then.block)?;
                    let inner = Incoming::One(then.args.clone());
                    self.incoming.insert(then.block, inner);
                    let either = Incoming::Either(mask, join.args.clone(), other.args.clone());
                    self.incoming.insert(join.block, either);
                    return Some(other.clone());
                }
                self.conditions.push(Condition::Any(mask));
                Some(then.clone())
            }
            (Op::ICmp(cond), &[v, zero]) if uniform_const(f, zero) == Some(0) => {
                self.conditions.push(Condition::NotZero(v));
                match cond {
                    ICond::Eq => Some(other.clone()),
                    ICond::Ne => Some(then.clone()),
                    _ => None,
                }
            }
            _ => None,
        }
    }
}

/// A lane of the loop: its numbers, and when it takes part.
#[derive(Clone, Copy)]
pub(super) struct LongDivision {
    pub(super) dividend: Expr,
    pub(super) divisor: Expr,
    /// Its number in a mask, or among the remainders where there is none.
    lane: u16,
    pub(super) part: Part,
}

/// When a lane takes part in the loop.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Part {
    Always,
    /// Where its lane of a mask is set; else its remainder stays as it is.
    Under(Value),
    /// Where its lane of a mask is set. Else its remainder takes the bits, too, and nothing is subtracted: it becomes the upper bits of the
    /// dividend.
    OrShifts(Value),
}

impl LongDivision {
    /// The lane of a mask under which it takes part.
    pub(super) fn mask(&self) -> Option<(Value, u16)> {
        match self.part {
            Part::Always => None,
            Part::Under(mask) | Part::OrShifts(mask) => Some((mask, self.lane)),
        }
    }

    /// Takes part: what is to be supposed for that.
    fn active(&self) -> Option<((Value, u16), bool)> {
        Some((self.mask()?, true))
    }
}

/// What a parameter of the header is.
pub(super) enum Role {
    Remainder(Vec<LongDivision>),
    Quotient(Vec<LongDivision>),
}

/// Parameters that start as something else, and the expressions that they are made of.
pub(super) struct Found {
    pub(super) roles: Vec<(usize, Role)>,
    pub(super) exprs: Exprs,
}

struct Prover<'f> {
    f: &'f Function,
    pass: &'f Pass,
    counter: Value,
    exprs: Exprs,
    known: FxHashMap<(Value, u16), Expr>,
}

impl<'f> Prover<'f> {
    fn new(f: &'f Function, pass: &'f Pass, counter: usize) -> Self {
        Prover {
            f,
            pass,
            counter: f.block(pass.header).params[counter],
            exprs: Exprs::default(),
            known: FxHashMap::default(),
        }
    }

    /// Takes this to be true from now on.
    fn suppose(&mut self, mask: Option<((Value, u16), bool)>, less: Option<((Expr, Expr), bool)>) {
        self.exprs.facts = Facts { mask, less };
        self.known.clear();
    }

    fn prove(mut self) -> Option<Found> {
        self.counts_down()?;
        let params = &self.f.block(self.pass.header).params;
        let mut roles = Vec::new();
        let mut lanes: Vec<LongDivision> = Vec::new();
        for (n, &p) in params.iter().enumerate() {
            if let Some(found) = self.remainder(n, p) {
                lanes.extend(&found);
                roles.push((n, Role::Remainder(found)));
            }
        }
        for (n, &p) in params.iter().enumerate() {
            let known = p == self.counter || roles.iter().any(|&(m, _)| m == n);
            if known || self.stays(n, p, &lanes) || self.unread(n, p, &lanes) {
                continue;
            }
            let quotient = self.quotient(n, p, &lanes)?;
            roles.push((n, Role::Quotient(quotient)));
        }
        (!lanes.is_empty()).then_some(Found {
            roles,
            exprs: self.exprs,
        })
    }

    /// True when the scalar counter goes down by one, and its zero ends the loop.
    fn counts_down(&mut self) -> Option<()> {
        let params = &self.f.block(self.pass.header).params;
        let n = params.iter().position(|&p| p == self.counter)?;
        let minus_one = self.exprs.constant(32, u64::from(u32::MAX));
        let counter = self.exprs.leaf(self.counter, 0, 32);
        let next = self.exprs.add(counter, minus_one);
        let mut ends = false;
        for c in &self.pass.conditions {
            if let Condition::NotZero(v) = *c {
                (self.f.ty(v) == Ty::I32 && self.eval(v, 0) == counter).then_some(())?;
                ends = true;
            }
        }
        (ends && self.eval(self.pass.back[n], 0) == next).then_some(())
    }

    /// 64-bit numbers in a value.
    fn elements(&self, v: Value) -> u16 {
        let ty = self.f.ty(v);
        match ty.lane {
            Lane::I64 => ty.lanes,
            Lane::I32 => ty.lanes / 2,
            _ => 0,
        }
    }

    fn element(&mut self, v: Value, n: u16) -> Expr {
        if self.f.ty(v).lane == Lane::I64 {
            return self.eval(v, n);
        }
        let (low, high) = (self.eval(v, 2 * n), self.eval(v, 2 * n + 1));
        self.exprs.concat(low, high)
    }

    /// The parameter as the remainder.
    fn remainder(&mut self, n: usize, p: Value) -> Option<Vec<LongDivision>> {
        let elements = self.elements(p);
        let lanes = (0..elements).map(|k| self.remainder_lane(n, p, k));
        let lanes: Vec<LongDivision> = lanes.collect::<Option<_>>()?;
        (!lanes.is_empty()).then_some(lanes)
    }

    fn remainder_lane(&mut self, n: usize, p: Value, k: u16) -> Option<LongDivision> {
        let back = self.pass.back[n];
        self.suppose(None, None);
        self.exprs.masks.clear();
        self.exprs.compared.clear();
        self.element(back, k);
        let old = self.element(p, k);
        let compared = std::mem::take(&mut self.exprs.compared);
        let masks = std::mem::take(&mut self.exprs.masks);
        let (dividend, divisor) = compared.iter().find_map(|&(s, y)| {
            let s = match self.exprs.node(s) {
                Node::Op(Op::Select, args) => args[1],
                _ => s,
            };
            let x = self.shifted_in(s, old)?;
            (self.invariant(x) && self.invariant(y)).then_some((x, y))
        })?;
        let under = masks.into_iter().flat_map(|(mask, lane)| {
            [Part::Under(mask), Part::OrShifts(mask)].map(|part| (part, lane))
        });
        let parts: Vec<(Part, u16)> = under.chain([(Part::Always, k)]).collect();
        let lanes = parts.into_iter().map(|(part, lane)| LongDivision {
            dividend,
            divisor,
            lane,
            part,
        });
        lanes
            .into_iter()
            .find(|&lane| self.is_remainder(back, k, old, lane))
    }

    /// `r << 1 | x >> k & 1`.
    fn step(&mut self, r: Expr, x: Expr) -> Expr {
        let one = self.exprs.constant(64, 1);
        let count = self.count();
        let doubled = self.exprs.shift(BinOp::Shl, r, one);
        let shifted = self.exprs.shift(BinOp::LShr, x, count);
        let bit = self.exprs.bitwise(BinOp::And, shifted, one);
        self.exprs.bitwise(BinOp::Or, doubled, bit)
    }

    /// The counter as 64 bits.
    fn count(&mut self) -> Expr {
        let counter = self.exprs.leaf(self.counter, 0, 32);
        let zero = self.exprs.constant(32, 0);
        self.exprs.concat(counter, zero)
    }

    /// The number whose bit a step of `r` takes.
    fn shifted_in(&mut self, s: Expr, r: Expr) -> Option<Expr> {
        let Node::Op(Op::Binary(BinOp::Or), args) = self.exprs.node(s).clone() else {
            return None;
        };
        args.into_iter().find_map(|bit| {
            let Node::Op(Op::Binary(BinOp::And), args) = self.exprs.node(bit).clone() else {
                return None;
            };
            let Node::Op(Op::Binary(BinOp::LShr), args) = self.exprs.node(args[0]).clone() else {
                return None;
            };
            let x = args[0];
            (self.step(r, x) == s).then_some(x)
        })
    }

    /// True for what is the same in each pass.
    fn invariant(&self, e: Expr) -> bool {
        match self.exprs.node(e) {
            Node::Const(_) => true,
            Node::Leaf(v, _) => {
                !matches!(self.f.def(*v), ValueDef::Param(b, _) if b == self.pass.header)
            }
            Node::Low(x) | Node::High(x) => self.invariant(*x),
            Node::Concat(x, y) => self.invariant(*x) && self.invariant(*y),
            Node::Op(..) | Node::Either(..) | Node::Opaque(..) | Node::Unknown(_) => false,
        }
    }

    fn is_remainder(&mut self, back: Value, k: u16, old: Expr, lane: LongDivision) -> bool {
        let (x, y) = (lane.dividend, lane.divisor);
        let s = self.step(old, x);
        if let Some(mask) = lane.mask() {
            self.suppose(Some((mask, false)), None);
            let idle = match lane.part {
                Part::OrShifts(_) => s,
                _ => old,
            };
            if self.element(back, k) != idle || !self.keeps_mask(mask, false) {
                return false;
            }
        }
        let minus = self.exprs.neg(y);
        let rest = self.exprs.add(s, minus);
        for (less, expected) in [(true, s), (false, rest)] {
            self.suppose(lane.active(), Some(((s, y), less)));
            let kept = lane.mask().is_none_or(|mask| self.keeps_mask(mask, true));
            if !kept || !self.goes_on(lane.lane) || self.element(back, k) != expected {
                return false;
            }
        }
        true
    }

    /// True when a mask that the loop carries has the same bit afterwards.
    fn keeps_mask(&mut self, (mask, lane): (Value, u16), set: bool) -> bool {
        let params = &self.f.block(self.pass.header).params;
        match params.iter().position(|&p| p == mask) {
            Some(n) => {
                let after = self.eval(self.pass.back[n], lane);
                if set {
                    self.exprs.is_ones(after)
                } else {
                    self.exprs.is_zero(after)
                }
            }
            None => true,
        }
    }

    /// True when the loop goes on for a lane's sake, unless the counter ends it.
    fn goes_on(&mut self, lane: u16) -> bool {
        let masks = self.pass.conditions.iter().filter_map(|c| match *c {
            Condition::Any(mask) => Some(mask),
            Condition::NotZero(_) => None,
        });
        let masks: Vec<Value> = masks.collect();
        masks.into_iter().all(|mask| self.any(mask, lane))
    }

    /// True when a lane of a mask is known to be set, probably this one.
    fn any(&mut self, mask: Value, lane: u16) -> bool {
        let lanes = self.f.ty(mask).lanes;
        let lane = if lane < lanes { lane } else { 0 };
        let bit = self.eval(mask, lane);
        self.exprs.is_ones(bit)
    }

    /// True for a parameter that each pass leaves as it is: always, or where its lanes are those that take part.
    fn stays(&mut self, n: usize, p: Value, lanes: &[LongDivision]) -> bool {
        let ty = self.f.ty(p);
        let back = self.pass.back[n];
        self.suppose(None, None);
        (0..ty.lanes).all(|k| {
            // Proven with the remainders.
            lanes.iter().any(|l| l.mask() == Some((p, k))) || self.eval(back, k) == self.eval(p, k)
        })
    }

    /// True for a mask whose lanes are read by nothing where they take part, and stay as they are elsewhere: what a comparison gave
    /// in the pass before.
    fn unread(&mut self, n: usize, p: Value, lanes: &[LongDivision]) -> bool {
        let ty = self.f.ty(p);
        if ty.lane != Lane::I1 {
            return false;
        }
        let back = self.pass.back[n];
        let outputs = self.pass.outputs(self.f);
        (0..ty.lanes).all(|k| {
            self.suppose(None, None);
            let before = self.eval(p, k);
            let Some(lane) = lanes.iter().find(|l| l.lane == k) else {
                return self.eval(back, k) == before;
            };
            if let Some(mask) = lane.mask() {
                self.suppose(Some((mask, false)), None);
                if self.eval(back, k) != before {
                    return false;
                }
            }
            self.suppose(lane.active(), None);
            let mut without = FxHashSet::default();
            outputs.iter().all(|&v| {
                (0..self.f.ty(v).lanes).all(|j| {
                    let e = self.eval(v, j);
                    !self.exprs.depends(e, before, &mut without)
                })
            })
        })
    }

    /// The parameter as the quotient.
    fn quotient(
        &mut self,
        n: usize,
        p: Value,
        lanes: &[LongDivision],
    ) -> Option<Vec<LongDivision>> {
        let back = self.pass.back[n];
        let elements = self.elements(p);
        let mut found = Vec::new();
        for k in 0..elements {
            // Mostly in the order of the remainders; two halves are one after the other.
            let near = lanes
                .iter()
                .skip(usize::from(k) % lanes.len().max(1))
                .step_by(elements.into());
            let lane = near
                .chain(lanes)
                .find(|&&l| self.is_quotient(back, p, k, l));
            found.push(*lane?);
        }
        (!found.is_empty()).then_some(found)
    }

    fn is_quotient(&mut self, back: Value, p: Value, k: u16, lane: LongDivision) -> bool {
        let Some(r) = self.remainder_of(lane) else {
            return false;
        };
        self.suppose(lane.mask().map(|mask| (mask, false)), None);
        let old = self.element(p, k);
        if lane.mask().is_some() && self.element(back, k) != old {
            return false;
        }
        let (one, count) = (self.exprs.constant(64, 1), self.count());
        let bit = self.exprs.shift(BinOp::Shl, one, count);
        let with_bit = self.exprs.bitwise(BinOp::Or, old, bit);
        for (less, expected) in [(true, old), (false, with_bit)] {
            self.suppose(lane.active(), Some(((r, lane.divisor), less)));
            if self.element(back, k) != expected {
                return false;
            }
        }
        true
    }

    /// `s` of a lane, as it is compared.
    fn remainder_of(&mut self, lane: LongDivision) -> Option<Expr> {
        let params = self.f.block(self.pass.header).params.clone();
        let steps = |s: &mut Self, p: Value, k: u16| {
            let (back, old) = (
                s.pass.back[params.iter().position(|&q| q == p)?],
                s.element(p, k),
            );
            let step = s.step(old, lane.dividend);
            s.suppose(lane.active(), Some(((step, lane.divisor), true)));
            (s.element(back, k) == step).then_some(step)
        };
        let candidates = params.iter().filter(|&&p| self.f.ty(p).lane == Lane::I64);
        let candidates: Vec<Value> = candidates.copied().collect();
        candidates.into_iter().find_map(|p| {
            let count = self.elements(p);
            let k = lane.lane % count.max(1);
            steps(self, p, k)
        })
    }

    /// The expression of a lane.
    fn eval(&mut self, v: Value, lane: u16) -> Expr {
        let v = self.f.resolve(v);
        if let Some(&known) = self.known.get(&(v, lane)) {
            return known;
        }
        let bits = self.f.ty(v).lane.bits();
        // Nothing that long is one of these loops.
        let e = if self.exprs.len() > EXPRS {
            self.exprs.unknown(bits)
        } else {
            match self.f.def(v) {
                ValueDef::Param(b, n) => self.param(v, lane, b, n as usize),
                ValueDef::Result(i, _) => self.result(v, lane, i),
                ValueDef::Alias(_) => self.exprs.unknown(bits),
            }
        };
        self.known.insert((v, lane), e);
        e
    }

    fn param(&mut self, v: Value, lane: u16, b: Block, n: usize) -> Expr {
        let bits = self.f.ty(v).lane.bits();
        let pass = self.pass;
        match pass.incoming.get(&b) {
            Some(Incoming::One(args)) => self.eval(args[n], lane),
            Some(Incoming::Either(mask, first, second)) => {
                let (a, b) = (self.eval(first[n], lane), self.eval(second[n], lane));
                if a == b {
                    return a;
                }
                let hint = self.exprs.facts.mask.map_or(lane, |((_, lane), _)| lane);
                if self.any(*mask, hint) {
                    a
                } else {
                    self.exprs.either(*mask, a, b)
                }
            }
            None => self.exprs.leaf(v, lane, bits),
        }
    }

    fn result(&mut self, v: Value, lane: u16, i: Inst) -> Expr {
        let (f, ty) = (self.f, self.f.ty(v));
        let data = f.inst(i);
        let bits = ty.lane.bits();
        let inside = self.pass.insts.contains(&i);
        let args = data.args.as_slice();
        let of = |a: Value| if f.ty(a).is_scalar() { 0 } else { lane };
        match &data.op {
            Op::Const(value) => self.exprs.constant(bits, *value),
            Op::VecConst(values) => self.exprs.constant(bits, values[usize::from(lane)]),
            Op::Splat => self.eval(args[0], 0),
            Op::ExtractLane(k) => self.eval(args[0], *k),
            Op::Shuffle(indices) => {
                let (k, first) = (indices[usize::from(lane)], f.ty(args[0]).lanes);
                match k.checked_sub(first) {
                    Some(k) => self.eval(args[1], k),
                    None => self.eval(args[0], k),
                }
            }
            Op::Bitcast => self.bitcast(v, lane, args[0]),
            Op::Convert(Conv::Trunc) | Op::Binary(BinOp::LShr) if inside || self.is_half(data) => {
                let args: Vec<Expr> = args.iter().map(|&a| self.eval(a, of(a))).collect();
                self.exprs.op(&data.op, &args, bits)
            }
            op if inside && op.is_lane_wise() => {
                let args: Vec<Expr> = args.iter().map(|&a| self.eval(a, of(a))).collect();
                self.exprs.op(op, &args, bits)
            }
            _ if inside => {
                let lanes = |&a: &Value| (0..f.ty(a).lanes).map(move |k| (a, k));
                let of = args.iter().flat_map(lanes);
                let of = of.map(|(a, k)| self.eval(a, k)).collect();
                self.exprs.opaque(v, lane, of, bits)
            }
            _ => self.exprs.leaf(v, lane, bits),
        }
    }

    /// True for what only takes a half of 64 bits.
    fn is_half(&self, data: &InstData) -> bool {
        let wide = self.f.ty(data.args[0]).lane == Lane::I64;
        let narrow = self.f.ty(data.results[0]).lane == Lane::I32;
        let by_half = || uniform_const(self.f, data.args[1]) == Some(32);
        wide && if matches!(data.op, Op::Convert(_)) {
            narrow
        } else {
            by_half()
        }
    }

    fn bitcast(&mut self, v: Value, lane: u16, from: Value) -> Expr {
        let (to, ty) = (self.f.ty(v).lane.bits(), self.f.ty(from).lane.bits());
        match (ty, to) {
            (64, 32) => {
                let whole = self.eval(from, lane / 2);
                if lane.is_multiple_of(2) {
                    self.exprs.low(whole)
                } else {
                    self.exprs.high(whole)
                }
            }
            (32, 64) => {
                let (low, high) = (self.eval(from, 2 * lane), self.eval(from, 2 * lane + 1));
                self.exprs.concat(low, high)
            }
            _ if ty == to => self.eval(from, lane),
            _ => self.exprs.unknown(to),
        }
    }
}
