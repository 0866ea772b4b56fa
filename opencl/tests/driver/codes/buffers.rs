//! Buffers, memory objects, and commands on them.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use super::frame::{go, make, rows};
use super::world::World;
use visa_jit_opencl::abi::*;

unsafe extern "C" fn on_memory(_: cl_mem, _: *mut c_void) {}

const BOTH: u32 = CL_MEM_READ_WRITE;
/// Larger than any buffer.
const HUGE: usize = 1 << 50;
static WHOLE: [usize; 3] = [8, 4, 2];

fn buffer(w: &World, flags: u32, size: usize, host: *mut c_void) -> cl_int {
    make!(w.clCreateBuffer(w.context, u64::from(flags), size, host) clReleaseMemObject)
}

fn buffer_with(w: &World, list: &[u64], flags: u32, size: usize, host: *mut c_void) -> cl_int {
    make!(w.clCreateBufferWithProperties(w.context, list.as_ptr(), u64::from(flags), size, host) clReleaseMemObject)
}

/// More buffers than there is memory.
fn too_many(w: &World, make: fn(&World, usize) -> (cl_mem, cl_int)) -> cl_int {
    let mut largest = 0_u64;
    let value = (&raw mut largest).cast();
    let code = go!(w.clGetDeviceInfo(w.device, CL_DEVICE_MAX_MEM_ALLOC_SIZE, 8, value, null_mut()));
    assert_eq!(code, 0);
    let mut all = Vec::new();
    let code = loop {
        let (made, code) = make(w, largest as usize);
        if made.is_null() {
            break code;
        }
        all.push(made);
        assert!(all.len() < 1000, "memory has an end");
    };
    for made in all {
        assert_eq!(go!(w.clReleaseMemObject(made)), 0);
    }
    code
}

fn part(w: &World, of: cl_mem, flags: u32, origin: usize, size: usize) -> cl_int {
    let region = cl_buffer_region { origin, size };
    let (kind, region) = (CL_BUFFER_CREATE_TYPE_REGION, (&raw const region).cast());
    make!(w.clCreateSubBuffer(of, u64::from(flags), kind, region) clReleaseMemObject)
}

fn read(w: &World, mem: cl_mem, offset: usize, size: usize, to: *mut c_void) -> cl_int {
    go!(w.clEnqueueReadBuffer(
        w.queue,
        mem,
        CL_TRUE,
        offset,
        size,
        to,
        0,
        null(),
        null_mut()
    ))
}

fn write(w: &World, mem: cl_mem, offset: usize, size: usize, from: *const c_void) -> cl_int {
    go!(w.clEnqueueWriteBuffer(
        w.queue,
        mem,
        CL_TRUE,
        offset,
        size,
        from,
        0,
        null(),
        null_mut()
    ))
}

/// Where a rectangle lies in a buffer and in the host's memory: the origins, the region, and the pitches of both.
struct Rect(*const usize, *const usize, *const usize, [usize; 4]);

static ORIGIN: [usize; 3] = [0; 3];

fn rect(region: &[usize; 3], pitches: [usize; 4]) -> Rect {
    Rect(ORIGIN.as_ptr(), ORIGIN.as_ptr(), region.as_ptr(), pitches)
}

fn read_rect(w: &World, mem: cl_mem, rect: Rect, to: *mut c_void) -> cl_int {
    let Rect(a, b, region, [p, q, r, s]) = rect;
    go!(w.clEnqueueReadBufferRect(
        w.queue,
        mem,
        CL_TRUE,
        a,
        b,
        region,
        p,
        q,
        r,
        s,
        to,
        0,
        null(),
        null_mut()
    ))
}

fn write_rect(w: &World, mem: cl_mem, rect: Rect, from: *const c_void) -> cl_int {
    let Rect(a, b, region, [p, q, r, s]) = rect;
    go!(w.clEnqueueWriteBufferRect(
        w.queue,
        mem,
        CL_TRUE,
        a,
        b,
        region,
        p,
        q,
        r,
        s,
        from,
        0,
        null(),
        null_mut()
    ))
}

