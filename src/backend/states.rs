//! The states that threads of a group with barriers are resumed in, for code that has a loop over the threads for each of them.

use visa_runtime::abi::THREAD_DONE;

use super::barrier_loop::BarrierLoop;
use crate::ssa::{Block, Function, Input, Op, Term, Value};

/// The code of all states together may have this many times the instructions of the function.
const MOST_COPIES: usize = 2;

/// It may have this many instructions more than the function. Without that limit, copies could make a function too large for a code generator.
const MOST_EXTRA: usize = 1000;

/// Most states with code of their own: what ended in a run of threads is a word with a bit for each.
const MOST_STATES: u32 = 31;

/// What a thread does from where it is resumed until it waits again or ends.
pub(super) struct State {
    /// The blocks that it may pass, in the function's order, the entry block first.
    pub blocks: Vec<Block>,
    /// The states in which it may wait at the end, and [`THREAD_DONE`] if it may be finished; in ascending order.
    pub ends: Vec<u32>,
}

/// The bit for threads that ended in a state. None starts again, so the first one is for those that are finished.
pub(super) const fn end_bit(state: u32) -> u32 {
    match state {
        THREAD_DONE => 1,
        _ => 1 << state,
    }
}

/// The states of a function with code for whole groups, by number; nothing where much code would belong to several of them, and thus
/// be there several times. `order` has the blocks that can be reached.
pub(super) fn states(
    f: &Function,
    order: &[Block],
    barrier_loop: BarrierLoop,
) -> Option<Vec<State>> {
    if barrier_loop != BarrierLoop::Code {
        return None;
    }
    let Term::Switch { index, targets, .. } = &f.block(Function::ENTRY).term else {
        return None;
    };
    if !is_state(f, *index) || targets.len() != f.states as usize + 1 || f.states >= MOST_STATES {
        return None;
    }
    let states: Vec<_> = targets
        .iter()
        .map(|target| state(f, order, target.block))
        .collect();
    let size = |blocks: &[Block]| -> usize { blocks.iter().map(|&b| f.block(b).insts.len()).sum() };
    let all: usize = states.iter().map(|state| size(&state.blocks)).sum();
    let once = size(order);
    (all <= MOST_COPIES * once && all <= once + MOST_EXTRA).then_some(states)
}

/// Whether a value says in which state the thread was resumed.
pub(super) fn is_state(f: &Function, v: Value) -> bool {
    f.def_inst(v)
        .is_some_and(|data| data.op == Op::Input(Input::State))
}

/// The state that starts at a block.
fn state(f: &Function, order: &[Block], start: Block) -> State {
    let mut found = vec![false; f.blocks.len()];
    found[Function::ENTRY.0 as usize] = true;
    let mut pending = vec![start];
    while let Some(b) = pending.pop() {
        if !std::mem::replace(&mut found[b.0 as usize], true) {
            pending.extend(f.block(b).term.targets().iter().map(|call| call.block));
        }
    }
    let found = |b: &Block| found[b.0 as usize];
    let blocks: Vec<_> = order.iter().copied().filter(found).collect();
    let ends = blocks.iter().filter_map(|&b| match f.block(b).term {
        Term::Suspend(state) => Some(state),
        Term::Return => Some(THREAD_DONE),
        _ => None,
    });
    let mut ends: Vec<_> = ends.collect();
    ends.sort_unstable();
    ends.dedup();
    State { blocks, ends }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssa::dom::reverse_post_order;
    use crate::ssa::parse;

    const HEAD: &str = "function \"f\" simd 8 frame 64 states 2\n\nbb0:\n  %0: i32 = input.state\n  switch %0, [bb1, bb2, bb3], bb1\n";
    const LOOP: &str = "bb1:\n  jump bb4\nbb4:\n  suspend 1\nbb2:\n  suspend 2\n";

    fn found(body: &str) -> Option<Vec<(Vec<u32>, Vec<u32>)>> {
        let f = parse(&(HEAD.to_owned() + body)).unwrap();
        let states = states(&f, &reverse_post_order(&f), BarrierLoop::Code)?;
        let plain = |state: State| {
            let mut blocks: Vec<u32> = state.blocks.iter().map(|b| b.0).collect();
            blocks.sort_unstable();
            (blocks, state.ends)
        };
        Some(states.into_iter().map(plain).collect())
    }

    #[test]
    fn blocks_belong_to_the_states_that_reach_them() {
        let again =
            format!("{LOOP}bb3:\n  %1: i1 = const 1\n  branch %1, bb4, bb5\nbb5:\n  return\n");
        let expected = [
            (vec![0, 1, 4], vec![1]),
            (vec![0, 2], vec![2]),
            (vec![0, 3, 4, 5], vec![1, THREAD_DONE]),
        ];
        assert_eq!(found(&again).unwrap(), expected);
    }

    #[test]
    fn much_code_that_all_states_reach_is_not_copied() {
        let constants = |range: std::ops::Range<u32>| -> String {
            range
                .map(|i| format!("  %{i}: i32 = const {i}\n"))
                .collect()
        };
        // The entry block has one instruction, and is there for each of three states.
        let with = |own: u32, shared: u32| {
            let shared = constants(own + 1..own + 1 + shared);
            let shared = format!("bb2:\n  jump bb4\nbb3:\n  jump bb4\nbb4:\n{shared}  return\n");
            let own = constants(1..own + 1);
            found(&format!("bb1:\n{own}  jump bb4\n{shared}"))
        };
        assert!(with(1, 1).is_none());
        assert!(with(2, 1).is_some());
        // Twice, and once more.
        assert!(with(2000, 499).is_some());
        assert!(with(2000, 500).is_none());
    }

    #[test]
    fn more_states_than_a_word_has_bits_share_their_code() {
        let of = |count: u32| {
            let targets: Vec<String> = (1..=count + 1).map(|b| format!("bb{b}")).collect();
            let mut text = format!(
                "function \"f\" simd 8 frame 64 states {count}\n\nbb0:\n  %0: i32 = input.state\n  switch %0, [{}], bb1\n",
                targets.join(", ")
            );
            for b in 1..=count {
                text += &format!("bb{b}:\n  %{b}: i32 = const {b}\n  suspend {b}\n");
            }
            text += &format!("bb{}:\n  return\n", count + 1);
            let f = parse(&text).unwrap();
            states(&f, &reverse_post_order(&f), BarrierLoop::Code).map(|states| states.len())
        };
        assert_eq!(of(30), Some(31));
        assert_eq!(of(31), None);
    }
}
