//! Loads from the storage of registers become the values that are known to be there, and stores go that change nothing or that nothing reads.
//!
//! Variables that are reached indirectly have a place in memory (`Space::Regs`). For arrays in registers the kernel's compiler moves
//! all elements around each access at an index, and most of these moves put an element where it is already.
//!
//! What is known is found forwards, over all paths to a block: a place is known to hold a value if it does on every path. Whether a
//! place is read later is found backwards. Only places at constant offsets are followed. A store at any other offset may change each of
//! them, and a load there may read each of them. Other threads cannot reach this memory, so barriers change nothing.
//!
//! Not done: values that differ between the paths to a block. Parameters that carry them would be moved on each path, and the storage is as
//! good a place for them.

use rustc_hash::FxHashMap;

use super::edit::{Rewriter, const_lanes};
use crate::ssa::dom::DomTree;
use crate::ssa::{Block, BlockAccess, Function, Inst, Lane, Op, Space, Term, Value};

/// Places times blocks from which on a function is left alone.
const MOST: usize = 1 << 22;

/// Elements at a constant offset.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Place {
    offset: u64,
    elem: Lane,
    n: u16,
}

impl Place {
    fn end(self) -> u64 {
        self.offset + u64::from(self.n) * u64::from(self.elem.bytes())
    }

    fn overlaps(self, other: Place) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }

    fn holds(self, other: Place) -> bool {
        self.offset <= other.offset && other.end() <= self.end()
    }
}

/// What an instruction does to the storage.
#[derive(Clone, Copy)]
enum Effect {
    None,
    /// Reads the place with this number.
    Load(usize),
    /// Writes it.
    Store(usize),
    /// Reads any of them.
    LoadAny,
    /// Writes some of them, or part of them.
    StoreAny,
}

/// The places of a function.
struct Places {
    all: Vec<Place>,
    /// For each the others that it overlaps.
    overlaps: Vec<Vec<usize>>,
    effects: FxHashMap<Inst, Effect>,
}

/// What each place is known to hold.
type Known = Vec<Option<Value>>;

/// Runs the pass.
pub(super) fn run(f: &mut Function) -> usize {
    let places = Places::new(f);
    if places.all.is_empty() || places.all.len().saturating_mul(f.order.len()) > MOST {
        return 0;
    }
    forward(f, &places) + remove_unread(f, &places)
}

/// The place of an access that is always done, inside of the storage and at a constant offset.
fn place(f: &Function, access: BlockAccess, args: &[Value]) -> Option<Place> {
    let number = |v| match const_lanes(f, v) {
        Some(&[number]) => Some(number),
        _ => None,
    };
    let place = Place {
        offset: number(args[1])?,
        elem: access.elem,
        n: access.n,
    };
    let always = number(args[0])? & 1 != 0;
    (always && place.end() <= u64::from(f.regs_bytes)).then_some(place)
}

impl Places {
    fn new(f: &Function) -> Places {
        let mut places = Places {
            all: Vec::new(),
            overlaps: Vec::new(),
            effects: FxHashMap::default(),
        };
        let mut numbers: FxHashMap<Place, usize> = FxHashMap::default();
        for &i in f.order.iter().flat_map(|&b| &f.block(b).insts) {
            let data = f.inst(i);
            let space = data.op.elements().map(|(space, ..)| space);
            if space != Some(Space::Regs) {
                continue;
            }
            let mut number = |place| {
                *numbers.entry(place).or_insert_with(|| {
                    places.all.push(place);
                    places.all.len() - 1
                })
            };
            let effect = match data.op {
                Op::BlockLoad(access) => {
                    let place = place(f, access, &data.args);
                    place.map_or(Effect::LoadAny, |place| Effect::Load(number(place)))
                }
                Op::BlockStore(access) => {
                    let place = place(f, access, &data.args);
                    place.map_or(Effect::StoreAny, |place| Effect::Store(number(place)))
                }
                Op::Load(_) => Effect::LoadAny,
                Op::Store(_) => Effect::StoreAny,
                // There are no atomics on registers.
                _ => {
                    return Places {
                        all: Vec::new(),
                        ..places
                    };
                }
            };
            places.effects.insert(i, effect);
        }
        let others = |a: usize, of: &Place| {
            let all = places.all.iter().enumerate();
            let others = all.filter(|&(b, other)| a != b && of.overlaps(*other));
            others.map(|(b, _)| b).collect()
        };
        let all = places.all.iter().enumerate();
        places.overlaps = all.map(|(a, place)| others(a, place)).collect();
        places
    }

    fn effect(&self, i: Inst) -> Effect {
        self.effects.get(&i).copied().unwrap_or(Effect::None)
    }
}

/// Values that are others by another name: loads of what is known, and choices between the same.
#[derive(Default)]
struct Same(FxHashMap<Value, Value>);

impl Same {
    fn of(&self, v: Value) -> Value {
        self.0.get(&v).copied().unwrap_or(v)
    }
}

