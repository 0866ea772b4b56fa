//! A slow, obvious evaluator of one hardware thread: the meaning of every operation in executable
//! form. Passes and backends are tested against it.
//!
//! Only functions that [`super::verify()`] accepts may be run. Atomics are indivisible because one
//! thread runs at a time; other threads run between two calls of [`run`] (at barriers and exchanges).

use super::fp_env::fp_env;
use super::func::{Block, BlockCall, Function, Inst, InstData, Term, Value};
use super::op::{Access2d, AtomicAccess, Input, Op, Space};
use super::scalar;
use super::types::{Lane, Ty};
use crate::isa::AtomicOp;

/// Where an element is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ElementAddr {
    /// Memory; never [`Space::Regs`], which lies in the thread's frame.
    pub space: Space,
    /// Binding-table index; 0 for other memories.
    pub surface: u32,
    /// Byte offset, or address of device memory.
    pub address: u64,
}

/// Memory outside the thread. Elements are 1, 2, 4 or 8 bytes, little endian.
pub trait Memory {
    /// Reads an element; `None` when it is not wholly inside memory.
    fn load(&mut self, place: ElementAddr, bytes: u32) -> Option<u64>;

    /// Writes an element unless it is not wholly inside memory.
    fn store(&mut self, place: ElementAddr, bytes: u32, bits: u64);

    /// Replaces an element by `change` of it and returns what it was.
    fn atomic(
        &mut self,
        place: ElementAddr,
        bytes: u32,
        change: &mut dyn FnMut(u64) -> u64,
    ) -> Option<u64> {
        let old = self.load(place, bytes)?;
        self.store(place, bytes, change(old));
        Some(old)
    }
}

/// What the launch gives a thread.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Local ids by dimension and lane.
    pub local_ids: [[u16; 32]; 3],
    /// Number of the thread in its group.
    pub thread: u32,
    /// Bit per lane that exists.
    pub dispatch_mask: u32,
    /// Cross-thread payload; bytes after its end are zero.
    pub payload: Vec<u8>,
    /// `r0`.
    pub r0: [u32; 16],
    /// `%sr0`.
    pub sr0: [u32; 4],
    /// `%hw_id`.
    pub hw_id: u32,
}

/// A thread between two runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Thread {
    /// Register storage and saved values.
    pub frame: Vec<u8>,
    /// 0 at the start, else where it waits: the number of its `suspend`, or of the
    /// operation ([`Op::waits`]) in layout order, from 1.
    pub state: u32,
    /// Number of time stamps taken; the next time stamp.
    pub stamps: u64,
    /// Where it goes on, and with what, when it waits at an operation.
    waiting: Option<Waiting>,
}

/// A thread that waits in the middle of a block keeps all its values.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Waiting {
    block: Block,
    /// Position of the instruction after the one that waits.
    next: usize,
    values: Vec<Vec<u64>>,
    /// Of an [`Op::Exchange`]: what the thread gives, and what becomes what it gets.
    exchange: Option<(Vec<u64>, Value)>,
}

/// Gives two threads that wait at exchanges what the other one offers; false when they do not wait at the same.
pub fn exchange(f: &Function, x: &mut Thread, y: &mut Thread) -> bool {
    if x.state != y.state {
        return false;
    }
    if let (Some(a), Some(b)) = (&mut x.waiting, &mut y.waiting) {
        let (Some((given_a, to_a)), Some((given_b, to_b))) = (&a.exchange, &b.exchange) else {
            return false;
        };
        a.values[to_a.0 as usize] = given_b.clone();
        b.values[to_b.0 as usize] = given_a.clone();
        return true;
    }
    let Some(e) = &f.exchange else {
        return false;
    };
    if x.state <= f.states - e.lines.len() as u32 {
        return false;
    }
    let (from, bytes) = (e.offset as usize, e.bytes as usize);
    let to = from + bytes;
    x.frame[to..to + bytes].copy_from_slice(&y.frame[from..to]);
    y.frame[to..to + bytes].copy_from_slice(&x.frame[from..to]);
    true
}

