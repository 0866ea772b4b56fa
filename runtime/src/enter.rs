//! The way into compiled code.

use crate::abi::{Entry, GroupCtx};

/// Runs threads `first … end` of a group ([`Entry`]), with the stack aligned as compiled code needs it
/// ([`crate::abi::STACK_ALIGN`]).
///
/// # Safety
/// The code is installed, was made for this ABI, and everything that the contexts point at outlives the call.
pub unsafe fn enter(entry: Entry, group: *mut GroupCtx, first: u32, end: u32) -> u32 {
    #[cfg(all(target_arch = "x86_64", unix, not(miri)))]
    // SAFETY: the caller's promise.
    return unsafe { aligned(group, first, end, entry) };
    #[cfg(not(all(target_arch = "x86_64", unix, not(miri))))]
    // SAFETY: the caller's promise.
    return unsafe { entry(group, first, end) };
}

/// Calls `entry` with the stack pointer at a multiple of [`crate::abi::STACK_ALIGN`].
///
/// # Safety
/// As for [`enter`].
#[cfg(all(target_arch = "x86_64", unix, not(miri)))]
#[unsafe(naked)]
unsafe extern "C" fn aligned(group: *mut GroupCtx, first: u32, end: u32, entry: Entry) -> u32 {
    // The first three arguments are where `entry` wants them. The frame is described for debuggers and profilers.
    std::arch::naked_asm!(
        ".cfi_startproc",
        "push rbp",
        ".cfi_def_cfa_offset 16",
        ".cfi_offset rbp, -16",
        "mov rbp, rsp",
        ".cfi_def_cfa_register rbp",
        "and rsp, {mask}",
        "call rcx",
        "mov rsp, rbp",
        "pop rbp",
        ".cfi_def_cfa rsp, 8",
        "ret",
        ".cfi_endproc",
        mask = const -(crate::abi::STACK_ALIGN as i64),
    )
}

#[cfg(all(test, target_arch = "x86_64", unix, not(miri)))]
mod tests {
    use super::*;

    /// Returns how far its stack pointer is from what the ABI promises, with its arguments.
    #[unsafe(naked)]
    unsafe extern "C" fn probe(_: *mut GroupCtx, _: u32, _: u32) -> u32 {
        std::arch::naked_asm!(
            "lea eax, [rsp + 8]",
            "and eax, {mask}",
            "shl esi, 8",
            "or eax, esi",
            "shl edx, 16",
            "or eax, edx",
            "ret",
            mask = const crate::abi::STACK_ALIGN - 1,
        )
    }

    /// Calls [`aligned`] with the stack pointer as many bytes lower, from a multiple of 64.
    #[unsafe(naked)]
    unsafe extern "C" fn lower(_: *mut GroupCtx, _: u32, _: u32, _: Entry, by: u64) -> u32 {
        std::arch::naked_asm!(
            "push rbp",
            "mov rbp, rsp",
            "and rsp, -64",
            "sub rsp, r8",
            "call {aligned}",
            "mov rsp, rbp",
            "pop rbp",
            "ret",
            aligned = sym aligned,
        )
    }

    #[test]
    fn code_has_an_aligned_stack() {
        for by in [0, 16, 32, 48] {
            // SAFETY: the probe reads its registers alone.
            let found = unsafe { lower(std::ptr::null_mut(), 3, 7, probe, by) };
            assert_eq!(found, 3 << 8 | 7 << 16, "{by} bytes lower");
        }
    }
}
