//! Which part of a function may run strip by strip, and whether that pays.

use rustc_hash::FxHashSet;

use super::{agree, cost};
use crate::ssa::dom::DomTree;
use crate::ssa::{Block, Function, Input, Inst, InstData, Op, Space, Term, Value};

/// How often a region is made shorter because of branches on masks, before it may have none.
const TRIES: usize = 8;

/// Blocks with one entry and one end, in which each lane is computed by itself.
pub(super) struct Region {
    /// The entry first; none if the region is a part of its end.
    pub(super) blocks: Vec<Block>,
    /// The block behind.
    pub(super) end: Block,
    /// Instructions at the start of `end` that belong to the region, too.
    pub(super) prefix: usize,
    /// Lanes of a strip.
    pub(super) strip: u16,
    /// Scalars that it computes and that are not the same in all strips.
    pub(super) differing: FxHashSet<Value>,
}

impl Region {
    /// The first region of a function that is worth it.
    pub(super) fn find(f: &Function, dom: &DomTree, always: bool) -> Option<Region> {
        let mut start = Function::ENTRY;
        loop {
            if let Some(region) = Region::at(f, dom, start, always) {
                return Some(region);
            }
            start = behind_exit(f, dom, start)?;
        }
    }

    /// The region that begins with a block, if it is worth it.
    fn at(f: &Function, dom: &DomTree, start: Block, always: bool) -> Option<Region> {
        let mut ends = FxHashSet::default();
        for tries in 0..=TRIES {
            let region = Check::new(f, dom, start, &ends, tries < TRIES).region();
            let strip = cost::strip(f, &region, always)?;
            match agree::check(f, dom, &region) {
                Ok(differing) => {
                    return Some(Region {
                        strip,
                        differing,
                        ..region
                    });
                }
                Err(obstacles) => ends.extend(obstacles),
            }
        }
        None
    }

    /// Its instructions, block by block.
    pub(super) fn insts<'f>(&self, f: &'f Function) -> impl Iterator<Item = &'f [Inst]> {
        let end = f.block(self.end).insts.get(..self.prefix);
        let blocks = self.blocks.iter().map(|&b| f.block(b).insts.as_slice());
        blocks.collect::<Vec<_>>().into_iter().chain(end)
    }
}

/// The block that goes on where another one leads to the end of the function under a condition.
fn behind_exit(f: &Function, dom: &DomTree, start: Block) -> Option<Block> {
    let Term::Branch { then, other, .. } = &f.block(start).term else {
        return None;
    };
    let ends = |b: Block| {
        let data = f.block(b);
        data.insts.is_empty() && data.term == Term::Return
    };
    let next = match (ends(then.block), ends(other.block)) {
        (false, true) => then.block,
        (true, false) => other.block,
        _ => return None,
    };
    (dom.preds(next).len() == 1).then_some(next)
}

/// What may belong to a region that begins with a block.
struct Check<'a> {
    f: &'a Function,
    dom: &'a DomTree,
    start: Block,
    /// Vectors that are used otherwise than by taking out elements.
    whole: Vec<bool>,
    /// Those `maskany` and `maskall` that end a region.
    ends: &'a FxHashSet<Inst>,
    /// True if others may be in a region.
    with_masks: bool,
}