impl Thread {
    /// A thread at its start, with a zeroed frame.
    pub fn new(f: &Function) -> Thread {
        Thread {
            frame: vec![0; f.frame_bytes as usize],
            state: 0,
            stamps: 0,
            waiting: None,
        }
    }
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The thread is finished.
    Done,
    /// It waits where [`Thread::state`] says. After an exchange ([`exchange`]) it gets zeros unless another thread gave it something.
    Suspended,
    /// `fuel` instructions were executed before the end.
    OutOfFuel,
}

/// Runs a verified function from its start, or from where the thread waits.
pub fn run(
    f: &Function,
    inputs: &Inputs,
    thread: &mut Thread,
    memory: &mut dyn Memory,
    fuel: u64,
) -> Outcome {
    let start = Waiting {
        block: Function::ENTRY,
        next: 0,
        values: vec![Vec::new(); f.values.len()],
        exchange: None,
    };
    let from = thread.waiting.take().unwrap_or(start);
    let mut eval = Eval {
        f,
        inputs,
        thread,
        memory,
        values: from.values,
    };
    eval.run(from.block, from.next, fuel)
}

struct Eval<'a> {
    f: &'a Function,
    inputs: &'a Inputs,
    thread: &'a mut Thread,
    memory: &'a mut dyn Memory,
    /// Lanes of each value computed so far.
    values: Vec<Vec<u64>>,
}

