//! Sums with carry, shifts across halves and products of 64-bit lanes in halves, mostly right and sometimes wrong in a detail, mean the same when
//! they are operations on whole lanes.

use crate::generate::FRAME;
use crate::observe::unchanged_by;
use visa_jit::ssa::*;
use visa_test_common::Rng;

const LANES: u16 = 4;
const WIDE: Ty = Ty::vector(Lane::I64, LANES);
const HALF: Ty = Ty::vector(Lane::I32, LANES);

struct Generator {
    rng: Rng,
    f: Function,
    wide: Vec<Value>,
}

impl Generator {
    fn push(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        self.f.push1(Function::ENTRY, op, args.to_vec(), ty, 0)
    }

    fn chance(&mut self, of_ten: usize) -> bool {
        self.rng.below(10) < of_ten
    }

    /// True now and then: for what is wrong.
    fn wrong(&mut self) -> bool {
        self.rng.below(15) == 0
    }

    fn constant(&mut self, ty: Ty, bits: u64) -> Value {
        let lanes = vec![bits & ty.lane.mask(); usize::from(ty.lanes)];
        self.push(Op::VecConst(lanes.into()), &[], ty)
    }

    fn binary(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        let ty = self.f.ty(a);
        let (a, b) = match op.commutes() && self.chance(5) {
            true => (b, a),
            false => (a, b),
        };
        self.push(Op::Binary(op), &[a, b], ty)
    }

    fn neg(&mut self, a: Value) -> Value {
        self.push(Op::Unary(UnOp::Neg), &[a], HALF)
    }

    fn shift(&mut self, op: BinOp, x: Value, by: u64) -> Value {
        let by = by + u64::from(self.wrong());
        let by = match self.chance(5) {
            true => self.constant(HALF, by),
            false => self.push(Op::Const(by), &[], Ty::I32),
        };
        self.push(Op::Binary(op), &[x, by], HALF)
    }

    fn pick(&mut self) -> [Value; 2] {
        let x = self.wide[self.rng.below(self.wide.len())];
        self.halves(x)
    }

    fn halves(&mut self, x: Value) -> [Value; 2] {
        let count = self.constant(WIDE, 32);
        let upper = self.push(Op::Binary(BinOp::LShr), &[x, count], WIDE);
        [x, upper].map(|v| self.push(Op::Convert(Conv::Trunc), &[v], HALF))
    }

    /// Halves of something that is added.
    fn term(&mut self) -> [Value; 2] {
        match self.rng.below(7) {
            0 => {
                let bits = [5, 0, u64::MAX, 0x1_0000_0005][self.rng.below(4)];
                [bits, bits >> 32].map(|half| self.constant(HALF, half))
            }
            1 => [self.pick()[self.rng.below(2)], self.constant(HALF, 0)],
            2 => {
                let low = self.pick()[0];
                let by = self.constant(HALF, 31);
                [low, self.push(Op::Binary(BinOp::AShr), &[low, by], HALF)]
            }
            3 => [0, 8].map(|at| {
                let scalar = self.push(Op::Input(Input::Payload(at)), &[], Ty::I32);
                self.push(Op::Splat, &[scalar], HALF)
            }),
            _ => self.pick(),
        }
    }

    fn join(&mut self, [low, high]: [Value; 2]) {
        let ty = HALF.with_lanes(2 * LANES);
        let indices = (0..LANES).flat_map(|k| [k, LANES + k]).collect();
        let all = self.push(Op::Shuffle(indices), &[low, high], ty);
        let x = self.push(Op::Bitcast, &[all], WIDE);
        self.wide.push(x);
    }

    /// A comparison, mostly this one.
    fn compare(&mut self, cond: ICond, a: Value, b: Value) -> Value {
        let any = [
            ICond::Ult,
            ICond::Ule,
            ICond::Ugt,
            ICond::Uge,
            ICond::Eq,
            ICond::Ne,
        ];
        let cond = if self.wrong() {
            any[self.rng.below(6)]
        } else {
            cond
        };
        let (cond, a, b) = match (cond, self.chance(5)) {
            (ICond::Ult, true) => (ICond::Ugt, b, a),
            _ => (cond, a, b),
        };
        self.push(Op::ICmp(cond), &[a, b], HALF.with_lane(Lane::I1))
    }

