//! Demand at the start of a block, as demand at the ends of its predecessors.
//!
//! A mask is another value there, or has no name: then one that contains it counts. On an edge where nothing is left of the demand, the
//! argument is not observed: the block is skipped, and its registers would be carried past it in vain.

use super::{Demand, Pass, Seen};
use crate::passes::edit::{const_lanes, uniform_const};
use crate::passes::masks::facts::{Part, Without};
use crate::ssa::{BinOp, Block, BlockCall, Function, Lane, Op, Term, Ty, Value, ValueDef};

/// Masks that contain another one, of those that may have a name at the end of a predecessor: each branch that lanes leave by is a step.
const FARTHEST: usize = 40;

/// Unions in unions that are looked into at a join.
const UNION: usize = 3;

/// An argument of an edge whose lanes nothing observes.
pub(super) struct Unobserved {
    from: Block,
    /// Target of the block's terminator, and argument of that.
    target: usize,
    argument: usize,
    ty: Ty,
}

impl Unobserved {
    /// Passes zeros instead.
    pub(super) fn clear(&self, f: &mut Function) {
        let zero = Op::VecConst(vec![0; usize::from(self.ty.lanes)].into());
        let zero = f.push1(self.from, zero, Vec::new(), self.ty, 0);
        f.block_mut(self.from).term.targets_mut()[self.target].args[self.argument] = zero;
    }
}

