//! `--check barrier`: kernels of which work-items miss a barrier as an argument says, and the same without that.
//!
//! The table says how many work-items have to be found, whatever the width of a thread, and where. Sets of reports are compared with the
//! interpreter's, which defines them.

use std::collections::BTreeSet;

use super::{On, engine, files, files_in_turn, has_turn, kernel, program_of, strategy};
use visa_jit::backend::{AXES, Check, OobPolicy};
use visa_jit::isa::Platform;
use visa_jit::{Engine, EngineOptions, FaultRecord, Launch, Report};
use visa_runtime::{FaultKind, LaunchStatus};
use visa_test_common::full;

/// A launch of one group of 64 work-items of a kernel of `barrier.cl`.
struct Case {
    kernel: &'static str,
    /// The argument that is 0 in a correct launch.
    far: i32,
    /// Work-items that are found, all meetings together.
    wrong: u64,
    /// A part of the lines of the source in which they are.
    line: &'static str,
    /// A part of a report.
    says: &'static str,
}

const fn case(
    kernel: &'static str,
    far: i32,
    wrong: u64,
    line: &'static str,
    says: &'static str,
) -> Case {
    Case {
        kernel,
        far,
        wrong,
        line,
        says,
    }
}

const CASES: &[Case] = &[
    case(
        "divergent",
        5,
        5,
        "barrier(",
        "local id (0, 0, 0) is missing",
    ),
    // Whole threads, too.
    case("divergent", 40, 40, "barrier(", " has ended, group"),
    case("early", 1, 1, "barrier(", "local id (0, 0, 0) is missing"),
    case("early", 32, 32, "barrier(", " has ended, group"),
    case("early", 33, 33, "barrier(", " has ended, group"),
    // No thread arrives.
    case("early", 64, 0, "", ""),
    // Work-item `l` goes round 2 + (l & 3) times and has two barriers each time.
    case("trips", 3, 2 * (16 + 32 + 48), "barrier(", "is missing"),
    case(
        "trips",
        1,
        2 * 32,
        "barrier(",
        "local id (0, 0, 0) is missing",
    ),
    case(
        "leaves",
        5,
        3 * 5,
        "barrier(",
        "local id (0, 0, 0) is missing",
    ),
    case("leaves", 40, 3 * 40, "barrier(", " has ended, group"),
    case(
        "tree",
        1,
        32 + 48 + 56 + 60 + 62 + 63,
        "barrier(CLK_LOCAL_MEM_FENCE | CLK",
        "reached by 1 of",
    ),
    case("different", 5, 3 * 64, "barrier(", "is missing"),
    case(
        "different",
        32,
        3 * 32,
        "barrier(",
        "while thread 0 is at the barrier in line",
    ),
    case(
        "called",
        5,
        5,
        "// in a function",
        "local id (0, 0, 0) is missing",
    ),
    case("called", 40, 40, "// in a function", " has ended, group"),
    case("rows", 1, 8, "barrier(", "local id (0, 0, 0) is missing"),
    case(
        "narrow",
        3,
        4 * 3,
        "barrier(",
        "reached by 13 of 16 work-items of thread 0",
    ),
    case(
        "signals",
        5,
        5,
        "barrier_arrive",
        "local id (0, 0, 0) is missing",
    ),
    // 8 of a thread that signals are missing, and 24 meet threads that only wait.
    case(
        "signals",
        40,
        8 + 24,
        "barrier_arrive",
        "while thread 0 is at the barrier in line",
    ),
    case(
        "waits",
        5,
        5,
        "barrier_wait",
        "local id (0, 0, 0) is missing",
    ),
];

/// Kernels of split barriers are in the files of today's compiler only.
fn has(file: &str, case: &Case) -> bool {
    file.ends_with("-26") || !matches!(case.kernel, "signals" | "waits")
}

fn cases(file: &'static str) -> impl Iterator<Item = &'static Case> {
    CASES.iter().filter(move |case| has(file, case))
}

fn case_of(kernel: &str, far: i32) -> &'static Case {
    let mut all = CASES.iter();
    all.find(|c| (c.kernel, c.far) == (kernel, far)).unwrap()
}

/// Lines of the source with a part of a kernel, or of the function before it that it calls.
fn source_lines(case: &Case) -> BTreeSet<u32> {
    let source: Vec<&str> = include_str!("barrier.cl").lines().collect();
    let named = |l: &&str| l.contains(&format!(" {}(", case.kernel));
    let head = source.iter().position(named).unwrap();
    let body = source[head..].iter().position(|l| *l == "}").unwrap();
    let first = if case.kernel == "called" { 0 } else { head };
    let lines = (first..head + body).filter(|&n| source[n].contains(case.line));
    lines.map(|n| n as u32 + 1).collect()
}

