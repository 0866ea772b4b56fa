//! Saturating sums in the spellings of compilers, mostly right and sometimes wrong in a detail, mean the same when they are one operation.

use crate::generate::{FRAME, ICONDS};
use crate::observe::unchanged_by;
use visa_jit::ssa::*;
use visa_test_common::Rng;

struct Generator {
    rng: Rng,
    f: Function,
    ty: Ty,
    /// What is stored in the end.
    results: Vec<Value>,
}

impl Generator {
    fn push(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        self.f.push1(Function::ENTRY, op, args.to_vec(), ty, 0)
    }

    fn chance(&mut self, of_ten: usize) -> bool {
        self.rng.below(10) < of_ten
    }

    fn constant(&mut self, ty: Ty, bits: u64) -> Value {
        let lanes = vec![bits & ty.lane.mask(); usize::from(ty.lanes)];
        self.push(Op::VecConst(lanes.into()), &[], ty)
    }

    fn binary(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        let ty = self.f.ty(a);
        self.push(Op::Binary(op), &[a, b], ty)
    }

    fn unary(&mut self, op: UnOp, a: Value) -> Value {
        let ty = self.f.ty(a);
        self.push(Op::Unary(op), &[a], ty)
    }

    /// A comparison, mostly this one, maybe with its sides exchanged.
    fn compare(&mut self, cond: ICond, a: Value, b: Value) -> Value {
        let cond = match self.rng.below(20) {
            0 => ICONDS[self.rng.below(ICONDS.len())],
            _ => cond,
        };
        let turned = match cond {
            ICond::Ult => ICond::Ugt,
            ICond::Ule => ICond::Uge,
            ICond::Ugt => ICond::Ult,
            ICond::Uge => ICond::Ule,
            other => other,
        };
        let (cond, a, b) = match self.chance(5) {
            true => (turned, b, a),
            false => (cond, a, b),
        };
        let ty = self.f.ty(a).with_lane(Lane::I1);
        self.push(Op::ICmp(cond), &[a, b], ty)
    }

    /// Two operands. The second is often close to a bound of the first, as a constant or in lanes.
    fn operands(&mut self) -> (Value, Value) {
        let inputs = [0, 16].map(|at| self.push(Op::Input(Input::Payload(at)), &[], self.ty));
        let small = [0, 1, 1, 2, 5, u64::MAX, self.ty.lane.mask() / 2][self.rng.below(7)];
        let near = self.constant(self.ty, small);
        let (a, mut b) = (inputs[0], inputs[1]);
        match self.rng.below(6) {
            0 => b = near,
            1 => b = self.binary(BinOp::Add, a, near),
            2 => {
                let sum = self.binary(BinOp::Add, a, near);
                b = self.unary(UnOp::Not, sum);
            }
            _ => {}
        }
        (a, b)
    }

    fn select(&mut self, mask: Value, bound: Value, result: Value) {
        let (mask, set, clear) = match self.chance(5) {
            true => (self.unary(UnOp::Not, mask), result, bound),
            false => (mask, bound, result),
        };
        let v = self.push(Op::Select, &[mask, set, clear], self.ty);
        self.results.push(v);
    }

    fn wrapping_sum(&mut self) {
        let (a, b) = self.operands();
        let (x, y) = if self.chance(5) { (a, b) } else { (b, a) };
        let sum = self.binary(BinOp::Add, x, y);
        let bound = if self.chance(9) { u64::MAX } else { 0 };
        let bound = self.constant(self.ty, bound);
        let (operand, other) = if self.chance(5) { (a, b) } else { (b, a) };
        match self.rng.below(4) {
            0 if self.ty.lane != Lane::I64 => self.sum_with_carry((a, b), sum, bound),
            1 => {
                let most = self.unary(UnOp::Not, other);
                let mask = self.compare(ICond::Ugt, operand, most);
                self.select(mask, bound, sum);
            }
            _ => {
                let mask = self.compare(ICond::Ult, sum, operand);
                self.select(mask, bound, sum);
            }
        }
    }

    /// The test of the bit above a sum, maybe after one whether the sum is the bound.
    fn sum_with_carry(&mut self, (a, b): (Value, Value), sum: Value, bound: Value) {
        let wide = self.ty.with_lane(Lane::I64);
        let [a, b] = [a, b].map(|v| self.push(Op::Convert(Conv::ZExt), &[v], wide));
        let exact = self.binary(BinOp::Add, a, b);
        let less = u64::from(self.rng.below(20) == 0);
        let count = self.constant(wide, u64::from(self.ty.lane.bits()) - less);
        let mut carry = self.binary(BinOp::LShr, exact, count);
        let mut ty = wide;
        if self.chance(5) {
            ty = self.ty;
            carry = self.push(Op::Convert(Conv::Trunc), &[carry], ty);
        }
        let zero = self.constant(ty, 0);
        if self.chance(5) {
            let cond = if self.chance(9) { ICond::Ne } else { ICond::Eq };
            let mask = self.compare(cond, carry, zero);
            return self.select(mask, bound, sum);
        }
        let mut mask = self.compare(ICond::Eq, carry, zero);
        if self.chance(5) {
            let cond = [ICond::Ult, ICond::Ne][self.rng.below(2)];
            let below = self.compare(cond, sum, bound);
            mask = self.binary(BinOp::And, below, mask);
        }
        let v = self.push(Op::Select, &[mask, sum, bound], self.ty);
        self.results.push(v);
    }

