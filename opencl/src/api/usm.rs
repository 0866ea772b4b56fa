//! Unified shared memory: `cl_intel_unified_shared_memory`. Host, device and shared allocations are the same memory, so that all
//! of it can be used everywhere, and to migrate it means nothing. Codes are those of the extension's specification, version 1.0.0.

use std::ffi::c_void;

use super::enqueue::{Command, fill_pattern};
use super::entry::{Answer, entries};
use super::given::{Ptr, answer};
use crate::abi::host::CopySide;
use crate::abi::*;
use crate::core::context::Context;
use crate::core::device::{Device, max_alloc_bytes};
use crate::core::kernel::Kernel;
use crate::core::queue::Order;
use crate::core::svm::Usage;
use crate::core::{Cl, Object, ensure, err};

/// Largest alignment, in bytes: a page. The specification only asks for that of the largest type.
const MOST_ALIGNED: u32 = 4096;

/// Alignment of allocations that name none: that of the largest type.
const USUAL_ALIGNMENT: u32 = 128;

/// What every device can do with host, device and shared memory: bits of
/// `cl_device_unified_shared_memory_capabilities_intel`.
pub fn capabilities() -> u64 {
    u64::from(
        CL_UNIFIED_SHARED_MEMORY_ACCESS_INTEL
            | CL_UNIFIED_SHARED_MEMORY_ATOMIC_ACCESS_INTEL
            | CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ACCESS_INTEL
            | CL_UNIFIED_SHARED_MEMORY_CONCURRENT_ATOMIC_ACCESS_INTEL,
    )
}

/// The flags in a list of properties.
fn flags(list: Ptr<cl_mem_properties_intel>, usage: &Usage) -> Cl<u64> {
    let given = list.until(2, |name| name == 0);
    let mut flags = None;
    for pair in given.chunks_exact(2) {
        let known = pair[0] == cl_mem_properties_intel::from(CL_MEM_ALLOC_FLAGS_INTEL);
        ensure(known && flags.is_none(), CL_INVALID_PROPERTY)?;
        flags = Some(pair[1]);
    }
    let flags = flags.unwrap_or(0);
    let placement =
        CL_MEM_ALLOC_INITIAL_PLACEMENT_DEVICE_INTEL | CL_MEM_ALLOC_INITIAL_PLACEMENT_HOST_INTEL;
    let placement = u64::from(placement);
    let allowed = match usage {
        Usage::Shared(_) => placement | u64::from(CL_MEM_ALLOC_WRITE_COMBINED_INTEL),
        _ => u64::from(CL_MEM_ALLOC_WRITE_COMBINED_INTEL),
    };
    let both = flags & placement == placement;
    ensure(flags & !allowed == 0 && !both, CL_INVALID_PROPERTY)?;
    Ok(flags)
}

fn allocate(
    context: &Context,
    usage: Usage,
    list: Ptr<cl_mem_properties_intel>,
    size: usize,
    alignment: cl_uint,
) -> Cl<*mut c_void> {
    if let Some(device) = usage.device() {
        context.check(device)?;
    }
    let flags = flags(list, &usage)?;
    let alignment = if alignment == 0 {
        USUAL_ALIGNMENT
    } else {
        alignment
    };
    let aligned = alignment.is_power_of_two() && alignment <= MOST_ALIGNED;
    ensure(aligned, CL_INVALID_VALUE)?;
    let fits = size != 0 && size as u64 <= max_alloc_bytes();
    ensure(fits, CL_INVALID_BUFFER_SIZE)?;
    let made = context
        .shared
        .allocate(size, alignment.into(), usage, flags)?;
    Ok(std::ptr::with_exposed_provenance_mut(made as usize))
}

/// Frees an allocation; null is none, which is allowed.
fn free(context: &Context, address: usize) -> Cl<()> {
    let usm = |usage: &Usage| !matches!(usage, Usage::Svm);
    let done = address == 0 || context.shared.free(address as u64, usm);
    ensure(done, CL_INVALID_VALUE)
}

/// What `clGetMemAllocInfoINTEL` says of an address.
fn info(context: &Context, address: usize, query: cl_mem_info) -> Cl<Vec<u8>> {
    let found = context.shared.find(address as u64);
    let found = found.filter(|(allocation, _)| !matches!(allocation.usage, Usage::Svm));
    let of = found.as_ref().map(|(allocation, _)| allocation);
    Ok(match query {
        CL_MEM_ALLOC_TYPE_INTEL => of
            .map_or(CL_MEM_TYPE_UNKNOWN_INTEL, |a| a.usage.code())
            .bytes(),
        CL_MEM_ALLOC_BASE_PTR_INTEL => of.map_or(0, |a| a.buffer.address() as usize).bytes(),
        CL_MEM_ALLOC_SIZE_INTEL => of.map_or(0, |a| a.buffer.len() as usize).bytes(),
        CL_MEM_ALLOC_DEVICE_INTEL => of
            .and_then(|a| a.usage.device())
            .map_or(std::ptr::null_mut(), Object::handle)
            .bytes(),
        CL_MEM_ALLOC_FLAGS_INTEL => of.map_or(0, |a| a.flags).bytes(),
        _ => return err(CL_INVALID_VALUE),
    })
}

