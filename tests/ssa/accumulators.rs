//! Random loops that carry sums, which are added up afterwards or not, mean the same when such sums become one.

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
    fn chance(&mut self, of_ten: usize) -> bool {
        self.rng.below(10) < of_ten
    }

    fn pick(&mut self, from: &[Value]) -> Value {
        from[self.rng.below(from.len())]
    }

    fn add(&mut self, b: Block, x: Value, y: Value) -> Value {
        let args = if self.chance(5) {
            vec![x, y]
        } else {
            vec![y, x]
        };
        let ty = self.f.ty(x);
        self.f.push1(b, Op::Binary(BinOp::Add), args, ty, 0)
    }

    fn call(block: Block, args: &[Value]) -> BlockCall {
        BlockCall {
            block,
            args: args.to_vec(),
        }
    }

    /// What sums are after one iteration. Now and then something else reads a step, or a sum is a term of another.
    fn steps(&mut self, b: Block, sums: &[Value], terms: &[Value]) -> Vec<Value> {
        let mut next = Vec::new();
        for &sum in sums {
            let mut at = sum;
            for _ in 0..1 + self.rng.below(3) {
                let term = if self.rng.below(40) == 0 {
                    self.pick(sums)
                } else {
                    self.pick(terms)
                };
                at = self.add(b, at, term);
                if self.rng.below(60) == 0 {
                    self.f.push(b, Op::FrameStore(128), vec![at], &[], 0);
                }
            }
            next.push(at);
        }
        next
    }

    /// Adds values up in any order and stores the sum; some by themselves.
    fn total(&mut self, b: Block, mut values: Vec<Value>, others: &[Value]) {
        values.push(self.pick(others));
        let mut at = 0;
        while values.len() > 1 {
            let x = values.swap_remove(self.rng.below(values.len()));
            if self.rng.below(30) == 0 {
                self.f.push(b, Op::FrameStore(at), vec![x], &[], 0);
                at += 128;
            }
            let y = values.swap_remove(self.rng.below(values.len()));
            let sum = self.add(b, x, y);
            values.push(sum);
        }
        self.f.push(b, Op::FrameStore(at), values, &[], 0);
    }
}

/// A loop that tests its counter at the end, or at the start: then what it begins with is read after it.
fn function(seed: u64) -> Function {
    let rng = Rng::new(seed);
    let mut g = Generator {
        rng,
        f: Function::new("sums", 8),
        ty: Ty::vector(Lane::I32, 8),
    };
    g.ty = [g.ty, Ty::I32, Ty::vector(Lane::I16, 8)][g.rng.below(3)];
    g.f.frame_bytes = FRAME;
    let entry = Function::ENTRY;
    let (ty, count) = (g.ty, 1 + g.rng.below(6));
    let inputs = [0, 32, 64, 96].map(|at| {
        g.f.push1(entry, Op::Input(Input::Payload(at)), vec![], ty, 0)
    });
    let constant = |g: &mut Generator, n: u64| g.f.push1(entry, Op::Const(n), vec![], Ty::I32, 0);
    let [zero, one] = [0, 1].map(|n| constant(&mut g, n));
    let times = g.rng.below(4) as u64;
    let times = constant(&mut g, times);
    let header = g.f.new_block();
    let sums: Vec<Value> = (0..count).map(|_| g.f.add_param(header, ty)).collect();
    let counter = g.f.add_param(header, Ty::I32);
    let mut first: Vec<Value> = (0..count).map(|_| g.pick(&inputs)).collect();
    first.push(zero);
    g.f.block_mut(entry).term = Term::Jump(Generator::call(header, &first));
    let done = g.f.new_block();
    let at_start = g.chance(5);
    let body = if at_start { g.f.new_block() } else { header };
    let mut next = g.steps(body, &sums, &inputs);
    let counted = g.add(body, counter, one);
    let tested = if at_start { counter } else { counted };
    let less = Op::ICmp(ICond::Slt);
    g.f.push(header, Op::Poll, vec![], &[], 0);
    let cond = g.f.push1(header, less, vec![tested, times], Ty::BOOL, 0);
    let read = if at_start { sums } else { next.clone() };
    next.push(counted);
    let back = Generator::call(header, &next);
    let then = if at_start {
        g.f.block_mut(body).term = Term::Jump(back);
        Generator::call(body, &[])
    } else {
        back
    };
    g.f.block_mut(header).term = Term::Branch {
        cond,
        then,
        other: Generator::call(done, &[]),
    };
    g.total(done, read, &inputs);
    g.f.block_mut(done).term = Term::Return;
    g.f
}

fn params(f: &Function) -> usize {
    f.order.iter().map(|&b| f.block(b).params.len()).sum()
}

#[test]
fn sums_of_loops_keep_the_meaning() {
    let (mut joined, seeds) = (0, visa_test_common::share(600, 8) as usize);
    for seed in 0..seeds as u64 {
        let f = function(seed);
        let joins = ["accumulators", "fold", "gvn", "cfg", "dce"];
        let [with, without] =
            [&joins[..], &joins[1..]].map(|passes| params(&unchanged_by(passes, &f, seed, 2)));
        joined += usize::from(with < without);
    }
    assert!(
        joined > seeds / 3,
        "{joined} loops with sums that become one"
    );
}
