//! Random functions, with branches and loops, against the SSA evaluator.

use visa_jit::ssa::eval::{self, Bytes, Inputs, Thread};
use visa_jit::ssa::{
    BinOp, Block, BlockCall, Conv, FCond, Function, ICond, Lane, Op, Term, Ty, UnOp, Value, verify,
};

use crate::cases::{FLOATS, INTS, RandomLane, payload, same};
use crate::rig::{NONE, Rig, SPEED, install, install_base};
use visa_test_common::Rng;

struct Gen<'a> {
    f: Function,
    rng: &'a mut Rng,
    n: u16,
    block: Block,
    pool: Vec<Value>,
}

impl Gen<'_> {
    fn any_lane(&mut self) -> Lane {
        [
            Lane::I1,
            Lane::I8,
            Lane::I16,
            Lane::I32,
            Lane::I32,
            Lane::I64,
            Lane::F32,
            Lane::F64,
        ][self.rng.below(8)]
    }

    fn any_ty(&mut self) -> Ty {
        let lanes = if self.rng.below(4) == 0 { 1 } else { self.n };
        Ty::vector(self.any_lane(), lanes)
    }

    /// A value of a type, newest first more often.
    fn pick(&mut self, ty: Ty) -> Value {
        let of: Vec<Value> = (self.pool.iter().copied())
            .filter(|&v| self.f.ty(v) == ty)
            .collect();
        if of.is_empty() {
            return self.constant(ty);
        }
        let back = self.rng.below(of.len()).min(self.rng.below(of.len()));
        of[of.len() - 1 - back]
    }

    fn constant(&mut self, ty: Ty) -> Value {
        let lanes: Vec<u64> = (0..ty.lanes).map(|_| self.rng.lane(ty.lane)).collect();
        let op = if ty.is_scalar() {
            Op::Const(lanes[0])
        } else {
            Op::VecConst(lanes.into())
        };
        self.push(op, &[], ty)
    }

    fn push(&mut self, op: Op, args: &[Value], ty: Ty) -> Value {
        let v = self.f.push1(self.block, op, args.to_vec(), ty, 0);
        self.pool.push(v);
        v
    }

    fn step(&mut self) -> Value {
        let ty = self.any_ty();
        self.produce(ty)
    }

    /// A new value of a type.
    fn produce(&mut self, ty: Ty) -> Value {
        match self.rng.below(8) {
            0 => {
                let (a, b) = (self.pick(ty), self.pick(ty));
                let lanes = if self.rng.below(3) == 0 { 1 } else { ty.lanes };
                let c = self.pick(Ty::mask(lanes));
                self.push(Op::Select, &[c, a, b], ty)
            }
            1 => self.rearrange(ty),
            2 | 3 if ty.lane != Lane::I1 => self.convert(ty),
            _ if ty.lane == Lane::I1 => self.condition(ty),
            _ if ty.lane.is_float() => self.float(ty),
            _ => self.integer(ty),
        }
    }

    fn rearrange(&mut self, ty: Ty) -> Value {
        let (one, many) = (Ty::scalar(ty.lane), Ty::vector(ty.lane, self.n));
        let k = self.rng.below(usize::from(self.n)) as u16;
        if ty.is_scalar() {
            let a = self.pick(many);
            return self.push(Op::ExtractLane(k), &[a], ty);
        }
        match self.rng.below(3) {
            0 => {
                let s = self.pick(one);
                self.push(Op::Splat, &[s], ty)
            }
            1 => {
                let (a, s) = (self.pick(many), self.pick(one));
                self.push(Op::InsertLane(k), &[a, s], ty)
            }
            _ => {
                let (a, b) = (self.pick(many), self.pick(many));
                let (total, step) = (2 * usize::from(self.n), 1 + self.rng.below(3));
                let start = self.rng.below(total);
                let indices: Vec<u16> = (0..usize::from(ty.lanes))
                    .map(|i| ((start + i * step) % total) as u16)
                    .collect();
                self.push(Op::Shuffle(indices.into()), &[a, b], ty)
            }
        }
    }

    fn convert(&mut self, ty: Ty) -> Value {
        let int = INTS[self.rng.below(4)];
        let float = FLOATS[self.rng.below(2)];
        let unsigned = self.rng.below(2) == 0;
        let either = |a, b| if unsigned { a } else { b };
        let (conv, from) = match ty.lane {
            Lane::F32 if int == Lane::I8 => (Conv::FDemote, Lane::F64),
            Lane::F64 if int == Lane::I8 => (Conv::FPromote, Lane::F32),
            _ if ty.lane.is_float() && int == Lane::I16 => (Conv::F16ToF, Lane::I16),
            _ if ty.lane.is_float() => (either(Conv::UIToF, Conv::SIToF), int),
            to if int.bits() < to.bits() => (either(Conv::ZExt, Conv::SExt), int),
            to if int.bits() > to.bits() => (Conv::Trunc, int),
            Lane::I32 => (either(Conv::ZExt, Conv::SExt), Lane::I1),
            _ => (either(Conv::FToUI, Conv::FToSI), float),
        };
        let a = self.pick(ty.with_lane(from));
        self.push(Op::Convert(conv), &[a], ty)
    }

    fn condition(&mut self, ty: Ty) -> Value {
        if ty.is_scalar() && self.rng.below(2) == 0 {
            let m = self.pick(Ty::mask(self.n));
            let op = if self.rng.below(2) == 0 {
                Op::MaskAny
            } else {
                Op::MaskAll
            };
            return self.push(op, &[m], ty);
        }
        match self.rng.below(5) {
            0 => {
                let float = ty.with_lane(FLOATS[self.rng.below(2)]);
                let (a, b) = (self.pick(float), self.pick(float));
                let cond = [FCond::Eq, FCond::Ne, FCond::Lt, FCond::Ge][self.rng.below(4)];
                self.push(Op::FCmp(cond), &[a, b], ty)
            }
            1 => {
                let int = ty.with_lane(INTS[self.rng.below(4)]);
                let (a, b) = (self.pick(int), self.pick(int));
                let cond = [ICond::Eq, ICond::Ult, ICond::Sge, ICond::Slt][self.rng.below(4)];
                self.push(Op::ICmp(cond), &[a, b], ty)
            }
            2 => {
                let word = self.pick(Ty::I32);
                self.push(Op::BitsToMask, &[word], ty)
            }
            3 => {
                let a = self.pick(ty);
                self.push(Op::Unary(UnOp::Not), &[a], ty)
            }
            _ => {
                let (a, b) = (self.pick(ty), self.pick(ty));
                let op = [BinOp::And, BinOp::Or, BinOp::Xor][self.rng.below(3)];
                self.push(Op::Binary(op), &[a, b], ty)
            }
        }
    }

    fn float(&mut self, ty: Ty) -> Value {
        use BinOp::{FAdd, FDiv, FMul, FSub};
        let (a, b, c) = (self.pick(ty), self.pick(ty), self.pick(ty));
        match self.rng.below(8) {
            0 => {
                let op = [
                    UnOp::FAbs,
                    UnOp::FNeg,
                    UnOp::FSqrt,
                    UnOp::FFloor,
                    UnOp::FNearest,
                ];
                let op = op[self.rng.below(5)];
                self.push(Op::Unary(op), &[a], ty)
            }
            1 => self.push(Op::Fma, &[a, b, c], ty),
            k => self.push(Op::Binary([FAdd, FSub, FMul, FDiv][k % 4]), &[a, b], ty),
        }
    }

    fn integer(&mut self, ty: Ty) -> Value {
        use BinOp::{
            AShr, Add, And, LShr, Mul, MulHiS, MulHiU, Or, Rotl, SDiv, SMax, Shl, Sub, UDiv, UMin,
            URem, Xor,
        };
        let all = [
            AShr, Add, And, LShr, Mul, MulHiS, MulHiU, Or, Rotl, SDiv, SMax, Shl, Sub, UDiv, UMin,
            URem, Xor,
        ];
        let a = self.pick(ty);
        match self.rng.below(6) {
            0 => {
                let op = [UnOp::Clz, UnOp::Ctz, UnOp::Popcnt, UnOp::BitRev, UnOp::Neg];
                let op = op[self.rng.below(5)];
                self.push(Op::Unary(op), &[a], ty)
            }
            1 if ty == Ty::I32 => {
                let m = self.pick(Ty::mask(self.n));
                self.push(Op::MaskToBits, &[m], ty)
            }
            _ => {
                let op = all[self.rng.below(all.len())];
                let scalar_count = op.is_shift() && self.rng.below(2) == 0;
                let other = if scalar_count {
                    Ty::scalar(ty.lane)
                } else {
                    ty
                };
                let b = self.pick(other);
                self.push(Op::Binary(op), &[a, b], ty)
            }
        }
    }

    fn call(block: Block, args: Vec<Value>) -> BlockCall {
        BlockCall { block, args }
    }

    /// Two arms that join with three values.
    fn diamond(&mut self) {
        let tys: Vec<Ty> = (0..3).map(|_| self.any_ty()).collect();
        let cond = self.produce(Ty::BOOL);
        let (then, other, join) = (self.f.new_block(), self.f.new_block(), self.f.new_block());
        self.f.block_mut(self.block).term = Term::Branch {
            cond,
            then: Self::call(then, vec![]),
            other: Self::call(other, vec![]),
        };
        let before = self.pool.len();
        for arm in [then, other] {
            self.block = arm;
            for _ in 0..4 {
                self.step();
            }
            let args = tys.iter().map(|&ty| self.produce(ty)).collect();
            self.f.block_mut(arm).term = Term::Jump(Self::call(join, args));
            self.pool.truncate(before);
        }
        self.block = join;
        for ty in tys {
            let v = self.f.add_param(join, ty);
            self.pool.push(v);
        }
    }

    /// A loop of three turns that carries four values, one of them a mask.
    fn turns(&mut self) {
        let mut tys: Vec<Ty> = (0..3).map(|_| self.any_ty()).collect();
        tys.push(Ty::mask(self.n));
        let zero = self.push(Op::Const(0), &[], Ty::I32);
        let first: Vec<Value> = tys.iter().map(|&ty| self.pick(ty)).collect();
        let (head, after) = (self.f.new_block(), self.f.new_block());
        let args = [vec![zero], first].concat();
        self.f.block_mut(self.block).term = Term::Jump(Self::call(head, args));
        self.block = head;
        let count = self.f.add_param(head, Ty::I32);
        for &ty in &tys {
            let v = self.f.add_param(head, ty);
            self.pool.push(v);
        }
        self.f.push(head, Op::Poll, vec![], &[], 0);
        for _ in 0..5 {
            self.step();
        }
        let one = self.push(Op::Const(1), &[], Ty::I32);
        let next = self.push(Op::Binary(BinOp::Add), &[count, one], Ty::I32);
        let end = self.push(Op::Const(3), &[], Ty::I32);
        let again = self.push(Op::ICmp(ICond::Ult), &[next, end], Ty::BOOL);
        let again_args: Vec<Value> = tys.iter().map(|&ty| self.produce(ty)).collect();
        self.f.block_mut(self.block).term = Term::Branch {
            cond: again,
            then: Self::call(head, [vec![next], again_args].concat()),
            other: Self::call(after, vec![]),
        };
        self.block = after;
    }
}

