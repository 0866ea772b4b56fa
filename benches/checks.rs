//! What checks cost: kernels with and without `--check`, on one thread.
//!
//! `cargo bench --bench checks [DEVICE [CHECKS [NAME]]]`: the kernels of the bench `peers`, or those whose name contains NAME, each run in turn
//! without and with checks, `memory` if none are named; medians of times and of ratios. Results are compared byte for byte, and no kernel may be reported. On devices whose kernels reach buffers through
//! surfaces there is little to check; the default is pvc, where all addresses have 64 bits. `VISA_JIT_TEST_BACKEND=llvm` measures LLVM's code, in
//! builds with the feature `llvm`.

#[path = "peers/cases.rs"]
#[allow(dead_code, reason = "the C side is for the bench `peers`")]
mod cases;
#[allow(dead_code, reason = "as above")]
mod support;

use cases::{Argument, CASES, Case};
use support::{median, paired, root};
use visa_jit::backend::{BackendKind, Check, Checks, Strategy};
use visa_jit::{Arg, Engine, EngineOptions, Launch, Prepared};
use visa_runtime::Buffer;

/// Largest geometric mean of the ratios that is wanted.
fn target(checks: Checks) -> f64 {
    match checks.name() {
        "none" | "memory" => 1.3,
        "init" => 3.0,
        "race" => 8.0,
        _ => 10.0,
    }
}

/// Runs that one time is of: short ones are repeated.
const REPEAT: usize = 3;

/// The code generator.
fn strategy() -> Strategy {
    match std::env::var("VISA_JIT_TEST_BACKEND").as_deref() {
        Ok("llvm") => BackendKind::Llvm.into(),
        _ => Strategy::default(),
    }
}

fn prepare(check: Checks, device: &str, case: &Case) -> Option<(Prepared, Vec<Buffer>)> {
    let path = root(&format!("tests/kernels/bin/{device}/{}.zebin", case.file));
    let file = std::fs::read(path).ok()?;
    let options = EngineOptions {
        strategy: strategy(),
        ..EngineOptions::default()
    };
    let engine = Engine::with_options(options.check(check)).expect("an engine");
    let program = engine
        .program_from_zebin(&file, None)
        .expect("a readable zebin");
    let size = |s: [usize; 3]| s.map(|n| n as u32);
    let mut launch = Launch::new(size(case.global)).local(size(case.local));
    let mut buffers = Vec::new();
    for (i, argument) in (case.arguments)().iter().enumerate() {
        let arg = match argument {
            Argument::Buffer(bytes) => {
                let buffer = engine.memory().alloc_from(bytes.as_slice()).expect("room");
                buffers.push(buffer.clone());
                Arg::Buffer(buffer)
            }
            Argument::Value(bytes) => Arg::Bytes(bytes.clone()),
            Argument::Local(bytes) => Arg::Local(*bytes as u32),
        };
        launch = launch.arg(i as u32, arg);
    }
    let kernel = program.kernel(case.kernel).expect("the kernel");
    Some((kernel.prepare(&launch).expect("code"), buffers))
}

fn main() {
    let mut words = std::env::args().skip(1).filter(|a| !a.starts_with("--"));
    let device = words.next().unwrap_or_else(|| "pvc".to_owned());
    let checks = words.next().unwrap_or_else(|| "memory".to_owned());
    let checks = Checks::parse(&checks).expect("checks");
    println!(
        "device {device}, --check {}, one thread, medians; microseconds",
        checks.name()
    );
    let name = words.next().unwrap_or_default();
    let mut ratios = Vec::new();
    for case in CASES.iter().filter(|case| case.name.contains(&name)) {
        let sides = [Check::None.into(), checks].map(|check| prepare(check, &device, case));
        let [Some((plain, wanted)), Some((checked, found))] = sides else {
            println!("{:36} no such kernel", case.name);
            continue;
        };
        let report = checked.run().expect("a run");
        plain.run().expect("a run");
        assert_eq!(report.fault_count, 0, "{}: {:?}", case.name, report.faults);
        for (wanted, found) in wanted.iter().zip(&found) {
            assert!(wanted.to_vec() == found.to_vec(), "{}", case.name);
        }
        let run = |p: &Prepared| (0..REPEAT).for_each(|_| drop(p.run().expect("a run")));
        let (with, without, ratio) = paired(&mut || run(&checked), &mut || run(&plain));
        let each = REPEAT as f64;
        println!(
            "{:36} {:10.1} {:10.1} {ratio:6.2}",
            case.name,
            without / each,
            with / each
        );
        ratios.push(ratio);
    }
    let logs: f64 = ratios.iter().map(|r| r.ln()).sum();
    let mean = (logs / ratios.len().max(1) as f64).exp();
    println!(
        "geometric mean {mean:.2} (wanted: {}), median {:.2}",
        target(checks),
        median(ratios)
    );
}
