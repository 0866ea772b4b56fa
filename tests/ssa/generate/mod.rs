//! Random functions: lane-wise code, diamonds, uniform and divergent loops, memory, barriers. Deterministic by seed.
//!
//! Every function ends by itself, and what it computes is stored where [`crate::observe`] sees it.

use visa_jit::ssa::*;
use visa_test_common::Rng;

mod cases;
mod memory;

/// Bytes of the frame that functions write to themselves.
pub const FRAME: u32 = 4096;

/// Bytes at its start that are storage of registers.
const REGS: u32 = 128;

pub struct Generator {
    rng: Rng,
    f: Function,
    /// Values in scope.
    pool: Vec<Value>,
    block: Block,
    lanes: u16,
    budget: usize,
    /// Bytes of the frame that have something.
    saved: u32,
    /// Emit barriers and exchanges.
    barriers: bool,
}

const INTS: [Lane; 4] = [Lane::I8, Lane::I16, Lane::I32, Lane::I64];
const FLOATS: [Lane; 2] = [Lane::F32, Lane::F64];
pub const ICONDS: [ICond; 10] = [
    ICond::Eq,
    ICond::Ne,
    ICond::Slt,
    ICond::Sle,
    ICond::Sgt,
    ICond::Sge,
    ICond::Ult,
    ICond::Ule,
    ICond::Ugt,
    ICond::Uge,
];
const INT_OPS: [BinOp; 25] = [
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::MulHiS,
    BinOp::MulHiU,
    BinOp::SDiv,
    BinOp::UDiv,
    BinOp::SRem,
    BinOp::URem,
    BinOp::And,
    BinOp::Or,
    BinOp::Xor,
    BinOp::Shl,
    BinOp::LShr,
    BinOp::AShr,
    BinOp::Rotl,
    BinOp::Rotr,
    BinOp::SMin,
    BinOp::SMax,
    BinOp::UMin,
    BinOp::UMax,
    BinOp::SAddSat,
    BinOp::SSubSat,
    BinOp::UAddSat,
    BinOp::USubSat,
];

/// A verified function.
pub fn function(seed: u64) -> Function {
    let mut rng = Rng::new(seed);
    let lanes = *rng.pick(&[8, 8, 16]);
    let mut f = Function::new("random", lanes);
    f.frame_bytes = FRAME;
    f.regs_bytes = REGS;
    f.row = [None, Some(lanes / 2), Some(4)][seed as usize % 3];
    f.sites.push(Site {
        line: 0,
        opcode: "gather",
        space: Space::Surface,
        kind: AccessKind::Read,
        bytes: 4,
        alignment: 1,
        first_lane: 0,
        parts: Vec::new(),
    });
    let budget = 20 + rng.below(80);
    let mut g = Generator {
        rng,
        f,
        pool: Vec::new(),
        block: Function::ENTRY,
        lanes,
        budget,
        saved: REGS,
        barriers: seed.is_multiple_of(3),
    };
    g.inputs();
    g.region(3);
    g.store_rows();
    g.store_pool();
    g.terminate(Term::Return);
    g.f
}

impl Generator {
    fn push(&mut self, op: Op, args: Vec<Value>, ty: Ty) -> Value {
        let v = self.f.push1(self.block, op, args, ty, 0);
        self.pool.push(v);
        v
    }

    fn terminate(&mut self, term: Term) {
        self.f.block_mut(self.block).term = term;
    }

    fn inputs(&mut self) {
        let n = self.lanes;
        self.push(Op::Input(Input::DispatchMask), vec![], Ty::mask(n));
        for dim in 0..3 {
            let input = Input::LocalIds { dim, first: 0 };
            self.push(Op::Input(input), vec![], Ty::vector(Lane::I16, n));
        }
        for at in 0..4 {
            self.push(Op::Input(Input::Payload(at * 4)), vec![], Ty::I32);
        }
        self.push(
            Op::Input(Input::Payload(16)),
            vec![],
            Ty::vector(Lane::I32, n),
        );
        self.push(Op::Input(Input::Payload(8)), vec![], Ty::I64);
    }

