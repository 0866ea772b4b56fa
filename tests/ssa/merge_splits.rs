//! Functions in halves, as compilers of kernels leave them, mean the same when the halves are made one again.

use crate::generate::function;
use crate::observe::observe;
use crate::pairs::pairs;
use visa_jit::passes::{PassOptions, optimize, run_pass};
use visa_jit::ssa::*;
use visa_test_common::{Rng, share};

/// A function in halves: what the pass `split-rows` makes of rows of half the lanes. Instructions without effect then stand in
/// another order. `None` if the pass leaves it as it is.
fn in_halves(seed: u64) -> Option<Function> {
    let mut f = function(seed);
    f.row = Some(f.simd / 2);
    let sites = f.sites.len();
    run_pass(&mut f, "split-rows");
    f.row = None;
    scramble(&mut f, &mut Rng::new(seed));
    let errors = verify(&f).err();
    assert!(errors.is_none(), "seed {seed}: {errors:?}");
    (f.sites.len() > sites).then_some(f)
}

fn scramble(f: &mut Function, rng: &mut Rng) {
    for b in f.order.clone() {
        let mut insts = f.block(b).insts.clone();
        for _ in 0..3 * insts.len() {
            let at = rng.below(insts.len().saturating_sub(1));
            let Some(&[first, second]) = insts.get(at..at + 2) else {
                break;
            };
            let (x, y) = (f.inst(first), f.inst(second));
            let effects = x.op.has_effect() && y.op.has_effect();
            if !effects && !y.args.iter().any(|a| x.results.contains(a)) {
                insts.swap(at, at + 1);
            }
        }
        f.block_mut(b).insts = insts;
    }
}

fn accesses(f: &Function) -> usize {
    let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
    let is_access =
        |i: &&Inst| matches!(f.inst(**i).op, Op::Load(_) | Op::Store(_) | Op::Atomic(_));
    insts.filter(is_access).count()
}

#[test]
fn halves_made_one_keep_the_meaning() {
    let (mut before, mut after, mut changed) = (0, 0, 0);
    let seeds = share(1000, 16);
    for seed in 0..seeds {
        let Some(f) = in_halves(seed) else {
            continue;
        };
        let mut g = f.clone();
        run_pass(&mut g, "merge-splits");
        if let Err(e) = verify(&g) {
            panic!("seed {seed}: {}\n{f}\n{g}", e[0]);
        }
        for s in [seed, seed + 1, seed + 2] {
            assert!(observe(&f, s) == observe(&g, s), "seed {seed}\n{f}\n{g}");
        }
        before += accesses(&f);
        after += accesses(&g);
        changed += u64::from(accesses(&g) < accesses(&f));
    }
    assert!(
        changed > seeds / 5 && after < before * 3 / 4,
        "{changed} functions, {before} accesses, {after} left"
    );
}

#[test]
fn functions_in_halves_are_optimised_right() {
    for seed in 1000..1000 + share(300, 16) {
        let Some(f) = in_halves(seed) else {
            continue;
        };
        let mut g = f.clone();
        let stats = optimize(&mut g, &PassOptions::default());
        stats.unwrap_or_else(|e| panic!("seed {seed}: {e}\n{f}"));
        for s in [seed, seed + 1] {
            assert!(observe(&f, s) == observe(&g, s), "seed {seed}\n{f}\n{g}");
        }
    }
}

/// Values are halves of several wholes, or of none; the halves of an access are not always of one kind.
#[test]
fn merged_pairs_keep_the_meaning() {
    let (mut before, mut after) = (0, 0);
    for seed in 0..share(600, 16) {
        let mut f = pairs(seed);
        scramble(&mut f, &mut Rng::new(seed));
        if let Err(e) = verify(&f) {
            panic!("seed {seed}: {}\n{f}", e[0]);
        }
        let mut g = f.clone();
        run_pass(&mut g, "merge-splits");
        if let Err(e) = verify(&g) {
            panic!("seed {seed}: {}\n{f}\n{g}", e[0]);
        }
        for s in [seed, seed + 1] {
            assert!(observe(&f, s) == observe(&g, s), "seed {seed}\n{f}\n{g}");
        }
        before += accesses(&f);
        after += accesses(&g);
    }
    assert!(after < before * 9 / 10, "{before} accesses, {after} left");
}

/// A load may leave anything in lanes that are off only if nothing looks at those of either half.
#[test]
fn loads_with_lanes_that_are_seen_stay_apart_from_others() {
    let text = "function \"f\" simd 16 frame 64
site 0 = read slm 4 \"gather\" line 1
site 1 = read slm 4 \"gather\" line 2 lane 8

bb0:
  %0: <16 x i1> = input.dispatchmask
  %1: <8 x i1> = shuffle[0, 1, 2, 3, 4, 5, 6, 7] %0
  %2: <8 x i1> = shuffle[8, 9, 10, 11, 12, 13, 14, 15] %0
  %3: <16 x i32> = input.payload[0]
  %4: <8 x i32> = shuffle[0, 1, 2, 3, 4, 5, 6, 7] %3
  %5: <8 x i32> = shuffle[8, 9, 10, 11, 12, 13, 14, 15] %3
  %6: <8 x i32> = load.slm.i32x1[0] %1, %4
  %7: <8 x i32> = load.slm.i32x1[1] %2, %5
  framestore[0] %6
  framestore[32] %7
  return
";
    let f = parse(text).unwrap();
    let loads = |f: &Function| -> Vec<Inst> {
        let insts = f.block(Function::ENTRY).insts.iter().copied();
        insts
            .filter(|&i| matches!(f.inst(i).op, Op::Load(_)))
            .collect()
    };
    for (quiet, left) in [(0..0, 1), (0..1, 2), (1..2, 2), (0..2, 1)] {
        let mut g = f.clone();
        g.inactive_undef.extend(&loads(&f)[quiet.clone()]);
        run_pass(&mut g, "merge-splits");
        let made = loads(&g);
        assert_eq!(made.len(), left, "{quiet:?}");
        if left == 1 {
            assert_eq!(g.inactive_undef.contains(&made[0]), !quiet.is_empty());
        }
    }
}

/// Lanes of a record go to the site of the instruction that they came from.
#[test]
fn sites_of_lanes_follow_the_instructions() {
    let site = |first_lane, parts: &[u32]| Site {
        line: 1,
        opcode: "gather",
        space: Space::Surface,
        kind: AccessKind::Read,
        bytes: 4,
        alignment: 1,
        first_lane,
        parts: parts.to_vec(),
    };
    let mut f = Function::new("f", 32);
    f.sites = vec![
        site(0, &[]),
        site(8, &[]),
        site(16, &[]),
        site(24, &[]),
        site(0, &[0, 1, 2, 3]),
        site(8, &[1, 2]),
        site(16, &[0, 1, 2, 3]),
    ];
    assert_eq!(f.sites_of_lanes(0, 16), [(0, u32::MAX)]);
    let four = [(0, 0xff), (1, 0xff00), (2, 0xff_0000), (3, 0xff00_0000)];
    assert_eq!(f.sites_of_lanes(4, 32), four);
    assert_eq!(f.sites_of_lanes(5, 16), [(1, 0xff), (2, 0xff00)]);
    // A row of an access that was cut again.
    assert_eq!(f.sites_of_lanes(4, 8), [(0, 0xff)]);
    assert_eq!(f.sites_of_lanes(6, 16), [(2, 0xff), (3, 0xff00)]);
    assert_eq!(f.sites_of_lanes(6, 8), [(2, 0xff)]);
    assert_eq!(f.sites_of_lanes(9, 8), [(9, u32::MAX)]);
}
