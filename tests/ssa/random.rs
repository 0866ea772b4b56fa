//! Random functions mean the same after each pass.

use std::collections::BTreeSet;

use crate::generate::function;
use crate::observe::{FUEL, observe, observe_for};
use visa_jit::passes::pipeline::{MANDATORY, OPTIONAL, ORDER, PASSES};
use visa_jit::passes::{PassOptions, optimize, run_pass};
use visa_jit::schedule::Vectors;
use visa_jit::ssa::shape::Affine;
use visa_jit::ssa::*;

/// Functions of a test, about.
fn seeds() -> u64 {
    visa_test_common::share(1500, 40)
}

fn check(seed: u64, order: &[&'static str]) {
    let mut f = function(seed);
    verify(&f).unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{f}"));
    let before = [seed, seed + 1].map(|s| observe(&f, s));
    for name in order {
        let old = f.clone();
        assert!(run_pass(&mut f, name));
        // Most passes leave most functions alone.
        if f == old {
            continue;
        }
        if let Err(e) = verify(&f) {
            panic!("seed {seed}, {name}: {}\n{old}\n{f}", e[0]);
        }
        let after = [seed, seed + 1].map(|s| observe(&f, s));
        assert!(
            before == after,
            "seed {seed}: {name} changes it\n{old}\n{f}"
        );
    }
}

#[test]
fn the_pipeline_keeps_the_meaning() {
    for seed in 0..seeds() {
        check(seed, ORDER);
    }
}

/// All passes that backends ask for; everything is put in order, for few registers.
fn all() -> PassOptions {
    PassOptions {
        any_exponent: true,
        interleave: Some(Vectors {
            bits: 128,
            registers: 8,
            all: true,
        }),
        ..PassOptions::default()
    }
}

/// The passes as they run, with those that run again after others.
#[test]
fn optimised_functions_keep_the_meaning() {
    let mut again = 0;
    for seed in 0..seeds() / 3 {
        let (f, mut g) = (function(seed), function(seed));
        let stats = optimize(&mut g, &all());
        let stats = stats.unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        for s in [seed, seed + 1] {
            assert!(observe(&f, s) == observe(&g, s), "seed {seed}\n{f}\n{g}");
        }
        let behind = stats.windows(2).filter(|w| w[0].name == "split-rows");
        again += behind.filter(|w| w[1].name == "uniform").count();
    }
    assert!(
        again as u64 > seeds() / 15,
        "{again} functions cut into rows"
    );
}

/// Passes that have random functions of their own.
const OWN_TESTS: [&str; 7] = [
    "strip-mine",
    "strip-start",
    "scalar-tails",
    "accumulators",
    "exponents",
    "usual-divisors",
    "usual-logarithms",
];

/// But [`OWN_TESTS`]: their loops carry many values or sums, or load for some lanes only. Or, like
/// `strip-start`, they change large functions only, or what lowering or the kernel's compiler makes of one operation.
#[test]
fn every_pass_changes_some_random_function() {
    let names = PASSES.iter().chain(MANDATORY).map(|&(name, _)| name);
    let mut idle: BTreeSet<_> = names.filter(|name| !OWN_TESTS.contains(name)).collect();
    // Other tests verify what the passes make of these functions.
    let options = PassOptions {
        verify: false,
        ..all()
    };
    for seed in 0.. {
        let stats = optimize(&mut function(seed), &options).unwrap();
        for changed in stats.iter().filter(|s| s.changes > 0) {
            idle.remove(changed.name);
        }
        if idle.is_empty() {
            break;
        }
        assert!(seed < 1500, "{idle:?}");
    }
}

#[test]
fn each_pass_alone_keeps_the_meaning() {
    for seed in 1500..1500 + seeds() / 5 {
        for (name, _) in PASSES.iter().chain(OPTIONAL).chain(MANDATORY) {
            check(seed, &[name, name]);
        }
    }
}

/// Places where threads wait.
fn barriers(f: &Function) -> usize {
    let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
    insts.filter(|&&i| f.inst(i).op.waits()).count()
}

#[test]
fn a_thread_split_at_its_barriers_does_the_same() {
    let (mut split, mut saved) = (0, 0);
    for seed in 0..2 * seeds() {
        let f = function(seed);
        let n = barriers(&f);
        if n == 0 {
            continue;
        }
        let mut g = f.clone();
        run_pass(&mut g, "suspend");
        verify(&g).unwrap_or_else(|e| panic!("seed {seed}: {}\n{f}\n{g}", e[0]));
        assert_eq!((barriers(&g), g.states as usize), (0, n), "seed {seed}");
        for s in [seed, seed + 1, seed + 2] {
            assert!(observe(&f, s) == observe(&g, s), "seed {seed}\n{f}\n{g}");
        }
        split += n;
        saved += (g.frame_bytes - f.frame_bytes) as usize;
    }
    assert!(
        split as u64 > seeds() * 2 / 3 && saved as u64 > 7 * seeds(),
        "{split} barriers, {saved} bytes"
    );
}

#[test]
fn suspend_leaves_functions_without_barriers_alone() {
    for seed in 0..200 {
        let f = function(seed);
        if barriers(&f) == 0 {
            let mut g = f.clone();
            run_pass(&mut g, "suspend");
            assert!(f == g, "seed {seed}");
        }
    }
}

/// The function with code in front of each access that writes to surface 1 if its shape is wrong.
fn with_shape_tests(f: &Function) -> (Function, usize) {
    let mut g = f.clone();
    let mut tested = 0;
    for &b in &f.order {
        g.block_mut(b).insts.clear();
        for &i in &f.block(b).insts {
            if let Some(&shape) = f.shapes.get(&i) {
                tested += 1;
                let (mask, addr) = (f.inst(i).args[0], f.inst(i).args[1]);
                if let Some(a) = shape.addr {
                    test_addresses(&mut g, b, addr, a);
                }
                if let Some(all) = shape.mask_all {
                    let really = g.push1(b, Op::MaskAll, vec![mask], Ty::BOOL, 0);
                    report(&mut g, b, all, really);
                }
            }
            g.block_mut(b).insts.push(i);
        }
    }
    g.shapes.clear();
    verify(&g).unwrap_or_else(|e| panic!("{}\n{f}", e[0]));
    (g, tested)
}

fn test_addresses(g: &mut Function, b: Block, addr: Value, a: Affine) {
    let ty = g.ty(addr);
    let lanes = (0..i64::from(ty.lanes)).map(|n| n.wrapping_mul(a.stride) as u64 & ty.lane.mask());
    let steps = g.push1(b, Op::VecConst(lanes.collect()), vec![], ty, 0);
    let base = g.push1(b, Op::Splat, vec![a.base], ty, 0);
    let affine = g.push1(b, Op::Binary(BinOp::Add), vec![base, steps], ty, 0);
    let mask = ty.with_lane(Lane::I1);
    let same = g.push1(b, Op::ICmp(ICond::Eq), vec![addr, affine], mask, 0);
    let same = g.push1(b, Op::MaskAll, vec![same], Ty::BOOL, 0);
    let always = g.push1(b, Op::Const(1), vec![], Ty::BOOL, 0);
    report(g, b, a.guard.unwrap_or(always), same);
}

/// Writes to surface 1 when `claim` holds but `fact` does not.
fn report(g: &mut Function, b: Block, claim: Value, fact: Value) {
    let not = g.push1(b, Op::Unary(UnOp::Not), vec![fact], Ty::BOOL, 0);
    let bad = g.push1(b, Op::Binary(BinOp::And), vec![claim, not], Ty::BOOL, 0);
    let at = g.push1(b, Op::Const(0), vec![], Ty::I32, 0);
    let surface = g.push1(b, Op::Const(1), vec![], Ty::I32, 0);
    let marker = g.push1(b, Op::Const(0x5bad_5bad), vec![], Ty::I32, 0);
    let access = BlockAccess {
        space: Space::Surface,
        elem: Lane::I32,
        n: 1,
        site: 0,
    };
    let args = vec![bad, at, surface, marker];
    g.push(b, Op::BlockStore(access), args, &[], 0);
}

#[test]
fn shapes_are_true_at_run_time() {
    let mut tested = 0;
    for seed in 0..seeds() {
        let mut f = function(seed);
        let options = PassOptions {
            verify: true,
            ..PassOptions::default()
        };
        optimize(&mut f, &options).unwrap();
        let (g, n) = with_shape_tests(&f);
        tested += n;
        for s in [seed, seed + 1] {
            // What is tested takes instructions, too.
            let [before, after] = [&f, &g].map(|f| observe_for(f, s, 10 * FUEL));
            assert!(before == after, "seed {seed}\n{g}");
        }
    }
    assert!(
        tested as u64 > seeds() * 2 / 3,
        "{tested} accesses with shapes"
    );
}

#[test]
fn generated_functions_survive_the_text_form() {
    for seed in 0..200 {
        let text = function(seed).to_string();
        assert_eq!(parse(&text).unwrap().to_string(), text);
    }
}

#[test]
fn a_disabled_pass_does_not_run() {
    for (name, _) in PASSES {
        let mut options = all();
        options.disabled.insert(name);
        let stats = optimize(&mut function(1), &options).unwrap();
        assert!(stats.iter().all(|s| s.name != *name));
    }
    assert!(
        optimize(&mut function(1), &PassOptions::none())
            .unwrap()
            .is_empty()
    );
}

#[test]
fn barriers_are_split_when_all_passes_are_off() {
    let mut f = (0..).map(function).find(|f| barriers(f) > 0).unwrap();
    let stats = optimize(&mut f, &PassOptions::none()).unwrap();
    assert_eq!(
        stats.iter().map(|s| s.name).collect::<Vec<_>>(),
        ["suspend"]
    );
    assert_eq!(barriers(&f), 0);
}
