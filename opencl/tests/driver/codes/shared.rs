//! Shared virtual memory.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use super::frame::{go, rows};
use super::world::World;
use visa_jit_opencl::abi::*;

fn allocate(
    w: &World,
    context: cl_context,
    flags: u32,
    size: usize,
    alignment: u32,
) -> *mut c_void {
    let made = go!(w.clSVMAlloc(context, u64::from(flags), size, alignment));
    go!(w.clSVMFree(w.context, made));
    made
}

/// Enqueues the freeing of new memory.
fn free(w: &World, q: cl_command_queue, n: cl_uint, list: *const cl_event) -> cl_int {
    let mut made = go!(w.clSVMAlloc(w.context, 0, 64, 0));
    let code = go!(w.clEnqueueSVMFree(q, 1, &mut made, None, null_mut(), n, list, null_mut()));
    if code != 0 {
        go!(w.clSVMFree(w.context, made));
    }
    code
}

fn copy(w: &World, to: *mut c_void, from: *const c_void) -> cl_int {
    go!(w.clEnqueueSVMMemcpy(w.queue, CL_TRUE, to, from, 64, 0, null(), null_mut()))
}

fn fill(
    w: &World,
    to: *mut c_void,
    pattern: *const c_void,
    pattern_size: usize,
    size: usize,
) -> cl_int {
    go!(w.clEnqueueSVMMemFill(
        w.queue,
        to,
        pattern,
        pattern_size,
        size,
        0,
        null(),
        null_mut()
    ))
}

fn map(w: &World, flags: u32, at: *mut c_void, size: usize) -> cl_int {
    go!(w.clEnqueueSVMMap(
        w.queue,
        CL_TRUE,
        u64::from(flags),
        at,
        size,
        0,
        null(),
        null_mut()
    ))
}

fn migrate(w: &World, n: cl_uint, at: *mut c_void, size: usize, flags: u32) -> cl_int {
    let (mut at, size) = (at.cast_const(), [size]);
    go!(w.clEnqueueSVMMigrateMem(
        w.queue,
        n,
        &mut at,
        size.as_ptr(),
        u64::from(flags),
        0,
        null(),
        null_mut()
    ))
}

