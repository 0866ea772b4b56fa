//! The thread loop, barriers, interruption, inputs, faults, source lines.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, Ordering};

use visa_jit::backend::cranelift::CraneliftBackend;
use visa_jit::backend::{
    Backend, BackendError, CodegenEffort, CodegenOptions, Dispatch, Gather, OobPolicy,
};
use visa_jit::ssa::{Exchange, Space};
use visa_runtime::abi::{GroupCtx, Status, THREAD_DONE};

use crate::rig::{Guarded, NONE, Rig, SPEED, compile, function, install};

pub fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

const INPUTS: &str = r#"function "inputs" simd 16 frame 256

bb0:
  %0: i32 = input.r0[1]
  framestore[0] %0
  %1: i32 = input.r0[5]
  framestore[4] %1
  %2: i32 = input.sr0[0]
  framestore[8] %2
  %3: i32 = input.hwid
  framestore[12] %3
  %4: <16 x i16> = input.localids.y[3]
  framestore[16] %4
  %5: i16 = input.localid.z[2]
  framestore[48] %5
  %6: <16 x i1> = input.dispatchmask
  framestore[52] %6
  %8: i64 = input.tsc
  framestore[64] %8
  %9: <5 x i16> = input.payload[6]
  framestore[72] %9
  %10: i32 = input.r0[2]
  framestore[96] %10
  fence
  return
"#;

#[test]
fn inputs() {
    for options in [NONE, SPEED] {
        let code = install(&function(INPUTS), &options);
        let mut rig = Rig::new(2, 256);
        let bytes: Vec<u8> = (0..64).collect();
        rig.payload.write(&bytes);
        rig.threads[1].dispatch_mask = 0xFFFF_1234;
        assert_eq!(rig.run(code.entry()), Status::Done as u32);
        let out = rig.frames[1].read();
        assert_eq!(word(&out, 0), 101);
        assert_eq!(word(&out, 4), 1001);
        assert_eq!(word(&out, 8), 2001);
        assert_eq!(word(&out, 12), 3001);
        for i in 0..16u16 {
            let at = 16 + 2 * usize::from(i);
            assert_eq!(u16::from_le_bytes([out[at], out[at + 1]]), 32 + 3 + i);
        }
        assert_eq!(u16::from_le_bytes([out[48], out[49]]), 64 + 2);
        assert_eq!(word(&out, 52), 0x1234);
        assert_ne!(u64::from_le_bytes(out[64..72].try_into().unwrap()), 0);
        assert_eq!(&out[72..82], &bytes[6..16]);
        assert_eq!(&out[82..96], &[0; 14]);
        assert_eq!(word(&out, 96), 4001);
    }
}

const BARRIERS: &str = r#"function "barriers" simd 8 frame 64 states 2

bb0:
  %0: i32 = input.state
  switch %0, [bb1, bb2], bb3
bb1:
  %1: i32 = input.r0[5]
  framestore[0] %1
  suspend 1
bb2:
  %2: i32 = frameload[0]
  %3: i32 = add %2, %2
  framestore[0] %3
  suspend 2
bb3:
  %4: i32 = frameload[0]
  %5: i32 = const 5
  %6: i32 = add %4, %5
  framestore[0] %6
  return
"#;

#[test]
fn barriers_suspend_and_resume() {
    for options in [NONE, SPEED].map(|o| o.tuned(|t| t.dispatch = Dispatch::Thread)) {
        let code = install(&function(BARRIERS), &options);
        let mut rig = Rig::new(4, 64);
        rig.threads[2].state = THREAD_DONE;
        assert_eq!(rig.run(code.entry()), Status::Suspended as u32);
        assert_eq!(rig.threads[0].state, 1);
        assert_eq!(rig.run(code.entry()), Status::Suspended as u32);
        assert_eq!(rig.threads[3].state, 2);
        assert_eq!(rig.run(code.entry()), Status::Done as u32);
        for (i, frame) in rig.frames.iter().enumerate() {
            let want = if i == 2 { 0 } else { 2 * (1000 + i as u32) + 5 };
            assert_eq!(word(&frame.read(), 0), want);
            assert_eq!(rig.threads[i].state, THREAD_DONE);
        }
        assert_eq!(rig.run(code.entry()), Status::Done as u32);
    }
}

