//! The processor's path of `fp_env` against the software path, and float atomics.

use super::fp_env::{Call, Env, by_doubles};
use super::{PORTABLE, atomic, soft};
use crate::abi::atomic::{FADD, FCMP_XCHG, FMAX, FMIN, FSUB};
use crate::abi::fp_env as op;
use visa_test_common::{Rng, share};

/// Cases of each operation, width and rounding mode.
const CASES: u64 = 100_000;

fn cases() -> u64 {
    share(CASES, 40)
}
/// Lanes of one call; no multiple of a vector.
const LANES: usize = 31;

/// Operands.
trait Operands {
    /// Bits of a float of `bytes` bytes: edges, their neighbours, all exponents alike, or
    /// exponents near each other, so that sums cancel and products meet the ends of the range.
    fn float_bits(&mut self, bytes: u32) -> u64;
    /// Bits of an integer of `bytes` bytes.
    fn integer_bits(&mut self, bytes: u32) -> u64;
}

impl Operands for Rng {
    fn float_bits(&mut self, bytes: u32) -> u64 {
        let (bits, fraction) = match bytes {
            2 => (16, 10),
            4 => (32, 23),
            _ => (64, 52),
        };
        let width = bits - 1 - fraction;
        let one = ((1u64 << (width - 1)) - 1) << fraction;
        let exponent_mask = ((1u64 << width) - 1) << fraction;
        let pick = self.bits();
        let magnitude = match pick % 8 {
            0 => [
                0,
                1,
                one,
                exponent_mask,
                1 << fraction,
                exponent_mask - 1,
                exponent_mask | 1 << (fraction - 1),
            ][(pick >> 8) as usize % 7],
            1 => (1u64 << fraction)
                .wrapping_add(pick >> 8 & 7)
                .wrapping_sub(4),
            2 => self.bits() & ((1 << fraction) - 1),
            3 => {
                one.wrapping_add((pick >> 8 & 7) << fraction) | self.bits() & ((1 << fraction) - 1)
            }
            4 => one.wrapping_add(pick >> 8 & 0xF).wrapping_sub(8),
            // Few significant bits: ties and exact results.
            5 => (self.bits() & exponent_mask) | (self.bits() & 0b111) << (fraction - 3),
            _ => self.bits(),
        };
        let all = if bits == 64 {
            u64::MAX
        } else {
            (1 << bits) - 1
        };
        (magnitude & (all >> 1)) | (pick >> 63) << (bits - 1)
    }

    fn integer_bits(&mut self, bytes: u32) -> u64 {
        let all = if bytes == 8 {
            u64::MAX
        } else {
            (1 << (8 * bytes)) - 1
        };
        let pick = self.bits();
        let bits = match pick % 4 {
            0 => [0, 1, all, all >> 1, (all >> 1) + 1, all - 1][(pick >> 8) as usize % 6],
            1 => self.bits() >> (pick >> 8 & 63),
            // A few bits far apart: ties of every target width.
            2 => (1u64 << (pick >> 8 & 63))
                .wrapping_add(1 << (pick >> 16 & 63))
                .wrapping_sub(pick >> 24 & 3),
            _ => self.bits(),
        };
        bits & all
    }
}

fn is_nan(bits: u64, bytes: u32) -> bool {
    match bytes {
        2 => bits & 0x7FFF > 0x7C00,
        4 => f32::from_bits(bits as u32).is_nan(),
        _ => f64::from_bits(bits).is_nan(),
    }
}

/// Packs elements of `bytes` bytes.
fn pack(values: &[u64; LANES], bytes: u32) -> [u64; LANES] {
    let mut packed = [0u64; LANES];
    for (i, value) in values.iter().enumerate() {
        let at = i * bytes as usize;
        packed[at / 8] |= value << (8 * (at % 8));
    }
    packed
}

fn unpack(packed: &[u64; LANES], bytes: u32, i: usize) -> u64 {
    let at = i * bytes as usize;
    let all = if bytes == 8 {
        u64::MAX
    } else {
        (1 << (8 * bytes)) - 1
    };
    packed[at / 8] >> (8 * (at % 8)) & all
}

