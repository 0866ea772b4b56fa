//! Loads and stores of single elements that other threads may access at the same time.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

macro_rules! access {
    ($($bytes:literal $int:ty, $atomic:ty;)*) => {
        /// # Safety
        /// `at` must be readable for `bytes` (1, 2, 4 or 8) bytes.
        pub(crate) unsafe fn load(at: *mut u8, bytes: u32) -> u64 {
            // SAFETY: as promised. Aligned elements are read atomically, as other threads may write them; of others
            // each byte is some byte that was there.
            unsafe {
                match bytes {
                    $($bytes if at.cast::<$int>().is_aligned() => {
                        <$atomic>::from_ptr(at.cast()).load(Ordering::Relaxed) as u64
                    })*
                    n => (0..n as usize).fold(0, |bits, i| {
                        let byte = AtomicU8::from_ptr(at.add(i)).load(Ordering::Relaxed);
                        bits | u64::from(byte) << (8 * i)
                    }),
                }
            }
        }

        /// # Safety
        /// `at` must be writable for `bytes` (1, 2, 4 or 8) bytes.
        pub(crate) unsafe fn store(at: *mut u8, bytes: u32, bits: u64) {
            // SAFETY: as promised and above.
            unsafe {
                match bytes {
                    $($bytes if at.cast::<$int>().is_aligned() => {
                        <$atomic>::from_ptr(at.cast()).store(bits as $int, Ordering::Relaxed)
                    })*
                    n => (0..n as usize).for_each(|i| {
                        AtomicU8::from_ptr(at.add(i)).store((bits >> (8 * i)) as u8, Ordering::Relaxed)
                    }),
                }
            }
        }
    };
}
access! {
    1 u8, AtomicU8;
    2 u16, AtomicU16;
    4 u32, AtomicU32;
    8 u64, AtomicU64;
}
