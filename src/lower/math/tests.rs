//! Accuracy of the expansions against `f64` functions, and their SSA against plain numbers.

#[allow(
    dead_code,
    unreachable_pub,
    reason = "shared with the integration tests, used in part"
)]
#[path = "../../../tests/reference/ulp.rs"]
mod ulp;

use super::expand;
use super::scalar::{Scalar, evaluate};
use crate::isa::Opcode;
use crate::lower::build::Builder;
use crate::ssa::eval::pure_op;
use crate::ssa::*;
use visa_test_common::{Rng, share};

/// A function of one argument, its exact counterpart and the largest error in ulp.
struct Case {
    op: Opcode,
    exact: fn(f64) -> f64,
    bound: f64,
    /// Largest magnitude of an argument for which the bound holds; beyond it |result| <= 1.
    range: f32,
}

impl Case {
    const fn new(op: Opcode, exact: fn(f64) -> f64, bound: f64, range: f32) -> Case {
        Case {
            op,
            exact,
            bound,
            range,
        }
    }

    fn value(&self, x: f32) -> f32 {
        evaluate(self.op, &[x]).expect("a function of one argument")
    }

    /// Error in ulp; past the range, 0 for any result a sine may have.
    fn error(&self, x: f32) -> f64 {
        let got = self.value(x);
        if x.is_finite() && x.abs() > self.range {
            return if got.abs() <= 1.0 { 0.0 } else { f64::INFINITY };
        }
        ulp::error_f32(got, (self.exact)(f64::from(x)))
    }

    fn check(&self, x: f32) {
        let e = self.error(x);
        assert!(
            e <= self.bound,
            "{:?} of {x:e} ({:#010x}) is {:e}, not {:e}: {e} ulp",
            self.op,
            x.to_bits(),
            self.value(x),
            (self.exact)(f64::from(x))
        );
    }
}

/// Bounds as `docs/accuracy.md` states them.
const EXP: Case = Case::new(Opcode::Exp, f64::exp2, 1.0, f32::INFINITY);
const LOG: Case = Case::new(Opcode::Log, f64::log2, 1.6, f32::INFINITY);
const SIN: Case = Case::new(Opcode::Sin, f64::sin, 2.0, 1e5);
const COS: Case = Case::new(Opcode::Cos, f64::cos, 2.0, 1e5);
const INV: Case = Case::new(Opcode::Inv, f64::recip, 0.5, f32::INFINITY);
const RSQRT: Case = Case::new(Opcode::Rsqrt, inverse_root, 1.0, f32::INFINITY);
const CASES: [&Case; 6] = [&EXP, &LOG, &SIN, &COS, &INV, &RSQRT];
const POW_BOUND: f64 = 1.0;

fn inverse_root(x: f64) -> f64 {
    x.sqrt().recip()
}

/// Numbers at which something changes, with their neighbours and negatives.
fn edges() -> Vec<f32> {
    let mut all = vec![f32::INFINITY, f32::NAN, f32::MAX, 0.0];
    let centres = [
        f32::MIN_POSITIVE,
        0.5,
        std::f32::consts::FRAC_1_SQRT_2,
        1.0,
        1.5,
        std::f32::consts::SQRT_2,
        std::f32::consts::FRAC_PI_2,
        2.0,
        std::f32::consts::PI,
        std::f32::consts::TAU,
        125.0,
        126.0,
        126.5,
        127.0,
        127.5,
        128.0,
        130.0,
        148.5,
        149.0,
        149.5,
        150.0,
        152.0,
        1e4,
        1e5,
        8_388_608.0,
        1e10,
        1e30,
    ];
    for c in centres {
        all.extend([c.next_down(), c, c.next_up()]);
    }
    all.extend([1, 2, 3, 0x0040_0000].map(f32::from_bits));
    all.extend((-149..128).map(|e| 2f64.powi(e) as f32));
    let negative: Vec<f32> = all.iter().map(|x| -x).collect();
    all.extend(negative);
    all
}

#[test]
fn edge_values() {
    for case in CASES {
        for x in edges() {
            case.check(x);
        }
    }
}

#[test]
fn points_of_every_binade() {
    let mut random = Rng::new(1);
    for case in CASES {
        for sign_and_exponent in 0..512 {
            for _ in 0..share(4000, 4) {
                let mantissa = random.bits() as u32 >> 9;
                case.check(f32::from_bits(sign_and_exponent << 23 | mantissa));
            }
        }
    }
}

#[test]
fn powers_of_two_are_exact() {
    for n in -149..128 {
        let power = 2f64.powi(n) as f32;
        assert_eq!(EXP.value(n as f32), power);
        assert_eq!(LOG.value(power), n as f32);
    }
    assert_eq!(EXP.value(-150.0), 0.0);
    assert_eq!(EXP.value(128.0), f32::INFINITY);
}

