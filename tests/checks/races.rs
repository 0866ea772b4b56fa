//! `--check race`: kernels with one planted race and the same kernels without it, on compiled code and on the
//! interpreter, which defines what a race is.
//!
//! A launch has two groups of 128 work-items, which are several threads at each width.

use std::collections::BTreeSet;

use super::{
    counted, engine, engine_without, files, files_in_turn, has_turn, program_of, strategy,
};
use visa_jit::backend::{Check, Checks, OobPolicy};
use visa_jit::{Engine, EngineOptions, FaultRecord, Launch, Program, Report};
use visa_runtime::{FaultKind, LaunchStatus};
use visa_test_common::full;

/// Where the threads of a race are.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Threads {
    /// In one group.
    Inside,
    /// In two groups.
    Between,
    /// Some in one group, some in two.
    Both,
}
use Threads::{Between, Both, Inside};

/// A kernel of `race.cl`, with a race if its argument `far` is 1.
struct Case {
    kernel: &'static str,
    threads: Threads,
    /// In local memory.
    local: bool,
    /// Names of the two accesses, the later one first.
    sides: [&'static str; 2],
}

const fn local(kernel: &'static str, sides: [&'static str; 2]) -> Case {
    Case {
        kernel,
        threads: Inside,
        local: true,
        sides,
    }
}

const fn global(kernel: &'static str, threads: Threads, sides: [&'static str; 2]) -> Case {
    Case {
        kernel,
        threads,
        local: false,
        sides,
    }
}

const CASES: &[Case] = &[
    local("local_read", ["write", "read"]),
    local("local_write", ["write", "read"]),
    local("local_bytes", ["write", "read"]),
    local("local_shorts", ["write", "read"]),
    local("local_longs", ["write", "read"]),
    local("local_vectors", ["write", "read"]),
    local("broadcast", ["read", "write"]),
    local("tree", ["write", "read"]),
    local("scan", ["read", "write"]),
    local("transpose_tile", ["write", "read"]),
    local("rows", ["write", "read"]),
    local("rounds", ["write", "read"]),
    local("called", ["write", "read"]),
    local("masked", ["write", "read"]),
    local("local_reset", ["atomic", "write"]),
    local("local_count", ["atomic", "read"]),
    local("narrow", ["write", "read"]),
    local("wide", ["write", "read"]),
    global("global_write", Inside, ["write", "write"]),
    global("global_bytes", Inside, ["write", "write"]),
    global("in_place", Inside, ["write", "read"]),
    global("blocks", Inside, ["write", "read"]),
    global("vectors", Inside, ["write", "write"]),
    global("overlap", Both, ["write", "write"]),
    global("exchanged", Both, ["write", "atomic"]),
    global("groups_write", Between, ["write", "write"]),
    global("groups_read", Between, ["read", "write"]),
    global("halo", Between, ["write", "write"]),
    global("stencil", Between, ["write", "read"]),
    // What one group reads and writes, another one writes.
    global("counts", Between, ["write", "write"]),
    global("total", Between, ["read", "atomic"]),
    global("column", Between, ["write", "write"]),
    global("copies", Inside, ["write", "write"]),
    // In its group the last atomic before the plain write is one of its own thread.
    global("plain_add", Between, ["write", "atomic"]),
];

/// Kernels in which nothing is reported, whatever `far` is.
const RIGHT: [&str; 2] = ["same_value", "neighbours"];

/// An engine with kernels of a file.
struct On {
    engine: Engine,
    program: Program,
}

impl On {
    fn new(checks: impl Into<Checks>, file: &str, interpret: bool) -> On {
        On::without(checks, file, interpret, "")
    }

    /// The same, with rules for what is left out.
    fn without(checks: impl Into<Checks>, file: &str, interpret: bool, rules: &str) -> On {
        let engine = engine_without(checks, interpret, rules);
        let program = program_of(&engine, &format!("race-{file}"));
        On { engine, program }
    }

    /// What a launch reports and leaves in its buffer.
    fn run(&self, kernel: &str, far: i32, oob: OobPolicy) -> (Report, Vec<u8>) {
        let shape = Launch::new([256, 1, 1]).local([128, 1, 1]);
        self.run_shape(shape.oob(oob), kernel, far)
    }

    fn run_shape(&self, launch: Launch, kernel: &str, far: i32) -> (Report, Vec<u8>) {
        let o = self.engine.memory().alloc(4 * 1024).unwrap();
        let launch = launch.arg(0, &o).arg(1, far);
        let report = self.program.kernel(kernel).unwrap().launch(&launch);
        (report.unwrap(), o.to_vec())
    }
}

