//! Random functions that treat 64-bit lanes as pairs of 32-bit ones, as compilers of kernels do, mean the same when the lanes are
//! whole again.

use crate::generate::FRAME;
use crate::observe::observe;
use visa_jit::passes::{PassOptions, optimize, run_pass};
use visa_jit::ssa::*;
use visa_test_common::Rng;

struct Generator {
    rng: Rng,
    f: Function,
    lanes: u16,
    /// 64-bit vectors.
    wide: Vec<Value>,
    masks: Vec<Value>,
}

/// Operations on both halves.
const BITWISE: [BinOp; 3] = [BinOp::And, BinOp::Or, BinOp::Xor];

impl Generator {
    fn push(&mut self, op: Op, args: Vec<Value>, ty: Ty) -> Value {
        self.f.push1(Function::ENTRY, op, args, ty, 0)
    }

    fn chance(&mut self, of_ten: usize) -> bool {
        self.rng.below(10) < of_ten
    }

    fn pick(&mut self) -> Value {
        self.wide[self.rng.below(self.wide.len())]
    }

    fn mask(&mut self) -> Value {
        self.masks[self.rng.below(self.masks.len())]
    }

    fn half(&self) -> Ty {
        Ty::vector(Lane::I32, self.lanes)
    }

    fn constant(&mut self, bits: u64) -> Value {
        let lanes = vec![bits; usize::from(self.lanes)];
        self.push(Op::VecConst(lanes.into()), Vec::new(), self.half())
    }

    /// The low and high halves of a vector, whole or in two pieces each.
    fn halves(&mut self, x: Value) -> [Value; 2] {
        let n = self.lanes;
        let view = self.push(Op::Bitcast, vec![x], Ty::vector(Lane::I32, 2 * n));
        [0, 1].map(|first| {
            if self.chance(5) {
                let indices: Box<[u16]> = (0..n).map(|k| 2 * k + first).collect();
                return self.push(Op::Shuffle(indices), vec![view], self.half());
            }
            let pieces = [0, n / 2].map(|start| {
                let indices = (0..n / 2).map(|k| 2 * (start + k) + first).collect();
                let ty = Ty::vector(Lane::I32, n / 2);
                self.push(Op::Shuffle(indices), vec![view], ty)
            });
            if self.chance(3) {
                return self.joined_sum(pieces);
            }
            let all = (0..n).collect();
            self.push(Op::Shuffle(all), pieces.to_vec(), self.half())
        })
    }

    /// Pieces with something done to each of them.
    fn joined_sum(&mut self, pieces: [Value; 2]) -> Value {
        let n = self.lanes;
        let ty = Ty::vector(Lane::I32, n / 2);
        let same = self.chance(7);
        let done = [3, if same { 3 } else { 5 }];
        let parts = [0, 1].map(|k| {
            let bits = vec![done[k]; usize::from(n / 2)];
            let c = self.push(Op::VecConst(bits.into()), Vec::new(), ty);
            let op = if self.chance(9) {
                BinOp::Xor
            } else {
                BinOp::Add
            };
            self.push(Op::Binary(op), vec![pieces[k], c], ty)
        });
        self.push(Op::Shuffle((0..n).collect()), parts.to_vec(), self.half())
    }

    /// Both halves side by side again, at once or one after the other into an old vector.
    fn join(&mut self, [low, high]: [Value; 2]) {
        let n = self.lanes;
        let ty = Ty::vector(Lane::I32, 2 * n);
        let all = if self.chance(5) {
            let indices = (0..n).flat_map(|k| [k, n + k]).collect();
            self.push(Op::Shuffle(indices), vec![low, high], ty)
        } else {
            let old = self.pick();
            let old = self.push(Op::Bitcast, vec![old], ty);
            let indices = (0..n).flat_map(|k| [k, n + 2 * k + 1]).collect();
            let first = self.push(Op::Shuffle(indices), vec![low, old], ty);
            let indices = (0..n).flat_map(|k| [2 * k, 2 * n + k]).collect();
            self.push(Op::Shuffle(indices), vec![first, high], ty)
        };
        let wide = Ty::vector(Lane::I64, n);
        let x = self.push(Op::Bitcast, vec![all], wide);
        self.wide.push(x);
    }

