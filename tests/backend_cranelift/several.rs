//! Several accesses in a block, which share tests and pointers and may be put together, against the SSA evaluator: at random
//! distances from addresses of all shapes, over each other, at both ends of memory, under all masks.

use visa_jit::backend::{Bounds, CodegenOptions, OobPolicy};
use visa_jit::ssa::eval::{self, Bytes, Inputs, Thread};
use visa_jit::ssa::{BinOp, Function, Lane, MemAccess, Op, Space, Term, Ty, Value, verify};

use crate::cases::payload;
use crate::rig::{Guarded, Rig, SPEED, function, gather, install, install_base};
use visa_test_common::Rng;

const INDEX: u32 = 3;
const MASKS: u32 = 0;
const SCALARS: u32 = 64;
const VECTORS: u32 = 512;
const SIZES: [usize; 7] = [0, 3, 64, 257, 1000, 4096, 9000];

/// A function in the making.
struct Block<'r> {
    f: Function,
    rng: &'r mut Rng,
    space: Space,
    lanes: u16,
    surface: Option<Value>,
    masks: Vec<Value>,
    roots: Vec<Value>,
    saved: Vec<Value>,
}

impl<'r> Block<'r> {
    fn new(rng: &'r mut Rng) -> Block<'r> {
        let mut f = Function::new("several", 32);
        let space = [Space::Surface, Space::Slm, Space::Flat][rng.below(3)];
        let lanes = [8, 16, 16, 16][rng.below(4)];
        f.sites.push(gather(space));
        let entry = Function::ENTRY;
        let surface = space
            .has_surface()
            .then(|| f.push1(entry, Op::Const(INDEX.into()), vec![], Ty::I32, 0));
        let ones = Op::VecConst(vec![1; usize::from(lanes)].into());
        let all = f.push1(entry, ones, vec![], Ty::mask(lanes), 0);
        let some = payload(&mut f, MASKS, Ty::mask(lanes));
        let mut block = Block {
            f,
            rng,
            space,
            lanes,
            surface,
            masks: vec![all, all, some],
            roots: Vec::new(),
            saved: Vec::new(),
        };
        for n in 0..2 {
            let root = block.root(n);
            block.roots.push(root);
        }
        block
    }

    fn push(&mut self, op: Op, args: Vec<Value>, ty: Ty) -> Value {
        self.f.push1(Function::ENTRY, op, args, ty, 0)
    }

    fn address(&self) -> Ty {
        Ty::vector(self.space.addr(), self.lanes)
    }

    /// Addresses: affine, chosen by a mask, or arbitrary.
    fn root(&mut self, n: u32) -> Value {
        let ty = self.address();
        if self.rng.below(3) == 0 {
            return payload(&mut self.f, VECTORS + 256 * n, ty);
        }
        let strides = [4, 16, 64, 32, 48, -16, 0, 8, 1, 2];
        let stride: i64 = strides[self.rng.below(strides.len())];
        let first = payload(&mut self.f, SCALARS + 8 * n, Ty::scalar(ty.lane));
        let first = self.push(Op::Splat, vec![first], ty);
        let steps = (0..i64::from(self.lanes)).map(|i| (i * stride).cast_unsigned());
        let steps: Vec<u64> = steps.map(|step| step & ty.lane.mask()).collect();
        let steps = self.push(Op::VecConst(steps.into()), vec![], ty);
        let affine = self.push(Op::Binary(BinOp::Add), vec![first, steps], ty);
        if self.rng.below(3) != 0 {
            return affine;
        }
        let zero = Op::VecConst(vec![0; usize::from(self.lanes)].into());
        let zero = self.push(zero, vec![], ty);
        let mask = self.masks[2];
        self.push(Op::Select, vec![mask, affine, zero], ty)
    }

    /// Mask, address and surface of an access.
    fn place(&mut self, root: Value, distance: i64) -> Vec<Value> {
        let part = [0, 8][self.rng.below(2)];
        let mut at = root;
        // In one sum, or in two.
        for by in [part, distance - part] {
            at = self.moved(at, by);
        }
        let mask = self.masks[self.rng.below(3)];
        [mask, at].into_iter().chain(self.surface).collect()
    }

    /// Addresses that are moved, if they are.
    fn moved(&mut self, at: Value, distance: i64) -> Value {
        if distance == 0 {
            return at;
        }
        let ty = self.address();
        let by = distance.cast_unsigned() & ty.lane.mask();
        let by = Op::VecConst(vec![by; usize::from(self.lanes)].into());
        let by = self.push(by, vec![], ty);
        self.push(Op::Binary(BinOp::Add), vec![at, by], ty)
    }

    fn access(&mut self) -> MemAccess {
        let comps = [1, 1, 2, 4, 4, 4][self.rng.below(6)];
        let elems = [Lane::I32, Lane::I32, Lane::I16, Lane::I8];
        MemAccess {
            space: self.space,
            elem: match comps {
                1 => elems[self.rng.below(elems.len())],
                _ => Lane::I32,
            },
            comps,
            site: 0,
        }
    }

    fn load(&mut self, access: MemAccess, root: Value, distance: i64) -> Vec<Value> {
        let args = self.place(root, distance);
        let ty = Ty::vector(access.elem, self.lanes);
        let types = vec![ty; usize::from(access.comps)];
        let inst = self
            .f
            .push(Function::ENTRY, Op::Load(access), args, &types, 0);
        let results = self.f.inst(inst).results.clone();
        let address = access.comps == 1 && access.elem == Lane::I32 && self.space != Space::Flat;
        if address && self.rng.below(4) == 0 {
            // Addresses that come from memory.
            self.roots.push(results[0]);
        }
        results
    }

    fn store(&mut self, access: MemAccess, root: Value, distance: i64, data: &[Value]) {
        let mut args = self.place(root, distance);
        args.extend(data);
        self.f
            .push(Function::ENTRY, Op::Store(access), args, &[], 0);
    }

    /// Some structs from one place to another, side by side or not, in order or not.
    fn copy(&mut self) {
        let access = self.access();
        let pick = |rng: &mut Rng, roots: &[Value]| roots[rng.below(roots.len())];
        let (from, to) = (pick(self.rng, &self.roots), pick(self.rng, &self.roots));
        let (start, end) = (
            self.rng.below(9) as i64 * 8 - 32,
            self.rng.below(40) as i64 * 16,
        );
        let step = [16, 16, 16, 4, 32][self.rng.below(5)];
        let count = 1 + self.rng.below(5) as i64;
        let mut loaded = Vec::new();
        for n in 0..count {
            loaded.push((n, self.load(access, from, start + n * step)));
        }
        if self.rng.below(4) == 0 {
            loaded.reverse();
        }
        for (n, mut data) in loaded {
            match self.rng.below(8) {
                0 => data.reverse(),
                1 => self.saved.push(data[0]),
                2 => {
                    let ty = Ty::vector(access.elem, self.lanes);
                    data[0] = self.push(Op::Binary(BinOp::Add), vec![data[0], data[0]], ty);
                }
                _ => {}
            }
            self.store(access, to, end + n * step, &data);
        }
    }

    fn finish(mut self) -> (Function, Space) {
        for _ in 0..1 + self.rng.below(3) {
            self.copy();
        }
        let root = self.roots[self.rng.below(self.roots.len())];
        let access = self.access();
        let last = self.load(access, root, 0);
        self.saved.extend(last);
        for v in std::mem::take(&mut self.saved) {
            let at = self.f.frame_bytes.next_multiple_of(16);
            self.f
                .push(Function::ENTRY, Op::FrameStore(at), vec![v], &[], 0);
            self.f.frame_bytes = at + self.f.ty(v).frame_bytes();
        }
        self.f.block_mut(Function::ENTRY).term = Term::Return;
        if let Err(errors) = verify(&self.f) {
            panic!("{}\n{}", errors[0], self.f);
        }
        (self.f, self.space)
    }
}

/// Payloads for the code and for the evaluator, which has device memory elsewhere.
fn payloads(rng: &mut Rng, (space, less): (Space, u64), size: usize, base: u64) -> [Vec<u8>; 2] {
    let mut native: Vec<u8> = (0..2048).map(|_| rng.bits() as u8).collect();
    if rng.below(2) == 0 {
        native[..4].fill(0xFF);
    }
    let mut model = native.clone();
    let near = rng.below(4) != 0;
    let offset = |rng: &mut Rng| match rng.below(if near { 40 } else { 5 }) {
        0 => rng.bits(),
        1 => 0u64.wrapping_sub(4 * rng.below(20) as u64),
        2 => (size as u64).wrapping_sub(4 * rng.below(300) as u64),
        3 => rng.below(size + 4) as u64,
        _ => 4 * rng.below(size / 8 + 1) as u64,
    };
    let flat = space == Space::Flat;
    let (wide, step) = if flat { (8, 8) } else { (4, 4) };
    let scalars = (0..2).map(|n| SCALARS as usize + 8 * n);
    let vectors =
        (0..2).flat_map(|n| (0..16).map(move |i| (VECTORS + 256 * n) as usize + step * i));
    for at in scalars.chain(vectors).collect::<Vec<_>>() {
        let offset = offset(rng);
        let tag = if rng.below(4) == 0 {
            rng.bits() << 48
        } else {
            0
        };
        for (bytes, base) in [(&mut native, base), (&mut model, Bytes::FLAT_BASE)] {
            let address = if flat {
                let address = base.wrapping_add(offset) & Bytes::FLAT_BITS;
                address.wrapping_sub(less).wrapping_add(tag)
            } else {
                offset
            };
            bytes[at..at + wide].copy_from_slice(&address.to_le_bytes()[..wide]);
        }
    }
    [native, model]
}

fn contents(space: Space, bytes: &mut Bytes) -> &mut Vec<u8> {
    match space {
        Space::Surface => {
            bytes.surfaces.resize(16, Vec::new());
            &mut bytes.surfaces[INDEX as usize]
        }
        Space::Slm => &mut bytes.slm,
        _ => &mut bytes.flat,
    }
}

fn check(f: &Function, space: Space, options: &CodegenOptions, base: bool, rng: &mut Rng) {
    check_less(f, (space, 0), options, base, rng);
}

/// The same with addresses of device memory from which a number is taken away.
fn check_less(
    f: &Function,
    (space, less): (Space, u64),
    options: &CodegenOptions,
    base: bool,
    rng: &mut Rng,
) {
    let code = if base {
        install_base(f)
    } else {
        install(f, options)
    };
    let mut rig = Rig::new(1, f.frame_bytes as usize);
    for size in SIZES.into_iter().chain([4096; 5]) {
        // Small numbers, as some are addresses.
        let mut before: Vec<u8> = vec![0; size];
        for word in before.chunks_exact_mut(4) {
            let number = 4 * rng.below(size / 4 + 2) as u32;
            word.copy_from_slice(&number.to_le_bytes());
        }
        let memory = Guarded::of(&before);
        rig.place(space, INDEX as usize, &memory);
        rig.frames[0].write(&vec![0; f.frame_bytes as usize]);
        let [native, model] = payloads(rng, (space, less), size, memory.base() as u64);
        rig.payload.write(&native);
        rig.threads[0].state = 0;
        assert_eq!(rig.run(code.entry()), 0);

        let mut thread = Thread::new(f);
        let mut bytes = Bytes::default();
        *contents(space, &mut bytes) = before;
        let inputs = Inputs {
            payload: model,
            ..Inputs::default()
        };
        eval::run(f, &inputs, &mut thread, &mut bytes, 1000);
        let frame = rig.frames[0].read();
        assert_eq!(frame, thread.frame, "frame, {size} bytes, {options:?}\n{f}");
        let after = contents(space, &mut bytes);
        assert_eq!(
            &memory.read(),
            after,
            "memory, {size} bytes, {options:?}\n{f}"
        );
    }
}

/// `SEEDS=n` checks `n` functions.
#[test]
fn several_accesses() {
    let seeds = std::env::var("SEEDS").ok().and_then(|n| n.parse().ok());
    for seed in 0..seeds.unwrap_or(visa_test_common::share(60, 8)) {
        let mut rng = Rng::new(0x9E37_79B9 + seed);
        let (mut f, space) = Block::new(&mut rng).finish();
        assert!(visa_jit::passes::run_pass(&mut f, "dce"));
        assert!(visa_jit::passes::run_pass(&mut f, "shape"));
        check(&f, space, &SPEED, false, &mut rng);
        let bounded = |bounds| SPEED.tuned(|t| t.bounds = bounds);
        let report = CodegenOptions {
            oob: OobPolicy::Report,
            ..SPEED
        };
        match seed % 8 {
            0 => check(&f, space, &bounded(Bounds::Inline), false, &mut rng),
            3 => check(&f, space, &bounded(Bounds::Separate), false, &mut rng),
            1 => check(&f, space, &report, false, &mut rng),
            2 => check(&f, space, &SPEED, true, &mut rng),
            _ => {}
        }
    }
}

/// Two loads and a store at constant distances from a scalar, of which the first is given.
fn at_distance(constant: i64, stride: i64) -> Function {
    let mask = ["1"; 16].join(", ");
    let mut text = format!(
        r#"function "f" simd 16 frame 1024
site 0 = read flat 4 "gather" line 1

bb0:
  %0: <16 x i1> = vconst [{mask}]
  %1: i64 = input.payload[{SCALARS}]
  %2: <16 x i64> = splat %1
"#
    );
    for n in 0..3 {
        let (lanes, address, data) = (10 + n, 20 + n, 30 + n);
        let lane = |i| constant.wrapping_add(4 * n + stride * i).cast_unsigned();
        let distances: Vec<_> = (0..16).map(|i| lane(i).to_string()).collect();
        let distances = distances.join(", ");
        text += &format!("  %{lanes}: <16 x i64> = vconst [{distances}]\n");
        text += &format!("  %{address}: <16 x i64> = add %2, %{lanes}\n");
        text += &match n {
            2 => format!("  store.flat.i32x1[0] %0, %{address}, %30\n"),
            _ => format!("  %{data}: <16 x i32> = load.flat.i32x1[0] %0, %{address}\n"),
        };
    }
    function(&format!(
        "{text}  framestore[0] %30\n  framestore[64] %31\n  return\n"
    ))
}

/// The lowest or the highest byte is then further from the scalar than `i64` goes, which left accesses without a bounds test.
#[test]
fn distances_may_be_at_the_ends_of_their_range() {
    let mut rng = Rng::new(0x7ACE);
    for constant in [i64::MIN, i64::MIN + 8, i64::MAX - 40, i64::MAX - 3] {
        for stride in [4, -4, 16, -16] {
            let mut f = at_distance(constant, stride);
            assert!(visa_jit::passes::run_pass(&mut f, "shape"));
            let shapes = f.shapes.values();
            assert_eq!(shapes.filter(|s| s.addr.is_some()).count(), 3, "{f}");
            let less = constant.cast_unsigned();
            check_less(&f, (Space::Flat, less), &SPEED, false, &mut rng);
        }
    }
}