/// With whole groups, one call takes all threads from barrier to barrier: none is past one before all have come.
#[test]
fn one_call_takes_a_group_through_its_barriers() {
    let f = function(ROUNDS);
    for options in [NONE, SPEED].map(|options| whole_groups(&options)) {
        let code = install(&f, &options);
        let mut rig = Rig::new(4, 64);
        rig.threads[1].state = THREAD_DONE;
        let slm = Guarded::of(&[0; 64]);
        rig.place(Space::Slm, 0, &slm);
        assert_eq!(rig.run(code.entry()), Status::Done as u32);
        // Three threads count up, wait, read, wait, in five turns.
        for (i, frame) in rig.frames.iter().enumerate() {
            let frame = frame.read();
            let seen: Vec<u32> = (0..5).map(|turn| word(&frame, 16 + 4 * turn)).collect();
            let want = if i == 1 { [0; 5] } else { [3, 6, 9, 12, 15] };
            assert_eq!(seen, want, "thread {i}");
            assert_eq!(rig.threads[i].state, THREAD_DONE);
        }
        // Called for some of its threads, as in a launch with an order of its own, the code returns at each barrier.
        let mut rig = Rig::new(2, 64);
        rig.place(Space::Slm, 0, &slm);
        for (thread, state) in [(1, [0, 1]), (0, [1, 1])] {
            let one = thread..thread + 1;
            assert_eq!(rig.run_part(code.entry(), one), Status::Suspended as u32);
            assert_eq!([0, 1].map(|k| rig.threads[k].state), state);
        }
        // Between two rounds an interruption is seen, though nothing polls in the kernel.
        let mut rig = Rig::new(2, 64);
        rig.place(Space::Slm, 0, &slm);
        rig.interrupt.store(1, Ordering::Relaxed);
        assert_eq!(rig.run(code.entry()), Status::Interrupted as u32);
        assert_eq!(rig.threads.iter().map(|t| t.state).max(), Some(1));
    }
}

const ROUNDS: &str = r#"function "rounds" simd 8 frame 64 states 2
site 0 = atomic slm 4 "dword_atomic" line 1
site 1 = read slm 4 "gather_scaled" line 2

bb0:
  %0: i32 = input.state
  switch %0, [bb1, bb2, bb3], bb1
bb1:
  %1: i32 = const 0
  framestore[0] %1
  jump bb4
bb4:
  %2: i1 = const 1
  %3: i32 = const 0
  %4: i32 = atomic.slm.inc.i32[0] %2, %3
  fence
  suspend 1
bb2:
  %5: i1 = const 1
  %6: i32 = const 0
  %7: i32 = load.slm.i32x1[1] %5, %6
  %8: i32 = frameload[0]
  switch %8, [bb5, bb6, bb7, bb8], bb9
bb5:
  framestore[16] %7
  jump bb10
bb6:
  framestore[20] %7
  jump bb10
bb7:
  framestore[24] %7
  jump bb10
bb8:
  framestore[28] %7
  jump bb10
bb9:
  framestore[32] %7
  jump bb10
bb10:
  fence
  suspend 2
bb3:
  %9: i32 = frameload[0]
  %10: i32 = const 1
  %11: i32 = add %9, %10
  framestore[0] %11
  %12: i32 = const 5
  %13: i1 = icmp.ult %11, %12
  branch %13, bb4, bb11
bb11:
  return
"#;

