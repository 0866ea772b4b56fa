//! Random control flow: every engine leaves the traces that each lane leaves when it runs alone.
//!
//! All 20,000 graphs run on the interpreter and on what lowering makes of them; code is generated for the first
//! 2,000, since that takes six milliseconds each in a build for tests, and for all of them in the ignored test.
//!
//! `SEED=n` runs one graph on every engine and prints it, `SEEDS=a..b` those on every engine.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use visa_fuzzing::engines::{ENGINES, Engine, named};
use visa_fuzzing::flow::text::text;
use visa_fuzzing::flow::{Trace, generate, oracle};

/// Launches of each graph.
const LAUNCHES: u64 = 2;

/// What is wrong with a graph on the engines; `Ok` is the number of blocks of its launches.
fn check(
    seed: u64,
    machines: &mut [(&str, Box<dyn visa_fuzzing::engines::Machine>)],
) -> Result<u64, String> {
    let graph = generate::graph(seed);
    let text = text(&graph);
    let mut given = Vec::new();
    let mut steps = 0;
    for n in 0..LAUNCHES {
        let g = generate::given(&graph, seed * LAUNCHES + n);
        let Some(trace) = oracle::run(&graph, &g) else {
            return Err("does not end".into());
        };
        steps += trace.steps.iter().map(|&s| u64::from(s)).sum::<u64>();
        given.push((g, trace));
    }
    for (name, machine) in machines {
        let loaded = machine
            .load(&text, graph.platform)
            .map_err(|e| format!("{name}: {e}"))?;
        for (n, (g, trace)) in given.iter().enumerate() {
            let out = loaded
                .run(&g.launch())
                .map_err(|e| format!("{name}, launch {n}: {e}"))?;
            if out[0] != trace.bytes() {
                let got = Trace::from_bytes(&out[0]);
                return Err(format!(
                    "{name}, launch {n}:\n{g:x?}\nexpected {trace:x?}\ngot      {got:x?}"
                ));
            }
        }
    }
    Ok(steps)
}

fn sweep(what: &str, engines: &[Engine], seeds: std::ops::Range<u64>) {
    let start = Instant::now();
    let (next, steps) = (AtomicU64::new(seeds.start), AtomicU64::new(0));
    let failures = Mutex::new(Vec::new());
    std::thread::scope(|s| {
        for _ in 0..2 {
            s.spawn(|| {
                let mut machines: Vec<_> = engines.iter().map(|e| (e.name, (e.make)())).collect();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if seed >= seeds.end || failures.lock().is_ok_and(|f| f.len() >= 5) {
                        return;
                    }
                    match check(seed, &mut machines) {
                        Ok(n) => drop(steps.fetch_add(n, Ordering::Relaxed)),
                        Err(e) => failures.lock().unwrap().push(format!("seed {seed}: {e}")),
                    }
                }
            });
        }
    });
    let names: Vec<&str> = engines.iter().map(|e| e.name).collect();
    println!(
        "{what}: {} graphs x {LAUNCHES} launches on {}, {} steps of lanes, {:.1} s",
        seeds.end - seeds.start,
        names.join(", "),
        steps.into_inner(),
        start.elapsed().as_secs_f64()
    );
    let failures = failures.into_inner().unwrap();
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

fn one() -> Option<u64> {
    std::env::var("SEED").ok()?.parse().ok()
}

#[test]
fn lanes_go_their_own_ways() {
    if let Some(seed) = one() {
        println!("{}", text(&generate::graph(seed)));
        return sweep("one", ENGINES, seed..seed + 1);
    }
    if let Some(seeds) = visa_fuzzing::seeds() {
        return sweep("some", ENGINES, seeds);
    }
    sweep("evaluated", &named(&["ssa", "interp"]), 0..20_000);
}

#[test]
fn lanes_go_their_own_ways_in_generated_code() {
    if one().is_none() {
        sweep("compiled", &named(&["cranelift"]), 0..2_000);
    }
}

#[test]
#[cfg(feature = "llvm")]
fn lanes_go_their_own_ways_in_llvms_code() {
    if one().is_none() {
        sweep(
            "compiled by LLVM",
            &named(&["llvm", "llvm-unoptimised"]),
            0..150,
        );
    }
}

#[test]
#[ignore = "minutes: every graph on every engine"]
fn lanes_go_their_own_ways_on_every_engine() {
    sweep("all", ENGINES, 0..20_000);
}
