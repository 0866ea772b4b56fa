//! Memory accesses flush against inaccessible pages, against the SSA evaluator.

use visa_jit::backend::{CodegenEffort, CodegenOptions, OobPolicy};
use visa_jit::isa::AtomicOp;
use visa_jit::ssa::eval::{self, Bytes, Inputs, Thread};
use visa_jit::ssa::shape::Shape;
use visa_jit::ssa::{
    AtomicAccess, BinOp, BlockAccess, Conv, Function, Input, Lane, MemAccess, Op, Space, Term, Ty,
    Value, verify,
};
use visa_runtime::CodeHandle;

use crate::cases::{INTS, payload};
use crate::rig::{Guarded, NONE, Rig, SPEED, gather, install, install_base};
use crate::scaled::Numbers;
use visa_test_common::{Rng, full};

const SIZES: [usize; 9] = [0, 1, 3, 4, 7, 63, 64, 200, 4096];
const SPACES: [Space; 6] = [
    Space::Surface,
    Space::Slm,
    Space::Flat,
    Space::Scratch,
    Space::Regs,
    Space::Args,
];
/// There are no stores to it.
const READ_ONLY: Space = Space::Args;
pub const STRIDE: u32 = 512;
const REGS: u32 = 104;
pub const RESULTS: u32 = 128;

/// An access in the making.
pub struct Access {
    pub op: Op,
    pub space: Space,
    pub lanes: u16,
    /// Constant surface index, else from the payload.
    pub constant: bool,
    /// Full mask, else from the payload.
    pub full: bool,
    /// Addresses: a scalar and a given number of bytes from lane to lane; else from the payload.
    pub stride: Option<i64>,
    /// Addresses: a scalar and numbers; else whole.
    pub scaled: Option<Numbers>,
    pub sources: Vec<Ty>,
    pub results: Vec<Ty>,
}

/// Index of the bound surface.
const INDEX: u32 = 3;

impl Access {
    pub fn function(&self) -> Function {
        let mut f = Function::new("access", 32);
        f.regs_bytes = REGS;
        f.frame_bytes = RESULTS;
        f.sites.push(gather(self.space));
        let entry = Function::ENTRY;
        let block = matches!(self.op, Op::BlockLoad(_) | Op::BlockStore(_));
        let lanes = if block { 1 } else { self.lanes };
        let mask = Ty::mask(lanes);
        let mask = if self.full && lanes > 1 {
            let ones = vec![1; usize::from(lanes)];
            f.push1(entry, Op::VecConst(ones.into()), vec![], mask, 0)
        } else if self.full {
            f.push1(entry, Op::Const(1), vec![], mask, 0)
        } else {
            payload(&mut f, 0, mask)
        };
        let addr_ty = Ty::vector(self.space.addr(), lanes);
        let addr = match (self.stride, self.scaled) {
            (None, None) => payload(&mut f, STRIDE, addr_ty),
            (Some(stride), _) => affine_addresses(&mut f, addr_ty, stride, self.lanes),
            (None, Some(numbers)) => numbers.addresses(&mut f, self.lanes),
        };
        let mut args: Vec<Value> = vec![mask, addr];
        if self.space.has_surface() {
            let index = if self.constant {
                f.push1(entry, Op::Const(INDEX.into()), vec![], Ty::I32, 0)
            } else {
                payload(&mut f, 2 * STRIDE, Ty::I32)
            };
            args.push(index);
        }
        let simple = self.is_simple_atomic();
        for (i, &ty) in self.sources.iter().enumerate() {
            let at = (3 + i as u32) * STRIDE;
            if simple && i == 0 {
                let scalar = payload(&mut f, at, Ty::scalar(ty.lane));
                args.push(f.push1(entry, Op::Splat, vec![scalar], ty, 0));
            } else {
                args.push(payload(&mut f, at, ty));
            }
        }
        let inst = f.push(entry, self.op.clone(), args, &self.results, 0);
        let results = f.inst(inst).results.clone();
        // Of some of the simple atomics nothing reads the old values.
        let read = !simple || self.lanes != 16;
        for (i, v) in results.into_iter().enumerate().filter(|_| read) {
            let at = f.frame_bytes.next_multiple_of(16);
            f.push(entry, Op::FrameStore(at), vec![v], &[], 0);
            f.frame_bytes = at + self.results[i].frame_bytes();
        }
        f.block_mut(entry).term = Term::Return;
        if let Err(errors) = verify(&f) {
            panic!("{}\n{f}", errors[0]);
        }
        f
    }

