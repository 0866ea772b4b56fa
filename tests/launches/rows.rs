//! Groups of two- and three-dimensional launches, of which compiled code runs many in one call: each has its own number in y and z,
//! in what it computes and in fault records, and those before a stop are counted.

use std::time::Duration;

use super::stop::engines;
use crate::support::faults_as_text;
use visa_jit::backend::OobPolicy;
use visa_jit::isa::Platform;
use visa_jit::{Engine, Launch, Program, Report};
use visa_runtime::{Buffer, Interrupter, LaunchStatus};

/// Each work-item counts in its group's dword. The group whose dword is at `STOP` bytes never ends.
const COUNTS: &str = "
.version 4.1
.kernel \"counts\"
.kernel_attr SimdSize=16
.decl OFF v_type=G type=ud num_elts=16 align=GRF
.decl OLD v_type=G type=ud num_elts=16 align=GRF
.decl STOP v_type=G type=ud num_elts=1 align=dword
.decl S v_type=G type=ud num_elts=1 align=dword
.decl T v_type=G type=ud num_elts=1 align=dword
.decl P1 v_type=P num_elts=1
.decl T6 v_type=T num_elts=1
.input STOP offset=256 size=4
.function \"main\"
    movs (M1_NM, 1) T6(0) 0x0:ud
    mul (M1_NM, 1) S(0,0)<1> %group_id_z(0,0)<0;1,0> 0x640:ud
    mul (M1_NM, 1) T(0,0)<1> %group_id_y(0,0)<0;1,0> 0x10:ud
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> T(0,0)<0;1,0>
    mul (M1_NM, 1) T(0,0)<1> %group_id_x(0,0)<0;1,0> 0x4:ud
    add (M1_NM, 1) S(0,0)<1> S(0,0)<0;1,0> T(0,0)<0;1,0>
    cmp.eq (M1_NM, 1) P1 S(0,0)<0;1,0> STOP(0,0)<0;1,0>
    (!P1) jmp (M1, 1) GO
AGAIN:
    (P1) jmp (M1, 1) AGAIN
GO:
    mov (M1_NM, 16) OFF(0,0)<1> S(0,0)<0;1,0>
    dword_atomic.inc (M1, 16) T6 OFF.0 %null.0 %null.0 OLD.0
    ret (M1, 1)
";

/// Dwords from a group to the next in each dimension.
const PLACES: [u32; 3] = [1, 4, 400];

/// Global and local sizes: up to 4 x 100 groups, with smaller ones at the end of each dimension.
const SHAPES: [([u32; 3], [u32; 3]); 9] = [
    ([32, 3, 1], [16, 1, 1]),
    ([64, 100, 2], [16, 1, 1]),
    ([16, 70, 3], [16, 1, 1]),
    ([40, 6, 2], [16, 2, 1]),
    ([32, 5, 3], [16, 2, 1]),
    ([32, 6, 5], [16, 2, 2]),
    ([16, 5, 5], [16, 2, 2]),
    ([9, 5, 4], [16, 2, 1]),
    ([48, 1, 70], [16, 2, 1]),
];

/// All groups in the order in which one thread runs them, each with its dword and its work-items.
fn groups(global: [u32; 3], local: [u32; 3]) -> Vec<([u32; 3], u32, u32)> {
    let [w, h, d] = std::array::from_fn(|i| global[i].div_ceil(local[i]));
    let ids = (0..d).flat_map(|z| (0..h).flat_map(move |y| (0..w).map(move |x| [x, y, z])));
    ids.map(|id| {
        let place = (0..3).map(|i| PLACES[i] * id[i]).sum();
        let size = |i: usize| local[i].min(global[i] - local[i] * id[i]);
        (id, place, size(0) * size(1) * size(2))
    })
    .collect()
}

fn program(engine: &Engine) -> Program {
    let program = engine.program_from_text("counts", COUNTS, Platform::Skl);
    program.unwrap()
}

/// A launch with room for some dwords, in which the group with a given one does not end.
fn launch(
    engine: &Engine,
    (global, local): ([u32; 3], [u32; 3]),
    (words, stop): (u32, u32),
) -> (Launch, Buffer) {
    let counts = engine.memory().alloc(u64::from(words) * 4).unwrap();
    let launch = Launch::new(global)
        .local(local)
        .input("STOP", stop.wrapping_mul(4).to_le_bytes().to_vec())
        .surface(0, counts.clone());
    (launch, counts)
}

