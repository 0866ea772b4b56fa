//! The frame: where saved values are stored, and which slots they share.
//!
//! A value is stored where control leaves the blocks that its definition dominates for one where it is loaded later: before
//! `suspend`, or before the branch to a join. That is at most once on every way; only if such a place is in more
//! loops than the definition, the value is stored right after its definition.

use std::collections::BTreeMap;

use super::cost::frame_bytes;
use super::place::Places;
use super::plan::Plan;
use super::regions::Regions;
use crate::ssa::{Block, Function, Inst, Op, Ty, Value, ValueDef};

/// Bits of blocks.
#[derive(Clone, Default)]
struct BlockSet(Vec<u64>);

impl BlockSet {
    fn new(blocks: usize) -> BlockSet {
        BlockSet(vec![0; blocks.div_ceil(64)])
    }

    /// False when it was there.
    fn add(&mut self, b: Block) -> bool {
        let (word, bit) = (b.0 as usize / 64, 1 << (b.0 % 64));
        let new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        new
    }

    fn add_all(&mut self, other: &BlockSet) {
        self.0.iter_mut().zip(&other.0).for_each(|(a, b)| *a |= b);
    }

    fn meets(&self, other: &BlockSet) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }
}

/// Where a slot holds a value that is still needed.
#[derive(Clone, Default)]
struct Life {
    /// At the starts of these blocks.
    starts: BlockSet,
    /// At the ends of these.
    ends: BlockSet,
}

impl Life {
    fn new(blocks: usize) -> Life {
        Life {
            starts: BlockSet::new(blocks),
            ends: BlockSet::new(blocks),
        }
    }

    fn meets(&self, other: &Life) -> bool {
        self.starts.meets(&other.starts) || self.ends.meets(&other.ends)
    }
}

/// Where a value is stored.
enum Stores {
    /// At the ends of these blocks.
    Ends(Vec<Block>),
    /// After its definition.
    Behind,
}

/// A slot, and what lives in it.
struct Slot {
    bytes: u32,
    life: Life,
    values: Vec<Value>,
}

/// Most slots that a value is compared with before it gets one of its own.
const SLOTS: usize = 256;

/// Most stores of a value that are compared with each other.
const STORES: usize = 64;

/// Slots of the saved values.
pub(super) struct Frame {
    offsets: BTreeMap<Value, u32>,
    stores: BTreeMap<Value, (Block, Stores)>,
    bytes: u32,
}

impl Frame {
    pub(super) fn new(f: &Function, regions: &Regions, plan: &Plan, places: &Places) -> Frame {
        let mut loads: BTreeMap<Value, Vec<Block>> = BTreeMap::new();
        for (v, at) in places.loads(plan) {
            loads.entry(v).or_default().push(at);
        }
        let mut stores = BTreeMap::new();
        let mut lives = Vec::new();
        for (&v, loads) in &loads {
            let Some(home) = regions.home(v) else {
                continue;
            };
            let (life, how) = stored(f, regions, home, loads);
            stores.insert(v, (home, how));
            lives.push((v, life));
        }
        // Large ones first, so that what joins a slot fits into it.
        lives.sort_by_key(|&(v, _)| (std::cmp::Reverse(frame_bytes(f.ty(v))), v));
        let mut slots: Vec<Slot> = Vec::new();
        for (v, life) in lives {
            let bytes = frame_bytes(f.ty(v));
            let recent = slots.len().saturating_sub(SLOTS);
            let free = slots[recent..].iter_mut().find(|s| !s.life.meets(&life));
            match free {
                Some(slot) => {
                    slot.life.starts.add_all(&life.starts);
                    slot.life.ends.add_all(&life.ends);
                    slot.values.push(v);
                }
                None => slots.push(Slot {
                    bytes,
                    life,
                    values: vec![v],
                }),
            }
        }
        let mut frame = Frame {
            offsets: BTreeMap::new(),
            stores,
            bytes: f.frame_bytes,
        };
        frame.lay_out(&slots);
        frame
    }

    /// Gives offsets after what is in the frame already.
    fn lay_out(&mut self, slots: &[Slot]) {
        let mut at = self.bytes.next_multiple_of(16);
        for slot in slots {
            // Vectors are moved in pieces, which had better not cross cache lines.
            let align = if slot.bytes >= 16 { 16 } else { 4 };
            at = at.next_multiple_of(align);
            for &v in &slot.values {
                self.offsets.insert(v, at);
            }
            at += slot.bytes;
            self.bytes = at.next_multiple_of(16);
        }
    }

    /// Where a saved value is.
    pub(super) fn offset(&self, v: Value) -> u32 {
        self.offsets.get(&v).copied().unwrap_or(0)
    }

    /// Adds the stores.
    pub(super) fn save(&self, f: &mut Function) {
        f.frame_bytes = self.bytes;
        for (&v, (home, stores)) in &self.stores {
            // Profiles show what saving costs at the line that is waited at, or after the one that makes the value.
            let store = |f: &mut Function, line: u32| -> Inst {
                f.make(Op::FrameStore(self.offset(v)), vec![v], &[] as &[Ty], line)
            };
            match stores {
                Stores::Ends(blocks) => {
                    for &b in blocks {
                        let i = store(f, f.block(b).term_line);
                        f.block_mut(b).insts.push(i);
                    }
                }
                Stores::Behind => {
                    let i = store(f, f.def_inst(v).map_or(0, |data| data.line));
                    let at = match f.def(v) {
                        ValueDef::Result(def, _) => {
                            let mut insts = f.block(*home).insts.iter();
                            insts.position(|&i| i == def).map_or(0, |n| n + 1)
                        }
                        _ => 0,
                    };
                    f.block_mut(*home).insts.insert(at, i);
                }
            }
        }
    }
}

/// Where to store what `home` defines, so that it can be loaded at the starts of `loads`.
fn stored(f: &Function, regions: &Regions, home: Block, loads: &[Block]) -> (Life, Stores) {
    let dom = &regions.dom;
    let (life, ends) = live_from(f, regions, loads, |b| dom.dominates(home, b));
    if ends.iter().any(|&b| regions.depth(b) > regions.depth(home)) {
        let (mut life, _) = live_from(f, regions, loads, |b| b == home);
        life.starts.add(home);
        return (life, Stores::Behind);
    }
    // Below another store the value is in its slot already: `home` is not between the two.
    let below = |&b: &Block| ends.iter().any(|&x| x != b && dom.dominates(x, b));
    if ends.len() > STORES || !ends.iter().any(below) {
        return (life, Stores::Ends(ends));
    }
    let mut first = ends.clone();
    first.retain(|b| !below(b));
    let (life, ends) = live_from(f, regions, loads, |b| first.contains(&b));
    (life, Stores::Ends(ends))
}

/// Where a value must be in its slot to be loaded at the starts of `loads`, back to blocks that `reached` says have the
/// value itself; and those of them that are left for the others.
fn live_from(
    f: &Function,
    regions: &Regions,
    loads: &[Block],
    reached: impl Fn(Block) -> bool,
) -> (Life, Vec<Block>) {
    let mut life = Life::new(f.blocks.len());
    let mut left = Vec::new();
    let mut work: Vec<Block> = loads.to_vec();
    while let Some(b) = work.pop() {
        if !life.starts.add(b) {
            continue;
        }
        for &p in regions.before(b) {
            if !life.ends.add(p) {
                continue;
            }
            if reached(p) {
                left.push(p);
            } else {
                work.push(p);
            }
        }
    }
    left.sort_unstable();
    (life, left)
}
