//! `--check memory`. The table says, independently of both engines, how many work-items are wrong, in which line of the source, and
//! what the report says of the buffer.

use std::collections::BTreeSet;

use super::{On, counted, engine, files, files_in_turn, has_turn, kernel, program_of, strategy};
use visa_jit::backend::{AXES, Check};
use visa_jit::{Engine, EngineOptions, FaultRecord, Launch, Report};
use visa_runtime::{Buffer, FaultKind};
use visa_test_common::full;

/// A launch of 64 work-items of a kernel of `memory.cl`.
pub(super) struct Case {
    pub kernel: &'static str,
    /// Bytes of the buffers.
    pub buffers: &'static [u64],
    /// The argument that is 0 in a correct launch.
    far: i32,
    /// Work-items that miss a buffer.
    wrong: usize,
    /// A part of the line of the source.
    line: &'static str,
    /// What the first report says.
    says: &'static str,
    kind: FaultKind,
}

/// Beyond the memory that there is, and not just beyond a buffer.
const fn outside(case: Case) -> Case {
    let kind = FaultKind::Bounds;
    Case { kind, ..case }
}

const fn case(
    kernel: &'static str,
    buffers: &'static [u64],
    far: i32,
    wrong: usize,
    line: &'static str,
    says: &'static str,
) -> Case {
    Case {
        kernel,
        buffers,
        far,
        wrong,
        line,
        says,
        kind: FaultKind::Allocation,
    }
}