    /// An atomic of all lanes, the first operand the same in all.
    fn is_simple_atomic(&self) -> bool {
        matches!(self.op, Op::Atomic(_)) && self.full
    }

    pub fn check(&self, rng: &mut Rng, rounds: usize) {
        let mut f = self.function();
        if self.stride.is_some() && rng.below(4) != 0 {
            assert!(visa_jit::passes::run_pass(&mut f, "shape"));
        }
        crate::generator::compiles_elsewhere(&f);
        let silent = OobPolicy::ReadZeroSkipWrite;
        // A plain run leaves out code that is not optimised.
        let all = [NONE, SPEED];
        for options in &all[usize::from(!full())..] {
            for oob in [silent, OobPolicy::Report] {
                let options = CodegenOptions {
                    oob,
                    ..options.clone()
                };
                if oob == silent || options.tuning.codegen == CodegenEffort::Speed {
                    self.check_with(&f, &options, rng, rounds);
                }
            }
        }
        self.check_ways(&f, rng, rounds);
        if let Some(speculated) = self.speculated(&f) {
            for oob in [silent, OobPolicy::Report] {
                let options = CodegenOptions { oob, ..SPEED };
                self.check_with(&speculated, &options, rng, 2 * rounds);
            }
        }
        if self.stride.is_some() {
            // Where the processor has stores under masks, this does without them.
            self.check_code(&f, &install_base(&f), &SPEED, rng, rounds);
        }
    }

    /// Bytes of an element, of accesses that have one a lane.
    fn bytes(&self) -> u32 {
        match self.op {
            Op::Load(m) | Op::Store(m) if m.comps == 1 => m.elem.bytes(),
            _ => 4,
        }
    }

    /// The function when lanes are thought to lie side by side.
    fn speculated(&self, f: &Function) -> Option<Function> {
        let insts = &f.block(Function::ENTRY).insts;
        let access = insts.iter().find(|&&i| match f.inst(i).op {
            Op::Load(m) | Op::Store(m) => m.comps == 1,
            _ => false,
        })?;
        let mut f = f.clone();
        let shape = Shape {
            speculative: Some(self.bytes().into()),
            ..Shape::default()
        };
        let any = self.stride.is_none() && self.lanes > 1;
        any.then(|| {
            f.shapes.insert(*access, shape);
            f
        })
    }

    /// The other ways to reach lanes whose addresses have no shape.
    fn check_ways(&self, f: &Function, rng: &mut Rng, rounds: usize) {
        if self.stride.is_some() || !matches!(self.op, Op::Load(_) | Op::Store(_)) {
            return;
        }
        for gather in crate::generator::WAYS {
            let policies = [OobPolicy::ReadZeroSkipWrite, OobPolicy::Report];
            let mut options = SPEED.tuned(|t| t.gather = gather);
            options.oob = policies[rng.below(2)];
            self.check_with(f, &options, rng, rounds);
        }
    }

    fn check_with(&self, f: &Function, options: &CodegenOptions, rng: &mut Rng, rounds: usize) {
        self.check_code(f, &install(f, options), options, rng, rounds);
    }

    fn check_code(
        &self,
        f: &Function,
        code: &CodeHandle,
        options: &CodegenOptions,
        rng: &mut Rng,
        rounds: usize,
    ) {
        let mut rig = Rig::new(1, f.frame_bytes as usize);
        for round in 0..rounds {
            let size = SIZES[round % SIZES.len()];
            let mut contents = rng.bytes(size);
            self.make_numbers(&mut contents, rng);
            let memory = Guarded::of(&contents);
            rig.place(self.space, INDEX as usize, &memory);
            let regs = rng.bytes(REGS as usize);
            rig.frames[0].write(&vec![0; f.frame_bytes as usize]);
            rig.frames[0].write(&regs);
            let limit = if self.space == Space::Regs {
                REGS as usize
            } else {
                size
            };
            let (native, model) = self.operands(rng, limit, memory.base() as u64);
            rig.payload.write(&native);
            let local_ids = local_ids(rng);
            rig.set_local_ids(&local_ids);
            rig.threads[0].state = 0;
            assert_eq!(rig.run(code.entry()), 0);

            let mut thread = Thread::new(f);
            thread.frame[..regs.len()].copy_from_slice(&regs);
            let mut bytes = model_memory(self.space, &contents);
            let inputs = Inputs {
                payload: model,
                local_ids,
                ..Inputs::default()
            };
            eval::run(f, &inputs, &mut thread, &mut bytes, 1000);
            let frame = rig.frames[0].read();
            let want = &thread.frame;
            assert_eq!(&frame, want, "frame, {size} bytes, {options:?}\n{f}");
            let after = model_contents(self.space, &bytes);
            assert_eq!(memory.read(), after, "memory, {options:?}\n{f}");
        }
    }

