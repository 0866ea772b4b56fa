//! Orders and dominance of the control-flow graph, and counts of uses.
//!
//! Results describe the function as it was when they were computed; a pass that changes branches
//! computes them again.

use super::func::{Block, Function, Value};

/// Reverse post order, predecessors and dominators of the blocks reachable from the entry.
#[derive(Clone, Debug)]
pub struct DomTree {
    rpo: Vec<Block>,
    /// Position in `rpo`; `NONE` for unreachable blocks.
    position: Vec<u32>,
    preds: Vec<Vec<Block>>,
    idom: Vec<Option<Block>>,
    children: Vec<Vec<Block>>,
    /// First and last number of a walk of the tree, for a constant-time dominance test.
    enter: Vec<u32>,
    leave: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl DomTree {
    /// Computes everything; branch targets must exist.
    pub fn new(f: &Function) -> DomTree {
        let n = f.blocks.len();
        let rpo = reverse_post_order(f);
        let mut position = vec![NONE; n];
        for (i, b) in rpo.iter().enumerate() {
            position[b.0 as usize] = i as u32;
        }
        let mut preds = vec![Vec::new(); n];
        for &b in &rpo {
            for call in f.block(b).term.targets() {
                preds[call.block.0 as usize].push(b);
            }
        }
        let idom = immediate_dominators(&rpo, &position, &preds);
        let mut children = vec![Vec::new(); n];
        for &b in &rpo {
            if let Some(parent) = idom[b.0 as usize] {
                children[parent.0 as usize].push(b);
            }
        }
        let mut tree = DomTree {
            rpo,
            position,
            preds,
            idom,
            children,
            enter: vec![0; n],
            leave: vec![0; n],
        };
        tree.number();
        tree
    }

    fn number(&mut self) {
        let mut clock = 0;
        let mut stack = vec![(Function::ENTRY, 0)];
        while let Some((b, next)) = stack.pop() {
            let i = b.0 as usize;
            if next == 0 {
                self.enter[i] = clock;
                clock += 1;
            }
            match self.children[i].get(next) {
                Some(&child) => {
                    stack.push((b, next + 1));
                    stack.push((child, 0));
                }
                None => {
                    self.leave[i] = clock;
                    clock += 1;
                }
            }
        }
    }

    /// Reachable blocks, each before its successors except along back edges.
    pub fn rpo(&self) -> &[Block] {
        &self.rpo
    }

    /// True when a path from the entry leads here.
    pub fn reachable(&self, b: Block) -> bool {
        self.position[b.0 as usize] != NONE
    }

    /// Position in [`DomTree::rpo`]; blocks that are not reachable come last.
    pub fn position(&self, b: Block) -> u32 {
        self.position[b.0 as usize]
    }

    /// Reachable predecessors, one entry an edge.
    pub fn preds(&self, b: Block) -> &[Block] {
        &self.preds[b.0 as usize]
    }

    /// Closest strict dominator; none for the entry and unreachable blocks.
    pub fn idom(&self, b: Block) -> Option<Block> {
        self.idom[b.0 as usize]
    }

    /// Blocks whose closest strict dominator is `b`.
    pub fn children(&self, b: Block) -> &[Block] {
        &self.children[b.0 as usize]
    }

    /// True when every path from the entry to `b` passes `a` (each block dominates itself).
    /// Unreachable blocks are dominated by all.
    pub fn dominates(&self, a: Block, b: Block) -> bool {
        let (a, b) = (a.0 as usize, b.0 as usize);
        if self.position[b] == NONE {
            return true;
        }
        self.position[a] != NONE && self.enter[a] <= self.enter[b] && self.leave[b] <= self.leave[a]
    }

    /// True when the edge goes back to a block that dominates its source.
    pub fn is_back_edge(&self, from: Block, to: Block) -> bool {
        self.dominates(to, from)
    }

    /// Blocks in an order where parents of the tree come before children.
    pub fn preorder(&self) -> Vec<Block> {
        let mut out = Vec::with_capacity(self.rpo.len());
        let mut stack = vec![Function::ENTRY];
        while let Some(b) = stack.pop() {
            out.push(b);
            stack.extend(self.children(b).iter().rev());
        }
        out
    }
}

/// Takes blocks that `order` does not name out of the layout: for what changes parameters and sees the edges of reachable
/// blocks only.
pub fn drop_unreachable(f: &mut Function, order: &[Block]) {
    let mut live = vec![false; f.blocks.len()];
    for b in order {
        live[b.0 as usize] = true;
    }
    f.order.retain(|b| live[b.0 as usize]);
}

/// Blocks reachable from the entry in reverse post order.
pub fn reverse_post_order(f: &Function) -> Vec<Block> {
    let mut seen = vec![false; f.blocks.len()];
    let mut post = Vec::new();
    let successors = |b: Block| -> Vec<Block> {
        let targets = f.block(b).term.targets();
        targets.into_iter().map(|c| c.block).collect()
    };
    let mut stack = vec![(Function::ENTRY, successors(Function::ENTRY))];
    seen[0] = true;
    while let Some((b, pending)) = stack.last_mut() {
        match pending.pop() {
            Some(next) => {
                if !std::mem::replace(&mut seen[next.0 as usize], true) {
                    stack.push((next, successors(next)));
                }
            }
            None => {
                post.push(*b);
                stack.pop();
            }
        }
    }
    post.reverse();
    post
}

/// Iterates to a fixed point over the reverse post order; two rounds for reducible graphs.
fn immediate_dominators(
    rpo: &[Block],
    position: &[u32],
    preds: &[Vec<Block>],
) -> Vec<Option<Block>> {
    // Positions instead of blocks: a smaller position is closer to the entry.
    let mut idom = vec![NONE; rpo.len()];
    idom[0] = 0;
    let mut changed = true;
    while changed {
        changed = false;
        for (i, b) in rpo.iter().enumerate().skip(1) {
            let mut best = NONE;
            for p in &preds[b.0 as usize] {
                let p = position[p.0 as usize];
                if idom[p as usize] == NONE {
                    continue;
                }
                best = if best == NONE {
                    p
                } else {
                    meet(&idom, best, p)
                };
            }
            if idom[i] != best {
                idom[i] = best;
                changed = true;
            }
        }
    }
    let mut out = vec![None; position.len()];
    for (i, b) in rpo.iter().enumerate().skip(1) {
        out[b.0 as usize] = rpo.get(idom[i] as usize).copied();
    }
    out
}

fn meet(idom: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        if a > b {
            a = idom[a as usize];
        } else {
            b = idom[b as usize];
        }
    }
    a
}

