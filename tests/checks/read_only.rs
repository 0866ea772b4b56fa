//! `--check memory`: writes to memory that kernels only read, and atomics at addresses that are no multiples of their elements. The tables
//! say, independently of all engines, how many work-items are wrong, in which line of the source, and what the report says.

use std::collections::BTreeSet;

use super::memory::{CASES, Case as Store, run_with};
use super::{On, counted, engine, engine_without, files, files_in_turn, has_turn, kernel};
use visa_jit::backend::{Check, OobPolicy};
use visa_jit::isa::Platform;
use visa_jit::{Engine, FaultRecord, Launch, Report};
use visa_runtime::{Buffer, FaultKind, LaunchStatus};

/// A launch of 64 work-items of a kernel of `read_only.cl`, with buffers of 512 bytes.
struct Case {
    kernel: &'static str,
    /// Work-items that are wrong.
    wrong: u64,
    kind: FaultKind,
    /// What the first report says.
    says: &'static str,
}

const fn constant(kernel: &'static str, wrong: u64, says: &'static str) -> Case {
    let kind = FaultKind::ReadOnly;
    Case {
        kernel,
        wrong,
        kind,
        says,
    }
}

const fn odd(kernel: &'static str, wrong: u64, says: &'static str) -> Case {
    let kind = FaultKind::Misaligned;
    Case {
        kernel,
        wrong,
        kind,
        says,
    }
}

const PLANTED: &[Case] = &[
    constant(
        "constant_store",
        16,
        "write of 4 bytes to byte 0 of read-only program-scope constants (64 bytes)",
    ),
    constant(
        "constant_atomic",
        2,
        "atomic of 4 bytes to byte 0 of read-only program-scope constants (64 bytes)",
    ),
    odd(
        "odd_add",
        64,
        "atomic of 4 bytes at an address that is no multiple of 4, at byte 1 of `o` (512 bytes, argument 0): device memory",
    ),
    odd(
        "one_odd_exchange",
        1,
        "no multiple of 4, at byte 86 of `o` (512 bytes, argument 0)",
    ),
    odd(
        "half_long",
        32,
        "no multiple of 8, at byte 12 of `o` (512 bytes, argument 0)",
    ),
    odd(
        "odd_compare_exchange",
        3,
        "no multiple of 4, at byte 117 of `o` (512 bytes, argument 0)",
    ),
    // The compiler makes one addition of all work-items of a thread.
    odd(
        "odd_counter",
        0,
        "no multiple of 4, at byte 3 of `o` (512 bytes, argument 0)",
    ),
    odd(
        "odd_masked",
        1,
        "no multiple of 4, at byte 5 of `o` (512 bytes, argument 0)",
    ),
    odd(
        "odd_local",
        1,
        "atomic of 4 bytes at an address that is no multiple of 4: local memory at 0x1d",
    ),
];

/// Line of the source of a kernel's mark.
fn marked_line(kernel: &str) -> u32 {
    let lines = || (1..).zip(include_str!("read_only.cl").lines());
    let head = format!(" {kernel}(");
    let (head, _) = lines().find(|(_, l)| l.contains(&head)).unwrap();
    let mut marks = lines().filter(|(n, l)| *n > head && l.ends_with("// (K)"));
    marks.next().unwrap().0
}

/// What a launch reports and leaves.
struct Ran {
    report: Report,
    o: Vec<u8>,
    base: u64,
}

impl Ran {
    /// Reports with what all engines know, and how many each stands for.
    fn set(&self) -> BTreeSet<String> {
        let of = |f: &FaultRecord| {
            let about = f.about.as_deref().unwrap_or_default();
            let at = f.address.checked_sub(self.base).unwrap_or(f.address);
            let place = (f.line, f.lane, f.global_id);
            format!("{place:?} {at:#x} {about} {:?} {:?}", f.kind, f.count)
        };
        self.report.faults.iter().map(of).collect()
    }
}

fn buffer(engine: &Engine) -> Buffer {
    let bytes: Vec<u8> = (0..=u8::MAX).map(|k| k.wrapping_mul(7)).collect();
    engine.memory().alloc_from(&bytes.repeat(2)).unwrap()
}

