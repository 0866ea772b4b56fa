//! `--check memory`: accesses at addresses that the hardware does not take. The table says, independently of all engines, in which line of
//! the source which message has them, and how many. Atomics are in `read_only`.

use std::collections::BTreeSet;

use super::{On, counted, engine, files_in_turn, has_turn};
use visa_jit::backend::{Check, OobPolicy};
use visa_jit::isa::Platform;
use visa_jit::{FaultRecord, Launch, Report};
use visa_runtime::{FaultKind, LaunchStatus};

/// Number of misaligned lanes or blocks, and what the address is no multiple of; none where the message takes every address.
type Odd = Option<(u64, u32)>;

/// A launch of 64 work-items of a kernel of `alignment.cl`.
struct Case {
    kernel: &'static str,
    /// It reads a second buffer.
    reads: bool,
    /// Its last argument.
    far: i32,
    line: u32,
    /// By the messages of skl, where a thread has 32 lanes, or 16 if it uses blocks of sub-groups.
    legacy: Odd,
    /// By LSC messages; the second is that of devices whose threads have 32 lanes in each kernel.
    lsc: [Odd; 2],
}

const fn case(
    kernel: &'static str,
    (reads, far, line): (bool, i32, u32),
    legacy: Odd,
    lsc: [Odd; 2],
) -> Case {
    Case {
        kernel,
        reads,
        far,
        line,
        legacy,
        lsc,
    }
}

const fn same(kernel: &'static str, launch: (bool, i32, u32), odd: Odd) -> Case {
    case(kernel, launch, odd, [odd; 2])
}

const CASES: &[Case] = &[
    same("vector_store", (false, 2, 10), Some((64, 4))),
    same("vector_store", (false, 4, 10), None),
    same("vector_load", (true, 1, 15), Some((1, 4))),
    same("vector_load", (true, 8, 15), None),
    same("long_vector", (true, 4, 21), Some((3, 8))),
    same("long_vector", (true, 8, 21), None),
    same("local_vector", (false, 3, 31), Some((32, 4))),
    same("local_vector", (false, 4, 31), None),
    case("element_store", (false, 2, 38), Some((64, 4)), [None; 2]),
    case(
        "block_read",
        (true, 2, 43),
        Some((4, 4)),
        [Some((4, 4)), Some((2, 4))],
    ),
    same("block_read", (true, 4, 43), None),
    case(
        "block_write",
        (false, 4, 48),
        Some((4, 16)),
        [Some((4, 8)), Some((2, 8))],
    ),
    same("block_write", (false, 16, 48), None),
    same("uniform_vector", (true, 1, 53), Some((2, 4))),
    same("uniform_vector", (true, 4, 53), None),
    same("bytes_together", (true, 3, 0), None),
    same("even_base", (false, 2, 68), Some((64, 4))),
    same("even_base", (false, 4, 68), None),
    same("even_step", (false, 1, 74), Some((32, 4))),
];

impl Case {
    fn on(&self, file: &str) -> Odd {
        match file {
            "skl" => self.legacy,
            "acm-g10" => self.lsc[0],
            _ => self.lsc[1],
        }
    }
}

/// The report of a launch, and what it leaves.
fn run(on: &On, case: &Case, far: i32, oob: OobPolicy) -> (Report, Vec<u8>) {
    let bytes: Vec<u8> = (0..4096u32).map(|k| ((k * 7) >> 3) as u8).collect();
    let [o, a] = [0, 1].map(|_| on.engine.memory().alloc_from(&bytes).unwrap());
    let launch = Launch::new([64, 1, 1]).local([64, 1, 1]).oob(oob);
    let launch = launch.arg(0, &o);
    let launch = match case.reads {
        true => launch.arg(1, &a).arg(2, far),
        false => launch.arg(1, far),
    };
    let kernel = on.program.kernel(case.kernel).unwrap();
    (kernel.launch(&launch).unwrap(), o.to_vec())
}

/// What all engines know of the records.
fn set(report: &Report, base: u64) -> BTreeSet<String> {
    let of = |f: &FaultRecord| {
        let at = f.address.checked_sub(base).unwrap_or(f.address);
        let place = (f.line, f.lane, f.global_id, f.surface);
        format!("{place:?} {at:#x} {:?} {:?}", f.about, f.count)
    };
    report.faults.iter().map(of).collect()
}

#[test]
fn planted_errors_are_found_and_nothing_else() {
    let usual = OobPolicy::default();
    for device in files_in_turn().iter().copied() {
        let on = |check, interpret| {
            let file = format!("alignment-{device}");
            On::new(engine(check, interpret), &file)
        };
        let engines = [false, true].map(|i| [Check::Memory, Check::None].map(|check| on(check, i)));
        for (_, case) in (0..).zip(CASES).filter(|(n, _)| has_turn(*n, device)) {
            let name = format!("{device} {} {}", case.kernel, case.far);
            let sets = engines.each_ref().map(|[checked, plain]| {
                let (report, left) = run(checked, case, case.far, usual);
                let (unchecked, unchecked_left) = run(plain, case, case.far, usual);
                assert_eq!(left, unchecked_left, "{name}");
                assert_eq!(unchecked.fault_count, 0, "{name}");
                let (count, multiple) = case.on(device).unwrap_or_default();
                assert_eq!(report.fault_count, count, "{name}: {:?}", report.faults);
                assert_eq!(counted(&report), count, "{name}");
                if let Some(first) = report.faults.first() {
                    assert_eq!(first.kind, FaultKind::Misaligned, "{name}");
                    let says = format!("at an address that is no multiple of {multiple}");
                    assert!(first.to_string().contains(&says), "{name}: {first}");
                    let line = first.source.as_ref().map(|s| s.line);
                    assert_eq!(line, Some(case.line), "{name}: {first}");
                    let trapped = run(checked, case, case.far, OobPolicy::Trap).0;
                    assert_eq!(trapped.status, LaunchStatus::Faulted, "{name}");
                }
                let right = run(checked, case, 0, usual).0;
                assert!(right.faults.is_empty(), "{name}: {:?}", right.faults);
                set(&report, checked.engine.memory().base())
            });
            assert_eq!(sets[0], sets[1], "{name}");
        }
    }
}

