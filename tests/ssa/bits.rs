//! Population counts, permutations of bytes and functions of three operands in the spellings of compilers, mostly right and sometimes wrong in a
//! detail, mean the same when they are fewer operations.

use crate::generate::FRAME;
use crate::observe::unchanged_by;
use visa_jit::ssa::*;
use visa_test_common::Rng;

struct Generator {
    rng: Rng,
    f: Function,
    ty: Ty,
    results: Vec<Value>,
}

impl Generator {
    fn push(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        self.f.push1(Function::ENTRY, op, args.to_vec(), ty, 0)
    }

    fn chance(&mut self, of_ten: usize) -> bool {
        self.rng.below(10) < of_ten
    }

    fn wrong(&mut self) -> bool {
        self.rng.below(25) == 0
    }

    fn constant(&mut self, bits: u64) -> Value {
        let lanes = vec![bits & self.ty.lane.mask(); usize::from(self.ty.lanes)];
        self.push(Op::VecConst(lanes.into()), &[], self.ty)
    }

    fn binary(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        let (a, b) = match op.commutes() && self.chance(5) {
            true => (b, a),
            false => (a, b),
        };
        self.push(Op::Binary(op), &[a, b], self.ty)
    }

    fn not(&mut self, a: Value) -> Value {
        self.push(Op::Unary(UnOp::Not), &[a], self.ty)
    }

    fn down(&mut self, x: Value, by: u64) -> Value {
        let by = by + u64::from(self.wrong());
        let by = self.constant(by);
        self.push(Op::Binary(BinOp::LShr), &[x, by], self.ty)
    }

    fn masked(&mut self, x: Value, mask: u64) -> Value {
        let mask = mask ^ u64::from(self.wrong());
        let mask = self.constant(mask);
        self.binary(BinOp::And, x, mask)
    }

    fn input(&mut self) -> Value {
        let at = 16 * self.rng.below(3) as u32;
        self.push(Op::Input(Input::Payload(at)), &[], self.ty)
    }

    /// The sum of the fields of `x` and of those above them.
    fn fields(&mut self, x: Value, by: u64, mask: u64) -> Value {
        let a = self.masked(x, mask);
        let b = self.down(x, by);
        let b = self.masked(b, mask);
        self.binary(BinOp::Add, a, b)
    }

    fn count(&mut self) {
        let mut x = self.input();
        let width = u64::from(self.ty.lane.bits());
        if self.chance(2) {
            // All bits or none.
            let by = self.constant(width - 1);
            x = self.push(Op::Binary(BinOp::AShr), &[x, by], self.ty);
        }
        let mut v = match self.rng.below(3) {
            0 => self.fields(x, 1, 0x5555_5555_5555_5555),
            n => {
                let less = self.down(x, 1);
                let less = self.masked(less, 0x5555_5555_5555_5555);
                if n == 1 {
                    self.push(Op::Binary(BinOp::Sub), &[x, less], self.ty)
                } else {
                    let minus = self.push(Op::Unary(UnOp::Neg), &[less], self.ty);
                    self.binary(BinOp::Add, x, minus)
                }
            }
        };
        v = self.fields(v, 2, 0x3333_3333_3333_3333);
        v = match self.chance(5) {
            true => self.fields(v, 4, 0x0F0F_0F0F_0F0F_0F0F),
            false => {
                let other = self.down(v, 4);
                let sum = self.binary(BinOp::Add, v, other);
                self.masked(sum, 0x0F0F_0F0F_0F0F_0F0F)
            }
        };
        if self.chance(5) {
            let times = self.constant(0x0101_0101_0101_0101);
            v = self.binary(BinOp::Mul, v, times);
            v = self.down(v, width - 8);
        } else {
            let mut by = 8;
            while by < width {
                let other = self.down(v, by);
                v = self.binary(BinOp::Add, v, other);
                by *= 2;
            }
            let masks = [0x3F, 0x7F, 0xFF, 0x1F, 0x1FF];
            let mask = masks[self.rng.below(5)];
            let mask = self.constant(mask);
            v = self.binary(BinOp::And, v, mask);
        }
        self.results.push(v);
    }

