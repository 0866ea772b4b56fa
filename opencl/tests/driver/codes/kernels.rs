//! Kernels, their arguments, launches.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use super::frame::{go, make, rows};
use super::world::World;
use visa_jit_opencl::abi::*;

unsafe extern "C" fn native(_: *mut c_void) {}

fn kernel(w: &World, program: cl_program, name: *const std::ffi::c_char) -> cl_int {
    make!(w.clCreateKernel(program, name) clReleaseKernel)
}

/// A program whose kernels of one name are of two sources.
fn of_two_sources(w: &World) -> cl_int {
    let zebins = [super::world::zebin("skl/saxpy"), super::programs::renamed()];
    let (lens, mut places) = (
        zebins.each_ref().map(Vec::len),
        zebins.each_ref().map(|z| z.as_ptr()),
    );
    let mut code = 1;
    let devices = [w.device, w.bare];
    let program = go!(w.clCreateProgramWithBinary(
        w.wide,
        2,
        devices.as_ptr(),
        lens.as_ptr(),
        places.as_mut_ptr(),
        null_mut(),
        &mut code
    ));
    assert_eq!(code, 0);
    assert_eq!(
        go!(w.clBuildProgram(program, 0, null(), null(), None, null_mut())),
        0
    );
    let code = kernel(w, program, c"saxpy".as_ptr());
    assert_eq!(go!(w.clReleaseProgram(program)), 0);
    code
}

fn run(
    w: &World,
    q: cl_command_queue,
    kernel: cl_kernel,
    dimensions: cl_uint,
    sizes: [*const usize; 3],
) -> cl_int {
    let [offset, global, local] = sizes;
    go!(w.clEnqueueNDRangeKernel(
        q,
        kernel,
        dimensions,
        offset,
        global,
        local,
        0,
        null(),
        null_mut()
    ))
}

fn run_sizes(w: &World, offset: usize, global: usize, local: usize) -> cl_int {
    run(w, w.queue, w.kernel, 1, [&offset, &global, &local])
}

static SIXTEEN: usize = 16;
/// What `CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM` is set to.
static ALL_MEMORY: cl_bool = CL_TRUE;
fn plain() -> [*const usize; 3] {
    [null(), &SIXTEEN, null()]
}

fn task(w: &World, q: cl_command_queue, kernel: cl_kernel) -> cl_int {
    go!(w.clEnqueueTask(q, kernel, 0, null(), null_mut()))
}

fn info(w: &World, kernel: cl_kernel, device: cl_device_id) -> cl_int {
    go!(w.clGetKernelWorkGroupInfo(
        kernel,
        device,
        CL_KERNEL_WORK_GROUP_SIZE,
        8,
        w.room,
        null_mut()
    ))
}

fn sub_groups(
    w: &World,
    kernel: cl_kernel,
    device: cl_device_id,
    query: cl_uint,
    size: usize,
) -> cl_int {
    go!(w.clGetKernelSubGroupInfo(
        kernel,
        device,
        query,
        size,
        (&raw const SIXTEEN).cast(),
        8,
        w.room,
        null_mut()
    ))
}

fn sub_groups_khr(
    w: &World,
    kernel: cl_kernel,
    device: cl_device_id,
    query: cl_uint,
    size: usize,
) -> cl_int {
    go!(w.clGetKernelSubGroupInfoKHR(
        kernel,
        device,
        query,
        size,
        (&raw const SIXTEEN).cast(),
        8,
        w.room,
        null_mut()
    ))
}

const COUNT: u32 = CL_KERNEL_SUB_GROUP_COUNT_FOR_NDRANGE;

/// Asks for an argument of a kernel that was built from source, with or without `-cl-kernel-arg-info`.
fn argument_of(w: &World, options: &std::ffi::CStr, index: u32) -> cl_int {
    let mut code = 1;
    let program = w.source(w.context, c"kernel void set(global int *a) { *a = 1; }");
    assert_eq!(
        go!(w.clBuildProgram(program, 0, null(), options.as_ptr(), None, null_mut())),
        0
    );
    let kernel = go!(w.clCreateKernel(program, c"set".as_ptr(), &mut code));
    assert_eq!(code, 0);
    let code =
        go!(w.clGetKernelArgInfo(kernel, index, CL_KERNEL_ARG_NAME, 4096, w.room, null_mut()));
    assert_eq!(
        (
            go!(w.clReleaseKernel(kernel)),
            go!(w.clReleaseProgram(program))
        ),
        (0, 0)
    );
    code
}

