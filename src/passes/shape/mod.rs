//! Address shapes: which accesses are affine, and when all their lanes are enabled.
//!
//! Guarantees: [`crate::ssa::Function::shapes`] has an entry for each lane-wise load, store and atomic of which
//! something is known. Where a fact depends on an extension not wrapping between the first and the last lane,
//! a scalar guard tests that at run time. The scalars are new instructions (and block parameters, for
//! addresses carried around loops) beside the vector ones; nothing else changes. Runs after all
//! optimisations: these would remove the scalars as dead code.
//!
//! Not done: addresses put together from halves, lanes that repeat (`0 0 1 1`), local ids of unknown layout.

mod analysis;
mod emit;

use std::collections::{BTreeMap, BTreeSet};

use super::edit::uniform_const;
use crate::ssa::dom::{drop_unreachable, reverse_post_order};
use crate::ssa::remark::{Cause, Decision, Why};
use crate::ssa::shape::Shape;
use crate::ssa::{BinOp, Function, Inst, Op, Value};
use analysis::{Find, Spacing};

/// How deep a mask is looked into.
const MASK_DEPTH: usize = 6;

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    f.shapes = BTreeMap::new();
    let order = reverse_post_order(f);
    drop_unreachable(f, &order);
    let spacing = analysis::run(f, &order, Find::Facts);
    let accesses: Vec<Inst> = order
        .iter()
        .flat_map(|&b| f.block(b).insts.iter().copied())
        .filter(|&i| is_access(f, i))
        .collect();
    let chosen = |i: &Inst| {
        let spacing = spacing[f.inst(*i).args[1].0 as usize];
        matches!(
            spacing,
            Spacing::Any(Cause::Masked | Cause::Paths | Cause::Operation, _)
        )
    };
    let speculative = match accesses.iter().any(chosen) {
        true => analysis::run(f, &order, Find::Speculative),
        false => Vec::new(),
    };
    let mut needs = Needs {
        f,
        spacing: &spacing,
        incoming: analysis::incoming(f),
        bases: vec![false; f.values.len()],
        masks: vec![false; f.values.len()],
    };
    for &i in &accesses {
        needs.access(i);
    }
    let (bases, masks) = (needs.bases, needs.masks);
    let made = emit::run(f, &order, &spacing, &bases, &masks);
    for i in accesses {
        let args = &f.inst(i).args;
        let shape = Shape {
            addr: made.affine(args[1], &spacing),
            speculative: match speculative.get(args[1].0 as usize) {
                Some(Spacing::Affine { stride, .. }) => Some(*stride),
                _ => None,
            },
            mask_all: made.all(args[0]),
        };
        let shape = Shape {
            speculative: shape.speculative.filter(|_| shape.addr.is_none()),
            ..shape
        };
        remark(f, i, shape, &spacing);
        if shape != Shape::default() {
            f.shapes.insert(i, shape);
        }
    }
    f.shapes.len()
}

/// Accesses whose addresses are affine, or are likely to be, or as local ids are, whose layout the code tests.
pub(super) fn affine_accesses(f: &Function) -> BTreeSet<Inst> {
    spaced(f, |s| {
        matches!(s, Spacing::Affine { .. } | Spacing::Any(Cause::LocalIds, _))
    })
}

/// Lanes of accesses whose addresses are affine, or are likely to be.
pub(super) fn affine_lanes(f: &Function) -> usize {
    let affine = spaced(f, |s| matches!(s, Spacing::Affine { .. }));
    let lanes = |&i: &Inst| usize::from(f.ty(f.inst(i).args[1]).lanes);
    affine.iter().map(lanes).sum()
}

