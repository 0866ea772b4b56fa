//! Shared virtual memory. The program and kernels see the same addresses, so that mapping means nothing.

use std::ffi::c_void;

use super::enqueue::{Command, fill_pattern, known_map_flags};
use super::entry::{entries, guard};
use super::given::{Given, Ptr};
use crate::abi::host::CopySide;
use crate::abi::*;
use crate::core::context::Context;
use crate::core::queue::Order;
use crate::core::svm::Usage;
use crate::core::{Cl, ensure};

type FreeNotify =
    Option<unsafe extern "C" fn(cl_command_queue, cl_uint, *mut *mut c_void, *mut c_void)>;

fn allocate(context: Ptr<_cl_context>, flags: u64, size: usize, alignment: u32) -> Cl<u64> {
    let context = context.object::<Context>()?;
    let access = u64::from(CL_MEM_READ_WRITE | CL_MEM_WRITE_ONLY | CL_MEM_READ_ONLY);
    let fine = u64::from(CL_MEM_SVM_FINE_GRAIN_BUFFER);
    let atomics = u64::from(CL_MEM_SVM_ATOMICS);
    ensure(flags & !(access | fine | atomics) == 0, CL_INVALID_VALUE)?;
    ensure((flags & access).count_ones() <= 1, CL_INVALID_VALUE)?;
    ensure(flags & atomics == 0 || flags & fine != 0, CL_INVALID_VALUE)?;
    let alignment = if alignment == 0 { 128 } else { alignment };
    ensure(
        alignment.is_power_of_two() && alignment <= 128,
        CL_INVALID_VALUE,
    )?;
    let most = crate::core::device::max_alloc_bytes();
    ensure(size != 0 && size as u64 <= most, CL_INVALID_VALUE)?;
    let usage = Usage::Svm;
    context
        .shared
        .allocate(size, alignment.into(), usage, flags)
}

/// Frees shared virtual memory, if an address is that of some.
fn free(context: &Context, address: usize) {
    let svm = |usage: &Usage| matches!(usage, Usage::Svm);
    // The specification has no error for other addresses.
    let _ = context.shared.free(address as u64, svm);
}

/// OpenCL's `clSVMAlloc`.
///
/// # Safety
/// As its specification says.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name is OpenCL's")]
pub unsafe extern "C" fn clSVMAlloc(
    context: cl_context,
    flags: cl_svm_mem_flags,
    size: usize,
    alignment: cl_uint,
) -> *mut c_void {
    // SAFETY: the caller keeps to the specification of this function.
    let context = unsafe { context.given() };
    let made = guard(|| allocate(context, flags, size, alignment));
    made.map_or(std::ptr::null_mut(), |address| {
        std::ptr::with_exposed_provenance_mut(address as usize)
    })
}

/// OpenCL's `clSVMFree`.
///
/// # Safety
/// As its specification says.
#[unsafe(no_mangle)]
#[allow(non_snake_case, reason = "the name is OpenCL's")]
pub unsafe extern "C" fn clSVMFree(context: cl_context, pointer: *mut c_void) {
    // SAFETY: the caller keeps to the specification of this function.
    let (context, pointer) = unsafe { (context.given(), pointer.given()) };
    // There is no way to say that the context is none.
    let _ = guard(|| {
        let context = context.object::<Context>()?;
        free(&context, pointer.addr());
        Ok(())
    });
}

