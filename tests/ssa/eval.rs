//! The evaluator on memory, barriers and fuel; lane-wise meaning is tested next to its definition.

use visa_jit::passes::run_pass;
use visa_jit::ssa::eval::{Bytes, ElementAddr, Inputs, Memory, Outcome, Thread, exchange, run};
use visa_jit::ssa::{Function, Space, parse, verify};

fn function(header: &str, body: &str) -> Function {
    let site = "site 0 = read surface 4 \"gather\" line 1";
    let text = format!("function \"f\" simd 8 {header}\n{site}\n\nbb0:\n{body}");
    let f = parse(&text).unwrap();
    verify(&f).unwrap();
    f
}

fn execute(f: &Function, memory: &mut Bytes) -> (Outcome, Thread) {
    let inputs = Inputs {
        dispatch_mask: 0b1111_0111,
        payload: vec![1, 2, 3, 4, 5],
        ..Inputs::default()
    };
    let mut thread = Thread::new(f);
    let outcome = run(f, &inputs, &mut thread, memory, 1000);
    (outcome, thread)
}

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .chunks(4)
        .map(|c| u32::from_le_bytes(c.try_into().unwrap()))
        .collect()
}

#[test]
fn elements_outside_read_zero_and_are_not_written() {
    let f = function(
        "frame 64",
        "  %0: <8 x i1> = input.dispatchmask
  %1: <8 x i32> = vconst [0, 4, 8, 0, 10, 13, 0xfffffffc, 12]
  %2: i32 = const 1
  %3: <8 x i32>, %4: <8 x i32> = load.surface.i32x2[0] %0, %1, %2
  framestore[0] %3
  framestore[32] %4
  %5: <8 x i32> = vconst [-1 ...]
  store.surface.i32x1[0] %0, %1, %2, %5
  return
",
    );
    let memory = (0..16).map(|n| n as u8).collect();
    let mut memory = Bytes {
        surfaces: vec![vec![], memory],
        ..Bytes::default()
    };
    let (outcome, thread) = execute(&f, &mut memory);
    assert_eq!(outcome, Outcome::Done);
    let (a, b, c, d) = (0x0302_0100, 0x0706_0504, 0x0b0a_0908, 0x0f0e_0d0c);
    let first = [a, b, c, 0, 0x0d0c_0b0a, 0, 0, d];
    // The second element of lane 6 is at 2^32, not back at offset 0.
    let second = [b, c, d, 0, 0, 0, 0, 0];
    assert_eq!(words(&thread.frame), [first, second].concat());
    assert_eq!(memory.surfaces[1], [0xff; 16]);
}

#[test]
fn atomics_go_lane_by_lane() {
    let f = function(
        "frame 96",
        "  %0: <8 x i1> = input.dispatchmask
  %1: <8 x i32> = vconst [0 ...]
  %2: <8 x i32> = vconst [1, 2, 3, 4, 5, 6, 7, 8]
  %3: <8 x i32> = atomic.slm.add.i32[0] %0, %1, %2
  framestore[0] %3
  %4: <8 x i32> = atomic.slm.predec.i32[0] %0, %1
  framestore[32] %4
  %5: <8 x i32> = vconst [25 ...]
  %6: <8 x i32> = atomic.slm.cmpxchg.i32[0] %0, %1, %5, %2
  framestore[64] %6
  return
",
    );
    let mut memory = Bytes {
        slm: vec![0; 4],
        ..Bytes::default()
    };
    let (_, thread) = execute(&f, &mut memory);
    let add = [0, 1, 3, 0, 6, 11, 17, 24];
    let predec = [31, 30, 29, 0, 28, 27, 26, 25];
    let exchange = [25, 1, 1, 0, 1, 1, 1, 1];
    assert_eq!(words(&thread.frame), [add, predec, exchange].concat());
    assert_eq!(memory.slm, [1, 0, 0, 0]);
}

#[test]
fn register_storage_lies_in_the_frame() {
    let f = function(
        "regs 8 frame 16",
        "  %0: <8 x i1> = input.dispatchmask
  %1: <8 x i32> = vconst [0, 1, 2, 3, 4, 5, 6, 9]
  %2: <8 x i8> = vconst [10, 11, 12, 13, 14, 15, 16, 17]
  store.regs.i8x1[0] %0, %1, %2
  %3: i1 = const 1
  %4: i32 = const 4
  %5: <2 x i32> = blockload.regs.i32x2[0] %3, %4
  framestore[8] %5
  return
",
    );
    let (_, thread) = execute(&f, &mut Bytes::default());
    let regs = [10, 11, 12, 0, 14, 15, 16, 0];
    assert_eq!(thread.frame, [regs, [14, 15, 16, 0, 0, 0, 0, 0]].concat());
}