    /// A byte of each word.
    fn byte(&mut self, x: Value) -> Value {
        let ty = self.ty.with_lane(Lane::I8);
        let k = self.rng.below(self.ty.lane.bytes() as usize) as u64;
        let x = if k > 0 { self.down(x, 8 * k) } else { x };
        self.push(Op::Convert(Conv::Trunc), &[x], ty)
    }

    /// Two vectors side by side.
    fn interleaved(&mut self, [a, b]: [Value; 2]) -> Value {
        let ty = self.f.ty(a);
        let n = ty.lanes;
        let indices = match self.wrong() {
            true => (0..2 * n).collect(),
            false => (0..n).flat_map(|k| [k, n + k]).collect(),
        };
        self.push(Op::Shuffle(indices), &[a, b], ty.with_lanes(2 * n))
    }

    fn bytes(&mut self) {
        let x = self.input();
        let mut parts: Vec<Value> = Vec::new();
        for _ in 0..self.ty.lane.bytes() {
            let of = if self.wrong() { self.input() } else { x };
            let byte = self.byte(of);
            parts.push(byte);
        }
        while parts.len() > 1 {
            let half = parts.len() / 2;
            parts = (0..half)
                .map(|k| self.interleaved([parts[k], parts[k + half]]))
                .collect();
        }
        let v = self.push(Op::Bitcast, &[parts[0]], self.ty);
        self.results.push(v);
    }

    fn either(&mut self) {
        let [mut x, y, z] =
            [0, 16, 32].map(|at| self.push(Op::Input(Input::Payload(at)), &[], self.ty));
        let not = self.not(y);
        let rest = self.binary(BinOp::And, x, not);
        let of = if self.wrong() { x } else { y };
        let either = if self.chance(5) {
            let v = self.binary(BinOp::Xor, z, of);
            self.binary(BinOp::Xor, v, rest)
        } else {
            self.binary(BinOp::Xor, of, rest)
        };
        self.results.push(either);
        if self.chance(5) {
            if self.wrong() {
                x = z;
            }
            let none = self.not(x);
            let none = self.binary(BinOp::And, none, not);
            let all = self.binary(BinOp::Xor, either, none);
            self.results.push(all);
        }
    }
}

fn function(seed: u64) -> Function {
    let mut rng = Rng::new(seed);
    let (lane, lanes) = [(Lane::I32, 4), (Lane::I64, 2), (Lane::I16, 8)][rng.below(3)];
    let mut g = Generator {
        rng,
        f: Function::new("bits", 8),
        ty: Ty::vector(lane, lanes),
        results: Vec::new(),
    };
    g.f.frame_bytes = FRAME;
    for _ in 0..1 + g.rng.below(3) {
        match g.rng.below(3) {
            0 => g.count(),
            1 => g.bytes(),
            _ => g.either(),
        }
    }
    for (v, at) in std::mem::take(&mut g.results).into_iter().zip(0..) {
        g.f.push(Function::ENTRY, Op::FrameStore(16 * at), vec![v], &[], 0);
    }
    g.f.block_mut(Function::ENTRY).term = Term::Return;
    g.f
}

#[test]
fn functions_of_bits_keep_the_meaning() {
    let mut found = [0; 3];
    let seeds = visa_test_common::share(4000, 10);
    for seed in 0..seeds {
        let g = unchanged_by(&["gvn", "fold", "gvn", "dce"], &function(seed), seed, 4);
        for &i in g.order.iter().flat_map(|&b| &g.block(b).insts) {
            let data = g.inst(i);
            match &data.op {
                Op::Unary(UnOp::Popcnt) => found[0] += 1,
                Op::Shuffle(_) if data.args.len() == 1 => found[1] += 1,
                Op::Binary(BinOp::Or) => found[2] += 1,
                _ => {}
            }
        }
    }
    assert!(found.iter().all(|&n| n > seeds / 8), "{found:?}");
}
