//! Addresses that only rare paths read.
//!
//! Code for an access with affine addresses uses their scalar base. The addresses of its lanes are read only where a test failed.
//! A code generator that keeps instructions in the order of the IR would still compute them for every access, in vectors of 64
//! bits a lane. [`Rare`] says which values have no other use. They are sunk into the rare paths: each block that reads one
//! computes it anew (rematerialisation).
//!
//! Left out are values of loops, values that another instruction reads, however cheap they are, and the lower part of a long
//! chain of operations.

use rustc_hash::FxHashSet;

use crate::backend::uses;
use crate::ssa::{Block, Function, Input, Inst, Op, Value};

/// Longest chain of operations that is made again where it is read. Code generators make its operands recursively, and each rare
/// path has a copy.
const MAX_CHAIN: u32 = 32;

/// Values that are made where they are read.
#[derive(Clone, Debug, Default)]
pub(in crate::backend) struct Rare(Vec<bool>);

impl Rare {
    /// Of a function; `by_base` says of loads and stores that they read their addresses on rare paths only.
    pub(super) fn of(f: &Function, by_base: impl Fn(Inst) -> bool) -> Rare {
        let mut rare = vec![false; f.values.len()];
        let insts = || f.order.iter().flat_map(|&b| &f.block(b).insts);
        for &i in insts() {
            if let [v] = *f.inst(i).results.as_slice() {
                rare[v.0 as usize] = can_be_made_anywhere(f, i, v);
            }
        }
        for v in f.order.iter().flat_map(|&b| uses::ending(f, b)) {
            rare[v.0 as usize] = false;
        }
        cut_chains(f, &mut rare);
        let by_base: FxHashSet<Inst> = insts().copied().filter(|&i| by_base(i)).collect();
        loop {
            let mut changed = false;
            for &b in f.order.iter().rev() {
                for &i in f.block(b).insts.iter().rev() {
                    if is_rare(f, &rare, i) {
                        continue;
                    }
                    let address = by_base.contains(&i).then_some(1);
                    for (n, v) in uses::read(f, i).enumerate() {
                        let read = Some(n) != address;
                        changed |= read && std::mem::replace(&mut rare[v.0 as usize], false);
                    }
                }
            }
            if !changed {
                return Rare(rare);
            }
        }
    }

    /// True for values that are made where they are read.
    pub(in crate::backend) fn contains(&self, v: Value) -> bool {
        self.0.get(v.0 as usize).copied().unwrap_or(false)
    }

    /// True for instructions that make such a value, and are therefore nowhere themselves.
    pub(in crate::backend) fn is_made_by(&self, f: &Function, i: Inst) -> bool {
        is_rare(f, &self.0, i)
    }

    /// Adds to values that are read what they are made of.
    pub(super) fn expand(&self, f: &Function, read: &mut FxHashSet<Value>) {
        let mut work: Vec<Value> = read.iter().copied().filter(|&v| self.contains(v)).collect();
        while let Some(v) = work.pop() {
            let args = f.def_inst(v).into_iter().flat_map(|data| &data.args);
            work.extend(args.filter(|&&a| read.insert(a) && self.contains(a)));
        }
    }

    /// What other blocks use than the one it is made in: [`uses::escapes`], where rare values are used by what reads them.
    pub(super) fn escapes(&self, f: &Function) -> Vec<bool> {
        let mut escapes = uses::escapes(f);
        if !self.0.contains(&true) {
            return escapes;
        }
        let mut home: Vec<Option<Block>> = vec![None; f.values.len()];
        for &b in &f.order {
            let results = f.block(b).insts.iter().flat_map(|&i| &f.inst(i).results);
            for v in f.block(b).params.iter().chain(results) {
                home[v.0 as usize] = Some(b);
            }
        }
        for &b in &f.order {
            let insts = f.block(b).insts.iter();
            let insts = insts.filter(|&&i| !self.is_made_by(f, i));
            let mut read = insts.flat_map(|&i| uses::read(f, i)).collect();
            self.expand(f, &mut read);
            for v in read {
                escapes[v.0 as usize] |= home[v.0 as usize] != Some(b);
            }
        }
        for (escapes, &rare) in escapes.iter_mut().zip(&self.0) {
            *escapes &= !rare;
        }
        escapes
    }
}

fn is_rare(f: &Function, rare: &[bool], i: Inst) -> bool {
    let results = &f.inst(i).results;
    matches!(**results, [v] if rare[v.0 as usize])
}

/// Takes a value out of each chain of more than [`MAX_CHAIN`] operations.
fn cut_chains(f: &Function, rare: &mut [bool]) {
    let mut length = vec![0; rare.len()];
    for &i in f.order.iter().flat_map(|&b| &f.block(b).insts) {
        let data = f.inst(i);
        if let [v] = *data.results.as_slice()
            && rare[v.0 as usize]
        {
            let below = data.args.iter().map(|a| length[a.0 as usize]).max();
            let chain = 1 + below.unwrap_or(0);
            match chain > MAX_CHAIN {
                true => rare[v.0 as usize] = false,
                false => length[v.0 as usize] = chain,
            }
        }
    }
}

/// Vectors that depend on nothing but operands, or on what stays as it is while a thread runs.
fn can_be_made_anywhere(f: &Function, i: Inst, v: Value) -> bool {
    let op = &f.inst(i).op;
    let plain = matches!(
        op,
        Op::Binary(_)
            | Op::Convert(_)
            | Op::Splat
            | Op::Shuffle(_)
            | Op::Input(Input::LocalIds { .. })
    );
    plain && !f.ty(v).is_scalar()
}