impl Pass<'_> {
    /// Passes the demand of a parameter on to its arguments.
    pub(super) fn edges(&mut self, p: Value) {
        let ValueDef::Param(_, index) = self.f.def(p) else {
            return;
        };
        let d = self.demand[p.0 as usize];
        let lanes = self.f.ty(p).lanes;
        for (from, n) in self.args[p.0 as usize].clone() {
            let call = self.f.block(from).term.targets()[n].clone();
            let arg = call.args[index as usize];
            let d = match d {
                Demand::Under(seen) => self.translate(seen, (from, n), &call, lanes),
                other => other,
            };
            self.raise(arg, d);
        }
    }

    /// A demand at the start of a block as one at the end of a predecessor, for the edge to its target `n`.
    fn translate(
        &mut self,
        seen: Seen,
        edge: (Block, usize),
        call: &BlockCall,
        elements: u16,
    ) -> Demand {
        let lanes = elements.div_ceil(seen.per);
        let mut candidates = vec![seen.part];
        self.supersets(seen.part, lanes, FARTHEST, &mut candidates);
        candidates.extend(self.facts.ceilings(seen.part));
        let without = self.without_on_edge(seen.without, call);
        let mut nearest = None;
        for c in candidates {
            let mut parts = Vec::new();
            if !self.union_on_edge(c, call, UNION, &mut parts) {
                continue;
            }
            let seen = |part| Seen {
                part,
                without,
                ..seen
            };
            parts.retain(|&part| !self.is_empty(seen(part), lanes, edge));
            match *parts.as_slice() {
                [] => return Demand::Nothing,
                [part] => nearest = nearest.or(Some(self.without_empty(seen(part), edge))),
                _ => {}
            }
        }
        nearest.map_or(Demand::All, Demand::Under)
    }

    /// Masks at the end of a predecessor whose union is a mask at the start of a block; false where one has no name there. At a join,
    /// lanes that come and lanes that wait are such a union, and on most edges one of them is empty.
    fn union_on_edge(
        &self,
        part: Part,
        call: &BlockCall,
        depth: usize,
        out: &mut Vec<Part>,
    ) -> bool {
        if let Some(named) = self.on_edge(part, call) {
            out.push(named);
            return true;
        }
        match self.f.def_inst(part.mask) {
            Some(data) if data.op == Op::Binary(BinOp::Or) && depth > 0 => {
                data.args.iter().all(|&x| {
                    let mask = self.f.resolve(x);
                    self.union_on_edge(Part { mask, ..part }, call, depth - 1, out)
                })
            }
            _ => false,
        }
    }

    /// Masks that are left out, at the end of a predecessor, as far as they have names there.
    fn without_on_edge(&self, without: Without, call: &BlockCall) -> Without {
        let mut names = Vec::new();
        for but in without.into_iter().flatten() {
            let mut parts = Vec::new();
            // Of a union, any part may be left out alone.
            self.union_on_edge(but, call, 1, &mut parts);
            names.extend(parts);
        }
        let zero = |part: &Part| uniform_const(self.f, part.mask) == Some(0);
        names.retain(|part| !zero(part));
        [names.first().copied(), names.get(1).copied()]
    }

    /// A mask at the start of a block as one at the end of a predecessor, if it has a name there.
    fn on_edge(&self, part: Part, call: &BlockCall) -> Option<Part> {
        match self.f.def(part.mask) {
            ValueDef::Param(home, n) if home == call.block => Some(Part {
                mask: self.f.resolve(call.args[n as usize]),
                ..part
            }),
            _ => {
                let (home, _) = self.place[part.mask.0 as usize]?;
                let above = home != call.block && self.dom.dominates(home, call.block);
                above.then_some(part)
            }
        }
    }

    /// True when nothing is observed on the edge to target `n` of a block: the mask has no lane, or it is a part of one that the block has
    /// found empty.
    fn is_empty(&mut self, seen: Seen, lanes: u16, (from, n): (Block, usize)) -> bool {
        let part = seen.part;
        let window = usize::from(part.first)..usize::from(part.first + lanes);
        let constant = const_lanes(self.f, part.mask).and_then(|all| all.get(window));
        if constant.is_some_and(|lanes| lanes.iter().all(|&lane| lane == 0)) {
            return true;
        }
        let Some(mask) = self.found_empty(from, n) else {
            return false;
        };
        let tested = Part { mask, ..part };
        self.f.ty(mask) == self.f.ty(part.mask) && self.is_within(seen, tested, lanes)
    }

    /// The same demand on an edge, without a mask that has no lane there: so it is the same as in the block that the edge goes past.
    fn without_empty(&self, mut seen: Seen, (from, n): (Block, usize)) -> Seen {
        let Some(mask) = self.found_empty(from, n) else {
            return seen;
        };
        let empty = Part { mask, ..seen.part };
        let same = self.f.ty(mask) == self.f.ty(seen.part.mask);
        if let [first, free @ None] = &mut seen.without
            && same
            && *first != Some(empty)
        {
            // In the order in which a select leaves its mask out.
            *free = first.replace(empty);
        }
        seen
    }

    /// The mask that has no lane on the edge to target `n` of a block, as its branch has found.
    fn found_empty(&self, from: Block, n: usize) -> Option<Value> {
        let Term::Branch { cond, .. } = self.f.block(from).term else {
            return None;
        };
        let any = self.f.def_inst(self.f.resolve(cond))?;
        (any.op == Op::MaskAny && n == 1).then(|| self.f.resolve(any.args[0]))
    }

    /// Arguments of vectors that nothing observes, though their parameter is observed on other ways.
    pub(super) fn unobserved_arguments(&self) -> Vec<Unobserved> {
        let mut out = Vec::new();
        for &b in self.dom.rpo() {
            for (n, call) in self.f.block(b).term.targets().into_iter().enumerate() {
                let params = self.f.block(call.block).params.iter();
                for (k, (&p, &arg)) in params.zip(&call.args).enumerate() {
                    let arg = self.f.resolve(arg);
                    let ty = self.f.ty(arg);
                    let dead = self.demand[arg.0 as usize] == Demand::Nothing;
                    let alive = self.demand[p.0 as usize] != Demand::Nothing;
                    if alive && dead && ty.lane != Lane::I1 && const_lanes(self.f, arg).is_none() {
                        out.push(Unobserved {
                            from: b,
                            target: n,
                            argument: k,
                            ty,
                        });
                    }
                }
            }
        }
        out
    }
}
