//! Random functions mean the same after each pass.

use crate::generate::{function, observe};
use visa_jit::passes::pipeline::{ORDER, PASSES};
use visa_jit::passes::{PassOptions, optimize, run_pass};
use visa_jit::ssa::{parse, verify};

const SEEDS: u64 = 2000;

fn check(seed: u64, order: &[&'static str]) {
    let mut f = function(seed);
    verify(&f).unwrap_or_else(|e| panic!("seed {seed}: {e:?}\n{f}"));
    let before = [seed, seed + 1].map(|s| observe(&f, s));
    for name in order {
        let text = f.to_string();
        assert!(run_pass(&mut f, name));
        if let Err(e) = verify(&f) {
            panic!("seed {seed}, {name}: {}\n{text}\n{f}", e[0]);
        }
        let after = [seed, seed + 1].map(|s| observe(&f, s));
        assert!(
            before == after,
            "seed {seed}: {name} changes it\n{text}\n{f}"
        );
    }
}

#[test]
fn the_pipeline_keeps_the_meaning() {
    for seed in 0..SEEDS {
        check(seed, ORDER);
    }
}

#[test]
fn each_pass_alone_keeps_the_meaning() {
    for seed in SEEDS..SEEDS + 500 {
        for (name, _) in PASSES {
            check(seed, &[name, name]);
        }
    }
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
        let mut options = PassOptions::default();
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
