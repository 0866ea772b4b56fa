//! Random sums of products of bytes, and of other things, mean the same when the products are summed four at a time.

use crate::generate::FRAME;
use crate::observe::unchanged_by;
use visa_jit::ssa::*;
use visa_test_common::Rng;

struct Generator {
    rng: Rng,
    f: Function,
    ty: Ty,
}

impl Generator {
    fn push(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        self.f.push1(Function::ENTRY, op, args.to_vec(), ty, 0)
    }

    fn one(&mut self, op: Op, args: &[Value]) -> Value {
        self.push(op, args, self.ty)
    }

    fn chance(&mut self, of_ten: usize) -> bool {
        self.rng.below(10) < of_ten
    }

    fn constant(&mut self, bits: u64) -> Value {
        let lanes = vec![bits; usize::from(self.ty.lanes)];
        self.one(Op::VecConst(lanes.into()), &[])
    }

    fn shift(&mut self, op: BinOp, x: Value, by: u64) -> Value {
        let by = self.constant(by);
        self.one(Op::Binary(op), &[x, by])
    }

    /// Byte `k` of the lanes of a vector.
    fn byte(&mut self, x: Value, k: u64, signed: bool) -> Value {
        let down = if signed { BinOp::AShr } else { BinOp::LShr };
        if !signed && self.chance(5) {
            let x = if k > 0 {
                self.shift(BinOp::LShr, x, 8 * k)
            } else {
                x
            };
            return self.shift(BinOp::And, x, 0xFF);
        }
        let x = match k {
            3 => x,
            _ => self.shift(BinOp::Shl, x, 24 - 8 * k),
        };
        self.shift(down, x, 24)
    }

    /// Byte `k` of a lane of words, in all lanes.
    fn same_byte(&mut self, words: Value, lane: u16, k: u16, signed: bool) -> Value {
        let bytes = Ty::vector(Lane::I8, 4 * self.f.ty(words).lanes);
        let view = self.push(Op::Bitcast, &[words], bytes);
        let op = Op::ExtractLane(4 * lane + k);
        let byte = self.push(op, &[view], Ty::scalar(Lane::I8));
        let extend = if signed { Conv::SExt } else { Conv::ZExt };
        let word = self.push(Op::Convert(extend), &[byte], Ty::I32);
        self.one(Op::Splat, &[word])
    }

    /// Products of the bytes of two words, mostly all four.
    fn products(&mut self, words: &[Value], terms: &mut Vec<Value>) {
        let [x, y] = [0, 1].map(|_| words[self.rng.below(words.len())]);
        let signs = [self.chance(5), self.chance(5)];
        let lane = self.chance(4).then(|| self.rng.below(4) as u16);
        for k in 0..4 {
            let other = if self.chance(1) { 3 - k } else { k };
            let sign = if self.chance(1) { !signs[1] } else { signs[1] };
            let a = self.byte(x, k, signs[0]);
            let b = match lane {
                Some(lane) => self.same_byte(y, lane, other as u16, sign),
                None => self.byte(y, other, sign),
            };
            let args = if self.chance(5) { [a, b] } else { [b, a] };
            let product = self.one(Op::Binary(BinOp::Mul), &args);
            let again = usize::from(self.rng.below(30) == 0);
            terms.extend(vec![product; 1 + again]);
        }
    }
}

fn function(seed: u64) -> Function {
    let mut rng = Rng::new(seed);
    let lanes = [8, 16, 32][rng.below(3)];
    let mut g = Generator {
        rng,
        f: Function::new("dots", lanes),
        ty: Ty::vector(Lane::I32, lanes),
    };
    g.f.frame_bytes = FRAME;
    let words = [0, 16, 32, 7].map(|at| g.one(Op::Input(Input::Payload(at)), &[]));
    let mut terms = words[..g.rng.below(3)].to_vec();
    for _ in 0..1 + g.rng.below(4) {
        g.products(&words, &mut terms);
    }
    // Terms are added in any order, and in any shape.
    while terms.len() > 1 {
        let a = terms.swap_remove(g.rng.below(terms.len()));
        let b = terms.swap_remove(g.rng.below(terms.len()));
        let sum = g.one(Op::Binary(BinOp::Add), &[a, b]);
        terms.push(sum);
        if g.rng.below(20) == 0 {
            // A sum that is used by itself as well.
            terms.push(sum);
        }
    }
    g.f.push(Function::ENTRY, Op::FrameStore(0), terms, &[], 0);
    g.f.block_mut(Function::ENTRY).term = Term::Return;
    g.f
}

#[test]
fn sums_of_products_of_bytes_keep_the_meaning() {
    let (mut dots, seeds) = (0, visa_test_common::share(600, 8) as usize);
    for seed in 0..seeds as u64 {
        let g = unchanged_by(
            &["gvn", "dot-products", "gvn", "dce"],
            &function(seed),
            seed,
            2,
        );
        let insts = g.order.iter().flat_map(|&b| &g.block(b).insts);
        dots += insts
            .filter(|&&i| matches!(g.inst(i).op, Op::Dot4(_)))
            .count();
    }
    assert!(dots > seeds / 2, "{dots} sums of four products");
}
