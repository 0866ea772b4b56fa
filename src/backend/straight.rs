//! States of which a code generator may run several threads side by side.
//!
//! A processor's scheduler holds some hundred operations. Where a thread is one long chain, as a sum of products in a given order, those are the
//! chains of a few threads, and too few to keep it busy. Step by step side by side, the chains of several threads are there at once.

use rustc_hash::FxHashMap;
use visa_runtime::abi::THREAD_DONE;

use super::access::{AccessPlan, Step};
use super::states::State;
use crate::ssa::{Block, Function, Inst, Op, Space, Term, Value};

/// Half cycles that a thread's longest chain takes at least. Shorter ones of several threads fit into a processor's scheduler.
const LONG: u32 = 96;

/// Operations of a thread, at most.
const MOST: usize = 160;

/// A state without branches, in which a thread changes nothing but its frame.
pub(super) struct Straight {
    /// The blocks that each thread passes, the entry block first.
    pub blocks: Vec<Block>,
    /// The state in which it ends.
    pub end: u32,
}

impl Straight {
    /// A state's blocks and end, if its threads may run side by side and gain by that.
    pub(super) fn new(
        f: &Function,
        plan: &AccessPlan,
        number: u32,
        state: &State,
    ) -> Option<Straight> {
        let (blocks, end) = way(f, number, state)?;
        let insts = || {
            blocks
                .iter()
                .flat_map(|&b| f.block(b).insts.iter().copied())
        };
        let may = |i: Inst| match f.inst(i).op {
            Op::Load(m) => m.space == Space::Slm,
            Op::FrameLoad(_) | Op::FrameStore(_) => true,
            Op::Poll => state.left_out.contains(&i),
            ref op => !op.has_effect(),
        };
        let does = |&i: &Inst| !matches!(f.inst(i).op, Op::Const(_) | Op::VecConst(_));
        if !insts().all(may) || insts().filter(does).count() > MOST || chain(f, &blocks) < LONG {
            return None;
        }
        let mut parts = 0;
        for &b in &blocks {
            for step in &plan.segment(b)?.steps {
                parts += usize::from(matches!(step, Step::Versions(_)));
                if !is_simple(step) {
                    return None;
                }
            }
        }
        // What follows such a part is translated for each of its versions.
        (parts <= 1).then_some(Straight { blocks, end })
    }
}

/// The blocks that each thread passes, and the state in which it ends; nothing if threads may go different ways.
fn way(f: &Function, number: u32, state: &State) -> Option<(Vec<Block>, u32)> {
    let mut blocks = vec![Function::ENTRY];
    while blocks.len() <= state.blocks.len() {
        let next = match &f.block(*blocks.last()?).term {
            Term::Jump(call) => call.block,
            Term::Switch { targets, .. } if blocks.len() == 1 => {
                targets.get(number as usize)?.block
            }
            Term::Suspend(end) => return Some((blocks, *end)),
            Term::Return => return Some((blocks, THREAD_DONE)),
            _ => return None,
        };
        blocks.push(next);
    }
    None
}

/// Half cycles of the longest chain of float arithmetic in blocks that follow each other.
fn chain(f: &Function, blocks: &[Block]) -> u32 {
    let mut ready: FxHashMap<Value, u32> = FxHashMap::default();
    let mut longest = 0;
    for &b in blocks {
        for &i in &f.block(b).insts {
            let data = f.inst(i);
            let operands = data.args.iter().filter_map(|&a| ready.get(&f.resolve(a)));
            let end = operands.copied().max().unwrap_or(0) + data.op.float_latency();
            ready.extend(data.results.iter().map(|&v| (v, end)));
            longest = longest.max(end);
        }
        for call in f.block(b).term.targets() {
            for (&param, &arg) in f.block(call.block).params.iter().zip(&call.args) {
                let at = ready.get(&f.resolve(arg)).copied().unwrap_or(0);
                ready.insert(param, at);
            }
        }
    }
    longest
}

