//! Random functions whose instructions mostly come in twos, one for the lower and one for the upper half of some lanes: pairs of
//! pairs, of one half and something else, of both halves the wrong way round, across blocks and around loops.

use std::collections::HashMap;

use crate::generate::FRAME;
use visa_jit::isa::AtomicOp;
use visa_jit::ssa::*;
use visa_test_common::Rng;

/// Threads and the lanes of a part of them.
const PARTS: [(u16, u16); 6] = [(16, 8), (16, 4), (32, 16), (32, 8), (8, 4), (8, 2)];

const KINDS: [(AccessKind, &str); 3] = [
    (AccessKind::Read, "gather"),
    (AccessKind::Write, "scatter"),
    (AccessKind::Atomic, "dword_atomic"),
];

pub struct PairGenerator {
    rng: Rng,
    f: Function,
    block: Block,
    /// Values in scope.
    pool: Vec<Value>,
    /// What is for the other half.
    other: HashMap<Value, Value>,
    lanes: u16,
}

/// A verified function.
pub fn pairs(seed: u64) -> Function {
    let mut rng = Rng::new(seed);
    let (simd, lanes) = PARTS[rng.below(PARTS.len())];
    let mut f = Function::new("pairs", simd);
    f.frame_bytes = FRAME;
    for part in 0..simd / lanes {
        f.sites.extend(KINDS.map(|(kind, opcode)| Site {
            line: 1 + u32::from(part),
            opcode,
            space: Space::Slm,
            kind,
            bytes: 4,
            alignment: 1,
            first_lane: (part * lanes) as u8,
            parts: Vec::new(),
        }));
    }
    let mut g = PairGenerator {
        rng,
        f,
        block: Function::ENTRY,
        pool: Vec::new(),
        other: HashMap::new(),
        lanes,
    };
    g.inputs();
    g.region(2);
    g.save();
    g.f.block_mut(g.block).term = Term::Return;
    g.f
}

impl PairGenerator {
    fn ty(&self, lane: Lane) -> Ty {
        Ty::vector(lane, self.lanes)
    }

    fn push(&mut self, op: Op, args: Vec<Value>, ty: Ty) -> Value {
        self.f.push1(self.block, op, args, ty, 0)
    }

    fn keep(&mut self, op: Op, args: Vec<Value>, ty: Ty) -> Value {
        let v = self.push(op, args, ty);
        self.pool.push(v);
        v
    }

    fn pair(&mut self, low: Value, high: Value) {
        self.other.insert(low, high);
        if self.rng.below(2) == 0 {
            self.other.insert(high, low);
        }
    }

    /// A value in scope, or a constant.
    fn any(&mut self, ty: Ty) -> Value {
        let fits = self.pool.iter().copied();
        let fits: Vec<Value> = fits.filter(|&v| self.f.ty(v) == ty).collect();
        if !fits.is_empty() && self.rng.below(25) > 0 {
            let late = self.rng.below(2) == 0;
            let from = if late { fits.len().min(6) } else { fits.len() };
            return fits[fits.len() - 1 - self.rng.below(from)];
        }
        let most = if ty.lane == Lane::I1 { 2 } else { 100 };
        let bits: Vec<u64> = (0..ty.lanes).map(|_| self.rng.below(most) as u64).collect();
        let op = match bits.as_slice() {
            &[bits] => Op::Const(bits),
            _ => Op::VecConst(bits.into()),
        };
        self.keep(op, Vec::new(), ty)
    }

    /// What is for the other half, mostly.
    fn paired(&mut self, v: Value) -> Value {
        let ty = self.f.ty(v);
        let known = self.other.get(&v).copied();
        let known = known.filter(|other| self.pool.contains(other));
        match self.rng.below(10) {
            0 | 1 => self.any(ty),
            2 => v,
            _ if ty.is_scalar() => v,
            _ => known.unwrap_or(v),
        }
    }

    fn inputs(&mut self) {
        let (simd, n) = (self.f.simd, self.lanes);
        let mask = Ty::vector(Lane::I1, simd);
        let all = self.push(Op::Input(Input::DispatchMask), Vec::new(), mask);
        for of in [None, Some(0), Some(2)] {
            let mut last = None;
            for first in (0..simd).step_by(n.into()) {
                let v = match of {
                    None => {
                        let lanes = (first..first + n).collect();
                        self.keep(Op::Shuffle(lanes), vec![all], mask.with_lanes(n))
                    }
                    Some(dim) => {
                        let first = first as u8;
                        let ids = Op::Input(Input::LocalIds { dim, first });
                        self.keep(ids, Vec::new(), self.ty(Lane::I16))
                    }
                };
                last.replace(v)
                    .into_iter()
                    .for_each(|low| self.pair(low, v));
            }
        }
        for at in [0, 4, 8] {
            self.keep(Op::Input(Input::Payload(at)), Vec::new(), Ty::I32);
        }
        for lanes in [n, 2 * n] {
            let ty = Ty::vector(Lane::I32, lanes);
            self.keep(Op::Input(Input::Payload(0)), Vec::new(), ty);
        }
    }

