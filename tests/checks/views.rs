//! `--check memory`: sub-buffers, and buffers of other contexts. Accesses that stay in a live buffer, but not in what the launch has of it.

use std::collections::BTreeSet;
use std::time::Duration;

use super::{On, engine, files};
use visa_jit::backend::Check;
use visa_jit::{FaultRecord, Launch, Report};
use visa_runtime::{Buffer, FaultKind, LaunchStatus};

/// A launch of 64 work-items of a kernel of `memory.cl`, whose first buffer is a sub-buffer of 64 elements.
struct Case {
    kernel: &'static str,
    /// Bytes of an element.
    bytes: u64,
    /// It reads another sub-buffer of the same buffer, not the first one.
    reads: bool,
    far: i32,
    /// Wrong lanes, or blocks.
    wrong: u64,
    says: &'static str,
}

const fn case(kernel: &'static str, bytes: u64, reads: bool, far: i32, says: &'static str) -> Case {
    Case {
        kernel,
        bytes,
        reads,
        far,
        wrong: far.unsigned_abs() as u64,
        says,
    }
}

const CASES: &[Case] = &[
    case(
        "store_int",
        4,
        false,
        2,
        "write of 4 bytes, reaching 4 bytes past the end of `o` (256 bytes, argument 0), part of a buffer of 2048 bytes",
    ),
    case("store_int", 4, false, -3, "12 bytes before `o` (256 bytes"),
    case("store_char", 1, false, 5, "past the end of `o` (64 bytes"),
    case("load_int", 4, true, 1, "past the end of `a` (256 bytes"),
    case("backwards", 4, true, 2, "4 bytes before `a` (256 bytes"),
    case("gather", 4, true, 1, "read of 4 bytes"),
    case("scatter", 4, false, 1, "write of 4 bytes"),
    case("atomic_least", 4, false, 1, "atomic of 4 bytes"),
];

/// Sub-buffers of one buffer, each in the middle of a quarter.
fn parts(whole: &Buffer, len: u64) -> [Buffer; 2] {
    [256, 1280].map(|from| whole.sub_buffer(from, len, false).unwrap())
}

fn launch(buffers: &[Buffer], far: i32) -> Launch {
    let launch = Launch::new([64, 1, 1]).local([64, 1, 1]);
    let launch = (0..).zip(buffers).fold(launch, |l, (i, b)| l.arg(i, b));
    launch.arg(buffers.len() as u32, far)
}

/// What all engines know of the records.
fn set(report: &Report, base: u64) -> BTreeSet<String> {
    let of = |f: &FaultRecord| {
        let place = (f.line, f.lane, f.address - base);
        format!("{place:x?} {:?} {:?} {:?}", f.kind, f.about, f.count)
    };
    report.faults.iter().map(of).collect()
}

#[test]
fn the_rest_of_a_buffer_is_missed() {
    for file in files().iter().copied() {
        let on = [false, true].map(|interpret| On::new(engine(Check::Memory, interpret), file));
        for case in CASES {
            let name = format!("{file} {}", case.kernel);
            let sets = on.each_ref().map(|on| {
                let whole = on.engine.memory().alloc(2048).unwrap();
                let parts = parts(&whole, 64 * case.bytes);
                let given = &parts[..1 + usize::from(case.reads)];
                let kernel = on.program.kernel(case.kernel).unwrap();
                let run = |given: &[Buffer], far| kernel.launch(&launch(given, far)).unwrap();
                assert_eq!(run(given, 0).fault_count, 0, "{name}");
                let report = run(given, case.far);
                assert_eq!(
                    report.fault_count, case.wrong,
                    "{name}: {:?}",
                    report.faults
                );
                let first = &report.faults[0];
                assert_eq!(first.kind, FaultKind::Allocation, "{name}");
                assert!(first.to_string().contains(case.says), "{name}: {first}");
                // An ordinary part in place of the last one gives the whole buffer.
                let mut ordinary = given.to_vec();
                let from = if case.reads { 1280 } else { 256 };
                ordinary[given.len() - 1] = whole.part(from, 256).unwrap();
                assert_eq!(run(&ordinary, case.far).fault_count, 0, "{name}");
                set(&report, on.engine.memory().base())
            });
            assert_eq!(sets[0], sets[1], "{name}");
        }
    }
}