fn run(on: &On, kernel: &str, far: i32) -> Ran {
    let o = buffer(&on.engine);
    let launch = Launch::new([64, 1, 1]).local([64, 1, 1]).arg(0, &o);
    let kernel = on.program.kernel(kernel).unwrap();
    Ran {
        report: kernel.launch(&launch.arg(1, far)).unwrap(),
        o: o.to_vec(),
        base: on.engine.memory().base(),
    }
}

#[test]
fn planted_errors_are_found_and_nothing_else() {
    for device in files_in_turn() {
        let file = format!("read_only-{device}");
        let engines = || {
            [false, true].map(|interpret| {
                [Check::Memory, Check::None].map(|check| On::new(engine(check, interpret), &file))
            })
        };
        let right = engines();
        for (_, case) in (0..).zip(PLANTED).filter(|(n, _)| has_turn(*n, device)) {
            let name = format!("{file} {}", case.kernel);
            // A constant that was written stays so, and each launch shall find the first one.
            let sets = engines().each_ref().map(|[checked, plain]| {
                let (found, unchecked) = (run(checked, case.kernel, 1), run(plain, case.kernel, 1));
                assert_eq!(found.o, unchecked.o, "{name}");
                assert_eq!(unchecked.report.fault_count, 0, "{name}");
                let first = &found.report.faults[0];
                assert_eq!(first.kind, case.kind, "{name}: {first}");
                assert!(first.to_string().contains(case.says), "{name}: {first}");
                let line = first.source.as_ref().map(|s| s.line);
                assert_eq!(line, Some(marked_line(case.kernel)), "{name}: {first}");
                let count = found.report.fault_count;
                assert_eq!(counted(&found.report), count, "{name}");
                match case.wrong {
                    0 => assert!((1..=8).contains(&count), "{name}: {count}"),
                    wrong => assert_eq!(count, wrong, "{name}"),
                }
                (found.set(), found.o)
            });
            assert_eq!(sets[0], sets[1], "{name}");
            for [checked, plain] in &right {
                let ran = run(checked, case.kernel, 0);
                let faults = &ran.report.faults;
                assert!(faults.is_empty(), "{name}: {faults:?}");
                assert_eq!(ran.o, run(plain, case.kernel, 0).o, "{name}");
            }
        }
    }
}

/// Messages of lanes that write to the first buffer in a right launch of a kernel of `memory.cl`.
fn writes(kernel: &str) -> u64 {
    match kernel {
        "guarded" => 50,
        "chosen" => 32,
        "rounds" => 192,
        "vstore_8" => 256,
        _ => 64,
    }
}

#[test]
fn stores_of_every_form_are_found_and_carried_out() {
    let mut seen = BTreeSet::new();
    let cases = CASES.iter().filter(|case| seen.insert(case.kernel));
    let cases: Vec<(usize, &Store)> = (0..).zip(cases).collect();
    for file in files_in_turn().iter().copied() {
        let engines = [false, true].map(|interpret| {
            [Check::Memory, Check::None].map(|check| On::new(engine(check, interpret), file))
        });
        for (_, case) in cases.iter().filter(|(n, _)| has_turn(*n, file)) {
            let name = format!("{file} {}", case.kernel);
            let found = engines.each_ref().map(|[checked, plain]| {
                let ran = run_with(checked, case, 0, Some(0));
                let left = run_with(plain, case, 0, None).contents();
                assert_eq!(ran.contents(), left, "{name}");
                let report = &ran.report;
                assert_eq!(counted(report), report.fault_count, "{name}");
                let first = &report.faults[0];
                let bytes = case.buffers[0];
                let says = format!(" of read-only `o` ({bytes} bytes, argument 0): device memory");
                assert!(first.to_string().contains(&says), "{name}: {first}");
                let kinds = |f: &FaultRecord| f.kind_name() == "read-only";
                assert!(report.faults.iter().all(kinds), "{name}");
                // Whether the last buffer is only read, too, matters only where it is written.
                let last = run_with(checked, case, 0, Some(case.buffers.len() - 1)).report;
                let wrong = case.buffers.len() == 1 || case.kernel == "chosen";
                assert_eq!(last.fault_count != 0, wrong, "{name}");
                (ran.set(), report.fault_count)
            });
            assert_eq!(found[0], found[1], "{name}");
            assert_eq!(found[0].1, writes(case.kernel), "{name}");
        }
    }
}

