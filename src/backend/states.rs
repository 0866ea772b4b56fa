//! The states that threads of a group with barriers are resumed in, for code that has a loop over the threads for each of them.

use rustc_hash::{FxHashMap, FxHashSet};
use visa_runtime::abi::THREAD_DONE;

use super::barrier_loop::BarrierLoop;
use crate::ssa::{Block, Function, Input, Inst, Lane, Op, Space, Term, Value, ValueDef};

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
    /// True if no thread writes local memory in it: all threads of a run load the same from one address there.
    #[cfg_attr(
        not(any(test, feature = "llvm-codegen")),
        expect(dead_code, reason = "Cranelift has no registers to keep it in")
    )]
    pub keeps_local: bool,
    /// Instructions that it does without: saves that change nothing in the thread's frame, and polls that no thread passes twice. Code
    /// polls at the end of a run anyway.
    pub left_out: FxHashSet<Inst>,
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
    let blocks: Vec<_> = targets
        .iter()
        .map(|target| blocks_from(f, order, target.block))
        .collect();
    let size = |blocks: &[Block]| -> usize { blocks.iter().map(|&b| f.block(b).insts.len()).sum() };
    let all: usize = blocks.iter().map(|blocks| size(blocks)).sum();
    let once = size(order);
    if all > MOST_COPIES * once || all > once + MOST_EXTRA {
        return None;
    }
    let polls = single_polls(f, order);
    let states = blocks.into_iter().map(|blocks| state(f, blocks, &polls));
    Some(states.collect())
}

/// Whether a value says in which state the thread was resumed.
pub(super) fn is_state(f: &Function, v: Value) -> bool {
    f.def_inst(v)
        .is_some_and(|data| data.op == Op::Input(Input::State))
}

/// The entry block and those that can be reached from another one, in order.
fn blocks_from(f: &Function, order: &[Block], start: Block) -> Vec<Block> {
    let mut found = vec![false; f.blocks.len()];
    found[Function::ENTRY.0 as usize] = true;
    let mut pending = vec![start];
    while let Some(b) = pending.pop() {
        if !std::mem::replace(&mut found[b.0 as usize], true) {
            pending.extend(f.block(b).term.targets().iter().map(|call| call.block));
        }
    }
    let found = |b: &Block| found[b.0 as usize];
    order.iter().copied().filter(found).collect()
}

/// The state of these blocks. `polls` are those that no thread passes twice.
fn state(f: &Function, blocks: Vec<Block>, polls: &FxHashSet<Inst>) -> State {
    let ends = blocks.iter().filter_map(|&b| match f.block(b).term {
        Term::Suspend(state) => Some(state),
        Term::Return => Some(THREAD_DONE),
        _ => None,
    });
    let mut ends: Vec<_> = ends.collect();
    ends.sort_unstable();
    ends.dedup();
    let keeps_local = !blocks.iter().any(|&b| {
        let insts = &f.block(b).insts;
        insts.iter().any(|&i| writes_local(&f.inst(i).op))
    });
    let mut left_out = kept_saves(f, &blocks);
    let insts = blocks.iter().flat_map(|&b| &f.block(b).insts);
    left_out.extend(insts.filter(|i| polls.contains(i)));
    State {
        blocks,
        ends,
        keeps_local,
        left_out,
    }
}

/// Polls in blocks that are in no loop of a state. What leads from one state to another is no edge.
fn single_polls(f: &Function, order: &[Block]) -> FxHashSet<Inst> {
    let positions: FxHashMap<Block, usize> = order.iter().copied().zip(0..).collect();
    // How many edges back begin or end at each place of the order. Blocks between the ends of one may be in a loop.
    let mut ends = vec![(0usize, 0usize); order.len()];
    for (from, &b) in order.iter().enumerate() {
        for call in f.block(b).term.targets() {
            match positions.get(&call.block) {
                Some(&to) if to <= from => {
                    ends[to].0 += 1;
                    ends[from].1 += 1;
                }
                _ => {}
            }
        }
    }
    let mut polls = FxHashSet::default();
    let mut around = 0;
    for (&b, (begins, over)) in order.iter().zip(ends) {
        around += begins;
        if around == 0 {
            let insts = f.block(b).insts.iter().copied();
            polls.extend(insts.filter(|&i| f.inst(i).op == Op::Poll));
        }
        around -= over;
    }
    polls
}

