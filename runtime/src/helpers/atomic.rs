//! Lane-wise atomics. What no processor has is a compare-and-swap loop.

use super::fp_env::{Call, Env};
use super::message::MessageCall;
use super::soft;
use crate::abi::{GroupCtx, ThreadCtx, atomic as code, fp_env as op, message};
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// [`crate::abi::Helpers::atomic`].
///
/// # Safety
/// The arguments must be as [`crate::abi::Message`] says, from the group that runs.
pub(crate) unsafe extern "C" fn atomic(
    group: *mut GroupCtx,
    thread: *const ThreadCtx,
    shape: u32,
    index: u32,
    enabled: u32,
    block: *mut u8,
) -> u32 {
    // SAFETY: as promised.
    let a = unsafe { MessageCall::new(group, thread, shape, index, enabled, block) };
    let bytes = 1 << a.bytes_log2;
    let limit = a.limit(bytes);
    // SAFETY: the lane exists.
    let offset = |lane| unsafe { a.any_offset(lane) } & !(bytes - 1);
    let faulting = (0..a.count).fold(0, |bits, lane| {
        bits | (u32::from(offset(lane) >= limit) << lane & enabled)
    });
    if a.all_or_none && faulting != 0 {
        return faulting;
    }
    let op = shape >> message::ATOMIC_SHIFT;
    let lanes = enabled & !faulting;
    // Threads of a group take turns, so only they see these.
    let own = matches!(
        shape >> 2 & 7,
        message::SLM | message::SCRATCH | message::REGS
    );
    // What generated code does not do itself has loops of its own, in which operation and size are constants.
    macro_rules! constant {
        ($($op:ident)*) => {
            // SAFETY: the elements of these lanes are inside; the block has as many operands as the operation has.
            unsafe {
                match (op, a.bytes_log2, own) {
                    $(
                        (code::$op, 2, true) => each::<true>(&a, lanes, (code::$op, 2)),
                        (code::$op, 2, false) => each::<false>(&a, lanes, (code::$op, 2)),
                        (code::$op, 3, true) => each::<true>(&a, lanes, (code::$op, 3)),
                        (code::$op, 3, false) => each::<false>(&a, lanes, (code::$op, 3)),
                    )*
                    _ if own => any::<true>(&a, lanes, (op, a.bytes_log2)),
                    _ => any::<false>(&a, lanes, (op, a.bytes_log2)),
                }
            }
        };
    }
    constant!(FADD FSUB FMIN FMAX FCMP_XCHG LOAD);
    faulting
}

/// [`each`] for operations that are not known while this is compiled.
///
/// # Safety
/// The same.
#[inline(never)]
unsafe fn any<const OWN: bool>(a: &MessageCall, lanes: u32, operation: (u32, u32)) {
    // SAFETY: as promised.
    unsafe { each::<OWN>(a, lanes, operation) }
}

/// Does the operation, of elements with a given number of bytes (a logarithm), for each lane of which the bit is set; others get zero.
///
/// # Safety
/// The elements must be inside. Where `OWN` is set, nothing else may reach them meanwhile. The block must have the operands.
#[inline(always)]
unsafe fn each<const OWN: bool>(a: &MessageCall, lanes: u32, (op, bytes_log2): (u32, u32)) {
    let bytes = 1usize << bytes_log2;
    let row = a.row(bytes);
    for lane in 0..a.count {
        let at = a.data.wrapping_add(lane * bytes);
        let mut old = 0;
        if lanes >> lane & 1 != 0 {
            // SAFETY: as promised.
            old = unsafe {
                let operands = match op {
                    code::INC | code::DEC | code::PRE_DEC | code::LOAD => [0; 2],
                    code::CMP_XCHG | code::FCMP_XCHG => {
                        [at, at.wrapping_add(row)].map(|p| element(bytes_log2, p))
                    }
                    _ => [element(bytes_log2, at), 0],
                };
                let offset = a.any_offset(lane) & !(bytes as u64 - 1);
                let address = a.region.base.add(offset as usize);
                match OWN {
                    true => own(op, bytes_log2, address, operands),
                    false => one(op, bytes as u32, address, operands),
                }
            };
        }
        // SAFETY: the block has room for a result.
        unsafe { put(bytes_log2, at, old) }
    }
}