const RESULTS: usize = 24;
const STRIDE: u32 = 256;

fn random_function(rng: &mut Rng) -> (Function, Vec<Ty>) {
    let n = [2, 3, 8, 8, 16, 16, 32][rng.below(7)];
    let mut g = Gen {
        f: Function::new("random", 32),
        rng,
        n,
        block: Function::ENTRY,
        pool: Vec::new(),
    };
    for i in 0..12 {
        let ty = g.any_ty();
        let v = payload(&mut g.f, i * STRIDE, ty);
        g.pool.push(v);
    }
    for _ in 0..3 {
        for _ in 0..6 {
            g.step();
        }
        if g.rng.below(2) == 0 {
            g.diamond();
        } else {
            g.turns();
        }
    }
    for _ in 0..4 {
        g.step();
    }
    let mut results = Vec::new();
    let last: Vec<Value> = g.pool.iter().rev().copied().take(RESULTS).collect();
    for v in last {
        let at = results.len() as u32 * STRIDE;
        let ty = g.f.ty(v);
        g.f.push(g.block, Op::FrameStore(at), vec![v], &[], 0);
        g.f.frame_bytes = at + STRIDE;
        results.push(ty);
    }
    g.f.block_mut(g.block).term = Term::Return;
    if let Err(errors) = verify(&g.f) {
        panic!("{}\n{}", errors[0], g.f);
    }
    (g.f, results)
}

