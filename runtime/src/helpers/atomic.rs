//! Float atomics: a compare-and-swap loop, as no processor has them all.

use super::fp_env::{Call, Env};
use super::soft;
use crate::abi::fp_env as op;
use std::ptr::{null, null_mut};
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

/// Codes of [`crate::abi::Helpers::float_atomic`].
const ADD: u32 = 0;
const SUB: u32 = 1;
const MIN: u32 = 2;
const MAX: u32 = 3;
const CMPXCHG: u32 = 4;

/// [`crate::abi::Helpers::float_atomic`]: returns the old bits. A minimum or maximum with one NaN
/// is the other operand, of zeros the negative is the smaller; compare-exchange compares as
/// floats. Denormals are kept, sums round to nearest-even.
///
/// # Safety
/// `address` must be readable and writable for `bytes` (2, 4 or 8) bytes; any alignment works, but
/// off x86-64 an unaligned element is atomic among float atomics only.
pub(crate) unsafe extern "C" fn float_atomic(
    code: u32,
    bytes: u32,
    address: *mut u8,
    operand: u64,
    compare: u64,
) -> u64 {
    // SAFETY: as promised.
    let mut old = unsafe { load(bytes, address) };
    loop {
        let new = match bytes {
            2 => half(code, old, operand, compare),
            4 => single(code, old, operand, compare),
            _ => double(code, old, operand, compare),
        };
        // SAFETY: as promised.
        match unsafe { swap(bytes, address, old, new) } {
            Ok(()) => return old,
            Err(seen) => old = seen,
        }
    }
}

macro_rules! native {
    ($name:ident, $float:ty, $bits:ty) => {
        fn $name(code: u32, old: u64, operand: u64, compare: u64) -> u64 {
            let [a, b, c] = [old, operand, compare].map(|x| <$float>::from_bits(x as $bits));
            let result = match code {
                ADD => a + b,
                SUB => a - b,
                MIN | MAX if a.is_nan() => b,
                MIN | MAX if b.is_nan() => a,
                MIN if a == b => <$float>::from_bits(a.to_bits() | b.to_bits()),
                MAX if a == b => <$float>::from_bits(a.to_bits() & b.to_bits()),
                MIN => {
                    if a < b {
                        a
                    } else {
                        b
                    }
                }
                MAX => {
                    if a > b {
                        a
                    } else {
                        b
                    }
                }
                CMPXCHG if a == c => b,
                _ => a,
            };
            result.to_bits().into()
        }
    };
}
native!(single, f32, u32);
native!(double, f64, u64);

/// Binary16 by way of `f32`, except for sums, which are rounded once.
fn half(code: u32, old: u64, operand: u64, compare: u64) -> u64 {
    let wide = |bits: u64| {
        let value = f64::from_bits(super::half::widen(bits as u16)) as f32;
        u64::from(value.to_bits())
    };
    let chosen = |result: u64| {
        let result = f32::from_bits(result as u32);
        let narrow = super::half::narrow(f64::from(result).to_bits(), Env::DEFAULT.round);
        u64::from(narrow)
    };
    match code {
        ADD | SUB => {
            let call = Call {
                op: op::ADD,
                source: 2,
                result: 2,
                env: Env::DEFAULT,
                lanes: 1,
                operands: [null(); 3],
                out: null_mut(),
            };
            let sign = if code == SUB { 1 << 15 } else { 0 };
            soft::lane(&call, [old & 0xFFFF, (operand ^ sign) & 0xFFFF, 0])
        }
        MIN | MAX => chosen(single(code, wide(old), wide(operand), 0)),
        CMPXCHG if f32::from_bits(wide(old) as u32) == f32::from_bits(wide(compare) as u32) => {
            operand
        }
        _ => old,
    }
}

/// # Safety
/// `address` must be readable for `bytes` bytes.
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
/// As [`float_atomic`].
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
/// As [`float_atomic`].
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
/// As [`float_atomic`].
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
