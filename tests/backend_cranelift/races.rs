//! Checks of races that name their pointer: when the runtime is asked, and when code leaves.

use std::cell::Cell;

use visa_jit::ssa::shape::{Affine, Shape};
use visa_jit::ssa::{Function, Value};
use visa_runtime::abi::{GroupCtx, Pointee, Status};

use crate::rig::{NONE, Rig, SPEED, function, install};

thread_local! {
    static CALLS: Cell<u32> = const { Cell::new(0) };
}

fn count() -> u32 {
    CALLS.set(CALLS.get() + 1);
    0
}

unsafe extern "C" fn race(
    _: *mut GroupCtx,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
    _: *const u8,
) -> u32 {
    count()
}

unsafe extern "C" fn race_affine(
    _: *mut GroupCtx,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
    _: u32,
    _: u64,
    _: u64,
    _: *const u8,
) -> u32 {
    count()
}

/// How addresses run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Lanes {
    /// Affine, as the table of shapes knows.
    Affine,
    /// The same addresses, of which nothing is known.
    Any,
    /// One.
    Scalar,
}

/// First address of the buffer, and its bytes.
const BUFFER: Pointee = Pointee {
    start: 0x7000_0000_1000,
    bytes: 64,
};

/// Runs a check of an access whose first lane is at an offset from the buffer's start, under an execution mask. Returns how often the runtime
/// was called, and the status.
fn checked(access: &str, lanes: Lanes, from: i64, mask: u32) -> (u32, u32) {
    let values = if access == "write" { ", %6" } else { "" };
    let check = match lanes {
        Lanes::Scalar => {
            let values = values.replace("%6", "%8");
            format!(
                "  %7: i1 = extractlane[0] %0\n  %8: i32 = extractlane[0] %6\n  check.{access}.flat.i32x1.p0[0] %7, %1{values}\n"
            )
        }
        _ => format!("  check.{access}.flat.i32x1.p0[0] %0, %5{values}\n"),
    };
    let distances = match lanes {
        Lanes::Any => "input.payload[64]".to_owned(),
        _ => {
            let each: Vec<String> = (0..16).map(|lane| (4 * lane).to_string()).collect();
            format!("vconst [{}]", each.join(", "))
        }
    };
    let text = format!(
        "function \"races\" simd 16 frame 64\nsite 0 = read flat 4 \"lsc_load\" line 1\n\nbb0:\n  %0: <16 x i1> = input.dispatchmask\n  \
         %9: i64 = input.payload[0]\n  %10: i64 = input.payload[8]\n  %1: i64 = add %9, %10\n  %3: <16 x i64> = splat %1\n  \
         %4: <16 x i64> = {distances}\n  %5: <16 x i64> = add %3, %4\n  %6: <16 x i32> = input.payload[256]\n{check}  return\n"
    );
    let results = [NONE, SPEED].map(|options| {
        let mut f = function(&text);
        if lanes == Lanes::Affine {
            let check = *f.block(Function::ENTRY).insts.last().unwrap();
            let addr = Some(Affine {
                base: Value(1),
                stride: 4,
                guard: None,
            });
            let shape = Shape {
                addr,
                ..Shape::default()
            };
            f.shapes.insert(check, shape);
        }
        let code = install(&f, &options);
        let mut rig = Rig::new(1, 64);
        rig.helpers.race = race;
        rig.helpers.race_affine = race_affine;
        rig.threads[0].dispatch_mask = mask;
        let mut payload = vec![0; 512];
        payload[..8].copy_from_slice(&BUFFER.start.to_le_bytes());
        payload[8..16].copy_from_slice(&from.to_le_bytes());
        for lane in 0..16u64 {
            let at = 64 + 8 * lane as usize;
            payload[at..at + 8].copy_from_slice(&(4 * lane).to_le_bytes());
        }
        rig.payload.write(&payload);
        let is_read = access == "read";
        rig.invariant = vec![if is_read { BUFFER } else { Pointee::default() }];
        rig.confined = vec![if is_read { Pointee::default() } else { BUFFER }];
        CALLS.set(0);
        let status = rig.run(code.entry());
        (CALLS.get(), status)
    });
    assert_eq!(results[0], results[1]);
    results[0]
}

const ALL: u32 = 0xFFFF;
const DONE: u32 = Status::Done as u32;
const SUSPECT: u32 = Status::Suspect as u32;

#[test]
fn reads_of_buffers_that_are_not_written_are_no_calls() {
    for lanes in [Lanes::Affine, Lanes::Any, Lanes::Scalar] {
        let read = |from, mask| checked("read", lanes, from, mask);
        assert_eq!(read(0, ALL), (0, DONE), "{lanes:?}");
        for from in [-4, 4, 64, 1 << 40] {
            let inside = lanes == Lanes::Scalar && from == 4;
            assert_eq!(
                read(from, ALL),
                (u32::from(!inside), DONE),
                "{lanes:?} {from}"
            );
        }
        // Only one of the lanes is outside. One test of all lanes does not look which.
        let expected = u32::from(lanes == Lanes::Affine);
        assert_eq!(read(4, ALL >> 1), (expected, DONE), "{lanes:?}");
    }
    // Lanes 1 to 15 are inside, and the first one is not enabled.
    assert_eq!(checked("read", Lanes::Any, -4, ALL - 1), (0, DONE));
}

#[test]
fn writes_do_not_leave_their_buffer() {
    for access in ["write", "awrite", "aread"] {
        for lanes in [Lanes::Affine, Lanes::Any, Lanes::Scalar] {
            let write = |from, mask| checked(access, lanes, from, mask);
            let what = format!("{access} {lanes:?}");
            assert_eq!(write(0, ALL), (1, DONE), "{what}");
            for from in [-4, 4, 64, 1 << 40] {
                let inside = lanes == Lanes::Scalar && from == 4;
                let expected = if inside { (1, DONE) } else { (0, SUSPECT) };
                assert_eq!(write(from, ALL), expected, "{what} {from}");
            }
            // Bits 63:48 do not count.
            assert_eq!(write(1 << 62, ALL), (1, DONE), "{what}");
            assert_eq!(write(4, ALL >> 1), (1, DONE), "{what}");
            assert_eq!(write(-4, ALL - 1), (1, DONE), "{what}");
            assert_eq!(write(1 << 40, 0), (1, DONE), "{what}");
        }
    }
}