impl Eval<'_> {
    fn run(&mut self, mut block: Block, mut first: usize, mut fuel: u64) -> Outcome {
        loop {
            let data = self.f.block(block);
            for (n, &i) in data.insts.iter().enumerate().skip(first) {
                if fuel == 0 {
                    return Outcome::OutOfFuel;
                }
                fuel -= 1;
                if self.f.inst(i).op.waits() {
                    return self.wait(block, n);
                }
                self.inst(self.f.inst(i));
            }
            first = 0;
            let call = match &data.term {
                Term::Jump(to) => to,
                Term::Branch { cond, then, other } => {
                    let taken = self.get(*cond)[0] != 0;
                    if taken { then } else { other }
                }
                Term::Switch {
                    index,
                    targets,
                    default,
                } => {
                    let index = self.get(*index)[0] as usize;
                    targets.get(index).unwrap_or(default)
                }
                Term::Suspend(state) => {
                    self.thread.state = *state;
                    return Outcome::Suspended;
                }
                Term::Return | Term::None => return Outcome::Done,
            };
            if fuel == 0 {
                return Outcome::OutOfFuel;
            }
            fuel -= 1;
            self.enter(call);
            block = call.block;
        }
    }

    /// Stops at instruction `n` of a block.
    fn wait(&mut self, block: Block, n: usize) -> Outcome {
        let waits = |&&i: &&Inst| self.f.inst(i).op.waits();
        let earlier = self.f.order.iter().take_while(|&&b| b != block);
        let before: usize = earlier
            .map(|&b| self.f.block(b).insts.iter().filter(waits).count())
            .sum();
        let insts = &self.f.block(block).insts[..=n];
        let here = insts.iter().filter(waits);
        self.thread.state = (before + here.count()) as u32;
        let data = self.f.inst(insts[n]);
        let exchange = (data.op == Op::Exchange).then(|| {
            let given = self.get(data.args[0]).to_vec();
            self.values[data.results[0].0 as usize] = vec![0; given.len()];
            (given, data.results[0])
        });
        self.thread.waiting = Some(Waiting {
            block,
            next: n + 1,
            values: std::mem::take(&mut self.values),
            exchange,
        });
        Outcome::Suspended
    }

    /// All arguments are read before any parameter is written.
    fn enter(&mut self, call: &BlockCall) {
        let args: Vec<Vec<u64>> = call.args.iter().map(|&a| self.get(a).to_vec()).collect();
        for (&p, a) in self.f.block(call.block).params.iter().zip(args) {
            self.values[p.0 as usize] = a;
        }
    }

    fn get(&self, v: Value) -> &[u64] {
        &self.values[v.0 as usize]
    }

    fn inst(&mut self, data: &InstData) {
        let results = match &data.op {
            Op::Load(_)
            | Op::Store(_)
            | Op::BlockLoad(_)
            | Op::BlockStore(_)
            | Op::Load2d(_)
            | Op::Store2d(_)
            | Op::Atomic(_)
            | Op::FrameLoad(_)
            | Op::FrameStore(_) => self.memory_op(data),
            // All memory is one buffer here.
            Op::CheckBuffer(_) | Op::CheckAligned(_) => Vec::new(),
            // The thread is alone here, too.
            Op::CheckRace(_) | Op::CheckBarrier(_) => Vec::new(),
            // And all is initialised.
            Op::Decide | Op::Suspect | Op::Initialise(_) => Vec::new(),
            Op::Fence | Op::Poll | Op::Barrier | Op::Exchange => Vec::new(),
            // The thread is alone here, and does not wait.
            Op::NamedBarrier(_) => vec![vec![1]],
            // There are no images here: reads give zeros.
            Op::Image(_) => {
                let zeros = |&r: &Value| vec![0; usize::from(self.f.ty(r).lanes)];
                data.results.iter().map(zeros).collect()
            }
            Op::Input(Input::Tsc) => {
                self.thread.stamps += 1;
                vec![vec![self.thread.stamps]]
            }
            Op::Input(input) => vec![self.input(*input, self.f.ty(data.results[0]))],
            op => {
                let arg = |n: usize| Operand {
                    ty: self.f.ty(data.args[n]),
                    lanes: self.get(data.args[n]),
                };
                let args: Vec<Operand> = (0..data.args.len()).map(arg).collect();
                vec![pure(op, &args, self.f.ty(data.results[0]))]
            }
        };
        for (&r, lanes) in data.results.iter().zip(results) {
            self.values[r.0 as usize] = lanes;
        }
    }

    fn input(&self, input: Input, ty: Ty) -> Vec<u64> {
        let ids = &self.inputs.local_ids;
        match input {
            Input::LocalId { dim, lane } => {
                vec![u64::from(ids[usize::from(dim)][usize::from(lane)])]
            }
            Input::LocalIds { dim, first } => ids[usize::from(dim)]
                .iter()
                .skip(usize::from(first))
                .take(usize::from(ty.lanes))
                .map(|&id| u64::from(id))
                .collect(),
            Input::Thread => vec![u64::from(self.inputs.thread)],
            Input::DispatchMask => mask_lanes(u64::from(self.inputs.dispatch_mask), ty.lanes),
            Input::Payload(at) => {
                let byte = |n: u64| self.inputs.payload.get(n as usize).copied().unwrap_or(0);
                let size = u64::from(ty.lane.bytes());
                (0..u64::from(ty.lanes))
                    .map(|lane| u64::from(at) + lane * size)
                    .map(|at| le((0..size).map(|n| byte(at + n))))
                    .collect()
            }
            Input::R0(n) => vec![u64::from(self.inputs.r0[usize::from(n)])],
            Input::Sr0(n) => vec![u64::from(self.inputs.sr0[usize::from(n)])],
            Input::HwId => vec![u64::from(self.inputs.hw_id)],
            Input::State => vec![u64::from(self.thread.state)],
            Input::Tsc => vec![0],
            Input::Unset => vec![0; usize::from(ty.lanes)],
        }
    }

    fn memory_op(&mut self, data: &InstData) -> Vec<Vec<u64>> {
        match &data.op {
            Op::Load(m) => {
                let at = self.accesses(data, m.space);
                let comps = 0..u64::from(m.comps);
                let lanes = |eval: &mut Self, c: u64| -> Vec<u64> {
                    let load = |place: &Option<ElementAddr>| eval.load(*place, c, m.elem);
                    at.iter().map(load).collect()
                };
                comps.map(|c| lanes(self, c)).collect()
            }
            Op::Store(m) => {
                let at = self.accesses(data, m.space);
                let first = data.args.len() - usize::from(m.comps);
                for (lane, place) in at.iter().enumerate() {
                    for (c, &v) in data.args[first..].iter().enumerate() {
                        let bits = self.get(v)[lane];
                        self.store(*place, c as u64, m.elem, bits);
                    }
                }
                Vec::new()
            }
            Op::BlockLoad(m) => {
                let at = self.accesses(data, m.space)[0];
                vec![(0..m.n).map(|n| self.load(at, n.into(), m.elem)).collect()]
            }
            Op::BlockStore(m) => {
                let at = self.accesses(data, m.space)[0];
                let bits = data.args.last().map(|&v| self.get(v).to_vec());
                for (n, bits) in bits.into_iter().flatten().enumerate() {
                    self.store(at, n as u64, m.elem, bits);
                }
                Vec::new()
            }
            Op::Load2d(m) => self.load2d(data, *m),
            Op::Store2d(m) => {
                for (at, place) in self.rectangle(data, *m) {
                    let (register, lane) = (at / m.lanes(), at % m.lanes());
                    let v = data.args[7 + register as usize];
                    let bits = self.get(v)[lane as usize];
                    self.store(Some(place), 0, m.elem, bits);
                }
                Vec::new()
            }
            Op::Atomic(m) => vec![self.atomic(data, m)],
            Op::FrameStore(at) => {
                self.frame_store(*at, data.args[0]);
                Vec::new()
            }
            Op::FrameLoad(at) => vec![self.frame_load(*at, self.f.ty(data.results[0]))],
            _ => Vec::new(),
        }
    }

    fn load2d(&mut self, data: &InstData, m: Access2d) -> Vec<Vec<u64>> {
        let lanes = m.lanes() as usize;
        let mut all = vec![vec![0; lanes]; m.registers() as usize];
        for (at, place) in self.rectangle(data, m) {
            let at = at as usize;
            all[at / lanes][at % lanes] = self.load(Some(place), 0, m.elem);
        }
        all
    }

    /// Elements of a rectangle that are in its surface: position in the payload, and place.
    fn rectangle(&self, data: &InstData, m: Access2d) -> Vec<(u32, ElementAddr)> {
        let arg = |n: usize| self.get(data.args[n])[0];
        if arg(0) == 0 {
            return Vec::new();
        }
        let size = i64::from(m.elem.bytes());
        let (width, height) = (arg(2) as i64 + 1, arg(3) as i64 + 1);
        let (pitch, x0, y0) = (arg(4) + 1, arg(5) as i32, arg(6) as i32);
        let mut out = Vec::new();
        for b in 0..u32::from(m.blocks) {
            for y in 0..u32::from(m.height) {
                for x in 0..u32::from(m.width) {
                    let column = i64::from(x0) + i64::from(b * u32::from(m.width) + x);
                    let row = i64::from(y0) + i64::from(y);
                    let inside = column >= 0 && (column + 1) * size <= width;
                    if inside && (0..height).contains(&row) {
                        let offset = (row as u64).wrapping_mul(pitch) + (column * size) as u64;
                        let place = ElementAddr {
                            space: Space::Flat,
                            surface: 0,
                            address: arg(1).wrapping_add(offset),
                        };
                        out.push((m.position(b, y, x), place));
                    }
                }
            }
        }
        out
    }

    /// Place of the first element of each lane; none where the mask is clear.
    fn accesses(&self, data: &InstData, space: Space) -> Vec<Option<ElementAddr>> {
        let (mask, addr) = (self.get(data.args[0]), self.get(data.args[1]));
        let surface = if space.has_surface() {
            self.get(data.args[2])[0] as u32
        } else {
            0
        };
        let place = |(&m, &address): (&u64, &u64)| {
            (m != 0).then_some(ElementAddr {
                space,
                surface,
                address,
            })
        };
        mask.iter().zip(addr).map(place).collect()
    }

    fn load(&mut self, place: Option<ElementAddr>, index: u64, elem: Lane) -> u64 {
        let Some(place) = place.map(|p| p.element(index, elem)) else {
            return 0;
        };
        if place.space == Space::Regs {
            let range = self.regs_range(place.address, elem.bytes());
            return range.map_or(0, |r| le(self.thread.frame[r].iter().copied()));
        }
        self.memory.load(place, elem.bytes()).unwrap_or(0)
    }

    fn store(&mut self, place: Option<ElementAddr>, index: u64, elem: Lane, bits: u64) {
        let Some(place) = place.map(|p| p.element(index, elem)) else {
            return;
        };
        if place.space == Space::Regs {
            if let Some(r) = self.regs_range(place.address, elem.bytes()) {
                let bytes = bits.to_le_bytes();
                self.thread.frame[r].copy_from_slice(&bytes[..elem.bytes() as usize]);
            }
            return;
        }
        self.memory.store(place, elem.bytes(), bits);
    }

    fn regs_range(&self, at: u64, bytes: u32) -> Option<std::ops::Range<usize>> {
        let end = at + u64::from(bytes);
        (end <= u64::from(self.f.regs_bytes)).then_some(at as usize..end as usize)
    }

    fn atomic(&mut self, data: &InstData, m: &AtomicAccess) -> Vec<u64> {
        let at = self.accesses(data, m.space);
        let first = data.args.len() - m.op.sources();
        let sources: Vec<Vec<u64>> = data.args[first..]
            .iter()
            .map(|&v| self.get(v).to_vec())
            .collect();
        let mut out = Vec::with_capacity(at.len());
        for (lane, place) in at.into_iter().enumerate() {
            let source = |n: usize| sources.get(n).map_or(0, |s| s[lane]);
            let (a, b) = (source(0), source(1));
            let mut change = |old| atomic_new(m.op, m.elem, old, a, b);
            let old = place.and_then(|p| self.memory.atomic(p, m.elem.bytes(), &mut change));
            out.push(match (m.op, old) {
                (AtomicOp::PreDec, Some(old)) => change(old),
                _ => old.unwrap_or(0),
            });
        }
        out
    }

    fn frame_store(&mut self, at: u32, v: Value) {
        let ty = self.f.ty(v);
        let lanes = self.get(v).to_vec();
        let mut at = at as usize;
        let mut put = |bits: u64, bytes: usize| {
            self.thread.frame[at..at + bytes].copy_from_slice(&bits.to_le_bytes()[..bytes]);
            at += bytes;
        };
        if ty.lane == Lane::I1 {
            put(mask_bits(&lanes), 4);
            return;
        }
        for bits in lanes {
            put(bits, ty.lane.bytes() as usize);
        }
    }

    fn frame_load(&self, at: u32, ty: Ty) -> Vec<u64> {
        let bytes = &self.thread.frame[at as usize..][..ty.frame_bytes() as usize];
        if ty.lane == Lane::I1 {
            return mask_lanes(le(bytes.iter().copied()), ty.lanes);
        }
        bytes
            .chunks(ty.lane.bytes() as usize)
            .map(|c| le(c.iter().copied()))
            .collect()
    }
}