pub(super) const CASES: &[Case] = &[
    case(
        "store_int",
        &[256],
        1,
        1,
        "o[i + far]",
        "reaching 4 bytes past the end of `o` (256 bytes, argument 0)",
    ),
    case(
        "store_int",
        &[256],
        -1,
        1,
        "o[i + far]",
        "4 bytes before `o` (256 bytes, argument 0)",
    ),
    case(
        "store_int",
        &[256],
        65,
        64,
        "o[i + far]",
        "4 bytes past the end of `o` (256 bytes, argument 0)",
    ),
    case(
        "store_int",
        &[256],
        40,
        40,
        "o[i + far]",
        "reaching 4 bytes past the end of `o` (256 bytes, argument 0)",
    ),
    case(
        "store_char",
        &[64],
        1,
        1,
        "o[i + far]",
        "reaching 1 bytes past the end of `o` (64 bytes, argument 0)",
    ),
    case(
        "store_char",
        &[67],
        5,
        2,
        "o[i + far]",
        "reaching 1 bytes past the end of `o` (67 bytes, argument 0)",
    ),
    case(
        "store_short",
        &[128],
        2,
        2,
        "o[i + far]",
        "reaching 2 bytes past the end of `o` (128 bytes, argument 0)",
    ),
    case(
        "store_long",
        &[512],
        1,
        1,
        "o[i + far]",
        "past the end of `o` (512 bytes, argument 0)",
    ),
    case(
        "store_long",
        &[516],
        1,
        1,
        "o[i + far]",
        "reaching 4 bytes past the end of `o` (516 bytes, argument 0)",
    ),
    case(
        "store_int4",
        &[1024],
        1,
        1,
        "o[i + far]",
        "past the end of `o` (1024 bytes, argument 0)",
    ),
    case(
        "load_int",
        &[256, 256],
        1,
        1,
        "a[i + far]",
        "reaching 4 bytes past the end of `a` (256 bytes, argument 1)",
    ),
    case(
        "load_int",
        &[256, 256],
        -2,
        2,
        "a[i + far]",
        "8 bytes before `a` (256 bytes, argument 1)",
    ),
    case(
        "load_char",
        &[256, 64],
        1,
        1,
        "a[i + far]",
        "past the end of `a` (64 bytes, argument 1)",
    ),
    case(
        "load_int4",
        &[256, 1024],
        1,
        1,
        "a[i + far]",
        "past the end of `a` (1024 bytes, argument 1)",
    ),
    case(
        "backwards",
        &[256, 256],
        1,
        1,
        "a[63 -",
        "4 bytes before `a` (256 bytes, argument 1)",
    ),
    case(
        "strided",
        &[256, 760],
        2,
        1,
        "a[3 * i",
        "past the end of `a` (760 bytes, argument 1)",
    ),
    case(
        "gather",
        &[256, 256],
        1,
        1,
        "o[i] = a[i == 21",
        "reaching 4 bytes past the end of `a` (256 bytes, argument 1)",
    ),
    case(
        "gather",
        &[256, 256],
        300,
        1,
        "o[i] = a[i == 21",
        "1196 bytes past the end of `a` (256 bytes, argument 1)",
    ),
    case(
        "scatter",
        &[256],
        1,
        1,
        "o[at == 63",
        "reaching 4 bytes past the end of `o` (256 bytes, argument 0)",
    ),
    case(
        "masked",
        &[256, 256],
        1,
        1,
        "v = a[i + far]",
        "reaching 4 bytes past the end of `a` (256 bytes, argument 1)",
    ),
    case(
        "masked",
        &[256, 256],
        -2,
        1,
        "v = a[i + far]",
        "4 bytes before `a` (256 bytes, argument 1)",
    ),
    case(
        "diverging",
        &[256, 252],
        1,
        1,
        "sum += a[",
        "reaching 4 bytes past the end of `a` (252 bytes, argument 1)",
    ),
    case(
        "atomics",
        &[64],
        1,
        4,
        "atomic_add",
        "reaching 4 bytes past the end of `o` (64 bytes, argument 0)",
    ),
    case(
        "compare_exchange",
        &[256],
        2,
        2,
        "atomic_cmpxchg",
        "reaching 4 bytes past the end of `o` (256 bytes, argument 0)",
    ),
    case(
        "store_16",
        &[256],
        3,
        3,
        "o[i + far]",
        "reaching 4 bytes past the end of `o` (256 bytes, argument 0)",
    ),
    case(
        "store_32",
        &[256],
        3,
        3,
        "o[i + far]",
        "reaching 4 bytes past the end of `o` (256 bytes, argument 0)",
    ),
    case(
        "constant_load",
        &[256, 256],
        1,
        1,
        "o[i] = a[i + far]",
        "reaching 4 bytes past the end of `a` (256 bytes, argument 1)",
    ),
    case(
        "constant_load",
        &[256, 256],
        -3,
        3,
        "o[i] = a[i + far]",
        "bytes before `a` (256 bytes, argument 1)",
    ),
    case(
        "vload_3",
        &[256, 768],
        1,
        1,
        "vload3",
        "past the end of `a` (768 bytes, argument 1)",
    ),
    case(
        "vstore_8",
        &[1024],
        1,
        // Four messages of four bytes.
        4,
        "vstore8",
        "past the end of `o` (1024 bytes, argument 0)",
    ),
    case(
        "store_half",
        &[128],
        5,
        5,
        "vstore_half",
        "reaching 2 bytes past the end of `o` (128 bytes, argument 0)",
    ),
    case(
        "store_char16",
        &[1024],
        1,
        1,
        "o[i + far]",
        "past the end of `o` (1024 bytes, argument 0)",
    ),
    case(
        "load_long",
        &[512, 512],
        2,
        2,
        "o[i] = a",
        "past the end of `a` (512 bytes, argument 1)",
    ),
    case(
        "atomic_least",
        &[256],
        1,
        1,
        "atomic_min",
        "reaching 4 bytes past the end of `o` (256 bytes, argument 0)",
    ),
    case(
        "exchange_float",
        &[256],
        3,
        3,
        "atomic_xchg",
        "reaching 4 bytes past the end of `o` (256 bytes, argument 0)",
    ),
    case(
        "add_long",
        &[512],
        1,
        1,
        "atom_add",
        "reaching 8 bytes past the end of `o` (512 bytes, argument 0)",
    ),
    case(
        "chosen",
        &[256, 256],
        1,
        1,
        "p[i + far]",
        "reaching 4 bytes past the end of `a` (256 bytes, argument 1)",
    ),
    case(
        "structs",
        &[1280],
        1,
        1,
        "].value",
        "16 bytes past the end of `o` (1280 bytes, argument 0)",
    ),
    case(
        "guarded",
        &[200],
        5,
        5,
        "o[i] = (int)i + 1",
        "reaching 4 bytes past the end of `o` (200 bytes, argument 0)",
    ),
    case(
        "inclusive",
        &[256, 1024],
        1,
        1,
        "sum += a[4",
        "reaching 4 bytes past the end of `a` (1024 bytes, argument 1)",
    ),
    case(
        "called",
        &[256],
        1,
        1,
        "// in a function",
        "reaching 4 bytes past the end of `o` (256 bytes, argument 0)",
    ),
    case(
        "pitched",
        &[256],
        1,
        1,
        "row[(i",
        "reaching 4 bytes past the end of `o` (256 bytes, argument 0)",
    ),
    case(
        "copied",
        &[256, 256],
        2,
        2,
        "// here",
        "reaching 4 bytes past the end of `a` (256 bytes, argument 1)",
    ),
    case(
        "rounds",
        &[768],
        1,
        1,
        "o[64 * k",
        "reaching 4 bytes past the end of `o` (768 bytes, argument 0)",
    ),
    outside(case(
        "wrapped",
        &[256, 256],
        2,
        2,
        "o[i] = a[(i",
        "bytes past the end of `a` (256 bytes, argument 1)",
    )),
    outside(case(
        "local_store",
        &[256],
        1,
        1,
        "// here",
        "out of bounds: local memory at 0x61b04",
    )),
    outside(case(
        "local_load",
        &[256],
        1,
        64,
        "// here",
        "out of bounds: local memory at 0x",
    )),
    outside(case(
        "local_atomic",
        &[256],
        1,
        64,
        "// here",
        "out of bounds: local memory at 0x",
    )),
];