rows! {
    clSVMAlloc {
        right |w| cl_int::from(allocate(w, w.context, CL_MEM_READ_WRITE, 64, 0).is_null());
        right |w| cl_int::from(allocate(w, w.context, CL_MEM_SVM_FINE_GRAIN_BUFFER | CL_MEM_SVM_ATOMICS, 64, 64).is_null());
        right |w| cl_int::from(!allocate(w, null_mut(), 0, 64, 0).is_null());
        right |w| cl_int::from(!allocate(w, w.context, 1 << 30, 64, 0).is_null());
        right |w| cl_int::from(!allocate(w, w.context, CL_MEM_SVM_ATOMICS, 64, 0).is_null());
        right |w| cl_int::from(!allocate(w, w.context, 0, 0, 0).is_null());
        right |w| cl_int::from(!allocate(w, w.context, 0, 1 << 50, 0).is_null());
        right |w| cl_int::from(!allocate(w, w.context, 0, 64, 3).is_null());
        right |w| cl_int::from(!allocate(w, w.context, 0, 64, 256).is_null());
    }
    clSVMFree {
        right |w| { go!(w.clSVMFree(w.context, null_mut())); 0 };
        right |w| { go!(w.clSVMFree(w.context, w.room)); 0 };
    }
    clEnqueueSVMFree {
        command |w, q, n, list| free(w, q, n, list);
        wrong CL_INVALID_VALUE "no list" |w| go!(w.clEnqueueSVMFree(w.queue, 1, null_mut(), None, null_mut(), 0, null(), null_mut()));
        wrong CL_INVALID_VALUE "no pointers" |w| go!(w.clEnqueueSVMFree(w.queue, 0, &mut null_mut(), None, null_mut(), 0, null(), null_mut()));
        never CL_INVALID_OPERATION "all devices have shared memory";
    }
    clEnqueueSVMMemcpy {
        blocking |w, q, n, list| go!(w.clEnqueueSVMMemcpy(q, CL_TRUE, w.shared, w.room, 64, n, list, null_mut()));
        wrong CL_INVALID_VALUE "nowhere" |w| copy(w, null_mut(), w.shared);
        wrong CL_INVALID_VALUE "from nowhere" |w| copy(w, w.shared, null());
        wrong CL_MEM_COPY_OVERLAP "to itself" |w| copy(w, w.shared, w.shared);
        never CL_INVALID_OPERATION "all devices have shared memory";
    }
    clEnqueueSVMMemFill {
        command |w, q, n, list| go!(w.clEnqueueSVMMemFill(q, w.shared, w.room, 4, 64, n, list, null_mut()));
        wrong CL_INVALID_VALUE "nowhere" |w| fill(w, null_mut(), w.room, 4, 64);
        wrong CL_INVALID_VALUE "an odd place" |w| fill(w, w.shared.wrapping_byte_add(2), w.room, 4, 64);
        wrong CL_INVALID_VALUE "no pattern" |w| fill(w, w.shared, null(), 4, 64);
        wrong CL_INVALID_VALUE "an empty pattern" |w| fill(w, w.shared, w.room, 0, 64);
        wrong CL_INVALID_VALUE "a pattern of three bytes" |w| fill(w, w.shared, w.room, 3, 63);
        wrong CL_INVALID_VALUE "a long pattern" |w| fill(w, w.shared, w.room, 256, 256);
        wrong CL_INVALID_VALUE "part of the pattern" |w| fill(w, w.shared, w.room, 4, 63);
        never CL_INVALID_OPERATION "all devices have shared memory";
    }
    clEnqueueSVMMap {
        blocking |w, q, n, list| go!(w.clEnqueueSVMMap(q, CL_TRUE, u64::from(CL_MAP_READ), w.shared, 64, n, list, null_mut()));
        wrong CL_INVALID_VALUE "nothing" |w| map(w, CL_MAP_READ, w.shared, 0);
        wrong CL_INVALID_VALUE "nowhere" |w| map(w, CL_MAP_READ, null_mut(), 64);
        wrong CL_INVALID_VALUE "unknown flags" |w| map(w, 1 << 20, w.shared, 64);
        never CL_INVALID_OPERATION "all devices have shared memory";
    }
    clEnqueueSVMUnmap {
        command |w, q, n, list| go!(w.clEnqueueSVMUnmap(q, w.shared, n, list, null_mut()));
        wrong CL_INVALID_VALUE "nowhere" |w| go!(w.clEnqueueSVMUnmap(w.queue, null_mut(), 0, null(), null_mut()));
        never CL_INVALID_OPERATION "all devices have shared memory";
    }
    clEnqueueSVMMigrateMem {
        command |w, q, n, list| go!(w.clEnqueueSVMMigrateMem(q, 1, &mut w.shared.cast_const(), null(), 0, n, list, null_mut()));
        right |w| migrate(w, 1, w.shared, 256, CL_MIGRATE_MEM_OBJECT_HOST);
        wrong CL_INVALID_VALUE "no pointers" |w| migrate(w, 0, w.shared, 64, 0);
        wrong CL_INVALID_VALUE "no list" |w| go!(w.clEnqueueSVMMigrateMem(w.queue, 1, null_mut(), null(), 0, 0, null(), null_mut()));
        wrong CL_INVALID_VALUE "unknown flags" |w| migrate(w, 1, w.shared, 64, 1 << 20);
        wrong CL_INVALID_VALUE "beyond the end" |w| migrate(w, 1, w.shared, 257, 0);
        wrong CL_INVALID_VALUE "what is not shared" |w| migrate(w, 1, w.room, 64, 0);
        never CL_INVALID_OPERATION "all devices have shared memory";
    }
}