impl ElementAddr {
    /// The element `index` after this one; 32-bit offsets do not wrap.
    fn element(self, index: u64, elem: Lane) -> ElementAddr {
        let address = self
            .address
            .wrapping_add(index.wrapping_mul(u64::from(elem.bytes())));
        ElementAddr { address, ..self }
    }
}

/// What an atomic leaves in memory.
fn atomic_new(op: AtomicOp, elem: Lane, old: u64, a: u64, b: u64) -> u64 {
    let signed = |x| elem.sign_extend(x);
    let pick = |first: bool, x: u64, y: u64| if first { x } else { y };
    let float = |x: u64| match elem {
        Lane::I16 => f64::from_bits(scalar::convert(
            super::Conv::F16ToF,
            Lane::I16,
            Lane::F64,
            x,
        )),
        Lane::I32 => scalar::to_f64(Lane::F32, x),
        _ => f64::from_bits(x),
    };
    // Sums of two floats round once: a double has more than twice the bits of the narrower ones.
    let round = |x: f64| match elem {
        Lane::I16 => scalar::convert(super::Conv::FToF16, Lane::F64, Lane::I16, x.to_bits()),
        Lane::I32 => scalar::convert(super::Conv::FDemote, Lane::F64, Lane::F32, x.to_bits()),
        _ => x.to_bits(),
    };
    let (fold, fa) = (float(old), float(a));
    let (same, minus) = (fold == fa, f64::is_sign_negative);
    elem.mask()
        & match op {
            AtomicOp::Add => old.wrapping_add(a),
            AtomicOp::Sub => old.wrapping_sub(a),
            AtomicOp::Inc => old.wrapping_add(1),
            AtomicOp::Dec | AtomicOp::PreDec => old.wrapping_sub(1),
            AtomicOp::Umin => old.min(a),
            AtomicOp::Umax => old.max(a),
            AtomicOp::Smin => pick(signed(a) < signed(old), a, old),
            AtomicOp::Smax => pick(signed(a) > signed(old), a, old),
            AtomicOp::Xchg => a,
            AtomicOp::CmpXchg => pick(old == a, b, old),
            AtomicOp::And => old & a,
            AtomicOp::Or => old | a,
            AtomicOp::Xor => old ^ a,
            // Of zeros, the positive one is the greater.
            AtomicOp::Fmax => pick(fa > fold || fold.is_nan() || same && !minus(fa), a, old),
            AtomicOp::Fmin => pick(fa < fold || fold.is_nan() || same && minus(fa), a, old),
            AtomicOp::FcmpXchg => pick(fold == fa, b, old),
            AtomicOp::Fadd => round(fold + fa),
            AtomicOp::Fsub => round(fold - fa),
            AtomicOp::Load => old,
        }
}