#[test]
fn random_functions() {
    let count =
        std::env::var("VISA_RANDOM").map_or(visa_test_common::share(60, 4), |n| n.parse().unwrap());
    for seed in 1..=count {
        if let Some((_, why)) = crate::LEFT_OUT.iter().find(|(n, _)| *n == seed) {
            println!("seed {seed} is left out: {why}");
            continue;
        }
        let mut rng = Rng::new(seed * 0x9E37_79B9);
        let (f, results) = random_function(&mut rng);
        crate::generator::compiles_elsewhere(&f);
        for code in [install(&f, &NONE), install(&f, &SPEED), install_base(&f)] {
            let mut rig = Rig::new(1, f.frame_bytes as usize);
            for _ in 0..4 {
                let bytes: Vec<u8> = (0..8192 / 8)
                    .flat_map(|_| {
                        let lane = [Lane::I32, Lane::F32, Lane::F64, Lane::I64][rng.below(4)];
                        let low = rng.lane(lane);
                        (low | rng.lane(Lane::I32) << 32).to_le_bytes()
                    })
                    .collect();
                rig.payload.write(&bytes);
                rig.threads[0].state = 0;
                rig.run(code.entry());
                let inputs = Inputs {
                    payload: bytes,
                    ..Inputs::default()
                };
                let mut thread = Thread::new(&f);
                eval::run(&f, &inputs, &mut thread, &mut Bytes::default(), 10_000);
                let got = rig.frames[0].read();
                for (i, &ty) in results.iter().enumerate() {
                    let at = i * STRIDE as usize;
                    if let Err(text) = same(&thread.frame[at..], &got[at..], ty, false) {
                        panic!("seed {seed}, result {i}: {text}\n{f}");
                    }
                }
            }
        }
    }
}
