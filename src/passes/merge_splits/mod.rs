//! Merges split SIMD accesses: two accesses that the kernel's compiler wrote for the halves of one thread.
//!
//! A device whose instructions have at most sixteen lanes runs a thread of thirty-two with two instructions, `(M1, 16)` and
//! `(M5, 16)`. This pass merges two accesses of neighbouring halves, with only arithmetic between them, into one access of all
//! their lanes: one bounds test and one mask test instead of two. Quarters are merged pair by pair.
//!
//! Guarantees: the lanes keep their order, so that of overlapping stores the same one wins, and fault records come as
//! before, each with the line of the instruction that its lane came from ([`crate::ssa::Site::parts`]). What makes
//! addresses, masks and values of a pair is done on whole vectors where both halves do the same, and put together where not.
//! A function is left alone where that is not less work, and an access whose halves have affine addresses where the
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

/// How often accesses are kept split because merging would lose an affine address, before the function is left alone.
const ATTEMPTS: usize = 4;

/// Work of an access apart from its lanes, in vectors of 128 bits.
const ACCESS: u64 = 8;

/// Which split accesses are merged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub enum MergeSplits {
    /// All.
    #[default]
    All,
    /// Accesses of all lanes of a thread, at addresses that are not affine. Not loads of 128 bits a lane, nor atomics whose
    /// results are unused.
    Scattered,
    /// The `Scattered` ones except stores of one element a lane.
    Loads,
    /// Of the `Scattered` ones, atomics and vec4 accesses (several elements a lane).
    Vec4,
}

/// Runs the pass.
pub(super) fn run(f: &mut Function, which: MergeSplits) -> usize {
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

/// Merges pairs if that is less work. Returns how many.
fn pass(f: &mut Function, which: MergeSplits) -> usize {
    let mut apart = BTreeSet::new();
    for _ in 0..ATTEMPTS {
        let pairs = pairs::find(f, which, &apart);
        if pairs.is_empty() {
            return 0;
        }
        let mut g = f.clone();
        let whole = pack::run(&mut g, &pairs);
        dce::run(&mut g);
        let no_longer_affine = no_longer_affine(f, &g, &pairs, &whole);
        if no_longer_affine.is_empty() {
            if work(&g) >= work(f) {
                return 0;
            }
            *f = g;
            return pairs.len();
        }
        apart.extend(no_longer_affine);
    }
    0
}

/// Lower halves of pairs whose halves have affine addresses, while the merged access in `g` has none.
fn no_longer_affine(f: &Function, g: &Function, pairs: &[Pair], whole: &[Inst]) -> Vec<Inst> {
    let (before, after) = (shape::affine_accesses(f), shape::affine_accesses(g));
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