/// Threads that wait at different barriers, or are finished, go on round by round in one call.
#[test]
fn one_call_takes_threads_past_different_barriers() {
    let f = function(PATHS);
    let state_of = [1, 1, 2, THREAD_DONE, 2, 1, THREAD_DONE, 1];
    for options in [NONE, SPEED].map(|options| whole_groups(&options)) {
        let code = install(&f, &options);
        let mut rig = Rig::new(8, 64);
        let slm = Guarded::of(&[0; 64]);
        rig.place(Space::Slm, 0, &slm);
        assert_eq!(rig.run(code.entry()), Status::Done as u32);
        for (i, frame) in rig.frames.iter().enumerate() {
            let frame = frame.read();
            let seen = [16, 20, 24].map(|at| word(&frame, at));
            // Eight came to a first barrier or the end, and six of them to the last one.
            let want = match state_of[i] {
                1 => [8, 0, 6],
                2 => [0, 8, 6],
                _ => [0; 3],
            };
            assert_eq!(seen, want, "thread {i}");
            assert_eq!(rig.threads[i].state, THREAD_DONE);
        }
        // Some of the threads, of which one in the middle is finished.
        let mut rig = Rig::new(8, 64);
        rig.place(Space::Slm, 0, &slm);
        let status = rig.run_part(code.entry(), 1..5);
        assert_eq!(status, Status::Suspended as u32);
        let states: Vec<_> = rig.threads.iter().map(|thread| thread.state).collect();
        assert_eq!(states[..], [0, 1, 2, THREAD_DONE, 2, 0, 0, 0]);
        // Threads that wait, between others that are finished.
        for (i, state) in [(0, THREAD_DONE), (5, THREAD_DONE), (6, THREAD_DONE)] {
            rig.threads[i].state = state;
        }
        rig.threads[7].state = 3;
        assert_eq!(rig.run(code.entry()), Status::Done as u32);
        assert!(rig.threads.iter().all(|thread| thread.state == THREAD_DONE));
        assert_eq!(word(&rig.frames[7].read(), 24), 9);
        assert_eq!(word(&rig.frames[2].read(), 24), 9);
        // Some that are all finished then.
        let mut rig = Rig::new(8, 64);
        rig.place(Space::Slm, 0, &slm);
        rig.threads[4].state = 3;
        rig.threads[5].state = 3;
        assert_eq!(rig.run_part(code.entry(), 4..6), Status::Done as u32);
    }
}

const PATHS: &str = r#"function "paths" simd 8 frame 64 states 3
site 0 = atomic slm 4 "dword_atomic" line 1
site 1 = read slm 4 "gather_scaled" line 2

bb0:
  %0: i1 = const 1
  %1: i32 = const 0
  %2: i32 = const 4
  %3: i32 = input.state
  switch %3, [bb1, bb2, bb3, bb4], bb1
bb1:
  %4: i32 = atomic.slm.inc.i32[0] %0, %1
  fence
  %5: i32 = input.thread
  switch %5, [bb5, bb5, bb6, bb7, bb6, bb5, bb7], bb5
bb5:
  suspend 1
bb6:
  suspend 2
bb7:
  return
bb2:
  %6: i32 = load.slm.i32x1[1] %0, %1
  framestore[16] %6
  jump bb8
bb3:
  %7: i32 = load.slm.i32x1[1] %0, %1
  framestore[20] %7
  jump bb8
bb8:
  %8: i32 = atomic.slm.inc.i32[0] %0, %2
  fence
  suspend 3
bb4:
  %9: i32 = load.slm.i32x1[1] %0, %2
  framestore[24] %9
  fence
  return
"#;

pub fn whole_groups(options: &CodegenOptions) -> CodegenOptions {
    options.tuned(|t| t.dispatch = Dispatch::Group)
}

/// Who goes on at a named barrier or an exchange is not known to the code.
#[test]
fn whole_groups_are_refused_where_threads_wait_for_single_ones() {
    let named = BARRIERS.replace(
        "suspend 1",
        "%9: i32 = const 32\n  %10: i32 = namedbarrier.pass %9, %9, %9, %9\n  suspend 1",
    );
    let mut exchanging = function(BARRIERS);
    exchanging.exchange = Some(Exchange {
        offset: 0,
        bytes: 16,
        lines: vec![1],
    });
    let backend = crate::generator::host();
    for (f, why) in [
        (function(&named), "named barriers"),
        (exchanging, "exchange"),
    ] {
        let error = backend.compile(&f, &whole_groups(&SPEED)).unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, BackendError::Strategy { .. }), "{said}");
        for part in [why, "barriers", "--dispatch thread"] {
            assert!(said.contains(part), "{said}");
        }
        backend.compile(&f, &SPEED).unwrap();
    }
}

const GROUPS: &str = r#"function "groups" simd 8 frame 16