/// Line of the source of a part of a kernel.
fn source_line(kernel: &str, part: &str) -> u32 {
    let source = include_str!("memory.cl");
    let head = source
        .lines()
        .position(|l| l.contains(&format!(" {kernel}(")));
    // The function that it calls is before it.
    let head = if kernel == "called" { 0 } else { head.unwrap() };
    let rest = source.lines().skip(head).position(|l| l.contains(part));
    (head + rest.unwrap() + 1) as u32
}

/// What a launch reports and leaves.
pub(super) struct Ran {
    pub report: Report,
    buffers: Vec<Buffer>,
    base: u64,
}

impl Ran {
    pub fn contents(&self) -> Vec<Vec<u8>> {
        self.buffers.iter().map(Buffer::to_vec).collect()
    }

    /// Reports with what both engines know, and how many each stands for.
    pub fn set(&self) -> BTreeSet<String> {
        let of = |f: &FaultRecord| {
            let about = f.about.as_deref().unwrap_or_default();
            // Device memory of each engine lies elsewhere, and local memory begins at zero.
            let at = f.address.checked_sub(self.base).unwrap_or(f.address);
            let place = (f.line, f.lane, f.global_id);
            format!("{place:?} {at:#x} {about} {:?} {:?}", f.kind, f.count)
        };
        self.report.faults.iter().map(of).collect()
    }
}

fn run(on: &On, case: &Case, far: i32) -> Ran {
    run_with(on, case, far, None)
}

/// The same, in which kernels only read one of the buffers.
pub(super) fn run_with(on: &On, case: &Case, far: i32, read_only: Option<usize>) -> Ran {
    let fill = |i: usize| move |k: u64| (k as u8).wrapping_mul(7).wrapping_add(i as u8);
    let buffers: Vec<Buffer> = (case.buffers.iter().enumerate())
        .map(|(i, &len)| {
            let bytes: Vec<u8> = (0..len).map(fill(i)).collect();
            let buffer = on.engine.memory().alloc_from(&bytes).unwrap();
            if read_only == Some(i) {
                buffer.mark_read_only().unwrap();
            }
            buffer
        })
        .collect();
    let mut launch = Launch::new([64, 1, 1]).local([64, 1, 1]);
    for (i, buffer) in buffers.iter().enumerate() {
        launch = launch.arg(i as u32, buffer);
    }
    let launch = launch.arg(buffers.len() as u32, far);
    let report = on.program.kernel(case.kernel).unwrap().launch(&launch);
    Ran {
        report: report.unwrap(),
        buffers,
        base: on.engine.memory().base(),
    }
}

