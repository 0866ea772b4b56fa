//! Accesses at any addresses in loops over the lanes, against the SSA evaluator: with disabled lanes anywhere, one lane across the end of
//! memory by some of its components, lanes over each other, and memory too short for any.

use visa_jit::backend::{CodegenOptions, Gather, OobPolicy};
use visa_jit::ssa::eval::{self, Bytes, Inputs, Thread};
use visa_jit::ssa::{BinOp, Conv, Function, Lane, MemAccess, Op, Space, Term, Ty, Value, verify};
use visa_runtime::CodeHandle;

use crate::cases::{INTS, payload};
use crate::rig::{Guarded, Rig, SPEED, gather, install};
use visa_test_common::{Rng, full};

const INDEX: u32 = 3;
const REGS: u32 = 208;
const MASK: u32 = 0;
const BASE: u32 = 16;
const ADDRESSES: u32 = 256;
const DATA: u32 = 512;
/// Bytes from payload to payload.
const ROW: u32 = 256;
/// Where the frame has what is loaded.
const RESULTS: u32 = 256;

/// How addresses are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Addresses {
    Whole,
    /// A scalar and numbers of 32 bits times so much, as a power of two.
    Scaled(u8),
}

#[derive(Clone, Copy, Debug)]
struct Case {
    access: MemAccess,
    lanes: u16,
    addresses: Addresses,
    load: bool,
    /// All lanes are enabled.
    full: bool,
}

impl Case {
    fn space(&self) -> Space {
        self.access.space
    }

    /// Bytes of all components.
    fn bytes(&self) -> usize {
        (self.access.elem.bytes() * u32::from(self.access.comps)) as usize
    }

    fn function(&self) -> Function {
        let mut f = Function::new("rolled", 32);
        f.sites.push(gather(self.space()));
        f.regs_bytes = REGS;
        f.frame_bytes = RESULTS;
        let entry = Function::ENTRY;
        let mask_ty = Ty::mask(self.lanes);
        let mask = match self.full {
            true => {
                let ones = Op::VecConst(vec![1; usize::from(self.lanes)].into());
                f.push1(entry, ones, vec![], mask_ty, 0)
            }
            false => payload(&mut f, MASK, mask_ty),
        };
        let mut args = vec![mask, self.addresses(&mut f)];
        if self.space().has_surface() {
            args.push(f.push1(entry, Op::Const(INDEX.into()), vec![], Ty::I32, 0));
        }
        let ty = Ty::vector(self.access.elem, self.lanes);
        let comps = u32::from(self.access.comps);
        if !self.load {
            args.extend((0..comps).map(|c| payload(&mut f, DATA + ROW * c, ty)));
        }
        // Few accesses of one component are straight code.
        let times = if comps == 1 { 9 } else { 1 };
        for _ in 0..times {
            if !self.load {
                f.push(entry, Op::Store(self.access), args.clone(), &[], 0);
                continue;
            }
            let types = vec![ty; comps as usize];
            let inst = f.push(entry, Op::Load(self.access), args.clone(), &types, 0);
            for v in f.inst(inst).results.clone() {
                f.push(entry, Op::FrameStore(f.frame_bytes), vec![v], &[], 0);
                f.frame_bytes += ty.frame_bytes().next_multiple_of(16);
            }
        }
        f.block_mut(entry).term = Term::Return;
        if let Err(errors) = verify(&f) {
            panic!("{}\n{f}", errors[0]);
        }
        f
    }

    fn addresses(&self, f: &mut Function) -> Value {
        let entry = Function::ENTRY;
        let ty = Ty::vector(self.space().addr(), self.lanes);
        let Addresses::Scaled(shift) = self.addresses else {
            return payload(f, ADDRESSES, ty);
        };
        let base = payload(f, BASE, Ty::I64);
        let numbers = payload(f, ADDRESSES, Ty::vector(Lane::I32, self.lanes));
        let wide = f.push1(entry, Op::Convert(Conv::SExt), vec![numbers], ty, 0);
        let by = f.push1(entry, Op::Const(shift.into()), vec![], Ty::I64, 0);
        let product = f.push1(entry, Op::Binary(BinOp::Shl), vec![wide, by], ty, 0);
        let base = f.push1(entry, Op::Splat, vec![base], ty, 0);
        f.push1(entry, Op::Binary(BinOp::Add), vec![product, base], ty, 0)
    }

    /// Offsets of the lanes, and which of them are enabled. Enabled ones are inside, but sometimes one that is near the end.
    fn offsets(&self, rng: &mut Rng, size: usize) -> (Vec<u64>, u32) {
        let enabled = match rng.below(6) {
            _ if self.full => u32::MAX,
            0 => u32::MAX,
            1 => 0,
            _ => rng.bits() as u32,
        };
        // Of few places, lanes share some.
        let places = [size + 1, 2 * self.bytes()][rng.below(2)];
        let past = (size + 1).saturating_sub(self.bytes()).min(places);
        let unit = match self.addresses {
            Addresses::Whole => [1, 4][rng.below(2)],
            Addresses::Scaled(shift) => 1 << shift,
        };
        let mut offsets: Vec<u64> = (0..32)
            .map(|lane| match enabled >> lane & 1 {
                0 if rng.below(2) == 0 => rng.bits() as u32 as u64 & !(unit - 1),
                _ => rng.below(past.max(1)) as u64 & !(unit - 1),
            })
            .collect();
        if rng.below(3) == 0 {
            let end = (size + 4).saturating_sub(rng.below(self.bytes() + 8));
            offsets[rng.below(self.lanes.into())] = end as u64 & !(unit - 1);
        }
        (offsets, enabled)
    }