#[test]
fn blocks_of_sub_groups() {
    for file in files().iter().copied() {
        let sets = [false, true].map(|interpret| {
            let on = On::new(engine(Check::Memory, interpret), file);
            let o = buffer(&on.engine);
            let launch = Launch::new([64, 1, 1]).arg(0, &o).arg(1, 0);
            let kernel = on.program.kernel("sub_group_write").unwrap();
            let launch = || kernel.launch(&launch).unwrap();
            assert_eq!(launch().fault_count, 0, "{file}");
            let written = o.to_vec();
            o.write(0, &[0; 256]).unwrap();
            o.mark_read_only().unwrap();
            let report = launch();
            assert_eq!(o.to_vec(), written, "{file}");
            let base = on.engine.memory().base();
            let of = |f: &FaultRecord| (f.line, f.lane, f.address - base, f.kind, f.count);
            let set: Vec<_> = report.faults.iter().map(of).collect();
            assert!(set.iter().all(|r| r.3 == FaultKind::ReadOnly), "{set:?}");
            // One for each block.
            assert!((2..=8).contains(&report.fault_count), "{file}: {set:?}");
            set
        });
        assert_eq!(sets[0], sets[1], "{file}");
    }
}

/// Both compilers make `atomic_load` an atomic `or` of 0.
#[test]
fn an_atomic_that_leaves_what_is_there_writes() {
    for interpret in [false, true] {
        let on = On::new(engine(Check::Memory, interpret), "read_only-pvc");
        let [o, a] = [0, 1].map(|_| buffer(&on.engine));
        let launch = Launch::new([64, 1, 1]).arg(0, &o).arg(1, &a).arg(2, 0);
        let kernel = on.program.kernel("atomic_only_reads").unwrap();
        assert_eq!(kernel.launch(&launch).unwrap().fault_count, 0);
        a.mark_read_only().unwrap();
        let report = kernel.launch(&launch).unwrap();
        assert_eq!(report.fault_count, 64);
        assert_eq!(report.faults[0].access, "atomic");
    }
}

#[test]
fn a_trap_stops_before_the_write_and_rules_leave_findings_out() {
    for interpret in [false, true] {
        let on = On::new(engine(Check::Memory, interpret), "pvc");
        let o = buffer(&on.engine);
        o.mark_read_only().unwrap();
        let before = o.to_vec();
        let launch = Launch::new([64, 1, 1]).arg(0, &o).arg(1, 0);
        let launch = launch.oob(OobPolicy::Trap);
        let kernel = on.program.kernel("store_int").unwrap();
        let report = kernel.launch(&launch).unwrap();
        assert_eq!(report.status, LaunchStatus::Faulted);
        assert_eq!(o.to_vec(), before);
        let on = On::new(engine(Check::Memory, interpret), "read_only-pvc");
        let o = buffer(&on.engine);
        let before = o.to_vec();
        let launch = Launch::new([64, 1, 1]).arg(0, &o).arg(1, 1);
        let launch = launch.oob(OobPolicy::Trap);
        let kernel = on.program.kernel("half_long").unwrap();
        let report = kernel.launch(&launch).unwrap();
        assert_eq!(report.status, LaunchStatus::Faulted);
        assert_eq!(report.faults[0].kind, FaultKind::Misaligned);
        assert_eq!(o.to_vec(), before);
    }
    for (rule, file, name) in [
        ("read-only:store_int@o", "pvc", "store_int"),
        ("alignment:half_long", "read_only-pvc", "half_long"),
    ] {
        let engine = engine_without(Check::Memory, false, rule);
        let o = buffer(&engine);
        o.mark_read_only().unwrap();
        let far = i32::from(name == "half_long");
        let launch = Launch::new([64, 1, 1]).arg(0, &o).arg(1, far);
        let report = kernel(&engine, file, name).launch(&launch).unwrap();
        let left = report.faults.iter().map(FaultRecord::kind_name);
        let left: BTreeSet<_> = left.collect();
        let wanted: &[&str] = if far == 0 { &[] } else { &["read-only"] };
        assert_eq!(left.into_iter().collect::<Vec<_>>(), wanted, "{rule}");
    }
}