struct Operand<'a> {
    ty: Ty,
    lanes: &'a [u64],
}

impl Operand<'_> {
    /// A lane, of a scalar the only one.
    fn lane(&self, i: usize) -> u64 {
        self.lanes[if self.ty.is_scalar() { 0 } else { i }]
    }
}

/// Lanes of the result of an operation without effect (and that is no input), from its operands'
/// types and lanes.
pub fn pure_op(op: &Op, args: &[(Ty, &[u64])], ty: Ty) -> Vec<u64> {
    let operand = |&(ty, lanes): &(Ty, _)| Operand { ty, lanes };
    let args: Vec<Operand> = args.iter().map(operand).collect();
    pure(op, &args, ty)
}

fn pure(op: &Op, args: &[Operand], ty: Ty) -> Vec<u64> {
    let n = usize::from(ty.lanes);
    let first = args.first();
    let from = first.map_or(ty.lane, |a| a.ty.lane);
    let each = |f: &dyn Fn(usize) -> u64| (0..n).map(f).collect();
    let arg = |k: usize, i: usize| args[k].lane(i);
    match op {
        Op::Const(bits) => vec![*bits],
        Op::VecConst(bits) => bits.to_vec(),
        Op::Unary(op) => each(&|i| scalar::unary(*op, from, arg(0, i))),
        Op::Binary(op) => each(&|i| scalar::binary(*op, from, arg(0, i), arg(1, i))),
        Op::Fma => each(&|i| scalar::fma(from, arg(0, i), arg(1, i), arg(2, i))),
        Op::Dot4(signs) => each(&|i| scalar::dot4(*signs, arg(0, i), arg(1, i), arg(2, i))),
        Op::ICmp(c) => each(&|i| scalar::icmp(*c, from, arg(0, i), arg(1, i)).into()),
        Op::FCmp(c) => each(&|i| scalar::fcmp(*c, from, arg(0, i), arg(1, i)).into()),
        Op::Select => each(&|i| arg(if arg(0, i) != 0 { 1 } else { 2 }, i)),
        Op::Convert(c) => each(&|i| scalar::convert(*c, from, ty.lane, arg(0, i))),
        Op::Splat => each(&|_| arg(0, 0)),
        Op::ExtractLane(k) => vec![args[0].lanes[usize::from(*k)]],
        Op::InsertLane(k) => each(&|i| arg(usize::from(i == usize::from(*k)), i)),
        Op::Shuffle(indices) => {
            let all: Vec<u64> = args.iter().flat_map(|a| a.lanes).copied().collect();
            indices.iter().map(|&i| all[usize::from(i)]).collect()
        }
        Op::MaskAny => vec![args[0].lanes.iter().any(|&m| m != 0).into()],
        Op::MaskAll => vec![args[0].lanes.iter().all(|&m| m != 0).into()],
        Op::MaskToBits => vec![mask_bits(args[0].lanes)],
        Op::BitsToMask => mask_lanes(arg(0, 0), ty.lanes),
        Op::Bitcast => bitcast(args[0].lanes, from, ty.lane),
        Op::FpEnv(op) => each(&|i| {
            let lanes: Vec<u64> = args[1..].iter().map(|a| a.lane(i)).collect();
            fp_env(*op, arg(0, 0) as u32, args[1].ty.lane, ty.lane, &lanes)
        }),
        _ => vec![0; n],
    }
}