    fn bits(&mut self, lane: Lane) -> u64 {
        if lane.is_float() {
            let x = *self
                .rng
                .pick(&[0.0, 1.0, -1.0, 0.5, 3.25, -0.0, 1e30, 1e-3]);
            return match lane {
                Lane::F32 => u64::from((x as f32).to_bits()),
                _ => f64::to_bits(x),
            };
        }
        let small = self.rng.below(8) as u64;
        let any = self.rng.bits();
        let power = 1 << self.rng.below(64);
        let bits = *self
            .rng
            .pick(&[0, 0, 1, u64::MAX, small, small, any, power, power - 1]);
        bits & lane.mask()
    }

    fn constant(&mut self, ty: Ty) -> Value {
        if ty.is_scalar() {
            let bits = self.bits(ty.lane);
            return self.push(Op::Const(bits), vec![], ty);
        }
        let first = self.bits(ty.lane);
        let lanes = match self.rng.below(3) {
            0 => vec![first; usize::from(ty.lanes)],
            1 if !ty.lane.is_float() => {
                let step = self.bits(ty.lane);
                let at = |i: u64| first.wrapping_add(i.wrapping_mul(step)) & ty.lane.mask();
                (0..u64::from(ty.lanes)).map(at).collect()
            }
            _ => (0..ty.lanes).map(|_| self.bits(ty.lane)).collect(),
        };
        self.push(Op::VecConst(lanes.into()), vec![], ty)
    }

    /// A value of this type, mostly a recent one.
    fn value(&mut self, ty: Ty) -> Value {
        let of_type: Vec<Value> = self
            .pool
            .iter()
            .copied()
            .filter(|&v| self.f.ty(v) == ty)
            .collect();
        if of_type.is_empty() || self.rng.chance(15) {
            if !ty.is_scalar() && self.rng.chance(40) {
                let scalar = self.value(Ty::scalar(ty.lane));
                return self.push(Op::Splat, vec![scalar], ty);
            }
            return self.constant(ty);
        }
        let recent = of_type.len().saturating_sub(6);
        let from = if self.rng.chance(60) { recent } else { 0 };
        let n = from + self.rng.below(of_type.len() - from);
        of_type[n]
    }

    fn shape(&mut self, lane: Lane) -> Ty {
        let lanes = if self.rng.chance(25) { 1 } else { self.lanes };
        Ty::vector(lane, lanes)
    }

    fn mask(&mut self) -> Value {
        self.value(Ty::mask(self.lanes))
    }

    /// One to a few instructions.
    fn step(&mut self) {
        match self.rng.below(26) {
            0..=5 => self.int_binary(),
            6..=8 => self.mask_algebra(),
            9 | 10 => self.compare(),
            11 | 12 => self.select(),
            13 | 14 => self.convert(),
            15 => self.float(),
            16 | 17 => self.rearrange(),
            18 => self.reduce(),
            19 => self.unary(),
            20 | 21 => self.memory(),
            22 => self.address(),
            23 | 24 => self.case(),
            _ => self.mask_use(),
        }
    }

    fn int_binary(&mut self) {
        let lane = *self.rng.pick(&INTS);
        let ty = self.shape(lane);
        let op = *self.rng.pick(&INT_OPS);
        let a = self.value(ty);
        let scalar_count = op.is_shift() && self.rng.chance(50);
        let b = self.value(if scalar_count { Ty::scalar(lane) } else { ty });
        self.push(Op::Binary(op), vec![a, b], ty);
    }

    fn mask_algebra(&mut self) {
        let ty = Ty::mask(self.lanes);
        let (a, b) = (self.value(ty), self.value(ty));
        let op = *self
            .rng
            .pick(&[BinOp::And, BinOp::And, BinOp::Or, BinOp::Xor]);
        match self.rng.below(4) {
            0 => {
                self.push(Op::Unary(UnOp::Not), vec![a], ty);
            }
            1 => {
                let not = self.push(Op::Unary(UnOp::Not), vec![b], ty);
                let with = self.push(Op::Binary(BinOp::And), vec![a, b], ty);
                let without = self.push(Op::Binary(BinOp::And), vec![a, not], ty);
                if self.rng.chance(50) {
                    self.push(Op::Binary(BinOp::Or), vec![with, without], ty);
                }
            }
            _ => {
                self.push(Op::Binary(op), vec![a, b], ty);
            }
        }
    }

