//! Float operations under a control register that is known at run time only.
//!
//! Meaning, for every operation and width: denormal operands become zero of their sign unless the
//! control register keeps them; the exact result is rounded once in the register's mode; a
//! denormal result becomes zero of its sign unless kept. NaN results are some quiet NaN.

use super::{half, soft};
use crate::abi::fp_env as op;

/// Rounding mode, bits 5:4 of the control register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Round {
    /// To nearest, ties to even.
    Nearest,
    /// Toward plus infinity.
    Up,
    /// Toward minus infinity.
    Down,
    /// Toward zero.
    Zero,
}

/// The part of the control register that matters here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Env {
    /// Rounding mode.
    pub round: Round,
    cr0: u32,
}

impl Env {
    /// Nearest-even with all denormals kept.
    pub(super) const DEFAULT: Env = Env::new(0x4C0);

    /// Reads a control register.
    pub(super) const fn new(cr0: u32) -> Env {
        let round = match cr0 >> 4 & 3 {
            0 => Round::Nearest,
            1 => Round::Up,
            2 => Round::Down,
            _ => Round::Zero,
        };
        Env { round, cr0 }
    }

    /// True when denormals of this width (in bytes) are kept.
    pub(super) const fn keeps(self, bytes: u32) -> bool {
        let bit = match bytes {
            2 => 10,
            4 => 7,
            _ => 6,
        };
        self.cr0 >> bit & 1 != 0
    }

    /// `bits` of a float of this width, a denormal replaced by zero of its sign unless kept.
    pub(super) const fn flush(self, bytes: u32, bits: u64) -> u64 {
        if self.keeps(bytes) {
            return bits;
        }
        let (sign, exponent) = match bytes {
            2 => (1 << 15, 0x1F << 10),
            4 => (1 << 31, 0xFF << 23),
            _ => (1 << 63, 0x7FF << 52),
        };
        if bits & exponent == 0 {
            bits & sign
        } else {
            bits
        }
    }
}

/// An operation on lanes: what to do, on which element widths, where.
#[derive(Clone, Copy, Debug)]
pub(super) struct Call {
    /// Code of [`crate::abi::fp_env`].
    pub op: u32,
    /// Bytes of a source element.
    pub source: u32,
    /// Bytes of a result element.
    pub result: u32,
    /// Control register.
    pub env: Env,
    /// Lanes.
    pub lanes: usize,
    /// Operands; those that the operation does not have repeat the first.
    pub operands: [*const u8; 3],
    /// Result.
    pub out: *mut u8,
}

impl Call {
    /// Bits of element `lane` of operand `n`, zero-extended.
    ///
    /// # Safety
    /// The operand must have that element.
    pub(super) unsafe fn load(&self, n: usize, lane: usize) -> u64 {
        let at = self.operands[n].wrapping_add(lane * self.source as usize);
        // SAFETY: in range by the caller's promise.
        unsafe {
            match self.source {
                1 => u64::from(at.read()),
                2 => u64::from(at.cast::<u16>().read_unaligned()),
                4 => u64::from(at.cast::<u32>().read_unaligned()),
                _ => at.cast::<u64>().read_unaligned(),
            }
        }
    }

    /// Stores the bits of element `lane` of the result.
    ///
    /// # Safety
    /// The result must have that element.
    pub(super) unsafe fn store(&self, lane: usize, bits: u64) {
        let at = self.out.wrapping_add(lane * self.result as usize);
        // SAFETY: in range by the caller's promise.
        unsafe {
            match self.result {
                2 => at.cast::<u16>().write_unaligned(bits as u16),
                4 => at.cast::<u32>().write_unaligned(bits as u32),
                _ => at.cast::<u64>().write_unaligned(bits),
            }
        }
    }

    /// Computes the result lane by lane from the bits of the operands.
    ///
    /// # Safety
    /// Operands and result must have `lanes` elements.
    pub(super) unsafe fn each(&self, f: impl Fn([u64; 3]) -> u64) {
        for lane in 0..self.lanes {
            // SAFETY: in range by the caller's promise.
            unsafe {
                let sources = [self.load(0, lane), self.load(1, lane), self.load(2, lane)];
                self.store(lane, f(sources));
            }
        }
    }

    fn is_valid(&self) -> bool {
        let float = |bytes| matches!(bytes, 2 | 4 | 8);
        match self.op {
            op::ADD..=op::SQRT | op::FLUSH => float(self.source) && self.source == self.result,
            op::SI_TO_F | op::UI_TO_F => {
                (self.source == 1 || float(self.source)) && float(self.result)
            }
            op::F_TO_F => float(self.source) && float(self.result),
            _ => false,
        }
    }
}