#[test]
fn special_results() {
    let same = |a: f32, b: f32| assert_eq!(a.to_bits(), b.to_bits());
    same(EXP.value(f32::NEG_INFINITY), 0.0);
    same(LOG.value(0.0), f32::NEG_INFINITY);
    same(LOG.value(-0.0), f32::NEG_INFINITY);
    same(LOG.value(1.0), 0.0);
    same(SIN.value(0.0), 0.0);
    same(SIN.value(-0.0), -0.0);
    same(COS.value(-0.0), 1.0);
    same(INV.value(-0.0), f32::NEG_INFINITY);
    same(INV.value(f32::NEG_INFINITY), -0.0);
    same(RSQRT.value(-0.0), f32::NEG_INFINITY);
    same(RSQRT.value(f32::INFINITY), 0.0);
    assert!(LOG.value(-f32::from_bits(1)).is_nan());
    assert!(SIN.value(f32::INFINITY).is_nan());
    assert!(COS.value(f32::NEG_INFINITY).is_nan());
    assert!(RSQRT.value(-1.0).is_nan());
}

/// Every NaN must come out as one: the integer arithmetic on exponents must not repair it.
#[test]
fn nans_stay() {
    let mut random = Rng::new(2);
    let any = (0..10_000).map(|_| random.bits() as u32 | 0x7f80_0001);
    for bits in [0x7f80_0001, 0xff80_0001, 0x7fff_ffff, u32::MAX]
        .into_iter()
        .chain(any)
    {
        let x = f32::from_bits(bits);
        for case in CASES {
            assert!(case.value(x).is_nan(), "{:?} of {bits:#x}", case.op);
        }
        for other in [2.0, -0.5, f32::INFINITY] {
            assert!(pow(x, other).is_nan() && pow(other, x).is_nan());
        }
        assert_eq!(pow(x, 0.0), 1.0);
        assert_eq!(pow(1.0, x), 1.0);
    }
}

fn pow(x: f32, y: f32) -> f32 {
    evaluate(Opcode::Pow, &[x, y]).expect("pow is expanded")
}

fn check_pow(x: f32, y: f32) {
    let want = f64::from(x.abs()).powf(f64::from(y));
    let e = ulp::error_f32(pow(x, y), want);
    assert!(
        e <= POW_BOUND,
        "{x:e} ^ {y:e} is {:e}, not {want:e}: {e} ulp",
        pow(x, y)
    );
}

#[test]
fn pow_of_edge_values() {
    let edges = edges();
    for &x in &edges {
        for &y in &edges {
            check_pow(x, y);
        }
    }
}

#[test]
fn pow_of_every_binade() {
    let mut random = Rng::new(3);
    for exponent in 0..256 {
        for k in 0..share(8000, 4) {
            let bits = random.bits();
            let x = f32::from_bits(exponent << 23 | bits as u32 & 0x807f_ffff);
            let y = (bits >> 32) as u32;
            // Most results within range, the others anywhere.
            let log = (f64::from(y) / f64::from(u32::MAX) - 0.5) * 310.0;
            let y = match k % 4 {
                0 => f32::from_bits(y),
                _ => (log / f64::from(x.abs()).log2()) as f32,
            };
            check_pow(x, y);
        }
    }
}

/// `1 - x * y * y`, exact to well below one ulp, tells how far `y` is from the root of `1 / x`.
#[test]
fn double_inverse_root() {
    let mut random = Rng::new(4);
    for exponent in 1..2047 {
        for _ in 0..500 {
            let x = f64::from_bits(exponent << 52 | random.bits() >> 12);
            let y = super::formula::rsqrt(&mut Scalar, x);
            let p = x * y;
            let low = x.mul_add(y, -p);
            let residual = (-low).mul_add(y, (-p).mul_add(y, 1.0));
            let ulp = (y.next_up() - y) / y;
            assert!((residual / 2.0 / ulp).abs() <= 1.0, "{x:e}");
        }
    }
    for (x, y) in [
        (0.0, f64::INFINITY),
        (-0.0, f64::NEG_INFINITY),
        (f64::INFINITY, 0.0),
    ] {
        assert_eq!(super::formula::rsqrt(&mut Scalar, x), y);
    }
    assert!(super::formula::rsqrt(&mut Scalar, -1.0f64).is_nan());
}

/// The expansion of an operation in SSA, which is made once for all operands.
struct Expansion {
    f: Function,
    start: Block,
    operands: Vec<Value>,
    result: Value,
}

impl Expansion {
    /// Expands `op` for `count` operands, each a vector of `lanes` lanes; `None` if `op` has no expansion.
    fn new(op: Opcode, lane: Lane, count: usize, lanes: usize) -> Option<Expansion> {
        let mut b = Builder::new("test", 16);
        let start = b.block();
        b.switch_to(start);
        let any = vec![0; lanes];
        let operands: Vec<Value> = (0..count).map(|_| b.vec_const(lane, any.clone())).collect();
        let result = expand(&mut b, op, &operands)?;
        assert_eq!(b.ty(result), b.ty(operands[0]));
        b.ret();
        let f = b.finish(start, 0).expect("small");
        verify(&f).expect("well-formed");
        Some(Expansion {
            f,
            start,
            operands,
            result,
        })
    }

