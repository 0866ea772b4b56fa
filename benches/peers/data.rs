//! Cases as data, on OpenCL drivers: ours with each code generator, PoCL, and Intel's runtime. All are driven by one program through
//! the loader, since the driver is what users run.
//!
//! A time is that of a run by the clock, from the first launch to `clFinish`. Results come first: they are those that most of
//! PoCL, Intel and `visa-jit` agree on; whose differ is named and not measured. Our driver is that beside this program's folder,
//! or that of `VISA_JIT_DRIVER`; `cargo build --release -p visa-jit-cli -p visa-jit-opencl` makes it. A worker with one
//! thread stays on one processor.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use visa_bench_cases::client::{Client, Loaded, difference};
use visa_bench_cases::{Case, cases_in};

use crate::support::median;
use crate::{Options, Peer, page, surroundings};

const CONTENDERS: &[&str] = &["PoCL", "Intel", "Cranelift", "LLVM"];
/// Of those above.
const PEERS: [&str; 2] = ["PoCL", "Intel"];
/// Least time of a measurement, in microseconds: runs are repeated until they take about as long.
const MICROSECONDS: f64 = 5000.0;

fn ours(name: &str) -> bool {
    !PEERS.contains(&name)
}

/// Serves a contender until its input ends: `load PATH`, `check PATH` (writes results there), and `time N`.
pub fn serve(name: &str, dir: &Path, threads: usize) -> Result<(), String> {
    if threads == 1 {
        crate::worker::pin();
    }
    let platform = match name {
        "PoCL" => "Portable Computing Language",
        "Intel" => "Intel(R) OpenCL",
        _ => "visa-jit",
    };
    let client = Client::named(platform);
    let mut lines = std::io::stdin()
        .lock()
        .lines()
        .map_while(Result::ok)
        .peekable();
    while let Some(line) = lines.next() {
        let answer = |answer: Result<f64, String>| {
            match answer {
                Ok(time) => println!("ok {time}"),
                Err(why) => println!("no {}", why.replace('\n', " ")),
            }
            let _ = std::io::stdout().flush();
        };
        let Some(file) = line.strip_prefix("load ") else {
            answer(Err("nothing is loaded".to_owned()));
            continue;
        };
        let case = match Case::read(&dir.join(file)) {
            Ok(case) => case,
            Err(why) => {
                answer(Err(why));
                continue;
            }
        };
        let loaded =
            client
                .as_ref()
                .map_err(Clone::clone)
                .and_then(|client| match client.missing(&case) {
                    Some(need) => Err(format!("skipped: the driver has no {need:?}")),
                    None => client.load(&case),
                });
        match loaded {
            Ok(mut loaded) => {
                answer(Ok(0.0));
                while let Some(line) = lines.next_if(|line| !line.starts_with("load ")) {
                    answer(obey(&mut loaded, &line));
                }
            }
            Err(why) => answer(Err(why)),
        }
    }
    Ok(())
}

fn obey(loaded: &mut Loaded<'_>, line: &str) -> Result<f64, String> {
    match line.split_once(' ') {
        Some(("check", path)) => {
            let all = loaded.check()?;
            std::fs::write(path, all.concat()).map_err(|error| error.to_string())?;
            Ok(0.0)
        }
        Some(("time", times)) => {
            let times: u32 = times.parse().map_err(|_| "how often?")?;
            (0..times).map(|_| loaded.run()).sum()
        }
        _ => Err(format!("{line}?")),
    }
}

/// The driver of this tree.
fn driver() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("VISA_JIT_DRIVER") {
        return Some(named.into());
    }
    let program = std::env::current_exe().ok()?;
    let beside = program.parent()?.parent()?.join("libvisa_jit_opencl.so");
    beside.is_file().then_some(beside)
}

fn start(name: &'static str, dir: &Path, threads: usize, options: &Options) -> Option<Peer> {
    let mut command = Command::new(std::env::current_exe().ok()?);
    let threads_text = threads.to_string();
    command
        .args(["--worker", name, "--threads", &threads_text, "--cases"])
        .arg(dir);
    surroundings(&mut command, name, threads);
    if ours(name) {
        let Some(driver) = driver() else {
            println!(
                "without {name}: cargo build --release -p visa-jit-cli -p visa-jit-opencl makes the driver"
            );
            return None;
        };
        command
            .env("OCL_ICD_VENDORS", &driver)
            .env("OCL_ICD_FILENAMES", &driver);
        command
            .env("VISA_JIT_DEVICE", &options.device)
            .env("VISA_JIT_THREADS", &threads_text);
        command.env("VISA_JIT_BACKEND", name.to_lowercase());
    }
    Peer::spawn(name, name, command)
}