    /// An operation, with the types of its operands and of its result.
    fn operation(&mut self) -> (Op, Vec<Ty>, Ty) {
        let [m, h, i, q, f] =
            [Lane::I1, Lane::I16, Lane::I32, Lane::I64, Lane::F32].map(|lane| self.ty(lane));
        let all = [
            (Op::Binary(BinOp::Add), vec![i, i], i),
            (Op::Binary(BinOp::Mul), vec![i, i], i),
            (Op::Binary(BinOp::Shl), vec![i, Ty::I32], i),
            (Op::Binary(BinOp::Shl), vec![i, i], i),
            (Op::Binary(BinOp::And), vec![m, m], m),
            (Op::Unary(UnOp::Not), vec![m], m),
            (Op::Select, vec![m, i, i], i),
            (Op::Select, vec![Ty::BOOL, i, i], i),
            (Op::Select, vec![Ty::BOOL, m, m], m),
            (Op::ICmp(ICond::Ult), vec![i, i], m),
            (Op::ICmp(ICond::Eq), vec![h, h], m),
            (Op::Convert(Conv::ZExt), vec![h], i),
            (Op::Convert(Conv::SExt), vec![m], i),
            (Op::Convert(Conv::Trunc), vec![i], m),
            (Op::Convert(Conv::SExt), vec![i], q),
            (Op::Convert(Conv::Trunc), vec![q], i),
            (Op::Bitcast, vec![i], f),
            (Op::Bitcast, vec![f], i),
            (Op::FpEnv(FpEnvOp::Add), vec![Ty::I32, f, f], f),
            (Op::Splat, vec![Ty::I32], i),
        ];
        all[self.rng.below(all.len())].clone()
    }

    fn step(&mut self) {
        let (m, i) = (self.ty(Lane::I1), self.ty(Lane::I32));
        match self.rng.below(14) {
            0 => self.rearrange(),
            1..=3 => self.accesses(),
            4 => {
                let v = self.any(m);
                self.keep(Op::MaskAny, vec![v], Ty::BOOL);
            }
            5 => {
                let v = self.any(i);
                self.keep(Op::ExtractLane(self.lanes - 1), vec![v], Ty::I32);
            }
            _ => {
                let (op, types, ty) = self.operation();
                let args: Vec<Value> = types.iter().map(|&t| self.any(t)).collect();
                let others = args.iter().map(|&v| self.paired(v)).collect();
                let low = self.keep(op.clone(), args, ty);
                if self.rng.below(6) > 0 {
                    let high = self.keep(op, others, ty);
                    self.pair(low, high);
                }
            }
        }
    }

    /// Halves of a vector, a vector of halves, and lanes in another order.
    fn rearrange(&mut self) {
        let n = self.lanes;
        let (ty, all) = (self.ty(Lane::I32), Ty::vector(Lane::I32, 2 * n));
        let kind = self.rng.below(3);
        let from = match kind {
            0 => vec![self.any(all)],
            _ => {
                let low = self.any(ty);
                vec![low, self.paired(low)]
            }
        };
        if kind == 1 {
            self.keep(Op::Shuffle((0..2 * n).collect()), from, all);
            return;
        }
        let [low, high] = [0, n].map(|first| {
            let mut lane = |k: u16| match kind {
                0 => first + k,
                _ => self.rng.below(2 * usize::from(n)) as u16,
            };
            let lanes = (0..n).map(&mut lane).collect();
            self.keep(Op::Shuffle(lanes), from.clone(), ty)
        });
        self.pair(low, high);
    }

    /// Accesses of neighbouring parts, with something between them; now and then they differ in more than their lanes.
    fn accesses(&mut self) {
        let parts = usize::from(self.f.simd / self.lanes);
        let first = self.rng.below(parts);
        let (kind, space) = (self.rng.below(3), self.rng.below(3));
        let space = [Space::Slm, Space::Surface, Space::Scratch][space];
        let (m, i) = (self.ty(Lane::I1), self.ty(Lane::I32));
        let mut args = vec![self.any(m)];
        args.extend([(); 3].map(|()| self.any(i)));
        let mut atomic = AtomicOp::Add;
        let (mut surface, mut last) = (0, None);
        for part in first..parts.min(first + 4) {
            let inner = self.address(args[1]);
            let mut now = vec![args[0], inner];
            if space == Space::Surface {
                now.push(self.push(Op::Const(surface), Vec::new(), Ty::I32));
            }
            let site = 3 * part as u32 + kind as u32;
            let elem = Lane::I32;
            let access = |comps| MemAccess {
                space,
                elem,
                comps,
                site,
            };
            let op = match kind {
                0 => Op::Load(access(2)),
                1 => Op::Store(access(2)),
                _ => Op::Atomic(AtomicAccess {
                    space,
                    op: atomic,
                    elem,
                    site,
                }),
            };
            now.extend(&args[2..2 + [0, 2, 1][kind]]);
            let results = vec![i; [2, 0, 1][kind]];
            let inst = self.f.push(self.block, op, now, &results, 0);
            let results = self.f.inst(inst).results.clone();
            self.pool.extend(&results);
            if let Some(&now) = results.first()
                && let Some(low) = last.replace(now)
            {
                self.pair(low, now);
            }
            for _ in 0..self.rng.below(4) {
                let (op, types, ty) = self.operation();
                let args = types.iter().map(|&t| self.any(t)).collect();
                self.keep(op, args, ty);
            }
            args = args.iter().map(|&v| self.paired(v)).collect();
            match self.rng.below(12) {
                0 => atomic = AtomicOp::Xchg,
                1 => surface = 1 - surface,
                2 => args[1] = last.unwrap_or(args[1]),
                _ => {}
            }
        }
    }

