//! `Launch::schedule`: orders of groups and threads. A right kernel does the same in each; one with a race shows it in some. Compiled code
//! keeps the interpreter's order.

use std::collections::BTreeSet;

use super::{engine, files, program_of, strategy};
use visa_jit::backend::{Check, Dispatch};
use visa_jit::{Engine, EngineOptions, Launch, Program};

/// Kernels of `race.cl` whose result depends on the order of threads or groups if their argument `far` is 1.
const KERNELS: [&str; 5] = [
    "local_read",
    "global_write",
    "in_place",
    "groups_write",
    "groups_read",
];

const SEEDS: u64 = 6;

/// What a launch of two groups of 128 work-items leaves in its buffer.
fn left(engine: &Engine, program: &Program, kernel: &str, far: i32, seed: Option<u64>) -> Vec<u8> {
    let o = engine.memory().alloc(4 * 1024).unwrap();
    let launch = Launch::new([256, 1, 1]).local([128, 1, 1]).threads(2);
    let launch = launch.arg(0, &o).arg(1, far);
    let launch = match seed {
        Some(seed) => launch.schedule(seed),
        None => launch,
    };
    program.kernel(kernel).unwrap().launch(&launch).unwrap();
    o.to_vec()
}

#[test]
fn only_kernels_with_races_depend_on_a_schedule() {
    for file in files() {
        let engines = [false, true].map(|interpret| {
            let engine = engine(Check::None, interpret);
            let program = program_of(&engine, &format!("race-{file}"));
            (engine, program)
        });
        for kernel in KERNELS {
            let run = |which: usize, far, seed| {
                let (engine, program) = &engines[which];
                left(engine, program, kernel, far, seed)
            };
            let right = run(0, 0, None);
            let mut results = BTreeSet::new();
            for seed in 0..SEEDS {
                assert!(run(0, 0, Some(seed)) == right, "{file}: {kernel}, {seed}");
                let wrong = run(0, 1, Some(seed));
                let same = [run(0, 1, Some(seed)), run(1, 1, Some(seed))];
                assert!(same.iter().all(|r| *r == wrong), "{file}: {kernel}, {seed}");
                results.insert(wrong);
            }
            assert!(results.len() > 1, "{file}: {kernel}");
        }
    }
}

/// Code for whole groups is called for one thread at a time, and returns at barriers then.
#[test]
fn code_for_whole_groups_keeps_to_a_schedule() {
    let left_by = |dispatch| {
        let mut strategy = strategy();
        strategy.tuning.dispatch = dispatch;
        let options = EngineOptions {
            strategy,
            ..EngineOptions::default()
        };
        let engine = Engine::with_options(options).unwrap();
        let program = program_of(&engine, "race-pvc");
        (0..SEEDS).map(move |seed| left(&engine, &program, "local_read", 1, Some(seed)))
    };
    let [threads, groups] = [Dispatch::Thread, Dispatch::Group].map(left_by);
    let threads: Vec<_> = threads.collect();
    assert!(threads.iter().any(|result| *result != threads[0]));
    assert!(groups.eq(threads));
}
