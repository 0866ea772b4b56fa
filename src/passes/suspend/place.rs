//! Where values are made again, and the rewriting of their uses.

use std::collections::BTreeMap;

use super::plan::{Carried, Plan};
use super::regions::Regions;
use super::slots::Frame;
use crate::ssa::{Block, Function, Inst, Op, Term, Value};

/// By value and head of the region: the last block that dominates all uses in the region.
pub(super) type Uses = BTreeMap<(Value, Block), Block>;

/// Uses that their definition does not reach any more.
pub(super) fn far_uses(f: &Function, regions: &Regions) -> Uses {
    let mut uses = Uses::new();
    for &b in regions.dom.rpo() {
        let block = f.block(b);
        for &i in &block.insts {
            for &v in &f.inst(i).args {
                far_use(regions, &mut uses, v, b);
            }
        }
        for v in term_values(&block.term) {
            far_use(regions, &mut uses, v, b);
        }
    }
    uses
}

fn term_values(term: &Term) -> impl Iterator<Item = Value> {
    let args = term.targets().into_iter().flat_map(|c| &c.args).copied();
    term.condition().into_iter().chain(args)
}

fn far_use(regions: &Regions, uses: &mut Uses, v: Value, b: Block) {
    if !regions.reaches(v, b) {
        let at = uses.entry((v, regions.head(b))).or_insert(b);
        *at = regions.meet(*at, b);
    }
}

/// Where each value is made again.
pub(super) struct Places {
    /// Definitions before uses.
    order: Vec<(Value, Block, Block)>,
}

impl Places {
    pub(super) fn new(f: &Function, regions: &Regions, plan: &Plan, mut uses: Uses) -> Places {
        // From the last value to the first, so that all uses of a value are placed before itself.
        let key = |&(v, head): &(Value, Block)| (regions.order_of(v), v, head);
        let mut pending: BTreeMap<_, Block> = uses.iter().map(|(k, &b)| (key(k), b)).collect();
        uses.clear();
        let mut order = Vec::new();
        while let Some(((_, v, head), b)) = pending.pop_last() {
            let at = regions.outside_loops(b);
            order.push((v, head, at));
            let again = plan.way(v) == Some(Carried::Again);
            for &arg in f.def_inst(v).filter(|_| again).map_or(&[][..], |d| &d.args) {
                far_use(regions, &mut uses, arg, at);
            }
            for (k, b) in std::mem::take(&mut uses) {
                let place = pending.entry(key(&k)).or_insert(b);
                *place = regions.meet(*place, b);
            }
        }
        order.reverse();
        Places { order }
    }

    /// Blocks where saved values are loaded.
    pub(super) fn loads<'a>(&'a self, plan: &'a Plan) -> impl Iterator<Item = (Value, Block)> + 'a {
        let saved = |(v, _, at): &(Value, Block, Block)| {
            (plan.way(*v) == Some(Carried::Frame)).then_some((*v, *at))
        };
        self.order.iter().filter_map(saved)
    }
}

/// Makes the values, saves those that need it, and lets uses find them.
pub(super) fn rewrite(
    f: &mut Function,
    regions: &Regions,
    plan: &Plan,
    places: &Places,
    frame: &Frame,
) {
    let blocks: Vec<Block> = regions.dom.rpo().to_vec();
    let mut made: BTreeMap<(Value, Block), Value> = BTreeMap::new();
    let mut heads: BTreeMap<Block, Vec<Inst>> = BTreeMap::new();
    for &(v, head, at) in &places.order {
        let i = match (plan.way(v), f.def_inst(v)) {
            (Some(Carried::Again), Some(data)) => {
                let (op, line) = (data.op.clone(), data.line);
                let arg = |&a: &Value| made.get(&(a, head)).copied().unwrap_or(a);
                let near = |a: &Value| if regions.reaches(*a, at) { *a } else { arg(a) };
                let args = data.args.iter().map(near).collect();
                f.make(op, args, &[f.ty(v)], line)
            }
            _ => f.make(Op::FrameLoad(frame.offset(v)), Vec::new(), &[f.ty(v)], 0),
        };
        made.insert((v, head), f.inst(i).results[0]);
        heads.entry(at).or_default().push(i);
    }
    for b in blocks {
        let head = regions.head(b);
        let renamed = |v: Value| match made.get(&(v, head)) {
            Some(&new) if !regions.reaches(v, b) => new,
            _ => v,
        };
        for n in 0..f.block(b).insts.len() {
            let i = f.block(b).insts[n];
            for a in &mut f.inst_mut(i).args {
                *a = renamed(*a);
            }
        }
        let mut term = std::mem::replace(&mut f.block_mut(b).term, Term::None);
        if let Term::Branch { cond: v, .. } | Term::Switch { index: v, .. } = &mut term {
            *v = renamed(*v);
        }
        for call in term.targets_mut() {
            for a in &mut call.args {
                *a = renamed(*a);
            }
        }
        f.block_mut(b).term = term;
    }
    frame.save(f);
    for (b, insts) in heads {
        f.block_mut(b).insts.splice(0..0, insts);
    }
}