/// [`one`] where nothing else can see the element.
///
/// # Safety
/// The same, and nothing else may access the element meanwhile.
#[inline(always)]
unsafe fn own(op: u32, bytes_log2: u32, address: *mut u8, operands: [u64; 2]) -> u64 {
    // SAFETY: as promised.
    unsafe {
        let old = element(bytes_log2, address);
        let new = changed(op, 1 << bytes_log2, old, operands);
        if op != code::LOAD {
            put(bytes_log2, address, new);
        }
        match op {
            code::PRE_DEC => old.wrapping_sub(1),
            _ => old,
        }
    }
}

/// Writes an element.
///
/// # Safety
/// It must be writable.
#[inline(always)]
unsafe fn put(bytes_log2: u32, at: *mut u8, v: u64) {
    // SAFETY: as promised.
    unsafe {
        match bytes_log2 {
            1 => at.cast::<u16>().write_unaligned(v as u16),
            2 => at.cast::<u32>().write_unaligned(v as u32),
            _ => at.cast::<u64>().write_unaligned(v),
        }
    }
}

/// An element of a block.
///
/// # Safety
/// It must be readable.
#[inline(always)]
unsafe fn element(bytes_log2: u32, at: *const u8) -> u64 {
    // SAFETY: as promised.
    unsafe {
        match bytes_log2 {
            1 => at.cast::<u16>().read_unaligned().into(),
            2 => at.cast::<u32>().read_unaligned().into(),
            _ => at.cast::<u64>().read_unaligned(),
        }
    }
}

/// One atomic: returns the old bits, after [`code::PRE_DEC`] the new, and zeros above the element.
///
/// A float minimum or maximum with one NaN is the other operand, of zeros the negative is the
/// smaller; compare-exchange compares as floats. Denormals are kept, sums round to nearest-even.
///
/// # Safety
/// `address` must be readable and writable for `bytes` (2, 4 or 8) bytes; any alignment works, but
/// off x86-64 an unaligned element is atomic among atomics of this file only.
#[inline(always)]
pub(super) unsafe fn one(op: u32, bytes: u32, address: *mut u8, [a, b]: [u64; 2]) -> u64 {
    let summand = match op {
        code::ADD => Some(a),
        code::SUB => Some(a.wrapping_neg()),
        code::INC => Some(1),
        code::DEC | code::PRE_DEC => Some(u64::MAX),
        _ => None,
    };
    // SAFETY: as promised.
    unsafe {
        if op == code::LOAD {
            return load(bytes, address);
        }
        let old = match summand.and_then(|v| add(bytes, address, v)) {
            Some(old) => old,
            None => update(bytes, address, |old| changed(op, bytes, old, [a, b])),
        };
        match op {
            code::PRE_DEC => old.wrapping_sub(1) & u64::MAX >> (64 - 8 * bytes),
            _ => old,
        }
    }
}

/// Adds in one instruction, where the element is aligned; returns the old bits.
///
/// # Safety
/// As [`one`].
unsafe fn add(bytes: u32, address: *mut u8, v: u64) -> Option<u64> {
    macro_rules! aligned {
        ($atomic:ty, $bits:ty) => {
            // SAFETY: accessible by the caller's promise, alignment checked.
            unsafe { <$atomic>::from_ptr(address.cast()) }
                .fetch_add(v as $bits, Ordering::SeqCst)
                .into()
        };
    }
    match bytes {
        2 if address.cast::<u16>().is_aligned() => Some(aligned!(AtomicU16, u16)),
        4 if address.cast::<u32>().is_aligned() => Some(aligned!(AtomicU32, u32)),
        8 if address.cast::<u64>().is_aligned() => Some(aligned!(AtomicU64, u64)),
        _ => None,
    }
}

/// Replaces an element by what `new` makes of it; returns the old bits.
///
/// # Safety
/// As [`one`].
#[inline(always)]
unsafe fn update(bytes: u32, address: *mut u8, new: impl Fn(u64) -> u64) -> u64 {
    // SAFETY: as promised.
    let mut old = unsafe { load(bytes, address) };
    loop {
        // SAFETY: as promised.
        match unsafe { swap(bytes, address, old, new(old)) } {
            Ok(()) => return old,
            Err(seen) => old = seen,
        }
    }
}

