//! Images, samplers, and commands on images.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use super::frame::{go, make, rows};
use super::world::{World, description, format};
use visa_jit_opencl::abi::*;

const BOTH: u32 = CL_MEM_READ_WRITE;
const TWO: u32 = CL_MEM_OBJECT_IMAGE2D;
const BYTES: cl_image_format = cl_image_format {
    image_channel_order: CL_RGBA,
    image_channel_data_type: CL_UNSIGNED_INT8,
};
static ORIGIN: [usize; 3] = [0; 3];
static SOME: [usize; 3] = [4, 4, 1];
static MANY: [usize; 3] = [9, 8, 1];

fn image(w: &World, flags: u32, desc: &cl_image_desc, host: *mut c_void) -> cl_int {
    make!(w.clCreateImage(w.context, u64::from(flags), &BYTES, desc, host) clReleaseMemObject)
}

fn image_with(
    w: &World,
    list: &[u64],
    flags: u32,
    desc: &cl_image_desc,
    host: *mut c_void,
) -> cl_int {
    make!(w.clCreateImageWithProperties(w.context, list.as_ptr(), u64::from(flags), &BYTES, desc, host) clReleaseMemObject)
}

/// Of this format.
fn formed(w: &World, order: u32, ty: u32) -> cl_int {
    let desc = description(TWO, [8, 8, 1], null_mut());
    make!(w.clCreateImage(w.context, u64::from(BOTH), &format(order, ty), &desc, null_mut()) clReleaseMemObject)
}

fn sized(size: [usize; 3]) -> cl_image_desc {
    description(TWO, size, null_mut())
}

fn two(
    w: &World,
    context: cl_context,
    size: [usize; 2],
    pitch: usize,
    host: *mut c_void,
) -> cl_int {
    let flags = if host.is_null() {
        BOTH
    } else {
        CL_MEM_COPY_HOST_PTR
    };
    make!(w.clCreateImage2D(context, u64::from(flags), &BYTES, size[0], size[1], pitch, host) clReleaseMemObject)
}

fn three(
    w: &World,
    context: cl_context,
    size: [usize; 3],
    pitches: [usize; 2],
    host: *mut c_void,
) -> cl_int {
    let flags = if host.is_null() {
        BOTH
    } else {
        CL_MEM_COPY_HOST_PTR
    };
    let ([x, y, z], [row, slice]) = (size, pitches);
    make!(w.clCreateImage3D(context, u64::from(flags), &BYTES, x, y, z, row, slice, host) clReleaseMemObject)
}