/// A part that is passed is not marked by itself, but the buffer that it is part of is.
#[test]
fn parts_of_what_is_read_only() {
    for interpret in [false, true] {
        let on = On::new(engine(Check::Memory, interpret), "pvc");
        let o = buffer(&on.engine);
        let part = o.part(256, 256).unwrap();
        part.mark_read_only().unwrap();
        let launch = Launch::new([64, 1, 1]).arg(0, &part).arg(1, 0);
        let kernel = on.program.kernel("store_int").unwrap();
        assert_eq!(kernel.launch(&launch).unwrap().fault_count, 0);
        o.mark_read_only().unwrap();
        let report = kernel.launch(&launch).unwrap();
        assert_eq!(report.fault_count, 64);
        let about = report.faults[0].about.clone().unwrap();
        let says = "byte 256 of the buffer of `o` (256 bytes, argument 0) (512 bytes in all), which is read-only";
        assert_eq!(about, says);
    }
}

/// Findings of a kernel in vISA text: kind, number, and what the first one says.
fn of_text(platform: Platform, text: &str, interpret: bool) -> Vec<(FaultKind, u64, String)> {
    let engine = engine(Check::Memory, interpret);
    let program = engine.program_from_text("k", text, platform).unwrap();
    let (table, surface) = (buffer(&engine), buffer(&engine));
    table.mark_read_only().unwrap();
    let launch = Launch::new([16, 1, 1]).local([16, 1, 1]);
    let launch = launch.surface(0, surface);
    let launch = match platform {
        Platform::Pvc => launch.input("BASE", table.address().to_le_bytes().to_vec()),
        _ => launch,
    };
    let report = program.kernels()[0].launch(&launch).unwrap();
    let mut sites = BTreeSet::new();
    let first = |f: &&FaultRecord| sites.insert((f.site, f.kind));
    let first = report.faults.iter().filter(first);
    let first: Vec<_> = first
        .map(|f| (f.kind, f.count.unwrap(), f.to_string()))
        .collect();
    assert_eq!(first.iter().map(|f| f.1).sum::<u64>(), report.fault_count);
    first
}

#[test]
fn atomics_of_surfaces() {
    const TEXT: &str = ".version 4.1
.kernel \"k\"
.kernel_attr SimdSize=16
.decl N v_type=G type=ud num_elts=16 align=GRF
.decl A v_type=G type=ud num_elts=16 align=GRF
.decl T6 v_type=T num_elts=1
.function \"main\"
    movs (M1_NM, 1) T6(0) 0x0:ud
    mov (M1_NM, 8) N(0,0)<1> 0x76543210:v
    add (M1_NM, 8) N(0,8)<1> N(0,0)<1;1,0> 0x8:ud
    shl (M1_NM, 16) A(0,0)<1> N(0,0)<1;1,0> 0x1:ud
    dword_atomic.inc (M1, 16) T6 A.0 %null.0 %null.0 %null.0
    shl (M1_NM, 16) A(0,0)<1> N(0,0)<1;1,0> 0x2:ud
    dword_atomic.inc (M1, 16) T6 A.0 %null.0 %null.0 %null.0
    ret (M1, 1)
";
    for interpret in [false, true] {
        let found = of_text(Platform::Skl, TEXT, interpret);
        let [(FaultKind::Misaligned, 8, says)] = found.as_slice() else {
            panic!("{found:?}");
        };
        let wanted = "no multiple of 4, at byte 2 of surface 0 (512 bytes): surface 0 at 0x2,";
        assert!(says.contains(wanted), "{says}");
    }
}

#[test]
fn rectangles() {
    const TEXT: &str = ".version 4.1
.kernel \"k\"
.kernel_attr SimdSize=16
.decl BASE v_type=G type=uq num_elts=1 align=qword
.decl V v_type=G type=ud num_elts=16 align=GRF
.input BASE offset=256 size=8
.function \"main\"
    lsc_load_block2d.ugm.ca.ca (M1_NM, 1) V:d32.4x4nn flat[BASE, 0xf, 0x3, 0xf, 0x0, 0x0]
    lsc_store_block2d.ugm (M1, 16) flat[BASE, 0xf, 0x3, 0xf, 0x0, 0x2] V:d32.4x4nn
    ret (M1, 1)
";
    for interpret in [false, true] {
        let found = of_text(Platform::Pvc, TEXT, interpret);
        let [(FaultKind::ReadOnly, 1, says)] = found.as_slice() else {
            panic!("{found:?}");
        };
        let wanted = "to byte 32 of read-only `BASE` (512 bytes, input): device memory";
        assert!(says.contains(wanted), "{says}");
    }
}