    /// Lanes of the result, by the evaluator of the SSA.
    fn of(&self, operands: &[&[u64]]) -> Vec<u64> {
        let f = &self.f;
        let mut lanes = vec![Vec::new(); f.values.len()];
        for &i in &f.block(self.start).insts {
            let inst = f.inst(i);
            let args: Vec<(Ty, &[u64])> = inst
                .args
                .iter()
                .map(|&a| (f.ty(a), lanes[a.0 as usize].as_slice()))
                .collect();
            let r = inst.results[0];
            let given = self.operands.iter().position(|&operand| operand == r);
            let value = match given {
                Some(at) => operands[at].to_vec(),
                None => pure_op(&inst.op, &args, f.ty(r)),
            };
            lanes[r.0 as usize] = value;
        }
        lanes.swap_remove(self.result.0 as usize)
    }
}

/// Lanes that the expansion of `op` has.
fn by_ssa(op: Opcode, lane: Lane, operands: &[&[u64]]) -> Option<Vec<u64>> {
    let expansion = Expansion::new(op, lane, operands.len(), operands[0].len())?;
    Some(expansion.of(operands))
}

#[test]
fn ssa_has_the_same_bits() {
    let mut random = Rng::new(5);
    let mut all = edges();
    let count = share(20_000, 40);
    all.extend((0..count).map(|_| f32::from_bits(random.bits() as u32)));
    all.extend((0..count).map(|_| random.bits() as i32 as f32 * 2f32.powi(-24)));
    let ops = CASES.map(|c| c.op);
    for op in ops.into_iter().chain([Opcode::Pow]) {
        let two = op == Opcode::Pow;
        for lanes in [1, 8, 16] {
            let expansion = Expansion::new(op, Lane::F32, 1 + usize::from(two), lanes);
            let expansion = expansion.expect("expanded");
            for xs in all.chunks_exact(lanes) {
                let x: Vec<u64> = xs.iter().map(|x| u64::from(x.to_bits())).collect();
                let ys: Vec<f32> = xs.iter().map(|x| 3.0 - x * 0.37).collect();
                let y: Vec<u64> = ys.iter().map(|y| u64::from(y.to_bits())).collect();
                let operands: &[&[u64]] = if two { &[&x, &y] } else { &[&x] };
                let got = expansion.of(operands);
                for (i, &bits) in got.iter().enumerate() {
                    let got = f32::from_bits(bits as u32);
                    let operands: &[f32] = if two { &[xs[i], ys[i]] } else { &[xs[i]] };
                    let want = evaluate(op, operands).expect("expanded");
                    assert!(
                        got.to_bits() == want.to_bits() || got.is_nan() && want.is_nan(),
                        "{op:?} of {operands:?}: {got:e} and {want:e}"
                    );
                }
            }
        }
    }
}

#[test]
fn lanes_that_are_expanded() {
    let x = [2.0f64.to_bits(), 0.25f64.to_bits()];
    let doubles = |op| by_ssa(op, Lane::F64, &[&x]);
    let want = |v: [f64; 2]| Some(v.map(f64::to_bits).to_vec());
    assert_eq!(doubles(Opcode::Inv), want([0.5, 4.0]));
    assert_eq!(
        doubles(Opcode::Rsqrt),
        want([std::f64::consts::FRAC_1_SQRT_2, 2.0])
    );
    for op in [Opcode::Exp, Opcode::Log, Opcode::Sin, Opcode::Cos] {
        assert_eq!(doubles(op), None);
    }
    assert_eq!(by_ssa(Opcode::Pow, Lane::F64, &[&x, &x]), None);
    assert_eq!(by_ssa(Opcode::Exp, Lane::I32, &[&[1, 2]]), None);
    assert_eq!(by_ssa(Opcode::Add, Lane::F32, &[&[1, 2], &[3, 4]]), None);
}

/// All of `f32`; prints the worst argument.
fn sweep(case: &Case) {
    let half = |first: u32| {
        let mut worst = (0.0, 0.0);
        for bits in (first..=u32::MAX).step_by(2) {
            let x = f32::from_bits(bits);
            let e = case.error(x);
            if e > worst.0 {
                worst = (e, x);
            }
        }
        worst
    };
    let (a, b) = std::thread::scope(|s| {
        let other = s.spawn(|| half(1));
        (half(0), other.join().expect("no panic"))
    });
    let (e, x) = if a.0 > b.0 { a } else { b };
    println!("{:?}: {e:.4} ulp at {x:e} ({:#010x})", case.op, x.to_bits());
    assert!(e <= case.bound);
}

macro_rules! sweeps {
    ($($name:ident $case:ident)*) => {
        $(
            #[test]
            #[ignore = "minutes"]
            fn $name() {
                sweep(&$case);
            }
        )*
    };
}

sweeps! {
    sweep_exp EXP
    sweep_log LOG
    sweep_sin SIN
    sweep_cos COS
    sweep_inv INV
    sweep_rsqrt RSQRT
}