/// Runs one call on random lanes and compares every lane.
fn check(random: &mut Rng, code: u32, source: u32, result: u32, cr0: u32) {
    let integers = matches!(code, op::SI_TO_F | op::UI_TO_F);
    let mut sources = [[0u64; LANES]; 3];
    for value in sources.as_flattened_mut() {
        *value = if integers {
            random.integer_bits(source)
        } else {
            random.float_bits(source)
        };
    }
    let packed = sources.map(|s| pack(&s, source));
    let mut out = [u64::MAX; LANES];
    let operands = packed.each_ref().map(|p| p.as_ptr().cast::<u8>());
    // SAFETY: three operands and a result of LANES elements each.
    unsafe {
        (PORTABLE.fp_env)(
            code | source << 8 | result << 16,
            cr0,
            LANES as u32,
            &raw const operands,
            out.as_mut_ptr().cast(),
        );
    }
    let call = Call {
        op: code,
        source,
        result,
        env: Env::new(cr0),
        lanes: 1,
        operands: [std::ptr::null(); 3],
        out: std::ptr::null_mut(),
    };
    let [a, b, c] = &sources;
    for (i, ((&a, &b), &c)) in a.iter().zip(b).zip(c).enumerate() {
        let lane = [a, b, c];
        let expected = soft::lane(&call, lane);
        let got = unpack(&out, result, i);
        let nan = is_nan(expected, result) && is_nan(got, result);
        assert!(
            nan || got == expected,
            "op {code} {source}->{result} bytes, cr0 {cr0:#x}: {lane:x?} gave {got:#x}, expected {expected:#x}"
        );
    }
    let used = LANES * result as usize;
    // SAFETY: the buffer is LANES * 8 bytes.
    let tail = unsafe {
        std::slice::from_raw_parts(out.as_ptr().cast::<u8>().add(used), LANES * 8 - used)
    };
    assert!(
        tail.iter().all(|&b| b == 0xFF),
        "wrote beyond the last lane"
    );
}

fn sweep(codes: &[u32], widths: &[(u32, u32)]) {
    let mut random = Rng::new(0x9E37_79B9_7F4A_7C15);
    for &code in codes {
        for &(source, result) in widths {
            for round in 0..4 {
                for case in 0..cases().div_ceil(LANES as u64) as u32 {
                    // All eight combinations of denormal modes take turns.
                    let keep = (case & 1) << 6 | (case >> 1 & 1) << 7 | (case >> 2 & 1) << 10;
                    check(&mut random, code, source, result, round << 4 | keep);
                }
            }
        }
    }
}

#[test]
fn arithmetic_on_f32() {
    sweep(
        &[op::ADD, op::MUL, op::DIV, op::FMA, op::SQRT, op::FLUSH],
        &[(4, 4)],
    );
}

#[test]
fn arithmetic_on_f64() {
    sweep(
        &[op::ADD, op::MUL, op::DIV, op::FMA, op::SQRT, op::FLUSH],
        &[(8, 8)],
    );
}

#[test]
fn arithmetic_on_f16() {
    sweep(
        &[op::ADD, op::MUL, op::DIV, op::FMA, op::SQRT, op::FLUSH],
        &[(2, 2)],
    );
}

/// What processors without conversions of binary16 do.
#[test]
fn halves_in_doubles_round_once() {
    let mut random = Rng::new(11);
    for _ in 0..cases() {
        let halves: [u16; 3] = std::array::from_fn(|_| random.float_bits(2) as u16);
        for code in [op::ADD, op::MUL, op::FMA] {
            let mut out = 0u16;
            let call = Call {
                op: code,
                source: 2,
                result: 2,
                env: Env::DEFAULT,
                lanes: 1,
                operands: halves.each_ref().map(|h| std::ptr::from_ref(h).cast()),
                out: (&raw mut out).cast(),
            };
            // SAFETY: one lane at each pointer.
            assert!(unsafe { by_doubles(&call) });
            let (got, expected) = (u64::from(out), soft::lane(&call, halves.map(u64::from)));
            let nan = is_nan(expected, 2) && is_nan(got, 2);
            assert!(
                nan || got == expected,
                "op {code} {halves:x?}: {got:#x}, {expected:#x}"
            );
        }
    }
}

