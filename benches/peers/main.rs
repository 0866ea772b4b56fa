//! Kernels next to what a user would run instead: PoCL and Intel's OpenCL runtime for CPUs, ISPC and plain C.
//!
//! `cargo bench --bench peers [--features llvm] -- [--kernels PART] [--threads 1,2] [--rounds N] [--device skl] [--json PATH]`
//! `cargo bench --bench peers [--features llvm] -- --scaling 2 [--contenders LLVM,PoCL] [--kernels PART] [--rounds N]` compares
//! one thread with two.
//!
//! `cargo bench --bench peers -- --cases benches/cases [--page PATH] [--check] …` runs cases that are data, of any directory: see
//! `data.rs`.
//!
//! Every contender is a process of its own; they run a case in turn, A B C A B C …, after each has warmed up and its results
//! were compared with Cranelift's. With one thread, all run on the last processor. What is not installed is named and left
//! out. OpenCL runtimes are found by the names of their platforms. `VISA_JIT_INTEL_OPENCL` may name `libintelocl.so`, where
//! it is not registered (it comes with `pip install intel-opencl-rt intel-cmplr-lib-rt`). OpenCL kernels are built twice, with
//! `int` indices as they are written and with `long` ones, and the faster is shown, as compilers make much of the difference.

#[path = "../support/mod.rs"]
#[allow(dead_code, reason = "runs in turn are done by processes here")]
mod support;

mod cases;
mod data;
mod opencl;
mod page;
mod scaling;
mod table;
mod worker;

use std::io::{BufRead, BufReader, Write};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use cases::{CASES, Case};
use table::{Outcome, Row};

/// Contenders, each with the column that it is shown in.
const CONTENDERS: &[(&str, &str)] = &[
    ("C", "C"),
    ("ISPC", "ISPC"),
    ("PoCL", "PoCL"),
    ("PoCL long", "PoCL"),
    ("Intel", "Intel"),
    ("Intel long", "Intel"),
    ("Cranelift", "Cranelift"),
    ("LLVM", "LLVM"),
];
/// Results are compared with this one's.
const REFERENCE: &str = "Cranelift";
/// A measurement repeats launches until it takes about so long.
const MICROSECONDS: f64 = 3000.0;
const MAX_LAUNCHES: f64 = 1000.0;
/// A contender that takes longer to answer is taken to hang.
const PATIENCE: Duration = Duration::from_secs(300);

struct Options {
    worker: Option<String>,
    threads: Vec<usize>,
    kernels: String,
    rounds: usize,
    device: String,
    json: Option<PathBuf>,
    /// Compares one thread with this number of threads.
    scaling: Option<usize>,
    /// Contenders that are compared; all when empty.
    contenders: Vec<String>,
    /// A directory with cases as data.
    cases: Option<PathBuf>,
    /// Where the picture of its ratios goes.
    page: Option<PathBuf>,
    /// Compares results and measures nothing.
    check: bool,
}

fn options() -> Options {
    let mut found = Options {
        worker: None,
        threads: vec![1, 2],
        kernels: String::new(),
        rounds: 11,
        device: "skl".to_owned(),
        json: None,
        scaling: None,
        contenders: Vec::new(),
        cases: None,
        page: None,
        check: false,
    };
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut value = || args.next().unwrap_or_default();
        match arg.as_str() {
            "--worker" => found.worker = Some(value()),
            "--threads" => {
                found.threads = value().split(',').filter_map(|n| n.parse().ok()).collect();
            }
            "--kernels" => found.kernels = value(),
            "--rounds" => found.rounds = value().parse().unwrap_or(found.rounds).max(1),
            "--device" => found.device = value(),
            "--json" => found.json = Some(value().into()),
            "--scaling" => found.scaling = value().parse().ok(),
            "--contenders" => found.contenders = value().split(',').map(str::to_owned).collect(),
            "--cases" => found.cases = Some(value().into()),
            "--page" => found.page = Some(value().into()),
            "--check" => found.check = true,
            // What cargo adds.
            "--bench" => {}
            other => panic!("unknown option {other}"),
        }
    }
    found
}

/// A worker's process.
struct Peer {
    name: &'static str,
    column: &'static str,
    child: Child,
    answers: Receiver<String>,
}

impl Peer {
    fn start(
        name: &'static str,
        column: &'static str,
        threads: usize,
        options: &Options,
    ) -> Option<Peer> {
        let mut command = worker::command(name, threads, &options.device)?;
        surroundings(&mut command, name, threads);
        Peer::spawn(name, column, command)
    }

    fn spawn(name: &'static str, column: &'static str, mut command: Command) -> Option<Peer> {
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().ok()?;
        let answers = lines(child.stdout.take()?);
        Some(Peer {
            name,
            column,
            child,
            answers,
        })
    }

    fn ask(&mut self, question: &str) -> Result<f64, String> {
        const GONE: &str = "its process ended";
        let input = self.child.stdin.as_mut().ok_or(GONE)?;
        writeln!(input, "{question}").map_err(|_| GONE)?;
        loop {
            let line = match self.answers.recv_timeout(PATIENCE) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => return Err(GONE.to_owned()),
                Err(RecvTimeoutError::Timeout) => {
                    let _ = self.child.kill().and_then(|()| self.child.wait());
                    return Err(format!("no answer in {} s", PATIENCE.as_secs()));
                }
            };
            match line.split_once(' ') {
                Some(("ok", time)) => return time.parse().map_err(|_| line.clone()),
                Some(("no", why)) => return Err(why.chars().take(150).collect()),
                // What compilers and libraries have to say.
                _ => {}
            }
        }
    }
}

