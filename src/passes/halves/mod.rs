//! Accesses that a compiler of kernels cut into halves, made one again.
//!
//! Devices whose instructions have at most sixteen lanes get a thread of thirty-two as two instructions each, `(M1, 16)` and
//! `(M5, 16)`. Here a pair of accesses by neighbouring halves, with nothing but arithmetic between, becomes one access of all
//! their lanes: one bounds test and one test of the mask instead of two. So do quarters, pair by pair.
//!
//! Guarantees: the lanes keep their order, so that of overlapping stores the same one wins, and fault records come as
//! before, each with the line of the instruction that its lane came from ([`crate::ssa::Site::parts`]). What makes
//! addresses, masks and values of a pair is done on whole vectors where both halves do the same, and put together where not.
//! A function is left alone where that is not less work, and an access whose halves have evenly spaced addresses where the
//! whole has not.
//!
//! Not done: accesses to images, blocks and register storage; pairs with another effect between them. A fault that ends the
//! thread would come before what the lower half did: engines leave the pass out where faults end threads.

mod pack;
mod pairs;

use std::collections::BTreeSet;

use super::{dce, shape};
use crate::ssa::dom::{drop_unreachable, reverse_post_order};
use crate::ssa::{Function, Inst, InstData, Op, Ty};
use pairs::Pair;

/// How often accesses are put aside because their addresses are no longer evenly spaced, before the function is left alone.
const ATTEMPTS: usize = 4;

/// Work of an access apart from its lanes, in vectors of 128 bits.
const ACCESS: u64 = 8;

/// Which halves are made one again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub enum Halves {
    /// All.
    #[default]
    All,
    /// Those that all lanes of a thread do, at addresses that are not evenly spaced. Not loads of 128 bits a lane, nor atomics
    /// whose results nobody wants.
    Scattered,
    /// Of these, all but stores of one element a lane.
    Loads,
    /// Of these, atomics and records of several elements.
    Records,
}

/// Runs the pass.
pub fn run(f: &mut Function, which: Halves) -> usize {
    let order = reverse_post_order(f);
    drop_unreachable(f, &order);
    let mut fused = 0;
    loop {
        match pass(f, which) {
            0 => return fused,
            n => fused += n,
        }
    }
}

/// Makes pairs one, if that is less work; how many.
fn pass(f: &mut Function, which: Halves) -> usize {
    let mut apart = BTreeSet::new();
    for _ in 0..ATTEMPTS {
        let pairs = pairs::find(f, which, &apart);
        if pairs.is_empty() {
            return 0;
        }
        let mut g = f.clone();
        let whole = pack::run(&mut g, &pairs);
        dce::run(&mut g);
        let uneven = uneven(f, &g, &pairs, &whole);
        if uneven.is_empty() {
            if work(&g) >= work(f) {
                return 0;
            }
            *f = g;
            return pairs.len();
        }
        apart.extend(uneven);
    }
    0
}

/// Lower halves of pairs whose halves have evenly spaced addresses, but whose whole in `g` has not.
fn uneven(f: &Function, g: &Function, pairs: &[Pair], whole: &[Inst]) -> Vec<Inst> {
    let (before, after) = (shape::even_accesses(f), shape::even_accesses(g));
    let lost = |(pair, whole): &(&Pair, &Inst)| {
        before.contains(&pair.low) && before.contains(&pair.high) && !after.contains(whole)
    };
    let lost = pairs.iter().zip(whole).filter(lost);
    lost.map(|(pair, _)| pair.low).collect()
}

/// Work of a function run once from end to end, in vectors of 128 bits.
fn work(f: &Function) -> u64 {
    let mut sum = 0;
    for &b in &f.order {
        let block = f.block(b);
        sum += block.params.iter().map(|&p| vectors(f.ty(p))).sum::<u64>();
        let each = block.insts.iter().map(|&i| work_of(f, f.inst(i)));
        sum += each.sum::<u64>();
    }
    sum
}

fn work_of(f: &Function, data: &InstData) -> u64 {
    let all = data.results.iter().chain(&data.args);
    let widest = all.map(|&v| vectors(f.ty(v))).max().unwrap_or(0);
    match &data.op {
        Op::Const(_) | Op::VecConst(_) | Op::Input(_) | Op::Bitcast => 0,
        Op::Splat => 1,
        Op::Load(_) | Op::Store(_) | Op::Atomic(_) => ACCESS,
        Op::Shuffle(indices) if is_free(f, data, indices) => 0,
        _ => widest,
    }
}

/// Registers of 128 bits that a value takes; masks are compared lane by lane.
fn vectors(ty: Ty) -> u64 {
    let bytes = ty.lane.bytes().max(1);
    u64::from(u32::from(ty.lanes) * bytes).div_ceil(16)
}

/// Whole registers in the order in which they are.
fn is_free(f: &Function, data: &InstData, indices: &[u16]) -> bool {
    let bytes = f.ty(data.args[0]).lane.bytes();
    let aligned = |lanes: u32| (lanes * bytes).is_multiple_of(16);
    let first = indices.first().copied().unwrap_or(0);
    let run = indices
        .iter()
        .copied()
        .eq(first..first + indices.len() as u16);
    let whole = data.args.iter().all(|&a| aligned(f.ty(a).lanes.into()));
    bytes > 0 && run && whole && aligned(first.into()) && aligned(indices.len() as u32)
}