    fn wrapping_difference(&mut self) {
        let (a, b) = self.operands();
        let difference = match self.chance(5) {
            true => self.binary(BinOp::Sub, a, b),
            false => {
                let minus = self.unary(UnOp::Neg, b);
                self.binary(BinOp::Add, a, minus)
            }
        };
        let bound = if self.chance(9) { 0 } else { u64::MAX };
        let bound = self.constant(self.ty, bound);
        let cond = [ICond::Ult, ICond::Ule][self.rng.below(2)];
        let mask = match self.chance(5) {
            true => self.compare(cond, a, b),
            false => self.compare(ICond::Ugt, difference, a),
        };
        self.select(mask, bound, difference);
    }

    /// A difference of a constant, of which comparisons have another constant.
    fn constant_difference(&mut self) {
        let (a, _) = self.operands();
        let c = [
            1,
            1,
            2,
            100,
            self.ty.lane.mask(),
            self.ty.lane.mask() / 2 + 1,
        ];
        let c = c[self.rng.below(c.len())];
        let minus = self.constant(self.ty, c.wrapping_neg());
        let difference = self.binary(BinOp::Add, a, minus);
        let by = c
            .wrapping_add([0, 0, 1, 1, 2][self.rng.below(5)])
            .wrapping_sub(1);
        let by = self.constant(self.ty, by);
        let cond = [ICond::Ult, ICond::Ule, ICond::Eq][self.rng.below(3)];
        let mask = self.compare(cond, a, by);
        let zero = self.constant(self.ty, 0);
        self.select(mask, zero, difference);
    }

    /// The same of extended operands.
    fn extended(&mut self) {
        let wider = [Lane::I16, Lane::I32, Lane::I64].map(|lane| self.ty.with_lane(lane));
        let wide = wider[self.rng.below(3)];
        if wide.lane.bits() <= self.ty.lane.bits() {
            return;
        }
        let signed = self.chance(5);
        let (a, b) = self.operands();
        let [a, mut b] = [a, b].map(|v| {
            let conv = match signed != (self.rng.below(30) == 0) {
                true => Conv::SExt,
                false => Conv::ZExt,
            };
            self.push(Op::Convert(conv), &[v], wide)
        });
        let ones = self.ty.lane.mask();
        if self.chance(3) {
            let all = [
                1,
                ones,
                ones + 1,
                ones / 2,
                ones / 2 + 1,
                ones.wrapping_neg(),
            ];
            let c = all[self.rng.below(all.len())];
            b = self.constant(wide, c);
        }
        let mut sum = match self.rng.below(3) {
            0 => self.binary(BinOp::Add, a, b),
            1 => self.binary(BinOp::Sub, a, b),
            _ => {
                let minus = self.unary(UnOp::Neg, b);
                self.binary(BinOp::Add, minus, a)
            }
        };
        let (low, high) = match signed {
            true => ((ones / 2 + 1).wrapping_neg(), ones / 2),
            false => (0, ones),
        };
        let off = |rng: &mut Rng| match rng.below(20) {
            0 => u64::MAX,
            1 => 1,
            _ => 0,
        };
        let mut bounds = vec![
            (BinOp::SMax, low.wrapping_add(off(&mut self.rng))),
            (BinOp::SMin, high.wrapping_add(off(&mut self.rng))),
        ];
        if !signed && self.chance(5) {
            bounds[1].0 = BinOp::UMin;
        }
        if self.chance(5) {
            bounds.swap(0, 1);
        }
        if !signed && self.chance(4) {
            bounds.remove(self.rng.below(2));
        }
        for (op, bound) in bounds {
            let bound = self.constant(wide, bound);
            sum = self.binary(op, sum, bound);
        }
        let v = self.push(Op::Convert(Conv::Trunc), &[sum], self.ty);
        self.results.push(v);
    }
}

fn function(seed: u64) -> Function {
    let mut rng = Rng::new(seed);
    let lane = [Lane::I8, Lane::I8, Lane::I16, Lane::I32, Lane::I64][rng.below(5)];
    let lanes = if lane == Lane::I64 { 2 } else { 4 };
    let mut g = Generator {
        rng,
        f: Function::new("clamps", 8),
        ty: Ty::vector(lane, lanes),
        results: Vec::new(),
    };
    g.f.frame_bytes = FRAME;
    for _ in 0..1 + g.rng.below(4) {
        match g.rng.below(5) {
            0 => g.wrapping_sum(),
            1 => g.wrapping_difference(),
            2 => g.constant_difference(),
            _ => g.extended(),
        }
    }
    for (v, at) in std::mem::take(&mut g.results).into_iter().zip(0..) {
        g.f.push(Function::ENTRY, Op::FrameStore(16 * at), vec![v], &[], 0);
    }
    g.f.block_mut(Function::ENTRY).term = Term::Return;
    g.f
}

#[test]
fn saturating_sums_keep_the_meaning() {
    use BinOp::{SAddSat, SSubSat, UAddSat, USubSat};
    let mut found = [0; 4];
    let seeds = visa_test_common::share(6000, 16);
    for seed in 0..seeds {
        let g = unchanged_by(
            &["gvn", "fold", "gvn", "fold", "dce"],
            &function(seed),
            seed,
            8,
        );
        for &i in g.order.iter().flat_map(|&b| &g.block(b).insts) {
            for (n, op) in [SAddSat, SSubSat, UAddSat, USubSat].into_iter().enumerate() {
                found[n] += u64::from(g.inst(i).op == Op::Binary(op));
            }
        }
    }
    assert!(found.iter().all(|&n| n > seeds / 20), "{found:?}");
}
