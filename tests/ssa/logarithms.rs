//! Logarithms without code for unusual arguments are those with it, for every kind of argument.

use visa_jit::passes::{PassOptions, optimize};
use visa_jit::ssa::Function;
use visa_test_common::{Rng, share};

use crate::writer::{Text, changed, results};

const PASS: &str = "usual-logarithms";

/// What the compiler writes around a logarithm, and what is near it.
#[derive(Clone, Copy)]
struct Form {
    /// Vectors of arguments, whose masks are joined.
    arguments: usize,
    /// `fabs` instead of an `and` of the bits.
    absolute: bool,
    /// The arguments are greater than this, and their magnitude is less.
    above: f32,
    below: f32,
    /// Smaller arguments are scaled by this.
    least: f32,
    factor: f32,
    /// Another logarithm with the same code, of a sum that is not tested.
    another: bool,
    near: Near,
}

/// What the pass must leave alone.
#[derive(Clone, Copy, PartialEq)]
enum Near {
    Nothing,
    /// The mask has another condition.
    Dispatch,
    /// What the other lanes gave is needed later.
    Later,
    /// The block of the logarithm has an effect.
    Effect,
    /// A bit of the magnitude is missing.
    Magnitude,
    /// The first test is of another mask.
    First,
    /// Lanes without a logarithm go elsewhere.
    Apart,
    /// All lanes have something else to do.
    Swapped,
    /// The mask has more conditions than can be looked at.
    Deep,
}

const WRITTEN: Form = Form {
    arguments: 1,
    absolute: false,
    above: 0.0,
    below: f32::INFINITY,
    least: f32::MIN_POSITIVE,
    factor: 8_388_608.0,
    another: false,
    near: Near::Nothing,
};

fn magnitude(t: &mut Text, x: &str, form: Form) -> String {
    if form.absolute {
        return t.line("f32", &format!("fabs {x}"));
    }
    let bits = t.line("i32", &format!("bitcast {x}"));
    let kept = match form.near {
        Near::Magnitude => 0x7fff_fffe,
        _ => 0x7fff_ffff,
    };
    let kept = t.number("i32", kept);
    let bits = t.line("i32", &format!("and {bits}, {kept}"));
    t.line("f32", &format!("bitcast {bits}"))
}

/// The mask of one vector of arguments.
fn test(t: &mut Text, x: &str, form: Form) -> String {
    let (above, below) = (t.float(form.above.to_bits()), t.float(form.below.to_bits()));
    let magnitude = magnitude(t, x, form);
    let finite = t.line("i1", &format!("fcmp.lt {magnitude}, {below}"));
    let positive = t.line("i1", &format!("fcmp.gt {x}, {above}"));
    let both = t.line("i1", &format!("and {finite}, {positive}"));
    if form.near == Near::Deep {
        let turned: Vec<String> = (0..t.lanes()).rev().map(|lane| lane.to_string()).collect();
        return (0..60).fold(both, |mask, _| {
            let other = format!("shuffle[{}] {mask}", turned.join(", "));
            let other = t.line("i1", &other);
            t.line("i1", &format!("and {mask}, {other}"))
        });
    }
    if form.near != Near::Dispatch {
        return both;
    }
    let enabled = t.line("i1", "input.dispatchmask");
    t.line("i1", &format!("and {both}, {enabled}"))
}

/// Something that depends on all bits of the argument and of its exponent.
fn logarithm(t: &mut Text, x: &str, w: &str, form: Form) -> String {
    let (least, factor) = (
        t.float(form.least.to_bits()),
        t.float(form.factor.to_bits()),
    );
    let small = t.line("i1", &format!("fcmp.lt {x}, {least}"));
    let up = t.line("f32", &format!("fmul {x}, {factor}"));
    let scaled = t.line("f32", &format!("select {small}, {up}, {x}"));
    let (down, zero) = (t.float((-23f32).to_bits()), t.float(0));
    let start = t.line("f32", &format!("select {small}, {down}, {zero}"));
    let bits = t.line("i32", &format!("bitcast {scaled}"));
    let count = t.number("i32", 23);
    let exponent = t.line("i32", &format!("ashr {bits}, {count}"));
    let exponent = t.line("f32", &format!("sitof {exponent}"));
    let sum = t.line("f32", &format!("fadd {start}, {exponent}"));
    t.line("f32", &format!("fma {scaled}, {w}, {sum}"))
}