/// What an instruction leaves known. True for a load or store that is not needed.
fn step(f: &Function, places: &Places, i: Inst, known: &mut Known, same: &mut Same) -> bool {
    let data = f.inst(i);
    if data.op == Op::Select {
        let (a, b) = (same.of(data.args[1]), same.of(data.args[2]));
        if a == b {
            same.0.insert(data.results[0], a);
        }
    }
    match places.effect(i) {
        Effect::Load(place) => {
            let result = data.results[0];
            if let Some(v) = known[place] {
                same.0.insert(result, v);
                return true;
            }
            known[place] = Some(result);
            false
        }
        Effect::Store(place) => {
            let v = same.of(data.args[2]);
            if known[place] == Some(v) {
                return true;
            }
            for &other in &places.overlaps[place] {
                known[other] = None;
            }
            known[place] = Some(v);
            false
        }
        Effect::StoreAny => {
            known.fill(None);
            false
        }
        Effect::LoadAny | Effect::None => false,
    }
}

/// Replaces loads by what is known, and removes stores of it.
fn forward(f: &mut Function, places: &Places) -> usize {
    let dom = DomTree::new(f);
    let mut entries: Vec<Option<Known>> = vec![None; f.blocks.len()];
    entries[Function::ENTRY.0 as usize] = Some(vec![None; places.all.len()]);
    let mut changed = true;
    // What is known at the head of a block only becomes less.
    while changed {
        changed = false;
        let mut same = Same::default();
        for &b in dom.rpo() {
            let Some(mut known) = entries[b.0 as usize].clone() else {
                continue;
            };
            for &i in &f.block(b).insts {
                step(f, places, i, &mut known, &mut same);
            }
            for call in f.block(b).term.targets() {
                changed |= meet(&mut entries[call.block.0 as usize], &known);
            }
        }
    }
    let mut same = Same::default();
    let mut rewriter = Rewriter::new(f);
    for &b in dom.rpo() {
        let Some(mut known) = entries[b.0 as usize].take() else {
            continue;
        };
        rewriter.block(b, |r, i| {
            if !step(r.f, places, i, &mut known, &mut same) {
                return true;
            }
            if let Effect::Load(_) = places.effect(i) {
                let result = r.f.inst(i).results[0];
                r.f.replace(result, same.of(result));
            }
            r.changes += 1;
            false
        });
    }
    let changes = rewriter.changes;
    f.resolve_aliases();
    changes
}

/// Takes from what is known at the head of a block what is not on one more path to it. True if it became less.
fn meet(entry: &mut Option<Known>, known: &Known) -> bool {
    let Some(entry) = entry else {
        *entry = Some(known.clone());
        return true;
    };
    let mut less = false;
    for (at_head, on_path) in entry.iter_mut().zip(known) {
        if at_head.is_some() && at_head != on_path {
            *at_head = None;
            less = true;
        }
    }
    less
}

/// Removes stores that nothing reads before it is written again or the thread ends.
fn remove_unread(f: &mut Function, places: &Places) -> usize {
    let dom = DomTree::new(f);
    let mut heads = vec![vec![false; places.all.len()]; f.blocks.len()];
    let mut changed = true;
    while changed {
        changed = false;
        for &b in dom.rpo().iter().rev() {
            let mut read = read_after(f, places, &heads, b);
            for &i in f.block(b).insts.iter().rev() {
                step_back(places, i, &mut read);
            }
            changed |= heads[b.0 as usize] != read;
            heads[b.0 as usize] = read;
        }
    }
    let mut removed = 0;
    for &b in dom.rpo() {
        let mut read = read_after(f, places, &heads, b);
        let mut insts = f.block(b).insts.clone();
        let before = insts.len();
        let mut kept: Vec<Inst> = Vec::with_capacity(before);
        while let Some(i) = insts.pop() {
            if !step_back(places, i, &mut read) {
                kept.push(i);
            }
        }
        kept.reverse();
        removed += before - kept.len();
        f.block_mut(b).insts = kept;
    }
    removed
}

/// Places that are read after a block.
fn read_after(f: &Function, places: &Places, heads: &[Vec<bool>], b: Block) -> Vec<bool> {
    let term = &f.block(b).term;
    let mut read = vec![matches!(term, Term::Suspend(_)); places.all.len()];
    for call in term.targets() {
        for (read, head) in read.iter_mut().zip(&heads[call.block.0 as usize]) {
            *read |= head;
        }
    }
    read
}

/// Goes back over an instruction; true for a store that nothing reads.
fn step_back(places: &Places, i: Inst, read: &mut [bool]) -> bool {
    match places.effect(i) {
        Effect::Load(place) => read[place] = true,
        Effect::LoadAny => read.fill(true),
        Effect::Store(place) => {
            let others = &places.overlaps[place];
            if !read[place] && !others.iter().any(|&other| read[other]) {
                return true;
            }
            read[place] = false;
            for &other in others {
                if places.all[place].holds(places.all[other]) {
                    read[other] = false;
                }
            }
        }
        Effect::StoreAny | Effect::None => {}
    }
    false
}