    fn compare(&mut self) {
        if self.rng.chance(20) {
            let lane = *self.rng.pick(&FLOATS);
            let ty = self.shape(lane);
            let (a, b) = (self.value(ty), self.value(ty));
            let all = [
                FCond::Eq,
                FCond::Ne,
                FCond::Lt,
                FCond::Le,
                FCond::Gt,
                FCond::Ge,
            ];
            let cond = *self.rng.pick(&all);
            self.push(Op::FCmp(cond), vec![a, b], ty.with_lane(Lane::I1));
            return;
        }
        let lane = *self.rng.pick(&INTS);
        let ty = self.shape(lane);
        let (a, b) = (self.value(ty), self.value(ty));
        let cond = *self.rng.pick(&ICONDS);
        let mask = self.push(Op::ICmp(cond), vec![a, b], ty.with_lane(Lane::I1));
        // Minima and maxima are written so.
        match self.rng.below(4) {
            0 => self.push(Op::Select, vec![mask, a, b], ty),
            1 => self.push(Op::Select, vec![mask, b, a], ty),
            _ => mask,
        };
    }

    fn select(&mut self) {
        let all = [
            Lane::I1,
            Lane::I8,
            Lane::I16,
            Lane::I32,
            Lane::I32,
            Lane::I64,
            Lane::F32,
        ];
        let lane = *self.rng.pick(&all);
        let ty = self.shape(lane);
        let mask = if self.rng.chance(15) {
            Ty::BOOL
        } else {
            ty.with_lane(Lane::I1)
        };
        let (m, a, b) = (self.value(mask), self.value(ty), self.value(ty));
        self.push(Op::Select, vec![m, a, b], ty);
    }

    fn convert(&mut self) {
        let all = [Lane::I1, Lane::I8, Lane::I16, Lane::I32, Lane::I64];
        let (from, to) = (*self.rng.pick(&all), *self.rng.pick(&all));
        let ty = self.shape(from);
        let a = self.value(ty);
        let conv = match from.bits().cmp(&to.bits()) {
            std::cmp::Ordering::Less => *self.rng.pick(&[Conv::SExt, Conv::ZExt]),
            std::cmp::Ordering::Greater => Conv::Trunc,
            std::cmp::Ordering::Equal => return,
        };
        self.push(Op::Convert(conv), vec![a], ty.with_lane(to));
    }

    fn float(&mut self) {
        let lane = *self.rng.pick(&FLOATS);
        let ty = self.shape(lane);
        let (a, b, c) = (self.value(ty), self.value(ty), self.value(ty));
        let int = *self.rng.pick(&INTS);
        let op = *self
            .rng
            .pick(&[BinOp::FAdd, BinOp::FSub, BinOp::FMul, BinOp::FDiv]);
        match self.rng.below(6) {
            0 => self.push(Op::Fma, vec![a, b, c], ty),
            1 => {
                let conv = *self.rng.pick(&[Conv::FToSI, Conv::FToUI]);
                self.push(Op::Convert(conv), vec![a], ty.with_lane(int))
            }
            2 => {
                let conv = *self.rng.pick(&[Conv::SIToF, Conv::UIToF]);
                let a = self.value(ty.with_lane(int));
                self.push(Op::Convert(conv), vec![a], ty)
            }
            3 => {
                let cr0 = *self.rng.pick(&[0x4c0, 0x4c0, 0, 0x4f0]);
                let cr0 = self.push(Op::Const(cr0), vec![], Ty::I32);
                self.push(Op::FpEnv(FpEnvOp::Add), vec![cr0, a, b], ty)
            }
            _ => self.push(Op::Binary(op), vec![a, b], ty),
        };
    }

    fn unary(&mut self) {
        let lane = *self.rng.pick(&INTS);
        let ty = self.shape(lane);
        let a = self.value(ty);
        let all = [
            UnOp::Neg,
            UnOp::Not,
            UnOp::Clz,
            UnOp::Ctz,
            UnOp::Popcnt,
            UnOp::BitRev,
        ];
        let op = *self.rng.pick(&all);
        self.push(Op::Unary(op), vec![a], ty);
    }