fn filled(command: Command, to: Ptr<c_void>, pattern: Vec<u8>, size: usize) -> Cl<()> {
    let aligned = to.addr().is_multiple_of(pattern.len()) && size.is_multiple_of(pattern.len());
    ensure(!to.is_null() && aligned, CL_INVALID_VALUE)?;
    command.queue.context.shared.check(to.addr(), size)?;
    let to = CopySide::Host(to.host(size));
    let work = move || to.fill(0, size, &pattern);
    command.send(CL_COMMAND_MEMFILL_INTEL, Order::Usual, Box::new(work));
    Ok(())
}

entries! {
    fn clHostMemAllocINTEL(
        context: cl_context,
        list: *const cl_mem_properties_intel,
        size: usize,
        alignment: cl_uint,
    ) -> *mut c_void {
        allocate(&*context.object::<Context>()?, Usage::Host, list, size, alignment)
    }

    fn clDeviceMemAllocINTEL(
        context: cl_context,
        device: cl_device_id,
        list: *const cl_mem_properties_intel,
        size: usize,
        alignment: cl_uint,
    ) -> *mut c_void {
        let context = context.object::<Context>()?;
        let usage = Usage::Device(device.object::<Device>()?);
        allocate(&context, usage, list, size, alignment)
    }

    fn clSharedMemAllocINTEL(
        context: cl_context,
        device: cl_device_id,
        list: *const cl_mem_properties_intel,
        size: usize,
        alignment: cl_uint,
    ) -> *mut c_void {
        let context = context.object::<Context>()?;
        let usage = Usage::Shared(device.optional::<Device>()?);
        allocate(&context, usage, list, size, alignment)
    }

    fn clMemFreeINTEL(context: cl_context, pointer: *mut c_void) -> cl_int {
        free(&*context.object::<Context>()?, pointer.addr())
    }

    fn clMemBlockingFreeINTEL(context: cl_context, pointer: *mut c_void) -> cl_int {
        let context = context.object::<Context>()?;
        let known = context.shared.find(pointer.addr() as u64).is_some();
        ensure(known || pointer.is_null(), CL_INVALID_VALUE)?;
        if known {
            context.finish();
        }
        free(&context, pointer.addr())
    }

    fn clGetMemAllocInfoINTEL(
        context: cl_context,
        pointer: *const c_void,
        query: cl_mem_info,
        size: usize,
        value: *mut c_void,
        needed: *mut usize,
    ) -> cl_int {
        let context = context.object::<Context>()?;
        answer(&info(&context, pointer.addr(), query)?, size, value, needed)
    }

    fn clSetKernelArgMemPointerINTEL(kernel: cl_kernel, index: cl_uint, value: *const c_void) -> cl_int {
        super::kernel::set_shared(&*kernel.object::<Kernel>()?, index, value.addr())
    }

    fn clEnqueueMemsetINTEL(
        queue: cl_command_queue,
        to: *mut c_void,
        value: cl_int,
        size: usize,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        // As C's `memset` takes it.
        filled(command, to, vec![value as u8], size)
    }

    fn clEnqueueMemFillINTEL(
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
        filled(command, to, fill_pattern(pattern, pattern_size)?, size)
    }

    fn clEnqueueMemcpyINTEL(
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
        ensure(to.addr().abs_diff(from.addr()) >= size, CL_MEM_COPY_OVERLAP)?;
        let shared = &command.queue.context.shared;
        shared.check(to.addr(), size)?;
        shared.check(from.addr(), size)?;
        let (to, from) = (CopySide::Host(to.host(size)), CopySide::Host(from.host(size)));
        let work = move || to.copy_from(0, &from, 0, size);
        command.send_and_wait(CL_COMMAND_MEMCPY_INTEL, blocking, Box::new(work))
    }

    fn clEnqueueMigrateMemINTEL(
        queue: cl_command_queue,
        pointer: *const c_void,
        size: usize,
        flags: cl_mem_migration_flags,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        ensure(!pointer.is_null() && size != 0, CL_INVALID_VALUE)?;
        let known = u64::from(CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED);
        ensure(flags & !known == 0, CL_INVALID_VALUE)?;
        command.queue.context.shared.check(pointer.addr(), size)?;
        command.send(CL_COMMAND_MIGRATEMEM_INTEL, Order::Usual, Box::new(|| Ok(())));
        Ok(())
    }

    fn clEnqueueMemAdviseINTEL(
        queue: cl_command_queue,
        pointer: *const c_void,
        size: usize,
        _advice: cl_mem_advice_intel,
        n: cl_uint,
        list: *const cl_event,
        event: *mut cl_event,
    ) -> cl_int {
        let command = Command::new(queue, n, list, event)?;
        ensure(!pointer.is_null() && size != 0, CL_INVALID_VALUE)?;
        command.queue.context.shared.check(pointer.addr(), size)?;
        // The specification leaves what advice there is, and what comes of it, to the driver.
        command.send(CL_COMMAND_MEMADVISE_INTEL, Order::Usual, Box::new(|| Ok(())));
        Ok(())
    }
}
