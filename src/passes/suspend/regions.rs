//! The control flow after the cut: dominators, regions, loops, and where threads come back.

use super::split::Pieces;
use crate::ssa::dom::DomTree;
use crate::ssa::{Block, Function, Value};

/// What the other steps ask about blocks and places. Nothing of it changes until the pass is done.
pub(super) struct Regions {
    pub(super) dom: DomTree,
    /// Block and position of each value's definition in an order where definitions come before uses.
    place: Vec<Option<(u32, u32)>>,
    home: Vec<Option<Block>>,
    /// Head of the region of each block.
    head: Vec<Block>,
    /// How many loops each block is in.
    depth: Vec<u32>,
    /// Predecessors in the program as it runs: a resume block follows its suspending block.
    before: Vec<Vec<Block>>,
}

impl Regions {
    pub(super) fn new(f: &Function, pieces: &Pieces) -> Regions {
        let dom = DomTree::new(f);
        let n = f.blocks.len();
        let mut r = Regions {
            place: vec![None; f.values.len()],
            home: vec![None; f.values.len()],
            head: vec![Function::ENTRY; n],
            depth: loop_depth(&dom, n),
            before: vec![Vec::new(); n],
            dom,
        };
        for (at, &b) in [Function::ENTRY].iter().chain(&pieces.order).enumerate() {
            let block = f.block(b);
            let results = block.insts.iter().flat_map(|&i| &f.inst(i).results);
            for (n, v) in block.params.iter().chain(results).enumerate() {
                r.place[v.0 as usize] = Some((at as u32, n as u32));
                r.home[v.0 as usize] = Some(b);
            }
        }
        for b in r.dom.preorder() {
            let idom = r.dom.idom(b);
            r.head[b.0 as usize] = match idom {
                Some(up) if up != Function::ENTRY => r.head[up.0 as usize],
                _ => b,
            };
            r.before[b.0 as usize] = r.dom.preds(b).to_vec();
        }
        for &(suspend, resume) in &pieces.suspends {
            r.before[resume.0 as usize] = vec![suspend];
        }
        r
    }

    /// Sorts definitions before uses.
    pub(super) fn order_of(&self, v: Value) -> Option<(u32, u32)> {
        self.place[v.0 as usize]
    }

    /// Block that defines `v`.
    pub(super) fn home(&self, v: Value) -> Option<Block> {
        self.home[v.0 as usize]
    }

    /// True when `v` may be used at the end of `b`.
    pub(super) fn reaches(&self, v: Value, b: Block) -> bool {
        self.home(v).is_some_and(|home| self.dom.dominates(home, b))
    }

    /// The block below the entry that dominates `b`.
    pub(super) fn head(&self, b: Block) -> Block {
        self.head[b.0 as usize]
    }

    pub(super) fn depth(&self, b: Block) -> u32 {
        self.depth[b.0 as usize]
    }

    /// Blocks that run before `b` does.
    pub(super) fn before(&self, b: Block) -> &[Block] {
        &self.before[b.0 as usize]
    }

    /// The last block that dominates both, which are of one region.
    pub(super) fn meet(&self, a: Block, b: Block) -> Block {
        let mut at = a;
        while !self.dom.dominates(at, b) {
            match self.dom.idom(at) {
                Some(up) => at = up,
                None => break,
            }
        }
        at
    }

    /// Where to make what is used below `b`: the closest block of its region in the fewest loops.
    pub(super) fn outside_loops(&self, b: Block) -> Block {
        let (mut best, mut at) = (b, b);
        while at != self.head(b) {
            match self.dom.idom(at) {
                Some(up) => at = up,
                None => break,
            }
            if self.depth(at) < self.depth(best) {
                best = at;
            }
        }
        best
    }
}

/// Number of natural loops around each block.
fn loop_depth(dom: &DomTree, blocks: usize) -> Vec<u32> {
    let mut depth = vec![0; blocks];
    for &header in dom.rpo() {
        let back = dom.preds(header).iter().copied();
        let mut work: Vec<Block> = back.filter(|&p| dom.is_back_edge(p, header)).collect();
        if work.is_empty() {
            continue;
        }
        let mut inside = vec![false; blocks];
        inside[header.0 as usize] = true;
        depth[header.0 as usize] += 1;
        while let Some(b) = work.pop() {
            if !std::mem::replace(&mut inside[b.0 as usize], true) {
                depth[b.0 as usize] += 1;
                work.extend(dom.preds(b));
            }
        }
    }
    depth
}
