//! Lane-wise accesses that keep every register on x86-64 with the System V convention.
//!
//! That convention lets a function change all vector registers, so that a call beside the usual path
//! makes the usual path save what it holds. These save it themselves.

use super::message;
#[cfg(all(target_arch = "x86_64", not(windows)))]
use crate::abi::{GroupCtx, ThreadCtx};

#[cfg(not(all(target_arch = "x86_64", not(windows))))]
pub(super) use message::{load, store};

#[cfg(all(target_arch = "x86_64", windows))]
pub(super) use super::message_x86::{load as wide_load, store as wide_store};

/// A function that calls another of the same type and keeps all registers. Upper halves of
/// vector registers are not kept: generated code has 128-bit vectors.
#[cfg(all(target_arch = "x86_64", not(windows)))]
macro_rules! quiet {
    ($name:ident, $of:path) => {
        /// # Safety
        /// As the function that it calls; the result is lost.
        #[unsafe(naked)]
        pub(super) unsafe extern "C" fn $name(
            group: *const GroupCtx,
            thread: *const ThreadCtx,
            shape: u32,
            index: u32,
            enabled: u32,
            block: *mut u8,
        ) -> u32 {
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
            )
        }
    };
}
#[cfg(all(target_arch = "x86_64", not(windows)))]
quiet!(load, message::load);
#[cfg(all(target_arch = "x86_64", not(windows)))]
quiet!(store, message::store);
#[cfg(all(target_arch = "x86_64", not(windows)))]
quiet!(wide_load, super::message_x86::load);
#[cfg(all(target_arch = "x86_64", not(windows)))]
quiet!(wide_store, super::message_x86::store);