/// A launch of a number of work-items.
fn launch_of(case: &Case, items: u32) -> Launch {
    match case.kernel {
        "rows" => Launch::new([8, items / 8, 1]).local([8, 8, 1]),
        _ => Launch::new([items, 1, 1]).local([64, 1, 1]),
    }
}

/// What a launch of one group reports and leaves in its buffer.
fn run(on: &On, case: &Case, far: i32) -> Ran {
    run_as(on, case, far, launch_of(case, 64))
}

fn run_as(on: &On, case: &Case, far: i32, launch: Launch) -> Ran {
    let o = on.engine.memory().alloc(4 * 256).unwrap();
    let launch = launch.arg(0, &o).arg(1, far);
    let report = on.program.kernel(case.kernel).unwrap().launch(&launch);
    let (report, bytes) = (report.unwrap(), o.to_vec());
    Ran { report, bytes }
}

/// The kernels of a file on an engine.
fn on(engine: Engine, file: &str) -> On {
    On::new(engine, &format!("barrier-{file}"))
}

struct Ran {
    report: Report,
    bytes: Vec<u8>,
}

/// Reports, without the numbers that each engine has of its own.
fn set(report: &Report) -> BTreeSet<String> {
    let of = |f: &FaultRecord| format!("{f} {:?} {:?} {:?}", f.kind, f.count, f.global_id);
    report.faults.iter().map(of).collect()
}

/// What is wrong with the reports of a case.
fn judged(case: &Case, report: &Report) -> Option<String> {
    let lines = source_lines(case);
    let there = |f: &FaultRecord| {
        let line = f.source.as_ref().map(|s| s.line);
        line.is_some_and(|line| lines.contains(&line)) && f.kind_name() == "barrier"
    };
    let said = report
        .faults
        .iter()
        .any(|f| f.to_string().contains(case.says));
    let right = report.fault_count == case.wrong
        && super::counted(report) == case.wrong
        && report.faults.iter().all(there)
        && (said || case.wrong == 0);
    (!right).then(|| format!("{:#?}, {} in all", set(report), report.fault_count))
}