/// What an operation makes of an element; bits beyond the element do not count.
#[inline(always)]
fn changed(op: u32, bytes: u32, old: u64, [a, b]: [u64; 2]) -> u64 {
    let signed = |v: u64| super::fp_env::sign_extend(v, bytes);
    match op {
        code::ADD => old.wrapping_add(a),
        code::SUB => old.wrapping_sub(a),
        code::INC => old.wrapping_add(1),
        code::DEC | code::PRE_DEC => old.wrapping_sub(1),
        code::UMIN => old.min(a),
        code::UMAX => old.max(a),
        code::SMIN if signed(a) < signed(old) => a,
        code::SMAX if signed(a) > signed(old) => a,
        code::XCHG => a,
        code::CMP_XCHG if old == a => b,
        code::AND => old & a,
        code::OR => old | a,
        code::XOR => old ^ a,
        code::FMAX..=code::FSUB => {
            let (operand, compare) = match op {
                code::FCMP_XCHG => (b, a),
                _ => (a, 0),
            };
            match bytes {
                2 => half(op, old, operand, compare),
                4 => single(op, old, operand, compare),
                _ => double(op, old, operand, compare),
            }
        }
        _ => old,
    }
}

macro_rules! native {
    ($name:ident, $float:ty, $bits:ty) => {
        #[inline(always)]
        fn $name(op: u32, old: u64, operand: u64, compare: u64) -> u64 {
            let [a, b, c] = [old, operand, compare].map(|x| <$float>::from_bits(x as $bits));
            let result = match op {
                code::FADD => a + b,
                code::FSUB => a - b,
                code::FMIN | code::FMAX if a.is_nan() => b,
                code::FMIN | code::FMAX if b.is_nan() => a,
                code::FMIN if a == b => <$float>::from_bits(a.to_bits() | b.to_bits()),
                code::FMAX if a == b => <$float>::from_bits(a.to_bits() & b.to_bits()),
                code::FMIN => {
                    if a < b {
                        a
                    } else {
                        b
                    }
                }
                code::FMAX => {
                    if a > b {
                        a
                    } else {
                        b
                    }
                }
                code::FCMP_XCHG if a == c => b,
                _ => a,
            };
            result.to_bits().into()
        }
    };
}
native!(single, f32, u32);
native!(double, f64, u64);

/// Binary16: compared by way of `f32`, which holds every value; sums are rounded once. A minimum or maximum is one of the two
/// elements as it is, as a NaN does not keep its bits on the way to `f32` and back.
fn half(what: u32, old: u64, operand: u64, compare: u64) -> u64 {
    let wide = |bits: u64| f64::from_bits(super::half::widen(bits as u16)) as f32;
    let (a, b) = (wide(old), wide(operand));
    match what {
        code::FADD | code::FSUB => {
            let call = Call {
                op: op::ADD,
                source: 2,
                result: 2,
                env: Env::DEFAULT,
                lanes: 1,
                operands: [null(); 3],
                out: null_mut(),
            };
            let sign = if what == code::FSUB { 1 << 15 } else { 0 };
            soft::lane(&call, [old & 0xFFFF, (operand ^ sign) & 0xFFFF, 0])
        }
        code::FMIN | code::FMAX if a.is_nan() => operand,
        code::FMIN | code::FMAX if b.is_nan() => old,
        code::FMIN if a == b => old | operand,
        code::FMAX if a == b => old & operand,
        code::FMIN if b < a => operand,
        code::FMAX if b > a => operand,
        code::FCMP_XCHG if a == wide(compare) => operand,
        _ => old,
    }
}