#[test]
fn sub_buffers_that_are_only_read() {
    for interpret in [false, true] {
        let on = On::new(engine(Check::Memory, interpret), "pvc");
        let whole = on.engine.memory().alloc(2048).unwrap();
        let [o, a] = parts(&whole, 256);
        let protected = whole.sub_buffer(1280, 256, true).unwrap();
        let run = |kernel: &str, given: &[Buffer]| {
            let kernel = on.program.kernel(kernel).unwrap();
            kernel.launch(&launch(given, 0)).unwrap()
        };
        assert_eq!(
            run("load_int", &[o.clone(), protected.clone()]).fault_count,
            0
        );
        let report = run("store_int", std::slice::from_ref(&protected));
        assert_eq!(report.fault_count, 64);
        let says = "byte 1280 of the buffer of `o` (256 bytes, argument 0) (2048 bytes in all), which is read-only";
        assert_eq!(report.faults[0].about.as_deref(), Some(says));
        assert_eq!(report.faults[0].kind, FaultKind::ReadOnly);
        // The same bytes by a sub-buffer that may be written; and the next launch does not know of it.
        assert_eq!(
            run("load_int", &[a.clone(), protected.clone()]).fault_count,
            0
        );
        assert_eq!(run("store_int", &[a]).fault_count, 0);
    }
}

#[test]
fn buffers_of_other_contexts() {
    for file in files().iter().copied() {
        for interpret in [false, true] {
            let on = On::new(engine(Check::Memory, interpret), file);
            let memory = on.engine.memory();
            let [o, pointers, ours, theirs] = [256, 8, 256, 320].map(|n| memory.alloc(n).unwrap());
            for buffer in [&o, &pointers, &ours] {
                buffer.set_context(1);
            }
            theirs.set_context(2);
            let kernel = on.program.kernel("linked").unwrap();
            let run = |to: &Buffer, context: Option<u64>| {
                pointers.write_slice(0, &[to.address()]).unwrap();
                let launch = launch(&[o.clone(), pointers.clone()], 0);
                let launch = context.into_iter().fold(launch, Launch::context);
                kernel.launch(&launch).unwrap()
            };
            assert_eq!(run(&ours, Some(1)).fault_count, 0, "{file}");
            let report = run(&theirs, Some(1));
            assert_eq!(report.fault_count, 64, "{file}");
            let about = report.faults[0].about.clone().unwrap();
            assert_eq!(
                about,
                "at byte 0 of a buffer of 320 bytes of another context"
            );
            // Launches of no context may access all, and contexts take turns.
            assert_eq!(run(&theirs, None).fault_count, 0, "{file}");
            // The other two buffers are of another context then.
            assert!(run(&theirs, Some(2)).fault_count > 64, "{file}");
        }
    }
}

/// Launches of several threads of the host whose views differ take turns; none sees what another one has.
#[test]
fn launches_at_the_same_time() {
    let on = On::new(engine(Check::Memory, false), "pvc");
    let whole = on.engine.memory().alloc(2048).unwrap();
    let kernel = on.program.kernel("store_int").unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (whole, kernel) = (&whole, &kernel);
            scope.spawn(move || {
                for round in 0..20 {
                    let from = 256 * ((thread + round) % 4);
                    let part = whole.sub_buffer(from, 256, false).unwrap();
                    let far = i32::from(round % 2 == 0);
                    let report = kernel.launch(&launch(&[part], far)).unwrap();
                    assert_eq!(report.fault_count, u64::from(round % 2 == 0));
                }
            });
        }
    });
}

/// An access that begins in a whole buffer and ends beyond it is not beside a part.
#[test]
fn whole_buffers_are_no_parts() {
    for interpret in [false, true] {
        let on = On::new(engine(Check::Memory, interpret), "pvc");
        let o = on.engine.memory().alloc(254).unwrap();
        let kernel = on.program.kernel("store_int").unwrap();
        let report = kernel.launch(&launch(&[o], 0)).unwrap();
        let about = report.faults[0].about.as_deref();
        let says = "reaching 2 bytes past the end of `o` (254 bytes, argument 0)";
        assert_eq!((about, report.fault_count), (Some(says), 1));
    }
}

/// What a launch waits for others is no part of its time.
#[test]
fn waiting_is_not_running() {
    let on = On::new(engine(Check::Memory, false), "pvc");
    let memory = on.engine.memory();
    let o = memory.alloc(256).unwrap();
    let kernel = on.program.kernel("store_int").unwrap();
    let limit = Duration::from_millis(300);
    let ready = launch(&[o], 0).context(1).deadline(limit);
    let ready = kernel.prepare(&ready).unwrap();
    let other = memory.enter(Some(2), [].into_iter(), [].into_iter());
    std::thread::scope(|scope| {
        let run = scope.spawn(|| ready.run().unwrap());
        std::thread::sleep(limit * 2);
        assert!(!run.is_finished());
        drop(other);
        assert_eq!(run.join().unwrap().status, LaunchStatus::Completed);
    });
}
