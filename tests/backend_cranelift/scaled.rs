//! Accesses by a scalar, a scaled 32-bit number in each lane, and a constant, in device memory.

use visa_jit::ssa::eval::Bytes;
use visa_jit::ssa::{BinOp, Conv, Function, Lane, MemAccess, Op, Space, Term, Ty, Value};

use crate::cases::{INTS, payload};
use crate::memory::{Access, RESULTS, STRIDE};
use crate::rig::{Guarded, Rig, SPEED, gather, install};
use visa_test_common::{Rng, share};

/// Where the base of scaled addresses is in the payload.
const BASE: u32 = 2 * STRIDE + 64;

/// How numbers become addresses.
#[derive(Clone, Copy)]
pub struct Numbers {
    /// How they are widened.
    pub conv: Conv,
    /// By how much they are shifted.
    pub shift: u8,
    /// Bytes that are added.
    pub distance: i64,
}

impl Numbers {
    /// Addresses as compilers write an element of an array in device memory; where it is at a distance, in one of two orders.
    pub fn addresses(self, f: &mut Function, lanes: u16) -> Value {
        let entry = Function::ENTRY;
        let ty = Ty::vector(Lane::I64, lanes);
        let base = payload(f, BASE, Ty::I64);
        let index = payload(f, STRIDE, Ty::vector(Lane::I32, lanes));
        let wide = f.push1(entry, Op::Convert(self.conv), vec![index], ty, 0);
        let by = f.push1(entry, Op::Const(self.shift.into()), vec![], Ty::I64, 0);
        let product = f.push1(entry, Op::Binary(BinOp::Shl), vec![wide, by], ty, 0);
        let base = f.push1(entry, Op::Splat, vec![base], ty, 0);
        let add = Op::Binary(BinOp::Add);
        if self.distance == 0 {
            return f.push1(entry, add, vec![product, base], ty, 0);
        }
        let bits = vec![self.distance.cast_unsigned(); usize::from(lanes)];
        let distance = f.push1(entry, Op::VecConst(bits.into()), vec![], ty, 0);
        let (first, second) = match lanes {
            16 => (base, distance),
            _ => (distance, base),
        };
        let sum = f.push1(entry, add.clone(), vec![product, first], ty, 0);
        f.push1(entry, add, vec![sum, second], ty, 0)
    }

    /// Bases in front of the memory, in it and after it, sometimes with a tag; numbers that reach all of it, and far away.
    pub fn write(self, rng: &mut Rng, limit: usize, base: u64, payloads: [&mut Vec<u8>; 2]) {
        let shift = self.shift;
        let before = rng.below(1 << 12);
        // Where numbers end, with or without a sign.
        let end = |most: u32, rng: &mut Rng| {
            let there = most - rng.below(40) as u32;
            (0u64.wrapping_sub(u64::from(there) << shift), there)
        };
        // A base, and the number that brings it to the start of memory or back to it.
        let (from, there) = match rng.below(8) {
            0 => (0u64.wrapping_sub(before as u64), (before >> shift) as u32),
            1 => {
                let from = rng.below(limit + 16);
                (from as u64, 0u32.wrapping_sub((from >> shift) as u32))
            }
            2 => (rng.below(8) as u64 + (1 << 30), 0),
            3 => end(i32::MAX as u32, rng),
            4 => end(u32::MAX, rng),
            _ => (0, 0),
        };
        let there = if rng.below(2) == 0 { there } else { 0 };
        let from = match rng.below(4) {
            0 => from,
            _ => from.wrapping_sub(self.distance.cast_unsigned()),
        };
        let tag = if rng.below(4) == 0 {
            rng.bits() << 48
        } else {
            0
        };
        let far = rng.below(3) == 0;
        let numbers: Vec<u32> = (0..32)
            .map(|_| match rng.below(8) {
                0 if far => rng.bits() as u32,
                1 if far => 0u32.wrapping_sub(rng.below(1 << 10) as u32),
                _ => {
                    let number = rng.below((limit >> shift) + usize::from(far) * 4 + 1);
                    there.wrapping_add(number as u32)
                }
            })
            .collect();
        let numbers = match rng.below(3) {
            0 => side_by_side(rng, numbers),
            _ => numbers,
        };
        let bases = [base, Bytes::FLAT_BASE];
        let bases = bases.map(|base| base.wrapping_add(from) & Bytes::FLAT_BITS | tag);
        for (bytes, base) in payloads.into_iter().zip(bases) {
            bytes[BASE as usize..][..8].copy_from_slice(&base.to_le_bytes());
            for (lane, number) in numbers.iter().enumerate() {
                bytes[STRIDE as usize + 4 * lane..][..4].copy_from_slice(&number.to_le_bytes());
            }
        }
    }
}