impl<'a> Check<'a> {
    fn new(
        f: &'a Function,
        dom: &'a DomTree,
        start: Block,
        ends: &'a FxHashSet<Inst>,
        with_masks: bool,
    ) -> Check<'a> {
        let mut whole = vec![false; f.values.len()];
        for &b in dom.rpo() {
            for data in f.block(b).insts.iter().map(|&i| f.inst(i)) {
                for a in &data.args {
                    whole[a.0 as usize] |= !matches!(data.op, Op::ExtractLane(_));
                }
            }
            let targets = f.block(b).term.targets();
            for a in targets.iter().flat_map(|call| &call.args) {
                whole[a.0 as usize] = true;
            }
        }
        Check {
            f,
            dom,
            start,
            whole,
            ends,
            with_masks,
        }
    }

    /// The largest region.
    fn region(&self) -> Region {
        let mut end = self.stop();
        while end != self.start {
            let blocks = self.before(end);
            if self.is_closed(&blocks, end) {
                return self.until(blocks, end);
            }
            end = self.dom.idom(end).unwrap_or(self.start);
        }
        self.until(Vec::new(), self.start)
    }

    fn until(&self, blocks: Vec<Block>, end: Block) -> Region {
        Region {
            blocks,
            end,
            prefix: self.allowed_insts(end),
            strip: self.f.simd,
            differing: FxHashSet::default(),
        }
    }

    /// The last block that all ways to what may not be in a region have in common.
    fn stop(&self) -> Block {
        let mut stop: Option<Block> = None;
        let (mut seen, mut work) = (FxHashSet::from_iter([self.start]), vec![self.start]);
        while let Some(b) = work.pop() {
            if !self.is_allowed(b) {
                stop = Some(stop.map_or(b, |s| self.common(s, b)));
                continue;
            }
            let targets = self.f.block(b).term.targets().into_iter();
            work.extend(targets.map(|call| call.block).filter(|&t| seen.insert(t)));
        }
        stop.unwrap_or(self.start)
    }

    fn common(&self, mut a: Block, b: Block) -> Block {
        while !self.dom.dominates(a, b) {
            a = self.dom.idom(a).unwrap_or(Function::ENTRY);
        }
        a
    }

    /// Blocks that are reached from the start without passing `end`, the start first.
    fn before(&self, end: Block) -> Vec<Block> {
        let mut seen = FxHashSet::from_iter([self.start, end]);
        let mut blocks = vec![self.start];
        let mut at = 0;
        while let Some(&b) = blocks.get(at) {
            at += 1;
            let targets = self.f.block(b).term.targets().into_iter();
            blocks.extend(targets.map(|call| call.block).filter(|&t| seen.insert(t)));
        }
        blocks
    }

    /// True if nothing else leads into the blocks or to their end, and all of them may be in a region.
    fn is_closed(&self, blocks: &[Block], end: Block) -> bool {
        let inside: FxHashSet<Block> = blocks.iter().copied().collect();
        let comes_from = |b: Block, from_inside: bool| {
            let mut preds = self.dom.preds(b).iter();
            preds.all(|p| inside.contains(p) == from_inside)
        };
        comes_from(end, true)
            && blocks
                .iter()
                .all(|&b| self.is_allowed(b) && comes_from(b, b != self.start))
    }

    /// All of a block may run strip by strip.
    fn is_allowed(&self, b: Block) -> bool {
        let data = self.f.block(b);
        let ends = matches!(data.term, Term::Return | Term::Suspend(_) | Term::None);
        !ends
            && data.params.iter().all(|&p| self.fits(p))
            && self.allowed_insts(b) == data.insts.len()
    }

    /// How many instructions at the start of a block may.
    fn allowed_insts(&self, b: Block) -> usize {
        let insts = &self.f.block(b).insts;
        let other = insts.iter().position(|&i| !self.is_allowed_inst(i));
        other.unwrap_or(insts.len())
    }

    fn is_wide(&self, v: Value) -> bool {
        self.f.ty(v).lanes == self.f.simd
    }

    fn fits(&self, v: Value) -> bool {
        self.f.ty(v).is_scalar() || self.is_wide(v)
    }

    fn is_allowed_inst(&self, i: Inst) -> bool {
        let data = self.f.inst(i);
        // Elements that are loaded for all lanes at once are no lanes.
        match (&data.op, data.args.as_slice(), data.results.as_slice()) {
            (Op::BlockLoad(m), _, &[v]) => {
                return m.space != Space::Regs && (!self.is_wide(v) || !self.whole[v.0 as usize]);
            }
            (Op::ExtractLane(_), &[v], _) if self.is_list(v) => return true,
            (Op::MaskAny | Op::MaskAll, &[mask], _) => {
                return self.is_wide(mask) && self.with_masks && !self.ends.contains(&i);
            }
            _ => {}
        }
        let mut values = data.args.iter().chain(&data.results);
        if values.clone().any(|&v| self.is_wide(v)) {
            return values.all(|&v| self.fits(v)) && self.is_lane_wise(data);
        }
        data.op == Op::Poll || !data.op.has_effect()
    }

    /// True for elements that are loaded for all lanes at once, and taken out one by one.
    fn is_list(&self, v: Value) -> bool {
        let data = self.f.def_inst(v);
        data.is_some_and(|data| matches!(data.op, Op::BlockLoad(_))) && !self.whole[v.0 as usize]
    }

    fn is_lane_wise(&self, data: &InstData) -> bool {
        match &data.op {
            Op::VecConst(_) | Op::Splat => true,
            Op::Load(m) => m.space != Space::Regs,
            Op::Input(input) => matches!(input, Input::LocalIds { .. } | Input::DispatchMask),
            Op::Bitcast => data.args.iter().all(|&a| self.is_wide(a)),
            op => op.is_lane_wise(),
        }
    }
}

/// True for operations that are done again, for all lanes, in front of the region or behind it.
pub(super) fn is_computed(op: &Op) -> bool {
    op.is_lane_wise() || matches!(op, Op::Const(_) | Op::VecConst(_) | Op::Splat | Op::Bitcast)
}