#[test]
fn integers_to_floats() {
    let widths: Vec<(u32, u32)> = [1, 2, 4, 8]
        .into_iter()
        .flat_map(|s| [2, 4, 8].map(|r| (s, r)))
        .collect();
    sweep(&[op::SI_TO_F, op::UI_TO_F], &widths);
}

#[test]
fn floats_to_floats() {
    let widths: Vec<(u32, u32)> = [2, 4, 8]
        .into_iter()
        .flat_map(|s| [2, 4, 8].map(|r| (s, r)))
        .collect();
    sweep(&[op::F_TO_F], &widths);
}

/// The software path is only an oracle if it agrees with the host where that is known to be right.
#[test]
fn the_software_path_agrees_with_the_host_in_its_own_mode() {
    let mut random = Rng::new(7);
    let call = |code| Call {
        op: code,
        source: 8,
        result: 8,
        env: Env::DEFAULT,
        lanes: 1,
        operands: [std::ptr::null(); 3],
        out: std::ptr::null_mut(),
    };
    for _ in 0..cases() {
        let bits: [u64; 3] = std::array::from_fn(|_| random.float_bits(8));
        let [a, b, c] = bits.map(f64::from_bits);
        let host = [
            (op::ADD, a + b),
            (op::MUL, a * b),
            (op::DIV, a / b),
            (op::FMA, a.mul_add(b, c)),
            (op::SQRT, a.sqrt()),
        ];
        for (code, expected) in host {
            let got = f64::from_bits(soft::lane(&call(code), bits));
            let same = got.to_bits() == expected.to_bits() || got.is_nan() && expected.is_nan();
            assert!(same, "op {code} {bits:x?}: {got:e} {expected:e}");
        }
    }
}

#[test]
fn the_callers_environment_is_kept() {
    let third = || std::hint::black_box(1.0f32) / std::hint::black_box(3.0);
    let before = third().to_bits();
    let mut random = Rng::new(3);
    for code in op::ADD..=op::FLUSH {
        for width in [2, 4, 8] {
            check(&mut random, code, width, width, 0x30);
            assert_eq!(third().to_bits(), before);
        }
    }
}

#[test]
fn unknown_operations_write_nothing() {
    let operand = [0u64; 4];
    let operands = [operand.as_ptr().cast::<u8>(); 3];
    for packed in [
        9 | 4 << 8 | 4 << 16,
        4 << 8 | 8 << 16,
        3 << 8 | 3 << 16,
        0x04_01_00,
    ] {
        let mut out = [u64::MAX; 4];
        // SAFETY: operands and result have four elements of up to eight bytes.
        unsafe { (PORTABLE.fp_env)(packed, 0, 4, &raw const operands, out.as_mut_ptr().cast()) };
        assert_eq!(out, [u64::MAX; 4], "{packed:#x}");
    }
}

