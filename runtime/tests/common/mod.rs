//! What the tests share: entries written in Rust instead of compiled kernels.

#![allow(dead_code, reason = "each test binary uses a part")]

pub mod maps;

use visa_runtime::abi::{Entry, GroupCtx, ThreadCtx};
use visa_runtime::{Kernel, KernelCode, KernelMeta};

/// A SIMD16 kernel without any memory.
pub fn meta() -> KernelMeta {
    KernelMeta {
        name: "test".to_owned(),
        ..KernelMeta::default()
    }
}

/// A kernel from a function of this program.
pub fn kernel(meta: KernelMeta, entry: Entry) -> Kernel {
    // SAFETY: the entries of these tests keep to the layout their metadata describes.
    unsafe { Kernel::new(meta, KernelCode::Linked(entry)) }.unwrap()
}

/// Threads `first … end` of a group.
///
/// # Safety
/// `group` must be a group that runs now.
pub unsafe fn threads_of<'a>(
    group: *mut GroupCtx,
    first: u32,
    end: u32,
) -> impl Iterator<Item = &'a mut ThreadCtx> {
    (first..end).map(move |t| {
        // SAFETY: a group has `thread_count` threads and `end` is not beyond that.
        unsafe { &mut *(*group).threads.add(t as usize) }
    })
}