fn function(lanes: usize, form: Form) -> Function {
    let mut t = Text::new(lanes);
    let inputs = t.inputs(form.arguments + 1);
    let (xs, w) = (&inputs[1..], &inputs[0]);
    let none = t.float(0);
    let masks: Vec<String> = xs.iter().map(|x| test(&mut t, x, form)).collect();
    let (mut mask, mut all) = (masks[0].clone(), lanes);
    if let [a, b] = masks.as_slice() {
        all *= 2;
        let order: Vec<String> = (0..all).map(|lane| lane.to_string()).collect();
        let what = format!("shuffle[{}] {a}, {b}", order.join(", "));
        mask = t.typed(&format!("<{all} x i1>"), &what);
    }
    let first = match form.near {
        Near::First => t.line("i1", &format!("fcmp.gt {w}, {none}")),
        _ => mask.clone(),
    };
    let every = t.typed("i1", &format!("maskall {first}"));
    let nones = vec![none.as_str(); xs.len()].join(", ");
    let (mut then, mut otherwise) = (format!("bb2({nones})"), "bb1".to_owned());
    if form.near == Near::Swapped {
        std::mem::swap(&mut then, &mut otherwise);
    }
    t.block(&format!("branch {every}, {then}, {otherwise}"), "bb1", &[]);
    let other = |x: &String| t.line("f32", &format!("fadd {x}, {w}"));
    let others: Vec<String> = xs.iter().map(other).collect();
    let params = t.block(
        &format!("jump bb2({})", others.join(", ")),
        "bb2",
        &vec!["f32"; xs.len()],
    );
    let any = t.typed("i1", &format!("maskany {mask}"));
    let given = params.join(", ");
    let others = match form.near {
        Near::Apart => "bb5",
        _ => "bb4",
    };
    t.block(&format!("branch {any}, bb3, {others}({given})"), "bb3", &[]);
    if form.near == Near::Effect {
        t.effect(&format!("framestore[512] {w}"));
    }
    let mut chosen = Vec::new();
    for ((x, mask), param) in xs.iter().zip(&masks).zip(&params) {
        let mut log = logarithm(&mut t, x, w, form);
        if form.another {
            let sum = t.line("f32", &format!("fadd {x}, {w}"));
            let other = logarithm(&mut t, &sum, w, form);
            log = t.line("f32", &format!("fadd {log}, {other}"));
        }
        chosen.push(t.line("f32", &format!("select {mask}, {log}, {param}")));
    }
    let types = vec!["f32"; xs.len()];
    let mut end = format!("jump bb4({})", chosen.join(", "));
    if form.near == Near::Apart {
        t.block(&end, "bb5", &types);
        end = "return".to_owned();
    }
    let mut ends = t.block(&end, "bb4", &types);
    ends.push(t.line("f32", &format!("select {}, {w}, {}", masks[0], ends[0])));
    if form.near == Near::Later {
        ends.push(params[0].clone());
    }
    t.function(&ends)
}

/// Vectors of numbers around the limits.
fn payload(rng: &mut Rng, lanes: usize) -> Vec<u8> {
    let kind = rng.below(4);
    let number = |rng: &mut Rng| {
        let usual = (1 + rng.word_below(254)) << 23 | rng.word() & 0x7f_ffff;
        let limits = [
            0,
            1,
            0x7f_ffff,
            0x80_0000,
            0x7f7f_ffff,
            0x7f80_0000,
            0x7f80_0001,
        ];
        let unusual = *rng.pick(&limits) | (rng.word() & 1) << 31;
        match kind {
            0 => usual,
            1 if rng.chance(95) => usual,
            2 if rng.chance(50) => *rng.pick(&[0x80_0000, 0x7f7f_ffff]),
            2 => usual,
            _ => unusual,
        }
    };
    let words: Vec<u32> = (0..3 * lanes).map(|_| number(rng)).collect();
    words.iter().flat_map(|w| w.to_le_bytes()).collect()
}

#[test]
fn usual_arguments_have_code_of_their_own() {
    for (arguments, absolute) in [(1, false), (1, true), (2, true)] {
        let form = Form {
            arguments,
            absolute,
            ..WRITTEN
        };
        for lanes in [8, 16, 32] {
            let f = changed(PASS, &function(lanes, form)).unwrap();
            assert_eq!(f.order.len(), 7, "{f}");
            let text = f.to_string();
            let (_, copy) = text.split_once("bb5:").unwrap();
            let (copy, _) = copy.split_once("bb6:").unwrap();
            assert!(!copy.contains("fcmp"), "{f}");
        }
    }
}

#[test]
fn what_is_no_such_logarithm_stays() {
    let near = |near| Form { near, ..WRITTEN };
    let others = [
        Form {
            above: 1.0,
            ..WRITTEN
        },
        Form {
            below: 1e30,
            ..WRITTEN
        },
        Form {
            least: 1e-37,
            ..WRITTEN
        },
        Form {
            factor: 4_194_304.0,
            ..WRITTEN
        },
        near(Near::Dispatch),
        near(Near::Later),
        near(Near::Effect),
        near(Near::Magnitude),
        near(Near::First),
        near(Near::Apart),
        near(Near::Swapped),
        near(Near::Deep),
    ];
    for (n, form) in others.into_iter().enumerate() {
        assert!(changed(PASS, &function(16, form)).is_none(), "{n}");
    }
}

#[test]
fn every_argument_has_the_same_logarithm() {
    let mut rng = Rng::new(7);
    for _ in 0..share(400, 8) {
        let lanes = *rng.pick(&[8, 16, 32]);
        let form = Form {
            arguments: 1 + rng.below(2),
            absolute: rng.chance(50),
            another: rng.chance(30),
            ..WRITTEN
        };
        let f = function(lanes, form);
        let g = changed(PASS, &f).unwrap_or_else(|| panic!("{f}"));
        let mut h = f.clone();
        optimize(&mut h, &PassOptions::default()).unwrap();
        for _ in 0..8 {
            let payload = payload(&mut rng, lanes);
            let want = results(&f, &payload);
            for other in [&g, &h] {
                assert!(results(other, &payload) == want, "{f}\n{other}");
            }
        }
    }
}
