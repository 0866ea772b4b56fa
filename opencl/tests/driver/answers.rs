//! Answers to queries, and codes of calls that need others before them.

use std::ffi::c_void;
use std::ptr::{null, null_mut};

use visa_jit_opencl::abi::*;
use visa_jit_opencl::api::{device, enqueue, kernel, mem, platform, program};

use super::{Rig, SUCCESS, set};

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
        assert_eq!(read(0, 0, to), SUCCESS);
        assert_eq!(read(65, 0, to), CL_INVALID_VALUE);
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

/// A group of a required size has no more sub-groups than fit in it, and who asks how much room an answer needs has none yet.
#[test]
fn sub_groups_are_counted() {
    let rig = Rig::new();
    let program = rig.program("double");
    let kernel = rig.kernel(program, "dot_double");
    let ask = |query, input: &[usize], room: &mut [usize]| {
        let (mut needed, place) = (0, room.as_mut_ptr());
        let place = if room.is_empty() { null_mut() } else { place };
        // SAFETY: there is as much room as is said.
        let code = unsafe {
            kernel::clGetKernelSubGroupInfo(
                kernel,
                rig.device,
                query,
                size_of_val(input),
                input.as_ptr().cast(),
                size_of_val(room),
                place.cast(),
                &mut needed,
            )
        };
        assert_eq!(code, SUCCESS);
        needed / size_of::<usize>()
    };
    // Its source asks for groups of 32.
    let (mut lanes, mut most, mut local) = ([0], [0], [9; 3]);
    let query = CL_KERNEL_MAX_SUB_GROUP_SIZE_FOR_NDRANGE;
    assert_eq!(ask(query, &[32], &mut lanes), 1);
    assert_eq!(ask(CL_KERNEL_MAX_NUM_SUB_GROUPS, &[], &mut most), 1);
    assert_eq!(lanes[0] * most[0], 32);
    let query = CL_KERNEL_LOCAL_SIZE_FOR_SUB_GROUP_COUNT;
    assert_eq!(ask(query, &most, &mut []), 3);
    assert_eq!(ask(query, &most, &mut local), 3);
    assert_eq!(local, [32, 1, 1]);
    assert_eq!(ask(query, &[most[0] + 1], &mut local), 3);
    assert_eq!(local, [0; 3]);
    // SAFETY: both were made here.
    unsafe {
        assert_eq!(kernel::clReleaseKernel(kernel), SUCCESS);
        assert_eq!(program::clReleaseProgram(program), SUCCESS);
    }
}