fn texts(report: &Report) -> Vec<String> {
    report.faults.iter().map(FaultRecord::to_string).collect()
}

/// Lines of the source of a kernel that have the mark of a side.
fn marked(kernel: &str) -> Vec<u32> {
    let source: Vec<&str> = include_str!("race.cl").lines().collect();
    let head = format!("kernel void {kernel}(");
    let first = source.iter().position(|l| l.starts_with(&head)).unwrap();
    let lines = (first..source.len()).take_while(|&n| source[n] != "}");
    let marked = lines.filter(|&n| source[n].contains("// ("));
    marked.map(|n| n as u32 + 1).collect()
}

/// What the other access of a record does.
fn other_side(about: &str) -> &str {
    let after = about.split_once("` ").map_or("", |(_, after)| after);
    after.split(' ').next().unwrap_or_default()
}

/// What is wrong with a record of a race.
fn judged(case: &Case, fault: &FaultRecord) -> Option<&'static str> {
    let text = fault.to_string();
    let about = fault.about.clone().unwrap_or_default();
    let group = fault.group;
    let inside = format!("by group ({}, {}, {})", group[0], group[1], group[2]);
    let lines = marked(case.kernel);
    let own = fault.source.as_ref().map(|s| s.line);
    let named = |line: &u32| own == Some(*line) || about.contains(&format!("race.cl:{line})"));
    let is = |side: &str| fault.access == side || about.contains(&format!("` {side} in"));
    let place = match case.local {
        true => text.contains(": local memory at 0x"),
        false => about.contains(" of `o` (4096 bytes, argument 0)"),
    };
    // The plain writes of both groups race with each other, too.
    let both_write = matches!(case.kernel, "plain_add" | "exchanged")
        && ["write"; 2] == [fault.access, other_side(&about)];
    let one_group = about.contains(&inside);
    let threads = match case.threads {
        Inside => one_group,
        Between => !one_group,
        Both => true,
    };
    let rules = [
        (fault.kind == FaultKind::Race, "kind"),
        (threads, "group"),
        (lines.iter().any(named), "line"),
        (case.sides.into_iter().all(is) || both_write, "sides"),
        (place, "place"),
    ];
    rules
        .iter()
        .find(|(holds, _)| !holds)
        .map(|(_, what)| *what)
}

