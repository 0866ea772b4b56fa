//! Powers of two without limits of the exponent are those with limits, for every kind of exponent.

use visa_jit::passes::run_pass;
use visa_jit::ssa::eval::{Bytes, Inputs, Outcome, Thread, run};
use visa_jit::ssa::{Function, parse};
use visa_test_common::Rng;

const LANES: usize = 8;

/// `2^x` as the expansion of `exp` makes it, `x` being what is given by the first operation of a number.
fn function(first: &str) -> Function {
    let mut text = format!(
        "function \"f\" simd 8 frame 64

bb0:
  %0: <8 x f32> = input.payload[0]
  %1: <8 x f32> = {first}
  %2: <8 x f32> = vconst [-152.0 ...]
  %3: <8 x i1> = fcmp.lt %1, %2
  %4: <8 x f32> = select %3, %2, %1
  %5: <8 x f32> = vconst [130.0 ...]
  %6: <8 x i1> = fcmp.lt %5, %4
  %7: <8 x f32> = select %6, %5, %4
  %8: <8 x f32> = fnearest %7
  %9: <8 x f32> = fsub %7, %8
  %10: <8 x f32> = vconst [0.000153533692 ...]
"
    );
    let coefficients = [
        0.001_339_890_2,
        0.009_618_382,
        0.055_503_413,
        0.240_226_48,
        std::f32::consts::LN_2,
        1.0,
    ];
    for (n, c) in coefficients.into_iter().enumerate() {
        let (sum, at) = (10 + 2 * n, 11 + 2 * n);
        let c: f32 = c;
        text += &format!("  %{at}: <8 x f32> = vconst [{c:?} ...]\n");
        text += &format!("  %{}: <8 x f32> = fma %{sum}, %9, %{at}\n", at + 1);
    }
    text += "  %23: <8 x f32> = fscale %22, %8\n  framestore[0] %23\n  return\n";
    parse(&text).unwrap()
}

fn results(f: &Function, numbers: &[u32]) -> Vec<u32> {
    let inputs = Inputs {
        payload: numbers.iter().flat_map(|x| x.to_le_bytes()).collect(),
        dispatch_mask: 0xff,
        ..Inputs::default()
    };
    let mut thread = Thread::new(f);
    let outcome = run(f, &inputs, &mut thread, &mut Bytes::default(), 100);
    assert_eq!(outcome, Outcome::Done);
    let words = thread.frame.chunks(4).take(LANES);
    words
        .map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]))
        .collect()
}

/// Numbers around and far beyond the limits, and any.
fn numbers() -> Vec<u32> {
    let near = (-160..140)
        .flat_map(|n| [-0.501, -0.5, -1e-4, 0.0, 1e-4, 0.5, 0.501].map(|d| n as f32 + d));
    let large = [
        1e3,
        1e9,
        1e30,
        f32::MAX,
        f32::INFINITY,
        f32::NAN,
        0.0,
        1e-40,
    ];
    let all = near.chain(large.into_iter().flat_map(|x| [x, -x]));
    let mut rng = Rng::new(3);
    let random = (0..4000).map(move |_| rng.bits() as u32);
    all.map(f32::to_bits).chain(random).collect()
}

#[test]
fn exponents_beyond_the_limits_give_zero_and_infinity() {
    for (first, passes, left) in [
        ("fadd %0, %0", "exponents dce", "fma"),
        // An integer has no polynomial.
        ("ftrunc %0", "fold dce exponents dce", "fscale"),
    ] {
        let before = function(first);
        let mut after = before.clone();
        for pass in passes.split(' ') {
            assert!(run_pass(&mut after, pass));
        }
        let text = after.to_string();
        assert!(!text.contains("select") && text.contains(left), "{text}");
        assert_eq!(text.contains("fma"), left == "fma", "{text}");
        for numbers in numbers().chunks_exact(LANES) {
            let (old, new) = (results(&before, numbers), results(&after, numbers));
            assert_eq!(old, new, "{first} {numbers:x?}");
        }
    }
}