/// Steps that may be done for one thread after the other.
fn is_simple(step: &Step) -> bool {
    let plain = |step: &Step| matches!(step, Step::Plain(_));
    let inside = |step: &Step| plain(step) || matches!(step, Step::Inside(_));
    match step {
        Step::Versions(v) => {
            let general = v.other.as_ref();
            let nested = |step: &Step| matches!(step, Step::Versions(_));
            let general = general.is_some_and(|other| !other.steps.iter().any(nested));
            let simple = v.first.iter().all(plain) && v.fast.steps.iter().all(inside);
            v.meet && v.apart.is_none() && simple && general
        }
        step => plain(step),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::access::PARTS;
    use crate::backend::barrier_loop::BarrierLoop;
    use crate::backend::states::states;
    use crate::ssa::dom::reverse_post_order;
    use crate::ssa::parse;

    /// The second state's blocks and end, if its threads may run side by side.
    fn found(body: &str) -> Option<(Vec<u32>, u32)> {
        let head = "function \"f\" simd 8 frame 64 states 2\n\
            site 0 = read slm 4 \"gather4_scaled\" line 1\n\n\
            bb0:\n  %0: i32 = input.state\n  switch %0, [bb1, bb2, bb3], bb1\n\
            bb1:\n  suspend 1\nbb3:\n  return\n";
        let f = parse(&format!("{head}bb2:\n{body}")).unwrap();
        let order = reverse_post_order(&f);
        let plan = AccessPlan::new(&f, PARTS.clone(), &order);
        let states = states(&f, &order, BarrierLoop::Code)?;
        let straight = Straight::new(&f, &plan, 1, &states[1])?;
        let blocks = straight.blocks.iter().map(|b| b.0).collect();
        Some((blocks, straight.end))
    }

    /// A chain of `links` operations: the first reads %10 and makes %11.
    fn chain(links: u32) -> String {
        let link = |n: u32| format!("  %{}: f32 = fma %{n}, %{n}, %{n}\n", n + 1);
        (10..10 + links).map(link).collect()
    }

    #[test]
    fn long_chains_of_threads_that_write_nothing_run_side_by_side() {
        let with = |more: &str| {
            let (one, end) = (chain(12), "  framestore[0] %22\n  suspend 2\n");
            found(&format!("  %10: f32 = frameload[0]\n{one}{more}{end}"))
        };
        assert_eq!(with(""), Some((vec![0, 2], 2)));
        let load = "  %1: i1 = const 1\n  %2: i32 = const 4\n";
        // A load that has a bounds test of its own, writes, a fence.
        for other in [
            "%3: i32 = load.slm.i32x1[0] %1, %2",
            "store.slm.i32x1[0] %1, %2, %2",
            "%3: i32 = atomic.slm.inc.i32[0] %1, %2",
            "fence",
        ] {
            assert_eq!(with(&format!("{load}  {other}\n")), None, "{other}");
        }
        // A poll that is left out.
        assert_eq!(with("  poll\n"), Some((vec![0, 2], 2)));
        let scalar: String = (30..180)
            .map(|n| format!("  %{n}: i32 = input.thread\n"))
            .collect();
        assert_eq!(with(&scalar), None);
    }

    #[test]
    fn chains_are_followed_from_block_to_block() {
        let with = |links: u32| {
            let first = chain(4);
            let second = chain(4 + links).replace(&first, "");
            found(&format!(
                "  %10: f32 = frameload[0]\n{first}  jump bb4(%14)\n\
                bb4(%40: f32):\n  %41: f32 = fneg %40\n{}  return\n",
                second.replace("fma %14, %14, %14", "fma %41, %41, %41")
            ))
        };
        assert_eq!(with(7), None);
        assert_eq!(with(8), Some((vec![0, 2, 4], THREAD_DONE)));
    }

    #[test]
    fn threads_that_may_go_two_ways_do_not_run_side_by_side() {
        let fork =
            "  %1: i1 = const 1\n  branch %1, bb4, bb5\nbb4:\n  suspend 2\nbb5:\n  suspend 1\n";
        let body = format!("  %10: f32 = frameload[0]\n{}{fork}", chain(12));
        assert_eq!(found(&body), None);
        let around = "  jump bb4\nbb4:\n  jump bb4\n";
        let body = format!("  %10: f32 = frameload[0]\n{}{around}", chain(12));
        assert_eq!(found(&body), None);
    }
}