    fn step(&mut self) {
        let (x, y) = (self.pick(), self.pick());
        let (mut a, b) = (self.halves(x), self.halves(y));
        if self.chance(1) {
            a.swap(0, 1);
        }
        let (half, mask_ty) = (self.half(), Ty::vector(Lane::I1, self.lanes));
        match self.rng.below(4) {
            0 => {
                let op = BITWISE[self.rng.below(3)];
                let other = if self.chance(9) {
                    op
                } else {
                    BITWISE[self.rng.below(3)]
                };
                let low = self.push(Op::Binary(op), vec![a[0], b[0]], half);
                let high = self.push(Op::Binary(other), vec![a[1], b[1]], half);
                self.join([low, high]);
            }
            1 => {
                let mask = self.mask();
                let other = if self.chance(9) { mask } else { self.mask() };
                let low = self.push(Op::Select, vec![mask, a[0], b[0]], half);
                let high = self.push(Op::Select, vec![other, a[1], b[1]], half);
                self.join([low, high]);
            }
            2 => {
                let bits = self.rng.below(1 << 20) as u64;
                let c = self.constant(bits);
                let other = if self.chance(9) {
                    c
                } else {
                    self.constant(bits + 1)
                };
                let low = self.push(Op::Binary(BinOp::Mul), vec![a[0], c], half);
                let carry = self.push(Op::Binary(BinOp::MulHiU), vec![a[0], c], half);
                let high = self.push(Op::Binary(BinOp::Mul), vec![other, a[1]], half);
                let high = self.push(Op::Binary(BinOp::Add), vec![high, carry], half);
                self.join([low, high]);
            }
            _ => {
                let (cond, with) = match self.chance(5) {
                    true => (ICond::Eq, BinOp::And),
                    false => (ICond::Ne, BinOp::Or),
                };
                let c = [0, 1].map(|k| match self.chance(5) {
                    true => b[k],
                    false => self.constant(k as u64),
                });
                let sides = [0, 1].map(|k| self.push(Op::ICmp(cond), vec![a[k], c[k]], mask_ty));
                let mask = self.push(Op::Binary(with), sides.to_vec(), mask_ty);
                self.masks.push(mask);
            }
        }
    }
}

fn function(seed: u64) -> Function {
    let mut rng = Rng::new(seed);
    let lanes = [8, 16][rng.below(2)];
    let mut g = Generator {
        rng,
        f: Function::new("combine", lanes),
        lanes,
        wide: Vec::new(),
        masks: Vec::new(),
    };
    g.f.frame_bytes = FRAME;
    let wide = Ty::vector(Lane::I64, lanes);
    for offset in [0, 128] {
        let x = g.push(Op::Input(Input::Payload(offset)), Vec::new(), wide);
        g.wide.push(x);
    }
    let all = g.push(
        Op::Input(Input::DispatchMask),
        Vec::new(),
        Ty::vector(Lane::I1, lanes),
    );
    g.masks.push(all);
    for _ in 0..6 {
        g.step();
    }
    let mut stored = vec![g.pick(), *g.wide.last().expect("inputs")];
    let last = *g.masks.last().expect("dispatch mask");
    let one = g.constant(1);
    let zero = g.constant(0);
    stored.push(g.push(
        Op::Select,
        vec![last, one, zero],
        Ty::vector(Lane::I32, lanes),
    ));
    for (n, v) in stored.into_iter().enumerate() {
        let op = Op::FrameStore(n as u32 * 128);
        g.f.push(Function::ENTRY, op, vec![v], &[], 0);
    }
    g.f.block_mut(Function::ENTRY).term = Term::Return;
    g.f
}

/// Operations on 64-bit lanes.
fn wide_operations(f: &Function) -> usize {
    let insts = f.order.iter().flat_map(|&b| &f.block(b).insts);
    insts
        .map(|&i| f.inst(i))
        .filter(|data| match data.op {
            Op::Binary(BinOp::Mul | BinOp::And | BinOp::Or | BinOp::Xor) | Op::Select => {
                f.ty(data.results[0]).lane == Lane::I64
            }
            Op::ICmp(_) => f.ty(data.args[0]).lane == Lane::I64,
            _ => false,
        })
        .count()
}

#[test]
fn combined_vectors_keep_the_meaning() {
    let (mut raised, seeds) = (0, visa_test_common::share(800, 16) as usize);
    for seed in 0..seeds as u64 {
        let f = function(seed);
        verify(&f).unwrap_or_else(|e| panic!("seed {seed}: {}\n{f}", e[0]));
        let mut g = f.clone();
        for pass in ["fold", "gvn", "vector-combine", "fold", "gvn", "dce"] {
            run_pass(&mut g, pass);
            verify(&g).unwrap_or_else(|e| panic!("seed {seed}, {pass}: {}\n{f}\n{g}", e[0]));
        }
        let mut h = f.clone();
        optimize(&mut h, &PassOptions::default()).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        for s in [seed, seed + 1] {
            let want = observe(&f, s);
            assert!(want == observe(&g, s), "seed {seed}\n{f}\n{g}");
            assert!(want == observe(&h, s), "seed {seed}\n{f}\n{h}");
        }
        raised += wide_operations(&g);
    }
    assert!(raised > seeds * 5 / 8, "{raised} operations on whole lanes");
}
