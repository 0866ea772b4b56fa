//! How much faster several threads are than one when a program launches now and then: for each contender a process with one
//! thread and a process with several take turns, so that the workers of each have slept in between.
//!
//! Virtual processors may be two threads of one core for a while, and then no program runs twice as fast on them. So each round
//! also measures plain arithmetic on one processor and on all at once; rounds in which that is slower on all are counted and
//! left out.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Instant;

use rustix::thread::{CpuSet, sched_setaffinity};

use crate::cases::{CASES, Case};
use crate::support::median;
use crate::worker::microseconds;
use crate::{CONTENDERS, Options, Peer, launches};

/// One contender with one thread, and with several.
struct Pair {
    one: Peer,
    several: Peer,
}

/// Microseconds of a launch in each round, with one thread and with several.
#[derive(Default)]
struct Rounds {
    times: Vec<(f64, f64)>,
    /// Rounds that were left out.
    disturbed: usize,
}

/// Launches of a measurement and what they took, or why there are none.
type Measured = Result<(u32, Rounds), String>;

fn load(peer: &mut Peer, number: usize) -> Result<f64, String> {
    peer.ask(&format!("load {number}"))?;
    peer.ask("time 1")?;
    peer.ask("time 1")
}

/// Where plain arithmetic takes this much longer on all processors at once, they are not processors of their own.
const SHARED: f64 = 1.08;

/// Microseconds of arithmetic that keeps all vector units of a core busy, on each of the processors at once; of the slowest.
fn arithmetic(processors: usize) -> f64 {
    let ready = Barrier::new(processors);
    let work = |processor| {
        let mut only = CpuSet::new();
        only.set(processor);
        // Without it the measurement only is less sure.
        let _ = sched_setaffinity(None, &only);
        let mut values = [1.0_f32; 192];
        ready.wait();
        let start = Instant::now();
        for _ in 0..black_box(20_000) {
            for value in &mut values {
                *value = *value * 0.999 + 0.5;
            }
            black_box(&mut values);
        }
        microseconds(start)
    };
    std::thread::scope(|s| {
        let threads: Vec<_> = (0..processors).map(|n| s.spawn(move || work(n))).collect();
        let times = threads.into_iter().map(|t| t.join().unwrap_or(f64::NAN));
        times.fold(0.0, f64::max)
    })
}

/// True if the processors are cores of their own just now.
fn undisturbed(processors: usize) -> bool {
    arithmetic(processors) < SHARED * arithmetic(1)
}

/// Runs the case on all pairs in turn.
fn measure(
    number: usize,
    pairs: &mut [Pair],
    threads: usize,
    rounds: usize,
) -> Vec<Result<Rounds, String>> {
    let mut ready: Vec<(&mut Pair, Measured)> = Vec::new();
    for pair in pairs {
        let time = load(&mut pair.one, number);
        let both = time.and_then(|time| load(&mut pair.several, number).map(|_| time));
        ready.push((pair, both.map(|time| (launches(time), Rounds::default()))));
    }
    for _ in 0..rounds {
        for (pair, outcome) in &mut ready {
            let Ok((launches, found)) = outcome else {
                continue;
            };
            let question = format!("time {launches}");
            let each = f64::from(*launches);
            let round = pair.one.ask(&question).and_then(|one| {
                let several = pair.several.ask(&question)?;
                Ok((one / each, several / each))
            });
            match round {
                Ok(round) if undisturbed(threads) => found.times.push(round),
                Ok(_) => found.disturbed += 1,
                Err(why) => *outcome = Err(why),
            }
        }
    }
    let outcomes = ready.into_iter();
    outcomes
        .map(|(_, outcome)| outcome.map(|(_, found)| found))
        .collect()
}

/// The line of one contender on one case: medians of both times, and of the ratios of each round their median, and what 95 of
/// 100 rounds reach.
fn print(case: &Case, contender: &str, outcome: Result<Rounds, String>) {
    print!("{:<32}{contender:<12}", case.name);
    match outcome {
        Ok(Rounds { times, disturbed }) if !times.is_empty() => {
            let mut ratios: Vec<f64> = times.iter().map(|(one, several)| one / several).collect();
            ratios.sort_by(f64::total_cmp);
            let slow = ratios[ratios.len() / 20];
            let (one, several) = times.into_iter().unzip();
            let (one, several) = (median(one), median(several));
            let middle = median(ratios);
            println!("{one:>11.1}{several:>11.1}{middle:>9.2}{slow:>9.2}{disturbed:>9}");
        }
        Ok(_) => println!("  no rounds"),
        Err(why) => println!("  {why}"),
    }
}

/// Compares one thread with `threads`.
pub fn run(threads: usize, options: &Options) {
    let names: Vec<_> = CONTENDERS
        .iter()
        .filter(|(name, _)| {
            options.contenders.is_empty() || options.contenders.iter().any(|c| c == name)
        })
        .collect();
    let mut pairs = Vec::new();
    for &&(name, column) in &names {
        let both = [1, threads].map(|n| {
            let mut peer = Peer::start(name, column, n, options)?;
            peer.ask("load 0").ok().map(|_| peer)
        });
        match both {
            [Some(one), Some(several)] => pairs.push(Pair { one, several }),
            _ => println!("without {name}"),
        }
    }
    println!(
        "\none thread and {threads}, zebins for {}, {} rounds, µs a launch",
        options.device, options.rounds
    );
    let several = format!("{threads} threads");
    println!(
        "{:<44}{:>11}{several:>11}{:>9}{:>9}{:>9}",
        "", "1 thread", "median", "95 %", "left out"
    );
    for (number, case) in CASES.iter().enumerate() {
        if !case.name.contains(&options.kernels) {
            continue;
        }
        let outcomes = measure(number, &mut pairs, threads, options.rounds);
        for (pair, outcome) in pairs.iter().zip(outcomes) {
            print(case, pair.one.name, outcome);
        }
    }
}
