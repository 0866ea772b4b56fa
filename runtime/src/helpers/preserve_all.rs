//! Lane-wise accesses that keep every register on x86-64 with the System V convention.
//!
//! That convention lets a function change all vector registers, so that a call beside the usual path
//! makes the usual path save what it holds. These save it themselves.

#[cfg(all(target_arch = "x86_64", not(windows)))]
use std::mem::offset_of;

use super::message;
use crate::abi::GroupCtx;
#[cfg(all(target_arch = "x86_64", not(windows)))]
use crate::abi::ThreadCtx;

#[cfg(not(all(target_arch = "x86_64", not(windows))))]
pub(super) use message::{load, store};

#[cfg(all(target_arch = "x86_64", windows))]
pub(super) use super::message_x86::{load as wide_load, store as wide_store};

/// A function that calls another of the same type, keeps all registers, and leaves the result in the group. Upper halves of
/// vector registers are not kept: generated code has 128-bit vectors.
#[cfg(all(target_arch = "x86_64", not(windows)))]
macro_rules! preserve_all {
    ($name:ident($($argument:ident: $ty:ty),* $(,)?), $of:path) => {
        /// # Safety
        /// As the function that it calls, and the group must be writable.
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name(group: *mut GroupCtx, $($argument: $ty),*) -> u32 {
            std::arch::naked_asm!(
                "push rax",
                "push rcx",
                "push rdx",
                "push rsi",
                "push rdi",
                "push r8",
                "push r9",
                "push r10",
                "push r11",
                // With the return address ten words: the stack is aligned.
                "sub rsp, 256",
                "movaps [rsp], xmm0",
                "movaps [rsp + 16], xmm1",
                "movaps [rsp + 32], xmm2",
                "movaps [rsp + 48], xmm3",
                "movaps [rsp + 64], xmm4",
                "movaps [rsp + 80], xmm5",
                "movaps [rsp + 96], xmm6",
                "movaps [rsp + 112], xmm7",
                "movaps [rsp + 128], xmm8",
                "movaps [rsp + 144], xmm9",
                "movaps [rsp + 160], xmm10",
                "movaps [rsp + 176], xmm11",
                "movaps [rsp + 192], xmm12",
                "movaps [rsp + 208], xmm13",
                "movaps [rsp + 224], xmm14",
                "movaps [rsp + 240], xmm15",
                "call {f}",
                // The group, as it was pushed.
                "mov rdi, [rsp + 288]",
                "mov [rdi + {answer}], eax",
                "movaps xmm0, [rsp]",
                "movaps xmm1, [rsp + 16]",
                "movaps xmm2, [rsp + 32]",
                "movaps xmm3, [rsp + 48]",
                "movaps xmm4, [rsp + 64]",
                "movaps xmm5, [rsp + 80]",
                "movaps xmm6, [rsp + 96]",
                "movaps xmm7, [rsp + 112]",
                "movaps xmm8, [rsp + 128]",
                "movaps xmm9, [rsp + 144]",
                "movaps xmm10, [rsp + 160]",
                "movaps xmm11, [rsp + 176]",
                "movaps xmm12, [rsp + 192]",
                "movaps xmm13, [rsp + 208]",
                "movaps xmm14, [rsp + 224]",
                "movaps xmm15, [rsp + 240]",
                "add rsp, 256",
                "pop r11",
                "pop r10",
                "pop r9",
                "pop r8",
                "pop rdi",
                "pop rsi",
                "pop rdx",
                "pop rcx",
                "pop rax",
                "ret",
                f = sym $of,
                answer = const offset_of!(GroupCtx, answer),
            )
        }
    };
}
#[cfg(all(target_arch = "x86_64", not(windows)))]
macro_rules! preserve_all_message {
    ($name:ident, $of:path) => {
        preserve_all!($name(thread: *const ThreadCtx, shape: u32, index: u32, enabled: u32, block: *mut u8), $of);
    };
}
#[cfg(all(target_arch = "x86_64", not(windows)))]
preserve_all_message!(load, message::load);
#[cfg(all(target_arch = "x86_64", not(windows)))]
preserve_all_message!(store, message::store);
#[cfg(all(target_arch = "x86_64", not(windows)))]
preserve_all_message!(wide_load, super::message_x86::load);
#[cfg(all(target_arch = "x86_64", not(windows)))]
preserve_all_message!(wide_store, super::message_x86::store);
#[cfg(all(target_arch = "x86_64", not(windows)))]
preserve_all!(
    fault(thread: u32, site: u32, lanes: u32, addresses: *const u64, surface: u32),
    fault_of_table
);

#[cfg(all(target_arch = "x86_64", not(windows)))]
preserve_all!(
    check(thread: u32, site: u32, shape: u32, lanes: u32, addresses: *const u64),
    super::check::check
);

#[cfg(not(all(target_arch = "x86_64", not(windows))))]
pub(super) use {super::check::check, fault_of_table as fault};

/// [`crate::abi::Helpers::store_enabled`].
///
/// # Safety
/// The processor must have AVX-512VL; the dwords whose bits are set must be writable.
#[cfg(all(target_arch = "x86_64", not(windows)))]
#[unsafe(naked)]
pub(super) unsafe extern "C" fn store_enabled(to: *mut u8, bits: u32) {
    std::arch::naked_asm!(
        "kmovw k1, esi",
        "kshiftrw k2, k1, 4",
        "kshiftrw k3, k1, 8",
        "kshiftrw k4, k1, 12",
        "vmovups [rdi] {{k1}}, xmm0",
        "vmovups [rdi + 16] {{k2}}, xmm1",
        "vmovups [rdi + 32] {{k3}}, xmm2",
        "vmovups [rdi + 48] {{k4}}, xmm3",
        "ret",
    )
}

/// [`crate::abi::Helpers::store_enabled`] where no code calls it.
#[cfg(not(all(target_arch = "x86_64", not(windows))))]
pub(super) unsafe extern "C" fn store_enabled(_: *mut u8, _: u32) {
    std::process::abort();
}

/// The launch's [`crate::abi::Helpers::fault`].
///
/// # Safety
/// As that function.
pub(super) unsafe extern "C" fn fault_of_table(
    group: *mut GroupCtx,
    thread: u32,
    site: u32,
    lanes: u32,
    addresses: *const u64,
    surface: u32,
) -> u32 {
    // SAFETY: by the caller's promise the group is one that runs, whose launch and table live as long, and the arguments are
    // those of the function in it.
    unsafe {
        let fault = (*(*(*group).launch).helpers).fault;
        fault(group, thread, site, lanes, addresses, surface)
    }
}
