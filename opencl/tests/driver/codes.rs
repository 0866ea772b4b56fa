//! Error codes of the specification: wrong handles and wrong arguments, one row each.

use std::ffi::c_void;
use std::ptr::{dangling_mut, null, null_mut};

use visa_jit_opencl::abi::*;
use visa_jit_opencl::api::{
    context, device, enqueue, event, image, kernel, mem, platform, program, queue,
};

use super::{Rig, SUCCESS, set};

/// A function that takes a handle and nothing else that matters, as it is called with one.
type WithHandle = (&'static str, cl_int, fn(*mut c_void) -> cl_int);

/// Calls a function of C and gives its code.
macro_rules! with {
    ($code:ident, $($function:ident)::+ ( $handle:ident as $ty:ty $(, $arg:expr)* )) => {
        (
            stringify!($($function)::+),
            $code,
            // SAFETY: a wrong handle is answered by a code; the other arguments are as the specification allows.
            |$handle: *mut c_void| unsafe { $($function)::+($handle as $ty $(, $arg)*) },
        )
    };
}

/// Entry points, with the code for what is no handle of their kind.
const HANDLES: &[WithHandle] = &[
    with!(
        CL_INVALID_PLATFORM,
        platform::clGetPlatformInfo(
            h as cl_platform_id,
            CL_PLATFORM_NAME,
            0,
            null_mut(),
            null_mut()
        )
    ),
    with!(
        CL_INVALID_PLATFORM,
        device::clGetDeviceIDs(
            h as cl_platform_id,
            u64::from(CL_DEVICE_TYPE_ALL),
            0,
            null_mut(),
            &mut 0
        )
    ),
    with!(
        CL_INVALID_DEVICE,
        device::clGetDeviceInfo(h as cl_device_id, CL_DEVICE_NAME, 0, null_mut(), null_mut())
    ),
    with!(CL_INVALID_DEVICE, device::clRetainDevice(h as cl_device_id)),
    with!(
        CL_INVALID_DEVICE,
        device::clReleaseDevice(h as cl_device_id)
    ),
    with!(
        CL_INVALID_CONTEXT,
        context::clRetainContext(h as cl_context)
    ),
    with!(
        CL_INVALID_CONTEXT,
        context::clReleaseContext(h as cl_context)
    ),
    with!(
        CL_INVALID_CONTEXT,
        context::clGetContextInfo(
            h as cl_context,
            CL_CONTEXT_NUM_DEVICES,
            0,
            null_mut(),
            null_mut()
        )
    ),
    with!(
        CL_INVALID_COMMAND_QUEUE,
        queue::clRetainCommandQueue(h as cl_command_queue)
    ),
    with!(
        CL_INVALID_COMMAND_QUEUE,
        queue::clReleaseCommandQueue(h as cl_command_queue)
    ),
    with!(
        CL_INVALID_COMMAND_QUEUE,
        queue::clGetCommandQueueInfo(
            h as cl_command_queue,
            CL_QUEUE_CONTEXT,
            0,
            null_mut(),
            null_mut()
        )
    ),
    with!(
        CL_INVALID_COMMAND_QUEUE,
        queue::clFlush(h as cl_command_queue)
    ),
    with!(
        CL_INVALID_COMMAND_QUEUE,
        queue::clFinish(h as cl_command_queue)
    ),
    with!(
        CL_INVALID_COMMAND_QUEUE,
        enqueue::clEnqueueBarrier(h as cl_command_queue)
    ),
    with!(
        CL_INVALID_COMMAND_QUEUE,
        enqueue::clEnqueueMarkerWithWaitList(h as cl_command_queue, 0, null(), null_mut())
    ),
    with!(
        CL_INVALID_COMMAND_QUEUE,
        enqueue::clEnqueueBarrierWithWaitList(h as cl_command_queue, 0, null(), null_mut())
    ),
    with!(CL_INVALID_MEM_OBJECT, mem::clRetainMemObject(h as cl_mem)),
    with!(CL_INVALID_MEM_OBJECT, mem::clReleaseMemObject(h as cl_mem)),
    with!(
        CL_INVALID_MEM_OBJECT,
        mem::clGetMemObjectInfo(h as cl_mem, CL_MEM_SIZE, 0, null_mut(), null_mut())
    ),
    with!(
        CL_INVALID_MEM_OBJECT,
        image::clGetImageInfo(h as cl_mem, CL_IMAGE_WIDTH, 0, null_mut(), null_mut())
    ),
    with!(CL_INVALID_SAMPLER, image::clRetainSampler(h as cl_sampler)),
    with!(CL_INVALID_SAMPLER, image::clReleaseSampler(h as cl_sampler)),
    with!(
        CL_INVALID_SAMPLER,
        image::clGetSamplerInfo(
            h as cl_sampler,
            CL_SAMPLER_CONTEXT,
            0,
            null_mut(),
            null_mut()
        )
    ),
    with!(
        CL_INVALID_PROGRAM,
        program::clRetainProgram(h as cl_program)
    ),
    with!(
        CL_INVALID_PROGRAM,
        program::clReleaseProgram(h as cl_program)
    ),
    with!(
        CL_INVALID_PROGRAM,
        program::clBuildProgram(h as cl_program, 0, null(), null(), None, null_mut())
    ),
    with!(
        CL_INVALID_PROGRAM,
        program::clGetProgramInfo(
            h as cl_program,
            CL_PROGRAM_CONTEXT,
            0,
            null_mut(),
            null_mut()
        )
    ),
    with!(
        CL_INVALID_PROGRAM,
        kernel::clCreateKernelsInProgram(h as cl_program, 0, null_mut(), null_mut())
    ),
    with!(CL_INVALID_KERNEL, kernel::clRetainKernel(h as cl_kernel)),
    with!(CL_INVALID_KERNEL, kernel::clReleaseKernel(h as cl_kernel)),
    with!(
        CL_INVALID_KERNEL,
        kernel::clSetKernelArg(h as cl_kernel, 0, 4, null())
    ),
    with!(
        CL_INVALID_KERNEL,
        kernel::clGetKernelInfo(
            h as cl_kernel,
            CL_KERNEL_NUM_ARGS,
            0,
            null_mut(),
            null_mut()
        )
    ),
    with!(CL_INVALID_EVENT, event::clRetainEvent(h as cl_event)),
    with!(CL_INVALID_EVENT, event::clReleaseEvent(h as cl_event)),
    with!(
        CL_INVALID_EVENT,
        event::clGetEventInfo(h as cl_event, CL_EVENT_CONTEXT, 0, null_mut(), null_mut())
    ),
    with!(
        CL_INVALID_EVENT,
        event::clGetEventProfilingInfo(
            h as cl_event,
            CL_PROFILING_COMMAND_START,
            0,
            null_mut(),
            null_mut()
        )
    ),
    with!(
        CL_INVALID_EVENT,
        event::clSetUserEventStatus(h as cl_event, 0)
    ),
];

/// Null, an address of something else, and the handle of an object of another kind.
#[test]
fn wrong_handles_are_codes() {
    let rig = Rig::new();
    let mut something = [0_u64; 32];
    let buffer = rig.buffer(&[0_u32; 4]);
    let mut tried = 0;
    for &(name, code, call) in HANDLES {
        let of_buffer = code == CL_INVALID_MEM_OBJECT;
        let other = if of_buffer {
            rig.context.cast()
        } else {
            buffer.cast()
        };
        // Loaders pass the null platform on: it is the only one.
        let null_is_wrong = code != CL_INVALID_PLATFORM;
        let wrong = [
            (null_mut(), null_is_wrong),
            (dangling_mut::<u64>().cast(), true),
            (something.as_mut_ptr().cast(), true),
            (other, true),
        ];
        for (handle, is_wrong) in wrong {
            if is_wrong {
                assert_eq!(call(handle), code, "{name} with {handle:?}");
                tried += 1;
            }
        }
    }
    println!("{} entry points, {tried} wrong handles", HANDLES.len());
    // SAFETY: it was made here; once gone, its handle is as wrong as any other.
    unsafe {
        assert_eq!(mem::clReleaseMemObject(buffer), SUCCESS);
        assert_eq!(mem::clReleaseMemObject(buffer), CL_INVALID_MEM_OBJECT);
    }
}

#[test]
fn wrong_arguments_of_kernels_are_codes() {
    let rig = Rig::new();
    let program = rig.program("saxpy");
    let kernel = rig.kernel(program, "saxpy");
    assert_eq!(rig.launch(kernel, 16, None), CL_INVALID_KERNEL_ARGS);
    let buffer = rig.buffer(&[0_f32; 16]);
    let nothing: cl_mem = null_mut();
    assert_eq!(set(kernel, 3, &buffer), CL_INVALID_ARG_INDEX);
    assert_eq!(set(kernel, 2, &1.0_f64), CL_INVALID_ARG_SIZE);
    assert_eq!(set(kernel, 0, &1_u32), CL_INVALID_ARG_SIZE);
    assert_eq!(set(kernel, 0, &rig.context), CL_INVALID_MEM_OBJECT);
    for index in [0, 1] {
        assert_eq!(set(kernel, index, &buffer), SUCCESS);
    }
    assert_eq!(set(kernel, 0, &nothing), SUCCESS);
    assert_eq!(set(kernel, 0, &buffer), SUCCESS);
    assert_eq!(set(kernel, 2, &2.0_f32), SUCCESS);
    assert_eq!(rig.launch(kernel, 16, Some(0)), CL_INVALID_WORK_GROUP_SIZE);
    assert_eq!(
        rig.launch(kernel, 4096, Some(4096)),
        CL_INVALID_WORK_ITEM_SIZE
    );
    assert_eq!(rig.launch(kernel, 16, Some(8)), SUCCESS);
    assert_eq!(rig.launch(kernel, 0, None), SUCCESS);
    let (mut code, sixteen) = (1, [16_usize; 4]);
    // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
    unsafe {
        for dimensions in [0, 4] {
            let launched = enqueue::clEnqueueNDRangeKernel(
                rig.queue,
                kernel,
                dimensions,
                null(),
                sixteen.as_ptr(),
                null(),
                0,
                null(),
                null_mut(),
            );
            assert_eq!(launched, CL_INVALID_WORK_DIMENSION);
        }
        let none = kernel::clCreateKernel(program, c"no_such_kernel".as_ptr(), &mut code);
        assert_eq!((none.is_null(), code), (true, CL_INVALID_KERNEL_NAME));
        let none = kernel::clCreateKernel(program, null(), &mut code);
        assert_eq!((none.is_null(), code), (true, CL_INVALID_VALUE));
        assert_eq!(kernel::clReleaseKernel(kernel), SUCCESS);
        assert_eq!(program::clReleaseProgram(program), SUCCESS);
        assert_eq!(mem::clReleaseMemObject(buffer), SUCCESS);
    }
}

#[test]
fn wrong_buffers_and_binaries_are_codes() {
    let rig = Rig::new();
    let buffer = rig.buffer(&[0_u8; 64]);
    let mut code = 1;
    let mut place = [0_u8; 64];
    // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
    unsafe {
        let none = mem::clCreateBuffer(rig.context, 0, 0, null_mut(), &mut code);
        assert_eq!((none.is_null(), code), (true, CL_INVALID_BUFFER_SIZE));
        let copied = u64::from(CL_MEM_COPY_HOST_PTR);
        let none = mem::clCreateBuffer(rig.context, copied, 4, null_mut(), &mut code);
        assert_eq!((none.is_null(), code), (true, CL_INVALID_HOST_PTR));
        let both = u64::from(CL_MEM_READ_ONLY | CL_MEM_WRITE_ONLY);
        let none = mem::clCreateBuffer(rig.context, both, 4, null_mut(), &mut code);
        assert_eq!((none.is_null(), code), (true, CL_INVALID_VALUE));
        let read = |offset, size, to: *mut c_void| {
            enqueue::clEnqueueReadBuffer(
                rig.queue,
                buffer,
                CL_TRUE,
                offset,
                size,
                to,
                0,
                null(),
                null_mut(),
            )
        };
        let to = place.as_mut_ptr().cast();
        assert_eq!(read(0, 64, to), SUCCESS);
        assert_eq!(read(1, 64, to), CL_INVALID_VALUE);
        assert_eq!(read(usize::MAX, 2, to), CL_INVALID_VALUE);
        assert_eq!(read(0, 0, to), CL_INVALID_VALUE);
        assert_eq!(read(0, 64, null_mut()), CL_INVALID_VALUE);
        let garbage = b"no zebin at all";
        let mut status = 1;
        let none = program::clCreateProgramWithBinary(
            rig.context,
            1,
            &rig.device,
            &garbage.len(),
            &mut garbage.as_ptr(),
            &mut status,
            &mut code,
        );
        assert_eq!(
            (none.is_null(), status, code),
            (true, CL_INVALID_BINARY, CL_INVALID_BINARY)
        );
        assert_eq!(mem::clReleaseMemObject(buffer), SUCCESS);
    }
}

/// The size of each answer is told, and too small a place is refused.
#[test]
fn queries_have_sizes() {
    let rig = Rig::new();
    let mut known = 0;
    for query in 0x1000..0x10C0 {
        let (mut needed, mut room) = (0_usize, vec![0_u8; 4096]);
        // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
        unsafe {
            let get = |size, to: *mut c_void, needed: *mut usize| {
                device::clGetDeviceInfo(rig.device, query, size, to, needed)
            };
            if get(0, null_mut(), &mut needed) != SUCCESS {
                continue;
            }
            known += 1;
            assert!(needed <= room.len(), "{query:#x}: {needed} bytes");
            assert_eq!(get(needed, room.as_mut_ptr().cast(), null_mut()), SUCCESS);
            if needed > 0 {
                let short = get(needed - 1, room.as_mut_ptr().cast(), null_mut());
                assert_eq!(short, CL_INVALID_VALUE, "{query:#x}");
            }
        }
    }
    assert!(known > 80, "{known} queries of devices");
}

/// What only the zebin says: variables of the program, and lanes that a kernel's source asks for.
#[test]
fn zebins_are_asked() {
    let rig = Rig::new();
    for (zebin, name, variables, lanes) in [
        ("global_state", "global_count", 16, 0),
        ("bits", "bits_upsample", 0, 16),
        ("saxpy", "saxpy", 0, 0),
    ] {
        let program = rig.program(zebin);
        let kernel = rig.kernel(program, name);
        let (mut total, mut size) = (usize::MAX, usize::MAX);
        // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
        unsafe {
            let told = program::clGetProgramBuildInfo(
                program,
                rig.device,
                CL_PROGRAM_BUILD_GLOBAL_VARIABLE_TOTAL_SIZE,
                size_of::<usize>(),
                (&raw mut total).cast(),
                null_mut(),
            );
            assert_eq!((told, total), (SUCCESS, variables), "{zebin}");
            let told = kernel::clGetKernelSubGroupInfo(
                kernel,
                rig.device,
                CL_KERNEL_COMPILE_SUB_GROUP_SIZE_INTEL,
                0,
                null(),
                size_of::<usize>(),
                (&raw mut size).cast(),
                null_mut(),
            );
            assert_eq!((told, size), (SUCCESS, lanes), "{zebin}");
            assert_eq!(kernel::clReleaseKernel(kernel), SUCCESS);
            assert_eq!(program::clReleaseProgram(program), SUCCESS);
        }
    }
}

/// Programs look for these words.
#[test]
fn names_say_whose_device_it_is() {
    let rig = Rig::new();
    let text = |get: &dyn Fn(usize, *mut c_void, *mut usize) -> cl_int| {
        let (mut needed, mut room) = (0_usize, vec![0_u8; 4096]);
        assert_eq!(
            get(room.len(), room.as_mut_ptr().cast(), &mut needed),
            SUCCESS
        );
        room.truncate(needed);
        String::from_utf8(room).unwrap()
    };
    let of_platform = |query| {
        text(&|size, to, needed| {
            // SAFETY: `text` has room for `size` bytes.
            unsafe { platform::clGetPlatformInfo(rig.platform, query, size, to, needed) }
        })
    };
    let of_device = |query| {
        text(&|size, to, needed| {
            // SAFETY: as above.
            unsafe { device::clGetDeviceInfo(rig.device, query, size, to, needed) }
        })
    };
    assert!(of_platform(CL_PLATFORM_VERSION).starts_with("OpenCL 3.0 "));
    assert!(of_platform(CL_PLATFORM_EXTENSIONS).contains("cl_khr_icd"));
    let name = of_device(CL_DEVICE_NAME);
    assert!(
        name.contains("Intel") && name.contains("visa-jit"),
        "{name}"
    );
}

/// SPIR-V is compiled by being kept, so no compiler is needed for this.
#[test]
fn options_of_linking_are_checked() {
    let rig = Rig::new();
    let module = [0x0723_0203_u32, 0x0001_0000, 0, 1, 0];
    let mut code = 1;
    // SAFETY: every pointer is to a variable of its type, or null where that is allowed.
    unsafe {
        let il = program::clCreateProgramWithIL(
            rig.context,
            module.as_ptr().cast(),
            size_of_val(&module),
            &mut code,
        );
        assert_eq!(code, SUCCESS);
        let mut link = |options: &std::ffi::CStr| {
            let (list, none) = (rig.device, null_mut());
            let options = options.as_ptr();
            let linked = program::clLinkProgram(
                rig.context,
                1,
                &list,
                options,
                1,
                &il,
                None,
                none,
                &mut code,
            );
            if !linked.is_null() {
                assert_eq!(program::clReleaseProgram(linked), SUCCESS);
            }
            (linked.is_null(), code)
        };
        assert_eq!(link(c"-create-library"), (true, CL_INVALID_OPERATION));
        let compiled = program::clCompileProgram(
            il,
            0,
            null(),
            null(),
            0,
            null(),
            null_mut(),
            None,
            null_mut(),
        );
        assert_eq!(compiled, SUCCESS);
        assert_eq!(link(c"-create-library"), (false, SUCCESS));
        let both = c"-create-library -enable-link-options -cl-finite-math-only";
        assert_eq!(link(both), (false, SUCCESS));
        for wrong in [
            c"-nonsense",
            c"-create-library -nonsense",
            c"-enable-link-options",
        ] {
            assert_eq!(link(wrong), (true, CL_INVALID_LINKER_OPTIONS), "{wrong:?}");
        }
        assert_eq!(program::clReleaseProgram(il), SUCCESS);
    }
}