    fn rearrange(&mut self) {
        let lane = *self.rng.pick(&[Lane::I1, Lane::I16, Lane::I32]);
        let ty = Ty::vector(lane, self.lanes);
        let (a, b) = (self.value(ty), self.value(ty));
        let n = self.lanes;
        let k = self.rng.below(usize::from(n)) as u16;
        match self.rng.below(7) {
            0 => self.push(Op::ExtractLane(k), vec![a], Ty::scalar(lane)),
            1 => {
                let s = self.value(Ty::scalar(lane));
                self.push(Op::InsertLane(k), vec![a, s], ty)
            }
            2 => {
                let indices = (0..n).map(|_| self.rng.below(2 * usize::from(n)) as u16);
                let indices: Vec<u16> = indices.collect();
                self.push(Op::Shuffle(indices.into()), vec![a, b], ty)
            }
            3 => {
                let start = self.rng.below(usize::from(n)) as u16;
                let indices: Vec<u16> = (start..start + n).collect();
                self.push(Op::Shuffle(indices.into()), vec![a, b], ty)
            }
            4 => {
                let indices: Vec<u16> = vec![k; usize::from(n)];
                self.push(Op::Shuffle(indices.into()), vec![a], ty)
            }
            5 => {
                let wide = self.value(Ty::vector(Lane::I32, n));
                let view = Ty::vector(Lane::I16, 2 * n);
                let view = self.push(Op::Bitcast, vec![wide], view);
                let half = self.rng.below(2) as u16;
                let indices: Vec<u16> = (0..n).map(|i| 2 * i + half).collect();
                self.push(
                    Op::Shuffle(indices.into()),
                    vec![view],
                    Ty::vector(Lane::I16, n),
                )
            }
            _ => {
                let wide = self.value(Ty::vector(Lane::I64, n));
                let view = Ty::vector(Lane::I32, 2 * n);
                let view = self.push(Op::Bitcast, vec![wide], view);
                self.push(Op::Bitcast, vec![view], Ty::vector(Lane::I64, n))
            }
        };
    }

    fn reduce(&mut self) {
        let m = self.mask();
        match self.rng.below(4) {
            0 => self.push(Op::MaskAny, vec![m], Ty::BOOL),
            1 => self.push(Op::MaskAll, vec![m], Ty::BOOL),
            2 => self.push(Op::MaskToBits, vec![m], Ty::I32),
            _ => {
                let bits = self.value(Ty::I32);
                self.push(Op::BitsToMask, vec![bits], Ty::mask(self.lanes))
            }
        };
    }

    /// `select(m, new, old)` seen only under a part of `m`.
    fn mask_use(&mut self) {
        let ty = Ty::vector(Lane::I32, self.lanes);
        let (m, new, old) = (self.mask(), self.value(ty), self.value(ty));
        let v = self
            .f
            .push1(self.block, Op::Select, vec![m, new, old], ty, 0);
        let w = self
            .f
            .push1(self.block, Op::Binary(BinOp::Add), vec![v, new], ty, 0);
        let p = self.mask();
        let part = self.push(Op::Binary(BinOp::And), vec![m, p], Ty::mask(self.lanes));
        self.store(part, w);
    }

    /// Straight code with nested control flow; ends in `self.block`, not terminated.
    fn region(&mut self, depth: usize) {
        for _ in 0..2 + self.rng.below(12) {
            if self.budget == 0 {
                return;
            }
            self.budget -= 1;
            if self.barriers && self.rng.chance(12) {
                if self.rng.chance(50) {
                    self.f.push(self.block, Op::Barrier, vec![], &[], 0);
                } else {
                    let ty = self.shape(Lane::I32);
                    let given = self.value(ty);
                    self.push(Op::Exchange, vec![given], ty);
                }
            }
            match self.rng.below(14) {
                0 if depth > 0 => self.diamond(depth),
                1 if depth > 0 => self.counted_loop(depth),
                2 | 3 if depth > 0 => self.divergent_loop(depth),
                4 if depth > 0 => self.guarded(depth),
                _ => self.step(),
            }
        }
    }

    fn some_values(&mut self, n: usize) -> Vec<Value> {
        let all = [Lane::I32, Lane::I32, Lane::I1, Lane::I64];
        (0..n)
            .map(|_| {
                let lane = *self.rng.pick(&all);
                let ty = self.shape(lane);
                self.value(ty)
            })
            .collect()
    }

    fn like(&mut self, values: &[Value]) -> Vec<Value> {
        values.iter().map(|&v| self.value(self.f.ty(v))).collect()
    }

    fn params(&mut self, b: Block, values: &[Value]) -> Vec<Value> {
        let tys: Vec<Ty> = values.iter().map(|&v| self.f.ty(v)).collect();
        tys.into_iter().map(|ty| self.f.add_param(b, ty)).collect()
    }

    fn jump(&mut self, block: Block, args: Vec<Value>) {
        self.terminate(Term::Jump(BlockCall { block, args }));
    }