/// What a kernel in vISA text reports, with the bytes that its `BASE` is beyond the start of a buffer, or of a surface.
fn of_text(platform: Platform, text: &str, interpret: bool, by: u64) -> Vec<(u64, String)> {
    let engine = engine(Check::Memory, interpret);
    let program = engine.program_from_text("k", text, platform).unwrap();
    let buffer = engine.memory().alloc(4096).unwrap();
    let launch = Launch::new([16, 1, 1]).local([16, 1, 1]);
    let launch = match platform {
        Platform::Pvc => {
            let base = buffer.address() + by;
            launch.input("BASE", base.to_le_bytes().to_vec())
        }
        _ => {
            let base = by as u32;
            let launch = launch.surface(0, buffer);
            launch.input("BASE", base.to_le_bytes().to_vec())
        }
    };
    let report = program.kernels()[0].launch(&launch).unwrap();
    let mut sites = BTreeSet::new();
    let first = report.faults.iter().filter(|f| sites.insert(f.site));
    let kinds = |f: &FaultRecord| assert_eq!(f.kind, FaultKind::Misaligned, "{f}");
    report.faults.iter().for_each(kinds);
    let what = |f: &FaultRecord| f.to_string().split(" at 0x").next().unwrap().to_owned();
    let mut said: Vec<_> = first.map(|f| (f.count.unwrap(), what(f))).collect();
    said.sort_by(|a, b| a.1.cmp(&b.1));
    said
}

#[test]
fn messages_to_surfaces() {
    const TEXT: &str = ".version 4.1
.kernel \"k\"
.kernel_attr SimdSize=16
.decl BASE v_type=G type=ud num_elts=1 align=dword
.decl N v_type=G type=ud num_elts=16 align=GRF
.decl A v_type=G type=ud num_elts=16 align=GRF
.decl V v_type=G type=ud num_elts=64 align=GRF
.decl Q v_type=G type=uq num_elts=64 align=GRF
.decl T6 v_type=T num_elts=1
.input BASE offset=256 size=4
.function \"main\"
    movs (M1_NM, 1) T6(0) 0x0:ud
    mov (M1_NM, 8) N(0,0)<1> 0x76543210:v
    add (M1_NM, 8) N(0,8)<1> N(0,0)<1;1,0> 0x8:ud
    shl (M1_NM, 16) A(0,0)<1> N(0,0)<1;1,0> 0x3:ud
    add (M1_NM, 16) A(0,0)<1> A(0,0)<1;1,0> BASE(0,0)<0;1,0>
    gather4_scaled.RG (M1, 16) T6 0x0:ud A.0 V.0
    gather_scaled.4 (M1, 16) T6 0x0:ud A.0 V.0
    gather.4 (M1, 16) T6 0x0:ud N.0 V.0
    qw_gather.1 (M1, 16) T6 A.0 Q.0
    oword_ld (4) T6 0x1:ud V.0
    oword_ld_unaligned (4) T6 BASE(0,0)<0;1,0> V.0
    ret (M1, 1)
";
    let said = |by| {
        let found = [false, true].map(|interpret| of_text(Platform::Dg2, TEXT, interpret, by));
        assert_eq!(found[0], found[1]);
        let [found, _] = found;
        found
    };
    assert_eq!(said(0), []);
    let line = |count, line, opcode: &str, bytes, multiple, by| {
        let text = format!(
            "k line {line}: `{opcode}` read of {bytes} bytes at an address that is no multiple of {multiple}, at byte {by} of surface 0 (4096 bytes): surface 0"
        );
        (count, text)
    };
    assert_eq!(said(4), [line(16, 20, "qw_gather", 8, 8, 4)]);
    assert_eq!(
        said(2),
        [
            line(16, 17, "gather4_scaled", 4, 4, 2),
            line(16, 20, "qw_gather", 8, 8, 2),
            line(1, 22, "oword_ld_unaligned", 4, 4, 2),
        ]
    );
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
    lsc_load_block2d.ugm.ca.ca (M1_NM, 1) V:d32.4x4nn flat[BASE, 0x3f, 0x3, 0x3f, 0x0, 0x0]
    lsc_store_block2d.ugm (M1, 16) flat[BASE, 0x3f, 0x3, 0x3f, 0x0, 0x0] V:d32.4x4nn
    ret (M1, 1)
";
    for interpret in [false, true] {
        assert_eq!(of_text(Platform::Pvc, TEXT, interpret, 64), []);
        let found = of_text(Platform::Pvc, TEXT, interpret, 32);
        let says = "of 4 bytes at an address that is no multiple of 64, at byte 32 of `BASE` (4096 bytes, input): device memory";
        assert_eq!(found.len(), 2, "{found:?}");
        for (count, said) in &found {
            assert!(*count == 1 && said.ends_with(says), "{said}");
        }
    }
}