/// Lines that a worker writes, read on a thread of their own, as a contender may hang.
fn lines(output: ChildStdout) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        let written = BufReader::new(output).lines().map_while(Result::ok);
        // Fails once the contender has been given up.
        let _ = written.map(|line| sender.send(line)).find(Result::is_err);
    });
    lines
}

impl Drop for Peer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

/// Environment of a worker: numbers of threads, no caches, and where Intel's runtime is.
fn surroundings(command: &mut Command, name: &str, threads: usize) {
    let threads = threads.to_string();
    for variable in [
        "POCL_MAX_PTHREAD_COUNT",
        "POCL_CPU_MAX_CU_COUNT",
        "CL_CONFIG_CPU_TBB_NUM_WORKERS",
    ] {
        command.env(variable, &threads);
    }
    command.env("POCL_KERNEL_CACHE", "0");
    if let (true, Some(library)) = (
        name.starts_with("Intel"),
        std::env::var_os("VISA_JIT_INTEL_OPENCL"),
    ) {
        let dir = std::env::temp_dir().join(format!("visa-jit-peers-{}", std::process::id()));
        let _ = std::fs::create_dir_all(&dir);
        if std::fs::write(dir.join("intel.icd"), library.as_encoded_bytes()).is_ok() {
            command.env("OCL_ICD_VENDORS", dir);
        }
    }
}

/// Launches to time together, given the microseconds that one takes.
fn launches(time: f64) -> u32 {
    (MICROSECONDS / time).clamp(1.0, MAX_LAUNCHES) as u32
}

/// One case on every peer that can run it.
fn measure(case: &Case, number: usize, peers: &mut [Peer], rounds: usize) -> Row {
    let mut row = Row::new(case.name);
    let dir = std::env::temp_dir();
    let results = |peer: &mut Peer| -> Result<Vec<u8>, String> {
        let path = dir.join(format!("visa-jit-peers-{}.bin", std::process::id()));
        peer.ask(&format!("check {}", path.display()))?;
        let bytes = std::fs::read(&path).map_err(|e| e.to_string());
        let _ = std::fs::remove_file(&path);
        bytes
    };
    let mut wanted = None;
    let mut running: Vec<(&mut Peer, u32, Outcome)> = Vec::new();
    // The reference first.
    peers.sort_by_key(|peer| peer.name != REFERENCE);
    for peer in peers.iter_mut() {
        let ready = peer.ask(&format!("load {number}")).and_then(|build| {
            let found = results(peer)?;
            let wanted = wanted.get_or_insert_with(|| found.clone());
            match case.same.difference(wanted, &found) {
                None => Ok(build),
                Some(what) => Err(format!("WRONG: {what}")),
            }
        });
        let warm = ready.and_then(|build| Ok((build, peer.ask("time 1")?)));
        match warm {
            Ok((build, time)) => {
                let outcome = Outcome {
                    build,
                    times: Vec::new(),
                };
                running.push((peer, launches(time), outcome));
            }
            Err(why) => row.absent(peer.column, peer.name, why),
        }
    }
    for round in 0..=rounds {
        for (peer, launches, outcome) in &mut running {
            // The first round warms up.
            match peer.ask(&format!("time {launches}")) {
                Ok(time) if round > 0 => outcome.times.push(time / f64::from(*launches)),
                Ok(_) => {}
                Err(_) => outcome.times.clear(),
            }
        }
    }
    for (peer, _, outcome) in running {
        row.add(peer.column, peer.name, outcome);
    }
    row
}

fn run(threads: usize, options: &Options) -> serde_json::Value {
    let start = |&(name, column)| Peer::start(name, column, threads, options);
    let mut peers: Vec<Peer> = CONTENDERS.iter().filter_map(start).collect();
    println!(
        "\n{threads} thread(s), zebins for {}, medians of {} rounds, µs a launch",
        options.device, options.rounds
    );
    // What cannot run at all is said once.
    peers.retain_mut(|peer| match peer.ask("load 0") {
        Ok(_) => true,
        Err(why) => {
            println!("without {}: {why}", peer.name);
            false
        }
    });
    table::head();
    let cases = CASES.iter().enumerate();
    let rows: Vec<Row> = cases
        .filter(|(_, case)| case.name.contains(&options.kernels))
        .map(|(number, case)| {
            let row = measure(case, number, &mut peers, options.rounds);
            row.print();
            row
        })
        .collect();
    table::summary(&rows);
    serde_json::json!({ "threads": threads, "device": options.device, "kernels": rows })
}

fn main() {
    let options = options();
    if let Some(dir) = &options.cases {
        let done = match &options.worker {
            Some(name) => data::serve(name, dir, options.threads.first().copied().unwrap_or(1)),
            None => data::run(dir, &options),
        };
        if let Err(why) = done {
            eprintln!("{why}");
            std::process::exit(1);
        }
        return;
    }
    if let Some(name) = &options.worker {
        let threads = options.threads.first().copied().unwrap_or(1);
        return worker::serve(name, threads, &options.device);
    }
    if let Some(threads) = options.scaling {
        return scaling::run(threads, &options);
    }
    let runs: Vec<_> = options.threads.iter().map(|&n| run(n, &options)).collect();
    if let Some(path) = &options.json {
        let text = serde_json::Value::from(runs).to_string();
        std::fs::write(path, text).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    }
    let dir = std::env::temp_dir().join(format!("visa-jit-peers-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(dir);
}