#[test]
fn planted_races_are_found_and_nothing_else() {
    let mut failures = Vec::new();
    for (file, interpret) in files_in_turn()
        .iter()
        .copied()
        .flat_map(|f| [(f, true), (f, false)])
    {
        let [checked, plain] =
            [Check::Race, Check::None].map(|check| On::new(check, file, interpret));
        for (_, case) in (0..).zip(CASES).filter(|(n, _)| has_turn(*n, file)) {
            let oob = OobPolicy::default();
            for far in [0, 1] {
                let (report, bytes) = checked.run(case.kernel, far, oob);
                let (without, same) = plain.run(case.kernel, far, oob);
                assert_eq!(bytes, same, "{file} {}: results", case.kernel);
                assert_eq!(without.fault_count, 0);
                assert_eq!(counted(&report), report.fault_count);
                let wrong = match far {
                    0 => (report.fault_count != 0).then_some("right kernel"),
                    _ if report.fault_count == 0 => Some("missed"),
                    _ => report.faults.iter().find_map(|f| judged(case, f)),
                };
                let name = case.kernel;
                failures
                    .extend(wrong.map(|w| format!("{file} {name}: {w}: {:#?}", texts(&report))));
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Threads of several rows of local ids read the same words for each row. Where that races, it is reported for each lane of each row, as the
/// interpreter does.
#[test]
fn rows_that_read_the_same_words() {
    for file in files() {
        for oob in [OobPolicy::Report, OobPolicy::Trap] {
            let shape = || Launch::new([32, 8, 1]).local([16, 8, 1]).oob(oob);
            let [wanted, found] = [true, false].map(|interpret| {
                let on = On::new(Check::Race, file, interpret);
                let right = on.run_shape(shape(), "rows", 0).0;
                assert_eq!(right.fault_count, 0, "{file}: {:?}", texts(&right));
                on.run_shape(shape(), "rows", 1).0
            });
            assert!(wanted.fault_count > 0);
            assert_eq!(texts(&wanted), texts(&found), "{file} {oob:?}");
            assert_eq!(wanted.fault_count, found.fault_count, "{file} {oob:?}");
        }
    }
}

/// Both lines of a race are reported. Rules leave out all findings of one of them, those of kernels, or all of a kind.
#[test]
fn known_races_are_left_out() {
    for interpret in [false, true] {
        let run = |rules: &str| {
            let on = On::without(Check::Race, "pvc", interpret, rules);
            on.run("local_read", 1, OobPolicy::default()).0
        };
        let all = run("");
        let mut lines: Vec<u32> = all.faults.iter().map(|f| f.line).collect();
        lines.sort_unstable();
        lines.dedup();
        let [first, second] = lines[..] else {
            panic!("{:?}", texts(&all));
        };
        let mut left = 0;
        for (rule, other) in [
            (format!("race:local_read:{first}"), second),
            (format!("init\nall:local_read:{second}"), first),
        ] {
            let report = run(&rule);
            assert!(report.faults.iter().all(|f| f.line == other));
            assert_eq!(counted(&report), report.fault_count);
            assert!(report.fault_count > 0);
            left += report.fault_count;
        }
        assert_eq!(left, all.fault_count);
        for rule in ["race", "all:race.cl", "race:local_read"] {
            let report = run(rule);
            assert_eq!((report.fault_count, report.faults.len()), (0, 0), "{rule}");
        }
        for rule in ["init", "race:local_write", "race:race.cl:1"] {
            assert_eq!(texts(&run(rule)).len(), all.faults.len(), "{rule}");
        }
    }
}

/// Rules leave out findings of a buffer by its argument, as the report names it. Local memory has none.
#[test]
fn known_races_are_left_out_by_argument() {
    for interpret in [false, true] {
        let run = |kernel: &str, rules: &str| {
            let on = On::without(Check::Race, "pvc", interpret, rules);
            on.run(kernel, 1, OobPolicy::default()).0
        };
        let all = run("groups_write", "").fault_count;
        let local = run("local_read", "").fault_count;
        for (rules, left) in [
            ("race@o", (0, local)),
            ("all@0", (0, local)),
            ("race:groups_write@o", (0, local)),
            ("race:race.cl@0\nbuffer@1", (0, local)),
            ("race@far", (all, local)),
            ("race:local_read@o", (all, local)),
            ("buffer@o", (all, local)),
            ("race@1\nrace:local_read", (all, 0)),
        ] {
            let reports = ["groups_write", "local_read"].map(|kernel| run(kernel, rules));
            let counts = reports.each_ref().map(|report| report.fault_count);
            assert_eq!(<(u64, u64)>::from(counts), left, "{rules}");
            for report in reports {
                assert_eq!(counted(&report), report.fault_count, "{rules}");
            }
        }
        let named = run("groups_write", "").faults[0].argument.clone().unwrap();
        assert_eq!((named.index, named.name.as_str()), (0, "o"));
    }
}

/// Lanes of one instruction that write different values to a byte are an error of their own.
#[test]
fn lanes_that_differ() {
    for (file, interpret) in files()
        .iter()
        .copied()
        .flat_map(|f| [(f, true), (f, false)])
    {
        let on = On::new(Check::Race, file, interpret);
        let (report, _) = on.run("lanes_differ", 1, OobPolicy::default());
        // Seven of each eight find another value before theirs.
        assert_eq!(
            report.fault_count,
            256 / 8 * 7,
            "{file}: {:?}",
            texts(&report)
        );
        for f in &report.faults {
            assert_eq!((f.kind, f.kind_name()), (FaultKind::LaneRace, "race"));
            assert!(f.to_string().contains("another value than that of lane "));
        }
        let (right, _) = on.run("lanes_differ", 0, OobPolicy::default());
        assert_eq!(right.fault_count, 0, "{file}: {:?}", texts(&right));
    }
}

#[test]
fn right_kernels_are_not_reported() {
    for (file, interpret) in files()
        .iter()
        .copied()
        .flat_map(|f| [(f, true), (f, false)])
    {
        let on = On::new(Check::Race, file, interpret);
        for (kernel, far) in RIGHT.into_iter().flat_map(|k| [(k, 0), (k, 1)]) {
            let (report, _) = on.run(kernel, far, OobPolicy::default());
            assert_eq!(report.fault_count, 0, "{file}: {:?}", texts(&report));
        }
    }
}

/// Work-items that write one value to one place race, if such writes are asked for. Engines report the same.
#[test]
fn the_same_value_races_where_it_is_asked_for() {
    for file in files() {
        let [wanted, found] = [true, false].map(|interpret| {
            let options = EngineOptions {
                interpret: interpret.then(Default::default),
                strategy: strategy(),
                memory_bytes: 1 << 30,
                race_same_value: true,
                ..EngineOptions::default()
            };
            let engine = Engine::with_options(options.check(Check::Race)).unwrap();
            let program = program_of(&engine, &format!("race-{file}"));
            let on = On { engine, program };
            let base = on.engine.memory().base();
            let reports = ["same_value", "neighbours", "local_read"].map(|kernel| {
                let (report, _) = on.run(kernel, 1, OobPolicy::default());
                let of = |f: &FaultRecord| {
                    let at = f.address.checked_sub(base).unwrap_or(f.address);
                    (f.line, f.thread, f.lane, f.count, at, f.about.clone())
                };
                let records: Vec<_> = report.faults.iter().map(of).collect();
                (kernel, report.fault_count, records)
            });
            let [(_, same, records), (_, neighbours, _), _] = &reports;
            assert!(*same > 0 && *neighbours == 0, "{file}: {records:?}");
            let places: BTreeSet<_> = records.iter().map(|r| r.4).collect();
            assert_eq!(places.len(), 2, "{file}: {records:?}");
            reports
        });
        assert_eq!(wanted, found, "{file}");
    }
}

#[test]
fn a_trap_stops_at_the_first_race() {
    for interpret in [true, false] {
        let on = On::new(Check::Race, "pvc", interpret);
        let (report, _) = on.run("groups_write", 1, OobPolicy::Trap);
        assert_eq!(report.status, LaunchStatus::Faulted);
        assert_eq!(report.fault_count, 1);
    }
}

/// All checks of a run find what each finds alone, on one kernel with three kinds of errors.
#[test]
fn checks_work_together() {
    for interpret in [true, false] {
        let alone = |check: Checks| {
            let on = On::new(check, "pvc", interpret);
            let o = on.engine.memory().alloc(4 * 200).unwrap();
            let launch = Launch::new([256, 1, 1]).local([128, 1, 1]);
            let launch = launch.arg(0, &o).arg(1, 1);
            let report = on.program.kernel("local_read").unwrap().launch(&launch);
            let mut kinds: Vec<_> = (report.unwrap().faults.iter().map(|f| f.kind)).collect();
            kinds.sort();
            kinds.dedup();
            kinds
        };
        assert_eq!(alone(Check::Memory.into()), [FaultKind::Allocation]);
        assert_eq!(alone(Check::Race.into()), [FaultKind::Race]);
        let both = [FaultKind::Allocation, FaultKind::Race];
        assert_eq!(alone(Checks::parse("memory,race").unwrap()), both);
        assert_eq!(alone(Check::All.into()), both);
    }
}

/// Compiled code makes the reports that the interpreter makes: each line, both work-items.
#[test]
fn engines_report_the_same() {
    for file in files() {
        let [wanted, found] = [true, false].map(|interpret| {
            let on = On::new(Check::Race, file, interpret);
            let base = on.engine.memory().base();
            let of = |f: &FaultRecord| {
                let at = f.address.checked_sub(base).unwrap_or(f.address);
                let about = f.about.clone();
                (f.line, f.group, f.thread, f.lane, f.count, at, about)
            };
            let every = if full() { 1 } else { 3 };
            let names = CASES.iter().map(|case| case.kernel).step_by(every);
            let names = names.chain(["lanes_differ"]).chain(RIGHT);
            let reports = names.map(|name| {
                let (report, _) = on.run(name, 1, OobPolicy::default());
                let records: Vec<_> = report.faults.iter().map(of).collect();
                (name, report.fault_count, records)
            });
            reports.collect::<Vec<_>>()
        });
        for (wanted, found) in wanted.iter().zip(&found) {
            assert_eq!(wanted, found, "{file}");
        }
    }
}

/// The vendor's `work_group_all` of version 22.43 writes its result again while other threads may still read it.
#[test]
fn a_true_race_in_the_compilers_own_functions() {
    let files = [("pvc", true), ("pvc-26", false)];
    for ((file, races), interpret) in files.into_iter().flat_map(|f| [(f, true), (f, false)]) {
        let engine = engine(Check::Race, interpret);
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/kernels/bin");
        let bytes = std::fs::read(format!("{path}/{file}/scan.zebin")).unwrap();
        let program = engine.program_from_zebin(&bytes, None).unwrap();
        let buffers = [0; 4].map(|_| engine.memory().alloc(4096).unwrap());
        // Otherwise what is written is what is there.
        buffers[3].write(0, &[1; 4096]).unwrap();
        let mut launch = Launch::new([16, 4, 1]).local([16, 4, 1]);
        for (n, buffer) in (0..).zip(&buffers) {
            launch = launch.arg(n, buffer);
        }
        let report = program.kernel("vote_builtin").unwrap().launch(&launch);
        let report = report.unwrap();
        assert_eq!(
            report.fault_count != 0,
            races,
            "{file}: {:?}",
            texts(&report)
        );
    }
}