fn copy_rect(w: &World, from: cl_mem, to: cl_mem, rect: Rect) -> cl_int {
    let Rect(a, b, region, [p, q, r, s]) = rect;
    go!(w.clEnqueueCopyBufferRect(
        w.queue,
        from,
        to,
        a,
        b,
        region,
        p,
        q,
        r,
        s,
        0,
        null(),
        null_mut()
    ))
}

fn copy(w: &World, from: cl_mem, to: cl_mem, [a, b, size]: [usize; 3]) -> cl_int {
    go!(w.clEnqueueCopyBuffer(w.queue, from, to, a, b, size, 0, null(), null_mut()))
}

fn fill(w: &World, mem: cl_mem, pattern: usize, offset: usize, size: usize) -> cl_int {
    go!(w.clEnqueueFillBuffer(
        w.queue,
        mem,
        w.room,
        pattern,
        offset,
        size,
        0,
        null(),
        null_mut()
    ))
}

/// Maps, and unmaps what was mapped.
fn map(
    w: &World,
    q: cl_command_queue,
    mem: cl_mem,
    flags: u32,
    at: [usize; 2],
    n: cl_uint,
    list: *const cl_event,
) -> cl_int {
    let mut code = 1;
    let [offset, size] = at;
    let flags = u64::from(flags);
    let place = go!(w.clEnqueueMapBuffer(
        q,
        mem,
        CL_TRUE,
        flags,
        offset,
        size,
        n,
        list,
        null_mut(),
        &mut code
    ));
    assert_eq!(place.is_null(), code != 0);
    if !place.is_null() {
        assert_eq!(
            go!(w.clEnqueueUnmapMemObject(q, mem, place, 0, null(), null_mut())),
            0
        );
    }
    code
}

fn map_here(w: &World, mem: cl_mem, flags: u32, at: [usize; 2]) -> cl_int {
    map(w, w.queue, mem, flags, at, 0, null())
}

/// A mapping that failed is none: others may follow.
fn map_after_failure(w: &World) -> cl_int {
    let failed = map(w, w.queue, w.buffer, CL_MAP_WRITE, [0, 64], 1, &w.failed);
    assert_eq!(failed, CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST);
    map_here(w, w.buffer, CL_MAP_WRITE, [0, 64])
}

/// The second mapping for writing, while there is a first.
fn map_again(w: &World) -> cl_int {
    let mut code = 1;
    let flags = u64::from(CL_MAP_WRITE);
    let first = go!(w.clEnqueueMapBuffer(
        w.queue,
        w.buffer,
        CL_TRUE,
        flags,
        0,
        64,
        0,
        null(),
        null_mut(),
        &mut code
    ));
    assert_eq!(code, 0);
    assert_eq!(
        map_here(w, w.buffer, CL_MAP_WRITE, [64, 64]),
        0,
        "others may be mapped"
    );
    assert_eq!(
        map_here(w, w.buffer, CL_MAP_READ, [32, 64]),
        0,
        "to read is allowed"
    );
    let again = map_here(w, w.buffer, CL_MAP_WRITE, [32, 64]);
    assert_eq!(
        go!(w.clEnqueueUnmapMemObject(w.queue, w.buffer, first, 0, null(), null_mut())),
        0
    );
    assert_eq!(
        map_here(w, w.buffer, CL_MAP_WRITE, [32, 64]),
        0,
        "the first has ended"
    );
    again
}

fn unmap(w: &World, q: cl_command_queue, mem: cl_mem, n: cl_uint, list: *const cl_event) -> cl_int {
    let mut code = 1;
    let place = go!(w.clEnqueueMapBuffer(
        w.queue,
        w.buffer,
        CL_TRUE,
        u64::from(CL_MAP_READ),
        0,
        64,
        0,
        null(),
        null_mut(),
        &mut code
    ));
    assert_eq!(code, 0);
    let code = go!(w.clEnqueueUnmapMemObject(q, mem, place, n, list, null_mut()));
    if code != 0 {
        assert_eq!(
            go!(w.clEnqueueUnmapMemObject(w.queue, w.buffer, place, 0, null(), null_mut())),
            0
        );
    }
    code
}