/// Accesses of whose addresses something holds, or is likely to.
fn spaced(f: &Function, wanted: impl Fn(&Spacing) -> bool) -> BTreeSet<Inst> {
    let order = reverse_post_order(f);
    let (facts, speculative) = (
        analysis::run(f, &order, Find::Facts),
        analysis::run(f, &order, Find::Speculative),
    );
    let is_wanted = |i: &Inst| {
        let at = f.inst(*i).args[1].0 as usize;
        [&facts, &speculative].iter().any(|s| wanted(&s[at]))
    };
    let insts = order.iter().flat_map(|&b| f.block(b).insts.iter().copied());
    insts
        .filter(|&i| is_access(f, i))
        .filter(is_wanted)
        .collect()
}

/// Notes what was found about an access.
fn remark(f: &mut Function, i: Inst, shape: Shape, spacing: &[Spacing]) {
    let &[mask, addr, ..] = f.inst(i).args.as_slice() else {
        return;
    };
    let why = match (shape.addr, spacing.get(addr.0 as usize)) {
        (Some(addr), _) if addr.guard.is_some() => Why::Tested,
        (Some(_), _) => Why::Proven,
        (None, Some(&Spacing::Any(cause, at))) => Why::Unknown {
            cause,
            line: f.def_inst(at).map_or(0, |data| data.line),
        },
        (None, _) => return,
    };
    let stride = shape.addr.map(|addr| addr.stride);
    f.remark(i, Decision::Addresses { stride, why });
    if matches!(f.inst(i).op, Op::Store(_)) && uniform_const(f, mask) != Some(1) {
        let decision = match shape.mask_all {
            Some(_) => Decision::MaskUsed("whether all lanes store is known from scalars"),
            None => Decision::MaskMissed("whether all lanes store has to be tested on the mask"),
        };
        f.remark(i, decision);
    }
}

fn is_access(f: &Function, i: Inst) -> bool {
    let data = f.inst(i);
    let lane_wise = matches!(data.op, Op::Load(_) | Op::Store(_) | Op::Atomic(_));
    lane_wise && !f.ty(data.args[0]).is_scalar()
}

/// Which vectors need a scalar base, and which masks a scalar "all".
struct Needs<'a> {
    f: &'a Function,
    spacing: &'a [Spacing],
    /// Arguments by parameter.
    incoming: Vec<Vec<Value>>,
    bases: Vec<bool>,
    masks: Vec<bool>,
}

impl Needs<'_> {
    fn access(&mut self, i: Inst) {
        let (mask, addr) = (self.f.inst(i).args[0], self.f.inst(i).args[1]);
        self.base(addr);
        self.mask(mask, MASK_DEPTH);
    }

    /// Marks what the base of `v` is computed from.
    fn base(&mut self, v: Value) {
        let mut work = vec![v];
        while let Some(v) = work.pop() {
            let n = v.0 as usize;
            let affine = matches!(self.spacing[n], Spacing::Affine { .. });
            if affine && !std::mem::replace(&mut self.bases[n], true) {
                match self.f.def_inst(v) {
                    Some(data) => work.extend(&data.args),
                    None => work.extend(&self.incoming[n]),
                }
            }
        }
    }

    /// Marks masks that a scalar can be derived for; false when it cannot.
    fn mask(&mut self, v: Value, depth: usize) -> bool {
        if self.masks[v.0 as usize] {
            return true;
        }
        let Some(data) = self.f.def_inst(v) else {
            return false;
        };
        let args = &data.args;
        let known = match data.op {
            Op::Splat | Op::VecConst(_) | Op::Input(_) => true,
            Op::Shuffle(_) => {
                let from = self.f.def_inst(args[0]);
                from.is_some_and(|d| matches!(d.op, Op::Input(_)))
            }
            Op::Binary(BinOp::And) if depth > 0 => {
                let first = self.mask(args[0], depth - 1);
                first && self.mask(args[1], depth - 1)
            }
            Op::ICmp(cond) => {
                let known = emit::compares_ends(self.f, self.spacing, cond, args);
                if known {
                    self.base(args[0]);
                    self.base(args[1]);
                }
                known
            }
            _ => false,
        };
        self.masks[v.0 as usize] = known;
        known
    }
}
