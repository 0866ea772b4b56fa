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

/// `e^x` as the kernel's compiler writes it, times what `factors` says, with these limits of `x`.
fn exponential(factors: &[f32], limits: [f32; 2]) -> Function {
    let mut text = "function \"f\" simd 8 frame 64\n\nbb0:\n".to_owned();
    let mut next = 0;
    let mut line = |ty: &str, what: String| {
        text += &format!("  %{next}: <8 x {ty}> = {what}\n");
        next += 1;
        format!("%{}", next - 1)
    };
    macro_rules! value {
        ($($what:tt)*) => { line("f32", format!($($what)*)) };
    }
    macro_rules! number {
        ($n:expr) => {
            value!("vconst [{:?} ...]", $n)
        };
    }
    let x = value!("input.payload[0]");
    let log2_e = number!(std::f32::consts::LOG2_E);
    let scaled = value!("fmul {x}, {log2_e}");
    let k = value!("ftrunc {scaled}");
    let mut rest = x.clone();
    for part in [-0.693_145_75_f32, -1.428_606_8e-6] {
        let part = number!(part);
        rest = value!("fma {k}, {part}, {rest}");
    }
    let y = value!("fmul {rest}, {log2_e}");
    let one = number!(1f32);
    let mut powers = Vec::new();
    for exponent in [k, y] {
        let least = number!(-152f32);
        let below = line("i1", format!("fcmp.lt {exponent}, {least}"));
        let v = value!("select {below}, {least}, {exponent}");
        let most = number!(130f32);
        let above = line("i1", format!("fcmp.lt {most}, {v}"));
        let v = value!("select {above}, {most}, {v}");
        let n = value!("fnearest {v}");
        let difference = value!("fsub {v}, {n}");
        let mut p = number!(0.000_153_533_69_f32);
        let coefficients = [0.001_339_890_2, 0.009_618_382, 0.055_503_413, 0.240_226_48];
        for c in coefficients.into_iter().chain([std::f32::consts::LN_2]) {
            let c: f32 = c;
            let c = number!(c);
            p = value!("fma {p}, {difference}, {c}");
        }
        p = value!("fma {p}, {difference}, {one}");
        powers.push(value!("fscale {p}, {n}"));
    }
    let mut product = value!("fmul {}, {}", powers[0], powers[1]);
    for &factor in factors {
        let factor = number!(factor);
        product = value!("fmul {product}, {factor}");
    }
    let (zero, infinity) = (number!(0f32), number!(f32::INFINITY));
    let [low, high] = limits.map(|x| number!(x));
    let below = line("i1", format!("fcmp.lt {x}, {low}"));
    let v = value!("select {below}, {zero}, {product}");
    let above = line("i1", format!("fcmp.gt {x}, {high}"));
    let v = value!("select {above}, {infinity}, {v}");
    text += &format!("  framestore[0] {v}\n  return\n");
    parse(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
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

/// The function after the passes that come before, and with `exponents`.
fn with_and_without(f: &Function) -> [Function; 2] {
    let mut before = f.clone();
    for pass in ["fold", "dce", "gvn"] {
        assert!(run_pass(&mut before, pass));
    }
    let mut after = before.clone();
    assert!(run_pass(&mut after, "exponents") && run_pass(&mut after, "dce"));
    visa_jit::ssa::verify(&after).unwrap_or_else(|e| panic!("{}\n{after}", e[0]));
    [before, after]
}

#[test]
fn a_product_of_two_powers_scales_once() {
    // Where the integral part of the exponent changes, and next to it.
    let near = (-160..140).flat_map(|k| {
        let x = (f64::from(k) * std::f64::consts::LN_2) as f32;
        let steps = (-40..=40).map(move |n| x.to_bits().wrapping_add_signed(n));
        let between = (1..16).map(move |n| (x + n as f32 * 0.0433).to_bits());
        steps.chain(between)
    });
    let far = [
        87.0, 88.5, 89.0, 103.9, 104.5, 105.0, 106.0, 999.0, 1001.0, 1e5, 1e9, 2.3e38,
    ]
    .into_iter()
    .flat_map(|x: f32| [x, -x].map(f32::to_bits));
    let all: Vec<u32> = near.chain(far).chain(numbers()).collect();
    for factors in [vec![], vec![0.398_942_3], vec![3.0, 1e-30]] {
        let [before, after] = with_and_without(&exponential(&factors, [-105.0, 105.0]));
        let text = after.to_string();
        assert_eq!(text.matches("fscale").count(), 1, "{text}");
        assert!(!text.contains("fcmp.gt"), "{text}");
        for numbers in all.chunks_exact(LANES) {
            let (old, new) = (results(&before, numbers), results(&after, numbers));
            assert_eq!(old, new, "{factors:?} {numbers:x?}");
        }
    }
}

#[test]
fn a_product_of_two_powers_stays_where_its_limits_or_factors_matter() {
    let kept = [
        (vec![], [-103.0, 105.0]),
        (vec![], [-105.0, 89.0]),
        (vec![], [-105.0, 2000.0]),
        (vec![-1.0], [-105.0, 105.0]),
        (vec![0.0], [-105.0, 105.0]),
        (vec![2.0, 2.0, 2.0], [-105.0, 105.0]),
    ];
    for (factors, limits) in kept {
        let [_, after] = with_and_without(&exponential(&factors, limits));
        let scales = after.to_string().matches("fscale").count();
        assert_eq!(scales, 2, "{factors:?} {limits:?}\n{after}");
    }
}