bb0:
  %0: i32 = frameload[0]
  %1: i32 = input.r0[1]
  %2: i32 = input.r0[6]
  %3: i32 = input.r0[7]
  %4: i32 = const 1000
  %5: i32 = mul %2, %4
  %6: i32 = mul %3, %4
  %7: i32 = mul %6, %4
  %8: i32 = add %1, %5
  %9: i32 = add %8, %7
  %10: i32 = const 31
  %11: i32 = mul %0, %10
  %12: i32 = add %11, %9
  framestore[0] %12
  fence
  return
"#;

/// Where a call begins: x, y, z; groups after it in the row, whole rows after that, and groups in y; and where it ends.
type Rows = ([u32; 3], u32, (u32, u32), [u32; 3]);
const ROWS: [Rows; 9] = [
    ([101, 106, 107], 0, (0, 107), [101, 106, 107]),
    ([101, 106, 107], 5, (0, 200), [106, 106, 107]),
    ([3, 0, 0], 0, (1, 2), [3, 1, 0]),
    ([1, 4, 2], 2, (3, 8), [3, 7, 2]),
    ([1, 6, 2], 2, (2, 8), [3, 0, 3]),
    ([3, 7, 2], 0, (1, 8), [3, 0, 3]),
    ([0, 0, 5], 1, (1, 1), [1, 0, 6]),
    ([0, 0, 5], 0, (4, 1), [0, 0, 9]),
    ([2, 1, 0], 1, (7, 3), [3, 2, 2]),
];

#[test]
fn one_call_runs_the_groups_that_follow_and_rows_of_them() {
    for options in [NONE, SPEED] {
        let code = install(&function(GROUPS), &options);
        for (first, following, rows, last) in ROWS {
            let mut rig = Rig::new(3, 16);
            (rig.group, rig.following, rig.rows) = (first, following, rows);
            assert_eq!(rig.run(code.entry()), Status::Done as u32);
            assert_eq!(rig.group, last);
            let [mut x, mut y, mut z] = first;
            let mut hash = 0_u32;
            let mut ran = |id: [u32; 3]| {
                let number = id[0] + 1000 * id[1] + 1_000_000 * id[2];
                hash = hash.wrapping_mul(31).wrapping_add(number);
            };
            ran([x, y, z]);
            while [x, y, z] != last {
                x += 1;
                if x > first[0] + following {
                    (x, y) = (0, y + 1);
                    if y == rows.1 {
                        (y, z) = (0, z + 1);
                    }
                }
                ran([x, y, z]);
            }
            for frame in &rig.frames {
                assert_eq!(
                    word(&frame.read(), 0),
                    hash,
                    "{first:?} {following} {rows:?}"
                );
            }
        }
    }
}

const LOOPS: &str = r#"function "loops" simd 8 frame 16

bb0:
  %0: i32 = const 0
  %1: i32 = const 1
  %2: i32 = input.payload[0]
  jump bb1(%0)
bb1(%3: i32):
  poll
  %4: i32 = add %3, %1
  %5: i1 = icmp.eq %4, %2
  branch %5, bb2(%0), bb1(%4)
bb2(%6: i32):
  poll
  %7: i32 = add %6, %1
  %8: i1 = icmp.eq %7, %0
  branch %8, bb3, bb2(%7)
bb3:
  return
"#;

#[test]
fn interruption_leaves_every_loop() {
    for options in [NONE, SPEED] {
        let code = install(&function(LOOPS), &options);
        for bound in [1u32, 0] {
            let mut rig = Rig::new(1, 16);
            rig.payload.write(&bound.to_le_bytes());
            rig.interrupt.store(1, Ordering::Relaxed);
            assert_eq!(rig.run(code.entry()), Status::Interrupted as u32);
        }
        // The second loop, reached with the flag clear, sees it being set.
        let mut rig = Rig::new(1, 16);
        rig.payload.write(&1u32.to_le_bytes());
        let flag = &raw const rig.interrupt as usize;
        let setter = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(20));
            // SAFETY: `rig` lives until this thread is joined.
            let flag = unsafe { &*(flag as *const std::sync::atomic::AtomicU32) };
            flag.store(1, Ordering::Relaxed);
        });
        let status = rig.run(code.entry());
        setter.join().unwrap();
        // 2^32 turns take over a second; without the poll the loop would end as done.
        assert_eq!(status, Status::Interrupted as u32);
    }
}