    /// Addresses most of which are inside.
    fn address(&mut self, v: Value) -> Value {
        let ty = self.ty(Lane::I32);
        let lanes = vec![127; self.lanes.into()];
        let limit = self.push(Op::VecConst(lanes.into()), Vec::new(), ty);
        self.push(Op::Binary(BinOp::And), vec![v, limit], ty)
    }

    fn region(&mut self, depth: usize) {
        for _ in 0..2 + self.rng.below(10) {
            match self.rng.below(14) {
                0 if depth > 0 => self.counted_loop(depth - 1),
                1 if depth > 0 => self.diamond(depth - 1),
                _ => self.step(),
            }
        }
    }

    /// Values and what they are paired with.
    fn some(&mut self) -> Vec<Value> {
        let mut out = Vec::new();
        for _ in 0..1 + self.rng.below(4) {
            let lane = [Lane::I32, Lane::I32, Lane::I1][self.rng.below(3)];
            let low = self.any(self.ty(lane));
            out.extend([low, self.paired(low)]);
        }
        out
    }

    /// Others of the same types; now and then the halves change places.
    fn like(&mut self, values: &[Value]) -> Vec<Value> {
        let mut out = Vec::new();
        for pair in values.chunks_exact(2) {
            let low = self.any(self.f.ty(pair[0]));
            let high = self.paired(low);
            out.extend([low, high]);
        }
        if self.rng.below(4) == 0 {
            out.swap(0, 1);
        }
        out
    }

    fn params(&mut self, block: Block, like: &[Value]) -> Vec<Value> {
        let types: Vec<Ty> = like.iter().map(|&v| self.f.ty(v)).collect();
        let add = |ty| self.f.add_param(block, ty);
        let params: Vec<Value> = types.into_iter().map(add).collect();
        for pair in params.chunks_exact(2) {
            self.pair(pair[0], pair[1]);
        }
        self.pool.extend(&params);
        params
    }

    fn jump(&mut self, block: Block, args: Vec<Value>) {
        self.f.block_mut(self.block).term = Term::Jump(BlockCall { block, args });
    }

    fn diamond(&mut self, depth: usize) {
        let cond = self.any(Ty::BOOL);
        let values = self.some();
        let [then, other, join] = [(); 3].map(|()| self.f.new_block());
        let call = |block| BlockCall {
            block,
            args: Vec::new(),
        };
        self.f.block_mut(self.block).term = Term::Branch {
            cond,
            then: call(then),
            other: call(other),
        };
        let scope = self.pool.len();
        for side in [then, other] {
            self.block = side;
            self.region(depth);
            let args = self.like(&values);
            self.jump(join, args);
            self.pool.truncate(scope);
        }
        self.block = join;
        self.params(join, &values);
    }

    fn counted_loop(&mut self, depth: usize) {
        let mut first = self.some();
        let values = first.clone();
        first.push(self.push(Op::Const(0), Vec::new(), Ty::I32));
        let [head, exit] = [(); 2].map(|()| self.f.new_block());
        self.jump(head, first);
        self.block = head;
        let params = self.params(head, &values);
        let n = self.f.add_param(head, Ty::I32);
        self.region(depth);
        let one = self.push(Op::Const(1), Vec::new(), Ty::I32);
        let n = self.push(Op::Binary(BinOp::Add), vec![n, one], Ty::I32);
        let end = self.push(Op::Const(3), Vec::new(), Ty::I32);
        let cond = self.push(Op::ICmp(ICond::Slt), vec![n, end], Ty::BOOL);
        self.f.push(self.block, Op::Poll, Vec::new(), &[], 0);
        let mut args = self.like(&values);
        if self.rng.below(4) == 0 {
            args[..2].copy_from_slice(&[params[1], params[0]]);
        }
        args.push(n);
        self.f.block_mut(self.block).term = Term::Branch {
            cond,
            then: BlockCall { block: head, args },
            other: BlockCall {
                block: exit,
                args: Vec::new(),
            },
        };
        self.block = exit;
    }

    /// Leaves values where they are seen.
    fn save(&mut self) {
        for at in (0..FRAME).step_by(256) {
            let v = self.pool[self.rng.below(self.pool.len())];
            self.f.push(self.block, Op::FrameStore(at), vec![v], &[], 0);
        }
    }
}