    /// Float atomics get small whole numbers: which NaN an operation gives is not defined.
    fn make_numbers(&self, bytes: &mut [u8], rng: &mut Rng) {
        let Op::Atomic(access) = &self.op else {
            return;
        };
        if !access.op.is_float() {
            return;
        }
        for chunk in bytes.chunks_exact_mut(access.elem.bytes() as usize) {
            let number = rng.below(9) as f32 - 4.0;
            match chunk.len() {
                4 => chunk.copy_from_slice(&number.to_le_bytes()),
                _ => chunk.copy_from_slice(&f64::from(number).to_le_bytes()),
            }
        }
    }

    /// Payload for the code and for the evaluator: addresses of device memory differ.
    fn operands(&self, rng: &mut Rng, limit: usize, base: u64) -> (Vec<u8>, Vec<u8>) {
        let mut native = rng.bytes(8192);
        self.make_numbers(&mut native[3 * STRIDE as usize..], rng);
        if rng.below(4) == 0 {
            native[..4].copy_from_slice(&[0xFF; 4]);
        }
        let at = 2 * STRIDE as usize;
        let index = if rng.below(8) == 0 { 9 } else { INDEX };
        native[at..at + 4].copy_from_slice(&index.to_le_bytes());
        let mut model = native.clone();
        let spread = rng.below(4);
        let start = rng.below(limit + 8);
        // Of lanes side by side, one may be elsewhere.
        let stray = rng.below(64);
        for lane in 0..32usize {
            let offset = match spread {
                0 if lane == stray => rng.below(limit + 4) as u64,
                0 => (start + self.bytes() as usize * lane) as u64,
                1 => (start + 64 * lane) as u64,
                _ => match rng.below(8) {
                    0 => rng.bits(),
                    1 => (limit as u64).wrapping_sub(rng.below(12) as u64),
                    2 => 0u64.wrapping_sub(rng.below(12) as u64),
                    _ => rng.below(limit + 4) as u64,
                },
            };
            let offset = if matches!(self.op, Op::Atomic(_)) {
                offset & !7
            } else {
                offset
            };
            let put = |bytes: &mut [u8], v: u64| {
                if self.space == Space::Flat {
                    bytes[STRIDE as usize + 8 * lane..][..8].copy_from_slice(&v.to_le_bytes());
                } else {
                    let v = v as u32;
                    bytes[STRIDE as usize + 4 * lane..][..4].copy_from_slice(&v.to_le_bytes());
                }
            };
            if self.space == Space::Flat {
                let low = offset & 0xFFFF_FFFF_FFFF;
                let tag = rng.bits() << 48;
                let address = base.wrapping_add(low) & 0xFFFF_FFFF_FFFF | tag;
                put(&mut native, address);
                let wraps = Bytes::FLAT_BASE.wrapping_add(low) & Bytes::FLAT_BITS;
                put(&mut model, wraps | tag);
            } else {
                put(&mut native, offset);
                put(&mut model, offset);
            }
        }
        if let Some(numbers) = self.scaled {
            numbers.write(rng, limit, base, [&mut native, &mut model]);
        }
        (native, model)
    }
}

/// Scalar from the payload (or 8) plus a multiple of the lane number; for some lane counts
/// computed in 16 bits, so that the addresses may wrap.
fn affine_addresses(f: &mut Function, ty: Ty, stride: i64, lanes: u16) -> Value {
    let entry = Function::ENTRY;
    let wide = ty;
    if lanes == 8 {
        return id_addresses(f, ty, stride);
    }
    let ty = if lanes == 16 {
        ty.with_lane(Lane::I16)
    } else {
        ty
    };
    let first = if lanes == 3 {
        f.push1(entry, Op::Const(8), vec![], Ty::scalar(ty.lane), 0)
    } else {
        payload(f, STRIDE, Ty::scalar(ty.lane))
    };
    let splat = f.push1(entry, Op::Splat, vec![first], ty, 0);
    let steps: Vec<u64> = (0..i64::from(ty.lanes))
        .map(|i| (i * stride).cast_unsigned() & ty.lane.mask())
        .collect();
    let steps = f.push1(entry, Op::VecConst(steps.into()), vec![], ty, 0);
    let sum = f.push1(entry, Op::Binary(BinOp::Add), vec![splat, steps], ty, 0);
    if ty == wide {
        return sum;
    }
    f.push1(entry, Op::Convert(Conv::ZExt), vec![sum], wide, 0)
}