entries! {
    fn clEnqueueSVMFree(
        queue: cl_command_queue,
        count: cl_uint,
        pointers: *mut *mut c_void,
        notify: FreeNotify,
        user_data: *mut c_void,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        ensure((count == 0) == pointers.is_null(), CL_INVALID_VALUE)?;
        let addresses = pointers.slice(count as usize).iter().map(|p| p.expose_provenance());
        let addresses: Vec<usize> = addresses.collect();
        let (context, queue, data) = (command.queue.context.clone(), queue.addr(), user_data.addr());
        let work = move || {
            match notify {
                Some(notify) => {
                    let all = addresses.iter().map(|a| std::ptr::with_exposed_provenance_mut(*a));
                    let mut all: Vec<*mut c_void> = all.collect();
                    let queue = std::ptr::with_exposed_provenance_mut(queue);
                    let data = std::ptr::with_exposed_provenance_mut(data);
                    // SAFETY: the program gave the function for this call.
                    unsafe { notify(queue, all.len() as cl_uint, all.as_mut_ptr(), data) };
                }
                None => addresses.iter().for_each(|address| free(&context, *address)),
            }
            Ok(())
        };
        command.send(CL_COMMAND_SVM_FREE, Order::Usual, Box::new(work));
        Ok(())
    }

    fn clEnqueueSVMMemcpy(
        queue: cl_command_queue,
        blocking: cl_bool,
        to: *mut c_void,
        from: *const c_void,
        size: usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        ensure(!to.is_null() && !from.is_null(), CL_INVALID_VALUE)?;
        let (a, b) = (to.addr(), from.addr());
        let apart = a.abs_diff(b) >= size;
        ensure(apart, CL_MEM_COPY_OVERLAP)?;
        let (to, from) = (CopySide::Host(to.host(size)), CopySide::Host(from.host(size)));
        let work = move || to.copy_from(0, &from, 0, size);
        command.send_and_wait(CL_COMMAND_SVM_MEMCPY, blocking, Box::new(work))
    }

    fn clEnqueueSVMMemFill(
        queue: cl_command_queue,
        to: *mut c_void,
        pattern: *const c_void,
        pattern_size: usize,
        size: usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        let pattern = fill_pattern(pattern, pattern_size)?;
        let aligned = to.addr().is_multiple_of(pattern_size) && size.is_multiple_of(pattern_size);
        ensure(!to.is_null() && aligned, CL_INVALID_VALUE)?;
        let to = CopySide::Host(to.host(size));
        let work = move || to.fill(0, size, &pattern);
        command.send(CL_COMMAND_SVM_MEMFILL, Order::Usual, Box::new(work));
        Ok(())
    }

    fn clEnqueueSVMMap(
        queue: cl_command_queue,
        blocking: cl_bool,
        flags: cl_map_flags,
        pointer: *mut c_void,
        size: usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        ensure(!pointer.is_null() && size != 0, CL_INVALID_VALUE)?;
        known_map_flags(flags)?;
        command.send_and_wait(CL_COMMAND_SVM_MAP, blocking, Box::new(|| Ok(())))
    }

    fn clEnqueueSVMUnmap(
        queue: cl_command_queue,
        pointer: *mut c_void,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        ensure(!pointer.is_null(), CL_INVALID_VALUE)?;
        command.send(CL_COMMAND_SVM_UNMAP, Order::Usual, Box::new(|| Ok(())));
        Ok(())
    }

    fn clEnqueueSVMMigrateMem(
        queue: cl_command_queue,
        count: cl_uint,
        pointers: *mut *const c_void,
        sizes: *const usize,
        flags: cl_mem_migration_flags,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        ensure(count != 0 && !pointers.is_null(), CL_INVALID_VALUE)?;
        let known = u64::from(CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED);
        ensure(flags & !known == 0, CL_INVALID_VALUE)?;
        let shared = &command.queue.context.shared;
        let all = pointers.slice(count as usize);
        let sizes = sizes.slice(all.len());
        for (i, pointer) in all.iter().enumerate() {
            let size = sizes.get(i).copied().unwrap_or(0) as u64;
            let found = shared.find(pointer.addr() as u64);
            let whole = found.is_some_and(|(allocation, at)| size <= allocation.buffer.len() - at);
            ensure(whole, CL_INVALID_VALUE)?;
        }
        // All devices have the same memory.
        command.send(CL_COMMAND_SVM_MIGRATE_MEM, Order::Usual, Box::new(|| Ok(())));
        Ok(())
    }
}