#[test]
fn planted_errors_are_found_and_nothing_else() {
    let mut failures = Vec::new();
    for file in files_in_turn().iter().copied() {
        let programs = [false, true].map(|interpret| {
            let of = |check| on(engine(check, interpret), file);
            [Check::Barrier, Check::None].map(of)
        });
        for (_, case) in (0..).zip(cases(file)).filter(|(n, _)| has_turn(*n, file)) {
            let name = format!("{file} {} {}", case.kernel, case.far);
            let [compiled, interpreted] = programs.each_ref().map(|[checked, plain]| {
                let of = |far| {
                    let found = run(checked, case, far);
                    let without = run(plain, case, far);
                    assert_eq!(found.bytes, without.bytes, "{name}: results");
                    assert_eq!(without.report.fault_count, 0, "{name}");
                    found
                };
                let right = of(0).report;
                assert_eq!(right.fault_count, 0, "{name}: {:?}", set(&right));
                of(case.far)
            });
            let sets = [&compiled, &interpreted].map(|ran| set(&ran.report));
            if sets[0] != sets[1] || compiled.bytes != interpreted.bytes {
                failures.push(format!("{name}: {sets:#?}"));
            }
            let wrong = judged(case, &compiled.report);
            failures.extend(wrong.map(|wrong| format!("{name}: {wrong}")));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn strategies_find_the_same() {
    let strategies = ["dispatch=thread", "masks=select", "codegen=none"];
    for file in files().iter().copied() {
        let usual = on(engine(Check::Barrier, false), file);
        for setting in strategies {
            let (axis, value) = setting.split_once('=').unwrap();
            let mut strategy = strategy();
            let axis = AXES.iter().find(|a| a.name == axis);
            axis.unwrap().set(&mut strategy, value).unwrap();
            let options = EngineOptions {
                strategy,
                memory_bytes: 1 << 30,
                ..EngineOptions::default()
            };
            let other = Engine::with_options(options.check(Check::Barrier)).unwrap();
            let other = on(other, file);
            for case in cases(file).step_by(if full() { 1 } else { 4 }) {
                let [wanted, found] = [&usual, &other].map(|p| set(&run(p, case, case.far).report));
                assert_eq!(found, wanted, "{file} {} {setting}", case.kernel);
            }
        }
    }
}

/// Work-items that a smaller last group does not have are not missing; those that it has may be.
#[test]
fn partial_groups() {
    for file in files().iter().copied() {
        for (far, wrong) in [(0, 0), (5, 3 * 5)] {
            let sets = [false, true].map(|interpret| {
                let on = on(engine(Check::Barrier, interpret), file);
                let case = case_of("divergent", 5);
                let ran = run_as(&on, case, far, launch_of(case, 64 + 64 + 41));
                assert_eq!(ran.report.fault_count, wrong, "{file} {interpret}");
                set(&ran.report)
            });
            assert_eq!(sets[0], sets[1], "{file}");
        }
    }
}

#[test]
fn threads_of_the_host_count_the_same() {
    for file in files().iter().copied() {
        let on = on(engine(Check::Barrier, false), file);
        for case in cases(file) {
            let [one, two] = [1, 2].map(|threads| {
                let launch = launch_of(case, 4 * 64).threads(threads);
                run_as(&on, case, case.far, launch).report
            });
            assert_eq!(one.fault_count, 4 * case.wrong, "{file} {}", case.kernel);
            let counts = |report: &Report| -> BTreeSet<_> {
                let of = |f: &FaultRecord| (f.line, f.kind, f.count);
                report.faults.iter().map(of).collect()
            };
            assert_eq!(counts(&one), counts(&two), "{file} {}", case.kernel);
        }
    }
}

/// Under the policy that stops, the first error ends the launch: at the barrier, or where its threads meet.
#[test]
fn a_trap_stops_the_launch() {
    for (case, kind) in [
        (case_of("divergent", 5), FaultKind::Barrier),
        (case_of("early", 32), FaultKind::MissedBarrier),
        (case_of("different", 32), FaultKind::OtherBarrier),
    ] {
        for interpret in [false, true] {
            let on = on(engine(Check::Barrier, interpret), "pvc");
            let launch = launch_of(case, 64).oob(OobPolicy::Trap);
            let report = run_as(&on, case, case.far, launch).report;
            assert_eq!(report.status, LaunchStatus::Faulted, "{}", case.kernel);
            assert_eq!(report.faults[0].kind, kind, "{}", case.kernel);
            assert!(report.fault_count <= 32, "{}", case.kernel);
        }
    }
}

/// Nothing of the check is left in code without it, and memory is not asked for what only the other check needs.
#[test]
fn code_without_checks_is_what_it_was() {
    let [plain, memory, checked] =
        [Check::None, Check::Memory, Check::Barrier].map(|check| engine(check, false));
    assert!(!checked.memory().is_checked());
    for file in files().iter().copied() {
        let ssa = |engine: &Engine| {
            let program = program_of(engine, &format!("barrier-{file}"));
            program
                .kernel("trips")
                .unwrap()
                .ssa(true)
                .unwrap()
                .to_string()
        };
        assert!(!ssa(&plain).contains("check."));
        assert!(!ssa(&memory).contains("check.barrier"));
        let with = ssa(&checked);
        assert!(with.contains("check.barrier"), "{with}");
        let code = |engine: &Engine| {
            let kernel = kernel(engine, file, "store_int");
            let code = kernel.code(OobPolicy::default()).unwrap();
            code.object().code.clone()
        };
        assert_eq!(code(&plain), code(&checked), "no barriers: {file}");
    }
}

/// Reports of a kernel of the file tests, with its text changed, on compiled code and the interpreter: they are the same.
fn of_text(file: &str, platform: Platform, items: u32, changes: &[(&str, &str)]) -> Report {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/filetests/barriers");
    let mut text = std::fs::read_to_string(format!("{path}/{file}.visaasm")).unwrap();
    for (old, new) in changes {
        assert!(text.contains(old), "{file}: {old}");
        text = text.replacen(old, new, 1);
    }
    let [compiled, interpreted] = [false, true].map(|interpret| {
        let engine = engine(Check::Barrier, interpret);
        let program = engine.program_from_text(file, &text, platform).unwrap();
        let buffer = engine.memory().alloc(640).unwrap();
        let launch = Launch::new([items, 1, 1]).local([items, 1, 1]);
        let launch = launch.surface(0, buffer);
        program.kernel(file).unwrap().launch(&launch).unwrap()
    });
    assert_eq!(set(&compiled), set(&interpreted), "{file}");
    compiled
}

/// Four threads, of sixteen work-items or of one.
#[test]
fn named_barriers_are_not_in_the_way() {
    for width in [16, 1] {
        let simd = format!("SimdSize={width}");
        let simd = ("SimdSize=16", simd.as_str());
        let of =
            |changes: &[(&str, &str)]| of_text("named_and_all", Platform::Pvc, 4 * width, changes);
        assert_eq!(of(&[simd]).fault_count, 0);
        // Threads 0 and 3 end where the others go to the second barrier of all.
        let report = of(&[
            simd,
            ("(P1) goto (M1, 1) together1", "(P1) goto (M1, 1) end"),
            ("    ret (M1, 1)", "end:\n    ret (M1, 1)"),
        ]);
        assert_eq!(report.fault_count, u64::from(2 * width));
        let first = &report.faults[0];
        let place = (first.kind, first.thread, first.opcode);
        assert_eq!(place, (FaultKind::MissedBarrier, 0, "sbarrier"));
        let about = "reached by thread 1 after thread 0 has ended";
        assert_eq!(first.about.as_deref(), Some(about));
    }
}

/// A thread comes to a meeting once, whatever it signals.
#[test]
fn signals_without_waits() {
    let (signal, wait) = ("    sbarrier.signal\n", "    sbarrier.wait\n");
    let twice = format!("{signal}{signal}");
    let both = format!("{signal}{wait}");
    for (changes, wrong) in [
        (&[(signal, twice.as_str())][..], 0),
        (&[(wait, "")], 0),
        // A wait without a signal is as good as both.
        (&[(signal, "")], 0),
        (&[(signal, both.as_str())], 0),
        // Thread 1 ends after its first signal, and misses the other four barriers.
        (
            &[
                (
                    wait,
                    "    cmp.ne (M1_NM, 1) P1 N(0,0)<0;1,0> 0x0:ud\n    (P1) goto (M1, 1) end\n    sbarrier.wait\n",
                ),
                (".decl T6", ".decl P1 v_type=P num_elts=1\n.decl T6"),
                ("    ret (M1, 1)", "end:\n    ret (M1, 1)"),
            ],
            4 * 16,
        ),
    ] {
        let report = of_text("split", Platform::Skl, 32, changes);
        assert_eq!(report.fault_count, wrong, "{changes:?}");
    }
}

/// Four threads of sixteen work-items signal at barrier 1, for as many threads as `COUNT` says.
const SIGNALS: &str = ".version 4.1
.kernel \"signals\"
.kernel_attr SimdSize=16
.decl N v_type=G type=ud num_elts=1 align=dword
.decl COUNT v_type=G type=ub num_elts=1 align=dword
.decl P1 v_type=P num_elts=1
.function \"main\"
    and (M1_NM, 1) N(0,0)<1> %r0(0,2)<0;1,0> 0xff:ud
    mov (M1_NM, 1) COUNT(0,0)<1> 0x4:ub
    cmp.eq (M1_NM, 1) P1 N(0,0)<0;1,0> 0x3:ud
    (P1) mov (M1_NM, 1) COUNT(0,0)<1> LAST:ub
    SIGNAL
    ret (M1, 1)
";

#[test]
fn numbers_of_threads_at_named_barriers() {
    let both = "nbarrier.signal 0x1:ub COUNT(0,0)<0;1,0>\n    nbarrier.wait 0x1:ub";
    // Producers do not wait.
    let producers = "nbarrier.signal 0x1:ub 0x1:uw COUNT(0,0)<0;1,0> 0x0:ub";
    let (all, few) = (
        "4 producer(s) and 0 consumer(s)",
        "3 producer(s) and 0 consumer(s)",
    );
    for (signal, last, says) in [
        (both, 4, vec![]),
        (producers, 4, vec![]),
        (
            both,
            3,
            vec!["signalled for 3 thread(s), but for 4 thread(s) in line 12".to_owned()],
        ),
        (
            producers,
            3,
            vec![format!("signalled for {few}, but for {all} in line 12")],
        ),
        (
            producers,
            5,
            vec![
                format!("signalled for 5 producer(s) and 0 consumer(s), but for {all} in line 12"),
                format!(
                    "signalled for 5 producer(s) and 0 consumer(s), but {all} came before the group ended"
                ),
            ],
        ),
    ] {
        let text = SIGNALS.replace("LAST", &format!("{last:#x}"));
        let text = text.replace("SIGNAL\n", &format!("{signal}\n"));
        let reports = [false, true].map(|interpret| {
            let engine = engine(Check::Barrier, interpret);
            let program = engine
                .program_from_text("signals", &text, Platform::Pvc)
                .unwrap();
            let kernel = program.kernel("signals").unwrap();
            let launch = Launch::new([128, 1, 1]).local([64, 1, 1]);
            let report = kernel.launch(&launch).unwrap();
            let trapped = kernel.launch(&launch.oob(OobPolicy::Trap)).unwrap();
            let stops = report.fault_count != 0;
            assert_eq!(trapped.status == LaunchStatus::Faulted, stops, "{signal}");
            report
        });
        assert_eq!(set(&reports[0]), set(&reports[1]), "{signal}");
        let [report, _] = reports;
        assert_eq!(report.fault_count, 2 * says.len() as u64, "{signal} {last}");
        let first = report.faults.iter().filter(|f| f.group == [0; 3]);
        let about: BTreeSet<_> = first.map(|f| f.about.clone().unwrap()).collect();
        assert_eq!(about, says.into_iter().collect());
        assert!(
            report
                .faults
                .iter()
                .all(|f| (f.thread, f.lane, f.line) == (3, 0, 12))
        );
    }
}