/// How often live blocks use each value.
pub fn use_counts(f: &Function) -> Vec<u32> {
    let mut counts = vec![0; f.values.len()];
    let mut count = |v: Value| counts[v.0 as usize] += 1;
    for &b in &f.order {
        let block = f.block(b);
        for &i in &block.insts {
            f.inst(i).args.iter().copied().for_each(&mut count);
        }
        block.term.condition().into_iter().for_each(&mut count);
        for call in block.term.targets() {
            call.args.iter().copied().for_each(&mut count);
        }
    }
    counts
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::parse;

    const LOOP: &str = "function \"f\" simd 1
bb0:
  %0: i1 = const 1
  branch %0, bb1, bb4
bb1:
  branch %0, bb2, bb3
bb2:
  jump bb3
bb3:
  branch %0, bb1, bb4
bb4:
  return
bb5:
  jump bb4
";

    #[test]
    fn dominators_of_a_loop_with_a_diamond() {
        let f = parse(LOOP).unwrap();
        let d = DomTree::new(&f);
        let idoms: Vec<_> = (0..6).map(|b| d.idom(Block(b)).map(|b| b.0)).collect();
        assert_eq!(idoms, [None, Some(0), Some(1), Some(1), Some(0), None]);
        assert!(d.dominates(Block(1), Block(3)) && !d.dominates(Block(2), Block(3)));
        assert!(d.is_back_edge(Block(3), Block(1)) && !d.is_back_edge(Block(2), Block(3)));
        assert!(!d.reachable(Block(5)) && d.reachable(Block(4)));
        assert_eq!(d.rpo().len(), 5);
        assert_eq!(d.preorder().len(), 5);
        assert_eq!(use_counts(&f)[0], 3);
    }
}
