//! Divisions without code for unusual divisors are those with it, for every kind of divisor.

use visa_jit::passes::{PassOptions, optimize};
use visa_jit::ssa::Function;
use visa_test_common::{Rng, share};

use crate::writer::{Text, changed, results};

const PASS: &str = "usual-divisors";
/// Vectors of a function's inputs.
const INPUTS: usize = 4;

/// What the compiler writes for a division, and what is near it.
#[derive(Clone, Copy)]
struct Form {
    large: u32,
    down: u32,
    up: u32,
    mantissa: u32,
    /// What takes the place of quotients of equal numbers.
    one: f32,
}

const WRITTEN: Form = Form {
    large: 200 << 23,
    down: 0x2f80_0000,
    up: 0x4f80_0000,
    mantissa: 0x7f_ffff,
    one: 1.0,
};

impl Text {
    fn division(&mut self, a: &str, b: &str, form: Form) -> String {
        let bits = self.line("i32", &format!("bitcast {b}"));
        let exponents = self.number("i32", 0x7f80_0000);
        let exponent = self.line("i32", &format!("and {bits}, {exponents}"));
        let zero = self.number("i32", 0);
        let small = self.line("i1", &format!("icmp.eq {exponent}, {zero}"));
        let (up, one) = (self.float(form.up), self.float(1f32.to_bits()));
        let rest = self.line("f32", &format!("select {small}, {up}, {one}"));
        let limit = self.number("i32", form.large);
        let large = self.line("i1", &format!("icmp.uge {exponent}, {limit}"));
        let down = self.float(form.down);
        let scale = self.line("f32", &format!("select {large}, {down}, {rest}"));
        let scaled = self.line("f32", &format!("fmul {b}, {scale}"));
        let inverse = self.line("f32", &format!("fdiv {one}, {scaled}"));
        let product = self.line("f32", &format!("fmul {a}, {inverse}"));
        let quotient = self.line("f32", &format!("fmul {scale}, {product}"));
        let mantissas = self.number("i32", form.mantissa);
        let mantissa = self.line("i32", &format!("and {bits}, {mantissas}"));
        let round = self.line("i1", &format!("icmp.eq {mantissa}, {zero}"));
        let either = self.line("i1", &format!("or {small}, {round}"));
        let usual = self.line("i1", &format!("not {either}"));
        let equal = self.line("i1", &format!("fcmp.eq {a}, {b}"));
        let both = self.line("i1", &format!("and {usual}, {equal}"));
        let chosen = self.float(form.one.to_bits());
        self.line("f32", &format!("select {both}, {chosen}, {quotient}"))
    }
}

fn one_division(lanes: usize, convert: Option<&str>, form: Form) -> Function {
    let mut t = Text::new(lanes);
    let inputs = t.inputs(INPUTS);
    let b = match convert {
        Some(op) => {
            let bits = t.line("i32", &format!("bitcast {}", inputs[1]));
            t.line("f32", &format!("{op} {bits}"))
        }
        None => inputs[1].clone(),
    };
    let quotient = t.division(&inputs[0], &b, form);
    t.function(&[quotient])
}

/// Some divisions of inputs, of quotients, and of what was an integer.
fn random_function(seed: u64) -> (Function, usize) {
    let mut rng = Rng::new(seed);
    let lanes = *rng.pick(&[1, 8, 16, 32]);
    let mut t = Text::new(lanes);
    let mut values = t.inputs(INPUTS);
    let (count, mut made) = (1 + rng.below(4), Vec::new());
    for _ in 0..count {
        let [a, mut b] = [(); 2].map(|()| rng.pick(&values).clone());
        if rng.chance(30) {
            let bits = t.line("i32", &format!("bitcast {b}"));
            b = t.line("f32", &format!("{} {bits}", rng.pick(&["sitof", "uitof"])));
            values.push(b.clone());
        }
        let quotient = t.division(&a, &b, WRITTEN);
        let sum = t.line("f32", &format!("fadd {quotient}, {a}"));
        values.extend([quotient.clone(), sum.clone()]);
        made.extend([quotient, sum]);
    }
    (t.function(&made), count)
}

/// Vectors of numbers with exponents where scaling begins, and of equal numbers.
fn payload(rng: &mut Rng, lanes: usize) -> Vec<u8> {
    let number = |rng: &mut Rng| {
        let exponents = [
            0, 1, 2, 126, 127, 128, 130, 198, 199, 200, 201, 253, 254, 255,
        ];
        let exponent = match rng.chance(50) {
            true => *rng.pick(&exponents),
            false => rng.word_below(256),
        };
        let mantissa = match rng.below(4) {
            0 => 0,
            1 => 1,
            2 => 0x7f_ffff,
            _ => rng.word() & 0x7f_ffff,
        };
        (rng.word() & 1) << 31 | exponent << 23 | mantissa
    };
    // Most threads have usual divisors only.
    let usual = rng.chance(30);
    let mut words: Vec<u32> = Vec::new();
    for n in 0..INPUTS * lanes {
        let word = match rng.chance(30) && n >= lanes {
            true => words[n % lanes],
            false => number(rng),
        };
        let exponent = (word >> 23 & 0xff).clamp(1, 199);
        words.push(match usual {
            true => word & 0x807f_ffff | exponent << 23,
            false => word,
        });
    }
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

#[test]
fn unusual_divisors_have_code_of_their_own() {
    for lanes in [1, 16, 32] {
        let f = changed(PASS, &one_division(lanes, None, WRITTEN)).unwrap();
        let text = f.to_string();
        assert_eq!(f.order.len(), 3, "{text}");
        assert_eq!(text.contains("maskany"), lanes > 1, "{text}");
        for convert in ["sitof", "uitof"] {
            let f = changed(PASS, &one_division(lanes, Some(convert), WRITTEN)).unwrap();
            assert_eq!(f.order.len(), 1, "{f}");
            assert_eq!(f.to_string().matches("fmul").count(), 1, "{f}");
        }
    }
}

#[test]
fn what_is_no_such_division_stays() {
    let near = [
        Form {
            large: 199 << 23,
            ..WRITTEN
        },
        Form {
            down: 0x3000_0000,
            ..WRITTEN
        },
        Form {
            up: 0x4f00_0000,
            ..WRITTEN
        },
        Form {
            mantissa: 0x3f_ffff,
            ..WRITTEN
        },
        Form {
            one: 2.0,
            ..WRITTEN
        },
    ];
    for form in near {
        assert!(changed(PASS, &one_division(16, None, form)).is_none());
    }
}

#[test]
fn every_divisor_has_the_same_quotient() {
    let (mut rng, mut seen) = (Rng::new(5), [0; 2]);
    for seed in 0..share(4000, 8) {
        let (f, divisions) = random_function(seed);
        let g = changed(PASS, &f).unwrap_or_else(|| panic!("{f}"));
        let mut h = f.clone();
        let stats = optimize(&mut h, &PassOptions::default()).unwrap();
        let all: usize = stats
            .iter()
            .filter(|s| s.name == PASS)
            .map(|s| s.changes)
            .sum();
        assert!(all <= divisions);
        seen[0] += divisions;
        seen[1] += all;
        for _ in 0..6 {
            let payload = payload(&mut rng, usize::from(f.simd));
            let want = results(&f, &payload);
            for other in [&g, &h] {
                assert!(
                    results(other, &payload) == want,
                    "seed {seed}\n{f}\n{other}"
                );
            }
        }
    }
    // Some quotients are found to be the same, or to be not needed, before.
    assert!(seen[1] * 10 > seen[0] * 6, "{seen:?}");
}