    /// The sum of these, in any order.
    fn total(&mut self, mut terms: Vec<Value>) -> Value {
        while terms.len() > 1 {
            let a = terms.swap_remove(self.rng.below(terms.len()));
            let b = terms.swap_remove(self.rng.below(terms.len()));
            let sum = self.binary(BinOp::Add, a, b);
            terms.push(sum);
        }
        terms[0]
    }

    fn sum(&mut self) {
        let (a, b) = (self.pick(), self.term());
        let low = self.binary(BinOp::Add, a[0], b[0]);
        let operand = match self.rng.below(40) {
            0 => self.pick()[1],
            n => [a[0], b[0]][n % 2],
        };
        let mask = self.compare(ICond::Ult, low, operand);
        let conv = if self.wrong() { Conv::SExt } else { Conv::ZExt };
        let carry = self.push(Op::Convert(conv), &[mask], HALF);
        let mut terms = vec![a[1], b[1], carry];
        if self.chance(2) {
            // Both high halves are zero, or this is wrong.
            terms.drain(..1 + self.rng.below(2));
        }
        let high = self.total(terms);
        self.join([low, high]);
    }

    fn difference(&mut self) {
        let (mut a, mut b) = (self.pick(), self.term());
        if self.chance(5) {
            std::mem::swap(&mut a, &mut b);
        }
        let zero = self.chance(2).then(|| self.constant(HALF, 0));
        if let Some(zero) = zero {
            a = [zero; 2];
        }
        let minus = self.neg(b[0]);
        let low = match self.chance(5) {
            true => self.push(Op::Binary(BinOp::Sub), &[a[0], b[0]], HALF),
            false => self.binary(BinOp::Add, minus, a[0]),
        };
        let mask = match (zero, self.chance(5)) {
            (Some(zero), true) => self.compare(ICond::Ne, b[0], zero),
            (_, true) => self.compare(ICond::Ult, a[0], low),
            _ => self.compare(ICond::Ult, a[0], b[0]),
        };
        let borrow = match self.chance(5) {
            true => self.push(Op::Convert(Conv::SExt), &[mask], HALF),
            false => {
                let one = self.push(Op::Convert(Conv::ZExt), &[mask], HALF);
                if self.wrong() { one } else { self.neg(one) }
            }
        };
        let minus = self.neg(b[1]);
        let high = match self.rng.below(3) {
            0 => {
                let high = self.push(Op::Binary(BinOp::Sub), &[a[1], b[1]], HALF);
                self.total(vec![high, borrow])
            }
            1 => self.total(vec![minus, borrow]),
            _ => self.total(vec![a[1], minus, borrow]),
        };
        self.join([low, high]);
    }

    /// Bits that cross from one half to the other.
    fn crossed(&mut self, low: Value, high: Value, down: u64) -> Value {
        let a = self.shift(BinOp::LShr, low, down);
        let b = self.shift(BinOp::Shl, high, 32 - down);
        let op = [BinOp::Or, BinOp::Or, BinOp::Xor, BinOp::Add][self.rng.below(4)];
        self.binary(op, a, b)
    }

    fn shifted(&mut self) {
        let a = self.pick();
        let by = 1 + self.rng.below(31) as u64;
        let first = self.chance(5);
        let halves = match self.rng.below(5) {
            0 => {
                let op = [BinOp::LShr, BinOp::AShr][self.rng.below(2)];
                let early = first.then(|| self.shift(op, a[1], by));
                let low = self.crossed(a[0], a[1], by);
                [low, early.unwrap_or_else(|| self.shift(op, a[1], by))]
            }
            1 => {
                let early = first.then(|| self.shift(BinOp::Shl, a[0], by));
                let high = self.crossed(a[0], a[1], 32 - by);
                [
                    early.unwrap_or_else(|| self.shift(BinOp::Shl, a[0], by)),
                    high,
                ]
            }
            2 => {
                let high = self.crossed(a[0], a[1], 32 - by);
                let low = self.crossed(a[1], a[0], 32 - by);
                if first { [high, low] } else { [low, high] }
            }
            3 => {
                let zero = self.constant(HALF, 0);
                let other = usize::from(self.wrong());
                match first {
                    true => [zero, self.shift(BinOp::Shl, a[other], by)],
                    false => [self.shift(BinOp::LShr, a[1 - other], by), zero],
                }
            }
            _ => {
                let op = [BinOp::Xor, BinOp::Or, BinOp::And][self.rng.below(3)];
                let (of, half) = match first {
                    true => (self.shift(BinOp::LShr, a[1], by), 0),
                    false => (self.shift(BinOp::Shl, a[0], by), 1),
                };
                let other = if self.chance(3) { self.pick()[0] } else { of };
                let mut halves = a;
                halves[half] = self.binary(op, a[half], other);
                if self.wrong() {
                    halves[1 - half] = a[half];
                }
                halves
            }
        };
        self.join(halves);
    }