/// One case: what each contender took, or why not.
#[derive(serde::Serialize)]
pub struct Row {
    pub name: String,
    pub kind: String,
    /// Medians in microseconds.
    pub times: Vec<(&'static str, f64)>,
    pub absent: Vec<(&'static str, String)>,
    pub wrong: Vec<(&'static str, String)>,
    /// The better peer's time divided by that of ours: the median of the rounds.
    pub ratios: Vec<(&'static str, f64)>,
}

impl Row {
    fn print(&self) {
        print!("{:<28}", self.name);
        for name in CONTENDERS {
            match self.times.iter().find(|(n, _)| n == name) {
                Some((_, time)) => print!("{time:>12.0}"),
                None => print!("{:>12}", "-"),
            }
        }
        self.ratios
            .iter()
            .for_each(|(name, ratio)| print!("  {name} {ratio:.2}"));
        println!();
        for (name, why) in &self.absent {
            println!("    {name}: {why}");
        }
        for (name, why) in &self.wrong {
            println!("    WRONG, {name}: {why}");
        }
    }
}

type Outputs = Vec<Vec<u8>>;

/// Loads a case and gives its outputs.
fn outputs(peer: &mut Peer, case: &Case, file: &str) -> Result<Outputs, String> {
    peer.ask(&format!("load {file}"))?;
    let path = std::env::temp_dir().join(format!("visa-jit-peers-{}.bin", std::process::id()));
    peer.ask(&format!("check {}", path.display()))?;
    let bytes = std::fs::read(&path).map_err(|error| error.to_string());
    let _ = std::fs::remove_file(&path);
    let bytes = bytes?;
    let mut rest = &bytes[..];
    let lengths = case.contents();
    let lengths = case
        .buffers
        .iter()
        .zip(&lengths)
        .filter(|(buffer, _)| buffer.output);
    Ok(lengths
        .map(|(_, bytes)| {
            let (one, after) = rest.split_at(bytes.len().min(rest.len()));
            rest = after;
            one.to_vec()
        })
        .collect())
}

/// The result that most implementations agree on, ours being one; nothing, where there are several and each has its own.
fn agreed<'a>(case: &Case, all: &'a [(&'static str, Outputs)]) -> Option<&'a Outputs> {
    let votes = |wanted: &Outputs| {
        let agree = |found: &Outputs| difference(case, wanted, found).is_none();
        let peers = all
            .iter()
            .filter(|(name, found)| !ours(name) && agree(found))
            .count();
        let us = all.iter().any(|(name, found)| ours(name) && agree(found));
        peers + usize::from(us)
    };
    // The first of those with as many votes.
    let best = all.iter().rev().max_by_key(|(_, outputs)| votes(outputs))?;
    let implementations = all.iter().filter(|(name, _)| !ours(name)).count() + 1;
    (implementations == 1 || votes(&best.1) > 1).then_some(&best.1)
}

fn measure(case: &Case, file: &str, peers: &mut [Peer], options: &Options) -> Row {
    let mut row = Row {
        name: case.name.clone(),
        kind: case.kind.clone(),
        times: Vec::new(),
        absent: Vec::new(),
        wrong: Vec::new(),
        ratios: Vec::new(),
    };
    let mut found: Vec<(&'static str, Outputs)> = Vec::new();
    for peer in peers.iter_mut() {
        match outputs(peer, case, file) {
            Ok(outputs) => found.push((peer.name, outputs)),
            Err(why) if why.starts_with("skipped") => row.absent.push((peer.name, why)),
            Err(why) => row.absent.push((peer.name, format!("FAILED: {why}"))),
        }
    }
    let wanted = agreed(case, &found);
    for (name, outputs) in &found {
        match wanted.map(|wanted| difference(case, wanted, outputs)) {
            Some(None) => {}
            Some(Some(what)) => row.wrong.push((name, what)),
            None => row.wrong.push((name, "no two agree".to_owned())),
        }
    }
    let right = |name: &str| {
        found.iter().any(|(n, _)| *n == name) && !row.wrong.iter().any(|(n, _)| *n == name)
    };
    let running = peers.iter_mut().filter(|peer| right(peer.name));
    if !options.check {
        let times = rounds(running.collect(), options.rounds, &mut row.absent);
        row.ratios = ratios(&times);
        row.times = times
            .into_iter()
            .map(|(name, times)| (name, median(times)))
            .collect();
    }
    row
}

/// Microseconds of a run of each contender in each round.
fn rounds(
    peers: Vec<&mut Peer>,
    rounds: usize,
    absent: &mut Vec<(&'static str, String)>,
) -> Vec<(&'static str, Vec<f64>)> {
    let mut running = Vec::new();
    for peer in peers {
        // The first run of a process takes longer than those after it.
        match peer.ask("time 1").and_then(|_| peer.ask("time 1")) {
            Ok(time) => running.push((
                peer,
                (MICROSECONDS / time).clamp(1.0, 1000.0) as u32,
                Vec::new(),
            )),
            Err(why) => absent.push((peer.name, why)),
        }
    }
    for _ in 0..rounds {
        for (peer, runs, times) in &mut running {
            // Caches hold what the contender before has left there, so that a run comes first that does not count.
            let warm = peer.ask("time 1");
            if let Ok(time) = warm.and_then(|_| peer.ask(&format!("time {runs}"))) {
                times.push(time / f64::from(*runs));
            }
        }
    }
    let whole = running
        .into_iter()
        .filter(|(.., times)| times.len() == rounds);
    whole.map(|(peer, _, times)| (peer.name, times)).collect()
}

fn ratios(all: &[(&'static str, Vec<f64>)]) -> Vec<(&'static str, f64)> {
    let peers = all.iter().filter(|(name, _)| !ours(name));
    let better = peers.min_by(|a, b| median(a.1.clone()).total_cmp(&median(b.1.clone())));
    let Some((_, better)) = better else {
        return Vec::new();
    };
    let us = all.iter().filter(|(name, _)| ours(name));
    us.map(|(name, times)| {
        let each = better.iter().zip(times).map(|(peer, our)| peer / our);
        (*name, median(each.collect()))
    })
    .collect()
}

fn load() -> String {
    std::fs::read_to_string("/proc/loadavg")
        .unwrap_or_default()
        .trim()
        .to_owned()
}

/// All cases of a directory on all contenders.
pub fn run(dir: &Path, options: &Options) -> Result<(), String> {
    let dir = std::path::absolute(dir).map_err(|error| error.to_string())?;
    let cases = cases_in(&dir)?
        .iter()
        .map(|path| Case::read(path))
        .collect::<Result<Vec<_>, _>>()?;
    let (mut runs, mut good) = (Vec::new(), true);
    for &threads in &options.threads {
        let before = load();
        println!(
            "\n{threads} thread(s), device {}, medians of {} rounds, µs a run, load {before}",
            options.device, options.rounds
        );
        let wanted = CONTENDERS.iter().filter(|name| {
            options.contenders.is_empty() || options.contenders.iter().any(|c| c == *name)
        });
        let mut peers: Vec<Peer> = wanted
            .filter_map(|name| start(name, &dir, threads, options))
            .collect();
        print!("{:<28}", "");
        CONTENDERS.iter().for_each(|name| print!("{name:>12}"));
        println!();
        let mut rows = Vec::new();
        for case in cases
            .iter()
            .filter(|case| case.name.contains(&options.kernels))
        {
            let row = measure(case, &format!("{}.toml", case.name), &mut peers, options);
            row.print();
            // The process of a contender that crashed is started again.
            for peer in &mut peers {
                if peer.child.try_wait().is_ok_and(|status| status.is_some())
                    && let Some(new) = start(peer.name, &dir, threads, options)
                {
                    *peer = new;
                }
            }
            let failed = |(name, why): &(&str, String)| ours(name) && why.starts_with("FAILED");
            good &= !row.wrong.iter().any(|(name, _)| ours(name)) && !row.absent.iter().any(failed);
            rows.push(row);
        }
        page::means(&rows)
            .iter()
            .for_each(|line| println!("{line}"));
        runs.push(serde_json::json!({ "threads": threads, "device": options.device, "load": [before, load()], "cases": rows }));
        if let Some(path) = &options.page {
            let path = path.with_extension(format!("{threads}.html"));
            let text = page::html(&rows, &format!("{} on {threads} thread(s)", options.device));
            std::fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))?;
        }
    }
    if let Some(path) = &options.json {
        let text = serde_json::Value::from(runs).to_string();
        std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    match good {
        true => Ok(()),
        false => Err("visa-jit failed or had other results: see above".to_owned()),
    }
}
