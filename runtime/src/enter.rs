//! The way into compiled code.

use crate::abi::{Entry, GroupCtx};

/// Runs threads `first … end` of a group ([`Entry`]), with the stack aligned as compiled code needs it
/// ([`crate::abi::STACK_ALIGN`]).
///
/// # Safety
/// The code is installed, was made for this ABI, and everything that the contexts point at outlives the call.
pub unsafe fn enter(entry: Entry, group: *mut GroupCtx, first: u32, end: u32) -> u32 {
    #[cfg(all(target_arch = "x86_64", unix))]
    // SAFETY: the caller's promise.
    return unsafe { aligned(group, first, end, entry) };
    #[cfg(not(all(target_arch = "x86_64", unix)))]
    // SAFETY: the caller's promise.
    return unsafe { entry(group, first, end) };
}

/// Calls `entry` with the stack pointer at a multiple of [`crate::abi::STACK_ALIGN`].
///
/// # Safety
/// As for [`enter`].
#[cfg(all(target_arch = "x86_64", unix))]
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

#[cfg(all(test, target_arch = "x86_64", unix))]
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

    /// From stack pointers of every residue: each depth of the recursion has another frame.
    fn at_depth(depth: usize) {
        let pad = std::hint::black_box([0u8; 16]);
        // SAFETY: the probe reads its registers alone.
        let found = unsafe { enter(probe, std::ptr::null_mut(), 3, 7) };
        assert_eq!(found, 3 << 8 | 7 << 16, "at depth {depth}");
        if depth > 0 {
            at_depth(depth - 1);
        }
        std::hint::black_box(pad);
    }

    #[test]
    fn code_has_an_aligned_stack() {
        at_depth(32);
    }
}