/// Bits of lanes of one width cut into lanes of another; lane 0 is the low end.
pub fn bitcast(lanes: &[u64], from: Lane, to: Lane) -> Vec<u64> {
    if from == Lane::I1 {
        return lanes.to_vec();
    }
    let bytes = |x: &u64| x.to_le_bytes().into_iter().take(from.bytes() as usize);
    let all: Vec<u8> = lanes.iter().flat_map(bytes).collect();
    all.chunks(to.bytes() as usize)
        .map(|c| le(c.iter().copied()))
        .collect()
}

/// A little-endian number.
fn le(bytes: impl Iterator<Item = u8>) -> u64 {
    bytes
        .enumerate()
        .fold(0, |sum, (n, b)| sum | u64::from(b) << (8 * n))
}

fn mask_bits(lanes: &[u64]) -> u64 {
    lanes
        .iter()
        .enumerate()
        .fold(0, |sum, (i, &m)| sum | u64::from(m != 0) << i)
}

fn mask_lanes(bits: u64, lanes: u16) -> Vec<u64> {
    (0..lanes).map(|i| bits >> i & 1).collect()
}

/// Byte vectors as memory, for tests: surfaces, shared local memory, scratch, and device memory
/// from address [`Bytes::FLAT_BASE`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Bytes {
    /// Surfaces by binding-table index.
    pub surfaces: Vec<Vec<u8>>,
    /// Shared local memory.
    pub slm: Vec<u8>,
    /// Scratch of the thread.
    pub scratch: Vec<u8>,
    /// Device memory.
    pub flat: Vec<u8>,
    /// Indirect data of the launch.
    pub args: Vec<u8>,
}

