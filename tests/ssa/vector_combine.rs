//! Random functions that treat 64-bit lanes as pairs of 32-bit ones, as compilers of kernels do, mean the same when the lanes are
//! whole again.

use crate::generate::FRAME;
use crate::observe::unchanged_by;
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
        if self.chance(3) {
            return self.shifted_together(low, high);
        }
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

    /// The same by shifts and masks, mostly those of the halves.
    fn shifted_together(&mut self, low: Value, high: Value) {
        let wide = Ty::vector(Lane::I64, self.lanes);
        let lanes = usize::from(self.lanes);
        let count = self.push(Op::VecConst(vec![32; lanes].into()), Vec::new(), wide);
        let [low, mut high] =
            [low, high].map(|half| self.push(Op::Convert(Conv::ZExt), vec![half], wide));
        high = self.push(Op::Binary(BinOp::Shl), vec![high, count], wide);
        let mut parts = [low, high];
        for (part, mask) in [(0, !0 << 32), (1, u64::from(u32::MAX))] {
            // Over the half of an old vector, or beside it.
            if self.chance(3) {
                let old = self.pick();
                let mask = match self.rng.below(8) {
                    0 => self.pick(),
                    1 => self.push(Op::VecConst(vec![mask ^ 1; lanes].into()), Vec::new(), wide),
                    _ => self.push(Op::VecConst(vec![mask; lanes].into()), Vec::new(), wide),
                };
                let kept = self.push(Op::Binary(BinOp::And), vec![old, mask], wide);
                parts[part] = self.push(Op::Binary(BinOp::Or), vec![parts[part], kept], wide);
                if self.chance(5) {
                    parts[1 - part] = parts[part];
                }
            }
        }
        let x = self.push(Op::Binary(BinOp::Or), parts.to_vec(), wide);
        self.wide.push(x);
    }

    fn step(&mut self) {
        let (x, y) = (self.pick(), self.pick());
        let (mut a, b) = (self.halves(x), self.halves(y));
        if self.chance(1) {
            a.swap(0, 1);
        }
        let (half, mask_ty) = (self.half(), Ty::vector(Lane::I1, self.lanes));
        match self.rng.below(6) {
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
            3 => self.ordered(),
            4 => self.product([a, b]),
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

/// Ways to write that 64-bit lanes are less, by the order of their halves.
impl Generator {
    fn mask_op(&mut self, op: Op, args: &[Value]) -> Value {
        let ty = Ty::vector(Lane::I1, self.lanes);
        self.push(op, args.to_vec(), ty)
    }

    /// A mask of an order of two vectors, mostly.
    fn ordered(&mut self) {
        use ICond::{Eq, Ne, Sge, Sgt, Sle, Slt, Uge, Ugt, Ule, Ult};
        let wide = Ty::vector(Lane::I64, self.lanes);
        // Few values, so that halves are the same now and then.
        let sides = [(); 2].map(|()| {
            let x = self.pick();
            let bits = vec![0x8000_0001_0000_0001; usize::from(self.lanes)];
            let few = self.push(Op::VecConst(bits.into()), Vec::new(), wide);
            self.push(Op::Binary(BinOp::And), vec![x, few], wide)
        });
        let (x, y) = (self.halves(sides[0]), self.halves(sides[1]));
        let signed = self.chance(5);
        let [lt, le, gt, ge] = if signed {
            [Slt, Sle, Sgt, Sge]
        } else {
            [Ult, Ule, Ugt, Uge]
        };
        let more = self.chance(5);
        let (strict, loose, other) = if more { (gt, ge, lt) } else { (lt, le, gt) };
        let mut low = match (more, self.chance(5)) {
            (true, true) => Ugt,
            (true, false) => Uge,
            (false, true) => Ult,
            (false, false) => Ule,
        };
        if self.chance(1) {
            low = Slt;
        }
        let compare = |g: &mut Self, cond: ICond, k: usize| {
            let turned = match cond {
                Eq | Ne => g.chance(5).then_some(cond),
                Slt => g.chance(3).then_some(Sgt),
                Ugt => g.chance(3).then_some(Ult),
                _ => None,
            };
            match turned {
                Some(cond) => g.mask_op(Op::ICmp(cond), &[y[k], x[k]]),
                None => g.mask_op(Op::ICmp(cond), &[x[k], y[k]]),
            }
        };
        let l = compare(self, low, 0);
        let (and, or, not) = (
            Op::Binary(BinOp::And),
            Op::Binary(BinOp::Or),
            Op::Unary(UnOp::Not),
        );
        let form = self.rng.below(5);
        let mask = match form {
            0 | 1 => {
                let equal = compare(self, if form == 0 { Eq } else { loose }, 1);
                let less = compare(self, strict, 1);
                let both = self.mask_op(and, &[equal, l]);
                self.mask_op(or, &[less, both])
            }
            2 => {
                let differ = compare(self, Ne, 1);
                let most = compare(self, loose, 1);
                let either = self.mask_op(or, &[differ, l]);
                self.mask_op(and, &[either, most])
            }
            3 => {
                let equal = compare(self, Eq, 1);
                let less = compare(self, strict, 1);
                self.mask_op(Op::Select, &[equal, l, less])
            }
            _ => {
                let more = compare(self, other, 1);
                let equal = compare(self, Eq, 1);
                let low = self.mask_op(not.clone(), &[l]);
                let both = self.mask_op(and, &[equal, low]);
                let any = self.mask_op(or, &[more, both]);
                self.mask_op(not, &[any])
            }
        };
        self.masks.push(mask);
    }

    /// A product of two vectors by their halves, of which one may be zero.
    fn product(&mut self, [a, b]: [[Value; 2]; 2]) {
        let half = self.half();
        let mul = Op::Binary(BinOp::Mul);
        let b = if self.chance(3) { a } else { b };
        let crossed = self.chance(1);
        let low = self.push(mul.clone(), vec![b[0], a[0]], half);
        let mut sum = self.push(Op::Binary(BinOp::MulHiU), vec![a[0], b[0]], half);
        for (x, y) in [(a[1], b[0]), (b[1], a[usize::from(crossed)])] {
            if self.chance(8) {
                let part = self.push(mul.clone(), vec![x, y], half);
                let terms = if self.chance(5) {
                    vec![part, sum]
                } else {
                    vec![sum, part]
                };
                sum = self.push(Op::Binary(BinOp::Add), terms, half);
            }
        }
        self.join([low, sum]);
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
        let g = unchanged_by(
            &["fold", "gvn", "vector-combine", "fold", "gvn", "dce"],
            &function(seed),
            seed,
            2,
        );
        raised += wide_operations(&g);
    }
    assert!(raised > seeds, "{raised} operations on whole lanes");
}
