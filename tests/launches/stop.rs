//! Launches that would take for ever end soon after they are told to, on every engine.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use visa_jit::backend::{BackendKind, Strategy};
use visa_jit::interp::InterpOptions;
use visa_jit::isa::Platform;
use visa_jit::{Engine, EngineOptions, Error, Launch, Program};
use visa_runtime::{Interrupter, LaunchStatus};

/// What a launch may take from its deadline to its end. Ours is 50 ms; the rest is for tests that run beside this one.
const LATE: Duration = Duration::from_millis(250);

pub fn engines() -> Vec<(&'static str, Engine)> {
    let make = |options| Engine::with_options(options).unwrap();
    let mut engines = vec![
        ("cranelift", make(EngineOptions::default())),
        (
            "interp",
            make(EngineOptions {
                interpret: Some(InterpOptions::default()),
                ..EngineOptions::default()
            }),
        ),
    ];
    if cfg!(feature = "llvm-codegen") {
        let strategy = Strategy {
            backend: BackendKind::Llvm,
            ..Strategy::default()
        };
        let options = EngineOptions {
            strategy,
            ..EngineOptions::default()
        };
        engines.push(("llvm", make(options)));
    }
    engines
}

fn kernel(body: &str) -> String {
    format!(
        ".version 4.1
.kernel \"k\"
.kernel_attr SimdSize=16
.decl V v_type=G type=ud num_elts=16 align=GRF
.decl W v_type=G type=ud num_elts=16 align=GRF
.function \"main\"
    mov (M1_NM, 16) V(0,0)<1> 0x0:ud
{body}"
    )
}

/// Each of 60 subroutines calls the next one twice: 2^60 calls and no branch back.
fn tree_of_calls() -> String {
    let mut body = "    call (M1, 1) S0\n    ret (M1, 1)\n".to_owned();
    for i in 0..60 {
        let next = i + 1;
        write!(
            body,
            ".function \"S{i}\"\n    call (M1, 1) S{next}\n    call (M1, 1) S{next}\n    ret (M1, 1)\n"
        )
        .unwrap();
    }
    body + ".function \"S60\"\n    add (M1, 16) V(0,0)<1> V(0,0)<1;1,0> 0x1:ud\n    ret (M1, 1)\n"
}

/// A subroutine that calls itself twice, to the depth that calls may have: 2^256 calls.
const RECURSION: &str = "    call (M1, 1) S
    ret (M1, 1)
.function \"S\"
    add (M1, 16) V(0,0)<1> V(0,0)<1;1,0> 0x1:ud
    call (M1, 1) S
    call (M1, 1) S
    ret (M1, 1)
";

fn check_text(what: &str, body: &str) {
    let text = kernel(body);
    check(what, |engine| {
        let program = engine.program_from_text("k", &text, Platform::Skl);
        (program.unwrap(), Launch::new([16, 1, 1]))
    });
}

fn check(what: &str, load: impl Fn(&Engine) -> (Program, Launch)) {
    for (name, engine) in engines() {
        let (program, launch) = load(&engine);
        let kernel = &program.kernels()[0];
        // Compiled before the clock runs.
        kernel.prepare(&launch).unwrap();

        let limit = Duration::from_millis(20);
        let start = Instant::now();
        let report = kernel.launch(&launch.clone().deadline(limit));
        let report = report.unwrap();
        let late = start.elapsed().saturating_sub(limit);
        assert_eq!(
            report.status,
            LaunchStatus::DeadlineExceeded,
            "{what}, {name}"
        );
        assert!(late < LATE, "{what}, {name}: {late:?} late");

        let interrupter = Interrupter::new();
        let launch = launch.interrupter(interrupter.clone());
        let (report, late) = std::thread::scope(|s| {
            let launched = s.spawn(|| kernel.launch(&launch).unwrap());
            std::thread::sleep(limit);
            let told = Instant::now();
            interrupter.interrupt();
            (launched.join().unwrap(), told.elapsed())
        });
        assert_eq!(report.status, LaunchStatus::Interrupted, "{what}, {name}");
        assert!(late < LATE, "{what}, {name}: {late:?} late");
    }
}

#[test]
fn a_tree_of_calls() {
    check_text("calls", &tree_of_calls());
}

#[test]
fn recursion() {
    check_text("recursion", RECURSION);
}

/// `fib.zebin` is what ocloc makes for pvc of
/// `int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }`
/// `kernel void k(global int *out, int n) { out[get_global_id(0)] = fib(n); }`
#[test]
fn recursion_through_the_stack() {
    let zebin = include_bytes!("fib.zebin");
    let load = |engine: &Engine, n: i32| {
        let program = engine.program_from_zebin(zebin, None).unwrap();
        let out = engine.memory().alloc_from(&[0_i32; 16]).unwrap();
        let launch = Launch::new([16, 1, 1]).arg(0, &out).arg(1, n);
        (program, launch, out)
    };
    for (name, engine) in engines() {
        let (program, launch, out) = load(&engine, 10);
        program.kernels()[0].launch(&launch).unwrap();
        assert_eq!(out.to_vec_of::<i32>(), [55; 16], "{name}");
    }
    check("fib", |engine| {
        let (program, launch, _) = load(engine, 50);
        (program, launch)
    });
}

/// A deadline and an interruption hold while the code is made, too, and what was made is there for the next launch.
#[test]
fn compilation() {
    let line = "    pow (M1, 16) V(0,0)<1> V(0,0)<1;1,0> V(0,0)<1;1,0>\n";
    let text = kernel(&(line.repeat(500) + "    ret (M1, 1)\n")).replace("type=ud", "type=f");
    for (name, engine) in engines() {
        if name == "interp" {
            continue;
        }
        let program = engine.program_from_text("k", &text, Platform::Skl).unwrap();
        let kernel = &program.kernels()[0];
        let launch = Launch::new([16, 1, 1]);

        let start = Instant::now();
        let limit = Duration::from_millis(5);
        let report = kernel.launch(&launch.clone().deadline(limit)).unwrap();
        assert_eq!(report.status, LaunchStatus::DeadlineExceeded, "{name}");
        assert_eq!((report.groups, report.run), (0, Duration::ZERO), "{name}");
        assert!(start.elapsed() < limit + LATE, "{name}");

        let interrupter = Interrupter::new();
        interrupter.interrupt();
        let stopped = kernel.prepare(&launch.clone().interrupter(interrupter));
        assert!(matches!(stopped, Err(Error::Stopped { .. })), "{name}");

        let report = kernel.launch(&launch).unwrap();
        assert_eq!(report.status, LaunchStatus::Completed, "{name}");
        // Those who asked first are still counted.
        let asked = || engine.cache_stats().hits + engine.cache_stats().misses;
        while asked() < 3 {
            assert!(start.elapsed() < Duration::from_secs(60), "{name}");
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(engine.cache_stats().misses, 1, "{name}: compiled once");
    }
}