rows! {
    clCreateKernel {
        right |w| kernel(w, w.program, c"saxpy".as_ptr());
        handle CL_INVALID_PROGRAM |w, h| kernel(w, h.cast(), c"saxpy".as_ptr());
        wrong CL_INVALID_PROGRAM_EXECUTABLE "not built" |w| kernel(w, w.unbuilt, c"nothing".as_ptr());
        wrong CL_INVALID_KERNEL_NAME "no such kernel" |w| kernel(w, w.program, c"nothing".as_ptr());
        wrong CL_INVALID_VALUE "no name" |w| kernel(w, w.program, null());
        wrong CL_INVALID_KERNEL_DEFINITION "two kernels of one name" |w| of_two_sources(w);
    }
    clCreateKernelsInProgram {
        right |w| go!(w.clCreateKernelsInProgram(w.program, 0, null_mut(), &mut 0));
        handle CL_INVALID_PROGRAM |w, h| go!(w.clCreateKernelsInProgram(h.cast(), 0, null_mut(), &mut 0));
        wrong CL_INVALID_PROGRAM_EXECUTABLE "not built" |w| go!(w.clCreateKernelsInProgram(w.unbuilt, 0, null_mut(), &mut 0));
        wrong CL_INVALID_VALUE "too few places" |w| go!(w.clCreateKernelsInProgram(w.program, 1, w.room.cast(), null_mut()));
    }
    clCloneKernel {
        right |w| make!(w.clCloneKernel(w.kernel) clReleaseKernel);
        handle CL_INVALID_KERNEL |w, h| make!(w.clCloneKernel(h.cast()) clReleaseKernel);
    }
    clRetainKernel {
        right |w| go!(w.clRetainKernel(w.kernel));
        handle CL_INVALID_KERNEL |w, h| go!(w.clRetainKernel(h.cast()));
    }
    clReleaseKernel {
        right |w| go!(w.clReleaseKernel(w.kernel));
        handle CL_INVALID_KERNEL |w, h| go!(w.clReleaseKernel(h.cast()));
    }
    clSetKernelArg {
        right |w| w.set(w.kernel, 0, &w.buffer);
        right |w| w.set(w.image_kernel, 0, &w.write_only);
        right |w| w.set(w.reading_kernel, 1, &w.read_only);
        right |w| w.set(w.sampling_kernel, 2, &w.sampler);
        right |w| go!(w.clSetKernelArg(w.local_kernel, 2, 64, null()));
        handle CL_INVALID_KERNEL |w, h| w.set(h.cast(), 0, &w.buffer);
        handle CL_INVALID_SAMPLER |w, h| w.set(w.sampling_kernel, 2, &h);
        wrong CL_INVALID_ARG_INDEX "no such argument" |w| w.set(w.kernel, 3, &w.buffer);
        wrong CL_INVALID_CONTEXT "another context's buffer" |w| w.set(w.kernel, 0, &w.far_buffer);
        wrong CL_INVALID_CONTEXT "another context's image" |w| w.set(w.image_kernel, 0, &w.far_image);
        wrong CL_INVALID_CONTEXT "another context's sampler" |w| w.set(w.sampling_kernel, 2, &w.far_sampler);
        wrong CL_INVALID_MEM_OBJECT "a queue as buffer" |w| w.set(w.kernel, 0, &w.queue);
        wrong CL_INVALID_MEM_OBJECT "an image as buffer" |w| w.set(w.kernel, 0, &w.image);
        wrong CL_INVALID_MEM_OBJECT "a buffer as image" |w| w.set(w.image_kernel, 0, &w.buffer);
        wrong CL_INVALID_MEM_OBJECT "an image of another kind" |w| w.set(w.image_kernel, 0, &w.images);
        wrong CL_INVALID_MEM_OBJECT "no image" |w| w.set(w.image_kernel, 0, &null_mut::<c_void>());
        wrong CL_INVALID_MEM_OBJECT "no value" |w| go!(w.clSetKernelArg(w.image_kernel, 0, 8, null()));
        wrong CL_INVALID_ARG_SIZE "half a buffer" |w| w.set(w.kernel, 0, &1_u32);
        wrong CL_INVALID_ARG_SIZE "half a sampler" |w| w.set(w.sampling_kernel, 2, &1_u32);
        wrong CL_INVALID_ARG_SIZE "a double as float" |w| w.set(w.kernel, 2, &1.0_f64);
        wrong CL_INVALID_ARG_SIZE "no local memory" |w| go!(w.clSetKernelArg(w.local_kernel, 2, 0, null()));
        wrong CL_INVALID_ARG_VALUE "no number" |w| go!(w.clSetKernelArg(w.kernel, 2, 4, null()));
        wrong CL_INVALID_ARG_VALUE "a value for local memory" |w| w.set(w.local_kernel, 2, &1_u64);
        wrong CL_INVALID_ARG_VALUE "to write what must not be written" |w| w.set(w.image_kernel, 0, &w.read_only);
        wrong CL_INVALID_ARG_VALUE "to read what must not be read" |w| w.set(w.reading_kernel, 1, &w.write_only);
        never CL_INVALID_DEVICE_QUEUE "the compiler takes no kernel with a queue, since devices have none";
        never CL_MAX_SIZE_RESTRICTION_EXCEEDED "the compiler has no attribute that restricts sizes";
    }
    clSetKernelArgSVMPointer {
        right |w| go!(w.clSetKernelArgSVMPointer(w.unset, 0, w.shared));
        handle CL_INVALID_KERNEL |w, h| go!(w.clSetKernelArgSVMPointer(h.cast(), 0, w.shared));
        wrong CL_INVALID_ARG_INDEX "no such argument" |w| go!(w.clSetKernelArgSVMPointer(w.unset, 3, w.shared));
        wrong CL_INVALID_ARG_VALUE "what is not shared" |w| go!(w.clSetKernelArgSVMPointer(w.unset, 0, w.room));
        wrong CL_INVALID_ARG_VALUE "no pointer in the source" |w| go!(w.clSetKernelArgSVMPointer(w.unset, 2, w.shared));
        never CL_INVALID_OPERATION "all devices have shared memory";
    }
    clSetKernelExecInfo {
        right |w| go!(w.clSetKernelExecInfo(w.kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 8, (&raw const w.shared).cast()));
        right |w| go!(w.clSetKernelExecInfo(w.kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 0, null()));
        handle CL_INVALID_KERNEL |w, h| go!(w.clSetKernelExecInfo(h.cast(), CL_KERNEL_EXEC_INFO_SVM_PTRS, 8, (&raw const w.shared).cast()));
        wrong CL_INVALID_OPERATION "all memory of the host" |w| go!(w.clSetKernelExecInfo(w.kernel, CL_KERNEL_EXEC_INFO_SVM_FINE_GRAIN_SYSTEM, 4, (&raw const ALL_MEMORY).cast()));
        wrong CL_INVALID_VALUE "an unknown name" |w| go!(w.clSetKernelExecInfo(w.kernel, 0xFFFF, 8, w.room));
        wrong CL_INVALID_VALUE "no list" |w| go!(w.clSetKernelExecInfo(w.kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 8, null()));
        wrong CL_INVALID_VALUE "half a pointer" |w| go!(w.clSetKernelExecInfo(w.kernel, CL_KERNEL_EXEC_INFO_SVM_PTRS, 4, w.room));
    }
    clGetKernelInfo {
        handle CL_INVALID_KERNEL |w, h| go!(w.clGetKernelInfo(h.cast(), CL_KERNEL_NUM_ARGS, 0, null_mut(), null_mut()));
        query CL_KERNEL_NUM_ARGS |w, q, s, v, n| go!(w.clGetKernelInfo(w.kernel, q, s, v, n));
    }
    clGetKernelWorkGroupInfo {
        right |w| info(w, w.kernel, null_mut());
        handle CL_INVALID_KERNEL |w, h| info(w, h.cast(), w.device);
        wrong CL_INVALID_DEVICE "another context's device" |w| info(w, w.kernel, w.bare);
        wrong CL_INVALID_DEVICE "a queue as device" |w| info(w, w.kernel, w.queue.cast());
        wrong CL_INVALID_VALUE "not built in" |w| go!(w.clGetKernelWorkGroupInfo(w.kernel, w.device, CL_KERNEL_GLOBAL_WORK_SIZE, 24, w.room, null_mut()));
        query CL_KERNEL_WORK_GROUP_SIZE |w, q, s, v, n| go!(w.clGetKernelWorkGroupInfo(w.kernel, w.device, q, s, v, n));
    }
    clGetKernelSubGroupInfo {
        right |w| sub_groups(w, w.kernel, w.device, COUNT, 8);
        handle CL_INVALID_KERNEL |w, h| sub_groups(w, h.cast(), w.device, COUNT, 8);
        wrong CL_INVALID_DEVICE "another context's device" |w| sub_groups(w, w.kernel, w.bare, COUNT, 8);
        wrong CL_INVALID_VALUE "half a size" |w| sub_groups(w, w.kernel, w.device, COUNT, 4);
        wrong CL_INVALID_VALUE "no size" |w| go!(w.clGetKernelSubGroupInfo(w.kernel, w.device, COUNT, 8, null(), 8, w.room, null_mut()));
        query CL_KERNEL_MAX_NUM_SUB_GROUPS |w, q, s, v, n| go!(w.clGetKernelSubGroupInfo(w.kernel, w.device, q, 0, null(), s, v, n));
        never CL_INVALID_OPERATION "all devices have sub-groups";
    }
    clGetKernelSubGroupInfoKHR {
        right |w| sub_groups_khr(w, w.kernel, w.device, COUNT, 8);
        handle CL_INVALID_KERNEL |w, h| sub_groups_khr(w, h.cast(), w.device, COUNT, 8);
        wrong CL_INVALID_DEVICE "another context's device" |w| sub_groups_khr(w, w.kernel, w.bare, COUNT, 8);
        wrong CL_INVALID_VALUE "half a size" |w| sub_groups_khr(w, w.kernel, w.device, COUNT, 4);
        query CL_KERNEL_MAX_NUM_SUB_GROUPS |w, q, s, v, n| go!(w.clGetKernelSubGroupInfoKHR(w.kernel, w.device, q, 0, null(), s, v, n));
        never CL_INVALID_OPERATION "all devices have sub-groups";
    }
    clGetKernelArgInfo {
        handle CL_INVALID_KERNEL |w, h| go!(w.clGetKernelArgInfo(h.cast(), 0, CL_KERNEL_ARG_NAME, 0, null_mut(), null_mut()));
        compiled |w| argument_of(w, c"-cl-kernel-arg-info", 0);
        refused CL_KERNEL_ARG_INFO_NOT_AVAILABLE "not asked for when it was built" |w| argument_of(w, c"", 0);
        wrong CL_INVALID_ARG_INDEX "no such argument" |w| go!(w.clGetKernelArgInfo(w.kernel, 3, CL_KERNEL_ARG_NAME, 0, null_mut(), null_mut()));
        query CL_KERNEL_ARG_NAME |w, q, s, v, n| go!(w.clGetKernelArgInfo(w.reading_kernel, 1, q, s, v, n));
    }
    clEnqueueNDRangeKernel {
        command |w, q, n, list| go!(w.clEnqueueNDRangeKernel(q, w.kernel, 1, null(), &SIXTEEN, null(), n, list, null_mut()));
        right |w| run_sizes(w, 0, 0, 8);
        handle CL_INVALID_KERNEL |w, h| run(w, w.queue, h.cast(), 1, plain());
        wrong CL_INVALID_PROGRAM_EXECUTABLE "not built for the device" |w| run(w, w.wide_bare_queue, w.wide_kernel, 1, plain());
        wrong CL_INVALID_CONTEXT "another context's kernel" |w| run(w, w.queue, w.far_kernel, 1, plain());
        wrong CL_INVALID_KERNEL_ARGS "arguments are not set" |w| run(w, w.queue, w.image_kernel, 1, plain());
        wrong CL_INVALID_WORK_DIMENSION "no dimensions" |w| run(w, w.queue, w.kernel, 0, plain());
        wrong CL_INVALID_WORK_DIMENSION "four dimensions" |w| run(w, w.queue, w.kernel, 4, plain());
        wrong CL_INVALID_GLOBAL_OFFSET "beyond all numbers" |w| run_sizes(w, usize::MAX, 16, 16);
        wrong CL_INVALID_GLOBAL_WORK_SIZE "more than can be counted" |w| run_sizes(w, 0, usize::MAX, 1);
        wrong CL_INVALID_WORK_GROUP_SIZE "no group" |w| run_sizes(w, 0, 16, 0);
        wrong CL_INVALID_WORK_GROUP_SIZE "a large group" |w| run(w, w.queue, w.kernel, 2, [null(), [64, 64].as_ptr(), [64, 64].as_ptr()]);
        wrong CL_INVALID_WORK_GROUP_SIZE "not the size in the source" |w| run(w, w.queue, w.grouped_kernel, 1, [null(), &SIXTEEN, &SIXTEEN]);
        wrong CL_INVALID_WORK_ITEM_SIZE "a long group" |w| run_sizes(w, 0, 4096, 4096);
        never CL_MISALIGNED_SUB_BUFFER_OFFSET "all devices have one alignment, and no part is made that breaks it";
        never CL_INVALID_IMAGE_SIZE "devices with images have the same limits";
        never CL_IMAGE_FORMAT_NOT_SUPPORTED "devices with images have the same formats";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
        never CL_INVALID_OPERATION "all devices have shared memory, and a pointer to other memory is refused when it is set";
    }
    clEnqueueTask {
        command |w, q, n, list| go!(w.clEnqueueTask(q, w.kernel, n, list, null_mut()));
        handle CL_INVALID_KERNEL |w, h| task(w, w.queue, h.cast());
        wrong CL_INVALID_PROGRAM_EXECUTABLE "not built for the device" |w| task(w, w.wide_bare_queue, w.wide_kernel);
        wrong CL_INVALID_CONTEXT "another context's kernel" |w| task(w, w.queue, w.far_kernel);
        wrong CL_INVALID_KERNEL_ARGS "arguments are not set" |w| task(w, w.queue, w.image_kernel);
        wrong CL_INVALID_WORK_GROUP_SIZE "larger groups in the source" |w| task(w, w.queue, w.grouped_kernel);
        never CL_MISALIGNED_SUB_BUFFER_OFFSET "all devices have one alignment, and no part is made that breaks it";
        never CL_INVALID_IMAGE_SIZE "devices with images have the same limits";
        never CL_IMAGE_FORMAT_NOT_SUPPORTED "devices with images have the same formats";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
        never CL_INVALID_OPERATION "all devices have shared memory, and a pointer to other memory is refused when it is set";
    }
    clEnqueueNativeKernel {
        handle CL_INVALID_COMMAND_QUEUE |w, h| go!(w.clEnqueueNativeKernel(h.cast(), Some(native), null_mut(), 0, 0, null(), null_mut(), 0, null(), null_mut()));
        wrong CL_INVALID_CONTEXT "another context's event" |w| go!(w.clEnqueueNativeKernel(w.queue, Some(native), null_mut(), 0, 0, null(), null_mut(), 1, &w.far_done, null_mut()));
        wrong CL_INVALID_EVENT_WAIT_LIST "no list" |w| go!(w.clEnqueueNativeKernel(w.queue, Some(native), null_mut(), 0, 0, null(), null_mut(), 1, null(), null_mut()));
        wrong CL_INVALID_VALUE "no function" |w| go!(w.clEnqueueNativeKernel(w.queue, None, null_mut(), 0, 0, null(), null_mut(), 0, null(), null_mut()));
        wrong CL_INVALID_VALUE "no arguments" |w| go!(w.clEnqueueNativeKernel(w.queue, Some(native), null_mut(), 8, 0, null(), null_mut(), 0, null(), null_mut()));
        wrong CL_INVALID_VALUE "empty arguments" |w| go!(w.clEnqueueNativeKernel(w.queue, Some(native), w.room, 0, 0, null(), null_mut(), 0, null(), null_mut()));
        wrong CL_INVALID_VALUE "no places for buffers" |w| go!(w.clEnqueueNativeKernel(w.queue, Some(native), w.room, 8, 1, &w.buffer, null_mut(), 0, null(), null_mut()));
        wrong CL_INVALID_VALUE "no buffers" |w| go!(w.clEnqueueNativeKernel(w.queue, Some(native), w.room, 8, 0, &w.buffer, null_mut(), 0, null(), null_mut()));
        wrong CL_INVALID_MEM_OBJECT "an image" |w| go!(w.clEnqueueNativeKernel(w.queue, Some(native), w.room, 8, 1, &w.image, &mut w.room.cast_const(), 0, null(), null_mut()));
        wrong CL_INVALID_OPERATION "devices cannot" |w| go!(w.clEnqueueNativeKernel(w.queue, Some(native), w.room, 8, 1, &w.buffer, &mut w.room.cast_const(), 0, null(), null_mut()));
        never CL_SUCCESS "devices say that they cannot";
        never CL_MEM_OBJECT_ALLOCATION_FAILURE "objects have memory since they were made";
    }
}