/// [`crate::abi::Helpers::fp_env`]. Unknown operations and widths do nothing.
///
/// # Safety
/// The operands that the operation has must be readable, and `result` writable, for `lanes`
/// elements of their widths.
pub(crate) unsafe extern "C" fn fp_env(
    packed: u32,
    cr0: u32,
    lanes: u32,
    operands: *const [*const u8; 3],
    result: *mut u8,
) {
    let op = packed & 0xFF;
    // SAFETY: three pointers by the caller's promise; those beyond the arity are not used.
    let [a, b, c] = unsafe { *operands };
    let call = Call {
        op,
        source: packed >> 8 & 0xFF,
        result: packed >> 16 & 0xFF,
        env: Env::new(cr0),
        lanes: lanes as usize,
        operands: match op {
            op::FMA => [a, b, c],
            op::ADD | op::MUL | op::DIV => [a, b, a],
            _ => [a; 3],
        },
        out: result,
    };
    if !call.is_valid() {
        return;
    }
    // SAFETY: as promised, with repeated operands in place of missing ones.
    unsafe {
        if !by_integers(&call) && !by_processor(&call) && !by_doubles(&call) {
            call.each(|sources| soft::lane(&call, sources));
        }
    }
}

/// Operations that integer code does as fast as any; false for the others.
///
/// # Safety
/// As [`Call::each`].
unsafe fn by_integers(call: &Call) -> bool {
    let Call {
        env,
        source,
        result,
        ..
    } = *call;
    // SAFETY: as promised.
    unsafe {
        match (call.op, source, result) {
            (op::FLUSH, ..) => call.each(|[a, ..]| env.flush(source, a)),
            (op::F_TO_F, s, r) if s == r => call.each(|[a, ..]| env.flush(s, a)),
            // What exceeds 2^17 overflows like 2^17 does, so the detour over `f64` is exact.
            (op::SI_TO_F, _, 2) => call.each(|[a, ..]| {
                let small = sign_extend(a, source).clamp(-(1 << 20), 1 << 20);
                half::narrow((small as f64).to_bits(), env.round).into()
            }),
            (op::UI_TO_F, _, 2) => call
                .each(|[a, ..]| half::narrow((a.min(1 << 20) as f64).to_bits(), env.round).into()),
            (op::F_TO_F, 4, 2) => call.each(|[a, ..]| {
                let wide = f64::from(f32::from_bits(env.flush(4, a) as u32));
                let narrow = half::narrow(wide.to_bits(), env.round);
                env.flush(2, narrow.into())
            }),
            (op::F_TO_F, 8, 2) => call.each(|[a, ..]| {
                let narrow = half::narrow(env.flush(8, a), env.round);
                env.flush(2, narrow.into())
            }),
            (op::F_TO_F, 2, 4) => call.each(|[a, ..]| {
                let wide = f64::from_bits(half::widen(env.flush(2, a) as u16));
                u64::from((wide as f32).to_bits())
            }),
            (op::F_TO_F, 2, _) => call.each(|[a, ..]| half::widen(env.flush(2, a) as u16)),
            _ => return false,
        }
    }
    true
}

/// Sums and products of binary16 to nearest; false for other operations.
///
/// One rounding is enough after `f64`. A fused product that is not exact there has an addend more than 2^29 times as large as the
/// product, which is a binary16 number itself, so the sum is far from every tie; or the product is above 2^28, and the result infinite.
///
/// # Safety
/// As [`Call::each`].
pub(super) unsafe fn by_doubles(call: &Call) -> bool {
    if call.source != 2 || call.env.round != Round::Nearest || !call.env.keeps(2) {
        return false;
    }
    let wide = |bits| f64::from_bits(half::widen(bits as u16));
    let narrow = |sum: f64| u64::from(half::narrow(sum.to_bits(), Round::Nearest));
    // SAFETY: as promised.
    unsafe {
        match call.op {
            op::ADD => call.each(|[a, b, _]| narrow(wide(a) + wide(b))),
            op::MUL => call.each(|[a, b, _]| narrow(wide(a) * wide(b))),
            op::FMA => call.each(|[a, b, c]| narrow(wide(a) * wide(b) + wide(c))),
            _ => return false,
        }
    }
    true
}

/// Value of an integer of `bytes` bytes.
pub(super) fn sign_extend(bits: u64, bytes: u32) -> i64 {
    let unused = 64 - 8 * bytes;
    ((bits << unused) as i64) >> unused
}

/// Operations that the processor does in its own rounding modes; false for the others.
///
/// # Safety
/// As [`Call::each`].
#[cfg(target_arch = "x86_64")]
unsafe fn by_processor(call: &Call) -> bool {
    // SAFETY: as promised.
    unsafe { super::x86::run(call) }
}

/// # Safety
/// None needed.
#[cfg(not(target_arch = "x86_64"))]
unsafe fn by_processor(_: &Call) -> bool {
    false
}