impl Bytes {
    /// First address of device memory.
    pub const FLAT_BASE: u64 = 0x1000_0000;

    /// Bits of an address of device memory that count: the upper 16 are a tag.
    pub const FLAT_BITS: u64 = (1 << 48) - 1;

    fn element(&mut self, place: ElementAddr, bytes: u32) -> Option<&mut [u8]> {
        let (memory, at) = match place.space {
            Space::Surface => (
                self.surfaces.get_mut(place.surface as usize)?,
                place.address,
            ),
            Space::Slm => (&mut self.slm, place.address),
            Space::Scratch => (&mut self.scratch, place.address),
            Space::Flat => (
                &mut self.flat,
                place.address.wrapping_sub(Self::FLAT_BASE) & Self::FLAT_BITS,
            ),
            Space::Args => (&mut self.args, place.address),
            Space::Regs
            | Space::SurfaceMarks
            | Space::SlmMarks
            | Space::FlatMarks
            | Space::ScratchMarks
            | Space::RegsMarks => return None,
        };
        let end = at.checked_add(u64::from(bytes))?;
        memory.get_mut(usize::try_from(at).ok()?..usize::try_from(end).ok()?)
    }
}

impl Memory for Bytes {
    fn load(&mut self, place: ElementAddr, bytes: u32) -> Option<u64> {
        let bytes = self.element(place, bytes)?;
        Some(le(bytes.iter().copied()))
    }

    fn store(&mut self, place: ElementAddr, bytes: u32, bits: u64) {
        if let Some(to) = self.element(place, bytes) {
            to.copy_from_slice(&bits.to_le_bytes()[..bytes as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn atomic_extremes_tell_zeros_apart() {
        let of = |op, old: f32, x: f32| {
            let bits = |x: f32| u64::from(x.to_bits());
            atomic_new(op, Lane::I32, bits(old), bits(x), 0) as u32
        };
        for (old, x) in [(0.0, -0.0), (-0.0, 0.0)] {
            assert_eq!(of(AtomicOp::Fmax, old, x), 0.0_f32.to_bits());
            assert_eq!(of(AtomicOp::Fmin, old, x), (-0.0_f32).to_bits());
        }
        let one = 1.0_f32.to_bits();
        assert_eq!(of(AtomicOp::Fmax, f32::NAN, 1.0), one);
        assert_eq!(of(AtomicOp::Fmin, 1.0, f32::NAN), one);
    }
}