/// Numbers that follow each other from the first one on; one may be elsewhere.
fn side_by_side(rng: &mut Rng, numbers: Vec<u32>) -> Vec<u32> {
    let (first, stray) = (numbers[0], rng.below(64));
    let number = |(lane, other)| match lane == stray {
        true => other,
        false => first.wrapping_add(lane as u32),
    };
    numbers.into_iter().enumerate().map(number).collect()
}

#[test]
fn scaled_numbers() {
    let mut rng = Rng::new(36);
    for (number, elem) in INTS.into_iter().enumerate() {
        for (lanes, conv) in [(8, Conv::ZExt), (16, Conv::SExt), (32, Conv::ZExt)] {
            for load in [true, false] {
                let access = MemAccess {
                    space: Space::Flat,
                    elem,
                    comps: 1,
                    site: 0,
                };
                let op = match load {
                    true => Op::Load(access),
                    false => Op::Store(access),
                };
                let tys = vec![Ty::vector(elem, lanes)];
                // Elements with gaps between them, or that overlap.
                let shift = if lanes == 8 { (number + 1) % 4 } else { number };
                let case = Access {
                    op,
                    space: Space::Flat,
                    lanes,
                    constant: true,
                    full: lanes != 16,
                    stride: None,
                    scaled: Some(Numbers {
                        conv,
                        shift: shift as u8,
                        distance: 0,
                    }),
                    sources: if load { vec![] } else { tys.clone() },
                    results: if load { tys } else { vec![] },
                };
                case.check(&mut rng, share(90, 5) as usize);
            }
        }
    }
}

/// Memory of 4 GiB, of which a few pages are touched: the count of numbers that are inside has 33 bits there.
#[test]
fn all_scaled_numbers_are_inside() {
    for elem in [Lane::I8, Lane::I32] {
        for from in [0, 1] {
            numbers_are_inside(elem, Conv::ZExt, from);
        }
        numbers_are_inside(elem, Conv::SExt, 0);
        for from in [-1, 0, 1] {
            numbers_are_inside(elem, Conv::SExt, (1_u64 << 31).wrapping_add_signed(from));
        }
    }
}

/// Reads with the least and the largest numbers, and those around where they change their sign.
fn numbers_are_inside(elem: Lane, conv: Conv, from: u64) {
    let edges = [0..3, 0x7FFF_FFFE..0x8000_0002].into_iter().flatten();
    let sets: [Vec<u32>; 2] = [
        edges.clone().chain(u32::MAX - 8..=u32::MAX).collect(),
        edges.chain(0x8000_0002..0x8000_000B).collect(),
    ];
    for numbers in sets {
        these_are_inside(elem, conv, from, &numbers);
    }
}

fn these_are_inside(elem: Lane, conv: Conv, from: u64, numbers: &[u32]) {
    let low = [-1, u32::MAX.into()][usize::from(conv == Conv::ZExt)];
    let access = MemAccess {
        space: Space::Flat,
        elem,
        comps: 1,
        site: 0,
    };
    let case = Access {
        op: Op::Load(access),
        space: Space::Flat,
        lanes: 16,
        constant: true,
        full: true,
        stride: None,
        scaled: Some(Numbers {
            conv,
            shift: 0,
            distance: 0,
        }),
        sources: vec![],
        results: vec![Ty::vector(elem, 16)],
    };
    let f = case.function();
    let code = install(&f, &SPEED);
    let bytes = elem.bytes() as usize;
    for size in [(1usize << 32) - 1, 1 << 32, (1 << 32) + 1] {
        let memory = Guarded::new(size);
        let mut rig = Rig::new(1, f.frame_bytes as usize);
        rig.place(Space::Flat, 0, &memory);
        let base = (memory.base() as u64).wrapping_add(from);
        let mut payload = vec![0; rig.payload.len()];
        payload[BASE as usize..][..8].copy_from_slice(&base.to_le_bytes());
        let mut want = vec![0; 16 * bytes];
        // Numbers that are negative would be here if they were not.
        let unsigned = numbers.iter().map(|&n| from + u64::from(n));
        let room = (size - bytes) as u64;
        for offset in unsigned.filter(|&offset| offset <= room) {
            (0..bytes).for_each(|n| memory.set(offset as usize + n, 9));
        }
        for (lane, &number) in numbers.iter().enumerate() {
            payload[STRIDE as usize + 4 * lane..][..4].copy_from_slice(&number.to_le_bytes());
            let wide = i64::from(number.cast_signed()) & low;
            // Elements overlap, and all of their bytes are the same.
            let offset = from.cast_signed() + wide;
            if (0..=(size - bytes) as i64).contains(&offset) {
                (0..bytes).for_each(|n| memory.set(offset as usize + n, 7));
                want[bytes * lane..][..bytes].fill(7);
            }
        }
        rig.payload.write(&payload);
        assert_eq!(rig.run(code.entry()), 0);
        let got = &rig.frames[0].read()[RESULTS as usize..][..want.len()];
        assert_eq!(got, want, "{elem:?} {conv:?}, {from:#x} of {size:#x}");
    }
}