/// Scalar from the payload plus a multiple of local ids.
fn id_addresses(f: &mut Function, ty: Ty, stride: i64) -> Value {
    let entry = Function::ENTRY;
    let dim = if stride == 0 { 1 } else { 0 };
    let factor = if stride == 0 { 4 } else { stride };
    let input = Op::Input(Input::LocalIds { dim, first: 2 });
    let ids = f.push1(entry, input, vec![], ty.with_lane(Lane::I16), 0);
    let ids = f.push1(entry, Op::Convert(Conv::ZExt), vec![ids], ty, 0);
    let factors = vec![factor.cast_unsigned() & ty.lane.mask(); usize::from(ty.lanes)];
    let factors = f.push1(entry, Op::VecConst(factors.into()), vec![], ty, 0);
    let steps = f.push1(entry, Op::Binary(BinOp::Mul), vec![ids, factors], ty, 0);
    let first = payload(f, STRIDE, Ty::scalar(ty.lane));
    let splat = f.push1(entry, Op::Splat, vec![first], ty, 0);
    f.push1(entry, Op::Binary(BinOp::Add), vec![splat, steps], ty, 0)
}

/// Local ids: in order, all equal, or any.
fn local_ids(rng: &mut Rng) -> [[u16; 32]; 3] {
    let kind = rng.below(3);
    let row = |rng: &mut Rng, kind: usize| {
        let first = rng.below(5) as u16;
        std::array::from_fn(|i| match kind {
            0 => first + i as u16,
            1 => first,
            _ => rng.below(16) as u16,
        })
    };
    [row(rng, kind), row(rng, kind / 2 + 1), row(rng, 1)]
}

fn model_memory(space: Space, contents: &[u8]) -> Bytes {
    let mut bytes = Bytes::default();
    match space {
        Space::Surface => {
            bytes.surfaces = vec![Vec::new(); 16];
            bytes.surfaces[INDEX as usize] = contents.to_vec();
        }
        Space::Slm => bytes.slm = contents.to_vec(),
        Space::Scratch => bytes.scratch = contents.to_vec(),
        Space::Args => bytes.args = contents.to_vec(),
        _ => bytes.flat = contents.to_vec(),
    }
    bytes
}

fn model_contents(space: Space, bytes: &Bytes) -> Vec<u8> {
    match space {
        Space::Surface => bytes.surfaces[INDEX as usize].clone(),
        Space::Slm => bytes.slm.clone(),
        Space::Scratch => bytes.scratch.clone(),
        Space::Args => bytes.args.clone(),
        _ => bytes.flat.clone(),
    }
}

/// Every seventh combination; in a plain run every 139th.
fn each_access(mut body: impl FnMut(Access, MemAccess)) {
    let every = if full() { 7 } else { 139 };
    let mut number = 0;
    for space in SPACES {
        for elem in INTS {
            for lanes in [1, 3, 8, 16, 32] {
                for comps in [1, 2, 3, 4, 8] {
                    if comps > 4 && elem != Lane::I32 || comps == 3 && lanes == 32 {
                        continue;
                    }
                    for constant in [true, false] {
                        if !constant && (space != Space::Surface || comps > 2) {
                            continue;
                        }
                        number += 1;
                        if number % every != 0 {
                            continue;
                        }
                        let access = MemAccess {
                            space,
                            elem,
                            comps,
                            site: 0,
                        };
                        let tys = vec![Ty::vector(elem, lanes); usize::from(comps)];
                        let shape = Access {
                            op: Op::Fence,
                            space,
                            lanes,
                            constant,
                            full: lanes == 16 && elem != Lane::I8,
                            stride: None,
                            scaled: None,
                            sources: tys.clone(),
                            results: tys,
                        };
                        body(shape, access);
                    }
                }
            }
        }
    }
}

