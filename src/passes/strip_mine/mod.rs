//! Loops without memory run strip by strip: eight lanes at a time instead of sixteen or thirty-two.
//!
//! Code generators with few or narrow registers spill when a loop carries many wide vectors. A loop that
//! computes each lane by itself can run to its end for the first eight lanes, then for the next eight,
//! with a half or a quarter of the values alive. The loop is copied once a strip; scalars start from the same
//! values in each copy.
//!
//! Guarantees: what leaves the loop is the same in every lane, for any input. That takes three
//! things, which [`legal`] proves or gives up on: every operation is lane-wise; every scalar that
//! leaves the loop is made outside; and iterations that a strip no longer makes, because all its lanes have
//! left while others go on, would not have changed what it carries out.
//!
//! Not done: loops with memory accesses (lanes of a thread see each other's stores in program order), loops around
//! loops, loops that carry few values.

mod copy;
mod legal;
pub(super) mod tails;

use legal::Purpose;

use crate::ssa::dom::DomTree;
use crate::ssa::remark::Decision;
use crate::ssa::{Block, Function, Remark, Term, Value};

/// Lanes of a strip.
const STRIP: u16 = 8;

/// Vectors carried or read by a loop, in units of 128 bits, from which strips pay.
const PRESSURE: u32 = 16;

/// Longest loop that is copied, in instructions.
const MAX_INSTS: usize = 250;

/// A loop that may run strip by strip.
struct Loop {
    header: Block,
    /// Blocks, the header first, in reverse post order.
    blocks: Vec<Block>,
    /// The one block after the loop.
    exit: Block,
    /// Lanes of its vectors.
    lanes: u16,
    /// What each parameter of the exit receives.
    leaving: Vec<Leaving>,
    /// The parameter of the header that says which lanes are in the loop. They only become fewer.
    live: Option<Value>,
    /// For each parameter of the exit that receives a vector of the loop, the parameter of the header that has what lanes leave with
    /// which are in the loop no more. Empty if there is no such test.
    carriers: Vec<Value>,
}

/// What a parameter of the exit block receives on the edges out of a loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Leaving {
    /// The same value from outside on each edge.
    Outside(Value),
    /// A vector that the loop makes.
    Vector,
}

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let mut changes = 0;
    let dom = DomTree::new(f);
    for blocks in innermost(&dom) {
        let blocks = with_ways_out(f, &dom, blocks);
        let line = line(f, &blocks);
        let decision = match legal::check(f, &dom, blocks, Purpose::Strips) {
            Ok(l) => {
                copy::strip_mine(f, &l);
                changes += 1;
                Decision::StripMined {
                    strips: l.lanes / STRIP,
                }
            }
            Err(why) => Decision::NotStripMined(why),
        };
        f.remarks.push(Remark {
            line,
            inst: None,
            decision,
        });
    }
    changes
}

/// The first line of vISA in some blocks.
pub(super) fn line(f: &Function, blocks: &[Block]) -> u32 {
    let insts = blocks.iter().flat_map(|&b| &f.block(b).insts);
    let lines = insts.map(|&i| f.inst(i).line).filter(|&line| line > 0);
    lines.min().unwrap_or(0)
}

/// The loop and the blocks that only lead out of it to one place, where it has several exits.
fn with_ways_out(f: &Function, dom: &DomTree, mut blocks: Vec<Block>) -> Vec<Block> {
    loop {
        let targets = blocks.iter().flat_map(|&b| f.block(b).term.targets());
        let mut exits: Vec<Block> = targets.map(|call| call.block).collect();
        exits.retain(|b| !blocks.contains(b));
        exits.sort_unstable();
        exits.dedup();
        let way_out = |&b: &Block| {
            let ends = matches!(f.block(b).term, Term::Jump(_));
            ends && dom.preds(b).iter().all(|p| blocks.contains(p))
        };
        match exits.iter().copied().find(way_out) {
            Some(b) if exits.len() > 1 => blocks.push(b),
            _ => break,
        }
    }
    blocks[1..].sort_by_key(|&b| dom.position(b));
    blocks
}

/// Blocks of each loop that has no loop inside, header first.
fn innermost(dom: &DomTree) -> Vec<Vec<Block>> {
    let mut loops: Vec<Vec<Block>> = Vec::new();
    for &header in dom.rpo() {
        let back = |&&p: &&Block| dom.is_back_edge(p, header);
        let mut work: Vec<Block> = dom.preds(header).iter().filter(back).copied().collect();
        if work.is_empty() || !work.iter().all(|&b| dom.dominates(header, b)) {
            continue;
        }
        let mut blocks = vec![header];
        while let Some(b) = work.pop() {
            if !blocks.contains(&b) {
                blocks.push(b);
                work.extend(dom.preds(b));
            }
        }
        loops.push(blocks);
    }
    let holds_other = |l: &Vec<Block>| {
        let inside = |other: &Vec<Block>| other[0] != l[0] && l.contains(&other[0]);
        loops.iter().any(inside)
    };
    let outer: Vec<bool> = loops.iter().map(holds_other).collect();
    let mut keep = outer.iter().map(|o| !o);
    loops.retain(|_| keep.next().unwrap_or(false));
    loops
}
