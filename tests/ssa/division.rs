//! Division raised from what compilers of kernels write, on the operands that matter: zero, powers of two and their neighbours, and
//! numbers of every length.

use std::path::Path;

use visa_jit::passes::run_pass;
use visa_jit::ssa::eval::{Bytes, Inputs, Outcome, Thread, run};
use visa_jit::ssa::{Function, parse, verify};
use visa_test_common::Rng;

/// Steps of a run; the loops take 64 rounds.
const FUEL: u64 = 20_000;

/// The function of a case of the golden file, and what the pass makes of it.
fn case(title: &str) -> (Function, Function) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ssa/passes/division.ssa");
    let text = std::fs::read_to_string(path).unwrap();
    let start = format!("{title}: division dce\n");
    let found = text.split("; case ").find_map(|c| c.strip_prefix(&start));
    let input = found.unwrap().split("; gives").next().unwrap();
    let before = parse(input).unwrap();
    let mut after = before.clone();
    assert!(run_pass(&mut after, "division"));
    verify(&after).unwrap();
    assert_ne!(before, after, "{title}: nothing was raised");
    (before, after)
}

/// A number of this many bits: any, of any length, or next to a power of two.
fn number(rng: &mut Rng, bits: u32) -> u64 {
    let mask = u64::MAX >> (64 - bits);
    let power = 1u64
        .checked_shl(rng.below(bits as usize + 1) as u32)
        .unwrap_or(0);
    let near = power.wrapping_add(rng.below(5) as u64).wrapping_sub(2);
    let value = match rng.below(4) {
        0 => near,
        1 => near.wrapping_neg(),
        2 => rng.bits() >> rng.below(64),
        _ => rng.bits(),
    };
    value & mask
}

fn left_behind(f: &Function, payload: &[u8], mask: u32) -> Vec<u8> {
    let inputs = Inputs {
        payload: payload.to_vec(),
        dispatch_mask: mask,
        ..Inputs::default()
    };
    let mut thread = Thread::new(f);
    let outcome = run(f, &inputs, &mut thread, &mut Bytes::default(), FUEL);
    assert_eq!(outcome, Outcome::Done);
    thread.frame
}

/// Both give the same for numbers of this many bits.
fn agrees(title: &str, bits: u32, runs: u64) {
    let (before, after) = case(title);
    // Each test of this file has several sequences: a plain run takes a third of the numbers.
    for seed in 0..visa_test_common::share(runs, 3) {
        let mut rng = Rng::new(seed);
        let numbers = (0..512 / bits).map(|_| number(&mut rng, bits));
        let bytes = numbers.flat_map(|n| n.to_le_bytes().into_iter().take(bits as usize / 8));
        let payload: Vec<u8> = bytes.collect();
        let mask = if seed % 4 == 0 {
            rng.bits() as u32
        } else {
            0xff
        };
        let (old, new) = (
            left_behind(&before, &payload, mask),
            left_behind(&after, &payload, mask),
        );
        assert_eq!(old, new, "{title}: seed {seed}, {payload:?}");
    }
}

#[test]
fn sequences_in_floats_are_divisions() {
    agrees("quotient and remainder by floats", 32, 1500);
    agrees("a quotient by doubles", 32, 1500);
    agrees("corrections by selects, with a sign, and of bytes", 32, 500);
}

#[test]
fn divisors_may_be_the_same_in_all_lanes() {
    agrees(
        "a divisor that is the same in all lanes, with a sign, by floats",
        32,
        1500,
    );
    agrees(
        "a divisor that is the same in all lanes, by doubles",
        32,
        1500,
    );
}

#[test]
fn long_division_is_division() {
    agrees("long division that carries what it compared", 64, 50);
    agrees(
        "long division, quotient and remainder, with a mask that diverges",
        64,
        150,
    );
    agrees("long division of halves, by halves", 64, 150);
    agrees("long division of all lanes, without a mask", 64, 150);
    agrees(
        "long division whose idle lanes take the bits of the dividend",
        64,
        150,
    );
}

#[test]
fn pairs_take_one_division() {
    agrees("quotient and remainder of the same operands", 32, 300);
    agrees("both on ways that part", 64, 300);
}

/// Each dividend with each of these divisors, and each divisor with each of these dividends.
#[test]
fn sixteen_bits_divide_in_floats() {
    let (before, after) = case("sixteen bits divide in floats");
    let others = [
        0u16, 1, 2, 3, 5, 7, 255, 256, 257, 0x7ffe, 0x7fff, 0x8000, 0x8001, 0xfffe, 0xffff,
    ];
    for start in (0..=u16::MAX).step_by(if visa_test_common::full() { 8 } else { 104 }) {
        for &other in others.iter().skip(usize::from(start / 8) % 3).step_by(3) {
            let bytes = |first: bool| {
                let number = move |lane: u16| if first { start + lane } else { other };
                (0..8).flat_map(move |lane| number(lane).to_le_bytes())
            };
            for order in [true, false] {
                let payload: Vec<u8> = bytes(order).chain(bytes(!order)).collect();
                let (old, new) = (
                    left_behind(&before, &payload, 0xff),
                    left_behind(&after, &payload, 0xff),
                );
                assert_eq!(old, new, "{start} and {other}, {order}");
            }
        }
    }
}

#[test]
#[ignore = "takes minutes: sixteen million operands of each sequence"]
fn sequences_in_floats_are_divisions_on_many_numbers() {
    agrees("quotient and remainder by floats", 32, 2_000_000);
    agrees("a quotient by doubles", 32, 2_000_000);
}