fn migrate(w: &World, mems: &[cl_mem], n: cl_uint, flags: u32) -> cl_int {
    go!(w.clEnqueueMigrateMemObjects(
        w.queue,
        n,
        mems.as_ptr(),
        u64::from(flags),
        0,
        null(),
        null_mut()
    ))
}

rows! {
    clCreateBuffer {
        right |w| buffer(w, BOTH, 256, null_mut());
        right |w| buffer(w, CL_MEM_USE_HOST_PTR | CL_MEM_HOST_READ_ONLY, 256, w.room);
        handle CL_INVALID_CONTEXT |w, h| make!(w.clCreateBuffer(h.cast(), u64::from(BOTH), 256, null_mut()) clReleaseMemObject);
        wrong CL_INVALID_VALUE "unknown flags" |w| buffer(w, 1 << 30, 256, null_mut());
        wrong CL_INVALID_VALUE "two ways of access" |w| buffer(w, CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY, 256, null_mut());
        wrong CL_INVALID_VALUE "both uses of memory" |w| buffer(w, CL_MEM_USE_HOST_PTR | CL_MEM_COPY_HOST_PTR, 256, w.room);
        wrong CL_INVALID_BUFFER_SIZE "nothing" |w| buffer(w, BOTH, 0, null_mut());
        wrong CL_INVALID_BUFFER_SIZE "too large" |w| buffer(w, BOTH, HUGE, null_mut());
        wrong CL_INVALID_BUFFER_SIZE "more than is shared, to use" |w| buffer(w, CL_MEM_USE_HOST_PTR, 257, w.shared);
        wrong CL_INVALID_BUFFER_SIZE "more than is shared, to copy" |w| buffer(w, CL_MEM_COPY_HOST_PTR, 257, w.shared);
        wrong CL_INVALID_HOST_PTR "no memory to use" |w| buffer(w, CL_MEM_USE_HOST_PTR, 256, null_mut());
        wrong CL_INVALID_HOST_PTR "memory for nothing" |w| buffer(w, BOTH, 256, w.room);
        wrong CL_MEM_OBJECT_ALLOCATION_FAILURE "more than there is" |w| too_many(w, |w, size| {
            let mut code = 1;
            (go!(w.clCreateBuffer(w.context, u64::from(BOTH), size, null_mut(), &mut code)), code)
        });
        never CL_INVALID_PROPERTY "it has no properties";
        never CL_INVALID_DEVICE "of properties of extensions that are not there";
        never CL_INVALID_OPERATION "of properties of extensions that are not there";
    }
    clCreateBufferWithProperties {
        right |w| buffer_with(w, &[0], BOTH, 256, null_mut());
        handle CL_INVALID_CONTEXT |w, h| make!(w.clCreateBufferWithProperties(h.cast(), null(), 0, 256, null_mut()) clReleaseMemObject);
        wrong CL_INVALID_PROPERTY "an unknown name" |w| buffer_with(w, &[0xFFFF, 0, 0], BOTH, 256, null_mut());
        wrong CL_INVALID_VALUE "unknown flags" |w| buffer_with(w, &[0], 1 << 30, 256, null_mut());
        wrong CL_INVALID_BUFFER_SIZE "nothing" |w| buffer_with(w, &[0], BOTH, 0, null_mut());
        wrong CL_INVALID_HOST_PTR "no memory to copy" |w| buffer_with(w, &[0], CL_MEM_COPY_HOST_PTR, 256, null_mut());
        wrong CL_MEM_OBJECT_ALLOCATION_FAILURE "more than there is" |w| too_many(w, |w, size| {
            let mut code = 1;
            (go!(w.clCreateBufferWithProperties(w.context, null(), u64::from(BOTH), size, null_mut(), &mut code)), code)
        });
        never CL_INVALID_DEVICE "of properties of extensions that are not there";
        never CL_INVALID_OPERATION "of properties of extensions that are not there";
    }
    clCreateSubBuffer {
        right |w| part(w, w.buffer, 0, 128, 128);
        handle CL_INVALID_MEM_OBJECT |w, h| part(w, h.cast(), 0, 0, 128);
        wrong CL_INVALID_MEM_OBJECT "part of a part" |w| part(w, w.parts[0], 0, 0, 64);
        wrong CL_INVALID_MEM_OBJECT "part of an image" |w| part(w, w.image, 0, 0, 64);
        wrong CL_INVALID_VALUE "beyond the end" |w| part(w, w.buffer, 0, 128, 129);
        wrong CL_INVALID_VALUE "with memory of the host" |w| part(w, w.buffer, CL_MEM_ALLOC_HOST_PTR, 0, 128);
        wrong CL_INVALID_VALUE "to read what the host must not" |w| part(w, w.unreadable, CL_MEM_HOST_READ_ONLY, 0, 128);
        wrong CL_INVALID_VALUE "to write what the host must not" |w| part(w, w.unwritable, CL_MEM_HOST_WRITE_ONLY, 0, 128);
        wrong CL_INVALID_VALUE "no region" |w| make!(w.clCreateSubBuffer(w.buffer, 0, CL_BUFFER_CREATE_TYPE_REGION, null()) clReleaseMemObject);
        wrong CL_INVALID_VALUE "no region's type" |w| make!(w.clCreateSubBuffer(w.buffer, 0, 0, w.room) clReleaseMemObject);
        wrong CL_INVALID_BUFFER_SIZE "nothing" |w| part(w, w.buffer, 0, 0, 0);
        wrong CL_MISALIGNED_SUB_BUFFER_OFFSET "an odd place" |w| part(w, w.buffer, 0, 64, 64);
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "the memory is the buffer's";
    }
    clRetainMemObject {
        right |w| go!(w.clRetainMemObject(w.buffer));
        handle CL_INVALID_MEM_OBJECT |w, h| go!(w.clRetainMemObject(h.cast()));
    }
    clReleaseMemObject {
        right |w| go!(w.clReleaseMemObject(w.buffer));
        handle CL_INVALID_MEM_OBJECT |w, h| go!(w.clReleaseMemObject(h.cast()));
    }
    clGetMemObjectInfo {
        handle CL_INVALID_MEM_OBJECT |w, h| go!(w.clGetMemObjectInfo(h.cast(), CL_MEM_SIZE, 0, null_mut(), null_mut()));
        query CL_MEM_SIZE |w, q, s, v, n| go!(w.clGetMemObjectInfo(w.buffer, q, s, v, n));
        never CL_INVALID_OPERATION "of queries of extensions that are not there";
    }
    clSetMemObjectDestructorCallback {
        right |w| go!(w.clSetMemObjectDestructorCallback(w.buffer, Some(on_memory), null_mut()));
        handle CL_INVALID_MEM_OBJECT |w, h| go!(w.clSetMemObjectDestructorCallback(h.cast(), Some(on_memory), null_mut()));
        wrong CL_INVALID_VALUE "no function" |w| go!(w.clSetMemObjectDestructorCallback(w.buffer, None, null_mut()));
    }
    clCreatePipe {
        handle CL_INVALID_CONTEXT |w, h| make!(w.clCreatePipe(h.cast(), 0, 4, 4, null()) clReleaseMemObject);
        wrong CL_INVALID_OPERATION "there are none" |w| make!(w.clCreatePipe(w.context, 0, 4, 4, null()) clReleaseMemObject);
        never CL_SUCCESS "devices say that they have no pipes";
        never CL_INVALID_VALUE "as above";
        never CL_INVALID_PIPE_SIZE "as above";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "as above";
    }
    clGetPipeInfo {
        handle CL_INVALID_MEM_OBJECT |w, h| go!(w.clGetPipeInfo(h.cast(), CL_PIPE_PACKET_SIZE, 0, null_mut(), null_mut()));
        wrong CL_INVALID_MEM_OBJECT "a buffer as pipe" |w| go!(w.clGetPipeInfo(w.buffer, CL_PIPE_PACKET_SIZE, 0, null_mut(), null_mut()));
        never CL_SUCCESS "devices say that they have no pipes";
        never CL_INVALID_VALUE "as above: no object could be asked";
    }
    clEnqueueReadBuffer {
        blocking |w, q, n, list| go!(w.clEnqueueReadBuffer(q, w.buffer, CL_TRUE, 0, 256, w.room, n, list, null_mut()));
        right |w| read(w, w.buffer, 256, 0, w.room);
        handle CL_INVALID_MEM_OBJECT |w, h| read(w, h.cast(), 0, 256, w.room);
        wrong CL_INVALID_MEM_OBJECT "an image" |w| read(w, w.image, 0, 256, w.room);
        wrong CL_INVALID_CONTEXT "another context's buffer" |w| read(w, w.far_buffer, 0, 256, w.room);
        wrong CL_INVALID_VALUE "beyond the end" |w| read(w, w.buffer, 1, 256, w.room);
        wrong CL_INVALID_VALUE "nowhere" |w| read(w, w.buffer, 0, 256, null_mut());
        wrong CL_INVALID_OPERATION "what the host must not read" |w| read(w, w.unreadable, 0, 256, w.room);
        never CL_MISALIGNED_SUB_BUFFER_OFFSET "all devices have one alignment, and no part is made that breaks it";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
    }
    clEnqueueWriteBuffer {
        blocking |w, q, n, list| go!(w.clEnqueueWriteBuffer(q, w.buffer, CL_TRUE, 0, 256, w.room, n, list, null_mut()));
        right |w| write(w, w.buffer, 256, 0, w.room);
        handle CL_INVALID_MEM_OBJECT |w, h| write(w, h.cast(), 0, 256, w.room);
        wrong CL_INVALID_CONTEXT "another context's buffer" |w| write(w, w.far_buffer, 0, 256, w.room);
        wrong CL_INVALID_VALUE "beyond the end" |w| write(w, w.buffer, 1, 256, w.room);
        wrong CL_INVALID_VALUE "from nowhere" |w| write(w, w.buffer, 0, 256, null());
        wrong CL_INVALID_OPERATION "what the host must not write" |w| write(w, w.unwritable, 0, 256, w.room);
        never CL_MISALIGNED_SUB_BUFFER_OFFSET "all devices have one alignment, and no part is made that breaks it";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
    }
    clEnqueueReadBufferRect {
        blocking |w, q, n, list| go!(w.clEnqueueReadBufferRect(q, w.buffer, CL_TRUE, ORIGIN.as_ptr(), ORIGIN.as_ptr(), WHOLE.as_ptr(), 0, 0, 0, 0, w.room, n, list, null_mut()));
        handle CL_INVALID_MEM_OBJECT |w, h| read_rect(w, h.cast(), rect(&WHOLE, [0; 4]), w.room);
        wrong CL_INVALID_CONTEXT "another context's buffer" |w| read_rect(w, w.far_buffer, rect(&WHOLE, [0; 4]), w.room);
        wrong CL_INVALID_VALUE "no region" |w| read_rect(w, w.buffer, Rect(ORIGIN.as_ptr(), ORIGIN.as_ptr(), null(), [0; 4]), w.room);
        wrong CL_INVALID_VALUE "no origin" |w| read_rect(w, w.buffer, Rect(null(), ORIGIN.as_ptr(), WHOLE.as_ptr(), [0; 4]), w.room);
        wrong CL_INVALID_VALUE "no origin of the host's" |w| read_rect(w, w.buffer, Rect(ORIGIN.as_ptr(), null(), WHOLE.as_ptr(), [0; 4]), w.room);
        wrong CL_INVALID_VALUE "beyond the end" |w| read_rect(w, w.buffer, rect(&[8, 4, 9], [0; 4]), w.room);
        wrong CL_INVALID_VALUE "no rows" |w| read_rect(w, w.buffer, rect(&[8, 0, 2], [0; 4]), w.room);
        wrong CL_INVALID_VALUE "short rows" |w| read_rect(w, w.buffer, rect(&WHOLE, [7, 0, 0, 0]), w.room);
        wrong CL_INVALID_VALUE "short slices" |w| read_rect(w, w.buffer, rect(&WHOLE, [8, 31, 0, 0]), w.room);
        wrong CL_INVALID_VALUE "broken slices" |w| read_rect(w, w.buffer, rect(&WHOLE, [8, 33, 0, 0]), w.room);
        wrong CL_INVALID_VALUE "the host's short rows" |w| read_rect(w, w.buffer, rect(&WHOLE, [0, 0, 7, 0]), w.room);
        wrong CL_INVALID_VALUE "the host's short slices" |w| read_rect(w, w.buffer, rect(&WHOLE, [0, 0, 8, 31]), w.room);
        wrong CL_INVALID_VALUE "the host's broken slices" |w| read_rect(w, w.buffer, rect(&WHOLE, [0, 0, 8, 33]), w.room);
        wrong CL_INVALID_VALUE "nowhere" |w| read_rect(w, w.buffer, rect(&WHOLE, [0; 4]), null_mut());
        wrong CL_INVALID_OPERATION "what the host must not read" |w| read_rect(w, w.unreadable, rect(&WHOLE, [0; 4]), w.room);
        never CL_MISALIGNED_SUB_BUFFER_OFFSET "all devices have one alignment, and no part is made that breaks it";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
    }
    clEnqueueWriteBufferRect {
        blocking |w, q, n, list| go!(w.clEnqueueWriteBufferRect(q, w.buffer, CL_TRUE, ORIGIN.as_ptr(), ORIGIN.as_ptr(), WHOLE.as_ptr(), 0, 0, 0, 0, w.room, n, list, null_mut()));
        handle CL_INVALID_MEM_OBJECT |w, h| write_rect(w, h.cast(), rect(&WHOLE, [0; 4]), w.room);
        wrong CL_INVALID_CONTEXT "another context's buffer" |w| write_rect(w, w.far_buffer, rect(&WHOLE, [0; 4]), w.room);
        wrong CL_INVALID_VALUE "no region" |w| write_rect(w, w.buffer, Rect(ORIGIN.as_ptr(), ORIGIN.as_ptr(), null(), [0; 4]), w.room);
        wrong CL_INVALID_VALUE "beyond the end" |w| write_rect(w, w.buffer, rect(&[8, 4, 9], [0; 4]), w.room);
        wrong CL_INVALID_VALUE "broken slices" |w| write_rect(w, w.buffer, rect(&WHOLE, [8, 33, 0, 0]), w.room);
        wrong CL_INVALID_VALUE "from nowhere" |w| write_rect(w, w.buffer, rect(&WHOLE, [0; 4]), null());
        wrong CL_INVALID_OPERATION "what the host must not write" |w| write_rect(w, w.unwritable, rect(&WHOLE, [0; 4]), w.room);
        never CL_MISALIGNED_SUB_BUFFER_OFFSET "all devices have one alignment, and no part is made that breaks it";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
    }
    clEnqueueCopyBuffer {
        command |w, q, n, list| go!(w.clEnqueueCopyBuffer(q, w.buffer, w.unreadable, 0, 0, 256, n, list, null_mut()));
        right |w| copy(w, w.buffer, w.buffer, [0, 128, 128]);
        right |w| copy(w, w.buffer, w.buffer, [0, 0, 0]);
        handle CL_INVALID_MEM_OBJECT |w, h| copy(w, h.cast(), w.buffer, [0, 0, 64]);
        handle CL_INVALID_MEM_OBJECT |w, h| copy(w, w.buffer, h.cast(), [0, 0, 64]);
        wrong CL_INVALID_CONTEXT "from another context's buffer" |w| copy(w, w.far_buffer, w.buffer, [0, 0, 64]);
        wrong CL_INVALID_CONTEXT "to another context's buffer" |w| copy(w, w.buffer, w.far_buffer, [0, 0, 64]);
        wrong CL_INVALID_VALUE "beyond the first's end" |w| copy(w, w.buffer, w.unreadable, [193, 0, 64]);
        wrong CL_INVALID_VALUE "beyond the second's end" |w| copy(w, w.buffer, w.unreadable, [0, 193, 64]);
        wrong CL_MEM_COPY_OVERLAP "in one buffer" |w| copy(w, w.buffer, w.buffer, [0, 63, 64]);
        wrong CL_MEM_COPY_OVERLAP "in two parts" |w| copy(w, w.parts[0], w.parts[1], [0, 128, 64]);
        never CL_MISALIGNED_SUB_BUFFER_OFFSET "all devices have one alignment, and no part is made that breaks it";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
        never CL_INVALID_OPERATION "of memory of an extension that is not there";
    }
    clEnqueueCopyBufferRect {
        command |w, q, n, list| go!(w.clEnqueueCopyBufferRect(q, w.buffer, w.unreadable, ORIGIN.as_ptr(), ORIGIN.as_ptr(), WHOLE.as_ptr(), 0, 0, 0, 0, n, list, null_mut()));
        right |w| copy_rect(w, w.buffer, w.buffer, Rect(ORIGIN.as_ptr(), [8, 0, 0].as_ptr(), WHOLE.as_ptr(), [16, 64, 16, 64]));
        handle CL_INVALID_MEM_OBJECT |w, h| copy_rect(w, h.cast(), w.buffer, rect(&WHOLE, [0; 4]));
        handle CL_INVALID_MEM_OBJECT |w, h| copy_rect(w, w.buffer, h.cast(), rect(&WHOLE, [0; 4]));
        wrong CL_INVALID_CONTEXT "another context's buffer" |w| copy_rect(w, w.far_buffer, w.buffer, rect(&WHOLE, [0; 4]));
        wrong CL_INVALID_VALUE "no region" |w| copy_rect(w, w.buffer, w.unreadable, Rect(ORIGIN.as_ptr(), ORIGIN.as_ptr(), null(), [0; 4]));
        wrong CL_INVALID_VALUE "no first origin" |w| copy_rect(w, w.buffer, w.unreadable, Rect(null(), ORIGIN.as_ptr(), WHOLE.as_ptr(), [0; 4]));
        wrong CL_INVALID_VALUE "beyond the end" |w| copy_rect(w, w.buffer, w.unreadable, rect(&[8, 4, 9], [0; 4]));
        wrong CL_INVALID_VALUE "short rows" |w| copy_rect(w, w.buffer, w.unreadable, rect(&WHOLE, [0, 0, 7, 0]));
        wrong CL_INVALID_VALUE "broken slices" |w| copy_rect(w, w.buffer, w.unreadable, rect(&WHOLE, [8, 33, 0, 0]));
        wrong CL_INVALID_VALUE "two pitches of one buffer" |w| copy_rect(w, w.buffer, w.buffer, rect(&WHOLE, [8, 0, 16, 0]));
        wrong CL_MEM_COPY_OVERLAP "in one buffer" |w| copy_rect(w, w.buffer, w.buffer, Rect(ORIGIN.as_ptr(), [4, 0, 0].as_ptr(), WHOLE.as_ptr(), [16, 64, 16, 64]));
        wrong CL_MEM_COPY_OVERLAP "in two parts" |w| copy_rect(w, w.parts[0], w.parts[1], Rect(ORIGIN.as_ptr(), [0, 0, 4].as_ptr(), WHOLE.as_ptr(), [8, 32, 8, 32]));
        never CL_MISALIGNED_SUB_BUFFER_OFFSET "all devices have one alignment, and no part is made that breaks it";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
        never CL_INVALID_OPERATION "of memory of an extension that is not there";
    }
    clEnqueueFillBuffer {
        command |w, q, n, list| go!(w.clEnqueueFillBuffer(q, w.buffer, w.room, 4, 0, 256, n, list, null_mut()));
        handle CL_INVALID_MEM_OBJECT |w, h| fill(w, h.cast(), 4, 0, 64);
        wrong CL_INVALID_CONTEXT "another context's buffer" |w| fill(w, w.far_buffer, 4, 0, 64);
        wrong CL_INVALID_VALUE "beyond the end" |w| fill(w, w.buffer, 4, 4, 256);
        wrong CL_INVALID_VALUE "no pattern" |w| go!(w.clEnqueueFillBuffer(w.queue, w.buffer, null(), 4, 0, 64, 0, null(), null_mut()));
        wrong CL_INVALID_VALUE "an empty pattern" |w| fill(w, w.buffer, 0, 0, 64);
        wrong CL_INVALID_VALUE "a pattern of three bytes" |w| fill(w, w.buffer, 3, 0, 63);
        wrong CL_INVALID_VALUE "a long pattern" |w| fill(w, w.buffer, 256, 0, 256);
        wrong CL_INVALID_VALUE "part of the pattern" |w| fill(w, w.buffer, 4, 0, 63);
        wrong CL_INVALID_VALUE "an odd place" |w| fill(w, w.buffer, 4, 2, 64);
        never CL_MISALIGNED_SUB_BUFFER_OFFSET "all devices have one alignment, and no part is made that breaks it";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
        never CL_INVALID_OPERATION "of memory of an extension that is not there";
    }
    clEnqueueMapBuffer {
        blocking |w, q, n, list| map(w, q, w.buffer, CL_MAP_READ, [0, 256], n, list);
        right |w| map_after_failure(w);
        handle CL_INVALID_MEM_OBJECT |w, h| map_here(w, h.cast(), CL_MAP_READ, [0, 64]);
        wrong CL_INVALID_CONTEXT "another context's buffer" |w| map_here(w, w.far_buffer, CL_MAP_READ, [0, 64]);
        wrong CL_INVALID_VALUE "beyond the end" |w| map_here(w, w.buffer, CL_MAP_READ, [1, 256]);
        wrong CL_INVALID_VALUE "nothing" |w| map_here(w, w.buffer, CL_MAP_READ, [0, 0]);
        wrong CL_INVALID_VALUE "unknown flags" |w| map_here(w, w.buffer, 1 << 20, [0, 64]);
        wrong CL_INVALID_OPERATION "what the host must not read" |w| map_here(w, w.unreadable, CL_MAP_READ, [0, 64]);
        wrong CL_INVALID_OPERATION "what the host must not write" |w| map_here(w, w.unwritable, CL_MAP_WRITE, [0, 64]);
        wrong CL_INVALID_OPERATION "what is mapped for writing" |w| map_again(w);
        never CL_MISALIGNED_SUB_BUFFER_OFFSET "all devices have one alignment, and no part is made that breaks it";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
        never CL_MAP_FAILURE "the host sees the device's memory";
    }
    clEnqueueUnmapMemObject {
        command |w, q, n, list| unmap(w, q, w.buffer, n, list);
        handle CL_INVALID_MEM_OBJECT |w, h| unmap(w, w.queue, h.cast(), 0, null());
        wrong CL_INVALID_CONTEXT "another context's buffer" |w| unmap(w, w.queue, w.far_buffer, 0, null());
        wrong CL_INVALID_VALUE "what is not mapped" |w| go!(w.clEnqueueUnmapMemObject(w.queue, w.buffer, w.room, 0, null(), null_mut()));
    }
    clEnqueueMigrateMemObjects {
        command |w, q, n, list| go!(w.clEnqueueMigrateMemObjects(q, 1, &w.buffer, 0, n, list, null_mut()));
        right |w| migrate(w, &[w.buffer, w.image], 2, CL_MIGRATE_MEM_OBJECT_HOST | CL_MIGRATE_MEM_OBJECT_CONTENT_UNDEFINED);
        wrong CL_INVALID_CONTEXT "another context's buffer" |w| migrate(w, &[w.far_buffer], 1, 0);
        wrong CL_INVALID_MEM_OBJECT "a sampler as buffer" |w| migrate(w, &[w.buffer, w.sampler.cast()], 2, 0);
        wrong CL_INVALID_VALUE "no objects" |w| migrate(w, &[w.buffer], 0, 0);
        wrong CL_INVALID_VALUE "no list" |w| go!(w.clEnqueueMigrateMemObjects(w.queue, 1, null(), 0, 0, null(), null_mut()));
        wrong CL_INVALID_VALUE "unknown flags" |w| migrate(w, &[w.buffer], 1, 1 << 20);
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
    }
}
