//! Runs a function with the evaluator, through its barriers, and says what is left behind.

use crate::generate::FRAME;
use visa_jit::passes::{PassOptions, optimize, run_pass};
use visa_jit::ssa::eval::{Bytes, Inputs, Outcome, Thread, exchange, run};
use visa_jit::ssa::{Function, verify};
use visa_test_common::Rng;

/// What a run left behind.
#[derive(Debug, PartialEq)]
pub struct Observed {
    outcome: Outcome,
    /// Barriers passed.
    waits: u32,
    stamps: u64,
    /// What the program itself put there, without storage of registers: nothing reads that any more.
    frame: Vec<u8>,
    memory: Bytes,
}

/// Barriers that a run is followed through.
const MAX_WAITS: u32 = 200;

/// Instructions that are executed between two waits, at most.
pub const FUEL: u64 = 20_000;

/// Checks on some inputs that a function means the same after these passes, and after the whole pipeline. Returns what these passes leave.
pub fn unchanged_by(passes: &[&str], f: &Function, seed: u64, inputs: u64) -> Function {
    verify(f).unwrap_or_else(|e| panic!("seed {seed}: {}\n{f}", e[0]));
    let mut g = f.clone();
    for pass in passes {
        assert!(run_pass(&mut g, pass), "no pass {pass}");
        verify(&g).unwrap_or_else(|e| panic!("seed {seed}, {pass}: {}\n{f}\n{g}", e[0]));
    }
    let mut h = f.clone();
    optimize(&mut h, &PassOptions::default()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
    for s in seed..seed + inputs {
        let want = observe(f, s);
        assert!(want == observe(&g, s), "seed {seed}\n{f}\n{g}");
        assert!(want == observe(&h, s), "seed {seed}\n{f}\n{h}");
    }
    g
}

/// Runs a function on inputs made from `seed`. Where it waits, other threads write to memory, and it exchanges values with a thread
/// just like itself.
pub fn observe(f: &Function, seed: u64) -> Observed {
    observe_for(f, seed, FUEL)
}

/// The same for some number of instructions.
pub fn observe_for(f: &Function, seed: u64, fuel: u64) -> Observed {
    let mut rng = Rng::new(seed);
    let mut bytes = |n: usize| -> Vec<u8> { (0..n).map(|_| rng.bits() as u8).collect() };
    let mut memory = Bytes {
        surfaces: vec![bytes(256), bytes(64)],
        slm: bytes(128),
        scratch: bytes(64),
        flat: bytes(64),
        args: bytes(64),
    };
    let payload = bytes(64);
    let ids = |step: u16| std::array::from_fn(|lane| lane as u16 * step + step);
    let mut inputs = Inputs {
        local_ids: [ids(1), ids(0), ids(3)],
        dispatch_mask: rng.bits() as u32 | rng.bits() as u32,
        payload,
        thread: (seed % (1024 / u64::from(f.simd.max(1)))) as u32,
        ..Inputs::default()
    };
    if seed.is_multiple_of(3) {
        inputs.dispatch_mask = u32::MAX;
    }
    let mut thread = Thread::new(f);
    let mut waits = 0;
    let outcome = loop {
        let outcome = run(f, &inputs, &mut thread, &mut memory, fuel);
        if outcome != Outcome::Suspended || waits == MAX_WAITS {
            break outcome;
        }
        waits += 1;
        let mut twin = thread.clone();
        exchange(f, &mut thread, &mut twin);
        for byte in memory.slm.iter_mut().chain(&mut memory.surfaces[0]) {
            *byte = byte.wrapping_mul(5).wrapping_add(waits as u8);
        }
    };
    thread.frame.truncate(FRAME as usize);
    let registers = thread.frame.len().min(f.regs_bytes as usize);
    thread.frame.drain(..registers);
    Observed {
        outcome,
        waits,
        stamps: thread.stamps,
        frame: thread.frame,
        memory,
    }
}
