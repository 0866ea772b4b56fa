//! Launches beside and after each other: compiled once, right from any number of threads.

mod frames;
mod implicit;
mod rows;
mod shapes;
mod stop;
mod tails;

use std::sync::Barrier;
use std::thread;

use crate::reference::{linear, reduce, sort};
use crate::support::faults_as_text;
use visa_jit::backend::{BackendKind, Bounds, Choice, OobPolicy, SplitAccesses, Strategy};
use visa_jit::interp::InterpOptions;
use visa_jit::{Engine, EngineOptions, Kernel, Launch, Origin, Program};
use visa_test_common::{Rng, full};

fn engine() -> Engine {
    let options = EngineOptions {
        memory_bytes: 1 << 30,
        ..EngineOptions::default()
    };
    Engine::with_options(options).unwrap()
}

fn program(engine: &Engine, device: &str, file: &str) -> Program {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
    let bytes = std::fs::read(format!("{root}/tests/kernels/bin/{device}/{file}.zebin")).unwrap();
    engine.program_from_zebin(&bytes, None).unwrap()
}

/// Runs saxpy over `n` items and checks it.
fn saxpy(engine: &Engine, kernel: &Kernel, n: u32, seed: u64, threads: usize, oob: OobPolicy) {
    let mut rng = Rng::new(seed);
    let y = rng.floats(n as usize, -9.0, 9.0);
    let x = rng.floats(n as usize, -9.0, 9.0);
    let a = rng.float(-2.0, 2.0);
    let (by, bx) = (
        engine.memory().alloc_from(&y).unwrap(),
        engine.memory().alloc_from(&x).unwrap(),
    );
    let launch = Launch::new([n, 1, 1])
        .threads(threads)
        .oob(oob)
        .arg(0, &by)
        .arg(1, &bx)
        .arg(2, a);
    let report = kernel.launch(&launch).unwrap();
    assert_eq!(report.fault_count, 0);
    assert_eq!(by.to_vec_of::<f32>(), linear::saxpy(&y, &x, a), "size {n}");
}

#[test]
fn launching_again_compiles_nothing() {
    let engine = engine();
    let program = program(&engine, "skl", "saxpy");
    let kernel = program.kernel("saxpy").unwrap();
    let zero = OobPolicy::ReadZeroSkipWrite;
    assert_eq!(engine.cache_stats().misses, 0, "loading compiles nothing");
    saxpy(&engine, kernel, 100, 1, 1, zero);
    assert_eq!(engine.cache_stats().misses, 1);
    for (seed, n) in [3u32, 1, 33, 100, 5001].into_iter().enumerate() {
        saxpy(&engine, kernel, n, seed as u64, 1 + seed % 2, zero);
    }
    let stats = engine.cache_stats();
    assert_eq!((stats.misses, stats.hits), (1, 5));
    // The same file loaded again has the same code.
    let again = self::program(&engine, "skl", "saxpy");
    saxpy(&engine, again.kernel("saxpy").unwrap(), 65, 9, 1, zero);
    assert_eq!(engine.cache_stats().misses, 1);
    // Threads that have all their lanes are a specialisation.
    for n in [64, 1024] {
        saxpy(&engine, kernel, n, 2, 1, zero);
        assert_eq!(engine.cache_stats().misses, 2);
    }
    // Another policy is other code, and another kernel is.
    saxpy(&engine, kernel, 100, 1, 1, OobPolicy::Trap);
    assert_eq!(engine.cache_stats().misses, 3);
    saxpy(&engine, kernel, 100, 1, 1, OobPolicy::Trap);
    assert_eq!(engine.cache_stats().misses, 3);
    let report = {
        let y = engine.memory().alloc_from(&[1.0f32]).unwrap();
        let launch = Launch::new([1, 1, 1])
            .arg(0, &y)
            .arg(1, &y)
            .arg(2, 1.0f32)
            .arg(3, 1i32);
        let guarded = program.kernel("saxpy_guarded").unwrap();
        let first = guarded.launch(&launch).unwrap();
        assert_eq!(first.origin, Origin::Compiled);
        guarded.launch(&launch).unwrap()
    };
    assert_eq!(report.origin, Origin::Memory);
    assert_eq!(engine.cache_stats().misses, 4);
}