/// What the fault helper was called with.
#[derive(Clone, Debug, PartialEq)]
struct Call {
    thread: u32,
    site: u32,
    lanes: u32,
    addresses: Vec<u64>,
    surface: u32,
}

static CALLS: Mutex<Vec<Call>> = Mutex::new(Vec::new());

unsafe extern "C" fn record(
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    lanes: u32,
    addresses: *const u64,
    surface: u32,
) -> u32 {
    // SAFETY: called by generated code with its own group and an array as long as the lanes.
    let (stop, addresses) = unsafe {
        let count = 32 - lanes.leading_zeros() as usize;
        let all = std::slice::from_raw_parts(addresses, count);
        ((*group).faults as usize as u32, all.to_vec())
    };
    CALLS.lock().unwrap().push(Call {
        thread,
        site,
        lanes,
        addresses,
        surface,
    });
    stop
}

const PADDED: &str = r#"function "padded" simd 8 frame 32
site 0 = read slm 4 "gather_scaled" line 12
site 1 = write slm 4 "scatter_scaled" line 13

bb0:
  %0: <3 x i1> = vconst [1 ...]
  %1: <3 x i32> = input.payload[0]
  %2: i32 = input.payload[12]
  %3: <3 x i32> = splat %2
  %4: <3 x i32> = add %1, %3
  %5: <3 x i32> = load.slm.i32x1[0] %0, %4
  framestore[0] %5
  store.slm.i32x1[1] %0, %4, %5
  return
"#;

unsafe extern "C" fn unexpected(
    _: *mut GroupCtx,
    _: u32,
    _: u32,
    _: u32,
    _: *const u64,
    _: u32,
) -> u32 {
    UNEXPECTED.fetch_add(1, Ordering::Relaxed);
    1
}

static UNEXPECTED: AtomicU32 = AtomicU32::new(0);

/// Three lanes are in a vector of four, of which the last is far outside.
#[test]
fn lanes_that_are_not_there_do_not_fault() {
    let f = function(PADDED);
    for gather in [Gather::Select, Gather::Call, Gather::Branch] {
        for oob in [OobPolicy::Report, OobPolicy::Trap] {
            let mut options = SPEED.tuned(|t| t.gather = gather);
            options.oob = oob;
            let code = install(&f, &options);
            let mut rig = Rig::new(1, 32);
            let slm = Guarded::of(&[1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0]);
            rig.place(Space::Slm, 0, &slm);
            rig.helpers.fault = unexpected;
            let words = [-1000i32, -996, -992, 1000];
            rig.payload.write(&words.map(i32::to_le_bytes).concat());
            assert_eq!(rig.run(code.entry()), Status::Done as u32, "{gather:?}");
            assert_eq!(UNEXPECTED.load(Ordering::Relaxed), 0, "{gather:?}");
            let frame = rig.frames[0].read();
            assert_eq!([0, 4, 8].map(|at| word(&frame, at)), [1, 2, 3]);
        }
    }
}

/// A store of what a chain of a given number of multiplications gives, under a mask, or to the frame.
fn chain(length: usize, masked: bool) -> usize {
    let mut text = String::from(
        "function \"chain\" simd 16 frame 64\nsite 0 = write slm 4 \"scatter_scaled\" line 1\n\nbb0:\n",
    );
    text.push_str("  %0: i32 = input.payload[0]\n  %1: <16 x i1> = bitstomask %0\n");
    let ramp: Vec<String> = (0..16).map(|i| (4 * i).to_string()).collect();
    text.push_str(&format!(
        "  %2: <16 x i32> = vconst [{}]\n",
        ramp.join(", ")
    ));
    // Of the thread: what all have in common is computed before any.
    text.push_str("  %3: <16 x i16> = input.localids.x[0]\n  %4: <16 x i32> = zext %3\n");
    for n in 5..5 + length {
        text.push_str(&format!("  %{n}: <16 x i32> = mul %{}, %4\n", n - 1));
    }
    let last = 4 + length;
    text.push_str(&match masked {
        true => format!("  store.slm.i32x1[0] %1, %2, %{last}\n"),
        false => format!("  framestore[0] %{last}\n"),
    });
    text.push_str("  return\n");
    compile(&function(&text), &SPEED).code.len()
}