/// # Safety
/// `address` must be readable for `bytes` bytes.
#[inline(always)]
unsafe fn load(bytes: u32, address: *mut u8) -> u64 {
    // A compare-and-swap corrects a torn value, so an unaligned plain read will do.
    // SAFETY: as promised; alignment is checked.
    unsafe {
        match bytes {
            2 if address.cast::<u16>().is_aligned() => AtomicU16::from_ptr(address.cast())
                .load(Ordering::Relaxed)
                .into(),
            4 if address.cast::<u32>().is_aligned() => AtomicU32::from_ptr(address.cast())
                .load(Ordering::Relaxed)
                .into(),
            8 if address.cast::<u64>().is_aligned() => {
                AtomicU64::from_ptr(address.cast()).load(Ordering::Relaxed)
            }
            2 => address.cast::<u16>().read_volatile_unaligned(),
            4 => address.cast::<u32>().read_volatile_unaligned(),
            _ => address.cast::<u64>().read_volatile_unaligned(),
        }
    }
}

/// Unaligned reads that the compiler may not merge or repeat.
trait Unaligned {
    /// # Safety
    /// The element must be readable.
    unsafe fn read_volatile_unaligned(self) -> u64;
}

macro_rules! unaligned {
    ($($t:ty)*) => { $(
        impl Unaligned for *mut $t {
            unsafe fn read_volatile_unaligned(self) -> u64 {
                let bytes = self.cast::<[u8; size_of::<$t>()]>();
                // SAFETY: readable by the caller's promise; an array of bytes has no alignment.
                <$t>::from_le_bytes(unsafe { bytes.read_volatile() }).into()
            }
        }
    )* };
}
unaligned!(u16 u32 u64);

/// Stores `new` if `old` is there; else returns what is.
///
/// # Safety
/// As [`one`].
pub(crate) unsafe fn swap(bytes: u32, address: *mut u8, old: u64, new: u64) -> Result<(), u64> {
    macro_rules! aligned {
        ($atomic:ty, $bits:ty) => {
            // SAFETY: accessible by the caller's promise, alignment checked.
            unsafe { <$atomic>::from_ptr(address.cast()) }
                .compare_exchange_weak(
                    old as $bits,
                    new as $bits,
                    Ordering::SeqCst,
                    Ordering::Relaxed,
                )
                .map(|_| ())
                .map_err(u64::from)
        };
    }
    match bytes {
        2 if address.cast::<u16>().is_aligned() => aligned!(AtomicU16, u16),
        4 if address.cast::<u32>().is_aligned() => aligned!(AtomicU32, u32),
        8 if address.cast::<u64>().is_aligned() => aligned!(AtomicU64, u64),
        // SAFETY: as promised.
        _ => unsafe { swap_unaligned(bytes, address, old, new) },
    }
}

/// # Safety
/// As [`one`].
#[cfg(target_arch = "x86_64")]
unsafe fn swap_unaligned(bytes: u32, address: *mut u8, old: u64, new: u64) -> Result<(), u64> {
    use std::arch::asm;
    let mut seen = old;
    // SAFETY: accessible by the caller's promise; the locked instruction takes any alignment.
    unsafe {
        match bytes {
            2 => {
                asm!("lock cmpxchg word ptr [{p}], {n:x}", p = in(reg) address, n = in(reg) new, inout("rax") seen)
            }
            4 => {
                asm!("lock cmpxchg dword ptr [{p}], {n:e}", p = in(reg) address, n = in(reg) new, inout("rax") seen)
            }
            _ => {
                asm!("lock cmpxchg qword ptr [{p}], {n}", p = in(reg) address, n = in(reg) new, inout("rax") seen)
            }
        }
    }
    if seen == old { Ok(()) } else { Err(seen) }
}

/// # Safety
/// As [`one`].
#[cfg(not(target_arch = "x86_64"))]
unsafe fn swap_unaligned(bytes: u32, address: *mut u8, old: u64, new: u64) -> Result<(), u64> {
    use std::sync::{Mutex, PoisonError};
    static LOCK: Mutex<()> = Mutex::new(());
    let _guard = LOCK.lock().unwrap_or_else(PoisonError::into_inner);
    // SAFETY: accessible by the caller's promise; bytes have no alignment.
    unsafe {
        let seen = load(bytes, address);
        if seen != old {
            return Err(seen);
        }
        address.copy_from_nonoverlapping(new.to_le_bytes().as_ptr(), bytes as usize);
    }
    Ok(())
}