    fn diamond(&mut self, depth: usize) {
        let cond = self.value(Ty::BOOL);
        let (then, other, join) = (self.f.new_block(), self.f.new_block(), self.f.new_block());
        let call = |block| BlockCall {
            block,
            args: vec![],
        };
        self.terminate(Term::Branch {
            cond,
            then: call(then),
            other: call(other),
        });
        let n = self.rng.below(4);
        let shape = self.some_values(n);
        let scope = self.pool.len();
        for b in [then, other] {
            self.block = b;
            if self.rng.chance(70) {
                self.region(depth - 1);
            }
            let args = self.like(&shape);
            self.jump(join, args);
            self.pool.truncate(scope);
        }
        let params = self.params(join, &shape);
        self.pool.truncate(scope);
        self.block = join;
        self.pool.extend(params);
    }

    /// `if any(m) { … }` with selects under `m`.
    fn guarded(&mut self, depth: usize) {
        let m = self.mask();
        let old = self.value(Ty::vector(Lane::I32, self.lanes));
        let cond = self.push(Op::MaskAny, vec![m], Ty::BOOL);
        let (then, join) = (self.f.new_block(), self.f.new_block());
        let param = self.f.add_param(join, self.f.ty(old));
        self.terminate(Term::Branch {
            cond,
            then: BlockCall {
                block: then,
                args: vec![],
            },
            other: BlockCall {
                block: join,
                args: vec![old],
            },
        });
        let scope = self.pool.len();
        self.block = then;
        self.region(depth - 1);
        let new = self.value(self.f.ty(old));
        let merged = self.push(Op::Select, vec![m, new, old], self.f.ty(old));
        self.jump(join, vec![merged]);
        self.pool.truncate(scope);
        self.block = join;
        self.pool.push(param);
    }

    /// A vector with one or two scalars added or subtracted.
    fn grown(&mut self, mut v: Value) -> Value {
        let ty = self.f.ty(v);
        for _ in 0..1 + self.rng.below(2) {
            let step = self.value(Ty::scalar(ty.lane));
            let step = self.push(Op::Splat, vec![step], ty);
            let (op, args) = match self.rng.below(4) {
                0 => (BinOp::Sub, vec![v, step]),
                1 => (BinOp::Add, vec![step, v]),
                _ => (BinOp::Add, vec![v, step]),
            };
            v = self.push(Op::Binary(op), args, ty);
        }
        v
    }

    fn counted_loop(&mut self, depth: usize) {
        let n = 1 + self.rng.below(3);
        let mut start = self.some_values(n);
        let grows = self.rng.chance(40);
        if grows {
            let lane = *self.rng.pick(&[Lane::I32, Lane::I64]);
            start.insert(0, self.value(Ty::vector(lane, self.lanes)));
        }
        start.push(self.push(Op::Const(0), vec![], Ty::I32));
        let (header, exit) = (self.f.new_block(), self.f.new_block());
        let params = self.params(header, &start);
        let out = self.params(exit, &start);
        self.jump(header, start.clone());
        let scope = self.pool.len();
        self.block = header;
        self.pool.extend(&params);
        self.region(depth - 1);
        self.f.push(self.block, Op::Poll, vec![], &[], 0);
        let mut next = self.like(&start);
        if grows {
            next[0] = self.grown(params[0]);
        }
        let k = *params.last().unwrap();
        let one = self.push(Op::Const(1), vec![], Ty::I32);
        let trips = 1 + self.rng.below(3) as u64;
        let trips = self.push(Op::Const(trips), vec![], Ty::I32);
        *next.last_mut().unwrap() = self.push(Op::Binary(BinOp::Add), vec![k, one], Ty::I32);
        let k = *next.last().unwrap();
        let cond = self.push(Op::ICmp(ICond::Slt), vec![k, trips], Ty::BOOL);
        let leave = self.like(&start);
        self.terminate(Term::Branch {
            cond,
            then: BlockCall {
                block: header,
                args: next,
            },
            other: BlockCall {
                block: exit,
                args: leave,
            },
        });
        self.pool.truncate(scope);
        self.block = exit;
        self.pool.extend(out);
    }