#[test]
fn a_thread_resumes_after_its_barrier() {
    let f = function(
        "frame 8 states 2",
        "  %0: i32 = input.state
  switch %0, [bb1, bb2, bb3], bb1
bb1:
  %1: i32 = const 5
  framestore[0] %1
  suspend 1
bb2:
  %2: i32 = frameload[0]
  %3: i32 = add %2, %2
  framestore[4] %3
  suspend 2
bb3:
  return
",
    );
    let mut thread = Thread::new(&f);
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        let outcome = run(
            &f,
            &Inputs::default(),
            &mut thread,
            &mut Bytes::default(),
            100,
        );
        outcomes.push((outcome, thread.state));
    }
    let suspended = Outcome::Suspended;
    assert_eq!(
        outcomes,
        [(suspended, 1), (suspended, 2), (Outcome::Done, 2)]
    );
    assert_eq!(words(&thread.frame), [5, 10]);
}

#[test]
fn a_thread_goes_on_behind_a_barrier_with_its_values() {
    let f = function(
        "frame 8",
        "  %0: i32 = const 5
  barrier
  jump bb1
bb1:
  %1: i32 = add %0, %0
  framestore[0] %1
  barrier
  framestore[4] %0
  return
",
    );
    let mut thread = Thread::new(&f);
    let mut step = || {
        let inputs = Inputs::default();
        let outcome = run(&f, &inputs, &mut thread, &mut Bytes::default(), 100);
        (outcome, thread.state, words(&thread.frame))
    };
    let suspended = Outcome::Suspended;
    assert_eq!(step(), (suspended, 1, vec![0, 0]));
    assert_eq!(step(), (suspended, 2, vec![10, 0]));
    assert_eq!(step(), (Outcome::Done, 2, vec![10, 5]));
}

/// Before the pass `suspend` and after it.
#[test]
fn two_threads_exchange_values() {
    let mut f = function(
        "frame 12",
        "  %0: i32 = input.hwid
  barrier
  %1: i32 = exchange %0
  framestore[0] %1
  %2: i32 = add %1, %1
  %3: i32 = exchange %2
  framestore[4] %3
  framestore[8] %0
  return
",
    );
    for _ in 0..2 {
        let mut threads = [5, 9].map(|hw_id| {
            let hw_id = Inputs {
                hw_id,
                ..Inputs::default()
            };
            (hw_id, Thread::new(&f))
        });
        let mut met = Vec::new();
        for _ in 0..4 {
            for (inputs, thread) in &mut threads {
                run(&f, inputs, thread, &mut Bytes::default(), 100);
            }
            let [(_, x), (_, y)] = &mut threads;
            met.push(exchange(&f, x, y));
        }
        // At the end, a thread keeps the state it had.
        assert_eq!(met[..3], [false, true, true]);
        let [x, y] = threads.map(|(_, t)| words(&t.frame[..12]));
        assert_eq!((x, y), (vec![9, 10, 5], vec![5, 18, 9]));
        run_pass(&mut f, "suspend");
        verify(&f).unwrap();
        let e = f.exchange.as_ref().unwrap();
        assert_eq!((f.states, e.lines.len()), (3, 2));
    }
}

#[test]
fn fuel_ends_an_endless_loop() {
    let f = function("", "  jump bb1\nbb1:\n  poll\n  jump bb1\n");
    assert_eq!(execute(&f, &mut Bytes::default()).0, Outcome::OutOfFuel);
}

#[test]
fn inputs_reach_the_program() {
    let f = function(
        "frame 16",
        "  %0: <2 x i16> = input.payload[2]
  framestore[0] %0
  %1: i32 = input.payload[4]
  framestore[4] %1
  %2: <8 x i1> = input.dispatchmask
  framestore[8] %2
  %3: i64 = input.tsc
  %4: i64 = input.tsc
  %5: i1 = icmp.ne %3, %4
  framestore[12] %5
  return
",
    );
    let (_, thread) = execute(&f, &mut Bytes::default());
    let frame = [3, 4, 5, 0, 5, 0, 0, 0, 0b1111_0111, 0, 0, 0, 1, 0, 0, 0];
    assert_eq!(thread.frame, frame);
}

#[test]
fn device_memory_starts_at_its_base() {
    let mut memory = Bytes {
        flat: vec![7; 8],
        ..Bytes::default()
    };
    let mut at = |address| {
        let place = ElementAddr {
            space: Space::Flat,
            surface: 0,
            address,
        };
        memory.load(place, 4)
    };
    assert_eq!(at(Bytes::FLAT_BASE + 4), Some(0x0707_0707));
    assert_eq!(at(Bytes::FLAT_BASE + 5), None);
    assert_eq!(at(Bytes::FLAT_BASE - 1), None);
    assert_eq!(at(u64::MAX), None);
    // The upper bits are a tag.
    assert_eq!(at((Bytes::FLAT_BASE + 4) | (5 << 48)), Some(0x0707_0707));
}