#[test]
fn planted_errors_are_found_and_nothing_else() {
    let mut failures = Vec::new();
    for file in files_in_turn().iter().copied() {
        let engines = [false, true].map(|interpret| {
            [Check::Memory, Check::None].map(|check| On::new(engine(check, interpret), file))
        });
        for (_, case) in (0..).zip(CASES).filter(|(n, _)| has_turn(*n, file)) {
            let name = format!("{file} {} {}", case.kernel, case.far);
            let [compiled, interpreted] = engines.each_ref().map(|[checked, plain]| {
                let right = run(checked, case, 0);
                if right.report.fault_count != 0 {
                    failures.push(format!("{name}: {:?}", right.report.faults));
                }
                assert_eq!(run(plain, case, 0).contents(), right.contents(), "{name}");
                run(checked, case, case.far)
            });
            if compiled.set() != interpreted.set()
                || compiled.report.fault_count != interpreted.report.fault_count
                || compiled.contents() != interpreted.contents()
            {
                let sets = (compiled.set(), interpreted.set());
                failures.push(format!("{name}: {sets:#?}"));
            }
            failures.extend(judged(&name, case, &compiled.report));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// What is wrong with the reports of a case.
fn judged(name: &str, case: &Case, report: &Report) -> Option<String> {
    let Some(first) = report.faults.first() else {
        return Some(format!("{name}: nothing is found"));
    };
    let most = counted(report);
    let line = first.source.as_ref().map(|s| s.line);
    let right = most == report.fault_count
        && most == case.wrong as u64
        && line == Some(source_line(case.kernel, case.line))
        && first.kind == case.kind
        && first.to_string().contains(case.says);
    (!right).then(|| format!("{name}: {first}, {most} of {}", case.wrong))
}

#[test]
fn other_shapes() {
    for file in files().iter().copied() {
        for interpret in [false, true] {
            let engine = engine(Check::Memory, interpret);
            let program = program_of(&engine, file);
            let kernel = |name| program.kernel(name).unwrap();
            let memory = engine.memory();
            let (o, a) = (memory.alloc(256).unwrap(), memory.alloc(256).unwrap());
            // A pointer in memory: which argument it belongs to is known by its address.
            let pointers = memory.alloc_from(&[a.address()]).unwrap();
            let launch = |far: i32| {
                let launch = Launch::new([64, 1, 1]).arg(0, &o).arg(1, &pointers);
                kernel("linked").launch(&launch.arg(2, far)).unwrap()
            };
            assert_eq!(launch(0).fault_count, 0, "{file}");
            let report = launch(1);
            let says = "reaching 4 bytes past the end of a buffer of 256 bytes that is no argument";
            assert_eq!(report.faults[0].about.as_deref(), Some(says), "{file}");
            // Rows: the launch's last one is beyond the end.
            let rows = |far: i32| {
                let launch = Launch::new([8, 8, 1]).local([8, 8, 1]).arg(0, &o);
                kernel("rows")
                    .launch(&launch.arg(1, 8).arg(2, far))
                    .unwrap()
            };
            assert_eq!(rows(0).fault_count, 0, "{file}");
            let report = rows(1);
            assert_eq!(report.fault_count, 8, "{file}");
            assert_eq!(report.faults[0].local_id, [0, 7, 0], "{file}");
            assert_eq!(report.faults.len(), 4, "a record stands for the rest");
        }
    }
}

#[test]
fn blocks_of_sub_groups() {
    for file in files().iter().copied() {
        let sets = [false, true].map(|interpret| {
            let engine = engine(Check::Memory, interpret);
            let program = program_of(&engine, file);
            let memory = engine.memory();
            let (o, a) = (memory.alloc(256).unwrap(), memory.alloc(256).unwrap());
            let run = |name: &str, far: i32| {
                let launch = Launch::new([64, 1, 1]).arg(0, &o);
                let launch = match name {
                    "sub_group_read" => launch.arg(1, &a).arg(2, far),
                    _ => launch.arg(1, far),
                };
                let report = program.kernel(name).unwrap().launch(&launch).unwrap();
                let of = |f: &FaultRecord| (f.line, f.lane, f.address - memory.base(), f.count);
                (
                    report.fault_count,
                    report.faults.iter().map(of).collect::<Vec<_>>(),
                )
            };
            ["sub_group_read", "sub_group_write"].map(|name| {
                assert_eq!(run(name, 0).0, 0, "{file} {name}");
                let found = run(name, 4);
                assert_ne!(found.0, 0, "{file} {name}");
                found
            })
        });
        assert_eq!(sets[0], sets[1], "{file}");
    }
}

#[test]
fn freed_buffers_are_known() {
    for interpret in [false, true] {
        let engine = engine(Check::Memory, interpret);
        let memory = engine.memory();
        let (o, a) = (memory.alloc(256).unwrap(), memory.alloc(256).unwrap());
        let pointers = memory.alloc_from(&[a.address()]).unwrap();
        let launch = Launch::new([64, 1, 1])
            .arg(0, &o)
            .arg(1, &pointers)
            .arg(2, 0);
        let linked = kernel(&engine, "pvc", "linked");
        assert_eq!(linked.launch(&launch).unwrap().fault_count, 0);
        drop(a);
        let report = linked.launch(&launch).unwrap();
        assert_eq!(report.fault_count, 64);
        let about = report.faults[0].about.clone().unwrap();
        let says = "at byte 0 of a buffer of 256 bytes that was allocated after 0 launches and freed after 1 launch";
        assert_eq!(about, says);
    }
}

#[test]
fn threads_report_the_same() {
    for file in files().iter().copied() {
        let engine = engine(Check::Memory, false);
        let o = engine.memory().alloc(4 * 4096).unwrap();
        let sets = [1, 2].map(|threads| {
            let launch = Launch::new([4096, 1, 1]).local([64, 1, 1]).threads(threads);
            let launch = launch.arg(0, &o).arg(1, 130);
            let report = kernel(&engine, file, "store_int").launch(&launch).unwrap();
            let at = |f: &FaultRecord| (f.line, f.kind, f.count);
            let lines: BTreeSet<_> = report.faults.iter().map(at).collect();
            assert!(report.faults.len() <= 8, "{file}");
            (report.fault_count, counted(&report), lines)
        });
        assert_eq!((sets[0].0, sets[0].1), (130, 130), "{file}");
        assert_eq!(sets[0], sets[1], "{file}");
    }
}

#[test]
fn strategies_find_the_same() {
    let strategies = [
        "gather=call",
        "gather=branch",
        "gather=select",
        "bounds=separate",
        "bounds=inline",
        "masks=select",
        "split-accesses=merge",
        "codegen=none",
    ];
    // In a plain run each on one file, and fewer kernels.
    let (every, step) = if full() { (1, 3) } else { (2, 14) };
    for (n, file) in ["pvc", "acm-g10"].into_iter().enumerate() {
        let usual = On::new(engine(Check::Memory, false), file);
        let wanted: Vec<_> = (CASES.iter().step_by(step))
            .map(|case| (case, run(&usual, case, case.far).set()))
            .collect();
        for setting in strategies.into_iter().skip(n % every).step_by(every) {
            let (axis, value) = setting.split_once('=').unwrap();
            let mut strategy = strategy();
            let axis = AXES.iter().find(|a| a.name == axis);
            axis.unwrap().set(&mut strategy, value).unwrap();
            // Some ways to gather are one code generator's.
            if strategy.check().is_err() {
                continue;
            }
            let options = EngineOptions {
                strategy,
                memory_bytes: 1 << 30,
                ..EngineOptions::default()
            };
            let other = Engine::with_options(options.check(Check::Memory)).unwrap();
            let other = On::new(other, file);
            for (case, wanted) in &wanted {
                let found = run(&other, case, case.far).set();
                assert_eq!(found, *wanted, "{file} {} {setting}", case.kernel);
            }
        }
    }
}