#[test]
fn loads() {
    let mut rng = Rng::new(31);
    each_access(|shape, access| {
        let case = Access {
            op: Op::Load(access),
            sources: Vec::new(),
            ..shape
        };
        case.check(&mut rng, 18);
    });
}

#[test]
fn stores() {
    let mut rng = Rng::new(32);
    each_access(|shape, access| {
        if access.space == READ_ONLY {
            return;
        }
        let case = Access {
            op: Op::Store(access),
            results: Vec::new(),
            ..shape
        };
        case.check(&mut rng, 18);
    });
}

#[test]
fn affine_strides() {
    let mut rng = Rng::new(35);
    for load in [true, false] {
        each_access(|shape, access| {
            if !load && access.space == READ_ONLY {
                return;
            }
            let elem = i64::from(access.elem.bytes());
            let bytes = elem * i64::from(access.comps);
            let near = [elem, -elem, 3 * elem, -2 * elem, elem / 2, elem / 4];
            for stride in [0, bytes, 2 * bytes, -bytes, 4 - bytes]
                .into_iter()
                .chain(near)
            {
                let shape = Access {
                    stride: Some(stride),
                    sources: shape.sources.clone(),
                    results: shape.results.clone(),
                    op: Op::Fence,
                    ..shape
                };
                let case = if load {
                    Access {
                        op: Op::Load(access),
                        sources: Vec::new(),
                        ..shape
                    }
                } else {
                    Access {
                        op: Op::Store(access),
                        results: Vec::new(),
                        ..shape
                    }
                };
                if case.lanes > 1 && !(access.space == Space::Flat && [3, 16].contains(&case.lanes))
                {
                    case.check(&mut rng, 18);
                }
            }
        });
    }
}

#[test]
fn blocks() {
    let mut rng = Rng::new(33);
    for space in SPACES {
        for elem in INTS {
            for n in [1, 2, 5, 16, 64, 128] {
                let ty = Ty::vector(elem, n);
                let rare = !full() && [2, 5, 64, 128].contains(&n);
                if rare || ty.bytes() > STRIDE {
                    continue;
                }
                let access = BlockAccess {
                    space,
                    elem,
                    n,
                    site: 0,
                };
                let stores = (space != READ_ONLY).then_some(false);
                for load in [true].into_iter().chain(stores) {
                    let case = Access {
                        op: if load {
                            Op::BlockLoad(access)
                        } else {
                            Op::BlockStore(access)
                        },
                        space,
                        lanes: 1,
                        constant: n != 5,
                        full: n == 16,
                        stride: None,
                        scaled: None,
                        sources: if load { vec![] } else { vec![ty] },
                        results: if load { vec![ty] } else { vec![] },
                    };
                    case.check(&mut rng, 27);
                }
            }
        }
    }
}

/// Which of the lane counts of atomics are for simple ones.
const FULL: [bool; 7] = [false, false, false, false, false, true, true];

#[test]
fn atomics() {
    use AtomicOp::{
        Add, And, CmpXchg, Dec, Fadd, FcmpXchg, Fmax, Fmin, Fsub, Inc, Load, Or, PreDec, Smax,
        Smin, Sub, Umax, Umin, Xchg, Xor,
    };
    let mut rng = Rng::new(34);
    // Of these a plain run takes every 31st.
    let mut cases = 0;
    for space in [Space::Surface, Space::Slm, Space::Flat] {
        for elem in [Lane::I16, Lane::I32, Lane::I64] {
            for (lanes, full) in [1, 3, 8, 16, 32, 8, 16].into_iter().zip(FULL) {
                for op in [
                    Add, Sub, Inc, Dec, PreDec, Umin, Umax, Smin, Smax, Xchg, CmpXchg, And, Or,
                    Xor, Fmax, Fmin, FcmpXchg, Fadd, Fsub, Load,
                ] {
                    let ty = Ty::vector(elem, lanes);
                    let case = Access {
                        op: Op::Atomic(AtomicAccess {
                            space,
                            op,
                            elem,
                            site: 0,
                        }),
                        space,
                        lanes,
                        constant: true,
                        full,
                        stride: None,
                        scaled: None,
                        sources: vec![ty; op.sources()],
                        results: vec![ty],
                    };
                    if op.is_float() && elem == Lane::I16 {
                        continue;
                    }
                    cases += 1;
                    if visa_test_common::full() || cases % 31 == 0 {
                        case.check(&mut rng, if full { 18 } else { 9 });
                    }
                }
            }
        }
    }
}
