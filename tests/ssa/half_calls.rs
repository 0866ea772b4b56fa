//! Arithmetic of halves in wider formats is what the helper's operations are: on numbers of every exponent, and next to each other.

use visa_jit::passes::run_pass;
use visa_jit::ssa::eval::{Bytes, Inputs, Outcome, Thread, run};
use visa_jit::ssa::{Function, parse};
use visa_test_common::Rng;

const LANES: usize = 8;

/// `operation` on three vectors of halves in `lane`.
fn function(lane: &str, operation: &str) -> Function {
    let mut text = "function \"f\" simd 8 frame 256\n\nbb0:\n".to_owned();
    for n in 0..3 {
        text += &format!("  %{n}: <8 x i16> = input.payload[{}]\n", 16 * n);
    }
    for n in 0..3 {
        text += &format!("  %{}: <8 x {lane}> = f16tof %{n}\n", 3 + n);
    }
    text += &format!("  %6: <8 x {lane}> = {operation}\n  %7: <8 x i16> = ftof16 %6\n");
    text += "  framestore[0] %7\n  return\n";
    parse(&text).unwrap()
}

/// Numbers of every exponent, with many or few digits.
fn half(rng: &mut Rng) -> u16 {
    let bits = rng.bits();
    let fraction = match bits >> 16 & 3 {
        0 => bits & 7,
        1 => (bits & 7) | 0x3f8,
        2 => (bits & 7) << 7,
        _ => bits & 0x3ff,
    };
    ((bits >> 20 & 0x3f) as u16 * 0x400) | fraction as u16
}

fn results(f: &Function, payload: Vec<u8>) -> Vec<u16> {
    let inputs = Inputs {
        payload,
        dispatch_mask: 0xff,
        ..Inputs::default()
    };
    let mut thread = Thread::new(f);
    let outcome = run(f, &inputs, &mut thread, &mut Bytes::default(), 100);
    assert_eq!(outcome, Outcome::Done);
    let halves = thread.frame.chunks(2).take(LANES);
    halves.map(|b| u16::from_le_bytes([b[0], b[1]])).collect()
}

fn agree(lane: &str, operation: &str) {
    let before = function(lane, operation);
    let mut after = before.clone();
    assert!(run_pass(&mut after, "half-calls"));
    assert!(after.to_string().contains("fpenv."), "{after}");
    let is_nan = |h: u16| h & 0x7fff > 0x7c00;
    let mut rng = Rng::new(7);
    for _ in 0..visa_test_common::share(4000, 4) {
        let mut halves: Vec<u16> = (0..3 * LANES).map(|_| half(&mut rng)).collect();
        // An addend that the product nearly takes away.
        halves[2 * LANES] = halves[0] ^ 0x8000;
        halves[LANES] = 0x3c00 + (rng.bits() & 3) as u16;
        let payload: Vec<u8> = halves.iter().flat_map(|h| h.to_le_bytes()).collect();
        let (old, new) = (results(&before, payload.clone()), results(&after, payload));
        for (old, new) in old.into_iter().zip(new) {
            let same = old == new || (is_nan(old) && is_nan(new));
            assert!(same, "{lane} {operation} {halves:x?}: {old:#x}, {new:#x}");
        }
    }
}

#[test]
fn wider_formats_round_as_halves_do() {
    agree("f64", "fma %3, %4, %5");
    for lane in ["f32", "f64"] {
        agree(lane, "fadd %3, %4");
        agree(lane, "fmul %3, %4");
    }
}