#[test]
fn float_atomics() {
    /// Applies an atomic to `old` at every alignment; returns what is stored then.
    fn apply(code: u32, bytes: u32, old: u64, operand: u64, compare: u64) -> u64 {
        let operands = match code {
            FCMP_XCHG => [compare, operand],
            _ => [operand, 0],
        };
        let mut stored = None;
        for offset in 0..8 {
            let mut memory = [0x55u8; 24];
            let n = bytes as usize;
            memory[offset..offset + n].copy_from_slice(&old.to_le_bytes()[..n]);
            let at = memory.as_mut_ptr().wrapping_add(offset);
            // SAFETY: `bytes` bytes of a local array.
            let was = unsafe { atomic::one(code, bytes, at, operands) };
            assert_eq!(was, old, "returns the old bits");
            let mut now = [0; 8];
            now[..n].copy_from_slice(&memory[offset..offset + n]);
            memory[offset..offset + n].fill(0x55);
            assert_eq!(memory, [0x55; 24], "touches nothing else");
            let now = u64::from_le_bytes(now);
            assert_eq!(*stored.get_or_insert(now), now);
        }
        stored.unwrap_or(0)
    }
    let single = |code, old: f32, operand: f32, compare: f32| {
        let [old, operand, compare] = [old, operand, compare].map(|x| x.to_bits().into());
        f32::from_bits(apply(code, 4, old, operand, compare) as u32)
    };
    assert_eq!(single(FADD, 1.5, 2.25, 0.0), 3.75);
    assert_eq!(single(FSUB, 1.5, 2.25, 0.0), -0.75);
    assert_eq!(single(FMIN, 1.5, -2.0, 0.0), -2.0);
    assert_eq!(single(FMAX, 1.5, -2.0, 0.0), 1.5);
    assert_eq!(single(FMIN, f32::NAN, -2.0, 0.0), -2.0);
    assert_eq!(single(FMAX, 4.0, f32::NAN, 0.0), 4.0);
    assert!(single(FMIN, 0.0, -0.0, 0.0).is_sign_negative());
    assert!(single(FMAX, -0.0, 0.0, 0.0).is_sign_positive());
    assert_eq!(single(FCMP_XCHG, 5.0, 9.0, 5.0), 9.0);
    assert_eq!(single(FCMP_XCHG, 5.0, 9.0, 6.0), 5.0);
    assert_eq!(single(FCMP_XCHG, -0.0, 9.0, 0.0), 9.0, "compares as floats");
    assert!(single(FCMP_XCHG, f32::NAN, 9.0, f32::NAN).is_nan());
    let double = |code, old: f64, operand: f64| {
        f64::from_bits(apply(code, 8, old.to_bits(), operand.to_bits(), 0))
    };
    assert_eq!(double(FADD, 1e300, 1e284), 1e300 + 1e284);
    assert_eq!(double(FSUB, 1.0, 0.25), 0.75);
    // Halves: 1.0 + 2^-11 is a tie that goes to even; 1.0 + 2^-10 is exact.
    assert_eq!(apply(FADD, 2, 0x3C00, 0x1000, 0), 0x3C00);
    assert_eq!(apply(FADD, 2, 0x3C00, 0x1400, 0), 0x3C01);
    assert_eq!(apply(FSUB, 2, 0x3C00, 0x3C00, 0), 0);
    assert_eq!(apply(FMIN, 2, 0xC000, 0x3C00, 0), 0xC000);
    assert_eq!(apply(FMAX, 2, 0xC000, 0x3C00, 0), 0x3C00);
    assert_eq!(apply(FMIN, 2, 0x0000, 0x8000, 0), 0x8000);
    assert_eq!(apply(FMAX, 2, 0x8000, 0x0000, 0), 0x0000);
    // Signalling NaNs keep their bits; of two NaNs it is the operand.
    for code in [FMIN, FMAX] {
        assert_eq!(apply(code, 2, 0x7E01, 0x7CFF, 0), 0x7CFF);
        assert_eq!(apply(code, 4, 0x7FC0_0001, 0x7F80_00FF, 0), 0x7F80_00FF);
        let signalling = 0x7FF0_0000_0000_00FF;
        assert_eq!(
            apply(code, 8, 0x7FF8_0000_0000_0001, signalling, 0),
            signalling
        );
        assert_eq!(apply(code, 2, 0x7CFF, 0x3C00, 0), 0x3C00);
        assert_eq!(apply(code, 2, 0x3C00, 0x7CFF, 0), 0x3C00);
    }
    assert_eq!(apply(FCMP_XCHG, 2, 0x3C00, 0x4000, 0x3C00), 0x4000);
}

#[test]
fn concurrent_float_adds_lose_nothing() {
    let word = std::sync::atomic::AtomicU32::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..10_000 {
                    // SAFETY: the word lives for the whole scope and is only used atomically.
                    unsafe {
                        atomic::one(FADD, 4, word.as_ptr().cast(), [1.0f32.to_bits().into(), 0])
                    };
                }
            });
        }
    });
    assert_eq!(f32::from_bits(word.into_inner()), 40_000.0);
}

#[test]
fn time_goes_on() {
    // SAFETY: no preconditions.
    let (a, b) = unsafe { ((PORTABLE.tsc)(), (PORTABLE.tsc)()) };
    assert!(b >= a);
}