    /// A product of which the high half of the low halves' product is taken from one of extended lanes.
    fn product(&mut self) {
        let (mut a, b) = (self.pick(), self.term());
        if self.chance(3) {
            a.swap(0, 1);
        }
        let low = self.binary(BinOp::Mul, a[0], b[0]);
        let [x, y] = [a[0], b[0]].map(|v| {
            let v = self.push(Op::Convert(Conv::ZExt), &[v], WIDE);
            // Other bits than the 32 of the half.
            let bits = self.constant(WIDE, 0x1_0000_0005);
            match self.rng.below(20) {
                0 => self.binary(BinOp::Or, v, bits),
                1 => bits,
                2 => self.binary(BinOp::And, v, bits),
                _ => v,
            }
        });
        let exact = self.binary(BinOp::Mul, x, y);
        let carried = self.halves(exact)[1];
        let mut terms = vec![carried];
        for (p, q) in [(a[0], b[1]), (a[1], b[0])] {
            if self.chance(9) {
                let part = self.binary(BinOp::Mul, p, q);
                terms.push(part);
            }
        }
        let high = self.total(terms);
        self.join([low, high]);
    }
}

fn function(seed: u64) -> Function {
    let mut g = Generator {
        rng: Rng::new(seed),
        f: Function::new("wide", 8),
        wide: Vec::new(),
    };
    g.f.frame_bytes = FRAME;
    for offset in [0, 32] {
        let x = g.push(Op::Input(Input::Payload(offset)), &[], WIDE);
        g.wide.push(x);
    }
    for _ in 0..5 {
        match g.rng.below(7) {
            0 | 1 => g.sum(),
            2 | 3 => g.difference(),
            4 | 5 => g.shifted(),
            _ => g.product(),
        }
    }
    for (x, at) in g.wide.clone().into_iter().zip(0..) {
        g.f.push(Function::ENTRY, Op::FrameStore(32 * at), vec![x], &[], 0);
    }
    g.f.block_mut(Function::ENTRY).term = Term::Return;
    g.f
}

#[test]
fn sums_and_shifts_in_halves_keep_the_meaning() {
    let mut found = [0; 4];
    let seeds = visa_test_common::share(4000, 16);
    for seed in 0..seeds {
        let g = unchanged_by(
            &["gvn", "fold", "gvn", "vector-combine", "fold", "gvn", "dce"],
            &function(seed),
            seed,
            4,
        );
        for &i in g.order.iter().flat_map(|&b| &g.block(b).insts) {
            let data = g.inst(i);
            let wide = data.results.first().is_some_and(|&v| g.ty(v) == WIDE);
            let kind = match data.op {
                Op::Binary(BinOp::Add) if wide => 0,
                Op::Binary(BinOp::Sub) | Op::Unary(UnOp::Neg) if wide => 1,
                Op::Binary(BinOp::AShr | BinOp::Shl) if wide => 2,
                Op::Binary(BinOp::Rotl) if wide => 3,
                _ => continue,
            };
            found[kind] += 1;
        }
    }
    let least = [seeds, seeds / 2, seeds / 2, seeds / 20];
    let enough = found.iter().zip(least).all(|(&n, least)| n > least);
    assert!(enough, "{found:?}, of at least {least:?}");
}