    /// The shape that lowering gives a loop some lanes leave before others.
    fn divergent_loop(&mut self, depth: usize) {
        let (mask, vec) = (Ty::mask(self.lanes), Ty::vector(Lane::I32, self.lanes));
        let em0 = self.mask();
        let zero = self.push(
            Op::VecConst(vec![0; usize::from(self.lanes)].into()),
            vec![],
            mask,
        );
        let x0 = self.value(vec);
        let k0 = self.push(Op::Const(0), vec![], Ty::I32);
        let start = vec![em0, zero, x0, k0];
        let (header, body, exit) = (self.f.new_block(), self.f.new_block(), self.f.new_block());
        let params = self.params(header, &start);
        let (em, wait, x, k) = (params[0], params[1], params[2], params[3]);
        self.jump(header, start);
        let scope = self.pool.len();
        self.block = header;
        self.pool.extend([em, x]);
        let cond = self.push(Op::MaskAny, vec![em], Ty::BOOL);
        let call = |block| BlockCall {
            block,
            args: vec![],
        };
        self.terminate(Term::Branch {
            cond,
            then: call(body),
            other: call(exit),
        });
        let after = self.pool.len();
        self.block = body;
        self.region(depth - 1);
        let new = self.value(vec);
        let x1 = self.push(Op::Select, vec![em, new, x], vec);
        if self.rng.chance(50) {
            self.store(em, x1);
        }
        let p = self.mask();
        let one = self.push(Op::Const(1), vec![], Ty::I32);
        let k1 = self.push(Op::Binary(BinOp::Add), vec![k, one], Ty::I32);
        let trips = 1 + self.rng.below(4) as u64;
        let trips = self.push(Op::Const(trips), vec![], Ty::I32);
        let last = self.push(Op::ICmp(ICond::Sge), vec![k1, trips], Ty::BOOL);
        let last = self.push(Op::Splat, vec![last], mask);
        let p = self.push(Op::Binary(BinOp::Or), vec![p, last], mask);
        let leaving = self.push(Op::Binary(BinOp::And), vec![em, p], mask);
        let wait1 = self.push(Op::Binary(BinOp::Or), vec![wait, leaving], mask);
        let not = self.push(Op::Unary(UnOp::Not), vec![p], mask);
        let em1 = self.push(Op::Binary(BinOp::And), vec![em, not], mask);
        self.f.push(self.block, Op::Poll, vec![], &[], 0);
        self.jump(header, vec![em1, wait1, x1, k1]);
        self.pool.truncate(after);
        self.block = exit;
        let rejoined = self.push(Op::Binary(BinOp::Or), vec![em, wait], mask);
        if self.rng.chance(70) {
            self.store(rejoined, x);
        }
        self.pool.truncate(scope);
        self.pool.push(rejoined);
        if self.rng.chance(60) {
            self.pool.push(x);
        }
    }

    /// A store whose addresses are affine over each row, and not over all lanes.
    fn store_rows(&mut self) {
        let Some(row) = self.f.row else {
            return;
        };
        let ty = Ty::vector(Lane::I32, self.lanes);
        let at = (0..self.lanes).map(|lane| u64::from(lane / row * 64 + lane % row * 4));
        let at = self.push(Op::VecConst(at.collect()), vec![], ty);
        let surface = self.push(Op::Const(0), vec![], Ty::I32);
        let (mask, data) = (self.mask(), self.value(ty));
        let access = MemAccess {
            space: Space::Surface,
            elem: Lane::I32,
            comps: 1,
            site: 0,
        };
        let args = vec![mask, at, surface, data];
        self.f.push(self.block, Op::Store(access), args, &[], 0);
    }

    /// Saves the last values; NaNs as zero, because their payload is not defined.
    fn store_pool(&mut self) {
        let pool = std::mem::take(&mut self.pool);
        for &v in pool.iter().rev().take(8) {
            self.save(v);
        }
    }

    /// Saves a value to the frame, where there is room.
    fn save(&mut self, mut v: Value) {
        let ty = self.f.ty(v);
        if ty.lane.is_float() {
            let ordered = self.push(Op::FCmp(FCond::Eq), vec![v, v], ty.with_lane(Lane::I1));
            let zero = self.constant(ty);
            v = self.push(Op::Select, vec![ordered, v, zero], ty);
        }
        if self.saved + ty.frame_bytes() <= FRAME {
            let at = Op::FrameStore(self.saved);
            self.f.push(self.block, at, vec![v], &[], 0);
            self.saved += ty.frame_bytes();
        }
    }
}
