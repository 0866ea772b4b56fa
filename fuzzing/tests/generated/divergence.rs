//! Random control flow: every engine leaves the traces that each lane leaves when it runs alone.
//!
//! 5,000 graphs run on the interpreter, on what lowering makes of them, and as generated code; the code
//! generators take turns, see [`TURNS`]. The ignored test runs 20,000 graphs, each on every engine.
//!
//! `SEED=n` runs one graph on every engine and prints it, `SEEDS=a..b` those on every engine.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use visa_fuzzing::engines::{ENGINES, Engine, Machine, named};
use visa_fuzzing::flow::census::Census;
use visa_fuzzing::flow::{Graph, Trace, generate, oracle, text::text};

/// Launches of each graph.
const LAUNCHES: u64 = 2;

/// Which graphs an engine takes part in.
#[derive(Clone, Copy)]
struct Turn {
    engine: Engine,
    /// Of every `of` graphs that are alike, those from `from` up to `to`.
    from: u64,
    to: u64,
    of: u64,
}

impl Turn {
    /// Large graphs have the seeds that [`generate::LARGE`] divides: each kind is dealt out on its own.
    fn takes(&self, seed: u64) -> bool {
        let n = if is_large(seed) {
            seed / generate::LARGE
        } else {
            seed
        };
        (self.from..self.to).contains(&(n % self.of))
    }
}

fn is_large(seed: u64) -> bool {
    seed.is_multiple_of(generate::LARGE)
}

/// Engines of the plain run, by name, and their share of every ten graphs: compiling one is most of the work, so
/// each graph is compiled once.
const TURNS: [(&str, u64, u64); 5] = [
    ("interp", 0, 10),
    ("ssa", 0, 10),
    ("cranelift", 0, 3),
    ("cranelift-plain", 3, 9),
    ("cranelift-unoptimised", 9, 10),
];

fn turns() -> Vec<Turn> {
    let turn = |&(name, from, to)| Turn {
        engine: named(&[name])[0],
        from,
        to,
        of: 10,
    };
    TURNS.iter().map(turn).collect()
}

fn always(engines: &[Engine]) -> Vec<Turn> {
    let turn = |&engine: &Engine| Turn {
        engine,
        from: 0,
        to: 1,
        of: 1,
    };
    engines.iter().map(turn).collect()
}

/// An engine with its number of graphs.
struct Runner {
    turn: Turn,
    machine: Box<dyn Machine>,
    graphs: u64,
}

/// What is wrong with a graph on the engines; `Ok` is the number of blocks that lanes went through.
fn check(graph: &Graph, seed: u64, runners: &mut [Runner]) -> Result<u64, String> {
    let text = text(graph);
    let mut given = Vec::new();
    let mut steps = 0;
    for n in 0..LAUNCHES {
        let g = generate::given(graph, seed * LAUNCHES + n);
        let Some(trace) = oracle::run(graph, &g) else {
            return Err("does not end".into());
        };
        steps += trace.steps;
        given.push((g, trace));
    }
    for r in runners.iter_mut().filter(|r| r.turn.takes(seed)) {
        let name = r.turn.engine.name;
        r.graphs += 1;
        let loaded = r
            .machine
            .load(&text, graph.platform)
            .map_err(|e| format!("{name}: {e}"))?;
        for (n, (g, trace)) in given.iter().enumerate() {
            let out = loaded
                .run(&g.launch(graph))
                .map_err(|e| format!("{name}, launch {n}: {e}"))?;
            if out[0] != g.expected(graph, trace) {
                let got = Trace::from_bytes(graph, &out[0]);
                return Err(format!(
                    "{name}, launch {n}:\n{g:x?}\nexpected {trace:x?}\ngot      {got:x?}"
                ));
            }
        }
    }
    Ok(steps)
}

/// What all threads together did.
#[derive(Default)]
struct Sum {
    census: Census,
    steps: u64,
    /// Graphs of each engine.
    graphs: Vec<u64>,
    failures: Vec<String>,
}

fn sweep(turns: &[Turn], seeds: std::ops::Range<u64>) -> Census {
    let start = Instant::now();
    let next = AtomicU64::new(seeds.start);
    let sum = Mutex::new(Sum::default());
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let runner = |&turn: &Turn| Runner {
                    turn,
                    machine: turn.engine.make(),
                    graphs: 0,
                };
                let mut runners: Vec<_> = turns.iter().map(runner).collect();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || sum.lock().is_ok_and(|s| s.failures.len() >= 5) {
                        break;
                    }
                    let graph = generate::graph(seed);
                    let result = check(&graph, seed, &mut runners);
                    let mut sum = sum.lock().unwrap();
                    sum.census.add(&graph, is_large(seed));
                    match result {
                        Ok(n) => sum.steps += n,
                        Err(e) => sum.failures.push(format!("seed {seed}: {e}")),
                    }
                }
                let mut sum = sum.lock().unwrap();
                sum.graphs.resize(runners.len(), 0);
                for (n, r) in sum.graphs.iter_mut().zip(&runners) {
                    *n += r.graphs;
                }
            });
        }
    });
    let sum = sum.into_inner().unwrap();
    let each = turns.iter().zip(&sum.graphs);
    let each: Vec<String> = each
        .map(|(t, n)| format!("{n} on {}", t.engine.name))
        .collect();
    println!(
        "{}{} x {LAUNCHES} launches, {} steps of lanes, {:.1} s",
        sum.census,
        each.join(", "),
        sum.steps,
        start.elapsed().as_secs_f64()
    );
    assert!(sum.failures.is_empty(), "{}", sum.failures.join("\n"));
    sum.census
}

#[test]
fn lanes_go_their_own_ways() {
    if let Some(seed) = std::env::var("SEED").ok().and_then(|s| s.parse().ok()) {
        println!("{}", text(&generate::graph(seed)));
        sweep(&always(&ENGINES), seed..seed + 1);
    } else if let Some(seeds) = visa_fuzzing::seeds() {
        sweep(&always(&ENGINES), seeds);
    } else {
        let missing = sweep(&turns(), 0..visa_test_common::share(7_000, 63)).missing();
        // A plain run has too few for what is rare.
        assert!(
            missing.is_empty() || !visa_test_common::full(),
            "{}",
            missing.join("\n")
        );
    }
}

#[test]
#[cfg(feature = "llvm-codegen")]
fn lanes_go_their_own_ways_in_llvms_code() {
    sweep(&always(&named(&["llvm", "llvm-unoptimised"])), 0..150);
}

#[test]
#[ignore = "minutes: every graph on every engine"]
fn lanes_go_their_own_ways_on_every_engine() {
    sweep(&always(&ENGINES), 0..20_000);
}