/// Elements at a distance from the number's place, and vectors that are further apart than an instruction can scale.
#[test]
fn scaled_numbers_and_a_distance() {
    let mut rng = Rng::new(38);
    for (comps, shift) in [(1, 1), (1, 2), (1, 5), (2, 3), (4, 4), (1, 7)] {
        for (lanes, conv) in [(8, Conv::SExt), (16, Conv::ZExt), (32, Conv::SExt)] {
            // The last one only changes the tag.
            for distance in [12, -8, 1 << 31, (1 << 31) + 1, 1 << 48] {
                let elem = if shift == 1 { Lane::I8 } else { Lane::I32 };
                let access = MemAccess {
                    space: Space::Flat,
                    elem,
                    comps,
                    site: 0,
                };
                let tys = vec![Ty::vector(elem, lanes); usize::from(comps)];
                for load in [true, false] {
                    let (op, sources, results) = match load {
                        true => (Op::Load(access), vec![], tys.clone()),
                        false => (Op::Store(access), tys.clone(), vec![]),
                    };
                    let case = Access {
                        op,
                        space: Space::Flat,
                        lanes,
                        constant: true,
                        full: lanes != 8,
                        stride: None,
                        scaled: Some(Numbers {
                            conv,
                            shift,
                            distance,
                        }),
                        sources,
                        results,
                    };
                    case.check(&mut rng, share(40, 4) as usize);
                }
            }
        }
    }
}

/// One test for several distances from the same numbers.
#[test]
fn scaled_numbers_at_several_distances() {
    const DISTANCES: [i64; 3] = [0, 24, -16];
    const BEFORE: u64 = 16;
    let mut f = Function::new("distances", 16);
    f.sites.push(gather(Space::Flat));
    f.frame_bytes = RESULTS + 64 * DISTANCES.len() as u32;
    let (entry, ty) = (Function::ENTRY, Ty::vector(Lane::I32, 16));
    let access = MemAccess {
        space: Space::Flat,
        elem: Lane::I32,
        comps: 1,
        site: 0,
    };
    for (at, distance) in (RESULTS..).step_by(64).zip(DISTANCES) {
        let numbers = Numbers {
            conv: Conv::ZExt,
            shift: 2,
            distance,
        };
        let full = Op::VecConst(vec![1; 16].into());
        let full = f.push1(entry, full, vec![], Ty::mask(16), 0);
        let addresses = numbers.addresses(&mut f, 16);
        let loaded = f.push1(entry, Op::Load(access), vec![full, addresses], ty, 0);
        f.push(entry, Op::FrameStore(at), vec![loaded], &[], 0);
    }
    f.block_mut(entry).term = Term::Return;
    // The same numbers are one value.
    assert!(visa_jit::passes::run_pass(&mut f, "gvn"));
    let code = install(&f, &SPEED);
    let memory = Guarded::new(400);
    (0..400).for_each(|n| memory.set(n, n as u8));
    // From the first element that a distance reaches to the last one, and beyond both ends.
    for first in 0..100_u32 {
        let mut rig = Rig::new(1, f.frame_bytes as usize);
        rig.place(Space::Flat, 0, &memory);
        let mut payload = vec![0; rig.payload.len()];
        let base = memory.base() as u64 + BEFORE;
        payload[BASE as usize..][..8].copy_from_slice(&base.to_le_bytes());
        // Of every other set, all are inside.
        let number = |lane: u32| match first % 2 {
            0 => (first + 37 * lane) % 100,
            _ => (first + 37 * lane) % 90,
        };
        for lane in 0..16 {
            let at = STRIDE as usize + 4 * lane as usize;
            payload[at..][..4].copy_from_slice(&number(lane).to_le_bytes());
        }
        rig.payload.write(&payload);
        assert_eq!(rig.run(code.entry()), 0);
        let frame = rig.frames[0].read();
        for (row, distance) in DISTANCES.into_iter().enumerate() {
            for lane in 0..16 {
                let at = i64::from(4 * number(lane)) + distance + BEFORE as i64;
                let byte = |n: i64| match (0..=396).contains(&at) {
                    true => (at + n) as u8,
                    false => 0,
                };
                let got = &frame[RESULTS as usize + 64 * row + 4 * lane as usize..][..4];
                assert_eq!(got, [0, 1, 2, 3].map(byte), "{first}, {distance}, {lane}");
            }
        }
    }
}