/// Cranelift would put the chain into each of the ways to store.
#[test]
fn what_a_store_needs_is_computed_once() {
    let [masked, plain] = [true, false].map(|masked| chain(90, masked) - chain(30, masked));
    assert!(
        masked < plain + plain / 4,
        "{masked} bytes, {plain} without ways"
    );
}

const FAULTS: &str = r#"function "faults" simd 8 frame 64
site 0 = read surface 4 "gather4_scaled" line 12
site 1 = write slm 4 "scatter_scaled" line 13
site 2 = read surface 4 "oword_ld" line 14
site 3 = atomic surface 4 "dword_atomic" line 15

bb0:
  %0: i32 = input.payload[0]
  %1: <8 x i1> = bitstomask %0
  %2: <8 x i32> = vconst [0, 4, 8, 12, 16, 20, 24, 28]
  %3: i32 = const 3
  %4: <8 x i32>, %5: <8 x i32> = load.surface.i32x2[0] %1, %2, %3
  framestore[0] %4
  store.slm.i32x1[1] %1, %2, %4
  %6: i1 = const 1
  %7: i32 = const 12
  %8: <4 x i32> = blockload.surface.i32x4[2] %6, %7, %3
  %9: <8 x i32> = atomic.surface.inc.i32[3] %1, %2, %3
  framestore[32] %8
  return
"#;

#[test]
fn faults_are_reported() {
    let f = function(FAULTS);
    for (oob, codegen, stop) in [
        (OobPolicy::Report, CodegenEffort::Speed, 0),
        (OobPolicy::Report, CodegenEffort::None, 1),
        (OobPolicy::Trap, CodegenEffort::Speed, 1),
        (OobPolicy::Trap, CodegenEffort::None, 0),
    ] {
        let options = CodegenOptions {
            oob,
            ..CodegenOptions::default()
        }
        .tuned(|t| t.codegen = codegen);
        let code = install(&f, &options);
        let mut rig = Rig::new(2, 64);
        let surface = Guarded::new(20);
        let slm = Guarded::new(16);
        rig.bind(3, &surface);
        rig.place(Space::Slm, 0, &slm);
        rig.helpers.fault = record;
        rig.faults = stop as *mut u8;
        rig.payload.write(&0b1011_1001u32.to_le_bytes());
        CALLS.lock().unwrap().clear();
        let status = rig.run(code.entry());
        let calls = CALLS.lock().unwrap().clone();
        let first = Call {
            thread: 0,
            site: 0,
            lanes: 0b1011_0000,
            addresses: (0..8).map(|i| 4 * i).collect(),
            surface: 3,
        };
        assert_eq!(calls[0], first);
        if oob == OobPolicy::Trap && stop == 1 {
            assert_eq!(status, Status::Fault as u32);
            assert_eq!(calls.len(), 1);
            assert_eq!(rig.threads[0].state, 0);
            continue;
        }
        assert_eq!(status, Status::Done as u32);
        // Per thread: load, store, two block elements, atomic.
        assert_eq!(calls.len(), 10);
        assert_eq!((calls[1].site, calls[1].lanes), (1, 0b1011_0000));
        assert_eq!((calls[2].site, calls[2].lanes), (2, 1));
        assert_eq!(calls[2].addresses, [20]);
        assert_eq!(calls[3].addresses, [24]);
        assert_eq!((calls[4].site, calls[4].lanes), (3, 0b1010_0000));
        assert_eq!((calls[5].thread, calls[5].site), (1, 0));
        assert_eq!(word(&surface.read(), 0), 2);
    }
}

#[test]
fn lines_are_recorded() {
    let f = function(FAULTS.replace("2, %3\n", "2, %3  ; line 12\n").as_str());
    let object = compile(&f, &SPEED);
    let rows = object.lines.rows();
    assert!(rows.iter().any(|&(_, line)| line == 12));
    assert!(rows.is_sorted());
    let last = rows.last().unwrap();
    assert!((last.0 as usize) < object.code.len());
}

#[test]
fn the_interface_names_itself() {
    let backend = CraneliftBackend::host().unwrap();
    assert_eq!(backend.name(), "cranelift");
    assert!(backend.features().iter().any(|f| f.starts_with("has_")));
    let clif = backend.clif(&function(FAULTS), &SPEED).unwrap();
    assert!(clif.contains("block0"));
}