/// More images than there is memory.
fn too_many(w: &World, make: fn(&World, &cl_image_desc) -> (cl_mem, cl_int)) -> cl_int {
    let mut desc = description(TWO, [16384, 16384, 1], null_mut());
    desc.image_type = CL_MEM_OBJECT_IMAGE2D;
    let mut all = Vec::new();
    let code = loop {
        let (made, code) = make(w, &desc);
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

/// No events to wait for.
const NO_WAIT: (cl_uint, *const cl_event) = (0, null());

/// A region in an image, and in memory.
struct Part(*const usize, *const usize, [usize; 2]);

fn some() -> Part {
    Part(ORIGIN.as_ptr(), SOME.as_ptr(), [0; 2])
}

fn read(w: &World, q: cl_command_queue, mem: cl_mem, part: Part, to: *mut c_void) -> cl_int {
    let Part(origin, region, [row, slice]) = part;
    go!(w.clEnqueueReadImage(
        q,
        mem,
        CL_TRUE,
        origin,
        region,
        row,
        slice,
        to,
        0,
        null(),
        null_mut()
    ))
}

fn write(w: &World, q: cl_command_queue, mem: cl_mem, part: Part, from: *const c_void) -> cl_int {
    let Part(origin, region, [row, slice]) = part;
    go!(w.clEnqueueWriteImage(
        q,
        mem,
        CL_TRUE,
        origin,
        region,
        row,
        slice,
        from,
        0,
        null(),
        null_mut()
    ))
}

fn fill(w: &World, q: cl_command_queue, mem: cl_mem, part: Part, colour: *const c_void) -> cl_int {
    go!(w.clEnqueueFillImage(q, mem, colour, part.0, part.1, 0, null(), null_mut()))
}

fn copy(w: &World, q: cl_command_queue, mems: [cl_mem; 2], part: Part, to: *const usize) -> cl_int {
    go!(w.clEnqueueCopyImage(
        q,
        mems[0],
        mems[1],
        part.0,
        to,
        part.1,
        0,
        null(),
        null_mut()
    ))
}

fn to_buffer(
    w: &World,
    q: cl_command_queue,
    mems: [cl_mem; 2],
    part: Part,
    offset: usize,
) -> cl_int {
    go!(w.clEnqueueCopyImageToBuffer(
        q,
        mems[0],
        mems[1],
        part.0,
        part.1,
        offset,
        0,
        null(),
        null_mut()
    ))
}

fn from_buffer(
    w: &World,
    q: cl_command_queue,
    mems: [cl_mem; 2],
    part: Part,
    offset: usize,
) -> cl_int {
    go!(w.clEnqueueCopyBufferToImage(
        q,
        mems[0],
        mems[1],
        offset,
        part.0,
        part.1,
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
    part: Part,
    pitches: [bool; 2],
    (n, list): (cl_uint, *const cl_event),
) -> cl_int {
    let (mut code, mut row, mut slice) = (1, 0, 0);
    let row: *mut usize = if pitches[0] { &mut row } else { null_mut() };
    let slice: *mut usize = if pitches[1] { &mut slice } else { null_mut() };
    let flags = u64::from(flags);
    let place = go!(w.clEnqueueMapImage(
        q,
        mem,
        CL_TRUE,
        flags,
        part.0,
        part.1,
        row,
        slice,
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

fn map_here(w: &World, mem: cl_mem, flags: u32, part: Part) -> cl_int {
    map(w, w.queue, mem, flags, part, [true; 2], NO_WAIT)
}

/// The second mapping for writing, while there is a first, of texels beside it and of the same.
fn map_again(w: &World) -> cl_int {
    let (mut code, mut row) = (1, 0);
    let (flags, right) = (u64::from(CL_MAP_WRITE), [4, 0, 0]);
    let first = go!(w.clEnqueueMapImage(
        w.queue,
        w.image,
        CL_TRUE,
        flags,
        ORIGIN.as_ptr(),
        SOME.as_ptr(),
        &mut row,
        null_mut(),
        0,
        null(),
        null_mut(),
        &mut code
    ));
    assert_eq!(code, 0);
    let beside = Part(right.as_ptr(), SOME.as_ptr(), [0; 2]);
    assert_eq!(map_here(w, w.image, CL_MAP_WRITE, beside), 0);
    let again = map_here(w, w.image, CL_MAP_WRITE, some());
    assert_eq!(
        go!(w.clEnqueueUnmapMemObject(w.queue, w.image, first, 0, null(), null_mut())),
        0
    );
    again
}

fn sampler(w: &World, addressing: u32, filter: u32) -> cl_int {
    make!(w.clCreateSampler(w.context, CL_FALSE, addressing, filter) clReleaseSampler)
}

fn sampler_with(w: &World, context: cl_context, list: &[u64]) -> cl_int {
    make!(w.clCreateSamplerWithProperties(context, list.as_ptr()) clReleaseSampler)
}

const FILTER: u64 = CL_SAMPLER_FILTER_MODE as u64;
const LINEAR: u64 = CL_FILTER_LINEAR as u64;

rows! {
    clCreateImage {
        right |w| image(w, BOTH, &sized([8, 8, 1]), null_mut());
        right |w| image(w, BOTH, &description(CL_MEM_OBJECT_IMAGE3D, [8, 8, 1], null_mut()), null_mut());
        handle CL_INVALID_CONTEXT |w, h| make!(w.clCreateImage(h.cast(), u64::from(BOTH), &BYTES, &sized([8, 8, 1]), null_mut()) clReleaseMemObject);
        wrong CL_INVALID_OPERATION "no device has images" |w| make!(w.clCreateImage(w.bare_context, u64::from(BOTH), &BYTES, &sized([8, 8, 1]), null_mut()) clReleaseMemObject);
        wrong CL_INVALID_VALUE "unknown flags" |w| image(w, 1 << 30, &sized([8, 8, 1]), null_mut());
        wrong CL_INVALID_VALUE "flags of a part with the host's memory" |w| image(w, CL_MEM_ALLOC_HOST_PTR, &description(CL_MEM_OBJECT_IMAGE1D_BUFFER, [8, 1, 1], w.buffer), null_mut());
        wrong CL_INVALID_VALUE "to read what the host must not" |w| image(w, CL_MEM_HOST_READ_ONLY, &description(CL_MEM_OBJECT_IMAGE1D_BUFFER, [8, 1, 1], w.unreadable), null_mut());
        wrong CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "no format" |w| make!(w.clCreateImage(w.context, u64::from(BOTH), null(), &sized([8, 8, 1]), null_mut()) clReleaseMemObject);
        wrong CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "an unknown order" |w| formed(w, 0, CL_FLOAT);
        wrong CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "an unknown type" |w| formed(w, CL_RGBA, 0);
        wrong CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "an order that has other types" |w| formed(w, CL_RGB, CL_FLOAT);
        wrong CL_INVALID_IMAGE_DESCRIPTOR "no description" |w| make!(w.clCreateImage(w.context, u64::from(BOTH), &BYTES, null(), null_mut()) clReleaseMemObject);
        wrong CL_INVALID_IMAGE_DESCRIPTOR "a buffer's type" |w| image(w, BOTH, &description(CL_MEM_OBJECT_BUFFER, [8, 8, 1], null_mut()), null_mut());
        wrong CL_INVALID_IMAGE_DESCRIPTOR "a pitch for no memory" |w| image(w, BOTH, &cl_image_desc { image_row_pitch: 64, ..sized([8, 8, 1]) }, null_mut());
        wrong CL_INVALID_IMAGE_DESCRIPTOR "a short pitch" |w| image(w, CL_MEM_COPY_HOST_PTR, &cl_image_desc { image_row_pitch: 28, ..sized([8, 8, 1]) }, w.room);
        wrong CL_INVALID_IMAGE_DESCRIPTOR "levels" |w| image(w, BOTH, &cl_image_desc { num_mip_levels: 2, ..sized([8, 8, 1]) }, null_mut());
        wrong CL_INVALID_IMAGE_DESCRIPTOR "no buffer" |w| image(w, BOTH, &description(CL_MEM_OBJECT_IMAGE1D_BUFFER, [8, 1, 1], null_mut()), null_mut());
        wrong CL_INVALID_IMAGE_DESCRIPTOR "too small a buffer" |w| image(w, BOTH, &description(CL_MEM_OBJECT_IMAGE1D_BUFFER, [65, 1, 1], w.buffer), null_mut());
        wrong CL_INVALID_IMAGE_SIZE "too wide" |w| image(w, BOTH, &sized([16385, 8, 1]), null_mut());
        wrong CL_INVALID_HOST_PTR "no memory to copy" |w| image(w, CL_MEM_COPY_HOST_PTR, &sized([8, 8, 1]), null_mut());
        wrong CL_INVALID_HOST_PTR "memory for nothing" |w| image(w, BOTH, &sized([8, 8, 1]), w.room);
        wrong CL_IMAGE_FORMAT_NOT_SUPPORTED "a format that is not there" |w| formed(w, CL_RGB, CL_UNORM_SHORT_565);
        wrong CL_MEM_OBJECT_ALLOCATION_FAILURE "more than there is" |w| too_many(w, |w, desc| {
            let mut code = 1;
            (go!(w.clCreateImage(w.context, u64::from(BOTH), &BYTES, desc, null_mut(), &mut code)), code)
        });
        never CL_INVALID_PROPERTY "it has no properties";
        never CL_INVALID_DEVICE "of properties of extensions that are not there";
    }
    clCreateImageWithProperties {
        right |w| image_with(w, &[0], BOTH, &sized([8, 8, 1]), null_mut());
        handle CL_INVALID_CONTEXT |w, h| make!(w.clCreateImageWithProperties(h.cast(), null(), u64::from(BOTH), &BYTES, &sized([8, 8, 1]), null_mut()) clReleaseMemObject);
        wrong CL_INVALID_OPERATION "no device has images" |w| make!(w.clCreateImageWithProperties(w.bare_context, null(), u64::from(BOTH), &BYTES, &sized([8, 8, 1]), null_mut()) clReleaseMemObject);
        wrong CL_INVALID_PROPERTY "an unknown name" |w| image_with(w, &[0xFFFF, 0, 0], BOTH, &sized([8, 8, 1]), null_mut());
        wrong CL_INVALID_VALUE "unknown flags" |w| image_with(w, &[0], 1 << 30, &sized([8, 8, 1]), null_mut());
        wrong CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "no format" |w| make!(w.clCreateImageWithProperties(w.context, null(), u64::from(BOTH), null(), &sized([8, 8, 1]), null_mut()) clReleaseMemObject);
        wrong CL_INVALID_IMAGE_DESCRIPTOR "no description" |w| make!(w.clCreateImageWithProperties(w.context, null(), u64::from(BOTH), &BYTES, null(), null_mut()) clReleaseMemObject);
        wrong CL_INVALID_IMAGE_SIZE "too high" |w| image_with(w, &[0], BOTH, &sized([8, 16385, 1]), null_mut());
        wrong CL_INVALID_HOST_PTR "no memory to copy" |w| image_with(w, &[0], CL_MEM_COPY_HOST_PTR, &sized([8, 8, 1]), null_mut());
        wrong CL_IMAGE_FORMAT_NOT_SUPPORTED "a format that is not there" |w| make!(w.clCreateImageWithProperties(w.context, null(), u64::from(BOTH), &format(CL_RGB, CL_UNORM_SHORT_565), &sized([8, 8, 1]), null_mut()) clReleaseMemObject);
        wrong CL_MEM_OBJECT_ALLOCATION_FAILURE "more than there is" |w| too_many(w, |w, desc| {
            let mut code = 1;
            (go!(w.clCreateImageWithProperties(w.context, null(), u64::from(BOTH), &BYTES, desc, null_mut(), &mut code)), code)
        });
        never CL_INVALID_DEVICE "of properties of extensions that are not there";
    }
    clCreateImage2D {
        right |w| two(w, w.context, [8, 8], 0, null_mut());
        right |w| two(w, w.context, [8, 8], 64, w.room);
        handle CL_INVALID_CONTEXT |w, h| two(w, h.cast(), [8, 8], 0, null_mut());
        wrong CL_INVALID_OPERATION "no device has images" |w| two(w, w.bare_context, [8, 8], 0, null_mut());
        wrong CL_INVALID_VALUE "unknown flags" |w| make!(w.clCreateImage2D(w.context, 1 << 30, &BYTES, 8, 8, 0, null_mut()) clReleaseMemObject);
        wrong CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "no format" |w| make!(w.clCreateImage2D(w.context, 0, null(), 8, 8, 0, null_mut()) clReleaseMemObject);
        wrong CL_INVALID_IMAGE_SIZE "no texels" |w| two(w, w.context, [0, 8], 0, null_mut());
        wrong CL_INVALID_IMAGE_SIZE "too wide" |w| two(w, w.context, [16385, 8], 0, null_mut());
        wrong CL_INVALID_IMAGE_SIZE "a short pitch" |w| two(w, w.context, [8, 8], 28, w.room);
        wrong CL_INVALID_HOST_PTR "no memory to copy" |w| make!(w.clCreateImage2D(w.context, u64::from(CL_MEM_COPY_HOST_PTR), &BYTES, 8, 8, 0, null_mut()) clReleaseMemObject);
        wrong CL_IMAGE_FORMAT_NOT_SUPPORTED "a format that is not there" |w| make!(w.clCreateImage2D(w.context, 0, &format(CL_RGB, CL_UNORM_SHORT_565), 8, 8, 0, null_mut()) clReleaseMemObject);
        wrong CL_MEM_OBJECT_ALLOCATION_FAILURE "more than there is" |w| too_many(w, |w, _| {
            let mut code = 1;
            (go!(w.clCreateImage2D(w.context, 0, &BYTES, 16384, 16384, 0, null_mut(), &mut code)), code)
        });
    }
    clCreateImage3D {
        right |w| three(w, w.context, [8, 8, 2], [0; 2], null_mut());
        right |w| three(w, w.context, [8, 8, 2], [32, 512], w.room);
        handle CL_INVALID_CONTEXT |w, h| three(w, h.cast(), [8, 8, 2], [0; 2], null_mut());
        wrong CL_INVALID_OPERATION "no device has images" |w| three(w, w.bare_context, [8, 8, 2], [0; 2], null_mut());
        wrong CL_INVALID_VALUE "unknown flags" |w| make!(w.clCreateImage3D(w.context, 1 << 30, &BYTES, 8, 8, 2, 0, 0, null_mut()) clReleaseMemObject);
        wrong CL_INVALID_IMAGE_FORMAT_DESCRIPTOR "no format" |w| make!(w.clCreateImage3D(w.context, 0, null(), 8, 8, 2, 0, 0, null_mut()) clReleaseMemObject);
        wrong CL_INVALID_IMAGE_SIZE "no texels" |w| three(w, w.context, [8, 0, 2], [0; 2], null_mut());
        wrong CL_INVALID_IMAGE_SIZE "one slice" |w| three(w, w.context, [8, 8, 1], [0; 2], null_mut());
        wrong CL_INVALID_IMAGE_SIZE "too deep" |w| three(w, w.context, [8, 8, 2049], [0; 2], null_mut());
        wrong CL_INVALID_IMAGE_SIZE "a short slice" |w| three(w, w.context, [8, 8, 2], [32, 224], w.room);
        wrong CL_INVALID_HOST_PTR "no memory to copy" |w| make!(w.clCreateImage3D(w.context, u64::from(CL_MEM_COPY_HOST_PTR), &BYTES, 8, 8, 2, 0, 0, null_mut()) clReleaseMemObject);
        wrong CL_IMAGE_FORMAT_NOT_SUPPORTED "a format that is not there" |w| make!(w.clCreateImage3D(w.context, 0, &format(CL_RGB, CL_UNORM_SHORT_565), 8, 8, 2, 0, 0, null_mut()) clReleaseMemObject);
        wrong CL_MEM_OBJECT_ALLOCATION_FAILURE "more than there is" |w| too_many(w, |w, _| {
            let mut code = 1;
            (go!(w.clCreateImage3D(w.context, 0, &BYTES, 2048, 2048, 64, 0, 0, null_mut(), &mut code)), code)
        });
    }
    clGetSupportedImageFormats {
        right |w| go!(w.clGetSupportedImageFormats(w.context, u64::from(BOTH), TWO, 0, null_mut(), &mut 0));
        handle CL_INVALID_CONTEXT |w, h| go!(w.clGetSupportedImageFormats(h.cast(), u64::from(BOTH), TWO, 0, null_mut(), &mut 0));
        wrong CL_INVALID_VALUE "unknown flags" |w| go!(w.clGetSupportedImageFormats(w.context, 1 << 30, TWO, 0, null_mut(), &mut 0));
        wrong CL_INVALID_VALUE "a buffer's type" |w| go!(w.clGetSupportedImageFormats(w.context, u64::from(BOTH), CL_MEM_OBJECT_BUFFER, 0, null_mut(), &mut 0));
        wrong CL_INVALID_VALUE "no entries" |w| go!(w.clGetSupportedImageFormats(w.context, u64::from(BOTH), TWO, 0, w.room.cast(), &mut 0));
    }
    clGetImageInfo {
        handle CL_INVALID_MEM_OBJECT |w, h| go!(w.clGetImageInfo(h.cast(), CL_IMAGE_WIDTH, 0, null_mut(), null_mut()));
        wrong CL_INVALID_MEM_OBJECT "a buffer" |w| go!(w.clGetImageInfo(w.buffer, CL_IMAGE_WIDTH, 0, null_mut(), null_mut()));
        query CL_IMAGE_WIDTH |w, q, s, v, n| go!(w.clGetImageInfo(w.image, q, s, v, n));
    }
    clEnqueueReadImage {
        blocking |w, q, n, list| go!(w.clEnqueueReadImage(q, w.image, CL_TRUE, ORIGIN.as_ptr(), SOME.as_ptr(), 0, 0, w.room, n, list, null_mut()));
        right |w| read(w, w.queue, w.images, Part(ORIGIN.as_ptr(), SOME.as_ptr(), [16, 128]), w.room);
        handle CL_INVALID_MEM_OBJECT |w, h| read(w, w.queue, h.cast(), some(), w.room);
        wrong CL_INVALID_MEM_OBJECT "a buffer" |w| read(w, w.queue, w.buffer, some(), w.room);
        wrong CL_INVALID_CONTEXT "another context's image" |w| read(w, w.queue, w.far_image, some(), w.room);
        wrong CL_INVALID_VALUE "no origin" |w| read(w, w.queue, w.image, Part(null(), SOME.as_ptr(), [0; 2]), w.room);
        wrong CL_INVALID_VALUE "no region" |w| read(w, w.queue, w.image, Part(ORIGIN.as_ptr(), null(), [0; 2]), w.room);
        wrong CL_INVALID_VALUE "beyond the end" |w| read(w, w.queue, w.image, Part(ORIGIN.as_ptr(), MANY.as_ptr(), [0; 2]), w.room);
        wrong CL_INVALID_VALUE "two slices of one" |w| read(w, w.queue, w.image, Part(ORIGIN.as_ptr(), [4, 4, 2].as_ptr(), [0; 2]), w.room);
        wrong CL_INVALID_VALUE "short rows" |w| read(w, w.queue, w.image, Part(ORIGIN.as_ptr(), SOME.as_ptr(), [12, 0]), w.room);
        wrong CL_INVALID_VALUE "slices of a plane" |w| read(w, w.queue, w.image, Part(ORIGIN.as_ptr(), SOME.as_ptr(), [16, 64]), w.room);
        wrong CL_INVALID_VALUE "nowhere" |w| read(w, w.queue, w.image, some(), null_mut());
        wrong CL_INVALID_OPERATION "no images on the device" |w| read(w, w.wide_bare_queue, w.wide_image, some(), w.room);
        wrong CL_INVALID_OPERATION "what the host must not read" |w| read(w, w.queue, w.unreadable_image, some(), w.room);
        never CL_INVALID_IMAGE_SIZE "devices with images have the same limits";
        never CL_IMAGE_FORMAT_NOT_SUPPORTED "devices with images have the same formats";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
    }
    clEnqueueWriteImage {
        blocking |w, q, n, list| go!(w.clEnqueueWriteImage(q, w.image, CL_TRUE, ORIGIN.as_ptr(), SOME.as_ptr(), 0, 0, w.room, n, list, null_mut()));
        handle CL_INVALID_MEM_OBJECT |w, h| write(w, w.queue, h.cast(), some(), w.room);
        wrong CL_INVALID_MEM_OBJECT "a buffer" |w| write(w, w.queue, w.buffer, some(), w.room);
        wrong CL_INVALID_CONTEXT "another context's image" |w| write(w, w.queue, w.far_image, some(), w.room);
        wrong CL_INVALID_VALUE "no origin" |w| write(w, w.queue, w.image, Part(null(), SOME.as_ptr(), [0; 2]), w.room);
        wrong CL_INVALID_VALUE "beyond the end" |w| write(w, w.queue, w.image, Part(ORIGIN.as_ptr(), MANY.as_ptr(), [0; 2]), w.room);
        wrong CL_INVALID_VALUE "slices of a plane" |w| write(w, w.queue, w.image, Part(ORIGIN.as_ptr(), SOME.as_ptr(), [16, 64]), w.room);
        wrong CL_INVALID_VALUE "from nowhere" |w| write(w, w.queue, w.image, some(), null());
        wrong CL_INVALID_OPERATION "no images on the device" |w| write(w, w.wide_bare_queue, w.wide_image, some(), w.room);
        wrong CL_INVALID_OPERATION "what the host must not write" |w| write(w, w.queue, w.unwritable_image, some(), w.room);
        never CL_INVALID_IMAGE_SIZE "devices with images have the same limits";
        never CL_IMAGE_FORMAT_NOT_SUPPORTED "devices with images have the same formats";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
    }
    clEnqueueFillImage {
        command |w, q, n, list| go!(w.clEnqueueFillImage(q, w.image, w.room, ORIGIN.as_ptr(), SOME.as_ptr(), n, list, null_mut()));
        handle CL_INVALID_MEM_OBJECT |w, h| fill(w, w.queue, h.cast(), some(), w.room);
        wrong CL_INVALID_MEM_OBJECT "a buffer" |w| fill(w, w.queue, w.buffer, some(), w.room);
        wrong CL_INVALID_CONTEXT "another context's image" |w| fill(w, w.queue, w.far_image, some(), w.room);
        wrong CL_INVALID_VALUE "no colour" |w| fill(w, w.queue, w.image, some(), null());
        wrong CL_INVALID_VALUE "no region" |w| fill(w, w.queue, w.image, Part(ORIGIN.as_ptr(), null(), [0; 2]), w.room);
        wrong CL_INVALID_VALUE "beyond the end" |w| fill(w, w.queue, w.image, Part(ORIGIN.as_ptr(), MANY.as_ptr(), [0; 2]), w.room);
        wrong CL_INVALID_OPERATION "no images on the device" |w| fill(w, w.wide_bare_queue, w.wide_image, some(), w.room);
        never CL_INVALID_IMAGE_SIZE "devices with images have the same limits";
        never CL_IMAGE_FORMAT_NOT_SUPPORTED "devices with images have the same formats";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
    }
    clEnqueueCopyImage {
        command |w, q, n, list| go!(w.clEnqueueCopyImage(q, w.image, w.images, ORIGIN.as_ptr(), ORIGIN.as_ptr(), SOME.as_ptr(), n, list, null_mut()));
        right |w| copy(w, w.queue, [w.image, w.image], some(), [4, 0, 0].as_ptr());
        handle CL_INVALID_MEM_OBJECT |w, h| copy(w, w.queue, [h.cast(), w.image], some(), ORIGIN.as_ptr());
        handle CL_INVALID_MEM_OBJECT |w, h| copy(w, w.queue, [w.image, h.cast()], some(), ORIGIN.as_ptr());
        wrong CL_INVALID_MEM_OBJECT "a buffer" |w| copy(w, w.queue, [w.image, w.buffer], some(), ORIGIN.as_ptr());
        wrong CL_INVALID_CONTEXT "another context's image" |w| copy(w, w.queue, [w.image, w.far_image], some(), ORIGIN.as_ptr());
        wrong CL_IMAGE_FORMAT_MISMATCH "of two formats" |w| copy(w, w.queue, [w.image, w.float_image], some(), ORIGIN.as_ptr());
        wrong CL_INVALID_VALUE "no first origin" |w| copy(w, w.queue, [w.image, w.images], Part(null(), SOME.as_ptr(), [0; 2]), ORIGIN.as_ptr());
        wrong CL_INVALID_VALUE "no second origin" |w| copy(w, w.queue, [w.image, w.images], some(), null());
        wrong CL_INVALID_VALUE "no region" |w| copy(w, w.queue, [w.image, w.images], Part(ORIGIN.as_ptr(), null(), [0; 2]), ORIGIN.as_ptr());
        wrong CL_INVALID_VALUE "beyond the second's end" |w| copy(w, w.queue, [w.image, w.images], some(), [5, 0, 0].as_ptr());
        wrong CL_MEM_COPY_OVERLAP "in one image" |w| copy(w, w.queue, [w.image, w.image], some(), [3, 0, 0].as_ptr());
        wrong CL_INVALID_OPERATION "no images on the device" |w| copy(w, w.wide_bare_queue, [w.wide_image, w.wide_image], some(), [4, 0, 0].as_ptr());
        never CL_INVALID_IMAGE_SIZE "devices with images have the same limits";
        never CL_IMAGE_FORMAT_NOT_SUPPORTED "devices with images have the same formats";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
    }
    clEnqueueCopyImageToBuffer {
        command |w, q, n, list| go!(w.clEnqueueCopyImageToBuffer(q, w.image, w.buffer, ORIGIN.as_ptr(), SOME.as_ptr(), 0, n, list, null_mut()));
        handle CL_INVALID_MEM_OBJECT |w, h| to_buffer(w, w.queue, [h.cast(), w.buffer], some(), 0);
        handle CL_INVALID_MEM_OBJECT |w, h| to_buffer(w, w.queue, [w.image, h.cast()], some(), 0);
        wrong CL_INVALID_MEM_OBJECT "its own buffer" |w| to_buffer(w, w.queue, [w.buffer_image, w.buffer], Part(ORIGIN.as_ptr(), [4, 1, 1].as_ptr(), [0; 2]), 0);
        wrong CL_INVALID_CONTEXT "another context's buffer" |w| to_buffer(w, w.queue, [w.image, w.far_buffer], some(), 0);
        wrong CL_INVALID_CONTEXT "another context's image" |w| to_buffer(w, w.queue, [w.far_image, w.buffer], some(), 0);
        wrong CL_INVALID_VALUE "no origin" |w| to_buffer(w, w.queue, [w.image, w.buffer], Part(null(), SOME.as_ptr(), [0; 2]), 0);
        wrong CL_INVALID_VALUE "beyond the image's end" |w| to_buffer(w, w.queue, [w.image, w.buffer], Part(ORIGIN.as_ptr(), MANY.as_ptr(), [0; 2]), 0);
        wrong CL_INVALID_VALUE "beyond the buffer's end" |w| to_buffer(w, w.queue, [w.image, w.buffer], some(), 193);
        wrong CL_INVALID_OPERATION "no images on the device" |w| to_buffer(w, w.wide_bare_queue, [w.wide_image, w.wide_buffer], some(), 0);
        never CL_MISALIGNED_SUB_BUFFER_OFFSET "all devices have one alignment, and no part is made that breaks it";
        never CL_INVALID_IMAGE_SIZE "devices with images have the same limits";
        never CL_IMAGE_FORMAT_NOT_SUPPORTED "devices with images have the same formats";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
    }
    clEnqueueCopyBufferToImage {
        command |w, q, n, list| go!(w.clEnqueueCopyBufferToImage(q, w.buffer, w.image, 0, ORIGIN.as_ptr(), SOME.as_ptr(), n, list, null_mut()));
        handle CL_INVALID_MEM_OBJECT |w, h| from_buffer(w, w.queue, [h.cast(), w.image], some(), 0);
        handle CL_INVALID_MEM_OBJECT |w, h| from_buffer(w, w.queue, [w.buffer, h.cast()], some(), 0);
        wrong CL_INVALID_MEM_OBJECT "its own buffer" |w| from_buffer(w, w.queue, [w.buffer, w.buffer_image], Part(ORIGIN.as_ptr(), [4, 1, 1].as_ptr(), [0; 2]), 0);
        wrong CL_INVALID_CONTEXT "another context's buffer" |w| from_buffer(w, w.queue, [w.far_buffer, w.image], some(), 0);
        wrong CL_INVALID_VALUE "no region" |w| from_buffer(w, w.queue, [w.buffer, w.image], Part(ORIGIN.as_ptr(), null(), [0; 2]), 0);
        wrong CL_INVALID_VALUE "beyond the image's end" |w| from_buffer(w, w.queue, [w.buffer, w.image], Part(ORIGIN.as_ptr(), MANY.as_ptr(), [0; 2]), 0);
        wrong CL_INVALID_VALUE "beyond the buffer's end" |w| from_buffer(w, w.queue, [w.buffer, w.image], some(), 193);
        wrong CL_INVALID_OPERATION "no images on the device" |w| from_buffer(w, w.wide_bare_queue, [w.wide_buffer, w.wide_image], some(), 0);
        never CL_MISALIGNED_SUB_BUFFER_OFFSET "all devices have one alignment, and no part is made that breaks it";
        never CL_INVALID_IMAGE_SIZE "devices with images have the same limits";
        never CL_IMAGE_FORMAT_NOT_SUPPORTED "devices with images have the same formats";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
    }
    clEnqueueMapImage {
        blocking |w, q, n, list| map(w, q, w.image, CL_MAP_READ, some(), [true; 2], (n, list));
        right |w| map(w, w.queue, w.image, CL_MAP_READ, some(), [true, false], NO_WAIT);
        handle CL_INVALID_MEM_OBJECT |w, h| map_here(w, h.cast(), CL_MAP_READ, some());
        wrong CL_INVALID_MEM_OBJECT "a buffer" |w| map_here(w, w.buffer, CL_MAP_READ, some());
        wrong CL_INVALID_CONTEXT "another context's image" |w| map_here(w, w.far_image, CL_MAP_READ, some());
        wrong CL_INVALID_VALUE "no origin" |w| map_here(w, w.image, CL_MAP_READ, Part(null(), SOME.as_ptr(), [0; 2]));
        wrong CL_INVALID_VALUE "no region" |w| map_here(w, w.image, CL_MAP_READ, Part(ORIGIN.as_ptr(), null(), [0; 2]));
        wrong CL_INVALID_VALUE "beyond the end" |w| map_here(w, w.image, CL_MAP_READ, Part(ORIGIN.as_ptr(), MANY.as_ptr(), [0; 2]));
        wrong CL_INVALID_VALUE "unknown flags" |w| map_here(w, w.image, 1 << 20, some());
        wrong CL_INVALID_VALUE "no place for the pitch" |w| map(w, w.queue, w.image, CL_MAP_READ, some(), [false, true], NO_WAIT);
        wrong CL_INVALID_VALUE "no place for the slice's pitch" |w| map(w, w.queue, w.images, CL_MAP_READ, some(), [true, false], NO_WAIT);
        wrong CL_INVALID_OPERATION "no images on the device" |w| map(w, w.wide_bare_queue, w.wide_image, CL_MAP_READ, some(), [true; 2], NO_WAIT);
        wrong CL_INVALID_OPERATION "what the host must not read" |w| map_here(w, w.unreadable_image, CL_MAP_READ, some());
        wrong CL_INVALID_OPERATION "what the host must not write" |w| map_here(w, w.unwritable_image, CL_MAP_WRITE, some());
        wrong CL_INVALID_OPERATION "what is mapped for writing" |w| map_again(w);
        never CL_INVALID_IMAGE_SIZE "devices with images have the same limits";
        never CL_IMAGE_FORMAT_NOT_SUPPORTED "devices with images have the same formats";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
        never CL_MAP_FAILURE "the host sees the device's memory";
    }
    clCreateSampler {
        right |w| sampler(w, CL_ADDRESS_CLAMP, CL_FILTER_LINEAR);
        handle CL_INVALID_CONTEXT |w, h| make!(w.clCreateSampler(h.cast(), CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST) clReleaseSampler);
        wrong CL_INVALID_VALUE "no such addressing" |w| sampler(w, 0, CL_FILTER_LINEAR);
        wrong CL_INVALID_VALUE "no such filter" |w| sampler(w, CL_ADDRESS_CLAMP, 0);
        wrong CL_INVALID_VALUE "texels do not repeat" |w| sampler(w, CL_ADDRESS_REPEAT, CL_FILTER_LINEAR);
        wrong CL_INVALID_OPERATION "no device has images" |w| make!(w.clCreateSampler(w.bare_context, CL_FALSE, CL_ADDRESS_NONE, CL_FILTER_NEAREST) clReleaseSampler);
    }
    clCreateSamplerWithProperties {
        right |w| sampler_with(w, w.context, &[FILTER, LINEAR, 0]);
        handle CL_INVALID_CONTEXT |w, h| sampler_with(w, h.cast(), &[0]);
        wrong CL_INVALID_VALUE "an unknown name" |w| sampler_with(w, w.context, &[0xFFFF, 0, 0]);
        wrong CL_INVALID_VALUE "a wrong value" |w| sampler_with(w, w.context, &[FILTER, 0, 0]);
        wrong CL_INVALID_VALUE "a name twice" |w| sampler_with(w, w.context, &[FILTER, LINEAR, FILTER, LINEAR, 0]);
        wrong CL_INVALID_OPERATION "no device has images" |w| sampler_with(w, w.bare_context, &[0]);
    }
    clRetainSampler {
        right |w| go!(w.clRetainSampler(w.sampler));
        handle CL_INVALID_SAMPLER |w, h| go!(w.clRetainSampler(h.cast()));
    }
    clReleaseSampler {
        right |w| go!(w.clReleaseSampler(w.sampler));
        handle CL_INVALID_SAMPLER |w, h| go!(w.clReleaseSampler(h.cast()));
    }
    clGetSamplerInfo {
        handle CL_INVALID_SAMPLER |w, h| go!(w.clGetSamplerInfo(h.cast(), CL_SAMPLER_CONTEXT, 0, null_mut(), null_mut()));
        query CL_SAMPLER_CONTEXT |w, q, s, v, n| go!(w.clGetSamplerInfo(w.sampler, q, s, v, n));
    }
}