/// A value that is saved in a thread's frame.
struct Save {
    inst: Inst,
    /// Where its bytes are in the frame.
    from: u32,
    to: u32,
    /// It is what was loaded from there.
    kept: bool,
}

/// Saves of what was loaded from the same place of the frame, where nothing else is saved to in these blocks of a state.
fn kept_saves(f: &Function, blocks: &[Block]) -> FxHashSet<Inst> {
    let sources = Sources::new(f, blocks);
    let mut saves = Vec::new();
    for &inst in blocks.iter().flat_map(|&b| &f.block(b).insts) {
        let data = f.inst(inst);
        let Op::FrameStore(from) = data.op else {
            continue;
        };
        let v = f.resolve(data.args[0]);
        let ty = f.ty(v);
        let loaded = sources.of(v).and_then(|source| f.def_inst(source));
        let bytes = match ty.lane {
            Lane::I1 => 4,
            _ => ty.bytes(),
        };
        saves.push(Save {
            inst,
            from,
            to: from.saturating_add(bytes),
            kept: loaded.is_some_and(|loaded| loaded.op == Op::FrameLoad(from)),
        });
    }
    let is_changed = |save: &Save| {
        let mut others = saves.iter().filter(|other| !other.kept);
        others.any(|other| other.from < save.to && save.from < other.to)
    };
    let kept = saves.iter().filter(|save| save.kept && !is_changed(save));
    kept.map(|save| save.inst).collect()
}

/// Where values come from in the blocks of a state.
struct Sources<'a> {
    f: &'a Function,
    /// What the parameters of blocks receive there.
    incoming: FxHashMap<Value, Vec<Value>>,
}