#[test]
fn a_prepared_launch_runs_again() {
    let engine = engine();
    let program = program(&engine, "pvc", "saxpy");
    let (y, x) = (vec![1.0f32; 77], vec![2.0f32; 77]);
    let by = engine.memory().alloc_from(&y).unwrap();
    let bx = engine.memory().alloc_from(&x).unwrap();
    let launch = Launch::new([77, 1, 1])
        .arg(0, &by)
        .arg(1, &bx)
        .arg(2, 0.5f32);
    let prepared = program.kernel("saxpy").unwrap().prepare(&launch).unwrap();
    for _ in 0..10 {
        prepared.run().unwrap();
    }
    assert_eq!(by.to_vec_of::<f32>(), vec![11.0; 77]);
    let stats = engine.cache_stats();
    assert_eq!((stats.misses, stats.hits), (1, 0));
}

/// Many threads ask for the same code at the same moment: one compiles, the others wait for it.
#[test]
fn threads_asking_at_once_compile_once() {
    const ASKING: usize = 16;
    for file in ["saxpy", "reduction"] {
        let engine = engine();
        let program = program(&engine, "acm-g10", file);
        let name = if file == "saxpy" {
            "saxpy"
        } else {
            "reduce_sum"
        };
        let start = Barrier::new(ASKING);
        let codes: Vec<_> = thread::scope(|s| {
            let asking: Vec<_> = (0..ASKING)
                .map(|_| {
                    s.spawn(|| {
                        let kernel = program.kernel(name).unwrap();
                        start.wait();
                        kernel.code(OobPolicy::Report).unwrap()
                    })
                })
                .collect();
            asking.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(codes.iter().all(|c| std::sync::Arc::ptr_eq(c, &codes[0])));
        let stats = engine.cache_stats();
        assert_eq!((stats.misses, stats.hits), (1, ASKING as u64 - 1), "{name}");
    }
}

/// Several threads launch at once on one engine: the same kernel, others, with and without worker threads.
#[test]
fn launches_side_by_side() {
    const SIDES: u64 = 6;
    const ROUNDS: u64 = 8;
    let engine = engine();
    let skl = program(&engine, "skl", "saxpy");
    let pvc = program(&engine, "pvc", "saxpy");
    let reduction = program(&engine, "tgllp", "reduction");
    let bitonic = program(&engine, "acm-g10", "bitonic");
    let start = Barrier::new(SIDES as usize);
    thread::scope(|s| {
        for side in 0..SIDES {
            let (engine, start) = (&engine, &start);
            let (skl, pvc, reduction, bitonic) = (&skl, &pvc, &reduction, &bitonic);
            s.spawn(move || {
                start.wait();
                for round in 0..ROUNDS {
                    let seed = side * 100 + round;
                    let threads = 1 + (seed % 3) as usize;
                    let program = if side % 2 == 0 { skl } else { pvc };
                    let kernel = program.kernel("saxpy").unwrap();
                    // Odd, so that no launch has full threads only.
                    let n = 1 + seed as u32 * 38;
                    saxpy(engine, kernel, n, seed, threads, OobPolicy::Trap);
                    sums(engine, reduction, seed, threads);
                    slices(engine, bitonic, seed, threads);
                }
            });
        }
    });
    let stats = engine.cache_stats();
    assert_eq!(stats.misses, 4, "two of saxpy, one of each other");
    assert_eq!(stats.hits + stats.misses, 3 * SIDES * ROUNDS);
}

fn sums(engine: &Engine, program: &Program, seed: u64, threads: usize) {
    let values = Rng::new(seed).floats(64 * 20, -5.0, 5.0);
    let input = engine.memory().alloc_from(&values).unwrap();
    let output = engine.memory().alloc_from(&[0.0f32; 20]).unwrap();
    let launch = Launch::new([64 * 20, 1, 1])
        .local([64, 1, 1])
        .threads(threads)
        .arg(0, &output)
        .arg(1, &input)
        .arg(2, visa_jit::Arg::Local(256));
    program
        .kernel("reduce_sum")
        .unwrap()
        .launch(&launch)
        .unwrap();
    assert_eq!(output.to_vec_of::<f32>(), reduce::reduce_sum(&values, 64));
}

fn slices(engine: &Engine, program: &Program, seed: u64, threads: usize) {
    let values: Vec<i32> = Rng::new(seed)
        .words(32 * 9)
        .iter()
        .map(|&v| v as i32)
        .collect();
    let data = engine.memory().alloc_from(&values).unwrap();
    let launch = Launch::new([32 * 9, 1, 1])
        .local([32, 1, 1])
        .threads(threads)
        .arg(0, &data)
        .arg(1, visa_jit::Arg::Local(128));
    program
        .kernel("bitonic_group")
        .unwrap()
        .launch(&launch)
        .unwrap();
    assert_eq!(data.to_vec_of::<i32>(), sort::sorted_slices(&values, 32));
}

/// One prepared launch run from several threads: each run only adds to cells of its own kernel, atomically.
#[test]
fn one_prepared_launch_from_several_threads() {
    let engine = engine();
    let program = program(&engine, "tgllp", "histogram");
    let values = Rng::new(3).bytes(3000);
    let bins = engine.memory().alloc_from(&[0u32; 256]).unwrap();
    let input = engine.memory().alloc_from(&values).unwrap();
    let launch = Launch::new([3000, 1, 1])
        .local([100, 1, 1])
        .threads(2)
        .arg(0, &bins)
        .arg(1, &input)
        .arg(2, 3000u32);
    for name in ["histogram_global", "histogram_local_array"] {
        bins.write(0, &[0; 1024]).unwrap();
        let prepared = program.kernel(name).unwrap().prepare(&launch).unwrap();
        thread::scope(|s| {
            for _ in 0..4 {
                s.spawn(|| {
                    for _ in 0..5 {
                        prepared.run().unwrap();
                    }
                });
            }
        });
        let mut want = [0u32; 256];
        for &v in &values {
            want[usize::from(v)] += 20;
        }
        assert_eq!(bins.to_vec_of::<u32>(), want, "{name}");
    }
}

/// What a launch of `sgemm_naive` leaves in a matrix that is too small, and its faults: where they are, and of whom.
fn sgemm(
    engine: &Engine,
    program: &Program,
    global: [u32; 3],
    local: [u32; 3],
    oob: OobPolicy,
) -> (Vec<u32>, Vec<String>) {
    let (k, n) = (5u32, global[0]);
    let floats = |seed, n: u32| Rng::new(seed).floats(n as usize, -9.0, 9.0);
    let memory = engine.memory();
    let c = memory
        .alloc_from(&vec![7u32; (n * global[1] - n - 3) as usize])
        .unwrap();
    let a = memory.alloc_from(&floats(1, k * global[1])).unwrap();
    let b = memory.alloc_from(&floats(2, k * n)).unwrap();
    let launch = Launch::new(global)
        .local(local)
        .threads(1)
        .oob(oob)
        .arg(0, &c)
        .arg(1, &a)
        .arg(2, &b)
        .arg(3, n as i32)
        .arg(4, k as i32);
    let report = program
        .kernel("sgemm_naive")
        .unwrap()
        .launch(&launch)
        .unwrap();
    let faults = faults_as_text(&report.faults).into_iter();
    let counted = format!("{} in all", report.fault_count);
    (c.to_vec_of(), faults.chain([counted]).collect())
}

/// Groups have code of their own where their lanes lie in rows, or in one dimension. All of it does the same as the definition, to the
/// last fault. There is none for short rows that threads do not have as a whole, nor for traps in short rows.
#[test]
fn shapes_of_groups() {
    let options = EngineOptions {
        memory_bytes: 1 << 30,
        interpret: Some(InterpOptions::default()),
        ..EngineOptions::default()
    };
    let definition = Engine::with_options(options).unwrap();
    let engine = engine();
    for device in ["skl", "tgllp"]
        .into_iter()
        .take(if full() { 2 } else { 1 })
    {
        let compiled = program(&engine, device, "sgemm");
        let interpreted = program(&definition, device, "sgemm");
        let before = engine.cache_stats().misses;
        let report = OobPolicy::Report;
        for (global, local, oob, codes) in [
            ([64, 32, 1], [16, 16, 1], report, 1),
            ([16, 6, 2], [16, 2, 1], report, 1),
            ([24, 16, 1], [8, 8, 1], report, 2),
            ([8, 4, 1], [8, 4, 1], report, 2),
            // Rows that begin in the middle of a thread, groups that are cut off, threads without all their lanes.
            ([16, 9, 1], [16, 3, 1], report, 3),
            ([40, 32, 1], [16, 16, 1], report, 3),
            ([64, 30, 1], [16, 16, 1], report, 3),
            ([8, 6, 1], [8, 2, 1], report, 3),
            // Whole rows of one, two and three threads, in one to three dimensions.
            ([64, 4, 1], [32, 2, 1], report, 4),
            ([64, 5, 1], [64, 2, 1], report, 4),
            ([96, 4, 1], [96, 2, 1], report, 4),
            ([32, 2, 2], [32, 2, 2], report, 4),
            ([96, 3, 1], [96, 1, 1], report, 5),
            ([40, 3, 1], [40, 1, 1], report, 6),
            ([16, 8, 2], [16, 4, 2], report, 6),
            ([16, 6, 1], [16, 2, 1], OobPolicy::Trap, 7),
        ] {
            let ours = sgemm(&engine, &compiled, global, local, oob);
            let want = sgemm(&definition, &interpreted, global, local, oob);
            assert!(
                ours == want,
                "{device} {global:?} {local:?}\n{ours:?}\n{want:?}"
            );
            assert!(ours.1.len() > 1, "there are faults");
            let misses = engine.cache_stats().misses - before;
            assert_eq!(misses, codes, "{device} {global:?} {local:?} {oob:?}");
        }
    }
}

/// Four bytes a work-item, and indices some of which lie outside of the table.
fn scattered(
    engine: &Engine,
    program: &Program,
    (name, bytes): (&str, u32),
    oob: OobPolicy,
) -> (Vec<Vec<u8>>, Vec<String>) {
    const ITEMS: u32 = 160;
    let mut rng = Rng::new(7);
    let indices = (0..ITEMS).map(|_| rng.word_below(ITEMS + 20));
    let memory = engine.memory();
    // All are short: what is affine is outside at the end, in both halves of the last thread.
    let table: Vec<u8> = (0..bytes * (ITEMS - 9)).map(|at| (at * 7) as u8).collect();
    let indices: Vec<u32> = indices.take(ITEMS as usize - 5).collect();
    let (out, table, indices) = (
        memory
            .alloc_from(&vec![0xa5u8; (bytes * (ITEMS - 20)) as usize])
            .unwrap(),
        memory.alloc_from(&table).unwrap(),
        memory.alloc_from(&indices).unwrap(),
    );
    let launch = Launch::new([ITEMS, 1, 1])
        .local([80, 1, 1])
        .threads(1)
        .oob(oob);
    let launch = launch.arg(0, &out).arg(1, &table).arg(2, &indices);
    let report = program.kernel(name).unwrap().launch(&launch).unwrap();
    let faults = faults_as_text(&report.faults).into_iter();
    let counted = format!("{} in all", report.fault_count);
    (
        vec![out.to_vec(), table.to_vec()],
        faults.chain([counted]).collect(),
    )
}

/// An engine of a strategy, or the definition.
fn engine_of(strategy: Option<Strategy>) -> Engine {
    Engine::with_options(EngineOptions {
        memory_bytes: 1 << 30,
        interpret: strategy.is_none().then(InterpOptions::default),
        strategy: strategy.unwrap_or_default(),
        ..EngineOptions::default()
    })
    .unwrap()
}

/// Engines of all code generators that there are, with each choice about halves.
fn engines_by_halves() -> Vec<(Strategy, Engine)> {
    let there = BackendKind::ALL
        .iter()
        .copied()
        .filter(|b| b.available().is_ok());
    let choices = there.flat_map(|backend| SplitAccesses::ALL.iter().map(move |&h| (backend, h)));
    let engine = |(backend, halves)| {
        let mut strategy = Strategy::from(backend);
        strategy.tuning.split_accesses = halves;
        (strategy, engine_of(Some(strategy)))
    };
    choices.map(engine).collect()
}

/// Accesses that the kernel's compiler cut into halves do the same when they are one again, to the line of each fault.
#[test]
fn halves_made_one() {
    let definition = engine_of(None);
    let engines = engines_by_halves();
    let devices = ["skl", "tgllp", "acm-g10"];
    for device in devices.into_iter().take(if full() { 3 } else { 1 }) {
        let interpreted = program(&definition, device, "gather");
        let compiled = |(_, engine): &(Strategy, Engine)| program(engine, device, "gather");
        let compiled: Vec<Program> = engines.iter().map(compiled).collect();
        for case in [
            ("gather", 4),
            ("gather4", 16),
            ("gather_wide", 8),
            ("scatter", 4),
        ] {
            for oob in [
                OobPolicy::Report,
                OobPolicy::Trap,
                OobPolicy::ReadZeroSkipWrite,
            ] {
                let want = scattered(&definition, &interpreted, case, oob);
                let lines = |part: &str| want.1.iter().filter(|f| f.contains(part)).count();
                assert!(oob != OobPolicy::Report || lines("lane: 2") > 0 && lines("lane: 5") > 0);
                for ((strategy, engine), compiled) in engines.iter().zip(&compiled) {
                    let ours = scattered(engine, compiled, case, oob);
                    let place = format!("{device} {case:?} {oob:?} {strategy:?}");
                    assert_eq!(ours.1, want.1, "{place}");
                    assert!(ours.0 == want.0, "{place}");
                }
            }
        }
    }
}

/// A thread reads all of its lanes before it stores one, also where the last lane comes from what is stored, to its first and last byte.
#[test]
fn lanes_copied_onto_what_they_come_from() {
    const LANES: u32 = 32;
    /// The first word that is stored.
    const FIRST: u32 = 4 * 16 + 1;
    for (name, engine) in stop::engines() {
        let program = program(&engine, "bmg-26", "gather");
        let kernel = program.kernel("gather4").unwrap();
        let memory = engine.memory();
        for last in [15, 16, 17, 30, 47, 48, 49] {
            let old: Vec<u32> = (0..400).collect();
            let index: Vec<u32> = (51..50 + LANES).chain([last]).collect();
            let table = memory.alloc_from(&old).unwrap();
            let numbers = memory.alloc_from(&index).unwrap();
            let stored = table.part(4 * u64::from(FIRST), u64::from(16 * LANES));
            let launch = Launch::new([LANES, 1, 1])
                .local([LANES, 1, 1])
                .arg(0, stored.unwrap())
                .arg(1, &table)
                .arg(2, &numbers);
            kernel.launch(&launch).unwrap();
            let mut want = old;
            let words = index.iter().flat_map(|&from| 4 * from..4 * from + 4);
            want.splice(FIRST as usize..(FIRST + 4 * LANES) as usize, words);
            assert_eq!(table.to_vec_of::<u32>(), want, "{name} {last}");
        }
    }
}

/// By default those of which a pair costs less than its halves; none where faults end threads.
#[test]
fn which_halves_are_made_one() {
    for (strategy, engine) in &engines_by_halves() {
        let accesses = |name: &str, oob| {
            let launch = Launch::new([64, 1, 1]).local([64, 1, 1]).oob(oob);
            let program = program(engine, "skl", "gather");
            let kernel = program.kernel(name).unwrap();
            kernel.specialised(Some(&launch)).unwrap().accesses().len()
        };
        // Loads of indices, loads of what they say, and stores.
        let [records, singles, reported, scattered] =
            match (strategy.tuning.split_accesses, strategy.backend) {
                (SplitAccesses::Keep, _) => [6, 6, 6, 6],
                (SplitAccesses::Merge, _) => [3, 3, 3, 3],
                (SplitAccesses::Auto, BackendKind::Cranelift) => [5, 6, 5, 6],
                (SplitAccesses::Auto, BackendKind::Llvm) => [5, 5, 5, 5],
            };
        let (zero, report) = (OobPolicy::ReadZeroSkipWrite, OobPolicy::Report);
        for (name, oob, want) in [
            ("gather_wide", zero, records),
            ("gather", zero, singles),
            ("gather", report, reported),
            ("scatter", zero, scattered),
            ("scatter", report, scattered),
            ("gather_wide", OobPolicy::Trap, 6),
        ] {
            assert_eq!(accesses(name, oob), want, "{name} {oob:?} {strategy:?}");
        }
    }
}

/// What is computed for stores at the end of a block is there once, although there are two ways to store it: Cranelift computes
/// where values are used.
#[test]
fn work_in_front_of_stores_is_compiled_once() {
    let bytes = |bounds| {
        let options = EngineOptions {
            strategy: Strategy::default().tuned(|t| t.bounds = bounds),
            ..EngineOptions::default()
        };
        let engine = Engine::with_options(options).unwrap();
        let program = program(&engine, "skl", "black_scholes");
        let launch = Launch::new([64, 1, 1]).local([64, 1, 1]);
        let kernel = program.kernel("black_scholes").unwrap();
        kernel
            .specialised(Some(&launch))
            .unwrap()
            .object()
            .code
            .len()
    };
    let (hoisted, inline) = (bytes(Bounds::Hoisted), bytes(Bounds::Inline));
    assert!(
        hoisted < inline * 5 / 4,
        "{hoisted} bytes, and {inline} with tests where the accesses are"
    );
}
