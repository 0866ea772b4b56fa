//! The vendor's expansions of integer division and remainder rest on approximate reciprocals and switches of the
//! rounding mode; they have to be exact all the same: on all pairs of edge values, and on ten million random pairs of
//! each type on each device (`cargo test --test engine divisions -- --ignored --nocapture`).

use std::time::Instant;

use visa_jit::{Engine, Launch, Program};
use visa_runtime::Element;

use crate::reference::divide::divide;
use crate::reference::integer::Integer;
use visa_test_common::Rng;

/// Random pairs of each type.
const PAIRS: usize = 10_000_000;
/// Pairs of a launch.
const CHUNK: usize = 1 << 20;
/// Work-items of a group.
const LOCAL: usize = 64;

/// Small numbers, powers of two and their neighbours, and their opposites; all numbers of eight bits.
fn edges<T: Integer>() -> Vec<T> {
    let near = |v: i128| (-2..=2).map(move |d| v + d);
    let all: Vec<i128> = if T::BITS == 8 {
        (T::least()..=T::greatest()).collect()
    } else {
        let powers = (0..=T::BITS).flat_map(|k| near(1 << k));
        let others = [10, 100, 1000, 12_345, 0x5555_5555_5555_5555, 0x1234_5678].into_iter();
        let some: Vec<i128> = powers.chain(others).collect();
        let both = some.iter().flat_map(|&v| [v, -v]);
        both.filter(|v| (T::least()..=T::greatest()).contains(v))
            .collect()
    };
    let mut out: Vec<T> = all.into_iter().map(T::wrap).collect();
    out.sort_unstable();
    out.dedup();
    out
}

/// Any bits, or bits of any length: quotients of all sizes.
fn number<T: Integer>(rng: &mut Rng) -> T {
    let bits = i128::from(rng.bits());
    let length = rng.word() % (2 * T::BITS);
    let bits = if length < T::BITS {
        bits & ((1 << length) - 1)
    } else {
        bits
    };
    T::wrap(if rng.bits() & 1 == 0 { bits } else { -bits })
}

/// Divides on the device's code; the number of results that are wrong.
fn wrong<T: Integer + Element>(
    engine: &Engine,
    program: &Program,
    name: &str,
    x: &[T],
    y: &[T],
) -> usize {
    let n = x.len();
    let alloc = |v: &[T]| engine.memory().alloc_from(v).expect("memory");
    let zeros = vec![T::wrap(0); n];
    let (quotient, remainder) = (alloc(&zeros), alloc(&zeros));
    let kernel = program.kernel(&format!("divide_{name}")).expect("kernel");
    let launch = Launch::new([n as u32, 1, 1])
        .local([LOCAL as u32, 1, 1])
        .arg(0, quotient.clone())
        .arg(1, remainder.clone())
        .arg(2, alloc(x))
        .arg(3, alloc(y));
    kernel.launch(&launch).expect("launch");
    let (want_quotient, want_remainder) = divide(x, y);
    let differ = |got: Vec<T>, want: Vec<T>| got.iter().zip(&want).filter(|(a, b)| a != b).count();
    differ(quotient.to_vec_of(), want_quotient) + differ(remainder.to_vec_of(), want_remainder)
}

fn divisions<T: Integer + Element>(engine: &Engine, program: &Program, device: &str, name: &str) {
    let start = Instant::now();
    let legal = |x: T, y: T| y.wide() != 0 && !(y.wide() == -1 && x.wide() == T::least());
    let edges = edges::<T>();
    let mut rng = Rng::new(u64::from(T::BITS) * 2 + u64::from(T::SIGNED));
    let pairs = edges
        .iter()
        .flat_map(|&x| edges.iter().map(move |&y| (x, y)));
    let edge_pairs: Vec<(T, T)> = pairs.filter(|&(x, y)| legal(x, y)).collect();
    let mut all = edge_pairs.iter().copied().chain(std::iter::from_fn(|| {
        loop {
            let (x, y) = (number(&mut rng), number(&mut rng));
            if legal(x, y) {
                return Some((x, y));
            }
        }
    }));
    let total = (edge_pairs.len() + PAIRS).next_multiple_of(LOCAL);
    let (mut done, mut bad) = (0, 0);
    while done < total {
        let n = CHUNK.min(total - done);
        let (x, y): (Vec<T>, Vec<T>) = all.by_ref().take(n).unzip();
        bad += wrong(engine, program, name, &x, &y);
        done += n;
    }
    println!(
        "{device} {name}: {} edge pairs, {} random pairs, {bad} wrong, {:.1} s",
        edge_pairs.len(),
        total - edge_pairs.len(),
        start.elapsed().as_secs_f64()
    );
    assert_eq!(bad, 0, "{device} {name}");
}

#[test]
#[ignore = "minutes: 320 million divisions"]
fn divisions_are_exact() {
    for device in ["skl", "tgllp", "acm-g10", "pvc"] {
        let path = format!(
            "{}/tests/kernels/bin/{device}/divide.zebin",
            concat!(env!("CARGO_MANIFEST_DIR"), "/..")
        );
        let engine = Engine::new().expect("engine");
        let bytes = std::fs::read(&path).expect("checked-in zebin");
        let program = engine
            .program_from_zebin(&bytes, None)
            .expect("zebin loads");
        divisions::<i8>(&engine, &program, device, "char");
        divisions::<u8>(&engine, &program, device, "uchar");
        divisions::<i16>(&engine, &program, device, "short");
        divisions::<u16>(&engine, &program, device, "ushort");
        divisions::<i32>(&engine, &program, device, "int");
        divisions::<u32>(&engine, &program, device, "uint");
        divisions::<i64>(&engine, &program, device, "long");
        divisions::<u64>(&engine, &program, device, "ulong");
    }
}