impl<'a> Sources<'a> {
    fn new(f: &'a Function, blocks: &[Block]) -> Sources<'a> {
        let mut incoming: FxHashMap<Value, Vec<Value>> = FxHashMap::default();
        for call in blocks.iter().flat_map(|&b| f.block(b).term.targets()) {
            for (&param, &arg) in f.block(call.block).params.iter().zip(&call.args) {
                incoming.entry(param).or_default().push(f.resolve(arg));
            }
        }
        Sources { f, incoming }
    }

    /// The one value that a value is, on every way to it; none where it may be several.
    fn of(&self, v: Value) -> Option<Value> {
        let mut source = None;
        let mut found = FxHashSet::default();
        let mut pending = vec![v];
        while let Some(v) = pending.pop() {
            if !found.insert(v) {
                continue;
            }
            match (self.f.def(v), self.incoming.get(&v)) {
                (ValueDef::Param(..), Some(values)) => pending.extend(values),
                _ if source.is_none() => source = Some(v),
                _ => return None,
            }
        }
        source
    }
}

/// Whether an operation may change local memory.
fn writes_local(op: &Op) -> bool {
    let space = match op {
        Op::Store(m) => m.space,
        Op::BlockStore(m) => m.space,
        Op::Atomic(m) => m.space,
        _ => return false,
    };
    space.data() == Space::Slm
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
    fn local_memory_stays_where_no_thread_writes_it() {
        let head = HEAD.replace(
            "states 2\n",
            "states 2\nsite 0 = atomic slm 4 \"dword_atomic\" line 1\n",
        );
        let body = "bb1:\n  %1: i1 = const 1\n  %2: i32 = const 0\n  %3: i32 = load.slm.i32x1[0] %1, %2\n  suspend 1\n\
            bb2:\n  %4: i1 = const 1\n  %5: i32 = const 0\n  %6: i32 = atomic.slm.inc.i32[0] %4, %5\n  suspend 2\n\
            bb3:\n  %7: i1 = const 1\n  %8: i32 = const 0\n  store.scratch.i32x1[0] %7, %8, %8\n  return\n";
        let f = parse(&(head + body)).unwrap();
        let states = states(&f, &reverse_post_order(&f), BarrierLoop::Code).unwrap();
        let kept: Vec<_> = states.iter().map(|state| state.keeps_local).collect();
        assert_eq!(kept, [true, false, true]);
    }

    /// The operations that each state leaves out.
    fn left_out(body: &str) -> Vec<Vec<String>> {
        let f = parse(&(HEAD.to_owned() + body)).unwrap();
        let states = states(&f, &reverse_post_order(&f), BarrierLoop::Code).unwrap();
        let text = |&inst: &Inst| match f.inst(inst).op {
            Op::FrameStore(at) => format!("save {at} {}", f.inst(inst).args[0].0),
            ref op => format!("{op:?}"),
        };
        let texts = |state: State| {
            let mut all: Vec<String> = state.left_out.iter().map(text).collect();
            all.sort_unstable();
            all
        };
        states.into_iter().map(texts).collect()
    }

    #[test]
    fn polls_that_no_thread_passes_twice_are_left_out() {
        let body = "bb1:\n  poll\n  suspend 1\n\
            bb2:\n  poll\n  jump bb4\n\
            bb4:\n  %1: i1 = const 1\n  poll\n  branch %1, bb5, bb6\n\
            bb5:\n  jump bb4\nbb6:\n  suspend 2\n\
            bb3:\n  return\n";
        // The loop has a poll of its own.
        assert_eq!(left_out(body), [vec!["Poll"], vec!["Poll"], vec![]]);
    }

    #[test]
    fn saves_of_what_was_loaded_there_are_left_out() {
        let state = |body: &str| {
            let rest = "bb1:\n  suspend 1\nbb3:\n  return\n";
            left_out(&format!("{rest}bb2:\n{body}")).swap_remove(1)
        };
        let loads = "  %1: i32 = frameload[8]\n  %2: i32 = frameload[12]\n";
        let saves = |first: u32, second: u32| {
            format!("{loads}  framestore[8] %{first}\n  framestore[12] %{second}\n  suspend 2\n")
        };
        assert_eq!(state(&saves(1, 2)), ["save 12 2", "save 8 1"]);
        assert_eq!(state(&saves(2, 1)), [] as [&str; 0]);
        assert_eq!(state(&saves(1, 1)), ["save 8 1"]);
        // Something else is saved over one half of it before.
        let over = "  %1: i64 = frameload[8]\n  %2: i32 = frameload[16]\n  framestore[12] %2\n  framestore[8] %1\n  framestore[16] %2\n  suspend 2\n";
        assert_eq!(state(over), ["save 16 2"]);
        // A mask is a word there, whatever its lanes.
        let mask = "  %1: <8 x i1> = frameload[8]\n  %2: i32 = frameload[12]\n  framestore[12] %2\n  framestore[8] %1\n  framestore[11] %2\n  suspend 2\n";
        assert_eq!(state(mask), [] as [&str; 0]);
    }

    #[test]
    fn values_are_followed_through_the_blocks_of_a_state() {
        let state = |other: &str| {
            let body = format!(
                "bb1:\n  %1: i32 = const 3\n  jump bb4(%1)\n\
                bb2:\n  %2: i32 = frameload[8]\n  %3: i32 = frameload[12]\n  %4: i1 = const 1\n  branch %4, bb5(%2), bb6\n\
                bb6:\n  jump bb5({other})\n\
                bb5(%5: i32):\n  branch %4, bb5(%5), bb7\n\
                bb7:\n  jump bb4(%5)\n\
                bb4(%6: i32):\n  framestore[8] %6\n  suspend 2\n\
                bb3:\n  return\n"
            );
            left_out(&body)
        };
        let none: Vec<String> = Vec::new();
        // What comes from the first state is another value, which no thread of the second one has.
        assert_eq!(
            state("%2"),
            [none.clone(), vec!["save 8 6".to_owned()], none.clone()]
        );
        assert_eq!(state("%3"), [none.clone(), none.clone(), none]);
    }

    #[test]
    fn what_the_entry_block_gives_is_a_source() {
        let body = "bb1:\n  suspend 1\n\
            bb2(%5: i32):\n  %2: i32 = frameload[8]\n  %4: i1 = const 1\n  branch %4, bb2(%2), bb4\n\
            bb4:\n  framestore[8] %5\n  suspend 2\n\
            bb3:\n  return\n";
        let head = HEAD.replace("[bb1, bb2, bb3]", "[bb1, bb2(%0), bb3]");
        let f = parse(&(head + body)).unwrap();
        let states = states(&f, &reverse_post_order(&f), BarrierLoop::Code).unwrap();
        assert!(states.iter().all(|state| state.left_out.is_empty()));
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
