//! Which values are computed again after a barrier, and which are saved.
//!
//! Recomputed is a value whose operations over constants, launch inputs and values that are saved anyway are cheap:
//! at most [`STEP`] operations as wide as the value that no other value was recomputed for already, and at most [`TOTAL`] all
//! together. One that would need others saved for it is recomputed if these are smaller than itself (a vector made from a
//! scalar). Loads and block parameters are saved; so is the rest.

use super::cost::{self, frame_bytes, is_free, pieces};
use super::place::Uses;
use super::regions::Regions;
use crate::ssa::{Function, Value};

/// Operations, as wide as the value, that make one more value.
const STEP: u32 = 8;
/// Operations, as wide as the value, that make it from nothing.
const TOTAL: u32 = 24;
/// Operations looked at.
const NODES: usize = 64;

/// How a value gets across barriers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carried {
    /// Computed again.
    Again,
    /// Saved in the frame.
    Frame,
}

/// The decisions.
pub(super) struct Plan {
    ways: Vec<Option<Carried>>,
}

/// The expression over what is there already.
#[derive(Default)]
struct Tree {
    /// Operations that are not decided yet.
    new: Vec<Value>,
    /// What would have to be saved.
    leaves: Vec<Value>,
    cost: u32,
}

impl Plan {
    /// Decides for values with uses that their definition does not reach, and what these need.
    pub(super) fn new(f: &Function, regions: &Regions, uses: &Uses) -> Plan {
        let mut plan = Plan {
            ways: vec![None; f.values.len()],
        };
        let mut values: Vec<Value> = uses.keys().map(|&(v, _)| v).collect();
        values.sort_unstable_by_key(|&v| (regions.order_of(v), v));
        values.dedup();
        // Values that can only be saved come first: others may be made from them.
        for &v in &values {
            if f.def_inst(v).and_then(|d| cost::inst_cost(f, d)).is_none() {
                plan.ways[v.0 as usize] = Some(Carried::Frame);
            }
        }
        for &v in &values {
            plan.decide(f, v);
        }
        plan
    }

    /// Values that are saved.
    pub(super) fn saved(&self) -> u32 {
        let saved = self.ways.iter().filter(|way| **way == Some(Carried::Frame));
        saved.count() as u32
    }

    /// How `v` is brought across, if it is.
    pub(super) fn way(&self, v: Value) -> Option<Carried> {
        self.ways[v.0 as usize]
    }

    fn decide(&mut self, f: &Function, v: Value) {
        if self.way(v).is_some() {
            return;
        }
        let wide = pieces(f.ty(v));
        let near = self.tree(f, v, STEP * wide, |way| way.is_some());
        let all = self.tree(f, v, TOTAL * wide, |way| way == Some(Carried::Frame));
        let cheap = near.filter(|tree| {
            let bytes = tree.leaves.iter().map(|&l| frame_bytes(f.ty(l)));
            all.is_some() && bytes.sum::<u32>() < frame_bytes(f.ty(v))
        });
        let Some(tree) = cheap else {
            self.ways[v.0 as usize] = Some(Carried::Frame);
            return;
        };
        for &w in &tree.new {
            self.ways[w.0 as usize] = Some(Carried::Again);
        }
        for &w in &tree.leaves {
            self.ways[w.0 as usize] = Some(Carried::Frame);
        }
    }

    /// What computes `v`, down to values that `stop` says are there; none when that is too much.
    fn tree(
        &self,
        f: &Function,
        v: Value,
        limit: u32,
        stop: impl Fn(Option<Carried>) -> bool,
    ) -> Option<Tree> {
        let mut tree = Tree::default();
        let mut work = vec![v];
        while let Some(v) = work.pop() {
            if stop(self.way(v)) || tree.new.contains(&v) || tree.leaves.contains(&v) {
                continue;
            }
            let data = f.def_inst(v);
            let cost = data.and_then(|d| cost::inst_cost(f, d));
            let (Some(data), Some(cost)) = (data, cost) else {
                tree.leaves.push(v);
                continue;
            };
            tree.cost += cost;
            tree.new.push(v);
            if tree.cost > limit || tree.new.len() > NODES {
                return None;
            }
            debug_assert!(
                !is_free(&data.op) || data.args.is_empty(),
                "free with operands"
            );
            work.extend(&data.args);
        }
        Some(tree)
    }
}
