//! Which values may depend on registers that were not written ([`Input::Unset`]) or on loads that are followed ([`super::copies`]), and which
//! of their lanes.
//!
//! A forward fixed point over the function, which knows lanes and not bits. The other side of a select counts too: whether a lane of it is
//! enabled is known only when the code runs. Earlier passes have dropped selects whose other side is never used.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::ssa::{Block, Function, Input, Inst, InstData, Op, Ty, Value};

/// Words of a set of lanes.
const WORDS: usize = Ty::MAX_LANES as usize / 64;

/// Lanes of a value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct LaneSet([u64; WORDS]);

impl LaneSet {
    const NONE: LaneSet = LaneSet([0; WORDS]);

    fn of(lanes: impl Iterator<Item = usize>) -> LaneSet {
        let mut all = LaneSet::NONE;
        for lane in lanes {
            all.0[lane / 64 % WORDS] |= 1 << (lane % 64);
        }
        all
    }

    fn all(ty: Ty) -> LaneSet {
        LaneSet::of(0..usize::from(ty.lanes))
    }

    fn has(&self, lane: usize) -> bool {
        self.0[lane / 64 % WORDS] >> (lane % 64) & 1 != 0
    }

    fn any(&self) -> bool {
        *self != LaneSet::NONE
    }

    fn or(mut self, other: LaneSet) -> LaneSet {
        self.0.iter_mut().zip(other.0).for_each(|(a, b)| *a |= b);
        self
    }
}

/// What is known of a function.
pub(super) struct Dependent {
    lanes: FxHashMap<Value, LaneSet>,
    followed: FxHashSet<Inst>,
}

impl Dependent {
    /// Looks at a function.
    pub(super) fn new(f: &Function) -> Dependent {
        let mut found = Dependent {
            lanes: FxHashMap::default(),
            followed: super::copies::followed(f),
        };
        if found.followed.is_empty() && !has_unset(f) {
            return found;
        }
        loop {
            let mut changed = false;
            for &b in &f.order {
                changed |= found.block(f, b);
            }
            if !changed {
                return found;
            }
        }
    }

    /// Lanes of a value that depend on registers which were not written.
    fn lanes(&self, v: Value) -> LaneSet {
        self.lanes.get(&v).copied().unwrap_or_default()
    }

    /// Whether what depends of the results of a load is loaded with them.
    pub(super) fn follows(&self, load: Inst) -> bool {
        self.followed.contains(&load)
    }

    /// Whether any value does.
    pub(super) fn is_any(&self) -> bool {
        !self.lanes.is_empty()
    }

    /// Whether any lane of a value does.
    pub(super) fn any(&self, v: Value) -> bool {
        self.lanes.contains_key(&v)
    }

    fn add(&mut self, v: Value, lanes: LaneSet) -> bool {
        if !lanes.any() {
            return false;
        }
        let known = self.lanes.entry(v).or_default();
        let new = known.or(lanes);
        std::mem::replace(known, new) != new
    }

    fn block(&mut self, f: &Function, b: Block) -> bool {
        let mut changed = false;
        for &i in &f.block(b).insts {
            let data = f.inst(i);
            if self.followed.contains(&i) {
                for &result in &data.results {
                    changed |= self.add(result, LaneSet::all(f.ty(result)));
                }
            }
            if data.op.has_effect() {
                continue;
            }
            let unset = data.op == Op::Input(Input::Unset);
            if !unset && !data.args.iter().any(|a| self.any(*a)) {
                continue;
            }
            let result = data.results[0];
            changed |= self.add(result, self.result(f, data, f.ty(result)));
        }
        for call in f.block(b).term.targets() {
            for (&p, &a) in f.block(call.block).params.iter().zip(&call.args) {
                changed |= self.add(p, self.lanes(a));
            }
        }
        changed
    }

    /// Lanes of the result of an operation without effect.
    fn result(&self, f: &Function, data: &InstData, ty: Ty) -> LaneSet {
        let of = |n: usize| self.lanes(data.args[n]);
        // A scalar operand serves all lanes.
        let spread = |n: usize| match f.ty(data.args[n]).lanes {
            1 if ty.lanes > 1 && of(n).any() => LaneSet::all(ty),
            _ => of(n),
        };
        match &data.op {
            Op::Input(_) => LaneSet::all(ty),
            op if op.is_lane_wise() => {
                (0..data.args.len()).fold(LaneSet::NONE, |all, n| all.or(spread(n)))
            }
            Op::ExtractLane(k) => LaneSet::of((0..1).filter(|_| of(0).has((*k).into()))),
            Op::InsertLane(k) => {
                let lanes = 0..usize::from(ty.lanes);
                LaneSet::of(lanes.filter(|&lane| match lane == usize::from(*k) {
                    true => of(1).any(),
                    false => of(0).has(lane),
                }))
            }
            Op::Shuffle(indices) => {
                let first = usize::from(f.ty(data.args[0]).lanes);
                let (a, b) = (of(0), data.args.get(1).map(|v| self.lanes(*v)));
                let picked = indices.iter().map(|&i| usize::from(i)).enumerate();
                LaneSet::of(picked.filter_map(|(lane, i)| {
                    let unset = match i.checked_sub(first) {
                        None => a.has(i),
                        Some(i) => b.is_some_and(|b| b.has(i)),
                    };
                    unset.then_some(lane)
                }))
            }
            Op::Bitcast => {
                let from = f.ty(data.args[0]);
                let [from_bits, to_bits] = [from, ty].map(|t| t.lane.bits() as usize);
                let lanes = 0..usize::from(ty.lanes);
                LaneSet::of(lanes.filter(|&lane| {
                    let first = lane * to_bits / from_bits;
                    let last = (lane * to_bits + to_bits - 1) / from_bits;
                    (first..=last).any(|l| of(0).has(l))
                }))
            }
            _ => LaneSet::all(ty),
        }
    }
}

fn has_unset(f: &Function) -> bool {
    let mut insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
    insts.any(|&i| f.inst(i).op == Op::Input(Input::Unset))
}