/// Dwords that hold all counts.
const ROOM: u32 = 70 * 400;

/// No group's dword.
const NONE: u32 = u32::MAX >> 2;

#[test]
fn each_group_has_its_own_number() {
    for (name, engine) in engines() {
        let program = program(&engine);
        let kernel = &program.kernels()[0];
        for shape in SHAPES {
            let groups = groups(shape.0, shape.1);
            let mut expected = vec![0; ROOM as usize];
            for &(_, place, items) in &groups {
                expected[place as usize] += items;
            }
            for threads in [1, 2] {
                let (launch, counts) = launch(&engine, shape, (ROOM, NONE));
                let report = kernel.launch(&launch.threads(threads)).unwrap();
                assert_eq!(report.groups, groups.len() as u64);
                assert!(counts.to_vec_of::<u32>() == expected, "{name} {shape:?}");
            }
        }
    }
}

/// A group without its dword faults, and those after it: records name them, and a trap ends the launch in it.
#[test]
fn faults_name_their_group() {
    for shape in SHAPES {
        let groups = groups(shape.0, shape.1);
        for nth in [0, 1, 2, 3, 5, 12, groups.len() / 2, groups.len() - 1] {
            let Some(&(id, place, _)) = groups.get(nth) else {
                continue;
            };
            let faults: u32 = groups[nth..].iter().map(|(.., items)| items).sum();
            for oob in [OobPolicy::Report, OobPolicy::Trap] {
                let mut first: Option<Report> = None;
                for (name, engine) in engines() {
                    let program = program(&engine);
                    let (launch, _) = launch(&engine, shape, (place, NONE));
                    let report = program.kernels()[0].launch(&launch.oob(oob)).unwrap();
                    let what = format!("{name} {shape:?} {nth} {oob:?}");
                    assert!(report.faults.iter().any(|f| f.group == id), "{what}");
                    if oob == OobPolicy::Trap {
                        assert_eq!(report.status, LaunchStatus::Faulted, "{what}");
                        assert_eq!(report.groups, nth as u64, "{what}");
                    } else {
                        assert_eq!(report.fault_count, u64::from(faults), "{what}");
                    }
                    let first = first.get_or_insert_with(|| report.clone());
                    let [a, b] = [&*first, &report].map(|r| faults_as_text(&r.faults));
                    assert_eq!(a, b, "{what}");
                }
            }
        }
    }
}

/// Groups that ran before the one that is interrupted are counted, and have done their work.
#[test]
fn interrupted_in_a_row_that_follows() {
    for (name, engine) in engines() {
        let program = program(&engine);
        let kernel = &program.kernels()[0];
        for (shape, nth) in [(SHAPES[1], 30), (SHAPES[2], 80), (SHAPES[5], 15)] {
            let groups = groups(shape.0, shape.1);
            let (_, stop, _) = groups[nth];
            let (launch, counts) = launch(&engine, shape, (ROOM, stop));
            let interrupter = Interrupter::new();
            let launch = launch.interrupter(interrupter.clone());
            kernel.prepare(&launch).unwrap();
            let report = std::thread::scope(|s| {
                let launched = s.spawn(|| kernel.launch(&launch).unwrap());
                // The groups before it are done soon.
                let (_, place, items) = groups[nth - 1];
                for _ in 0..1000 {
                    if counts.to_vec_of::<u32>()[place as usize] == items {
                        break;
                    }
                    std::thread::sleep(Duration::from_millis(5));
                }
                interrupter.interrupt();
                launched.join().unwrap()
            });
            assert_eq!(report.status, LaunchStatus::Interrupted, "{name}");
            assert_eq!(report.groups, nth as u64, "{name} {shape:?}");
            let mut expected = vec![0; ROOM as usize];
            for &(_, place, items) in &groups[..nth] {
                expected[place as usize] += items;
            }
            assert!(counts.to_vec_of::<u32>() == expected, "{name} {shape:?}");
        }
    }
}