    /// Payloads for the code and for the evaluator, which has device memory elsewhere.
    fn payloads(&self, rng: &mut Rng, size: usize, base: u64) -> [Vec<u8>; 2] {
        let mut native = rng.bytes(2048);
        let (offsets, enabled) = self.offsets(rng, size);
        let put = |bytes: &mut [u8], at: u32, v: &[u8]| {
            bytes[at as usize..][..v.len()].copy_from_slice(v);
        };
        put(&mut native, MASK, &enabled.to_le_bytes());
        let mut model = native.clone();
        let tag = [0, rng.bits() << 48][usize::from(rng.below(8) == 0)];
        for (bytes, base) in [(&mut native, base), (&mut model, Bytes::FLAT_BASE)] {
            put(bytes, BASE, &(base & Bytes::FLAT_BITS | tag).to_le_bytes());
            for (lane, &offset) in (0..).zip(&offsets) {
                let (at4, at8) = (ADDRESSES + 4 * lane, ADDRESSES + 8 * lane);
                match self.addresses {
                    Addresses::Scaled(shift) => {
                        let number = offset as u32 >> shift;
                        put(bytes, at4, &number.to_le_bytes());
                    }
                    Addresses::Whole if self.space() == Space::Flat => {
                        let address = base.wrapping_add(offset) & Bytes::FLAT_BITS | tag;
                        put(bytes, at8, &address.to_le_bytes());
                    }
                    Addresses::Whole => put(bytes, at4, &(offset as u32).to_le_bytes()),
                }
            }
        }
        [native, model]
    }

    fn check(&self, f: &Function, code: &CodeHandle, rng: &mut Rng, what: &str) {
        let mut rig = Rig::new(1, f.frame_bytes as usize);
        let exact = [self.bytes() - 1, self.bytes(), 0];
        for round in 0..24 {
            let size = [exact[round % 3], 200, 203, 1000][round % 4];
            let contents = rng.bytes(size);
            let memory = Guarded::of(&contents);
            rig.place(self.space(), INDEX as usize, &memory);
            let regs = rng.bytes(REGS as usize);
            rig.frames[0].write(&vec![0; f.frame_bytes as usize]);
            rig.frames[0].write(&regs);
            let in_regs = self.space() == Space::Regs;
            let limit = if in_regs { REGS as usize } else { size };
            let [native, model] = self.payloads(rng, limit, memory.base() as u64);
            rig.payload.write(&native);
            rig.threads[0].state = 0;
            assert_eq!(rig.run(code.entry()), 0);

            let mut thread = Thread::new(f);
            thread.frame[..regs.len()].copy_from_slice(&regs);
            let mut bytes = Bytes::default();
            if !in_regs {
                *place(self.space(), &mut bytes) = contents;
            }
            let inputs = Inputs {
                payload: model,
                ..Inputs::default()
            };
            eval::run(f, &inputs, &mut thread, &mut bytes, 1000);
            let frame = rig.frames[0].read();
            assert_eq!(frame, thread.frame, "frame, {size} bytes, {what}\n{f}");
            if !in_regs {
                let after = place(self.space(), &mut bytes);
                assert_eq!(&memory.read(), after, "memory, {size} bytes, {what}\n{f}");
            }
        }
    }
}

fn place(space: Space, bytes: &mut Bytes) -> &mut Vec<u8> {
    match space {
        Space::Surface => {
            bytes.surfaces.resize(16, Vec::new());
            &mut bytes.surfaces[INDEX as usize]
        }
        Space::Slm => &mut bytes.slm,
        Space::Scratch => &mut bytes.scratch,
        _ => &mut bytes.flat,
    }
}

const SPACES: [(Space, Addresses); 7] = [
    (Space::Surface, Addresses::Whole),
    (Space::Slm, Addresses::Whole),
    (Space::Scratch, Addresses::Whole),
    (Space::Regs, Addresses::Whole),
    (Space::Flat, Addresses::Whole),
    (Space::Flat, Addresses::Scaled(2)),
    (Space::Flat, Addresses::Scaled(4)),
];

#[test]
fn accesses_at_any_addresses() {
    let mut rng = Rng::new(77);
    let every = if full() { 1 } else { 11 };
    let mut number = 0;
    for (space, addresses) in SPACES {
        for elem in INTS {
            for comps in 1..=4 {
                for lanes in [8, 16, 32] {
                    for way in 0..4 {
                        number += 1;
                        if number % every != 0 {
                            continue;
                        }
                        let case = Case {
                            access: MemAccess {
                                space,
                                elem,
                                comps,
                                site: 0,
                            },
                            lanes,
                            addresses,
                            load: way & 1 == 0,
                            full: way & 2 == 0,
                        };
                        let f = case.function();
                        let call = SPEED.tuned(|t| t.gather = Gather::Call);
                        let report = CodegenOptions {
                            oob: OobPolicy::Report,
                            ..SPEED
                        };
                        for options in [&SPEED, &report, &call] {
                            let what = format!("{case:?}, {options:?}");
                            case.check(&f, &install(&f, options), &mut rng, &what);
                        }
                    }
                }
            }
        }
    }
}
